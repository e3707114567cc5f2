//! What was before the models of the job begin.

use freehold_kernel::properties::{Hand, Physical, Place};
use freehold_kernel::{
    AttemptCommand, BranchPolicy, CleanupCommand, Command, ContentHash, Evidence, JobId, JobRootId,
    OperationCommand, OperatorCommand, Origin, PathId, RemovalStep, ResourceId, RuntimeKind, Scope,
    Settings, Span, SystemCommand, Token, Trigger, TurnCommand, Unsaved, UnsavedPolicy, derive,
};

use crate::models::actors::{Executor, Hands, Operator, maker};
use crate::models::begin;
use crate::models::names::*;
use crate::world::{Done, LAPSED, World};

/// The part of a job that lies in root `r`.
pub(in crate::models) fn part(of: JobId, r: u8) -> JobRootId {
    JobRootId(derive(of.0, root(r).0))
}

/// Worktree `n` as a resource of a job.
pub(in crate::models) fn resource(of: JobId, n: u8) -> ResourceId {
    ResourceId(derive(of.0, repo(n).0))
}

/// The token of a claim from before the beginning.
pub(in crate::models) const EARLIER: Token = Token(0x1_8000);

/// Task 0 owns worktree 0; there are so many instances.
pub(in crate::models) fn owned(instances: u8) -> World {
    let mut world = begin::world(instances);
    begin::add_task(&mut world, 0, None);
    begin::add_environment(&mut world, 0, 0);
    begin::add_worktree(&mut world, 0, 0, 0);
    world
}

/// Worktree `n` of environment 0, in root `n` of host `n`, made by instance `n`.
pub(in crate::models) fn add_worktree_of(world: &mut World, n: u8, in_root: u8) {
    let register = OperatorCommand::RegisterRoot {
        root: root(in_root),
        host: host(in_root),
        path: PathId(0x9a),
    };
    world.prepare(Command::Operator(register));
    let (attempt, token) = (attempt(n), maker_token(n));
    let AttemptCommand::Begin {
        environment,
        repo,
        repository,
        slug,
        path,
        branch,
        worktree,
        branch_existed,
        start_commit,
        instance,
        ..
    } = maker::begin(n, 0, n)
    else {
        return;
    };
    let root = root(in_root);
    for command in [
        AttemptCommand::Begin {
            attempt,
            token,
            environment,
            repo,
            repository,
            slug,
            root,
            path,
            branch,
            worktree,
            branch_existed,
            start_commit,
            instance,
        },
        AttemptCommand::Materialised { attempt, token },
        AttemptCommand::Persist { attempt, token },
    ] {
        world.prepare(Command::Attempt(command));
        if let AttemptCommand::Materialised { .. } = command {
            world.disk.worktrees.push(Physical {
                identity: worktree,
                root,
                path,
                made_by: Some(attempt),
                place: Place::AtHome,
                unsaved: Unsaved::NONE,
                salvaged: Unsaved::NONE,
                moved_by: None,
            });
        }
    }
}

/// Somebody works in worktree `n` and commits nothing.
pub(in crate::models) fn write(world: &mut World, n: u8) {
    if let Some(tree) = world.disk.find_mut(stamp(n)) {
        tree.unsaved = Unsaved::TRACKED;
    }
}

/// An operation from its barrier to its mutation, with what becomes of unsaved work.
pub(in crate::models) fn operate(
    world: &mut World,
    by: Operator,
    policy: UnsavedPolicy,
    agreed: Unsaved,
) {
    reserve(world, by, policy, agreed);
    let (operation, instance, scope) = (operation(by.n), instance(by.instance), Scope::Task);
    let steps = [
        OperationCommand::Snapshot { operation, scope, instance },
        OperationCommand::Mutate { operation, scope, instance },
    ];
    for step in steps {
        world.prepare(Command::Operation(step));
    }
}

/// The barrier of an operation.
pub(in crate::models) fn reserve(
    world: &mut World,
    by: Operator,
    policy: UnsavedPolicy,
    consent: Unsaved,
) {
    world.prepare(Command::Operation(OperationCommand::Reserve {
        operation: operation(by.n),
        job: job(by.n),
        task: task(by.task),
        trigger: by.trigger,
        environment: (by.trigger == Trigger::EnvironmentReset)
            .then_some(environment(by.environment)),
        cascade_root: None,
        policy,
        branch_policy: BranchPolicy::Keep,
        consent,
        unsaved: Unsaved::NONE,
        refuse_busy: false,
        instance: instance(by.instance),
        content: ContentHash(u128::from(by.n) + 1),
    }));
}

/// Operation `n` on task 0, salvaging, done.
pub(in crate::models) fn operated(world: &mut World, n: u8, trigger: Trigger) {
    operate(world, Operator::new(n, trigger, 0), UnsavedPolicy::Salvage, Unsaved::NONE);
}

/// Task 0 is archived by operation 0, and job 0 waits with worktree 0.
pub(in crate::models) fn archived(instances: u8) -> World {
    let mut world = owned(instances);
    operated(&mut world, 0, Trigger::Archive);
    world
}

/// Task 0 is gone by operation 0, and job 0 waits with worktree 0.
pub(in crate::models) fn deleted(instances: u8) -> World {
    let mut world = owned(instances);
    operated(&mut world, 0, Trigger::Delete);
    world
}

/// One more instance, of another machine.
pub(in crate::models) fn add_stranger(world: &mut World, n: u8, of: u8) {
    let (instance, host) = (instance(n), host(of));
    world.prepare(Command::System(SystemCommand::RegisterInstance { instance, host }));
}

/// Other settings than those of every model.
pub(in crate::models) fn settle(world: &mut World, change: impl FnOnce(Settings) -> Settings) {
    let settings = change(begin::settings());
    world.prepare(Command::Operator(OperatorCommand::ChangeSettings { settings }));
}

/// A failed try waits for a minute.
pub(in crate::models) fn waiting_a_minute(settings: Settings) -> Settings {
    let wait = Span::minutes(1);
    Settings {
        retry_1: wait,
        retry_2: wait,
        retry_3: wait,
        retry_4: wait,
        retry_5: wait,
        retry_6: wait,
        retry_7: wait,
        ..settings
    }
}

/// Session 0 of task 0 runs turn 0 with runtime 0 in environment 0.
pub(in crate::models) fn run(world: &mut World) {
    begin::add_session(world, 0, 0, Some(0));
    world.prepare(Command::Turn(TurnCommand::Submit {
        session: session(0),
        input: input(0),
        origin: Origin::Person,
        turn: turn(0),
        runtime: runtime(0),
        runtime_kind: RuntimeKind::Local,
        instance: instance(0),
    }));
}

/// An instance did not say for a lease's time that it lives.
pub(in crate::models) fn lapse_instance(world: &mut World, n: u8) {
    if let Some(row) = world.view.instances.edit(instance(n).0) {
        row.lease_until = LAPSED;
    }
    world.view.commit();
}

/// A part is claimed by an instance, under [`EARLIER`]; nobody holds the claim by now.
pub(in crate::models) fn claim(world: &mut World, job_root: JobRootId, by: u8) -> Done {
    let (token, instance) = (EARLIER, instance(by));
    world.prepare(Command::Cleanup(CleanupCommand::Claim { job_root, token, instance }))
}

/// The claimer asked for the permission, having seen this.
pub(in crate::models) fn permit(
    world: &mut World,
    resource: ResourceId,
    evidence: Evidence,
) -> Done {
    let (removal, removal_token) = Hands::next_removal(world);
    let token = EARLIER;
    world.prepare(Command::Cleanup(CleanupCommand::Permit {
        resource,
        token,
        removal,
        removal_token,
        evidence,
    }))
}

/// What somebody sees who looks for a resource of a job now.
pub(in crate::models) fn look(world: &World, resource: ResourceId) -> Evidence {
    let row = world.view.resources.id(resource.0).expect("a resource of the beginning");
    Hands::evidence(world, row.root_id, row.path, row.worktree_id)
}

/// Worktree 0 is in removal, and these were its last recorded steps. The executor holds path and
/// lease.
pub(in crate::models) fn removed_until(
    world: &mut World,
    of: JobId,
    last: RemovalStep,
) -> Executor {
    claim(world, part(of, 0), 0);
    let resource = resource(of, 0);
    let evidence = look(world, resource);
    let done = permit(world, resource, evidence);
    let mut executor = Hands::hold(world, Some(&done)).expect("a warrant of the beginning");
    while executor.step != last {
        executor = next(world, executor).expect("a removal goes on to this step");
    }
    next(world, executor).expect("a removal goes on after this step")
}

/// A step on disk, and its record.
fn next(world: &mut World, executor: Executor) -> Option<Executor> {
    Hands::act(world, executor);
    let record = Hands::record(world, executor);
    let done = world.prepare(Command::Cleanup(record));
    let next = Hands::hold(world, Some(&done));
    if next.is_none() {
        Hands::let_go(world, executor.token);
    }
    next
}

/// The job's worktree 0 is removed, under the earlier claim.
pub(in crate::models) fn remove(world: &mut World, of: JobId) {
    let mut executor = Some(removed_until(world, of, RemovalStep::Salvaged));
    while let Some(at) = executor {
        executor = next(world, at);
    }
}

/// The job's worktree 0 is removed, and the job has ended.
pub(in crate::models) fn cleaned(world: &mut World, of: JobId) {
    remove(world, of);
    finish(world, of);
    finish_rootless(world, of);
}

/// The earlier claim of the job's part in root 0 ends.
pub(in crate::models) fn finish(world: &mut World, of: JobId) {
    let (job_root, token) = (part(of, 0), EARLIER);
    world.prepare(Command::Cleanup(CleanupCommand::Finish { job_root, token }));
}

/// The part of the job that lies in no root, with nothing in it, is done.
pub(in crate::models) fn finish_rootless(world: &mut World, of: JobId) {
    let (job_root, token) = (JobRootId(derive(of.0, 1)), EARLIER);
    claim(world, job_root, 0);
    world.prepare(Command::Cleanup(CleanupCommand::Finish { job_root, token }));
}

/// Everybody who held something is dead.
pub(in crate::models) fn all_die(world: &mut World) {
    world.held.clear();
    let hands: Vec<Hand> = world.disk.hands.clone();
    for hand in hands {
        world.disk.let_go(hand.token);
    }
}

/// Task 0 is taken out of the archive.
pub(in crate::models) fn unarchive(world: &mut World) {
    world.prepare(Command::Operation(unarchive_command()));
}

/// The command for that.
pub(in crate::models) fn unarchive_command() -> OperationCommand {
    OperationCommand::Unarchive { task: task(0), cascade: false }
}
