//! What the store counts.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts since the store was opened. They only grow.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Metrics { $($(#[$doc])* pub $name: u64,)* }

        #[derive(Debug, Default)]
        pub(crate) struct Counters { $(pub(crate) $name: AtomicU64,)* }

        impl Counters {
            pub(crate) fn read(&self) -> Metrics {
                Metrics { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Commands that were submitted.
    submitted,
    /// Commands that were decided again because their rows had changed meanwhile.
    decided_again,
    /// Of these, those that took the locks first.
    locked_first,
    /// Commands that were repeated since the server undid them: a deadlock, a failed
    /// serialisation.
    undone_by_server,
    /// Connections that were lost under a command.
    connections_lost,
    /// Commits whose answer was lost.
    unknown,
}

/// One more.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
