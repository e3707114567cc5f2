//! Kernels without one guard of sessions, turns and admissions, each in a system as small as its
//! harm.

use freehold_kernel::{
    Activity, ClosingKind, Command, Guard, OperationCommand, Origin, Permissions, SessionCommand,
    SessionSource, Trigger, TurnCommand,
};

use super::beginning;
use crate::models::actors::person::Act;
use crate::models::actors::sender::{asking, submit};
use crate::models::actors::{
    Client, Clock, Closer, Keeper, Maker, Operator, Person, Pulse, Reporter, Sender, Turner, Worker,
};
use crate::models::catalogue::Kill;
use crate::models::{begin, names::*};
use crate::system::{Fault, System};

const fn kill(
    guard: &'static [Guard],
    build: fn() -> System,
    property: &'static str,
    steps: usize,
) -> Kill {
    Kill { guards: guard, build, property, steps, why: "" }
}

const MACHINE: &str = "The guard gives the refusal its name and its place in the order; the \
                       machine of sessions refuses the same step, whoever asks for it.";

/// Guards that this model kills.
pub const KILLS: &[Kill] = &[
    kill(&[Guard::Permission], without_permission, "P-27", 1),
    kill(&[Guard::RequestContent], one_request_two_texts, "P-32", 2),
    kill(&[Guard::IdNeverUsed], old_id, "P-16", 3),
    Kill {
        why: MACHINE,
        ..kill(&[Guard::SessionArchived, Guard::LegalStep], reopened_while_deleted, "P-34", 2)
    },
    Kill {
        why: MACHINE,
        ..kill(&[Guard::NotAlreadyClosing, Guard::LegalStep], two_closers, "P-34", 2)
    },
    kill(&[Guard::NotStarred], starred, "P-38", 2),
    kill(&[Guard::ClosingToken], replaced_closer, "P-34", 5),
    kill(&[Guard::ClosingLease], slow_closer, "P-35", 3),
    kill(&[Guard::ClosingLapsed], hasty_lift, "P-34", 2),
    kill(&[Guard::HandOffUnbarred], hand_off, "P-6", 5),
    kill(&[Guard::TurnInstance], renewed_by_another, "P-34", 3),
    kill(&[Guard::TurnLapsed], hasty_end, "P-34", 2),
    kill(&[Guard::TurnNotAlive], slow_turn, "P-34", 3),
    kill(&[Guard::ActivityWhileOpen], late_write, "P-24", 3),
    kill(&[Guard::EpochCurrent], late_write_of_an_old_epoch, "P-24", 5),
    kill(&[Guard::RunningNeedsTurn], late_running, "P-23", 5),
    kill(&[Guard::InstanceAlive], lapsed_instance, "P-37", 2),
    kill(&[Guard::NotDraining], draining, "P-37", 2),
    kill(&[Guard::TaskActive], created_under_the_archive, "P-30", 4),
    kill(&[Guard::TaskUnbarred], created_under_the_archive, "P-6", 2),
    kill(&[Guard::SessionNotClosing], input_while_closing, "P-19", 2),
    kill(&[Guard::SessionOpen], input_while_closing, "P-18", 3),
    kill(&[Guard::NoTurnWork], input_while_closing, "P-19", 2),
    kill(&[Guard::RuntimeQuiesced], left_runtime, "P-18", 5),
    kill(&[Guard::BorrowedAvailable], reopened_borrower, "P-6", 2),
    kill(&[Guard::OneTurn], second_turn, "P-23", 4),
    kill(&[Guard::OwnerActive], new_borrower, "P-30", 4),
    kill(&[Guard::OwnerUnbarred], new_borrower, "P-6", 2),
    kill(&[Guard::EnvironmentFinished], turn_while_making, "P-33", 2),
    kill(&[Guard::NotInRemoval], turn_in_removal, "P-33", 7),
];

fn sender(n: u8) -> Sender {
    Sender { n, session: 0, origin: Origin::Person, instance: 0, turners: 1 }
}

fn turner() -> Turner {
    Turner { instance: 0, parks: false }
}

fn archiving() -> Operator {
    Operator::new(0, Trigger::Archive, 0)
}

fn create(n: u8, of: u8, linked: Option<u8>) -> Command {
    Command::Session(SessionCommand::Create {
        session: session(n),
        task: task(of),
        environment: linked.map(environment),
        source: SessionSource::Person,
        parent: None,
    })
}

fn without_permission() -> System {
    let acts = vec![Act::Ask {
        says: "asks to archive task 0",
        command: Command::Operation(archiving().reserve()),
        may: Permissions::SESSION,
        insists: false,
    }];
    let person = Person { who: "somebody who may use sessions only", acts, open: false };
    System::new("without-permission", beginning(1)).with(person)
}

fn one_request_two_texts() -> System {
    let send = |n| submit(n, 0, Origin::Person, 0);
    let requests = vec![
        ("sends a text", asking(0, 0), send(0)),
        ("sends another text under the same request id", asking(0, 1), send(1)),
    ];
    System::new("one-request-two-texts", beginning(1)).with(Client { requests })
}

fn old_id() -> System {
    let closer = Closer::new(0, 0, ClosingKind::Delete);
    let acts = vec![
        ("begins to delete session 0", closer.begin_close()),
        ("deletes session 0", closer.commit_close()),
        ("creates a session under the old id", create(0, 0, None)),
    ];
    System::new("old-id", beginning(1)).with(Person::asks("a person", acts))
}

fn reopened_while_deleted() -> System {
    let unarchive = Command::Session(SessionCommand::Unarchive { session: session(0) });
    System::new("reopened-while-deleted", beginning(1))
        .with(Closer::new(0, 0, ClosingKind::Delete))
        .with(Person::asks("a person", vec![("reopens session 0", unarchive)]))
}

fn two_closers() -> System {
    System::new("two-closers", beginning(1))
        .with(Closer::new(0, 0, ClosingKind::Archive))
        .with(Closer::new(1, 0, ClosingKind::Delete))
}

fn starred() -> System {
    let star = Command::Session(SessionCommand::Star { session: session(0), starred: true });
    System::new("starred", beginning(1))
        .with(Person::asks("a person", vec![("stars session 0", star)]))
        .with(Closer::new(0, 0, ClosingKind::Archive).automatic())
}

fn slow_closer() -> System {
    System::new("slow-closer", beginning(1))
        .with(Closer::new(0, 0, ClosingKind::Delete))
        .with(Clock)
        .allowing(1, Fault::Slow)
}

fn replaced_closer() -> System {
    System::new("replaced-closer", beginning(1))
        .with(Closer::new(0, 0, ClosingKind::Delete))
        .with(Closer::new(1, 0, ClosingKind::Archive))
        .with(Keeper::new(1))
        .with(Clock)
        .allowing(1, Fault::Slow)
}

fn hasty_lift() -> System {
    System::new("hasty-lift", beginning(1))
        .with(Closer::new(0, 0, ClosingKind::Archive))
        .with(Keeper::hasty(1))
}

fn hand_off() -> System {
    System::new("hand-off", beginning(1))
        .with(sender(0))
        .with(sender(1))
        .with(turner())
        .with(archiving())
}

fn renewed_by_another() -> System {
    let renew = TurnCommand::Renew { turn: turn(0), instance: instance(1) };
    let acts = vec![("renews turn 0, which it believes its own", Command::Turn(renew))];
    System::new("renewed-by-another", beginning(1))
        .with(sender(0))
        .with(Person::asks("instance B", acts))
        .with(Clock)
        .allowing(1, Fault::Slow)
}

fn hasty_end() -> System {
    System::new("hasty-end", beginning(1)).with(sender(0)).with(Keeper::hasty(1))
}

fn slow_turn() -> System {
    System::new("slow-turn", beginning(1))
        .with(sender(0))
        .with(Keeper::new(1))
        .with(Clock)
        .allowing(1, Fault::Slow)
}

fn late_write() -> System {
    System::new("late-write", beginning(1))
        .with(Closer::new(0, 0, ClosingKind::Archive))
        .with(Reporter { session: 0, activity: Activity::Idle })
}

fn late_write_of_an_old_epoch() -> System {
    let unarchive = Command::Session(SessionCommand::Unarchive { session: session(0) });
    let acts = vec![Act::Ask {
        says: "reopens session 0",
        command: unarchive,
        may: Permissions::SESSION,
        insists: true,
    }];
    System::new("late-write-of-an-old-epoch", beginning(1))
        .with(Closer::new(0, 0, ClosingKind::Archive))
        .with(Person { who: "a person", acts, open: false })
        .with(Reporter { session: 0, activity: Activity::Idle })
}

fn late_running() -> System {
    System::new("late-running", beginning(1))
        .with(sender(0))
        .with(turner())
        .with(Reporter { session: 0, activity: Activity::Running })
}

fn lapsed_instance() -> System {
    System::new("lapsed-instance", beginning(1))
        .with(sender(0))
        .with(Pulse { instance: 0, drains: false })
        .allowing(1, Fault::Slow)
}

fn draining() -> System {
    System::new("draining", beginning(1)).with(sender(0)).with(Pulse { instance: 0, drains: true })
}

fn created_under_the_archive() -> System {
    let acts = vec![("creates a session in task 0", create(1, 0, None))];
    System::new("created-under-the-archive", beginning(1))
        .with(archiving())
        .with(Person::asks("a person", acts))
}

fn input_while_closing() -> System {
    System::new("input-while-closing", beginning(1))
        .with(Closer::new(0, 0, ClosingKind::Archive))
        .with(sender(0))
}

fn left_runtime() -> System {
    System::new("left-runtime", beginning(1)).with(sender(0)).with(turner()).with(Closer::new(
        0,
        0,
        ClosingKind::Delete,
    ))
}

fn reopened_borrower() -> System {
    let mut world = beginning(1);
    begin::add_session(&mut world, 1, 1, Some(0));
    let closer = Closer::new(0, 1, ClosingKind::Archive);
    world.prepare(closer.begin_close());
    world.prepare(closer.commit_close());
    let unarchive = Command::Session(SessionCommand::Unarchive { session: session(1) });
    System::new("reopened-borrower", world).with(archiving()).with(Person::asks(
        "a person",
        vec![("reopens session 1, which borrowed environment 0", unarchive)],
    ))
}

fn second_turn() -> System {
    System::new("second-turn", beginning(1))
        .with(sender(0))
        .with(sender(1))
        .with(Reporter { session: 0, activity: Activity::Idle })
}

fn new_borrower() -> System {
    let says = "creates a session of task 1 that borrows environment 0";
    System::new("new-borrower", beginning(1))
        .with(archiving())
        .with(Person::asks("a person", vec![(says, create(1, 1, Some(0)))]))
}

fn turn_while_making() -> System {
    System::new("turn-while-making", beginning(1))
        .with(Maker { n: 0, environment: 0, instance: 0 })
        .with(sender(0))
}

fn turn_in_removal() -> System {
    let mut world = beginning(1);
    begin::add_worktree(&mut world, 0, 0, 0);
    let unarchive = OperationCommand::Unarchive { task: task(0), cascade: false };
    let acts = vec![Act::Ask {
        says: "unarchives task 0",
        command: Command::Operation(unarchive),
        may: Permissions::ALL,
        insists: true,
    }];
    System::new("turn-in-removal", world)
        .with(archiving())
        .with(Worker { instance: 1 })
        .with(Person { who: "a person", acts, open: false })
        .with(sender(0))
}
