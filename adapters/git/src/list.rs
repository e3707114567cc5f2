//! What git itself lists as a repository's worktrees.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use freehold_store::workspaces::WorkspaceError;

use crate::disk as fs;
use crate::identity::{admin_dirs, common_dir, registered_path};
use crate::process::{Git, Run};

/// One worktree of a repository, as git lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// Its directory, which may be missing.
    pub path: PathBuf,
    /// Its administration directory; none for the main checkout.
    pub admin_dir: Option<PathBuf>,
    /// The reason of its lock, if it is locked; empty if no reason was given.
    pub locked_reason: Option<String>,
    /// Its branch with `refs/heads/`; none if its head is detached.
    pub branch: Option<String>,
    /// Its head in hex; empty if git names none.
    pub head: String,
}

/// Reads a repository's worktrees, the main checkout first (W-41).
///
/// # Errors
/// If the repository is not there, git is not there, or git cannot read the list.
pub fn list_registrations(repository: &Path) -> Result<Vec<Registration>, WorkspaceError> {
    list(&Git::new(), &common_dir(repository)?)
}

/// The same for a common git directory that is known.
pub(crate) fn list(git: &Git, common: &Path) -> Result<Vec<Registration>, WorkspaceError> {
    let args = ["worktree", "list", "--porcelain", "-z"];
    let output = git.ok(common, &args, Run { git_dir: Some(common), ..Run::default() })?;
    let mut known: Vec<(PathBuf, PathBuf)> = Vec::new();
    for admin in admin_dirs(common)? {
        if let Some(path) = registered_path(&admin)? {
            known.push((path, admin));
        }
    }
    Ok(parse(&output.stdout)
        .into_iter()
        .map(|mut found| {
            let real = fs::canonicalize(&found.path).unwrap_or_else(|_gone| found.path.clone());
            found.admin_dir =
                known.iter().find(|(path, _)| *path == real).map(|(_, admin)| admin.clone());
            found
        })
        .collect())
}

fn parse(bytes: &[u8]) -> Vec<Registration> {
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    let mut all = Vec::new();
    let mut one = Registration::default();
    for line in bytes.split(|b| *b == 0) {
        if line.is_empty() {
            if !one.path.as_os_str().is_empty() {
                all.push(std::mem::take(&mut one));
            }
        } else if let Some(path) = line.strip_prefix(b"worktree ") {
            one.path = PathBuf::from(OsStr::from_bytes(path));
        } else if let Some(head) = line.strip_prefix(b"HEAD ") {
            one.head = text(head);
        } else if let Some(branch) = line.strip_prefix(b"branch ") {
            one.branch = Some(text(branch));
        } else if let Some(reason) = line.strip_prefix(b"locked ") {
            one.locked_reason = Some(text(reason));
        } else if line == b"locked" {
            one.locked_reason = Some(String::new());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_line_break_stays_one_path() {
        let found = parse(b"worktree /a\nb\0HEAD 12\0branch refs/heads/x\0locked why\nnot\0\0worktree /c\0bare\0\0");
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].path, PathBuf::from("/a\nb"));
        assert_eq!(found[0].locked_reason.as_deref(), Some("why\nnot"));
        assert_eq!(found[0].branch.as_deref(), Some("refs/heads/x"));
        assert_eq!(found[1], Registration { path: "/c".into(), ..Registration::default() });
    }
}
