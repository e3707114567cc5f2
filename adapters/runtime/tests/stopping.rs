//! Stopping real processes that do not want to end, and leaving alone everybody else's (C-6, C-7,
//! T-5, W-31).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::cell::Cell;
use std::time::Duration;

use freehold_kernel::Liveness;
use freehold_runtime::LocalRuntimes;
use freehold_store::Runtimes;
use rustix::process::Signal;
use support::*;

/// Stops it, with a count of the pulses.
fn stop(runtimes: &LocalRuntimes, agent: &Agent) -> (Liveness, u32) {
    let pulses = Cell::new(0);
    let answer = runtimes.stop(&agent.handle(), BOUND, &mut || pulses.set(pulses.get() + 1));
    (answer, pulses.get())
}

#[test]
fn one_that_is_asked_ends_in_its_own_way() {
    let ground = Ground::new();
    let runtimes = LocalRuntimes::new();
    let script =
        "trap 'echo > heard; exit 3' TERM; echo ready; while :; do sleep 1000 & wait; done";
    let mut agent = ground.run(&runtimes, script);
    assert_eq!(agent.hear(), "ready");
    assert_eq!(runtimes.liveness(&agent.handle()), Liveness::Alive);
    assert_eq!(stop(&runtimes, &agent).0, Liveness::Dead);
    assert!(ground.path.join("heard").exists(), "it was killed without being asked");
    assert_eq!(state(agent.running.pid), None, "something is left of it");
    assert_eq!(runtimes.liveness(&agent.handle()), Liveness::Dead);
    // Again, and again: dead is dead.
    assert_eq!(stop(&runtimes, &agent).0, Liveness::Dead);
}

#[test]
fn one_that_is_halted_hears_it_too() {
    let ground = Ground::new();
    let runtimes = LocalRuntimes::new();
    let script = "trap 'echo > heard; exit' TERM; echo ready; while :; do sleep 1000 & wait; done";
    let mut agent = ground.run(&runtimes, script);
    assert_eq!(agent.hear(), "ready");
    signal(agent.running.pid, Signal::STOP);
    until("it is halted", || state(agent.running.pid) == Some('T'));
    assert_eq!(runtimes.liveness(&agent.handle()), Liveness::Alive);
    assert_eq!(stop(&runtimes, &agent).0, Liveness::Dead);
    assert!(ground.path.join("heard").exists(), "it was killed without being asked");
}

#[test]
fn one_that_does_not_listen_is_killed_with_everybody_it_started() {
    let ground = Ground::new();
    let runtimes = impatient();
    // A child; one with a group of its own, as job control makes them; a grandchild whose parent
    // has ended; one that left the session; one that left it and whose parent has ended.
    let script = "trap '' TERM
        sleep 1000 & echo $!
        timeout 1000 sleep 1000 & echo $!
        (sleep 1000 & echo $!)
        setsid sleep 1000 & echo $!
        setsid sh -c 'sleep 1000 & echo $!'
        echo ready; wait; sleep 1000";
    let mut agent = ground.run(&runtimes, script);
    let pids: Vec<u32> = (0..5).map(|_| agent.hear_pid()).collect();
    assert_eq!(agent.hear(), "ready");
    let own = agent.running.pid.to_string();
    // They are what they are said to be: groups, then sessions.
    until("they have left", || fields(pids[1])[2] != own && fields(pids[3])[3] != own);
    let groups: Vec<bool> = pids.iter().map(|p| fields(*p)[2] == own).collect();
    assert_eq!(groups, [true, false, true, false, false]);
    let sessions: Vec<bool> = pids.iter().map(|p| fields(*p)[3] == own).collect();
    assert_eq!(sessions, [true, true, true, false, false]);
    let (answer, pulses) = stop(&runtimes, &agent);
    assert_eq!(answer, Liveness::Dead);
    let left: Vec<u32> = pids.iter().copied().filter(|p| lives(*p)).collect();
    assert_eq!(left, [0u32; 0]);
    assert_eq!(state(agent.running.pid), None, "something is left of it");
    assert!(pulses < 1000, "the pulse is no busy loop");
}

#[test]
fn the_lease_is_kept_while_it_is_waited_for() {
    let ground = Ground::new();
    let runtimes = LocalRuntimes::new().with_grace(Duration::from_secs(2));
    let mut agent = ground.run(&runtimes, "trap '' TERM; echo ready; while :; do sleep 1; done");
    assert_eq!(agent.hear(), "ready");
    let (answer, pulses) = stop(&runtimes, &agent);
    assert_eq!(answer, Liveness::Dead);
    assert!(pulses >= 2, "only {pulses} pulses in two seconds");
}

#[test]
fn several_are_stopped_within_one_bound_and_each_is_answered_for() {
    let ground = Ground::new();
    let runtimes = impatient();
    let deaf = "trap '' TERM; echo ready; while :; do sleep 1; done";
    let mut agents: Vec<Agent> = (0..4).map(|_| ground.run(&runtimes, deaf)).collect();
    for agent in &mut agents {
        assert_eq!(agent.hear(), "ready");
    }
    let mut handles: Vec<_> = agents.iter().map(Agent::handle).collect();
    handles[1].texts.clear();
    let answers = runtimes.stop_all(&handles, BOUND, &mut || {});
    let dead = Liveness::Dead;
    assert_eq!(answers, [dead, Liveness::Unknown, dead, dead]);
    let alive: Vec<bool> = agents.iter().map(|a| lives(a.running.pid)).collect();
    assert_eq!(alive, [false, true, false, false]);
    assert_eq!(stop(&runtimes, &agents[1]).0, Liveness::Dead);
}

#[test]
fn a_bound_that_is_too_short_leaves_it_alive_and_says_so() {
    let ground = Ground::new();
    let runtimes = LocalRuntimes::new();
    let mut agent = ground.run(&runtimes, "trap '' TERM; echo ready; while :; do sleep 1; done");
    assert_eq!(agent.hear(), "ready");
    let answer = runtimes.stop(&agent.handle(), Duration::from_micros(1), &mut || {});
    assert_eq!(answer, Liveness::Alive);
    assert!(lives(agent.running.pid));
    assert_eq!(stop(&impatient(), &agent).0, Liveness::Dead);
}

#[test]
fn a_first_process_that_ended_leaves_others_and_they_are_stopped() {
    let ground = Ground::new();
    let runtimes = impatient();
    let mut agent = ground.run(&runtimes, "trap '' TERM; sleep 1000 & echo $!");
    let left = agent.hear_pid();
    until("it ended", || agent.running.ended().is_some());
    assert_eq!(state(agent.running.pid), None);
    let (answer, words) = runtimes.explain(&agent.handle());
    assert_eq!(answer, Liveness::Alive, "{words}");
    assert!(words.contains(&left.to_string()), "{words}");
    assert_eq!(stop(&runtimes, &agent).0, Liveness::Dead);
    assert!(!lives(left));
}

#[test]
fn who_cleared_his_environment_is_found_by_the_session() {
    let ground = Ground::new();
    let runtimes = impatient();
    let script = "trap '' TERM; env -i timeout 1000 sleep 1000 & echo $!; echo ready; wait";
    let mut agent = ground.run(&runtimes, script);
    let scrubbed = agent.hear_pid();
    assert_eq!(agent.hear(), "ready");
    // It has a group of its own, too.
    until("it is scrubbed", || {
        std::fs::read(format!("/proc/{scrubbed}/environ")).unwrap().is_empty()
            && fields(scrubbed)[2] == scrubbed.to_string()
    });
    assert_eq!(stop(&runtimes, &agent).0, Liveness::Dead);
    assert!(!lives(scrubbed));
}

#[test]
fn a_session_that_nobody_proves_is_unknown_and_left_alone() {
    let ground = Ground::new();
    let runtimes = impatient();
    let mut agent = ground.run(&runtimes, "env -i /bin/sleep 1000 & echo $!");
    let scrubbed = agent.hear_pid();
    until("it ended", || agent.running.ended().is_some());
    until("it is scrubbed", || {
        std::fs::read(format!("/proc/{scrubbed}/environ")).unwrap().is_empty()
            && std::fs::read_link(format!("/proc/{scrubbed}/exe")).unwrap().ends_with("sleep")
    });
    assert_eq!(runtimes.liveness(&agent.handle()), Liveness::Unknown);
    assert_eq!(stop(&runtimes, &agent).0, Liveness::Unknown);
    assert!(lives(scrubbed), "killed without proof");
    end(scrubbed);
    until("it is gone", || !lives(scrubbed));
    assert_eq!(runtimes.liveness(&agent.handle()), Liveness::Dead);
}

/// The limit of what is found, as the crate says.
#[test]
fn who_cleared_his_environment_and_left_the_session_is_not_found() {
    let ground = Ground::new();
    let runtimes = impatient();
    let mut agent = ground.run(&runtimes, "setsid env -i /bin/sleep 1000 & echo $!; wait");
    let escaped = agent.hear_pid();
    let own = agent.running.pid.to_string();
    until("it is scrubbed and has left", || {
        std::fs::read_link(format!("/proc/{escaped}/exe")).unwrap().ends_with("sleep")
            && fields(escaped)[3] != own
    });
    assert_eq!(stop(&runtimes, &agent).0, Liveness::Dead);
    assert!(lives(escaped));
    end(escaped);
}

#[test]
fn those_that_are_born_while_they_are_killed_are_killed() {
    let ground = Ground::new();
    let runtimes = impatient();
    // Each starts the next and ends: whoever is looked at is gone already.
    let script = "trap '' TERM; hop() { hop & }
        for n in 1 2 3 4; do hop; done; echo ready; while :; do sleep 1; done";
    let mut agent = ground.run(&runtimes, script);
    assert_eq!(agent.hear(), "ready");
    let own = agent.running.pid.to_string();
    assert_eq!(stop(&runtimes, &agent).0, Liveness::Dead);
    let left: Vec<_> =
        everybody().into_iter().filter(|(pid, fields)| fields[3] == own && lives(*pid)).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_escaped_one_that_starts_others_is_killed_with_them() {
    let ground = Ground::new();
    let runtimes = impatient();
    let script = "trap '' TERM; export OWN=\"$$\"
        setsid sh -c 'echo $$; while :; do sleep 0.01 & sleep 0.01; done' & wait";
    let mut agent = ground.run(&runtimes, script);
    let escaped = agent.hear_pid();
    assert_eq!(stop(&runtimes, &agent).0, Liveness::Dead);
    assert!(!lives(escaped));
    let session = escaped.to_string();
    let left: Vec<_> = everybody()
        .into_iter()
        .filter(|(pid, fields)| fields[3] == session && lives(*pid))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

fn everybody() -> Vec<(u32, Vec<String>)> {
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        entry.unwrap().file_name().to_str().and_then(|name| name.parse::<u32>().ok())
    });
    pids.filter_map(|pid| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields = text.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect();
        Some((pid, fields))
    })
    .collect()
}

#[test]
fn two_that_stop_it_at_once_both_prove_it() {
    let ground = Ground::new();
    let runtimes = impatient();
    let script = "trap '' TERM; sleep 1000 & echo $!; while :; do sleep 1; done";
    let mut agent = ground.run(&runtimes, script);
    let child = agent.hear_pid();
    let handle = agent.handle();
    // One of them is another instance's, which is not its parent.
    let others = impatient();
    let answers: Vec<Liveness> = std::thread::scope(|scope| {
        let stops: Vec<_> = [&runtimes, &runtimes, &others]
            .map(|r| scope.spawn(|| r.stop(&handle, BOUND, &mut || {})))
            .into_iter()
            .collect();
        stops.into_iter().map(|s| s.join().unwrap()).collect()
    });
    assert_eq!(answers, [Liveness::Dead; 3]);
    assert!(!lives(child));
    runtimes.tend();
    assert_eq!(state(agent.running.pid), None, "something is left of it");
}

#[test]
fn one_whose_parent_never_asks_is_dead_all_the_same() {
    let ground = Ground::new();
    let runtimes = LocalRuntimes::new();
    let agent = ground.run(&runtimes, "exit 0");
    until("it ended", || state(agent.running.pid) == Some('Z'));
    assert_eq!(LocalRuntimes::new().liveness(&agent.handle()), Liveness::Dead);
    assert_eq!(stop(&LocalRuntimes::new(), &agent).0, Liveness::Dead);
    assert_eq!(state(agent.running.pid), Some('Z'));
    runtimes.tend();
    assert_eq!(state(agent.running.pid), None);
}
