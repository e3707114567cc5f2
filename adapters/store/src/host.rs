//! The runner: a host's view of Freehold, in the host's strings. The only place that knows
//! about transactions and effects in sequence: submit, and then, and only then, act.
//!
//! Calls block, on the thread that the host handed over: they wait for the store by
//! [`Drive`], and for git. Nothing here starts a thread, a runtime or a clock.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use freehold_kernel::{
    Command, Guard, InstanceId, Kind, Liveness, Permissions, Reply, RuntimeId, RuntimeStatus,
    SessionEffect, Settings, Span, SystemCommand, TableId, Time, TurnCommand,
};

use crate::error::StoreError;
use crate::names::{NameError, uuid_text};
use crate::recovery::Lone;
use crate::runtimes::{Held, RuntimeHandle, Runtimes, StartFailed};
use crate::store::{Read, Rows, Store};
use crate::submission::{Accepted, Composer, Outcome, Refused};
use crate::workspaces::{WorkspaceError, Workspaces};

/// How long an instance that asks goes without renewing its lease; half the shortest useful
/// renewal (D-25).
const RENEW_EVERY: Duration = Duration::from_secs(5);

/// How often what is held is renewed while a call of the physical side takes its time: well below
/// the shortest lease that a store may set (one second).
pub(crate) const PULSE: Duration = Duration::from_millis(300);

/// How the caller's thread waits for a store.
pub trait Drive {
    /// Runs the future to its end.
    fn wait<F: Future>(&self, future: F) -> F::Output;
}

/// Waits on the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnThisThread;

impl Drive for OnThisThread {
    fn wait<F: Future>(&self, future: F) -> F::Output {
        pollster::block_on(future)
    }
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// A person, or a named system authority.
    pub actor: String,
    /// What this one may do.
    pub may: Permissions,
}

impl Who {
    /// An actor with these permissions.
    pub fn new(actor: &str, may: Permissions) -> Who {
        Who { actor: actor.to_owned(), may }
    }

    /// The worker and the recovery.
    pub fn system() -> Who {
        Who::new("freehold", Permissions::ALL)
    }
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The kernel said no.
    #[error("{0}")]
    Refused(Box<Refused>),
    /// There is unsaved work and the policy is to refuse: what, and where.
    #[error("{refused}; unsaved: {}", details.join("; "))]
    UnsavedWork {
        /// The refusal.
        refused: Box<Refused>,
        /// One line for each unsaved thing, with its worktree.
        details: Vec<String>,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The physical side refused or failed.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A runtime was recorded and could not begin; it is recorded as stopped.
    #[error(transparent)]
    Start(#[from] StartFailed),
    /// A string cannot be an id.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Something that the call names is not there.
    #[error("{what} {id:?} is not known; {help}")]
    NotThere {
        /// What kind of thing.
        what: &'static str,
        /// Its id.
        id: String,
        /// What would help.
        help: &'static str,
    },
    /// What is kept belongs into a worktree that is there, or in removal: nothing is put over it
    /// (W-34).
    #[error(
        "{id} is not put over the worktree that is there, {}; archive that one first, or put it \
         into a new worktree (W-34)",
        path.display()
    )]
    Live {
        /// The salvage entry or trash.
        id: String,
        /// Where the worktree is.
        path: PathBuf,
    },
    /// The barrier won: what had been made was undone, or will be (W-4).
    #[error("the worktree was not kept, because {}; it was undone", guard.says())]
    Undone {
        /// What was in its way.
        guard: freehold_kernel::Guard,
    },
}

impl HostError {
    /// The guard that refused, if that is why.
    pub fn guard(&self) -> Option<freehold_kernel::Guard> {
        match self {
            HostError::Refused(refused) | HostError::UnsavedWork { refused, .. } => {
                Some(refused.refusal.guard)
            }
            HostError::Undone { guard } => Some(*guard),
            HostError::Store(_)
            | HostError::Workspace(_)
            | HostError::Start(_)
            | HostError::Name(_)
            | HostError::Live { .. }
            | HostError::NotThere { .. } => None,
        }
    }
}

/// One running instance of a host (D-15).
pub struct Host<S, W, D = OnThisThread> {
    pub(crate) store: S,
    pub(crate) workspaces: W,
    pub(crate) drive: D,
    pub(crate) runtimes: Box<dyn Runtimes + Send + Sync>,
    pub(crate) instance: InstanceId,
    machine: String,
    renewed: Mutex<Instant>,
    /// The runtimes that recovery tried to stop in vain, and until when it leaves them.
    pub(crate) vain: Mutex<BTreeMap<RuntimeId, Time>>,
    /// The living processes whose instance is gone, as recovery saw each first.
    pub(crate) lone: Mutex<BTreeMap<RuntimeId, Lone>>,
    moment: Box<dyn Fn() -> Instant + Send + Sync>,
    repositories: Box<dyn Fn(&str) -> PathBuf + Send + Sync>,
}

impl<S: Store, W: Workspaces, D: Drive> Host<S, W, D> {
    /// Registers a fresh instance on this machine.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn start(
        store: S,
        workspaces: W,
        drive: D,
        runtimes: Box<dyn Runtimes + Send + Sync>,
        machine: &str,
    ) -> Result<Host<S, W, D>, HostError> {
        let host = Host {
            store,
            workspaces,
            drive,
            runtimes,
            instance: InstanceId(fresh()),
            machine: machine.to_owned(),
            renewed: Mutex::new(Instant::now()),
            vain: Mutex::default(),
            lone: Mutex::default(),
            moment: Box::new(Instant::now),
            repositories: Box::new(|name| PathBuf::from(name)),
        };
        let instance = host.instance;
        host.ask(&Who::system(), None, |c| {
            let machine = c.id(machine)?;
            Ok(Command::System(SystemCommand::RegisterInstance { instance, host: machine }))
        })?;
        Ok(host)
    }

    /// Says where the repository is that the host calls by a name. Without it, the name is the
    /// path.
    pub fn locate(&mut self, find: impl Fn(&str) -> PathBuf + Send + Sync + 'static) {
        self.repositories = Box::new(find);
    }

    /// Gives the host's own moments in place of the machine's. Renewals are paced by them,
    /// and recovery's patience with a silent instance is measured by them, too (S-14); nothing else
    /// is decided by them: that is for the store's clock.
    pub fn paced_by(&mut self, moment: impl Fn() -> Instant + Send + Sync + 'static) {
        *self.renewed.get_mut().unwrap_or_else(PoisonError::into_inner) = moment();
        self.moment = Box::new(moment);
    }

    /// Pulses may come as often as they like; this renews what is held once in [`PULSE`], and
    /// answers whether it is held still. Between renewals it is taken to be.
    pub(crate) fn paced<'a>(
        &'a self,
        mut renew: impl FnMut() -> bool + 'a,
    ) -> impl FnMut() -> bool + 'a {
        let mut last = self.moment();
        move || {
            let moment = self.moment();
            if moment.saturating_duration_since(last) < PULSE {
                return true;
            }
            last = moment;
            renew()
        }
    }

    pub(crate) fn moment(&self) -> Instant {
        (self.moment)()
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The workspaces.
    pub fn workspaces(&self) -> &W {
        &self.workspaces
    }

    /// This instance's id.
    pub fn instance(&self) -> String {
        uuid_text(self.instance.0)
    }

    /// The machine's name, as roots and instances record it.
    pub fn machine(&self) -> &str {
        &self.machine
    }

    pub(crate) fn repository(&self, name: &str) -> PathBuf {
        (self.repositories)(name)
    }

    /// Submits one command. With a request id, a lost reply may be asked for again (D-19).
    ///
    /// What comes back is the answer to this command, never that of a renewal which went before
    /// it: a lost reply of that one does not make a command unknown that was not even sent.
    ///
    /// # Errors
    /// The refusal, or the store's failure.
    pub fn ask(
        &self,
        who: &Who,
        request: Option<&str>,
        compose: impl FnOnce(&mut Composer) -> Result<Command, NameError>,
    ) -> Result<Accepted, HostError> {
        self.stay_alive()?;
        self.ask_once(who, request, compose)
    }

    fn ask_once(
        &self,
        who: &Who,
        request: Option<&str>,
        compose: impl FnOnce(&mut Composer) -> Result<Command, NameError>,
    ) -> Result<Accepted, HostError> {
        let mut composer = Composer::new(&who.actor, who.may)?;
        if let Some(id) = request {
            composer = composer.request(id)?;
        }
        let command = compose(&mut composer)?;
        let submission = composer.submit(command);
        let outcome = self.drive.wait(self.store.submit(&submission))?;
        let slept =
            matches!(&outcome, Outcome::Refused(r) if r.refusal.guard == Guard::InstanceAlive);
        let outcome = if slept {
            // The machine slept, or nothing was asked for long: this process still is what it
            // was, and says so before it asks again. Whether that was heard, the command learns.
            let instance = self.instance;
            let mut renewal = Composer::new("freehold", Permissions::SYSTEM)?;
            renewal.know(&submission.names);
            let renewal =
                renewal.submit(Command::System(SystemCommand::RenewInstance { instance }));
            let _heard = self.drive.wait(self.store.submit(&renewal));
            self.drive.wait(self.store.submit(&submission))?
        } else {
            outcome
        };
        match outcome {
            Outcome::Accepted(accepted) => Ok(accepted),
            Outcome::Refused(refused) => Err(HostError::Refused(Box::new(refused))),
        }
    }

    /// Reads rows.
    ///
    /// # Errors
    /// The store's failure.
    pub fn read(&self, reads: &[Read]) -> Result<Rows, HostError> {
        Ok(self.drive.wait(self.store.read(reads))?)
    }

    /// Reads further rows, found by what was read before.
    pub(crate) fn read_on(&self, rows: &mut Rows, reads: Vec<Read>) -> Result<(), HostError> {
        let asked: Vec<Read> = reads
            .into_iter()
            .filter(|r| r.by.as_ref().is_none_or(|(_, values)| !values.is_empty()))
            .collect();
        if !asked.is_empty() {
            let more = self.read(&asked)?;
            rows.absorb(more);
        }
        Ok(())
    }

    /// A host that only asks now and then is alive all the same (D-15). What is said of the
    /// renewal is not the command's answer: what a lapsed instance may not do, the kernel refuses,
    /// and a renewal that failed is tried again at the next question.
    ///
    /// # Errors
    /// A store that is away is so for the command, too, which then was not sent.
    fn stay_alive(&self) -> Result<(), HostError> {
        let due = {
            let last = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
            self.moment().saturating_duration_since(*last) >= RENEW_EVERY
        };
        match if due { self.renew() } else { Ok(()) } {
            Err(HostError::Store(StoreError::Unknown { .. }) | HostError::Refused(_)) => Ok(()),
            heard => heard,
        }
    }

    /// Says that this instance lives. A host that may be silent for longer than the lease calls
    /// it, or [`Host::tick`], from time to time.
    ///
    /// # Errors
    /// The refusal, or the store's failure.
    pub fn renew(&self) -> Result<(), HostError> {
        let moment = self.moment();
        // Said before it is so: of several that ask at once, one renews.
        let before = {
            let mut renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *renewed, moment)
        };
        let instance = self.instance;
        let heard = self.ask_once(&Who::system(), None, |_| {
            Ok(Command::System(SystemCommand::RenewInstance { instance }))
        });
        if heard.is_err() {
            *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = before;
        }
        heard.map(|_| ())
    }

    /// Carries out the stops among the effects, all within one bound (T-5), and reports what is
    /// proven dead. What is not keeps its handle (C-6); what this process does not serve is left
    /// to those that do (C-17).
    ///
    /// `pulse` is called in between, so that a barrier's lease is kept while stops take their
    /// time (B-7).
    pub(crate) fn stop_runtimes(
        &self,
        accepted: &Accepted,
        bound: Span,
        pulse: &mut dyn FnMut(),
    ) -> Result<(), HostError> {
        let mut handles = Vec::new();
        for effect in &accepted.effects {
            match *effect {
                SessionEffect::StopRuntime { runtime } => {
                    let id = accepted.names.text(Kind::RuntimeId, runtime.0)?;
                    handles.push(self.runtime_handle(&id)?);
                }
                SessionEffect::StartTurn { .. } | SessionEffect::ReturnInput { .. } => {}
            }
        }
        handles.retain(|handle| self.runtimes.serves(handle));
        if handles.is_empty() {
            return Ok(());
        }
        pulse();
        let bound = Duration::from_micros(u64::try_from(bound.0).unwrap_or(0));
        let answers = self.runtimes.stop_all(&handles, bound, pulse);
        for (handle, answer) in handles.iter().zip(answers) {
            match answer {
                Liveness::Dead => {
                    self.report_stopped(&handle.id)?;
                }
                Liveness::Alive | Liveness::Unknown => {}
            }
        }
        Ok(())
    }

    /// Begins a runtime whose row is `starting` with a process that waits: records it, and lets
    /// it go once that is durable (S-14). A runtime that was asked to stop meanwhile, or that
    /// runs already, is not begun, and the process ends.
    ///
    /// # Errors
    /// Nothing runs: the store's refusal or failure, [`HostError::NotThere`] if the row does not
    /// wait to be started, [`HostError::Start`] if the process ended while it waited.
    pub fn start_runtime<P: Held>(
        &self,
        runtime: &str,
        process: P,
    ) -> Result<P::Running, HostError> {
        let texts = process.texts();
        let request = uuid_text(fresh());
        let record = || {
            self.ask(&Who::system(), Some(&request), |c| {
                let id: RuntimeId = c.text(runtime)?;
                for (column, text) in &texts {
                    c.content(TableId::Runtimes, id.0, column, text);
                }
                let status = RuntimeStatus::Running;
                Ok(Command::Turn(TurnCommand::ReportRuntime { runtime: id, status }))
            })
        };
        let recorded = match record() {
            // What became of it is known by its request id (D-19).
            Err(HostError::Store(StoreError::Unknown { .. })) => record(),
            other => other,
        }?;
        if recorded.reply != Reply::Done {
            return Err(HostError::NotThere {
                what: "runtime that waits to be started",
                id: runtime.to_owned(),
                help: "it was asked to stop or runs already; nothing was begun",
            });
        }
        process.begin().map_err(|failed| {
            // What cannot be reported now is found dead by recovery.
            let _ = self.report_stopped(runtime);
            HostError::Start(failed)
        })
    }

    pub(crate) fn report_stopped(&self, runtime: &str) -> Result<Accepted, HostError> {
        self.report(runtime, RuntimeStatus::Stopped)
    }

    pub(crate) fn report(
        &self,
        runtime: &str,
        status: RuntimeStatus,
    ) -> Result<Accepted, HostError> {
        self.ask(&Who::system(), None, |c| {
            let runtime = c.text(runtime)?;
            Ok(Command::Turn(TurnCommand::ReportRuntime { runtime, status }))
        })
    }

    /// The handle of a runtime by its id, as the port takes it.
    ///
    /// # Errors
    /// The store's failure.
    pub fn runtime_handle(&self, runtime: &str) -> Result<RuntimeHandle, HostError> {
        let rows = self.read(&[Read::by(TableId::Runtimes, "id", &[runtime])])?;
        let row = rows.view.runtimes.iter().next().copied();
        Ok(RuntimeHandle::of(runtime.to_owned(), row, &rows))
    }

    /// The settings of the store (D-25).
    pub(crate) fn settings(&self) -> Result<Settings, HostError> {
        let rows = self.read(&[Read::all(TableId::Settings)])?;
        Ok(rows.view.settings.id(1).copied().unwrap_or(Settings::DEFAULT))
    }
}

/// 16 fresh bytes: for ids and tokens that Freehold makes.
pub(crate) fn fresh() -> u128 {
    uuid::Uuid::now_v7().as_u128()
}
