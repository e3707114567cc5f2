//! The properties of steps.

use super::*;

fn mutate(operation: u128) -> Command {
    Command::Operation(OperationCommand::Mutate {
        operation: OperationId(operation),
        scope: crate::command::Scope::Task,
        instance: InstanceId(1),
    })
}

fn unarchive(task: u128) -> Command {
    Command::Operation(OperationCommand::Unarchive { task: TaskId(task), cascade: false })
}

fn begin_close(session: u128) -> Command {
    Command::Session(SessionCommand::BeginClose {
        session: SessionId(session),
        kind: ClosingKind::Delete,
        token: Token(1),
        automatic: false,
        force: false,
    })
}

fn record_step(token: u128) -> Command {
    Command::Cleanup(CleanupCommand::RecordStep {
        removal: RemovalId(1),
        token: Token(token),
        step: RemovalStep::Salvaged,
        found_something: false,
        salvage: None,
    })
}

fn open_again(v: &mut View) {
    let task = v.tasks.edit(2).unwrap();
    (task.lifecycle, task.archived_at, task.archived_by) = (TaskLifecycle::Active, None, None);
}

/// Task 1 barred by a prepared job 5 with its snapshot.
fn barred(trigger: Trigger) -> Scene {
    good().given(|v| {
        let reset = trigger == Trigger::EnvironmentReset;
        let row = job(5, 1, trigger, JobState::Prepared);
        v.jobs.insert(Job { environment_id: reset.then_some(EnvironmentId(1)), ..row });
        v.resources.insert(resource(5, 5, 1, ResourceResult::Waiting));
        let handle = Resource {
            kind: ResourceKind::Runtime,
            runtime_id: Some(RuntimeId(1)),
            path: None,
            worktree_id: None,
            repo_id: None,
            ..resource(6, 5, 1, ResourceResult::Waiting)
        };
        v.resources.insert(handle);
    })
}

fn activate(v: &mut View) {
    let j = v.jobs.edit(5).unwrap();
    (j.state, j.mutated_at) = (JobState::Pending, Some(NOW));
    (j.instance_id, j.lease_until) = (None, None);
}

fn archive_one(v: &mut View) {
    let task = v.tasks.edit(1).unwrap();
    task.lifecycle = TaskLifecycle::Archived;
    (task.archived_at, task.archived_by) = (Some(NOW), Some(OperationId(5)));
}

#[test]
fn p_1_a_session_command_touches_a_workspace() {
    let closed = good().by(begin_close(1));
    closed.holds("P-1");
    closed.clone().then(|v| v.repos.remove(1)).breaks("P-1", "touched a workspace");
    let job_made = closed.then(|v| v.jobs.insert(job(5, 1, Trigger::Archive, JobState::Prepared)));
    job_made.breaks("P-1", "touched a workspace");
    good().by(begin_close(1)).grants(RemovalStep::Salvaged).breaks("P-1", "gave a warrant");
    good().then(|v| v.removals.insert(removal(5, 77, 1))).breaks("P-1", "without a cause");
    good().then(|v| v.removals.insert(removal(5, 1, 1))).holds("P-1");
}

#[test]
fn p_2_an_active_tasks_worktree_changes() {
    let gone = good().then(|v| v.repos.edit(1).unwrap().materialised = Materialised::No);
    gone.breaks("P-2", "by itself");
    gone.by(begin_close(1)).breaks("P-2", "by itself");
    good().then(|v| v.repos.remove(1)).breaks("P-2", "by itself");
    // What an archived task owns is cleanup's.
    good().then(|v| v.repos.edit(2).unwrap().materialised = Materialised::No).holds("P-2");
    let transfer = TaskCommand::Transfer { environment: EnvironmentId(1), to: TaskId(2) };
    let moved = good().then(|v| v.environments.edit(1).unwrap().task_id = TaskId(2));
    moved.breaks("P-2", "by itself");
    moved.by(Command::Task(transfer)).holds("P-2");
    barred(Trigger::Delete).by(mutate(5)).then(|v| v.repos.remove(1)).holds("P-2");
    barred(Trigger::Delete).by(mutate(9)).then(|v| v.repos.remove(1)).breaks("P-2", "by itself");
    barred(Trigger::OrphanRemoval)
        .by(mutate(5))
        .then(|v| v.repos.remove(1))
        .breaks("P-2", "by itself");
}

#[test]
fn p_4_a_live_workspace_is_permitted() {
    // Removal 1 is for worktree 2 of the archived task.
    good().grants(RemovalStep::Salvaged).holds("P-4");
    let live = good().given(open_again);
    live.clone().grants(RemovalStep::Salvaged).breaks("P-4", "an active task owns");
    live.clone().grants(RemovalStep::Unregistered).breaks("P-4", "an active task owns");
    live.clone().grants(RemovalStep::Returned).holds("P-4");
    live.clone().grants(RemovalStep::Purged).holds("P-4");
    // A reset's old worktrees are nobody's.
    live.given(|v| v.repos.edit(2).unwrap().status = RepoStatus::Deleted)
        .grants(RemovalStep::Salvaged)
        .holds("P-4");
    good()
        .given(|v| v.sessions.insert(session(5, 1, 2)))
        .grants(RemovalStep::Salvaged)
        .breaks("P-4", "a session protects");
}

#[test]
fn p_6_and_p_30_something_new_under_a_closed_task() {
    type Newcomer = (&'static str, fn(&mut View));
    let new: [Newcomer; 8] = [
        ("session", |v| v.sessions.insert(session(5, 1, 1))),
        ("environment", |v| v.environments.insert(environment(5, 1))),
        ("repository row", |v| v.repos.insert(repo(5, 1))),
        ("attempt", |v| v.attempts.insert(attempt(5, 1, AttemptState::Intended))),
        ("turn", |v| v.turns.insert(turn(5, 1))),
        ("runtime handle", |v| v.runtimes.insert(runtime(5, 1, 1))),
        ("input", |v| v.inputs.insert(input(5, InputState::Queued))),
        ("child", |v| v.tasks.insert(Task { parent_id: Some(TaskId(1)), ..task(5) })),
    ];
    for (what, change) in new {
        good().then(change).holds("P-6");
        good().then(change).holds("P-30");
        let barred = barred(Trigger::Archive).then(change);
        barred.breaks("P-6", what);
        barred.clone().by(mutate(5)).holds("P-6");
        barred.breaks("P-30", what);
        good().given(archive_one).then(change).breaks("P-30", what);
    }
    let borrow = |v: &mut View| v.sessions.insert(session(5, 9, 1));
    let other = |v: &mut View| v.tasks.insert(task(9));
    good().given(other).then(borrow).holds("P-6");
    barred(Trigger::Archive).given(other).then(borrow).breaks("P-6", "borrower");
    let leave = |v: &mut View| v.environments.edit(1).unwrap().task_id = TaskId(9);
    barred(Trigger::Archive).given(other).then(leave).breaks("P-6", "left a barred task");
    // An unarchive reopens what its operation closed.
    let reopened = good().then(|v| {
        open_again(v);
        let s = v.sessions.edit(2).unwrap();
        (s.lifecycle, s.archived_at, s.archived_by) = (SessionLifecycle::Open, None, None);
    });
    reopened.breaks("P-30", "reopened session");
    reopened.by(unarchive(2)).holds("P-30");
    good().then(|v| v.runtimes.insert(runtime(5, 77, 1))).breaks("P-30", "not there");
}

#[test]
fn p_7_an_incomplete_snapshot() {
    let archived = |scene: Scene| {
        scene.by(mutate(5)).then(|v| {
            archive_one(v);
            activate(v);
        })
    };
    archived(barred(Trigger::Archive)).holds("P-7");
    let missing = |table: fn(&mut View)| archived(barred(Trigger::Archive).given(table));
    missing(|v| v.resources.remove(5)).breaks("P-7", "a worktree is not");
    missing(|v| v.resources.remove(6)).breaks("P-7", "a runtime is not");
    missing(|v| v.environments.edit(1).unwrap().container_id = Some(HandleId(1)))
        .breaks("P-7", "a handle is not");
    missing(|v| v.attempts.insert(attempt(5, 1, AttemptState::Compensating)))
        .breaks("P-7", "an attempt is not");
    // T-12: a delete inherits what older jobs left.
    let deleted = |scene: Scene| scene.by(mutate(5)).then(activate);
    deleted(barred(Trigger::Delete)).holds("P-7");
    let older = |v: &mut View| {
        v.jobs.insert(job(4, 1, Trigger::EnvironmentReset, JobState::Failed));
        v.resources.insert(resource(4, 4, 7, ResourceResult::Failed));
    };
    deleted(barred(Trigger::Delete).given(older)).breaks("P-7", "an older job left");
}

#[test]
fn p_8_half_a_mutation() {
    let both = barred(Trigger::Archive).by(mutate(5)).then(|v| {
        archive_one(v);
        activate(v);
    });
    both.holds("P-8");
    barred(Trigger::Archive).then(archive_one).breaks("P-8", "archived without its job");
    barred(Trigger::Archive).then(activate).breaks("P-8", "without its mutation");
    barred(Trigger::Archive).then(|v| v.tasks.remove(1)).breaks("P-8", "deleted without its job");
    let deleted = barred(Trigger::Delete).then(|v| {
        activate(v);
        v.tasks.remove(1);
    });
    deleted.holds("P-8");
    barred(Trigger::EnvironmentReset).then(activate).breaks("P-8", "without its mutation");
    barred(Trigger::EnvironmentReset)
        .then(|v| {
            activate(v);
            v.repos.edit(1).unwrap().status = RepoStatus::Deleted;
        })
        .holds("P-8");
    barred(Trigger::Archive)
        .then(|v| v.jobs.edit(5).unwrap().state = JobState::Failed)
        .breaks("P-8", "ended otherwise");
    good()
        .then(|v| v.jobs.insert(job(5, 1, Trigger::Archive, JobState::Pending)))
        .breaks("P-8", "past its barrier");
    good().then(|v| v.jobs.insert(job(5, 2, Trigger::Reconcile, JobState::Pending))).holds("P-8");
}

#[test]
fn p_9_a_compensation_of_another_place() {
    let scene = |place: u128, change: fn(&mut Granted)| {
        good()
            .given(|v| {
                v.attempts.insert(attempt(5, 1, AttemptState::Compensating));
                let row = Removal { authority: AuthorityKind::Attempt, ..removal(1, 5, place) };
                v.removals.insert(row);
            })
            .grants(RemovalStep::Salvaged)
            .with(|s| change(s.granted.as_mut().unwrap()))
    };
    scene(5, |_| {}).holds("P-9");
    scene(1, |_| {}).breaks("P-9", "another place");
    scene(5, |g| g.delete_branch = true).breaks("P-9", "a branch that was there");
    scene(5, |_| {})
        .given(|v| v.attempts.edit(5).unwrap().state = AttemptState::Materialised)
        .breaks("P-9", "not to be undone");
}

#[test]
fn p_10_a_borrowed_worktree_is_permitted() {
    let lent = good().given(|v| v.sessions.insert(session(5, 1, 2)));
    lent.clone().grants(RemovalStep::Salvaged).breaks("P-10", "borrowed");
    lent.clone().grants(RemovalStep::Returned).holds("P-10");
    good().grants(RemovalStep::Salvaged).holds("P-10");
    lent.then(|v| v.environments.remove(2)).breaks("P-10", "was removed");
    good().then(|v| v.environments.remove(2)).holds("P-10");
}

#[test]
fn p_11_a_removal_changes_without_its_token() {
    let step = |v: &mut View| v.removals.edit(1).unwrap().last_step = RemovalStep::Salvaged;
    good().then(step).by(record_step(51)).holds("P-11");
    good().then(step).by(record_step(52)).breaks("P-11", "without its token");
    good()
        .then(|v| v.removals.edit(1).unwrap().last_step = RemovalStep::Purged)
        .by(record_step(51))
        .breaks("P-11", "skipped");
    let settled = |v: &mut View| {
        v.removals.edit(1).unwrap().outcome = Some(RemovalOutcome::Returned);
    };
    good().given(settled).then(step).by(record_step(51)).breaks("P-11", "settled removal");
    good().then(|v| v.removals.remove(1)).breaks("P-11", "vanished");
    good().grants(RemovalStep::Salvaged).holds("P-11");
    good().grants(RemovalStep::Purged).breaks("P-11", "does not back");
    good()
        .grants(RemovalStep::Salvaged)
        .with(|s| s.granted.as_mut().unwrap().token = Token(99))
        .breaks("P-11", "does not back");
    good()
        .given(|v| v.removals.edit(1).unwrap().lease_until = NOW)
        .grants(RemovalStep::Salvaged)
        .breaks("P-11", "lapsed lease");
}

#[test]
fn p_12_a_living_executor_is_robbed() {
    let take = |v: &mut View| v.removals.edit(1).unwrap().instance_id = InstanceId(2);
    good().then(take).breaks("P-12", "from a living executor");
    let lapsed = |v: &mut View| v.removals.edit(1).unwrap().lease_until = NOW;
    good().given(lapsed).then(take).holds("P-12");
    let attempt_taken = |v: &mut View| v.attempts.edit(1).unwrap().instance_id = InstanceId(2);
    good().then(attempt_taken).breaks("P-12", "from a living maker");
    good()
        .then(|v| v.job_roots.edit(1).unwrap().token = Some(Token(2)))
        .breaks("P-12", "without an end");
}

#[test]
fn p_13_a_finished_job_moves() {
    let ended = |state: JobState| {
        good().given(|v| {
            let j = v.jobs.edit(1).unwrap();
            (j.state, j.completed_at) = (state, Some(NOW));
        })
    };
    let again = |v: &mut View| {
        let j = v.jobs.edit(1).unwrap();
        (j.state, j.completed_at) = (JobState::Pending, None);
    };
    let retry = Command::Operator(OperatorCommand::Retry { job: JobId(1) });
    ended(JobState::Failed).then(again).breaks("P-13", "changed");
    ended(JobState::Failed).then(again).by(retry).holds("P-13");
    let nobody = ended(JobState::Failed).then(again).by(retry).who_may(Permissions::SYSTEM);
    nobody.breaks("P-13", "changed");
    ended(JobState::Succeeded).then(again).by(retry).breaks("P-13", "changed");
    ended(JobState::Cancelled).then(again).by(retry).breaks("P-13", "changed");
    ended(JobState::Failed).then(|v| v.jobs.remove(1)).breaks("P-13", "vanished");
}

#[test]
fn p_14_cleanup_after_an_unarchive() {
    let stopped = |s: &mut Scene| s.history.stopped.push(JobId(1));
    good().grants(RemovalStep::Salvaged).holds("P-14");
    good().grants(RemovalStep::Salvaged).with(stopped).breaks("P-14", "from before");
    good().grants(RemovalStep::Returned).with(stopped).holds("P-14");
    good().given(open_again).grants(RemovalStep::Renamed).breaks("P-14", "that it serves");
    good().then(open_again).by(unarchive(2)).breaks("P-14", "left a cleanup going");
    good()
        .then(|v| {
            open_again(v);
            let j = v.jobs.edit(1).unwrap();
            (j.state, j.completed_at) = (JobState::Cancelled, Some(NOW));
        })
        .by(unarchive(2))
        .holds("P-14");
    // A delete took the task over and wants the same thing gone.
    good()
        .given(|v| {
            v.jobs.insert(job(5, 2, Trigger::Delete, JobState::Pending));
            v.resources.insert(resource(5, 5, 2, ResourceResult::Waiting));
        })
        .grants(RemovalStep::Renamed)
        .with(stopped)
        .holds("P-14");
}
