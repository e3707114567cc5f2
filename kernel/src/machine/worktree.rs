//! Whether a recorded worktree is on the disk (D-4, C-18, W-7).
//! ```text
//!   Yes --Permit--> Removing --Gone--> No --Recreated--> Yes ;  Removing --Returned--> Yes
//! ```

use super::machine;
use crate::codes::codes;
use crate::rows::Materialised;

codes! {
    /// What can happen to it.
    Input {
        /// A removal is permitted (C-18).
        Permit = "permit",
        /// The removal is settled: it is gone.
        Gone = "gone",
        /// The removal is settled: it was put back, or never touched.
        Returned = "returned",
        /// An attempt made it again.
        Recreated = "recreated",
    }
}

/// The next state, or none if the input is illegal.
pub const fn step(state: Materialised, input: Input) -> Option<Materialised> {
    match state {
        Materialised::Yes => match input {
            Input::Permit => Some(Materialised::Removing),
            Input::Gone | Input::Returned | Input::Recreated => None,
        },
        Materialised::No => match input {
            Input::Recreated => Some(Materialised::Yes),
            Input::Permit | Input::Gone | Input::Returned => None,
        },
        Materialised::Removing => match input {
            Input::Gone => Some(Materialised::No),
            Input::Returned => Some(Materialised::Yes),
            Input::Permit | Input::Recreated => None,
        },
    }
}

machine!("worktree", "D-4, C-6, C-18, W-7", Materialised, Input);
