//! Driving by hand: workspaces with a hook at every call, runtimes that answer as they are told,
//! an operation's steps one by one, time until nothing is left to do, and what is true then.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use freehold_git::{GitWorkspaces, PathLock};
use freehold_kernel::*;
use freehold_store::workspaces::{
    InTrash, Inspection, Plan, Pulse, Restored, RootPlace, StepDone, WorkspaceError, Workspaces,
};
use freehold_store::{
    Accepted, Host, HostError, NoRuntimes, OnThisThread, Place, Read, RuntimeHandle, Runtimes,
    Stands,
};

use super::{AnyStore, Ground, TestHost, ann, is_marked, literal, rows};

/// A host over any workspaces.
pub type AnyHost<W> = Host<AnyStore, W, OnThisThread>;

impl Ground {
    /// Another instance, with these workspaces and runtimes.
    pub fn host_on<W: Workspaces>(
        &self,
        workspaces: W,
        runtimes: Box<dyn Runtimes + Send + Sync>,
    ) -> AnyHost<W> {
        let store = self.store.open(&self.clock);
        let mut host =
            Host::start(store, workspaces, OnThisThread, runtimes, "test-machine").unwrap();
        self.pace(&mut host);
        host
    }

    /// Another instance whose runtimes answer as they are told.
    pub fn host_with_runtimes(&self, runtimes: &Told) -> TestHost {
        self.host_on(GitWorkspaces::new(), Box::new(runtimes.clone()))
    }

    /// Another instance, with a hook at every call to its workspaces.
    pub fn hooked<'a>(
        &self,
        hook: impl FnMut(usize, &'static str) -> Act + 'a,
    ) -> AnyHost<Hooked<'a>> {
        self.host_on(Hooked::new(GitWorkspaces::new(), hook), Box::new(NoRuntimes))
    }

    /// The same as the program itself is one: on this machine, by the real clock.
    pub fn hooked_here<'a>(
        &self,
        hook: impl FnMut(usize, &'static str) -> Act + 'a,
    ) -> AnyHost<Hooked<'a>> {
        let store = self.store.open(&freehold_store::Clock::System);
        let hooked = Hooked::new(GitWorkspaces::new(), hook);
        let machine = freehold_cli::machine_name();
        Host::start(store, hooked, OnThisThread, Box::new(NoRuntimes), &machine).unwrap()
    }

    /// Moves the clock without anybody saying that he lives.
    pub fn lapse(&self, span: Span) {
        self.clock.advance(span);
    }
}

/// What happens at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing.
    Go,
    /// The call fails for this reason.
    Fail(Reason),
    /// The process dies here: the stack is unwound, and nothing is told to the store.
    Die,
}

/// Real workspaces with a hook before and after every call. The point before the n-th call is
/// `2 * n`, the one after it `2 * n + 1`.
pub struct Hooked<'a> {
    inner: GitWorkspaces,
    calls: Cell<usize>,
    hook: RefCell<Box<dyn FnMut(usize, &'static str) -> Act + 'a>>,
    looking: RefCell<Looking<'a>>,
}

/// What goes on while a worktree is looked at; it may pulse.
type Looking<'a> = Box<dyn FnMut(Pulse<'_>) + 'a>;

impl<'a> Hooked<'a> {
    pub fn new(
        inner: GitWorkspaces,
        hook: impl FnMut(usize, &'static str) -> Act + 'a,
    ) -> Hooked<'a> {
        Hooked {
            inner,
            calls: Cell::new(0),
            hook: RefCell::new(Box::new(hook)),
            looking: RefCell::new(Box::new(|_| {})),
        }
    }

    /// The same; this goes on during every inspection.
    pub fn looking(self, work: impl FnMut(Pulse<'_>) + 'a) -> Hooked<'a> {
        Hooked { looking: RefCell::new(Box::new(work)), ..self }
    }

    /// How many calls were made.
    pub fn calls(&self) -> usize {
        self.calls.get()
    }

    fn at(&self, point: usize, call: &'static str, path: &Path) -> Result<(), WorkspaceError> {
        let act = (self.hook.borrow_mut())(point, call);
        match act {
            Act::Go => Ok(()),
            Act::Fail(reason) => Err(WorkspaceError {
                reason,
                path: path.to_owned(),
                detail: format!("injected at point {point}, {call}"),
                help: String::new(),
            }),
            Act::Die => die(),
        }
    }

    fn around<T>(
        &self,
        call: &'static str,
        path: &Path,
        work: impl FnOnce() -> Result<T, WorkspaceError>,
    ) -> Result<T, WorkspaceError> {
        let n = self.calls.get();
        self.calls.set(n + 1);
        self.at(2 * n, call, path)?;
        let done = work()?;
        self.at(2 * n + 1, call, path)?;
        Ok(done)
    }
}

impl Workspaces for Hooked<'_> {
    type Lock = PathLock;

    fn make_root(&self, root: &RootPlace) -> Result<RootPlace, WorkspaceError> {
        self.around("make_root", &root.path, || self.inner.make_root(root))
    }

    fn check_root(&self, root: &RootPlace) -> Result<(), WorkspaceError> {
        self.around("check_root", &root.path, || self.inner.check_root(root))
    }

    fn plan(&self, place: &Place, start: Option<&str>) -> Result<Plan, WorkspaceError> {
        self.around("plan", &place.path, || self.inner.plan(place, start))
    }

    fn lock(&self, place: &Place) -> Result<PathLock, WorkspaceError> {
        self.around("lock", &place.path, || self.inner.lock(place))
    }

    fn make(
        &self,
        lock: &PathLock,
        place: &Place,
        plan: &Plan,
        pulse: Pulse<'_>,
    ) -> Result<(), WorkspaceError> {
        self.around("make", &place.path, || self.inner.make(lock, place, plan, pulse))
    }

    fn verify(&self, place: &Place) -> Result<(), WorkspaceError> {
        self.around("verify", &place.path, || self.inner.verify(place))
    }

    fn inspect(&self, place: &Place, pulse: Pulse<'_>) -> Inspection {
        let look = || {
            (self.looking.borrow_mut())(pulse);
            Ok(self.inner.inspect(place, pulse))
        };
        match self.around("inspect", &place.path, look) {
            Ok(inspection) => inspection,
            Err(error) => {
                let mut unknown = Inspection::missing();
                unknown.evidence.found = Found::Unknown;
                unknown.evidence.unsaved = Unsaved::UNKNOWN;
                unknown.evidence.obstacle = error.reason;
                unknown
            }
        }
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
        self.around(name, &place.path, || self.inner.step(lock, place, warrant, limit, pulse))
    }

    // No point of its own: it can neither fail nor remove anything of a person's.
    fn forget(&self, place: &Place, removal: RemovalId) {
        self.inner.forget(place, removal);
    }

    fn restore(
        &self,
        lock: &PathLock,
        place: &Place,
        salvage_ref: &str,
    ) -> Result<Restored, WorkspaceError> {
        self.around("restore", &place.path, || self.inner.restore(lock, place, salvage_ref))
    }

    fn restore_trash(
        &self,
        lock: &PathLock,
        place: &Place,
        kept: &InTrash,
        pulse: Pulse<'_>,
    ) -> Result<Restored, WorkspaceError> {
        let back = || self.inner.restore_trash(lock, place, kept, pulse);
        self.around("restore_trash", &place.path, back)
    }

    fn trash_again(
        &self,
        lock: &PathLock,
        place: &Place,
        kept: &InTrash,
    ) -> Result<(), WorkspaceError> {
        self.around("trash_again", &place.path, || self.inner.trash_again(lock, place, kept))
    }

    fn check_unused(
        &self,
        lock: &PathLock,
        place: &Place,
        kept: &InTrash,
    ) -> Result<(), WorkspaceError> {
        self.around("check_unused", &place.path, || self.inner.check_unused(lock, place, kept))
    }

    fn expire_salvage(&self, root: &RootPlace, name: &str) -> Result<bool, WorkspaceError> {
        self.around("expire_salvage", &root.path, || self.inner.expire_salvage(root, name))
    }
}

/// The end of a process as its own memory sees it, without a word on stderr.
pub fn die() -> ! {
    std::panic::resume_unwind(Box::new("the process dies here"))
}

/// Runs what may [`die`]; none if it did.
pub fn survives<T>(work: impl FnOnce() -> T) -> Option<T> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(done) => Some(done),
        Err(why) if why.downcast_ref::<&str>() == Some(&"the process dies here") => None,
        Err(why) => std::panic::resume_unwind(why),
    }
}

/// Runtimes that answer as they are told, and remember who was stopped.
#[derive(Clone, Debug)]
pub struct Told {
    answer: Arc<Mutex<Liveness>>,
    stopped: Arc<Mutex<Vec<String>>>,
}

impl Told {
    pub fn new(answer: Liveness) -> Told {
        Told { answer: Arc::new(Mutex::new(answer)), stopped: Arc::default() }
    }

    pub fn answer(&self, answer: Liveness) {
        *self.answer.lock().unwrap() = answer;
    }

    pub fn stopped(&self) -> Vec<String> {
        self.stopped.lock().unwrap().clone()
    }
}

impl Runtimes for Told {
    fn stop(&self, handle: &RuntimeHandle, _: Duration, _: &mut dyn FnMut()) -> Liveness {
        self.stopped.lock().unwrap().push(handle.id.clone());
        *self.answer.lock().unwrap()
    }

    /// What was not stopped is not dead, whatever a stop would make of it.
    fn liveness(&self, handle: &RuntimeHandle) -> Liveness {
        let answer = *self.answer.lock().unwrap();
        let stopped = self.stopped.lock().unwrap().contains(&handle.id);
        if answer == Liveness::Dead && !stopped { Liveness::Alive } else { answer }
    }
}

/// A message to a session; the turn that it may start, and its runtime, are called after it.
pub fn submit<W: Workspaces>(
    host: &AnyHost<W>,
    session: &str,
    name: &str,
) -> Result<Reply, HostError> {
    let instance = host.instance();
    host.ask(&ann(), None, |c| {
        Ok(Command::Turn(TurnCommand::Submit {
            session: c.id(session)?,
            input: c.id(&format!("input-{name}"))?,
            origin: Origin::Person,
            turn: c.id(&format!("turn-{name}"))?,
            runtime: c.id(&format!("runtime-{name}"))?,
            runtime_kind: RuntimeKind::Local,
            instance: c.id(&instance)?,
        }))
    })
    .map(|accepted| accepted.reply)
}

/// What waits in a session begins the turn of this name on this instance.
pub fn take_up<W: Workspaces>(
    host: &AnyHost<W>,
    session: &str,
    name: &str,
) -> Result<Reply, HostError> {
    let instance = host.instance();
    host.ask(&ann(), None, |c| {
        Ok(Command::Turn(TurnCommand::TakeUp {
            session: c.id(session)?,
            turn: c.id(&format!("turn-{name}"))?,
            runtime: c.id(&format!("runtime-{name}"))?,
            runtime_kind: RuntimeKind::Local,
            instance: c.id(&instance)?,
        }))
    })
    .map(|accepted| accepted.reply)
}

/// The turn of this name is spawned and runs.
pub fn run<W: Workspaces>(host: &AnyHost<W>, name: &str) {
    host.ask(&ann(), None, |c| {
        Ok(Command::Turn(TurnCommand::Advance {
            turn: c.id(&format!("turn-{name}"))?,
            phase: TurnPhase::Running,
        }))
    })
    .unwrap();
    host.ask(&ann(), None, |c| {
        Ok(Command::Turn(TurnCommand::ReportRuntime {
            runtime: c.id(&format!("runtime-{name}"))?,
            status: RuntimeStatus::Running,
        }))
    })
    .unwrap();
}

/// The turn of this name ends well; a queued input starts the turn called `next`.
pub fn end<W: Workspaces>(host: &AnyHost<W>, name: &str, next: &str) {
    host.ask(&ann(), None, |c| {
        Ok(Command::Turn(TurnCommand::End {
            turn: c.id(&format!("turn-{name}"))?,
            outcome: TurnOutcome::Completed,
            next_turn: c.id(&format!("turn-{next}"))?,
            next_runtime: c.id(&format!("runtime-{next}"))?,
        }))
    })
    .unwrap();
}

/// The steps of a task operation, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Reserve,
    Snapshot,
    Mutate,
}

/// The steps in their order.
pub const STEPS: [Step; 3] = [Step::Reserve, Step::Snapshot, Step::Mutate];

/// Takes one step of an archive or a delete of one task, as a host between two others would.
pub fn step<W: Workspaces>(
    host: &AnyHost<W>,
    task: &str,
    operation: &str,
    trigger: Trigger,
    step: Step,
) -> Result<Accepted, HostError> {
    let instance = host.instance();
    host.ask(&ann(), None, |c| {
        let operation: OperationId = c.id(operation)?;
        let instance = c.id(&instance)?;
        Ok(Command::Operation(match step {
            Step::Reserve => OperationCommand::Reserve {
                operation,
                job: JobId(derive(operation.0, 1)),
                task: c.id(task)?,
                trigger,
                environment: None,
                cascade_root: None,
                policy: UnsavedPolicy::Salvage,
                branch_policy: BranchPolicy::Keep,
                consent: Unsaved::NONE,
                unsaved: Unsaved::NONE,
                refuse_busy: false,
                instance,
                content: ContentHash(derive(operation.0, 2)),
            },
            Step::Snapshot => {
                OperationCommand::Snapshot { operation, scope: Scope::Task, instance }
            }
            Step::Mutate => OperationCommand::Mutate { operation, scope: Scope::Task, instance },
        }))
    })
}

/// Ticks, and lets every lease and every wait lapse in between, until nothing is left to do.
pub fn quiet(ground: &Ground, host: &TestHost) {
    quiet_but(ground, host, &[]);
}

/// The same, where these may be left.
pub fn quiet_but(ground: &Ground, host: &TestHost, left: &[&str]) {
    let mut troubles = Vec::new();
    for minutes in [0, 2, 2, 6, 6, 16, 16, 61, 61, 181] {
        ground.lapse(Span::minutes(minutes));
        troubles.extend(host.tick().unwrap().troubles);
        if open_work(host).iter().all(|open| left.contains(&open.as_str())) {
            return;
        }
    }
    panic!("not quiet: {:?}; troubles: {troubles:#?}", open_work(host));
}

/// The jobs of a task, by trigger.
pub fn jobs_of(host: &TestHost, task: &str) -> Vec<(Trigger, JobState)> {
    let rows = host.read(&[Read::by(TableId::Jobs, "task_id", &[task])]).unwrap();
    rows.view.jobs.iter().map(|j| (j.trigger, j.state)).collect()
}

/// What still awaits its end, by name.
pub fn open_work(host: &TestHost) -> Vec<String> {
    let tables = [
        TableId::Jobs,
        TableId::Attempts,
        TableId::Removals,
        TableId::Sessions,
        TableId::Trash,
        TableId::Repos,
    ];
    let rows = rows(host, &tables);
    let mut open = Vec::new();
    for job in rows.view.jobs.iter() {
        match job.state {
            JobState::Prepared | JobState::Pending | JobState::Running | JobState::RetryWait => {
                open.push(format!("job {} {}", job.trigger.code(), job.state.code()));
            }
            JobState::Succeeded | JobState::Failed | JobState::Cancelled => {}
        }
    }
    for attempt in rows.view.attempts.iter() {
        match attempt.state {
            AttemptState::Intended | AttemptState::Materialised | AttemptState::Compensating => {
                open.push(format!("attempt {}", attempt.state.code()));
            }
            AttemptState::Owned | AttemptState::Compensated => {}
        }
    }
    let unsettled = rows.view.removals.iter().filter(|r| r.is_unsettled());
    open.extend(unsettled.map(|r| format!("removal after {}", r.last_step.code())));
    let closing = rows.view.sessions.iter().filter(|s| s.lifecycle == SessionLifecycle::Closing);
    open.extend(closing.map(|_| "session closing".to_owned()));
    let trash = rows.view.trash.iter().filter(|t| t.state != TrashState::Gone);
    open.extend(trash.map(|t| format!("trash {}", t.state.code())));
    let removing = rows.view.repos.iter().filter(|r| r.materialised == Materialised::Removing);
    open.extend(removing.map(|_| "repository row in removal".to_owned()));
    open
}

/// Promise 2, once nothing is left to do: disk, git's registrations, branches and rows name the
/// same worktrees, and each belongs to an active task. `earlier` are branches that nobody of
/// Freehold made.
pub fn assert_tracked(ground: &Ground, host: &TestHost, earlier: &[&str]) {
    assert_eq!(open_work(host), Vec::<String>::new());
    let tables = [TableId::Tasks, TableId::Environments, TableId::Repos, TableId::Attempts];
    let rows = rows(host, &tables);
    let mut owned = BTreeSet::new();
    for repo in rows.view.repos.iter().filter(|r| r.materialised == Materialised::Yes) {
        let environment = rows.view.environments.id(repo.task_environment_id.0).unwrap();
        let task = rows.view.tasks.id(environment.task_id.0).unwrap();
        assert_eq!(task.lifecycle, TaskLifecycle::Active, "a worktree of an archived task");
        assert_eq!(repo.status, RepoStatus::Active);
        let path = rows.names.text(Kind::PathId, repo.worktree_path.unwrap().0).unwrap();
        assert!(owned.insert(PathBuf::from(path)), "two rows name one path");
    }
    let registered: BTreeSet<PathBuf> = ground.registered().into_iter().collect();
    assert_eq!(registered, owned, "git's registrations are not the rows'");
    let on_disk: BTreeSet<PathBuf> =
        ground.leftovers(host).iter().flat_map(|folder| entries(folder)).collect();
    assert_eq!(on_disk, owned, "the folders under the root are not the rows'");
    let git = ground.repository.join(".git");
    assert_eq!(entries(&git.join("worktrees")).len(), owned.len(), "registrations on disk");
    assert_eq!(below(&git.join("freehold"), "admin"), Vec::<PathBuf>::new());
    let book = ground.root_path.join(".freehold");
    for folder in ["trash", "manifests", "aside"] {
        assert_eq!(below(&book, folder), Vec::<PathBuf>::new(), "{folder}");
    }
    let mut branches: BTreeSet<String> = earlier.iter().map(|b| (*b).to_owned()).collect();
    for attempt in rows.view.attempts.iter() {
        if attempt.state == AttemptState::Owned {
            branches.insert(rows.names.text(Kind::BranchId, attempt.branch.0).unwrap());
        }
    }
    let there: BTreeSet<String> = ground.branches().into_iter().collect();
    assert_eq!(there, branches, "branches are not those of worktrees that came to be owned");
}

/// What lies in a folder.
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(read) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = read.map(|e| e.unwrap().path()).collect();
    found.sort();
    found
}

/// What lies in the folders of this name in each folder of `book`.
fn below(book: &Path, name: &str) -> Vec<PathBuf> {
    entries(book).iter().flat_map(|store| entries(&store.join(name))).collect()
}

/// The manifests of removals that are left under the root. Once nothing is left to do there is
/// none.
pub fn manifests(ground: &Ground) -> Vec<PathBuf> {
    below(&ground.root_path.join(".freehold"), "manifests")
}

/// Whether the private stores beside the root hold this content, byte for byte.
pub fn salvage_holds(ground: &Ground, content: &str) -> bool {
    let file = ground.folder.path().join("looked-for");
    std::fs::write(&file, content).unwrap();
    let hash = super::git_in(&ground.repository, &["hash-object", file.to_str().unwrap()]);
    let mut todo = vec![ground.root_path.join(".freehold")];
    while let Some(folder) = todo.pop() {
        if folder.join("HEAD").is_file() && folder.join("objects").is_dir() {
            let dir = format!("--git-dir={}", folder.display());
            let all = ["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"];
            let args: Vec<&str> = [dir.as_str()].into_iter().chain(all).collect();
            if super::git_in(&ground.repository, &args).lines().any(|l| l == hash) {
                return true;
            }
        } else {
            todo.extend(entries(&folder).into_iter().filter(|p| p.is_dir()));
        }
    }
    false
}

/// Makes every repository of an active task whole again, from its branch and its salvage, and
/// proves that every worktree carries the marker (X14).
pub fn assert_restorable(host: &TestHost, task: &str) {
    for report in host.repositories_of(task).unwrap() {
        match &report.stands {
            Stands::Kept => {}
            Stands::FromBranchAndSalvage(salvage) => {
                host.recreate(&ann(), &report.repo).unwrap();
                host.restore(&ann(), salvage).unwrap();
            }
            other @ (Stands::InRemoval | Stands::FromBranch | Stands::FromTrash(_)) => {
                panic!("{} stands as {other:?}", report.branch)
            }
        }
    }
    let places = host.places_of(task).unwrap();
    assert_eq!(places.len(), host.repositories_of(task).unwrap().len());
    for place in places {
        assert!(is_marked(&place.path), "the marker of {} is lost", place.branch);
    }
}

/// Tampers with a job's row: the worktree that it names at one path is now said to be at another.
pub fn set_resource_path(ground: &Ground, from: &str, to: &str) {
    let (from, to) = (literal(from), literal(to));
    let sql = format!(
        "UPDATE task_resource_cleanup_resources SET path = {to} WHERE path = {from} RETURNING 1"
    );
    assert_eq!(ground.store.sql(&sql), "1", "no resource is at {from}");
}

/// A git program with more lines in front, to be run with `sh`.
pub fn wrapped_git(ground: &Ground, name: &str, lines: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let program = ground.folder.path().join(name);
    std::fs::write(&program, format!("#!/bin/sh\n{lines}\nexec git \"$@\"\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}
