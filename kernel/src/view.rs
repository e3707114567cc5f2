//! Tables of a view, with change tracking: what a decision changed is what a store writes.

use alloc::vec::Vec;

use crate::rows::{Key, Row, RowKey, View};

/// One row in a view.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slot<R> {
    row: R,
    was: Option<R>,
    /// The version that was loaded; 0 for a row that the decision made.
    version: u64,
    gone: bool,
    touched: bool,
}

/// What happened to a row in a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was made.
    Inserted,
    /// Columns changed.
    Updated,
    /// Nothing but its version changes: it is the anchor of a set that changed (D-23).
    Touched,
    /// It was removed.
    Deleted,
}

impl<R: Row> Slot<R> {
    /// The row as it is now. Of a deleted one, as it was last.
    pub fn row(&self) -> &R {
        &self.row
    }

    /// The row as it was loaded.
    pub fn was(&self) -> Option<&R> {
        self.was.as_ref()
    }

    /// The version that was loaded; 0 for a new row.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What happened to it.
    pub fn change(&self) -> Option<Change> {
        match (self.was, self.gone) {
            (None, true) => None,
            (None, false) => Some(Change::Inserted),
            (Some(_), true) => Some(Change::Deleted),
            (Some(was), false) if was != self.row => Some(Change::Updated),
            (Some(_), false) if self.touched => Some(Change::Touched),
            (Some(_), false) => None,
        }
    }
}

/// The rows of one table in a view, ordered by key.
#[derive(Clone, Debug, PartialEq)]
pub struct Table<R> {
    slots: Vec<Slot<R>>,
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Table { slots: Vec::new() }
    }
}

impl<R: Row> Table<R> {
    /// Room for `n` more rows, so that deciding allocates nothing.
    pub fn reserve(&mut self, n: usize) {
        self.slots.reserve(n);
    }

    /// Puts a stored row into the view. A row that is there already stays as it is.
    pub fn load(&mut self, row: R, version: u64) {
        if let Err(at) = self.find(row.key()) {
            let slot = Slot { row, was: Some(row), version, gone: false, touched: false };
            self.slots.insert(at, slot);
        }
    }

    /// The live row with this key.
    pub fn get(&self, key: Key) -> Option<&R> {
        let slot = self.slots.get(self.find(key).ok()?)?;
        (!slot.gone).then_some(&slot.row)
    }

    /// The live row with this id, for tables whose key has one part.
    pub fn id(&self, id: u128) -> Option<&R> {
        self.get(Key::of(id))
    }

    /// The name of a row of this table, there or not.
    pub fn key_of(&self, id: u128) -> RowKey {
        RowKey { table: R::TABLE, key: Key::of(id) }
    }

    /// The same, to be changed.
    pub fn edit(&mut self, id: u128) -> Option<&mut R> {
        self.edit_key(Key::of(id))
    }

    /// The live row with this key, to be changed.
    pub fn edit_key(&mut self, key: Key) -> Option<&mut R> {
        let at = self.find(key).ok()?;
        let slot = self.slots.get_mut(at)?;
        (!slot.gone).then_some(&mut slot.row)
    }

    /// Adds a row, or brings back one that the same decision removed.
    pub fn insert(&mut self, row: R) {
        match self.find(row.key()) {
            Ok(at) => {
                if let Some(slot) = self.slots.get_mut(at) {
                    slot.row = row;
                    slot.gone = false;
                }
            }
            Err(at) => {
                let slot = Slot { row, was: None, version: 0, gone: false, touched: false };
                self.slots.insert(at, slot);
            }
        }
    }

    /// Removes a row.
    pub fn remove(&mut self, id: u128) {
        if let Ok(at) = self.find(Key::of(id))
            && let Some(slot) = self.slots.get_mut(at)
        {
            slot.gone = true;
        }
    }

    /// Grows the version of an anchor without changing it (D-23).
    pub fn touch(&mut self, id: u128) {
        if let Ok(at) = self.find(Key::of(id))
            && let Some(slot) = self.slots.get_mut(at)
        {
            slot.touched = true;
        }
    }

    /// The live rows, by key.
    pub fn iter(&self) -> impl Iterator<Item = &R> + Clone {
        self.slots.iter().filter(|s| !s.gone).map(|s| &s.row)
    }

    /// The live rows, by key, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut R> {
        self.slots.iter_mut().filter(|s| !s.gone).map(|s| &mut s.row)
    }

    /// Every slot, changed or not.
    pub fn slots(&self) -> &[Slot<R>] {
        &self.slots
    }

    /// How many live rows there are.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there is no live row.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Removes every live row for which `gone` says so, and says how many.
    pub fn remove_where(&mut self, mut gone: impl FnMut(&R) -> bool) -> usize {
        let mut n = 0;
        for slot in self.slots.iter_mut().filter(|s| !s.gone) {
            if gone(&slot.row) {
                slot.gone = true;
                n += 1;
            }
        }
        n
    }

    /// Undoes everything since loading.
    pub fn rollback(&mut self) {
        self.slots.retain(|s| s.was.is_some());
        for slot in &mut self.slots {
            if let Some(was) = slot.was {
                slot.row = was;
            }
            slot.gone = false;
            slot.touched = false;
        }
    }

    /// Makes the present state the loaded one, growing versions: for worlds kept in memory.
    pub fn commit(&mut self) {
        self.slots.retain(|s| !s.gone);
        for slot in &mut self.slots {
            if slot.change().is_some() {
                slot.version += 1;
            }
            slot.was = Some(slot.row);
            slot.touched = false;
        }
    }

    fn find(&self, key: Key) -> Result<usize, usize> {
        self.slots.binary_search_by(|s| s.row.key().cmp(&key))
    }
}

/// Something done with every table of a view.
pub trait Visit {
    /// One table.
    fn table<R: Row>(&mut self, table: &Table<R>);
}

/// Something done to every table of a view.
pub trait VisitMut {
    /// One table.
    fn table<R: Row>(&mut self, table: &mut Table<R>);
}

struct Rollback;
impl VisitMut for Rollback {
    fn table<R: Row>(&mut self, table: &mut Table<R>) {
        table.rollback();
    }
}

struct Commit;
impl VisitMut for Commit {
    fn table<R: Row>(&mut self, table: &mut Table<R>) {
        table.commit();
    }
}

struct Reserve(usize);
impl VisitMut for Reserve {
    fn table<R: Row>(&mut self, table: &mut Table<R>) {
        table.reserve(self.0);
    }
}

struct Changes<'a>(&'a mut dyn FnMut(RowKey, Change));
impl Visit for Changes<'_> {
    fn table<R: Row>(&mut self, table: &Table<R>) {
        for slot in table.slots() {
            if let Some(change) = slot.change() {
                (self.0)(slot.row().row_key(), change);
            }
        }
    }
}

impl View {
    /// Undoes everything since loading.
    pub fn rollback(&mut self) {
        self.each_mut(&mut Rollback);
    }

    /// Makes the present state the loaded one (for worlds kept in memory).
    pub fn commit(&mut self) {
        self.each_mut(&mut Commit);
    }

    /// Room for `n` more rows in every table.
    pub fn reserve(&mut self, n: usize) {
        self.each_mut(&mut Reserve(n));
    }

    /// Calls `f` for every row that changed, in lock order.
    pub fn changes(&self, f: &mut dyn FnMut(RowKey, Change)) {
        self.each(&mut Changes(f));
    }
}
