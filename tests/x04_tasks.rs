//! X04 to X06, X11, X13, X14: what becomes of a task's workspace when its task goes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

use freehold_git::GitWorkspaces;
use freehold_kernel::*;
use freehold_store::{Made, NoRuntimes, Operation, Stands};
use support::*;

/// X01: a task whose last session was deleted, with an uncommitted marker in its worktree. No
/// instance of it is left.
fn after_x01(ground: &Ground) -> Made {
    let host = ground.host();
    let (_, made) = settled(ground, &host);
    mark(&made.place.path);
    host.delete_session(&ann(), "s").unwrap();
    made
}

/// The parts of jobs that lie in roots: state, tries, and how long it is until the next.
fn parts(host: &TestHost) -> Vec<(JobState, u32, Option<Span>)> {
    let rows = rows(host, &[TableId::JobRoots]);
    let now = rows.view.now;
    let parts = rows.view.job_roots.iter().filter(|p| p.root_id.is_some());
    parts.map(|p| (p.state, p.tries, p.next_attempt_at.map(|t| t - now))).collect()
}

/// Results and reasons of the worktrees of all jobs.
fn results(host: &TestHost) -> Vec<(ResourceResult, Reason)> {
    let rows = rows(host, &[TableId::Resources]);
    let worktrees = rows.view.resources.iter().filter(|r| r.kind == ResourceKind::Worktree);
    worktrees.map(|r| (r.result, r.reason)).collect()
}

fn lifecycle(host: &TestHost, task: &str) -> Option<TaskLifecycle> {
    let rows = host.read(&[freehold_store::Read::by(TableId::Tasks, "id", &[task])]).unwrap();
    rows.view.tasks.iter().next().map(|t| t.lifecycle)
}

fn is_whole(ground: &Ground, made: &Made) -> bool {
    is_marked(&made.place.path)
        && ground.registered().contains(&made.place.path)
        && ground.branches().contains(&made.place.branch)
}

fn is_gone(ground: &Ground, made: &Made) -> bool {
    !made.place.path.exists() && !ground.registered().contains(&made.place.path)
}

#[test]
fn x04_an_archived_task_is_archived_at_once_and_its_worktree_goes_later_by_another_instance() {
    let ground = Ground::new();
    let made = after_x01(&ground);
    let host = ground.host();
    let reply = host.archive_task(&ann(), "t", &Operation::new("archive")).unwrap();
    assert!(matches!(reply, Reply::Job { state: JobState::Pending, .. }), "{reply:?}");
    assert_eq!(lifecycle(&host, "t"), Some(TaskLifecycle::Archived));
    assert!(is_whole(&ground, &made), "removed before its time");
    drop(host);

    let worker = ground.host();
    let ticked = worker.tick().unwrap();
    assert_eq!((ticked.settled, ticked.removals), (1, 1), "{ticked:?}");
    assert_eq!(ticked.troubles, Vec::<String>::new());
    assert_eq!(parts(&worker), [(JobState::Succeeded, 1, None)]);
    assert!(is_gone(&ground, &made));
    assert_eq!(jobs(&worker), [(Trigger::Archive, JobState::Succeeded)]);
    assert_eq!(results(&worker), [(ResourceResult::Removed, Reason::None)]);
    // An archive keeps identity and branch (C-6), and what was unsaved.
    let rows = rows(&worker, &[TableId::Repos, TableId::Salvage]);
    let repo = rows.view.repos.iter().next().unwrap();
    assert_eq!((repo.materialised, repo.status), (Materialised::No, RepoStatus::Active));
    let salvage = rows.view.salvage.iter().next().unwrap();
    assert_eq!(salvage.repo_id, Some(repo.id));
    assert!(salvage.contents.covers(Unsaved::TRACKED.with(Unsaved::UNTRACKED)));
    assert!(salvage_holds(&ground, "marker\n") && salvage_holds(&ground, "changed\n"));
    assert_tracked(&ground, &worker, &[]);
}

#[test]
fn x04_what_a_session_of_another_task_shares_is_preserved() {
    let ground = Ground::new();
    let made = after_x01(&ground);
    let host = ground.host();
    task(&host, "t2").unwrap();
    session(&host, "borrower", "t2", Some("e")).unwrap();
    host.archive_task(&ann(), "t", &Operation::new("archive")).unwrap();
    drop(host);
    let worker = ground.host();
    worker.tick().unwrap();
    assert_eq!(jobs(&worker), [(Trigger::Archive, JobState::Succeeded)]);
    assert_eq!(results(&worker), [(ResourceResult::Preserved, Reason::Borrowed)]);
    assert!(is_whole(&ground, &made));
}

#[test]
fn x05_a_deleted_task_is_gone_at_once_and_its_job_works_from_the_snapshot() {
    let ground = Ground::new();
    let made = after_x01(&ground);
    let host = ground.host();
    host.delete_task(&ann(), "t", &Operation::new("delete")).unwrap();
    let tables = [TableId::Tasks, TableId::Environments, TableId::Repos];
    let left = rows(&host, &tables).view;
    assert_eq!((left.tasks.len(), left.environments.len(), left.repos.len()), (0, 0, 0));
    assert_eq!(jobs(&host), [(Trigger::Delete, JobState::Pending)]);
    assert_eq!(results(&host), [(ResourceResult::Waiting, Reason::None)]);
    assert!(is_whole(&ground, &made), "removed before its time");
    drop(host);

    // The job is retryable: somebody stands in the directory during the first try.
    let mut person = stands_in(&made);
    let worker = ground.host();
    worker.tick().unwrap();
    assert_eq!(parts(&worker), [(JobState::RetryWait, 1, Some(Span::minutes(1)))]);
    assert!(is_whole(&ground, &made));
    drop(worker);
    leave(&mut person);
    ground.lapse(Span::minutes(1));
    let worker = ground.host();
    worker.tick().unwrap();
    assert!(is_gone(&ground, &made));
    assert_eq!(jobs(&worker), [(Trigger::Delete, JobState::Succeeded)]);
    assert!(salvage_holds(&ground, "marker\n") && salvage_holds(&ground, "changed\n"));
    assert_tracked(&ground, &worker, &["b"]);
    // Its id never lives again.
    assert_eq!(refused(task(&worker, "t")), Guard::IdNeverUsed);
}

/// A process that stands in the worktree.
fn stands_in(made: &Made) -> std::process::Child {
    std::process::Command::new("cat")
        .current_dir(&made.place.path)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap()
}

fn leave(person: &mut std::process::Child) {
    drop(person.stdin.take());
    person.wait().unwrap();
}

#[test]
fn x06_failures_of_git_and_of_the_file_system_are_retried_on_schedule_across_restarts() {
    for trigger in [Trigger::Archive, Trigger::Delete] {
        let ground = Ground::new();
        let made = after_x01(&ground);
        let operation = Operation::new("goes");
        if trigger == Trigger::Archive {
            ground.host().archive_task(&ann(), "t", &operation).unwrap();
        } else {
            ground.host().delete_task(&ann(), "t", &operation).unwrap();
        }

        // Try 1: git fails.
        let down = ground.folder.path().join("git-is-down");
        let lines =
            format!("if [ -e '{}' ]; then echo 'fatal: no' >&2; exit 128; fi", down.display());
        let moody = wrapped_git(&ground, "moody-git", &lines);
        std::fs::write(&down, "").unwrap();
        let moody = || GitWorkspaces::new().with_program(moody.clone(), Duration::from_secs(30));
        ground.host_with(moody()).tick().unwrap();
        let watcher = ground.host();
        assert_eq!(parts(&watcher), [(JobState::RetryWait, 1, Some(Span::minutes(1)))]);
        assert_eq!(results(&watcher)[0].0, ResourceResult::Waiting);
        assert!(is_whole(&ground, &made));
        std::fs::remove_file(&down).unwrap();

        // Not before its time, whoever looks.
        ground.lapse(Span::seconds(59));
        let early = ground.host_with(moody());
        assert_eq!(early.tick().unwrap().claimed, 0);
        assert_eq!(parts(&watcher), [(JobState::RetryWait, 1, Some(Span::seconds(1)))]);
        assert!(is_whole(&ground, &made));

        // Try 2: the root is not there. Nothing is taken for absent (D-18).
        ground.lapse(Span::seconds(1));
        let elsewhere = ground.root_path.with_extension("unmounted");
        std::fs::rename(&ground.root_path, &elsewhere).unwrap();
        ground.host().tick().unwrap();
        assert_eq!(parts(&watcher), [(JobState::RetryWait, 2, Some(Span::minutes(5)))]);
        assert_eq!(results(&watcher)[0].0, ResourceResult::Waiting);
        assert!(ground.registered().contains(&made.place.path));
        std::fs::rename(&elsewhere, &ground.root_path).unwrap();
        assert!(is_whole(&ground, &made));

        // Try 3: somebody stands in it.
        let mut person = stands_in(&made);
        ground.lapse(Span::minutes(5));
        ground.host().tick().unwrap();
        assert_eq!(parts(&watcher), [(JobState::RetryWait, 3, Some(Span::minutes(15)))]);
        assert_eq!(results(&watcher), [(ResourceResult::Waiting, Reason::InUse)]);
        assert!(is_whole(&ground, &made));
        leave(&mut person);

        // Try 4, after a restart, when it is due.
        ground.lapse(Span::minutes(15));
        let last = ground.host();
        last.tick().unwrap();
        assert_eq!(parts(&watcher), [(JobState::Succeeded, 4, None)]);
        assert_eq!(jobs(&watcher), [(trigger, JobState::Succeeded)]);
        assert_eq!(results(&watcher), [(ResourceResult::Removed, Reason::None)]);
        assert!(is_gone(&ground, &made));
        assert!(salvage_holds(&ground, "marker\n") && salvage_holds(&ground, "changed\n"));
        assert_tracked(&ground, &last, &["b"]);
        if trigger == Trigger::Archive {
            last.unarchive_task(&ann(), "t", false).unwrap();
            assert_restorable(&last, "t");
        }
    }
}

/// A task with a marked worktree of its own, on a ground that has others.
fn marked_task(ground: &Ground, host: &TestHost, root: &str, n: usize) -> Made {
    let (t, e) = (format!("t{n}"), format!("e{n}"));
    task(host, &t).unwrap();
    environment(host, &e, &t).unwrap();
    let made = host.make_worktree(&ann(), &wanted(ground, root, &e, &format!("b{n}"))).unwrap();
    mark(&made.place.path);
    made
}

/// What happens to the worker at the n-th point, for every n: the cleanup converges, and every
/// byte is found again.
fn a_fault_at_every_point(act: Act) {
    let ground = Ground::new();
    let home = ground.host();
    workspace(&home, "w");
    let root = home.register_root(&ann(), &ground.root_path).unwrap();
    let mut names = Vec::new();
    for n in 0.. {
        assert!(n < 60, "the loop does not end");
        let made = marked_task(&ground, &home, &root, n);
        let t = format!("t{n}");
        home.archive_task(&ann(), &t, &Operation::new(&format!("archive-{n}"))).unwrap();
        let hit = Cell::new(None);
        let worker = ground.hooked(|point, call| {
            if point == n {
                hit.set(Some(call));
                // This one has a test of its own below.
                if call == "renamed" && point % 2 == 1 && act != Act::Die { Act::Go } else { act }
            } else {
                Act::Go
            }
        });
        let ticked = survives(|| worker.tick().unwrap());
        drop(worker);
        let Some(call) = hit.get() else {
            assert!(is_gone(&ground, &made), "{ticked:?}");
            break;
        };
        names.push(call);
        assert_eq!(ticked.is_none(), act == Act::Die, "at point {n}, {call}");
        // Whatever happened: a restart, and time.
        let next = ground.host();
        quiet(&ground, &next);
        assert!(is_gone(&ground, &made), "at point {n}, {call}: {:?}", jobs(&next));
        assert_eq!(
            jobs(&next).last(),
            Some(&(Trigger::Archive, JobState::Succeeded)),
            "{n}, {call}"
        );
        next.unarchive_task(&ann(), &t, false).unwrap();
        assert_restorable(&next, &t);
        assert_tracked(&ground, &next, &[]);
        home.renew().unwrap();
    }
    names.dedup();
    let all = [
        "lock",
        "inspect",
        "salvaged",
        "renamed",
        "compared",
        "unregistered",
        "branch_settled",
        "purged",
        // W-36: nothing of it is found any more.
        "inspect",
    ];
    assert_eq!(names, all);
}

#[test]
fn x06_a_failure_at_any_call_of_the_cleanup_converges_and_loses_nothing() {
    a_fault_at_every_point(Act::Fail(Reason::Io));
}

#[test]
fn x06_a_death_at_any_call_of_the_cleanup_converges_and_loses_nothing() {
    a_fault_at_every_point(Act::Die);
}

/// The rename is done and reported as failed, as over a network: the worktree is whole in the
/// trash. "The step was not done, or will be finished by the next call" (the port's promise).
#[test]
fn x06_a_rename_that_was_done_and_reported_as_failed_is_finished_by_the_next_try() {
    let ground = Ground::new();
    let made = after_x01(&ground);
    ground.host().archive_task(&ann(), "t", &Operation::new("archive")).unwrap();
    let worker = ground.hooked(|point, call| {
        if call == "renamed" && point % 2 == 1 { Act::Fail(Reason::Io) } else { Act::Go }
    });
    worker.tick().unwrap();
    drop(worker);
    let host = ground.host();
    quiet(&ground, &host);
    assert_eq!(results(&host), [(ResourceResult::Removed, Reason::None)]);
    assert!(is_gone(&ground, &made));
    assert_tracked(&ground, &host, &[]);
    host.unarchive_task(&ann(), "t", false).unwrap();
    assert_restorable(&host, "t");
}

/// What a try wrote down for itself goes when the try has come to nothing: a removal that ended
/// as it began leaves no manifest, however often it is tried.
#[test]
fn x06_a_try_that_came_to_nothing_leaves_no_manifest() {
    let ground = Ground::new();
    let made = after_x01(&ground);
    ground.host().archive_task(&ann(), "t", &Operation::new("archive")).unwrap();
    for (failing, side) in [("salvaged", 0), ("salvaged", 1), ("renamed", 0)] {
        let worker = ground.hooked(|point, call| {
            let fails = call == failing && point % 2 == side;
            if fails { Act::Fail(Reason::Io) } else { Act::Go }
        });
        worker.tick().unwrap();
        drop(worker);
        ground.lapse(Span::hours(1));
    }
    let host = ground.host();
    quiet(&ground, &host);
    assert!(is_gone(&ground, &made));
    assert_tracked(&ground, &host, &[]);
    assert_eq!(manifests(&ground), Vec::<PathBuf>::new());
}

/// A quick chat with an environment, a marked worktree and a session `chat`, which expires in
/// half an hour.
fn quick_chat(ground: &Ground, host: &TestHost) -> Made {
    workspace(host, "w");
    let expires = ground.clock.now() + Span::minutes(30);
    host.ask(&ann(), None, |c| {
        Ok(Command::Task(TaskCommand::Create {
            task: c.id("q")?,
            workspace: c.id("w")?,
            parent: None,
            kind: TaskKind::QuickChat,
            expires_at: Some(expires),
        }))
    })
    .unwrap();
    environment(host, "e", "q").unwrap();
    let root = host.register_root(&ann(), &ground.root_path).unwrap();
    let made = host.make_worktree(&ann(), &wanted(ground, &root, "e", "b")).unwrap();
    session(host, "chat", "q", None).unwrap();
    mark(&made.place.path);
    made
}

fn assert_chat_cleaned(ground: &Ground, made: &Made, trigger: Trigger) {
    let worker = ground.host();
    assert_eq!(lifecycle(&worker, "q"), None);
    assert_eq!(rows(&worker, &[TableId::Sessions]).view.sessions.len(), 0);
    worker.tick().unwrap();
    assert_eq!(jobs(&worker), [(trigger, JobState::Succeeded)]);
    assert!(is_gone(ground, made));
    assert!(salvage_holds(ground, "marker\n"));
    assert_tracked(ground, &worker, &["b"]);
    assert_eq!(refused(task(&worker, "q")), Guard::IdNeverUsed);
    assert_eq!(refused(session(&worker, "chat", "q", None)), Guard::TaskNotDeleted);
}

#[test]
fn x11_closing_a_quick_chat_deletes_its_hidden_task() {
    let ground = Ground::new();
    let host = ground.host();
    let made = quick_chat(&ground, &host);
    host.delete_task(&ann(), "q", &Operation::new("close")).unwrap();
    drop(host);
    assert_chat_cleaned(&ground, &made, Trigger::Delete);
}

#[test]
fn x11_an_expired_quick_chat_goes_likewise_but_not_early_and_not_while_it_works() {
    let ground = Ground::new();
    let runtimes = Told::new(Liveness::Dead);
    let host = ground.host_with_runtimes(&runtimes);
    let made = quick_chat(&ground, &host);
    let expire = || host.expire_quick_chat("q", &Operation::new("expire"));
    ground.lapse(Span::seconds(30 * 60 - 1));
    host.renew().unwrap();
    assert_eq!(refused(expire()), Guard::Expired);
    ground.lapse(Span::seconds(1));
    assert_eq!(submit(&host, "chat", "one").unwrap(), Reply::Done);
    run(&host, "one");
    assert_eq!(refused(expire()), Guard::TaskNotBusy);
    // Refused before anything was barred or stopped.
    assert!(is_whole(&ground, &made));
    assert_eq!((jobs(&host), runtimes.stopped()), (vec![], vec![]));
    end(&host, "one", "never");
    assert!(matches!(expire().unwrap(), Reply::Job { state: JobState::Pending, .. }));
    assert!(is_whole(&ground, &made), "removed before its time");
    assert_eq!(runtimes.stopped(), ["runtime-one"]);
    // Only a quick chat expires.
    task(&host, "t").unwrap();
    ground.lapse(Span::seconds(1));
    host.renew().unwrap();
    assert_eq!(refused(host.expire_quick_chat("t", &Operation::new("expire-t"))), Guard::Expired);
    drop(host);
    assert_chat_cleaned(&ground, &made, Trigger::QuickChatExpire);
}

#[test]
fn x13_a_reset_salvages_the_old_worktree_and_the_task_stays_active() {
    let ground = Ground::new();
    let host = ground.host();
    let (root, old) = settled(&ground, &host);
    mark(&old.place.path);
    host.reset_environment(&ann(), "t", "e", &Operation::new("reset")).unwrap();
    // At once: active, unbarred, the same environment and session, no worktree in use.
    assert_eq!(lifecycle(&host, "t"), Some(TaskLifecycle::Active));
    assert_eq!(host.places_of("t").unwrap(), []);
    assert!(is_whole(&ground, &old), "removed before its time");
    session(&host, "s2", "t", None).unwrap();
    let before = rows(&host, &[TableId::Environments, TableId::Sessions]);
    let environment = before.view.environments.iter().next().unwrap().id;
    assert!(before.view.sessions.iter().all(|s| s.task_environment_id == Some(environment)));
    // A new worktree beside the old one, in the same slot: another path, another branch, clean.
    let mut next = wanted(&ground, &root, "e", "b-2");
    next.slug = "b".to_owned();
    let new = host.make_worktree(&ann(), &next).unwrap();
    assert_ne!(new.place.path, old.place.path);
    assert_eq!(git_in(&new.place.path, &["status", "--porcelain"]), "");
    drop(host);

    let worker = ground.host();
    worker.tick().unwrap();
    assert_eq!(jobs(&worker), [(Trigger::EnvironmentReset, JobState::Succeeded)]);
    assert!(is_gone(&ground, &old));
    assert!(salvage_holds(&ground, "marker\n") && salvage_holds(&ground, "changed\n"));
    assert_eq!(worker.places_of("t").unwrap().len(), 1);
    assert_eq!(git_in(&new.place.path, &["status", "--porcelain"]), "");
    assert_eq!(lifecycle(&worker, "t"), Some(TaskLifecycle::Active));
    // A reset never deletes a branch (W-39).
    assert_tracked(&ground, &worker, &["b"]);
}

#[test]
fn x13_a_reset_is_refused_while_somebody_borrows() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    task(&host, "t2").unwrap();
    session(&host, "borrower", "t2", Some("e")).unwrap();
    let reset = |id: &str| host.reset_environment(&ann(), "t", "e", &Operation::new(id));
    assert_eq!(refused(reset("reset")), Guard::NoBorrower);
    assert_eq!(jobs(&host), []);
    host.delete_session(&ann(), "borrower").unwrap();
    reset("reset-2").unwrap();
    quiet(&ground, &host);
    assert!(is_gone(&ground, &made));
}

#[test]
fn x14_an_unarchive_while_the_job_is_pending_or_waiting_keeps_everything() {
    for tried in [false, true] {
        let ground = Ground::new();
        let made = after_x01(&ground);
        let host = ground.host();
        host.archive_task(&ann(), "t", &Operation::new("archive")).unwrap();
        if tried {
            let mut person = stands_in(&made);
            host.tick().unwrap();
            leave(&mut person);
            assert_eq!(parts(&host), [(JobState::RetryWait, 1, Some(Span::minutes(1)))]);
        }
        let reports = ground.host().unarchive_task(&ann(), "t", false).unwrap();
        assert_eq!(reports.iter().map(|r| &r.stands).collect::<Vec<_>>(), [&Stands::Kept]);
        assert_eq!(jobs(&host), [(Trigger::Archive, JobState::Cancelled)]);
        // A later due retry does nothing, on any instance.
        for minutes in [0, 1, 5, 60, 24 * 60] {
            ground.lapse(Span::minutes(minutes));
            assert_eq!(ground.host().tick().unwrap().claimed, 0);
            host.tick().unwrap();
            assert!(is_whole(&ground, &made));
        }
        assert_tracked(&ground, &host, &[]);
        session(&host, "s2", "t", None).unwrap();
    }
}

#[test]
fn x14_an_unarchive_after_the_job_finished_restores_from_branch_and_salvage() {
    let ground = Ground::new();
    let made = after_x01(&ground);
    std::fs::write(made.place.path.join("committed.txt"), "committed\n").unwrap();
    git_in(&made.place.path, &["add", "committed.txt"]);
    git_in(&made.place.path, &["commit", "--quiet", "--message", "work", "committed.txt"]);
    let tip = ground.git(&["rev-parse", "b"]);
    let host = ground.host();
    host.archive_task(&ann(), "t", &Operation::new("archive")).unwrap();
    ground.host().tick().unwrap();
    assert!(is_gone(&ground, &made));
    assert_eq!(refused(session(&host, "s2", "t", None)), Guard::TaskActive);

    let reports = ground.host().unarchive_task(&ann(), "t", false).unwrap();
    assert_eq!(reports.len(), 1);
    assert_eq!((&reports[0].repo, reports[0].branch.as_str()), (&made.repo, "b"));
    assert!(matches!(reports[0].stands, Stands::FromBranchAndSalvage(_)), "{reports:?}");
    let host = ground.host();
    assert_restorable(&host, "t");
    // Row identity and branch tip are kept; the path is a new one (W-1).
    let place = host.places_of("t").unwrap().remove(0);
    assert_ne!(place.path, made.place.path);
    assert_eq!(git_in(&place.path, &["rev-parse", "HEAD"]), tip);
    assert_eq!(std::fs::read_to_string(place.path.join("committed.txt")).unwrap(), "committed\n");
    for minutes in [0, 5, 24 * 60] {
        ground.lapse(Span::minutes(minutes));
        ground.host().tick().unwrap();
        assert!(is_marked(&place.path));
    }
    assert_tracked(&ground, &host, &[]);
}

/// A task `t{n}` with two marked worktrees, archived.
fn two_worktrees(ground: &Ground, host: &TestHost, root: &str, n: usize) -> (String, Vec<PathBuf>) {
    let first = marked_task(ground, host, root, n);
    let e = format!("e{n}");
    let second = host.make_worktree(&ann(), &wanted(ground, root, &e, &format!("c{n}"))).unwrap();
    mark(&second.place.path);
    let t = format!("t{n}");
    host.archive_task(&ann(), &t, &Operation::new(&format!("archive-{n}"))).unwrap();
    (t, vec![first.place.path, second.place.path])
}

/// Unarchives from another instance at the n-th point of a worker that cleans two worktrees, for
/// every `every`th n from `from` on; `dies` says whether that worker then dies, or goes on. Both
/// kinds of point, before a call and after it, come in turn.
fn an_unarchive_at_every_point(dies: bool, from: usize, every: usize) {
    let ground = Ground::new();
    let home = ground.host();
    workspace(&home, "w");
    let root = home.register_root(&ann(), &ground.root_path).unwrap();
    let (mut between, mut kept_both, mut done) = (false, false, false);
    let mut round = 0;
    for n in (from..).step_by(every) {
        if done {
            break;
        }
        assert!(n < 80, "the loop does not end");
        round += 1;
        let (t, paths) = two_worktrees(&ground, &home, &root, round);
        let other = ground.host();
        let hit = Cell::new(false);
        let worker = ground.hooked(|point, _| {
            if point == n {
                hit.set(true);
                other.unarchive_task(&ann(), &t, false).unwrap();
                if dies {
                    return Act::Die;
                }
            }
            Act::Go
        });
        survives(|| worker.tick().unwrap());
        drop(worker);
        if !hit.get() {
            done = true;
            other.unarchive_task(&ann(), &t, false).unwrap();
        }
        let next = ground.host();
        quiet(&ground, &next);
        let left: Vec<bool> = paths.iter().map(|p| p.exists()).collect();
        between |= left.iter().filter(|there| **there).count() == 1;
        kept_both |= left == [true, true];
        for (path, there) in paths.iter().zip(&left) {
            assert!(!there || is_marked(path), "half removed at point {n}");
        }
        assert_restorable(&next, &t);
        // Nothing is removed afterwards, by anybody.
        for minutes in [1, 20, 24 * 60] {
            ground.lapse(Span::minutes(minutes));
            ground.host().tick().unwrap();
            next.tick().unwrap();
        }
        let places = next.places_of(&t).unwrap();
        assert_eq!(places.len(), 2, "at point {n}");
        assert!(places.iter().all(|p| is_marked(&p.path)), "at point {n}");
        assert_tracked(&ground, &next, &[]);
        home.renew().unwrap();
    }
    assert!(between, "no point lay between the two removals");
    assert!(kept_both, "no point lay before the first removal");
}

#[test]
fn x14_an_unarchive_at_any_point_of_a_worker_that_goes_on_loses_nothing() {
    an_unarchive_at_every_point(false, 0, 5);
}

#[test]
fn x14_an_unarchive_at_any_point_of_a_worker_that_dies_loses_nothing() {
    an_unarchive_at_every_point(true, 1, 5);
}

/// C-18: back as long as the trash is whole, by the worker itself or by whoever comes after it.
#[test]
fn x14_an_unarchive_takes_a_worktree_back_out_of_the_trash() {
    for (call, side, dies) in
        [("renamed", 1, false), ("compared", 0, true), ("compared", 1, false), ("renamed", 1, true)]
    {
        let ground = Ground::new();
        let made = after_x01(&ground);
        let host = ground.host();
        host.archive_task(&ann(), "t", &Operation::new("archive")).unwrap();
        let worker = ground.hooked(|point, at| {
            if at == call && point % 2 == side {
                assert!(!made.place.path.exists());
                let reports = host.unarchive_task(&ann(), "t", false).unwrap();
                assert_eq!(reports[0].stands, Stands::InRemoval);
                // Nothing works in it until that is settled.
                session(&host, "s2", "t", None).unwrap();
                assert_eq!(refused(submit(&host, "s2", "early")), Guard::NotInRemoval);
                if dies {
                    return Act::Die;
                }
            }
            Act::Go
        });
        survives(|| worker.tick().unwrap());
        drop(worker);
        let next = ground.host();
        quiet(&ground, &next);
        assert!(is_whole(&ground, &made), "{call} {side} {dies}");
        assert_eq!(next.repositories_of("t").unwrap()[0].stands, Stands::Kept);
        assert_eq!(next.places_of("t").unwrap(), std::slice::from_ref(&made.place));
        assert_eq!(submit(&next, "s2", "late").unwrap(), Reply::Done);
        assert_tracked(&ground, &next, &[]);
    }
}

#[test]
fn x14_an_unarchive_between_two_removals_keeps_the_second() {
    let ground = Ground::new();
    let home = ground.host();
    workspace(&home, "w");
    let root = home.register_root(&ann(), &ground.root_path).unwrap();
    let (t, paths) = two_worktrees(&ground, &home, &root, 1);
    // The worker stops when it comes to the second worktree.
    let locks = Cell::new(0);
    let worker = ground.host_on(
        Hooked::new(GitWorkspaces::new(), |point, call| {
            locks.set(locks.get() + usize::from(call == "lock" && point % 2 == 0));
            if locks.get() == 2 { Act::Die } else { Act::Go }
        }),
        Box::new(NoRuntimes),
    );
    assert!(survives(|| worker.tick().unwrap()).is_none());
    drop(worker);
    assert_eq!(paths.iter().filter(|p| p.exists()).count(), 1);
    let host = ground.host();
    let reports = host.unarchive_task(&ann(), &t, false).unwrap();
    assert_eq!(reports.iter().filter(|r| r.stands == Stands::Kept).count(), 1);
    assert_eq!(jobs(&host), [(Trigger::Archive, JobState::Cancelled)]);
    for minutes in [0, 1, 5, 24 * 60] {
        ground.lapse(Span::minutes(minutes));
        ground.host().tick().unwrap();
        assert_eq!(paths.iter().filter(|p| p.exists() && is_marked(p)).count(), 1);
    }
    host.renew().unwrap();
    assert_restorable(&host, &t);
    assert_tracked(&ground, &host, &[]);
}
