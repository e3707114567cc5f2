//! Wrong designs of sessions: each one that somebody would build, and the reason why not.

use freehold_kernel::properties::{self, Place, Step};
use freehold_kernel::{
    Activity, ActorId, ClosingKind, Command, ContentHash, Envelope, Guard, JobId, JobState,
    OperationId, Origin, Permissions, Reply, Session, SessionLifecycle, SystemCommand, Trigger,
    derive,
};

use crate::explore::Broken;
use crate::models::actors::person::Act;
use crate::models::actors::sender::submit;
use crate::models::actors::{
    Clock, Closer, Keeper, Operator, Person, Recovery, Sender, Turner, Worker,
};
use crate::models::catalogue::Design;
use crate::models::{begin, names::*};
use crate::system::{Actor, Fault, Steps, System};
use crate::world::{Sender as By, World};

/// The designs.
pub const DESIGNS: &[Design] = &[
    Design {
        name: "run-creates-session",
        says: "a run makes the session that it does not find, so that no message is lost",
        rule: "S-2",
        build: run_creates,
        property: "P-16",
        steps: 3,
    },
    Design {
        name: "archive-checks-running",
        says: "a close asks whether the session's activity is `running`, which is what one sees",
        rule: "S-11, S-20",
        build: checks_running,
        property: "P-19",
        steps: 2,
    },
    Design {
        name: "closing-mark-survives",
        says: "a closing mark has no lease: whoever set it will come back and finish",
        rule: "S-22",
        build: mark_survives,
        property: "stuck",
        steps: 2,
    },
    Design {
        name: "close-without-token",
        says: "the commit of a close names the session; that it is closing is proof enough",
        rule: "S-22",
        build: without_token,
        property: "P-34",
        steps: 5,
    },
    Design {
        name: "refcount-reclaim",
        says: "the delete of the last session takes the worktree along, since nobody uses it",
        rule: "S-25, T-2",
        build: refcount,
        property: "P-1",
        steps: 2,
    },
    Design {
        name: "borrower-wakes-cleanup",
        says: "the delete of the last borrowing session starts the cleanup that its owner's \
               archive left",
        rule: "S-25, W-21",
        build: wakes_cleanup,
        property: "P-1",
        steps: 2,
    },
];

/// Task 0 with environment 0, worktree 0 and session 0; task 1.
fn beginning() -> World {
    let mut world = begin::world(2);
    begin::add_task(&mut world, 0, None);
    begin::add_task(&mut world, 1, None);
    begin::add_environment(&mut world, 0, 0);
    begin::add_worktree(&mut world, 0, 0, 0);
    begin::add_session(&mut world, 0, 0, Some(0));
    world
}

/// What a design does in one transaction of this command, looked at as one step.
fn as_one(
    world: &mut World,
    command: Command,
    does: impl FnOnce(&mut World) -> Result<bool, Broken>,
) -> Result<bool, Broken> {
    let before = world.view.clone();
    if !does(world)? {
        return Ok(false);
    }
    world.view.commit();
    let actor = freehold_kernel::Actor { id: ActorId(0xac), may: Permissions::ALL };
    let envelope = Envelope { request: None, content: ContentHash(0), actor, command };
    let changes = properties::changes(&before, &world.view);
    let step = Step {
        before: &before,
        after: &world.view,
        command: &envelope,
        events: &[],
        accepted: true,
        granted: None,
        changes: &changes,
    };
    properties::check_step(&step, &world.history).map_err(Broken::from)?;
    Ok(true)
}

/// A host whose run makes the session that it does not find.
struct Running;

impl Actor for Running {
    type Local = bool;

    fn name(&self) -> String {
        "instance A (running)".to_owned()
    }

    fn begin(&self) -> bool {
        false
    }

    fn act(&self, done: bool, world: &World, steps: &mut Steps<'_, bool>) {
        if done {
            return;
        }
        let known = world.view.sessions.id(session(0).0).copied();
        let says = match known {
            Some(_) => format_args!("runs input 0 in session 0"),
            None => format_args!("runs input 0 in session 0, which it does not find and makes"),
        };
        steps.at_once(says, |w, without| {
            if known.is_none() {
                let now = w.view.now;
                w.view.sessions.insert(Session {
                    id: session(0),
                    task_id: task(0),
                    task_environment_id: Some(environment(0)),
                    lifecycle: SessionLifecycle::Open,
                    closing_kind: None,
                    closing_token: None,
                    closing_by: None,
                    closing_lease: None,
                    activity: Activity::Created,
                    epoch: 1,
                    source: freehold_kernel::SessionSource::Person,
                    starred: false,
                    parent_session_id: None,
                    archived_at: None,
                    archived_by: None,
                    created_at: now,
                    updated_at: now,
                    last_activity_at: now,
                });
                w.view.commit();
            }
            let ran = w.submit(By::ALL, submit(0, 0, Origin::Person, 0), without)?;
            Ok(ran.is_ok().then_some(true))
        });
    }
}

fn run_creates() -> System {
    System::new("run-creates-session", beginning())
        .with(Closer::new(0, 0, ClosingKind::Delete))
        .with(Running)
}

/// A closer in whose build some of the close's conditions are missing.
#[derive(Clone, Copy)]
struct Lax {
    closer: Closer,
    /// Does not close what says that it runs.
    asks_running: bool,
    /// What its build does not check.
    lacks: &'static [Guard],
}

impl Actor for Lax {
    type Local = u8;

    fn name(&self) -> String {
        format!("closer {}", self.closer.n)
    }

    fn begin(&self) -> u8 {
        0
    }

    fn at_rest(&self, at: u8) -> bool {
        at != 1
    }

    fn act(&self, at: u8, world: &World, steps: &mut Steps<'_, u8>) {
        let n = self.closer.session;
        let row = world.view.sessions.id(session(n).0);
        let runs = row.is_some_and(|s| s.activity == Activity::Running);
        if at > 1 || (self.asks_running && runs) {
            return;
        }
        let (says, command) = match at {
            0 => ("begins to delete", self.closer.begin_close()),
            _ => ("deletes", self.closer.commit_close()),
        };
        let token = closing_token(self.closer.n).0;
        steps.at_once(format_args!("{says} session {n}"), |w, _| {
            let done = w.submit(By::ALL, command, self.lacks)?;
            if done.is_ok() && at == 0 {
                w.hold(token);
            } else {
                w.let_go(token);
            }
            Ok(Some(if done.is_ok() { at + 1 } else { 2 }))
        });
    }
}

fn checks_running() -> System {
    let closer = Closer::new(0, 0, ClosingKind::Delete);
    System::new("archive-checks-running", beginning())
        .with(Sender { n: 0, session: 0, origin: Origin::Person, instance: 0, turners: 1 })
        .with(Turner { instance: 0, parks: true })
        .with(Lax { closer, asks_running: true, lacks: &[Guard::NoTurnWork] })
}

fn mark_survives() -> System {
    System::new("closing-mark-survives", beginning())
        .with(Closer::new(0, 0, ClosingKind::Archive))
        .with(Sender { n: 0, session: 0, origin: Origin::Person, instance: 0, turners: 1 })
        .with(Turner { instance: 0, parks: false })
        .with(Keeper { lifts: false, ..Keeper::new(1) })
        .with(Clock)
        .allowing(1, Fault::Crash)
}

fn without_token() -> System {
    let closer = Closer::new(0, 0, ClosingKind::Delete);
    System::new("close-without-token", beginning())
        .with(Lax { closer, asks_running: false, lacks: &[Guard::ClosingToken] })
        .with(Closer::new(1, 0, ClosingKind::Archive))
        .with(Keeper::new(1))
        .with(Clock)
        .allowing(1, Fault::Slow)
}

/// A closer whose commit does something more in the same transaction.
struct Thorough {
    closer: Closer,
    more: fn(&mut World) -> bool,
    and: &'static str,
}

impl Actor for Thorough {
    type Local = u8;

    fn name(&self) -> String {
        "a person".to_owned()
    }

    fn begin(&self) -> u8 {
        0
    }

    fn at_rest(&self, at: u8) -> bool {
        at != 1
    }

    fn act(&self, at: u8, _world: &World, steps: &mut Steps<'_, u8>) {
        let (n, token) = (self.closer.session, closing_token(self.closer.n).0);
        if at == 0 {
            let says = format_args!("begins to delete session {n}");
            steps.ask(says, By::ALL, self.closer.begin_close(), |answer, w| {
                answer.ok()?;
                w.hold(token);
                Some(1)
            });
        } else if at == 1 {
            let command = self.closer.commit_close();
            let and = self.and;
            steps.at_once(format_args!("deletes session {n}{and}"), |w, without| {
                if w.submit(By::ALL, command, without)?.is_err() {
                    return Ok(Some(2));
                }
                w.let_go(token);
                as_one(w, command, |w| Ok((self.more)(w)))?;
                Ok(Some(2))
            });
        }
    }
}

/// No session refers to the environment any more: its worktree goes, from the disk and the rows.
fn reclaim(world: &mut World) -> bool {
    let used = world.view.sessions.iter().any(|s| s.task_environment_id == Some(environment(0)));
    if used {
        return false;
    }
    if let Some(tree) = world.disk.find_mut(stamp(0)) {
        tree.place = Place::Gone;
    }
    world.view.repos.remove(repo(0).0);
    true
}

fn refcount() -> System {
    let acts = vec![Act::Write(0)];
    System::new("refcount-reclaim", beginning())
        .with(Person { who: "an agent", acts, open: false })
        .with(Thorough {
            closer: Closer::new(0, 0, ClosingKind::Delete),
            more: reclaim,
            and: ", the last one, and its worktree with it",
        })
}

/// What an archive left for a borrower is taken up again, in the step that ends the borrowing.
fn wake(world: &mut World) -> bool {
    let Some(authority) = world.view.tasks.id(task(0).0).and_then(|t| t.archived_by) else {
        return false;
    };
    let operation = OperationId(derive(authority.0, environment(0).0));
    let command = Command::System(SystemCommand::Reconcile {
        task: task(0),
        environment: environment(0),
        job: JobId(derive(operation.0, 2)),
        operation,
    });
    let mut after = world.clone();
    let done = after.submit(By::ALL, command, &[]);
    let reserved = matches!(&done, Ok(Ok(done)) if done.reply != Reply::Unchanged);
    if reserved {
        world.view = after.view;
    }
    reserved
}

fn wakes_cleanup() -> System {
    let mut world = beginning();
    begin::add_session(&mut world, 1, 1, Some(0));
    archived(&mut world, &Operator::new(0, Trigger::Archive, 0));
    System::new("borrower-wakes-cleanup", world)
        .with(Worker { instance: 1 })
        .with(Recovery { instance: 1 })
        .with(Clock)
        .with(Thorough {
            closer: Closer::new(0, 1, ClosingKind::Delete),
            more: wake,
            and: ", which borrowed environment 0, and starts the cleanup of its owner",
        })
}

/// The task was archived, and its job has kept what the borrower uses.
fn archived(world: &mut World, operator: &Operator) {
    use freehold_kernel::{CleanupCommand, OperationCommand, Scope, Token};
    let (operation, instance, scope) = (operation(operator.n), instance(1), Scope::Task);
    let owner = crate::models::names::instance(operator.instance);
    world.prepare(Command::Operation(operator.reserve()));
    world.prepare(Command::Operation(OperationCommand::Snapshot {
        operation,
        scope,
        instance: owner,
    }));
    world.prepare(Command::Operation(OperationCommand::Mutate {
        operation,
        scope,
        instance: owner,
    }));
    let parts: Vec<_> = world.view.job_roots.iter().copied().collect();
    for part in parts {
        let (job_root, token) = (part.id, Token(derive(part.id.0, 1)));
        world.prepare(Command::Cleanup(CleanupCommand::Claim { job_root, token, instance }));
        let resources: Vec<_> = world.view.resources.iter().copied().collect();
        for resource in resources.iter().filter(|r| r.job_root_id == job_root) {
            world.prepare(Command::Cleanup(CleanupCommand::Permit {
                resource: resource.id,
                token,
                removal: freehold_kernel::RemovalId(derive(resource.id.0, 1)),
                removal_token: Token(derive(resource.id.0, 2)),
                evidence: crate::models::actors::Hands::evidence(
                    world,
                    resource.root_id,
                    resource.path,
                    resource.worktree_id,
                ),
            }));
        }
        world.prepare(Command::Cleanup(CleanupCommand::Finish { job_root, token }));
    }
    debug_assert!(world.view.jobs.iter().all(|j| j.state == JobState::Succeeded));
}
