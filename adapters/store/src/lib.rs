//! The ports of Freehold (store, workspaces), the path of a submission through a store, and the
//! in-memory store.
//!
//! A host that embeds Freehold makes a [`submission::Submission`] out of its strings, hands it to
//! a [`store::Store`], and carries out what comes back. [`run::Run`] is the part that all stores
//! share; [`workspaces::Workspaces`] is the port to real worktrees.

mod cause;
pub mod dump;
pub mod either;
pub mod error;
pub mod host;
pub mod lifecycle;
pub mod maker;
pub mod memory;
pub mod names;
pub mod pick;
pub mod record;
mod recovery;
pub mod restore;
pub mod run;
pub mod runtimes;
pub mod store;
pub mod submission;
pub mod sweep;
pub mod worker;
pub mod workspaces;

pub use either::Either;
pub use error::StoreError;
pub use host::{Drive, Host, HostError, OnThisThread, Who};
pub use lifecycle::{Operation, RepositoryReport, Stands};
pub use maker::{Made, Wanted};
pub use names::{NameError, Names};
pub use pick::Pick;
pub use restore::{Kept, KeptAs, PutBack, Target};
pub use runtimes::{Held, NoRuntimes, RuntimeHandle, Runtimes, StartFailed};
pub use store::{Clock, Read, Rows, Store};
pub use submission::{Accepted, Composer, Outcome, Refused, Submission};
pub use worker::Ticked;
pub use workspaces::{Place, WorkspaceError, Workspaces};
