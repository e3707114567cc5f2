//! Every interleaving and crash of small systems, decided by the kernel itself (09, Models).
//!
//! No rule is written again here: a model says who acts, what may go wrong, and what the disk
//! does; whether a command is accepted is [`freehold_kernel::decide_with`]'s word, and whether
//! the world is as promised is that of [`freehold_kernel::properties`].
//!
//! [`explore::explore`] visits every state breadth-first, keeps each exactly (no hashing away),
//! and gives shortest traces. A search that a limit cut says so: it is never reported as a pass.

pub mod creation;
pub mod encode;
pub mod explore;
pub mod world;

pub use explore::{Explored, Limits, Model, explore};
