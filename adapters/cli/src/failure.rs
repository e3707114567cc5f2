//! Why the program ends without success, and with which exit code.

use freehold_kernel::ReasonClass;
use freehold_store::{HostError, NameError, StoreError};

/// A failure of a command.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The host's call failed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A program or file of the surroundings failed.
    #[error("{0}")]
    Surroundings(String),
    /// What was to be shown is not so.
    #[error("not as promised: {0}")]
    Untrue(String),
    /// The command line names what is not there.
    #[error("{0}")]
    Unknown(String),
    /// A check that was told already found something broken.
    #[error("not as promised: {0}")]
    Broken(String),
    /// The doctor has told what it found.
    #[error("not as it should be: {0}")]
    Found(String),
    /// A failure with the exact next command.
    #[error("{failure}; next: {next}")]
    Next {
        /// What failed.
        failure: Box<Failure>,
        /// A command line, quoted for a shell.
        next: String,
    },
    /// A check that was told already was cut by a limit: no pass, and nothing broken so far.
    #[error("not through: {0}")]
    Cut(String),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::Host(HostError::Store(error))
    }
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Failure {
        Failure::Host(HostError::Name(error))
    }
}

impl Failure {
    /// The same failure with the command that goes on from it.
    #[must_use]
    pub fn then(self, next: String) -> Failure {
        Failure::Next { failure: Box::new(self), next }
    }

    /// The next command, if the failure has one.
    pub fn next(&self) -> Option<&str> {
        match self {
            Failure::Next { next, .. } => Some(next),
            _without => None,
        }
    }

    /// The exit code; see the crate's table.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Untrue(_) | Failure::Broken(_) => 1,
            Failure::Unknown(_) => 2,
            Failure::Cut(_) => 5,
            Failure::Found(_) => 6,
            Failure::Next { failure, .. } => failure.exit_code(),
            Failure::Surroundings(_) => 3,
            Failure::Host(error) => match error {
                HostError::Refused(_)
                | HostError::UnsavedWork { .. }
                | HostError::Live { .. }
                | HostError::Undone { .. } => 1,
                HostError::Name(_) | HostError::NotThere { .. } => 2,
                HostError::Workspace(error) => match error.reason.class() {
                    ReasonClass::Transient | ReasonClass::Nothing => 3,
                    ReasonClass::Final | ReasonClass::Kept => 4,
                },
                HostError::Store(error) => match error {
                    StoreError::Newer { .. }
                    | StoreError::Denied { .. }
                    | StoreError::NotAStore { .. }
                    | StoreError::Legacy { .. }
                    | StoreError::Corrupt { .. }
                    | StoreError::Unreadable { .. }
                    | StoreError::Defect { .. } => 4,
                    _transient_or_unavailable => 3,
                },
            },
        }
    }

    /// Whether the result was printed already, so that JSON needs no object of its own for it.
    pub fn is_told(&self) -> bool {
        matches!(self, Failure::Broken(_) | Failure::Cut(_) | Failure::Found(_))
    }

    /// A stable word for the kind of failure.
    pub fn code(&self) -> &'static str {
        match self {
            Failure::Untrue(_) => "untrue",
            Failure::Unknown(_) => "unknown_name",
            Failure::Broken(_) => "broken",
            Failure::Cut(_) => "cut",
            Failure::Found(_) => "found",
            Failure::Next { failure, .. } => failure.code(),
            Failure::Surroundings(_) => "surroundings",
            Failure::Host(error) => match error {
                HostError::Refused(refused) | HostError::UnsavedWork { refused, .. } => {
                    refused.refusal.guard.code()
                }
                HostError::Undone { guard } => guard.code(),
                HostError::Live { .. } => "live",
                HostError::Name(_) => "bad_id",
                HostError::NotThere { .. } => "not_there",
                HostError::Workspace(error) => error.reason.code(),
                HostError::Store(_) => "store",
            },
        }
    }
}
