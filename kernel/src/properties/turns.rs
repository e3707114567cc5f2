//! P-34, P-35, P-37, P-38 for closes, turns and instances, and what an admission and the commit of
//! a close need (S-4, S-12, S-15, S-20, S-22, S-35).

use super::words::*;
use super::{Changed, Holds, Step, demand};
use crate::command::*;
use crate::id::*;
use crate::rows::*;
use crate::view::Change;

/// P-34, S-22: while its lease holds, a close is ended by its closer's token alone, or taken over
/// by the mutation that closes its whole task (T-6).
pub(super) fn a_close_is_its_closers(step: &Step<'_>) -> Holds {
    let mark =
        |s: &Session| (s.lifecycle, s.closing_kind, s.closing_token, s.closing_by, s.closing_lease);
    for session in step.before.sessions.iter() {
        let held = session.lifecycle == SessionLifecycle::Closing
            && session.closing_lease.is_some_and(|lease| lease > step.after.now);
        let same = step.after.sessions.id(session.id.0).is_some_and(|s| mark(s) == mark(session));
        if !held || same {
            continue;
        }
        let own = match step.command.command {
            Command::Session(
                SessionCommand::CommitClose { session: id, token }
                | SessionCommand::AbortClose { session: id, token },
            ) => id == session.id && session.closing_token == Some(token),
            Command::Operation(OperationCommand::Mutate { operation, .. }) => step
                .before
                .jobs
                .iter()
                .any(|j| j.operation_id == operation && j.task_id == session.task_id),
            Command::Session(_)
            | Command::Operation(_)
            | Command::Turn(_)
            | Command::Task(_)
            | Command::Attempt(_)
            | Command::Cleanup(_)
            | Command::Operator(_)
            | Command::System(_) => false,
        };
        let says = "a close whose lease holds was ended by somebody else";
        demand(own, says, [session.row_key()])?;
    }
    Ok(())
}

/// P-34, S-13, S-14: a turn is ended by a command that names it, by recovery once its lease has
/// lapsed and only if it is not alive, by a person's force while it is parked, or by an operation
/// on its task or environment; and nobody renews it but the instance that runs it.
pub(super) fn a_turn_is_its_instances(step: &Step<'_>) -> Holds {
    let declares =
        matches!(step.command.command, Command::Operator(OperatorCommand::DeclareStopped { .. }));
    for turn in step.before.turns.iter().filter(|t| under_way(t)) {
        let now = step.after.turns.id(turn.id.0);
        let at = [turn.row_key()];
        let runtime = |view: &View| view.runtimes.id(turn.runtime_id.0).map(|r| r.status);
        let same = runtime(step.before) == runtime(step.after);
        demand(!declares || same, "what a turn runs on was said to be stopped", at)?;
        let passed_on = now.is_some_and(|t| t.instance_id != turn.instance_id);
        demand(!passed_on, "a turn went to another instance", at)?;
        if let Command::Turn(TurnCommand::Renew { instance, .. }) = step.command.command {
            let same = now.is_some_and(|t| t.lease_until == turn.lease_until);
            let own = instance == turn.instance_id;
            demand(same || own, "a turn was renewed by an instance that does not run it", at)?;
        }
        if now.is_some_and(under_way) {
            continue;
        }
        let may = match step.command.command {
            Command::Turn(TurnCommand::End { turn: id, .. }) => id == turn.id,
            Command::Session(SessionCommand::BeginClose { session, automatic, force, .. }) => {
                let parked = turn.phase == TurnPhase::Background;
                session == turn.session_id && force && !automatic && parked
            }
            Command::System(SystemCommand::RecoverTurn { turn: id, liveness }) => {
                let lapsed = turn.lease_until <= step.after.now;
                demand(lapsed, "recovery ended a turn whose lease holds", at)?;
                let dead = liveness != crate::evidence::Liveness::Alive;
                demand(dead, "recovery ended a turn that is alive", at)?;
                id == turn.id
            }
            Command::Operation(OperationCommand::Mutate { .. }) => true,
            Command::Session(_)
            | Command::Turn(_)
            | Command::System(_)
            | Command::Operation(_)
            | Command::Task(_)
            | Command::Attempt(_)
            | Command::Cleanup(_)
            | Command::Operator(_) => false,
        };
        demand(may, "a turn was ended by what has no say in it", at)?;
    }
    Ok(())
}

/// P-34, C-15: what a living instance runs is said to be stopped by nobody; but that one's machine
/// may be gone that is no process and was asked to stop.
pub(super) fn a_runtime_is_its_instances(step: &Step<'_>) -> Holds {
    let Command::Operator(OperatorCommand::DeclareStopped { runtime }) = step.command.command
    else {
        return Ok(());
    };
    let Some(row) = step.before.runtimes.id(runtime.0) else { return Ok(()) };
    let same = step.after.runtimes.id(runtime.0).is_some_and(|r| r.status == row.status);
    let lives = |i: &Instance| i.id == row.instance_id && i.lease_until > step.after.now;
    let lives = step.before.instances.iter().any(lives);
    let in_vain = row.kind != RuntimeKind::Local && row.status == RuntimeStatus::Stopping;
    let says = "what a living instance runs was said to be stopped";
    demand(same || !lives || in_vain, says, [row.row_key()])
}

/// P-35, S-22: a closer whose token was replaced, or whose lease has lapsed, ends no close.
pub(super) fn a_lapsed_closer_does_nothing(step: &Step<'_>) -> Holds {
    let (SessionCommand::CommitClose { session, token }
    | SessionCommand::AbortClose { session, token }) = (match step.command.command {
        Command::Session(command) => command,
        Command::Turn(_)
        | Command::Operation(_)
        | Command::Task(_)
        | Command::Attempt(_)
        | Command::Cleanup(_)
        | Command::Operator(_)
        | Command::System(_) => return Ok(()),
    })
    else {
        return Ok(());
    };
    let Some(row) = step.before.sessions.id(session.0) else { return Ok(()) };
    let held = row.closing_token == Some(token)
        && row.closing_lease.is_some_and(|lease| lease > step.after.now);
    let quiet = step.changes.iter().all(|c| c.row.table == TableId::Requests);
    demand(held || quiet, "a close was ended by somebody who does not hold it", [row.row_key()])
}

/// P-37, D-15, S-35: whoever drains admits and claims nothing, and in the name of an instance whose
/// lease has lapsed nothing begins at all.
pub(super) fn draining_begins_nothing(step: &Step<'_>) -> Holds {
    let living = |id: InstanceId, row: RowKey| {
        let lives = step.before.instances.id(id.0).is_some_and(|i| i.lease_until > step.after.now);
        demand(lives, "an instance whose lease has lapsed began something", [row])
    };
    let admits = |id: InstanceId, row: RowKey| {
        let drains = step.before.instances.id(id.0).is_some_and(|i| i.draining);
        demand(!drains, "an instance that drains took something on", [row])
    };
    for Changed { row, how, .. } in step.changes.iter().filter(|c| c.how != Change::Touched) {
        let new = *how == Change::Inserted;
        match row.table {
            TableId::Turns => {
                if let Some(turn) = step.after.turns.get(row.key).filter(|_| new) {
                    living(turn.instance_id, *row)?;
                    admits(turn.instance_id, *row)?;
                }
            }
            TableId::Inputs => {
                if let Command::Turn(TurnCommand::Submit { instance, .. }) = step.command.command
                    && new
                {
                    living(instance, *row)?;
                    admits(instance, *row)?;
                }
            }
            TableId::JobRoots => {
                let was = step.before.job_roots.get(row.key).and_then(|p| p.token);
                let part = step.after.job_roots.get(row.key);
                let claimed = part.filter(|p| p.token.is_some() && p.token != was);
                if let Some(by) = claimed.and_then(|p| p.claimed_by) {
                    living(by, *row)?;
                    admits(by, *row)?;
                }
            }
            TableId::Jobs => {
                let job = step.after.jobs.get(row.key).filter(|_| new);
                if let Some(by) = job.and_then(|j| j.instance_id) {
                    living(by, *row)?;
                }
            }
            TableId::Attempts => {
                if let Some(attempt) = step.after.attempts.get(row.key) {
                    let was = step.before.attempts.get(row.key).map(|a| a.instance_id);
                    if was != Some(attempt.instance_id) {
                        living(attempt.instance_id, *row)?;
                    }
                }
            }
            TableId::Workspaces
            | TableId::Tasks
            | TableId::Sessions
            | TableId::Environments
            | TableId::Repos
            | TableId::Removals
            | TableId::Trash
            | TableId::Salvage
            | TableId::Resources
            | TableId::Identities
            | TableId::Requests
            | TableId::Runtimes
            | TableId::Instances
            | TableId::ManagedRoots
            | TableId::Settings => {}
        }
    }
    Ok(())
}

/// P-38, S-15, S-20: an automatic closer spares what is starred, and ends nobody's parked work.
pub(super) fn automatic_closers_keep_to_their_policy(step: &Step<'_>) -> Holds {
    let Command::Session(SessionCommand::BeginClose { session, automatic: true, .. }) =
        step.command.command
    else {
        return Ok(());
    };
    let quiet = step.changes.iter().all(|c| c.row.table == TableId::Requests);
    let starred = step.before.sessions.id(session.0).is_some_and(|s| s.starred);
    demand(!starred || quiet, "a starred session is closed by a policy", [RowKey::session(session)])
}

/// P-18, S-22: the commit of a close leaves no runtime of the session that may still live. (A task
/// operation may: its cleanup job has the handle, T-5.)
pub(super) fn a_close_leaves_no_runtime(step: &Step<'_>) -> Holds {
    let Command::Session(SessionCommand::CommitClose { session, .. }) = step.command.command else {
        return Ok(());
    };
    let open = |view: &View| {
        view.sessions.id(session.0).is_some_and(|s| s.lifecycle == SessionLifecycle::Closing)
    };
    if !open(step.before) || open(step.after) {
        return Ok(());
    }
    for runtime in step.after.runtimes.iter().filter(|r| r.session_id == session) {
        let at = [runtime.row_key(), RowKey::session(session)];
        demand(!may_live(runtime), "a runtime outlives the close of its session", at)?;
    }
    Ok(())
}

/// P-23, S-4, S-12: a session that says it starts or runs has a turn under way.
pub(super) fn runs_only_with_a_turn(view: &View) -> Holds {
    for session in view.sessions.iter().filter(|s| s.lifecycle == SessionLifecycle::Open) {
        let runs = session.activity == Activity::Running || session.activity == Activity::Starting;
        let turn = view.turns.iter().any(|t| t.session_id == session.id && under_way(t));
        demand(!runs || turn, "a session runs without a turn", [session.row_key()])?;
    }
    Ok(())
}

/// P-33, S-12: no turn begins in an environment that is still being made.
pub(super) fn nothing_begins_in_the_unfinished(step: &Step<'_>) -> Holds {
    for turn in step.after.turns.iter().filter(|t| step.before.turns.id(t.id.0).is_none()) {
        let environment = step
            .before
            .sessions
            .id(turn.session_id.0)
            .and_then(|s| s.task_environment_id)
            .and_then(|e| step.before.environments.id(e.0));
        let Some(environment) = environment else { continue };
        let ready = environment.status != EnvironmentStatus::Creating;
        let at = [turn.row_key(), environment.row_key()];
        demand(ready, "a turn began in an environment that is still being made", at)?;
    }
    Ok(())
}

/// P-23, S-14: a turn begins on a runtime that nobody has asked to stop, and that its own instance
/// can reach.
pub(super) fn begins_on_a_living_runtime(step: &Step<'_>) -> Holds {
    for turn in step.after.turns.iter().filter(|t| under_way(t)) {
        if step.before.turns.id(turn.id.0).is_some() {
            continue;
        }
        let living =
            step.after.runtimes.id(turn.runtime_id.0).is_some_and(|r| {
                matches!(r.status, RuntimeStatus::Starting | RuntimeStatus::Running)
            });
        demand(living, "a turn begins on a runtime that stops", [turn.row_key()])?;
        let reached = step
            .after
            .runtimes
            .id(turn.runtime_id.0)
            .is_some_and(|r| r.kind != RuntimeKind::Local || r.instance_id == turn.instance_id);
        demand(reached, "a turn begins on a process of another instance", [turn.row_key()])?;
        // Its row says for whom a removal has to wait (P-4).
        let stands = step.after.runtimes.id(turn.runtime_id.0).and_then(|r| r.task_environment_id);
        let works = step.after.sessions.id(turn.session_id.0).and_then(|s| s.task_environment_id);
        let says = "a turn begins on a runtime that stands in another environment";
        demand(stands == works, says, [turn.row_key()])?;
    }
    Ok(())
}
