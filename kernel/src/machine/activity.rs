//! Session activity (02): what an open session is doing.
//! ```text
//!   resting states --Admit--> Starting --Report(running)--> Running --Report(rest)--> resting
//!   Starting | Running --Interrupt--> Stopped
//! ```

use super::machine;
use crate::codes::codes;
use crate::rows::Activity;

codes! {
    /// What can happen to it.
    Input {
        /// A turn is admitted (S-12).
        Admit = "admit",
        /// The runtime runs.
        Run = "run",
        /// Between turns.
        Rest = "rest",
        /// The agent asked.
        Wait = "wait",
        /// Stopped on request.
        Stop = "stop",
        /// A crash or a task operation ended the turn.
        Interrupt = "interrupt",
        /// The turn ended in an error.
        Fail = "error",
        /// The work is finished.
        Complete = "complete",
        /// The work is finished without success.
        GiveUp = "fail",
        /// The work was given up.
        Cancel = "cancel",
    }
}

/// The next activity, or none if the input is illegal.
pub const fn step(state: Activity, input: Input) -> Option<Activity> {
    match input {
        Input::Admit => match state {
            Activity::Created
            | Activity::Idle
            | Activity::WaitingForInput
            | Activity::Stopped
            | Activity::Error
            | Activity::Completed
            | Activity::Failed
            | Activity::Cancelled => Some(Activity::Starting),
            Activity::Starting | Activity::Running => None,
        },
        Input::Run => match state {
            Activity::Starting | Activity::Running | Activity::Idle | Activity::WaitingForInput => {
                Some(Activity::Running)
            }
            Activity::Created
            | Activity::Stopped
            | Activity::Error
            | Activity::Completed
            | Activity::Failed
            | Activity::Cancelled => None,
        },
        Input::Interrupt => match state {
            Activity::Starting
            | Activity::Running
            | Activity::Idle
            | Activity::WaitingForInput
            | Activity::Stopped
            | Activity::Error
            | Activity::Created
            | Activity::Completed
            | Activity::Failed
            | Activity::Cancelled => Some(Activity::Stopped),
        },
        Input::Rest => Some(Activity::Idle),
        Input::Wait => Some(Activity::WaitingForInput),
        Input::Stop => Some(Activity::Stopped),
        Input::Fail => Some(Activity::Error),
        Input::Complete => Some(Activity::Completed),
        Input::GiveUp => Some(Activity::Failed),
        Input::Cancel => Some(Activity::Cancelled),
    }
}

/// The input that asks for an activity. None for those that no writer may ask for: only creation
/// makes `created`, only admission `starting`.
pub const fn input_for(activity: Activity) -> Option<Input> {
    match activity {
        Activity::Created | Activity::Starting => None,
        Activity::Running => Some(Input::Run),
        Activity::Idle => Some(Input::Rest),
        Activity::WaitingForInput => Some(Input::Wait),
        Activity::Stopped => Some(Input::Stop),
        Activity::Error => Some(Input::Fail),
        Activity::Completed => Some(Input::Complete),
        Activity::Failed => Some(Input::GiveUp),
        Activity::Cancelled => Some(Input::Cancel),
    }
}

machine!("activity", "S-4, S-12, S-14", Activity, Input);
