//! Model 2 of 09: the job. Two workers on two instances, lapsing leases, rescues, unarchives and
//! deletions on top, outsiders and failing disks: a handful of small systems, each about one of
//! the circumstances, and together about all of them.

mod kills;
pub(super) mod scenes;
mod systems;

pub use kills::KILLS;
pub use systems::SYSTEMS;
