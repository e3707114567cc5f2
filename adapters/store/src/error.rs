//! Failures of a store: never a refusal, and never taken for an absence (S-29).

use crate::names::NameError;

/// Why a store could not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The reply to a commit was lost: it may have happened. Submit again with the same request
    /// id to learn the outcome (D-19).
    #[error("the outcome of the commit is not known ({detail}); submit the same request again")]
    Unknown {
        /// What was seen.
        detail: String,
    },
    /// Somebody else holds the store for longer than the configured wait. Nothing was done.
    #[error("the store is busy ({detail}); try again")]
    Busy {
        /// What was seen.
        detail: String,
    },
    /// The store may only be read.
    #[error("the store at {path} can only be read; give this user the right to write it")]
    ReadOnly {
        /// Where it is.
        path: String,
    },
    /// The server does not let this user in, or not do this. Nothing was done.
    #[error("the store refuses this user ({detail}); correct the name, the password or the rights")]
    Denied {
        /// What was seen.
        detail: String,
    },
    /// The disk is full. Nothing was done.
    #[error("no space is left for the store ({detail}); free some and try again")]
    DiskFull {
        /// What was seen.
        detail: String,
    },
    /// The store was written by a newer Freehold.
    #[error(
        "the store {path} has schema version {found}, this build knows {known}; run a newer Freehold"
    )]
    Newer {
        /// Where it is.
        path: String,
        /// The version on disk.
        found: i64,
        /// The newest that this build knows.
        known: i64,
    },
    /// What is there is no database, or no Freehold store.
    #[error("{path} is not a Freehold store ({detail}); give another path, or move it away")]
    NotAStore {
        /// Where it is.
        path: String,
        /// What was seen.
        detail: String,
    },
    /// A legacy database that has to be upgraded first.
    #[error("{path} has the legacy schema; run `freehold migrate {path}` first")]
    Legacy {
        /// Where it is.
        path: String,
    },
    /// The file is damaged.
    #[error("the store {path} is damaged ({detail}); restore it from a backup")]
    Corrupt {
        /// Where it is.
        path: String,
        /// What was seen.
        detail: String,
    },
    /// A stored value that this build cannot read. Unknown is not absent.
    #[error("table {table}, column {column} holds {value:?}, which this build cannot read")]
    Unreadable {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// What stands there.
        value: String,
    },
    /// An id that cannot be used, or two with one digest.
    #[error(transparent)]
    Name(#[from] NameError),
    /// It cannot be opened or reached.
    #[error("the store cannot be used: {detail}")]
    Unavailable {
        /// What was seen.
        detail: String,
    },
    /// A row changed between reading and writing although it was locked: a defect of the store.
    #[error("defect: {detail}")]
    Defect {
        /// What was seen.
        detail: String,
    },
}

impl StoreError {
    /// Whether the same submission may succeed later.
    pub fn may_pass_later(&self) -> bool {
        match self {
            StoreError::Unknown { .. }
            | StoreError::Busy { .. }
            | StoreError::DiskFull { .. }
            | StoreError::Unavailable { .. } => true,
            StoreError::ReadOnly { .. }
            | StoreError::Denied { .. }
            | StoreError::Newer { .. }
            | StoreError::NotAStore { .. }
            | StoreError::Legacy { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Unreadable { .. }
            | StoreError::Name(_)
            | StoreError::Defect { .. } => false,
        }
    }
}
