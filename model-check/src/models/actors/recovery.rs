//! What every instance does at its start and now and then (C-11): lifts lapsed barriers, rescues
//! lapsed claims, resolves what gone makers left, undoes attempts, reserves reconcile jobs.

use freehold_kernel::{
    Attempt, AttemptCommand, AttemptState, CleanupCommand, Command, JobId, JobState, OperationId,
    Reply, ResourceResult, Span, SystemCommand, Time, Token, WorkspaceState, derive,
};

use super::executor::{Executor, Hands};
use super::worker::execute;
use crate::models::names::*;
use crate::system::{Actor, Fault, Renaming, Steps};
use crate::world::{NOW, Sender, World};

/// Recovery by an instance.
#[derive(Clone, Copy, Debug)]
pub struct Recovery {
    /// Whose process.
    pub instance: u8,
}

/// The warrant that it has, if any.
type Undoing = Option<Executor>;

fn lapsed(until: Option<Time>) -> bool {
    until.is_none_or(|t| t <= NOW)
}

impl Recovery {
    fn attempt(self, world: &World, row: &Attempt, steps: &mut Steps<'_, Undoing>) {
        let open = match row.state {
            AttemptState::Intended | AttemptState::Materialised | AttemptState::Compensating => {
                true
            }
            AttemptState::Owned | AttemptState::Compensated => false,
        };
        // W-13: the path lock comes first.
        if !open || world.disk.hands.iter().any(|h| h.path == row.path) {
            return;
        }
        let evidence =
            Hands::evidence(world, Some(row.root_id), Some(row.path), Some(row.worktree_id));
        let (attempt, old) = (row.id, row.token);
        if lapsed(Some(row.lease_until)) {
            let token = Token(derive(old.0, 1 + u128::from(self.instance)));
            let command = Command::Attempt(AttemptCommand::Recover {
                attempt,
                token,
                instance: instance(self.instance),
                evidence,
            });
            let says = format_args!("takes over {}", said(attempt.0));
            steps.ask(says, Sender::ALL, command, |answer, w| {
                let done = answer.ok()?;
                w.let_go(old.0);
                if w.view.attempts.id(attempt.0).is_some_and(|a| a.token == token) {
                    w.hold(token.0);
                }
                (done.reply != Reply::Unchanged).then_some(None)
            });
        }
        // Recovery undoes what it has taken over, and what a maker of its own store left behind.
        let left = !world.holds(old.0) || row.instance_id == instance(self.instance);
        if row.state == AttemptState::Compensating && left {
            let (removal, removal_token) = Hands::next_removal(world);
            let command = Command::Attempt(AttemptCommand::Compensate {
                attempt,
                token: old,
                removal,
                removal_token,
                instance: instance(self.instance),
                evidence,
            });
            let says =
                format_args!("looks at {} and asks to undo {}", said(row.path.0), said(attempt.0));
            steps.ask(says, Sender::ALL, command, |answer, w| {
                let executor = Hands::hold(w, Some(answer.ok()?));
                Some(executor)
            });
        }
    }

    fn jobs(self, world: &World, steps: &mut Steps<'_, Undoing>) {
        for row in world.view.jobs.iter() {
            if row.state == JobState::Prepared && lapsed(row.lease_until) {
                let command = Command::System(SystemCommand::RecoverBarrier { job: row.id });
                let says = format_args!("lifts the barrier of {}", said(row.operation_id.0));
                steps.ask(says, Sender::ALL, command, |answer, _| {
                    (answer.ok()?.reply != Reply::Unchanged).then_some(None)
                });
            }
        }
        for row in world.view.workspaces.iter() {
            if row.state == WorkspaceState::Deleting && lapsed(row.deleting_lease) {
                let workspace = row.id;
                let command = Command::System(SystemCommand::RecoverWorkspaceDelete { workspace });
                let says = format_args!("gives up the lapsed deletion of {}", said(workspace.0));
                steps.ask(says, Sender::ALL, command, |answer, _| answer.ok().map(|_| None));
            }
        }
        for part in world.view.job_roots.iter() {
            let Some(token) = part.token else { continue };
            if part.state == JobState::Running && lapsed(part.lease_until) {
                let command = CleanupCommand::Rescue { job_root: part.id, token };
                let says = format_args!("rescues the claim of {}", said(part.job_id.0));
                steps.ask(says, Sender::ALL, Command::Cleanup(command), |answer, w| {
                    answer.ok()?;
                    w.let_go(token.0);
                    Some(None)
                });
            }
        }
    }

    /// C-3: what lies in a root that nobody has served for too long.
    fn unserved(self, world: &World, steps: &mut Steps<'_, Undoing>) {
        let machine = world.view.instances.id(instance(self.instance).0).map(|i| i.host);
        let patience = world.view.settings.id(1).map_or(Span(0), |s| s.root_patience);
        for part in world.view.job_roots.iter() {
            let Some(root) = part.root_id else { continue };
            let served = world.view.managed_roots.id(root.0).map(|r| r.host) == machine;
            let since = part.next_attempt_at.unwrap_or(part.updated_at);
            if served || since + patience > NOW {
                continue;
            }
            let command = CleanupCommand::GiveUpRoot { job_root: part.id };
            let says = format_args!("gives {} up, which nobody serves", said(root.0));
            steps.ask(says, Sender::ALL, Command::Cleanup(command), |answer, w| {
                answer.ok()?;
                if let Some(token) = part.token {
                    w.let_go(token.0);
                }
                Some(None)
            });
        }
    }

    fn reconcile(self, world: &World, steps: &mut Steps<'_, Undoing>) {
        for resource in world.view.resources.iter() {
            if resource.result != ResourceResult::Preserved {
                continue;
            }
            let Some(environment) = resource.environment_id else { continue };
            let Some(job) = world.view.jobs.id(resource.job_id.0) else { continue };
            let Some(by) = world.view.tasks.id(job.task_id.0).and_then(|t| t.archived_by) else {
                continue;
            };
            let operation = OperationId(derive(by.0, environment.0));
            let command = Command::System(SystemCommand::Reconcile {
                task: job.task_id,
                environment,
                job: JobId(derive(operation.0, 2)),
                operation,
            });
            let says = format_args!("reserves a reconcile job for {}", said(environment.0));
            steps.ask(says, Sender::ALL, command, |answer, _| {
                (answer.ok()?.reply != Reply::Unchanged).then_some(None)
            });
        }
    }
}

impl Actor for Recovery {
    type Local = Undoing;

    fn name(&self) -> String {
        format!("instance {} (recovering)", letter(self.instance))
    }

    fn begin(&self) -> Undoing {
        None
    }

    fn at_rest(&self, local: Undoing) -> bool {
        local.is_none()
    }

    fn rename(&self, local: Undoing, renaming: &Renaming) -> Undoing {
        local.map(|e| Hands::rename(e, renaming))
    }

    fn act(&self, local: Undoing, world: &World, steps: &mut Steps<'_, Undoing>) {
        if let Some(executor) = local {
            execute(world, executor, steps, |executor| executor);
            steps.costing(Fault::Crash).outside(format_args!("dies, and starts again"), |w| {
                Hands::let_go(w, executor.token);
                Some(None)
            });
            return;
        }
        self.jobs(world, steps);
        self.unserved(world, steps);
        for row in world.view.attempts.iter() {
            self.attempt(world, row, steps);
        }
        self.reconcile(world, steps);
    }
}
