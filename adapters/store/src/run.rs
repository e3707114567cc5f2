//! One submission on its way through a store, without any input or output: which rows to load,
//! the decision, which rows to write. Every store drives this one piece, so that a store knows
//! no rule and a third-party store is a few hundred lines (A-4).
//!
//! ```text
//! Run::new ──▶ query ──▶ (store loads) ──▶ supply ──▶ query … ──▶ decide ──▶ (store writes) ──▶ outcome
//! ```

use std::collections::BTreeSet;

use freehold_kernel::{
    Cell, Change, Event, From, Guard, IdentityKind, Kind, Lookup, Output, Reply, Row, RowKey,
    Shape, Table, TableId, Time, Value, View, Visit, VisitMut, decide, footprint,
};

use crate::error::StoreError;
use crate::names::Names;
use crate::record;
use crate::submission::{Accepted, Contents, Outcome, Refused, RowContent, Submission};

/// A value as stores hold it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stored {
    /// NULL.
    Null,
    /// An integer.
    Int(i64),
    /// A text.
    Text(String),
}

/// Which rows to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// From this table.
    pub table: TableId,
    /// Where this column has one of the values.
    pub by: &'static str,
    /// Those values. Never empty.
    pub values: Vec<Stored>,
    /// For the identities table: and the column `kind` has this value.
    pub identity: Option<IdentityKind>,
    /// And this column does not have one of these codes (NULL is not one of them).
    pub except: Option<(&'static str, &'static [&'static str])>,
}

/// A row that was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedRow {
    /// The fact columns, in the order of [`TableId::columns`].
    pub facts: Vec<Stored>,
    /// The content columns, in the order of [`TableId::content`]; may be left empty by a store
    /// that loads them for the requests table only.
    pub content: Vec<Stored>,
    /// The version.
    pub version: u64,
}

/// A row to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowChange {
    /// In this table.
    pub table: TableId,
    /// Its key columns with their values: `id`, for identities also `kind`.
    pub key: Vec<(&'static str, Stored)>,
    /// What happens to it.
    pub change: Change,
    /// The version that was loaded, and that must still be there; 0 for a new row. The row's
    /// new version is one more.
    pub version: u64,
    /// The columns to write: all of a new row, the changed ones of an updated row. Columns that
    /// did not change are not written, so that what this build cannot read stays as it is (C-10).
    pub columns: Vec<(&'static str, Stored)>,
}

/// One line of the journal (D-21). Its number is the store's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalLine {
    /// When.
    pub at: Time,
    /// Who.
    pub actor: String,
    /// Which command.
    pub command: &'static str,
    /// What the command serves: an operation, a job, an attempt; empty for a command of its own.
    pub cause: String,
    /// The table of the row that it is about.
    pub table: &'static str,
    /// The id of that row.
    pub subject: String,
    /// What became true.
    pub event: &'static str,
    /// A code that belongs to the event.
    pub detail: &'static str,
}

/// What to write in the same transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Rows, in lock order.
    pub rows: Vec<RowChange>,
    /// Lines to append.
    pub journal: Vec<JournalLine>,
}

/// A submission under way.
#[derive(Debug)]
pub struct Run<'s> {
    submission: &'s Submission,
    view: View,
    names: Names,
    lookups: Vec<Lookup>,
    at: usize,
    asked: BTreeSet<Stored>,
    recorded: Option<String>,
}

impl<'s> Run<'s> {
    /// Begins.
    pub fn new(submission: &'s Submission) -> Run<'s> {
        Run {
            submission,
            view: View::default(),
            names: submission.names.clone(),
            lookups: footprint(&submission.envelope),
            at: 0,
            asked: BTreeSet::new(),
            recorded: None,
        }
    }

    /// The next rows to load; none when the footprint is complete. Each query is answered with
    /// [`Run::supply`] before the next one.
    ///
    /// # Errors
    /// If a text of the submission is one that not every store can hold, before anything is read
    /// (A-12). If a name is missing: a defect.
    pub fn query(&mut self) -> Result<Option<Query>, StoreError> {
        if self.at == 0 && self.asked.is_empty() {
            self.submission.storable()?;
        }
        while let Some(lookup) = self.lookups.get(self.at) {
            let plan = lookup.plan();
            let mut identity = None;
            let values = match plan.from {
                From::Id(kind, id) => vec![self.stored(Value::Id(kind, id))?],
                From::Identity(kind, id) => {
                    identity = Some(kind);
                    vec![self.stored(Value::Id(identity_id_kind(kind), id))?]
                }
                From::Int(n) => vec![Stored::Int(n)],
                From::Column(table, column) => self.column_values(table, column)?,
                From::Identities(kind, table, column) => {
                    identity = Some(kind);
                    self.column_values(table, column)?
                }
            };
            let fresh: Vec<Stored> =
                values.into_iter().filter(|v| self.asked.insert(v.clone())).collect();
            if fresh.is_empty() {
                self.at += 1;
                self.asked.clear();
                continue;
            }
            if !plan.repeat {
                self.at += 1;
                self.asked.clear();
            }
            return Ok(Some(Query {
                table: plan.table,
                by: plan.by,
                values: fresh,
                identity,
                except: plan.except,
            }));
        }
        Ok(None)
    }

    /// Puts loaded rows into the view.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`] names a value that this build does not know;
    /// [`StoreError::Name`] two strings with one digest.
    pub fn supply(&mut self, table: TableId, rows: &[LoadedRow]) -> Result<(), StoreError> {
        for row in rows {
            if table == TableId::Requests
                && let Some(Stored::Text(text)) = row.content.first()
            {
                self.recorded = Some(text.clone());
            }
            load_row(&mut self.view, &mut self.names, table, row)?;
        }
        Ok(())
    }

    /// The rows loaded so far, for a store that keeps them as rows (see [`crate::memory`]).
    pub fn view_mut(&mut self) -> &mut View {
        &mut self.view
    }

    /// Takes over the texts behind such rows.
    ///
    /// # Errors
    /// [`StoreError::Name`] if two strings have one digest.
    pub fn know(&mut self, names: &Names) -> Result<(), StoreError> {
        Ok(self.names.merge_checked(names)?)
    }

    /// Remembers the stored outcome of the request, for such a store.
    pub fn recorded(&mut self, text: Option<String>) {
        self.recorded = text;
    }

    /// Decides at this time of the store's clock.
    ///
    /// # Errors
    /// If a recorded outcome cannot be read.
    pub fn decide(mut self, now: Time) -> Result<Decided, StoreError> {
        self.view.now = now;
        let mut output = Output::default();
        let verdict = decide(&mut self.view, &self.submission.envelope, &mut output);
        let mut contents = self.submission.contents.clone();
        let outcome = match verdict {
            Ok(decision) if decision.reply == Reply::Replayed => self.replay()?,
            Ok(decision) => {
                self.record(&mut contents, record::accepted(&decision.reply));
                Outcome::Accepted(Accepted {
                    reply: decision.reply,
                    replayed: false,
                    warrant: decision.warrant,
                    events: output.events.clone(),
                    effects: output.effects.clone(),
                    names: self.names.clone(),
                })
            }
            Err(refusal) => {
                // D-19: a refusal that may pass later is not remembered; of the others only the
                // request's row is written.
                let request = self.submission.envelope.request;
                let remember = !may_pass(refusal.guard)
                    && refusal.guard != Guard::RequestContent
                    && refusal.guard != Guard::Permission;
                if let Some(id) = request.filter(|_| remember) {
                    self.view.requests.insert(freehold_kernel::Request {
                        id,
                        content_hash: self.submission.envelope.content,
                        at: now,
                    });
                    self.record(&mut contents, record::refused(&refusal));
                }
                Outcome::Refused(Refused { refusal, names: self.names.clone(), replayed: false })
            }
        };
        Ok(Decided {
            outcome,
            view: self.view,
            names: self.names,
            contents,
            events: output.events,
            actor: self.submission.envelope.actor.id.0,
            command: self.submission.envelope.command.code(),
            cause: crate::cause::of(&self.submission.envelope.command),
            at: now,
        })
    }

    fn record(&self, contents: &mut Contents, text: String) {
        if let Some(id) = self.submission.envelope.request {
            let row = RowKey { table: TableId::Requests, key: freehold_kernel::Key::of(id.0) };
            contents.entry(row).or_default().insert("outcome", Some(text));
        }
    }

    fn replay(&self) -> Result<Outcome, StoreError> {
        let text = self.recorded.as_deref().unwrap_or_default();
        match record::read(text) {
            Some(Ok(reply)) => Ok(Outcome::Accepted(Accepted {
                reply,
                replayed: true,
                warrant: None,
                events: Vec::new(),
                effects: Vec::new(),
                names: self.names.clone(),
            })),
            Some(Err(refusal)) => {
                Ok(Outcome::Refused(Refused { refusal, names: self.names.clone(), replayed: true }))
            }
            None => Err(StoreError::Unreadable {
                table: TableId::Requests.name(),
                column: "outcome",
                value: text.to_owned(),
            }),
        }
    }

    fn column_values(
        &self,
        table: TableId,
        column: &'static str,
    ) -> Result<Vec<Stored>, StoreError> {
        struct Values<'a> {
            column: &'a str,
            found: Vec<Value>,
        }
        impl Visit for Values<'_> {
            fn table<R: Row>(&mut self, table: &Table<R>) {
                let Some(index) = R::COLUMNS.iter().position(|c| c.name == self.column) else {
                    return;
                };
                self.found.extend(table.iter().map(|r| r.value(index)));
            }
        }
        let mut values = Values { column, found: Vec::new() };
        self.view.one(table, &mut values);
        values.found.retain(|v| *v != Value::Null);
        values.found.sort_unstable();
        values.found.dedup();
        values.found.into_iter().map(|v| self.stored(v)).collect()
    }

    fn stored(&self, value: Value) -> Result<Stored, StoreError> {
        stored(&self.names, value)
    }
}

/// Whether the same request may be accepted later, by time or by its sender's own renewal: such a
/// refusal is not remembered (D-19). A host that slept is refused once, renews itself, and asks
/// again under the same request (D-15).
pub fn may_pass(guard: Guard) -> bool {
    guard.may_pass_later() || guard == Guard::InstanceAlive
}

/// The kind of id that an identity row of this kind holds.
pub fn identity_id_kind(kind: IdentityKind) -> Kind {
    match kind {
        IdentityKind::Task => Kind::TaskId,
        IdentityKind::Session => Kind::SessionId,
        IdentityKind::Workspace => Kind::WorkspaceId,
    }
}

/// A fact's value as stores hold it.
///
/// # Errors
/// If the text of an id is not known.
pub fn stored(names: &Names, value: Value) -> Result<Stored, StoreError> {
    Ok(match value {
        Value::Null => Stored::Null,
        Value::Int(n) => Stored::Int(n),
        Value::Code(code) => Stored::Text(code.to_owned()),
        Value::Id(kind, id) => Stored::Text(names.text(kind, id)?),
    })
}

/// Reads one stored row into a view, learning its names.
///
/// # Errors
/// [`StoreError::Unreadable`] or [`StoreError::Name`].
pub fn load_row(
    view: &mut View,
    names: &mut Names,
    table: TableId,
    row: &LoadedRow,
) -> Result<(), StoreError> {
    // Ids become bytes first; the kind of an identity's id is in its own column.
    let columns = table.columns();
    let identity =
        (table == TableId::Identities).then(|| row.facts.get(1)).flatten().and_then(|kind| {
            match kind {
                Stored::Text(code) => IdentityKind::from_code(code),
                Stored::Null | Stored::Int(_) => None,
            }
        });
    let mut cells = Vec::with_capacity(columns.len());
    for (column, value) in columns.iter().zip(&row.facts) {
        cells.push(match (value, column.shape) {
            (Stored::Null, _) => Cell::Null,
            (Stored::Int(n), _) => Cell::Int(*n),
            (Stored::Text(text), Shape::Id(kind)) => {
                let kind = match (kind, identity) {
                    (Kind::AnyId, Some(identity)) => identity_id_kind(identity),
                    (kind, _) => kind,
                };
                Cell::Id(names.learn(kind, text)?)
            }
            (Stored::Text(text), Shape::Code(_) | Shape::Int) => Cell::Code(text),
        });
    }
    struct Load<'a> {
        cells: &'a [Cell<'a>],
        version: u64,
        failed: Option<freehold_kernel::Unreadable>,
    }
    impl VisitMut for Load<'_> {
        fn table<R: Row>(&mut self, table: &mut Table<R>) {
            let cells = self.cells;
            match R::read(&mut |i| cells.get(i).copied().unwrap_or(Cell::Null)) {
                Ok(row) => table.load(row, self.version),
                Err(unreadable) => self.failed = Some(unreadable),
            }
        }
    }
    let mut load = Load { cells: &cells, version: row.version, failed: None };
    view.one_mut(table, &mut load);
    match load.failed {
        None => Ok(()),
        Some(unreadable) => {
            let index = columns.iter().position(|c| c.name == unreadable.column);
            let value = index.and_then(|i| row.facts.get(i));
            Err(StoreError::Unreadable {
                table: table.name(),
                column: unreadable.column,
                value: format!("{value:?}"),
            })
        }
    }
}

/// A submission that was decided, before it is written.
#[derive(Debug)]
pub struct Decided {
    /// What the caller gets once it is durable.
    pub outcome: Outcome,
    /// The rows, changed ones marked.
    pub view: View,
    /// The texts behind their ids.
    pub names: Names,
    contents: Contents,
    events: Vec<Event>,
    actor: u128,
    command: &'static str,
    cause: Option<(Kind, u128)>,
    at: Time,
}

impl Decided {
    /// Whether there is nothing to write.
    pub fn is_unchanged(&self) -> bool {
        let mut any = false;
        self.view.changes(&mut |_, _| any = true);
        !any
    }

    /// The texts of a row that the submission brought.
    pub fn content(&self, row: RowKey) -> Option<&RowContent> {
        self.contents.get(&row)
    }

    /// What to write.
    ///
    /// # Errors
    /// If the text of an id is not known: a defect.
    pub fn changes(&self) -> Result<Changes, StoreError> {
        let mut collect = Collect {
            names: &self.names,
            contents: &self.contents,
            rows: Vec::new(),
            failed: None,
        };
        self.view.each(&mut collect);
        match collect.failed {
            Some(error) => Err(error),
            None => Ok(Changes { rows: collect.rows, journal: self.journal() }),
        }
    }

    /// The lines of the journal.
    pub fn journal(&self) -> Vec<JournalLine> {
        let cause = self.cause.map_or(String::new(), |(kind, id)| {
            format!("{} {}", kind.code(), self.names.show(kind, id))
        });
        self.events
            .iter()
            .map(|event| JournalLine {
                at: self.at,
                actor: self.names.show(Kind::ActorId, self.actor),
                command: self.command,
                cause: cause.clone(),
                table: event.subject.table.name(),
                subject: crate::submission::row_text(&self.names, event.subject),
                event: event.kind.code(),
                detail: event.detail,
            })
            .collect()
    }
}

struct Collect<'a> {
    names: &'a Names,
    contents: &'a Contents,
    rows: Vec<RowChange>,
    failed: Option<StoreError>,
}

impl Collect<'_> {
    fn one<R: Row>(
        &self,
        row: &R,
        was: Option<&R>,
        change: Change,
        version: u64,
    ) -> Result<RowChange, StoreError> {
        let value = |index: usize| self.value(row, index);
        let mut key = Vec::new();
        let keys = if R::TABLE == TableId::Identities { 2 } else { 1 };
        for (index, column) in R::COLUMNS.iter().enumerate().take(keys) {
            key.push((column.name, value(index)?));
        }
        let mut columns = Vec::new();
        match change {
            Change::Inserted | Change::Updated => {
                for (index, column) in R::COLUMNS.iter().enumerate() {
                    if was.is_none_or(|was| was.value(index) != row.value(index)) {
                        columns.push((column.name, value(index)?));
                    }
                }
            }
            Change::Touched | Change::Deleted => {}
        }
        if change != Change::Deleted
            && let Some(content) = self.contents.get(&row.row_key())
        {
            for name in R::CONTENT {
                if let Some(text) = content.get(name) {
                    let text = text.clone().map_or(Stored::Null, Stored::Text);
                    columns.push((name, text));
                }
            }
        }
        Ok(RowChange { table: R::TABLE, key, change, version, columns })
    }

    /// An identity's id is written as the kind of thing that it names.
    fn value<R: Row>(&self, row: &R, index: usize) -> Result<Stored, StoreError> {
        let value = row.value(index);
        let value = match (value, R::TABLE, index) {
            (Value::Id(Kind::AnyId, id), TableId::Identities, 0) => {
                let kind = IdentityKind::ALL
                    .iter()
                    .find(|k| **k as u8 + 1 == row.key().part)
                    .map_or(Kind::AnyId, |k| identity_id_kind(*k));
                Value::Id(kind, id)
            }
            (value, _, _) => value,
        };
        stored(self.names, value)
    }
}

impl Visit for Collect<'_> {
    fn table<R: Row>(&mut self, table: &Table<R>) {
        for slot in table.slots() {
            let Some(change) = slot.change() else { continue };
            match self.one(slot.row(), slot.was(), change, slot.version()) {
                Ok(change) => self.rows.push(change),
                Err(error) => self.failed = Some(error),
            }
        }
    }
}

impl JournalLine {
    /// The line by column name, as the journal table holds it.
    pub fn columns(&self) -> std::collections::BTreeMap<&'static str, String> {
        [
            ("at", self.at.0.to_string()),
            ("actor", self.actor.clone()),
            ("command", self.command.to_owned()),
            ("cause", self.cause.clone()),
            ("subject_table", self.table.to_owned()),
            ("subject", self.subject.clone()),
            ("event", self.event.to_owned()),
            ("detail", self.detail.to_owned()),
        ]
        .into_iter()
        .collect()
    }
}
