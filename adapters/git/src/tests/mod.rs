//! Against real git in temporary folders.

mod dirty;
mod fixture;
mod inspecting;
mod making;
mod rebuildable;
mod removing;
mod running;
mod twins;
mod wrong_path;
