//! Opening: telling what a schema is before anything in it is changed.

use std::fmt::Write as _;

use freehold_kernel::TableId;
use freehold_store::{Clock, StoreError};
use sha2::{Digest, Sha256};
use tokio_postgres::types::Type;

use crate::deadline::Deadline;
use crate::fault::Fault;
use crate::footprint::CLOCK;
use crate::options::milliseconds;
use crate::pool::{Connections, Lease};
use crate::routine;
use crate::sql::quoted;

/// Every version with its tables; its functions are [`routine::definition`].
const MIGRATIONS: &[(i64, &str)] = &[(1, include_str!("schema/0001.sql"))];

/// The newest version that this build knows.
pub(crate) const KNOWN: i64 = 1;

/// The oldest server that has all that is used: `client_connection_check_interval`.
const SERVER_MIN: i32 = 140_000;

/// What stands in a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// No schema, or one without a table.
    Nothing,
    /// A store of this version, which this build knows.
    Version(i64),
}

/// Opens the store or makes a fresh one, and returns its id.
///
/// # Errors
/// As [`crate::PostgresStore::connect`].
pub(crate) async fn open(connections: &Connections) -> Result<String, StoreError> {
    let mut lease = connections.lease(connections.deadline()).await?;
    let found = inspect(connections, &mut lease).await?;
    if found == Found::Nothing && !connections.options().create {
        return Err(nothing(connections));
    }
    if found != Found::Version(KNOWN) {
        make(connections, &mut lease).await?;
    }
    store_id(connections, &mut lease).await
}

/// Refuses anything but a store of the version that this build writes.
///
/// # Errors
/// As said.
pub(crate) async fn require_current(
    connections: &Connections,
    until: Deadline,
) -> Result<(), StoreError> {
    let mut lease = connections.lease(until).await?;
    match inspect(connections, &mut lease).await? {
        Found::Version(KNOWN) => Ok(()),
        Found::Version(found) => Err(StoreError::Unavailable {
            detail: format!("its schema {found} is older than {KNOWN}; open it once first"),
        }),
        Found::Nothing => Err(nothing(connections)),
    }
}

fn nothing(connections: &Connections) -> StoreError {
    StoreError::NotAStore {
        path: connections.place().to_owned(),
        detail: "there is no table".to_owned(),
    }
}

/// Tells what stands there, by reading only.
async fn inspect(connections: &Connections, lease: &mut Lease<'_>) -> Result<Found, StoreError> {
    let path = || connections.place().to_owned();
    let schema = &connections.options().schema;
    let not_a_store = |detail: String| StoreError::NotAStore { path: path(), detail };
    let text = "SELECT current_setting('server_encoding'), \
                pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on', \
                current_setting('server_version_num')::int, \
                ARRAY(SELECT c.relname::text FROM pg_class c \
                      JOIN pg_namespace n ON n.oid = c.relnamespace \
                      WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f') \
                      ORDER BY 1), \
                EXISTS (SELECT FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace \
                        WHERE n.nspname = $1 AND f.proname = $2)";
    let name = routine::NAME;
    let rows = lease.rows(text, &[(schema, Type::TEXT), (&name, Type::TEXT)]).await;
    let rows = rows.map_err(Fault::error)?;
    let defect = |e: tokio_postgres::Error| StoreError::Defect { detail: e.to_string() };
    let Some(row) = rows.first() else {
        return Err(StoreError::Defect { detail: "the server answered nothing".to_owned() });
    };
    let encoding: String = row.try_get(0).map_err(defect)?;
    let read_only: bool = row.try_get(1).map_err(defect)?;
    let server: i32 = row.try_get(2).map_err(defect)?;
    let tables: Vec<String> = row.try_get(3).map_err(defect)?;
    let has_function: bool = row.try_get(4).map_err(defect)?;
    if encoding != "UTF8" {
        return Err(not_a_store(format!(
            "the database's encoding is {encoding}; make one with ENCODING 'UTF8'"
        )));
    }
    if server < SERVER_MIN {
        return Err(not_a_store(format!(
            "the server's version is {server}, {SERVER_MIN} is the least"
        )));
    }
    if read_only {
        return Err(StoreError::ReadOnly { path: path() });
    }
    let has = |name: &str| tables.iter().any(|table| table == name);
    if !has("freehold_schema") {
        if has("task_session_worktrees") {
            return Err(StoreError::Legacy { path: path() });
        }
        return match tables.first() {
            None => Ok(Found::Nothing),
            Some(first) => {
                Err(not_a_store(format!("a schema of something else, with a table {first:?}")))
            }
        };
    }
    let found = version(connections, lease).await?;
    if found == KNOWN {
        let missing = TableId::ALL.iter().map(|table| table.name()).find(|name| !has(name));
        let missing = missing.or((!has_function).then_some(routine::NAME));
        if let Some(missing) = missing {
            return Err(StoreError::Corrupt {
                path: path(),
                detail: format!("{missing} is missing"),
            });
        }
    }
    Ok(Found::Version(found))
}

/// The version that is written down. One that cannot be read is an error, never "fresh".
async fn version(connections: &Connections, lease: &mut Lease<'_>) -> Result<i64, StoreError> {
    let path = || connections.place().to_owned();
    let unreadable = |detail: String| StoreError::Corrupt {
        path: path(),
        detail: format!("the schema version cannot be read: {detail}"),
    };
    let schema = quoted(&connections.options().schema);
    let text =
        format!("SELECT version::bigint, checksum FROM {schema}.freehold_schema ORDER BY version");
    let rows = lease.rows(&text, &[]).await.map_err(|fault| match fault.error() {
        StoreError::Defect { detail } => unreadable(detail),
        other => other,
    })?;
    let mut applied = Vec::new();
    for row in &rows {
        let unfit = |e: tokio_postgres::Error| unreadable(e.to_string());
        let line: (i64, String) = (row.try_get(0).map_err(unfit)?, row.try_get(1).map_err(unfit)?);
        applied.push(line);
    }
    let Some((found, _)) = applied.last() else { return Err(unreadable("none is there".into())) };
    if *found > KNOWN {
        return Err(StoreError::Newer { path: path(), found: *found, known: KNOWN });
    }
    for ((version, text), expected) in MIGRATIONS.iter().zip(1..=*found) {
        let stands = applied.iter().find(|(v, _)| *v == expected).map(|(_, sum)| sum.as_str());
        if *version == expected && stands != Some(checksum(text).as_str()) {
            return Err(StoreError::NotAStore {
                path: path(),
                detail: format!("its schema {expected} is not the one of this build"),
            });
        }
    }
    Ok(*found)
}

/// Makes what is missing, in one transaction and one instance at a time.
async fn make(connections: &Connections, lease: &mut Lease<'_>) -> Result<(), StoreError> {
    lease.batch("BEGIN").await.map_err(Fault::error)?;
    lease.began();
    let done = make_locked(connections, lease).await;
    if done.is_err() {
        if lease.batch("ROLLBACK").await.is_ok() {
            lease.ended();
        }
        return done;
    }
    let ended = lease.batch("COMMIT").await;
    lease.ended();
    ended.map_err(|fault| match fault {
        Fault::Lost(detail) => StoreError::Unknown { detail },
        other => other.error(),
    })
}

async fn make_locked(connections: &Connections, lease: &mut Lease<'_>) -> Result<(), StoreError> {
    let options = connections.options();
    let schema = quoted(&options.schema);
    // The schema may not be there yet, so the lock is on its name.
    let hash = Sha256::digest(format!("freehold schema {}", options.schema).as_bytes());
    let number = hash.iter().take(8).fold(0i64, |n, byte| (n << 8) | i64::from(*byte));
    let lock = format!(
        "SET LOCAL lock_timeout = {}; SELECT pg_advisory_xact_lock({number})",
        milliseconds(options.lock_wait)
    );
    lease.batch(&lock).await.map_err(Fault::error)?;
    // Another instance may have made it meanwhile.
    let from = match inspect(connections, lease).await? {
        Found::Version(KNOWN) => return Ok(()),
        Found::Version(version) => version,
        Found::Nothing => 0,
    };
    let now = match &options.clock {
        Clock::System => CLOCK.trim_end_matches("::text").to_owned(),
        manual @ Clock::Manual(_) => manual.now().0.to_string(),
    };
    let mut text = String::new();
    if from == 0 {
        let id = uuid::Uuid::now_v7().hyphenated();
        let _ = write!(
            text,
            "CREATE SCHEMA IF NOT EXISTS {schema}; SET LOCAL search_path TO {schema}; \
             CREATE TABLE freehold_schema (version bigint NOT NULL PRIMARY KEY, \
             checksum text NOT NULL, applied_at bigint NOT NULL);"
        );
        for (_, tables) in MIGRATIONS {
            text.push_str(tables);
        }
        text.push_str(&routine::definition(&options.schema));
        let _ = write!(text, "INSERT INTO store (one, id) VALUES (1, '{id}');");
    }
    for (version, tables) in MIGRATIONS.iter().filter(|(version, _)| *version > from) {
        let _ = write!(
            text,
            "INSERT INTO {schema}.freehold_schema (version, checksum, applied_at) \
             VALUES ({version}, '{}', {now});",
            checksum(tables)
        );
    }
    // So that the settings of the transaction end with it even if it is the host's to go on.
    text.push_str("SET LOCAL search_path TO DEFAULT");
    lease.batch(&text).await.map_err(Fault::error)
}

/// The store's own id (D-18).
async fn store_id(connections: &Connections, lease: &mut Lease<'_>) -> Result<String, StoreError> {
    let text = format!("SELECT id FROM {}.store", quoted(&connections.options().schema));
    let rows = lease.rows(&text, &[]).await.map_err(Fault::error)?;
    rows.first().and_then(|row| row.try_get(0).ok()).ok_or_else(|| StoreError::Corrupt {
        path: connections.place().to_owned(),
        detail: "the store has no id".to_owned(),
    })
}

/// The checksum of a version's text: over its words, so that line ends and comments do not count.
/// The functions belong to it; they are made from the tables' declaration.
fn checksum(tables: &str) -> String {
    let mut hash = Sha256::new();
    for line in tables.lines().chain(routine::definition("freehold").lines()) {
        let code = line.split_once("--").map_or(line, |(code, _)| code);
        for word in code.split_whitespace() {
            hash.update(word.as_bytes());
            hash.update(b" ");
        }
    }
    let mut hex = String::new();
    for byte in hash.finalize() {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
