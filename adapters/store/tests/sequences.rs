//! Random command sequences on the in-memory store: every property after every command, the naive
//! oracle, refusals that change nothing, footprints that are complete, and goals that are reached.

#![allow(clippy::unwrap_used)]

use freehold_kernel::*;
use freehold_testkit::driver::Driver;
use std::cell::RefCell;
use std::collections::BTreeMap;

use freehold_testkit::driver::op::{Op, PHYSICAL, WEIGHTS};
use freehold_testkit::driver::random::{memory, number, run, runner, sequence, sequence_of};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestCaseError;

fn check(strategy: impl Strategy<Value = Vec<Op>>, also: &[&str]) {
    let cases = number("FREEHOLD_CASES", 256);
    let seen = RefCell::new(BTreeMap::new());
    let result = runner(cases).run(&strategy, |ops| {
        let failed = |f: freehold_testkit::driver::Failure| TestCaseError::fail(f.to_string());
        let mut driver = Driver::new(memory()).map_err(failed)?;
        run(&mut driver, &ops).map_err(failed)?;
        for (key, n) in &driver.seen {
            *seen.borrow_mut().entry(*key).or_insert(0u32) += n;
        }
        Ok(())
    });
    if std::env::var("FREEHOLD_SEEN").is_ok() {
        for ((command, answer), n) in seen.borrow().iter() {
            println!("{n:8} {command} {answer}");
        }
    }
    if let Err(error) = result {
        panic!("{error}");
    }
    reaches_everything(&seen.borrow(), also);
}

/// Nothing is vacuous: the sequences reach what the properties are about.
fn reaches_everything(seen: &BTreeMap<(&'static str, &'static str), u32>, also: &[&str]) {
    let accepted = |command: &&str| seen.get(&(*command, "accepted")).is_some_and(|n| *n > 0);
    let wanted = [
        "session.create",
        "session.commit_close",
        "turn.submit",
        "turn.end",
        "turn.take_up",
        "operation.reserve",
        "operation.snapshot",
        "operation.mutate",
        "operation.abort",
        "task.unarchive",
        "attempt.persist",
        "attempt.recover",
        "attempt.compensate",
        "cleanup.claim",
        "cleanup.permit",
        "cleanup.finish",
        "cleanup.rescue",
        "removal.record_step",
        "removal.record_failure",
        "removal.take_over",
        "environment.transfer",
        "runtime.declare_stopped",
        "recovery.barrier",
        "recovery.closing",
        "recovery.turn",
    ];
    let wanted = wanted.iter().chain(also);
    let missed: Vec<&str> = wanted.copied().filter(|c| !accepted(c)).collect();
    assert!(missed.is_empty() || number("FREEHOLD_CASES", 256) < 256, "never accepted: {missed:?}");
}

#[test]
fn every_property_holds_after_every_command() {
    check(sequence(), &[]);
}

#[test]
fn every_property_holds_where_worktrees_are_made_and_removed() {
    check(sequence_of(PHYSICAL), &["trash.restore", "salvage.expire"]);
}

/// B-9: a cascade whose root nobody holds is not complete, for a store that reads a footprint as
/// for one that has the whole world (the driver compares the two).
#[test]
fn a_cascade_without_its_root_is_not_complete() {
    let mut driver = Driver::new(memory()).unwrap();
    let (root, child, grandchild) = (TaskId(0x22), TaskId(0x21), TaskId(0x23));
    driver
        .send(Command::Task(TaskCommand::Move { task: child, parent: Some(root) }))
        .unwrap()
        .verdict
        .unwrap();
    let (instance, operation) = (driver.instances[0].0, OperationId(0x5001));
    for (n, task) in [child, grandchild].into_iter().enumerate() {
        let reserve = OperationCommand::Reserve {
            operation,
            job: JobId(0x5002 + n as u128),
            task,
            trigger: Trigger::CascadeDelete,
            environment: None,
            cascade_root: Some(root),
            policy: UnsavedPolicy::Salvage,
            branch_policy: BranchPolicy::Keep,
            consent: Unsaved::NONE,
            unsaved: Unsaved::NONE,
            refuse_busy: false,
            instance,
            content: ContentHash(1),
        };
        driver.send(Command::Operation(reserve)).unwrap().verdict.unwrap();
    }
    let scope = Scope::Cascade;
    let snapshot = OperationCommand::Snapshot { operation, scope, instance };
    let answer = driver.send(Command::Operation(snapshot)).unwrap_or_else(|f| panic!("{f}"));
    assert_eq!(answer.verdict.unwrap_err().guard, Guard::CascadeComplete);
}

/// A hunt: every distinct failure of many sequences, each with its shortest way. Few by default:
/// `FREEHOLD_CASES=20000 cargo test --release -p freehold-store --test sequences hunt`.
#[test]
fn hunt() {
    let mut found = BTreeMap::<String, (usize, String, u32)>::new();
    let mut runner = runner(1);
    let physical = std::env::var("FREEHOLD_PHYSICAL").is_ok();
    let strategy = sequence_of(if physical { PHYSICAL } else { WEIGHTS });
    for _ in 0..number("FREEHOLD_CASES", 100) {
        let ops = strategy.new_tree(&mut runner).unwrap().current();
        let fails = |ops: &[Op]| {
            let tried = std::panic::catch_unwind(|| {
                let mut driver = Driver::new(memory())?;
                run(&mut driver, ops)
            });
            match tried {
                Ok(Ok(())) => None,
                Ok(Err(failure)) => Some((key(&failure.what), failure.to_string())),
                Err(_) => Some(("a panic".to_owned(), "a panic".to_owned())),
            }
        };
        let Some((name, _)) = fails(&ops) else { continue };
        let known = found.get(&name).map(|(n, _, times)| (*n, *times));
        if let Some((length, times)) = known
            && (times > 8 || length < 4)
        {
            found.get_mut(&name).unwrap().2 += 1;
            continue;
        }
        // Shrinks by leaving operations out and drawing smaller numbers.
        let mut best = ops.clone();
        let same = |ops: &[Op]| fails(ops).is_some_and(|(n, _)| n == name);
        let mut at = best.len();
        while at > 0 {
            at -= 1;
            let mut shorter = best.clone();
            shorter.remove(at);
            if same(&shorter) {
                best = shorter;
                at = at.min(best.len());
            }
        }
        for at in 0..best.len() {
            for bits in [0, best[at].bits % 64, best[at].bits % 4096, best[at].bits % (1 << 20)] {
                let mut smaller = best.clone();
                smaller[at].bits = bits;
                if bits < best[at].bits && same(&smaller) {
                    best = smaller;
                    break;
                }
            }
        }
        let text = fails(&best).map(|(_, text)| text).unwrap_or_default();
        let entry = found.entry(name).or_insert((usize::MAX, String::new(), 0));
        entry.2 += 1;
        if best.len() < entry.0 {
            (entry.0, entry.1) = (best.len(), text);
        }
    }
    for (name, (_, text, times)) in &found {
        println!("##### {times} x {name}\n{text}\n");
    }
    assert!(found.is_empty(), "{} distinct failures", found.len());
}

/// The failure without its ids.
fn key(what: &str) -> String {
    what.split(['[', '{']).next().unwrap_or_default().chars().take(90).collect()
}
