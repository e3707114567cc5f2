//! P-15..P-19, P-23, P-24: closed stays closed, one turn at a time.

use super::ghost::identity_kind;
use super::words::*;
use super::{Changed, History, Holds, Step, demand, witness};
use crate::command::*;
use crate::decision::EventKind;
use crate::id::*;
use crate::rows::*;
use crate::view::Change;

/// P-15: an archived task or session comes back only by an unarchive that names a person.
pub(super) fn archived_leaves_only_by_unarchive(step: &Step<'_>) -> Holds {
    let person = |needs: Permissions| {
        step.command.actor.id != ActorId(0) && step.command.actor.may.covers(needs)
    };
    let task_back = match step.command.command {
        Command::Operation(OperationCommand::Unarchive { .. }) => person(Permissions::LIFECYCLE),
        Command::Operation(_)
        | Command::Session(_)
        | Command::Turn(_)
        | Command::Task(_)
        | Command::Attempt(_)
        | Command::Cleanup(_)
        | Command::Operator(_)
        | Command::System(_) => false,
    };
    for task in step.before.tasks.iter().filter(|t| t.lifecycle == TaskLifecycle::Archived) {
        let left = active(step.after, task.id);
        demand(!left || task_back, "an archived task became active", [task.row_key()])?;
    }
    for session in step.before.sessions.iter().filter(|s| s.archived_at.is_some()) {
        let Some(now) = step.after.sessions.id(session.id.0) else { continue };
        let by_name = match step.command.command {
            Command::Session(SessionCommand::Unarchive { session: id }) => {
                id == session.id && person(Permissions::SESSION)
            }
            Command::Operation(OperationCommand::Unarchive { .. }) => {
                task_back && archived(step.before, session.task_id)
            }
            Command::Session(_)
            | Command::Operation(_)
            | Command::Turn(_)
            | Command::Task(_)
            | Command::Attempt(_)
            | Command::Cleanup(_)
            | Command::Operator(_)
            | Command::System(_) => false,
        };
        let still = now.archived_at.is_some() && now.lifecycle != SessionLifecycle::Open;
        demand(still || by_name, "an archived session was reopened", [session.row_key()])?;
    }
    Ok(())
}

/// P-16 as a state: what lives has a living identity, what has a tombstone is not there.
pub(super) fn the_living_have_no_tombstone(view: &View) -> Holds {
    let live = |kind: IdentityKind, id: u128| {
        view.identities
            .get(Key { part: kind as u8 + 1, id })
            .is_some_and(|i| i.state == IdentityState::Live)
    };
    for task in view.tasks.iter() {
        let ok = live(IdentityKind::Task, task.id.0);
        demand(ok, "a task without a living identity", [task.row_key()])?;
    }
    for session in view.sessions.iter() {
        let ok = live(IdentityKind::Session, session.id.0);
        demand(ok, "a session without a living identity", [session.row_key()])?;
    }
    for workspace in view.workspaces.iter() {
        let ok = live(IdentityKind::Workspace, workspace.id.0);
        demand(ok, "a workspace without a living identity", [workspace.row_key()])?;
    }
    for identity in view.identities.iter() {
        let there = match identity.kind {
            IdentityKind::Task => view.tasks.id(identity.id.0).is_some(),
            IdentityKind::Session => view.sessions.id(identity.id.0).is_some(),
            IdentityKind::Workspace => view.workspaces.id(identity.id.0).is_some(),
        };
        let alive = identity.state == IdentityState::Live;
        demand(there == alive, "an identity says otherwise than its row", [identity.row_key()])?;
        let marked = identity.gone_at.is_some() && identity.gone_by.is_some();
        demand(marked != alive, "a tombstone says when and by whom", [identity.row_key()])?;
    }
    Ok(())
}

/// P-16: what was deleted never comes back, by the rows' own history.
pub(super) fn deleted_is_absorbing(step: &Step<'_>, history: &History) -> Holds {
    if let Some((kind, id)) = created(&step.command.command) {
        let used = step.before.identities.get(Key { part: kind as u8 + 1, id });
        let again = step.command.request.is_some_and(|r| step.before.requests.id(r.0).is_some());
        if let Some(identity) = used {
            let ok = !step.accepted || again;
            demand(ok, "a used id was given again", [identity.row_key()])?;
        }
    }
    for Changed { row, how, .. } in step.changes {
        if *how == Change::Inserted
            && let Some(kind) = identity_kind(row.table)
        {
            let used = history.deleted.contains(&(kind, row.key.id));
            demand(!used, "a deleted id lives again", [*row])?;
        }
        let tombstone = row.table == TableId::Identities
            && step.before.identities.get(row.key).is_some_and(|i| i.state == IdentityState::Gone);
        demand(!tombstone || *how == Change::Touched, "a tombstone changed", [*row])?;
    }
    Ok(())
}

/// The id that a command makes.
fn created(command: &Command) -> Option<(IdentityKind, u128)> {
    match command {
        Command::Session(SessionCommand::Create { session, .. }) => {
            Some((IdentityKind::Session, session.0))
        }
        Command::Task(TaskCommand::Create { task, .. }) => Some((IdentityKind::Task, task.0)),
        Command::Task(TaskCommand::CreateWorkspace { workspace }) => {
            Some((IdentityKind::Workspace, workspace.0))
        }
        Command::Session(_)
        | Command::Task(_)
        | Command::Turn(_)
        | Command::Operation(_)
        | Command::Attempt(_)
        | Command::Cleanup(_)
        | Command::Operator(_)
        | Command::System(_) => None,
    }
}

/// P-17.
pub(super) fn only_create_creates(step: &Step<'_>) -> Holds {
    for Changed { row, how, .. } in step.changes {
        if *how != Change::Inserted {
            continue;
        }
        let named = match step.command.command {
            Command::Session(SessionCommand::Create { session, .. }) => {
                *row == RowKey::session(session)
            }
            Command::Task(TaskCommand::Create { task, .. }) => *row == RowKey::task(task),
            Command::Task(TaskCommand::CreateWorkspace { workspace }) => {
                *row == RowKey::workspace(workspace)
            }
            Command::Session(_)
            | Command::Task(_)
            | Command::Turn(_)
            | Command::Operation(_)
            | Command::Attempt(_)
            | Command::Cleanup(_)
            | Command::Operator(_)
            | Command::System(_) => false,
        };
        let made = identity_kind(row.table).is_some();
        demand(!made || named, "a row appeared without its create command", [*row])?;
    }
    Ok(())
}

/// P-18, S-5, S-6: nothing is active on an archived or deleted session, and nothing points at it.
pub(super) fn closed_has_no_activity(view: &View) -> Holds {
    let closed = |id: SessionId| {
        view.sessions.id(id.0).is_none_or(|s| s.lifecycle == SessionLifecycle::Archived)
    };
    for turn in view.turns.iter().filter(|t| under_way(t)) {
        let rows = [turn.row_key(), RowKey::session(turn.session_id)];
        demand(!closed(turn.session_id), "a turn on a closed session", rows)?;
    }
    for input in view.inputs.iter().filter(|i| i.state == InputState::Queued) {
        let open = input.session_id.is_some_and(|s| !closed(s));
        demand(open, "an input waits for a closed session", [input.row_key()])?;
    }
    for task in view.tasks.iter() {
        let open = |s: &&Session| s.task_id == task.id && s.lifecycle == SessionLifecycle::Open;
        if task.primary_session_id.is_none()
            && !self::archived(view, task.id)
            && let Some(session) = view.sessions.iter().find(open)
        {
            let rows = [task.row_key(), session.row_key()];
            return demand(false, "a task with an open session has no primary", rows);
        }
        if let Some(primary) = task.primary_session_id {
            let rows = [task.row_key(), RowKey::session(primary)];
            demand(!closed(primary), "a task points at a closed session", rows)?;
            let own = view.sessions.id(primary.0).is_some_and(|s| s.task_id == task.id);
            demand(own, "a task points at another task's session", rows)?;
        }
    }
    for session in view.sessions.iter() {
        let at = [session.row_key()];
        let archived = session.lifecycle == SessionLifecycle::Archived;
        let deleting = session.closing_kind == Some(ClosingKind::Delete);
        let dated = session.archived_at.is_some();
        demand(dated == archived || (dated && deleting), "archived_at and lifecycle differ", at)?;
        let closing = session.lifecycle == SessionLifecycle::Closing;
        let marks = [
            session.closing_kind.is_some(),
            session.closing_token.is_some(),
            session.closing_by.is_some(),
            session.closing_lease.is_some(),
        ];
        demand(marks.iter().all(|m| *m == closing), "a closing mark without a close", at)?;
        let open_under_closed = !dated && self::archived(view, session.task_id);
        demand(!open_under_closed, "an open session under an archived task (T-6)", at)?;
    }
    Ok(())
}

/// P-19.
pub(super) fn close_xor_turn(view: &View) -> Holds {
    for session in view.sessions.iter().filter(|s| s.lifecycle == SessionLifecycle::Closing) {
        let turn = view.turns.iter().find(|t| t.session_id == session.id && under_way(t));
        if let Some(turn) = turn {
            let rows = [session.row_key(), turn.row_key()];
            return Err(witness("a closing session has turn work", rows));
        }
    }
    Ok(())
}

/// P-23 as a state.
pub(super) fn one_turn_per_session(view: &View) -> Holds {
    for turn in view.turns.iter() {
        let ended = !under_way(turn);
        let said = turn.ended_at.is_some() && turn.outcome.is_some();
        let silent = turn.ended_at.is_none() && turn.outcome.is_none();
        let ok = if ended { said } else { silent };
        demand(ok, "a turn's end and its outcome differ", [turn.row_key()])?;
        let other = view
            .turns
            .iter()
            .find(|o| o.id > turn.id && o.session_id == turn.session_id && under_way(o) && !ended);
        if let Some(other) = other {
            return Err(witness("two turns of one session", [turn.row_key(), other.row_key()]));
        }
    }
    Ok(())
}

/// P-23: one terminal event per turn, exactly when it ends.
pub(super) fn one_terminal_event(step: &Step<'_>, history: &History) -> Holds {
    let said = |turn: TurnId| {
        let of_turn = |e: &&crate::decision::Event| {
            e.kind == EventKind::TurnEnded && e.subject == RowKey::turn(turn)
        };
        step.events.iter().filter(of_turn).count()
    };
    for event in step.events.iter().filter(|e| e.kind == EventKind::TurnEnded) {
        let again = history.ended.contains(&TurnId(event.subject.key.id));
        demand(!again, "a second terminal event", [event.subject])?;
    }
    for turn in step.before.turns.iter() {
        let over = step.after.turns.id(turn.id.0).is_none_or(|t| !under_way(t));
        let expected = usize::from(under_way(turn) && over);
        let at = [turn.row_key()];
        demand(said(turn.id) == expected, "a turn's end without exactly one terminal event", at)?;
        let changed = step.after.turns.id(turn.id.0).is_some_and(|t| t != turn);
        demand(under_way(turn) || !changed, "a turn changed after its end", at)?;
    }
    Ok(())
}

/// P-24, S-4: results of an older epoch change nothing.
pub(super) fn stale_epoch_ignored(step: &Step<'_>) -> Holds {
    if let Command::Session(SessionCommand::RecordActivity { session, epoch, .. }) =
        step.command.command
    {
        let known = step.before.sessions.id(session.0);
        let stale = known.is_some_and(|s| s.epoch > epoch || s.lifecycle != SessionLifecycle::Open);
        let quiet = step.changes.iter().all(|c| c.row.table == TableId::Requests);
        let at = [RowKey::session(session)];
        demand(!stale || (quiet && step.events.is_empty()), "a late activity was written", at)?;
    }
    for session in step.before.sessions.iter() {
        let Some(now) = step.after.sessions.id(session.id.0) else { continue };
        let at = [session.row_key()];
        demand(now.epoch >= session.epoch, "an epoch went back", at)?;
        let closed_or_reopened = session.archived_at.is_some() != now.archived_at.is_some();
        let grew = now.epoch > session.epoch;
        demand(!closed_or_reopened || grew, "the epoch did not grow (S-4)", at)?;
    }
    for turn in step.after.turns.iter().filter(|t| under_way(t)) {
        let fits = step.after.sessions.id(turn.session_id.0).is_none_or(|s| s.epoch == turn.epoch);
        demand(fits, "a turn of an older epoch is under way", [turn.row_key()])?;
    }
    Ok(())
}
