//! Workspaces, tasks and environments, short of their lifecycle operations (D-1..D-4, T-7, W-40).

use super::relations::*;
use super::{Ctx, known};
use crate::command::TaskCommand;
use crate::decision::*;
use crate::footprint::TREE_DEPTH_MAX;
use crate::guard::{Guard, GuardSet};
use crate::id::*;
use crate::refusal::{InTheWay, Refusal};
use crate::rows::*;
use crate::time::Time;

impl<G: GuardSet> Ctx<'_, G> {
    pub(crate) fn task_command(&mut self, command: &TaskCommand) -> Result<Reply, Refusal> {
        match *command {
            TaskCommand::CreateWorkspace { workspace } => self.create_workspace(workspace),
            TaskCommand::Create { task, workspace, parent, kind, expires_at } => {
                self.create_task(task, workspace, parent, kind, expires_at)
            }
            TaskCommand::Move { task, parent } => self.move_task(task, parent),
            TaskCommand::CreateEnvironment { environment, task, container, sandbox } => {
                self.create_environment(environment, task, container, sandbox)
            }
            TaskCommand::MarkMerged { repo } => self.mark_merged(repo),
            TaskCommand::RecordUnmanaged { repo, environment, repository, slug, path, branch } => {
                self.record_unmanaged(repo, environment, repository, slug, path, branch)
            }
            TaskCommand::Transfer { environment, to } => self.transfer_command(environment, to),
        }
    }

    fn create_workspace(&mut self, id: WorkspaceId) -> Result<Reply, Refusal> {
        self.fresh_identity(IdentityKind::Workspace, id.0)?;
        self.view.workspaces.insert(Workspace {
            id,
            state: WorkspaceState::Active,
            deleting_operation: None,
            deleting_instance: None,
            deleting_lease: None,
            created_at: self.now,
            updated_at: self.now,
        });
        self.remember(IdentityKind::Workspace, id.0);
        self.event(EventKind::WorkspaceCreated, RowKey::workspace(id), "");
        Ok(Reply::Done)
    }

    fn create_task(
        &mut self,
        id: TaskId,
        workspace: WorkspaceId,
        parent: Option<TaskId>,
        kind: TaskKind,
        expires_at: Option<Time>,
    ) -> Result<Reply, Refusal> {
        let workspace = self.workspace(workspace)?;
        let parent = parent.map(|p| self.task(p)).transpose()?;
        self.fresh_identity(IdentityKind::Task, id.0)?;
        let expires = (kind == TaskKind::QuickChat) == expires_at.is_some();
        self.hold(Guard::ExpiryFitsKind, expires, || InTheWay::NONE)?;
        self.open_workspace(&workspace)?;
        if let Some(parent) = parent {
            self.hold(Guard::SameWorkspace, parent.workspace_id == workspace.id, || {
                InTheWay::one(parent.row_key())
            })?;
            self.may_have_children(&parent)?;
            self.view.tasks.touch(parent.id.0);
        }
        self.view.tasks.insert(Task {
            id,
            workspace_id: workspace.id,
            parent_id: parent.map(|p| p.id),
            kind,
            lifecycle: TaskLifecycle::Active,
            archived_at: None,
            archived_by: None,
            expires_at,
            current_environment_id: None,
            primary_session_id: None,
            created_at: self.now,
            updated_at: self.now,
        });
        self.remember(IdentityKind::Task, id.0);
        self.view.workspaces.touch(workspace.id.0);
        self.event(EventKind::TaskCreated, RowKey::task(id), kind.code());
        Ok(Reply::Done)
    }

    /// T-9: no task comes into a workspace that is being deleted.
    fn open_workspace(&self, workspace: &Workspace) -> Result<(), Refusal> {
        self.hold(Guard::WorkspaceActive, workspace.state == WorkspaceState::Active, || {
            InTheWay::one(workspace.row_key())
        })
    }

    /// T-7: nothing comes under an archived or barred task.
    fn may_have_children(&self, parent: &Task) -> Result<(), Refusal> {
        self.hold(Guard::ParentActive, parent.lifecycle == TaskLifecycle::Active, || {
            InTheWay::one(parent.row_key())
        })?;
        let held = barrier(self.view, parent.id);
        self.hold(Guard::ParentUnbarred, held.is_none(), || {
            InTheWay::of(held.iter().map(|j| j.row_key()))
        })
    }

    fn move_task(&mut self, id: TaskId, parent: Option<TaskId>) -> Result<Reply, Refusal> {
        let task = self.task(id)?;
        let parent = parent.map(|p| self.task(p)).transpose()?;
        self.open_task(&task)?;
        if let Some(parent) = parent {
            self.hold(Guard::SameWorkspace, parent.workspace_id == task.workspace_id, || {
                InTheWay::one(parent.row_key())
            })?;
            self.may_have_children(&parent)?;
            self.hold(Guard::NoCircle, !descends(self.view, parent.id, id), || {
                InTheWay::one(parent.row_key())
            })?;
            let depth = self.depth(parent.id);
            self.hold(Guard::TreeNotTooDeep, depth < TREE_DEPTH_MAX, || {
                InTheWay::one(parent.row_key())
            })?;
        }
        let to = parent.map(|p| p.id);
        if task.parent_id == to {
            return Ok(Reply::Unchanged);
        }
        let now = self.now;
        if let Some(row) = self.view.tasks.edit(id.0) {
            row.parent_id = to;
            row.updated_at = now;
        }
        for anchor in [task.parent_id, to].into_iter().flatten() {
            self.view.tasks.touch(anchor.0);
        }
        self.view.workspaces.touch(task.workspace_id.0);
        self.event(EventKind::TaskMoved, RowKey::task(id), "");
        Ok(Reply::Done)
    }

    fn depth(&self, task: TaskId) -> u32 {
        let mut at = self.view.tasks.id(task.0).and_then(|t| t.parent_id);
        let mut depth = 1;
        while let Some(id) = at
            && depth <= TREE_DEPTH_MAX
        {
            depth += 1;
            at = self.view.tasks.id(id.0).and_then(|t| t.parent_id);
        }
        depth
    }

    fn create_environment(
        &mut self,
        id: EnvironmentId,
        task_id: TaskId,
        container_id: Option<HandleId>,
        sandbox_id: Option<HandleId>,
    ) -> Result<Reply, Refusal> {
        let task = self.task(task_id)?;
        let known = self.view.environments.id(id.0).copied();
        self.hold(Guard::EnvironmentNew, known.is_none(), || {
            InTheWay::of(known.iter().map(Row::row_key))
        })?;
        self.open_task(&task)?;
        self.view.environments.insert(Environment {
            id,
            task_id,
            status: EnvironmentStatus::Ready,
            container_id,
            sandbox_id,
            created_at: self.now,
            updated_at: self.now,
        });
        self.event(EventKind::EnvironmentCreated, RowKey::environment(id), "");
        self.view.tasks.touch(task_id.0);
        self.offer_current(task_id, id);
        Ok(Reply::Done)
    }

    /// D-3: an environment becomes current only where there was none.
    pub(crate) fn offer_current(&mut self, task: TaskId, environment: EnvironmentId) {
        let now = self.now;
        if let Some(row) = self.view.tasks.edit(task.0)
            && row.current_environment_id.is_none()
        {
            row.current_environment_id = Some(environment);
            row.updated_at = now;
            self.event(EventKind::CurrentEnvironmentChanged, RowKey::task(task), "");
        }
    }

    fn mark_merged(&mut self, id: RepoId) -> Result<Reply, Refusal> {
        let repo = known!(self, repos, id, RepoKnown)?;
        match repo.status {
            RepoStatus::Merged | RepoStatus::Deleted => return Ok(Reply::Unchanged),
            RepoStatus::Active => {}
        }
        let now = self.now;
        if let Some(row) = self.view.repos.edit(id.0) {
            row.status = RepoStatus::Merged;
            row.merged_at = Some(now);
            row.updated_at = now;
        }
        self.event(EventKind::WorktreeMerged, repo.row_key(), "");
        Ok(Reply::Done)
    }

    /// W-40: what Freehold did not make is recorded so that it is found, and never removed.
    fn record_unmanaged(
        &mut self,
        id: RepoId,
        environment: EnvironmentId,
        repository: RepositoryId,
        slug: Slug,
        path: PathId,
        branch: BranchId,
    ) -> Result<Reply, Refusal> {
        let environment = known!(self, environments, environment, EnvironmentKnown)?;
        let task = self.task(environment.task_id)?;
        self.open_task(&task)?;
        let known = self.view.repos.id(id.0).copied();
        self.hold(Guard::RepoNew, known.is_none(), || {
            InTheWay::of(known.iter().map(Row::row_key))
        })?;
        self.slot_without_row(environment.id, repository, slug)?;
        // A main checkout may serve several tasks; only paths within managed roots have one owner.
        self.view.repos.insert(Repo {
            id,
            task_environment_id: environment.id,
            repository_id: repository,
            branch_slug: slug,
            worktree_id: Some(WorktreeId(derive(id.0, path.0))),
            worktree_path: Some(path),
            worktree_branch: Some(branch),
            status: RepoStatus::Active,
            materialised: Materialised::Yes,
            managed: false,
            root_id: None,
            branch_created: false,
            start_commit: None,
            position: 0,
            created_at: self.now,
            updated_at: self.now,
            merged_at: None,
            deleted_at: None,
        });
        self.event(EventKind::WorktreeRecorded, RowKey::repo(id), "unmanaged");
        self.view.tasks.touch(task.id.0);
        Ok(Reply::Done)
    }

    /// No row that is not deleted has this slot (D-4).
    pub(crate) fn slot_without_row(
        &self,
        environment: EnvironmentId,
        repository: RepositoryId,
        slug: Slug,
    ) -> Result<(), Refusal> {
        let owner = repos_of(self.view, environment)
            .find(|r| r.repository_id == repository && r.branch_slug == slug);
        self.hold(Guard::SlotFree, owner.is_none(), || {
            InTheWay::of(owner.iter().map(|r| r.row_key()))
        })
    }

    /// No other row and no unresolved attempt names this path (D-4, P-5).
    pub(crate) fn path_free(&self, path: PathId, but: Option<RepoId>) -> Result<(), Refusal> {
        let row = self
            .view
            .repos
            .iter()
            .find(|r| {
                r.worktree_path == Some(path)
                    && r.status != RepoStatus::Deleted
                    && Some(r.id) != but
                    && r.root_id.is_some()
            })
            .map(Row::row_key);
        let attempt = self
            .view
            .attempts
            .iter()
            .find(|a| a.path == path && is_unresolved(a))
            .map(Row::row_key);
        self.hold(Guard::PathFree, row.is_none() && attempt.is_none(), || {
            InTheWay::of(row.into_iter().chain(attempt))
        })
    }
}
