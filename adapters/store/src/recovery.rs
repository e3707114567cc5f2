//! Recovery: brings to an end what a gone instance left, and nothing else (B-7, C-4, C-11, S-14,
//! S-22, T-9, W-5). Every command re-checks inside its write, so a slow but living owner is not
//! robbed. It runs with every tick, not only at start.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use freehold_kernel::{
    Attempt, AttemptCommand, AttemptState, CleanupCommand, Command, Guard, Job, JobState, Kind,
    Liveness, Reply, Runtime, RuntimeKind, RuntimeStatus, SessionLifecycle, SystemCommand, TableId,
    Time, Token, TurnPhase, WorkspaceState,
};

use crate::host::{Drive, Host, HostError, Who, fresh};
use crate::names::uuid_text;
use crate::run::Stored;
use crate::runtimes::RuntimeHandle;
use crate::store::{Read, Rows, Store};
use crate::worker::{Ticked, lapsed, unresolved};
use crate::workspaces::Workspaces;

/// The phases of a turn that has not ended (S-10).
const UNDER_WAY: [&str; 5] =
    ["waiting_for_slot", "running", "between_legs", "draining", "background"];

impl<S: Store, W: Workspaces, D: Drive> Host<S, W, D> {
    pub(crate) fn recover(&self, ticked: &mut Ticked) -> Result<(), HostError> {
        let rows = self.read(&[
            Read::by(TableId::Jobs, "state", &["prepared"]),
            Read::by(TableId::Workspaces, "state", &["deleting"]),
            Read::by(TableId::Sessions, "lifecycle", &["closing"]),
            Read::by(TableId::Turns, "phase", &UNDER_WAY),
            Read::by(TableId::JobRoots, "state", &["running", "pending", "retry_wait"]),
            Read::by(TableId::Attempts, "state", &["intended", "materialised", "compensating"]),
            Read::all(TableId::ManagedRoots),
            Read::all(TableId::Instances),
            Read::all(TableId::Settings),
        ])?;
        self.recover_rows(&rows, ticked)?;
        self.recover_runtimes(ticked)?;
        self.recover_attempts(&rows, ticked)?;
        self.settle_abandoned(ticked)
    }

    fn recover_rows(&self, rows: &Rows, ticked: &mut Ticked) -> Result<(), HostError> {
        let now = rows.view.now;
        let machine = rows.view.instances.id(self.instance.0).map(|i| i.host);
        let mut commands = Vec::new();
        for job in rows.view.jobs.iter().filter(|j| lapsed(j.lease_until, now)) {
            commands.push(Command::System(SystemCommand::RecoverBarrier { job: job.id }));
        }
        for workspace in rows.view.workspaces.iter() {
            if workspace.state == WorkspaceState::Deleting && lapsed(workspace.deleting_lease, now)
            {
                commands.push(Command::System(SystemCommand::RecoverWorkspaceDelete {
                    workspace: workspace.id,
                }));
            }
        }
        for session in rows.view.sessions.iter() {
            if session.lifecycle == SessionLifecycle::Closing && lapsed(session.closing_lease, now)
            {
                commands
                    .push(Command::System(SystemCommand::RecoverClosing { session: session.id }));
            }
        }
        for part in rows.view.job_roots.iter() {
            if part.state == JobState::Running
                && lapsed(part.lease_until, now)
                && let Some(token) = part.token
            {
                commands
                    .push(Command::Cleanup(CleanupCommand::Rescue { job_root: part.id, token }));
            }
            let settings =
                rows.view.settings.id(1).copied().unwrap_or(freehold_kernel::Settings::DEFAULT);
            let since = part.next_attempt_at.unwrap_or(part.updated_at);
            // Only what nobody serves: what lies in no root, and this machine's own, is due.
            let served = part
                .root_id
                .is_none_or(|root| rows.view.managed_roots.id(root.0).map(|r| r.host) == machine);
            if part.state != JobState::Running && !served && since + settings.root_patience <= now {
                commands.push(Command::Cleanup(CleanupCommand::GiveUpRoot { job_root: part.id }));
            }
        }
        for command in commands {
            self.recover_one(rows, command, ticked)?;
        }
        for turn in rows.view.turns.iter() {
            if turn.phase == TurnPhase::Ended || turn.lease_until > now {
                continue;
            }
            let id = rows.names.text(Kind::RuntimeId, turn.runtime_id.0)?;
            let handle = self.runtime_handle(&id)?;
            let liveness = self.runtimes.liveness(&handle);
            let command = Command::System(SystemCommand::RecoverTurn { turn: turn.id, liveness });
            self.recover_one(rows, command, ticked)?;
        }
        Ok(())
    }

    /// C-7: a handle whose process is proven dead is repaired in place: it keeps its row, with the
    /// token to resume by, and says that it is stopped. So no later turn begins on a process that
    /// is gone, and nothing waits for it.
    fn recover_runtimes(&self, ticked: &mut Ticked) -> Result<(), HostError> {
        let living = ["starting", "running", "stopping"];
        let rows = self.read(&[
            Read::by(TableId::Runtimes, "status", &living),
            Read::by(TableId::Turns, "phase", &UNDER_WAY),
            Read::all(TableId::Instances),
        ])?;
        let (mut left, mut lone) = (Vec::new(), Vec::new());
        for row in rows.view.runtimes.iter() {
            if about_to_begin(&rows, row) {
                continue;
            }
            let id = rows.names.text(Kind::RuntimeId, row.id.0)?;
            let handle = RuntimeHandle::of(id, Some(*row), &rows);
            if !self.runtimes.serves(&handle) {
                continue;
            }
            match (self.runtimes.liveness(&handle), row.status) {
                (Liveness::Dead, _) => {
                    if self.still_dead(row, &handle.id)?
                        && self.report_stopped(&handle.id)?.reply != Reply::Unchanged
                    {
                        ticked.recovered += 1;
                    }
                }
                (Liveness::Alive | Liveness::Unknown, RuntimeStatus::Stopping) => left.push(handle),
                (Liveness::Alive, RuntimeStatus::Starting | RuntimeStatus::Running) => {
                    if let Some(look) = Lone::seen(&rows, row, self.moment()) {
                        lone.push((*row, handle.id, look));
                    }
                }
                (Liveness::Unknown, RuntimeStatus::Starting | RuntimeStatus::Running)
                | (Liveness::Alive | Liveness::Unknown, RuntimeStatus::Stopped) => {}
            }
        }
        self.stop_lone(lone, rows.view.now, ticked)?;
        self.stop_left(&left, ticked)
    }

    /// S-14: a process that nobody can speak to is asked to stop, once this instance has seen for a
    /// whole lease that its own is gone: one that only slept comes back before. The lease is over
    /// by the store's clock and by the moments of this instance, which stand still while the whole
    /// machine sleeps; and who renewed anything between two looks was there. Its turn, if it has
    /// one, ends as interrupted when it is proven dead.
    fn stop_lone(
        &self,
        seen: Vec<(Runtime, String, Lone)>,
        now: Time,
        ticked: &mut Ticked,
    ) -> Result<(), HostError> {
        let lease = self.settings()?.lease;
        let pace = Duration::from_micros(u64::try_from(lease.0).unwrap_or(0));
        let mut known = self.lone.lock().unwrap_or_else(PoisonError::into_inner).clone();
        known.retain(|id, _| seen.iter().any(|(row, ..)| row.id == *id));
        for (row, id, look) in seen {
            let first = *known
                .entry(row.id)
                .and_modify(|first| *first = first.or_anew(look))
                .or_insert(look);
            let passed = look.moment.saturating_duration_since(first.moment);
            if first.since + lease > now || passed < pace {
                continue;
            }
            // Looked at again, as before a report that it is stopped.
            let owner = uuid_text(row.instance_id.0);
            let rows = self.read(&[
                Read::by(TableId::Runtimes, "id", &[&id]),
                Read::by(TableId::Turns, "phase", &UNDER_WAY),
                Read::by(TableId::Instances, "id", &[&owner]),
            ])?;
            let same = rows.view.runtimes.id(row.id.0) == Some(&row)
                && Lone::seen(&rows, &row, look.moment).is_some_and(|l| l.leases == look.leases);
            if same && self.report(&id, RuntimeStatus::Stopping)?.reply != Reply::Unchanged {
                ticked.recovered += 1;
            }
        }
        *self.lone.lock().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(())
    }

    /// Looked at again, since others were looked at for seconds in between: its owner may have
    /// begun it meanwhile, or have come back. What is left of the window is from this read to the
    /// report that follows at once: one who did not renew his lease and records his process in
    /// between is told stopped although it runs. Only a report that names what was seen could
    /// close it.
    fn still_dead(&self, seen: &Runtime, id: &str) -> Result<bool, HostError> {
        let owner = uuid_text(seen.instance_id.0);
        let rows = self.read(&[
            Read::by(TableId::Runtimes, "id", &[id]),
            Read::by(TableId::Instances, "id", &[&owner]),
        ])?;
        let row = rows.view.runtimes.id(seen.id.0).filter(|row| *row == seen);
        let Some(row) = row.filter(|row| !about_to_begin(&rows, row)) else {
            return Ok(false);
        };
        let handle = RuntimeHandle::of(id.to_owned(), Some(*row), &rows);
        Ok(self.runtimes.liveness(&handle) == Liveness::Dead)
    }

    /// S-14, S-22: who asked for a stop and is gone, or could not do it, leaves it to whoever can.
    /// A later turn has a new handle, so that otherwise the old process would work on beside it
    /// (S-10).
    fn stop_left(&self, seen: &[RuntimeHandle], ticked: &mut Ticked) -> Result<(), HostError> {
        let own: Vec<Stored> = seen.iter().map(|h| Stored::Text(h.id.clone())).collect();
        if own.is_empty() {
            return Ok(());
        }
        let mut rows = self.read(&[
            Read::among(TableId::Runtimes, "id", own.clone()),
            Read::among(TableId::Resources, "runtime_id", own),
            Read::by(TableId::Jobs, "state", &["prepared"]),
            Read::all(TableId::Settings),
        ])?;
        let sessions = rows.texts(rows.view.runtimes.iter().map(|r| r.session_id))?;
        let jobs = rows.texts(rows.view.resources.iter().map(|r| r.job_id))?;
        self.read_on(
            &mut rows,
            vec![
                Read::among(TableId::Sessions, "id", sessions),
                Read::among(TableId::Jobs, "id", jobs),
            ],
        )?;
        // Whose it is cannot be read: that is not nobody's (C-10).
        if !rows.unreadable.is_empty() {
            return Ok(());
        }
        let now = rows.view.now;
        let settings =
            rows.view.settings.id(1).copied().unwrap_or(freehold_kernel::Settings::DEFAULT);
        let mut vain = self.vain.lock().unwrap_or_else(PoisonError::into_inner).clone();
        vain.retain(|_, until| *until > now);
        let mut handles = Vec::new();
        for row in rows.view.runtimes.iter() {
            if row.status == RuntimeStatus::Stopping
                && !vain.contains_key(&row.id)
                && nobody_stops(&rows, row)
            {
                let id = rows.names.text(Kind::RuntimeId, row.id.0)?;
                handles.push((row.id, RuntimeHandle::of(id, Some(*row), &rows)));
            }
        }
        let bound = Duration::from_micros(u64::try_from(settings.stop_bound.0).unwrap_or(0));
        let asked: Vec<RuntimeHandle> = handles.iter().map(|(_, handle)| handle.clone()).collect();
        let mut pulse = || {
            let _heard = self.renew();
        };
        let answers = match asked.is_empty() {
            true => Vec::new(),
            false => self.runtimes.stop_all(&asked, bound, &mut pulse),
        };
        for (index, (runtime, handle)) in handles.iter().enumerate() {
            match answers.get(index).copied().unwrap_or(Liveness::Unknown) {
                Liveness::Dead => {
                    if self.report_stopped(&handle.id)?.reply != Reply::Unchanged {
                        ticked.recovered += 1;
                    }
                }
                Liveness::Alive | Liveness::Unknown => {
                    // Not with every tick: each try takes its bound.
                    vain.insert(*runtime, now + settings.stop_bound + settings.lease);
                    let id = &handle.id;
                    ticked.troubles.push(format!(
                        "runtime {id} was asked to stop, and whoever asked is gone; it could not \
                         be stopped, and is tried again (S-14)"
                    ));
                }
            }
        }
        *self.vain.lock().unwrap_or_else(PoisonError::into_inner) = vain;
        Ok(())
    }

    fn recover_one(
        &self,
        rows: &Rows,
        command: Command,
        ticked: &mut Ticked,
    ) -> Result<(), HostError> {
        let asked = self.ask(&Who::system(), None, |c| {
            c.know(&rows.names);
            Ok(command)
        });
        match asked {
            Ok(accepted) => {
                if accepted.reply != Reply::Unchanged {
                    ticked.recovered += 1;
                }
                Ok(())
            }
            // Somebody was faster, or the owner came back.
            Err(HostError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn recover_attempts(&self, rows: &Rows, ticked: &mut Ticked) -> Result<(), HostError> {
        let machine = rows.view.instances.id(self.instance.0).map(|i| i.host);
        for attempt in rows.view.attempts.iter().filter(|a| unresolved(a)) {
            let served = rows.view.managed_roots.id(attempt.root_id.0).map(|r| r.host) == machine;
            let mine =
                attempt.state == AttemptState::Compensating && attempt.instance_id == self.instance;
            if !served || !(mine || attempt.lease_until <= rows.view.now) {
                continue;
            }
            match self.recover_attempt(rows, attempt) {
                Ok(()) => ticked.recovered += 1,
                Err(HostError::Refused(_)) => {}
                Err(error @ HostError::Store(_)) => return Err(error),
                Err(error) => ticked.troubles.push(error.to_string()),
            }
        }
        Ok(())
    }

    /// W-5: takes the path lock, looks, and lets the kernel decide: adopt or compensate.
    pub(crate) fn recover_attempt(&self, rows: &Rows, attempt: &Attempt) -> Result<(), HostError> {
        let place = self.place_of_attempt(rows, attempt)?;
        let lock = self.workspaces.lock(&place)?;
        let inspection = self.workspaces.inspect(&place, &mut || true);
        let (instance, id, evidence) = (self.instance, attempt.id, inspection.evidence);
        let recovered = self.ask(&Who::system(), None, |c| {
            c.know(&rows.names);
            crate::maker::learn_head(c, &inspection)?;
            Ok(Command::Attempt(AttemptCommand::Recover {
                attempt: id,
                token: Token(fresh()),
                instance,
                evidence,
            }))
        });
        match recovered {
            Ok(accepted) => match accepted.reply {
                Reply::Compensate { .. } => self.compensate(attempt.id, &lock, &place),
                _adopted => Ok(()),
            },
            // It is being undone by this instance already: go on with it.
            Err(error) if error.guard() == Some(Guard::AttemptLapsed) => {
                self.compensate(attempt.id, &lock, &place)
            }
            Err(error) => Err(error),
        }
    }

    /// The open sessions whose inputs wait with no turn under way, by id text (P-44): their turn's
    /// instance is gone, or nothing could begin when it ended. Only a host that runs turns can go
    /// on with them: it asks for [`freehold_kernel::TurnCommand::TakeUp`] and starts what that
    /// admits. Worth a look after each [`Host::tick`].
    ///
    /// # Errors
    /// The store's failure.
    pub fn waiting_sessions(&self) -> Result<Vec<String>, HostError> {
        let mut rows = self.read(&[Read::by(TableId::Inputs, "state", &["queued"])])?;
        let sessions = rows.texts(rows.view.inputs.iter().filter_map(|i| i.session_id))?;
        self.read_on(
            &mut rows,
            vec![
                Read::among(TableId::Sessions, "id", sessions.clone()),
                Read::among(TableId::Turns, "session_id", sessions),
            ],
        )?;
        let busy =
            |id| rows.view.turns.iter().any(|t| t.session_id == id && t.phase != TurnPhase::Ended);
        rows.view
            .sessions
            .iter()
            .filter(|s| s.lifecycle == SessionLifecycle::Open && !busy(s.id))
            .map(|s| Ok(rows.names.text(Kind::SessionId, s.id.0)?))
            .collect()
    }

    /// The turns of this instance that were admitted and have not begun, by id text (S-10, S-14).
    /// The word to start one
    /// ([`SessionEffect::StartTurn`](freehold_kernel::SessionEffect::StartTurn)) goes to whoever
    /// asked, once: it is lost with a reply that was only heard of by its request id (D-19), or
    /// goes to the caller of another instance that ended the turn before. Such a turn waits until
    /// this host starts it; with its lease neither renewed nor begun on in time, recovery ends it
    /// as interrupted. Worth a look after each [`Host::tick`]; a host leaves out what it is just
    /// starting.
    ///
    /// # Errors
    /// The store's failure.
    pub fn unstarted_turns(&self) -> Result<Vec<String>, HostError> {
        let rows = self.read(&[Read::by(TableId::Turns, "phase", &["waiting_for_slot"])])?;
        rows.view
            .turns
            .iter()
            .filter(|t| t.instance_id == self.instance)
            .map(|t| Ok(rows.names.text(Kind::TurnId, t.id.0)?))
            .collect()
    }

    /// The attempts that are not resolved, by id text: for reports.
    ///
    /// # Errors
    /// The store's failure.
    pub fn unresolved_attempts(&self) -> Result<Vec<String>, HostError> {
        let rows = self.read(&[Read::all(TableId::Attempts)])?;
        rows.view
            .attempts
            .iter()
            .filter(|a| unresolved(a))
            .map(|a| Ok(rows.names.text(Kind::AttemptId, a.id.0)?))
            .collect()
    }
}

/// Who is about to start it lives: that it has no process yet is no death.
fn about_to_begin(rows: &Rows, runtime: &Runtime) -> bool {
    let held = rows.view.instances.id(runtime.instance_id.0);
    runtime.status == RuntimeStatus::Starting && held.is_some_and(|i| i.lease_until > rows.view.now)
}

/// One look at a process whose instance is gone, and with it whoever renewed a turn on it: nobody
/// else can speak to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lone {
    /// By the store's clock.
    since: Time,
    /// By the looking instance's own.
    moment: Instant,
    /// The lapsed leases: of the instance, and of the newest turn on it.
    leases: (Option<Time>, Option<Time>),
}

impl Lone {
    /// None of one whose instance lives, or renewed its turn.
    fn seen(rows: &Rows, runtime: &Runtime, moment: Instant) -> Option<Lone> {
        let since = rows.view.now;
        let instance = rows.view.instances.id(runtime.instance_id.0).map(|i| i.lease_until);
        let turns = rows.view.turns.iter().filter(|t| t.runtime_id == runtime.id);
        let leases = (instance, turns.map(|t| t.lease_until).max());
        let holds = |lease: Option<Time>| lease.is_some_and(|until| until > since);
        let lone = runtime.kind == RuntimeKind::Local && !holds(leases.0) && !holds(leases.1);
        lone.then_some(Lone { since, moment, leases })
    }

    /// The first look, as long as nobody renewed anything since.
    fn or_anew(self, later: Lone) -> Lone {
        if self.leases == later.leases { self } else { later }
    }
}

/// Whether no close that lives, no barrier that lives and no job has this stop to do. What a job
/// names is the job's, with its tries and its report (C-6, C-8); not if it was cancelled.
fn nobody_stops(rows: &Rows, runtime: &Runtime) -> bool {
    let now = rows.view.now;
    let closing = rows.view.sessions.id(runtime.session_id.0).is_some_and(|session| {
        session.lifecycle == SessionLifecycle::Closing && !lapsed(session.closing_lease, now)
    });
    let barred = rows.view.jobs.iter().any(|job| {
        let over = job.task_id == runtime.task_id
            || (job.environment_id.is_some() && job.environment_id == runtime.task_environment_id);
        job.state == JobState::Prepared && over && !lapsed(job.lease_until, now)
    });
    let named = rows.view.resources.iter().any(|resource| {
        let cancelled = |job: &Job| job.state == JobState::Cancelled;
        let job = rows.view.jobs.id(resource.job_id.0);
        resource.runtime_id == Some(runtime.id) && !job.is_some_and(cancelled)
    });
    !closing && !barred && !named
}
