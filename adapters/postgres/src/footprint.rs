//! The first statement of a command: its whole footprint and the clock in one round trip.
//!
//! The look-ups of a footprint depend on each other: one finds a session, the next the task of
//! the sessions found. Each becomes one part of a `WITH` that takes its values from the parts
//! before it, so that one statement, and so one snapshot, answers all. [`Run`] then asks its
//! questions one by one as it does every store, and is answered out of what came.
//!
//! [`Run`]: freehold_store::run::Run

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use freehold_kernel::{From, IdentityKind, Plan, TableId, Time, Value, footprint};
use freehold_store::run::{LoadedRow, Query, Stored, identity_id_kind, stored};
use freehold_store::{Clock, StoreError, Submission};
use tokio_postgres::Row;

use crate::sql;

/// The server's clock as microseconds.
pub(crate) const CLOCK: &str =
    "trunc(extract(epoch FROM clock_timestamp()) * 1000000)::bigint::text";

/// Columns whose values are looked up although no row is the anchor of the set that is found
/// (D-23): `kernel/src/footprint.rs` says so, and a test compares. Their values are guarded by
/// locks of their own, so that two commands that each find nothing do not both go on.
pub(crate) const UNANCHORED: &[(TableId, &str)] = &[
    (TableId::Workspaces, "deleting_operation"),
    (TableId::Tasks, "archived_by"),
    (TableId::Repos, "worktree_path"),
    (TableId::Repos, "worktree_id"),
    (TableId::Attempts, "path"),
    (TableId::Removals, "path"),
    (TableId::Jobs, "operation_id"),
    (TableId::Resources, "path"),
    (TableId::ManagedRoots, "path"),
];

/// One statement that reads a footprint.
#[derive(Debug)]
pub(crate) struct Statement {
    /// Its text; the same for all commands of one shape.
    pub(crate) text: String,
    /// Its parameters, all texts.
    pub(crate) parameters: Vec<String>,
}

/// Compiles the footprint of a submission.
///
/// # Errors
/// If the text of an id is not known: a defect.
pub(crate) fn statement(schema: &str, submission: &Submission) -> Result<Statement, StoreError> {
    let mut with = String::from("WITH RECURSIVE ");
    let mut answer = format!("SELECT -1, ARRAY[{CLOCK}]");
    let mut parameters = Vec::new();
    let mut parts: Vec<TableId> = Vec::new();
    for lookup in footprint(&submission.envelope) {
        let plan = lookup.plan();
        let (values, identity) = match source(&plan, &parts, submission, &mut parameters)? {
            Some(source) => source,
            // Nothing was looked up that could have such values.
            None => continue,
        };
        let number = parts.len();
        let comma = if number == 0 { "" } else { ", " };
        let table = sql::table(schema, plan.table);
        let columns = sql::listed("t.", &sql::facts(plan.table));
        let by = format!("t.{}", sql::quoted(plan.by));
        let rest = sql::and(plan.table, "t.", identity, plan.except)?;
        let _ = write!(
            with,
            "{comma}p{number} AS (SELECT {columns} FROM {table} t WHERE {by} {values}{rest}"
        );
        if plan.repeat
            && let From::Column(_, column) = plan.from
        {
            // A walk: what it finds leads on, until nothing new appears.
            let from = sql::quoted(column);
            let _ = write!(
                with,
                " UNION SELECT {columns} FROM {table} t JOIN p{number} w ON {by} = w.{from}{rest}"
            );
        }
        with.push(')');
        let texts = sql::as_texts("", &sql::facts(plan.table));
        // Rows say which table they are of.
        let of = plan.table as usize;
        let _ = write!(answer, " UNION ALL SELECT {of}, {texts} FROM p{number}");
        parts.push(plan.table);
    }
    // A footprint names the settings at least, so there is a part.
    let text = format!("{with} {answer}");
    Ok(Statement { text, parameters })
}

type Source = (String, Option<IdentityKind>);

/// The comparison that a part makes, and the kind of its identities.
fn source(
    plan: &Plan,
    parts: &[TableId],
    submission: &Submission,
    parameters: &mut Vec<String>,
) -> Result<Option<Source>, StoreError> {
    let mut one = |value: Value, identity| -> Result<Option<Source>, StoreError> {
        let text = match stored(&submission.names, value)? {
            Stored::Text(text) => text,
            Stored::Int(number) => number.to_string(),
            Stored::Null => return Ok(None),
        };
        parameters.push(text);
        let cast = if sql::is_number(plan.table, plan.by)? { "::bigint" } else { "" };
        Ok(Some((format!("= ${}::text{cast}", parameters.len()), identity)))
    };
    match plan.from {
        From::Id(kind, id) => one(Value::Id(kind, id), None),
        From::Identity(kind, id) => one(Value::Id(identity_id_kind(kind), id), Some(kind)),
        From::Int(number) => one(Value::Int(number), None),
        From::Column(table, column) => Ok(among(parts, table, column).map(|v| (v, None))),
        From::Identities(kind, table, column) => {
            Ok(among(parts, table, column).map(|v| (v, Some(kind))))
        }
    }
}

/// Any value of this column in the parts before. An array, so that the rows are found by index
/// however many the planner takes a part to have.
fn among(parts: &[TableId], table: TableId, column: &str) -> Option<String> {
    let column = sql::quoted(column);
    let sources: Vec<String> = parts
        .iter()
        .enumerate()
        .filter(|(_, part)| **part == table)
        .map(|(number, _)| format!("SELECT {column} FROM p{number}"))
        .collect();
    (!sources.is_empty()).then(|| format!("= ANY (ARRAY({}))", sources.join(" UNION ")))
}

/// What a footprint's statement brought.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    rows: BTreeMap<TableId, BTreeMap<Vec<Stored>, LoadedRow>>,
    /// The time, if the server's clock rules.
    pub(crate) now: Time,
    /// Look-ups by key that found nothing, and sets without an anchor, with what was found.
    pub(crate) asked: Vec<Asked>,
}

/// A question whose answer must still be the same at the commit, beside the rows' versions.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The question.
    pub(crate) query: Query,
    /// The values for which there is no row; of a question by key only.
    pub(crate) absent: Vec<Stored>,
    /// How many rows were found.
    pub(crate) found: usize,
}

impl Loaded {
    /// Takes the answer apart.
    ///
    /// # Errors
    /// If a row is not one of this build's.
    pub(crate) fn new(answer: &[Row], clock: &Clock) -> Result<Loaded, StoreError> {
        let unfit = |e: tokio_postgres::Error| StoreError::Defect { detail: e.to_string() };
        let mut loaded = Loaded::default();
        for row in answer {
            let number: i32 = row.try_get(0).map_err(unfit)?;
            let texts: Vec<Option<String>> = row.try_get(1).map_err(unfit)?;
            match usize::try_from(number).ok().and_then(|n| TableId::ALL.get(n)) {
                None => loaded.now = time(texts.into_iter().next().flatten())?,
                Some(table) => {
                    let row = sql::row(*table, texts)?;
                    loaded.rows.entry(*table).or_default().insert(key(*table, &row), row);
                }
            }
        }
        if let Clock::Manual(_) = clock {
            loaded.now = clock.now();
        }
        Ok(loaded)
    }

    /// Answers one question as the tables would.
    ///
    /// # Errors
    /// If it names a column that is not there.
    pub(crate) fn answer(&mut self, query: Query) -> Result<Vec<LoadedRow>, StoreError> {
        let index = |name: &str| {
            query.table.columns().iter().position(|c| c.name == name).ok_or_else(|| {
                StoreError::Defect {
                    detail: format!("table {} has no column {name}", query.table.name()),
                }
            })
        };
        let by = index(query.by)?;
        let kind = query.identity.map(|kind| index("kind").map(|at| (at, kind))).transpose()?;
        let except =
            query.except.map(|(name, codes)| index(name).map(|at| (at, codes))).transpose()?;
        let wanted: BTreeSet<&Stored> = query.values.iter().collect();
        let is = |row: &LoadedRow, at: usize, code: &str| matches!(row.facts.get(at), Some(Stored::Text(text)) if text == code);
        let found: Vec<LoadedRow> = self
            .rows
            .get(&query.table)
            .into_iter()
            .flat_map(BTreeMap::values)
            .filter(|row| row.facts.get(by).is_some_and(|value| wanted.contains(value)))
            .filter(|row| kind.is_none_or(|(at, kind)| is(row, at, kind.code())))
            .filter(|row| {
                except.is_none_or(|(at, codes)| !codes.iter().any(|code| is(row, at, code)))
            })
            .cloned()
            .collect();
        let by_key = query.by == "id";
        let absent: Vec<Stored> = if by_key {
            let there: BTreeSet<&Stored> = found.iter().filter_map(|r| r.facts.get(by)).collect();
            query.values.iter().filter(|v| !there.contains(v)).cloned().collect()
        } else {
            Vec::new()
        };
        if !absent.is_empty() || (!by_key && UNANCHORED.contains(&(query.table, query.by))) {
            self.asked.push(Asked { absent, found: found.len(), query });
        }
        Ok(found)
    }

    /// Every row that was loaded, by table in lock order and by key.
    pub(crate) fn rows(&self) -> &BTreeMap<TableId, BTreeMap<Vec<Stored>, LoadedRow>> {
        &self.rows
    }

    /// A loaded row.
    pub(crate) fn row(&self, table: TableId, key: &[Stored]) -> Option<&LoadedRow> {
        self.rows.get(&table)?.get(key)
    }
}

/// The key of a row.
fn key(table: TableId, row: &LoadedRow) -> Vec<Stored> {
    row.facts.iter().take(sql::keys(table).len()).cloned().collect()
}

/// A time of the server's clock.
///
/// # Errors
/// If it is none.
pub(crate) fn time(text: Option<String>) -> Result<Time, StoreError> {
    let text = text.unwrap_or_default();
    text.parse()
        .map(Time)
        .map_err(|_| StoreError::Defect { detail: format!("the server's clock says {text:?}") })
}
