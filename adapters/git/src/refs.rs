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
//! lock -> note(what, ref) -> git update-ref -> note away
//! lock -> a note is there: its git is dead -> what it left is put aside -> go on
//! ```
//!
//! What is older than the note or newer than its git can have lived, changes while it is looked
//! at, or may belong to a git that runs in the repository now, is somebody else's and stays; then
//! the note stays too, and git itself says whether it needs that lock. Put aside means renamed
//! into Freehold's folder of the repository, never deleted.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use freehold_kernel::Reason;
use freehold_store::workspaces::WorkspaceError;

use crate::disk as fs;
use crate::error::{fail, io_fail, show};
use crate::identity::{admin_dirs, registered_path};
use crate::lock::lock_refs;
use crate::process::{Git, LIMIT, Output};
use crate::root::{component, is_there, make_folders};
use crate::users::gits;

/// How long another change of ours is waited for; each takes milliseconds.
const WAIT: Duration = Duration::from_secs(10);

/// How long a lock must stay as it is before it is taken for one of nobody's: longer than git
/// itself waits for one (`core.packedRefsTimeout`, a second).
const STILL: Duration = Duration::from_millis(1500);

/// How long after its note a change of ours can have made a lock: longer than git may take.
const LIFE: Duration = LIMIT.saturating_add(Duration::from_secs(30));

/// A lock that has been as it is for so long is nobody's, whoever stands in the repository: a
/// pager, an editor's helper or a watcher may stand there for ever.
const OLD: Duration = Duration::from_secs(600);

/// What a change does to its ref.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Makes it, or moves it.
    Set,
    /// Deletes it: git then takes the lock of all packed refs too.
    Delete,
}

/// Changes a ref. `work` runs the one git command that does, with the git that it is handed.
///
/// # Errors
/// Those of `work`, and of announcing it.
pub(crate) fn change(
    git: &Git,
    common: &Path,
    what: Change,
    name: &str,
    work: impl FnOnce(&Git) -> Result<Output, WorkspaceError>,
) -> Result<Output, WorkspaceError> {
    let lock = lock_refs(common, WAIT)?;
    let note = note(common);
    let announced = match put_aside_killed(common) {
        Ok(()) => {
            let word = if what == Change::Delete { "delete" } else { "set" };
            fs::write(&note, format!("{word} {name}"))
                .map_err(|e| io_fail(&note, "cannot announce the change", &e))?;
            true
        }
        // Somebody's lock may not be in this change's way at all.
        Err(e) if e.reason == Reason::Contested => false,
        Err(e) => return Err(e),
    };
    let output = work(&git.changing(lock))?;
    // A git that ended by itself has taken its locks away, whatever it answered.
    if announced && output.status.code().is_some() {
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
    let text = fs::read_to_string(&note).map_err(|e| io_fail(&note, "cannot read it", &e))?;
    let mut left = Vec::new();
    // A note that was cut off before its end announced nothing that was begun.
    if let Some((word, name)) = text.split_once(' ')
        && name.starts_with("refs/")
        && !name.contains("..")
    {
        if word == "delete" {
            // The new list is written under the old one's lock, and fails if it is there.
            left.extend([common.join("packed-refs.new"), common.join("packed-refs.lock")]);
        }
        left.push(common.join("reftable/tables.list.lock"));
        left.push(common.join(format!("{name}.lock")));
    }
    let mut found = Vec::new();
    for lock in left {
        if let Some(sign) = sign(&lock)?
            && sign.modified >= noted.modified
            && sign.modified <= noted.modified + LIFE
        {
            found.push((lock, sign));
        }
    }
    still(common, &found)?;
    for (lock, _) in &found {
        aside(common, lock)?;
    }
    fs::remove_file(&note).map_err(|e| io_fail(&note, "cannot take the note away", &e))
}

/// Refuses unless these stay as they are and no git runs that may hold them.
fn still(common: &Path, left: &[(PathBuf, Sign)]) -> Result<(), WorkspaceError> {
    let Some((first, _)) = left.first() else { return Ok(()) };
    let busy = |what: String| {
        let help = "wait for that git to end; if there is none, remove the lock's file";
        Err(fail(Reason::Contested, first, what, help))
    };
    let began = Instant::now();
    while began.elapsed() < STILL {
        std::thread::sleep(Duration::from_millis(50));
        for (lock, found) in left {
            if sign(lock)?.as_ref() != Some(found) {
                return busy("somebody else is changing refs".to_owned());
            }
        }
    }
    let now = SystemTime::now();
    if left.iter().all(|(_, s)| now.duration_since(s.modified).is_ok_and(|age| age >= OLD)) {
        return Ok(());
    }
    let mut places = vec![common.to_path_buf()];
    if common.file_name() == Some(".git".as_ref()) {
        places.extend(common.parent().map(Path::to_path_buf));
    }
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
