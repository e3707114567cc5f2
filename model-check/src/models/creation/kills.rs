//! The guards that model 1 kills: each in the smallest system that shows what it is there for.

use freehold_kernel::{
    AttemptCommand, BranchPolicy, CleanupCommand, ClosingKind, Command, ContentHash, EnvironmentId,
    Guard, JobRootId, OperationCommand, Scope, SessionCommand, SessionSource, TaskCommand,
    TaskLifecycle, Token, Trigger, Unsaved, UnsavedPolicy, derive,
};

use crate::models::actors::maker::{begin, begin_again};
use crate::models::actors::person::Act;
use crate::models::actors::{Clock, Hands, Maker, Operator, Person, Recovery, Starter};
use crate::models::begin;
use crate::models::catalogue::Kill;
use crate::models::names::*;
use crate::system::{Fault, System};
use crate::world::World;

const fn kill(
    guard: &'static [Guard],
    build: fn() -> System,
    property: &'static str,
    steps: usize,
) -> Kill {
    Kill { guards: guard, build, property, steps, why: "" }
}

/// Guards that this model kills.
pub const KILLS: &[Kill] = &[
    kill(&[Guard::OperationContent], operation_content, "P-32", 2),
    kill(&[Guard::BorrowerKeeps], owner_deleted, "P-10", 3),
    kill(&[Guard::AttemptToken], attempt_token, "P-35", 5),
    kill(&[Guard::AttemptCompensating], undone_while_made, "P-9", 2),
    kill(&[Guard::CompensateOnlyOwn], foreign_at_the_path, "P-9", 4),
    kill(&[Guard::AttemptLapsed], maker_robbed, "P-12", 2),
    kill(&[Guard::PersistUnbarred], maker_and_archive, "P-6", 6),
    kill(&[Guard::PersistSlotFree], slot_taken_meanwhile, "P-5", 6),
    kill(&[Guard::ReceiverActive], given_to_a_closing_task, "P-30", 4),
    kill(&[Guard::ReceiverUnbarred], given_to_a_closing_task, "P-6", 2),
    kill(&[Guard::EnvironmentOfTask], reset_of_another_task, "P-2", 3),
    kill(&[Guard::NoOpenAttempt], given_while_made, "P-5", 2),
    kill(&[Guard::BarrierOwner], same_operation_twice, "P-34", 3),
    kill(&[Guard::BarrierLease], slow_owner, "P-35", 3),
    kill(&[Guard::BarrierLapsed], owner_robbed, "P-34", 2),
    kill(&[Guard::SnapshotTaken], no_snapshot, "P-7", 2),
    kill(&[Guard::NoBorrower], borrowed_reset, "P-10", 3),
    kill(&[Guard::SlotUnattempted], one_slot_two_makers, "P-5", 2),
    kill(&[Guard::NothingUnsaved], refuses_unsaved, "P-38", 2),
    kill(&[Guard::ConsentGiven], discards_in_silence, "P-38", 1),
    kill(&[Guard::SlotFree], folder_in_a_taken_slot, "P-5", 1),
    kill(&[Guard::RecordedBranch], made_again_elsewhere, "P-2", 3),
    kill(&[Guard::NoUnsettledRemoval], undone_twice, "P-12", 5),
    kill(&[Guard::PathFree], one_path_two_makers, "P-12", 2),
    Kill {
        guards: &[Guard::PersistOwnerActive],
        build: owner_archived_by_others,
        property: "P-30",
        steps: 1,
        why: "the mutation undoes every open attempt (B-5), so a kernel with all guards never \
              archives an owner over one; this is for stores that others wrote",
    },
];

/// Creates session `n` of a task, linked to environment 0.
pub(super) fn create(n: u8, of: u8) -> Command {
    Command::Session(SessionCommand::Create {
        session: session(n),
        task: task(of),
        environment: Some(environment(0)),
        source: SessionSource::Person,
        parent: None,
    })
}

/// Begins and commits the close of session `n`.
pub(super) fn close(n: u8, kind: ClosingKind) -> (Command, Command) {
    let (session, token) = (session(n), closing_token(0));
    (
        Command::Session(SessionCommand::BeginClose {
            session,
            kind,
            token,
            automatic: false,
            force: false,
        }),
        Command::Session(SessionCommand::CommitClose { session, token }),
    )
}

/// Task 0 with environment 0, and task 1.
fn two_tasks() -> World {
    let mut world = begin::world(2);
    begin::add_task(&mut world, 0, None);
    begin::add_task(&mut world, 1, None);
    begin::add_environment(&mut world, 0, 0);
    world
}

/// The same, with worktree 0 in the environment.
fn owned() -> World {
    let mut world = two_tasks();
    begin::add_worktree(&mut world, 0, 0, 0);
    world
}

/// The same, and a session of task 1 borrows the environment.
fn borrowed() -> World {
    let mut world = owned();
    begin::add_session(&mut world, 3, 1, Some(0));
    world
}

fn ask(says: &'static str, command: Command) -> (&'static str, Command) {
    (says, command)
}

fn made(command: AttemptCommand) -> Command {
    Command::Attempt(command)
}

/// Begins attempt `n` with a slot and a path that need not be its own.
fn begins(n: u8, in_slot: u8, at: u8) -> Command {
    match begin(n, 0, 0) {
        AttemptCommand::Begin {
            attempt,
            token,
            environment,
            repo,
            repository,
            root,
            branch,
            worktree,
            branch_existed,
            start_commit,
            instance,
            ..
        } => made(AttemptCommand::Begin {
            attempt,
            token,
            environment,
            repo,
            repository,
            slug: slug(in_slot),
            root,
            path: path(at),
            branch,
            worktree,
            branch_existed,
            start_commit,
            instance,
        }),
        other => made(other),
    }
}

fn reserve(trigger: Trigger, policy: UnsavedPolicy, unsaved: Unsaved, content: u8) -> Command {
    Command::Operation(OperationCommand::Reserve {
        operation: operation(0),
        job: job(0),
        task: task(0),
        trigger,
        environment: None::<EnvironmentId>,
        cascade_root: None,
        policy,
        branch_policy: BranchPolicy::Keep,
        consent: Unsaved::NONE,
        unsaved,
        refuse_busy: false,
        instance: instance(0),
        content: ContentHash(u128::from(content)),
    })
}

/// A client takes the id of another client's operation for another operation.
fn operation_content() -> System {
    let keep = UnsavedPolicy::Salvage;
    let archive = reserve(Trigger::Archive, keep, Unsaved::NONE, 1);
    let delete = reserve(Trigger::Delete, keep, Unsaved::NONE, 2);
    System::new("operation-content", owned())
        .with(Person::asks(
            "a client",
            vec![ask("asks to archive task 0, as operation 0", archive)],
        ))
        .with(Person::asks(
            "another client",
            vec![ask("asks to delete task 0, as operation 0", delete)],
        ))
}

/// A task is deleted while another one's session works in its environment.
fn owner_deleted() -> System {
    System::new("owner-deleted", borrowed()).with(Operator::new(0, Trigger::Delete, 0))
}

/// A maker gave up, recovery took the attempt over, and the maker comes back.
fn attempt_token() -> System {
    let (attempt, token) = (attempt(0), maker_token(0));
    let acts = vec![
        act("records that it will make worktree 0", made(begin(0, 0, 0))),
        act("gives up worktree 0", made(AttemptCommand::GiveUp { attempt, token })),
        Act::Undo(0),
    ];
    System::new("attempt-token", two_tasks())
        .with(Person { who: "instance A (slow)", acts, open: false })
        .with(Recovery { instance: 1 })
        .with(Clock)
}

fn act(says: &'static str, command: Command) -> Act {
    let may = freehold_kernel::Permissions::ALL;
    Act::Ask { says, command, may, insists: false }
}

/// A host undoes an attempt that nobody gave up.
fn undone_while_made() -> System {
    System::new("undone-while-made", two_tasks())
        .with(Maker { n: 0, environment: 0, instance: 0 })
        .with(Person { who: "instance A (hasty)", acts: vec![Act::Undo(0)], open: false })
}

/// Something else stands where the worktree was to come.
fn foreign_at_the_path() -> System {
    let (attempt, token) = (attempt(0), maker_token(0));
    let acts = vec![
        act("records that it will make worktree 0", made(begin(0, 0, 0))),
        act("gives up worktree 0", made(AttemptCommand::GiveUp { attempt, token })),
        Act::Undo(0),
    ];
    System::new("foreign-at-the-path", two_tasks())
        .with(Person { who: "instance A", acts, open: false })
        .with(Person { who: "a stranger", acts: vec![Act::Put(0)], open: false })
}

/// An instance starts while another one makes a worktree.
fn maker_robbed() -> System {
    System::new("maker-robbed", two_tasks())
        .with(Maker { n: 0, environment: 0, instance: 0 })
        .with(Starter { instance: 1 })
}

/// A worktree is made while its task is archived.
fn maker_and_archive() -> System {
    System::new("maker-and-archive", two_tasks())
        .with(Maker { n: 0, environment: 0, instance: 0 })
        .with(Operator::new(0, Trigger::Archive, 0))
}

/// A store that somebody else wrote: its task was archived, and a verified attempt left open.
fn owner_archived_by_others() -> System {
    let mut world = two_tasks();
    let (attempt, token) = (attempt(0), maker_token(0));
    world.prepare(made(begin(0, 0, 0)));
    begin::put_worktree(&mut world, 0);
    world.prepare(made(AttemptCommand::Materialised { attempt, token }));
    let now = world.view.now;
    if let Some(row) = world.view.tasks.edit(task(0).0) {
        row.lifecycle = TaskLifecycle::Archived;
        row.archived_at = Some(now);
        row.archived_by = Some(operation(0));
    }
    world.view.commit();
    let acts = vec![ask(
        "asks for the row of worktree 0, whose task is archived",
        made(AttemptCommand::Persist { attempt, token }),
    )];
    System::new("owner-archived-by-others", world).with(Person::asks("instance A", acts))
}

fn record_folder(n: u8, in_slot: u8) -> Command {
    Command::Task(TaskCommand::RecordUnmanaged {
        repo: repo(n),
        environment: environment(0),
        repository: repository(0),
        slug: slug(in_slot),
        path: path(n),
        branch: branch(n),
    })
}

/// A person's own folder takes the slot for which a worktree is being made.
fn slot_taken_meanwhile() -> System {
    let acts = vec![ask("has a folder of their own recorded in slot 0", record_folder(5, 0))];
    System::new("slot-taken-meanwhile", two_tasks())
        .with(Maker { n: 0, environment: 0, instance: 0 })
        .with(Person::asks("a person", acts))
}

fn gives() -> Person {
    let to = TaskCommand::Transfer { environment: environment(0), to: task(1) };
    Person::asks("a person", vec![ask("gives environment 0 to task 1", Command::Task(to))])
}

/// An environment is given to a task that is being archived.
fn given_to_a_closing_task() -> System {
    System::new("given-to-a-closing-task", owned())
        .with(Operator { task: 1, ..Operator::new(0, Trigger::Archive, 0) })
        .with(gives())
}

/// A reset under one task's barrier names another task's environment.
fn reset_of_another_task() -> System {
    System::new("reset-of-another-task", owned())
        .with(Operator { task: 1, ..Operator::new(0, Trigger::EnvironmentReset, 0) })
}

/// An environment is given away while a worktree is made in it.
fn given_while_made() -> System {
    System::new("given-while-made", two_tasks())
        .with(Maker { n: 0, environment: 0, instance: 0 })
        .with(gives())
}

/// A client asks again, on another instance, for the operation that the first one carries out.
fn same_operation_twice() -> System {
    System::new("same-operation-twice", owned())
        .with(Operator::new(0, Trigger::Archive, 0))
        .with(Operator::new(0, Trigger::Archive, 1))
}

/// An operation's owner is slower than its lease.
fn slow_owner() -> System {
    System::new("slow-owner", owned())
        .with(Operator::new(0, Trigger::Archive, 0))
        .with(Clock)
        .allowing(1, Fault::Slow)
}

/// An instance starts while another one carries out an operation.
fn owner_robbed() -> System {
    System::new("owner-robbed", owned())
        .with(Operator::new(0, Trigger::Archive, 0))
        .with(Starter { instance: 1 })
}

/// A host bars the task and goes straight on to the mutation.
fn no_snapshot() -> System {
    let archive = reserve(Trigger::Archive, UnsavedPolicy::Salvage, Unsaved::NONE, 1);
    let mutate = Command::Operation(OperationCommand::Mutate {
        operation: operation(0),
        scope: Scope::Task,
        instance: instance(0),
    });
    let acts = vec![
        ask("bars task 0 to archive it", archive),
        ask("commits to archive task 0, without a snapshot", mutate),
    ];
    System::new("no-snapshot", owned()).with(Person::asks("instance A", acts))
}

/// An environment is reset while another task's session works in it.
fn borrowed_reset() -> System {
    System::new("borrowed-reset", borrowed()).with(Operator::new(0, Trigger::EnvironmentReset, 0))
}

/// Two instances make a worktree for one slot.
fn one_slot_two_makers() -> System {
    let first = vec![ask("records that it will make worktree 0 in slot 0", begins(0, 0, 0))];
    let second = vec![ask("records that it will make worktree 1 in slot 0", begins(1, 0, 1))];
    System::new("one-slot-two-makers", two_tasks())
        .with(Person::asks("instance A", first))
        .with(Person::asks("instance B", second))
}

/// Somebody works in the worktree; whoever archives the task asked to be refused then.
fn refuses_unsaved() -> System {
    let archive = reserve(Trigger::Archive, UnsavedPolicy::Refuse, Unsaved::TRACKED, 1);
    let says = "saw that, and bars task 0 to archive it only if nothing is unsaved";
    let acts = vec![Act::Write(0), act(says, archive)];
    System::new("refuses-unsaved", owned()).with(Person { who: "a person", acts, open: false })
}

/// An operation may throw away what is unsaved, and nobody said what.
fn discards_in_silence() -> System {
    let archive = reserve(Trigger::Archive, UnsavedPolicy::Discard, Unsaved::NONE, 1);
    let says = "bars task 0 to archive it and discard what is unsaved";
    System::new("discards-in-silence", owned())
        .with(Person::asks("a client", vec![ask(says, archive)]))
}

/// A person's own folder is recorded for a slot that has a worktree.
fn folder_in_a_taken_slot() -> System {
    let acts = vec![ask("has a folder of their own recorded in slot 0", record_folder(5, 0))];
    System::new("folder-in-a-taken-slot", owned()).with(Person::asks("a person", acts))
}

/// Task 0 was archived, its worktree removed, and it is active again.
fn removed() -> World {
    let mut world = owned();
    let operator = Operator::new(0, Trigger::Archive, 0);
    let (operation, instance) = (operation(0), instance(0));
    let scope = Scope::Task;
    world.prepare(Command::Operation(operator.reserve()));
    world.prepare(Command::Operation(OperationCommand::Snapshot { operation, scope, instance }));
    world.prepare(Command::Operation(OperationCommand::Mutate { operation, scope, instance }));
    let parts: Vec<JobRootId> = world.view.job_roots.iter().map(|p| p.id).collect();
    for part in parts {
        clean(&mut world, part);
    }
    let unarchive = OperationCommand::Unarchive { task: task(0), cascade: false };
    world.prepare(Command::Operation(unarchive));
    world
}

/// A part of a job, from its claim to its end.
fn clean(world: &mut World, job_root: JobRootId) {
    let (instance, token) = (instance(0), Token(derive(job_root.0, 9)));
    world.prepare(Command::Cleanup(CleanupCommand::Claim { job_root, token, instance }));
    let of_part = world.view.resources.iter().find(|r| r.job_root_id == job_root).copied();
    if let Some(resource) = of_part {
        let (removal, removal_token) = Hands::next_removal(world);
        let (root, path) = (resource.root_id, resource.path);
        let permit = CleanupCommand::Permit {
            resource: resource.id,
            token,
            removal,
            removal_token,
            evidence: Hands::evidence(world, root, path, resource.worktree_id),
        };
        let mut done = world.prepare(Command::Cleanup(permit));
        while let Some(executor) = Hands::hold(world, Some(&done)) {
            Hands::act(world, executor);
            let record = Hands::record(world, executor);
            done = world.prepare(Command::Cleanup(record));
        }
        Hands::let_go(world, removal_token);
    }
    world.prepare(Command::Cleanup(CleanupCommand::Finish { job_root, token }));
}

/// A worktree that was removed is made again, on a new branch instead of its own.
fn made_again_elsewhere() -> System {
    let again = match begin_again(1, 0, 0, 0) {
        AttemptCommand::Begin {
            attempt,
            token,
            environment,
            repo,
            repository,
            slug,
            root,
            path,
            worktree,
            start_commit,
            instance,
            ..
        } => AttemptCommand::Begin {
            attempt,
            token,
            environment,
            repo,
            repository,
            slug,
            root,
            path,
            branch: branch(7),
            worktree,
            branch_existed: false,
            start_commit,
            instance,
        },
        other => other,
    };
    let (attempt, token) = (attempt(1), maker_token(1));
    let acts = vec![
        ask("records that it will make worktree 0 again, on branch 7", made(again)),
        ask("records that it is verified", made(AttemptCommand::Materialised { attempt, token })),
        ask("asks for its row", made(AttemptCommand::Persist { attempt, token })),
    ];
    System::new("made-again-elsewhere", removed()).with(Person::asks("instance A", acts))
}

/// Whoever undoes an attempt dies and begins anew.
fn undone_twice() -> System {
    System::new("undone-twice", two_tasks())
        .with(Maker { n: 0, environment: 0, instance: 0 })
        .with(Recovery { instance: 0 })
        .allowing(1, Fault::Crash)
}

/// Two instances make worktrees for two slots, and gave both rows one id.
#[cfg(test)]
fn one_row_two_makers() -> System {
    let second = match begins(1, 1, 1) {
        Command::Attempt(AttemptCommand::Begin {
            attempt,
            token,
            environment,
            repository,
            slug,
            root,
            path,
            branch,
            worktree,
            branch_existed,
            start_commit,
            instance,
            ..
        }) => made(AttemptCommand::Begin {
            attempt,
            token,
            environment,
            repo: repo(0),
            repository,
            slug,
            root,
            path,
            branch,
            worktree,
            branch_existed,
            start_commit,
            instance,
        }),
        other => other,
    };
    let (attempt, token) = (attempt(1), maker_token(1));
    let acts = vec![
        ask("records that it will make worktree 1, with the row's id of worktree 0", second),
        ask("records that it is verified", made(AttemptCommand::Materialised { attempt, token })),
        ask("asks for its row", made(AttemptCommand::Persist { attempt, token })),
    ];
    System::new("one-row-two-makers", two_tasks())
        .with(Maker { n: 0, environment: 0, instance: 0 })
        .with(Person::asks("instance B", acts))
}

/// Two instances make worktrees at one path.
fn one_path_two_makers() -> System {
    let first = vec![ask("records that it will make worktree 0 at path 0", begins(0, 0, 0))];
    let second = vec![ask("records that it will make worktree 1 at path 0", begins(1, 1, 0))];
    System::new("one-path-two-makers", two_tasks())
        .with(Person::asks("instance A", first))
        .with(Person::asks("instance B", second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_not_overwritten_by_an_attempt_of_another_slot() {
        let explored = crate::explore(
            &one_row_two_makers(),
            crate::Limits { rest: false, ..crate::Limits::default() },
        );
        assert!(explored.exhaustive(), "{:?}", explored.broken);
        let mutant = one_row_two_makers().without(&[Guard::PersistSlotFree]);
        let explored = crate::explore(&mutant, crate::Limits::default());
        assert!(explored.broken[0].broken.property.starts_with("P-2 "), "{:?}", explored.broken);
    }

    #[test]
    fn a_removed_worktree_is_recorded_as_such() {
        let world = removed();
        assert!(world.look().is_ok());
        let row = world.view.repos.id(repo(0).0).unwrap();
        assert_eq!(row.materialised, freehold_kernel::Materialised::No);
        assert!(world.view.tasks.id(task(0).0).unwrap().archived_at.is_none());
    }
}
