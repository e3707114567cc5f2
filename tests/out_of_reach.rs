//! C-15: what a person is told about runtimes that hold a job up, by the real binary: who is in the
//! way and who is not, whose word counts, and that the commands that are named lead to the end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;
use std::process::Command as Program;

use freehold_git::GitWorkspaces;
use freehold_kernel::*;
use freehold_store::{Clock, Host, NoRuntimes, OnThisThread, Operation, Runtimes};
use serde_json::{Value, json};
use support::steps::*;
use support::*;

/// Runs a command line as a person would paste it.
fn paste(line: &str) -> Value {
    let folder = Path::new(env!("CARGO_BIN_EXE_freehold")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let line = format!("{line} --json");
    let output = Program::new("sh").args(["-c", &line]).env("PATH", path).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(text.trim_end()).unwrap_or_else(|e| panic!("{line}: {e}: {text}"))
}

fn run(ground: &Ground, words: &[&str]) -> Value {
    let output = ground.program(words).arg("--json").output().unwrap();
    serde_json::from_str(String::from_utf8_lossy(&output.stdout).trim_end()).unwrap()
}

/// The first words of a command line: what it does.
fn does(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').skip(1).collect();
    match words.as_slice() {
        ["jobs", what, ..] => format!("jobs {what}"),
        [what, ..] => (*what).to_owned(),
        [] => String::new(),
    }
}

/// Follows the next commands until there is none, and tells which they were.
fn follow(mut line: String) -> Vec<String> {
    let mut done = Vec::new();
    while done.len() < 10 {
        done.push(does(&line));
        let said = paste(&line);
        match said["next"].as_str() {
            Some(next) => next.clone_into(&mut line),
            None => return done,
        }
    }
    panic!("in a circle: {done:?}");
}

/// An instance by the real clock, as the program has it.
fn instance(ground: &Ground, runtimes: Box<dyn Runtimes + Send + Sync>, machine: &str) -> TestHost {
    let store = ground.store.open(&Clock::System);
    Host::start(store, GitWorkspaces::new(), OnThisThread, runtimes, machine).unwrap()
}

fn job_id(host: &TestHost) -> String {
    let jobs = rows(host, &[TableId::Jobs]);
    freehold_store::names::uuid_text(jobs.view.jobs.iter().next().unwrap().id.0)
}

/// Nobody renews a lease any more.
fn everybody_is_gone(ground: &Ground) {
    ground.store.sql("UPDATE instances SET lease_until = 1");
}

/// S-10, T-10: after a reset, what runs in the new worktree holds the old one up in no way. Nobody
/// is told to say that it is stopped; whoever says so all the same is refused while its instance
/// lives, so that no second agent begins beside it and the next archive stops it.
#[test]
fn c15_what_runs_on_after_a_reset_is_not_in_the_way_and_not_said_to_be_stopped() {
    let ground = Ground::new();
    let told = Told::new(Liveness::Alive);
    let host = instance(&ground, Box::new(told.clone()), &freehold_cli::machine_name());
    let (root, made) = settled(&ground, &host);
    let worktree = made.place.path.display().to_string();
    ground.git(&["worktree", "unlock", &worktree]);
    ground.git(&["worktree", "lock", "--reason", "mine", &worktree]);
    host.reset_environment(&ann(), "t", "e", &Operation::new("o")).unwrap();
    host.tick().unwrap();
    assert_eq!(job_states(&host, "o")[0].1, JobState::Failed);
    host.make_worktree(&ann(), &wanted(&ground, &root, "e", "b2")).unwrap();
    submit(&host, "s", "two").unwrap();
    support::run(&host, "two");
    end(&host, "two", "none");

    let job = job_id(&host);
    let shown = run(&ground, &["jobs", "show", &job]);
    assert_eq!(shown["may_run"], json!([]), "{shown:#}");
    assert_eq!(does(shown["next"].as_str().unwrap()), "jobs retry", "{shown:#}");

    let refused = run(&ground, &["jobs", "declare-stopped", "runtime-two"]);
    assert_eq!(refused["error"], "runtime_unreached", "{refused:#}");
    assert_eq!(paste(refused["next"].as_str().unwrap())["ok"], true);
    // It goes on, alone, and the next operation knows of it.
    submit(&host, "s", "three").unwrap();
    let seen = rows(&host, &[TableId::Runtimes]);
    assert_eq!(seen.view.runtimes.iter().count(), 1);
    told.answer(Liveness::Dead);
    host.archive_task(&ann(), "t", &Operation::new("o2")).unwrap();
    assert_eq!(told.stopped(), ["runtime-two"]);
}

/// Who lives can stop what he runs himself, or be ended: only then is there nothing but a person's
/// word. A failed job is not tried again by itself after that, and the next command does it.
#[test]
fn c15_a_persons_word_counts_once_the_instance_is_gone() {
    let ground = Ground::new();
    let machine = freehold_cli::machine_name();
    let host = instance(&ground, Box::new(Told::new(Liveness::Unknown)), &machine);
    let (_, made) = settled(&ground, &host);
    submit(&host, "s", "one").unwrap();
    support::run(&host, "one");
    let once = Settings { max_tries: 1, ..Settings::DEFAULT };
    let once = Command::Operator(OperatorCommand::ChangeSettings { settings: once });
    host.ask(&ann(), None, |_| Ok(once)).unwrap();
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    // The one try at the runtime, and the one at the worktree.
    for _ in 0..2 {
        host.tick().unwrap();
        ground.store.sql("UPDATE task_resource_cleanup_roots SET next_attempt_at = NULL");
    }
    let job = job_id(&host);
    let shown = run(&ground, &["jobs", "show", &job]);
    assert_eq!(shown["state"], "failed", "{shown:#}");
    assert_eq!(shown["may_run"], json!(["runtime-one"]), "{shown:#}");
    assert_eq!(does(shown["next"].as_str().unwrap()), "jobs retry", "{shown:#}");
    let refused = run(&ground, &["jobs", "declare-stopped", "runtime-one"]);
    assert_eq!(refused["error"], "runtime_unreached", "{refused:#}");
    let next = refused["next"].as_str().unwrap();
    assert_eq!(does(next), "jobs show");

    everybody_is_gone(&ground);
    let expected = ["jobs show", "jobs declare-stopped", "jobs retry", "work"];
    assert_eq!(follow(next.to_owned()), expected);
    assert_eq!(job_states(&host, "o")[0].1, JobState::Succeeded);
    assert!(!made.place.path.exists());
}

/// C-17: nobody who lives serves the runtime, so that nobody ever tries, and no try fails. From the
/// doctor on each command names the next, and the last one removes the worktree.
#[test]
fn c15_every_next_command_leads_to_the_end_where_a_machine_is_gone() {
    let ground = Ground::new();
    let host = ground.host_here();
    let (_, made) = settled(&ground, &host);
    let far = instance(&ground, Box::new(NoRuntimes), "another-machine");
    submit(&far, "s", "one").unwrap();
    support::run(&far, "one");
    let birth = "ticks=1 boot=another host= pids=4026532999 times=0 \
                 token=0123456789abcdef0123456789abcdef";
    let (birth, id) = (literal(birth), literal("runtime-one"));
    let sql = format!(
        "UPDATE executors_running SET process_started_at = {birth}, pid = '4711' WHERE id = {id}
         RETURNING id"
    );
    assert_eq!(ground.store.sql(&sql), "runtime-one");
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();

    // As long as somebody of that machine lives, who might stop it, it is left to him.
    let _beside = instance(&ground, Box::new(NoRuntimes), "another-machine");
    let gone = literal(&far.instance());
    drop(far);
    ground.store.sql(&format!("UPDATE instances SET lease_until = 1 WHERE id = {gone}"));
    let shown = run(&ground, &["jobs", "show", &job_id(&host)]);
    assert_eq!(shown["may_run"], json!(["runtime-one"]), "{shown:#}");
    assert_eq!(does(shown["next"].as_str().unwrap()), "work", "{shown:#}");
    everybody_is_gone(&ground);
    let worked = run(&ground, &["work"]);
    assert_eq!(worked["left_to_others"], 1, "{worked:#}");
    assert_eq!(job_states(&host, "o")[0].1, JobState::Pending);
    // The worktree's part is due again, without a wait.
    ground.store.sql(
        "UPDATE task_resource_cleanup_roots SET next_attempt_at = NULL
         WHERE root_id IS NOT NULL",
    );
    let report = run(&ground, &["doctor"]);
    let found = &report["findings"][0];
    assert_eq!(found["kind"], "runtime_unknown", "{report:#}");
    let expected = ["jobs show", "jobs declare-stopped", "work"];
    assert_eq!(follow(found["next"].as_str().unwrap().to_owned()), expected);
    assert_eq!(job_states(&host, "o")[0].1, JobState::Succeeded);
    assert!(!made.place.path.exists());
}

/// What is no process of its instance's machine may be gone while that one lives: once its stop was
/// asked for and came to nothing, a person's word counts.
#[test]
fn c15_a_persons_word_counts_for_what_is_remote_once_its_stop_was_asked_for() {
    let ground = Ground::new();
    let host = ground.host_here();
    settled(&ground, &host);
    submit(&host, "s", "one").unwrap();
    support::run(&host, "one");
    end(&host, "one", "none");
    ground.store.sql("UPDATE executors_running SET kind = 'remote'");
    let declare = ["jobs", "declare-stopped", "runtime-one"];
    assert_eq!(run(&ground, &declare)["error"], "runtime_unreached");
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    assert_eq!(run(&ground, &declare)["done"], "said to be stopped");
}
