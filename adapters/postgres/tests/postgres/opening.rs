//! What is opened and what is refused. A refused schema is left as it was.

use freehold_postgres::Options;
use freehold_store::{Store, StoreError};

use crate::host::{DATABASE, Place, connect, create_workspace, done, server};

/// Opens what must be refused, and looks that nothing changed.
fn refused(place: &Place) -> StoreError {
    let state = || {
        place.sql(
            "SELECT string_agg(c.oid || c.relname || c.relfilenode, ',' ORDER BY c.oid) \
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE n.nspname = current_schema()",
        )
    };
    let before = state();
    let error = place.try_open(place.options()).unwrap_err();
    assert_eq!(state(), before, "{error}");
    assert!(!error.may_pass_later(), "{error}");
    error
}

fn make_schema(place: &Place) {
    server().sql(DATABASE, &format!("CREATE SCHEMA \"{}\"", place.schema));
}

#[test]
fn a_fresh_store_is_made_and_opened_again() {
    let place = Place::new();
    let store = place.open();
    let id = pollster::block_on(store.id()).unwrap();
    done(&store, &create_workspace("w"));
    drop(store);
    let store = place.open();
    assert_eq!(pollster::block_on(store.id()).unwrap(), id);
    assert_eq!(place.ids("workspaces"), ["w"]);
    assert_ne!(pollster::block_on(Place::new().open().id()).unwrap(), id);
}

#[test]
fn a_store_that_must_be_there_is_not_made() {
    let place = Place::new();
    let there = || Options { create: false, ..place.options() };
    let schemas = format!(
        "SELECT count(*) FROM pg_namespace WHERE nspname = '{}'",
        place.schema.replace('\'', "''")
    );
    let error = place.try_open(there()).unwrap_err();
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    assert!(!error.may_pass_later());
    assert_eq!(place.sql(&schemas), "0");
    make_schema(&place);
    let error = place.try_open(there()).unwrap_err();
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    drop(place.open());
    drop(place.try_open(there()).unwrap());
}

#[test]
fn an_empty_schema_counts_as_fresh() {
    let place = Place::new();
    make_schema(&place);
    done(&place.open(), &create_workspace("w"));
}

#[test]
fn many_may_make_a_fresh_one_at_once() {
    let place = Place::new();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let place = &place;
            scope.spawn(move || done(&place.open(), &create_workspace(&format!("w{n}"))));
        }
    });
    assert_eq!(place.ids("workspaces").len(), 8);
}

#[test]
fn a_schema_of_something_else_is_refused() {
    let place = Place::new();
    make_schema(&place);
    place.sql("CREATE TABLE songs (title text)");
    let error = refused(&place);
    assert!(matches!(&error, StoreError::NotAStore { detail, .. } if detail.contains("songs")));
}

#[test]
fn a_legacy_schema_is_refused() {
    let place = Place::new();
    make_schema(&place);
    place.sql("CREATE TABLE task_session_worktrees (id text)");
    assert!(matches!(refused(&place), StoreError::Legacy { .. }));
}

#[test]
fn a_newer_store_is_refused() {
    let place = Place::new();
    drop(place.open());
    place.sql("INSERT INTO freehold_schema VALUES (99, 'x', 0)");
    assert!(matches!(refused(&place), StoreError::Newer { found: 99, known: 1, .. }));
}

#[test]
fn a_version_that_cannot_be_read_is_not_taken_for_fresh() {
    for change in [
        "DELETE FROM freehold_schema",
        "DROP TABLE freehold_schema; CREATE TABLE freehold_schema (something text)",
        "DROP TABLE freehold_schema; CREATE TABLE freehold_schema (version text, checksum text); \
         INSERT INTO freehold_schema VALUES ('one', 'x')",
        "DROP TABLE task_sessions CASCADE",
        "DROP FUNCTION commit_1",
    ] {
        let place = Place::new();
        drop(place.open());
        place.sql(change);
        let error = refused(&place);
        assert!(matches!(error, StoreError::Corrupt { .. }), "{change}: {error}");
    }
}

#[test]
fn another_schema_under_a_known_version_is_refused() {
    let place = Place::new();
    drop(place.open());
    place.sql("UPDATE freehold_schema SET checksum = 'other'");
    assert!(matches!(refused(&place), StoreError::NotAStore { .. }));
}

#[test]
fn a_store_that_was_upgraded_by_another_says_so_to_those_who_still_write() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    place.sql("INSERT INTO freehold_schema VALUES (2, 'x', 0); DROP FUNCTION commit_1");
    let error = crate::host::submit(&store, &create_workspace("w2")).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 2, known: 1, .. }), "{error}");
    assert_eq!(place.ids("workspaces"), ["w"]);
}

#[test]
fn two_stores_in_one_database_do_not_know_of_each_other() {
    let (one, two) = (Place::new(), Place::new());
    done(&one.open(), &create_workspace("w"));
    done(&two.open(), &create_workspace("w"));
}

#[test]
fn without_a_runtime_it_says_what_to_hand_over() {
    let place = Place::new();
    let options = Options { runtime: None, ..place.options() };
    let error = connect(place.config(), options).unwrap_err();
    assert!(error.to_string().contains("Options::runtime"), "{error}");
}

#[test]
fn a_name_that_no_schema_can_have_is_refused() {
    let place = Place::new();
    for schema in [String::new(), "x".repeat(64), "a\0b".to_owned(), "pg_mine".to_owned()] {
        let error = place.try_open(Options { schema, ..place.options() }).unwrap_err();
        assert!(!error.may_pass_later(), "{error}");
    }
    let longest = "y".repeat(63);
    let store = place.try_open(Options { schema: longest.clone(), ..place.options() }).unwrap();
    done(&store, &create_workspace("w"));
    drop(place.try_open(Options { schema: longest, ..place.options() }).unwrap());
}
