//! An operation on a whole tree, or on a whole workspace (B-9, T-9): reads what belongs to it, bars
//! that one by one, reads again what appeared meanwhile, takes all snapshots, mutates all at once;
//! aborts everything when something refuses or fails.

use freehold_kernel::{
    BranchPolicy, Command, ContentHash, Guard, JobId, JobState, OperationCommand, OperationId,
    Reply, Scope, TaskId, TaskLifecycle, Trigger, Unsaved, UnsavedPolicy, derive,
};

use crate::models::names::*;
use crate::system::{Actor, Fault, Steps};
use crate::world::{Sender, World};

/// Tasks have numbers below this, so that a set of them is a number of 16 bits.
const TASKS: u8 = 16;

/// What is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Driven {
    /// The number of the operation.
    pub n: u8,
    /// Which operation.
    pub trigger: Trigger,
    /// The task that it was asked for; of a workspace deletion, nothing.
    pub root: u8,
    /// For a reset: of which environment.
    pub environment: u8,
    /// Whose process.
    pub instance: u8,
    /// What becomes of unsaved work.
    pub policy: UnsavedPolicy,
}

/// Where a driven operation is. Sets of tasks are bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Driving {
    /// The workspace is in deletion, nothing is barred.
    Begun,
    /// About to read what belongs to it, beside what it has already asked for.
    Reading {
        /// Asked for.
        done: u16,
        /// Whether it holds a barrier.
        holds: bool,
    },
    /// Bars one after the other.
    Barring {
        /// Still to be asked for.
        todo: u16,
        /// Asked for.
        done: u16,
        /// Whether it holds a barrier.
        holds: bool,
    },
    /// The workspace has no task: it only goes itself.
    Empty,
    /// All snapshots are taken.
    Taken,
    /// Something refused or failed: everything will be released.
    Refused,
    /// What was barred is released; the workspace still has to be set back.
    Released,
    /// At its end.
    Ended,
}

impl Driven {
    /// Operation `n` on the tree under a task, or on workspace 0.
    pub const fn new(n: u8, trigger: Trigger, root: u8, instance: u8) -> Driven {
        Driven { n, trigger, root, environment: 0, instance, policy: UnsavedPolicy::Salvage }
    }

    /// The operation's id.
    pub const fn operation(self) -> OperationId {
        operation(self.n)
    }

    /// Where it begins.
    pub fn first(self) -> Driving {
        match self.trigger.scope() {
            Scope::Workspace => Driving::Begun,
            Scope::Task | Scope::Cascade => Driving::Reading { done: 0, holds: false },
        }
    }

    fn of_workspace(self) -> bool {
        self.trigger.scope() == Scope::Workspace
    }

    fn sender(self) -> Sender {
        Sender::ALL
    }

    /// What it does, in words.
    pub fn says(self) -> String {
        let verb = match self.trigger {
            Trigger::Archive => "archive task",
            Trigger::Delete => "delete task",
            Trigger::EnvironmentReset => "reset the environment of task",
            Trigger::QuickChatExpire => "expire quick chat",
            Trigger::CascadeArchive => "archive all from task",
            Trigger::CascadeDelete => "delete all from task",
            Trigger::WorkspaceDelete => "delete workspace",
            Trigger::Reconcile | Trigger::OrphanRemoval | Trigger::Unreadable => "clean up task",
        };
        format!("{verb} {}", self.root)
    }

    /// The tasks that belong to it, as the host reads them: not under any lock.
    pub fn belonging(self, world: &World) -> u16 {
        let mut set = 0;
        for n in 0..TASKS {
            let Some(row) = world.view.tasks.id(task(n).0) else { continue };
            let fits = match self.trigger.scope() {
                Scope::Task => n == self.root,
                Scope::Workspace => row.workspace_id == workspace(0),
                // For an archive, without what is archived already.
                Scope::Cascade => {
                    under(world, row.id, task(self.root))
                        && (n == self.root
                            || self.trigger != Trigger::CascadeArchive
                            || row.lifecycle == TaskLifecycle::Active)
                }
            };
            if fits {
                set |= 1 << n;
            }
        }
        // A root that is not there is asked for all the same: the kernel says so.
        if set == 0 && !self.of_workspace() { 1 << self.root } else { set }
    }

    fn reserve(self, world: &World, n: u8) -> Command {
        let operation = self.operation();
        let known = world.view.jobs.iter().filter(|j| {
            j.operation_id == operation && j.task_id == task(n) && j.state == JobState::Cancelled
        });
        let nth = known.count() as u128;
        Command::Operation(OperationCommand::Reserve {
            operation,
            job: JobId(derive(derive(operation.0, task(n).0), nth)),
            task: task(n),
            trigger: self.trigger,
            environment: (self.trigger == Trigger::EnvironmentReset)
                .then_some(environment(self.environment)),
            cascade_root: (self.trigger.scope() == Scope::Cascade).then_some(task(self.root)),
            policy: self.policy,
            branch_policy: BranchPolicy::Keep,
            consent: if self.policy == UnsavedPolicy::Discard {
                Unsaved::TRACKED
            } else {
                Unsaved::NONE
            },
            unsaved: Unsaved::NONE,
            refuse_busy: false,
            instance: instance(self.instance),
            content: ContentHash(u128::from(self.n) + 1),
        })
    }

    /// Everything that it can do next. `local` is what its driver remembers with it.
    pub fn drive<L: Copy>(
        self,
        at: Driving,
        world: &World,
        steps: &mut Steps<'_, L>,
        local: impl Fn(Driving) -> L,
    ) {
        match at {
            Driving::Begun => self.begin(steps, local),
            Driving::Reading { done, holds } => {
                let todo = self.belonging(world) & !done;
                let next = match (todo, done) {
                    (0, 0) => Driving::Empty,
                    // What is missing is not to be had.
                    (0, _) => Driving::Refused,
                    (todo, done) => Driving::Barring { todo, done, holds },
                };
                let again = if done == 0 { "" } else { " once more" };
                let says = format_args!("reads{again} what there is, to {}", self.says());
                steps.outside(says, |_| Some(local(next)));
            }
            Driving::Barring { todo, done, holds } => {
                self.bar_next(world, (todo, done, holds), steps, &local);
            }
            Driving::Empty => {
                let (operation, instance) = (self.operation(), instance(self.instance));
                let finish = Command::Operation(OperationCommand::FinishWorkspaceDelete {
                    workspace: workspace(0),
                    operation,
                    instance,
                });
                let says = format_args!("removes the empty workspace");
                steps.ask(says, self.sender(), finish, |answer, w| match answer {
                    Ok(_) => {
                        w.let_go(operation.0);
                        Some(local(Driving::Ended))
                    }
                    Err(_) => Some(local(Driving::Refused)),
                });
            }
            Driving::Taken => self.mutate(steps, &local),
            Driving::Refused => {
                let (operation, instance) = (self.operation(), instance(self.instance));
                let abort = Command::Operation(OperationCommand::Abort { operation, instance });
                let says = format_args!("releases what it has barred");
                steps.ask(says, self.sender(), abort, |_, w| {
                    if self.of_workspace() {
                        return Some(local(Driving::Released));
                    }
                    w.let_go(operation.0);
                    Some(local(Driving::Ended))
                });
            }
            Driving::Released => {
                let operation = self.operation();
                let abort = Command::Operation(OperationCommand::AbortWorkspaceDelete {
                    workspace: workspace(0),
                    operation,
                });
                let says = format_args!("gives up the deletion of the workspace");
                steps.ask(says, self.sender(), abort, |_, w| {
                    w.let_go(operation.0);
                    Some(local(Driving::Ended))
                });
            }
            Driving::Ended => {}
        }
    }

    fn begin<L: Copy>(self, steps: &mut Steps<'_, L>, local: impl Fn(Driving) -> L) {
        let operation = self.operation();
        let begin = Command::Operation(OperationCommand::BeginWorkspaceDelete {
            workspace: workspace(0),
            operation,
            instance: instance(self.instance),
        });
        let says = format_args!("begins to delete workspace 0");
        steps.ask(says, self.sender(), begin, |answer, w| match answer {
            Ok(_) => {
                w.hold(operation.0);
                Some(local(Driving::Reading { done: 0, holds: false }))
            }
            Err(_) => Some(local(Driving::Ended)),
        });
    }

    fn bar_next<L: Copy>(
        self,
        world: &World,
        (todo, done, holds): (u16, u16, bool),
        steps: &mut Steps<'_, L>,
        local: &impl Fn(Driving) -> L,
    ) {
        let (operation, scope) = (self.operation(), self.trigger.scope());
        if todo == 0 {
            // An operation that was carried out before: the answer is what stands (T-11).
            if !holds {
                let says = format_args!("has nothing to do any more");
                steps.outside(says, |_| Some(local(Driving::Refused)));
                return;
            }
            let instance = instance(self.instance);
            let take =
                Command::Operation(OperationCommand::Snapshot { operation, scope, instance });
            let says = format_args!("takes the snapshots, to {}", self.says());
            steps.ask(says, self.sender(), take, |answer, _| match answer {
                Ok(_) => Some(local(Driving::Taken)),
                Err(refusal) => match refusal.guard {
                    Guard::CascadeComplete | Guard::WorkspaceComplete => {
                        Some(local(Driving::Reading { done, holds }))
                    }
                    _other => Some(local(Driving::Refused)),
                },
            });
            return;
        }
        // In id order (B-9).
        let n = todo.trailing_zeros() as u8;
        let rest = todo & (todo - 1);
        let reserve = self.reserve(world, n);
        let bar = |lost: bool, steps: &mut Steps<'_, L>| {
            let also = if lost { ", and the reply is lost" } else { "" };
            let says = format_args!("bars task {n}, to {}{also}", self.says());
            steps.ask(says, self.sender(), reserve, |answer, w| {
                let Ok(done_now) = answer else {
                    return (!lost).then(|| local(Driving::Refused));
                };
                let barred = matches!(done_now.reply, Reply::Job { state: JobState::Prepared, .. });
                if barred {
                    w.hold(operation.0);
                }
                if lost {
                    return Some(local(Driving::Refused));
                }
                let (done, holds) = (done | 1 << n, holds || barred);
                Some(local(Driving::Barring { todo: rest, done, holds }))
            });
        };
        bar(false, steps);
        steps.costing(Fault::LostReply);
        bar(true, steps);
        let says = format_args!("cannot stop a runtime of what it barred");
        steps.costing(Fault::Disk).outside(says, |_| holds.then(|| local(Driving::Refused)));
    }

    fn mutate<L: Copy>(self, steps: &mut Steps<'_, L>, local: &impl Fn(Driving) -> L) {
        let (operation, scope) = (self.operation(), self.trigger.scope());
        let instance = instance(self.instance);
        let mutate = Command::Operation(OperationCommand::Mutate { operation, scope, instance });
        let commit = |lost: bool, steps: &mut Steps<'_, L>| {
            let also = if lost { ", and the reply is lost" } else { "" };
            let says = format_args!("commits to {}, and activates the jobs{also}", self.says());
            steps.ask(says, self.sender(), mutate, |answer, w| match answer {
                Ok(_) if lost => Some(local(Driving::Refused)),
                Ok(_) => {
                    w.let_go(operation.0);
                    Some(local(Driving::Ended))
                }
                Err(_) => (!lost).then(|| local(Driving::Refused)),
            });
        };
        commit(false, steps);
        steps.costing(Fault::LostReply);
        commit(true, steps);
    }
}

/// Whether `above` is on a task's way to the root, the task itself included.
pub fn under(world: &World, of: TaskId, above: TaskId) -> bool {
    let mut at = Some(of);
    for _ in 0..=TASKS {
        match at {
            Some(id) if id == above => return true,
            Some(id) => at = world.view.tasks.id(id.0).and_then(|t| t.parent_id),
            None => return false,
        }
    }
    false
}

/// Drives one operation, once.
#[derive(Clone, Copy, Debug)]
pub struct Cascader {
    /// Which.
    pub driven: Driven,
    /// Asks again under the same id after it died.
    pub again: bool,
}

impl Cascader {
    /// Drives operation `n` once.
    pub const fn new(n: u8, trigger: Trigger, root: u8, instance: u8) -> Cascader {
        Cascader { driven: Driven::new(n, trigger, root, instance), again: false }
    }
}

impl Actor for Cascader {
    /// Nothing before it was asked for.
    type Local = Option<Driving>;

    fn name(&self) -> String {
        format!("instance {} (operation {})", letter(self.driven.instance), self.driven.n)
    }

    fn begin(&self) -> Self::Local {
        None
    }

    fn at_rest(&self, at: Self::Local) -> bool {
        at.is_none_or(|at| at == Driving::Ended)
    }

    fn act(&self, at: Self::Local, world: &World, steps: &mut Steps<'_, Self::Local>) {
        let driven = self.driven;
        let now = at.unwrap_or(driven.first());
        driven.drive(now, world, steps, Some);
        if at.is_some_and(|at| at != Driving::Ended) {
            steps.costing(Fault::Crash).outside(format_args!("dies"), |w| {
                w.let_go(driven.operation().0);
                Some(if self.again { None } else { Some(Driving::Ended) })
            });
        }
    }
}
