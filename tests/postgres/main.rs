//! Every scenario on PostgreSQL, on a real server of this binary's own: the same files that run on
//! SQLite as binaries of their own. What is called an instance there has its own connections here.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::duplicate_mod, reason = "each scenario file brings the support that it uses")]

#[path = "../c07_runtimes.rs"]
mod c07_runtimes;
#[path = "../operator.rs"]
mod operator;
#[path = "../out_of_reach.rs"]
mod out_of_reach;
#[path = "../restore.rs"]
mod restore;
#[path = "../x01_sessions.rs"]
mod x01_sessions;
#[path = "../x04_tasks.rs"]
mod x04_tasks;
#[path = "../x07_races.rs"]
mod x07_races;
#[path = "../x09_sharing.rs"]
mod x09_sharing;
#[path = "../x12_trees.rs"]
mod x12_trees;
#[path = "../x54_requests.rs"]
mod x54_requests;

mod claims;
mod program;
mod work_command;
