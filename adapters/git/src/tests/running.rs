//! W-13, W-32: how the git program is run.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use freehold_kernel::Reason;
use freehold_store::workspaces::Workspaces;

use super::fixture::Fixture;
use crate::GitWorkspaces;
use crate::process::{Git, Input, Run};

fn script(dir: &Path, text: &str) -> PathBuf {
    let path = dir.join("program");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn input_and_both_outputs_of_any_size_pass() {
    let dir = tempfile::tempdir().unwrap();
    let program = script(dir.path(), "head -c 300000 /dev/zero >&2; cat; exit 3");
    let git = Git::with(program, Duration::from_secs(60));
    let input = vec![7u8; 1_000_000];
    let run = Run { stdin: Input::Bytes(&input), ..Run::default() };
    let output = git.run(dir.path(), &["x"], run).unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(output.stdout, input);
    assert_eq!(output.stderr.len(), 300_000);
}

#[test]
fn the_same_with_a_lock_handed_over() {
    let f = Fixture::new();
    let place = f.place("w");
    let lock = f.spaces.lock(&place).unwrap();
    let program = script(f.dir.path(), "cat; echo \"$GIT_DIR|$HOME|$*\" >&2");
    let git = Git::with(program, Duration::from_secs(60)).holding(lock.fd());
    let run = Run { stdin: Input::Bytes(b"in"), ..Run::default() };
    let output = git.run(f.dir.path(), &["a b", "\"$0\""], run).unwrap();
    assert_eq!(output.stdout, b"in");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("|/dev/null|--no-pager -c core.hooksPath=/dev/null"), "{said}");
    assert!(said.trim_end().ends_with("a b \"$0\""), "{said}");
}

#[test]
fn a_program_that_takes_too_long_goes_with_its_whole_group() {
    let dir = tempfile::tempdir().unwrap();
    let program = script(dir.path(), "sleep 1000 & echo $! > child; sleep 1000");
    let git = Git::with(program, Duration::from_secs(2));
    let refused = git.run(dir.path(), &["x"], Run::default()).unwrap_err();
    assert_eq!(refused.reason, Reason::TimedOut);
    let pid = fs::read_to_string(dir.path().join("child")).unwrap();
    let stat = PathBuf::from(format!("/proc/{}/stat", pid.trim()));
    let started = Instant::now();
    // The signal is sent; when the process has acted on it is the kernel's matter.
    while fs::read_to_string(&stat).is_ok_and(|s| !s.contains(") Z")) {
        assert!(started.elapsed() < Duration::from_secs(20), "the child of git lives on");
        std::thread::yield_now();
    }
}

#[test]
fn a_lost_right_ends_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let git = Git::with(script(dir.path(), "sleep 1000"), Duration::from_secs(600));
    let mut pulse = || false;
    let run = Run { pulse: Some(&mut pulse), ..Run::default() };
    let refused = git.run(dir.path(), &["x"], run).unwrap_err();
    assert_eq!(refused.reason, Reason::Contested);
}

#[test]
fn a_missing_git_is_named() {
    let dir = tempfile::tempdir().unwrap();
    for program in ["no-such-git", "/no/such/git"] {
        let git = Git::with(program.into(), Duration::from_secs(5));
        let refused = git.run(dir.path(), &["version"], Run::default()).unwrap_err();
        assert!(refused.detail.contains(program), "{refused}");
        assert!(refused.help.contains("install git"), "{refused}");
    }
}

/// F27: without git a worktree is not called dirty or clean but unknown.
#[test]
fn without_git_an_inspection_could_not_tell() {
    let f = Fixture::new();
    let place = f.made("w");
    let spaces = GitWorkspaces::new().with_program("/no/git".into(), Duration::from_secs(5));
    let found = spaces.inspect(&place, &mut || true);
    assert!(found.evidence.unsaved.covers(freehold_kernel::Unsaved::UNKNOWN));
    assert!(!found.evidence.unsaved.covers(freehold_kernel::Unsaved::TRACKED));
}

#[test]
fn the_path_lock_is_held_until_the_last_child_is_gone() {
    let f = Fixture::new();
    let place = f.place("w");
    let (fifo, ready) = (f.dir.path().join("fifo"), f.dir.path().join("ready"));
    assert!(Command::new("mkfifo").args([&fifo, &ready]).status().unwrap().success());
    // A child of git that left its group, as a daemon would, and lives until the pipe closes.
    let program = script(
        f.dir.path(),
        &format!(
            "setsid sh -c 'echo >{0}; exec cat <{1}' >/dev/null 2>&1 & read _ <{0}",
            ready.display(),
            fifo.display()
        ),
    );
    let lock = f.spaces.lock(&place).unwrap();
    let git = Git::with(program, Duration::from_secs(60)).holding(lock.fd());
    git.ok(f.dir.path(), &["x"], Run::default()).unwrap();
    // Opening for writing waits until the child has the pipe open.
    let mut writer = fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    drop((git, lock));
    let short = f.spaces.clone().with_lock_wait(Duration::from_millis(50));
    assert_eq!(short.lock(&place).unwrap_err().reason, Reason::Contested);
    writer.write_all(b"end").unwrap();
    drop(writer);
    f.spaces.lock(&place).unwrap();
}

/// What the host starts by itself must not keep the lock.
#[test]
fn an_unrelated_child_does_not_inherit_the_lock() {
    let f = Fixture::new();
    let place = f.place("w");
    let lock = f.spaces.lock(&place).unwrap();
    let mut agent =
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    drop(lock);
    // Not at once: between a fork and its exec any process of another test has it for a moment.
    f.spaces.lock(&place).unwrap();
    drop(agent.stdin.take());
    let mut rest = Vec::new();
    agent.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
    agent.wait().unwrap();
}

#[test]
fn another_paths_lock_is_refused() {
    let f = Fixture::new();
    let (a, b) = (f.place("a"), f.place("b"));
    let lock = f.spaces.lock(&a).unwrap();
    let refused = f.spaces.make(&lock, &b, &f.plan(&b), &mut || true).unwrap_err();
    assert_eq!(refused.reason, Reason::Contested);
    assert!(!b.path.exists());
}
