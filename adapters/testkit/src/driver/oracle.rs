//! The naive history oracle: it folds the plain list of accepted commands into what a person would
//! remember of it, and never looks at a row. Written from the rules (D-14, S-3, S-12, S-20..S-28,
//! T-6, T-9, B-1, B-2, B-7, B-9), not from the decisions. What it cannot know (environments,
//! instances) it does not judge.

use std::collections::{BTreeMap, BTreeSet};

use freehold_kernel::*;

use super::backend::Answer;

/// A session as one remembers it.
#[derive(Clone, Debug)]
pub struct Talk {
    /// Its task.
    pub task: TaskId,
    /// By a task's operation, or by a person (none).
    pub archived: Option<Option<OperationId>>,
    /// Under way: which, with whose token, until when.
    pub closing: Option<(ClosingKind, Token, Time)>,
    /// Whether it is starred.
    pub starred: bool,
}

/// A task as one remembers it.
#[derive(Clone, Debug)]
pub struct Work {
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// By which operation it is archived.
    pub archived_by: Option<OperationId>,
}

/// What was accepted, and what follows from it.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    /// The list itself.
    pub accepted: Vec<Envelope>,
    /// The sessions.
    pub talks: BTreeMap<SessionId, Talk>,
    /// The tasks.
    pub tasks: BTreeMap<TaskId, Work>,
    /// The workspaces, with the operation that deletes them.
    pub workspaces: BTreeMap<WorkspaceId, Option<OperationId>>,
    /// Every id that was ever given.
    pub used: BTreeSet<(IdentityKind, u128)>,
    /// Barriers that stand.
    pub barriers: BTreeMap<TaskId, (OperationId, JobId, Trigger)>,
    /// Turns under way, with their session; `true` when parked in the background.
    pub turns: BTreeMap<TurnId, (SessionId, bool)>,
    /// Terminal events per turn.
    pub terminal: BTreeMap<TurnId, u32>,
    /// Runtimes with their session; `true` while they live.
    pub runtimes: BTreeMap<RuntimeId, (SessionId, bool)>,
    /// Every input.
    pub inputs: BTreeSet<InputId>,
}

type Expect = Result<Option<Reply>, Guard>;

impl Oracle {
    /// Judges an answer, then remembers it.
    pub fn judge(&mut self, envelope: &Envelope, answer: &Answer, now: Time) -> Result<(), String> {
        if answer.replayed {
            return Ok(());
        }
        if let Err(refusal) = &answer.verdict
            && matches!(refusal.guard, Guard::Permission | Guard::RequestContent)
        {
            return Ok(());
        }
        if let Some(expected) = self.expect(&envelope.command, answer, now) {
            let same = match (&expected, &answer.verdict) {
                (Ok(None), Ok(_)) => true,
                (Ok(Some(reply)), Ok(given)) => reply == given,
                (Err(guard), Err(refusal)) => *guard == refusal.guard,
                (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
            };
            if !same {
                return Err(format!(
                    "the oracle expects {expected:?}, the kernel says {:?}",
                    answer.verdict
                ));
            }
        }
        if let Ok(reply) = answer.verdict {
            self.accepted.push(*envelope);
            self.remember(envelope, reply, answer, now);
            if let Some((turn, n)) = self.terminal.iter().find(|(_, n)| **n > 1) {
                return Err(format!("the oracle counts {n} terminal events of {turn:?}"));
            }
        }
        Ok(())
    }

    // What one can ask it.

    /// Was this id ever used?
    pub fn was_used(&self, kind: IdentityKind, id: u128) -> bool {
        self.used.contains(&(kind, id))
    }

    /// Was this session ever deleted?
    pub fn was_deleted(&self, session: SessionId) -> bool {
        self.was_used(IdentityKind::Session, session.0) && !self.talks.contains_key(&session)
    }

    /// Is the task archived now?
    pub fn is_archived(&self, task: TaskId) -> bool {
        self.tasks.get(&task).is_some_and(|t| t.archived_by.is_some())
    }

    /// May something come under the task now?
    fn open(&self, task: TaskId) -> Result<(), Guard> {
        if self.is_archived(task) {
            Err(Guard::TaskActive)
        } else if self.barriers.contains_key(&task) {
            Err(Guard::TaskUnbarred)
        } else {
            Ok(())
        }
    }

    fn known_task(&self, task: TaskId) -> Result<(), Guard> {
        match (self.tasks.contains_key(&task), self.was_used(IdentityKind::Task, task.0)) {
            (true, _) => Ok(()),
            (false, true) => Err(Guard::TaskNotDeleted),
            (false, false) => Err(Guard::TaskKnown),
        }
    }

    fn known_session(&self, session: SessionId) -> Result<&Talk, Guard> {
        match self.talks.get(&session) {
            Some(talk) => Ok(talk),
            None if self.was_deleted(session) => Err(Guard::SessionNotDeleted),
            None => Err(Guard::SessionKnown),
        }
    }

    fn busy(&self, session: SessionId) -> bool {
        self.turns.values().any(|(s, _)| *s == session)
    }

    /// What must be answered; none where it does not judge.
    fn expect(&self, command: &Command, answer: &Answer, now: Time) -> Option<Expect> {
        let expected = match *command {
            Command::Session(c) => self.expect_session(c, now),
            Command::Turn(TurnCommand::Submit { session, input, .. }) => {
                self.expect_submit(session, input)
            }
            Command::Task(TaskCommand::Create { task, workspace, parent, kind, expires_at }) => {
                let fits = (kind == TaskKind::QuickChat) == expires_at.is_some();
                self.expect_task(task, workspace, parent, fits)
            }
            Command::Operation(OperationCommand::Unarchive { task, cascade: false }) => {
                self.expect_unarchive(task)
            }
            Command::Operation(OperationCommand::Reserve { task, operation, .. }) => {
                // Only this: a barrier is given only where none is held by another operation.
                let given =
                    matches!(answer.verdict, Ok(Reply::Job { state: JobState::Prepared, .. }));
                let held = self.barriers.get(&task).is_some_and(|(o, ..)| *o != operation);
                if given && held {
                    return Some(Err(Guard::TaskUnbarred));
                }
                if given && !self.tasks.contains_key(&task) {
                    return Some(Err(Guard::TaskKnown));
                }
                return None;
            }
            Command::Operation(OperationCommand::Mutate { operation, .. }) => {
                let held = self.barriers.values().any(|(o, ..)| *o == operation);
                if !held { Some(Err(Guard::BarrierHeld)) } else { None }
            }
            Command::Turn(_)
            | Command::Task(_)
            | Command::Operation(_)
            | Command::Attempt(_)
            | Command::Cleanup(_)
            | Command::Operator(_)
            | Command::System(_) => None,
        }?;
        // It knows nothing of environments and instances.
        let beyond = |guard: Guard| {
            matches!(
                guard,
                Guard::EnvironmentKnown
                    | Guard::OwnerActive
                    | Guard::OwnerUnbarred
                    | Guard::NotInRemoval
                    | Guard::EnvironmentFinished
                    | Guard::InstanceKnown
                    | Guard::InstanceAlive
                    | Guard::NotDraining
                    | Guard::SameWorkspace
                    | Guard::TreeNotTooDeep
            )
        };
        match &answer.verdict {
            Err(refusal) if beyond(refusal.guard) => None,
            Ok(_) | Err(_) => Some(expected),
        }
    }

    fn expect_session(&self, command: SessionCommand, now: Time) -> Option<Expect> {
        let verdict = match command {
            SessionCommand::Create { session, task, .. } => self.known_task(task).and_then(|()| {
                if self.was_used(IdentityKind::Session, session.0) {
                    return Err(Guard::IdNeverUsed);
                }
                self.open(task).map(|()| Some(Reply::Done))
            }),
            SessionCommand::BeginClose { session, kind, automatic, force, .. } => {
                self.known_session(session).and_then(|talk| {
                    if talk.closing.is_some() {
                        return Err(Guard::NotAlreadyClosing);
                    }
                    if kind == ClosingKind::Archive && talk.archived.is_some() {
                        return Ok(Some(Reply::Unchanged));
                    }
                    if automatic && talk.starred {
                        return Err(Guard::NotStarred);
                    }
                    let blocks =
                        |(s, parked): &(SessionId, bool)| *s == session && !(force && *parked);
                    if self.turns.values().any(blocks) {
                        return Err(Guard::NoTurnWork);
                    }
                    Ok(Some(Reply::Done))
                })
            }
            SessionCommand::CommitClose { session, token } => {
                self.closing(session, token, now).and_then(|()| {
                    let living = |(s, lives): &(SessionId, bool)| *s == session && *lives;
                    if self.runtimes.values().any(living) {
                        return Err(Guard::RuntimeQuiesced);
                    }
                    Ok(Some(Reply::Closed))
                })
            }
            SessionCommand::AbortClose { session, token } => {
                self.closing(session, token, now).map(|()| Some(Reply::Done))
            }
            SessionCommand::Unarchive { session } => self.known_session(session).and_then(|talk| {
                if talk.archived.is_none() || talk.closing.is_some() {
                    return Err(Guard::SessionArchived);
                }
                self.open(talk.task).map(|()| None)
            }),
            SessionCommand::Link { .. }
            | SessionCommand::RecordActivity { .. }
            | SessionCommand::Star { .. } => return None,
        };
        Some(verdict)
    }

    fn closing(&self, session: SessionId, token: Token, now: Time) -> Result<(), Guard> {
        let talk = self.known_session(session)?;
        let (_, own, lease) = talk.closing.ok_or(Guard::CloseUnderWay)?;
        if own != token {
            return Err(Guard::ClosingToken);
        }
        if lease <= now { Err(Guard::ClosingLease) } else { Ok(()) }
    }

    fn expect_submit(&self, session: SessionId, input: InputId) -> Option<Expect> {
        let verdict = self.known_session(session).and_then(|talk| {
            if self.inputs.contains(&input) {
                return Err(Guard::InputNew);
            }
            self.open(talk.task)?;
            if talk.closing.is_some() {
                return Err(Guard::SessionNotClosing);
            }
            if talk.archived.is_some() {
                return Err(Guard::SessionOpen);
            }
            // Whether something older waits is the queue's affair.
            Ok(self.busy(session).then_some(Reply::Queued))
        });
        Some(verdict)
    }

    fn expect_task(
        &self,
        task: TaskId,
        workspace: WorkspaceId,
        parent: Option<TaskId>,
        fits: bool,
    ) -> Option<Expect> {
        let known = match self.workspaces.get(&workspace) {
            Some(_) => Ok(()),
            None if self.was_used(IdentityKind::Workspace, workspace.0) => {
                Err(Guard::WorkspaceNotDeleted)
            }
            None => Err(Guard::WorkspaceKnown),
        };
        let verdict = known.and_then(|()| parent.map_or(Ok(()), |p| self.known_task(p)));
        let verdict = verdict.and_then(|()| {
            if self.was_used(IdentityKind::Task, task.0) {
                return Err(Guard::IdNeverUsed);
            }
            if !fits {
                return Err(Guard::ExpiryFitsKind);
            }
            if self.workspaces.get(&workspace).is_some_and(Option::is_some) {
                return Err(Guard::WorkspaceActive);
            }
            match parent {
                Some(p) if self.is_archived(p) => Err(Guard::ParentActive),
                Some(p) if self.barriers.contains_key(&p) => Err(Guard::ParentUnbarred),
                Some(_) | None => Ok(Some(Reply::Done)),
            }
        });
        Some(verdict)
    }

    fn expect_unarchive(&self, task: TaskId) -> Option<Expect> {
        let verdict = self.known_task(task).and_then(|()| {
            if !self.is_archived(task) {
                return Err(Guard::TaskArchived);
            }
            if self.barriers.contains_key(&task) {
                return Err(Guard::TaskUnbarred);
            }
            Ok(None)
        });
        Some(verdict)
    }
}
