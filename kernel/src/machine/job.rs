//! A cleanup job, and each of its parts (05). The barrier is its first state.
//! ```text
//! Prepared --Activate--> Pending --Claim--> Running --Succeed--> Succeeded
//!    |                      ^                  |--Wait--> RetryWait --Claim--> Running
//!    |                      |                  |--Fail--> Failed --Retry--> Pending
//!    |                      \---- PutBack -----/
//!    \--Cancel--> Cancelled <--Cancel-- Pending | Running | RetryWait
//! ```

use super::machine;
use crate::codes::codes;
use crate::rows::JobState;

codes! {
    /// What can happen to it.
    Input {
        /// The mutation (B-5).
        Activate = "activate",
        /// C-3.
        Claim = "claim",
        /// Everything is settled.
        Succeed = "succeed",
        /// Something transient is left (C-9).
        Wait = "wait",
        /// Only final reasons are left, or the tries are spent (C-2).
        Fail = "fail",
        /// Not the job's fault (C-17).
        PutBack = "put_back",
        /// Aborted, taken over, unarchived.
        Cancel = "cancel",
        /// By hand (C-2), or by asking for the same archive again (T-11).
        Retry = "retry",
    }
}

/// The next state, or none if the input is illegal.
pub const fn step(state: JobState, input: Input) -> Option<JobState> {
    match state {
        JobState::Prepared => match input {
            Input::Activate => Some(JobState::Pending),
            Input::Cancel => Some(JobState::Cancelled),
            Input::Claim
            | Input::Succeed
            | Input::Wait
            | Input::Fail
            | Input::PutBack
            | Input::Retry => None,
        },
        JobState::Pending => match input {
            Input::Claim => Some(JobState::Running),
            Input::Cancel => Some(JobState::Cancelled),
            // A person may forget its last resource, or a build may not be able to read it.
            Input::Succeed => Some(JobState::Succeeded),
            Input::Fail => Some(JobState::Failed),
            Input::Activate | Input::Wait | Input::PutBack | Input::Retry => None,
        },
        JobState::Running => match input {
            Input::Succeed => Some(JobState::Succeeded),
            Input::Wait => Some(JobState::RetryWait),
            Input::Fail => Some(JobState::Failed),
            Input::PutBack => Some(JobState::Pending),
            Input::Cancel => Some(JobState::Cancelled),
            Input::Activate | Input::Claim | Input::Retry => None,
        },
        JobState::RetryWait => match input {
            Input::Claim => Some(JobState::Running),
            Input::Retry => Some(JobState::Pending),
            Input::Succeed => Some(JobState::Succeeded),
            Input::Fail => Some(JobState::Failed),
            Input::Cancel => Some(JobState::Cancelled),
            Input::Activate | Input::Wait | Input::PutBack => None,
        },
        JobState::Failed => match input {
            Input::Retry => Some(JobState::Pending),
            Input::Succeed => Some(JobState::Succeeded),
            Input::Activate
            | Input::Claim
            | Input::Wait
            | Input::Fail
            | Input::PutBack
            | Input::Cancel => None,
        },
        JobState::Succeeded | JobState::Cancelled => match input {
            Input::Activate
            | Input::Claim
            | Input::Succeed
            | Input::Wait
            | Input::Fail
            | Input::PutBack
            | Input::Cancel
            | Input::Retry => None,
        },
    }
}

machine!("job", "05, B-1..B-8, C-2..C-17", JobState, Input);
