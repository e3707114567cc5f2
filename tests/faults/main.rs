//! A fault at every call to the disk and to git during a making, a removal, a restore and an expiry
//! (W-34, W-35, W-37, C-9): refused for want of health, space or permission, done and reported as
//! failed, the process dead before and after it, git killed before, while and after it works. Then
//! without faults: it converges, nothing is lost, nothing is left behind.
//!
//! Where nobody asks for more a part of them is drawn; `FREEHOLD_FAULTS=all` takes all of them,
//! `FREEHOLD_FAULTS=<n>` so many of each scene, `FREEHOLD_FAULTS_ONLY` those whose fault and call
//! have this in their text, `FREEHOLD_SEED` says which; the seed is printed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod kept;
mod plan;
mod scene;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use freehold_git::faults::CallKind;
use plan::{Fault, Plan};
use scene::{Scene, What, act_here};

/// Faults of a scene where nobody asks for more.
const DRAWN: usize = 24;

fn sweep(what: What) {
    let mut scene = Scene::new(what);
    let count = Arc::new(Plan::new(None));
    scene.begin();
    let came = scene.act(count.clone());
    came.as_ref().unwrap();
    scene.judge(Some(&came));
    let calls = count.log.lock().unwrap().clone();
    let mut cases = Vec::new();
    let only = std::env::var("FREEHOLD_FAULTS_ONLY").unwrap_or_default();
    for (n, (kind, call)) in calls.iter().enumerate() {
        let named = |fault: &&Fault| format!("{fault:?} {call}").contains(&only);
        cases.extend(Fault::of(*kind).iter().filter(named).map(|fault| (n + 1, *fault)));
    }
    let of = |kind: CallKind| calls.iter().filter(|(k, _)| *k == kind).count();
    let drawn = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = std::env::var("FREEHOLD_SEED")
        .map_or(usize::try_from(drawn.subsec_nanos()).unwrap(), |s| s.parse().unwrap());
    let most = match std::env::var("FREEHOLD_FAULTS").as_deref() {
        Ok("all") => usize::MAX,
        Ok(n) => n.parse().unwrap(),
        Err(_) => DRAWN,
    };
    // In equal strides: every part of the way is met, whichever the seed.
    let stride = cases.len().div_ceil(most).max(1);
    let chosen: Vec<_> = cases.iter().skip(seed % stride).step_by(stride).copied().collect();
    println!(
        "{what:?}: {} looks, {} changes, {} commands; {} faults, {} of them taken, seed {seed}",
        of(CallKind::Look),
        of(CallKind::Change),
        of(CallKind::Command),
        cases.len(),
        chosen.len(),
    );
    let mut wrong = Vec::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (at, fault) in chosen {
        scene.begin();
        let mut met = None;
        let judged = catch_unwind(AssertUnwindSafe(|| {
            if fault.is_death() {
                met = scene.act_apart(at, &fault.text());
                scene.judge(None);
            } else {
                let plan = Arc::new(Plan::new(Some((at, fault))));
                let came = scene.act(plan.clone());
                met = plan.met();
                scene.judge(Some(&came));
            }
        }));
        let met = met.unwrap_or_else(|| "nothing".to_owned());
        *counts.entry(fault.text()).or_default() += usize::from(met != "nothing");
        if let Err(why) = judged {
            let why = why.downcast_ref::<String>().cloned().unwrap_or_default();
            println!("WRONG {what:?} {at} {fault:?} at {met}: {why}");
            wrong.push(format!("{what:?} {at} {fault:?} at {met}"));
        }
    }
    println!("{what:?}: met {counts:?}");
    let met: usize = counts.values().sum();
    assert!(met > 0, "no fault was met");
    assert!(wrong.is_empty(), "{} of them went wrong: {wrong:#?}", wrong.len());
}

#[test]
fn x06_a_fault_at_every_call_of_a_making() {
    sweep(What::Make);
}

#[test]
fn x06_a_fault_at_every_call_of_a_making_on_a_branch_that_is_there() {
    sweep(What::MakeOnBranch);
}

#[test]
fn x06_a_fault_at_every_call_of_a_removal() {
    sweep(What::Remove);
}

#[test]
fn w34_a_fault_at_every_call_of_putting_salvage_back() {
    sweep(What::PutBack);
}

#[test]
fn w35_a_fault_at_every_call_of_taking_a_worktree_out_of_trash() {
    sweep(What::Untrash);
}

#[test]
fn w4_a_fault_at_every_call_of_putting_it_into_trash_again() {
    sweep(What::TrashAgain);
}

#[test]
fn w34_a_fault_at_every_call_of_an_expiry_and_its_collection() {
    sweep(What::Expire);
}

/// Not a test of its own: the process that dies.
#[test]
fn faults_the_other_process() {
    let Ok(fault) = std::env::var("FREEHOLD_FAULTS_FAULT") else { return };
    let at = std::env::var("FREEHOLD_FAULTS_AT").unwrap().parse().unwrap();
    act_here(Arc::new(Plan::new(Some((at, Fault::death(&fault))))));
    println!("\nFAULTS ended");
}
