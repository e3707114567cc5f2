//! The contract of a store as a library: one call tests a store of your own (A-5). Freehold's own
//! stores (in memory, SQLite, PostgreSQL) are tested by exactly this.
//!
//! # How to test your own store
//!
//! Depend on this crate for tests only, and write a [`Rig`]: where a fresh store comes from, how it
//! is opened, and which clock it reads. Then one call makes a test of every case:
//!
//! ```
//! use std::sync::Arc;
//!
//! use freehold_kernel::Time;
//! use freehold_store::Clock;
//! use freehold_store::memory::Memory; // in place of it: your store
//! use freehold_testkit::{Can, OneWriter, Rig};
//!
//! struct MyRig(Arc<Memory>);
//!
//! impl Rig for MyRig {
//!     type Store = Arc<Memory>;
//!     type Held = OneWriter; // one command after the other
//!
//!     fn fresh() -> Self {
//!         MyRig(Arc::new(Memory::new("mine", Clock::manual(Time(1_000_000_000_000)))))
//!     }
//!     fn clock(&self) -> Clock {
//!         self.0.clock().clone()
//!     }
//!     fn open(&self) -> Self::Store {
//!         Arc::clone(&self.0)
//!     }
//!     fn can_reopen() -> Can {
//!         Can::No("it ends with the process")
//!     }
//!     fn can_crash() -> Can {
//!         Can::No("a crash leaves nothing")
//!     }
//!     fn can_share() -> Can {
//!         Can::Yes
//!     }
//!     fn can_fail() -> Can {
//!         Can::No("no step of it can fail")
//!     }
//!     fn can_spoil() -> Can {
//!         Can::No("its rows are values")
//!     }
//!     fn can_zone() -> Can {
//!         Can::No("its times are the process's")
//!     }
//! }
//!
//! // In a test file, with all that is not offered named here, too:
//! freehold_testkit::store_contract!(MyRig, without reopen, crash, fail, spoil, zone);
//! # fn main() {
//! // One case, called by hand:
//! freehold_testkit::cases::answers::commands_answer_as_the_reference::<MyRig>();
//! # }
//! ```
//!
//! Each case is a test with its own name. What the rig does not offer is a test, too, named
//! `without_...`, that prints why; a lack that the call does not name makes its cases fail, so that
//! nothing is left out in silence.
//!
//! A store that talks to something that can fail should offer faults: [`Rig::fail_at`] lets the
//! `n`-th step from now fail, before or after it was carried out. Freehold's own rigs do it by a
//! proxy that cuts a connection (PostgreSQL) and by triggers (SQLite), both in `tests/`.
//!
//! # What is tested
//!
//! | cases | what holds |
//! |---|---|
//! | [`cases::answers`] | answers, refusals, rows and journal are those of the in-memory reference, also when the store is reopened or crashes after each command, and by connections in turn |
//! | [`cases::requests`] | a request is answered once and then again with the same words (D-19) |
//! | [`cases::journal`] | in order, from any position, nothing lost or doubled, also while others write, and no further than the oldest commit that is open (A-13) |
//! | [`cases::dropping`] | futures dropped at every await leave nothing open and nothing half-done, and no lock in the way of others (A-6) |
//! | [`cases::moments`] | a read of several lists shows one moment while a writer moves rows |
//! | [`cases::overtaking`] | a command overtaken at any await answers as in some order; absences are noticed (D-23); scripts in all interleavings |
//! | [`cases::threads`] | nothing is lost or done twice by many at once |
//! | [`cases::faults`] | a failing step leaves all or nothing, what is said of it is true, a lost reply is found by its request |
//! | [`cases::picking`] | parts of jobs that this build cannot read stand before no other (C-10) |
//! | [`cases::time`] | the clock jumps forward and back, and leases follow it; sessions in other zones have the same time |
//! | [`cases::texts`] | texts come back byte by byte; NUL is refused by all alike |
//! | [`cases::sizes`] | from an empty store to one command over many rows |
//! | [`cases::sequences`] | random sequences: all properties of the kernel, the naive oracle, and the reference |
//!
//! `FREEHOLD_CASES`, `FREEHOLD_OPS` and `FREEHOLD_SEED` give the random sequences another number,
//! length and seed, `FREEHOLD_ROWS` the largest size; a failure prints the shortest way to it.
//!
//! Each case is known to be able to fail: `tests/wrong` has a store with a switchable defect for
//! each.
//!
//! # Runtimes
//!
//! [`runtimes`] is the same for a [`freehold_store::Runtimes`] of your own: one call of
//! [`runtimes_contract`].
//!
//! The cases and the [`driver`] panic when something does not hold; that is what they are for.

pub mod cases;
mod contract;
pub mod driver;
mod life;
mod memory;
mod polling;
mod rig;
pub mod runtimes;
mod speech;
mod twin;

pub use memory::MemoryRig;
pub use rig::{Can, Fault, Held, OneWriter, Rig};
pub use runtimes::{Manners, RuntimesRig};
