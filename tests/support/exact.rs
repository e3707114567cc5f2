//! Everything that a restore has to bring back.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::{entries, git_in};

/// Mode, object, stage, flags, path; modes, contents and links of the tree; head and status.
pub fn state(worktree: &Path) -> (Vec<String>, BTreeMap<String, String>) {
    let ask = |args: &[&str]| git_in(worktree, args);
    let git = vec![
        ask(&["ls-files", "-z", "--stage", "-v", "-f"]),
        ask(&["status", "--porcelain=v2", "-z", "--ignored", "--branch"]),
        ask(&["rev-parse", "HEAD"]),
        ask(&["diff", "HEAD"]),
    ];
    let mut tree = BTreeMap::new();
    let mut todo = vec![worktree.to_owned()];
    while let Some(folder) = todo.pop() {
        for path in entries(&folder) {
            // Its link names the registration, which may be another's.
            if path == worktree.join(".git") {
                continue;
            }
            let meta = std::fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(worktree).unwrap().display().to_string();
            let mode = meta.permissions().mode();
            let what = if meta.is_symlink() {
                format!("link {}", std::fs::read_link(&path).unwrap().display())
            } else if meta.is_dir() {
                todo.push(path);
                format!("dir {mode:o}")
            } else {
                format!("file {mode:o} {:?}", std::fs::read(&path).unwrap())
            };
            tree.insert(name, what);
        }
    }
    (git, tree)
}
