//! Looking through a directory tree without following links or leaving its file system.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use freehold_store::workspaces::WorkspaceError;

use crate::disk as fs;
use crate::error::io_fail;

/// What kind of thing an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A socket, pipe or device.
    Other,
}

/// One entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its path below the top.
    pub(crate) path: PathBuf,
    /// Its kind.
    pub(crate) what: What,
    /// Size in bytes.
    pub(crate) size: u64,
    /// When its content changed, in nanoseconds.
    pub(crate) mtime: i128,
    /// When its content or attributes changed, in nanoseconds.
    pub(crate) ctime: i128,
    /// Device and inode: they identify only within one execution.
    pub(crate) inode: (u64, u64),
    /// Permissions and kind.
    pub(crate) mode: u32,
}

impl Entry {
    /// Its path below the top, as bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.path.as_os_str().as_bytes()
    }
}

/// A tree as it was seen.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Everything below the top, folders before what is in them.
    pub(crate) entries: Vec<Entry>,
    /// What could not be looked into, with the reason.
    pub(crate) unseen: Vec<(PathBuf, String)>,
    /// Folders on another device; they were not entered.
    pub(crate) mounts: Vec<PathBuf>,
    /// Device and inode of the top.
    pub(crate) top: (u64, u64),
}

impl Tree {
    /// The inodes of the tree, its top included.
    pub(crate) fn inodes(&self) -> HashSet<(u64, u64)> {
        self.entries.iter().map(|e| e.inode).chain([self.top]).collect()
    }

    /// Every folder below the top that has an entry `.git`: a repository or worktree.
    pub(crate) fn repositories(&self) -> impl Iterator<Item = &Path> {
        self.entries
            .iter()
            .filter(|e| {
                e.bytes().ends_with(b".git") && e.path.file_name() == Some(OsStr::new(".git"))
            })
            .filter_map(|e| e.path.parent())
            .filter(|folder| !folder.as_os_str().is_empty())
    }
}

/// Reads a tree. What cannot be read is part of the answer.
pub(crate) fn read(top: &Path) -> Tree {
    let mut tree = Tree::default();
    match fs::symlink_metadata(top) {
        Ok(found) => tree.top = (found.dev(), found.ino()),
        Err(e) => {
            tree.unseen.push((PathBuf::new(), e.to_string()));
            return tree;
        }
    }
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(top.join(&folder)) {
            Ok(entries) => entries,
            Err(e) => {
                tree.unseen.push((folder, e.to_string()));
                continue;
            }
        };
        for entry in entries {
            let path = folder.join(entry.file_name());
            let meta = match entry.metadata() {
                Ok(meta) => meta,
                Err(e) => {
                    tree.unseen.push((path, e.to_string()));
                    continue;
                }
            };
            let kind = meta.file_type();
            let what = if kind.is_dir() {
                What::Folder
            } else if kind.is_symlink() {
                What::Link
            } else if kind.is_file() {
                What::File
            } else {
                What::Other
            };
            if what == What::Folder {
                if meta.dev() == tree.top.0 {
                    folders.push(path.clone());
                } else {
                    tree.mounts.push(path.clone());
                }
            }
            tree.entries.push(Entry {
                path,
                what,
                size: meta.size(),
                mtime: nanos(meta.mtime(), meta.mtime_nsec()),
                ctime: nanos(meta.ctime(), meta.ctime_nsec()),
                inode: (meta.dev(), meta.ino()),
                mode: meta.mode(),
            });
        }
    }
    // By bytes: a folder still comes before what is in it, and no path is taken apart to compare it.
    tree.entries.sort_unstable_by(|a, b| a.bytes().cmp(b.bytes()));
    tree
}

fn nanos(seconds: i64, nanos: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanos)
}

/// Mount points at or below a path, as this process sees them: a bind mount has the same device
/// as its source, so device numbers alone do not show it.
pub(crate) fn mounts_below(path: &Path) -> Result<Vec<PathBuf>, WorkspaceError> {
    let text = fs::read("/proc/self/mountinfo")
        .map_err(|e| io_fail(path, "cannot tell whether something is mounted in it", &e))?;
    let mounts = text
        .split(|b| *b == b'\n')
        .filter_map(|line| line.split(|b| *b == b' ').nth(4))
        .map(|field| PathBuf::from(OsStr::from_bytes(&unescape(field))))
        .filter(|mount| mount.starts_with(path))
        .collect();
    Ok(mounts)
}

/// Undoes the octal escapes of the mount table.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        if *first == b'\\'
            && let Some(digits) = tail.get(..3)
            && let Ok(text) = std::str::from_utf8(digits)
            && let Ok(byte) = u8::from_str_radix(text, 8)
        {
            out.push(byte);
            rest = &tail[3..];
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn mount_points_with_spaces_are_read() {
        assert_eq!(unescape(b"/a\\040b\\134"), b"/a b\\");
        assert_eq!(unescape(b"/a\\04"), b"/a\\04");
        assert_eq!(
            mounts_below(Path::new("/proc")).unwrap().first(),
            Some(&PathBuf::from("/proc"))
        );
    }

    #[test]
    fn links_are_entries_and_never_entered() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("all")).unwrap();
        fs::create_dir_all(dir.path().join("a/.git")).unwrap();
        let tree = read(dir.path());
        assert_eq!(tree.entries.len(), 3);
        assert!(tree.entries.iter().any(|e| e.what == What::Link));
        assert_eq!(tree.repositories().collect::<Vec<_>>(), [Path::new("a")]);
    }
}
