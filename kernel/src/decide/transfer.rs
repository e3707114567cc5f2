//! Transfer of an environment to another task (W-9, W-20): by a person's command, or as part of
//! the deletion of its owner.

use super::relations::*;
use super::{Ctx, known};
use crate::decision::*;
use crate::guard::{Guard, GuardSet};
use crate::id::*;
use crate::refusal::{InTheWay, Refusal};
use crate::rows::*;

impl<G: GuardSet> Ctx<'_, G> {
    pub(crate) fn transfer_command(
        &mut self,
        environment: EnvironmentId,
        to: TaskId,
    ) -> Result<Reply, Refusal> {
        let environment = known!(self, environments, environment, EnvironmentKnown)?;
        let giver = self.task(environment.task_id)?;
        let receiver = self.task(to)?;
        if giver.id == receiver.id {
            return Ok(Reply::Unchanged);
        }
        self.open_task(&giver)?;
        self.hold(Guard::ReceiverActive, receiver.lifecycle == TaskLifecycle::Active, || {
            InTheWay::one(receiver.row_key())
        })?;
        let held = barrier(self.view, receiver.id);
        self.hold(Guard::ReceiverUnbarred, held.is_none(), || {
            InTheWay::of(held.iter().map(|j| j.row_key()))
        })?;
        self.may_move(&environment)?;
        self.transfer(&environment, to);
        Ok(Reply::Done)
    }

    /// W-9: no open attempt and no unsettled removal.
    pub(crate) fn may_move(&self, environment: &Environment) -> Result<(), Refusal> {
        let open = self
            .view
            .attempts
            .iter()
            .filter(|a| a.task_environment_id == environment.id && is_open(a));
        self.hold(Guard::NoOpenAttempt, open.clone().next().is_none(), || {
            InTheWay::of(open.map(Row::row_key))
        })?;
        self.not_in_removal(environment.id)
    }

    /// Moves the environment's `task_id`; the worktrees follow without a write of their own.
    pub(crate) fn transfer(&mut self, environment: &Environment, to: TaskId) {
        let now = self.now;
        if let Some(row) = self.view.environments.edit(environment.id.0) {
            row.task_id = to;
            row.updated_at = now;
        }
        self.event(EventKind::EnvironmentTransferred, environment.row_key(), "");
        self.release_current(environment.task_id, environment.id);
        self.offer_current(to, environment.id);
        self.view.tasks.touch(environment.task_id.0);
        self.view.tasks.touch(to.0);
    }

    /// The giver's current environment, if it was this one, becomes its newest other one.
    fn release_current(&mut self, task: TaskId, environment: EnvironmentId) {
        let holds = self
            .view
            .tasks
            .id(task.0)
            .is_some_and(|t| t.current_environment_id == Some(environment));
        if !holds {
            return;
        }
        let next = environments_of(self.view, task)
            .filter(|e| e.id != environment)
            .max_by(|a, b| a.created_at.cmp(&b.created_at).then_with(|| b.id.cmp(&a.id)))
            .map(|e| e.id);
        let now = self.now;
        if let Some(row) = self.view.tasks.edit(task.0) {
            row.current_environment_id = next;
            row.updated_at = now;
        }
        self.event(EventKind::CurrentEnvironmentChanged, RowKey::task(task), "");
    }
}
