//! From nothing to much: one operation over a task with many sessions.

use std::time::Instant;

use freehold_kernel::Trigger;

use crate::driver::random::number;
use crate::rig::Rig;
use crate::speech::{instance, mutate, reserve, say, session, snapshot, task, workspace};
use crate::twin::{Disturbed, Twin, journal, journal_of};

/// Empty stores are read, and a task with no, one, ten, a hundred and [`Rig::rows`] sessions is
/// archived in one transaction.
pub fn one_command_over_no_row_and_over_many<R: Rig>() {
    let mut twin = Twin::<R>::new(Disturbed::No);
    twin.compare().unwrap_or_else(|what| panic!("an empty store: {what}"));
    assert!(twin.everything().view.tasks.is_empty());
    twin.says(|c, _| instance(c, "one"));
    twin.says(|c, _| workspace(c, "w"));
    let largest = number("FREEHOLD_ROWS", R::rows() as u64) as usize;
    for (n, sessions) in (1..).zip([0, 1, 10, 100, largest]) {
        let began = Instant::now();
        let name = format!("t{sessions}");
        let mut said = |submission| {
            let outcome = twin.submit(&submission).accepted();
            outcome.unwrap_or_else(|refused| panic!("{refused}"));
        };
        said(say(|c| task(c, "w", &name)));
        for s in 0..sessions {
            said(say(|c| session(c, &name, &format!("{name}-{s}"), None)));
        }
        said(say(|c| reserve(c, &name, &name, n, Trigger::Archive, "one")));
        said(say(|c| snapshot(c, &name, "one")));
        said(say(|c| mutate(c, &name, "one")));
        twin.compare().unwrap_or_else(|what| panic!("{sessions} sessions: {what}"));
        println!("{sessions} sessions: {:?}", began.elapsed());
    }
    let wanted = journal(&twin.memory, 0, usize::MAX).len();
    let lines = journal_of::<R>(twin.store(), 0, wanted).unwrap_or_else(|what| panic!("{what}"));
    assert_eq!(lines.len(), wanted);
}
