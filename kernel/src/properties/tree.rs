//! P-36: the tree of tasks, what an operation takes of it and gives back to it; of P-6 the barrier
//! of a whole workspace; of P-38 what is reserved although it was to be spared.

use super::words::*;
use super::{Holds, Step, demand};
use crate::command::*;
use crate::id::*;
use crate::rows::*;

/// Whether `above` is on the task's way to the root, the task itself included (T-7).
fn is_under(view: &View, task: TaskId, above: TaskId) -> bool {
    let mut at = Some(task);
    // In a tree no way is longer than there are tasks.
    for _ in 0..=view.tasks.len() {
        match at {
            None => return false,
            Some(id) if id == above => return true,
            Some(id) => at = view.tasks.id(id.0).and_then(|t| t.parent_id),
        }
    }
    false
}

/// P-36, T-7: from every task the way up ends.
pub(super) fn no_circle(view: &View) -> Holds {
    for task in view.tasks.iter() {
        let under_itself = task.parent_id.is_some_and(|p| is_under(view, p, task.id));
        demand(!under_itself, "a task hangs under itself", [task.row_key()])?;
    }
    Ok(())
}

/// P-36: what a task hangs under is there, in its own workspace, which is there too (T-7, T-9).
pub(super) fn nothing_hangs_under_what_is_gone(view: &View) -> Holds {
    for task in view.tasks.iter() {
        let workspace = RowKey::workspace(task.workspace_id);
        let there = view.workspaces.id(task.workspace_id.0).is_some();
        demand(there, "a task of a workspace that is gone", [task.row_key(), workspace])?;
        let Some(parent) = task.parent_id else { continue };
        let at = [task.row_key(), RowKey::task(parent)];
        let row = view.tasks.id(parent.0);
        demand(row.is_some(), "a task hangs under one that is gone", at)?;
        let same = row.is_some_and(|p| p.workspace_id == task.workspace_id);
        demand(same, "parent and child are in two workspaces", at)?;
    }
    Ok(())
}

/// The jobs whose mutation this step is.
fn mutated<'a>(step: &Step<'a>) -> impl Iterator<Item = &'a Job> + Clone {
    let before = step.before;
    step.after.jobs.iter().filter(move |job| {
        let was = before.jobs.id(job.id.0).map(|j| j.state);
        was == Some(JobState::Prepared) && job.state == JobState::Pending
    })
}

/// P-36, B-9, T-9: a cascade takes all that is under its root, a workspace's deletion takes all its
/// tasks and the workspace with them.
pub(super) fn the_whole_tree_goes(step: &Step<'_>) -> Holds {
    for job in mutated(step) {
        let Some(root) = job.cascade_root else { continue };
        for task in step.before.tasks.iter().filter(|t| is_under(step.before, t.id, root)) {
            let went = match step.after.tasks.id(task.id.0) {
                None => delete_like(job.trigger),
                Some(now) => archive_like(job.trigger) && now.lifecycle == TaskLifecycle::Archived,
            };
            demand(went, "a cascade left a task behind", [job.row_key(), task.row_key()])?;
        }
    }
    for job in mutated(step).filter(|j| j.trigger == Trigger::WorkspaceDelete) {
        let task = step.before.tasks.id(job.task_id.0);
        let stays = task.is_some_and(|t| step.after.workspaces.id(t.workspace_id.0).is_some());
        let says = "tasks were deleted with their workspace, and the workspace stays";
        demand(!stays, says, [job.row_key()])?;
    }
    Ok(())
}

/// P-36, T-7: the children of a deleted task move up to its own parent, or to none if that is
/// archived, barred or gone.
pub(super) fn children_move_up(step: &Step<'_>) -> Holds {
    for gone in step.before.tasks.iter().filter(|t| step.after.tasks.id(t.id.0).is_none()) {
        let open = |p: &TaskId| active(step.after, *p) && barred(step.after, *p).is_none();
        let wanted = gone.parent_id.filter(open);
        for child in step.before.tasks.iter().filter(|t| t.parent_id == Some(gone.id)) {
            let Some(now) = step.after.tasks.id(child.id.0) else { continue };
            let rows = [gone.row_key(), child.row_key()];
            demand(now.parent_id == wanted, "a child did not move up", rows)?;
        }
    }
    Ok(())
}

/// P-36, B-9, T-7: an unarchive brings back its task, with the cascade exactly what its operation
/// archived, and nothing of it under an archived task.
pub(super) fn unarchive_restores_its_operation(step: &Step<'_>) -> Holds {
    let Command::Operation(OperationCommand::Unarchive { task, cascade }) = step.command.command
    else {
        return Ok(());
    };
    let Some(asked) = step.before.tasks.id(task.0) else { return Ok(()) };
    let by = asked.archived_by;
    for was in step.before.tasks.iter().filter(|t| t.lifecycle == TaskLifecycle::Archived) {
        let back = active(step.after, was.id);
        let of_it = was.id == task || (cascade && was.archived_by == by);
        let changed = !step.changes.is_empty();
        let at = [was.row_key(), RowKey::task(task)];
        let right = back == (of_it && step.accepted && changed);
        demand(right, "an unarchive brought back something else than was asked for", at)?;
        let parent = step.after.tasks.id(was.id.0).and_then(|t| t.parent_id);
        let covered = parent.is_some_and(|p| archived(step.after, p));
        demand(!back || !covered, "a task came back under an archived one", at)?;
    }
    Ok(())
}

/// P-6, T-9: from its beginning on, the deletion of a workspace is a barrier to new tasks in it.
pub(super) fn nothing_new_in_a_workspace_in_deletion(step: &Step<'_>) -> Holds {
    for task in step.after.tasks.iter() {
        let was = step.before.tasks.id(task.id.0).map(|t| t.workspace_id);
        let closing = step
            .before
            .workspaces
            .id(task.workspace_id.0)
            .is_some_and(|w| w.state == WorkspaceState::Deleting);
        let rows = [task.row_key(), RowKey::workspace(task.workspace_id)];
        let new = was != Some(task.workspace_id);
        demand(!new || !closing, "a task came into a workspace that is being deleted", rows)?;
    }
    Ok(())
}

/// P-38, T-5, T-8: a quick chat expires only when its time has come, and neither that nor an
/// operation that asked to be refused as busy takes on a task whose turns run.
pub(super) fn the_busy_and_the_young_are_spared(step: &Step<'_>) -> Holds {
    for job in step.after.jobs.iter() {
        if step.before.jobs.id(job.id.0).is_some() || job.state != JobState::Prepared {
            continue;
        }
        let at = [job.row_key(), RowKey::task(job.task_id)];
        let expires = job.trigger == Trigger::QuickChatExpire;
        let due = step
            .before
            .tasks
            .id(job.task_id.0)
            .and_then(|t| t.expires_at)
            .is_some_and(|at| at <= step.before.now);
        demand(!expires || due, "a quick chat expires before its time", at)?;
        let asked_to = matches!(
            step.command.command,
            Command::Operation(OperationCommand::Reserve { refuse_busy: true, .. })
        );
        let of_task = |t: &&Turn| {
            let session = step.before.sessions.id(t.session_id.0);
            under_way(t) && session.is_some_and(|s| s.task_id == job.task_id)
        };
        let busy = step.before.turns.iter().find(of_task);
        if let Some(turn) = busy.filter(|_| expires || asked_to) {
            let rows = [job.row_key(), turn.row_key()];
            demand(false, "a busy task was to be spared", rows)?;
        }
    }
    Ok(())
}
