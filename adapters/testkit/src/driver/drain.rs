//! Fairness: after a sequence everybody does what is due, nothing fails any more, and the liveness
//! goals are reached in bounded time.

use freehold_kernel::properties::PROPERTIES;
use freehold_kernel::*;

use super::backend::Backend;
use super::op::Draw;
use super::{Driver, HOSTS, Ran};

/// Rounds of half a day in which everything must be at rest.
const ROUNDS: u32 = 24;

impl<B: Backend> Driver<B> {
    /// All processes die, fresh ones do everything that is due; the goals are reached.
    pub fn drain(&mut self) -> Ran {
        self.log.push("drain: every process dies, fresh ones take over".to_owned());
        self.workers.clear();
        self.disk.hands.clear();
        self.instances.clear();
        for host in HOSTS {
            self.new_instance(host)?;
        }
        for _ in 0..ROUNDS {
            self.pass(Span::hours(13))?;
            self.recover_everything()?;
            self.settle_removals()?;
            self.settle_attempts()?;
            self.work_everything()?;
            self.empty_queues()?;
            self.purge_everything()?;
            if PROPERTIES.iter().all(|p| p.goal(&self.world).is_ok()) {
                return Ok(());
            }
        }
        for property in PROPERTIES {
            if let Err(witness) = property.goal(&self.world) {
                self.found(property, witness)?;
            }
        }
        Ok(())
    }

    fn recover_everything(&mut self) -> Ran {
        let world = self.world.clone();
        for workspace in world.workspaces.iter().filter(|w| w.state == WorkspaceState::Deleting) {
            let workspace = workspace.id;
            self.send(Command::System(SystemCommand::RecoverWorkspaceDelete { workspace }))?;
        }
        for job in world.jobs.iter().filter(|j| j.state == JobState::Prepared) {
            self.send(Command::System(SystemCommand::RecoverBarrier { job: job.id }))?;
        }
        for session in world.sessions.iter().filter(|s| s.lifecycle == SessionLifecycle::Closing) {
            let session = session.id;
            self.send(Command::System(SystemCommand::RecoverClosing { session }))?;
        }
        for turn in world.turns.iter().filter(|t| t.phase != TurnPhase::Ended) {
            let liveness = Liveness::Dead;
            self.send(Command::System(SystemCommand::RecoverTurn { turn: turn.id, liveness }))?;
        }
        self.stop_runtimes(|_| true)?;
        for part in world.job_roots.iter().filter(|p| p.state == JobState::Running) {
            let token = part.token.unwrap_or(Token(0));
            self.send(Command::Cleanup(CleanupCommand::Rescue { job_root: part.id, token }))?;
        }
        Ok(())
    }

    fn settle_removals(&mut self) -> Ran {
        let unsettled: Vec<Removal> =
            self.world.removals.iter().filter(|r| r.outcome.is_none()).copied().collect();
        for removal in unsettled {
            self.take_over(&mut Draw(0), &removal)?;
        }
        Ok(())
    }

    fn settle_attempts(&mut self) -> Ran {
        let unresolved: Vec<Attempt> = self
            .world
            .attempts
            .iter()
            .filter(|a| !matches!(a.state, AttemptState::Owned | AttemptState::Compensated))
            .copied()
            .collect();
        for attempt in unresolved {
            let host = self.world.managed_roots.id(attempt.root_id.0).map(|r| r.host);
            let instance = self.instances.iter().find(|(_, h)| Some(*h) == host).map(|(i, _)| *i);
            self.resolve(&mut Draw(0), &attempt, instance.unwrap_or(InstanceId(0)))?;
        }
        Ok(())
    }

    fn work_everything(&mut self) -> Ran {
        let parts: Vec<JobRoot> = self
            .world
            .job_roots
            .iter()
            .filter(|p| matches!(p.state, JobState::Pending | JobState::RetryWait))
            .copied()
            .collect();
        for part in parts {
            self.work_one(&part)?;
        }
        Ok(())
    }

    /// P-44: the host goes on with a session whose queue waits.
    fn empty_queues(&mut self) -> Ran {
        for _ in 0..64 {
            let waiting: Vec<SessionId> = self
                .world
                .inputs
                .iter()
                .filter(|i| i.state == InputState::Queued)
                .filter_map(|i| i.session_id)
                .collect();
            let Some(session) = waiting.first().copied() else { return Ok(()) };
            let instance = self.instances.first().map_or(InstanceId(0), |(i, _)| *i);
            let take_up = TurnCommand::TakeUp {
                session,
                turn: TurnId(self.fresh()),
                runtime: RuntimeId(self.fresh()),
                runtime_kind: RuntimeKind::Local,
                instance,
            };
            if self.send(Command::Turn(take_up))?.verdict.is_err() {
                return Ok(());
            }
            for _ in 0..64 {
                let open = self
                    .world
                    .turns
                    .iter()
                    .find(|t| t.session_id == session && t.phase != TurnPhase::Ended);
                let Some(turn) = open.map(|t| t.id) else { break };
                let end = TurnCommand::End {
                    turn,
                    outcome: TurnOutcome::Completed,
                    next_turn: TurnId(self.fresh()),
                    next_runtime: RuntimeId(self.fresh()),
                };
                self.send(Command::Turn(end))?;
            }
            self.stop_runtimes(|r| r.session_id == session)?;
        }
        Ok(())
    }

    fn purge_everything(&mut self) -> Ran {
        let now = self.world.now;
        let lapsed: Vec<Trash> = self
            .world
            .trash
            .iter()
            .filter(|t| t.state == TrashState::Kept && t.restorable_until.is_some_and(|u| u <= now))
            .copied()
            .collect();
        for trash in lapsed {
            self.purge_one(&mut Draw(0), &trash)?;
        }
        let settings = self.world.settings.id(1).copied().unwrap_or(Settings::DEFAULT);
        let over: Vec<SalvageId> = self
            .world
            .salvage
            .iter()
            .filter(|s| s.state != SalvageState::Expired)
            .filter(|s| settings.salvage_expires(s.made_at).is_some_and(|until| until <= now))
            .map(|s| s.id)
            .collect();
        for salvage in over {
            self.send(Command::Cleanup(CleanupCommand::ExpireSalvage { salvage }))?;
        }
        Ok(())
    }
}
