-- Schema 1. Table and column names are those of the rules (D); a test compares them with the
-- kernel's declaration. Times are UTC microseconds, flags 0 or 1, ids the host's own strings.
-- Texts compare by their bytes, whatever the database's language is: rows are locked in the
-- order of their ids, and every instance must see one order.
--
-- A partial index repeats the words of the look-up that it serves (kernel, footprint.rs).
--
-- Applied with the store's own schema as the only one in search_path. Never edited once
-- released: the next change is 0002.sql.

-- D-1.
CREATE TABLE workspaces (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    state text COLLATE "C" NOT NULL CHECK (state IN ('active', 'deleting')),
    deleting_operation text COLLATE "C",
    deleting_instance text COLLATE "C",
    deleting_lease bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    name text COLLATE "C",
    version bigint NOT NULL
);
CREATE INDEX workspaces_by_deletion ON workspaces (deleting_operation)
    WHERE deleting_operation IS NOT NULL;

-- D-2.
CREATE TABLE tasks (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL
        REFERENCES workspaces (id) DEFERRABLE INITIALLY DEFERRED,
    parent_id text COLLATE "C",
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('standard', 'quick_chat')),
    lifecycle text COLLATE "C" NOT NULL CHECK (lifecycle IN ('active', 'archived')),
    archived_at bigint,
    archived_by text COLLATE "C",
    expires_at bigint,
    current_environment_id text COLLATE "C",
    primary_session_id text COLLATE "C",
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    title text COLLATE "C",
    version bigint NOT NULL
);
CREATE INDEX tasks_by_workspace ON tasks (workspace_id);
CREATE INDEX tasks_by_parent ON tasks (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX tasks_by_archive ON tasks (archived_by) WHERE archived_by IS NOT NULL;

-- D-6. The environment may be borrowed, and may go first: no foreign key.
CREATE TABLE task_sessions (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    task_id text COLLATE "C" NOT NULL
        REFERENCES tasks (id) DEFERRABLE INITIALLY DEFERRED,
    task_environment_id text COLLATE "C",
    lifecycle text COLLATE "C" NOT NULL CHECK (lifecycle IN ('open', 'closing', 'archived')),
    closing_kind text COLLATE "C" CHECK (closing_kind IN ('archive', 'delete')),
    closing_token text COLLATE "C",
    closing_by text COLLATE "C",
    closing_lease bigint,
    activity text COLLATE "C" NOT NULL CHECK (activity IN (
        'created', 'starting', 'idle', 'running', 'waiting_for_input', 'stopped', 'error',
        'completed', 'failed', 'cancelled'
    )),
    epoch bigint NOT NULL,
    source text COLLATE "C" NOT NULL CHECK (source IN ('person', 'schedule', 'hook', 'agent', 'channel')),
    starred bigint NOT NULL CHECK (starred IN (0, 1)),
    parent_session_id text COLLATE "C",
    archived_at bigint,
    archived_by text COLLATE "C",
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    last_activity_at bigint NOT NULL,
    name text COLLATE "C",
    resume_handle text COLLATE "C",
    version bigint NOT NULL
);
CREATE INDEX sessions_by_task ON task_sessions (task_id);
CREATE INDEX sessions_by_environment ON task_sessions (task_environment_id)
    WHERE task_environment_id IS NOT NULL;

-- D-3.
CREATE TABLE task_environments (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    task_id text COLLATE "C" NOT NULL
        REFERENCES tasks (id) DEFERRABLE INITIALLY DEFERRED,
    status text COLLATE "C" NOT NULL CHECK (status IN ('creating', 'ready', 'stopped', 'failed')),
    container_id text COLLATE "C",
    sandbox_id text COLLATE "C",
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    executor_type text COLLATE "C",
    executor_id text COLLATE "C",
    executor_profile_id text COLLATE "C",
    control_port text COLLATE "C",
    workspace_path text COLLATE "C",
    task_dir_name text COLLATE "C",
    version bigint NOT NULL
);
CREATE INDEX environments_by_task ON task_environments (task_id);

-- D-4: the one place of physical worktree truth.
CREATE TABLE task_environment_repos (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    task_environment_id text COLLATE "C" NOT NULL
        REFERENCES task_environments (id) DEFERRABLE INITIALLY DEFERRED,
    repository_id text COLLATE "C" NOT NULL,
    branch_slug text COLLATE "C" NOT NULL,
    worktree_id text COLLATE "C",
    worktree_path text COLLATE "C",
    worktree_branch text COLLATE "C",
    status text COLLATE "C" NOT NULL CHECK (status IN ('active', 'merged', 'deleted')),
    materialised text COLLATE "C" NOT NULL CHECK (materialised IN ('yes', 'no', 'removing')),
    managed bigint NOT NULL CHECK (managed IN (0, 1)),
    root_id text COLLATE "C",
    branch_created bigint NOT NULL CHECK (branch_created IN (0, 1)),
    start_commit text COLLATE "C",
    position bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    merged_at bigint,
    deleted_at bigint,
    error_message text COLLATE "C",
    version bigint NOT NULL
);
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
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    token text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    task_environment_id text COLLATE "C" NOT NULL,
    repo_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('create', 'recreate')),
    repository_id text COLLATE "C" NOT NULL,
    branch_slug text COLLATE "C" NOT NULL,
    root_id text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    branch text COLLATE "C" NOT NULL,
    worktree_id text COLLATE "C" NOT NULL,
    branch_existed bigint NOT NULL CHECK (branch_existed IN (0, 1)),
    start_commit text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (state IN (
        'intended', 'materialised', 'owned', 'compensating', 'compensated'
    )),
    instance_id text COLLATE "C" NOT NULL,
    lease_until bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    last_error text COLLATE "C",
    version bigint NOT NULL
);
-- D-5: at most one unresolved attempt per slot.
CREATE UNIQUE INDEX attempts_one_per_slot
    ON worktree_attempts (task_environment_id, repository_id, branch_slug)
    WHERE state NOT IN ('owned', 'compensated');
CREATE INDEX attempts_by_path ON worktree_attempts (path);

-- D-22. Outlives the cancel, failure and takeover of its job.
CREATE TABLE removals (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    authority text COLLATE "C" NOT NULL CHECK (authority IN ('job', 'attempt', 'trash')),
    authority_id text COLLATE "C" NOT NULL,
    resource text COLLATE "C",
    repo_id text COLLATE "C",
    root_id text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    identity text COLLATE "C",
    token text COLLATE "C" NOT NULL,
    instance_id text COLLATE "C" NOT NULL,
    lease_until bigint NOT NULL,
    last_step text COLLATE "C" NOT NULL CHECK (last_step IN (
        'permitted', 'salvaged', 'renamed', 'compared', 'unregistered', 'branch_settled',
        'purged', 'returned'
    )),
    unsaved bigint NOT NULL,
    head text COLLATE "C",
    found_something bigint NOT NULL CHECK (found_something IN (0, 1)),
    delete_branch bigint NOT NULL CHECK (delete_branch IN (0, 1)),
    keep_trash bigint NOT NULL CHECK (keep_trash IN (0, 1)),
    last_reason text COLLATE "C" NOT NULL CHECK (last_reason IN (
        '', 'in_use', 'changing', 'timed_out', 'disk_full', 'root_unavailable', 'contested',
        'runtime_alive', 'maker_alive', 'io', 'locked_by_person', 'unsaved', 'consent_missing',
        'too_large', 'outside_root', 'identity_mismatch', 'identity_unknown', 'not_managed',
        'nested_repository', 'mount_point', 'permission', 'snapshot_unreadable', 'borrowed',
        'authority_gone', 'owned_elsewhere', 'tries_spent', 'by_person'
    )),
    outcome text COLLATE "C" CHECK (outcome IN ('removed', 'trashed', 'absent', 'returned', 'forgotten')),
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    detail text COLLATE "C",
    version bigint NOT NULL
);
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
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    removal_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C",
    repo_id text COLLATE "C",
    root_id text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    worktree_id text COLLATE "C",
    restorable_until bigint,
    state text COLLATE "C" NOT NULL CHECK (state IN ('kept', 'restoring', 'purging', 'gone')),
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    admin_path text COLLATE "C",
    version bigint NOT NULL
);
CREATE INDEX trash_by_removal ON trash (removal_id);
CREATE INDEX trash_being_restored ON trash (worktree_id)
    WHERE state NOT IN ('kept', 'purging', 'gone');

-- D-20.
CREATE TABLE salvage (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    task_id text COLLATE "C",
    repository_id text COLLATE "C" NOT NULL,
    repo_id text COLLATE "C",
    worktree_id text COLLATE "C" NOT NULL,
    removal_id text COLLATE "C" NOT NULL,
    root_id text COLLATE "C" NOT NULL,
    base text COLLATE "C",
    contents bigint NOT NULL,
    size bigint NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (state IN ('verified', 'restored', 'expired')),
    made_at bigint NOT NULL,
    ref_name text COLLATE "C",
    version bigint NOT NULL
);
CREATE INDEX salvage_by_removal ON salvage (removal_id);

-- C-1. The trigger has no check: a text that this build does not know must stay storable (C-10).
CREATE TABLE task_resource_cleanup_jobs (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    operation_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    content_hash text COLLATE "C" NOT NULL,
    "trigger" text COLLATE "C" NOT NULL,
    authority text COLLATE "C" NOT NULL,
    environment_id text COLLATE "C",
    cascade_root text COLLATE "C",
    policy text COLLATE "C" NOT NULL CHECK (policy IN ('salvage', 'refuse', 'discard')),
    branch_policy text COLLATE "C" NOT NULL CHECK (branch_policy IN ('keep', 'delete_when_reached')),
    consent bigint NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (state IN (
        'prepared', 'pending', 'running', 'retry_wait', 'succeeded', 'failed', 'cancelled'
    )),
    instance_id text COLLATE "C",
    lease_until bigint,
    snapshot_version bigint NOT NULL,
    mutated_at bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    completed_at bigint,
    snapshot text COLLATE "C",
    last_error text COLLATE "C",
    version bigint NOT NULL
);
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
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    job_id text COLLATE "C" NOT NULL,
    root_id text COLLATE "C",
    state text COLLATE "C" NOT NULL CHECK (state IN (
        'prepared', 'pending', 'running', 'retry_wait', 'succeeded', 'failed', 'cancelled'
    )),
    tries bigint NOT NULL,
    next_attempt_at bigint,
    token text COLLATE "C",
    claimed_by text COLLATE "C",
    lease_until bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    errors text COLLATE "C",
    version bigint NOT NULL
);
CREATE INDEX job_roots_by_job ON task_resource_cleanup_roots (job_id);
-- What a worker looks for.
CREATE INDEX job_roots_by_state ON task_resource_cleanup_roots (state);

-- B-4, C-13.
CREATE TABLE task_resource_cleanup_resources (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    job_id text COLLATE "C" NOT NULL,
    job_root_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('runtime', 'attempt', 'container', 'sandbox', 'worktree')),
    environment_id text COLLATE "C",
    repo_id text COLLATE "C",
    runtime_id text COLLATE "C",
    attempt_id text COLLATE "C",
    handle text COLLATE "C",
    repository_id text COLLATE "C",
    root_id text COLLATE "C",
    path text COLLATE "C",
    branch text COLLATE "C",
    worktree_id text COLLATE "C",
    managed bigint NOT NULL CHECK (managed IN (0, 1)),
    branch_created bigint NOT NULL CHECK (branch_created IN (0, 1)),
    start_commit text COLLATE "C",
    result text COLLATE "C" NOT NULL CHECK (result IN (
        'waiting', 'removing', 'removed', 'absent', 'preserved', 'transferred', 'kept',
        'forgotten', 'failed'
    )),
    reason text COLLATE "C" NOT NULL CHECK (reason IN (
        '', 'in_use', 'changing', 'timed_out', 'disk_full', 'root_unavailable', 'contested',
        'runtime_alive', 'maker_alive', 'io', 'locked_by_person', 'unsaved', 'consent_missing',
        'too_large', 'outside_root', 'identity_mismatch', 'identity_unknown', 'not_managed',
        'nested_repository', 'mount_point', 'permission', 'snapshot_unreadable', 'borrowed',
        'authority_gone', 'owned_elsewhere', 'tries_spent', 'by_person'
    )),
    salvage_id text COLLATE "C",
    transferred_to text COLLATE "C",
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    detail text COLLATE "C",
    version bigint NOT NULL
);
CREATE INDEX resources_by_job ON task_resource_cleanup_resources (job_id);
CREATE INDEX resources_by_path ON task_resource_cleanup_resources (path) WHERE path IS NOT NULL;

-- D-14. Never deleted.
CREATE TABLE identities (
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('task', 'session', 'workspace')),
    state text COLLATE "C" NOT NULL CHECK (state IN ('live', 'gone')),
    gone_at bigint,
    gone_by text COLLATE "C",
    version bigint NOT NULL,
    PRIMARY KEY (id, kind)
);

-- D-19.
CREATE TABLE requests (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    content_hash text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    outcome text COLLATE "C",
    version bigint NOT NULL
);

-- D-8.
CREATE TABLE turns (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    session_id text COLLATE "C" NOT NULL
        REFERENCES task_sessions (id) DEFERRABLE INITIALLY DEFERRED,
    epoch bigint NOT NULL,
    phase text COLLATE "C" NOT NULL CHECK (phase IN (
        'waiting_for_slot', 'running', 'between_legs', 'draining', 'background', 'ended'
    )),
    origin text COLLATE "C" NOT NULL CHECK (origin IN (
        'person', 'wakeup', 'answer', 'channel', 'plan', 'schedule', 'hook', 'background',
        'workflow'
    )),
    runtime_id text COLLATE "C" NOT NULL,
    instance_id text COLLATE "C" NOT NULL,
    lease_until bigint NOT NULL,
    started_at bigint NOT NULL,
    ended_at bigint,
    outcome text COLLATE "C" CHECK (outcome IN ('completed', 'failed', 'cancelled', 'interrupted', 'dropped')),
    version bigint NOT NULL
);
-- A session has many turns, few of which have not ended.
CREATE INDEX turns_under_way ON turns (session_id) WHERE phase NOT IN ('ended');
CREATE INDEX turns_by_session ON turns (session_id);

-- D-9. Kept when its session is gone.
CREATE TABLE session_inputs (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    session_id text COLLATE "C",
    origin text COLLATE "C" NOT NULL CHECK (origin IN (
        'person', 'wakeup', 'answer', 'channel', 'plan', 'schedule', 'hook', 'background',
        'workflow'
    )),
    actor text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (state IN (
        'queued', 'delivered', 'redirected', 'refused', 'cancelled', 'expired'
    )),
    reason text COLLATE "C" NOT NULL CHECK (reason IN (
        '', 'archived', 'deleted', 'task_closed', 'taken_back', 'interrupted'
    )),
    redirected_to text COLLATE "C",
    turn_id text COLLATE "C",
    created_at bigint NOT NULL,
    settled_at bigint,
    content text COLLATE "C",
    version bigint NOT NULL
);
CREATE INDEX inputs_waiting ON session_inputs (session_id)
    WHERE state NOT IN ('delivered', 'redirected', 'refused', 'cancelled', 'expired');

-- D-11. Outlives session and task until its stop is proven (C-6).
CREATE TABLE executors_running (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    session_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    task_environment_id text COLLATE "C",
    instance_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('local', 'container', 'remote')),
    status text COLLATE "C" NOT NULL CHECK (status IN ('starting', 'running', 'stopping', 'stopped')),
    last_seen_at bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    runtime text COLLATE "C",
    agent_execution_id text COLLATE "C",
    container_id text COLLATE "C",
    url text COLLATE "C",
    pid text COLLATE "C",
    process_started_at text COLLATE "C",
    resume_token text COLLATE "C",
    error_message text COLLATE "C",
    version bigint NOT NULL
);
CREATE INDEX runtimes_by_session ON executors_running (session_id)
    WHERE status NOT IN ('stopped');
CREATE INDEX runtimes_by_task ON executors_running (task_id) WHERE status NOT IN ('stopped');
CREATE INDEX runtimes_by_environment ON executors_running (task_environment_id)
    WHERE status NOT IN ('stopped');

-- D-15.
CREATE TABLE instances (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    host text COLLATE "C" NOT NULL,
    started_at bigint NOT NULL,
    lease_until bigint NOT NULL,
    draining bigint NOT NULL CHECK (draining IN (0, 1)),
    version bigint NOT NULL
);

-- D-18.
CREATE TABLE managed_roots (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    host text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    marker text COLLATE "C",
    version bigint NOT NULL
);
CREATE INDEX managed_roots_by_path ON managed_roots (path);

-- D-25: one row.
CREATE TABLE settings (
    id bigint NOT NULL PRIMARY KEY CHECK (id = 1),
    lease bigint NOT NULL,
    renew bigint NOT NULL,
    removal_lease bigint NOT NULL,
    max_tries bigint NOT NULL,
    retry_1 bigint NOT NULL,
    retry_2 bigint NOT NULL,
    retry_3 bigint NOT NULL,
    retry_4 bigint NOT NULL,
    retry_5 bigint NOT NULL,
    retry_6 bigint NOT NULL,
    retry_7 bigint NOT NULL,
    trash_retention bigint NOT NULL,
    salvage_limit bigint NOT NULL,
    root_patience bigint NOT NULL,
    stop_bound bigint NOT NULL,
    salvage_retention bigint NOT NULL,
    salvage_consent text COLLATE "C",
    salvage_consent_by text COLLATE "C",
    salvage_consent_at bigint,
    salvage_consent_words text COLLATE "C",
    version bigint NOT NULL
);

-- D-21. The numbers come from the sequence while the rows are locked, so they grow with what
-- happened; that they may commit in another order is the reader's to mind (A-13).
CREATE SEQUENCE journal_seq AS bigint;
CREATE TABLE journal (
    seq bigint NOT NULL PRIMARY KEY,
    at bigint NOT NULL,
    actor text COLLATE "C" NOT NULL,
    command text COLLATE "C" NOT NULL,
    cause text COLLATE "C" NOT NULL,
    subject_table text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    event text COLLATE "C" NOT NULL,
    detail text COLLATE "C" NOT NULL
);

-- D-18: the store itself, one row.
CREATE TABLE store (
    one bigint NOT NULL PRIMARY KEY CHECK (one = 1),
    id text COLLATE "C" NOT NULL
);

-- Which instance is about to claim which part of a job, so that several do not try the same one.
-- A hint and no claim: lost in a crash of the server, and nothing else is.
CREATE UNLOGGED TABLE picks (
    job_root_id text COLLATE "C" NOT NULL PRIMARY KEY,
    instance text COLLATE "C" NOT NULL,
    until bigint NOT NULL
);
