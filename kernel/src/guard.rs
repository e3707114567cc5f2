//! Guards: every condition that a transition checks, named once. The order of this list is the
//! order in which they are tested, and so the promised precedence of refusals.

use crate::codes::codes;

/// What kind of guard it is (09).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardKind {
    /// Its removal must break a property in a model.
    Rule,
    /// Defence in depth: the removal of its whole group must break a property.
    Redundant,
    /// The shape of an input: covered by tests.
    Validation,
}

/// A set of guards that a decision tests. Two sets exist: all, and all but some.
pub trait GuardSet {
    /// Whether guards may be missing.
    const PARTIAL: bool;
    /// Whether the guard is in the set.
    fn has(&self, guard: Guard) -> bool;
    /// Called for each guard that a decision tests, in order; for tests of precedence.
    fn seen(&self, _guard: Guard) {}
}

/// Every guard: the only set of a production build.
#[derive(Clone, Copy, Debug)]
pub struct AllGuards;

impl GuardSet for AllGuards {
    const PARTIAL: bool = false;
    #[inline]
    fn has(&self, _guard: Guard) -> bool {
        true
    }
}

macro_rules! guards {
    ($($name:ident = $code:literal, $kind:ident, $rule:literal, $says:literal, $help:literal, $retry:literal;)*) => {
        codes! {
            /// The guards, in precedence order.
            Guard { $(#[doc = $says] $name = $code,)* }
        }

        impl Guard {
            /// What kind of guard it is.
            pub const fn kind(self) -> GuardKind {
                match self { $(Guard::$name => GuardKind::$kind,)* }
            }

            /// The rules that it keeps.
            pub const fn rule(self) -> &'static str {
                match self { $(Guard::$name => $rule,)* }
            }

            /// What a refusal says.
            pub const fn says(self) -> &'static str {
                match self { $(Guard::$name => $says,)* }
            }

            /// What would help.
            pub const fn help(self) -> &'static str {
                match self { $(Guard::$name => $help,)* }
            }

            /// Whether the same command may be accepted later without anybody's act.
            pub const fn may_pass_later(self) -> bool {
                match self { $(Guard::$name => $retry,)* }
            }
        }
    };
}

guards! {
    Permission = "permission", Rule, "D-27, T-4, S-26",
        "the actor does not have the permission that the command needs",
        "ask somebody who has it, or hand over an actor with it", false;
    RequestContent = "request_content", Rule, "D-19",
        "this request id was used for another content",
        "use a fresh request id", false;
    WorkspaceKnown = "workspace_known", Validation, "S-27",
        "there is no such workspace",
        "check the id", false;
    WorkspaceNotDeleted = "workspace_not_deleted", Validation, "D-14",
        "the workspace was deleted",
        "create another one under a new id", false;
    TaskKnown = "task_known", Validation, "S-27",
        "there is no such task",
        "check the id", false;
    TaskNotDeleted = "task_not_deleted", Validation, "D-14",
        "the task was deleted",
        "create another one under a new id", false;
    SessionKnown = "session_known", Validation, "S-27",
        "there is no such session",
        "check the id", false;
    SessionNotDeleted = "session_not_deleted", Validation, "S-27",
        "the session was deleted",
        "create another one under a new id", false;
    EnvironmentKnown = "environment_known", Validation, "D-3",
        "there is no such environment",
        "create one, or link the session to another", false;
    RepoKnown = "repo_known", Validation, "D-4",
        "there is no such repository row",
        "check the id", false;
    AttemptKnown = "attempt_known", Validation, "D-5",
        "there is no such attempt",
        "check the id", false;
    TurnKnown = "turn_known", Validation, "D-8",
        "there is no such turn",
        "check the id", false;
    InputKnown = "input_known", Validation, "D-9",
        "there is no such input",
        "check the id", false;
    RuntimeKnown = "runtime_known", Validation, "D-11",
        "there is no such runtime",
        "check the id", false;
    JobKnown = "job_known", Validation, "C-1",
        "there is no such job",
        "list the jobs", false;
    JobRootKnown = "job_root_known", Validation, "C-1",
        "there is no such part of a job",
        "list the jobs", false;
    ResourceKnown = "resource_known", Validation, "C-1",
        "there is no such resource",
        "list the job's resources", false;
    RemovalKnown = "removal_known", Validation, "D-22",
        "there is no such removal",
        "list the removals", false;
    TrashKnown = "trash_known", Validation, "D-20",
        "there is no such trash row",
        "list the trash", false;
    SalvageKnown = "salvage_known", Validation, "D-20",
        "there is no such salvage entry",
        "list the salvage", false;
    RootKnown = "root_known", Validation, "D-18",
        "there is no such managed root",
        "register it", false;
    InstanceKnown = "instance_known", Validation, "D-15",
        "this instance was never registered",
        "register it", false;
    LegalStep = "legal_step", Redundant, "design",
        "a machine was asked for an illegal step: a defect of the kernel",
        "report it with the journal", false;
    IdNeverUsed = "id_never_used", Rule, "D-14, S-3",
        "the id is in use, or was used and deleted",
        "choose a new id", false;
    EnvironmentNew = "environment_new", Validation, "D-3",
        "the environment's id is in use",
        "choose a new id", false;
    JobNew = "job_new", Validation, "C-1",
        "the job's id is in use",
        "choose a new id", false;
    RootNew = "root_new", Validation, "D-18",
        "the root, or its path, is registered otherwise",
        "use the registered one", false;
    InstanceNew = "instance_new", Validation, "D-15",
        "the instance's id is in use",
        "use a fresh id for every process", false;
    SettingsSane = "settings_sane", Validation, "D-25",
        "with these settings leases or retries could not work",
        "renew at most half the lease, removal leases at least the lease, retries not decreasing", false;
    TriggerShape = "trigger_shape", Validation, "T-1",
        "the trigger does not go with what the command brings",
        "bring a root for cascades only, an environment for resets only", false;
    ExpiryFitsKind = "expiry_fits_kind", Validation, "T-8",
        "a quick chat needs an expiry, and nothing else has one",
        "give it, or leave it out", false;
    ActivityByWriter = "activity_by_writer", Validation, "S-4",
        "no writer may ask for this activity",
        "admission alone makes it", false;
    PhaseReachable = "phase_reachable", Validation, "S-10",
        "the turn cannot come to this phase from where it is",
        "read the turn again", false;
    WorktreeNeedsWarrant = "worktree_needs_warrant", Validation, "W-30",
        "a worktree is removed by a warrant only",
        "ask for the permission", false;
    OperationContent = "operation_content", Rule, "C-12, B-1",
        "this operation id was used for another content",
        "use a fresh operation id", false;
    TaskArchived = "task_archived", Validation, "B-8",
        "the task is not archived",
        "nothing is to be undone", false;
    SessionArchived = "session_archived", Redundant, "S-27",
        "the session is not archived",
        "nothing is to be undone", false;
    NotAlreadyClosing = "not_already_closing", Redundant, "S-20",
        "another close of the session is under way",
        "wait for its end", true;
    NotStarred = "not_starred", Rule, "S-20",
        "the session is starred, and the closer is automatic",
        "unstar it, or close it by hand", false;
    CloseUnderWay = "close_under_way", Validation, "S-22",
        "no close of the session is under way",
        "begin one", false;
    ClosingToken = "closing_token", Rule, "S-22",
        "the close belongs to somebody else",
        "begin your own", false;
    ClosingLease = "closing_lease", Rule, "S-22",
        "the close's lease has lapsed",
        "begin it again", false;
    ClosingLapsed = "closing_lapsed", Rule, "S-22",
        "the closer may still live",
        "wait for the lease", true;
    HandOffUnbarred = "hand_off_unbarred", Rule, "B-2",
        "a lifecycle operation holds the task, so no queued input starts a turn",
        "the input waits", true;
    TurnNotEnded = "turn_not_ended", Validation, "S-13",
        "the turn has ended",
        "nothing is to be done", false;
    TurnInstance = "turn_instance", Rule, "S-14",
        "the turn belongs to another instance",
        "renew your own turns only", false;
    TurnLapsed = "turn_lapsed", Rule, "S-14",
        "the turn's instance may still live",
        "wait for the lease", true;
    TurnNotAlive = "turn_not_alive", Rule, "S-14",
        "the host says that the turn is alive",
        "nothing is changed", true;
    ActivityWhileOpen = "activity_while_open", Rule, "S-4",
        "the session is not open",
        "a late status write changes nothing", false;
    EpochCurrent = "epoch_current", Rule, "S-4",
        "the writer knows an older epoch of the session",
        "a late status write changes nothing", false;
    RunningNeedsTurn = "running_needs_turn", Rule, "S-4, S-12",
        "no turn of the session is under way",
        "submit an input", false;
    BarrierHeld = "barrier_held", Validation, "B-1",
        "the operation holds no barrier",
        "reserve first; an operation that was aborted or has mutated is over", false;
    BorrowerKeeps = "borrower_keeps", Rule, "W-20",
        "sessions of other tasks use an environment, and none of their tasks can take it",
        "wait until one of them is free", true;
    UnarchiveCancels = "unarchive_cancels", Rule, "B-8",
        "cleanup of the archive goes on",
        "it is cancelled with the unarchive", false;
    AttemptToken = "attempt_token", Rule, "W-5",
        "the attempt was taken over",
        "remove nothing but what you made", false;
    AttemptOpen = "attempt_open", Validation, "W-4",
        "the attempt is not open",
        "read it again", false;
    AttemptVerified = "attempt_verified", Validation, "W-3",
        "the worktree has not been verified",
        "make and verify it first", false;
    AttemptUnresolved = "attempt_unresolved", Validation, "W-5",
        "the attempt is resolved",
        "nothing is to be recovered", false;
    AttemptCompensating = "attempt_compensating", Rule, "W-4",
        "the attempt is not to be undone",
        "give it up first", false;
    ClaimRunning = "claim_running", Redundant, "C-3",
        "the claim is over",
        "claim again", false;
    ClaimToken = "claim_token", Rule, "C-3",
        "the claim belongs to somebody else",
        "claim again", false;
    ClaimLease = "claim_lease", Rule, "C-4",
        "the claim's lease has lapsed",
        "claim again", false;
    ResourceIsWorktree = "resource_is_worktree", Validation, "C-6",
        "only a worktree is removed by a warrant",
        "settle the resource instead", false;
    ProvenDead = "proven_dead", Rule, "C-7",
        "the runtime is not proven dead",
        "stop it and prove it", true;
    ResourceWaiting = "resource_waiting", Rule, "C-8",
        "the resource is settled",
        "nothing is to be done", false;
    RuntimesFirst = "runtimes_first", Rule, "C-6",
        "a runtime that uses the worktree is not proven stopped",
        "stop it first", true;
    AttemptsFirst = "attempts_first", Rule, "C-6",
        "an attempt of the job is unresolved",
        "resolve it first", true;
    NotTakenOver = "not_taken_over", Rule, "T-12",
        "another operation holds the task",
        "wait for it", true;
    ConsentCovers = "consent_covers", Rule, "W-34, P-29",
        "unsaved work of a kind that nobody consented to lose",
        "consent to it, or use the policy salvage", false;
    MarkRemoving = "mark_removing", Rule, "C-18, P-33",
        "the row is not marked as in removal",
        "it is marked with the permission", false;
    RemovalUnsettled = "removal_unsettled", Rule, "D-22",
        "the removal has its outcome",
        "nothing is to be done", false;
    RemovalToken = "removal_token", Rule, "C-18",
        "the removal was taken over",
        "stop where it is safe", false;
    InstanceAlive = "instance_alive", Rule, "D-15",
        "the instance's lease has lapsed",
        "register again under a fresh id", false;
    NotDraining = "not_draining", Rule, "S-35",
        "the instance is draining",
        "ask another instance, or wait", true;
    InputNew = "input_new", Validation, "D-9",
        "the input's id is in use",
        "choose a new id", false;
    WorkspaceActive = "workspace_active", Rule, "T-9",
        "the workspace is being deleted",
        "wait for the end of its deletion, or use another", true;
    Claimable = "claimable", Rule, "C-3",
        "the part of the job cannot be claimed now",
        "list the jobs", false;
    JobReadable = "job_readable", Rule, "C-10",
        "the job cannot be read by this build",
        "it is parked with its bytes untouched", false;
    Due = "due", Rule, "C-2",
        "the next try is not due",
        "wait, or retry by hand", true;
    RootServed = "root_served", Rule, "D-18, C-3",
        "the root is served by another host",
        "leave it to an instance of that host", true;
    AttemptNew = "attempt_new", Validation, "D-5",
        "the attempt's id is in use",
        "choose a new id", false;
    TrashKept = "trash_kept", Rule, "D-20",
        "the trash is not kept any more",
        "nothing is to be purged", false;
    TaskActive = "task_active", Rule, "S-3, T-7",
        "the task is archived",
        "unarchive the task", false;
    AttemptLapsed = "attempt_lapsed", Rule, "W-5",
        "the maker may still live",
        "wait for the lease", true;
    PersistOwnerActive = "persist_owner_active", Redundant, "W-3, W-4",
        "the owner is not active any more",
        "the attempt is undone", false;
    PersistUnbarred = "persist_unbarred", Rule, "W-3, W-4",
        "a lifecycle operation holds the owner",
        "the attempt is undone", false;
    PersistSlotFree = "persist_slot_free", Rule, "D-4, P-5",
        "the slot has an owner by now",
        "the attempt is undone", false;
    OneJobOfTask = "one_job_of_task", Rule, "C-3",
        "another job of the task is running",
        "wait for it", true;
    StepInOrder = "step_in_order", Rule, "W-35",
        "the step does not follow from the last one",
        "take over the removal to learn where it stands", false;
    RemovalLapsed = "removal_lapsed", Rule, "C-18, P-12",
        "the executor of the removal may still live",
        "wait for the lease", true;
    TokenFresh = "token_fresh", Validation, "C-18, W-5",
        "the token is the one that is taken over",
        "bring a new one: whoever had the old one must not go on with it", false;
    SalvagedFirst = "salvaged_first", Rule, "W-34, P-29",
        "unsaved work has not been salvaged",
        "salvage it first", false;
    TrashLapsed = "trash_lapsed", Rule, "D-20",
        "the trash is still kept for a restore",
        "wait for its retention", true;
    SalvageLapsed = "salvage_lapsed", Rule, "W-34",
        "the salvage is kept: nobody consented to a retention, or it has not lapsed",
        "wait for the retention, or set one with recorded consent", true;
    RescueRunning = "rescue_running", Redundant, "C-4",
        "the claim ended by itself",
        "what finished stays finished", false;
    RescueToken = "rescue_token", Rule, "C-4",
        "another claim is under way",
        "leave it", false;
    RescueLapsed = "rescue_lapsed", Rule, "C-4",
        "the claimer may still live",
        "wait for the lease", true;
    RootUnserved = "root_unserved", Rule, "C-3",
        "the root may still be served in time",
        "wait", true;
    Retryable = "retryable", Validation, "C-2",
        "the job has not failed",
        "only failed or waiting jobs are retried", false;
    RetryReadable = "retry_readable", Rule, "C-10",
        "the job cannot be read by this build",
        "upgrade, or forget its resources", false;
    RetryAuthority = "retry_authority", Redundant, "P-14, T-12",
        "the operation that the job served no longer stands",
        "nothing is left to do for it", false;
    RetryNotTakenOver = "retry_not_taken_over", Redundant, "T-12",
        "a later operation has taken the task on",
        "look at its job", false;
    CancelKind = "cancel_kind", Rule, "C-15",
        "a deletion or a reset cannot be taken back",
        "forget single resources instead", false;
    CancelUnfinished = "cancel_unfinished", Validation, "C-15",
        "the job is at its end",
        "nothing is to be cancelled", false;
    RestoreFits = "restore_fits", Rule, "W-34",
        "what is to be put back does not belong there, or nothing is there to put it into",
        "make the worktree again, or name another one to restore into", false;
    ForgetLeft = "forget_left", Validation, "C-15",
        "the resource is settled",
        "nothing is to be forgotten", false;
    ForgetStopped = "forget_stopped", Validation, "C-15, C-7",
        "the runtime is not known to be stopped",
        "say that it is, if nobody can reach it any more, and try the job again", false;
    RuntimeIdle = "runtime_idle", Rule, "C-15, S-10",
        "a turn is under way on the runtime",
        "wait for its end, or for recovery to end it", true;
    RuntimeUnreached = "runtime_unreached", Rule, "C-15, S-10",
        "the instance that runs it lives, and it is that one's to stop",
        "stop it there, or end that instance and wait for its lease", true;
    ForgetLapsed = "forget_lapsed", Rule, "C-15",
        "an executor may be at work on it",
        "wait for its lease", true;
    ReconcileId = "reconcile_id", Validation, "W-21",
        "the operation id is not the one that belongs to this archive and environment",
        "derive it", false;
    TaskUnbarred = "task_unbarred", Rule, "B-2",
        "a lifecycle operation holds the task",
        "wait until it has ended", true;
    SessionNotClosing = "session_not_closing", Rule, "S-21",
        "the session is being closed",
        "wait for the end of the close", true;
    SessionOpen = "session_open", Rule, "S-12",
        "the session is archived",
        "unarchive the session", false;
    ReceiverActive = "receiver_active", Rule, "W-9",
        "the receiving task is not active",
        "unarchive it, or choose another", false;
    ReceiverUnbarred = "receiver_unbarred", Rule, "W-9",
        "a lifecycle operation holds the receiving task",
        "wait until it has ended", true;
    WorkspaceDeletion = "workspace_deletion", Rule, "T-9",
        "the workspace is not being deleted by this operation",
        "begin its deletion first", false;
    SameWorkspace = "same_workspace", Validation, "T-7",
        "the parent is in another workspace",
        "choose a parent in the same one", false;
    ParentActive = "parent_active", Rule, "T-7",
        "the parent task is archived",
        "unarchive the parent, or choose another", false;
    ParentUnbarred = "parent_unbarred", Rule, "T-7, B-2",
        "a lifecycle operation holds the parent task",
        "wait until it has ended", true;
    NoCircle = "no_circle", Rule, "T-7",
        "the task would come under itself",
        "choose another parent", false;
    TreeNotTooDeep = "tree_not_too_deep", Validation, "T-7",
        "the task tree would be too deep",
        "choose a parent nearer to the root", false;
    NoTurnWork = "no_turn_work", Rule, "S-20, S-11",
        "the session has turn work",
        "wait for the turn, stop it, or force what is parked", true;
    OwnerActive = "owner_active", Rule, "W-23",
        "the owner of the environment is not active",
        "unarchive the owner, or use another environment", false;
    OwnerUnbarred = "owner_unbarred", Rule, "W-23",
        "a lifecycle operation holds the owner of the environment",
        "wait until it has ended", true;
    RuntimeQuiesced = "runtime_quiesced", Rule, "S-22",
        "a runtime of the session is not proven stopped",
        "stop it, or abort the close", true;
    BorrowedAvailable = "borrowed_available", Rule, "W-23",
        "the borrowed environment is not available",
        "the session opens without it", false;
    OneTurn = "one_turn", Rule, "S-10",
        "a turn of the session is under way",
        "the input waits for its end", true;
    EnvironmentOfTask = "environment_of_task", Rule, "T-10",
        "the environment belongs to another task",
        "name the owner", false;
    NoOpenAttempt = "no_open_attempt", Rule, "W-9",
        "a worktree of the environment is being made",
        "wait for its attempt", true;
    Expired = "expired", Rule, "T-8",
        "the quick chat has not expired",
        "wait for its expiry, or delete the task", true;
    BarrierOwner = "barrier_owner", Rule, "B-7",
        "the barrier belongs to another instance",
        "leave it to its owner", false;
    BarrierLease = "barrier_lease", Rule, "B-7",
        "the barrier's lease has lapsed",
        "reserve again", false;
    BarrierLapsed = "barrier_lapsed", Rule, "B-7, T-9",
        "the owner of the barrier may still live",
        "wait for the lease", true;
    ScopeFits = "scope_fits", Validation, "B-9",
        "the scope does not fit the operation's trigger",
        "name the scope of its trigger", false;
    SnapshotTaken = "snapshot_taken", Rule, "B-4, P-7",
        "the snapshot has not been taken",
        "take it first", false;
    NoBorrower = "no_borrower", Rule, "T-10, W-21",
        "sessions of other tasks use the environment",
        "wait for them, or link them elsewhere", true;
    CascadeComplete = "cascade_complete", Rule, "B-9",
        "a task of the subtree is not barred",
        "reserve it under the same operation", true;
    WorkspaceComplete = "workspace_complete", Rule, "T-9, B-9",
        "a task of the workspace is not barred",
        "reserve it under the same operation", true;
    SlotUnattempted = "slot_unattempted", Rule, "D-5",
        "an attempt on this slot is unresolved",
        "wait for it", true;
    RepoNew = "repo_new", Validation, "D-4",
        "the repository row's id is in use",
        "choose a new id", false;
    NotInRemoval = "not_in_removal", Rule, "C-18",
        "a worktree of the environment is in removal",
        "wait until it is settled", true;
    EnvironmentFinished = "environment_finished", Rule, "S-12, W-3",
        "the environment is still being made",
        "wait for its attempts", true;
    TurnNew = "turn_new", Validation, "D-8",
        "the turn's id is in use",
        "choose a new id", false;
    RuntimeNew = "runtime_new", Validation, "D-11",
        "the runtime's id is in use",
        "choose a new id", false;
    TaskNotBusy = "task_not_busy", Rule, "T-5",
        "a turn of the task is under way",
        "wait for it, or let the operation stop it", true;
    NothingUnsaved = "nothing_unsaved", Rule, "W-34, B-1",
        "there is unsaved work, and the policy is to refuse",
        "commit it, or use the policy salvage", false;
    ConsentGiven = "consent_given", Rule, "W-34",
        "discarding unsaved work needs recorded consent",
        "list the kinds that may go", false;
    SlotFree = "slot_free", Rule, "D-4, P-5",
        "the slot has an owner",
        "reuse its worktree", false;
    RepoOfSlot = "repo_of_slot", Validation, "W-7",
        "the slot's row has another id",
        "name that row", false;
    RecordedBranch = "recorded_branch", Rule, "W-7",
        "the slot's worktree is recorded on another branch",
        "recreate it on its recorded branch", false;
    NoUnsettledRemoval = "no_unsettled_removal", Rule, "C-18",
        "a removal on this path is not settled",
        "take it over once its lease has lapsed", true;
    CompensateOnlyOwn = "compensate_only_own", Rule, "W-4, P-9",
        "what is at the path is not the attempt's own",
        "it is left alone", false;
    PathFree = "path_free", Rule, "D-4, P-5",
        "another row or attempt names the path",
        "choose another path", false;
    AuthorityStands = "authority_stands", Redundant, "C-5, P-14",
        "the operation that asked no longer stands",
        "nothing is removed", false;
    PermitNoBorrower = "permit_no_borrower", Rule, "C-5, P-10",
        "sessions of other tasks use the worktree",
        "it is preserved", false;
    OwnedAsSnapshot = "owned_as_snapshot", Rule, "C-5, P-4",
        "something else owns the path or the worktree now",
        "it is left alone", false;
    EarlierJobsEnded = "earlier_jobs_ended", Redundant, "W-21, C-3",
        "a job of the task is not finished",
        "wait for it", true;
    Managed = "managed", Rule, "W-40",
        "Freehold did not make this worktree",
        "it is never removed", false;
    EvidenceKnown = "evidence_known", Rule, "D-18, S-29",
        "the place could not be looked at",
        "make the root available", true;
    IdentityProven = "identity_proven", Rule, "W-31",
        "what is at the path is not what was recorded",
        "look at it; forget the resource, or have it removed by hand", false;
    NoObstacle = "no_obstacle", Rule, "W-31",
        "something stands in the way",
        "see the reason", true;
    PermitNothingUnsaved = "permit_nothing_unsaved", Rule, "W-34, P-29",
        "there is unsaved work, and the policy is to refuse",
        "commit it, or use the policy salvage", false;
    RemovalNew = "removal_new", Validation, "D-22",
        "the removal's id is in use",
        "choose a new id", false;
    RemovalStands = "removal_stands", Rule, "C-18, P-14",
        "the operation that asked no longer stands",
        "the worktree is put back", false;
}

/// All guards but some: for the model checker alone (see [`crate::decide::decide_with`]).
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct AllBut<'a>(pub &'a [Guard]);

impl GuardSet for AllBut<'_> {
    const PARTIAL: bool = true;
    fn has(&self, guard: Guard) -> bool {
        !self.0.contains(&guard)
    }
}
