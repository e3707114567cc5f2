//! A closer of a session (S-20..S-22): sets the mark, quiesces the runtime, commits; aborts when
//! something refuses. It may die between any two steps.

use freehold_kernel::{ClosingKind, Command, Reply, RuntimeStatus, SessionCommand, TurnCommand};

use crate::models::names::*;
use crate::system::{Actor, Fault, Steps};
use crate::world::{Sender, World};

/// A closer.
#[derive(Clone, Copy, Debug)]
pub struct Closer {
    /// Its number, and that of its token.
    pub n: u8,
    /// Which session.
    pub session: u8,
    /// Archive or delete.
    pub kind: ClosingKind,
    /// A policy instead of a person.
    pub automatic: bool,
    /// Ends parked work (S-15).
    pub force: bool,
}

/// Where a closer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Closing {
    /// Not begun.
    Idle,
    /// The mark is set.
    Begun,
    /// Something refused: the close will be aborted.
    Refused,
    /// Done, refused, aborted or told that the task took it over.
    Ended,
    /// Dead.
    Dead,
}

impl Closer {
    /// Somebody who closes a session, without force.
    pub fn new(n: u8, session: u8, kind: ClosingKind) -> Closer {
        Closer { n, session, kind, automatic: false, force: false }
    }

    /// With a person's force.
    #[must_use]
    pub fn by_force(self) -> Closer {
        Closer { force: true, ..self }
    }

    /// A policy's.
    #[must_use]
    pub fn automatic(self) -> Closer {
        Closer { automatic: true, ..self }
    }

    /// The first command.
    pub fn begin_close(self) -> Command {
        Command::Session(SessionCommand::BeginClose {
            session: session(self.session),
            kind: self.kind,
            token: closing_token(self.n),
            automatic: self.automatic,
            force: self.force,
        })
    }

    /// The last one.
    pub fn commit_close(self) -> Command {
        Command::Session(SessionCommand::CommitClose {
            session: session(self.session),
            token: closing_token(self.n),
        })
    }

    fn verb(self) -> &'static str {
        match (self.kind, self.automatic, self.force) {
            (ClosingKind::Archive, false, false) => "archive",
            (ClosingKind::Delete, false, false) => "delete",
            (ClosingKind::Archive, true, _) => "archive, as its policy says,",
            (ClosingKind::Delete, true, _) => "delete, as its policy says,",
            (ClosingKind::Archive, false, true) => "archive by force",
            (ClosingKind::Delete, false, true) => "delete by force",
        }
    }

    fn begins(self, lost: bool, steps: &mut Steps<'_, Closing>) {
        let (verb, n) = (self.verb(), self.session);
        let and = if lost { ", and the reply is lost" } else { "" };
        let token = closing_token(self.n);
        let says = format_args!("begins to {verb} session {n}{and}");
        steps.ask(says, Sender::ALL, self.begin_close(), |answer, w| match answer {
            // Whoever does not know whether the mark is set leaves it to recovery.
            Ok(_) if lost => Some(Closing::Dead),
            Ok(done) if done.reply == Reply::Unchanged => Some(Closing::Ended),
            Ok(_) => {
                w.hold(token.0);
                Some(Closing::Begun)
            }
            Err(_) => (!lost).then_some(Closing::Ended),
        });
    }
}

impl Actor for Closer {
    type Local = Closing;

    fn name(&self) -> String {
        format!("closer {}", self.n)
    }

    fn begin(&self) -> Closing {
        Closing::Idle
    }

    fn at_rest(&self, at: Closing) -> bool {
        matches!(at, Closing::Idle | Closing::Ended | Closing::Dead)
    }

    fn act(&self, at: Closing, world: &World, steps: &mut Steps<'_, Closing>) {
        let (n, token) = (self.session, closing_token(self.n));
        match at {
            Closing::Idle => {
                self.begins(false, steps);
                steps.costing(Fault::LostReply);
                self.begins(true, steps);
            }
            Closing::Begun => {
                // Those that the begin asked to stop, and no later ones.
                let runtimes = world.view.runtimes.iter();
                let runs = |r: &&freehold_kernel::Runtime| {
                    r.session_id == session(n) && r.status == RuntimeStatus::Stopping
                };
                for runtime in runtimes.filter(runs) {
                    let command = Command::Turn(TurnCommand::ReportRuntime {
                        runtime: runtime.id,
                        status: RuntimeStatus::Stopped,
                    });
                    let says = format_args!("stops the runtime of session {n}, and records that");
                    steps.ask(says, Sender::ALL, command, |answer, _| {
                        answer.ok().map(|_| Closing::Begun)
                    });
                }
                let verb = self.verb();
                let says = format_args!("commits to {verb} session {n}");
                steps.ask(says, Sender::ALL, self.commit_close(), |answer, w| match answer {
                    Ok(_) => {
                        w.let_go(token.0);
                        Some(Closing::Ended)
                    }
                    Err(_) => Some(Closing::Refused),
                });
            }
            Closing::Refused => {
                let command =
                    Command::Session(SessionCommand::AbortClose { session: session(n), token });
                let says = format_args!("aborts the close of session {n}");
                steps.ask(says, Sender::ALL, command, |_, w| {
                    w.let_go(token.0);
                    Some(Closing::Ended)
                });
            }
            Closing::Ended | Closing::Dead => {}
        }
        if matches!(at, Closing::Begun | Closing::Refused) {
            steps.costing(Fault::Crash).outside(format_args!("dies"), |w| {
                w.let_go(token.0);
                Some(Closing::Dead)
            });
        }
    }
}
