//! A trash row (D-20).
//! ```text
//!   Kept --Purge--> Purging --Unlinked--> Gone ;  Kept <--> Restoring
//! ```
//! `Purging` is durable before the first unlink, and final.

use super::machine;
use crate::codes::codes;
use crate::rows::TrashState;

codes! {
    /// What can happen to it.
    Input {
        /// A restore begins (W-34).
        Restore = "restore",
        /// The restore is given up.
        GiveUp = "give_up",
        /// The directory was moved back: the trash is empty.
        Restored = "restored",
        /// Its unlinking begins.
        Purge = "purge",
        /// Nothing of it is left.
        Unlinked = "unlinked",
    }
}

/// The next state, or none if the input is illegal.
pub const fn step(state: TrashState, input: Input) -> Option<TrashState> {
    match state {
        TrashState::Kept => match input {
            Input::Restore => Some(TrashState::Restoring),
            Input::Purge => Some(TrashState::Purging),
            // The removal put its directory back before it was final (C-18).
            Input::Restored => Some(TrashState::Gone),
            Input::GiveUp | Input::Unlinked => None,
        },
        TrashState::Restoring => match input {
            Input::GiveUp => Some(TrashState::Kept),
            Input::Restored => Some(TrashState::Gone),
            Input::Restore | Input::Purge | Input::Unlinked => None,
        },
        TrashState::Purging => match input {
            Input::Unlinked => Some(TrashState::Gone),
            Input::Restore | Input::GiveUp | Input::Restored | Input::Purge => None,
        },
        TrashState::Gone => match input {
            Input::Restore | Input::GiveUp | Input::Restored | Input::Purge | Input::Unlinked => {
                None
            }
        },
    }
}

machine!("trash", "D-20, W-35", TrashState, Input);
