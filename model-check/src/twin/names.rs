//! The fixed ids of the twin's rows, and what is there before anything happens.

use freehold_kernel::*;

pub(super) const NOW: Time = Time(1_000_000_000);
pub(super) const LAPSED: Time = Time(1_000_000_000 - 1);
pub(super) const ACTOR: ActorId = ActorId(0xac);
const HOST: HostId = HostId(1);
pub(super) const MAKER: InstanceId = InstanceId(2);
pub(super) const WORKER: InstanceId = InstanceId(3);
pub(super) const RECOVERY: InstanceId = InstanceId(4);
const WORKSPACE: WorkspaceId = WorkspaceId(5);
pub(super) const OWNER: TaskId = TaskId(6);
pub(super) const OTHER: TaskId = TaskId(7);
pub(super) const ENVIRONMENT: EnvironmentId = EnvironmentId(8);
pub(super) const ROOT: RootId = RootId(9);
pub(super) const PATH: PathId = PathId(10);
pub(super) const ATTEMPT: AttemptId = AttemptId(11);
pub(super) const REPO: RepoId = RepoId(12);
pub(super) const STAMP: WorktreeId = WorktreeId(13);
pub(super) const REPOSITORY: RepositoryId = RepositoryId(14);
pub(super) const SLUG: Slug = Slug(15);
pub(super) const BRANCH: BranchId = BranchId(16);
pub(super) const START: CommitId = CommitId(17);
pub(super) const OPERATION: OperationId = OperationId(18);
pub(super) const JOB: JobId = JobId(19);
pub(super) const CONTENT: ContentHash = ContentHash(20);
pub(super) const SESSIONS: [SessionId; 3] = [SessionId(21), SessionId(22), SessionId(23)];
pub(super) const BORROWING: SessionId = SessionId(24);
pub(super) const CLOSING: Token = Token(25);
pub(super) const MAKER_TOKEN: Token = Token(26);
pub(super) const RECOVERY_TOKEN: Token = Token(27);
pub(super) const REMOVAL: RemovalId = RemovalId(28);

/// The part of the job in no root, and the one in the root.
pub(super) const fn part_id(index: u8) -> JobRootId {
    JobRootId(derive(JOB.0, if index == 0 { 1 } else { ROOT.0 }))
}

/// The one resource: of an attempt or of a worktree.
pub(super) const fn resource_id(of_attempt: bool) -> ResourceId {
    ResourceId(derive(JOB.0, if of_attempt { ATTEMPT.0 } else { REPO.0 }))
}

/// The token of a removal, by who has it. Every takeover needs a fresh one; two that take turns
/// are fresh each time.
pub(super) const fn remover_token(remover: u8) -> Token {
    Token(match remover {
        0 | 1 => 0x200,
        2 => 0x201,
        _again => 0x202,
    })
}

/// The token of a claim: one for each try.
pub(super) const fn claim_token(index: u8, tries: u32) -> Token {
    Token(0x100 + index as u128 * 0x10 + tries as u128)
}

/// What is there before anything happens: instances, settings, root, tasks, environment. Made by
/// the kernel itself.
pub(super) fn beginning() -> View {
    let zero = Span(0);
    let settings = Settings {
        max_tries: 2,
        retry_1: zero,
        retry_2: zero,
        retry_3: zero,
        retry_4: zero,
        retry_5: zero,
        retry_6: zero,
        retry_7: zero,
        ..Settings::DEFAULT
    };
    let register =
        |instance| Command::System(SystemCommand::RegisterInstance { instance, host: HOST });
    let task = |task| {
        Command::Task(TaskCommand::Create {
            task,
            workspace: WORKSPACE,
            parent: None,
            kind: TaskKind::Standard,
            expires_at: None,
        })
    };
    let mut view = View { now: NOW, ..View::default() };
    for command in [
        register(MAKER),
        register(WORKER),
        register(RECOVERY),
        Command::Operator(OperatorCommand::ChangeSettings { settings }),
        Command::Operator(OperatorCommand::RegisterRoot {
            root: ROOT,
            host: HOST,
            path: PathId(0x99),
        }),
        Command::Task(TaskCommand::CreateWorkspace { workspace: WORKSPACE }),
        task(OWNER),
        task(OTHER),
        Command::Task(TaskCommand::CreateEnvironment {
            environment: ENVIRONMENT,
            task: OWNER,
            container: None,
            sandbox: None,
        }),
    ] {
        let verdict = decide(&mut view, &envelope(command), &mut Output::default());
        assert!(verdict.is_ok(), "the beginning is legal: {verdict:?}");
        view.commit();
    }
    view
}

/// A command by somebody who may do everything.
pub(super) fn envelope(command: Command) -> Envelope {
    let actor = Actor { id: ACTOR, may: Permissions::ALL };
    Envelope { request: None, content: ContentHash(0), actor, command }
}
