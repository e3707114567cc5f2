//! Retries and dead ends (F26, F27, F36).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use freehold_git::GitWorkspaces;
use freehold_kernel::*;
use freehold_store::{NoRuntimes, Operation, Ticked};
use support::Hooked;
use support::steps::*;
use support::*;

#[test]
fn f26_what_is_gone_already_succeeds_on_the_first_try() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    let mut operation = Operation::new("o");
    operation.branches = BranchPolicy::DeleteWhenReached;
    host.delete_task(&ann(), "t", &operation).unwrap();
    // By hand: folder, registration, branch.
    let path = made.place.path.to_str().unwrap();
    ground.git(&["worktree", "remove", "--force", "--force", path]);
    ground.git(&["branch", "--quiet", "--delete", "--force", "b"]);
    host.tick().unwrap();
    assert_eq!(job_states(&host, "o")[0].1, JobState::Succeeded);
    assert_eq!(tries_of(&host, "o"), vec![1]);
    assert_eq!(results_of(&host, "o"), vec![(ResourceResult::Absent, Reason::None)]);
    assert_eq!(outcomes(&host), vec![Some(RemovalOutcome::Absent)]);
    assert!(removal_details(&host).concat().contains("Absent"), "the branch is not told apart");
}

#[test]
fn f26_tries_are_capped_with_growing_waits_and_a_retry_by_hand_works() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    host.delete_task(&ann(), "t", &Operation::new("o")).unwrap();
    let broken = ground.host_on(
        Hooked::new(GitWorkspaces::new(), |point, call| {
            let fails = call == "salvaged" && point % 2 == 0;
            if fails { Act::Fail(Reason::Io) } else { Act::Go }
        }),
        Box::new(NoRuntimes),
    );
    let mut waits = Vec::new();
    for n in 1..=8u32 {
        broken.tick().unwrap();
        assert_eq!(tries_of(&host, "o"), vec![n]);
        let rows = rows(&host, &[TableId::JobRoots]);
        let part = rows.view.job_roots.iter().find(|p| p.root_id.is_some()).copied().unwrap();
        let Some(next) = part.next_attempt_at else {
            assert_eq!((n, part.state), (8, JobState::Failed));
            continue;
        };
        let wait = Span(next.0 - rows.view.now.0);
        // Not earlier: a tick just before it claims nothing.
        ground.lapse(Span(wait.0 - 1));
        broken.tick().unwrap();
        assert_eq!(tries_of(&host, "o"), vec![n], "tried before its time");
        ground.lapse(Span(1));
        waits.push(wait.0 / Span::minutes(1).0);
    }
    assert_eq!(waits, vec![1, 5, 15, 60, 180, 360, 720]);
    ground.lapse(Span::hours(24 * 6));
    broken.tick().unwrap();
    assert_eq!(tries_of(&host, "o"), vec![8], "an exhausted job was tried again");
    assert_eq!(jobs(&host), vec![(Trigger::Delete, JobState::Failed)]);
    assert!(is_marked(&made.place.path));
    drop(broken);
    retry(&host);
    quiet(&ground, &host);
    assert_eq!(jobs(&host), vec![(Trigger::Delete, JobState::Succeeded)]);
    assert!(salvage_holds(&ground, "marker\n"));
}

fn retry(host: &TestHost) {
    let rows = rows(host, &[TableId::Jobs]);
    let job = rows.view.jobs.iter().next().unwrap().id;
    host.ask(&ann(), None, |c| {
        c.know(&rows.names);
        Ok(Command::Operator(OperatorCommand::Retry { job }))
    })
    .unwrap();
}

#[test]
fn f27_a_folder_that_was_deleted_by_hand_blocks_neither_archive_nor_delete() {
    for policy in [UnsavedPolicy::Salvage, UnsavedPolicy::Refuse] {
        for delete in [false, true] {
            let ground = Ground::new();
            let host = ground.host();
            let (root, gone) = settled(&ground, &host);
            let whole = host.make_worktree(&ann(), &wanted(&ground, &root, "e", "b2")).unwrap();
            std::fs::remove_dir_all(&gone.place.path).unwrap();
            let operation = Operation::new("o").with_policy(policy, Unsaved::NONE);
            let done = if delete {
                host.delete_task(&ann(), "t", &operation)
            } else {
                host.archive_task(&ann(), "t", &operation)
            };
            done.unwrap();
            work(&host);
            assert_eq!(job_states(&host, "o")[0].1, JobState::Succeeded);
            assert_eq!(tries_of(&host, "o"), vec![1]);
            assert!(!whole.place.path.exists());
            assert_eq!(ground.registered(), Vec::<std::path::PathBuf>::new());
            assert_eq!(results_of(&host, "o").len(), 2);
        }
    }
}

#[test]
fn f36_an_inspection_longer_than_the_lease_keeps_the_claim() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    host.delete_task(&ann(), "t", &Operation::new("o")).unwrap();

    let (other, began) = (ground.host(), Instant::now());
    let passed = Arc::new(AtomicU64::new(0));
    let told = passed.clone();
    // A huge tree: every look takes five leases, and another instance looks for what lapsed.
    let slow = Hooked::new(GitWorkspaces::new(), |_, _| Act::Go).looking(|pulse| {
        for _ in 0..10 {
            ground.lapse(Span::seconds(15));
            passed.fetch_add(15, Ordering::SeqCst);
            assert!(pulse(), "the claim was lost");
            assert_eq!(other.tick().unwrap(), Ticked::default());
        }
    });
    let mut slow = ground.host_on(slow, Box::new(NoRuntimes));
    slow.paced_by(move || began + Duration::from_secs(told.load(Ordering::SeqCst)));
    slow.tick().unwrap();
    assert_eq!(job_states(&host, "o")[0].1, JobState::Succeeded);
    assert_eq!(tries_of(&host, "o"), vec![1]);
    assert_eq!(outcomes(&host), vec![Some(RemovalOutcome::Removed)]);
}
