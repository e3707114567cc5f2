//! Handles of runtimes whose process is not there, or of which nobody can say (C-7).

use freehold_kernel::{
    Job, JobState, Kind, Liveness, ResourceResult, Runtime, RuntimeKind, RuntimeStatus,
};
use freehold_runtime::LocalRuntimes;
use freehold_store::{Rows, RuntimeHandle, Runtimes};

use super::Report;
use crate::failure::Failure;
use crate::ground::next;
use crate::place::StorePlace;

/// Looks at every runtime that is not stopped. Returns how many are not this machine's to judge:
/// what is no process, and what another living instance runs elsewhere.
pub(super) fn judge(
    rows: &Rows,
    place: &StorePlace,
    report: &mut Report,
) -> Result<usize, Failure> {
    let local = LocalRuntimes::new();
    let now = rows.view.now;
    let mut elsewhere = 0;
    for row in rows.view.runtimes.iter().filter(|r| r.status != RuntimeStatus::Stopped) {
        let held = rows.view.instances.id(row.instance_id.0);
        let held = held.is_some_and(|instance| instance.lease_until > now);
        let id = rows.names.text(Kind::RuntimeId, row.id.0)?;
        let handle = RuntimeHandle::of(id, Some(*row), rows);
        if row.kind != RuntimeKind::Local || (held && !local.serves(&handle)) {
            elsewhere += 1;
            continue;
        }
        report.runtimes += 1;
        // Who is about to start it lives: that it has no process yet is no death.
        if row.status == RuntimeStatus::Starting && held {
            continue;
        }
        let (liveness, why) = local.explain(&handle);
        let says = format!("its handle says {}, and {why}", row.status.code());
        match liveness {
            Liveness::Alive => {}
            Liveness::Dead => {
                report.find("runtime_dead", &handle.id, says, next(&["work"], place));
            }
            Liveness::Unknown => {
                let after = waiting_job(rows, row)?;
                let after = match &after {
                    Some(job) => next(&["jobs", "show", job], place),
                    None if held => next(&["work"], place),
                    // Nobody who could stop it lives, and nothing names it.
                    None => next(&["jobs", "declare-stopped", &handle.id], place),
                };
                report.find("runtime_unknown", &handle.id, says, after);
            }
        }
    }
    Ok(elsewhere)
}

/// A job that waits for this runtime's stop. One that came to its end waits for nothing, whatever
/// it left.
fn waiting_job(rows: &Rows, row: &Runtime) -> Result<Option<String>, Failure> {
    let waits = rows.view.resources.iter().find(|r| {
        let open = r.result == ResourceResult::Waiting || r.result == ResourceResult::Failed;
        let over = |j: &Job| matches!(j.state, JobState::Succeeded | JobState::Cancelled);
        let over = rows.view.jobs.id(r.job_id.0).is_some_and(over);
        r.runtime_id == Some(row.id) && open && !over
    });
    Ok(waits.map(|r| rows.names.text(Kind::JobId, r.job_id.0)).transpose()?)
}
