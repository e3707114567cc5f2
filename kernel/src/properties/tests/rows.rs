//! Rows and worlds for the tests.

use alloc::vec;

use super::super::{Disk, Physical, Place};
use crate::id::*;
use crate::rows::*;
use crate::time::Time;

pub(super) const NOW: Time = Time(100);

pub(super) fn workspace(id: u128) -> Workspace {
    Workspace {
        id: WorkspaceId(id),
        state: WorkspaceState::Active,
        deleting_operation: None,
        deleting_instance: None,
        deleting_lease: None,
        created_at: NOW,
        updated_at: NOW,
    }
}

pub(super) fn task(id: u128) -> Task {
    Task {
        id: TaskId(id),
        workspace_id: WorkspaceId(1),
        parent_id: None,
        kind: TaskKind::Standard,
        lifecycle: TaskLifecycle::Active,
        archived_at: None,
        archived_by: None,
        expires_at: None,
        current_environment_id: None,
        primary_session_id: None,
        created_at: NOW,
        updated_at: NOW,
    }
}

pub(super) fn session(id: u128, task: u128, environment: u128) -> Session {
    Session {
        id: SessionId(id),
        task_id: TaskId(task),
        task_environment_id: Some(EnvironmentId(environment)),
        lifecycle: SessionLifecycle::Open,
        closing_kind: None,
        closing_token: None,
        closing_by: None,
        closing_lease: None,
        activity: Activity::Running,
        epoch: 1,
        source: SessionSource::Person,
        starred: false,
        parent_session_id: None,
        archived_at: None,
        archived_by: None,
        created_at: NOW,
        updated_at: NOW,
        last_activity_at: NOW,
    }
}

pub(super) fn environment(id: u128, task: u128) -> Environment {
    Environment {
        id: EnvironmentId(id),
        task_id: TaskId(task),
        status: EnvironmentStatus::Ready,
        container_id: None,
        sandbox_id: None,
        created_at: NOW,
        updated_at: NOW,
    }
}

/// The row of worktree `id` at path `id` in root 1.
pub(super) fn repo(id: u128, environment: u128) -> Repo {
    Repo {
        id: RepoId(id),
        task_environment_id: EnvironmentId(environment),
        repository_id: RepositoryId(1),
        branch_slug: Slug(id),
        worktree_id: Some(WorktreeId(id)),
        worktree_path: Some(PathId(id)),
        worktree_branch: Some(BranchId(1)),
        status: RepoStatus::Active,
        materialised: Materialised::Yes,
        managed: true,
        root_id: Some(RootId(1)),
        branch_created: true,
        start_commit: None,
        position: 0,
        created_at: NOW,
        updated_at: NOW,
        merged_at: None,
        deleted_at: None,
    }
}

pub(super) fn attempt(id: u128, environment: u128, state: AttemptState) -> Attempt {
    Attempt {
        id: AttemptId(id),
        token: Token(id),
        task_id: TaskId(environment),
        task_environment_id: EnvironmentId(environment),
        repo_id: RepoId(id),
        kind: AttemptKind::Create,
        repository_id: RepositoryId(1),
        branch_slug: Slug(id),
        root_id: RootId(1),
        path: PathId(id),
        branch: BranchId(1),
        worktree_id: WorktreeId(id),
        branch_existed: true,
        start_commit: CommitId(1),
        state,
        instance_id: InstanceId(1),
        lease_until: Time(500),
        created_at: NOW,
        updated_at: NOW,
    }
}

pub(super) fn turn(id: u128, session: u128) -> Turn {
    Turn {
        id: TurnId(id),
        session_id: SessionId(session),
        epoch: 1,
        phase: TurnPhase::Running,
        origin: Origin::Person,
        runtime_id: RuntimeId(1),
        instance_id: InstanceId(1),
        lease_until: Time(500),
        started_at: NOW,
        ended_at: None,
        outcome: None,
    }
}

pub(super) fn input(id: u128, state: InputState) -> Input {
    let settled = state != InputState::Queued;
    let delivered = state == InputState::Delivered;
    let reason = if settled && !delivered { InputReason::TakenBack } else { InputReason::None };
    Input {
        id: InputId(id),
        session_id: Some(SessionId(1)),
        origin: Origin::Person,
        actor: ActorId(7),
        state,
        reason,
        redirected_to: None,
        turn_id: delivered.then_some(TurnId(1)),
        created_at: NOW,
        settled_at: settled.then_some(NOW),
    }
}

pub(super) fn runtime(id: u128, task: u128, environment: u128) -> Runtime {
    Runtime {
        id: RuntimeId(id),
        session_id: SessionId(1),
        task_id: TaskId(task),
        task_environment_id: Some(EnvironmentId(environment)),
        instance_id: InstanceId(1),
        kind: RuntimeKind::Local,
        status: RuntimeStatus::Running,
        last_seen_at: NOW,
        created_at: NOW,
        updated_at: NOW,
    }
}

/// A job of operation `id` on a task.
pub(super) fn job(id: u128, task: u128, trigger: Trigger, state: JobState) -> Job {
    let prepared = state == JobState::Prepared;
    let ended = matches!(state, JobState::Succeeded | JobState::Failed | JobState::Cancelled);
    Job {
        id: JobId(id),
        operation_id: OperationId(id),
        task_id: TaskId(task),
        content_hash: ContentHash(id),
        trigger,
        authority: OperationId(id),
        environment_id: None,
        cascade_root: None,
        policy: UnsavedPolicy::Salvage,
        branch_policy: BranchPolicy::Keep,
        consent: Unsaved::NONE,
        state,
        instance_id: prepared.then_some(InstanceId(1)),
        lease_until: prepared.then_some(Time(500)),
        snapshot_version: 1,
        mutated_at: (!prepared).then_some(NOW),
        created_at: NOW,
        updated_at: NOW,
        completed_at: ended.then_some(NOW),
    }
}

/// Worktree `named` as a resource of a job.
pub(super) fn resource(id: u128, job: u128, named: u128, result: ResourceResult) -> Resource {
    Resource {
        id: ResourceId(id),
        job_id: JobId(job),
        job_root_id: JobRootId(job),
        kind: ResourceKind::Worktree,
        environment_id: Some(EnvironmentId(named)),
        repo_id: Some(RepoId(named)),
        runtime_id: None,
        attempt_id: None,
        handle: None,
        repository_id: Some(RepositoryId(1)),
        root_id: Some(RootId(1)),
        path: Some(PathId(named)),
        branch: Some(BranchId(1)),
        worktree_id: Some(WorktreeId(named)),
        managed: true,
        branch_created: true,
        start_commit: None,
        result,
        reason: Reason::None,
        salvage_id: None,
        transferred_to: None,
        created_at: NOW,
        updated_at: NOW,
    }
}

pub(super) fn part(job: u128, state: JobState) -> JobRoot {
    JobRoot {
        id: JobRootId(job),
        job_id: JobId(job),
        root_id: Some(RootId(1)),
        state,
        tries: 1,
        next_attempt_at: None,
        token: Some(Token(90)),
        claimed_by: Some(InstanceId(1)),
        lease_until: Some(Time(500)),
        created_at: NOW,
        updated_at: NOW,
    }
}

/// A removal of worktree `named` on behalf of job `authority`.
pub(super) fn removal(id: u128, authority: u128, named: u128) -> Removal {
    Removal {
        id: RemovalId(id),
        authority: AuthorityKind::Job,
        authority_id: AnyId(authority),
        resource: Some(ResourceId(authority)),
        repo_id: Some(RepoId(named)),
        root_id: RootId(1),
        path: PathId(named),
        identity: Some(WorktreeId(named)),
        token: Token(50 + id),
        instance_id: InstanceId(1),
        lease_until: Time(500),
        last_step: RemovalStep::Permitted,
        unsaved: Unsaved::NONE,
        head: None,
        found_something: false,
        delete_branch: false,
        keep_trash: false,
        last_reason: Reason::None,
        outcome: None,
        created_at: NOW,
        updated_at: NOW,
    }
}

pub(super) fn trash(id: u128, named: u128, state: TrashState) -> Trash {
    Trash {
        id: TrashId(id),
        removal_id: RemovalId(1),
        task_id: None,
        repo_id: None,
        root_id: RootId(1),
        path: PathId(named),
        worktree_id: Some(WorktreeId(named)),
        restorable_until: None,
        state,
        created_at: NOW,
        updated_at: NOW,
    }
}

pub(super) fn identity(kind: IdentityKind, id: u128, state: IdentityState) -> Identity {
    let gone = state == IdentityState::Gone;
    Identity {
        id: AnyId(id),
        kind,
        state,
        gone_at: gone.then_some(NOW),
        gone_by: gone.then_some(ActorId(7)),
    }
}

/// Task 1 active, environment 1, worktree 1, session 1 with turn 1; task 2 archived by job 1,
/// environment 2, worktree 2 in removal 1, session 2 archived.
pub(super) fn world() -> View {
    let mut v = View { now: NOW, ..View::default() };
    v.workspaces.insert(workspace(1));
    v.tasks.insert(Task {
        current_environment_id: Some(EnvironmentId(1)),
        primary_session_id: Some(SessionId(1)),
        ..task(1)
    });
    v.tasks.insert(Task {
        lifecycle: TaskLifecycle::Archived,
        archived_at: Some(NOW),
        archived_by: Some(OperationId(1)),
        ..task(2)
    });
    for (kind, id) in [
        (IdentityKind::Workspace, 1),
        (IdentityKind::Task, 1),
        (IdentityKind::Task, 2),
        (IdentityKind::Session, 1),
        (IdentityKind::Session, 2),
    ] {
        v.identities.insert(identity(kind, id, IdentityState::Live));
    }
    v.identities.insert(identity(IdentityKind::Session, 8, IdentityState::Gone));
    v.sessions.insert(session(1, 1, 1));
    v.sessions.insert(Session {
        lifecycle: SessionLifecycle::Archived,
        archived_at: Some(NOW),
        archived_by: Some(OperationId(1)),
        ..session(2, 2, 2)
    });
    for id in [1, 2] {
        v.environments.insert(environment(id, id));
        v.attempts.insert(attempt(id, id, AttemptState::Owned));
    }
    v.repos.insert(repo(1, 1));
    v.repos.insert(Repo { materialised: Materialised::Removing, ..repo(2, 2) });
    v.turns.insert(turn(1, 1));
    v.inputs.insert(input(1, InputState::Delivered));
    v.inputs.insert(input(2, InputState::Queued));
    v.runtimes.insert(runtime(1, 1, 1));
    v.jobs.insert(job(1, 2, Trigger::Archive, JobState::Running));
    v.job_roots.insert(part(1, JobState::Running));
    v.resources.insert(resource(1, 1, 2, ResourceResult::Removing));
    v.removals.insert(removal(1, 1, 2));
    v.instances.insert(Instance {
        id: InstanceId(1),
        host: HostId(1),
        started_at: NOW,
        lease_until: Time(500),
        draining: false,
    });
    v.commit();
    v
}

/// Worktrees 1 and 2 at home.
pub(super) fn disk() -> Disk {
    let physical = |id: u128| Physical {
        identity: WorktreeId(id),
        root: RootId(1),
        path: PathId(id),
        made_by: Some(AttemptId(id)),
        place: Place::AtHome,
        unsaved: Unsaved::NONE,
        salvaged: Unsaved::NONE,
        moved_by: None,
    };
    Disk { worktrees: vec![physical(1), physical(2)], hands: vec![] }
}
