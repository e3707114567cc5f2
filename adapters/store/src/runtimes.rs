//! The port to runtimes: what runs an agent's turns (D-11, C-7). A host brings its own, or takes
//! `freehold-runtime` for programs on its machine; the kernel only ever learns one of three
//! answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use freehold_kernel::{Liveness, Row as _, Runtime};

use crate::store::Rows;

/// A runtime's durable handle: its row, and the row's texts.
#[derive(Clone, Debug, PartialEq)]
pub struct RuntimeHandle {
    /// Its id: a runtime's, or a container's or sandbox's handle.
    pub id: String,
    /// Its row; none for an environment's container or sandbox, and for a row that is gone.
    pub row: Option<Runtime>,
    /// The texts of its row (`pid`, `process_started_at`, `container_id`, `url`, ...).
    pub texts: std::collections::BTreeMap<&'static str, String>,
}

impl RuntimeHandle {
    /// The handle of a row that was read; its texts are among what was read with it.
    pub fn of(id: String, row: Option<Runtime>, rows: &Rows) -> RuntimeHandle {
        let texts = row.and_then(|row| rows.contents.get(&row.row_key()));
        let texts = texts.into_iter().flatten();
        RuntimeHandle {
            id,
            row,
            texts: texts.filter_map(|(k, v)| Some((*k, v.clone()?))).collect(),
        }
    }
}

/// The port. `freehold-testkit` tests somebody's own by one call.
pub trait Runtimes {
    /// Stops a runtime within a bound (T-5). `Dead` only if the stop succeeded or the process is
    /// proven gone from its own host; "not found" alone is `Unknown` (C-7). `pulse` is called at
    /// least every second, so that the caller's lease is kept meanwhile.
    fn stop(&self, handle: &RuntimeHandle, bound: Duration, pulse: &mut dyn FnMut()) -> Liveness;

    /// Stops several within one bound; one answer for each, in their order. By itself this stops
    /// one after the other. Who can should ask them all to end before waiting for the first.
    fn stop_all(
        &self,
        handles: &[RuntimeHandle],
        bound: Duration,
        pulse: &mut dyn FnMut(),
    ) -> Vec<Liveness> {
        let began = Instant::now();
        let left = || bound.saturating_sub(began.elapsed());
        handles.iter().map(|handle| self.stop(handle, left(), pulse)).collect()
    }

    /// Whether this process could ever say that this one is dead. What it could not is left to
    /// those that can, and no try is spent on it (C-17).
    fn serves(&self, _handle: &RuntimeHandle) -> bool {
        true
    }

    /// Whether it lives, without touching it.
    fn liveness(&self, handle: &RuntimeHandle) -> Liveness;

    /// Called by every tick, for what should not wait: asking ended processes how they ended.
    fn tend(&self) {}
}

/// A host keeps one to begin processes with, and hands the same to [`crate::Host::start`].
impl<R: Runtimes + ?Sized> Runtimes for Arc<R> {
    fn stop(&self, handle: &RuntimeHandle, bound: Duration, pulse: &mut dyn FnMut()) -> Liveness {
        (**self).stop(handle, bound, pulse)
    }

    fn stop_all(
        &self,
        handles: &[RuntimeHandle],
        bound: Duration,
        pulse: &mut dyn FnMut(),
    ) -> Vec<Liveness> {
        (**self).stop_all(handles, bound, pulse)
    }

    fn serves(&self, handle: &RuntimeHandle) -> bool {
        (**self).serves(handle)
    }

    fn liveness(&self, handle: &RuntimeHandle) -> Liveness {
        (**self).liveness(handle)
    }

    fn tend(&self) {
        (**self).tend();
    }
}

/// A process that was made for a runtime and waits, so that it can be recorded before it begins
/// (S-14). Dropped, it ends and nothing has run; and so it does if this process dies.
pub trait Held {
    /// What is there once it has begun.
    type Running;

    /// The texts of its row by which it is found again.
    fn texts(&self) -> Vec<(&'static str, String)>;

    /// Lets it begin.
    ///
    /// # Errors
    /// It ended while it waited; nothing has run.
    fn begin(self) -> Result<Self::Running, StartFailed>;
}

/// A runtime was recorded and could not begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}; start another")]
pub struct StartFailed {
    /// What was seen.
    pub detail: String,
}

/// For a host that runs nothing: it can prove nothing about anybody's runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRuntimes;

impl Runtimes for NoRuntimes {
    fn stop(&self, _: &RuntimeHandle, _: Duration, _: &mut dyn FnMut()) -> Liveness {
        Liveness::Unknown
    }

    fn serves(&self, _handle: &RuntimeHandle) -> bool {
        false
    }

    fn liveness(&self, _handle: &RuntimeHandle) -> Liveness {
        Liveness::Unknown
    }
}
