//! Readers: texts come with the facts, a row that cannot be read is named, nobody waits.

use freehold_kernel::{RowKey, TableId};
use freehold_store::names::id_of;
use freehold_store::run::Stored;
use freehold_store::{Read, Store, StoreError};

use crate::host::{
    Place, compose, create_session, create_task, create_workspace, done, say, submit, task, task_in,
};

#[test]
fn texts_come_with_the_facts() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    let composer = freehold_store::Composer::new("ann", freehold_kernel::Permissions::ALL).unwrap();
    let submission = compose(composer, |c| {
        let command = task(c, "t1");
        let id: freehold_kernel::TaskId = c.id("t1").unwrap();
        c.content(TableId::Tasks, id.0, "title", "Läuft: 'quoted' \u{1f980}");
        command
    });
    done(&store, &submission);
    done(&store, &create_task("t2"));
    let rows = pollster::block_on(store.read(&[Read::all(TableId::Tasks)])).unwrap();
    let id = freehold_kernel::TaskId(id_of(freehold_kernel::Kind::TaskId, "t1"));
    let title = rows.contents[&RowKey::task(id)]["title"].clone();
    assert_eq!(title.as_deref(), Some("Läuft: 'quoted' \u{1f980}"));
    assert_eq!(rows.view.tasks.len(), 2);
    assert_eq!(rows.view.now, place.clock.now());
}

#[test]
fn rows_are_found_by_column() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    for n in 0..150 {
        done(&store, &create_task(&format!("t{n}")));
    }
    let count =
        |read: Read| pollster::block_on(store.read(&[read])).map(|rows| rows.view.tasks.len());
    let names: Vec<String> = (0..130).map(|n| format!("t{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(count(Read::by(TableId::Tasks, "id", &names)), Ok(130));
    assert_eq!(count(Read::by(TableId::Tasks, "id", &["t7", "t7", "x"])), Ok(1));
    assert_eq!(count(Read::by(TableId::Tasks, "workspace_id", &["w"])), Ok(150));
    assert_eq!(count(Read::by(TableId::Tasks, "id", &[])), Ok(0));
    let null = Read { table: TableId::Tasks, by: Some(("parent_id", vec![Stored::Null])) };
    assert_eq!(count(null), Ok(150));
    assert!(matches!(
        count(Read::by(TableId::Tasks, "nonsense", &["x"])),
        Err(StoreError::Defect { .. })
    ));
}

#[test]
fn a_row_that_cannot_be_read_is_named_and_the_others_are_there() {
    let place = Place::new();
    let store = place.open();
    for workspace in ["a", "b", "c"] {
        done(&store, &create_workspace(workspace));
    }
    // A build of tomorrow writes a state that this one does not know.
    place
        .beside()
        .execute_batch(
            "PRAGMA ignore_check_constraints = ON; \
             UPDATE workspaces SET state = 'dreaming' WHERE id = 'b'",
        )
        .unwrap();
    let rows = pollster::block_on(store.read(&[Read::all(TableId::Workspaces)])).unwrap();
    assert_eq!(rows.view.workspaces.len(), 2);
    let [(table, key, why)] = rows.unreadable.as_slice() else { panic!("{:?}", rows.unreadable) };
    assert_eq!((*table, key.as_str()), (TableId::Workspaces, "b"));
    assert!(why.contains("dreaming"), "{why}");
    // A decision that needs the row fails; it is not taken for absent (S-29). Others go on.
    let needs = say(|c| task_in(c, "b", "t"));
    let error = submit(&store, &needs).unwrap_err();
    assert!(matches!(error, StoreError::Unreadable { column: "state", .. }), "{error}");
    done(&store, &create_workspace("d"));
}

#[test]
fn a_reader_sees_one_moment_and_holds_up_no_writer() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..200 {
                let task = format!("t{n}");
                done(&store, &create_task(&task));
                done(&store, &create_session(&format!("s{n}"), &task));
            }
        });
        for _ in 0..4 {
            scope.spawn(|| {
                while !writer_is_done(&store) {
                    let reads = [Read::all(TableId::Tasks), Read::all(TableId::Sessions)];
                    let rows = pollster::block_on(store.read(&reads)).unwrap();
                    // At most one task is without its session at any moment.
                    let (tasks, sessions) = (rows.view.tasks.len(), rows.view.sessions.len());
                    assert!(tasks == sessions || tasks == sessions + 1, "{tasks} {sessions}");
                }
            });
        }
        writer.join().unwrap();
    });
}

fn writer_is_done(store: &freehold_sqlite::Sqlite) -> bool {
    let read = [Read::by(TableId::Sessions, "id", &["s199"])];
    pollster::block_on(store.read(&read)).unwrap().view.sessions.len() == 1
}

#[test]
fn readers_go_on_while_another_holds_the_write_lock() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    let other = place.beside();
    other.execute_batch("BEGIN IMMEDIATE; UPDATE workspaces SET name = 'x'").unwrap();
    let rows = pollster::block_on(store.read(&[Read::all(TableId::Workspaces)])).unwrap();
    assert!(rows.contents.is_empty());
    assert_eq!(rows.view.workspaces.len(), 1);
    other.execute_batch("ROLLBACK").unwrap();
}
