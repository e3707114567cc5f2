//! A lifecycle operation (B-1..B-7): reserve, snapshot, mutate; aborted when something refuses.

use freehold_kernel::{
    BranchPolicy, Command, ContentHash, OperationCommand, Scope, Trigger, Unsaved, UnsavedPolicy,
};

use crate::models::names::*;
use crate::system::{Actor, Fault, Steps};
use crate::world::{Sender, World};

/// An operation on one task.
#[derive(Clone, Copy, Debug)]
pub struct Operator {
    /// The number of the operation and of its job.
    pub n: u8,
    /// On which task.
    pub task: u8,
    /// Which operation.
    pub trigger: Trigger,
    /// For a reset: of which environment.
    pub environment: u8,
    /// Whose process.
    pub instance: u8,
    /// What becomes of unsaved work.
    pub policy: UnsavedPolicy,
    /// Whether it asks again, under the same id, after it died (X50).
    pub again: bool,
}

/// Where an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operating {
    /// Not asked for.
    Idle,
    /// The barrier is held.
    Reserved,
    /// The snapshot is taken.
    Taken,
    /// Something refused: it will be aborted.
    Refused,
    /// Done, refused or aborted.
    Ended,
    /// Its process died.
    Dead,
}

impl Operator {
    /// Operation `n` on task 0, from instance `instance`, salvaging what is unsaved.
    pub fn new(n: u8, trigger: Trigger, instance: u8) -> Operator {
        Operator {
            n,
            task: 0,
            trigger,
            environment: 0,
            instance,
            policy: UnsavedPolicy::Salvage,
            again: false,
        }
    }

    /// Its first command.
    pub fn reserve(&self) -> OperationCommand {
        OperationCommand::Reserve {
            operation: operation(self.n),
            job: job(self.n),
            task: task(self.task),
            trigger: self.trigger,
            environment: (self.trigger == Trigger::EnvironmentReset)
                .then_some(environment(self.environment)),
            cascade_root: None,
            policy: self.policy,
            branch_policy: BranchPolicy::Keep,
            consent: Unsaved::NONE,
            unsaved: Unsaved::NONE,
            refuse_busy: false,
            instance: instance(self.instance),
            content: ContentHash(u128::from(self.n) + 1),
        }
    }

    /// What the operation does, in a word.
    pub fn verb(&self) -> &'static str {
        match self.trigger {
            Trigger::Archive => "archive",
            Trigger::Delete => "delete",
            Trigger::EnvironmentReset => "reset",
            Trigger::QuickChatExpire => "expire",
            Trigger::CascadeArchive => "archive, with all under it,",
            Trigger::CascadeDelete => "delete, with all under it,",
            Trigger::WorkspaceDelete => "delete, with its workspace,",
            Trigger::Reconcile | Trigger::OrphanRemoval | Trigger::Unreadable => "clean",
        }
    }
}

impl Actor for Operator {
    type Local = Operating;

    fn name(&self) -> String {
        format!("instance {} (operation {})", letter(self.instance), self.n)
    }

    fn begin(&self) -> Operating {
        Operating::Idle
    }

    fn at_rest(&self, at: Operating) -> bool {
        matches!(at, Operating::Idle | Operating::Ended | Operating::Dead)
    }

    fn act(&self, at: Operating, _world: &World, steps: &mut Steps<'_, Operating>) {
        let (operation, instance) = (operation(self.n), instance(self.instance));
        let scope = Scope::Task;
        let (verb, n) = (self.verb(), self.task);
        let abort = |steps: &mut Steps<'_, Operating>| {
            let command = Command::Operation(OperationCommand::Abort { operation, instance });
            steps.ask(format_args!("aborts"), Sender::ALL, command, |_, w| {
                w.let_go(operation.0);
                Some(Operating::Ended)
            });
        };
        match at {
            Operating::Idle => {
                let command = Command::Operation(self.reserve());
                let says = format_args!("bars task {n} to {verb} it");
                steps.ask(says, Sender::ALL, command, |answer, w| match answer {
                    Ok(_) => {
                        w.hold(operation.0);
                        Some(Operating::Reserved)
                    }
                    Err(_) => Some(Operating::Ended),
                });
            }
            Operating::Reserved => {
                let command =
                    Command::Operation(OperationCommand::Snapshot { operation, scope, instance });
                let says = format_args!("takes the snapshot of task {n}");
                steps.ask(says, Sender::ALL, command, |answer, _| match answer {
                    Ok(_) => Some(Operating::Taken),
                    Err(_) => Some(Operating::Refused),
                });
                abort(steps);
            }
            Operating::Taken => {
                let command =
                    Command::Operation(OperationCommand::Mutate { operation, scope, instance });
                let says = format_args!("commits to {verb} task {n}, and activates the job");
                steps.ask(says, Sender::ALL, command, |answer, w| match answer {
                    Ok(_) => {
                        w.let_go(operation.0);
                        Some(Operating::Ended)
                    }
                    Err(_) => Some(Operating::Refused),
                });
            }
            Operating::Refused => abort(steps),
            Operating::Ended | Operating::Dead => {}
        }
        if matches!(at, Operating::Reserved | Operating::Taken | Operating::Refused) {
            steps.costing(Fault::Crash).outside(format_args!("dies"), |w| {
                w.let_go(operation.0);
                Some(if self.again { Operating::Idle } else { Operating::Dead })
            });
        }
    }
}
