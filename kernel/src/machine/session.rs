//! Session lifecycle (02).
//! ```text
//!   Open --BeginArchive|BeginDelete--> ClosingArchive | ClosingDelete
//!   ClosingArchive --Commit--> Archived        ClosingDelete --Commit--> Gone
//!   Closing* --Lift--> where it began          Archived --Unarchive--> Open
//!   Archived --BeginDelete--> DeletingArchived --Commit--> Gone
//!   Open | Closing* --TaskArchived--> Archived, DeletingArchived too ; any --TaskDeleted--> Gone
//! ```

use super::machine;
use crate::codes::codes;
use crate::rows::{ClosingKind, Session, SessionLifecycle};

codes! {
    /// A session's lifecycle with what its row says beside it.
    State {
        /// May be worked with.
        Open = "open",
        /// Being archived.
        ClosingArchive = "closing_archive",
        /// Being deleted, from open.
        ClosingDelete = "closing_delete",
        /// Archived.
        Archived = "archived",
        /// Being deleted out of the archive.
        DeletingArchived = "deleting_archived",
        /// A tombstone.
        Gone = "gone",
    }
    /// What can happen to it.
    Input {
        /// S-21.
        BeginArchive = "begin_archive",
        /// S-21.
        BeginDelete = "begin_delete",
        /// S-23, S-24.
        Commit = "commit",
        /// S-22: aborted, or its closer is gone.
        Lift = "lift",
        /// S-28, or its task's unarchive.
        Unarchive = "unarchive",
        /// T-6.
        TaskArchived = "task_archived",
        /// T-6.
        TaskDeleted = "task_deleted",
    }
}

/// The next state, or none if the input is illegal.
pub const fn step(state: State, input: Input) -> Option<State> {
    match state {
        State::Open => match input {
            Input::BeginArchive => Some(State::ClosingArchive),
            Input::BeginDelete => Some(State::ClosingDelete),
            Input::TaskArchived => Some(State::Archived),
            Input::TaskDeleted => Some(State::Gone),
            Input::Commit | Input::Lift | Input::Unarchive => None,
        },
        State::ClosingArchive => match input {
            Input::Commit | Input::TaskArchived => Some(State::Archived),
            Input::Lift => Some(State::Open),
            Input::TaskDeleted => Some(State::Gone),
            Input::BeginArchive | Input::BeginDelete | Input::Unarchive => None,
        },
        State::ClosingDelete => match input {
            Input::Commit | Input::TaskDeleted => Some(State::Gone),
            Input::Lift => Some(State::Open),
            Input::TaskArchived => Some(State::Archived),
            Input::BeginArchive | Input::BeginDelete | Input::Unarchive => None,
        },
        State::Archived => match input {
            Input::BeginDelete => Some(State::DeletingArchived),
            Input::Unarchive => Some(State::Open),
            Input::TaskDeleted => Some(State::Gone),
            // The task is archived around a session that was closed before: it stays as it is.
            Input::TaskArchived => Some(State::Archived),
            Input::BeginArchive | Input::Commit | Input::Lift => None,
        },
        State::DeletingArchived => match input {
            Input::Commit | Input::TaskDeleted => Some(State::Gone),
            Input::Lift | Input::TaskArchived => Some(State::Archived),
            Input::BeginArchive | Input::BeginDelete | Input::Unarchive => None,
        },
        State::Gone => match input {
            Input::BeginArchive
            | Input::BeginDelete
            | Input::Commit
            | Input::Lift
            | Input::Unarchive
            | Input::TaskArchived
            | Input::TaskDeleted => None,
        },
    }
}

/// The state that a row is in.
pub const fn state_of(row: &Session) -> State {
    match row.lifecycle {
        SessionLifecycle::Open => State::Open,
        SessionLifecycle::Archived => State::Archived,
        SessionLifecycle::Closing => match row.closing_kind {
            Some(ClosingKind::Archive) => State::ClosingArchive,
            Some(ClosingKind::Delete) | None => {
                if row.archived_at.is_some() {
                    State::DeletingArchived
                } else {
                    State::ClosingDelete
                }
            }
        },
    }
}

machine!("session", "S-4, S-5, S-20..S-28, T-6", State, Input);
