//! The journal: in order, from any position, in pieces of any size, nothing lost or doubled
//!

use crate::rig::Rig;
use crate::speech::{say, session, submit, task, workspace};
use crate::twin::{journal, journal_of};

/// The lines are those of what happened, with who and why.
pub fn the_journal_tells_what_happened<R: Rig>() {
    let rig = R::fresh();
    let store = rig.open();
    for submission in [
        say(|c| workspace(c, "w")),
        say(|c| task(c, "w", "t0")),
        say(|c| task(c, "w", "t0")),
        say(|c| task(c, "w", "t1")),
    ] {
        submit(&store, &submission).unwrap_or_else(|e| panic!("{e}"));
    }
    let lines = journal_of::<R>(&store, 0, 3).unwrap_or_else(|what| panic!("{what}"));
    let subjects: Vec<&str> = lines.iter().map(|line| line.columns["subject"].as_str()).collect();
    assert_eq!(subjects, ["w", "t0", "t1"], "a refusal has no line");
    assert!(lines.windows(2).all(|two| two[0].seq < two[1].seq));
    let line = &lines[1].columns;
    for (column, wanted) in [
        ("actor", "ann"),
        ("command", "task.create"),
        ("cause", ""),
        ("subject_table", "tasks"),
        ("event", "task_created"),
        ("detail", "standard"),
    ] {
        assert_eq!(line[column], wanted, "{column}");
    }
    assert_eq!(line["at"], rig.clock().now().0.to_string());
}

/// Pieces of every size, and from every position, give the whole.
pub fn the_journal_is_resumed_from_any_position<R: Rig>() {
    let rig = R::fresh();
    let store = rig.open();
    let said = |s| {
        let outcome = submit(&store, &s).unwrap_or_else(|e| panic!("{e}"));
        outcome.accepted().unwrap_or_else(|refused| panic!("{refused}"));
    };
    said(say(|c| workspace(c, "w")));
    for n in 0..12 {
        said(say(|c| task(c, "w", &format!("t{n}"))));
        // A refused command may leave a gap in the numbers, and never a line.
        let _refused = submit(&store, &say(|c| task(c, "w", "t0")));
    }
    let all = journal_of::<R>(&store, 0, 13).unwrap_or_else(|what| panic!("{what}"));
    assert_eq!(all.len(), 13, "{all:?}");
    assert_eq!(journal(&store, i64::MAX - 1, 10), []);
    assert_eq!(journal(&store, 0, 0), []);
    for (at, line) in all.iter().enumerate() {
        assert_eq!(journal(&store, line.seq, 100), all[at + 1..], "after {}", line.seq);
        assert_eq!(journal(&store, line.seq - 1, 100), all[at..], "before {}", line.seq);
    }
    for size in 1..=all.len() {
        let (mut after, mut pieces) = (0, Vec::new());
        loop {
            let piece = journal(&store, after, size);
            assert!(piece.len() <= size, "more lines than were asked for");
            let Some(last) = piece.last() else { break };
            after = last.seq;
            pieces.extend(piece);
        }
        assert_eq!(pieces, all, "in pieces of {size}");
    }
}

/// Somebody follows while two connections write: each line once, in order, none behind the
/// position that was passed.
pub fn a_follower_misses_nothing_while_others_write<R: Rig>() {
    const EACH: usize = 40;
    let rig = R::fresh();
    let stores = [rig.open(), rig.open(), rig.open()];
    for submission in [say(|c| workspace(c, "w")), say(|c| task(c, "w", "t"))] {
        submit(&stores[0], &submission).unwrap_or_else(|e| panic!("{e}"));
    }
    // The two above, and one for each task.
    let wanted = 2 + 2 * EACH;
    let mut seen = Vec::new();
    std::thread::scope(|scope| {
        for (writer, store) in stores[..2].iter().enumerate() {
            scope.spawn(move || {
                for n in 0..EACH {
                    let name = format!("s-{writer}-{n}");
                    let outcome = submit(store, &say(|c| task(c, "w", &name)));
                    let outcome = outcome.unwrap_or_else(|e| panic!("{e}"));
                    outcome.accepted().unwrap_or_else(|refused| panic!("{refused}"));
                    let _refused = submit(store, &say(|c| session(c, "nothing", &name, None)));
                }
            });
        }
        let (mut after, began) = (0, std::time::Instant::now());
        while seen.len() < wanted && began.elapsed() < R::patience() {
            let piece = journal(&stores[2], after, 7);
            if let Some(last) = piece.last() {
                assert!(last.seq > after, "the journal goes back");
                after = last.seq;
            }
            seen.extend(piece);
            std::thread::yield_now();
        }
    });
    let all = journal_of::<R>(&stores[0], 0, wanted).unwrap_or_else(|what| panic!("{what}"));
    assert_eq!(all.len(), wanted);
    assert_eq!(seen, all, "what was followed is not what stands there");
}
