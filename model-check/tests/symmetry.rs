//! Symmetry is right: what it leaves out differs from what it keeps by names only, and every such
//! difference can really happen.

#[path = "symmetry/broken.rs"]
mod broken;

use std::collections::HashSet;

use freehold_kernel::{Command, Guard, OperationCommand, Permissions, Trigger};
use freehold_model_check::explore::{Model, To};
use freehold_model_check::models::actors::person::Act;
use freehold_model_check::models::actors::{Maker, Operator, Person, Recovery};
use freehold_model_check::models::begin;
use freehold_model_check::models::catalogue::systems;
use freehold_model_check::models::creation::{creating_sessions, interchangeable};
use freehold_model_check::models::names::task;
use freehold_model_check::{Limits, System, explore};

/// Every state, in full.
fn reached(system: &System) -> Vec<<System as Model>::State> {
    let first = system.initial();
    let (mut known, mut all, mut at) = (HashSet::from([first]), vec![first], 0);
    let mut out = Vec::new();
    while let Some(state) = all.get(at).copied() {
        out.clear();
        system.edges(state, &mut out);
        for to in &out {
            match to {
                To::State(next) if known.insert(*next) => all.push(*next),
                To::State(_) => {}
                To::Broken(n) => panic!("{:?}", system.broken(*n)),
            }
        }
        at += 1;
    }
    all
}

/// How many states a system has in full, and how many stand for them; every image of a state that
/// was reached must have been reached too.
fn closed(system: &System) -> (usize, usize) {
    let all = reached(system);
    let known: HashSet<_> = all.iter().copied().collect();
    let mut orbits = HashSet::new();
    for state in &all {
        let stands = system.canonical(*state);
        assert!(known.contains(&stands), "an image that is never reached: {stands:?}");
        for image in system.images(*state) {
            assert!(known.contains(&image), "an image that is never reached: {image:?}");
            assert_eq!(system.canonical(image), stands);
        }
        orbits.insert(stands);
    }
    (all.len(), orbits.len())
}

/// Two makers meet an operation; what is left to undo is undone. No worker: the job is none of
/// theirs.
fn two(trigger: Trigger) -> System {
    let mut world = begin::world(2);
    begin::add_task(&mut world, 0, None);
    begin::add_environment(&mut world, 0, 0);
    let system = System::new("two makers", world)
        .with(Maker { n: 0, environment: 0, instance: 0 })
        .with(Maker { n: 1, environment: 0, instance: 0 })
        .with(Operator::new(0, trigger, 0))
        .with(Recovery { instance: 0 });
    interchangeable(system, 0)
}

#[test]
fn what_symmetry_leaves_out_differs_by_names_only() {
    for trigger in [Trigger::Archive, Trigger::Delete, Trigger::EnvironmentReset] {
        let (full, orbits) = closed(&two(trigger));
        let limits = Limits { rest: false, ..Limits::default() };
        let explored = explore(&two(trigger), limits);
        let unreduced = explore(&two(trigger).in_full(), limits);
        let factor = full as f64 / orbits as f64;
        println!("{}: {full} states, {orbits} orbits, factor {factor:.2}", trigger.code());
        assert_eq!((explored.states, unreduced.states), (orbits, full));
        assert_eq!(explored.depth, unreduced.depth);
        assert!(explored.exhaustive() && unreduced.exhaustive(), "{:?}", explored.broken);
    }
}

#[test]
fn two_makers_and_two_sessions_make_one_group_of_four() {
    let system = || creating_sessions(two(Trigger::Archive), 2, true);
    let (full, orbits) = closed(&system());
    let explored = explore(&system(), Limits { rest: false, ..Limits::default() });
    let factor = full as f64 / orbits as f64;
    println!("with sessions: {full} states, {orbits} orbits, factor {factor:.2}");
    assert_eq!(explored.states, orbits);
    assert!(factor > 3.0 && explored.exhaustive());
}

#[test]
#[should_panic(expected = "never reached")]
fn sessions_are_told_apart_by_their_ids_when_a_task_comes_back() {
    let acts = vec![Act::Ask {
        says: "unarchives task 0",
        command: Command::Operation(OperationCommand::Unarchive { task: task(0), cascade: false }),
        may: Permissions::ALL,
        insists: true,
    }];
    let mut world = begin::world(2);
    begin::add_task(&mut world, 0, None);
    begin::add_environment(&mut world, 0, 0);
    let system = System::new("two sessions", world).with(Operator::new(0, Trigger::Archive, 0));
    let system = creating_sessions(system, 2, true);
    closed(&system.with(Person { who: "a person", acts, open: false }));
}

#[test]
fn a_trace_found_under_symmetry_is_a_real_run() {
    let without = [Guard::PersistUnbarred];
    let (reduced, full) = (two(Trigger::Archive), two(Trigger::Archive).in_full());
    let found = explore(&reduced.without(&without), Limits::default()).broken;
    let plain = explore(&full.without(&without), Limits::default()).broken;
    let (found, plain) = (&found[0], &plain[0]);
    assert_eq!(found.broken.property, plain.broken.property);
    assert_eq!(found.trace.lines.len(), plain.trace.lines.len());
    // It is replayed in full, edge by edge, by the words of its lines.
    let system = two(Trigger::Archive).in_full().without(&without);
    let mut state = system.initial();
    let mut out = Vec::new();
    for line in &found.trace.lines {
        out.clear();
        system.edges(state, &mut out);
        let edge = (0..out.len()).find(|edge| system.tell(state, *edge) == *line);
        let edge = edge.unwrap_or_else(|| panic!("no such step: {line}"));
        match out[edge] {
            To::State(next) => state = next,
            To::Broken(n) => assert_eq!(system.broken(n), found.broken),
        }
    }
}

/// How many states a system of the catalogue has in full for each that is kept.
#[test]
fn two_makers_and_two_sessions_of_the_catalogue_are_worth_their_symmetry() {
    let entry = systems().into_iter().find(|e| e.name == "creation-archive-four");
    let entry = entry.expect("it is in the catalogue");
    let limits = Limits { rest: false, ..Limits::default() };
    let reduced = explore(&(entry.build)(), limits);
    let full = explore(&(entry.build)().in_full(), limits);
    let factor = full.states as f64 / reduced.states as f64;
    println!("{}: {} of {} states, factor {factor:.2}", entry.name, reduced.states, full.states);
    assert_eq!((reduced.states, reduced.depth), (entry.states, full.depth));
    assert!(reduced.exhaustive() && full.exhaustive());
    assert!(factor > 2.9, "{factor:.2}");
}
