//! The journal: in order, from any position, in pieces of any size, nothing lost or doubled
//!

use freehold_store::Store;
use freehold_store::store::JournalRow;

use crate::rig::{Held as _, Rig};
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

/// A follower with its position.
struct Follower {
    after: i64,
    seen: Vec<JournalRow>,
}

impl Follower {
    /// Looks once, as far as it can see.
    fn look(&mut self, store: &impl Store) {
        loop {
            let piece = journal(store, self.after, 2);
            let Some(last) = piece.last() else { return };
            assert!(last.seq > self.after, "the journal goes back");
            self.after = last.seq;
            self.seen.extend(piece);
        }
    }

    fn subjects(&self) -> Vec<&str> {
        self.seen.iter().map(|line| line.columns["subject"].as_str()).collect()
    }
}

/// A commit is held open after its lines got their numbers, and others commit lines with greater
/// ones. A reader that went past it would never see the held line. Where nobody can commit
/// meanwhile ([`crate::OneWriter`]) the lines come in order, and none is lost, all the same.
pub fn a_reader_goes_as_far_as_the_oldest_commit_that_is_open<R: Rig>() {
    for ends_well in [true, false] {
        let rig = R::fresh();
        let stores = [rig.open(), rig.open(), rig.open()];
        let mut follower = Follower { after: 0, seen: Vec::new() };
        let mut wanted = vec!["w", "u"];
        let done = |s| {
            let outcome = submit(&stores[1], &s).unwrap_or_else(|e| panic!("{e}"));
            outcome.accepted().unwrap_or_else(|refused| panic!("{refused}"));
        };
        done(say(|c| workspace(c, "w")));
        done(say(|c| workspace(c, "u")));
        follower.look(&stores[2]);
        let held = rig.hold(&stores[0], &say(|c| task(c, "u", "held")));
        assert_eq!(held.is_some(), R::Held::POSSIBLE, "the rig holds otherwise than its type says");
        if held.is_none() {
            done(say(|c| task(c, "u", "held")));
        }
        for name in ["later 1", "later 2", "later 3"] {
            done(say(|c| task(c, "w", name)));
            follower.look(&stores[2]);
        }
        if let Some(held) = held {
            // From the beginning, and by one who has never looked, it is no other.
            follower.look(&stores[1]);
            assert_eq!(follower.subjects(), wanted, "went past a commit that is open");
            if ends_well {
                held.commit();
            } else {
                held.roll_back();
            }
            if ends_well {
                wanted.push("held");
            }
        } else {
            wanted.push("held");
        }
        wanted.extend(["later 1", "later 2", "later 3"]);
        let began = std::time::Instant::now();
        while follower.seen.len() < wanted.len() && began.elapsed() < R::patience() {
            follower.look(&stores[2]);
            std::thread::yield_now();
        }
        assert_eq!(follower.subjects(), wanted, "lost or doubled; held to commit: {ends_well}");
        assert_eq!(journal(&stores[0], 0, 100), follower.seen);
    }
}
