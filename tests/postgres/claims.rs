//! Several instances, many due jobs (C-3, A-11): what picks are for.

use std::sync::Barrier;

use freehold_git::GitWorkspaces;
use freehold_kernel::*;
use freehold_store::{Clock, Host, OnThisThread, Operation};

#[path = "../support/mod.rs"]
mod support;

use support::*;

const INSTANCES: usize = 4;
const JOBS: usize = 4 * INSTANCES;

/// All instances tick once, at the same time: how many parts were claimed, and how many claims
/// were refused.
fn at_once(divides: bool) -> (u32, u32) {
    let ground = Ground::on(StorePlace::fresh, Clock::manual(Time(1_700_000_000_000_000)));
    let host = ground.host();
    workspace(&host, "w");
    for n in 0..JOBS {
        let (t, e) = (format!("t{n}"), format!("e{n}"));
        task(&host, &t).unwrap();
        host.ask(&ann(), None, |c| {
            Ok(Command::Task(TaskCommand::CreateEnvironment {
                environment: c.id(&e)?,
                task: c.id(&t)?,
                container: Some(c.id(&format!("box {n}"))?),
                sandbox: None,
            }))
        })
        .unwrap();
        host.archive_task(&ann(), &t, &Operation::new(&format!("o{n}"))).unwrap();
    }
    let all = Barrier::new(INSTANCES);
    let ticked = std::thread::scope(|scope| {
        let instances: Vec<_> = (0..INSTANCES)
            .map(|_| {
                let inner = ground.store.open(&ground.clock);
                let store = Meeting::new(inner, divides, &all);
                let runtimes = Box::new(Told::new(Liveness::Dead));
                let git = GitWorkspaces::new();
                scope.spawn(move || {
                    let mut host =
                        Host::start(store, git, OnThisThread, runtimes, "test-machine").unwrap();
                    let began = std::time::Instant::now();
                    host.paced_by(move || began);
                    host.tick().unwrap()
                })
            })
            .collect();
        instances.into_iter().map(|i| i.join().unwrap()).collect::<Vec<_>>()
    });
    let troubles: Vec<&String> = ticked.iter().flat_map(|t| &t.troubles).collect();
    assert!(troubles.is_empty(), "{troubles:?}");
    assert!(jobs(&host).iter().all(|(_, state)| *state == JobState::Succeeded), "{ticked:?}");
    (ticked.iter().map(|t| t.claimed).sum(), ticked.iter().map(|t| t.lost).sum())
}

#[test]
fn instances_divide_what_is_due_among_them() {
    let (claimed, lost) = at_once(true);
    println!("{INSTANCES} instances, {JOBS} jobs: {lost} claims lost");
    assert_eq!((claimed as usize, lost), (JOBS, 0));
    // And this is what picks are for: told the same, all but one of them come too late.
    let (claimed, lost) = at_once(false);
    println!("without picks: {lost} claims lost");
    assert_eq!(claimed as usize, JOBS);
    assert!(lost as usize >= 4 * (INSTANCES - 1), "only {lost} lost");
}
