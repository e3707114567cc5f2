//! Those who send inputs and write statuses: a sender with its request id, who asks again when the
//! reply was lost (D-19) and takes back what nobody takes up; a writer that is late (S-4); the
//! lease of an instance (D-15).

use freehold_kernel::{
    Activity, Command, ContentHash, InputState, InstanceId, Origin, Permissions, RequestId,
    RuntimeKind, SessionCommand, SessionLifecycle, SystemCommand, TurnCommand,
};

use super::turner::GONE;
use crate::models::names::*;
use crate::system::{Actor, Fault, Steps};
use crate::world::{LAPSED, NOW, Sender as By, World};

/// Sends one input to a session.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    /// The number of the input, and of the turn and runtime that it may begin.
    pub n: u8,
    /// To which session.
    pub session: u8,
    /// Where it comes from.
    pub origin: Origin,
    /// Through which instance.
    pub instance: u8,
    /// How many instances run turns, from A on. Only when all of them are gone does nobody take
    /// up what waits (P-44), and the sender takes it back.
    pub turners: u8,
}

/// Where a sender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sending {
    /// Nothing sent.
    Idle,
    /// Sent, and no reply came.
    Unsure,
    /// Accepted: delivered or queued.
    Sent,
    /// Refused, with its content returned, or taken back.
    Ended,
}

/// The command that sends input `n`.
pub fn submit(n: u8, to: u8, origin: Origin, by: u8) -> Command {
    Command::Turn(TurnCommand::Submit {
        session: session(to),
        input: input(n),
        origin,
        turn: turn(n),
        runtime: runtime(n),
        runtime_kind: RuntimeKind::Local,
        instance: instance(by),
    })
}

/// Somebody who may do everything, with this request id and content.
pub const fn asking(request: u8, content: u8) -> By {
    By {
        may: Permissions::ALL,
        request: Some(RequestId(0x7000 + request as u128)),
        content: ContentHash(0x7100 + content as u128),
    }
}

impl Sender {
    fn send(self, lost: bool, again: bool, steps: &mut Steps<'_, Sending>) {
        let n = self.n;
        let says = match (again, lost) {
            (false, false) => format!("sends input {n} to session {}", self.session),
            (false, true) => {
                format!("sends input {n} to session {}, and the reply is lost", self.session)
            }
            (true, _) => format!("asks again for input {n}, under the same request id"),
        };
        let command = submit(n, self.session, self.origin, self.instance);
        steps.ask(format_args!("{says}"), asking(n, n), command, |answer, w| {
            let Ok(_) = answer else {
                return (!lost).then_some(Sending::Ended);
            };
            // The instance holds whatever turn it was given.
            let given: Vec<u128> = w
                .view
                .turns
                .iter()
                .filter(|t| t.id == turn(n) && t.ended_at.is_none())
                .map(|t| t.id.0)
                .collect();
            if !again {
                given.into_iter().for_each(|t| w.hold(t));
            }
            Some(if lost { Sending::Unsure } else { Sending::Sent })
        });
    }
}

impl Actor for Sender {
    type Local = Sending;

    fn name(&self) -> String {
        format!("a sender ({})", self.origin.code())
    }

    fn begin(&self) -> Sending {
        Sending::Idle
    }

    fn at_rest(&self, at: Sending) -> bool {
        at != Sending::Unsure
    }

    fn act(&self, at: Sending, world: &World, steps: &mut Steps<'_, Sending>) {
        match at {
            // The connection is gone with the process; the client shows the text as not sent.
            Sending::Idle if world.fact(GONE[self.instance as usize]) != 0 => {}
            Sending::Idle => {
                self.send(false, false, steps);
                steps.costing(Fault::LostReply);
                self.send(true, false, steps);
            }
            Sending::Unsure => self.send(false, true, steps),
            Sending::Sent => {
                let waits = world
                    .view
                    .inputs
                    .id(input(self.n).0)
                    .is_some_and(|i| i.state == InputState::Queued);
                let busy = world
                    .view
                    .turns
                    .iter()
                    .any(|t| t.session_id == session(self.session) && t.ended_at.is_none());
                let runs = |n: usize| world.fact(GONE[n]) == 0;
                if waits && !busy && !(0..self.turners as usize).any(runs) {
                    let command = Command::Turn(TurnCommand::CancelInput { input: input(self.n) });
                    let says = format_args!("takes input {} back", self.n);
                    steps.ask(says, By::ALL, command, |answer, _| {
                        answer.ok().map(|_| Sending::Ended)
                    });
                }
            }
            Sending::Ended => {}
        }
    }
}

/// Somebody who notes a session's epoch now, and writes its activity some time later (S-4).
#[derive(Clone, Copy, Debug)]
pub struct Reporter {
    /// Of which session.
    pub session: u8,
    /// What it will say.
    pub activity: Activity,
}

impl Actor for Reporter {
    /// The epoch that it noted; 0 once it has written.
    type Local = Option<u32>;

    fn name(&self) -> String {
        "a runtime's reporter".to_owned()
    }

    fn begin(&self) -> Option<u32> {
        None
    }

    fn act(&self, noted: Option<u32>, world: &World, steps: &mut Steps<'_, Option<u32>>) {
        let n = self.session;
        match noted {
            None => {
                let row = world.view.sessions.id(session(n).0);
                let Some(row) = row.filter(|s| s.lifecycle == SessionLifecycle::Open) else {
                    return;
                };
                let epoch = row.epoch;
                let says = format_args!("notes that session {n} is in epoch {epoch}");
                steps.outside(says, |_| Some(Some(epoch)));
            }
            Some(0) => {}
            Some(epoch) => {
                let command = Command::Session(SessionCommand::RecordActivity {
                    session: session(n),
                    epoch,
                    activity: self.activity,
                });
                let what = self.activity.code();
                let says = format_args!("says, of epoch {epoch}, that session {n} is {what}");
                steps.ask(says, By::ALL, command, |_, _| Some(Some(0)));
            }
        }
    }
}

/// The lease of an instance: lapses when it is slow, comes back when it renews; and its drain.
#[derive(Clone, Copy, Debug)]
pub struct Pulse {
    /// Which instance.
    pub instance: u8,
    /// Whether it drains, and later does not any more.
    pub drains: bool,
}

impl Pulse {
    fn id(self) -> InstanceId {
        instance(self.instance)
    }
}

impl Actor for Pulse {
    type Local = ();

    fn name(&self) -> String {
        format!("instance {} (its lease)", letter(self.instance))
    }

    fn begin(&self) {}

    fn act(&self, (): (), world: &World, steps: &mut Steps<'_, ()>) {
        let Some(row) = world.view.instances.id(self.id().0) else { return };
        let id = self.id();
        if row.lease_until > NOW {
            steps.costing(Fault::Slow).outside(format_args!("is suspended, and lapses"), |w| {
                w.view.instances.edit(id.0)?.lease_until = LAPSED;
                w.view.commit();
                Some(())
            });
        } else {
            let command = Command::System(SystemCommand::RenewInstance { instance: id });
            let says = format_args!("is back, and renews");
            steps.ask(says, By::ALL, command, |answer, _| answer.ok().map(|_| ()));
        }
        if self.drains {
            let draining = !row.draining;
            let command = Command::System(SystemCommand::Drain { instance: id, draining });
            let says = if draining { "begins to drain" } else { "drains no longer" };
            steps
                .ask(format_args!("{says}"), By::ALL, command, |answer, _| answer.ok().map(|_| ()));
        }
    }
}

/// A client whose program is a list of requests, each under a request id.
#[derive(Clone, Debug)]
pub struct Client {
    /// What it sends, with request and content; after a refusal the rest is left out.
    pub requests: Vec<(&'static str, By, Command)>,
}

impl Actor for Client {
    type Local = u8;

    fn name(&self) -> String {
        "a client".to_owned()
    }

    fn begin(&self) -> u8 {
        0
    }

    fn act(&self, at: u8, _world: &World, steps: &mut Steps<'_, u8>) {
        let Some((says, by, command)) = self.requests.get(at as usize) else { return };
        let end = self.requests.len() as u8;
        steps.ask(format_args!("{says}"), *by, *command, |answer, _| {
            Some(if answer.is_ok() { at + 1 } else { end })
        });
    }
}
