//! One operation of a sequence: a kind and a number from which it draws its choices. Small numbers
//! draw what is legal, so that a shrunk sequence reads well.

use super::backend::Backend;
use super::{Driver, Ran};

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A session is created.
    CreateSession,
    /// A message to a session.
    Submit,
    /// A turn ends.
    EndTurn,
    /// A turn goes on, or its input is taken back.
    Turn,
    /// A session begins to close.
    BeginClose,
    /// A closing is committed or given up.
    EndClose,
    /// A session is starred, linked, active.
    Session,
    /// A session is unarchived.
    Reopen,
    /// A task is created or moved.
    CreateTask,
    /// An environment is created or transferred.
    Environment,
    /// A barrier is reserved.
    Reserve,
    /// A whole operation.
    Operate,
    /// An operation goes on, or is aborted.
    Continue,
    /// A task is unarchived.
    Unarchive,
    /// A workspace is created or deleted.
    Workspace,
    /// A making is recorded.
    BeginAttempt,
    /// A maker makes its worktree.
    Make,
    /// A maker goes on, gives up, or is recovered.
    Attempt,
    /// A whole making.
    Worktree,
    /// Due work is claimed.
    Claim,
    /// A claim is worked on.
    Work,
    /// A removal goes on.
    Remove,
    /// Trash comes back, or what is kept expires.
    Restore,
    /// A job is retried or cancelled.
    Job,
    /// Settings, roots, salvage.
    Operator,
    /// What lapsed is recovered.
    Recover,
    /// Time passes.
    Time,
    /// A process dies.
    Crash,
    /// Somebody changes files.
    Dirty,
    /// A command is sent again.
    Again,
    /// The store is closed and opened.
    Reopened,
}

/// Kinds with their weights.
pub const WEIGHTS: &[(u32, Kind)] = &[
    (5, Kind::CreateSession),
    (8, Kind::Submit),
    (5, Kind::EndTurn),
    (5, Kind::Turn),
    (5, Kind::BeginClose),
    (5, Kind::EndClose),
    (4, Kind::Session),
    (4, Kind::Reopen),
    (1, Kind::CreateTask),
    (3, Kind::Environment),
    (1, Kind::Reserve),
    (7, Kind::Operate),
    (6, Kind::Continue),
    (5, Kind::Unarchive),
    (1, Kind::Workspace),
    (3, Kind::BeginAttempt),
    (5, Kind::Make),
    (4, Kind::Attempt),
    (6, Kind::Worktree),
    (2, Kind::Claim),
    (24, Kind::Work),
    (8, Kind::Remove),
    (3, Kind::Restore),
    (4, Kind::Job),
    (4, Kind::Operator),
    (6, Kind::Recover),
    (6, Kind::Time),
    (2, Kind::Crash),
    (4, Kind::Dirty),
    (3, Kind::Again),
    (1, Kind::Reopened),
];

/// Kinds with their weights, for the physical side: makings, cleanups, removals.
pub const PHYSICAL: &[(u32, Kind)] = &[
    (10, Kind::Worktree),
    (10, Kind::Operate),
    (24, Kind::Work),
    (14, Kind::Remove),
    (8, Kind::Restore),
    (8, Kind::Unarchive),
    (5, Kind::Job),
    (6, Kind::Operator),
    (5, Kind::Recover),
    (9, Kind::Time),
    (4, Kind::Crash),
    (8, Kind::Dirty),
    (5, Kind::Attempt),
    (4, Kind::Make),
    (4, Kind::BeginAttempt),
    (4, Kind::Continue),
    (3, Kind::Environment),
    (4, Kind::CreateSession),
    (2, Kind::Submit),
    (2, Kind::BeginClose),
    (2, Kind::Again),
];

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// What is tried.
    pub kind: Kind,
    /// Its choices.
    pub bits: u64,
}

/// Draws choices from a number.
#[derive(Clone, Copy, Debug)]
pub struct Draw(pub u64);

impl Draw {
    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        let n = n.max(1) as u64;
        let drawn = self.0 % n;
        self.0 /= n;
        drawn as usize
    }

    /// True once in `n`; false for small numbers.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    /// One of them.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        if of.is_empty() { None } else { Some(of[self.below(of.len())]) }
    }
}

impl<B: Backend> Driver<B> {
    /// Runs one operation.
    pub fn run(&mut self, op: Op) -> Ran {
        let draw = Draw(op.bits);
        match op.kind {
            Kind::CreateSession => self.create_session(draw),
            Kind::Submit => self.submit_input(draw),
            Kind::EndTurn => self.end_turn(draw),
            Kind::Turn => self.turn(draw),
            Kind::BeginClose => self.begin_close(draw),
            Kind::EndClose => self.end_close(draw),
            Kind::Session => self.session(draw),
            Kind::Reopen => self.reopen(draw),
            Kind::CreateTask => self.create_task(draw),
            Kind::Environment => self.environment(draw),
            Kind::Reserve => self.reserve(draw),
            Kind::Operate => self.operate(draw),
            Kind::Continue => self.go_on(draw),
            Kind::Unarchive => self.unarchive(draw),
            Kind::Workspace => self.workspace(draw),
            Kind::BeginAttempt => self.begin_attempt(draw).map(|_| ()),
            Kind::Make => self.make(draw),
            Kind::Attempt => self.attempt(draw),
            Kind::Worktree => self.whole_worktree(draw),
            Kind::Claim => self.claim(draw).map(|_| ()),
            Kind::Work => self.work(draw),
            Kind::Remove => self.remove(draw),
            Kind::Restore => self.restore(draw),
            Kind::Job => self.job(draw),
            Kind::Operator => self.operator(draw),
            Kind::Recover => self.recover(draw),
            Kind::Time => self.time(draw),
            Kind::Crash => self.crash(draw),
            Kind::Dirty => self.dirty(draw),
            Kind::Again => self.again(draw),
            Kind::Reopened => {
                self.backend.reopen();
                Ok(())
            }
        }
    }
}
