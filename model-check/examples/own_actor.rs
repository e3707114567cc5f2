//! A host's own actor and its own property, checked together with Freehold's: a janitor that
//! archives sessions which nobody uses. `cargo run -p freehold-model-check --example own_actor`.

use freehold_kernel::{ClosingKind, Command, Permissions, SessionCommand};
use freehold_model_check::models::actors::{Clock, Keeper, Person};
use freehold_model_check::models::begin;
use freehold_model_check::models::names::{closing_token, session};
use freehold_model_check::world::Sender;
use freehold_model_check::{Actor, Fault, Limits, Steps, Story, System, World, explore};

/// The janitor. A careful one asks as what it is, an automatic closer; the other one says that a
/// person asks, "so that it also gets rid of the rest".
pub(crate) struct Janitor {
    /// Whether it says what it is.
    pub(crate) careful: bool,
}

/// Where it is in its program. An actor may remember this and see the world, nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Sweeping {
    /// Looks for something to close.
    Looking,
    /// Has marked the session as closing.
    Closing,
    /// Done, or refused, or dead.
    Done,
}

impl Actor for Janitor {
    type Local = Sweeping;

    fn name(&self) -> String {
        "the janitor".to_owned()
    }

    fn begin(&self) -> Sweeping {
        Sweeping::Looking
    }

    fn at_rest(&self, at: Sweeping) -> bool {
        at != Sweeping::Closing
    }

    fn act(&self, at: Sweeping, _world: &World, steps: &mut Steps<'_, Sweeping>) {
        let (session, token) = (session(0), closing_token(0));
        let may = Sender::who_may(Permissions::SESSION);
        let ask = |command| Command::Session(command);
        match at {
            Sweeping::Looking => {
                let (kind, automatic) = (ClosingKind::Archive, self.careful);
                let close =
                    SessionCommand::BeginClose { session, kind, token, automatic, force: false };
                steps.ask(format_args!("begins to archive session 0"), may, ask(close), |ok, w| {
                    // What it holds by a lease, so that time passes it by only if it is slow.
                    ok.map_or(Some(Sweeping::Done), |_| {
                        w.hold(token.0);
                        Some(Sweeping::Closing)
                    })
                });
            }
            Sweeping::Closing => {
                let commit = SessionCommand::CommitClose { session, token };
                steps.ask(format_args!("archives session 0"), may, ask(commit), |_, w| {
                    w.let_go(token.0);
                    Some(Sweeping::Done)
                });
                // It may die here; Freehold's recovery lifts the mark.
                steps.costing(Fault::Crash).outside(format_args!("dies"), |w| {
                    w.let_go(token.0);
                    Some(Sweeping::Done)
                });
            }
            Sweeping::Done => {}
        }
    }
}

/// The host's own promise: what somebody has starred is there until he himself closes it.
fn starred_stays(world: &World) -> Result<(), String> {
    let lost = |s: &&freehold_kernel::Session| {
        s.starred && s.lifecycle == freehold_kernel::SessionLifecycle::Archived
    };
    match world.view.sessions.iter().find(lost) {
        Some(session) => Err(format!("starred session {:x} was archived", session.id.0)),
        None => Ok(()),
    }
}

/// A person stars a session while the janitor goes round.
pub(crate) fn system(careful: bool) -> System {
    let mut world = begin::world(1);
    begin::add_task(&mut world, 0, None);
    begin::add_session(&mut world, 0, 0, None);
    let star = Command::Session(SessionCommand::Star { session: session(0), starred: true });
    System::new(if careful { "janitor" } else { "careless janitor" }, world)
        .with(Janitor { careful })
        .with(Person::asks("a person", vec![("stars session 0", star)]))
        .with(Keeper::new(0))
        .with(Clock)
        .allowing(1, Fault::Crash)
        .allowing(1, Fault::Slow)
        .holding("starred stays", starred_stays)
        .sometimes("something is closing", |w| {
            w.view.sessions.iter().any(|s| s.closing_token.is_some())
        })
}

fn main() {
    for careful in [true, false] {
        let system = system(careful);
        let explored = explore(&system, Limits::default());
        println!("{}: {} states", system.name(), explored.states);
        match Story::of(system.name(), &[], &explored) {
            Some(story) => println!("{}", story.text()),
            None => println!("as promised: {}", explored.passed()),
        }
    }
}
