//! Turns: admission, phases, the terminal event, hand-off, runtime handles (S-10..S-15).

use super::relations::*;
use super::{Ctx, known};
use crate::command::TurnCommand;
use crate::decision::*;
use crate::guard::{Guard, GuardSet};
use crate::id::*;
use crate::machine;
use crate::refusal::{InTheWay, Refusal};
use crate::rows::*;

/// What an admission needs beside the session.
#[derive(Clone, Copy)]
struct Admission {
    turn: TurnId,
    runtime: RuntimeId,
    runtime_kind: RuntimeKind,
    instance: InstanceId,
    origin: Origin,
}

impl<G: GuardSet> Ctx<'_, G> {
    pub(crate) fn turn_command(
        &mut self,
        command: &TurnCommand,
    ) -> Result<SessionDecision, Refusal> {
        let reply = match *command {
            TurnCommand::Submit {
                session,
                input,
                origin,
                turn,
                runtime,
                runtime_kind,
                instance,
            } => {
                let with = Admission { turn, runtime, runtime_kind, instance, origin };
                self.submit(session, input, with)
            }
            TurnCommand::Advance { turn, phase } => self.advance(turn, phase),
            TurnCommand::End { turn, outcome, next_turn, next_runtime } => {
                self.end_turn(turn, outcome, next_turn, next_runtime)
            }
            TurnCommand::TakeUp { session, turn, runtime, runtime_kind, instance } => {
                // What waits has an origin of its own.
                let origin = Origin::Person;
                self.take_up(session, Admission { turn, runtime, runtime_kind, instance, origin })
            }
            TurnCommand::Renew { turn, instance } => self.renew_turn(turn, instance),
            TurnCommand::CancelInput { input } => self.cancel_input(input),
            TurnCommand::ReportRuntime { runtime, status } => self.report_runtime(runtime, status),
        }?;
        Ok(SessionDecision { reply })
    }

    /// S-12: one step checks everything and only then stores anything.
    fn submit(&mut self, id: SessionId, input: InputId, with: Admission) -> Result<Reply, Refusal> {
        let session = self.session(id)?;
        let task = self.task(session.task_id)?;
        let instance = self.live_instance(with.instance)?;
        self.hold(Guard::NotDraining, !instance.draining, || InTheWay::one(instance.row_key()))?;
        let known = self.view.inputs.id(input.0).copied();
        self.hold(Guard::InputNew, known.is_none(), || {
            InTheWay::of(known.iter().map(Row::row_key))
        })?;
        self.open_task(&task)?;
        self.is_open(&session)?;
        let busy = turns_of(self.view, id).next().is_some();
        let queue = !self.test(Guard::OneTurn, !busy);
        if !queue {
            self.usable_environment(&session)?;
            self.new_turn(with.turn)?;
        }
        self.view.inputs.insert(Input {
            id: input,
            session_id: Some(id),
            origin: with.origin,
            actor: self.actor.id,
            state: InputState::Queued,
            reason: InputReason::None,
            redirected_to: None,
            turn_id: None,
            created_at: self.now,
            settled_at: None,
        });
        self.view.sessions.touch(id.0);
        if queue {
            self.event(EventKind::InputQueued, RowKey::input(input), "");
            return Ok(Reply::Queued);
        }
        // S-10: first come first served. What waited before (its turn was interrupted, or ended
        // under a barrier) goes first, and this one waits for that turn.
        let first = self.first_waiting(id).map_or(input, |i| i.id);
        let origin = self.view.inputs.id(first.0).map_or(with.origin, |i| i.origin);
        self.admit(&session, first, Admission { origin, ..with })?;
        if first == input {
            return Ok(Reply::Done);
        }
        self.event(EventKind::InputQueued, RowKey::input(input), "");
        Ok(Reply::Queued)
    }

    /// P-44: the first of what waits begins a turn, where nothing else will take it up. Nothing
    /// waits, or a turn is under way whose end takes it up (S-11): nothing to do.
    fn take_up(&mut self, id: SessionId, with: Admission) -> Result<Reply, Refusal> {
        let session = self.session(id)?;
        let task = self.task(session.task_id)?;
        let instance = self.live_instance(with.instance)?;
        self.hold(Guard::NotDraining, !instance.draining, || InTheWay::one(instance.row_key()))?;
        self.open_task(&task)?;
        self.is_open(&session)?;
        let busy = turns_of(self.view, id).next().is_some();
        let Some(input) = self.first_waiting(id).filter(|_| self.test(Guard::OneTurn, !busy))
        else {
            return Ok(Reply::Unchanged);
        };
        self.usable_environment(&session)?;
        self.new_turn(with.turn)?;
        self.admit(&session, input.id, Admission { origin: input.origin, ..with })?;
        Ok(Reply::Done)
    }

    /// S-10: first come, first served.
    fn first_waiting(&self, id: SessionId) -> Option<Input> {
        waiting_inputs(self.view, id).min_by_key(|i| (i.created_at, i.id)).copied()
    }

    fn new_turn(&self, id: TurnId) -> Result<(), Refusal> {
        let known = self.view.turns.id(id.0).copied();
        self.hold(Guard::TurnNew, known.is_none(), || InTheWay::of(known.iter().map(Row::row_key)))
    }

    /// Whether work may happen in the session's environment: it is there, finished, and no slot
    /// of it is in removal (S-12).
    fn usable_environment(&self, session: &Session) -> Result<(), Refusal> {
        let Some(id) = session.task_environment_id else { return Ok(()) };
        let environment = known!(self, environments, id, EnvironmentKnown)?;
        self.not_in_removal(id)?;
        self.hold(
            Guard::EnvironmentFinished,
            environment.status != EnvironmentStatus::Creating,
            || InTheWay::one(environment.row_key()),
        )
    }

    /// Stores the turn, its runtime row and its input (S-12, S-14).
    fn admit(&mut self, session: &Session, input: InputId, with: Admission) -> Result<(), Refusal> {
        let (now, lease) = (self.now, self.now + self.settings().lease);
        // S-14: one that was asked to stop is none to begin on; its stop may land any time. Nor is
        // a process of another instance: nobody here can speak to it, if it lives at all.
        let living = self
            .view
            .runtimes
            .iter()
            .find(|r| {
                let reached = r.kind != RuntimeKind::Local || r.instance_id == with.instance;
                r.session_id == session.id
                    && reached
                    && matches!(r.status, RuntimeStatus::Starting | RuntimeStatus::Running)
            })
            .copied();
        let runtime = match living {
            Some(runtime) => runtime.id,
            None => {
                let known = self.view.runtimes.id(with.runtime.0).copied();
                self.hold(Guard::RuntimeNew, known.is_none(), || {
                    InTheWay::of(known.iter().map(Row::row_key))
                })?;
                let row = Runtime {
                    id: with.runtime,
                    session_id: session.id,
                    task_id: session.task_id,
                    task_environment_id: session.task_environment_id,
                    instance_id: with.instance,
                    kind: with.runtime_kind,
                    status: RuntimeStatus::Starting,
                    last_seen_at: now,
                    created_at: now,
                    updated_at: now,
                };
                self.view.runtimes.insert(row);
                self.event(EventKind::RuntimeStarting, row.row_key(), "");
                row.id
            }
        };
        self.view.turns.insert(Turn {
            id: with.turn,
            session_id: session.id,
            epoch: session.epoch,
            phase: TurnPhase::WaitingForSlot,
            origin: with.origin,
            runtime_id: runtime,
            instance_id: with.instance,
            lease_until: lease,
            started_at: now,
            ended_at: None,
            outcome: None,
        });
        self.event(EventKind::TurnAdmitted, RowKey::turn(with.turn), with.origin.code());
        let Some(row) = self.view.inputs.id(input.0).copied() else {
            return self.illegal(RowKey::input(input));
        };
        self.settle_input(
            &row,
            machine::input::Input::Deliver,
            InputReason::None,
            Some(with.turn),
        )?;
        self.view.sessions.touch(session.id.0);
        let activity = self.view.sessions.id(session.id.0).map_or(session.activity, |s| s.activity);
        match machine::activity::step(activity, machine::activity::Input::Admit) {
            Some(next) => self.set_activity(session.id, next),
            None => return self.illegal(session.row_key()),
        }
        self.out.effects.push(SessionEffect::StartTurn { turn: with.turn, runtime });
        Ok(())
    }

    fn advance(&mut self, id: TurnId, phase: TurnPhase) -> Result<Reply, Refusal> {
        let turn = known!(self, turns, id, TurnKnown)?;
        self.hold(Guard::TurnNotEnded, turn.phase != TurnPhase::Ended, || {
            InTheWay::one(turn.row_key())
        })?;
        if turn.phase == phase {
            return Ok(Reply::Unchanged);
        }
        let next = machine::turn::input_for(phase).and_then(|i| machine::turn::step(turn.phase, i));
        let ok = next.is_some_and(|n| n != TurnPhase::Ended);
        // Each turn ends by its terminal event alone (S-13); other illegal phases are the
        // caller's mistake, not a defect.
        if !ok {
            return Err(Refusal {
                guard: Guard::PhaseReachable,
                rows: InTheWay::one(turn.row_key()),
            });
        }
        if let (Some(row), Some(next)) = (self.view.turns.edit(id.0), next) {
            row.phase = next;
        }
        self.event(EventKind::TurnAdvanced, turn.row_key(), phase.code());
        if phase == TurnPhase::Running {
            self.set_activity(turn.session_id, Activity::Running);
        }
        self.view.sessions.touch(turn.session_id.0);
        Ok(Reply::Done)
    }

    /// S-13: exactly one terminal event. A second one changes nothing.
    fn end_turn(
        &mut self,
        id: TurnId,
        outcome: TurnOutcome,
        next_turn: TurnId,
        next_runtime: RuntimeId,
    ) -> Result<Reply, Refusal> {
        let turn = known!(self, turns, id, TurnKnown)?;
        if turn.phase == TurnPhase::Ended {
            return Ok(Reply::Unchanged);
        }
        self.end_turn_row(&turn, outcome)?;
        self.hand_off(&turn, next_turn, next_runtime)?;
        Ok(Reply::Done)
    }

    /// The moment between the end of one turn and the start of the next queued one: one step, so
    /// that nothing can come between. Where nothing new may begin, the input goes on waiting.
    fn hand_off(
        &mut self,
        ended: &Turn,
        next_turn: TurnId,
        next_runtime: RuntimeId,
    ) -> Result<(), Refusal> {
        let Some(session) = self.view.sessions.id(ended.session_id.0).copied() else {
            return Ok(());
        };
        let Some(input) = self.first_waiting(session.id) else { return Ok(()) };
        let instance = self.view.instances.id(ended.instance_id.0).copied();
        let now = self.now;
        let may_begin = session.lifecycle == SessionLifecycle::Open
            && is_active(self.view, session.task_id)
            && self.test(Guard::HandOffUnbarred, barrier(self.view, session.task_id).is_none())
            && self.test(Guard::InstanceAlive, instance.is_some_and(|i| i.lease_until > now))
            && self.test(Guard::NotDraining, instance.is_some_and(|i| !i.draining))
            && self.usable_environment(&session).is_ok();
        if !may_begin {
            return Ok(());
        }
        let kind =
            self.view.runtimes.id(ended.runtime_id.0).map_or(RuntimeKind::Remote, |r| r.kind);
        let with = Admission {
            turn: next_turn,
            runtime: next_runtime,
            runtime_kind: kind,
            instance: ended.instance_id,
            origin: input.origin,
        };
        self.new_turn(next_turn)?;
        self.admit(&session, input.id, with)
    }

    /// The turn's terminal event, and what the session does now.
    pub(crate) fn end_turn_row(
        &mut self,
        turn: &Turn,
        outcome: TurnOutcome,
    ) -> Result<(), Refusal> {
        let Some(ended) = machine::turn::step(turn.phase, machine::turn::Input::End) else {
            return self.illegal(turn.row_key());
        };
        let now = self.now;
        if let Some(row) = self.view.turns.edit(turn.id.0) {
            row.phase = ended;
            row.ended_at = Some(now);
            row.outcome = Some(outcome);
        }
        self.event(EventKind::TurnEnded, turn.row_key(), outcome.code());
        self.view.sessions.touch(turn.session_id.0);
        let input = match outcome {
            TurnOutcome::Completed => machine::activity::Input::Rest,
            TurnOutcome::Failed => machine::activity::Input::Fail,
            TurnOutcome::Cancelled | TurnOutcome::Dropped => machine::activity::Input::Stop,
            TurnOutcome::Interrupted => machine::activity::Input::Interrupt,
        };
        let activity = self.view.sessions.id(turn.session_id.0).map(|s| s.activity);
        if let Some(next) = activity.and_then(|a| machine::activity::step(a, input)) {
            self.set_activity(turn.session_id, next);
        }
        Ok(())
    }

    fn renew_turn(&mut self, id: TurnId, instance: InstanceId) -> Result<Reply, Refusal> {
        let turn = known!(self, turns, id, TurnKnown)?;
        let at = || InTheWay::one(turn.row_key());
        self.hold(Guard::TurnNotEnded, turn.phase != TurnPhase::Ended, at)?;
        self.hold(Guard::TurnInstance, turn.instance_id == instance, at)?;
        let lease = self.now + self.settings().lease;
        if let Some(row) = self.view.turns.edit(id.0) {
            row.lease_until = lease;
        }
        Ok(Reply::Done)
    }

    fn cancel_input(&mut self, id: InputId) -> Result<Reply, Refusal> {
        let input = known!(self, inputs, id, InputKnown)?;
        if input.state != InputState::Queued {
            return Ok(Reply::Unchanged);
        }
        self.settle_input(&input, machine::input::Input::Cancel, InputReason::TakenBack, None)?;
        if let Some(session) = input.session_id {
            self.view.sessions.touch(session.0);
        }
        self.out
            .effects
            .push(SessionEffect::ReturnInput { input: id, reason: InputReason::TakenBack });
        Ok(Reply::Done)
    }

    fn report_runtime(&mut self, id: RuntimeId, status: RuntimeStatus) -> Result<Reply, Refusal> {
        let runtime = known!(self, runtimes, id, RuntimeKnown)?;
        if runtime.status == status {
            return Ok(Reply::Unchanged);
        }
        let next = machine::runtime::input_for(status)
            .and_then(|i| machine::runtime::step(runtime.status, i));
        let Some(next) = next else {
            // A report that comes late says less than what is known: it changes nothing.
            return Ok(Reply::Unchanged);
        };
        let now = self.now;
        if let Some(row) = self.view.runtimes.edit(id.0) {
            row.status = next;
            row.last_seen_at = now;
            row.updated_at = now;
        }
        self.event(EventKind::RuntimeReported, runtime.row_key(), next.code());
        Ok(Reply::Done)
    }
}
