//! Symmetry hides nothing: what breaks in full breaks under it, in as many steps.

use std::collections::BTreeSet;

use freehold_kernel::{Guard, Trigger};
use freehold_model_check::models::actors::Worker;
use freehold_model_check::models::catalogue::{designs, kills};
use freehold_model_check::models::creation::creating_sessions;
use freehold_model_check::models::planted::alike;
use freehold_model_check::{Limits, System, explore};

use super::two;

/// Every property that breaks, with the length of its shortest trace; `stuck` if nothing does and
/// there is no way to rest.
fn breaks(system: &System, rest: bool) -> Vec<(String, usize)> {
    let explored = explore(system, Limits { rest, all: !rest, ..Limits::default() });
    assert!(explored.cut.is_none(), "{}: {:?}", system.name(), explored.cut);
    let id = |property: &str| property.split(' ').next().unwrap_or(property).to_owned();
    let mut all: Vec<_> = explored
        .broken
        .iter()
        .map(|f| (id(&f.broken.property), f.trace.lines.len()))
        .chain(explored.stuck.iter().map(|trace| ("stuck".to_owned(), trace.lines.len())))
        .collect();
    all.sort();
    all
}

/// Two makers, two persons who create sessions, and an operation.
fn four(trigger: Trigger) -> System {
    creating_sessions(two(trigger), 2, true)
}

/// Two makers, an operation, and a worker of its job.
fn worked(trigger: Trigger) -> System {
    two(trigger).with(Worker { instance: 0 })
}

/// Takes out these guards, in full and under symmetry: the same breaks, in as many steps. Whether
/// anything does.
fn same(build: fn(Trigger) -> System, trigger: Trigger, guards: &[Guard]) -> bool {
    let full = breaks(&build(trigger).in_full().without(guards), false);
    let reduced = breaks(&build(trigger).without(guards), false);
    let codes = guards.iter().map(|g| g.code()).collect::<Vec<_>>().join(" + ");
    assert_eq!(reduced, full, "{} without {codes}", trigger.code());
    if !full.is_empty() {
        println!("{} without {codes}: {full:?}", trigger.code());
    }
    !full.is_empty()
}

#[test]
fn a_missing_guard_is_found_under_symmetry_too() {
    let mut broke = BTreeSet::new();
    for trigger in [Trigger::Archive, Trigger::Delete, Trigger::EnvironmentReset] {
        let all = kills().into_iter().filter(|kill| same(two, trigger, kill.guards));
        broke.extend(all.flat_map(|kill| kill.guards.iter().map(|g| g.code())));
    }
    assert!(broke.contains("persist_unbarred"), "{broke:?}");
}

#[test]
fn a_missing_guard_is_found_among_four_who_change_places() {
    for guard in [Guard::PersistUnbarred, Guard::TaskUnbarred] {
        assert!(same(four, Trigger::Archive, &[guard]), "{} breaks nothing", guard.code());
    }
    for guard in [Guard::PersistSlotFree, Guard::SlotUnattempted, Guard::TaskActive] {
        same(four, Trigger::Archive, &[guard]);
    }
}

#[test]
fn a_missing_guard_of_the_job_is_found_under_symmetry_too() {
    let guards = [Guard::AttemptsFirst, Guard::MarkRemoving];
    let broke: Vec<bool> = guards.iter().map(|g| same(worked, Trigger::Archive, &[*g])).collect();
    assert!(broke.contains(&true), "nothing breaks without {guards:?}");
}

#[test]
fn a_planted_design_is_found_under_symmetry_too() {
    for (name, system) in alike::designs() {
        let reduced = breaks(&system, true);
        let (_, again) = alike::designs().into_iter().find(|(n, _)| *n == name).expect("as before");
        let full = breaks(&again.in_full(), true);
        println!("{name}: {reduced:?}");
        assert_eq!(reduced, full, "{name}");
        let design = designs().into_iter().find(|d| d.name == name).expect("a planted design");
        assert_eq!(reduced.first().map(|(property, _)| property.as_str()), Some(design.property));
    }
}
