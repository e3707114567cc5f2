//! The store itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freehold_kernel::JobRoot;
use freehold_store::store::JournalRow;
use freehold_store::{Clock, Outcome, Pick, Read, Rows, Store, StoreError, Submission};
use tokio_postgres::Config;
use tokio_postgres::types::Type;

use crate::commit::channel;
use crate::journal::{self, Gaps};
use crate::metrics::{Counters, Metrics};
use crate::options::Options;
use crate::pool::Connections;
use crate::{open, reader, submit};

/// A store in one schema of a PostgreSQL database. Cheap to clone; several instances in several
/// processes may have the same schema open.
///
/// Its futures may be polled by any executor. What they wait for is driven by the runtime of
/// [`Options::runtime`]; a future that is dropped leaves no transaction open and nothing
/// half-done.
#[derive(Clone, Debug)]
pub struct PostgresStore {
    pub(crate) shared: Arc<Shared>,
}

/// What the clones share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) connections: Connections,
    pub(crate) counters: Counters,
    gaps: Gaps,
    id: String,
    /// Whether a wake is on its way that has not been sent yet.
    waking: AtomicBool,
}

impl PostgresStore {
    /// Opens a store, or makes a fresh one where the schema is not there or empty. One that is
    /// refused is left as it was.
    ///
    /// # Errors
    /// - [`StoreError::Unavailable`]: the server cannot be reached; there is no runtime.
    /// - [`StoreError::Denied`]: wrong user or password, TLS refused, no right to make the schema.
    /// - [`StoreError::NotAStore`]: no such database, an encoding other than UTF8, a schema of
    ///   something else, a server that is too old.
    /// - [`StoreError::Legacy`]: a schema that has to be upgraded first.
    /// - [`StoreError::Newer`]: written by a newer Freehold.
    /// - [`StoreError::Corrupt`]: its version cannot be read, or a part is missing.
    /// - [`StoreError::ReadOnly`]: a replica, or a database that may only be read.
    /// - [`StoreError::Busy`]: another instance kept it locked for longer than the wait.
    /// - [`StoreError::DiskFull`], [`StoreError::Unknown`]: making or upgrading it failed.
    pub async fn connect(config: Config, options: Options) -> Result<PostgresStore, StoreError> {
        let connections = Connections::new(config, &options)?;
        let id = connections.on_runtime(open::open(&connections)).await?;
        let (counters, gaps) = (Counters::default(), Gaps::default());
        Ok(PostgresStore {
            shared: Arc::new(Shared {
                connections,
                counters,
                gaps,
                id,
                waking: AtomicBool::new(false),
            }),
        })
    }

    /// The clock: the server's, if it is [`Clock::System`].
    pub fn clock(&self) -> &Clock {
        &self.shared.connections.options().clock
    }

    /// Tells those who listen that something was committed. Nobody waits for it, and one that is
    /// lost costs a listener no more than its wait.
    fn wake(&self) {
        let shared = &self.shared;
        let options = shared.connections.options();
        if !options.notify || shared.waking.swap(true, Ordering::SeqCst) {
            return;
        }
        let (of, channel) = (Arc::clone(shared), channel(options));
        shared.connections.runtime().spawn(async move {
            let lease = of.connections.lease(of.connections.deadline()).await;
            // From here on a commit may come too late for this one.
            of.waking.store(false, Ordering::SeqCst);
            if let Ok(mut lease) = lease {
                let text = "SELECT pg_notify($1, '')";
                let _hint = lease.rows(text, &[(&channel, Type::TEXT)]).await;
            }
        });
    }

    /// What was counted since the store was opened.
    pub fn metrics(&self) -> Metrics {
        self.shared.counters.read()
    }
}

impl Store for PostgresStore {
    async fn submit(&self, submission: &Submission) -> Result<Outcome, StoreError> {
        let shared = &*self.shared;
        let work = submit::submit(&shared.connections, &shared.counters, submission);
        let outcome = shared.connections.on_runtime(work).await;
        if matches!(&outcome, Ok(Outcome::Accepted(accepted)) if !accepted.replayed) {
            self.wake();
        }
        outcome
    }

    async fn read(&self, reads: &[Read]) -> Result<Rows, StoreError> {
        let connections = &self.shared.connections;
        connections.on_runtime(reader::read(connections, reads)).await
    }

    async fn journal(&self, after: i64, limit: usize) -> Result<Vec<JournalRow>, StoreError> {
        let connections = &self.shared.connections;
        let work = journal::read(connections, &self.shared.gaps, after, limit);
        connections.on_runtime(work).await
    }

    async fn pick(&self, pick: &Pick) -> Result<Vec<JobRoot>, StoreError> {
        let connections = &self.shared.connections;
        connections.on_runtime(crate::pick::pick(connections, pick)).await
    }

    async fn id(&self) -> Result<String, StoreError> {
        Ok(self.shared.id.clone())
    }
}
