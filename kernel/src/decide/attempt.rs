//! Makings: attempt, persist, give up, recover, compensate (W-1..W-7).

use super::relations::*;
use super::removal::NewRemoval;
use super::restore::restoring;
use super::{Ctx, known};
use crate::command::AttemptCommand;
use crate::decision::*;
use crate::evidence::{Evidence, Found};
use crate::guard::{Guard, GuardSet};
use crate::id::*;
use crate::machine;
use crate::refusal::{InTheWay, Refusal};
use crate::rows::*;

impl<G: GuardSet> Ctx<'_, G> {
    pub(crate) fn attempt_command(
        &mut self,
        command: &AttemptCommand,
    ) -> Result<Decision, Refusal> {
        match *command {
            AttemptCommand::Begin { .. } => self.begin_attempt(command).map(Decision::from),
            AttemptCommand::BeginRestore { .. } => self.begin_restore(command).map(Decision::from),
            AttemptCommand::Materialised { attempt, token } => {
                let attempt = self.my_attempt(attempt, token)?;
                self.open_attempt(&attempt)?;
                if attempt.state == AttemptState::Materialised {
                    return Ok(Reply::Unchanged.into());
                }
                self.step_attempt(&attempt, machine::attempt::Input::Made)?;
                self.event(EventKind::AttemptMaterialised, attempt.row_key(), "");
                Ok(Reply::Done.into())
            }
            AttemptCommand::Persist { attempt, token } => self.persist(attempt, token),
            AttemptCommand::GiveUp { attempt, token } => {
                let attempt = self.my_attempt(attempt, token)?;
                self.open_attempt(&attempt)?;
                self.undo_attempt(&attempt, token)?;
                self.finish_environment(attempt.task_environment_id);
                Ok(Reply::Done.into())
            }
            AttemptCommand::Renew { attempt, token } => {
                let attempt = self.my_attempt(attempt, token)?;
                self.open_attempt(&attempt)?;
                let lease = self.now + self.settings().removal_lease;
                if let Some(row) = self.view.attempts.edit(attempt.id.0) {
                    row.lease_until = lease;
                }
                Ok(Reply::Done.into())
            }
            AttemptCommand::Recover { attempt, token, instance, evidence } => {
                self.recover_attempt(attempt, token, instance, evidence)
            }
            AttemptCommand::Compensate {
                attempt,
                token,
                removal,
                removal_token,
                instance,
                evidence,
            } => self.compensate(attempt, token, removal, removal_token, instance, evidence),
        }
    }

    /// W-1: a durable row, under the owner's lock and barrier check, before anything touches the
    /// disk.
    fn begin_attempt(&mut self, command: &AttemptCommand) -> Result<Reply, Refusal> {
        let AttemptCommand::Begin {
            attempt: id,
            token,
            environment,
            repo,
            repository,
            slug,
            root,
            path,
            branch,
            worktree,
            branch_existed,
            start_commit,
            instance,
        } = *command
        else {
            return Ok(Reply::Unchanged);
        };
        let environment = known!(self, environments, environment, EnvironmentKnown)?;
        let owner = self.task(environment.task_id)?;
        let root = known!(self, managed_roots, root, RootKnown)?;
        let instance = self.live_instance(instance)?;
        self.hold(Guard::RootServed, root.host == instance.host, || InTheWay::one(root.row_key()))?;
        let known = self.view.attempts.id(id.0).copied();
        self.hold(Guard::AttemptNew, known.is_none(), || {
            InTheWay::of(known.iter().map(Row::row_key))
        })?;
        let attempt = Attempt {
            id,
            token,
            task_id: owner.id,
            task_environment_id: environment.id,
            repo_id: repo,
            kind: AttemptKind::Create,
            repository_id: repository,
            branch_slug: slug,
            root_id: root.id,
            path,
            branch,
            worktree_id: worktree,
            branch_existed,
            start_commit,
            state: AttemptState::Intended,
            instance_id: instance.id,
            lease_until: self.now + self.settings().removal_lease,
            created_at: self.now,
            updated_at: self.now,
        };
        self.record_attempt(attempt, &environment, &owner, "")?;
        Ok(Reply::Done)
    }

    /// What every making has to pass, and its row (W-1). Its kind is found here.
    pub(crate) fn record_attempt(
        &mut self,
        attempt: Attempt,
        environment: &Environment,
        owner: &Task,
        says: &'static str,
    ) -> Result<(), Refusal> {
        let Attempt { repo_id: repo, repository_id: repository, branch_slug: slug, .. } = attempt;
        let Attempt { path, branch, .. } = attempt;
        self.open_task(owner)?;
        let slot = attempts_in(self.view, environment.id)
            .find(|a| a.repository_id == repository && a.branch_slug == slug)
            .map(Row::row_key);
        self.hold(Guard::SlotUnattempted, slot.is_none(), || InTheWay::of(slot.into_iter()))?;
        let kind = self.slot_for(environment, repo, repository, slug, branch)?;
        // C-18: what is being removed there may have no row any more. A purge is elsewhere.
        let removing = self
            .view
            .removals
            .iter()
            .find(|r| r.is_unsettled() && r.path == path && r.authority != AuthorityKind::Trash)
            .copied();
        self.hold(Guard::NoUnsettledRemoval, removing.is_none(), || {
            InTheWay::of(removing.iter().map(Row::row_key))
        })?;
        self.path_free(path, Some(repo))?;
        self.view.attempts.insert(Attempt { kind, ..attempt });
        self.event(EventKind::AttemptBegun, attempt.row_key(), says);
        self.view.tasks.touch(owner.id.0);
        let now = self.now;
        if let Some(row) = self.view.environments.edit(environment.id.0) {
            row.status = EnvironmentStatus::Creating;
            row.updated_at = now;
        }
        Ok(())
    }

    /// What the attempt is for: a new row, or one whose worktree is not on the disk (W-6, W-7).
    fn slot_for(
        &self,
        environment: &Environment,
        repo: RepoId,
        repository: RepositoryId,
        slug: Slug,
        branch: BranchId,
    ) -> Result<AttemptKind, Refusal> {
        let row = repos_of(self.view, environment.id)
            .find(|r| r.repository_id == repository && r.branch_slug == slug)
            .copied();
        let Some(row) = row else {
            let known = self.view.repos.id(repo.0).copied();
            self.hold(Guard::RepoNew, known.is_none(), || {
                InTheWay::of(known.iter().map(Row::row_key))
            })?;
            return Ok(AttemptKind::Create);
        };
        let at = || InTheWay::one(row.row_key());
        self.hold(Guard::NotInRemoval, row.materialised != Materialised::Removing, at)?;
        let free = row.worktree_id.is_none() || row.materialised == Materialised::No;
        self.hold(Guard::SlotFree, free, at)?;
        self.hold(Guard::RepoOfSlot, row.id == repo, at)?;
        let same_branch = row.worktree_id.is_none() || row.worktree_branch == Some(branch);
        self.hold(Guard::RecordedBranch, same_branch, at)?;
        Ok(AttemptKind::Recreate)
    }

    /// The attempt, if this token still proves its maker (W-5).
    fn my_attempt(&self, id: AttemptId, token: Token) -> Result<Attempt, Refusal> {
        let attempt = known!(self, attempts, id, AttemptKnown)?;
        self.hold(Guard::AttemptToken, attempt.token == token, || {
            InTheWay::one(attempt.row_key())
        })?;
        Ok(attempt)
    }

    fn open_attempt(&self, attempt: &Attempt) -> Result<(), Refusal> {
        self.hold(Guard::AttemptOpen, is_open(attempt), || InTheWay::one(attempt.row_key()))
    }

    fn step_attempt(
        &mut self,
        attempt: &Attempt,
        input: machine::attempt::Input,
    ) -> Result<(), Refusal> {
        let Some(state) = machine::attempt::step(attempt.state, input) else {
            return self.illegal(attempt.row_key());
        };
        let now = self.now;
        if let Some(row) = self.view.attempts.edit(attempt.id.0) {
            row.state = state;
            row.updated_at = now;
        }
        Ok(())
    }

    /// W-3, W-4: the canonical row, unless the barrier won.
    fn persist(&mut self, id: AttemptId, token: Token) -> Result<Decision, Refusal> {
        let attempt = self.my_attempt(id, token)?;
        self.open_attempt(&attempt)?;
        self.hold(Guard::AttemptVerified, attempt.state == AttemptState::Materialised, || {
            InTheWay::one(attempt.row_key())
        })?;
        match self.may_own(&attempt) {
            Ok(()) => {
                self.own(&attempt, machine::attempt::Input::Persist)?;
                Ok(Reply::Done.into())
            }
            Err(refusal) => {
                self.undo_attempt(&attempt, token)?;
                self.finish_environment(attempt.task_environment_id);
                Ok(Reply::Compensate { guard: refusal.guard }.into())
            }
        }
    }

    /// Whether what the attempt made may become owned: the environment's present owner is
    /// active and free of a barrier, and the slot is free (D-5, W-3).
    fn may_own(&self, attempt: &Attempt) -> Result<(), Refusal> {
        let environment =
            known!(self, environments, attempt.task_environment_id, EnvironmentKnown)?;
        let owner = self.task(environment.task_id)?;
        self.hold(Guard::PersistOwnerActive, owner.lifecycle == TaskLifecycle::Active, || {
            InTheWay::one(owner.row_key())
        })?;
        let held = barrier(self.view, owner.id);
        self.hold(Guard::PersistUnbarred, held.is_none(), || {
            InTheWay::of(held.iter().map(|j| j.row_key()))
        })?;
        let row = repos_of(self.view, environment.id)
            .find(|r| {
                r.repository_id == attempt.repository_id && r.branch_slug == attempt.branch_slug
            })
            .copied();
        let free = row.is_none_or(|r| {
            r.id == attempt.repo_id
                && (r.worktree_id.is_none() || r.materialised == Materialised::No)
        });
        // Another attempt may have made a row of that id, for another slot: it is not overwritten.
        let named = self.view.repos.id(attempt.repo_id.0).copied();
        let own = named.is_none_or(|n| row.is_some_and(|r| r.id == n.id));
        self.hold(Guard::PersistSlotFree, free && own, || {
            InTheWay::of(row.iter().chain(named.iter()).map(Row::row_key))
        })
    }

    /// Makes the canonical row, or makes it whole again.
    fn own(&mut self, attempt: &Attempt, input: machine::attempt::Input) -> Result<(), Refusal> {
        self.step_attempt(attempt, input)?;
        let now = self.now;
        let existing = self.view.repos.id(attempt.repo_id.0).copied();
        let fresh = Repo {
            id: attempt.repo_id,
            task_environment_id: attempt.task_environment_id,
            repository_id: attempt.repository_id,
            branch_slug: attempt.branch_slug,
            worktree_id: None,
            worktree_path: None,
            worktree_branch: None,
            status: RepoStatus::Active,
            materialised: Materialised::No,
            managed: true,
            root_id: None,
            branch_created: false,
            start_commit: None,
            position: 0,
            created_at: now,
            updated_at: now,
            merged_at: None,
            deleted_at: None,
        };
        let row = existing.unwrap_or(fresh);
        // A branch that a first attempt made stays one that Freehold made when its worktree is
        // recreated on it (W-39).
        let ours = row.branch_created || !attempt.branch_existed;
        self.view.repos.insert(Repo {
            worktree_id: Some(attempt.worktree_id),
            worktree_path: Some(attempt.path),
            worktree_branch: Some(attempt.branch),
            materialised: Materialised::Yes,
            managed: true,
            root_id: Some(attempt.root_id),
            branch_created: ours,
            start_commit: row.start_commit.or(Some(attempt.start_commit)),
            updated_at: now,
            ..row
        });
        self.end_restoring(attempt, machine::trash::Input::Restored)?;
        self.event(EventKind::AttemptOwned, attempt.row_key(), "");
        self.event(EventKind::WorktreeOwned, RowKey::repo(attempt.repo_id), "");
        let owner = self.view.environments.id(attempt.task_environment_id.0).map(|e| e.task_id);
        if let Some(owner) = owner {
            self.view.tasks.touch(owner.0);
        }
        self.finish_environment(attempt.task_environment_id);
        Ok(())
    }

    /// W-3: an environment is usable once none of its attempts is open.
    pub(crate) fn finish_environment(&mut self, id: EnvironmentId) {
        let open = self.view.attempts.iter().any(|a| a.task_environment_id == id && is_open(a));
        if open {
            return;
        }
        let now = self.now;
        if let Some(row) = self.view.environments.edit(id.0)
            && row.status == EnvironmentStatus::Creating
        {
            row.status = EnvironmentStatus::Ready;
            row.updated_at = now;
            self.event(EventKind::EnvironmentReady, RowKey::environment(id), "");
        }
    }

    /// W-5: decided before the disk is touched: adopt what is verified and may be owned, else
    /// compensate.
    fn recover_attempt(
        &mut self,
        id: AttemptId,
        token: Token,
        instance: InstanceId,
        evidence: Evidence,
    ) -> Result<Decision, Refusal> {
        let attempt = known!(self, attempts, id, AttemptKnown)?;
        let at = || InTheWay::one(attempt.row_key());
        self.hold(Guard::AttemptUnresolved, is_unresolved(&attempt), at)?;
        let instance = self.live_instance(instance)?;
        let served =
            self.view.managed_roots.id(attempt.root_id.0).is_some_and(|r| r.host == instance.host);
        self.hold(Guard::RootServed, served, at)?;
        self.hold(Guard::AttemptLapsed, attempt.lease_until <= self.now, at)?;
        let whole = attempt.state == AttemptState::Materialised && evidence.found == Found::Here;
        if whole && self.may_own(&attempt).is_ok() {
            self.own(&attempt, machine::attempt::Input::Adopt)?;
            return Ok(Reply::Adopted.into());
        }
        self.hold(Guard::TokenFresh, token != attempt.token, at)?;
        let lease = self.now + self.settings().removal_lease;
        if is_open(&attempt) {
            self.undo_attempt(&attempt, token)?;
            self.finish_environment(attempt.task_environment_id);
        } else {
            self.event(EventKind::AttemptTakenOver, attempt.row_key(), "");
        }
        let now = self.now;
        if let Some(row) = self.view.attempts.edit(id.0) {
            row.token = token;
            row.instance_id = instance.id;
            row.lease_until = lease;
            row.updated_at = now;
        }
        Ok(Reply::Compensate { guard: Guard::AttemptLapsed }.into())
    }

    /// W-4: the attempt's own right to remove what it made, and nothing else.
    fn compensate(
        &mut self,
        id: AttemptId,
        token: Token,
        removal: RemovalId,
        removal_token: Token,
        instance: InstanceId,
        evidence: Evidence,
    ) -> Result<Decision, Refusal> {
        let attempt = self.my_attempt(id, token)?;
        let at = || InTheWay::one(attempt.row_key());
        self.hold(Guard::AttemptCompensating, attempt.state == AttemptState::Compensating, at)?;
        let instance = self.live_instance(instance)?;
        // D-18: nobody else concludes anything about what is in the root.
        let served =
            self.view.managed_roots.id(attempt.root_id.0).is_some_and(|r| r.host == instance.host);
        self.hold(Guard::RootServed, served, at)?;
        let earlier = self
            .view
            .removals
            .iter()
            .find(|r| r.authority() == Authority::Attempt(id) && r.is_unsettled())
            .copied();
        self.hold(Guard::NoUnsettledRemoval, earlier.is_none(), || {
            InTheWay::of(earlier.iter().map(Row::row_key))
        })?;
        match evidence.found {
            Found::Unknown => {
                let reason = some_reason(evidence.obstacle, Reason::RootUnavailable);
                return Ok(Reply::NotNow { reason }.into());
            }
            Found::Mismatch if self.test(Guard::CompensateOnlyOwn, false) => {}
            Found::Mismatch => {
                // Somebody else's: left alone; this attempt has nothing there (W-5, P-9).
                self.end_restoring(&attempt, machine::trash::Input::GiveUp)?;
                self.undone(&attempt)?;
                return Ok(Reply::Compensated.into());
            }
            // A restore that moved nothing, or was put back: it is kept as before (W-4).
            Found::InTrash if restoring(self.view, &attempt).is_some() => {
                self.end_restoring(&attempt, machine::trash::Input::GiveUp)?;
                self.undone(&attempt)?;
                return Ok(Reply::Compensated.into());
            }
            Found::Here | Found::Missing | Found::InTrash => {}
        }
        if evidence.obstacle != Reason::None {
            return Ok(Reply::NotNow { reason: evidence.obstacle }.into());
        }
        // W-4: what a restore brought back goes into trash again, salvaged like any other, since
        // somebody may have worked in it meanwhile; the trash that it came from is empty.
        // An earlier removal of it, that came to nothing, has ended that trash already.
        let restored_before = |r: &Removal| r.authority() == Authority::Attempt(id) && r.keep_trash;
        let keep_trash = restoring(self.view, &attempt).is_some()
            || self.view.removals.iter().any(restored_before);
        self.end_restoring(&attempt, machine::trash::Input::Restored)?;
        self.permit_removal(
            NewRemoval {
                id: removal,
                token: removal_token,
                authority: Authority::Attempt(id),
                resource: None,
                repo: None,
                root: attempt.root_id,
                path: attempt.path,
                identity: Some(attempt.worktree_id),
                instance: instance.id,
                delete_branch: !attempt.branch_existed,
                // What an attempt made was never used: nothing to keep for a restore.
                keep_trash,
            },
            evidence,
        )
    }

    /// The attempt is undone.
    pub(crate) fn undone(&mut self, attempt: &Attempt) -> Result<(), Refusal> {
        self.step_attempt(attempt, machine::attempt::Input::Undone)?;
        self.event(EventKind::AttemptCompensated, attempt.row_key(), "");
        Ok(())
    }
}

pub(crate) fn some_reason(reason: Reason, otherwise: Reason) -> Reason {
    if reason == Reason::None { otherwise } else { reason }
}
