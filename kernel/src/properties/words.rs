//! The words of the rules, defined from the rules alone (01, 03, 05). The kernel's decisions have
//! definitions of their own; that the two agree is what the properties are about.

use crate::id::*;
use crate::rows::*;

/// Whether the task is there and active.
pub(super) fn active(view: &View, task: TaskId) -> bool {
    view.tasks.id(task.0).is_some_and(|t| t.lifecycle == TaskLifecycle::Active)
}

/// Whether the task is there and archived.
pub(super) fn archived(view: &View, task: TaskId) -> bool {
    view.tasks.id(task.0).is_some_and(|t| t.lifecycle == TaskLifecycle::Archived)
}

/// The job that holds the task's barrier: `prepared` holds it (B-2).
pub(super) fn barred(view: &View, task: TaskId) -> Option<&Job> {
    view.jobs.iter().find(|j| j.state == JobState::Prepared && j.task_id == task)
}

/// D-6: open, or closing from open, and its task active.
pub(super) fn protecting(view: &View, session: &Session) -> bool {
    let from_open = match session.lifecycle {
        SessionLifecycle::Open => true,
        SessionLifecycle::Archived => false,
        SessionLifecycle::Closing => session.archived_at.is_none(),
    };
    from_open && active(view, session.task_id)
}

/// D-6: the protecting sessions of an environment.
pub(super) fn protectors(
    view: &View,
    environment: EnvironmentId,
) -> impl Iterator<Item = &Session> + Clone {
    let refers = move |s: &&Session| s.task_environment_id == Some(environment);
    view.sessions.iter().filter(refers).filter(|s| protecting(view, s))
}

/// D-6: a protecting session of another task than the owner.
pub(super) fn borrower(view: &View, environment: &Environment) -> Option<Session> {
    protectors(view, environment.id).find(|s| s.task_id != environment.task_id).copied()
}

/// The owner of an environment.
pub(super) fn owner(view: &View, environment: EnvironmentId) -> Option<TaskId> {
    view.environments.id(environment.0).map(|e| e.task_id)
}

/// D-5: intended, materialised or compensating.
pub(super) fn unresolved(attempt: &Attempt) -> bool {
    match attempt.state {
        AttemptState::Owned | AttemptState::Compensated => false,
        AttemptState::Intended | AttemptState::Materialised | AttemptState::Compensating => true,
    }
}

/// 05: activated and not at its end.
pub(super) fn unfinished(state: JobState) -> bool {
    match state {
        JobState::Pending | JobState::Running | JobState::RetryWait => true,
        JobState::Prepared | JobState::Succeeded | JobState::Failed | JobState::Cancelled => false,
    }
}

/// 05: succeeded, failed, cancelled.
pub(super) fn finished(state: JobState) -> bool {
    match state {
        JobState::Succeeded | JobState::Failed | JobState::Cancelled => true,
        JobState::Prepared | JobState::Pending | JobState::Running | JobState::RetryWait => false,
    }
}

/// B-8: the jobs that an unarchive cancels.
pub(super) fn archive_like(trigger: Trigger) -> bool {
    match trigger {
        Trigger::Archive | Trigger::CascadeArchive | Trigger::Reconcile => true,
        Trigger::Delete
        | Trigger::CascadeDelete
        | Trigger::WorkspaceDelete
        | Trigger::QuickChatExpire
        | Trigger::EnvironmentReset
        | Trigger::OrphanRemoval
        | Trigger::Unreadable => false,
    }
}

/// T-1: the operations that end a task.
pub(super) fn delete_like(trigger: Trigger) -> bool {
    match trigger {
        Trigger::Delete
        | Trigger::CascadeDelete
        | Trigger::WorkspaceDelete
        | Trigger::QuickChatExpire => true,
        Trigger::Archive
        | Trigger::CascadeArchive
        | Trigger::EnvironmentReset
        | Trigger::Reconcile
        | Trigger::OrphanRemoval
        | Trigger::Unreadable => false,
    }
}

/// T-1: the triggers that own physical cleanup of a task.
pub(super) fn of_a_task(trigger: Trigger) -> bool {
    archive_like(trigger) || delete_like(trigger) || trigger == Trigger::EnvironmentReset
}

/// S-10: a turn that has not ended.
pub(super) fn under_way(turn: &Turn) -> bool {
    turn.phase != TurnPhase::Ended
}

/// D-11: not known to have stopped.
pub(super) fn may_live(runtime: &Runtime) -> bool {
    runtime.status != RuntimeStatus::Stopped
}

/// C-7: a job's runtime, container or sandbox of which nobody has shown that it ended. Giving it up
/// shows nothing; only a person's word does, where no row can say it.
pub(super) fn handle_may_live(view: &View, resource: &Resource) -> bool {
    let given_up = resource.result == ResourceResult::Failed;
    match resource.runtime_id.and_then(|id| view.runtimes.id(id.0)) {
        Some(row) => unsettled(resource.result) || may_live(row),
        None => unsettled(resource.result) || given_up,
    }
}

/// Whether a resource's result leaves it to the job (C-13).
pub(super) fn unsettled(result: ResourceResult) -> bool {
    match result {
        ResourceResult::Waiting | ResourceResult::Removing => true,
        ResourceResult::Removed
        | ResourceResult::Absent
        | ResourceResult::Preserved
        | ResourceResult::Transferred
        | ResourceResult::Kept
        | ResourceResult::Forgotten
        | ResourceResult::Failed => false,
    }
}

/// D-4: a row that claims a worktree which is, or may be, on the disk.
pub(super) fn claims(repo: &Repo) -> bool {
    repo.status != RepoStatus::Deleted
        && repo.worktree_id.is_some()
        && repo.materialised != Materialised::No
}
