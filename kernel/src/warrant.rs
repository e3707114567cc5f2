//! The warrant: permission for one step of one physical removal (W-30).
//!
//! A warrant is made by the removal machine's decisions and by nothing else. It has no public
//! constructor, cannot be cloned, copied or deserialised, and a step takes it by value: what has
//! been spent cannot be spent again. Behind each stands a durable removal row (D-22, C-18).

use crate::id::{PathId, RemovalId, RootId, Token, WorktreeId};
use crate::rows::{Authority, RemovalStep, Unsaved};

/// Permission to take one step of one physical removal.
///
/// ```compile_fail
/// // No public constructor: its fields are private.
/// let forged = freehold_kernel::Warrant { removal: freehold_kernel::RemovalId(1) };
/// ```
///
/// ```compile_fail
/// fn twice(warrant: freehold_kernel::Warrant) -> (freehold_kernel::Warrant, freehold_kernel::Warrant) {
///     (warrant.clone(), warrant)
/// }
/// ```
/// (What may be done with one: look at it, hand it on.)
///
/// ```
/// fn once(warrant: freehold_kernel::Warrant) -> (freehold_kernel::RemovalId, freehold_kernel::Warrant) {
///     (warrant.removal(), warrant)
/// }
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a warrant that is dropped leaves its removal unsettled until recovery takes it over"]
pub struct Warrant {
    removal: RemovalId,
    token: Token,
    authority: Authority,
    root: RootId,
    path: PathId,
    identity: Option<WorktreeId>,
    step: RemovalStep,
    delete_branch: bool,
    may_discard: Unsaved,
    keep_trash: bool,
}

impl Warrant {
    #[expect(clippy::too_many_arguments, reason = "one private constructor, one caller")]
    pub(crate) fn issue(
        removal: RemovalId,
        token: Token,
        authority: Authority,
        root: RootId,
        path: PathId,
        identity: Option<WorktreeId>,
        step: RemovalStep,
        delete_branch: bool,
        may_discard: Unsaved,
        keep_trash: bool,
    ) -> Warrant {
        Warrant {
            removal,
            token,
            authority,
            root,
            path,
            identity,
            step,
            delete_branch,
            may_discard,
            keep_trash,
        }
    }

    /// The removal row that stands behind this warrant.
    pub fn removal(&self) -> RemovalId {
        self.removal
    }

    /// The token that the row must still carry when the step is recorded.
    pub fn token(&self) -> Token {
        self.token
    }

    /// On whose behalf the removal happens.
    pub fn authority(&self) -> Authority {
        self.authority
    }

    /// The root that the path lies in.
    pub fn root(&self) -> RootId {
        self.root
    }

    /// The one path that may be removed; the adapter compares it with the path it was handed.
    pub fn path(&self) -> PathId {
        self.path
    }

    /// The identity that must be found there; none for a registration without a directory.
    pub fn identity(&self) -> Option<WorktreeId> {
        self.identity
    }

    /// The one step that this warrant permits (W-35).
    pub fn step(&self) -> RemovalStep {
        self.step
    }

    /// The kinds of unsaved work that a person consented to lose (W-34). Whatever else is found,
    /// now or later, is kept before anything is removed.
    pub fn may_discard(&self) -> Unsaved {
        self.may_discard
    }

    /// Whether the trash stays for a while: then its head, index and refs are salvaged even if
    /// nothing is unsaved, so that no garbage collection hollows it out (W-35).
    pub fn keeps_trash(&self) -> bool {
        self.keep_trash
    }

    /// Whether the branch may go too, if it is reached elsewhere (W-39).
    pub fn may_delete_branch(&self) -> bool {
        self.delete_branch
    }
}
