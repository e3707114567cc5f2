//! The re-proof and the permission (C-5, C-18, W-30..W-34): one decision under the rows of owner
//! task, environment and job.

use super::attempt::some_reason;
use super::relations::*;
use super::removal::NewRemoval;
use super::{Ctx, known};
use crate::decision::*;
use crate::evidence::{Evidence, Found};
use crate::guard::{Guard, GuardSet};
use crate::id::*;
use crate::machine;
use crate::refusal::{InTheWay, Refusal};
use crate::rows::*;

impl<G: GuardSet> Ctx<'_, G> {
    pub(crate) fn permit(
        &mut self,
        id: ResourceId,
        token: Token,
        removal: RemovalId,
        removal_token: Token,
        evidence: Evidence,
    ) -> Result<Decision, Refusal> {
        let resource = known!(self, resources, id, ResourceKnown)?;
        let part = self.claimed(resource.job_root_id, token)?;
        let job = known!(self, jobs, resource.job_id, JobKnown)?;
        self.hold(Guard::ResourceIsWorktree, resource.kind == ResourceKind::Worktree, || {
            InTheWay::one(resource.row_key())
        })?;
        if resource.result == ResourceResult::Removing {
            return Ok(Reply::NotNow { reason: Reason::Contested }.into());
        }
        self.hold(Guard::ResourceWaiting, resource.result == ResourceResult::Waiting, || {
            InTheWay::one(resource.row_key())
        })?;
        if let Some(reply) = self.not_yet(&job, &resource) {
            return Ok(reply.into());
        }
        if let Some((result, reason)) = self.keep(&job, &resource) {
            if reason == Reason::AuthorityGone {
                self.cancel_job(&job)?;
            }
            self.settle(&resource, result, reason, None);
            return Ok(Reply::Settled { result, reason }.into());
        }
        if let Some(reply) = self.weigh(&job, &resource, evidence) {
            return Ok(reply.into());
        }
        self.issue(&job, &part, &resource, removal, removal_token, evidence)
    }

    /// What has to come first (C-6, T-12, C-18).
    fn not_yet(&mut self, job: &Job, resource: &Resource) -> Option<Reply> {
        let own = named_that_may_run(self.view, job.id).next().is_some();
        let others = others_that_run(self.view, job, resource).next().is_some();
        if !self.test(Guard::RuntimesFirst, !own && !others) {
            return Some(self.not_now(resource, Reason::RuntimeAlive));
        }
        let attempts =
            self.view.resources.iter().any(|r| {
                r.job_id == job.id && r.kind == ResourceKind::Attempt && is_left(r.result)
            });
        if !self.test(Guard::AttemptsFirst, !attempts) {
            return Some(self.not_now(resource, Reason::MakerAlive));
        }
        let barred = barrier(self.view, job.task_id).is_some_and(|b| b.id != job.id);
        if !self.test(Guard::NotTakenOver, !barred) {
            return Some(self.not_now(resource, Reason::Contested));
        }
        let other =
            self.view.removals.iter().any(|r| r.is_unsettled() && Some(r.path) == resource.path);
        if !self.test(Guard::NoUnsettledRemoval, !other) {
            return Some(self.not_now(resource, Reason::Contested));
        }
        None
    }

    /// What the rows say against it, now (C-5).
    fn keep(&mut self, job: &Job, resource: &Resource) -> Option<(ResourceResult, Reason)> {
        if !self.test(Guard::AuthorityStands, authority_stands(self.view, job)) {
            return Some((ResourceResult::Kept, Reason::AuthorityGone));
        }
        let environment =
            resource.environment_id.and_then(|e| self.view.environments.id(e.0)).copied();
        let old = is_old(self.view, job, resource);
        if !self.test(Guard::PermitNoBorrower, !is_lent(self.view, job, resource)) {
            return Some((ResourceResult::Preserved, Reason::Borrowed));
        }
        let transferred = !old && environment.is_some_and(|e| e.task_id != job.task_id);
        let row = resource.repo_id.and_then(|r| self.view.repos.id(r.0)).copied();
        let ours = row.is_none_or(|r| {
            r.worktree_id == resource.worktree_id && r.worktree_path == resource.path
        }) && !transferred;
        let elsewhere = self.view.repos.iter().any(|r| {
            Some(r.id) != resource.repo_id
                && r.status != RepoStatus::Deleted
                && r.materialised != Materialised::No
                && r.root_id.is_some()
                && (r.worktree_path == resource.path
                    || (r.worktree_id.is_some() && r.worktree_id == resource.worktree_id))
        }) || self
            .view
            .attempts
            .iter()
            .any(|a| is_unresolved(a) && Some(a.path) == resource.path);
        if !self.test(Guard::OwnedAsSnapshot, ours && !elsewhere) {
            return Some((ResourceResult::Kept, Reason::OwnedElsewhere));
        }
        if !self.test(Guard::Managed, resource.managed) {
            return Some((ResourceResult::Kept, Reason::NotManaged));
        }
        None
    }

    /// What the evidence says against it (W-31, W-34, C-9).
    fn weigh(&mut self, job: &Job, resource: &Resource, evidence: Evidence) -> Option<Reply> {
        if !self.test(Guard::EvidenceKnown, evidence.found != Found::Unknown) {
            let reason = some_reason(evidence.obstacle, Reason::RootUnavailable);
            return Some(self.not_now(resource, reason));
        }
        let same = evidence.found != Found::Mismatch;
        if !self.test(Guard::IdentityProven, same) {
            return Some(self.fail(resource, Reason::IdentityMismatch));
        }
        if !self.test(Guard::NoObstacle, evidence.obstacle == Reason::None) {
            return Some(match evidence.obstacle.class() {
                ReasonClass::Transient => self.not_now(resource, evidence.obstacle),
                ReasonClass::Final | ReasonClass::Kept | ReasonClass::Nothing => {
                    self.fail(resource, evidence.obstacle)
                }
            });
        }
        let unsaved = evidence.unsaved;
        match job.policy {
            UnsavedPolicy::Salvage => None,
            UnsavedPolicy::Refuse => (!self.test(Guard::PermitNothingUnsaved, unsaved.is_none()))
                .then(|| self.fail(resource, Reason::Unsaved)),
            UnsavedPolicy::Discard => (!self
                .test(Guard::ConsentCovers, job.consent.covers(unsaved)))
            .then(|| self.fail(resource, Reason::ConsentMissing)),
        }
    }

    fn issue(
        &mut self,
        job: &Job,
        part: &JobRoot,
        resource: &Resource,
        removal: RemovalId,
        removal_token: Token,
        evidence: Evidence,
    ) -> Result<Decision, Refusal> {
        let (Some(path), Some(root), Some(instance)) =
            (resource.path, resource.root_id, part.claimed_by)
        else {
            let reply = self.fail(resource, Reason::IdentityUnknown);
            return Ok(reply.into());
        };
        let now = self.now;
        let row = resource.repo_id.and_then(|r| self.view.repos.id(r.0)).copied();
        if let Some(row) = row {
            if self.guards.has(Guard::MarkRemoving) {
                let Some(next) =
                    machine::worktree::step(row.materialised, machine::worktree::Input::Permit)
                else {
                    return self.illegal(row.row_key());
                };
                if let Some(r) = self.view.repos.edit(row.id.0) {
                    r.materialised = next;
                    r.updated_at = now;
                }
                self.event(EventKind::WorktreeRemoving, row.row_key(), "");
            }
            let owner = resource.environment_id.and_then(|e| self.view.environments.id(e.0));
            if let Some(owner) = owner.map(|e| e.task_id) {
                self.view.tasks.touch(owner.0);
            }
        }
        if let Some(r) = self.view.resources.edit(resource.id.0) {
            r.result = ResourceResult::Removing;
            r.reason = Reason::None;
            r.updated_at = now;
        }
        let ends_task = deletes(job.trigger);
        self.permit_removal(
            NewRemoval {
                id: removal,
                token: removal_token,
                authority: Authority::Job(job.id),
                resource: Some(resource.id),
                repo: row.map(|r| r.id),
                root,
                path,
                identity: resource.worktree_id,
                instance,
                // W-39: only a branch that Freehold made, only where the task goes.
                delete_branch: job.branch_policy == BranchPolicy::DeleteWhenReached
                    && resource.branch_created
                    && ends_task,
                keep_trash: self.settings().trash_retention.0 > 0,
            },
            evidence,
        )
    }

    /// The resource waits for the next try, with the reason written down.
    pub(crate) fn not_now(&mut self, resource: &Resource, reason: Reason) -> Reply {
        let now = self.now;
        if let Some(row) = self.view.resources.edit(resource.id.0)
            && row.reason != reason
        {
            row.reason = reason;
            row.updated_at = now;
            self.event(EventKind::ResourceSettled, resource.row_key(), reason.code());
        }
        Reply::NotNow { reason }
    }

    fn fail(&mut self, resource: &Resource, reason: Reason) -> Reply {
        self.settle(resource, ResourceResult::Failed, reason, None);
        Reply::Settled { result: ResourceResult::Failed, reason }
    }

    /// Writes a resource's result down (C-13).
    pub(crate) fn settle(
        &mut self,
        resource: &Resource,
        result: ResourceResult,
        reason: Reason,
        salvage: Option<SalvageId>,
    ) {
        let now = self.now;
        if let Some(row) = self.view.resources.edit(resource.id.0) {
            row.result = result;
            row.reason = reason;
            row.salvage_id = salvage.or(row.salvage_id);
            row.updated_at = now;
        }
        self.event(EventKind::ResourceSettled, resource.row_key(), result.code());
    }
}
