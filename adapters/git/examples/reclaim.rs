//! How long a task's delete takes to return, and its worktree to be reclaimed, split by step,
//! beside plain `git worktree remove --force` and `rm -rf` of the same tree in the same run (C-14).
//!
//! ```text
//! cargo run --release -p freehold-git --example reclaim -- [files ...]
//! ```
//! Medians of three runs, in milliseconds.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "an example for people")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use freehold_git::{GitWorkspaces, PathLock};
use freehold_kernel::{Permissions, RemovalId, TaskCommand, TaskKind, Warrant};
use freehold_sqlite::Sqlite;
use freehold_store::workspaces::{
    Inspection, Place, Plan, Pulse, Restored, RootPlace, StepDone, WorkspaceError, Workspaces,
};
use freehold_store::{Host, NoRuntimes, OnThisThread, Operation, Wanted, Who};

const RUNS: usize = 3;

/// Real worktrees, and how long each kind of call took.
struct Timed {
    inner: GitWorkspaces,
    spent: RefCell<BTreeMap<&'static str, Duration>>,
}

impl Timed {
    fn around<T>(&self, what: &'static str, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = work();
        *self.spent.borrow_mut().entry(what).or_default() += began.elapsed();
        done
    }
}

impl Workspaces for Timed {
    type Lock = PathLock;

    fn make_root(&self, root: &RootPlace) -> Result<RootPlace, WorkspaceError> {
        self.inner.make_root(root)
    }

    fn check_root(&self, root: &RootPlace) -> Result<(), WorkspaceError> {
        self.inner.check_root(root)
    }

    fn plan(&self, place: &Place, start: Option<&str>) -> Result<Plan, WorkspaceError> {
        self.inner.plan(place, start)
    }

    fn lock(&self, place: &Place) -> Result<PathLock, WorkspaceError> {
        self.inner.lock(place)
    }

    fn make(
        &self,
        lock: &PathLock,
        place: &Place,
        plan: &Plan,
        pulse: Pulse<'_>,
    ) -> Result<(), WorkspaceError> {
        self.inner.make(lock, place, plan, pulse)
    }

    fn verify(&self, place: &Place) -> Result<(), WorkspaceError> {
        self.around("proof", || self.inner.verify(place))
    }

    fn inspect(&self, place: &Place, pulse: Pulse<'_>) -> Inspection {
        self.around("proof", || self.inner.inspect(place, pulse))
    }

    fn step(
        &self,
        lock: &PathLock,
        place: &Place,
        warrant: Warrant,
        limit: u64,
        pulse: Pulse<'_>,
    ) -> Result<StepDone, WorkspaceError> {
        let name = warrant.step().code();
        self.around(name, || self.inner.step(lock, place, warrant, limit, pulse))
    }

    fn forget(&self, place: &Place, removal: RemovalId) {
        self.inner.forget(place, removal);
    }

    fn restore(
        &self,
        lock: &PathLock,
        place: &Place,
        salvage_ref: &str,
    ) -> Result<Restored, WorkspaceError> {
        self.inner.restore(lock, place, salvage_ref)
    }
}

fn git(dir: &Path, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@a", "-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn repository(at: &Path, files: usize) {
    std::fs::create_dir_all(at).unwrap();
    git(at, &["init", "--quiet"]);
    for n in 0..files {
        let folder = at.join(format!("d{:03}", n / 100));
        if n % 100 == 0 {
            std::fs::create_dir(&folder).unwrap();
        }
        std::fs::write(folder.join(format!("f{n}")), format!("{n}\n").repeat(40)).unwrap();
    }
    git(at, &["add", "--all"]);
    git(at, &["commit", "--quiet", "--message", "first"]);
}

/// Every hundredth file changed and as many new ones.
fn dirty(work: &Path, files: usize) {
    for n in (0..files).step_by(100) {
        let folder = work.join(format!("d{:03}", n / 100));
        std::fs::write(folder.join(format!("f{n}")), "changed\n").unwrap();
        std::fs::write(folder.join("new"), format!("new {n}\n").repeat(40)).unwrap();
    }
}

type Times = BTreeMap<&'static str, Duration>;

fn ours(base: &Path, repository: &Path, files: usize, is_dirty: bool) -> Times {
    let store = Sqlite::open(&base.join("store.db"), freehold_sqlite::Options::default()).unwrap();
    let workspaces = Timed { inner: GitWorkspaces::new(), spent: RefCell::default() };
    let host =
        Host::start(store, workspaces, OnThisThread, Box::new(NoRuntimes), "this-machine").unwrap();
    let ann = Who::new("ann", Permissions::ALL);
    host.ask(&ann, None, |c| {
        Ok(freehold_kernel::Command::Task(TaskCommand::CreateWorkspace { workspace: c.id("w")? }))
    })
    .unwrap();
    host.ask(&ann, None, |c| {
        Ok(freehold_kernel::Command::Task(TaskCommand::Create {
            task: c.id("t")?,
            workspace: c.id("w")?,
            parent: None,
            kind: TaskKind::Standard,
            expires_at: None,
        }))
    })
    .unwrap();
    host.ask(&ann, None, |c| {
        Ok(freehold_kernel::Command::Task(TaskCommand::CreateEnvironment {
            environment: c.id("e")?,
            task: c.id("t")?,
            container: None,
            sandbox: None,
        }))
    })
    .unwrap();
    let root = host.register_root(&ann, &base.join("root")).unwrap();
    let wanted = Wanted {
        environment: "e".to_owned(),
        repository: repository.display().to_string(),
        slug: "b".to_owned(),
        branch: base.file_name().unwrap().to_string_lossy().trim_start_matches('.').to_owned(),
        start: None,
        root,
    };
    let made = host.make_worktree(&ann, &wanted).unwrap();
    if is_dirty {
        dirty(&made.place.path, files);
    }
    host.workspaces().spent.borrow_mut().clear();
    let began = Instant::now();
    host.delete_task(&ann, "t", &Operation::new("delete")).unwrap();
    let returned = began.elapsed();
    let began = Instant::now();
    let ticked = host.tick().unwrap();
    let reclaimed = began.elapsed();
    assert_eq!((ticked.removals, ticked.troubles), (1, Vec::new()));
    assert!(!made.place.path.exists());
    let mut times = host.workspaces().spent.take();
    times.insert("1 return", returned);
    times.insert("2 reclaim", reclaimed);
    times
}

/// Git's own removal and a plain deletion of the same tree.
fn theirs(base: &Path, repository: &Path, files: usize, is_dirty: bool) -> Times {
    let mut times = Times::new();
    for (n, how) in ["git worktree remove --force", "rm -rf"].into_iter().enumerate() {
        let work: PathBuf = base.join(format!("plain-{n}"));
        let path = work.to_str().unwrap();
        git(repository, &["worktree", "add", "--quiet", "--detach", path]);
        if is_dirty {
            dirty(&work, files);
        }
        let began = Instant::now();
        if n == 0 {
            git(repository, &["worktree", "remove", "--force", path]);
        } else {
            assert!(Command::new("rm").args(["-rf", path]).status().unwrap().success());
        }
        times.insert(how, began.elapsed());
        git(repository, &["worktree", "prune"]);
    }
    times
}

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).map(|n| n.parse().unwrap()).collect();
    let sizes = if sizes.is_empty() { vec![5_000, 100_000] } else { sizes };
    for files in sizes {
        let folder = tempfile::tempdir().unwrap();
        let repo = folder.path().canonicalize().unwrap().join("repository");
        repository(&repo, files);
        for is_dirty in [false, true] {
            let mut all: BTreeMap<&'static str, Vec<Duration>> = BTreeMap::new();
            for _ in 0..RUNS {
                let run = tempfile::tempdir_in(folder.path()).unwrap();
                let base = run.path().canonicalize().unwrap();
                let mut times = ours(&base, &repo, files, is_dirty);
                times.extend(theirs(&base, &repo, files, is_dirty));
                for (what, time) in times {
                    all.entry(what).or_default().push(time);
                }
            }
            let median = |what: &str| {
                let mut times = all.get(what).cloned().unwrap_or_default();
                times.sort();
                times.get(times.len() / 2).map_or(0.0, |t| t.as_secs_f64() * 1000.0)
            };
            println!(
                "\n{files} files, {}",
                if is_dirty { "1 % changed, 1 % new" } else { "clean" }
            );
            for what in all.keys() {
                println!("  {what:<28} {:>10.1} ms", median(what));
            }
            let reclaim = median("2 reclaim");
            println!(
                "  reclaim is {:.1} times git's removal, {:.1} times rm -rf",
                reclaim / median("git worktree remove --force"),
                reclaim / median("rm -rf")
            );
        }
    }
}
