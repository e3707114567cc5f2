//! Sessions: create, link, activity, star, and reopening (S-1..S-6, S-27, S-28, W-23).

use super::relations::*;
use super::{Ctx, known};
use crate::command::SessionCommand;
use crate::decision::*;
use crate::guard::{Guard, GuardSet};
use crate::id::*;
use crate::machine;
use crate::refusal::{InTheWay, Refusal};
use crate::rows::*;

impl<G: GuardSet> Ctx<'_, G> {
    pub(crate) fn session_command(
        &mut self,
        command: &SessionCommand,
    ) -> Result<SessionDecision, Refusal> {
        let reply = match *command {
            SessionCommand::Create { session, task, environment, source, parent } => {
                self.create_session(session, task, environment, source, parent)
            }
            SessionCommand::Link { session, environment } => self.link(session, environment),
            SessionCommand::RecordActivity { session, epoch, activity } => {
                self.record_activity(session, epoch, activity)
            }
            SessionCommand::Star { session, starred } => self.star(session, starred),
            SessionCommand::BeginClose { session, kind, token, automatic, force } => {
                self.begin_close(session, kind, token, automatic, force)
            }
            SessionCommand::CommitClose { session, token } => self.commit_close(session, token),
            SessionCommand::AbortClose { session, token } => self.abort_close(session, token),
            SessionCommand::Unarchive { session } => self.unarchive_session(session),
        }?;
        Ok(SessionDecision { reply })
    }

    fn create_session(
        &mut self,
        id: SessionId,
        task_id: TaskId,
        environment: Option<EnvironmentId>,
        source: SessionSource,
        parent: Option<SessionId>,
    ) -> Result<Reply, Refusal> {
        let task = self.task(task_id)?;
        self.fresh_identity(IdentityKind::Session, id.0)?;
        self.open_task(&task)?;
        let environment = match environment {
            Some(id) => {
                let row = known!(self, environments, id, EnvironmentKnown)?;
                self.may_use(&task, &row)?;
                Some(row.id)
            }
            None => task.current_environment_id,
        };
        self.view.sessions.insert(Session {
            id,
            task_id,
            task_environment_id: environment,
            lifecycle: SessionLifecycle::Open,
            closing_kind: None,
            closing_token: None,
            closing_by: None,
            closing_lease: None,
            activity: Activity::Created,
            epoch: 1,
            source,
            starred: false,
            parent_session_id: parent,
            archived_at: None,
            archived_by: None,
            created_at: self.now,
            updated_at: self.now,
            last_activity_at: self.now,
        });
        self.remember(IdentityKind::Session, id.0);
        self.event(EventKind::SessionCreated, RowKey::session(id), source.code());
        self.view.tasks.touch(task_id.0);
        self.anchor_borrowing(&task, environment);
        self.offer_primary(task_id, id);
        Ok(Reply::Done)
    }

    fn link(&mut self, id: SessionId, environment: EnvironmentId) -> Result<Reply, Refusal> {
        let session = self.session(id)?;
        let task = self.task(session.task_id)?;
        self.open_task(&task)?;
        self.is_open(&session)?;
        self.no_turn_work(&session)?;
        let row = known!(self, environments, environment, EnvironmentKnown)?;
        self.may_use(&task, &row)?;
        if session.task_environment_id == Some(environment) {
            return Ok(Reply::Unchanged);
        }
        let now = self.now;
        if let Some(s) = self.view.sessions.edit(id.0) {
            s.task_environment_id = Some(environment);
            s.updated_at = now;
        }
        self.event(EventKind::SessionLinked, RowKey::session(id), "");
        // What runs for it stands where it was begun: its next turn gets a new one (S-14).
        self.stop_runtimes(|r| r.session_id == id);
        self.view.tasks.touch(task.id.0);
        self.anchor_borrowing(&task, Some(environment));
        Ok(Reply::Done)
    }

    /// A task under which something new may come: active, no barrier (B-2, S-3).
    pub(crate) fn open_task(&self, task: &Task) -> Result<(), Refusal> {
        self.hold(Guard::TaskActive, task.lifecycle == TaskLifecycle::Active, || {
            InTheWay::one(task.row_key())
        })?;
        self.unbarred(task.id)
    }

    /// No job holds the task's barrier (B-2).
    pub(crate) fn unbarred(&self, task: TaskId) -> Result<(), Refusal> {
        let held = barrier(self.view, task);
        self.hold(Guard::TaskUnbarred, held.is_none(), || {
            InTheWay::of(held.iter().map(|j| j.row_key()))
        })
    }

    /// An environment that a session of this task may refer to: its own task's, or one that may
    /// be borrowed (W-23).
    fn may_use(&self, task: &Task, environment: &Environment) -> Result<(), Refusal> {
        if environment.task_id == task.id {
            return Ok(());
        }
        let owner = self.task(environment.task_id)?;
        self.hold(Guard::OwnerActive, owner.lifecycle == TaskLifecycle::Active, || {
            InTheWay::one(owner.row_key())
        })?;
        let held = barrier(self.view, owner.id);
        self.hold(Guard::OwnerUnbarred, held.is_none(), || {
            InTheWay::of(held.iter().map(|j| j.row_key()))
        })?;
        self.not_in_removal(environment.id)
    }

    /// No slot of the environment is in removal (C-18).
    pub(crate) fn not_in_removal(&self, environment: EnvironmentId) -> Result<(), Refusal> {
        let removing = removing_in(self.view, environment);
        self.hold(Guard::NotInRemoval, removing.clone().next().is_none(), || {
            InTheWay::of(removing.map(Row::row_key))
        })
    }

    /// Whoever adds a borrower versions the owner (D-23).
    fn anchor_borrowing(&mut self, task: &Task, environment: Option<EnvironmentId>) {
        let owner = environment.and_then(|e| self.view.environments.id(e.0)).map(|e| e.task_id);
        if let Some(owner) = owner.filter(|o| *o != task.id) {
            self.view.tasks.touch(owner.0);
        }
    }

    /// S-6: a task without a primary gives that place to the next session created or reopened.
    pub(crate) fn offer_primary(&mut self, task: TaskId, session: SessionId) {
        let now = self.now;
        if let Some(row) = self.view.tasks.edit(task.0)
            && row.primary_session_id.is_none()
        {
            row.primary_session_id = Some(session);
            row.updated_at = now;
            self.event(EventKind::PrimaryChanged, RowKey::task(task), "");
        }
    }

    /// S-6: when the primary is closed, a running session takes its place, else the newest open
    /// one (ties: smallest id), else the newest whose own close is not committed: it may still be
    /// given up. With none left the task has no primary.
    pub(crate) fn release_primary(&mut self, task: TaskId, closed: SessionId) {
        let holds =
            self.view.tasks.id(task.0).is_some_and(|t| t.primary_session_id == Some(closed));
        if !holds {
            return;
        }
        let next = self
            .view
            .sessions
            .iter()
            .filter(|s| s.task_id == task && s.id != closed)
            .filter(|s| match s.lifecycle {
                SessionLifecycle::Open => true,
                SessionLifecycle::Closing => s.archived_at.is_none(),
                SessionLifecycle::Archived => false,
            })
            .max_by(|a, b| {
                let open = |s: &Session| s.lifecycle == SessionLifecycle::Open;
                let running = |s: &Session| s.activity == Activity::Running;
                (open(a), running(a), a.created_at)
                    .cmp(&(open(b), running(b), b.created_at))
                    .then_with(|| b.id.cmp(&a.id))
            })
            .map(|s| s.id);
        let now = self.now;
        if let Some(row) = self.view.tasks.edit(task.0) {
            row.primary_session_id = next;
            row.updated_at = now;
        }
        self.event(EventKind::PrimaryChanged, RowKey::task(task), "");
    }

    fn record_activity(
        &mut self,
        id: SessionId,
        epoch: u32,
        activity: Activity,
    ) -> Result<Reply, Refusal> {
        let session = self.session(id)?;
        // S-4: a late write changes nothing and logs nothing; it is no error of its writer.
        let open = session.lifecycle == SessionLifecycle::Open;
        if !self.test(Guard::ActivityWhileOpen, open)
            || !self.test(Guard::EpochCurrent, session.epoch == epoch)
        {
            return Ok(Reply::Unchanged);
        }
        let Some(input) = machine::activity::input_for(activity) else {
            return Err(Refusal {
                guard: Guard::ActivityByWriter,
                rows: InTheWay::one(session.row_key()),
            });
        };
        let turn = turns_of(self.view, id).next().copied();
        let agrees = activity != Activity::Running || turn.is_some();
        self.hold(Guard::RunningNeedsTurn, agrees, || InTheWay::one(session.row_key()))?;
        let Some(next) = machine::activity::step(session.activity, input) else {
            return Ok(Reply::Unchanged);
        };
        if next == session.activity {
            return Ok(Reply::Unchanged);
        }
        self.set_activity(id, next);
        Ok(Reply::Done)
    }

    pub(crate) fn set_activity(&mut self, id: SessionId, next: Activity) {
        let now = self.now;
        if let Some(s) = self.view.sessions.edit(id.0)
            && s.activity != next
        {
            s.activity = next;
            s.updated_at = now;
            s.last_activity_at = now;
            self.event(EventKind::ActivityChanged, RowKey::session(id), next.code());
        }
    }

    fn star(&mut self, id: SessionId, starred: bool) -> Result<Reply, Refusal> {
        let session = self.session(id)?;
        // Unstarring an archived session only flags (X42); starring one would have to reopen it.
        if starred {
            self.is_open(&session)?;
        }
        if session.starred == starred {
            return Ok(Reply::Unchanged);
        }
        let now = self.now;
        if let Some(s) = self.view.sessions.edit(id.0) {
            s.starred = starred;
            s.updated_at = now;
        }
        self.event(
            EventKind::SessionStarred,
            RowKey::session(id),
            if starred { "on" } else { "off" },
        );
        Ok(Reply::Done)
    }

    /// An open session (S-12); a closing one and an archived one are refused apart.
    pub(crate) fn is_open(&self, session: &Session) -> Result<(), Refusal> {
        let at = || InTheWay::one(session.row_key());
        self.hold(Guard::SessionNotClosing, session.lifecycle != SessionLifecycle::Closing, at)?;
        self.hold(Guard::SessionOpen, session.lifecycle != SessionLifecycle::Archived, at)
    }

    fn unarchive_session(&mut self, id: SessionId) -> Result<Reply, Refusal> {
        let session = self.session(id)?;
        let task = self.task(session.task_id)?;
        self.hold(Guard::SessionArchived, session.lifecycle == SessionLifecycle::Archived, || {
            InTheWay::one(session.row_key())
        })?;
        self.open_task(&task)?;
        let without = self.reopen(&session)?;
        self.view.tasks.touch(task.id.0);
        self.offer_primary(task.id, id);
        Ok(if without { Reply::OpenedWithoutEnvironment } else { Reply::Done })
    }

    /// Opens an archived session. A borrowed environment that is not available is let go, and the
    /// answer says so (W-23).
    pub(crate) fn reopen(&mut self, session: &Session) -> Result<bool, Refusal> {
        self.step_session(session, machine::session::Input::Unarchive)?;
        let available = session.task_environment_id.is_none_or(|id| {
            self.view.environments.id(id.0).is_some_and(|e| {
                let owned = e.task_id == session.task_id;
                let lendable = is_active(self.view, e.task_id)
                    && barrier(self.view, e.task_id).is_none()
                    && removing_in(self.view, e.id).next().is_none();
                owned || self.test(Guard::BorrowedAvailable, lendable)
            })
        });
        let now = self.now;
        if let Some(s) = self.view.sessions.edit(session.id.0) {
            s.lifecycle = SessionLifecycle::Open;
            s.archived_at = None;
            s.archived_by = None;
            s.epoch += 1;
            s.updated_at = now;
            if !available {
                s.task_environment_id = None;
            }
        }
        let key = session.row_key();
        self.event(EventKind::SessionReopened, key, "");
        if available {
            let environment = session.task_environment_id;
            if let Some(task) = self.view.tasks.id(session.task_id.0).copied() {
                self.anchor_borrowing(&task, environment);
            }
        } else {
            self.event(EventKind::EnvironmentUnavailable, key, "");
        }
        Ok(!available)
    }
}
