//! One try to make a worktree (W-1..W-5).
//! ```text
//!   Intended --Made--> Materialised --Persist--> Owned
//!      |                   |--Adopt--> Owned
//!      \-----Undo----------\--Undo--> Compensating --Undone--> Compensated
//! ```

use super::machine;
use crate::codes::codes;
use crate::rows::AttemptState;

codes! {
    /// What can happen to it.
    Input {
        /// The checkout was verified.
        Made = "made",
        /// The canonical row names it.
        Persist = "persist",
        /// Its maker is gone; what it made is taken over (W-5).
        Adopt = "adopt",
        /// The barrier won, the maker gave up, or it is gone.
        Undo = "undo",
        /// Nothing of it is left.
        Undone = "undone",
    }
}

/// The next state, or none if the input is illegal.
pub const fn step(state: AttemptState, input: Input) -> Option<AttemptState> {
    match state {
        AttemptState::Intended => match input {
            Input::Made => Some(AttemptState::Materialised),
            Input::Undo => Some(AttemptState::Compensating),
            Input::Persist | Input::Adopt | Input::Undone => None,
        },
        AttemptState::Materialised => match input {
            Input::Persist | Input::Adopt => Some(AttemptState::Owned),
            Input::Undo => Some(AttemptState::Compensating),
            Input::Made | Input::Undone => None,
        },
        AttemptState::Compensating => match input {
            Input::Undone => Some(AttemptState::Compensated),
            Input::Made | Input::Persist | Input::Adopt | Input::Undo => None,
        },
        AttemptState::Owned | AttemptState::Compensated => match input {
            Input::Made | Input::Persist | Input::Adopt | Input::Undo | Input::Undone => None,
        },
    }
}

machine!("attempt", "D-5, W-1..W-5, P-42", AttemptState, Input);
