//! Changing a repository's refs, and what a git that was killed inside such a change leaves
//! behind (W-12).
//!
//! Git takes a ref's lock by making a file, `<ref>.lock`, and to delete one also
//! `packed-refs.lock`. Nothing of git ever takes away such a file that it did not make itself, so
//! one that a killed git left makes every later change of that ref, and every deletion of any
//! branch, fail for ever: ours and the user's. So each change is announced by a note first, under
//! a lock that git inherits:
//!
//! ```text
//! lock -> note(ref) -> git update-ref -> note away
//! lock -> a note is there: its git is dead -> what it left is put aside -> go on
//! ```
//!
//! What is older than the note, changes while it is looked at, or may belong to a git that runs in
//! the repository now, is somebody else's and stays. Put aside means renamed into Freehold's
//! folder of the repository, never deleted.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use freehold_kernel::Reason;
use freehold_store::workspaces::WorkspaceError;

use crate::disk as fs;
use crate::error::{fail, io_fail, show};
use crate::identity::{admin_dirs, registered_path};
use crate::lock::lock_refs;
use crate::process::{Git, Output};
use crate::root::{component, is_there, make_folders};
use crate::users::gits;

/// How long another change of ours is waited for; each takes milliseconds.
const WAIT: Duration = Duration::from_secs(10);

/// How long a lock must stay as it is before it is taken for one of nobody's: longer than git
/// itself waits for one (`core.packedRefsTimeout`, a second).
const STILL: Duration = Duration::from_millis(1500);

/// Changes a ref. `work` runs the one git command that does, with the git that it is handed.
///
/// # Errors
/// Those of `work`; [`Reason::Contested`] if a git that runs in the repository now may hold what a
/// killed one seems to have left.
pub(crate) fn change(
    git: &Git,
    common: &Path,
    name: &str,
    work: impl FnOnce(&Git) -> Result<Output, WorkspaceError>,
) -> Result<Output, WorkspaceError> {
    let lock = lock_refs(common, WAIT)?;
    put_aside_killed(common)?;
    let note = note(common);
    fs::write(&note, name).map_err(|e| io_fail(&note, "cannot announce the change", &e))?;
    let output = work(&git.changing(lock))?;
    // A git that ended by itself has taken its locks away, whatever it answered.
    if output.status.code().is_some() {
        fs::remove_file(&note).map_err(|e| io_fail(&note, "cannot take the note away", &e))?;
    }
    Ok(output)
}

fn note(common: &Path) -> PathBuf {
    common.join("freehold").join("changing-ref")
}

/// What tells whether a lock's file is still the same.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sign {
    inode: (u64, u64),
    size: u64,
    modified: SystemTime,
}

fn sign(path: &Path) -> Result<Option<Sign>, WorkspaceError> {
    use std::os::unix::fs::MetadataExt;
    let fail = |e| io_fail(path, "cannot look at it", &e);
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(Sign {
            inode: (found.dev(), found.ino()),
            size: found.len(),
            modified: found.modified().map_err(fail)?,
        })),
        Err(e) if fs::is_absence(&e) => Ok(None),
        Err(e) => Err(fail(e)),
    }
}

/// Puts aside what the git left that the note tells of. Its change is over: git inherits the
/// lock, so whoever has the lock now knows that it is gone.
fn put_aside_killed(common: &Path) -> Result<(), WorkspaceError> {
    let note = note(common);
    let Some(noted) = sign(&note)? else { return Ok(()) };
    let name = fs::read_to_string(&note).map_err(|e| io_fail(&note, "cannot read it", &e))?;
    let mut left = vec![common.join("packed-refs.lock"), common.join("reftable/tables.list.lock")];
    // The note was cut off before its text: nothing was begun.
    if name.starts_with("refs/") && !name.contains("..") {
        left.push(common.join(format!("{name}.lock")));
    }
    for lock in left {
        match sign(&lock)? {
            Some(found) if found.modified >= noted.modified => stays(common, &lock, &found)?,
            Some(_) | None => continue,
        }
        aside(common, &lock)?;
    }
    fs::remove_file(&note).map_err(|e| io_fail(&note, "cannot take the note away", &e))
}

/// Refuses unless a lock stays as it is and no git runs that may hold it.
fn stays(common: &Path, lock: &Path, found: &Sign) -> Result<(), WorkspaceError> {
    let busy = |what: String| {
        let help = "wait for that git to end; if there is none, remove the lock's file";
        Err(fail(Reason::Contested, lock, what, help))
    };
    let began = Instant::now();
    while began.elapsed() < STILL {
        std::thread::sleep(Duration::from_millis(50));
        if sign(lock)?.as_ref() != Some(found) {
            return busy("somebody else is changing refs".to_owned());
        }
    }
    let mut places = vec![common.to_path_buf()];
    places.extend(common.parent().map(Path::to_path_buf));
    for admin in admin_dirs(common)? {
        places.extend(registered_path(&admin)?);
    }
    match gits(&places)?.first() {
        None => Ok(()),
        Some(pid) => busy(format!("process {pid}, a git, may be changing refs")),
    }
}

fn aside(common: &Path, lock: &Path) -> Result<(), WorkspaceError> {
    let folder = common.join("freehold").join("half-made");
    make_folders(common, &folder)?;
    let name = component(&lock.file_name().unwrap_or_default().to_string_lossy());
    let mut to = folder.join(&name);
    let mut number = 1u32;
    while is_there(&to)? {
        to = folder.join(format!("{name}-{number}"));
        number += 1;
    }
    fs::rename(lock, &to)
        .map_err(|e| io_fail(lock, &format!("cannot put it aside as {}", show(&to)), &e))
}
