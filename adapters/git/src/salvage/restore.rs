//! Putting an entry back (W-34): into a clean worktree, or one in which an earlier restore of the
//! same entry was stopped; never over anything else.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use freehold_kernel::{Reason, Unsaved};
use freehold_store::workspaces::{Place, Restored, WorkspaceError};

use super::give::give_objects;
use super::manifest::{At, Class, FileLine, IndexLine, Kind, Manifest};
use super::put::Put;
use super::reach::{as_lines, batch};
use super::scan::Seen;
use super::seat::{Beat, Pipe, Seat};
use super::store::{Scratch, Store, check_ref};
use super::survey::{Survey, is_part};
use super::tracked::hash_of;
use crate::disk::{self as fs, File};
use crate::error::{fail, io_fail, show_bytes};
use crate::process::{Git, Input};

/// The largest file that is read together with others; the rest are streamed one by one.
const SMALL_BYTES_MAX: u64 = 64 << 10;

/// The same as [`super::restore`].
pub(super) fn restore(
    git: &Git,
    place: &Place,
    ref_name: &str,
) -> Result<Restored, WorkspaceError> {
    let seat = Seat::of(git, place)?;
    check_ref(&place.root, ref_name)?;
    let mut on = || true;
    let mut beat = Beat::new(&mut on, &place.path);
    let store = Store::new(git, &place.root, seat.format);
    let name = format!("restore-{}", super::hash::hex(place.path.as_os_str().as_bytes()));
    let scratch = Scratch::new(git, &place.root, &name, seat.format)?;
    let manifest = read(&store, ref_name, &mut beat)?;

    let mut now = Survey::take(&seat, &scratch, &mut beat)?;
    clear_parts(&seat, &now)?;
    refuse_unsaved(&seat, &manifest, &now, &mut beat)?;
    give_objects(&seat, &store, &scratch, &manifest, ref_name, &mut beat)?;
    if detach(&seat, &manifest, &now, &mut beat)? {
        now = Survey::take(&seat, &scratch, &mut beat)?;
    }
    let mut back = Back {
        put: Put::new(&seat.top, &seat.work),
        seat: &seat,
        store: &store,
        manifest: &manifest,
        lines: now.manifest.files.iter().map(|f| (f.path.as_slice(), f)).collect(),
        now: &now,
        fetched: BTreeMap::new(),
        entries: 0,
        contents: manifest.contents,
        notes: Vec::new(),
    };
    if now.manifest.base == manifest.base {
        back.exact(&mut beat)?;
        back.put.sync()?;
        let after = Survey::take(&seat, &scratch, &mut beat)?;
        back.check(&after)?;
    } else {
        back.partial(&mut beat)?;
        back.put.sync()?;
    }
    let mut notes = back.notes;
    if !manifest.head.is_empty() && now.manifest.head != manifest.head {
        notes.push(format!(
            "it was taken on {}; the worktree is on {}",
            manifest.head,
            head_of(&now)
        ));
    }
    notes.extend(manifest.notes.iter().cloned());
    Ok(Restored { entries: back.entries, contents: back.contents, notes })
}

/// Reads an entry's list.
pub(super) fn read(
    store: &Store<'_>,
    ref_name: &str,
    beat: &mut Beat<'_>,
) -> Result<Manifest, WorkspaceError> {
    let bad = |what: String| {
        fail(
            Reason::Io,
            &store.repo.dir,
            format!("{ref_name}: {what}"),
            "take a name from the list of salvage entries; look at it with git",
        )
    };
    if store.tip(ref_name, beat)?.is_none() {
        return Err(bad("there is no such salvage entry here".into()));
    }
    let revision = format!("{ref_name}:manifest");
    let bytes = store.repo.ask(&["cat-file", "blob", &revision], Pipe::default(), beat)?;
    let text = String::from_utf8(bytes).map_err(|_| bad("its list is no text".into()))?;
    Manifest::parse(&text).map_err(bad)
}

/// Unlinks what a restore that was killed had not finished.
fn clear_parts(seat: &Seat<'_>, now: &Survey) -> Result<(), WorkspaceError> {
    let put = Put::new(&seat.top, &seat.work);
    for seen in now.glance.seen.iter().filter(|s| is_part(&s.path)) {
        put.unlink(seen)?;
    }
    Ok(())
}

/// Refuses a worktree with work of its own. Ignored files are passed over: they are never
/// overwritten, and every place that was in use has some.
fn refuse_unsaved(
    seat: &Seat<'_>,
    manifest: &Manifest,
    now: &Survey,
    beat: &mut Beat<'_>,
) -> Result<(), WorkspaceError> {
    let mut own = Vec::new();
    for (path, kinds) in &now.dirty {
        beat.tick()?;
        let passed = *kinds == Unsaved::IGNORED || *kinds == Unsaved::SUBMODULE;
        if !passed && !is_from(seat, manifest, now, path)? {
            own.push(show_bytes(path));
        }
    }
    for file in now.glance.admin.iter().filter(|f| f.kind == Unsaved::OPERATION) {
        if !manifest.admin.iter().any(|a| a.path == file.seen.path && a.oid == file.oid) {
            own.push(format!("an operation in progress ({})", show_bytes(&file.seen.path)));
        }
    }
    for (name, oid) in &now.manifest.refs {
        if !manifest.refs.iter().any(|(n, o)| n == name && o == oid) {
            own.push(name.clone());
        }
    }
    if own.is_empty() {
        return Ok(());
    }
    let more = own.len().saturating_sub(5);
    own.truncate(5);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    Err(fail(
        Reason::Unsaved,
        &seat.work,
        format!("the worktree has unsaved work of its own: {}{more}", own.join(", ")),
        "commit or salvage that first, or restore into a new worktree",
    ))
}

/// Whether an unsaved path is what this very entry puts there: a restore was stopped before.
fn is_from(
    seat: &Seat<'_>,
    manifest: &Manifest,
    now: &Survey,
    path: &[u8],
) -> Result<bool, WorkspaceError> {
    let of = |m: &Manifest| -> Vec<IndexLine> {
        m.index.iter().filter(|e| e.path == path).cloned().collect()
    };
    let (here, there) = (of(&now.manifest), of(manifest));
    let untouched = here.iter().all(|e| e.base.is_none())
        && !now.manifest.removed.iter().any(|r| r.path == path);
    if !untouched && here != there {
        return Ok(false);
    }
    let mut kept = manifest.files.iter().filter(|f| f.path == path && f.kind != Kind::Absent);
    match (now.glance.at(path), kept.next()) {
        (None, None) => Ok(true),
        (Some(seen), Some(kept)) => Ok(seen.kind == kept.kind
            && match seen.kind {
                Kind::File | Kind::Link => hash_of(seat, seen)? == kept.oid,
                Kind::Dir | Kind::Special | Kind::Absent => true,
            }),
        // Not put back yet, and nothing of anybody's lies in its place.
        (None, Some(_)) => Ok(!untouched),
        (Some(_), None) => Ok(false),
    }
}

/// Puts the head where it was if the entry was taken on a detached one. The branch that was
/// checked out stays where it is. True if anything moved.
fn detach(
    seat: &Seat<'_>,
    manifest: &Manifest,
    now: &Survey,
    beat: &mut Beat<'_>,
) -> Result<bool, WorkspaceError> {
    let there = now.manifest.head.is_empty() && now.manifest.base == manifest.base;
    if !manifest.head.is_empty() || there {
        return Ok(false);
    }
    if now.manifest.contents.covers(Unsaved::COMMITS) {
        return Err(fail(
            Reason::Unsaved,
            &seat.work,
            "the worktree's own detached head has commits that nothing else reaches",
            "make a branch of them first, or restore into a new worktree",
        ));
    }
    let args = ["checkout", "--quiet", "--detach", "--no-overwrite-ignore", &manifest.base];
    seat.ask(&args, b"", &[], beat)?;
    Ok(true)
}

/// A restore under way.
pub(super) struct Back<'a> {
    pub(super) put: Put<'a>,
    pub(super) seat: &'a Seat<'a>,
    pub(super) store: &'a Store<'a>,
    pub(super) manifest: &'a Manifest,
    /// The worktree as it was before.
    pub(super) now: &'a Survey,
    /// Its lines by path; of two lines, the one of what is there.
    pub(super) lines: BTreeMap<&'a [u8], &'a FileLine>,
    /// Contents of small files that come next, by object.
    pub(super) fetched: BTreeMap<String, Vec<u8>>,
    pub(super) entries: u64,
    /// What is back.
    pub(super) contents: Unsaved,
    pub(super) notes: Vec<String>,
}

impl Back<'_> {
    /// What was there before; only that may be replaced or removed, and only if it was clean.
    pub(super) fn clean_before(&self, path: &[u8]) -> Option<&Seen> {
        let line = self.lines.get(path)?;
        if line.class != Class::Tracked || line.unsaved || line.kind == Kind::Dir {
            return None;
        }
        self.now.glance.at(path)
    }

    /// Puts one file or link back unless it is there already. False if something is in its place.
    pub(super) fn file(
        &mut self,
        line: &FileLine,
        beat: &mut Beat<'_>,
    ) -> Result<bool, WorkspaceError> {
        let there = super::scan::look(&self.seat.top, &line.path)
            .map_err(|e| crate::error::os_fail(&self.seat.work, "cannot look at a file", e))?;
        if let Some(seen) = &there {
            let known =
                self.lines.get(line.path.as_slice()).map(|l| l.oid.as_str()).unwrap_or_default();
            let same = seen.kind == line.kind
                && (known == line.oid && self.is_untouched(seen)
                    || hash_of_file(self.seat, seen)? == line.oid);
            if same {
                if seen.kind == Kind::File && seen.sign.perm() != line.perm {
                    self.put.perm(&line.path, line.perm)?;
                    self.entries += 1;
                }
                return Ok(true);
            }
        }
        let instead_of = match &there {
            None => None,
            Some(_) => match self.clean_before(&line.path) {
                Some(seen) => Some(seen),
                None => return Ok(false),
            },
        };
        let known = self.fetched.get(&line.oid);
        let content = |out: Option<&mut File>, beat: &mut Beat<'_>| match (known, out) {
            (Some(bytes), None) => Ok(bytes.clone()),
            (Some(bytes), Some(out)) => out
                .write_all(bytes)
                .map(|()| Vec::new())
                .map_err(|e| io_fail(&self.seat.work, "cannot put a file back", &e)),
            (None, out) => self.content(line, out.as_deref(), beat),
        };
        let done = if line.kind == Kind::Link {
            let target = content(None, beat)?;
            self.put.link(&line.path, &target, instead_of)?
        } else {
            self.put.file(&line.path, line.perm, instead_of, |file| {
                content(Some(file), beat).map(drop)
            })?
        };
        if done {
            self.entries += 1;
        }
        Ok(done)
    }

    /// Reads one content. Objects of the index are in the user's repository by now, everything
    /// else is in the entry.
    fn content(
        &self,
        line: &FileLine,
        stdout: Option<&File>,
        beat: &mut Beat<'_>,
    ) -> Result<Vec<u8>, WorkspaceError> {
        let args = ["cat-file", "blob", line.oid.as_str()];
        let pipe = Pipe { stdout, ..Pipe::default() };
        if line.at == At::Index {
            self.seat.pipe(&args, pipe, beat)
        } else {
            self.store.repo.ask(&args, pipe, beat)
        }
    }

    /// Reads the small ones of the lines that come next with one command for each place.
    pub(super) fn fetch(
        &mut self,
        next: &[FileLine],
        beat: &mut Beat<'_>,
    ) -> Result<(), WorkspaceError> {
        self.fetched.clear();
        let here =
            |f: &FileLine| self.lines.get(f.path.as_slice()).is_some_and(|now| now.oid == f.oid);
        let wanted = |from_index: bool| -> BTreeSet<String> {
            next.iter()
                .filter(|f| matches!(f.kind, Kind::File | Kind::Link) && !f.oid.is_empty())
                .filter(|f| f.size <= SMALL_BYTES_MAX && f.class != Class::Submodule)
                .filter(|f| (f.at == At::Index) == from_index && !here(f))
                .map(|f| f.oid.clone())
                .collect()
        };
        let mut found = Vec::new();
        for from_index in [false, true] {
            let input = as_lines(&wanted(from_index));
            if input.is_empty() {
                continue;
            }
            let pipe = Pipe { stdin: Input::Bytes(&input), ..Pipe::default() };
            let args = ["cat-file", "--batch"];
            let bytes = if from_index {
                self.seat.pipe(&args, pipe, beat)?
            } else {
                self.store.repo.ask(&args, pipe, beat)?
            };
            // What is missing is asked for by itself, and then says so.
            found.extend(batch(&bytes).unwrap_or_default());
        }
        self.fetched = found.into_iter().map(|o| (o.oid, o.bytes)).collect();
        Ok(())
    }

    fn is_untouched(&self, seen: &Seen) -> bool {
        self.now.glance.at(&seen.path).is_some_and(|before| before.sign == seen.sign)
    }

    /// Says that a path stays in salvage, and how to read it there.
    pub(super) fn stays(&mut self, path: &[u8], why: &str) {
        self.notes.push(format!("{}: {why}; it is kept in salvage", show_bytes(path)));
    }
}

fn hash_of_file(seat: &Seat<'_>, seen: &Seen) -> Result<String, WorkspaceError> {
    match seen.kind {
        Kind::File | Kind::Link => hash_of(seat, seen),
        Kind::Dir | Kind::Special | Kind::Absent => Ok(String::new()),
    }
}

fn head_of(now: &Survey) -> &str {
    if now.manifest.head.is_empty() { "a detached head" } else { &now.manifest.head }
}

/// Writes a file of the administration directory as git does: under a lock, whole or not at all.
pub(super) fn write_locked(path: &Path, bytes: &[u8]) -> Result<(), WorkspaceError> {
    let mut lock = path.as_os_str().to_os_string();
    lock.push(".lock");
    let lock = Path::new(&lock);
    let mut file = File::create_new(lock).map_err(|e| {
        if e.kind() == std::io::ErrorKind::AlreadyExists {
            fail(
                Reason::Contested,
                lock,
                "another git command holds the index",
                "wait for it; if there is none, remove the lock file",
            )
        } else {
            io_fail(lock, "cannot lock the index", &e)
        }
    })?;
    let written =
        file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(lock, path));
    written.map_err(|e| {
        // The lock is ours; it may not stay.
        let _gone = fs::remove_file(lock);
        io_fail(path, "cannot write the index", &e)
    })
}
