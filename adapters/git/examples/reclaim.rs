//! How long a task's delete takes to return, and its worktree to be reclaimed, split by step,
//! beside plain `git worktree remove --force` and `rm -rf` of the same tree in the same run (C-14).
//!
//! ```text
//! cargo run --release -p freehold-git --example reclaim -- [--runs N] [files ...]
//! ```
//! Medians of three runs unless said otherwise, in milliseconds; and, from one more run that is
//! not timed, how often each step asked git and the disk. Those counts are much the same on every
//! machine, and the ratios at the end nearly so; the milliseconds are not.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "an example for people")]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use freehold_git::faults::{Call, CallKind, Faults};
use freehold_git::{GitWorkspaces, PathLock};
use freehold_kernel::{Permissions, RemovalId, TaskCommand, TaskKind, Warrant};
use freehold_sqlite::Sqlite;
use freehold_store::workspaces::{
    Inspection, Place, Plan, Pulse, Restored, RootPlace, StepDone, WorkspaceError, Workspaces,
};
use freehold_store::{Host, NoRuntimes, OnThisThread, Operation, Wanted, Who};

const RUNS: usize = 3;

/// Counts the calls to git and to the disk.
#[derive(Debug, Default)]
struct Counted {
    git: AtomicU64,
    disk: AtomicU64,
}

impl Faults for Counted {
    fn before(&self, call: &Call<'_>) -> Option<i32> {
        let counter = if call.kind == CallKind::Command { &self.git } else { &self.disk };
        counter.fetch_add(1, Ordering::Relaxed);
        None
    }

    fn after(&self, _call: &Call<'_>) -> Option<i32> {
        None
    }
}

/// What a kind of call took.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    time: Duration,
    git: u64,
    disk: u64,
}

impl From<Duration> for Spent {
    fn from(time: Duration) -> Spent {
        Spent { time, ..Spent::default() }
    }
}

/// Real worktrees, and what each kind of call took.
struct Timed {
    inner: GitWorkspaces,
    counted: Arc<Counted>,
    last: Cell<(u64, u64)>,
    spent: RefCell<Times>,
}

impl Timed {
    /// Counting costs time, so it is done in a run of its own.
    fn new(counts: bool) -> Timed {
        let counted = Arc::new(Counted::default());
        let mut inner = GitWorkspaces::new();
        if counts {
            inner = inner.with_faults(Arc::<Counted>::clone(&counted));
        }
        Timed { inner, counted, last: Cell::default(), spent: RefCell::default() }
    }

    /// Calls since the last time.
    fn calls(&self) -> (u64, u64) {
        let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let now = (read(&self.counted.git), read(&self.counted.disk));
        let before = self.last.replace(now);
        (now.0 - before.0, now.1 - before.1)
    }

    fn around<T>(&self, what: &'static str, work: impl FnOnce() -> T) -> T {
        self.calls();
        let began = Instant::now();
        let done = work();
        let time = began.elapsed();
        let (git, disk) = self.calls();
        let mut all = self.spent.borrow_mut();
        let spent = all.entry(what).or_default();
        spent.time += time;
        spent.git += git;
        spent.disk += disk;
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
        .args(["-c", "gc.autoDetach=false", "-c", "maintenance.auto=false"])
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
    // What git would begin by itself with so many files, now and not beside what is measured.
    git(at, &["gc", "--quiet", "--auto"]);
}

/// Every hundredth file changed and as many new ones.
fn dirty(work: &Path, files: usize) {
    for n in (0..files).step_by(100) {
        let folder = work.join(format!("d{:03}", n / 100));
        std::fs::write(folder.join(format!("f{n}")), "changed\n").unwrap();
        std::fs::write(folder.join("new"), format!("new {n}\n").repeat(40)).unwrap();
    }
}

type Times = BTreeMap<&'static str, Spent>;

fn ours(base: &Path, repository: &Path, files: usize, is_dirty: bool, counts: bool) -> Times {
    let store = Sqlite::open(&base.join("store.db"), freehold_sqlite::Options::default()).unwrap();
    let workspaces = Timed::new(counts);
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
    let (git, disk) = times.values().fold((0, 0), |(g, d), s| (g + s.git, d + s.disk));
    times.insert("1 return", returned.into());
    times.insert("2 reclaim", Spent { time: reclaimed, git, disk });
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
        times.insert(how, began.elapsed().into());
        git(repository, &["worktree", "prune"]);
    }
    times
}

fn main() {
    let mut runs = RUNS;
    let mut sizes = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--runs" {
            runs = args.next().unwrap().parse().unwrap();
        } else {
            sizes.push(arg.parse().unwrap());
        }
    }
    let sizes: Vec<usize> = if sizes.is_empty() { vec![5_000, 100_000] } else { sizes };
    for files in sizes {
        let folder = tempfile::tempdir().unwrap();
        let repo = folder.path().canonicalize().unwrap().join("repository");
        repository(&repo, files);
        for is_dirty in [false, true] {
            measure(folder.path(), &repo, files, is_dirty, runs);
        }
    }
}

fn measure(folder: &Path, repo: &Path, files: usize, is_dirty: bool, runs: usize) {
    let fresh = |work: &dyn Fn(&Path) -> Times| {
        let run = tempfile::tempdir_in(folder).unwrap();
        work(&run.path().canonicalize().unwrap())
    };
    let counted = fresh(&|base| ours(base, repo, files, is_dirty, true));
    let mut all: BTreeMap<&'static str, Vec<Duration>> = BTreeMap::new();
    for _ in 0..runs {
        let times = fresh(&|base| {
            let mut times = ours(base, repo, files, is_dirty, false);
            times.extend(theirs(base, repo, files, is_dirty));
            times
        });
        for (what, spent) in times {
            all.entry(what).or_default().push(spent.time);
        }
    }
    let median = |what: &str| {
        let mut times = all.get(what).cloned().unwrap_or_default();
        times.sort();
        times.get(times.len() / 2).map_or(0.0, |t| t.as_secs_f64() * 1000.0)
    };
    let state = if is_dirty { "1 % changed, 1 % new" } else { "clean" };
    println!("\n{files} files, {state}");
    println!("  {:<28} {:>10} {:>6} {:>9}", "", "ms", "git", "disk");
    for what in all.keys() {
        let calls = counted.get(what).copied().unwrap_or_default();
        println!("  {what:<28} {:>10.1} {:>6} {:>9}", median(what), calls.git, calls.disk);
    }
    let reclaim = median("2 reclaim");
    println!(
        "  reclaim is {:.1} times git's removal, {:.1} times rm -rf",
        reclaim / median("git worktree remove --force"),
        reclaim / median("rm -rf")
    );
}
