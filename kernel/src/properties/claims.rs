//! P-34, P-35, P-38, P-39 of cleanup: claims and removals are their holders', tries are made when
//! they are due, and a root is worked on by the host that serves it.

use super::words::*;
use super::{Changed, Holds, Step, demand, witness};
use crate::command::*;
use crate::evidence::Found;
use crate::id::*;
use crate::rows::*;
use crate::time::Time;

/// What a command of cleanup shows to prove its right (C-3, C-4, C-18).
enum Proof {
    /// The token of a claim.
    Claim(JobRootId, Token),
    /// The token of a claim whose lease is believed to have lapsed.
    Lapsed(JobRootId, Token),
    /// The token of a removal.
    Removal(RemovalId, Token),
    /// None, or another kind of command.
    Nothing,
}

fn proof(step: &Step<'_>) -> Proof {
    use CleanupCommand as C;
    let Command::Cleanup(command) = step.command.command else { return Proof::Nothing };
    match command {
        C::Renew { job_root, token }
        | C::Finish { job_root, token }
        | C::PutBack { job_root, token, .. }
        | C::Park { job_root, token } => Proof::Claim(job_root, token),
        C::SettleResource { resource, token, .. } | C::Permit { resource, token, .. } => {
            let part = step.before.resources.id(resource.0).map(|r| r.job_root_id);
            part.map_or(Proof::Nothing, |part| Proof::Claim(part, token))
        }
        C::Rescue { job_root, token } => Proof::Lapsed(job_root, token),
        C::RecordStep { removal, token, .. }
        | C::RecordFailure { removal, token, .. }
        | C::RenewRemoval { removal, token }
        | C::TakeOverRemoval { removal, old_token: token, .. } => Proof::Removal(removal, token),
        C::Claim { .. } | C::GiveUpRoot { .. } | C::ExpireSalvage { .. } | C::Purge { .. } => {
            Proof::Nothing
        }
    }
}

/// Whether a claim holds now, under this lease.
fn held(part: &JobRoot, now: Time) -> bool {
    part.state == JobState::Running && part.lease_until.is_some_and(|lease| lease > now)
}

/// P-34, C-3, C-4: a claim whose lease holds is ended by its token, or cancelled with its job.
pub(super) fn a_claim_is_its_claimers(step: &Step<'_>) -> Holds {
    for part in step.before.job_roots.iter().filter(|p| held(p, step.after.now)) {
        let now = step.after.job_roots.id(part.id.0);
        let same = now.is_some_and(|n| {
            held(n, step.after.now) && n.token == part.token && n.claimed_by == part.claimed_by
        });
        let cancelled = now.is_some_and(|n| n.state == JobState::Cancelled);
        let by_token = match proof(step) {
            Proof::Claim(id, token) => id == part.id && Some(token) == part.token,
            Proof::Lapsed(..) | Proof::Removal(..) | Proof::Nothing => false,
        };
        let ok = same || by_token || (cancelled && may_cancel(step));
        demand(ok, "a claim was ended without its token", [part.row_key()])?;
    }
    Ok(())
}

/// B-8, T-12, C-5, C-15: who may cancel a job that somebody works on.
fn may_cancel(step: &Step<'_>) -> bool {
    match step.command.command {
        Command::Operation(
            OperationCommand::Unarchive { .. } | OperationCommand::Mutate { .. },
        )
        | Command::Operator(OperatorCommand::Cancel { .. })
        | Command::Cleanup(CleanupCommand::Permit { .. }) => true,
        Command::Operation(_)
        | Command::Operator(_)
        | Command::Cleanup(_)
        | Command::Session(_)
        | Command::Turn(_)
        | Command::Task(_)
        | Command::Attempt(_)
        | Command::System(_) => false,
    }
}

/// P-34, C-15, C-18: a removal whose lease holds is changed by its token only; a person who
/// forgets it waits too.
pub(super) fn a_removal_is_its_executors(step: &Step<'_>) -> Holds {
    for removal in step.before.removals.iter() {
        if removal.outcome.is_some() || removal.lease_until <= step.after.now {
            continue;
        }
        let by_token = match proof(step) {
            Proof::Removal(id, token) => id == removal.id && token == removal.token,
            Proof::Claim(..) | Proof::Lapsed(..) | Proof::Nothing => false,
        };
        let same = step.after.removals.id(removal.id.0) == Some(removal);
        demand(same || by_token, "a removal was taken from its executor", [removal.row_key()])?;
    }
    Ok(())
}

/// P-35, C-3, C-4, D-22: a token that is not the claim's or the removal's, or whose time is over,
/// changes nothing.
pub(super) fn a_stale_claim_changes_nothing(step: &Step<'_>) -> Holds {
    let now = step.after.now;
    let stands = match proof(step) {
        Proof::Claim(id, token) => {
            step.before.job_roots.id(id.0).is_some_and(|p| held(p, now) && p.token == Some(token))
        }
        Proof::Lapsed(id, token) => step.before.job_roots.id(id.0).is_some_and(|p| {
            p.state == JobState::Running && !held(p, now) && p.token == Some(token)
        }),
        Proof::Removal(id, token) => {
            step.before.removals.id(id.0).is_some_and(|r| r.outcome.is_none() && r.token == token)
        }
        Proof::Nothing => true,
    };
    let changed = step.changes.iter().find(|c| c.row.table != TableId::Requests);
    match changed {
        Some(Changed { row, .. }) if !stands => {
            Err(witness("a token that proves nothing any more changed something", [*row]))
        }
        Some(_) | None => Ok(()),
    }
}

/// P-38, C-2, C-3: no try before it is due, and no root given up before its time.
pub(super) fn tries_are_due(step: &Step<'_>) -> Holds {
    let settings = step.before.settings.id(1).copied().unwrap_or(Settings::DEFAULT);
    let now = step.after.now;
    for part in step.before.job_roots.iter() {
        let state = step.after.job_roots.id(part.id.0).map(|p| p.state);
        let waits = part.state == JobState::Pending || part.state == JobState::RetryWait;
        let at = [part.row_key()];
        let due = part.next_attempt_at.is_none_or(|at| at <= now);
        let claimed = waits && state == Some(JobState::Running);
        demand(due || !claimed, "a try before it was due", at)?;
        if let Command::Cleanup(CleanupCommand::GiveUpRoot { job_root }) = step.command.command
            && job_root == part.id
            && state != Some(part.state)
        {
            let since = part.next_attempt_at.unwrap_or(part.updated_at);
            let long = since + settings.root_patience <= now;
            demand(waits && long, "a root was given up before its time", at)?;
        }
    }
    Ok(())
}

/// P-38, W-34: nothing is permitted that the policy excludes, and each kind needs its consent.
pub(super) fn permitted_within_the_policy(step: &Step<'_>) -> Holds {
    for removal in new_removals(step) {
        let Authority::Job(id) = removal.authority() else { continue };
        let Some(job) = step.after.jobs.id(id.0) else { continue };
        let ok = match job.policy {
            UnsavedPolicy::Salvage => true,
            UnsavedPolicy::Refuse => removal.unsaved.is_none(),
            UnsavedPolicy::Discard => job.consent.covers(removal.unsaved),
        };
        let rows = [job.row_key(), removal.row_key()];
        demand(ok, "a permission for unsaved work that the policy keeps", rows)?;
    }
    Ok(())
}

/// P-38, D-20: trash is purged only once nobody can want it back.
pub(super) fn trash_is_kept_its_time(step: &Step<'_>) -> Holds {
    for removal in new_removals(step) {
        let Authority::Trash(id) = removal.authority() else { continue };
        let lapsed = step
            .before
            .trash
            .id(id.0)
            .is_some_and(|t| t.restorable_until.is_some_and(|until| until <= step.after.now));
        let says = "trash was purged within its retention";
        demand(lapsed, says, [removal.row_key()])?;
    }
    Ok(())
}

/// P-38, W-40: what Freehold did not make is kept, and nothing is ever tried on it.
pub(super) fn unmanaged_is_kept(view: &View) -> Holds {
    for resource in view.resources.iter() {
        if resource.kind != ResourceKind::Worktree || resource.managed {
            continue;
        }
        let kept = match resource.result {
            ResourceResult::Kept
            | ResourceResult::Preserved
            | ResourceResult::Transferred
            | ResourceResult::Forgotten => true,
            ResourceResult::Waiting
            | ResourceResult::Removing
            | ResourceResult::Removed
            | ResourceResult::Absent
            | ResourceResult::Failed => false,
        };
        demand(kept, "a job is after what Freehold did not make", [resource.row_key()])?;
    }
    Ok(())
}

/// P-39, D-18: claims of a root and removals in it are those of its host's instances.
pub(super) fn own_host_only(step: &Step<'_>) -> Holds {
    let serves = |instance: InstanceId, root: RootId| {
        let host = step.after.instances.id(instance.0).map(|i| i.host);
        host.is_some() && host == step.after.managed_roots.id(root.0).map(|r| r.host)
    };
    for part in step.after.job_roots.iter() {
        let was = step.before.job_roots.id(part.id.0).and_then(|p| p.claimed_by);
        if let (Some(instance), Some(root)) = (part.claimed_by, part.root_id)
            && was != part.claimed_by
        {
            let at = [part.row_key()];
            demand(serves(instance, root), "a root was claimed by another host", at)?;
        }
    }
    for removal in step.after.removals.iter() {
        let was = step.before.removals.id(removal.id.0).map(|r| r.instance_id);
        if was != Some(removal.instance_id) {
            let ok = serves(removal.instance_id, removal.root_id);
            demand(ok, "another host removes in this root", [removal.row_key()])?;
        }
    }
    Ok(())
}

/// The removals that this step permitted.
fn new_removals<'a>(step: &Step<'a>) -> impl Iterator<Item = &'a Removal> {
    let before = step.before;
    step.after.removals.iter().filter(move |r| before.removals.id(r.id.0).is_none())
}

/// P-4, C-6, T-5: a worktree goes after the runtimes and the makers of its job, and never under
/// a runtime that may stand in it.
pub(super) fn nobody_stands_in_it(step: &Step<'_>) -> Holds {
    for removal in new_removals(step) {
        let Authority::Job(id) = removal.authority() else { continue };
        let first = step.before.resources.iter().find(|r| {
            let open = match r.kind {
                ResourceKind::Runtime | ResourceKind::Container | ResourceKind::Sandbox => {
                    handle_may_live(step.before, r)
                }
                ResourceKind::Attempt => unsettled(r.result),
                ResourceKind::Worktree => false,
            };
            r.job_id == id && open
        });
        if let Some(first) = first {
            let rows = [removal.row_key(), first.row_key()];
            let says = "a permission to remove before what comes first in the job";
            return Err(witness(says, rows).with(first.kind.code()));
        }
        // A reset's old worktree is nobody's any more; who runs in the environment runs elsewhere.
        let row = removal.repo_id.and_then(|r| step.before.repos.id(r.0));
        let Some(row) = row.filter(|r| r.status != RepoStatus::Deleted) else { continue };
        let runs = step
            .before
            .runtimes
            .iter()
            .find(|r| may_live(r) && r.task_environment_id == Some(row.task_environment_id));
        if let Some(runtime) = runs {
            let rows = [removal.row_key(), runtime.row_key()];
            return Err(witness("a permission to remove what a runtime may stand in", rows));
        }
    }
    Ok(())
}

/// P-6, T-12: while an operation holds the barrier, no job but its own gets a permission.
pub(super) fn no_permission_under_anothers_barrier(step: &Step<'_>) -> Holds {
    for removal in new_removals(step) {
        let Authority::Job(id) = removal.authority() else { continue };
        let Some(job) = step.before.jobs.id(id.0) else { continue };
        if let Some(other) = barred(step.before, job.task_id).filter(|b| b.id != id) {
            let rows = [other.row_key(), removal.row_key()];
            return Err(witness("a permission under another operation's barrier", rows));
        }
    }
    Ok(())
}

/// P-11, W-31: nothing is permitted against what was seen.
pub(super) fn permitted_by_what_was_seen(step: &Step<'_>) -> Holds {
    let (Command::Cleanup(CleanupCommand::Permit { evidence, .. })
    | Command::Attempt(AttemptCommand::Compensate { evidence, .. })) = step.command.command
    else {
        return Ok(());
    };
    for removal in new_removals(step) {
        let at = [removal.row_key()];
        let ours = evidence.found != Found::Mismatch;
        demand(ours, "a permission to remove something else", at)?;
        let free = evidence.obstacle == Reason::None;
        let w = witness("a permission against an obstacle", at);
        if !free {
            return Err(w.with(evidence.obstacle.code()));
        }
    }
    Ok(())
}

/// P-12, C-3: jobs of one task run one at a time.
pub(super) fn one_job_of_a_task_runs(view: &View) -> Holds {
    let running = || view.jobs.iter().filter(|j| j.state == JobState::Running);
    for job in running() {
        if let Some(twin) = running().find(|o| o.id > job.id && o.task_id == job.task_id) {
            let rows = [job.row_key(), twin.row_key()];
            return Err(witness("two jobs of one task at work", rows));
        }
    }
    Ok(())
}

/// P-13, C-8, C-13: a settled resource keeps its result; a failed one waits again by a person's
/// word only.
pub(super) fn settled_stays_settled(step: &Step<'_>) -> Holds {
    for resource in step.before.resources.iter().filter(|r| !unsettled(r.result)) {
        let Some(now) = step.after.resources.id(resource.id.0) else { continue };
        let by_hand = resource.result == ResourceResult::Failed
            && match step.command.command {
                Command::Operator(
                    OperatorCommand::Retry { .. } | OperatorCommand::ForgetResource { .. },
                )
                | Command::Operation(OperationCommand::Reserve { .. }) => true,
                // W-36, C-18: a removal that somebody finished has its say in the end.
                Command::Cleanup(
                    CleanupCommand::RecordStep { .. }
                    | CleanupCommand::RecordFailure { .. }
                    | CleanupCommand::TakeOverRemoval { .. },
                ) => now.result != ResourceResult::Waiting,
                Command::Operator(_)
                | Command::Operation(_)
                | Command::Cleanup(_)
                | Command::Session(_)
                | Command::Turn(_)
                | Command::Task(_)
                | Command::Attempt(_)
                | Command::System(_) => false,
            };
        let ok = now.result == resource.result || by_hand;
        demand(ok, "a settled resource changed", [resource.row_key()])?;
    }
    Ok(())
}

/// P-13, T-12: a failed job of an earlier archive is not retried once a deletion took the task on.
pub(super) fn no_retry_after_a_takeover(step: &Step<'_>) -> Holds {
    for job in step.before.jobs.iter().filter(|j| j.state == JobState::Failed) {
        let again = step.after.jobs.id(job.id.0).is_some_and(|j| unfinished(j.state));
        let heir =
            step.before.jobs.iter().find(|j| {
                j.task_id == job.task_id && delete_like(j.trigger) && j.mutated_at.is_some()
            });
        if again
            && archive_like(job.trigger)
            && let Some(heir) = heir
        {
            let rows = [job.row_key(), heir.row_key()];
            return Err(witness("a job was retried after a deletion took over", rows));
        }
    }
    Ok(())
}

/// C-10: the trigger or the form of the snapshot is none that this build knows.
fn unreadable(job: &Job) -> bool {
    job.trigger == Trigger::Unreadable || job.snapshot_version > 1
}

/// P-28, C-10: what cannot be read is parked, and nothing else happens to it.
pub(super) fn unreadable_is_left_alone(step: &Step<'_>) -> Holds {
    let forgotten =
        matches!(step.command.command, Command::Operator(OperatorCommand::ForgetResource { .. }));
    for job in step.before.jobs.iter().filter(|j| unreadable(j) && !forgotten) {
        for part in step.before.job_roots.iter().filter(|p| p.job_id == job.id) {
            let state = step.after.job_roots.id(part.id.0).map(|p| p.state);
            let ok = state == Some(part.state) || state == Some(JobState::Failed);
            demand(ok, "a job that cannot be read was worked on", [job.row_key(), part.row_key()])?;
        }
        for resource in step.before.resources.iter().filter(|r| r.job_id == job.id) {
            let ok = step.after.resources.id(resource.id.0) == Some(resource);
            let rows = [job.row_key(), resource.row_key()];
            demand(ok, "something of a job that cannot be read was changed", rows)?;
        }
    }
    Ok(())
}

/// P-29, W-34: a removal goes on only with what it found unsaved in the salvage, or discarded
/// with consent.
pub(super) fn salvaged_before_it_goes_on(view: &View) -> Holds {
    for removal in view.removals.iter().filter(|r| r.authority != AuthorityKind::Trash) {
        let goes_on = match removal.last_step {
            RemovalStep::Permitted | RemovalStep::Returned => false,
            RemovalStep::Salvaged
            | RemovalStep::Renamed
            | RemovalStep::Compared
            | RemovalStep::Unregistered
            | RemovalStep::BranchSettled
            | RemovalStep::Purged => true,
        };
        let consent = match removal.authority() {
            Authority::Job(id) => view
                .jobs
                .id(id.0)
                .filter(|j| j.policy == UnsavedPolicy::Discard)
                .map_or(Unsaved::NONE, |j| j.consent),
            Authority::Attempt(_) | Authority::Trash(_) => Unsaved::NONE,
        };
        let kept = view
            .salvage
            .iter()
            .filter(|s| s.removal_id == removal.id)
            .fold(consent, |all, s| all.with(s.contents));
        let ok = !goes_on || kept.covers(removal.unsaved);
        demand(ok, "a removal went on before its salvage", [removal.row_key()])?;
    }
    Ok(())
}

/// P-29, W-34: what was salvaged is put back only into a worktree of its repository that is there.
pub(super) fn restored_where_it_belongs(step: &Step<'_>) -> Holds {
    let Command::Operator(OperatorCommand::AdmitRestore { salvage, repo }) = step.command.command
    else {
        return Ok(());
    };
    if !step.accepted {
        return Ok(());
    }
    let Some(entry) = step.before.salvage.id(salvage.0) else {
        return Err(witness("a restore of nothing", []));
    };
    let fits = step.before.repos.id(repo.0).is_some_and(|r| {
        r.status != RepoStatus::Deleted
            && r.materialised == Materialised::Yes
            && r.repository_id == entry.repository_id
    });
    let there = entry.state != SalvageState::Expired;
    let rows = [entry.row_key(), RowKey::repo(repo)];
    demand(fits && there, "a restore into what is not there, or not of its repository", rows)
}
