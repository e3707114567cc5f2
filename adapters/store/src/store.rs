//! The store port: submit a command in one transaction, read rows, follow the journal.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use freehold_kernel::{Id, JobRoot, Row, Table, TableId, Time, View, Visit, VisitMut};

use crate::error::StoreError;
use crate::names::Names;
use crate::pick::Pick;
use crate::submission::{Contents, Outcome, Submission};

/// A store. Rows in, rows out; it knows no rule.
pub trait Store: Send + Sync {
    /// Loads the footprint, decides, writes what changed and the journal, all in one
    /// transaction. Dropping the future leaves no open transaction and nothing half-done.
    ///
    /// # Errors
    /// Failures of the store; a refusal is an [`Outcome`].
    fn submit(
        &self,
        submission: &Submission,
    ) -> impl Future<Output = Result<Outcome, StoreError>> + Send;

    /// Reads rows without locking them, as of one moment, with their texts.
    ///
    /// # Errors
    /// What could not be read is a failure, never an absence (S-29).
    fn read(&self, reads: &[Read]) -> impl Future<Output = Result<Rows, StoreError>> + Send;

    /// The journal after a position, oldest first.
    ///
    /// # Errors
    /// Failures of the store.
    fn journal(
        &self,
        after: i64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<JournalRow>, StoreError>> + Send;

    /// Parts of jobs that are due and that this instance should try to claim: due longest first,
    /// at most as many as it asked for. A hint and no claim (C-3, A-11): what one store tells all
    /// who ask, another divides among them, so that several instances do not try the same.
    ///
    /// # Errors
    /// Failures of the store.
    fn pick(&self, pick: &Pick) -> impl Future<Output = Result<Vec<JobRoot>, StoreError>> + Send {
        crate::pick::by_reading(self, pick)
    }

    /// The store's own id (D-18).
    ///
    /// # Errors
    /// Failures of the store.
    fn id(&self) -> impl Future<Output = Result<String, StoreError>> + Send;
}

/// A shared store is a store: several owners, or several connections to one in memory.
impl<S: Store> Store for Arc<S> {
    fn submit(
        &self,
        submission: &Submission,
    ) -> impl Future<Output = Result<Outcome, StoreError>> + Send {
        S::submit(self, submission)
    }

    fn read(&self, reads: &[Read]) -> impl Future<Output = Result<Rows, StoreError>> + Send {
        S::read(self, reads)
    }

    fn journal(
        &self,
        after: i64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<JournalRow>, StoreError>> + Send {
        S::journal(self, after, limit)
    }

    fn pick(&self, pick: &Pick) -> impl Future<Output = Result<Vec<JobRoot>, StoreError>> + Send {
        S::pick(self, pick)
    }

    fn id(&self) -> impl Future<Output = Result<String, StoreError>> + Send {
        S::id(self)
    }
}

/// Which rows to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// From this table.
    pub table: TableId,
    /// All rows, or those whose column has one of these texts or numbers.
    pub by: Option<(&'static str, Vec<crate::run::Stored>)>,
}

impl Read {
    /// All rows of a table.
    pub fn all(table: TableId) -> Read {
        Read { table, by: None }
    }

    /// Rows whose column has one of these values; NULL is a value like the others.
    pub fn among(table: TableId, column: &'static str, values: Vec<crate::run::Stored>) -> Read {
        Read { table, by: Some((column, values)) }
    }

    /// Rows whose column has one of these texts.
    pub fn by(table: TableId, column: &'static str, texts: &[&str]) -> Read {
        let texts = texts.iter().map(|t| crate::run::Stored::Text((*t).to_owned())).collect();
        Read { table, by: Some((column, texts)) }
    }
}

/// Rows that were read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// The facts; `view.now` is the store's clock at that moment.
    pub view: View,
    /// The texts behind the ids.
    pub names: Names,
    /// The texts beside the facts.
    pub contents: Contents,
    /// Rows that this build cannot read: table, key text, why. Named, never left out in silence.
    pub unreadable: Vec<(TableId, String, String)>,
}

impl Rows {
    /// Takes over the rows, texts and names of a later read; rows that are there already stay.
    pub fn absorb(&mut self, other: Rows) {
        struct Absorb<'a>(&'a mut View);
        impl Visit for Absorb<'_> {
            fn table<R: Row>(&mut self, table: &Table<R>) {
                struct Put<'p, R: Row>(&'p Table<R>);
                impl<R: Row> VisitMut for Put<'_, R> {
                    fn table<T: Row>(&mut self, to: &mut Table<T>) {
                        for slot in self.0.slots() {
                            // One table holds one row type; both sides are the same one.
                            if let Some(row) =
                                (slot.row() as &dyn std::any::Any).downcast_ref::<T>()
                            {
                                to.load(*row, slot.version());
                            }
                        }
                    }
                }
                self.0.one_mut(R::TABLE, &mut Put(table));
            }
        }
        other.view.each(&mut Absorb(&mut self.view));
        self.names.merge(&other.names);
        self.contents.extend(other.contents);
        self.unreadable.extend(other.unreadable);
    }

    /// The texts of ids, each once, for a further read.
    ///
    /// # Errors
    /// If the text of an id is not known.
    pub fn texts<I: Id>(
        &self,
        ids: impl IntoIterator<Item = I>,
    ) -> Result<Vec<crate::run::Stored>, StoreError> {
        let mut texts = ids
            .into_iter()
            .map(|id| Ok(crate::run::Stored::Text(self.names.text(I::KIND, id.bits())?)))
            .collect::<Result<Vec<_>, StoreError>>()?;
        texts.sort_unstable();
        texts.dedup();
        Ok(texts)
    }
}

/// A journal line with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalRow {
    /// Its number; grows, may have gaps.
    pub seq: i64,
    /// The columns of [`crate::run::JournalLine`] by name.
    pub columns: BTreeMap<&'static str, String>,
}

/// Where a store reads the time: one replaceable clock per store, so that tests move it.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's.
    System,
    /// One that stands still until it is moved.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that stands at this time.
    pub fn manual(at: Time) -> Clock {
        Clock::Manual(Arc::new(AtomicI64::new(at.0)))
    }

    /// What time it is.
    pub fn now(&self) -> Time {
        match self {
            Clock::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Time(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
            }
            Clock::Manual(at) => Time(at.load(Ordering::SeqCst)),
        }
    }

    /// Moves a manual clock forward; a system clock is left alone.
    pub fn advance(&self, span: freehold_kernel::Span) {
        if let Clock::Manual(at) = self {
            at.fetch_add(span.0, Ordering::SeqCst);
        }
    }
}

/// All rows of a store in one comparable form: table, key, then every column's text. Two stores
/// that got the same commands have equal dumps.
pub type Dump = BTreeMap<&'static str, BTreeMap<Vec<crate::run::Stored>, DumpRow>>;

/// A row in a [`Dump`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpRow {
    /// Its version.
    pub version: u64,
    /// Facts, then content, in the order of their declaration.
    pub columns: Vec<crate::run::Stored>,
}

/// Reads a whole store into a [`Dump`].
///
/// # Errors
/// Failures of the store, and rows that cannot be read.
pub async fn dump(store: &impl Store) -> Result<Dump, StoreError> {
    let reads: Vec<Read> = TableId::ALL.iter().map(|t| Read::all(*t)).collect();
    let rows = store.read(&reads).await?;
    if let Some((table, key, why)) = rows.unreadable.first() {
        return Err(StoreError::Unreadable {
            table: table.name(),
            column: "?",
            value: format!("{key}: {why}"),
        });
    }
    crate::dump::of(&rows)
}
