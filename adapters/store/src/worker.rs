//! The worker: claims what is due, carries it out by warrants, and recovers what lapsed (05).
//!
//! It runs on the thread that it is handed: [`Host::tick`] does what is due now and returns, so
//! that a host decides when and where. It may be killed at any point; the next tick of any
//! instance finishes from the rows.

use freehold_kernel::{
    AttemptState, Authority, AuthorityKind, CleanupCommand, Command, Evidence, Found, Guard,
    JobRoot, JobRootId, JobState, Key, Kind, Liveness, Reason, ReasonClass, Removal, RemovalId,
    RemovalStep, Reply, Resource, ResourceKind, ResourceResult, RowKey, RuntimeStatus,
    SalvageFacts, SalvageId, TableId, Time, Token, Unsaved, Warrant,
};

use crate::error::StoreError;
use crate::host::{Drive, Host, HostError, Who, fresh};
use crate::maker::learn_head;
use crate::names::uuid_text;
use crate::pick::Pick;
use crate::run::Stored;
use crate::runtimes::RuntimeHandle;
use crate::store::{Read, Rows, Store};
use crate::workspaces::{Place, Pulse, StepDone, WorkspaceError, Workspaces};

/// How many parts an instance takes at a time: the last of them waits for the first.
const PICKED_MAX: usize = 4;

/// How the carrying out of a part ended.
enum Ended {
    /// What could be done is done.
    Done,
    /// A maker lives until then; nothing was spent (C-6, C-17).
    Waits(Time),
    /// This build cannot read it (C-10).
    Unreadable,
}

/// How the stops of a part went.
enum Stops {
    /// Nothing runs any more.
    Done,
    /// Something that was to be stopped was not.
    Left,
    /// What is left is for others to stop.
    Unserved,
}

/// What one tick did. Counts of what was done, never of what was planned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ticked {
    /// Parts of jobs that were claimed.
    pub claimed: u32,
    /// Parts that were due and whose claim was refused: another instance was faster, or it was not
    /// their turn.
    pub lost: u32,
    /// Parts that were due and not claimed, since all that is left in them is for other machines
    /// to stop (C-17).
    pub left: u32,
    /// Resources that were settled.
    pub settled: u32,
    /// Removals that came to their outcome.
    pub removals: u32,
    /// Things that recovery brought to an end: barriers, closings, turns, attempts, claims.
    pub recovered: u32,
    /// Trash that was purged, its retention being over.
    pub purged: u32,
    /// Reconcile jobs that were reserved.
    pub reconciled: u32,
    /// What could not be done now, one line each.
    pub troubles: Vec<String>,
}

impl<S: Store, W: Workspaces, D: Drive> Host<S, W, D> {
    /// Recovers what lapsed and carries out what is due, in this process, now.
    ///
    /// # Errors
    /// The store's failure. What one job stumbles over is in [`Ticked::troubles`] and in its
    /// rows, and does not stop the others.
    pub fn tick(&self) -> Result<Ticked, HostError> {
        self.renew()?;
        self.runtimes.tend();
        let mut ticked = Ticked::default();
        self.recover(&mut ticked)?;
        ticked.reconciled = self.reconcile()?;
        let mut pick = Pick {
            instance: self.instance(),
            machine: self.machine().to_owned(),
            limit: PICKED_MAX,
            hold: self.settings()?.renew,
            tried: Vec::new(),
        };
        let worked = self.work_off(&mut pick, &mut ticked);
        if worked.is_err() {
            // What was picked and not tried is for others now. Where the store is away, its time
            // ends by itself.
            pick.limit = 0;
            let _given_back = self.drive.wait(self.store.pick(&pick));
        }
        worked?;
        self.sweep(&mut ticked)?;
        Ok(ticked)
    }

    /// Tries what is due, a few parts at a time, until nothing is left that was not tried.
    fn work_off(&self, pick: &mut Pick, ticked: &mut Ticked) -> Result<(), HostError> {
        loop {
            let picked = self.drive.wait(self.store.pick(pick))?;
            if picked.is_empty() {
                return Ok(());
            }
            // All of them are given back by the next pick, whatever comes of each.
            pick.tried.extend(picked.iter().map(|part| part.id));
            for part in &picked {
                match self.run_part(part, ticked) {
                    Ok(()) => {}
                    // What cannot be read concerns this one job; the others go on (C-10).
                    Err(error @ HostError::Store(StoreError::Unreadable { .. })) => {
                        ticked.troubles.push(error.to_string());
                    }
                    Err(error @ HostError::Store(_)) => return Err(error),
                    // Somebody else was faster, or it is not its turn.
                    Err(HostError::Refused(_)) => {}
                    Err(error) => ticked.troubles.push(error.to_string()),
                }
            }
        }
    }

    /// Ticks until `stop` says so, calling `pause` between ticks that found nothing.
    ///
    /// # Errors
    /// The store's failure, unless it may pass.
    pub fn run_until(
        &self,
        mut stop: impl FnMut() -> bool,
        mut pause: impl FnMut(),
    ) -> Result<(), HostError> {
        while !stop() {
            match self.tick() {
                Ok(ticked) if ticked.claimed + ticked.recovered + ticked.purged == 0 => pause(),
                Ok(_) => {}
                Err(HostError::Store(error)) if error.may_pass_later() => pause(),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn run_part(&self, part: &JobRoot, ticked: &mut Ticked) -> Result<(), HostError> {
        if part.root_id.is_none() && self.is_for_others(part)? {
            ticked.left += 1;
            return Ok(());
        }
        let token = Token(fresh());
        let (id, instance) = (part.id, self.instance);
        let claimed = self.ask(&Who::system(), None, |_| {
            Ok(Command::Cleanup(CleanupCommand::Claim { job_root: id, token, instance }))
        });
        ticked.lost += u32::from(matches!(claimed, Err(HostError::Refused(_))));
        let claimed = claimed?;
        if claimed.reply != Reply::Done {
            // Parked: this build cannot read it (C-10).
            return Ok(());
        }
        ticked.claimed += 1;
        let done = self.carry_out_part(part, token, ticked);
        let end = match &done {
            Ok(Ended::Waits(until)) => {
                CleanupCommand::PutBack { job_root: id, token, not_before: Some(*until) }
            }
            Ok(Ended::Unreadable) => CleanupCommand::Park { job_root: id, token },
            Ok(Ended::Done) | Err(_) => CleanupCommand::Finish { job_root: id, token },
        };
        self.ask(&Who::system(), None, |_| Ok(Command::Cleanup(end)))?;
        done.map(|_| ())
    }

    /// Whether all that is left of a part is for others to stop (C-17). Looked at before the claim,
    /// which would keep the part from those who can (C-3).
    fn is_for_others(&self, part: &JobRoot) -> Result<bool, HostError> {
        let rows = self.rows_of_part(part)?;
        let mut others = false;
        for resource in rows.view.resources.iter().filter(|r| r.job_root_id == part.id) {
            match resource.result {
                ResourceResult::Waiting | ResourceResult::Removing => {}
                ResourceResult::Removed
                | ResourceResult::Absent
                | ResourceResult::Preserved
                | ResourceResult::Transferred
                | ResourceResult::Kept
                | ResourceResult::Forgotten
                | ResourceResult::Failed => continue,
            }
            let served = |handle| self.runtimes.serves(&handle);
            if !is_handle(resource.kind)
                || has_stopped(&rows, resource)
                || served(self.handle_of(&rows, resource)?)
            {
                return Ok(false);
            }
            others = true;
        }
        // What cannot be read is for the claim to park (C-10).
        Ok(others && rows.unreadable.is_empty())
    }

    /// Carries out a claimed part.
    fn carry_out_part(
        &self,
        part: &JobRoot,
        token: Token,
        ticked: &mut Ticked,
    ) -> Result<Ended, HostError> {
        let rows = self.rows_of_part(part)?;
        if let Some((table, key, why)) = rows.unreadable.first() {
            ticked.troubles.push(format!("{} {key:?} cannot be read: {why}", table.name()));
            return Ok(Ended::Unreadable);
        }
        let mut resources: Vec<Resource> =
            rows.view.resources.iter().filter(|r| r.job_root_id == part.id).copied().collect();
        resources.sort_by_key(|r| (r.kind, r.id));
        // C-6: what runs in them comes first. A part waits for what others have to stop without
        // spending a try; what it can stop itself it does.
        let waiting = |r: &&Resource| is_handle(r.kind) && r.result == ResourceResult::Waiting;
        let elsewhere =
            rows.view.resources.iter().filter(waiting).any(|r| r.job_root_id != part.id);
        if elsewhere {
            return Ok(Ended::Waits(rows.view.now + self.settings()?.renew));
        }
        let own: Vec<Resource> = resources.iter().filter(waiting).copied().collect();
        match self.stop_resources(&rows, &own, token, ticked)? {
            Stops::Done => {}
            Stops::Left => return Ok(Ended::Done),
            Stops::Unserved => return Ok(Ended::Waits(rows.view.now + self.settings()?.renew)),
        }
        let mut failed = None;
        for resource in resources {
            match resource.result {
                ResourceResult::Waiting | ResourceResult::Removing => {}
                ResourceResult::Removed
                | ResourceResult::Absent
                | ResourceResult::Preserved
                | ResourceResult::Transferred
                | ResourceResult::Kept
                | ResourceResult::Forgotten
                | ResourceResult::Failed => continue,
            }
            let done = match resource.kind {
                // Stopped above.
                ResourceKind::Runtime | ResourceKind::Container | ResourceKind::Sandbox => continue,
                ResourceKind::Attempt => self.undo_resource(&rows, &resource, token),
                ResourceKind::Worktree => {
                    self.remove_resource(&rows, &resource, token, ticked).map(|()| None)
                }
            };
            match done {
                Ok(None) => ticked.settled += 1,
                Ok(Some(until)) => return Ok(Ended::Waits(until)),
                Err(error @ HostError::Store(_)) => return Err(error),
                // One resource's failure does not stop the others (C-8).
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            ticked.troubles.push(error.to_string());
        }
        Ok(Ended::Done)
    }

    fn rows_of_part(&self, part: &JobRoot) -> Result<Rows, HostError> {
        let job = uuid_text(part.job_id.0);
        let mut rows = self.read(&[
            Read::by(TableId::Resources, "job_id", &[&job]),
            Read::all(TableId::ManagedRoots),
            unsettled_removals(),
        ])?;
        let attempts = rows.texts(rows.view.resources.iter().filter_map(|r| r.attempt_id))?;
        let runtimes = rows.texts(rows.view.resources.iter().filter_map(|r| r.runtime_id))?;
        self.read_on(
            &mut rows,
            vec![
                Read::among(TableId::Attempts, "id", attempts),
                Read::among(TableId::Runtimes, "id", runtimes),
            ],
        )?;
        Ok(rows)
    }

    /// Runtimes, containers, sandboxes: those that this process serves are stopped within one
    /// bound, and each is settled by what is proven (C-7).
    fn stop_resources(
        &self,
        rows: &Rows,
        resources: &[Resource],
        token: Token,
        ticked: &mut Ticked,
    ) -> Result<Stops, HostError> {
        let mut served = Vec::new();
        let mut handles = Vec::new();
        let mut open = 0;
        for resource in resources {
            // Its row says so already: that settles anywhere, served or not.
            if has_stopped(rows, resource)
                && let Reply::Settled { result: ResourceResult::Removed, .. } =
                    self.settle(resource, token, Liveness::Unknown)?
            {
                ticked.settled += 1;
                continue;
            }
            open += 1;
            let handle = self.handle_of(rows, resource)?;
            if self.runtimes.serves(&handle) {
                served.push(resource);
                handles.push(handle);
            }
        }
        let Some(first) = served.first() else {
            return Ok(if open == 0 { Stops::Done } else { Stops::Unserved });
        };
        let job_root = first.job_root_id;
        let mut pulse = || {
            let _ = self.ask(&Who::system(), None, |_| {
                Ok(Command::Cleanup(CleanupCommand::Renew { job_root, token }))
            });
        };
        let bound = u64::try_from(self.settings()?.stop_bound.0).unwrap_or(0);
        let bound = std::time::Duration::from_micros(bound);
        let answers = self.runtimes.stop_all(&handles, bound, &mut pulse);
        let mut left = false;
        for (index, resource) in served.iter().enumerate() {
            // One that is not answered for is not proven.
            let answer = answers.get(index).copied().unwrap_or(Liveness::Unknown);
            let settled = self.settle(resource, token, answer)?;
            match settled {
                Reply::Settled { result: ResourceResult::Removed, .. } => ticked.settled += 1,
                _not_now => left = true,
            }
        }
        // A try is spent on what was tried in vain, never on what was not this process's to try.
        Ok(match (left, served.len() < open) {
            (true, _) => Stops::Left,
            (false, true) => Stops::Unserved,
            (false, false) => Stops::Done,
        })
    }

    fn handle_of(&self, rows: &Rows, resource: &Resource) -> Result<RuntimeHandle, HostError> {
        match (resource.runtime_id, resource.handle) {
            (Some(runtime), _) => {
                let id = rows.names.text(Kind::RuntimeId, runtime.0)?;
                let row = rows.view.runtimes.id(runtime.0).copied();
                Ok(RuntimeHandle::of(id, row, rows))
            }
            (None, Some(handle)) => {
                let id = rows.names.text(Kind::HandleId, handle.0)?;
                Ok(RuntimeHandle::of(id, None, rows))
            }
            (None, None) => Ok(RuntimeHandle::of(String::new(), None, rows)),
        }
    }

    fn settle(
        &self,
        resource: &Resource,
        token: Token,
        liveness: Liveness,
    ) -> Result<Reply, HostError> {
        let settled = self.ask(&Who::system(), None, |_| {
            Ok(Command::Cleanup(CleanupCommand::SettleResource {
                resource: resource.id,
                token,
                liveness,
            }))
        })?;
        Ok(settled.reply)
    }

    /// An attempt of the snapshot: while its maker lives the job is put back (C-6).
    fn undo_resource(
        &self,
        rows: &Rows,
        resource: &Resource,
        token: Token,
    ) -> Result<Option<Time>, HostError> {
        let attempt = resource.attempt_id.and_then(|a| rows.view.attempts.id(a.0)).copied();
        if let Some(attempt) = attempt
            && unresolved(&attempt)
        {
            let undoing =
                attempt.state == AttemptState::Compensating && attempt.instance_id == self.instance;
            if attempt.lease_until > rows.view.now && !undoing {
                return Ok(Some(attempt.lease_until));
            }
            self.recover_attempt(rows, &attempt)?;
        }
        self.settle(resource, token, Liveness::Unknown)?;
        Ok(None)
    }

    /// One worktree: lock, look, ask, and take the steps that are permitted.
    fn remove_resource(
        &self,
        rows: &Rows,
        resource: &Resource,
        token: Token,
        ticked: &mut Ticked,
    ) -> Result<(), HostError> {
        let place = self.place(
            rows,
            resource.root_id,
            resource.path.map(|p| p.0),
            resource.repository_id.map_or(0, |r| r.0),
            resource.branch.map(|b| b.0),
            resource.branch_created,
            resource.start_commit.map(|c| c.0),
            resource.worktree_id.map(|w| w.0),
        )?;
        let lock = match self.workspaces.lock(&place) {
            Ok(lock) => lock,
            // A path that no lock is given for is no path of a worktree: that is evidence, and
            // final; trying it again on schedule would find the same (C-9, F14).
            Err(error) if error.reason.class() == ReasonClass::Final => {
                return self.refuse_resource(rows, resource, token, &error);
            }
            Err(error) => return Err(error.into()),
        };
        // A removal on this path that nobody settled, whoever permitted it, comes first (C-18).
        if let Some(removal) = unsettled_on(rows, resource) {
            self.resume_removal(&removal, &lock, &place, Some((resource, token)))?;
            ticked.removals += 1;
            return Ok(());
        }
        // A large tree takes longer to look at than a lease lasts; a claim that lapsed meanwhile
        // would be tried again and lapse again (F36).
        let mut pulse = self.claim_pulse(resource.job_root_id, token);
        let inspection = self.workspaces.inspect(&place, &mut pulse);
        drop(pulse);
        let details = inspection.details.join("\n");
        let evidence = inspection.evidence;
        let permitted = self.ask(&Who::system(), None, |c| {
            c.know(&rows.names);
            learn_head(c, &inspection)?;
            let removal = RemovalId(fresh());
            c.content(TableId::Removals, removal.0, "detail", &details);
            c.content(TableId::Resources, resource.id.0, "detail", &details);
            Ok(Command::Cleanup(CleanupCommand::Permit {
                resource: resource.id,
                token,
                removal,
                removal_token: Token(fresh()),
                evidence,
            }))
        })?;
        if let Some(warrant) = permitted.warrant {
            self.take_steps(warrant, &lock, &place, Some((resource, token)))?;
            ticked.removals += 1;
        }
        Ok(())
    }

    /// A worktree resource whose place cannot even be locked: the kernel hears why, and ends it.
    fn refuse_resource(
        &self,
        rows: &Rows,
        resource: &Resource,
        token: Token,
        error: &WorkspaceError,
    ) -> Result<(), HostError> {
        let evidence = Evidence {
            found: Found::Mismatch,
            unsaved: Unsaved::UNKNOWN,
            obstacle: error.reason,
            head: None,
        };
        self.ask(&Who::system(), None, |c| {
            c.know(&rows.names);
            c.content(TableId::Resources, resource.id.0, "detail", &error.to_string());
            Ok(Command::Cleanup(CleanupCommand::Permit {
                resource: resource.id,
                token,
                removal: RemovalId(fresh()),
                removal_token: Token(fresh()),
                evidence,
            }))
        })?;
        Ok(())
    }

    /// Takes over an unsettled removal whose path lock is held, and goes on with it.
    pub(crate) fn resume_removal(
        &self,
        removal: &Removal,
        lock: &W::Lock,
        place: &Place,
        claim: Option<(&Resource, Token)>,
    ) -> Result<(), HostError> {
        let instance = self.instance;
        let taken = self.ask(&Who::system(), None, |_| {
            Ok(Command::Cleanup(CleanupCommand::TakeOverRemoval {
                removal: removal.id,
                old_token: removal.token,
                token: Token(fresh()),
                instance,
            }))
        })?;
        match taken.warrant {
            Some(warrant) => self.take_steps(warrant, lock, place, claim),
            None => Ok(()),
        }
    }

    /// One step after the other, each permitted by the record of the one before.
    pub(crate) fn take_steps(
        &self,
        mut warrant: Warrant,
        lock: &W::Lock,
        place: &Place,
        claim: Option<(&Resource, Token)>,
    ) -> Result<(), HostError> {
        let limit = self.salvage_limit()?;
        loop {
            let (removal, token, step) = (warrant.removal(), warrant.token(), warrant.step());
            let mut pulse = self.removal_pulse(removal, token, claim);
            let taken = self
                .workspaces
                .step(lock, place, warrant, limit, &mut pulse)
                .and_then(|done| self.verified(place, step, &mut pulse).map(|()| done));
            match taken {
                Ok(done) => {
                    let recorded = self.record_step(removal, token, step, &done);
                    match recorded {
                        Ok(Some(next)) => warrant = next,
                        Ok(None) => {
                            if step == RemovalStep::Returned {
                                self.workspaces.forget(place, removal);
                            }
                            return Ok(());
                        }
                        Err(error) if error.guard() == Some(Guard::SalvagedFirst) => {
                            // Something unsaved is not in the salvage: it changed under our
                            // hands. Nothing has been moved.
                            let failed = changed_meanwhile(place);
                            self.record_failure(removal, token, place, &failed, &mut pulse)?;
                            return Err(failed.into());
                        }
                        Err(error) => return Err(error),
                    }
                }
                Err(failed) => {
                    self.record_failure(removal, token, place, &failed, &mut pulse)?;
                    return Err(failed.into());
                }
            }
        }
    }

    /// W-36: the last step of a removal is believed when nothing of it is found any more; an
    /// adapter's word is not enough for a success that nobody would look behind (F60).
    fn verified(
        &self,
        place: &Place,
        step: RemovalStep,
        pulse: Pulse<'_>,
    ) -> Result<(), WorkspaceError> {
        if step != RemovalStep::Purged {
            return Ok(());
        }
        match self.workspaces.inspect(place, pulse).evidence.found {
            Found::Here | Found::InTrash => Err(WorkspaceError {
                reason: Reason::Contested,
                path: place.path.clone(),
                detail: "the removal was said to be done, and the worktree is still there"
                    .to_owned(),
                help: "it is tried again; look at the path and at the trash of its root".to_owned(),
            }),
            // What stands there instead is somebody else's, and what cannot be seen now was seen
            // by the step itself.
            Found::Missing | Found::Mismatch | Found::Unknown => Ok(()),
        }
    }

    fn record_step(
        &self,
        removal: RemovalId,
        token: Token,
        step: RemovalStep,
        done: &StepDone,
    ) -> Result<Option<Warrant>, HostError> {
        let accepted = self.ask(&Who::system(), None, |c| {
            let salvage = done.salvage.as_ref().map(|made| {
                let id = SalvageId(fresh());
                c.content(TableId::Salvage, id.0, "ref_name", &made.ref_name);
                SalvageFacts {
                    id,
                    contents: made.contents,
                    size: i64::try_from(made.size).unwrap_or(i64::MAX),
                }
            });
            if let Some(branch) = &done.branch {
                c.content(TableId::Removals, removal.0, "detail", &format!("branch: {branch:?}"));
            }
            Ok(Command::Cleanup(CleanupCommand::RecordStep {
                removal,
                token,
                step,
                found_something: done.found_something,
                salvage,
            }))
        })?;
        Ok(accepted.warrant)
    }

    fn record_failure(
        &self,
        removal: RemovalId,
        token: Token,
        place: &Place,
        failed: &WorkspaceError,
        pulse: Pulse<'_>,
    ) -> Result<(), HostError> {
        // The call failed; what it did is for the disk to say (W-37).
        let in_place = self.workspaces.inspect(place, pulse).evidence.found == Found::Here;
        let recorded = self.ask(&Who::system(), None, |c| {
            c.content(TableId::Removals, removal.0, "detail", &failed.to_string());
            Ok(Command::Cleanup(CleanupCommand::RecordFailure {
                removal,
                token,
                reason: failed.reason,
                in_place,
            }))
        })?;
        if matches!(recorded.reply, Reply::RemovalSettled { .. }) {
            self.workspaces.forget(place, removal);
        }
        Ok(())
    }

    fn salvage_limit(&self) -> Result<u64, HostError> {
        Ok(u64::try_from(self.settings()?.salvage_limit).unwrap_or(0))
    }

    /// Renews a claim during a long look (C-4). Whether it still holds is for the next command.
    fn claim_pulse(&self, job_root: JobRootId, token: Token) -> impl FnMut() -> bool + '_ {
        self.paced(move || {
            let _ = self.ask(&Who::system(), None, |_| {
                Ok(Command::Cleanup(CleanupCommand::Renew { job_root, token }))
            });
            true
        })
    }

    /// Renews claim and removal during a long step; false once either is lost (W-13, C-4).
    fn removal_pulse(
        &self,
        removal: RemovalId,
        token: Token,
        claim: Option<(&Resource, Token)>,
    ) -> impl FnMut() -> bool + '_ {
        let part = claim.map(|(resource, token)| (resource.job_root_id, token));
        self.paced(move || {
            let held = self.ask(&Who::system(), None, |_| {
                Ok(Command::Cleanup(CleanupCommand::RenewRemoval { removal, token }))
            });
            // A claim that is gone (a cancelled job) does not take the removal's own right
            // (C-18); it is renewed so that a long removal is not rescued.
            if let Some((job_root, token)) = part {
                let _ = self.ask(&Who::system(), None, |_| {
                    Ok(Command::Cleanup(CleanupCommand::Renew { job_root, token }))
                });
            }
            held.is_ok()
        })
    }

    /// Settles removals that nobody carries on: those of cancelled jobs and of attempts whose
    /// executor is gone (C-18).
    pub(crate) fn settle_abandoned(&self, ticked: &mut Ticked) -> Result<(), HostError> {
        let mut rows = self.read(&[unsettled_removals(), Read::all(TableId::ManagedRoots)])?;
        let by = |kind| rows.view.removals.iter().filter(move |r| r.authority == kind);
        let jobs = rows.texts(by(AuthorityKind::Job).map(|r| r.authority_id))?;
        let attempts = rows.texts(by(AuthorityKind::Attempt).map(|r| r.authority_id))?;
        let resources = rows.texts(rows.view.removals.iter().filter_map(|r| r.resource))?;
        self.read_on(
            &mut rows,
            vec![
                Read::among(TableId::Jobs, "id", jobs),
                Read::among(TableId::Attempts, "id", attempts),
                Read::among(TableId::Resources, "id", resources),
            ],
        )?;
        let now = rows.view.now;
        for removal in rows.view.removals.iter() {
            let mine = removal.instance_id == self.instance;
            if !removal.is_unsettled() || !(mine || removal.lease_until <= now) {
                continue;
            }
            let place = match self.place_of_removal(&rows, removal) {
                Ok(Some(place)) => place,
                Ok(None) => continue,
                Err(error) => {
                    ticked.troubles.push(error.to_string());
                    continue;
                }
            };
            match self
                .workspaces
                .lock(&place)
                .map_err(HostError::from)
                .and_then(|lock| self.resume_removal(removal, &lock, &place, None))
            {
                Ok(()) => ticked.recovered += 1,
                Err(error @ HostError::Store(StoreError::Defect { .. })) => return Err(error),
                Err(error) => ticked.troubles.push(error.to_string()),
            }
        }
        Ok(())
    }

    /// The place of a removal that its job does not come back to by itself; none for one that a
    /// running or waiting job will resume.
    fn place_of_removal(&self, rows: &Rows, removal: &Removal) -> Result<Option<Place>, HostError> {
        match removal.authority() {
            Authority::Job(job) => {
                let alive = rows.view.jobs.id(job.0).is_some_and(|j| match j.state {
                    JobState::Pending | JobState::Running | JobState::RetryWait => true,
                    JobState::Prepared
                    | JobState::Succeeded
                    | JobState::Failed
                    | JobState::Cancelled => false,
                });
                let resource = removal.resource.and_then(|r| rows.view.resources.id(r.0));
                match resource.filter(|_| !alive) {
                    Some(r) => Ok(Some(self.place(
                        rows,
                        r.root_id,
                        r.path.map(|p| p.0),
                        r.repository_id.map_or(0, |x| x.0),
                        r.branch.map(|b| b.0),
                        r.branch_created,
                        r.start_commit.map(|c| c.0),
                        r.worktree_id.map(|w| w.0),
                    )?)),
                    None => Ok(None),
                }
            }
            Authority::Attempt(id) => match rows.view.attempts.id(id.0) {
                Some(attempt) => Ok(Some(self.place_of_attempt(rows, attempt)?)),
                None => Ok(None),
            },
            // The purge of kept trash belongs to the sweep that began it.
            Authority::Trash(_) => Ok(None),
        }
    }
}

/// Whether it is something that runs.
fn is_handle(kind: ResourceKind) -> bool {
    match kind {
        ResourceKind::Runtime | ResourceKind::Container | ResourceKind::Sandbox => true,
        ResourceKind::Attempt | ResourceKind::Worktree => false,
    }
}

/// Whether it is a runtime that is known to be stopped.
fn has_stopped(rows: &Rows, resource: &Resource) -> bool {
    let row = resource.runtime_id.and_then(|r| rows.view.runtimes.id(r.0));
    row.is_some_and(|row| row.status == RuntimeStatus::Stopped)
}

fn unsettled_removals() -> Read {
    Read::among(TableId::Removals, "outcome", vec![Stored::Null])
}

/// An unsettled removal on the resource's path.
fn unsettled_on(rows: &Rows, resource: &Resource) -> Option<Removal> {
    rows.view.removals.iter().find(|r| r.is_unsettled() && Some(r.path) == resource.path).copied()
}

pub(crate) fn unresolved(attempt: &freehold_kernel::Attempt) -> bool {
    use freehold_kernel::AttemptState as A;
    match attempt.state {
        A::Intended | A::Materialised | A::Compensating => true,
        A::Owned | A::Compensated => false,
    }
}

fn changed_meanwhile(place: &Place) -> WorkspaceError {
    WorkspaceError {
        reason: Reason::Changing,
        path: place.path.clone(),
        detail: "unsaved work changed while it was salvaged".to_owned(),
        help: "it is tried again; stop what writes there".to_owned(),
    }
}

/// The row key of a resource, for its texts.
pub fn resource_key(resource: &Resource) -> RowKey {
    RowKey { table: TableId::Resources, key: Key::of(resource.id.0) }
}

/// Whether a lease has lapsed.
pub(crate) fn lapsed(lease: Option<Time>, now: Time) -> bool {
    lease.is_none_or(|lease| lease <= now)
}
