//! Unlinking a tree relative to opened directories (W-35, W-38): links are unlinked and never
//! followed, nothing on another device is entered, and whatever is renamed or replaced meanwhile
//! cannot lead out of the tree.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use freehold_kernel::Reason;
use freehold_store::workspaces::{Pulse, WorkspaceError};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::disk::{self as fs, at};
use crate::error::{fail, os_fail, show};
use crate::root::{At, walk_to};

/// How many entries are unlinked between two looks at the caller's right (W-13).
const BETWEEN_PULSES: u64 = 256;

/// Deeper folders are first moved to the top of the tree, so that the open directories of one
/// deletion stay few.
const DEPTH: usize = 48;

/// Unlinks a tree below a trusted top folder; returns how many entries went. Nothing there is
/// zero. A call that was stopped is finished by the next.
pub(crate) fn remove_tree(
    top: &Path,
    tree: &Path,
    pulse: Pulse<'_>,
) -> Result<u64, WorkspaceError> {
    let names: Vec<_> = tree
        .strip_prefix(top)
        .map_err(|_outside| {
            fail(Reason::OutsideRoot, tree, "not below its root", "correct the row")
        })?
        .components()
        .map(|c| c.as_os_str().to_os_string())
        .collect();
    let Some((name, above)) = names.split_last() else {
        return Err(fail(Reason::OutsideRoot, tree, "this is the root itself", "correct the row"));
    };
    let above = match walk_to(top, above)? {
        At::Folder(fd) => fd,
        At::Missing => return Ok(0),
        At::Other(part) => {
            return Err(fail(
                Reason::OutsideRoot,
                tree,
                format!("{} on the way to it is a link or no folder", show(&part)),
                "put the folder back; nothing is ever unlinked through a link",
            ));
        }
    };
    let name = c_name(name.as_bytes(), tree)?;
    let stat = match at::statat(&above, &name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(0),
        Err(e) => return Err(os_fail(tree, "cannot look at the trash", e)),
    };
    let device = at::fstat(&above)
        .map_err(|e| os_fail(tree, "cannot look at the folder above the trash", e))?
        .st_dev;
    let mut purge = Purge { device, removed: 0, moved: 0, pulse };
    purge.pulse_or_stop(tree)?;
    if kind(&stat) == FileType::Directory {
        let fd = purge.open(above.as_fd(), &name, &stat, tree)?;
        // Folders that were too deep appear at the top and are taken in the next round.
        while purge.empty(fd.as_fd(), fd.as_fd(), tree, 0)? {}
    }
    purge.unlink(above.as_fd(), &name, kind(&stat), tree)?;
    Ok(purge.removed)
}

struct Purge<'a> {
    device: u64,
    removed: u64,
    moved: u64,
    pulse: Pulse<'a>,
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn c_name(bytes: &[u8], path: &Path) -> Result<CString, WorkspaceError> {
    CString::new(bytes)
        .map_err(|_nul| fail(Reason::Io, path, "a name contains a zero byte", "correct the row"))
}

fn join(path: &Path, name: &CStr) -> PathBuf {
    path.join(std::ffi::OsStr::from_bytes(name.to_bytes()))
}

impl Purge<'_> {
    fn pulse_or_stop(&mut self, path: &Path) -> Result<(), WorkspaceError> {
        if (self.pulse)() {
            return Ok(());
        }
        Err(fail(
            Reason::Contested,
            path,
            format!("the right to this deletion was lost after {} entries", self.removed),
            "whoever holds it now goes on with what is left",
        ))
    }

    /// Unlinks everything in a folder; true if something was moved to the top for later.
    fn empty(
        &mut self,
        top: BorrowedFd<'_>,
        folder: BorrowedFd<'_>,
        path: &Path,
        depth: usize,
    ) -> Result<bool, WorkspaceError> {
        let mut again = false;
        for (name, listed) in self.names(folder, path)? {
            let here = join(path, &name);
            // Only folders and what is not known are looked at: the rest is unlinked whatever it
            // is, and by then a folder in its place is no file to the system either.
            if !matches!(listed, FileType::Directory | FileType::Unknown) {
                self.unlink(folder, &name, listed, &here)?;
                self.pulse_now_and_then(&here)?;
                continue;
            }
            let stat = match at::statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(e) => return Err(os_fail(&here, "cannot look at an entry of the trash", e)),
            };
            if kind(&stat) == FileType::Directory {
                let fd = self.open(folder, &name, &stat, &here)?;
                if depth >= DEPTH {
                    self.move_up(top, folder, &name, &here)?;
                    again = true;
                    continue;
                }
                again |= self.empty(top, fd.as_fd(), &here, depth + 1)?;
            }
            self.unlink(folder, &name, kind(&stat), &here)?;
            self.pulse_now_and_then(&here)?;
        }
        Ok(again)
    }

    fn pulse_now_and_then(&mut self, path: &Path) -> Result<(), WorkspaceError> {
        if self.removed.is_multiple_of(BETWEEN_PULSES) { self.pulse_or_stop(path) } else { Ok(()) }
    }

    /// What is in a folder. All of it before the first unlink: what a directory stream shows
    /// while entries go is not defined.
    fn names(
        &self,
        folder: BorrowedFd<'_>,
        path: &Path,
    ) -> Result<Vec<(CString, FileType)>, WorkspaceError> {
        at::listed(folder).map_err(|e| os_fail(path, "cannot list a folder of the trash", e))
    }

    /// Opens a folder of the tree; one safe repair of its permissions, if it is our own (W-38).
    fn open(
        &self,
        above: BorrowedFd<'_>,
        name: &CStr,
        stat: &Stat,
        path: &Path,
    ) -> Result<OwnedFd, WorkspaceError> {
        if stat.st_dev != self.device {
            return Err(fail(
                Reason::MountPoint,
                path,
                format!("{} lies on another file system", show(path)),
                "unmount it, then retry",
            ));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match at::openat(above, name, flags, Mode::empty()) {
            Err(Errno::ACCESS) if repair(above, name) => {
                at::openat(above, name, flags, Mode::empty())
            }
            opened => opened,
        };
        opened.map_err(|e| os_fail(path, "cannot open a folder of the trash", e))
    }

    fn unlink(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &CStr,
        kind: FileType,
        path: &Path,
    ) -> Result<(), WorkspaceError> {
        let flags = if kind == FileType::Directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        let done = match at::unlinkat(folder, name, flags) {
            // Not the entry's permissions decide but those of the folder that it is in.
            Err(Errno::ACCESS) if repair(folder, c".") => at::unlinkat(folder, name, flags),
            done => done,
        };
        match done {
            Ok(()) => {
                self.removed += 1;
                Ok(())
            }
            Err(Errno::NOENT) => Ok(()),
            // Something moved out of a folder that was too deep, or a process writes into it.
            Err(Errno::NOTEMPTY | Errno::EXIST) => Err(fail(
                Reason::Changing,
                path,
                format!("something was put into {} while it was removed", show(path)),
                "end what writes there; the rest goes with the next try",
            )),
            Err(e) => Err(os_fail(path, "cannot unlink an entry of the trash", e)),
        }
    }

    fn move_up(
        &mut self,
        top: BorrowedFd<'_>,
        folder: BorrowedFd<'_>,
        name: &CStr,
        path: &Path,
    ) -> Result<(), WorkspaceError> {
        loop {
            let to = format!(".freehold-deep-{}", self.moved);
            self.moved += 1;
            match at::rename_new(folder, name, top, to.as_str()) {
                Ok(()) => return Ok(()),
                Err(Errno::EXIST) => {}
                Err(e) => return Err(os_fail(path, "cannot move a deep folder up", e)),
            }
        }
    }
}

/// Gives the owner of a folder all rights in it, if that is this user. Opened by its name without
/// following a link, and changed through that very descriptor.
fn repair(above: BorrowedFd<'_>, name: &CStr) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(fd) = at::openat(above, name, flags, Mode::empty()) else { return false };
    let Ok(stat) = at::fstat(&fd) else { return false };
    let own = stat.st_uid == rustix::process::geteuid().as_raw();
    let lacking = stat.st_mode & 0o700 != 0o700;
    let here = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let mode = std::os::unix::fs::PermissionsExt::from_mode((stat.st_mode & 0o7777) | 0o700);
    own && lacking && fs::set_permissions(here, mode).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_go_and_what_they_name_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        fs::create_dir_all(root.join("t/a/b")).unwrap();
        fs::create_dir_all(outside.join("x")).unwrap();
        fs::write(outside.join("x/kept"), "1").unwrap();
        symlink(&outside, root.join("t/out")).unwrap();
        symlink("..", root.join("t/a/cycle")).unwrap();
        symlink("nowhere", root.join("t/a/dangling")).unwrap();
        symlink(outside.join("x/kept"), root.join("t/a/b/file")).unwrap();
        assert_eq!(remove_tree(&root, &root.join("t"), &mut || true).unwrap(), 7);
        assert!(!root.join("t").exists());
        assert_eq!(fs::read(outside.join("x/kept")).unwrap(), b"1");
        assert_eq!(remove_tree(&root, &root.join("t"), &mut || true).unwrap(), 0);
    }

    #[test]
    fn a_link_on_the_way_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(outside.join("t")).unwrap();
        symlink(&outside, root.join("way")).unwrap();
        let refused = remove_tree(&root, &root.join("way/t"), &mut || true).unwrap_err();
        assert_eq!(refused.reason, Reason::OutsideRoot);
        assert!(outside.join("t").exists());
        // A link as the tree itself is unlinked.
        assert_eq!(remove_tree(&root, &root.join("way"), &mut || true).unwrap(), 1);
        assert!(outside.join("t").exists());
    }

    #[test]
    fn a_lost_right_stops_and_the_next_call_finishes() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("t");
        fs::create_dir_all(&tree).unwrap();
        for i in 0..600 {
            fs::write(tree.join(i.to_string()), "").unwrap();
        }
        let mut looks = 0;
        let stopped = remove_tree(dir.path(), &tree, &mut || {
            looks += 1;
            looks < 2
        })
        .unwrap_err();
        assert_eq!(stopped.reason, Reason::Contested);
        assert_eq!(fs::read_dir(&tree).unwrap().count(), 600 - 256);
        assert_eq!(remove_tree(dir.path(), &tree, &mut || true).unwrap(), 600 - 256 + 1);
    }

    #[test]
    fn a_very_deep_tree_goes() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("t");
        let mut deep = tree.clone();
        for _ in 0..400 {
            deep.push("d");
        }
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("f"), "").unwrap();
        remove_tree(dir.path(), &tree, &mut || true).unwrap();
        assert!(!tree.exists());
    }
}
