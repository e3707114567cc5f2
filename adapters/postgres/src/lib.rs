//! The store for several instances: PostgreSQL (A-11).
//!
//! ```no_run
//! # async fn tell() -> Result<(), Box<dyn std::error::Error>> {
//! use freehold_kernel::{Command, Permissions, TaskCommand, WorkspaceId};
//! use freehold_postgres::{Options, PostgresStore};
//! use freehold_store::{Composer, Store};
//!
//! let config = "postgres://freehold@localhost/board".parse()?;
//! let store = PostgresStore::connect(config, Options::default()).await?;
//! let mut ann = Composer::new("ann", Permissions::ALL)?;
//! let workspace = ann.id::<WorkspaceId>("home")?;
//! let create = ann.submit(Command::Task(TaskCommand::CreateWorkspace { workspace }));
//! let outcome = store.submit(&create).await?;
//! # Ok(()) }
//! ```
//!
//! A command takes two round trips: one statement reads its footprint with the server's clock,
//! one locks what was read, looks that it still stands, and writes. Nothing is open between them.
//!
//! The crate starts no thread and no runtime (A-7): connections are driven on the host's tokio
//! runtime, and futures of the store may be polled by any executor.
//!
//! | file | what it is |
//! |---|---|
//! | `schema/0001.sql` | the tables |
//! | `open` | telling what a schema is, making a fresh one, refusing what is not ours (A-14) |
//! | `sql` | statements out of the kernel's declaration of its tables |
//! | `footprint` | the first statement: a footprint in one round trip |
//! | `commit`, `routine` | the second: its argument, and the function that it calls |
//! | `submit` | both in order, and again where others were faster |
//! | `within` | a command inside the host's own transaction (A-7) |
//! | `listen`, `pick` | waiting for commits of others; which part of a job to try |
//! | `pool`, `deadline` | connections: bounded waits, none goes back dirty; one end for a whole call |
//! | `reader`, `journal` | reading rows and following the journal (A-13) |
//! | `fault` | what PostgreSQL's errors mean |

mod commit;
mod deadline;
mod fault;
mod footprint;
mod journal;
mod listen;
mod metrics;
mod open;
mod options;
mod pick;
mod pool;
mod reader;
mod routine;
mod sql;
mod store;
mod submit;
mod within;

// The versions that the options and the addresses of a host are made of.
pub use rustls;
pub use tokio_postgres;

pub use listen::Listener;
pub use metrics::Metrics;
pub use options::Options;
pub use store::PostgresStore;
