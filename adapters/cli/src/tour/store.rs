//! The store that the tour is told on: a file in its folder, or a schema of its own on a server.

use freehold_kernel::JobRoot;
use freehold_postgres::PostgresStore;
use freehold_postgres::tokio_postgres::{Config, NoTls};
use freehold_sqlite::Sqlite;
use freehold_store::store::JournalRow;
use freehold_store::{
    Drive, OnThisThread, Outcome, Pick, Read, Rows, Store, StoreError, Submission,
};

use super::ground::Ground;
use crate::failure::Failure;
use crate::place::StorePlace;

/// Either store.
pub(crate) enum TourStore {
    File(Box<Sqlite>),
    Server(PostgresStore),
}

/// A server, and the schema that the tour makes on it and nobody else has.
pub(crate) struct Server {
    pub(crate) address: String,
    pub(crate) schema: String,
    config: Config,
    runtime: tokio::runtime::Runtime,
}

impl Server {
    /// Reads the address; nothing is asked of the server yet.
    ///
    /// # Errors
    /// [`Failure::Unknown`] for an address that cannot be read, and for a file: the tour never
    /// happens in a store that is there, since it settles, archives and deletes as it likes.
    pub(crate) fn read(address: &str) -> Result<Server, Failure> {
        let StorePlace::Server { config, .. } = StorePlace::read(address.as_ref(), None)? else {
            return Err(Failure::Unknown(
                "the tour makes a file of its own; give --store the address of a PostgreSQL \
                 database, like postgres://user@host:5432/database, to have it told there"
                    .to_owned(),
            ));
        };
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().map_err(|e| {
            Failure::Surroundings(format!("the connections' thread cannot be started: {e}"))
        })?;
        let schema = format!("freehold_tour_{}", uuid::Uuid::now_v7().simple());
        Ok(Server { address: address.to_owned(), schema, config: *config, runtime })
    }

    fn open(&self) -> Result<PostgresStore, StoreError> {
        let options = freehold_postgres::Options {
            schema: self.schema.clone(),
            connections: 4,
            notify: false,
            runtime: Some(self.runtime.handle().clone()),
            ..freehold_postgres::Options::default()
        };
        OnThisThread.wait(PostgresStore::connect(self.config.clone(), options))
    }

    /// Takes the tour's own schema away again.
    ///
    /// # Errors
    /// [`Failure::Surroundings`], with the statement that does it by hand.
    pub(crate) fn clear(&self) -> Result<(), Failure> {
        let drop = format!("DROP SCHEMA IF EXISTS \"{}\" CASCADE", self.schema);
        let done = self.runtime.block_on(async {
            let (client, connection) = self.config.connect(NoTls).await?;
            let driven = tokio::spawn(connection);
            let done = client.batch_execute(&drop).await;
            driven.abort();
            done
        });
        done.map_err(|e| {
            Failure::Surroundings(format!("the tour's schema is left over ({e}); to do: {drop}"))
        })
    }
}

impl TourStore {
    /// Another connection to the tour's store, which is made the first time.
    ///
    /// # Errors
    /// Failures of the store.
    pub(crate) fn open(ground: &Ground) -> Result<TourStore, StoreError> {
        match &ground.server {
            Some(server) => server.open().map(TourStore::Server),
            None => Sqlite::open(&ground.store, freehold_sqlite::Options::default())
                .map(|store| TourStore::File(Box::new(store))),
        }
    }
}

impl Store for TourStore {
    async fn submit(&self, submission: &Submission) -> Result<Outcome, StoreError> {
        match self {
            TourStore::File(store) => store.submit(submission).await,
            TourStore::Server(store) => store.submit(submission).await,
        }
    }

    async fn read(&self, reads: &[Read]) -> Result<Rows, StoreError> {
        match self {
            TourStore::File(store) => store.read(reads).await,
            TourStore::Server(store) => store.read(reads).await,
        }
    }

    async fn journal(&self, after: i64, limit: usize) -> Result<Vec<JournalRow>, StoreError> {
        match self {
            TourStore::File(store) => store.journal(after, limit).await,
            TourStore::Server(store) => store.journal(after, limit).await,
        }
    }

    async fn pick(&self, pick: &Pick) -> Result<Vec<JobRoot>, StoreError> {
        match self {
            TourStore::File(store) => store.pick(pick).await,
            TourStore::Server(store) => store.pick(pick).await,
        }
    }

    async fn id(&self) -> Result<String, StoreError> {
        match self {
            TourStore::File(store) => store.id().await,
            TourStore::Server(store) => store.id().await,
        }
    }
}
