//! Walking a tree of files without ever following a link (W-31), and opening what was found the
//! same way: component by component from an opened top, never by re-resolving a text.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use freehold_kernel::Reason;
use freehold_store::workspaces::WorkspaceError;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::manifest::Kind;
use super::seat::Beat;
use crate::disk::{File, at};
use crate::error::{fail, os_fail};

/// What identifies a state of a file: if none of it differs, nothing was written meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sign {
    /// Type and permission bits.
    pub(crate) mode: u32,
    /// Inode.
    pub(crate) ino: u64,
    /// Bytes.
    pub(crate) size: u64,
    /// Seconds and nanoseconds.
    pub(crate) mtime: (i64, i64),
    /// Seconds and nanoseconds.
    pub(crate) ctime: (i64, i64),
}

impl Sign {
    // The widths of these fields differ from platform to platform.
    #[allow(clippy::unnecessary_cast, clippy::cast_lossless)]
    fn of(stat: &Stat) -> Sign {
        Sign {
            mode: stat.st_mode as u32,
            ino: stat.st_ino as u64,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mtime: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            ctime: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }

    /// Permission bits alone.
    pub(crate) fn perm(self) -> u32 {
        self.mode & 0o7777
    }

    /// The modification time in nanoseconds, as far as they can be counted.
    pub(crate) fn mtime_ns(self) -> i64 {
        self.mtime.0.saturating_mul(1_000_000_000).saturating_add(self.mtime.1)
    }
}

/// Something that a walk found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Its path from the top.
    pub(crate) path: Vec<u8>,
    /// What it is.
    pub(crate) kind: Kind,
    /// Its state.
    pub(crate) sign: Sign,
}

/// Opens a tree's top, which may not be a link itself.
pub(crate) fn open_top(path: &Path) -> Result<OwnedFd, WorkspaceError> {
    at::open(path, DIR, Mode::empty()).map_err(|e| os_fail(path, "cannot open the folder", e))
}

const DIR: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A walk over one tree.
pub(crate) struct Walk<'a> {
    /// The opened top.
    pub(crate) top: &'a OwnedFd,
    /// Its path, for sentences.
    pub(crate) at: &'a Path,
    /// Paths at which another repository may lie: submodules of the index.
    pub(crate) gitlinks: &'a [Vec<u8>],
    /// Whether `.git` means a repository here.
    pub(crate) is_work_tree: bool,
}

impl Walk<'_> {
    /// Everything in the tree but its own `.git`, in the order of the paths.
    ///
    /// # Errors
    /// For a mount point or another repository inside, and whatever cannot be read: what cannot
    /// be looked into cannot be kept.
    pub(crate) fn run(&self, beat: &mut Beat<'_>) -> Result<Vec<Seen>, WorkspaceError> {
        let device = at::fstat(self.top)
            .map_err(|e| os_fail(self.at, "cannot look at the folder", e))?
            .st_dev;
        let mut found = Vec::new();
        let mut folders = vec![Vec::new()];
        while let Some(folder) = folders.pop() {
            let opened = match open_folder(self.top, &folder) {
                Ok(fd) => fd,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Err(self.moved(&folder)),
                Err(e) => return Err(os_fail(&self.path(&folder), "cannot open the folder", e)),
            };
            let names = at::names(&opened)
                .map_err(|e| os_fail(&self.path(&folder), "cannot list the folder", e))?;
            for name in names.into_iter().map(CString::into_bytes) {
                if folder.is_empty() && self.is_own_link(&name) {
                    continue;
                }
                beat.tick()?;
                let path = joined(&folder, &name);
                let stat = match at::statat(
                    &opened,
                    OsStr::from_bytes(&name),
                    AtFlags::SYMLINK_NOFOLLOW,
                ) {
                    Ok(stat) => stat,
                    Err(Errno::NOENT) => return Err(self.moved(&path)),
                    Err(e) => return Err(os_fail(&self.path(&path), "cannot look at it", e)),
                };
                if self.is_work_tree && name == b".git" && !self.in_submodule(&folder) {
                    return Err(fail(
                        Reason::Nested,
                        &self.path(&path),
                        "another repository is inside, and git cannot keep its .git in a tree",
                        "move it away, or make it a submodule",
                    ));
                }
                if stat.st_dev != device {
                    return Err(fail(
                        Reason::MountPoint,
                        &self.path(&path),
                        "another file system is mounted inside",
                        "unmount it",
                    ));
                }
                let kind = match FileType::from_raw_mode(stat.st_mode) {
                    FileType::RegularFile => Kind::File,
                    FileType::Symlink => Kind::Link,
                    FileType::Directory => Kind::Dir,
                    _other => Kind::Special,
                };
                if kind == Kind::Dir {
                    folders.push(path.clone());
                }
                found.push(Seen { path, kind, sign: Sign::of(&stat) });
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn is_own_link(&self, name: &[u8]) -> bool {
        self.is_work_tree && name == b".git"
    }

    fn in_submodule(&self, path: &[u8]) -> bool {
        self.gitlinks.iter().any(|link| is_in(path, link))
    }

    fn path(&self, path: &[u8]) -> PathBuf {
        self.at.join(OsStr::from_bytes(path))
    }

    fn moved(&self, path: &[u8]) -> WorkspaceError {
        changing(&self.path(path), "it went away while it was looked at")
    }
}

/// It changed while it was looked at; the salvage begins again a few times (W-34).
pub(crate) fn changing(path: &Path, what: &str) -> WorkspaceError {
    fail(
        Reason::Changing,
        path,
        what,
        "stop what writes into the worktree; the step is tried again",
    )
}

/// Whether a path is another or lies in it.
pub(crate) fn is_in(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// A name in a folder; the top is the empty path.
pub(crate) fn joined(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = folder.to_vec();
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// The folder and the name of a path.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|b| *b == b'/') {
        Some(n) => (&path[..n], &path[n + 1..]),
        None => (&[], path),
    }
}

/// Opens a folder below a top; every component must be a real folder.
pub(crate) fn open_folder(top: &OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let mut here = rustix::io::fcntl_dupfd_cloexec(top, 3)?;
    for name in path.split(|b| *b == b'/').filter(|name| !name.is_empty()) {
        if name == b".." || name == b"." {
            return Err(Errno::INVAL);
        }
        here = at::openat(&here, OsStr::from_bytes(name), DIR, Mode::empty())?;
    }
    // A descriptor made for walking shares its position with the top's own; a fresh one does not.
    at::openat(&here, ".", DIR, Mode::empty())
}

/// Opens a plain file below a top for reading.
pub(crate) fn open_file(top: &OwnedFd, path: &[u8]) -> Result<File, Errno> {
    let (folder, name) = split(path);
    let folder = open_folder(top, folder)?;
    // Without waiting: a pipe that took the file's place must not hang the step.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = at::openat(&folder, OsStr::from_bytes(name), flags, Mode::empty())?;
    let stat = at::fstat(&fd)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
        Ok(File::from_fd(fd, OsStr::from_bytes(path)))
    } else {
        Err(Errno::NOENT)
    }
}

/// Reads a link below a top.
pub(crate) fn read_link(top: &OwnedFd, path: &[u8]) -> Result<Vec<u8>, Errno> {
    let (folder, name) = split(path);
    let folder = open_folder(top, folder)?;
    Ok(at::readlinkat(&folder, OsStr::from_bytes(name))?.into_bytes())
}

/// The state of one path below a top; none if nothing is there, or a link is in the way.
pub(crate) fn look(top: &OwnedFd, path: &[u8]) -> Result<Option<Seen>, Errno> {
    let (folder, name) = split(path);
    let folder = match open_folder(top, folder) {
        Ok(fd) => fd,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        Err(e) => return Err(e),
    };
    look_in(folder.as_fd(), path, name)
}

fn look_in(folder: BorrowedFd<'_>, path: &[u8], name: &[u8]) -> Result<Option<Seen>, Errno> {
    match at::statat(folder, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => {
            let kind = match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Kind::File,
                FileType::Symlink => Kind::Link,
                FileType::Directory => Kind::Dir,
                _other => Kind::Special,
            };
            Ok(Some(Seen { path: path.to_vec(), kind, sign: Sign::of(&stat) }))
        }
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(e),
    }
}
