//! One task's life with a host's own names and texts, compared at every step: a worktree is made,
//! sessions talk, one is deleted, the task is archived, cleaned up, unarchived and deleted.

use freehold_kernel::*;

use crate::rig::Rig;
use crate::speech::{id, mutate, own, reserve, snapshot, text};
use crate::twin::Twin;

/// The process that does it all.
const OWNER: &str = "process 1";

fn evidence(found: Found) -> Evidence {
    Evidence { found, unsaved: Unsaved::UNTRACKED, obstacle: Reason::None, head: None }
}

fn begin_the_world<R: Rig>(twin: &mut Twin<R>) {
    twin.says(|c, _| {
        Command::System(SystemCommand::RegisterInstance {
            instance: id(c, OWNER),
            host: id(c, "laptop"),
        })
    });
    twin.says(|c, _| {
        Command::Operator(OperatorCommand::RegisterRoot {
            root: id(c, "root"),
            host: id(c, "laptop"),
            path: text(c, "/home/ann/trees"),
        })
    });
    twin.says(|c, _| {
        let workspace = id(c, "w");
        Command::Task(TaskCommand::CreateWorkspace { workspace })
    });
    twin.says(|c, _| {
        let task: TaskId = id(c, "board/7");
        c.content(TableId::Tasks, task.0, "title", "Räum auf");
        Command::Task(TaskCommand::Create {
            task,
            workspace: id(c, "w"),
            parent: None,
            kind: TaskKind::Standard,
            expires_at: None,
        })
    });
    twin.says(|c, _| {
        let environment: EnvironmentId = id(c, "env");
        c.content(TableId::Environments, environment.0, "workspace_path", "/home/ann/trees/7");
        Command::Task(TaskCommand::CreateEnvironment {
            environment,
            task: id(c, "board/7"),
            container: None,
            sandbox: None,
        })
    });
}

fn make_a_worktree<R: Rig>(twin: &mut Twin<R>) {
    twin.says(|c, _| {
        Command::Attempt(AttemptCommand::Begin {
            attempt: AttemptId(own(1)),
            token: Token(own(2)),
            environment: id(c, "env"),
            repo: RepoId(own(3)),
            repository: id(c, "ann/project"),
            slug: text(c, "fix-it"),
            root: id(c, "root"),
            path: text(c, "/home/ann/trees/7/0002"),
            branch: text(c, "fix-it"),
            worktree: text(c, "stamp 1"),
            branch_existed: false,
            start_commit: text(c, "abc123"),
            instance: id(c, OWNER),
        })
    });
    let (attempt, token) = (AttemptId(own(1)), Token(own(2)));
    twin.says(|_, _| Command::Attempt(AttemptCommand::Materialised { attempt, token }));
    twin.says(|_, _| Command::Attempt(AttemptCommand::Persist { attempt, token }));
}

fn work_in_sessions<R: Rig>(twin: &mut Twin<R>) {
    for session in ["s1", "s2"] {
        twin.says(|c, _| {
            Command::Session(SessionCommand::Create {
                session: id(c, session),
                task: id(c, "board/7"),
                environment: None,
                source: SessionSource::Person,
                parent: None,
            })
        });
    }
    for (n, reply) in [(1u128, Reply::Done), (2, Reply::Queued)] {
        let said = twin.says(|c, _| {
            let input: InputId = id(c, &format!("input {n}"));
            c.content(TableId::Inputs, input.0, "content", "go on \u{1f980}");
            Command::Turn(TurnCommand::Submit {
                session: id(c, "s1"),
                input,
                origin: Origin::Person,
                turn: TurnId(own(10 + n)),
                runtime: RuntimeId(own(20 + n)),
                runtime_kind: RuntimeKind::Local,
                instance: id(c, OWNER),
            })
        });
        assert_eq!(said, reply);
    }
    for (turn, next) in [(11, 15), (15, 16)] {
        twin.says(|_, _| {
            Command::Turn(TurnCommand::End {
                turn: TurnId(own(turn)),
                outcome: TurnOutcome::Completed,
                next_turn: TurnId(own(next)),
                next_runtime: RuntimeId(own(next + 20)),
            })
        });
    }
    let running: Vec<RuntimeId> = twin.everything().view.runtimes.iter().map(|r| r.id).collect();
    for runtime in running {
        twin.says(|_, _| {
            let status = RuntimeStatus::Stopped;
            Command::Turn(TurnCommand::ReportRuntime { runtime, status })
        });
    }
}

fn delete_a_session<R: Rig>(twin: &mut Twin<R>) {
    twin.says(|c, _| {
        Command::Session(SessionCommand::BeginClose {
            session: id(c, "s1"),
            kind: ClosingKind::Delete,
            token: Token(own(30)),
            automatic: false,
            force: false,
        })
    });
    twin.refuses(Guard::ClosingToken, |c| {
        let session = id(c, "s1");
        Command::Session(SessionCommand::CommitClose { session, token: Token(own(31)) })
    });
    twin.says(|c, _| {
        let session = id(c, "s1");
        Command::Session(SessionCommand::CommitClose { session, token: Token(own(30)) })
    });
    twin.refuses(Guard::SessionNotDeleted, |c| {
        let session = id(c, "s1");
        Command::Session(SessionCommand::Star { session, starred: true })
    });
}

fn archive<R: Rig>(twin: &mut Twin<R>) {
    twin.says(|c, _| reserve(c, "archive it", "board/7", 40, Trigger::Archive, OWNER));
    twin.refuses(Guard::TaskUnbarred, |c| {
        Command::Session(SessionCommand::Create {
            session: id(c, "s3"),
            task: id(c, "board/7"),
            environment: None,
            source: SessionSource::Person,
            parent: None,
        })
    });
    twin.says(|c, _| snapshot(c, "archive it", OWNER));
    twin.says(|c, _| mutate(c, "archive it", OWNER));
}

fn waiting(view: &View) -> Resource {
    let waits =
        |r: &&Resource| r.kind == ResourceKind::Worktree && r.result == ResourceResult::Waiting;
    *view.resources.iter().find(waits).expect("a worktree waits")
}

/// Claims the part of the job that has resources in the root, removes the worktree, finishes.
fn remove_the_worktree<R: Rig>(twin: &mut Twin<R>, n: u128) {
    let token = Token(own(n));
    let mut part = None;
    twin.says(|c, view| {
        let job_root = waiting(view).job_root_id;
        part = Some(job_root);
        Command::Cleanup(CleanupCommand::Claim { job_root, token, instance: id(c, OWNER) })
    });
    let removal = RemovalId(own(n + 1));
    let (removal_token, seen) = (Token(own(n + 2)), evidence(Found::Here));
    twin.says(|_, view| {
        let resource = waiting(view).id;
        Command::Cleanup(CleanupCommand::Permit {
            resource,
            token,
            removal,
            removal_token,
            evidence: seen,
        })
    });
    let steps = [
        RemovalStep::Salvaged,
        RemovalStep::Renamed,
        RemovalStep::Compared,
        RemovalStep::Unregistered,
        RemovalStep::BranchSettled,
        RemovalStep::Purged,
    ];
    for step in steps {
        twin.says(|c, _| {
            let salvage = (step == RemovalStep::Salvaged).then(|| {
                let id = SalvageId(own(n + 3));
                c.content(TableId::Salvage, id.0, "ref_name", "refs/salvage/1");
                SalvageFacts { id, contents: Unsaved::UNTRACKED, size: 4096 }
            });
            Command::Cleanup(CleanupCommand::RecordStep {
                removal,
                token: removal_token,
                step,
                found_something: true,
                salvage,
            })
        });
    }
    let job_root = part.expect("it was claimed");
    twin.says(|_, _| Command::Cleanup(CleanupCommand::Finish { job_root, token }));
}

/// Claims what else is due and settles it; a part without resources is finished.
fn settle_the_rest<R: Rig>(twin: &mut Twin<R>, mut n: u128) {
    loop {
        let view = twin.everything().view;
        let Some(part) = view.job_roots.iter().find(|r| r.state == JobState::Pending) else {
            break;
        };
        let (job_root, token) = (part.id, Token(own(n)));
        n += 1;
        twin.says(|c, _| {
            let instance = id(c, OWNER);
            Command::Cleanup(CleanupCommand::Claim { job_root, token, instance })
        });
        for resource in view.resources.iter().filter(|r| r.job_root_id == job_root) {
            let (resource, liveness) = (resource.id, Liveness::Dead);
            twin.says(|_, _| {
                Command::Cleanup(CleanupCommand::SettleResource { resource, token, liveness })
            });
        }
        let part = twin.everything().view.job_roots.id(job_root.0).copied();
        if part.is_some_and(|part| part.state == JobState::Running) {
            twin.says(|_, _| Command::Cleanup(CleanupCommand::Finish { job_root, token }));
        }
    }
}

/// All of it, from the first process to the deletion. About fifty commands, three of them refused.
pub(crate) fn a_tasks_life<R: Rig>(twin: &mut Twin<R>) {
    begin_the_world(twin);
    make_a_worktree(twin);
    work_in_sessions(twin);
    delete_a_session(twin);
    archive(twin);
    remove_the_worktree(twin, 50);
    settle_the_rest(twin, 80);
    let rows = twin.everything();
    assert!(
        rows.view.jobs.iter().all(|job| job.state == JobState::Succeeded),
        "{:?}",
        rows.view.jobs
    );
    assert_eq!(rows.view.salvage.len(), 1);

    twin.says(|c, _| {
        let task = id(c, "board/7");
        Command::Operation(OperationCommand::Unarchive { task, cascade: false })
    });
    twin.says(|c, _| reserve(c, "delete it", "board/7", 60, Trigger::Delete, OWNER));
    twin.says(|c, _| snapshot(c, "delete it", OWNER));
    twin.says(|c, _| mutate(c, "delete it", OWNER));
    twin.refuses(Guard::TaskNotDeleted, |c| {
        Command::Operation(OperationCommand::Unarchive { task: id(c, "board/7"), cascade: false })
    });
    let rows = twin.everything();
    assert!(rows.view.tasks.is_empty() && rows.view.sessions.is_empty());
    assert!(rows.view.environments.is_empty() && rows.view.turns.is_empty());
    // What outlives the task (D-16).
    assert!(!rows.view.jobs.is_empty() && !rows.view.salvage.is_empty());
    assert_eq!(rows.view.identities.iter().filter(|i| i.state == IdentityState::Gone).count(), 3);
}
