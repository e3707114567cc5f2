//! What the rows alone say: what failed, and what was left and is nobody's turn.

use freehold_kernel::{AttemptState, JobState, Kind, Reason, ResourceResult, Row, TrashState};
use freehold_store::Rows;

use super::Report;
use crate::failure::Failure;
use crate::ground::{content, next};
use crate::place::StorePlace;

/// Rows that this build cannot read are named, never left out (C-10).
pub(super) fn unreadable(rows: &Rows, place: &StorePlace, report: &mut Report) {
    for (table, key, why) in &rows.unreadable {
        let about = format!("{} {key}", table.name());
        report.find("row_unreadable", about, why.clone(), next(&["jobs", "list", "--all"], place));
    }
}

/// Jobs that failed, and what a gone instance left.
pub(super) fn unfinished(
    rows: &Rows,
    place: &StorePlace,
    report: &mut Report,
) -> Result<(), Failure> {
    let now = rows.view.now;
    let work = || next(&["work"], place);
    for job in rows.view.jobs.iter() {
        let id = rows.names.text(Kind::JobId, job.id.0)?;
        match job.state {
            JobState::Failed => {
                let says =
                    format!("its {} cleanup failed and waits for a person", job.trigger.code());
                let holds = failed_of(rows, job.id)?;
                report.find("job_failed", &id, says, next(&["jobs", "show", &id], place)).holds =
                    holds;
            }
            JobState::Prepared if job.lease_until.is_none_or(|lease| lease <= now) => {
                let says = "a barrier was left by an instance that is gone";
                report.find("barrier_left", &id, says, work());
            }
            JobState::Prepared
            | JobState::Pending
            | JobState::Running
            | JobState::RetryWait
            | JobState::Succeeded
            | JobState::Cancelled => {}
        }
    }
    for attempt in rows.view.attempts.iter().filter(|a| a.lease_until <= now) {
        match attempt.state {
            AttemptState::Intended | AttemptState::Materialised | AttemptState::Compensating => {
                let path = rows.names.text(Kind::PathId, attempt.path.0)?;
                let says = format!("a making was left as {}", attempt.state.code());
                report.find("attempt_left", path, says, work());
            }
            AttemptState::Owned | AttemptState::Compensated => {}
        }
    }
    for removal in rows.view.removals.iter().filter(|r| r.is_unsettled() && r.lease_until <= now) {
        let path = rows.names.text(Kind::PathId, removal.path.0)?;
        let says = format!("a removal was left after the step {}", removal.last_step.code());
        let detail = content(rows, &removal.row_key(), "detail");
        report.find("removal_left", path, says, work()).holds =
            detail.lines().map(str::to_owned).collect();
    }
    for trash in rows.view.trash.iter() {
        let lapsed = trash.restorable_until.is_some_and(|until| until <= now);
        if lapsed && matches!(trash.state, TrashState::Kept | TrashState::Purging) {
            let path = rows.names.text(Kind::PathId, trash.path.0)?;
            let says = "its trash is kept beyond its time";
            report.find("trash_lapsed", path, says, next(&["gc"], place));
        }
    }
    Ok(())
}

fn failed_of(rows: &Rows, job: freehold_kernel::JobId) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    for r in rows.view.resources.iter().filter(|r| r.job_id == job) {
        if r.result != ResourceResult::Failed {
            continue;
        }
        let path = r.path.map(|p| rows.names.text(Kind::PathId, p.0)).transpose()?;
        let reason = if r.reason == Reason::None { "failed" } else { r.reason.code() };
        lines.push(format!("{}: {reason}", path.unwrap_or_else(|| r.kind.code().to_owned())));
    }
    Ok(lines)
}
