//! The ports of Freehold (store, workspaces), the path of a submission through a store, and the
//! in-memory store.
//!
//! A host that embeds Freehold makes a [`submission::Submission`] out of its strings, hands it to
//! a [`store::Store`], and carries out what comes back. [`run::Run`] is the part that all stores
//! share; [`workspaces::Workspaces`] is the port to real worktrees.

mod cause;
pub mod dump;
pub mod error;
pub mod memory;
pub mod names;
pub mod record;
pub mod run;
pub mod store;
pub mod submission;
pub mod workspaces;

pub use error::StoreError;
pub use names::{NameError, Names};
pub use store::{Clock, Read, Rows, Store};
pub use submission::{Accepted, Composer, Outcome, Refused, Submission};
