//! Task life (D-2, 03).
//! ```text
//!   Active --Archive--> Archived --Unarchive--> Active
//!   Active | Archived --Delete--> Gone
//! ```

use super::machine;
use crate::codes::codes;

codes! {
    /// A task's state, the removed one included.
    State {
        /// May be worked on.
        Active = "active",
        /// Closed until a person unarchives it.
        Archived = "archived",
        /// A tombstone.
        Gone = "gone",
    }
    /// What can happen to it; only a mutation under a barrier, or a person's unarchive.
    Input {
        /// The mutation of an archive.
        Archive = "archive",
        /// A person's act (P-15).
        Unarchive = "unarchive",
        /// The mutation of a delete.
        Delete = "delete",
    }
}

/// The next state, or none if the input is illegal.
pub const fn step(state: State, input: Input) -> Option<State> {
    match state {
        State::Active => match input {
            Input::Archive => Some(State::Archived),
            Input::Delete => Some(State::Gone),
            Input::Unarchive => None,
        },
        State::Archived => match input {
            Input::Unarchive => Some(State::Active),
            Input::Delete => Some(State::Gone),
            Input::Archive => None,
        },
        State::Gone => match input {
            Input::Archive | Input::Unarchive | Input::Delete => None,
        },
    }
}

machine!("task", "D-2, T-1, T-7, P-15, P-16", State, Input);
