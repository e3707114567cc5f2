//! The SQLite store keeps the contract of stores.

use std::cell::Cell;

use freehold_sqlite::Sqlite;
use freehold_store::Clock;
use freehold_testkit::{Can, Fault, OneWriter, Rig, store_contract};

use crate::host::Place;

/// A folder with a store's file. Faults are made by triggers, so each comes from SQLite itself, in
/// the middle of the store's own transaction.
struct SqliteRig {
    place: Place,
    has_triggers: Cell<bool>,
}

impl Rig for SqliteRig {
    type Store = Sqlite;
    type Held = OneWriter;

    fn fresh() -> Self {
        SqliteRig { place: Place::new(), has_triggers: Cell::new(false) }
    }

    fn clock(&self) -> Clock {
        self.place.clock.clone()
    }

    fn open(&self) -> Sqlite {
        self.place.open_fast()
    }

    fn can_reopen() -> Can {
        Can::Yes
    }

    fn can_crash() -> Can {
        Can::Yes
    }

    fn can_share() -> Can {
        Can::Yes
    }

    fn can_fail() -> Can {
        Can::Yes
    }

    fn can_spoil() -> Can {
        Can::Yes
    }

    fn spoil(&self, part: &str) {
        let sql = "UPDATE task_resource_cleanup_roots SET tries = -1 WHERE id = ?";
        assert_eq!(self.place.beside().execute(sql, [part]).unwrap(), 1);
    }

    fn can_zone() -> Can {
        Can::No("it has no sessions, and its times are the process's: numbers without a zone")
    }

    /// Goes on with what a crash now would leave: the files as they are on disk, log included.
    fn crash(&mut self, stores: Vec<Sqlite>) {
        let after = self.place.as_a_crash_leaves_it();
        drop(stores);
        self.place = after;
    }

    /// Before: the statement that writes the row after `n` others is refused. After: it fails
    /// once its row is written, which stays in the transaction (FAIL undoes nothing). At commit: a
    /// foreign key that is looked at by COMMIT only.
    fn fail_at(&self, n: u64, fault: Fault) -> bool {
        if !self.has_triggers.replace(true) {
            self.place.beside().execute_batch(&self.triggers()).unwrap();
        }
        self.plan(i64::try_from(n).unwrap(), &format!("{fault:?}"));
        true
    }

    fn disarm(&self) -> bool {
        self.plan(0, "none");
        // Whether it came to pass says the answer: nothing is tried twice.
        false
    }
}

impl SqliteRig {
    fn plan(&self, rows: i64, fault: &str) {
        let beside = self.place.beside();
        beside.execute("UPDATE fault_plan SET rows = ?, fault = ?", (rows, fault)).unwrap();
    }

    /// Triggers on every table, and what they look at.
    fn triggers(&self) -> String {
        let mut text = String::from(
            "BEGIN IMMEDIATE; CREATE TABLE fault_plan (rows INTEGER NOT NULL, fault TEXT); \
             INSERT INTO fault_plan VALUES (0, 'none'); \
             CREATE TABLE fault_parent (id INTEGER PRIMARY KEY); \
             CREATE TABLE fault_child (id INTEGER REFERENCES fault_parent (id) \
             DEFERRABLE INITIALLY DEFERRED);",
        );
        for table in self.tables() {
            for event in ["INSERT", "UPDATE", "DELETE"] {
                for (when, fault, how) in
                    [("BEFORE", Fault::Before, "ABORT"), ("AFTER", Fault::After, "FAIL")]
                {
                    text.push_str(&format!(
                        "CREATE TRIGGER fault_{when}_{event}_{table} {when} {event} ON {table} \
                         WHEN (SELECT fault FROM fault_plan) = '{fault:?}' BEGIN \
                         UPDATE fault_plan SET rows = rows - 1; SELECT RAISE({how}, 'planned') \
                         FROM fault_plan WHERE rows < 0; END;"
                    ));
                }
                text.push_str(&format!(
                    "CREATE TRIGGER fault_commit_{event}_{table} AFTER {event} ON {table} \
                     WHEN (SELECT fault FROM fault_plan) = '{:?}' \
                     BEGIN INSERT INTO fault_child VALUES (1); END;",
                    Fault::AtCommit
                ));
            }
        }
        text.push_str("COMMIT;");
        text
    }

    fn tables(&self) -> Vec<String> {
        let beside = self.place.beside();
        let mut statement = beside
            .prepare(
                "SELECT name FROM sqlite_master WHERE type = 'table' \
                 AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'fault%' ORDER BY name",
            )
            .unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }
}

store_contract!(SqliteRig, without zone);
