//! Unarchive (B-8, B-9, T-6, T-7): makes a task active again and stops its cleanup in one step.

use super::Ctx;
use super::mutation::task_state;
use super::relations::*;
use crate::decision::*;
use crate::guard::{Guard, GuardSet};
use crate::id::*;
use crate::machine;
use crate::refusal::{InTheWay, Refusal};
use crate::rows::*;
use crate::view::Slot;

impl<G: GuardSet> Ctx<'_, G> {
    pub(crate) fn unarchive(&mut self, id: TaskId, cascade: bool) -> Result<Reply, Refusal> {
        let task = self.task(id)?;
        self.hold(Guard::TaskArchived, task.lifecycle == TaskLifecycle::Archived, || {
            InTheWay::one(task.row_key())
        })?;
        let operation = task.archived_by;
        // Restores exactly what that operation archived (B-9).
        let mut after = None;
        loop {
            let next = self
                .view
                .tasks
                .iter()
                .find(|t| {
                    after.is_none_or(|a| t.id > a)
                        && t.lifecycle == TaskLifecycle::Archived
                        && (t.id == id || (cascade && t.archived_by == operation))
                })
                .copied();
            let Some(one) = next else { break };
            after = Some(one.id);
            self.unarchive_one(&one)?;
        }
        self.stand_alone();
        Ok(Reply::Done)
    }

    fn unarchive_one(&mut self, task: &Task) -> Result<(), Refusal> {
        // B-2: barred as long as another operation holds the task; a prepared reconcile is
        // cancelled instead.
        let held = barrier(self.view, task.id).filter(|j| j.trigger != Trigger::Reconcile).copied();
        self.hold(Guard::TaskUnbarred, held.is_none(), || {
            InTheWay::of(held.iter().map(Row::row_key))
        })?;
        let state = machine::task::step(task_state(task), machine::task::Input::Unarchive);
        if state != Some(machine::task::State::Active) {
            return self.illegal(task.row_key());
        }
        if self.guards.has(Guard::UnarchiveCancels) {
            self.cancel_archive_jobs(task)?;
        }
        let by = task.archived_by;
        let now = self.now;
        if let Some(row) = self.view.tasks.edit(task.id.0) {
            row.lifecycle = TaskLifecycle::Active;
            row.archived_at = None;
            row.archived_by = None;
            row.updated_at = now;
        }
        self.event(EventKind::TaskUnarchived, task.row_key(), "");
        // T-6: exactly the sessions that this operation closed.
        let mut after = None;
        while let Some(session) = first(self.view.sessions.iter().filter(|s| {
            s.task_id == task.id
                && after.is_none_or(|a| s.id > a)
                && s.lifecycle == SessionLifecycle::Archived
                && s.archived_by.is_some()
                && s.archived_by == by
        })) {
            after = Some(session.id);
            self.reopen(&session)?;
        }
        let newest = self
            .view
            .sessions
            .iter()
            .filter(|s| s.task_id == task.id && s.lifecycle == SessionLifecycle::Open)
            .max_by(|a, b| a.created_at.cmp(&b.created_at).then_with(|| b.id.cmp(&a.id)))
            .map(|s| s.id);
        if let Some(session) = newest {
            self.offer_primary(task.id, session);
        }
        Ok(())
    }

    fn cancel_archive_jobs(&mut self, task: &Task) -> Result<(), Refusal> {
        while let Some(job) = first(self.view.jobs.iter().filter(|j| {
            let of_archive = archives(j.trigger) || j.trigger == Trigger::Reconcile;
            j.task_id == task.id
                && of_archive
                && (is_unfinished(j.state) || j.state == JobState::Prepared)
        })) {
            self.cancel_job(&job)?;
        }
        Ok(())
    }

    /// T-7: a task whose parent is archived can be unarchived alone; it then stands without one.
    /// Looked at once everything that comes back is back, so that a cascade keeps its shape.
    fn stand_alone(&mut self) {
        let now = self.now;
        let mut after: Option<TaskId> = None;
        while let Some(task) = first(
            self.view
                .tasks
                .slots()
                .iter()
                .filter(|s| s.was().is_some_and(|t| t.lifecycle == TaskLifecycle::Archived))
                .map(Slot::row)
                .filter(|t| {
                    let orphaned = t.parent_id.is_some_and(|p| {
                        self.view
                            .tasks
                            .id(p.0)
                            .is_some_and(|p| p.lifecycle == TaskLifecycle::Archived)
                    });
                    orphaned
                        && t.lifecycle == TaskLifecycle::Active
                        && after.is_none_or(|a| t.id > a)
                }),
        ) {
            after = Some(task.id);
            if let Some(row) = self.view.tasks.edit(task.id.0) {
                row.parent_id = None;
                row.updated_at = now;
            }
            self.event(EventKind::TaskMoved, task.row_key(), "");
        }
    }
}
