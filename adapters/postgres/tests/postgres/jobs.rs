//! Durable jobs on PostgreSQL, with two instances and the statements of one held between those of
//! the other.

use freehold_kernel::{
    CleanupCommand, Command, Guard, JobId, JobRootId, JobState, OperatorCommand, Reply, Settings,
    Span, TableId, Token,
};
use freehold_postgres::PostgresStore;
use freehold_store::{Pick, Read, Store};

use crate::host::{done, say, submit};
use crate::proxy::Proxy;

use crate::work::*;

#[test]
fn f35_a_rescuer_that_acts_on_an_old_read_decides_again() {
    let (place, store) = begun();
    let root = part(&store, 1).id;
    claims(&store, root, 10);
    place.clock.advance(LAPSED);
    let proxy = Proxy::start();
    let rescuer = slow(&place, &proxy);
    // It has read that the claim has lapsed, and decided; its commit is held.
    let held = proxy.hold(1);
    std::thread::scope(|scope| {
        // If anything here fails, the request goes on.
        let mut held = held;
        let late = scope.spawn(|| submit(&rescuer, &say(|_| rescue(root, 10))));
        held.wait();
        // Meanwhile another rescues, claims again, and finishes.
        done(&store, &say(|_| rescue(root, 10)));
        let due = part(&store, 1).next_attempt_at;
        if let Some(due) = due {
            let span = due - place.clock.now();
            place.clock.advance(span);
        }
        claims(&store, root, 11);
        settle(&store, root, 11);
        assert_eq!(part(&store, 1).state, JobState::Succeeded);
        held.go();
        let answer = late.join().unwrap().unwrap().accepted();
        assert!(answer.is_err(), "{answer:?}");
    });
    assert_eq!(rescuer.metrics().decided_again, 1);
    assert_eq!(part(&store, 1).state, JobState::Succeeded);
}

#[test]
fn f35_an_old_rescue_does_not_touch_a_second_attempt() {
    let (place, store) = begun();
    let root = part(&store, 1).id;
    claims(&store, root, 10);
    place.clock.advance(LAPSED);
    done(&store, &say(|_| rescue(root, 10)));
    if let Some(due) = part(&store, 1).next_attempt_at {
        let span = due - place.clock.now();
        place.clock.advance(span);
    }
    claims(&store, root, 11);
    // It saw the first claim's token.
    refused_by(&store, rescue(root, 10));
    let now = part(&store, 1);
    assert_eq!((now.state, now.token), (JobState::Running, Some(Token(own(11)))));
    // That one has lapsed too by now: it is for whoever saw its own token.
    place.clock.advance(LAPSED);
    assert_eq!(refused_by(&store, rescue(root, 10)), Guard::RescueToken);
    assert_eq!(part(&store, 1), now);
}

#[test]
fn f36_a_claim_that_is_renewed_is_not_rescued_and_one_that_lapsed_does_not_go_on() {
    let (place, store) = begun();
    let root = part(&store, 1).id;
    claims(&store, root, 10);
    let other = place.open();
    // Long work: five times the lease, renewed.
    for _ in 0..10 {
        place.clock.advance(Span(Settings::DEFAULT.lease.0 / 2));
        let token = Token(own(10));
        done(&store, &say(|_| Command::Cleanup(CleanupCommand::Renew { job_root: root, token })));
        refused_by(&other, rescue(root, 10));
        let second = submit(&other, &say(|c| claim(c, root, 11, "process 2"))).unwrap();
        assert!(second.accepted().is_err());
    }
    // Its renewals are blocked: it stops before its next step, and another takes over.
    place.clock.advance(LAPSED);
    assert_eq!(refused_by(&store, finish(root, 10)), Guard::ClaimLease);
    done(&other, &say(|_| rescue(root, 10)));
    assert_ne!(part(&store, 1).token, Some(Token(own(10))));
}

#[test]
fn f36_a_renewal_and_a_rescue_at_once_end_as_one_of_them() {
    let (place, store) = begun();
    let root = part(&store, 1).id;
    claims(&store, root, 10);
    place.clock.advance(Span::seconds(1));
    let proxy = Proxy::start();
    let worker = slow(&place, &proxy);
    // The renewal was decided in time; before it commits, the lease lapses and is rescued.
    let held = proxy.hold(1);
    std::thread::scope(|scope| {
        // If anything here fails, the request goes on.
        let mut held = held;
        let token = Token(own(10));
        let renew = Command::Cleanup(CleanupCommand::Renew { job_root: root, token });
        let worker = &worker;
        let late = scope.spawn(move || submit(worker, &say(|_| renew)));
        held.wait();
        place.clock.advance(LAPSED);
        done(&store, &say(|_| rescue(root, 10)));
        held.go();
        assert!(late.join().unwrap().unwrap().accepted().is_err());
    });
    assert_eq!(worker.metrics().decided_again, 1);
    assert_ne!(part(&store, 1).state, JobState::Running);
}

#[test]
fn f38_a_crash_in_the_last_allowed_try_is_a_final_failure_that_blocks_nobody() {
    let (place, store) = begun();
    let settings = Settings { max_tries: 3, ..Settings::DEFAULT };
    done(&store, &say(|_| Command::Operator(OperatorCommand::ChangeSettings { settings })));
    let root = part(&store, 1).id;
    for n in 0..3 {
        if let Some(due) = part(&store, 1).next_attempt_at {
            let span = due - place.clock.now();
            place.clock.advance(span);
        }
        claims(&store, root, 10 + n);
        // The process dies in the middle.
        place.clock.advance(LAPSED);
        let again = place.open();
        done(&again, &say(|_| rescue(root, 10 + n)));
    }
    let failed = part(&store, 1);
    assert_eq!((failed.state, failed.tries), (JobState::Failed, 3));
    // Other jobs go on, and a person can have it tried again.
    instance(&store, "process 3");
    job_of(&store, "other", 2, "process 3");
    let other = part(&store, 2).id;
    claims(&store, other, 20);
    settle(&store, other, 20);
    let retry = OperatorCommand::Retry { job: JobId(own(1)) };
    done(&store, &say(|_| Command::Operator(retry)));
    claims(&store, root, 30);
    settle(&store, root, 30);
    assert_eq!(part(&store, 1).state, JobState::Succeeded);
}

#[test]
fn f40_what_this_build_cannot_read_is_parked_with_its_bytes_and_the_others_go_on() {
    let (place, store) = begun();
    job(&store, "future", 2);
    job(&store, "fine", 3);
    // One of a build of tomorrow, one whose snapshot has another form.
    let (one, two) =
        (freehold_store::names::uuid_text(own(1)), freehold_store::names::uuid_text(own(2)));
    place.sql(&format!(
        "UPDATE task_resource_cleanup_jobs SET \"trigger\" = 'a trigger of tomorrow', \
         snapshot = '{{\"broken' WHERE id = '{one}'; \
         UPDATE task_resource_cleanup_jobs SET snapshot_version = 99 WHERE id = '{two}'"
    ));
    let bytes = || {
        place.sql(
            "SELECT \"trigger\", snapshot, snapshot_version FROM task_resource_cleanup_jobs \
             ORDER BY id",
        )
    };
    let before = bytes();
    for n in [1, 2] {
        let root = part(&store, n).id;
        let claimed = submit(&store, &say(|c| claim(c, root, 10 + n, "process 1"))).unwrap();
        let reply = claimed.accepted().map(|a| a.reply);
        assert!(matches!(reply, Ok(Reply::Settled { .. })), "{reply:?}");
        assert_eq!(part(&store, n).state, JobState::Failed);
    }
    assert_eq!(bytes(), before);
    assert!(before.contains("a trigger of tomorrow"), "{before}");
    let fine = part(&store, 3).id;
    claims(&store, fine, 20);
    settle(&store, fine, 20);
    assert_eq!(part(&store, 3).state, JobState::Succeeded);
    // A row that cannot be read at all is named, and is not taken for absent.
    place.sql("ALTER TABLE worktree_attempts DROP CONSTRAINT worktree_attempts_state_check");
    place.sql(
        "INSERT INTO worktree_attempts (id, token, task_id, task_environment_id, repo_id, kind, \
         repository_id, branch_slug, root_id, path, branch, worktree_id, branch_existed, \
         start_commit, state, instance_id, lease_until, created_at, updated_at, version) \
         VALUES ('odd', 't', 't', 'e', 'x', 'create', 'r', 'a', 'root', 'p', 'b', 'i', 0, 'c', \
         'a state of tomorrow', 'i', 0, 0, 0, 1)",
    );
    let rows = pollster::block_on(store.read(&[Read::all(TableId::Attempts)])).unwrap();
    assert_eq!(rows.unreadable.len(), 1, "{:?}", rows.unreadable);
    assert_eq!(rows.unreadable[0].1, "odd");
}

#[test]
fn two_instances_pick_different_parts_and_a_pick_ends() {
    let (place, store) = begun();
    for n in 2..=6u128 {
        job(&store, &format!("t{n}"), n);
    }
    let other = place.open();
    let pick = |store: &PostgresStore, who: &str, limit, tried: &[JobRootId]| {
        let pick = Pick {
            instance: who.to_owned(),
            machine: "laptop".to_owned(),
            limit,
            hold: Span::seconds(60),
            tried: tried.to_vec(),
        };
        let picked = pollster::block_on(store.pick(&pick)).unwrap();
        picked.iter().map(|part| part.id).collect::<Vec<_>>()
    };
    let first = pick(&store, "process 1", 3, &[]);
    let second = pick(&other, "process 2", 10, &[]);
    assert_eq!((first.len(), second.len()), (3, 3));
    assert!(first.iter().all(|part| !second.contains(part)));
    // Its own stay its own.
    assert_eq!(pick(&store, "process 1", 10, &[]), first);
    // What it tried is given back, and is for others; for itself it is not, in this run.
    assert_eq!(pick(&store, "process 1", 10, &first[..1]), first[1..]);
    assert_eq!(pick(&other, "process 2", 1, &second), first[..1]);
    assert_eq!(pick(&other, "process 2", 0, &[&second[..], &first[..1]].concat()), []);
    // A row that is just being changed is passed over.
    let beside = place.beside();
    beside.run(&format!(
        "BEGIN; SELECT 1 FROM task_resource_cleanup_roots WHERE id = '{}' FOR UPDATE",
        freehold_store::names::uuid_text(first[1].0)
    ));
    assert!(!pick(&store, "process 1", 10, &[]).contains(&first[1]));
    beside.run("COMMIT");
    // What was claimed is due no more; what was only picked is free again after a while.
    claims(&store, first[0], 10);
    place.clock.advance(Span::seconds(61));
    let rest = pick(&other, "process 2", 10, &[]);
    assert_eq!(rest.len(), 5);
    assert!(!rest.contains(&first[0]));
    // Picks that ended are not kept for ever.
    place.clock.advance(Span::seconds(61));
    assert_eq!(pick(&other, "process 2", 10, &rest), []);
    assert_eq!(place.sql("SELECT count(*) FROM picks"), "0");
    // What lies in a root of another host is not for this one.
    place.sql(
        "INSERT INTO managed_roots VALUES ('far', 'another host', '/far', 0, NULL, 1); \
         UPDATE task_resource_cleanup_roots SET root_id = 'far'",
    );
    assert!(pick(&other, "process 2", 10, &[]).is_empty());
}

/// A newer build beside this one may read it, and has it to itself.
#[test]
fn c10_a_part_that_cannot_be_read_is_kept_from_nobody() {
    let (place, store) = begun();
    place.clock.advance(Span::seconds(1));
    job(&store, "second", 2);
    let (first, second) = (part(&store, 1).id, part(&store, 2).id);
    let tries = |tries: i64| {
        place.sql(&format!(
            "UPDATE task_resource_cleanup_roots SET tries = {tries} WHERE id = '{}'",
            freehold_store::names::uuid_text(first.0)
        ));
    };
    let pick = |who: &str| {
        let pick = Pick {
            instance: who.to_owned(),
            machine: "laptop".to_owned(),
            limit: 1,
            hold: Span::seconds(60),
            tried: Vec::new(),
        };
        let picked = pollster::block_on(store.pick(&pick)).unwrap();
        picked.iter().map(|part| part.id).collect::<Vec<_>>()
    };
    tries(-1);
    assert_eq!(pick("process 1"), [second]);
    let held = place.sql("SELECT job_root_id FROM picks");
    assert_eq!(held, freehold_store::names::uuid_text(second.0));
    // As it is for those who can read it.
    tries(0);
    assert_eq!(pick("process 2"), [first]);
}
