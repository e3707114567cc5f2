//! What comes out of a decision beside changed rows: events, effects, a reply, and, from the
//! removal machine alone, a warrant.

use alloc::vec::Vec;

use crate::codes::codes;
use crate::guard::Guard;
use crate::id::*;
use crate::refusal::Refusal;
use crate::rows::*;
use crate::warrant::Warrant;

codes! {
    /// What became true; the journal's events (A-13).
    EventKind {
        /// D-1.
        WorkspaceCreated = "workspace_created",
        /// T-9.
        WorkspaceDeleting = "workspace_deleting",
        /// T-9.
        WorkspaceDeleteAborted = "workspace_delete_aborted",
        /// T-9.
        WorkspaceDeleted = "workspace_deleted",
        /// D-2.
        TaskCreated = "task_created",
        /// T-7.
        TaskMoved = "task_moved",
        /// S-6.
        PrimaryChanged = "primary_changed",
        /// 03.
        TaskArchived = "task_archived",
        /// 03.
        TaskUnarchived = "task_unarchived",
        /// 03.
        TaskDeleted = "task_deleted",
        /// D-3.
        EnvironmentCreated = "environment_created",
        /// D-3.
        EnvironmentReady = "environment_ready",
        /// T-10.
        EnvironmentReset = "environment_reset",
        /// W-9.
        EnvironmentTransferred = "environment_transferred",
        /// D-16.
        EnvironmentRemoved = "environment_removed",
        /// D-3.
        CurrentEnvironmentChanged = "current_environment_changed",
        /// W-3.
        WorktreeOwned = "worktree_owned",
        /// D-4.
        WorktreeMerged = "worktree_merged",
        /// W-40.
        WorktreeRecorded = "worktree_recorded",
        /// D-4, T-10.
        WorktreeRowDeleted = "worktree_row_deleted",
        /// D-16.
        WorktreeRowRemoved = "worktree_row_removed",
        /// C-18.
        WorktreeRemoving = "worktree_removing",
        /// C-6.
        WorktreeGone = "worktree_gone",
        /// C-18.
        WorktreeReturned = "worktree_returned",
        /// S-2.
        SessionCreated = "session_created",
        /// W-23.
        SessionLinked = "session_linked",
        /// S-4.
        ActivityChanged = "activity_changed",
        /// S-20.
        SessionStarred = "session_starred",
        /// S-21.
        SessionClosing = "session_closing",
        /// S-22.
        SessionCloseAborted = "session_close_aborted",
        /// T-6.
        SessionClosedByTask = "session_closed_by_task",
        /// S-23.
        SessionArchived = "session_archived",
        /// S-24.
        SessionDeleted = "session_deleted",
        /// S-28.
        SessionReopened = "session_reopened",
        /// W-23.
        EnvironmentUnavailable = "environment_unavailable",
        /// S-12.
        TurnAdmitted = "turn_admitted",
        /// S-10.
        TurnAdvanced = "turn_advanced",
        /// S-13.
        TurnEnded = "turn_ended",
        /// D-9.
        InputQueued = "input_queued",
        /// D-9.
        InputDelivered = "input_delivered",
        /// D-9; the content is returned.
        InputCancelled = "input_cancelled",
        /// S-14.
        RuntimeStarting = "runtime_starting",
        /// D-11.
        RuntimeReported = "runtime_reported",
        /// W-1.
        AttemptBegun = "attempt_begun",
        /// W-3.
        AttemptMaterialised = "attempt_materialised",
        /// W-5.
        AttemptTakenOver = "attempt_taken_over",
        /// W-3, W-5.
        AttemptOwned = "attempt_owned",
        /// W-4.
        AttemptCompensating = "attempt_compensating",
        /// W-4.
        AttemptCompensated = "attempt_compensated",
        /// B-1.
        BarrierReserved = "barrier_reserved",
        /// B-4.
        SnapshotTaken = "snapshot_taken",
        /// B-5.
        JobActivated = "job_activated",
        /// B-7, B-8, T-12.
        JobCancelled = "job_cancelled",
        /// C-3.
        JobClaimed = "job_claimed",
        /// C-2.
        JobRetryWait = "job_retry_wait",
        /// C-17.
        JobPutBack = "job_put_back",
        /// C-4.
        JobRescued = "job_rescued",
        /// 05.
        JobSucceeded = "job_succeeded",
        /// C-2.
        JobFailed = "job_failed",
        /// C-2.
        JobRetried = "job_retried",
        /// C-13.
        ResourceSettled = "resource_settled",
        /// C-15.
        ResourceForgotten = "resource_forgotten",
        /// C-16: the audit line.
        RemovalPermitted = "removal_permitted",
        /// W-35.
        RemovalStepDone = "removal_step_done",
        /// W-35.
        RemovalStepFailed = "removal_step_failed",
        /// C-18.
        RemovalTakenOver = "removal_taken_over",
        /// W-36.
        RemovalSettled = "removal_settled",
        /// W-34.
        SalvageKept = "salvage_kept",
        /// W-34.
        SalvageRestored = "salvage_restored",
        /// W-34.
        SalvageExpired = "salvage_expired",
        /// D-20.
        TrashKept = "trash_kept",
        /// D-20.
        TrashRestoring = "trash_restoring",
        /// D-20.
        TrashPurging = "trash_purging",
        /// D-20.
        TrashGone = "trash_gone",
        /// D-25.
        SettingsChanged = "settings_changed",
        /// D-18.
        RootRegistered = "root_registered",
    }
}

/// One event: what became true, of which row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// Of which row.
    pub subject: RowKey,
    /// A code that belongs to the event (an outcome, a reason, a policy); empty if none.
    pub detail: &'static str,
}

/// What the host must do after the commit, at least once. No effect removes anything physical:
/// a removal needs a [`Warrant`], and no effect carries one (S-25).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEffect {
    /// Spawn the turn's runtime.
    StartTurn {
        /// The turn.
        turn: TurnId,
        /// Its handle.
        runtime: RuntimeId,
    },
    /// Stop a runtime, with a bound, and report.
    StopRuntime {
        /// Its handle.
        runtime: RuntimeId,
    },
    /// Give an input's content back to its sender.
    ReturnInput {
        /// The input.
        input: InputId,
        /// Why.
        reason: InputReason,
    },
}

/// What was decided, in one value that a host can store and show (D-19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Done.
    Done,
    /// It was so already: nothing changed, nothing was logged.
    Unchanged,
    /// The request was answered before; the first outcome is in its row (D-19).
    Replayed,
    /// The input is queued behind the running turn.
    Queued,
    /// The environment that the session refers to is not available; it opened without (W-23).
    OpenedWithoutEnvironment,
    /// The operation's job exists already, in this state (T-11).
    Job {
        /// Which.
        job: JobId,
        /// Its state.
        state: JobState,
    },
    /// The attempt may not be persisted and is to be undone (W-4).
    Compensate {
        /// What is in its way.
        guard: Guard,
    },
    /// The attempt was adopted: its worktree is owned (W-5).
    Adopted,
    /// Nothing is at the attempt's path; it is compensated.
    Compensated,
    /// The resource is settled without a removal.
    Settled {
        /// How.
        result: ResourceResult,
        /// Why.
        reason: Reason,
    },
    /// The resource cannot be settled now; the job goes on without it.
    NotNow {
        /// Why.
        reason: Reason,
    },
    /// The removal is settled.
    RemovalSettled {
        /// How.
        outcome: RemovalOutcome,
    },
    /// A warrant comes with this reply.
    Permitted {
        /// The removal behind it.
        removal: RemovalId,
    },
    /// The session's removal is done; the runtime may be told.
    Closed,
}

/// An accepted command.
#[derive(Debug, PartialEq, Eq)]
pub struct Decision {
    /// The answer.
    pub reply: Reply,
    /// The permission for one physical step; only the removal machine gives one.
    pub warrant: Option<Warrant>,
}

/// An accepted session command. It has no place for a warrant: a session decision cannot
/// express a physical removal (S-25, promise 1).
///
/// ```compile_fail
/// fn smuggle(warrant: freehold_kernel::Warrant) -> freehold_kernel::SessionDecision {
///     freehold_kernel::SessionDecision { reply: freehold_kernel::Reply::Done, warrant: Some(warrant) }
/// }
/// ```
/// (Without the warrant it compiles:)
///
/// ```
/// fn honest() -> freehold_kernel::SessionDecision {
///     freehold_kernel::SessionDecision { reply: freehold_kernel::Reply::Done }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionDecision {
    /// The answer.
    pub reply: Reply,
}

impl From<SessionDecision> for Decision {
    fn from(decision: SessionDecision) -> Decision {
        Decision { reply: decision.reply, warrant: None }
    }
}

impl From<Reply> for Decision {
    fn from(reply: Reply) -> Decision {
        Decision { reply, warrant: None }
    }
}

/// Where a decision writes its events and effects. The caller owns it and may reuse it, so that
/// deciding allocates nothing once it has grown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// What became true, in order.
    pub events: Vec<Event>,
    /// What the host must do after the commit.
    pub effects: Vec<SessionEffect>,
}

impl Output {
    /// Empties both lists, keeping their room.
    pub fn clear(&mut self) {
        self.events.clear();
        self.effects.clear();
    }
}

/// Either an accepted command or the kernel's no.
pub type Verdict = Result<Decision, Refusal>;
