//! Futures dropped at every await: nothing half-done, nothing left open, and the same request
//! sent again gives what would have come.

use freehold_kernel::TableId;
use freehold_store::{Read, Store};

use crate::life::a_tasks_life;
use crate::polling::poll_up_to;
use crate::rig::Rig;
use crate::speech::{say, submit, task, workspace};
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
