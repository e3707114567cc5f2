//! P-7, P-8, P-13, P-14, P-27, P-28: jobs and what they may do.

use super::words::*;
use super::{Changed, Granted, History, Holds, Step, demand, witness};
use crate::command::*;
use crate::evidence::{Evidence, Found, Liveness};
use crate::rows::*;
use crate::view::Change;

/// P-7 as a state: a job past `prepared` has a snapshot.
pub(super) fn past_prepared_has_a_snapshot(view: &View) -> Holds {
    for job in view.jobs.iter() {
        let past = unfinished(job.state)
            || job.state == JobState::Succeeded
            || job.state == JobState::Failed;
        let ok = !past || job.snapshot_version > 0 || job.trigger == Trigger::Unreadable;
        demand(ok, "a job past `prepared` without a snapshot", [job.row_key()])?;
        let done = job.completed_at.is_some();
        demand(done == finished(job.state), "a job's end and its time differ", [job.row_key()])?;
        let owned = job.instance_id.is_some() && job.lease_until.is_some();
        let ok = owned == (job.state == JobState::Prepared);
        demand(ok, "a barrier has an owner, and nothing else has one", [job.row_key()])?;
    }
    Ok(())
}

/// P-7, B-4: what is activated has everything of its task in its snapshot.
pub(super) fn snapshot_is_complete(step: &Step<'_>) -> Holds {
    for job in step.after.jobs.iter() {
        let was = step.before.jobs.id(job.id.0).map(|j| j.state);
        let activated =
            job.state == JobState::Pending && (was.is_none() || was == Some(JobState::Prepared));
        if activated {
            of_rows(step, job)?;
            of_runtimes(step, job)?;
            if delete_like(job.trigger) {
                of_older_jobs(step, job)?;
            }
        }
    }
    Ok(())
}

fn listed(step: &Step<'_>, job: &Job, fits: impl Fn(&Resource) -> bool) -> bool {
    step.after.resources.iter().any(|r| r.job_id == job.id && fits(r))
}

fn of_rows(step: &Step<'_>, job: &Job) -> Holds {
    for environment in
        step.before.environments.iter().filter(|e| {
            e.task_id == job.task_id && job.environment_id.is_none_or(|only| only == e.id)
        })
    {
        let handles = [
            (environment.container_id, ResourceKind::Container),
            (environment.sandbox_id, ResourceKind::Sandbox),
        ];
        for (handle, kind) in handles {
            let ok =
                handle.is_none() || listed(step, job, |r| r.kind == kind && r.handle == handle);
            demand(ok, "a handle is not in the snapshot", [job.row_key(), environment.row_key()])?;
        }
        for attempt in step
            .before
            .attempts
            .iter()
            .filter(|a| a.task_environment_id == environment.id && unresolved(a))
        {
            let ok = listed(step, job, |r| r.attempt_id == Some(attempt.id));
            demand(ok, "an attempt is not in the snapshot", [job.row_key(), attempt.row_key()])?;
        }
        for repo in step
            .before
            .repos
            .iter()
            .filter(|r| r.task_environment_id == environment.id && claims(r))
        {
            let ok = listed(step, job, |r| {
                r.kind == ResourceKind::Worktree
                    && r.repo_id == Some(repo.id)
                    && r.worktree_id == repo.worktree_id
                    && r.path == repo.worktree_path
                    && r.branch == repo.worktree_branch
            });
            demand(ok, "a worktree is not in the snapshot", [job.row_key(), repo.row_key()])?;
        }
    }
    Ok(())
}

fn of_runtimes(step: &Step<'_>, job: &Job) -> Holds {
    for runtime in step.before.runtimes.iter().filter(|r| may_live(r)) {
        let concerned = match job.environment_id {
            Some(environment) => runtime.task_environment_id == Some(environment),
            None => runtime.task_id == job.task_id,
        };
        let ok = !concerned || listed(step, job, |r| r.runtime_id == Some(runtime.id));
        demand(ok, "a runtime is not in the snapshot", [job.row_key(), runtime.row_key()])?;
    }
    Ok(())
}

/// T-12: a delete's snapshot includes what older jobs of the task have not settled.
fn of_older_jobs(step: &Step<'_>, job: &Job) -> Holds {
    for old in step.before.resources.iter() {
        let older = step.before.jobs.id(old.job_id.0).is_some_and(|j| {
            j.task_id == job.task_id
                && j.id != job.id
                && (unfinished(j.state) || j.state == JobState::Failed)
        });
        let open = unsettled(old.result) || old.result == ResourceResult::Failed;
        if !older || !open {
            continue;
        }
        let ok = listed(step, job, |r| {
            r.kind == old.kind
                && r.path == old.path
                && r.runtime_id == old.runtime_id
                && r.attempt_id == old.attempt_id
                && r.handle == old.handle
        });
        demand(ok, "a delete forgot what an older job left", [job.row_key(), old.row_key()])?;
    }
    Ok(())
}

/// P-8: the mutation and the activation are one step, both ways.
pub(super) fn mutation_is_activation(step: &Step<'_>) -> Holds {
    let activated = |task: crate::id::TaskId, fits: fn(Trigger) -> bool| {
        step.after.jobs.iter().find(|j| {
            let was = step.before.jobs.id(j.id.0).map(|w| w.state);
            j.task_id == task
                && fits(j.trigger)
                && was == Some(JobState::Prepared)
                && j.state == JobState::Pending
        })
    };
    for task in step.before.tasks.iter() {
        let at = [task.row_key()];
        match step.after.tasks.id(task.id.0) {
            None => {
                let job = activated(task.id, delete_like);
                demand(job.is_some(), "a task was deleted without its job", at)?;
            }
            Some(now) => {
                let was = task.lifecycle == TaskLifecycle::Active;
                if was && now.lifecycle == TaskLifecycle::Archived {
                    let job = activated(task.id, archive_like);
                    let fits = job.is_some_and(|j| now.archived_by == Some(j.authority));
                    demand(fits, "a task was archived without its job", at)?;
                }
                let dated = now.archived_at.is_some() && now.archived_by.is_some();
                let archived = now.lifecycle == TaskLifecycle::Archived;
                demand(dated == archived, "archived_at and lifecycle of a task differ", at)?;
            }
        }
    }
    for job in step.before.jobs.iter().filter(|j| j.state == JobState::Prepared) {
        let now = step.after.jobs.id(job.id.0);
        let state = now.map(|j| j.state);
        let at = [job.row_key()];
        let legal = [JobState::Prepared, JobState::Pending, JobState::Cancelled];
        demand(state.is_some_and(|s| legal.contains(&s)), "a barrier ended otherwise", at)?;
        if state == Some(JobState::Pending) {
            demand(shows(step, job), "a job was activated without its mutation", at)?;
            let dated = now.is_some_and(|j| j.mutated_at.is_some());
            demand(dated, "an activated job does not say when", at)?;
        }
    }
    for Changed { row, how, .. } in step.changes {
        if row.table == TableId::Jobs && *how == Change::Inserted {
            let job = step.after.jobs.get(row.key);
            let ok = job.is_some_and(|j| match j.state {
                JobState::Prepared => j.mutated_at.is_none(),
                JobState::Pending => {
                    j.trigger == Trigger::Reconcile || j.trigger == Trigger::OrphanRemoval
                }
                JobState::Running
                | JobState::RetryWait
                | JobState::Succeeded
                | JobState::Failed
                | JobState::Cancelled => false,
            });
            demand(ok, "a job began past its barrier", [*row])?;
        }
    }
    Ok(())
}

/// Whether a job's mutation shows in the rows after the step.
fn shows(step: &Step<'_>, job: &Job) -> bool {
    match job.trigger {
        Trigger::Archive | Trigger::CascadeArchive => {
            active(step.before, job.task_id)
                && step.after.tasks.id(job.task_id.0).is_some_and(|t| {
                    t.lifecycle == TaskLifecycle::Archived && t.archived_by == Some(job.authority)
                })
        }
        Trigger::Delete
        | Trigger::CascadeDelete
        | Trigger::WorkspaceDelete
        | Trigger::QuickChatExpire => step.after.tasks.id(job.task_id.0).is_none(),
        Trigger::EnvironmentReset => {
            job.environment_id.is_some_and(|e| {
                // T-10: the row stays, handles and rows are gone from it.
                step.after
                    .environments
                    .id(e.0)
                    .is_some_and(|row| row.container_id.is_none() && row.sandbox_id.is_none())
                    && !step
                        .after
                        .repos
                        .iter()
                        .any(|r| r.task_environment_id == e && r.status != RepoStatus::Deleted)
            })
        }
        Trigger::Reconcile | Trigger::OrphanRemoval => true,
        Trigger::Unreadable => false,
    }
}

/// P-13: what is at its end stays there, but for a person.
pub(super) fn finished_is_final(step: &Step<'_>) -> Holds {
    let person = step.command.actor.may.covers(Permissions::LIFECYCLE);
    let by_hand = match step.command.command {
        Command::Operator(
            OperatorCommand::Retry { .. } | OperatorCommand::ForgetResource { .. },
        )
        | Command::Operation(OperationCommand::Reserve { .. }) => person,
        Command::Operator(_)
        | Command::Operation(_)
        | Command::Session(_)
        | Command::Turn(_)
        | Command::Task(_)
        | Command::Attempt(_)
        | Command::Cleanup(_)
        | Command::System(_) => false,
    };
    for job in step.before.jobs.iter().filter(|j| finished(j.state)) {
        let now = step.after.jobs.id(job.id.0);
        let at = [job.row_key()];
        demand(now.is_some(), "a finished job vanished", at)?;
        let same = now.is_some_and(|j| j.state == job.state && j.completed_at == job.completed_at);
        let ok = same || (by_hand && job.state == JobState::Failed);
        demand(ok, "a finished job changed", at)?;
    }
    Ok(())
}

/// T-12: a delete that took the task over wants the same thing gone.
fn heir(view: &View, granted: &Granted, job: &Job) -> bool {
    view.jobs.iter().any(|j| {
        j.id != job.id
            && j.task_id == job.task_id
            && delete_like(j.trigger)
            && unfinished(j.state)
            && view.resources.iter().any(|r| r.job_id == j.id && r.path == Some(granted.path))
    })
}

/// P-14: after an unarchive no older job of its archive gets a permission to go on.
pub(super) fn unarchive_stops_cleanup(step: &Step<'_>, history: &History) -> Holds {
    if let Some(granted) = step.granted_forward()
        && let Authority::Job(id) = granted.authority
        && let Some(job) = step.after.jobs.id(id.0)
        && !heir(step.after, &granted, job)
    {
        let at = [job.row_key()];
        let stopped = history.stopped.contains(&id);
        demand(!stopped, "a job from before an unarchive got a warrant", at)?;
        let stands = !archive_like(job.trigger)
            || step.after.tasks.id(job.task_id.0).is_some_and(|t| {
                t.lifecycle == TaskLifecycle::Archived && t.archived_by == Some(job.authority)
            });
        demand(stands, "a warrant without the archive that it serves", at)?;
        demand(job.state != JobState::Cancelled, "a cancelled job got a warrant", at)?;
    }
    for task in step.before.tasks.iter().filter(|t| t.lifecycle == TaskLifecycle::Archived) {
        if !active(step.after, task.id) {
            continue;
        }
        let going = step.after.jobs.iter().find(|j| {
            j.task_id == task.id
                && archive_like(j.trigger)
                && (unfinished(j.state) || j.state == JobState::Prepared)
        });
        if let Some(job) = going {
            let rows = [task.row_key(), job.row_key()];
            return Err(witness("an unarchive left a cleanup going", rows));
        }
    }
    Ok(())
}

/// P-27: without the task permission nobody causes an archive, delete, reset or removal.
pub(super) fn authority_boundary(step: &Step<'_>) -> Holds {
    let may = step.command.actor.may;
    let lifecycle = may.covers(Permissions::LIFECYCLE);
    let any = lifecycle || may.covers(Permissions::SYSTEM);
    for Changed { row, how, .. } in step.changes.iter().filter(|c| c.how != Change::Touched) {
        let says = "an actor without the permission for it did this";
        match row.table {
            TableId::Jobs => {
                let now = step.after.jobs.get(row.key);
                let was = step.before.jobs.get(row.key);
                // Who begins an operation must be a person who may, or the system for its own.
                let own = now.is_some_and(|j| {
                    j.trigger == Trigger::QuickChatExpire || j.trigger == Trigger::Reconcile
                });
                let begins = *how == Change::Inserted;
                let again = was.is_some_and(|w| finished(w.state))
                    && now.is_some_and(|n| !finished(n.state));
                demand(!begins || lifecycle || (own && any), says, [*row])?;
                demand(!again || lifecycle, says, [*row])?;
                // Cancelling with an unarchive or a takeover is the act of whoever may do that.
                demand(any, says, [*row])?;
            }
            TableId::Tasks => {
                let was = step.before.tasks.get(row.key).map(|t| t.lifecycle);
                let now = step.after.tasks.get(row.key).map(|t| t.lifecycle);
                demand(was.is_none() || was == now || any, says, [*row])?;
            }
            TableId::Removals => {
                let job = step
                    .after
                    .removals
                    .get(row.key)
                    .is_some_and(|r| r.authority == AuthorityKind::Job);
                demand(!job || any, says, [*row])?;
            }
            TableId::JobRoots | TableId::Resources => demand(any, says, [*row])?,
            TableId::Workspaces => {
                demand(*how == Change::Inserted || any, says, [*row])?;
            }
            TableId::Sessions
            | TableId::Environments
            | TableId::Repos
            | TableId::Attempts
            | TableId::Trash
            | TableId::Salvage
            | TableId::Identities
            | TableId::Requests
            | TableId::Turns
            | TableId::Inputs
            | TableId::Runtimes
            | TableId::Instances
            | TableId::ManagedRoots
            | TableId::Settings => {}
        }
    }
    let needs = step.command.command.permission();
    let own = may.covers(needs) || may.covers(Permissions::SYSTEM);
    let changed = step.changes.iter().any(|c| c.row.table != TableId::Requests);
    demand(own || !changed, "a command without its permission changed something (D-27)", [])
}

/// P-28: what could not be read is not concluded to be absent.
pub(super) fn unknown_is_not_absent(step: &Step<'_>) -> Holds {
    let (blind, unproven) = match step.command.command {
        Command::Cleanup(CleanupCommand::Permit { evidence, .. })
        | Command::Attempt(AttemptCommand::Compensate { evidence, .. })
        | Command::Attempt(AttemptCommand::Recover { evidence, .. }) => {
            (is_blind(&evidence), false)
        }
        Command::Cleanup(CleanupCommand::SettleResource { liveness, .. }) => {
            (false, liveness != Liveness::Dead)
        }
        Command::System(SystemCommand::RecoverTurn { liveness, .. }) => {
            (false, liveness != Liveness::Dead)
        }
        Command::Cleanup(_)
        | Command::Attempt(_)
        | Command::System(_)
        | Command::Session(_)
        | Command::Turn(_)
        | Command::Task(_)
        | Command::Operation(_)
        | Command::Operator(_) => (false, false),
    };
    for Changed { row, how, .. } in step.changes {
        if blind {
            let removal = row.table == TableId::Removals && *how == Change::Inserted;
            demand(!removal, "a removal of what could not be seen", [*row])?;
            let resolved =
                step.after.attempts.get(row.key).filter(|_| row.table == TableId::Attempts);
            let gone = resolved.is_some_and(|a| !unresolved(a));
            demand(!gone, "an attempt was resolved by what could not be seen", [*row])?;
            let result =
                step.after.resources.get(row.key).filter(|_| row.table == TableId::Resources);
            let absent = result.is_some_and(|r| {
                r.result == ResourceResult::Absent || r.result == ResourceResult::Removed
            });
            demand(!absent, "absent was concluded from what could not be seen", [*row])?;
        }
        if unproven {
            let stopped = row.table == TableId::Runtimes
                && step.after.runtimes.get(row.key).is_some_and(|r| !may_live(r));
            demand(!stopped, "a runtime was taken for dead without proof", [*row])?;
            let dropped = row.table == TableId::Resources
                && step.after.resources.get(row.key).is_some_and(|r| {
                    let handle = matches!(
                        r.kind,
                        ResourceKind::Runtime | ResourceKind::Container | ResourceKind::Sandbox
                    );
                    let known = r.runtime_id.is_some_and(|id| {
                        step.before.runtimes.id(id.0).is_some_and(|row| !may_live(row))
                    });
                    handle
                        && !known
                        && (r.result == ResourceResult::Removed
                            || r.result == ResourceResult::Absent)
                });
            demand(!dropped, "a handle was dropped without proof", [*row])?;
        }
        let buried = row.table == TableId::Identities
            && step.after.identities.get(row.key).is_some_and(|i| i.state == IdentityState::Gone);
        let gone =
            step.changes.iter().any(|c| c.how == Change::Deleted && c.row.key.id == row.key.id);
        demand(!buried || gone, "a tombstone for what was not deleted", [*row])?;
    }
    Ok(())
}

fn is_blind(evidence: &Evidence) -> bool {
    evidence.found == Found::Unknown
}
