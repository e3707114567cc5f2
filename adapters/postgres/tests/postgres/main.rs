//! The PostgreSQL store, on a real server of its own: what it makes, what it refuses to open, how
//! it fails, and that it answers as the in-memory reference does.

#![allow(clippy::unwrap_used)]

mod barriers;
mod contract;
mod deadline;
mod field_cases;
mod following;
mod host;
mod jobs;
mod losing;
mod opening;
mod pooler;
mod proxy;
mod races;
mod refusing;
mod requests;
mod schema;
mod tls;
mod trips;
mod within;
mod work;

use freehold_testkit::driver;
