//! Cases from the field: two processes on one database.

use std::process::{Command, Stdio};
use std::time::Duration;

use freehold_postgres::{Options, PostgresStore};
use freehold_store::store::dump;
use freehold_store::{Clock, StoreError};
use tokio_postgres::Config;

use crate::host::{
    DATABASE, Place, connect, create_task, create_workspace, done, runtime, server, submit,
};

const WRITES: &str = "FREEHOLD_TEST_PG_F55_WRITES";
const COUNT: usize = 60;

/// Reads, then writes, many times, as one of two processes.
#[test]
fn f55_child_writes_to_postgres() {
    let Ok(place) = std::env::var(WRITES) else { return };
    let (url, schema) = place.split_once(' ').unwrap();
    let config: Config = url.parse().unwrap();
    let options = Options {
        schema: schema.to_owned(),
        clock: Clock::System,
        runtime: Some(runtime().handle().clone()),
        ..Options::default()
    };
    let store: PostgresStore = connect(config, options).unwrap();
    let process = std::process::id();
    for n in 0..COUNT {
        done(&store, &create_task(&format!("t-{process}-{n}")));
    }
    println!("\nWROTE {}", store.metrics().decided_again);
}

#[test]
fn f55_two_processes_that_read_then_write_never_fail_on_postgres() {
    let place = Place::new();
    done(&place.open(), &create_workspace("w"));
    let both: Vec<_> = (0..2)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "field_cases::f55_child_writes_to_postgres", "--nocapture"])
                .env(WRITES, format!("{} {}", server().url(DATABASE), place.schema))
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
    assert_eq!(place.ids("tasks").len(), 2 * COUNT);
}

#[test]
fn f55_a_row_held_for_longer_than_the_wait_is_busy_and_changes_nothing() {
    let place = Place::new();
    let options = Options { lock_wait: Duration::from_millis(100), ..place.options() };
    let store = place.try_open(options).unwrap();
    done(&store, &create_workspace("w"));
    let before = pollster::block_on(dump(&store)).unwrap();
    let beside = place.beside();
    beside.run("BEGIN; UPDATE workspaces SET name = 'held'");
    let error = submit(&store, &create_task("t")).unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }) && error.may_pass_later(), "{error}");
    // By the wait for the lock, not by that for the whole statement behind it.
    assert!(error.to_string().contains("[55P03]"), "{error}");
    assert_eq!(pollster::block_on(dump(&store)).unwrap(), before);
    beside.run("ROLLBACK");
    done(&store, &create_task("t"));
}
