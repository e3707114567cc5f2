//! Archive and delete of sessions (S-20..S-27). Nothing here reads, locks or writes an
//! environment, and no type here can express a physical removal (S-24, S-25).

use super::Ctx;
use super::relations::*;
use crate::decision::*;
use crate::guard::{Guard, GuardSet};
use crate::id::*;
use crate::machine;
use crate::refusal::{InTheWay, Refusal};
use crate::rows::*;

impl<G: GuardSet> Ctx<'_, G> {
    pub(crate) fn begin_close(
        &mut self,
        id: SessionId,
        kind: ClosingKind,
        token: Token,
        automatic: bool,
        force: bool,
    ) -> Result<Reply, Refusal> {
        let session = self.session(id)?;
        let at = || InTheWay::one(session.row_key());
        self.hold(Guard::NotAlreadyClosing, session.lifecycle != SessionLifecycle::Closing, at)?;
        if kind == ClosingKind::Archive && session.lifecycle == SessionLifecycle::Archived {
            return Ok(Reply::Unchanged);
        }
        self.hold(Guard::NotStarred, !(automatic && session.starred), at)?;
        // Force is a person's (S-15); a policy obeys the check like everybody (S-20).
        if force && !automatic {
            self.drop_background(&session)?;
        }
        self.no_turn_work(&session)?;
        let input = match kind {
            ClosingKind::Archive => machine::session::Input::BeginArchive,
            ClosingKind::Delete => machine::session::Input::BeginDelete,
        };
        self.step_session(&session, input)?;
        let lease = self.now + self.settings().lease;
        let (now, actor) = (self.now, self.actor.id);
        if let Some(s) = self.view.sessions.edit(id.0) {
            s.lifecycle = SessionLifecycle::Closing;
            s.closing_kind = Some(kind);
            s.closing_token = Some(token);
            s.closing_by = Some(actor);
            s.closing_lease = Some(lease);
            s.updated_at = now;
        }
        let policy = if automatic { "automatic" } else { kind.code() };
        self.event(EventKind::SessionClosing, session.row_key(), policy);
        self.stop_runtimes(|r| r.session_id == id);
        Ok(Reply::Done)
    }

    /// S-20: refused as busy while there is turn work, all of it (S-11).
    pub(crate) fn no_turn_work(&self, session: &Session) -> Result<(), Refusal> {
        let turns = turns_of(self.view, session.id);
        self.hold(Guard::NoTurnWork, turns.clone().next().is_none(), || {
            InTheWay::of(turns.map(Row::row_key))
        })
    }

    /// S-15: a forced close ends parked work as dropped, in the step that sets the mark.
    fn drop_background(&mut self, session: &Session) -> Result<(), Refusal> {
        let parked =
            turns_of(self.view, session.id).find(|t| t.phase == TurnPhase::Background).copied();
        if let Some(turn) = parked {
            self.end_turn_row(&turn, TurnOutcome::Dropped)?;
        }
        Ok(())
    }

    /// Asks for the stop of runtimes; the handle stays until the stop is proven (C-6).
    pub(crate) fn stop_runtimes(&mut self, which: impl Fn(&Runtime) -> bool) {
        let now = self.now;
        for runtime in self.view.runtimes.iter_mut().filter(|r| is_running(r) && which(r)) {
            if let Some(next) =
                machine::runtime::step(runtime.status, machine::runtime::Input::Stop)
            {
                runtime.status = next;
                runtime.updated_at = now;
                let subject = runtime.row_key();
                self.out.events.push(Event {
                    kind: EventKind::RuntimeReported,
                    subject,
                    detail: next.code(),
                });
            }
            self.out.effects.push(SessionEffect::StopRuntime { runtime: runtime.id });
        }
    }

    pub(crate) fn commit_close(&mut self, id: SessionId, token: Token) -> Result<Reply, Refusal> {
        let session = self.closing(id, token)?;
        self.no_turn_work(&session)?;
        let runtimes = self.view.runtimes.iter().filter(|r| r.session_id == id && is_running(r));
        self.hold(Guard::RuntimeQuiesced, runtimes.clone().next().is_none(), || {
            InTheWay::of(runtimes.map(Row::row_key))
        })?;
        match self.step_session(&session, machine::session::Input::Commit)? {
            machine::session::State::Archived => {
                self.archive_row(&session, None);
                self.cancel_inputs(id, InputReason::Archived)?;
                self.release_primary(session.task_id, id);
            }
            machine::session::State::Gone => {
                self.cancel_inputs(id, InputReason::Deleted)?;
                self.release_primary(session.task_id, id);
                self.remove_session(&session);
            }
            machine::session::State::Open
            | machine::session::State::ClosingArchive
            | machine::session::State::ClosingDelete
            | machine::session::State::DeletingArchived => return self.illegal(session.row_key()),
        }
        self.view.tasks.touch(session.task_id.0);
        Ok(Reply::Closed)
    }

    pub(crate) fn abort_close(&mut self, id: SessionId, token: Token) -> Result<Reply, Refusal> {
        let session = self.closing(id, token)?;
        self.lift(&session)?;
        Ok(Reply::Done)
    }

    /// A close under way that this token may end (S-22).
    fn closing(&self, id: SessionId, token: Token) -> Result<Session, Refusal> {
        let session = self.session(id)?;
        let at = || InTheWay::one(session.row_key());
        self.hold(Guard::CloseUnderWay, session.lifecycle == SessionLifecycle::Closing, at)?;
        self.hold(Guard::ClosingToken, session.closing_token == Some(token), at)?;
        let held = session.closing_lease.is_some_and(|lease| lease > self.now);
        self.hold(Guard::ClosingLease, held, at)?;
        Ok(session)
    }

    /// Returns exactly to where the close began, open or archived (S-22).
    pub(crate) fn lift(&mut self, session: &Session) -> Result<(), Refusal> {
        let state = self.step_session(session, machine::session::Input::Lift)?;
        let now = self.now;
        if let Some(s) = self.view.sessions.edit(session.id.0) {
            s.lifecycle = match state {
                machine::session::State::Archived => SessionLifecycle::Archived,
                machine::session::State::Open
                | machine::session::State::ClosingArchive
                | machine::session::State::ClosingDelete
                | machine::session::State::DeletingArchived
                | machine::session::State::Gone => SessionLifecycle::Open,
            };
            clear_mark(s);
            s.updated_at = now;
        }
        self.event(EventKind::SessionCloseAborted, session.row_key(), "");
        Ok(())
    }

    /// Sets the row archived: by an operation, or by a person or policy (none).
    pub(crate) fn archive_row(&mut self, session: &Session, by: Option<OperationId>) {
        let now = self.now;
        if let Some(s) = self.view.sessions.edit(session.id.0) {
            s.lifecycle = SessionLifecycle::Archived;
            s.archived_at = Some(now);
            s.archived_by = by;
            s.epoch += 1;
            s.updated_at = now;
            clear_mark(s);
        }
        self.event(EventKind::SessionArchived, session.row_key(), "");
    }

    /// Cancels what waits, each with its own outcome and its content returned (S-23, S-24).
    pub(crate) fn cancel_inputs(
        &mut self,
        session: SessionId,
        reason: InputReason,
    ) -> Result<(), Refusal> {
        while let Some(input) = first(waiting_inputs(self.view, session)) {
            self.settle_input(&input, machine::input::Input::Cancel, reason, None)?;
            self.out.effects.push(SessionEffect::ReturnInput { input: input.id, reason });
        }
        Ok(())
    }

    pub(crate) fn settle_input(
        &mut self,
        input: &Input,
        with: machine::input::Input,
        reason: InputReason,
        turn: Option<TurnId>,
    ) -> Result<(), Refusal> {
        let Some(state) = machine::input::step(input.state, with) else {
            return self.illegal(input.row_key());
        };
        let now = self.now;
        if let Some(row) = self.view.inputs.edit(input.id.0) {
            row.state = state;
            row.reason = reason;
            row.turn_id = turn;
            row.settled_at = Some(now);
        }
        let kind = match state {
            InputState::Delivered => EventKind::InputDelivered,
            InputState::Queued => EventKind::InputQueued,
            InputState::Redirected
            | InputState::Refused
            | InputState::Cancelled
            | InputState::Expired => EventKind::InputCancelled,
        };
        self.event(kind, input.row_key(), reason.code());
        Ok(())
    }

    /// Removes the row and what hangs off it, leaving a tombstone (S-24). Runtime handles stay
    /// until their stop is proven (C-6); settled inputs stay as history (D-9).
    pub(crate) fn remove_session(&mut self, session: &Session) {
        let id = session.id;
        self.view.turns.remove_where(|t| t.session_id == id);
        self.view.sessions.remove(id.0);
        self.bury(IdentityKind::Session, id.0);
        self.event(EventKind::SessionDeleted, session.row_key(), "");
    }
}

/// Takes the closing mark off.
pub(crate) fn clear_mark(session: &mut Session) {
    session.closing_kind = None;
    session.closing_token = None;
    session.closing_by = None;
    session.closing_lease = None;
}
