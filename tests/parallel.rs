//! 24 worktrees of one repository are made at once and removed at once, by three processes with
//! eight threads each (W-11, W-12, W-13): none fails, and none leaves anything behind.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{BufRead, BufReader, Read as _, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command as Program, Stdio};
use std::sync::Barrier;

use freehold_git::GitWorkspaces;
use freehold_kernel::*;
use freehold_store::{Clock, Host, NoRuntimes, OnThisThread, Operation, Wanted};
use support::*;

const PROCESSES: usize = 3;
const THREADS: usize = 8;

/// A process that does as it is told, eightfold.
struct Other {
    child: Child,
    tell: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl Other {
    fn start(ground: &Ground, root: &str, n: usize) -> Other {
        let path = concat!(module_path!(), "::parallel_the_other_process");
        let name = path.split_once("::").map_or(path, |(_, name)| name);
        let mut child = Program::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture", "--test-threads=1"])
            .env("FREEHOLD_PARALLEL", n.to_string())
            .env("FREEHOLD_PARALLEL_STORE", ground.store.text())
            .env("FREEHOLD_PARALLEL_REPOSITORY", &ground.repository)
            .env("FREEHOLD_PARALLEL_ROOT", root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Other { tell: child.stdin.take().unwrap(), child, said }
    }

    fn tell(&mut self, word: &str) {
        writeln!(self.tell, "{word}").unwrap();
    }

    fn listen(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.said.read_line(&mut line).unwrap(), 0, "the other process is gone");
            if let Some(word) = line.trim().strip_prefix("PARALLEL ") {
                return word.to_owned();
            }
        }
    }
}

#[test]
fn w12_24_worktrees_are_made_and_removed_at_once_by_three_processes() {
    let ground = Ground::on(StorePlace::fresh, Clock::System);
    let home = {
        let store = ground.store.open_patiently(&Clock::System);
        let runtimes = Box::new(NoRuntimes);
        Host::start(store, GitWorkspaces::new(), OnThisThread, runtimes, "test-machine").unwrap()
    };
    workspace(&home, "w");
    let root = home.register_root(&ann(), &ground.root_path).unwrap();
    let mut others: Vec<Other> = (0..PROCESSES).map(|n| Other::start(&ground, &root, n)).collect();
    let all = |others: &mut [Other], word: &str| {
        for other in others.iter_mut() {
            other.tell(word);
        }
        for other in others.iter_mut() {
            assert_eq!(other.listen(), format!("{word} done"));
        }
    };
    all(&mut others, "prepare");
    all(&mut others, "make");
    let branches: Vec<String> = names().map(|n| format!("b-{n}")).collect();
    assert_tracked(&ground, &home, &[]);
    assert_eq!(ground.registered().len(), PROCESSES * THREADS);
    let mut there = ground.branches();
    there.sort();
    let mut wanted = branches.clone();
    wanted.sort();
    assert_eq!(there, wanted);
    for name in names() {
        let [place] = &home.places_of(&name).unwrap()[..] else { panic!("{name} has not one") };
        assert_eq!(git_in(&place.path, &["status", "--porcelain"]), "");
        assert_eq!(
            git_in(&place.path, &["rev-parse", "--abbrev-ref", "HEAD"]),
            format!("b-{name}")
        );
    }
    // Half of them have work that must be found again.
    for name in names().step_by(2) {
        let [place] = &home.places_of(&name).unwrap()[..] else { panic!("{name} has not one") };
        std::fs::write(place.path.join("MARKER"), format!("of {name}\n")).unwrap();
    }
    all(&mut others, "remove");
    let earlier: Vec<&str> = branches.iter().map(String::as_str).collect();
    assert_tracked(&ground, &home, &earlier);
    assert_eq!(jobs(&home).len(), PROCESSES * THREADS);
    assert!(jobs(&home).iter().all(|job| job.1 == JobState::Succeeded), "{:?}", jobs(&home));
    for name in names().step_by(2) {
        assert!(salvage_holds(&ground, &format!("of {name}\n")), "{name}");
    }
    // No try was spent on another's account, and no lock is left.
    let rows = rows(&home, &[TableId::JobRoots]);
    let tries: Vec<u32> = rows.view.job_roots.iter().map(|p| p.tries).collect();
    assert!(tries.iter().all(|t| *t == 1), "{tries:?}");
    let locks = ground.root_path.join(".freehold/locks");
    // The one between all salvages and a collection is of the root, not of a path.
    assert_eq!(entries(&locks), [locks.join("salvage")]);
    for mut other in others {
        other.tell("end");
        assert!(other.child.wait().unwrap().success());
        let mut rest = String::new();
        other.said.read_to_string(&mut rest).unwrap();
    }
}

fn names() -> impl Iterator<Item = String> + Clone {
    (0..PROCESSES).flat_map(|n| (0..THREADS).map(move |t| format!("t{n}-{t}")))
}

/// Not a test of its own: one of the processes.
#[test]
fn parallel_the_other_process() {
    let Ok(n) = std::env::var("FREEHOLD_PARALLEL") else { return };
    let told = |name: &str| std::env::var(format!("FREEHOLD_PARALLEL_{name}")).unwrap();
    let (place, root) = (StorePlace::told(&told("STORE")), told("ROOT"));
    let repository = told("REPOSITORY");
    let hosts: Vec<(String, TestHost)> = (0..THREADS)
        .map(|t| {
            let store = place.open_patiently(&Clock::System);
            let runtimes = Box::new(NoRuntimes);
            let git = GitWorkspaces::new();
            let host = Host::start(store, git, OnThisThread, runtimes, "test-machine").unwrap();
            (format!("t{n}-{t}"), host)
        })
        .collect();
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let together = Barrier::new(THREADS);
        let work = |name: &str, host: &TestHost| {
            together.wait();
            match line.as_str() {
                "prepare" => {
                    task(host, name).unwrap();
                    environment(host, &format!("e-{name}"), name).unwrap();
                }
                "make" => {
                    let branch = format!("b-{name}");
                    let wanted = Wanted {
                        environment: format!("e-{name}"),
                        repository: repository.clone(),
                        slug: branch.clone(),
                        branch,
                        start: None,
                        root: root.clone(),
                    };
                    host.make_worktree(&ann(), &wanted).unwrap();
                }
                "remove" => {
                    host.delete_task(&ann(), name, &Operation::new(&format!("delete {name}")))
                        .unwrap();
                    // Whoever comes first takes a job; each goes on until all are done.
                    while !open_work(host).is_empty() {
                        let ticked = host.tick().unwrap();
                        assert_eq!(ticked.troubles, Vec::<String>::new());
                        std::thread::yield_now();
                    }
                }
                other => panic!("no such word: {other}"),
            }
        };
        if line == "end" {
            return;
        }
        std::thread::scope(|scope| {
            for (name, host) in &hosts {
                scope.spawn(|| work(name, host));
            }
        });
        let mut out = std::io::stdout();
        writeln!(out, "\nPARALLEL {line} done").unwrap();
        out.flush().unwrap();
    }
}
