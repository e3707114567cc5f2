//! The liveness properties as goals: worlds in which nothing is left to converge.

use super::words::*;
use super::{Holds, demand};
use crate::rows::*;

/// P-40.
pub(super) fn cleanup_converges(view: &View) -> Holds {
    for job in view.jobs.iter() {
        demand(!unfinished(job.state), "a job goes on", [job.row_key()])?;
    }
    Ok(())
}

/// P-41.
pub(super) fn barrier_lifts(view: &View) -> Holds {
    for job in view.jobs.iter() {
        demand(job.state != JobState::Prepared, "a barrier is held", [job.row_key()])?;
    }
    for workspace in view.workspaces.iter() {
        let active = workspace.state == WorkspaceState::Active;
        demand(active, "a workspace is being deleted", [workspace.row_key()])?;
    }
    Ok(())
}

/// P-42.
pub(super) fn attempts_resolve(view: &View) -> Holds {
    for attempt in view.attempts.iter() {
        demand(!unresolved(attempt), "an attempt is unresolved", [attempt.row_key()])?;
    }
    Ok(())
}

/// P-43.
pub(super) fn closing_resolves(view: &View) -> Holds {
    for session in view.sessions.iter() {
        let closing = session.lifecycle == SessionLifecycle::Closing;
        demand(!closing, "a session is closing", [session.row_key()])?;
    }
    Ok(())
}

/// P-44.
pub(super) fn queue_drains(view: &View) -> Holds {
    for input in view.inputs.iter() {
        demand(input.state != InputState::Queued, "an input waits", [input.row_key()])?;
    }
    Ok(())
}

/// P-46.
pub(super) fn removals_settle(view: &View) -> Holds {
    for removal in view.removals.iter() {
        demand(removal.outcome.is_some(), "a removal has no outcome", [removal.row_key()])?;
    }
    for trash in view.trash.iter() {
        // C-15: with its removal it was forgotten; it stays listed.
        let forgotten = view
            .removals
            .id(trash.removal_id.0)
            .is_some_and(|r| r.outcome == Some(RemovalOutcome::Forgotten));
        let resting =
            trash.state == TrashState::Kept || trash.state == TrashState::Gone || forgotten;
        demand(resting, "trash is neither kept nor gone", [trash.row_key()])?;
    }
    Ok(())
}
