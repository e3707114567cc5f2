//! Many at once, on two connections: every command is done once, and none starves.

use std::collections::BTreeSet;

use freehold_store::store::dump;

use crate::rig::Rig;
use crate::speech::{ask, say, session, star, submit, task, workspace};
use crate::twin::journal_of;

/// Four threads add to one task and change one row, with requests, each sent twice.
pub fn threads_on_two_connections_lose_and_double_nothing<R: Rig>() {
    const THREADS: usize = 4;
    const EACH: usize = 25;
    let rig = R::fresh();
    let stores = [rig.open(), rig.open()];
    let said = |store: &R::Store, submission| {
        let outcome = submit(store, &submission).unwrap_or_else(|e| panic!("{e}"));
        outcome.accepted().unwrap_or_else(|refused| panic!("{refused}"))
    };
    said(&stores[0], say(|c| workspace(c, "w")));
    said(&stores[0], say(|c| task(c, "w", "t")));
    said(&stores[0], say(|c| session(c, "t", "s", None)));
    let before = pollster::block_on(dump(&stores[0])).unwrap_or_else(|e| panic!("{e}"));
    let lines = journal_of::<R>(&stores[0], 0, 1).unwrap_or_else(|what| panic!("{what}")).len();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, other) = (&stores[thread % 2], &stores[(thread + 1) % 2]);
            scope.spawn(move || {
                for n in 0..EACH {
                    let name = format!("s-{thread}-{n}");
                    let wanted = || ask(&name, |c| session(c, "t", &name, None));
                    assert!(!said(store, wanted()).replayed, "{name} was new");
                    assert!(said(other, wanted()).replayed, "{name} was done");
                    said(store, say(|c| star(c, "s", n % 2 == 0)));
                }
            });
        }
    });
    let rows = pollster::block_on(dump(&stores[1])).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(rows["task_sessions"].len(), 1 + THREADS * EACH);
    assert_eq!(rows["identities"].len() - before["identities"].len(), THREADS * EACH);
    let lines = journal_of::<R>(&stores[1], 0, lines + THREADS * EACH);
    let lines = lines.unwrap_or_else(|what| panic!("{what}"));
    let created: Vec<&str> = lines
        .iter()
        .filter(|line| line.columns["event"] == "session_created")
        .map(|line| line.columns["subject"].as_str())
        .collect();
    assert_eq!(created.len(), 1 + THREADS * EACH);
    assert_eq!(created.iter().collect::<BTreeSet<_>>().len(), created.len());
}
