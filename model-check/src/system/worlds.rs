//! Worlds, each kept once: a world is a handful of numbers of parts, and equal parts are kept
//! once too. A system's state then names its world by one number.

use std::any::Any;
use std::hash::{BuildHasher, Hash, Hasher};

use freehold_kernel::Change;
use freehold_kernel::properties::{Disk, History, check_goals};
use freehold_kernel::{Row, Table, TableId, Value, View, Visit, VisitMut};
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use super::renaming::Renaming;
use crate::explore::Broken;
use crate::world::{NOW, World, copy_disk, copy_history};

/// Tables are kept in groups that mostly change together.
const GROUPS: usize = 4;

const fn group(table: TableId) -> usize {
    match table {
        TableId::Sessions | TableId::Turns | TableId::Inputs | TableId::Runtimes => 1,
        TableId::Attempts | TableId::Repos | TableId::Environments => 2,
        TableId::Jobs
        | TableId::JobRoots
        | TableId::Resources
        | TableId::Removals
        | TableId::Trash
        | TableId::Salvage => 3,
        _what_changes_seldom => 0,
    }
}

/// What is outside the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Outside {
    disk: Disk,
    history: History,
    held: Vec<u128>,
    facts: Vec<(&'static str, u32)>,
}

impl Outside {
    /// Becomes that of a world, in the memory that it has.
    fn read(&mut self, world: &World) {
        copy_disk(&mut self.disk, &world.disk);
        copy_history(&mut self.history, &world.history);
        self.held.clone_from(&world.held);
        self.facts.clone_from(&world.facts);
    }

    /// What may be in any order is put in one.
    fn put_in_order(&mut self) {
        let (disk, history) = (&mut self.disk, &mut self.history);
        disk.worktrees.sort_unstable();
        disk.hands.sort_unstable();
        history.deleted.sort_unstable_by_key(|(_, id)| *id);
        history.deleted.dedup();
        history.stopped.sort_unstable();
        history.ended.sort_unstable();
        history.ended.dedup();
        history.settled.sort_unstable_by_key(|(id, _)| *id);
        self.held.sort_unstable();
    }
}

type Key = [u32; GROUPS + 1];

/// Rows by their table and their number among the table's rows.
type Rows = [(u8, u32)];

/// What is known of a world.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// The property that it breaks.
    pub(super) broken: Option<u32>,
    /// Whether every goal is reached in it.
    pub(super) rests: bool,
    /// The circumstances that hold in it.
    pub(super) seen: u64,
}

/// Looks at a new world: what it breaks, and what it shows.
pub(super) type Look<'a> = &'a dyn Fn(&World) -> (Result<(), Broken>, u64);

/// Every world that was met.
#[derive(Default)]
pub(super) struct Worlds {
    hasher: DefaultHashBuilder,
    rows: Vec<Option<Box<dyn Any + Send>>>,
    row_bytes: usize,
    /// Rows of each group, as (table, number of the row).
    groups: [Kept<Box<Rows>>; GROUPS],
    /// Used again for each world.
    buffers: [Vec<(u8, u32)>; GROUPS],
    outsides: Kept<Outside>,
    /// Used again for each world.
    outside: Outside,
    /// Symmetry, part of a key and its number to the number of its image: a part's image is its
    /// own, whatever world it is a part of.
    images: HashMap<u64, u32>,
    keys: Vec<Key>,
    by_key: HashTable<u32>,
    known: Vec<Known>,
    broken: Vec<Broken>,
    broken_numbers: HashMap<Broken, u32>,
    heap_bytes: usize,
}

/// Values, each kept once.
struct Kept<T> {
    values: Vec<T>,
    table: HashTable<u32>,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Kept { values: Vec::new(), table: HashTable::new() }
    }
}

impl<T: Eq + Hash> Kept<T> {
    /// The value's number, and whether it is new.
    fn keep(&mut self, hasher: &DefaultHashBuilder, value: T) -> (u32, bool) {
        let hash = hasher.hash_one(&value);
        let values = &self.values;
        if let Some(n) = self.table.find(hash, |n| values.get(*n as usize) == Some(&value)) {
            return (*n, false);
        }
        let number = self.values.len() as u32;
        self.table.insert_unique(hash, number, |n| {
            values.get(*n as usize).map_or(0, |v| hasher.hash_one(v))
        });
        self.values.push(value);
        (number, true)
    }

    /// The same for a value that is copied only if it is new.
    fn keep_copy(&mut self, hasher: &DefaultHashBuilder, value: &T) -> (u32, bool)
    where
        T: Clone,
    {
        let hash = hasher.hash_one(value);
        let values = &self.values;
        match self.table.find(hash, |n| values.get(*n as usize) == Some(value)) {
            Some(n) => (*n, false),
            None => self.keep(hasher, value.clone()),
        }
    }

    fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<T>() + self.table.capacity() * 8 / 7 * 5
    }
}

impl<T: Copy + Eq + Hash> Kept<Box<[T]>> {
    /// The same for a slice, which is copied only if it is new.
    fn keep_slice(&mut self, hasher: &DefaultHashBuilder, value: &[T]) -> (u32, bool) {
        let hash = hasher.hash_one(value);
        let values = &self.values;
        let is = |n: &u32| values.get(*n as usize).is_some_and(|v| **v == *value);
        match self.table.find(hash, is) {
            Some(n) => (*n, false),
            None => self.keep(hasher, value.into()),
        }
    }
}

/// The rows of one table.
struct RowsOf<R> {
    rows: Vec<R>,
    table: HashTable<u32>,
}

fn hash_row<R: Row>(hasher: &DefaultHashBuilder, row: &R) -> u64 {
    let mut state = hasher.build_hasher();
    for index in 0..R::COLUMNS.len() {
        match row.value(index) {
            Value::Null => state.write_u8(0),
            Value::Id(_, id) => state.write_u128(id),
            Value::Int(n) => state.write_i64(n),
            // Codes are static: where they stand tells them apart well enough for a hash, but
            // two copies of one text may exist.
            Value::Code(code) => code.hash(&mut state),
        }
    }
    state.finish()
}

struct Interning<'w> {
    rows: &'w mut Vec<Option<Box<dyn Any + Send>>>,
    hasher: &'w DefaultHashBuilder,
    groups: &'w mut [Vec<(u8, u32)>; GROUPS],
    grown: usize,
}

impl Visit for Interning<'_> {
    fn table<R: Row>(&mut self, table: &Table<R>) {
        let id = R::TABLE as usize;
        if self.rows.len() <= id {
            self.rows.resize_with(id + 1, || None);
        }
        if table.is_empty() {
            return;
        }
        let kept = self.rows[id].get_or_insert_with(|| {
            Box::new(RowsOf::<R> { rows: Vec::new(), table: HashTable::new() })
        });
        let Some(kept) = kept.downcast_mut::<RowsOf<R>>() else { return };
        let live = table.slots().iter().filter(|s| s.change() != Some(Change::Deleted));
        for slot in live.filter(|s| s.was().is_some() || s.change().is_some()) {
            let row = slot.row();
            // A row that was loaded carries its number as its version (see `Loading`), and most
            // rows did not change.
            let hint = slot.version().checked_sub(1).unwrap_or(u64::MAX) as usize;
            if kept.rows.get(hint) == Some(row) {
                self.groups[group(R::TABLE)].push((id as u8, hint as u32));
                continue;
            }
            let hash = hash_row(self.hasher, row);
            let rows = &kept.rows;
            let number = match kept.table.find(hash, |n| rows.get(*n as usize) == Some(row)) {
                Some(n) => *n,
                None => {
                    let number = rows.len() as u32;
                    let hasher = self.hasher;
                    kept.table.insert_unique(hash, number, |n| {
                        rows.get(*n as usize).map_or(0, |r| hash_row(hasher, r))
                    });
                    kept.rows.push(*row);
                    self.grown += size_of::<R>() + 8;
                    number
                }
            };
            self.groups[group(R::TABLE)].push((id as u8, number));
        }
    }
}

struct Loading<'w> {
    rows: &'w [Option<Box<dyn Any + Send>>],
    groups: [&'w [(u8, u32)]; GROUPS],
}

impl VisitMut for Loading<'_> {
    fn table<R: Row>(&mut self, table: &mut Table<R>) {
        let id = R::TABLE as u8;
        let Some(Some(kept)) = self.rows.get(id as usize) else { return };
        let Some(kept) = kept.downcast_ref::<RowsOf<R>>() else { return };
        let numbers = self.groups[group(R::TABLE)].iter().filter(|(t, _)| *t == id);
        for (_, number) in numbers {
            if let Some(row) = kept.rows.get(*number as usize) {
                table.load(*row, u64::from(*number) + 1);
            }
        }
    }
}

impl Worlds {
    /// The world's number. What may be in any order is put in one.
    pub(super) fn keep(&mut self, world: &World, look: Look<'_>) -> u32 {
        self.intern(&world.view);
        let mut key: Key = [0; GROUPS + 1];
        for (at, number) in key.iter_mut().enumerate().take(GROUPS) {
            *number = self.keep_rows(at);
        }
        self.outside.read(world);
        key[GROUPS] = self.keep_outside();
        if let Some(number) = self.find(&key) {
            return number;
        }
        let (holds, seen) = look(world);
        let broken = holds.err().map(|broken| self.number_of(broken));
        let rests = check_goals(&world.view).is_ok();
        self.add(key, Known { broken, rests, seen })
    }

    /// Every row to the buffers.
    fn intern(&mut self, view: &View) {
        self.buffers.iter_mut().for_each(Vec::clear);
        let mut interning = Interning {
            rows: &mut self.rows,
            hasher: &self.hasher,
            groups: &mut self.buffers,
            grown: 0,
        };
        view.each(&mut interning);
        self.row_bytes += interning.grown;
    }

    /// The number of the rows in a buffer.
    fn keep_rows(&mut self, at: usize) -> u32 {
        let rows = &self.buffers[at];
        let (number, new) = self.groups[at].keep_slice(&self.hasher, rows);
        self.heap_bytes += if new { rows.len() * size_of::<(u8, u32)>() } else { 0 };
        number
    }

    /// The number of what is in the buffer for it.
    fn keep_outside(&mut self) -> u32 {
        self.outside.put_in_order();
        let (number, new) = self.outsides.keep_copy(&self.hasher, &self.outside);
        self.heap_bytes += if new { 512 } else { 0 };
        number
    }

    fn find(&self, key: &Key) -> Option<u32> {
        let hash = self.hasher.hash_one(key);
        self.by_key.find(hash, |n| self.keys.get(*n as usize) == Some(key)).copied()
    }

    fn add(&mut self, key: Key, known: Known) -> u32 {
        let number = self.keys.len() as u32;
        let (keys, hasher) = (&self.keys, &self.hasher);
        self.by_key.insert_unique(hasher.hash_one(key), number, |n| {
            keys.get(*n as usize).map_or(0, |k| hasher.hash_one(k))
        });
        self.keys.push(key);
        self.known.push(known);
        number
    }

    /// The number of a broken property.
    pub(super) fn number_of(&mut self, broken: Broken) -> u32 {
        if let Some(number) = self.broken_numbers.get(&broken) {
            return *number;
        }
        let number = self.broken.len() as u32;
        self.broken.push(broken.clone());
        self.broken_numbers.insert(broken, number);
        number
    }

    /// The broken property with this number.
    pub(super) fn broken(&self, number: u32) -> Option<&Broken> {
        self.broken.get(number as usize)
    }

    /// What is known of a world.
    pub(super) fn known(&self, world: u32) -> Known {
        self.known[world as usize]
    }

    /// The world with this number, as it was kept.
    pub(super) fn load(&self, world: u32) -> World {
        let key = self.keys[world as usize];
        let mut groups: [&[(u8, u32)]; GROUPS] = [&[]; GROUPS];
        for (at, slot) in groups.iter_mut().enumerate() {
            *slot = &self.groups[at].values[key[at] as usize];
        }
        let mut view = View { now: NOW, ..View::default() };
        view.each_mut(&mut Loading { rows: &self.rows, groups });
        let outside = &self.outsides.values[key[GROUPS] as usize];
        World {
            view,
            disk: outside.disk.clone(),
            history: outside.history.clone(),
            held: outside.held.clone(),
            facts: outside.facts.clone(),
        }
    }

    /// The world with this number, under other names. What holds of it is what holds under its old
    /// ones: no property, no goal and no circumstance of a system with symmetries goes by names.
    pub(super) fn renamed(&mut self, world: u32, symmetry: usize, renaming: &Renaming) -> u32 {
        let mut key = self.keys[world as usize];
        for (at, part) in key.iter_mut().enumerate() {
            let which = (symmetry as u64) << 40 | (at as u64) << 32 | u64::from(*part);
            *part = match self.images.get(&which) {
                Some(image) => *image,
                None => {
                    let image = self.renamed_part(at, *part, renaming);
                    self.images.insert(which, image);
                    image
                }
            };
        }
        let known = self.known(world);
        self.find(&key).unwrap_or_else(|| self.add(key, known))
    }

    fn renamed_part(&mut self, at: usize, part: u32, renaming: &Renaming) -> u32 {
        if at == GROUPS {
            let outside = &self.outsides.values[part as usize];
            self.outside = Outside {
                disk: renaming.disk(&outside.disk),
                history: renaming.history(&outside.history),
                held: outside.held.iter().map(|id| renaming.id(*id)).collect(),
                facts: outside.facts.clone(),
            };
            return self.keep_outside();
        }
        let mut groups: [&[(u8, u32)]; GROUPS] = [&[]; GROUPS];
        groups[at] = &self.groups[at].values[part as usize];
        let mut view = View { now: NOW, ..View::default() };
        view.each_mut(&mut Loading { rows: &self.rows, groups });
        self.intern(&renaming.view(&view));
        self.keep_rows(at)
    }

    /// How many worlds there are.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes held, about.
    pub(super) fn bytes(&self) -> usize {
        self.row_bytes
            + self.heap_bytes
            + self.groups.iter().map(Kept::bytes).sum::<usize>()
            + self.outsides.bytes()
            + self.images.capacity() * 8 / 7 * 17
            + self.keys.capacity() * size_of::<Key>()
            + self.by_key.capacity() * 8 / 7 * 5
            + self.known.capacity() * size_of::<Known>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freehold_kernel::{Command, TaskCommand, WorkspaceId};

    #[test]
    fn a_world_that_was_kept_comes_back_as_it_was() {
        let mut world = World::new();
        world.prepare(Command::Task(TaskCommand::CreateWorkspace { workspace: WorkspaceId(1) }));
        world.hold(7);
        world.set_fact("unmounted", 1);
        let mut worlds = Worlds::default();
        let look: Look<'_> = &|_| (Ok(()), 0);
        let number = worlds.keep(&world, look);
        let again = worlds.load(number);
        assert_eq!(again.view.workspaces.len(), 1);
        assert_eq!((again.held.clone(), again.facts.clone()), (world.held, world.facts));
        assert_eq!(worlds.keep(&again, look), number);
    }

    #[test]
    fn what_is_kept_together_is_a_map_of_numbers() {
        let kept: HashMap<usize, usize> =
            TableId::ALL.iter().map(|t| (*t as usize, group(*t))).collect();
        assert_eq!(kept.len(), TableId::ALL.len());
        assert!(kept.values().all(|g| *g < GROUPS));
    }
}
