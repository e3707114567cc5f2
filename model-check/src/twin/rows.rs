//! From the variables to the rows that they stand for: one template of rows with fixed ids.

use freehold_kernel::properties::{Disk, Hand, History, Physical, Place};
use freehold_kernel::*;

use super::bits::{Vars, unsettled};
pub(super) use super::codes::*;
pub(super) use super::names::*;

/// Rows, disk and history that some variables stand for.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) view: View,
    pub(super) disk: Disk,
    pub(super) history: History,
}

/// The world that these variables stand for.
pub(super) fn decode(beginning: &View, v: &Vars) -> World {
    let mut view = beginning.clone();
    let mut history = History::default();
    people(&mut view, &mut history, v);
    making(&mut view, v);
    cleanup(&mut view, v);
    removal(&mut view, v);
    if v.unarchived == 1 {
        history.stopped.push(JOB);
    }
    view.commit();
    World { view, disk: disk(v), history }
}

fn people(view: &mut View, history: &mut History, v: &Vars) {
    for (id, state) in SESSIONS.into_iter().zip(v.sessions()) {
        let (lifecycle, epoch, from_archive) = match state {
            1 => (SessionLifecycle::Open, 1, false),
            2 => (SessionLifecycle::Closing, 1, false),
            4 => (SessionLifecycle::Archived, 2, true),
            5 => (SessionLifecycle::Closing, 2, true),
            6 => (SessionLifecycle::Open, 3, false),
            7 => (SessionLifecycle::Closing, 3, false),
            3 => {
                identity(view, history, id, true);
                continue;
            }
            _absent => continue,
        };
        identity(view, history, id, false);
        view.sessions.insert(session(id, OWNER, lifecycle, epoch, from_archive));
    }
    if v.borrower != 0 {
        identity(view, history, BORROWING, v.borrower == 3);
    }
    let lifecycle = match v.borrower {
        1 => Some(SessionLifecycle::Open),
        2 => Some(SessionLifecycle::Closing),
        _absent_or_gone => None,
    };
    if let Some(lifecycle) = lifecycle {
        view.sessions.insert(session(BORROWING, OTHER, lifecycle, 1, false));
    }
    if let Some(task) = view.tasks.edit(OTHER.0) {
        task.primary_session_id = lifecycle.map(|_| BORROWING);
    }
    if let Some(task) = view.tasks.edit(OWNER.0) {
        let primary = usize::from(v.primary).checked_sub(1);
        task.primary_session_id = primary.and_then(|i| SESSIONS.get(i)).copied();
        if v.archived == 1 {
            task.lifecycle = TaskLifecycle::Archived;
            task.archived_at = Some(NOW);
            task.archived_by = Some(OPERATION);
        }
    }
}

fn identity(view: &mut View, history: &mut History, id: SessionId, gone: bool) {
    view.identities.insert(Identity {
        id: AnyId(id.0),
        kind: IdentityKind::Session,
        state: if gone { IdentityState::Gone } else { IdentityState::Live },
        gone_at: gone.then_some(NOW),
        gone_by: gone.then_some(ACTOR),
    });
    if gone {
        history.deleted.push((IdentityKind::Session, id.0));
    }
}

fn session(
    id: SessionId,
    task: TaskId,
    lifecycle: SessionLifecycle,
    epoch: u32,
    archived: bool,
) -> Session {
    let closing = lifecycle == SessionLifecycle::Closing;
    Session {
        id,
        task_id: task,
        task_environment_id: Some(ENVIRONMENT),
        lifecycle,
        closing_kind: closing.then_some(ClosingKind::Delete),
        closing_token: closing.then_some(CLOSING),
        closing_by: closing.then_some(ACTOR),
        closing_lease: closing.then_some(NOW + Settings::DEFAULT.lease),
        activity: Activity::Created,
        epoch,
        source: SessionSource::Person,
        starred: false,
        parent_session_id: None,
        archived_at: archived.then_some(NOW),
        archived_by: archived.then_some(OPERATION),
        created_at: NOW,
        updated_at: NOW,
        last_activity_at: NOW,
    }
}

fn making(view: &mut View, v: &Vars) {
    let state = match v.attempt {
        1 => Some(AttemptState::Intended),
        2 => Some(AttemptState::Materialised),
        3 => Some(AttemptState::Owned),
        4 => Some(AttemptState::Compensating),
        5 => Some(AttemptState::Compensated),
        _none => None,
    };
    if let Some(state) = state {
        let (token, instance_id) = match v.holder {
            0 => (MAKER_TOKEN, MAKER),
            1 => (Token(derive(MAKER_TOKEN.0, JOB.0)), MAKER),
            _recovery => (RECOVERY_TOKEN, RECOVERY),
        };
        view.attempts.insert(Attempt {
            id: ATTEMPT,
            token,
            task_id: OWNER,
            task_environment_id: ENVIRONMENT,
            repo_id: REPO,
            kind: AttemptKind::Create,
            repository_id: REPOSITORY,
            branch_slug: SLUG,
            root_id: ROOT,
            path: PATH,
            branch: BRANCH,
            worktree_id: STAMP,
            branch_existed: false,
            start_commit: START,
            state,
            instance_id,
            lease_until: lease(v.attempt_lapsed == 1, Settings::DEFAULT.removal_lease),
            created_at: NOW,
            updated_at: NOW,
        });
    }
    if let Some(environment) = view.environments.edit(ENVIRONMENT.0) {
        // W-3: usable once no attempt is open.
        environment.status = if matches!(v.attempt, 1 | 2) {
            EnvironmentStatus::Creating
        } else {
            EnvironmentStatus::Ready
        };
    }
    let materialised = match v.repo {
        1 => Materialised::Yes,
        2 => Materialised::Removing,
        3 => Materialised::No,
        _none => return,
    };
    view.repos.insert(Repo {
        id: REPO,
        task_environment_id: ENVIRONMENT,
        repository_id: REPOSITORY,
        branch_slug: SLUG,
        worktree_id: Some(STAMP),
        worktree_path: Some(PATH),
        worktree_branch: Some(BRANCH),
        status: RepoStatus::Active,
        materialised,
        managed: true,
        root_id: Some(ROOT),
        branch_created: true,
        start_commit: Some(START),
        position: 0,
        created_at: NOW,
        updated_at: NOW,
        merged_at: None,
        deleted_at: None,
    });
}

fn lease(lapsed: bool, length: Span) -> Time {
    if lapsed { LAPSED } else { NOW + length }
}

fn cleanup(view: &mut View, v: &Vars) {
    if v.job == 0 {
        return;
    }
    let parts: &[u8] = match (v.job, v.resource) {
        (1 | 3, _) => &[],
        (_, 0) => &[0],
        (_, _) => &[0, 1],
    };
    for index in parts {
        let (state, tries, lapsed) = part(*index, v);
        let running = state == JobState::Running;
        view.job_roots.insert(JobRoot {
            id: part_id(*index),
            job_id: JOB,
            root_id: (*index == 1).then_some(ROOT),
            state,
            tries,
            next_attempt_at: (state == JobState::RetryWait).then_some(NOW),
            token: running.then(|| claim_token(*index, tries)),
            claimed_by: running.then_some(WORKER),
            lease_until: running.then(|| lease(lapsed, Settings::DEFAULT.lease)),
            created_at: NOW,
            updated_at: NOW,
        });
    }
    let state = match v.job {
        1 | 2 => JobState::Prepared,
        5 => all_of(view),
        _cancelled => JobState::Cancelled,
    };
    let prepared = state == JobState::Prepared;
    let ended = matches!(state, JobState::Succeeded | JobState::Failed | JobState::Cancelled);
    view.jobs.insert(Job {
        id: JOB,
        operation_id: OPERATION,
        task_id: OWNER,
        content_hash: CONTENT,
        trigger: Trigger::Archive,
        authority: OPERATION,
        environment_id: None,
        cascade_root: None,
        policy: UnsavedPolicy::Salvage,
        branch_policy: BranchPolicy::Keep,
        consent: Unsaved::NONE,
        state,
        instance_id: prepared.then_some(MAKER),
        lease_until: prepared.then(|| lease(v.barrier_lapsed == 1, Settings::DEFAULT.lease)),
        snapshot_version: u32::from(!matches!(v.job, 1 | 3)),
        mutated_at: (v.job >= 5).then_some(NOW),
        created_at: NOW,
        updated_at: NOW,
        completed_at: ended.then_some(NOW),
    });
    resource(view, v);
}

/// What the parts' states make of an activated job (C-1). No decision rests on this alone: every
/// row that the kernel leaves is compared with what is decoded.
fn all_of(view: &View) -> JobState {
    let order = [JobState::Running, JobState::Pending, JobState::RetryWait, JobState::Failed];
    let has = |state: &JobState| view.job_roots.iter().any(|p| p.state == *state);
    order.into_iter().find(has).unwrap_or(JobState::Succeeded)
}

fn resource(view: &mut View, v: &Vars) {
    let Some((of_attempt, result, reason)) = resource_kind(v.resource) else { return };
    view.resources.insert(Resource {
        id: resource_id(of_attempt),
        job_id: JOB,
        job_root_id: part_id(1),
        kind: if of_attempt { ResourceKind::Attempt } else { ResourceKind::Worktree },
        environment_id: Some(ENVIRONMENT),
        repo_id: (!of_attempt).then_some(REPO),
        runtime_id: None,
        attempt_id: of_attempt.then_some(ATTEMPT),
        handle: None,
        repository_id: Some(REPOSITORY),
        root_id: Some(ROOT),
        path: Some(PATH),
        branch: Some(BRANCH),
        worktree_id: Some(STAMP),
        managed: true,
        branch_created: !of_attempt,
        start_commit: (!of_attempt).then_some(START),
        result,
        reason,
        salvage_id: None,
        transferred_to: None,
        created_at: NOW,
        updated_at: NOW,
    });
}

fn removal(view: &mut View, v: &Vars) {
    let Some(last_step) = last_step(v.removal) else { return };
    let of_attempt = v.attempt >= 4;
    let found_something = v.removal >= 3 && v.disk != 0;
    let token = remover_token(v.remover);
    let instance_id = if v.remover < 2 { WORKER } else { RECOVERY };
    let repo_id = (!of_attempt).then_some(REPO);
    view.removals.insert(Removal {
        id: REMOVAL,
        authority: if of_attempt { AuthorityKind::Attempt } else { AuthorityKind::Job },
        authority_id: if of_attempt { AnyId(ATTEMPT.0) } else { AnyId(JOB.0) },
        resource: (!of_attempt).then_some(resource_id(false)),
        repo_id,
        root_id: ROOT,
        path: PATH,
        identity: Some(STAMP),
        token,
        instance_id,
        lease_until: lease(v.remover == 1, Settings::DEFAULT.removal_lease),
        last_step,
        unsaved: Unsaved::NONE,
        head: None,
        found_something,
        delete_branch: of_attempt,
        keep_trash: false,
        last_reason: Reason::None,
        outcome: match (unsettled(v.removal), last_step, found_something) {
            (true, _, _) => None,
            (false, RemovalStep::Returned, _) => Some(RemovalOutcome::Returned),
            (false, _, true) => Some(RemovalOutcome::Removed),
            (false, _, false) => Some(RemovalOutcome::Absent),
        },
        created_at: NOW,
        updated_at: NOW,
    });
    let state = match v.removal {
        2..=5 => TrashState::Kept,
        6 => TrashState::Purging,
        7 | 8 => TrashState::Gone,
        _no_trash => return,
    };
    view.trash.insert(Trash {
        id: TrashId(derive(REMOVAL.0, 0x7261_7368)),
        removal_id: REMOVAL,
        task_id: (!of_attempt).then_some(OWNER),
        repo_id,
        root_id: ROOT,
        path: PATH,
        worktree_id: Some(STAMP),
        restorable_until: None,
        state,
        created_at: NOW,
        updated_at: NOW,
    });
}

fn disk(v: &Vars) -> Disk {
    let mut disk = Disk::default();
    let place = match v.disk {
        1 => Some(Place::AtHome),
        2 => Some(Place::InTrash),
        3 => Some(Place::Gone),
        _none => None,
    };
    if let Some(place) = place {
        disk.worktrees.push(Physical {
            identity: STAMP,
            root: ROOT,
            path: PATH,
            made_by: Some(ATTEMPT),
            place,
            unsaved: Unsaved::NONE,
            salvaged: Unsaved::NONE,
            moved_by: (place != Place::AtHome).then_some(REMOVAL),
        });
    }
    if matches!(v.maker, 2..=4) {
        disk.take(Hand { root: ROOT, path: PATH, token: MAKER_TOKEN });
    }
    if v.executor != 0 {
        disk.take(Hand { root: ROOT, path: PATH, token: remover_token(v.remover) });
    }
    disk
}
