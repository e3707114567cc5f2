//! The one machine of every physical removal (D-22, W-35, C-18). Warrants come from here and
//! from nowhere else.

use super::relations::*;
use super::{Ctx, known};
use crate::command::SalvageFacts;
use crate::decision::*;
use crate::evidence::Evidence;
use crate::guard::{Guard, GuardSet};
use crate::id::*;
use crate::machine;
use crate::refusal::{InTheWay, Refusal};
use crate::rows::*;
use crate::warrant::Warrant;

/// A removal to be permitted.
pub(crate) struct NewRemoval {
    pub(crate) id: RemovalId,
    pub(crate) token: Token,
    pub(crate) authority: Authority,
    pub(crate) resource: Option<ResourceId>,
    pub(crate) repo: Option<RepoId>,
    pub(crate) root: RootId,
    pub(crate) path: PathId,
    pub(crate) identity: Option<WorktreeId>,
    pub(crate) instance: InstanceId,
    pub(crate) delete_branch: bool,
    pub(crate) keep_trash: bool,
}

impl<G: GuardSet> Ctx<'_, G> {
    /// Writes the removal row and its audit line (C-16), and permits the first step.
    pub(crate) fn permit_removal(
        &mut self,
        new: NewRemoval,
        evidence: Evidence,
    ) -> Result<Decision, Refusal> {
        // A removal row outlives its outcome (D-22): its id is never used twice.
        let known = self.view.removals.id(new.id.0).copied();
        self.hold(Guard::RemovalNew, known.is_none(), || {
            InTheWay::of(known.iter().map(Row::row_key))
        })?;
        let (kind, authority_id) = match new.authority {
            Authority::Job(id) => (AuthorityKind::Job, AnyId(id.0)),
            Authority::Attempt(id) => (AuthorityKind::Attempt, AnyId(id.0)),
            Authority::Trash(id) => (AuthorityKind::Trash, AnyId(id.0)),
        };
        // A purge begins at its end: everything but the unlinking was done when the trash was
        // filled.
        let last_step = match kind {
            AuthorityKind::Job | AuthorityKind::Attempt => RemovalStep::Permitted,
            AuthorityKind::Trash => RemovalStep::BranchSettled,
        };
        let row = Removal {
            id: new.id,
            authority: kind,
            authority_id,
            resource: new.resource,
            repo_id: new.repo,
            root_id: new.root,
            path: new.path,
            identity: new.identity,
            token: new.token,
            instance_id: new.instance,
            lease_until: self.now + self.settings().removal_lease,
            last_step,
            unsaved: evidence.unsaved,
            head: evidence.head,
            found_something: false,
            delete_branch: new.delete_branch,
            keep_trash: new.keep_trash,
            last_reason: Reason::None,
            outcome: None,
            created_at: self.now,
            updated_at: self.now,
        };
        self.view.removals.insert(row);
        self.event(EventKind::RemovalPermitted, row.row_key(), kind.code());
        self.warrant_next(&row)
    }

    /// The warrant for the next step of an unsettled removal, or its outcome.
    fn warrant_next(&mut self, removal: &Removal) -> Result<Decision, Refusal> {
        let Some(step) = self.next_step(removal) else {
            let outcome = self.settle_removal(removal, None)?;
            return Ok(Reply::RemovalSettled { outcome }.into());
        };
        if step == RemovalStep::Purged {
            self.begin_purge(removal)?;
        }
        Ok(Decision {
            reply: Reply::Permitted { removal: removal.id },
            warrant: Some(Warrant::issue(
                removal.id,
                removal.token,
                removal.authority(),
                removal.root_id,
                removal.path,
                removal.identity,
                step,
                removal.delete_branch,
                self.may_discard(removal),
                removal.keep_trash,
            )),
        })
    }

    /// Forward while the authority stands, else back as long as the trash is whole (C-18).
    fn next_step(&self, removal: &Removal) -> Option<RemovalStep> {
        let stands = self.removal_stands(removal);
        if machine::removal::can_return(removal.last_step)
            && !self.test(Guard::RemovalStands, stands)
        {
            return Some(RemovalStep::Returned);
        }
        let next = machine::removal::forward(removal.last_step)?;
        (!(next == RemovalStep::Purged && removal.keep_trash)).then_some(next)
    }

    fn removal_stands(&self, removal: &Removal) -> bool {
        match removal.authority() {
            Authority::Trash(_) => true,
            Authority::Attempt(id) => {
                self.view.attempts.id(id.0).is_some_and(|a| a.state == AttemptState::Compensating)
            }
            Authority::Job(id) => {
                let still =
                    |j: &Job| j.state != JobState::Cancelled && authority_stands(self.view, j);
                let own = self.view.jobs.id(id.0).is_some_and(still);
                // T-12: a delete that took the task over wants the same thing gone.
                let heir = self.view.resources.iter().any(|r| {
                    r.path == Some(removal.path)
                        && is_left(r.result)
                        && r.job_id != id
                        && self.view.jobs.id(r.job_id.0).is_some_and(|j| {
                            is_unfinished(j.state) && deletes(j.trigger) && still(j)
                        })
                });
                own || heir
            }
        }
    }

    pub(crate) fn record_step(
        &mut self,
        id: RemovalId,
        token: Token,
        step: RemovalStep,
        found_something: bool,
        salvage: Option<SalvageFacts>,
    ) -> Result<Decision, Refusal> {
        let removal = self.my_removal(id, token)?;
        let next = machine::removal::input_for(step)
            .and_then(|input| machine::removal::step(removal.last_step, input));
        // W-35: the comparison may salvage a difference; no other step keeps anything. Whatever
        // was kept has a row (P-29).
        let keeps = step == RemovalStep::Salvaged || step == RemovalStep::Compared;
        let fits = next == Some(step) && (salvage.is_none() || keeps);
        self.hold(Guard::StepInOrder, fits, || InTheWay::one(removal.row_key()))?;
        if step == RemovalStep::Salvaged {
            self.salvaged_first(&removal, salvage)?;
            self.keep_salvage(&removal, salvage);
            self.fill_trash(&removal);
        }
        if step == RemovalStep::Compared {
            self.keep_salvage(&removal, salvage);
        }
        if step == RemovalStep::Returned {
            self.empty_trash(&removal)?;
        }
        let (now, lease) = (self.now, self.now + self.settings().removal_lease);
        // W-36: what was looked at and kept (the branch) or only copied is not what was removed.
        let counts = found_something
            && match step {
                RemovalStep::Renamed
                | RemovalStep::Unregistered
                | RemovalStep::Purged
                | RemovalStep::Returned => true,
                RemovalStep::Permitted
                | RemovalStep::Salvaged
                | RemovalStep::Compared
                | RemovalStep::BranchSettled => false,
            };
        let row = Removal {
            last_step: step,
            found_something: removal.found_something || counts,
            last_reason: Reason::None,
            lease_until: lease,
            updated_at: now,
            ..removal
        };
        self.view.removals.insert(row);
        self.event(EventKind::RemovalStepDone, row.row_key(), step.code());
        self.warrant_next(&row)
    }

    /// An unsettled removal that this token may go on with (D-22).
    fn my_removal(&self, id: RemovalId, token: Token) -> Result<Removal, Refusal> {
        let removal = known!(self, removals, id, RemovalKnown)?;
        let at = || InTheWay::one(removal.row_key());
        self.hold(Guard::RemovalUnsettled, removal.is_unsettled(), at)?;
        self.hold(Guard::RemovalToken, removal.token == token, at)?;
        Ok(removal)
    }

    /// W-34, P-29: without verified salvage the removal does not go on, unless a person
    /// consented.
    fn salvaged_first(
        &self,
        removal: &Removal,
        salvage: Option<SalvageFacts>,
    ) -> Result<(), Refusal> {
        let discards = self.discards(removal);
        let kept = salvage.map_or(Unsaved::NONE, |s| s.contents);
        let safe = removal.unsaved.is_none() || discards || kept.covers(removal.unsaved);
        self.hold(Guard::SalvagedFirst, safe, || InTheWay::one(removal.row_key()))
    }

    /// The kinds that a person consented to lose.
    fn may_discard(&self, removal: &Removal) -> Unsaved {
        let job = removal.resource.and_then(|r| self.view.resources.id(r.0));
        let job = job.and_then(|r| self.view.jobs.id(r.job_id.0));
        if self.discards(removal) {
            job.map_or(Unsaved::NONE, |j| j.consent)
        } else {
            Unsaved::NONE
        }
    }

    /// Whether a person consented to lose what is unsaved.
    fn discards(&self, removal: &Removal) -> bool {
        match removal.authority() {
            Authority::Job(id) => {
                self.view.jobs.id(id.0).is_some_and(|j| {
                    // The consent was given to that operation; one that took over did not get it.
                    j.policy == UnsavedPolicy::Discard && j.state != JobState::Cancelled
                })
            }
            Authority::Attempt(_) | Authority::Trash(_) => false,
        }
    }

    /// Writes a salvage entry's row. What the same removal keeps again (W-35), or reports again
    /// because the first report was lost (P-29), goes under the same ref, so it is the same row:
    /// of two, the older would expire and take the younger's content along (W-34). No kind is
    /// taken off it, since what the permit saw unsaved was in it.
    fn keep_salvage(&mut self, removal: &Removal, salvage: Option<SalvageFacts>) {
        let Some(facts) = salvage else { return };
        let known = self.view.salvage.iter().find(|s| s.removal_id == removal.id).copied();
        if let Some(known) = known {
            let (size, state) = (facts.size, SalvageState::Verified);
            let contents = known.contents.with(facts.contents);
            let same = Salvage { contents, size, state, ..known };
            self.view.salvage.insert(Salvage { made_at: self.now, ..same });
            if same != known {
                self.event(EventKind::SalvageKept, known.row_key(), "");
            }
            return;
        }
        let resource = removal.resource.and_then(|r| self.view.resources.id(r.0)).copied();
        let attempt = match removal.authority() {
            Authority::Attempt(id) => self.view.attempts.id(id.0).copied(),
            Authority::Job(_) | Authority::Trash(_) => None,
        };
        let repository = resource
            .and_then(|r| r.repository_id)
            .or(attempt.map(|a| a.repository_id))
            .unwrap_or(RepositoryId(0));
        let worktree = removal.identity.unwrap_or(WorktreeId(0));
        let job = resource.and_then(|r| self.view.jobs.id(r.job_id.0));
        let row = Salvage {
            id: facts.id,
            task_id: job.map(|j| j.task_id).or(attempt.map(|a| a.task_id)),
            repository_id: repository,
            repo_id: resource.and_then(|r| r.repo_id).or(attempt.map(|a| a.repo_id)),
            worktree_id: worktree,
            removal_id: removal.id,
            root_id: removal.root_id,
            base: removal.head,
            contents: facts.contents,
            size: facts.size,
            state: SalvageState::Verified,
            made_at: self.now,
        };
        self.view.salvage.insert(row);
        self.event(EventKind::SalvageKept, row.row_key(), "");
        if let Some(r) = removal.resource
            && let Some(row) = self.view.resources.edit(r.0)
        {
            row.salvage_id = Some(facts.id);
        }
    }

    /// W-35: the trash row before the rename.
    fn fill_trash(&mut self, removal: &Removal) {
        let id = trash_of(removal);
        if self.view.trash.id(id.0).is_some() {
            return;
        }
        let resource = removal.resource.and_then(|r| self.view.resources.id(r.0));
        let job = resource.and_then(|r| self.view.jobs.id(r.job_id.0));
        // W-4: what the compensation of a restore puts back is offered again.
        let attempt = match removal.authority() {
            Authority::Attempt(id) if removal.keep_trash => self.view.attempts.id(id.0),
            Authority::Attempt(_) | Authority::Job(_) | Authority::Trash(_) => None,
        };
        let row = Trash {
            id,
            removal_id: removal.id,
            task_id: job.map(|j| j.task_id).or(attempt.map(|a| a.task_id)),
            repo_id: removal.repo_id.or(attempt.map(|a| a.repo_id)),
            root_id: removal.root_id,
            path: removal.path,
            worktree_id: removal.identity,
            restorable_until: None,
            state: TrashState::Kept,
            created_at: self.now,
            updated_at: self.now,
        };
        self.view.trash.insert(row);
        self.event(EventKind::TrashKept, row.row_key(), "");
    }

    /// `purging` is durable before the first unlink, and final (D-20).
    fn begin_purge(&mut self, removal: &Removal) -> Result<(), Refusal> {
        self.step_trash(removal, machine::trash::Input::Purge, EventKind::TrashPurging)
    }

    fn empty_trash(&mut self, removal: &Removal) -> Result<(), Refusal> {
        self.step_trash(removal, machine::trash::Input::Restored, EventKind::TrashGone)
    }

    fn step_trash(
        &mut self,
        removal: &Removal,
        input: machine::trash::Input,
        event: EventKind,
    ) -> Result<(), Refusal> {
        let id = match removal.authority() {
            Authority::Trash(id) => id,
            Authority::Job(_) | Authority::Attempt(_) => trash_of(removal),
        };
        let Some(trash) = self.view.trash.id(id.0).copied() else { return Ok(()) };
        let Some(state) = machine::trash::step(trash.state, input) else {
            // A takeover finds the purge begun already; anything else is a defect.
            return if trash.state == TrashState::Purging {
                Ok(())
            } else {
                self.illegal(trash.row_key())
            };
        };
        let now = self.now;
        if let Some(row) = self.view.trash.edit(id.0) {
            row.state = state;
            row.updated_at = now;
        }
        self.event(event, trash.row_key(), "");
        Ok(())
    }

    pub(crate) fn record_failure(
        &mut self,
        id: RemovalId,
        token: Token,
        reason: Reason,
        in_place: bool,
    ) -> Result<Decision, Refusal> {
        let removal = self.my_removal(id, token)?;
        let now = self.now;
        // The executor lets go: the next try may take over at once.
        let row = Removal { last_reason: reason, lease_until: now, updated_at: now, ..removal };
        self.view.removals.insert(row);
        self.event(EventKind::RemovalStepFailed, row.row_key(), reason.code());
        // Nothing physical has moved yet: the removal ends, the resource says why, and nobody is
        // kept out of a worktree that is whole (C-18).
        let untouched = match removal.last_step {
            RemovalStep::Permitted => true,
            RemovalStep::Salvaged => in_place,
            RemovalStep::Renamed
            | RemovalStep::Compared
            | RemovalStep::Unregistered
            | RemovalStep::BranchSettled
            | RemovalStep::Purged
            | RemovalStep::Returned => false,
        };
        if untouched && removal.authority != AuthorityKind::Trash {
            self.empty_trash(&row)?;
            let outcome = self.settle_removal(&row, Some(reason))?;
            return Ok(Reply::RemovalSettled { outcome }.into());
        }
        Ok(Reply::NotNow { reason }.into())
    }

    pub(crate) fn renew_removal(
        &mut self,
        id: RemovalId,
        token: Token,
    ) -> Result<Decision, Refusal> {
        let removal = self.my_removal(id, token)?;
        let lease = self.now + self.settings().removal_lease;
        if let Some(row) = self.view.removals.edit(removal.id.0) {
            row.lease_until = lease;
        }
        Ok(Reply::Done.into())
    }

    /// C-18: whoever serves the root and holds the path lock may take over a removal whose lease
    /// has lapsed; its own executor may ask for its warrant again.
    pub(crate) fn take_over(
        &mut self,
        id: RemovalId,
        old_token: Token,
        token: Token,
        instance: InstanceId,
    ) -> Result<Decision, Refusal> {
        let removal = self.my_removal(id, old_token)?;
        let instance = self.live_instance(instance)?;
        let served =
            self.view.managed_roots.id(removal.root_id.0).is_some_and(|r| r.host == instance.host);
        let at = || InTheWay::one(removal.row_key());
        self.hold(Guard::RootServed, served, at)?;
        let own = removal.instance_id == instance.id;
        self.hold(Guard::RemovalLapsed, own || removal.lease_until <= self.now, at)?;
        // C-18: under the old token whoever had it would go on beside the new executor.
        self.hold(Guard::TokenFresh, token != old_token, at)?;
        let row = Removal {
            token,
            instance_id: instance.id,
            lease_until: self.now + self.settings().removal_lease,
            updated_at: self.now,
            ..removal
        };
        self.view.removals.insert(row);
        self.event(EventKind::RemovalTakenOver, row.row_key(), "");
        self.warrant_next(&row)
    }

    /// D-20: the purge of trash that is kept beyond its time.
    pub(crate) fn purge(
        &mut self,
        id: TrashId,
        removal: RemovalId,
        token: Token,
        instance: InstanceId,
    ) -> Result<Decision, Refusal> {
        let trash = known!(self, trash, id, TrashKnown)?;
        let instance = self.live_instance(instance)?;
        let at = || InTheWay::one(trash.row_key());
        let served =
            self.view.managed_roots.id(trash.root_id.0).is_some_and(|r| r.host == instance.host);
        self.hold(Guard::RootServed, served, at)?;
        self.hold(Guard::TrashKept, trash.state == TrashState::Kept, at)?;
        let lapsed = trash.restorable_until.is_some_and(|until| until <= self.now);
        self.hold(Guard::TrashLapsed, lapsed, at)?;
        let evidence = Evidence {
            found: crate::evidence::Found::InTrash,
            unsaved: Unsaved::NONE,
            obstacle: Reason::None,
            head: None,
        };
        self.permit_removal(
            NewRemoval {
                id: removal,
                token,
                authority: Authority::Trash(id),
                resource: None,
                repo: None,
                root: trash.root_id,
                path: trash.path,
                identity: trash.worktree_id,
                instance: instance.id,
                delete_branch: false,
                keep_trash: false,
            },
            evidence,
        )
    }

    /// The outcome, written wherever the resource is (C-18).
    pub(crate) fn settle_removal(
        &mut self,
        removal: &Removal,
        failed: Option<Reason>,
    ) -> Result<RemovalOutcome, Refusal> {
        let outcome = match (failed, removal.last_step) {
            (Some(_), _) | (None, RemovalStep::Returned) => RemovalOutcome::Returned,
            (None, RemovalStep::BranchSettled) if removal.keep_trash => RemovalOutcome::Trashed,
            (
                None,
                RemovalStep::Permitted
                | RemovalStep::Salvaged
                | RemovalStep::Renamed
                | RemovalStep::Compared
                | RemovalStep::Unregistered
                | RemovalStep::BranchSettled
                | RemovalStep::Purged,
            ) => {
                if removal.found_something {
                    RemovalOutcome::Removed
                } else {
                    RemovalOutcome::Absent
                }
            }
        };
        let gone = outcome != RemovalOutcome::Returned;
        let now = self.now;
        if let Some(row) = self.view.removals.edit(removal.id.0) {
            row.outcome = Some(outcome);
            row.updated_at = now;
        }
        self.event(EventKind::RemovalSettled, removal.row_key(), outcome.code());
        self.settle_trash(removal, outcome)?;
        self.settle_row(removal, gone)?;
        self.settle_resources(removal, outcome, failed);
        if let (Authority::Attempt(id), true) = (removal.authority(), gone)
            && let Some(attempt) = self.view.attempts.id(id.0).copied()
            && attempt.state == AttemptState::Compensating
        {
            self.undone(&attempt)?;
        }
        Ok(outcome)
    }

    fn settle_trash(&mut self, removal: &Removal, outcome: RemovalOutcome) -> Result<(), Refusal> {
        match outcome {
            RemovalOutcome::Removed | RemovalOutcome::Absent => {
                self.step_trash(removal, machine::trash::Input::Unlinked, EventKind::TrashGone)
            }
            RemovalOutcome::Trashed => {
                let until = self.now + self.settings().trash_retention;
                if let Some(row) = self.view.trash.edit(trash_of(removal).0) {
                    row.restorable_until = Some(until);
                }
                Ok(())
            }
            RemovalOutcome::Returned | RemovalOutcome::Forgotten => Ok(()),
        }
    }

    /// For an archive the row stays, not materialised (C-6).
    fn settle_row(&mut self, removal: &Removal, gone: bool) -> Result<(), Refusal> {
        let Some(row) = removal.repo_id.and_then(|r| self.view.repos.id(r.0)).copied() else {
            return Ok(());
        };
        let input =
            if gone { machine::worktree::Input::Gone } else { machine::worktree::Input::Returned };
        let Some(next) = machine::worktree::step(row.materialised, input) else {
            return self.illegal(row.row_key());
        };
        let now = self.now;
        if let Some(r) = self.view.repos.edit(row.id.0) {
            r.materialised = next;
            r.updated_at = now;
        }
        let event = if gone { EventKind::WorktreeGone } else { EventKind::WorktreeReturned };
        self.event(event, row.row_key(), "");
        Ok(())
    }

    fn settle_resources(
        &mut self,
        removal: &Removal,
        outcome: RemovalOutcome,
        failed: Option<Reason>,
    ) {
        let salvage = self
            .view
            .salvage
            .iter()
            .filter(|s| s.removal_id == removal.id)
            .max_by_key(|s| (s.made_at, s.id))
            .map(|s| s.id);
        let mut after = None;
        while let Some(resource) = first(self.view.resources.iter().filter(|r| {
            let own = removal.resource == Some(r.id);
            let heir = r.path == Some(removal.path)
                && r.kind == ResourceKind::Worktree
                && r.result == ResourceResult::Waiting
                && r.worktree_id == removal.identity
                && outcome != RemovalOutcome::Returned;
            after.is_none_or(|a| r.id > a) && (own || heir) && is_left(r.result)
        })) {
            after = Some(resource.id);
            let (result, reason) = match (outcome, failed) {
                (RemovalOutcome::Removed | RemovalOutcome::Trashed, _) => {
                    (ResourceResult::Removed, Reason::None)
                }
                (RemovalOutcome::Absent, _) => (ResourceResult::Absent, Reason::None),
                (RemovalOutcome::Forgotten, _) => (ResourceResult::Forgotten, Reason::ByPerson),
                (RemovalOutcome::Returned, None) => (ResourceResult::Kept, Reason::AuthorityGone),
                (RemovalOutcome::Returned, Some(reason)) => match reason.class() {
                    ReasonClass::Transient | ReasonClass::Nothing => {
                        (ResourceResult::Waiting, reason)
                    }
                    ReasonClass::Final => (ResourceResult::Failed, reason),
                    ReasonClass::Kept => (ResourceResult::Kept, reason),
                },
            };
            self.settle(&resource, result, reason, salvage);
        }
    }
}

/// The trash row of a removal: derived, so that a step done twice finds the same one.
pub(crate) const fn trash_of(removal: &Removal) -> TrashId {
    TrashId(derive(removal.id.0, 0x7261_7368))
}
