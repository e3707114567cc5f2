//! Wrong designs of operations and of the start of instances.

use freehold_kernel::{
    CleanupCommand, Command, Guard, JobState, OperationCommand, Scope, SystemCommand, Token,
    Trigger, derive,
};

use crate::models::actors::{Clock, Operator, Recovery, Worker};
use crate::models::catalogue::Design;
use crate::models::{begin, names::*};
use crate::system::{Actor, Fault, Steps, System};
use crate::world::{NOW, Sender, World};

/// The designs.
pub const DESIGNS: &[Design] = &[
    Design {
        name: "start-cancels-prepared",
        says: "an instance that starts cancels every prepared job, since its own are all from \
               before; the other instance is in the middle of its operation",
        rule: "B-7, C-11",
        build: start_cancels_prepared,
        property: "P-34",
        steps: 2,
    },
    Design {
        name: "activation-before-mutation",
        says: "the job is made pending in one transaction and the task deleted in the next, so \
               that no deletion can be without its cleanup",
        rule: "B-5",
        build: || apart(First::Activation),
        property: "P-4",
        steps: 5,
    },
    Design {
        name: "mutation-before-activation",
        says: "the task is deleted in one transaction and its job made pending in the next, so \
               that nothing is cleaned up of what still lives",
        rule: "B-5",
        build: || apart(First::Mutation),
        property: "P-3",
        steps: 3,
    },
    Design {
        name: "draining-claims-again",
        says: "an instance that drains puts its claims back, and its worker goes on claiming what \
               is due",
        rule: "S-35, C-17",
        build: draining_claims,
        property: "P-37",
        steps: 2,
    },
];

/// An instance that has just started.
#[derive(Clone, Copy, Debug)]
struct Starter {
    instance: u8,
}

impl Actor for Starter {
    type Local = ();

    fn name(&self) -> String {
        format!("instance {} (starting)", letter(self.instance))
    }

    fn begin(&self) {}

    fn act(&self, (): (), world: &World, steps: &mut Steps<'_, ()>) {
        for row in world.view.jobs.iter().filter(|j| j.state == JobState::Prepared) {
            let command = Command::System(SystemCommand::RecoverBarrier { job: row.id });
            let says = format_args!("cancels the prepared job of {}", said(row.operation_id.0));
            steps.ask(says, Sender::ALL, command, |answer, _| answer.ok().map(|_| ()));
        }
    }
}

fn start_cancels_prepared() -> System {
    let mut world = begin::world(2);
    begin::add_task(&mut world, 0, None);
    System::new("start-cancels-prepared", world)
        .without(&[Guard::BarrierLapsed])
        .with(Operator::new(0, Trigger::Archive, 0))
        .with(Starter { instance: 1 })
        .with(Worker { instance: 1 })
}

/// Which half is committed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Activation,
    Mutation,
}

/// Deletes task 0, the mutation and the activation in two transactions.
#[derive(Clone, Copy, Debug)]
struct Halving {
    first: First,
}

/// Where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Half {
    Idle,
    Reserved,
    Taken,
    Between,
    Ended,
}

impl Halving {
    fn set(w: &mut World, state: JobState) {
        let prepared = state == JobState::Prepared;
        if let Some(row) = w.view.jobs.edit(job(0).0) {
            row.state = state;
            row.mutated_at = (!prepared).then_some(NOW);
            row.instance_id = prepared.then_some(instance(0));
            row.lease_until = prepared.then_some(NOW + freehold_kernel::Span(1_000));
        }
        for part in w.view.job_roots.iter_mut().filter(|p| p.job_id == job(0)) {
            part.state = state;
        }
        w.view.commit();
    }

    /// The kernel's own mutation, whatever the job has come to meanwhile.
    fn mutate(w: &mut World, without: &[Guard]) -> Result<bool, crate::Broken> {
        let command = Command::Operation(OperationCommand::Mutate {
            operation: operation(0),
            scope: Scope::Task,
            instance: instance(0),
        });
        Ok(w.submit(Sender::ALL, command, without)?.is_ok())
    }
}

impl Actor for Halving {
    type Local = Half;

    fn name(&self) -> String {
        "instance A (deleting task 0)".to_owned()
    }

    fn begin(&self) -> Half {
        Half::Idle
    }

    fn at_rest(&self, at: Half) -> bool {
        at == Half::Ended
    }

    fn act(&self, at: Half, _world: &World, steps: &mut Steps<'_, Half>) {
        let ask = |says: &str, command: OperationCommand, to: Half, steps: &mut Steps<'_, Half>| {
            let command = Command::Operation(command);
            steps.ask(format_args!("{says}"), Sender::ALL, command, |answer, w| {
                w.hold(operation(0).0);
                Some(if answer.is_ok() { to } else { Half::Ended })
            });
        };
        match at {
            Half::Idle => {
                let reserve = Operator::new(0, Trigger::Delete, 0).reserve();
                ask("bars task 0 to delete it", reserve, Half::Reserved, steps);
            }
            Half::Reserved => {
                let (operation, scope, instance) = (operation(0), Scope::Task, instance(0));
                let take = OperationCommand::Snapshot { operation, scope, instance };
                ask("takes the snapshot of task 0", take, Half::Taken, steps);
            }
            Half::Taken if self.first == First::Activation => {
                steps.outside(format_args!("activates the job, and no more"), |w| {
                    Halving::set(w, JobState::Pending);
                    Some(Half::Between)
                });
            }
            Half::Taken => {
                steps.at_once(format_args!("commits to delete task 0, and no more"), |w, g| {
                    if !Halving::mutate(w, g)? {
                        return Ok(Some(Half::Ended));
                    }
                    Halving::set(w, JobState::Prepared);
                    Ok(Some(Half::Between))
                });
            }
            Half::Between if self.first == First::Activation => {
                steps.at_once(format_args!("commits to delete task 0"), |w, g| {
                    let job = w.view.jobs.id(job(0).0).copied();
                    if job.is_some_and(|j| j.state == JobState::Pending) {
                        Halving::set(w, JobState::Prepared);
                        Halving::mutate(w, g)?;
                    }
                    Ok(Some(Half::Ended))
                });
            }
            Half::Between => {
                steps.outside(format_args!("activates the job"), |w| {
                    Halving::set(w, JobState::Pending);
                    Some(Half::Ended)
                });
            }
            Half::Ended => {}
        }
        if matches!(at, Half::Reserved | Half::Taken | Half::Between) {
            steps.costing(Fault::Crash).outside(format_args!("dies"), |w| {
                w.let_go(operation(0).0);
                Some(Half::Ended)
            });
        }
    }
}

fn apart(first: First) -> System {
    let mut world = begin::world(2);
    begin::add_task(&mut world, 0, None);
    begin::add_environment(&mut world, 0, 0);
    begin::add_worktree(&mut world, 0, 0, 0);
    System::new("activation-apart", world)
        .with(Halving { first })
        .with(Worker { instance: 1 })
        .with(Recovery { instance: 1 })
        .with(Clock)
        .allowing(1, Fault::Crash)
}

/// A worker that puts its claim back when its instance drains, and does not know that it drains.
#[derive(Clone, Copy, Debug)]
struct Tireless;

impl Actor for Tireless {
    /// Whether it has a claim, and how many it had.
    type Local = (bool, u8);

    fn name(&self) -> String {
        "instance B (cleaning)".to_owned()
    }

    fn begin(&self) -> (bool, u8) {
        (false, 0)
    }

    fn at_rest(&self, (claimed, _): (bool, u8)) -> bool {
        !claimed
    }

    fn act(&self, (claimed, n): (bool, u8), world: &World, steps: &mut Steps<'_, (bool, u8)>) {
        for part in world.view.job_roots.iter() {
            let job_root = part.id;
            let token = |n: u8| Token(derive(job_root.0, u128::from(n)));
            let held = part.state == JobState::Running;
            if claimed && held {
                let token = token(n);
                let put = CleanupCommand::PutBack { job_root, token, not_before: None };
                let says = format_args!("puts its claim back, since it drains");
                if world.view.instances.id(instance(1).0).is_some_and(|i| i.draining) {
                    steps.ask(says, Sender::ALL, Command::Cleanup(put), |answer, w| {
                        w.let_go(token.0);
                        answer.ok().map(|_| (false, n))
                    });
                }
                let finish = CleanupCommand::Finish { job_root, token };
                let says = format_args!("ends its claim");
                steps.ask(says, Sender::ALL, Command::Cleanup(finish), |answer, w| {
                    w.let_go(token.0);
                    answer.ok().map(|_| (false, n))
                });
            } else if !claimed && !held && n < 3 {
                let token = token(n + 1);
                let claim = CleanupCommand::Claim { job_root, token, instance: instance(1) };
                let says = format_args!("claims what is due");
                steps.ask(says, Sender::ALL, Command::Cleanup(claim), |answer, w| {
                    answer.ok()?;
                    w.hold(token.0);
                    Some((true, n + 1))
                });
            }
        }
    }
}

/// Somebody tells instance B to drain, once.
#[derive(Clone, Copy, Debug)]
struct Drainer;

impl Actor for Drainer {
    type Local = ();

    fn name(&self) -> String {
        "an operator".to_owned()
    }

    fn begin(&self) {}

    fn act(&self, (): (), _world: &World, steps: &mut Steps<'_, ()>) {
        let drain = Command::System(SystemCommand::Drain { instance: instance(1), draining: true });
        let says = format_args!("tells instance B to drain");
        steps.ask(says, Sender::ALL, drain, |answer, _| answer.ok().map(|_| ()));
    }
}

fn draining_claims() -> System {
    let mut world = begin::world(2);
    begin::add_task(&mut world, 0, None);
    let done = |world: &mut World, command: OperationCommand| {
        world.prepare(Command::Operation(command));
    };
    let (operation, scope, instance) = (operation(0), Scope::Task, instance(0));
    done(&mut world, Operator::new(0, Trigger::Archive, 0).reserve());
    done(&mut world, OperationCommand::Snapshot { operation, scope, instance });
    done(&mut world, OperationCommand::Mutate { operation, scope, instance });
    System::new("draining-claims-again", world)
        .without(&[Guard::NotDraining])
        .with(Tireless)
        .with(Drainer)
}
