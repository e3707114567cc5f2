//! The properties of closes, turns and instances.

use super::*;

const TOKEN: Token = Token(70);

fn commit(token: Token) -> Command {
    Command::Session(SessionCommand::CommitClose { session: SessionId(1), token })
}

fn begin(automatic: bool, force: bool) -> Command {
    Command::Session(SessionCommand::BeginClose {
        session: SessionId(1),
        kind: ClosingKind::Archive,
        token: TOKEN,
        automatic,
        force,
    })
}

fn mark(v: &mut View, until: i64) {
    let s = v.sessions.edit(1).unwrap();
    s.lifecycle = SessionLifecycle::Closing;
    (s.closing_kind, s.closing_token) = (Some(ClosingKind::Archive), Some(TOKEN));
    (s.closing_by, s.closing_lease) = (Some(ActorId(7)), Some(Time(until)));
}

/// Session 1 is being archived until then.
fn closing(until: i64) -> Scene {
    good().given(move |v| mark(v, until))
}

fn lift(v: &mut View) {
    let s = v.sessions.edit(1).unwrap();
    s.lifecycle = SessionLifecycle::Open;
    (s.closing_kind, s.closing_token) = (None, None);
    (s.closing_by, s.closing_lease) = (None, None);
}

fn archive(v: &mut View) {
    lift(v);
    let s = v.sessions.edit(1).unwrap();
    (s.lifecycle, s.archived_at) = (SessionLifecycle::Archived, Some(NOW));
}

fn end(v: &mut View) {
    let t = v.turns.edit(1).unwrap();
    t.phase = TurnPhase::Ended;
    (t.ended_at, t.outcome) = (Some(NOW), Some(TurnOutcome::Interrupted));
}

fn recover(liveness: Liveness) -> Command {
    Command::System(SystemCommand::RecoverTurn { turn: TurnId(1), liveness })
}

#[test]
fn p_18_a_runtime_outlives_a_close() {
    let closed = closing(500).by(commit(TOKEN)).then(|v| v.turns.remove(1));
    closed.clone().holds("P-18");
    let stopped = |v: &mut View| v.runtimes.edit(1).unwrap().status = RuntimeStatus::Stopped;
    let quiet = |v: &mut View| {
        v.turns.remove(1);
        v.inputs.remove(2);
        v.tasks.edit(1).unwrap().primary_session_id = None;
        archive(v);
    };
    let left = closing(500).by(commit(TOKEN)).then(quiet);
    left.breaks("P-18", "a runtime outlives");
    left.clone().then(stopped).holds("P-18");
    // What a task operation could not stop is in its job (T-5).
    left.by(recover(Liveness::Dead)).holds("P-18");
}

#[test]
fn p_33_a_turn_begins_in_the_unfinished() {
    let making =
        |v: &mut View| v.environments.edit(1).unwrap().status = EnvironmentStatus::Creating;
    let next = |v: &mut View| v.turns.insert(turn(2, 1));
    good().then(next).holds("P-33");
    good().given(making).holds("P-33");
    good().given(making).then(next).breaks("P-33", "still being made");
}

#[test]
fn p_34_a_close_is_its_closers() {
    closing(500).holds("P-34");
    closing(500).then(lift).breaks("P-34", "by somebody else");
    closing(500).by(commit(TOKEN)).then(archive).holds("P-34");
    closing(500).by(commit(Token(9))).then(archive).breaks("P-34", "by somebody else");
    // What has lapsed is anybody's to lift.
    closing(100).then(lift).holds("P-34");
    // T-6: a task's mutation takes every close over.
    let mutate = |operation| {
        Command::Operation(OperationCommand::Mutate {
            operation: OperationId(operation),
            scope: crate::command::Scope::Task,
            instance: InstanceId(1),
        })
    };
    let barred = closing(500)
        .given(|v| v.jobs.insert(job(5, 1, Trigger::Archive, JobState::Prepared)))
        .then(archive)
        .then(|v| v.jobs.insert(job(5, 1, Trigger::Archive, JobState::Pending)));
    barred.by(mutate(5)).holds("P-34");
    closing(500).by(mutate(1)).then(archive).breaks("P-34", "by somebody else");
}

#[test]
fn p_34_a_turn_is_its_instances() {
    let renew = |instance| {
        let instance = InstanceId(instance);
        Command::Turn(TurnCommand::Renew { turn: TurnId(1), instance })
    };
    let longer = |v: &mut View| v.turns.edit(1).unwrap().lease_until = Time(900);
    good().by(renew(1)).then(longer).holds("P-34");
    good().by(renew(2)).then(longer).breaks("P-34", "does not run it");
    good().then(|v| v.turns.edit(1).unwrap().instance_id = InstanceId(2)).breaks("P-34", "went to");
    good().by(recover(Liveness::Dead)).then(end).breaks("P-34", "whose lease holds");
    let lapsed = good().given(|v| v.turns.edit(1).unwrap().lease_until = NOW);
    lapsed.clone().by(recover(Liveness::Unknown)).then(end).holds("P-34");
    lapsed.by(recover(Liveness::Alive)).then(end).breaks("P-34", "is alive");
    good().by(begin(false, true)).then(end).breaks("P-34", "no say");
    let parked = good().given(|v| v.turns.edit(1).unwrap().phase = TurnPhase::Background);
    parked.clone().by(begin(false, true)).then(end).holds("P-34");
    parked.clone().by(begin(true, true)).then(end).breaks("P-34", "no say");
    parked.by(begin(false, false)).then(end).breaks("P-34", "no say");
    let declare = Command::Operator(OperatorCommand::DeclareStopped { runtime: RuntimeId(1) });
    let stopped = |v: &mut View| v.runtimes.edit(1).unwrap().status = RuntimeStatus::Stopped;
    let at_work = "what a turn runs on was said to be stopped";
    good().by(declare).then(stopped).breaks("P-34", at_work);
    let idle = good().given(|v| v.turns.remove(1)).by(declare);
    idle.clone().then(stopped).breaks("P-34", "what a living instance runs");
    let asked = |v: &mut View| v.runtimes.edit(1).unwrap().status = RuntimeStatus::Stopping;
    idle.clone().given(asked).then(stopped).breaks("P-34", "what a living instance runs");
    let remote = |v: &mut View| v.runtimes.edit(1).unwrap().kind = RuntimeKind::Remote;
    idle.clone().given(remote).then(stopped).breaks("P-34", "what a living instance runs");
    idle.clone().given(remote).given(asked).then(stopped).holds("P-34");
    let gone = |v: &mut View| v.instances.edit(1).unwrap().lease_until = NOW;
    idle.given(gone).then(stopped).holds("P-34");
}

#[test]
fn p_35_a_lapsed_closer_ends_nothing() {
    closing(500).by(commit(TOKEN)).then(archive).holds("P-35");
    closing(500).by(commit(Token(9))).then(archive).breaks("P-35", "does not hold it");
    closing(100).by(commit(TOKEN)).then(archive).breaks("P-35", "does not hold it");
    closing(100).by(commit(TOKEN)).holds("P-35");
}

#[test]
fn p_37_an_instance_that_is_gone_begins_something() {
    let gone = |v: &mut View| v.instances.edit(1).unwrap().lease_until = NOW;
    let drains = |v: &mut View| v.instances.edit(1).unwrap().draining = true;
    let submit = Command::Turn(TurnCommand::Submit {
        session: SessionId(1),
        input: InputId(9),
        origin: Origin::Person,
        turn: TurnId(9),
        runtime: RuntimeId(9),
        runtime_kind: RuntimeKind::Local,
        instance: InstanceId(1),
    });
    type Make = fn(&mut View);
    let begun: [(bool, Make); 5] = [
        (true, |v| v.turns.insert(turn(9, 1))),
        (true, |v| v.inputs.insert(input(9, InputState::Queued))),
        (true, |v| v.job_roots.edit(1).unwrap().token = Some(Token(91))),
        (false, |v| v.jobs.insert(job(9, 1, Trigger::Archive, JobState::Prepared))),
        (false, |v| v.attempts.insert(attempt(9, 1, AttemptState::Intended))),
    ];
    for (admission, make) in begun {
        good().by(submit).then(make).holds("P-37");
        good().by(submit).given(gone).then(make).breaks("P-37", "whose lease has lapsed");
        let drained = good().by(submit).given(drains).then(make);
        if admission {
            drained.breaks("P-37", "that drains");
        } else {
            drained.holds("P-37");
        }
    }
}

#[test]
fn p_38_a_policy_closes_what_is_starred() {
    let starred = |v: &mut View| v.sessions.edit(1).unwrap().starred = true;
    let closes = |v: &mut View| mark(v, 500);
    good().given(starred).by(begin(true, false)).holds("P-38");
    good().by(begin(true, false)).then(closes).holds("P-38");
    good().given(starred).by(begin(false, false)).then(closes).holds("P-38");
    good().given(starred).by(begin(true, false)).then(closes).breaks("P-38", "starred");
}

#[test]
fn p_23_a_turn_begins_on_a_runtime_that_stops() {
    let begins = |status| {
        good()
            .given(move |v| {
                v.turns.remove(1);
                v.runtimes.edit(1).unwrap().status = status;
                v.sessions.edit(1).unwrap().activity = Activity::Idle;
            })
            .then(|v| {
                v.turns.insert(turn(2, 1));
                v.sessions.edit(1).unwrap().activity = Activity::Running;
            })
    };
    begins(RuntimeStatus::Running).holds("P-23");
    begins(RuntimeStatus::Stopping).breaks("P-23", "runtime that stops");
    let elsewhere = begins(RuntimeStatus::Running).given(|v| {
        v.runtimes.edit(1).unwrap().instance_id = InstanceId(99);
        v.runtimes.edit(1).unwrap().kind = RuntimeKind::Local;
    });
    elsewhere.breaks("P-23", "process of another instance");
    let moved = begins(RuntimeStatus::Running)
        .given(|v| v.runtimes.edit(1).unwrap().task_environment_id = Some(EnvironmentId(77)));
    moved.breaks("P-23", "stands in another environment");
}
