//! The worktree's administration directory: operations in progress, and state that is nowhere
//! else (W-33).

use std::collections::BTreeSet;
use std::io::Read;

use freehold_kernel::Unsaved;
use freehold_store::workspaces::WorkspaceError;

use super::manifest::Kind;
use super::reach::names_in;
use super::scan::{Seen, Walk, changing, is_in, open_file, open_top};
use super::seat::{Beat, Seat, lines};
use super::tracked::hash_at;
use crate::error::{io_fail, os_fail};
use crate::identity::STAMP;
use crate::root::is_there;

/// The largest file that is searched for object names; a patch of `git am` needs none.
const SEARCHED_BYTES_MAX: u64 = 1 << 20;

/// What git or Freehold makes anew for every worktree: never part of an entry. The index and
/// refs are kept in forms of their own.
const OWN: &[&str] = &["index", "gitdir", "commondir", "locked", "refs", "reftable", STAMP];

/// What is a file beside loose refs, and a ref where the repository has reftables.
const PSEUDO: &[&str] =
    &["CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "AUTO_MERGE", "BISECT_EXPECTED_REV"];

/// What any worktree may have without holding work: kept, but no reason for an entry.
const HARMLESS: &[&str] =
    &["HEAD", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG", "MERGE_RR", "logs", "gc.pid"];

/// Files and folders of an operation in progress.
const OPERATION: &[&str] = &[
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_AUTOSTASH",
    "AUTO_MERGE",
    "SQUASH_MSG",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "BISECT_LOG",
    "BISECT_START",
    "BISECT_TERMS",
    "BISECT_NAMES",
    "BISECT_EXPECTED_REV",
    "BISECT_ANCESTORS_OK",
    "BISECT_FIRST_PARENT",
    "BISECT_RUN",
    "NOTES_MERGE_PARTIAL",
    "NOTES_MERGE_REF",
    "NOTES_MERGE_WORKTREE",
];

/// One file of the administration directory.
pub(crate) struct AdminFile {
    /// Where and what.
    pub(crate) seen: Seen,
    /// The name of its bytes.
    pub(crate) oid: String,
    /// What kind of unsaved work it is; none for what any worktree has.
    pub(crate) kind: Unsaved,
    /// Objects that it names.
    pub(crate) names: BTreeSet<String>,
}

/// Every file that an entry keeps.
pub(crate) fn scan(seat: &Seat<'_>, beat: &mut Beat<'_>) -> Result<Vec<AdminFile>, WorkspaceError> {
    let top = open_top(&seat.admin)?;
    let walk = Walk { top: &top, at: &seat.admin, gitlinks: &[], is_work_tree: false };
    let mut files = Vec::new();
    for seen in walk.run(beat)? {
        let is = |list: &[&str]| list.iter().any(|name| is_in(&seen.path, name.as_bytes()));
        let own = is(OWN) || seen.path.starts_with(b"sharedindex.") || is_lock(&seen.path);
        if own || !matches!(seen.kind, Kind::File | Kind::Link) {
            continue;
        }
        let kind = if is(HARMLESS) {
            Unsaved::NONE
        } else if is(OPERATION) {
            Unsaved::OPERATION
        } else if is(&["modules"]) {
            Unsaved::SUBMODULE
        } else {
            // Its own configuration, its sparse file, and whatever this version does not know.
            Unsaved::PRIVATE
        };
        let path = || seat.admin.join(String::from_utf8_lossy(&seen.path).as_ref());
        let oid = hash_at(&top, seat.format, &seen)
            .map_err(|e| os_fail(&path(), "cannot read the worktree's state", e))?
            .ok_or_else(|| changing(&path(), "its size changed while it was read"))?;
        let searched = kind == Unsaved::OPERATION;
        let names = if searched && seen.sign.size <= SEARCHED_BYTES_MAX && seen.kind == Kind::File {
            let mut text = Vec::new();
            open_file(&top, &seen.path)
                .map_err(|e| os_fail(&path(), "cannot read the worktree's state", e))?
                .read_to_end(&mut text)
                .map_err(|e| io_fail(&path(), "cannot read the worktree's state", &e))?;
            names_in(&text, seat.format.hex_len()).collect()
        } else {
            BTreeSet::new()
        };
        files.push(AdminFile { seen, oid, kind, names });
    }
    Ok(files)
}

/// A lock of a git command; it holds no work.
fn is_lock(path: &[u8]) -> bool {
    path.ends_with(b".lock") && !path.contains(&b'/')
}

/// When the index was written; what is as young as it is looked at closely.
pub(crate) fn index_time(seat: &Seat<'_>) -> Result<(i64, i64), WorkspaceError> {
    let top = open_top(&seat.admin)?;
    let seen = super::scan::look(&top, b"index")
        .map_err(|e| os_fail(&seat.admin, "cannot look at the index", e))?;
    Ok(seen.map_or((0, 0), |s| s.sign.mtime))
}

/// Refs that only this worktree has.
pub(crate) fn private_refs(
    seat: &Seat<'_>,
    beat: &mut Beat<'_>,
) -> Result<Vec<(String, String)>, WorkspaceError> {
    let args = [
        "for-each-ref",
        "--format=%(objectname) %(refname)",
        "refs/worktree",
        "refs/bisect",
        "refs/rewritten",
    ];
    let mut found: Vec<(String, String)> = lines(&seat.ask(&args, b"", &[], beat)?)
        .filter_map(|line| {
            line.split_once(' ').map(|(oid, name)| (name.to_owned(), oid.to_owned()))
        })
        .collect();
    if is_there(&seat.admin.join("reftable"))? {
        for name in PSEUDO {
            let asked = seat.ask_if(&["rev-parse", "--quiet", "--verify", name], beat)?;
            found.extend(asked.map(|oid| ((*name).to_owned(), oid)));
        }
    }
    Ok(found)
}
