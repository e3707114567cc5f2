//! Evidence: what an adapter saw, handed to the kernel as data. The kernel looks at nothing.

use crate::id::CommitId;
use crate::rows::{Reason, Unsaved};

/// What was found at a worktree's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Found {
    /// The recorded worktree, identity proven both ways (W-31).
    Here,
    /// Nothing, under a root that is there (D-18).
    Missing,
    /// Not in its place, but whole in this removal's trash: a step was done and not recorded.
    InTrash,
    /// Something else.
    Mismatch,
    /// Could not be looked at. Unknown is never absent (S-29).
    Unknown,
}

/// An inspection of one worktree (W-31, W-33).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Evidence {
    /// What is there.
    pub found: Found,
    /// What is unsaved in it.
    pub unsaved: Unsaved,
    /// What else stands in the way; `None` if nothing does.
    pub obstacle: Reason,
    /// The commit that its head names.
    pub head: Option<CommitId>,
}

/// Whether a runtime lives (C-7). Three answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Liveness {
    /// It does.
    Alive,
    /// Proven: the stop succeeded, or the process is gone from its own host.
    Dead,
    /// Nobody can say.
    Unknown,
}
