//! A turn's phases (S-10..S-15).
//! ```text
//!   WaitingForSlot --Run--> Running <--> BetweenLegs, Draining, Background
//!   any of them --End--> Ended (with exactly one outcome)
//! ```

use super::machine;
use crate::codes::codes;
use crate::rows::TurnPhase;

codes! {
    /// What can happen to it.
    Input {
        /// Its runtime runs (again).
        Run = "run",
        /// A leg of its workflow ended and another follows.
        Pause = "between_legs",
        /// The runtime still has something to say.
        Drain = "drain",
        /// It goes on in the background.
        Park = "park",
        /// Its terminal event.
        End = "end",
    }
}

/// The next phase, or none if the input is illegal.
pub const fn step(state: TurnPhase, input: Input) -> Option<TurnPhase> {
    match state {
        TurnPhase::WaitingForSlot => match input {
            Input::Run => Some(TurnPhase::Running),
            Input::End => Some(TurnPhase::Ended),
            Input::Pause | Input::Drain | Input::Park => None,
        },
        TurnPhase::Running => match input {
            Input::Pause => Some(TurnPhase::BetweenLegs),
            Input::Drain => Some(TurnPhase::Draining),
            Input::Park => Some(TurnPhase::Background),
            Input::End => Some(TurnPhase::Ended),
            Input::Run => None,
        },
        TurnPhase::BetweenLegs => match input {
            Input::Run => Some(TurnPhase::Running),
            Input::End => Some(TurnPhase::Ended),
            Input::Pause | Input::Drain | Input::Park => None,
        },
        TurnPhase::Draining => match input {
            Input::Park => Some(TurnPhase::Background),
            Input::End => Some(TurnPhase::Ended),
            Input::Run | Input::Pause | Input::Drain => None,
        },
        TurnPhase::Background => match input {
            Input::Run => Some(TurnPhase::Running),
            Input::End => Some(TurnPhase::Ended),
            Input::Pause | Input::Drain | Input::Park => None,
        },
        TurnPhase::Ended => match input {
            Input::Run | Input::Pause | Input::Drain | Input::Park | Input::End => None,
        },
    }
}

/// The input that asks for a phase; none for the one that only admission makes.
pub const fn input_for(phase: TurnPhase) -> Option<Input> {
    match phase {
        TurnPhase::WaitingForSlot => None,
        TurnPhase::Running => Some(Input::Run),
        TurnPhase::BetweenLegs => Some(Input::Pause),
        TurnPhase::Draining => Some(Input::Drain),
        TurnPhase::Background => Some(Input::Park),
        TurnPhase::Ended => Some(Input::End),
    }
}

machine!("turn", "S-10..S-15", TurnPhase, Input);
