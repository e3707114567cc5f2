//! The store itself.

use std::path::Path;

use freehold_store::store::JournalRow;
use freehold_store::{Clock, Outcome, Read, Rows, Store, StoreError, Submission};

use crate::open::{self, Options};
use crate::queue::Queue;
use crate::reader::Readers;
use crate::writer::Writer;

/// A store in one SQLite file. Share it behind an `Arc`; several in one or more processes may
/// have the same file open.
#[derive(Debug)]
pub struct Sqlite {
    queue: Queue,
    readers: Readers,
    clock: Clock,
}

impl Sqlite {
    /// Opens a store, or makes a fresh one where there is no file or an empty one. A file that
    /// is refused is left as it was.
    ///
    /// # Errors
    /// - [`StoreError::Unavailable`]: there is no such folder, or the file cannot be opened.
    /// - [`StoreError::NotAStore`]: a folder, no database, a database of something else.
    /// - [`StoreError::Legacy`]: a database that has to be upgraded first.
    /// - [`StoreError::Newer`]: written by a newer Freehold.
    /// - [`StoreError::Corrupt`]: damaged, or its version cannot be read.
    /// - [`StoreError::ReadOnly`]: this user may not write it.
    /// - [`StoreError::Busy`]: another process kept it locked for longer than the wait.
    /// - [`StoreError::DiskFull`], [`StoreError::Unknown`]: making or upgrading it failed.
    pub fn open(path: &Path, options: Options) -> Result<Sqlite, StoreError> {
        let opened = open::open(path, &options)?;
        let clock = options.clock.clone();
        Ok(Sqlite {
            queue: Queue::new(Writer::new(opened.connection, clock.clone())),
            readers: Readers::new(opened.path, opened.id, options),
            clock,
        })
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }
}

impl Store for Sqlite {
    async fn submit(&self, submission: &Submission) -> Result<Outcome, StoreError> {
        self.queue.submit(submission).await
    }

    async fn read(&self, reads: &[Read]) -> Result<Rows, StoreError> {
        self.readers.read(reads)
    }

    async fn journal(&self, after: i64, limit: usize) -> Result<Vec<JournalRow>, StoreError> {
        self.readers.journal(after, limit)
    }

    async fn id(&self) -> Result<String, StoreError> {
        Ok(self.readers.id().to_owned())
    }
}
