//! One of two stores, chosen when the program starts.

use freehold_kernel::JobRoot;

use crate::error::StoreError;
use crate::pick::Pick;
use crate::store::{JournalRow, Read, Rows, Store};
use crate::submission::{Outcome, Submission};

/// A store of one kind or of another: what a host is generic over where a setting says which.
#[derive(Clone, Debug)]
pub enum Either<A, B> {
    /// Of the first kind.
    First(A),
    /// Of the second.
    Second(B),
}

impl<A: Store, B: Store> Store for Either<A, B> {
    async fn submit(&self, submission: &Submission) -> Result<Outcome, StoreError> {
        match self {
            Either::First(store) => store.submit(submission).await,
            Either::Second(store) => store.submit(submission).await,
        }
    }

    async fn read(&self, reads: &[Read]) -> Result<Rows, StoreError> {
        match self {
            Either::First(store) => store.read(reads).await,
            Either::Second(store) => store.read(reads).await,
        }
    }

    async fn journal(&self, after: i64, limit: usize) -> Result<Vec<JournalRow>, StoreError> {
        match self {
            Either::First(store) => store.journal(after, limit).await,
            Either::Second(store) => store.journal(after, limit).await,
        }
    }

    async fn pick(&self, pick: &Pick) -> Result<Vec<JobRoot>, StoreError> {
        match self {
            Either::First(store) => store.pick(pick).await,
            Either::Second(store) => store.pick(pick).await,
        }
    }

    async fn id(&self) -> Result<String, StoreError> {
        match self {
            Either::First(store) => store.id().await,
            Either::Second(store) => store.id().await,
        }
    }
}
