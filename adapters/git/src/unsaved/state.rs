//! State that only the administration directory has (W-33): operations in progress, refs, and
//! whatever else lies there.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use freehold_kernel::Unsaved;

use super::{Ask, Seen};
use crate::error::{show, show_bytes};
use crate::identity::STAMP;
use crate::root::is_there;
use crate::tree::What;

/// Files in an administration directory that mean that something was begun and not ended.
const OPERATIONS: &[(&str, &str)] = &[
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase or am"),
    ("REBASE_HEAD", "a rebase"),
    ("MERGE_HEAD", "a merge"),
    ("MERGE_MODE", "a merge"),
    ("MERGE_MSG", "a merge, cherry-pick or revert"),
    ("MERGE_AUTOSTASH", "a merge with stashed changes"),
    ("AUTO_MERGE", "a merge"),
    ("SQUASH_MSG", "a merge that squashes"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("BISECT_LOG", "a bisect"),
    ("BISECT_START", "a bisect"),
    ("BISECT_TERMS", "a bisect"),
    ("BISECT_NAMES", "a bisect"),
    ("BISECT_EXPECTED_REV", "a bisect"),
    ("BISECT_ANCESTORS_OK", "a bisect"),
    ("BISECT_FIRST_PARENT", "a bisect"),
    ("BISECT_RUN", "a bisect"),
    ("NOTES_MERGE_PARTIAL", "a merge of notes"),
    ("NOTES_MERGE_REF", "a merge of notes"),
    ("NOTES_MERGE_WORKTREE", "a merge of notes"),
    ("sequencer", "a series of cherry-picks or reverts"),
];

/// What any administration directory may have without holding work, or what has a look of its
/// own. Everything else in it is state that only it has.
const USUAL: &[&str] = &[
    "index",
    "gitdir",
    "commondir",
    "locked",
    "refs",
    "reftable",
    "HEAD",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "COMMIT_EDITMSG",
    "MERGE_RR",
    "logs",
    "gc.pid",
    "modules",
    STAMP,
];

impl Ask<'_> {
    /// Something that was begun and not ended.
    pub(super) fn operations(&self, seen: &mut Seen) {
        for (file, what) in OPERATIONS {
            match is_there(&self.target.git_dir.join(file)) {
                Ok(true) => {
                    seen.add(Unsaved::OPERATION, format!("{what} is in progress ({file})"));
                }
                Ok(false) => {}
                Err(e) => seen.unknown("whether something is in progress", &e),
            }
        }
        // With reftables these two are no files.
        if is_there(&self.target.git_dir.join("reftable")).unwrap_or(true) {
            for (name, what) in [("CHERRY_PICK_HEAD", "cherry-pick"), ("REVERT_HEAD", "revert")] {
                match self.run(&["rev-parse", "--verify", "--quiet", name]) {
                    Ok(output) if output.status.success() => {
                        seen.add(Unsaved::OPERATION, format!("a {what} is in progress"));
                    }
                    Ok(_) => {}
                    Err(e) => seen.unknown("whether something is in progress", &e),
                }
            }
        }
    }

    /// Refs and state that nothing outside the administration directory has.
    pub(super) fn private(&self, seen: &mut Seen) {
        let own = ["refs/worktree", "refs/bisect", "refs/rewritten"];
        let mut args = vec!["for-each-ref", "--format=%(refname)"];
        args.extend(own);
        match self.ok(&args) {
            Ok(output) => {
                for name in output.stdout.split(|b| *b == b'\n').filter(|n| !n.is_empty()) {
                    seen.add(Unsaved::PRIVATE, format!("a ref of its own: {}", show_bytes(name)));
                }
            }
            Err(e) => seen.unknown("whether it has refs of its own", &e),
        }
        // A submodule's repository always has a configuration; that is no work.
        if !self.target.inside.as_os_str().is_empty() {
            return;
        }
        let tree = crate::tree::read(self.target.git_dir);
        for (path, why) in &tree.unseen {
            seen.add(Unsaved::UNKNOWN, format!("could not look into {}: {why}", show(path)));
        }
        for entry in tree.entries.iter().filter(|e| e.what != What::Folder) {
            let Some(first) = entry.path.iter().next().map(OsStr::as_bytes) else { continue };
            let known = USUAL.iter().chain(OPERATIONS.iter().map(|(name, _)| name));
            let usual = known.into_iter().any(|name| name.as_bytes() == first)
                || first.starts_with(b"sharedindex.")
                || first.ends_with(b".lock");
            if !usual {
                let path = show(&entry.path);
                seen.add(Unsaved::PRIVATE, format!("state of its own: {path}"));
            }
        }
    }
}
