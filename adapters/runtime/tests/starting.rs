//! What a program finds when it begins, and that it does not begin before (S-14).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use freehold_kernel::{Liveness, RuntimeStatus};
use freehold_runtime::{LocalRuntimes, Program, Sink, StartError};
use freehold_store::{Held, Runtimes};
use support::*;

#[test]
fn a_process_that_is_not_let_go_ends_and_nothing_has_run() {
    let ground = Ground::new();
    let runtimes = LocalRuntimes::new();
    let waiting = runtimes.prepare(ground.script("echo > ran")).unwrap();
    let (pid, texts) = (waiting.pid(), waiting.texts());
    assert!(lives(pid), "it waits");
    // It stands nowhere in the meantime, so that it is in no removal's way.
    let stands = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
    assert_eq!(stands, std::path::Path::new("/"));
    assert_eq!(runtimes.liveness(&handle(RuntimeStatus::Running, &texts)), Liveness::Alive);
    drop(waiting);
    assert_eq!(state(pid), None, "something is left of it");
    assert!(!ground.path.join("ran").exists());
    assert_eq!(runtimes.liveness(&handle(RuntimeStatus::Running, &texts)), Liveness::Dead);
}

#[test]
fn a_process_whose_starter_is_killed_ends_and_nothing_has_run() {
    const FOLDER: &str = "FREEHOLD_TEST_FOLDER";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let program = Program::new("/bin/sh", folder).arg("-c").arg("echo > ran");
        let waiting = LocalRuntimes::new().prepare(program).unwrap();
        println!("\nwaiting {}", waiting.pid());
        std::io::stdin().read_exact(&mut [0]).unwrap();
        unreachable!("nobody says anything");
    }
    let ground = Ground::new();
    let mut starter = again("a_process_whose_starter_is_killed_ends_and_nothing_has_run")
        .env(FOLDER, &ground.path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(starter.stdout.take().unwrap()).lines().map_while(Result::ok);
    let pid = lines.find_map(|l| l.strip_prefix("waiting ").map(str::to_owned)).unwrap();
    let pid: u32 = pid.parse().unwrap();
    assert!(lives(pid));
    starter.kill().unwrap();
    starter.wait().unwrap();
    until("it ends", || !lives(pid));
    assert!(!ground.path.join("ran").exists());
}

#[test]
fn a_program_stands_in_its_folder_and_session_and_inherits_nothing_else() {
    let ground = Ground::new();
    let runtimes = LocalRuntimes::new();
    let script = "echo $$; pwd; cat; cat /proc/self/environ | tr '\\0' '\\n' | sort; \
                  readlink /proc/$$/fd/0 /proc/$$/fd/2; echo . ; read -r _; exit 7";
    let program = ground.script(script).env("OWN", "a b\nc").arg("name").arg("two  words");
    let mut agent = Agent::begin(&runtimes, program);
    assert_eq!(agent.hear_pid(), agent.running.pid);
    assert_eq!(agent.hear(), ground.path.display().to_string());
    // Nobody speaks to it: its input is at its end.
    let token = format!("FREEHOLD_RUNTIME_{}=1", word(&agent.texts, "token"));
    let mut said: Vec<String> = Vec::new();
    while said.last().is_none_or(|l| l != ".") {
        said.push(agent.hear());
    }
    let pwd = format!("PWD={}", ground.path.display());
    let expected = [
        &token,
        "OWN=a b",
        "PATH=/usr/local/bin:/usr/bin:/bin",
        &pwd,
        "c",
        "/dev/null",
        "/dev/null",
        ".",
    ];
    let mut got = said.clone();
    got[..5].sort();
    let mut want: Vec<&str> = expected.to_vec();
    want[..5].sort_unstable();
    assert_eq!(got, want);
    until("it ended", || agent.running.ended().is_some());
    assert_eq!(agent.running.ended().unwrap().code(), Some(7));
    assert_eq!(state(agent.running.pid), None, "it was asked how it ended");
}

#[test]
fn a_program_has_a_session_of_its_own_and_its_number_is_the_recorded_one() {
    let ground = Ground::new();
    let mut agent = ground.run(&LocalRuntimes::new(), "echo ready; read -r _; sleep 1000");
    assert_eq!(agent.hear(), "ready");
    let pid = agent.running.pid;
    let fields = fields(pid);
    // State, parent, group, session, terminal; the start is the 20th.
    assert_eq!(
        &fields[1..5],
        [std::process::id().to_string(), pid.to_string(), pid.to_string(), "0".to_owned()]
    );
    assert_eq!(fields[19], word(&agent.texts, "ticks"));
    assert_eq!(agent.texts[0], ("pid", pid.to_string()));
    end(pid);
}

#[test]
fn a_program_that_is_spoken_to_hears_what_is_said_and_nothing_before() {
    let ground = Ground::new();
    let runtimes = LocalRuntimes::new();
    let errors = ground.path.join("errors");
    let program = Program::new("/bin/cat", &ground.path)
        .arg("-")
        .arg("missing")
        .spoken_to()
        .outputs(Sink::Pipe, Sink::File(std::fs::File::create(&errors).unwrap()));
    let mut running = runtimes.prepare(program).unwrap().begin().unwrap();
    let mut stdin = running.stdin.take().unwrap();
    stdin.write_all(b"begin\nhello\n").unwrap();
    drop(stdin);
    let mut heard = String::new();
    running.stdout.take().unwrap().read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "begin\nhello\n");
    until("it ended", || running.ended().is_some());
    assert!(std::fs::read_to_string(&errors).unwrap().contains("missing"));
}

#[test]
fn a_runtime_inside_a_runtime_carries_both_tokens() {
    // This process stands in for the outer runtime: it is run with its token.
    const OUTER: &str = "FREEHOLD_RUNTIME_0123456789abcdef0123456789abcdef";
    if std::env::var_os(OUTER).is_none() {
        let name = "a_runtime_inside_a_runtime_carries_both_tokens";
        let output = again(name).env(OUTER, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let ground = Ground::new();
    let mut agent = ground.run(&LocalRuntimes::new(), "env | grep -c '^FREEHOLD_RUNTIME_.*=1$'");
    assert_eq!(agent.hear(), "2");
}

#[test]
fn what_cannot_be_run_is_refused_by_name_and_makes_no_process() {
    let ground = Ground::new();
    let runtimes = LocalRuntimes::new();
    let plain = ground.path.join("plain");
    std::fs::write(&plain, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o644)).unwrap();
    let unfit = [
        (Program::new("sh", &ground.path), "not absolute"),
        (Program::new("/nowhere/at/all", &ground.path), "no such program"),
        (Program::new(&plain, &ground.path), "no program"),
        (Program::new("/bin/sh", ground.path.join("missing")), "no such folder"),
        (Program::new("/bin/sh", &plain), "no such folder"),
        (Program::new("/bin/sh", "."), "no such folder"),
    ];
    for (program, says) in unfit {
        let error = runtimes.prepare(program).unwrap_err();
        assert!(matches!(error, StartError::Unfit { .. }), "{error:?}");
        assert!(error.to_string().contains(says), "{error}");
    }
    for name in ["A B", "", "1A", "BASH_FUNC_x%%"] {
        let error = runtimes.prepare(Program::new("/bin/sh", &ground.path).env(name, "x"));
        assert!(matches!(error, Err(StartError::Name { .. })), "{name}");
    }
}

#[test]
fn a_folder_that_goes_before_the_beginning_ends_the_process() {
    let ground = Ground::new();
    let folder = ground.path.join("worktree");
    std::fs::create_dir(&folder).unwrap();
    let runtimes = LocalRuntimes::new();
    let ran = ground.path.join("ran");
    let program = Program::new("/bin/sh", &folder).arg("-c").arg(format!("> {}", ran.display()));
    let waiting = runtimes.prepare(program).unwrap();
    std::fs::remove_dir(&folder).unwrap();
    let running = waiting.begin().unwrap();
    until("it ended", || running.ended().is_some());
    assert_eq!(running.ended().unwrap().code(), Some(125));
    assert!(!ran.exists());
}
