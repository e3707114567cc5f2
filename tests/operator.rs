//! `freehold doctor`, `jobs` and `gc`, by the real binary: what they say, what they change, how
//! they end, and that the next command that a refusal names is one that works.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;
use std::process::{Command as Program, Output, Stdio};

use freehold_kernel::*;
use freehold_store::names::uuid_text;
use freehold_store::{Operation, Stands};
use serde_json::Value;
use support::steps::*;
use support::*;

fn run(ground: &Ground, words: &[&str]) -> (i32, Value) {
    let output = ground.program(words).arg("--json").output().unwrap();
    (output.status.code().unwrap(), json(&output))
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(text.trim_end().lines().count(), 1, "one object: {text}{said}");
    serde_json::from_str(&text).unwrap()
}

fn kinds(report: &Value) -> Vec<&str> {
    report["findings"].as_array().unwrap().iter().map(|f| f["kind"].as_str().unwrap()).collect()
}

fn finding<'v>(report: &'v Value, kind: &str) -> &'v Value {
    let all = report["findings"].as_array().unwrap();
    all.iter().find(|f| f["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {report:#}"))
}

fn holds(finding: &Value) -> String {
    finding["holds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l.as_str().unwrap())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Runs a command line as a person would paste it.
fn paste(line: &str) -> Output {
    let folder = Path::new(env!("CARGO_BIN_EXE_freehold")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    Program::new("sh").args(["-c", line]).env("PATH", path).output().unwrap()
}

/// The refusal's own next command works.
fn goes_on(refusal: &Value) -> String {
    let next = refusal["next"].as_str().unwrap_or_else(|| panic!("no next command: {refusal}"));
    let output = paste(next);
    assert!(output.status.success(), "{next}: {}", String::from_utf8_lossy(&output.stderr));
    next.to_owned()
}

fn the_job(host: &TestHost) -> String {
    uuid_text(rows(host, &[TableId::Jobs]).view.jobs.iter().next().unwrap().id.0)
}

#[test]
fn the_doctor_of_a_healthy_store_finds_nothing_and_writes_nothing() {
    let ground = Ground::new();
    let host = ground.host_here();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    let before = (dump(&host), journal_length(&host), contents(&ground.repository));
    let (code, report) = run(&ground, &["doctor"]);
    assert_eq!((code, kinds(&report)), (0, vec![]), "{report:#}");
    assert_eq!((&report["ok"], &report["worktrees"]), (&Value::Bool(true), &1.into()));
    assert_eq!((dump(&host), journal_length(&host), contents(&ground.repository)), before);
    // Another machine's root is not judged by this one.
    let elsewhere = Ground::new();
    settled(&elsewhere, &elsewhere.host());
    std::fs::remove_dir_all(&elsewhere.root_path).unwrap();
    let (code, report) = run(&elsewhere, &["doctor"]);
    assert_eq!((code, &report["roots_elsewhere"]), (0, &1.into()), "{report:#}");
}

#[test]
fn f04_the_doctor_shows_what_an_unknown_worktree_holds_and_leaves_it() {
    let ground = Ground::new();
    let host = ground.host_here();
    settled(&ground, &host);
    let path = ground.root_path.join("by hand");
    ground.git(&["worktree", "add", "--quiet", "--detach", path.to_str().unwrap()]);
    std::fs::write(path.join("story.txt"), "precious\n").unwrap();
    git_in(&path, &["commit", "--quiet", "--all", "--message", "only here"]);
    std::fs::write(path.join("loose"), "loose\n").unwrap();
    let mut user = Program::new("cat")
        .current_dir(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let before = contents(&path);
    let (code, report) = run(&ground, &["doctor"]);
    assert_eq!((code, kinds(&report)), (6, vec!["worktree_unowned"]), "{report:#}");
    let found = finding(&report, "worktree_unowned");
    assert_eq!(found["about"], path.display().to_string());
    let held = holds(found);
    let process = user.id().to_string();
    for word in ["1 commit(s) that nothing else reaches", "untracked: \"loose\"", &process] {
        assert!(held.contains(word), "{word} is not told: {held}");
    }
    goes_on(found);
    assert_eq!(contents(&path), before);
    assert!(user.try_wait().unwrap().is_none());
    drop(user.stdin.take());
    user.wait().unwrap();
    // For people, the same findings.
    let output = ground.program(&["doctor"]).output().unwrap();
    assert_eq!(output.status.code(), Some(6));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("worktree_unowned") && text.contains("next: git -C"), "{text}");
}

#[test]
fn the_doctor_crosses_rows_registrations_and_folders() {
    let ground = Ground::new();
    let host = ground.host_here();
    let (root, gone) = settled(&ground, &host);
    let other = |branch: &str| {
        host.make_worktree(&ann(), &wanted(&ground, &root, "e", branch)).unwrap().place.path
    };
    let (moved, emptied) = (other("moved"), other("emptied"));
    std::fs::remove_dir_all(&gone.place.path).unwrap();
    let away = ground.folder.path().canonicalize().unwrap().join("away");
    let (from, to) = (moved.to_str().unwrap(), away.to_str().unwrap());
    ground.git(&["worktree", "move", "--force", "--force", from, to]);
    std::fs::remove_file(emptied.join(".git")).unwrap();
    std::fs::create_dir(ground.root_path.join("stray")).unwrap();
    std::fs::write(ground.root_path.join("e/file"), "file\n").unwrap();
    let lost = ground.root_path.join("lost");
    ground.git(&["worktree", "add", "--quiet", "-b", "lost", lost.to_str().unwrap()]);
    std::fs::remove_dir_all(&lost).unwrap();
    let (code, report) = run(&ground, &["doctor"]);
    let mut found = kinds(&report);
    found.sort_unstable();
    let expected = [
        "folder_unowned",
        "folder_unowned",
        "registration_unowned",
        "worktree_mismatch",
        "worktree_mismatch",
        "worktree_missing",
    ];
    assert_eq!((code, found.as_slice()), (6, expected.as_slice()), "{report:#}");
    let all = report["findings"].as_array().unwrap();
    let about = |path: &Path| all.iter().find(|f| f["about"] == path.display().to_string());
    assert!(holds(about(&moved).unwrap()).contains(to), "where it went is not told");
    assert_eq!(about(&gone.place.path).unwrap()["kind"], "worktree_missing");
    assert_eq!(about(&emptied).unwrap()["kind"], "worktree_mismatch");
    for found in all {
        goes_on(found);
    }
    // A root that is away allows no conclusion about what was in it.
    std::fs::rename(&ground.root_path, ground.root_path.with_extension("away")).unwrap();
    let (code, report) = run(&ground, &["doctor"]);
    assert_eq!((code, kinds(&report)), (6, vec!["root_unavailable"]), "{report:#}");
}

/// An archive whose removal stops after its rename.
fn stuck(ground: &Ground, host: &TestHost) -> freehold_store::Made {
    let (_, made) = settled(ground, host);
    mark(&made.place.path);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    let worker = ground.hooked_here(|_, call| match call {
        "compared" => Act::Fail(Reason::Io),
        _other => Act::Go,
    });
    worker.tick().unwrap();
    assert!(!made.place.path.exists());
    made
}

#[test]
fn jobs_are_listed_shown_and_retried() {
    let ground = Ground::new();
    let host = ground.host_here();
    let made = stuck(&ground, &host);
    let job = the_job(&host);
    let (code, list) = run(&ground, &["jobs", "list"]);
    assert_eq!(code, 0);
    assert_eq!(list["jobs"][0]["job"], job);
    assert_eq!(list["jobs"][0]["state"], "retry_wait");
    assert_eq!(list["jobs"][0]["tries"], 1);
    let (code, shown) = run(&ground, &["jobs", "show", &job]);
    assert_eq!((code, &shown["trigger"]), (0, &"archive".into()));
    assert_eq!(shown["resources"][0]["path"], made.place.path.display().to_string());
    assert_eq!(shown["resources"][0]["result"], "removing");
    let (code, report) = run(&ground, &["doctor"]);
    assert_eq!((code, kinds(&report)), (6, vec!["removal_left"]), "{report:#}");
    // Retried, it is due now, and the worker finishes.
    let (code, retried) = run(&ground, &["jobs", "retry", &job]);
    assert_eq!((code, &retried["state"]), (0, &"pending".into()));
    let next = goes_on(&retried);
    assert!(next.starts_with("freehold work --store"), "{next}");
    assert_eq!(job_states(&host, "o")[0].1, JobState::Succeeded);
    let (_, list) = run(&ground, &["jobs", "list"]);
    assert_eq!(list["jobs"], Value::Array(Vec::new()));
    let (_, list) = run(&ground, &["jobs", "list", "--all"]);
    assert_eq!(list["jobs"][0]["state"], "succeeded");
    assert_eq!(run(&ground, &["doctor"]).0, 0);
}

#[test]
fn a_refused_command_changes_nothing_and_names_the_next_one() {
    let ground = Ground::new();
    let host = ground.host_here();
    settled(&ground, &host);
    host.delete_task(&ann(), "t", &Operation::new("o")).unwrap();
    let (job, none) = (the_job(&host), uuid_text(fresh()));
    let resource = uuid_text(resources_of(&host, "o")[0].id.0);
    work(&host);
    for (words, error, code) in [
        (["retry", job.as_str()], "retryable", 1),
        (["cancel", &job], "cancel_kind", 1),
        (["forget", &resource], "forget_left", 1),
        (["retry", &none], "job_known", 1),
        (["forget", &none], "resource_known", 1),
        (["show", &none], "not_there", 2),
    ] {
        let before = journal_length(&host);
        let (ended, refusal) = run(&ground, &["jobs", words[0], words[1]]);
        assert_eq!((ended, &refusal["error"]), (code, &error.into()), "{words:?}: {refusal}");
        let next = goes_on(&refusal);
        assert!(refusal["says"].as_str().unwrap().ends_with(&next), "{refusal}");
        // Only the program's own instance was registered.
        assert!(journal_length(&host) <= before + 1, "{words:?} changed something");
    }
    // A store that is not there, with a name that a shell must not take apart.
    let odd = ground.folder.path().join("it's not there.db");
    for command in [&["doctor"][..], &["jobs", "list"], &["gc"], &["work"]] {
        let output = Program::new(env!("CARGO_BIN_EXE_freehold"))
            .args(command)
            .args(["--json", "--store"])
            .arg(&odd)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        goes_on(&json(&output));
        assert!(!odd.exists(), "{command:?} made a store");
    }
}

#[test]
fn the_cleanup_of_an_archive_is_cancelled_and_that_of_a_delete_is_not() {
    let ground = Ground::new();
    let host = ground.host_here();
    let (_, made) = settled(&ground, &host);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    let (code, done) = run(&ground, &["jobs", "cancel", &the_job(&host)]);
    assert_eq!((code, &done["state"]), (0, &"cancelled".into()));
    work(&host);
    assert!(made.place.path.exists());
    // Who asked stands in the journal.
    host.unarchive_task(&ann(), "t", false).unwrap();
    host.archive_task(&ann(), "t", &Operation::new("o2")).unwrap();
    let jobs = rows(&host, &[TableId::Jobs]);
    let job = jobs.view.jobs.iter().find(|j| j.state == JobState::Pending).unwrap().id;
    run(&ground, &["jobs", "cancel", &uuid_text(job.0), "--actor", "carol"]);
    let journal = pollster::block_on(freehold_store::Store::journal(host.store(), 0, 10_000));
    assert!(format!("{:?}", journal.unwrap()).contains("carol"));
}

#[test]
fn a_forgotten_resource_leaves_its_trash_to_gc() {
    let ground = Ground::new();
    let host = ground.host_here();
    let made = stuck(&ground, &host);
    let resource = resources_of(&host, "o").iter().find(|r| r.path.is_some()).unwrap().id;
    let (code, _) = run(&ground, &["jobs", "forget", &uuid_text(resource.0)]);
    assert_eq!(code, 0);
    let (code, report) = run(&ground, &["doctor"]);
    assert_eq!(code, 6);
    assert!(kinds(&report).contains(&"trash_lapsed"), "{report:#}");
    // The dry run takes the same decision and does nothing.
    let files = |ground: &Ground| contents(&ground.root_path);
    let before = (dump(&host), files(&ground), journal_length(&host));
    let (code, plan) = run(&ground, &["gc"]);
    assert_eq!((code, &plan["dry_run"]), (0, &true.into()));
    assert_eq!((dump(&host), files(&ground), journal_length(&host)), before);
    let (code, done) = run(&ground, &["gc", "--yes"]);
    assert_eq!((code, &done["trash"]), (0, &plan["trash"]), "{done}");
    assert_eq!(done["trash"].as_array().unwrap().len(), 1);
    assert_eq!(ground.registered(), Vec::<std::path::PathBuf>::new());
    assert_eq!(run(&ground, &["gc"]).1["trash"], Value::Array(Vec::new()));
    assert_eq!(run(&ground, &["doctor"]).0, 0);
    // What was unsaved is in salvage, which gc leaves alone.
    let report = host.unarchive_task(&ann(), "t", false).unwrap().remove(0);
    let Stands::FromBranchAndSalvage(salvage) = report.stands else { panic!("{report:?}") };
    let again = host.recreate(&ann(), &report.repo).unwrap();
    host.restore(&ann(), &salvage).unwrap();
    assert!(is_marked(&again.place.path));
    assert_ne!(again.place.path, made.place.path);
}

fn sql(ground: &Ground, text: &str) {
    rusqlite::Connection::open(&ground.store_path).unwrap().execute_batch(text).unwrap();
}

#[test]
fn gc_lets_go_of_what_has_lapsed_and_of_nothing_else() {
    let ground = Ground::new();
    let host = ground.host_here();
    let settings = Settings { trash_retention: Span::hours(1), ..Settings::DEFAULT };
    host.ask(&ann(), None, |_| Ok(Command::Operator(OperatorCommand::ChangeSettings { settings })))
        .unwrap();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    work(&host);
    assert_eq!(outcomes(&host), vec![Some(RemovalOutcome::Trashed)]);
    let before = contents(&ground.root_path);
    let (_, plan) = run(&ground, &["gc", "--yes"]);
    assert_eq!(
        (&plan["trash"], &plan["salvage"]),
        (&serde_json::json!([]), &serde_json::json!([]))
    );
    assert_eq!(contents(&ground.root_path), before, "something that is kept went");
    let (code, report) = run(&ground, &["doctor"]);
    assert_eq!(code, 0, "kept trash is no finding: {report:#}");
    // Its hour passes.
    sql(&ground, "UPDATE trash SET restorable_until = 1");
    let (_, done) = run(&ground, &["gc", "--yes"]);
    assert_eq!(done["trash"].as_array().unwrap().len(), 1, "{done}");
    let in_trash = |p: &std::path::PathBuf| p.to_string_lossy().contains("/trash");
    assert!(!contents(&ground.root_path).keys().any(in_trash));
    assert_eq!(salvaged_markers(&host), vec!["marker".to_owned()], "salvage went with it");
    // Salvage goes only once its row says that it has expired.
    sql(&ground, "UPDATE salvage SET state = 'expired'");
    let (_, plan) = run(&ground, &["gc"]);
    assert_eq!(plan["salvage"].as_array().unwrap().len(), 1);
    let root = host.roots().unwrap().remove(0);
    assert_eq!(freehold_git::salvage::list(&root).unwrap().len(), 1, "a dry run removed it");
    run(&ground, &["gc", "--yes"]);
    assert_eq!(freehold_git::salvage::list(&root).unwrap().len(), 0);
    assert_eq!(run(&ground, &["gc"]).1["salvage"], Value::Array(Vec::new()));
}

/// C-6, C-7, T-10: whatever the operation, no worktree goes while a runtime that spent its tries
/// may live; what is in the way is named, and a person's word ends the waiting.
#[test]
fn c07_worktrees_outlive_the_tries_at_their_runtime() {
    for operation in ["archive", "delete", "reset"] {
        let ground = Ground::new();
        let host = ground.host_with_runtimes(&Told::new(Liveness::Unknown));
        let (_, made) = settled(&ground, &host);
        submit(&host, "s", "one").unwrap();
        support::run(&host, "one");
        mark(&made.place.path);
        let begun = Operation::new("o");
        match operation {
            "archive" => drop(host.archive_task(&ann(), "t", &begun).unwrap()),
            "delete" => drop(host.delete_task(&ann(), "t", &begun).unwrap()),
            _reset => drop(host.reset_environment(&ann(), "t", "e", &begun).unwrap()),
        }
        // Every try at the runtime, then every try at the worktree.
        for _ in 0..40 {
            ground.lapse(Span::hours(13));
            host.tick().unwrap();
        }
        assert_eq!(job_states(&host, "o")[0].1, JobState::Failed, "{operation}");
        for resource in resources_of(&host, "o") {
            let (result, reason) = (resource.result, resource.reason);
            let expected = (ResourceResult::Failed, Reason::RuntimeAlive);
            assert_eq!((result, reason), expected, "{operation}: {resource:?}");
        }
        assert!(is_marked(&made.place.path), "{operation} removed it under a runtime");

        let job = the_job(&host);
        let (_, shown) = run(&ground, &["jobs", "show", &job]);
        assert_eq!(shown["may_run"], serde_json::json!(["runtime-one"]), "{shown:#}");
        let runtime = resources_of(&host, "o").iter().find(|r| r.runtime_id.is_some()).unwrap().id;
        let (_, refusal) = run(&ground, &["jobs", "forget", &uuid_text(runtime.0)]);
        assert_eq!(refusal["error"], "forget_stopped");
        goes_on(&refusal);
        // Tried again it is the same, for as long as nobody knows better.
        run(&ground, &["jobs", "retry", &job]);
        host.renew().unwrap();
        host.tick().unwrap();
        assert!(is_marked(&made.place.path));
        let words = ["jobs", "declare-stopped", "runtime-one", "--actor", "carol"];
        let (code, done) = run(&ground, &words);
        assert_eq!(code, 0, "{done}");
        let journal = pollster::block_on(freehold_store::Store::journal(host.store(), 0, 10_000));
        assert!(format!("{:?}", journal.unwrap()).contains("carol"));
        for _ in 0..3 {
            ground.lapse(Span::hours(13));
            host.tick().unwrap();
        }
        assert_eq!(job_states(&host, "o")[0].1, JobState::Succeeded, "{operation}");
        assert!(!made.place.path.exists(), "{operation}");
    }
}
