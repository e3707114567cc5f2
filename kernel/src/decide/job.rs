//! The cleanup job's claims, retries and end (C-2..C-10, C-17).

use super::relations::*;
use super::snapshot::SNAPSHOT_VERSION;
use super::{Ctx, known};
use crate::command::CleanupCommand;
use crate::decision::*;
use crate::evidence::Liveness;
use crate::guard::{Guard, GuardSet};
use crate::id::*;
use crate::machine;
use crate::machine::job::Input as On;
use crate::refusal::{InTheWay, Refusal};
use crate::rows::*;
use crate::time::Time;

impl<G: GuardSet> Ctx<'_, G> {
    pub(crate) fn cleanup_command(
        &mut self,
        command: &CleanupCommand,
    ) -> Result<Decision, Refusal> {
        match *command {
            CleanupCommand::Claim { job_root, token, instance } => {
                self.claim(job_root, token, instance).map(Decision::from)
            }
            CleanupCommand::Renew { job_root, token } => {
                let part = self.claimed(job_root, token)?;
                let lease = self.now + self.settings().lease;
                if let Some(row) = self.view.job_roots.edit(part.id.0) {
                    row.lease_until = Some(lease);
                }
                Ok(Reply::Done.into())
            }
            CleanupCommand::SettleResource { resource, token, liveness } => {
                self.settle_resource(resource, token, liveness).map(Decision::from)
            }
            CleanupCommand::Permit { resource, token, removal, removal_token, evidence } => {
                self.permit(resource, token, removal, removal_token, evidence)
            }
            CleanupCommand::RecordStep { removal, token, step, found_something, salvage } => {
                self.record_step(removal, token, step, found_something, salvage)
            }
            CleanupCommand::RecordFailure { removal, token, reason, in_place } => {
                self.record_failure(removal, token, reason, in_place)
            }
            CleanupCommand::RenewRemoval { removal, token } => self.renew_removal(removal, token),
            CleanupCommand::TakeOverRemoval { removal, old_token, token, instance } => {
                self.take_over(removal, old_token, token, instance)
            }
            CleanupCommand::Finish { job_root, token } => {
                self.finish(job_root, token).map(Decision::from)
            }
            CleanupCommand::PutBack { job_root, token, not_before } => {
                self.put_back(job_root, token, not_before).map(Decision::from)
            }
            CleanupCommand::Park { job_root, token } => {
                let part = self.claimed(job_root, token)?;
                let job = known!(self, jobs, part.job_id, JobKnown)?;
                self.park(&job, &part).map(Decision::from)
            }
            CleanupCommand::Rescue { job_root, token } => {
                self.rescue(job_root, token).map(Decision::from)
            }
            CleanupCommand::GiveUpRoot { job_root } => {
                self.give_up_root(job_root).map(Decision::from)
            }
            CleanupCommand::ExpireSalvage { salvage } => {
                self.expire_salvage(salvage).map(Decision::from)
            }
            CleanupCommand::Purge { trash, removal, token, instance } => {
                self.purge(trash, removal, token, instance)
            }
        }
    }

    fn claim(
        &mut self,
        id: JobRootId,
        token: Token,
        instance: InstanceId,
    ) -> Result<Reply, Refusal> {
        let part = known!(self, job_roots, id, JobRootKnown)?;
        let job = known!(self, jobs, part.job_id, JobKnown)?;
        let instance = self.live_instance(instance)?;
        self.hold(Guard::NotDraining, !instance.draining, || InTheWay::one(instance.row_key()))?;
        let at = || InTheWay::one(part.row_key());
        let claimable = part.state == JobState::Pending || part.state == JobState::RetryWait;
        self.hold(Guard::Claimable, claimable, at)?;
        if !self.test(Guard::JobReadable, self.readable(&job)) {
            return self.park(&job, &part);
        }
        let due = part.next_attempt_at.is_none_or(|at| at <= self.now);
        self.hold(Guard::Due, due, at)?;
        if let Some(root) = part.root_id {
            let served =
                self.view.managed_roots.id(root.0).is_some_and(|r| r.host == instance.host);
            self.hold(Guard::RootServed, served, at)?;
        }
        let other = self
            .view
            .jobs
            .iter()
            .find(|j| j.task_id == job.task_id && j.id != job.id && j.state == JobState::Running)
            .copied();
        self.hold(Guard::OneJobOfTask, other.is_none(), || {
            InTheWay::of(other.iter().map(Row::row_key))
        })?;
        let (now, lease) = (self.now, self.now + self.settings().lease);
        self.step_part(&part, On::Claim)?;
        if let Some(row) = self.view.job_roots.edit(id.0) {
            row.tries += 1;
            row.next_attempt_at = None;
            row.token = Some(token);
            row.claimed_by = Some(instance.id);
            row.lease_until = Some(lease);
            row.updated_at = now;
        }
        self.view.tasks.touch(job.task_id.0);
        self.event(EventKind::JobClaimed, part.row_key(), "");
        self.derive_job(&job)?;
        Ok(Reply::Done)
    }

    fn readable(&self, job: &Job) -> bool {
        job.trigger != Trigger::Unreadable && job.snapshot_version == SNAPSHOT_VERSION
    }

    /// C-10: parked as failed with its bytes untouched; the others go on. So does who works on
    /// another part of it and can read that: a claim is ended by its token (C-3).
    fn park(&mut self, job: &Job, own: &JobRoot) -> Result<Reply, Refusal> {
        let now = self.now;
        for part in self.view.job_roots.iter_mut().filter(|r| r.job_id == job.id) {
            let others = part.id != own.id && part.state == JobState::Running;
            if is_final(part.state) || others {
                continue;
            }
            part.state = JobState::Failed;
            part.token = None;
            part.claimed_by = None;
            part.lease_until = None;
            part.next_attempt_at = None;
            part.updated_at = now;
        }
        self.derive_job(job)?;
        Ok(Reply::Settled { result: ResourceResult::Failed, reason: Reason::SnapshotUnreadable })
    }

    /// A claim that this token proves, with a lease that holds (C-3, C-4).
    pub(crate) fn claimed(&self, id: JobRootId, token: Token) -> Result<JobRoot, Refusal> {
        let part = known!(self, job_roots, id, JobRootKnown)?;
        let at = || InTheWay::one(part.row_key());
        self.hold(Guard::ClaimRunning, part.state == JobState::Running, at)?;
        self.hold(Guard::ClaimToken, part.token == Some(token), at)?;
        let held = part.lease_until.is_some_and(|lease| lease > self.now);
        self.hold(Guard::ClaimLease, held, at)?;
        Ok(part)
    }

    fn settle_resource(
        &mut self,
        id: ResourceId,
        token: Token,
        liveness: Liveness,
    ) -> Result<Reply, Refusal> {
        let resource = known!(self, resources, id, ResourceKnown)?;
        self.claimed(resource.job_root_id, token)?;
        if !is_left(resource.result) {
            return Ok(Reply::Unchanged);
        }
        match resource.kind {
            ResourceKind::Worktree => Err(Refusal {
                guard: Guard::WorktreeNeedsWarrant,
                rows: InTheWay::one(resource.row_key()),
            }),
            ResourceKind::Attempt => Ok(self.settle_attempt(&resource)),
            ResourceKind::Runtime | ResourceKind::Container | ResourceKind::Sandbox => {
                self.settle_handle(&resource, liveness)
            }
        }
    }

    /// A job with an unresolved attempt cannot succeed (C-6).
    fn settle_attempt(&mut self, resource: &Resource) -> Reply {
        let attempt = resource.attempt_id.and_then(|a| self.view.attempts.id(a.0)).copied();
        match attempt {
            Some(attempt) if is_unresolved(&attempt) => self.not_now(resource, Reason::MakerAlive),
            Some(_) => {
                self.settle(resource, ResourceResult::Removed, Reason::None, None);
                Reply::Settled { result: ResourceResult::Removed, reason: Reason::None }
            }
            None => {
                self.settle(resource, ResourceResult::Absent, Reason::None, None);
                Reply::Settled { result: ResourceResult::Absent, reason: Reason::None }
            }
        }
    }

    /// C-7: the last handle is not dropped before its stop succeeded or it is proven dead.
    fn settle_handle(&mut self, resource: &Resource, liveness: Liveness) -> Result<Reply, Refusal> {
        let runtime = resource.runtime_id.and_then(|r| self.view.runtimes.id(r.0)).copied();
        let stopped = runtime.is_some_and(|r| !is_running(&r));
        let dead = match liveness {
            Liveness::Dead => true,
            Liveness::Alive | Liveness::Unknown => false,
        };
        if !self.test(Guard::ProvenDead, dead || stopped) {
            return Ok(self.not_now(resource, Reason::RuntimeAlive));
        }
        if let Some(row) = runtime.filter(is_running) {
            let Some(next) = machine::runtime::step(row.status, machine::runtime::Input::Proven)
            else {
                return self.illegal(row.row_key());
            };
            let now = self.now;
            if let Some(r) = self.view.runtimes.edit(row.id.0) {
                r.status = next;
                r.updated_at = now;
            }
            self.event(EventKind::RuntimeReported, row.row_key(), next.code());
        }
        self.settle(resource, ResourceResult::Removed, Reason::None, None);
        Ok(Reply::Settled { result: ResourceResult::Removed, reason: Reason::None })
    }

    /// Ends a claim; what is left decides (C-2, C-8, C-9).
    fn finish(&mut self, id: JobRootId, token: Token) -> Result<Reply, Refusal> {
        let part = self.claimed(id, token)?;
        let job = known!(self, jobs, part.job_id, JobKnown)?;
        let (input, event) = self.judge(&part);
        self.end_claim(&job, &part, input, event)
    }

    /// What the state of its resources means for a part of a job.
    fn judge(&self, part: &JobRoot) -> (On, EventKind) {
        let of_part = || self.view.resources.iter().filter(|r| r.job_root_id == part.id);
        if of_part().any(|r| is_left(r.result)) {
            if part.tries >= self.settings().max_tries {
                (On::Fail, EventKind::JobFailed)
            } else {
                (On::Wait, EventKind::JobRetryWait)
            }
        } else if of_part().any(|r| r.result == ResourceResult::Failed) {
            (On::Fail, EventKind::JobFailed)
        } else {
            (On::Succeed, EventKind::JobSucceeded)
        }
    }

    fn end_claim(
        &mut self,
        job: &Job,
        part: &JobRoot,
        input: On,
        event: EventKind,
    ) -> Result<Reply, Refusal> {
        self.step_part(part, input)?;
        let now = self.now;
        let wait = self.settings().wait_after(part.tries);
        if let Some(row) = self.view.job_roots.edit(part.id.0) {
            row.token = None;
            row.claimed_by = None;
            row.lease_until = None;
            row.next_attempt_at = (input == On::Wait).then_some(now + wait);
            row.updated_at = now;
        }
        self.event(event, part.row_key(), "");
        if input == On::Fail {
            self.spend(part);
        }
        self.derive_job(job)?;
        let state = self.view.jobs.id(job.id.0).map_or(job.state, |j| j.state);
        Ok(Reply::Job { job: job.id, state })
    }

    /// The tries are spent: what waits ends in a visible final state (C-2). A removal that is
    /// under way keeps its row and may still settle (P-13).
    fn spend(&mut self, part: &JobRoot) {
        let mut after = None;
        while let Some(resource) = first(self.view.resources.iter().filter(|r| {
            r.job_root_id == part.id
                && r.result == ResourceResult::Waiting
                && after.is_none_or(|a| r.id > a)
        })) {
            after = Some(resource.id);
            let reason = super::attempt::some_reason(resource.reason, Reason::TriesSpent);
            self.settle(&resource, ResourceResult::Failed, reason, None);
        }
    }

    fn put_back(
        &mut self,
        id: JobRootId,
        token: Token,
        not_before: Option<Time>,
    ) -> Result<Reply, Refusal> {
        let part = self.claimed(id, token)?;
        let job = known!(self, jobs, part.job_id, JobKnown)?;
        self.step_part(&part, On::PutBack)?;
        let now = self.now;
        if let Some(row) = self.view.job_roots.edit(id.0) {
            row.tries = part.tries.saturating_sub(1);
            row.next_attempt_at = not_before;
            row.token = None;
            row.claimed_by = None;
            row.lease_until = None;
            row.updated_at = now;
        }
        self.event(EventKind::JobPutBack, part.row_key(), "");
        self.derive_job(&job)?;
        Ok(Reply::Done)
    }

    /// C-4: re-checks state, token and lease inside its write; what finished meanwhile stays
    /// finished. A lapsed last try ends in a visible final state (C-2).
    fn rescue(&mut self, id: JobRootId, token: Token) -> Result<Reply, Refusal> {
        let part = known!(self, job_roots, id, JobRootKnown)?;
        let job = known!(self, jobs, part.job_id, JobKnown)?;
        let at = || InTheWay::one(part.row_key());
        self.hold(Guard::RescueRunning, part.state == JobState::Running, at)?;
        self.hold(Guard::RescueToken, part.token == Some(token), at)?;
        let lapsed = part.lease_until.is_some_and(|lease| lease <= self.now);
        self.hold(Guard::RescueLapsed, lapsed, at)?;
        let (input, _) = self.judge(&part);
        self.end_claim(&job, &part, input, EventKind::JobRescued)
    }

    /// C-3: nobody has served this root for too long.
    fn give_up_root(&mut self, id: JobRootId) -> Result<Reply, Refusal> {
        let part = known!(self, job_roots, id, JobRootKnown)?;
        let job = known!(self, jobs, part.job_id, JobKnown)?;
        let at = || InTheWay::one(part.row_key());
        let waits = part.state == JobState::Pending || part.state == JobState::RetryWait;
        self.hold(Guard::Claimable, waits, at)?;
        let since = part.next_attempt_at.unwrap_or(part.updated_at);
        let patience = self.settings().root_patience;
        self.hold(Guard::RootUnserved, since + patience <= self.now, at)?;
        let mut after = None;
        while let Some(resource) = first(self.view.resources.iter().filter(|r| {
            r.job_root_id == id
                && r.result == ResourceResult::Waiting
                && after.is_none_or(|a| r.id > a)
        })) {
            after = Some(resource.id);
            self.settle(&resource, ResourceResult::Failed, Reason::RootUnavailable, None);
        }
        self.end_claim(&job, &part, On::Fail, EventKind::JobFailed)
    }

    fn step_part(&mut self, part: &JobRoot, input: On) -> Result<(), Refusal> {
        let Some(state) = machine::job::step(part.state, input) else {
            return self.illegal(part.row_key());
        };
        let now = self.now;
        if let Some(row) = self.view.job_roots.edit(part.id.0) {
            row.state = state;
            row.updated_at = now;
        }
        Ok(())
    }

    /// The job's state follows from its parts (C-1).
    pub(crate) fn derive_job(&mut self, job: &Job) -> Result<(), Refusal> {
        // Cancelled is final (P-13): what is settled afterwards changes its resources only.
        if job.state == JobState::Cancelled {
            return Ok(());
        }
        let parts = || self.view.job_roots.iter().filter(|r| r.job_id == job.id);
        let any = |state: JobState| parts().any(|r| r.state == state);
        let state = if any(JobState::Running) {
            JobState::Running
        } else if any(JobState::Pending) {
            JobState::Pending
        } else if any(JobState::RetryWait) {
            JobState::RetryWait
        } else if any(JobState::Failed) {
            JobState::Failed
        } else if any(JobState::Succeeded) {
            JobState::Succeeded
        } else {
            return Ok(());
        };
        if state == job.state {
            return Ok(());
        }
        let now = self.now;
        if let Some(row) = self.view.jobs.edit(job.id.0) {
            row.state = state;
            row.updated_at = now;
            row.completed_at = is_final(state).then_some(now);
        }
        match state {
            JobState::Succeeded => self.event(EventKind::JobSucceeded, job.row_key(), ""),
            JobState::Failed => self.event(EventKind::JobFailed, job.row_key(), ""),
            JobState::Prepared
            | JobState::Pending
            | JobState::Running
            | JobState::RetryWait
            | JobState::Cancelled => {}
        }
        Ok(())
    }
}
