//! The names in every model: ids by kind and number, and how a trace calls them.

use freehold_kernel::{
    AttemptId, BranchId, CommitId, EnvironmentId, HostId, InputId, InstanceId, JobId, OperationId,
    PathId, RepoId, RepositoryId, RootId, RuntimeId, SessionId, Slug, TaskId, Token, TurnId,
    WorkspaceId, WorktreeId,
};

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident($id:ident) = $base:literal $word:literal;)*) => {
        $(
            $(#[$doc])*
            pub const fn $name(n: u8) -> $id {
                $id($base + n as u128)
            }
        )*

        /// How a trace calls an id; its bits if it is none of these.
        pub fn said(id: u128) -> String {
            match id & !0xff {
                $($base => format!(concat!($word, " {}"), id & 0xff),)*
                _another => format!("{id:x}"),
            }
        }
    };
}

names! {
    /// A machine.
    host(HostId) = 0x0100 "host";
    /// A process.
    instance(InstanceId) = 0x0200 "instance";
    /// A workspace.
    workspace(WorkspaceId) = 0x0300 "workspace";
    /// A task.
    task(TaskId) = 0x0400 "task";
    /// An environment.
    environment(EnvironmentId) = 0x0500 "environment";
    /// A session.
    session(SessionId) = 0x0600 "session";
    /// A managed root.
    root(RootId) = 0x0700 "root";
    /// A path.
    path(PathId) = 0x0800 "path";
    /// An attempt.
    attempt(AttemptId) = 0x0900 "attempt";
    /// A repository row.
    repo(RepoId) = 0x0a00 "worktree row";
    /// A worktree's stamp.
    stamp(WorktreeId) = 0x0b00 "worktree";
    /// A repository.
    repository(RepositoryId) = 0x0c00 "repository";
    /// A slot's slug.
    slug(Slug) = 0x0d00 "slot";
    /// A branch.
    branch(BranchId) = 0x0e00 "branch";
    /// A commit.
    commit(CommitId) = 0x0f00 "commit";
    /// A host's operation.
    operation(OperationId) = 0x1000 "operation";
    /// A job.
    job(JobId) = 0x1100 "job";
    /// A turn.
    turn(TurnId) = 0x1200 "turn";
    /// An input.
    input(InputId) = 0x1300 "input";
    /// A runtime.
    runtime(RuntimeId) = 0x1400 "runtime";
    /// A maker's token.
    maker_token(Token) = 0x1500 "maker's token";
    /// A closer's token.
    closing_token(Token) = 0x1600 "closer's token";
}

/// The letter by which traces call an instance: `A` for 0.
pub fn letter(n: u8) -> char {
    char::from(b'A' + n)
}
