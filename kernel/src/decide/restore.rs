//! Restores out of trash, in place (W-35, W-4), and the end of a salvage by consent (W-34).

use super::{Ctx, known};
use crate::command::AttemptCommand;
use crate::decision::*;
use crate::guard::{Guard, GuardSet};
use crate::id::*;
use crate::machine;
use crate::refusal::{InTheWay, Refusal};
use crate::rows::*;

/// The trash that an attempt restores: one and the same identity, and only an attempt of a
/// restore is begun while its trash is `restoring` (D-20).
pub(crate) fn restoring<'v>(view: &'v View, attempt: &Attempt) -> Option<&'v Trash> {
    view.trash.iter().find(|t| {
        t.state == TrashState::Restoring
            && t.worktree_id == Some(attempt.worktree_id)
            && t.path == attempt.path
    })
}

impl<G: GuardSet> Ctx<'_, G> {
    /// W-35: an attempt that moves directory and registration back, under the same look at owner,
    /// barrier, slot and path as any other making (W-1), and only onto the row that they are of.
    pub(crate) fn begin_restore(&mut self, command: &AttemptCommand) -> Result<Reply, Refusal> {
        let AttemptCommand::BeginRestore {
            attempt: id,
            token,
            trash,
            environment,
            repo,
            path,
            instance,
        } = *command
        else {
            return Ok(Reply::Unchanged);
        };
        let environment = known!(self, environments, environment, EnvironmentKnown)?;
        let row = known!(self, repos, repo, RepoKnown)?;
        let owner = self.task(environment.task_id)?;
        let trash = known!(self, trash, trash, TrashKnown)?;
        let instance = self.live_instance(instance)?;
        let at = || InTheWay::one(trash.row_key());
        let served =
            self.view.managed_roots.id(trash.root_id.0).is_some_and(|r| r.host == instance.host);
        self.hold(Guard::RootServed, served, at)?;
        let known = self.view.attempts.id(id.0).copied();
        self.hold(Guard::AttemptNew, known.is_none(), || {
            InTheWay::of(known.iter().map(Row::row_key))
        })?;
        self.hold(Guard::TrashKept, trash.state == TrashState::Kept, at)?;
        let of_row = trash.repo_id == Some(row.id)
            && trash.path == path
            && row.task_environment_id == environment.id
            && row.status != RepoStatus::Deleted;
        let (Some(worktree), Some(branch), Some(start_commit), true) =
            (trash.worktree_id, row.worktree_branch, row.start_commit, of_row)
        else {
            self.hold(Guard::RestoreFits, false, || {
                InTheWay::of([trash.row_key(), row.row_key()].into_iter())
            })?;
            return self.illegal(trash.row_key());
        };
        let attempt = Attempt {
            id,
            token,
            task_id: owner.id,
            task_environment_id: environment.id,
            repo_id: row.id,
            kind: AttemptKind::Recreate,
            repository_id: row.repository_id,
            branch_slug: row.branch_slug,
            root_id: trash.root_id,
            path,
            branch,
            worktree_id: worktree,
            // It makes no branch, so its undoing takes none away (W-39).
            branch_existed: true,
            start_commit,
            state: AttemptState::Intended,
            instance_id: instance.id,
            lease_until: self.now + self.settings().removal_lease,
            created_at: self.now,
            updated_at: self.now,
        };
        self.record_attempt(attempt, &environment, &owner, "restore")?;
        self.move_trash(&trash, machine::trash::Input::Restore, EventKind::TrashRestoring)?;
        Ok(Reply::Done)
    }

    /// Ends what an attempt's restore began with its trash; nothing for any other attempt.
    pub(crate) fn end_restoring(
        &mut self,
        attempt: &Attempt,
        input: machine::trash::Input,
    ) -> Result<(), Refusal> {
        let Some(trash) = restoring(self.view, attempt).copied() else { return Ok(()) };
        let event = if input == machine::trash::Input::GiveUp {
            EventKind::TrashKept
        } else {
            EventKind::TrashGone
        };
        self.move_trash(&trash, input, event)
    }

    fn move_trash(
        &mut self,
        trash: &Trash,
        input: machine::trash::Input,
        event: EventKind,
    ) -> Result<(), Refusal> {
        let Some(state) = machine::trash::step(trash.state, input) else {
            return self.illegal(trash.row_key());
        };
        let now = self.now;
        if let Some(row) = self.view.trash.edit(trash.id.0) {
            row.state = state;
            row.updated_at = now;
        }
        self.event(event, trash.row_key(), "");
        Ok(())
    }

    /// W-34: a salvage expires only by a retention that a person consented to, and not while
    /// the trash that it keeps whole is offered (W-35) or its removal goes on.
    pub(crate) fn expire_salvage(&mut self, id: SalvageId) -> Result<Reply, Refusal> {
        let salvage = known!(self, salvage, id, SalvageKnown)?;
        if salvage.state == SalvageState::Expired {
            return Ok(Reply::Unchanged);
        }
        let until = self.settings().salvage_expires(salvage.made_at);
        let lapsed = until.is_some_and(|until| until <= self.now);
        self.hold(Guard::SalvageLapsed, lapsed, || InTheWay::one(salvage.row_key()))?;
        let removal =
            self.view.removals.id(salvage.removal_id.0).filter(|r| r.is_unsettled()).copied();
        self.hold(Guard::NoUnsettledRemoval, removal.is_none(), || {
            InTheWay::of(removal.iter().map(Row::row_key))
        })?;
        let trash = self
            .view
            .trash
            .iter()
            .find(|t| t.removal_id == salvage.removal_id && t.state != TrashState::Gone)
            .copied();
        self.hold(Guard::TrashLapsed, trash.is_none(), || {
            InTheWay::of(trash.iter().map(Row::row_key))
        })?;
        if let Some(row) = self.view.salvage.edit(id.0) {
            row.state = SalvageState::Expired;
        }
        self.event(EventKind::SalvageExpired, salvage.row_key(), "");
        Ok(Reply::Done)
    }
}
