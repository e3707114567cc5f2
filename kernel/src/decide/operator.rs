//! What operators do by hand (C-2, C-15, D-18, D-25).

use super::relations::*;
use super::{Ctx, known};
use crate::command::OperatorCommand;
use crate::decision::*;
use crate::guard::{Guard, GuardSet};
use crate::id::*;
use crate::machine;
use crate::refusal::{InTheWay, Refusal};
use crate::rows::*;

impl<G: GuardSet> Ctx<'_, G> {
    pub(crate) fn operator_command(&mut self, command: &OperatorCommand) -> Result<Reply, Refusal> {
        match *command {
            OperatorCommand::Retry { job } => self.retry(job),
            OperatorCommand::Cancel { job } => self.cancel(job),
            OperatorCommand::ForgetResource { resource } => self.forget(resource),
            OperatorCommand::DeclareStopped { runtime } => self.declare_stopped(runtime),
            OperatorCommand::AdmitRestore { salvage, repo } => self.admit_restore(salvage, repo),
            OperatorCommand::MarkRestored { salvage } => {
                let salvage = known!(self, salvage, salvage, SalvageKnown)?;
                if salvage.state == SalvageState::Restored {
                    return Ok(Reply::Unchanged);
                }
                if let Some(row) = self.view.salvage.edit(salvage.id.0) {
                    row.state = SalvageState::Restored;
                }
                self.event(EventKind::SalvageRestored, salvage.row_key(), "");
                Ok(Reply::Done)
            }
            OperatorCommand::ChangeSettings { settings } => {
                self.hold(Guard::SettingsSane, sane(&settings), || InTheWay::NONE)?;
                let settings = self.with_consent(settings);
                if self.settings() == settings {
                    return Ok(Reply::Unchanged);
                }
                self.view.settings.insert(settings);
                self.event(EventKind::SettingsChanged, settings.row_key(), "");
                Ok(Reply::Done)
            }
            OperatorCommand::RegisterRoot { root, host, path } => {
                if let Some(known) = self.view.managed_roots.id(root.0).copied() {
                    self.hold(Guard::RootNew, known.host == host && known.path == path, || {
                        InTheWay::one(known.row_key())
                    })?;
                    return Ok(Reply::Unchanged);
                }
                let there =
                    self.view.managed_roots.iter().find(|r| r.path == path && r.host == host);
                self.hold(Guard::RootNew, there.is_none(), || {
                    InTheWay::of(there.iter().map(|r| r.row_key()))
                })?;
                let row = ManagedRoot { id: root, host, path, created_at: self.now };
                self.view.managed_roots.insert(row);
                self.event(EventKind::RootRegistered, row.row_key(), "");
                Ok(Reply::Done)
            }
        }
    }

    /// W-34: who consented to the retention of salvage, and when, is what this command saw, and
    /// stays while neither the retention nor the words change.
    fn with_consent(&self, new: Settings) -> Settings {
        let old = self.settings();
        if new.salvage_retention.0 == 0 {
            let none = (None, None, None);
            let (salvage_consent, salvage_consent_by, salvage_consent_at) = none;
            return Settings { salvage_consent, salvage_consent_by, salvage_consent_at, ..new };
        }
        let same = new.salvage_retention == old.salvage_retention
            && new.salvage_consent == old.salvage_consent;
        let (by, at) = if same {
            (old.salvage_consent_by, old.salvage_consent_at)
        } else {
            (Some(self.actor.id), Some(self.now))
        };
        Settings { salvage_consent_by: by, salvage_consent_at: at, ..new }
    }

    /// A restore is a making (W-34): its owner is active and free of a barrier, and the worktree
    /// is there and in nobody's removal.
    fn admit_restore(&mut self, salvage: SalvageId, repo: RepoId) -> Result<Reply, Refusal> {
        let salvage = known!(self, salvage, salvage, SalvageKnown)?;
        let repo = known!(self, repos, repo, RepoKnown)?;
        let environment = known!(self, environments, repo.task_environment_id, EnvironmentKnown)?;
        let owner = self.task(environment.task_id)?;
        self.open_task(&owner)?;
        self.not_in_removal(environment.id)?;
        let fits = repo.materialised == Materialised::Yes
            && repo.status != RepoStatus::Deleted
            && salvage.state != SalvageState::Expired
            && salvage.repository_id == repo.repository_id;
        self.hold(Guard::RestoreFits, fits, || InTheWay::one(repo.row_key()))?;
        Ok(Reply::Unchanged)
    }

    fn retry(&mut self, id: JobId) -> Result<Reply, Refusal> {
        let job = known!(self, jobs, id, JobKnown)?;
        let at = || InTheWay::one(job.row_key());
        let waits = job.state == JobState::Failed || job.state == JobState::RetryWait;
        self.hold(Guard::Retryable, waits, at)?;
        self.hold(
            Guard::RetryReadable,
            job.trigger != Trigger::Unreadable
                && job.snapshot_version == super::snapshot::SNAPSHOT_VERSION,
            at,
        )?;
        // T-12: not once another operation has taken the task on.
        self.hold(Guard::RetryAuthority, authority_stands(self.view, &job), at)?;
        let newer = self
            .view
            .jobs
            .iter()
            .find(|j| {
                j.task_id == job.task_id
                    && j.id != id
                    && j.created_at > job.created_at
                    && deletes(j.trigger)
            })
            .copied();
        self.hold(Guard::RetryNotTakenOver, newer.is_none(), || {
            InTheWay::of(newer.iter().map(Row::row_key))
        })?;
        self.retry_job(&job)?;
        Ok(Reply::Job { job: id, state: JobState::Pending })
    }

    fn cancel(&mut self, id: JobId) -> Result<Reply, Refusal> {
        let job = known!(self, jobs, id, JobKnown)?;
        let at = || InTheWay::one(job.row_key());
        let of_archive = archives(job.trigger) || job.trigger == Trigger::Reconcile;
        self.hold(Guard::CancelKind, of_archive, at)?;
        self.hold(Guard::CancelUnfinished, is_unfinished(job.state), at)?;
        self.cancel_job(&job)?;
        Ok(Reply::Job { job: id, state: JobState::Cancelled })
    }

    /// Drops a resource from its job without touching the disk (C-15).
    fn forget(&mut self, id: ResourceId) -> Result<Reply, Refusal> {
        let resource = known!(self, resources, id, ResourceKnown)?;
        let job = known!(self, jobs, resource.job_id, JobKnown)?;
        let left = is_left(resource.result) || resource.result == ResourceResult::Failed;
        self.hold(Guard::ForgetLeft, left, || InTheWay::one(resource.row_key()))?;
        // Dropped from this job it would be in no later one: that it is over is said of itself.
        let runs = resource.runtime_id.and_then(|r| self.view.runtimes.id(r.0)).copied();
        let runs = runs.filter(is_running);
        self.hold(Guard::ForgetStopped, runs.is_none(), || {
            InTheWay::of(runs.iter().map(Row::row_key))
        })?;
        let removal =
            self.view.removals.iter().find(|r| r.resource == Some(id) && r.is_unsettled()).copied();
        let now = self.now;
        if let Some(removal) = removal {
            // An executor that may be at work is not robbed of its row.
            self.hold(Guard::ForgetLapsed, removal.lease_until <= now, || {
                InTheWay::one(removal.row_key())
            })?;
            if let Some(row) = self.view.removals.edit(removal.id.0) {
                row.outcome = Some(RemovalOutcome::Forgotten);
                row.updated_at = now;
            }
            self.event(EventKind::RemovalSettled, removal.row_key(), "forgotten");
            self.keep_forgotten_trash(&removal);
            // Once it was renamed it is not in its place any more; its trash row stays, and
            // is listed.
            let input = match removal.last_step {
                RemovalStep::Permitted | RemovalStep::Salvaged => {
                    machine::worktree::Input::Returned
                }
                RemovalStep::Renamed
                | RemovalStep::Compared
                | RemovalStep::Unregistered
                | RemovalStep::BranchSettled
                | RemovalStep::Purged
                | RemovalStep::Returned => machine::worktree::Input::Gone,
            };
            let row = removal.repo_id.and_then(|r| self.view.repos.id(r.0)).copied();
            if let Some(row) = row
                && let Some(next) = machine::worktree::step(row.materialised, input)
            {
                if let Some(r) = self.view.repos.edit(row.id.0) {
                    r.materialised = next;
                    r.updated_at = now;
                }
                self.event(EventKind::WorktreeReturned, row.row_key(), "forgotten");
            }
        }
        self.settle(&resource, ResourceResult::Forgotten, Reason::ByPerson, None);
        self.event(EventKind::ResourceForgotten, resource.row_key(), "");
        self.after_forgetting(&job, resource.job_root_id)?;
        Ok(Reply::Done)
    }

    /// A person's word in the place of a proof (C-7, C-15). Who runs a turn on it knows better, and
    /// so does who can stop it.
    fn declare_stopped(&mut self, id: RuntimeId) -> Result<Reply, Refusal> {
        let runtime = known!(self, runtimes, id, RuntimeKnown)?;
        if runtime.status == RuntimeStatus::Stopped {
            return Ok(Reply::Unchanged);
        }
        let turn =
            turns_of(self.view, runtime.session_id).find(|t| t.runtime_id == id).map(Row::row_key);
        self.hold(Guard::RuntimeIdle, turn.is_none(), || InTheWay::of(turn.into_iter()))?;
        let reached = is_reached(self.view, &runtime);
        self.hold(Guard::RuntimeUnreached, !reached, || InTheWay::one(runtime.row_key()))?;
        let Some(next) = machine::runtime::step(runtime.status, machine::runtime::Input::Declared)
        else {
            return self.illegal(runtime.row_key());
        };
        let now = self.now;
        if let Some(row) = self.view.runtimes.edit(id.0) {
            row.status = next;
            row.updated_at = now;
        }
        self.event(EventKind::RuntimeReported, runtime.row_key(), next.code());
        Ok(Reply::Done)
    }

    /// The trash of a removal that nobody goes on with is kept like any other and purged when its
    /// time is over: without a time it would lie there for ever (D-20).
    fn keep_forgotten_trash(&mut self, removal: &Removal) {
        let until = self.now + self.settings().trash_retention;
        let now = self.now;
        if let Some(row) = self.view.trash.edit(super::removal::trash_of(removal).0)
            && row.state == TrashState::Kept
        {
            row.restorable_until = Some(until);
            row.updated_at = now;
        }
    }

    /// A part of which nothing is left by a person's word is done.
    fn after_forgetting(&mut self, job: &Job, part: JobRootId) -> Result<(), Refusal> {
        let Some(part) = self.view.job_roots.id(part.0).copied() else { return Ok(()) };
        let open = self.view.resources.iter().any(|r| {
            r.job_root_id == part.id && (is_left(r.result) || r.result == ResourceResult::Failed)
        });
        let idle = match part.state {
            JobState::Failed | JobState::RetryWait | JobState::Pending => true,
            JobState::Prepared | JobState::Running | JobState::Succeeded | JobState::Cancelled => {
                false
            }
        };
        if open || !idle || job.state == JobState::Cancelled {
            return Ok(());
        }
        let Some(state) = machine::job::step(part.state, machine::job::Input::Succeed) else {
            return self.illegal(part.row_key());
        };
        let now = self.now;
        if let Some(row) = self.view.job_roots.edit(part.id.0) {
            row.state = state;
            row.next_attempt_at = None;
            row.updated_at = now;
        }
        self.event(EventKind::JobSucceeded, part.row_key(), "forgotten");
        self.derive_job(job)
    }
}

/// Settings under which leases, renewals and retries can work at all.
const fn sane(s: &Settings) -> bool {
    s.id == 1
        && s.lease.0 > 0
        && s.renew.0 > 0
        && s.renew.0 * 2 <= s.lease.0
        && s.removal_lease.0 >= s.lease.0
        && s.max_tries >= 1
        && s.retry_1.0 >= 0
        && s.retry_2.0 >= s.retry_1.0
        && s.retry_3.0 >= s.retry_2.0
        && s.retry_4.0 >= s.retry_3.0
        && s.retry_5.0 >= s.retry_4.0
        && s.retry_6.0 >= s.retry_5.0
        && s.retry_7.0 >= s.retry_6.0
        && s.trash_retention.0 >= 0
        && s.salvage_limit > 0
        && s.root_patience.0 > 0
        && s.stop_bound.0 > 0
        // W-34: salvage expires by nobody's silence.
        && s.salvage_retention.0 >= 0
        && (s.salvage_retention.0 == 0 || s.salvage_consent.is_some())
}
