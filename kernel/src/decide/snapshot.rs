//! The snapshot (B-4): the inventory of physical handles, taken under the barrier, from which
//! cleanup works even after the task's rows are gone.

use super::Ctx;
use super::relations::*;
use crate::decision::*;
use crate::guard::{Guard, GuardSet};
use crate::id::*;
use crate::refusal::{InTheWay, Refusal};
use crate::rows::*;

/// The form of snapshot that this build writes and reads.
pub(crate) const SNAPSHOT_VERSION: u32 = 1;

impl<G: GuardSet> Ctx<'_, G> {
    /// Takes the snapshot of every job of the operation.
    pub(crate) fn snapshot(&mut self, operation: OperationId) -> Result<Reply, Refusal> {
        self.complete(operation)?;
        let mut after = None;
        let mut changed = false;
        while let Some(job) = self.next_prepared(operation, after) {
            after = Some(job.id);
            if job.snapshot_version > 0 {
                continue;
            }
            self.take_inventory(&job);
            let now = self.now;
            if let Some(row) = self.view.jobs.edit(job.id.0) {
                row.snapshot_version = SNAPSHOT_VERSION;
                row.updated_at = now;
            }
            self.event(EventKind::SnapshotTaken, job.row_key(), "");
            changed = true;
        }
        Ok(if changed { Reply::Done } else { Reply::Unchanged })
    }

    pub(crate) fn next_prepared(
        &self,
        operation: OperationId,
        after: Option<JobId>,
    ) -> Option<Job> {
        self.view
            .jobs
            .iter()
            .find(|j| {
                j.operation_id == operation
                    && j.state == JobState::Prepared
                    && after.is_none_or(|a| j.id > a)
            })
            .copied()
    }

    /// B-9: under all barriers the subtree, or the workspace, has nothing that is not barred.
    pub(crate) fn complete(&self, operation: OperationId) -> Result<(), Refusal> {
        let holds = |task: TaskId| {
            self.view.jobs.iter().any(|j| {
                j.operation_id == operation && j.task_id == task && j.state == JobState::Prepared
            })
        };
        let Some(job) = self.next_prepared(operation, None) else { return Ok(()) };
        if let Some(root) = job.cascade_root {
            // A child that was archived by itself before is left as it is by an archive.
            let missed = self.view.tasks.iter().filter(|t| {
                descends(self.view, t.id, root)
                    && !holds(t.id)
                    && !(archives(job.trigger) && t.lifecycle == TaskLifecycle::Archived)
            });
            self.hold(Guard::CascadeComplete, missed.clone().next().is_none(), || {
                InTheWay::of(missed.map(Row::row_key))
            })?;
        }
        if job.trigger == Trigger::WorkspaceDelete {
            let workspace = self.view.tasks.id(job.task_id.0).map(|t| t.workspace_id);
            let missed = self
                .view
                .tasks
                .iter()
                .filter(|t| Some(t.workspace_id) == workspace && !holds(t.id));
            self.hold(Guard::WorkspaceComplete, missed.clone().next().is_none(), || {
                InTheWay::of(missed.map(Row::row_key))
            })?;
        }
        Ok(())
    }

    /// Everything physical that the job's task owns, in the order of C-6.
    pub(crate) fn take_inventory(&mut self, job: &Job) {
        let mut after = None;
        while let Some(runtime) = self.next_runtime(job, after) {
            after = Some(runtime.id);
            let mut row = self.blank(job, ResourceKind::Runtime, runtime.id.0, None);
            row.environment_id = runtime.task_environment_id;
            row.runtime_id = Some(runtime.id);
            self.view.resources.insert(row);
        }
        let mut after = None;
        while let Some(environment) = self.next_environment(job, after) {
            after = Some(environment.id);
            self.inventory_environment(job, &environment);
        }
        if deletes(job.trigger) {
            self.inherit_unsettled(job);
        }
        // A job without any resource still has one part, so that a worker ends it.
        self.part(job, None);
    }

    fn next_runtime(&self, job: &Job, after: Option<RuntimeId>) -> Option<Runtime> {
        self.view
            .runtimes
            .iter()
            .find(|r| {
                let concerned = match job.environment_id {
                    Some(e) => r.task_environment_id == Some(e),
                    None => r.task_id == job.task_id,
                };
                is_running(r) && concerned && after.is_none_or(|a| r.id > a)
            })
            .copied()
    }

    fn next_environment(&self, job: &Job, after: Option<EnvironmentId>) -> Option<Environment> {
        environments_of(self.view, job.task_id)
            .find(|e| {
                job.environment_id.is_none_or(|only| only == e.id) && after.is_none_or(|a| e.id > a)
            })
            .copied()
    }

    fn inventory_environment(&mut self, job: &Job, environment: &Environment) {
        let handles = [
            (ResourceKind::Container, environment.container_id),
            (ResourceKind::Sandbox, environment.sandbox_id),
        ];
        for (kind, handle) in handles {
            if let Some(handle) = handle {
                let mut row = self.blank(job, kind, handle.0, None);
                row.environment_id = Some(environment.id);
                row.handle = Some(handle);
                self.view.resources.insert(row);
            }
        }
        let mut after = None;
        while let Some(attempt) = first(self.view.attempts.iter().filter(|a| {
            a.task_environment_id == environment.id
                && is_unresolved(a)
                && after.is_none_or(|x| a.id > x)
        })) {
            after = Some(attempt.id);
            let mut row =
                self.blank(job, ResourceKind::Attempt, attempt.id.0, Some(attempt.root_id));
            row.environment_id = Some(environment.id);
            row.attempt_id = Some(attempt.id);
            row.repository_id = Some(attempt.repository_id);
            row.path = Some(attempt.path);
            row.branch = Some(attempt.branch);
            row.worktree_id = Some(attempt.worktree_id);
            row.managed = true;
            self.view.resources.insert(row);
        }
        let mut after = None;
        while let Some(repo) = first(repos_of(self.view, environment.id).filter(|r| {
            r.worktree_id.is_some()
                && r.materialised != Materialised::No
                && after.is_none_or(|x| r.id > x)
        })) {
            after = Some(repo.id);
            let root = repo.root_id.filter(|_| repo.managed);
            let mut row = self.blank(job, ResourceKind::Worktree, repo.id.0, root);
            row.environment_id = Some(environment.id);
            row.repo_id = Some(repo.id);
            row.repository_id = Some(repo.repository_id);
            row.path = repo.worktree_path;
            row.branch = repo.worktree_branch;
            row.worktree_id = repo.worktree_id;
            row.managed = repo.managed;
            row.branch_created = repo.branch_created;
            row.start_commit = repo.start_commit;
            if !self.test(Guard::Managed, repo.managed) {
                // W-40: a main checkout, or a folder that a person chose.
                row.result = ResourceResult::Kept;
                row.reason = Reason::NotManaged;
            }
            self.view.resources.insert(row);
        }
    }

    /// T-12: a delete takes over what older jobs of the task have not settled.
    fn inherit_unsettled(&mut self, job: &Job) {
        let mut after = None;
        while let Some(old) = first(self.view.resources.iter().filter(|r| {
            after.is_none_or(|x| r.id > x)
                && r.job_id != job.id
                && (is_left(r.result) || r.result == ResourceResult::Failed)
                && self.view.jobs.id(r.job_id.0).is_some_and(|j| {
                    j.task_id == job.task_id
                        && (is_unfinished(j.state) || j.state == JobState::Failed)
                })
        })) {
            after = Some(old.id);
            let covered = self.view.resources.iter().any(|r| {
                r.job_id == job.id
                    && r.kind == old.kind
                    && r.repo_id == old.repo_id
                    && r.path == old.path
                    && r.runtime_id == old.runtime_id
                    && r.attempt_id == old.attempt_id
                    && r.handle == old.handle
            });
            if covered {
                continue;
            }
            let blank = self.blank(job, old.kind, old.id.0, old.root_id);
            self.view.resources.insert(Resource {
                id: blank.id,
                job_id: job.id,
                job_root_id: blank.job_root_id,
                result: ResourceResult::Waiting,
                reason: Reason::None,
                created_at: self.now,
                updated_at: self.now,
                ..old
            });
        }
    }

    fn blank(
        &mut self,
        job: &Job,
        kind: ResourceKind,
        named: u128,
        root: Option<RootId>,
    ) -> Resource {
        Resource {
            id: ResourceId(derive(job.id.0, named)),
            job_id: job.id,
            job_root_id: self.part(job, root),
            kind,
            environment_id: None,
            repo_id: None,
            runtime_id: None,
            attempt_id: None,
            handle: None,
            repository_id: None,
            root_id: root,
            path: None,
            branch: None,
            worktree_id: None,
            managed: false,
            branch_created: false,
            start_commit: None,
            result: ResourceResult::Waiting,
            reason: Reason::None,
            salvage_id: None,
            transferred_to: None,
            created_at: self.now,
            updated_at: self.now,
        }
    }

    /// The part of the job for this root, made if it is not there (C-1).
    fn part(&mut self, job: &Job, root: Option<RootId>) -> JobRootId {
        let id = JobRootId(derive(job.id.0, root.map_or(1, |r| r.0)));
        if self.view.job_roots.id(id.0).is_none() {
            self.view.job_roots.insert(JobRoot {
                id,
                job_id: job.id,
                root_id: root,
                state: JobState::Prepared,
                tries: 0,
                next_attempt_at: None,
                token: None,
                claimed_by: None,
                lease_until: None,
                created_at: self.now,
                updated_at: self.now,
            });
        }
        id
    }
}
