//! Jobs and those who work on them, for the tests.

use freehold_kernel::{
    BranchPolicy, CleanupCommand, Command, ContentHash, Guard, JobId, JobRoot, JobRootId, JobState,
    Liveness, OperationCommand, Origin, RuntimeId, RuntimeKind, Scope, Settings, Span,
    SystemCommand, TableId, Token, Trigger, TurnCommand, TurnId, Unsaved, UnsavedPolicy,
};
use freehold_postgres::{Options, PostgresStore};
use freehold_store::{Composer, Read, Store};

use crate::host::{
    Place, connect, create_session, create_task, create_workspace, done, say, submit,
};
use crate::proxy::Proxy;

/// A moment longer than a lease.
pub(crate) const LAPSED: Span = Span(Settings::DEFAULT.lease.0 + 1);

/// Freehold's own ids are UUIDs.
pub(crate) const fn own(n: u128) -> u128 {
    0x018f_0000_0000_7000_8000_0000_0000_0000 + n
}

pub(crate) fn instance(store: &PostgresStore, name: &str) {
    done(
        store,
        &say(|c| {
            let (instance, host) = (c.id(name).unwrap(), c.id("laptop").unwrap());
            Command::System(SystemCommand::RegisterInstance { instance, host })
        }),
    );
}

pub(crate) fn reserve(
    c: &mut Composer,
    operation: &str,
    task: &str,
    n: u128,
    owner: &str,
    trigger: Trigger,
) -> Command {
    Command::Operation(OperationCommand::Reserve {
        operation: c.id(operation).unwrap(),
        job: JobId(own(n)),
        task: c.id(task).unwrap(),
        trigger,
        environment: None,
        cascade_root: None,
        policy: UnsavedPolicy::Salvage,
        branch_policy: BranchPolicy::Keep,
        consent: Unsaved::NONE,
        unsaved: Unsaved::NONE,
        refuse_busy: false,
        instance: c.id(owner).unwrap(),
        content: ContentHash(own(900)),
    })
}

pub(crate) fn turn(c: &mut Composer, session: &str, n: u128, owner: &str) -> Command {
    Command::Turn(TurnCommand::Submit {
        session: c.id(session).unwrap(),
        input: c.id(&format!("input {n} of {session}")).unwrap(),
        origin: Origin::Person,
        turn: TurnId(own(1000 + n)),
        runtime: RuntimeId(own(2000 + n)),
        runtime_kind: RuntimeKind::Local,
        instance: c.id(owner).unwrap(),
    })
}

/// Archives a task of its own, and so leaves a job that is due.
pub(crate) fn job(store: &PostgresStore, task: &str, n: u128) {
    job_of(store, task, n, "process 1");
}

pub(crate) fn job_of(store: &PostgresStore, task: &str, n: u128, owner: &str) {
    done(store, &create_task(task));
    done(store, &create_session(&format!("session of {task}"), task));
    // A runtime, so that there is something to be settled.
    done(store, &say(|c| turn(c, &format!("session of {task}"), n, owner)));
    let operation = format!("archive {task}");
    done(store, &say(|c| reserve(c, &operation, task, n, owner, Trigger::Archive)));
    for step in [true, false] {
        done(
            store,
            &say(|c| {
                let operation = c.id(&operation).unwrap();
                let (scope, instance) = (Scope::Task, c.id(owner).unwrap());
                Command::Operation(match step {
                    true => OperationCommand::Snapshot { operation, scope, instance },
                    false => OperationCommand::Mutate { operation, scope, instance },
                })
            }),
        );
    }
}

pub(crate) fn part(store: &PostgresStore, n: u128) -> JobRoot {
    let reads = [Read::all(TableId::JobRoots)];
    let rows = pollster::block_on(store.read(&reads)).unwrap();
    *rows.view.job_roots.iter().find(|r| r.job_id == JobId(own(n))).unwrap()
}

pub(crate) fn claim(c: &mut Composer, job_root: JobRootId, token: u128, who: &str) -> Command {
    let instance = c.id(who).unwrap();
    Command::Cleanup(CleanupCommand::Claim { job_root, token: Token(own(token)), instance })
}

/// Claims as an instance that was never there before: the others' leases may have lapsed.
pub(crate) fn claims(store: &PostgresStore, job_root: JobRootId, token: u128) {
    let who = format!("process of {token}");
    instance(store, &who);
    done(store, &say(|c| claim(c, job_root, token, &who)));
}

pub(crate) fn finish(job_root: JobRootId, token: u128) -> Command {
    Command::Cleanup(CleanupCommand::Finish { job_root, token: Token(own(token)) })
}

/// Settles what the part is about, and so finishes it.
pub(crate) fn settle(store: &PostgresStore, job_root: JobRootId, token: u128) {
    let reads = [Read::all(TableId::Resources)];
    let rows = pollster::block_on(store.read(&reads)).unwrap();
    for resource in rows.view.resources.iter().filter(|r| r.job_root_id == job_root) {
        let (resource, token, liveness) = (resource.id, Token(own(token)), Liveness::Dead);
        let settle = CleanupCommand::SettleResource { resource, token, liveness };
        done(store, &say(|_| Command::Cleanup(settle)));
    }
    let part = pollster::block_on(store.read(&[Read::all(TableId::JobRoots)])).unwrap();
    if part.view.job_roots.id(job_root.0).unwrap().state == JobState::Running {
        done(store, &say(|_| finish(job_root, token)));
    }
}

pub(crate) fn rescue(job_root: JobRootId, token: u128) -> Command {
    Command::Cleanup(CleanupCommand::Rescue { job_root, token: Token(own(token)) })
}

/// A store with two instances and the job 1 of the task `t`.
pub(crate) fn begun() -> (Place, PostgresStore) {
    let place = Place::new();
    let store = place.open();
    instance(&store, "process 1");
    instance(&store, "process 2");
    done(&store, &create_workspace("w"));
    job(&store, "t", 1);
    (place, store)
}

pub(crate) fn refused_by(store: &PostgresStore, command: Command) -> Guard {
    let outcome = submit(store, &say(|_| command)).unwrap();
    outcome.accepted().unwrap_err().refusal.guard
}

pub(crate) fn slow(place: &Place, proxy: &Proxy) -> PostgresStore {
    connect(proxy.config(), Options { pooler: true, notify: false, ..place.options() }).unwrap()
}
