-- Schema 1. Table and column names are those of the rules (D); a test compares them with the
-- kernel's declaration. Times are UTC microseconds, flags 0 or 1, ids the host's own strings.
--
-- A partial index repeats the words of the look-up that it serves (kernel, footprint.rs): SQLite
-- uses it only for a query that says the same.
--
-- Never edited once released: the next change is 0002.sql.

-- D-1.
CREATE TABLE workspaces (
    id TEXT NOT NULL PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('active', 'deleting')),
    deleting_operation TEXT,
    deleting_instance TEXT,
    deleting_lease INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    name TEXT,
    version INTEGER NOT NULL
) STRICT;
CREATE INDEX workspaces_by_deletion ON workspaces (deleting_operation)
    WHERE deleting_operation IS NOT NULL;

-- D-2.
CREATE TABLE tasks (
    id TEXT NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL
        REFERENCES workspaces (id) DEFERRABLE INITIALLY DEFERRED,
    parent_id TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('standard', 'quick_chat')),
    lifecycle TEXT NOT NULL CHECK (lifecycle IN ('active', 'archived')),
    archived_at INTEGER,
    archived_by TEXT,
    expires_at INTEGER,
    current_environment_id TEXT,
    primary_session_id TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    title TEXT,
    version INTEGER NOT NULL
) STRICT;
CREATE INDEX tasks_by_workspace ON tasks (workspace_id);
CREATE INDEX tasks_by_parent ON tasks (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX tasks_by_archive ON tasks (archived_by) WHERE archived_by IS NOT NULL;

-- D-6. The environment may be borrowed, and may go first: no foreign key.
CREATE TABLE task_sessions (
    id TEXT NOT NULL PRIMARY KEY,
    task_id TEXT NOT NULL
        REFERENCES tasks (id) DEFERRABLE INITIALLY DEFERRED,
    task_environment_id TEXT,
    lifecycle TEXT NOT NULL CHECK (lifecycle IN ('open', 'closing', 'archived')),
    closing_kind TEXT CHECK (closing_kind IN ('archive', 'delete')),
    closing_token TEXT,
    closing_by TEXT,
    closing_lease INTEGER,
    activity TEXT NOT NULL CHECK (activity IN (
        'created', 'starting', 'idle', 'running', 'waiting_for_input', 'stopped', 'error',
        'completed', 'failed', 'cancelled'
    )),
    epoch INTEGER NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('person', 'schedule', 'hook', 'agent', 'channel')),
    starred INTEGER NOT NULL CHECK (starred IN (0, 1)),
    parent_session_id TEXT,
    archived_at INTEGER,
    archived_by TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    last_activity_at INTEGER NOT NULL,
    name TEXT,
    resume_handle TEXT,
    version INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_task ON task_sessions (task_id);
CREATE INDEX sessions_by_environment ON task_sessions (task_environment_id)
    WHERE task_environment_id IS NOT NULL;

-- D-3.
CREATE TABLE task_environments (
    id TEXT NOT NULL PRIMARY KEY,
    task_id TEXT NOT NULL
        REFERENCES tasks (id) DEFERRABLE INITIALLY DEFERRED,
    status TEXT NOT NULL CHECK (status IN ('creating', 'ready', 'stopped', 'failed')),
    container_id TEXT,
    sandbox_id TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    executor_type TEXT,
    executor_id TEXT,
    executor_profile_id TEXT,
    control_port TEXT,
    workspace_path TEXT,
    task_dir_name TEXT,
    version INTEGER NOT NULL
) STRICT;
CREATE INDEX environments_by_task ON task_environments (task_id);

-- D-4: the one place of physical worktree truth.
CREATE TABLE task_environment_repos (
    id TEXT NOT NULL PRIMARY KEY,
    task_environment_id TEXT NOT NULL
        REFERENCES task_environments (id) DEFERRABLE INITIALLY DEFERRED,
    repository_id TEXT NOT NULL,
    branch_slug TEXT NOT NULL,
    worktree_id TEXT,
    worktree_path TEXT,
    worktree_branch TEXT,
    status TEXT NOT NULL CHECK (status IN ('active', 'merged', 'deleted')),
    materialised TEXT NOT NULL CHECK (materialised IN ('yes', 'no', 'removing')),
    managed INTEGER NOT NULL CHECK (managed IN (0, 1)),
    root_id TEXT,
    branch_created INTEGER NOT NULL CHECK (branch_created IN (0, 1)),
    start_commit TEXT,
    position INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    merged_at INTEGER,
    deleted_at INTEGER,
    error_message TEXT,
    version INTEGER NOT NULL
) STRICT;
-- D-4: a slot, an identity, and a real path within a root, belong to one row at most.
CREATE UNIQUE INDEX repos_one_per_slot
    ON task_environment_repos (task_environment_id, repository_id, branch_slug)
    WHERE status NOT IN ('deleted');
CREATE UNIQUE INDEX repos_one_per_identity ON task_environment_repos (worktree_id)
    WHERE status NOT IN ('deleted');
CREATE UNIQUE INDEX repos_one_per_path ON task_environment_repos (root_id, worktree_path)
    WHERE status NOT IN ('deleted') AND materialised <> 'no';
CREATE INDEX repos_by_path ON task_environment_repos (worktree_path)
    WHERE status NOT IN ('deleted');
-- For the foreign key: deleted rows hang on their environment too.
CREATE INDEX repos_by_environment ON task_environment_repos (task_environment_id);

-- D-5. Outlives what it names: no foreign key.
CREATE TABLE worktree_attempts (
    id TEXT NOT NULL PRIMARY KEY,
    token TEXT NOT NULL,
    task_id TEXT NOT NULL,
    task_environment_id TEXT NOT NULL,
    repo_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('create', 'recreate')),
    repository_id TEXT NOT NULL,
    branch_slug TEXT NOT NULL,
    root_id TEXT NOT NULL,
    path TEXT NOT NULL,
    branch TEXT NOT NULL,
    worktree_id TEXT NOT NULL,
    branch_existed INTEGER NOT NULL CHECK (branch_existed IN (0, 1)),
    start_commit TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN (
        'intended', 'materialised', 'owned', 'compensating', 'compensated'
    )),
    instance_id TEXT NOT NULL,
    lease_until INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    last_error TEXT,
    version INTEGER NOT NULL
) STRICT;
-- D-5: at most one unresolved attempt per slot.
CREATE UNIQUE INDEX attempts_one_per_slot
    ON worktree_attempts (task_environment_id, repository_id, branch_slug)
    WHERE state NOT IN ('owned', 'compensated');
CREATE INDEX attempts_by_path ON worktree_attempts (path);

-- D-22. Outlives the cancel, failure and takeover of its job.
CREATE TABLE removals (
    id TEXT NOT NULL PRIMARY KEY,
    authority TEXT NOT NULL CHECK (authority IN ('job', 'attempt', 'trash')),
    authority_id TEXT NOT NULL,
    resource TEXT,
    repo_id TEXT,
    root_id TEXT NOT NULL,
    path TEXT NOT NULL,
    identity TEXT,
    token TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    lease_until INTEGER NOT NULL,
    last_step TEXT NOT NULL CHECK (last_step IN (
        'permitted', 'salvaged', 'renamed', 'compared', 'unregistered', 'branch_settled',
        'purged', 'returned'
    )),
    unsaved INTEGER NOT NULL,
    head TEXT,
    found_something INTEGER NOT NULL CHECK (found_something IN (0, 1)),
    delete_branch INTEGER NOT NULL CHECK (delete_branch IN (0, 1)),
    keep_trash INTEGER NOT NULL CHECK (keep_trash IN (0, 1)),
    last_reason TEXT NOT NULL CHECK (last_reason IN (
        '', 'in_use', 'changing', 'timed_out', 'disk_full', 'root_unavailable', 'contested',
        'runtime_alive', 'maker_alive', 'io', 'locked_by_person', 'unsaved', 'consent_missing',
        'too_large', 'outside_root', 'identity_mismatch', 'identity_unknown', 'not_managed',
        'nested_repository', 'mount_point', 'permission', 'snapshot_unreadable', 'borrowed',
        'authority_gone', 'owned_elsewhere', 'tries_spent', 'by_person'
    )),
    outcome TEXT CHECK (outcome IN ('removed', 'trashed', 'absent', 'returned', 'forgotten')),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    detail TEXT,
    version INTEGER NOT NULL
) STRICT;
CREATE INDEX removals_by_resource ON removals (resource) WHERE resource IS NOT NULL;
CREATE INDEX removals_by_authority ON removals (authority_id);
CREATE INDEX removals_by_repo ON removals (repo_id)
    WHERE outcome IS NULL
        OR outcome NOT IN ('removed', 'trashed', 'absent', 'returned', 'forgotten');
CREATE INDEX removals_by_path ON removals (path)
    WHERE outcome IS NULL
        OR outcome NOT IN ('removed', 'trashed', 'absent', 'returned', 'forgotten');

-- D-20.
CREATE TABLE trash (
    id TEXT NOT NULL PRIMARY KEY,
    removal_id TEXT NOT NULL,
    task_id TEXT,
    repo_id TEXT,
    root_id TEXT NOT NULL,
    path TEXT NOT NULL,
    worktree_id TEXT,
    restorable_until INTEGER,
    state TEXT NOT NULL CHECK (state IN ('kept', 'restoring', 'purging', 'gone')),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    admin_path TEXT,
    version INTEGER NOT NULL
) STRICT;
CREATE INDEX trash_by_removal ON trash (removal_id);
CREATE INDEX trash_being_restored ON trash (worktree_id)
    WHERE state NOT IN ('kept', 'purging', 'gone');

-- D-20.
CREATE TABLE salvage (
    id TEXT NOT NULL PRIMARY KEY,
    task_id TEXT,
    repository_id TEXT NOT NULL,
    repo_id TEXT,
    worktree_id TEXT NOT NULL,
    removal_id TEXT NOT NULL,
    root_id TEXT NOT NULL,
    base TEXT,
    contents INTEGER NOT NULL,
    size INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('verified', 'restored', 'expired')),
    made_at INTEGER NOT NULL,
    ref_name TEXT,
    version INTEGER NOT NULL
) STRICT;
CREATE INDEX salvage_by_removal ON salvage (removal_id);

-- C-1. The trigger has no check: a text that this build does not know must stay storable (C-10).
CREATE TABLE task_resource_cleanup_jobs (
    id TEXT NOT NULL PRIMARY KEY,
    operation_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    "trigger" TEXT NOT NULL,
    authority TEXT NOT NULL,
    environment_id TEXT,
    cascade_root TEXT,
    policy TEXT NOT NULL CHECK (policy IN ('salvage', 'refuse', 'discard')),
    branch_policy TEXT NOT NULL CHECK (branch_policy IN ('keep', 'delete_when_reached')),
    consent INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN (
        'prepared', 'pending', 'running', 'retry_wait', 'succeeded', 'failed', 'cancelled'
    )),
    instance_id TEXT,
    lease_until INTEGER,
    snapshot_version INTEGER NOT NULL,
    mutated_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    completed_at INTEGER,
    snapshot TEXT,
    last_error TEXT,
    version INTEGER NOT NULL
) STRICT;
-- C-1: one operation has one job per task, but for those cancelled before their mutation.
CREATE UNIQUE INDEX jobs_one_per_operation ON task_resource_cleanup_jobs (operation_id, task_id)
    WHERE NOT (state = 'cancelled' AND mutated_at IS NULL);
-- B-1: one barrier per task.
CREATE UNIQUE INDEX jobs_one_barrier ON task_resource_cleanup_jobs (task_id)
    WHERE state = 'prepared';
CREATE INDEX jobs_by_operation ON task_resource_cleanup_jobs (operation_id);
CREATE INDEX jobs_by_task ON task_resource_cleanup_jobs (task_id);

-- C-1: the part of a job that lies in one root.
CREATE TABLE task_resource_cleanup_roots (
    id TEXT NOT NULL PRIMARY KEY,
    job_id TEXT NOT NULL,
    root_id TEXT,
    state TEXT NOT NULL CHECK (state IN (
        'prepared', 'pending', 'running', 'retry_wait', 'succeeded', 'failed', 'cancelled'
    )),
    tries INTEGER NOT NULL,
    next_attempt_at INTEGER,
    token TEXT,
    claimed_by TEXT,
    lease_until INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    errors TEXT,
    version INTEGER NOT NULL
) STRICT;
CREATE INDEX job_roots_by_job ON task_resource_cleanup_roots (job_id);
-- What a worker looks for.
CREATE INDEX job_roots_by_state ON task_resource_cleanup_roots (state);

-- B-4, C-13.
CREATE TABLE task_resource_cleanup_resources (
    id TEXT NOT NULL PRIMARY KEY,
    job_id TEXT NOT NULL,
    job_root_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('runtime', 'attempt', 'container', 'sandbox', 'worktree')),
    environment_id TEXT,
    repo_id TEXT,
    runtime_id TEXT,
    attempt_id TEXT,
    handle TEXT,
    repository_id TEXT,
    root_id TEXT,
    path TEXT,
    branch TEXT,
    worktree_id TEXT,
    managed INTEGER NOT NULL CHECK (managed IN (0, 1)),
    branch_created INTEGER NOT NULL CHECK (branch_created IN (0, 1)),
    start_commit TEXT,
    result TEXT NOT NULL CHECK (result IN (
        'waiting', 'removing', 'removed', 'absent', 'preserved', 'transferred', 'kept',
        'forgotten', 'failed'
    )),
    reason TEXT NOT NULL CHECK (reason IN (
        '', 'in_use', 'changing', 'timed_out', 'disk_full', 'root_unavailable', 'contested',
        'runtime_alive', 'maker_alive', 'io', 'locked_by_person', 'unsaved', 'consent_missing',
        'too_large', 'outside_root', 'identity_mismatch', 'identity_unknown', 'not_managed',
        'nested_repository', 'mount_point', 'permission', 'snapshot_unreadable', 'borrowed',
        'authority_gone', 'owned_elsewhere', 'tries_spent', 'by_person'
    )),
    salvage_id TEXT,
    transferred_to TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    detail TEXT,
    version INTEGER NOT NULL
) STRICT;
CREATE INDEX resources_by_job ON task_resource_cleanup_resources (job_id);
CREATE INDEX resources_by_path ON task_resource_cleanup_resources (path) WHERE path IS NOT NULL;

-- D-14. Never deleted.
CREATE TABLE identities (
    id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('task', 'session', 'workspace')),
    state TEXT NOT NULL CHECK (state IN ('live', 'gone')),
    gone_at INTEGER,
    gone_by TEXT,
    version INTEGER NOT NULL,
    PRIMARY KEY (id, kind)
) STRICT, WITHOUT ROWID;

-- D-19.
CREATE TABLE requests (
    id TEXT NOT NULL PRIMARY KEY,
    content_hash TEXT NOT NULL,
    at INTEGER NOT NULL,
    outcome TEXT,
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- D-8.
CREATE TABLE turns (
    id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL
        REFERENCES task_sessions (id) DEFERRABLE INITIALLY DEFERRED,
    epoch INTEGER NOT NULL,
    phase TEXT NOT NULL CHECK (phase IN (
        'waiting_for_slot', 'running', 'between_legs', 'draining', 'background', 'ended'
    )),
    origin TEXT NOT NULL CHECK (origin IN (
        'person', 'wakeup', 'answer', 'channel', 'plan', 'schedule', 'hook', 'background',
        'workflow'
    )),
    runtime_id TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    lease_until INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    outcome TEXT CHECK (outcome IN ('completed', 'failed', 'cancelled', 'interrupted', 'dropped')),
    version INTEGER NOT NULL
) STRICT;
-- A session has many turns, few of which have not ended.
CREATE INDEX turns_under_way ON turns (session_id) WHERE phase NOT IN ('ended');
CREATE INDEX turns_by_session ON turns (session_id);

-- D-9. Kept when its session is gone.
CREATE TABLE session_inputs (
    id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT,
    origin TEXT NOT NULL CHECK (origin IN (
        'person', 'wakeup', 'answer', 'channel', 'plan', 'schedule', 'hook', 'background',
        'workflow'
    )),
    actor TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN (
        'queued', 'delivered', 'redirected', 'refused', 'cancelled', 'expired'
    )),
    reason TEXT NOT NULL CHECK (reason IN (
        '', 'archived', 'deleted', 'task_closed', 'taken_back', 'interrupted'
    )),
    redirected_to TEXT,
    turn_id TEXT,
    created_at INTEGER NOT NULL,
    settled_at INTEGER,
    content TEXT,
    version INTEGER NOT NULL
) STRICT;
CREATE INDEX inputs_waiting ON session_inputs (session_id)
    WHERE state NOT IN ('delivered', 'redirected', 'refused', 'cancelled', 'expired');

-- D-11. Outlives session and task until its stop is proven (C-6).
CREATE TABLE executors_running (
    id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    task_environment_id TEXT,
    instance_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('local', 'container', 'remote')),
    status TEXT NOT NULL CHECK (status IN ('starting', 'running', 'stopping', 'stopped')),
    last_seen_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    runtime TEXT,
    agent_execution_id TEXT,
    container_id TEXT,
    url TEXT,
    pid TEXT,
    process_started_at TEXT,
    resume_token TEXT,
    error_message TEXT,
    version INTEGER NOT NULL
) STRICT;
CREATE INDEX runtimes_by_session ON executors_running (session_id)
    WHERE status NOT IN ('stopped');
CREATE INDEX runtimes_by_task ON executors_running (task_id) WHERE status NOT IN ('stopped');
CREATE INDEX runtimes_by_environment ON executors_running (task_environment_id)
    WHERE status NOT IN ('stopped');

-- D-15.
CREATE TABLE instances (
    id TEXT NOT NULL PRIMARY KEY,
    host TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    draining INTEGER NOT NULL CHECK (draining IN (0, 1)),
    version INTEGER NOT NULL
) STRICT;

-- D-18.
CREATE TABLE managed_roots (
    id TEXT NOT NULL PRIMARY KEY,
    host TEXT NOT NULL,
    path TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    marker TEXT,
    version INTEGER NOT NULL
) STRICT;
CREATE INDEX managed_roots_by_path ON managed_roots (path);

-- D-25: one row.
CREATE TABLE settings (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    lease INTEGER NOT NULL,
    renew INTEGER NOT NULL,
    removal_lease INTEGER NOT NULL,
    max_tries INTEGER NOT NULL,
    retry_1 INTEGER NOT NULL,
    retry_2 INTEGER NOT NULL,
    retry_3 INTEGER NOT NULL,
    retry_4 INTEGER NOT NULL,
    retry_5 INTEGER NOT NULL,
    retry_6 INTEGER NOT NULL,
    retry_7 INTEGER NOT NULL,
    trash_retention INTEGER NOT NULL,
    salvage_limit INTEGER NOT NULL,
    root_patience INTEGER NOT NULL,
    stop_bound INTEGER NOT NULL,
    salvage_retention INTEGER NOT NULL,
    salvage_consent TEXT,
    salvage_consent_by TEXT,
    salvage_consent_at INTEGER,
    salvage_consent_words TEXT,
    version INTEGER NOT NULL
) STRICT;

-- D-21.
CREATE TABLE journal (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    command TEXT NOT NULL,
    cause TEXT NOT NULL,
    subject_table TEXT NOT NULL,
    subject TEXT NOT NULL,
    event TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;

-- D-18: the store itself, one row.
CREATE TABLE store (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL
) STRICT;
