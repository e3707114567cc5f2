//! Bad input: a typed error with a sentence that a person can act on, the documented exit code,
//! and nothing changed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command as Program, Output};
use std::time::Duration;

use freehold_git::GitWorkspaces;
use freehold_kernel::*;
use freehold_sqlite::{Options, Sqlite};
use freehold_store::{HostError, NameError, Operation, StoreError, Wanted, Who};
use serde_json::Value;
use support::steps::*;
use support::{
    Ground, TestHost, ann, child_task, contents, environment, mark, refused, session, settled,
    task, wanted, workspace,
};

const NOBODY: u32 = 65534;

/// The error's sentence has every one of these words.
fn says(error: &impl std::fmt::Display, words: &[&str]) {
    let sentence = error.to_string();
    for word in words {
        assert!(sentence.contains(word), "{word:?} is not said: {sentence}");
    }
    assert!(!sentence.contains('\n'), "more than one line: {sentence}");
}

/// Runs something bad: it must fail, and leave every row as it was.
fn bad<T: std::fmt::Debug>(
    host: &TestHost,
    what: &str,
    run: impl FnOnce() -> Result<T, HostError>,
) -> HostError {
    let before = (dump(host), journal_length(host));
    let error = match run() {
        Err(error) => error,
        Ok(done) => panic!("{what}: {done:?}"),
    };
    assert_eq!((dump(host), journal_length(host)), before, "{what} changed something");
    error
}

fn ask(
    host: &TestHost,
    compose: impl FnOnce(&mut freehold_store::Composer) -> Result<Command, NameError>,
) -> Result<Reply, HostError> {
    host.ask(&ann(), None, compose).map(|accepted| accepted.reply)
}

type Case<'a> = (&'a str, Box<dyn FnOnce() -> Result<(), HostError> + 'a>, Guard, &'a [&'a str]);

fn case<'a, T>(
    what: &'a str,
    run: impl FnOnce() -> Result<T, HostError> + 'a,
    guard: Guard,
    words: &'a [&'a str],
) -> Case<'a> {
    (what, Box::new(move || run().map(|_| ())), guard, words)
}

/// Each is refused by its guard, in words, and changes nothing.
fn all_refused(host: &TestHost, cases: Vec<Case<'_>>) {
    for (what, run, guard, words) in cases {
        let error = bad(host, what, run);
        assert_eq!(error.guard(), Some(guard), "{what}: {error}");
        says(&error, words);
        // guard, rule, and what would help are in every refusal.
        says(&error, &[guard.code(), guard.rule(), guard.help()]);
    }
}

#[test]
fn unknown_ids_are_refused_and_named() {
    let ground = Ground::new();
    let host = ground.host();
    let (root, _) = settled(&ground, &host);
    let (op, who) = (Operation::new("o"), ann());
    let other = |environment: &str| wanted(&ground, &root, environment, "b2");
    let operator = |command| ask(&host, move |_| Ok(Command::Operator(command)));
    all_refused(
        &host,
        vec![
            case(
                "session of no task",
                || session(&host, "x", "nope", None),
                Guard::TaskKnown,
                &["task", "check the id"],
            ),
            case(
                "session on no environment",
                || session(&host, "x", "t", Some("nope")),
                Guard::EnvironmentKnown,
                &["environment", "create one"],
            ),
            case(
                "environment of no task",
                || environment(&host, "x", "nope"),
                Guard::TaskKnown,
                &["task"],
            ),
            case(
                "child of no task",
                || child_task(&host, "x", Some("nope")),
                Guard::TaskKnown,
                &["task"],
            ),
            case(
                "task in no workspace",
                || {
                    ask(&host, |c| {
                        Ok(Command::Task(TaskCommand::Create {
                            task: c.id("x")?,
                            workspace: c.id("nope")?,
                            parent: None,
                            kind: TaskKind::Standard,
                            expires_at: None,
                        }))
                    })
                },
                Guard::WorkspaceKnown,
                &["workspace", "check the id"],
            ),
            case("archive", || host.archive_task(&who, "nope", &op), Guard::TaskKnown, &["task"]),
            case(
                "cascade",
                || host.archive_task(&who, "nope", &op.clone().with_cascade()),
                Guard::TaskKnown,
                &["task"],
            ),
            case("delete", || host.delete_task(&who, "nope", &op), Guard::TaskKnown, &["task"]),
            case(
                "unarchive",
                || host.unarchive_task(&who, "nope", false),
                Guard::TaskKnown,
                &["task"],
            ),
            case(
                "reset of no environment",
                || host.reset_environment(&who, "t", "nope", &op),
                Guard::EnvironmentKnown,
                &["environment"],
            ),
            case(
                "delete no workspace",
                || host.delete_workspace(&who, "nope", &op),
                Guard::WorkspaceKnown,
                &["workspace"],
            ),
            case(
                "delete no session",
                || host.delete_session(&who, "nope"),
                Guard::SessionKnown,
                &["session", "check the id"],
            ),
            case(
                "archive no session",
                || host.archive_session(&who, "nope"),
                Guard::SessionKnown,
                &["session"],
            ),
            case(
                "worktree of no environment",
                || host.make_worktree(&who, &other("nope")),
                Guard::EnvironmentKnown,
                &["environment"],
            ),
            case(
                "retry no job",
                || operator(OperatorCommand::Retry { job: JobId(fresh()) }),
                Guard::JobKnown,
                &["job", "list the jobs"],
            ),
            case(
                "cancel no job",
                || operator(OperatorCommand::Cancel { job: JobId(fresh()) }),
                Guard::JobKnown,
                &["job"],
            ),
            case(
                "forget no resource",
                || operator(OperatorCommand::ForgetResource { resource: ResourceId(fresh()) }),
                Guard::ResourceKnown,
                &["resource"],
            ),
        ],
    );
    // What is looked up before the kernel is asked: named with its id.
    let not_there = |error: HostError, words: &[&str]| {
        assert!(matches!(error, HostError::NotThere { .. }), "{error}");
        says(&error, words);
    };
    let lost = "018f3b2a-7c11-7d2e-9f00-0123456789ab";
    let no_root = Wanted { root: lost.to_owned(), ..other("e") };
    not_there(
        bad(&host, "no root", || host.make_worktree(&who, &no_root)),
        &["root", lost, "register it"],
    );
    not_there(
        bad(&host, "no row", || host.recreate(&who, lost)),
        &["repository row", lost, "list"],
    );
    not_there(bad(&host, "no salvage", || host.restore(&who, lost)), &["salvage", lost, "list"]);
    // What was deleted is something else than what never was, and its tombstone is named.
    host.delete_session(&who, "s").unwrap();
    let error = bad(&host, "deleted", || host.delete_session(&who, "s"));
    assert_eq!(error.guard(), Some(Guard::SessionNotDeleted));
    says(&error, &["deleted", "\"s\"", "new id"]);
    let error = bad(&host, "used id", || session(&host, "s", "t", None));
    assert_eq!(error.guard(), Some(Guard::IdNeverUsed));
    says(&error, &["\"s\"", "choose a new id"]);
}

#[test]
fn wrong_states_are_refused_and_name_the_row() {
    let ground = Ground::new();
    let host = ground.host();
    let (root, made) = settled(&ground, &host);
    task(&host, "old").unwrap();
    environment(&host, "e-old", "old").unwrap();
    session(&host, "s-old", "old", None).unwrap();
    host.archive_task(&ann(), "old", &Operation::new("arch-old")).unwrap();
    work(&host);
    let (op, who) = (Operation::new("o"), ann());
    let steps = Steps::new(&host, "never reserved", Trigger::Archive, None);
    let close = |make: fn(SessionId, Token) -> SessionCommand| {
        ask(&host, move |c| Ok(Command::Session(make(c.id("s")?, Token(7)))))
    };
    all_refused(
        &host,
        vec![
            case(
                "unarchive an active task",
                || host.unarchive_task(&who, "t", false),
                Guard::TaskArchived,
                &["\"t\"", "not archived"],
            ),
            case(
                "session in an archived task",
                || session(&host, "x", "old", None),
                Guard::TaskActive,
                &["\"old\"", "unarchive the task"],
            ),
            case(
                "environment in an archived task",
                || environment(&host, "x", "old"),
                Guard::TaskActive,
                &["\"old\""],
            ),
            case(
                "child of an archived task",
                || child_task(&host, "x", Some("old")),
                Guard::ParentActive,
                &["\"old\"", "parent"],
            ),
            case(
                "reset an archived task",
                || host.reset_environment(&who, "old", "e-old", &op),
                Guard::TaskActive,
                &["\"old\""],
            ),
            case(
                "reset another's environment",
                || host.reset_environment(&who, "t", "e-old", &op),
                Guard::EnvironmentOfTask,
                &["\"e-old\"", "name the owner"],
            ),
            case(
                "worktree in an archived task",
                || host.make_worktree(&who, &wanted(&ground, &root, "e-old", "b2")),
                Guard::TaskActive,
                &["\"old\""],
            ),
            case(
                "a second worktree in the slot",
                || host.make_worktree(&who, &wanted(&ground, &root, "e", "b")),
                Guard::SlotFree,
                &[&made.repo, "reuse its worktree"],
            ),
            case(
                "unarchive an open session",
                || {
                    ask(&host, |c| {
                        Ok(Command::Session(SessionCommand::Unarchive { session: c.id("s")? }))
                    })
                },
                Guard::SessionArchived,
                &["\"s\"", "not archived"],
            ),
            case(
                "commit no close",
                || close(|session, token| SessionCommand::CommitClose { session, token }),
                Guard::CloseUnderWay,
                &["\"s\"", "begin one"],
            ),
            case(
                "abort no close",
                || close(|session, token| SessionCommand::AbortClose { session, token }),
                Guard::CloseUnderWay,
                &["\"s\""],
            ),
            case(
                "snapshot without a barrier",
                || steps.snapshot(),
                Guard::BarrierHeld,
                &["reserve first"],
            ),
            case(
                "mutate without a barrier",
                || steps.mutate(),
                Guard::BarrierHeld,
                &["reserve first"],
            ),
            case(
                "under itself",
                || {
                    ask(&host, |c| {
                        Ok(Command::Task(TaskCommand::Move {
                            task: c.id("t")?,
                            parent: Some(c.id("t")?),
                        }))
                    })
                },
                Guard::NoCircle,
                &["\"t\"", "another parent"],
            ),
            case(
                "a quick chat without an expiry",
                || {
                    ask(&host, |c| {
                        Ok(Command::Task(TaskCommand::Create {
                            task: c.id("x")?,
                            workspace: c.id("w")?,
                            parent: None,
                            kind: TaskKind::QuickChat,
                            expires_at: None,
                        }))
                    })
                },
                Guard::ExpiryFitsKind,
                &["expiry", "give it"],
            ),
            case(
                "expire what has no expiry",
                || host.expire_quick_chat("t", &op),
                Guard::Expired,
                &["\"t\""],
            ),
            case(
                "settings that cannot work",
                || {
                    ask(&host, |_| {
                        let settings = Settings { lease: Span(0), ..Settings::DEFAULT };
                        Ok(Command::Operator(OperatorCommand::ChangeSettings { settings }))
                    })
                },
                Guard::SettingsSane,
                &["settings", "renew at most half the lease"],
            ),
        ],
    );
    assert!(made.place.path.exists());
}

#[test]
fn one_operation_id_with_another_content_is_refused() {
    let ground = Ground::new();
    let host = ground.host();
    settled(&ground, &host);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    let error = bad(&host, "another policy", || {
        let refuse = Operation::new("o").with_policy(UnsavedPolicy::Refuse, Unsaved::NONE);
        host.archive_task(&ann(), "t", &refuse)
    });
    assert_eq!(error.guard(), Some(Guard::OperationContent));
    says(&error, &["operation id", "another content", "fresh operation id", "jobs"]);
    let error =
        bad(&host, "another operation", || host.delete_task(&ann(), "t", &Operation::new("o")));
    assert_eq!(error.guard(), Some(Guard::OperationContent));
    // The same content is the same operation (T-11).
    let before = dump(&host);
    let again = host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    assert!(matches!(again, Reply::Job { state: JobState::Pending, .. }), "{again:?}");
    assert_eq!(dump(&host), before);
    work(&host);
    let again = host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    assert!(matches!(again, Reply::Job { state: JobState::Succeeded, .. }), "{again:?}");
}

#[test]
fn ids_that_cannot_be_ids_are_refused_wherever_they_stand() {
    let ground = Ground::new();
    let host = ground.host();
    settled(&ground, &host);
    let (long, longest) = ("x".repeat(256), "y".repeat(255));
    for (id, words) in [
        ("", ["is empty", "at least one character"]),
        (long.as_str(), ["256 bytes", "at most 255"]),
        ("a\nb", ["a\\nb", "control character"]),
        ("a\u{7f}b", ["a\\u{7f}b", "control character"]),
        ("\u{85}", ["\\u{85}", "control character"]),
        ("a\0b", ["a\\0b", "remove it"]),
    ] {
        let (who, op) = (ann(), Operation::new("o"));
        let calls: Vec<(&str, Result<(), HostError>)> = vec![
            ("task", bad_id(&host, || task(&host, id))),
            ("task", bad_id(&host, || host.archive_task(&who, id, &op).map(drop))),
            ("task", bad_id(&host, || host.unarchive_task(&who, id, true).map(drop))),
            (
                "operation",
                bad_id(&host, || host.archive_task(&who, "t", &Operation::new(id)).map(drop)),
            ),
            (
                "operation",
                bad_id(&host, || host.delete_workspace(&who, "w", &Operation::new(id)).map(drop)),
            ),
            ("environment", bad_id(&host, || environment(&host, id, "t"))),
            ("environment", bad_id(&host, || host.reset_environment(&who, "t", id, &op).map(drop))),
            ("session", bad_id(&host, || session(&host, id, "t", None))),
            ("session", bad_id(&host, || host.delete_session(&who, id))),
            ("workspace", bad_id(&host, || host.delete_workspace(&who, id, &op).map(drop))),
            (
                "request",
                bad_id(&host, || {
                    host.ask(&who, Some(id), |c| {
                        Ok(Command::Task(TaskCommand::CreateWorkspace { workspace: c.id("w2")? }))
                    })
                    .map(drop)
                }),
            ),
            ("actor", bad_id(&host, || host.delete_session(&Who::new(id, Permissions::ALL), "s"))),
        ];
        for (kind, result) in calls {
            let error = result.unwrap_err();
            assert!(matches!(error, HostError::Name(_)), "{kind} {id:?}: {error}");
            says(&error, &words);
            says(&error, &[kind]);
        }
    }
    // The longest one, and one with anything that is no control character.
    session(&host, &longest, "t", None).unwrap();
    session(&host, "gr\u{fc}n / \u{1f333} '\"; --", "t", None).unwrap();
    host.delete_session(&ann(), &longest).unwrap();
}

fn bad_id(host: &TestHost, run: impl FnOnce() -> Result<(), HostError>) -> Result<(), HostError> {
    Err(bad(host, "a bad id", run))
}

#[test]
fn a_path_that_is_no_repository_is_refused_and_named() {
    let ground = Ground::new();
    let host = ground.host();
    let (root, _) = settled(&ground, &host);
    let plain = ground.folder.path().canonicalize().unwrap().join("plain");
    std::fs::create_dir(&plain).unwrap();
    std::fs::write(plain.join("file"), "words\n").unwrap();
    let nowhere = plain.join("nowhere");
    for (path, words) in [
        (&plain, ["plain", "repository"]),
        (&nowhere, ["nowhere", "repository"]),
        (&plain.join("file"), ["file", "repository"]),
    ] {
        let before = contents(ground.folder.path());
        let wanted =
            Wanted { repository: path.display().to_string(), ..wanted(&ground, &root, "e", "b2") };
        let error = bad(&host, "no repository", || host.make_worktree(&ann(), &wanted));
        let HostError::Workspace(inner) = &error else { panic!("{error}") };
        assert_eq!(inner.path, *path);
        says(&error, &words);
        helps(&error, "put it back where it was");
        unchanged_but_for_the_store(&ground, &before);
    }
    // A branch that cannot be one, and a start that is not there.
    let odd = wanted(&ground, &root, "e", "no..branch");
    let error = bad(&host, "no branch name", || host.make_worktree(&ann(), &odd));
    says(&error, &["no..branch", "name for a branch"]);
    helps(&error, "check-ref-format");
    let odd = Wanted { start: Some("no-such-commit".into()), ..wanted(&ground, &root, "e", "b2") };
    let error = bad(&host, "no start", || host.make_worktree(&ann(), &odd));
    says(&error, &["no-such-commit", "no commit"]);
    helps(&error, "name a commit");
    assert_eq!(ground.branches(), ["b"]);
}

/// A sentence that a person can act on has what would help in it.
fn helps(error: &HostError, help: &str) {
    says(error, &[help]);
}

/// Every file but the store's own is as it was.
fn unchanged_but_for_the_store(ground: &Ground, before: &BTreeMap<PathBuf, Vec<u8>>) {
    let others = |all: &BTreeMap<PathBuf, Vec<u8>>| -> BTreeMap<PathBuf, Vec<u8>> {
        let store = |p: &Path| {
            p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("freehold.db"))
        };
        all.iter().filter(|(p, _)| !store(p)).map(|(p, c)| (p.clone(), c.clone())).collect()
    };
    assert_eq!(others(&contents(ground.folder.path())), others(before));
}

#[test]
fn a_missing_git_program_is_named_with_what_helps() {
    let ground = Ground::new();
    let host = ground.host();
    let (root, made) = settled(&ground, &host);
    mark(&made.place.path);
    for program in ["/nonexistent/git", "no-such-git"] {
        let git = GitWorkspaces::new().with_program(program.into(), Duration::from_secs(5));
        let without = ground.host_with(git);
        let before = contents(ground.folder.path());
        let rows = dump(&host);
        let new = wanted(&ground, &root, "e", "b2");
        let error = without.make_worktree(&ann(), &new).unwrap_err();
        let HostError::Workspace(inner) = &error else { panic!("{error}") };
        assert_eq!(inner.reason.class(), ReasonClass::Transient);
        says(&error, &[program, "is not there"]);
        helps(&error, "install git");
        assert_eq!(dump(&host)[TableId::Attempts.name()], rows[TableId::Attempts.name()]);
        unchanged_but_for_the_store(&ground, &before);
    }
    // A worker without git tries again later, and touches nothing.
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    let git = GitWorkspaces::new().with_program("/nonexistent/git".into(), Duration::from_secs(5));
    let without = ground.host_with(git);
    let before = contents(&made.place.path);
    let _ = without.tick().unwrap();
    assert_eq!(contents(&made.place.path), before);
    assert_eq!(job_states(&host, "o"), [("t".to_owned(), JobState::RetryWait)]);
    assert_eq!(outcomes(&host).iter().filter(|o| **o != Some(RemovalOutcome::Returned)).count(), 0);
    // With git it goes.
    ground.clock.advance(Span::minutes(2));
    work(&host);
    assert_eq!(job_states(&host, "o"), [("t".to_owned(), JobState::Succeeded)]);
    assert_eq!(salvaged_markers(&host), ["marker"]);
}

// The store's file.

/// A store in a folder, made by the program's own code, with a row in it.
fn store() -> (tempfile::TempDir, PathBuf) {
    let ground = Ground::new();
    let host = ground.host();
    workspace(&host, "w");
    drop(host);
    let path = ground.store_path.clone();
    (ground.folder, path)
}

fn open(path: &Path) -> StoreError {
    let options = Options { busy_wait: Duration::from_millis(50), ..Options::default() };
    match Sqlite::open(path, options) {
        Err(error) => error,
        Ok(_) => panic!("{} was opened", path.display()),
    }
}

fn freehold() -> Program {
    let mut program = Program::new(env!("CARGO_BIN_EXE_freehold"));
    program.current_dir("/").env_remove("NO_COLOR");
    program
}

/// `freehold --json work --store PATH`: exit code, last line, standard error.
fn works(path: &Path) -> (i32, Value, String) {
    run(freehold().args(["--json", "work", "--store"]).arg(path))
}

fn run(program: &mut Program) -> (i32, Value, String) {
    let output = program.output().unwrap();
    (output.status.code().unwrap(), last_line(&output), text(&output.stderr))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn last_line(output: &Output) -> Value {
    let said = text(&output.stdout);
    let last = said.lines().last().unwrap_or_else(|| panic!("{}", text(&output.stderr)));
    serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {last}"))
}

/// The program refuses the file with this exit code, in words, as JSON and on standard error.
fn refuses(path: &Path, exit: i32, word: &str, words: &[&str]) {
    let (code, line, err) = works(path);
    assert_eq!(code, exit, "{line} {err}");
    assert_eq!(line["ok"], false, "{line}");
    assert_eq!(line["error"], word, "{line}");
    assert_eq!(line["exit_code"], exit, "{line}");
    let sentence = line["says"].as_str().unwrap().to_owned();
    says(&sentence, words);
    assert_eq!(err, format!("freehold: {sentence}\n"));
    // Without --json there is nothing on standard output.
    let plain = freehold().args(["work", "--store"]).arg(path).output().unwrap();
    assert_eq!((plain.status.code(), text(&plain.stdout)), (Some(exit), String::new()));
    assert_eq!(text(&plain.stderr), err);
}

#[test]
fn files_that_are_no_store_are_refused_and_left_alone() {
    let (folder, path) = store();
    let place = folder.path().canonicalize().unwrap();
    let shown = |p: &Path| p.display().to_string();
    let text_file = place.join("letter.txt");
    std::fs::write(
        &text_file,
        "Dear reader, this is a letter and no database at all.\n".repeat(40),
    )
    .unwrap();
    let directory = place.join("directory");
    std::fs::create_dir(&directory).unwrap();
    let foreign = place.join("foreign.db");
    let connection = rusqlite::Connection::open(&foreign).unwrap();
    connection
        .execute_batch("CREATE TABLE notes (id INTEGER); INSERT INTO notes VALUES (1);")
        .unwrap();
    drop(connection);
    let legacy = place.join("legacy.db");
    let connection = rusqlite::Connection::open(&legacy).unwrap();
    connection.execute_batch("CREATE TABLE task_session_worktrees (id TEXT);").unwrap();
    drop(connection);
    let newer = place.join("newer.db");
    std::fs::copy(&path, &newer).unwrap();
    let connection = rusqlite::Connection::open(&newer).unwrap();
    connection
        .execute_batch(
            "INSERT INTO freehold_schema VALUES (9, 'x', 0); PRAGMA wal_checkpoint(TRUNCATE);",
        )
        .unwrap();
    drop(connection);
    let corrupt = place.join("corrupt.db");
    let mut bytes = std::fs::read(&path).unwrap();
    for byte in &mut bytes[100..8192] {
        *byte = 0xa5;
    }
    std::fs::write(&corrupt, &bytes).unwrap();
    let torn = place.join("torn.db");
    std::fs::write(&torn, &std::fs::read(&path).unwrap()[..5000]).unwrap();
    type Refused<'a> = (&'a Path, fn(&StoreError) -> bool, &'a [&'a str]);
    let cases: [Refused<'_>; 7] = [
        (
            &text_file,
            |e| matches!(e, StoreError::NotAStore { .. }),
            &["letter.txt", "not a Freehold store", "give another path"],
        ),
        (
            &directory,
            |e| matches!(e, StoreError::NotAStore { .. }),
            &["directory", "a folder", "give another path"],
        ),
        (
            &foreign,
            |e| matches!(e, StoreError::NotAStore { .. }),
            &["foreign.db", "notes", "give another path"],
        ),
        (&legacy, |e| matches!(e, StoreError::Legacy { .. }), &["legacy.db", "freehold migrate"]),
        (
            &newer,
            |e| matches!(e, StoreError::Newer { found: 9, .. }),
            &["version 9", "run a newer Freehold"],
        ),
        (&corrupt, |e| matches!(e, StoreError::Corrupt { .. }), &["damaged", "backup"]),
        (&torn, |e| matches!(e, StoreError::Corrupt { .. }), &["damaged", "backup"]),
    ];
    for (path, expected, words) in cases {
        let before = contents(&place);
        let error = open(path);
        assert!(expected(&error), "{}: {error:?}", path.display());
        assert!(!error.may_pass_later(), "{error}");
        says(&error, words);
        refuses(path, 4, "store", words);
        assert_eq!(contents(&place), before, "{} was changed", path.display());
    }
    // One that is damaged or newer cannot be told apart by its name: the sentence names it.
    for (path, _, _) in cases {
        says(&open(path), &[&shown(path)]);
    }
}

#[test]
fn a_locked_store_is_busy_for_a_while() {
    let (_folder, path) = store();
    let holder = rusqlite::Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let before = std::fs::read(&path).unwrap();
    let options = Options { busy_wait: Duration::from_millis(50), ..Options::default() };
    let store = Sqlite::open(&path, options).unwrap();
    let start = freehold_store::Host::start(
        store,
        GitWorkspaces::new(),
        freehold_store::OnThisThread,
        Box::new(freehold_store::NoRuntimes),
        "test-machine",
    );
    let Err(HostError::Store(error)) = start.map(|_| ()) else { panic!("it was not busy") };
    assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
    assert!(error.may_pass_later());
    says(&error, &["busy", "try again"]);
    let (code, line, err) = works(&path);
    assert_eq!(
        (code, &line["error"], &line["exit_code"]),
        (3, &"store".into(), &3.into()),
        "{err}"
    );
    says(&line["says"].as_str().unwrap(), &["busy", "try again"]);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    holder.execute_batch("ROLLBACK").unwrap();
    let (code, line, err) = works(&path);
    assert_eq!((code, &line["ok"]), (0, &true.into()), "{err}");
}

#[test]
fn a_read_only_store_is_refused() {
    let (folder, path) = store();
    let allow = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    // The program where nobody may run it.
    let place = tempfile::tempdir().unwrap();
    allow(place.path(), 0o755);
    let binary = place.path().join("freehold");
    std::fs::copy(env!("CARGO_BIN_EXE_freehold"), &binary).unwrap();
    allow(&binary, 0o755);
    let as_nobody = || {
        let mut program = Program::new(&binary);
        program.args(["--json", "work", "--store"]).arg(&path).current_dir("/");
        if rustix::process::geteuid().is_root() {
            program.uid(NOBODY).gid(NOBODY);
        }
        run(&mut program)
    };
    allow(folder.path(), 0o777);
    allow(&path, 0o444);
    let before = contents(folder.path());
    let (code, line, err) = as_nobody();
    assert_eq!(
        (code, &line["error"], &line["exit_code"]),
        (3, &"store".into(), &3.into()),
        "{line} {err}"
    );
    let shown = path.display().to_string();
    says(&line["says"].as_str().unwrap(), &[&shown, "can only be read", "right to write"]);
    assert_eq!(contents(folder.path()), before);
    // The check can fail: with the right to write it works.
    allow(&path, 0o666);
    let (code, line, err) = as_nobody();
    assert_eq!((code, &line["ok"]), (0, &true.into()), "{line} {err}");
}

#[test]
fn a_store_that_is_not_there_is_not_made_by_the_worker() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nowhere.db");
    refuses(&path, 2, "not_there", &["store", "nowhere.db", "give the path"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    // And one in no folder is not made by the library either.
    let error = open(&folder.path().join("no-folder").join("store.db"));
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    says(&error, &["no-folder", "make it first"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    for args in [
        &["nonsense"][..],
        &["work"],
        &["work", "--store"],
        &["work", "--store", "x", "--ticks", "many"],
        &["tour", "--loud"],
        &[],
    ] {
        let output = freehold().args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output.stderr));
        let said = text(&output.stderr);
        // Either the whole help, or where it is to be had.
        assert!(said.contains("--help"), "{args:?}: {said}");
        assert!(!said.contains('\u{1b}'), "{args:?}: colour where no terminal is");
    }
    let output = freehold().arg("--help").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("tour"));
}

#[test]
fn the_worker_says_what_it_did() {
    let ground = Ground::new();
    {
        // On the machine's own clock and under its own name, as the program runs.
        let store = ground.store.open(&freehold_store::Clock::System);
        let host = freehold_store::Host::start(
            store,
            GitWorkspaces::new(),
            freehold_store::OnThisThread,
            Box::new(freehold_store::NoRuntimes),
            &freehold_cli::machine_name(),
        )
        .unwrap();
        let (_, made) = settled(&ground, &host);
        mark(&made.place.path);
        host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    }
    let (code, line, err) = works(&ground.store_path);
    assert_eq!(code, 0, "{err}");
    assert_eq!(err, "");
    assert_eq!(line["ok"], true);
    assert_eq!(line["removals"], 1, "{line}");
    assert_eq!(line["troubles"], serde_json::json!([]), "{line}");
    for field in ["ticks", "claimed", "settled", "recovered", "reconciled"] {
        assert!(line[field].is_u64(), "{field}: {line}");
    }
    assert_eq!(ground.registered(), Vec::<PathBuf>::new());
    // Nothing is left: counts are of what was done.
    let (code, line, _) = works(&ground.store_path);
    assert_eq!((code, &line["claimed"], &line["removals"]), (0, &0.into(), &0.into()));
    let plain = freehold().args(["work", "--store"]).arg(&ground.store_path).output().unwrap();
    let said = text(&plain.stdout);
    assert!(said.contains("0 claimed"), "{said}");
    assert!(!said.contains('\u{1b}'));
}

// The tour.

#[test]
fn the_tours_last_line_has_every_documented_field() {
    let output = freehold().args(["tour", "--json", "--keep"]).output().unwrap();
    let result = last_line(&output);
    let folder = PathBuf::from(result["folder"].as_str().unwrap());
    let kept = folder.join("repository").is_dir() && folder.join("freehold.db").is_file();
    // Whatever comes of the rest, it does not stay.
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(kept, "{} was not left", folder.display());
    assert_eq!(output.status.code(), Some(0), "{result}");
    for truth in [
        "ok",
        "marker_intact_after_session_deletes",
        "race_refused_and_compensated",
        "marker_restored",
    ] {
        assert_eq!(result[truth], true, "{truth}: {result}");
    }
    let salvage = result["salvage_id"].as_str().unwrap();
    assert_eq!(salvage.len(), 36, "{salvage}");
    assert_eq!(result["leftovers"], serde_json::json!([]));
    let steps = result["steps"].as_array().unwrap();
    assert!(steps.len() >= 8, "{steps:?}");
    for step in steps {
        assert!(step["name"].as_str().is_some_and(|n| !n.is_empty()), "{step}");
        assert_eq!(step["ok"], true, "{step}");
        assert!(step["evidence"].is_object(), "{step}");
    }
    // Every line before it is an object too, one for each step.
    let said = text(&output.stdout);
    let lines: Vec<Value> = said.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), steps.len() + 1);
    for (line, step) in lines.iter().zip(steps) {
        assert_eq!((&line["name"], &line["ok"]), (&step["name"], &step["ok"]));
    }
    assert!(!said.contains('\u{1b}'));
}

#[test]
fn the_tour_in_plain_words_has_no_colour_without_a_terminal_and_leaves_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let output = freehold().arg("tour").env("TMPDIR", temporary.path()).output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said} {}", text(&output.stderr));
    assert!(!said.contains('\u{1b}'), "{said}");
    assert!(said.contains("ok  ") && !said.contains("FAIL"), "{said}");
    assert!(said.lines().last().unwrap().contains("nothing is left over"), "{said}");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

#[test]
fn the_tour_without_git_ends_with_3_and_says_what_helps() {
    let (temporary, empty) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut tour = freehold();
    tour.args(["--json", "tour"]).env("TMPDIR", temporary.path()).env("PATH", empty.path());
    let (code, line, err) = run(&mut tour);
    assert_eq!((code, &line["error"]), (3, &"surroundings".into()), "{line}");
    says(&line["says"].as_str().unwrap(), &["git program", "install git"]);
    assert!(err.starts_with("freehold: "), "{err}");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

#[test]
fn a_refused_command_names_its_guard_for_machines_too() {
    let ground = Ground::new();
    let host = ground.host();
    let guard = refused(task(&host, "t"));
    assert_eq!(guard, Guard::WorkspaceKnown);
    let failure = freehold_cli::Failure::from(task_error(&host));
    assert_eq!((failure.exit_code(), failure.code()), (1, "workspace_known"));
    says(&failure, &["no such workspace", "check the id"]);
    let bad_id = freehold_cli::Failure::from(task(&host, "").unwrap_err());
    assert_eq!((bad_id.exit_code(), bad_id.code()), (2, "bad_id"));
}

fn task_error(host: &TestHost) -> HostError {
    task(host, "t").unwrap_err()
}
