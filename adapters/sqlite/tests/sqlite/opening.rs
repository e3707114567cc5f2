//! What is opened and what is refused. A refused file is left as it was.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use freehold_sqlite::{Options, Sqlite};
use freehold_store::{Store, StoreError};

use crate::host::{Place, create_task, create_workspace, done, ids, submit};

/// Every file of a folder with its bytes, but for SQLite's shared memory, which any reader makes.
fn folder(path: &Path) -> BTreeMap<String, Vec<u8>> {
    std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_file())
        .map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap()))
        .filter(|(name, _)| !name.ends_with("-shm"))
        .collect()
}

/// Opens what must be refused, and looks that nothing changed.
fn refused(place: &Place) -> StoreError {
    let before = folder(place.folder.path());
    let options = Options { busy_wait: Duration::from_millis(50), ..place.options() };
    let error = Sqlite::open(&place.path(), options).unwrap_err();
    assert_eq!(folder(place.folder.path()), before, "{error}");
    error
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
    assert_eq!(ids(&place.beside(), "workspaces"), ["w"]);
    let mode: String =
        place.beside().query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    let other = Place::new();
    assert_ne!(pollster::block_on(other.open().id()).unwrap(), id);
}

#[test]
fn an_empty_file_counts_as_fresh() {
    let place = Place::new();
    std::fs::write(place.path(), b"").unwrap();
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
    assert_eq!(ids(&place.beside(), "workspaces").len(), 8);
}

#[test]
fn a_missing_folder_is_named() {
    let place = Place::new();
    let path = place.folder.path().join("nowhere/store.db");
    let error = Sqlite::open(&path, place.options()).unwrap_err();
    assert!(matches!(&error, StoreError::Unavailable { detail } if detail.contains("nowhere")));
    assert!(!path.parent().unwrap().exists());
}

#[test]
fn a_folder_is_refused() {
    let place = Place::new();
    std::fs::create_dir(place.path()).unwrap();
    assert!(matches!(refused(&place), StoreError::NotAStore { .. }));
}

#[test]
fn what_is_no_database_is_refused() {
    for bytes in [&b"hello"[..], &[0u8; 8192][..], "x".repeat(5000).as_bytes()] {
        let place = Place::new();
        std::fs::write(place.path(), bytes).unwrap();
        let error = refused(&place);
        assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    }
}

#[test]
fn a_database_of_something_else_is_refused() {
    let place = Place::new();
    place.beside().execute_batch("CREATE TABLE songs (title TEXT)").unwrap();
    let error = refused(&place);
    assert!(matches!(&error, StoreError::NotAStore { detail, .. } if detail.contains("songs")));
    // One without tables is somebody's too.
    let place = Place::new();
    place.beside().execute_batch("PRAGMA user_version = 7").unwrap();
    assert!(std::fs::metadata(place.path()).unwrap().len() > 0);
    assert!(matches!(refused(&place), StoreError::NotAStore { .. }));
}

#[test]
fn a_legacy_database_is_refused_with_its_log_untouched() {
    let place = Place::new();
    place.beside().execute_batch("CREATE TABLE task_session_worktrees (id TEXT)").unwrap();
    assert!(matches!(refused(&place), StoreError::Legacy { .. }));

    // In WAL, with writes that are not yet in the file, left there by a crash.
    let source = Place::new();
    let writer = source.beside();
    writer
        .execute_batch(
            "PRAGMA journal_mode = WAL; CREATE TABLE task_session_worktrees (id TEXT); \
             INSERT INTO task_session_worktrees VALUES ('a')",
        )
        .unwrap();
    let place = Place::new();
    for suffix in ["", "-wal"] {
        let name = format!("store.db{suffix}");
        std::fs::copy(source.folder.path().join(&name), place.folder.path().join(&name)).unwrap();
    }
    assert!(std::fs::metadata(place.folder.path().join("store.db-wal")).unwrap().len() > 0);
    assert!(matches!(refused(&place), StoreError::Legacy { .. }));
}

#[test]
fn a_newer_store_is_refused() {
    let place = Place::new();
    drop(place.open());
    place.beside().execute("INSERT INTO freehold_schema VALUES (99, 'x', 0)", []).unwrap();
    assert!(matches!(refused(&place), StoreError::Newer { found: 99, known: 1, .. }));
}

#[test]
fn a_version_that_cannot_be_read_is_not_taken_for_fresh() {
    for change in [
        "DELETE FROM freehold_schema",
        "DROP TABLE freehold_schema; CREATE TABLE freehold_schema (something TEXT)",
        "DROP TABLE freehold_schema; CREATE TABLE freehold_schema (version TEXT, checksum TEXT); \
         INSERT INTO freehold_schema VALUES ('one', 'x')",
        "DROP TABLE task_sessions",
    ] {
        let place = Place::new();
        drop(place.open());
        place.beside().execute_batch(change).unwrap();
        let error = refused(&place);
        assert!(matches!(error, StoreError::Corrupt { .. }), "{change}: {error}");
    }
}

#[test]
fn another_schema_under_a_known_version_is_refused() {
    let place = Place::new();
    drop(place.open());
    place.beside().execute("UPDATE freehold_schema SET checksum = 'other'", []).unwrap();
    assert!(matches!(refused(&place), StoreError::NotAStore { .. }));
}

#[test]
fn a_damaged_file_is_refused() {
    let place = Place::new();
    drop(place.open());
    let mut bytes = std::fs::read(place.path()).unwrap();
    // The header stands, what it leads to does not.
    bytes[100..4096].fill(0xa5);
    std::fs::write(place.path(), bytes).unwrap();
    let error = refused(&place);
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

#[test]
fn damage_found_later_is_said_and_does_not_look_like_absence() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    drop(store);
    let connection = place.beside();
    let page: i64 = connection
        .query_row("SELECT rootpage FROM sqlite_master WHERE name = 'tasks'", [], |row| row.get(0))
        .unwrap();
    drop(connection);
    let mut bytes = std::fs::read(place.path()).unwrap();
    let at = usize::try_from((page - 1) * 4096).unwrap();
    bytes[at..at + 4096].fill(0xa5);
    std::fs::write(place.path(), bytes).unwrap();
    let store = place.open();
    let error = submit(&store, &create_task("t")).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

#[test]
fn a_file_that_is_locked_whole_is_busy_and_one_that_is_written_is_not() {
    let place = Place::new();
    drop(place.open());
    let other = place.beside();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    drop(place.open());
    other.execute_batch("ROLLBACK").unwrap();
    drop(other);

    let other = place.beside();
    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT").unwrap();
    let error = refused(&place);
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    drop(other);
    drop(place.open());
}

#[test]
fn a_crash_between_making_and_wal_is_made_good() {
    let place = Place::new();
    drop(place.open());
    place.beside().execute_batch("PRAGMA journal_mode = DELETE").unwrap();
    let _store = place.open();
    let mode: String =
        place.beside().query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}
