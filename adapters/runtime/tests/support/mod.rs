//! Real processes, and what the system says of them.

#![allow(unreachable_pub, reason = "a module of every test binary")]
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::ChildStdout;
use std::time::{Duration, Instant};

use freehold_kernel::*;
use freehold_runtime::{LocalRuntimes, Program, Running, Sink};
use freehold_store::{Held, RuntimeHandle};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Longer than anything takes; only a failure waits for it.
const PATIENCE: Duration = Duration::from_secs(120);

/// A bound whose grace, a third, is short.
pub const BOUND: Duration = Duration::from_secs(30);

pub type Texts = Vec<(&'static str, String)>;

/// Runtimes that give little grace.
pub fn impatient() -> LocalRuntimes {
    LocalRuntimes::new().with_grace(Duration::from_millis(100))
}

/// A folder to stand in.
pub struct Ground {
    folder: tempfile::TempDir,
    pub path: PathBuf,
}

impl Ground {
    pub fn new() -> Ground {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        Ground { folder, path }
    }

    /// A script, with a usual search path.
    pub fn script(&self, text: &str) -> Program {
        Program::new("/bin/sh", &self.path)
            .arg("-c")
            .arg(text)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .outputs(Sink::Pipe, Sink::Nowhere)
    }

    /// A script that runs, what it says, and its handle.
    pub fn run(&self, runtimes: &LocalRuntimes, text: &str) -> Agent {
        Agent::begin(runtimes, self.script(text))
    }
}

/// A program that runs.
pub struct Agent {
    pub running: Running,
    pub texts: Texts,
    lines: BufReader<ChildStdout>,
}

impl Agent {
    pub fn begin(runtimes: &LocalRuntimes, program: Program) -> Agent {
        let waiting = runtimes.prepare(program).unwrap();
        let texts = waiting.texts();
        let mut running = waiting.begin().unwrap();
        let lines = BufReader::new(running.stdout.take().unwrap());
        Agent { running, texts, lines }
    }

    /// The next line that it says; empty at its end.
    pub fn hear(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end_matches('\n').to_owned()
    }

    /// The next line, which is a process's number.
    pub fn hear_pid(&mut self) -> u32 {
        let line = self.hear();
        line.parse().unwrap_or_else(|_| panic!("no number: {line:?}"))
    }

    pub fn handle(&self) -> RuntimeHandle {
        handle(RuntimeStatus::Running, &self.texts)
    }
}

/// A test that fails leaves nobody behind in the agent's group.
impl Drop for Agent {
    fn drop(&mut self) {
        let pid = i32::try_from(self.running.pid).ok().and_then(Pid::from_raw);
        if let (true, Some(pid)) = (std::thread::panicking(), pid) {
            let _gone = kill_process_group(pid, Signal::KILL);
        }
    }
}

/// A local runtime's handle with these texts.
pub fn handle(status: RuntimeStatus, texts: &Texts) -> RuntimeHandle {
    let row = Runtime {
        id: RuntimeId(1),
        session_id: SessionId(2),
        task_id: TaskId(3),
        task_environment_id: None,
        instance_id: InstanceId(4),
        kind: RuntimeKind::Local,
        status,
        last_seen_at: Time(5),
        created_at: Time(5),
        updated_at: Time(5),
    };
    let texts: BTreeMap<&'static str, String> = texts.iter().cloned().collect();
    RuntimeHandle { id: "r".to_owned(), row: Some(row), texts }
}

/// The texts with one word of the second replaced.
pub fn altered(texts: &Texts, name: &str, value: &str) -> Texts {
    let mut texts = texts.clone();
    for (column, text) in &mut texts {
        if *column == "process_started_at" {
            let words = text.split(' ').map(|word| match word.split_once('=') {
                Some((n, _)) if n == name => format!("{name}={value}"),
                Some(_) | None => word.to_owned(),
            });
            *text = words.collect::<Vec<_>>().join(" ");
        }
    }
    texts
}

/// One word of the second text.
pub fn word(texts: &Texts, name: &str) -> String {
    let text = &texts.iter().find(|(c, _)| *c == "process_started_at").unwrap().1;
    let mut words = text.split(' ').filter_map(|w| w.split_once('='));
    words.find(|(n, _)| *n == name).unwrap().1.to_owned()
}

/// The state letter of a process; none if there is none.
pub fn state(pid: u32) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Fields of `/proc/PID/stat` after the name, from the state on.
pub fn fields(pid: u32) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    text.rsplit_once(')').unwrap().1.split_whitespace().map(str::to_owned).collect()
}

/// Whether it runs: there, and not waiting to be asked how it ended.
pub fn lives(pid: u32) -> bool {
    state(pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Waits until something is so.
pub fn until(what: &str, so: impl Fn() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Ends a process of the test's own.
pub fn end(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let _gone = kill_process(pid, Signal::KILL);
}

pub fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// This test binary again, for this one test: another process of the scenario.
pub fn again(test: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]);
    command
}
