//! The embedded store: one SQLite file (A-10).
//!
//! ```no_run
//! # async fn tell() -> Result<(), Box<dyn std::error::Error>> {
//! use freehold_kernel::{Command, Permissions, TaskCommand, WorkspaceId};
//! use freehold_sqlite::{Options, Sqlite};
//! use freehold_store::{Composer, Store};
//!
//! let store = Sqlite::open("freehold.db".as_ref(), Options::default())?;
//! let mut ann = Composer::new("ann", Permissions::ALL)?;
//! let workspace = ann.id::<WorkspaceId>("home")?;
//! let create = ann.submit(Command::Task(TaskCommand::CreateWorkspace { workspace }));
//! let outcome = store.submit(&create).await?;
//! # Ok(()) }
//! ```
//!
//! The crate starts no thread and no runtime (A-7). SQLite blocks, so a future of this store does
//! its work inside one poll: it holds no transaction across an await, and dropping it leaves
//! nothing open (A-6). A host whose executor must not be blocked for the time of a disk sync
//! polls it where blocking is allowed.
//!
//! | file | what it is |
//! |---|---|
//! | `schema/0001.sql` | the tables |
//! | `open` | telling what a file is, making a fresh one, refusing what is not ours (A-14) |
//! | `migrate` | the versions of the schema |
//! | `sql` | statements out of the kernel's declaration of its tables |
//! | `transact` | one submission inside an open transaction; the host's transaction (A-7) |
//! | `writer` | the one connection that writes: one submission, or a group in one commit |
//! | `queue` | who waits, who leads |
//! | `reader` | connections that only read |
//! | `fault` | what SQLite's errors mean |

mod fault;
mod migrate;
mod open;
mod queue;
mod reader;
mod sql;
mod store;
mod transact;
mod writer;

pub use open::{Options, Synchronous};
pub use store::Sqlite;
pub use transact::within;
