//! Decisions: a command and the rows of its footprint in, changed rows, events, effects and a
//! reply out, or a refusal. Guards are tested from top to bottom; their order is the promised
//! precedence (`docs/tables/refusals.md`).

mod attempt;
mod close;
mod footprints;
mod job;
mod mutation;
mod operation;
mod operator;
mod permit;
pub(crate) mod relations;
mod removal;
mod reserve;
mod restore;
mod session;
mod snapshot;
mod system;
mod task;
mod transfer;
mod turn;
mod unarchive;

use crate::command::{Command, Envelope, Permissions};
use crate::decision::*;
use crate::guard::{AllGuards, Guard, GuardSet};
use crate::id::*;
use crate::machine;
use crate::refusal::{InTheWay, Refusal};
use crate::rows::*;
use crate::time::Time;

pub use footprints::footprint;

/// Decides a command on the rows of its footprint.
///
/// Accepted: the view holds the changed rows, `out` the events and effects. Refused: the view is
/// as it was loaded and `out` is empty (P-20).
///
/// # Errors
/// The first guard, in the promised precedence, that does not hold.
pub fn decide(view: &mut View, envelope: &Envelope, out: &mut Output) -> Verdict {
    decide_with(view, envelope, out, &AllGuards)
}

/// The same with another set of guards: for `model-check`, which takes guards out to show that
/// each of them matters (09). No other crate may name it; a test looks.
#[doc(hidden)]
pub fn decide_with<G: GuardSet>(
    view: &mut View,
    envelope: &Envelope,
    out: &mut Output,
    guards: &G,
) -> Verdict {
    out.clear();
    let now = view.now;
    let mut ctx = Ctx { view, out, guards, actor: envelope.actor, now };
    let verdict = ctx.dispatch(envelope);
    if verdict.is_err() {
        view.rollback();
        out.clear();
    }
    verdict
}

/// What a decision works on.
pub(crate) struct Ctx<'a, G> {
    pub(crate) view: &'a mut View,
    pub(crate) out: &'a mut Output,
    pub(crate) guards: &'a G,
    pub(crate) actor: crate::command::Actor,
    pub(crate) now: Time,
}

impl<G: GuardSet> Ctx<'_, G> {
    fn dispatch(&mut self, envelope: &Envelope) -> Verdict {
        let command = &envelope.command;
        let needs = self.permission(command);
        self.hold(Guard::Permission, self.actor.may.covers(needs), || InTheWay::NONE)?;
        if let Some(request) = envelope.request {
            if let Some(known) = self.view.requests.id(request.0).copied() {
                let same = known.content_hash == envelope.content;
                self.hold(Guard::RequestContent, same, || InTheWay::one(known.row_key()))?;
                return Ok(Reply::Replayed.into());
            }
            self.view.requests.insert(Request {
                id: request,
                content_hash: envelope.content,
                at: self.now,
            });
        }
        match command {
            Command::Session(c) => self.session_command(c).map(Decision::from),
            Command::Turn(c) => self.turn_command(c).map(Decision::from),
            Command::Task(c) => self.task_command(c).map(Decision::from),
            Command::Operation(c) => self.operation_command(c).map(Decision::from),
            Command::Attempt(c) => self.attempt_command(c),
            Command::Cleanup(c) => self.cleanup_command(c),
            Command::Operator(c) => self.operator_command(c).map(Decision::from),
            Command::System(c) => self.system_command(c).map(Decision::from),
        }
    }

    /// What the command needs. The system's own triggers need the system permission instead of
    /// a person's (T-4).
    fn permission(&self, command: &Command) -> Permissions {
        use crate::command::OperationCommand::Reserve;
        match command {
            Command::Operation(Reserve { trigger: Trigger::QuickChatExpire, .. }) => {
                Permissions::SYSTEM
            }
            // The steps after an accepted reserve belong to whoever owns its barrier, which the
            // barrier's own guard checks.
            Command::Operation(o)
                if !o.is_admission() && self.actor.may.covers(Permissions::SYSTEM) =>
            {
                Permissions::SYSTEM
            }
            Command::Session(_)
            | Command::Turn(_)
            | Command::Task(_)
            | Command::Operation(_)
            | Command::Attempt(_)
            | Command::Cleanup(_)
            | Command::Operator(_)
            | Command::System(_) => command.permission(),
        }
    }

    /// Refuses unless the condition holds, or this guard was taken out.
    pub(crate) fn hold(
        &self,
        guard: Guard,
        holds: bool,
        rows: impl FnOnce() -> InTheWay,
    ) -> Result<(), Refusal> {
        if self.test(guard, holds) { Ok(()) } else { Err(Refusal { guard, rows: rows() }) }
    }

    /// Whether the condition holds, or this guard was taken out: for guards that lead to another
    /// outcome instead of a refusal.
    pub(crate) fn test(&self, guard: Guard, holds: bool) -> bool {
        self.guards.seen(guard);
        holds || !self.guards.has(guard)
    }

    pub(crate) fn event(&mut self, kind: EventKind, subject: RowKey, detail: &'static str) {
        self.out.events.push(Event { kind, subject, detail });
    }

    pub(crate) fn settings(&self) -> Settings {
        self.view.settings.id(1).copied().unwrap_or(Settings::DEFAULT)
    }

    // Rows that a command names. An unknown id is refused; a deleted one says so (S-27).

    pub(crate) fn task(&self, id: TaskId) -> Result<Task, Refusal> {
        match self.view.tasks.id(id.0) {
            Some(task) => Ok(*task),
            None => {
                Err(self.unknown(IdentityKind::Task, id.0, Guard::TaskKnown, Guard::TaskNotDeleted))
            }
        }
    }

    pub(crate) fn session(&self, id: SessionId) -> Result<Session, Refusal> {
        match self.view.sessions.id(id.0) {
            Some(session) => Ok(*session),
            None => Err(self.unknown(
                IdentityKind::Session,
                id.0,
                Guard::SessionKnown,
                Guard::SessionNotDeleted,
            )),
        }
    }

    pub(crate) fn workspace(&self, id: WorkspaceId) -> Result<Workspace, Refusal> {
        match self.view.workspaces.id(id.0) {
            Some(workspace) => Ok(*workspace),
            None => Err(self.unknown(
                IdentityKind::Workspace,
                id.0,
                Guard::WorkspaceKnown,
                Guard::WorkspaceNotDeleted,
            )),
        }
    }

    fn unknown(&self, kind: IdentityKind, id: u128, unknown: Guard, deleted: Guard) -> Refusal {
        let named = match kind {
            IdentityKind::Task => self.view.tasks.key_of(id),
            IdentityKind::Session => self.view.sessions.key_of(id),
            IdentityKind::Workspace => self.view.workspaces.key_of(id),
        };
        match self.identity(kind, id) {
            Some(tombstone) => Refusal { guard: deleted, rows: InTheWay::one(tombstone.row_key()) },
            None => Refusal { guard: unknown, rows: InTheWay::one(named) },
        }
    }

    pub(crate) fn identity(&self, kind: IdentityKind, id: u128) -> Option<Identity> {
        self.view.identities.get(identity_key(kind, id)).copied()
    }

    /// Refuses an id that is in use or has a tombstone (S-3, D-14).
    pub(crate) fn fresh_identity(&self, kind: IdentityKind, id: u128) -> Result<(), Refusal> {
        let known = self.identity(kind, id);
        self.hold(Guard::IdNeverUsed, known.is_none(), || {
            InTheWay::of(known.iter().map(Row::row_key))
        })
    }

    pub(crate) fn remember(&mut self, kind: IdentityKind, id: u128) {
        self.view.identities.insert(Identity {
            id: AnyId(id),
            kind,
            state: IdentityState::Live,
            gone_at: None,
            gone_by: None,
        });
    }

    /// Leaves a tombstone (D-14).
    pub(crate) fn bury(&mut self, kind: IdentityKind, id: u128) {
        let actor = self.actor.id;
        self.view.identities.insert(Identity {
            id: AnyId(id),
            kind,
            state: IdentityState::Gone,
            gone_at: Some(self.now),
            gone_by: Some(actor),
        });
    }

    /// The instance in whose name the command acts: registered, with a lease that holds.
    pub(crate) fn live_instance(&self, id: InstanceId) -> Result<Instance, Refusal> {
        let row = self.view.instances.id(id.0).copied();
        let named = self.view.instances.key_of(id.0);
        let row = row.ok_or(Refusal { guard: Guard::InstanceKnown, rows: InTheWay::one(named) })?;
        self.hold(Guard::InstanceAlive, row.lease_until > self.now, || {
            InTheWay::one(row.row_key())
        })?;
        Ok(row)
    }

    pub(crate) fn illegal<T>(&self, row: RowKey) -> Result<T, Refusal> {
        debug_assert!(G::PARTIAL, "an illegal step inside an accepted decision: {row:?}");
        Err(Refusal { guard: Guard::LegalStep, rows: InTheWay::one(row) })
    }

    /// Moves a session's lifecycle through its machine.
    pub(crate) fn step_session(
        &self,
        row: &Session,
        input: machine::session::Input,
    ) -> Result<machine::session::State, Refusal> {
        match machine::session::step(machine::session::state_of(row), input) {
            Some(state) => Ok(state),
            // The model checker takes the machine's word away, to see that it is a second one
            // beside the guard that names the refusal.
            None if !self.guards.has(Guard::LegalStep) => Ok(machine::session::state_of(row)),
            None => self.illegal(row.row_key()),
        }
    }
}

/// The key of an identity row.
pub(crate) const fn identity_key(kind: IdentityKind, id: u128) -> Key {
    Key { part: kind as u8 + 1, id }
}

/// Looks a row up by id, or refuses with the guard that says it is unknown.
macro_rules! known {
    ($ctx:expr, $table:ident, $id:expr, $guard:ident) => {
        match $ctx.view.$table.id($id.0) {
            Some(row) => Ok(*row),
            None => Err($crate::refusal::Refusal {
                guard: $crate::guard::Guard::$guard,
                rows: $crate::refusal::InTheWay::one($ctx.view.$table.key_of($id.0)),
            }),
        }
    };
}
pub(crate) use known;
