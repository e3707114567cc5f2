//! P-20, P-21: what was refused stored nothing, what was settled stays settled.

use super::{Changed, History, Holds, Step, demand};
use crate::command::{Command, TurnCommand};
use crate::decision::EventKind;
use crate::id::*;
use crate::rows::*;

/// P-20: a refused command left no row but its own outcome.
pub(super) fn refused_stores_nothing(step: &Step<'_>) -> Holds {
    if step.accepted {
        return Ok(());
    }
    for Changed { row, .. } in step.changes {
        let own = step
            .command
            .request
            .is_some_and(|r| row.table == TableId::Requests && row.key == Key::of(r.0));
        demand(own, "a refused command changed a row", [*row])?;
    }
    demand(step.events.is_empty(), "a refused command wrote an event", [])?;
    demand(step.granted.is_none(), "a refused command gave a warrant", [])
}

/// P-21 as a state: exactly one outcome, or none yet.
pub(super) fn one_outcome_per_input(view: &View) -> Holds {
    for input in view.inputs.iter() {
        let at = [input.row_key()];
        let queued = input.state == InputState::Queued;
        demand(input.settled_at.is_none() == queued, "an outcome without its time", at)?;
        let carried = input.state == InputState::Delivered;
        demand(input.turn_id.is_some() == carried, "a delivered input names its turn", at)?;
        let redirected = input.state == InputState::Redirected;
        demand(input.redirected_to.is_some() == redirected, "a redirected input says where", at)?;
        let reason = input.reason != InputReason::None;
        let needs = !queued && !carried && !redirected;
        demand(reason == needs, "an input that did not arrive says why", at)?;
    }
    Ok(())
}

/// P-21: a settled input keeps its outcome, and each outcome is said once.
pub(super) fn an_outcome_is_kept(step: &Step<'_>, history: &History) -> Holds {
    for (id, state) in &history.settled {
        let now = step.after.inputs.id(id.0);
        let kept = now.is_some_and(|i| i.state == *state);
        demand(kept, "a settled input lost its outcome", [RowKey::input(*id)])?;
    }
    for input in step.before.inputs.iter() {
        let now = step.after.inputs.id(input.id.0);
        let settled = input.state != InputState::Queued;
        let same = now == Some(input);
        demand(!settled || same, "a settled input changed", [input.row_key()])?;
        demand(now.is_some(), "an input vanished without an outcome", [input.row_key()])?;
    }
    for input in step.after.inputs.iter() {
        let before = step.before.inputs.id(input.id.0);
        let was = before.is_some_and(|i| i.state != InputState::Queued);
        let expected = usize::from(input.state != InputState::Queued && !was);
        let said = step.events.iter().filter(|e| {
            let kind = e.kind == EventKind::InputDelivered || e.kind == EventKind::InputCancelled;
            kind && e.subject == input.row_key()
        });
        let at = [input.row_key()];
        demand(said.count() == expected, "an outcome was not said exactly once", at)?;
        let own = match step.command.command {
            Command::Turn(TurnCommand::Submit { input: id, .. }) => id == input.id,
            Command::Turn(_)
            | Command::Session(_)
            | Command::Task(_)
            | Command::Operation(_)
            | Command::Attempt(_)
            | Command::Cleanup(_)
            | Command::Operator(_)
            | Command::System(_) => false,
        };
        demand(before.is_some() || own, "an input appeared by itself", at)?;
    }
    Ok(())
}

/// P-21: a delivered input's turn is of its session, as long as both are there.
pub(super) fn delivered_where_it_was_sent(view: &View) -> Holds {
    for input in view.inputs.iter() {
        let Some(turn) = input.turn_id.and_then(|t: TurnId| view.turns.id(t.0)) else { continue };
        let rows = [input.row_key(), turn.row_key()];
        demand(input.session_id == Some(turn.session_id), "an input was carried elsewhere", rows)?;
    }
    Ok(())
}
