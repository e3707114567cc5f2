//! The versions of the schema (D-17): one source per version, applied in order under the lock.

use std::fmt::Write as _;

use freehold_kernel::TableId;
use freehold_store::{Clock, StoreError};
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use crate::fault;

/// Every version with its text.
const MIGRATIONS: &[(i64, &str)] = &[(1, include_str!("schema/0001.sql"))];

/// The newest version that this build knows.
pub(crate) const KNOWN: i64 = 1;

/// What stands in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// No table at all.
    Nothing,
    /// A store of this version, which this build knows.
    Version(i64),
}

/// Tells what stands in the database, by reading only.
///
/// # Errors
/// Whatever is not a store that this build can use.
pub(crate) fn inspect(connection: &Connection) -> Result<Found, StoreError> {
    let failed = |error| fault::of(connection, &error);
    let path = || connection.path().unwrap_or("the database").to_owned();
    let tables = names(connection).map_err(failed)?;
    let has = |name: &str| tables.iter().any(|t| t == name);
    if !has("freehold_schema") {
        if has("task_session_worktrees") {
            return Err(StoreError::Legacy { path: path() });
        }
        return match tables.first() {
            None => Ok(Found::Nothing),
            Some(first) => Err(StoreError::NotAStore {
                path: path(),
                detail: format!("a database of something else, with a table {first:?}"),
            }),
        };
    }
    // An unreadable version is an error, never "fresh".
    let unreadable = |detail: String| StoreError::Corrupt {
        path: path(),
        detail: format!("the schema version cannot be read: {detail}"),
    };
    let mut statement = connection
        .prepare("SELECT version, checksum FROM freehold_schema ORDER BY version")
        .map_err(|error| unreadable(error.to_string()))?;
    let applied: Vec<(i64, String)> = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .and_then(Iterator::collect)
        .map_err(|error| match fault::of(connection, &error) {
            StoreError::Defect { detail } => unreadable(detail),
            other => other,
        })?;
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
    if *found == KNOWN
        && let Some(missing) = TableId::ALL.iter().find(|table| !has(table.name()))
    {
        return Err(StoreError::Corrupt {
            path: path(),
            detail: format!("the table {} is missing", missing.name()),
        });
    }
    Ok(Found::Version(*found))
}

fn names(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Applies what is missing, in a transaction that the caller has begun.
///
/// # Errors
/// Failures of the database.
pub(crate) fn apply(connection: &Connection, from: Found, clock: &Clock) -> Result<(), StoreError> {
    let failed = |error| fault::of(connection, &error);
    let from = match from {
        Found::Nothing => {
            let table = "CREATE TABLE freehold_schema (version INTEGER NOT NULL PRIMARY KEY, \
                         checksum TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT";
            connection.execute(table, []).map_err(failed)?;
            0
        }
        Found::Version(version) => version,
    };
    for (version, text) in MIGRATIONS.iter().filter(|(version, _)| *version > from) {
        connection.execute_batch(text).map_err(failed)?;
        connection
            .execute(
                "INSERT INTO freehold_schema (version, checksum, applied_at) VALUES (?, ?, ?)",
                params![version, checksum(text), clock.now().0],
            )
            .map_err(failed)?;
    }
    if from == 0 {
        let id = uuid::Uuid::now_v7().hyphenated().to_string();
        connection.execute("INSERT INTO store (one, id) VALUES (1, ?)", [id]).map_err(failed)?;
    }
    Ok(())
}

/// The store's own id (D-18).
///
/// # Errors
/// Failures of the database.
pub(crate) fn store_id(connection: &Connection) -> Result<String, StoreError> {
    connection
        .query_row("SELECT id FROM store", [], |row| row.get(0))
        .optional()
        .map_err(|error| fault::of(connection, &error))?
        .ok_or_else(|| StoreError::Corrupt {
            path: fault::path_of(connection),
            detail: "the store has no id".into(),
        })
}

/// Refuses a connection to anything but a store of the version that this build writes.
///
/// # Errors
/// As said.
pub(crate) fn require_current(connection: &Connection) -> Result<(), StoreError> {
    let version = connection
        .prepare_cached("SELECT max(version) FROM freehold_schema")
        .and_then(|mut statement| statement.query_row([], |row| row.get::<_, Option<i64>>(0)));
    match version {
        Ok(Some(KNOWN)) => Ok(()),
        Ok(Some(found)) if found > KNOWN => {
            Err(StoreError::Newer { path: fault::path_of(connection), found, known: KNOWN })
        }
        Ok(_) | Err(_) => match inspect(connection)? {
            Found::Version(KNOWN) => Ok(()),
            Found::Version(found) => Err(StoreError::Unavailable {
                detail: format!("its schema {found} is older than {KNOWN}; open it once first"),
            }),
            Found::Nothing => Err(StoreError::NotAStore {
                path: connection.path().unwrap_or("the database").to_owned(),
                detail: "it has no table".into(),
            }),
        },
    }
}

/// The checksum of a version's text: over its words, so that line ends and comments do not count.
fn checksum(text: &str) -> String {
    let mut hash = Sha256::new();
    for line in text.lines() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_count_from_one_without_gaps() {
        let versions: Vec<i64> = MIGRATIONS.iter().map(|(version, _)| *version).collect();
        assert_eq!(versions, (1..=KNOWN).collect::<Vec<_>>());
    }

    #[test]
    fn a_checksum_is_over_words() {
        let sum = checksum("CREATE TABLE a (b TEXT); -- why\r\n");
        assert_eq!(sum, checksum("CREATE TABLE a\n  (b TEXT);\n"));
        assert_ne!(sum, checksum("CREATE TABLE a (b INTEGER);"));
        // Words do not run together.
        assert_ne!(checksum("a bc"), checksum("ab c"));
    }

    #[test]
    fn no_text_of_the_schema_has_a_comment_sign_in_a_string() {
        // Else the checksum would not see what comes after it.
        for (_, text) in MIGRATIONS {
            for line in text.lines() {
                let code = line.split_once("--").map_or(line, |(code, _)| code);
                assert_eq!(code.matches('\'').count() % 2, 0, "{line}");
            }
        }
    }
}
