//! Against real git in temporary folders.

mod fixture;
mod inspecting;
mod making;
mod removing;
mod running;
mod wrong_path;
