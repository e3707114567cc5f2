//! The properties of steps: sessions, inputs, the ledger, authority.

use super::*;

fn unarchive(task: u128) -> Command {
    Command::Operation(OperationCommand::Unarchive { task: TaskId(task), cascade: false })
}

#[test]
fn p_15_an_archived_one_comes_back_by_itself() {
    let task = good().then(|v| {
        let task = v.tasks.edit(2).unwrap();
        (task.lifecycle, task.archived_at, task.archived_by) = (TaskLifecycle::Active, None, None);
    });
    task.breaks("P-15", "task became active");
    task.clone().by(unarchive(2)).holds("P-15");
    task.by(unarchive(2)).who_may(Permissions::SESSION).breaks("P-15", "task became active");
    let session = good().then(|v| {
        let s = v.sessions.edit(2).unwrap();
        (s.lifecycle, s.archived_at) = (SessionLifecycle::Open, None);
    });
    session.breaks("P-15", "session was reopened");
    let by = |id| Command::Session(SessionCommand::Unarchive { session: SessionId(id) });
    session.clone().by(by(2)).holds("P-15");
    session.clone().by(by(1)).breaks("P-15", "session was reopened");
    session.by(by(2)).with(|s| s.command.actor.id = ActorId(0)).breaks("P-15", "reopened");
}

#[test]
fn p_16_and_p_17_a_row_appears() {
    let appears = |id: u128| {
        good().then(|v| {
            v.sessions.insert(session(id, 1, 1));
            v.identities.insert(identity(IdentityKind::Session, id, IdentityState::Live));
        })
    };
    let create = |id| {
        Command::Session(SessionCommand::Create {
            session: SessionId(id),
            task: TaskId(1),
            environment: None,
            source: SessionSource::Person,
            parent: None,
        })
    };
    appears(5).breaks("P-17", "without its create command");
    appears(5).by(create(6)).breaks("P-17", "without its create command");
    appears(5).by(create(5)).holds("P-17");
    appears(5).by(create(5)).holds("P-16");
    appears(8).by(create(8)).breaks("P-16", "given again");
    appears(8).breaks("P-16", "a tombstone changed");
    good().by(create(1)).breaks("P-16", "given again");
    appears(5)
        .by(create(5))
        .with(|s| s.history.deleted.push((IdentityKind::Session, 5)))
        .breaks("P-16", "lives again");
    good().then(|v| v.tasks.insert(task(5))).breaks("P-17", "without its create command");
}

#[test]
fn p_20_a_refusal_that_stores_something() {
    let refused = |s: &mut Scene| s.accepted = false;
    good().with(refused).holds("P-20");
    good().then(|v| v.tasks.touch(1)).with(refused).breaks("P-20", "changed a row");
    good().then(|v| v.inputs.insert(input(5, InputState::Queued))).with(refused).breaks("P-20", "");
    good()
        .says(EventKind::InputQueued, RowKey::input(InputId(5)))
        .with(refused)
        .breaks("P-20", "an event");
    good().grants(RemovalStep::Salvaged).with(refused).breaks("P-20", "a warrant");
    let record = |id: u128| Request { id: RequestId(id), content_hash: ContentHash(1), at: NOW };
    let own = |id: u128| {
        good().then(|v| v.requests.insert(record(id))).with(|s| {
            s.accepted = false;
            s.command.request = Some(RequestId(1));
        })
    };
    own(1).holds("P-20");
    own(2).breaks("P-20", "changed a row");
}

#[test]
fn p_21_an_outcome_is_lost_or_said_twice() {
    let cancel = Command::Turn(TurnCommand::CancelInput { input: InputId(2) });
    let settled = good().by(cancel).then(|v| v.inputs.insert(input(2, InputState::Cancelled)));
    let about = RowKey::input(InputId(2));
    settled.breaks("P-21", "exactly once");
    let said = settled.says(EventKind::InputCancelled, about);
    said.holds("P-21");
    said.says(EventKind::InputCancelled, about).breaks("P-21", "exactly once");
    good().then(|v| v.inputs.remove(1)).breaks("P-21", "changed");
    good().then(|v| v.inputs.remove(2)).breaks("P-21", "vanished");
    good().then(|v| v.inputs.insert(input(1, InputState::Cancelled))).breaks("P-21", "changed");
    good()
        .with(|s| s.history.settled.push((InputId(1), InputState::Cancelled)))
        .breaks("P-21", "lost its outcome");
    good().then(|v| v.inputs.insert(input(5, InputState::Queued))).breaks("P-21", "by itself");
}

#[test]
fn p_23_a_turn_ends_without_its_event() {
    let end = |v: &mut View| {
        let t = v.turns.edit(1).unwrap();
        t.phase = TurnPhase::Ended;
        (t.ended_at, t.outcome) = (Some(NOW), Some(TurnOutcome::Completed));
        v.sessions.edit(1).unwrap().activity = Activity::Idle;
    };
    let about = RowKey::turn(TurnId(1));
    good().then(end).breaks("P-23", "exactly one terminal event");
    let said = good().then(end).says(EventKind::TurnEnded, about);
    said.holds("P-23");
    said.clone().says(EventKind::TurnEnded, about).breaks("P-23", "exactly one");
    said.with(|s| s.history.ended.push(TurnId(1))).breaks("P-23", "a second terminal event");
    good().given(|v| v.turns.remove(1)).breaks("P-23", "runs without a turn");
    let gone = good().then(|v| {
        v.sessions.edit(1).unwrap().activity = Activity::Idle;
        v.turns.remove(1);
    });
    gone.breaks("P-23", "exactly one");
    good()
        .given(end)
        .then(|v| v.turns.edit(1).unwrap().outcome = Some(TurnOutcome::Failed))
        .breaks("P-23", "after its end");
}

#[test]
fn p_24_a_late_write() {
    let write = |session, epoch| {
        Command::Session(SessionCommand::RecordActivity {
            session: SessionId(session),
            epoch,
            activity: Activity::Idle,
        })
    };
    let idle = |v: &mut View| v.sessions.edit(1).unwrap().activity = Activity::Idle;
    good().by(write(1, 1)).then(idle).holds("P-24");
    good().by(write(1, 0)).then(idle).breaks("P-24", "a late activity");
    good().by(write(1, 0)).holds("P-24");
    good()
        .by(write(2, 1))
        .then(|v| v.sessions.edit(2).unwrap().activity = Activity::Idle)
        .breaks("P-24", "a late activity");
    good().then(|v| v.sessions.edit(1).unwrap().epoch = 0).breaks("P-24", "went back");
    good()
        .then(|v| {
            let s = v.sessions.edit(2).unwrap();
            (s.lifecycle, s.archived_at) = (SessionLifecycle::Open, None);
        })
        .breaks("P-24", "did not grow");
    good().given(|v| v.sessions.edit(1).unwrap().epoch = 2).breaks("P-24", "older epoch");
}

#[test]
fn p_25_changes_and_events() {
    let star = |v: &mut View| v.sessions.edit(1).unwrap().starred = true;
    let about = RowKey::session(SessionId(1));
    good().then(star).breaks("P-25", "without an event");
    good().then(star).says(EventKind::SessionStarred, about).holds("P-25");
    good().says(EventKind::SessionStarred, about).breaks("P-25", "did not change");
    let other = RowKey::session(SessionId(2));
    good().then(star).says(EventKind::SessionStarred, other).breaks("P-25", "did not change");
    let half = good().then(star).then(|v| v.turns.edit(1).unwrap().phase = TurnPhase::Draining);
    half.says(EventKind::SessionStarred, about).breaks("P-25", "no event names");
    good().then(|v| v.turns.edit(1).unwrap().lease_until = Time(900)).holds("P-25");
    good().then(|v| v.tasks.touch(1)).holds("P-25");
}

#[test]
fn p_27_somebody_who_may_not() {
    let archive = |v: &mut View| {
        let task = v.tasks.edit(1).unwrap();
        task.lifecycle = TaskLifecycle::Archived;
    };
    let session = Permissions::SESSION.with(Permissions::TASK);
    let by = |scene: Scene, may| {
        let create = TaskCommand::CreateWorkspace { workspace: WorkspaceId(1) };
        scene.by(Command::Task(create)).who_may(may)
    };
    by(good().then(archive), session).breaks("P-27", "without the permission");
    by(good().then(archive), session.with(Permissions::LIFECYCLE)).holds("P-27");
    let reserve = |v: &mut View| v.jobs.insert(job(5, 1, Trigger::Delete, JobState::Prepared));
    by(good().then(reserve), session).breaks("P-27", "without the permission");
    by(good().then(reserve), session.with(Permissions::SYSTEM)).breaks("P-27", "without");
    let chat = |v: &mut View| {
        v.jobs.insert(job(5, 1, Trigger::QuickChatExpire, JobState::Prepared));
    };
    by(good().then(chat), session.with(Permissions::SYSTEM)).holds("P-27");
    let remove = |v: &mut View| v.removals.insert(removal(5, 1, 1));
    by(good().then(remove), session).breaks("P-27", "without the permission");
    let settle = |v: &mut View| v.resources.edit(1).unwrap().result = ResourceResult::Removed;
    by(good().then(settle), session).breaks("P-27", "without the permission");
    let star = |v: &mut View| v.sessions.edit(1).unwrap().starred = true;
    good().then(star).who_may(Permissions::NONE).breaks("P-27", "D-27");
}

#[test]
fn p_28_absent_from_what_could_not_be_seen() {
    let blind = Evidence {
        found: Found::Unknown,
        unsaved: Unsaved::NONE,
        obstacle: Reason::None,
        head: None,
    };
    let permit = |evidence| {
        Command::Cleanup(CleanupCommand::Permit {
            resource: ResourceId(1),
            token: Token(90),
            removal: RemovalId(5),
            removal_token: Token(1),
            evidence,
        })
    };
    let removal = |v: &mut View| v.removals.insert(rows::removal(5, 1, 1));
    good().by(permit(blind)).then(removal).breaks("P-28", "could not be seen");
    let seen = Evidence { found: Found::Missing, ..blind };
    good().by(permit(seen)).then(removal).holds("P-28");
    let absent = |v: &mut View| v.resources.edit(1).unwrap().result = ResourceResult::Absent;
    good().by(permit(blind)).then(absent).breaks("P-28", "absent was concluded");
    let settle = |liveness| {
        Command::Cleanup(CleanupCommand::SettleResource {
            resource: ResourceId(1),
            token: Token(90),
            liveness,
        })
    };
    let stopped = |v: &mut View| v.runtimes.edit(1).unwrap().status = RuntimeStatus::Stopped;
    good().by(settle(Liveness::Unknown)).then(stopped).breaks("P-28", "without proof");
    good().by(settle(Liveness::Dead)).then(stopped).holds("P-28");
    good()
        .then(|v| v.identities.insert(identity(IdentityKind::Task, 5, IdentityState::Gone)))
        .breaks("P-28", "not deleted");
}

#[test]
fn p_32_a_request_for_another_content() {
    let record = Request { id: RequestId(1), content_hash: ContentHash(2), at: NOW };
    let known = |content: u128| {
        good().given(|v| v.requests.insert(record)).with(|s| {
            s.command.request = Some(RequestId(1));
            s.command.content = ContentHash(content);
        })
    };
    known(2).holds("P-32");
    known(1).breaks("P-32", "another content");
    known(1).with(|s| s.accepted = false).holds("P-32");
    known(2).then(|v| v.tasks.touch(1)).breaks("P-32", "changed something");
    known(2).then(|v| v.requests.remove(1)).breaks("P-32", "record changed");
    good().with(|s| s.command.request = Some(RequestId(1))).breaks("P-32", "left no record");
    let reserve = |content: u128| {
        Command::Operation(OperationCommand::Reserve {
            operation: OperationId(1),
            job: JobId(9),
            task: TaskId(2),
            trigger: Trigger::Archive,
            environment: None,
            cascade_root: None,
            policy: UnsavedPolicy::Salvage,
            branch_policy: BranchPolicy::Keep,
            consent: Unsaved::NONE,
            unsaved: Unsaved::NONE,
            refuse_busy: false,
            instance: InstanceId(1),
            content: ContentHash(content),
        })
    };
    good().by(reserve(1)).holds("P-32");
    good().by(reserve(9)).breaks("P-32", "another content");
}

#[test]
fn p_33_somebody_takes_what_is_in_removal() {
    // Session 5 of task 2 refers to environment 2, whose worktree is in removal.
    let with = |v: &mut View| {
        v.sessions.insert(session(5, 2, 2));
    };
    let scene = good().given(with);
    scene.clone().then(|v| v.turns.insert(turn(5, 5))).breaks("P-33", "turn");
    scene.then(|v| v.turns.insert(turn(5, 1))).holds("P-33");
    let again = Attempt { branch_slug: Slug(2), ..attempt(5, 2, AttemptState::Intended) };
    good().then(|v| v.attempts.insert(again)).breaks("P-33", "attempt");
    good().then(|v| v.sessions.insert(session(5, 1, 2))).breaks("P-33", "borrower");
    good()
        .then(|v| v.environments.edit(2).unwrap().task_id = TaskId(1))
        .breaks("P-33", "environment");
    good()
        .then(|v| v.repos.edit(2).unwrap().worktree_id = Some(WorktreeId(9)))
        .breaks("P-33", "was replaced");
}
