//! Model 1 of 09: creation against barrier, every order and every crash, with the job behind it.
//!
//! ```text
//!   task 0 owns environment 0, in which worktrees are made; an operation bars it meanwhile
//!   task 1 borrows the environment, or receives it
//!   instance A makes and operates, instance B recovers and cleans
//! ```

mod kills;
mod systems;

use freehold_kernel::properties::Place;
use freehold_kernel::{
    AttemptState, Command, JobState, OperationCommand, Permissions, ResourceResult,
    SessionLifecycle, SystemCommand, TaskCommand, Trigger,
};

use super::actors::person::Act;
use super::actors::{Clock, Keeper, Maker, Operator, Person, Recovery, Recreator, Worker};
use super::begin;
use super::names::*;
use crate::system::{Fault, System};
use crate::world::World;

pub use kills::KILLS;
pub use systems::SYSTEMS;

/// What the borrower's session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Borrower {
    /// Nobody borrows.
    None,
    /// It is there from the beginning and is deleted.
    Leaves,
    /// It is created and stays.
    Comes,
    /// It is created, and deleted.
    Passes,
    /// It is there and archived, and is deleted out of the archive.
    Archived,
}

impl Borrower {
    fn closes(self) -> bool {
        matches!(self, Borrower::Leaves | Borrower::Passes | Borrower::Archived)
    }
}

/// How large the system is, and who takes part.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Worktrees that are being made (0 to 2).
    pub makers: u8,
    /// Whether worktree 0 is there from the beginning; makers make others then.
    pub made: bool,
    /// Whether a session of task 1 borrows the environment.
    pub borrower: Borrower,
    /// Whether somebody works in the worktree.
    pub writer: bool,
    /// Own sessions that are created meanwhile (0 to 2).
    pub sessions: u8,
    /// Whether a person unarchives the task.
    pub unarchive: bool,
    /// Whether the worktree is made again after that (W-7).
    pub again: bool,
    /// Whether a person gives the environment to task 1 (W-9).
    pub transfer: bool,
    /// Whether somebody else puts a folder where a worktree is to come.
    pub foreign: bool,
    /// Crashes.
    pub crashes: u8,
    /// Leases that lapse although their holder lives.
    pub slow: u8,
    /// Replies that are lost with their permission.
    pub lost: u8,
}

impl Size {
    /// One maker and one crash.
    pub const SMALL: Size = Size {
        makers: 1,
        made: false,
        borrower: Borrower::None,
        writer: false,
        sessions: 0,
        unarchive: false,
        again: false,
        transfer: false,
        foreign: false,
        crashes: 1,
        slow: 0,
        lost: 0,
    };
}

/// Whoever insists goes on asking until it is accepted.
fn insists(says: &'static str, command: Command) -> Act {
    Act::Ask { says, command, may: Permissions::ALL, insists: true }
}

fn asks(says: &'static str, command: Command) -> Act {
    Act::Ask { says, command, may: Permissions::ALL, insists: false }
}

/// The system: this operation meets the making of worktrees.
pub fn system(trigger: Trigger, size: Size) -> System {
    let mut world = begin::world(2);
    begin::add_task(&mut world, 0, None);
    begin::add_task(&mut world, 1, None);
    begin::add_environment(&mut world, 0, 0);
    if size.made {
        begin::add_worktree(&mut world, 0, 0, 0);
    }
    match size.borrower {
        Borrower::None | Borrower::Comes | Borrower::Passes => {}
        Borrower::Leaves => begin::add_session(&mut world, 3, 1, Some(0)),
        Borrower::Archived => {
            begin::add_session(&mut world, 3, 1, Some(0));
            let (begins, commits) = kills::close(3, freehold_kernel::ClosingKind::Archive);
            world.prepare(begins);
            world.prepare(commits);
        }
    }
    let mut system = System::new(format!("creation-{}", trigger.code()), world);
    let first = u8::from(size.made);
    for n in first..first + size.makers {
        system = system.with(Maker { n, environment: 0, instance: 0 });
    }
    if size.makers == 2 {
        system = interchangeable(system, first);
    }
    system = system.with(Operator::new(0, trigger, 0)).with(Worker { instance: 1 });
    // Where nobody dies and nobody is slow, nothing lapses: each undoes what is its own.
    system = if size.crashes == 0 && size.slow == 0 && size.lost == 0 {
        system.with(Recovery { instance: 0 })
    } else {
        system.with(Recovery { instance: 1 }).with(Clock)
    };
    if size.crashes + size.slow + size.lost > 0 && size.borrower.closes() {
        system = system.with(Keeper::new(1));
    }
    system = circumstances(people(system, trigger, size), trigger, size);
    system
        .allowing(size.crashes, Fault::Crash)
        .allowing(size.slow, Fault::Slow)
        .allowing(size.lost, Fault::LostReply)
}

fn gives() -> Person {
    let to = TaskCommand::Transfer { environment: environment(0), to: task(1) };
    let acts = vec![asks("gives environment 0 to task 1", Command::Task(to))];
    Person { who: "a person", acts, open: false }
}

fn compensated(w: &World) -> bool {
    w.view.attempts.iter().any(|a| a.state == AttemptState::Compensated)
}

/// A maker on one machine, recovery on two: the other machine, which does not serve the root, asks
/// to undo the attempt too.
pub fn hosts() -> System {
    let mut world = begin::world(1);
    let (instance, host) = (instance(1), host(1));
    world.prepare(Command::System(SystemCommand::RegisterInstance { instance, host }));
    begin::add_task(&mut world, 0, None);
    begin::add_environment(&mut world, 0, 0);
    System::new("creation-hosts", world)
        .with(Maker { n: 0, environment: 0, instance: 0 })
        .with(Operator::new(0, Trigger::Archive, 0))
        .with(Worker { instance: 0 })
        .with(Recovery { instance: 0 })
        .with(Recovery { instance: 1 })
        .with(Clock)
        .allowing(1, Fault::Crash)
        .allowing(1, Fault::LostReply)
        .sometimes("attempt compensated", compensated)
        .sometimes("job succeeded", |w| w.view.jobs.iter().any(|j| j.state == JobState::Succeeded))
}

/// Two makers, the first two who were seated, change places with all that is theirs.
pub fn interchangeable(system: System, first: u8) -> System {
    let (a, b) = (first, first + 1);
    let swaps = [
        (attempt(a).0, attempt(b).0),
        (repo(a).0, repo(b).0),
        (stamp(a).0, stamp(b).0),
        (path(a).0, path(b).0),
        (slug(a).0, slug(b).0),
        (branch(a).0, branch(b).0),
        (maker_token(a).0, maker_token(b).0),
    ];
    let also = [job(0).0, operation(0).0, environment(0).0, root(0).0];
    system.symmetric(&swaps, &[(0, 1)], &also)
}

/// So many persons create a session in task 0, each one. They change places, unless the task is
/// unarchived: which session becomes its primary then goes by their ids (S-6).
pub fn creating_sessions(mut system: System, sessions: u8, alike: bool) -> System {
    let first = system.seated();
    for n in 0..sessions {
        let acts = vec![asks("creates a session in task 0", kills::create(n, 0))];
        system = system.with(Person { who: "a person", acts, open: false });
    }
    if sessions == 2 && alike {
        let swap = [(session(0).0, session(1).0)];
        system = system.symmetric(&swap, &[(first, first + 1)], &[]);
    }
    system
}

fn people(mut system: System, trigger: Trigger, size: Size) -> System {
    system = creating_sessions(system, size.sessions, !size.unarchive);
    let borrowing = match size.borrower {
        Borrower::None => Vec::new(),
        Borrower::Comes => vec![comes()],
        Borrower::Leaves | Borrower::Archived => deletes().into(),
        Borrower::Passes => [comes()].into_iter().chain(deletes()).collect(),
    };
    if !borrowing.is_empty() {
        system = system.with(Person { who: "a borrower", acts: borrowing, open: false });
    }
    if size.writer {
        let acts = vec![Act::Write(0)];
        system = system.with(Person { who: "an agent", acts, open: false });
    }
    if size.transfer {
        system = system.with(gives());
    }
    if size.foreign {
        let acts = vec![Act::Put(u8::from(size.made))];
        system = system.with(Person { who: "a stranger", acts, open: false });
    }
    if size.unarchive && trigger == Trigger::Archive {
        let unarchive = OperationCommand::Unarchive { task: task(0), cascade: false };
        let acts = vec![insists("unarchives task 0", Command::Operation(unarchive))];
        system = system.with(Person { who: "a person", acts, open: false });
    }
    if size.again {
        system = system.with(Recreator { n: 2, of: 0, environment: 0, instance: 0 });
    }
    system
}

fn comes() -> Act {
    asks("creates a session of task 1 that borrows environment 0", kills::create(3, 1))
}

fn deletes() -> [Act; 2] {
    let (begins, commits) = kills::close(3, freehold_kernel::ClosingKind::Delete);
    [
        asks("begins to delete the borrowing session", begins),
        asks("deletes the borrowing session", commits),
    ]
}

fn circumstances(mut system: System, trigger: Trigger, size: Size) -> System {
    let any_gone = |w: &World| w.disk.worktrees.iter().any(|t| t.place == Place::Gone);
    system = system
        .sometimes("worktree owned", |w| !w.view.repos.is_empty())
        .sometimes("worktree removed", any_gone)
        .sometimes("job succeeded", |w| w.view.jobs.iter().any(|j| j.state == JobState::Succeeded));
    if size.makers > 0 {
        system = system.sometimes("attempt compensated", compensated);
    }
    if size.makers > 0 && size.crashes > 0 {
        system = system.sometimes("git goes on after its maker's death", |w| {
            let token = maker_token(0);
            w.disk.hands.iter().any(|h| h.token == token) && !w.holds(token.0)
        });
    }
    if size.crashes > 0 {
        system = system.sometimes("attempt or barrier taken from the dead", |w| {
            let recovered = w.view.attempts.iter().any(|a| a.instance_id == instance(1));
            recovered
                || w.view
                    .jobs
                    .iter()
                    .any(|j| j.state == JobState::Cancelled && j.mutated_at.is_none())
        });
    }
    if size.makers > 1 {
        system = system.sometimes("two removals", |w| w.view.removals.len() > 1);
    }
    if size.writer {
        system = system.sometimes("work salvaged", |w| !w.view.salvage.is_empty());
    }
    if size.unarchive {
        system = system.sometimes("job cancelled by the unarchive", |w| {
            w.view.jobs.iter().any(|j| j.state == JobState::Cancelled && j.mutated_at.is_some())
        });
    }
    if size.transfer {
        system = system.sometimes("environment given away", |w| {
            w.view.environments.id(environment(0).0).is_some_and(|e| e.task_id == task(1))
        });
    }
    if size.foreign {
        system =
            system.sometimes("something else at the path of an attempt that was undone", |w| {
                w.view.attempts.iter().any(|a| {
                    a.state == AttemptState::Compensated
                        && w.disk.at(a.path).is_some_and(|t| t.made_by.is_none())
                })
            });
    }
    if size.again {
        system = system.sometimes("made again in another place, and owned", |w| {
            w.view.repos.id(repo(0).0).is_some_and(|r| r.worktree_path == Some(path(2)))
        });
    }
    borrowing(system, trigger, size.borrower)
}

fn borrowing(system: System, trigger: Trigger, borrower: Borrower) -> System {
    let kept = |w: &World| {
        w.view
            .resources
            .iter()
            .any(|r| matches!(r.result, ResourceResult::Preserved | ResourceResult::Transferred))
    };
    let reconciled = |w: &World| {
        w.view
            .jobs
            .iter()
            .any(|j| j.trigger == Trigger::Reconcile && j.state == JobState::Succeeded)
    };
    match borrower {
        Borrower::None => system,
        Borrower::Archived => system.sometimes("archived borrower's session deleted", |w| {
            w.view.sessions.id(session(3).0).is_none()
        }),
        Borrower::Leaves | Borrower::Comes | Borrower::Passes => {
            let closing = |w: &World| {
                w.view.jobs.iter().any(|j| j.state == JobState::Prepared)
                    && w.view.sessions.iter().any(|s| s.lifecycle == SessionLifecycle::Closing)
            };
            // A reset is refused while the environment is borrowed (T-10).
            let reset = trigger == Trigger::EnvironmentReset;
            let system = if borrower == Borrower::Comes || reset {
                system
            } else {
                system.sometimes("a session closes while the barrier is held", closing)
            };
            match trigger {
                Trigger::EnvironmentReset => {
                    system.sometimes("reset after the borrower left", |w| {
                        w.view.identities.iter().any(|i| i.id.0 == session(3).0)
                            && w.view.sessions.id(session(3).0).is_none()
                            && w.view.jobs.iter().any(|j| j.mutated_at.is_some())
                    })
                }
                Trigger::Archive if borrower != Borrower::Comes => {
                    system.sometimes("borrower kept", kept).sometimes("reconciled", reconciled)
                }
                _other => system.sometimes("borrower kept", kept),
            }
        }
    }
}
