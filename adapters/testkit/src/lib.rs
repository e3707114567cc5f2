//! The contract of a store.

pub mod cases;
mod contract;
pub mod driver;
mod life;
mod memory;
mod polling;
mod rig;
mod speech;
mod twin;

pub use memory::MemoryRig;
pub use rig::{Can, Fault, Rig};
