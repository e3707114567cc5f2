//! Whose worktree a directory is: both links, and the stamp (W-2, W-31).
//!
//! Everything here reads files; no git command is asked, because git answers from a parent
//! checkout where its own link is gone (F18), and half-made registrations can break it.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use freehold_kernel::Reason;
use freehold_store::workspaces::{Place, WorkspaceError};

use crate::disk as fs;
use crate::error::{fail, io_fail, reason_of, show};
use crate::root::{At, check_root, open_place};

/// The stamp's file in an administration directory; it survives a person's unlock. Its first line
/// is the stamp; a second says that the checkout was finished.
pub(crate) const STAMP: &str = "freehold";

/// The second line of the stamp's file.
pub(crate) const READY: &str = "checked out";

/// What git itself writes as the reason while it adds a worktree.
const INITIALIZING: &str = "initializing";

/// A worktree whose identity is proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    /// Its administration directory.
    pub(crate) admin: PathBuf,
    /// The common directory of its repository.
    pub(crate) common: PathBuf,
}

/// Whether a registration is locked, and by whom (W-2, W-10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// Not at all, by our stamp, or by git itself in the middle of our own making.
    Ours,
    /// By a person, or another tool: the reason that they gave.
    Person(String),
}

/// Proves that the worktree at its place is the recorded one, both ways (W-31).
pub(crate) fn prove(place: &Place) -> Result<Proof, WorkspaceError> {
    check_root(&place.root)?;
    match open_place(place)? {
        At::Folder(_) => prove_at(place, &place.path),
        At::Missing | At::Other(_) => Err(mismatch(place, "nothing is there".to_owned())),
    }
}

/// The same for a worktree that a removal has moved: its links still name its own place.
pub(crate) fn prove_at(place: &Place, at: &Path) -> Result<Proof, WorkspaceError> {
    let common = common_dir(&place.repository)?;
    let main = fs::canonicalize(&place.repository).ok();
    if main.as_deref() == Some(at) || at == common {
        return Err(fail(
            Reason::NotManaged,
            at,
            "this is the repository's main checkout",
            "Freehold never removes what it did not make; correct the row",
        ));
    }
    let admin = linked_admin(place, at)?;
    if admin.parent() != Some(common.join("worktrees").as_path()) {
        return Err(mismatch(
            place,
            format!("its .git names {}, which is not in the recorded repository", show(&admin)),
        ));
    }
    if !names_back(&admin, &place.path)? {
        return Err(mismatch(
            place,
            format!("its registration {} names another directory", show(&admin)),
        ));
    }
    if !is_stamped(&admin, &place.stamp)? {
        return Err(mismatch(
            place,
            "its registration does not carry the recorded stamp".to_owned(),
        ));
    }
    Ok(Proof { admin, common })
}

/// The administration directory that the `.git` file of a tree names.
fn linked_admin(place: &Place, at: &Path) -> Result<PathBuf, WorkspaceError> {
    let link = at.join(".git");
    match fs::symlink_metadata(&link) {
        Ok(found) if found.is_file() => {}
        Ok(found) if found.is_dir() => {
            return Err(mismatch(place, "it is a repository of its own".to_owned()));
        }
        Ok(_) => return Err(mismatch(place, "its .git is no plain file".to_owned())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let empty = fs::read_dir(at).is_ok_and(|entries| entries.is_empty());
            let what = if empty { "the folder is empty" } else { "it has no .git file" };
            return Err(mismatch(place, format!("{what}, so it is no worktree")));
        }
        Err(e) => return Err(io_fail(&link, "cannot look at the worktree's link", &e)),
    }
    let target = read_link_file(&link)
        .map_err(|e| io_fail(&link, "cannot read the worktree's link", &e))?
        .ok_or_else(|| mismatch(place, "its .git file names nothing".to_owned()))?;
    // Relative links are relative to its own place, wherever the tree lies at the moment.
    let target = flat(&place.path.join(target));
    fs::canonicalize(&target).map_err(|e| {
        if fs::is_absence(&e) {
            mismatch(place, format!("its .git names {}, which is not there", show(&target)))
        } else {
            io_fail(&target, "cannot look at what the worktree's link names", &e)
        }
    })
}

/// The recorded worktree lives on at another path (W-31): nothing may conclude that it is gone.
pub(crate) fn moved_away(place: &Place, to: &Path) -> WorkspaceError {
    fail(
        Reason::IdentityMismatch,
        &place.path,
        format!("the recorded worktree was moved: its registration now names {}", show(to)),
        "move it back with `git worktree move`, or have a person forget the resource",
    )
}

fn mismatch(place: &Place, why: String) -> WorkspaceError {
    fail(
        Reason::IdentityMismatch,
        &place.path,
        format!("what is there is not the recorded worktree: {why}"),
        "look at the path; move away what stands there, or have a person forget the resource",
    )
}

/// The common git directory of a repository that is named by its work tree or git directory.
pub(crate) fn common_dir(repository: &Path) -> Result<PathBuf, WorkspaceError> {
    find_common_dir(repository)?
        .ok_or_else(|| unreadable(repository, &io::Error::other("there is no git repository")))
}

/// The same; none if there is no repository any more. What cannot be read is never gone.
pub(crate) fn find_common_dir(repository: &Path) -> Result<Option<PathBuf>, WorkspaceError> {
    let cannot = |e: io::Error| unreadable(repository, &e);
    if !repository.is_absolute() {
        return Err(cannot(io::Error::other("its path is not absolute")));
    }
    let link = repository.join(".git");
    let git_dir = match fs::metadata(&link) {
        Ok(found) if found.is_dir() => link,
        Ok(_) => match read_link_file(&link).map_err(cannot)? {
            Some(target) => repository.join(target),
            None => return Err(cannot(io::Error::other("its .git file names nothing"))),
        },
        Err(e) if fs::is_absence(&e) => repository.to_path_buf(),
        Err(e) => return Err(cannot(e)),
    };
    let common = match fs::read(git_dir.join("commondir")) {
        Ok(text) => git_dir.join(as_path(&text)),
        Err(e) if fs::is_absence(&e) => git_dir,
        Err(e) => return Err(cannot(e)),
    };
    let common = match fs::canonicalize(&common) {
        Ok(common) => common,
        Err(e) if fs::is_absence(&e) => return Ok(None),
        Err(e) => return Err(cannot(e)),
    };
    let whole = fs::is_dir(common.join("objects")).map_err(cannot)?
        && fs::is_there(common.join("HEAD")).map_err(cannot)?;
    Ok(whole.then_some(common))
}

fn unreadable(repository: &Path, error: &io::Error) -> WorkspaceError {
    let reason = match reason_of(error) {
        Reason::Permission => Reason::Permission,
        _other => Reason::Io,
    };
    fail(
        reason,
        repository,
        format!("the repository {} cannot be read: {error}", show(repository)),
        "mount its disk, or put it back where it was",
    )
}

/// Where a repository is found even when the work tree that it was named by goes away: the common
/// git directory, if what was named is a linked worktree.
pub(crate) fn lasting(repository: &Path) -> Result<Option<PathBuf>, WorkspaceError> {
    let common = common_dir(repository)?;
    let link = repository.join(".git");
    let git_dir = match read_link_file(&link) {
        Ok(Some(target)) => repository.join(target),
        Ok(None) => repository.to_path_buf(),
        Err(e) if fs::is_absence(&e) || e.kind() == io::ErrorKind::IsADirectory => {
            repository.to_path_buf()
        }
        Err(e) => return Err(unreadable(repository, &e)),
    };
    // Only a linked worktree's own git directory names a common one.
    let linked = fs::is_there(git_dir.join("commondir")).map_err(|e| unreadable(repository, &e))?;
    Ok(linked.then_some(common))
}

/// Whether an administration directory names this worktree.
pub(crate) fn names_back(admin: &Path, path: &Path) -> Result<bool, WorkspaceError> {
    Ok(own_path(admin)?.is_some_and(|found| found == path))
}

/// The worktree that an administration directory names: links resolved where they can be. A
/// neighbour's disk that cannot be looked at is nothing to us: then its path is what git wrote.
pub(crate) fn registered_path(admin: &Path) -> Result<Option<PathBuf>, WorkspaceError> {
    path_of(admin, |path| Ok(fs::canonicalize(path).ok()))
}

/// The same for a registration of ours: a path that cannot be looked at is an error.
fn own_path(admin: &Path) -> Result<Option<PathBuf>, WorkspaceError> {
    path_of(admin, |path| match fs::canonicalize(path) {
        Ok(real) => Ok(Some(real)),
        Err(e) if fs::is_absence(&e) => Ok(None),
        Err(e) => Err(io_fail(path, "cannot look at the worktree that is registered", &e)),
    })
}

fn path_of(
    admin: &Path,
    resolved: impl Fn(&Path) -> Result<Option<PathBuf>, WorkspaceError>,
) -> Result<Option<PathBuf>, WorkspaceError> {
    let named = as_path(&registration_file(admin, "gitdir")?.unwrap_or_default());
    if named.as_os_str().is_empty() {
        return Ok(None);
    }
    let link = flat(&admin.join(named));
    if link.file_name() != Some(".git".as_ref()) {
        return Ok(None);
    }
    let Some(path) = link.parent() else { return Ok(None) };
    if let Some(real) = resolved(path)? {
        return Ok(Some(real));
    }
    let above = path.parent().map(&resolved).transpose()?.flatten();
    Ok(Some(match (above, path.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _gone => path.to_path_buf(),
    }))
}

/// A file of a registration; none if it is not there.
fn registration_file(admin: &Path, name: &str) -> Result<Option<Vec<u8>>, WorkspaceError> {
    let file = admin.join(name);
    match fs::read(&file) {
        Ok(text) => Ok(Some(text)),
        Err(e) if fs::is_absence(&e) => Ok(None),
        Err(e) => Err(io_fail(&file, "cannot read the worktree's registration", &e)),
    }
}

/// Whether a registration carries this stamp: in its own file, or as the reason of its lock.
pub(crate) fn is_stamped(admin: &Path, stamp: &str) -> Result<bool, WorkspaceError> {
    let says = |name: &str| -> Result<bool, WorkspaceError> {
        let text = registration_file(admin, name)?.unwrap_or_default();
        Ok(text.split(|b| *b == b'\n').next().is_some_and(|line| line == stamp.as_bytes()))
    };
    Ok(!stamp.is_empty() && (says(STAMP)? || says("locked")?))
}

/// Whether the checkout of a registration that is ours was finished: from then on nothing in the
/// worktree is ours to overwrite (F61).
pub(crate) fn is_ready(admin: &Path) -> Result<bool, WorkspaceError> {
    let text = registration_file(admin, STAMP)?.unwrap_or_default();
    Ok(text.split(|b| *b == b'\n').nth(1).is_some_and(|line| line == READY.as_bytes()))
}

/// Who locked a registration.
pub(crate) fn held(admin: &Path, stamp: &str) -> Result<Held, WorkspaceError> {
    let file = admin.join("locked");
    match fs::read(&file) {
        Ok(text) => {
            let reason = String::from_utf8_lossy(text.trim_ascii()).into_owned();
            // Git's own word in a registration that is ours: it was interrupted (F22).
            let ours = reason == stamp || (reason == INITIALIZING && is_stamped(admin, stamp)?);
            Ok(if ours { Held::Ours } else { Held::Person(reason) })
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Held::Ours),
        Err(e) => Err(io_fail(&file, "cannot read the worktree's lock", &e)),
    }
}

/// Refuses a registration that somebody else locked; their own words are passed on.
pub(crate) fn refuse_foreign_lock(place: &Place, admin: &Path) -> Result<(), WorkspaceError> {
    match held(admin, &place.stamp)? {
        Held::Ours => Ok(()),
        Held::Person(reason) => Err(fail(
            Reason::LockedByPerson,
            &place.path,
            locked_text(&reason),
            "whoever locked it runs `git worktree unlock` when it may go",
        )),
    }
}

/// A foreign lock in a sentence.
pub(crate) fn locked_text(reason: &str) -> String {
    if reason.is_empty() {
        "the worktree is locked, without a reason".to_owned()
    } else {
        format!("the worktree is locked: {}", reason.escape_debug())
    }
}

/// Registrations of a repository that have to do with a place.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Registered {
    /// The one that is ours, by its stamp.
    pub(crate) ours: Option<PathBuf>,
    /// Others that name the same path without our stamp.
    pub(crate) others: Vec<PathBuf>,
    /// Where a registration with our stamp now names another path: somebody ran
    /// `git worktree move`.
    pub(crate) moved: Option<PathBuf>,
}

/// Looks through a repository's registrations for a place, by reading only.
pub(crate) fn registered(place: &Place, common: &Path) -> Result<Registered, WorkspaceError> {
    let mut found = Registered::default();
    for admin in admin_dirs(common)? {
        let stamped = is_stamped(&admin, &place.stamp)?;
        let named = if stamped { own_path(&admin)? } else { registered_path(&admin)? };
        let here = named.as_deref() == Some(place.path.as_path());
        // A registration that git did not finish has no link yet; its stamp came first (W-2).
        if stamped {
            if here || named.is_none() {
                found.ours = Some(admin);
            } else {
                found.moved = named;
            }
        } else if here {
            found.others.push(admin);
        }
    }
    Ok(found)
}

/// Every administration directory of a repository, in the order of their names.
pub(crate) fn admin_dirs(common: &Path) -> Result<Vec<PathBuf>, WorkspaceError> {
    let folder = common.join("worktrees");
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(io_fail(&folder, "cannot list the repository's worktrees", &e)),
    };
    let mut dirs = Vec::new();
    for entry in entries {
        let is_dir =
            entry.is_dir().map_err(|e| io_fail(&folder, "cannot list the worktrees", &e))?;
        if is_dir {
            dirs.push(entry.path());
        }
    }
    dirs.sort();
    Ok(dirs)
}

/// Whether git was killed before it finished this registration (W-12).
pub(crate) fn is_half_made(admin: &Path) -> Result<bool, WorkspaceError> {
    for name in ["gitdir", "commondir", "HEAD"] {
        let text = registration_file(admin, name)?.unwrap_or_default();
        let text = text.trim_ascii();
        // A head of zeros is one that git has not set yet; nothing at all counts the same.
        if text.is_empty() || (name == "HEAD" && text.iter().all(|b| *b == b'0')) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What a `.git` file names.
pub(crate) fn read_link_file(link: &Path) -> io::Result<Option<PathBuf>> {
    let text = fs::read(link)?;
    Ok(text.strip_prefix(b"gitdir: ").map(as_path).filter(|p| !p.as_os_str().is_empty()))
}

/// A path as git writes it into a file: without the last line break.
pub(crate) fn as_path(text: &[u8]) -> PathBuf {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    PathBuf::from(std::ffi::OsStr::from_bytes(text))
}

/// A path without `.` and `..`. Only used where the path is known to have no links before them.
fn flat(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
    }
    out
}
