//! From rows back to the variables.
//!
//! It guesses the variables from the rows and then compares the rows that they stand for, every
//! column of every table, with those that the kernel left: what the variables cannot express is
//! an error, never dropped.

use freehold_kernel::*;

use super::bits::Vars;
use super::rows::*;

/// The variables of the rows in `view`; those that no row holds are taken from `v`.
///
/// # Errors
/// What the variables cannot express.
pub(super) fn encode(beginning: &View, view: &View, v: &Vars) -> Result<Vars, String> {
    let mut out = *v;
    for (i, id) in SESSIONS.into_iter().enumerate() {
        out.set_session(i, session_code(view, id));
    }
    out.borrower = session_code(view, BORROWING);
    let owner = view.tasks.id(OWNER.0);
    let primary = owner.and_then(|t| t.primary_session_id);
    let primary = SESSIONS.iter().position(|s| Some(*s) == primary).map_or(0, |i| i + 1);
    out.primary = primary as u8;
    out.archived = u8::from(owner.is_some_and(|t| t.lifecycle == TaskLifecycle::Archived));
    if let Some(attempt) = view.attempts.id(ATTEMPT.0) {
        out.attempt = match attempt.state {
            AttemptState::Intended => 1,
            AttemptState::Materialised => 2,
            AttemptState::Owned => 3,
            AttemptState::Compensating => 4,
            AttemptState::Compensated => 5,
        };
        out.holder = match attempt.token {
            MAKER_TOKEN => 0,
            RECOVERY_TOKEN => 2,
            _other => 1,
        };
        out.attempt_lapsed = u8::from(attempt.lease_until == LAPSED);
    }
    out.repo = match view.repos.id(REPO.0).map(|r| r.materialised) {
        None => 0,
        Some(Materialised::Yes) => 1,
        Some(Materialised::Removing) => 2,
        Some(Materialised::No) => 3,
    };
    encode_job(view, &mut out)?;
    encode_removal(view, &mut out);
    let again = decode(beginning, &out).view;
    let differs = properties::changes(&again, view).into_iter().find(|c| c.how != Change::Touched);
    match differs {
        None => Ok(out),
        Some(c) => Err(format!(
            "the variables {out} cannot express {} {:x} ({:?}): {:?}",
            c.row.table.name(),
            c.row.key.id,
            c.how,
            columns(&again, view, c.row),
        )),
    }
}

/// The columns in which a row differs.
fn columns(a: &View, b: &View, row: RowKey) -> Vec<(&'static str, Value)> {
    struct Of(RowKey, Vec<(&'static str, Value)>);
    impl Visit for Of {
        fn table<R: Row>(&mut self, table: &Table<R>) {
            if let Some(row) = table.get(self.0.key) {
                let column = |(i, c): (usize, &Column)| (c.name, row.value(i));
                self.1 = R::COLUMNS.iter().enumerate().map(column).collect();
            }
        }
    }
    let of = |view: &View| {
        let mut of = Of(row, Vec::new());
        view.one(row.table, &mut of);
        of.1
    };
    let known = of(a);
    of(b).into_iter().filter(|c| !known.contains(c)).collect()
}

fn session_code(view: &View, id: SessionId) -> u8 {
    let Some(row) = view.sessions.id(id.0) else {
        let known = view.identities.iter().any(|i| i.id.0 == id.0);
        return if known { 3 } else { 0 };
    };
    match (row.lifecycle, row.epoch) {
        (SessionLifecycle::Open, 1) => 1,
        (SessionLifecycle::Closing, 1) => 2,
        (SessionLifecycle::Archived, _) => 4,
        (SessionLifecycle::Closing, 2) => 5,
        (SessionLifecycle::Open, _) => 6,
        (SessionLifecycle::Closing, _) => 7,
    }
}

fn encode_job(view: &View, out: &mut Vars) -> Result<(), String> {
    let Some(job) = view.jobs.id(JOB.0) else {
        out.job = 0;
        return Ok(());
    };
    let taken = job.snapshot_version > 0;
    out.job = match (job.state, job.mutated_at.is_some(), taken) {
        (JobState::Prepared, _, false) => 1,
        (JobState::Prepared, _, true) => 2,
        (JobState::Cancelled, false, false) => 3,
        (JobState::Cancelled, false, true) => 4,
        (JobState::Cancelled, true, _) => 6,
        (_, _, _) => 5,
    };
    out.barrier_lapsed = u8::from(job.lease_until == Some(LAPSED));
    if let Some(row) = view.resources.iter().next() {
        let of_attempt = row.kind == ResourceKind::Attempt;
        let code =
            RESOURCES.iter().position(|known| *known == (of_attempt, row.result, row.reason));
        let code = code.ok_or_else(|| {
            format!("no code for {:?} {:?} {:?}", row.kind, row.result, row.reason)
        })?;
        out.resource = code as u8 + 1;
    }
    if out.job >= 5 {
        for (index, slot) in [(0, &mut out.part0), (1, &mut out.part1)] {
            if let Some(row) = view.job_roots.id(part_id(index).0) {
                *slot = part_code(index, row)
                    .ok_or_else(|| format!("no code for {:?} {}", row.state, row.tries))?;
            }
        }
    }
    Ok(())
}

fn encode_removal(view: &View, out: &mut Vars) {
    let Some(removal) = view.removals.id(REMOVAL.0) else { return };
    let trash = !view.trash.is_empty();
    let step = STEPS.iter().position(|s| *s == removal.last_step).map_or(0, |i| i as u8 + 1);
    out.removal = if step == 8 && !trash { 9 } else { step };
    let lapsed = removal.lease_until == LAPSED;
    let token = (0..4).find(|n| remover_token(*n) == removal.token).unwrap_or(0);
    out.remover = if token == 0 { u8::from(lapsed) } else { token };
}

/// A part's code by its row; the inverse of [`part`], made from it.
fn part_code(index: u8, row: &JobRoot) -> Option<u8> {
    let lapsed = row.lease_until == Some(LAPSED);
    (0..if index == 0 { 6 } else { 13 }).find(|code| {
        let v = Vars { job: 5, part0: *code, part1: *code, ..Vars::default() };
        part(index, &v) == (row.state, row.tries, lapsed)
    })
}
