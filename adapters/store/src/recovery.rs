//! Recovery: brings to an end what a gone instance left, and nothing else (B-7, C-4, C-11, S-14,
//! S-22, T-9, W-5). Every command re-checks inside its write, so a slow but living owner is not
//! robbed. It runs with every tick, not only at start.

use freehold_kernel::{
    Attempt, AttemptCommand, AttemptState, CleanupCommand, Command, Guard, JobState, Kind,
    Liveness, Reply, RuntimeStatus, SessionLifecycle, SystemCommand, TableId, Token, TurnPhase,
    WorkspaceState,
};

use crate::host::{Drive, Host, HostError, Who, fresh};
use crate::runtimes::RuntimeHandle;
use crate::store::{Read, Rows, Store};
use crate::worker::{Ticked, lapsed, unresolved};
use crate::workspaces::Workspaces;

impl<S: Store, W: Workspaces, D: Drive> Host<S, W, D> {
    pub(crate) fn recover(&self, ticked: &mut Ticked) -> Result<(), HostError> {
        let rows = self.read(&[
            Read::by(TableId::Jobs, "state", &["prepared"]),
            Read::by(TableId::Workspaces, "state", &["deleting"]),
            Read::by(TableId::Sessions, "lifecycle", &["closing"]),
            Read::by(
                TableId::Turns,
                "phase",
                &["waiting_for_slot", "running", "between_legs", "draining", "background"],
            ),
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
            Read::all(TableId::Instances),
        ])?;
        let now = rows.view.now;
        for row in rows.view.runtimes.iter() {
            // Who is about to start it lives: that it has no process yet is no death.
            let held = rows.view.instances.id(row.instance_id.0);
            let held = held.is_some_and(|instance| instance.lease_until > now);
            if row.status == RuntimeStatus::Starting && held {
                continue;
            }
            let id = rows.names.text(Kind::RuntimeId, row.id.0)?;
            let handle = RuntimeHandle::of(id, Some(*row), &rows);
            if !self.runtimes.serves(&handle) {
                continue;
            }
            match self.runtimes.liveness(&handle) {
                Liveness::Dead => {
                    if self.report_stopped(&handle.id)?.reply != Reply::Unchanged {
                        ticked.recovered += 1;
                    }
                }
                Liveness::Alive | Liveness::Unknown => {}
            }
        }
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
    /// on with them: it asks for [`TurnCommand::TakeUp`](freehold_kernel::TurnCommand::TakeUp) and starts what that admits. Worth a look
    /// after each [`Host::tick`].
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
