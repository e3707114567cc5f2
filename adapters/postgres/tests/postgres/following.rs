//! Following the journal: nothing lost, nothing doubled, in the order of what happened; and
//! waiting for it.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::mpsc::channel;
use std::time::Duration;

use freehold_postgres::Options;
use freehold_store::Store;
use freehold_store::store::JournalRow;

use crate::host::{
    Place, connect, create_session, create_task, create_workspace, done, journal, runtime,
};
use crate::proxy::Proxy;

fn subjects(lines: &[JournalRow]) -> Vec<&str> {
    lines.iter().map(|line| line.columns["subject"].as_str()).collect()
}

#[test]
fn a_reader_waits_for_the_oldest_transaction_that_is_open() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    let mut host = place.beside();
    for (commits, lines_before, wanted) in [(true, 1, 2), (false, 3, 1)] {
        let name = |n: &str| format!("{n} {commits}");
        let before = journal(&store, 0, lines_before).last().unwrap().seq;
        runtime().block_on(async {
            // The host's transaction has its lines, with the smaller numbers, and is still open.
            let mut transaction = host.client.transaction().await.unwrap();
            let early = create_task(&name("early"));
            store.submit_in(&mut transaction, &early).await.unwrap().accepted().unwrap();
            let later = create_workspace(&name("later"));
            store.submit(&later).await.unwrap().accepted().unwrap();
            // So nobody reads what came later, however often they look.
            for _ in 0..3 {
                assert!(store.journal(before, 100).await.unwrap().is_empty());
            }
            if commits {
                transaction.commit().await.unwrap();
            } else {
                transaction.rollback().await.unwrap();
            }
        });
        let lines = journal(&store, before, wanted);
        match commits {
            true => assert_eq!(subjects(&lines), [name("early"), name("later")]),
            false => assert_eq!(subjects(&lines), [name("later")]),
        }
        // One that begins to read now sees the same.
        assert_eq!(journal(&place.open(), before, wanted), lines);
    }
}

#[test]
fn readers_that_follow_while_many_write_miss_nothing() {
    let place = Place::new();
    let stores: Vec<_> = (0..3).map(|_| place.open()).collect();
    done(&stores[0], &create_workspace("w"));
    for n in 0..4 {
        done(&stores[0], &create_task(&format!("t{n}")));
    }
    let first = journal(&stores[0], 0, 5).last().unwrap().seq;
    let start = Barrier::new(6);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|n| {
                let (stores, start) = (&stores, &start);
                scope.spawn(move || {
                    start.wait();
                    for i in 0..40 {
                        let session = create_session(&format!("s-{n}-{i}"), &format!("t{n}"));
                        done(&stores[n % 3], &session);
                    }
                })
            })
            .collect();
        let readers: Vec<_> = (0..2)
            .map(|n| {
                let (stores, start) = (&stores, &start);
                scope.spawn(move || {
                    start.wait();
                    let (mut after, mut seen) = (first, Vec::new());
                    let mut sessions = 0;
                    while sessions < 160 {
                        let lines = pollster::block_on(stores[n].journal(after, 7)).unwrap();
                        let Some(last) = lines.last() else { continue };
                        after = last.seq;
                        sessions += lines
                            .iter()
                            .filter(|l| l.columns["event"] == "session_created")
                            .count();
                        seen.extend(lines);
                    }
                    seen
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        let readers: Vec<_> = readers.into_iter().map(|r| r.join().unwrap()).collect();
        let most = readers.iter().map(Vec::len).max().unwrap();
        let all = journal(&stores[0], first, most);
        for seen in readers {
            assert_eq!(seen[..], all[..seen.len()]);
        }
        let numbers: BTreeSet<i64> = all.iter().map(|l| l.seq).collect();
        assert_eq!(numbers.len(), all.len());
        // Of one task's sessions, in the order in which they were made.
        for n in 0..4 {
            let of: Vec<&str> =
                subjects(&all).into_iter().filter(|s| s.starts_with(&format!("s-{n}-"))).collect();
            let wanted: Vec<String> = (0..40).map(|i| format!("s-{n}-{i}")).collect();
            assert_eq!(of, wanted);
        }
    });
}

#[test]
fn numbers_that_a_crash_of_the_server_skipped_are_passed_over() {
    let server = freehold_pg_server::Server::start(&[]).unwrap();
    let place = Place::new();
    let config: tokio_postgres::Config = server.url("postgres").parse().unwrap();
    let store = crate::host::connect(config, place.options()).unwrap();
    done(&store, &create_workspace("w"));
    server.kill();
    server.start_again();
    done(&store, &create_workspace("w2"));
    let lines = journal(&store, 0, 2);
    assert_eq!(subjects(&lines), ["w", "w2"]);
    assert!(lines[1].seq > lines[0].seq + 1, "the server skipped none: {lines:?}");
}

#[test]
fn a_commit_wakes_those_who_listen() {
    let place = Place::new();
    let (store, other) = (place.open(), place.open());
    let long = Duration::from_secs(600);
    let mut listener = pollster::block_on(store.listen()).unwrap();
    done(&other, &create_workspace("w"));
    assert!(pollster::block_on(listener.wait(long)));
    // Nothing happened: the wait ends all the same, and the caller looks anyway.
    assert!(!pollster::block_on(listener.wait(Duration::from_millis(20))));
    // What was notified while nobody waited is not lost; nor what a host commits itself.
    done(&other, &create_task("t"));
    assert!(pollster::block_on(listener.wait(long)));
    let mut host = place.beside();
    runtime().block_on(async {
        let mut transaction = host.client.transaction().await.unwrap();
        let task = store.submit_in(&mut transaction, &create_task("t1")).await.unwrap();
        assert!(task.accepted().is_ok());
        transaction.commit().await.unwrap();
    });
    assert!(pollster::block_on(listener.wait(long)));
    // A store beside it in the same database is no reason.
    done(&Place::new().open(), &create_workspace("w"));
    assert!(!pollster::block_on(listener.wait(Duration::from_millis(20))));
    // A lost connection is made again, and what may have been missed is looked for.
    place.sql(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE query LIKE 'LISTEN%' AND application_name = current_schema()",
    );
    assert!(pollster::block_on(listener.wait(long)));
    let woken = std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            // Until it is connected again and told of what comes next.
            while pollster::block_on(store.journal(0, 100)).unwrap().len() < 4 {
                pollster::block_on(listener.wait(long));
            }
            true
        });
        done(&other, &create_task("t2"));
        waits.join().unwrap()
    });
    assert!(woken);
}

#[test]
fn without_notifications_or_behind_a_pooler_waits_are_by_time() {
    let place = Place::new();
    let quiet = place.try_open(Options { notify: false, ..place.options() }).unwrap();
    let mut listener = pollster::block_on(quiet.listen()).unwrap();
    done(&quiet, &create_workspace("w"));
    assert!(!pollster::block_on(listener.wait(Duration::from_millis(20))));
    let pooled = place.try_open(Options { pooler: true, ..place.options() }).unwrap();
    let mut listener = pollster::block_on(pooled.listen()).unwrap();
    done(&pooled, &create_task("t"));
    assert!(!pollster::block_on(listener.wait(Duration::from_millis(20))));
}

/// The connection that listened is lost, and nobody answers the next one: a wait ends when its
/// time is over, not when connecting is given up.
#[test]
fn a_wait_ends_although_nobody_answers_who_listens() {
    let place = Place::new();
    let proxy = Proxy::start();
    let mut config = proxy.config();
    config.application_name(&place.schema);
    let patient = Options { connect_wait: Duration::from_secs(3600), ..place.options() };
    let store = connect(config, patient).unwrap();
    let mut listener = pollster::block_on(store.listen()).unwrap();
    let held = proxy.hold(0);
    place.sql(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE query LIKE 'LISTEN%' AND application_name = current_schema()",
    );
    std::thread::scope(|scope| {
        // If anything here fails, the request goes on.
        let mut held = held;
        let (ended, ends) = channel();
        scope.spawn(move || {
            while ended.send(()).is_ok() {
                pollster::block_on(listener.wait(Duration::from_millis(20)));
            }
        });
        held.wait();
        // The wait that connects again is under way, or over; the ones before it are told of.
        let _earlier = ends.try_iter().count();
        ends.recv_timeout(Duration::from_secs(60)).expect("the wait does not end");
    });
}
