//! Model 3 of 09, as far as the kernel has it: turns and inputs of different origins against
//! closes, forced closes and reopening, with a task operation on top, drains, lapsed leases, lost
//! replies and crashes. Wakeups, questions and channel redirects have no rows yet (D-10).

mod kills;

use freehold_kernel::{
    Activity, ClosingKind, Command, InputReason, InputState, JobState, OperationCommand, Origin,
    Permissions, SessionCommand, SessionLifecycle, SessionSource, Trigger, TurnOutcome, TurnPhase,
};

use super::actors::person::Act;
use super::actors::{
    Clock, Closer, Keeper, Operator, Person, Pulse, Recovery, Reporter, Sender, Turner, Worker,
};
use super::begin;
use super::catalogue::{Entry, Scope};
use super::names::*;
use crate::system::{Fault, System};
use crate::world::{LAPSED, World};

pub use kills::KILLS;

/// Systems of this model.
pub const SYSTEMS: &[Entry] = &[
    Entry {
        name: "turns-close",
        model: 3,
        says: "two inputs of one session meet its archive and its delete; an instance and a \
               closer die",
        scope: Scope::Ci,
        build: || close("turns-close", Size::SMALL),
        states: 365_686,
    },
    Entry {
        name: "turns-force",
        model: 3,
        says: "a parked turn and a starred session meet a forced and an automatic close",
        scope: Scope::Ci,
        build: force,
        states: 594_756,
    },
    Entry {
        name: "turns-reopen",
        model: 3,
        says: "a session is closed, reopened and written to late; replies are lost",
        scope: Scope::Ci,
        build: reopen,
        states: 945_098,
    },
    Entry {
        name: "turns-drain",
        model: 3,
        says: "two instances run one session's turns; one of them drains, and its lease lapses",
        scope: Scope::Ci,
        build: drain,
        states: 162_464,
    },
    Entry {
        name: "turns-archive",
        model: 3,
        says: "turns and a close while the task is archived over them, and unarchived",
        scope: Scope::Ci,
        build: || {
            archive("turns-archive", Size { closers: 1, inputs: 2, crashes: 1, ..Size::SMALL })
        },
        states: 209_191,
    },
    Entry {
        name: "turns-borrow",
        model: 3,
        says: "a session that borrows is closed and reopened while the owner is archived",
        scope: Scope::Ci,
        build: borrow,
        states: 25_787,
    },
    Entry {
        name: "turns-large",
        model: 3,
        says: "two sessions, three inputs of different origins, two closers (one by force), a \
               crash, and the archive of their task on top",
        scope: Scope::Long,
        build: || archive("turns-large", Size::LARGE),
        states: 666_525,
    },
];

/// How large a system is.
#[derive(Clone, Copy, Debug)]
struct Size {
    /// Sessions of task 0 (1 or 2).
    sessions: u8,
    /// Inputs (1 to 3).
    inputs: u8,
    /// Closers (1 or 2).
    closers: u8,
    /// Whether turns are parked, and one closer uses force.
    parks: bool,
    /// Whether the task is unarchived again.
    reopens: bool,
    /// Crashes.
    crashes: u8,
    /// Leases that lapse although their holder lives.
    slow: u8,
}

impl Size {
    const SMALL: Size = Size {
        sessions: 1,
        inputs: 3,
        closers: 2,
        parks: true,
        reopens: true,
        crashes: 2,
        slow: 1,
    };
    const LARGE: Size = Size { sessions: 2, reopens: false, crashes: 1, slow: 0, ..Size::SMALL };
}

/// Task 0 with its environment and this many sessions; task 1.
fn beginning(sessions: u8) -> World {
    let mut world = begin::world(2);
    begin::add_task(&mut world, 0, None);
    begin::add_task(&mut world, 1, None);
    begin::add_environment(&mut world, 0, 0);
    for n in 0..sessions {
        begin::add_session(&mut world, n, 0, Some(0));
    }
    world
}

const ORIGINS: [Origin; 3] = [Origin::Person, Origin::Channel, Origin::Schedule];

/// Inputs, closers, the instance that runs turns, recovery and time.
fn crowd(name: &'static str, size: Size) -> System {
    let mut system = System::new(name, beginning(size.sessions));
    for n in 0..size.inputs {
        let to = if size.sessions > 1 && n == 2 { 1 } else { 0 };
        let origin = ORIGINS[n as usize];
        system = system.with(Sender { n, session: to, origin, instance: 0, turners: 1 });
    }
    let archive = Closer::new(0, 0, ClosingKind::Archive);
    system = system.with(if size.parks { archive.by_force() } else { archive });
    if size.closers > 1 {
        system = system.with(Closer::new(1, 0, ClosingKind::Delete));
    }
    system
        .with(Turner { instance: 0, parks: size.parks })
        .with(Keeper::new(1))
        .with(Clock)
        .sometimes("two turns one after the other", |w| {
            w.view.inputs.iter().filter(|i| i.state == InputState::Delivered).count() > 1
        })
        .sometimes("queued behind a turn", |w| {
            w.view.inputs.iter().any(|i| i.state == InputState::Queued)
                && w.view.turns.iter().any(|t| t.phase != TurnPhase::Ended)
        })
        .sometimes("interrupted by recovery", |w| {
            w.view.turns.iter().any(|t| t.outcome == Some(TurnOutcome::Interrupted))
        })
        .sometimes("a close whose closer is gone", |w| {
            w.view.sessions.iter().any(|s| s.closing_lease == Some(LAPSED))
        })
        .sometimes("archived", archived)
        .allowing(size.crashes, Fault::Crash)
        .allowing(size.slow, Fault::Slow)
}

fn archived(w: &World) -> bool {
    w.view.sessions.iter().any(|s| s.lifecycle == SessionLifecycle::Archived)
}

fn close(name: &'static str, size: Size) -> System {
    crowd(name, size)
        .sometimes("deleted", |w| !w.history.deleted.is_empty())
        .sometimes("deleted out of the archive", |w| {
            w.view
                .sessions
                .iter()
                .any(|s| s.lifecycle == SessionLifecycle::Closing && s.archived_at.is_some())
        })
        .sometimes("cancelled with its session", |w| {
            let closed = |r| r == InputReason::Archived || r == InputReason::Deleted;
            w.view.inputs.iter().any(|i| closed(i.reason))
        })
}

fn force() -> System {
    let mut world = beginning(1);
    begin::add_session(&mut world, 1, 0, Some(0));
    let star = SessionCommand::Star { session: session(1), starred: true };
    let acts = vec![("stars session 1", Command::Session(star))];
    System::new("turns-force", world)
        .with(Sender { n: 0, session: 0, origin: Origin::Person, instance: 0, turners: 1 })
        .with(Sender { n: 1, session: 1, origin: Origin::Hook, instance: 0, turners: 1 })
        .with(Closer::new(0, 0, ClosingKind::Archive).by_force())
        .with(Closer::new(1, 0, ClosingKind::Delete).by_force().automatic())
        .with(Closer::new(2, 1, ClosingKind::Archive).automatic())
        .with(Turner { instance: 0, parks: true })
        .with(Keeper::new(1))
        .with(Clock)
        .with(Person::asks("a person", acts))
        .sometimes("parked work dropped", |w| {
            w.view.turns.iter().any(|t| t.outcome == Some(TurnOutcome::Dropped))
        })
        .sometimes("starred and spared", |w| {
            w.view.sessions.id(session(1).0).is_some_and(|s| s.starred)
        })
        .sometimes("closed by its policy", |w| {
            w.view.sessions.id(session(1).0).is_some_and(|s| s.archived_at.is_some())
        })
        .allowing(1, Fault::Crash)
        .allowing(1, Fault::Slow)
        .allowing(1, Fault::LostReply)
}

fn reopen() -> System {
    let again = |kind, token| SessionCommand::BeginClose {
        session: session(0),
        kind,
        token: closing_token(token),
        automatic: false,
        force: false,
    };
    let unarchive = Command::Session(SessionCommand::Unarchive { session: session(0) });
    let ask = |says, command| Act::Ask { says, command, may: Permissions::SESSION, insists: true };
    let acts = vec![
        ask("reopens session 0", unarchive),
        ask("begins to archive it again", Command::Session(again(ClosingKind::Archive, 7))),
    ];
    let create = SessionCommand::Create {
        session: session(0),
        task: task(0),
        environment: None,
        source: SessionSource::Person,
        parent: None,
    };
    let create = vec![("asks for a new session under the old id", Command::Session(create))];
    System::new("turns-reopen", beginning(1))
        .with(Sender { n: 0, session: 0, origin: Origin::Person, instance: 0, turners: 1 })
        .with(Sender { n: 1, session: 0, origin: Origin::Plan, instance: 0, turners: 1 })
        .with(Closer::new(0, 0, ClosingKind::Archive))
        .with(Closer::new(1, 0, ClosingKind::Delete))
        .with(Person { who: "a person", acts, open: false })
        .with(Person::asks("a client", create))
        .with(Reporter { session: 0, activity: Activity::WaitingForInput })
        .with(Turner { instance: 0, parks: false })
        .with(Keeper::new(1))
        .with(Clock)
        .sometimes("reopened", |w| {
            w.view.sessions.iter().any(|s| s.lifecycle == SessionLifecycle::Open && s.epoch > 1)
        })
        .sometimes("a turn after reopening", |w| {
            w.view.turns.iter().any(|t| t.epoch > 1 && t.phase == TurnPhase::Running)
        })
        .sometimes("an old write arrived in time", |w| {
            w.view.sessions.iter().any(|s| s.activity == Activity::WaitingForInput)
        })
        .sometimes("deleted", |w| !w.history.deleted.is_empty())
        .allowing(1, Fault::Crash)
        .allowing(1, Fault::Slow)
        .allowing(2, Fault::LostReply)
}

fn drain() -> System {
    System::new("turns-drain", beginning(1))
        .with(Sender { n: 0, session: 0, origin: Origin::Person, instance: 0, turners: 2 })
        .with(Sender { n: 1, session: 0, origin: Origin::Channel, instance: 1, turners: 2 })
        .with(Sender { n: 2, session: 0, origin: Origin::Schedule, instance: 0, turners: 2 })
        .with(Pulse { instance: 0, drains: true })
        .with(Turner { instance: 0, parks: false })
        .with(Turner { instance: 1, parks: false })
        .with(Keeper::new(1))
        .with(Clock)
        .sometimes("a draining instance ends its turn", |w| {
            let draining = w.view.instances.id(instance(0).0).is_some_and(|i| i.draining);
            draining && w.view.turns.iter().any(|t| t.outcome == Some(TurnOutcome::Completed))
        })
        .sometimes("a queued input is not handed off", |w| {
            w.view.inputs.iter().any(|i| i.state == InputState::Queued)
                && w.view.turns.iter().all(|t| t.phase == TurnPhase::Ended)
        })
        .sometimes("a turn of each instance", |w| {
            let by = |n: u8| w.view.turns.iter().any(|t| t.instance_id == instance(n));
            by(0) && by(1)
        })
        .sometimes("what waited goes first", |w| {
            let at = |n: u8, is| w.view.inputs.id(input(n).0).is_some_and(|i| i.state == is);
            at(0, InputState::Delivered)
                && at(1, InputState::Delivered)
                && at(2, InputState::Queued)
        })
        .sometimes("an instance that lapsed still has its turn", |w| {
            w.view.instances.iter().any(|i| i.lease_until == LAPSED)
                && w.view.turns.iter().any(|t| t.phase == TurnPhase::Running)
        })
        .allowing(2, Fault::Crash)
        .allowing(2, Fault::Slow)
        .allowing(1, Fault::LostReply)
}

fn archive(name: &'static str, size: Size) -> System {
    let unarchive = OperationCommand::Unarchive { task: task(0), cascade: false };
    let acts = vec![Act::Ask {
        says: "unarchives task 0",
        command: Command::Operation(unarchive),
        may: Permissions::ALL,
        insists: true,
    }];
    let mut system = crowd(name, size)
        .with(Operator::new(0, Trigger::Archive, 0))
        .with(Worker { instance: 1 })
        .with(Recovery { instance: 1 });
    if size.reopens {
        system = system.with(Person { who: "a person", acts, open: false }).sometimes(
            "reopened with its task",
            |w| {
                w.view.jobs.iter().any(|j| j.mutated_at.is_some())
                    && w.view
                        .sessions
                        .iter()
                        .any(|s| s.lifecycle == SessionLifecycle::Open && s.epoch > 1)
            },
        );
    }
    if size.sessions > 1 {
        system = system
            .sometimes("two sessions at work", |w| {
                w.view.turns.iter().filter(|t| t.phase == TurnPhase::Running).count() > 1
            })
            .sometimes("three inputs reached their outcome", |w| {
                w.view.inputs.iter().filter(|i| i.state != InputState::Queued).count() > 2
            });
    }
    system
        .sometimes("cancelled with its task", |w| {
            w.view.inputs.iter().any(|i| i.reason == InputReason::TaskClosed)
        })
        .sometimes("a close taken over by its task", |w| {
            w.holds(closing_token(0).0)
                && w.view.sessions.iter().any(|s| s.archived_by == Some(operation(0)))
        })
        .sometimes("barrier lifted", |w| {
            w.view.jobs.iter().any(|j| j.state == JobState::Cancelled && j.mutated_at.is_none())
        })
}

fn borrow() -> System {
    let mut world = beginning(1);
    begin::add_session(&mut world, 1, 1, Some(0));
    let unarchive = Command::Session(SessionCommand::Unarchive { session: session(1) });
    let ask = |says, command| Act::Ask { says, command, may: Permissions::ALL, insists: true };
    let acts = vec![ask("reopens session 1", unarchive)];
    let link = SessionCommand::Link { session: session(1), environment: environment(0) };
    let link = vec![ask("links session 1 to environment 0", Command::Session(link))];
    System::new("turns-borrow", world)
        .with(Sender { n: 0, session: 1, origin: Origin::Person, instance: 0, turners: 1 })
        .with(Closer::new(0, 1, ClosingKind::Archive))
        .with(Person { who: "a person", acts, open: false })
        .with(Person { who: "another", acts: link, open: false })
        .with(Turner { instance: 0, parks: false })
        .with(Keeper::new(1))
        .with(Operator::new(0, Trigger::Archive, 0))
        .with(Worker { instance: 1 })
        .with(Recovery { instance: 1 })
        .with(Clock)
        .sometimes("opened without its environment", |w| {
            w.view.sessions.id(session(1).0).is_some_and(|s| {
                s.lifecycle == SessionLifecycle::Open && s.task_environment_id.is_none()
            })
        })
        .sometimes("borrowed from an archived owner", |w| {
            w.view.tasks.id(task(0).0).is_some_and(|t| t.archived_at.is_some())
                && w.view.sessions.id(session(1).0).is_some_and(|s| {
                    s.lifecycle == SessionLifecycle::Open && s.task_environment_id.is_some()
                })
        })
        .allowing(2, Fault::Crash)
        .allowing(1, Fault::Slow)
        .allowing(1, Fault::LostReply)
}
