//! The systems of model 2. Each is small enough to be exhausted, and is about one of the
//! circumstances that 09 names; every one of them has crashes.

use freehold_kernel::properties::Place;
use freehold_kernel::{
    AttemptState, Command, ContentHash, JobState, Materialised, OperatorCommand, Origin,
    Permissions, Reason, RemovalOutcome, ResourceKind, ResourceResult, RuntimeKind, SalvageState,
    SessionCommand, SessionSource, Settings, Span, TaskLifecycle, TrashState, Trigger, TurnCommand,
    TurnPhase, Unsaved, UnsavedPolicy,
};

use super::scenes::*;
use crate::models::actors::person::Act;
use crate::models::actors::{
    Calendar, Cleaner, Clock, Deed, Operator, Outsider, Person, Recovery, Recreator, Restorer,
    Returner, Sweeper,
};
use crate::models::begin;
use crate::models::catalogue::{Entry, Scope};
use crate::models::names::*;
use crate::system::{Fault, System};
use crate::world::World;

const fn ci(name: &'static str, says: &'static str, build: fn() -> System, states: usize) -> Entry {
    Entry { name, model: 2, says, scope: Scope::Ci, build, states }
}

const fn long(
    name: &'static str,
    says: &'static str,
    build: fn() -> System,
    states: usize,
) -> Entry {
    Entry { name, model: 2, says, scope: Scope::Long, build, states }
}

/// Systems of this model.
pub const SYSTEMS: &[Entry] = &[
    ci(
        "job-workers",
        "two workers, lapsing leases, a rescue, an unarchive",
        || workers(SMALL),
        37_887,
    ),
    ci("job-rearchive", "unarchived and archived again during a half step", rearchive, 105_576),
    ci("job-delete", "a deletion takes the archive's job over, or is aborted", delete, 78_695),
    ci(
        "job-failing",
        "failing steps, spent tries, a retry and a forgetting by hand",
        failing,
        54_607,
    ),
    ci("job-borrower", "a borrower arrives before the barrier, and leaves", borrower, 29_691),
    ci(
        "job-hosts",
        "one job over two hosts; one root goes away, for a week",
        || hosts(CALM, true),
        84_335,
    ),
    ci(
        "job-outsiders",
        "a foreign worktree at the path, somebody who stands in it",
        outsiders,
        116_904,
    ),
    ci("job-unreadable", "a job that cannot be read, beside one that can", unreadable, 20_644),
    ci("job-trash", "trash is kept, and purged by one of two sweeps", trash, 3_044),
    ci("job-runtimes", "runtimes that are out of reach, before worktrees", runtimes, 47_888),
    ci("job-restore", "a restore against a second archive", restore, 40_999),
    ci("job-writer", "work goes on during the salvage", writer, 25_395),
    ci("job-tasks", "two tasks, two workers", || tasks(CALM), 10_801),
    ci("job-reset", "a reset's old worktree, lent on and deleted", reset, 218_048),
    ci(
        "job-trash-restore",
        "trash is restored against an archive, its sweep and the end of its salvage",
        || trash_restore(SMALL),
        285_154,
    ),
    ci(
        "job-reset-runtimes",
        "a reset's runtime is out of reach, is given up, and is said to be stopped",
        reset_runtimes,
        139_710,
    ),
    ci(
        "job-workers-faults",
        "two workers, where a claim lapses under its holder and replies are lost",
        || workers(EVERY),
        666_848,
    ),
    ci(
        "job-hosts-crash",
        "one job over two hosts; an instance dies, a root goes away",
        || hosts(SMALL, false),
        641_991,
    ),
    ci("job-tasks-crash", "two tasks, two workers, one of which dies", || tasks(SMALL), 224_429),
    ci(
        "job-tamperer",
        "two who look first and ask later, and a foreign worktree that comes in between",
        tamperer,
        60_844,
    ),
    ci(
        "job-damaged",
        "a row that cannot be read for a while, under a claim or before it",
        damaged,
        138_109,
    ),
    long(
        "job-hosts-lost",
        "one job over two hosts; replies are lost, a root goes away for a week",
        || hosts(Size { lost: 1, ..CALM }, true),
        460_899,
    ),
];

/// How much may go wrong.
#[derive(Clone, Copy, Debug)]
struct Size {
    crashes: u8,
    slow: u8,
    lost: u8,
}

const CALM: Size = Size { crashes: 0, slow: 0, lost: 0 };
const SMALL: Size = Size { crashes: 1, slow: 0, lost: 0 };
const EVERY: Size = Size { crashes: 1, slow: 1, lost: 1 };
const LOST: Size = Size { crashes: 1, slow: 0, lost: 1 };

fn asks(who: &'static str, says: &'static str, command: Command) -> Person {
    Person::asks(who, vec![(says, command)])
}

fn insists(who: &'static str, says: &'static str, command: Command) -> Person {
    let may = Permissions::ALL;
    let acts = vec![Act::Ask { says, command, may, insists: true }];
    Person { who, acts, open: false }
}

fn unarchives() -> Person {
    insists("a person", "unarchives task 0", Command::Operation(unarchive_command()))
}

fn retries() -> Person {
    let command = Command::Operator(OperatorCommand::Retry { job: job(0) });
    insists("an operator", "retries job 0", command)
}

fn forgets(n: u8) -> Person {
    let command = OperatorCommand::ForgetResource { resource: resource(job(0), n) };
    insists("an operator", "forgets a worktree", Command::Operator(command))
}

fn gone(w: &World) -> bool {
    w.disk.worktrees.iter().any(|t| t.place == Place::Gone)
}

fn returned(w: &World) -> bool {
    w.view.removals.iter().any(|r| r.outcome == Some(RemovalOutcome::Returned))
}

/// A worktree lies in the trash, its removal is not settled, and nobody is at work on it.
fn stopped_half_way(w: &World) -> bool {
    let open = |r: &freehold_kernel::Removal| {
        let own = w.disk.worktrees.iter().find(|t| t.moved_by == Some(r.id));
        let idle = w.disk.hands.iter().all(|h| h.path != r.path);
        r.outcome.is_none() && idle && own.is_some_and(|t| t.place == Place::InTrash)
    };
    w.view.removals.iter().any(open)
}

fn ended(w: &World, state: JobState) -> bool {
    w.view.jobs.iter().any(|j| j.state == state)
}

fn settled(w: &World, result: ResourceResult, reason: Reason) -> bool {
    w.view.resources.iter().any(|r| r.result == result && r.reason == reason)
}

/// Something of a job was given up, since a runtime may live.
fn given_up(w: &World, kind: ResourceKind) -> bool {
    w.view.resources.iter().any(|r| {
        let alive = r.result == ResourceResult::Failed && r.reason == Reason::RuntimeAlive;
        alive && r.kind == kind
    })
}

fn sized(system: System, size: Size) -> System {
    system
        .allowing(size.crashes, Fault::Crash)
        .allowing(size.slow, Fault::Slow)
        .allowing(size.lost, Fault::LostReply)
}

/// Task 0 with unsaved work in worktree 0, archived.
fn dirty(instances: u8) -> World {
    let mut world = owned(instances);
    write(&mut world, 0);
    operated(&mut world, 0, Trigger::Archive);
    world
}

fn workers(size: Size) -> System {
    let system = System::new("job-workers", dirty(2))
        .with(Cleaner { says_late: true, ..Cleaner::looking(0) })
        .with(Cleaner { puts_back: true, ..Cleaner::new(1) })
        .with(Recovery { instance: 1 })
        .with(Clock)
        .with(unarchives())
        .allowing(1, Fault::Outsider)
        .sometimes("worktree removed", gone)
        .sometimes("worktree put back", returned)
        .sometimes("work salvaged", |w| !w.view.salvage.is_empty())
        .sometimes("job succeeded", |w| ended(w, JobState::Succeeded))
        .sometimes("job cancelled", |w| ended(w, JobState::Cancelled))
        .sometimes("claimed by the second instance", |w| {
            w.view.job_roots.iter().any(|p| p.claimed_by == Some(instance(1)))
        })
        .sometimes("claim rescued", |w| ended(w, JobState::RetryWait));
    sized(system, size)
}

fn rearchive() -> System {
    let mut world = archived(2);
    finish_rootless(&mut world, job(0));
    let system = System::new("job-rearchive", world)
        .with(Cleaner::new(0))
        .with(Cleaner::new(1))
        .with(Recovery { instance: 1 })
        .with(Clock)
        .with(unarchives())
        .with(Operator::new(1, Trigger::Archive, 1))
        .sometimes("archived again", |w| {
            w.view.jobs.iter().any(|j| j.id == job(1) && j.state == JobState::Succeeded)
        })
        .sometimes("stopped half-way", stopped_half_way)
        .sometimes("removed for the second archive", |w| returned(w) && gone(w));
    sized(system, SMALL)
}

fn delete() -> System {
    let mut world = dirty(2);
    finish_rootless(&mut world, job(0));
    let system = System::new("job-delete", world)
        .with(Cleaner::new(0))
        .with(Cleaner::new(1))
        .with(Recovery { instance: 1 })
        .with(Clock)
        .with(Operator::new(1, Trigger::Delete, 1))
        .sometimes("task gone", |w| w.view.tasks.is_empty())
        .sometimes("job taken over", |w| ended(w, JobState::Cancelled))
        .sometimes("removed for the heir", |w| {
            let of = |r: &freehold_kernel::Resource| r.job_id == job(1);
            w.view.removals.iter().all(|r| r.authority_id.0 == job(0).0)
                && w.view.resources.iter().any(|r| of(r) && r.result == ResourceResult::Removed)
        })
        .sometimes("deletion done", |w| {
            w.view.jobs.iter().any(|j| j.id == job(1) && j.state == JobState::Succeeded)
        });
    sized(system, SMALL)
}

fn failing() -> System {
    System::new("job-failing", dirty(1))
        .with(Cleaner::new(0))
        .with(Recovery { instance: 0 })
        .with(Clock)
        .with(retries())
        .with(forgets(0))
        .allowing(1, Fault::Crash)
        .allowing(2, Fault::Disk)
        .sometimes("stopped half-way", stopped_half_way)
        .sometimes("retried by hand", |w| {
            let anew = |p: &freehold_kernel::JobRoot| p.state == JobState::Pending && p.tries == 0;
            !w.view.removals.is_empty() && w.view.job_roots.iter().any(anew)
        })
        .sometimes("removal given up", returned)
        .sometimes("job failed", |w| ended(w, JobState::Failed))
        .sometimes("job succeeded", |w| ended(w, JobState::Succeeded))
        .sometimes("worktree removed", gone)
        .sometimes("tries spent", |w| settled(w, ResourceResult::Failed, Reason::Io))
        .sometimes("forgotten", |w| settled(w, ResourceResult::Forgotten, Reason::ByPerson))
}

fn borrower() -> System {
    let mut world = owned(2);
    begin::add_task(&mut world, 1, None);
    begin::add_environment(&mut world, 1, 1);
    let borrows = SessionCommand::Create {
        session: session(1),
        task: task(1),
        environment: Some(environment(0)),
        source: SessionSource::Person,
        parent: None,
    };
    let leaves = SessionCommand::Link { session: session(1), environment: environment(1) };
    let asks = vec![
        ("creates a session of task 1 that borrows environment 0", Command::Session(borrows)),
        ("takes its session to an environment of its own", Command::Session(leaves)),
    ];
    let system = System::new("job-borrower", world)
        .with(Operator::new(0, Trigger::Archive, 0))
        .with(Cleaner::looking(0))
        .with(Recovery { instance: 1 })
        .with(Clock)
        .with(Person::asks("a borrower", asks))
        .with(unarchives())
        .sometimes("preserved", |w| settled(w, ResourceResult::Preserved, Reason::Borrowed))
        .sometimes("reconciled", |w| {
            w.view
                .jobs
                .iter()
                .any(|j| j.trigger == Trigger::Reconcile && j.state == JobState::Succeeded)
        })
        .sometimes("reconcile cancelled", |w| {
            w.view
                .jobs
                .iter()
                .any(|j| j.trigger == Trigger::Reconcile && j.state == JobState::Cancelled)
        });
    sized(system, LOST)
}

/// Worktree 0 in root 0 of host 0, worktree 1 in root 1 of host 1.
fn two_hosts() -> World {
    let mut world = owned(1);
    add_stranger(&mut world, 1, 1);
    add_worktree_of(&mut world, 1, 1);
    operated(&mut world, 0, Trigger::Archive);
    world
}

fn hosts(size: Size, a_week: bool) -> System {
    let mut world = two_hosts();
    finish_rootless(&mut world, job(0));
    // For root 1 only; the other is served.
    world.set_fact("a week", if a_week { 0b10 } else { 0 });
    let system = System::new("job-hosts", world)
        .with(Cleaner::new(0))
        .with(Cleaner::new(1))
        .with(Recovery { instance: 0 })
        .with(Clock)
        .with(Calendar)
        .with(Outsider { deeds: vec![Deed::Unmount(1), Deed::Mount(1)] })
        .allowing(1, Fault::Outsider)
        .sometimes("both removed", |w| w.disk.worktrees.iter().all(|t| t.place == Place::Gone))
        .sometimes("could not be looked at", |w| {
            settled(w, ResourceResult::Waiting, Reason::RootUnavailable)
        })
        .sometimes("job succeeded", |w| ended(w, JobState::Succeeded));
    let given_up = |w: &World| settled(w, ResourceResult::Failed, Reason::RootUnavailable);
    let system = if a_week { system.sometimes("root given up", given_up) } else { system };
    sized(system, size)
}

fn outsiders() -> System {
    System::new("job-outsiders", dirty(2))
        .with(Cleaner::looking(0))
        .with(Recovery { instance: 1 })
        .with(Clock)
        .with(Outsider { deeds: vec![Deed::Exchange(0), Deed::PutBack(0)] })
        .with(Outsider { deeds: vec![Deed::Enter, Deed::Leave] })
        .with(Outsider { deeds: vec![Deed::Unmount(0), Deed::Mount(0)] })
        .with(forgets(0))
        .allowing(1, Fault::Crash)
        .allowing(2, Fault::Outsider)
        .sometimes("something else at the path", |w| {
            settled(w, ResourceResult::Failed, Reason::IdentityMismatch)
        })
        .sometimes("in use", |w| settled(w, ResourceResult::Waiting, Reason::InUse))
        .sometimes("unmounted", |w| settled(w, ResourceResult::Waiting, Reason::RootUnavailable))
        .sometimes("exchanged half-way", |w| {
            w.disk.at(path(0)).is_some_and(|t| t.identity != stamp(0))
                && w.view.removals.iter().any(|r| r.outcome.is_none())
        })
        .sometimes("worktree removed", gone)
        .sometimes("forgotten", |w| settled(w, ResourceResult::Forgotten, Reason::ByPerson))
}

fn tamperer() -> System {
    let mut world = dirty(2);
    finish_rootless(&mut world, job(0));
    let system = System::new("job-tamperer", world)
        .with(Cleaner::looking(0))
        .with(Cleaner::looking(1))
        .with(Recovery { instance: 1 })
        .with(Clock)
        .with(Outsider { deeds: vec![Deed::Exchange(0), Deed::PutBack(0)] })
        .with(forgets(0))
        .allowing(1, Fault::Outsider)
        .sometimes("something else at the path", |w| {
            settled(w, ResourceResult::Failed, Reason::IdentityMismatch)
        })
        .sometimes("exchanged after the look", |w| {
            w.disk.at(path(0)).is_some_and(|t| t.identity != stamp(0))
                && w.view.removals.iter().any(|r| r.outcome.is_none())
        })
        .sometimes("worktree removed", gone);
    sized(system, EVERY)
}

/// C-10: whoever claims the job cannot read all of it, and parks it; somebody mends the row, and
/// a person retries.
fn damaged() -> System {
    let mut world = archived(2);
    finish_rootless(&mut world, job(0));
    let system = System::new("job-damaged", world)
        .with(Cleaner::new(0))
        .with(Cleaner::new(1))
        .with(Recovery { instance: 1 })
        .with(Clock)
        .with(Outsider { deeds: vec![Deed::Damage, Deed::Mend] })
        .with(retries())
        .allowing(1, Fault::Outsider)
        .sometimes("parked", |w| {
            w.fact("damaged") != 0 && w.view.jobs.iter().any(|j| j.state == JobState::Failed)
        })
        .sometimes("parked with a removal half-way", |w| {
            w.view.jobs.iter().any(|j| j.state == JobState::Failed)
                && w.view.removals.iter().any(|r| r.outcome.is_none())
        })
        .sometimes("mended, and done", |w| {
            w.fact("damaged") == 0 && ended(w, JobState::Succeeded) && gone(w)
        });
    sized(system, EVERY)
}

fn unreadable() -> System {
    let mut world = archived(2);
    if let Some(job) = world.view.jobs.edit(job(0).0) {
        job.snapshot_version = 2;
    }
    world.view.commit();
    begin::add_task(&mut world, 1, None);
    begin::add_environment(&mut world, 1, 1);
    begin::add_worktree(&mut world, 1, 1, 0);
    let by = Operator { task: 1, ..Operator::new(1, Trigger::Archive, 0) };
    operate(&mut world, by, UnsavedPolicy::Salvage, Unsaved::NONE);
    let system = System::new("job-unreadable", world)
        .with(Cleaner::new(0))
        .with(Cleaner::new(1))
        .with(Recovery { instance: 1 })
        .with(Clock)
        .with(retries())
        .with(forgets(0))
        .sometimes("parked", |w| {
            w.view.jobs.iter().any(|j| j.id == job(0) && j.state == JobState::Failed)
        })
        .sometimes("the other goes on", |w| {
            w.view.jobs.iter().any(|j| j.id == job(1) && j.state == JobState::Succeeded)
        })
        .sometimes("forgotten", |w| settled(w, ResourceResult::Forgotten, Reason::ByPerson));
    sized(system, SMALL)
}

fn trash() -> System {
    let mut world = dirty(2);
    settle(&mut world, |s| Settings { trash_retention: Span::hours(24), ..s });
    let system = System::new("job-trash", world)
        .with(Cleaner::new(0))
        .with(Sweeper { instance: 0 })
        .with(Sweeper { instance: 1 })
        .with(Recovery { instance: 1 })
        .with(Clock)
        .with(Calendar)
        .with(unarchives())
        .sometimes("kept", |w| {
            w.view.trash.iter().any(|t| t.state == TrashState::Kept && t.restorable_until.is_some())
        })
        .sometimes("purged", |w| {
            w.view.trash.iter().any(|t| t.state == TrashState::Gone) && gone(w)
        });
    sized(system, SMALL)
}

fn runtimes() -> System {
    let mut world = owned(2);
    run(&mut world);
    operated(&mut world, 0, Trigger::Archive);
    let system = System::new("job-runtimes", world)
        .with(Cleaner::new(0))
        .with(Cleaner { puts_back: true, ..Cleaner::new(1) })
        .with(Recovery { instance: 1 })
        .with(Clock)
        .with(Outsider { deeds: vec![Deed::LoseRuntimes, Deed::FindRuntimes] })
        .allowing(1, Fault::Outsider)
        .sometimes("waits for a runtime", |w| {
            settled(w, ResourceResult::Waiting, Reason::RuntimeAlive)
        })
        .sometimes("worktree removed", gone)
        .sometimes("runtime never stopped", |w| {
            ended(w, JobState::Failed) && settled(w, ResourceResult::Failed, Reason::RuntimeAlive)
        });
    sized(system, SMALL)
}

fn restore() -> System {
    let mut world = dirty(2);
    cleaned(&mut world, job(0));
    unarchive(&mut world);
    let system = System::new("job-restore", world)
        .with(Recreator { n: 1, of: 0, environment: 0, instance: 0 })
        .with(Restorer { into: 0, instance: 0 })
        .with(Operator::new(1, Trigger::Archive, 1))
        .with(Cleaner::looking(1))
        .with(Recovery { instance: 1 })
        .with(Clock)
        .sometimes("restored", |w| w.view.salvage.iter().any(|s| s.state == SalvageState::Restored))
        .sometimes("restored and salvaged again", |w| {
            w.view.salvage.len() > 1
                && w.view.salvage.iter().any(|s| s.state == SalvageState::Restored)
        })
        .sometimes("never restored", |w| {
            w.view.tasks.iter().any(|t| t.lifecycle == TaskLifecycle::Archived)
                && w.view.salvage.len() == 1
                && w.view.repos.iter().all(|r| r.materialised == Materialised::No)
        });
    sized(system, SMALL)
}

fn writer() -> System {
    let acts = vec![Act::Write(0)];
    let mut world = archived(2);
    finish_rootless(&mut world, job(0));
    let system = System::new("job-writer", world)
        .with(Cleaner::looking(0))
        .with(Cleaner::new(1))
        .with(Recovery { instance: 1 })
        .with(Clock)
        .with(Person { who: "an agent", acts, open: false })
        .allowing(1, Fault::Disk)
        .sometimes("salvaged after the look", |w| {
            w.view.removals.iter().any(|r| r.unsaved.is_none()) && !w.view.salvage.is_empty()
        })
        .sometimes("worktree removed", gone);
    sized(system, SMALL)
}

fn tasks(size: Size) -> System {
    let mut world = archived(2);
    begin::add_task(&mut world, 1, None);
    begin::add_environment(&mut world, 1, 1);
    begin::add_worktree(&mut world, 1, 1, 0);
    let by = Operator { task: 1, ..Operator::new(1, Trigger::Delete, 0) };
    operate(&mut world, by, UnsavedPolicy::Salvage, Unsaved::NONE);
    finish_rootless(&mut world, job(0));
    finish_rootless(&mut world, job(1));
    let system = System::new("job-tasks", world)
        .with(Cleaner::new(0))
        .with(Cleaner::new(1))
        .with(Recovery { instance: 1 })
        .with(Clock)
        .sometimes("both removed", |w| w.disk.worktrees.iter().all(|t| t.place == Place::Gone))
        .sometimes("both at work", |w| w.view.jobs.iter().all(|j| j.state == JobState::Running));
    sized(system, size)
}

fn reset() -> System {
    let mut world = owned(2);
    begin::add_task(&mut world, 1, None);
    operated(&mut world, 0, Trigger::EnvironmentReset);
    finish_rootless(&mut world, job(0));
    let borrows = SessionCommand::Create {
        session: session(1),
        task: task(1),
        environment: Some(environment(0)),
        source: SessionSource::Person,
        parent: None,
    };
    let who = "a borrower";
    let says = "creates a session of task 1 that borrows environment 0";
    let system = System::new("job-reset", world)
        .with(Cleaner::new(0))
        .with(Cleaner::new(1))
        .with(Recovery { instance: 1 })
        .with(Clock)
        .with(asks(who, says, Command::Session(borrows)))
        .with(Operator::new(1, Trigger::Delete, 1))
        .sometimes("given to the borrower", |w| {
            w.view.environments.iter().any(|e| e.task_id == task(1))
        })
        .sometimes("the old one removed for the deletion", |w| {
            gone(w) && w.view.removals.iter().any(|r| r.authority_id.0 == job(1).0)
        })
        .sometimes("the old one removed for the reset", |w| {
            gone(w) && w.view.removals.iter().any(|r| r.authority_id.0 == job(0).0)
        })
        .holding("W-20 the old worktree of a reset is removed", |w| {
            let kept = settled(w, ResourceResult::Kept, Reason::OwnedElsewhere);
            if kept { Err("it was kept as another's".to_owned()) } else { Ok(()) }
        });
    sized(system, SMALL)
}

/// T-10, C-7: what ran in the environment cannot be stopped for as long as anybody tries, while
/// the next turn runs in the new one. Its instance is gone (C-15).
fn reset_runtimes() -> System {
    let mut world = owned(2);
    run(&mut world);
    operated(&mut world, 0, Trigger::EnvironmentReset);
    lapse_instance(&mut world, 0);
    let stopped = Command::Operator(OperatorCommand::DeclareStopped { runtime: runtime(0) });
    let next = Command::Turn(TurnCommand::Submit {
        session: session(0),
        input: input(1),
        origin: Origin::Person,
        turn: turn(1),
        runtime: runtime(1),
        runtime_kind: RuntimeKind::Local,
        instance: instance(1),
    });
    let system = System::new("job-reset-runtimes", world)
        .with(Cleaner::new(1))
        .with(Recovery { instance: 1 })
        .with(Clock)
        .with(Outsider { deeds: vec![Deed::LoseRuntimes, Deed::FindRuntimes] })
        .with(asks("a person", "writes to session 0 again", next))
        .with(asks("an operator", "says that runtime 0 is stopped", stopped))
        .with(retries())
        .allowing(1, Fault::Outsider)
        .sometimes("runtime never stopped", |w| given_up(w, ResourceKind::Runtime))
        .sometimes("its worktree kept for it", |w| given_up(w, ResourceKind::Worktree))
        .sometimes("said to be stopped, and removed", |w| {
            gone(w) && given_up(w, ResourceKind::Runtime)
        })
        .sometimes("removed while the next turn runs", |w| {
            gone(w) && w.view.turns.iter().any(|t| t.phase != TurnPhase::Ended)
        });
    sized(system, SMALL)
}

/// W-35, W-4, W-34: task 0 was archived and cleaned up with trash kept, and is back. Somebody
/// restores, somebody archives again, and the retentions of trash and salvage end.
fn trash_restore(size: Size) -> System {
    let mut world = dirty(2);
    settle(&mut world, |s| Settings {
        trash_retention: Span::hours(24),
        salvage_retention: Span::hours(48),
        salvage_consent: Some(ContentHash(0x5a)),
        ..s
    });
    cleaned(&mut world, job(0));
    unarchive(&mut world);
    let expired = |w: &World| w.view.salvage.iter().any(|s| s.state == SalvageState::Expired);
    let system = System::new("job-trash-restore", world)
        .with(Returner { n: 1, of: 0, environment: 0, instance: 0 })
        .with(Operator::new(1, Trigger::Archive, 1))
        .with(Cleaner::new(1))
        .with(Sweeper { instance: 1 })
        .with(Recovery { instance: 1 })
        .with(Clock)
        .with(Calendar)
        .sometimes("restored", |w| {
            w.view.attempts.id(attempt(1).0).is_some_and(|a| a.state == AttemptState::Owned)
        })
        .sometimes("put back into trash", |w| {
            w.view.trash.len() > 1
                && w.view
                    .attempts
                    .id(attempt(1).0)
                    .is_some_and(|a| a.state == AttemptState::Compensated)
        })
        .sometimes("restored, and removed again", |w| {
            w.view.trash.len() > 1
                && w.view.attempts.id(attempt(1).0).is_some_and(|a| a.state == AttemptState::Owned)
        })
        .sometimes("purged instead", |w| gone(w) && w.view.attempts.id(attempt(1).0).is_none())
        .sometimes("salvage expired", expired);
    sized(system, size)
}
