//! X12, X17, X19: workspaces and trees of tasks as a whole, and a delete that takes over.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::PathBuf;

use freehold_kernel::*;
use freehold_store::{HostError, Made, Operation, Stands};
use support::steps::*;
use support::{
    Ground, TestHost, ann, child_task, contents, environment, git_in, is_marked, jobs, mark,
    refused, rows, session, settled, task, wanted, workspace,
};

/// Drives an operation to its end by its steps; `gap` is called before each of them and at the
/// end. What appears meanwhile is reserved too (B-9). Returns how many gaps there were.
fn drive(
    steps: &Steps<'_>,
    tasks: &[&str],
    reserved: &RefCell<BTreeSet<String>>,
    mut gap: impl FnMut(),
) -> Result<(), HostError> {
    let mut todo: Vec<String> = in_id_order(tasks).into_iter().map(str::to_owned).collect();
    loop {
        for task in &todo {
            gap();
            steps.reserve(task)?;
            reserved.borrow_mut().insert(task.clone());
        }
        gap();
        match steps.snapshot() {
            Ok(_) => break,
            Err(error) => match error.guard() {
                Some(Guard::CascadeComplete | Guard::WorkspaceComplete) => {
                    let missed = in_the_way::<()>(&Err(error));
                    todo = missed.into_iter().map(|(_, id)| id).collect();
                }
                _other => return Err(error),
            },
        }
    }
    gap();
    steps.mutate()?;
    gap();
    Ok(())
}

/// Nothing physical is left, and what was unsaved is kept.
fn all_is_gone(ground: &Ground, host: &TestHost, markers: usize) {
    assert_eq!(ground.registered(), Vec::<PathBuf>::new());
    assert_eq!(ground.leftovers(host), Vec::<PathBuf>::new());
    assert_eq!(salvaged_markers(host), vec!["marker"; markers]);
    assert!(outcomes(host).iter().all(|o| *o == Some(RemovalOutcome::Removed)));
}

// X12

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Creator {
    Task,
    Session,
    Borrower,
}

/// The workspace of `t` (with a worktree, marked) and `t2` is deleted; before step `at` somebody
/// creates something. Returns whether the deletion has that many steps.
fn workspace_deleted_while_creating(at: usize, creator: Creator) -> bool {
    let ground = Ground::new();
    let host = ground.host();
    // One of the three has a real worktree; the others would only repeat it.
    let physical = creator == Creator::Session;
    if physical {
        let (_, made) = settled(&ground, &host);
        mark(&made.place.path);
    } else {
        workspace(&host, "w");
        task(&host, "t").unwrap();
        environment(&host, "e", "t").unwrap();
    }
    task(&host, "t2").unwrap();
    let maker = ground.host();
    let steps = Steps::new(&host, "wd", Trigger::WorkspaceDelete, None);
    let reserved = RefCell::new(BTreeSet::new());
    let (begun, now, came) = (Cell::new(false), Cell::new(0), RefCell::new(None));
    let gap = || {
        if now.get() == at {
            let (guard, result) = match creator {
                Creator::Task => {
                    (begun.get().then_some(Guard::WorkspaceActive), task(&maker, "late"))
                }
                Creator::Session => {
                    let barred = reserved.borrow().contains("t");
                    (barred.then_some(Guard::TaskUnbarred), session(&maker, "late", "t", None))
                }
                Creator::Borrower => {
                    let barred = reserved.borrow().contains("t2");
                    let owner = reserved.borrow().contains("t");
                    let guard = barred.then_some(Guard::TaskUnbarred);
                    let guard = guard.or(owner.then_some(Guard::OwnerUnbarred));
                    (guard, session(&maker, "late", "t2", Some("e")))
                }
            };
            *came.borrow_mut() = Some((guard, result));
        }
        now.set(now.get() + 1);
    };
    gap();
    steps.begin_workspace_delete("w").unwrap();
    begun.set(true);
    let view = rows(&host, &[TableId::Tasks]);
    let tasks: Vec<String> =
        view.view.tasks.iter().map(|t| view.names.text(Kind::TaskId, t.id.0).unwrap()).collect();
    let tasks: Vec<&str> = tasks.iter().map(String::as_str).collect();
    drive(&steps, &tasks, &reserved, gap).unwrap();
    let last = now.get() - 1;
    let Some((guard, result)) = came.take() else { return false };
    let case = format!("{creator:?} before step {at}");
    if at == last {
        // After the mutation it is gone.
        let gone = match creator {
            Creator::Task => Guard::WorkspaceNotDeleted,
            Creator::Session | Creator::Borrower => Guard::TaskNotDeleted,
        };
        assert_eq!(refused(result), gone, "{case}");
    } else if let Some(guard) = guard {
        assert_eq!(refused(result), guard, "{case}");
    } else {
        // It came first, so it is in the operation, and goes with it.
        result.unwrap();
        if creator == Creator::Task {
            assert!(job_states(&host, "wd").iter().any(|(t, _)| t == "late"), "{case}");
        }
    }
    work(&host);
    let left = rows(
        &host,
        &[
            TableId::Workspaces,
            TableId::Tasks,
            TableId::Sessions,
            TableId::Environments,
            TableId::Repos,
        ],
    );
    let left = left.view;
    assert_eq!(
        (left.workspaces.len(), left.tasks.len(), left.sessions.len(), left.environments.len()),
        (0, 0, 0, 0),
        "{case}"
    );
    assert!(job_states(&host, "wd").iter().all(|(_, s)| *s == JobState::Succeeded), "{case}");
    assert_eq!(left.repos.len(), 0, "{case}");
    all_is_gone(&ground, &host, usize::from(physical));
    true
}

fn in_every_order(creator: Creator) {
    let mut at = 0;
    while workspace_deleted_while_creating(at, creator) {
        at += 1;
    }
    // Before: begin, two barriers, snapshot, mutation; and after.
    assert!(at >= 6, "only {at} orders were tried");
}

#[test]
fn x12_a_workspace_is_deleted_while_a_task_is_created_in_it() {
    in_every_order(Creator::Task);
}

#[test]
fn x12_a_workspace_is_deleted_while_a_session_is_created_in_one_of_its_tasks() {
    in_every_order(Creator::Session);
}

/// A session of one task of the workspace borrows from another one of it. Both go, whichever
/// comes first.
#[test]
fn x12_a_workspace_is_deleted_while_one_of_its_tasks_borrows_from_another() {
    in_every_order(Creator::Borrower);
}

#[test]
fn x12_the_whole_deletion_in_one_call_and_the_same_call_again() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    task(&host, "t2").unwrap();
    mark(&made.place.path);
    host.delete_workspace(&ann(), "w", &Operation::new("wd")).unwrap();
    assert_eq!(workspace_row(&host, "w"), None);
    assert_eq!(refused(task(&host, "t3")), Guard::WorkspaceNotDeleted);
    work(&host);
    all_is_gone(&ground, &host, 1);
    // An empty one is simply removed, without a job.
    let before = jobs(&host).len();
    host.ask(&ann(), None, |c| {
        Ok(Command::Task(TaskCommand::CreateWorkspace { workspace: c.id("empty")? }))
    })
    .unwrap();
    host.delete_workspace(&ann(), "empty", &Operation::new("we")).unwrap();
    assert_eq!((workspace_row(&host, "empty"), jobs(&host).len()), (None, before));
}

#[test]
fn x12_a_deletion_that_is_refused_at_one_task_leaves_the_workspace_as_it_was() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    task(&host, "t2").unwrap();
    mark(&made.place.path);
    let instance = ground.host();
    for barred in ["t", "t2"] {
        let other = Steps::new(&instance, barred, Trigger::Archive, None);
        other.reserve(barred).unwrap();
        let result = host.delete_workspace(&ann(), "w", &Operation::new("wd"));
        assert_eq!(refused(result), Guard::TaskUnbarred);
        assert_eq!(workspace_row(&host, "w").unwrap().state, WorkspaceState::Active);
        assert!(job_states(&host, "wd").iter().all(|(_, s)| *s == JobState::Cancelled));
        other.abort().unwrap();
        for free in ["t", "t2"] {
            session(&host, &format!("{free} after {barred}"), free, None).unwrap();
        }
    }
    assert!(is_marked(&made.place.path));
    host.delete_workspace(&ann(), "w", &Operation::new("wd")).unwrap();
}

/// Before which step the owner dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dies {
    BeforeTheFirstBarrier,
    BetweenBarriers,
    BeforeTheSnapshot,
    BeforeTheMutation,
}

#[test]
fn x12_if_the_owner_dies_before_the_mutation_recovery_sets_the_workspace_back() {
    use Dies::*;
    for dies in [BeforeTheFirstBarrier, BetweenBarriers, BeforeTheSnapshot, BeforeTheMutation] {
        let ground = Ground::new();
        let survivor = ground.host();
        let (_, made) = settled(&ground, &survivor);
        task(&survivor, "t2").unwrap();
        mark(&made.place.path);
        let owner = ground.host();
        let steps = Steps::new(&owner, "wd", Trigger::WorkspaceDelete, None);
        steps.begin_workspace_delete("w").unwrap();
        let barriers = match dies {
            BeforeTheFirstBarrier => 0,
            BetweenBarriers => 1,
            BeforeTheSnapshot | BeforeTheMutation => 2,
        };
        for barred in in_id_order(&["t", "t2"]).into_iter().take(barriers) {
            steps.reserve(barred).unwrap();
        }
        if dies == BeforeTheMutation {
            steps.snapshot().unwrap();
        }
        // As long as it may still live, nobody robs it.
        ground.pass(Span::seconds(20), &[&survivor]);
        assert_eq!(survivor.tick().unwrap().recovered, 0, "{dies:?}");
        assert_eq!(workspace_row(&survivor, "w").unwrap().state, WorkspaceState::Deleting);
        assert_eq!(refused(task(&survivor, "t3")), Guard::WorkspaceActive);
        ground.pass(Span::seconds(11), &[&survivor]);
        assert!(survivor.tick().unwrap().recovered > 0, "{dies:?}");
        let back = workspace_row(&survivor, "w").unwrap();
        assert_eq!(
            (back.state, back.deleting_operation, back.deleting_instance, back.deleting_lease),
            (WorkspaceState::Active, None, None, None),
            "{dies:?}"
        );
        let states = job_states(&survivor, "wd");
        assert_eq!(states.len(), barriers);
        assert!(states.iter().all(|(_, s)| *s == JobState::Cancelled), "{dies:?}");
        task(&survivor, "t3").unwrap();
        session(&survivor, "s2", "t", None).unwrap();
        session(&survivor, "s3", "t2", None).unwrap();
        assert!(is_marked(&made.place.path));
        // It was only slow: it cannot go on where it was robbed.
        owner.renew().unwrap();
        assert_eq!(refused(steps.mutate()), Guard::BarrierHeld, "{dies:?}");
        // The id is free for a retry (B-1).
        owner.delete_workspace(&ann(), "w", &Operation::new("wd")).unwrap();
        work(&survivor);
        all_is_gone(&ground, &survivor, 1);
    }
}

#[test]
fn x12_a_slow_but_living_owner_is_not_robbed() {
    let ground = Ground::new();
    let survivor = ground.host();
    settled(&ground, &survivor);
    let owner = ground.host();
    let steps = Steps::new(&owner, "wd", Trigger::WorkspaceDelete, None);
    steps.begin_workspace_delete("w").unwrap();
    steps.reserve("t").unwrap();
    for _ in 0..5 {
        ground.pass(Span::seconds(20), &[&survivor, &owner]);
        steps.renew().unwrap();
        assert_eq!(survivor.tick().unwrap().recovered, 0);
    }
    // Nor by somebody who looked too early: the write looks again.
    let job = rows(&survivor, &[TableId::Jobs]).view.jobs.iter().next().unwrap().id;
    let recover = |command| survivor.ask(&ann(), None, |_| Ok(Command::System(command)));
    assert_eq!(refused(recover(SystemCommand::RecoverBarrier { job })), Guard::BarrierLapsed);
    let workspace = workspace_row(&survivor, "w").unwrap().id;
    let recovered = survivor.ask(&ann(), None, |c| {
        assert_eq!(c.id::<WorkspaceId>("w")?, workspace);
        Ok(Command::System(SystemCommand::RecoverWorkspaceDelete { workspace }))
    });
    assert_eq!(refused(recovered), Guard::BarrierLapsed);
    steps.snapshot().unwrap();
    steps.mutate().unwrap();
    assert_eq!(workspace_row(&survivor, "w"), None);
}

// X17

/// `p`, its child `c`, and `g` under that, each with an environment and a session, and those that
/// are named with a marked worktree; `old`, a child of `p` too, was archived by itself before;
/// `out` is beside the tree.
fn tree(ground: &Ground, host: &TestHost, physical: &[&str]) -> Vec<Made> {
    workspace(host, "w");
    let root = host.register_root(&ann(), &ground.root_path).unwrap();
    let mut made = Vec::new();
    for (name, parent) in [("p", None), ("c", Some("p")), ("g", Some("c"))] {
        child_task(host, name, parent).unwrap();
        environment(host, &format!("e-{name}"), name).unwrap();
        session(host, &format!("s-{name}"), name, None).unwrap();
        if physical.contains(&name) {
            let wanted = wanted(ground, &root, &format!("e-{name}"), &format!("b-{name}"));
            made.push(host.make_worktree(&ann(), &wanted).unwrap());
            mark(&made.last().unwrap().place.path);
        }
    }
    child_task(host, "old", Some("p")).unwrap();
    session(host, "s-old", "old", None).unwrap();
    host.archive_task(&ann(), "old", &Operation::new("arch-old")).unwrap();
    // A person had archived this one before.
    session(host, "s-before", "g", None).unwrap();
    host.archive_session(&ann(), "s-before").unwrap();
    child_task(host, "out", None).unwrap();
    work(host);
    made
}

const TREE: [&str; 3] = ["p", "c", "g"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comes {
    NewChild,
    MovedChild,
}

fn cascade_while_a_child_comes(trigger: Trigger, comes: Comes, under: &str, at: usize) -> bool {
    let ground = Ground::new();
    let host = ground.host();
    // One of the two ways has a real worktree; the other would only repeat it.
    let physical: &[&str] = if comes == Comes::NewChild { &["c"] } else { &[] };
    let made = tree(&ground, &host, physical);
    let maker = ground.host();
    let steps = Steps::new(&host, "cas", trigger, Some("p"));
    let reserved = RefCell::new(BTreeSet::new());
    let (now, came) = (Cell::new(0), RefCell::new(None));
    let gap = || {
        if now.get() == at {
            let result = match comes {
                Comes::NewChild => child_task(&maker, "late", Some(under)),
                Comes::MovedChild => maker
                    .ask(&ann(), None, |c| {
                        let parent = Some(c.id(under)?);
                        Ok(Command::Task(TaskCommand::Move { task: c.id("out")?, parent }))
                    })
                    .map(|_| ()),
            };
            *came.borrow_mut() = Some((reserved.borrow().contains(under), result));
        }
        now.set(now.get() + 1);
    };
    let deletes = trigger == Trigger::CascadeDelete;
    let tasks: &[&str] = if deletes { &["p", "c", "g", "old"] } else { &TREE };
    drive(&steps, tasks, &reserved, gap).unwrap();
    let last = now.get() - 1;
    let Some((barred, result)) = came.take() else { return false };
    let case = format!("{trigger:?}: {comes:?} under {under} before step {at}");
    let name = if comes == Comes::NewChild { "late" } else { "out" };
    let came_first = match (at == last, barred) {
        (true, _) => {
            let guard = if deletes { Guard::TaskNotDeleted } else { Guard::ParentActive };
            assert_eq!(refused(result), guard, "{case}");
            false
        }
        (false, true) => {
            assert_eq!(refused(result), Guard::ParentUnbarred, "{case}");
            false
        }
        (false, false) => {
            result.unwrap();
            true
        }
    };
    // All or nothing, and the late one is on the one side or the other.
    for member in TREE {
        assert_eq!(is_archived(&host, member), !deletes, "{case}");
        assert_eq!(task_row(&host, member).is_none(), deletes, "{case}");
    }
    let late = task_row(&host, name);
    match (came_first, deletes, comes) {
        (true, false, _) => assert_eq!(late.unwrap().lifecycle, TaskLifecycle::Archived, "{case}"),
        (true, true, _) => assert_eq!(late, None, "{case}"),
        (false, _, Comes::NewChild) => assert_eq!(late, None, "{case}"),
        (false, _, Comes::MovedChild) => {
            let late = late.unwrap();
            assert_eq!((late.lifecycle, late.parent_id), (TaskLifecycle::Active, None), "{case}");
        }
    }
    assert_eq!(task_row(&host, "old").is_none(), deletes, "{case}");
    work(&host);
    assert!(made.iter().all(|m| !m.place.path.exists()), "{case}");
    all_is_gone(&ground, &host, made.len());
    true
}

fn against_each_step(trigger: Trigger, comes: Comes, under: &str) {
    let mut at = 0;
    while cascade_while_a_child_comes(trigger, comes, under, at) {
        at += 1;
    }
    assert!(at >= 6, "only {at} orders were tried");
}

#[test]
fn x17_a_cascade_archive_while_a_child_is_created() {
    against_each_step(Trigger::CascadeArchive, Comes::NewChild, "c");
}

#[test]
fn x17_a_cascade_delete_while_a_child_is_created() {
    against_each_step(Trigger::CascadeDelete, Comes::NewChild, "g");
}

#[test]
fn x17_a_cascade_archive_while_a_task_moves_under_it() {
    against_each_step(Trigger::CascadeArchive, Comes::MovedChild, "g");
}

#[test]
fn x17_a_cascade_delete_while_a_task_moves_under_it() {
    against_each_step(Trigger::CascadeDelete, Comes::MovedChild, "p");
}

#[test]
fn x17_a_failure_between_two_barriers_is_all_or_nothing() {
    let ground = Ground::new();
    let host = ground.host();
    let made = tree(&ground, &host, &TREE);
    let before: Vec<_> = made.iter().map(|m| contents(&m.place.path)).collect();
    let tasks_before: Vec<_> = TREE.map(|t| task_row(&host, t)).into_iter().collect();
    let instance = ground.host();
    for barred in TREE {
        let other = Steps::new(&instance, barred, Trigger::Archive, None);
        other.reserve(barred).unwrap();
        for deletes in [false, true] {
            let operation = Operation::new("cas").with_cascade();
            let result = if deletes {
                host.delete_task(&ann(), "p", &operation)
            } else {
                host.archive_task(&ann(), "p", &operation)
            };
            let way = in_the_way(&result);
            assert_eq!(way.len(), 1, "T-4: the refusal names the task's barrier: {way:?}");
            assert_eq!(refused(result), Guard::TaskUnbarred, "{barred}");
            assert!(
                job_states(&host, "cas").iter().all(|(_, s)| *s == JobState::Cancelled),
                "{barred}: a barrier was left"
            );
        }
        other.abort().unwrap();
        assert_eq!(TREE.map(|t| task_row(&host, t)).to_vec(), tasks_before);
    }
    work(&host);
    assert_eq!(made.iter().map(|m| contents(&m.place.path)).collect::<Vec<_>>(), before);
    for member in TREE {
        session(&host, &format!("after-{member}"), member, None).unwrap();
    }
    // The id is free for the retry (B-1).
    host.archive_task(&ann(), "p", &Operation::new("cas").with_cascade()).unwrap();
    assert!(TREE.iter().all(|t| is_archived(&host, t)));
}

#[test]
fn x17_unarchiving_the_cascade_restores_exactly_what_it_archived() {
    let ground = Ground::new();
    let host = ground.host();
    let made = tree(&ground, &host, &TREE);
    host.archive_task(&ann(), "p", &Operation::new("cas").with_cascade()).unwrap();
    assert_eq!(job_states(&host, "cas").len(), 3, "what was archived before is not in it");
    work(&host);
    assert!(made.iter().all(|m| !m.place.path.exists()));
    host.unarchive_task(&ann(), "p", true).unwrap();
    for member in TREE {
        assert!(is_active(&host, member), "{member}");
        let back = session_row(&host, &format!("s-{member}")).unwrap();
        assert_eq!(back.lifecycle, SessionLifecycle::Open, "{member}");
    }
    let parents = ["c", "g"].map(|t| task_row(&host, t).unwrap().parent_id);
    assert_eq!(parents, ["p", "c"].map(|t| Some(task_row(&host, t).unwrap().id)));
    for before in ["s-old", "s-before"] {
        let stays = session_row(&host, before).unwrap();
        assert_eq!(stays.lifecycle, SessionLifecycle::Archived, "{before}");
    }
    let old = task_row(&host, "old").unwrap();
    assert_eq!(old.lifecycle, TaskLifecycle::Archived);
    assert_eq!(
        old.archived_by.map(|o| o.0),
        Some(freehold_store::names::id_of(Kind::OperationId, "arch-old"))
    );
    // Every worktree can be had again, with what was unsaved in it.
    for (member, made) in TREE.iter().zip(&made) {
        let reports = host.repositories_of(member).unwrap();
        let Stands::FromBranchAndSalvage(salvage) = &reports[0].stands else {
            panic!("{member}: {reports:?}")
        };
        let back = host.recreate(&ann(), &made.repo).unwrap();
        host.restore(&ann(), salvage).unwrap();
        assert!(is_marked(&back.place.path), "{member}");
    }
}

#[test]
fn x17_a_part_of_the_cascade_can_be_unarchived_alone() {
    let ground = Ground::new();
    let host = ground.host();
    tree(&ground, &host, &[]);
    host.archive_task(&ann(), "p", &Operation::new("cas").with_cascade()).unwrap();
    host.unarchive_task(&ann(), "c", false).unwrap();
    assert!(is_archived(&host, "p") && is_active(&host, "c") && is_archived(&host, "g"));
    assert_eq!(task_row(&host, "c").unwrap().parent_id, None, "T-7: it stands without a parent");
    // The rest comes back with the cascade, and what is back stays.
    host.unarchive_task(&ann(), "p", true).unwrap();
    assert!(TREE.iter().all(|t| is_active(&host, t)));
}

/// T-11: the same operation again is the same jobs, and no second work.
#[test]
fn x17_reissuing_a_cascade_converges() {
    for deletes in [false, true] {
        let ground = Ground::new();
        let host = ground.host();
        tree(&ground, &host, &["g"]);
        let operation = Operation::new("cas").with_cascade();
        // Asked of two instances in turn.
        let (second, calls) = (ground.host(), Cell::new(0));
        let call = || {
            calls.set(calls.get() + 1);
            let host = if calls.get() % 2 == 0 { &second } else { &host };
            if deletes {
                host.delete_task(&ann(), "p", &operation)
            } else {
                host.archive_task(&ann(), "p", &operation)
            }
        };
        call().unwrap();
        let before = dump(&host);
        let again = call();
        assert!(matches!(again, Ok(Reply::Job { .. })), "deletes {deletes}: {again:?}");
        assert_eq!(dump(&host), before, "deletes {deletes}");
        work(&host);
        all_is_gone(&ground, &host, 1);
        let again = call();
        assert!(matches!(again, Ok(Reply::Job { .. })), "deletes {deletes}: {again:?}");
    }
}

/// A child of the subtree borrows its parent's environment, and a parent its child's.
#[test]
fn x17_a_cascade_whose_members_borrow_from_each_other() {
    for (owner, borrower) in [("p", "c"), ("c", "p"), ("p", "g"), ("g", "c")] {
        // An archive has the same inventory in every pair.
        let operations: &[bool] = if owner == "c" { &[true, false] } else { &[true] };
        for deletes in operations.iter().copied() {
            let ground = Ground::new();
            let host = ground.host();
            tree(&ground, &host, &[owner]);
            session(&host, "guest", borrower, Some(&format!("e-{owner}"))).unwrap();
            let operation = Operation::new("cas").with_cascade();
            let done = if deletes {
                host.delete_task(&ann(), "p", &operation)
            } else {
                host.archive_task(&ann(), "p", &operation)
            };
            assert!(done.is_ok(), "{borrower} borrows from {owner}, deletes {deletes}: {done:?}");
            work(&host);
            all_is_gone(&ground, &host, 1);
        }
    }
}

// X19

/// The end of each of these: one job is left to do, every resource settled once, salvage kept.
fn settled_once(ground: &Ground, host: &TestHost, case: &str) {
    for _ in 0..12 {
        // Every lease of whoever died lapses.
        ground.clock.advance(Span::seconds(70));
        host.tick().unwrap();
        if job_states(host, "del").iter().all(|(_, s)| *s == JobState::Succeeded) {
            break;
        }
    }
    host.tick().unwrap();
    assert_eq!(task_row(host, "t"), None, "{case}");
    assert_eq!(job_states(host, "arch"), [("t".to_owned(), JobState::Cancelled)], "{case}");
    assert_eq!(job_states(host, "del"), [("t".to_owned(), JobState::Succeeded)], "{case}");
    let unsettled = |r: &Option<RemovalOutcome>| r.is_none();
    assert!(!outcomes(host).iter().any(unsettled), "{case}: {:?}", outcomes(host));
    // One removal took it, whoever asked for it.
    let took = outcomes(host).into_iter().filter(|o| *o == Some(RemovalOutcome::Removed)).count();
    assert_eq!(took, 1, "{case}: {:?}", outcomes(host));
    let results = results_of(host, "del");
    assert_eq!(results.len(), 1, "{case}");
    let done = [ResourceResult::Removed, ResourceResult::Absent];
    assert!(done.contains(&results[0].0), "{case}: {results:?}");
    assert!(
        results_of(host, "arch").iter().all(|(r, _)| *r != ResourceResult::Removing),
        "{case}: {:?}",
        results_of(host, "arch")
    );
    assert_eq!(ground.registered(), Vec::<PathBuf>::new(), "{case}");
    assert_eq!(ground.leftovers(host), Vec::<PathBuf>::new(), "{case}");
    assert_eq!(ground.branches(), ["b"], "{case}");
    let markers = salvaged_markers(host);
    assert!(!markers.is_empty() && markers.iter().all(|m| m == "marker"), "{case}: {markers:?}");
    // What settled it says where the unsaved work is.
    let named = resources_of(host, "del").iter().any(|r| r.salvage_id.is_some());
    assert!(named, "{case}: the result does not name the salvage");
    let before = dump(host);
    host.tick().unwrap();
    let after = dump(host);
    for table in [TableId::Jobs, TableId::Resources, TableId::Removals, TableId::Salvage] {
        assert_eq!(before[table.name()], after[table.name()], "{case}");
    }
}

fn archived(ground: &Ground, host: &TestHost) -> Made {
    let (_, made) = settled(ground, host);
    mark(&made.place.path);
    host.archive_task(&ann(), "t", &Operation::new("arch")).unwrap();
    made
}

#[test]
fn x19_deleted_while_its_archive_cleanup_is_pending() {
    let ground = Ground::new();
    let host = ground.host();
    let made = archived(&ground, &host);
    ground.host().delete_task(&ann(), "t", &Operation::new("del")).unwrap();
    assert!(is_marked(&made.place.path), "the deletion itself removes nothing");
    assert_eq!(job_states(&host, "arch"), [("t".to_owned(), JobState::Cancelled)]);
    settled_once(&ground, &host, "pending");
}

#[test]
fn x19_deleted_while_its_archive_cleanup_runs() {
    use RemovalStep::*;
    let fail = Then::Fail(Reason::Io);
    let points: [(RemovalStep, When, &[Then]); 6] = [
        // Permitted, and nothing done yet.
        (Salvaged, When::Before, &[Then::GoOn, Then::Die, fail]),
        // Salvaged, and not renamed.
        (Renamed, When::Before, &[Then::GoOn, Then::Die, fail]),
        // Renamed, and not recorded.
        (Renamed, When::After, &[Then::GoOn, Then::Die]),
        // Renamed and recorded.
        (Unregistered, When::Before, &[Then::GoOn, Then::Die, fail]),
        (Unregistered, When::After, &[Then::Die]),
        // All but the purge.
        (Purged, When::Before, &[Then::GoOn, Then::Die, fail]),
    ];
    for (step, when, thens) in points {
        for then in thens {
            let case = format!("{when:?} {step:?}, then {then:?}");
            let ground = Ground::new();
            let host = ground.host();
            archived(&ground, &host);
            let worker = host_with_hook(&ground, step, when, || {
                host.delete_task(&ann(), "t", &Operation::new("del")).unwrap();
                *then
            });
            let died = tick_and_perhaps_die(&worker);
            assert_eq!(died, *then == Then::Die, "{case}");
            assert!(hook_was_met(&worker), "{case}");
            drop(worker);
            settled_once(&ground, &host, &case);
            if *then != fail {
                // The removal that had begun went on: the delete wants the same thing gone.
                assert_eq!(outcomes(&host), [Some(RemovalOutcome::Removed)], "{case}");
            }
        }
    }
}

/// P-29, W-35: a file appears before the rename, the comparison salvages it, and its executor is
/// killed before that is recorded. The next one finds nothing to salvage any more, and the work
/// has its row all the same: one for the removal, as it has one ref (W-34).
#[test]
fn x19_what_a_killed_comparison_had_salvaged_has_its_row() {
    for busy in [false, true] {
        let ground = Ground::new();
        let host = ground.host();
        let (_, made) = settled(&ground, &host);
        if busy {
            mark(&made.place.path);
        }
        host.archive_task(&ann(), "t", &Operation::new("arch")).unwrap();
        let late = "late, and nowhere else\n";
        let first = host_with_hook(&ground, RemovalStep::Renamed, When::Before, || {
            std::fs::write(made.place.path.join("late"), late).unwrap();
            Then::Die
        });
        assert!(tick_and_perhaps_die(&first), "busy {busy}");
        drop(first);
        ground.clock.advance(Span::seconds(70));
        let second = host_with_hook(&ground, RemovalStep::Compared, When::After, || Then::Die);
        for _ in 0..12 {
            if tick_and_perhaps_die(&second) {
                break;
            }
            ground.clock.advance(Span::seconds(70));
        }
        assert!(hook_was_met(&second), "busy {busy}");
        drop(second);
        for _ in 0..12 {
            ground.clock.advance(Span::seconds(70));
            host.tick().unwrap();
        }
        assert_eq!(outcomes(&host), [Some(RemovalOutcome::Removed)], "busy {busy}");
        let kept = host.kept().unwrap();
        let named: Vec<Unsaved> = kept.iter().map(|k| k.contents).collect();
        assert!(
            matches!(named[..], [contents] if contents.covers(Unsaved::UNTRACKED)),
            "busy {busy}: {kept:?}"
        );
        let named = resources_of(&host, "arch").iter().any(|r| r.salvage_id.is_some());
        assert!(named, "busy {busy}: the result does not name the salvage");
        host.unarchive_task(&ann(), "t", false).unwrap();
        let [repo] = &host.repositories_of("t").unwrap()[..] else { panic!("one repository") };
        let Stands::FromBranchAndSalvage(salvage) = &repo.stands else { panic!("{repo:?}") };
        host.recreate(&ann(), &repo.repo).unwrap();
        host.restore(&ann(), salvage).unwrap();
        let path = host.places_of("t").unwrap().remove(0).path;
        assert_eq!(std::fs::read_to_string(path.join("late")).unwrap(), late);
        assert_eq!(is_marked(&path), busy);
    }
}

/// A step that was done although its call failed ("or will be finished by the next call", says
/// the port) is found and finished, not taken for one that was not done (W-37).
#[test]
fn x19_a_step_that_was_done_and_then_failed_is_finished() {
    use RemovalStep::*;
    for (step, takeovers) in
        [(Renamed, [false, true].as_slice()), (Unregistered, &[false]), (Purged, &[true])]
    {
        for deletes in takeovers.iter().copied() {
            let case = format!("{step:?}, deletes {deletes}");
            let ground = Ground::new();
            let host = ground.host();
            archived(&ground, &host);
            let worker = host_with_hook(&ground, step, When::After, || {
                if deletes {
                    host.delete_task(&ann(), "t", &Operation::new("del")).unwrap();
                }
                Then::Fail(Reason::Io)
            });
            tick_and_perhaps_die(&worker);
            assert!(hook_was_met(&worker), "{case}");
            drop(worker);
            for _ in 0..4 {
                ground.clock.advance(Span::seconds(3_700));
                host.tick().unwrap();
            }
            let last = if deletes { "del" } else { "arch" };
            let case =
                format!("{case}: {:?}, removals {:?}", results_of(&host, last), outcomes(&host));
            assert_eq!(ground.registered(), Vec::<PathBuf>::new(), "{case}");
            assert_eq!(ground.leftovers(&host), Vec::<PathBuf>::new(), "{case}");
            let states = [("t".to_owned(), JobState::Succeeded)];
            assert_eq!(job_states(&host, last), states, "{case}");
            let results = results_of(&host, last);
            assert_eq!(results, [(ResourceResult::Removed, Reason::None)], "{case}");
            assert!(salvaged_markers(&host).iter().all(|m| m == "marker"), "{case}");
        }
    }
}

/// The barrier of the delete is held while the archive's worker asks for its permission: no
/// warrant (T-12); an abort leaves the older job as it was.
#[test]
fn x19_while_the_delete_is_prepared_the_archive_gets_no_warrant() {
    let ground = Ground::new();
    let host = ground.host();
    let made = archived(&ground, &host);
    let other = ground.host();
    let delete = Steps::new(&other, "del", Trigger::Delete, None);
    delete.reserve("t").unwrap();
    delete.snapshot().unwrap();
    host.tick().unwrap();
    assert!(is_marked(&made.place.path));
    assert_eq!(results_of(&host, "arch"), [(ResourceResult::Waiting, Reason::Contested)]);
    assert_eq!(outcomes(&host), []);
    delete.abort().unwrap();
    ground.pass(Span::seconds(70), &[&host, &other]);
    work(&host);
    assert_eq!(results_of(&host, "arch"), [(ResourceResult::Removed, Reason::None)]);
    // Then the delete finds nothing left, and makes no second removal.
    host.delete_task(&ann(), "t", &Operation::new("del")).unwrap();
    work(&host);
    assert_eq!(outcomes(&host), [Some(RemovalOutcome::Removed)]);
    assert_eq!(salvaged_markers(&host), ["marker"]);
}

#[test]
fn x19_deleted_while_its_archive_cleanup_waits() {
    let ground = Ground::new();
    let host = ground.host();
    archived(&ground, &host);
    let fails = || Then::Fail(Reason::Io);
    let worker = host_with_hook(&ground, RemovalStep::Salvaged, When::Before, fails);
    let _ = worker.tick().unwrap();
    assert_eq!(job_states(&host, "arch"), [("t".to_owned(), JobState::RetryWait)]);
    ground.host().delete_task(&ann(), "t", &Operation::new("del")).unwrap();
    settled_once(&ground, &host, "waiting");
}

/// The archive's cleanup failed for good: the delete takes what it left.
#[test]
fn x19_deleted_after_its_archive_cleanup_failed() {
    let ground = Ground::new();
    let host = ground.host();
    let made = archived(&ground, &host);
    let nested = made.place.path.join("nested");
    std::fs::create_dir(&nested).unwrap();
    git_in(&nested, &["init", "--quiet"]);
    work(&host);
    assert_eq!(job_states(&host, "arch"), [("t".to_owned(), JobState::Failed)]);
    std::fs::remove_dir_all(&nested).unwrap();
    ground.host().delete_task(&ann(), "t", &Operation::new("del")).unwrap();
    // A failed job of an earlier archive cannot be retried any more (T-12).
    let job = rows(&host, &[TableId::Jobs]);
    let job = job.view.jobs.iter().find(|j| j.trigger == Trigger::Archive).unwrap().id;
    let retried = host.ask(&ann(), None, |_| Ok(Command::Operator(OperatorCommand::Retry { job })));
    assert_eq!(refused(retried), Guard::RetryAuthority);
    work(&host);
    assert_eq!(job_states(&host, "del"), [("t".to_owned(), JobState::Succeeded)]);
    assert_eq!(salvaged_markers(&host), ["marker"]);
    assert_eq!(ground.leftovers(&host), Vec::<PathBuf>::new());
}
