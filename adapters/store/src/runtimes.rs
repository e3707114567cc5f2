//! The port to runtimes: what runs an agent's turns (D-11, C-7). A host that runs them brings its
//! own; the kernel only ever learns one of three answers.

use freehold_kernel::Liveness;

/// A runtime's durable handle, in texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeHandle {
    /// Its id: a runtime's, or a container's or sandbox's handle.
    pub id: String,
    /// The texts of its row (`pid`, `process_started_at`, `container_id`, `url`, ...).
    pub texts: std::collections::BTreeMap<&'static str, String>,
}

/// The port.
pub trait Runtimes {
    /// Stops a runtime within a bound. `Dead` only if the stop succeeded or the process is proven
    /// gone from its own host; "not found" alone is `Unknown` (C-7). `pulse` is called at least
    /// every second, so that the caller's lease is kept meanwhile.
    fn stop(&self, handle: &RuntimeHandle, pulse: &mut dyn FnMut()) -> Liveness;

    /// Whether this process can stop runtimes at all. One that cannot leaves what needs it to
    /// those that can, and spends no try on it (C-17).
    fn serves(&self) -> bool {
        true
    }

    /// Whether it lives, without touching it.
    fn liveness(&self, handle: &RuntimeHandle) -> Liveness;
}

/// For a host that runs nothing: it can prove nothing about anybody's runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRuntimes;

impl Runtimes for NoRuntimes {
    fn stop(&self, _handle: &RuntimeHandle, _pulse: &mut dyn FnMut()) -> Liveness {
        Liveness::Unknown
    }

    fn serves(&self) -> bool {
        false
    }

    fn liveness(&self, _handle: &RuntimeHandle) -> Liveness {
        Liveness::Unknown
    }
}
