//! Workspace life (D-1, T-9).
//! ```text
//!   Active --Begin--> Deleting --Finish--> Gone ;  Deleting --GiveUp--> Active
//! ```

use super::machine;
use crate::codes::codes;

codes! {
    /// A workspace's state, the removed one included.
    State {
        /// In use.
        Active = "active",
        /// Its deletion has begun.
        Deleting = "deleting",
        /// A tombstone.
        Gone = "gone",
    }
    /// What can happen to it.
    Input {
        /// Its deletion begins.
        Begin = "begin_delete",
        /// Its deletion is given up or its owner died.
        GiveUp = "give_up",
        /// The mutation.
        Finish = "finish",
    }
}

/// The next state, or none if the input is illegal.
pub const fn step(state: State, input: Input) -> Option<State> {
    match state {
        State::Active => match input {
            Input::Begin => Some(State::Deleting),
            Input::GiveUp | Input::Finish => None,
        },
        State::Deleting => match input {
            Input::GiveUp => Some(State::Active),
            Input::Finish => Some(State::Gone),
            Input::Begin => None,
        },
        State::Gone => match input {
            Input::Begin | Input::GiveUp | Input::Finish => None,
        },
    }
}

machine!("workspace", "D-1, T-9", State, Input);
