//! Wrong designs of the making of worktrees and of its meeting with a barrier.

use freehold_kernel::{
    AttemptCommand, AttemptState, Command, Guard, JobState, OperationCommand, Reply, Scope,
    SessionCommand, SessionSource, TaskLifecycle, Trigger,
};

use crate::explore::Broken;
use crate::models::actors::maker::begin;
use crate::models::actors::operator::Operating;
use crate::models::actors::{Clock, Executor, Maker, Operator, Recovery, Worker};
use crate::models::begin as start;
use crate::models::catalogue::Design;
use crate::models::names::*;
use crate::system::{Actor, Renaming, Steps, System};
use crate::world::{Done, Sender, World};

/// The designs.
pub const DESIGNS: &[Design] = &[
    Design {
        name: "inventory-before-barrier",
        says: "the operation reads what the task owns before it bars it, to hold the barrier for a \
               shorter time",
        rule: "B-4",
        build: || {
            System::new("inventory-before-barrier", two_tasks())
                .with(Maker { n: 0, environment: 0, instance: 0 })
                .with(Planner)
        },
        property: "P-7",
        steps: 4,
    },
    Design {
        name: "barrier-read-without-lock",
        says: "the host looks for a barrier in one transaction and inserts in the next",
        rule: "B-3",
        build: || {
            System::new("barrier-read-without-lock", two_tasks())
                .with(Operator::new(0, Trigger::Archive, 0))
                .with(Reader(0))
        },
        property: "P-6",
        steps: 3,
    },
    Design {
        name: "borrower-checks-own-task",
        says: "the creation of a session looks at its own task alone, for the environment has an \
               owner to look after it",
        rule: "W-23",
        build: || {
            System::new("borrower-checks-own-task", two_tasks())
                .with(Operator::new(0, Trigger::Archive, 0))
                .with(Borrows(1))
        },
        property: "P-6",
        steps: 2,
    },
    Design {
        name: "compensation-tied-to-request",
        says: "whoever is refused removes what it made before it answers, so no row has to say so",
        rule: "W-4",
        build: || {
            System::new("compensation-tied-to-request", two_tasks())
                .with(Request(0))
                .with(Operator::new(0, Trigger::Archive, 0))
        },
        property: "P-3",
        steps: 4,
    },
    Design {
        name: "attempts-dropped-with-task",
        says: "attempts have a foreign key to their task and go with it",
        rule: "D-16",
        build: || {
            System::new("attempts-dropped-with-task", two_tasks())
                .with(Maker { n: 0, environment: 0, instance: 0 })
                .with(Cascade)
                .with(Worker { instance: 1 })
                .with(Clock)
        },
        property: "P-3",
        steps: 8,
    },
    Design {
        name: "recovery-needs-a-swept-row",
        says: "recovery reads the environment of each attempt first; a deletion sweeps those rows",
        rule: "W-5, D-16",
        build: || {
            System::new("recovery-needs-a-swept-row", two_tasks())
                .with(Maker { n: 0, environment: 0, instance: 0 })
                .with(Operator::new(0, Trigger::Delete, 0))
                .with(Worker { instance: 1 })
                .with(Joins(Recovery { instance: 1 }))
                .with(Clock)
        },
        property: "stuck",
        steps: 4,
    },
];

pub(super) fn two_tasks() -> World {
    let mut world = start::world(2);
    start::add_task(&mut world, 0, None);
    start::add_task(&mut world, 1, None);
    start::add_environment(&mut world, 0, 0);
    world
}

/// Submits, and takes a refusal for nothing having happened.
fn accepted(
    world: &mut World,
    command: Command,
    without: &[Guard],
) -> Result<Option<Done>, Broken> {
    Ok(world.submit(Sender::ALL, command, without)?.ok())
}

fn snapshot() -> Command {
    let (operation, instance) = (operation(0), instance(0));
    Command::Operation(OperationCommand::Snapshot { operation, scope: Scope::Task, instance })
}

fn mutate() -> Command {
    let (operation, instance) = (operation(0), instance(0));
    Command::Operation(OperationCommand::Mutate { operation, scope: Scope::Task, instance })
}

/// Reads the inventory, bars the task, and writes down what it had read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planner;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Planning {
    Idle,
    /// Whether worktree 0, or its attempt, was there.
    Read(bool),
    Barred,
    Ended,
}

impl Actor for Planner {
    type Local = Planning;

    fn name(&self) -> String {
        "instance A (operation 0)".to_owned()
    }

    fn begin(&self) -> Planning {
        Planning::Idle
    }

    fn act(&self, at: Planning, world: &World, steps: &mut Steps<'_, Planning>) {
        match at {
            Planning::Idle => {
                let there = !world.view.repos.is_empty() || !world.view.attempts.is_empty();
                steps.outside(format_args!("reads what task 0 owns"), |_| {
                    Some(Planning::Read(there))
                });
            }
            Planning::Read(there) => {
                let says = format_args!("bars task 0 and writes down what it had read");
                steps.at_once(says, |w, without| {
                    let reserve = Operator::new(0, Trigger::Delete, 0).reserve();
                    if accepted(w, Command::Operation(reserve), without)?.is_none() {
                        return Ok(None);
                    }
                    accepted(w, snapshot(), without)?;
                    if !there {
                        let read: Vec<u128> = w.view.resources.iter().map(|r| r.id.0).collect();
                        read.into_iter().for_each(|id| w.view.resources.remove(id));
                        w.view.commit();
                    }
                    Ok(Some(Planning::Barred))
                });
            }
            Planning::Barred => {
                let says = format_args!("commits to delete task 0, and activates the job");
                steps.ask(says, Sender::ALL, mutate(), |_, _| Some(Planning::Ended));
            }
            Planning::Ended => {}
        }
    }
}

/// Looks whether the task is free, and creates session `n` later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader(pub(super) u8);

impl Actor for Reader {
    type Local = u8;

    fn name(&self) -> String {
        "instance B".to_owned()
    }

    fn begin(&self) -> u8 {
        0
    }

    fn act(&self, at: u8, world: &World, steps: &mut Steps<'_, u8>) {
        let free =
            world.view.tasks.id(task(0).0).is_some_and(|t| t.lifecycle == TaskLifecycle::Active)
                && world.view.jobs.iter().all(|j| j.state != JobState::Prepared);
        match at {
            0 if free => {
                steps.outside(format_args!("sees that nothing bars task 0"), |_| Some(1));
            }
            1 => {
                let says = format_args!("creates a session in task 0");
                steps.at_once(says, |w, _| {
                    let blind = [Guard::TaskActive, Guard::TaskUnbarred];
                    accepted(w, create(self.0, 0), &blind).map(|_| Some(2))
                });
            }
            _done => {}
        }
    }
}

fn create(n: u8, of: u8) -> Command {
    Command::Session(SessionCommand::Create {
        session: session(n),
        task: task(of),
        environment: Some(environment(0)),
        source: SessionSource::Person,
        parent: None,
    })
}

/// Creates session `n` of task 1 on the environment of task 0, looking at task 1 alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Borrows(pub(super) u8);

impl Actor for Borrows {
    type Local = bool;

    fn name(&self) -> String {
        "instance B".to_owned()
    }

    fn begin(&self) -> bool {
        false
    }

    fn act(&self, done: bool, _world: &World, steps: &mut Steps<'_, bool>) {
        if done {
            return;
        }
        let says = format_args!("creates a session of task 1 that borrows environment 0");
        steps.at_once(says, |w, _| {
            let blind = [Guard::OwnerActive, Guard::OwnerUnbarred];
            accepted(w, create(self.0, 1), &blind).map(|_| Some(true))
        });
    }
}

/// The maker of worktree `n`, whose attempt ends with its request, whatever is on the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request(pub(super) u8);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Asking {
    Idle,
    Begun,
    Made,
    Undoing,
    Ended,
}

impl Actor for Request {
    type Local = Asking;

    fn name(&self) -> String {
        "instance A (making)".to_owned()
    }

    fn begin(&self) -> Asking {
        Asking::Idle
    }

    fn act(&self, at: Asking, _world: &World, steps: &mut Steps<'_, Asking>) {
        let n = self.0;
        let (attempt, token) = (attempt(n), maker_token(n));
        match at {
            Asking::Idle => {
                let says = format_args!("records that it will make worktree {n}");
                let command = Command::Attempt(begin(n, 0, 0));
                steps.ask(says, Sender::ALL, command, |answer, _| {
                    Some(if answer.is_ok() { Asking::Begun } else { Asking::Ended })
                });
            }
            Asking::Begun => {
                let says = format_args!("makes worktree {n} and records that it is verified");
                steps.at_once(says, |w, without| {
                    start::put_worktree(w, n);
                    let verified = AttemptCommand::Materialised { attempt, token };
                    let done = accepted(w, Command::Attempt(verified), without)?;
                    Ok(Some(if done.is_some() { Asking::Made } else { Asking::Undoing }))
                });
            }
            Asking::Made => {
                let says = format_args!("asks for the row of worktree {n}; what fails, ends here");
                steps.at_once(says, |w, without| {
                    let persist = Command::Attempt(AttemptCommand::Persist { attempt, token });
                    let done = accepted(w, persist, without)?;
                    if done.is_some_and(|d| d.reply == Reply::Done) {
                        return Ok(Some(Asking::Ended));
                    }
                    if let Some(row) = w.view.attempts.edit(attempt.0) {
                        row.state = AttemptState::Compensated;
                    }
                    w.view.commit();
                    Ok(Some(Asking::Undoing))
                });
            }
            Asking::Undoing => {
                steps.outside(format_args!("removes worktree {n}"), |w| {
                    w.disk.worktrees.retain(|t| t.identity != stamp(n));
                    Some(Asking::Ended)
                });
            }
            Asking::Ended => {}
        }
    }
}

/// Deletes task 0; its attempts go with its row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cascade;

impl Actor for Cascade {
    type Local = Operating;

    fn name(&self) -> String {
        Operator::new(0, Trigger::Delete, 0).name()
    }

    fn begin(&self) -> Operating {
        Operating::Idle
    }

    fn act(&self, at: Operating, world: &World, steps: &mut Steps<'_, Operating>) {
        if at != Operating::Taken {
            return Operator::new(0, Trigger::Delete, 0).act(at, world, steps);
        }
        let says = format_args!("commits to delete task 0; its attempts go with its row");
        steps.at_once(says, |w, without| {
            if accepted(w, mutate(), without)?.is_none() {
                return Ok(Some(Operating::Refused));
            }
            let of_task: Vec<u128> = w.view.attempts.iter().map(|a| a.id.0).collect();
            of_task.into_iter().for_each(|id| w.view.attempts.remove(id));
            w.view.commit();
            w.let_go(operation(0).0);
            Ok(Some(Operating::Ended))
        });
    }
}

/// Recovery whose pass ends at the first attempt whose environment cannot be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joins(pub(super) Recovery);

impl Actor for Joins {
    type Local = Option<Executor>;

    fn name(&self) -> String {
        self.0.name()
    }

    fn begin(&self) -> Option<Executor> {
        self.0.begin()
    }

    fn at_rest(&self, local: Option<Executor>) -> bool {
        self.0.at_rest(local)
    }

    fn rename(&self, local: Option<Executor>, renaming: &Renaming) -> Option<Executor> {
        self.0.rename(local, renaming)
    }

    fn act(&self, local: Option<Executor>, world: &World, steps: &mut Steps<'_, Option<Executor>>) {
        let unreadable = world.view.attempts.iter().any(|a| {
            matches!(
                a.state,
                AttemptState::Intended | AttemptState::Materialised | AttemptState::Compensating
            ) && world.view.environments.id(a.task_environment_id.0).is_none()
        });
        if local.is_some() || !unreadable {
            self.0.act(local, world, steps);
        }
    }
}
