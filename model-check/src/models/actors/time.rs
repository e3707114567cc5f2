//! Time: leases lapse. Past a holder who died it goes by freely, past one who lives only as often
//! as the system allows somebody to be slow.

use freehold_kernel::{AttemptState, JobState, SessionLifecycle, TurnPhase};

use crate::models::names::said;
use crate::system::{Actor, Fault, Steps};
use crate::world::{LAPSED, NOW, World};

/// Lets leases lapse.
#[derive(Clone, Copy, Debug)]
pub struct Clock;

impl Clock {
    fn lapse(
        world: &World,
        what: &str,
        of: u128,
        proof: u128,
        steps: &mut Steps<'_, ()>,
        set: impl FnOnce(&mut World),
    ) {
        let says = format_args!("passes: the lease of {what} {} lapses", said(of));
        steps.costing_if(world.holds(proof), Fault::Slow).outside(says, |w| {
            set(w);
            w.view.commit();
            Some(())
        });
    }
}

impl Actor for Clock {
    type Local = ();

    fn name(&self) -> String {
        "time".to_owned()
    }

    fn begin(&self) {}

    fn act(&self, (): (), world: &World, steps: &mut Steps<'_, ()>) {
        let view = &world.view;
        for job in view.jobs.iter() {
            let held = job.lease_until.is_some_and(|l| l > NOW);
            if job.state == JobState::Prepared && held {
                let (id, of) = (job.id.0, job.task_id.0);
                Clock::lapse(world, "the barrier of", of, job.operation_id.0, steps, |w| {
                    if let Some(job) = w.view.jobs.edit(id) {
                        job.lease_until = Some(LAPSED);
                    }
                });
            }
        }
        for part in view.job_roots.iter() {
            let Some(token) = part.token else { continue };
            let held = part.lease_until.is_some_and(|l| l > NOW);
            if part.state == JobState::Running && held {
                let id = part.id.0;
                Clock::lapse(world, "the claim of", part.job_id.0, token.0, steps, |w| {
                    if let Some(part) = w.view.job_roots.edit(id) {
                        part.lease_until = Some(LAPSED);
                    }
                });
            }
        }
        for attempt in view.attempts.iter() {
            let open = match attempt.state {
                AttemptState::Intended
                | AttemptState::Materialised
                | AttemptState::Compensating => true,
                AttemptState::Owned | AttemptState::Compensated => false,
            };
            if open && attempt.lease_until > NOW {
                let id = attempt.id.0;
                Clock::lapse(world, "", id, attempt.token.0, steps, |w| {
                    if let Some(attempt) = w.view.attempts.edit(id) {
                        attempt.lease_until = LAPSED;
                    }
                });
            }
        }
        for removal in view.removals.iter() {
            if removal.is_unsettled() && removal.lease_until > NOW {
                let (id, token) = (removal.id.0, removal.token.0);
                Clock::lapse(world, "the removal of", removal.path.0, token, steps, |w| {
                    if let Some(removal) = w.view.removals.edit(id) {
                        removal.lease_until = LAPSED;
                    }
                });
            }
        }
        Self::sessions(world, steps);
    }
}

impl Clock {
    fn sessions(world: &World, steps: &mut Steps<'_, ()>) {
        let view = &world.view;
        for session in view.sessions.iter() {
            let Some(token) = session.closing_token else { continue };
            let held = session.closing_lease.is_some_and(|l| l > NOW);
            if session.lifecycle == SessionLifecycle::Closing && held {
                let id = session.id.0;
                Clock::lapse(world, "the close of", id, token.0, steps, |w| {
                    if let Some(session) = w.view.sessions.edit(id) {
                        session.closing_lease = Some(LAPSED);
                    }
                });
            }
        }
        for turn in view.turns.iter() {
            if turn.phase != TurnPhase::Ended && turn.lease_until > NOW {
                let id = turn.id.0;
                Clock::lapse(world, "", id, id, steps, |w| {
                    if let Some(turn) = w.view.turns.edit(id) {
                        turn.lease_until = LAPSED;
                    }
                });
            }
        }
        for task in view.tasks.iter() {
            if task.expires_at.is_some_and(|at| at > NOW) {
                let id = task.id.0;
                // The term of a quick chat (T-8) is nobody's lease.
                steps.outside(format_args!("passes: the term of {} ends", said(id)), |w| {
                    if let Some(task) = w.view.tasks.edit(id) {
                        task.expires_at = Some(LAPSED);
                    }
                    w.view.commit();
                    Some(())
                });
            }
        }
        for workspace in view.workspaces.iter() {
            let Some(operation) = workspace.deleting_operation else { continue };
            if workspace.deleting_lease.is_some_and(|l| l > NOW) {
                let id = workspace.id.0;
                Clock::lapse(world, "the deletion of", id, operation.0, steps, |w| {
                    if let Some(workspace) = w.view.workspaces.edit(id) {
                        workspace.deleting_lease = Some(LAPSED);
                    }
                });
            }
        }
    }
}
