//! A worker that meets the world outside: a place that cannot be looked at, somebody who stands in
//! it, something else at the path, steps that fail, a record that arrives after its sender's
//! death; and that may look first and ask later, as the host does under the path lock.

use freehold_kernel::properties::Hand;
use freehold_kernel::{
    CleanupCommand, Command, Evidence, Found, JobRootId, JobState, Liveness, Reason, RemovalStep,
    Reply, Resource, ResourceId, ResourceKind, ResourceResult, RootId, Token, derive,
};

use super::executor::{Executor, Hands, in_words};
use crate::models::names::*;
use crate::system::{Actor, Fault, Renaming, Steps};
use crate::world::{Sender, World};

/// A worker of an instance.
#[derive(Clone, Copy, Debug)]
pub struct Cleaner {
    /// Whose process.
    pub instance: u8,
    /// Looks, and asks in a step of its own, with the path in its hand.
    pub looks_first: bool,
    /// What it has to say may be on its way when it dies.
    pub says_late: bool,
    /// May be told to stop in order, and puts its claim back (C-17).
    pub puts_back: bool,
}

/// What it remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cleaning {
    /// The claim that it has.
    pub claim: Option<(JobRootId, Token)>,
    /// What it saw at the place of a resource, not asked about yet.
    pub looked: Option<(ResourceId, Evidence)>,
    /// The warrant that it has.
    pub executor: Option<Executor>,
    /// It is dead; its record is on its way.
    pub late: bool,
}

impl Cleaner {
    /// One that looks and asks at once.
    pub fn new(instance: u8) -> Cleaner {
        Cleaner { instance, looks_first: false, says_late: false, puts_back: false }
    }

    /// One that looks first.
    pub fn looking(instance: u8) -> Cleaner {
        Cleaner { looks_first: true, ..Cleaner::new(instance) }
    }

    /// A claim's token: new each time, however the tries are counted.
    pub(crate) fn token(self, world: &World, part: JobRootId) -> Token {
        let by = derive(part.0, u128::from(self.instance));
        Token(derive(by, u128::from(world.fact("claims"))))
    }

    fn idle(self, world: &World, steps: &mut Steps<'_, Cleaning>) {
        for part in world.view.job_roots.iter() {
            if part.state != JobState::Pending && part.state != JobState::RetryWait {
                continue;
            }
            let (job_root, token) = (part.id, self.token(world, part.id));
            let command =
                CleanupCommand::Claim { job_root, token, instance: instance(self.instance) };
            let says = format_args!("claims {}", said(part.job_id.0));
            steps.ask(says, Sender::ALL, Command::Cleanup(command), |answer, w| {
                if answer.ok()?.reply != Reply::Done {
                    return Some(Cleaning::default());
                }
                w.hold(token.0);
                w.set_fact("claims", w.fact("claims") + 1);
                Some(Cleaning { claim: Some((job_root, token)), ..Cleaning::default() })
            });
        }
        self.resume(world, Cleaning::default(), steps);
    }

    /// Takes over removals that nobody settled (C-18), where something can be done about them.
    fn resume(self, world: &World, local: Cleaning, steps: &mut Steps<'_, Cleaning>) {
        for removal in world.view.removals.iter().filter(|r| r.is_unsettled()) {
            // W-13: the path lock first; nobody is robbed of it by a lapsed lease.
            let taken = world.disk.hands.iter().any(|h| h.path == removal.path);
            if taken || Hands::hindrance(world, removal).is_some() {
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
                    .then_some(Cleaning { executor, ..local })
            });
        }
    }

    fn claimed(
        self,
        world: &World,
        (part, token): (JobRootId, Token),
        steps: &mut Steps<'_, Cleaning>,
    ) {
        let local = Cleaning { claim: Some((part, token)), ..Cleaning::default() };
        let end = |says: &str, command, steps: &mut Steps<'_, Cleaning>| {
            steps.ask(format_args!("{says}"), Sender::ALL, command, |_, w| {
                w.let_go(token.0);
                Some(Cleaning::default())
            });
        };
        if world.fact("damaged") != 0 {
            // C-10: a row of it cannot be read.
            let park = Command::Cleanup(CleanupCommand::Park { job_root: part, token });
            return end("cannot read all of it, and parks the job", park, steps);
        }
        for resource in world.view.resources.iter().filter(|r| r.job_root_id == part) {
            if !matches!(resource.result, ResourceResult::Waiting | ResourceResult::Removing) {
                continue;
            }
            match resource.kind {
                ResourceKind::Worktree if self.looks_first => {
                    Cleaner::look(world, local, resource, token, steps);
                }
                ResourceKind::Worktree => {
                    let evidence = Cleaner::see(world, resource);
                    self.permit(world, local, (resource.id, evidence), token, steps);
                }
                ResourceKind::Attempt => {
                    Cleaner::settle(local, resource, token, Liveness::Unknown, steps);
                }
                ResourceKind::Runtime | ResourceKind::Container | ResourceKind::Sandbox => {
                    // C-7: a stop that cannot be proven is no stop.
                    let known = world.fact("runtime out of reach") == 0;
                    let liveness = if known { Liveness::Dead } else { Liveness::Unknown };
                    Cleaner::settle(local, resource, token, liveness, steps);
                }
            }
        }
        self.resume(world, local, steps);
        let finish = Command::Cleanup(CleanupCommand::Finish { job_root: part, token });
        end("ends its claim", finish, steps);
        if self.puts_back {
            let not_before = None;
            let command = CleanupCommand::PutBack { job_root: part, token, not_before };
            steps.costing(Fault::Outsider);
            end("is told to stop, and puts its claim back", Command::Cleanup(command), steps);
        }
    }

    fn settle(
        local: Cleaning,
        resource: &Resource,
        token: Token,
        liveness: Liveness,
        steps: &mut Steps<'_, Cleaning>,
    ) {
        let command = CleanupCommand::SettleResource { resource: resource.id, token, liveness };
        let says = match liveness {
            Liveness::Dead => "stops",
            Liveness::Alive | Liveness::Unknown => "cannot say what became of",
        };
        let says = format_args!("{says} the {}, and says so", resource.kind.code());
        steps.ask(says, Sender::ALL, Command::Cleanup(command), |answer, _| {
            answer.ok().map(|_| local)
        });
    }

    fn see(world: &World, resource: &Resource) -> Evidence {
        Hands::evidence(world, resource.root_id, resource.path, resource.worktree_id)
    }

    fn look(
        world: &World,
        local: Cleaning,
        resource: &Resource,
        token: Token,
        steps: &mut Steps<'_, Cleaning>,
    ) {
        let (Some(root), Some(path)) = (resource.root_id, resource.path) else { return };
        if world.disk.hands.iter().any(|h| h.path == path) {
            return;
        }
        let evidence = Cleaner::see(world, resource);
        let says = format_args!("locks {} and looks: {}", said(path.0), seen(&evidence));
        let looked = Some((resource.id, evidence));
        steps.outside(says, |w| {
            w.disk.take(Hand { root, path, token });
            Some(Cleaning { looked, ..local })
        });
    }

    fn permit(
        self,
        world: &World,
        local: Cleaning,
        (resource, evidence): (ResourceId, Evidence),
        token: Token,
        steps: &mut Steps<'_, Cleaning>,
    ) {
        let Some(row) = world.view.resources.id(resource.0) else { return };
        let other = |h: &Hand| Some(h.path) == row.path && h.token != token;
        if world.disk.hands.iter().any(other) {
            return;
        }
        let (removal, removal_token) = Hands::next_removal(world);
        let command = CleanupCommand::Permit { resource, token, removal, removal_token, evidence };
        let path = said(row.path.map_or(0, |p| p.0));
        let ask = if self.looks_first {
            format!("asks for permission to remove {path}")
        } else {
            let seen = seen(&evidence);
            format!("looks at {path} ({seen}) and asks for permission to remove it")
        };
        steps.ask(format_args!("{ask}"), Sender::ALL, Command::Cleanup(command), |answer, w| {
            w.disk.let_go(token);
            let executor = match answer {
                Ok(done) => Hands::hold(w, Some(done)),
                // One that looks first remembers, and has to let go.
                Err(_) if self.looks_first => None,
                Err(_) => return None,
            };
            Some(Cleaning { executor, looked: None, ..local })
        });
    }

    /// The executor's next step: on disk, or its record; or why it cannot.
    fn perform(
        self,
        world: &World,
        executor: Executor,
        local: Cleaning,
        steps: &mut Steps<'_, Cleaning>,
    ) {
        let Some(row) = world.view.removals.id(executor.removal.0) else { return };
        let then = |executor| Cleaning { executor, ..local };
        if !executor.done {
            if let Some(reason) = Hands::hindrance(world, row) {
                return Cleaner::fail(world, executor, reason, local, steps);
            }
            steps.outside(format_args!("{}", in_words(executor.step)), |w| {
                Hands::act(w, executor);
                Some(then(Some(Executor { done: true, ..executor })))
            });
            steps.costing(Fault::Disk);
            Cleaner::fail(world, executor, Reason::Io, local, steps);
            if executor.step == RemovalStep::Salvaged && !row.unsaved.is_none() {
                let says = format_args!("salvages, and nothing comes of it");
                steps
                    .costing(Fault::Disk)
                    .outside(says, |_| Some(then(Some(Executor { done: true, ..executor }))));
            }
            return;
        }
        let command = Command::Cleanup(Hands::record(world, executor));
        let token = executor.token;
        let record = |says: &str, lost: bool, steps: &mut Steps<'_, Cleaning>| {
            steps.ask(format_args!("{says}"), Sender::ALL, command, |answer, w| {
                let next = Hands::hold(w, answer.ok());
                if lost {
                    // The warrant is gone with the reply; the lease it came with still runs, and
                    // nobody renews it.
                    Hands::let_go(w, token);
                    next?;
                    return Some(then(None));
                }
                if next.is_none() {
                    Hands::let_go(w, token);
                }
                Some(then(next))
            });
        };
        record("records that", false, steps);
        steps.costing(Fault::LostReply);
        record("records that, and the reply is lost", true, steps);
        // A call may fail after it has done its work (W-37).
        steps.costing(Fault::Disk);
        Cleaner::fail(world, executor, Reason::Io, local, steps);
    }

    fn fail(
        world: &World,
        executor: Executor,
        reason: Reason,
        local: Cleaning,
        steps: &mut Steps<'_, Cleaning>,
    ) {
        let Some(row) = world.view.removals.id(executor.removal.0) else { return };
        let seen = Hands::evidence(world, Some(row.root_id), Some(row.path), row.identity);
        let command = CleanupCommand::RecordFailure {
            removal: executor.removal,
            token: executor.token,
            reason,
            in_place: seen.found == Found::Here,
        };
        let step = in_words(executor.step);
        let says = format_args!("{step}: that fails ({}), and it records so", reason.code());
        steps.ask(says, Sender::ALL, Command::Cleanup(command), |_, w| {
            Hands::let_go(w, executor.token);
            Some(Cleaning { executor: None, ..local })
        });
    }

    /// A record from the dead.
    fn arrive(world: &World, executor: Executor, steps: &mut Steps<'_, Cleaning>) {
        let command = Command::Cleanup(Hands::record(world, executor));
        let says = format_args!("is dead, and what it recorded last arrives");
        steps.ask(says, Sender::ALL, command, |_, _| Some(Cleaning::default()));
    }

    fn die(self, local: Cleaning, steps: &mut Steps<'_, Cleaning>) {
        let let_go = move |w: &mut World| {
            if let Some(executor) = local.executor {
                Hands::let_go(w, executor.token);
            }
            if let Some((_, token)) = local.claim {
                Hands::let_go(w, token);
            }
        };
        steps.costing(Fault::Crash).outside(format_args!("dies, and starts again"), |w| {
            let_go(w);
            Some(Cleaning::default())
        });
        if self.says_late && local.executor.is_some_and(|e| e.done) {
            let says = format_args!("dies, and what it records is still on its way");
            steps.costing(Fault::Crash).outside(says, |w| {
                let_go(w);
                Some(Cleaning { executor: local.executor, late: true, ..Cleaning::default() })
            });
        }
    }
}

/// What was seen, in a few words.
pub(crate) fn seen(evidence: &Evidence) -> &'static str {
    match evidence.found {
        _ if evidence.obstacle == Reason::InUse => "somebody stands in it",
        Found::Here if !evidence.unsaved.is_none() => "it is there, with unsaved work",
        Found::Here => "it is there",
        Found::Missing => "nothing is there",
        Found::InTrash => "it is in the trash",
        Found::Mismatch => "something else is there",
        Found::Unknown => "it cannot be looked at",
    }
}

impl Actor for Cleaner {
    type Local = Cleaning;

    fn name(&self) -> String {
        format!("instance {} (cleaning)", letter(self.instance))
    }

    fn begin(&self) -> Cleaning {
        Cleaning::default()
    }

    fn at_rest(&self, local: Cleaning) -> bool {
        local == Cleaning::default()
    }

    fn rename(&self, local: Cleaning, renaming: &Renaming) -> Cleaning {
        Cleaning {
            claim: local
                .claim
                .map(|(part, token)| (JobRootId(renaming.id(part.0)), Token(renaming.id(token.0)))),
            looked: local.looked.map(|(r, e)| (ResourceId(renaming.id(r.0)), e)),
            executor: local.executor.map(|e| Hands::rename(e, renaming)),
            late: local.late,
        }
    }

    fn act(&self, local: Cleaning, world: &World, steps: &mut Steps<'_, Cleaning>) {
        match local {
            Cleaning { late: true, executor: Some(executor), .. } => {
                return Cleaner::arrive(world, executor, steps);
            }
            Cleaning { executor: Some(executor), .. } => {
                self.perform(world, executor, local, steps);
            }
            Cleaning { claim: Some((_, token)), looked: Some(looked), .. } => {
                self.permit(world, local, looked, token, steps);
            }
            Cleaning { claim: Some(claim), .. } => self.claimed(world, claim, steps),
            Cleaning { .. } => self.idle(world, steps),
        }
        if local != Cleaning::default() {
            self.die(local, steps);
        }
    }
}

/// The bit of a root in a fact about roots.
pub fn bit(root: RootId) -> u32 {
    1 << (root.0 & 0xf)
}
