//! Salvage (W-33, W-34): everything unsaved in a worktree, kept in a private store before the
//! worktree goes, and put back exactly.
//!
//! The store is a bare git repository in Freehold's own folder of the managed root, one for each
//! object format, with one ref per entry:
//! ```text
//! <root>/.freehold/<store>/salvage.git          refs/salvage/<entry>   (sha1)
//! <root>/.freehold/<store>/salvage-sha256.git   refs/salvage/<entry>   (sha256)
//! ```
//! It has no remote and no alternates, and the user's repository gets neither a ref nor an object
//! of it: no push or clone of that repository can carry it along, its disappearance takes nothing
//! away, and since every entry is a ref, `git gc --prune=now` in either repository does not
//! either. An entry is one commit without parents:
//! ```text
//! manifest              the list: one JSON object per line, names percent-encoded
//! index/raw, index/plain    the index file as it was; the same without caches, whole if split
//! staged/<stage>/<path>     what the index has and the base has not
//! worktree/<path>       changed and untracked files and links, byte for byte, no filter applied
//! ignored/<path>        ignored ones
//! submodule/<path>      everything inside submodules
//! admin/<path>          the administration directory: operations in progress and the like
//! commits/<id>/commit, commits/<id>/tree    commits that nothing else reaches
//! tags/<id>, objects/<id>   other objects that only this worktree's state names
//! base/commit, base/tree    the commit it was taken on, if there was room for its files
//! ```
//! A name that git refuses in a tree is written with a `%` (`.git` as `%2egit`).
//!
//! # Reading it with git alone
//! ```text
//! git --git-dir=<store> for-each-ref refs/salvage
//! git --git-dir=<store> show refs/salvage/<entry>:manifest
//! git --git-dir=<store> show refs/salvage/<entry>:worktree/<path>
//! git --git-dir=<store> archive refs/salvage/<entry> worktree ignored | tar -x -C <folder>
//! git --git-dir=<store> cat-file blob refs/salvage/<entry>:commits/<id>/commit |
//!     git hash-object -t commit -w --stdin      (in a repository that has the tree's objects)
//! ```
//!
//! # What is not kept
//! Times, owners, extended attributes and hard links; the content of sockets, pipes and devices
//! (named in a note); the index's caches. Another repository inside that is no submodule is
//! refused (`nested_repository`), and so is a mount point. Past the limit the answer is
//! `too_large`, and nothing is written.

mod admin;
mod exact;
mod give;
mod glance;
mod hash;
mod index;
mod kept;
mod manifest;
mod memory;
mod put;
mod reach;
mod restore;
mod save;
mod scan;
mod seat;
mod store;
mod survey;
#[cfg(test)]
mod tests;
mod tracked;
mod writer;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use freehold_kernel::Unsaved;
use freehold_store::workspaces::{Place, Pulse, Restored, RootPlace, SalvageMade, WorkspaceError};

use crate::lock::{lock_collect, lock_salvage};
use crate::process::Git;
pub(crate) use hash::Format;
pub(crate) use kept::kept;
use manifest::Manifest;
pub(crate) use memory::Memory;
use seat::{Beat, Pipe, Seat, lines};
use store::{REFS, Store};
pub(crate) use survey::is_part;

/// How long a salvage waits for a collection of the private stores, and the other way round.
const COLLECTING: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });

/// A salvage entry, as the list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SalvageEntry {
    /// Its ref in the private store.
    pub ref_name: String,
    /// The repository that has it.
    pub store: std::path::PathBuf,
    /// The commit that it was taken on, in hex; empty for an unborn branch.
    pub base: String,
    /// The branch that was checked out; empty for a detached head.
    pub head: String,
    /// Where the worktree was.
    pub worktree: std::path::PathBuf,
    /// Bytes of unsaved content.
    pub size: u64,
    /// What kinds of unsaved work are in it.
    pub contents: Unsaved,
}

/// How much an entry may and must hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    /// The most bytes of unsaved content (W-34).
    pub(crate) limit: u64,
    /// Also if nothing is unsaved: the head, what only its branch reaches, and the index, since
    /// the worktree lies in trash for a while and no garbage collection may hollow it out (W-35).
    pub(crate) head: bool,
}

/// Keeps everything unsaved in the worktree at a place as one entry (W-34), read back and
/// compared. The same entry kept again is replaced. None if nothing is unsaved and a branch is
/// checked out: a detached head is always kept.
///
/// # Errors
/// Nothing was kept, an earlier entry of this name stands, and neither the worktree nor its
/// repository was written to: too large, changing all the time, another repository or mount point
/// inside, something that cannot be read, or a full disk.
pub(crate) fn save(
    git: &Git,
    place: &Place,
    entry: &str,
    keep: Keep,
    pulse: Pulse<'_>,
) -> Result<Option<SalvageMade>, WorkspaceError> {
    let seat = Seat::of(git, place)?;
    let _collected_later = attend(&place.root)?;
    save::save(git, &seat, place, entry, keep, pulse)
}

/// Keeps collections out until it is dropped. If nobody is at work, what those left in their
/// scratches who were killed is removed first: the next one may have another name, and it is a
/// copy of somebody's work.
fn attend(root: &RootPlace) -> Result<OwnedFd, WorkspaceError> {
    if let Ok(_alone) = lock_collect(root, Duration::ZERO) {
        store::clear_scratches(root);
    }
    lock_salvage(root, COLLECTING)
}

/// What an entry gave back to a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    /// What kinds of unsaved work were kept in the entry.
    pub(crate) contents: Unsaved,
    /// Whether the repository now has every file of the commit that was checked out.
    pub(crate) whole: bool,
    /// The commit that the entry was taken on, in hex; empty for an unborn branch.
    pub(crate) base: String,
}

/// Gives the repository what an entry holds of index, head and own refs, for a worktree that
/// comes out of trash (W-35). It lies at `work`, registered, so that what is given is kept.
///
/// # Errors
/// If the entry cannot be read, or the repository cannot be written.
pub(crate) fn give(
    git: &Git,
    place: &Place,
    work: &std::path::Path,
    proof: &crate::identity::Proof,
    ref_name: &str,
    pulse: Pulse<'_>,
) -> Result<Given, WorkspaceError> {
    store::check_ref(&place.root, ref_name)?;
    let _collected_later = attend(&place.root)?;
    let seat = Seat::with(git, work, proof.clone())?;
    let mut beat = Beat::new(pulse, &place.path);
    let store = Store::new(git, &place.root, seat.format);
    let name = format!("restore-{}", hash::hex(place.path.as_os_str().as_encoded_bytes()));
    let scratch = store::Scratch::new(git, &place.root, &name, seat.format)?;
    let manifest = restore::read(&store, ref_name, &mut beat)?;
    give::give_objects(&seat, &store, &scratch, &manifest, ref_name, &mut beat)?;
    let whole = give::give_base(&seat, &store, &scratch, &manifest, ref_name, &mut beat)?;
    Ok(Given { contents: manifest.contents, whole, base: manifest.base })
}

/// Puts an entry back into a clean worktree at a place (W-34): exactly, if its head is where the
/// entry was taken; otherwise as far as it meets no other change, and the notes say what stays in
/// salvage. Restoring again finishes what was stopped.
///
/// # Errors
/// [`freehold_kernel::Reason::Unsaved`] if the worktree has work of its own; or the entry cannot
/// be read.
pub(crate) fn restore(
    git: &Git,
    place: &Place,
    ref_name: &str,
) -> Result<Restored, WorkspaceError> {
    let _collected_later = attend(&place.root)?;
    restore::restore(git, place, ref_name)
}

/// The salvage entries beside a root, in the order of their names.
///
/// # Errors
/// If a private store is there and cannot be read.
pub fn list(root: &RootPlace) -> Result<Vec<SalvageEntry>, WorkspaceError> {
    use std::os::unix::ffi::OsStringExt;
    let git = Git::new();
    let mut on = || true;
    let mut beat = Beat::new(&mut on, &root.path);
    let mut out = Vec::new();
    for format in [Format::Sha1, Format::Sha256] {
        let store = Store::new(&git, root, format);
        if !store.exists()? {
            continue;
        }
        // The list's first line is in the commit's message, so nothing large is read here.
        let args = ["for-each-ref", "--format=%(refname) %(contents:body)", REFS];
        for line in lines(&store.repo.ask(&args, Pipe::default(), &mut beat)?) {
            let Some((ref_name, header)) = line.split_once(' ') else { continue };
            let Ok(entry) = Manifest::parse(header) else { continue };
            out.push(SalvageEntry {
                ref_name: ref_name.to_owned(),
                store: store.repo.dir.clone(),
                base: entry.base,
                head: entry.head,
                worktree: std::ffi::OsString::from_vec(entry.worktree).into(),
                size: entry.size,
                contents: entry.contents,
            });
        }
    }
    Ok(out)
}

/// Lets go of an entry whose row says that it has expired; false if it was not there any more.
/// What it held goes with the private store's next garbage collection.
///
/// # Errors
/// If the private store is there and cannot be written.
pub fn expire(root: &RootPlace, ref_name: &str) -> Result<bool, WorkspaceError> {
    store::check_ref(root, ref_name)?;
    crate::root::check_root(root)?;
    // Only a git that inherits this one inherits the lock of the refs as well.
    let git = Git::new().holding(Arc::new(lock_salvage(root, COLLECTING)?));
    let mut on = || true;
    let mut beat = Beat::new(&mut on, &root.path);
    for format in [Format::Sha1, Format::Sha256] {
        let store = Store::new(&git, root, format);
        if !store.exists()? {
            continue;
        }
        if let Some(tip) = store.tip(ref_name, &mut beat)? {
            store.unpoint(ref_name, &tip, None, &mut beat)?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// Frees what no entry of the private stores beside a root holds any more, and nothing else. A
/// root that is not there, or has no private store, costs nothing.
///
/// # Errors
/// If a private store is there and cannot be collected; [`freehold_kernel::Reason::Contested`] if
/// something is being salvaged all the time.
pub fn reclaim(root: &RootPlace) -> Result<(), WorkspaceError> {
    crate::root::check_root(root)?;
    // Git inherits it, so that a collector that is killed keeps salvages out until git has ended.
    let git = Git::new().holding(Arc::new(lock_collect(root, COLLECTING)?));
    store::clear_scratches(root);
    let mut on = || true;
    let mut beat = Beat::new(&mut on, &root.path);
    for format in [Format::Sha1, Format::Sha256] {
        let store = Store::new(&git, root, format);
        if store.exists()? {
            // Git takes a folder of refs that it cannot read for one without refs, and would free
            // everything that they hold.
            store.refuse_unless_listed(&mut beat)?;
            let args = ["gc", "--quiet", "--prune=now"];
            // Either would leave a lock behind if it were killed, and then fail for ever (W-12).
            let config = &["gc.packRefs=false", "gc.writeCommitGraph=false"];
            store.repo.ask(&args, Pipe { config, ..Pipe::default() }, &mut beat)?;
        }
    }
    Ok(())
}

/// The lines of an entry's list.
///
/// # Errors
/// If there is no such entry, or it cannot be read.
pub fn show(root: &RootPlace, ref_name: &str) -> Result<Vec<String>, WorkspaceError> {
    store::check_ref(root, ref_name)?;
    let git = Git::new();
    let mut on = || true;
    let mut beat = Beat::new(&mut on, &root.path);
    let sha1 = Store::new(&git, root, Format::Sha1);
    let sha256 = Store::new(&git, root, Format::Sha256);
    let store = if sha1.tip(ref_name, &mut beat)?.is_some() { sha1 } else { sha256 };
    let manifest = restore::read(&store, ref_name, &mut beat)?;
    Ok(manifest.to_text().lines().map(str::to_owned).collect())
}
