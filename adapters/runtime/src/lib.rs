//! Local runtimes: the port of [`freehold_store::Runtimes`] for programs on this machine.
//!
//! A program stands in a session of its own, and begins only once its process is recorded
//! (S-14). What belongs to it is its first process, everybody in its session, and whoever carries
//! its token in the environment that he was started with. That, and nothing else, is ever
//! signalled (W-31), and it is dead when none of it is left (C-7).
//!
//! What cannot be found: a program that both left the session and cleared its environment, or
//! that was started by somebody else on the runtime's behalf (a container engine, a scheduler).
//! If it stands in a worktree, the removal of that still waits for it (W-31).
//!
//! ```
//! use freehold_runtime::{LocalRuntimes, Program, Running, Sink};
//! use freehold_store::{Drive, Host, Store, Workspaces};
//!
//! /// What a host does for the effect `StartTurn` of a runtime that is `starting`. It hands the
//! /// same runtimes to `Host::start`, in an `Arc`.
//! fn start<S: Store, W: Workspaces, D: Drive>(
//!     host: &Host<S, W, D>,
//!     runtimes: &LocalRuntimes,
//!     runtime: &str,
//!     worktree: &std::path::Path,
//! ) -> Result<Running, Box<dyn std::error::Error>> {
//!     let agent = Program::new("/usr/bin/agent", worktree)
//!         .arg("--quiet")
//!         .env("HOME", "/home/agent")
//!         .spoken_to()
//!         .outputs(Sink::Pipe, Sink::Nowhere);
//!     Ok(host.start_runtime(runtime, runtimes.prepare(agent)?)?)
//! }
//! ```
//!
//! Calls block, on the thread that the host handed over (A-7). Nothing here starts a thread.

mod birth;
mod error;
mod place;
mod signal;
mod start;
mod stop;
mod table;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use freehold_kernel::{Liveness, RuntimeKind, RuntimeStatus};
use freehold_store::{RuntimeHandle, Runtimes};

use birth::Birth;
pub use error::StartError;
use place::{Nearness, Place};
use start::Kept;
pub use start::{Program, Running, Sink, Waiting};
use table::{Id, Table};

/// How long a program that was asked to end is given before it is killed, at most.
const GRACE: Duration = Duration::from_secs(10);

/// The runtimes of this machine, as this process sees them.
#[derive(Debug)]
pub struct LocalRuntimes {
    place: Result<Place, String>,
    table: Table,
    grace: Duration,
    children: Mutex<Vec<Arc<Kept>>>,
}

impl Default for LocalRuntimes {
    fn default() -> LocalRuntimes {
        LocalRuntimes::new()
    }
}

/// What a handle says about where its process is.
enum Handle {
    /// Its process was never recorded, so it never began (S-14).
    NeverBegun,
    /// Of an earlier boot of this machine.
    EarlierBoot,
    /// Of this place.
    Here(Birth),
    /// Nobody here can say; and whether somebody elsewhere might.
    Unknown { why: String, elsewhere: bool },
}

impl LocalRuntimes {
    /// On this machine, with a grace of 10 s, or of a third of a stop's bound if that is less.
    pub fn new() -> LocalRuntimes {
        LocalRuntimes {
            place: Place::own().map_err(|e| e.to_string()),
            table: Table::new(),
            grace: GRACE,
            children: Mutex::default(),
        }
    }

    /// The same with another grace. It is never more than a third of a stop's bound.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> LocalRuntimes {
        self.grace = grace;
        self
    }

    /// Makes the process of a program. It waits until it is recorded:
    /// [`freehold_store::Host::start_runtime`] does both.
    ///
    /// # Errors
    /// Nothing runs then.
    pub fn prepare(&self, program: Program) -> Result<Waiting, StartError> {
        self.tend();
        let place = self.place.as_ref().map_err(|why| StartError::NoPlace(why.clone()))?;
        let waiting = start::prepare(program, place, &self.table)?;
        let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
        children.push(Arc::clone(waiting.kept()));
        Ok(waiting)
    }

    /// Whether it lives, and what that was concluded from, for people.
    pub fn explain(&self, handle: &RuntimeHandle) -> (Liveness, String) {
        self.tend();
        match self.read(handle) {
            Handle::NeverBegun => (Liveness::Dead, "no process was ever begun for it".to_owned()),
            Handle::EarlierBoot => (
                Liveness::Dead,
                "its process ended with an earlier boot of this machine".to_owned(),
            ),
            Handle::Unknown { why, .. } => (Liveness::Unknown, why),
            Handle::Here(birth) => self.explain_here(&birth),
        }
    }

    fn explain_here(&self, birth: &Birth) -> (Liveness, String) {
        let pid = birth.pid;
        let first = Id { pid, ticks: birth.ticks };
        if self.table.stat(pid).is_ok_and(|s| s.is_some_and(|s| s.id == first && !s.over)) {
            return (Liveness::Alive, format!("process {pid} lives"));
        }
        match stop::look(&self.table, birth, &mut BTreeSet::new()) {
            Ok((Liveness::Alive, members)) => {
                let left: Vec<String> =
                    members.living.iter().map(|m| m.id.pid.to_string()).collect();
                let words = format!("process {pid} has ended and left {}", left.join(", "));
                (Liveness::Alive, words)
            }
            Ok((Liveness::Dead, _)) => {
                (Liveness::Dead, format!("process {pid} is gone, and everybody of it"))
            }
            Ok((Liveness::Unknown, _)) => {
                let words = format!(
                    "process {pid} is gone, and somebody lives in a session of that number"
                );
                (Liveness::Unknown, words)
            }
            Err(e) => (Liveness::Unknown, format!("the process table cannot be read: {e}")),
        }
    }

    fn read(&self, handle: &RuntimeHandle) -> Handle {
        let unknown = |why: &str, elsewhere| Handle::Unknown { why: why.to_owned(), elsewhere };
        let Some(row) = handle.row.filter(|row| row.kind == RuntimeKind::Local) else {
            return unknown("it is no process of a machine", true);
        };
        let text = |name: &str| handle.texts.get(name).filter(|text| !text.is_empty());
        let (pid, started) = match (text("pid"), text("process_started_at")) {
            (Some(pid), Some(started)) => (pid, started),
            (None, None) => {
                // Whoever begins a local runtime records its process first, so that nothing was
                // begun; and nothing will be, since that record is refused once this one is
                // stopped. A report that it runs, without a process, was somebody else's way.
                let unreported = row.last_seen_at == row.created_at;
                return match row.status {
                    RuntimeStatus::Starting => Handle::NeverBegun,
                    RuntimeStatus::Stopping if unreported => Handle::NeverBegun,
                    RuntimeStatus::Stopping | RuntimeStatus::Running | RuntimeStatus::Stopped => {
                        unknown("nobody recorded its process", false)
                    }
                };
            }
            (Some(_), None) | (None, Some(_)) => {
                return unknown("half of what names its process is missing", false);
            }
        };
        let Some(birth) = Birth::read(pid, started) else {
            return unknown("what names its process was written by another program", false);
        };
        match &self.place {
            Err(why) => Handle::Unknown {
                why: format!("this machine does not say what it is: {why}"),
                elsewhere: true,
            },
            Ok(own) => match birth.place.seen_from(own) {
                Nearness::Here => Handle::Here(birth),
                Nearness::EarlierBoot => Handle::EarlierBoot,
                Nearness::Elsewhere => {
                    unknown("it is a process of another machine, boot or container", true)
                }
            },
        }
    }

    /// Whether this very process stands in the runtime: it cannot stop it and live to tell.
    fn inside(&self, birth: &Birth) -> bool {
        let in_session = || {
            let own = self.table.own().ok()?;
            // Its number may have been given anew to whoever began this process's session.
            let anew = self.table.stat(birth.pid).ok()?.is_some_and(|s| s.id.ticks != birth.ticks);
            Some(own.session == birth.pid && !anew)
        };
        in_session().unwrap_or(false)
            || birth::own_variables()
                .iter()
                .any(|name| name.to_str().is_some_and(|n| n.ends_with(&birth.token)))
    }
}

impl Runtimes for LocalRuntimes {
    fn stop(&self, handle: &RuntimeHandle, bound: Duration, pulse: &mut dyn FnMut()) -> Liveness {
        let answers = self.stop_all(std::slice::from_ref(handle), bound, pulse);
        answers.first().copied().unwrap_or(Liveness::Unknown)
    }

    fn stop_all(
        &self,
        handles: &[RuntimeHandle],
        bound: Duration,
        pulse: &mut dyn FnMut(),
    ) -> Vec<Liveness> {
        self.tend();
        let kept: Vec<Arc<Kept>> =
            self.children.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut targets = Vec::new();
        let mut answers = Vec::new();
        for handle in handles {
            let answer = match self.read(handle) {
                Handle::NeverBegun | Handle::EarlierBoot => Some(Liveness::Dead),
                Handle::Unknown { .. } => Some(Liveness::Unknown),
                Handle::Here(birth) if self.inside(&birth) => Some(Liveness::Alive),
                Handle::Here(birth) => {
                    let child = kept.iter().find(|k| k.pid == birth.pid);
                    let child = child.and_then(|k| match k.child.try_lock() {
                        Ok(child) => Some(child),
                        Err(TryLockError::Poisoned(child)) => Some(child.into_inner()),
                        // Another thread stops it too, and holds its number for both.
                        Err(TryLockError::WouldBlock) => None,
                    });
                    targets.push(stop::Target::new(birth, child));
                    None
                }
            };
            answers.push(answer);
        }
        let grace = self.grace.min(bound / 3);
        let mut stopped = stop::stop(&self.table, targets, grace, bound, pulse).into_iter();
        self.tend();
        answers
            .into_iter()
            .map(|answer| answer.or_else(|| stopped.next()).unwrap_or(Liveness::Unknown))
            .collect()
    }

    fn serves(&self, handle: &RuntimeHandle) -> bool {
        match self.read(handle) {
            Handle::NeverBegun | Handle::EarlierBoot => true,
            Handle::Unknown { elsewhere, .. } => !elsewhere,
            Handle::Here(birth) => !self.inside(&birth),
        }
    }

    fn liveness(&self, handle: &RuntimeHandle) -> Liveness {
        self.explain(handle).0
    }

    /// Asks every child that has ended how, so that nothing is left of it in the process table.
    fn tend(&self) {
        let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
        children.retain(|kept| kept.ended().is_none());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table in which this process has this session, begun by itself at this time.
    fn seen_as(session: u32, began: u64) -> (tempfile::TempDir, LocalRuntimes) {
        let folder = tempfile::tempdir().unwrap();
        for pid in [std::process::id(), session] {
            let line = format!(
                "{pid} (x) S 1 {session} {session} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {began} 1 2"
            );
            std::fs::create_dir(folder.path().join(pid.to_string())).unwrap();
            std::fs::write(folder.path().join(pid.to_string()).join("stat"), line).unwrap();
        }
        let runtimes = LocalRuntimes { table: Table::at(folder.path()), ..LocalRuntimes::new() };
        (folder, runtimes)
    }

    #[test]
    fn who_stands_in_a_session_of_an_outer_namespace_stands_in_no_runtime() {
        let place = Place::own().unwrap();
        let birth = Birth { pid: 0x7fff_fff0, ticks: 7, place, token: birth::fresh_token() };
        // A container that was entered from outside shows 0 for group and session.
        let (_folder, runtimes) = seen_as(0, 7);
        let own = runtimes.table.own().unwrap();
        assert_eq!((own.group, own.session), (0, 0));
        assert!(!runtimes.inside(&birth));
        let (_folder, runtimes) = seen_as(birth.pid, 7);
        assert!(runtimes.inside(&birth));
        // The number was given anew, and it was the new one who began this session.
        let (_folder, runtimes) = seen_as(birth.pid, 8);
        assert!(!runtimes.inside(&birth));
    }

    #[test]
    fn a_table_that_hides_somebody_proves_nobody_dead() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("self");
        std::os::unix::fs::symlink(std::process::id().to_string(), &own).unwrap();
        // No process has this number.
        let pid = 0x7fff_fff0;
        let runtimes = LocalRuntimes { table: Table::at(folder.path()), ..LocalRuntimes::new() };
        let place = Place::own().unwrap();
        let birth = Birth { pid, ticks: 1, place, token: birth::fresh_token() };
        let (answer, words) = runtimes.explain_here(&birth);
        assert_eq!(answer, Liveness::Unknown, "{words}");
        assert!(words.contains("hides"), "{words}");
        // With everybody shown, nobody of it is there.
        assert_eq!(LocalRuntimes::new().explain_here(&birth).0, Liveness::Dead);
        let targets = vec![stop::Target::new(birth, None)];
        let bound = Duration::from_millis(200);
        let answers = stop::stop(&runtimes.table, targets, bound, bound, &mut || {});
        assert_eq!(answers, [Liveness::Unknown]);
    }
}
