//! Against real git in temporary folders.

mod apart;
mod denied;
mod dirty;
mod fixture;
mod inspecting;
mod making;
mod mounts;
mod refusals;
mod removing;
mod running;
mod wrong_path;
