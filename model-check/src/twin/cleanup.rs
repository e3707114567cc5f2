//! The worker, the executor and recovery: claims, permissions, steps on disk and their records.

use freehold_kernel::*;

use super::Twin;
use super::act::{Action, Outcome, outside};
use super::bits::{Vars, unsettled};
use super::rows::*;

impl Twin {
    /// The tries that a part has behind it; none if it is not there.
    fn tries(&self, v: &Vars, index: u8) -> Option<(JobState, u32)> {
        let world = decode(&self.beginning, v);
        world.view.job_roots.id(part_id(index).0).map(|p| (p.state, p.tries))
    }

    pub(super) fn worker(&self, v: &Vars, action: Action) -> Outcome {
        // The worker is its own executor while it has a warrant.
        let busy = v.executor != 0 && v.remover < 2;
        let index = u8::from(matches!(
            action,
            Action::Claim1 | Action::Finish1 | Action::PutBack | Action::Settle
        ));
        let Some((_, tries)) = self.tries(v, index) else { return Ok(None) };
        let job_root = part_id(index);
        // The token of the claim: while the part runs, the worker's own; else any is refused.
        let token = claim_token(index, tries);
        let mine = v.worker == index + 1 && !busy;
        let waiting = match resource_kind(v.resource) {
            Some((true, ResourceResult::Waiting, reason)) => Some(reason),
            Some(_) | None => None,
        };
        let command = match action {
            Action::Claim0 | Action::Claim1 if v.worker == 0 => {
                let token = claim_token(index, tries + 1);
                CleanupCommand::Claim { job_root, token, instance: WORKER }
            }
            Action::Finish0 | Action::Finish1 if mine => CleanupCommand::Finish { job_root, token },
            // C-6: put back while a maker lives, once the worker was told so.
            Action::PutBack
                if mine
                    && waiting == Some(Reason::MakerAlive)
                    && matches!(v.attempt, 1 | 2 | 4) =>
            {
                CleanupCommand::PutBack { job_root, token, not_before: None }
            }
            Action::Settle if mine && waiting.is_some() => CleanupCommand::SettleResource {
                resource: resource_id(true),
                token,
                liveness: Liveness::Unknown,
            },
            _not_now => return Ok(None),
        };
        let said = self.ask(v, Command::Cleanup(command))?;
        said.then(|v, accepted| match action {
            Action::Claim0 | Action::Claim1 if accepted => v.worker = index + 1,
            // Ended, or no longer its own: the worker lets go.
            Action::Finish0 | Action::Finish1 | Action::PutBack => v.worker = 0,
            _as_it_was => {}
        })
    }

    pub(super) fn permit(&self, v: &Vars, in_use: bool) -> Outcome {
        let waits = matches!(resource_kind(v.resource), Some((false, ResourceResult::Waiting, _)));
        let Some((_, tries)) = self.tries(v, 1) else { return Ok(None) };
        if v.worker != 2 || !v.path_free() || !waits {
            return Ok(None);
        }
        let obstacle = if in_use { Reason::InUse } else { Reason::None };
        let command = CleanupCommand::Permit {
            resource: resource_id(false),
            token: claim_token(1, tries),
            removal: REMOVAL,
            removal_token: remover_token(0),
            evidence: Evidence { obstacle, ..evidence(v) },
        };
        self.ask(v, Command::Cleanup(command))?.hold()
    }

    /// The one step of the warrant, on disk.
    pub(super) fn act(&self, v: &Vars) -> Outcome {
        if v.executor != 1 {
            return Ok(None);
        }
        let disk = match (in_hand(v), v.disk) {
            (Some(RemovalStep::Renamed), 1) => 2,
            (Some(RemovalStep::Returned), 2) => 1,
            (Some(RemovalStep::Purged), 1..) => 3,
            (_, as_it_was) => as_it_was,
        };
        outside(Vars { disk, executor: 2, ..*v })
    }

    pub(super) fn record(&self, v: &Vars) -> Outcome {
        let (Some(step), 2) = (in_hand(v), v.executor) else { return Ok(None) };
        let command = CleanupCommand::RecordStep {
            removal: REMOVAL,
            token: remover_token(v.remover),
            step,
            found_something: v.disk != 0,
            salvage: None,
        };
        self.ask(v, Command::Cleanup(command))?.hold()
    }

    pub(super) fn recover(&self, v: &Vars, action: Action) -> Outcome {
        let instance = RECOVERY;
        let command = match action {
            Action::RecoverBarrier if v.job != 0 => {
                Command::System(SystemCommand::RecoverBarrier { job: JOB })
            }
            Action::RecoverAttempt if v.attempt != 0 && v.path_free() => {
                Command::Attempt(AttemptCommand::Recover {
                    attempt: ATTEMPT,
                    token: RECOVERY_TOKEN,
                    instance,
                    evidence: evidence(v),
                })
            }
            // Recovery undoes what it has taken over.
            Action::Compensate if v.attempt != 0 && v.holder == 2 && v.path_free() => {
                let command = AttemptCommand::Compensate {
                    attempt: ATTEMPT,
                    token: RECOVERY_TOKEN,
                    removal: REMOVAL,
                    removal_token: remover_token(2),
                    instance,
                    evidence: evidence(v),
                };
                return self.granted(v, Command::Attempt(command));
            }
            // W-13: the path lock first.
            Action::TakeOver if unsettled(v.removal) && v.path_free() => {
                let command = CleanupCommand::TakeOverRemoval {
                    removal: REMOVAL,
                    old_token: remover_token(v.remover),
                    token: remover_token(if v.remover == 2 { 3 } else { 2 }),
                    instance,
                };
                return self.granted(v, Command::Cleanup(command));
            }
            Action::Rescue0 | Action::Rescue1 => {
                let index = u8::from(action == Action::Rescue1);
                match self.tries(v, index) {
                    Some((JobState::Running, tries)) => Command::Cleanup(CleanupCommand::Rescue {
                        job_root: part_id(index),
                        token: claim_token(index, tries),
                    }),
                    Some(_) | None => return Ok(None),
                }
            }
            _not_now => return Ok(None),
        };
        self.ask(v, command)?.then(|_, _| {})
    }

    /// A command for a warrant; a refusal leaves everything as it was.
    fn granted(&self, v: &Vars, command: Command) -> Outcome {
        let said = self.ask(v, command)?;
        if said.granted.is_some() { said.hold() } else { said.then(|_, _| {}) }
    }
}

/// The step that the warrant in hand permits.
fn in_hand(v: &Vars) -> Option<RemovalStep> {
    if v.back == 1 {
        return Some(RemovalStep::Returned);
    }
    last_step(v.removal).and_then(machine::removal::forward)
}

fn evidence(v: &Vars) -> Evidence {
    let found = match v.disk {
        1 => Found::Here,
        2 => Found::InTrash,
        _nowhere => Found::Missing,
    };
    Evidence { found, unsaved: Unsaved::NONE, obstacle: Reason::None, head: None }
}
