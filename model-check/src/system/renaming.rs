//! Other names for the same: what a symmetry of a system does to ids, rows and worlds.

use std::sync::Mutex;

use freehold_kernel::properties::{Disk, Hand, History, Physical};
use freehold_kernel::{
    AttemptId, Cell, InputId, JobId, PathId, RemovalId, RootId, Row, Table, Token, TurnId, Value,
    View, Visit, VisitMut, WorktreeId, derive,
};
use hashbrown::HashMap;

use crate::world::NOW;

/// A renaming of ids: pairs that change places, and everything that the kernel derives from them.
#[derive(Debug)]
pub struct Renaming {
    pairs: HashMap<u128, u128>,
    /// Ids that others may be derived from, and what was found so far.
    learned: Mutex<Learned>,
}

#[derive(Debug, Default)]
struct Learned {
    names: Vec<u128>,
    images: HashMap<u128, u128>,
}

impl Renaming {
    /// These change places. `also` are ids that stay and that others may be derived from.
    pub fn new(swaps: &[(u128, u128)], also: &[u128]) -> Renaming {
        let mut pairs = HashMap::new();
        for (a, b) in swaps {
            pairs.insert(*a, *b);
            pairs.insert(*b, *a);
        }
        let mut names: Vec<u128> = pairs.keys().copied().chain(also.iter().copied()).collect();
        // Small numbers are what the kernel and the models derive from, besides ids.
        names.extend(0..8);
        names.sort_unstable();
        names.dedup();
        Renaming { pairs, learned: Mutex::new(Learned { names, images: HashMap::new() }) }
    }

    /// First this one, then another.
    #[must_use]
    pub(super) fn then(&self, other: &Renaming, also: &[u128]) -> Renaming {
        let mut ids: Vec<u128> = self.pairs.keys().chain(other.pairs.keys()).copied().collect();
        ids.sort_unstable();
        ids.dedup();
        let pairs = ids
            .iter()
            .map(|id| {
                let once = self.pairs.get(id).copied().unwrap_or(*id);
                (*id, other.pairs.get(&once).copied().unwrap_or(once))
            })
            .collect();
        let mut names: Vec<u128> = ids.iter().copied().chain(also.iter().copied()).collect();
        names.extend(0..8);
        names.sort_unstable();
        names.dedup();
        Renaming { pairs, learned: Mutex::new(Learned { names, images: HashMap::new() }) }
    }

    /// Whether it does to every id what the other does.
    pub(super) fn same(&self, other: &Renaming) -> bool {
        let moves = |r: &Renaming| {
            let mut all: Vec<_> =
                r.pairs.iter().filter(|(a, b)| a != b).map(|(a, b)| (*a, *b)).collect();
            all.sort_unstable();
            all
        };
        moves(self) == moves(other)
    }

    /// The other name of an id.
    pub fn id(&self, id: u128) -> u128 {
        if let Some(other) = self.pairs.get(&id) {
            return *other;
        }
        let Ok(mut learned) = self.learned.lock() else { return id };
        if let Some(other) = learned.images.get(&id) {
            return *other;
        }
        // An id that the kernel derived from two others has the name that is derived from theirs.
        let names = &learned.names;
        let made_of = names
            .iter()
            .flat_map(|a| names.iter().map(move |b| (*a, *b)))
            .find(|(a, b)| derive(*a, *b) == id);
        let image = |of: u128| {
            self.pairs.get(&of).or_else(|| learned.images.get(&of)).copied().unwrap_or(of)
        };
        // Or from such a one and a small number, without ever being in a row itself.
        let twice = || {
            let pairs = names.iter().flat_map(|a| names.iter().map(move |b| (*a, *b)));
            pairs
                .flat_map(|(a, b)| (0..8).map(move |n| (a, b, n)))
                .find(|(a, b, n)| derive(derive(*a, *b), *n) == id)
        };
        let other = match made_of {
            Some((a, b)) => derive(image(a), image(b)),
            None => twice().map_or(id, |(a, b, n)| derive(derive(image(a), image(b)), n)),
        };
        for (name, is) in [(id, other), (other, id)] {
            // A renaming of more than two need not be its own inverse: only what was asked for
            // is kept then.
            if name == id || self.is_own_inverse() {
                learned.images.insert(name, is);
            }
            if !learned.names.contains(&name) {
                learned.names.push(name);
            }
        }
        other
    }

    fn is_own_inverse(&self) -> bool {
        self.pairs.iter().all(|(a, b)| self.pairs.get(b) == Some(a))
    }

    /// Rows under their other names.
    pub(super) fn view(&self, view: &View) -> View {
        let mut renaming = Rows { by: self, view: View { now: NOW, ..View::default() } };
        view.each(&mut renaming);
        renaming.view
    }

    /// The disk under its other names.
    pub(super) fn disk(&self, disk: &Disk) -> Disk {
        let worktrees = disk.worktrees.iter().map(|w| Physical {
            identity: WorktreeId(self.id(w.identity.0)),
            root: RootId(self.id(w.root.0)),
            path: PathId(self.id(w.path.0)),
            made_by: w.made_by.map(|a| AttemptId(self.id(a.0))),
            moved_by: w.moved_by.map(|r| RemovalId(self.id(r.0))),
            ..*w
        });
        let hands = disk.hands.iter().map(|h| Hand {
            root: RootId(self.id(h.root.0)),
            path: PathId(self.id(h.path.0)),
            token: Token(self.id(h.token.0)),
        });
        Disk { worktrees: worktrees.collect(), hands: hands.collect() }
    }

    /// What was once true, under its other names.
    pub(super) fn history(&self, history: &History) -> History {
        History {
            deleted: history.deleted.iter().map(|(k, id)| (*k, self.id(*id))).collect(),
            stopped: history.stopped.iter().map(|j| JobId(self.id(j.0))).collect(),
            ended: history.ended.iter().map(|t| TurnId(self.id(t.0))).collect(),
            settled: history.settled.iter().map(|(i, s)| (InputId(self.id(i.0)), *s)).collect(),
        }
    }
}

struct Rows<'r> {
    by: &'r Renaming,
    view: View,
}

impl Visit for Rows<'_> {
    fn table<R: Row>(&mut self, table: &Table<R>) {
        struct Put<R>(Vec<R>);
        impl<R: Row> VisitMut for Put<R> {
            fn table<T: Row>(&mut self, table: &mut Table<T>) {
                if let Some(table) = (table as &mut dyn std::any::Any).downcast_mut::<Table<R>>() {
                    for row in self.0.drain(..) {
                        table.load(row, 1);
                    }
                }
            }
        }
        let rows = table.iter().map(|row| {
            R::read(&mut |index| match row.value(index) {
                Value::Null => Cell::Null,
                Value::Id(_, id) => Cell::Id(self.by.id(id)),
                Value::Int(n) => Cell::Int(n),
                Value::Code(code) => Cell::Code(code),
            })
            .unwrap_or(*row)
        });
        let mut put = Put(rows.collect());
        self.view.one_mut(R::TABLE, &mut put);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_derived_moves_with_what_it_is_derived_from() {
        let swap = Renaming::new(&[(10, 11)], &[20]);
        assert_eq!(swap.id(10), 11);
        assert_eq!(swap.id(20), 20);
        assert_eq!(swap.id(derive(20, 10)), derive(20, 11));
        let twice = derive(derive(20, 11), 1);
        assert_eq!(swap.id(twice), derive(derive(20, 10), 1));
        assert_eq!(swap.id(99), 99);
        // A token of a claim: what it is derived from is in no row.
        let unseen = Renaming::new(&[(10, 11)], &[20]);
        assert_eq!(unseen.id(derive(derive(10, 20), 3)), derive(derive(11, 20), 3));
    }
}
