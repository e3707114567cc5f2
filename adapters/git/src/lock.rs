//! The locks of W-12 and W-13: advisory locks of the operating system on small files.
//!
//! A lock belongs to an open file, not to a process: it is free only when the last descriptor of
//! it is closed, in whichever process. Children get a copy on purpose (`process`), so a killed
//! executor whose git still runs keeps its successor out.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use freehold_kernel::Reason;
use freehold_store::workspaces::{Place, RootPlace, WorkspaceError};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::disk::{self as fs, at};
use crate::error::{fail, os_fail};
use crate::root::{BOOK, below, check_root, digest, make_folders};

/// The longest pause between two tries for a lock.
const PAUSE: Duration = Duration::from_millis(50);

/// The lock of one path, until it is dropped and the last child of the step is gone (W-13).
#[derive(Debug)]
pub struct PathLock {
    fd: Arc<OwnedFd>,
    file: PathBuf,
    path: PathBuf,
}

impl PathLock {
    /// The descriptor that children inherit.
    pub(crate) fn fd(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.fd)
    }

    /// Refuses if this is another path's lock.
    pub(crate) fn covers(&self, place: &Place) -> Result<(), WorkspaceError> {
        if self.path == place.path {
            return Ok(());
        }
        Err(fail(
            Reason::Contested,
            &place.path,
            "the lock that was handed over is another path's",
            "this is a fault of the caller; take the lock of this path",
        ))
    }

    /// Removes the lock's file at the very end of a removal; whoever waits for it notices that
    /// the file went and takes a fresh one.
    pub(crate) fn retire(&self) {
        // A file that stays costs an empty file and nothing else.
        let _stays = fs::remove_file(&self.file);
    }
}

/// Takes the lock of a path (W-13).
pub(crate) fn lock_path(place: &Place, wait: Duration) -> Result<PathLock, WorkspaceError> {
    below(&place.root, &place.path)?;
    check_root(&place.root)?;
    let folder = place.root.path.join(BOOK).join("locks");
    make_folders(&place.root.path, &folder)?;
    // The root is in the digest's place already: the file lies in it.
    let file = folder.join(digest(place.path.as_os_str().as_bytes()));
    let fd = lock_file(&file, &place.path, wait)?;
    Ok(PathLock { fd: Arc::new(fd), file, path: place.path.clone() })
}

/// Takes the registry lock of a repository (W-12).
pub(crate) fn lock_registry(common: &Path, wait: Duration) -> Result<Arc<OwnedFd>, WorkspaceError> {
    let folder = common.join("freehold");
    make_folders(common, &folder)?;
    lock_file(&folder.join("registry.lock"), common, wait).map(Arc::new)
}

/// Takes the lock of a repository's refs, for one change of one ref of ours.
pub(crate) fn lock_refs(common: &Path, wait: Duration) -> Result<Arc<OwnedFd>, WorkspaceError> {
    let folder = common.join("freehold");
    make_folders(common, &folder)?;
    lock_file(&folder.join("refs.lock"), common, wait).map(Arc::new)
}

/// Keeps a collection of the private stores out while something is written into one (W-34): what
/// was written and has no ref yet is garbage to a collector, and what was read back a moment
/// before may be gone a moment later. Salvages do not keep each other out.
pub(crate) fn lock_salvage(root: &RootPlace, wait: Duration) -> Result<OwnedFd, WorkspaceError> {
    lock_as(&salvage_lock(root)?, &root.path, wait, FlockOperation::NonBlockingLockShared)
}

/// The collector's side of [`lock_salvage`].
pub(crate) fn lock_collect(root: &RootPlace, wait: Duration) -> Result<OwnedFd, WorkspaceError> {
    lock_as(&salvage_lock(root)?, &root.path, wait, FlockOperation::NonBlockingLockExclusive)
}

fn salvage_lock(root: &RootPlace) -> Result<PathBuf, WorkspaceError> {
    let folder = root.path.join(BOOK).join("locks");
    make_folders(&root.path, &folder)?;
    // No path's lock: those are named by digests.
    Ok(folder.join("salvage"))
}

fn lock_file(file: &Path, path: &Path, wait: Duration) -> Result<OwnedFd, WorkspaceError> {
    lock_as(file, path, wait, FlockOperation::NonBlockingLockExclusive)
}

fn lock_as(
    file: &Path,
    path: &Path,
    wait: Duration,
    how: FlockOperation,
) -> Result<OwnedFd, WorkspaceError> {
    let started = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = at::open(file, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|e| os_fail(path, "cannot open the lock's file", e))?;
        match at::flock(&fd, how) {
            Ok(())
                if is_still(&fd, file)
                    .map_err(|e| os_fail(path, "cannot look at the lock", e))? =>
            {
                return Ok(fd);
            }
            // The holder before us removed the file; the next round makes a fresh one.
            Ok(()) => {}
            Err(Errno::WOULDBLOCK | Errno::INTR) => {
                if started.elapsed() >= wait {
                    return Err(fail(
                        Reason::Contested,
                        path,
                        format!("another executor has held the lock for {} ms", wait.as_millis()),
                        "wait for it to end, or look which process has the lock's file open",
                    ));
                }
                std::thread::sleep(pause);
                pause = PAUSE.min(pause * 2);
            }
            Err(e) => return Err(os_fail(path, "cannot take the lock", e)),
        }
    }
}

/// Whether the file of this name is still the one that was locked.
fn is_still(fd: &OwnedFd, file: &Path) -> Result<bool, Errno> {
    let ours = at::fstat(fd)?;
    match fs::symlink_metadata(file) {
        Ok(now) => Ok(ours.st_ino == now.ino() && ours.st_dev == now.dev()),
        Err(e) if fs::is_absence(&e) => Ok(false),
        Err(e) => Err(Errno::from_io_error(&e).unwrap_or(Errno::IO)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_lock_on_a_file_that_was_removed_or_replaced_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("lock");
        let wait = Duration::from_secs(60);
        let first = lock_file(&file, dir.path(), wait).unwrap();
        assert!(is_still(&first, &file).unwrap());
        fs::remove_file(&file).unwrap();
        assert!(!is_still(&first, &file).unwrap());
        let second = lock_file(&file, dir.path(), wait).unwrap();
        assert!(is_still(&second, &file).unwrap());
        assert!(!is_still(&first, &file).unwrap());
        let refused = lock_file(&file, dir.path(), Duration::ZERO).unwrap_err();
        assert_eq!(refused.reason, Reason::Contested);
    }
}
