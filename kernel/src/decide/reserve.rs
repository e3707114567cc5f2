//! Reserving: the barrier of one task (B-1, T-4, T-5, T-8, T-10, T-11).

use super::Ctx;
use super::relations::*;
use crate::decision::*;
use crate::guard::{Guard, GuardSet};
use crate::id::*;
use crate::machine;
use crate::refusal::{InTheWay, Refusal};
use crate::rows::*;

/// The fields of [`crate::command::OperationCommand::Reserve`].
#[derive(Clone, Copy)]
pub(crate) struct Reservation {
    pub(crate) operation: OperationId,
    pub(crate) job: JobId,
    pub(crate) task: TaskId,
    pub(crate) trigger: Trigger,
    pub(crate) environment: Option<EnvironmentId>,
    pub(crate) cascade_root: Option<TaskId>,
    pub(crate) policy: UnsavedPolicy,
    pub(crate) branch_policy: BranchPolicy,
    pub(crate) consent: Unsaved,
    pub(crate) unsaved: Unsaved,
    pub(crate) refuse_busy: bool,
    pub(crate) instance: InstanceId,
    pub(crate) content: ContentHash,
}

impl<G: GuardSet> Ctx<'_, G> {
    pub(crate) fn reserve(&mut self, r: Reservation) -> Result<Reply, Refusal> {
        // C-12, T-11: the same operation on the same task is the same job, even after its task
        // is gone.
        let same = self
            .view
            .jobs
            .iter()
            .find(|j| {
                j.operation_id == r.operation
                    && j.task_id == r.task
                    && !(j.state == JobState::Cancelled && j.mutated_at.is_none())
            })
            .copied();
        if let Some(job) = same {
            self.hold(Guard::OperationContent, job.content_hash == r.content, || {
                InTheWay::one(job.row_key())
            })?;
            return self.converge(&job);
        }
        let task = self.task(r.task)?;
        let known = self.view.jobs.id(r.job.0).copied();
        self.hold(Guard::JobNew, known.is_none(), || InTheWay::of(known.iter().map(Row::row_key)))?;
        self.shape(&task, &r)?;
        let instance = self.live_instance(r.instance)?;
        if archives(r.trigger) && task.lifecycle == TaskLifecycle::Archived {
            return self.archive_again(&task);
        }
        if r.environment.is_some() {
            self.hold(Guard::TaskActive, task.lifecycle == TaskLifecycle::Active, || {
                InTheWay::one(task.row_key())
            })?;
        }
        self.unbarred(task.id)?;
        self.kind_of_trigger(&task, &r)?;
        self.busy(&task, &r)?;
        self.consented(&r)?;
        let (now, lease) = (self.now, self.now + self.settings().lease);
        let job = Job {
            id: r.job,
            operation_id: r.operation,
            task_id: task.id,
            content_hash: r.content,
            trigger: r.trigger,
            authority: r.operation,
            environment_id: r.environment,
            cascade_root: r.cascade_root,
            policy: r.policy,
            branch_policy: r.branch_policy,
            consent: r.consent,
            state: JobState::Prepared,
            instance_id: Some(instance.id),
            lease_until: Some(lease),
            snapshot_version: 0,
            mutated_at: None,
            created_at: now,
            updated_at: now,
            completed_at: None,
        };
        self.view.jobs.insert(job);
        self.view.tasks.touch(task.id.0);
        self.event(EventKind::BarrierReserved, job.row_key(), r.trigger.code());
        // T-5: turns are stopped under the barrier; those of borrowers go on.
        match r.environment {
            Some(e) => self.stop_runtimes(|x| x.task_environment_id == Some(e)),
            None => self.stop_runtimes(|x| x.task_id == task.id),
        }
        Ok(Reply::Job { job: r.job, state: JobState::Prepared })
    }

    /// The same operation again: the same job; if its cleanup finally failed, it is retried.
    fn converge(&mut self, job: &Job) -> Result<Reply, Refusal> {
        if job.state == JobState::Failed
            && archives(job.trigger)
            && authority_stands(self.view, job)
        {
            self.retry_job(job)?;
            return Ok(Reply::Job { job: job.id, state: JobState::Pending });
        }
        Ok(Reply::Job { job: job.id, state: job.state })
    }

    /// T-11: archiving an archived task reopens a cleanup that finally failed.
    fn archive_again(&mut self, task: &Task) -> Result<Reply, Refusal> {
        let failed = self
            .view
            .jobs
            .iter()
            .find(|j| {
                j.task_id == task.id
                    && j.state == JobState::Failed
                    && Some(j.authority) == task.archived_by
            })
            .copied();
        match failed {
            Some(job) => {
                self.retry_job(&job)?;
                Ok(Reply::Job { job: job.id, state: JobState::Pending })
            }
            None => Ok(Reply::Unchanged),
        }
    }

    /// What the command must bring for its trigger.
    fn shape(&self, task: &Task, r: &Reservation) -> Result<(), Refusal> {
        let cascade = matches!(r.trigger, Trigger::CascadeArchive | Trigger::CascadeDelete);
        let reset = r.trigger == Trigger::EnvironmentReset;
        let by_hand =
            !matches!(r.trigger, Trigger::Reconcile | Trigger::OrphanRemoval | Trigger::Unreadable);
        let fits = by_hand
            && cascade == r.cascade_root.is_some()
            && reset == r.environment.is_some()
            && r.cascade_root.is_none_or(|root| descends(self.view, task.id, root));
        self.hold(Guard::TriggerShape, fits, || InTheWay::one(task.row_key()))
    }

    fn kind_of_trigger(&self, task: &Task, r: &Reservation) -> Result<(), Refusal> {
        let at = || InTheWay::one(task.row_key());
        if r.trigger == Trigger::QuickChatExpire {
            let expired = task.expires_at.is_some_and(|at| at <= self.now);
            self.hold(Guard::Expired, expired, at)?;
        }
        if r.trigger == Trigger::WorkspaceDelete {
            let workspace = self.workspace(task.workspace_id)?;
            self.hold(
                Guard::WorkspaceDeletion,
                workspace.deleting_operation == Some(r.operation),
                || InTheWay::one(workspace.row_key()),
            )?;
        }
        if let Some(id) = r.environment {
            let environment = super::known!(self, environments, id, EnvironmentKnown)?;
            self.hold(Guard::EnvironmentOfTask, environment.task_id == task.id, || {
                InTheWay::one(environment.row_key())
            })?;
            self.no_borrower(&environment)?;
            self.not_in_removal(id)?;
        }
        Ok(())
    }

    /// T-10: refused while the environment has a borrower.
    pub(crate) fn no_borrower(&self, environment: &Environment) -> Result<(), Refusal> {
        let borrowing = borrowers(self.view, environment);
        self.hold(Guard::NoBorrower, borrowing.clone().next().is_none(), || {
            InTheWay::of(borrowing.map(Row::row_key))
        })
    }

    /// T-5: a caller may ask to be refused as busy; quick-chat expiry always is.
    fn busy(&self, task: &Task, r: &Reservation) -> Result<(), Refusal> {
        if !r.refuse_busy && r.trigger != Trigger::QuickChatExpire {
            return Ok(());
        }
        let working = self.view.turns.iter().filter(|t| {
            t.phase != TurnPhase::Ended
                && self.view.sessions.id(t.session_id.0).is_some_and(|s| s.task_id == task.id)
        });
        self.hold(Guard::TaskNotBusy, working.clone().next().is_none(), || {
            InTheWay::of(working.map(Row::row_key))
        })
    }

    /// W-34, B-1: under `refuse`, unsaved work refuses before anything is reserved; `discard`
    /// needs the consent that it brings.
    fn consented(&self, r: &Reservation) -> Result<(), Refusal> {
        match r.policy {
            UnsavedPolicy::Salvage => Ok(()),
            UnsavedPolicy::Refuse => {
                self.hold(Guard::NothingUnsaved, r.unsaved.is_none(), || InTheWay::NONE)
            }
            UnsavedPolicy::Discard => {
                self.hold(Guard::ConsentGiven, !r.consent.is_none(), || InTheWay::NONE)
            }
        }
    }

    /// Retries a failed job now; the count starts anew (C-2).
    pub(crate) fn retry_job(&mut self, job: &Job) -> Result<(), Refusal> {
        let Some(state) = machine::job::step(job.state, machine::job::Input::Retry) else {
            return self.illegal(job.row_key());
        };
        let now = self.now;
        if let Some(row) = self.view.jobs.edit(job.id.0) {
            row.state = state;
            row.completed_at = None;
            row.updated_at = now;
        }
        for root in self.view.job_roots.iter_mut().filter(|r| r.job_id == job.id) {
            if root.state == JobState::Failed || root.state == JobState::RetryWait {
                root.state = JobState::Pending;
                root.tries = 0;
                root.next_attempt_at = None;
                root.updated_at = now;
            }
        }
        for resource in self.view.resources.iter_mut().filter(|r| r.job_id == job.id) {
            if resource.result == ResourceResult::Failed {
                resource.result = ResourceResult::Waiting;
                resource.reason = Reason::None;
                resource.updated_at = now;
            }
        }
        self.view.tasks.touch(job.task_id.0);
        self.event(EventKind::JobRetried, job.row_key(), "");
        Ok(())
    }
}
