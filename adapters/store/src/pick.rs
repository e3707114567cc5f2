//! Which parts of jobs an instance should try to claim: hints, so that several instances on one
//! store do not all try the same one. The claim itself decides (C-3).

use freehold_kernel::{JobRoot, JobRootId, Span, TableId};

use crate::error::StoreError;
use crate::names::uuid_text;
use crate::store::{Read, Store};

/// Who looks for parts to claim, and for how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The instance.
    pub instance: String,
    /// Its machine: what lies in roots of others is left out (D-18).
    pub machine: String,
    /// The most parts; 0 to do no more than give back.
    pub limit: usize,
    /// For how long a store that keeps picks keeps them from others: a process that dies after
    /// its pick holds up nothing for longer.
    pub hold: Span,
    /// Parts that this instance has tried by now: they are given back, and not picked again.
    pub tried: Vec<JobRootId>,
}

/// Picks by reading, as a store without picks does: whoever asks is told the same, oldest first.
///
/// # Errors
/// Failures of the store.
pub async fn by_reading<S: Store + ?Sized>(
    store: &S,
    pick: &Pick,
) -> Result<Vec<JobRoot>, StoreError> {
    if pick.limit == 0 {
        return Ok(Vec::new());
    }
    let rows = store
        .read(&[
            Read::by(TableId::JobRoots, "state", &["pending", "retry_wait"]),
            Read::by(TableId::ManagedRoots, "host", &[&pick.machine]),
        ])
        .await?;
    let now = rows.view.now;
    let mut due: Vec<JobRoot> = rows
        .view
        .job_roots
        .iter()
        .filter(|p| p.next_attempt_at.is_none_or(|at| at <= now))
        .filter(|p| p.root_id.is_none_or(|root| rows.view.managed_roots.id(root.0).is_some()))
        .filter(|p| !pick.tried.contains(&p.id))
        .copied()
        .collect();
    // What lies in no root (runtimes) comes first: worktrees wait for it (C-6).
    due.sort_by_key(|p| (p.created_at, p.root_id.is_some(), p.id));
    due.truncate(pick.limit);
    Ok(due)
}

impl Pick {
    /// The parts that were tried, as stores hold them.
    pub fn tried_texts(&self) -> Vec<String> {
        self.tried.iter().map(|part| uuid_text(part.0)).collect()
    }
}
