//! Connections that only read. Nobody waits for one, and none holds up the writer.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use freehold_kernel::{Key, RowKey, Shape, TableId};
use freehold_store::names::Names;
use freehold_store::run::{LoadedRow, Stored, load_row};
use freehold_store::store::JournalRow;
use freehold_store::{Read, Rows, StoreError};
use rusqlite::{Connection, OpenFlags, params_from_iter};

use crate::open::{Options, connect, end_read};
use crate::{fault, migrate, sql, transact};

/// How many connections are kept for the next reader. More may be in use at once.
const IDLE_MAX: usize = 4;

/// The columns of the journal beside its number, as [`freehold_store::run::JournalLine`] names
/// them.
const JOURNAL: [&str; 8] =
    ["at", "actor", "command", "cause", "subject_table", "subject", "event", "detail"];

/// The readers of one store.
#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    id: String,
    options: Options,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf, id: String, options: Options) -> Readers {
        Readers { path, id, options, idle: Mutex::new(Vec::new()) }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Reads as of one moment.
    pub(crate) fn read(&self, reads: &[Read]) -> Result<Rows, StoreError> {
        self.with(|connection| {
            let mut rows = Rows::default();
            for (index, read) in reads.iter().enumerate() {
                select(connection, read, &mut rows)?;
                if index == 0 {
                    // The moment is that of the first read.
                    rows.view.now = self.options.clock.now();
                }
            }
            if reads.is_empty() {
                rows.view.now = self.options.clock.now();
            }
            Ok(rows)
        })
    }

    /// The journal after a position.
    pub(crate) fn journal(&self, after: i64, limit: usize) -> Result<Vec<JournalRow>, StoreError> {
        self.with(|connection| {
            let text = "SELECT seq, CAST(at AS TEXT), actor, command, cause, subject_table, \
                        subject, event, detail FROM journal WHERE seq > ? ORDER BY seq LIMIT ?";
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            connection
                .prepare_cached(text)
                .and_then(|mut statement| {
                    statement
                        .query_map([after, limit], |row| {
                            let columns = JOURNAL
                                .into_iter()
                                .zip(1usize..)
                                .map(|(name, index)| Ok((name, row.get(index)?)))
                                .collect::<rusqlite::Result<_>>()?;
                            Ok(JournalRow { seq: row.get(0)?, columns })
                        })?
                        .collect()
                })
                .map_err(|error| fault::of(connection, &error))
        })
    }

    /// Does something in one read transaction. A connection goes back only if its transaction
    /// is known to be over (F57).
    fn with<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match kept {
            Some(connection) => connection,
            None => self.connect()?,
        };
        transact::execute(&connection, "BEGIN DEFERRED")
            .map_err(|error| fault::of(&connection, &error))?;
        let result = work(&connection);
        end_read(&connection);
        if result.is_ok() && connection.is_autocommit() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < IDLE_MAX {
                idle.push(connection);
            }
        }
        result
    }

    fn connect(&self) -> Result<Connection, StoreError> {
        let shown = self.path.display().to_string();
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = connect(&self.path, &shown, flags, &self.options)?;
        // The file may have been moved away and another put in its place.
        if migrate::store_id(&connection)? != self.id {
            return Err(StoreError::Unavailable {
                detail: format!("{shown} is not the file any more that was opened"),
            });
        }
        Ok(connection)
    }
}

fn select(connection: &Connection, read: &Read, rows: &mut Rows) -> Result<(), StoreError> {
    let Some((by, values)) = &read.by else {
        let text = sql::read(read.table, None)?;
        return fetch(connection, read.table, &text, std::iter::empty(), rows);
    };
    let (null, values): (Vec<_>, Vec<_>) = values.iter().cloned().partition(|v| *v == Stored::Null);
    if !null.is_empty() {
        let text = sql::read_null(read.table, by)?;
        fetch(connection, read.table, &text, std::iter::empty(), rows)?;
    }
    for values in values.chunks(sql::VALUES_MAX) {
        let values = sql::padded(values);
        let text = sql::read(read.table, Some((by, values.clone().count())))?;
        fetch(connection, read.table, &text, values, rows)?;
    }
    Ok(())
}

fn fetch<'v>(
    connection: &Connection,
    table: TableId,
    text: &str,
    values: impl Iterator<Item = sql::Bound<'v>>,
    rows: &mut Rows,
) -> Result<(), StoreError> {
    let failed = |error| fault::of(connection, &error);
    let mut statement = connection.prepare_cached(text).map_err(failed)?;
    let mut found = statement.query(params_from_iter(values)).map_err(failed)?;
    while let Some(row) = found.next().map_err(failed)? {
        let row = sql::row(table, row, true).map_err(failed)?;
        match load_row(&mut rows.view, &mut rows.names, table, &row) {
            Ok(()) => texts(table, &row, rows),
            // One row that cannot be read is named; the others are still there.
            Err(error) => {
                let key = match row.facts.first() {
                    Some(Stored::Text(text)) => text.clone(),
                    Some(Stored::Int(n)) => n.to_string(),
                    Some(Stored::Null) | None => String::new(),
                };
                rows.unreadable.push((table, key, error.to_string()));
            }
        }
    }
    Ok(())
}

/// Puts the texts of a row that was loaded beside its facts.
fn texts(table: TableId, row: &LoadedRow, rows: &mut Rows) {
    if row.content.iter().all(|text| *text == Stored::Null) {
        return;
    }
    // No table has both texts and a key of two parts.
    let Some(id) = key(table, row, &mut rows.names) else { return };
    let texts = rows.contents.entry(RowKey { table, key: Key::of(id) }).or_default();
    for (name, text) in table.content().iter().zip(&row.content) {
        if let Stored::Text(text) = text {
            texts.insert(name, Some(text.clone()));
        }
    }
}

fn key(table: TableId, row: &LoadedRow, names: &mut Names) -> Option<u128> {
    match (table.columns().first()?.shape, row.facts.first()?) {
        (Shape::Id(kind), Stored::Text(text)) => names.learn(kind, text).ok(),
        (_, Stored::Int(n)) => u128::try_from(*n).ok(),
        (_, Stored::Text(_) | Stored::Null) => None,
    }
}
