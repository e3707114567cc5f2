//! Against real git in temporary folders.

mod apart;
mod denied;
mod dirty;
mod fixture;
mod inspecting;
mod making;
mod mounts;
mod refusals;
mod rebuildable;
mod removing;
mod running;
mod twins;
mod wrong_path;
