//! What a removal is about to rename, so that what was renamed can be compared with it (W-35).
//!
//! One line of text per entry: kind, size, mtime, ctime, inode, mode, content, path. The content
//! is a digest for files that are in no commit, the target for links, and `-` otherwise; a path
//! is percent-encoded. The first two lines are the stamp and the place, by which an inspection
//! finds a worktree that a removal moved and did not record; the third is a digest of what lives
//! only in the administration directory (index, head, own refs), which may change too.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{self, Read, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use freehold_store::workspaces::{Place, RootPlace, WorkspaceError};
use sha2::{Digest, Sha256};

use crate::disk::{self as fs, File};
use crate::error::{io_fail, show};
use crate::root::{
    book, component, is_there, make_folders, manifest_path, part_path, trash_path, write_whole,
};
use crate::tree::{Entry, Tree, What};

/// Files larger than this are compared by their times alone.
const HASHED: u64 = 64 << 20;

/// How many differences are named.
const NAMED: usize = 10;

/// The suffix of a manifest whose trash is being unlinked: it is whole no more (D-20).
const PURGING: &str = "purging";

/// A manifest, read back.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    stamp: String,
    admin: String,
    /// By path, in the order of a [`Tree`].
    entries: Vec<(Vec<u8>, Record)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    what: char,
    size: u64,
    mtime: i128,
    ctime: i128,
    inode: u64,
    mode: u32,
    content: Option<String>,
}

fn letter(what: What) -> char {
    match what {
        What::File => 'f',
        What::Folder => 'd',
        What::Link => 'l',
        What::Other => 'o',
    }
}

/// How long after a file was changed its times may stay the same through another change: as long
/// as the coarsest clock of a file system ticks.
const TICK: i128 = 2_000_000_000;

fn record(top: &Path, entry: &Entry, hashed: bool) -> io::Result<Record> {
    let path = || top.join(&entry.path);
    let content = match entry.what {
        What::File if hashed && entry.size <= HASHED => Some(digest(&path())?),
        What::Link => Some(encode(fs::read_link(path())?.as_os_str().as_bytes())),
        What::File | What::Folder | What::Other => None,
    };
    Ok(Record {
        what: letter(entry.what),
        size: entry.size,
        mtime: entry.mtime,
        ctime: entry.ctime,
        inode: entry.inode.1,
        mode: entry.mode,
        content,
    })
}

fn digest(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = [0u8; 65536];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            n => hash.update(&buffer[..n]),
        }
    }
    let bytes: [u8; 32] = hash.finalize().into();
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// Files of an administration directory that say where it is and whose, and nothing of the work.
const ADMIN_OWN: &[&str] = &["locked", "freehold", "gitdir", "commondir"];

/// The digest of everything in an administration directory that is somebody's work: index, head,
/// own refs, reflogs, an operation in progress.
pub(crate) fn admin_digest(admin: &Path) -> Result<String, WorkspaceError> {
    let cannot = |path: &Path, e: &io::Error| {
        io_fail(path, "cannot read the worktree's administration directory", e)
    };
    let mut files = Vec::new();
    let mut todo = vec![admin.to_path_buf()];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(&folder).map_err(|e| cannot(&folder, &e))? {
            let path = entry.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.ends_with(".lock") || (folder == admin && ADMIN_OWN.contains(&name.as_str())) {
                continue;
            }
            if entry.is_dir().map_err(|e| cannot(&path, &e))? {
                todo.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut hash = Sha256::new();
    for path in files {
        hash.update(path.strip_prefix(admin).unwrap_or(&path).as_os_str().as_bytes());
        hash.update([0]);
        hash.update(digest(&path).map_err(|e| cannot(&path, &e))?.as_bytes());
    }
    let bytes: [u8; 32] = hash.finalize().into();
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// Writes the manifest of a tree; `unsaved` are the paths whose content is in no commit, and
/// `admin` the [`admin_digest`] of its registration.
pub(crate) fn write(
    place: &Place,
    removal: &str,
    tree: &Tree,
    unsaved: &[PathBuf],
    admin: &str,
) -> Result<(), WorkspaceError> {
    let file = manifest_path(&place.root, removal);
    make_folders(&place.root.path, &book(&place.root).join("manifests"))?;
    // Git names a folder of ignored files with a slash at its end; entries have none.
    let unsaved: HashSet<&[u8]> = unsaved
        .iter()
        .map(|p| p.as_os_str().as_bytes())
        .map(|p| p.strip_suffix(b"/").unwrap_or(p))
        .collect();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = i128::try_from(now.as_nanos()).unwrap_or(i128::MAX);
    let mut text = Vec::new();
    let cannot = |e: io::Error| io_fail(&file, "cannot write the removal's manifest", &e);
    writeln!(text, "{}", encode(place.stamp.as_bytes())).map_err(cannot)?;
    writeln!(text, "{}", encode(place.path.as_os_str().as_bytes())).map_err(cannot)?;
    writeln!(text, "{admin}").map_err(cannot)?;
    for entry in &tree.entries {
        let hashed = entry.ctime > now - TICK
            || (!unsaved.is_empty() && up_to(entry.bytes()).any(|a| unsaved.contains(a)));
        let r = record(&place.path, entry, hashed).map_err(|e| {
            io_fail(&place.path.join(&entry.path), "cannot read what is to be removed", &e)
        })?;
        writeln!(
            text,
            "{} {} {} {} {} {:o} {} {}",
            r.what,
            r.size,
            r.mtime,
            r.ctime,
            r.inode,
            r.mode,
            r.content.as_deref().unwrap_or("-"),
            encode(entry.bytes())
        )
        .map_err(cannot)?;
    }
    write_whole(&file, &text)
}

/// A path and every folder above it, but not the top.
fn up_to(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let folders = path.iter().enumerate().filter(|(_n, b)| **b == b'/').map(|(n, _b)| &path[..n]);
    folders.chain([path])
}

/// Reads a removal's manifest, if it is there.
pub(crate) fn read(root: &RootPlace, removal: &str) -> Result<Option<Manifest>, WorkspaceError> {
    let file = manifest_path(root, removal);
    match fs::read(&file) {
        Ok(text) => Ok(parse(&text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(io_fail(&file, "cannot read the removal's manifest", &e)),
    }
}

fn parse(text: &[u8]) -> Option<Manifest> {
    let text = std::str::from_utf8(text).ok()?;
    let mut lines = text.lines();
    let stamp = String::from_utf8(decode(lines.next()?)?).ok()?;
    lines.next()?;
    let admin = lines.next()?.to_owned();
    let mut entries = Vec::new();
    for line in lines {
        let mut fields = line.split(' ');
        let mut record = Record {
            what: fields.next()?.chars().next()?,
            size: fields.next()?.parse().ok()?,
            mtime: fields.next()?.parse().ok()?,
            ctime: fields.next()?.parse().ok()?,
            inode: fields.next()?.parse().ok()?,
            mode: u32::from_str_radix(fields.next()?, 8).ok()?,
            content: fields.next().map(str::to_owned),
        };
        // A link may lead to a file of that name; nothing else has such a content.
        let content = record.content.take()?;
        record.content = (record.what == 'l' || content != "-").then_some(content);
        entries.push((decode(fields.next()?)?, record));
    }
    // One that another version wrote may be in another order.
    entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    Some(Manifest { stamp, admin, entries })
}

impl Manifest {
    /// The inodes of what it tells of, on one device.
    pub(crate) fn inodes(&self, device: u64) -> impl Iterator<Item = (u64, u64)> {
        self.entries.iter().map(move |(_path, was)| (device, was.inode))
    }

    /// Whether index, head and own refs are as they were.
    pub(crate) fn is_same_admin(&self, admin: &Path) -> Result<bool, WorkspaceError> {
        Ok(admin_digest(admin)? == self.admin)
    }

    /// What differs between the manifest and a tree that lies at `top` now: entries, sizes,
    /// times, and the content of what differs in those.
    pub(crate) fn differences(&self, top: &Path, tree: &Tree) -> Vec<String> {
        let mut found: Vec<String> =
            tree.unseen.iter().map(|(p, e)| format!("{} cannot be read: {e}", show(p))).collect();
        let gone = |path: &[u8]| format!("{} is gone", show(Path::new(OsStr::from_bytes(path))));
        // Both are in the same order.
        let mut before = self.entries.iter().peekable();
        for entry in &tree.entries {
            while let Some((path, _)) = before.next_if(|(p, _)| p.as_slice() < entry.bytes()) {
                found.push(gone(path));
            }
            let differs = match before.next_if(|(p, _)| p == entry.bytes()) {
                None => Some("is new"),
                Some((_, was)) if was.is_same(top, entry) => None,
                Some(_) => Some("changed"),
            };
            if let Some(how) = differs {
                found.push(format!("{} {how}", show(&entry.path)));
            }
        }
        found.extend(before.map(|(path, _)| gone(path)));
        found.sort();
        if found.len() > NAMED {
            let more = found.len() - NAMED;
            found.truncate(NAMED);
            found.push(format!("and {more} more"));
        }
        found
    }
}

impl Record {
    fn is_same(&self, top: &Path, entry: &Entry) -> bool {
        if self.what != letter(entry.what) || self.mode != entry.mode {
            return false;
        }
        match entry.what {
            // Its entries are compared one by one; a socket or pipe has no content.
            What::Folder | What::Other => true,
            What::Link => record(top, entry, false).is_ok_and(|now| now.content == self.content),
            What::File => {
                let untouched = self.size == entry.size
                    && self.mtime == entry.mtime
                    && self.ctime == entry.ctime
                    && self.inode == entry.inode.1;
                // What was hashed is read again whatever its times say (W-35).
                match &self.content {
                    None => untouched,
                    Some(_) => {
                        record(top, entry, true).is_ok_and(|now| now.content == self.content)
                    }
                }
            }
        }
    }
}

fn purging_path(root: &RootPlace, removal: &str) -> PathBuf {
    manifest_path(root, removal).with_extension(PURGING)
}

/// Whether a removal's trash is being unlinked, and so is not whole any more.
pub(crate) fn is_purging(root: &RootPlace, removal: &str) -> Result<bool, WorkspaceError> {
    is_there(&purging_path(root, removal))
}

/// Marks the trash as not whole, before the first unlink.
pub(crate) fn begin_purge(root: &RootPlace, removal: &str) -> Result<(), WorkspaceError> {
    let (from, to) = (manifest_path(root, removal), purging_path(root, removal));
    match fs::rename(&from, &to) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            make_folders(&root.path, &book(root).join("manifests"))?;
            write_whole(&to, b"")
        }
        Err(e) => Err(io_fail(&from, "cannot mark the trash", &e)),
    }
}

/// Forgets a removal's manifest.
pub(crate) fn forget(root: &RootPlace, removal: &str) -> Result<(), WorkspaceError> {
    let (manifest, purging) = (manifest_path(root, removal), purging_path(root, removal));
    // An executor that was killed while it wrote one has left a part of it.
    let parts = [part_path(&manifest), part_path(&purging)];
    for file in [manifest, purging].into_iter().chain(parts) {
        match fs::remove_file(&file) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(io_fail(&file, "cannot remove the removal's manifest", &e)),
        }
    }
    Ok(())
}

/// The trash in which a worktree lies whole, if a removal moved it and did not record it.
pub(crate) fn find_in_trash(place: &Place) -> Result<Option<PathBuf>, WorkspaceError> {
    for name in of_stamp(place)? {
        if component(&name) != name || name.ends_with(PURGING) {
            continue;
        }
        let Ok(trash) = trash_path(place, &name) else { continue };
        if is_there(&trash)? {
            return Ok(Some(trash));
        }
    }
    Ok(None)
}

/// The names of the manifests that are about this worktree. One that goes away meanwhile is
/// another removal's.
fn of_stamp(place: &Place) -> Result<Vec<String>, WorkspaceError> {
    let folder = book(&place.root).join("manifests");
    let stamp = encode(place.stamp.as_bytes());
    let cannot = |path: &Path, e: &io::Error| io_fail(path, "cannot read the manifests", e);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(e) if fs::is_absence(&e) => return Ok(Vec::new()),
        Err(e) => return Err(cannot(&folder, &e)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let Ok(name) = entry.file_name().into_string() else { continue };
        match fs::read(entry.path()) {
            Ok(text) if text.split(|b| *b == b'\n').next() == Some(stamp.as_bytes()) => {
                names.push(name);
            }
            Ok(_) => {}
            Err(e) if fs::is_absence(&e) => {}
            Err(e) => return Err(cannot(&entry.path(), &e)),
        }
    }
    Ok(names)
}

/// The removal that put a worktree into the trash, by its manifest, even once its unlinking has
/// begun: a purge has an id of its own, and the trash has its filler's (D-20).
pub(crate) fn filler(place: &Place) -> Result<Option<String>, WorkspaceError> {
    for name in of_stamp(place)? {
        let id = name.strip_suffix(PURGING).map_or(name.as_str(), |id| id.trim_end_matches('.'));
        let Ok(trash) = trash_path(place, id) else { continue };
        if is_there(&trash)? {
            return Ok(Some(id.to_owned()));
        }
    }
    Ok(None)
}

/// Percent-encoding of everything but plain printable text without spaces.
fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_graphic() && *byte != b'%' {
            out.push(char::from(*byte));
        } else {
            out.push_str(&format!("%{byte:02x}"));
        }
    }
    out
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            out.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Found by the rounds of kills: the part stayed for ever.
    #[test]
    fn k03_what_a_killed_executor_half_wrote_of_a_manifest_is_forgotten_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = RootPlace {
            id: freehold_kernel::RootId(1),
            name: "root".to_owned(),
            path: folder.path().to_owned(),
            marker: String::new(),
            store: "store".to_owned(),
        };
        let manifest = manifest_path(&root, "removal");
        let beside = manifest_path(&root, "another");
        fs::create_dir_all(manifest.parent().unwrap()).unwrap();
        for file in [&manifest, &purging_path(&root, "removal"), &beside] {
            fs::write(file, "whole").unwrap();
            fs::write(part_path(file), "ha").unwrap();
        }
        forget(&root, "removal").unwrap();
        let left = || fs::read_dir(manifest.parent().unwrap()).unwrap().count();
        assert_eq!(left(), 2, "of the other removal");
        // Nothing is left to forget.
        forget(&root, "removal").unwrap();
        assert_eq!(left(), 2);
    }

    #[test]
    fn any_name_survives() {
        let name = b"a b%\n\xff\x00".to_vec();
        assert_eq!(decode(&encode(&name)), Some(name));
        assert!(!encode(b"a b\n").contains([' ', '\n']));
    }
}
