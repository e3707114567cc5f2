//! Workers and executors: claims, removals step by step.

use freehold_kernel::properties::Hand;
use freehold_kernel::*;

use super::backend::{Answer, Backend};
use super::op::Draw;
use super::{Driver, Ran, Worker};

/// How an executor does a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// As the rules say.
    Honest,
    /// It says that it salvaged and did not.
    Lazy,
    /// It fails with this reason.
    Failing(Reason),
    /// It does the step, and its call fails all the same.
    FailingAfter(Reason),
    /// It does the step and dies before it says so.
    Dying,
}

impl<B: Backend> Driver<B> {
    /// An instance that serves a root, mostly.
    pub(super) fn serving(&self, draw: &mut Draw, root: Option<RootId>) -> InstanceId {
        let host = root.and_then(|r| self.world.managed_roots.id(r.0)).map(|r| r.host);
        let fits: Vec<InstanceId> = self
            .instances
            .iter()
            .filter(|(_, h)| host.is_none_or(|host| *h == host))
            .map(|(i, _)| *i)
            .collect();
        if draw.once_in(16) {
            return self.any_instance(draw);
        }
        draw.one(&fits).unwrap_or(InstanceId(0xdead))
    }

    /// W-13: the path lock is free, or one's own.
    pub(super) fn lock_is_free(&self, path: PathId, own: Option<Token>) -> bool {
        !self.disk.hands.iter().any(|h| h.path == path && Some(h.token) != own)
    }

    /// Keeps a warrant that came with an answer.
    pub(super) fn keep(&mut self, instance: InstanceId, answer: Answer) {
        let Some(warrant) = answer.warrant else { return };
        let (removal, token) = (warrant.removal(), warrant.token());
        self.disk.take(Hand { root: warrant.root(), path: warrant.path(), token });
        self.workers.retain(|(_, w)| !matches!(w, Worker::Executor(_, t, _) if *t == token));
        self.workers.push((instance, Worker::Executor(removal, token, Some(warrant))));
    }

    /// A command sent again gave a warrant: whoever is recorded has it.
    pub(super) fn adopt_lost_warrant(&mut self, answer: Answer) {
        let instance = answer
            .warrant
            .as_ref()
            .and_then(|w| self.world.removals.id(w.removal().0))
            .map(|r| r.instance_id);
        if let Some(instance) = instance {
            let living = self.instances.iter().any(|(i, _)| *i == instance);
            if living {
                self.keep(instance, answer);
            }
        }
    }

    pub(super) fn claim(&mut self, mut draw: Draw) -> Ran<Option<(JobRootId, Token)>> {
        let mut parts: Vec<JobRoot> = self
            .world
            .job_roots
            .iter()
            .filter(|p| matches!(p.state, JobState::Pending | JobState::RetryWait))
            .copied()
            .collect();
        if parts.is_empty() || draw.once_in(10) {
            parts = self.world.job_roots.iter().copied().collect();
        }
        let Some(part) = draw.one(&parts) else { return Ok(None) };
        let instance = self.serving(&mut draw, part.root_id);
        let token = Token(self.fresh());
        let claim = CleanupCommand::Claim { job_root: part.id, token, instance };
        let answer = self.ask(&mut draw, Command::Cleanup(claim))?;
        if answer.verdict == Ok(Reply::Done) && !answer.replayed {
            self.workers.push((instance, Worker::Claimer(part.id, token)));
            return Ok(Some((part.id, token)));
        }
        Ok(None)
    }

    fn claimers(&self) -> Vec<(InstanceId, JobRootId, Token)> {
        let mut all: Vec<(InstanceId, JobRootId, Token)> = self
            .workers
            .iter()
            .filter_map(|(i, w)| match w {
                Worker::Claimer(part, token) => Some((*i, *part, *token)),
                _ => None,
            })
            .collect();
        all.reverse();
        all
    }

    /// A worker goes through its claim, in the order of C-6, or stops somewhere.
    pub(super) fn work(&mut self, mut draw: Draw) -> Ran {
        let live = self.claimers().into_iter().find(|(_, part, token)| {
            self.world
                .job_roots
                .id(part.0)
                .is_some_and(|p| p.token == Some(*token) && p.state == JobState::Running)
        });
        let (part, token) = match live {
            Some((_, part, token)) => (part, token),
            None => match self.claim(Draw(draw.below(1 << 12) as u64))? {
                Some(claim) => claim,
                None => return Ok(()),
            },
        };
        let mut resources: Vec<Resource> = self
            .world
            .resources
            .iter()
            .filter(|r| r.job_root_id == part && r.result == ResourceResult::Waiting)
            .copied()
            .collect();
        resources.sort_by_key(|r| (r.kind, r.id));
        if draw.once_in(8) {
            resources.reverse();
        }
        for resource in resources {
            if draw.once_in(12) {
                return Ok(());
            }
            self.one_resource(&mut draw, &resource, token)?;
        }
        match draw.below(10) {
            8 => Ok(()),
            9 => {
                let later = self.world.now + Span::seconds(40);
                let not_before = draw.once_in(3).then_some(later);
                let put_back = CleanupCommand::PutBack { job_root: part, token, not_before };
                self.ask(&mut draw, Command::Cleanup(put_back)).map(|_| ())
            }
            _ => {
                let finish = CleanupCommand::Finish { job_root: part, token };
                self.ask(&mut draw, Command::Cleanup(finish)).map(|_| ())
            }
        }
    }

    fn one_resource(&mut self, draw: &mut Draw, resource: &Resource, token: Token) -> Ran {
        let liveness = match draw.below(10) {
            8 => Liveness::Alive,
            9 => Liveness::Unknown,
            _ => Liveness::Dead,
        };
        if resource.kind == ResourceKind::Attempt
            && let Some(attempt) = resource.attempt_id.and_then(|a| self.world.attempts.id(a.0))
            && attempt.lease_until <= self.world.now
        {
            let attempt = *attempt;
            let instance = self.serving(draw, Some(attempt.root_id));
            self.resolve(draw, &attempt, instance)?;
        }
        if resource.kind != ResourceKind::Worktree {
            let settle = CleanupCommand::SettleResource { resource: resource.id, token, liveness };
            return self.ask(draw, Command::Cleanup(settle)).map(|_| ());
        }
        self.permit(draw, resource, token)
    }

    fn permit(&mut self, draw: &mut Draw, resource: &Resource, token: Token) -> Ran {
        let path = resource.path.unwrap_or(PathId(0));
        if !self.lock_is_free(path, None) {
            return Ok(());
        }
        let evidence = self.look_badly(draw, path, resource.worktree_id);
        let (removal, removal_token) = (RemovalId(self.fresh()), Token(self.fresh()));
        let permit = CleanupCommand::Permit {
            resource: resource.id,
            token: if draw.once_in(24) { Token(self.fresh()) } else { token },
            removal,
            removal_token,
            evidence,
        };
        let answer = self.ask(draw, Command::Cleanup(permit))?;
        let part = self.world.job_roots.id(resource.job_root_id.0);
        let instance = part.and_then(|p| p.claimed_by).unwrap_or(InstanceId(0));
        self.keep(instance, answer);
        // Somebody writes into the tree between the look and the rename.
        if draw.once_in(10)
            && let Some(worktree) = resource.worktree_id.and_then(|w| self.disk.find_mut(w))
            && worktree.place == freehold_kernel::properties::Place::AtHome
        {
            worktree.unsaved = worktree.unsaved.with(Unsaved::IGNORED);
        }
        if draw.once_in(4) {
            return Ok(());
        }
        self.go_through(draw, removal)
    }

    /// Steps of a removal until its end, or somewhere before.
    pub(super) fn go_through(&mut self, draw: &mut Draw, removal: RemovalId) -> Ran {
        for _ in 0..10 {
            let found = self
                .workers
                .iter()
                .position(|(_, w)| matches!(w, Worker::Executor(r, _, Some(_)) if *r == removal));
            let Some(at) = found else { return Ok(()) };
            let manner = match draw.below(16) {
                11 => Manner::FailingAfter(Reason::Io),
                12 => Manner::Lazy,
                13 => Manner::Failing(Reason::Io),
                14 => Manner::Failing(Reason::Permission),
                15 => Manner::Dying,
                _ => Manner::Honest,
            };
            self.step(draw, at, manner)?;
            if draw.once_in(12) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// One step of a removal: spends the warrant, does what it says, records it.
    fn step(&mut self, draw: &mut Draw, at: usize, manner: Manner) -> Ran {
        let (instance, worker) = &mut self.workers[at];
        let instance = *instance;
        let Worker::Executor(id, token, warrant) = worker else { return Ok(()) };
        let (id, token) = (*id, *token);
        let Some(warrant) = warrant.take() else { return Ok(()) };
        let Some(row) = self.world.removals.id(id.0).copied() else { return Ok(()) };
        if let Manner::Failing(reason) = manner {
            return self.failed(draw, id, token, reason);
        }
        let (found_something, salvage) = match warrant.step() {
            RemovalStep::Salvaged => match self.salvage(&row, manner == Manner::Lazy) {
                Ok(done) => done,
                Err(reason) => return self.failed(draw, id, token, reason),
            },
            RemovalStep::Renamed => (self.move_to_trash(&row), None),
            RemovalStep::Compared => match self.compare(&row) {
                Ok(salvage) => (false, salvage),
                Err(reason) => return self.failed(draw, id, token, reason),
            },
            RemovalStep::Returned => (self.back_home(&row), None),
            RemovalStep::Purged => (self.unlink(&row), None),
            RemovalStep::Permitted | RemovalStep::Unregistered | RemovalStep::BranchSettled => {
                (false, None)
            }
        };
        self.log.push(format!("disk: {:?} of {id:?}", warrant.step()));
        self.check()?;
        if let Manner::FailingAfter(reason) = manner {
            return self.failed(draw, id, token, reason);
        }
        if manner == Manner::Dying {
            // It lives on without its warrant, or its reply was lost.
            self.disk.let_go(token);
            return Ok(());
        }
        let record = CleanupCommand::RecordStep {
            removal: id,
            token: if draw.once_in(32) { Token(self.fresh()) } else { token },
            step: warrant.step(),
            found_something,
            salvage,
        };
        let answer = self.ask(draw, Command::Cleanup(record))?;
        if answer.warrant.is_some() {
            self.keep(instance, answer);
        } else {
            self.disk.let_go(token);
        }
        Ok(())
    }

    fn failed(&mut self, draw: &mut Draw, removal: RemovalId, token: Token, why: Reason) -> Ran {
        // W-37: whether it is seen whole in its place.
        let in_place =
            self.world.removals.id(removal.0).is_some_and(|r| {
                self.look(r.path, r.identity).found == freehold_kernel::Found::Here
            });
        let failure = CleanupCommand::RecordFailure { removal, token, reason: why, in_place };
        self.ask(draw, Command::Cleanup(failure))?;
        self.disk.let_go(token);
        Ok(())
    }

    /// What a removal may lose by a person's word.
    fn consent(&self, removal: &Removal) -> Option<Unsaved> {
        let Authority::Job(id) = removal.authority() else { return None };
        let job = self.world.jobs.id(id.0)?;
        (job.policy == UnsavedPolicy::Discard).then_some(job.consent)
    }

    /// W-34: keeps what is unsaved, unless it may go. Where less is there than at the look, the
    /// step is transient: the next look says what there is.
    fn salvage(
        &mut self,
        removal: &Removal,
        lazy: bool,
    ) -> Result<(bool, Option<SalvageFacts>), Reason> {
        let consent = self.consent(removal);
        let id = SalvageId(self.fresh());
        let worktree = removal.identity.and_then(|i| self.disk.find_mut(i));
        let now = worktree.as_ref().map_or(Unsaved::NONE, |w| w.unsaved);
        if lazy || consent.is_some_and(|c| c.covers(now)) {
            return Ok((false, None));
        }
        if !now.covers(removal.unsaved) {
            return Err(Reason::Changing);
        }
        let Some(worktree) = worktree.filter(|_| !now.is_none()) else {
            return Ok((false, None));
        };
        worktree.salvaged = worktree.salvaged.with(now);
        Ok((true, Some(SalvageFacts { id, contents: now, size: 1 })))
    }

    /// W-35: compares what was renamed with what was there at the look.
    fn compare(&mut self, removal: &Removal) -> Result<Option<SalvageFacts>, Reason> {
        let consent = self.consent(removal).unwrap_or(Unsaved::NONE);
        let id = SalvageId(self.fresh());
        let own = self.world.salvage.iter().filter(|s| s.removal_id == removal.id);
        let kept = own.fold(Unsaved::NONE, |all, s| all.with(s.contents));
        let Some(worktree) = removal.identity.and_then(|i| self.disk.find_mut(i)) else {
            return Ok(None);
        };
        // An executor trusts its own look and its own salvage; what came after is a difference.
        let known = removal.unsaved.with(kept).with(consent);
        if known.covers(worktree.unsaved) {
            return Ok(None);
        }
        let difference = Unsaved(worktree.unsaved.0 & !known.0);
        worktree.salvaged = worktree.salvaged.with(difference);
        Ok(Some(SalvageFacts { id, contents: difference, size: 1 }))
    }

    /// Goes on with a removal: one's own, by takeover, a purge.
    pub(super) fn remove(&mut self, mut draw: Draw) -> Ran {
        let held =
            self.workers.iter().rposition(|(_, w)| matches!(w, Worker::Executor(_, _, Some(_))));
        if let Some(at) = held
            && !draw.once_in(3)
        {
            let Worker::Executor(id, ..) = self.workers[at].1 else { return Ok(()) };
            return self.go_through(&mut draw, id);
        }
        let unsettled: Vec<Removal> =
            self.world.removals.iter().filter(|r| r.outcome.is_none()).copied().collect();
        match draw.one(&unsettled) {
            Some(removal) if !draw.once_in(5) => self.take_over(&mut draw, &removal),
            _ => self.purge(&mut draw),
        }
    }

    /// C-18: after the path lock was taken.
    pub(super) fn take_over(&mut self, draw: &mut Draw, removal: &Removal) -> Ran {
        let own = self.instances.iter().any(|(i, _)| *i == removal.instance_id);
        let instance = if own && draw.below(3) == 0 {
            removal.instance_id
        } else {
            self.serving(draw, Some(removal.root_id))
        };
        let mine = (instance == removal.instance_id).then_some(removal.token);
        if !self.lock_is_free(removal.path, mine) {
            return Ok(());
        }
        let token = Token(self.fresh());
        let old_token = if draw.once_in(16) { token } else { removal.token };
        let take =
            CleanupCommand::TakeOverRemoval { removal: removal.id, old_token, token, instance };
        let answer = self.ask(draw, Command::Cleanup(take))?;
        if answer.warrant.is_some() {
            // Its own process forgot the first warrant; another one is dead, or its lock were held.
            self.disk.let_go(removal.token);
            let old = removal.token;
            self.workers.retain(|(_, w)| !matches!(w, Worker::Executor(_, t, _) if *t == old));
            self.keep(instance, answer);
            return self.go_through(draw, removal.id);
        }
        Ok(())
    }

    fn purge(&mut self, draw: &mut Draw) -> Ran {
        let kept: Vec<Trash> =
            self.world.trash.iter().filter(|t| t.state != TrashState::Gone).copied().collect();
        let Some(trash) = draw.one(&kept) else { return Ok(()) };
        self.purge_one(draw, &trash)
    }

    /// Purges what lies in the trash.
    pub(super) fn purge_one(&mut self, draw: &mut Draw, trash: &Trash) -> Ran {
        let instance = self.serving(draw, Some(trash.root_id));
        let (removal, token) = (RemovalId(self.fresh()), Token(self.fresh()));
        let purge = CleanupCommand::Purge { trash: trash.id, removal, token, instance };
        let answer = self.ask(draw, Command::Cleanup(purge))?;
        self.keep(instance, answer);
        if draw.once_in(3) {
            return Ok(());
        }
        self.go_through(draw, removal)
    }

    /// Works one part of a job as a good worker does.
    pub(super) fn work_one(&mut self, part: &JobRoot) -> Ran {
        let draw = &mut Draw(0);
        let instance = self.serving(draw, part.root_id);
        let token = Token(self.fresh());
        let claim = CleanupCommand::Claim { job_root: part.id, token, instance };
        if self.send(Command::Cleanup(claim))?.verdict != Ok(Reply::Done) {
            return Ok(());
        }
        let mut resources: Vec<Resource> = self
            .world
            .resources
            .iter()
            .filter(|r| r.job_root_id == part.id && r.result == ResourceResult::Waiting)
            .copied()
            .collect();
        resources.sort_by_key(|r| (r.kind, r.id));
        for resource in resources {
            self.one_resource(draw, &resource, token)?;
        }
        let finish = CleanupCommand::Finish { job_root: part.id, token };
        self.send(Command::Cleanup(finish)).map(|_| ())
    }

    /// Ends of claims by others.
    pub(super) fn job(&mut self, mut draw: Draw) -> Ran {
        let running: Vec<JobRoot> =
            self.world.job_roots.iter().filter(|p| p.state == JobState::Running).copied().collect();
        let waiting: Vec<JobRoot> = self
            .world
            .job_roots
            .iter()
            .filter(|p| matches!(p.state, JobState::Pending | JobState::RetryWait))
            .copied()
            .collect();
        let claimers = self.claimers();
        let executors: Vec<(RemovalId, Token)> = self
            .workers
            .iter()
            .filter_map(|(_, w)| match w {
                Worker::Executor(removal, token, _) => Some((*removal, *token)),
                _ => None,
            })
            .collect();
        let command = match draw.below(5) {
            0 => draw.one(&running).map(|p| CleanupCommand::Rescue {
                job_root: p.id,
                token: p.token.unwrap_or(Token(0)),
            }),
            1 => draw
                .one(&claimers)
                .map(|(_, job_root, token)| CleanupCommand::Renew { job_root, token }),
            2 => draw.one(&waiting).map(|p| CleanupCommand::GiveUpRoot { job_root: p.id }),
            3 => draw
                .one(&executors)
                .map(|(removal, token)| CleanupCommand::RenewRemoval { removal, token }),
            _ => draw
                .one(&claimers)
                .map(|(_, job_root, token)| CleanupCommand::Finish { job_root, token }),
        };
        match command {
            Some(command) => self.ask(&mut draw, Command::Cleanup(command)).map(|_| ()),
            None => Ok(()),
        }
    }
}
