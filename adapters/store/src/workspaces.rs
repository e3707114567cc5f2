//! The port to physical worktrees (W). One trait; `freehold-git` implements it with real git.
//!
//! Calls block. They are made by the worker and by makers, on the thread that the host handed
//! over, never inside a transaction. A removal step takes a [`Warrant`] by value: no call that
//! removes anything can be made without one, and none can be read out of a file or a message:
//!
//! ```compile_fail
//! let forged: freehold_kernel::Warrant = serde_json::from_str("{}").unwrap();
//! ```
//!
//! (The same line compiles for a type that can be deserialised:)
//!
//! ```
//! let value: serde_json::Value = serde_json::from_str("{}").unwrap();
//! # assert!(value.is_object());
//! ```

use std::path::PathBuf;

use freehold_kernel::{
    Evidence, Found, Kind, Reason, RemovalId, RootId, Unsaved, Warrant, WorktreeId,
};

use crate::names::id_of;

/// A managed root (D-18).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootPlace {
    /// Its id.
    pub id: RootId,
    /// The same, as text.
    pub name: String,
    /// Where it is: an absolute real path.
    pub path: PathBuf,
    /// What its identity file must contain.
    pub marker: String,
    /// The store's id as text; trash and salvage of several stores beside one root stay apart.
    pub store: String,
}

/// One worktree's place, in texts. Its ids are in the rows; adapters compare the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The root it lies in.
    pub root: RootPlace,
    /// Its absolute path, a strict descendant of the root.
    pub path: PathBuf,
    /// The user's repository: its work tree or its git directory.
    pub repository: PathBuf,
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// Whether Freehold made that branch.
    pub branch_created: bool,
    /// The commit that the worktree started from, in hex; empty if unknown.
    pub start_commit: String,
    /// The stamp (W-2): store, root and token as one text; the worktree's identity.
    pub stamp: String,
}

impl Place {
    /// The identity that rows and warrants carry.
    pub fn worktree_id(&self) -> WorktreeId {
        WorktreeId(id_of(Kind::WorktreeId, &self.stamp))
    }
}

/// What a making was planned on (W-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Whether the branch is there already.
    pub branch_existed: bool,
    /// The commit to start from, in hex: the branch's tip if it is there.
    pub start_commit: String,
    /// Where the repository is found even if the work tree that it was named by goes away; none
    /// if it was named by what lasts.
    pub lasting: Option<PathBuf>,
}

/// An inspection: what the kernel decides on, and the list that people read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Facts.
    pub evidence: Evidence,
    /// The head, in hex; empty if there is none.
    pub head: String,
    /// One line per thing that is unsaved or in the way, with paths quoted.
    pub details: Vec<String>,
}

impl Inspection {
    /// Nothing there, under a root that is there.
    pub fn missing() -> Inspection {
        Inspection {
            evidence: Evidence {
                found: Found::Missing,
                unsaved: Unsaved::NONE,
                obstacle: Reason::None,
                head: None,
            },
            head: String::new(),
            details: Vec::new(),
        }
    }
}

/// What a step of a removal did (W-35, W-36).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepDone {
    /// False if there was nothing left to do: already absent is success (C-8).
    pub found_something: bool,
    /// For `Salvaged`: what was kept. None if nothing was unsaved and no trash is kept.
    pub salvage: Option<SalvageMade>,
    /// For `Renamed`: where the directory lies now.
    pub trash_path: Option<PathBuf>,
    /// For `Unregistered`: where the administration directory lies now.
    pub admin_path: Option<PathBuf>,
    /// For `BranchSettled`: kept, and why, or removed with its old tip.
    pub branch: Option<BranchVerdict>,
}

/// What became of the branch (W-39).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchVerdict {
    /// It stays; the text says why.
    Kept(String),
    /// It is gone; its last tip in hex.
    Removed(String),
    /// It was not there any more.
    Absent,
}

/// A salvage entry that was read back and compared (W-34).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SalvageMade {
    /// The ref in the private store that holds it.
    pub ref_name: String,
    /// The head it was taken on, in hex; empty for an unborn branch.
    pub base: String,
    /// What is in it.
    pub contents: Unsaved,
    /// Bytes of content.
    pub size: u64,
}

/// What a restore put back (W-34).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// How many files were written, removed or linked.
    pub entries: u64,
    /// What kinds of unsaved work are back.
    pub contents: Unsaved,
    /// What is kept in salvage but could not be put back as it was, one line each.
    pub notes: Vec<String>,
}

/// What kept trash is found by, and what may be needed to make it whole again (W-35).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InTrash {
    /// The id of the removal that filled it, as text.
    pub removal: String,
    /// The ref of that removal's salvage; none if nothing was kept.
    pub salvage: Option<String>,
    /// The head that the removal saw, in hex; empty if none.
    pub head: String,
}

/// A physical step that was refused or failed. Nothing is half-done: what was done before the
/// failure is what the next call finds and finishes (W-37).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail} ({}: {}); {help}", reason.code(), path.display())]
pub struct WorkspaceError {
    /// Which; its class says whether a retry can help (C-9).
    pub reason: Reason,
    /// The path that is meant.
    pub path: PathBuf,
    /// What was seen, in words; git's own text where git said no.
    pub detail: String,
    /// What would help.
    pub help: String,
}

/// Called during long steps, at least every few hundred entries and every second (W-13).
/// Returns false if the caller has lost its right: the step then stops where it is safe.
pub type Pulse<'a> = &'a mut dyn FnMut() -> bool;

/// The port.
pub trait Workspaces {
    /// Holds the operating-system lock of one path until it is dropped (W-13).
    type Lock;

    /// Makes the folder and its identity file if they are not there, and returns the root as it
    /// really is: links resolved, the marker read back.
    ///
    /// # Errors
    /// If the folder cannot be made or belongs to another store.
    fn make_root(&self, root: &RootPlace) -> Result<RootPlace, WorkspaceError>;

    /// Whether the root is there and is the recorded one (D-18).
    ///
    /// # Errors
    /// [`Reason::RootUnavailable`]: then nothing may be concluded about what is in it.
    fn check_root(&self, root: &RootPlace) -> Result<(), WorkspaceError>;

    /// Looks whether the branch is there, and where a worktree on it would start. `start` is a
    /// revision for a new branch; none means the repository's head.
    ///
    /// # Errors
    /// If the repository cannot be read or the revision does not exist.
    fn plan(&self, place: &Place, start: Option<&str>) -> Result<Plan, WorkspaceError>;

    /// Takes the lock of a path. Every child process of a step inherits it.
    ///
    /// # Errors
    /// [`Reason::Contested`] if another executor holds it beyond a bound.
    fn lock(&self, place: &Place) -> Result<Self::Lock, WorkspaceError>;

    /// Makes the worktree, locked and stamped at birth (W-2, W-10..W-12), checks it out and
    /// verifies it. If it is there already with this stamp, finishes and verifies it.
    ///
    /// # Errors
    /// Nothing of somebody else's was touched; what this call made is left for compensation.
    fn make(
        &self,
        lock: &Self::Lock,
        place: &Place,
        plan: &Plan,
        pulse: Pulse<'_>,
    ) -> Result<(), WorkspaceError>;

    /// Proves that the worktree at the place is the recorded one, both ways (W-31).
    ///
    /// # Errors
    /// Names what differs.
    fn verify(&self, place: &Place) -> Result<(), WorkspaceError>;

    /// Looks at the place and changes nothing, not even an index. Never fails: what could not be
    /// seen is in the answer.
    fn inspect(&self, place: &Place) -> Inspection;

    /// Takes the one step that the warrant permits (W-35). Recognises a step that was done and
    /// not recorded. `unsaved` is what the inspection behind the warrant found; `limit` is the
    /// most bytes that salvage may take.
    ///
    /// # Errors
    /// The step was not done, or will be finished by the next call.
    fn step(
        &self,
        lock: &Self::Lock,
        place: &Place,
        warrant: Warrant,
        limit: u64,
        pulse: Pulse<'_>,
    ) -> Result<StepDone, WorkspaceError>;

    /// Lets go of what was written down for a removal that was settled and put nothing away: its
    /// manifest. What cannot be let go of now is harmless.
    fn forget(&self, _place: &Place, _removal: RemovalId) {}

    /// Puts a salvage entry back into a clean worktree at the place (W-34).
    ///
    /// # Errors
    /// If the worktree is not clean, or the entry cannot be read.
    fn restore(
        &self,
        lock: &Self::Lock,
        place: &Place,
        salvage_ref: &str,
    ) -> Result<Restored, WorkspaceError>;

    /// Moves a worktree out of kept trash back to its place, with its registration, and gives its
    /// repository what garbage collection took meanwhile (W-35). A call that was stopped is
    /// finished by the next.
    ///
    /// # Errors
    /// If something stands in its place, its branch is in use elsewhere, or its unlinking has
    /// begun; by default, that these workspaces have no trash.
    fn restore_trash(
        &self,
        _lock: &Self::Lock,
        place: &Place,
        _kept: &InTrash,
        _pulse: Pulse<'_>,
    ) -> Result<Restored, WorkspaceError> {
        Err(WorkspaceError {
            reason: Reason::NotManaged,
            path: place.path.clone(),
            detail: "these workspaces keep no trash".to_owned(),
            help: "restore its salvage into a new worktree".to_owned(),
        })
    }

    /// Takes back what a restore out of trash had begun while the directory is still there (W-4).
    ///
    /// # Errors
    /// It is taken back by a later call.
    fn trash_again(
        &self,
        _lock: &Self::Lock,
        _place: &Place,
        _kept: &InTrash,
    ) -> Result<(), WorkspaceError> {
        Ok(())
    }

    /// Whether nobody holds a file of kept trash open, so that its purge may be asked for (W-35).
    ///
    /// # Errors
    /// [`Reason::InUse`] names who does.
    fn check_unused(
        &self,
        _lock: &Self::Lock,
        _place: &Place,
        _kept: &InTrash,
    ) -> Result<(), WorkspaceError> {
        Ok(())
    }

    /// Lets go of a salvage entry whose row says that it has expired (W-34); false if it was not
    /// there any more.
    ///
    /// # Errors
    /// If the private store cannot be written.
    fn expire_salvage(&self, _root: &RootPlace, _ref: &str) -> Result<bool, WorkspaceError> {
        Ok(false)
    }
}
