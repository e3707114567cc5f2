//! Model 6 of 09: all of it together. Too large to be exhausted: it is walked ([`crate::walk()`]).

use freehold_kernel::properties::Place;
use freehold_kernel::{
    AttemptState, ClosingKind, Command, InputState, JobState, OperationCommand, Origin, Reason,
    ResourceResult, SessionCommand, SessionLifecycle, SessionSource, SystemCommand, TaskCommand,
    TaskKind, TaskLifecycle, Trigger,
};

use super::actors::chooser::{Choice, Chooser};
use super::actors::sender::submit;
use super::actors::steward::Steward;
use super::actors::{Clock, Keeper, Maker, Recovery, Turner, Worker};
use super::begin;
use super::names::*;
use crate::system::{Fault, System};

/// Two instances; task 0 with child 1 and grandchild 2, environments in 0 and 1 with a session in
/// each, and a borrower of the first in the grandchild; worktrees are made in both; operations, people, turns, workers on both instances,
/// recovery, time; and much that goes wrong.
pub fn system() -> System {
    let mut world = begin::world(2);
    begin::add_task(&mut world, 0, None);
    begin::add_task(&mut world, 1, Some(0));
    begin::add_task(&mut world, 2, Some(1));
    begin::add_environment(&mut world, 0, 0);
    begin::add_environment(&mut world, 1, 1);
    begin::add_worktree(&mut world, 0, 0, 0);
    begin::add_session(&mut world, 0, 0, Some(0));
    begin::add_session(&mut world, 1, 1, Some(1));
    begin::add_session(&mut world, 2, 2, Some(0));
    let system = System::new("everything", world)
        .with(Maker { n: 1, environment: 1, instance: 0 })
        .with(Maker { n: 2, environment: 0, instance: 1 })
        .with(Steward { instance: 0, first: 0, times: 12, tasks: 4 })
        .with(Steward { instance: 1, first: 16, times: 10, tasks: 4 })
        .with(Worker { instance: 0 })
        .with(Worker { instance: 1 })
        .with(Recovery { instance: 1 })
        .with(Keeper::new(1))
        .with(Turner { instance: 0, parks: true })
        .with(Turner { instance: 1, parks: false })
        .with(Chooser { who: "somebody", choices: choices(), times: 200 })
        .with(Clock)
        .allowing(6, Fault::Crash)
        .allowing(4, Fault::Slow)
        .allowing(4, Fault::LostReply)
        .allowing(2, Fault::Disk);
    circumstances(system)
}

fn choices() -> Vec<Choice> {
    let mut choices = vec![Choice::Operate];
    choices.extend([0, 1, 2, 9, 10, 11, 12].map(Choice::Write));
    choices.extend([0, 1].map(Choice::Make));
    let mut ask =
        |says: String, command: Command| choices.push(Choice::Ask(says, Box::new(command)));
    for (n, of, linked) in [(3, 1, Some(0)), (4, 0, None)] {
        let borrows = if linked.is_some() { ", borrowing environment 0" } else { "" };
        let create = SessionCommand::Create {
            session: session(n),
            task: task(of),
            environment: linked.map(environment),
            source: SessionSource::Person,
            parent: None,
        };
        ask(format!("creates session {n} in task {of}{borrows}"), Command::Session(create));
    }
    for n in 0..5 {
        for (kind, verb) in [(ClosingKind::Archive, "archive"), (ClosingKind::Delete, "delete")] {
            // Borrowers come back, or there would soon be none.
            if kind == ClosingKind::Delete && (n == 2 || n == 3) {
                continue;
            }
            let begin = SessionCommand::BeginClose {
                session: session(n),
                kind,
                token: closing_token(n),
                automatic: false,
                force: false,
            };
            ask(format!("begins to {verb} session {n}"), Command::Session(begin));
        }
        let (session, token) = (session(n), closing_token(n));
        let commit = SessionCommand::CommitClose { session, token };
        ask(format!("commits the close of session {n}"), Command::Session(commit));
        let abort = SessionCommand::AbortClose { session, token };
        ask(format!("gives up the close of session {n}"), Command::Session(abort));
        let reopen = SessionCommand::Unarchive { session };
        ask(format!("reopens session {n}"), Command::Session(reopen));
        let by = n % 2;
        let says = format!("sends input {n} to session {n}");
        ask(says, submit(n, n, Origin::Person, by));
        let says = format!("sends input {} to session {n}", n + 5);
        ask(says, submit(n + 5, n, Origin::Person, by));
    }
    for n in 0..4 {
        for cascade in [false, true] {
            let also = if cascade { " with its cascade" } else { "" };
            let unarchive = OperationCommand::Unarchive { task: task(n), cascade };
            ask(format!("unarchives task {n}{also}"), Command::Operation(unarchive));
        }
    }
    let create = TaskCommand::Create {
        task: task(3),
        workspace: workspace(0),
        parent: Some(task(1)),
        kind: TaskKind::Standard,
        expires_at: None,
    };
    ask("creates task 3 under task 1".to_owned(), Command::Task(create));
    for (n, to) in [(2, Some(0)), (2, None), (3, Some(2)), (1, None), (0, Some(3))] {
        let under = to.map_or("none".to_owned(), |t| format!("task {t}"));
        let moves = TaskCommand::Move { task: task(n), parent: to.map(task) };
        ask(format!("moves task {n} under {under}"), Command::Task(moves));
    }
    for (n, to) in [(1, 2), (1, 0)] {
        let transfer = TaskCommand::Transfer { environment: environment(n), to: task(to) };
        ask(format!("gives environment {n} to task {to}"), Command::Task(transfer));
    }
    for draining in [true, false] {
        let verb = if draining { "drains" } else { "drains no longer" };
        let drain = SystemCommand::Drain { instance: instance(1), draining };
        ask(format!("lets it be that instance B {verb}"), Command::System(drain));
    }
    choices
}

fn circumstances(system: System) -> System {
    system
        .sometimes("attempt compensated", |w| {
            w.view.attempts.iter().any(|a| a.state == AttemptState::Compensated)
        })
        .sometimes("worktree removed", |w| w.disk.worktrees.iter().any(|t| t.place == Place::Gone))
        .sometimes("work salvaged", |w| !w.view.salvage.is_empty())
        .sometimes("two removals at once", |w| {
            w.view.removals.iter().filter(|r| r.outcome.is_none()).count() > 1
        })
        .sometimes("borrowed kept", |w| {
            w.view.resources.iter().any(|r| r.result == ResourceResult::Preserved)
        })
        .sometimes("borrowed transferred", |w| {
            w.view.resources.iter().any(|r| r.result == ResourceResult::Transferred)
        })
        .sometimes("reset done", |w| {
            let done = |j: &freehold_kernel::Job| j.state == JobState::Succeeded;
            w.view.jobs.iter().any(|j| j.trigger == Trigger::EnvironmentReset && done(j))
        })
        .sometimes("cascade done", |w| {
            let done = |j: &&freehold_kernel::Job| {
                j.cascade_root.is_some() && j.state == JobState::Succeeded
            };
            w.view.jobs.iter().filter(done).count() > 1
        })
        .sometimes("job failed", |w| w.view.jobs.iter().any(|j| j.state == JobState::Failed))
        .sometimes("job cancelled after its mutation", |w| {
            w.view.jobs.iter().any(|j| j.state == JobState::Cancelled && j.mutated_at.is_some())
        })
        .sometimes("barrier lifted", |w| {
            w.view.jobs.iter().any(|j| j.state == JobState::Cancelled && j.mutated_at.is_none())
        })
        .sometimes("kept for a reason", |w| {
            w.view.resources.iter().any(|r| r.reason != Reason::None)
        })
        .sometimes("session archived in an active task", |w| {
            w.view
                .sessions
                .iter()
                .any(|s| s.lifecycle == SessionLifecycle::Archived && s.archived_by.is_none())
        })
        .sometimes("closing out of the archive", |w| {
            w.view
                .sessions
                .iter()
                .any(|s| s.lifecycle == SessionLifecycle::Closing && s.archived_at.is_some())
        })
        .sometimes("input cancelled", |w| {
            w.view.inputs.iter().any(|i| i.state == InputState::Cancelled)
        })
        .sometimes("a task that stands alone", |w| {
            w.view.tasks.iter().any(|t| {
                t.parent_id.is_none() && t.id != task(0) && t.lifecycle == TaskLifecycle::Active
            })
        })
        .sometimes("workspace gone", |w| w.view.workspaces.is_empty())
}
