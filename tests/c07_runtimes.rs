//! T-5, S-14, S-22, C-6, C-7, C-17: agents that are real processes, in real worktrees, stopped
//! with proof, by whoever is there to do it; and nobody else's process is ever touched (W-31).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command as Spawn, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use freehold_git::GitWorkspaces;
use freehold_kernel::*;
use freehold_runtime::{LocalRuntimes, Program, Running, Sink, Waiting};
use freehold_store::{
    Clock, Held, Host, HostError, OnThisThread, Operation, RuntimeHandle, Runtimes, StartFailed,
};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use support::*;

/// An agent that hears no request to end: it stands in the worktree, with a child, a grandchild
/// that left the session, and work that nobody saved.
const DEAF: &str = "trap '' TERM; echo precious > MARKER
    sleep 1000 & echo $!
    setsid sh -c 'sleep 1000 & echo $!'
    while :; do sleep 1; done";

/// A host whose runtimes are processes of this machine, and those runtimes.
fn local(ground: &Ground) -> (TestHost, Arc<LocalRuntimes>) {
    let runtimes = Arc::new(LocalRuntimes::new().with_grace(Duration::from_millis(100)));
    (ground.host_on(GitWorkspaces::new(), Box::new(Arc::clone(&runtimes))), runtimes)
}

fn script(folder: &Path, text: &str) -> Program {
    Program::new("/bin/sh", folder)
        .arg("-c")
        .arg(text)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .outputs(Sink::Pipe, Sink::Nowhere)
}

/// A turn of the session `s` in a fresh runtime, both called after `name`, which wait to begin.
fn admit(host: &TestHost, name: &str) -> String {
    assert_eq!(submit(host, "s", name).unwrap(), Reply::Done);
    host.ask(&ann(), None, |c| {
        let turn = c.id(&format!("turn-{name}"))?;
        Ok(Command::Turn(TurnCommand::Advance { turn, phase: TurnPhase::Running }))
    })
    .unwrap();
    format!("runtime-{name}")
}

/// A running agent, and what it says.
struct Agent {
    running: Running,
    lines: BufReader<ChildStdout>,
}

impl Agent {
    fn new(mut running: Running) -> Agent {
        let lines = BufReader::new(running.stdout.take().unwrap());
        Agent { running, lines }
    }

    fn begin(
        host: &TestHost,
        runtimes: &LocalRuntimes,
        name: &str,
        folder: &Path,
        text: &str,
    ) -> Agent {
        let runtime = admit(host, name);
        let waiting = runtimes.prepare(script(folder, text)).unwrap();
        Agent::new(host.start_runtime(&runtime, waiting).unwrap())
    }

    fn pids(&mut self, count: usize) -> Vec<u32> {
        let mut pids = vec![self.running.pid];
        for _ in 0..count {
            let mut line = String::new();
            self.lines.read_line(&mut line).unwrap();
            pids.push(line.trim().parse().unwrap());
        }
        pids
    }
}

/// A test that fails leaves nobody behind in the agent's group.
impl Drop for Agent {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(pid) = i32::try_from(self.running.pid).ok().and_then(Pid::from_raw)
        {
            let _gone = kill_process_group(pid, Signal::KILL);
        }
    }
}

/// Whether it runs: there, and not waiting to be asked how it ended.
fn lives(pid: u32) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = text.rsplit_once(')').unwrap().1.trim_start().chars().next();
    !matches!(state, Some('Z' | 'X'))
}

fn living(pids: &[u32]) -> Vec<u32> {
    pids.iter().copied().filter(|pid| lives(*pid)).collect()
}

/// Waits until something is so; only a failure waits for long.
fn until(what: &str, so: impl Fn() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < Duration::from_secs(120), "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

fn status(host: &TestHost, runtime: &str) -> RuntimeStatus {
    host.runtime_handle(runtime).unwrap().row.unwrap().status
}

fn text(host: &TestHost, runtime: &str, column: &str) -> Option<String> {
    host.runtime_handle(runtime).unwrap().texts.get(column).cloned()
}

/// Lets stops take so long. A bound in microseconds is one in which nothing ends.
fn stop_bound(host: &TestHost, bound: Span) {
    let settings = Settings { stop_bound: bound, ..Settings::DEFAULT };
    host.ask(&ann(), None, |_| Ok(Command::Operator(OperatorCommand::ChangeSettings { settings })))
        .unwrap();
}

/// The parts of jobs: whether they lie in a root, their state and their tries.
fn parts(host: &TestHost) -> Vec<(bool, JobState, u32)> {
    let rows = rows(host, &[TableId::JobRoots]);
    let mut parts: Vec<_> =
        rows.view.job_roots.iter().map(|p| (p.root_id.is_some(), p.state, p.tries)).collect();
    parts.sort();
    parts
}

fn turns(host: &TestHost) -> Vec<(TurnPhase, Option<TurnOutcome>)> {
    rows(host, &[TableId::Turns]).view.turns.iter().map(|t| (t.phase, t.outcome)).collect()
}

/// Changes words of the text that says when and where a process started, behind everybody's back.
fn tamper(ground: &Ground, runtime: &str, pid: Option<u32>, words: &[(&str, &str)]) {
    let id = literal(runtime);
    let sql = format!("SELECT process_started_at FROM executors_running WHERE id = {id}");
    let started = ground.store.sql(&sql);
    let changed: Vec<String> = started
        .split(' ')
        .map(|word| {
            let name = word.split_once('=').unwrap().0;
            match words.iter().find(|(n, _)| *n == name) {
                Some((_, value)) => format!("{name}={value}"),
                None => word.to_owned(),
            }
        })
        .collect();
    let (changed, pid) = (literal(&changed.join(" ")), pid.map(|pid| literal(&pid.to_string())));
    let pid = pid.unwrap_or_else(|| "pid".to_owned());
    let sql = format!(
        "UPDATE executors_running SET process_started_at = {changed}, pid = {pid} WHERE id = {id}
         RETURNING id"
    );
    assert_eq!(ground.store.sql(&sql), runtime);
}

/// A process of a person's.
struct Person(Child);

impl Person {
    fn in_folder(folder: &Path) -> Person {
        let mut command = Spawn::new("cat");
        command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::null());
        Person(command.spawn().unwrap())
    }

    /// Ends as he likes; he was not killed.
    fn leaves(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success(), "a person's process was killed");
    }
}

#[test]
fn t05_an_agent_that_does_not_listen_is_stopped_before_its_worktree_goes() {
    for trigger in [Trigger::Archive, Trigger::Delete] {
        let ground = Ground::new();
        let (host, runtimes) = local(&ground);
        let (_, made) = settled(&ground, &host);
        let mut agent = Agent::begin(&host, &runtimes, "one", &made.place.path, DEAF);
        let pids = agent.pids(2);
        assert_eq!(living(&pids), pids);
        assert_eq!(status(&host, "runtime-one"), RuntimeStatus::Running);
        let operation = Operation::new("o");
        match trigger {
            Trigger::Archive => host.archive_task(&ann(), "t", &operation).unwrap(),
            _ => host.delete_task(&ann(), "t", &operation).unwrap(),
        };
        assert_eq!(living(&pids), [0u32; 0], "not stopped first");
        assert_eq!(status(&host, "runtime-one"), RuntimeStatus::Stopped);
        if trigger == Trigger::Archive {
            assert_eq!(turns(&host), [(TurnPhase::Ended, Some(TurnOutcome::Interrupted))]);
        }
        // Nothing was lost, and nothing of it is in the way.
        assert!(made.place.path.exists());
        let ticked = host.tick().unwrap();
        assert_eq!((ticked.removals, &ticked.troubles), (1, &vec![]), "{ticked:?}");
        assert!(!made.place.path.exists());
        assert!(salvage_holds(&ground, "precious\n"));
        assert_eq!(jobs(&host), [(trigger, JobState::Succeeded)]);
    }
}

#[test]
fn t05_a_stop_that_fails_within_its_bound_leaves_everything_and_is_tried_again() {
    let ground = Ground::new();
    let (host, runtimes) = local(&ground);
    let (_, made) = settled(&ground, &host);
    let mut agent = Agent::begin(&host, &runtimes, "one", &made.place.path, DEAF);
    let pids = agent.pids(2);
    stop_bound(&host, Span(1));
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    assert_eq!(living(&pids), pids);
    assert_eq!(status(&host, "runtime-one"), RuntimeStatus::Stopping);
    let before = contents(&made.place.path);
    host.tick().unwrap();
    // The stop cost a try; the worktree waits for it and cost none (C-6, C-17).
    let expected = [(false, JobState::RetryWait, 1), (true, JobState::Pending, 0)];
    assert_eq!(parts(&host), expected);
    assert_eq!(living(&pids), pids);
    assert_eq!(contents(&made.place.path), before);
    assert_eq!(status(&host, "runtime-one"), RuntimeStatus::Stopping, "its handle was dropped");
    // On schedule, with time enough.
    stop_bound(&host, Settings::DEFAULT.stop_bound);
    quiet(&ground, &host);
    assert_eq!(living(&pids), [0u32; 0]);
    assert!(!made.place.path.exists());
    assert!(salvage_holds(&ground, "precious\n"));
    assert_eq!(jobs(&host), [(Trigger::Archive, JobState::Succeeded)]);
}

#[test]
fn s22_a_session_is_deleted_once_its_runtime_is_stopped_and_not_before() {
    let ground = Ground::new();
    let (host, runtimes) = local(&ground);
    let (_, made) = settled(&ground, &host);
    let mut agent = Agent::begin(&host, &runtimes, "one", &made.place.path, DEAF);
    let pids = agent.pids(2);
    // While its turn runs it is busy (S-20); afterwards its runtime idles on.
    assert_eq!(refused(host.delete_session(&ann(), "s")), Guard::NoTurnWork);
    end(&host, "one", "never");
    stop_bound(&host, Span(1));
    let before = contents(&made.place.path);
    assert_eq!(refused(host.delete_session(&ann(), "s")), Guard::RuntimeQuiesced);
    assert_eq!(living(&pids), pids);
    let sessions = rows(&host, &[TableId::Sessions]);
    let session = sessions.view.sessions.iter().next().unwrap();
    assert_eq!(session.lifecycle, SessionLifecycle::Open);
    stop_bound(&host, Settings::DEFAULT.stop_bound);
    host.delete_session(&ann(), "s").unwrap();
    assert_eq!(living(&pids), [0u32; 0]);
    assert_eq!(status(&host, "runtime-one"), RuntimeStatus::Stopped);
    assert_eq!(rows(&host, &[TableId::Sessions]).view.sessions.len(), 0);
    // Promise 1.
    assert_eq!(contents(&made.place.path), before);
    assert_eq!(ground.registered(), std::slice::from_ref(&made.place.path));
}

/// A process that is recorded with a token to resume by.
struct Resumable(Waiting);

impl Held for Resumable {
    type Running = Running;

    fn texts(&self) -> Vec<(&'static str, String)> {
        let mut texts = self.0.texts();
        texts.push(("resume_token", "conversation-7".to_owned()));
        texts
    }

    fn begin(self) -> Result<Running, StartFailed> {
        self.0.begin()
    }
}

#[test]
fn c07_a_handle_whose_process_was_killed_is_repaired_in_place_and_not_dropped() {
    let ground = Ground::new();
    let (host, runtimes) = local(&ground);
    let (_, made) = settled(&ground, &host);
    let runtime = admit(&host, "one");
    let program = script(&made.place.path, "echo $$; while :; do sleep 1; done");
    let waiting = Resumable(runtimes.prepare(program).unwrap());
    let mut agent = Agent::new(host.start_runtime(&runtime, waiting).unwrap());
    let pid = agent.pids(1)[1];
    assert_eq!(pid, agent.running.pid);
    host.tick().unwrap();
    assert_eq!(status(&host, &runtime), RuntimeStatus::Running);
    kill(pid);
    // Its child goes on for a moment; then nobody is left.
    until("it is dead", || {
        runtimes.liveness(&host.runtime_handle(&runtime).unwrap()) == Liveness::Dead
    });
    assert_eq!(host.tick().unwrap().recovered, 1);
    assert_eq!(status(&host, &runtime), RuntimeStatus::Stopped);
    assert_eq!(text(&host, &runtime, "resume_token").as_deref(), Some("conversation-7"));
    assert_eq!(text(&host, &runtime, "pid"), Some(pid.to_string()));
    assert_eq!(host.tick().unwrap().recovered, 0);
    // The turn is its host's to end; the next one begins on no dead process.
    end(&host, "one", "never");
    let mut next = Agent::begin(&host, &runtimes, "two", &made.place.path, DEAF);
    let pids = next.pids(2);
    assert_eq!(rows(&host, &[TableId::Runtimes]).view.runtimes.len(), 2);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    assert_eq!(living(&pids), [0u32; 0]);
    host.tick().unwrap();
    assert!(!made.place.path.exists());
    assert_eq!(text(&host, &runtime, "resume_token").as_deref(), Some("conversation-7"));
}

#[test]
fn s14_a_runtime_begins_once_and_not_after_it_was_asked_to_stop() {
    let ground = Ground::new();
    let (host, runtimes) = local(&ground);
    let (_, made) = settled(&ground, &host);
    let folder = &made.place.path;
    let runtime = admit(&host, "one");
    let first = runtimes.prepare(script(folder, DEAF)).unwrap();
    let second = runtimes.prepare(script(folder, "echo > second")).unwrap();
    let (pid, other) = (first.pid(), second.pid());
    // That it has no process yet is no death, while its instance lives.
    host.tick().unwrap();
    assert_eq!(status(&host, &runtime), RuntimeStatus::Starting);
    let mut agent = Agent::new(host.start_runtime(&runtime, first).unwrap());
    let pids = agent.pids(2);
    // The effect was delivered twice: the first process stays the recorded one.
    let refused = host.start_runtime(&runtime, second).unwrap_err();
    assert!(matches!(refused, HostError::NotThere { .. }), "{refused}");
    assert!(!lives(other));
    assert_eq!(text(&host, &runtime, "pid"), Some(pid.to_string()));
    end(&host, "one", "never");
    // A later one is admitted, and then the task is archived before it begins.
    stop_bound(&host, Span(1));
    assert_eq!(refused_session(&host), Guard::RuntimeQuiesced);
    let late = admit(&host, "late");
    let waiting = runtimes.prepare(script(folder, "echo > late")).unwrap();
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    // Nothing was begun for it, which needs no stop to prove.
    assert_eq!(status(&host, &late), RuntimeStatus::Stopped);
    let other = waiting.pid();
    let refused = host.start_runtime(&late, waiting).unwrap_err();
    assert!(matches!(refused, HostError::NotThere { .. }), "{refused}");
    assert!(!lives(other));
    assert_eq!((folder.join("second").exists(), folder.join("late").exists()), (false, false));
    assert_eq!(status(&host, &late), RuntimeStatus::Stopped);
    stop_bound(&host, Settings::DEFAULT.stop_bound);
    quiet(&ground, &host);
    assert_eq!(living(&pids), [0u32; 0]);
}

fn refused_session(host: &TestHost) -> Guard {
    refused(host.delete_session(&ann(), "s"))
}

#[test]
fn c07_a_number_that_was_given_anew_is_not_killed() {
    let ground = Ground::new();
    let (host, runtimes) = local(&ground);
    let (_, made) = settled(&ground, &host);
    let agent = Agent::begin(&host, &runtimes, "one", &made.place.path, "exit 0");
    until("it ended", || agent.running.ended().is_some());
    // Somebody else has its number now, and started one tick later.
    let person = Person::in_folder(ground.folder.path());
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", person.0.id())).unwrap();
    let ticks: u64 =
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
    let ticks = (ticks - 1).to_string();
    tamper(&ground, "runtime-one", Some(person.0.id()), &[("ticks", &ticks)]);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    assert_eq!(status(&host, "runtime-one"), RuntimeStatus::Stopped);
    host.tick().unwrap();
    assert!(!made.place.path.exists());
    person.leaves();
}

#[test]
fn w31_a_persons_process_in_the_worktree_outlives_the_agents_stop() {
    let ground = Ground::new();
    let (host, runtimes) = local(&ground);
    let (_, made) = settled(&ground, &host);
    let mut agent = Agent::begin(&host, &runtimes, "one", &made.place.path, DEAF);
    let pids = agent.pids(2);
    let person = Person::in_folder(&made.place.path);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    assert_eq!(living(&pids), [0u32; 0]);
    host.tick().unwrap();
    assert!(made.place.path.join("MARKER").exists(), "removed under a process");
    person.leaves();
    quiet(&ground, &host);
    assert!(!made.place.path.exists());
    assert!(salvage_holds(&ground, "precious\n"));
}

/// The limit of what a stop finds: who left the session and cleared his environment. The removal
/// still waits for him.
#[test]
fn w31_one_who_escaped_every_proof_holds_up_the_removal_and_is_not_killed() {
    let ground = Ground::new();
    let (host, runtimes) = local(&ground);
    let (_, made) = settled(&ground, &host);
    let text = "setsid env -i /bin/sleep 1000 & echo $!; wait";
    let mut agent = Agent::begin(&host, &runtimes, "one", &made.place.path, text);
    let pids = agent.pids(1);
    until("it has escaped", || {
        let own = std::fs::read(format!("/proc/{}/environ", pids[1])).unwrap();
        own.is_empty() && std::fs::read(format!("/proc/{}/comm", pids[1])).unwrap() == b"sleep\n"
    });
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    assert_eq!(status(&host, "runtime-one"), RuntimeStatus::Stopped);
    host.tick().unwrap();
    assert!(made.place.path.join("story.txt").exists(), "removed under a process");
    assert_eq!(living(&pids), [pids[1]]);
    kill(pids[1]);
    until("it is dead", || !lives(pids[1]));
    quiet(&ground, &host);
    assert!(!made.place.path.exists());
}

#[test]
fn c17_what_another_machine_has_to_stop_is_left_to_it_and_costs_no_try() {
    let ground = Ground::new();
    let (host, runtimes) = local(&ground);
    let (_, made) = settled(&ground, &host);
    session(&host, "s2", "t", None).unwrap();
    let mut agent = Agent::begin(&host, &runtimes, "one", &made.place.path, DEAF);
    let pids = agent.pids(2);
    submit(&host, "s2", "two").unwrap();
    let waiting = runtimes.prepare(script(&made.place.path, DEAF)).unwrap();
    let mut far = Agent::new(host.start_runtime("runtime-two", waiting).unwrap());
    let far_pids = far.pids(2);
    // The second is said to be another container's; the first cannot be stopped at once.
    let pids_here = text(&host, "runtime-two", "process_started_at").unwrap();
    let pids_here = pids_here.split(' ').find_map(|w| w.strip_prefix("pids=")).unwrap().to_owned();
    tamper(&ground, "runtime-two", None, &[("pids", "4026532999")]);
    stop_bound(&host, Span(1));
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    stop_bound(&host, Settings::DEFAULT.stop_bound);
    for minutes in [0, 1, 10, 60] {
        ground.lapse(Span::minutes(minutes));
        host.tick().unwrap();
        // What is here is stopped; the rest waits, without a try.
        assert_eq!(living(&pids), [0u32; 0]);
        assert_eq!(living(&far_pids), far_pids);
        let expected = [(false, JobState::Pending, 0), (true, JobState::Pending, 0)];
        assert_eq!(parts(&host), expected, "after {minutes} minutes");
    }
    assert!(made.place.path.join("MARKER").exists());
    // There, it is stopped.
    tamper(&ground, "runtime-two", None, &[("pids", &pids_here)]);
    quiet(&ground, &host);
    assert_eq!(living(&far_pids), [0u32; 0]);
    assert!(!made.place.path.exists());
}

/// A process that says how far its recording is, and then waits to be killed.
struct Says {
    inner: Waiting,
    at: String,
}

impl Says {
    fn say(&self, at: &str) {
        if self.at == at {
            wait_to_be_killed(at, &[self.inner.pid()]);
        }
    }
}

fn wait_to_be_killed(at: &str, pids: &[u32]) {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    println!("\nat {at} {}", pids.join(" "));
    std::io::stdin().lines().for_each(drop);
    panic!("nobody killed this process");
}

impl Held for Says {
    type Running = Running;

    fn texts(&self) -> Vec<(&'static str, String)> {
        self.say("made");
        self.inner.texts()
    }

    fn begin(self) -> Result<Running, StartFailed> {
        self.say("recorded");
        self.inner.begin()
    }
}

const STORE: &str = "FREEHOLD_C07_STORE";
const AT: &str = "FREEHOLD_C07_AT";
const FOLDER: &str = "FREEHOLD_C07_WORKTREE";

/// Not a test of its own: the instance that is killed.
#[test]
fn f48_the_instance() {
    let Ok(store) = std::env::var(STORE) else { return };
    let (at, folder) = (std::env::var(AT).unwrap(), std::env::var(FOLDER).unwrap());
    let clock = Clock::manual(Time(1_700_000_000_000_000));
    let store = StorePlace::told(&store).open(&clock);
    let runtimes = Arc::new(LocalRuntimes::new());
    let git = GitWorkspaces::new();
    let handed = Box::new(Arc::clone(&runtimes));
    let host = Host::start(store, git, OnThisThread, handed, "test-machine").unwrap();
    let runtime = admit(&host, "one");
    let waiting = runtimes.prepare(script(Path::new(&folder), DEAF)).unwrap();
    let mut agent = Agent::new(host.start_runtime(&runtime, Says { inner: waiting, at }).unwrap());
    wait_to_be_killed("begun", &agent.pids(2));
}

#[test]
fn f48_an_instance_that_is_killed_while_it_starts_a_runtime_leaves_no_process_untracked() {
    for at in ["made", "recorded", "begun"] {
        let ground = Ground::new();
        let (host, runtimes) = local(&ground);
        let (_, made) = settled(&ground, &host);
        let mut instance = Spawn::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                test_name(concat!(module_path!(), "::f48_the_instance")),
                "--nocapture",
            ])
            .env(STORE, ground.store.text())
            .env(AT, at)
            .env(FOLDER, &made.place.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(instance.stdout.take().unwrap()).lines();
        let told = format!("at {at} ");
        let said = lines.map_while(Result::ok).find(|line| line.starts_with(&told)).unwrap();
        let pids: Vec<u32> = said.split(' ').skip(2).map(|w| w.parse().unwrap()).collect();
        assert_eq!(pids.len(), if at == "begun" { 3 } else { 1 }, "{at}: {pids:?}");
        assert_eq!(living(&pids), pids, "{at}");
        instance.kill().unwrap();
        instance.wait().unwrap();
        let row = host.runtime_handle("runtime-one").unwrap();
        let expected = if at == "made" { RuntimeStatus::Starting } else { RuntimeStatus::Running };
        assert_eq!(row.row.unwrap().status, expected, "{at}");
        if at == "begun" {
            // It runs on without its host, and its handle leads to it.
            assert_eq!(runtimes.liveness(&row), Liveness::Alive);
        } else {
            until("it ends", || living(&pids).is_empty());
            assert_eq!(runtimes.liveness(&row), Liveness::Dead, "{at}");
            assert!(!made.place.path.join("MARKER").exists(), "{at}: it ran");
        }
        // Whoever comes next ends the turn, unless its runtime lives, and repairs the handle.
        ground.lapse(Span::minutes(2));
        host.tick().unwrap();
        let (phase, stands) = if at == "begun" {
            (TurnPhase::Running, RuntimeStatus::Running)
        } else {
            (TurnPhase::Ended, RuntimeStatus::Stopped)
        };
        assert_eq!(turns(&host)[0].0, phase, "{at}");
        assert_eq!(status(&host, "runtime-one"), stands, "{at}");
        // No session says for ever that it runs, and none runs twice.
        let next = submit(&host, "s", "next").unwrap();
        assert_eq!(next, if at == "begun" { Reply::Queued } else { Reply::Done }, "{at}");
        host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
        assert_eq!(living(&pids), [0u32; 0], "{at}");
        host.tick().unwrap();
        assert!(!made.place.path.exists(), "{at}");
        assert_eq!(jobs(&host), [(Trigger::Archive, JobState::Succeeded)], "{at}");
    }
}

/// Runtimes whose host is killed when it is about to stop one.
struct Halts(LocalRuntimes);

impl Runtimes for Halts {
    fn stop(&self, _: &RuntimeHandle, _: Duration, _: &mut dyn FnMut()) -> Liveness {
        wait_to_be_killed("stopping", &[]);
        Liveness::Unknown
    }

    fn serves(&self, handle: &RuntimeHandle) -> bool {
        self.0.serves(handle)
    }

    fn liveness(&self, handle: &RuntimeHandle) -> Liveness {
        self.0.liveness(handle)
    }
}

/// Not a test of its own: the instance that closes a session, or bars a task, and is killed.
#[test]
fn s14_the_closer() {
    let Ok(store) = std::env::var(STORE) else { return };
    let clock = Clock::manual(Time(1_700_000_000_000_000));
    let store = StorePlace::told(&store).open(&clock);
    let handed = Box::new(Halts(LocalRuntimes::new()));
    let host =
        Host::start(store, GitWorkspaces::new(), OnThisThread, handed, "test-machine").unwrap();
    match std::env::var(AT).unwrap().as_str() {
        "close" => host.delete_session(&ann(), "s").unwrap(),
        _ => drop(host.archive_task(&ann(), "t", &Operation::new("o")).unwrap()),
    }
}

#[test]
fn s14_a_stop_whose_owner_is_gone_is_carried_out_by_whoever_can() {
    for at in ["close", "barrier", "unserved"] {
        let ground = Ground::new();
        let (host, runtimes) = local(&ground);
        let (_, made) = settled(&ground, &host);
        let mut agent = Agent::begin(&host, &runtimes, "one", &made.place.path, DEAF);
        let pids = agent.pids(2);
        end(&host, "one", "never");
        if at == "unserved" {
            // Its own host cannot stop it, and gives the close up.
            let plain = ground.host();
            assert_eq!(refused(plain.delete_session(&ann(), "s")), Guard::RuntimeQuiesced);
        } else {
            let mut closer = Spawn::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    test_name(concat!(module_path!(), "::s14_the_closer")),
                    "--nocapture",
                ])
                .env(STORE, ground.store.text())
                .env(AT, at)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let lines = BufReader::new(closer.stdout.take().unwrap()).lines();
            let said = lines.map_while(Result::ok).find(|line| line.starts_with("at stopping"));
            assert!(said.is_some(), "{at}: it ended before it stopped anything");
            // Its mark or barrier lives: it is his (P-34).
            host.tick().unwrap();
            assert_eq!(living(&pids), pids, "{at}");
            closer.kill().unwrap();
            closer.wait().unwrap();
            host.tick().unwrap();
            assert_eq!(living(&pids), pids, "{at}");
            ground.lapse(Span::minutes(2));
        }
        assert_eq!(status(&host, "runtime-one"), RuntimeStatus::Stopping, "{at}");
        // Who cannot stop it does not say that it is.
        ground.host().tick().unwrap();
        assert_eq!(status(&host, "runtime-one"), RuntimeStatus::Stopping, "{at}");
        // In vain, it is told and tried again, not with every tick.
        stop_bound(&host, Span(1));
        let troubles = host.tick().unwrap().troubles;
        assert!(troubles.len() == 1 && troubles[0].contains("runtime-one"), "{at}: {troubles:?}");
        assert_eq!(host.tick().unwrap().troubles, [""; 0], "{at}");
        assert_eq!(living(&pids), pids, "{at}");
        stop_bound(&host, Settings::DEFAULT.stop_bound);
        ground.lapse(Span::minutes(2));
        let ticked = host.tick().unwrap();
        assert_eq!((ticked.recovered, ticked.troubles), (1, vec![]), "{at}");
        assert_eq!(living(&pids), [0u32; 0], "{at}");
        assert_eq!(status(&host, "runtime-one"), RuntimeStatus::Stopped, "{at}");
        // The next turn is alone.
        let mut next = Agent::begin(&host, &runtimes, "two", &made.place.path, DEAF);
        let pids = next.pids(2);
        assert_eq!(host.tick().unwrap().recovered, 0, "{at}");
        assert_eq!(living(&pids), pids, "{at}");
        host.archive_task(&ann(), "t", &Operation::new("p")).unwrap();
        assert_eq!(living(&pids), [0u32; 0], "{at}");
    }
}

type Deed = Box<dyn FnOnce(&str) + Send>;

/// Does something once, when recovery looks at the first runtime.
struct Meanwhile {
    inner: LocalRuntimes,
    act: Mutex<Option<Deed>>,
}

impl Runtimes for Meanwhile {
    fn stop(&self, handle: &RuntimeHandle, bound: Duration, pulse: &mut dyn FnMut()) -> Liveness {
        self.inner.stop(handle, bound, pulse)
    }

    fn serves(&self, handle: &RuntimeHandle) -> bool {
        if let Some(act) = self.act.lock().unwrap().take() {
            act(&handle.id);
        }
        self.inner.serves(handle)
    }

    fn liveness(&self, handle: &RuntimeHandle) -> Liveness {
        self.inner.liveness(handle)
    }
}

/// Recovery reads all runtimes, and handles one after the other: what one of them became
/// meanwhile is seen.
#[test]
fn c07_a_process_that_began_while_recovery_was_under_way_is_not_said_to_be_stopped() {
    for returns in [false, true] {
        let ground = Ground::new();
        let (owner, runtimes) = local(&ground);
        let (_, made) = settled(&ground, &owner);
        session(&owner, "s2", "t", None).unwrap();
        admit(&owner, "one");
        assert_eq!(submit(&owner, "s2", "two").unwrap(), Reply::Done);
        // Its owner is held up for long, and goes on while others recover.
        ground.lapse(Span::minutes(2));
        let (began, told) = std::sync::mpsc::channel();
        let waiting = runtimes.prepare(script(&made.place.path, DEAF)).unwrap();
        let act = move |first: &str| {
            let other = if first == "runtime-one" { "runtime-two" } else { "runtime-one" };
            if returns {
                owner.renew().unwrap();
            } else {
                let agent = Agent::new(owner.start_runtime(other, waiting).unwrap());
                began.send((first.to_owned(), other.to_owned(), agent)).unwrap();
            }
        };
        let act: Deed = Box::new(act);
        let inner = LocalRuntimes::new().with_grace(Duration::from_millis(100));
        let host = ground.host_on(
            GitWorkspaces::new(),
            Box::new(Meanwhile { inner, act: Mutex::new(Some(act)) }),
        );
        host.tick().unwrap();
        if returns {
            for runtime in ["runtime-one", "runtime-two"] {
                assert_eq!(status(&host, runtime), RuntimeStatus::Starting, "{runtime}");
            }
            continue;
        }
        let (first, other, mut agent) = told.recv().unwrap();
        let pids = agent.pids(2);
        assert_eq!(status(&host, &other), RuntimeStatus::Running);
        assert_eq!(status(&host, &first), RuntimeStatus::Stopped);
        assert_eq!(living(&pids), pids);
        host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
        assert_eq!(living(&pids), [0u32; 0]);
    }
}

#[test]
fn c17_what_is_stopped_already_is_settled_by_whoever_claims_it() {
    let ground = Ground::new();
    let (host, runtimes) = local(&ground);
    let (_, made) = settled(&ground, &host);
    let mut agent = Agent::begin(&host, &runtimes, "one", &made.place.path, DEAF);
    let pids = agent.pids(2);
    let plain = ground.host();
    plain.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    let ticked = plain.tick().unwrap();
    assert_eq!((ticked.left, ticked.settled), (1, 0), "{ticked:?}");
    // Its own host stops it, and says so.
    let handle = host.runtime_handle("runtime-one").unwrap();
    let bound = Duration::from_secs(60);
    assert_eq!(runtimes.stop(&handle, bound, &mut || {}), Liveness::Dead);
    assert_eq!(living(&pids), [0u32; 0]);
    host.ask(&ann(), None, |c| {
        let (runtime, status) = (c.id("runtime-one")?, RuntimeStatus::Stopped);
        Ok(Command::Turn(TurnCommand::ReportRuntime { runtime, status }))
    })
    .unwrap();
    let ticked = plain.tick().unwrap();
    assert_eq!((ticked.left, ticked.settled), (0, 1), "{ticked:?}");
    quiet(&ground, &plain);
    assert!(!made.place.path.exists());
}

/// Runtimes that count what they were asked to stop.
struct Counted {
    inner: LocalRuntimes,
    stops: Arc<AtomicUsize>,
}

impl Runtimes for Counted {
    fn stop(&self, handle: &RuntimeHandle, bound: Duration, pulse: &mut dyn FnMut()) -> Liveness {
        self.stops.fetch_add(1, Ordering::SeqCst);
        self.inner.stop(handle, bound, pulse)
    }

    fn serves(&self, handle: &RuntimeHandle) -> bool {
        self.inner.serves(handle)
    }

    fn liveness(&self, handle: &RuntimeHandle) -> Liveness {
        self.inner.liveness(handle)
    }
}

/// Both are told of the same part and ask for it at once. Who loses the claim stops nobody, and
/// what the other does is done once.
#[test]
fn c03_of_two_instances_that_claim_at_once_one_stops_the_runtime() {
    let ground = Ground::new();
    let (host, runtimes) = local(&ground);
    let (_, made) = settled(&ground, &host);
    let mut agent = Agent::begin(&host, &runtimes, "one", &made.place.path, DEAF);
    let pids = agent.pids(2);
    // Archived by one that runs nothing, so that the stop is the job's.
    ground.host().archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    assert_eq!(living(&pids), pids);
    let (all, stops) = (Barrier::new(2), Arc::new(AtomicUsize::new(0)));
    let tick = || {
        let inner = LocalRuntimes::new().with_grace(Duration::from_millis(100));
        let counted = Box::new(Counted { inner, stops: Arc::clone(&stops) });
        let store = Meeting::new(ground.store.open(&ground.clock), false, &all);
        let mut instance =
            Host::start(store, GitWorkspaces::new(), OnThisThread, counted, "test-machine")
                .unwrap();
        ground.pace(&mut instance);
        instance.tick().unwrap()
    };
    let ticked = std::thread::scope(|scope| {
        let both = [scope.spawn(tick), scope.spawn(tick)];
        both.map(|instance| instance.join().unwrap())
    });
    assert_eq!(stops.load(Ordering::SeqCst), 1, "{ticked:?}");
    assert!(ticked.iter().map(|t| t.lost).sum::<u32>() >= 1, "nothing was contended: {ticked:?}");
    let troubles: Vec<&String> = ticked.iter().flat_map(|t| &t.troubles).collect();
    assert!(troubles.is_empty(), "{troubles:?}");
    assert_eq!(living(&pids), [0u32; 0]);
    assert_eq!(status(&host, "runtime-one"), RuntimeStatus::Stopped);
    quiet(&ground, &host);
    assert!(!made.place.path.exists());
    assert!(salvage_holds(&ground, "precious\n"));
    // No try was spent on what the other did (C-17).
    assert_eq!(jobs(&host), [(Trigger::Archive, JobState::Succeeded)]);
    assert!(parts(&host).iter().all(|(_, _, tries)| *tries == 1), "{:?}", parts(&host));
}

/// A host as the program is one, by the real clock.
fn local_here(ground: &Ground) -> (TestHost, Arc<LocalRuntimes>) {
    let runtimes = Arc::new(LocalRuntimes::new());
    let store = ground.store.open(&Clock::System);
    let machine = freehold_cli::machine_name();
    let handed = Box::new(Arc::clone(&runtimes));
    let host = Host::start(store, GitWorkspaces::new(), OnThisThread, handed, &machine).unwrap();
    (host, runtimes)
}

fn program(ground: &Ground, words: &[&str]) -> (i32, serde_json::Value) {
    let output = ground.program(words).arg("--json").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code().unwrap(), serde_json::from_str(text.lines().last().unwrap()).unwrap())
}

#[test]
fn c17_the_program_stops_the_runtimes_of_this_machine() {
    let ground = Ground::new();
    let (host, runtimes) = local_here(&ground);
    let (_, made) = settled(&ground, &host);
    let keen = DEAF.strip_prefix("trap '' TERM;").unwrap();
    let mut agent = Agent::begin(&host, &runtimes, "one", &made.place.path, keen);
    let pids = agent.pids(2);
    // An instance that runs nothing archives, and its worker leaves the runtime alone.
    let plain = ground.host_here();
    plain.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    let ticked = plain.tick().unwrap();
    assert_eq!((ticked.claimed, ticked.left), (1, 1), "{ticked:?}");
    assert_eq!(living(&pids), pids);
    let expected = [(false, JobState::Pending, 0), (true, JobState::Pending, 0)];
    assert_eq!(parts(&plain), expected);
    // Of another container, it is left to that, and said to be (the worktree waits for it).
    let here = std::fs::read_link("/proc/self/ns/pid").unwrap().display().to_string();
    let here = here.trim_start_matches("pid:[").trim_end_matches(']').to_owned();
    tamper(&ground, "runtime-one", None, &[("pids", "4026532999")]);
    let (code, report) = program(&ground, &["work"]);
    assert_eq!((code, &report["left_to_others"]), (0, &1.into()), "{report:#}");
    tamper(&ground, "runtime-one", None, &[("pids", &here)]);
    // The worktree's part is due again at once; the runtime's always was, whoever looked at it.
    let due = "UPDATE task_resource_cleanup_roots SET next_attempt_at = NULL
               WHERE root_id IS NOT NULL";
    ground.store.sql(due);
    let (code, report) = program(&ground, &["work"]);
    let expected = (0, &1.into(), &0.into());
    assert_eq!((code, &report["removals"], &report["left_to_others"]), expected, "{report:#}");
    assert_eq!(living(&pids), [0u32; 0]);
    assert!(!made.place.path.exists());
}

#[test]
fn c07_the_doctor_tells_of_handles_without_a_process() {
    let ground = Ground::new();
    let (host, runtimes) = local_here(&ground);
    let (_, made) = settled(&ground, &host);
    let runtime = admit(&host, "one");
    // About to start, and then alive: nothing to tell.
    let (code, report) = program(&ground, &["doctor"]);
    assert_eq!((code, &report["runtimes"]), (0, &1.into()), "{report:#}");
    let waiting = runtimes.prepare(script(&made.place.path, "echo $$; exec sleep 1000")).unwrap();
    let mut agent = Agent::new(host.start_runtime(&runtime, waiting).unwrap());
    let pid = agent.pids(1)[0];
    let (code, report) = program(&ground, &["doctor"]);
    assert_eq!((code, &report["runtimes"]), (0, &1.into()), "{report:#}");
    kill(pid);
    until("it is dead", || !lives(pid));
    let (code, report) = program(&ground, &["doctor"]);
    let found = &report["findings"][0];
    assert_eq!((code, &found["kind"]), (6, &"runtime_dead".into()), "{report:#}");
    assert_eq!(found["about"], "runtime-one");
    assert!(found["says"].as_str().unwrap().contains(&pid.to_string()), "{found:#}");
    assert_eq!(status(&host, &runtime), RuntimeStatus::Running, "the doctor wrote");
    // Of another container: a living instance's is its own; a gone one's nobody can judge.
    tamper(&ground, &runtime, None, &[("pids", "4026532999")]);
    let (code, report) = program(&ground, &["doctor"]);
    assert_eq!((code, &report["runtimes_elsewhere"]), (0, &1.into()), "{report:#}");
    ground.store.sql("UPDATE instances SET lease_until = 1");
    let (code, report) = program(&ground, &["doctor"]);
    let found = &report["findings"][0];
    assert_eq!((code, &found["kind"]), (6, &"runtime_unknown".into()), "{report:#}");
    // The next command that it names repairs what can be.
    let here = std::fs::read_link("/proc/self/ns/pid").unwrap().display().to_string();
    let here = here.trim_start_matches("pid:[").trim_end_matches(']').to_owned();
    tamper(&ground, &runtime, None, &[("pids", &here)]);
    let (_, report) = program(&ground, &["doctor"]);
    let next = report["findings"].as_array().unwrap().iter();
    let next: Vec<_> = next.filter(|f| f["kind"] == "runtime_dead").collect();
    assert!(next[0]["next"].as_str().unwrap().starts_with("freehold work --store "), "{report:#}");
    assert_eq!(program(&ground, &["work"]).0, 0);
    assert_eq!(status(&host, &runtime), RuntimeStatus::Stopped);
}

/// S-14, S-10: nobody can speak to the agent of an instance that is gone. It is stopped, and its
/// turn ends, so that what waits behind it goes on; while its instance may come back, it is left.
#[test]
fn s14_an_agent_whose_instance_is_gone_is_stopped_and_its_turn_ends() {
    let ground = Ground::new();
    let told = Told::new(Liveness::Alive);
    let host = ground.host_with_runtimes(&told);
    settled(&ground, &host);
    submit(&host, "s", "one").unwrap();
    support::run(&host, "one");
    let mut other = ground.host_with_runtimes(&told);
    let moments = Arc::new(Mutex::new(Instant::now()));
    let read = Arc::clone(&moments);
    other.paced_by(move || *read.lock().unwrap());
    // By both clocks; while the machine sleeps, by the store's alone.
    let pass = |seconds: u32| {
        *moments.lock().unwrap() += Duration::from_secs(seconds.into());
        ground.lapse(Span::seconds(seconds.into()));
    };
    let open = || {
        let rows = rows(&other, &[TableId::Turns, TableId::Runtimes]);
        let turn = *rows.view.turns.iter().next().unwrap();
        (turn.outcome, rows.view.runtimes.iter().next().unwrap().status)
    };
    // Its lease lapsed, and it comes back: nothing is taken from it, however often that happens,
    // and even if it is never seen alive in between.
    for looks_between in [false, true] {
        for _ in 0..3 {
            pass(40);
            other.tick().unwrap();
            host.renew().unwrap();
            if looks_between {
                other.tick().unwrap();
            }
        }
        assert_eq!(open(), (None, RuntimeStatus::Running), "{looks_between}");
    }
    // Who renews the turn lives, even if he does not say so of the instance.
    let instance = host.instance();
    for _ in 0..3 {
        pass(40);
        other.tick().unwrap();
        host.ask(&ann(), None, |c| {
            let (turn, instance) = (c.id("turn-one")?, c.id(&instance)?);
            Ok(Command::Turn(TurnCommand::Renew { turn, instance }))
        })
        .unwrap();
    }
    other.tick().unwrap();
    pass(29);
    other.tick().unwrap();
    assert_eq!(open(), (None, RuntimeStatus::Running));
    // The machine sleeps, twice, and who looks first after that is not its owner.
    for _ in 0..2 {
        ground.lapse(Span::seconds(40));
        other.tick().unwrap();
        assert_eq!(open(), (None, RuntimeStatus::Running));
    }
    drop(host);
    // Seen gone, and seen gone a lease later.
    for (seconds, expected) in [(29, RuntimeStatus::Running), (1, RuntimeStatus::Stopping)] {
        pass(seconds);
        other.tick().unwrap();
        assert_eq!(open(), (None, expected));
    }
    assert_eq!(told.stopped(), Vec::<String>::new());
    told.answer(Liveness::Dead);
    other.tick().unwrap();
    assert_eq!(told.stopped(), ["runtime-one"]);
    assert_eq!(open(), (None, RuntimeStatus::Stopped));
    other.tick().unwrap();
    assert_eq!(open(), (Some(TurnOutcome::Interrupted), RuntimeStatus::Stopped));
    assert_eq!(submit(&other, "s", "two").unwrap(), Reply::Done);
}
