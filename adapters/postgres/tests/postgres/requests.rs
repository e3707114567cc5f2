//! Requests are answered once and then again with the same words (D-19); the journal.

use freehold_kernel::{Guard, Reply};
use freehold_store::store::dump;
use freehold_store::{Outcome, Store};

use crate::host::{Place, ask, create_session, create_task, create_workspace, done, submit, task};

#[test]
fn a_request_is_answered_with_its_first_outcome() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    let first = submit(&store, &ask("q1", |c| task(c, "t1"))).unwrap().accepted().unwrap();
    assert!(!first.replayed);
    drop(store);
    // After a restart too.
    let store = place.open();
    let again = submit(&store, &ask("q1", |c| task(c, "t1"))).unwrap().accepted().unwrap();
    assert!(again.replayed);
    assert_eq!((again.reply, first.reply), (Reply::Done, Reply::Done));
    assert!(again.events.is_empty());

    let other = submit(&store, &ask("q1", |c| task(c, "t2"))).unwrap().accepted().unwrap_err();
    assert_eq!(other.refusal.guard, Guard::RequestContent);

    // A refusal that will not pass by itself is remembered, with its request row alone.
    let refused = submit(&store, &ask("q2", |c| task(c, "t1"))).unwrap().accepted().unwrap_err();
    assert_eq!((refused.refusal.guard, refused.replayed), (Guard::IdNeverUsed, false));
    let refused = submit(&store, &ask("q2", |c| task(c, "t1"))).unwrap().accepted().unwrap_err();
    assert_eq!((refused.refusal.guard, refused.replayed), (Guard::IdNeverUsed, true));
}

#[test]
fn what_changes_nothing_writes_nothing() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    let state = || {
        let number = place.sql("SELECT last_value FROM journal_seq");
        (pollster::block_on(dump(&store)).unwrap(), number)
    };
    let before = state();
    let outcome = submit(&store, &create_session("s1", "nowhere")).unwrap();
    assert!(matches!(outcome, Outcome::Refused(_)));
    assert_eq!(state(), before);
    done(&store, &create_task("t1"));
    assert_ne!(state(), before);
}

#[test]
fn the_journal_is_in_order_and_can_be_followed() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    for n in 0..5 {
        done(&store, &create_task(&format!("t{n}")));
    }
    let _refused = submit(&store, &create_task("t0")).unwrap();
    let all = pollster::block_on(store.journal(0, 100)).unwrap();
    let subjects: Vec<&str> = all.iter().map(|line| line.columns["subject"].as_str()).collect();
    assert_eq!(subjects, ["w", "t0", "t1", "t2", "t3", "t4"]);
    assert!(all.windows(2).all(|two| two[0].seq < two[1].seq));
    let line = &all[1].columns;
    assert_eq!(line["actor"], "ann");
    assert_eq!(line["command"], "task.create");
    assert_eq!(line["subject_table"], "tasks");
    assert_eq!(line["event"], "task_created");
    assert_eq!(line["detail"], "standard");
    assert_eq!(line["at"], "1000000000000");
    // In pieces: nothing is lost or doubled.
    let mut after = 0;
    let mut pieces = Vec::new();
    loop {
        let piece = pollster::block_on(store.journal(after, 2)).unwrap();
        let Some(last) = piece.last() else { break };
        after = last.seq;
        pieces.extend(piece);
    }
    assert_eq!(pieces, all);
}
