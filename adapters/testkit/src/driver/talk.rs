//! Sessions, turns, inputs, tasks, environments.

use freehold_kernel::*;

use super::backend::Backend;
use super::op::Draw;
use super::{Driver, Ran, Worker};

/// An id that is in use, was deleted, or never was.
const UNKNOWN: u128 = 0xdead;

impl<B: Backend> Driver<B> {
    pub(super) fn any_session(&self, draw: &mut Draw) -> SessionId {
        let all: Vec<SessionId> = self.world.sessions.iter().map(|s| s.id).collect();
        if draw.once_in(24) {
            let gone = self.history.deleted.iter();
            let gone: Vec<u128> =
                gone.filter(|(k, _)| *k == IdentityKind::Session).map(|(_, id)| *id).collect();
            return SessionId(draw.one(&gone).unwrap_or(UNKNOWN));
        }
        draw.one(&all).unwrap_or(SessionId(UNKNOWN))
    }

    pub(super) fn any_task(&self, draw: &mut Draw) -> TaskId {
        let all: Vec<TaskId> = self.world.tasks.iter().map(|t| t.id).collect();
        if draw.once_in(32) {
            return TaskId(UNKNOWN);
        }
        draw.one(&all).unwrap_or(TaskId(UNKNOWN))
    }

    pub(super) fn any_environment(&self, draw: &mut Draw) -> EnvironmentId {
        let all: Vec<EnvironmentId> = self.world.environments.iter().map(|e| e.id).collect();
        draw.one(&all).unwrap_or(EnvironmentId(UNKNOWN))
    }

    pub(super) fn any_instance(&self, draw: &mut Draw) -> InstanceId {
        if draw.once_in(48) {
            return InstanceId(UNKNOWN);
        }
        let living: Vec<InstanceId> = self.instances.iter().map(|(i, _)| *i).collect();
        draw.one(&living).unwrap_or(InstanceId(UNKNOWN))
    }

    /// Sends with a request id now and then, and now and then as somebody who may do less.
    pub(super) fn ask(&mut self, draw: &mut Draw, command: Command) -> Ran<super::Answer> {
        let request = draw.once_in(6).then(|| RequestId(self.fresh()));
        let less = [
            Permissions::NONE,
            Permissions::SESSION,
            Permissions::TASK,
            Permissions::LIFECYCLE,
            Permissions::SYSTEM,
        ];
        let may = if draw.once_in(24) {
            draw.one(&less).unwrap_or(Permissions::NONE)
        } else {
            Permissions::ALL
        };
        self.send_as(command, may, request)
    }

    pub(super) fn create_session(&mut self, mut draw: Draw) -> Ran {
        let task = self.any_task(&mut draw);
        let environment = match draw.below(4) {
            0 | 1 => None,
            _ => Some(self.any_environment(&mut draw)),
        };
        let session =
            if draw.once_in(8) { self.any_session(&mut draw) } else { SessionId(self.fresh()) };
        let source = SessionSource::Person;
        let create = SessionCommand::Create { session, task, environment, source, parent: None };
        self.ask(&mut draw, Command::Session(create)).map(|_| ())
    }

    pub(super) fn submit_input(&mut self, mut draw: Draw) -> Ran {
        let session = self.any_session(&mut draw);
        let instance = self.any_instance(&mut draw);
        let inputs: Vec<InputId> = self.world.inputs.iter().map(|i| i.id).collect();
        let input = if draw.once_in(16) {
            draw.one(&inputs).unwrap_or(InputId(UNKNOWN))
        } else {
            InputId(self.fresh())
        };
        let submit = TurnCommand::Submit {
            session,
            input,
            origin: if draw.once_in(4) { Origin::Hook } else { Origin::Person },
            turn: TurnId(self.fresh()),
            runtime: RuntimeId(self.fresh()),
            runtime_kind: RuntimeKind::Local,
            instance,
        };
        self.ask(&mut draw, Command::Turn(submit)).map(|_| ())
    }

    pub(super) fn end_turn(&mut self, mut draw: Draw) -> Ran {
        let live = |t: &&Turn| t.phase != TurnPhase::Ended;
        let mut turns: Vec<TurnId> = self.world.turns.iter().filter(live).map(|t| t.id).collect();
        if draw.once_in(8) {
            turns = self.world.turns.iter().map(|t| t.id).collect();
        }
        let Some(turn) = draw.one(&turns) else { return Ok(()) };
        let outcome = draw.one(TurnOutcome::ALL).unwrap_or(TurnOutcome::Completed);
        let end = TurnCommand::End {
            turn,
            outcome,
            next_turn: TurnId(self.fresh()),
            next_runtime: RuntimeId(self.fresh()),
        };
        self.ask(&mut draw, Command::Turn(end)).map(|_| ())
    }

    pub(super) fn turn(&mut self, mut draw: Draw) -> Ran {
        let turns: Vec<Turn> = self.world.turns.iter().copied().collect();
        let runtimes: Vec<RuntimeId> = self.world.runtimes.iter().map(|r| r.id).collect();
        let inputs: Vec<InputId> = self.world.inputs.iter().map(|i| i.id).collect();
        let command = match draw.below(6) {
            0 | 1 => {
                let Some(turn) = draw.one(&turns) else { return Ok(()) };
                let phase = draw.one(&[
                    TurnPhase::Running,
                    TurnPhase::Background,
                    TurnPhase::BetweenLegs,
                    TurnPhase::Draining,
                    TurnPhase::Ended,
                    TurnPhase::WaitingForSlot,
                ]);
                TurnCommand::Advance { turn: turn.id, phase: phase.unwrap_or(TurnPhase::Running) }
            }
            2 => {
                let Some(turn) = draw.one(&turns) else { return Ok(()) };
                let instance =
                    if draw.once_in(4) { self.any_instance(&mut draw) } else { turn.instance_id };
                TurnCommand::Renew { turn: turn.id, instance }
            }
            3 => TurnCommand::TakeUp {
                session: self.any_session(&mut draw),
                turn: TurnId(self.fresh()),
                runtime: RuntimeId(self.fresh()),
                runtime_kind: RuntimeKind::Local,
                instance: self.any_instance(&mut draw),
            },
            4 => {
                let Some(input) = draw.one(&inputs) else { return Ok(()) };
                TurnCommand::CancelInput { input }
            }
            _ => {
                let Some(runtime) = draw.one(&runtimes) else { return Ok(()) };
                let status = draw.one(&[
                    RuntimeStatus::Stopped,
                    RuntimeStatus::Running,
                    RuntimeStatus::Stopping,
                    RuntimeStatus::Starting,
                ]);
                TurnCommand::ReportRuntime {
                    runtime,
                    status: status.unwrap_or(RuntimeStatus::Stopped),
                }
            }
        };
        self.ask(&mut draw, Command::Turn(command)).map(|_| ())
    }

    pub(super) fn begin_close(&mut self, mut draw: Draw) -> Ran {
        let session = self.any_session(&mut draw);
        let kind = draw.one(ClosingKind::ALL).unwrap_or(ClosingKind::Archive);
        let token = Token(self.fresh());
        let automatic = draw.once_in(5);
        let force = draw.once_in(4);
        let begin = SessionCommand::BeginClose { session, kind, token, automatic, force };
        let instance = self.any_instance(&mut draw);
        let answer = self.ask(&mut draw, Command::Session(begin))?;
        if answer.verdict == Ok(Reply::Done) && !answer.replayed {
            self.workers.push((instance, Worker::Closer(session, token)));
            // The host quiesces the runtime, and mostly succeeds.
            if !draw.once_in(4) {
                self.stop_runtimes(|r| r.session_id == session)?;
                // And mostly goes on to the end.
                if !draw.once_in(3) {
                    return self.commit(&mut draw, session, token);
                }
            }
        }
        Ok(())
    }

    /// Reports the stop of runtimes.
    pub(super) fn stop_runtimes(&mut self, which: impl Fn(&Runtime) -> bool) -> Ran {
        let living: Vec<RuntimeId> = self
            .world
            .runtimes
            .iter()
            .filter(|r| r.status != RuntimeStatus::Stopped && which(r))
            .map(|r| r.id)
            .collect();
        for runtime in living {
            let status = RuntimeStatus::Stopped;
            self.send(Command::Turn(TurnCommand::ReportRuntime { runtime, status }))?;
        }
        Ok(())
    }

    fn commit(&mut self, draw: &mut Draw, session: SessionId, token: Token) -> Ran {
        let commit = SessionCommand::CommitClose { session, token };
        self.ask(draw, Command::Session(commit)).map(|_| ())
    }

    pub(super) fn end_close(&mut self, mut draw: Draw) -> Ran {
        let closers: Vec<(SessionId, Token)> = self
            .workers
            .iter()
            .filter_map(|(_, w)| match w {
                Worker::Closer(session, token) => Some((*session, *token)),
                _ => None,
            })
            .collect();
        let Some((session, token)) = draw.one(&closers) else { return Ok(()) };
        let token = if draw.once_in(8) { Token(self.fresh()) } else { token };
        if draw.once_in(4) {
            let abort = SessionCommand::AbortClose { session, token };
            return self.ask(&mut draw, Command::Session(abort)).map(|_| ());
        }
        if !draw.once_in(6) {
            self.stop_runtimes(|r| r.session_id == session)?;
        }
        self.commit(&mut draw, session, token)
    }

    pub(super) fn session(&mut self, mut draw: Draw) -> Ran {
        let session = self.any_session(&mut draw);
        let command = match draw.below(3) {
            0 => {
                let known = self.world.sessions.id(session.0).map_or(1, |s| s.epoch);
                let epoch = if draw.once_in(4) { known.saturating_sub(1) } else { known };
                let activity = draw.one(Activity::ALL).unwrap_or(Activity::Idle);
                SessionCommand::RecordActivity { session, epoch, activity }
            }
            1 => {
                let environment = self.any_environment(&mut draw);
                SessionCommand::Link { session, environment }
            }
            _ => SessionCommand::Star { session, starred: !draw.once_in(3) },
        };
        self.ask(&mut draw, Command::Session(command)).map(|_| ())
    }

    pub(super) fn reopen(&mut self, mut draw: Draw) -> Ran {
        let archived: Vec<SessionId> = self
            .world
            .sessions
            .iter()
            .filter(|s| s.lifecycle == SessionLifecycle::Archived)
            .map(|s| s.id)
            .collect();
        let session = match draw.one(&archived) {
            Some(session) if !draw.once_in(8) => session,
            _ => self.any_session(&mut draw),
        };
        let unarchive = SessionCommand::Unarchive { session };
        self.ask(&mut draw, Command::Session(unarchive)).map(|_| ())
    }

    pub(super) fn create_task(&mut self, mut draw: Draw) -> Ran {
        let workspaces: Vec<WorkspaceId> = self.world.workspaces.iter().map(|w| w.id).collect();
        if workspaces.is_empty() || draw.once_in(12) {
            let workspace = WorkspaceId(if draw.once_in(3) { 0x10 } else { self.fresh() });
            let create = TaskCommand::CreateWorkspace { workspace };
            return self.ask(&mut draw, Command::Task(create)).map(|_| ());
        }
        let workspace = draw.one(&workspaces).unwrap_or(WorkspaceId(UNKNOWN));
        let parent = (!draw.once_in(3)).then(|| self.any_task(&mut draw));
        let chat = draw.once_in(4);
        let now = self.world.now;
        let create = TaskCommand::Create {
            task: if draw.once_in(8) { self.any_task(&mut draw) } else { TaskId(self.fresh()) },
            workspace,
            parent,
            kind: if chat { TaskKind::QuickChat } else { TaskKind::Standard },
            expires_at: chat.then_some(now + Span::seconds(20)),
        };
        self.ask(&mut draw, Command::Task(create)).map(|_| ())
    }

    pub(super) fn environment(&mut self, mut draw: Draw) -> Ran {
        let task = self.any_task(&mut draw);
        let environment = self.any_environment(&mut draw);
        let repos: Vec<RepoId> = self.world.repos.iter().map(|r| r.id).collect();
        let command = match draw.below(6) {
            0 => TaskCommand::CreateEnvironment {
                environment: EnvironmentId(self.fresh()),
                task,
                container: draw.once_in(3).then_some(HandleId(0x42)),
                sandbox: draw.once_in(4).then_some(HandleId(0x43)),
            },
            1 | 2 => TaskCommand::Transfer { environment, to: task },
            3 => {
                let parent = (!draw.once_in(3)).then(|| self.any_task(&mut draw));
                TaskCommand::Move { task, parent }
            }
            4 => TaskCommand::RecordUnmanaged {
                repo: RepoId(self.fresh()),
                environment,
                repository: RepositoryId(0x81),
                slug: Slug(0x91 + draw.below(2) as u128),
                path: PathId(0x99),
                branch: BranchId(0xa1),
            },
            _ => {
                let Some(repo) = draw.one(&repos) else { return Ok(()) };
                TaskCommand::MarkMerged { repo }
            }
        };
        self.ask(&mut draw, Command::Task(command)).map(|_| ())
    }

    /// A command again: with its request id, or with its request id and another content.
    pub(super) fn again(&mut self, mut draw: Draw) -> Ran {
        let named: Vec<usize> =
            (0..self.sent.len()).filter(|i| self.sent[*i].request.is_some()).collect();
        let last = self.sent.len().saturating_sub(1 + draw.below(6));
        let at = match draw.one(&named) {
            Some(at) if !draw.once_in(3) => at,
            _ => last,
        };
        let Some(mut envelope) = self.sent.get(at).copied() else { return Ok(()) };
        // Its warrant was received by nobody: a replay brings none.
        if envelope.request.is_some() && draw.once_in(3) {
            envelope.content = ContentHash(envelope.content.0 ^ 1);
        }
        let answer = self.submit(envelope)?;
        self.adopt_lost_warrant(answer);
        Ok(())
    }
}
