//! Instances that look for work at the same moment.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use freehold_kernel::JobRoot;
use freehold_store::store::JournalRow;
use freehold_store::{Outcome, Pick, Read, Rows, Store, StoreError, Submission};

use super::AnyStore;

/// A store whose instances have all looked for work before the first of them claims any.
pub struct Meeting<'b> {
    inner: AnyStore,
    /// Whether the store divides what is due, or tells all the same.
    divides: bool,
    meets: AtomicBool,
    all: &'b Barrier,
}

impl<'b> Meeting<'b> {
    pub fn new(inner: AnyStore, divides: bool, all: &'b Barrier) -> Meeting<'b> {
        Meeting { inner, divides, meets: AtomicBool::new(true), all }
    }
}

impl Store for Meeting<'_> {
    async fn submit(&self, submission: &Submission) -> Result<Outcome, StoreError> {
        self.inner.submit(submission).await
    }

    async fn read(&self, reads: &[Read]) -> Result<Rows, StoreError> {
        self.inner.read(reads).await
    }

    async fn journal(&self, after: i64, limit: usize) -> Result<Vec<JournalRow>, StoreError> {
        self.inner.journal(after, limit).await
    }

    async fn pick(&self, pick: &Pick) -> Result<Vec<JobRoot>, StoreError> {
        let picked = match self.divides {
            true => self.inner.pick(pick).await,
            false => freehold_store::pick::by_reading(&self.inner, pick).await,
        };
        if self.meets.swap(false, Ordering::SeqCst) {
            self.all.wait();
        }
        picked
    }

    async fn id(&self) -> Result<String, StoreError> {
        self.inner.id().await
    }
}
