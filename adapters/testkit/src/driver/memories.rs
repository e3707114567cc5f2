//! What the oracle remembers of an accepted command.

use freehold_kernel::*;

use super::backend::Answer;
use super::oracle::{Oracle, Talk, Work};

impl Oracle {
    pub(super) fn remember(
        &mut self,
        envelope: &Envelope,
        reply: Reply,
        answer: &Answer,
        now: Time,
    ) {
        self.remember_events(&envelope.command, &answer.events);
        match envelope.command {
            Command::Session(c) => self.remember_session(c, reply, now),
            Command::Turn(TurnCommand::Submit { input, .. }) => {
                self.inputs.insert(input);
            }
            Command::Turn(TurnCommand::Advance { turn, phase }) if reply == Reply::Done => {
                if let Some((_, parked)) = self.turns.get_mut(&turn) {
                    *parked = phase == TurnPhase::Background;
                }
            }
            Command::Task(c) => self.remember_task(c),
            Command::Operation(c) => self.remember_operation(c, reply),
            Command::System(SystemCommand::RecoverBarrier { job }) => {
                self.barriers.retain(|_, (_, j, _)| *j != job);
            }
            Command::System(SystemCommand::RecoverClosing { session }) => {
                if let Some(talk) = self.talks.get_mut(&session) {
                    talk.closing = None;
                }
            }
            Command::System(SystemCommand::RecoverWorkspaceDelete { workspace }) => {
                self.restore(workspace);
            }
            Command::Turn(_)
            | Command::Attempt(_)
            | Command::Cleanup(_)
            | Command::Operator(_)
            | Command::System(_) => {}
        }
    }

    /// Turns and runtimes by what was said of them.
    fn remember_events(&mut self, command: &Command, events: &[Event]) {
        let session = match *command {
            Command::Turn(TurnCommand::Submit { session, .. }) => Some(session),
            Command::Turn(TurnCommand::End { turn, .. }) => self.turns.get(&turn).map(|(s, _)| *s),
            _ => None,
        };
        for event in events {
            let id = event.subject.key.id;
            match event.kind {
                EventKind::TurnAdmitted => {
                    let session = session.unwrap_or(SessionId(0));
                    self.turns.insert(TurnId(id), (session, false));
                }
                EventKind::TurnEnded => {
                    self.turns.remove(&TurnId(id));
                    *self.terminal.entry(TurnId(id)).or_default() += 1;
                }
                EventKind::RuntimeStarting => {
                    let session = session.unwrap_or(SessionId(0));
                    self.runtimes.insert(RuntimeId(id), (session, true));
                }
                EventKind::RuntimeReported if event.detail == "stopped" => {
                    if let Some((_, lives)) = self.runtimes.get_mut(&RuntimeId(id)) {
                        *lives = false;
                    }
                }
                _ => {}
            }
        }
    }

    fn remember_session(&mut self, command: SessionCommand, reply: Reply, now: Time) {
        match command {
            SessionCommand::Create { session, task, .. } => {
                self.used.insert((IdentityKind::Session, session.0));
                let talk = Talk { task, archived: None, closing: None, starred: false };
                self.talks.insert(session, talk);
            }
            SessionCommand::BeginClose { session, kind, token, .. } if reply == Reply::Done => {
                if let Some(talk) = self.talks.get_mut(&session) {
                    talk.closing = Some((kind, token, now + Settings::DEFAULT.lease));
                }
            }
            SessionCommand::CommitClose { session, .. } => {
                let kind = self.talks.get(&session).and_then(|t| t.closing).map(|(k, ..)| k);
                if kind == Some(ClosingKind::Delete) {
                    self.talks.remove(&session);
                } else if let Some(talk) = self.talks.get_mut(&session) {
                    (talk.closing, talk.archived) = (None, Some(None));
                }
            }
            SessionCommand::AbortClose { session, .. } => {
                if let Some(talk) = self.talks.get_mut(&session) {
                    talk.closing = None;
                }
            }
            SessionCommand::Unarchive { session } => {
                if let Some(talk) = self.talks.get_mut(&session) {
                    talk.archived = None;
                }
            }
            SessionCommand::Star { session, starred } => {
                if let Some(talk) = self.talks.get_mut(&session) {
                    talk.starred = starred;
                }
            }
            SessionCommand::BeginClose { .. }
            | SessionCommand::Link { .. }
            | SessionCommand::RecordActivity { .. } => {}
        }
    }

    fn remember_task(&mut self, command: TaskCommand) {
        match command {
            TaskCommand::CreateWorkspace { workspace } => {
                self.used.insert((IdentityKind::Workspace, workspace.0));
                self.workspaces.insert(workspace, None);
            }
            TaskCommand::Create { task, workspace, .. } => {
                self.used.insert((IdentityKind::Task, task.0));
                self.tasks.insert(task, Work { workspace, archived_by: None });
            }
            TaskCommand::Move { .. }
            | TaskCommand::CreateEnvironment { .. }
            | TaskCommand::MarkMerged { .. }
            | TaskCommand::RecordUnmanaged { .. }
            | TaskCommand::Transfer { .. } => {}
        }
    }

    fn remember_operation(&mut self, command: OperationCommand, reply: Reply) {
        match command {
            OperationCommand::Reserve { operation, task, trigger, .. } => {
                if let Reply::Job { job, state: JobState::Prepared } = reply {
                    self.barriers.entry(task).or_insert((operation, job, trigger));
                }
            }
            OperationCommand::Mutate { operation, .. } => self.mutated(operation),
            OperationCommand::Abort { operation, .. } => {
                self.barriers.retain(|_, (o, ..)| *o != operation);
            }
            OperationCommand::Unarchive { task, cascade } => {
                let by = self.tasks.get(&task).and_then(|t| t.archived_by);
                let back: Vec<TaskId> = self
                    .tasks
                    .iter()
                    .filter(|(id, t)| **id == task || (cascade && t.archived_by == by))
                    .map(|(id, _)| *id)
                    .collect();
                for task in back {
                    self.reopen(task, by);
                }
            }
            OperationCommand::BeginWorkspaceDelete { workspace, operation, .. } => {
                self.workspaces.insert(workspace, Some(operation));
            }
            OperationCommand::AbortWorkspaceDelete { workspace, .. } => self.restore(workspace),
            OperationCommand::FinishWorkspaceDelete { workspace, .. } => {
                self.workspaces.remove(&workspace);
            }
            OperationCommand::RenewBarrier { .. } | OperationCommand::Snapshot { .. } => {}
        }
    }

    /// T-6: exactly the sessions that the operation closed.
    fn reopen(&mut self, task: TaskId, by: Option<OperationId>) {
        if let Some(work) = self.tasks.get_mut(&task) {
            work.archived_by = None;
        }
        for talk in self.talks.values_mut().filter(|t| t.task == task) {
            if by.is_some() && talk.archived == Some(by) && talk.closing.is_none() {
                talk.archived = None;
            }
        }
    }

    fn restore(&mut self, workspace: WorkspaceId) {
        let operation = self.workspaces.get(&workspace).copied().flatten();
        self.barriers.retain(|_, (o, ..)| Some(*o) != operation);
        self.workspaces.insert(workspace, None);
    }

    fn mutated(&mut self, operation: OperationId) {
        let of: Vec<(TaskId, Trigger)> = self
            .barriers
            .iter()
            .filter(|(_, (o, ..))| *o == operation)
            .map(|(task, (_, _, trigger))| (*task, *trigger))
            .collect();
        self.barriers.retain(|_, (o, ..)| *o != operation);
        for (task, trigger) in of {
            match trigger {
                Trigger::Archive | Trigger::CascadeArchive => {
                    if let Some(work) = self.tasks.get_mut(&task) {
                        work.archived_by = Some(operation);
                    }
                    for talk in self.talks.values_mut().filter(|t| t.task == task) {
                        talk.closing = None;
                        talk.archived = talk.archived.or(Some(Some(operation)));
                    }
                }
                Trigger::Delete
                | Trigger::CascadeDelete
                | Trigger::WorkspaceDelete
                | Trigger::QuickChatExpire => {
                    let gone = self.tasks.remove(&task);
                    self.talks.retain(|_, t| t.task != task);
                    if trigger == Trigger::WorkspaceDelete
                        && let Some(work) = gone
                    {
                        self.workspaces.remove(&work.workspace);
                    }
                }
                Trigger::EnvironmentReset
                | Trigger::Reconcile
                | Trigger::OrphanRemoval
                | Trigger::Unreadable => {}
            }
        }
    }
}
