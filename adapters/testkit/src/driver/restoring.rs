//! What is kept and comes back, and what is kept and expires (W-34, W-35).

use freehold_kernel::*;

use super::backend::Backend;
use super::op::Draw;
use super::{Driver, Ran, Worker};

impl<B: Backend> Driver<B> {
    /// Trash is restored, by a making that may stop anywhere; or salvage expires.
    pub(super) fn restore(&mut self, mut draw: Draw) -> Ran {
        if draw.once_in(4) {
            return self.expire(draw);
        }
        let mut offered = self.offered();
        if offered.is_empty() && !draw.once_in(4) {
            self.fill_trash(&mut draw)?;
            offered = self.offered();
        }
        let all: Vec<Trash> = self.world.trash.iter().copied().collect();
        let from = if offered.is_empty() || draw.once_in(8) { &all } else { &offered };
        let Some(trash) = draw.one(from) else { return Ok(()) };
        let rows: Vec<Repo> = self.world.repos.iter().copied().collect();
        let own = trash.repo_id.and_then(|r| self.world.repos.id(r.0)).copied();
        let row = if draw.once_in(12) { draw.one(&rows) } else { own };
        let Some(row) = row else { return Ok(()) };
        if !draw.once_in(4) {
            self.take_out_of_the_archive(row.task_environment_id)?;
        }
        // W-13: whoever restores holds the path.
        if !self.lock_is_free(trash.path, None) {
            return Ok(());
        }
        let instance = self.serving(&mut draw, Some(trash.root_id));
        let (id, token) = (AttemptId(self.fresh()), Token(self.fresh()));
        let begin = AttemptCommand::BeginRestore {
            attempt: id,
            token,
            trash: trash.id,
            environment: row.task_environment_id,
            repo: row.id,
            path: if draw.once_in(16) { PathId(self.fresh()) } else { trash.path },
            instance,
        };
        let answer = self.ask(&mut draw, Command::Attempt(begin))?;
        if answer.verdict != Ok(Reply::Done) || answer.replayed {
            return Ok(());
        }
        self.workers.push((instance, Worker::Maker(id, token)));
        let Some(attempt) = self.world.attempts.id(id.0).copied() else { return Ok(()) };
        if draw.once_in(4) || !self.make_on_disk(&attempt) {
            return Ok(());
        }
        self.check()?;
        if draw.once_in(4) {
            return Ok(());
        }
        let materialised = AttemptCommand::Materialised { attempt: id, token };
        self.ask(&mut draw, Command::Attempt(materialised))?;
        if draw.once_in(4) {
            return Ok(());
        }
        let persist = AttemptCommand::Persist { attempt: id, token };
        self.ask(&mut draw, Command::Attempt(persist)).map(|_| ())
    }

    fn offered(&self) -> Vec<Trash> {
        let offered = |t: &&Trash| t.state == TrashState::Kept && t.restorable_until.is_some();
        self.world.trash.iter().filter(offered).copied().collect()
    }

    /// A task is archived and cleaned up, with trash kept.
    fn fill_trash(&mut self, draw: &mut Draw) -> Ran {
        self.keep_trash()?;
        let mut owners: Vec<TaskId> = Vec::new();
        for row in self.world.repos.iter().filter(|r| r.materialised == Materialised::Yes) {
            let owner = self.world.environments.id(row.task_environment_id.0).map(|e| e.task_id);
            owners.extend(owner);
        }
        let Some(task) = draw.one(&owners) else { return Ok(()) };
        self.archive_whole(draw, task)?;
        let waits = |p: &&JobRoot| matches!(p.state, JobState::Pending | JobState::RetryWait);
        let parts: Vec<JobRoot> = self.world.job_roots.iter().filter(waits).copied().collect();
        for part in parts {
            self.work_one(&part)?;
        }
        Ok(())
    }

    /// From now on what is removed is kept for a while, and what is salvaged not for ever.
    fn keep_trash(&mut self) -> Ran {
        let settings = Settings {
            trash_retention: Span::hours(30),
            salvage_retention: Span::hours(40),
            salvage_consent: Some(ContentHash(0x5a)),
            ..self.world.settings.id(1).copied().unwrap_or(Settings::DEFAULT)
        };
        self.send(Command::Operator(OperatorCommand::ChangeSettings { settings })).map(|_| ())
    }

    /// A restore is for an active task (W-1): whoever wants it back has that back first.
    fn take_out_of_the_archive(&mut self, environment: EnvironmentId) -> Ran {
        let owner = self.world.environments.id(environment.0).map(|e| e.task_id);
        let Some(task) = owner.and_then(|t| self.world.tasks.id(t.0)) else { return Ok(()) };
        if task.lifecycle != TaskLifecycle::Archived {
            return Ok(());
        }
        let unarchive = OperationCommand::Unarchive { task: task.id, cascade: false };
        self.send(Command::Operation(unarchive)).map(|_| ())
    }

    /// W-34: mostly of what nothing needs any more.
    fn expire(&mut self, mut draw: Draw) -> Ran {
        let all: Vec<SalvageId> = self.world.salvage.iter().map(|s| s.id).collect();
        let Some(salvage) = draw.one(&all) else { return Ok(()) };
        let expire = CleanupCommand::ExpireSalvage { salvage };
        self.ask(&mut draw, Command::Cleanup(expire)).map(|_| ())
    }
}
