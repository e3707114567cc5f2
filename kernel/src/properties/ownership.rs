//! P-1..P-5, P-10, P-29: what a task owns, and who may touch it.

use super::words::*;
use super::{Changed, Disk, Granted, Holds, Place, Step, demand, witness};
use crate::command::*;
use crate::evidence::Found;
use crate::id::*;
use crate::rows::*;
use crate::view::Change;

/// P-1: no session command is anywhere in the cause of something physical. The rows behind all of
/// it (jobs with their parts, removals, trash, salvage, attempts, environments with their rows) are
/// out of its reach, and whatever is removed has a chain of just these rows back to its origin.
pub(super) fn session_removal_touches_no_workspace(step: &Step<'_>) -> Holds {
    let of_session = match step.command.command {
        Command::Session(_) | Command::Turn(_) => true,
        Command::Task(_)
        | Command::Operation(_)
        | Command::Attempt(_)
        | Command::Cleanup(_)
        | Command::Operator(_)
        | Command::System(SystemCommand::RecoverTurn { .. }) => false,
        Command::System(_) => {
            matches!(step.command.command, Command::System(SystemCommand::RecoverClosing { .. }))
        }
    };
    if of_session {
        demand(step.granted.is_none(), "a session's command gave a warrant", [])?;
        for Changed { row, .. } in step.changes {
            let physical = match row.table {
                TableId::Environments
                | TableId::Repos
                | TableId::Attempts
                | TableId::Removals
                | TableId::Trash
                | TableId::Salvage
                | TableId::Jobs
                | TableId::JobRoots
                | TableId::Resources
                | TableId::ManagedRoots => true,
                TableId::Workspaces
                | TableId::Tasks
                | TableId::Sessions
                | TableId::Identities
                | TableId::Requests
                | TableId::Turns
                | TableId::Inputs
                | TableId::Runtimes
                | TableId::Instances
                | TableId::Settings => false,
            };
            demand(!physical, "a session's command touched a workspace", [*row])?;
        }
    }
    // The chain: a removal has a job, an attempt or a trash row, each made by a command of its own.
    for removal in step.after.removals.iter() {
        if step.before.removals.id(removal.id.0).is_some() {
            continue;
        }
        let caused = match removal.authority() {
            Authority::Job(id) => step.before.jobs.id(id.0).is_some_and(|j| of_a_task(j.trigger)),
            Authority::Attempt(id) => step.before.attempts.id(id.0).is_some(),
            Authority::Trash(id) => step.before.trash.id(id.0).is_some(),
        };
        demand(caused, "a removal without a cause", [removal.row_key()])?;
    }
    Ok(())
}

/// What of a repository row is physical.
fn physical(view: &View, repo: &Repo) -> (bool, Materialised, [Option<u128>; 3], Option<TaskId>) {
    let places =
        [repo.worktree_id.map(|w| w.0), repo.worktree_path.map(|p| p.0), repo.root_id.map(|r| r.0)];
    let deleted = repo.status == RepoStatus::Deleted;
    (deleted, repo.materialised, places, owner(view, repo.task_environment_id))
}

/// P-2: what an active task owns changes only by an attempt, a transfer, or a T-1 trigger.
pub(super) fn owner_survives_sessions(step: &Step<'_>) -> Holds {
    for repo in step.before.repos.iter().filter(|r| r.status != RepoStatus::Deleted) {
        let owned = owner(step.before, repo.task_environment_id)
            .is_some_and(|task| active(step.before, task));
        let now = step.after.repos.id(repo.id.0);
        let same = now.is_some_and(|n| physical(step.after, n) == physical(step.before, repo));
        if owned && !same {
            demand(
                may_change(step, repo),
                "an active task's worktree changed by itself",
                [repo.row_key()],
            )?;
        }
    }
    Ok(())
}

fn may_change(step: &Step<'_>, repo: &Repo) -> bool {
    match step.command.command {
        Command::Attempt(AttemptCommand::Persist { attempt, .. })
        | Command::Attempt(AttemptCommand::Recover { attempt, .. }) => {
            step.before.attempts.id(attempt.0).is_some_and(|a| a.repo_id == repo.id)
        }
        Command::Task(TaskCommand::Transfer { environment, .. }) => {
            environment == repo.task_environment_id
        }
        Command::Operation(OperationCommand::Mutate { operation, .. }) => {
            let task = owner(step.before, repo.task_environment_id);
            step.before.jobs.iter().any(|j| {
                j.operation_id == operation
                    && Some(j.task_id) == task
                    && j.state == JobState::Prepared
                    && of_a_task(j.trigger)
            })
        }
        Command::Cleanup(_) => step.after.removals.iter().any(|r| {
            r.repo_id == Some(repo.id)
                && step.before.removals.id(r.id.0) != Some(r)
                && match r.authority() {
                    Authority::Job(id) => {
                        step.after.jobs.id(id.0).is_some_and(|j| of_a_task(j.trigger))
                    }
                    Authority::Attempt(_) | Authority::Trash(_) => false,
                }
        }),
        Command::Operator(OperatorCommand::ForgetResource { .. }) => true,
        Command::Attempt(_)
        | Command::Task(_)
        | Command::Operation(_)
        | Command::Operator(_)
        | Command::Session(_)
        | Command::Turn(_)
        | Command::System(_) => false,
    }
}

/// P-2, W-7: a worktree that is made again is made on its recorded branch, where the committed
/// work is. (A reset's row is deleted, and a new row has a new branch.)
pub(super) fn recorded_branch_stays(step: &Step<'_>) -> Holds {
    for repo in step.before.repos.iter().filter(|r| r.status != RepoStatus::Deleted) {
        let Some(now) = step.after.repos.id(repo.id.0) else { continue };
        let recorded = repo.worktree_id.is_some() && repo.worktree_branch.is_some();
        let same = now.worktree_branch == repo.worktree_branch;
        demand(!recorded || same, "a worktree changed its recorded branch", [repo.row_key()])?;
    }
    Ok(())
}

/// P-3: every worktree that Freehold made is named.
pub(super) fn no_untracked_worktree(view: &View, disk: &Disk) -> Holds {
    for worktree in disk.worktrees.iter().filter(|w| w.made_by.is_some()) {
        let identity = Some(worktree.identity);
        let named = match worktree.place {
            Place::Gone => true,
            Place::InTrash | Place::AtHome => {
                view.repos
                    .iter()
                    .any(|r| r.worktree_id == identity && r.status != RepoStatus::Deleted)
                    || view
                        .attempts
                        .iter()
                        .any(|a| Some(a.worktree_id) == identity && unresolved(a))
                    || view.trash.iter().any(|t| {
                        t.worktree_id == identity
                            && t.state != TrashState::Gone
                            && worktree.place == Place::InTrash
                    })
                    || view.resources.iter().any(|r| r.worktree_id == identity && tracks(view, r))
            }
        };
        let repo = view.attempts.iter().find(|a| Some(a.id) == worktree.made_by);
        if !named {
            let rows = [
                RowKey {
                    table: TableId::Attempts,
                    key: Key::of(worktree.made_by.map_or(0, |a| a.0)),
                },
                RowKey::repo(repo.map_or(RepoId(0), |a| a.repo_id)),
            ];
            return Err(witness("a worktree that nothing names", rows));
        }
    }
    Ok(())
}

/// An unfinished or failed job that has not settled it, or a recorded entry (C-13).
fn tracks(view: &View, resource: &Resource) -> bool {
    let job = view.jobs.id(resource.job_id.0).map(|j| j.state);
    match resource.result {
        ResourceResult::Kept | ResourceResult::Preserved | ResourceResult::Forgotten => true,
        ResourceResult::Waiting | ResourceResult::Removing | ResourceResult::Failed => {
            job.is_some_and(|s| unfinished(s) || s == JobState::Failed)
        }
        ResourceResult::Removed | ResourceResult::Absent | ResourceResult::Transferred => false,
    }
}

fn same_place(repo: &Repo, granted: &Granted) -> bool {
    let identity = repo.worktree_id.is_some() && repo.worktree_id == granted.identity;
    let path = repo.root_id == Some(granted.root) && repo.worktree_path == Some(granted.path);
    claims(repo) && (identity || path)
}

/// P-4: no permission for what an active task owns or a session protects.
pub(super) fn no_live_workspace_removed(step: &Step<'_>) -> Holds {
    let Some(granted) = step.granted_forward() else { return Ok(()) };
    if matches!(granted.authority, Authority::Trash(_)) {
        return Ok(());
    }
    for repo in step.after.repos.iter().filter(|r| same_place(r, &granted)) {
        let task = owner(step.after, repo.task_environment_id);
        let live = task.is_some_and(|t| active(step.after, t));
        demand(!live, "a permission to remove what an active task owns", [repo.row_key()])?;
        if let Some(session) = protectors(step.after, repo.task_environment_id).next() {
            let rows = [repo.row_key(), session.row_key()];
            return Err(witness("a permission to remove what a session protects", rows));
        }
    }
    Ok(())
}

/// P-10: no warrant for a resource with a borrower.
pub(super) fn borrowed_is_kept(step: &Step<'_>) -> Holds {
    let Some(granted) = step.granted_forward() else { return Ok(()) };
    let removal = step.after.removals.id(granted.removal.0);
    let resource = removal.and_then(|r| r.resource).and_then(|r| step.after.resources.id(r.0));
    let environment = resource.and_then(|r| r.environment_id);
    let Some(environment) = environment.and_then(|e| step.after.environments.id(e.0)) else {
        return Ok(());
    };
    // A reset's old worktrees are nobody's any more; who borrows later borrows the new ones.
    let old = resource.and_then(|r| r.repo_id).and_then(|r| step.after.repos.id(r.0));
    if old.is_some_and(|r| r.status == RepoStatus::Deleted) {
        return Ok(());
    }
    if let Some(session) = borrower(step.after, environment) {
        let rows = [environment.row_key(), session.row_key()];
        return Err(witness("a permission to remove what is borrowed", rows));
    }
    Ok(())
}

/// P-10, W-20: an environment with a borrower never goes with its owner.
pub(super) fn borrowed_outlives_its_owner(step: &Step<'_>) -> Holds {
    for Changed { row, how, .. } in step.changes {
        if row.table != TableId::Environments || *how != Change::Deleted {
            continue;
        }
        let Some(environment) = step.before.environments.get(row.key) else { continue };
        let lent = protectors(step.before, environment.id).find(|s| {
            s.task_id != environment.task_id && step.after.tasks.id(s.task_id.0).is_some()
        });
        if let Some(session) = lent {
            return Err(witness("a borrowed environment was removed", [*row, session.row_key()]));
        }
    }
    Ok(())
}

/// P-10, T-10: no reset takes the worktrees of an environment that somebody borrows.
pub(super) fn reset_spares_borrowers(step: &Step<'_>) -> Holds {
    for repo in step.before.repos.iter().filter(|r| r.status != RepoStatus::Deleted) {
        let deleted =
            step.after.repos.id(repo.id.0).is_some_and(|r| r.status == RepoStatus::Deleted);
        if !deleted {
            continue;
        }
        let environment = step.before.environments.id(repo.task_environment_id.0);
        if let Some(session) = environment.and_then(|e| borrower(step.before, e)) {
            let rows = [repo.row_key(), session.row_key()];
            return Err(witness("a borrowed environment was reset", rows));
        }
    }
    Ok(())
}

/// P-9, W-5: whoever looked and found something that is not the attempt's own gets no right to
/// remove it.
pub(super) fn compensation_leaves_the_foreign(step: &Step<'_>) -> Holds {
    let Command::Attempt(AttemptCommand::Compensate { attempt, evidence, .. }) =
        step.command.command
    else {
        return Ok(());
    };
    let foreign = evidence.found == Found::Mismatch && step.granted.is_some();
    let row = RowKey { table: TableId::Attempts, key: Key::of(attempt.0) };
    demand(!foreign, "a permission to remove what the attempt did not make", [row])
}

/// P-5, D-5, W-9: what is being made belongs to the owner of its environment.
pub(super) fn attempts_are_their_owners(view: &View) -> Holds {
    for attempt in view.attempts.iter() {
        let open = match attempt.state {
            AttemptState::Intended | AttemptState::Materialised => true,
            AttemptState::Compensating | AttemptState::Owned | AttemptState::Compensated => false,
        };
        let owned = owner(view, attempt.task_environment_id) == Some(attempt.task_id);
        demand(owned || !open, "an attempt of another task than its owner", [attempt.row_key()])?;
    }
    Ok(())
}

/// P-5: one identity one owner, one path one row, one slot one row and one attempt.
pub(super) fn one_owner(view: &View) -> Holds {
    for repo in view.repos.iter().filter(|r| r.status != RepoStatus::Deleted) {
        for other in view.repos.iter().filter(|o| o.id > repo.id && o.status != RepoStatus::Deleted)
        {
            let rows = [repo.row_key(), other.row_key()];
            let identity = repo.worktree_id.is_some() && repo.worktree_id == other.worktree_id;
            demand(!identity, "two rows name one worktree", rows)?;
            let path = repo.root_id.is_some()
                && repo.root_id == other.root_id
                && repo.worktree_path.is_some()
                && repo.worktree_path == other.worktree_path;
            demand(!path, "two rows name one path in one root", rows)?;
            let slot = repo.task_environment_id == other.task_environment_id
                && repo.repository_id == other.repository_id
                && repo.branch_slug == other.branch_slug;
            demand(!slot, "two rows have one slot", rows)?;
        }
    }
    for attempt in view.attempts.iter().filter(|a| unresolved(a)) {
        for other in view.attempts.iter().filter(|o| o.id > attempt.id && unresolved(o)) {
            let rows = [attempt.row_key(), other.row_key()];
            let slot = attempt.task_environment_id == other.task_environment_id
                && attempt.repository_id == other.repository_id
                && attempt.branch_slug == other.branch_slug;
            demand(!slot, "two attempts on one slot", rows)?;
        }
    }
    Ok(())
}

/// W-3: a row that names a worktree has all of it, and only rows of Freehold's have a root.
pub(super) fn rows_are_whole(view: &View) -> Holds {
    for repo in view.repos.iter() {
        let named = repo.worktree_id.is_some();
        let at = [repo.row_key()];
        demand(named == repo.worktree_path.is_some(), "a worktree without its path", at)?;
        demand(named || repo.materialised == Materialised::No, "nothing is on the disk", at)?;
        let root = repo.root_id.is_some() == (named && repo.managed);
        demand(root, "a managed worktree lies in a root, others do not", at)?;
        let deleted = repo.status == RepoStatus::Deleted;
        demand(deleted == repo.deleted_at.is_some(), "deleted_at and status differ", at)?;
        let there = view.environments.id(repo.task_environment_id.0).is_some();
        demand(there, "a row without its environment", at)?;
    }
    for environment in view.environments.iter() {
        let there = view.tasks.id(environment.task_id.0).is_some();
        demand(there, "an environment without its owner", [environment.row_key()])?;
    }
    for task in view.tasks.iter() {
        if let Some(current) = task.current_environment_id {
            let own = owner(view, current) == Some(task.id);
            let rows = [task.row_key(), RowKey::environment(current)];
            demand(own, "a task's current environment is not its own", rows)?;
        }
        if let Some(parent) = task.parent_id {
            let there = view.tasks.id(parent.0).is_some();
            demand(there, "a task under one that is not there", [task.row_key()])?;
        }
    }
    Ok(())
}

/// P-29: unsaved work is at home, in trash, salvaged, or discarded with recorded consent.
pub(super) fn unsaved_is_kept(view: &View, disk: &Disk) -> Holds {
    for worktree in disk.worktrees.iter().filter(|w| w.place == Place::Gone) {
        let kept = view
            .salvage
            .iter()
            .filter(|s| s.worktree_id == worktree.identity)
            .filter(|s| s.state != SalvageState::Expired || may_have_expired(view, s))
            .fold(Unsaved::NONE, |all, s| all.with(s.contents));
        let safe = Unsaved(worktree.unsaved.0 & kept.0 & worktree.salvaged.0);
        let lost = Unsaved(worktree.unsaved.0 & !safe.0 & !consented(view, worktree.moved_by).0);
        if lost.is_none() {
            continue;
        }
        let removal = worktree.moved_by.map_or(0, |r| r.0);
        let rows = [RowKey { table: TableId::Removals, key: Key::of(removal) }];
        let word = Unsaved::WORDS.iter().find(|(kind, _)| lost.covers(*kind));
        let w = witness("unsaved work was lost", rows);
        return Err(w.with(word.map_or("", |(_, code)| *code)));
    }
    Ok(())
}

/// W-34: only a retention that a person consented to ends a salvage.
fn may_have_expired(view: &View, salvage: &Salvage) -> bool {
    view.settings
        .id(1)
        .and_then(|s| s.salvage_expires(salvage.made_at))
        .is_some_and(|until| until <= view.now)
}

/// What might be lost: by the consent of the job that removed it, or whose trash was purged.
fn consented(view: &View, removal: Option<RemovalId>) -> Unsaved {
    let job = |removal: &Removal| match removal.authority() {
        Authority::Job(id) => view.jobs.id(id.0).copied(),
        Authority::Trash(id) => view
            .trash
            .id(id.0)
            .and_then(|t| view.removals.id(t.removal_id.0))
            .filter(|f| f.authority == AuthorityKind::Job)
            .and_then(|f| view.jobs.id(f.authority_id.0).copied()),
        Authority::Attempt(_) => None,
    };
    removal
        .and_then(|r| view.removals.id(r.0))
        .and_then(job)
        .filter(|j| j.policy == UnsavedPolicy::Discard)
        .map_or(Unsaved::NONE, |j| j.consent)
}
