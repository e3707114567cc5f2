//! Commands: what is asked. Each names its permission in one table (D-27). Ids, tokens and
//! evidence come in with the command.

use crate::evidence::{Evidence, Liveness};
use crate::id::*;
use crate::rows::*;
use crate::time::Time;

/// Who asks, and what that one may do (A-22: the host hands it over, the kernel enforces it).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor {
    /// A person or a named system authority.
    pub id: ActorId,
    /// What this one may do.
    pub may: Permissions,
}

/// A set of permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions(pub u8);

impl Permissions {
    /// None.
    pub const NONE: Permissions = Permissions(0);
    /// Create, input, archive, unarchive and delete sessions (S-26).
    pub const SESSION: Permissions = Permissions(1);
    /// Create and move tasks, workspaces and environments.
    pub const TASK: Permissions = Permissions(2);
    /// T-4.
    pub const LIFECYCLE: Permissions = Permissions(4);
    /// Recovery, workers, expiry, reconcile.
    pub const SYSTEM: Permissions = Permissions(8);
    /// All of them.
    pub const ALL: Permissions = Permissions(15);

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Permissions) -> Permissions {
        Permissions(self.0 | other.0)
    }

    /// Whether all of `other` is in this set.
    pub const fn covers(self, other: Permissions) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What is asked of a session's row. Nothing here can express a physical removal (S-25).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionCommand {
    /// S-3. With an environment of another task, it borrows (W-23).
    Create {
        /// The new id.
        session: SessionId,
        /// Its task.
        task: TaskId,
        /// None: the task's current environment, if it has one.
        environment: Option<EnvironmentId>,
        /// Why it is made.
        source: SessionSource,
        /// What it was forked or started from.
        parent: Option<SessionId>,
    },
    /// Points an open session at an environment, its own task's or a borrowed one (W-23).
    Link {
        /// The session.
        session: SessionId,
        /// Where to.
        environment: EnvironmentId,
    },
    /// S-4.
    RecordActivity {
        /// The session.
        session: SessionId,
        /// The epoch the writer knows.
        epoch: u32,
        /// What it says.
        activity: Activity,
    },
    /// Stars or unstars an open session.
    Star {
        /// The session.
        session: SessionId,
        /// Which of the two.
        starred: bool,
    },
    /// S-20, S-21.
    BeginClose {
        /// The session.
        session: SessionId,
        /// Archive or delete.
        kind: ClosingKind,
        /// Fresh; commit and abort need it.
        token: Token,
        /// A policy, not a person; skips starred sessions (S-20).
        automatic: bool,
        /// A person's force: ends background work as dropped (S-15).
        force: bool,
    },
    /// S-23, S-24.
    CommitClose {
        /// The session.
        session: SessionId,
        /// From the begin.
        token: Token,
    },
    /// S-22.
    AbortClose {
        /// The session.
        session: SessionId,
        /// From the begin.
        token: Token,
    },
    /// S-28. The actor is the person.
    Unarchive {
        /// The session.
        session: SessionId,
    },
}

/// What is asked of a session's turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnCommand {
    /// A message to a named session: a turn is admitted for it, or it is queued behind the
    /// running one (S-10..S-12).
    Submit {
        /// The session.
        session: SessionId,
        /// The new input.
        input: InputId,
        /// Where it comes from.
        origin: Origin,
        /// The turn to admit, if none is under way.
        turn: TurnId,
        /// Its runtime's new handle.
        runtime: RuntimeId,
        /// What kind of runtime.
        runtime_kind: RuntimeKind,
        /// Whose process will run it.
        instance: InstanceId,
    },
    /// The turn's phase changed.
    Advance {
        /// The turn.
        turn: TurnId,
        /// Its new phase; not `Ended`.
        phase: TurnPhase,
    },
    /// The terminal event. If an input is queued, the next turn is admitted in the same step.
    End {
        /// The turn.
        turn: TurnId,
        /// How it ended.
        outcome: TurnOutcome,
        /// The next turn, should an input be queued.
        next_turn: TurnId,
        /// Its runtime.
        next_runtime: RuntimeId,
    },
    /// What waits, and no turn is under way whose end would take it up: its instance lapsed, or
    /// nothing new could begin when it ended (S-11, P-44).
    TakeUp {
        /// The session.
        session: SessionId,
        /// The turn to admit.
        turn: TurnId,
        /// Its runtime's new handle.
        runtime: RuntimeId,
        /// What kind of runtime.
        runtime_kind: RuntimeKind,
        /// Whose process will run it.
        instance: InstanceId,
    },
    /// The instance that runs the turn says that it lives.
    Renew {
        /// The turn.
        turn: TurnId,
        /// Its instance.
        instance: InstanceId,
    },
    /// A sender takes a queued input back.
    CancelInput {
        /// The input.
        input: InputId,
    },
    /// What became of a runtime's handle. Allowed under a barrier (S-14).
    ReportRuntime {
        /// The handle.
        runtime: RuntimeId,
        /// What it is now.
        status: RuntimeStatus,
    },
}

/// What is asked of workspaces, tasks and environments, short of their lifecycle operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskCommand {
    /// A new workspace.
    CreateWorkspace {
        /// Its id.
        workspace: WorkspaceId,
    },
    /// A new task.
    Create {
        /// Its id.
        task: TaskId,
        /// Where.
        workspace: WorkspaceId,
        /// Under which.
        parent: Option<TaskId>,
        /// Standard or quick chat.
        kind: TaskKind,
        /// For quick chats.
        expires_at: Option<Time>,
    },
    /// A new parent, or none (T-7).
    Move {
        /// The task.
        task: TaskId,
        /// Its new parent.
        parent: Option<TaskId>,
    },
    /// A new environment of a task; it becomes the current one if there is none (D-3).
    CreateEnvironment {
        /// Its id.
        environment: EnvironmentId,
        /// Its owner.
        task: TaskId,
        /// A container's handle.
        container: Option<HandleId>,
        /// A sandbox's handle.
        sandbox: Option<HandleId>,
    },
    /// The host says that a repository's work was merged: history (D-4).
    MarkMerged {
        /// The row.
        repo: RepoId,
    },
    /// A worktree that Freehold did not make is recorded: direct mode, a person's folder (W-40).
    RecordUnmanaged {
        /// The new row.
        repo: RepoId,
        /// The environment.
        environment: EnvironmentId,
        /// The repository.
        repository: RepositoryId,
        /// The slot.
        slug: Slug,
        /// Where it is.
        path: PathId,
        /// On which branch.
        branch: BranchId,
    },
    /// W-9.
    Transfer {
        /// The environment.
        environment: EnvironmentId,
        /// Whom to.
        to: TaskId,
    },
}

/// How much a lifecycle operation is about: which rows its steps load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One task.
    Task,
    /// A task with everything under it.
    Cascade,
    /// A workspace with all its tasks.
    Workspace,
}

impl Trigger {
    /// The scope of an operation with this trigger.
    pub const fn scope(self) -> Scope {
        match self {
            Trigger::CascadeArchive | Trigger::CascadeDelete => Scope::Cascade,
            Trigger::WorkspaceDelete => Scope::Workspace,
            Trigger::Archive
            | Trigger::Delete
            | Trigger::QuickChatExpire
            | Trigger::EnvironmentReset
            | Trigger::Reconcile
            | Trigger::OrphanRemoval
            | Trigger::Unreadable => Scope::Task,
        }
    }
}

/// The steps of a task lifecycle operation (03).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationCommand {
    /// B-1. For a cascade, once per task in id order (B-9).
    Reserve {
        /// The host's operation.
        operation: OperationId,
        /// The new job.
        job: JobId,
        /// The task.
        task: TaskId,
        /// Which operation.
        trigger: Trigger,
        /// For a reset.
        environment: Option<EnvironmentId>,
        /// The task a cascade was asked for; none without a cascade.
        cascade_root: Option<TaskId>,
        /// Unsaved work.
        policy: UnsavedPolicy,
        /// Branches.
        branch_policy: BranchPolicy,
        /// What a person consents to lose.
        consent: Unsaved,
        /// For the policy `refuse`: what the inspection found over all worktrees (B-1).
        unsaved: Unsaved,
        /// Refuse as busy instead of stopping turns (T-5).
        refuse_busy: bool,
        /// The owner until the mutation.
        instance: InstanceId,
        /// Everything above, digested (C-12).
        content: ContentHash,
    },
    /// The owner says that it lives (B-7).
    RenewBarrier {
        /// The operation.
        operation: OperationId,
        /// Its owner.
        instance: InstanceId,
    },
    /// B-4, for every job of the operation at once.
    Snapshot {
        /// The operation.
        operation: OperationId,
        /// How much it is about; must fit its trigger.
        scope: Scope,
        /// Its owner.
        instance: InstanceId,
    },
    /// B-5: the mutation and the activation, for every job of the operation at once.
    Mutate {
        /// The operation.
        operation: OperationId,
        /// How much it is about; must fit its trigger.
        scope: Scope,
        /// Its owner.
        instance: InstanceId,
    },
    /// Aborts before the mutation.
    Abort {
        /// The operation.
        operation: OperationId,
        /// Its owner.
        instance: InstanceId,
    },
    /// B-8; with `cascade`, everything that its archive operation archived (B-9).
    Unarchive {
        /// The task.
        task: TaskId,
        /// Whether the rest of its cascade too.
        cascade: bool,
    },
    /// T-9, before the first barrier.
    BeginWorkspaceDelete {
        /// The workspace.
        workspace: WorkspaceId,
        /// The host's operation.
        operation: OperationId,
        /// Its owner.
        instance: InstanceId,
    },
    /// Gives up the deletion of a workspace before its mutation.
    AbortWorkspaceDelete {
        /// The workspace.
        workspace: WorkspaceId,
        /// The host's operation.
        operation: OperationId,
    },
    /// T-9, the mutation of a workspace that has no task (left).
    FinishWorkspaceDelete {
        /// The workspace.
        workspace: WorkspaceId,
        /// The host's operation.
        operation: OperationId,
        /// Its owner.
        instance: InstanceId,
    },
}

/// Making worktrees (W-1..W-5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptCommand {
    /// W-1.
    Begin {
        /// The new attempt.
        attempt: AttemptId,
        /// Fresh.
        token: Token,
        /// The environment.
        environment: EnvironmentId,
        /// The new row, or the one to be made whole again (W-7).
        repo: RepoId,
        /// The repository.
        repository: RepositoryId,
        /// The slot.
        slug: Slug,
        /// The root.
        root: RootId,
        /// Where; contains a part of the token.
        path: PathId,
        /// On which branch; of a recorded worktree, its recorded one.
        branch: BranchId,
        /// The stamp.
        worktree: WorktreeId,
        /// Whether the branch is there.
        branch_existed: bool,
        /// Where it starts.
        start_commit: CommitId,
        /// Whose process makes it.
        instance: InstanceId,
    },
    /// A restore out of trash, in place: directory and registration are moved back by an attempt
    /// like any other (W-35, W-1). What it must find is named, and compared with the rows.
    BeginRestore {
        /// The new attempt.
        attempt: AttemptId,
        /// Its token.
        token: Token,
        /// The trash row.
        trash: TrashId,
        /// The environment of its repository row.
        environment: EnvironmentId,
        /// That row.
        repo: RepoId,
        /// Where the directory was, and will be.
        path: PathId,
        /// Whose process restores it.
        instance: InstanceId,
    },
    /// The checkout was verified.
    Materialised {
        /// The attempt.
        attempt: AttemptId,
        /// Its token.
        token: Token,
    },
    /// W-3; turns to compensating if the barrier won (W-4).
    Persist {
        /// The attempt.
        attempt: AttemptId,
        /// Its token.
        token: Token,
    },
    /// The maker gives up (its request failed): what it made is undone.
    GiveUp {
        /// The attempt.
        attempt: AttemptId,
        /// Its token.
        token: Token,
    },
    /// The maker lives.
    Renew {
        /// The attempt.
        attempt: AttemptId,
        /// Its token.
        token: Token,
    },
    /// W-5: adopt or compensate what a gone maker left.
    Recover {
        /// The attempt.
        attempt: AttemptId,
        /// A fresh token; the old maker's is void from here on.
        token: Token,
        /// Who recovers.
        instance: InstanceId,
        /// What is at its path.
        evidence: Evidence,
    },
    /// The permission to undo it (W-4), or to go on undoing it.
    Compensate {
        /// The attempt.
        attempt: AttemptId,
        /// Its token.
        token: Token,
        /// The new removal row.
        removal: RemovalId,
        /// Its token.
        removal_token: Token,
        /// Who does it.
        instance: InstanceId,
        /// What is at its path.
        evidence: Evidence,
    },
}

/// The cleanup job and physical removal (05, W-30..W-38). Only these decisions can carry a
/// warrant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanupCommand {
    /// C-3.
    Claim {
        /// The part of a job.
        job_root: JobRootId,
        /// Fresh.
        token: Token,
        /// Who claims.
        instance: InstanceId,
    },
    /// C-4.
    Renew {
        /// The part of a job.
        job_root: JobRootId,
        /// From the claim.
        token: Token,
    },
    /// What became of a resource that needs no warrant: a runtime, a container, an attempt.
    SettleResource {
        /// The resource.
        resource: ResourceId,
        /// From the claim.
        token: Token,
        /// For a runtime, container or sandbox.
        liveness: Liveness,
    },
    /// C-5, C-18: the re-proof and the permission in one.
    Permit {
        /// The resource.
        resource: ResourceId,
        /// From the claim.
        token: Token,
        /// The new removal row.
        removal: RemovalId,
        /// Its token.
        removal_token: Token,
        /// What is at its path.
        evidence: Evidence,
    },
    /// A step is done: records it and permits the next one.
    RecordStep {
        /// The removal.
        removal: RemovalId,
        /// Its token.
        token: Token,
        /// What is done now.
        step: RemovalStep,
        /// Whether there was anything to do (W-36).
        found_something: bool,
        /// What salvage kept, for the step `Salvaged`.
        salvage: Option<SalvageFacts>,
    },
    /// A step was not done, and why.
    RecordFailure {
        /// The removal.
        removal: RemovalId,
        /// Its token.
        token: Token,
        /// Why.
        reason: Reason,
        /// Whether the worktree was seen whole in its place after the failure: a step may have
        /// been done although its call failed (W-37).
        in_place: bool,
    },
    /// The executor lives.
    RenewRemoval {
        /// The removal.
        removal: RemovalId,
        /// Its token.
        token: Token,
    },
    /// C-18: takes over an unsettled removal, after its path lock was taken; also how an
    /// executor whose reply was lost asks for its warrant again.
    TakeOverRemoval {
        /// The removal.
        removal: RemovalId,
        /// The token to be replaced: one's own, or one whose lease has lapsed.
        old_token: Token,
        /// A fresh one.
        token: Token,
        /// Who takes over.
        instance: InstanceId,
    },
    /// Ends a claim; what is left decides the state (C-2, C-8, C-9).
    Finish {
        /// The part of a job.
        job_root: JobRootId,
        /// From the claim.
        token: Token,
    },
    /// C-17: puts a claim back without spending its try.
    PutBack {
        /// The part of a job.
        job_root: JobRootId,
        /// From the claim.
        token: Token,
        /// Not to be claimed before then: a maker lives until its lease (C-6).
        not_before: Option<Time>,
    },
    /// C-10: a resource of it cannot be read by this build; parked, its bytes untouched.
    Park {
        /// The part of a job.
        job_root: JobRootId,
        /// From the claim.
        token: Token,
    },
    /// C-4: ends a claim whose lease has lapsed.
    Rescue {
        /// The part of a job.
        job_root: JobRootId,
        /// The token that was seen.
        token: Token,
    },
    /// C-3: fails what lies in a root that nobody has served for too long.
    GiveUpRoot {
        /// The part of a job.
        job_root: JobRootId,
    },
    /// The expiry of a salvage entry whose retention, to which a person consented, has lapsed
    /// (W-34).
    ExpireSalvage {
        /// The entry.
        salvage: SalvageId,
    },
    /// The purge of a trash row whose retention has lapsed (D-20).
    Purge {
        /// The trash row.
        trash: TrashId,
        /// The new removal row.
        removal: RemovalId,
        /// Its token.
        token: Token,
        /// Who does it.
        instance: InstanceId,
    },
}

/// What the kernel needs to know of a salvage entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SalvageFacts {
    /// Its id.
    pub id: SalvageId,
    /// What is in it.
    pub contents: Unsaved,
    /// Bytes.
    pub size: i64,
}

/// What an operator asks of jobs (C-15). Needs the lifecycle permission (T-4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OperatorCommand {
    /// Retries a failed job now; the count starts anew (C-2).
    Retry {
        /// The job.
        job: JobId,
    },
    /// Cancels an archive or reconcile job.
    Cancel {
        /// The job.
        job: JobId,
    },
    /// Drops a resource from its job without touching the disk.
    ForgetResource {
        /// The resource.
        resource: ResourceId,
    },
    /// Says of a runtime that nobody can reach any more that it is stopped, by a person's word: its
    /// machine is gone. What it worked in may be removed then (C-6), and its session closed (S-22).
    DeclareStopped {
        /// The runtime.
        runtime: RuntimeId,
    },
    /// Whether a salvage entry may be put back into this worktree now (B-2, C-18). Changes
    /// nothing; asked under the path lock, before anything is written.
    AdmitRestore {
        /// The entry.
        salvage: SalvageId,
        /// The row of the worktree.
        repo: RepoId,
    },
    /// Says that a salvage entry was put back.
    MarkRestored {
        /// The entry.
        salvage: SalvageId,
    },
    /// Changes the settings (D-25).
    ChangeSettings {
        /// All of them.
        settings: Settings,
    },
    /// Registers a managed root (D-18).
    RegisterRoot {
        /// Its id.
        root: RootId,
        /// The host that serves it.
        host: HostId,
        /// Where it is.
        path: PathId,
    },
}

/// Instances and recovery (C-11, B-7, S-14, S-22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemCommand {
    /// D-15.
    RegisterInstance {
        /// Fresh for every process.
        instance: InstanceId,
        /// Its machine.
        host: HostId,
    },
    /// The instance lives.
    RenewInstance {
        /// Which.
        instance: InstanceId,
    },
    /// S-35.
    Drain {
        /// Which.
        instance: InstanceId,
        /// On or off.
        draining: bool,
    },
    /// B-7: cancels a prepared job whose owner is gone.
    RecoverBarrier {
        /// The job.
        job: JobId,
    },
    /// T-9.
    RecoverWorkspaceDelete {
        /// The workspace.
        workspace: WorkspaceId,
    },
    /// S-22: lifts a closing mark whose closer is gone.
    RecoverClosing {
        /// The session.
        session: SessionId,
    },
    /// S-14: ends a turn whose instance is gone; nothing if it is alive at that moment.
    RecoverTurn {
        /// The turn.
        turn: TurnId,
        /// What the host says.
        liveness: Liveness,
    },
    /// W-21: reserves a reconcile job for what an archive left for a borrower.
    Reconcile {
        /// The archived task.
        task: TaskId,
        /// The environment.
        environment: EnvironmentId,
        /// The new job.
        job: JobId,
        /// Derived from the archive operation and the environment.
        operation: OperationId,
    },
}

/// Everything that can be asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command {
    /// Of sessions.
    Session(SessionCommand),
    /// Of turns.
    Turn(TurnCommand),
    /// Of tasks and environments.
    Task(TaskCommand),
    /// Of task lifecycles.
    Operation(OperationCommand),
    /// Of makings.
    Attempt(AttemptCommand),
    /// Of cleanup jobs and removals.
    Cleanup(CleanupCommand),
    /// By operators.
    Operator(OperatorCommand),
    /// By the system.
    System(SystemCommand),
}

/// A command with its sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Envelope {
    /// The host's request id, so that a lost reply can be asked for again (D-19).
    pub request: Option<RequestId>,
    /// What is asked, digested with its content by the edge.
    pub content: ContentHash,
    /// Who asks.
    pub actor: Actor,
    /// What is asked.
    pub command: Command,
}

macro_rules! commands {
    ($($code:literal $permission:ident $pattern:pat,)*) => {
        impl Command {
            /// Every command's code with the permission that it needs (D-27).
            pub const TABLE: &'static [(&'static str, &'static str)] =
                &[$(($code, stringify!($permission)),)*];

            /// The stable code of the command.
            pub const fn code(&self) -> &'static str {
                use {AttemptCommand as A, CleanupCommand as C, Command as X, OperationCommand as O};
                use {OperatorCommand as P, SessionCommand as S, SystemCommand as Y};
                use {TaskCommand as K, TurnCommand as T};
                match self { $($pattern => $code,)* }
            }

            /// The permission that the command needs (D-27).
            pub const fn permission(&self) -> Permissions {
                use {AttemptCommand as A, CleanupCommand as C, Command as X, OperationCommand as O};
                use {OperatorCommand as P, SessionCommand as S, SystemCommand as Y};
                use {TaskCommand as K, TurnCommand as T};
                match self { $($pattern => Permissions::$permission,)* }
            }
        }
    };
}

commands! {
    "session.create" SESSION X::Session(S::Create { .. }),
    "session.link" SESSION X::Session(S::Link { .. }),
    "session.record_activity" SESSION X::Session(S::RecordActivity { .. }),
    "session.star" SESSION X::Session(S::Star { .. }),
    "session.begin_close" SESSION X::Session(S::BeginClose { .. }),
    "session.commit_close" SESSION X::Session(S::CommitClose { .. }),
    "session.abort_close" SESSION X::Session(S::AbortClose { .. }),
    "session.unarchive" SESSION X::Session(S::Unarchive { .. }),
    "turn.submit" SESSION X::Turn(T::Submit { .. }),
    "turn.advance" SESSION X::Turn(T::Advance { .. }),
    "turn.end" SESSION X::Turn(T::End { .. }),
    "turn.take_up" SESSION X::Turn(T::TakeUp { .. }),
    "turn.renew" SESSION X::Turn(T::Renew { .. }),
    "turn.cancel_input" SESSION X::Turn(T::CancelInput { .. }),
    "turn.report_runtime" SESSION X::Turn(T::ReportRuntime { .. }),
    "workspace.create" TASK X::Task(K::CreateWorkspace { .. }),
    "task.create" TASK X::Task(K::Create { .. }),
    "task.move" TASK X::Task(K::Move { .. }),
    "environment.create" TASK X::Task(K::CreateEnvironment { .. }),
    "repo.mark_merged" TASK X::Task(K::MarkMerged { .. }),
    "repo.record_unmanaged" TASK X::Task(K::RecordUnmanaged { .. }),
    "environment.transfer" LIFECYCLE X::Task(K::Transfer { .. }),
    "operation.reserve" LIFECYCLE X::Operation(O::Reserve { .. }),
    "operation.renew_barrier" LIFECYCLE X::Operation(O::RenewBarrier { .. }),
    "operation.snapshot" LIFECYCLE X::Operation(O::Snapshot { .. }),
    "operation.mutate" LIFECYCLE X::Operation(O::Mutate { .. }),
    "operation.abort" LIFECYCLE X::Operation(O::Abort { .. }),
    "task.unarchive" LIFECYCLE X::Operation(O::Unarchive { .. }),
    "workspace.begin_delete" LIFECYCLE X::Operation(O::BeginWorkspaceDelete { .. }),
    "workspace.abort_delete" LIFECYCLE X::Operation(O::AbortWorkspaceDelete { .. }),
    "workspace.finish_delete" LIFECYCLE X::Operation(O::FinishWorkspaceDelete { .. }),
    "attempt.begin" TASK X::Attempt(A::Begin { .. }),
    "trash.restore" LIFECYCLE X::Attempt(A::BeginRestore { .. }),
    "attempt.materialised" TASK X::Attempt(A::Materialised { .. }),
    "attempt.persist" TASK X::Attempt(A::Persist { .. }),
    "attempt.give_up" TASK X::Attempt(A::GiveUp { .. }),
    "attempt.renew" TASK X::Attempt(A::Renew { .. }),
    "attempt.recover" SYSTEM X::Attempt(A::Recover { .. }),
    "attempt.compensate" TASK X::Attempt(A::Compensate { .. }),
    "cleanup.claim" SYSTEM X::Cleanup(C::Claim { .. }),
    "cleanup.renew" SYSTEM X::Cleanup(C::Renew { .. }),
    "cleanup.settle_resource" SYSTEM X::Cleanup(C::SettleResource { .. }),
    "cleanup.permit" SYSTEM X::Cleanup(C::Permit { .. }),
    "removal.record_step" SYSTEM X::Cleanup(C::RecordStep { .. }),
    "removal.record_failure" SYSTEM X::Cleanup(C::RecordFailure { .. }),
    "removal.renew" SYSTEM X::Cleanup(C::RenewRemoval { .. }),
    "removal.take_over" SYSTEM X::Cleanup(C::TakeOverRemoval { .. }),
    "cleanup.finish" SYSTEM X::Cleanup(C::Finish { .. }),
    "cleanup.put_back" SYSTEM X::Cleanup(C::PutBack { .. }),
    "cleanup.park" SYSTEM X::Cleanup(C::Park { .. }),
    "cleanup.rescue" SYSTEM X::Cleanup(C::Rescue { .. }),
    "cleanup.give_up_root" SYSTEM X::Cleanup(C::GiveUpRoot { .. }),
    "salvage.expire" SYSTEM X::Cleanup(C::ExpireSalvage { .. }),
    "trash.purge" SYSTEM X::Cleanup(C::Purge { .. }),
    "job.retry" LIFECYCLE X::Operator(P::Retry { .. }),
    "job.cancel" LIFECYCLE X::Operator(P::Cancel { .. }),
    "job.forget_resource" LIFECYCLE X::Operator(P::ForgetResource { .. }),
    "runtime.declare_stopped" LIFECYCLE X::Operator(P::DeclareStopped { .. }),
    "salvage.admit_restore" LIFECYCLE X::Operator(P::AdmitRestore { .. }),
    "salvage.mark_restored" LIFECYCLE X::Operator(P::MarkRestored { .. }),
    "settings.change" LIFECYCLE X::Operator(P::ChangeSettings { .. }),
    "root.register" LIFECYCLE X::Operator(P::RegisterRoot { .. }),
    "instance.register" SYSTEM X::System(Y::RegisterInstance { .. }),
    "instance.renew" SYSTEM X::System(Y::RenewInstance { .. }),
    "instance.drain" SYSTEM X::System(Y::Drain { .. }),
    "recovery.barrier" SYSTEM X::System(Y::RecoverBarrier { .. }),
    "recovery.workspace_delete" SYSTEM X::System(Y::RecoverWorkspaceDelete { .. }),
    "recovery.closing" SYSTEM X::System(Y::RecoverClosing { .. }),
    "recovery.turn" SYSTEM X::System(Y::RecoverTurn { .. }),
    "recovery.reconcile" SYSTEM X::System(Y::Reconcile { .. }),
}
