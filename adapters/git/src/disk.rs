//! The one port to the disk: every call that changes it, and every look that something is decided
//! on (docs/decisions/0015). The functions are those of the standard library under their own
//! names; what is added is [`crate::faults`]. A test of the sources holds the rest of the crate to
//! it.

#![allow(clippy::disallowed_methods, reason = "this is the port")]

pub(crate) mod at;
mod file;

use std::ffi::OsString;
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::faults::CallKind::{Change, Look};
use crate::faults::call;
pub(crate) use file::File;

pub(crate) fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let path = path.as_ref();
    call(Look, "read", || path.into(), || fs::read(path))
}

pub(crate) fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let path = path.as_ref();
    call(Look, "read", || path.into(), || fs::read_to_string(path))
}

pub(crate) fn read_link(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = path.as_ref();
    call(Look, "readlink", || path.into(), || fs::read_link(path))
}

pub(crate) fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = path.as_ref();
    call(Look, "stat", || path.into(), || fs::metadata(path))
}

pub(crate) fn symlink_metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = path.as_ref();
    call(Look, "lstat", || path.into(), || fs::symlink_metadata(path))
}

pub(crate) fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = path.as_ref();
    call(Look, "realpath", || path.into(), || fs::canonicalize(path))
}

/// Whether something is there, whatever it is, a link that leads nowhere included. Not being able
/// to tell is an error, never a no.
pub(crate) fn is_there(path: impl AsRef<Path>) -> io::Result<bool> {
    match symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(e) if is_absence(&e) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Whether there is a folder, links followed; as [`is_there`].
pub(crate) fn is_dir(path: impl AsRef<Path>) -> io::Result<bool> {
    match metadata(path) {
        Ok(found) => Ok(found.is_dir()),
        Err(e) if is_absence(&e) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Whether an error says that there is nothing; every other one leaves it open.
pub(crate) fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// One entry of a folder.
#[derive(Debug)]
pub(crate) struct DirEntry(fs::DirEntry);

impl DirEntry {
    pub(crate) fn path(&self) -> PathBuf {
        self.0.path()
    }

    pub(crate) fn file_name(&self) -> OsString {
        self.0.file_name()
    }

    /// Of the entry itself, never of what a link names.
    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        call(Look, "lstat", || self.0.path(), || self.0.metadata())
    }

    /// Whether it is a folder itself.
    pub(crate) fn is_dir(&self) -> io::Result<bool> {
        call(Look, "lstat", || self.0.path(), || Ok(self.0.file_type()?.is_dir()))
    }
}

/// The entries of a folder, all of them, or why they are not known: a part of a folder is never
/// taken for the whole.
pub(crate) fn read_dir(path: impl AsRef<Path>) -> io::Result<Vec<DirEntry>> {
    let path = path.as_ref();
    let opened = call(Look, "opendir", || path.into(), || fs::read_dir(path))?;
    let listed = || opened.map(|e| e.map(DirEntry)).collect();
    call(Look, "readdir", || path.into(), listed)
}

pub(crate) fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut file = File::create(path)?;
    io::Write::write_all(&mut file, bytes.as_ref())
}

pub(crate) fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (from, to) = (from.as_ref(), to.as_ref());
    call(Change, "rename", || from.into(), || fs::rename(from, to))
}

pub(crate) fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    call(Change, "unlink", || path.into(), || fs::remove_file(path))
}

pub(crate) fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    call(Change, "rmdir", || path.into(), || fs::remove_dir(path))
}

/// Only for what holds nobody's work: its calls are one call of the port.
pub(crate) fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    call(Change, "unlink all", || path.into(), || fs::remove_dir_all(path))
}

pub(crate) fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    call(Change, "mkdir all", || path.into(), || fs::create_dir_all(path))
}

/// Makes one folder with these permissions.
pub(crate) fn create_dir(path: impl AsRef<Path>, mode: u32) -> io::Result<()> {
    let path = path.as_ref();
    let make = || fs::DirBuilder::new().mode(mode).create(path);
    call(Change, "mkdir", || path.into(), make)
}

pub(crate) fn set_permissions(path: impl AsRef<Path>, to: Permissions) -> io::Result<()> {
    let path = path.as_ref();
    call(Change, "chmod", || path.into(), || fs::set_permissions(path, to))
}

/// The process table, looked at by [`crate::users`]: one call of the port, since who comes and
/// goes there is nobody's doing.
pub(crate) fn processes() -> io::Result<fs::ReadDir> {
    call(Look, "processes", || "/proc".into(), || fs::read_dir("/proc"))
}
