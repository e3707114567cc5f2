//! The steps of a task lifecycle operation (03): dispatch, owner, abort, workspace deletion.

use super::Ctx;
use super::relations::*;
use super::reserve::Reservation;
use crate::command::{OperationCommand, Scope};
use crate::decision::*;
use crate::guard::{Guard, GuardSet};
use crate::id::*;
use crate::machine;
use crate::refusal::{InTheWay, Refusal};
use crate::rows::*;

impl OperationCommand {
    /// Whether the command begins something, so that a person's permission is looked at. The
    /// other steps are guarded by who owns the barrier.
    pub(crate) const fn is_admission(&self) -> bool {
        match self {
            OperationCommand::Reserve { .. }
            | OperationCommand::Unarchive { .. }
            | OperationCommand::BeginWorkspaceDelete { .. } => true,
            OperationCommand::RenewBarrier { .. }
            | OperationCommand::Snapshot { .. }
            | OperationCommand::Mutate { .. }
            | OperationCommand::Abort { .. }
            | OperationCommand::AbortWorkspaceDelete { .. }
            | OperationCommand::FinishWorkspaceDelete { .. } => false,
        }
    }
}

impl<G: GuardSet> Ctx<'_, G> {
    pub(crate) fn operation_command(
        &mut self,
        command: &OperationCommand,
    ) -> Result<Reply, Refusal> {
        match *command {
            OperationCommand::Reserve {
                operation,
                job,
                task,
                trigger,
                environment,
                cascade_root,
                policy,
                branch_policy,
                consent,
                unsaved,
                refuse_busy,
                instance,
                content,
            } => self.reserve(Reservation {
                operation,
                job,
                task,
                trigger,
                environment,
                cascade_root,
                policy,
                branch_policy,
                consent,
                unsaved,
                refuse_busy,
                instance,
                content,
            }),
            OperationCommand::RenewBarrier { operation, instance } => {
                self.owned_barrier(operation, instance)?;
                let (lease, now) = (self.now + self.settings().lease, self.now);
                for job in prepared_of(self.view, operation) {
                    job.lease_until = Some(lease);
                }
                for workspace in self.view.workspaces.iter_mut() {
                    if workspace.deleting_operation == Some(operation) {
                        workspace.deleting_lease = Some(lease);
                        workspace.updated_at = now;
                    }
                }
                Ok(Reply::Done)
            }
            OperationCommand::Snapshot { operation, scope, instance } => {
                self.owned_barrier(operation, instance)?;
                self.scope_fits(operation, scope)?;
                self.snapshot(operation)
            }
            OperationCommand::Mutate { operation, scope, instance } => {
                self.owned_barrier(operation, instance)?;
                self.scope_fits(operation, scope)?;
                self.mutate(operation)
            }
            OperationCommand::Abort { operation, instance } => {
                let mine = self
                    .view
                    .jobs
                    .iter()
                    .find(|j| j.operation_id == operation && j.state == JobState::Prepared)
                    .copied();
                if let Some(job) = mine {
                    self.hold(Guard::BarrierOwner, job.instance_id == Some(instance), || {
                        InTheWay::one(job.row_key())
                    })?;
                }
                self.cancel_prepared(operation)
            }
            OperationCommand::Unarchive { task, cascade } => self.unarchive(task, cascade),
            OperationCommand::BeginWorkspaceDelete { workspace, operation, instance } => {
                self.begin_workspace_delete(workspace, operation, instance)
            }
            OperationCommand::AbortWorkspaceDelete { workspace, operation } => {
                let row = self.workspace(workspace)?;
                self.deleted_by(&row, operation)?;
                self.cancel_prepared(operation)?;
                self.restore_workspace(&row)
            }
            OperationCommand::FinishWorkspaceDelete { workspace, operation, instance } => {
                self.finish_workspace_delete(workspace, operation, instance)
            }
        }
    }

    /// The operation holds a barrier, this instance owns it, and its lease holds (B-7): an owner
    /// that lost its lease cannot commit the mutation.
    fn owned_barrier(&self, operation: OperationId, instance: InstanceId) -> Result<(), Refusal> {
        let mut jobs = self
            .view
            .jobs
            .iter()
            .filter(|j| j.operation_id == operation && j.state == JobState::Prepared)
            .peekable();
        let any = jobs.peek().is_some();
        self.hold(Guard::BarrierHeld, any, || {
            InTheWay::of(
                self.view.jobs.iter().filter(|j| j.operation_id == operation).map(Row::row_key),
            )
        })?;
        for job in jobs {
            self.hold(Guard::BarrierOwner, job.instance_id == Some(instance), || {
                InTheWay::one(job.row_key())
            })?;
            let held = job.lease_until.is_some_and(|lease| lease > self.now);
            self.hold(Guard::BarrierLease, held, || InTheWay::one(job.row_key()))?;
        }
        Ok(())
    }

    /// The rows that were loaded are those that the operation is about.
    fn scope_fits(&self, operation: OperationId, scope: Scope) -> Result<(), Refusal> {
        let other = self.view.jobs.iter().find(|j| {
            j.operation_id == operation
                && j.state == JobState::Prepared
                && j.trigger.scope() != scope
        });
        self.hold(Guard::ScopeFits, other.is_none(), || {
            InTheWay::of(other.iter().map(|j| j.row_key()))
        })
    }

    /// Cancels the operation's prepared jobs: their barriers lift, their ids are free (B-1).
    pub(crate) fn cancel_prepared(&mut self, operation: OperationId) -> Result<Reply, Refusal> {
        let mut changed = false;
        while let Some(job) = first(
            self.view
                .jobs
                .iter()
                .filter(|j| j.operation_id == operation && j.state == JobState::Prepared),
        ) {
            self.cancel_job(&job)?;
            changed = true;
        }
        Ok(if changed { Reply::Done } else { Reply::Unchanged })
    }

    /// Cancels a job and its parts. Removals that were permitted go on to their outcome (C-18).
    pub(crate) fn cancel_job(&mut self, job: &Job) -> Result<(), Refusal> {
        let Some(state) = machine::job::step(job.state, machine::job::Input::Cancel) else {
            return self.illegal(job.row_key());
        };
        let now = self.now;
        if let Some(row) = self.view.jobs.edit(job.id.0) {
            row.state = state;
            row.instance_id = None;
            row.lease_until = None;
            row.completed_at = Some(now);
            row.updated_at = now;
        }
        for root in self.view.job_roots.iter_mut().filter(|r| r.job_id == job.id) {
            if !is_final(root.state) {
                root.state = JobState::Cancelled;
                root.token = None;
                root.claimed_by = None;
                root.lease_until = None;
                root.next_attempt_at = None;
                root.updated_at = now;
            }
        }
        self.view.tasks.touch(job.task_id.0);
        self.event(EventKind::JobCancelled, job.row_key(), job.trigger.code());
        Ok(())
    }

    fn begin_workspace_delete(
        &mut self,
        id: WorkspaceId,
        operation: OperationId,
        instance: InstanceId,
    ) -> Result<Reply, Refusal> {
        let workspace = self.workspace(id)?;
        let instance = self.live_instance(instance)?;
        if workspace.deleting_operation == Some(operation)
            && workspace.deleting_instance == Some(instance.id)
        {
            return Ok(Reply::Unchanged);
        }
        self.hold(Guard::WorkspaceActive, workspace.state == WorkspaceState::Active, || {
            InTheWay::one(workspace.row_key())
        })?;
        let (now, lease) = (self.now, self.now + self.settings().lease);
        if let Some(row) = self.view.workspaces.edit(id.0) {
            row.state = WorkspaceState::Deleting;
            row.deleting_operation = Some(operation);
            row.deleting_instance = Some(instance.id);
            row.deleting_lease = Some(lease);
            row.updated_at = now;
        }
        self.event(EventKind::WorkspaceDeleting, workspace.row_key(), "");
        Ok(Reply::Done)
    }

    fn deleted_by(&self, workspace: &Workspace, operation: OperationId) -> Result<(), Refusal> {
        self.hold(Guard::WorkspaceDeletion, workspace.deleting_operation == Some(operation), || {
            InTheWay::one(workspace.row_key())
        })
    }

    /// Sets a workspace whose deletion did not come to its mutation back to active (T-9).
    pub(crate) fn restore_workspace(&mut self, workspace: &Workspace) -> Result<Reply, Refusal> {
        let now = self.now;
        if let Some(row) = self.view.workspaces.edit(workspace.id.0) {
            row.state = WorkspaceState::Active;
            row.deleting_operation = None;
            row.deleting_instance = None;
            row.deleting_lease = None;
            row.updated_at = now;
        }
        self.event(EventKind::WorkspaceDeleteAborted, workspace.row_key(), "");
        Ok(Reply::Done)
    }

    /// An empty workspace is simply removed (T-9).
    fn finish_workspace_delete(
        &mut self,
        id: WorkspaceId,
        operation: OperationId,
        instance: InstanceId,
    ) -> Result<Reply, Refusal> {
        let workspace = self.workspace(id)?;
        self.deleted_by(&workspace, operation)?;
        let owner = workspace.deleting_instance == Some(instance);
        let held = workspace.deleting_lease.is_some_and(|lease| lease > self.now);
        let at = || InTheWay::one(workspace.row_key());
        self.hold(Guard::BarrierOwner, owner, at)?;
        self.hold(Guard::BarrierLease, held, at)?;
        let tasks = self.view.tasks.iter().filter(|t| t.workspace_id == id);
        self.hold(Guard::WorkspaceComplete, tasks.clone().next().is_none(), || {
            InTheWay::of(tasks.map(Row::row_key))
        })?;
        self.remove_workspace(&workspace);
        Ok(Reply::Done)
    }

    pub(crate) fn remove_workspace(&mut self, workspace: &Workspace) {
        self.view.workspaces.remove(workspace.id.0);
        self.bury(IdentityKind::Workspace, workspace.id.0);
        self.event(EventKind::WorkspaceDeleted, workspace.row_key(), "");
    }
}

fn prepared_of(view: &mut View, operation: OperationId) -> impl Iterator<Item = &mut Job> {
    view.jobs
        .iter_mut()
        .filter(move |j| j.operation_id == operation && j.state == JobState::Prepared)
}
