//! The P-properties (09), written from the rules and not from the decisions: named functions over
//! the world, over one step, and over the physical world beside it. The suites, the model checker,
//! the fuzz targets and the documentation use this one table.
//!
//! ```text
//!   State(fn(&View))              holds in every reachable world
//!   Disk(fn(&View, &Disk))        holds in every reachable world, with what is on the disk
//!   Step(fn(&Step))               holds of every command
//!   History(fn(&Step, &History))  holds of every command, given what was once true
//!   Goal(fn(&View))               is reached again from everywhere, under fairness
//!   NotYet(why)                   its subject does not exist yet
//! ```

mod claims;
mod cleanup;
mod creation;
mod ghost;
mod goals;
mod inputs;
mod ledger;
mod ownership;
mod removal;
mod sessions;
mod step;
mod table;
#[cfg(test)]
mod tests;
mod tree;
mod turns;
mod words;

use core::fmt;

use crate::refusal::InTheWay;
use crate::rows::{RowKey, View};

pub use ghost::{Disk, Hand, History, Physical, Place};
pub use step::{Changed, Granted, Step, changes};
pub use table::PROPERTIES;

/// What breaks a property: the rows, and a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// What is wrong.
    pub says: &'static str,
    /// A code that belongs to it; empty if none.
    pub detail: &'static str,
    /// The rows that show it.
    pub rows: InTheWay,
}

impl Witness {
    fn with(self, detail: &'static str) -> Witness {
        Witness { detail, ..self }
    }
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.says)?;
        if !self.detail.is_empty() {
            write!(f, " ({})", self.detail)?;
        }
        for row in self.rows.rows() {
            write!(f, " [{} {:x}]", row.table.name(), row.key.id)?;
        }
        Ok(())
    }
}

/// Whether a property holds, or what breaks it.
pub type Holds = Result<(), Witness>;

/// Breaks unless the condition holds.
fn demand<const N: usize>(holds: bool, says: &'static str, rows: [RowKey; N]) -> Holds {
    if holds { Ok(()) } else { Err(witness(says, rows)) }
}

fn witness<const N: usize>(says: &'static str, rows: [RowKey; N]) -> Witness {
    Witness { says, detail: "", rows: InTheWay::of(rows.into_iter()) }
}

/// What a property is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertyScope {
    /// Every reachable world.
    State,
    /// Every step.
    Step,
    /// Every path.
    Liveness,
}

/// How a property is checked.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    /// On every world.
    State(fn(&View) -> Holds),
    /// On every world with its physical side.
    Disk(fn(&View, &Disk) -> Holds),
    /// On every step.
    Step(fn(&Step<'_>) -> Holds),
    /// On every step, given what was once true before it.
    History(fn(&Step<'_>, &History) -> Holds),
    /// A world that is reached again from everywhere, under fairness: the goal holds in it.
    Goal(fn(&View) -> Holds),
    /// Its subject does not exist yet.
    NotYet(&'static str),
}

/// A property of 09.
#[derive(Clone, Copy, Debug)]
pub struct Property {
    /// Its number.
    pub id: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What the rule says.
    pub says: &'static str,
    /// What it is about.
    pub scope: PropertyScope,
    /// Every check of it; all must hold.
    pub checks: &'static [Check],
}

impl Property {
    /// Why it is not checked yet, if it is not.
    pub fn not_yet(&self) -> Option<&'static str> {
        self.checks.iter().find_map(|c| match c {
            Check::NotYet(why) => Some(*why),
            Check::State(_)
            | Check::Disk(_)
            | Check::Step(_)
            | Check::History(_)
            | Check::Goal(_) => None,
        })
    }

    /// Checks a world.
    ///
    /// # Errors
    /// What breaks it.
    pub fn state(&self, view: &View, disk: &Disk) -> Holds {
        for check in self.checks {
            match check {
                Check::State(holds) => holds(view)?,
                Check::Disk(holds) => holds(view, disk)?,
                Check::Step(_) | Check::History(_) | Check::Goal(_) | Check::NotYet(_) => {}
            }
        }
        Ok(())
    }

    /// Checks a step.
    ///
    /// # Errors
    /// What breaks it.
    pub fn step(&self, step: &Step<'_>, history: &History) -> Holds {
        for check in self.checks {
            match check {
                Check::Step(holds) => holds(step)?,
                Check::History(holds) => holds(step, history)?,
                Check::State(_) | Check::Disk(_) | Check::Goal(_) | Check::NotYet(_) => {}
            }
        }
        Ok(())
    }

    /// Checks whether a liveness goal is reached in this world.
    ///
    /// # Errors
    /// What is left to do.
    pub fn goal(&self, view: &View) -> Holds {
        for check in self.checks {
            match check {
                Check::Goal(holds) => holds(view)?,
                Check::State(_)
                | Check::Disk(_)
                | Check::Step(_)
                | Check::History(_)
                | Check::NotYet(_) => {}
            }
        }
        Ok(())
    }
}

/// Every property that a world breaks, in the order of 09, each with its first witness. Lazy: the
/// next property is looked at when it is asked for.
pub fn broken_in(view: &View, disk: &Disk) -> impl Iterator<Item = (&'static Property, Witness)> {
    PROPERTIES.iter().filter_map(move |p| Some((p, p.state(view, disk).err()?)))
}

/// Every property that a step breaks, in the order of 09, each with its first witness. Lazy, as
/// [`broken_in`].
pub fn broken_by(
    step: &Step<'_>,
    history: &History,
) -> impl Iterator<Item = (&'static Property, Witness)> {
    PROPERTIES.iter().filter_map(move |p| Some((p, p.step(step, history).err()?)))
}

/// The first property that a world breaks.
///
/// # Errors
/// It, with its witness.
pub fn check_state(view: &View, disk: &Disk) -> Result<(), (&'static Property, Witness)> {
    broken_in(view, disk).next().map_or(Ok(()), Err)
}

/// The first property that a step breaks.
///
/// # Errors
/// It, with its witness.
pub fn check_step(step: &Step<'_>, history: &History) -> Result<(), (&'static Property, Witness)> {
    broken_by(step, history).next().map_or(Ok(()), Err)
}

/// The first liveness goal that is not reached in this world.
///
/// # Errors
/// It, with what is left.
pub fn check_goals(view: &View) -> Result<(), (&'static Property, Witness)> {
    for property in PROPERTIES {
        property.goal(view).map_err(|w| (property, w))?;
    }
    Ok(())
}
