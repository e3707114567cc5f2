//! Lifecycle operations taken apart, removals that are interrupted, and rows in short.

use std::cell::RefCell;

use freehold_git::{GitWorkspaces, PathLock};
use freehold_kernel::*;
use freehold_store::names::id_of;
use freehold_store::store::Dump;
use freehold_store::workspaces::{Inspection, Plan, Pulse, Restored, RootPlace, StepDone};
use freehold_store::{
    Accepted, Host, HostError, NoRuntimes, OnThisThread, Place, Read, Store, Who, WorkspaceError,
    Workspaces,
};

use super::{AnyStore, Ground, TestHost, ann, git_in};

/// The steps of one lifecycle operation, one by one.
pub struct Steps<'h, W = GitWorkspaces> {
    pub host: &'h Host<AnyStore, W>,
    pub operation: &'h str,
    pub trigger: Trigger,
    /// The task that a cascade was asked for.
    pub root: Option<&'h str>,
}

impl<'h, W: Workspaces> Steps<'h, W> {
    pub fn new(
        host: &'h Host<AnyStore, W>,
        operation: &'h str,
        trigger: Trigger,
        root: Option<&'h str>,
    ) -> Steps<'h, W> {
        Steps { host, operation, trigger, root }
    }

    fn ask(
        &self,
        make: impl FnOnce(OperationId, InstanceId) -> OperationCommand,
    ) -> Result<Accepted, HostError> {
        let instance = self.host.instance();
        self.host.ask(&ann(), None, |c| {
            Ok(Command::Operation(make(c.id(self.operation)?, c.id(&instance)?)))
        })
    }

    /// T-9, before the first barrier.
    pub fn begin_workspace_delete(&self, workspace: &str) -> Result<Accepted, HostError> {
        self.host.ask(&ann(), None, |c| {
            let instance = c.id(&self.host.instance())?;
            let operation = c.id(self.operation)?;
            Ok(Command::Operation(OperationCommand::BeginWorkspaceDelete {
                workspace: c.id(workspace)?,
                operation,
                instance,
            }))
        })
    }

    /// The barrier of one task.
    pub fn reserve(&self, task: &str) -> Result<Accepted, HostError> {
        let instance = self.host.instance();
        self.host.ask(&ann(), None, |c| {
            Ok(Command::Operation(OperationCommand::Reserve {
                operation: c.id(self.operation)?,
                job: JobId(fresh()),
                task: c.id(task)?,
                trigger: self.trigger,
                environment: None,
                cascade_root: self.root.map(|r| c.id(r)).transpose()?,
                policy: UnsavedPolicy::Salvage,
                branch_policy: BranchPolicy::Keep,
                consent: Unsaved::NONE,
                unsaved: Unsaved::NONE,
                refuse_busy: false,
                instance: c.id(&instance)?,
                content: ContentHash(derive(id_of(Kind::ContentHash, self.operation), 0)),
            }))
        })
    }

    pub fn renew(&self) -> Result<Accepted, HostError> {
        self.ask(|operation, instance| OperationCommand::RenewBarrier { operation, instance })
    }

    pub fn snapshot(&self) -> Result<Accepted, HostError> {
        let scope = self.trigger.scope();
        self.ask(|operation, instance| OperationCommand::Snapshot { operation, scope, instance })
    }

    pub fn mutate(&self) -> Result<Accepted, HostError> {
        let scope = self.trigger.scope();
        self.ask(|operation, instance| OperationCommand::Mutate { operation, scope, instance })
    }

    pub fn abort(&self) -> Result<Accepted, HostError> {
        self.ask(|operation, instance| OperationCommand::Abort { operation, instance })
    }
}

/// 16 fresh bytes, a UUID.
pub fn fresh() -> u128 {
    uuid::Uuid::now_v7().as_u128()
}

/// These tasks in lock order (D-26).
pub fn in_id_order<'a>(tasks: &[&'a str]) -> Vec<&'a str> {
    let mut sorted = tasks.to_vec();
    sorted.sort_by_key(|t| id_of(Kind::TaskId, t));
    sorted
}

/// Ticks until nothing is due.
pub fn work<W: Workspaces>(host: &Host<AnyStore, W>) {
    for _ in 0..50 {
        let ticked = host.tick().unwrap();
        if ticked.claimed + ticked.recovered + ticked.reconciled == 0 {
            return;
        }
    }
    panic!("the worker never comes to rest");
}

/// Every row of the store, with versions and texts; but for the asking instance's own, whose
/// lease is renewed by the mere asking.
pub fn dump<S: Store, W: Workspaces>(host: &Host<S, W>) -> Dump {
    let mut dump = pollster::block_on(freehold_store::store::dump(host.store())).unwrap();
    let own = vec![freehold_store::run::Stored::Text(host.instance())];
    if let Some(instances) = dump.get_mut(TableId::Instances.name()) {
        instances.remove(&own);
    }
    dump
}

/// How many lines the journal has.
pub fn journal_length<S: Store, W: Workspaces>(host: &Host<S, W>) -> usize {
    pollster::block_on(host.store().journal(0, usize::MAX >> 1)).unwrap().len()
}

pub fn task_row(host: &TestHost, id: &str) -> Option<Task> {
    let rows = host.read(&[Read::by(TableId::Tasks, "id", &[id])]).unwrap();
    rows.view.tasks.iter().next().copied()
}

pub fn session_row(host: &TestHost, id: &str) -> Option<Session> {
    let rows = host.read(&[Read::by(TableId::Sessions, "id", &[id])]).unwrap();
    rows.view.sessions.iter().next().copied()
}

pub fn environment_row(host: &TestHost, id: &str) -> Option<Environment> {
    let rows = host.read(&[Read::by(TableId::Environments, "id", &[id])]).unwrap();
    rows.view.environments.iter().next().copied()
}

pub fn workspace_row(host: &TestHost, id: &str) -> Option<Workspace> {
    let rows = host.read(&[Read::by(TableId::Workspaces, "id", &[id])]).unwrap();
    rows.view.workspaces.iter().next().copied()
}

pub fn is_active(host: &TestHost, task: &str) -> bool {
    task_row(host, task).is_some_and(|t| t.lifecycle == TaskLifecycle::Active)
}

pub fn is_archived(host: &TestHost, task: &str) -> bool {
    task_row(host, task).is_some_and(|t| t.lifecycle == TaskLifecycle::Archived)
}

pub fn environment_of(session: &Session) -> Option<u128> {
    session.task_environment_id.map(|e| e.0)
}

/// The jobs of an operation, by task.
pub fn job_states(host: &TestHost, operation: &str) -> Vec<(String, JobState)> {
    let rows = host.read(&[Read::by(TableId::Jobs, "operation_id", &[operation])]).unwrap();
    let mut jobs: Vec<_> = rows
        .view
        .jobs
        .iter()
        .map(|j| (rows.names.text(Kind::TaskId, j.task_id.0).unwrap(), j.state))
        .collect();
    jobs.sort();
    jobs
}

/// The resources of an operation's jobs.
pub fn resources_of(host: &TestHost, operation: &str) -> Vec<Resource> {
    let rows = host
        .read(&[
            Read::by(TableId::Jobs, "operation_id", &[operation]),
            Read::all(TableId::Resources),
        ])
        .unwrap();
    let of = |r: &&Resource| rows.view.jobs.id(r.job_id.0).is_some();
    rows.view.resources.iter().filter(of).copied().collect()
}

/// The results of an operation's worktrees.
pub fn results_of(host: &TestHost, operation: &str) -> Vec<(ResourceResult, Reason)> {
    let worktree = |r: &&Resource| r.kind == ResourceKind::Worktree;
    resources_of(host, operation).iter().filter(worktree).map(|r| (r.result, r.reason)).collect()
}

/// What the worker wrote down about an operation's worktrees, for people.
pub fn details_of(host: &TestHost, operation: &str) -> Vec<String> {
    let rows = host
        .read(&[
            Read::by(TableId::Jobs, "operation_id", &[operation]),
            Read::all(TableId::Resources),
        ])
        .unwrap();
    let worktrees =
        rows.view.resources.iter().filter(|r| {
            r.kind == ResourceKind::Worktree && rows.view.jobs.id(r.job_id.0).is_some()
        });
    worktrees.filter_map(|r| rows.contents.get(&r.row_key())?.get("detail")?.clone()).collect()
}

/// What the worker wrote down about each removal.
pub fn removal_details(host: &TestHost) -> Vec<String> {
    let rows = super::rows(host, &[TableId::Removals]);
    let of = |r: &Removal| rows.contents.get(&r.row_key())?.get("detail")?.clone();
    rows.view.removals.iter().filter_map(of).collect()
}

/// How often each part of an operation's jobs that lies in a root was tried.
pub fn tries_of(host: &TestHost, operation: &str) -> Vec<u32> {
    let rows = host
        .read(&[
            Read::by(TableId::Jobs, "operation_id", &[operation]),
            Read::all(TableId::JobRoots),
        ])
        .unwrap();
    let parts = rows.view.job_roots.iter().filter(|p| rows.view.jobs.id(p.job_id.0).is_some());
    parts.filter(|p| p.root_id.is_some()).map(|p| p.tries).collect()
}

/// Every removal's outcome.
pub fn outcomes(host: &TestHost) -> Vec<Option<RemovalOutcome>> {
    let rows = super::rows(host, &[TableId::Removals]);
    rows.view.removals.iter().map(|r| r.outcome).collect()
}

/// The text of a marker file in every verified salvage entry, read with git alone.
pub fn salvaged_markers(host: &TestHost) -> Vec<String> {
    let rows = super::rows(host, &[TableId::Salvage]);
    let roots = host.roots().unwrap();
    rows.view
        .salvage
        .iter()
        .filter(|s| s.state == SalvageState::Verified)
        .map(|s| {
            let root = roots.iter().find(|r| r.id == s.root_id).unwrap();
            let store = root.path.join(".freehold").join(&root.store).join("salvage.git");
            let name = rows.contents[&s.row_key()]["ref_name"].clone().unwrap();
            let store = format!("--git-dir={}", store.display());
            git_in(&root.path, &[&store, "show", &format!("{name}:worktree/MARKER")])
        })
        .collect()
}

/// The names of the rows in a refusal's way.
pub fn in_the_way<T: std::fmt::Debug>(
    result: &Result<T, HostError>,
) -> Vec<(&'static str, String)> {
    match result {
        Err(HostError::Refused(refused)) => refused.rows(),
        other => panic!("not a refusal: {other:?}"),
    }
}

/// On which side of a removal's step something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Permitted, not done.
    Before,
    /// Done, not recorded.
    After,
}

/// What becomes of the executor there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It goes on.
    GoOn,
    /// Git fails.
    Fail(Reason),
    /// Its process dies.
    Die,
}

type Happens<'a> = Box<dyn FnOnce() -> Then + 'a>;

/// Real git; once, at a step of a removal, something happens.
pub struct Hooked<'a> {
    git: GitWorkspaces,
    hook: RefCell<Option<(RemovalStep, When, Happens<'a>)>>,
}

impl<'a> Hooked<'a> {
    fn at(&self, step: RemovalStep, when: When) -> Result<(), WorkspaceError> {
        let here = self.hook.borrow().as_ref().is_some_and(|(s, w, _)| (*s, *w) == (step, when));
        let Some((_, _, happens)) = self.hook.take_if(here) else { return Ok(()) };
        match happens() {
            Then::GoOn => Ok(()),
            Then::Fail(reason) => Err(WorkspaceError {
                reason,
                path: "/".into(),
                detail: "made to fail".to_owned(),
                help: "it is a test".to_owned(),
            }),
            // Unwinds without the panic's message: the process is gone, and its locks with it.
            Then::Die => std::panic::resume_unwind(Box::new("died")),
        }
    }
}

trait TakeIf<T> {
    fn take_if(&self, really: bool) -> Option<T>;
}

impl<T> TakeIf<T> for RefCell<Option<T>> {
    fn take_if(&self, really: bool) -> Option<T> {
        if really { self.take() } else { None }
    }
}

impl Workspaces for Hooked<'_> {
    type Lock = PathLock;

    fn make_root(&self, root: &RootPlace) -> Result<RootPlace, WorkspaceError> {
        self.git.make_root(root)
    }

    fn check_root(&self, root: &RootPlace) -> Result<(), WorkspaceError> {
        self.git.check_root(root)
    }

    fn plan(&self, place: &Place, start: Option<&str>) -> Result<Plan, WorkspaceError> {
        self.git.plan(place, start)
    }

    fn lock(&self, place: &Place) -> Result<PathLock, WorkspaceError> {
        self.git.lock(place)
    }

    fn make(
        &self,
        lock: &PathLock,
        place: &Place,
        plan: &Plan,
        pulse: Pulse<'_>,
    ) -> Result<(), WorkspaceError> {
        self.git.make(lock, place, plan, pulse)
    }

    fn verify(&self, place: &Place) -> Result<(), WorkspaceError> {
        self.git.verify(place)
    }

    fn inspect(&self, place: &Place, pulse: Pulse<'_>) -> Inspection {
        self.git.inspect(place, pulse)
    }

    fn step(
        &self,
        lock: &PathLock,
        place: &Place,
        warrant: Warrant,
        limit: u64,
        pulse: Pulse<'_>,
    ) -> Result<StepDone, WorkspaceError> {
        let step = warrant.step();
        self.at(step, When::Before)?;
        let done = self.git.step(lock, place, warrant, limit, pulse)?;
        self.at(step, When::After)?;
        Ok(done)
    }

    fn forget(&self, place: &Place, removal: RemovalId) {
        self.git.forget(place, removal);
    }

    fn restore(
        &self,
        lock: &PathLock,
        place: &Place,
        salvage_ref: &str,
    ) -> Result<Restored, WorkspaceError> {
        self.git.restore(lock, place, salvage_ref)
    }
}

/// An instance to whose worker something happens at a step of a removal, once.
pub fn host_with_hook<'a>(
    ground: &Ground,
    step: RemovalStep,
    when: When,
    happens: impl FnOnce() -> Then + 'a,
) -> Host<AnyStore, Hooked<'a>, OnThisThread> {
    let store = ground.store.open(&ground.clock);
    let hook = RefCell::new(Some((step, when, Box::new(happens) as Happens<'a>)));
    let hooked = Hooked { git: GitWorkspaces::new(), hook };
    let mut host =
        Host::start(store, hooked, OnThisThread, Box::new(NoRuntimes), "test-machine").unwrap();
    ground.pace(&mut host);
    host
}

/// Whether the hook of this instance has been met.
pub fn hook_was_met(host: &Host<AnyStore, Hooked<'_>>) -> bool {
    host.workspaces().hook.borrow().is_none()
}

/// Ticks an instance that may die on the way; whether it did.
pub fn tick_and_perhaps_die(host: &Host<AnyStore, Hooked<'_>>) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| host.tick().map(|_| ())))
        .map(|ticked| ticked.unwrap())
        .is_err()
}

/// A person who may work in sessions, and nothing else.
pub fn bob() -> Who {
    Who::new("bob", Permissions::SESSION)
}
