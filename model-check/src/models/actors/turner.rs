//! An instance that runs turns (S-10..S-15): spawns the runtime of an admitted turn, runs it, lets
//! it go on in the background, renews it, ends it and takes up what waits. When it dies its turns
//! go on holding their locks until their leases lapse.

use freehold_kernel::{
    Command, Input, InputState, Liveness, RuntimeId, RuntimeKind, SystemCommand, Turn, TurnCommand,
    TurnId, TurnOutcome, TurnPhase, derive,
};

use crate::models::names::*;
use crate::system::{Actor, Fault, Steps};
use crate::world::{NOW, Sender, World};

/// The facts that an instance's process is gone: nothing is sent through it any more.
pub const GONE: [&str; 4] = ["A is gone", "B is gone", "C is gone", "D is gone"];

/// An instance that runs turns.
#[derive(Clone, Copy, Debug)]
pub struct Turner {
    /// Which.
    pub instance: u8,
    /// Whether a turn may park what its runtime left (S-15).
    pub parks: bool,
}

impl Turner {
    fn runs(self, turn: &Turn) -> bool {
        turn.instance_id == instance(self.instance) && turn.phase != TurnPhase::Ended
    }

    fn advance(self, turn: TurnId, phase: TurnPhase, steps: &mut Steps<'_, bool>) {
        let command = Command::Turn(TurnCommand::Advance { turn, phase });
        let says = match phase {
            TurnPhase::Running => format!("runs {}", said(turn.0)),
            TurnPhase::Background => format!("lets {} go on in the background", said(turn.0)),
            TurnPhase::WaitingForSlot
            | TurnPhase::BetweenLegs
            | TurnPhase::Draining
            | TurnPhase::Ended => format!("takes {} to {}", said(turn.0), phase.code()),
        };
        steps.ask(format_args!("{says}"), Sender::ALL, command, |answer, _| {
            answer.ok().map(|_| true)
        });
    }

    fn end(self, turn: &Turn, steps: &mut Steps<'_, bool>) {
        let next = derive(turn.id.0, 1);
        let command = Command::Turn(TurnCommand::End {
            turn: turn.id,
            outcome: TurnOutcome::Completed,
            next_turn: TurnId(next),
            next_runtime: RuntimeId(derive(turn.runtime_id.0, turn.id.0)),
        });
        let old = turn.id;
        let says = format_args!("ends {}, and takes up what waits", said(turn.id.0));
        steps.ask(says, Sender::ALL, command, |answer, w| {
            answer.ok()?;
            w.let_go(old.0);
            if w.view.turns.id(next).is_some() {
                w.hold(next);
            }
            Some(true)
        });
    }
}

impl Turner {
    /// P-44: whatever waits where no turn is under way, because its instance is gone or nothing
    /// could begin when the last one ended.
    fn take_up(self, world: &World, steps: &mut Steps<'_, bool>) {
        for id in world.view.sessions.iter().map(|s| s.id) {
            let waits = |i: &&Input| i.session_id == Some(id) && i.state == InputState::Queued;
            let first = world.view.inputs.iter().filter(waits).min_by_key(|i| (i.created_at, i.id));
            let under_way = |t: &Turn| t.session_id == id && t.phase != TurnPhase::Ended;
            let Some(first) = first.filter(|_| !world.view.turns.iter().any(under_way)) else {
                continue;
            };
            let turn = TurnId(derive(first.id.0, 2));
            let command = Command::Turn(TurnCommand::TakeUp {
                session: id,
                turn,
                runtime: RuntimeId(derive(first.id.0, 3)),
                runtime_kind: RuntimeKind::Local,
                instance: instance(self.instance),
            });
            let says = format_args!("takes up what waits in {}", said(id.0));
            steps.ask(says, Sender::ALL, command, |answer, w| {
                answer.ok()?;
                if w.view.turns.id(turn.0).is_some() {
                    w.hold(turn.0);
                }
                Some(true)
            });
        }
    }
}

impl Actor for Turner {
    /// Whether it lives.
    type Local = bool;

    fn name(&self) -> String {
        format!("instance {}", letter(self.instance))
    }

    fn begin(&self) -> bool {
        true
    }

    fn act(&self, lives: bool, world: &World, steps: &mut Steps<'_, bool>) {
        if !lives {
            return;
        }
        for turn in world.view.turns.iter().filter(|t| self.runs(t)) {
            match turn.phase {
                TurnPhase::WaitingForSlot => self.advance(turn.id, TurnPhase::Running, steps),
                TurnPhase::Running => {
                    if self.parks {
                        self.advance(turn.id, TurnPhase::Background, steps);
                    }
                    self.end(turn, steps);
                }
                TurnPhase::Background => self.end(turn, steps),
                TurnPhase::BetweenLegs | TurnPhase::Draining | TurnPhase::Ended => {}
            }
            if turn.lease_until <= NOW {
                let command = Command::Turn(TurnCommand::Renew {
                    turn: turn.id,
                    instance: instance(self.instance),
                });
                let says = format_args!("renews {}", said(turn.id.0));
                steps.ask(says, Sender::ALL, command, |answer, _| answer.ok().map(|_| true));
            }
        }
        self.take_up(world, steps);
        if world.view.turns.iter().any(|t| self.runs(t)) {
            steps.costing(Fault::Crash).outside(format_args!("dies"), |w| {
                let own: Vec<u128> =
                    w.view.turns.iter().filter(|t| self.runs(t)).map(|t| t.id.0).collect();
                own.into_iter().for_each(|turn| w.let_go(turn));
                w.set_fact(GONE[self.instance as usize], 1);
                Some(false)
            });
        }
    }
}

/// What every instance does at its start and now and then for sessions (S-14, S-22): lifts closes
/// and ends turns whose leases have lapsed. Whether a lease has lapsed is the kernel's word.
#[derive(Clone, Copy, Debug)]
pub struct Keeper {
    /// Whose process.
    pub instance: u8,
    /// Reads the rows by a clock of its own, which runs ahead.
    pub hasty: bool,
    /// On another machine: cannot tell whether a runtime lives.
    pub blind: bool,
    /// Lifts closes.
    pub lifts: bool,
}

impl Keeper {
    /// As the host does it.
    pub const fn new(instance: u8) -> Keeper {
        Keeper { instance, hasty: false, blind: false, lifts: true }
    }

    /// One on another machine whose clock runs ahead: what it asks for, the kernel must refuse.
    pub const fn hasty(instance: u8) -> Keeper {
        Keeper { hasty: true, blind: true, ..Keeper::new(instance) }
    }
}

impl Actor for Keeper {
    type Local = ();

    fn name(&self) -> String {
        let hasty = if self.hasty { ", its clock ahead" } else { "" };
        format!("instance {} (recovering{hasty})", letter(self.instance))
    }

    fn begin(&self) {}

    fn act(&self, (): (), world: &World, steps: &mut Steps<'_, ()>) {
        use freehold_kernel::SessionLifecycle::Closing;
        let sessions = world.view.sessions.iter().filter(|s| s.lifecycle == Closing && self.lifts);
        for row in sessions {
            if !self.hasty && row.closing_lease.is_some_and(|lease| lease > NOW) {
                continue;
            }
            let command = Command::System(SystemCommand::RecoverClosing { session: row.id });
            let says = format_args!("lifts the close of {}", said(row.id.0));
            let token = row.closing_token;
            steps.ask(says, Sender::ALL, command, |answer, w| {
                answer.ok()?;
                if let Some(token) = token {
                    w.let_go(token.0);
                }
                Some(())
            });
        }
        for turn in world.view.turns.iter().filter(|t| t.phase != TurnPhase::Ended) {
            if !self.hasty && turn.lease_until > NOW {
                continue;
            }
            // Who lives says so; of a dead one it is known, or not.
            let alive = world.holds(turn.id.0) && !self.blind;
            let liveness = if alive { Liveness::Alive } else { Liveness::Unknown };
            let finds = if alive { "alive" } else { "not known to be alive" };
            let command = Command::System(SystemCommand::RecoverTurn { turn: turn.id, liveness });
            let says = format_args!("finds {} {finds}, and asks to end it", said(turn.id.0));
            let id = turn.id;
            steps.ask(says, Sender::ALL, command, |answer, w| {
                let ended = w.view.turns.id(id.0).is_none_or(|t| t.phase == TurnPhase::Ended);
                answer.ok()?;
                if ended {
                    w.let_go(id.0);
                }
                Some(())
            });
        }
    }
}
