//! Instances and recovery (D-15, B-7, C-11, S-14, S-22, T-9, W-21). Recovery re-checks inside
//! its write: a slow but living owner is not robbed.

use super::relations::*;
use super::{Ctx, known};
use crate::command::SystemCommand;
use crate::decision::*;
use crate::evidence::Liveness;
use crate::guard::{Guard, GuardSet};
use crate::id::*;
use crate::refusal::{InTheWay, Refusal};
use crate::rows::*;

impl<G: GuardSet> Ctx<'_, G> {
    pub(crate) fn system_command(&mut self, command: &SystemCommand) -> Result<Reply, Refusal> {
        match *command {
            SystemCommand::RegisterInstance { instance, host } => {
                let known = self.view.instances.id(instance.0).copied();
                self.hold(Guard::InstanceNew, known.is_none(), || {
                    InTheWay::of(known.iter().map(Row::row_key))
                })?;
                self.view.instances.insert(Instance {
                    id: instance,
                    host,
                    started_at: self.now,
                    lease_until: self.now + self.settings().lease,
                    draining: false,
                });
                Ok(Reply::Done)
            }
            SystemCommand::RenewInstance { instance } => {
                let row = known!(self, instances, instance, InstanceKnown)?;
                let lease = self.now + self.settings().lease;
                if let Some(i) = self.view.instances.edit(row.id.0) {
                    i.lease_until = lease;
                }
                Ok(Reply::Done)
            }
            SystemCommand::Drain { instance, draining } => {
                let row = known!(self, instances, instance, InstanceKnown)?;
                if row.draining == draining {
                    return Ok(Reply::Unchanged);
                }
                if let Some(i) = self.view.instances.edit(row.id.0) {
                    i.draining = draining;
                }
                Ok(Reply::Done)
            }
            SystemCommand::RecoverBarrier { job } => self.recover_barrier(job),
            SystemCommand::RecoverWorkspaceDelete { workspace } => {
                let row = self.workspace(workspace)?;
                let at = || InTheWay::one(row.row_key());
                self.hold(Guard::WorkspaceDeletion, row.state == WorkspaceState::Deleting, at)?;
                let lapsed = row.deleting_lease.is_none_or(|lease| lease <= self.now);
                self.hold(Guard::BarrierLapsed, lapsed, at)?;
                if let Some(operation) = row.deleting_operation {
                    self.cancel_prepared(operation)?;
                }
                self.restore_workspace(&row)
            }
            SystemCommand::RecoverClosing { session } => {
                let row = self.session(session)?;
                if row.lifecycle != SessionLifecycle::Closing {
                    return Ok(Reply::Unchanged);
                }
                let lapsed = row.closing_lease.is_none_or(|lease| lease <= self.now);
                self.hold(Guard::ClosingLapsed, lapsed, || InTheWay::one(row.row_key()))?;
                self.lift(&row)?;
                Ok(Reply::Done)
            }
            SystemCommand::RecoverTurn { turn, liveness } => self.recover_turn(turn, liveness),
            SystemCommand::Reconcile { task, environment, job, operation } => {
                self.reconcile(task, environment, job, operation)
            }
        }
    }

    /// B-7: the owner died before the mutation; the barrier lifts.
    fn recover_barrier(&mut self, id: JobId) -> Result<Reply, Refusal> {
        let job = known!(self, jobs, id, JobKnown)?;
        if job.state != JobState::Prepared {
            return Ok(Reply::Unchanged);
        }
        let lapsed = job.lease_until.is_none_or(|lease| lease <= self.now);
        self.hold(Guard::BarrierLapsed, lapsed, || InTheWay::one(job.row_key()))?;
        self.cancel_job(&job)?;
        Ok(Reply::Done)
    }

    /// S-14: ends the turn as interrupted, once; nothing if the host says that it is alive.
    fn recover_turn(&mut self, id: TurnId, liveness: Liveness) -> Result<Reply, Refusal> {
        let turn = known!(self, turns, id, TurnKnown)?;
        if turn.phase == TurnPhase::Ended {
            return Ok(Reply::Unchanged);
        }
        self.hold(Guard::TurnLapsed, turn.lease_until <= self.now, || {
            InTheWay::one(turn.row_key())
        })?;
        if !self.test(Guard::TurnNotAlive, liveness != Liveness::Alive) {
            return Ok(Reply::Unchanged);
        }
        self.end_turn_row(&turn, TurnOutcome::Interrupted)?;
        Ok(Reply::Done)
    }

    /// W-21: what an archive preserved for a borrower, once none is left. The operation id is
    /// derived from the archive's and the environment, so that it happens at most once by itself.
    fn reconcile(
        &mut self,
        task: TaskId,
        environment: EnvironmentId,
        id: JobId,
        operation: OperationId,
    ) -> Result<Reply, Refusal> {
        let done = self.view.jobs.iter().find(|j| j.operation_id == operation).copied();
        if let Some(job) = done {
            return Ok(Reply::Job { job: job.id, state: job.state });
        }
        let task = self.task(task)?;
        let known = self.view.jobs.id(id.0).copied();
        self.hold(Guard::JobNew, known.is_none(), || InTheWay::of(known.iter().map(Row::row_key)))?;
        let environment = known!(self, environments, environment, EnvironmentKnown)?;
        let at = || InTheWay::one(task.row_key());
        self.hold(Guard::TaskArchived, task.lifecycle == TaskLifecycle::Archived, at)?;
        let Some(authority) = task.archived_by else {
            return Err(Refusal { guard: Guard::TaskArchived, rows: at() });
        };
        self.hold(Guard::ReconcileId, operation.0 == derive(authority.0, environment.id.0), at)?;
        self.unbarred(task.id)?;
        self.hold(Guard::EnvironmentOfTask, environment.task_id == task.id, || {
            InTheWay::one(environment.row_key())
        })?;
        self.no_borrower(&environment)?;
        let running =
            self.view.jobs.iter().find(|j| j.task_id == task.id && is_unfinished(j.state)).copied();
        self.hold(Guard::EarlierJobsEnded, running.is_none(), || {
            InTheWay::of(running.iter().map(Row::row_key))
        })?;
        let archive = self.view.jobs.iter().find(|j| j.authority == authority).copied();
        let job = Job {
            id,
            operation_id: operation,
            task_id: task.id,
            content_hash: ContentHash(operation.0),
            trigger: Trigger::Reconcile,
            authority,
            environment_id: Some(environment.id),
            cascade_root: None,
            policy: UnsavedPolicy::Salvage,
            branch_policy: BranchPolicy::Keep,
            consent: archive.map_or(Unsaved::NONE, |j| j.consent),
            state: JobState::Prepared,
            instance_id: None,
            lease_until: None,
            snapshot_version: super::snapshot::SNAPSHOT_VERSION,
            mutated_at: None,
            created_at: self.now,
            updated_at: self.now,
            completed_at: None,
        };
        self.view.jobs.insert(job);
        self.view.tasks.touch(task.id.0);
        self.event(EventKind::BarrierReserved, job.row_key(), "reconcile");
        // There is no mutation to wait for: barrier, snapshot and activation are one step.
        self.take_inventory(&job);
        self.event(EventKind::SnapshotTaken, job.row_key(), "");
        self.activate(&job)?;
        Ok(Reply::Job { job: id, state: JobState::Pending })
    }
}
