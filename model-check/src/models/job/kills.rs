//! The guards that model 2 kills: each in the smallest system that shows what it is there for.

use freehold_kernel::{
    AttemptCommand, CleanupCommand, ClosingKind, Command, Evidence, Found, Guard, OperatorCommand,
    Reason, RemovalStep, SalvageId, SessionCommand, Settings, Span, TaskCommand, Trigger,
    TurnCommand, TurnOutcome, Unsaved, UnsavedPolicy,
};

use super::scenes::*;
use crate::models::actors::person::Act;
use crate::models::actors::{
    Calendar, Cleaner, Clock, Operator, Person, Recovery, Rescuer, Restorer, Sweeper, maker,
};
use crate::models::begin;
use crate::models::catalogue::Kill;
use crate::models::names::*;
use crate::system::{Fault, System};
use crate::world::{LAPSED, World};

const fn kill(
    guards: &'static [Guard],
    build: fn() -> System,
    property: &'static str,
    steps: usize,
) -> Kill {
    Kill { guards, build, property, steps, why: "" }
}

const fn group(
    guards: &'static [Guard],
    build: fn() -> System,
    property: &'static str,
    steps: usize,
    why: &'static str,
) -> Kill {
    Kill { guards, build, property, steps, why }
}

/// Guards that this model kills.
pub const KILLS: &[Kill] = &[
    kill(&[Guard::ClaimToken], slow_claimer, "P-35", 5),
    kill(&[Guard::ClaimLease], lapsed_claimer, "P-35", 3),
    kill(&[Guard::ProvenDead], runtime_out_of_reach, "P-28", 2),
    kill(&[Guard::ResourceWaiting], forgotten_meanwhile, "P-13", 4),
    kill(&[Guard::RuntimesFirst], runtime_and_worktree, "P-4", 2),
    kill(&[Guard::RuntimeIdle], declared_at_work, "P-34", 1),
    kill(&[Guard::RuntimeUnreached], declared_between_turns, "P-34", 1),
    kill(&[Guard::AttemptsFirst], attempt_and_worktree, "P-4", 2),
    kill(&[Guard::NotTakenOver], delete_in_preparation, "P-6", 2),
    kill(&[Guard::ConsentCovers], consent_for_another_kind, "P-38", 2),
    kill(&[Guard::PermitNothingUnsaved], unsaved_since_the_archive, "P-38", 2),
    kill(&[Guard::MarkRemoving], one_worker, "P-33", 2),
    kill(&[Guard::RemovalUnsettled], forgotten_under_its_hands, "P-11", 6),
    kill(&[Guard::RemovalToken], record_of_a_dead_one, "P-11", 7),
    kill(&[Guard::Claimable], week_long_claim, "P-34", 3),
    kill(&[Guard::RootUnserved], wrong_calendar, "P-38", 1),
    kill(&[Guard::JobReadable], newer_snapshot, "P-28", 1),
    kill(&[Guard::RetryReadable], newer_snapshot_failed, "P-28", 1),
    kill(&[Guard::Due], not_due, "P-38", 1),
    kill(&[Guard::RootServed], stranger, "P-39", 1),
    kill(&[Guard::OneJobOfTask], reset_then_archive, "P-12", 2),
    kill(&[Guard::StepInOrder], record_twice, "P-11", 1),
    kill(&[Guard::RemovalLapsed], dead_executor, "P-12", 4),
    kill(&[Guard::SalvagedFirst], salvage_comes_to_nothing, "P-29", 4),
    kill(&[Guard::TrashKept], two_sweepers, "P-12", 2),
    kill(&[Guard::TrashLapsed], kept_trash, "P-38", 1),
    kill(&[Guard::SalvageLapsed], nobody_consented, "P-29", 1),
    kill(&[Guard::RescueToken], old_rescuer, "P-35", 5),
    kill(&[Guard::RescueLapsed], wrong_clock, "P-34", 1),
    kill(&[Guard::CancelKind], deletion_cancelled, "P-3", 1),
    kill(&[Guard::RestoreFits], restore_into_nothing, "P-29", 1),
    kill(&[Guard::ForgetLapsed], forgotten_at_work, "P-34", 3),
    kill(&[Guard::PermitNoBorrower], borrowed, "P-4", 2),
    kill(&[Guard::OwnedAsSnapshot], path_taken_again, "P-12", 3),
    kill(&[Guard::EvidenceKnown], unmounted, "P-28", 2),
    kill(&[Guard::IdentityProven], exchanged, "P-11", 2),
    kill(&[Guard::NoObstacle], somebody_stands_in_it, "P-11", 2),
    kill(&[Guard::RemovalStands], unarchived_half_way, "P-4", 5),
    kill(&[Guard::UnarchiveCancels], unarchived, "P-14", 1),
    kill(&[Guard::Managed], persons_folder, "P-38", 2),
    group(
        &[Guard::ClaimRunning, Guard::ClaimToken, Guard::ClaimLease],
        cancelled_claim,
        "P-35",
        3,
        "the end of a claim clears its token and its lease, so that these two refuse as well; \
         that the claim is over is the true reason, and the one that helps",
    ),
    group(
        &[Guard::RescueRunning, Guard::RescueToken, Guard::RescueLapsed],
        finished_meanwhile,
        "P-35",
        6,
        "the end of a claim clears its token and its lease, so that these two refuse as well; \
         what finished meanwhile stays finished is the rule itself (C-4)",
    ),
    group(
        &[Guard::EarlierJobsEnded, Guard::OneJobOfTask],
        reconciled_too_early,
        "P-12",
        2,
        "the one keeps a second job of the task from being reserved by the system, the other from \
         being claimed beside the first",
    ),
    group(
        &[Guard::RetryAuthority, Guard::AuthorityStands, Guard::RemovalStands],
        retried_after_unarchive,
        "P-4",
        3,
        "the first refuses a person's retry at once and says why; the second is asked before every \
         permission, whatever made the job go on (C-5); the third would put back at once what \
         should never have been begun",
    ),
    group(
        &[Guard::RetryAuthority, Guard::RetryNotTakenOver],
        retried_after_delete,
        "P-13",
        1,
        "a deletion ends the archive's authority and is a newer job as well; after a reset there \
         is no authority that could end, so that the second is needed there",
    ),
];

/// Somebody asks for this, once.
fn asks(who: &'static str, says: &'static str, command: Command) -> Person {
    Person::asks(who, vec![(says, command)])
}

fn insists(who: &'static str, says: &'static str, command: Command) -> Person {
    let may = freehold_kernel::Permissions::ALL;
    let acts = vec![Act::Ask { says, command, may, insists: true }];
    Person { who, acts, open: false }
}

fn forgets() -> Person {
    let resource = resource(job(0), 0);
    let command = Command::Operator(OperatorCommand::ForgetResource { resource });
    insists("an operator", "forgets worktree 0", command)
}

fn retries() -> Person {
    let command = Command::Operator(OperatorCommand::Retry { job: job(0) });
    asks("an operator", "retries job 0", command)
}

fn unarchives() -> Person {
    asks("a person", "unarchives task 0", Command::Operation(unarchive_command()))
}

fn system(world: World) -> System {
    System::new("job-guard", world)
}

/// One worker.
fn one_worker() -> System {
    system(archived(1)).with(Cleaner::new(0))
}

/// A worker is so slow that its claim is rescued and claimed again.
fn slow_claimer() -> System {
    system(archived(2))
        .with(Cleaner::new(0))
        .with(Cleaner::new(1))
        .with(Recovery { instance: 1 })
        .with(Clock)
        .allowing(1, Fault::Slow)
}

/// A worker is slower than its lease.
fn lapsed_claimer() -> System {
    one_worker().with(Clock).allowing(1, Fault::Slow)
}

/// A claim is cancelled by an unarchive, and its worker goes on.
fn cancelled_claim() -> System {
    system(ran()).with(Cleaner::new(0)).with(unarchives())
}

/// Runtime 0 ran in worktree 0, and the task is archived.
fn ran() -> World {
    let mut world = owned(1);
    run(&mut world);
    operated(&mut world, 0, Trigger::Archive);
    world
}

fn runtime_out_of_reach() -> System {
    let mut world = ran();
    world.set_fact("runtime out of reach", 1);
    system(world).with(Cleaner::new(0))
}

fn runtime_and_worktree() -> System {
    system(ran()).with(Cleaner::new(0))
}

/// An operator says of a runtime that it is stopped, while a turn runs on it. Its instance did not
/// say for a while that it lives, but the turn was renewed.
fn declared_at_work() -> System {
    let mut world = owned(1);
    run(&mut world);
    lapse_instance(&mut world, 0);
    declared(world)
}

/// The same, between two turns of a living instance.
fn declared_between_turns() -> System {
    let mut world = owned(1);
    run(&mut world);
    world.prepare(Command::Turn(TurnCommand::End {
        turn: turn(0),
        outcome: TurnOutcome::Completed,
        next_turn: turn(1),
        next_runtime: runtime(1),
    }));
    declared(world)
}

fn declared(world: World) -> System {
    let command = Command::Operator(OperatorCommand::DeclareStopped { runtime: runtime(0) });
    system(world).with(insists("an operator", "says that runtime 0 is stopped", command))
}

/// A maker was at work in the environment when the task was archived.
fn attempt_and_worktree() -> System {
    let mut world = owned(1);
    world.prepare(Command::Attempt(maker::begin(1, 0, 0)));
    operated(&mut world, 0, Trigger::Archive);
    system(world).with(Cleaner::new(0))
}

/// An operator forgets what the worker has just looked at.
fn forgotten_meanwhile() -> System {
    system(archived(1)).with(Cleaner::looking(0)).with(forgets())
}

/// A deletion holds the barrier while the archive's job goes on.
fn delete_in_preparation() -> System {
    let mut world = archived(1);
    let by = Operator::new(1, Trigger::Delete, 0);
    reserve(&mut world, by, UnsavedPolicy::Salvage, Unsaved::NONE);
    system(world).with(Cleaner::new(0))
}

/// A person agreed to lose untracked files, and there are changes to tracked ones.
fn consent_for_another_kind() -> System {
    let mut world = owned(1);
    write(&mut world, 0);
    let by = Operator::new(0, Trigger::Archive, 0);
    operate(&mut world, by, UnsavedPolicy::Discard, Unsaved::UNTRACKED);
    system(world).with(Cleaner::new(0))
}

/// What is unsaved came after the question.
fn unsaved_since_the_archive() -> System {
    let mut world = owned(1);
    let by = Operator::new(0, Trigger::Archive, 0);
    operate(&mut world, by, UnsavedPolicy::Refuse, Unsaved::NONE);
    write(&mut world, 0);
    system(world).with(Cleaner::new(0))
}

/// A removal whose executor is slow is forgotten, and the executor goes on.
fn forgotten_under_its_hands() -> System {
    one_worker().with(Clock).with(forgets()).allowing(1, Fault::Slow)
}

/// The record of an executor that died arrives when somebody else has taken over.
fn record_of_a_dead_one() -> System {
    system(archived(2))
        .with(Cleaner { says_late: true, ..Cleaner::new(0) })
        .with(Cleaner::new(1))
        .with(Clock)
        .allowing(1, Fault::Crash)
}

/// A huge removal takes longer than the patience with a root that nobody serves.
fn week_long_claim() -> System {
    let mut world = archived(1);
    add_stranger(&mut world, 1, 1);
    world.set_fact("a week", 1);
    system(world).with(Cleaner::new(0)).with(Recovery { instance: 1 }).with(Calendar)
}

fn wrong_calendar() -> System {
    let job_root = part(job(0), 0);
    let command = Command::Cleanup(CleanupCommand::GiveUpRoot { job_root });
    let who = "instance B, whose clock is a week ahead,";
    system(archived(2)).with(asks(who, "gives root 0 up", command))
}

/// Job 0's snapshot was written by a newer build.
fn newer() -> World {
    let mut world = archived(1);
    if let Some(job) = world.view.jobs.edit(job(0).0) {
        job.snapshot_version = 2;
    }
    world.view.commit();
    world
}

fn newer_snapshot() -> System {
    system(newer()).with(Cleaner::new(0))
}

fn newer_snapshot_failed() -> System {
    let mut world = newer();
    claim(&mut world, part(job(0), 0), 0);
    system(world).with(retries())
}

/// The first try has failed, and the second is not due.
fn not_due() -> System {
    let mut world = archived(1);
    settle(&mut world, waiting_a_minute);
    claim(&mut world, part(job(0), 0), 0);
    finish(&mut world, job(0));
    system(world).with(Cleaner::new(0))
}

/// A worker of another machine.
fn stranger() -> System {
    let mut world = archived(1);
    add_stranger(&mut world, 1, 1);
    system(world).with(Cleaner::new(1))
}

/// A reset and an archive of one task wait, each with a job.
fn reset_then_archive() -> System {
    let mut world = owned(2);
    operated(&mut world, 0, Trigger::EnvironmentReset);
    operated(&mut world, 1, Trigger::Archive);
    system(world).with(Cleaner::new(0)).with(Cleaner::new(1))
}

/// The record of a step arrives once more after the next one.
fn record_twice() -> System {
    let mut world = archived(1);
    let executor = removed_until(&mut world, job(0), RemovalStep::Renamed);
    let command = Command::Cleanup(CleanupCommand::RecordStep {
        removal: executor.removal,
        token: executor.token,
        step: RemovalStep::Salvaged,
        found_something: true,
        salvage: None,
    });
    system(world).with(asks("the network", "delivers \"salvaged\" a second time", command))
}

/// An executor dies, and another instance does not wait for its lease.
fn dead_executor() -> System {
    system(archived(2)).with(Cleaner::new(0)).with(Cleaner::new(1)).allowing(1, Fault::Crash)
}

fn salvage_comes_to_nothing() -> System {
    let mut world = owned(1);
    write(&mut world, 0);
    operated(&mut world, 0, Trigger::Archive);
    system(world).with(Cleaner::new(0)).allowing(1, Fault::Disk)
}

/// Worktree 0 was removed, and its trash is kept for a day.
fn trashed(instances: u8) -> World {
    let mut world = archived(instances);
    settle(&mut world, |s| Settings { trash_retention: Span::hours(24), ..s });
    cleaned(&mut world, job(0));
    world
}

fn two_sweepers() -> System {
    let mut world = trashed(2);
    for trash in world.view.trash.iter_mut() {
        trash.restorable_until = Some(LAPSED);
    }
    world.view.commit();
    system(world).with(Sweeper { instance: 0 }).with(Sweeper { instance: 1 })
}

fn kept_trash() -> System {
    system(trashed(1)).with(Sweeper { instance: 0 })
}

/// A claim whose worker died, long enough ago.
fn abandoned(instances: u8) -> World {
    let mut world = archived(instances);
    claim(&mut world, part(job(0), 0), 0);
    lapse(&mut world);
    world
}

fn lapse(world: &mut World) {
    for part in world.view.job_roots.iter_mut() {
        part.lease_until = part.lease_until.map(|_| LAPSED);
    }
    world.view.commit();
}

/// A rescuer asks for what it saw two claims ago.
fn old_rescuer() -> System {
    system(abandoned(3))
        .with(Rescuer { instance: 1 })
        .with(Recovery { instance: 2 })
        .with(Cleaner::new(2))
        .with(Clock)
        .allowing(1, Fault::Slow)
}

/// A rescuer asks for what has meanwhile been settled without any claim.
fn finished_meanwhile() -> System {
    let mut world = archived(3);
    settle(&mut world, waiting_a_minute);
    removed_until(&mut world, job(0), RemovalStep::BranchSettled);
    all_die(&mut world);
    lapse(&mut world);
    for removal in world.view.removals.iter_mut() {
        removal.lease_until = LAPSED;
    }
    world.view.commit();
    system(world).with(Rescuer { instance: 1 }).with(Recovery { instance: 2 }).with(Cleaner::new(2))
}

fn wrong_clock() -> System {
    let mut world = archived(2);
    let job_root = part(job(0), 0);
    claim(&mut world, job_root, 0);
    let command = Command::Cleanup(CleanupCommand::Rescue { job_root, token: EARLIER });
    let who = "instance B, whose clock is ahead,";
    system(world).with(asks(who, "rescues the claim of instance A", command))
}

fn deletion_cancelled() -> System {
    let command = Command::Operator(OperatorCommand::Cancel { job: job(0) });
    system(deleted(1)).with(asks("an operator", "cancels job 0", command))
}

/// What was salvaged is to be restored, and the worktree has not been made again.
fn restore_into_nothing() -> System {
    let mut world = owned(1);
    write(&mut world, 0);
    operated(&mut world, 0, Trigger::Archive);
    cleaned(&mut world, job(0));
    unarchive(&mut world);
    system(world).with(Restorer { into: 0, instance: 0 })
}

/// What was salvaged is to expire, and nobody consented to a retention.
fn nobody_consented() -> System {
    let mut world = owned(1);
    write(&mut world, 0);
    operated(&mut world, 0, Trigger::Archive);
    cleaned(&mut world, job(0));
    let entry = world.view.salvage.iter().next().map_or(SalvageId(0), |s| s.id);
    let command = Command::Cleanup(CleanupCommand::ExpireSalvage { salvage: entry });
    system(world).with(insists("a sweeper", "lets the salvage expire", command))
}

/// An operator forgets what an executor is at work on.
fn forgotten_at_work() -> System {
    one_worker().with(forgets())
}

/// A session of task 1 borrows the environment of the archived task.
fn borrowed() -> System {
    let mut world = owned(1);
    begin::add_task(&mut world, 1, None);
    begin::add_session(&mut world, 1, 1, Some(0));
    operated(&mut world, 0, Trigger::Archive);
    system(world).with(Cleaner::new(0))
}

/// A person deleted the folder of a deleted task by hand, and another task's maker comes to the
/// same path.
fn path_taken_again() -> System {
    let mut world = owned(1);
    begin::add_task(&mut world, 1, None);
    begin::add_environment(&mut world, 1, 1);
    operated(&mut world, 0, Trigger::Delete);
    world.disk.worktrees.clear();
    let AttemptCommand::Begin {
        attempt,
        token,
        environment,
        repo,
        repository,
        slug,
        root,
        branch,
        worktree,
        branch_existed,
        start_commit,
        instance,
        ..
    } = maker::begin(1, 1, 0)
    else {
        return system(world);
    };
    let begin = AttemptCommand::Begin {
        attempt,
        token,
        environment,
        repo,
        repository,
        slug,
        root,
        path: path(0),
        branch,
        worktree,
        branch_existed,
        start_commit,
        instance,
    };
    system(world)
        .with(asks("instance A (making)", "records an attempt at path 0", Command::Attempt(begin)))
        .with(Cleaner::new(0))
}

fn unmounted() -> System {
    let mut world = archived(1);
    world.set_fact("unmounted", 1);
    system(world).with(Cleaner::new(0))
}

/// Something else stands at the path of the worktree.
fn exchanged() -> System {
    let mut world = archived(1);
    if let Some(ours) = world.disk.find_mut(stamp(0)) {
        ours.path = path(8);
        let foreign = freehold_kernel::properties::Physical {
            identity: stamp(8),
            path: path(0),
            made_by: None,
            ..*ours
        };
        world.disk.worktrees.push(foreign);
    }
    system(world).with(Cleaner::new(0))
}

fn somebody_stands_in_it() -> System {
    let mut world = archived(1);
    world.set_fact("in use", 1);
    system(world).with(Cleaner::new(0))
}

/// The task is unarchived when its worktree is on its way out.
fn unarchived_half_way() -> System {
    one_worker().with(unarchives())
}

fn unarchived() -> System {
    system(archived(1)).with(unarchives())
}

/// A folder that a person chose is in the environment.
fn persons_folder() -> System {
    let mut world = begin::world(1);
    begin::add_task(&mut world, 0, None);
    begin::add_environment(&mut world, 0, 0);
    world.prepare(Command::Task(TaskCommand::RecordUnmanaged {
        repo: repo(0),
        environment: environment(0),
        repository: repository(0),
        slug: slug(0),
        path: path(0),
        branch: branch(0),
    }));
    system(world).with(Operator::new(0, Trigger::Archive, 0))
}

/// The archive's job is at work on environment 1; environment 0 was preserved for a borrower who
/// has left.
fn reconciled_too_early() -> System {
    let mut world = owned(2);
    begin::add_environment(&mut world, 1, 0);
    begin::add_worktree(&mut world, 1, 1, 0);
    begin::add_task(&mut world, 1, None);
    begin::add_session(&mut world, 1, 1, Some(0));
    operated(&mut world, 0, Trigger::Archive);
    claim(&mut world, part(job(0), 0), 0);
    world.hold(EARLIER.0);
    let resource = resource(job(0), 0);
    let evidence = look(&world, resource);
    permit(&mut world, resource, evidence);
    let (session, token) = (session(1), closing_token(1));
    for command in [
        SessionCommand::BeginClose {
            session,
            kind: ClosingKind::Delete,
            token,
            automatic: false,
            force: false,
        },
        SessionCommand::CommitClose { session, token },
    ] {
        world.prepare(Command::Session(command));
    }
    system(world).with(Recovery { instance: 1 }).with(Cleaner::new(1))
}

/// Job 0 failed finally: something else was at the path for a while.
pub(super) fn failed(instances: u8) -> World {
    let mut world = archived(instances);
    claim(&mut world, part(job(0), 0), 0);
    let evidence = Evidence {
        found: Found::Mismatch,
        unsaved: Unsaved::NONE,
        obstacle: Reason::None,
        head: None,
    };
    permit(&mut world, resource(job(0), 0), evidence);
    finish(&mut world, job(0));
    finish_rootless(&mut world, job(0));
    world
}

fn retried_after_unarchive() -> System {
    let mut world = failed(1);
    unarchive(&mut world);
    system(world).with(retries()).with(Cleaner::new(0))
}

fn retried_after_delete() -> System {
    let mut world = failed(1);
    if let Some(job) = world.view.jobs.edit(job(0).0) {
        job.created_at = LAPSED;
    }
    world.view.commit();
    operated(&mut world, 1, Trigger::Delete);
    system(world).with(retries())
}
