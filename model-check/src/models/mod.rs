//! The models of 09, each a handful of systems of actors.

pub mod actors;
pub mod begin;
pub mod cascade;
pub mod catalogue;
pub mod circumstances;
pub mod creation;
pub mod everything;
pub mod job;
pub mod names;
pub mod planted;
pub mod turns;
