//! Random walks through everything at once, and that they find what is planted.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use freehold_kernel::properties::check_goals;
use freehold_kernel::{Guard, Trigger};
use freehold_model_check::models::{cascade, everything};
use freehold_model_check::{Limits, State, System, Walked, Walks, explore, walk};

fn told(system: &System, walked: &Walked<State>) -> String {
    let found = walked.found.as_ref().map_or(String::new(), |f| {
        format!(
            "\n{} after {} steps, told in {}:\n{}{}",
            f.broken.property,
            walked.found_after,
            f.trace.lines.len(),
            f.trace,
            f.broken.says
        )
    });
    let left = walked.last.map(|last| {
        check_goals(&system.world(last).view).map_err(|(p, w)| format!("{} {}: {w}", p.id, p.name))
    });
    let stuck = walked.stuck.as_ref().map_or(String::new(), |trace| {
        format!("\nstuck after {} steps:\n{trace}{left:?}", walked.found_after)
    });
    format!(
        "seed {}: {} walks, {} steps, {} states, {} edges, depth {}, {} came to rest, {:.1} s, \
         cut: {:?}, never seen: {:?}{found}{stuck}",
        walked.seed,
        walked.walks,
        walked.steps,
        walked.states,
        walked.edges,
        walked.depth,
        walked.ends,
        walked.took.as_secs_f64(),
        walked.cut.map(|c| c.says()),
        walked.unseen(),
    )
}

/// `FREEHOLD_SEED=n` begins with another seed.
fn seed() -> Option<u64> {
    std::env::var("FREEHOLD_SEED").ok().and_then(|s| s.parse().ok())
}

fn check(seed: u64, limits: Walks) -> Walked<State> {
    let system = everything::system();
    let walked = walk(&system, Walks { seed, ..limits });
    println!("{}", told(&system, &walked).lines().next().unwrap_or_default());
    let held = walked.found.is_none() && walked.stuck.is_none() && walked.cut.is_none();
    assert!(held, "{}", told(&system, &walked));
    walked
}

/// `FREEHOLD_SEED=n` walks with another seed; `FREEHOLD_LONG=1` for ten minutes, with a fresh one.
#[test]
fn nothing_breaks_on_the_way() {
    if std::env::var_os("FREEHOLD_LONG").is_some() {
        let fresh = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let mut next = seed().unwrap_or_else(fresh);
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(600) {
            // A new system for each: what was worked out for the last one is forgotten.
            check(next, Walks { walks: 100, length: 2_000, ..Walks::default() });
            next = next.wrapping_add(1);
        }
        return;
    }
    let mut unseen: Option<BTreeSet<String>> = None;
    for seed in seed().map_or(vec![1, 2, 3], |s| vec![s]) {
        let walked = check(seed, Walks { walks: 25, length: 2_000, ..Walks::default() });
        let new: BTreeSet<String> = walked.unseen().into_iter().map(str::to_owned).collect();
        unseen = Some(unseen.map_or(new.clone(), |u| u.intersection(&new).cloned().collect()));
    }
    assert_eq!(unseen, Some(BTreeSet::new()), "never seen");
}

#[test]
fn the_same_seed_walks_the_same_ways() {
    let walks = |seed| {
        let system = cascade::tree(Trigger::CascadeArchive, cascade::Size::SMALL);
        let walked = walk(&system, Walks { seed, walks: 20, ..Walks::default() });
        (walked.steps, walked.states, walked.edges, walked.depth)
    };
    assert_eq!(walks(7), walks(7));
    assert_ne!(walks(7), walks(8));
}

/// A kernel without a guard is found out by walks too, and the walk is told as shortly as can be.
#[test]
fn a_planted_bug_is_found_and_told_shortly() {
    let mutants: [(Guard, fn() -> System); 3] = [
        (Guard::CascadeComplete, cascade::growing_tree),
        (Guard::WorkspaceDeletion, cascade::slow_workspace_deletion),
        (Guard::WorkspaceComplete, || cascade::workspace_deletion(cascade::Size::SMALL)),
    ];
    for (guard, build) in mutants {
        let mutant = build().without(&[guard]);
        let walked = walk(&mutant, Walks { seed: 3, rest: false, ..Walks::default() });
        let found = walked.found.unwrap();
        let explored = explore(&mutant, Limits { rest: false, ..Limits::default() });
        let shortest = explored.broken.first().unwrap();
        assert_eq!(found.broken.property, shortest.broken.property, "{}", found.trace);
        let steps = (found.trace.lines.len(), shortest.trace.lines.len());
        assert!(steps.0 <= steps.1 + 2, "{steps:?}: {}", found.trace);
    }
}

#[test]
fn a_planted_bug_is_found_in_everything() {
    for guard in [Guard::PersistUnbarred, Guard::ParentActive] {
        let mutant = everything::system().without(&[guard]);
        let walked = walk(&mutant, Walks { seed: 1, ..Walks::default() });
        let told = told(&mutant, &walked);
        println!("{}: {told}", guard.code());
        let found = walked.found.expect(&told);
        assert!(found.trace.lines.len() < 40, "{told}");
    }
}
