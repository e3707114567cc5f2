//! Sample runtimes: a table of processes in memory, whose numbers are given anew. Without a defect
//! they keep the contract.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use freehold_kernel::*;
use freehold_store::{RuntimeHandle, Runtimes};
use freehold_testkit::{Manners, RuntimesRig};

use crate::defects::Defect;

thread_local! {
    /// What is wrong with the runtimes of this test's thread.
    pub(crate) static DEFECT: Cell<Option<Defect>> = const { Cell::new(None) };
}

/// How often a stop looks before it kills, and before it gives up.
const GRACE: u32 = 10;
const ROUNDS: u32 = 20;

/// A process.
struct Process {
    /// Which of all that ever were.
    birth: u64,
    manners: Manners,
}

#[derive(Default)]
struct Machine {
    processes: BTreeMap<u32, Process>,
    births: u64,
    /// Those that ended when they were asked.
    well: BTreeSet<u64>,
    /// Those that a stop was tried on, and by which; only defects look.
    tried: BTreeMap<u64, u64>,
    stops: u64,
}

impl Machine {
    fn lives(&self, pid: u32, birth: u64) -> bool {
        self.processes.get(&pid).is_some_and(|p| p.birth == birth)
    }
}

/// The runtimes of one instance.
pub(crate) struct Sample {
    machine: Arc<Mutex<Machine>>,
    defect: Option<Defect>,
}

/// What a handle leads to.
enum Leads {
    Here(u32, u64),
    /// To nobody that can be found here; and whether to somebody elsewhere.
    Nowhere(bool),
}

fn lock(machine: &Mutex<Machine>) -> MutexGuard<'_, Machine> {
    machine.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is recorded: the number; the machine and which of all processes it is.
fn record(handle: &RuntimeHandle) -> Option<(u32, &str, u64)> {
    let pid = handle.texts.get("pid")?.parse().ok()?;
    let (machine, birth) = handle.texts.get("process_started_at")?.split_once(' ')?;
    Some((pid, machine, birth.parse().ok()?))
}

impl Sample {
    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    fn read(&self, handle: &RuntimeHandle) -> Leads {
        let local = handle.row.is_some_and(|row| row.kind == RuntimeKind::Local);
        if !local && !self.has(Defect::TakesEveryKindForItsOwn) {
            return Leads::Nowhere(true);
        }
        let Some((pid, machine, birth)) = record(handle) else { return Leads::Nowhere(false) };
        if machine != "here" && !self.has(Defect::JudgesOtherMachines) {
            return Leads::Nowhere(true);
        }
        let here = lock(&self.machine);
        let known = here.processes.get(&pid).map(|p| p.birth);
        match known {
            Some(now) if self.has(Defect::KnowsNumbersOnly) => Leads::Here(pid, now),
            Some(_) | None => Leads::Here(pid, birth),
        }
    }

    fn nowhere(&self) -> Liveness {
        if self.has(Defect::TakesAbsentForDead) { Liveness::Dead } else { Liveness::Unknown }
    }

    fn stop_here(
        &self,
        pid: u32,
        birth: u64,
        bound: Duration,
        pulse: &mut dyn FnMut(),
    ) -> Liveness {
        let own = {
            let mut here = lock(&self.machine);
            here.stops += 1;
            let own = here.stops;
            let first = *here.tried.entry(birth).or_insert(own);
            if first != own && self.has(Defect::LeavesItToTheFirst) {
                return Liveness::Unknown;
            }
            first
        };
        let rounds = if bound < Duration::from_millis(1) { 1 } else { ROUNDS };
        let mut round = 0;
        while round < rounds || self.has(Defect::WaitsForEver) {
            round += 1;
            if !self.has(Defect::NeverPulses) {
                pulse();
            }
            let mut here = lock(&self.machine);
            if !here.lives(pid, birth) {
                let again = own != here.stops && self.has(Defect::ForgetsWhatItStopped);
                return if again { Liveness::Unknown } else { Liveness::Dead };
            }
            let listens = here.processes[&pid].manners == Manners::Listens;
            if listens && !self.has(Defect::KillsWithoutAsking) {
                here.processes.remove(&pid);
                here.well.insert(birth);
            } else if self.has(Defect::KillsWithoutAsking)
                || (round > GRACE && !self.has(Defect::NeverKills))
                    && !self.has(Defect::WaitsForEver)
                    && !self.has(Defect::SaysThatItIsDead)
            {
                here.processes.remove(&pid);
            } else if self.has(Defect::WaitsForEver) {
                drop(here);
                std::thread::park();
            }
        }
        let lives = lock(&self.machine).lives(pid, birth);
        if lives && !self.has(Defect::SaysThatItIsDead) { Liveness::Alive } else { Liveness::Dead }
    }
}

impl Runtimes for Sample {
    fn stop(&self, handle: &RuntimeHandle, bound: Duration, pulse: &mut dyn FnMut()) -> Liveness {
        match self.read(handle) {
            Leads::Here(pid, birth) => self.stop_here(pid, birth, bound, pulse),
            Leads::Nowhere(_) => self.nowhere(),
        }
    }

    fn stop_all(
        &self,
        handles: &[RuntimeHandle],
        bound: Duration,
        pulse: &mut dyn FnMut(),
    ) -> Vec<Liveness> {
        let mut answers: Vec<Liveness> =
            handles.iter().map(|handle| self.stop(handle, bound, pulse)).collect();
        if self.has(Defect::AnswersInDisorder) {
            answers.sort();
        }
        answers
    }

    fn serves(&self, handle: &RuntimeHandle) -> bool {
        self.has(Defect::ServesEverybody) || !matches!(self.read(handle), Leads::Nowhere(true))
    }

    fn liveness(&self, handle: &RuntimeHandle) -> Liveness {
        match self.read(handle) {
            Leads::Here(pid, birth) => {
                let mut here = lock(&self.machine);
                let lives = here.lives(pid, birth);
                if self.has(Defect::EndsWhatItLooksAt) {
                    here.processes.remove(&pid);
                }
                if lives { Liveness::Alive } else { Liveness::Dead }
            }
            Leads::Nowhere(_) => self.nowhere(),
        }
    }
}

/// A machine of a case's own.
pub(crate) struct SampleRig {
    machine: Arc<Mutex<Machine>>,
    defect: Option<Defect>,
}

impl RuntimesRig for SampleRig {
    type Runtimes = Sample;

    fn fresh() -> SampleRig {
        SampleRig { machine: Arc::default(), defect: DEFECT.get() }
    }

    fn open(&self) -> Sample {
        Sample { machine: Arc::clone(&self.machine), defect: self.defect }
    }

    fn begin(&self, _by: &Sample, manners: Manners) -> RuntimeHandle {
        let mut here = lock(&self.machine);
        here.births += 1;
        // The smallest number that is free.
        let pid = (1..).find(|pid| !here.processes.contains_key(pid)).unwrap();
        let birth = here.births;
        here.processes.insert(pid, Process { birth, manners });
        let row = Runtime {
            id: RuntimeId(u128::from(birth)),
            session_id: SessionId(2),
            task_id: TaskId(3),
            task_environment_id: None,
            instance_id: InstanceId(4),
            kind: RuntimeKind::Local,
            status: RuntimeStatus::Running,
            last_seen_at: Time(6),
            created_at: Time(5),
            updated_at: Time(6),
        };
        let texts = [("pid", pid.to_string()), ("process_started_at", format!("here {birth}"))];
        RuntimeHandle { id: format!("r{birth}"), row: Some(row), texts: texts.into() }
    }

    fn kill(&self, handle: &RuntimeHandle) {
        let (pid, ..) = record(handle).unwrap();
        lock(&self.machine).processes.remove(&pid).unwrap();
    }

    fn runs(&self, handle: &RuntimeHandle) -> bool {
        let (pid, _, birth) = record(handle).unwrap();
        lock(&self.machine).lives(pid, birth)
    }

    fn ended_in_its_own_way(&self, handle: &RuntimeHandle) -> bool {
        let (_, _, birth) = record(handle).unwrap();
        lock(&self.machine).well.contains(&birth)
    }

    fn of_another_machine(&self, handle: &RuntimeHandle) -> RuntimeHandle {
        let mut there = handle.clone();
        let text = there.texts.get_mut("process_started_at").unwrap();
        *text = text.replace("here", "there");
        there
    }

    fn kinds() -> &'static [RuntimeKind] {
        &[RuntimeKind::Local]
    }

    fn patience() -> Duration {
        // A stop takes no time here; one that waits for ever is seen soon.
        if DEFECT.get() == Some(Defect::WaitsForEver) {
            Duration::from_secs(1)
        } else {
            Duration::from_secs(180)
        }
    }
}
