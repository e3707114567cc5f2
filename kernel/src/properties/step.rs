//! One step: what was, what is, what was asked, and what came out.

use alloc::vec::Vec;
use core::any::Any;

use crate::command::Envelope;
use crate::decision::Event;
use crate::id::*;
use crate::rows::*;
use crate::view::Change;
use crate::warrant::Warrant;

/// A row that a step changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Which.
    pub row: RowKey,
    /// How.
    pub how: Change,
    /// Nothing but a lease (and the time of writing) changed.
    pub lease_only: bool,
}

/// What a warrant permits, as data that properties can keep. It permits nothing by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The removal row behind it.
    pub removal: RemovalId,
    /// The token it was issued under.
    pub token: Token,
    /// On whose behalf.
    pub authority: Authority,
    /// The root.
    pub root: RootId,
    /// The path.
    pub path: PathId,
    /// The identity.
    pub identity: Option<WorktreeId>,
    /// The one step.
    pub step: RemovalStep,
    /// Whether the branch may go.
    pub delete_branch: bool,
}

impl From<&Warrant> for Granted {
    fn from(warrant: &Warrant) -> Granted {
        Granted {
            removal: warrant.removal(),
            token: warrant.token(),
            authority: warrant.authority(),
            root: warrant.root(),
            path: warrant.path(),
            identity: warrant.identity(),
            step: warrant.step(),
            delete_branch: warrant.may_delete_branch(),
        }
    }
}

/// One command on the whole world.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// All rows before.
    pub before: &'a View,
    /// All rows after.
    pub after: &'a View,
    /// What was asked, by whom.
    pub command: &'a Envelope,
    /// The journal lines that the step wrote.
    pub events: &'a [Event],
    /// Whether it was accepted.
    pub accepted: bool,
    /// The permission that came out.
    pub granted: Option<Granted>,
    /// The rows that differ, from [`changes`].
    pub changes: &'a [Changed],
}

impl Step<'_> {
    /// The permission, if it is one to go on removing something that could still be put back:
    /// a purge, a branch decision and a putting back are none (C-18, W-35).
    pub(super) fn granted_forward(&self) -> Option<Granted> {
        self.granted.filter(|g| match g.step {
            RemovalStep::Permitted
            | RemovalStep::Salvaged
            | RemovalStep::Renamed
            | RemovalStep::Compared
            | RemovalStep::Unregistered => true,
            RemovalStep::BranchSettled | RemovalStep::Purged | RemovalStep::Returned => false,
        })
    }
}

/// The rows that differ between two worlds.
pub fn changes(before: &View, after: &View) -> Vec<Changed> {
    let mut diff = Diff { before, out: Vec::new() };
    after.each(&mut diff);
    diff.out
}

struct Diff<'a> {
    before: &'a View,
    out: Vec<Changed>,
}

impl Visit for Diff<'_> {
    fn table<R: Row>(&mut self, after: &Table<R>) {
        struct Against<'b, R: Row>(&'b Table<R>, &'b mut Vec<Changed>);
        impl<R: Row> Visit for Against<'_, R> {
            fn table<T: Row>(&mut self, before: &Table<T>) {
                // One table holds one row type; both sides are the same one.
                if let Some(before) = (before as &dyn Any).downcast_ref::<Table<R>>() {
                    merge(before, self.0, self.1);
                }
            }
        }
        self.before.one(R::TABLE, &mut Against(after, &mut self.out));
    }
}

/// Live slots only: what a view marks as gone is gone.
fn live<R: Row>(table: &Table<R>) -> impl Iterator<Item = &crate::view::Slot<R>> {
    table.slots().iter().filter(|s| s.change() != Some(Change::Deleted)).filter(|s| {
        // A row that was made and removed in one decision has no change at all.
        s.was().is_some() || s.change().is_some()
    })
}

fn merge<R: Row>(before: &Table<R>, after: &Table<R>, out: &mut Vec<Changed>) {
    let (mut old, mut new) = (live(before).peekable(), live(after).peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some(_), None) => core::cmp::Ordering::Less,
            (None, Some(_)) => core::cmp::Ordering::Greater,
            (Some(o), Some(n)) => o.row().key().cmp(&n.row().key()),
        };
        let mut put = |row: RowKey, how, lease_only| out.push(Changed { row, how, lease_only });
        match order {
            core::cmp::Ordering::Less => {
                if let Some(o) = old.next() {
                    put(o.row().row_key(), Change::Deleted, false);
                }
            }
            core::cmp::Ordering::Greater => {
                if let Some(n) = new.next() {
                    put(n.row().row_key(), Change::Inserted, false);
                }
            }
            core::cmp::Ordering::Equal => {
                let (Some(o), Some(n)) = (old.next(), new.next()) else { return };
                if o.row() != n.row() {
                    put(n.row().row_key(), Change::Updated, lease_only(o.row(), n.row()));
                } else if o.version() != n.version() || n.change() == Some(Change::Touched) {
                    put(n.row().row_key(), Change::Touched, false);
                }
            }
        }
    }
}

fn lease_only<R: Row>(old: &R, new: &R) -> bool {
    R::COLUMNS.iter().enumerate().all(|(i, column)| {
        old.value(i) == new.value(i) || column.name.contains("lease") || column.name == "updated_at"
    })
}
