//! An open file: each read, write and sync of it is a call of the port.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::faults::CallKind::{Change, Look};
use crate::faults::call;

/// An open file, and the path it was opened by.
#[derive(Debug)]
pub(crate) struct File {
    file: fs::File,
    path: PathBuf,
}

impl File {
    pub(crate) fn open(path: impl AsRef<Path>) -> io::Result<File> {
        File::with(Look, path.as_ref(), fs::OpenOptions::new().read(true))
    }

    /// Made, or emptied; to be written and read.
    pub(crate) fn create(path: impl AsRef<Path>) -> io::Result<File> {
        let mut options = fs::OpenOptions::new();
        File::with(
            Change,
            path.as_ref(),
            options.read(true).write(true).create(true).truncate(true),
        )
    }

    /// Made; fails if something is there.
    pub(crate) fn create_new(path: impl AsRef<Path>) -> io::Result<File> {
        File::with(Change, path.as_ref(), fs::OpenOptions::new().write(true).create_new(true))
    }

    fn with(
        kind: crate::faults::CallKind,
        path: &Path,
        options: &fs::OpenOptions,
    ) -> io::Result<File> {
        let file = call(kind, "open", || path.into(), || options.open(path))?;
        Ok(File { file, path: path.into() })
    }

    /// One that [`super::at`] opened.
    pub(crate) fn from_fd(fd: OwnedFd, path: impl Into<PathBuf>) -> File {
        File { file: fs::File::from(fd), path: path.into() }
    }

    /// Sets when it was changed last.
    pub(crate) fn set_modified(&self, to: SystemTime) -> io::Result<()> {
        let work = || self.file.set_times(fs::FileTimes::new().set_modified(to));
        call(Change, "utimensat", || self.path.clone(), work)
    }

    /// Writes it through to the disk.
    pub(crate) fn sync_all(&self) -> io::Result<()> {
        call(Change, "fsync", || self.path.clone(), || self.file.sync_all())
    }

    /// For a child process to read or write.
    pub(crate) fn inner(&self) -> &fs::File {
        &self.file
    }
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        call(Look, "read", || self.path.clone(), || self.file.read(buffer))
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        call(Change, "write", || self.path.clone(), || self.file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
