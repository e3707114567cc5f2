//! A managed root: its marker, Freehold's own folders in it, and the way from it to a path (D-18,
//! W-31).
//!
//! ```text
//! <root>/.freehold/locks/<digest>            path locks (W-13), shared by every store
//! <root>/.freehold/<store>/root              the marker
//! <root>/.freehold/<store>/manifests/<id>    what a removal is about to rename (W-35)
//! <root>/.freehold/<store>/trash/../<id>     what it renamed, as deep as it was
//! <root>/.freehold/<store>/aside/..          what was in the way and is nobody's to delete
//! ```

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use freehold_kernel::Reason;
use freehold_store::workspaces::{Place, RootPlace, WorkspaceError};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::disk::{self as fs, File, at};
use crate::error::{fail, io_fail, os_fail, show};

/// The one name that Freehold takes in a root; nothing managed may begin with it.
pub(crate) const BOOK: &str = ".freehold";

/// A folder name made of an id: itself where that is harmless, else its digest.
pub(crate) fn component(id: &str) -> String {
    let plain = !id.is_empty()
        && id.len() <= 100
        && !id.starts_with(['.', '-'])
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if plain { id.to_owned() } else { digest(id.as_bytes()) }
}

/// 32 hex digits of a text.
pub(crate) fn digest(text: &[u8]) -> String {
    let hash: [u8; 32] = Sha256::digest(text).into();
    hash[..16].iter().map(|b| format!("{b:02x}")).collect()
}

/// This store's folder in a root.
pub(crate) fn book(root: &RootPlace) -> PathBuf {
    root.path.join(BOOK).join(component(&root.store))
}

/// Where a removal's manifest lies.
pub(crate) fn manifest_path(root: &RootPlace, removal: &str) -> PathBuf {
    book(root).join("manifests").join(component(removal))
}

/// A free place for something that is in the way and must not be lost.
pub(crate) fn aside_path(root: &RootPlace, name: &str) -> Result<PathBuf, WorkspaceError> {
    let folder = book(root).join("aside");
    let name = component(name);
    let mut path = folder.join(&name);
    let mut number = 1u32;
    while is_there(&path)? {
        path = folder.join(format!("{name}-{number}"));
        number += 1;
    }
    Ok(path)
}

/// Whether something is there, a link that leads nowhere included.
pub(crate) fn is_there(path: &Path) -> Result<bool, WorkspaceError> {
    fs::is_there(path).map_err(|e| io_fail(path, "cannot look at the path", &e))
}

/// Where a removal moves a worktree: inside this store's trash, as deep below the root as it was,
/// so that relative links of it, its `.git` included, keep their meaning (W-35). A path less than
/// four deep has the last folders of the trash's name joined into one.
pub(crate) fn trash_path(place: &Place, removal: &str) -> Result<PathBuf, WorkspaceError> {
    let depth = below(&place.root, &place.path)?.len();
    let mut names = vec![BOOK.to_owned(), component(&place.root.store), "trash".to_owned()];
    while names.len() + 1 < depth {
        names.push("deep".to_owned());
    }
    names.push(component(removal));
    let joined = names.split_off(depth.min(names.len()) - 1).join("-");
    names.push(joined);
    Ok(names.iter().fold(place.root.path.clone(), |path, name| path.join(name)))
}

/// Makes the root and its marker, and returns it as it really is (D-18).
pub(crate) fn make_root(root: &RootPlace) -> Result<RootPlace, WorkspaceError> {
    if !root.path.is_absolute() {
        return Err(unavailable(root, "its path is not absolute".to_owned()));
    }
    fs::create_dir_all(&root.path).map_err(|e| io_fail(&root.path, "cannot make the root", &e))?;
    let real = fs::canonicalize(&root.path)
        .map_err(|e| io_fail(&root.path, "cannot resolve the root", &e))?;
    if real == Path::new("/") {
        return Err(unavailable(root, "it is the top of the file system".to_owned()));
    }
    let made = RootPlace { path: real, ..root.clone() };
    let folder = book(&made);
    make_folders(&made.path, &folder)?;
    let marker = folder.join("root");
    match File::create_new(&marker) {
        Ok(mut file) => {
            file.write_all(made.marker.as_bytes())
                .and_then(|()| file.sync_all())
                .map_err(|e| io_fail(&marker, "cannot write the root's marker", &e))?;
        }
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(io_fail(&marker, "cannot write the root's marker", &e)),
    }
    check_root(&made)?;
    check_trash(&made)?;
    Ok(made)
}

/// Refuses a root whose trash lies on another file system (W-35): a rename would not reach it.
pub(crate) fn check_trash(root: &RootPlace) -> Result<(), WorkspaceError> {
    let device = |path: &Path| match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found.dev())),
        Err(e) if fs::is_absence(&e) => Ok(None),
        Err(e) => Err(io_fail(path, "cannot look at the folder", &e)),
    };
    let own = device(&root.path)?;
    for folder in [root.path.join(BOOK), book(root), book(root).join("trash")] {
        if device(&folder)?.is_some_and(|found| Some(found) != own) {
            return Err(fail(
                Reason::MountPoint,
                &folder,
                "the trash of this root lies on another file system than the root",
                "unmount what separates them; nothing is removed by copying",
            ));
        }
    }
    Ok(())
}

/// Whether the root is there and is the recorded one (D-18).
pub(crate) fn check_root(root: &RootPlace) -> Result<(), WorkspaceError> {
    let real = fs::canonicalize(&root.path)
        .map_err(|e| unavailable(root, format!("it cannot be reached: {e}")))?;
    if real != root.path {
        return Err(unavailable(root, format!("its path now leads to {}", show(&real))));
    }
    let marker = book(root).join("root");
    let found = fs::read(&marker).map_err(|e| {
        unavailable(root, format!("its marker {} cannot be read: {e}", show(&marker)))
    })?;
    if found.trim_ascii_end() == root.marker.as_bytes().trim_ascii_end() {
        Ok(())
    } else {
        Err(unavailable(root, format!("the marker {} is another store's", show(&marker))))
    }
}

fn unavailable(root: &RootPlace, why: String) -> WorkspaceError {
    fail(
        Reason::RootUnavailable,
        &root.path,
        format!("the managed root is not the recorded one: {why}"),
        "mount the disk that holds it, or register the root again; nothing in it was judged",
    )
}

/// The names from the root to a path: a strict descendant, outside of Freehold's own folders.
///
/// Spellings are undone (double and trailing slashes, `.`), but `..` is refused: what it means
/// depends on links.
pub(crate) fn below(root: &RootPlace, path: &Path) -> Result<Vec<OsString>, WorkspaceError> {
    let outside = |why: &str| {
        fail(
            Reason::OutsideRoot,
            path,
            format!("the path {} {why}", show(path)),
            "only strict descendants of a managed root are ever touched; correct the row",
        )
    };
    if path.as_os_str().is_empty() {
        return Err(outside("is empty"));
    }
    if !path.is_absolute() {
        return Err(outside("is relative"));
    }
    let names = |path: &Path| -> Option<Vec<OsString>> {
        path.components()
            .filter(|c| !matches!(c, Component::RootDir))
            .map(|c| match c {
                Component::Normal(name) => Some(name.to_os_string()),
                Component::Prefix(_)
                | Component::RootDir
                | Component::CurDir
                | Component::ParentDir => None,
            })
            .collect()
    };
    let Some(all) = names(path) else { return Err(outside("contains ..")) };
    let Some(top) = names(&root.path) else {
        return Err(outside("has a root that is no plain path"));
    };
    if top.starts_with(&all) {
        return Err(outside(if top == all { "is the root itself" } else { "lies above its root" }));
    }
    if !all.starts_with(&top) {
        return Err(outside("is not in its root"));
    }
    let rest = all[top.len()..].to_vec();
    match rest.first() {
        Some(first) if !first.as_bytes().starts_with(BOOK.as_bytes()) => Ok(rest),
        _own => Err(outside("is inside Freehold's own folder")),
    }
}

/// What stands at a path below a root.
#[derive(Debug)]
pub(crate) enum At {
    /// A folder, reached without following any link.
    Folder(OwnedFd),
    /// Nothing: this part of the path is missing.
    Missing,
    /// This part of the path is a link or no folder.
    Other(PathBuf),
}

/// Goes from a folder to a path below it, one name at a time, never through a link (W-31).
pub(crate) fn walk_to(top: &Path, names: &[OsString]) -> Result<At, WorkspaceError> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut here = at::open(top, flags | OFlags::DIRECTORY, Mode::empty())
        .map_err(|e| os_fail(top, "cannot open the folder", e))?;
    let mut path = top.to_path_buf();
    for name in names {
        path.push(name);
        here = match at::openat(&here, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(At::Missing),
            Err(e) => return Err(os_fail(&path, "cannot open a part of the path", e)),
        };
        let stat = at::fstat(&here).map_err(|e| os_fail(&path, "cannot look at the path", e))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Ok(At::Other(path));
        }
    }
    Ok(At::Folder(here))
}

/// What stands at a place; refuses links and what is not below the root.
pub(crate) fn open_place(place: &Place) -> Result<At, WorkspaceError> {
    match walk_to(&place.root.path, &below(&place.root, &place.path)?)? {
        At::Other(part) => Err(fail(
            Reason::OutsideRoot,
            &place.path,
            format!("{} on the way to it is a link or no folder", show(&part)),
            "a managed path is reached through plain folders only; put the folder back",
        )),
        found => Ok(found),
    }
}

/// How often folders are made again that somebody removes at the same time (W-42).
const FOLDER_TRIES: usize = 16;

/// Makes the missing folders from a top to a path below it, never through a link.
pub(crate) fn make_folders(top: &Path, path: &Path) -> Result<(), WorkspaceError> {
    for _ in 1..FOLDER_TRIES {
        match make_folders_once(top, path) {
            // A folder above was empty and went with its last worktree while this was made.
            Err(e)
                if e.reason == Reason::Io
                    && fs::is_dir(top).unwrap_or(false)
                    && !fs::is_dir(path).unwrap_or(true)
                    && !is_blocked(top, path) => {}
            made => return made,
        }
    }
    make_folders_once(top, path)
}

/// Whether something that is no folder stands on the way.
fn is_blocked(top: &Path, path: &Path) -> bool {
    path.ancestors()
        .take_while(|a| *a != top)
        .any(|a| fs::symlink_metadata(a).is_ok_and(|found| !found.is_dir()))
}

fn make_folders_once(top: &Path, path: &Path) -> Result<(), WorkspaceError> {
    let rest = path.strip_prefix(top).map_err(|_outside| {
        fail(Reason::OutsideRoot, path, "the folder is not below its root", "correct the row")
    })?;
    let mut here = top.to_path_buf();
    for name in rest.components() {
        here.push(name);
        match fs::create_dir(&here, 0o700) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                let found = fs::symlink_metadata(&here)
                    .map_err(|e| io_fail(&here, "cannot look at the folder", &e))?;
                if !found.is_dir() {
                    return Err(fail(
                        Reason::OutsideRoot,
                        &here,
                        format!("{} is a link or no folder", show(&here)),
                        "a managed path is reached through plain folders only; move it away",
                    ));
                }
            }
            Err(e) => return Err(io_fail(&here, "cannot make the folder", &e)),
        }
    }
    Ok(())
}

/// Removes empty folders from `folder` upwards, strictly below `top` (W-42).
pub(crate) fn remove_empty(top: &Path, folder: &Path) {
    let mut here = folder;
    while here != top && here.starts_with(top) && fs::remove_dir(here).is_ok() {
        match here.parent() {
            Some(parent) => here = parent,
            None => return,
        }
    }
}

/// Where [`write_whole`] writes before it renames. Who is killed in between leaves it behind.
pub(crate) fn part_path(path: &Path) -> PathBuf {
    let mut part = path.as_os_str().to_os_string();
    part.push(".part");
    PathBuf::from(part)
}

/// Writes a small file so that it is either there whole or not at all.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> Result<(), WorkspaceError> {
    let part = part_path(path);
    File::create(&part)
        .and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&part, path))
        .map_err(|e| io_fail(path, "cannot write the file", &e))
}

/// What lies in a root beside Freehold's own folders: worktrees, and what others left there.
pub fn leftovers(root: &RootPlace) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(&root.path) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .iter()
        .filter(|e| !e.file_name().as_bytes().starts_with(BOOK.as_bytes()))
        .map(|e| e.path())
        .collect();
    found.sort();
    found
}

/// The folders of removals in this store's trash of a root, by the removal's id.
pub fn trashes(root: &RootPlace) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let book = book(root);
    let prefix = format!("{}-trash-", component(&root.store));
    let entries = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder).into_iter().flatten().map(|e| e.path()).collect()
    };
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // As deep as what was moved into it (see `trash_path`).
    let mut todo = vec![book.join("trash")];
    while let Some(folder) = todo.pop() {
        for path in entries(&folder) {
            if name(&path) == "deep" { todo.push(path) } else { found.push((name(&path), path)) }
        }
    }
    for path in entries(&book) {
        if let Some(id) = name(&path).strip_prefix("trash-") {
            found.push((id.to_owned(), path.clone()));
        }
    }
    for path in entries(&root.path.join(BOOK)) {
        if let Some(id) = name(&path).strip_prefix(&prefix) {
            found.push((id.to_owned(), path.clone()));
        }
    }
    let top = format!("{BOOK}-{prefix}");
    for path in entries(&root.path) {
        if let Some(id) = name(&path).strip_prefix(&top) {
            found.push((id.to_owned(), path.clone()));
        }
    }
    found.sort();
    found
}

/// Kept trash on the disk, for people (W-35).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trashed {
    /// Where the directory lies.
    pub folder: PathBuf,
    /// Every file and link in it, below it; its link to the registration apart.
    pub entries: Vec<PathBuf>,
    /// Where its registration lies, and the common directory that it belongs to; none if the
    /// repository cannot be found.
    pub admin: Option<(PathBuf, PathBuf)>,
}

/// Finds what a removal moved into this store's trash of a root; none if it is not there.
pub fn trashed(root: &RootPlace, removal: &str, repository: &Path) -> Option<Trashed> {
    let folder = trashes(root).into_iter().find(|(id, _)| id == removal)?.1;
    let tree = crate::tree::read(&folder);
    let entries = tree
        .entries
        .iter()
        .filter(|e| e.what != crate::tree::What::Folder && e.path != Path::new(".git"))
        .map(|e| e.path.clone())
        .collect();
    let admin = crate::identity::common_dir(repository).ok().map(|common| {
        let own = common.join("freehold").join(component(&root.store)).join("admin");
        (own.join(component(removal)), common)
    });
    Some(Trashed { folder, entries, admin })
}

/// What was in the way of a removal or a making and is nobody's to delete.
pub fn aside(root: &RootPlace) -> Vec<PathBuf> {
    let entries = fs::read_dir(book(root).join("aside")).into_iter().flatten();
    let mut found: Vec<PathBuf> = entries.map(|e| e.path()).collect();
    found.sort();
    found
}
