//! One physical removal, compensation and purge included (W-35, C-18). Each state names the last
//! step that is done.
//! ```text
//!   Permitted --> Salvaged --> Renamed --> Compared --> Unregistered --> BranchSettled --> Purged
//!       \____________\____________\___________\--PutBack--> Returned
//! ```
//! Back as long as the registration is in place; from `Unregistered` on only forward.

use super::machine;
use crate::codes::codes;
use crate::rows::RemovalStep;

codes! {
    /// What can be done next.
    Input {
        /// Unsaved work is kept and read back.
        Salvage = "salvage",
        /// The directory goes to the trash.
        Rename = "rename",
        /// What was renamed is compared with what was salvaged.
        Compare = "compare",
        /// The registration is moved away.
        Unregister = "unregister",
        /// The branch is decided on.
        SettleBranch = "settle_branch",
        /// The trash is unlinked.
        Purge = "purge",
        /// The directory is put back.
        PutBack = "put_back",
    }
}

/// The next state, or none if the step may not be taken now.
pub const fn step(state: RemovalStep, input: Input) -> Option<RemovalStep> {
    match state {
        RemovalStep::Permitted => match input {
            Input::Salvage => Some(RemovalStep::Salvaged),
            Input::PutBack => Some(RemovalStep::Returned),
            Input::Rename
            | Input::Compare
            | Input::Unregister
            | Input::SettleBranch
            | Input::Purge => None,
        },
        RemovalStep::Salvaged => match input {
            Input::Rename => Some(RemovalStep::Renamed),
            Input::PutBack => Some(RemovalStep::Returned),
            Input::Salvage
            | Input::Compare
            | Input::Unregister
            | Input::SettleBranch
            | Input::Purge => None,
        },
        RemovalStep::Renamed => match input {
            Input::Compare => Some(RemovalStep::Compared),
            Input::PutBack => Some(RemovalStep::Returned),
            Input::Salvage
            | Input::Rename
            | Input::Unregister
            | Input::SettleBranch
            | Input::Purge => None,
        },
        RemovalStep::Compared => match input {
            Input::Unregister => Some(RemovalStep::Unregistered),
            Input::PutBack => Some(RemovalStep::Returned),
            Input::Salvage
            | Input::Rename
            | Input::Compare
            | Input::SettleBranch
            | Input::Purge => None,
        },
        RemovalStep::Unregistered => match input {
            Input::SettleBranch => Some(RemovalStep::BranchSettled),
            Input::Salvage
            | Input::Rename
            | Input::Compare
            | Input::Unregister
            | Input::Purge
            | Input::PutBack => None,
        },
        RemovalStep::BranchSettled => match input {
            Input::Purge => Some(RemovalStep::Purged),
            Input::Salvage
            | Input::Rename
            | Input::Compare
            | Input::Unregister
            | Input::SettleBranch
            | Input::PutBack => None,
        },
        RemovalStep::Purged | RemovalStep::Returned => match input {
            Input::Salvage
            | Input::Rename
            | Input::Compare
            | Input::Unregister
            | Input::SettleBranch
            | Input::Purge
            | Input::PutBack => None,
        },
    }
}

/// The input whose step ends in `target`; none for the state that only a permission makes.
pub const fn input_for(target: RemovalStep) -> Option<Input> {
    match target {
        RemovalStep::Permitted => None,
        RemovalStep::Salvaged => Some(Input::Salvage),
        RemovalStep::Renamed => Some(Input::Rename),
        RemovalStep::Compared => Some(Input::Compare),
        RemovalStep::Unregistered => Some(Input::Unregister),
        RemovalStep::BranchSettled => Some(Input::SettleBranch),
        RemovalStep::Purged => Some(Input::Purge),
        RemovalStep::Returned => Some(Input::PutBack),
    }
}

/// The step forward from here; none where the removal is at its end.
pub const fn forward(state: RemovalStep) -> Option<RemovalStep> {
    match state {
        RemovalStep::Permitted => Some(RemovalStep::Salvaged),
        RemovalStep::Salvaged => Some(RemovalStep::Renamed),
        RemovalStep::Renamed => Some(RemovalStep::Compared),
        RemovalStep::Compared => Some(RemovalStep::Unregistered),
        RemovalStep::Unregistered => Some(RemovalStep::BranchSettled),
        RemovalStep::BranchSettled => Some(RemovalStep::Purged),
        RemovalStep::Purged | RemovalStep::Returned => None,
    }
}

/// Whether the directory can still be put back as it was.
pub const fn can_return(state: RemovalStep) -> bool {
    step(state, Input::PutBack).is_some()
}

machine!("removal", "D-22, W-30, W-35..W-37, C-18", RemovalStep, Input);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forward_is_a_legal_step_everywhere() {
        for state in RemovalStep::ALL {
            if let Some(next) = forward(*state) {
                assert_eq!(input_for(next).and_then(|i| step(*state, i)), Some(next));
            }
        }
    }
}
