//! P-6, P-30: nothing new under a barred or closed task; P-33: nor in a removal's way; P-34, P-35:
//! a barrier and an attempt belong to who holds them; P-38: what a policy keeps from being begun.

use alloc::vec::Vec;

use super::words::*;
use super::{Holds, Step, demand, witness};
use crate::command::{AttemptCommand, Command, OperationCommand, SystemCommand, TaskCommand};
use crate::id::*;
use crate::rows::*;

/// Something that came under a task in a step (B-2).
#[derive(Clone, Copy, Debug)]
struct Newcomer {
    /// Under this task.
    task: TaskId,
    /// The row.
    row: RowKey,
    /// What it is.
    what: &'static str,
}

/// Everything that came under any task.
fn newcomers(step: &Step<'_>) -> Vec<Newcomer> {
    let mut out = Vec::new();
    sessions(step, &mut out);
    workspaces(step, &mut out);
    work(step, &mut out);
    children(step, &mut out);
    out
}

fn sessions(step: &Step<'_>, out: &mut Vec<Newcomer>) {
    for session in step.after.sessions.iter() {
        let was = step.before.sessions.id(session.id.0);
        let row = session.row_key();
        let task = session.task_id;
        match was {
            None => out.push(Newcomer { task, row, what: "session" }),
            Some(was) => {
                let reopened = was.archived_at.is_some()
                    && session.archived_at.is_none()
                    && session.lifecycle == SessionLifecycle::Open;
                if reopened {
                    out.push(Newcomer { task, row, what: "reopened session" });
                }
            }
        }
        // A new borrower of another task's environment.
        let Some(environment) = session.task_environment_id else { continue };
        let Some(owner_now) = owner(step.after, environment) else { continue };
        let refers = protecting(step.after, session);
        let referred = was.is_some_and(|w| {
            protecting(step.before, w) && w.task_environment_id == Some(environment)
        });
        if refers && !referred && owner_now != task {
            out.push(Newcomer { task: owner_now, row, what: "borrower" });
        }
    }
}

fn workspaces(step: &Step<'_>, out: &mut Vec<Newcomer>) {
    for environment in step.after.environments.iter() {
        let was = step.before.environments.id(environment.id.0).map(|e| e.task_id);
        if was != Some(environment.task_id) {
            let row = environment.row_key();
            out.push(Newcomer { task: environment.task_id, row, what: "environment" });
        }
    }
    for repo in step.after.repos.iter().filter(|r| r.status != RepoStatus::Deleted) {
        let was = step.before.repos.id(repo.id.0);
        let appeared = was.is_none_or(|w| {
            let made = w.materialised == Materialised::No && repo.materialised != Materialised::No;
            w.worktree_id != repo.worktree_id || made || w.status == RepoStatus::Deleted
        });
        if appeared && let Some(task) = owner(step.after, repo.task_environment_id) {
            out.push(Newcomer { task, row: repo.row_key(), what: "repository row" });
        }
    }
    for attempt in step.after.attempts.iter() {
        if step.before.attempts.id(attempt.id.0).is_none() {
            let task = owner(step.after, attempt.task_environment_id).unwrap_or(attempt.task_id);
            out.push(Newcomer { task, row: attempt.row_key(), what: "attempt" });
        }
    }
}

fn work(step: &Step<'_>, out: &mut Vec<Newcomer>) {
    for turn in step.after.turns.iter() {
        if step.before.turns.id(turn.id.0).is_none()
            && let Some(session) = step.after.sessions.id(turn.session_id.0)
        {
            out.push(Newcomer { task: session.task_id, row: turn.row_key(), what: "turn" });
        }
    }
    for runtime in step.after.runtimes.iter() {
        if step.before.runtimes.id(runtime.id.0).is_none() {
            let task = runtime.task_id;
            out.push(Newcomer { task, row: runtime.row_key(), what: "runtime handle" });
        }
    }
    for input in step.after.inputs.iter() {
        if step.before.inputs.id(input.id.0).is_none()
            && let Some(session) = input.session_id.and_then(|s| step.after.sessions.id(s.0))
        {
            out.push(Newcomer { task: session.task_id, row: input.row_key(), what: "input" });
        }
    }
}

fn children(step: &Step<'_>, out: &mut Vec<Newcomer>) {
    for task in step.after.tasks.iter() {
        let was = step.before.tasks.id(task.id.0).map(|t| t.parent_id);
        if was != Some(task.parent_id)
            && let Some(parent) = task.parent_id
        {
            out.push(Newcomer { task: parent, row: task.row_key(), what: "child" });
        }
        if let Command::Task(TaskCommand::Move { task: moved, .. }) = step.command.command
            && moved == task.id
            && was.is_some_and(|w| w != task.parent_id)
        {
            out.push(Newcomer { task: task.id, row: task.row_key(), what: "place in the tree" });
        }
    }
}

/// P-6: between a barrier's commit and its lifting nothing comes under the task, and nothing
/// leaves it, but by the operation itself.
pub(super) fn barrier_orders_creation(step: &Step<'_>) -> Holds {
    let by_itself = |job: &Job| match step.command.command {
        Command::Operation(OperationCommand::Mutate { operation, .. }) => {
            operation == job.operation_id
        }
        Command::Operation(OperationCommand::Unarchive { .. }) => job.trigger == Trigger::Reconcile,
        Command::Operation(_)
        | Command::Session(_)
        | Command::Turn(_)
        | Command::Task(_)
        | Command::Attempt(_)
        | Command::Cleanup(_)
        | Command::Operator(_)
        | Command::System(_) => false,
    };
    for new in newcomers(step) {
        let Some(job) = barred(step.before, new.task) else { continue };
        if !by_itself(job) {
            let w = witness("something came under a barred task", [job.row_key(), new.row]);
            return Err(w.with(new.what));
        }
    }
    for environment in step.before.environments.iter() {
        let left = owner(step.after, environment.id) != Some(environment.task_id);
        if left
            && let Some(job) = barred(step.before, environment.task_id)
            && !by_itself(job)
        {
            let rows = [job.row_key(), environment.row_key()];
            return Err(witness("an environment left a barred task", rows));
        }
    }
    Ok(())
}

/// P-6: a task has at most one job that holds its barrier (B-1).
pub(super) fn one_barrier_per_task(view: &View) -> Holds {
    for job in view.jobs.iter().filter(|j| j.state == JobState::Prepared) {
        let first = barred(view, job.task_id).map(|j| j.id);
        demand(first == Some(job.id), "two barriers on one task", [job.row_key()])?;
        let there = view.tasks.id(job.task_id.0).is_some();
        demand(there, "a barrier on a task that is not there", [job.row_key()])?;
    }
    Ok(())
}

/// P-30: nothing is created, moved or reopened under a task that is archived, barred or gone.
pub(super) fn nothing_new_under_closed_task(step: &Step<'_>) -> Holds {
    for new in newcomers(step) {
        let at = [RowKey::task(new.task), new.row];
        let made = step.before.tasks.id(new.task.0).is_none();
        let there = step.after.tasks.id(new.task.0).is_some();
        if made && !there {
            return Err(witness("something came under a task that is not there", at).with(new.what));
        }
        let unarchived =
            matches!(step.command.command, Command::Operation(OperationCommand::Unarchive { .. }))
                && active(step.after, new.task);
        if archived(step.before, new.task) && !unarchived {
            return Err(witness("something came under an archived task", at).with(new.what));
        }
        if archived(step.after, new.task) {
            return Err(witness("something new is under an archived task", at).with(new.what));
        }
    }
    Ok(())
}

/// P-33: nobody uses, borrows, transfers or recreates what is in removal.
pub(super) fn removal_is_settled(step: &Step<'_>) -> Holds {
    for repo in step.before.repos.iter().filter(|r| r.materialised == Materialised::Removing) {
        let environment = repo.task_environment_id;
        let rows = |row: RowKey| [repo.row_key(), row];
        let refers = |session: SessionId| {
            step.before
                .sessions
                .id(session.0)
                .is_some_and(|s| s.task_environment_id == Some(environment))
        };
        let live = repo.status != RepoStatus::Deleted;
        for new in newcomers(step).iter().filter(|_| live) {
            let used = match new.row.table {
                TableId::Turns => {
                    step.after.turns.get(new.row.key).is_some_and(|t| refers(t.session_id))
                }
                TableId::Attempts => step.after.attempts.get(new.row.key).is_some_and(|a| {
                    a.task_environment_id == environment
                        && a.repository_id == repo.repository_id
                        && a.branch_slug == repo.branch_slug
                }),
                TableId::Sessions => {
                    new.what == "borrower"
                        && step
                            .after
                            .sessions
                            .get(new.row.key)
                            .is_some_and(|s| s.task_environment_id == Some(environment))
                }
                TableId::Environments => new.row == RowKey::environment(environment),
                TableId::Repos => {
                    new.row != repo.row_key()
                        && step.after.repos.get(new.row.key).is_some_and(|r| {
                            r.worktree_path == repo.worktree_path && r.root_id.is_some()
                        })
                }
                TableId::Workspaces
                | TableId::Tasks
                | TableId::Removals
                | TableId::Trash
                | TableId::Salvage
                | TableId::Jobs
                | TableId::JobRoots
                | TableId::Resources
                | TableId::Identities
                | TableId::Requests
                | TableId::Inputs
                | TableId::Runtimes
                | TableId::Instances
                | TableId::ManagedRoots
                | TableId::Settings => false,
            };
            if used {
                let w = witness("somebody took what is in removal", rows(new.row));
                return Err(w.with(new.what));
            }
        }
        let now = step.after.repos.id(repo.id.0);
        let recreated = now.is_some_and(|r| {
            r.worktree_id != repo.worktree_id || r.worktree_path != repo.worktree_path
        });
        demand(!recreated, "a worktree in removal was replaced", [repo.row_key()])?;
    }
    Ok(())
}

/// P-33 as a state: a row is `removing` exactly while a removal of it is unsettled.
pub(super) fn removing_is_an_unsettled_removal(view: &View) -> Holds {
    for repo in view.repos.iter() {
        let held = view.removals.iter().any(|r| {
            r.outcome.is_none() && r.authority == AuthorityKind::Job && r.repo_id == Some(repo.id)
        });
        let removing = repo.materialised == Materialised::Removing;
        demand(
            removing == held,
            "`removing` without an unsettled removal, or the reverse",
            [repo.row_key()],
        )?;
    }
    Ok(())
}

/// P-34, B-7: a barrier whose lease holds is used and lifted by its operation's owner alone. (A
/// workspace's deletion is taken back as a whole, T-9; a prepared reconcile is nobody's, B-8.)
pub(super) fn barrier_is_its_owners(step: &Step<'_>) -> Holds {
    for job in step.before.jobs.iter().filter(|j| j.state == JobState::Prepared) {
        let now = step.after.jobs.id(job.id.0);
        let held = job.lease_until.is_some_and(|lease| lease > step.before.now);
        if now == Some(job) || !held {
            continue;
        }
        let owner = |operation, instance| {
            operation == job.operation_id && Some(instance) == job.instance_id
        };
        let proven = match step.command.command {
            Command::Operation(
                OperationCommand::Snapshot { operation, instance, .. }
                | OperationCommand::Mutate { operation, instance, .. }
                | OperationCommand::RenewBarrier { operation, instance }
                | OperationCommand::Abort { operation, instance },
            ) => owner(operation, instance),
            Command::Operation(OperationCommand::AbortWorkspaceDelete { operation, .. }) => {
                operation == job.operation_id
            }
            Command::System(SystemCommand::RecoverWorkspaceDelete { workspace }) => step
                .before
                .workspaces
                .id(workspace.0)
                .is_some_and(|w| w.deleting_operation == Some(job.operation_id)),
            Command::Operation(OperationCommand::Unarchive { .. }) => {
                job.trigger == Trigger::Reconcile
            }
            Command::Operation(_)
            | Command::Session(_)
            | Command::Turn(_)
            | Command::Task(_)
            | Command::Attempt(_)
            | Command::Cleanup(_)
            | Command::Operator(_)
            | Command::System(_) => false,
        };
        demand(proven, "somebody else acted under a living owner's barrier", [job.row_key()])?;
    }
    Ok(())
}

/// P-34, W-5: what a living maker has is taken from it by no recovery; the mutation of a barrier
/// undoes it (B-5), and nothing else without its token.
pub(super) fn attempt_is_its_makers(step: &Step<'_>) -> Holds {
    for attempt in step.before.attempts.iter().filter(|a| unresolved(a)) {
        let now = step.after.attempts.id(attempt.id.0);
        let held = attempt.lease_until > step.before.now;
        let same = now.is_some_and(|n| n.state == attempt.state && n.token == attempt.token);
        let taken = matches!(
            step.command.command,
            Command::Attempt(AttemptCommand::Recover { attempt: id, .. }) if id == attempt.id
        );
        demand(!(held && taken) || same, "a living maker was robbed", [attempt.row_key()])?;
    }
    Ok(())
}

/// Nothing changed, but that the request's outcome may be remembered (D-19).
fn nothing_but_its_record(step: &Step<'_>) -> bool {
    step.changes.iter().all(|c| c.row.table == TableId::Requests)
}

/// P-35, B-7: an owner whose lease has lapsed does nothing more under its barrier.
pub(super) fn lapsed_owner_does_nothing(step: &Step<'_>) -> Holds {
    let Command::Operation(
        OperationCommand::Snapshot { operation, .. }
        | OperationCommand::Mutate { operation, .. }
        | OperationCommand::RenewBarrier { operation, .. },
    ) = step.command.command
    else {
        return Ok(());
    };
    let lapsed = step.before.jobs.iter().find(|j| {
        j.operation_id == operation
            && j.state == JobState::Prepared
            && j.lease_until.is_none_or(|lease| lease <= step.before.now)
    });
    let Some(job) = lapsed else { return Ok(()) };
    demand(nothing_but_its_record(step), "a lapsed owner acted under its barrier", [job.row_key()])
}

/// P-35, W-5: who lost the attempt's token does nothing to it, and gets no right from it.
pub(super) fn replaced_token_does_nothing(step: &Step<'_>) -> Holds {
    let (id, by) = match step.command.command {
        Command::Attempt(
            AttemptCommand::Materialised { attempt, token }
            | AttemptCommand::Persist { attempt, token }
            | AttemptCommand::GiveUp { attempt, token }
            | AttemptCommand::Renew { attempt, token }
            | AttemptCommand::Compensate { attempt, token, .. },
        ) => (attempt, token),
        Command::Attempt(
            AttemptCommand::Begin { .. }
            | AttemptCommand::BeginRestore { .. }
            | AttemptCommand::Recover { .. },
        )
        | Command::Session(_)
        | Command::Turn(_)
        | Command::Task(_)
        | Command::Operation(_)
        | Command::Cleanup(_)
        | Command::Operator(_)
        | Command::System(_) => return Ok(()),
    };
    let Some(attempt) = step.before.attempts.id(id.0) else { return Ok(()) };
    let nothing = nothing_but_its_record(step) && step.granted.is_none();
    let proven = attempt.token == by;
    demand(proven || nothing, "a replaced token moved its attempt", [attempt.row_key()])
}

/// P-38, W-34, B-1: under `refuse` nothing is reserved while there is unsaved work; `discard`
/// comes with the consent that says what may go.
pub(super) fn reserved_within_its_policy(step: &Step<'_>) -> Holds {
    let Command::Operation(OperationCommand::Reserve { job, policy, unsaved, .. }) =
        step.command.command
    else {
        return Ok(());
    };
    let fresh = step.before.jobs.id(job.0).is_none();
    let Some(row) = step.after.jobs.id(job.0).filter(|_| fresh) else { return Ok(()) };
    let refused = policy == UnsavedPolicy::Refuse && !unsaved.is_none();
    demand(!refused, "an operation began over unsaved work that it refuses", [row.row_key()])?;
    let silent = row.policy == UnsavedPolicy::Discard && row.consent.is_none();
    demand(!silent, "an operation may discard, and nobody consented", [row.row_key()])
}
