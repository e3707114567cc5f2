//! The SQLite store beside the in-memory reference: one clock, the same commands, equal answers,
//! rows and journal.

use freehold_kernel::TableId;
use freehold_sqlite::Sqlite;
use freehold_store::memory::Memory;
use freehold_store::store::{Dump, JournalRow, dump};
use freehold_store::{Outcome, Read, Rows, Store, Submission};

use crate::host::Place;

pub(crate) struct Twin {
    pub(crate) place: Place,
    memory: Memory,
    sqlite: Option<Sqlite>,
    follows: i64,
}

impl Twin {
    pub(crate) fn new() -> Twin {
        let place = Place::new();
        let memory = Memory::new("memory", place.clock.clone());
        let sqlite = Some(place.open_fast());
        Twin { place, memory, sqlite, follows: 0 }
    }

    pub(crate) fn sqlite(&self) -> &Sqlite {
        self.sqlite.as_ref().unwrap()
    }

    /// Submits to both; the answers must be equal.
    pub(crate) fn submit(&mut self, submission: &Submission) -> Outcome {
        let expected = pollster::block_on(self.memory.submit(submission)).unwrap();
        let outcome = pollster::block_on(self.sqlite().submit(submission)).unwrap();
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
            (a, b) => panic!("memory {a:?}, sqlite {b:?}"),
        }
        outcome
    }

    /// Every row of both, and the journal since the last time.
    pub(crate) fn compare(&mut self) -> Result<(), String> {
        let expected: Dump = pollster::block_on(dump(&self.memory)).unwrap();
        let found: Dump = pollster::block_on(dump(self.sqlite())).map_err(|e| e.to_string())?;
        for (table, rows) in &expected {
            if found.get(table) != Some(rows) {
                return Err(format!("{table}: memory {rows:?}, sqlite {:?}", found.get(table)));
            }
        }
        if expected.len() != found.len() || found.len() != TableId::ALL.len() {
            return Err("tables are missing".to_owned());
        }
        let after = self.follows;
        let a: Vec<JournalRow> = pollster::block_on(self.memory.journal(after, 1000)).unwrap();
        let b: Vec<JournalRow> = pollster::block_on(self.sqlite().journal(after, 1000)).unwrap();
        if a != b {
            return Err(format!("journal: memory {a:?}, sqlite {b:?}"));
        }
        self.follows = b.last().map_or(self.follows, |line| line.seq);
        Ok(())
    }

    pub(crate) fn everything(&self) -> Rows {
        let reads: Vec<Read> = TableId::ALL.iter().map(|t| Read::all(*t)).collect();
        let rows = pollster::block_on(self.sqlite().read(&reads)).unwrap();
        assert!(rows.unreadable.is_empty(), "{:?}", rows.unreadable);
        rows
    }

    /// Goes on with what a crash now would leave: the files as they are on disk, log included.
    pub(crate) fn crash(&mut self) {
        let place = self.place.as_a_crash_leaves_it();
        self.sqlite = None;
        self.place = place;
        self.sqlite = Some(self.place.open_fast());
    }

    /// Closes and opens.
    pub(crate) fn reopen(&mut self) {
        self.sqlite = None;
        self.sqlite = Some(self.place.open_fast());
    }
}
