//! Validation guards: the shape of an input. Each is seen to refuse, here, for one example; a
//! validation guard without one fails the test.

use freehold_kernel::*;
use freehold_model_check::World;
use freehold_model_check::models::actors::Operator;
use freehold_model_check::models::actors::maker::begin as begin_attempt;
use freehold_model_check::models::names::*;
use freehold_model_check::models::{begin, names};
use freehold_model_check::world::{LAPSED, Sender};

/// An input of the wrong shape.
type Example = (Guard, fn() -> (World, Command));

/// No such thing.
const NONE: u128 = 0xdead;

const EXAMPLES: &[Example] = &[
    (Guard::WorkspaceKnown, || (base(), create_task(2, WorkspaceId(NONE), None))),
    (Guard::WorkspaceNotDeleted, || (workspace_deleted(), create_task(2, workspace(0), None))),
    (Guard::TaskKnown, || (base(), create_session(1, TaskId(NONE), None))),
    (Guard::TaskNotDeleted, || (task_deleted(), create_session(1, task(0), None))),
    (Guard::SessionKnown, || (base(), star(SessionId(NONE)))),
    (Guard::SessionNotDeleted, || (session_deleted(), star(session(0)))),
    (Guard::EnvironmentKnown, || (base(), create_session(1, task(0), Some(EnvironmentId(NONE))))),
    (Guard::RepoKnown, || (base(), Command::Task(TaskCommand::MarkMerged { repo: RepoId(NONE) }))),
    (Guard::AttemptKnown, || {
        let (attempt, token) = (AttemptId(NONE), maker_token(0));
        (base(), Command::Attempt(AttemptCommand::Renew { attempt, token }))
    }),
    (Guard::TurnKnown, || (base(), advance(TurnId(NONE), TurnPhase::Running))),
    (Guard::InputKnown, || {
        (base(), Command::Turn(TurnCommand::CancelInput { input: InputId(NONE) }))
    }),
    (Guard::RuntimeKnown, || {
        let (runtime, status) = (RuntimeId(NONE), RuntimeStatus::Stopped);
        (base(), Command::Turn(TurnCommand::ReportRuntime { runtime, status }))
    }),
    (Guard::JobKnown, || (base(), Command::Operator(OperatorCommand::Retry { job: JobId(NONE) }))),
    (Guard::JobRootKnown, || {
        (
            base(),
            Command::Cleanup(CleanupCommand::Finish { job_root: JobRootId(NONE), token: TOKEN }),
        )
    }),
    (Guard::ResourceKnown, || (base(), forget(ResourceId(NONE)))),
    (Guard::RemovalKnown, || {
        let removal = RemovalId(NONE);
        (base(), Command::Cleanup(CleanupCommand::RenewRemoval { removal, token: TOKEN }))
    }),
    (Guard::TrashKnown, || {
        let purge = CleanupCommand::Purge {
            trash: TrashId(NONE),
            removal: RemovalId(1),
            token: TOKEN,
            instance: instance(0),
        };
        (base(), Command::Cleanup(purge))
    }),
    (Guard::SalvageKnown, || {
        let salvage = SalvageId(NONE);
        (base(), Command::Operator(OperatorCommand::MarkRestored { salvage }))
    }),
    (Guard::RootKnown, || (base(), attempt_with(|a| a.root = RootId(NONE)))),
    (Guard::InstanceKnown, || (base(), attempt_with(|a| a.instance = InstanceId(NONE)))),
    (Guard::EnvironmentNew, || (base(), create_environment(0))),
    (Guard::JobNew, || {
        let mut world = base();
        world.prepare(reserve(0, 0));
        begin::add_task(&mut world, 1, None);
        let again = Operator { task: 1, ..Operator::new(1, Trigger::Archive, 0) }.reserve();
        let OperationCommand::Reserve {
            operation,
            task,
            trigger,
            policy,
            branch_policy,
            consent,
            unsaved,
            instance,
            content,
            ..
        } = again
        else {
            unreachable!()
        };
        let again = OperationCommand::Reserve {
            operation,
            job: job(0),
            task,
            trigger,
            environment: None,
            cascade_root: None,
            policy,
            branch_policy,
            consent,
            unsaved,
            refuse_busy: false,
            instance,
            content,
        };
        (world, Command::Operation(again))
    }),
    (Guard::RootNew, || {
        let (root, host, path) = (root(0), host(0), PathId(0x98));
        (base(), Command::Operator(OperatorCommand::RegisterRoot { root, host, path }))
    }),
    (Guard::InstanceNew, || {
        let (instance, host) = (instance(0), host(1));
        (base(), Command::System(SystemCommand::RegisterInstance { instance, host }))
    }),
    (Guard::SettingsSane, || {
        let settings = Settings { lease: Span(1), ..Settings::DEFAULT };
        (base(), Command::Operator(OperatorCommand::ChangeSettings { settings }))
    }),
    (Guard::TriggerShape, || (base(), Command::Operation(reserve_for(Trigger::CascadeArchive)))),
    (Guard::ExpiryFitsKind, || {
        let create = TaskCommand::Create {
            task: task(2),
            workspace: workspace(0),
            parent: None,
            kind: TaskKind::QuickChat,
            expires_at: None,
        };
        (base(), Command::Task(create))
    }),
    (Guard::ActivityByWriter, || {
        let world = base();
        let (session, activity) = (session(0), Activity::Starting);
        let epoch = world.view.sessions.id(session.0).map_or(0, |s| s.epoch);
        (world, Command::Session(SessionCommand::RecordActivity { session, epoch, activity }))
    }),
    (Guard::PhaseReachable, || (with_turn(), advance(turn(0), TurnPhase::Draining))),
    (Guard::WorktreeNeedsWarrant, || {
        let (world, token) = claimed();
        let resource = of_kind(&world, ResourceKind::Worktree);
        let liveness = Liveness::Dead;
        (world, Command::Cleanup(CleanupCommand::SettleResource { resource, token, liveness }))
    }),
    (Guard::TaskArchived, || {
        let reconcile = SystemCommand::Reconcile {
            task: task(0),
            environment: environment(0),
            job: job(1),
            operation: OperationId(NONE),
        };
        (base(), Command::System(reconcile))
    }),
    (Guard::CloseUnderWay, || {
        let (session, token) = (session(0), TOKEN);
        (base(), Command::Session(SessionCommand::CommitClose { session, token }))
    }),
    (Guard::TurnNotEnded, || {
        let mut world = with_turn();
        world.prepare(end_turn());
        let (turn, instance) = (turn(0), instance(0));
        (world, Command::Turn(TurnCommand::Renew { turn, instance }))
    }),
    (Guard::BarrierHeld, || {
        let (operation, instance) = (operation(0), instance(0));
        (base(), Command::Operation(OperationCommand::RenewBarrier { operation, instance }))
    }),
    (Guard::AttemptOpen, || {
        let (attempt, token) = (attempt(0), maker_token(0));
        (base(), Command::Attempt(AttemptCommand::Renew { attempt, token }))
    }),
    (Guard::AttemptVerified, || {
        let mut world = base();
        world.prepare(attempt_with(|_| ()));
        let (attempt, token) = (attempt(1), maker_token(1));
        (world, Command::Attempt(AttemptCommand::Persist { attempt, token }))
    }),
    (Guard::AttemptUnresolved, || {
        let recover = AttemptCommand::Recover {
            attempt: attempt(0),
            token: TOKEN,
            instance: instance(0),
            evidence: EVIDENCE,
        };
        (base(), Command::Attempt(recover))
    }),
    (Guard::ResourceIsWorktree, || {
        let (world, token) = claimed();
        let permit = CleanupCommand::Permit {
            resource: of_kind(&world, ResourceKind::Container),
            token,
            removal: RemovalId(1),
            removal_token: TOKEN,
            evidence: EVIDENCE,
        };
        (world, Command::Cleanup(permit))
    }),
    (Guard::InputNew, || (with_turn(), submit(0, 1, 1))),
    (Guard::AttemptNew, || (base(), Command::Attempt(begin_attempt(0, 0, 0)))),
    (Guard::Retryable, || (archived(), Command::Operator(OperatorCommand::Retry { job: job(0) }))),
    (Guard::CancelUnfinished, || {
        let mut world = archived();
        let cancel = Command::Operator(OperatorCommand::Cancel { job: job(0) });
        world.prepare(cancel);
        (world, cancel)
    }),
    (Guard::ForgetLeft, || {
        let mut world = archived();
        let resource = of_kind(&world, ResourceKind::Container);
        world.prepare(forget(resource));
        (world, forget(resource))
    }),
    (Guard::ForgetStopped, || {
        let mut world = with_turn();
        operate(&mut world, Trigger::Archive);
        let resource = of_kind(&world, ResourceKind::Runtime);
        (world, forget(resource))
    }),
    (Guard::ReconcileId, || {
        let reconcile = SystemCommand::Reconcile {
            task: task(0),
            environment: environment(0),
            job: job(1),
            operation: OperationId(NONE),
        };
        (archived(), Command::System(reconcile))
    }),
    (Guard::SameWorkspace, || {
        let mut world = base();
        let workspace = workspace(1);
        world.prepare(Command::Task(TaskCommand::CreateWorkspace { workspace }));
        (world, create_task(2, workspace, Some(task(0))))
    }),
    (Guard::TreeNotTooDeep, || {
        let mut world = base();
        let mut above = task(0);
        for n in 0..names_of_a_deep_tree() {
            let below = TaskId(0x5000 + n);
            world.prepare(create(below, workspace(0), Some(above)));
            above = below;
        }
        begin::add_task(&mut world, 9, None);
        (world, Command::Task(TaskCommand::Move { task: task(9), parent: Some(above) }))
    }),
    (Guard::ScopeFits, || {
        let mut world = base();
        world.prepare(reserve(0, 0));
        let (operation, scope, instance) = (operation(0), Scope::Cascade, instance(0));
        (world, Command::Operation(OperationCommand::Snapshot { operation, scope, instance }))
    }),
    (Guard::RepoNew, || (base(), attempt_with(|a| a.repo = repo(0)))),
    (Guard::TurnNew, || {
        let mut world = with_turn();
        begin::add_session(&mut world, 1, 0, None);
        (world, submit_in(session(1), 1, 0, 1))
    }),
    (Guard::RuntimeNew, || {
        let mut world = with_turn();
        begin::add_session(&mut world, 1, 0, None);
        (world, submit_in(session(1), 1, 1, 0))
    }),
    (Guard::RepoOfSlot, || {
        let mut world = base();
        let removed = world.view.repos.edit(repo(0).0).expect("it is there");
        removed.materialised = Materialised::No;
        world.view.commit();
        (world, attempt_with(|a| a.slug = slug(0)))
    }),
    (Guard::TokenFresh, || {
        let mut world = base();
        world.prepare(attempt_with(|_| ()));
        let (attempt, token) = (attempt(1), maker_token(1));
        world.view.attempts.edit(attempt.0).expect("it was begun").lease_until = LAPSED;
        world.view.commit();
        let (instance, evidence) = (instance(0), EVIDENCE);
        let recover = AttemptCommand::Recover { attempt, token, instance, evidence };
        (world, Command::Attempt(recover))
    }),
    (Guard::RemovalNew, || {
        let (mut world, token) = claimed();
        let container = of_kind(&world, ResourceKind::Container);
        world.prepare(forget(container));
        let resource = of_kind(&world, ResourceKind::Worktree);
        let permit = |removal| {
            Command::Cleanup(CleanupCommand::Permit {
                resource,
                token,
                removal,
                removal_token: TOKEN,
                evidence: EVIDENCE,
            })
        };
        let mut taken = world.clone();
        taken.prepare(permit(RemovalId(1)));
        let row = *taken.view.removals.id(1).expect("it was permitted");
        world.view.removals.insert(Removal { path: path(9), outcome: Some(OUTCOME), ..row });
        world.view.commit();
        (world, permit(RemovalId(1)))
    }),
];

const TOKEN: Token = Token(0x70);
const OUTCOME: RemovalOutcome = RemovalOutcome::Removed;
const EVIDENCE: Evidence =
    Evidence { found: Found::Here, unsaved: Unsaved::NONE, obstacle: Reason::None, head: None };

const fn names_of_a_deep_tree() -> u128 {
    TREE_DEPTH_MAX as u128
}

fn base() -> World {
    let mut world = begin::world(2);
    begin::add_task(&mut world, 0, None);
    world.prepare(create_environment(0));
    begin::add_session(&mut world, 0, 0, Some(0));
    begin::add_worktree(&mut world, 0, 0, 0);
    world
}

fn create_environment(n: u8) -> Command {
    Command::Task(TaskCommand::CreateEnvironment {
        environment: environment(n),
        task: task(0),
        container: Some(HandleId(0xc0)),
        sandbox: None,
    })
}

fn create(task: TaskId, workspace: WorkspaceId, parent: Option<TaskId>) -> Command {
    let kind = TaskKind::Standard;
    Command::Task(TaskCommand::Create { task, workspace, parent, kind, expires_at: None })
}

fn create_task(n: u8, workspace: WorkspaceId, parent: Option<TaskId>) -> Command {
    create(names::task(n), workspace, parent)
}

fn create_session(n: u8, task: TaskId, environment: Option<EnvironmentId>) -> Command {
    let source = SessionSource::Person;
    let session = session(n);
    Command::Session(SessionCommand::Create { session, task, environment, source, parent: None })
}

fn star(session: SessionId) -> Command {
    Command::Session(SessionCommand::Star { session, starred: true })
}

fn forget(resource: ResourceId) -> Command {
    Command::Operator(OperatorCommand::ForgetResource { resource })
}

fn advance(turn: TurnId, phase: TurnPhase) -> Command {
    Command::Turn(TurnCommand::Advance { turn, phase })
}

fn submit(new_input: u8, new_turn: u8, new_runtime: u8) -> Command {
    submit_in(session(0), new_input, new_turn, new_runtime)
}

fn submit_in(session: SessionId, new_input: u8, new_turn: u8, new_runtime: u8) -> Command {
    Command::Turn(TurnCommand::Submit {
        session,
        input: input(new_input),
        origin: Origin::Person,
        turn: turn(new_turn),
        runtime: runtime(new_runtime),
        runtime_kind: RuntimeKind::Local,
        instance: instance(0),
    })
}

fn end_turn() -> Command {
    Command::Turn(TurnCommand::End {
        turn: turn(0),
        outcome: TurnOutcome::Completed,
        next_turn: turn(8),
        next_runtime: runtime(8),
    })
}

fn with_turn() -> World {
    let mut world = base();
    world.prepare(submit(0, 0, 0));
    world
}

/// What an attempt names that an example changes.
struct Attempted {
    repo: RepoId,
    slug: Slug,
    root: RootId,
    instance: InstanceId,
}

fn attempt_with(change: impl FnOnce(&mut Attempted)) -> Command {
    let mut of = Attempted { repo: repo(1), slug: slug(1), root: root(0), instance: instance(0) };
    change(&mut of);
    Command::Attempt(AttemptCommand::Begin {
        attempt: attempt(1),
        token: maker_token(1),
        environment: environment(0),
        repo: of.repo,
        repository: repository(0),
        slug: of.slug,
        root: of.root,
        path: path(1),
        branch: branch(1),
        worktree: stamp(1),
        branch_existed: false,
        start_commit: commit(0),
        instance: of.instance,
    })
}

fn reserve_for(trigger: Trigger) -> OperationCommand {
    Operator::new(0, trigger, 0).reserve()
}

fn reserve(n: u8, on: u8) -> Command {
    Command::Operation(Operator { task: on, ..Operator::new(n, Trigger::Archive, 0) }.reserve())
}

fn operate(world: &mut World, trigger: Trigger) {
    let (operation, scope, instance) = (operation(0), Scope::Task, instance(0));
    world.prepare(Command::Operation(reserve_for(trigger)));
    world.prepare(Command::Operation(OperationCommand::Snapshot { operation, scope, instance }));
    world.prepare(Command::Operation(OperationCommand::Mutate { operation, scope, instance }));
}

fn archived() -> World {
    let mut world = base();
    operate(&mut world, Trigger::Archive);
    world
}

fn task_deleted() -> World {
    let mut world = base();
    operate(&mut world, Trigger::Delete);
    world
}

fn session_deleted() -> World {
    let mut world = base();
    let (session, token) = (session(0), TOKEN);
    let kind = ClosingKind::Delete;
    let (automatic, force) = (false, false);
    let close = SessionCommand::BeginClose { session, kind, token, automatic, force };
    world.prepare(Command::Session(close));
    world.prepare(Command::Session(SessionCommand::CommitClose { session, token }));
    world
}

fn workspace_deleted() -> World {
    let mut world = begin::world(1);
    let (workspace, operation, instance) = (workspace(0), operation(0), instance(0));
    let begin = OperationCommand::BeginWorkspaceDelete { workspace, operation, instance };
    world.prepare(Command::Operation(begin));
    let finish = OperationCommand::FinishWorkspaceDelete { workspace, operation, instance };
    world.prepare(Command::Operation(finish));
    world
}

/// The part of the job that has the worktree, claimed.
fn claimed() -> (World, Token) {
    let mut world = archived();
    let instance = instance(0);
    let parts: Vec<JobRootId> = world.view.job_roots.iter().map(|p| p.id).collect();
    for job_root in parts {
        world.prepare(Command::Cleanup(CleanupCommand::Claim { job_root, token: TOKEN, instance }));
    }
    (world, TOKEN)
}

fn of_kind(world: &World, kind: ResourceKind) -> ResourceId {
    world.view.resources.iter().find(|r| r.kind == kind).expect("the snapshot has one").id
}

#[test]
fn each_validation_guard_refuses() {
    let mut wrong = Vec::new();
    for (guard, example) in EXAMPLES {
        let (mut world, command) = example();
        match world.submit(Sender::ALL, command, &[]) {
            Ok(Err(refusal)) if refusal.guard == *guard => {}
            other => wrong.push(format!("{}: {other:?}", guard.code())),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Guards that no input reaches, and the test that shows their subject.
const NO_INPUT: &[(Guard, &str, &str)] = &[(
    Guard::LegalStep,
    "kernel/src/machine/mod.rs",
    "every_input_is_legal_somewhere_and_every_state_but_the_first_is_reached",
)];

/// Every validation guard with the file and the function of the test that covers it.
pub(crate) fn covered() -> Vec<(Guard, &'static str, &'static str)> {
    let here = "model-check/tests/guards/validation.rs";
    let mut covered: Vec<_> =
        EXAMPLES.iter().map(|(guard, _)| (*guard, here, "each_validation_guard_refuses")).collect();
    covered.extend(NO_INPUT);
    covered.retain(|(guard, ..)| guard.kind() == GuardKind::Validation);
    covered.sort_by_key(|(guard, ..)| Guard::ALL.iter().position(|g| g == guard));
    covered
}

#[test]
fn each_validation_guard_has_a_test_and_the_test_is_there() {
    let covered = covered();
    let missing: Vec<&str> = Guard::ALL
        .iter()
        .filter(|g| g.kind() == GuardKind::Validation)
        .filter(|g| !covered.iter().any(|(guard, ..)| guard == *g))
        .map(|g| g.code())
        .collect();
    assert!(missing.is_empty(), "no test refuses by {}", missing.join(", "));
    let workspace = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (guard, path, function) in covered {
        let text = std::fs::read_to_string(workspace.join(path)).unwrap_or_default();
        assert!(text.contains(&format!("fn {function}(")), "{}: {path} {function}", guard.code());
    }
}
