//! The store that a scenario runs on. The same scenarios run on SQLite, each file as a test binary
//! of its own, and on PostgreSQL, all files in the binary `postgres`.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use freehold_pg_server::Server;
use freehold_postgres::PostgresStore;
use freehold_sqlite::Sqlite;
use freehold_store::{Clock, Either, StoreError};
use tokio::runtime::Runtime;

/// Whether this test binary's scenarios run on PostgreSQL: `tests/postgres/main.rs` does.
const ON_POSTGRES: bool = matches!(env!("CARGO_CRATE_NAME").as_bytes(), b"postgres");

/// Where a store is. Another process opens the same one from its [`StorePlace::text`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorePlace {
    Sqlite(PathBuf),
    Postgres { url: String, schema: String },
}

impl StorePlace {
    /// A place for a fresh store: the file, or a schema of its own on the binary's server.
    pub fn fresh(file: PathBuf) -> StorePlace {
        if ON_POSTGRES {
            let schema = format!("x {}", uuid::Uuid::now_v7().simple());
            StorePlace::Postgres { url: Server::shared().url("postgres"), schema }
        } else {
            StorePlace::Sqlite(file)
        }
    }

    /// For another process.
    pub fn text(&self) -> String {
        match self {
            StorePlace::Sqlite(file) => file.to_str().unwrap().to_owned(),
            StorePlace::Postgres { url, schema } => format!("{url}#{schema}"),
        }
    }

    /// What [`StorePlace::text`] said.
    pub fn told(text: &str) -> StorePlace {
        match text.split_once('#') {
            Some((url, schema)) => {
                StorePlace::Postgres { url: url.to_owned(), schema: schema.to_owned() }
            }
            None => StorePlace::Sqlite(PathBuf::from(text)),
        }
    }

    /// Opens it, as another instance does: with connections of its own.
    pub fn open(&self, clock: &Clock) -> AnyStore {
        self.try_open(clock).unwrap()
    }

    /// The same, waiting for minutes where many instances write at once on a slow machine.
    pub fn open_patiently(&self, clock: &Clock) -> AnyStore {
        match self {
            StorePlace::Sqlite(file) => {
                let busy_wait = std::time::Duration::from_secs(300);
                let clock = clock.clone();
                let options = freehold_sqlite::Options { clock, busy_wait, ..Default::default() };
                Either::First(Arc::new(Sqlite::open(file, options).unwrap()))
            }
            StorePlace::Postgres { .. } => self.open(clock),
        }
    }

    /// The words by which the program finds it.
    pub fn words(&self) -> Vec<std::ffi::OsString> {
        match self {
            StorePlace::Sqlite(file) => vec!["--store".into(), file.into()],
            StorePlace::Postgres { url, schema } => {
                vec!["--store".into(), url.into(), "--schema".into(), schema.into()]
            }
        }
    }

    /// Runs one statement behind everybody's back: the first column of its rows, a line each.
    pub fn sql(&self, text: &str) -> String {
        match self {
            StorePlace::Sqlite(file) => {
                let store = rusqlite::Connection::open(file).unwrap();
                let mut statement = store.prepare(text).unwrap();
                let mut rows = statement.query([]).unwrap();
                let mut lines = Vec::new();
                while let Some(row) = rows.next().unwrap() {
                    use rusqlite::types::Value;
                    lines.push(match row.get(0).unwrap() {
                        Value::Null => String::new(),
                        Value::Integer(number) => number.to_string(),
                        Value::Text(text) => text,
                        other => panic!("{text}: {other:?}"),
                    });
                }
                lines.join("\n")
            }
            StorePlace::Postgres { schema, .. } => {
                let text = format!("SET search_path TO \"{schema}\"; {text}");
                Server::shared().sql("postgres", &text)
            }
        }
    }

    pub fn try_open(&self, clock: &Clock) -> Result<AnyStore, StoreError> {
        let clock = clock.clone();
        match self {
            StorePlace::Sqlite(file) => {
                let options = freehold_sqlite::Options { clock, ..Default::default() };
                Sqlite::open(file, options).map(|store| Either::First(Arc::new(store)))
            }
            StorePlace::Postgres { url, schema } => {
                let options = freehold_postgres::Options {
                    schema: schema.clone(),
                    clock,
                    // Many instances share the one server of a test binary.
                    connections: 4,
                    runtime: Some(runtime().handle().clone()),
                    ..Default::default()
                };
                let mut config: freehold_postgres::tokio_postgres::Config = url.parse().unwrap();
                config.application_name(schema);
                pollster::block_on(PostgresStore::connect(config, options)).map(Either::Second)
            }
        }
    }
}

/// A text as a statement has it.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The host's runtime, on whose threads the connections are driven.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().unwrap()
    })
}

/// Either store.
pub type AnyStore = Either<Arc<Sqlite>, PostgresStore>;
