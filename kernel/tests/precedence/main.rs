//! The promised precedence, one table per main command: each row names a guard and breaks it
//! together with all guards below it. What is answered is that row's word, a refusal or, where a
//! guard leads to another outcome, a reply.

#![allow(clippy::unwrap_used)]

mod cleanup;
mod restore;

use std::sync::OnceLock;

use freehold_kernel::*;

type Break = fn(&mut View, &mut Envelope);

/// Breaks every row from each row on, and looks at the answer.
fn table(name: &str, base: &View, command: Command, rows: &[(&str, Break)]) {
    let actor = Actor { id: ActorId(1), may: Permissions::ALL };
    let request = Some(RequestId(1));
    let envelope = Envelope { request, content: ContentHash(1), actor, command };
    let answer = |view: &mut View, envelope: &Envelope| {
        view.commit();
        match decide(view, envelope, &mut Output::default()) {
            Ok(decision) => format!("{:?}", decision.reply),
            Err(refusal) => refusal.guard.code().to_owned(),
        }
    };
    let good = answer(&mut base.clone(), &envelope);
    assert!(Guard::from_code(&good).is_none(), "{name}: the good one is refused: {good}");
    for (at, (word, _)) in rows.iter().enumerate() {
        let (mut view, mut broken) = (base.clone(), envelope);
        for (_, change) in rows[at..].iter().rev() {
            change(&mut view, &mut broken);
        }
        let said = answer(&mut view, &broken);
        assert!(said.contains(word), "{name}: {word} was expected, {said} came");
    }
}

/// A world in which everything exists once: task 1 with environment 1, worktree 1 and session 1;
/// task 2 with environment 2; task 3 archived, its worktree 3 in a claimed job.
fn world() -> &'static View {
    static WORLD: OnceLock<View> = OnceLock::new();
    WORLD.get_or_init(|| {
        let mut v = View { now: Time(1_000_000), ..View::default() };
        let mut ok = |command: Command| {
            let actor = Actor { id: ActorId(1), may: Permissions::ALL };
            let envelope = Envelope { request: None, content: ContentHash(0), actor, command };
            decide(&mut v, &envelope, &mut Output::default()).unwrap();
            v.commit();
        };
        let (instance, host) = (InstanceId(1), HostId(1));
        ok(Command::System(SystemCommand::RegisterInstance { instance, host }));
        let (root, path) = (RootId(1), PathId(100));
        ok(Command::Operator(OperatorCommand::RegisterRoot { root, host, path }));
        let workspace = WorkspaceId(1);
        ok(Command::Task(TaskCommand::CreateWorkspace { workspace }));
        for id in [1, 2, 3] {
            ok(Command::Task(TaskCommand::Create {
                task: TaskId(id),
                workspace,
                parent: None,
                kind: TaskKind::Standard,
                expires_at: None,
            }));
            ok(Command::Task(TaskCommand::CreateEnvironment {
                environment: EnvironmentId(id),
                task: TaskId(id),
                container: None,
                sandbox: None,
            }));
            ok(create_session(id, id, None));
        }
        for id in [1, 3] {
            let (attempt, token) = (AttemptId(id), Token(id));
            ok(begin(id, id, id));
            ok(Command::Attempt(AttemptCommand::Materialised { attempt, token }));
            ok(Command::Attempt(AttemptCommand::Persist { attempt, token }));
        }
        ok(reserve(3, 3, Trigger::Archive));
        let (operation, scope) = (OperationId(3), Scope::Task);
        ok(Command::Operation(OperationCommand::Snapshot { operation, scope, instance }));
        ok(Command::Operation(OperationCommand::Mutate { operation, scope, instance }));
        v
    })
}

fn create_session(id: u128, task: u128, environment: Option<u128>) -> Command {
    Command::Session(SessionCommand::Create {
        session: SessionId(id),
        task: TaskId(task),
        environment: environment.map(EnvironmentId),
        source: SessionSource::Person,
        parent: None,
    })
}

fn begin(id: u128, environment: u128, repo: u128) -> Command {
    Command::Attempt(AttemptCommand::Begin {
        attempt: AttemptId(id),
        token: Token(id),
        environment: EnvironmentId(environment),
        repo: RepoId(repo),
        repository: RepositoryId(1),
        slug: Slug(1),
        root: RootId(1),
        path: PathId(id),
        branch: BranchId(1),
        worktree: WorktreeId(id),
        branch_existed: false,
        start_commit: CommitId(1),
        instance: InstanceId(1),
    })
}

fn reserve(operation: u128, task: u128, trigger: Trigger) -> Command {
    Command::Operation(OperationCommand::Reserve {
        operation: OperationId(operation),
        job: JobId(operation),
        task: TaskId(task),
        trigger,
        environment: None,
        cascade_root: None,
        policy: UnsavedPolicy::Refuse,
        branch_policy: BranchPolicy::Keep,
        consent: Unsaved::NONE,
        unsaved: Unsaved::NONE,
        refuse_busy: false,
        instance: InstanceId(1),
        content: ContentHash(1),
    })
}

fn submit() -> Command {
    Command::Turn(TurnCommand::Submit {
        session: SessionId(1),
        input: InputId(1),
        origin: Origin::Person,
        turn: TurnId(1),
        runtime: RuntimeId(1),
        runtime_kind: RuntimeKind::Local,
        instance: InstanceId(1),
    })
}

/// A world after these commands.
fn after(commands: &[Command]) -> View {
    let mut v = world().clone();
    for command in commands {
        let actor = Actor { id: ActorId(1), may: Permissions::ALL };
        let envelope =
            Envelope { request: None, content: ContentHash(0), actor, command: *command };
        decide(&mut v, &envelope, &mut Output::default()).unwrap();
        v.commit();
    }
    v
}

// What breaks a guard, each tolerant of what another one took away.

fn permission(_: &mut View, e: &mut Envelope) {
    e.actor.may = Permissions::NONE;
}
fn request_content(v: &mut View, _: &mut Envelope) {
    v.requests.insert(Request { id: RequestId(1), content_hash: ContentHash(9), at: v.now });
}
fn forget(v: &mut View, kind: IdentityKind, id: u128) {
    v.identities.remove_where(|i| i.kind == kind && i.id.0 == id);
}
fn no_task(v: &mut View, _: &mut Envelope) {
    v.tasks.remove(1);
    forget(v, IdentityKind::Task, 1);
}
fn no_session(v: &mut View, _: &mut Envelope) {
    v.sessions.remove(1);
    forget(v, IdentityKind::Session, 1);
}
fn archive(v: &mut View, task: u128) {
    if let Some(t) = v.tasks.edit(task) {
        t.lifecycle = TaskLifecycle::Archived;
        (t.archived_at, t.archived_by) = (Some(v.now), Some(OperationId(77)));
    }
}
fn bar(v: &mut View, task: u128) {
    let template = *world().jobs.id(3).unwrap();
    v.jobs.insert(Job {
        id: JobId(900 + task),
        operation_id: OperationId(900 + task),
        task_id: TaskId(task),
        state: JobState::Prepared,
        ..template
    });
}
fn in_removal(v: &mut View, environment: u128) {
    let template = *world().repos.id(1).unwrap();
    v.repos.insert(Repo {
        id: RepoId(900),
        task_environment_id: EnvironmentId(environment),
        branch_slug: Slug(900),
        worktree_id: Some(WorktreeId(900)),
        worktree_path: Some(PathId(900)),
        materialised: Materialised::Removing,
        ..template
    });
}
fn no_instance(v: &mut View, _: &mut Envelope) {
    v.instances.remove(1);
}
fn dead_instance(v: &mut View, _: &mut Envelope) {
    if let Some(i) = v.instances.edit(1) {
        i.lease_until = Time(0);
    }
}
fn draining(v: &mut View, _: &mut Envelope) {
    if let Some(i) = v.instances.edit(1) {
        i.draining = true;
    }
}
fn other_host(v: &mut View, _: &mut Envelope) {
    if let Some(r) = v.managed_roots.edit(1) {
        r.host = HostId(9);
    }
}
fn turn_under_way(v: &mut View, _: &mut Envelope) {
    v.turns.insert(Turn {
        id: TurnId(900),
        session_id: SessionId(1),
        epoch: 1,
        phase: TurnPhase::Running,
        origin: Origin::Person,
        runtime_id: RuntimeId(900),
        instance_id: InstanceId(1),
        lease_until: Time(i64::MAX),
        started_at: v.now,
        ended_at: None,
        outcome: None,
    });
}
fn runtime(v: &mut View, id: u128, environment: u128) {
    v.runtimes.insert(Runtime {
        id: RuntimeId(id),
        session_id: SessionId(1),
        task_id: TaskId(1),
        task_environment_id: Some(EnvironmentId(environment)),
        instance_id: InstanceId(1),
        kind: RuntimeKind::Local,
        status: RuntimeStatus::Running,
        last_seen_at: v.now,
        created_at: v.now,
        updated_at: v.now,
    });
}

#[test]
fn session_create() {
    table(
        "session.create",
        world(),
        create_session(9, 1, Some(2)),
        &[
            ("permission", permission),
            ("request_content", request_content),
            ("task_known", no_task),
            ("id_never_used", |v, _| {
                v.identities.insert(Identity {
                    id: AnyId(9),
                    kind: IdentityKind::Session,
                    state: IdentityState::Gone,
                    gone_at: None,
                    gone_by: None,
                });
            }),
            ("task_active", |v, _| archive(v, 1)),
            ("task_unbarred", |v, _| bar(v, 1)),
            ("environment_known", |v, _| v.environments.remove(2)),
            ("owner_active", |v, _| archive(v, 2)),
            ("owner_unbarred", |v, _| bar(v, 2)),
            ("not_in_removal", |v, _| in_removal(v, 2)),
        ],
    );
}

fn close(v: &mut View, lifecycle: SessionLifecycle) {
    if let Some(s) = v.sessions.edit(1) {
        s.lifecycle = lifecycle;
        s.closing_kind = (lifecycle == SessionLifecycle::Closing).then_some(ClosingKind::Archive);
    }
}

#[test]
fn turn_submit() {
    table(
        "turn.submit",
        world(),
        submit(),
        &[
            ("permission", permission),
            ("request_content", request_content),
            ("session_known", no_session),
            ("instance_known", no_instance),
            ("instance_alive", dead_instance),
            ("not_draining", draining),
            ("input_new", |v, _| {
                v.inputs.insert(Input {
                    id: InputId(1),
                    session_id: Some(SessionId(2)),
                    origin: Origin::Person,
                    actor: ActorId(1),
                    state: InputState::Queued,
                    reason: InputReason::None,
                    redirected_to: None,
                    turn_id: None,
                    created_at: v.now,
                    settled_at: None,
                });
            }),
            ("task_active", |v, _| archive(v, 1)),
            ("task_unbarred", |v, _| bar(v, 1)),
            ("session_not_closing", |v, _| close(v, SessionLifecycle::Closing)),
            ("session_open", |v, _| close(v, SessionLifecycle::Archived)),
            ("Queued", turn_under_way),
            ("environment_known", |v, _| v.environments.remove(1)),
            ("not_in_removal", |v, _| in_removal(v, 1)),
            ("environment_finished", |v, _| {
                v.environments.edit(1).unwrap().status = EnvironmentStatus::Creating;
            }),
            ("turn_new", |v, e| {
                turn_under_way(v, e);
                let row = *v.turns.id(900).unwrap();
                v.turns.remove(900);
                v.turns.insert(Turn { id: TurnId(1), session_id: SessionId(2), ..row });
            }),
            ("runtime_new", |v, _| {
                runtime(v, 1, 2);
                v.runtimes.edit(1).unwrap().session_id = SessionId(2);
            }),
        ],
    );
}

#[test]
fn turn_take_up() {
    let mut waiting = world().clone();
    waiting.inputs.insert(Input {
        id: InputId(7),
        session_id: Some(SessionId(1)),
        origin: Origin::Person,
        actor: ActorId(1),
        state: InputState::Queued,
        reason: InputReason::None,
        redirected_to: None,
        turn_id: None,
        created_at: waiting.now,
        settled_at: None,
    });
    waiting.commit();
    let take_up = Command::Turn(TurnCommand::TakeUp {
        session: SessionId(1),
        turn: TurnId(1),
        runtime: RuntimeId(1),
        runtime_kind: RuntimeKind::Local,
        instance: InstanceId(1),
    });
    table(
        "turn.take_up",
        &waiting,
        take_up,
        &[
            ("permission", permission),
            ("request_content", request_content),
            ("session_known", no_session),
            ("instance_known", no_instance),
            ("instance_alive", dead_instance),
            ("not_draining", draining),
            ("task_active", |v, _| archive(v, 1)),
            ("task_unbarred", |v, _| bar(v, 1)),
            ("session_not_closing", |v, _| close(v, SessionLifecycle::Closing)),
            ("session_open", |v, _| close(v, SessionLifecycle::Archived)),
            ("Unchanged", turn_under_way),
            ("environment_known", |v, _| v.environments.remove(1)),
            ("not_in_removal", |v, _| in_removal(v, 1)),
            ("environment_finished", |v, _| {
                v.environments.edit(1).unwrap().status = EnvironmentStatus::Creating;
            }),
            ("turn_new", |v, e| {
                turn_under_way(v, e);
                let row = *v.turns.id(900).unwrap();
                v.turns.remove(900);
                v.turns.insert(Turn { id: TurnId(1), session_id: SessionId(2), ..row });
            }),
            ("runtime_new", |v, _| {
                runtime(v, 1, 2);
                v.runtimes.edit(1).unwrap().session_id = SessionId(2);
            }),
        ],
    );
}

#[test]
fn session_close() {
    let begin = Command::Session(SessionCommand::BeginClose {
        session: SessionId(1),
        kind: ClosingKind::Delete,
        token: Token(5),
        automatic: true,
        force: false,
    });
    table(
        "session.begin_close",
        world(),
        begin,
        &[
            ("permission", permission),
            ("request_content", request_content),
            ("session_known", no_session),
            ("not_already_closing", |v, _| close(v, SessionLifecycle::Closing)),
            ("not_starred", |v, _| v.sessions.edit(1).unwrap().starred = true),
            ("no_turn_work", turn_under_way),
        ],
    );
    let commit = SessionCommand::CommitClose { session: SessionId(1), token: Token(5) };
    table(
        "session.commit_close",
        &after(&[begin]),
        Command::Session(commit),
        &[
            ("permission", permission),
            ("request_content", request_content),
            ("session_known", no_session),
            ("close_under_way", |v, _| close(v, SessionLifecycle::Open)),
            ("closing_token", |v, _| v.sessions.edit(1).unwrap().closing_token = Some(Token(6))),
            ("closing_lease", |v, _| v.sessions.edit(1).unwrap().closing_lease = Some(Time(0))),
            ("no_turn_work", turn_under_way),
            ("runtime_quiesced", |v, _| runtime(v, 900, 1)),
        ],
    );
}

fn ask(e: &mut Envelope, change: impl FnOnce(&mut OperationCommand)) {
    if let Command::Operation(o) = &mut e.command {
        change(o);
    }
}

#[test]
fn operation_reserve() {
    table(
        "operation.reserve",
        world(),
        reserve(8, 1, Trigger::Archive),
        &[
            ("permission", permission),
            ("request_content", request_content),
            ("operation_content", |v, _| {
                let template = *world().jobs.id(3).unwrap();
                let (id, task_id) = (JobId(70), TaskId(1));
                let content_hash = ContentHash(9);
                let operation_id = OperationId(8);
                v.jobs.insert(Job { id, task_id, content_hash, operation_id, ..template });
            }),
            ("task_known", no_task),
            ("job_new", |v, _| {
                let template = *world().jobs.id(3).unwrap();
                v.jobs.insert(Job { id: JobId(8), ..template });
            }),
            ("trigger_shape", |_, e| {
                ask(e, |o| {
                    if let OperationCommand::Reserve { cascade_root, .. } = o {
                        *cascade_root = Some(TaskId(1));
                    }
                });
            }),
            ("instance_known", no_instance),
            ("instance_alive", dead_instance),
            ("task_unbarred", |v, _| bar(v, 1)),
            ("task_not_busy", |v, e| {
                turn_under_way(v, e);
                ask(e, |o| {
                    if let OperationCommand::Reserve { refuse_busy, .. } = o {
                        *refuse_busy = true;
                    }
                });
            }),
            ("nothing_unsaved", |_, e| {
                ask(e, |o| {
                    if let OperationCommand::Reserve { unsaved, .. } = o {
                        *unsaved = Unsaved::TRACKED;
                    }
                });
            }),
        ],
    );
}

#[test]
fn operation_mutate() {
    let (operation, scope, instance) = (OperationId(8), Scope::Task, InstanceId(1));
    let base = after(&[
        create_session(8, 2, Some(1)),
        reserve(8, 1, Trigger::Delete),
        Command::Operation(OperationCommand::Snapshot { operation, scope, instance }),
    ]);
    let mutate = OperationCommand::Mutate { operation, scope, instance };
    table(
        "operation.mutate",
        &base,
        Command::Operation(mutate),
        &[
            ("permission", permission),
            ("request_content", request_content),
            ("barrier_held", |v, _| v.jobs.edit(8).unwrap().state = JobState::Cancelled),
            ("barrier_owner", |v, _| v.jobs.edit(8).unwrap().instance_id = Some(InstanceId(9))),
            ("barrier_lease", |v, _| v.jobs.edit(8).unwrap().lease_until = Some(Time(0))),
            ("scope_fits", |_, e| {
                ask(e, |o| {
                    if let OperationCommand::Mutate { scope, .. } = o {
                        *scope = Scope::Cascade;
                    }
                });
            }),
            ("snapshot_taken", |v, _| v.jobs.edit(8).unwrap().snapshot_version = 0),
            ("not_in_removal", |v, _| in_removal(v, 1)),
            ("borrower_keeps", |v, _| bar(v, 2)),
        ],
    );
}

#[test]
fn attempt_begin_and_persist() {
    // The slot of environment 1 has a row that is not on the disk: a recreation.
    let mut base = world().clone();
    base.repos.edit(1).unwrap().materialised = Materialised::No;
    base.commit();
    table(
        "attempt.begin",
        &base,
        begin(8, 1, 1),
        &[
            ("permission", permission),
            ("request_content", request_content),
            ("environment_known", |v, _| v.environments.remove(1)),
            ("root_known", |v, _| v.managed_roots.remove(1)),
            ("instance_known", no_instance),
            ("instance_alive", dead_instance),
            ("root_served", other_host),
            ("attempt_new", |v, _| {
                let template = *world().attempts.id(3).unwrap();
                v.attempts.insert(Attempt { id: AttemptId(8), ..template });
            }),
            ("task_active", |v, _| archive(v, 1)),
            ("task_unbarred", |v, _| bar(v, 1)),
            ("slot_unattempted", |v, _| {
                let template = *world().attempts.id(1).unwrap();
                let (id, state) = (AttemptId(70), AttemptState::Compensating);
                v.attempts.insert(Attempt { id, state, path: PathId(70), ..template });
            }),
            ("not_in_removal", |v, _| {
                v.repos.edit(1).unwrap().materialised = Materialised::Removing;
            }),
            ("slot_free", |v, _| v.repos.edit(1).unwrap().materialised = Materialised::Yes),
            ("repo_of_slot", |_, e| {
                if let Command::Attempt(AttemptCommand::Begin { repo, .. }) = &mut e.command {
                    *repo = RepoId(99);
                }
            }),
            ("recorded_branch", |_, e| {
                if let Command::Attempt(AttemptCommand::Begin { branch, .. }) = &mut e.command {
                    *branch = BranchId(99);
                }
            }),
            ("path_free", |v, _| v.repos.edit(3).unwrap().worktree_path = Some(PathId(8))),
        ],
    );
    let (attempt, token) = (AttemptId(8), Token(8));
    let mut made = base;
    for command in
        [begin(8, 1, 1), Command::Attempt(AttemptCommand::Materialised { attempt, token })]
    {
        let actor = Actor { id: ActorId(1), may: Permissions::ALL };
        let envelope = Envelope { request: None, content: ContentHash(0), actor, command };
        decide(&mut made, &envelope, &mut Output::default()).unwrap();
        made.commit();
    }
    let persist = Command::Attempt(AttemptCommand::Persist { attempt, token });
    table(
        "attempt.persist",
        &made,
        persist,
        &[
            ("permission", permission),
            ("request_content", request_content),
            ("attempt_known", |v, _| v.attempts.remove(8)),
            ("attempt_token", |v, _| v.attempts.edit(8).unwrap().token = Token(9)),
            ("attempt_open", |v, _| v.attempts.edit(8).unwrap().state = AttemptState::Compensating),
            ("attempt_verified", |v, _| v.attempts.edit(8).unwrap().state = AttemptState::Intended),
            ("Compensate { guard: PersistOwnerActive }", |v, _| archive(v, 1)),
            ("Compensate { guard: PersistUnbarred }", |v, _| bar(v, 1)),
            ("Compensate { guard: PersistSlotFree }", |v, _| {
                v.repos.edit(1).unwrap().materialised = Materialised::Yes;
            }),
        ],
    );
}
