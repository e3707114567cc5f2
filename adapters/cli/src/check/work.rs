//! What is to be checked.

use freehold_kernel::Guard;
use freehold_model_check::System;
use freehold_model_check::models::catalogue::{self, Design, Entry, Kill, Scope};

use super::{Args, names};
use crate::failure::Failure;

/// One exploration.
#[derive(Debug)]
pub(super) enum Work {
    /// A system, as it is promised.
    System(&'static Entry),
    /// A kernel without a guard, which must break as pinned.
    Kill(&'static Kill),
    /// A design that must be caught as pinned.
    Planted(&'static Design),
    /// What somebody asks: what breaks without these?
    Without {
        /// The system.
        build: fn() -> System,
        /// The guards.
        guards: Vec<Guard>,
    },
}

impl Work {
    pub(super) fn build(&self) -> System {
        match self {
            Work::System(entry) => (entry.build)(),
            Work::Kill(kill) => (kill.build)().without(kill.guards),
            Work::Planted(design) => (design.build)(),
            Work::Without { build, guards } => build().without(guards),
        }
    }

    pub(super) fn name(&self) -> String {
        match self {
            Work::System(entry) => entry.name.to_owned(),
            Work::Kill(kill) => format!("without {}", codes(kill.guards)),
            Work::Planted(design) => format!("planted {}", design.name),
            Work::Without { build, guards } => {
                format!("{} without {}", build().name(), codes(guards))
            }
        }
    }

    /// What kind it is, for JSON.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Work::System(_) => "system",
            Work::Kill(_) => "guard",
            Work::Planted(_) => "planted",
            Work::Without { .. } => "without",
        }
    }

    /// The guards that are taken out.
    pub(super) fn guards(&self) -> Vec<Guard> {
        match self {
            Work::System(_) | Work::Planted(_) => Vec::new(),
            Work::Kill(kill) => kill.guards.to_vec(),
            Work::Without { guards, .. } => guards.clone(),
        }
    }

    /// The way to rest is looked for wherever it may be the finding.
    pub(super) fn looks_for_rest(&self) -> bool {
        match self {
            Work::System(_) | Work::Without { .. } => true,
            Work::Kill(kill) => kill.property == "stuck",
            Work::Planted(design) => design.property == "stuck",
        }
    }
}

fn codes(guards: &[Guard]) -> String {
    guards.iter().map(|g| g.code()).collect::<Vec<_>>().join(" + ")
}

/// What the arguments ask for.
pub(super) fn chosen(args: &Args) -> Result<Vec<Work>, Failure> {
    if let Some(name) = &args.planted {
        let all = catalogue::designs().into_iter();
        return Ok(vec![Work::Planted(names::find("planted design", name, all, |d| d.name)?)]);
    }
    let systems = match &args.model {
        Some(prefix) => named(prefix, args.long)?,
        None => catalogue::systems().into_iter().filter(|e| in_scope(e, args.long)).collect(),
    };
    if !args.without.is_empty() {
        let guards = args
            .without
            .iter()
            .map(|name| names::find("guard", name, Guard::ALL.iter(), |g| g.code()).copied())
            .collect::<Result<Vec<Guard>, Failure>>()?;
        let kill = catalogue::kills().into_iter().find(|kill| same(kill.guards, &guards));
        let builds: Vec<fn() -> System> = match (kill, &args.model) {
            (Some(kill), None) => vec![kill.build],
            (None, None) | (_, Some(_)) => systems.iter().map(|e| e.build).collect(),
        };
        let without = |build| Work::Without { build, guards: guards.clone() };
        return Ok(builds.into_iter().map(without).collect());
    }
    let mut work: Vec<Work> = systems.into_iter().map(Work::System).collect();
    if args.model.is_none() {
        work.extend(catalogue::kills().into_iter().map(Work::Kill));
        work.extend(catalogue::designs().into_iter().map(Work::Planted));
    }
    Ok(work)
}

fn in_scope(entry: &Entry, long: bool) -> bool {
    long || entry.scope == Scope::Ci
}

/// The systems whose names begin so.
fn named(prefix: &str, long: bool) -> Result<Vec<&'static Entry>, Failure> {
    let all = catalogue::systems();
    // Somebody who gives the whole name means this one, long or not.
    if let Some(entry) = all.iter().find(|e| e.name == prefix) {
        return Ok(vec![entry]);
    }
    let known: Vec<&str> = all.iter().map(|e| e.name).collect();
    let begin: Vec<&'static Entry> =
        all.into_iter().filter(|e| !prefix.is_empty() && e.name.starts_with(prefix)).collect();
    if begin.is_empty() {
        return Err(names::unknown("system", prefix, &known));
    }
    let systems: Vec<_> = begin.iter().copied().filter(|e| in_scope(e, long)).collect();
    if systems.is_empty() {
        let names: Vec<&str> = begin.iter().map(|e| e.name).collect();
        return Err(Failure::Unknown(format!(
            "{} is for the long run: add --long, or give the whole name",
            names.join(", ")
        )));
    }
    Ok(systems)
}

fn same(a: &[Guard], b: &[Guard]) -> bool {
    a.iter().all(|g| b.contains(g)) && b.iter().all(|g| a.contains(g))
}
