//! People of whom nothing is known but what they may do: one thing or another, in any order, so
//! often. For random walks.

use freehold_kernel::properties::{Physical, Place};
use freehold_kernel::{
    AttemptCommand, Command, InputState, JobState, OperatorCommand, Permissions, Reply, SessionId,
    TurnCommand, Unsaved,
};

use super::maker::begin;
use super::turner::GONE;
use crate::models::names::*;
use crate::system::{Actor, Steps};
use crate::world::{Sender, World};

/// The first numbers of worktrees are left to makers.
const MAKERS: usize = 8;
/// One in so many choices is thought of at a time.
const TURNS: usize = 7;

/// One thing that may be done.
#[derive(Clone, Debug)]
pub enum Choice {
    /// Asks for this; as the rest of a sentence.
    Ask(String, Box<Command>),
    /// Works in the worktree at this path and commits nothing.
    Write(u8),
    /// Retries a failed job, or cancels one that waits for its next try (C-15).
    Operate,
    /// Makes a worktree in this environment, all at once: that making is interrupted is for
    /// makers.
    Make(u8),
}

/// People who do what they like.
#[derive(Clone, Debug)]
pub struct Chooser {
    /// The beginning of the sentences.
    pub who: &'static str,
    /// What they may do.
    pub choices: Vec<Choice>,
    /// How often; what is refused does not count.
    pub times: u8,
}

impl Chooser {
    fn operate(done: u8, world: &World, steps: &mut Steps<'_, u8>) {
        for row in world.view.jobs.iter() {
            let job = row.id;
            let (verb, command) = match row.state {
                JobState::Failed => ("retries", OperatorCommand::Retry { job }),
                JobState::RetryWait => ("cancels", OperatorCommand::Cancel { job }),
                JobState::Prepared
                | JobState::Pending
                | JobState::Running
                | JobState::Succeeded
                | JobState::Cancelled => continue,
            };
            let says = format_args!("{verb} the job of {}", said(row.operation_id.0));
            steps.ask(says, Sender::ALL, Command::Operator(command), |answer, _| {
                answer.ok().map(|_| done + 1)
            });
        }
    }

    fn make(environment: u8, done: u8, world: &World, steps: &mut Steps<'_, u8>) {
        // Makers have the first numbers.
        let Ok(n) = u8::try_from(world.view.attempts.len() + MAKERS) else { return };
        let (attempt, token) = (attempt(n), maker_token(n));
        let says = format_args!("has worktree {n} made in environment {environment}");
        steps.at_once(says, |w, without| {
            for command in [
                begin(n, environment, 0),
                AttemptCommand::Materialised { attempt, token },
                AttemptCommand::Persist { attempt, token },
            ] {
                if w.submit(Sender::ALL, Command::Attempt(command), without)?.is_err() {
                    return Ok(None);
                }
                if matches!(command, AttemptCommand::Begin { .. }) {
                    w.disk.worktrees.push(Physical {
                        identity: stamp(n),
                        root: root(0),
                        path: path(n),
                        made_by: Some(attempt),
                        place: Place::AtHome,
                        unsaved: Unsaved::NONE,
                        salvaged: Unsaved::NONE,
                        moved_by: None,
                    });
                }
            }
            Ok(Some(done + 1))
        });
    }

    /// Takes back what waits although nothing will take it up (S-11); as often as need be.
    fn take_back(done: u8, world: &World, steps: &mut Steps<'_, u8>) {
        let busy = |session: Option<SessionId>| {
            let mut turns = world.view.turns.iter();
            turns.any(|t| Some(t.session_id) == session && t.ended_at.is_none())
        };
        for row in world.view.inputs.iter() {
            if row.state == InputState::Queued && !busy(row.session_id) {
                let command = Command::Turn(TurnCommand::CancelInput { input: row.id });
                let says = format_args!("takes {} back", said(row.id.0));
                steps.ask(says, Sender::ALL, command, |answer, _| answer.ok().map(|_| done));
            }
        }
    }

    fn write(n: u8, done: u8, world: &World, steps: &mut Steps<'_, u8>) {
        let owned = world.view.repos.iter().any(|r| r.worktree_path == Some(path(n)));
        let Some(tree) = world.disk.at(path(n)).filter(|_| owned) else { return };
        if !tree.unsaved.is_none() {
            return;
        }
        let identity = tree.identity;
        let says = format_args!("works in {} and commits nothing", said(identity.0));
        steps.outside(says, |w| {
            let tree = w.disk.find_mut(identity)?;
            tree.unsaved = tree.unsaved.with(Unsaved::TRACKED);
            Some(done + 1)
        });
    }
}

fn gone(world: &World, command: &Command) -> bool {
    match command {
        Command::Turn(TurnCommand::Submit { instance, .. }) => {
            GONE.get((instance.0 & 0xff) as usize).is_some_and(|name| world.fact(name) != 0)
        }
        _another => false,
    }
}

impl Actor for Chooser {
    /// How often something was done.
    type Local = u8;

    fn name(&self) -> String {
        self.who.to_owned()
    }

    fn begin(&self) -> u8 {
        0
    }

    fn act(&self, done: u8, world: &World, steps: &mut Steps<'_, u8>) {
        Chooser::take_back(done, world, steps);
        if done == self.times {
            return;
        }
        // A few at a time, or people would do everything before anybody else has moved.
        let now = self.choices.iter().skip(usize::from(done) % TURNS).step_by(TURNS);
        steps.outside(format_args!("thinks of something else"), |_| Some(done + 1));
        for choice in now {
            match choice {
                Choice::Write(n) => Chooser::write(*n, done, world, steps),
                Choice::Operate => Chooser::operate(done, world, steps),
                Choice::Make(n) => Chooser::make(*n, done, world, steps),
                // Nothing is sent through a process that is gone.
                Choice::Ask(_, command) if gone(world, command) => {}
                Choice::Ask(says, command) => {
                    let sender = Sender::who_may(Permissions::ALL);
                    let new =
                        |turn: &freehold_kernel::Turn| world.view.turns.id(turn.id.0).is_none();
                    steps.ask(format_args!("{says}"), sender, **command, |answer, w| {
                        // What changes nothing was not done.
                        (answer.ok()?.reply != Reply::Unchanged).then_some(())?;
                        // Whoever runs an admitted turn holds it.
                        let begun = w.view.turns.iter().find(|t| new(t)).map(|t| t.id.0);
                        begun.into_iter().for_each(|turn| w.hold(turn));
                        Some(done + 1)
                    });
                }
            }
        }
    }
}
