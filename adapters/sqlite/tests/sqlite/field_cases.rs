//! Cases from the field.

use std::future::Future;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::pin::pin;
use std::process::Stdio;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use freehold_kernel::TableId;
use freehold_sqlite::{Options, Sqlite};
use freehold_store::store::dump;
use freehold_store::{Read as ReadRows, Store, StoreError};

use crate::host::{Place, child, create_task, create_workspace, done, ids, submit};

const WRITES: &str = "FREEHOLD_TEST_F55_WRITES";
const HOLDS: &str = "FREEHOLD_TEST_F55_HOLDS";
const COUNT: usize = 200;

/// Reads, then writes, many times, as one of two processes.
#[test]
fn f55_child_writes() {
    let Some(path) = std::env::var_os(WRITES) else { return };
    let options = Options { busy_wait: Duration::from_secs(60), ..Options::default() };
    let store = Sqlite::open(Path::new(&path), options).unwrap();
    let process = std::process::id();
    for n in 0..COUNT {
        done(&store, &create_task(&format!("t-{process}-{n}")));
    }
    println!("\nWROTE");
}

/// Holds the write lock until its input ends.
#[test]
fn f55_child_holds() {
    let Some(path) = std::env::var_os(HOLDS) else { return };
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::io::stdout().write_all(b"\nHOLDS\n").unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    connection.execute_batch("ROLLBACK").unwrap();
}

#[test]
fn f55_two_processes_that_read_then_write_never_fail_at_once() {
    let place = Place::new();
    done(&place.open(), &create_workspace("w"));
    let binary = std::env::current_exe().unwrap();
    let both: Vec<_> = (0..2)
        .map(|_| {
            child(&binary, "field_cases::f55_child_writes", WRITES, &place.path())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for process in both {
        let output = process.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("WROTE"), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(ids(&place.beside(), "tasks").len(), 2 * COUNT);
}

#[test]
fn f55_a_lock_held_for_longer_than_the_wait_is_busy_and_changes_nothing() {
    let place = Place::new();
    let wait = Duration::from_millis(300);
    let options = Options { busy_wait: wait, ..place.options() };
    let store = Sqlite::open(&place.path(), options).unwrap();
    done(&store, &create_workspace("w"));
    done(&store, &create_task("t1"));
    let before = pollster::block_on(dump(&store)).unwrap();

    let binary = std::env::current_exe().unwrap();
    let mut process = child(&binary, "field_cases::f55_child_holds", HOLDS, &place.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "HOLDS"));

    let began = Instant::now();
    let error = submit(&store, &create_task("t2")).unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    assert!(error.may_pass_later());
    assert!(began.elapsed() >= wait, "the wait was not taken: {:?}", began.elapsed());
    // Readers do not wait for a writer.
    assert_eq!(pollster::block_on(dump(&store)).unwrap(), before);

    drop(process.stdin.take());
    assert!(process.wait().unwrap().success());
    done(&store, &create_task("t2"));
}

#[test]
fn f57_a_dropped_future_leaves_no_transaction_and_no_rows() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    let before = pollster::block_on(dump(&store)).unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let (first, second) = (create_task("t1"), create_task("t2"));

    // Before the first poll nothing was done.
    drop(store.submit(&first));
    assert_eq!(pollster::block_on(dump(&store)).unwrap(), before);

    // A poll does everything: there is no await at which a transaction is open.
    {
        let mut future = pin!(store.submit(&first));
        assert!(future.as_mut().poll(&mut context).is_ready());
    }
    let reads = [ReadRows::all(TableId::Tasks)];
    {
        let mut future = pin!(store.read(&reads));
        let _ready = future.as_mut().poll(&mut context).is_ready();
    }
    drop(store.read(&reads));
    drop(store.journal(0, 10));

    // Nobody holds a lock now: another connection gets it without any wait.
    let other = place.beside();
    other.busy_timeout(Duration::ZERO).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; ROLLBACK").unwrap();
    done(&store, &second);
    assert_eq!(ids(&other, "tasks"), ["t1", "t2"]);
}

#[test]
fn f57_futures_dropped_while_many_write_do_no_harm() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let store = &store;
            scope.spawn(move || {
                for n in 0..40 {
                    let (given_up, kept) = (
                        create_task(&format!("x-{thread}-{n}")),
                        create_task(&format!("k-{thread}-{n}")),
                    );
                    {
                        let mut future = pin!(store.submit(&given_up));
                        let mut context = Context::from_waker(Waker::noop());
                        let _whichever = future.as_mut().poll(&mut context).is_ready();
                    }
                    done(store, &kept);
                }
            });
        }
    });
    let connection = place.beside();
    let tasks = ids(&connection, "tasks");
    assert_eq!(tasks.iter().filter(|t| t.starts_with('k')).count(), 320);
    // Those given up are whole or absent.
    let torn: i64 = connection
        .query_row(
            "SELECT count(*) FROM identities WHERE kind = 'task' AND id NOT IN (SELECT id FROM tasks)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(torn, 0);
}

#[test]
fn many_threads_all_land_and_the_bad_one_is_refused() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    done(&store, &create_task("taken"));
    let refused = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..32 {
            let (store, refused) = (&store, &refused);
            scope.spawn(move || {
                for n in 0..10 {
                    done(store, &create_task(&format!("t-{thread}-{n}")));
                    if thread == 7 {
                        let outcome = submit(store, &create_task("taken")).unwrap();
                        assert!(outcome.accepted().is_err());
                        refused.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    }
                }
            });
        }
    });
    assert_eq!(refused.into_inner(), 10);
    assert_eq!(ids(&place.beside(), "tasks").len(), 321);
}
