//! Worktrees with real git: made, proven, salvaged and removed (W, C).
//!
//! The kernel decides; this crate does. It knows no task and no session: what it is handed is a
//! place, and for a removal a warrant. Git is only ever run as a program with a closed
//! environment, and only where the directory's identity is proven from its own files first.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests set the scene"))]

mod attend;
mod branch;
mod disk;
mod error;
pub mod faults;
mod identity;
mod inspect;
mod list;
mod lock;
mod make;
mod manifest;
mod process;
mod purge;
mod rebuildable;
mod refs;
mod remove;
mod root;
pub mod salvage;
mod settings;
mod tree;
mod twins;
mod unsaved;
mod users;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use freehold_kernel::{Authority, Kind, PathId, Reason, RootId, Warrant, WorktreeId};
use freehold_store::names::{id_of, uuid_text};
use freehold_store::workspaces::{
    InTrash, Inspection, Place, Plan, Pulse, Restored, RootPlace, StepDone, WorkspaceError,
    Workspaces,
};

pub use inspect::{Holdings, holdings};
pub use list::{Registration, list_registrations};
pub use lock::PathLock;
pub use root::{Trashed, aside, leftovers, trashed, trashes};

use crate::error::{fail, io_fail};
use crate::faults::{Faults, Under};
use crate::process::Git;

/// How long a lock is waited for before the answer is contested.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// The worktrees of this host, through the git program.
#[derive(Clone, Debug)]
pub struct GitWorkspaces {
    git: Git,
    lock_wait: Duration,
    faults: Option<Arc<dyn Faults>>,
}

impl Default for GitWorkspaces {
    fn default() -> GitWorkspaces {
        GitWorkspaces::new()
    }
}

impl GitWorkspaces {
    /// With the git program that stands in `PATH`.
    pub fn new() -> GitWorkspaces {
        GitWorkspaces { git: Git::new(), lock_wait: LOCK_WAIT, faults: None }
    }

    /// With this git program, and this limit for each of its commands.
    #[must_use]
    pub fn with_program(mut self, program: PathBuf, limit: Duration) -> GitWorkspaces {
        let patterns: Vec<&str> = self.git.rebuildable().iter().map(String::as_str).collect();
        self.git = Git::with(program, limit).declaring(&patterns);
        self
    }

    /// With these patterns, as in a `.gitignore`, for ignored files that may be lost since a build
    /// makes them again (W-33). A repository adds its own in its configuration:
    /// `git config --add freehold.rebuildable target/`.
    #[must_use]
    pub fn with_rebuildable(mut self, patterns: &[&str]) -> GitWorkspaces {
        self.git = self.git.declaring(patterns);
        self
    }

    /// With another bound on waiting for the locks of W-12 and W-13.
    #[must_use]
    pub fn with_lock_wait(mut self, wait: Duration) -> GitWorkspaces {
        self.lock_wait = wait;
        self
    }

    /// For tests: these faults meet every call to the disk and to git that is made from here on.
    #[must_use]
    pub fn with_faults(mut self, faults: Arc<dyn Faults>) -> GitWorkspaces {
        self.faults = Some(faults);
        self
    }

    /// [`salvage::reclaim`], meeting the same faults as every other call.
    ///
    /// # Errors
    /// As there.
    pub fn reclaim_salvage(&self, root: &RootPlace) -> Result<(), WorkspaceError> {
        let _here = self.enter();
        salvage::reclaim(root)
    }

    /// Around every call of the port's users: its faults are this thread's until it returns.
    fn enter(&self) -> Under {
        Under::new(self.faults.clone())
    }

    /// What lies in trash, to be moved out of it: nothing of it is removed.
    fn in_trash<'a>(
        &self,
        git: &'a Git,
        lock: &'a PathLock,
        place: &'a Place,
        kept: &'a InTrash,
    ) -> remove::Removal<'a> {
        remove::Removal {
            git,
            lock,
            place,
            id: &kept.removal,
            limit: 0,
            may_delete_branch: false,
            undoes: false,
            may_discard: freehold_kernel::Unsaved::NONE,
            keep_trash: true,
            wait: self.lock_wait,
        }
    }

    /// Git, handing the path lock on to everything that it starts (W-13).
    fn holding(&self, lock: &PathLock, place: &Place) -> Result<Git, WorkspaceError> {
        lock.covers(place)?;
        Ok(self.git.holding(lock.fd()))
    }
}

impl Workspaces for GitWorkspaces {
    type Lock = PathLock;

    fn make_root(&self, root: &RootPlace) -> Result<RootPlace, WorkspaceError> {
        let _here = self.enter();
        root::make_root(root)
    }

    fn check_root(&self, root: &RootPlace) -> Result<(), WorkspaceError> {
        let _here = self.enter();
        root::check_root(root)
    }

    fn plan(&self, place: &Place, start: Option<&str>) -> Result<Plan, WorkspaceError> {
        let _here = self.enter();
        make::plan(&self.git, place, start)
    }

    fn lock(&self, place: &Place) -> Result<PathLock, WorkspaceError> {
        let _here = self.enter();
        lock::lock_path(place, self.lock_wait)
    }

    fn make(
        &self,
        lock: &PathLock,
        place: &Place,
        plan: &Plan,
        pulse: Pulse<'_>,
    ) -> Result<(), WorkspaceError> {
        let _here = self.enter();
        make::make(&self.holding(lock, place)?, place, plan, self.lock_wait, pulse)
    }

    fn verify(&self, place: &Place) -> Result<(), WorkspaceError> {
        let _here = self.enter();
        identity::prove(place).map(|_proof| ())
    }

    fn inspect(&self, place: &Place, pulse: Pulse<'_>) -> Inspection {
        let look = || {
            let _here = self.enter();
            inspect::inspect(&self.git, place)
        };
        attend::attended(pulse, look).unwrap_or_else(|e| {
            inspect::refused(io_fail(&place.path, "no thread can be had to look at it", &e))
        })
    }

    fn step(
        &self,
        lock: &PathLock,
        place: &Place,
        warrant: Warrant,
        limit: u64,
        pulse: Pulse<'_>,
    ) -> Result<StepDone, WorkspaceError> {
        let _here = self.enter();
        let git = self.holding(lock, place)?;
        check_permission(place, warrant.root(), warrant.path(), warrant.identity())?;
        let own = uuid_text(warrant.removal().0);
        let id = match warrant.authority() {
            Authority::Trash(_) => manifest::filler(place)?.unwrap_or(own),
            Authority::Job(_) | Authority::Attempt(_) => own,
        };
        let removal = remove::Removal {
            git: &git,
            lock,
            place,
            id: &id,
            limit,
            may_delete_branch: warrant.may_delete_branch(),
            undoes: matches!(warrant.authority(), Authority::Attempt(_)),
            keep_trash: warrant.keeps_trash(),
            may_discard: warrant.may_discard(),
            wait: self.lock_wait,
        };
        removal.take(warrant.step(), pulse)
    }

    fn forget(&self, place: &Place, removal: freehold_kernel::RemovalId) {
        let _here = self.enter();
        // A manifest that cannot be taken away now lies in Freehold's own folder and harms nobody.
        let _ = manifest::forget(&place.root, &uuid_text(removal.0));
    }

    fn restore(
        &self,
        lock: &PathLock,
        place: &Place,
        salvage_ref: &str,
    ) -> Result<Restored, WorkspaceError> {
        let _here = self.enter();
        salvage::restore(&self.holding(lock, place)?, place, salvage_ref)
    }

    fn restore_trash(
        &self,
        lock: &PathLock,
        place: &Place,
        kept: &InTrash,
        pulse: Pulse<'_>,
    ) -> Result<Restored, WorkspaceError> {
        let _here = self.enter();
        let git = self.holding(lock, place)?;
        self.in_trash(&git, lock, place, kept).untrash(kept, pulse)
    }

    fn trash_again(
        &self,
        lock: &PathLock,
        place: &Place,
        kept: &InTrash,
    ) -> Result<(), WorkspaceError> {
        let _here = self.enter();
        let git = self.holding(lock, place)?;
        self.in_trash(&git, lock, place, kept).trash_again().map(drop)
    }

    fn check_unused(
        &self,
        lock: &PathLock,
        place: &Place,
        kept: &InTrash,
    ) -> Result<(), WorkspaceError> {
        let _here = self.enter();
        let git = self.holding(lock, place)?;
        self.in_trash(&git, lock, place, kept).refuse_in_use()
    }

    fn expire_salvage(&self, root: &RootPlace, salvage_ref: &str) -> Result<bool, WorkspaceError> {
        let _here = self.enter();
        salvage::expire(root, salvage_ref)
    }
}

/// A warrant permits one step at one path of one root, on one identity (W-30). Without an
/// identity it reaches a registration whose directory is gone, and no directory.
fn check_permission(
    place: &Place,
    root: RootId,
    path: PathId,
    identity: Option<WorktreeId>,
) -> Result<(), WorkspaceError> {
    let named = place.path.to_str().map(|text| PathId(id_of(Kind::PathId, text)));
    let fits = match identity {
        Some(identity) => identity == place.worktree_id(),
        None => !disk::is_there(&place.path)
            .map_err(|e| io_fail(&place.path, "cannot look at the path", &e))?,
    };
    if root == place.root.id && named == Some(path) && fits {
        return Ok(());
    }
    Err(fail(
        Reason::IdentityMismatch,
        &place.path,
        "the permission is for another worktree than the one that was handed over",
        "this is a fault of the caller: the row's texts and its ids do not belong together",
    ))
}
