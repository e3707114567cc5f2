//! Commands inside the host's own transaction (A-7, C-19).

use freehold_kernel::{Guard, TableId};
use freehold_store::store::dump;
use freehold_store::{Outcome, Read, Store, StoreError};

use crate::host::{
    Beside, Place, ask, create_session, create_task, create_workspace, done, journal, runtime,
    submit,
};

fn host(place: &Place) -> Beside {
    let beside = place.beside();
    beside.run("CREATE TABLE IF NOT EXISTS host (id text)");
    beside
}

#[test]
fn rows_of_the_host_and_of_freehold_commit_together() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    let mut host = host(&place);
    for commit in [false, true] {
        runtime().block_on(async {
            let mut transaction = host.client.transaction().await.unwrap();
            transaction.batch_execute("INSERT INTO host VALUES ('h')").await.unwrap();
            let task = store.submit_in(&mut transaction, &create_task("t1")).await.unwrap();
            assert!(task.accepted().is_ok());
            let session = create_session("s1", "t1");
            let session = store.submit_in(&mut transaction, &session).await.unwrap();
            let session = session.accepted().unwrap();
            assert!(session.effects.is_empty() && session.warrant.is_none());
            assert!(!session.events.is_empty());
            if commit {
                transaction.commit().await.unwrap();
            } else {
                transaction.rollback().await.unwrap();
            }
        });
        let rows = pollster::block_on(store.read(&[Read::all(TableId::Sessions)])).unwrap();
        assert_eq!(rows.view.sessions.len(), usize::from(commit));
        assert_eq!(place.ids("host").len(), usize::from(commit));
    }
    let journal = journal(&store, 0, 4);
    let subjects: Vec<&str> = journal.iter().map(|l| l.columns["subject"].as_str()).collect();
    // The numbers of the transaction that was undone are passed over.
    assert_eq!(subjects, ["w", "t1", "s1", "t1"]);
}

#[test]
fn a_refusal_or_failure_leaves_the_hosts_rows_and_nothing_of_its_own() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    let mut host = host(&place);
    place.sql(
        "CREATE FUNCTION bad() RETURNS trigger LANGUAGE plpgsql AS \
         $$BEGIN RAISE EXCEPTION 'planted'; END$$; \
         CREATE TRIGGER bad AFTER INSERT ON journal FOR EACH ROW \
         WHEN (NEW.subject = 'bad') EXECUTE FUNCTION bad()",
    );
    runtime().block_on(async {
        let mut transaction = host.client.transaction().await.unwrap();
        transaction.batch_execute("INSERT INTO host VALUES ('h')").await.unwrap();
        let refused = create_session("s1", "nowhere");
        let refused = store.submit_in(&mut transaction, &refused).await.unwrap();
        assert_eq!(refused.accepted().unwrap_err().refusal.guard, Guard::TaskKnown);
        // The journal comes last: rows were written by then.
        let error = store.submit_in(&mut transaction, &create_task("bad")).await.unwrap_err();
        assert!(error.to_string().contains("planted"), "{error}");
        transaction.commit().await.unwrap();
    });
    assert_eq!(place.ids("host"), ["h"]);
    assert!(place.ids("tasks").is_empty());
    assert_eq!(place.ids("identities"), ["w"]);
}

#[test]
fn a_transaction_that_does_not_see_what_others_commit_is_refused() {
    let place = Place::new();
    let store = place.open();
    let mut host = host(&place);
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let error = runtime().block_on(async {
            let mut transaction = host.client.transaction().await.unwrap();
            let set = format!("SET TRANSACTION ISOLATION LEVEL {level}");
            transaction.batch_execute(&set).await.unwrap();
            store.submit_in(&mut transaction, &create_workspace("w")).await.unwrap_err()
        });
        assert!(error.to_string().contains("READ COMMITTED"), "{error}");
    }
    assert!(place.ids("workspaces").is_empty());
}

#[test]
fn what_another_committed_meanwhile_is_seen_by_the_hosts_transaction() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    let mut host = host(&place);
    runtime().block_on(async {
        let mut transaction = host.client.transaction().await.unwrap();
        transaction.batch_execute("INSERT INTO host VALUES ('h')").await.unwrap();
        // The transaction has begun; now another instance takes the id.
        let taken = store.submit(&create_task("t1")).await.unwrap();
        assert!(matches!(taken, Outcome::Accepted(_)));
        let refused = store.submit_in(&mut transaction, &create_task("t1")).await.unwrap();
        assert_eq!(refused.accepted().unwrap_err().refusal.guard, Guard::IdNeverUsed);
        transaction.commit().await.unwrap();
    });
}

#[test]
fn f57_a_host_that_drops_its_transaction_leaves_nothing() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    let before = pollster::block_on(dump(&store)).unwrap();
    let mut host = host(&place);
    runtime().block_on(async {
        let mut transaction = host.client.transaction().await.unwrap();
        let task = store.submit_in(&mut transaction, &create_task("t1")).await.unwrap();
        assert!(task.accepted().is_ok());
        drop(transaction);
        host.client.batch_execute("SELECT 1").await.unwrap();
    });
    assert_eq!(pollster::block_on(dump(&store)).unwrap(), before);
    assert!(submit(&store, &create_task("t1")).unwrap().accepted().is_ok());
}

#[test]
fn a_schema_that_is_gone_or_newer_is_said_in_the_hosts_transaction() {
    let place = Place::new();
    let store = place.open();
    place.sql("INSERT INTO freehold_schema VALUES (99, 'x', 0); DROP FUNCTION commit_1");
    let mut host = host(&place);
    let error = runtime().block_on(async {
        let mut transaction = host.client.transaction().await.unwrap();
        store.submit_in(&mut transaction, &create_workspace("w")).await.unwrap_err()
    });
    assert!(matches!(error, StoreError::Newer { found: 99, known: 1, .. }), "{error}");
}

/// The host goes back to a savepoint of its own and asks once more: what was undone is as if it had
/// never been asked, its request included, and the journal has what stayed.
#[test]
fn a_host_that_goes_back_to_its_savepoint_undoes_the_command_and_its_request() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    let mut host = host(&place);
    let wanted = |name: &str| ask("q", |c| crate::host::task(c, name));
    runtime().block_on(async {
        let mut transaction = host.client.transaction().await.unwrap();
        let mut part = transaction.savepoint("freehold_within").await.unwrap();
        let first = store.submit_in(&mut part, &wanted("t1")).await.unwrap();
        assert!(first.accepted().is_ok());
        part.rollback().await.unwrap();
        let second = store.submit_in(&mut transaction, &wanted("t2")).await.unwrap();
        assert!(!second.accepted().unwrap().replayed);
        // In the same transaction, and still not committed, the request is known.
        let again = store.submit_in(&mut transaction, &wanted("t2")).await.unwrap();
        assert!(again.accepted().unwrap().replayed);
        transaction.commit().await.unwrap();
    });
    assert_eq!(place.ids("tasks"), ["t2"]);
    assert!(submit(&store, &wanted("t2")).unwrap().accepted().unwrap().replayed);
    let journal = journal(&store, 0, 2);
    let subjects: Vec<&str> = journal.iter().map(|l| l.columns["subject"].as_str()).collect();
    assert_eq!(subjects, ["w", "t2"]);
}
