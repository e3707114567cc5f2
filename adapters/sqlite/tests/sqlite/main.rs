//! The SQLite store: what it is on disk, what it refuses to open, that it keeps what it said
//! through crashes, and that it answers as the in-memory reference does.

#![allow(clippy::unwrap_used)]

mod contract;
mod crash;
mod field_cases;
mod host;
mod opening;
mod reading;
mod requests;
mod rights;
mod schema;
mod within;
