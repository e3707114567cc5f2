//! The PostgreSQL store beside the in-memory reference: one clock, the same commands, equal
//! answers, rows and journal.

use freehold_kernel::TableId;
use freehold_postgres::PostgresStore;
use freehold_store::memory::Memory;
use freehold_store::store::{Dump, JournalRow, dump};
use freehold_store::{Outcome, Read, Rows, Store, Submission};

use crate::host::Place;

pub(crate) struct Twin {
    pub(crate) place: Place,
    memory: Memory,
    stores: [PostgresStore; 2],
    turn: usize,
    follows: i64,
}

impl Twin {
    pub(crate) fn new() -> Twin {
        let place = Place::new();
        let memory = Memory::new("memory", place.clock.clone());
        let stores = [place.open(), place.open()];
        Twin { place, memory, stores, turn: 0, follows: 0 }
    }

    /// One of two instances on the same schema.
    pub(crate) fn store(&self) -> &PostgresStore {
        &self.stores[self.turn % 2]
    }

    /// Submits to both; the answers must be equal. The two instances take turns.
    pub(crate) fn submit(&mut self, submission: &Submission) -> Outcome {
        self.turn += 1;
        let expected = pollster::block_on(self.memory.submit(submission)).unwrap();
        let outcome = pollster::block_on(self.store().submit(submission)).unwrap();
        match (&expected, &outcome) {
            // Names for people: the reference has those of rows that were never read, too.
            (Outcome::Refused(a), Outcome::Refused(b)) => {
                assert_eq!((&a.refusal, a.replayed), (&b.refusal, b.replayed));
                assert_eq!(a.rows(), b.rows());
            }
            (Outcome::Accepted(a), Outcome::Accepted(b)) => {
                assert_eq!((&a.reply, a.replayed, &a.warrant), (&b.reply, b.replayed, &b.warrant));
                assert_eq!((&a.events, &a.effects), (&b.events, &b.effects));
            }
            (a, b) => panic!("memory {a:?}, postgres {b:?}"),
        }
        outcome
    }

    /// Every row of both, and the journal since the last time.
    pub(crate) fn compare(&mut self) -> Result<(), String> {
        let expected: Dump = pollster::block_on(dump(&self.memory)).unwrap();
        let found: Dump = pollster::block_on(dump(self.store())).map_err(|e| e.to_string())?;
        for (table, rows) in &expected {
            if found.get(table) != Some(rows) {
                return Err(format!("{table}: memory {rows:?}, postgres {:?}", found.get(table)));
            }
        }
        if expected.len() != found.len() || found.len() != TableId::ALL.len() {
            return Err("tables are missing".to_owned());
        }
        let after = self.follows;
        let a: Vec<JournalRow> = pollster::block_on(self.memory.journal(after, 1000)).unwrap();
        let b: Vec<JournalRow> = pollster::block_on(self.store().journal(after, 1000)).unwrap();
        if a != b {
            return Err(format!("journal: memory {a:?}, postgres {b:?}"));
        }
        self.follows = b.last().map_or(self.follows, |line| line.seq);
        Ok(())
    }

    pub(crate) fn everything(&self) -> Rows {
        let reads: Vec<Read> = TableId::ALL.iter().map(|t| Read::all(*t)).collect();
        let rows = pollster::block_on(self.store().read(&reads)).unwrap();
        assert!(rows.unreadable.is_empty(), "{:?}", rows.unreadable);
        rows
    }

    /// Nobody changed a row behind the other's back, so nothing was decided twice.
    pub(crate) fn undisturbed(&self) {
        for store in &self.stores {
            let metrics = store.metrics();
            assert_eq!((metrics.decided_again, metrics.undone_by_server), (0, 0), "{metrics:?}");
        }
    }

    /// Goes on after the server ended every connection in the middle of whatever it did.
    pub(crate) fn crash(&mut self) {
        self.place.sql(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE application_name = current_schema()",
        );
    }

    /// Closes and opens.
    pub(crate) fn reopen(&mut self) {
        self.stores = [self.place.open(), self.place.open()];
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.place.sql(&format!("DROP SCHEMA \"{}\" CASCADE", self.place.schema));
        }
    }
}
