//! Futures dropped at every await: nothing half-done, nothing left open, and the same request
//! sent again gives what would have come.

use freehold_kernel::{TableId, Trigger};
use freehold_store::{Read, Store};

use crate::life::a_tasks_life;
use crate::polling::{Polled, poll_up_to};
use crate::rig::Rig;
use crate::speech::{instance, reserve, say, session, submit, task, workspace};
use crate::twin::{Disturbed, Twin};

/// The most polls that a submission may need.
const POLLS_MAX: usize = 500;

/// Every command of a task's life is dropped after `n` polls and sent again, for a growing `n`,
/// until none needs more.
pub fn a_submission_dropped_at_any_await_is_whole_or_nothing<R: Rig>() {
    let mut dropped = Vec::new();
    for polls in 0..POLLS_MAX {
        let mut twin = Twin::<R>::new(Disturbed::Dropped(polls));
        a_tasks_life(&mut twin);
        dropped.push(twin.disturbances);
        if twin.disturbances == 0 {
            println!("dropped after 0, 1, 2, ... polls: {dropped:?}");
            return;
        }
    }
    panic!("a submission was polled {POLLS_MAX} times");
}

/// Reads that are dropped leave nothing in the way of the next command.
pub fn a_read_dropped_at_any_await_leaves_nothing<R: Rig>() {
    let rig = R::fresh();
    let store = rig.open();
    let said = |submission| {
        let outcome = submit(&store, &submission).unwrap_or_else(|e| panic!("{e}"));
        outcome.accepted().unwrap_or_else(|refused| panic!("{refused}"));
    };
    said(say(|c| workspace(c, "w")));
    for polls in 0..POLLS_MAX {
        let reads = [Read::all(TableId::Tasks)];
        let rows = poll_up_to(polls, store.read(&reads));
        let lines = poll_up_to(polls, store.journal(0, 10));
        rig.at_rest();
        said(say(|c| task(c, "w", &format!("t{polls}"))));
        if let (Some(rows), Some(lines)) = (rows, lines) {
            assert_eq!(rows.unwrap_or_else(|e| panic!("{e}")).view.tasks.len(), polls);
            assert!(!lines.unwrap_or_else(|e| panic!("{e}")).is_empty());
            return;
        }
    }
    panic!("a read was polled {POLLS_MAX} times");
}

/// A command is overtaken, goes on by whatever locks it takes then, and is dropped at each await
/// there. Another connection's command on the same rows goes on at once, and so does one on its
/// own: what the dropped one held does not outlive it, neither for others nor for itself.
pub fn a_writer_dropped_with_its_locks_is_in_nobodys_way<R: Rig>() {
    let rig = R::fresh();
    let stores = [rig.open(), rig.open()];
    let answered = |store: &R::Store, submission, what: &str| {
        let mut going_on = Polled::new(store.submit(&submission));
        let outcome = going_on.end_within(R::patience());
        let outcome = outcome.unwrap_or_else(|| panic!("{what}: waits for one that was dropped"));
        outcome.unwrap_or_else(|e| panic!("{what}: one that was dropped is in the way: {e}"))
    };
    let done = |store: &R::Store, submission, what: &str| {
        let outcome = answered(store, submission, what).accepted();
        outcome.unwrap_or_else(|refused| panic!("{what}: {refused}"));
    };
    done(&stores[0], say(|c| instance(c, "one")), "at first");
    done(&stores[0], say(|c| workspace(c, "w")), "at first");
    let mut runs = 0;
    for before in 0..POLLS_MAX {
        for after in 0..POLLS_MAX {
            runs += 1;
            let name = |what: &str| format!("{what}-{before}-{after}");
            let what = format!("dropped {after} polls after it was overtaken after {before}");
            let task_name = name("t");
            done(&stores[1], say(|c| task(c, "w", &task_name)), &what);
            let late = say(|c| session(c, &task_name, &name("late"), None));
            let mut late = Polled::new(stores[0].submit(&late));
            let was_done = late.poll(before);
            done(&stores[1], say(|c| session(c, &task_name, &name("other"), None)), &what);
            let is_done = late.poll(after);
            drop(late);
            // Nobody waits until the engine has noticed: others come when they come. A barrier
            // needs for itself what the dropped one shares with its like.
            let (name, own) = (name("o"), name("own"));
            let barrier = say(|c| reserve(c, &name, &task_name, runs, Trigger::Archive, "one"));
            done(&stores[1], barrier, &what);
            // Refused or not: it is answered.
            answered(&stores[0], say(|c| session(c, &task_name, &own, None)), &what);
            if was_done {
                println!("{runs} runs");
                return;
            }
            if is_done {
                break;
            }
        }
    }
    panic!("a submission was polled {POLLS_MAX} times");
}
