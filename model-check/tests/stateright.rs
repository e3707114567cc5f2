//! A second engine explores the same systems and must find as many states; and what that engine
//! does that one would not expect is pinned, so that a new version of it is noticed.

use std::time::Duration;

use freehold_kernel::{Command, SessionCommand, SessionSource, Trigger};
use freehold_model_check::models::actors::{Clock, Maker, Operator, Person, Recovery, Worker};
use freehold_model_check::models::begin;
use freehold_model_check::models::catalogue::{Scope, kills, systems};
use freehold_model_check::models::names::{session, task};
use freehold_model_check::stateright::{At, Bounds, Bridge, Order, count};
use freehold_model_check::{Fault, Limits, Model, System, explore};
use stateright::{Checker as _, Model as _};

/// Larger ones take their time; the smaller ones have the same parts.
const LARGEST: usize = 300_000;

/// A worktree is made while its task is archived: a thousand states or two.
fn tiny() -> System {
    let mut world = begin::world(2);
    begin::add_task(&mut world, 0, None);
    begin::add_environment(&mut world, 0, 0);
    System::new("tiny", world)
        .with(Maker { n: 0, environment: 0, instance: 0 })
        .with(Operator::new(0, Trigger::Archive, 0))
        .with(Worker { instance: 1 })
        .with(Recovery { instance: 1 })
        .with(Clock)
        .allowing(1, Fault::Crash)
        .sometimes("worktree owned", |w| !w.view.repos.is_empty())
}

/// Two sessions, interchangeable, are created while their task is archived.
fn twofold() -> System {
    let mut world = begin::world(1);
    begin::add_task(&mut world, 0, None);
    let create = |n| {
        Command::Session(SessionCommand::Create {
            session: session(n),
            task: task(0),
            environment: None,
            source: SessionSource::Person,
            parent: None,
        })
    };
    let asks = |n| Person::asks("a person", vec![("creates a session", create(n))]);
    System::new("twofold", world)
        .with(Operator::new(0, Trigger::Archive, 0))
        .with(asks(0))
        .with(asks(1))
        .symmetric(&[(session(0).0, session(1).0)], &[(1, 2)], &[])
}

#[test]
fn both_engines_find_as_many_states() {
    let small =
        systems().into_iter().filter(|e| e.scope == Scope::Ci && (1..=LARGEST).contains(&e.states));
    let mut wrong = Vec::new();
    for entry in small {
        // Depth-first it would keep the whole way, thousands of steps, with each state that waits.
        let counted = count((entry.build)(), Order::Breadth, Bounds::default());
        println!("{}: {} states, {:?}", entry.name, counted.states, counted.took);
        if !counted.through || counted.states != entry.states {
            wrong.push(format!(
                "{}: {} states, not {}; through: {}",
                entry.name, counted.states, entry.states, counted.through
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn both_engines_find_the_same_in_either_order() {
    let ours = explore(&tiny(), Limits::default());
    for order in [Order::Breadth, Order::Depth] {
        let theirs = count(tiny(), order, Bounds::default());
        assert!(theirs.through && theirs.broken.is_none());
        assert_eq!((theirs.states, theirs.unseen.len()), (ours.states, ours.unseen().len()));
    }
}

#[test]
fn both_engines_see_a_symmetry_alike() {
    let ours = explore(&twofold(), Limits::default()).states;
    let full = explore(&twofold().in_full(), Limits::default()).states;
    assert!(ours < full, "{ours} {full}");
    for order in [Order::Breadth, Order::Depth] {
        assert_eq!(count(twofold(), order, Bounds::default()).states, ours);
        assert_eq!(count(twofold().in_full(), order, Bounds::default()).states, full);
    }
}

#[test]
fn both_engines_find_what_breaks() {
    let limits = Limits { rest: false, states: 20_000, ..Limits::default() };
    let mut compared = 0;
    for kill in kills() {
        let mutant = || (kill.build)().without(kill.guards);
        let ours = explore(&mutant(), limits);
        let Some(found) = ours.broken.first() else { continue };
        let theirs = count(mutant(), Order::Breadth, Bounds::default());
        let trace = theirs.broken.expect("what breaks for one breaks for the other");
        // Not equal: see below.
        assert!(trace.lines.len() >= found.trace.lines.len(), "{:?}: {trace}", kill.guards);
        assert!(!theirs.through);
        compared += 1;
        if compared == 12 {
            break;
        }
    }
    println!("{compared} kernels without a guard compared");
}

#[test]
fn a_search_that_was_cut_is_not_through() {
    let whole = count(tiny(), Order::Breadth, Bounds::default());
    let cut = count(tiny(), Order::Breadth, Bounds { states: 10, ..Bounds::default() });
    assert!(whole.through && !cut.through);
    assert!(cut.states < whole.states);
    let cut = count(tiny(), Order::Breadth, Bounds { time: Duration::ZERO, ..Bounds::default() });
    assert!(!cut.through);
}

/// Two interchangeable counters: 9 states, 6 up to their exchange.
struct Pair;

impl stateright::Model for Pair {
    type State = (u8, u8);
    type Action = bool;

    fn init_states(&self) -> Vec<(u8, u8)> {
        vec![(0, 0)]
    }

    fn actions(&self, _at: &(u8, u8), actions: &mut Vec<bool>) {
        actions.extend([false, true]);
    }

    fn next_state(&self, (a, b): &(u8, u8), second: bool) -> Option<(u8, u8)> {
        match second {
            false if *a < 2 => Some((a + 1, *b)),
            true if *b < 2 => Some((*a, b + 1)),
            _ => None,
        }
    }

    fn properties(&self) -> Vec<stateright::Property<Self>> {
        vec![stateright::Property::<Self>::always("true", |_, _| true)]
    }
}

/// Why states are made canonical inside the bridge, and `symmetry()` is left alone.
#[test]
fn its_breadth_first_search_ignores_symmetry() {
    let sorted: fn(&(u8, u8)) -> (u8, u8) = |(a, b)| (*a.min(b), *a.max(b));
    let breadth = Pair.checker().symmetry_fn(sorted).spawn_bfs().join();
    let depth = Pair.checker().symmetry_fn(sorted).spawn_dfs().join();
    assert_eq!((breadth.unique_state_count(), depth.unique_state_count()), (9, 6));
}

/// Why traces are told by our own checker: what breaks later overwrites what broke first, within
/// the 1,500 states that it looks at in one go.
#[test]
fn its_breadth_first_trace_is_not_the_shortest() {
    struct Chain;
    impl stateright::Model for Chain {
        type State = u8;
        type Action = ();
        fn init_states(&self) -> Vec<u8> {
            vec![0]
        }
        fn actions(&self, at: &u8, actions: &mut Vec<()>) {
            actions.extend((*at < 5).then_some(()));
        }
        fn next_state(&self, at: &u8, (): ()) -> Option<u8> {
            Some(at + 1)
        }
        fn properties(&self) -> Vec<stateright::Property<Self>> {
            vec![
                stateright::Property::<Self>::always("zero", |_, at| *at == 0),
                stateright::Property::<Self>::always("true", |_, _| true),
            ]
        }
    }
    let checker = Chain.checker().spawn_bfs().join();
    let steps = checker.discovery("zero").expect("one is not zero").into_actions().len();
    assert_eq!(steps, 5, "the shortest is 1: if that is found by now, traces can be compared");
}

/// Why nothing here is `eventually`.
#[test]
fn its_eventually_misses_a_circle() {
    struct Circle;
    impl stateright::Model for Circle {
        type State = bool;
        type Action = ();
        fn init_states(&self) -> Vec<bool> {
            vec![false]
        }
        fn actions(&self, _at: &bool, actions: &mut Vec<()>) {
            actions.push(());
        }
        fn next_state(&self, at: &bool, (): ()) -> Option<bool> {
            Some(!at)
        }
        fn properties(&self) -> Vec<stateright::Property<Self>> {
            vec![stateright::Property::<Self>::eventually("never", |_, _| false)]
        }
    }
    let checker = Circle.checker().spawn_bfs().join();
    assert!(checker.discoveries().is_empty(), "it would be sound by now: use it");
}

/// What `count` is for: the engine itself says nothing.
#[test]
fn its_cut_search_ends_as_quietly_as_a_whole_one() {
    let cut = Bridge::new(tiny(), "tiny").checker().target_max_depth(2).spawn_bfs().join();
    assert!(cut.is_done());
    assert!(cut.unique_state_count() < explore(&tiny(), Limits::default()).states);
}

#[test]
fn the_explorer_gets_words_and_pictures() {
    let bridge = Bridge::new(tiny(), "tiny");
    let first = bridge.init_states().remove(0);
    let mut acts = Vec::new();
    bridge.actions(&first, &mut acts);
    let words = bridge.format_action(&acts[0]);
    assert!(words.starts_with("instance"), "{words}");
    let At::State(state) = first else { panic!("it begins whole") };
    assert_eq!(bridge.system.canonical(state), state);
}
