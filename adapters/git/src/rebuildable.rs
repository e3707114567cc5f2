//! Ignored files that are declared rebuildable (W-33): what a build makes again is no work, and
//! is neither refused nor salvaged. Nothing is rebuildable unless somebody said so.
//!
//! Two declarations add up, both lists of patterns as in a `.gitignore`:
//! - the host's, for all repositories: [`crate::GitWorkspaces::with_rebuildable`];
//! - the repository's own, in its configuration:
//!   `git config --add freehold.rebuildable target/`. The worktree's own configuration is not
//!   asked: whoever works in it would declare his own work away.
//!
//! A pattern reaches only what git ignores: an untracked file that matches it is still unsaved.

use crate::disk as fs;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use freehold_store::workspaces::WorkspaceError;

use crate::process::{Git, Run};

/// The configuration of a repository that declares.
const KEY: &str = "freehold.rebuildable";

/// Files that match what is declared, below the work tree. They may be ignored by git or not.
#[derive(Debug, Default)]
pub(crate) struct Rebuildable {
    files: BTreeSet<Vec<u8>>,
}

impl Rebuildable {
    /// Looks for them. An empty declaration finds nothing and costs one question.
    ///
    /// # Errors
    /// If git cannot be asked: then nothing may be taken for rebuildable.
    pub(crate) fn of(
        git: &Git,
        git_dir: &Path,
        work_tree: &Path,
    ) -> Result<Rebuildable, WorkspaceError> {
        let declared = declared(git, git_dir)?;
        if declared.is_empty() {
            return Ok(Rebuildable::default());
        }
        let args = ["ls-files", "-z", "--others", "--ignored"].map(str::to_owned).into_iter();
        let patterns = declared.iter().map(|pattern| format!("--exclude={pattern}"));
        let args: Vec<String> = args.chain(patterns).collect();
        let run = Run { git_dir: Some(git_dir), work_tree: Some(work_tree), ..Run::default() };
        let found = git.ok(git_dir, &args, run)?.stdout;
        let files = found.split(|b| *b == 0).filter(|p| !p.is_empty()).map(<[u8]>::to_vec);
        Ok(Rebuildable { files: files.collect() })
    }

    /// Whether nothing is.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Whether this file is one of them.
    pub(crate) fn has(&self, file: &[u8]) -> bool {
        self.files.contains(file)
    }

    /// Whether an ignored path holds nothing else. Folders without files hold nothing at all.
    pub(crate) fn covers(&self, work_tree: &Path, path: &[u8]) -> bool {
        let path = path.strip_suffix(b"/").unwrap_or(path);
        let whole = work_tree.join(OsStr::from_bytes(path));
        let Ok(found) = fs::symlink_metadata(&whole) else { return false };
        if !found.is_dir() {
            return self.has(path);
        }
        // What cannot be listed may hold anything.
        let Ok(entries) = fs::read_dir(&whole) else { return false };
        for entry in entries {
            let mut below = path.to_vec();
            below.push(b'/');
            below.extend_from_slice(entry.file_name().as_bytes());
            if !self.covers(work_tree, &below) {
                return false;
            }
        }
        true
    }
}

/// The patterns that are declared for a repository. Empty ones and ones with a line break say
/// nothing.
fn declared(git: &Git, git_dir: &Path) -> Result<Vec<String>, WorkspaceError> {
    let mut all: Vec<String> = git.rebuildable().to_vec();
    let args = ["config", "--local", "-z", "--get-all", KEY];
    let run = Run { git_dir: Some(git_dir), ..Run::default() };
    let own = git.run(git_dir, &args, run)?;
    // It ends with 1 where nothing is set.
    if own.status.success() {
        let values = own.stdout.split(|b| *b == 0);
        all.extend(values.filter_map(|v| std::str::from_utf8(v).ok()).map(str::to_owned));
    }
    all.retain(|pattern| !pattern.trim().is_empty() && !pattern.contains('\n'));
    Ok(all)
}
