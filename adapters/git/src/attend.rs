//! Keeping a caller's lease while something is looked at that has no place to stop (F36).
//!
//! An inspection is a tree walk, a look at every process and a dozen git commands; any of them may
//! outlast a lease on a large tree or a slow disk. It runs on a thread of its own that ends with
//! the call, and the caller's thread does nothing but pulse meanwhile, so that no part of it can
//! be forgotten. Nothing outlives the call and nothing runs behind the host's back.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Builder, scope};
use std::time::Duration;

use freehold_store::workspaces::Pulse;

/// How often the caller is called.
const TICK: Duration = Duration::from_millis(250);

/// Does the work while `pulse` is called every 250 ms, on the caller's own thread.
///
/// # Errors
/// If no thread can be had; then nothing was done.
pub(crate) fn attended<T: Send>(
    pulse: Pulse<'_>,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    scope(|scope| {
        let (working, ended) = channel::<()>();
        let worker = Builder::new().spawn_scoped(scope, move || {
            // Dropped at the end, even by a panic.
            let _working = working;
            work()
        })?;
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(TICK) {
            pulse();
        }
        match worker.join() {
            Ok(done) => Ok(done),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::attended;

    /// The work waits for a pulse: without one this would never end.
    #[test]
    fn f36_the_caller_pulses_until_the_work_is_done() {
        let (pulsed, seen) = channel();
        let mut pulse = || pulsed.send(()).is_ok();
        let done = attended(&mut pulse, move || (0..3).map(|_| seen.recv()).all(|r| r.is_ok()));
        assert!(matches!(done, Ok(true)), "{done:?}");
    }

    #[test]
    fn a_panic_of_the_work_is_the_callers() {
        let caught = std::panic::catch_unwind(|| attended(&mut || true, || panic!("on purpose")));
        assert!(caught.is_err());
    }
}
