//! Why the program ends without success, and with which exit code.

use freehold_kernel::ReasonClass;
use freehold_store::{HostError, StoreError};

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
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::Host(HostError::Store(error))
    }
}

impl Failure {
    /// The exit code; see the crate's table.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Untrue(_) => 1,
            Failure::Surroundings(_) => 3,
            Failure::Host(error) => match error {
                HostError::Refused(_)
                | HostError::UnsavedWork { .. }
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

    /// A stable word for the kind of failure.
    pub fn code(&self) -> &'static str {
        match self {
            Failure::Untrue(_) => "untrue",
            Failure::Surroundings(_) => "surroundings",
            Failure::Host(error) => match error {
                HostError::Refused(refused) | HostError::UnsavedWork { refused, .. } => {
                    refused.refusal.guard.code()
                }
                HostError::Undone { guard } => guard.code(),
                HostError::Name(_) => "bad_id",
                HostError::NotThere { .. } => "not_there",
                HostError::Workspace(error) => error.reason.code(),
                HostError::Store(_) => "store",
            },
        }
    }
}
