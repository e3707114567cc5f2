//! What a host says to a store in the cases.

use freehold_kernel::*;
use freehold_store::{Composer, Outcome, Store, StoreError, Submission};

/// A moment longer than a lease.
pub(crate) const LAPSED: Span = Span(Settings::DEFAULT.lease.0 + 1);

/// Freehold's own ids are UUIDs.
pub(crate) const fn own(n: u128) -> u128 {
    0x018f_0000_0000_7000_8000_0000_0000_0000 + n
}

/// A composer of somebody who may do everything.
pub(crate) fn ann() -> Composer {
    Composer::new("ann", Permissions::ALL).expect("a usable name")
}

/// A submission of somebody who may do everything.
pub(crate) fn say(command: impl FnOnce(&mut Composer) -> Command) -> Submission {
    let mut composer = ann();
    let command = command(&mut composer);
    composer.submit(command)
}

/// The same with a request id (D-19).
pub(crate) fn ask(request: &str, command: impl FnOnce(&mut Composer) -> Command) -> Submission {
    let mut composer = ann().request(request).expect("a usable request id");
    let command = command(&mut composer);
    composer.submit(command)
}

/// An id from a host's string.
pub(crate) fn id<I: Id>(c: &mut Composer, text: &str) -> I {
    c.id(text).expect("a usable id")
}

/// Something that is named by a text.
pub(crate) fn text<I: Id>(c: &mut Composer, text: &str) -> I {
    c.text(text).expect("a usable text")
}

/// A process of this name, on one machine.
pub(crate) fn instance(c: &mut Composer, name: &str) -> Command {
    let (instance, host) = (id(c, name), id(c, "laptop"));
    Command::System(SystemCommand::RegisterInstance { instance, host })
}

/// A workspace.
pub(crate) fn workspace(c: &mut Composer, name: &str) -> Command {
    Command::Task(TaskCommand::CreateWorkspace { workspace: id(c, name) })
}

/// A task in it.
pub(crate) fn task(c: &mut Composer, workspace: &str, name: &str) -> Command {
    Command::Task(TaskCommand::Create {
        task: id(c, name),
        workspace: id(c, workspace),
        parent: None,
        kind: TaskKind::Standard,
        expires_at: None,
    })
}

/// An environment of a task.
pub(crate) fn environment(c: &mut Composer, task: &str, name: &str) -> Command {
    Command::Task(TaskCommand::CreateEnvironment {
        environment: id(c, name),
        task: id(c, task),
        container: None,
        sandbox: None,
    })
}

/// An environment of a task that is a container.
pub(crate) fn boxed(c: &mut Composer, task: &str, name: &str, container: &str) -> Command {
    Command::Task(TaskCommand::CreateEnvironment {
        environment: id(c, name),
        task: id(c, task),
        container: Some(id(c, container)),
        sandbox: None,
    })
}

/// A session of a task, perhaps in a named environment.
pub(crate) fn session(
    c: &mut Composer,
    task: &str,
    name: &str,
    environment: Option<&str>,
) -> Command {
    Command::Session(SessionCommand::Create {
        session: id(c, name),
        task: id(c, task),
        environment: environment.map(|e| id(c, e)),
        source: SessionSource::Person,
        parent: None,
    })
}

/// Stars a session.
pub(crate) fn star(c: &mut Composer, session: &str, starred: bool) -> Command {
    Command::Session(SessionCommand::Star { session: id(c, session), starred })
}

/// Begins to close a session.
pub(crate) fn close(c: &mut Composer, session: &str, kind: ClosingKind, token: u128) -> Command {
    Command::Session(SessionCommand::BeginClose {
        session: id(c, session),
        kind,
        token: Token(own(token)),
        automatic: false,
        force: false,
    })
}

/// A message to a session; `n` numbers the turn and the runtime.
pub(crate) fn turn(c: &mut Composer, session: &str, input: &str, n: u128, owner: &str) -> Command {
    Command::Turn(TurnCommand::Submit {
        session: id(c, session),
        input: id(c, input),
        origin: Origin::Person,
        turn: TurnId(own(n)),
        runtime: RuntimeId(own(n + 1)),
        runtime_kind: RuntimeKind::Local,
        instance: id(c, owner),
    })
}

/// The barrier of an operation on a task; `n` numbers its job.
pub(crate) fn reserve(
    c: &mut Composer,
    operation: &str,
    task: &str,
    n: u128,
    trigger: Trigger,
    owner: &str,
) -> Command {
    Command::Operation(OperationCommand::Reserve {
        operation: id(c, operation),
        job: JobId(own(n)),
        task: id(c, task),
        trigger,
        environment: None,
        cascade_root: None,
        policy: UnsavedPolicy::Salvage,
        branch_policy: BranchPolicy::Keep,
        consent: Unsaved::NONE,
        unsaved: Unsaved::NONE,
        refuse_busy: false,
        instance: id(c, owner),
        content: ContentHash(own(900)),
    })
}

/// The inventory of an operation.
pub(crate) fn snapshot(c: &mut Composer, operation: &str, owner: &str) -> Command {
    let (operation, instance) = (id(c, operation), id(c, owner));
    Command::Operation(OperationCommand::Snapshot { operation, scope: Scope::Task, instance })
}

/// The mutation of an operation.
pub(crate) fn mutate(c: &mut Composer, operation: &str, owner: &str) -> Command {
    let (operation, instance) = (id(c, operation), id(c, owner));
    Command::Operation(OperationCommand::Mutate { operation, scope: Scope::Task, instance })
}

/// The intent to make a worktree; `n` numbers attempt, token and row.
pub(crate) fn attempt(
    c: &mut Composer,
    environment: &str,
    name: &str,
    n: u128,
    owner: &str,
) -> Command {
    Command::Attempt(AttemptCommand::Begin {
        attempt: AttemptId(own(n)),
        token: Token(own(n + 1)),
        environment: id(c, environment),
        repo: RepoId(own(n + 2)),
        repository: id(c, "ann/project"),
        slug: text(c, name),
        root: id(c, "root"),
        path: text(c, &format!("/home/ann/trees/{name}")),
        branch: text(c, name),
        worktree: text(c, &format!("stamp {name}")),
        branch_existed: false,
        start_commit: text(c, "abc123"),
        instance: id(c, owner),
    })
}

/// The root that worktrees lie in.
pub(crate) fn root(c: &mut Composer) -> Command {
    Command::Operator(OperatorCommand::RegisterRoot {
        root: id(c, "root"),
        host: id(c, "laptop"),
        path: text(c, "/home/ann/trees"),
    })
}

/// Submits and waits.
///
/// # Errors
/// As [`Store::submit`].
pub(crate) fn submit(store: &impl Store, submission: &Submission) -> Result<Outcome, StoreError> {
    pollster::block_on(store.submit(submission))
}
