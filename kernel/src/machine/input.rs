//! An input's stages (D-9): queued is a stage, everything else is its one outcome (P-21).
//! ```text
//!   Queued --Deliver|Redirect|Refuse|Cancel|Expire--> settled for ever
//! ```

use super::machine;
use crate::codes::codes;
use crate::rows::InputState;

codes! {
    /// What can happen to it.
    Input {
        /// A turn carries it.
        Deliver = "deliver",
        /// It goes on to another session.
        Redirect = "redirect",
        /// It is refused after it waited.
        Refuse = "refuse",
        /// Its session or task closed, or its sender took it back.
        Cancel = "cancel",
        /// Its time passed.
        Expire = "expire",
    }
}

/// The next state, or none if the input is illegal.
pub const fn step(state: InputState, input: Input) -> Option<InputState> {
    match state {
        InputState::Queued => match input {
            Input::Deliver => Some(InputState::Delivered),
            Input::Redirect => Some(InputState::Redirected),
            Input::Refuse => Some(InputState::Refused),
            Input::Cancel => Some(InputState::Cancelled),
            Input::Expire => Some(InputState::Expired),
        },
        InputState::Delivered
        | InputState::Redirected
        | InputState::Refused
        | InputState::Cancelled
        | InputState::Expired => match input {
            Input::Deliver | Input::Redirect | Input::Refuse | Input::Cancel | Input::Expire => {
                None
            }
        },
    }
}

machine!("input", "D-9, S-31, P-21", InputState, Input);
