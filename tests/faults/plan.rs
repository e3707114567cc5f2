//! What goes wrong, and at which call.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use freehold_git::faults::{Call, CallKind, Faults};

/// What happens at one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is not made, and fails with this.
    Refused(i32),
    /// It is made, and reported as failed.
    Lied,
    /// The process ends before it.
    DiesBefore,
    /// The process ends after it.
    DiesAfter,
    /// The git command is killed right after its start.
    KilledAtStart,
    /// The git command is killed once it has written something, if it ever does.
    KilledWriting,
    /// The process ends while git runs, and git goes on.
    DiesMeanwhile,
}

pub(crate) const EIO: i32 = 5;
pub(crate) const EAGAIN: i32 = 11;
pub(crate) const EACCES: i32 = 13;
pub(crate) const ENOSPC: i32 = 28;

impl Fault {
    /// Everything that can happen at a call of this kind.
    pub(crate) fn of(kind: CallKind) -> &'static [Fault] {
        use Fault::*;
        match kind {
            // Dead before a look is dead after the change before it.
            CallKind::Look => &[Refused(EIO), Refused(EACCES)],
            CallKind::Change => {
                &[Refused(EIO), Refused(ENOSPC), Refused(EACCES), Lied, DiesBefore, DiesAfter]
            }
            CallKind::Command => &[
                Refused(EAGAIN),
                KilledAtStart,
                KilledWriting,
                Lied,
                DiesBefore,
                DiesMeanwhile,
                DiesAfter,
            ],
        }
    }

    /// Whether it ends the process.
    pub(crate) fn is_death(self) -> bool {
        matches!(self, Fault::DiesBefore | Fault::DiesAfter | Fault::DiesMeanwhile)
    }

    /// For another process, and back.
    pub(crate) fn text(self) -> String {
        format!("{self:?}")
    }

    pub(crate) fn death(text: &str) -> Fault {
        let all = [Fault::DiesBefore, Fault::DiesAfter, Fault::DiesMeanwhile];
        all.into_iter().find(|f| f.text() == text).unwrap()
    }
}

/// One fault at one call; counts the calls from 1.
#[derive(Debug)]
pub(crate) struct Plan {
    at: Option<(usize, Fault)>,
    calls: AtomicUsize,
    /// What was called, in order.
    pub(crate) log: Mutex<Vec<(CallKind, String)>>,
}

impl Plan {
    pub(crate) fn new(at: Option<(usize, Fault)>) -> Plan {
        Plan { at, calls: AtomicUsize::new(0), log: Mutex::default() }
    }

    /// What the call was at which it happened; none if there were fewer calls.
    pub(crate) fn met(&self) -> Option<String> {
        let log = self.log.lock().unwrap();
        log.get(self.at?.0 - 1).map(|(_, text)| text.clone())
    }

    /// The fault, if this is its call.
    fn now(&self) -> Option<Fault> {
        let (at, fault) = self.at?;
        (self.calls.load(Ordering::SeqCst) == at).then_some(fault)
    }

    fn die(&self) -> ! {
        println!("\nFAULTS met {}", self.met().unwrap_or_default());
        // Nothing is unwound, nothing is flushed: the end of a process.
        std::process::abort()
    }
}

impl Faults for Plan {
    fn before(&self, call: &Call<'_>) -> Option<i32> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let text = format!("{} {}", call.name, call.path.display());
        self.log.lock().unwrap().push((call.kind, text));
        match self.now() {
            Some(Fault::Refused(errno)) => Some(errno),
            Some(Fault::DiesBefore) => self.die(),
            _later => None,
        }
    }

    fn after(&self, _call: &Call<'_>) -> Option<i32> {
        match self.now() {
            Some(Fault::Lied) => Some(EIO),
            Some(Fault::DiesAfter) => self.die(),
            _other => None,
        }
    }

    fn started(&self, _call: &Call<'_>, pid: u32) {
        match self.now() {
            Some(Fault::KilledAtStart) => kill(pid),
            Some(Fault::KilledWriting) => {
                while is_running(pid) && written(pid) == 0 {
                    std::thread::yield_now();
                }
                kill(pid);
            }
            Some(Fault::DiesMeanwhile) => self.die(),
            _other => {}
        }
    }
}

/// `kill -9` of the command and what it started.
fn kill(pid: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // It may have ended by itself.
    let _ended = kill_process_group(pid, Signal::KILL);
}

fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    let stat = stat.unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with(['Z', 'X']))
        && !stat.is_empty()
}

/// How many bytes a process has written so far.
fn written(pid: u32) -> u64 {
    let io = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("io"));
    io.unwrap_or_default()
        .lines()
        .find_map(|l| l.strip_prefix("wchar: ")?.parse().ok())
        .unwrap_or(0)
}
