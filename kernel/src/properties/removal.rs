//! P-9, P-11, P-12: who may remove, and one at a time.

use super::words::*;
use super::{Disk, Holds, Place, Step, demand, witness};
use crate::command::*;
use crate::rows::*;

/// P-9: a compensation's warrant is for what its attempt made, and for nothing else.
pub(super) fn compensation_names_its_own(step: &Step<'_>) -> Holds {
    let Some(granted) = step.granted else { return Ok(()) };
    let Authority::Attempt(id) = granted.authority else { return Ok(()) };
    let Some(attempt) = step.after.attempts.id(id.0) else {
        return Err(witness("a compensation without its attempt", []));
    };
    let at = [attempt.row_key()];
    let state = attempt.state == AttemptState::Compensating;
    demand(state, "a compensation of an attempt that is not to be undone", at)?;
    let place = granted.path == attempt.path
        && granted.root == attempt.root_id
        && granted.identity == Some(attempt.worktree_id);
    demand(place, "a compensation of another place", at)?;
    let branch = !granted.delete_branch || !attempt.branch_existed;
    demand(branch, "a compensation of a branch that was there before", at)
}

/// P-9, P-11 on the disk: whatever left its place has a removal row that was for it.
pub(super) fn permitted_removal(view: &View, disk: &Disk) -> Holds {
    for worktree in disk.worktrees.iter().filter(|w| w.place != Place::AtHome) {
        let Some(removal) = worktree.moved_by.and_then(|r| view.removals.id(r.0)) else {
            return Err(witness("something was removed without a removal row", []));
        };
        let at = [removal.row_key()];
        let same = removal.identity == Some(worktree.identity) && removal.path == worktree.path;
        demand(same, "a removal row was used for something else", at)?;
        let returned = removal.outcome == Some(RemovalOutcome::Returned);
        demand(!returned, "a removal says returned, and the worktree is not there", at)?;
    }
    for removal in view.removals.iter() {
        let gone = removal.outcome == Some(RemovalOutcome::Removed)
            || removal.outcome == Some(RemovalOutcome::Absent);
        let Some(worktree) = removal.identity.and_then(|w| disk.find(w)) else { continue };
        // A later removal may be about it again; the last one counts.
        let last = worktree.moved_by == Some(removal.id);
        let ok = !gone || !last || worktree.place == Place::Gone;
        demand(ok, "a removal says gone, and the worktree is not (W-36)", [removal.row_key()])?;
        let there = worktree.place == Place::AtHome && worktree.moved_by.is_none();
        let ok = !gone || !there;
        demand(ok, "a removal says gone, and the worktree never moved", [removal.row_key()])?;
    }
    Ok(())
}

/// P-9 on the disk: under an attempt's right only what it made goes.
pub(super) fn compensate_only_own(view: &View, disk: &Disk) -> Holds {
    for worktree in disk.worktrees.iter() {
        let Some(removal) = worktree.moved_by.and_then(|r| view.removals.id(r.0)) else { continue };
        if let Authority::Attempt(id) = removal.authority() {
            let own = worktree.made_by == Some(id);
            demand(
                own,
                "a compensation removed what its attempt did not make",
                [removal.row_key()],
            )?;
        }
    }
    Ok(())
}

/// P-11: a removal row is settled by its current token, or by a person who forgets it, and keeps
/// its outcome; what is granted is what its row says.
pub(super) fn settled_by_its_token(step: &Step<'_>) -> Holds {
    let token = match step.command.command {
        Command::Cleanup(
            CleanupCommand::RecordStep { token, .. }
            | CleanupCommand::RecordFailure { token, .. }
            | CleanupCommand::RenewRemoval { token, .. },
        ) => Some(token),
        Command::Cleanup(CleanupCommand::TakeOverRemoval { old_token, .. }) => Some(old_token),
        Command::Cleanup(_)
        | Command::Session(_)
        | Command::Turn(_)
        | Command::Task(_)
        | Command::Operation(_)
        | Command::Attempt(_)
        | Command::Operator(_)
        | Command::System(_) => None,
    };
    let forget =
        matches!(step.command.command, Command::Operator(OperatorCommand::ForgetResource { .. }));
    for removal in step.before.removals.iter() {
        let at = [removal.row_key()];
        let Some(now) = step.after.removals.id(removal.id.0) else {
            return Err(witness("a removal row vanished", at));
        };
        let proven = token == Some(removal.token) || forget;
        demand(now == removal || proven, "a removal changed without its token", at)?;
        let kept = removal.outcome.is_none() || now == removal;
        demand(kept, "a settled removal changed", at)?;
        let right =
            removal.last_step == now.last_step || in_order(removal.last_step, now.last_step);
        demand(right, "a step was skipped (W-35)", at)?;
    }
    if let Some(granted) = step.granted {
        let row = step.after.removals.id(granted.removal.0);
        let fits = row.is_some_and(|r| {
            r.outcome.is_none()
                && r.token == granted.token
                && r.path == granted.path
                && r.root_id == granted.root
                && r.identity == granted.identity
                && in_order(r.last_step, granted.step)
        });
        demand(fits, "a warrant that its removal row does not back", [])?;
        let lease = row.is_some_and(|r| r.lease_until > step.after.now);
        demand(lease, "a warrant under a lapsed lease", [])?;
    }
    Ok(())
}

/// W-35: the steps one by one; back only while the registration is in place.
fn in_order(last: RemovalStep, next: RemovalStep) -> bool {
    match next {
        RemovalStep::Permitted => false,
        RemovalStep::Salvaged => last == RemovalStep::Permitted,
        RemovalStep::Renamed => last == RemovalStep::Salvaged,
        RemovalStep::Compared => last == RemovalStep::Renamed,
        RemovalStep::Unregistered => last == RemovalStep::Compared,
        RemovalStep::BranchSettled => last == RemovalStep::Unregistered,
        RemovalStep::Purged => last == RemovalStep::BranchSettled,
        RemovalStep::Returned => match last {
            RemovalStep::Permitted
            | RemovalStep::Salvaged
            | RemovalStep::Renamed
            | RemovalStep::Compared => true,
            RemovalStep::Unregistered
            | RemovalStep::BranchSettled
            | RemovalStep::Purged
            | RemovalStep::Returned => false,
        },
    }
}

/// P-12 by the rows: one unsettled removal, or one maker, on one path.
pub(super) fn one_executor(view: &View) -> Holds {
    // What lies in the trash has left its path: a purge is on its trash row alone.
    let purges = || {
        view.removals.iter().filter(|r| r.outcome.is_none() && r.authority == AuthorityKind::Trash)
    };
    for removal in purges() {
        let twin = purges().find(|o| o.id > removal.id && o.authority_id == removal.authority_id);
        if let Some(twin) = twin {
            let rows = [removal.row_key(), twin.row_key()];
            return Err(witness("two purges of one trash row", rows));
        }
    }
    let unsettled = || {
        view.removals.iter().filter(|r| r.outcome.is_none() && r.authority != AuthorityKind::Trash)
    };
    for removal in unsettled() {
        let twin = unsettled()
            .find(|o| o.id > removal.id && o.path == removal.path && o.root_id == removal.root_id);
        if let Some(twin) = twin {
            let rows = [removal.row_key(), twin.row_key()];
            return Err(witness("two removals on one path", rows));
        }
    }
    for attempt in view.attempts.iter().filter(|a| unresolved(a)) {
        let own = Authority::Attempt(attempt.id);
        let place = |path, root| path == attempt.path && root == attempt.root_id;
        let other = unsettled().find(|r| place(r.path, r.root_id) && r.authority() != own);
        if let Some(removal) = other {
            let rows = [attempt.row_key(), removal.row_key()];
            return Err(witness("a maker and a removal on one path", rows));
        }
        let maker = view
            .attempts
            .iter()
            .find(|o| o.id > attempt.id && unresolved(o) && place(o.path, o.root_id));
        if let Some(maker) = maker {
            return Err(witness("two makers on one path", [attempt.row_key(), maker.row_key()]));
        }
    }
    Ok(())
}

/// P-12 on the disk: no two hands on one path.
pub(super) fn one_hand(_: &View, disk: &Disk) -> Holds {
    for (i, hand) in disk.hands.iter().enumerate() {
        let other =
            disk.hands.iter().skip(i + 1).any(|o| o.path == hand.path && o.root == hand.root);
        demand(!other, "two executors at work on one path", [])?;
    }
    Ok(())
}

/// P-12: a takeover robs no living executor.
pub(super) fn takeover_after_the_lease(step: &Step<'_>) -> Holds {
    for removal in step.before.removals.iter() {
        let Some(now) = step.after.removals.id(removal.id.0) else { continue };
        let other = now.instance_id != removal.instance_id;
        let lapsed = removal.lease_until <= step.after.now;
        demand(
            !other || lapsed,
            "a removal was taken from a living executor",
            [removal.row_key()],
        )?;
    }
    for attempt in step.before.attempts.iter() {
        let Some(now) = step.after.attempts.id(attempt.id.0) else { continue };
        let other = now.instance_id != attempt.instance_id;
        let lapsed = attempt.lease_until <= step.after.now;
        demand(!other || lapsed, "an attempt was taken from a living maker", [attempt.row_key()])?;
    }
    for part in step.before.job_roots.iter() {
        let Some(now) = step.after.job_roots.id(part.id.0) else { continue };
        let held = part.state == JobState::Running && now.state == JobState::Running;
        let same = now.token == part.token && now.claimed_by == part.claimed_by;
        demand(!held || same, "a claim was taken over without an end", [part.row_key()])?;
    }
    Ok(())
}
