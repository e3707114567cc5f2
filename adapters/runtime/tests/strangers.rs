//! Handles that name somebody else, or nobody that this process could judge (C-7, C-17, W-31).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use freehold_kernel::{Liveness, RuntimeKind, RuntimeStatus, Time};
use freehold_runtime::LocalRuntimes;
use freehold_store::{RuntimeHandle, Runtimes};
use support::*;

/// Somebody else's process, the first of a session of its own. It ends with this value.
struct Stranger(Child);

impl Stranger {
    fn new() -> Stranger {
        let mut command = Command::new("setsid");
        command.arg("cat").stdin(Stdio::piped()).stdout(Stdio::null());
        let stranger = Stranger(command.spawn().unwrap());
        let pid = stranger.pid();
        until("it has its session", || {
            std::fs::read(format!("/proc/{pid}/comm")).unwrap() == b"cat\n"
        });
        assert_eq!(fields(pid)[3], pid.to_string());
        stranger
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn ticks(&self) -> u64 {
        fields(self.pid())[19].parse().unwrap()
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _status = self.0.wait();
    }
}

/// What a record looks like that was made here.
fn recorded() -> Texts {
    let ground = Ground::new();
    let runtimes = LocalRuntimes::new();
    let agent = ground.run(&runtimes, "exit 0");
    until("it ended", || agent.running.ended().is_some());
    agent.texts.clone()
}

fn naming(texts: &Texts, pid: u32, ticks: u64) -> RuntimeHandle {
    let mut texts = altered(texts, "ticks", &ticks.to_string());
    texts[0].1 = pid.to_string();
    handle(RuntimeStatus::Running, &texts)
}

#[test]
fn a_number_that_was_given_anew_is_another_and_is_not_touched() {
    let texts = recorded();
    let stranger = Stranger::new();
    let runtimes = impatient();
    // One tick off, to either side, is another process.
    for ticks in [stranger.ticks() - 1, stranger.ticks() + 1] {
        let handle = naming(&texts, stranger.pid(), ticks);
        assert_eq!(runtimes.liveness(&handle), Liveness::Dead);
        assert_eq!(runtimes.stop(&handle, BOUND, &mut || {}), Liveness::Dead);
        assert!(lives(stranger.pid()), "a stranger was killed");
    }
    // The same start is the same process.
    let exact = naming(&texts, stranger.pid(), stranger.ticks());
    assert_eq!(runtimes.liveness(&exact), Liveness::Alive);
}

#[test]
fn what_is_elsewhere_is_unknown_and_is_left_to_those_who_can_say() {
    let texts = recorded();
    let stranger = Stranger::new();
    let runtimes = impatient();
    let here = naming(&texts, stranger.pid(), stranger.ticks());
    assert!(runtimes.serves(&here));
    let places = [
        // Another container on this machine; another clock; another machine.
        vec![("pids", "4026532999")],
        vec![("times", "4026532998")],
        vec![("boot", "another"), ("host", "00000000000000000000000000000000")],
        vec![("boot", "another"), ("host", "")],
        // An earlier run of a container that may run elsewhere now.
        vec![("boot", "another"), ("pids", "4026532999")],
    ];
    for place in places {
        let mut texts = texts.clone();
        for (name, value) in &place {
            texts = altered(&texts, name, value);
        }
        let handle = naming(&texts, stranger.pid(), stranger.ticks());
        assert_eq!(runtimes.liveness(&handle), Liveness::Unknown, "{place:?}");
        assert_eq!(runtimes.stop(&handle, BOUND, &mut || {}), Liveness::Unknown, "{place:?}");
        assert!(!runtimes.serves(&handle), "{place:?}");
        assert!(lives(stranger.pid()), "{place:?}: a stranger was killed");
    }
}

#[test]
fn what_ran_before_this_machine_was_started_is_dead() {
    let texts = recorded();
    let stranger = Stranger::new();
    let runtimes = impatient();
    let before = naming(&altered(&texts, "boot", "earlier"), stranger.pid(), stranger.ticks());
    // Only outside of containers does a machine's id name one machine.
    let outside = word(&texts, "pids") == "4026531836" && !word(&texts, "host").is_empty();
    let expected = if outside { Liveness::Dead } else { Liveness::Unknown };
    assert_eq!(runtimes.liveness(&before), expected);
    assert_eq!(runtimes.stop(&before, BOUND, &mut || {}), expected);
    assert_eq!(runtimes.serves(&before), outside);
    assert!(lives(stranger.pid()), "a stranger was killed");
}

#[test]
fn what_was_never_recorded_never_began() {
    let runtimes = LocalRuntimes::new();
    let none = Texts::new();
    let begun = |handle: &RuntimeHandle| (runtimes.liveness(handle), runtimes.serves(handle));
    // Asked to stop before it began, or not.
    assert_eq!(begun(&handle(RuntimeStatus::Starting, &none)), (Liveness::Dead, true));
    let mut stopping = handle(RuntimeStatus::Stopping, &none);
    assert_eq!(begun(&stopping), (Liveness::Dead, true));
    // Somebody said that it runs, and did not say where.
    assert_eq!(begun(&handle(RuntimeStatus::Running, &none)), (Liveness::Unknown, true));
    stopping.row.as_mut().unwrap().last_seen_at = Time(6);
    assert_eq!(begun(&stopping), (Liveness::Unknown, true));
    // Half a record, and another program's.
    for texts in [
        vec![("pid", "4711".to_owned())],
        vec![("process_started_at", recorded()[1].1.clone())],
        vec![("pid", "4711".to_owned()), ("process_started_at", "2024-05-01 10:00:00".to_owned())],
    ] {
        let handle = handle(RuntimeStatus::Starting, &texts);
        assert_eq!(begun(&handle), (Liveness::Unknown, true), "{texts:?}");
    }
}

#[test]
fn what_is_no_local_process_is_somebody_elses_to_stop() {
    let runtimes = LocalRuntimes::new();
    let texts = recorded();
    for kind in [RuntimeKind::Container, RuntimeKind::Remote] {
        let mut handle = handle(RuntimeStatus::Running, &texts);
        handle.row.as_mut().unwrap().kind = kind;
        assert_eq!(runtimes.stop(&handle, BOUND, &mut || {}), Liveness::Unknown);
        assert!(!runtimes.serves(&handle));
    }
    let container = RuntimeHandle { id: "c".to_owned(), row: None, texts: Default::default() };
    assert_eq!(runtimes.liveness(&container), Liveness::Unknown);
    assert!(!runtimes.serves(&container));
}

#[test]
fn who_stands_in_its_folder_is_not_therefore_its_own() {
    let ground = Ground::new();
    let runtimes = impatient();
    let mut agent = ground.run(&runtimes, "trap '' TERM; echo ready; while :; do sleep 1; done");
    assert_eq!(agent.hear(), "ready");
    let mut person = Command::new("cat")
        .current_dir(&ground.path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(runtimes.stop(&agent.handle(), BOUND, &mut || {}), Liveness::Dead);
    assert!(lives(person.id()), "a person's process was killed");
    drop(person.stdin.take());
    assert!(person.wait().unwrap().success());
}

/// The texts of a handle, for another process.
fn told(texts: &Texts) -> String {
    format!("{}\n{}", texts[0].1, texts[1].1)
}

fn hear_told(text: &str) -> Texts {
    let (pid, started) = text.split_once('\n').unwrap();
    vec![("pid", pid.to_owned()), ("process_started_at", started.to_owned())]
}

#[test]
fn another_users_process_lives_is_not_ours_to_stop_and_is_told_so() {
    const HANDLE: &str = "FREEHOLD_TEST_HANDLE";
    const NAME: &str = "another_users_process_lives_is_not_ours_to_stop_and_is_told_so";
    if let Ok(text) = std::env::var(HANDLE) {
        let handle = handle(RuntimeStatus::Running, &hear_told(&text));
        let runtimes = impatient();
        let pid = handle.texts["pid"].clone();
        // Its environment is nothing that may be read; its start is.
        assert!(std::fs::read(format!("/proc/{pid}/environ")).is_err());
        assert_eq!(runtimes.liveness(&handle), Liveness::Alive);
        let answer = runtimes.stop(&handle, Duration::from_secs(2), &mut || {});
        assert_eq!(answer, Liveness::Alive);
        return;
    }
    assert!(rustix::process::geteuid().is_root(), "this test needs a second user: run it as root");
    let ground = Ground::new();
    let runtimes = impatient();
    let mut agent = ground.run(&runtimes, "trap '' TERM; echo ready; while :; do sleep 1; done");
    assert_eq!(agent.hear(), "ready");
    // A copy that the other user can run.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let everybody = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), everybody.clone()).unwrap();
    let copy = folder.path().join("again");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    std::fs::set_permissions(&copy, everybody).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy)
        .args(["--exact", NAME, "--nocapture"])
        .env(HANDLE, told(&agent.texts))
        .current_dir("/")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert!(lives(agent.running.pid));
    assert_eq!(runtimes.stop(&agent.handle(), BOUND, &mut || {}), Liveness::Dead);
}

#[test]
fn a_process_inside_a_runtime_leaves_that_to_those_outside() {
    const HANDLE: &str = "FREEHOLD_TEST_INSIDE";
    if let Ok(file) = std::env::var(HANDLE) {
        let text = std::fs::read_to_string(file).unwrap();
        let handle = handle(RuntimeStatus::Running, &hear_told(&text));
        let runtimes = impatient();
        assert_eq!(runtimes.liveness(&handle), Liveness::Alive);
        assert!(!runtimes.serves(&handle));
        assert_eq!(runtimes.stop(&handle, BOUND, &mut || {}), Liveness::Alive);
        println!("\nlives on");
        return;
    }
    let ground = Ground::new();
    let runtimes = impatient();
    let file = ground.path.join("handle");
    let test = std::env::current_exe().unwrap();
    // Once in the session of the runtime, once outside it with the token only.
    for how in ["", "setsid"] {
        let script = format!(
            "read -r _; {how} {} --exact a_process_inside_a_runtime_leaves_that_to_those_outside \
             --nocapture; echo ended $?",
            test.display()
        );
        let program = ground.script(&script).env(HANDLE, file.to_str().unwrap()).spoken_to();
        let mut agent = Agent::begin(&runtimes, program);
        std::fs::write(&file, told(&agent.texts)).unwrap();
        drop(agent.running.stdin.take());
        let mut said = Vec::new();
        while said.last().is_none_or(|l: &String| !l.starts_with("ended")) {
            said.push(agent.hear());
            assert_ne!(said.last().unwrap(), "\0", "{said:?}");
            assert!(said.len() < 100, "{said:?}");
        }
        assert!(said.contains(&"lives on".to_owned()), "{said:?}");
        assert_eq!(said.last().unwrap(), "ended 0");
    }
}
