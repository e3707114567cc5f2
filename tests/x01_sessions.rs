//! X01 to X03, X08: sessions come and go, the task's workspace stays.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::cell::Cell;

use freehold_kernel::*;
use freehold_store::{Operation, Ticked, Who};
use support::*;

#[test]
fn x01_deleting_the_last_session_touches_nothing_physical() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    let before = (contents(&made.place.path), ground.registered(), ground.branches());
    host.delete_session(&ann(), "s").unwrap();
    assert_eq!((contents(&made.place.path), ground.registered(), ground.branches()), before);
    let rows = rows(&host, &[TableId::Jobs, TableId::Sessions, TableId::Removals]);
    assert_eq!(
        (rows.view.sessions.len(), rows.view.jobs.len(), rows.view.removals.len()),
        (0, 0, 0)
    );
}

#[test]
fn x01_deleting_a_session_makes_no_call_to_git_or_the_file_system() {
    let ground = Ground::new();
    let (_, made) = settled(&ground, &ground.host());
    session(&ground.host(), "s2", "t", None).unwrap();
    mark(&made.place.path);
    let calls = Cell::new(0);
    let host = ground.hooked(|_, _| {
        calls.set(calls.get() + 1);
        Act::Go
    });
    host.delete_session(&ann(), "s2").unwrap();
    host.archive_session(&ann(), "s").unwrap();
    host.delete_session(&ann(), "s").unwrap();
    assert_eq!(calls.get(), 0);
    // What recovers and cleans finds nothing that these left behind either.
    host.tick().unwrap();
    assert_eq!(calls.get(), 0);
    // The counter counts.
    host.archive_task(&ann(), "t", &Operation::new("archive")).unwrap();
    host.tick().unwrap();
    assert!(calls.get() > 0);
}

#[test]
fn x02_a_new_session_uses_the_same_workspace() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    host.delete_session(&ann(), "s").unwrap();
    session(&host, "s2", "t", None).unwrap();
    let rows = rows(&host, &[TableId::Sessions, TableId::Environments]);
    let environment = rows.view.environments.iter().next().unwrap().id;
    assert_eq!(rows.view.sessions.iter().next().unwrap().task_environment_id, Some(environment));
    assert!(is_marked(&host.places_of("t").unwrap()[0].path));
}

/// Everything that belongs to the session `s2` and its turn.
fn of_the_other(host: &TestHost) -> (Session, Turn, Runtime, Input) {
    let tables = [TableId::Sessions, TableId::Turns, TableId::Runtimes, TableId::Inputs];
    let rows = rows(host, &tables);
    let named = |kind, id| rows.names.text(kind, id).unwrap();
    let view = &rows.view;
    (
        *view.sessions.iter().find(|s| named(Kind::SessionId, s.id.0) == "s2").unwrap(),
        *view.turns.iter().find(|t| named(Kind::TurnId, t.id.0) == "turn-two").unwrap(),
        *view.runtimes.iter().find(|r| named(Kind::RuntimeId, r.id.0) == "runtime-two").unwrap(),
        *view.inputs.iter().find(|i| named(Kind::InputId, i.id.0) == "input-two").unwrap(),
    )
}

#[test]
fn x03_a_turn_goes_on_while_the_other_session_of_its_workspace_is_deleted() {
    let ground = Ground::new();
    let runtimes = Told::new(Liveness::Dead);
    let host = ground.host_with_runtimes(&runtimes);
    let (_, made) = settled(&ground, &host);
    session(&host, "s2", "t", None).unwrap();
    // The first session has worked too: it has a runtime of its own that still lives.
    assert_eq!(submit(&host, "s", "one").unwrap(), Reply::Done);
    run(&host, "one");
    end(&host, "one", "never");
    assert_eq!(submit(&host, "s2", "two").unwrap(), Reply::Done);
    run(&host, "two");
    mark(&made.place.path);
    // The other's agent: a process that stands in the directory.
    let mut agent = std::process::Command::new("cat")
        .current_dir(&made.place.path)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let before = (of_the_other(&host), contents(&made.place.path), ground.registered());

    host.delete_session(&ann(), "s").unwrap();
    // Only its own runtime was stopped.
    assert_eq!(runtimes.stopped(), ["runtime-one"]);
    host.tick().unwrap();
    ground.host().tick().unwrap();

    assert_eq!(
        (of_the_other(&host), contents(&made.place.path), ground.registered()),
        before,
        "the other session was disturbed"
    );
    assert!(agent.try_wait().unwrap().is_none(), "the agent was ended");
    // It goes on: a message waits for the turn, and the next turn starts in the same directory.
    assert_eq!(submit(&host, "s2", "three").unwrap(), Reply::Queued);
    end(&host, "two", "three");
    run_turn_only(&host, "three");
    let rows = rows(&host, &[TableId::Sessions, TableId::Turns, TableId::Jobs, TableId::Removals]);
    let other = rows.view.sessions.iter().next().unwrap();
    assert_eq!((other.lifecycle, other.activity), (SessionLifecycle::Open, Activity::Running));
    assert!(rows.view.turns.iter().any(|t| t.phase == TurnPhase::Running));
    assert_eq!((rows.view.jobs.len(), rows.view.removals.len()), (0, 0));
    assert_eq!(host.places_of("t").unwrap(), std::slice::from_ref(&made.place));
    assert!(is_marked(&made.place.path));
    drop(agent.stdin.take());
    agent.wait().unwrap();
}

/// A handed-off turn runs on in the runtime that was there.
fn run_turn_only(host: &TestHost, name: &str) {
    host.ask(&ann(), None, |c| {
        let turn = c.id(&format!("turn-{name}"))?;
        Ok(Command::Turn(TurnCommand::Advance { turn, phase: TurnPhase::Running }))
    })
    .unwrap();
}

#[test]
fn x03_the_session_whose_turn_runs_is_not_deleted() {
    let ground = Ground::new();
    let runtimes = Told::new(Liveness::Dead);
    let host = ground.host_with_runtimes(&runtimes);
    settled(&ground, &host);
    session(&host, "s2", "t", None).unwrap();
    submit(&host, "s2", "two").unwrap();
    run(&host, "two");
    let before = of_the_other(&host);
    assert_eq!(refused(host.delete_session(&ann(), "s2")), Guard::NoTurnWork);
    assert_eq!(refused(host.archive_session(&ann(), "s2")), Guard::NoTurnWork);
    assert_eq!(of_the_other(&host), before);
    assert_eq!(runtimes.stopped(), Vec::<String>::new());
    end(&host, "two", "never");
    host.delete_session(&ann(), "s2").unwrap();
}

/// The one session, but for the time of its last write.
fn the_session(host: &TestHost) -> Session {
    let rows = rows(host, &[TableId::Sessions]);
    assert_eq!(rows.view.sessions.len(), 1);
    Session { updated_at: Time(0), ..*rows.view.sessions.iter().next().unwrap() }
}

/// What is on the disk, and the rows that say whose it is.
fn ownership(ground: &Ground, host: &TestHost) -> impl PartialEq + std::fmt::Debug + use<> {
    let rows = rows(host, &[TableId::Tasks, TableId::Environments, TableId::Repos]);
    let owners: Vec<(TaskId, EnvironmentId)> =
        rows.view.environments.iter().map(|e| (e.task_id, e.id)).collect();
    let repos: Vec<Repo> = rows.view.repos.iter().copied().collect();
    let places = host.places_of("t").unwrap();
    let disk: Vec<_> = places.iter().map(|p| contents(&p.path)).collect();
    (owners, repos, places, disk, ground.registered(), ground.branches())
}

#[test]
fn x08_a_delete_that_cannot_quiesce_the_runtime_changes_nothing() {
    for answer in [Liveness::Unknown, Liveness::Alive] {
        let ground = Ground::new();
        let runtimes = Told::new(answer);
        let host = ground.host_with_runtimes(&runtimes);
        let (_, made) = settled(&ground, &host);
        submit(&host, "s", "one").unwrap();
        run(&host, "one");
        end(&host, "one", "never");
        mark(&made.place.path);
        let before = (the_session(&host), ownership(&ground, &host));

        assert_eq!(refused(host.delete_session(&ann(), "s")), Guard::RuntimeQuiesced);
        assert_eq!(runtimes.stopped(), ["runtime-one"], "the stop was tried");
        assert_eq!((the_session(&host), ownership(&ground, &host)), before);
        let tables = [TableId::Jobs, TableId::Removals, TableId::Runtimes];
        let left = rows(&host, &tables);
        assert_eq!((left.view.jobs.len(), left.view.removals.len()), (0, 0));
        // C-6: the last handle of what could not be stopped is kept.
        assert_eq!(left.view.runtimes.len(), 1);
        assert_ne!(left.view.runtimes.iter().next().unwrap().status, RuntimeStatus::Stopped);
        // Nothing is left to recover.
        ground.lapse(Span::minutes(2));
        assert_eq!(ground.host().tick().unwrap(), Ticked::default());
        assert_eq!((the_session(&host), ownership(&ground, &host)), before);
        // It is open: a message is taken; once the runtime is proven dead, the delete goes on.
        host.renew().unwrap();
        assert_eq!(submit(&host, "s", "two").unwrap(), Reply::Done);
        end(&host, "two", "never");
        runtimes.answer(Liveness::Dead);
        host.delete_session(&ann(), "s").unwrap();
        assert_eq!(rows(&host, &[TableId::Sessions]).view.sessions.len(), 0);
        assert!(is_marked(&made.place.path));
    }
}

#[test]
fn x08_a_process_that_dies_while_it_closes_leaves_the_session_as_it_was() {
    let ground = Ground::new();
    let watcher = ground.host();
    let (_, made) = settled(&ground, &watcher);
    mark(&made.place.path);
    for kind in [ClosingKind::Delete, ClosingKind::Archive] {
        let before = (the_session(&watcher), ownership(&ground, &watcher));
        let dying = ground.host();
        dying
            .ask(&ann(), None, |c| {
                Ok(Command::Session(SessionCommand::BeginClose {
                    session: c.id("s")?,
                    kind,
                    token: Token(derive(7, kind as u128)),
                    automatic: false,
                    force: false,
                }))
            })
            .unwrap();
        drop(dying);
        assert_eq!(the_session(&watcher).lifecycle, SessionLifecycle::Closing);
        assert_eq!(refused(submit(&watcher, "s", "early")), Guard::SessionNotClosing);
        // Its closer may still live: recovery leaves the mark alone.
        ground.pass(Span::seconds(29), &[&watcher]);
        assert_eq!(watcher.tick().unwrap().recovered, 0);
        assert_eq!(the_session(&watcher).lifecycle, SessionLifecycle::Closing);
        ground.pass(Span::seconds(1), &[&watcher]);
        let restarted = ground.host();
        assert_eq!(restarted.tick().unwrap().recovered, 1);
        assert_eq!((the_session(&watcher), ownership(&ground, &watcher)), before);
        assert_eq!(restarted.tick().unwrap(), Ticked::default());
    }
    assert_eq!(rows(&watcher, &[TableId::Jobs]).view.jobs.len(), 0);
}

#[test]
fn x08_after_the_commit_the_owner_is_found_by_its_task_and_nothing_is_left_to_recover() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    let before = ownership(&ground, &host);
    // The one permission that it takes (S-26).
    host.delete_session(&Who::new("bob", Permissions::SESSION), "s").unwrap();
    drop(host);
    ground.lapse(Span::hours(1));
    let restarted = ground.host();
    assert_eq!(restarted.tick().unwrap(), Ticked::default());
    assert_eq!(ownership(&ground, &restarted), before);
    assert_eq!(restarted.places_of("t").unwrap(), [made.place]);
    assert_eq!(refused(restarted.delete_session(&ann(), "s")), Guard::SessionNotDeleted);
    assert_tracked(&ground, &restarted, &[]);
}

#[test]
fn p44_what_waits_is_taken_up_by_another_instance() {
    let ground = Ground::new();
    let host = ground.host();
    settled(&ground, &host);
    assert_eq!(submit(&host, "s", "one").unwrap(), Reply::Done);
    assert_eq!(submit(&host, "s", "two").unwrap(), Reply::Queued);
    // The end of the turn will take it up: nothing waits for anybody else.
    assert_eq!(host.waiting_sessions().unwrap(), [""; 0]);
    assert_eq!(take_up(&host, "s", "early").unwrap(), Reply::Unchanged);
    drop(host);

    // That instance is gone, and its turn with it.
    ground.lapse(Span::hours(1));
    let told = Told::new(Liveness::Unknown);
    let next = ground.host_with_runtimes(&told);
    next.tick().unwrap();
    told.answer(Liveness::Dead);
    assert_eq!(next.waiting_sessions().unwrap(), ["s"]);
    assert_eq!(take_up(&next, "s", "two").unwrap(), Reply::Done);
    assert_eq!(take_up(&next, "s", "twice").unwrap(), Reply::Unchanged);
    run(&next, "two");
    let rows = rows(&next, &[TableId::Inputs, TableId::Turns]);
    assert!(rows.view.inputs.iter().all(|i| i.state == InputState::Delivered), "still waits");
    let outcomes: Vec<_> = rows.view.turns.iter().map(|t| t.outcome).collect();
    assert_eq!(outcomes.len(), 2);
    assert!(outcomes.contains(&Some(TurnOutcome::Interrupted)), "{outcomes:?}");
    assert_eq!(next.waiting_sessions().unwrap(), [""; 0]);

    // A closed session has nobody who waits.
    assert_eq!(submit(&next, "s", "three").unwrap(), Reply::Queued);
    end(&next, "two", "three");
    end(&next, "three", "never");
    told.answer(Liveness::Dead);
    next.delete_session(&ann(), "s").unwrap();
    assert_eq!(refused(take_up(&next, "s", "late")), Guard::SessionNotDeleted);
}

#[test]
fn s10_a_turn_whose_start_was_told_to_another_is_found_by_its_instance() {
    let ground = Ground::new();
    let (host, other) = (ground.host(), ground.host());
    settled(&ground, &host);
    assert_eq!(submit(&host, "s", "one").unwrap(), Reply::Done);
    assert_eq!(host.unstarted_turns().unwrap(), ["turn-one"]);
    // It is not the other's to start.
    assert_eq!(other.unstarted_turns().unwrap(), [""; 0]);
    run(&host, "one");
    assert_eq!(host.unstarted_turns().unwrap(), [""; 0]);
    // Ended by a call of the other instance, to whom the next one's start is told.
    assert_eq!(submit(&host, "s", "two").unwrap(), Reply::Queued);
    end(&other, "one", "two");
    let found = [host.unstarted_turns().unwrap(), other.unstarted_turns().unwrap()];
    assert_eq!(found, [vec!["turn-two".to_owned()], vec![]]);
    host.tick().unwrap();
    assert_eq!(host.unstarted_turns().unwrap(), ["turn-two"]);
}
