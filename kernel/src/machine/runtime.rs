//! A runtime's durable handle (D-11, S-14, C-7).
//! ```text
//!   Starting --> Running --> Stopping --> Stopped ; each may also go straight to Stopped
//! ```

use super::machine;
use crate::codes::codes;
use crate::rows::RuntimeStatus;

codes! {
    /// What can happen to it.
    Input {
        /// It was spawned.
        Spawned = "spawned",
        /// A stop was asked for.
        Stop = "stop",
        /// The stop succeeded, or the process is proven dead. Never concluded from "not found"
        /// alone (C-7).
        Proven = "proven_stopped",
        /// A person says that it is gone, who knows what no machine can prove any more (C-15).
        Declared = "declared_stopped",
    }
}

/// The next status, or none if the input is illegal.
pub const fn step(state: RuntimeStatus, input: Input) -> Option<RuntimeStatus> {
    match state {
        RuntimeStatus::Starting => match input {
            Input::Spawned => Some(RuntimeStatus::Running),
            Input::Stop => Some(RuntimeStatus::Stopping),
            Input::Proven | Input::Declared => Some(RuntimeStatus::Stopped),
        },
        RuntimeStatus::Running => match input {
            Input::Stop => Some(RuntimeStatus::Stopping),
            Input::Proven | Input::Declared => Some(RuntimeStatus::Stopped),
            Input::Spawned => None,
        },
        RuntimeStatus::Stopping => match input {
            Input::Proven | Input::Declared => Some(RuntimeStatus::Stopped),
            Input::Spawned | Input::Stop => None,
        },
        RuntimeStatus::Stopped => match input {
            Input::Spawned | Input::Stop | Input::Proven | Input::Declared => None,
        },
    }
}

/// The input that reports a status; none for the one that only admission makes.
pub const fn input_for(status: RuntimeStatus) -> Option<Input> {
    match status {
        RuntimeStatus::Starting => None,
        RuntimeStatus::Running => Some(Input::Spawned),
        RuntimeStatus::Stopping => Some(Input::Stop),
        RuntimeStatus::Stopped => Some(Input::Proven),
    }
}

machine!("runtime", "D-11, S-14, C-6, C-7", RuntimeStatus, Input);
