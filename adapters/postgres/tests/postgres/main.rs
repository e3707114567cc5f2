//! The PostgreSQL store, on a real server of its own: what it makes, what it refuses to open, how
//! it fails, and that it answers as the in-memory reference does.

#![allow(clippy::unwrap_used)]

#[allow(clippy::wrong_self_convention)]
#[path = "../../../store/tests/driver/mod.rs"]
mod driver;
mod host;
mod opening;
mod random;
mod refusing;
mod requests;
mod schema;
mod twin;
mod within;
