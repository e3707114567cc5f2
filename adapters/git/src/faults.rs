//! For tests: something that goes wrong at any one call of this crate to the disk or to git.
//!
//! Production has no faults, and then a call costs one look at a thread's own memory
//! (docs/decisions/0015).

use std::cell::RefCell;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallKind {
    /// It reads: something is decided on its answer.
    Look,
    /// It changes the disk, or makes a change lasting.
    Change,
    /// It runs a git command.
    Command,
}

/// One call of the port.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// What it does.
    pub kind: CallKind,
    /// Its name: the system call's, or git's subcommand.
    pub name: &'a str,
    /// The path it was given: absolute, or one name in an opened folder; of a git command the
    /// folder that it runs in.
    pub path: &'a Path,
}

/// A test's hook at every call. An implementation may also end the process.
pub trait Faults: Debug + Send + Sync {
    /// Before the call. `Some(errno)`: it is not made, and fails so.
    fn before(&self, call: &Call<'_>) -> Option<i32>;

    /// After the call, whether it went well or not. `Some(errno)`: it is reported as failed so,
    /// whatever it did.
    fn after(&self, call: &Call<'_>) -> Option<i32>;

    /// While a git command runs, right after its start.
    fn started(&self, _call: &Call<'_>, _pid: u32) {}
}

thread_local! {
    static HERE: RefCell<Option<Arc<dyn Faults>>> = const { RefCell::new(None) };
}

/// Faults of this thread, until it is dropped.
#[derive(Debug)]
pub(crate) struct Under {
    before: Option<Arc<dyn Faults>>,
}

impl Under {
    /// From now on the calls of this thread meet these.
    pub(crate) fn new(faults: Option<Arc<dyn Faults>>) -> Under {
        Under { before: HERE.replace(faults) }
    }
}

impl Drop for Under {
    fn drop(&mut self) {
        HERE.set(self.before.take());
    }
}

/// The faults of this thread.
pub(crate) fn here() -> Option<Arc<dyn Faults>> {
    HERE.with_borrow(Clone::clone)
}

/// Makes a call of the port.
pub(crate) fn call<T, E: From<Errno>>(
    kind: CallKind,
    name: &str,
    path: impl FnOnce() -> PathBuf,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let Some(faults) = here() else { return work() };
    let path = path();
    let call = Call { kind, name, path: &path };
    if let Some(errno) = faults.before(&call) {
        return Err(Errno::from_raw_os_error(errno).into());
    }
    let done = work();
    match faults.after(&call) {
        Some(errno) => Err(Errno::from_raw_os_error(errno).into()),
        None => done,
    }
}
