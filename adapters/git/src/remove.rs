//! Removing a worktree, one step at a time (W-35). Each step finds out what is there before it
//! does anything, so it recognises that it was done and not recorded (W-37), and refuses what is
//! not the recorded worktree (W-31).

mod untrash;
mod way_back;

use std::collections::HashSet;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use freehold_kernel::{Reason, RemovalStep, Unsaved};
use freehold_store::workspaces::{Place, Pulse, SalvageMade, StepDone, WorkspaceError};
use rustix::fs::CWD;
use rustix::io::Errno;

use crate::branch;
use crate::disk::{self as fs, at};
use crate::error::{fail, io_fail, os_fail, show};
use crate::identity::{
    Proof, common_dir, find_common_dir, is_half_made, is_stamped, prove_at, refuse_foreign_lock,
    registered,
};
use crate::inspect::{Standing, standing, survey};
use crate::lock::{PathLock, lock_registry};
use crate::manifest::{self, Manifest};
use crate::process::Git;
use crate::purge::remove_tree;
use crate::root::{
    aside_path, check_root, check_trash, component, is_there, make_folders, remove_empty,
    trash_path,
};
use crate::tree::{self, Tree};
use crate::unsaved::{Target, look};
use crate::users::standing_in;

/// How often a tree that changes under a removal is salvaged again before the step gives up.
const COMPARE_TRIES: u32 = 3;

/// What the steps of one removal work with.
pub(crate) struct Removal<'a> {
    /// Git, handing on the path lock.
    pub(crate) git: &'a Git,
    /// The path lock.
    pub(crate) lock: &'a PathLock,
    /// What is removed.
    pub(crate) place: &'a Place,
    /// The removal's id as text: it names the trash, the manifest and the salvage.
    pub(crate) id: &'a str,
    /// The most bytes that salvage may take.
    pub(crate) limit: u64,
    /// Whether the branch may go.
    pub(crate) may_delete_branch: bool,
    /// The removal undoes an attempt: only what that attempt made may go (W-4).
    pub(crate) undoes: bool,
    /// The kinds that a person consented to lose; anything else is kept first (W-34).
    pub(crate) may_discard: Unsaved,
    /// The trash stays for a while: its head and index are salvaged even if nothing is unsaved
    /// (W-35).
    pub(crate) keep_trash: bool,
    /// How long to wait for the registry lock.
    pub(crate) wait: Duration,
}

fn done(found_something: bool) -> StepDone {
    StepDone { found_something, salvage: None, trash_path: None, admin_path: None, branch: None }
}

/// Renames without ever replacing anything.
fn rename(from: &Path, to: &Path, what: &str) -> Result<(), WorkspaceError> {
    at::rename_new(CWD, from, CWD, to).map_err(|e| match e {
        Errno::EXIST => fail(
            Reason::IdentityMismatch,
            to,
            format!("{what}: {} is there already", show(to)),
            "look at what stands there; nothing is overwritten",
        ),
        e => os_fail(from, what, e),
    })
}

impl Removal<'_> {
    /// Takes one step.
    pub(crate) fn take(
        &self,
        step: RemovalStep,
        pulse: Pulse<'_>,
    ) -> Result<StepDone, WorkspaceError> {
        check_root(&self.place.root)?;
        match step {
            // True already: it is the row that stands behind the warrant.
            RemovalStep::Permitted => Ok(done(true)),
            RemovalStep::Salvaged => self.salvage(pulse),
            RemovalStep::Renamed => self.rename(),
            RemovalStep::Compared => self.compare(pulse),
            RemovalStep::Unregistered => {
                let done = self.unregister()?;
                // Not only with the purge: trash may be kept for weeks (W-42).
                self.remove_empty_parents();
                Ok(done)
            }
            RemovalStep::BranchSettled => self.settle_branch(),
            RemovalStep::Purged => self.purge(pulse),
            RemovalStep::Returned => self.put_back(),
        }
    }

    fn trash(&self) -> Result<PathBuf, WorkspaceError> {
        trash_path(self.place, self.id)
    }

    /// Where the registration goes: a folder of Freehold's in the same common git directory.
    fn admin_trash(&self, common: &Path) -> PathBuf {
        common
            .join("freehold")
            .join(component(&self.place.root.store))
            .join("admin")
            .join(component(self.id))
    }

    /// Everything of W-31 once more, then the manifest, then salvage. What the manifest says is
    /// read before anything is concluded: what changes meanwhile is then seen by the compare.
    pub(crate) fn salvage(&self, pulse: Pulse<'_>) -> Result<StepDone, WorkspaceError> {
        check_trash(&self.place.root)?;
        match standing(self.place)? {
            Standing::Here(proof) => {
                let salvage = self.save(&proof, pulse)?;
                Ok(StepDone { salvage, ..done(true) })
            }
            Standing::HalfMade(admin) => {
                refuse_foreign_lock(self.place, &admin)?;
                Ok(done(true))
            }
            Standing::Missing(Some(admin)) => {
                refuse_foreign_lock(self.place, &admin)?;
                let target = Target { git_dir: &admin, tree: None, inside: Path::new("") };
                if is_half_made(&admin)? || look(self.git, &target).unsaved.is_none() {
                    return Ok(done(true));
                }
                let proof = self.put_folder_back(&admin)?;
                Ok(StepDone { salvage: self.save(&proof, pulse)?, ..done(true) })
            }
            Standing::Missing(None) => Ok(done(false)),
            Standing::InTrash(_) => Ok(done(true)),
        }
    }

    fn save(&self, proof: &Proof, pulse: Pulse<'_>) -> Result<Option<SalvageMade>, WorkspaceError> {
        let admin = manifest::admin_digest(&proof.admin)?;
        let survey = survey(self.git, self.place, proof);
        survey.refuse(self.place)?;
        manifest::write(self.place, self.id, &survey.tree, &survey.seen.paths, &admin)?;
        let consented = !self.may_discard.is_none() && self.may_discard.covers(survey.seen.unsaved);
        if consented && !(self.keep_trash && survey.seen.unsaved.is_none()) {
            return Ok(None);
        }
        if !self.keep_trash && survey.is_as_committed(self.git, proof)? {
            return Ok(None);
        }
        let kept = crate::salvage::Keep { limit: self.limit, head: self.keep_trash };
        crate::salvage::save(self.git, self.place, self.id, kept, pulse)
    }

    /// The directory goes into the trash by one rename (W-35).
    pub(crate) fn rename(&self) -> Result<StepDone, WorkspaceError> {
        let trash = self.trash()?;
        match standing(self.place)? {
            Standing::Here(proof) => {
                self.move_to_trash(&proof, &trash)?;
                Ok(StepDone { trash_path: Some(trash), ..done(true) })
            }
            Standing::HalfMade(admin) => {
                refuse_foreign_lock(self.place, &admin)?;
                self.clear_half_made()?;
                Ok(done(true))
            }
            Standing::Missing(ours) => {
                if let Some(admin) = ours {
                    refuse_foreign_lock(self.place, &admin)?;
                }
                let found = is_there(&trash)?;
                Ok(StepDone { trash_path: found.then_some(trash), ..done(found) })
            }
            Standing::InTrash(found) if found == trash => {
                Ok(StepDone { trash_path: Some(trash), ..done(true) })
            }
            Standing::InTrash(found) => Err(fail(
                Reason::OwnedElsewhere,
                &self.place.path,
                format!("another removal has it in its trash: {}", show(&found)),
                "that removal settles it",
            )),
        }
    }

    fn move_to_trash(&self, proof: &Proof, trash: &Path) -> Result<(), WorkspaceError> {
        let place = self.place;
        refuse_foreign_lock(place, &proof.admin)?;
        let tree = tree::read(&place.path);
        if !manifest::is_purging(&place.root, self.id)?
            && manifest::read(&place.root, self.id)?.is_none()
        {
            // Without one nobody would know the trash again; salvage was not asked for.
            let admin = manifest::admin_digest(&proof.admin)?;
            manifest::write(place, self.id, &tree, &[], &admin)?;
        }
        let parent = trash.parent().unwrap_or(&place.root.path);
        make_folders(&place.root.path, parent)?;
        let device = |path: &Path| {
            fs::symlink_metadata(path)
                .map(|m| m.dev())
                .map_err(|e| io_fail(path, "cannot look at the folder", &e))
        };
        let mounts = tree::mounts_below(&place.path)?;
        if let Some(mount) =
            tree.mounts.first().map(|m| place.path.join(m)).or(mounts.into_iter().next())
        {
            return Err(fail(
                Reason::MountPoint,
                &place.path,
                format!("something is mounted in it: {}", show(&mount)),
                "unmount it first",
            ));
        }
        if device(&place.path)? != device(parent)? {
            return Err(fail(
                Reason::MountPoint,
                &place.path,
                "the trash of its root lies on another file system",
                "unmount what separates them; a removal is never half-done across file systems",
            ));
        }
        let users = standing_in(&place.path, &tree.inodes())?;
        if let Some((_, who)) = users.inside.first() {
            return Err(fail(
                Reason::InUse,
                &place.path,
                who.clone(),
                "end that process, or wait until it leaves",
            ));
        }
        rename(&place.path, trash, "cannot move the worktree into the trash")
    }

    /// A folder that git left empty. Its link, if it has one, leads to the registration that the
    /// next step clears.
    fn clear_half_made(&self) -> Result<(), WorkspaceError> {
        let link = self.place.path.join(".git");
        for (path, gone) in
            [(&link, fs::remove_file(&link)), (&self.place.path, fs::remove_dir(&self.place.path))]
        {
            match gone {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(io_fail(path, "cannot clear a half-made worktree", &e)),
            }
        }
        Ok(())
    }

    /// Compares, and says what is in the private store for this removal: a step before this one
    /// may have kept it and been stopped before its answer was recorded, and work that no row
    /// names would be lost with the trash (P-29, W-37).
    pub(crate) fn compare(&self, mut pulse: Pulse<'_>) -> Result<StepDone, WorkspaceError> {
        let done = self.compare_again(&mut pulse)?;
        if done.salvage.is_some() {
            return Ok(done);
        }
        let salvage = crate::salvage::kept(self.git, &self.place.root, self.id, pulse)?;
        Ok(StepDone { salvage, ..done })
    }

    /// What was renamed is compared with what was salvaged; a difference is put back, salvaged
    /// and renamed again, a few times (W-35).
    fn compare_again(&self, mut pulse: Pulse<'_>) -> Result<StepDone, WorkspaceError> {
        let trash = self.trash()?;
        let mut salvage = None;
        let mut last = Vec::new();
        for _ in 0..COMPARE_TRIES {
            if !is_there(&trash)? {
                // A try before this one has put it back.
                let Standing::Here(proof) = standing(self.place)? else { return Ok(done(false)) };
                salvage = self.save(&proof, &mut pulse)?;
                self.move_to_trash(&proof, &trash)?;
            }
            if manifest::is_purging(&self.place.root, self.id)? {
                return Ok(done(true));
            }
            self.clear_strays()?;
            let manifest = manifest::read(&self.place.root, self.id)?;
            let tree = self.unused_trash(&trash, manifest.as_ref())?;
            last = match manifest {
                Some(manifest) => {
                    let mut found = manifest.differences(&trash, &tree);
                    if !manifest.is_same_admin(&prove_at(self.place, &trash)?.admin)? {
                        found.push("its index, head or own refs changed".to_owned());
                    }
                    found
                }
                None => vec!["what was salvaged is not known any more".to_owned()],
            };
            if last.is_empty() {
                return Ok(StepDone { salvage, trash_path: Some(trash), ..done(true) });
            }
            if is_there(&self.place.path)? {
                break;
            }
            rename(&trash, &self.place.path, "cannot put the worktree back")?;
        }
        Err(fail(
            Reason::Changing,
            &self.place.path,
            format!("it changed while it was removed: {}", last.join("; ")),
            "end what writes there; nothing was lost, and the step is tried again",
        ))
    }

    /// The trash, read while nobody holds a file of it open. Whoever opened one before the rename
    /// still writes into it, unseen by its times once it was compared; nobody else can open one
    /// any more. The manifest knows what to ask for; where it does not know all of it, the trash is
    /// read for that first.
    fn unused_trash(
        &self,
        trash: &Path,
        manifest: Option<&Manifest>,
    ) -> Result<Tree, WorkspaceError> {
        let refuse_users = |inodes: &HashSet<(u64, u64)>| match standing_in(trash, inodes)?
            .inside
            .into_iter()
            .next()
        {
            None => Ok(()),
            Some((_, who)) => Err(fail(
                Reason::InUse,
                &self.place.path,
                who,
                "end that process, or wait until it closes its files; the trash is whole",
            )),
        };
        let top = fs::symlink_metadata(trash)
            .map_err(|e| io_fail(trash, "cannot look at the trash", &e))?;
        let known = manifest.into_iter().flat_map(|m| m.inodes(top.dev()));
        let known: HashSet<(u64, u64)> = known.chain([(top.dev(), top.ino())]).collect();
        refuse_users(&known)?;
        let tree = tree::read(trash);
        let inodes = tree.inodes();
        if inodes.is_subset(&known) {
            return Ok(tree);
        }
        refuse_users(&inodes)?;
        Ok(tree::read(trash))
    }

    /// Something that appeared at the path after the worktree was moved: a process that goes on
    /// writing (F23). It is nobody's to delete, so it is moved aside; a new worktree or
    /// repository is refused.
    fn clear_strays(&self) -> Result<(), WorkspaceError> {
        let path = &self.place.path;
        if !is_there(path)? {
            return Ok(());
        }
        if is_there(&path.join(".git"))? {
            return Err(fail(
                Reason::IdentityMismatch,
                path,
                "something new stands at its path since it was moved into the trash",
                "the trash is whole; restore it elsewhere or have a person decide",
            ));
        }
        let aside = aside_path(&self.place.root, self.id)?;
        make_folders(&self.place.root.path, aside.parent().unwrap_or(&self.place.root.path))?;
        rename(path, &aside, "cannot move aside what appeared at the path")
    }

    /// The registration is renamed away, still locked, after both links were read; never by a
    /// git command, so that no neighbour is touched (W-35, F19).
    pub(crate) fn unregister(&self) -> Result<StepDone, WorkspaceError> {
        let place = self.place;
        let common = common_dir(&place.repository)?;
        let to = self.admin_trash(&common);
        let _registry = lock_registry(&common, self.wait)?;
        let trash = self.trash()?;
        let admin = if is_there(&trash)? && !is_there(&to)? {
            Some(prove_at(place, &trash)?.admin)
        } else {
            match standing(place)? {
                Standing::Here(_) => {
                    return Err(fail(
                        Reason::Contested,
                        &place.path,
                        "the directory is still in its place",
                        "it is renamed first; take the steps in their order",
                    ));
                }
                Standing::HalfMade(admin) => Some(admin),
                Standing::Missing(admin) => admin,
                Standing::InTrash(_) => registered(place, &common)?.ours,
            }
        };
        let Some(admin) = admin else {
            let found = is_there(&to)?;
            return Ok(StepDone { admin_path: found.then_some(to), ..done(found) });
        };
        refuse_foreign_lock(place, &admin)?;
        make_folders(&common, to.parent().unwrap_or(&common))?;
        rename(&admin, &to, "cannot clear the registration")?;
        Ok(StepDone { admin_path: Some(to), ..done(true) })
    }

    /// The branch: kept, removed or absent (W-39).
    pub(crate) fn settle_branch(&self) -> Result<StepDone, WorkspaceError> {
        let common = common_dir(&self.place.repository)?;
        let _registry = lock_registry(&common, self.wait)?;
        let verdict =
            branch::settle(self.git, self.place, &common, self.may_delete_branch, self.undoes)?;
        let found = verdict != freehold_store::workspaces::BranchVerdict::Absent;
        Ok(StepDone { branch: Some(verdict), ..done(found) })
    }

    /// The trash is unlinked, then what was moved with it, then empty folders above (W-42).
    pub(crate) fn purge(&self, mut pulse: Pulse<'_>) -> Result<StepDone, WorkspaceError> {
        let place = self.place;
        let root = &place.root;
        let trash = self.trash()?;
        let mut found = false;
        // Recorded and not done, whatever the record says (W-36): the registration goes first.
        let common = find_common_dir(&place.repository)?;
        if let Some(common) = &common
            && registered(place, common)?.ours.is_some()
        {
            self.unregister()?;
        }
        if is_there(&trash)? {
            let tree = tree::read(&trash);
            if let Some((_, who)) = standing_in(&trash, &tree.inodes())?.inside.first() {
                return Err(fail(
                    Reason::InUse,
                    &trash,
                    who.clone(),
                    "end that process, or wait until it closes its files",
                ));
            }
            manifest::begin_purge(root, self.id)?;
            remove_tree(&root.path, &trash, &mut pulse)?;
            found = true;
        } else if matches!(standing(place)?, Standing::Here(_)) {
            return Err(fail(
                Reason::Contested,
                &place.path,
                "the worktree is still in its place, so there is no trash to unlink",
                "take the steps in their order",
            ));
        }
        // A repository that is gone took its registrations with it.
        if let Some(common) = common {
            let admin = self.admin_trash(&common);
            if is_there(&admin)? {
                if !is_stamped(&admin, &place.stamp)? && !is_half_made(&admin)? {
                    return Err(fail(
                        Reason::IdentityMismatch,
                        &admin,
                        "the registration that was moved does not carry the recorded stamp",
                        "look at it; it is left as it is",
                    ));
                }
                remove_tree(&common, &admin, &mut pulse)?;
                found = true;
            }
            // Done means verified (W-36).
            if let Some(left) = registered(place, &common)?.ours {
                return Err(fail(
                    Reason::Contested,
                    &left,
                    "the registration is still there",
                    "it is cleared before the trash goes; take the steps in their order",
                ));
            }
        }
        manifest::forget(root, self.id)?;
        self.remove_empty_parents();
        self.lock.retire();
        Ok(done(found))
    }

    /// Freehold's own folders stay: another removal may be about to use them.
    fn remove_empty_parents(&self) {
        let root = &self.place.root.path;
        remove_empty(root, self.place.path.parent().unwrap_or(root));
    }
}
