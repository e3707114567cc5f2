//! The mutation (B-5): archives, deletes or resets, and activates the job, in one decision.

use super::Ctx;
use super::close::clear_mark;
use super::relations::*;
use crate::decision::*;
use crate::guard::{Guard, GuardSet};
use crate::id::*;
use crate::machine;
use crate::refusal::{InTheWay, Refusal};
use crate::rows::*;

impl<G: GuardSet> Ctx<'_, G> {
    pub(crate) fn mutate(&mut self, operation: OperationId) -> Result<Reply, Refusal> {
        let mut after = None;
        while let Some(job) = self.next_prepared(operation, after) {
            after = Some(job.id);
            self.hold(Guard::SnapshotTaken, job.snapshot_version > 0, || {
                InTheWay::one(job.row_key())
            })?;
        }
        self.complete(operation)?;
        let mut last = None;
        while let Some(job) = self.next_leaf(operation) {
            last = Some(job);
            self.mutate_one(&job)?;
        }
        let Some(job) = last else { return Ok(Reply::Unchanged) };
        if job.trigger == Trigger::WorkspaceDelete {
            let gone = self
                .view
                .workspaces
                .iter()
                .find(|w| w.deleting_operation == Some(operation))
                .copied();
            if let Some(workspace) = gone {
                self.remove_workspace(&workspace);
            }
        }
        Ok(Reply::Job { job: job.id, state: JobState::Pending })
    }

    /// The next job to mutate: children before parents (B-9). Each mutation takes its job out of
    /// the prepared ones, and the tree has no circle, so there is always one until none is left.
    fn next_leaf(&self, operation: OperationId) -> Option<Job> {
        let prepared = || {
            self.view
                .jobs
                .iter()
                .filter(|j| j.operation_id == operation && j.state == JobState::Prepared)
        };
        prepared()
            .find(|job| {
                !prepared().any(|other| {
                    self.view
                        .tasks
                        .id(other.task_id.0)
                        .is_some_and(|t| t.parent_id == Some(job.task_id))
                })
            })
            .copied()
    }

    fn mutate_one(&mut self, job: &Job) -> Result<(), Refusal> {
        let task = self.task(job.task_id)?;
        if deletes(job.trigger) {
            self.lend_on(job, &task)?;
        }
        self.undo_attempts(job)?;
        if archives(job.trigger) {
            self.archive_task(job, &task)?;
        } else if deletes(job.trigger) {
            self.cancel_older(job)?;
            self.delete_task(job, &task)?;
        } else if job.trigger == Trigger::EnvironmentReset {
            self.reset_environment(job)?;
        }
        self.activate(job)
    }

    /// Prepared to pending, in the same decision as the mutation (P-8).
    pub(crate) fn activate(&mut self, job: &Job) -> Result<(), Refusal> {
        let Some(state) = machine::job::step(job.state, machine::job::Input::Activate) else {
            return self.illegal(job.row_key());
        };
        let now = self.now;
        if let Some(row) = self.view.jobs.edit(job.id.0) {
            row.state = state;
            row.mutated_at = Some(now);
            row.instance_id = None;
            row.lease_until = None;
            row.updated_at = now;
        }
        for part in self.view.job_roots.iter_mut().filter(|r| r.job_id == job.id) {
            part.state = JobState::Pending;
            part.updated_at = now;
        }
        self.event(EventKind::JobActivated, job.row_key(), job.trigger.code());
        Ok(())
    }

    /// W-20: what others borrow is given to the oldest borrower that can take it; if none can,
    /// the delete is refused before anything changed. Borrowers that go with the same operation
    /// need nothing any more.
    fn lend_on(&mut self, job: &Job, task: &Task) -> Result<(), Refusal> {
        let goes_too = |view: &View, s: &Session| {
            view.jobs.iter().any(|j| j.operation_id == job.operation_id && j.task_id == s.task_id)
        };
        let mut after: Option<EnvironmentId> = None;
        while let Some(environment) = first(environments_of(self.view, task.id).filter(|e| {
            after.is_none_or(|a| e.id > a)
                && borrowers(self.view, e).any(|s| !goes_too(self.view, s))
        })) {
            after = Some(environment.id);
            // With the guard taken out, the environment goes with its owner (P-10 must break).
            if !self.guards.has(Guard::BorrowerKeeps) {
                continue;
            }
            self.not_in_removal(environment.id)?;
            let staying = || borrowers(self.view, &environment).filter(|s| !goes_too(self.view, s));
            let receiver = staying()
                .filter(|s| barrier(self.view, s.task_id).is_none())
                .min_by_key(|s| (s.created_at, s.id))
                .map(|s| s.task_id);
            let Some(to) = receiver else {
                return Err(Refusal {
                    guard: Guard::BorrowerKeeps,
                    rows: InTheWay::of(staying().map(Row::row_key)),
                });
            };
            self.transfer(&environment, to);
            self.hand_over(job, environment.id, to);
        }
        Ok(())
    }

    /// What went to the borrower with the environment is not the job's any more. What its rows no
    /// longer name (the old worktrees of a reset) stays to be removed.
    fn hand_over(&mut self, job: &Job, environment: EnvironmentId, to: TaskId) {
        let mut after: Option<ResourceId> = None;
        while let Some(resource) = first(self.view.resources.iter().filter(|r| {
            let with_it = match r.kind {
                ResourceKind::Container | ResourceKind::Sandbox => true,
                ResourceKind::Worktree => r
                    .repo_id
                    .and_then(|id| self.view.repos.id(id.0))
                    .is_some_and(|row| row.status != RepoStatus::Deleted),
                ResourceKind::Runtime | ResourceKind::Attempt => false,
            };
            r.job_id == job.id
                && r.environment_id == Some(environment)
                && r.result == ResourceResult::Waiting
                && with_it
                && after.is_none_or(|a| r.id > a)
        })) {
            after = Some(resource.id);
            if let Some(row) = self.view.resources.edit(resource.id.0) {
                row.transferred_to = Some(to);
            }
            self.settle(&resource, ResourceResult::Transferred, Reason::None, None);
        }
    }

    /// B-5: the snapshot's open attempts turn to compensating with new tokens.
    fn undo_attempts(&mut self, job: &Job) -> Result<(), Refusal> {
        let mut after = None;
        while let Some(resource) = first(self.view.resources.iter().filter(|r| {
            r.job_id == job.id && r.kind == ResourceKind::Attempt && after.is_none_or(|a| r.id > a)
        })) {
            after = Some(resource.id);
            let attempt = resource.attempt_id.and_then(|a| self.view.attempts.id(a.0)).copied();
            if let Some(attempt) = attempt.filter(is_open) {
                self.undo_attempt(&attempt, Token(derive(attempt.token.0, job.id.0)))?;
                self.finish_environment(attempt.task_environment_id);
            }
        }
        Ok(())
    }

    /// Turns an open attempt to compensating; whoever holds the old token has lost it (W-5).
    pub(crate) fn undo_attempt(&mut self, attempt: &Attempt, token: Token) -> Result<(), Refusal> {
        let Some(state) = machine::attempt::step(attempt.state, machine::attempt::Input::Undo)
        else {
            return self.illegal(attempt.row_key());
        };
        let now = self.now;
        if let Some(row) = self.view.attempts.edit(attempt.id.0) {
            row.state = state;
            row.token = token;
            row.updated_at = now;
        }
        self.event(EventKind::AttemptCompensating, attempt.row_key(), "");
        Ok(())
    }

    fn archive_task(&mut self, job: &Job, task: &Task) -> Result<(), Refusal> {
        let state = machine::task::step(task_state(task), machine::task::Input::Archive);
        if state != Some(machine::task::State::Archived) {
            return self.illegal(task.row_key());
        }
        self.close_sessions(job, task)?;
        let now = self.now;
        if let Some(row) = self.view.tasks.edit(task.id.0) {
            row.lifecycle = TaskLifecycle::Archived;
            row.archived_at = Some(now);
            row.archived_by = Some(job.authority);
            row.primary_session_id = None;
            row.updated_at = now;
        }
        self.event(EventKind::TaskArchived, task.row_key(), job.trigger.code());
        Ok(())
    }

    /// T-6: a task's sessions are closed in the same mutation, and a closing mark is taken over.
    fn close_sessions(&mut self, job: &Job, task: &Task) -> Result<(), Refusal> {
        let mut after = None;
        while let Some(session) = self.next_session(task.id, after) {
            after = Some(session.id);
            self.end_turns(&session)?;
            self.cancel_inputs(session.id, InputReason::TaskClosed)?;
            self.step_session(&session, machine::session::Input::TaskArchived)?;
            if session.lifecycle == SessionLifecycle::Closing {
                self.event(EventKind::SessionClosedByTask, session.row_key(), "");
            }
            if session.archived_at.is_none() {
                self.archive_row(&session, Some(job.authority));
            } else if session.lifecycle == SessionLifecycle::Closing {
                // It was being deleted out of the archive: back to where that began (S-22).
                let now = self.now;
                if let Some(row) = self.view.sessions.edit(session.id.0) {
                    row.lifecycle = SessionLifecycle::Archived;
                    clear_mark(row);
                    row.updated_at = now;
                }
            }
        }
        Ok(())
    }

    fn next_session(&self, task: TaskId, after: Option<SessionId>) -> Option<Session> {
        self.view
            .sessions
            .iter()
            .find(|s| s.task_id == task && after.is_none_or(|a| s.id > a))
            .copied()
    }

    /// T-5: what still runs ends as interrupted.
    fn end_turns(&mut self, session: &Session) -> Result<(), Refusal> {
        while let Some(turn) = first(turns_of(self.view, session.id)) {
            self.end_turn_row(&turn, TurnOutcome::Interrupted)?;
        }
        Ok(())
    }

    /// T-12: the delete takes over; older jobs that are not finished are cancelled.
    fn cancel_older(&mut self, job: &Job) -> Result<(), Refusal> {
        while let Some(old) = first(
            self.view
                .jobs
                .iter()
                .filter(|j| j.task_id == job.task_id && j.id != job.id && is_unfinished(j.state)),
        ) {
            self.cancel_job(&old)?;
        }
        Ok(())
    }

    /// D-16: the task goes, with its environments and rows (but those transferred), its sessions,
    /// each with a tombstone, and what hangs off them.
    fn delete_task(&mut self, job: &Job, task: &Task) -> Result<(), Refusal> {
        let state = machine::task::step(task_state(task), machine::task::Input::Delete);
        if state != Some(machine::task::State::Gone) {
            return self.illegal(task.row_key());
        }
        let mut after = None;
        while let Some(session) = self.next_session(task.id, after) {
            after = Some(session.id);
            self.end_turns(&session)?;
            self.cancel_inputs(session.id, InputReason::TaskClosed)?;
            self.step_session(&session, machine::session::Input::TaskDeleted)?;
            if session.lifecycle == SessionLifecycle::Closing {
                self.event(EventKind::SessionClosedByTask, session.row_key(), "");
            }
            self.remove_session(&session);
        }
        while let Some(environment) = first(environments_of(self.view, task.id)) {
            while let Some(repo) =
                first(self.view.repos.iter().filter(|r| r.task_environment_id == environment.id))
            {
                self.view.repos.remove(repo.id.0);
                self.event(EventKind::WorktreeRowRemoved, repo.row_key(), "");
            }
            self.view.environments.remove(environment.id.0);
            self.event(EventKind::EnvironmentRemoved, environment.row_key(), "");
        }
        self.raise_children(job, task);
        self.view.tasks.remove(task.id.0);
        self.bury(IdentityKind::Task, task.id.0);
        if let Some(parent) = task.parent_id {
            self.view.tasks.touch(parent.0);
        }
        self.event(EventKind::TaskDeleted, task.row_key(), job.trigger.code());
        Ok(())
    }

    /// T-7: the children of a deleted task move up to its own parent, or to none if that is
    /// archived, barred or going too.
    fn raise_children(&mut self, job: &Job, task: &Task) {
        let to = task.parent_id.filter(|p| {
            is_active(self.view, *p)
                && barrier(self.view, *p).is_none()
                && !self
                    .view
                    .jobs
                    .iter()
                    .any(|j| j.operation_id == job.operation_id && j.task_id == *p)
        });
        let now = self.now;
        let mut moved = false;
        while let Some(child) =
            first(self.view.tasks.iter().filter(|t| t.parent_id == Some(task.id)))
        {
            if let Some(row) = self.view.tasks.edit(child.id.0) {
                row.parent_id = to;
                row.updated_at = now;
            }
            moved = true;
            self.event(EventKind::TaskMoved, child.row_key(), "");
        }
        if let (true, Some(parent)) = (moved, to) {
            self.view.tasks.touch(parent.0);
        }
    }

    /// T-10: the environment stays, its rows become deleted, its handles are in the snapshot.
    fn reset_environment(&mut self, job: &Job) -> Result<(), Refusal> {
        let Some(environment) =
            job.environment_id.and_then(|e| self.view.environments.id(e.0)).copied()
        else {
            return Err(Refusal {
                guard: Guard::EnvironmentKnown,
                rows: InTheWay::one(job.row_key()),
            });
        };
        self.no_borrower(&environment)?;
        let mut after = None;
        while let Some(session) = first(self.view.sessions.iter().filter(|s| {
            s.task_environment_id == Some(environment.id) && after.is_none_or(|a| s.id > a)
        })) {
            after = Some(session.id);
            self.end_turns(&session)?;
        }
        let now = self.now;
        while let Some(repo) = first(repos_of(self.view, environment.id)) {
            if let Some(row) = self.view.repos.edit(repo.id.0) {
                row.status = RepoStatus::Deleted;
                row.deleted_at = Some(now);
                row.updated_at = now;
            }
            self.event(EventKind::WorktreeRowDeleted, repo.row_key(), "");
        }
        if let Some(row) = self.view.environments.edit(environment.id.0) {
            row.container_id = None;
            row.sandbox_id = None;
            row.status = EnvironmentStatus::Ready;
            row.updated_at = now;
        }
        self.view.tasks.touch(job.task_id.0);
        self.event(EventKind::EnvironmentReset, environment.row_key(), "");
        Ok(())
    }
}

/// The state of a task's row for its machine.
pub(crate) const fn task_state(task: &Task) -> machine::task::State {
    match task.lifecycle {
        TaskLifecycle::Active => machine::task::State::Active,
        TaskLifecycle::Archived => machine::task::State::Archived,
    }
}
