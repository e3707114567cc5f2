//! X07: creation against archive and delete, in every order of their steps and with each dying at
//! each of them. Included in the cleanup, or refused and undone; never untracked.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::cell::Cell;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::time::Duration;

use freehold_git::GitWorkspaces;
use freehold_kernel::*;
use freehold_store::{Clock, Host, HostError, Made, NoRuntimes, OnThisThread, Read, Wanted};
use support::*;

/// Where a maker stands when a step of the operation is taken: before it began, at its three
/// hooks, after it ended (or died).
const POINTS: [&str; 5] = ["before", "intended", "made", "materialised", "after"];
const AFTER: usize = 4;

/// One order of steps.
#[derive(Clone, Debug)]
struct Order {
    trigger: Trigger,
    /// At which point each of the operation's steps is taken; shorter if it dies before.
    steps: Vec<usize>,
    /// At which point the maker dies.
    dies: Option<usize>,
}

/// Every non-decreasing list of this length over these points.
fn lists(points: &[usize], length: usize) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for _ in 0..length {
        all = all
            .iter()
            .flat_map(|list: &Vec<usize>| {
                let last = list.last().copied().unwrap_or(0);
                points
                    .iter()
                    .filter(move |p| **p >= last)
                    .map(|p| [list.clone(), vec![*p]].concat())
            })
            .collect();
    }
    all
}

/// A ground on which many orders are tried, one after the other, each with a task of its own.
struct Arena {
    ground: Ground,
    home: TestHost,
    root: String,
    rounds: Cell<usize>,
}

impl Arena {
    fn new() -> Arena {
        let ground = Ground::new();
        let home = ground.host();
        workspace(&home, "w");
        let root = home.register_root(&ann(), &ground.root_path).unwrap();
        Arena { ground, home, root, rounds: Cell::new(0) }
    }

    /// A fresh task with an environment.
    fn task(&self) -> (usize, String) {
        let n = self.rounds.get();
        self.rounds.set(n + 1);
        let t = format!("t{n}");
        task(&self.home, &t).unwrap();
        environment(&self.home, &format!("e{n}"), &t).unwrap();
        (n, t)
    }

    fn wanted(&self, n: usize) -> Wanted {
        wanted(&self.ground, &self.root, &format!("e{n}"), &format!("b{n}"))
    }

    fn lifecycle(&self, task: &str) -> Option<TaskLifecycle> {
        let rows = self.home.read(&[Read::by(TableId::Tasks, "id", &[task])]).unwrap();
        rows.view.tasks.iter().next().map(|t| t.lifecycle)
    }

    /// The states of the attempts for an environment.
    fn attempts(&self, n: usize) -> Vec<AttemptState> {
        let e = format!("e{n}");
        let rows = self.home.read(&[Read::by(TableId::Attempts, "task_environment_id", &[&e])]);
        rows.unwrap().view.attempts.iter().map(|a| a.state).collect()
    }

    /// The instances that died are long gone; a new one brings everything to its end.
    fn restart(&self) -> TestHost {
        let host = self.ground.host();
        quiet(&self.ground, &host);
        self.home.renew().unwrap();
        host
    }

    /// What has to be true in the end, whatever happened on the way.
    fn judge(&self, n: usize, t: &str, completed: Option<Trigger>) {
        let host = self.restart();
        assert_tracked(&self.ground, &host, &[]);
        let attempts = self.attempts(n);
        match completed {
            Some(trigger) => {
                let gone = trigger == Trigger::Delete;
                let expected = (!gone).then_some(TaskLifecycle::Archived);
                assert_eq!(self.lifecycle(t), expected);
                assert_eq!(host.places_of(t).unwrap(), []);
                assert_eq!(jobs_of(&host, t), [(trigger, JobState::Succeeded)]);
            }
            None => {
                // No operation came through: active, unbarred, and the slot is either owned or
                // as if nobody had asked.
                assert_eq!(self.lifecycle(t), Some(TaskLifecycle::Active));
                let owned = attempts.contains(&AttemptState::Owned);
                assert_eq!(host.places_of(t).unwrap().len(), usize::from(owned));
                if !owned {
                    host.make_worktree(&ann(), &self.wanted(n)).unwrap();
                    assert_tracked(&self.ground, &host, &[]);
                }
                session(&host, &format!("s{n}"), t, None).unwrap();
            }
        }
    }

    fn race(&self, order: &Order) {
        let (n, t) = self.task();
        let operation = format!("operation-{n}");
        let (maker, closer) = (self.ground.host(), self.ground.host());
        let taken = Cell::new(0);
        let take = |point: usize| {
            while order.steps.get(taken.get()).is_some_and(|at| *at <= point) {
                let at = STEPS[taken.get()];
                taken.set(taken.get() + 1);
                step(&closer, &t, &operation, order.trigger, at).unwrap();
                if at == Step::Mutate && (1..AFTER).contains(&point) {
                    // Its worker comes at once: while the maker lives, nothing is taken from
                    // under its hands (C-6).
                    let before = self.attempts(n);
                    assert_eq!(closer.tick().unwrap().troubles, Vec::<String>::new());
                    assert_eq!(before, [AttemptState::Compensating]);
                    assert_eq!(self.attempts(n), before);
                }
            }
        };
        take(0);
        let made = survives(|| {
            maker.make_worktree_between(&ann(), &self.wanted(n), &mut |at| {
                let Some(point) = POINTS.iter().position(|p| *p == at) else { return };
                take(point);
                if order.dies == Some(point) {
                    die();
                }
            })
        });
        // One that the mutation overtook loses its token, and does not come to its next hook.
        let mutated = order.steps.get(2);
        let overtaken = mutated.zip(order.dies.as_ref()).is_some_and(|(at, dies)| at < dies);
        assert_eq!(made.is_none(), order.dies.is_some() && !overtaken);
        if let Some(made) = &made {
            self.answer(order, made);
        }
        drop(maker);
        take(AFTER);
        let completed = order.steps.len() == STEPS.len();
        if completed {
            // It lives, and goes on working.
            closer.tick().unwrap();
        }
        drop(closer);
        self.judge(n, &t, completed.then_some(order.trigger));
    }

    /// What a maker that lived was told.
    fn answer(&self, order: &Order, made: &Result<Made, HostError>) {
        let barred = order.steps.first().is_some_and(|at| *at < AFTER);
        match made {
            Ok(made) => {
                assert!(!barred, "made under a barrier");
                assert!(made.place.path.join("story.txt").is_file());
            }
            Err(error) => {
                assert!(barred, "refused without a reason: {error}");
                assert!(error.guard().is_some(), "failed instead of being refused: {error}");
            }
        }
    }

    fn all(&self, orders: Vec<Order>) {
        for order in orders {
            let tried =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.race(&order)));
            if let Err(why) = tried {
                eprintln!("in the order {order:?}");
                std::panic::resume_unwind(why);
            }
        }
    }
}

fn orders(
    trigger: Trigger,
    points: &[usize],
    lengths: &[usize],
    dies: Option<usize>,
) -> Vec<Order> {
    lengths
        .iter()
        .flat_map(|length| lists(points, *length))
        .map(|steps| Order { trigger, steps, dies })
        .collect()
}

#[test]
fn x07_a_worktree_is_made_while_its_task_is_deleted_in_every_order() {
    Arena::new().all(orders(Trigger::Delete, &[0, 1, 2, 3, 4], &[3], None));
}

#[test]
fn x07_a_worktree_is_made_while_its_task_is_archived_in_every_order() {
    Arena::new().all(orders(Trigger::Archive, &[0, 1, 3, 4], &[3], None));
}

#[test]
fn x07_the_maker_dies_at_each_step_in_every_order() {
    let arena = Arena::new();
    for dies in 1..AFTER {
        let mut points: Vec<usize> = (1..=dies).collect();
        points.push(AFTER);
        arena.all(orders(Trigger::Delete, &points, &[0, 1, 2, 3], Some(dies)));
    }
    // An archive differs in its mutation only: that one, at each point.
    for dies in 1..AFTER {
        for at in [1, dies, AFTER] {
            arena.all(vec![Order {
                trigger: Trigger::Archive,
                steps: vec![at.min(dies), at, at],
                dies: Some(dies),
            }]);
        }
    }
}

#[test]
fn x07_the_operation_dies_at_each_step_in_every_order() {
    let arena = Arena::new();
    arena.all(orders(Trigger::Delete, &[0, 1, 2, 3, 4], &[1, 2], None));
    arena.all(orders(Trigger::Archive, &[1, 3], &[2], None));
}

/// When a session is created, in the order of the operation's steps.
#[test]
fn x07_a_session_is_created_at_every_step_of_an_operation_that_may_die() {
    let arena = Arena::new();
    let host = &arena.home;
    for trigger in [Trigger::Archive, Trigger::Delete] {
        // `at`: how many steps were taken before; `ends`: how many the operation takes at all.
        for (at, ends) in (0..=3).flat_map(|ends| (0..=ends).map(move |at| (at, ends))) {
            let (n, t) = arena.task();
            let place = host.make_worktree(&ann(), &arena.wanted(n)).unwrap().place;
            mark(&place.path);
            let (s, operation) = (format!("s-{n}"), format!("operation-{n}"));
            let closer = arena.ground.host();
            let case = format!("{trigger:?}: created after {at} of {ends} steps");
            for step_at in &STEPS[..at] {
                step(&closer, &t, &operation, trigger, *step_at).unwrap();
            }
            let created = session(host, &s, &t, None);
            match (at, trigger) {
                (0, _) => created.unwrap(),
                (1 | 2, _) => assert_eq!(refused(created), Guard::TaskUnbarred, "{case}"),
                (_, Trigger::Delete) => {
                    assert_eq!(refused(created), Guard::TaskNotDeleted, "{case}")
                }
                _archived => assert_eq!(refused(created), Guard::TaskActive, "{case}"),
            }
            for step_at in &STEPS[at..ends] {
                step(&closer, &t, &operation, trigger, *step_at).unwrap();
            }
            drop(closer);
            let restarted = arena.restart();
            let rows = restarted.read(&[Read::by(TableId::Sessions, "id", &[&s])]).unwrap();
            let there = rows.view.sessions.iter().next().map(|s| s.lifecycle);
            if ends == 3 {
                // Included in the operation, or never there; and the worktree is cleaned up.
                let closed =
                    (at == 0 && trigger == Trigger::Archive).then_some(SessionLifecycle::Archived);
                assert_eq!(there, closed, "{case}");
                assert!(!place.path.exists(), "{case}");
            } else {
                assert_eq!(there, (at == 0).then_some(SessionLifecycle::Open), "{case}");
                assert!(is_marked(&place.path), "{case}");
                // The barrier is lifted: the creation may be repeated.
                if at > 0 {
                    session(&restarted, &s, &t, None).unwrap();
                }
            }
            assert_tracked(&arena.ground, &restarted, &[]);
        }
    }
}

// ---------------------------------------------------------------------------------------------
// Real processes, really killed.

const ROLE: &str = "FREEHOLD_X07_ROLE";

/// Not a test of its own: what the tests below start again, in a process that they kill. It does
/// its part until the point that it was told, says so, and stands still.
#[test]
fn x07_the_other_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let told = |name: &str| std::env::var(format!("FREEHOLD_X07_{name}")).unwrap();
    let clock = Clock::manual(Time(told("NOW").parse().unwrap()));
    let store = StorePlace::told(&told("STORE")).open(&clock);
    let stop = told("STOP");
    let mut git = GitWorkspaces::new();
    if let Ok(program) = std::env::var("FREEHOLD_X07_GIT") {
        git = git.with_program(PathBuf::from(program), Duration::from_secs(60));
    }
    let count: Option<usize> = stop.parse().ok();
    let workspaces = Hooked::new(git, |point, call| {
        if Some(point) == count {
            stand_still(call);
        }
        Act::Go
    });
    let host =
        Host::start(store, workspaces, OnThisThread, Box::new(NoRuntimes), "test-machine").unwrap();
    match role.as_str() {
        "maker" => {
            let wanted = Wanted {
                environment: told("ENVIRONMENT"),
                repository: told("REPOSITORY"),
                slug: told("BRANCH"),
                branch: told("BRANCH"),
                start: None,
                root: told("ROOT"),
            };
            let made = host.make_worktree_between(&ann(), &wanted, &mut |at| {
                if at == stop {
                    stand_still(at);
                }
            });
            say(&format!("ended {}", made.is_ok()));
        }
        "worker" => {
            let ticked = host.tick().unwrap();
            say(&format!("ended {}", ticked.troubles.is_empty()));
        }
        other => panic!("no such part: {other}"),
    }
}

fn say(what: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "\nX07 {what}").unwrap();
    out.flush().unwrap();
}

/// Says where, and waits to be killed.
fn stand_still(at: &str) {
    say(&format!("at {at}"));
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

/// The other process.
struct Other {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Other {
    fn start(arena: &Arena, role: &str, stop: &str, n: usize, git: Option<&Path>) -> Other {
        let name = test_name(concat!(module_path!(), "::x07_the_other_process"));
        let mut program = Program::new(std::env::current_exe().unwrap());
        program
            .args([name, "--exact", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env("FREEHOLD_X07_NOW", arena.ground.clock.now().0.to_string())
            .env("FREEHOLD_X07_STORE", arena.ground.store.text())
            .env("FREEHOLD_X07_STOP", stop)
            .env("FREEHOLD_X07_ENVIRONMENT", format!("e{n}"))
            .env("FREEHOLD_X07_BRANCH", format!("b{n}"))
            .env("FREEHOLD_X07_REPOSITORY", &arena.ground.repository)
            .env("FREEHOLD_X07_ROOT", &arena.root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if let Some(git) = git {
            program.env("FREEHOLD_X07_GIT", git);
        }
        let mut child = program.spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Other { child, said }
    }

    /// Waits for its next word.
    fn listen(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.said.read_line(&mut line).unwrap(), 0, "the other process is gone");
            if let Some(word) = line.trim().strip_prefix("X07 ") {
                return word.to_owned();
            }
        }
    }

    /// `kill -9`.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn x07_a_maker_is_killed_at_each_hook() {
    let arena = Arena::new();
    for at in ["intended", "made", "materialised"] {
        // Without an operation; with a delete that is over before the kill; that begins after it;
        // that holds its barrier during the kill.
        for before in [None, Some(3), Some(0), Some(1)] {
            let (n, t) = arena.task();
            let mut maker = Other::start(&arena, "maker", at, n, None);
            assert_eq!(maker.listen(), format!("at {at}"));
            let operation = format!("operation-{n}");
            let closer = arena.ground.host();
            let go = |steps: &[Step]| {
                for s in steps {
                    step(&closer, &t, &operation, Trigger::Delete, *s).unwrap();
                }
            };
            go(&STEPS[..before.unwrap_or(0)]);
            maker.kill();
            if let Some(taken) = before {
                go(&STEPS[taken..]);
            }
            drop(closer);
            arena.judge(n, &t, before.map(|_| Trigger::Delete));
            // Without an operation: what was verified is adopted, everything else is undone.
            if before.is_none() {
                let first = arena.attempts(n);
                let adopted = at == "materialised";
                assert_eq!(first.len(), if adopted { 1 } else { 2 }, "{at}: {first:?}");
            }
        }
    }
}

#[test]
fn x07_a_worker_is_killed_before_and_after_each_of_its_calls() {
    let arena = Arena::new();
    let mut calls = Vec::new();
    for point in 0.. {
        assert!(point < 60, "the loop does not end");
        let (n, t) = arena.task();
        let made = arena.home.make_worktree(&ann(), &arena.wanted(n)).unwrap();
        mark(&made.place.path);
        let trigger = if point % 2 == 0 { Trigger::Archive } else { Trigger::Delete };
        for at in STEPS {
            step(&arena.home, &t, &format!("operation-{n}"), trigger, at).unwrap();
        }
        let mut worker = Other::start(&arena, "worker", &point.to_string(), n, None);
        let word = worker.listen();
        worker.kill();
        arena.judge(n, &t, Some(trigger));
        assert!(!made.place.path.exists());
        if trigger == Trigger::Archive {
            arena.home.unarchive_task(&ann(), &t, false).unwrap();
            assert_restorable(&arena.home, &t);
        }
        match word.strip_prefix("at ") {
            Some(call) => calls.push(call.to_owned()),
            None => {
                assert_eq!(word, "ended true");
                break;
            }
        }
    }
    // The last look is at what an adapter says that it purged (W-36).
    assert_eq!(calls.len(), 18, "{calls:?}");
}

/// Git itself is caught in the middle: its n-th call waits, its parent is killed, and then it goes
/// on as an orphan that still holds the path lock. A successor comes onto the path only after it
/// (W-13).
fn killed_inside_git(role: &str, every: usize, begin: impl Fn(&Arena, usize, &str)) {
    let arena = Arena::new();
    let folder = arena.ground.folder.path();
    let (counted, stop) = (folder.join("calls"), folder.join("stop"));
    let (here, go) = (folder.join("here"), folder.join("go"));
    for fifo in [&here, &go] {
        assert!(Program::new("mkfifo").arg(fifo).status().unwrap().success());
    }
    // Each call adds a line; the one that is told stops between two pipes.
    let lines = format!(
        "echo x >> '{counted}'\n\
         if [ \"$(wc -l < '{counted}')\" -eq \"$(cat '{stop}')\" ]; then\n\
         echo here > '{here}'; read -r word < '{go}'; fi",
        counted = counted.display(),
        stop = stop.display(),
        here = here.display(),
        go = go.display(),
    );
    let git = wrapped_git(&arena.ground, "slow-git", &lines);
    let mut held_up = 0;
    for call in (1..).step_by(every) {
        assert!(call < 200, "the loop does not end");
        let (n, t) = arena.task();
        begin(&arena, n, &t);
        std::fs::write(&counted, "").unwrap();
        std::fs::write(&stop, call.to_string()).unwrap();
        let Other { mut child, said } = Other::start(&arena, role, "never", n, Some(&git));
        let end = here.clone();
        let listener = std::thread::spawn(move || {
            // Should it come to its end without that call, nobody waits for it for ever.
            if let Some(word) = said.lines().map_while(Result::ok).find(|l| l.starts_with("X07 ")) {
                std::fs::write(end, format!("{word}\n")).unwrap();
            }
        });
        // Blocks until git has come there, or all is over.
        let word = std::fs::read_to_string(&here).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        listener.join().unwrap();
        let caught = word == "here\n";
        if caught {
            // Its parent's leases lapse. Who comes after a maker is kept out as long as git runs.
            arena.ground.lapse(Span::minutes(2));
            let early = GitWorkspaces::new().with_lock_wait(Duration::from_millis(20));
            let early = arena.ground.host_with(early);
            // A worker's claim is rescued, and tried again when it is due. Where it only looked,
            // nothing is permitted yet and the next may begin.
            let of_role = |line: &String| role == "maker" || line.starts_with("removal");
            let open = || open_work(&early).into_iter().filter(of_role).collect::<Vec<_>>();
            let before = open();
            early.tick().unwrap();
            arena.ground.lapse(Span::minutes(2));
            early.tick().unwrap();
            assert!(
                open() == before || (role == "worker" && before.is_empty()),
                "call {call}: under the orphan's hands: {before:?}, then {:?}",
                open()
            );
            held_up += usize::from(!before.is_empty());
            arena.home.renew().unwrap();
            // The orphan goes on.
            std::fs::write(&go, "go\n").unwrap();
        } else {
            assert_eq!(word, "X07 ended true\n");
        }
        let trigger = (role == "worker").then_some(Trigger::Archive);
        arena.judge(n, &t, trigger);
        if role == "worker" {
            arena.home.unarchive_task(&ann(), &t, false).unwrap();
            assert_restorable(&arena.home, &t);
        }
        if !caught {
            assert!(call > 8, "{call} calls of git");
            assert!(held_up > 1, "a successor was kept out {held_up} times");
            break;
        }
    }
}

#[test]
fn x07_a_maker_is_killed_inside_each_call_of_git() {
    killed_inside_git("maker", 1, |_, _, _| {});
}

#[test]
fn x07_a_worker_is_killed_inside_each_call_of_git() {
    killed_inside_git("worker", 7, |arena, n, t| {
        let made = arena.home.make_worktree(&ann(), &arena.wanted(n)).unwrap();
        mark(&made.place.path);
        for at in STEPS {
            step(&arena.home, t, &format!("operation-{n}"), Trigger::Archive, at).unwrap();
        }
    });
}
