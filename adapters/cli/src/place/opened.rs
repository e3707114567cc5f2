//! A store that is open, of whichever kind.

use freehold_kernel::JobRoot;
use freehold_postgres::PostgresStore;
use freehold_sqlite::Sqlite;
use freehold_store::store::JournalRow;
use freehold_store::{Outcome, Pick, Read, Rows, Store, StoreError, Submission};

/// Either store.
#[derive(Debug)]
pub(crate) enum OpenStore {
    /// SQLite.
    File(Box<Sqlite>),
    /// PostgreSQL.
    Server(PostgresStore),
}

impl Store for OpenStore {
    async fn submit(&self, submission: &Submission) -> Result<Outcome, StoreError> {
        match self {
            OpenStore::File(store) => store.submit(submission).await,
            OpenStore::Server(store) => store.submit(submission).await,
        }
    }

    async fn read(&self, reads: &[Read]) -> Result<Rows, StoreError> {
        match self {
            OpenStore::File(store) => store.read(reads).await,
            OpenStore::Server(store) => store.read(reads).await,
        }
    }

    async fn journal(&self, after: i64, limit: usize) -> Result<Vec<JournalRow>, StoreError> {
        match self {
            OpenStore::File(store) => store.journal(after, limit).await,
            OpenStore::Server(store) => store.journal(after, limit).await,
        }
    }

    async fn pick(&self, pick: &Pick) -> Result<Vec<JobRoot>, StoreError> {
        match self {
            OpenStore::File(store) => store.pick(pick).await,
            OpenStore::Server(store) => store.pick(pick).await,
        }
    }

    async fn id(&self) -> Result<String, StoreError> {
        match self {
            OpenStore::File(store) => store.id().await,
            OpenStore::Server(store) => store.id().await,
        }
    }
}
