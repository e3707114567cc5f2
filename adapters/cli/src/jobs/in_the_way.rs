//! What holds a job's worktrees up, by the kernel's own relation, and a person's way out of it
//! (C-6, C-15).

use freehold_kernel::{
    Job, JobState, Reason, Resource, ResourceKind, ResourceResult, Runtime, RuntimeKind,
    RuntimeStatus, TableId, is_reached, named_that_may_run, others_that_run,
};
use freehold_runtime::LocalRuntimes;
use freehold_store::{Read, Rows, RuntimeHandle, Runtimes, Store};

use super::text;
use crate::failure::Failure;
use crate::ground::{next, wait};
use crate::place::StorePlace;

/// What holds a job's worktrees up.
pub(super) struct InTheWay {
    /// The runtimes that are not known to be stopped.
    pub(super) runtimes: Vec<String>,
    /// What only a person can end, if it is that.
    pub(super) way_out: Option<WayOut>,
}

/// What a person can do about what is in the way.
pub(super) enum WayOut {
    /// Say of the runtime that it is stopped.
    Declare(String),
    /// Forget the resource, a container or the like, which has no row of its own.
    Forget(String),
    /// Stop it where it runs, or end the instance that runs it. What waits for its next time, or
    /// failed, is tried again by hand.
    End { runtime: String, by_hand: bool },
}

impl WayOut {
    /// In words, and the command to go on with.
    pub(super) fn words(&self, job: &str, place: &StorePlace) -> (String, String) {
        match self {
            WayOut::Declare(runtime) => (
                "stop what may run, or, if nobody can reach it any more, say that it is stopped"
                    .to_owned(),
                next(&["jobs", "declare-stopped", runtime], place),
            ),
            WayOut::Forget(resource) => (
                "stop what may run, or, if nobody can reach it any more, forget it".to_owned(),
                next(&["jobs", "forget", resource], place),
            ),
            WayOut::End { runtime, by_hand } => (
                format!("the instance of {runtime} lives: stop it there, or end that, then go on"),
                if *by_hand {
                    next(&["jobs", "retry", job], place)
                } else {
                    next(&["work"], place)
                },
            ),
        }
    }
}

/// Looks at what is in the way of a job, of which the rows hold the job and its resources.
pub(super) fn judge(store: &impl Store, rows: &mut Rows, job: &Job) -> Result<InTheWay, Failure> {
    read_beside(store, rows)?;
    let view = &rows.view;
    let of_job = || view.resources.iter().filter(|r| r.job_id == job.id);
    let named: Vec<&Resource> = named_that_may_run(view, job.id).collect();
    let mut living: Vec<&Runtime> = named
        .iter()
        .filter_map(|r| view.runtimes.id(r.runtime_id?.0))
        .chain(of_job().filter(is_open_worktree).flat_map(|w| others_that_run(view, job, w)))
        .filter(|r| r.status != RuntimeStatus::Stopped)
        .collect();
    living.sort_unstable_by_key(|r| r.id);
    living.dedup();
    let runtimes = living.iter().map(|r| text(rows, r.id)).collect::<Result<Vec<_>, _>>()?;
    let waits = matches!(job.state, JobState::Pending | JobState::RetryWait | JobState::Failed);
    let mut way_out = None;
    // Whose it is cannot be read: that is not nobody's (C-10).
    if waits && rows.unreadable.is_empty() {
        // Tried in vain; or never, since nobody who could try lives.
        let tried = of_job().any(|r| is_open(r) && r.reason == Reason::RuntimeAlive);
        let stuck = |r: &&&Runtime| tried || !is_served(rows, r);
        let declared = living.iter().filter(stuck).find(|r| !is_reached(view, r));
        let rowless = named.iter().find(|r| {
            let row = r.runtime_id.and_then(|id| view.runtimes.id(id.0));
            row.is_none() && (r.reason == Reason::RuntimeAlive || !anybody_lives(rows))
        });
        way_out = match (declared, rowless, living.first()) {
            (Some(runtime), ..) => Some(WayOut::Declare(text(rows, runtime.id)?)),
            (None, Some(resource), _) => Some(WayOut::Forget(text(rows, resource.id)?)),
            (None, None, Some(runtime)) if tried => {
                let runtime = text(rows, runtime.id)?;
                Some(WayOut::End { runtime, by_hand: job.state != JobState::Pending })
            }
            (None, None, _) => None,
        };
    }
    Ok(InTheWay { runtimes, way_out })
}

/// What the kernel's relations look at.
fn read_beside(store: &impl Store, rows: &mut Rows) -> Result<(), Failure> {
    let resources = || rows.view.resources.iter();
    let runtimes = rows.texts(resources().filter_map(|r| r.runtime_id))?;
    let repos = rows.texts(resources().filter_map(|r| r.repo_id))?;
    let environments = rows.texts(resources().filter_map(|r| r.environment_id))?;
    let more = wait(store.read(&[
        Read::among(TableId::Runtimes, "id", runtimes),
        Read::among(TableId::Runtimes, "task_environment_id", environments.clone()),
        Read::among(TableId::Repos, "id", repos),
        Read::among(TableId::Environments, "id", environments.clone()),
        Read::among(TableId::Sessions, "task_environment_id", environments),
        Read::all(TableId::Instances),
    ]))?;
    let now = more.view.now;
    rows.absorb(more);
    let tasks = rows.texts(rows.view.sessions.iter().map(|s| s.task_id))?;
    rows.absorb(wait(store.read(&[Read::among(TableId::Tasks, "id", tasks)]))?);
    rows.view.now = now;
    Ok(())
}

fn is_open(resource: &Resource) -> bool {
    match resource.result {
        ResourceResult::Waiting | ResourceResult::Removing | ResourceResult::Failed => true,
        ResourceResult::Removed
        | ResourceResult::Absent
        | ResourceResult::Preserved
        | ResourceResult::Transferred
        | ResourceResult::Kept
        | ResourceResult::Forgotten => false,
    }
}

fn is_open_worktree(resource: &&Resource) -> bool {
    resource.kind == ResourceKind::Worktree && is_open(resource)
}

/// Whether this program could stop it, or anybody who lives might (C-17): of a process, those of
/// its machine; of anything else, whoever lives.
fn is_served(rows: &Rows, runtime: &Runtime) -> bool {
    let now = rows.view.now;
    let local = runtime.kind == RuntimeKind::Local;
    let machine = rows.view.instances.id(runtime.instance_id.0).map(|i| i.host);
    let machine = machine.filter(|_| local);
    let might = |host| machine.is_none_or(|machine| machine == host);
    let Ok(id) = text(rows, runtime.id) else { return true };
    LocalRuntimes::new().serves(&RuntimeHandle::of(id, Some(*runtime), rows))
        || rows.view.instances.iter().any(|i| i.lease_until > now && might(i.host))
}

fn anybody_lives(rows: &Rows) -> bool {
    rows.view.instances.iter().any(|i| i.lease_until > rows.view.now)
}

/// The newest job that is not at a good end and waits for a runtime.
pub(super) fn job_waiting_for(runtime: &str, place: &StorePlace) -> Option<(String, JobState)> {
    let store = place.open().ok()?;
    let mut rows = wait(store.read(&[
        Read::by(TableId::Runtimes, "id", &[runtime]),
        Read::by(TableId::Resources, "runtime_id", &[runtime]),
    ]))
    .ok()?;
    let row = *rows.view.runtimes.iter().next()?;
    let environment = rows.texts(row.task_environment_id).ok()?;
    let beside =
        wait(store.read(&[Read::among(TableId::Resources, "environment_id", environment)]));
    rows.absorb(beside.ok()?);
    let waits = |r: &&Resource| {
        let beside = is_open_worktree(r) && r.reason == Reason::RuntimeAlive;
        r.runtime_id == Some(row.id) || beside
    };
    let jobs = rows.texts(rows.view.resources.iter().filter(waits).map(|r| r.job_id)).ok()?;
    rows.absorb(wait(store.read(&[Read::among(TableId::Jobs, "id", jobs)])).ok()?);
    let open = |j: &&Job| super::is_open(j.state);
    let job = rows.view.jobs.iter().filter(open).max_by_key(|j| (j.created_at, j.id))?;
    Some((text(&rows, job.id).ok()?, job.state))
}
