//! X09, X10, X18, X50: an environment that sessions of other tasks use.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use freehold_kernel::*;
use freehold_store::names::{id_of, uuid_text};
use freehold_store::{HostError, Operation, Who};
use support::steps::*;
use support::{
    Ground, TestHost, ann, contents, environment, git_in, is_marked, jobs, mark, refused, rows,
    session, settled, task, wanted,
};

/// What is on the disk and what git knows.
fn physical(
    ground: &Ground,
    folder: &Path,
) -> (BTreeMap<PathBuf, Vec<u8>>, Vec<PathBuf>, Vec<String>) {
    (contents(folder), ground.registered(), ground.branches())
}

fn environment_id(id: &str) -> u128 {
    id_of(Kind::EnvironmentId, id)
}

fn owner_of(host: &TestHost, environment: &str) -> Option<u128> {
    environment_row(host, environment).map(|e| e.task_id.0)
}

fn task_id(id: &str) -> u128 {
    id_of(Kind::TaskId, id)
}

/// Time passes between two creations, so that one of them is older.
fn later(ground: &Ground) {
    ground.clock.advance(Span(1_000));
}

fn archive(host: &TestHost, task: &str, operation: &str) {
    host.archive_task(&ann(), task, &Operation::new(operation)).unwrap();
}

// X09

#[test]
fn x09_an_archived_owners_environment_is_preserved_for_its_borrower() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    task(&host, "u").unwrap();
    session(&host, "guest", "u", Some("e")).unwrap();
    mark(&made.place.path);
    let before = physical(&ground, &made.place.path);
    archive(&host, "t", "arch");
    work(&host);
    assert!(is_archived(&host, "t"));
    assert_eq!(job_states(&host, "arch"), [("t".to_owned(), JobState::Succeeded)]);
    assert_eq!(results_of(&host, "arch"), [(ResourceResult::Preserved, Reason::Borrowed)]);
    assert_eq!(physical(&ground, &made.place.path), before);
    assert_eq!(outcomes(&host), []);
    assert_eq!(owner_of(&host, "e"), Some(task_id("t")), "an archive transfers nothing");
    let guest = session_row(&host, "guest").unwrap();
    assert_eq!(environment_of(&guest), Some(environment_id("e")));
    assert_eq!(guest.lifecycle, SessionLifecycle::Open);
    // And the borrower can go on working in it.
    host.ask(&ann(), None, |c| {
        let instance = host.instance();
        Ok(Command::Turn(TurnCommand::Submit {
            session: c.id("guest")?,
            input: c.id("input")?,
            origin: Origin::Person,
            turn: c.id("turn")?,
            runtime: c.id("runtime")?,
            runtime_kind: RuntimeKind::Local,
            instance: c.id(&instance)?,
        }))
    })
    .unwrap();
}

/// `t` with `e`, borrowed by, in this order: `gone` (archived since), `barred` (held by another
/// operation), `m` and `n`, the last of which has an environment of its own.
fn with_borrowers(ground: &Ground, host: &TestHost) -> freehold_store::Made {
    let (_, made) = settled(ground, host);
    for (task_name, guest) in [("gone", "g1"), ("barred", "g2"), ("m", "g3"), ("n", "g4")] {
        task(host, task_name).unwrap();
        if task_name == "n" {
            environment(host, "own", "n").unwrap();
        }
        later(ground);
        session(host, guest, task_name, Some("e")).unwrap();
    }
    archive(host, "gone", "arch-gone");
    mark(&made.place.path);
    made
}

#[test]
fn x09_a_deleted_owners_environment_goes_to_the_oldest_free_borrower() {
    let ground = Ground::new();
    let host = ground.host();
    let made = with_borrowers(&ground, &host);
    let other = Steps::new(&host, "other", Trigger::Archive, None);
    other.reserve("barred").unwrap();
    let before = (
        physical(&ground, &made.place.path),
        dump(&host)[TableId::Repos.name()].clone(),
        session_row(&host, "g3"),
    );
    host.delete_task(&ann(), "t", &Operation::new("del")).unwrap();
    work(&host);
    assert_eq!(task_row(&host, "t"), None);
    assert_eq!(session_row(&host, "s"), None);
    assert_eq!(owner_of(&host, "e"), Some(task_id("m")));
    let moved: Vec<_> = resources_of(&host, "del")
        .iter()
        .map(|r| (r.kind, r.result, r.transferred_to.map(|t| t.0)))
        .collect();
    let to = Some(task_id("m"));
    assert_eq!(moved, [(ResourceKind::Worktree, ResourceResult::Transferred, to)]);
    // W-9: the worktrees follow without a write of their own, and nothing physical happens.
    let after = (
        physical(&ground, &made.place.path),
        dump(&host)[TableId::Repos.name()].clone(),
        session_row(&host, "g3"),
    );
    assert_eq!(after, before);
    assert_eq!(outcomes(&host), []);
    assert_eq!(job_states(&host, "del"), [("t".to_owned(), JobState::Succeeded)]);
    // D-3: it becomes current only where there was none.
    assert_eq!(
        task_row(&host, "m").unwrap().current_environment_id.map(|e| e.0),
        Some(environment_id("e"))
    );
    // The next owner is deleted too: now `barred` is the oldest, and free.
    other.abort().unwrap();
    host.delete_task(&ann(), "m", &Operation::new("del-m")).unwrap();
    assert_eq!(owner_of(&host, "e"), Some(task_id("barred")));
    host.delete_task(&ann(), "barred", &Operation::new("del-barred")).unwrap();
    assert_eq!(owner_of(&host, "e"), Some(task_id("n")));
    assert_eq!(
        task_row(&host, "n").unwrap().current_environment_id.map(|e| e.0),
        Some(environment_id("own"))
    );
    work(&host);
    assert!(is_marked(&made.place.path));
    // With the last one it goes, salvaged.
    host.delete_task(&ann(), "n", &Operation::new("del-n")).unwrap();
    work(&host);
    assert_eq!(results_of(&host, "del-n"), [(ResourceResult::Removed, Reason::None)]);
    assert!(!made.place.path.exists());
    assert_eq!(salvaged_markers(&host), ["marker"]);
    assert_eq!(ground.leftovers(&host), Vec::<PathBuf>::new());
}

#[test]
fn x09_an_owner_is_archived_then_another_is_deleted_and_the_borrower_goes() {
    let ground = Ground::new();
    let host = ground.host();
    let (root, first) = settled(&ground, &host);
    task(&host, "t2").unwrap();
    environment(&host, "e2", "t2").unwrap();
    let second = host.make_worktree(&ann(), &wanted(&ground, &root, "e2", "b2")).unwrap();
    task(&host, "u").unwrap();
    session(&host, "guest", "u", Some("e")).unwrap();
    session(&host, "guest2", "u", Some("e2")).unwrap();
    mark(&first.place.path);
    mark(&second.place.path);
    archive(&host, "t", "arch");
    host.delete_task(&ann(), "t2", &Operation::new("del")).unwrap();
    work(&host);
    assert!(is_marked(&first.place.path) && is_marked(&second.place.path));
    assert_eq!(
        (owner_of(&host, "e"), owner_of(&host, "e2")),
        (Some(task_id("t")), Some(task_id("u")))
    );
    // W-22: the borrower's own end is about what it owns by now, and about nothing of `t`.
    archive(&host, "u", "arch-u");
    let concerned: Vec<_> = resources_of(&host, "arch-u")
        .iter()
        .filter_map(|r| r.environment_id)
        .map(|e| e.0)
        .collect();
    assert_eq!(concerned, [environment_id("e2")]);
    assert!(is_marked(&first.place.path) && is_marked(&second.place.path));
    work(&host);
    assert_eq!(results_of(&host, "arch-u"), [(ResourceResult::Removed, Reason::None)]);
    assert!(!second.place.path.exists());
}

#[test]
fn x09_with_every_borrower_barred_the_delete_is_refused() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    task(&host, "u").unwrap();
    session(&host, "guest", "u", Some("e")).unwrap();
    mark(&made.place.path);
    let before = physical(&ground, &made.place.path);
    let barrier = Steps::new(&host, "other", Trigger::Delete, None);
    barrier.reserve("u").unwrap();
    let deleted = host.delete_task(&ann(), "t", &Operation::new("del"));
    assert_eq!(in_the_way(&deleted), [("task_sessions", "guest".to_owned())]);
    let guard = refused(deleted);
    assert_eq!(guard, Guard::BorrowerKeeps);
    assert!(guard.may_pass_later());
    // Nothing is left of it: the task is as before, and free.
    assert!(is_active(&host, "t"));
    assert_eq!(job_states(&host, "del"), [("t".to_owned(), JobState::Cancelled)]);
    assert_eq!(owner_of(&host, "e"), Some(task_id("t")));
    assert_eq!(physical(&ground, &made.place.path), before);
    session(&host, "s2", "t", None).unwrap();
    // An archive is not refused: it preserves.
    barrier.abort().unwrap();
    let again = Operation::new("del");
    host.delete_task(&ann(), "t", &again).unwrap();
    assert_eq!(owner_of(&host, "e"), Some(task_id("u")));
    assert!(is_marked(&made.place.path));
}

#[test]
fn x09_an_archive_with_a_barred_borrower_preserves() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    task(&host, "u").unwrap();
    session(&host, "guest", "u", Some("e")).unwrap();
    mark(&made.place.path);
    let barrier = Steps::new(&host, "other", Trigger::Delete, None);
    barrier.reserve("u").unwrap();
    archive(&host, "t", "arch");
    work(&host);
    assert_eq!(results_of(&host, "arch"), [(ResourceResult::Preserved, Reason::Borrowed)]);
    assert!(is_marked(&made.place.path));
}

// X10

#[test]
fn x10_the_session_permission_deletes_sessions_and_nothing_else() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    task(&host, "old").unwrap();
    archive(&host, "old", "arch-old");
    work(&host);
    mark(&made.place.path);
    let before = (physical(&ground, &made.place.path), task_row(&host, "t").unwrap());
    let jobs_before = jobs(&host);
    host.delete_session(&bob(), "s").unwrap();
    assert_eq!(session_row(&host, "s"), None);
    assert_eq!(physical(&ground, &made.place.path), before.0);
    assert_eq!(jobs(&host), jobs_before, "a session's removal makes no job");
    let after = task_row(&host, "t").unwrap();
    assert_eq!(
        (after.lifecycle, after.current_environment_id),
        (before.1.lifecycle, before.1.current_environment_id)
    );
    // Not even together with the task permission.
    let builder = Who::new("bea", Permissions::SESSION.with(Permissions::TASK));
    for who in [bob(), builder] {
        let rows = dump(&host);
        let op = || Operation::new("o");
        let cascade = || Operation::new("o").with_cascade();
        let lines = journal_length(&host);
        let guards = [
            refused(host.archive_task(&who, "t", &op())),
            refused(host.archive_task(&who, "t", &cascade())),
            refused(host.delete_task(&who, "t", &op())),
            refused(host.delete_task(&who, "t", &cascade())),
            refused(host.reset_environment(&who, "t", "e", &op())),
            refused(host.unarchive_task(&who, "old", false)),
            refused(host.delete_workspace(&who, "w", &op())),
            refused(host.ask(&who, None, |c| {
                Ok(Command::Task(TaskCommand::Transfer {
                    environment: c.id("e")?,
                    to: c.id("old")?,
                }))
            })),
        ];
        assert_eq!(guards, [Guard::Permission; 8], "{who:?}");
        assert_eq!(dump(&host), rows, "{who:?}");
        assert_eq!(journal_length(&host), lines, "{who:?}");
    }
    assert!(is_marked(&made.place.path));
    // It is the permission that is missing, nothing else.
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
}

#[test]
fn x10_a_session_is_not_deleted_without_the_session_permission() {
    let ground = Ground::new();
    let host = ground.host();
    settled(&ground, &host);
    let owner = Who::new("lou", Permissions::LIFECYCLE.with(Permissions::TASK));
    assert_eq!(refused(host.delete_session(&owner, "s")), Guard::Permission);
    assert_eq!(session_row(&host, "s").unwrap().lifecycle, SessionLifecycle::Open);
}

// X18

/// `t` archived, its environment preserved for the session `guest` of `u`, marked.
fn preserved(ground: &Ground, host: &TestHost) -> freehold_store::Made {
    let (_, made) = settled(ground, host);
    task(host, "u").unwrap();
    session(host, "guest", "u", Some("e")).unwrap();
    mark(&made.place.path);
    archive(host, "t", "arch");
    work(host);
    assert_eq!(results_of(host, "arch"), [(ResourceResult::Preserved, Reason::Borrowed)]);
    made
}

fn reconciles(host: &TestHost) -> Vec<JobState> {
    jobs(host).into_iter().filter(|(t, _)| *t == Trigger::Reconcile).map(|(_, s)| s).collect()
}

#[test]
fn x18_the_borrowers_end_touches_nothing_and_a_later_pass_reconciles_once() {
    let ground = Ground::new();
    let host = ground.host();
    let made = preserved(&ground, &host);
    // While it is borrowed, no pass takes it up.
    for _ in 0..3 {
        let ticked = host.tick().unwrap();
        assert_eq!((ticked.reconciled, ticked.removals), (0, 0));
    }
    let before = (physical(&ground, &made.place.path), jobs(&host), environment_row(&host, "e"));
    let repos = dump(&host)[TableId::Repos.name()].clone();
    let owner = dump(&host)[TableId::Tasks.name()].clone();
    host.delete_session(&bob(), "guest").unwrap();
    assert_eq!(
        (physical(&ground, &made.place.path), jobs(&host), environment_row(&host, "e")),
        before
    );
    assert_eq!(dump(&host)[TableId::Repos.name()], repos);
    let t = vec![freehold_store::run::Stored::Text("t".to_owned())];
    assert_eq!(dump(&host)[TableId::Tasks.name()][&t], owner[&t], "the owner was not even locked");
    // The later pass.
    let ticked = host.tick().unwrap();
    assert_eq!((ticked.reconciled, ticked.removals), (1, 1));
    work(&host);
    assert_eq!(reconciles(&host), [JobState::Succeeded]);
    assert!(!made.place.path.exists());
    assert_eq!(ground.registered(), Vec::<PathBuf>::new());
    assert_eq!(ground.branches(), ["b"]);
    assert_eq!(salvaged_markers(&host), ["marker"]);
    assert_eq!(ground.leftovers(&host), Vec::<PathBuf>::new());
    let row = rows(&host, &[TableId::Repos]).view.repos.iter().next().copied().unwrap();
    assert_eq!((uuid_text(row.id.0), row.materialised), (made.repo.clone(), Materialised::No));
    // By the archive's authority, and not again.
    let all = rows(&host, &[TableId::Jobs]);
    let job = all.view.jobs.iter().find(|j| j.trigger == Trigger::Reconcile).unwrap();
    assert_eq!(job.authority.0, id_of(Kind::OperationId, "arch"));
    for _ in 0..3 {
        assert_eq!(host.tick().unwrap().reconciled, 0);
    }
    // What was salvaged comes back with the task.
    let stands = host.unarchive_task(&ann(), "t", false).unwrap();
    let freehold_store::Stands::FromBranchAndSalvage(salvage) = &stands[0].stands else {
        panic!("{stands:?}")
    };
    let back = host.recreate(&ann(), &made.repo).unwrap();
    host.restore(&ann(), salvage).unwrap();
    assert!(is_marked(&back.place.path));
}

#[test]
fn x18_a_reconcile_that_failed_is_not_reserved_again_by_itself() {
    let ground = Ground::new();
    let host = ground.host();
    let made = preserved(&ground, &host);
    // Somebody's repository inside: final until someone acts (W-31, C-9).
    let nested = made.place.path.join("nested");
    std::fs::create_dir(&nested).unwrap();
    git_in(&nested, &["init", "--quiet"]);
    host.delete_session(&bob(), "guest").unwrap();
    work(&host);
    assert_eq!(reconciles(&host), [JobState::Failed]);
    assert!(is_marked(&made.place.path));
    for _ in 0..3 {
        ground.pass(Span::hours(13), &[]);
        assert_eq!(host.tick().unwrap().reconciled, 0);
    }
    assert_eq!(reconciles(&host), [JobState::Failed], "at most once by itself");
    assert!(is_marked(&made.place.path));
    // After that by hand.
    std::fs::remove_dir_all(&nested).unwrap();
    let all = rows(&host, &[TableId::Jobs]);
    let job = all.view.jobs.iter().find(|j| j.trigger == Trigger::Reconcile).unwrap().id;
    host.ask(&ann(), None, |_| Ok(Command::Operator(OperatorCommand::Retry { job }))).unwrap();
    work(&host);
    assert_eq!(reconciles(&host), [JobState::Succeeded]);
    assert_eq!(salvaged_markers(&host), ["marker"]);
    assert!(!made.place.path.exists());
}

#[test]
fn x18_unarchive_before_the_pass_leaves_nothing_to_reconcile() {
    let ground = Ground::new();
    let host = ground.host();
    let made = preserved(&ground, &host);
    host.delete_session(&bob(), "guest").unwrap();
    host.unarchive_task(&ann(), "t", false).unwrap();
    work(&host);
    assert_eq!(reconciles(&host), []);
    assert!(is_marked(&made.place.path));
}

// X50

#[test]
fn x50_borrowing_while_the_owners_barrier_is_prepared_is_refused() {
    let ground = Ground::new();
    let host = ground.host();
    settled(&ground, &host);
    task(&host, "u").unwrap();
    environment(&host, "own", "u").unwrap();
    session(&host, "linked", "u", None).unwrap();
    // The owner's barrier is another instance's.
    let other = ground.host();
    let barrier = Steps::new(&other, "arch", Trigger::Archive, None);
    barrier.reserve("t").unwrap();
    let all = rows(&host, &[TableId::Jobs]);
    let job = uuid_text(all.view.jobs.iter().next().unwrap().id.0);
    let before = dump(&host);
    let borrowed = session(&host, "guest", "u", Some("e"));
    assert_eq!(in_the_way(&borrowed), [("task_resource_cleanup_jobs", job.clone())]);
    assert_eq!(refused(borrowed), Guard::OwnerUnbarred);
    let relinked = link(&host, "linked", "e");
    assert_eq!(in_the_way(&relinked), [("task_resource_cleanup_jobs", job)]);
    assert_eq!(refused(relinked), Guard::OwnerUnbarred);
    assert_eq!(dump(&host), before);
    // Archived, it is refused for another reason, naming the owner.
    barrier.snapshot().unwrap();
    barrier.mutate().unwrap();
    let borrowed = session(&host, "guest", "u", Some("e"));
    assert_eq!(in_the_way(&borrowed), [("tasks", "t".to_owned())]);
    assert_eq!(refused(borrowed), Guard::OwnerActive);
    assert_eq!(refused(link(&host, "linked", "e")), Guard::OwnerActive);
    // With the owner back, it is free.
    other.unarchive_task(&ann(), "t", false).unwrap();
    session(&host, "guest", "u", Some("e")).unwrap();
    link(&host, "linked", "e").unwrap();
}

fn link(host: &TestHost, session: &str, environment: &str) -> Result<Reply, HostError> {
    host.ask(&ann(), None, |c| {
        Ok(Command::Session(SessionCommand::Link {
            session: c.id(session)?,
            environment: c.id(environment)?,
        }))
    })
    .map(|accepted| accepted.reply)
}

#[test]
fn x50_a_relink_while_the_resource_is_in_removal_is_refused() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    task(&host, "u").unwrap();
    environment(&host, "own", "u").unwrap();
    session(&host, "linked", "u", None).unwrap();
    mark(&made.place.path);
    archive(&host, "t", "arch");
    // The removal is permitted, the directory not yet moved; then a person unarchives.
    let worker = host_with_hook(&ground, RemovalStep::Renamed, When::Before, || {
        let stands = host.unarchive_task(&ann(), "t", false).unwrap();
        assert_eq!(stands[0].stands, freehold_store::Stands::InRemoval);
        let before = dump(&host);
        let relinked = link(&host, "linked", "e");
        let row = [("task_environment_repos", made.repo.clone())];
        assert_eq!(in_the_way(&relinked), row);
        assert_eq!(refused(relinked), Guard::NotInRemoval);
        let borrowed = session(&host, "guest", "u", Some("e"));
        assert_eq!(in_the_way(&borrowed), row);
        assert_eq!(refused(borrowed), Guard::NotInRemoval);
        assert_eq!(dump(&host), before);
        Then::GoOn
    });
    let _ = worker.tick().unwrap();
    assert!(hook_was_met(&worker));
    for _ in 0..5 {
        ground.pass(Span::seconds(70), &[&host]);
        host.tick().unwrap();
    }
    // The authority is gone, so the directory was put back; now it can be used.
    assert_eq!(outcomes(&host), [Some(RemovalOutcome::Returned)]);
    assert!(is_marked(&made.place.path));
    assert_eq!(link(&host, "linked", "e").unwrap(), Reply::Done);
}

fn unarchive_session(host: &TestHost, session: &str) -> Result<Reply, HostError> {
    host.ask(&ann(), None, |c| {
        Ok(Command::Session(SessionCommand::Unarchive { session: c.id(session)? }))
    })
    .map(|accepted| accepted.reply)
}

/// What becomes of the owner while the borrower is archived.
#[derive(Clone, Copy, Debug)]
enum Owner {
    Active,
    Barred,
    Archived,
    Gone,
}

#[test]
fn x50_a_session_reopened_while_its_owner_is_away_opens_without_an_environment() {
    for owner in [Owner::Active, Owner::Barred, Owner::Archived, Owner::Gone] {
        let ground = Ground::new();
        let host = ground.host();
        let (_, made) = settled(&ground, &host);
        task(&host, "u").unwrap();
        session(&host, "guest", "u", Some("e")).unwrap();
        session(&host, "with-task", "u", Some("e")).unwrap();
        mark(&made.place.path);
        host.archive_session(&ann(), "guest").unwrap();
        archive(&host, "u", "arch-u");
        host.unarchive_task(&ann(), "u", false).unwrap();
        archive(&host, "u", "arch-u2");
        // The owner is another instance's.
        let other = ground.host();
        let barrier = Steps::new(&other, "arch", Trigger::Archive, None);
        match owner {
            Owner::Active => {}
            Owner::Barred => drop(barrier.reserve("t").unwrap()),
            Owner::Archived => archive(&other, "t", "arch"),
            Owner::Gone => {
                other.delete_task(&ann(), "t", &Operation::new("del")).unwrap();
            }
        }
        // Never refused for that reason, neither by the task nor by the session (W-23).
        let accepted = host
            .ask(&ann(), None, |c| {
                let task = c.id("u")?;
                Ok(Command::Operation(OperationCommand::Unarchive { task, cascade: false }))
            })
            .unwrap();
        let said =
            accepted.events.iter().filter(|e| e.kind == EventKind::EnvironmentUnavailable).count();
        let reply = unarchive_session(&host, "guest").unwrap();
        let here = Some(environment_id("e"));
        let (expected, environment, events) = match owner {
            Owner::Active => (Reply::Done, here, 0),
            Owner::Barred | Owner::Archived | Owner::Gone => {
                (Reply::OpenedWithoutEnvironment, None, 1)
            }
        };
        assert_eq!((reply, said), (expected, events), "{owner:?}");
        for opened in ["guest", "with-task"] {
            let row = session_row(&host, opened).unwrap();
            assert_eq!(row.lifecycle, SessionLifecycle::Open, "{owner:?}");
            assert_eq!(environment_of(&row), environment, "{owner:?} {opened}");
        }
    }
}
