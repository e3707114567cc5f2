//! Steps that fail, one after the other, and replies that are lost: nothing half-done, what is
//! said of it is true, and the request tells what came of it (D-19).

use freehold_store::store::dump;
use freehold_store::{Outcome, StoreError};

use crate::life::a_tasks_life;
use crate::rig::{Fault, Rig};
use crate::speech::{ask, say, submit, task, workspace};
use crate::twin::{Disturbed, Twin, same};

/// The most steps that a command may have.
const STEPS_MAX: u64 = 500;

/// Each step of every command of a task's life fails once, and the request is sent again, until no
/// step is left.
pub fn a_fault_at_any_step_leaves_all_or_nothing<R: Rig>() {
    let mut came = 0;
    for fault in Fault::ALL {
        let (mut from, mut fired) = (Some(0), Vec::new());
        while let Some(n) = from {
            let mut twin = Twin::<R>::new(Disturbed::Failing(n, fault));
            a_tasks_life(&mut twin);
            fired.push((n, twin.disturbances));
            from = twin.next_step.filter(|_| fault != Fault::AtCommit);
        }
        println!("{fault:?}, from step, how many: {fired:?}");
        came += fired.iter().map(|(_, n)| n).sum::<u32>();
    }
    assert!(came > 0, "the rig says that it can fail, and no fault ever came to pass");
}

/// Without a request id nobody looks the outcome up: an error says that nothing was done, and it
/// is so, or that it is unknown, and then it is whole or nothing.
pub fn a_failure_without_a_request_is_truly_told<R: Rig>() {
    let (mut unknown, mut nothing) = (0, 0);
    for fault in Fault::ALL {
        for n in 0..STEPS_MAX {
            let rig = R::fresh();
            let store = rig.open();
            let done = |submission| {
                submit(&store, &submission).unwrap_or_else(|e| panic!("{e}")).accepted().is_ok()
            };
            assert!(done(say(|c| workspace(c, "w"))));
            let before = pollster::block_on(dump(&store)).unwrap_or_else(|e| panic!("{e}"));
            if !rig.fail_at(n, fault) {
                break;
            }
            let answer = submit(&store, &say(|c| task(c, "w", "t")));
            let fired = rig.disarm() || answer.is_err();
            let after = pollster::block_on(dump(&store)).unwrap_or_else(|e| panic!("{e}"));
            let unchanged = same(&before, &after);
            match answer {
                Ok(Outcome::Accepted(_)) => assert!(unchanged.is_err(), "accepted and not done"),
                Ok(Outcome::Refused(refused)) => panic!("{refused}"),
                Err(StoreError::Unknown { .. }) => unknown += 1,
                Err(error) => {
                    nothing += 1;
                    unchanged.unwrap_or_else(|what| panic!("{error}, and yet {what}"));
                }
            }
            let there = after["tasks"].len();
            let whole = (after["identities"].len() - before["identities"].len(), there);
            assert!(whole == (0, 0) || whole == (1, 1), "half of it: {whole:?}");
            // What is there is there, and what is not can be made.
            let again = submit(&store, &say(|c| task(c, "w", "t")));
            let again = again.unwrap_or_else(|e| panic!("the fault stays: {e}"));
            assert_eq!(again.accepted().is_ok(), there == 0);
            if !fired || fault == Fault::AtCommit {
                break;
            }
        }
    }
    println!("{unknown} unknown, {nothing} where nothing was done");
    assert!(unknown + nothing > 0, "no fault ever came to pass");
}

/// A reply to a commit that was lost is found by the request, and the command is done once.
pub fn a_lost_reply_is_resolved_by_its_request<R: Rig>() {
    let mut fired = 0;
    for fault in Fault::ALL {
        for n in 0..STEPS_MAX {
            let rig = R::fresh();
            let store = rig.open();
            let begun = submit(&store, &say(|c| workspace(c, "w")));
            assert!(begun.unwrap_or_else(|e| panic!("{e}")).accepted().is_ok());
            if !rig.fail_at(n, fault) {
                break;
            }
            let wanted = ask("q", |c| task(c, "w", "t"));
            let first = submit(&store, &wanted);
            let came = rig.disarm() || first.is_err();
            fired += u32::from(came);
            let refused = matches!(first, Ok(Outcome::Refused(_)));
            assert!(!refused, "refused by what it did itself: {first:?}");
            for turn in 0..2 {
                let outcome = submit(&store, &wanted).unwrap_or_else(|e| panic!("{e}"));
                let accepted = outcome.accepted().unwrap_or_else(|refused| panic!("{refused}"));
                assert!(accepted.replayed || turn == 0 && first.is_err(), "carried out twice");
            }
            let rows = pollster::block_on(dump(&store)).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(rows["tasks"].len(), 1);
            let lines = crate::twin::journal_of::<R>(&store, 0, 2);
            let lines = lines.unwrap_or_else(|what| panic!("{what}"));
            assert_eq!(lines.len(), 2, "carried out twice: {lines:?}");
            if !came || fault == Fault::AtCommit {
                break;
            }
        }
    }
    assert!(fired > 0, "no fault ever came to pass");
}
