//! The private store (W-34): one bare repository per object format beside the managed root's
//! content, one ref per entry, nothing borrowed from anywhere. And the scratch beside it, in which
//! an entry is put together: only the scratch ever borrows objects of the user's repository, and
//! whatever stops a salvage leaves nothing behind but a folder that the next one clears away.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use freehold_kernel::Reason;
use freehold_store::workspaces::{RootPlace, WorkspaceError};

use super::hash::Format;
use super::seat::{Bare, Beat, Pipe, Seat};
use rustix::fs::CWD;

use crate::disk::{self as fs, File, at};
use crate::error::{fail, io_fail, os_fail};
use crate::process::{Git, Input};
use crate::purge::remove_tree;
use crate::refs::Change;
use crate::root::{At, book, component, digest, is_there, make_folders, remove_empty, walk_to};

/// Where entries are.
pub(crate) const REFS: &str = "refs/salvage/";

/// Written through to the disk before anything is called kept.
pub(crate) const DURABLE: &[&str] = &["core.fsync=all", "core.fsyncMethod=fsync"];

/// What is put together in the scratch is written through when it leaves it, and not before.
/// Its content is packed fast rather than small: a removal waits for it.
pub(super) const FLEETING: &[&str] = &["core.fsync=none", "pack.compression=1"];

/// How many packs are looked through for what is kept already.
const LENT_MAX: usize = 1000;

/// The private store of one object format.
pub(crate) struct Store<'a> {
    /// The repository.
    pub(crate) repo: Bare<'a>,
    root: RootPlace,
    format: Format,
}

impl<'a> Store<'a> {
    /// The store beside a root, which need not be there yet.
    pub(crate) fn new(git: &'a Git, root: &RootPlace, format: Format) -> Store<'a> {
        let name = match format {
            Format::Sha1 => "salvage.git",
            Format::Sha256 => "salvage-sha256.git",
        };
        Store { repo: Bare::new(git, book(root).join(name)), root: root.clone(), format }
    }

    /// Whether anything was ever kept in it.
    pub(crate) fn exists(&self) -> Result<bool, WorkspaceError> {
        is_there(&self.repo.dir.join("HEAD"))
    }

    /// Makes it on its first use. Made beside its place and moved there whole, so that a crash
    /// leaves no half of it.
    pub(crate) fn open(&self, scratch: &Scratch<'_>) -> Result<(), WorkspaceError> {
        if self.exists()? {
            return Ok(());
        }
        make_folders(&self.root.path, &book(&self.root))?;
        let made = Bare::new(self.repo.git(), scratch.dir.join("new.git"));
        made.init(self.format)?;
        let config = made.dir.join("config");
        let mut text = fs::read(&config).map_err(|e| io_fail(&config, "cannot read it", &e))?;
        // Nobody collects it but a person or `freehold gc`; entries are refs, so even a person's
        // own `git gc --prune=now` keeps them.
        text.extend_from_slice(b"[gc]\n\tauto = 0\n[receive]\n\tdenyDeletes = true\n");
        fs::write(&config, &text).map_err(|e| io_fail(&config, "cannot write it", &e))?;
        sync_all(&made.dir)?;
        match fs::rename(&made.dir, &self.repo.dir) {
            Ok(()) => sync(&book(&self.root)),
            // Another salvage was first.
            Err(_) if self.exists()? => Ok(()),
            Err(e) => Err(io_fail(&self.repo.dir, "cannot make the salvage store", &e)),
        }
    }

    /// The commit of an entry; none if there is no such entry.
    pub(crate) fn tip(
        &self,
        ref_name: &str,
        beat: &mut Beat<'_>,
    ) -> Result<Option<String>, WorkspaceError> {
        if !self.exists()? {
            return Ok(None);
        }
        let revision = format!("{ref_name}^{{commit}}");
        self.repo.ask_if(&["rev-parse", "--quiet", "--verify", &revision], beat)
    }

    /// Refuses unless git lists every ref that lies on the disk.
    pub(crate) fn refuse_unless_listed(&self, beat: &mut Beat<'_>) -> Result<(), WorkspaceError> {
        let folder = self.repo.dir.join(REFS);
        let there = match fs::read_dir(&folder) {
            Ok(there) => there,
            Err(e) if fs::is_absence(&e) => return Ok(()),
            Err(e) => return Err(io_fail(&folder, "cannot list the entries", &e)),
        };
        let listed =
            self.repo.ask(&["for-each-ref", "--format=%(refname)", REFS], Pipe::default(), beat)?;
        let listed: BTreeSet<&[u8]> = listed.split(|b| *b == b'\n').collect();
        for entry in there {
            let name = entry.file_name();
            // A lock that a killed git left is no entry.
            if name.as_bytes().ends_with(b".lock") {
                continue;
            }
            let name = [REFS.as_bytes(), name.as_bytes()].concat();
            if !listed.contains(name.as_slice()) {
                return Err(fail(
                    Reason::Io,
                    &entry.path(),
                    "git does not list this entry, and would free what it holds",
                    "look at it with `git for-each-ref` and `git fsck` in the private store",
                ));
            }
        }
        Ok(())
    }

    /// Packs everything that a commit of the scratch needs and that is in no pack here yet, still
    /// in the scratch. Returns the folder of the pack.
    pub(crate) fn pack(
        &self,
        scratch: &Scratch<'_>,
        seat: &Seat<'_>,
        commit: &str,
        beat: &mut Beat<'_>,
    ) -> Result<PathBuf, WorkspaceError> {
        let borrowed = borrow(seat);
        let env: &[(&str, &OsStr)] = &[("GIT_ALTERNATE_OBJECT_DIRECTORIES", &borrowed)];
        let out = scratch.dir.join("out");
        fs::create_dir_all(&out).map_err(|e| io_fail(&out, "cannot make the folder", &e))?;
        let base = out.join("pack");
        let base = base.to_string_lossy();
        // No search for deltas: what is worth it is packed in the user's repository already, and
        // those deltas are taken over.
        let args = ["pack-objects", "--quiet", "--revs", "--delta-base-offset", "--window=0"];
        let kept = self.lend(scratch)?;
        let kept: Vec<String> = kept.iter().map(|name| format!("--keep-pack={name}")).collect();
        let args: Vec<&str> =
            args.into_iter().chain(kept.iter().map(String::as_str)).chain([&*base]).collect();
        let stdin = Input::Bytes(commit.as_bytes());
        scratch.repo.ask(&args, Pipe { stdin, env, config: FLEETING, ..Pipe::default() }, beat)?;
        Ok(out)
    }

    /// Shows the scratch the packs that are here, by links, so that git leaves out what they
    /// have: only a repository's own packs can be named to it. Asked object by object it would
    /// list the folder again for each one that is not here. Returns their names.
    fn lend(&self, scratch: &Scratch<'_>) -> Result<Vec<String>, WorkspaceError> {
        let (from, to) = (self.packs(), scratch.repo.dir.join("objects/pack"));
        let cannot = |e: &io::Error| io_fail(&from, "cannot list the packs", e);
        let entries = match fs::read_dir(&from) {
            Ok(entries) => entries,
            Err(e) if fs::is_absence(&e) => return Ok(Vec::new()),
            Err(e) => return Err(cannot(&e)),
        };
        let mut packs = Vec::new();
        for entry in entries {
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.ends_with(".pack") {
                packs.push((entry.metadata().map_err(|e| cannot(&e))?.len(), name));
            }
        }
        // What is in the smallest of very many is kept once more; that costs room and no work.
        packs.sort_unstable_by(|a, b| b.cmp(a));
        packs.truncate(LENT_MAX);
        for (_size, name) in &packs {
            let stem = name.strip_suffix("pack").unwrap_or(name);
            for end in ["pack", "idx"] {
                let name = format!("{stem}{end}");
                at::symlinkat(&from.join(&name), CWD, &to.join(&name))
                    .map_err(|e| os_fail(&to, "cannot lend the scratch a pack", e))?;
            }
        }
        Ok(packs.into_iter().map(|(_size, name)| name).collect())
    }

    fn packs(&self) -> PathBuf {
        self.repo.dir.join("objects/pack")
    }

    /// Moves a finished pack in, written through, its index last: git looks at nothing before that
    /// is there.
    /// Returns that index.
    pub(crate) fn adopt(&self, out: &Path) -> Result<Option<PathBuf>, WorkspaceError> {
        let packs = self.packs();
        fs::create_dir_all(&packs).map_err(|e| io_fail(&packs, "cannot make the folder", &e))?;
        let mut names = Vec::new();
        for entry in fs::read_dir(out).map_err(|e| io_fail(out, "cannot list the pack", &e))? {
            names.push(entry.file_name());
        }
        names.sort_by_key(|name| name.as_bytes().ends_with(b".idx"));
        let mut index = None;
        for name in names {
            let (from, to) = (out.join(&name), packs.join(&name));
            sync(&from)?;
            fs::rename(&from, &to).map_err(|e| io_fail(&to, "cannot move the pack in", &e))?;
            if name.as_bytes().ends_with(b".idx") {
                index = Some(to);
            }
        }
        sync(&packs)?;
        Ok(index)
    }

    /// Points an entry at a commit, if it still points where it did.
    pub(crate) fn point(
        &self,
        ref_name: &str,
        to: &str,
        from: Option<&str>,
        beat: &mut Beat<'_>,
    ) -> Result<(), WorkspaceError> {
        let null = self.format.null();
        let args = ["update-ref", "--no-deref", ref_name, to, from.unwrap_or(&null)];
        self.repo.change(Change::Set, ref_name, &args, DURABLE, beat)?;
        for folder in ["refs/salvage", "refs"] {
            sync(&self.repo.dir.join(folder))?;
        }
        Ok(())
    }

    /// Takes an entry back that did not verify.
    pub(crate) fn unpoint(
        &self,
        ref_name: &str,
        at: &str,
        back: Option<&str>,
        beat: &mut Beat<'_>,
    ) -> Result<(), WorkspaceError> {
        let (what, args) = match back {
            Some(back) => (Change::Set, vec!["update-ref", "--no-deref", ref_name, back, at]),
            None => (Change::Delete, vec!["update-ref", "--no-deref", "-d", ref_name, at]),
        };
        self.repo.change(what, ref_name, &args, &[], beat)
    }

    /// Reads an entry back: every object that it needs is here, without any other repository,
    /// and the new pack's bytes are what their names say (W-34).
    pub(crate) fn verify(
        &self,
        ref_name: &str,
        commit: &str,
        pack: Option<&Path>,
        beat: &mut Beat<'_>,
    ) -> Result<(), WorkspaceError> {
        let bad = |what: String| {
            fail(
                Reason::Io,
                &self.repo.dir,
                format!("the salvage was read back and is not whole: {what}"),
                "nothing was removed; look at the disk, then retry",
            )
        };
        if self.tip(ref_name, beat)?.as_deref() != Some(commit) {
            return Err(bad(format!("{ref_name} does not name it")));
        }
        // It looks every object up, files too, and ends with the name of the first that is missing.
        let args = ["rev-list", "--objects", "--quiet", commit];
        self.repo.ask(&args, Pipe::default(), beat).map_err(|e| bad(e.detail))?;
        if let Some(pack) = pack {
            let name = pack.to_string_lossy();
            self.repo
                .ask(&["verify-pack", &name], Pipe::default(), beat)
                .map_err(|e| bad(e.detail))?;
        }
        Ok(())
    }
}

/// Where the scratches of a root lie.
fn scratches(root: &RootPlace) -> PathBuf {
    book(root).join("salvage-scratch")
}

/// Removes what lies in all of them, never through a link. The caller has made sure that nobody is
/// at work in one; what cannot be removed is in nobody's way, and is tried again by the next.
pub(crate) fn clear_scratches(root: &RootPlace) {
    let folder = scratches(root);
    let Ok(names) = folder.strip_prefix(&root.path) else { return };
    let names: Vec<OsString> = names.iter().map(OsStr::to_os_string).collect();
    let Ok(At::Folder(_)) = walk_to(&root.path, &names) else { return };
    let Ok(all) = fs::read_dir(&folder) else { return };
    for entry in all {
        let _next_time = remove_tree(&root.path, &entry.path(), &mut || true);
    }
}

/// A folder in which an entry is put together or taken apart; gone when this is dropped.
pub(crate) struct Scratch<'a> {
    /// Where it lies.
    pub(crate) dir: PathBuf,
    /// Its repository.
    pub(crate) repo: Bare<'a>,
    root: RootPlace,
    format: Format,
}

impl<'a> Scratch<'a> {
    /// An empty one. One step at a time works on one path (W-13), so what lies there is what an
    /// earlier step left when it was killed.
    pub(crate) fn new(
        git: &'a Git,
        root: &RootPlace,
        name: &str,
        format: Format,
    ) -> Result<Scratch<'a>, WorkspaceError> {
        let dir = scratches(root).join(component(name));
        let repo = Bare::new(git, dir.join("git"));
        let scratch = Scratch { dir, repo, root: root.clone(), format };
        scratch.clear()?;
        Ok(scratch)
    }

    /// Empties it for another try.
    pub(crate) fn clear(&self) -> Result<(), WorkspaceError> {
        match fs::remove_dir_all(&self.dir) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(io_fail(&self.dir, "cannot clear the scratch", &e)),
        }
        make_folders(&self.root.path, &self.dir)?;
        self.repo.init(self.format)
    }

    /// Writes a file into it.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, WorkspaceError> {
        let path = self.dir.join(name);
        fs::write(&path, bytes).map_err(|e| io_fail(&path, "cannot write to the scratch", &e))?;
        Ok(path)
    }

    /// A copy of an index whose time is right after the epoch: older than any file it tells of.
    pub(crate) fn old_index(&self, plain: &[u8]) -> Result<PathBuf, WorkspaceError> {
        let path = self.write("index-old", plain)?;
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        File::open(&path)
            .and_then(|file| file.set_modified(old))
            .map_err(|e| io_fail(&path, "cannot set the time of a scratch's file", &e))?;
        Ok(path)
    }

    /// Makes and opens a file in it for writing and reading.
    pub(crate) fn create(&self, name: &str) -> Result<File, WorkspaceError> {
        let path = self.dir.join(name);
        File::create(&path).map_err(|e| io_fail(&path, "cannot write to the scratch", &e))
    }

    /// Has git put a split or sparse index together. It works on copies: reading the user's own
    /// would touch the shared index file.
    pub(crate) fn whole_index(
        &self,
        seat: &Seat<'_>,
        raw: &[u8],
        beat: &mut Beat<'_>,
    ) -> Result<Vec<u8>, WorkspaceError> {
        for (name, bytes) in shared_indexes(seat)? {
            let path = self.repo.dir.join(&name);
            fs::write(&path, bytes)
                .map_err(|e| io_fail(&path, "cannot write to the scratch", &e))?;
        }
        let copy = self.write("index-whole", raw)?;
        let borrowed = borrow(seat);
        let env: &[(&str, &OsStr)] = &[
            ("GIT_INDEX_FILE", copy.as_os_str()),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", &borrowed),
        ];
        let args = ["update-index", "--no-split-index", "--force-write-index"];
        self.repo.ask(&args, Pipe { env, ..Pipe::default() }, beat)?;
        fs::read(&copy).map_err(|e| io_fail(&copy, "cannot read the scratch", &e))
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        // What stays is cleared by the next step at this path.
        let _kept = fs::remove_dir_all(&self.dir);
        if let Some(folder) = self.dir.parent() {
            remove_empty(&self.root.path, folder);
        }
    }
}

/// The shared parts of a split index.
pub(crate) fn shared_indexes(seat: &Seat<'_>) -> Result<Vec<(String, Vec<u8>)>, WorkspaceError> {
    let mut out = Vec::new();
    let entries =
        fs::read_dir(&seat.admin).map_err(|e| io_fail(&seat.admin, "cannot list it", &e))?;
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("sharedindex.")
            && let Some(bytes) = seat.admin_file(&name)?
        {
            out.push((name, bytes));
        }
    }
    Ok(out)
}

/// The user's objects as git reads them from its environment: quoted, so that no path is taken
/// for a list.
pub(crate) fn borrow(seat: &Seat<'_>) -> std::ffi::OsString {
    let mut out = vec![b'"'];
    for byte in seat.objects.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            0..=0x1f | 0x7f.. => out.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
            plain => out.push(*plain),
        }
    }
    out.push(b'"');
    OsStr::from_bytes(&out).to_os_string()
}

/// The ref of an entry: its own name where git allows that, else a digest of it.
pub(crate) fn ref_of(entry: &str) -> String {
    let name = component(entry);
    let plain = !name.contains("..") && !name.ends_with('.') && !name.ends_with(".lock");
    format!("{REFS}{}", if plain { name } else { digest(entry.as_bytes()) })
}

/// Refuses a name that is no entry's ref.
pub(crate) fn check_ref(root: &RootPlace, ref_name: &str) -> Result<(), WorkspaceError> {
    match ref_name.strip_prefix(REFS) {
        Some(name) if ref_of(name) == ref_name => Ok(()),
        Some(_) | None => Err(fail(
            Reason::Io,
            &root.path,
            format!("{ref_name:?} is no salvage entry's name"),
            "take a name from the list of salvage entries",
        )),
    }
}

/// Writes a file or folder through to the disk.
pub(crate) fn sync(path: &Path) -> Result<(), WorkspaceError> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(|e| io_fail(path, "cannot write it through to the disk", &e))
}

/// The same for a small tree of our own.
fn sync_all(folder: &Path) -> Result<(), WorkspaceError> {
    let entries = fs::read_dir(folder).map_err(|e| io_fail(folder, "cannot list it", &e))?;
    for entry in entries {
        if entry.is_dir().map_err(|e| io_fail(folder, "cannot list it", &e))? {
            sync_all(&entry.path())?;
        } else {
            sync(&entry.path())?;
        }
    }
    sync(folder)
}
