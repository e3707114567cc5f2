//! Against real git in temporary folders.

mod dirty;
mod fixture;
mod inspecting;
mod making;
mod removing;
mod running;
mod wrong_path;
