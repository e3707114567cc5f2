//! What goes wrong: deaths, and leases that lapse.

use super::act::{Action, Outcome, outside};
use super::bits::{Vars, unsettled};

/// A crash: what only the dead one knew is gone, and its path lock is free.
pub(super) fn die(v: &Vars, action: Action) -> Outcome {
    let mut to = *v;
    let alive = match action {
        Action::OperatorDies => {
            to.operator = 5;
            matches!(v.operator, 1..=3)
        }
        Action::MakerDies => {
            to.maker = 6;
            matches!(v.maker, 1..=4)
        }
        Action::WorkerDies => {
            to.worker = 0;
            if v.remover < 2 {
                (to.executor, to.back) = (0, 0);
            }
            v.worker != 0
        }
        _recovery => {
            (to.executor, to.back) = (0, 0);
            v.executor != 0 && v.remover >= 2
        }
    };
    match v.crashes.checked_sub(1) {
        Some(left) if alive => outside(Vars { crashes: left, ..to }),
        Some(_) | None => Ok(None),
    }
}

/// Time passes a lease by: of a dead owner for nothing, of a slow one once in a while.
pub(super) fn lapse(v: &Vars, action: Action) -> Outcome {
    use Action as A;
    let (holds, owner_lives, to) = match action {
        A::BarrierLapses | A::BarrierSlow => {
            let holds = matches!(v.job, 1 | 2) && v.barrier_lapsed == 0;
            (holds, v.operator != 5, Vars { barrier_lapsed: 1, ..*v })
        }
        A::AttemptLapses | A::AttemptSlow => {
            let unresolved = matches!(v.attempt, 1 | 2 | 4);
            let holds = unresolved && v.holder != 2 && v.attempt_lapsed == 0;
            (holds, v.maker < 5, Vars { attempt_lapsed: 1, ..*v })
        }
        A::Claim0Lapses | A::Claim0Slow => (v.part0 == 1, v.worker == 1, Vars { part0: 2, ..*v }),
        A::Claim1Lapses | A::Claim1Slow => {
            (matches!(v.part1, 2 | 3), v.worker == 2, Vars { part1: v.part1 + 2, ..*v })
        }
        _removal => {
            let holds = unsettled(v.removal) && v.remover == 0;
            (holds, v.executor != 0, Vars { remover: 1, ..*v })
        }
    };
    let slowness = match action {
        A::BarrierSlow | A::AttemptSlow | A::Claim0Slow | A::Claim1Slow => true,
        _time => false,
    };
    match (holds && owner_lives == slowness, slowness, v.slow.checked_sub(1)) {
        (true, false, _) => outside(to),
        (true, true, Some(slow)) => outside(Vars { slow, ..to }),
        (_, _, _) => Ok(None),
    }
}
