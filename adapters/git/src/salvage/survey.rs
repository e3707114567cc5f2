//! Looking at a worktree: what of it is unsaved (W-33), what an entry would hold, and how large
//! it would be. Changes nothing, and runs none of the user's filters: a tracked file is unchanged
//! if git's own stat data says so, or if its very bytes are the object that the index names, or
//! if git says so after its own conversions (line ends).

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

use freehold_kernel::{Reason, Unsaved};
use freehold_store::workspaces::WorkspaceError;

use super::admin;
use super::glance::Glance;
use super::index::{Entry, Index};
use super::manifest::{At, Class, FileLine, IndexLine, Kind, Manifest, RemovedLine};
use super::reach::{self, Files, Reach};
use super::scan::{Seen, is_in, split};
use super::seat::{Beat, Seat};
use super::store::Scratch;
use super::tracked::{Look, State};
use crate::error::{fail, show_bytes};
use crate::rebuildable::Rebuildable;

/// The begin of the name of a file that a restore has not finished writing; a number follows.
pub(crate) const PART: &[u8] = b".freehold-restoring-";

/// Whether a path is such a file: nobody's work, wherever a restore was killed (W-34).
pub(crate) fn is_part(path: &[u8]) -> bool {
    split(path)
        .1
        .strip_prefix(PART)
        .is_some_and(|rest| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit))
}

/// What was found.
pub(crate) struct Survey {
    /// The list, as far as it is known before anything is written.
    pub(crate) manifest: Manifest,
    /// The worktree's state that this was concluded from.
    pub(crate) glance: Glance,
    /// The index file without caches, and whole if it was split.
    pub(crate) index_plain: Vec<u8>,
    /// Commits and other objects that only this worktree reaches.
    pub(crate) reach: Reach,
    /// The base's tree; empty for an unborn branch.
    pub(crate) base_tree: String,
    /// The base's own bytes.
    pub(crate) base_commit: Vec<u8>,
    /// Bytes of the base's files, if all of them are there.
    pub(crate) base_size: Option<u64>,
    /// Bytes of files that are as git left them but not as their objects are (line ends, LFS).
    pub(crate) converted: u64,
    /// Which kind of unsaved work each path is.
    pub(crate) dirty: BTreeMap<Vec<u8>, Unsaved>,
}

impl Survey {
    /// Looks at the worktree.
    ///
    /// # Errors
    /// For whatever cannot be looked at: it counts as unsaved, and cannot be kept.
    pub(crate) fn take(
        seat: &Seat<'_>,
        scratch: &Scratch<'_>,
        beat: &mut Beat<'_>,
    ) -> Result<Survey, WorkspaceError> {
        let index_raw = seat.admin_file("index")?;
        let index_time = admin::index_time(seat)?;
        let (index, index_plain) = read_index(seat, scratch, index_raw.as_deref(), beat)?;
        let gitlinks =
            index.entries.iter().filter(|e| e.is_gitlink()).map(|e| e.path.clone()).collect();
        let glance = Glance::take(seat, index_raw, gitlinks, beat)?;
        let found = reach::base_of(seat, &glance.base, beat)?;
        let (base_tree, base_commit, base_files) = (found.tree, found.commit, found.files);

        let mut sizes = found.sizes;
        let base_size = reach::base_size(&base_files, &sizes);
        let own: BTreeSet<String> = index
            .entries
            .iter()
            .filter(|e| !e.is_gitlink() && !sizes.contains_key(&e.oid))
            .map(|e| e.oid.clone())
            .collect();
        let own = reach::sizes(seat, &own, beat)?;
        sizes.extend(own.into_iter().map(|(oid, (_kind, size))| (oid, size)));

        let mut survey = Survey {
            manifest: Manifest {
                object_format: seat.format.name().to_owned(),
                base: glance.base.clone(),
                head: glance.head.clone(),
                worktree: bytes_of(&seat.work),
                refs: glance.refs.clone(),
                ..Manifest::default()
            },
            glance,
            index_plain,
            reach: Reach::default(),
            base_tree,
            base_commit,
            base_size,
            converted: 0,
            dirty: BTreeMap::new(),
        };
        let staged = survey.staged(&index, &base_files);
        let missing = staged.iter().find(|(_path, oid)| !sizes.contains_key(*oid));
        if let Some((path, oid)) = missing {
            return Err(fail(
                Reason::Io,
                &seat.work,
                format!("object {oid} of the staged {} is missing", show_bytes(path)),
                "run `git fsck` in the repository; stage the file again if it is still there",
            ));
        }
        let plain = survey.index_plain.clone();
        let look = Look {
            seat,
            scratch,
            index_plain: &plain,
            index_time,
            sizes: &sizes,
            modified: OnceCell::new(),
        };
        survey.files(&look, &index, scratch, beat)?;
        survey.privates(seat, beat)?;

        let staged: BTreeSet<String> = staged.into_values().collect();
        survey.size(seat, &staged, beat)?;
        Ok(survey)
    }

    /// Records that a path is unsaved.
    fn mark(&mut self, path: &[u8], kind: Unsaved) {
        self.manifest.contents = self.manifest.contents.with(kind);
        let known = self.dirty.entry(path.to_vec()).or_default();
        *known = known.with(kind);
    }

    /// The index against the base. Returns the objects that only the index has, by path.
    fn staged(&mut self, index: &Index, base: &Files) -> BTreeMap<Vec<u8>, String> {
        let mut only = BTreeMap::new();
        let mut paths = BTreeSet::new();
        for e in &index.entries {
            paths.insert(e.path.as_slice());
            let was = base.get(&e.path);
            let same = e.stage == 0
                && !e.intent_to_add
                && was.is_some_and(|(mode, oid)| *mode == e.mode && *oid == e.oid);
            if !same {
                self.mark(&e.path, Unsaved::TRACKED);
                if !e.is_gitlink() {
                    only.insert(joined_stage(e), e.oid.clone());
                }
            }
            self.manifest.index.push(IndexLine {
                path: e.path.clone(),
                mode: e.mode,
                oid: e.oid.clone(),
                stage: e.stage,
                assume_unchanged: e.assume_unchanged,
                skip_worktree: e.skip_worktree,
                intent_to_add: e.intent_to_add,
                base: (!same).then(|| was.cloned().unwrap_or_default()),
            });
        }
        for (path, (mode, oid)) in base {
            if !paths.contains(path.as_slice()) {
                self.mark(path, Unsaved::TRACKED);
                self.manifest.removed.push(RemovedLine {
                    path: path.clone(),
                    mode: *mode,
                    oid: oid.clone(),
                });
            }
        }
        only
    }

    /// The work tree against the index, and everything that the index does not have.
    fn files(
        &mut self,
        look: &Look<'_>,
        index: &Index,
        scratch: &Scratch<'_>,
        beat: &mut Beat<'_>,
    ) -> Result<(), WorkspaceError> {
        let mut tracked: BTreeMap<&[u8], &Entry> = BTreeMap::new();
        let mut folders: BTreeSet<&[u8]> = BTreeSet::new();
        for e in &index.entries {
            // In a conflict any stage will do: the file is kept whatever it is.
            tracked.entry(&e.path).or_insert(e);
            folders.extend(above(&e.path));
        }
        let seen = std::mem::take(&mut self.glance.seen);
        let gitlinks = std::mem::take(&mut self.glance.gitlinks);
        let occupied: BTreeSet<&[u8]> = seen.iter().flat_map(|s| above(&s.path)).collect();
        let untracked = untracked(look.seat, scratch, &self.index_plain, beat)?;
        // Where nothing is ignored there is nothing to be declared.
        let ignored = |s: &Seen| {
            s.kind != Kind::Dir
                && !tracked.contains_key(s.path.as_slice())
                && !untracked.contains(&s.path)
        };
        let rebuilt = if seen.iter().any(ignored) {
            Rebuilt::of(look.seat, &seen, &gitlinks, &untracked)?
        } else {
            Rebuilt::default()
        };
        let mut present = BTreeSet::new();
        for s in &seen {
            beat.tick()?;
            present.insert(s.path.as_slice());
            if is_part(&s.path) {
                continue;
            }
            let in_submodule = gitlinks.iter().any(|g| s.path != *g && is_in(&s.path, g));
            let entry = tracked.get(s.path.as_slice()).copied().filter(|e| fits(e, s.kind));
            if let Some(entry) = entry {
                self.tracked(look, entry, s, beat)?;
                continue;
            }
            let class = if in_submodule {
                Class::Submodule
            } else if s.kind == Kind::Dir {
                if folders.contains(s.path.as_slice()) { Class::Tracked } else { Class::Untracked }
            } else if untracked.contains(&s.path) {
                Class::Untracked
            } else {
                Class::Ignored
            };
            if (class == Class::Ignored || s.kind == Kind::Dir) && rebuilt.has(s) {
                continue;
            }
            // A folder counts only if nothing in it does.
            let unsaved = s.kind != Kind::Dir
                || (class == Class::Untracked && !occupied.contains(s.path.as_slice()));
            let at = match (s.kind, class) {
                (Kind::Dir | Kind::Special | Kind::Absent, _) => At::Nowhere,
                (_, Class::Ignored) => At::Tree("ignored"),
                (_, Class::Submodule) => At::Tree("submodule"),
                (_, Class::Tracked | Class::Untracked) => At::Tree("worktree"),
            };
            if unsaved {
                self.mark(&s.path, kind_of(class));
            }
            if s.kind == Kind::Special {
                self.manifest.notes.push(format!(
                    "{} is a socket, pipe or device; its content is not kept",
                    show_bytes(&s.path)
                ));
            }
            self.manifest.files.push(FileLine { class, at, unsaved, ..file_line(s) });
        }
        for (path, e) in &tracked {
            let gone = !present.contains(path)
                || !seen
                    .binary_search_by(|s| s.path.as_slice().cmp(path))
                    .is_ok_and(|n| fits(e, seen[n].kind));
            if gone {
                let unsaved = !e.skip_worktree;
                if unsaved {
                    let kind = if e.assume_unchanged { Unsaved::HIDDEN } else { Unsaved::TRACKED };
                    self.mark(path, kind);
                }
                // Something else may stand at the path; then its own line follows the deletion.
                self.manifest.files.push(FileLine {
                    path: path.to_vec(),
                    kind: Kind::Absent,
                    class: Class::Tracked,
                    perm: 0,
                    size: 0,
                    mtime: 0,
                    oid: String::new(),
                    at: At::Nowhere,
                    unsaved,
                });
            }
        }
        self.glance.seen = seen;
        self.glance.gitlinks = gitlinks;
        Ok(())
    }

    /// One tracked path that is there.
    fn tracked(
        &mut self,
        look: &Look<'_>,
        entry: &Entry,
        s: &Seen,
        beat: &mut Beat<'_>,
    ) -> Result<(), WorkspaceError> {
        let line = FileLine { class: Class::Tracked, ..file_line(s) };
        if s.kind == Kind::Dir {
            self.manifest.files.push(line);
            return Ok(());
        }
        let (oid, state) = look.state(entry, s, beat)?;
        let (at, unsaved) = match state {
            State::Same => (At::Index, false),
            State::Converted => {
                self.converted += s.sign.size;
                (At::Tree("worktree"), false)
            }
            State::Changed => (At::Tree("worktree"), true),
        };
        if unsaved {
            let hidden = entry.assume_unchanged || entry.skip_worktree;
            self.mark(&s.path, if hidden { Unsaved::HIDDEN } else { Unsaved::TRACKED });
        }
        self.manifest.files.push(FileLine { oid, at, unsaved, ..line });
        Ok(())
    }

    /// Adds what only the branch that is checked out reaches, as if that branch were gone: the
    /// entry then stands by itself while the worktree lies in trash (W-35). It is no unsaved work.
    pub(super) fn keep_head(
        &mut self,
        seat: &Seat<'_>,
        beat: &mut Beat<'_>,
    ) -> Result<(), WorkspaceError> {
        if self.manifest.head.is_empty() || self.manifest.base.is_empty() {
            return Ok(());
        }
        let Some(found) = reach::only_on(seat, &self.manifest.head, &self.manifest.base, beat)?
        else {
            self.manifest.notes.push(format!(
                "the commits that only {} reaches are too many for this entry",
                self.manifest.head
            ));
            return Ok(());
        };
        for commit in found {
            if !self.manifest.commits.contains(&commit.oid) {
                self.manifest.commits.push(commit.oid.clone());
                self.reach.commits.push(commit);
            }
        }
        Ok(())
    }

    /// State that only the administration directory has, and what it reaches.
    fn privates(&mut self, seat: &Seat<'_>, beat: &mut Beat<'_>) -> Result<(), WorkspaceError> {
        let mut roots: BTreeSet<String> =
            self.manifest.refs.iter().map(|(_name, oid)| oid.clone()).collect();
        if self.manifest.head.is_empty() {
            roots.insert(self.manifest.base.clone());
        }
        for file in &self.glance.admin {
            self.manifest.contents = self.manifest.contents.with(file.kind);
            roots.extend(file.names.iter().cloned());
        }
        for (name, _oid) in &self.manifest.refs {
            // With reftables an operation in progress has refs where it has files otherwise.
            let own = name.starts_with("refs/");
            let kind = if own { Unsaved::PRIVATE } else { Unsaved::OPERATION };
            self.manifest.contents = self.manifest.contents.with(kind);
        }
        self.reach = reach::reach(seat, &roots, beat)?;
        if !self.reach.commits.is_empty() {
            self.manifest.contents = self.manifest.contents.with(Unsaved::COMMITS);
        }
        let names = |list: &[reach::Object]| list.iter().map(|o| o.oid.clone()).collect();
        self.manifest.commits = names(&self.reach.commits);
        self.manifest.tags = names(&self.reach.tags);
        self.manifest.objects = self.reach.objects.iter().map(|(oid, _k)| oid.clone()).collect();
        Ok(())
    }

    /// Adds up what an entry would hold of unsaved work (W-34).
    fn size(
        &mut self,
        seat: &Seat<'_>,
        staged: &BTreeSet<String>,
        beat: &mut Beat<'_>,
    ) -> Result<(), WorkspaceError> {
        let objects: BTreeSet<String> = self.reach.parts.union(staged).cloned().collect();
        let objects = reach::sizes(seat, &objects, beat)?;
        let files = self.manifest.files.iter().filter(|f| f.unsaved).map(|f| f.size);
        let admin = self.glance.admin.iter().map(|a| a.seen.sign.size);
        let raw = self.reach.commits.iter().chain(&self.reach.tags).map(|o| o.bytes.len() as u64);
        self.manifest.size =
            objects.values().map(|(_kind, size)| *size).chain(files).chain(admin).chain(raw).sum();
        Ok(())
    }
}

/// The index, whole. A split or sparse one is put together by git, in a scratch of ours.
fn read_index(
    seat: &Seat<'_>,
    scratch: &Scratch<'_>,
    raw: Option<&[u8]>,
    beat: &mut Beat<'_>,
) -> Result<(Index, Vec<u8>), WorkspaceError> {
    let wrong = |why: String| {
        fail(
            Reason::Io,
            &seat.admin.join("index"),
            format!("the index cannot be read: {why}"),
            "look at it with `git ls-files --stage`; `git read-tree HEAD` makes a new one",
        )
    };
    let Some(raw) = raw else {
        return Ok((Index::default(), Index::empty_bytes(seat.format)));
    };
    let index = Index::parse(raw, seat.format).map_err(wrong)?;
    if !index.is_split && !index.is_sparse {
        let plain = index.plain(raw, seat.format);
        return Ok((index, plain));
    }
    let whole = scratch.whole_index(seat, raw, beat)?;
    let index = Index::parse(&whole, seat.format).map_err(wrong)?;
    let plain = index.plain(&whole, seat.format);
    Ok((index, plain))
}

/// What git takes for untracked and not ignored. Asked with a copy of the index.
fn untracked(
    seat: &Seat<'_>,
    scratch: &Scratch<'_>,
    plain: &[u8],
    beat: &mut Beat<'_>,
) -> Result<BTreeSet<Vec<u8>>, WorkspaceError> {
    let copy = scratch.write("index", plain)?;
    let env: &[(&str, &OsStr)] = &[("GIT_INDEX_FILE", copy.as_os_str())];
    let args = ["ls-files", "-z", "--others", "--exclude-standard"];
    let listed = seat.ask(&args, b"", env, beat)?;
    Ok(listed.split(|b| *b == 0).filter(|p| !p.is_empty()).map(<[u8]>::to_vec).collect())
}

/// Whether what is there can be what the index means.
fn fits(entry: &Entry, kind: Kind) -> bool {
    match kind {
        // A link in a file's place, or the other way round, is a change of the tracked path.
        Kind::File | Kind::Link => !entry.is_gitlink(),
        Kind::Dir => entry.is_gitlink(),
        Kind::Special | Kind::Absent => false,
    }
}

fn file_line(s: &Seen) -> FileLine {
    FileLine {
        path: s.path.clone(),
        kind: s.kind,
        class: Class::Untracked,
        perm: s.sign.perm(),
        size: s.sign.size,
        mtime: s.sign.mtime_ns(),
        oid: String::new(),
        at: At::Nowhere,
        unsaved: false,
    }
}

fn kind_of(class: Class) -> Unsaved {
    match class {
        Class::Tracked => Unsaved::TRACKED,
        Class::Untracked => Unsaved::UNTRACKED,
        Class::Ignored => Unsaved::IGNORED,
        Class::Submodule => Unsaved::SUBMODULE,
    }
}

/// What is declared rebuildable, and the folders that hold nothing else: an entry has neither
/// (W-33).
#[derive(Default)]
struct Rebuilt<'s> {
    files: Rebuildable,
    only: BTreeSet<&'s [u8]>,
}

impl<'s> Rebuilt<'s> {
    fn of(
        seat: &Seat<'_>,
        seen: &'s [Seen],
        gitlinks: &[Vec<u8>],
        untracked: &BTreeSet<Vec<u8>>,
    ) -> Result<Rebuilt<'s>, WorkspaceError> {
        let files = seat.rebuildable()?;
        if files.is_empty() {
            return Ok(Rebuilt { files, only: BTreeSet::new() });
        }
        let (mut only, mut more) = (BTreeSet::new(), BTreeSet::new());
        for s in seen.iter().filter(|s| s.kind != Kind::Dir) {
            // A pattern reaches only what git ignores.
            let own = files.has(&s.path)
                && !untracked.contains(&s.path)
                && !gitlinks.iter().any(|g| is_in(&s.path, g));
            if own { &mut only } else { &mut more }.extend(above(&s.path));
        }
        only.retain(|folder| !more.contains(folder));
        Ok(Rebuilt { files, only })
    }

    fn has(&self, s: &Seen) -> bool {
        match s.kind {
            Kind::Dir => self.only.contains(s.path.as_slice()),
            Kind::File | Kind::Link | Kind::Special | Kind::Absent => self.files.has(&s.path),
        }
    }
}

/// Every folder above a path.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_n, b)| **b == b'/').map(|(n, _b)| &path[..n])
}

fn joined_stage(e: &Entry) -> Vec<u8> {
    let mut path = e.path.clone();
    path.push(0);
    path.push(b'0' + e.stage);
    path
}

fn bytes_of(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().to_vec()
}
