//! What there is to check: systems, kernels without a guard, and plausible designs that are wrong.
//! Each model's file has its own tables; here they are one list.

use freehold_kernel::Guard;

use crate::system::System;

/// When a system is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// In CI: seconds.
    Ci,
    /// In the long run: minutes, up to 300 million states.
    Long,
}

/// A system of a model.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name, as `--model` takes it; begins with the model's: `creation-archive`.
    pub name: &'static str,
    /// The number of its model in 09.
    pub model: u8,
    /// What meets what, in a line.
    pub says: &'static str,
    /// When it is explored.
    pub scope: Scope,
    /// Makes it.
    pub build: fn() -> System,
    /// Its unique states, with its symmetries; pinned.
    pub states: usize,
}

/// A kernel without some guards, and what breaks.
#[derive(Clone, Copy, Debug)]
pub struct Kill {
    /// One rule guard, or a whole group of redundant ones.
    pub guards: &'static [Guard],
    /// The system in which it breaks; the guards are not taken out yet.
    pub build: fn() -> System,
    /// The first property that breaks, by its number: `P-3`.
    pub property: &'static str,
    /// Steps of the shortest trace.
    pub steps: usize,
    /// For a group: why each of them is there although one would do.
    pub why: &'static str,
}

/// A plausible design that is wrong.
#[derive(Clone, Copy, Debug)]
pub struct Design {
    /// Its name, as `--planted` takes it: `inventory-before-barrier`.
    pub name: &'static str,
    /// What it does, and why one would do it.
    pub says: &'static str,
    /// The rule that forbids it.
    pub rule: &'static str,
    /// Makes the system that is built so.
    pub build: fn() -> System,
    /// The property that breaks, by its number, or `stuck` for a state from which nothing settles.
    pub property: &'static str,
    /// Steps of the shortest trace.
    pub steps: usize,
}

/// Every system.
pub fn systems() -> Vec<&'static Entry> {
    let tables = [
        super::creation::SYSTEMS,
        super::job::SYSTEMS,
        super::turns::SYSTEMS,
        super::cascade::SYSTEMS,
    ];
    tables.into_iter().flatten().collect()
}

/// Every guard or group that is taken out.
pub fn kills() -> Vec<&'static Kill> {
    let tables =
        [super::creation::KILLS, super::job::KILLS, super::turns::KILLS, super::cascade::KILLS];
    tables.into_iter().flatten().collect()
}

/// Every planted design.
pub fn designs() -> Vec<&'static Design> {
    super::planted::DESIGNS.iter().collect()
}
