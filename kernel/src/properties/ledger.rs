//! P-25, P-32: the journal says what changed, a request is its content.

use super::{Changed, Holds, Step, demand, witness};
use crate::command::{Command, OperationCommand};
use crate::decision::EventKind;
use crate::rows::*;
use crate::view::Change;

/// Rows whose changes no event tells: leases, instances, request records; an anchor whose version
/// grew tells of another row's change.
fn silent(changed: &Changed) -> bool {
    changed.lease_only
        || changed.how == Change::Touched
        || changed.row.table == TableId::Requests
        || changed.row.table == TableId::Instances
}

/// Tables of which every changed row is the subject of an event. The others (identities, anchors,
/// parts and resources of jobs, environments while something is made in them) change together
/// with one of these.
const SAID: &[TableId] = &[
    TableId::Workspaces,
    TableId::Sessions,
    TableId::Repos,
    TableId::Attempts,
    TableId::Removals,
    TableId::Trash,
    TableId::Salvage,
    TableId::Jobs,
    TableId::Turns,
    TableId::Inputs,
    TableId::Runtimes,
];

/// P-25: an event exists exactly when a row changed.
pub(super) fn event_iff_change(step: &Step<'_>) -> Holds {
    let told = step.changes.iter().find(|c| !silent(c));
    if let Some(changed) = told {
        demand(!step.events.is_empty(), "a row changed without an event", [changed.row])?;
    }
    for event in step.events {
        // A row that went through two states and ended as it was is at least an anchor that grew.
        let about = step.changes.iter().any(|c| c.row == event.subject && !c.lease_only);
        // A step that fails once more for the same reason gives up nothing but its lease.
        let let_go = event.kind == EventKind::RemovalStepFailed
            && step.after.removals.get(event.subject.key).is_some_and(|r| {
                r.updated_at == step.after.now && r.last_reason.code() == event.detail
            });
        let w = witness("an event about a row that did not change", [event.subject]);
        let changed = told.is_some() && (about || written_again(step, event.subject));
        if !(changed || let_go) {
            return Err(w.with(event.kind.code()));
        }
    }
    for changed in step.changes.iter().filter(|c| !silent(c) && SAID.contains(&c.row.table)) {
        // The ended turns of a session go with it (S-24): the session's event says it.
        if changed.row.table == TableId::Turns && changed.how == Change::Deleted {
            continue;
        }
        let said = step.events.iter().any(|e| e.subject == changed.row || parts_say(step, changed));
        demand(said, "a changed row that no event names", [changed.row])?;
    }
    Ok(())
}

/// Written with what it held already, in the microsecond in which it was written last.
fn written_again(step: &Step<'_>, row: RowKey) -> bool {
    row.table == TableId::Environments
        && step.after.environments.get(row.key).is_some_and(|e| e.updated_at == step.after.now)
}

/// A job's state follows from its parts (C-1), and trash from its removal (D-20): an event about
/// the one tells of the other.
fn parts_say(step: &Step<'_>, changed: &Changed) -> bool {
    let id = changed.row.key.id;
    let trash = step.after.trash.id(id).filter(|_| changed.row.table == TableId::Trash);
    step.events.iter().any(|e| {
        let part = step.after.job_roots.get(e.subject.key);
        let of_job = changed.row.table == TableId::Jobs
            && e.subject.table == TableId::JobRoots
            && part.is_some_and(|p| p.job_id.0 == id);
        let of_removal = e.subject.table == TableId::Removals
            && trash.is_some_and(|t| t.removal_id.0 == e.subject.key.id);
        of_job || of_removal
    })
}

/// P-32 as a state: one operation on one task is one job, unless it was cancelled before its
/// mutation (B-1).
pub(super) fn one_job_per_operation(view: &View) -> Holds {
    let counts = |j: &&Job| !(j.state == JobState::Cancelled && j.mutated_at.is_none());
    for job in view.jobs.iter().filter(counts) {
        let twin = view.jobs.iter().filter(counts).find(|o| {
            o.id > job.id && o.operation_id == job.operation_id && o.task_id == job.task_id
        });
        if let Some(twin) = twin {
            let rows = [job.row_key(), twin.row_key()];
            return Err(witness("two jobs of one operation on one task", rows));
        }
    }
    Ok(())
}

/// P-32: a request id keeps its content and its outcome.
pub(super) fn request_is_its_content(step: &Step<'_>) -> Holds {
    for Changed { row, how, .. } in step.changes {
        let recorded = row.table == TableId::Requests && *how != Change::Inserted;
        demand(!recorded, "a request's record changed", [*row])?;
    }
    let content = step.command.content;
    if let Some(request) = step.command.request {
        if let Some(known) = step.before.requests.id(request.0) {
            let at = [known.row_key()];
            demand(step.changes.is_empty(), "a repeated request changed something", at)?;
            let same = known.content_hash == content;
            demand(same || !step.accepted, "a request id was taken for another content", at)?;
        } else if step.accepted {
            let record = step.after.requests.id(request.0);
            let kept = record.is_some_and(|r| r.content_hash == content);
            demand(kept, "an accepted request left no record", [])?;
        }
    }
    if let Command::Operation(OperationCommand::Reserve { operation, task, content, .. }) =
        step.command.command
    {
        let known = step.before.jobs.iter().find(|j| {
            j.operation_id == operation
                && j.task_id == task
                && !(j.state == JobState::Cancelled && j.mutated_at.is_none())
        });
        if let Some(job) = known {
            let replayed =
                step.command.request.is_some_and(|r| step.before.requests.id(r.0).is_some());
            let ok = job.content_hash == content || !step.accepted || replayed;
            demand(ok, "an operation id was taken for another content", [job.row_key()])?;
        }
    }
    Ok(())
}
