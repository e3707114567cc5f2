//! Makers: attempts from their row to an owned worktree, or back.

use freehold_kernel::*;

use super::backend::Backend;
use super::op::Draw;
use super::{Driver, ROOTS, Ran, Worker};

impl<B: Backend> Driver<B> {
    pub(super) fn begin_attempt(&mut self, mut draw: Draw) -> Ran<Option<AttemptId>> {
        let environment = self.any_environment(&mut draw);
        let slugs = [Slug(0x91), Slug(0x92)];
        let slug = draw.one(&slugs).unwrap_or(slugs[0]);
        let repository = RepositoryId(0x81 + draw.below(2) as u128);
        let row = self
            .world
            .repos
            .iter()
            .find(|r| {
                r.task_environment_id == environment
                    && r.repository_id == repository
                    && r.branch_slug == slug
                    && r.status != RepoStatus::Deleted
            })
            .copied();
        let root = row.and_then(|r| r.root_id).or(draw.one(&ROOTS)).unwrap_or(ROOTS[0]);
        let paths: Vec<PathId> = self
            .world
            .repos
            .iter()
            .filter_map(|r| r.worktree_path)
            .chain(self.world.attempts.iter().map(|a| a.path))
            .collect();
        let path = match (row.and_then(|r| r.worktree_path), draw.below(8)) {
            // A recreation at its old place.
            (Some(path), 0..=3) => path,
            (_, 7) => draw.one(&paths).unwrap_or(PathId(self.fresh())),
            _ => PathId(self.fresh()),
        };
        let recorded = row.and_then(|r| r.worktree_branch);
        let instance = self.serving(&mut draw, Some(root));
        let (attempt, token) = (AttemptId(self.fresh()), Token(self.fresh()));
        let begin = AttemptCommand::Begin {
            attempt,
            token,
            environment,
            repo: match row {
                Some(row) if !draw.once_in(12) => row.id,
                _ => RepoId(self.fresh()),
            },
            repository,
            slug,
            root,
            path,
            branch: recorded.unwrap_or(BranchId(0xb0 + draw.below(3) as u128)),
            worktree: WorktreeId(self.fresh()),
            branch_existed: draw.once_in(2),
            start_commit: CommitId(0xc0),
            instance,
        };
        let answer = self.ask(&mut draw, Command::Attempt(begin))?;
        if answer.verdict == Ok(Reply::Done) && !answer.replayed {
            self.workers.push((instance, Worker::Maker(attempt, token)));
            return Ok(Some(attempt));
        }
        Ok(None)
    }

    fn makers(&self) -> Vec<(InstanceId, AttemptId, Token)> {
        let mut all: Vec<(InstanceId, AttemptId, Token)> = self
            .workers
            .iter()
            .filter_map(|(i, w)| match w {
                Worker::Maker(attempt, token) => Some((*i, *attempt, *token)),
                _ => None,
            })
            .collect();
        all.reverse();
        all
    }

    /// A maker goes on: makes, says so, persists.
    pub(super) fn make(&mut self, mut draw: Draw) -> Ran {
        let Some((_, id, token)) = draw.one(&self.makers()) else { return Ok(()) };
        let Some(attempt) = self.world.attempts.id(id.0).copied() else { return Ok(()) };
        // W-5: it checks its token before it creates, under the path lock.
        let mine = attempt.token == token && attempt.state == AttemptState::Intended;
        if mine && self.lock_is_free(attempt.path, None) {
            if draw.once_in(10) {
                let give_up = AttemptCommand::GiveUp { attempt: id, token };
                return self.ask(&mut draw, Command::Attempt(give_up)).map(|_| ());
            }
            let made = self.make_on_disk(&attempt);
            self.check()?;
            if !made || draw.once_in(8) {
                return Ok(());
            }
            let materialised = AttemptCommand::Materialised { attempt: id, token };
            self.ask(&mut draw, Command::Attempt(materialised))?;
            if draw.once_in(4) {
                return Ok(());
            }
        }
        let token = if draw.once_in(16) { Token(self.fresh()) } else { token };
        let persist = AttemptCommand::Persist { attempt: id, token };
        self.ask(&mut draw, Command::Attempt(persist)).map(|_| ())
    }

    /// A worktree from nothing to owned.
    pub(super) fn whole_worktree(&mut self, mut draw: Draw) -> Ran {
        let own = Draw(draw.below(1 << 16) as u64);
        let Some(id) = self.begin_attempt(own)? else { return Ok(()) };
        let Some(attempt) = self.world.attempts.id(id.0).copied() else { return Ok(()) };
        if !self.make_on_disk(&attempt) {
            return Ok(());
        }
        self.check()?;
        let token = attempt.token;
        self.send(Command::Attempt(AttemptCommand::Materialised { attempt: id, token }))?;
        self.send(Command::Attempt(AttemptCommand::Persist { attempt: id, token }))?;
        if let Some(worktree) = self.disk.find_mut(attempt.worktree_id)
            && draw.once_in(2)
        {
            worktree.unsaved = Unsaved::TRACKED;
        }
        Ok(())
    }

    /// What else can happen to an attempt: renewed, given up, recovered, compensated.
    pub(super) fn attempt(&mut self, mut draw: Draw) -> Ran {
        let all: Vec<Attempt> = self
            .world
            .attempts
            .iter()
            .filter(|a| !matches!(a.state, AttemptState::Owned | AttemptState::Compensated))
            .copied()
            .collect();
        let Some(attempt) = draw.one(&all) else { return Ok(()) };
        let instance = self.serving(&mut draw, Some(attempt.root_id));
        match draw.below(4) {
            0 | 1 => self.resolve(&mut draw, &attempt, instance),
            2 => {
                let renew = AttemptCommand::Renew { attempt: attempt.id, token: attempt.token };
                self.ask(&mut draw, Command::Attempt(renew)).map(|_| ())
            }
            _ => {
                let token = attempt.token;
                let give_up = AttemptCommand::GiveUp { attempt: attempt.id, token };
                self.ask(&mut draw, Command::Attempt(give_up)).map(|_| ())
            }
        }
    }

    /// Recovers or compensates an attempt.
    pub(super) fn resolve(
        &mut self,
        draw: &mut Draw,
        attempt: &Attempt,
        instance: InstanceId,
    ) -> Ran {
        if !self.lock_is_free(attempt.path, None) {
            return Ok(());
        }
        let mut evidence = self.look_badly(draw, attempt.path, Some(attempt.worktree_id));
        let mut token = attempt.token;
        let own = attempt.instance_id == instance;
        if attempt.state != AttemptState::Compensating || !own {
            token = Token(self.fresh());
            let recover =
                AttemptCommand::Recover { attempt: attempt.id, token, instance, evidence };
            let answer = self.ask(draw, Command::Attempt(recover))?;
            if !matches!(answer.verdict, Ok(Reply::Compensate { .. })) {
                return Ok(());
            }
        }
        if draw.once_in(4) {
            return Ok(());
        }
        evidence.obstacle = Reason::None;
        let removal = RemovalId(self.fresh());
        let removal_token = Token(self.fresh());
        let compensate = AttemptCommand::Compensate {
            attempt: attempt.id,
            token,
            removal,
            removal_token,
            instance,
            evidence,
        };
        let answer = self.ask(draw, Command::Attempt(compensate))?;
        self.keep(instance, answer);
        if draw.once_in(3) {
            return Ok(());
        }
        self.go_through(draw, removal)
    }
}
