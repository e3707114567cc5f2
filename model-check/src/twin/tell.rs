//! The twin in the words of the domain.

use super::Twin;
use super::act::Action;
use super::bits::{Var, Vars};
use crate::system::Fault;
use crate::trace::{Line, On, Verdict};

/// What must be met somewhere.
pub(super) const CIRCUMSTANCES: [&str; 12] = [
    "a worktree is owned",
    "an attempt is compensated",
    "an attempt is adopted by recovery",
    "a worktree is removed",
    "a removal was put back",
    "a removal was taken over",
    "the job succeeded",
    "the job failed",
    "the job was cancelled by an unarchive",
    "a worktree is preserved for its borrower",
    "a claim was put back while the maker lived",
    "a failed job was retried",
];

/// Which of them hold here.
#[inline]
pub(super) fn seen(word: u64) -> u64 {
    let var = |v: Var| v.get(word);
    let (removal, resource) = (var(Var::Removal), var(Var::Resource));
    let (part0, part1, active) = (var(Var::Part0), var(Var::Part1), var(Var::Job) == 5);
    u64::from(var(Var::Attempt) == 3)
        | u64::from(var(Var::Attempt) == 5) << 1
        | u64::from(var(Var::Attempt) == 3 && var(Var::AttemptLapsed) == 1) << 2
        | u64::from(resource == 9) << 3
        | u64::from(removal >= 8) << 4
        | u64::from(removal >= 1 && var(Var::Remover) >= 2 && var(Var::Attempt) == 3) << 5
        | u64::from(active && part0 == 3 && (part1 == 7 || part1 == 8)) << 6
        | u64::from(active && part0 == 3 && part1 == 9) << 7
        | u64::from(var(Var::Job) == 6) << 8
        | u64::from(resource == 10) << 9
        | u64::from(active && part1 == 0 && resource == 2) << 10
        | u64::from(var(Var::Retried) == 1) << 11
}

pub(super) fn nobody() -> Line {
    let (who, says) = ("nobody".to_owned(), "does anything".to_owned());
    Line { who, says, command: "", verdict: Verdict::Outside, on: On::Itself, fault: None }
}

impl Twin {
    /// An action, with the kernel's word on it.
    pub(super) fn line_of(&self, word: u64, action: Action) -> Line {
        let (command, verdict) = match self.happen(&Vars::of(word), action) {
            Ok(Some(happened)) => (happened.command, happened.verdict),
            // A broken property is of an accepted command.
            Err(_) => ("", Verdict::Accepted),
            Ok(None) => ("", Verdict::Outside),
        };
        let (who, says) = words(action);
        Line { who: who.to_owned(), says, command, verdict, on: on(action), fault: fault(action) }
    }
}

/// What an action acts on.
fn on(action: Action) -> On {
    match (fault(action), action) {
        (_, Action::Make | Action::Act) => On::Disk,
        (Some(_), _)
        | (
            None,
            Action::BarrierLapses
            | Action::AttemptLapses
            | Action::Claim0Lapses
            | Action::Claim1Lapses
            | Action::RemovalLapses,
        ) => On::Itself,
        (None, _) => On::Store,
    }
}

/// What goes wrong in it.
fn fault(action: Action) -> Option<Fault> {
    use Action as A;
    match action {
        A::OperatorDies | A::MakerDies | A::WorkerDies | A::RecoveryDies => Some(Fault::Crash),
        A::BarrierSlow | A::AttemptSlow | A::Claim0Slow | A::Claim1Slow => Some(Fault::Slow),
        _goes_well => None,
    }
}

fn words(action: Action) -> (&'static str, String) {
    use Action as A;
    let number = match action {
        A::Create(i) | A::BeginClose(i) | A::AbortClose(i) | A::CommitClose(i) => i + 1,
        _nothing => 0,
    };
    let (who, says) = match action {
        A::Reserve => ("instance A", "reserves the barrier for an archive"),
        A::Snapshot => ("instance A", "takes the snapshot"),
        A::Mutate => ("instance A", "archives the task and activates the job"),
        A::Abort => ("instance A", "aborts the operation"),
        A::OperatorDies => ("instance A", "dies in the operation"),
        A::RecoverBarrier => ("recovery", "lifts the barrier"),
        A::BarrierLapses => ("time", "passes the dead owner's barrier by"),
        A::BarrierSlow => ("time", "passes the slow owner's barrier by"),
        A::Begin => ("the maker", "records the attempt"),
        A::Lock => ("the maker", "takes the path lock and checks its token"),
        A::Make => ("the maker", "makes the worktree on disk"),
        A::SayMade => ("the maker", "records that the checkout is verified"),
        A::Persist => ("the maker", "asks for the canonical row"),
        A::GiveUp => ("the maker", "gives the attempt up"),
        A::MakerDies => ("the maker", "dies"),
        A::AttemptLapses => ("time", "passes the attempt of a maker by that is gone"),
        A::AttemptSlow => ("time", "passes the attempt of a slow maker by"),
        A::Create(_) => ("a person", "creates session"),
        A::BeginClose(_) => ("a person", "begins to delete session"),
        A::AbortClose(_) => ("a person", "aborts the deletion of session"),
        A::CommitClose(_) => ("a person", "deletes session"),
        A::Borrow => ("another task", "borrows the environment with a session"),
        A::BeginReturn => ("another task", "begins to delete the borrowing session"),
        A::AbortReturn => ("another task", "aborts the deletion of the borrowing session"),
        A::CommitReturn => ("another task", "deletes the borrowing session"),
        A::Unarchive => ("a person", "unarchives the task"),
        A::Retry => ("a person", "retries the failed job"),
        A::Claim0 => ("the worker", "claims what lies in no root"),
        A::Claim1 => ("the worker", "claims what lies in the root"),
        A::Finish0 => ("the worker", "ends its claim on what lies in no root"),
        A::Finish1 => ("the worker", "ends its claim on what lies in the root"),
        A::PutBack => ("the worker", "puts its claim back while the maker lives"),
        A::Settle => ("the worker", "asks whether the attempt is resolved"),
        A::Permit => ("the worker", "asks for permission to remove the worktree"),
        A::PermitInUse => ("the worker", "finds somebody in the worktree and says so"),
        A::WorkerDies => ("the worker", "dies"),
        A::Rescue0 => ("recovery", "rescues the claim on what lies in no root"),
        A::Rescue1 => ("recovery", "rescues the claim on what lies in the root"),
        A::Claim0Lapses | A::Claim1Lapses => ("time", "passes the dead worker's claim by"),
        A::Claim0Slow | A::Claim1Slow => ("time", "passes the slow worker's claim by"),
        A::Act => ("the executor", "does its step on disk"),
        A::Record => ("the executor", "records its step"),
        A::TakeOver => ("recovery", "takes the removal over"),
        A::RecoveryDies => ("recovery", "dies at work on the path"),
        A::RemovalLapses => ("time", "passes the dead executor's removal by"),
        A::RecoverAttempt => ("recovery", "takes the attempt over, or adopts it"),
        A::Compensate => ("recovery", "asks for permission to undo the attempt"),
    };
    (who, if number > 0 { format!("{says} {number}") } else { says.to_owned() })
}
