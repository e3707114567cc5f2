//! Creation against cleanup (F29, F30, F32, F34).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use freehold_kernel::*;
use freehold_store::names::id_of;
use freehold_store::{Operation, Stands};
use support::steps::*;
use support::*;

/// Makes a second generation at the first one's path and on its branch, by hand.
fn second_generation(ground: &Ground, path: &Path) {
    let text = path.to_str().unwrap();
    ground.git(&["worktree", "remove", "--force", "--force", text]);
    ground.git(&["worktree", "add", "--quiet", text, "b"]);
    mark(path);
}

#[test]
fn f29_a_cleanup_that_was_paused_does_not_take_the_next_generation() {
    // Paused before it looks; after it looked; after the permission, before the rename.
    for (pause, side) in [("lock", 1), ("inspect", 1), ("renamed", 0)] {
        let ground = Ground::new();
        let host = ground.host();
        let (root, made) = settled(&ground, &host);
        host.delete_task(&ann(), "t", &Operation::new("o")).unwrap();
        let done = std::cell::Cell::new(false);
        let worker = ground.hooked(|point, call| {
            if call == pause && point % 2 == side && !done.replace(true) {
                second_generation(&ground, &made.place.path);
            }
            Act::Go
        });
        worker.tick().unwrap();
        assert!(done.get(), "{pause} was not reached");
        drop(worker);
        for minutes in [2, 6, 16, 61] {
            ground.lapse(Span::minutes(minutes));
            host.tick().unwrap();
        }
        assert!(is_marked(&made.place.path), "{pause}: generation 2 went");
        assert_eq!(ground.registered(), vec![made.place.path.clone()], "{pause}");
        assert_ne!(job_states(&host, "o")[0].1, JobState::Succeeded, "{pause}: false success");
        // Freehold's own next generation of the slot lives at another path altogether.
        task(&host, "t2").unwrap();
        environment(&host, "e2", "t2").unwrap();
        let wanted = wanted(&ground, &root, "e2", "b3");
        let next = host.make_worktree(&ann(), &wanted).unwrap();
        assert_ne!(next.place.path, made.place.path);
        quiet_of(&ground, &host);
        assert!(next.place.path.exists());
    }
}

fn quiet_of(ground: &Ground, host: &TestHost) {
    for minutes in [0, 181, 181] {
        ground.lapse(Span::minutes(minutes));
        host.tick().unwrap();
    }
}

#[test]
fn f29_a_folder_made_again_at_the_same_path_is_another_worktree() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    host.delete_task(&ann(), "t", &Operation::new("o")).unwrap();
    std::fs::remove_dir_all(&made.place.path).unwrap();
    std::fs::create_dir_all(&made.place.path).unwrap();
    std::fs::write(made.place.path.join("mine"), "mine\n").unwrap();
    host.tick().unwrap();
    assert_eq!(results_of(&host, "o"), vec![(ResourceResult::Failed, Reason::IdentityMismatch)]);
    assert_eq!(std::fs::read(made.place.path.join("mine")).unwrap(), b"mine\n");
}

/// Dies after every durable or physical step of a making; the branch was there before, or not.
#[test]
fn f30_a_making_that_dies_anywhere_is_adopted_or_undone_and_the_name_is_free() {
    for branch_existed in [false, true] {
        for at in ["intended", "made", "materialised", "owned"] {
            let ground = Ground::new();
            let host = ground.host();
            workspace(&host, "w");
            task(&host, "t").unwrap();
            environment(&host, "e", "t").unwrap();
            let root = host.register_root(&ann(), &ground.root_path).unwrap();
            let mut earlier = Vec::new();
            if branch_existed {
                ground.git(&["branch", "b"]);
                earlier.push("b");
            }
            let wanted = wanted(&ground, &root, "e", "b");
            let died = survives(|| {
                host.make_worktree_between(&ann(), &wanted, &mut |now| {
                    if now == at {
                        die();
                    }
                })
            });
            assert!(died.is_none(), "{at} was not reached");
            drop(host);
            let host = ground.host();
            quiet(&ground, &host);
            assert!(host.unresolved_attempts().unwrap().is_empty(), "{at}");
            assert_tracked(&ground, &host, &earlier);
            let adopted = host.places_of("t").unwrap().len();
            assert_eq!(adopted, usize::from(matches!(at, "materialised" | "owned")), "{at}");
            // The same name is usable.
            if adopted == 0 {
                host.make_worktree(&ann(), &wanted).unwrap();
                assert_tracked(&ground, &host, &earlier);
            }
        }
    }
}

/// (d): the repository's own hook fails after a complete checkout.
#[test]
fn f30_a_failing_post_checkout_hook_of_the_repository_breaks_nothing() {
    let ground = Ground::new();
    let hook = ground.repository.join(".git/hooks/post-checkout");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let ran = ground.folder.path().join("ran");
    std::fs::write(&hook, format!("#!/bin/sh\n: > '{}'\nexit 1\n", ran.display())).unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let host = ground.host();
    settled(&ground, &host);
    assert!(!ran.exists(), "a hook of the user ran");
    assert_tracked(&ground, &host, &[]);
    // It is a hook that git would run, and that would fail.
    let by_hand = ground.folder.path().join("by-hand");
    let made = std::process::Command::new("git")
        .current_dir(&ground.repository)
        .args(["worktree", "add", "--quiet", "--detach"])
        .arg(&by_hand)
        .output()
        .unwrap();
    assert!(!made.status.success() && ran.exists());
}

#[test]
fn f32_an_archive_keeps_row_and_branch_and_what_was_committed_comes_back() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    std::fs::write(made.place.path.join("story.txt"), "committed\n").unwrap();
    git_in(&made.place.path, &["commit", "--quiet", "--all", "--message", "never pushed"]);
    let tip = ground.git(&["rev-parse", "b"]);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    work(&host);
    drop(host);
    let host = ground.host();
    assert!(!made.place.path.exists());
    let report = host.unarchive_task(&ann(), "t", false).unwrap().remove(0);
    assert_eq!((report.repo.as_str(), report.branch.as_str()), (made.repo.as_str(), "b"));
    assert_eq!(report.repository, ground.repository.display().to_string());
    assert!(matches!(report.stands, Stands::FromBranch | Stands::FromBranchAndSalvage(_)));
    let again = host.recreate(&ann(), &report.repo).unwrap();
    assert_eq!(again.repo, made.repo);
    assert_eq!(git_in(&again.place.path, &["rev-parse", "HEAD"]), tip);
    submit(&host, "s", "1").unwrap();
}

#[test]
fn f32_a_job_that_waits_to_retry_does_nothing_after_the_unarchive() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    let broken = ground.hooked(|_, call| match call {
        "salvaged" => Act::Fail(Reason::Io),
        _other => Act::Go,
    });
    broken.tick().unwrap();
    drop(broken);
    assert_eq!(jobs(&host), vec![(Trigger::Archive, JobState::RetryWait)]);
    let report = host.unarchive_task(&ann(), "t", false).unwrap().remove(0);
    assert_eq!(report.stands, Stands::Kept);
    for minutes in [2, 6, 16, 61, 181] {
        ground.lapse(Span::minutes(minutes));
        host.tick().unwrap();
        assert!(is_marked(&made.place.path));
    }
    assert_eq!(jobs(&host), vec![(Trigger::Archive, JobState::Cancelled)]);
}

/// The steps of a making as rows only: what is raced here is the store.
fn add_row(host: &TestHost, root: RootId, n: usize) -> bool {
    let instance = host.instance();
    let (attempt, token) = (AttemptId(fresh()), Token(fresh()));
    let begun = host.ask(&ann(), None, |c| {
        Ok(Command::Attempt(AttemptCommand::Begin {
            attempt,
            token,
            environment: c.id(&format!("e{n}"))?,
            repo: RepoId(fresh()),
            repository: c.text("/repository")?,
            slug: c.text("b")?,
            root,
            path: c.text(&format!("/worktrees/{n}"))?,
            branch: c.text("b")?,
            worktree: c.text(&format!("stamp {n}"))?,
            branch_existed: false,
            start_commit: c.text("0123")?,
            instance: c.id(&instance)?,
        }))
    });
    if begun.is_err() {
        return false;
    }
    let made = AttemptCommand::Materialised { attempt, token };
    let owned = AttemptCommand::Persist { attempt, token };
    for command in [made, owned] {
        match host.ask(&ann(), None, |_| Ok(Command::Attempt(command))) {
            Ok(accepted) if matches!(accepted.reply, Reply::Compensate { .. }) => return false,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    true
}

/// A thousand deletes against as many additions, in two threads on one store: what was said to
/// be added is in the snapshot of the delete.
#[test]
fn f34_an_addition_that_succeeded_is_in_the_snapshot() {
    const ROUNDS: usize = 1000;
    let ground = Ground::new();
    let host = ground.host();
    workspace(&host, "w");
    let root = host.register_root(&ann(), &ground.root_path).unwrap();
    let root = RootId(id_of(Kind::RootId, &root));
    for n in 0..ROUNDS {
        task(&host, &format!("t{n}")).unwrap();
        environment(&host, &format!("e{n}"), &format!("t{n}")).unwrap();
    }
    let start = std::sync::Barrier::new(2);
    let added: Vec<bool> = std::thread::scope(|scope| {
        let adder = scope.spawn(|| {
            let host = ground.host();
            (0..ROUNDS)
                .map(|n| {
                    start.wait();
                    spin(n * 7919 % 40);
                    add_row(&host, root, n)
                })
                .collect()
        });
        let host = ground.host();
        for n in 0..ROUNDS {
            start.wait();
            spin(n * 104_729 % 40);
            // A maker that lives is not waited for here; the barrier is what counts.
            host.delete_task(&ann(), &format!("t{n}"), &Operation::new(&format!("o{n}"))).unwrap();
        }
        adder.join().unwrap()
    });
    let rows = rows(&host, &[TableId::Jobs, TableId::Resources, TableId::Attempts]);
    let mut counts = [0usize; 2];
    for (n, added) in added.iter().enumerate() {
        counts[usize::from(*added)] += 1;
        let task = id_of(Kind::TaskId, &format!("t{n}"));
        let path = id_of(Kind::PathId, &format!("/worktrees/{n}"));
        let job = rows.view.jobs.iter().find(|j| j.task_id.0 == task).unwrap();
        let named = rows.view.resources.iter().any(|r| {
            let attempt = r.attempt_id.and_then(|a| rows.view.attempts.id(a.0));
            let by_attempt = attempt.is_some_and(|a| a.path.0 == path);
            r.job_id == job.id && (r.path.is_some_and(|p| p.0 == path) || by_attempt)
        });
        let begun = rows.view.attempts.iter().any(|a| a.path.0 == path);
        assert!(named || !added, "{n}: success, and outside of the snapshot");
        // One that was begun and refused is undone by the job or by its maker, never forgotten.
        let left = rows.view.attempts.iter().find(|a| a.path.0 == path);
        let undone = left.is_none_or(|a| match a.state {
            AttemptState::Compensating | AttemptState::Compensated => true,
            AttemptState::Intended | AttemptState::Materialised | AttemptState::Owned => false,
        });
        assert!(named || !begun || undone, "{n}: begun, refused and nobody's");
    }
    // Both ends were met, else nothing was raced.
    assert!(counts.iter().all(|c| *c > 0), "refused and added: {counts:?}");
}

/// A little work that takes a different time in each round.
fn spin(rounds: usize) {
    for n in 0..rounds * 1000 {
        std::hint::black_box(n);
    }
}
