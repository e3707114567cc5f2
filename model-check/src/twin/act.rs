//! Who asks when, and what happens on disk. What is accepted, and what it changes, is the
//! kernel's word: the variables are decoded to rows, the command is decided on them, and the rows
//! that come out are encoded again.

use freehold_kernel::properties::{self, Granted, Step};
use freehold_kernel::*;

use super::Twin;
use super::bits::Vars;
use super::encode::encode;
use super::faults::{die, lapse};
use super::rows::*;
use crate::explore::Broken;
use crate::trace::Verdict;

/// One thing that can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
pub(super) enum Action {
    Reserve, Snapshot, Mutate, Abort, OperatorDies, RecoverBarrier, BarrierLapses, BarrierSlow,
    Begin, Lock, Make, SayMade, Persist, GiveUp, MakerDies, AttemptLapses, AttemptSlow,
    Create(u8), BeginClose(u8), AbortClose(u8), CommitClose(u8),
    Borrow, BeginReturn, AbortReturn, CommitReturn, Unarchive, Retry,
    Claim0, Claim1, Finish0, Finish1, PutBack, Settle, Permit, PermitInUse, WorkerDies,
    Rescue0, Rescue1, Claim0Lapses, Claim0Slow, Claim1Lapses, Claim1Slow,
    Act, Record, TakeOver, RecoveryDies, RemovalLapses, RecoverAttempt, Compensate,
}

/// Where an action leads, the code of the command that it asks, and the kernel's verdict.
#[derive(Clone, Debug)]
pub(super) struct Happened {
    pub(super) to: Vars,
    pub(super) command: &'static str,
    pub(super) verdict: Verdict,
}

pub(super) type Outcome = Result<Option<Happened>, Broken>;

/// What the kernel said, in the variables.
pub(super) struct Said {
    to: Vars,
    command: &'static str,
    verdict: Verdict,
    reply: Option<Reply>,
    pub(super) granted: Option<Granted>,
}

impl Said {
    fn accepted(&self) -> bool {
        self.reply.is_some()
    }

    /// The same, once what only its asker knows has been set.
    pub(super) fn then(mut self, learn: impl FnOnce(&mut Vars, bool)) -> Outcome {
        let accepted = self.accepted();
        learn(&mut self.to, accepted);
        Ok(Some(Happened { to: self.to, command: self.command, verdict: self.verdict }))
    }

    /// Whoever got a warrant goes to work with it; a settled removal ends the work.
    pub(super) fn hold(self) -> Outcome {
        let (executor, back) = match self.granted {
            Some(granted) => (1, u8::from(granted.step == RemovalStep::Returned)),
            None => (0, 0),
        };
        self.then(|v, _| (v.executor, v.back) = (executor, back))
    }
}

/// No command: somebody dies, time passes, something happens on disk.
pub(super) fn outside(to: Vars) -> Outcome {
    Ok(Some(Happened { to, command: "", verdict: Verdict::Outside }))
}

impl Twin {
    /// Asks the kernel, and looks at the step with every property of steps.
    pub(super) fn ask(&self, v: &Vars, command: Command) -> Result<Said, Broken> {
        let mut world = decode(&self.beginning, v);
        let before = world.view.clone();
        let envelope = envelope(command);
        let mut out = Output::default();
        let guards = AllBut(&self.without);
        let verdict = decide_with(&mut world.view, &envelope, &mut out, &guards);
        let granted = match &verdict {
            Ok(decision) => decision.warrant.as_ref().map(Granted::from),
            Err(_) => None,
        };
        let changes = properties::changes(&before, &world.view);
        let step = Step {
            before: &before,
            after: &world.view,
            command: &envelope,
            events: &out.events,
            accepted: verdict.is_ok(),
            granted,
            changes: &changes,
        };
        properties::check_step(&step, &world.history).map_err(Broken::from)?;
        world.view.commit();
        let to = encode(&self.beginning, &world.view, v).map_err(inexpressible)?;
        let (reply, verdict) = match verdict {
            Ok(decision) => (Some(decision.reply), Verdict::Accepted),
            Err(refusal) => (None, Verdict::Refused(refusal.guard.code())),
        };
        Ok(Said { to, command: envelope.command.code(), verdict, reply, granted })
    }

    /// What happens when this action happens; nothing if nobody would do it now.
    pub(super) fn happen(&self, v: &Vars, action: Action) -> Outcome {
        use Action as A;
        match action {
            A::Reserve | A::Snapshot | A::Mutate | A::Abort => self.operator(v, action),
            A::Begin | A::Lock | A::Make | A::SayMade | A::Persist | A::GiveUp => {
                self.maker(v, action)
            }
            A::Create(i) | A::BeginClose(i) | A::AbortClose(i) | A::CommitClose(i) => {
                self.session(v, action, usize::from(i))
            }
            A::Borrow | A::BeginReturn | A::AbortReturn | A::CommitReturn => {
                self.borrower(v, action)
            }
            A::Unarchive | A::Retry => self.person(v, action),
            A::Claim0 | A::Claim1 | A::Finish0 | A::Finish1 | A::PutBack | A::Settle => {
                self.worker(v, action)
            }
            A::Permit | A::PermitInUse => self.permit(v, action == A::PermitInUse),
            A::Act => self.act(v),
            A::Record => self.record(v),
            A::RecoverBarrier
            | A::RecoverAttempt
            | A::Compensate
            | A::TakeOver
            | A::Rescue0
            | A::Rescue1 => self.recover(v, action),
            A::OperatorDies | A::MakerDies | A::WorkerDies | A::RecoveryDies => die(v, action),
            A::BarrierLapses
            | A::BarrierSlow
            | A::AttemptLapses
            | A::AttemptSlow
            | A::Claim0Lapses
            | A::Claim0Slow
            | A::Claim1Lapses
            | A::Claim1Slow
            | A::RemovalLapses => lapse(v, action),
        }
    }

    fn operator(&self, v: &Vars, action: Action) -> Outcome {
        let (operation, instance, scope) = (OPERATION, MAKER, Scope::Task);
        let (command, then) = match (action, v.operator) {
            (Action::Reserve, 0) => {
                let reserve = OperationCommand::Reserve {
                    operation,
                    job: JOB,
                    task: OWNER,
                    trigger: Trigger::Archive,
                    environment: None,
                    cascade_root: None,
                    policy: UnsavedPolicy::Salvage,
                    branch_policy: BranchPolicy::Keep,
                    consent: Unsaved::NONE,
                    unsaved: Unsaved::NONE,
                    refuse_busy: false,
                    instance,
                    content: CONTENT,
                };
                (reserve, 1)
            }
            (Action::Snapshot, 1) => (OperationCommand::Snapshot { operation, scope, instance }, 2),
            (Action::Mutate, 2) => (OperationCommand::Mutate { operation, scope, instance }, 4),
            (Action::Abort, 1..=3) => (OperationCommand::Abort { operation, instance }, 4),
            (_, _) => return Ok(None),
        };
        // Refused on the way, it aborts (as the runner does).
        let refused = if v.operator == 0 || v.operator == 3 { 4 } else { 3 };
        self.ask(v, Command::Operation(command))?
            .then(|v, accepted| v.operator = if accepted { then } else { refused })
    }

    fn maker(&self, v: &Vars, action: Action) -> Outcome {
        let (attempt, token) = (ATTEMPT, MAKER_TOKEN);
        let (command, then) = match (action, v.maker) {
            (Action::Begin, 0) => {
                let begin = AttemptCommand::Begin {
                    attempt,
                    token,
                    environment: ENVIRONMENT,
                    repo: REPO,
                    repository: REPOSITORY,
                    slug: SLUG,
                    root: ROOT,
                    path: PATH,
                    branch: BRANCH,
                    worktree: STAMP,
                    branch_existed: false,
                    start_commit: START,
                    instance: MAKER,
                };
                (begin, 1)
            }
            // W-5: the token is checked under the path lock, before anything is made.
            (Action::Lock, 1) if v.executor == 0 => (AttemptCommand::Renew { attempt, token }, 2),
            (Action::Make, 2) => return outside(Vars { disk: 1, maker: 3, ..*v }),
            (Action::SayMade, 3) => (AttemptCommand::Materialised { attempt, token }, 4),
            (Action::Persist, 4) => (AttemptCommand::Persist { attempt, token }, 5),
            (Action::GiveUp, 1 | 3) => (AttemptCommand::GiveUp { attempt, token }, 5),
            (_, _) => return Ok(None),
        };
        // Refused, or told to undo it: the maker leaves, recovery does the rest.
        self.ask(v, Command::Attempt(command))?
            .then(|v, accepted| v.maker = if accepted { then } else { 5 })
    }

    fn session(&self, v: &Vars, action: Action, index: usize) -> Outcome {
        let (Some(id), Some(state)) = (SESSIONS.get(index), v.sessions().get(index).copied())
        else {
            return Ok(None);
        };
        let idle = matches!(state, 1 | 4 | 6);
        let closing = matches!(state, 2 | 5 | 7);
        match action {
            Action::Create(_) if state == 0 => self.people(v, create(*id, OWNER)),
            Action::BeginClose(_) if idle => self.people(v, begin_close(*id)),
            Action::AbortClose(_) if closing => self.people(v, abort_close(*id)),
            Action::CommitClose(_) if closing => self.people(v, commit_close(*id)),
            _not_now => Ok(None),
        }
    }

    fn borrower(&self, v: &Vars, action: Action) -> Outcome {
        match (action, v.borrower) {
            (Action::Borrow, 0) => self.people(v, create(BORROWING, OTHER)),
            (Action::BeginReturn, 1) => self.people(v, begin_close(BORROWING)),
            (Action::AbortReturn, 2) => self.people(v, abort_close(BORROWING)),
            (Action::CommitReturn, 2) => self.people(v, commit_close(BORROWING)),
            (_, _) => Ok(None),
        }
    }

    /// What people ask, they may ask again: a refusal changes nothing for them.
    fn people(&self, v: &Vars, command: SessionCommand) -> Outcome {
        self.ask(v, Command::Session(command))?.then(|_, _| {})
    }

    fn person(&self, v: &Vars, action: Action) -> Outcome {
        if action == Action::Unarchive {
            if v.unarchived == 1 {
                return Ok(None);
            }
            let command = OperationCommand::Unarchive { task: OWNER, cascade: false };
            return self
                .ask(v, Command::Operation(command))?
                .then(|v, accepted| v.unarchived = u8::from(accepted));
        }
        // Whoever retries does so once, when the job is listed as failed.
        let world = decode(&self.beginning, v);
        let failed = world.view.jobs.id(JOB.0).is_some_and(|j| j.state == JobState::Failed);
        if !failed || v.retried == 1 {
            return Ok(None);
        }
        self.ask(v, Command::Operator(OperatorCommand::Retry { job: JOB }))?
            .then(|v, accepted| v.retried = u8::from(accepted))
    }
}

fn inexpressible(says: String) -> Broken {
    Broken::new("the abstraction", says)
}

fn create(session: SessionId, task: TaskId) -> SessionCommand {
    let environment = Some(ENVIRONMENT);
    SessionCommand::Create {
        session,
        task,
        environment,
        source: SessionSource::Person,
        parent: None,
    }
}

fn begin_close(session: SessionId) -> SessionCommand {
    SessionCommand::BeginClose {
        session,
        kind: ClosingKind::Delete,
        token: CLOSING,
        automatic: false,
        force: false,
    }
}

fn abort_close(session: SessionId) -> SessionCommand {
    SessionCommand::AbortClose { session, token: CLOSING }
}

fn commit_close(session: SessionId) -> SessionCommand {
    SessionCommand::CommitClose { session, token: CLOSING }
}
