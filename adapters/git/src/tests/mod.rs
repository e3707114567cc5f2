//! Against real git in temporary folders.

mod apart;
mod denied;
mod dirty;
mod effort;
mod exact;
mod fixture;
mod inspecting;
mod killed_refs;
mod making;
mod mounts;
mod rebuildable;
mod refusals;
mod removing;
mod running;
mod stopped;
mod twins;
mod wrong_path;
