//! The pure lifecycle kernel of Freehold: rows and a command in, changed rows or a refusal out.
//!
//! Deterministic: no input or output, no clock, no randomness, no threads, no unsafe code. Ids,
//! tokens and evidence come in with the command, the time with the view. A host rarely
//! calls it directly: a store loads the rows of a command's [`footprint`], calls [`decide`], and
//! writes what changed, in one transaction.
//!
//! Read in this order: [`rows`] (what there is), [`Command`] (what can be asked), [`machine`]
//! (what one row may do), `decide` (what holds between rows), [`Guard`] (why not).

#![no_std]
// A refusal holds the rows in the way by value, so that refusing allocates nothing.
#![allow(clippy::result_large_err)]

extern crate alloc;

mod codes;
mod command;
mod decide;
mod decision;
mod evidence;
mod footprint;
mod guard;
pub mod id;
pub mod machine;
pub mod properties;
mod refusal;
pub mod rows;
pub mod tables;
mod time;
mod view;
mod warrant;

pub use command::*;
#[doc(hidden)]
pub use decide::decide_with;
pub use decide::relations::{is_reached, named_that_may_run, others_that_run};
pub use decide::{decide, footprint};
pub use decision::*;
pub use evidence::*;
pub use footprint::*;
#[doc(hidden)]
pub use guard::AllBut;
pub use guard::{AllGuards, Guard, GuardKind, GuardSet};
pub use id::*;
pub use refusal::*;
pub use rows::*;
pub use time::{Span, Time};
pub use view::*;
pub use warrant::Warrant;
