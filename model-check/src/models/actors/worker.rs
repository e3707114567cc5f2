//! A worker of cleanup jobs (C-3..C-9): claims a part, settles and asks for permission for each
//! resource under its path lock, executes, ends its claim. It may die between any two steps.

use freehold_kernel::{
    CleanupCommand, Command, JobRootId, JobState, Liveness, Reply, Resource, ResourceKind,
    ResourceResult, Token, derive,
};

use super::executor::{Executor, Hands, in_words};
use crate::models::names::*;
use crate::system::{Actor, Fault, Renaming, Steps};
use crate::world::{Sender, World};

/// A worker of an instance.
#[derive(Clone, Copy, Debug)]
pub struct Worker {
    /// Whose process.
    pub instance: u8,
}

/// What a worker remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Work {
    /// The claim that it has.
    pub claim: Option<(JobRootId, Token)>,
    /// The warrant that it has.
    pub executor: Option<Executor>,
}

impl Worker {
    fn idle(self, world: &World, steps: &mut Steps<'_, Work>) {
        for part in world.view.job_roots.iter() {
            if part.state != JobState::Pending && part.state != JobState::RetryWait {
                continue;
            }
            // A claim spends a try, so the token is new each time.
            let by = derive(part.id.0, u128::from(self.instance));
            let token = Token(derive(by, u128::from(part.tries)));
            let job_root = part.id;
            let command =
                CleanupCommand::Claim { job_root, token, instance: instance(self.instance) };
            let says = format_args!("claims {}", said(part.job_id.0));
            steps.ask(says, Sender::ALL, Command::Cleanup(command), |answer, w| {
                answer.ok()?;
                w.hold(token.0);
                Some(Work { claim: Some((job_root, token)), executor: None })
            });
        }
        self.resume(world, Work::default(), steps);
    }

    /// Takes over removals that nobody settled (C-18).
    fn resume(self, world: &World, local: Work, steps: &mut Steps<'_, Work>) {
        for removal in world.view.removals.iter().filter(|r| r.is_unsettled()) {
            // W-13: the path lock first; nobody is robbed of it by a lapsed lease.
            if world.disk.hands.iter().any(|h| h.path == removal.path) {
                continue;
            }
            let token = Token(derive(removal.token.0, 1 + u128::from(self.instance)));
            let (old_token, id) = (removal.token, removal.id);
            let command = CleanupCommand::TakeOverRemoval {
                removal: id,
                old_token,
                token,
                instance: instance(self.instance),
            };
            let says = format_args!("takes over the removal of {}", said(removal.path.0));
            steps.ask(says, Sender::ALL, Command::Cleanup(command), |answer, w| {
                let done = answer.ok()?;
                w.let_go(old_token.0);
                let executor = Hands::hold(w, Some(done));
                (executor.is_some() || done.reply != Reply::Unchanged)
                    .then_some(Work { executor, ..local })
            });
        }
    }

    fn claimed(
        self,
        world: &World,
        (part, token): (JobRootId, Token),
        steps: &mut Steps<'_, Work>,
    ) {
        let local = Work { claim: Some((part, token)), executor: None };
        for resource in world.view.resources.iter().filter(|r| r.job_root_id == part) {
            if !matches!(resource.result, ResourceResult::Waiting | ResourceResult::Removing) {
                continue;
            }
            match resource.kind {
                ResourceKind::Worktree => self.permit(world, local, resource, token, steps),
                ResourceKind::Attempt => {
                    self.settle(local, resource, token, Liveness::Unknown, steps);
                }
                ResourceKind::Runtime | ResourceKind::Container | ResourceKind::Sandbox => {
                    self.settle(local, resource, token, Liveness::Dead, steps);
                }
            }
        }
        self.resume(world, local, steps);
        let command = Command::Cleanup(CleanupCommand::Finish { job_root: part, token });
        steps.ask(format_args!("ends its claim"), Sender::ALL, command, |_, w| {
            w.let_go(token.0);
            Some(Work::default())
        });
    }

    fn settle(
        self,
        local: Work,
        resource: &Resource,
        token: Token,
        liveness: Liveness,
        steps: &mut Steps<'_, Work>,
    ) {
        let command = CleanupCommand::SettleResource { resource: resource.id, token, liveness };
        let says = format_args!("asks whether the {} is settled", resource.kind.code());
        steps.ask(says, Sender::ALL, Command::Cleanup(command), |answer, _| {
            answer.ok().map(|_| local)
        });
    }

    fn permit(
        self,
        world: &World,
        local: Work,
        resource: &Resource,
        token: Token,
        steps: &mut Steps<'_, Work>,
    ) {
        if world.disk.hands.iter().any(|h| Some(h.path) == resource.path) {
            return;
        }
        let (removal, removal_token) = Hands::next_removal(world);
        let evidence =
            Hands::evidence(world, resource.root_id, resource.path, resource.worktree_id);
        let command = CleanupCommand::Permit {
            resource: resource.id,
            token,
            removal,
            removal_token,
            evidence,
        };
        let path = resource.path.map_or(0, |p| p.0);
        let says = format_args!("looks at {} and asks for permission to remove it", said(path));
        steps.ask(says, Sender::ALL, Command::Cleanup(command), |answer, w| {
            let executor = Hands::hold(w, Some(answer.ok()?));
            Some(Work { executor, ..local })
        });
    }
}

/// The executor's next step, for whoever has one: on disk, or its record.
pub fn execute<L: Copy>(
    world: &World,
    executor: Executor,
    steps: &mut Steps<'_, L>,
    local: impl Fn(Option<Executor>) -> L,
) {
    if !executor.done {
        steps.outside(format_args!("{}", in_words(executor.step)), |w| {
            Hands::act(w, executor);
            Some(local(Some(Executor { done: true, ..executor })))
        });
        return;
    }
    let command = Command::Cleanup(Hands::record(world, executor));
    let token = executor.token;
    let record = |lost: bool, steps: &mut Steps<'_, L>| {
        let says = if lost { "records that, and the reply is lost" } else { "records that" };
        steps.ask(format_args!("{says}"), Sender::ALL, command, |answer, w| {
            let next = Hands::hold(w, answer.ok());
            if lost {
                // The warrant is gone with the reply; the lease it came with still runs, and
                // nobody renews it.
                Hands::let_go(w, token);
                next?;
                return Some(local(None));
            }
            if next.is_none() {
                Hands::let_go(w, token);
            }
            Some(local(next))
        });
    };
    record(false, steps);
    steps.costing(Fault::LostReply);
    record(true, steps);
}

impl Actor for Worker {
    type Local = Work;

    fn name(&self) -> String {
        format!("instance {} (cleaning)", letter(self.instance))
    }

    fn begin(&self) -> Work {
        Work::default()
    }

    fn at_rest(&self, local: Work) -> bool {
        local == Work::default()
    }

    fn rename(&self, local: Work, renaming: &Renaming) -> Work {
        Work {
            claim: local
                .claim
                .map(|(part, token)| (JobRootId(renaming.id(part.0)), Token(renaming.id(token.0)))),
            executor: local.executor.map(|e| Hands::rename(e, renaming)),
        }
    }

    fn act(&self, local: Work, world: &World, steps: &mut Steps<'_, Work>) {
        match (local.claim, local.executor) {
            (_, Some(executor)) => {
                execute(world, executor, steps, |executor| Work { executor, ..local });
            }
            (Some(claim), None) => self.claimed(world, claim, steps),
            (None, None) => self.idle(world, steps),
        }
        if local != Work::default() {
            steps.costing(Fault::Crash).outside(format_args!("dies, and starts again"), |w| {
                if let Some(executor) = local.executor {
                    Hands::let_go(w, executor.token);
                }
                if let Some((_, token)) = local.claim {
                    w.let_go(token.0);
                }
                Some(Work::default())
            });
        }
    }
}
