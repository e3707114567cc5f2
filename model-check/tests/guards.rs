//! Every rule guard matters: without it a property breaks, first this one, in so many steps. One
//! run serves the pins and the table that is made of it.

#[path = "guards/table.rs"]
mod table;
#[path = "guards/validation.rs"]
mod validation;

use std::sync::OnceLock;

use freehold_kernel::{Guard, GuardKind};
use freehold_model_check::models::catalogue::{Kill, kills};
use freehold_model_check::{Explored, Limits, Story, explore};

/// `FREEHOLD_GUARD=code` looks at one.
fn wanted() -> Option<String> {
    std::env::var("FREEHOLD_GUARD").ok()
}

fn named(kill: &Kill) -> bool {
    wanted().is_none_or(|w| kill.guards.iter().any(|g| g.code() == w))
}

fn codes(kill: &Kill) -> String {
    kill.guards.iter().map(|g| g.code()).collect::<Vec<_>>().join(" + ")
}

/// A kernel without some guards, explored.
struct Ran {
    kill: &'static Kill,
    system: String,
    explored: Explored,
}

/// Every one of them, once for all tests.
fn runs() -> &'static [Ran] {
    static RUNS: OnceLock<Vec<Ran>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let run = |kill: &'static Kill| {
            let mutant = (kill.build)().without(kill.guards);
            let explored = explore(&mutant, Limits { rest: false, ..Limits::default() });
            let first = explored.broken.first();
            let found = first.map_or("nothing breaks".to_owned(), |f| {
                format!("{} in {} steps", f.broken.property, f.trace.lines.len())
            });
            let (states, took) = (explored.states, explored.took);
            println!("{}: {found}, {states} states, {took:?}", codes(kill));
            if wanted().is_some()
                && let Some(story) = Story::of(mutant.name(), kill.guards, &explored)
            {
                println!("{}", story.text());
            }
            Ran { kill, system: mutant.name().to_owned(), explored }
        };
        kills().into_iter().filter(|k| named(k)).map(run).collect()
    })
}

#[test]
fn each_kill_is_as_pinned() {
    let mut wrong = Vec::new();
    for Ran { kill, explored, .. } in runs() {
        let codes = codes(kill);
        let Some(found) = explored.broken.first() else {
            wrong.push(format!("{codes}: nothing breaks in {} states", explored.states));
            continue;
        };
        let (property, steps) = (&found.broken.property, found.trace.lines.len());
        if property.split(' ').next() != Some(kill.property) || steps != kill.steps {
            wrong.push(format!(
                "{codes}: {property} in {steps} steps, not {} in {}",
                kill.property, kill.steps
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_guard_is_killed_and_every_redundant_one_with_its_group() {
    let kills = kills();
    let missing: Vec<&str> = Guard::ALL
        .iter()
        .filter(|guard| match guard.kind() {
            GuardKind::Rule => !kills.iter().any(|k| k.guards == [**guard]),
            GuardKind::Redundant => !kills.iter().any(|k| k.guards.contains(guard)),
            GuardKind::Validation => false,
        })
        .map(|g| g.code())
        .collect();
    assert!(missing.is_empty(), "{} not killed: {}", missing.len(), missing.join(", "));
}
