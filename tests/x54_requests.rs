//! X54: the reply of a commit is lost, and the caller asks again with the same request id.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use freehold_git::GitWorkspaces;
use freehold_kernel::*;
use freehold_store::names::id_of;
use freehold_store::store::JournalRow;
use freehold_store::{
    Accepted, Composer, Host, HostError, NameError, NoRuntimes, OnThisThread, Outcome, Read, Rows,
    Store, StoreError, Submission,
};
use support::steps::{bob, dump, fresh, journal_length};
use support::{AnyStore, Ground, ann, refused};

/// A store on a line that is cut, once, after the commit and before its reply.
struct Lossy {
    inner: AnyStore,
    /// Which reply from now on is lost; 0 for none.
    cut: AtomicU32,
    lost: Mutex<Option<Outcome>>,
}

impl Store for Lossy {
    async fn submit(&self, submission: &Submission) -> Result<Outcome, StoreError> {
        let outcome = self.inner.submit(submission).await?;
        let count = |left: u32| left.checked_sub(1);
        if self.cut.fetch_update(Ordering::SeqCst, Ordering::SeqCst, count) == Ok(1) {
            *self.lost.lock().unwrap() = Some(outcome);
            return Err(StoreError::Unknown { detail: "the line was cut".to_owned() });
        }
        Ok(outcome)
    }

    async fn read(&self, reads: &[Read]) -> Result<Rows, StoreError> {
        self.inner.read(reads).await
    }

    async fn journal(&self, after: i64, limit: usize) -> Result<Vec<JournalRow>, StoreError> {
        self.inner.journal(after, limit).await
    }

    async fn id(&self) -> Result<String, StoreError> {
        self.inner.id().await
    }
}

type Composed = Result<Command, NameError>;

/// Somebody who asks everything twice.
struct Caller {
    ground: Ground,
    host: Host<Lossy, GitWorkspaces>,
    me: InstanceId,
    asked: Cell<u32>,
    seen: RefCell<BTreeSet<&'static str>>,
}

impl Caller {
    fn new() -> Caller {
        let ground = Ground::new();
        let inner = ground.store.open(&ground.clock);
        let store = Lossy { inner, cut: AtomicU32::new(0), lost: Mutex::new(None) };
        let git = GitWorkspaces::new();
        let mut host =
            Host::start(store, git, OnThisThread, Box::new(NoRuntimes), "test-machine").unwrap();
        ground.pace(&mut host);
        let me = InstanceId(id_of(Kind::InstanceId, &host.instance()));
        Caller { ground, host, me, asked: Cell::new(0), seen: RefCell::default() }
    }

    /// Asks without a request id.
    fn once(&self, compose: impl Fn(&mut Composer) -> Composed) -> Accepted {
        self.host.ask(&ann(), None, |c| compose(c)).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Asks, loses the reply, asks again, and asks something else under the same id. Returns the
    /// first outcome, which the line swallowed.
    fn twice(&self, code: &'static str, compose: impl Fn(&mut Composer) -> Composed) -> Accepted {
        self.seen.borrow_mut().insert(code);
        self.asked.set(self.asked.get() + 1);
        let id = format!("request {} {code}", self.asked.get());
        let first = self.lose(&id, code, &compose);
        let Outcome::Accepted(first) = first else { panic!("{code}: {first:?}") };
        assert!(!first.replayed, "{code}");
        let before = (dump(&self.host), journal_length(&self.host));
        // Whatever would be written again would be written with another time.
        self.ground.clock.advance(Span(1));
        let again = self.host.ask(&ann(), Some(&id), |c| compose(c));
        let again = again.unwrap_or_else(|e| panic!("{code}, asked again: {e}"));
        assert_eq!((again.reply, again.replayed), (first.reply, true), "{code}");
        // What had to be done was done for the first answer; the second brings nothing to do.
        assert!(again.warrant.is_none(), "{code} gave a second warrant");
        assert!(again.events.is_empty() && again.effects.is_empty(), "{code}: {again:?}");
        assert_eq!((dump(&self.host), journal_length(&self.host)), before, "{code} happened twice");
        let other = self.host.ask(&ann(), Some(&id), |c| {
            let command = compose(c)?;
            c.content(TableId::Workspaces, 1, "name", "another content");
            Ok(command)
        });
        assert_eq!(refused(other), Guard::RequestContent, "{code}");
        let other = self.host.ask(&ann(), Some(&id), |c| {
            let workspace = c.id("never made")?;
            Ok(Command::Task(TaskCommand::CreateWorkspace { workspace }))
        });
        assert_eq!(refused(other), Guard::RequestContent, "{code}");
        assert_eq!(
            (dump(&self.host), journal_length(&self.host)),
            before,
            "{code} was overwritten"
        );
        first
    }

    /// Asks, and loses the reply: what the store had said.
    fn lose(&self, id: &str, code: &str, compose: impl Fn(&mut Composer) -> Composed) -> Outcome {
        self.host.store().cut.store(1, Ordering::SeqCst);
        let lost = self.host.ask(&ann(), Some(id), |c| {
            let command = compose(c)?;
            assert_eq!(command.code(), code);
            Ok(command)
        });
        let error = lost.unwrap_err();
        assert!(matches!(error, HostError::Store(StoreError::Unknown { .. })), "{code}: {error}");
        assert!(error.to_string().contains("submit the same request again"), "{error}");
        self.host.store().lost.lock().unwrap().take().unwrap()
    }

    fn lapse(&self, seconds: i64) {
        for _ in 0..seconds.div_euclid(10) + 1 {
            self.ground.clock.advance(Span::seconds(10));
            self.host.renew().unwrap();
        }
    }

    fn rows(&self, tables: &[TableId]) -> View {
        let reads: Vec<Read> = tables.iter().map(|t| Read::all(*t)).collect();
        self.host.read(&reads).unwrap().view
    }

    fn begin(
        &self,
        attempt: AttemptId,
        token: Token,
        repo: RepoId,
        root: RootId,
        slug: &'static str,
    ) -> impl Fn(&mut Composer) -> Composed {
        let instance = self.me;
        move |c| {
            Ok(Command::Attempt(AttemptCommand::Begin {
                attempt,
                token,
                environment: c.id("e")?,
                repo,
                repository: c.text("/the/repository")?,
                slug: c.text(slug)?,
                root,
                path: c.text(&format!("/the/root/{slug}"))?,
                branch: c.text(slug)?,
                worktree: c.text(&format!("stamp {slug}"))?,
                branch_existed: false,
                start_commit: c.text("0123456789abcdef0123456789abcdef01234567")?,
                instance,
            }))
        }
    }

    fn reserve(
        &self,
        operation: &'static str,
        task: &'static str,
    ) -> impl Fn(&mut Composer) -> Composed {
        let (instance, job) = (self.me, JobId(fresh()));
        move |c| {
            Ok(Command::Operation(OperationCommand::Reserve {
                operation: c.id(operation)?,
                job,
                task: c.id(task)?,
                trigger: Trigger::Archive,
                environment: None,
                cascade_root: None,
                policy: UnsavedPolicy::Salvage,
                branch_policy: BranchPolicy::Keep,
                consent: Unsaved::NONE,
                unsaved: Unsaved::NONE,
                refuse_busy: false,
                instance,
                content: ContentHash(derive(1, 1)),
            }))
        }
    }

    fn of_operation(
        &self,
        operation: &'static str,
        make: impl Fn(OperationId, InstanceId) -> OperationCommand,
    ) -> impl Fn(&mut Composer) -> Composed {
        let instance = self.me;
        move |c| Ok(Command::Operation(make(c.id(operation)?, instance)))
    }

    fn archive(&self, operation: &'static str, task: &'static str) {
        let scope = Scope::Task;
        self.once(self.reserve(operation, task));
        self.once(self.of_operation(operation, |operation, instance| OperationCommand::Snapshot {
            operation,
            scope,
            instance,
        }));
        self.once(self.of_operation(operation, |operation, instance| OperationCommand::Mutate {
            operation,
            scope,
            instance,
        }));
    }
}

fn attempt(command: AttemptCommand) -> impl Fn(&mut Composer) -> Composed {
    move |_| Ok(Command::Attempt(command))
}

fn cleanup(command: CleanupCommand) -> impl Fn(&mut Composer) -> Composed {
    move |_| Ok(Command::Cleanup(command))
}

fn operator(command: OperatorCommand) -> impl Fn(&mut Composer) -> Composed {
    move |_| Ok(Command::Operator(command))
}

fn system(command: SystemCommand) -> impl Fn(&mut Composer) -> Composed {
    move |_| Ok(Command::System(command))
}

fn of_session(
    session: &'static str,
    make: impl Fn(SessionId) -> SessionCommand,
) -> impl Fn(&mut Composer) -> Composed {
    move |c| Ok(Command::Session(make(c.id(session)?)))
}

fn of_workspace(
    workspace: &'static str,
    operation: &'static str,
    make: impl Fn(WorkspaceId, OperationId) -> OperationCommand,
) -> impl Fn(&mut Composer) -> Composed {
    move |c| Ok(Command::Operation(make(c.id(workspace)?, c.id(operation)?)))
}

fn create_task(task: &'static str) -> impl Fn(&mut Composer) -> Composed {
    create_task_in("w", task)
}

fn create_task_in(
    workspace: &'static str,
    task: &'static str,
) -> impl Fn(&mut Composer) -> Composed {
    move |c| {
        let id = c.id::<TaskId>(task)?;
        c.content(TableId::Tasks, id.0, "title", "a title");
        Ok(Command::Task(TaskCommand::Create {
            task: id,
            workspace: c.id(workspace)?,
            parent: None,
            kind: TaskKind::Standard,
            expires_at: None,
        }))
    }
}

fn create_environment(
    environment: &'static str,
    container: Option<&'static str>,
) -> impl Fn(&mut Composer) -> Composed {
    move |c| {
        Ok(Command::Task(TaskCommand::CreateEnvironment {
            environment: c.id(environment)?,
            task: c.id("t")?,
            container: container.map(|h| c.id(h)).transpose()?,
            sandbox: None,
        }))
    }
}

fn submit(
    input: &'static str,
    turn: &'static str,
    me: InstanceId,
) -> impl Fn(&mut Composer) -> Composed {
    move |c| {
        let id = c.id::<InputId>(input)?;
        c.content(TableId::Inputs, id.0, "content", "words");
        Ok(Command::Turn(TurnCommand::Submit {
            session: c.id("s")?,
            input: id,
            origin: Origin::Person,
            turn: c.id(turn)?,
            runtime: c.id(&format!("runtime of {turn}"))?,
            runtime_kind: RuntimeKind::Local,
            instance: me,
        }))
    }
}

const HERE: Evidence =
    Evidence { found: Found::Here, unsaved: Unsaved::TRACKED, obstacle: Reason::None, head: None };
const MISSING: Evidence =
    Evidence { found: Found::Missing, unsaved: Unsaved::NONE, obstacle: Reason::None, head: None };

#[test]
fn x54_every_kind_of_command_is_answered_again_and_happens_once() {
    let caller = Caller::new();
    let root = foundations(&caller);
    attempts(&caller, root);
    sessions(&caller);
    turns(&caller);
    operations(&caller);
    workspaces(&caller);
    jobs_and_removals(&caller);
    let mut all: BTreeSet<&str> = Command::TABLE.iter().map(|(code, _)| *code).collect();
    // A question that changes nothing, asked anew under the path lock each time.
    all.remove("salvage.admit_restore");
    let seen = caller.seen.borrow().clone();
    let missing: Vec<_> = all.difference(&seen).collect();
    assert!(missing.is_empty(), "never asked twice: {missing:?}");
}

fn foundations(caller: &Caller) -> RootId {
    let (instance, root) = (InstanceId(fresh()), RootId(fresh()));
    caller.twice("instance.register", move |c| {
        let host = c.id("test-machine")?;
        Ok(Command::System(SystemCommand::RegisterInstance { instance, host }))
    });
    caller.twice("instance.renew", system(SystemCommand::RenewInstance { instance }));
    caller.twice("instance.drain", system(SystemCommand::Drain { instance, draining: true }));
    caller.twice("root.register", move |c| {
        let (host, path) = (c.id("test-machine")?, c.text("/the/root")?);
        Ok(Command::Operator(OperatorCommand::RegisterRoot { root, host, path }))
    });
    let settings = Settings {
        trash_retention: Span::seconds(100),
        root_patience: Span::seconds(100),
        ..Settings::DEFAULT
    };
    caller.twice("settings.change", operator(OperatorCommand::ChangeSettings { settings }));
    caller.twice("workspace.create", |c| {
        let workspace = c.id::<WorkspaceId>("w")?;
        c.content(TableId::Workspaces, workspace.0, "name", "a name");
        Ok(Command::Task(TaskCommand::CreateWorkspace { workspace }))
    });
    caller.twice("task.create", create_task("t"));
    caller.once(create_task("u"));
    caller.once(create_task("v"));
    caller.twice("task.move", |c| {
        Ok(Command::Task(TaskCommand::Move { task: c.id("u")?, parent: Some(c.id("v")?) }))
    });
    caller.twice("environment.create", create_environment("e", Some("box")));
    caller.once(create_environment("e2", None));
    caller.once(create_environment("e3", None));
    caller.twice("environment.transfer", |c| {
        Ok(Command::Task(TaskCommand::Transfer { environment: c.id("e3")?, to: c.id("u")? }))
    });
    root
}

fn attempts(caller: &Caller, root: RootId) {
    let fresh_attempt = || (AttemptId(fresh()), Token(fresh()), RepoId(fresh()));
    let (id, token, repo) = fresh_attempt();
    caller.twice("attempt.begin", caller.begin(id, token, repo, root, "one"));
    caller.twice("attempt.renew", attempt(AttemptCommand::Renew { attempt: id, token }));
    caller.twice(
        "attempt.materialised",
        attempt(AttemptCommand::Materialised { attempt: id, token }),
    );
    caller.twice("attempt.persist", attempt(AttemptCommand::Persist { attempt: id, token }));
    caller.twice("repo.mark_merged", move |_| Ok(Command::Task(TaskCommand::MarkMerged { repo })));
    let unmanaged = RepoId(fresh());
    caller.twice("repo.record_unmanaged", move |c| {
        Ok(Command::Task(TaskCommand::RecordUnmanaged {
            repo: unmanaged,
            environment: c.id("e")?,
            repository: c.text("/the/repository")?,
            slug: c.text("main")?,
            path: c.text("/the/repository")?,
            branch: c.text("main")?,
        }))
    });
    // One that is given up and undone.
    let (id, token, repo) = fresh_attempt();
    caller.once(caller.begin(id, token, repo, root, "two"));
    caller.twice("attempt.give_up", attempt(AttemptCommand::GiveUp { attempt: id, token }));
    let undo = |removal: RemovalId, removal_token: Token| {
        attempt(AttemptCommand::Compensate {
            attempt: id,
            token,
            removal,
            removal_token,
            instance: caller.me,
            evidence: MISSING,
        })
    };
    let (removal, removal_token) = (RemovalId(fresh()), Token(fresh()));
    let first = caller.twice("attempt.compensate", undo(removal, removal_token));
    assert!(first.warrant.is_some(), "the first answer brought a warrant; the second did not");
    caller.twice(
        "removal.record_failure",
        cleanup(CleanupCommand::RecordFailure {
            removal,
            token: removal_token,
            reason: Reason::InUse,
            in_place: true,
        }),
    );
    let (removal, old_token, token) = (RemovalId(fresh()), Token(fresh()), Token(fresh()));
    caller.once(undo(removal, old_token));
    let instance = caller.me;
    caller.twice(
        "removal.take_over",
        cleanup(CleanupCommand::TakeOverRemoval { removal, old_token, token, instance }),
    );
    caller.twice("removal.renew", cleanup(CleanupCommand::RenewRemoval { removal, token }));
    use RemovalStep::*;
    for step in [Salvaged, Renamed, Compared, Unregistered, BranchSettled, Purged] {
        let (found_something, salvage) = (false, None);
        let record = CleanupCommand::RecordStep { removal, token, step, found_something, salvage };
        caller.twice("removal.record_step", cleanup(record));
    }
    // One whose maker is gone.
    let (id, token, repo) = fresh_attempt();
    caller.once(caller.begin(id, token, repo, root, "three"));
    caller.once(attempt(AttemptCommand::Materialised { attempt: id, token }));
    caller.lapse(60);
    let adopted = caller.twice(
        "attempt.recover",
        attempt(AttemptCommand::Recover {
            attempt: id,
            token: Token(fresh()),
            instance,
            evidence: HERE,
        }),
    );
    assert_eq!(adopted.reply, Reply::Adopted);
}

fn sessions(caller: &Caller) {
    caller.twice("session.create", |c| {
        let session = c.id::<SessionId>("s")?;
        c.content(TableId::Sessions, session.0, "name", "a name");
        Ok(Command::Session(SessionCommand::Create {
            session,
            task: c.id("t")?,
            environment: None,
            source: SessionSource::Person,
            parent: None,
        }))
    });
    caller.twice("session.link", |c| {
        Ok(Command::Session(SessionCommand::Link { session: c.id("s")?, environment: c.id("e2")? }))
    });
    caller.twice(
        "session.star",
        of_session("s", |session| SessionCommand::Star { session, starred: true }),
    );
    let begin = |token| {
        of_session("s", move |session| SessionCommand::BeginClose {
            session,
            kind: ClosingKind::Archive,
            token,
            automatic: false,
            force: false,
        })
    };
    let token = Token(fresh());
    caller.twice("session.begin_close", begin(token));
    caller.twice(
        "session.abort_close",
        of_session("s", move |session| SessionCommand::AbortClose { session, token }),
    );
    let token = Token(fresh());
    caller.once(begin(token));
    let closed = caller.twice(
        "session.commit_close",
        of_session("s", move |session| SessionCommand::CommitClose { session, token }),
    );
    assert_eq!(closed.reply, Reply::Closed);
    caller.twice(
        "session.unarchive",
        of_session("s", |session| SessionCommand::Unarchive { session }),
    );
    caller.once(begin(Token(fresh())));
    caller.lapse(30);
    caller.twice("recovery.closing", |c| {
        Ok(Command::System(SystemCommand::RecoverClosing { session: c.id("s")? }))
    });
}

fn turns(caller: &Caller) {
    let me = caller.me;
    let of_turn = |make: fn(TurnId, InstanceId) -> TurnCommand| {
        move |c: &mut Composer| -> Composed { Ok(Command::Turn(make(c.id("turn")?, me))) }
    };
    let first = caller.twice("turn.submit", submit("input", "turn", me));
    assert_eq!(first.effects.len(), 1, "the turn is started by the first answer only");
    caller.twice("turn.renew", of_turn(|turn, instance| TurnCommand::Renew { turn, instance }));
    caller.twice(
        "turn.advance",
        of_turn(|turn, _| TurnCommand::Advance { turn, phase: TurnPhase::Running }),
    );
    let epoch = caller.rows(&[TableId::Sessions]).sessions.iter().next().unwrap().epoch;
    caller.twice(
        "session.record_activity",
        of_session("s", move |session| SessionCommand::RecordActivity {
            session,
            epoch,
            activity: Activity::Running,
        }),
    );
    assert_eq!(caller.once(submit("queued", "unused", me)).reply, Reply::Queued);
    caller.twice("turn.cancel_input", |c| {
        Ok(Command::Turn(TurnCommand::CancelInput { input: c.id("queued")? }))
    });
    let report = |status| {
        move |c: &mut Composer| -> Composed {
            let runtime = c.id("runtime of turn")?;
            Ok(Command::Turn(TurnCommand::ReportRuntime { runtime, status }))
        }
    };
    caller.twice("turn.report_runtime", report(RuntimeStatus::Running));
    caller.twice("turn.end", |c| {
        Ok(Command::Turn(TurnCommand::End {
            turn: c.id("turn")?,
            outcome: TurnOutcome::Completed,
            next_turn: c.id("next")?,
            next_runtime: c.id("next runtime")?,
        }))
    });
    caller.once(submit("input 2", "turn 2", me));
    assert_eq!(caller.once(submit("waits", "unused too", me)).reply, Reply::Queued);
    caller.lapse(30);
    caller.twice("recovery.turn", |c| {
        let (turn, liveness) = (c.id("turn 2")?, Liveness::Dead);
        Ok(Command::System(SystemCommand::RecoverTurn { turn, liveness }))
    });
    let taken = caller.twice("turn.take_up", |c| {
        Ok(Command::Turn(TurnCommand::TakeUp {
            session: c.id("s")?,
            turn: c.id("turn 3")?,
            runtime: c.id("runtime of turn 3")?,
            runtime_kind: RuntimeKind::Local,
            instance: me,
        }))
    });
    assert_eq!(taken.effects.len(), 1, "the turn is started by the first answer only");
    caller.once(|c| {
        Ok(Command::Turn(TurnCommand::End {
            turn: c.id("turn 3")?,
            outcome: TurnOutcome::Completed,
            next_turn: c.id("none")?,
            next_runtime: c.id("none of it")?,
        }))
    });
    caller.once(report(RuntimeStatus::Stopped));
    // One whose instance is gone, and which nobody can reach any more.
    let gone = InstanceId(fresh());
    caller.once(move |c| {
        let host = c.id("test-machine")?;
        Ok(Command::System(SystemCommand::RegisterInstance { instance: gone, host }))
    });
    caller.once(submit("input 4", "turn 4", gone));
    caller.lapse(30);
    caller.once(|c| {
        let (turn, liveness) = (c.id("turn 4")?, Liveness::Unknown);
        Ok(Command::System(SystemCommand::RecoverTurn { turn, liveness }))
    });
    caller.twice("runtime.declare_stopped", |c| {
        let runtime = c.id("runtime of turn 4")?;
        Ok(Command::Operator(OperatorCommand::DeclareStopped { runtime }))
    });
}

fn operations(caller: &Caller) {
    let scope = Scope::Task;
    caller.twice("operation.reserve", caller.reserve("o1", "v"));
    caller.twice(
        "operation.renew_barrier",
        caller.of_operation("o1", |operation, instance| OperationCommand::RenewBarrier {
            operation,
            instance,
        }),
    );
    caller.twice(
        "operation.snapshot",
        caller.of_operation("o1", move |operation, instance| OperationCommand::Snapshot {
            operation,
            scope,
            instance,
        }),
    );
    caller.twice(
        "operation.abort",
        caller.of_operation("o1", |operation, instance| OperationCommand::Abort {
            operation,
            instance,
        }),
    );
    caller.once(caller.reserve("o2", "v"));
    caller.once(caller.of_operation("o2", move |operation, instance| OperationCommand::Snapshot {
        operation,
        scope,
        instance,
    }));
    caller.twice(
        "operation.mutate",
        caller.of_operation("o2", move |operation, instance| OperationCommand::Mutate {
            operation,
            scope,
            instance,
        }),
    );
    caller.twice("task.unarchive", |c| {
        let task = c.id("v")?;
        Ok(Command::Operation(OperationCommand::Unarchive { task, cascade: false }))
    });
    caller.once(caller.reserve("o3", "v"));
    caller.lapse(30);
    let jobs = caller.rows(&[TableId::Jobs]).jobs;
    let job = jobs.iter().find(|j| j.state == JobState::Prepared).unwrap().id;
    caller.twice("recovery.barrier", system(SystemCommand::RecoverBarrier { job }));
}

fn workspaces(caller: &Caller) {
    let instance = caller.me;
    caller.once(|c| Ok(Command::Task(TaskCommand::CreateWorkspace { workspace: c.id("w2")? })));
    let begin =
        |by| {
            of_workspace("w2", by, move |workspace, operation| {
                OperationCommand::BeginWorkspaceDelete { workspace, operation, instance }
            })
        };
    caller.twice("workspace.begin_delete", begin("d1"));
    caller.twice(
        "workspace.abort_delete",
        of_workspace("w2", "d1", |workspace, operation| OperationCommand::AbortWorkspaceDelete {
            workspace,
            operation,
        }),
    );
    caller.once(begin("d2"));
    caller.lapse(30);
    caller.twice("recovery.workspace_delete", |c| {
        Ok(Command::System(SystemCommand::RecoverWorkspaceDelete { workspace: c.id("w2")? }))
    });
    caller.once(begin("d3"));
    caller.twice(
        "workspace.finish_delete",
        of_workspace("w2", "d3", move |workspace, operation| {
            OperationCommand::FinishWorkspaceDelete { workspace, operation, instance }
        }),
    );
}

fn jobs_and_removals(caller: &Caller) {
    let instance = caller.me;
    caller.archive("o4", "t");
    let rows = caller.rows(&[TableId::JobRoots, TableId::Jobs, TableId::Resources]);
    let job = rows.jobs.iter().find(|j| j.state == JobState::Pending).copied().unwrap();
    let part = |rooted: bool| {
        let of = |r: &&JobRoot| r.job_id == job.id && r.root_id.is_some() == rooted;
        rows.job_roots.iter().find(of).unwrap().id
    };
    let claim = |job_root, token| cleanup(CleanupCommand::Claim { job_root, token, instance });
    // What lies in no root: a container.
    let (job_root, token) = (part(false), Token(fresh()));
    caller.once(claim(job_root, token));
    let container = rows.resources.iter().find(|r| r.kind == ResourceKind::Container).unwrap().id;
    let (resource, liveness) = (container, Liveness::Dead);
    caller.twice(
        "cleanup.settle_resource",
        cleanup(CleanupCommand::SettleResource { resource, token, liveness }),
    );
    caller.twice("cleanup.finish", cleanup(CleanupCommand::Finish { job_root, token }));
    // What lies in the root: two worktrees.
    let (job_root, token) = (part(true), Token(fresh()));
    caller.twice("cleanup.claim", claim(job_root, token));
    caller.twice("cleanup.renew", cleanup(CleanupCommand::Renew { job_root, token }));
    let mut worktrees = rows.resources.iter().filter(|r| r.job_root_id == job_root).map(|r| r.id);
    let (resource, other) = (worktrees.next().unwrap(), worktrees.next().unwrap());
    let (removal, removal_token) = (RemovalId(fresh()), Token(fresh()));
    let permitted = caller.twice(
        "cleanup.permit",
        cleanup(CleanupCommand::Permit { resource, token, removal, removal_token, evidence: HERE }),
    );
    assert_eq!(permitted.reply, Reply::Permitted { removal });
    assert!(permitted.warrant.is_some(), "the first answer brought a warrant; the second did not");
    let salvage = SalvageId(fresh());
    let facts = SalvageFacts { id: salvage, contents: Unsaved::TRACKED, size: 5 };
    use RemovalStep::*;
    for step in [Salvaged, Renamed, Compared, Unregistered, BranchSettled] {
        caller.twice("removal.record_step", move |c| {
            c.content(TableId::Salvage, salvage.0, "ref_name", "refs/salvage/one");
            Ok(Command::Cleanup(CleanupCommand::RecordStep {
                removal,
                token: removal_token,
                step,
                found_something: true,
                salvage: (step == Salvaged).then_some(facts),
            }))
        });
    }
    caller.twice(
        "cleanup.put_back",
        cleanup(CleanupCommand::PutBack { job_root, token, not_before: None }),
    );
    let token = Token(fresh());
    caller.once(claim(job_root, token));
    caller.lapse(30);
    caller.twice("cleanup.rescue", cleanup(CleanupCommand::Rescue { job_root, token }));
    caller.lapse(200);
    caller.twice("cleanup.give_up_root", cleanup(CleanupCommand::GiveUpRoot { job_root }));
    caller.twice("job.retry", operator(OperatorCommand::Retry { job: job.id }));
    let token = Token(fresh());
    caller.once(claim(job_root, token));
    caller.twice("cleanup.park", cleanup(CleanupCommand::Park { job_root, token }));
    caller.once(operator(OperatorCommand::Retry { job: job.id }));
    caller.twice(
        "job.forget_resource",
        operator(OperatorCommand::ForgetResource { resource: other }),
    );
    caller.twice("salvage.mark_restored", operator(OperatorCommand::MarkRestored { salvage }));
    let kept = caller.rows(&[TableId::Trash]).trash;
    let trash = kept.iter().find(|t| t.state == TrashState::Kept).unwrap().id;
    let (removal, token) = (RemovalId(fresh()), Token(fresh()));
    caller.twice("trash.purge", cleanup(CleanupCommand::Purge { trash, removal, token, instance }));
    // What an archive left, taken up by the system.
    let reconcile = JobId(fresh());
    caller.twice("recovery.reconcile", move |c| {
        let environment: EnvironmentId = c.id("e")?;
        Ok(Command::System(SystemCommand::Reconcile {
            task: c.id("t")?,
            environment,
            job: reconcile,
            operation: OperationId(derive(job.authority.0, environment.0)),
        }))
    });
    caller.archive("o5", "u");
    let pending = caller.rows(&[TableId::Jobs]).jobs;
    let of = |j: &&Job| j.state == JobState::Pending && j.trigger == Trigger::Archive;
    let cancelled = pending.iter().find(of).unwrap().id;
    caller.twice("job.cancel", operator(OperatorCommand::Cancel { job: cancelled }));
    // The first worktree's purge comes to its end, and then its salvage.
    let (step, found_something) = (Purged, true);
    let purged =
        CleanupCommand::RecordStep { removal, token, step, found_something, salvage: None };
    caller.once(cleanup(purged));
    let settings = Settings {
        salvage_retention: Span::seconds(10),
        salvage_consent: Some(ContentHash(derive(7, 7))),
        trash_retention: Span::seconds(100),
        ..Settings::DEFAULT
    };
    caller.once(operator(OperatorCommand::ChangeSettings { settings }));
    caller.lapse(10);
    caller.twice("salvage.expire", cleanup(CleanupCommand::ExpireSalvage { salvage }));
    restored(caller);
}

/// The other worktree is trashed too, and comes back.
fn restored(caller: &Caller) {
    let instance = caller.me;
    let unarchive = || {
        caller.once(|c| {
            let task = c.id("t")?;
            Ok(Command::Operation(OperationCommand::Unarchive { task, cascade: false }))
        });
    };
    unarchive();
    caller.archive("o6", "t");
    let rows = caller.rows(&[TableId::JobRoots, TableId::Jobs, TableId::Resources]);
    let job =
        rows.jobs.iter().filter(|j| j.state == JobState::Pending).max_by_key(|j| j.created_at);
    let job = job.unwrap().id;
    // No worktree goes before the container is known to be stopped (C-6).
    let container =
        rows.resources.iter().find(|r| r.job_id == job && r.kind == ResourceKind::Container);
    let (resource, job_root) = container.map(|r| (r.id, r.job_root_id)).unwrap();
    let (token, liveness) = (Token(fresh()), Liveness::Dead);
    caller.once(cleanup(CleanupCommand::Claim { job_root, token, instance }));
    caller.once(cleanup(CleanupCommand::SettleResource { resource, token, liveness }));
    caller.once(cleanup(CleanupCommand::Finish { job_root, token }));
    let resource = rows
        .resources
        .iter()
        .find(|r| r.job_id == job && r.kind == ResourceKind::Worktree && r.managed)
        .copied()
        .unwrap();
    let (job_root, token) = (resource.job_root_id, Token(fresh()));
    caller.once(cleanup(CleanupCommand::Claim { job_root, token, instance }));
    let (removal, removal_token) = (RemovalId(fresh()), Token(fresh()));
    let evidence = Evidence { unsaved: Unsaved::NONE, ..HERE };
    let resource = resource.id;
    caller.once(cleanup(CleanupCommand::Permit {
        resource,
        token,
        removal,
        removal_token,
        evidence,
    }));
    use RemovalStep::*;
    for step in [Salvaged, Renamed, Compared, Unregistered, BranchSettled] {
        let (token, found_something, salvage) = (removal_token, true, None);
        let done = CleanupCommand::RecordStep { removal, token, step, found_something, salvage };
        caller.once(cleanup(done));
    }
    unarchive();
    let reads = [Read::all(TableId::Trash), Read::all(TableId::Repos)];
    let rows = caller.host.read(&reads).unwrap();
    let trash = *rows.view.trash.iter().find(|t| t.state == TrashState::Kept).unwrap();
    let row = *rows.view.repos.id(trash.repo_id.unwrap().0).unwrap();
    let (id, token) = (AttemptId(fresh()), Token(fresh()));
    caller.twice("trash.restore", |c| {
        c.know(&rows.names);
        Ok(Command::Attempt(AttemptCommand::BeginRestore {
            attempt: id,
            token,
            trash: trash.id,
            environment: row.task_environment_id,
            repo: row.id,
            path: trash.path,
            instance,
        }))
    });
    caller.once(attempt(AttemptCommand::Materialised { attempt: id, token }));
    caller.once(attempt(AttemptCommand::Persist { attempt: id, token }));
    let rows = caller.rows(&[TableId::Trash]);
    assert_eq!(rows.trash.id(trash.id.0).unwrap().state, TrashState::Gone);
}

/// A refusal that will not pass by itself is an outcome like any other; one that may pass is not
/// remembered.
#[test]
fn x54_a_final_refusal_is_answered_again_and_a_passing_one_is_not() {
    let caller = Caller::new();
    caller.once(|c| Ok(Command::Task(TaskCommand::CreateWorkspace { workspace: c.id("w")? })));
    let outcome = caller.lose("final", "task.unarchive", |c| {
        Ok(Command::Operation(OperationCommand::Unarchive { task: c.id("t")?, cascade: false }))
    });
    let Outcome::Refused(first) = outcome else { panic!("{outcome:?}") };
    assert_eq!((first.refusal.guard, first.replayed), (Guard::TaskKnown, false));
    caller.once(create_task("t"));
    caller.archive("o", "t");
    let before = dump(&caller.host);
    let again = caller.host.ask(&ann(), Some("final"), |c| {
        Ok(Command::Operation(OperationCommand::Unarchive { task: c.id("t")?, cascade: false }))
    });
    match again {
        Err(HostError::Refused(again)) => {
            assert_eq!((again.refusal.guard, again.replayed), (Guard::TaskKnown, true));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(dump(&caller.host), before, "the first outcome stands");
    // A fresh request is decided afresh.
    caller.once(|c| {
        Ok(Command::Operation(OperationCommand::Unarchive { task: c.id("t")?, cascade: false }))
    });
    // One that may pass: a barrier.
    caller.once(caller.reserve("o2", "t"));
    let create = |c: &mut Composer| {
        Ok(Command::Session(SessionCommand::Create {
            session: c.id("s")?,
            task: c.id("t")?,
            environment: None,
            source: SessionSource::Person,
            parent: None,
        }))
    };
    let outcome = caller.lose("passing", "session.create", create);
    let Outcome::Refused(first) = outcome else { panic!("{outcome:?}") };
    assert_eq!(first.refusal.guard, Guard::TaskUnbarred);
    caller.once(
        caller.of_operation("o2", |operation, instance| OperationCommand::Abort {
            operation,
            instance,
        }),
    );
    let accepted = caller.host.ask(&ann(), Some("passing"), create).unwrap();
    assert_eq!((accepted.reply, accepted.replayed), (Reply::Done, false));
    let again = caller.host.ask(&ann(), Some("passing"), create).unwrap();
    assert!(again.replayed);
}

/// Who lacks the permission learns nothing of the first outcome, and spoils nothing.
#[test]
fn x54_a_request_is_not_answered_to_somebody_without_the_permission() {
    let caller = Caller::new();
    let create = |c: &mut Composer| {
        Ok(Command::Task(TaskCommand::CreateWorkspace { workspace: c.id("w")? }))
    };
    assert_eq!(refused(caller.host.ask(&bob(), Some("r"), create)), Guard::Permission);
    let done = caller.host.ask(&ann(), Some("r"), create).unwrap();
    assert!(!done.replayed, "the refusal for lack of permission was remembered");
    assert_eq!(refused(caller.host.ask(&bob(), Some("r"), create)), Guard::Permission);
}

/// A host renews itself before it asks; a renewal whose reply is lost is no answer to what was
/// asked, which then was not even sent (found by a run that was held up for five seconds).
#[test]
fn x54_a_lost_reply_of_a_renewal_is_not_the_commands_answer() {
    let mut caller = Caller::new();
    let moments = Arc::new(Mutex::new(Instant::now()));
    let told = Arc::clone(&moments);
    caller.host.paced_by(move || *told.lock().unwrap());
    let hold_up = |seconds| *moments.lock().unwrap() += Duration::from_secs(seconds);
    let me = caller.host.instance();
    let lease = |caller: &Caller| {
        let rows = caller.rows(&[TableId::Instances]);
        rows.instances.id(id_of(Kind::InstanceId, &me)).unwrap().lease_until
    };
    let create = |name: &'static str| {
        move |c: &mut Composer| -> Composed {
            Ok(Command::Task(TaskCommand::CreateWorkspace { workspace: c.id(name)? }))
        }
    };
    // Nothing passed, so nothing is renewed, and the reply that is lost is the command's own.
    caller.ground.clock.advance(Span::seconds(1));
    let before = lease(&caller);
    assert!(matches!(caller.lose("a", "workspace.create", create("a")), Outcome::Accepted(_)));
    assert_eq!(lease(&caller), before);
    // Held up: the renewal goes first, and its reply is the one that is lost.
    hold_up(60);
    caller.host.store().cut.store(1, Ordering::SeqCst);
    let done = caller.host.ask(&ann(), None, create("b")).unwrap();
    assert_eq!((done.reply, done.replayed), (Reply::Done, false));
    assert!(matches!(*caller.host.store().lost.lock().unwrap(), Some(Outcome::Accepted(_))));
    assert!(lease(&caller) > before, "the renewal itself was carried out");
    // It counts as not heard: the next question renews again, and then it is enough.
    caller.ground.clock.advance(Span::seconds(1));
    let before = lease(&caller);
    caller.once(create("c"));
    assert!(lease(&caller) > before, "a renewal that was not heard is not tried again");
    caller.ground.clock.advance(Span::seconds(1));
    let before = lease(&caller);
    caller.once(create("d"));
    assert_eq!(lease(&caller), before, "renewed for each question");
    // A lease that lapsed unnoticed: the command is refused, the reply to the renewal is lost,
    // and the command goes again all the same.
    caller.once(create_task_in("d", "t"));
    caller.ground.clock.advance(Span::seconds(100));
    caller.host.store().cut.store(2, Ordering::SeqCst);
    assert!(!caller.once(caller.reserve("o", "t")).replayed);
    assert_eq!(caller.host.store().cut.load(Ordering::SeqCst), 0);
}

/// A host that slept is refused once, says that it lives, and asks again: the refusal is not the
/// request's outcome for ever.
#[test]
fn x54_the_request_of_a_host_that_slept_is_carried_out() {
    let caller = Caller::new();
    caller.once(|c| Ok(Command::Task(TaskCommand::CreateWorkspace { workspace: c.id("w")? })));
    caller.once(create_task("t"));
    caller.ground.clock.advance(Span::seconds(1000));
    let wanted = caller.reserve("o", "t");
    let done = caller.host.ask(&ann(), Some("r"), &wanted).unwrap();
    assert!(!done.replayed);
    let again = caller.host.ask(&ann(), Some("r"), &wanted).unwrap();
    assert_eq!((again.reply, again.replayed), (done.reply, true));
}

/// A restart in between: the outcome is in the store, not in the process.
#[test]
fn x54_the_first_outcome_survives_a_restart() {
    let caller = Caller::new();
    caller.once(|c| Ok(Command::Task(TaskCommand::CreateWorkspace { workspace: c.id("w")? })));
    let outcome = caller.lose("r", "task.create", create_task("t"));
    assert!(matches!(outcome, Outcome::Accepted(_)));
    let Caller { ground, host, .. } = caller;
    drop(host);
    let host = ground.host();
    let before = dump(&host);
    let again = host.ask(&ann(), Some("r"), create_task("t")).unwrap();
    assert!(again.replayed);
    assert_eq!(dump(&host), before);
}
