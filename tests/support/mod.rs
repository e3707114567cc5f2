//! The ground of the scenario tests: real git, a real store, real processes.

#![allow(unreachable_pub, reason = "a module of every test binary")]
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod drive;
mod exact;
mod meeting;
mod stores;

pub mod steps;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[allow(unused_imports, reason = "each test binary uses a part of it")]
pub use drive::*;
#[allow(unused_imports, reason = "each test binary uses a part of it")]
pub use exact::*;
#[allow(unused_imports, reason = "each test binary uses a part of it")]
pub use meeting::Meeting;
#[allow(unused_imports, reason = "each test binary uses a part of it")]
pub use stores::*;

use freehold_git::GitWorkspaces;
use freehold_kernel::*;
use freehold_store::{
    Clock, Drive, Host, HostError, Made, NoRuntimes, OnThisThread, Read, Rows, Store, Wanted, Who,
    Workspaces,
};

pub type TestHost = Host<AnyStore, GitWorkspaces, OnThisThread>;

/// A temporary folder with a repository, a managed root and a store.
pub struct Ground {
    pub folder: tempfile::TempDir,
    pub repository: PathBuf,
    pub root_path: PathBuf,
    /// Where the store is if it is a file.
    pub store_path: PathBuf,
    pub store: StorePlace,
    pub clock: Clock,
}

impl Ground {
    pub fn new() -> Ground {
        Ground::on(StorePlace::fresh, Clock::manual(Time(1_700_000_000_000_000)))
    }

    /// One whose store is where `place` says, given the path of a file for it.
    pub fn on(place: impl FnOnce(PathBuf) -> StorePlace, clock: Clock) -> Ground {
        let folder = tempfile::Builder::new().prefix("freehold-x-").tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let ground = Ground {
            repository: base.join("repository"),
            root_path: base.join("worktrees"),
            store_path: base.join("freehold.db"),
            store: place(base.join("freehold.db")),
            clock,
            folder,
        };
        std::fs::create_dir(&ground.repository).unwrap();
        ground.git(&["init", "--quiet", "--initial-branch=main"]);
        std::fs::write(ground.repository.join("story.txt"), "one\n").unwrap();
        ground.git(&["add", "--all"]);
        ground.git(&["commit", "--quiet", "--message", "first"]);
        ground
    }

    /// Another instance on the same store: a restart, or a second process's view.
    pub fn host(&self) -> TestHost {
        self.host_with(GitWorkspaces::new())
    }

    pub fn host_with(&self, git: GitWorkspaces) -> TestHost {
        self.host_on(git, Box::new(NoRuntimes))
    }

    /// Where a scenario moves the clock by hand, an instance renews itself when it is told to: not
    /// even on a machine that is held up for seconds does anything happen that nobody asked for.
    pub fn pace<S: Store, W: Workspaces, D: Drive>(&self, host: &mut Host<S, W, D>) {
        if let Clock::Manual(_) = self.clock {
            let began = std::time::Instant::now();
            host.paced_by(move || began);
        }
    }

    /// An instance as the program itself is one: on this machine, by the real clock.
    pub fn host_here(&self) -> TestHost {
        let store = self.store.open(&freehold_store::Clock::System);
        let machine = freehold_cli::machine_name();
        Host::start(store, GitWorkspaces::new(), OnThisThread, Box::new(NoRuntimes), &machine)
            .unwrap()
    }

    /// The program `freehold` on this store, to be run: the command's words, then the store.
    pub fn program(&self, words: &[&str]) -> std::process::Command {
        let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_freehold"));
        program.args(words).args(self.store.words());
        program
    }

    /// Moves the store's clock, keeping the instances alive that are handed over.
    pub fn pass(&self, span: Span, alive: &[&TestHost]) {
        // In strides below the lease, so that who lives can say so in time (D-25).
        let stride = 10_000_000;
        let mut left = span.0;
        while left > 0 {
            self.clock.advance(Span(left.min(stride)));
            left -= stride;
            for host in alive {
                host.renew().unwrap();
            }
        }
    }

    pub fn git(&self, args: &[&str]) -> String {
        git_in(&self.repository, args)
    }

    /// What `git worktree list` names, but for the main checkout.
    pub fn registered(&self) -> Vec<PathBuf> {
        self.git(&["worktree", "list", "--porcelain"])
            .lines()
            .filter_map(|l| l.strip_prefix("worktree "))
            .map(PathBuf::from)
            .filter(|p| *p != self.repository)
            .collect()
    }

    pub fn branches(&self) -> Vec<String> {
        let all = self.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
        all.lines().map(str::to_owned).filter(|b| b != "main").collect()
    }

    /// What is under the root that is not Freehold's own book-keeping.
    pub fn leftovers(&self, host: &TestHost) -> Vec<PathBuf> {
        host.roots().unwrap().iter().flat_map(freehold_git::leftovers).collect()
    }
}

/// What the test binary calls one of its tests, out of its whole path: that without the crate.
pub fn test_name(path: &'static str) -> &'static str {
    path.split_once("::").map_or(path, |(_, name)| name)
}

/// Runs git as a person would, in a folder.
pub fn git_in(dir: &Path, args: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .current_dir(dir)
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "Test")
        .env("GIT_AUTHOR_EMAIL", "test@example.invalid")
        .env("GIT_COMMITTER_NAME", "Test")
        .env("GIT_COMMITTER_EMAIL", "test@example.invalid")
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A person with every permission.
pub fn ann() -> Who {
    Who::new("ann", Permissions::ALL)
}

pub fn workspace(host: &TestHost, id: &str) {
    host.ask(&ann(), None, |c| {
        Ok(Command::Task(TaskCommand::CreateWorkspace { workspace: c.id(id)? }))
    })
    .unwrap();
}

pub fn task(host: &TestHost, id: &str) -> Result<(), HostError> {
    child_task(host, id, None)
}

/// A task in the workspace `w`.
pub fn child_task<W: Workspaces>(
    host: &AnyHost<W>,
    id: &str,
    parent: Option<&str>,
) -> Result<(), HostError> {
    host.ask(&ann(), None, |c| {
        Ok(Command::Task(TaskCommand::Create {
            task: c.id(id)?,
            workspace: c.id("w")?,
            parent: parent.map(|p| c.id(p)).transpose()?,
            kind: TaskKind::Standard,
            expires_at: None,
        }))
    })
    .map(|_| ())
}

pub fn environment<W: Workspaces>(
    host: &AnyHost<W>,
    id: &str,
    task: &str,
) -> Result<(), HostError> {
    host.ask(&ann(), None, |c| {
        Ok(Command::Task(TaskCommand::CreateEnvironment {
            environment: c.id(id)?,
            task: c.id(task)?,
            container: None,
            sandbox: None,
        }))
    })
    .map(|_| ())
}

/// A session; with an environment of another task it borrows.
pub fn session<W: Workspaces>(
    host: &AnyHost<W>,
    id: &str,
    task: &str,
    environment: Option<&str>,
) -> Result<(), HostError> {
    host.ask(&ann(), None, |c| {
        Ok(Command::Session(SessionCommand::Create {
            session: c.id(id)?,
            task: c.id(task)?,
            environment: environment.map(|e| c.id(e)).transpose()?,
            source: SessionSource::Person,
            parent: None,
        }))
    })
    .map(|_| ())
}

pub fn wanted(ground: &Ground, root: &str, environment: &str, branch: &str) -> Wanted {
    Wanted {
        environment: environment.to_owned(),
        repository: ground.repository.display().to_string(),
        slug: branch.to_owned(),
        branch: branch.to_owned(),
        start: None,
        root: root.to_owned(),
    }
}

/// A workspace `w`, a task `t` with the environment `e` and a worktree on the branch `b`, and a
/// session `s`. Returns the root and what was made.
pub fn settled(ground: &Ground, host: &TestHost) -> (String, Made) {
    workspace(host, "w");
    task(host, "t").unwrap();
    environment(host, "e", "t").unwrap();
    let root = host.register_root(&ann(), &ground.root_path).unwrap();
    let made = host.make_worktree(&ann(), &wanted(ground, &root, "e", "b")).unwrap();
    session(host, "s", "t", None).unwrap();
    (root, made)
}

/// An uncommitted marker: a changed tracked file and an untracked one.
pub fn mark(worktree: &Path) {
    std::fs::write(worktree.join("story.txt"), "changed\n").unwrap();
    std::fs::write(worktree.join("MARKER"), "marker\n").unwrap();
}

pub fn is_marked(worktree: &Path) -> bool {
    std::fs::read_to_string(worktree.join("story.txt")).is_ok_and(|t| t == "changed\n")
        && std::fs::read_to_string(worktree.join("MARKER")).is_ok_and(|t| t == "marker\n")
}

/// Every file below a folder with its content; links as their targets.
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let kind = std::fs::symlink_metadata(&path).unwrap().file_type();
            if kind.is_dir() {
                todo.push(path);
            } else if kind.is_symlink() {
                let target = std::fs::read_link(&path).unwrap();
                found.insert(path, target.into_os_string().into_encoded_bytes());
            } else {
                let content = std::fs::read(&path).unwrap();
                found.insert(path, content);
            }
        }
    }
    found
}

/// Every row of these tables.
pub fn rows<W: Workspaces>(host: &AnyHost<W>, tables: &[TableId]) -> Rows {
    let reads: Vec<Read> = tables.iter().map(|t| Read::all(*t)).collect();
    host.read(&reads).unwrap()
}

/// The states of all jobs, oldest first.
pub fn jobs(host: &TestHost) -> Vec<(Trigger, JobState)> {
    let rows = rows(host, &[TableId::Jobs]);
    let mut jobs: Vec<_> = rows.view.jobs.iter().copied().collect();
    jobs.sort_by_key(|j| (j.created_at, j.id));
    jobs.iter().map(|j| (j.trigger, j.state)).collect()
}

/// The guard that refused, or a panic that says what came instead.
pub fn refused<T: std::fmt::Debug>(result: Result<T, HostError>) -> Guard {
    match result {
        Err(error) => match error.guard() {
            Some(guard) => guard,
            None => panic!("failed instead of being refused: {error}"),
        },
        Ok(done) => panic!("accepted instead of being refused: {done:?}"),
    }
}
