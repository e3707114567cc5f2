//! Commands inside the host's own transaction (A-7, C-19).

use freehold_kernel::{Guard, TableId};
use freehold_sqlite::within;
use freehold_store::{Read, Store, StoreError};
use rusqlite::{Connection, TransactionBehavior};

use crate::host::{Place, create_session, create_task, create_workspace, done, ids};

fn host(place: &Place) -> Connection {
    let connection = place.beside();
    connection
        .execute_batch("PRAGMA foreign_keys = ON; CREATE TABLE IF NOT EXISTS host (id TEXT)")
        .unwrap();
    connection
}

#[test]
fn rows_of_the_host_and_of_freehold_commit_together() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    let mut connection = host(&place);
    for commit in [false, true] {
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        transaction.execute("INSERT INTO host VALUES ('h')", []).unwrap();
        let task = within(&transaction, &place.clock, &create_task("t1")).unwrap();
        assert!(task.accepted().is_ok());
        let session = within(&transaction, &place.clock, &create_session("s1", "t1")).unwrap();
        let session = session.accepted().unwrap();
        assert!(session.effects.is_empty() && session.warrant.is_none());
        assert!(!session.events.is_empty());
        if commit {
            transaction.commit().unwrap();
        } else {
            transaction.rollback().unwrap();
        }
        let rows = pollster::block_on(store.read(&[Read::all(TableId::Sessions)])).unwrap();
        assert_eq!(rows.view.sessions.len(), usize::from(commit));
        assert_eq!(ids(&place.beside(), "host").len(), usize::from(commit));
    }
}

#[test]
fn a_refusal_or_failure_leaves_the_hosts_rows_and_nothing_of_its_own() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    let mut connection = host(&place);
    connection
        .execute_batch(
            "CREATE TRIGGER bad AFTER INSERT ON journal WHEN NEW.subject = 'bad' \
             BEGIN SELECT RAISE(ABORT, 'planted'); END",
        )
        .unwrap();
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    transaction.execute("INSERT INTO host VALUES ('h')", []).unwrap();
    let refused = within(&transaction, &place.clock, &create_session("s1", "nowhere")).unwrap();
    assert_eq!(refused.accepted().unwrap_err().refusal.guard, Guard::TaskKnown);
    // The journal comes last: rows were written by then.
    let error = within(&transaction, &place.clock, &create_task("bad")).unwrap_err();
    assert!(matches!(error, StoreError::Defect { .. }), "{error}");
    transaction.commit().unwrap();
    assert_eq!(ids(&place.beside(), "host"), ["h"]);
    assert!(ids(&place.beside(), "tasks").is_empty());
    assert_eq!(ids(&place.beside(), "identities"), ["w"]);
}

#[test]
fn a_connection_to_something_else_is_refused() {
    let place = Place::new();
    let mut connection = place.beside();
    connection.execute_batch("CREATE TABLE songs (title TEXT)").unwrap();
    let transaction = connection.transaction().unwrap();
    let error = within(&transaction, &place.clock, &create_workspace("w")).unwrap_err();
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    drop(transaction);
    drop(connection);

    let place = Place::new();
    drop(place.open());
    let mut connection = place.beside();
    connection.execute("INSERT INTO freehold_schema VALUES (2, 'x', 0)", []).unwrap();
    let transaction = connection.transaction().unwrap();
    let error = within(&transaction, &place.clock, &create_workspace("w")).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 2, known: 1, .. }));
}
