//! What holds between rows, defined once and used everywhere (D-6): who protects an environment,
//! who borrows it, what holds a task's barrier, what is in removal.

use crate::id::*;
use crate::rows::*;

/// The job that holds the task's barrier (B-1, B-2).
pub(crate) fn barrier(view: &View, task: TaskId) -> Option<&Job> {
    view.jobs.iter().find(|j| j.task_id == task && j.state == JobState::Prepared)
}

/// Whether the task is active.
pub(crate) fn is_active(view: &View, task: TaskId) -> bool {
    view.tasks.id(task.0).is_some_and(|t| t.lifecycle == TaskLifecycle::Active)
}

/// A session protects its environment while it is open, or closing from open, and its task is
/// active (D-6).
pub(crate) fn protects(view: &View, session: &Session) -> bool {
    let open = match session.lifecycle {
        SessionLifecycle::Open => true,
        SessionLifecycle::Closing => session.archived_at.is_none(),
        SessionLifecycle::Archived => false,
    };
    open && is_active(view, session.task_id)
}

/// The protecting sessions of other tasks than the owner (D-6).
pub(crate) fn borrowers<'a>(
    view: &'a View,
    environment: &'a Environment,
) -> impl Iterator<Item = &'a Session> + Clone {
    view.sessions.iter().filter(move |s| {
        s.task_environment_id == Some(environment.id)
            && s.task_id != environment.task_id
            && protects(view, s)
    })
}

/// The environments that a task owns (T-3).
pub(crate) fn environments_of(
    view: &View,
    task: TaskId,
) -> impl Iterator<Item = &Environment> + Clone {
    view.environments.iter().filter(move |e| e.task_id == task)
}

/// The repository rows of an environment that are not deleted.
pub(crate) fn repos_of(
    view: &View,
    environment: EnvironmentId,
) -> impl Iterator<Item = &Repo> + Clone {
    view.repos
        .iter()
        .filter(move |r| r.task_environment_id == environment && r.status != RepoStatus::Deleted)
}

/// The rows of an environment that a removal holds (C-18).
pub(crate) fn removing_in(
    view: &View,
    environment: EnvironmentId,
) -> impl Iterator<Item = &Repo> + Clone {
    repos_of(view, environment).filter(|r| r.materialised == Materialised::Removing)
}

/// Whether an attempt is unresolved (D-5).
pub(crate) fn is_unresolved(attempt: &Attempt) -> bool {
    match attempt.state {
        AttemptState::Intended | AttemptState::Materialised | AttemptState::Compensating => true,
        AttemptState::Owned | AttemptState::Compensated => false,
    }
}

/// Whether an attempt is open (D-5).
pub(crate) fn is_open(attempt: &Attempt) -> bool {
    match attempt.state {
        AttemptState::Intended | AttemptState::Materialised => true,
        AttemptState::Compensating | AttemptState::Owned | AttemptState::Compensated => false,
    }
}

/// The unresolved attempts of an environment.
pub(crate) fn attempts_in(
    view: &View,
    environment: EnvironmentId,
) -> impl Iterator<Item = &Attempt> + Clone {
    view.attempts.iter().filter(move |a| a.task_environment_id == environment && is_unresolved(a))
}

/// The turns of a session that have not ended: all of it is turn work (S-11).
pub(crate) fn turns_of(view: &View, session: SessionId) -> impl Iterator<Item = &Turn> + Clone {
    view.turns.iter().filter(move |t| t.session_id == session && t.phase != TurnPhase::Ended)
}

/// The inputs of a session that wait.
pub(crate) fn waiting_inputs(
    view: &View,
    session: SessionId,
) -> impl Iterator<Item = &Input> + Clone {
    view.inputs
        .iter()
        .filter(move |i| i.session_id == Some(session) && i.state == InputState::Queued)
}

/// Runtimes that are not proven stopped.
pub(crate) fn is_running(runtime: &Runtime) -> bool {
    match runtime.status {
        RuntimeStatus::Starting | RuntimeStatus::Running | RuntimeStatus::Stopping => true,
        RuntimeStatus::Stopped => false,
    }
}

/// Whether what a resource names may still run (C-6, C-7). That its tries are spent proves nothing;
/// what has no row of its own is over by its proof, or by a person's word (C-15).
pub(crate) fn may_run(view: &View, resource: &Resource) -> bool {
    match resource.kind {
        ResourceKind::Runtime | ResourceKind::Container | ResourceKind::Sandbox => {
            let row = resource.runtime_id.and_then(|r| view.runtimes.id(r.0));
            is_left(resource.result)
                || row.map_or(resource.result == ResourceResult::Failed, is_running)
        }
        ResourceKind::Attempt | ResourceKind::Worktree => false,
    }
}

/// What a job names that may run still: it holds every worktree of the job up, even where its try
/// was given up (C-6, C-7).
pub fn named_that_may_run(view: &View, job: JobId) -> impl Iterator<Item = &Resource> + Clone {
    view.resources.iter().filter(move |r| r.job_id == job && may_run(view, r))
}

/// The other runtimes that hold a worktree up: those that stand in its environment. After a reset
/// the environment lives on elsewhere, and what ran in the old worktree is in the job's own
/// inventory (T-10); of a borrower's only the borrowing matters (W-20).
pub fn others_that_run<'a>(
    view: &'a View,
    job: &Job,
    worktree: &'a Resource,
) -> impl Iterator<Item = &'a Runtime> + Clone {
    let elsewhere = is_old(view, job, worktree) || is_lent(view, job, worktree);
    view.runtimes.iter().filter(move |r| {
        !elsewhere
            && is_running(r)
            && r.task_environment_id.is_some()
            && r.task_environment_id == worktree.environment_id
    })
}

/// Whether it is the old worktree of a reset: its row is deleted, and it is nobody's any more,
/// whoever owns or borrows the environment now (T-10, W-20).
pub(crate) fn is_old(view: &View, job: &Job, worktree: &Resource) -> bool {
    let row = worktree.repo_id.and_then(|r| view.repos.id(r.0));
    job.trigger == Trigger::EnvironmentReset || row.is_some_and(|r| r.status == RepoStatus::Deleted)
}

/// Whether others borrow it now. Who borrows after a reset borrows the new worktrees.
pub(crate) fn is_lent(view: &View, job: &Job, worktree: &Resource) -> bool {
    let environment = worktree.environment_id.and_then(|e| view.environments.id(e.0));
    !is_old(view, job, worktree) && environment.is_some_and(|e| borrowers(view, e).next().is_some())
}

/// Whether the instance that began a runtime can stop it still, so that no person's word is needed
/// (C-15). Its own process it can for as long as it lives. The machine of a container or a remote
/// one may be gone before: it was asked to stop, and that came to nothing.
pub fn is_reached(view: &View, runtime: &Runtime) -> bool {
    let lives = view.instances.id(runtime.instance_id.0).is_some_and(|i| i.lease_until > view.now);
    lives && (runtime.kind == RuntimeKind::Local || runtime.status != RuntimeStatus::Stopping)
}

/// Whether a job is at its end.
pub(crate) const fn is_final(state: JobState) -> bool {
    match state {
        JobState::Succeeded | JobState::Failed | JobState::Cancelled => true,
        JobState::Prepared | JobState::Pending | JobState::Running | JobState::RetryWait => false,
    }
}

/// Whether a job is activated and not at its end.
pub(crate) const fn is_unfinished(state: JobState) -> bool {
    match state {
        JobState::Pending | JobState::Running | JobState::RetryWait => true,
        JobState::Prepared | JobState::Succeeded | JobState::Failed | JobState::Cancelled => false,
    }
}

/// Whether a resource still needs something.
pub(crate) const fn is_left(result: ResourceResult) -> bool {
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

/// Whether the job's mutation archives its task.
pub(crate) const fn archives(trigger: Trigger) -> bool {
    match trigger {
        Trigger::Archive | Trigger::CascadeArchive => true,
        Trigger::Delete
        | Trigger::CascadeDelete
        | Trigger::WorkspaceDelete
        | Trigger::QuickChatExpire
        | Trigger::EnvironmentReset
        | Trigger::Reconcile
        | Trigger::OrphanRemoval
        | Trigger::Unreadable => false,
    }
}

/// Whether the job's mutation deletes its task.
pub(crate) const fn deletes(trigger: Trigger) -> bool {
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

/// Whether the authority that a job serves still stands (C-5): an archive's does while the task
/// is archived by it; a deletion's and a reset's cannot be taken back.
pub(crate) fn authority_stands(view: &View, job: &Job) -> bool {
    match job.trigger {
        Trigger::Archive | Trigger::CascadeArchive | Trigger::Reconcile => {
            view.tasks.id(job.task_id.0).is_some_and(|t| {
                t.lifecycle == TaskLifecycle::Archived && t.archived_by == Some(job.authority)
            })
        }
        Trigger::Delete
        | Trigger::CascadeDelete
        | Trigger::WorkspaceDelete
        | Trigger::QuickChatExpire
        | Trigger::EnvironmentReset
        | Trigger::OrphanRemoval => true,
        Trigger::Unreadable => false,
    }
}

/// Whether `ancestor` is on the task's way to the root, the task itself included.
pub(crate) fn descends(view: &View, task: TaskId, ancestor: TaskId) -> bool {
    let mut at = Some(task);
    for _ in 0..=crate::footprint::TREE_DEPTH_MAX {
        match at {
            Some(id) if id == ancestor => return true,
            Some(id) => at = view.tasks.id(id.0).and_then(|t| t.parent_id),
            None => return false,
        }
    }
    false
}

/// A copy of the first row. It borrows nothing, so that a loop over rows may change them.
pub(crate) fn first<'a, R: Row>(mut rows: impl Iterator<Item = &'a R>) -> Option<R> {
    rows.next().copied()
}
