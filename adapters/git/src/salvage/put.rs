//! Putting files back: below an opened top, through real folders only, each file whole or not at
//! all, and nothing overwritten that was not looked at before (W-31, W-34).

use std::cell::Cell;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use freehold_store::workspaces::WorkspaceError;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::manifest::Kind;
use super::scan::{Seen, look, open_folder, split};
use super::survey::PART;
use crate::disk::{File, at};
use crate::error::os_fail;

/// Writes below one top.
pub(crate) struct Put<'a> {
    top: &'a OwnedFd,
    at: &'a Path,
    count: Cell<u32>,
}

impl<'a> Put<'a> {
    /// Below this top, which lies at this path.
    pub(crate) fn new(top: &'a OwnedFd, at: &'a Path) -> Put<'a> {
        Put { top, at, count: Cell::new(0) }
    }

    /// Puts a file where nothing is, or where still is what was seen. False if something else is.
    pub(crate) fn file(
        &self,
        path: &[u8],
        perm: u32,
        instead_of: Option<&Seen>,
        fill: impl FnOnce(&mut File) -> Result<(), WorkspaceError>,
    ) -> Result<bool, WorkspaceError> {
        let Some((folder, name)) = self.folder(path)? else { return Ok(false) };
        let part = self.part();
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = at::openat(&folder, OsStr::from_bytes(&part), flags, Mode::RWXU)
            .map_err(|e| self.fail(path, e))?;
        let mut file = File::from_fd(fd, OsStr::from_bytes(path));
        let filled = fill(&mut file)
            .and_then(|()| at::fchmod(&file, mode(perm)).map_err(|e| self.fail(path, e)));
        if let Err(e) = filled {
            self.drop_part(&folder, &part);
            return Err(e);
        }
        self.place(path, &folder, &part, name, instead_of)
    }

    /// The same for a link.
    pub(crate) fn link(
        &self,
        path: &[u8],
        target: &[u8],
        instead_of: Option<&Seen>,
    ) -> Result<bool, WorkspaceError> {
        let Some((folder, name)) = self.folder(path)? else { return Ok(false) };
        let part = self.part();
        at::symlinkat(OsStr::from_bytes(target), &folder, OsStr::from_bytes(&part))
            .map_err(|e| self.fail(path, e))?;
        self.place(path, &folder, &part, name, instead_of)
    }

    /// Makes a folder where nothing is. False if something else is there.
    pub(crate) fn dir(&self, path: &[u8], perm: Option<u32>) -> Result<bool, WorkspaceError> {
        let Some((folder, name)) = self.folder(path)? else { return Ok(false) };
        let name = OsStr::from_bytes(name);
        match at::mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(self.fail(path, e)),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match at::openat(&folder, name, flags, Mode::empty()) {
            Ok(made) => {
                if let Some(perm) = perm {
                    at::fchmod(&made, mode(perm)).map_err(|e| self.fail(path, e))?;
                }
                Ok(true)
            }
            Err(Errno::NOTDIR | Errno::LOOP) => Ok(false),
            Err(e) => Err(self.fail(path, e)),
        }
    }

    /// Gives a file that has the right bytes its permission bits.
    pub(crate) fn perm(&self, path: &[u8], perm: u32) -> Result<(), WorkspaceError> {
        let file = super::scan::open_file(self.top, path).map_err(|e| self.fail(path, e))?;
        at::fchmod(&file, mode(perm)).map_err(|e| self.fail(path, e))
    }

    /// Unlinks what still is what was seen. False if something else is there.
    pub(crate) fn unlink(&self, seen: &Seen) -> Result<bool, WorkspaceError> {
        let path = &seen.path;
        if !self.is_still(seen)? {
            return Ok(false);
        }
        let (folder, name) = split(path);
        let folder = open_folder(self.top, folder).map_err(|e| self.fail(path, e))?;
        at::unlinkat(&folder, OsStr::from_bytes(name), AtFlags::empty())
            .map_err(|e| self.fail(path, e))?;
        Ok(true)
    }

    /// Removes the folder of a path and those above it, as far as they are empty and not to stay.
    pub(crate) fn prune(&self, path: &[u8], stays: impl Fn(&[u8]) -> bool) {
        let mut here = split(path).0;
        while !here.is_empty() && !stays(here) {
            let (above, name) = split(here);
            let gone = open_folder(self.top, above).and_then(|folder| {
                at::unlinkat(&folder, OsStr::from_bytes(name), AtFlags::REMOVEDIR)
            });
            // Not empty: somebody's; it stays.
            if gone.is_err() {
                return;
            }
            here = above;
        }
    }

    /// Writes everything through to the disk.
    pub(crate) fn sync(&self) -> Result<(), WorkspaceError> {
        at::syncfs(self.top).map_err(|e| os_fail(self.at, "cannot write it through", e))
    }

    /// The folder of a path, made as far as it is missing; none if a link or file is in the way.
    fn folder<'p>(&self, path: &'p [u8]) -> Result<Option<(OwnedFd, &'p [u8])>, WorkspaceError> {
        let (above, name) = split(path);
        if name.is_empty()
            || path.split(|b| *b == b'/').any(|n| n == b".." || n == b"." || n == b".git")
        {
            return Ok(None);
        }
        match open_folder(self.top, above) {
            Ok(fd) => Ok(Some((fd, name))),
            Err(Errno::NOENT) => {
                if !self.dir(above, None)? {
                    return Ok(None);
                }
                match open_folder(self.top, above) {
                    Ok(fd) => Ok(Some((fd, name))),
                    Err(Errno::NOTDIR | Errno::LOOP) => Ok(None),
                    Err(e) => Err(self.fail(path, e)),
                }
            }
            Err(Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(e) => Err(self.fail(path, e)),
        }
    }

    /// Gives a finished part its name.
    fn place(
        &self,
        path: &[u8],
        folder: &OwnedFd,
        part: &[u8],
        name: &[u8],
        instead_of: Option<&Seen>,
    ) -> Result<bool, WorkspaceError> {
        let (from, to) = (OsStr::from_bytes(part), OsStr::from_bytes(name));
        let placed = match instead_of {
            Some(seen) => {
                if self.is_still(seen)? {
                    at::renameat(folder, from, folder, to)
                } else {
                    Err(Errno::EXIST)
                }
            }
            None => {
                match at::rename_new(folder, from, folder, to) {
                    // A file system that cannot do this can make a second name without overwriting.
                    Err(Errno::INVAL | Errno::NOSYS) => at::linkat(folder, from, to)
                        .and_then(|()| at::unlinkat(folder, from, AtFlags::empty())),
                    other => other,
                }
            }
        };
        match placed {
            Ok(()) => Ok(true),
            Err(e) => {
                self.drop_part(folder, part);
                if e == Errno::EXIST { Ok(false) } else { Err(self.fail(path, e)) }
            }
        }
    }

    fn is_still(&self, seen: &Seen) -> Result<bool, WorkspaceError> {
        let now = look(self.top, &seen.path).map_err(|e| self.fail(&seen.path, e))?;
        let file_like = matches!(seen.kind, Kind::File | Kind::Link);
        Ok(file_like && now.is_some_and(|now| now.sign == seen.sign))
    }

    fn part(&self) -> Vec<u8> {
        self.count.set(self.count.get() + 1);
        let mut name = PART.to_vec();
        name.extend_from_slice(self.count.get().to_string().as_bytes());
        name
    }

    fn drop_part(&self, folder: &OwnedFd, part: &[u8]) {
        // What stays has a name that the next restore clears away.
        let _kept = at::unlinkat(folder, OsStr::from_bytes(part), AtFlags::empty());
    }

    fn fail(&self, path: &[u8], e: Errno) -> WorkspaceError {
        let at: PathBuf = self.at.join(OsStr::from_bytes(path));
        os_fail(&at, "cannot put it back", e)
    }
}

/// Permission bits; never more than those.
fn mode(perm: u32) -> Mode {
    Mode::from_raw_mode(perm & 0o777)
}
