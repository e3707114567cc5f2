//! Closed enums with stable codes. The codes are what stands on disk and in JSON.

/// Declares a closed enum whose variants have stable text codes.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $code:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub enum $name { $($(#[$vdoc])* $variant,)* }

            impl $name {
                /// Every variant, in declaration order.
                pub const ALL: &'static [$name] = &[$($name::$variant,)*];
                /// The codes of every variant, in the same order.
                pub const CODES: &'static [&'static str] = &[$($code,)*];

                /// The stable code.
                pub const fn code(self) -> &'static str {
                    match self { $($name::$variant => $code,)* }
                }

                /// The variant with this code, if there is one.
                pub fn from_code(code: &str) -> Option<$name> {
                    match code { $($code => Some($name::$variant),)* _unknown => None }
                }
            }
        )*
    };
}
pub(crate) use codes;

codes! {
    /// D-1.
    WorkspaceState {
        /// Tasks may be created in it.
        Active = "active",
        /// Its deletion has begun (T-9).
        Deleting = "deleting",
    }
    /// D-2.
    TaskKind {
        /// Shown on the board.
        Standard = "standard",
        /// A hidden task with an expiry (T-8).
        QuickChat = "quick_chat",
    }
    /// D-2; archived is a lifecycle, not a work status.
    TaskLifecycle {
        /// May be worked on.
        Active = "active",
        /// Closed until a person unarchives it.
        Archived = "archived",
    }
    /// D-3.
    EnvironmentStatus {
        /// Its slots are not yet all owned or failed (W-3).
        Creating = "creating",
        /// May be used.
        Ready = "ready",
        /// Nothing runs in it.
        Stopped = "stopped",
        /// Its preparation failed.
        Failed = "failed",
    }
    /// D-4. History that changes nothing physical, but for `deleted`.
    RepoStatus {
        /// In use.
        Active = "active",
        /// The host said so.
        Merged = "merged",
        /// History.
        Deleted = "deleted",
    }
    /// D-4: whether the row's worktree is on the disk.
    Materialised {
        /// It is.
        Yes = "yes",
        /// It is not; it can be recreated on its branch (W-7).
        No = "no",
        /// A removal has been permitted and is not settled (C-18).
        Removing = "removing",
    }
    /// D-5. *Open*: intended or materialised. *Unresolved*: open or compensating.
    AttemptState {
        /// Recorded, nothing verified on disk.
        Intended = "intended",
        /// The checkout was verified.
        Materialised = "materialised",
        /// The canonical row names it.
        Owned = "owned",
        /// To be undone (W-4).
        Compensating = "compensating",
        /// Undone.
        Compensated = "compensated",
    }
    /// What an attempt makes.
    AttemptKind {
        /// A slot's first worktree.
        Create = "create",
        /// A recorded worktree that is not on disk (W-7).
        Recreate = "recreate",
    }
    /// D-6.
    SessionLifecycle {
        /// May be worked with.
        Open = "open",
        /// Being archived or deleted.
        Closing = "closing",
        /// Reopened only by a person.
        Archived = "archived",
    }
    /// D-6: what a close will end in.
    ClosingKind {
        /// The session stays, archived.
        Archive = "archive",
        /// The session goes, leaving a tombstone.
        Delete = "delete",
    }
    /// D-6: what an open session is doing.
    Activity {
        /// No turn yet.
        Created = "created",
        /// A turn was admitted.
        Starting = "starting",
        /// Between turns.
        Idle = "idle",
        /// A turn runs.
        Running = "running",
        /// The agent asked.
        WaitingForInput = "waiting_for_input",
        /// Stopped, or interrupted by a crash.
        Stopped = "stopped",
        /// The last turn ended in an error.
        Error = "error",
        /// Finished.
        Completed = "completed",
        /// Finished without success.
        Failed = "failed",
        /// Given up.
        Cancelled = "cancelled",
    }
    /// Why a session was made.
    SessionSource {
        /// A person.
        Person = "person",
        /// A schedule; each run is a generation.
        Schedule = "schedule",
        /// A hook.
        Hook = "hook",
        /// Another session.
        Agent = "agent",
        /// A channel.
        Channel = "channel",
    }
    /// S-10.
    TurnPhase {
        /// Waiting for a runtime slot.
        WaitingForSlot = "waiting_for_slot",
        /// Running.
        Running = "running",
        /// Between two legs of a workflow.
        BetweenLegs = "between_legs",
        /// Taking what the runtime still says.
        Draining = "draining",
        /// Going on in the background, parked in the runtime (S-15).
        Background = "background",
        /// Ended; history.
        Ended = "ended",
    }
    /// The terminal event of a turn (S-13).
    TurnOutcome {
        /// Ended well.
        Completed = "completed",
        /// Ended in an error.
        Failed = "failed",
        /// Stopped by a person.
        Cancelled = "cancelled",
        /// Stopped by a crash or a task operation.
        Interrupted = "interrupted",
        /// Ended by a forced close (S-15).
        Dropped = "dropped",
    }
    /// Where an input comes from (S-30).
    Origin {
        /// A person's message to a named session.
        Person = "person",
        /// A due wakeup.
        Wakeup = "wakeup",
        /// An answer to a question.
        Answer = "answer",
        /// A channel's message.
        Channel = "channel",
        /// A plan revision.
        Plan = "plan",
        /// A scheduled run.
        Schedule = "schedule",
        /// A hook.
        Hook = "hook",
        /// The runtime's own background work.
        Background = "background",
        /// A leg of a workflow.
        Workflow = "workflow",
    }
    /// D-9. Queued is a stage, the others are outcomes.
    InputState {
        /// Waiting for the running turn to end.
        Queued = "queued",
        /// A turn carried it.
        Delivered = "delivered",
        /// Sent on, at most once.
        Redirected = "redirected",
        /// Refused, content returned.
        Refused = "refused",
        /// Cancelled, content returned.
        Cancelled = "cancelled",
        /// Its time passed.
        Expired = "expired",
    }
    /// Why an input ended otherwise than delivered (S-31).
    InputReason {
        /// None.
        None = "",
        /// Its session was archived.
        Archived = "archived",
        /// Its session was deleted.
        Deleted = "deleted",
        /// Its task was archived or deleted.
        TaskClosed = "task_closed",
        /// Its sender took it back.
        TakenBack = "taken_back",
        /// Its turn was interrupted.
        Interrupted = "interrupted",
    }
    /// D-11.
    RuntimeStatus {
        /// The handle is durable, nothing was spawned yet (S-14).
        Starting = "starting",
        /// Spawned.
        Running = "running",
        /// A stop was asked for.
        Stopping = "stopping",
        /// The stop succeeded, or the process is proven dead.
        Stopped = "stopped",
    }
    /// D-11: what liveness can mean for it (C-7).
    RuntimeKind {
        /// A process of a known host.
        Local = "local",
        /// A container.
        Container = "container",
        /// Anything else.
        Remote = "remote",
    }
    /// D-13.
    Trigger {
        /// A task was archived.
        Archive = "archive",
        /// A task was deleted.
        Delete = "delete",
        /// Archived with an ancestor.
        CascadeArchive = "cascade_archive",
        /// Deleted with an ancestor.
        CascadeDelete = "cascade_delete",
        /// Its workspace was deleted.
        WorkspaceDelete = "workspace_delete",
        /// A quick chat expired.
        QuickChatExpire = "quick_chat_expire",
        /// An environment was reset.
        EnvironmentReset = "environment_reset",
        /// What an archive left for a borrower (W-21).
        Reconcile = "reconcile",
        /// A person had an orphan removed (W-41).
        OrphanRemoval = "orphan_removal",
        /// What stands on disk is no trigger that this build knows (C-10). Never written.
        Unreadable = "unreadable",
    }
    /// 05.
    JobState {
        /// Holds the barrier.
        Prepared = "prepared",
        /// Activated, never claimed.
        Pending = "pending",
        /// Claimed.
        Running = "running",
        /// A try failed; the next is due later.
        RetryWait = "retry_wait",
        /// Everything settled.
        Succeeded = "succeeded",
        /// Nothing will be tried by itself any more.
        Failed = "failed",
        /// Aborted, taken over or unarchived.
        Cancelled = "cancelled",
    }
    /// W-34.
    UnsavedPolicy {
        /// Keep it in the private store, then go on.
        Salvage = "salvage",
        /// Refuse the operation.
        Refuse = "refuse",
        /// Let it go; needs recorded consent.
        Discard = "discard",
    }
    /// W-39.
    BranchPolicy {
        /// Branches stay.
        Keep = "keep",
        /// A branch that Freehold made goes when everything on it is reached elsewhere.
        DeleteWhenReached = "delete_when_reached",
    }
    /// What kind of thing a snapshot names (B-4), in the order of C-6.
    ResourceKind {
        /// A runtime handle.
        Runtime = "runtime",
        /// An open attempt.
        Attempt = "attempt",
        /// A container of an environment.
        Container = "container",
        /// A sandbox of an environment.
        Sandbox = "sandbox",
        /// A physical worktree.
        Worktree = "worktree",
    }
    /// C-13.
    ResourceResult {
        /// Nothing decided yet.
        Waiting = "waiting",
        /// A removal is permitted and not settled.
        Removing = "removing",
        /// Gone, verified.
        Removed = "removed",
        /// Was not there any more.
        Absent = "absent",
        /// Kept for its borrowers.
        Preserved = "preserved",
        /// Given to a borrower's task.
        Transferred = "transferred",
        /// Kept, for the reason given.
        Kept = "kept",
        /// Dropped from the job by a person (C-15).
        Forgotten = "forgotten",
        /// Failed finally, for the reason given.
        Failed = "failed",
    }
    /// Why a resource or a removal stands as it does. Its class (C-9) decides the retry.
    Reason {
        /// None.
        None = "",
        /// Somebody stands in it.
        InUse = "in_use",
        /// It changed while it was removed.
        Changing = "changing",
        /// A step took too long.
        TimedOut = "timed_out",
        /// The disk is full.
        DiskFull = "disk_full",
        /// The root is not there, or not ours to judge.
        RootUnavailable = "root_unavailable",
        /// Another executor holds the path or the registry.
        Contested = "contested",
        /// A runtime that uses it is not proven stopped.
        RuntimeAlive = "runtime_alive",
        /// An attempt's maker still lives.
        MakerAlive = "maker_alive",
        /// A failure that may pass.
        Io = "io",
        /// Locked by a person.
        LockedByPerson = "locked_by_person",
        /// Unsaved work, and the policy refuses.
        Unsaved = "unsaved",
        /// Unsaved work without the consent that it needs.
        ConsentMissing = "consent_missing",
        /// Too large to salvage.
        TooLarge = "too_large",
        /// Not a strict descendant of its root.
        OutsideRoot = "outside_root",
        /// What is there is not what was recorded.
        IdentityMismatch = "identity_mismatch",
        /// It was never verified (W-43).
        IdentityUnknown = "identity_unknown",
        /// Freehold did not make it (W-40).
        NotManaged = "not_managed",
        /// Another repository or worktree is inside.
        Nested = "nested_repository",
        /// A mount point is inside, or its trash is elsewhere.
        MountPoint = "mount_point",
        /// Permissions deny it.
        Permission = "permission",
        /// The snapshot cannot be read.
        SnapshotUnreadable = "snapshot_unreadable",
        /// Borrowers use it.
        Borrowed = "borrowed",
        /// The operation that asked no longer stands.
        AuthorityGone = "authority_gone",
        /// Something else owns its path or identity now.
        OwnedElsewhere = "owned_elsewhere",
        /// All tries are spent.
        TriesSpent = "tries_spent",
        /// A person chose so.
        ByPerson = "by_person",
    }
    /// On whose behalf something is removed (D-22).
    AuthorityKind {
        /// A cleanup job.
        Job = "job",
        /// An attempt's compensation (W-4).
        Attempt = "attempt",
        /// A trash row's purge.
        Trash = "trash",
    }
    /// The steps of a removal (W-35), each named by what is true after it.
    RemovalStep {
        /// The removal row and its audit line are durable.
        Permitted = "permitted",
        /// Unsaved work is kept and read back, or there is none.
        Salvaged = "salvaged",
        /// The directory is in the trash.
        Renamed = "renamed",
        /// What was renamed is what was salvaged.
        Compared = "compared",
        /// The registration is in Freehold's folder of the common git directory.
        Unregistered = "unregistered",
        /// The branch was decided on.
        BranchSettled = "branch_settled",
        /// The trash is gone.
        Purged = "purged",
        /// The directory was put back, because the authority is gone.
        Returned = "returned",
    }
    /// How a removal ended.
    RemovalOutcome {
        /// Gone, verified.
        Removed = "removed",
        /// In the trash until its retention lapses.
        Trashed = "trashed",
        /// There was nothing left to remove.
        Absent = "absent",
        /// Put back whole, or never touched.
        Returned = "returned",
        /// Forgotten by a person.
        Forgotten = "forgotten",
    }
    /// D-20.
    TrashState {
        /// May be restored.
        Kept = "kept",
        /// A restore is under way.
        Restoring = "restoring",
        /// Final: it is being unlinked.
        Purging = "purging",
        /// Unlinked.
        Gone = "gone",
    }
    /// D-20.
    SalvageState {
        /// Read back and compared.
        Verified = "verified",
        /// Restored into a worktree.
        Restored = "restored",
        /// Expired by policy.
        Expired = "expired",
    }
    /// D-14.
    IdentityState {
        /// In use.
        Live = "live",
        /// A tombstone.
        Gone = "gone",
    }
    /// D-14: what kinds of id are remembered for ever.
    IdentityKind {
        /// Tasks.
        Task = "task",
        /// Sessions.
        Session = "session",
        /// Workspaces.
        Workspace = "workspace",
    }
}

/// The classes of a failure (C-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasonClass {
    /// Not a failure.
    Nothing,
    /// May pass by itself: retry on schedule.
    Transient,
    /// Stands until someone acts: no identical tries.
    Final,
    /// Kept on purpose: success for the job.
    Kept,
}

impl Reason {
    /// The class that decides the retry (C-9).
    pub const fn class(self) -> ReasonClass {
        match self {
            Reason::None => ReasonClass::Nothing,
            Reason::InUse
            | Reason::Changing
            | Reason::TimedOut
            | Reason::DiskFull
            | Reason::RootUnavailable
            | Reason::Contested
            | Reason::RuntimeAlive
            | Reason::MakerAlive
            | Reason::Io => ReasonClass::Transient,
            Reason::LockedByPerson
            | Reason::Unsaved
            | Reason::ConsentMissing
            | Reason::TooLarge
            | Reason::OutsideRoot
            | Reason::IdentityMismatch
            | Reason::IdentityUnknown
            | Reason::Nested
            | Reason::MountPoint
            | Reason::Permission
            | Reason::SnapshotUnreadable
            | Reason::TriesSpent => ReasonClass::Final,
            Reason::NotManaged
            | Reason::Borrowed
            | Reason::AuthorityGone
            | Reason::OwnedElsewhere
            | Reason::ByPerson => ReasonClass::Kept,
        }
    }
}

/// Kinds of unsaved work (W-33) as a set, for evidence and for consent: each kind of consent is
/// its own word, none stands for another (W-34).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Unsaved(pub u32);

impl Unsaved {
    /// Nothing.
    pub const NONE: Unsaved = Unsaved(0);
    /// Changes to tracked files, staged or not.
    pub const TRACKED: Unsaved = Unsaved(1);
    /// Untracked files.
    pub const UNTRACKED: Unsaved = Unsaved(1 << 1);
    /// Ignored files that are not declared rebuildable.
    pub const IGNORED: Unsaved = Unsaved(1 << 2);
    /// A rebase, merge, cherry-pick, revert, bisect or am in progress.
    pub const OPERATION: Unsaved = Unsaved(1 << 3);
    /// Commits that nothing else reaches.
    pub const COMMITS: Unsaved = Unsaved(1 << 4);
    /// Files that index bits hide from status.
    pub const HIDDEN: Unsaved = Unsaved(1 << 5);
    /// Refs and state that live only in the administration directory.
    pub const PRIVATE: Unsaved = Unsaved(1 << 6);
    /// Any of these inside a submodule.
    pub const SUBMODULE: Unsaved = Unsaved(1 << 7);
    /// Could not tell; counts as unsaved.
    pub const UNKNOWN: Unsaved = Unsaved(1 << 8);

    /// The words of the set, with their codes.
    pub const WORDS: &'static [(Unsaved, &'static str)] = &[
        (Unsaved::TRACKED, "tracked"),
        (Unsaved::UNTRACKED, "untracked"),
        (Unsaved::IGNORED, "ignored"),
        (Unsaved::OPERATION, "operation"),
        (Unsaved::COMMITS, "commits"),
        (Unsaved::HIDDEN, "hidden"),
        (Unsaved::PRIVATE, "private"),
        (Unsaved::SUBMODULE, "submodule"),
        (Unsaved::UNKNOWN, "unknown"),
    ];

    /// Whether the set is empty.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Unsaved) -> Unsaved {
        Unsaved(self.0 | other.0)
    }

    /// Whether every kind in `other` is in this set.
    pub const fn covers(self, other: Unsaved) -> bool {
        self.0 & other.0 == other.0
    }
}
