//! Drives a store with random command sequences and a simulated disk, and checks after every
//! command: all properties, the naive oracle, that a refusal changed nothing, and that deciding on
//! the footprint is deciding on the whole world.

#![allow(clippy::unwrap_used, reason = "a suite fails by panicking")]

pub mod backend;
pub mod disk;
pub mod drain;
pub mod lifecycle;
pub mod making;
pub mod memories;
pub mod op;
pub mod oracle;
pub mod physical;
pub mod random;
pub mod restoring;
pub mod talk;

use std::fmt::Write as _;

use backend::{Answer, Backend};
use freehold_kernel::properties::{Disk, History, PROPERTIES, Property, Step, Witness, changes};
use freehold_kernel::*;
use freehold_store::Clock;
use oracle::Oracle;

/// What went wrong, with the way there.
#[derive(Debug)]
pub struct Failure {
    /// The property or check.
    pub what: String,
    /// Every command so far, with its answer.
    pub log: Vec<String>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for line in &self.log {
            writeln!(f, "  {line}")?;
        }
        write!(f, "=> {}", self.what)
    }
}

/// The result of one operation of a sequence.
pub type Ran<T = ()> = Result<T, Failure>;

/// A person or system at work with secrets of its own; a crash of its instance drops it.
#[derive(Debug)]
pub enum Worker {
    /// Closes a session.
    Closer(SessionId, Token),
    /// Holds the barrier of an operation.
    Owner(OperationId, freehold_kernel::Scope),
    /// Makes a worktree.
    Maker(AttemptId, Token),
    /// Holds a claim.
    Claimer(JobRootId, Token),
    /// Holds a removal.
    Executor(RemovalId, Token, Option<Warrant>),
}

/// What runs the sequences.
pub struct Driver<B> {
    /// The store.
    pub backend: B,
    /// The world after the last command.
    pub world: View,
    /// The physical world.
    pub disk: Disk,
    /// What was once true.
    pub history: History,
    /// The second opinion.
    pub oracle: Oracle,
    /// Who is at work, with the instance that it dies with.
    pub workers: Vec<(InstanceId, Worker)>,
    /// Living processes and their hosts.
    pub instances: Vec<(InstanceId, HostId)>,
    /// Every command so far.
    pub sent: Vec<Envelope>,
    /// For reports.
    pub log: Vec<String>,
    /// How often something was accepted and refused, by command and guard.
    pub seen: std::collections::BTreeMap<(&'static str, &'static str), u32>,
    /// Of the checks, only this property; for planted faults.
    pub only: Option<&'static str>,
    /// Sees every command with the world that it meets.
    pub watch: Option<Watch>,
    next: u128,
    skip: Vec<String>,
}

/// Something that looks at commands before they are submitted.
pub type Watch = Box<dyn FnMut(&View, &Envelope)>;

/// The two hosts; each serves one root.
pub const HOSTS: [HostId; 2] = [HostId(0x51), HostId(0x52)];
/// The two roots.
pub const ROOTS: [RootId; 2] = [RootId(0x61), RootId(0x62)];

impl<B: Backend> Driver<B> {
    /// A driver with a small beginning: one workspace, three tasks (the third under the first),
    /// an environment for each of the first two, three sessions, one of them a borrower's.
    pub fn new(backend: B) -> Ran<Driver<B>> {
        let mut driver = Driver {
            backend,
            world: View::default(),
            disk: Disk::default(),
            history: History::default(),
            oracle: Oracle::default(),
            workers: Vec::new(),
            instances: Vec::new(),
            sent: Vec::new(),
            log: Vec::new(),
            seen: std::collections::BTreeMap::new(),
            only: None,
            watch: None,
            next: 0x1000,
            skip: std::env::var("FREEHOLD_SKIP")
                .map(|s| s.split(';').filter(|k| !k.is_empty()).map(str::to_owned).collect())
                .unwrap_or_default(),
        };
        driver.begin()?;
        Ok(driver)
    }

    fn begin(&mut self) -> Ran {
        for host in HOSTS {
            self.new_instance(host)?;
        }
        for (root, host) in ROOTS.into_iter().zip(HOSTS) {
            let path = PathId(root.0 + 0x100);
            let register = OperatorCommand::RegisterRoot { root, host, path };
            self.send(Command::Operator(register))?;
        }
        let workspace = WorkspaceId(0x10);
        self.send(Command::Task(TaskCommand::CreateWorkspace { workspace }))?;
        for (task, parent) in
            [(TaskId(0x21), None), (TaskId(0x22), None), (TaskId(0x23), Some(TaskId(0x21)))]
        {
            let create = TaskCommand::Create {
                task,
                workspace,
                parent,
                kind: TaskKind::Standard,
                expires_at: None,
            };
            self.send(Command::Task(create))?;
        }
        for (id, task) in [(0x31, TaskId(0x21)), (0x32, TaskId(0x22))] {
            let create = TaskCommand::CreateEnvironment {
                environment: EnvironmentId(id),
                task,
                container: (id == 0x32).then_some(HandleId(0x41)),
                sandbox: None,
            };
            self.send(Command::Task(create))?;
        }
        // Two sessions of the first task, and one of the third that borrows its environment.
        for (id, task, environment) in [
            (0x11, TaskId(0x21), None),
            (0x12, TaskId(0x21), None),
            (0x13, TaskId(0x23), Some(EnvironmentId(0x31))),
        ] {
            let create = SessionCommand::Create {
                session: SessionId(id),
                task,
                environment,
                source: SessionSource::Person,
                parent: None,
            };
            self.send(Command::Session(create))?;
        }
        Ok(())
    }

    /// A fresh process on a host.
    pub fn new_instance(&mut self, host: HostId) -> Ran<InstanceId> {
        let instance = InstanceId(self.fresh());
        let register = SystemCommand::RegisterInstance { instance, host };
        self.send(Command::System(register))?;
        self.instances.push((instance, host));
        Ok(instance)
    }

    /// An id that was never used.
    pub fn fresh(&mut self) -> u128 {
        self.next += 1;
        self.next
    }

    /// The clock.
    pub fn clock(&self) -> Clock {
        self.backend.clock()
    }

    /// Sends a command by an actor who may do everything, without a request id.
    pub fn send(&mut self, command: Command) -> Ran<Answer> {
        self.send_as(command, Permissions::ALL, None)
    }

    /// Sends a command.
    pub fn send_as(
        &mut self,
        command: Command,
        may: Permissions,
        request: Option<RequestId>,
    ) -> Ran<Answer> {
        let actor = Actor { id: ActorId(0x71), may };
        let envelope = Envelope { request, content: content(&command), actor, command };
        self.submit(envelope)
    }

    /// Submits, and checks everything.
    pub fn submit(&mut self, envelope: Envelope) -> Ran<Answer> {
        let before = self.backend.world();
        if let Some(watch) = &mut self.watch {
            watch(&before, &envelope);
        }
        let whole = self.whole(&before, &envelope);
        let answer = self.backend.submit(&envelope);
        let after = self.backend.world();
        let said = match &answer.verdict {
            Ok(reply) => format!("{reply:?}"),
            Err(refusal) => format!("REFUSED {}", refusal.guard.code()),
        };
        self.log.push(format!("t={} {:?} -> {said}", after.now.0, envelope.command));
        let code = match &answer.verdict {
            Ok(_) => "accepted",
            Err(refusal) => refusal.guard.code(),
        };
        *self.seen.entry((envelope.command.code(), code)).or_default() += 1;
        self.sent.push(envelope);
        self.world = after;
        if let Some(whole) = whole {
            self.footprint_is_enough(&answer, whole)?;
        }
        let changed = changes(&before, &self.world);
        let step = Step {
            before: &before,
            after: &self.world,
            command: &envelope,
            events: &answer.events,
            accepted: answer.verdict.is_ok(),
            granted: answer.granted(),
            changes: &changed,
        };
        for property in PROPERTIES {
            if let Err(witness) = property.step(&step, &self.history) {
                self.found(property, witness)?;
            }
        }
        self.history.learn(&step);
        self.check()?;
        let judged = self.oracle.judge(&envelope, &answer, self.world.now);
        if let Err(what) = judged
            && self.only.is_none_or(|only| only == "oracle")
        {
            return self.fail(what);
        }
        if let Err(what) = self.backend.compare() {
            return self.fail(what);
        }
        Ok(answer)
    }

    /// Every property of the world.
    pub fn check(&self) -> Ran {
        for property in PROPERTIES {
            if let Err(witness) = property.state(&self.world, &self.disk) {
                self.found(property, witness)?;
            }
        }
        Ok(())
    }

    /// A broken property. Those whose text is in `FREEHOLD_SKIP` (parted by `;`) are passed over,
    /// so that a hunt finds what lies behind a known defect.
    pub(crate) fn found(&self, property: &Property, witness: Witness) -> Ran {
        let what = format!("{} {}: {witness}", property.id, property.name);
        let wanted = self.only.is_none_or(|only| only == property.id);
        let known = self.skip.iter().any(|known| what.contains(known));
        if wanted && !known { self.fail(what) } else { Ok(()) }
    }

    /// A failure with the way there.
    pub fn fail<T>(&self, what: String) -> Ran<T> {
        Err(Failure { what, log: self.log.clone() })
    }

    /// Decides on the whole world.
    fn whole(&self, before: &View, envelope: &Envelope) -> Option<(View, Verdict, Output)> {
        if !self.backend.without().is_empty() {
            return None;
        }
        let mut view = before.clone();
        let mut out = Output::default();
        let verdict = decide(&mut view, envelope, &mut out);
        view.commit();
        Some((view, verdict, out))
    }

    /// Deciding on the footprint is deciding on the whole world.
    fn footprint_is_enough(&self, answer: &Answer, whole: (View, Verdict, Output)) -> Ran {
        let (view, verdict, out) = whole;
        let same = match (&verdict, &answer.verdict) {
            (Ok(decision), Ok(_)) if decision.reply == Reply::Replayed => answer.replayed,
            (Ok(decision), Ok(reply)) => {
                decision.reply == *reply && decision.warrant == answer.warrant
            }
            // A replayed refusal is one that the kernel answers with `Replayed`.
            (Ok(decision), Err(_)) => decision.reply == Reply::Replayed && answer.replayed,
            (Err(a), Err(b)) => a == b,
            (Err(_), Ok(_)) => false,
        };
        if !same {
            return self.fail(format!(
                "the footprint is not enough: on the whole world {verdict:?}, on the footprint {:?}",
                answer.verdict
            ));
        }
        if out.events != answer.events || out.effects != answer.effects {
            return self.fail(format!(
                "the footprint is not enough: events {:?} and {:?}, effects {:?} and {:?}",
                out.events, answer.events, out.effects, answer.effects
            ));
        }
        if answer.verdict.is_ok() {
            let differing = changes(&view, &self.world);
            if !differing.is_empty() {
                let mut what = "the footprint is not enough: other rows".to_owned();
                for changed in differing.iter().take(4) {
                    write!(what, "; {changed:?}").unwrap();
                }
                return self.fail(what);
            }
        }
        Ok(())
    }
}

/// A digest of a command, as the edge makes it.
pub fn content(command: &Command) -> ContentHash {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let text = format!("{command:?}");
    let mut hash = DefaultHasher::new();
    text.hash(&mut hash);
    ContentHash(u128::from(hash.finish()))
}
