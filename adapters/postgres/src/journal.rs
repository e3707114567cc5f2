//! Following the journal without losing a line.
//!
//! Numbers are given while a command's rows are locked, so they grow with what happened. But a
//! transaction with a smaller number may end after one with a greater. So a reader goes as far as
//! the first number that is missing, and passes it only once nobody can still bring it: every
//! transaction that was open when the number was first missed has ended. A transaction has its id
//! before its lines have their numbers, so those are the ones with a smaller id than one that is
//! fresh at that moment.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use freehold_store::StoreError;
use freehold_store::store::JournalRow;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::deadline::Deadline;
use crate::pool::{Connections, Parameter};
use crate::sql::quoted;

/// The columns of the journal beside its number, as [`freehold_store::run::JournalLine`] names
/// them.
const COLUMNS: [&str; 8] =
    ["at", "actor", "command", "cause", "subject_table", "subject", "event", "detail"];

/// The most gaps that are remembered; forgetting one only means to wait for it once more.
const GAPS_MAX: usize = 10_000;

/// Missing numbers, by the first of a row of them, each with a transaction id: once all smaller
/// ones have ended, the numbers will never come.
#[derive(Debug, Default)]
pub(crate) struct Gaps(Mutex<BTreeMap<i64, u64>>);

impl Gaps {
    fn get(&self, first: i64) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&first).copied()
    }

    fn put(&self, first: i64, before: u64) {
        let mut gaps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if gaps.len() >= GAPS_MAX {
            gaps.clear();
        }
        gaps.insert(first, before);
    }
}

/// The journal after a position.
pub(crate) async fn read(
    connections: &Connections,
    gaps: &Gaps,
    after: i64,
    limit: usize,
) -> Result<Vec<JournalRow>, StoreError> {
    let until = connections.deadline();
    let mut settled = fetch(connections, until, gaps, after, limit).await?;
    // A number that is missed for the first time: usually it is already known not to come.
    while let Some(first) = settled.stopped_at.filter(|first| gaps.get(*first).is_none()) {
        let rows = connections.read(until, "SELECT pg_current_xact_id()::text", &[]).await?;
        gaps.put(first, number(rows.first(), 0)?);
        settled = fetch(connections, until, gaps, after, limit).await?;
    }
    Ok(settled.rows)
}

struct Settled {
    rows: Vec<JournalRow>,
    /// The first missing number behind them, if lines come after it.
    stopped_at: Option<i64>,
}

async fn fetch(
    connections: &Connections,
    until: Deadline,
    gaps: &Gaps,
    after: i64,
    limit: usize,
) -> Result<Settled, StoreError> {
    let text = format!(
        "SELECT seq, at::text, actor, command, cause, subject_table, subject, event, detail, \
         pg_snapshot_xmin(pg_current_snapshot())::text \
         FROM {}.journal WHERE seq > $1 ORDER BY seq LIMIT $2",
        quoted(&connections.options().schema)
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let parameters: [Parameter<'_>; 2] = [(&after, Type::INT8), (&limit, Type::INT8)];
    let found = connections.read(until, &text, &parameters).await?;
    let oldest_open = if found.is_empty() { 0 } else { number(found.first(), 9)? };
    let mut settled = Settled { rows: Vec::new(), stopped_at: None };
    let mut expected = after.saturating_add(1).max(1);
    for row in &found {
        let line = line(row)?;
        if line.seq > expected && gaps.get(expected).is_none_or(|before| before > oldest_open) {
            settled.stopped_at = Some(expected);
            break;
        }
        expected = line.seq.saturating_add(1);
        settled.rows.push(line);
    }
    Ok(settled)
}

fn line(row: &Row) -> Result<JournalRow, StoreError> {
    let unfit = |e: tokio_postgres::Error| StoreError::Defect { detail: e.to_string() };
    let seq = row.try_get(0).map_err(unfit)?;
    let mut columns = BTreeMap::new();
    for (name, index) in COLUMNS.into_iter().zip(1usize..) {
        columns.insert(name, row.try_get(index).map_err(unfit)?);
    }
    Ok(JournalRow { seq, columns })
}

/// A transaction id.
fn number(row: Option<&Row>, index: usize) -> Result<u64, StoreError> {
    let text: Option<String> = row.and_then(|row| row.try_get(index).ok());
    text.and_then(|text| text.parse().ok()).ok_or_else(|| StoreError::Defect {
        detail: "the server gave no transaction id".to_owned(),
    })
}
