//! The rig of the in-memory store.

use std::sync::Arc;

use freehold_kernel::Time;
use freehold_store::Clock;
use freehold_store::memory::Memory;

use crate::rig::{Can, OneWriter, Rig};

/// A store in memory; its connections share it. What ends with the process is not offered.
#[derive(Debug)]
pub struct MemoryRig {
    store: Arc<Memory>,
}

impl Rig for MemoryRig {
    type Store = Arc<Memory>;
    type Held = OneWriter;

    fn fresh() -> Self {
        let clock = Clock::manual(Time(1_000_000_000_000));
        MemoryRig { store: Arc::new(Memory::new("memory", clock)) }
    }

    fn clock(&self) -> Clock {
        self.store.clock().clone()
    }

    fn open(&self) -> Self::Store {
        Arc::clone(&self.store)
    }

    fn can_reopen() -> Can {
        Can::No("what is in memory ends with the store")
    }

    fn can_crash() -> Can {
        Can::No("a crash leaves nothing")
    }

    fn can_share() -> Can {
        Can::Yes
    }

    fn can_fail() -> Can {
        Can::No("there is no step that could fail")
    }

    fn can_spoil() -> Can {
        Can::No("its rows are values, and there is none that it cannot read")
    }

    fn can_zone() -> Can {
        Can::No("its clock is the process's, a number without a zone")
    }

    fn rows() -> usize {
        600
    }
}
