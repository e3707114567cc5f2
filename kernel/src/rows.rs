//! The rows (D). One declaration per table gives the struct that the kernel decides on, and the
//! columns that stores read and write. Facts are `Copy`; content (texts that the kernel never
//! reads) is named here and travels beside the facts.

pub use crate::codes::*;
use crate::id::*;
use crate::time::{Span, Time};
pub use crate::view::{Table, Visit, VisitMut};

/// A column's value on its way to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// NULL.
    Null,
    /// An id; the store writes its text (D-24).
    Id(Kind, u128),
    /// A number, a flag or a time.
    Int(i64),
    /// A code of a closed enum.
    Code(&'static str),
}

/// A column's value on its way from a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// NULL.
    Null,
    /// An id, made from its text by the store.
    Id(u128),
    /// A number, a flag or a time.
    Int(i64),
    /// The text of a code.
    Code(&'a str),
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The text of an id.
    Id(Kind),
    /// A number, a flag (0 or 1), a time or a span (microseconds).
    Int,
    /// One of these codes.
    Code(&'static [&'static str]),
}

/// One column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name on disk.
    pub name: &'static str,
    /// What it holds.
    pub shape: Shape,
    /// Whether NULL is allowed.
    pub nullable: bool,
}

/// A value in a stored row that this build cannot read. Never treated as absent (S-29, C-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The table.
    pub table: TableId,
    /// The column.
    pub column: &'static str,
}

/// A type that a fact column can have.
pub trait Field: Copy + PartialEq {
    /// What the column holds.
    const SHAPE: Shape;
    /// Whether NULL is allowed.
    const NULLABLE: bool = false;
    /// The value to write.
    fn value(self) -> Value;
    /// The value that was read, or nothing if it cannot be understood.
    fn read(cell: Cell<'_>) -> Option<Self>;
}

macro_rules! id_fields {
    ($($name:ident)*) => {$(
        impl Field for $name {
            const SHAPE: Shape = Shape::Id(Kind::$name);
            fn value(self) -> Value { Value::Id(Kind::$name, self.0) }
            fn read(cell: Cell<'_>) -> Option<Self> {
                match cell {
                    Cell::Id(id) => Some($name(id)),
                    Cell::Null | Cell::Int(_) | Cell::Code(_) => None,
                }
            }
        }
    )*};
}
id_fields! {
    WorkspaceId TaskId EnvironmentId RepoId AttemptId SessionId TurnId InputId RuntimeId JobId
    JobRootId ResourceId RemovalId TrashId SalvageId InstanceId HostId RootId StoreId RequestId
    ContentHash OperationId ActorId Token RepositoryId Slug PathId BranchId WorktreeId CommitId
    HandleId AnyId
}

macro_rules! code_fields {
    ($($name:ident)*) => {$(
        impl Field for $name {
            const SHAPE: Shape = Shape::Code($name::CODES);
            fn value(self) -> Value { Value::Code(self.code()) }
            fn read(cell: Cell<'_>) -> Option<Self> {
                match cell {
                    Cell::Code(code) => $name::from_code(code),
                    Cell::Null | Cell::Int(_) | Cell::Id(_) => None,
                }
            }
        }
    )*};
}
code_fields! {
    WorkspaceState TaskKind TaskLifecycle EnvironmentStatus RepoStatus Materialised AttemptState
    AttemptKind SessionLifecycle ClosingKind Activity SessionSource TurnPhase TurnOutcome Origin
    InputState InputReason RuntimeStatus RuntimeKind JobState UnsavedPolicy BranchPolicy
    ResourceKind ResourceResult Reason AuthorityKind RemovalStep RemovalOutcome TrashState
    SalvageState IdentityState IdentityKind
}

impl Field for Trigger {
    const SHAPE: Shape = Shape::Code(Trigger::CODES);
    fn value(self) -> Value {
        Value::Code(self.code())
    }
    /// A text that this build does not know is read as `Unreadable`, so that the job can be
    /// parked with its bytes untouched while the others go on (C-10).
    fn read(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Code(code) => Some(Trigger::from_code(code).unwrap_or(Trigger::Unreadable)),
            Cell::Null => Some(Trigger::Unreadable),
            Cell::Int(_) | Cell::Id(_) => None,
        }
    }
}

macro_rules! int_fields {
    ($($name:ty => $to:expr, $from:expr;)*) => {$(
        impl Field for $name {
            const SHAPE: Shape = Shape::Int;
            fn value(self) -> Value { Value::Int($to(self)) }
            fn read(cell: Cell<'_>) -> Option<Self> {
                match cell {
                    Cell::Int(n) => $from(n),
                    Cell::Null | Cell::Code(_) | Cell::Id(_) => None,
                }
            }
        }
    )*};
}
int_fields! {
    i64 => |n| n, Some;
    u32 => i64::from, |n| u32::try_from(n).ok();
    Time => |t: Time| t.0, |n| Some(Time(n));
    Span => |s: Span| s.0, |n| Some(Span(n));
    Unsaved => |u: Unsaved| i64::from(u.0), |n| u32::try_from(n).ok().map(Unsaved);
    bool => i64::from, |n| match n { 0 => Some(false), 1 => Some(true), _other => None };
}

impl<F: Field> Field for Option<F> {
    const SHAPE: Shape = F::SHAPE;
    const NULLABLE: bool = true;
    fn value(self) -> Value {
        self.map_or(Value::Null, Field::value)
    }
    fn read(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Null => Some(None),
            Cell::Id(_) | Cell::Int(_) | Cell::Code(_) => F::read(cell).map(Some),
        }
    }
}

/// The key of a row inside its table. `part` tells apart kinds that share one table of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// 0, or the kind of an identity.
    pub part: u8,
    /// The id.
    pub id: u128,
}

impl Key {
    /// A key without parts.
    pub const fn of(id: u128) -> Key {
        Key { part: 0, id }
    }
}

/// A row of any table, by key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowKey {
    /// The table.
    pub table: TableId,
    /// The key in it.
    pub key: Key,
}

/// A table's row type.
pub trait Row: Copy + PartialEq + core::fmt::Debug + Send + Sync + 'static {
    /// The table that holds it.
    const TABLE: TableId;
    /// The name of the table on disk.
    const NAME: &'static str;
    /// The fact columns, in order. The key column is the first.
    const COLUMNS: &'static [Column];
    /// The names of the content columns (text, may be NULL).
    const CONTENT: &'static [&'static str];
    /// The row's key.
    fn key(&self) -> Key;
    /// The value of column `index`, as in `COLUMNS`.
    fn value(&self, index: usize) -> Value;
    /// The row from its cells, in the order of `COLUMNS`.
    ///
    /// # Errors
    /// [`Unreadable`] names the first column that holds something this build does not know.
    fn read<'a>(cells: &mut dyn FnMut(usize) -> Cell<'a>) -> Result<Self, Unreadable>;
    /// The name of this row.
    fn row_key(&self) -> RowKey {
        RowKey { table: Self::TABLE, key: self.key() }
    }
}

macro_rules! rows {
    ($(
        $(#[$doc:meta])*
        $name:ident in $table:ident, $field_name:ident = $sql:literal,
        key($row:ident) $key:expr,
        { $($(#[$fdoc:meta])* $field:ident: $ty:ty,)* }
        content [$($content:literal),*]
    )*) => {
        /// Every table, in lock order (D-26).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum TableId { $($(#[$doc])* $table,)* }

        impl TableId {
            /// Every table, in lock order (D-26).
            pub const ALL: &'static [TableId] = &[$(TableId::$table,)*];

            /// The table's name on disk.
            pub const fn name(self) -> &'static str {
                match self { $(TableId::$table => $sql,)* }
            }

            /// The fact columns; the key column is the first.
            pub const fn columns(self) -> &'static [Column] {
                match self { $(TableId::$table => $name::COLUMNS,)* }
            }

            /// The content columns.
            pub const fn content(self) -> &'static [&'static str] {
                match self { $(TableId::$table => $name::CONTENT,)* }
            }
        }

        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq)]
            pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* }

            impl Row for $name {
                const TABLE: TableId = TableId::$table;
                const NAME: &'static str = $sql;
                const COLUMNS: &'static [Column] = &[$(Column {
                    name: stringify!($field),
                    shape: <$ty as Field>::SHAPE,
                    nullable: <$ty as Field>::NULLABLE,
                },)*];
                const CONTENT: &'static [&'static str] = &[$($content),*];

                fn key(&self) -> Key {
                    let $row = self;
                    $key
                }

                fn value(&self, index: usize) -> Value {
                    let mut at = 0;
                    $(
                        if index == at { return Field::value(self.$field); }
                        at += 1;
                    )*
                    debug_assert!(index < at, "no such column");
                    Value::Null
                }

                fn read<'a>(cells: &mut dyn FnMut(usize) -> Cell<'a>) -> Result<Self, Unreadable> {
                    let mut at = 0..;
                    $(
                        let $field = at.next().and_then(|i| <$ty as Field>::read(cells(i))).ok_or(
                            Unreadable { table: TableId::$table, column: stringify!($field) },
                        )?;
                    )*
                    Ok($name { $($field,)* })
                }
            }
        )*

        /// The rows that a decision is made on: some (a footprint) or all (a world).
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct View {
            /// The store's clock, read when the footprint was loaded.
            pub now: Time,
            $($(#[$doc])* pub $field_name: Table<$name>,)*
        }

        impl View {
            /// Calls `visit` with every table, in lock order.
            pub fn each<V: Visit>(&self, visit: &mut V) {
                $(visit.table(&self.$field_name);)*
            }

            /// Calls `visit` with every table, in lock order.
            pub fn each_mut<V: VisitMut>(&mut self, visit: &mut V) {
                $(visit.table(&mut self.$field_name);)*
            }

            /// Calls `visit` with one table.
            pub fn one<V: Visit>(&self, table: TableId, visit: &mut V) {
                match table { $(TableId::$table => visit.table(&self.$field_name),)* }
            }

            /// Calls `visit` with one table.
            pub fn one_mut<V: VisitMut>(&mut self, table: TableId, visit: &mut V) {
                match table { $(TableId::$table => visit.table(&mut self.$field_name),)* }
            }
        }
    };
}

rows! {
    /// D-1.
    Workspace in Workspaces, workspaces = "workspaces", key(r) Key::of(r.id.0), {
        /// The host's id.
        id: WorkspaceId,
        /// Whether it is being deleted.
        state: WorkspaceState,
        /// The deletion under way (T-9).
        deleting_operation: Option<OperationId>,
        /// The instance that carries it.
        deleting_instance: Option<InstanceId>,
        /// Until when that instance is believed to live.
        deleting_lease: Option<Time>,
        /// Microseconds.
        created_at: Time,
        /// Microseconds.
        updated_at: Time,
    } content ["name"]

    /// D-2. The anchor of its environments, attempts, jobs and borrowers (D-23).
    Task in Tasks, tasks = "tasks", key(r) Key::of(r.id.0), {
        /// The host's id.
        id: TaskId,
        /// Its workspace.
        workspace_id: WorkspaceId,
        /// Its parent.
        parent_id: Option<TaskId>,
        /// Standard or quick chat.
        kind: TaskKind,
        /// Active or archived.
        lifecycle: TaskLifecycle,
        /// Set exactly when archived.
        archived_at: Option<Time>,
        /// The operation that archived it.
        archived_by: Option<OperationId>,
        /// For quick chats.
        expires_at: Option<Time>,
        /// The environment that new sessions get.
        current_environment_id: Option<EnvironmentId>,
        /// S-6.
        primary_session_id: Option<SessionId>,
        /// Microseconds.
        created_at: Time,
        /// Microseconds.
        updated_at: Time,
    } content ["title"]

    /// D-6. The anchor of its turns, inputs and wakeups (D-23).
    Session in Sessions, sessions = "task_sessions", key(r) Key::of(r.id.0), {
        /// The host's id.
        id: SessionId,
        /// Its task.
        task_id: TaskId,
        /// Its own task's environment, or a borrowed one; no foreign key.
        task_environment_id: Option<EnvironmentId>,
        /// Open, closing, archived.
        lifecycle: SessionLifecycle,
        /// What the close will end in.
        closing_kind: Option<ClosingKind>,
        /// Commit and abort need it (S-22).
        closing_token: Option<Token>,
        /// Who closes.
        closing_by: Option<ActorId>,
        /// Until when the closer is believed to live.
        closing_lease: Option<Time>,
        /// What it is doing, while open.
        activity: Activity,
        /// Grows at every close and reopen (S-4).
        epoch: u32,
        /// Why it was made.
        source: SessionSource,
        /// Automatic closers skip it (S-20).
        starred: bool,
        /// The session it was forked or started from.
        parent_session_id: Option<SessionId>,
        /// Set exactly when archived, and while it is deleted out of the archive (S-5, D-6).
        archived_at: Option<Time>,
        /// The task operation that archived it; none if a person or policy did.
        archived_by: Option<OperationId>,
        /// Microseconds.
        created_at: Time,
        /// Microseconds.
        updated_at: Time,
        /// Microseconds.
        last_activity_at: Time,
    } content ["name", "resume_handle"]

    /// D-3.
    Environment in Environments, environments = "task_environments", key(r) Key::of(r.id.0), {
        /// The host's id.
        id: EnvironmentId,
        /// The owner.
        task_id: TaskId,
        /// Whether it may be used.
        status: EnvironmentStatus,
        /// Its container's handle.
        container_id: Option<HandleId>,
        /// Its sandbox's handle.
        sandbox_id: Option<HandleId>,
        /// Microseconds.
        created_at: Time,
        /// Microseconds.
        updated_at: Time,
    } content ["executor_type", "executor_id", "executor_profile_id", "control_port",
               "workspace_path", "task_dir_name"]

    /// D-4, the one place of physical worktree truth.
    Repo in Repos, repos = "task_environment_repos", key(r) Key::of(r.id.0), {
        /// Made by Freehold, or the host's after a migration.
        id: RepoId,
        /// Its environment.
        task_environment_id: EnvironmentId,
        /// The repository, as the host names it.
        repository_id: RepositoryId,
        /// With environment and repository, the slot.
        branch_slug: Slug,
        /// The worktree's lasting identity; none is a failed preparation (W-6).
        worktree_id: Option<WorktreeId>,
        /// Its real path.
        worktree_path: Option<PathId>,
        /// Its branch.
        worktree_branch: Option<BranchId>,
        /// Active, merged, deleted.
        status: RepoStatus,
        /// Whether it is on the disk.
        materialised: Materialised,
        /// Made or taken over by Freehold (W-40).
        managed: bool,
        /// The managed root it lies in.
        root_id: Option<RootId>,
        /// Whether Freehold made the branch (W-39).
        branch_created: bool,
        /// Where the branch started.
        start_commit: Option<CommitId>,
        /// Order within the environment.
        position: u32,
        /// Microseconds.
        created_at: Time,
        /// Microseconds.
        updated_at: Time,
        /// When the host said so.
        merged_at: Option<Time>,
        /// Set exactly when deleted.
        deleted_at: Option<Time>,
    } content ["error_message"]

    /// D-5.
    Attempt in Attempts, attempts = "worktree_attempts", key(r) Key::of(r.id.0), {
        /// Made by Freehold.
        id: AttemptId,
        /// Fresh; proves the maker (W-5).
        token: Token,
        /// The task at whose request it began. The owner is the environment's (D-5).
        task_id: TaskId,
        /// Its environment.
        task_environment_id: EnvironmentId,
        /// The row to be made or made whole again.
        repo_id: RepoId,
        /// Create or recreate.
        kind: AttemptKind,
        /// The repository.
        repository_id: RepositoryId,
        /// The slot's slug.
        branch_slug: Slug,
        /// The root.
        root_id: RootId,
        /// Contains a part of the token; did not exist (W-1).
        path: PathId,
        /// The branch.
        branch: BranchId,
        /// The stamp that the worktree is born with (W-2).
        worktree_id: WorktreeId,
        /// Whether the branch was there before.
        branch_existed: bool,
        /// Where it starts.
        start_commit: CommitId,
        /// Its machine's state.
        state: AttemptState,
        /// The maker's instance.
        instance_id: InstanceId,
        /// Until when the maker is believed to live.
        lease_until: Time,
        /// Microseconds.
        created_at: Time,
        /// Microseconds.
        updated_at: Time,
    } content ["last_error"]

    /// D-22.
    Removal in Removals, removals = "removals", key(r) Key::of(r.id.0), {
        /// Made by Freehold.
        id: RemovalId,
        /// Job, attempt or trash.
        authority: AuthorityKind,
        /// Its row.
        authority_id: AnyId,
        /// The job's resource, for a job.
        resource: Option<ResourceId>,
        /// The repository row that is `removing`, while it exists.
        repo_id: Option<RepoId>,
        /// The root.
        root_id: RootId,
        /// The one path.
        path: PathId,
        /// The identity that must be found there.
        identity: Option<WorktreeId>,
        /// Fresh; proves the executor.
        token: Token,
        /// The executor's instance.
        instance_id: InstanceId,
        /// Until when it is believed to live.
        lease_until: Time,
        /// The last step that is done (W-35).
        last_step: RemovalStep,
        /// What the inspection found unsaved; part of the audit line (C-16).
        unsaved: Unsaved,
        /// The head that was seen.
        head: Option<CommitId>,
        /// Whether any step found something to do; else the outcome is `absent` (W-36).
        found_something: bool,
        /// Whether the branch may go.
        delete_branch: bool,
        /// Whether what is moved to the trash stays there for a while.
        keep_trash: bool,
        /// Why the last step failed, if it did.
        last_reason: Reason,
        /// How it ended; none while unsettled.
        outcome: Option<RemovalOutcome>,
        /// Microseconds.
        created_at: Time,
        /// Microseconds.
        updated_at: Time,
    } content ["detail"]

    /// D-20.
    Trash in Trash, trash = "trash", key(r) Key::of(r.id.0), {
        /// Made by Freehold.
        id: TrashId,
        /// The removal that filled it.
        removal_id: RemovalId,
        /// The task it was removed for.
        task_id: Option<TaskId>,
        /// The repository row it belonged to.
        repo_id: Option<RepoId>,
        /// The root whose trash folder holds it.
        root_id: RootId,
        /// Where it lies.
        path: PathId,
        /// The identity that lies there.
        worktree_id: Option<WorktreeId>,
        /// Until when it is kept.
        restorable_until: Option<Time>,
        /// Only `kept` is offered.
        state: TrashState,
        /// Microseconds.
        created_at: Time,
        /// Microseconds.
        updated_at: Time,
    } content ["admin_path"]

    /// D-20.
    Salvage in Salvage, salvage = "salvage", key(r) Key::of(r.id.0), {
        /// Made by Freehold.
        id: SalvageId,
        /// The task.
        task_id: Option<TaskId>,
        /// The repository.
        repository_id: RepositoryId,
        /// The repository row it was taken for, which may be gone.
        repo_id: Option<RepoId>,
        /// The worktree.
        worktree_id: WorktreeId,
        /// The removal it was made for.
        removal_id: RemovalId,
        /// Its root, beside which the private store lies.
        root_id: RootId,
        /// The head it was taken on.
        base: Option<CommitId>,
        /// What is in it.
        contents: Unsaved,
        /// Bytes.
        size: i64,
        /// Verified, restored, expired.
        state: SalvageState,
        /// Microseconds.
        made_at: Time,
    } content ["ref_name"]

    /// C-1.
    Job in Jobs, jobs = "task_resource_cleanup_jobs", key(r) Key::of(r.id.0), {
        /// Made by Freehold.
        id: JobId,
        /// The host's operation.
        operation_id: OperationId,
        /// The task; no foreign key.
        task_id: TaskId,
        /// What was asked, digested (C-12).
        content_hash: ContentHash,
        /// Which lifecycle operation.
        trigger: Trigger,
        /// The operation whose authority this job serves (T-1).
        authority: OperationId,
        /// The environment of a reset or a reconcile.
        environment_id: Option<EnvironmentId>,
        /// The root task of a cascade; none for a job of its own.
        cascade_root: Option<TaskId>,
        /// What becomes of unsaved work.
        policy: UnsavedPolicy,
        /// What becomes of branches.
        branch_policy: BranchPolicy,
        /// What a person consented to lose.
        consent: Unsaved,
        /// Derived from its roots after the mutation.
        state: JobState,
        /// The owner until the mutation (B-7).
        instance_id: Option<InstanceId>,
        /// Until when the owner is believed to live.
        lease_until: Option<Time>,
        /// The snapshot's form; 0 while there is none (P-7).
        snapshot_version: u32,
        /// When the mutation committed; none for a cancel before it.
        mutated_at: Option<Time>,
        /// When it was barred.
        created_at: Time,
        /// Microseconds.
        updated_at: Time,
        /// Set when succeeded, failed or cancelled.
        completed_at: Option<Time>,
    } content ["snapshot", "last_error"]

    /// C-1: per root, state, tries, next time, token, claim.
    JobRoot in JobRoots, job_roots = "task_resource_cleanup_roots", key(r) Key::of(r.id.0), {
        /// Derived from job and root.
        id: JobRootId,
        /// The job.
        job_id: JobId,
        /// The root; none for what lies in no root (runtimes, containers).
        root_id: Option<RootId>,
        /// Its own state.
        state: JobState,
        /// Claims so far (C-3).
        tries: u32,
        /// When the next is due.
        next_attempt_at: Option<Time>,
        /// Fresh for every claim.
        token: Option<Token>,
        /// Who claimed.
        claimed_by: Option<InstanceId>,
        /// Until when the claimer is believed to live.
        lease_until: Option<Time>,
        /// Microseconds.
        created_at: Time,
        /// Microseconds.
        updated_at: Time,
    } content ["errors"]

    /// One resource of a snapshot, with its result (B-4, C-13).
    Resource in Resources, resources = "task_resource_cleanup_resources", key(r) Key::of(r.id.0), {
        /// Derived from the job and what it names.
        id: ResourceId,
        /// The job.
        job_id: JobId,
        /// The part of the job that claims it.
        job_root_id: JobRootId,
        /// What it is.
        kind: ResourceKind,
        /// The environment it belonged to.
        environment_id: Option<EnvironmentId>,
        /// For a worktree, its row, which may be gone.
        repo_id: Option<RepoId>,
        /// For a runtime.
        runtime_id: Option<RuntimeId>,
        /// For an attempt.
        attempt_id: Option<AttemptId>,
        /// For a container or sandbox.
        handle: Option<HandleId>,
        /// For a worktree or attempt.
        repository_id: Option<RepositoryId>,
        /// The root it lies in.
        root_id: Option<RootId>,
        /// Its path.
        path: Option<PathId>,
        /// Its branch.
        branch: Option<BranchId>,
        /// Its identity.
        worktree_id: Option<WorktreeId>,
        /// Whether Freehold made it (W-40).
        managed: bool,
        /// Whether Freehold made its branch.
        branch_created: bool,
        /// Where its branch started.
        start_commit: Option<CommitId>,
        /// How it stands.
        result: ResourceResult,
        /// Why.
        reason: Reason,
        /// Where its unsaved work is kept.
        salvage_id: Option<SalvageId>,
        /// Whom it was given to.
        transferred_to: Option<TaskId>,
        /// Microseconds.
        created_at: Time,
        /// Microseconds.
        updated_at: Time,
    } content ["detail"]

    /// D-14.
    Identity in Identities, identities = "identities",
    key(r) Key { part: r.kind as u8 + 1, id: r.id.0 }, {
        /// The id.
        id: AnyId,
        /// Of what kind.
        kind: IdentityKind,
        /// In use, or a tombstone.
        state: IdentityState,
        /// When it went.
        gone_at: Option<Time>,
        /// Who made it go.
        gone_by: Option<ActorId>,
    } content []

    /// D-19.
    Request in Requests, requests = "requests", key(r) Key::of(r.id.0), {
        /// The host's id.
        id: RequestId,
        /// What was asked.
        content_hash: ContentHash,
        /// Microseconds.
        at: Time,
    } content ["outcome"]

    /// D-8.
    Turn in Turns, turns = "turns", key(r) Key::of(r.id.0), {
        /// The host's id.
        id: TurnId,
        /// Its session.
        session_id: SessionId,
        /// The session's epoch at admission.
        epoch: u32,
        /// What it is doing.
        phase: TurnPhase,
        /// What it was admitted for.
        origin: Origin,
        /// Its runtime's handle.
        runtime_id: RuntimeId,
        /// Whose process runs it.
        instance_id: InstanceId,
        /// Until when that process is believed to live.
        lease_until: Time,
        /// Admission.
        started_at: Time,
        /// Set exactly when ended.
        ended_at: Option<Time>,
        /// Set exactly when ended.
        outcome: Option<TurnOutcome>,
    } content []

    /// D-9.
    Input in Inputs, inputs = "session_inputs", key(r) Key::of(r.id.0), {
        /// The host's id.
        id: InputId,
        /// Its session, which may be gone.
        session_id: Option<SessionId>,
        /// Where it comes from.
        origin: Origin,
        /// Who sent it.
        actor: ActorId,
        /// Queued, or its one outcome.
        state: InputState,
        /// Why.
        reason: InputReason,
        /// Where it went on to.
        redirected_to: Option<SessionId>,
        /// The turn that carried it.
        turn_id: Option<TurnId>,
        /// Microseconds.
        created_at: Time,
        /// Set exactly when no longer queued.
        settled_at: Option<Time>,
    } content ["content"]

    /// D-11. Outlives session and task until its stop is proven (C-6).
    Runtime in Runtimes, runtimes = "executors_running", key(r) Key::of(r.id.0), {
        /// The host's id.
        id: RuntimeId,
        /// The session it served; no foreign key.
        session_id: SessionId,
        /// The task of that session; no foreign key.
        task_id: TaskId,
        /// The environment that it stands in.
        task_environment_id: Option<EnvironmentId>,
        /// The instance that started it.
        instance_id: InstanceId,
        /// Local, container, remote.
        kind: RuntimeKind,
        /// How it stands.
        status: RuntimeStatus,
        /// Microseconds.
        last_seen_at: Time,
        /// Microseconds.
        created_at: Time,
        /// Microseconds.
        updated_at: Time,
    } content ["runtime", "agent_execution_id", "container_id", "url", "pid", "process_started_at",
               "resume_token", "error_message"]

    /// D-15.
    Instance in Instances, instances = "instances", key(r) Key::of(r.id.0), {
        /// Fresh for every process.
        id: InstanceId,
        /// Its machine.
        host: HostId,
        /// Microseconds.
        started_at: Time,
        /// Until when it is believed to live.
        lease_until: Time,
        /// Refuses admissions (S-35).
        draining: bool,
    } content []

    /// D-18.
    ManagedRoot in ManagedRoots, managed_roots = "managed_roots", key(r) Key::of(r.id.0), {
        /// Made by Freehold.
        id: RootId,
        /// The only host that serves it.
        host: HostId,
        /// Where it is, as a real path.
        path: PathId,
        /// Microseconds.
        created_at: Time,
    } content ["marker"]

    /// D-25, one row, id 1.
    Settings in Settings, settings = "settings", key(r) Key::of(r.id as u128), {
        /// Always 1.
        id: u32,
        /// Leases of turns, closings, barriers and claims.
        lease: Span,
        /// How often they are renewed.
        renew: Span,
        /// Leases of removals and attempts.
        removal_lease: Span,
        /// Tries per root (C-2).
        max_tries: u32,
        /// The wait after the first failed try.
        retry_1: Span,
        /// After the second.
        retry_2: Span,
        /// After the third.
        retry_3: Span,
        /// After the fourth.
        retry_4: Span,
        /// After the fifth.
        retry_5: Span,
        /// After the sixth.
        retry_6: Span,
        /// After the seventh and all further ones.
        retry_7: Span,
        /// How long trash is kept; 0 purges at once (W-35).
        trash_retention: Span,
        /// Bytes; past it the answer is `too large` (W-34).
        salvage_limit: i64,
        /// How long a root may be unserved before its resources fail (C-3).
        root_patience: Span,
        /// How long a stop may take (T-5).
        stop_bound: Span,
        /// How long salvage is kept at least; 0 keeps it for ever (W-34).
        salvage_retention: Span,
        /// The digest of the words by which a person consented to that retention.
        salvage_consent: Option<ContentHash>,
        /// Who consented.
        salvage_consent_by: Option<ActorId>,
        /// When.
        salvage_consent_at: Option<Time>,
    } content ["salvage_consent_words"]
}

impl Settings {
    /// The defaults of D-25, C-2, C-3, W-34 and T-5.
    pub const DEFAULT: Settings = Settings {
        id: 1,
        lease: Span::seconds(30),
        renew: Span::seconds(10),
        removal_lease: Span::seconds(60),
        max_tries: 8,
        retry_1: Span::minutes(1),
        retry_2: Span::minutes(5),
        retry_3: Span::minutes(15),
        retry_4: Span::hours(1),
        retry_5: Span::hours(3),
        retry_6: Span::hours(6),
        retry_7: Span::hours(12),
        trash_retention: Span(0),
        salvage_limit: 2 * 1024 * 1024 * 1024,
        root_patience: Span::hours(7 * 24),
        stop_bound: Span::seconds(30),
        salvage_retention: Span(0),
        salvage_consent: None,
        salvage_consent_by: None,
        salvage_consent_at: None,
    };

    /// When a salvage entry made at `made_at` has expired (W-34): the retention counts from the
    /// consent or from the making, whichever is later. None while nobody consented.
    pub fn salvage_expires(&self, made_at: Time) -> Option<Time> {
        match (self.salvage_consent, self.salvage_consent_at) {
            (Some(_), Some(at)) if self.salvage_retention.0 > 0 => {
                Some(at.max(made_at) + self.salvage_retention)
            }
            (_, _) => None,
        }
    }

    /// The wait after `tries` failed tries (C-2).
    pub const fn wait_after(&self, tries: u32) -> Span {
        match tries {
            0 | 1 => self.retry_1,
            2 => self.retry_2,
            3 => self.retry_3,
            4 => self.retry_4,
            5 => self.retry_5,
            6 => self.retry_6,
            7.. => self.retry_7,
        }
    }
}

/// On whose behalf something is removed (D-22).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Authority {
    /// A cleanup job.
    Job(JobId),
    /// An attempt's compensation.
    Attempt(AttemptId),
    /// A trash row's purge.
    Trash(TrashId),
}

macro_rules! row_keys {
    ($($(#[$doc:meta])* $name:ident($id:ident) = $table:ident;)*) => {
        impl RowKey {
            $($(#[$doc])*
            pub const fn $name(id: $id) -> RowKey {
                RowKey { table: TableId::$table, key: Key::of(id.0) }
            })*
        }
    };
}

row_keys! {
    /// A workspace's row.
    workspace(WorkspaceId) = Workspaces;
    /// A task's row.
    task(TaskId) = Tasks;
    /// A session's row.
    session(SessionId) = Sessions;
    /// An environment's row.
    environment(EnvironmentId) = Environments;
    /// A repository row.
    repo(RepoId) = Repos;
    /// A turn's row.
    turn(TurnId) = Turns;
    /// An input's row.
    input(InputId) = Inputs;
}

impl Removal {
    /// The authority as one value.
    pub const fn authority(&self) -> Authority {
        match self.authority {
            AuthorityKind::Job => Authority::Job(JobId(self.authority_id.0)),
            AuthorityKind::Attempt => Authority::Attempt(AttemptId(self.authority_id.0)),
            AuthorityKind::Trash => Authority::Trash(TrashId(self.authority_id.0)),
        }
    }

    /// Whether it still awaits its outcome.
    pub const fn is_unsettled(&self) -> bool {
        self.outcome.is_none()
    }
}
