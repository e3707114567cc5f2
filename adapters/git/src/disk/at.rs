//! The calls relative to opened folders (W-31), under the names of the system.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, ResolveFlags, Stat, StatVfs,
};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::faults::CallKind::{Change, Look};
use crate::faults::{CallKind, call};

fn shown(name: &(impl Arg + Copy)) -> PathBuf {
    let bytes = name.into_c_str().map(|n| n.to_bytes().to_vec()).unwrap_or_default();
    std::ffi::OsStr::from_bytes(&bytes).into()
}

fn kind_of(flags: OFlags) -> CallKind {
    if flags.intersects(OFlags::CREATE | OFlags::TRUNC) { Change } else { Look }
}

pub(crate) fn open(path: impl Arg + Copy, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    call(kind_of(flags), "open", || shown(&path), || rustix::fs::open(path, flags, mode))
}

pub(crate) fn openat(
    folder: impl AsFd,
    name: impl Arg + Copy,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let work = || rustix::fs::openat(folder, name, flags, mode);
    call(kind_of(flags), "openat", || shown(&name), work)
}

pub(crate) fn openat2(
    folder: impl AsFd,
    name: impl Arg + Copy,
    flags: OFlags,
    how: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let work = || rustix::fs::openat2(folder, name, flags, Mode::empty(), how);
    call(kind_of(flags), "openat2", || shown(&name), work)
}

pub(crate) fn statat(
    folder: impl AsFd,
    name: impl Arg + Copy,
    flags: AtFlags,
) -> Result<Stat, Errno> {
    call(Look, "statat", || shown(&name), || rustix::fs::statat(folder, name, flags))
}

pub(crate) fn fstat(fd: impl AsFd) -> Result<Stat, Errno> {
    call(Look, "fstat", PathBuf::new, || rustix::fs::fstat(fd))
}

pub(crate) fn readlinkat(folder: impl AsFd, name: impl Arg + Copy) -> Result<CString, Errno> {
    let work = || rustix::fs::readlinkat(folder, name, Vec::new());
    call(Look, "readlinkat", || shown(&name), work)
}

/// The names in an opened folder, without `.` and `..`, and what each is, as far as the folder
/// says so; all of them, or why they are not known.
pub(crate) fn listed(folder: impl AsFd) -> Result<Vec<(CString, FileType)>, Errno> {
    call(Look, "getdents", PathBuf::new, || {
        let mut names = Vec::new();
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name != c"." && name != c".." {
                names.push((name.to_owned(), entry.file_type()));
            }
        }
        Ok(names)
    })
}

/// The names alone.
pub(crate) fn names(folder: impl AsFd) -> Result<Vec<CString>, Errno> {
    Ok(listed(folder)?.into_iter().map(|(name, _kind)| name).collect())
}

pub(crate) fn mkdirat(folder: impl AsFd, name: impl Arg + Copy, mode: Mode) -> Result<(), Errno> {
    call(Change, "mkdirat", || shown(&name), || rustix::fs::mkdirat(folder, name, mode))
}

pub(crate) fn unlinkat(
    folder: impl AsFd,
    name: impl Arg + Copy,
    flags: AtFlags,
) -> Result<(), Errno> {
    call(Change, "unlinkat", || shown(&name), || rustix::fs::unlinkat(folder, name, flags))
}

pub(crate) fn renameat(
    folder: impl AsFd,
    from: impl Arg + Copy,
    to_folder: impl AsFd,
    to: impl Arg + Copy,
) -> Result<(), Errno> {
    let work = || rustix::fs::renameat(folder, from, to_folder, to);
    call(Change, "renameat", || shown(&from), work)
}

/// Renames and never replaces anything.
pub(crate) fn rename_new(
    folder: impl AsFd,
    from: impl Arg + Copy,
    to_folder: impl AsFd,
    to: impl Arg + Copy,
) -> Result<(), Errno> {
    let work = || rustix::fs::renameat_with(folder, from, to_folder, to, RenameFlags::NOREPLACE);
    call(Change, "renameat2", || shown(&from), work)
}

pub(crate) fn linkat(
    folder: impl AsFd,
    from: impl Arg + Copy,
    to: impl Arg + Copy,
) -> Result<(), Errno> {
    let work = || rustix::fs::linkat(&folder, from, &folder, to, AtFlags::empty());
    call(Change, "linkat", || shown(&from), work)
}

pub(crate) fn symlinkat(
    target: impl Arg + Copy,
    folder: impl AsFd,
    name: impl Arg + Copy,
) -> Result<(), Errno> {
    call(Change, "symlinkat", || shown(&name), || rustix::fs::symlinkat(target, folder, name))
}

pub(crate) fn fchmod(fd: impl AsFd, mode: Mode) -> Result<(), Errno> {
    call(Change, "fchmod", PathBuf::new, || rustix::fs::fchmod(fd, mode))
}

pub(crate) fn statvfs(path: impl Arg + Copy) -> Result<StatVfs, Errno> {
    call(Look, "statvfs", || shown(&path), || rustix::fs::statvfs(path))
}

pub(crate) fn syncfs(fd: impl AsFd) -> Result<(), Errno> {
    call(Change, "syncfs", PathBuf::new, || rustix::fs::syncfs(fd))
}

pub(crate) fn flock(fd: impl AsFd, operation: FlockOperation) -> Result<(), Errno> {
    call(Change, "flock", PathBuf::new, || rustix::fs::flock(fd, operation))
}
