//! The two ways of putting an entry back: exactly, on the commit that it was taken on; and as far
//! as it goes without overwriting anything, on another one (W-34).

use std::collections::{BTreeMap, BTreeSet};

use freehold_kernel::{Reason, Unsaved};
use freehold_store::workspaces::WorkspaceError;

use super::index::{Entry, Index};
use super::manifest::{Class, FileLine, IndexLine, Kind};
use super::put::Put;
use super::restore::{Back, write_locked};
use super::scan::{look, open_top};
use super::seat::{Beat, Pipe};
use super::store::DURABLE;
use super::survey::Survey;
use super::tracked::hash_of;
use crate::error::{fail, os_fail, show_bytes};
use crate::process::Input;

/// How many small files are fetched from the store at once.
const FETCHED: usize = 500;

/// Files that any worktree has of its own: what lies there is newer and stays.
const STAYS: &[&[u8]] = &[b"HEAD", b"ORIG_HEAD", b"FETCH_HEAD", b"COMMIT_EDITMSG", b"gc.pid"];

impl Back<'_> {
    /// Everything as it was.
    pub(super) fn exact(&mut self, beat: &mut Beat<'_>) -> Result<(), WorkspaceError> {
        let manifest = self.manifest;
        let wanted: BTreeSet<&[u8]> = manifest
            .files
            .iter()
            .filter(|f| !matches!(f.kind, Kind::Absent | Kind::Dir))
            .map(|f| f.path.as_slice())
            .collect();
        let folders: BTreeSet<&[u8]> = manifest
            .files
            .iter()
            .filter(|f| f.kind == Kind::Dir)
            .map(|f| f.path.as_slice())
            .collect();
        // Deletions first: a folder may stand where a file was, and the other way round.
        for line in &self.now.manifest.files {
            beat.tick()?;
            if wanted.contains(line.path.as_slice()) || line.kind == Kind::Absent {
                continue;
            }
            if let Some(seen) = self.clean_before(&line.path).cloned() {
                if self.put.unlink(&seen)? {
                    self.entries += 1;
                    self.put.prune(&line.path, |folder| folders.contains(folder));
                } else {
                    self.stays(&line.path, "it changed meanwhile and was not removed");
                }
            }
        }
        let mut submodules = 0u64;
        for (n, line) in manifest.files.iter().enumerate() {
            beat.tick()?;
            if n.is_multiple_of(FETCHED) {
                let next = manifest.files.len().min(n + FETCHED);
                self.fetch(&manifest.files[n..next], beat)?;
            }
            let done = match (line.kind, line.class) {
                (_, Class::Submodule) => {
                    submodules += 1;
                    continue;
                }
                (Kind::Absent, _) => continue,
                (Kind::Special, _) => {
                    self.stays(&line.path, "a socket, pipe or device has no content to put back");
                    continue;
                }
                (Kind::Dir, _) => {
                    let was = look(&self.seat.top, &line.path).map_err(|e| self.cannot_look(e))?;
                    let done = self.put.dir(&line.path, Some(line.perm))?;
                    self.entries += u64::from(done && was.is_none());
                    done
                }
                // Left out of the entry for its size: what git checked out stands.
                (Kind::File | Kind::Link, _) if line.oid.is_empty() => continue,
                (Kind::File | Kind::Link, _) => self.file(line, beat)?,
            };
            if !done {
                self.stays(&line.path, "something else is in its place and was not overwritten");
            }
        }
        if submodules > 0 {
            self.contents.0 &= !Unsaved::SUBMODULE.0;
            self.notes.push(format!(
                "{submodules} files of submodules are kept in salvage under submodule/ and \
                 admin/modules/; a submodule is put back by hand"
            ));
        }
        self.index(beat)?;
        self.admin(beat)
    }

    /// The index, entry for entry. What git remembers of files that were not touched stays.
    fn index(&mut self, beat: &mut Beat<'_>) -> Result<(), WorkspaceError> {
        let format = self.seat.format;
        let revision = format!("{}:index/plain", super::store::ref_of(&self.manifest.entry));
        let plain = self.store.repo.ask(&["cat-file", "blob", &revision], Pipe::default(), beat)?;
        let bad = |why: String| {
            fail(
                Reason::Io,
                &self.store.repo.dir,
                format!("the index in the entry cannot be read: {why}"),
                "read it with git from the salvage store",
            )
        };
        let index = Index::parse(&plain, format).map_err(bad)?;
        let old = Index::parse(&self.now.index_plain, format).map_err(bad)?;
        let before: BTreeMap<&[u8], &Entry> =
            old.entries.iter().filter(|e| e.stage == 0).map(|e| (e.path.as_slice(), e)).collect();
        let mut untouched = BTreeSet::new();
        for seen in &self.now.glance.seen {
            let still = look(&self.seat.top, &seen.path).map_err(|e| self.cannot_look(e))?;
            if still.is_some_and(|s| s.sign == seen.sign) {
                untouched.insert(seen.path.as_slice());
            }
        }
        let bytes = index.remembering(&plain, format, |entry| {
            let old = *before.get(entry.path.as_slice())?;
            let same = entry.stage == 0
                && old.oid == entry.oid
                && old.mode == entry.mode
                && untouched.contains(entry.path.as_slice());
            same.then_some((old, self.now.index_plain.as_slice()))
        });
        let had_none = self.now.glance.index_raw.is_none() && index.entries.is_empty();
        if !had_none {
            write_locked(&self.seat.admin.join("index"), &bytes)?;
        }
        Ok(())
    }

    /// Operations in progress and what else only the administration directory had.
    fn admin(&mut self, beat: &mut Beat<'_>) -> Result<(), WorkspaceError> {
        let top = open_top(&self.seat.admin)?;
        let put = Put::new(&top, &self.seat.admin);
        for line in &self.manifest.admin {
            beat.tick()?;
            let skipped = STAYS.contains(&line.path.as_slice())
                || line.path.starts_with(b"logs/")
                || line.path.starts_with(b"modules/");
            if skipped {
                continue;
            }
            let there = look(&top, &line.path)
                .map_err(|e| os_fail(&self.seat.admin, "cannot look at the worktree's state", e))?;
            if there.is_some() {
                let same = self
                    .now
                    .glance
                    .admin
                    .iter()
                    .any(|a| a.seen.path == line.path && a.oid == line.oid);
                if !same {
                    self.stays(&line.path, "the worktree has another of this name");
                }
                continue;
            }
            let args = ["cat-file", "blob", line.oid.as_str()];
            let bytes = self.store.repo.ask(&args, Pipe::default(), beat)?;
            let done = if line.kind == Kind::Link {
                put.link(&line.path, &bytes, None)?
            } else {
                put.file(&line.path, line.perm, None, |file| {
                    std::io::Write::write_all(file, &bytes).map_err(|e| {
                        crate::error::io_fail(&self.seat.admin, "cannot put the state back", &e)
                    })
                })?
            };
            self.entries += u64::from(done);
        }
        let null = self.seat.format.null();
        for (name, oid) in &self.manifest.refs {
            if self.now.manifest.refs.iter().any(|(n, o)| n == name && o == oid) {
                continue;
            }
            // Only refs that this worktree alone has, and only where none is.
            let pipe = Pipe { config: DURABLE, ..Pipe::default() };
            self.seat.pipe(&["update-ref", "--no-deref", name, oid, &null], pipe, beat)?;
        }
        Ok(())
    }

    /// Looks at what was put back.
    pub(super) fn check(&mut self, after: &Survey) -> Result<(), WorkspaceError> {
        if after.manifest.index != self.manifest.index {
            self.notes.push("the index is not as it was; its entries are kept in salvage".into());
        }
        for line in &self.manifest.files {
            let kept = matches!(line.kind, Kind::File | Kind::Link)
                && !line.oid.is_empty()
                && line.class != Class::Submodule;
            if !kept {
                continue;
            }
            let same = match after.glance.at(&line.path) {
                Some(seen) if seen.kind == line.kind => hash_of(self.seat, seen)? == line.oid,
                Some(_) | None => false,
            };
            let noted = format!("{}: ", show_bytes(&line.path));
            if !same && !self.notes.iter().any(|n| n.starts_with(&noted)) {
                self.stays(&line.path, "it is not as it was");
            }
        }
        Ok(())
    }

    /// What can be put back on another commit: a path that had the same content there, or none.
    pub(super) fn partial(&mut self, beat: &mut Beat<'_>) -> Result<(), WorkspaceError> {
        let manifest = self.manifest;
        self.notes.push(format!(
            "the entry was taken on {}, the worktree is on {}: only what does not meet another \
             change is put back; for all of it, restore into a worktree on that commit",
            or_nothing(&manifest.base),
            or_nothing(&self.now.manifest.base)
        ));
        let mut index: BTreeMap<&[u8], Vec<&IndexLine>> = BTreeMap::new();
        for line in &manifest.index {
            index.entry(&line.path).or_default().push(line);
        }
        let mut files: BTreeMap<&[u8], &FileLine> = BTreeMap::new();
        for line in &manifest.files {
            // A deletion's line gives way to the line of what stands in its place.
            if line.kind != Kind::Absent || !files.contains_key(line.path.as_slice()) {
                files.insert(&line.path, line);
            }
        }
        let here: BTreeMap<&[u8], (u32, &str)> = self
            .now
            .manifest
            .index
            .iter()
            .filter(|e| e.base.is_none())
            .map(|e| (e.path.as_slice(), (e.mode, e.oid.as_str())))
            .collect();
        let changed: BTreeSet<&[u8]> = manifest
            .index
            .iter()
            .filter(|e| e.base.is_some())
            .map(|e| e.path.as_slice())
            .chain(manifest.removed.iter().map(|r| r.path.as_slice()))
            .chain(files.values().filter(|f| f.unsaved).map(|f| f.path.as_slice()))
            .collect();
        let mut info = Vec::new();
        let null = self.seat.format.null();
        for path in changed {
            beat.tick()?;
            let removed = manifest.removed.iter().find(|r| r.path == path);
            let lines = index.get(path).map_or(&[][..], Vec::as_slice);
            let file = files.get(path).copied();
            if lines.len() > 1 || lines.iter().any(|e| e.stage > 0) {
                self.stays(path, "a conflict is not put back on another commit");
                continue;
            }
            let base: Option<(u32, &str)> = match (removed, lines.first()) {
                (Some(r), _) => Some((r.mode, &r.oid)),
                (None, Some(e)) => match &e.base {
                    None => Some((e.mode, &e.oid)),
                    Some((0, _)) => None,
                    Some((mode, oid)) => Some((*mode, oid)),
                },
                (None, None) => None,
            };
            if here.get(path).copied() != base {
                self.stays(path, "the branch has another version of it now");
                continue;
            }
            let done = match file.map(|f| (f.kind, f)) {
                Some((_, f)) if f.class == Class::Submodule => false,
                Some((Kind::File | Kind::Link, f)) if f.oid.is_empty() => true,
                Some((Kind::File | Kind::Link, f)) => self.file(f, beat)?,
                Some((Kind::Dir, f)) => self.put.dir(&f.path, None)?,
                Some((Kind::Special, _)) => false,
                Some((Kind::Absent, _)) | None => match self.clean_before(path).cloned() {
                    Some(seen) => {
                        let done = self.put.unlink(&seen)?;
                        self.entries += u64::from(done);
                        done
                    }
                    None => true,
                },
            };
            if !done {
                self.stays(path, "something is in its place, or it is in a submodule");
                continue;
            }
            match lines.first() {
                Some(e) if e.base.is_some() && !e.intent_to_add => {
                    info.extend_from_slice(format!("{:06o} {} 0\t", e.mode, e.oid).as_bytes());
                    info.extend_from_slice(path);
                    info.push(0);
                }
                None if removed.is_some() => {
                    info.extend_from_slice(format!("0 {null} 0\t").as_bytes());
                    info.extend_from_slice(path);
                    info.push(0);
                }
                Some(_) | None => {}
            }
        }
        if !info.is_empty() {
            let pipe = Pipe { stdin: Input::Bytes(&info), config: DURABLE, ..Pipe::default() };
            self.seat.pipe(&["update-index", "-z", "--index-info"], pipe, beat)?;
        }
        self.left_out()
    }

    /// What a partial restore never puts back.
    fn left_out(&mut self) -> Result<(), WorkspaceError> {
        let kinds = [
            (Unsaved::OPERATION, "the operation in progress"),
            (Unsaved::PRIVATE, "refs and configuration of the worktree alone"),
            (Unsaved::HIDDEN, "bits that hide files from status"),
            (Unsaved::SUBMODULE, "what is inside submodules"),
        ];
        for (kind, what) in kinds {
            if self.contents.covers(kind) {
                self.contents.0 &= !kind.0;
                self.notes.push(format!("{what}: not put back on another commit; kept in salvage"));
            }
        }
        Ok(())
    }

    fn cannot_look(&self, e: rustix::io::Errno) -> WorkspaceError {
        os_fail(&self.seat.work, "cannot look at a file", e)
    }
}

fn or_nothing(commit: &str) -> &str {
    if commit.is_empty() { "an unborn branch" } else { commit }
}
