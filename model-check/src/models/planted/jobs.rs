//! Wrong designs of the cleanup job: claims, rescues, re-proofs, and what cannot be read.

use freehold_kernel::{
    CleanupCommand, Command, Evidence, Found, Guard, InstanceId, JobRootId, JobState, Reason,
    TaskLifecycle, Token, Trigger, Unsaved, derive,
};

use crate::models::actors::{Cleaner, Clock, Executor, Hands, Recovery};
use crate::models::begin;
use crate::models::catalogue::Design;
use crate::models::job::scenes::*;
use crate::models::names::*;
use crate::system::{Actor, Fault, Steps, System};
use crate::world::{LAPSED, NOW, Sender, World};

/// The designs.
pub const DESIGNS: &[Design] = &[
    Design {
        name: "completion-by-worker-name",
        says: "a worker ends the claim that bears its name, for nobody else has that name",
        rule: "C-3",
        build: completion_by_worker_name,
        property: "P-34",
        steps: 5,
    },
    Design {
        name: "unarchive-without-cancel",
        says: "the unarchive sets the task active, and cleanup finds out by itself",
        rule: "B-8",
        build: unarchive_without_cancel,
        property: "P-4",
        steps: 3,
    },
    Design {
        name: "owner-not-reproved",
        says: "the snapshot says whose the worktree is, so nobody looks again",
        rule: "C-5",
        build: owner_not_reproved,
        property: "P-4",
        steps: 3,
    },
    Design {
        name: "removal-without-mark",
        says: "the re-proof and the removal follow so closely that nothing needs to be marked",
        rule: "C-18",
        build: removal_without_mark,
        property: "P-33",
        steps: 2,
    },
    Design {
        name: "absent-on-unmounted-root",
        says: "what is not at its path is gone, and that is success",
        rule: "D-18",
        build: absent_on_unmounted_root,
        property: "P-11",
        steps: 8,
    },
    Design {
        name: "rescuer-overwrites-finished",
        says: "a rescuer reads the lapsed claims and writes them back as waiting",
        rule: "C-4",
        build: rescuer_overwrites_finished,
        property: "P-13",
        steps: 4,
    },
    Design {
        name: "rescue-by-elapsed-time",
        says: "a claim that is an hour old must be that of a dead worker",
        rule: "C-3",
        build: || rescued_at_once("instance B (after an hour)"),
        property: "P-34",
        steps: 2,
    },
    Design {
        name: "reusable-worker-name",
        says: "a restarted worker has the name of the one before, and goes on with its claims",
        rule: "C-3",
        build: reusable_worker_name,
        property: "P-34",
        steps: 2,
    },
    Design {
        name: "store-error-strands-job",
        says: "a worker that cannot end its claim logs that and goes on; every job that runs has \
               somebody who runs it",
        rule: "C-4",
        build: store_error_strands_job,
        property: "stuck",
        steps: 2,
    },
    Design {
        name: "unknown-kind-dropped",
        says: "a job of a kind that this build does not know is none of its business, and is done",
        rule: "C-10",
        build: unknown_kind_dropped,
        property: "P-3",
        steps: 1,
    },
    Design {
        name: "start-resets-running-jobs",
        says: "an instance that starts finds jobs running, which nobody can be at work on",
        rule: "C-11",
        build: || rescued_at_once("instance B (starting)"),
        property: "P-34",
        steps: 2,
    },
];

/// What a claim of an actor is.
type Claim = Option<(JobRootId, Token)>;

/// Claims the first part that waits.
fn claim_any(world: &World, by: InstanceId, salt: u128, steps: &mut Steps<'_, Claim>) {
    for part in world.view.job_roots.iter() {
        let n = u128::from(world.fact("claims"));
        let (job_root, token) = (part.id, Token(derive(derive(part.id.0, 7 + salt), n)));
        let command = Command::Cleanup(CleanupCommand::Claim { job_root, token, instance: by });
        let says = format_args!("claims {}", said(part.job_id.0));
        steps.ask(says, Sender::ALL, command, |answer, w| {
            answer.ok()?;
            w.hold(token.0);
            w.set_fact("claims", w.fact("claims") + 1);
            Some(Some((job_root, token)))
        });
    }
}

/// A thread of instance A, which ends claims by the name of the instance.
#[derive(Clone, Copy, Debug)]
struct Thread(u8);

impl Actor for Thread {
    type Local = Claim;

    fn name(&self) -> String {
        format!("instance A (thread {})", self.0)
    }

    fn begin(&self) -> Claim {
        None
    }

    fn at_rest(&self, local: Claim) -> bool {
        local.is_none()
    }

    fn act(&self, local: Claim, world: &World, steps: &mut Steps<'_, Claim>) {
        let Some((job_root, token)) = local else {
            return claim_any(world, instance(0), u128::from(self.0), steps);
        };
        steps.at_once(format_args!("ends the claim of instance A"), |w, without| {
            let named =
                w.view.job_roots.id(job_root.0).is_some_and(|p| p.claimed_by == Some(instance(0)));
            if named {
                let finish = Command::Cleanup(CleanupCommand::Finish { job_root, token });
                let without = [without, &[Guard::ClaimToken]].concat();
                w.submit(Sender::ALL, finish, &without)?.ok();
            }
            w.let_go(token.0);
            Ok(Some(None))
        });
    }
}

fn completion_by_worker_name() -> System {
    let mut world = archived(1);
    finish_rootless(&mut world, job(0));
    System::new("completion-by-worker-name", world)
        .with(Thread(0))
        .with(Thread(1))
        .with(Recovery { instance: 0 })
        .with(Clock)
        .allowing(1, Fault::Slow)
}

/// Does one thing to the world, past the kernel.
struct Edits {
    who: &'static str,
    says: &'static str,
    edit: fn(&mut World),
}

impl Actor for Edits {
    type Local = bool;

    fn name(&self) -> String {
        self.who.to_owned()
    }

    fn begin(&self) -> bool {
        false
    }

    fn act(&self, done: bool, _world: &World, steps: &mut Steps<'_, bool>) {
        if !done {
            steps.outside(format_args!("{}", self.says), |w| {
                (self.edit)(w);
                w.view.commit();
                Some(true)
            });
        }
    }
}

fn unarchive_without_cancel() -> System {
    System::new("unarchive-without-cancel", archived(1))
        .with(Cleaner::new(0))
        .with(Edits {
            who: "a person",
            says: "unarchives task 0",
            edit: |w| {
                if let Some(task) = w.view.tasks.edit(task(0).0) {
                    task.lifecycle = TaskLifecycle::Active;
                    (task.archived_at, task.archived_by) = (None, None);
                }
            },
        })
        .without(&[Guard::AuthorityStands, Guard::RemovalStands])
}

fn owner_not_reproved() -> System {
    let mut world = archived(1);
    begin::add_task(&mut world, 1, None);
    System::new("owner-not-reproved", world)
        .with(Cleaner::new(0))
        .with(Edits {
            who: "a person",
            says: "gives environment 0 to task 1",
            edit: |w| {
                if let Some(environment) = w.view.environments.edit(environment(0).0) {
                    environment.task_id = task(1);
                }
                if let Some(task) = w.view.tasks.edit(task(0).0) {
                    task.current_environment_id = None;
                }
            },
        })
        .without(&[Guard::OwnedAsSnapshot])
}

fn removal_without_mark() -> System {
    System::new("removal-without-mark", archived(1))
        .with(Cleaner::new(0))
        .without(&[Guard::MarkRemoving])
}

/// A worker that takes what it cannot see for gone.
struct Trusting;

impl Actor for Trusting {
    type Local = (Claim, Option<Executor>);

    fn name(&self) -> String {
        "instance A (cleaning)".to_owned()
    }

    fn begin(&self) -> Self::Local {
        (None, None)
    }

    fn at_rest(&self, local: Self::Local) -> bool {
        local == (None, None)
    }

    fn act(&self, local: Self::Local, world: &World, steps: &mut Steps<'_, Self::Local>) {
        let (claim, executor) = local;
        if let Some(executor) = executor {
            let command = Command::Cleanup(CleanupCommand::RecordStep {
                removal: executor.removal,
                token: executor.token,
                step: executor.step,
                found_something: false,
                salvage: None,
            });
            let says = format_args!("finds nothing to do for \"{}\"", executor.step.code());
            steps.ask(says, Sender::ALL, command, |answer, w| {
                let next = Hands::hold(w, answer.ok());
                if next.is_none() {
                    Hands::let_go(w, executor.token);
                }
                Some((claim, next))
            });
            return;
        }
        let job_root = part(job(0), 0);
        let Some((_, token)) = claim else {
            let (token, instance) = (EARLIER, instance(0));
            let command = Command::Cleanup(CleanupCommand::Claim { job_root, token, instance });
            steps.ask(format_args!("claims job 0"), Sender::ALL, command, |answer, w| {
                answer.ok()?;
                w.hold(token.0);
                Some((Some((job_root, token)), None))
            });
            return;
        };
        let (removal, removal_token) = Hands::next_removal(world);
        let evidence = Evidence {
            found: Found::Missing,
            unsaved: Unsaved::NONE,
            obstacle: Reason::None,
            head: None,
        };
        let command = Command::Cleanup(CleanupCommand::Permit {
            resource: resource(job(0), 0),
            token,
            removal,
            removal_token,
            evidence,
        });
        let says = format_args!("looks at path 0, sees nothing there, and asks for permission");
        steps.ask(says, Sender::ALL, command, |answer, w| {
            Some((claim, Hands::hold(w, Some(answer.ok()?))))
        });
    }
}

fn absent_on_unmounted_root() -> System {
    let mut world = archived(1);
    world.set_fact("unmounted", 1);
    System::new("absent-on-unmounted-root", world).with(Trusting)
}

/// A rescuer that writes back what it has read.
struct Overwriting;

impl Actor for Overwriting {
    type Local = Option<JobRootId>;

    fn name(&self) -> String {
        "instance B (rescuing)".to_owned()
    }

    fn begin(&self) -> Option<JobRootId> {
        None
    }

    fn act(
        &self,
        seen: Option<JobRootId>,
        world: &World,
        steps: &mut Steps<'_, Option<JobRootId>>,
    ) {
        if let Some(part) = seen {
            steps.outside(format_args!("writes the claim back as waiting"), |w| {
                let row = w.view.job_roots.edit(part.0)?;
                row.state = JobState::RetryWait;
                (row.token, row.claimed_by, row.lease_until) = (None, None, None);
                w.view.commit();
                Some(None)
            });
            return;
        }
        for part in world.view.job_roots.iter().filter(|p| p.state == JobState::Running) {
            if part.lease_until.is_some_and(|lease| lease <= NOW) {
                let says = format_args!("sees that the claim of {} lapsed", said(part.job_id.0));
                steps.outside(says, |_| Some(Some(part.id)));
            }
        }
    }
}

/// Everything is removed, and the worker died before it could say so.
fn rescuer_overwrites_finished() -> System {
    let mut world = archived(3);
    finish_rootless(&mut world, job(0));
    remove(&mut world, job(0));
    for part in world.view.job_roots.iter_mut() {
        part.lease_until = part.lease_until.map(|_| LAPSED);
    }
    world.view.commit();
    System::new("rescuer-overwrites-finished", world)
        .with(Overwriting)
        .with(Recovery { instance: 2 })
        .with(Cleaner::new(2))
}

/// Ends every claim that it sees, whoever holds it.
struct Impatient(&'static str);

impl Actor for Impatient {
    type Local = ();

    fn name(&self) -> String {
        self.0.to_owned()
    }

    fn begin(&self) {}

    fn act(&self, (): (), world: &World, steps: &mut Steps<'_, ()>) {
        for part in world.view.job_roots.iter() {
            let (job_root, Some(token)) = (part.id, part.token) else { continue };
            let command = Command::Cleanup(CleanupCommand::Rescue { job_root, token });
            let says = format_args!("sets {} back to waiting", said(part.job_id.0));
            steps.ask(says, Sender::ALL, command, |answer, _| answer.ok().map(|_| ()));
        }
    }
}

fn rescued_at_once(who: &'static str) -> System {
    System::new("rescued-at-once", archived(2))
        .with(Cleaner::new(0))
        .with(Impatient(who))
        .without(&[Guard::RescueLapsed])
}

/// A second process under the name of the first; it knows claims by that name.
struct Namesake;

impl Actor for Namesake {
    type Local = ();

    fn name(&self) -> String {
        "instance A (started again)".to_owned()
    }

    fn begin(&self) {}

    fn act(&self, (): (), world: &World, steps: &mut Steps<'_, ()>) {
        let mine = world.view.job_roots.iter().filter(|p| p.claimed_by == Some(instance(0)));
        for part in mine {
            let (job_root, token) = (part.id, Token(derive(part.id.0, 9)));
            let says = format_args!("puts back the claim of {}", said(part.job_id.0));
            steps.at_once(says, |w, without| {
                let without = [without, &[Guard::ClaimToken]].concat();
                let not_before = None;
                let command = CleanupCommand::PutBack { job_root, token, not_before };
                let done = w.submit(Sender::ALL, Command::Cleanup(command), &without)?;
                Ok(done.ok().map(|_| ()))
            });
        }
    }
}

fn reusable_worker_name() -> System {
    System::new("reusable-worker-name", archived(1)).with(Cleaner::new(0)).with(Namesake)
}

/// A worker that has no answer to an error of the store.
struct Shrugging;

impl Actor for Shrugging {
    type Local = Claim;

    fn name(&self) -> String {
        "instance A (cleaning)".to_owned()
    }

    fn begin(&self) -> Claim {
        None
    }

    fn at_rest(&self, local: Claim) -> bool {
        local.is_none()
    }

    fn act(&self, local: Claim, world: &World, steps: &mut Steps<'_, Claim>) {
        let Some((job_root, token)) = local else {
            return claim_any(world, instance(0), 0, steps);
        };
        let finish = Command::Cleanup(CleanupCommand::Finish { job_root, token });
        steps.ask(format_args!("ends its claim"), Sender::ALL, finish, |_, w| {
            w.let_go(token.0);
            Some(None)
        });
        let says = format_args!("cannot end its claim, for the store is busy, and goes on");
        steps.costing(Fault::Disk).outside(says, |w| {
            w.let_go(token.0);
            Some(None)
        });
    }
}

fn store_error_strands_job() -> System {
    System::new("store-error-strands-job", archived(1)).with(Shrugging).allowing(1, Fault::Disk)
}

fn unknown_kind_dropped() -> System {
    let mut world = deleted(1);
    if let Some(job) = world.view.jobs.edit(job(0).0) {
        job.trigger = Trigger::Unreadable;
    }
    world.view.commit();
    System::new("unknown-kind-dropped", world).with(Edits {
        who: "instance A (of an older build)",
        says: "does not know the kind of job 0, and takes it for done",
        edit: |w| {
            for part in w.view.job_roots.iter_mut() {
                part.state = JobState::Succeeded;
            }
            if let Some(job) = w.view.jobs.edit(job(0).0) {
                (job.state, job.completed_at) = (JobState::Succeeded, Some(NOW));
            }
        },
    })
}
