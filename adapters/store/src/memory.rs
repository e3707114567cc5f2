//! The in-memory store: the world that the property suites and the model checker use, and a
//! reference for every other store.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Mutex, PoisonError};

use freehold_kernel::{Row, RowKey, Table, TableId, Value, View, Visit, VisitMut};

use crate::error::StoreError;
use crate::names::Names;
use crate::run::{Decided, JournalLine, Query, Run, Stored, stored};
use crate::store::{Clock, JournalRow, Read, Rows, Store};
use crate::submission::{Contents, Outcome, Submission};

/// A store in memory.
#[derive(Debug)]
pub struct Memory {
    world: Mutex<World>,
    clock: Clock,
    id: String,
}

/// What the store holds.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// Every row.
    pub view: View,
    /// The texts behind the ids.
    pub names: Names,
    /// The texts beside the facts.
    pub contents: Contents,
    /// The journal.
    pub journal: Vec<JournalLine>,
}

impl Memory {
    /// An empty store on this clock.
    pub fn new(id: &str, clock: Clock) -> Memory {
        Memory { world: Mutex::new(World::default()), clock, id: id.to_owned() }
    }

    /// A store that goes on from a copy.
    pub fn resume(id: &str, clock: Clock, world: World) -> Memory {
        Memory { world: Mutex::new(world), clock, id: id.to_owned() }
    }

    /// A copy of everything in it.
    pub fn world(&self) -> World {
        self.lock().clone()
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, World> {
        // A panic elsewhere cannot leave the world half-changed: `apply` is all-or-nothing.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits at once.
    ///
    /// # Errors
    /// As [`Store::submit`].
    pub fn submit_now(&self, submission: &Submission) -> Result<Outcome, StoreError> {
        let mut world = self.lock();
        let mut run = Run::new(submission);
        run.know(&world.names)?;
        while let Some(query) = run.query()? {
            world.load(&query, run.view_mut())?;
        }
        if let Some(id) = submission.envelope.request {
            let row = RowKey { table: TableId::Requests, key: freehold_kernel::Key::of(id.0) };
            let text = world.contents.get(&row).and_then(|c| c.get("outcome")).cloned().flatten();
            run.recorded(text);
        }
        let decided = run.decide(self.clock.now())?;
        world.apply(decided)
    }

    /// Reads at once.
    pub fn read_now(&self, reads: &[Read]) -> Result<Rows, StoreError> {
        let world = self.lock();
        let mut rows = Rows { names: world.names.clone(), ..Rows::default() };
        rows.view.now = self.clock.now();
        for read in reads {
            let mut copy = Copy {
                to: &mut rows.view,
                by: read.by.as_ref().map(|(column, values)| (*column, values.as_slice())),
                identity: None,
                except: None,
                names: &world.names,
                failed: None,
            };
            world.view.one(read.table, &mut copy);
            if let Some(error) = copy.failed {
                return Err(error);
            }
        }
        rows.contents = world.contents.clone();
        Ok(rows)
    }
}

impl World {
    fn load(&self, query: &Query, to: &mut View) -> Result<(), StoreError> {
        // Ids are compared by their texts, as a database does.
        let mut copy = Copy {
            to,
            by: Some((query.by, &query.values)),
            identity: query.identity,
            except: query.except,
            names: &self.names,
            failed: None,
        };
        self.view.one(query.table, &mut copy);
        match copy.failed {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn apply(&mut self, decided: Decided) -> Result<Outcome, StoreError> {
        let journal = decided.journal();
        let mut keys = Vec::new();
        decided.view.changes(&mut |row, change| keys.push((row, change)));
        let mut write = Write { from: &decided.view, conflict: None };
        self.view.each_mut(&mut write);
        if let Some(detail) = write.conflict {
            self.view.rollback();
            return Err(StoreError::Defect { detail });
        }
        self.view.commit();
        self.names.merge(&decided.names);
        for (row, change) in keys {
            if change == freehold_kernel::Change::Deleted {
                self.contents.remove(&row);
            } else if let Some(content) = decided.content(row) {
                let known: BTreeMap<_, _> = content
                    .iter()
                    .filter(|(name, _)| row.table.content().contains(name))
                    .map(|(name, text)| (*name, text.clone()))
                    .collect();
                self.contents.entry(row).or_default().extend(known);
            }
        }
        self.journal.extend(journal);
        Ok(decided.outcome)
    }
}

/// Copies matching rows of one table from a world into a view.
struct Copy<'a> {
    to: &'a mut View,
    by: Option<(&'static str, &'a [Stored])>,
    identity: Option<freehold_kernel::IdentityKind>,
    except: Option<(&'static str, &'static [&'static str])>,
    names: &'a Names,
    failed: Option<StoreError>,
}

impl Copy<'_> {
    fn matches<R: Row>(&self, row: &R) -> Result<bool, StoreError> {
        let value = |name: &str| {
            R::COLUMNS.iter().position(|c| c.name == name).map_or(Value::Null, |i| row.value(i))
        };
        if let Some(kind) = self.identity
            && value("kind") != Value::Code(kind.code())
        {
            return Ok(false);
        }
        if let Some((column, codes)) = self.except
            && let Value::Code(code) = value(column)
            && codes.contains(&code)
        {
            return Ok(false);
        }
        let Some((column, wanted)) = self.by else { return Ok(true) };
        let mut found = value(column);
        if let (Some(kind), Value::Id(_, id)) = (self.identity, found) {
            found = Value::Id(crate::run::identity_id_kind(kind), id);
        }
        Ok(wanted.contains(&stored(self.names, found)?))
    }
}

impl Visit for Copy<'_> {
    fn table<R: Row>(&mut self, table: &Table<R>) {
        struct Put<'p, R: Row>(&'p R, u64);
        impl<R: Row> VisitMut for Put<'_, R> {
            fn table<T: Row>(&mut self, table: &mut Table<T>) {
                // One table holds one row type; both sides are the same one.
                if let Some(row) = (self.0 as &dyn std::any::Any).downcast_ref::<T>() {
                    table.load(*row, self.1);
                }
            }
        }
        for slot in table.slots() {
            match self.matches(slot.row()) {
                Ok(true) => {
                    self.to.one_mut(R::TABLE, &mut Put(slot.row(), slot.version()));
                }
                Ok(false) => {}
                Err(error) => self.failed = Some(error),
            }
        }
    }
}

/// Writes what a decision changed into the world, checking versions.
struct Write<'a> {
    from: &'a View,
    conflict: Option<String>,
}

impl VisitMut for Write<'_> {
    fn table<T: Row>(&mut self, world: &mut Table<T>) {
        struct Take<'w, 'c, T: Row>(&'w mut Table<T>, &'c mut Option<String>);
        impl<T: Row> Visit for Take<'_, '_, T> {
            fn table<R: Row>(&mut self, table: &Table<R>) {
                for slot in table.slots() {
                    let Some(change) = slot.change() else { continue };
                    let Some(row) = (slot.row() as &dyn std::any::Any).downcast_ref::<T>() else {
                        continue;
                    };
                    let there = self
                        .0
                        .slots()
                        .iter()
                        .find(|s| s.row().key() == row.key())
                        .map(|s| s.version());
                    if there.unwrap_or(0) != slot.version() {
                        *self.1 = Some(format!("{:?} changed meanwhile", row.row_key()));
                        continue;
                    }
                    match change {
                        freehold_kernel::Change::Inserted => self.0.insert(*row),
                        freehold_kernel::Change::Updated => {
                            if let Some(r) = self.0.edit_key(row.key()) {
                                *r = *row;
                            }
                        }
                        freehold_kernel::Change::Touched => self.0.touch(row.key().id),
                        freehold_kernel::Change::Deleted => self.0.remove(row.key().id),
                    }
                }
            }
        }
        self.from.one(T::TABLE, &mut Take(world, &mut self.conflict));
    }
}

impl Store for Memory {
    fn submit(
        &self,
        submission: &Submission,
    ) -> impl Future<Output = Result<Outcome, StoreError>> + Send {
        std::future::ready(self.submit_now(submission))
    }

    fn read(&self, reads: &[Read]) -> impl Future<Output = Result<Rows, StoreError>> + Send {
        std::future::ready(self.read_now(reads))
    }

    fn journal(
        &self,
        after: i64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<JournalRow>, StoreError>> + Send {
        let world = self.lock();
        let rows = world
            .journal
            .iter()
            .zip(1i64..)
            .filter(|(_, seq)| *seq > after)
            .take(limit)
            .map(|(line, seq)| JournalRow { seq, columns: line.columns() })
            .collect();
        std::future::ready(Ok(rows))
    }

    fn id(&self) -> impl Future<Output = Result<String, StoreError>> + Send {
        std::future::ready(Ok(self.id.clone()))
    }
}
