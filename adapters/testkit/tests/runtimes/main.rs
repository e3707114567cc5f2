//! Sample runtimes, right and wrong: the contract of runtimes holds for the ones, and each of its
//! cases sees a defect of the others.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod defects;
mod sample;

freehold_testkit::runtimes_contract!(sample::SampleRig);
