//! Model 1 of 09, with the job behind it: creation against barrier, every order and every crash.
//!
//! One task with an environment, a borrower's task, one maker, one operation (archive, delete or
//! reset), one worker whose executor may die between any two steps, recovery, a person who works
//! in the worktree and one who unarchives. Physical steps and their records are apart; so are the
//! steps of every actor.

use freehold_kernel::properties::{Disk, Granted, Hand, History, Physical, Place};
use freehold_kernel::*;

use crate::encode::Encoder;
use crate::explore::Model;
use crate::world::{Done, World};

const NOW: Time = Time(1_000_000_000);
const LAPSED: Time = Time(1_000_000_000 - 1);
const HOST: HostId = HostId(1);
const MAKER_INSTANCE: InstanceId = InstanceId(2);
const WORKER_INSTANCE: InstanceId = InstanceId(3);
const WORKSPACE: WorkspaceId = WorkspaceId(4);
const OWNER: TaskId = TaskId(5);
const OTHER: TaskId = TaskId(6);
const ENVIRONMENT: EnvironmentId = EnvironmentId(7);
const ROOT: RootId = RootId(8);
const PATH: PathId = PathId(9);
const ATTEMPT: AttemptId = AttemptId(10);
const REPO: RepoId = RepoId(11);
const STAMP: WorktreeId = WorktreeId(12);
const REPOSITORY: RepositoryId = RepositoryId(13);
const SLUG: Slug = Slug(14);
const BRANCH: BranchId = BranchId(15);
const START: CommitId = CommitId(16);
const OPERATION: OperationId = OperationId(17);
const JOB: JobId = JobId(18);
const OWN_SESSION: SessionId = SessionId(19);
const BORROWING: SessionId = SessionId(20);
const CLOSING: Token = Token(21);
const MAKER_TOKEN: Token = Token(22);

/// The system: which operation meets the creation, without which guards, and how much may go
/// wrong.
#[derive(Clone, Debug)]
pub struct Creation {
    /// Archive, delete or reset.
    pub trigger: Trigger,
    /// Guards that are taken out.
    pub without: Vec<Guard>,
    /// Crashes of any actor.
    pub crashes: u8,
    /// Leases that lapse although their owner lives.
    pub slow: u8,
    /// Whether there is a borrower.
    pub borrower: bool,
    /// Whether a person works in the worktree.
    pub writer: bool,
}

impl Creation {
    /// CI's size for this operation: no guard taken out.
    pub fn new(trigger: Trigger) -> Creation {
        Creation { trigger, without: Vec::new(), crashes: 1, slow: 1, borrower: true, writer: true }
    }
}

/// Where an actor is in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Not begun.
    Idle,
    /// After its n-th step.
    Step(u8),
    /// At its end.
    Ended,
    /// Dead.
    Dead,
}

impl At {
    fn code(self) -> u8 {
        match self {
            At::Idle => 0xf0,
            At::Step(n) => n,
            At::Ended => 0xf1,
            At::Dead => 0xf2,
        }
    }
}

/// An executor with a warrant in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Executor {
    granted: Granted,
    /// The physical step is done, its record is not.
    done: bool,
}

/// One state.
#[derive(Clone, Debug)]
pub struct State {
    world: World,
    maker: At,
    operator: At,
    borrower: At,
    session: At,
    claim: Option<(JobRootId, Token)>,
    executor: Option<Executor>,
    crashes: u8,
    slow: u8,
    unarchives: u8,
    written: bool,
}

/// One thing that can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words are in `tell`")]
pub enum Action {
    MakerBegins,
    MakerLocks,
    MakerMakes,
    MakerSaysMade,
    MakerPersists,
    MakerGivesUp,
    MakerDies,
    Reserve,
    Snapshot,
    Mutate,
    Abort,
    OperatorDies,
    CreateSession,
    Borrow,
    BorrowerBeginsDelete,
    BorrowerDeletes,
    Write,
    Unarchive,
    Claim(JobRootId),
    SettleAttempt(ResourceId),
    Permit(ResourceId),
    Finish,
    WorkerDies,
    Act,
    Record,
    TakeOver(RemovalId),
    RecoverBarrier,
    RecoverAttempt,
    Compensate,
    Rescue(JobRootId),
    Reconcile,
    BarrierLapses,
    AttemptLapses,
    ClaimLapses(JobRootId),
    RemovalLapses(RemovalId),
}

type Next = Result<Option<State>, String>;

impl Creation {
    fn ask(&self, world: &mut World, command: Command) -> Result<Option<Done>, String> {
        Ok(world.submit(Permissions::ALL, command, &self.without)?.ok())
    }

    fn prepare(&self, world: &mut World, command: Command) {
        let done = world.submit(Permissions::ALL, command, &[]);
        assert!(matches!(done, Ok(Ok(_))), "the beginning is legal: {command:?} {done:?}");
    }

    fn reserve(&self) -> OperationCommand {
        OperationCommand::Reserve {
            operation: OPERATION,
            job: JOB,
            task: OWNER,
            trigger: self.trigger,
            environment: (self.trigger == Trigger::EnvironmentReset).then_some(ENVIRONMENT),
            cascade_root: None,
            policy: UnsavedPolicy::Salvage,
            branch_policy: BranchPolicy::Keep,
            consent: Unsaved::NONE,
            unsaved: Unsaved::NONE,
            refuse_busy: false,
            instance: MAKER_INSTANCE,
            content: ContentHash(1),
        }
    }

    fn maker_next(&self, mut s: State, action: Action) -> Next {
        let (attempt, token) = (ATTEMPT, MAKER_TOKEN);
        match action {
            Action::MakerBegins => {
                let begun = self.ask(
                    &mut s.world,
                    Command::Attempt(AttemptCommand::Begin {
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
                        instance: MAKER_INSTANCE,
                    }),
                )?;
                s.maker = if begun.is_some() { At::Step(1) } else { At::Ended };
            }
            Action::MakerLocks => {
                // W-5: the token is checked under the path lock before anything is made.
                s.world.disk.take(Hand { root: ROOT, path: PATH, token });
                let still = self.ask(
                    &mut s.world,
                    Command::Attempt(AttemptCommand::Renew { attempt, token }),
                )?;
                s.maker = if still.is_some() { At::Step(2) } else { self.leave(&mut s) };
            }
            Action::MakerMakes => {
                s.world.disk.worktrees.push(Physical {
                    identity: STAMP,
                    root: ROOT,
                    path: PATH,
                    made_by: Some(ATTEMPT),
                    place: Place::AtHome,
                    unsaved: Unsaved::NONE,
                    salvaged: Unsaved::NONE,
                    moved_by: None,
                });
                s.world.look()?;
                s.maker = At::Step(3);
            }
            Action::MakerSaysMade => {
                let said = self.ask(
                    &mut s.world,
                    Command::Attempt(AttemptCommand::Materialised { attempt, token }),
                )?;
                s.maker = if said.is_some() { At::Step(4) } else { self.leave(&mut s) };
            }
            Action::MakerPersists => {
                self.ask(
                    &mut s.world,
                    Command::Attempt(AttemptCommand::Persist { attempt, token }),
                )?;
                // Persisted, or told to undo it, or taken over: recovery does the rest.
                s.maker = self.leave(&mut s);
            }
            Action::MakerGivesUp => {
                self.ask(
                    &mut s.world,
                    Command::Attempt(AttemptCommand::GiveUp { attempt, token }),
                )?;
                s.maker = self.leave(&mut s);
            }
            _other => {
                s.maker = At::Dead;
                s.world.disk.let_go(token);
                s.crashes -= 1;
            }
        }
        Ok(Some(s))
    }

    fn leave(&self, s: &mut State) -> At {
        s.world.disk.let_go(MAKER_TOKEN);
        At::Ended
    }

    fn operator_next(&self, mut s: State, action: Action) -> Next {
        let (operation, instance, scope) = (OPERATION, MAKER_INSTANCE, Scope::Task);
        let (command, then) = match action {
            Action::Reserve => (self.reserve(), At::Step(1)),
            Action::Snapshot => {
                (OperationCommand::Snapshot { operation, scope, instance }, At::Step(2))
            }
            Action::Mutate => (OperationCommand::Mutate { operation, scope, instance }, At::Ended),
            Action::Abort => (OperationCommand::Abort { operation, instance }, At::Ended),
            _other => {
                s.operator = At::Dead;
                s.crashes -= 1;
                return Ok(Some(s));
            }
        };
        let done = self.ask(&mut s.world, Command::Operation(command))?;
        s.operator = match (done, action) {
            (Some(_), _) => then,
            (None, Action::Reserve) => At::Ended,
            // Refused on the way: it aborts (as the runner does).
            (None, _) => At::Step(9),
        };
        Ok(Some(s))
    }

    fn people_next(&self, mut s: State, action: Action) -> Next {
        match action {
            Action::CreateSession | Action::Borrow => {
                let own = action == Action::CreateSession;
                let created = self.ask(
                    &mut s.world,
                    Command::Session(SessionCommand::Create {
                        session: if own { OWN_SESSION } else { BORROWING },
                        task: if own { OWNER } else { OTHER },
                        environment: Some(ENVIRONMENT),
                        source: SessionSource::Person,
                        parent: None,
                    }),
                )?;
                let at = if created.is_some() { At::Step(1) } else { At::Ended };
                if own { s.session = at } else { s.borrower = at }
            }
            Action::BorrowerBeginsDelete => {
                let begun = self.ask(
                    &mut s.world,
                    Command::Session(SessionCommand::BeginClose {
                        session: BORROWING,
                        kind: ClosingKind::Delete,
                        token: CLOSING,
                        automatic: false,
                        force: false,
                    }),
                )?;
                s.borrower = if begun.is_some() { At::Step(2) } else { At::Ended };
            }
            Action::BorrowerDeletes => {
                self.ask(
                    &mut s.world,
                    Command::Session(SessionCommand::CommitClose {
                        session: BORROWING,
                        token: CLOSING,
                    }),
                )?;
                s.borrower = At::Ended;
            }
            Action::Unarchive => {
                let command = OperationCommand::Unarchive { task: OWNER, cascade: false };
                if self.ask(&mut s.world, Command::Operation(command))?.is_none() {
                    return Ok(None);
                }
                s.unarchives -= 1;
            }
            _write => {
                if let Some(tree) = s.world.disk.find_mut(STAMP) {
                    tree.unsaved = tree.unsaved.with(Unsaved::TRACKED);
                }
                s.written = true;
                s.world.look()?;
            }
        }
        Ok(Some(s))
    }

    /// Ids and tokens are drawn from what the rows say, not from a counter: equal states then
    /// have equal names for what comes next.
    fn next_removal(s: &State) -> (RemovalId, Token) {
        let n = s.world.view.removals.len() as u128;
        (RemovalId(0x2000 + n), Token(0x3000 + 16 * n))
    }

    fn evidence(s: &State) -> Evidence {
        let tree = s.world.disk.find(STAMP);
        Evidence {
            found: match tree.map(|t| t.place) {
                Some(Place::AtHome) => Found::Here,
                Some(Place::InTrash) => Found::InTrash,
                Some(Place::Gone) | None => Found::Missing,
            },
            unsaved: tree.map_or(Unsaved::NONE, |t| t.unsaved),
            obstacle: Reason::None,
            head: None,
        }
    }

    /// Whoever got a warrant holds the path (W-13: the lock was taken before the question).
    fn hold(s: &mut State, done: Option<Done>) {
        if let Some(granted) = done.and_then(|d| d.granted) {
            s.world.disk.take(Hand {
                root: granted.root,
                path: granted.path,
                token: granted.token,
            });
            s.executor = Some(Executor { granted, done: false });
        }
    }

    fn worker_next(&self, mut s: State, action: Action) -> Next {
        match action {
            Action::Claim(job_root) => {
                let tries = s.world.view.job_roots.id(job_root.0).map_or(0, |p| p.tries);
                let token = Token(derive(job_root.0, u128::from(tries)));
                let command = CleanupCommand::Claim { job_root, token, instance: WORKER_INSTANCE };
                match self.ask(&mut s.world, Command::Cleanup(command))? {
                    Some(_) => s.claim = Some((job_root, token)),
                    None => return Ok(None),
                }
            }
            Action::SettleAttempt(resource) => {
                let Some((_, token)) = s.claim else { return Ok(None) };
                let command =
                    CleanupCommand::SettleResource { resource, token, liveness: Liveness::Unknown };
                if self.ask(&mut s.world, Command::Cleanup(command))?.is_none() {
                    return Ok(None);
                }
            }
            Action::Permit(resource) => {
                let Some((_, token)) = s.claim else { return Ok(None) };
                let evidence = Self::evidence(&s);
                let (removal, removal_token) = Self::next_removal(&s);
                let command =
                    CleanupCommand::Permit { resource, token, removal, removal_token, evidence };
                let done = self.ask(&mut s.world, Command::Cleanup(command))?;
                if done.is_none() {
                    return Ok(None);
                }
                Self::hold(&mut s, done);
            }
            Action::Finish => {
                let Some((job_root, token)) = s.claim.take() else { return Ok(None) };
                let command = CleanupCommand::Finish { job_root, token };
                self.ask(&mut s.world, Command::Cleanup(command))?;
            }
            Action::Rescue(job_root) => {
                let Some(token) = s.world.view.job_roots.id(job_root.0).and_then(|p| p.token)
                else {
                    return Ok(None);
                };
                let command = CleanupCommand::Rescue { job_root, token };
                if self.ask(&mut s.world, Command::Cleanup(command))?.is_none() {
                    return Ok(None);
                }
            }
            _dies => {
                if let Some(executor) = s.executor.take() {
                    s.world.disk.let_go(executor.granted.token);
                }
                s.claim = None;
                s.crashes -= 1;
            }
        }
        Ok(Some(s))
    }

    fn executor_next(&self, mut s: State, action: Action) -> Next {
        let Some(executor) = s.executor else { return Ok(None) };
        let granted = executor.granted;
        if action == Action::Act {
            if let Some(tree) = s.world.disk.find_mut(STAMP) {
                match granted.step {
                    RemovalStep::Salvaged => tree.salvaged = tree.unsaved,
                    RemovalStep::Renamed if tree.place == Place::AtHome => {
                        tree.place = Place::InTrash;
                        tree.moved_by = Some(granted.removal);
                    }
                    RemovalStep::Compared if tree.salvaged != tree.unsaved => {
                        tree.salvaged = tree.unsaved;
                    }
                    RemovalStep::Purged => {
                        tree.place = Place::Gone;
                        tree.moved_by = Some(granted.removal);
                    }
                    RemovalStep::Returned if tree.place == Place::InTrash => {
                        tree.place = Place::AtHome;
                        tree.moved_by = Some(granted.removal);
                    }
                    _nothing_physical => {}
                }
            }
            s.executor = Some(Executor { done: true, ..executor });
            s.world.look()?;
            return Ok(Some(s));
        }
        let kept = s.world.disk.find(STAMP).map_or(Unsaved::NONE, |t| t.salvaged);
        let has_row = s
            .world
            .view
            .salvage
            .iter()
            .any(|x| x.removal_id == granted.removal && x.contents == kept);
        let keeps = granted.step == RemovalStep::Salvaged || granted.step == RemovalStep::Compared;
        let salvage = (keeps && !kept.is_none() && !has_row).then(|| SalvageFacts {
            id: SalvageId(0x4000 + s.world.view.salvage.len() as u128),
            contents: kept,
            size: 1,
        });
        let found_something = s.world.disk.find(STAMP).is_some();
        let command = CleanupCommand::RecordStep {
            removal: granted.removal,
            token: granted.token,
            step: granted.step,
            found_something,
            salvage,
        };
        let done = self.ask(&mut s.world, Command::Cleanup(command))?;
        s.executor = None;
        let next = done.as_ref().and_then(|d| d.granted);
        if next.is_none() {
            s.world.disk.let_go(granted.token);
        }
        Self::hold(&mut s, done);
        Ok(Some(s))
    }

    fn recovery_next(&self, mut s: State, action: Action) -> Next {
        let evidence = Self::evidence(&s);
        let instance = WORKER_INSTANCE;
        let command = match action {
            Action::RecoverBarrier => Command::System(SystemCommand::RecoverBarrier { job: JOB }),
            Action::RecoverAttempt => {
                let old = s.world.view.attempts.id(ATTEMPT.0).map_or(0, |a| a.token.0);
                Command::Attempt(AttemptCommand::Recover {
                    attempt: ATTEMPT,
                    token: Token(derive(old, 1)),
                    instance,
                    evidence,
                })
            }
            Action::Compensate => {
                let Some(row) = s.world.view.attempts.id(ATTEMPT.0).copied() else {
                    return Ok(None);
                };
                Command::Attempt(AttemptCommand::Compensate {
                    attempt: ATTEMPT,
                    token: row.token,
                    removal: Self::next_removal(&s).0,
                    removal_token: Self::next_removal(&s).1,
                    instance,
                    evidence,
                })
            }
            Action::TakeOver(removal) => {
                let Some(row) = s.world.view.removals.id(removal.0).copied() else {
                    return Ok(None);
                };
                Command::Cleanup(CleanupCommand::TakeOverRemoval {
                    removal,
                    old_token: row.token,
                    token: Token(row.token.0 + 1),
                    instance,
                })
            }
            _reconcile => {
                let Some(authority) = s.world.view.tasks.id(OWNER.0).and_then(|t| t.archived_by)
                else {
                    return Ok(None);
                };
                Command::System(SystemCommand::Reconcile {
                    task: OWNER,
                    environment: ENVIRONMENT,
                    job: JobId(0x6000),
                    operation: OperationId(derive(authority.0, ENVIRONMENT.0)),
                })
            }
        };
        let done = self.ask(&mut s.world, command)?;
        if done.as_ref().is_none_or(|d| d.reply == Reply::Unchanged) {
            return Ok(None);
        }
        Self::hold(&mut s, done);
        Ok(Some(s))
    }

    fn lapse(&self, mut s: State, action: Action) -> Next {
        let view = &mut s.world.view;
        // Whose lease it is lives, unless it died: then time alone makes it lapse.
        let owner_dead = match action {
            Action::BarrierLapses => {
                if let Some(job) = view.jobs.edit(JOB.0) {
                    job.lease_until = Some(LAPSED);
                }
                s.operator == At::Dead
            }
            Action::AttemptLapses => {
                if let Some(attempt) = view.attempts.edit(ATTEMPT.0) {
                    attempt.lease_until = LAPSED;
                }
                let taken = view.attempts.id(ATTEMPT.0).map(|a| a.instance_id);
                taken != Some(WORKER_INSTANCE) && matches!(s.maker, At::Dead | At::Ended)
            }
            Action::ClaimLapses(id) => {
                if let Some(part) = view.job_roots.edit(id.0) {
                    part.lease_until = Some(LAPSED);
                }
                s.claim.is_none_or(|(claimed, _)| claimed != id)
            }
            Action::RemovalLapses(id) => {
                if let Some(removal) = view.removals.edit(id.0) {
                    removal.lease_until = LAPSED;
                }
                s.executor.is_none_or(|e| e.granted.removal != id)
            }
            _other => return Ok(None),
        };
        if !owner_dead {
            s.slow -= 1;
        }
        s.world.view.commit();
        Ok(Some(s))
    }
}

impl Model for Creation {
    type State = State;
    type Action = Action;

    fn initial(&self) -> State {
        let view = View { now: NOW, ..View::default() };
        let mut world = World { view, disk: Disk::default(), history: History::default() };
        for instance in [MAKER_INSTANCE, WORKER_INSTANCE] {
            self.prepare(
                &mut world,
                Command::System(SystemCommand::RegisterInstance { instance, host: HOST }),
            );
        }
        let zero = Span(0);
        let settings = Settings {
            max_tries: 2,
            retry_1: zero,
            retry_2: zero,
            retry_3: zero,
            retry_4: zero,
            retry_5: zero,
            retry_6: zero,
            retry_7: zero,
            ..Settings::DEFAULT
        };
        for command in [
            Command::Operator(OperatorCommand::ChangeSettings { settings }),
            Command::Operator(OperatorCommand::RegisterRoot {
                root: ROOT,
                host: HOST,
                path: PathId(0x99),
            }),
            Command::Task(TaskCommand::CreateWorkspace { workspace: WORKSPACE }),
        ] {
            self.prepare(&mut world, command);
        }
        for task in [OWNER, OTHER] {
            self.prepare(
                &mut world,
                Command::Task(TaskCommand::Create {
                    task,
                    workspace: WORKSPACE,
                    parent: None,
                    kind: TaskKind::Standard,
                    expires_at: None,
                }),
            );
        }
        self.prepare(
            &mut world,
            Command::Task(TaskCommand::CreateEnvironment {
                environment: ENVIRONMENT,
                task: OWNER,
                container: None,
                sandbox: None,
            }),
        );
        State {
            world,
            maker: At::Idle,
            operator: At::Idle,
            borrower: if self.borrower { At::Idle } else { At::Ended },
            session: At::Idle,
            claim: None,
            executor: None,
            crashes: self.crashes,
            slow: self.slow,
            unarchives: u8::from(self.trigger == Trigger::Archive),
            written: !self.writer,
        }
    }

    fn actions(&self, s: &State, out: &mut Vec<Action>) {
        use Action as A;
        let view = &s.world.view;
        let free = s.world.disk.hands.is_empty();
        let crash = s.crashes > 0;
        match s.maker {
            At::Idle => out.push(A::MakerBegins),
            At::Step(1) if free => out.extend([A::MakerLocks, A::MakerGivesUp]),
            At::Step(2) => out.push(A::MakerMakes),
            At::Step(3) => out.extend([A::MakerSaysMade, A::MakerGivesUp]),
            At::Step(4) => out.push(A::MakerPersists),
            At::Step(_) | At::Ended | At::Dead => {}
        }
        if crash && matches!(s.maker, At::Step(_)) {
            out.push(A::MakerDies);
        }
        match s.operator {
            At::Idle => out.push(A::Reserve),
            At::Step(1) => out.extend([A::Snapshot, A::Abort]),
            At::Step(2) => out.push(A::Mutate),
            At::Step(_) => out.push(A::Abort),
            At::Ended | At::Dead => {}
        }
        if crash && matches!(s.operator, At::Step(_)) {
            out.push(A::OperatorDies);
        }
        if s.session == At::Idle {
            out.push(A::CreateSession);
        }
        match s.borrower {
            At::Idle => out.push(A::Borrow),
            At::Step(1) => out.push(A::BorrowerBeginsDelete),
            At::Step(2) => out.push(A::BorrowerDeletes),
            At::Step(_) | At::Ended | At::Dead => {}
        }
        let home = s.world.disk.at(PATH).is_some();
        let owned = view.repos.id(REPO.0).is_some();
        if !s.written && home && owned {
            out.push(A::Write);
        }
        if s.unarchives > 0 {
            out.push(A::Unarchive);
        }
        self.worker_actions(s, free, crash, out);
        let barred = view.jobs.id(JOB.0).filter(|j| j.state == JobState::Prepared);
        if let Some(job) = barred {
            let lapsed = job.lease_until.is_none_or(|l| l <= NOW);
            if lapsed {
                out.push(A::RecoverBarrier);
            } else if s.operator == At::Dead || s.slow > 0 {
                out.push(A::BarrierLapses);
            }
        }
        self.attempt_actions(s, free, out);
        if self.trigger == Trigger::Archive
            && view.resources.iter().any(|r| r.result == ResourceResult::Preserved)
        {
            out.push(A::Reconcile);
        }
    }

    fn next(&self, state: &State, action: Action) -> Next {
        use Action as A;
        let s = state.clone();
        match action {
            A::MakerBegins
            | A::MakerLocks
            | A::MakerMakes
            | A::MakerSaysMade
            | A::MakerPersists
            | A::MakerGivesUp
            | A::MakerDies => self.maker_next(s, action),
            A::Reserve | A::Snapshot | A::Mutate | A::Abort | A::OperatorDies => {
                self.operator_next(s, action)
            }
            A::CreateSession
            | A::Borrow
            | A::BorrowerBeginsDelete
            | A::BorrowerDeletes
            | A::Write
            | A::Unarchive => self.people_next(s, action),
            A::Claim(_)
            | A::SettleAttempt(_)
            | A::Permit(_)
            | A::Finish
            | A::WorkerDies
            | A::Rescue(_) => self.worker_next(s, action),
            A::Act | A::Record => self.executor_next(s, action),
            A::TakeOver(_)
            | A::RecoverBarrier
            | A::RecoverAttempt
            | A::Compensate
            | A::Reconcile => self.recovery_next(s, action),
            A::BarrierLapses | A::AttemptLapses | A::ClaimLapses(_) | A::RemovalLapses(_) => {
                self.lapse(s, action)
            }
        }
    }

    fn encode(&self, s: &State, encoder: &mut Encoder<'_>) {
        encoder.view(&s.world.view);
        encoder.disk(&s.world.disk);
        encoder.history(&s.world.history);
        for at in [s.maker, s.operator, s.borrower, s.session] {
            encoder.byte(at.code());
        }
        encoder.id(s.claim.map_or(0, |(_, token)| token.0));
        encoder.id(s.executor.map_or(0, |e| e.granted.token.0));
        encoder.byte(s.executor.map_or(9, |e| u8::from(e.done)));
        for n in [s.crashes, s.slow, s.unarchives, u8::from(s.written)] {
            encoder.byte(n);
        }
    }

    fn is_settled(&self, s: &State) -> bool {
        freehold_kernel::properties::check_goals(&s.world.view).is_ok()
            && s.executor.is_none()
            && s.claim.is_none()
    }

    fn tell(&self, action: Action) -> String {
        let what = match action {
            Action::MakerBegins => "instance A records the attempt",
            Action::MakerLocks => "instance A takes the path lock and checks its token",
            Action::MakerMakes => "instance A makes the worktree on disk",
            Action::MakerSaysMade => "instance A records that the checkout is verified",
            Action::MakerPersists => "instance A asks for the canonical row",
            Action::MakerGivesUp => "instance A gives the attempt up",
            Action::MakerDies => "instance A's maker dies",
            Action::Reserve => "the operation reserves the barrier",
            Action::Snapshot => "the operation takes the snapshot",
            Action::Mutate => "the operation mutates and activates the job",
            Action::Abort => "the operation is aborted",
            Action::OperatorDies => "the operation's owner dies",
            Action::CreateSession => "a person creates a session in the task",
            Action::Borrow => "a session of another task borrows the environment",
            Action::BorrowerBeginsDelete => "the borrower's session begins to be deleted",
            Action::BorrowerDeletes => "the borrower's session is deleted",
            Action::Write => "somebody works in the worktree, and commits nothing",
            Action::Unarchive => "a person unarchives the task",
            Action::Claim(_) => "instance B claims a part of the job",
            Action::SettleAttempt(_) => "instance B asks whether the attempt is resolved",
            Action::Permit(_) => "instance B asks for permission to remove the worktree",
            Action::Finish => "instance B ends its claim",
            Action::WorkerDies => "instance B's worker dies",
            Action::Act => "the executor does its step on disk",
            Action::Record => "the executor records its step",
            Action::TakeOver(_) => "instance B takes the removal over",
            Action::RecoverBarrier => "recovery lifts the barrier",
            Action::RecoverAttempt => "recovery takes the attempt over",
            Action::Compensate => "recovery asks for permission to undo the attempt",
            Action::Rescue(_) => "recovery rescues the claim",
            Action::Reconcile => "recovery reserves a reconcile job",
            Action::BarrierLapses => "the barrier's lease lapses",
            Action::AttemptLapses => "the attempt's lease lapses",
            Action::ClaimLapses(_) => "the claim's lease lapses",
            Action::RemovalLapses(_) => "the removal's lease lapses",
        };
        what.to_owned()
    }

    fn sometimes(&self, s: &State, out: &mut Vec<&'static str>) {
        let view = &s.world.view;
        let attempt = view.attempts.id(ATTEMPT.0).map(|a| a.state);
        let saw = [
            ("worktree owned", view.repos.id(REPO.0).is_some()),
            ("attempt compensated", attempt == Some(AttemptState::Compensated)),
            ("worktree removed", s.world.disk.find(STAMP).is_some_and(|t| t.place == Place::Gone)),
            ("work salvaged", !view.salvage.is_empty()),
            (
                "removal taken back",
                view.removals.iter().any(|r| r.outcome == Some(RemovalOutcome::Returned)),
            ),
            ("job succeeded", view.jobs.iter().any(|j| j.state == JobState::Succeeded)),
            ("job cancelled", view.jobs.iter().any(|j| j.state == JobState::Cancelled)),
            (
                "borrower kept",
                view.resources.iter().any(|r| {
                    r.result == ResourceResult::Preserved || r.result == ResourceResult::Transferred
                }),
            ),
            ("two removals", view.removals.len() > 1),
        ];
        out.extend(saw.iter().filter(|(_, yes)| *yes).map(|(name, _)| *name));
    }
}

impl Creation {
    fn worker_actions(&self, s: &State, free: bool, crash: bool, out: &mut Vec<Action>) {
        use Action as A;
        let view = &s.world.view;
        match (s.claim, s.executor) {
            (_, Some(executor)) => out.push(if executor.done { A::Record } else { A::Act }),
            (Some((part, _)), None) => {
                for resource in view.resources.iter().filter(|r| r.job_root_id == part) {
                    let left = matches!(
                        resource.result,
                        ResourceResult::Waiting | ResourceResult::Removing
                    );
                    match resource.kind {
                        ResourceKind::Attempt if left => out.push(A::SettleAttempt(resource.id)),
                        ResourceKind::Worktree if left && free => out.push(A::Permit(resource.id)),
                        ResourceKind::Attempt
                        | ResourceKind::Worktree
                        | ResourceKind::Runtime
                        | ResourceKind::Container
                        | ResourceKind::Sandbox => {}
                    }
                }
                out.push(A::Finish);
            }
            (None, None) => {
                for part in view.job_roots.iter() {
                    if part.state == JobState::Pending || part.state == JobState::RetryWait {
                        out.push(A::Claim(part.id));
                    }
                }
            }
        }
        if crash && (s.claim.is_some() || s.executor.is_some()) {
            out.push(A::WorkerDies);
        }
        for part in view.job_roots.iter().filter(|p| p.state == JobState::Running) {
            let dead = s.claim.is_none_or(|(id, _)| id != part.id);
            if part.lease_until.is_some_and(|l| l <= NOW) {
                out.push(A::Rescue(part.id));
            } else if dead || s.slow > 0 {
                out.push(A::ClaimLapses(part.id));
            }
        }
        for removal in view.removals.iter().filter(|r| r.is_unsettled()) {
            let mine = s.executor.is_some_and(|e| e.granted.removal == removal.id);
            let lapsed = removal.lease_until <= NOW;
            // W-13: the path lock first; nobody is robbed of it by a lapsed lease.
            if free && s.executor.is_none() {
                out.push(A::TakeOver(removal.id));
            }
            if !lapsed && (!mine || s.slow > 0) {
                out.push(A::RemovalLapses(removal.id));
            }
        }
    }

    fn attempt_actions(&self, s: &State, free: bool, out: &mut Vec<Action>) {
        use Action as A;
        let Some(attempt) = s.world.view.attempts.id(ATTEMPT.0) else { return };
        let open = matches!(
            attempt.state,
            AttemptState::Intended | AttemptState::Materialised | AttemptState::Compensating
        );
        if !open {
            return;
        }
        let lapsed = attempt.lease_until <= NOW;
        let taken = attempt.instance_id == WORKER_INSTANCE;
        let gone = !taken && matches!(s.maker, At::Dead | At::Ended);
        let idle = free && s.executor.is_none();
        if lapsed && idle {
            out.push(A::RecoverAttempt);
        }
        if !lapsed && (gone || s.slow > 0) {
            out.push(A::AttemptLapses);
        }
        // Recovery undoes what it has taken over, or what the maker left behind.
        let mine = taken || gone;
        if attempt.state == AttemptState::Compensating && idle && mine {
            out.push(A::Compensate);
        }
    }
}
