//! The kernel's model of the Promela twin reaches the states that SPIN reaches, finds what SPIN
//! finds, and remembers only what the kernel said.

use std::collections::BTreeSet;

use freehold_kernel::Guard;
use freehold_model_check::twin::Twin;
use freehold_model_check::twin::spin::Pan;
use freehold_model_check::{Limits, Model, To, explore};

/// The safety searches that issue and note speak of.
const SAFETY: &[&str] = &["-O1", "-DSAFETY", "-DNOREDUCE"];
const LIVENESS: &[&str] = &["-O2", "-DNOREDUCE", "-DNFAIR=3"];

fn twin(sessions: u8, crashes: u8, slow: u8) -> Twin {
    Twin::new(sessions, crashes, slow).expect("a size in range")
}

fn pan(definitions: &[&str], flags: &[&str]) -> Pan {
    Pan::make(definitions, flags).unwrap_or_else(|why| panic!("{why}"))
}

/// Every reachable state.
fn states(twin: &Twin) -> Vec<u64> {
    let (mut known, mut out) = (BTreeSet::from([twin.initial()]), Vec::new());
    let mut all = vec![twin.initial()];
    let mut at = 0;
    while let Some(state) = all.get(at).copied() {
        out.clear();
        twin.edges(state, &mut out);
        for to in &out {
            match to {
                To::State(next) => {
                    if known.insert(*next) {
                        all.push(*next);
                    }
                }
                To::Broken(number) => panic!("{:?}", twin.broken(*number)),
            }
        }
        at += 1;
    }
    all
}

#[test]
fn the_same_states_as_spin() {
    let pan = pan(&["NS=2", "CRASHES=0", "SLOW=0", "PRINT"], SAFETY);
    let said = pan.run(&["-E", "-m100000"]).expect("spin's search");
    assert_eq!(said.errors, 0, "{}", said.text);
    let theirs: BTreeSet<&str> = said.text.lines().filter(|l| l.starts_with("= ")).collect();
    let twin = twin(2, 0, 0);
    let lines: Vec<String> = states(&twin).into_iter().map(|s| twin.line(s)).collect();
    let ours: BTreeSet<&str> = lines.iter().map(String::as_str).collect();
    let missing: Vec<&&str> = theirs.difference(&ours).take(3).collect();
    let more: Vec<&&str> = ours.difference(&theirs).take(3).collect();
    assert!(missing.is_empty() && more.is_empty(), "only SPIN: {missing:?}, only we: {more:?}");
    assert_eq!(ours.len(), 103_800);
}

#[test]
fn as_many_states_and_edges_as_spin() {
    let pan = pan(&["NS=2", "CRASHES=1", "SLOW=1"], &["-O2", "-DSAFETY", "-DNOREDUCE"]);
    let said = pan.run(&["-E", "-m100000", "-w22"]).expect("spin's search");
    let ours = explore(&twin(2, 1, 1), Limits { rest: false, ..Limits::default() });
    assert!(ours.exhaustive() && said.errors == 0, "{:?} {}", ours.cut, said.text);
    assert_eq!((ours.states as u64, ours.edges as u64 + 1), (said.states, said.transitions));
    assert_eq!((ours.states, ours.edges), (1_427_828, 6_598_407));
}

#[test]
fn everything_comes_to_rest_and_every_circumstance_is_met() {
    let explored = explore(&twin(2, 1, 1), Limits::default());
    assert!(explored.broken.is_empty(), "{:?}", explored.broken);
    assert!(explored.stuck.is_none(), "stuck: {:?}", explored.stuck);
    assert!(explored.passed(), "never seen: {:?}", explored.unseen());
}

/// W-3: a persist that does not look at the barrier is caught on both sides.
#[test]
fn a_persist_that_ignores_the_barrier_is_found() {
    let pan = pan(&["NS=2", "BUG_PERSIST_IGNORES_BARRIER"], SAFETY);
    let said = pan.run(&["-E", "-m100000", "-w20"]).expect("spin's search");
    assert!(said.errors > 0 && said.text.contains("assertion violated"), "{}", said.text);
    let explored = explore(&twin(2, 1, 1).without(&[Guard::PersistUnbarred]), Limits::default());
    let found = explored.broken.first().expect("our search finds it");
    assert_eq!(found.broken.property, "P-6 BarrierOrdersCreation", "{found:?}");
    let last = found.trace.lines.last().expect("a step");
    assert_eq!((last.who.as_str(), found.trace.lines.len()), ("the maker", 6), "{}", found.trace);
}

/// P-40, P-41, P-42 and P-46 hold under weak fairness, and each needs its recovery.
#[test]
fn liveness_needs_every_recovery() {
    // The owner's sessions are in nobody's way here; the borrower's is.
    let size = ["NS=1", "CRASHES=1", "SLOW=1", "ACTORS"];
    let search = |pan: &Pan, row| {
        let arguments = ["-a", "-f", "-N", row, "-m1000000", "-w22"];
        pan.run(&arguments).unwrap_or_else(|why| panic!("{row}: {why}"))
    };
    let whole = pan(&size, LIVENESS);
    for (row, recovery) in [
        ("P40", "NO_RESCUE"),
        ("P41", "NO_BARRIER_RECOVERY"),
        ("P42", "NO_ATTEMPT_RECOVERY"),
        ("P46", "NO_TAKE_OVER"),
    ] {
        let said = search(&whole, row);
        assert_eq!(said.errors, 0, "{row}: {}", said.text);
        let without = [&size[..], &[recovery]].concat();
        let said = search(&pan(&without, LIVENESS), row);
        assert!(said.errors > 0 && said.text.contains("acceptance cycle"), "{row}: {}", said.text);
    }
}

/// The masks are wide enough, and the variables stand for just the kernel's rows.
#[test]
fn what_is_remembered_is_what_the_kernel_says() {
    let small = twin(2, 0, 0);
    for state in states(&small) {
        small.verify(state).expect("the kernel's word on all rows");
    }
    // Crashes and slow owners are in no row; their masks are looked at here.
    let larger = twin(2, 1, 1);
    for state in states(&larger).into_iter().step_by(397) {
        larger.verify(state).expect("the kernel's word on all rows");
    }
}

#[test]
fn sizes_out_of_range_are_refused_with_the_range() {
    for (sessions, crashes, slow) in [(1, 0, 0), (5, 0, 0), (2, 4, 0), (2, 0, 4)] {
        let why = Twin::new(sessions, crashes, slow).expect_err("out of range");
        assert!(why.contains("2 to 4 sessions"), "{why}");
    }
}
