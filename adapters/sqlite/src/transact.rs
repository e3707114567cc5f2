//! One submission inside a transaction that is open: load, decide, write.

use freehold_kernel::{Change, TableId};
use freehold_store::run::{Changes, LoadedRow, Query, Run};
use freehold_store::{Clock, Outcome, StoreError, Submission};
use rusqlite::{Connection, params_from_iter};

use crate::{fault, migrate, sql};

/// Why a submission could not be carried out, and what that says about its transaction.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It is the submission's own, or that of the rows it needs; what it wrote was undone and
    /// others in the same transaction are not concerned.
    Own(StoreError),
    /// The transaction cannot be trusted any more.
    Shared(StoreError),
}

impl Failure {
    /// The failure for the caller.
    pub(crate) fn error(self) -> StoreError {
        match self {
            Failure::Own(error) | Failure::Shared(error) => error,
        }
    }
}

/// Carries out a submission inside the open transaction: all of it or, if it fails, nothing.
pub(crate) fn carry_out(
    connection: &Connection,
    clock: &Clock,
    submission: &Submission,
) -> Result<Outcome, Failure> {
    let shared = |error| Failure::Shared(fault::of(connection, &error));
    let mut run = Run::new(submission);
    while let Some(query) = run.query().map_err(Failure::Own)? {
        let rows = load(connection, &query)?;
        run.supply(query.table, &rows).map_err(Failure::Own)?;
    }
    // The time is read after the rows are locked.
    let decided = run.decide(clock.now()).map_err(Failure::Own)?;
    let changes = decided.changes().map_err(Failure::Own)?;
    if changes.rows.is_empty() && changes.journal.is_empty() {
        return Ok(decided.outcome);
    }
    execute(connection, "SAVEPOINT freehold_submission").map_err(shared)?;
    match write(connection, &changes) {
        Ok(()) => {
            execute(connection, "RELEASE freehold_submission").map_err(shared)?;
            Ok(decided.outcome)
        }
        Err(Failure::Own(error)) => {
            execute(connection, "ROLLBACK TO freehold_submission").map_err(shared)?;
            execute(connection, "RELEASE freehold_submission").map_err(shared)?;
            Err(Failure::Own(error))
        }
        Err(Failure::Shared(error)) => Err(Failure::Shared(error)),
    }
}

fn load(connection: &Connection, query: &Query) -> Result<Vec<LoadedRow>, Failure> {
    let failed = |error| Failure::Shared(fault::of(connection, &error));
    let mut loaded = Vec::new();
    for values in query.values.chunks(sql::VALUES_MAX) {
        let values = sql::padded(values);
        let text = sql::load(query, values.clone().count()).map_err(Failure::Own)?;
        let mut statement = connection.prepare_cached(&text).map_err(failed)?;
        let mut rows = statement.query(params_from_iter(values)).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let with_content = query.table == TableId::Requests;
            loaded.push(sql::row(query.table, row, with_content).map_err(failed)?);
        }
    }
    Ok(loaded)
}

/// Rows that go are written first and rows that come last, since unique indexes are checked row
/// by row: a slot may pass from one row to another in one command.
fn write(connection: &Connection, changes: &Changes) -> Result<(), Failure> {
    let phase = |change| match change {
        Change::Deleted => 0,
        Change::Updated | Change::Touched => 1,
        Change::Inserted => 2,
    };
    for now in 0..=2 {
        for change in changes.rows.iter().filter(|c| phase(c.change) == now) {
            let values = sql::write_values(change);
            let mut statement = connection
                .prepare_cached(&sql::write(change))
                .map_err(|error| write_failure(connection, &error))?;
            let hit = statement
                .execute(params_from_iter(values.iter().map(sql::Bound)))
                .map_err(|error| write_failure(connection, &error))?;
            if hit != 1 {
                let detail = format!(
                    "{} row {:?} is not there in version {}",
                    change.table.name(),
                    change.key,
                    change.version
                );
                return Err(Failure::Own(StoreError::Defect { detail }));
            }
        }
    }
    let text = "INSERT INTO journal \
                (at, actor, command, cause, subject_table, subject, event, detail) \
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    for line in &changes.journal {
        connection
            .prepare_cached(text)
            .and_then(|mut statement| {
                statement.execute(rusqlite::params![
                    line.at.0,
                    line.actor,
                    line.command,
                    line.cause,
                    line.table,
                    line.subject,
                    line.event,
                    line.detail
                ])
            })
            .map_err(|error| write_failure(connection, &error))?;
    }
    Ok(())
}

/// A broken constraint undoes its own statement only; after anything else, and if SQLite has
/// ended the transaction by itself, nothing in it counts.
fn write_failure(connection: &Connection, error: &rusqlite::Error) -> Failure {
    let found = fault::of(connection, error);
    if matches!(found, StoreError::Defect { .. }) && !connection.is_autocommit() {
        Failure::Own(found)
    } else {
        Failure::Shared(found)
    }
}

/// Runs a statement without values or rows.
pub(crate) fn execute(connection: &Connection, text: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(text)?.execute([]).map(|_| ())
}

/// Carries out a submission inside the host's own open transaction, so that the host's rows and
/// Freehold's commit together. The connection is any one to the store's file.
///
/// Begin the transaction with `TransactionBehavior::Immediate`: one that has read before it
/// writes may be refused by SQLite at once, without a wait (F55). Turn `foreign_keys` on, as
/// [`crate::Sqlite`] does.
///
/// The outcome counts once the host has committed. So it carries no effects (C-19) and no
/// warrant: nothing physical may happen on the word of a transaction that may still be undone.
/// What was recorded is picked up after the commit. If this fails, what it wrote is undone; the
/// host's own statements are not, and it decides whether to commit.
///
/// # Errors
/// As [`freehold_store::Store::submit`]. [`StoreError::NotAStore`] and [`StoreError::Newer`] if
/// the connection is to something else than a current store.
pub fn within(
    transaction: &rusqlite::Transaction<'_>,
    clock: &Clock,
    submission: &Submission,
) -> Result<Outcome, StoreError> {
    let connection: &Connection = transaction;
    migrate::require_current(connection)?;
    let failed = |error| fault::of(connection, &error);
    execute(connection, "SAVEPOINT freehold_within").map_err(failed)?;
    let result = carry_out(connection, clock, submission).map_err(Failure::error);
    if !connection.is_autocommit() {
        if result.is_err() {
            execute(connection, "ROLLBACK TO freehold_within").map_err(failed)?;
        }
        execute(connection, "RELEASE freehold_within").map_err(failed)?;
    }
    Ok(match result? {
        Outcome::Accepted(mut accepted) => {
            accepted.effects.clear();
            accepted.warrant = None;
            Outcome::Accepted(accepted)
        }
        Outcome::Refused(refused) => Outcome::Refused(refused),
    })
}
