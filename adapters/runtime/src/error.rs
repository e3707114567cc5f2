//! Why a program was not begun.

use std::io;
use std::path::PathBuf;

/// Nothing runs: what was made for it has ended.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program, as it was asked for, cannot be run.
    #[error("{what}: {}; {help}", path.display())]
    Unfit {
        /// What is wrong.
        what: &'static str,
        /// The path that is meant.
        path: PathBuf,
        /// What would help.
        help: &'static str,
    },
    /// A name in its environment that a shell does not hand on.
    #[error("the environment's name {name:?} is none; use letters, digits and underscores")]
    Name {
        /// The name.
        name: String,
    },
    /// This machine does not say what would have to be recorded (D-11).
    #[error("a process cannot be recorded here ({0}); mount /proc as the kernel makes it")]
    NoPlace(String),
    /// The system did not do it.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
}
