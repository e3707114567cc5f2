//! A sample store, right and wrong: the contract holds for the one, and each of its cases sees a
//! defect of the other.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod defects;
mod store;

freehold_testkit::store_contract!(store::SampleRig);
