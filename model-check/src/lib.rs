//! Every interleaving and crash of small systems, decided by the kernel itself (09, Models).
//!
//! No rule is written again here: a model says who acts, what may go wrong, and what the disk
//! does; whether a command is accepted is [`freehold_kernel::decide_with`]'s word, and whether
//! the world is as promised is that of [`freehold_kernel::properties`].
//!
//! [`explore()`] visits every state breadth-first, keeps each exactly (no hashing away),
//! and gives shortest traces. A search that a limit cut says so: it is never reported as a pass.

pub mod explore;
pub mod models;
pub mod stateright;
pub mod system;
pub mod trace;
pub mod twin;
pub mod walk;
pub mod world;

pub use explore::{Broken, Cut, Explored, Found, Limits, Model, Progress, To, explore};
pub use system::{Actor, Fault, State, Steps, System};
pub use trace::{Ending, Line, On, Story, Trace, Verdict};
pub use walk::{Walked, Walks, walk};
pub use world::{Done, Sender, World};
