//! The one connection that writes: one submission by itself, or a group in one commit.

use freehold_store::{Clock, Outcome, StoreError, Submission};
use rusqlite::Connection;

use crate::fault;
use crate::transact::{Failure, carry_out, execute};

/// What a caller gets.
pub(crate) type Answer = Result<Outcome, StoreError>;

/// The connection, with the clock that its decisions are made by.
#[derive(Debug)]
pub(crate) struct Writer {
    connection: Connection,
    clock: Clock,
}

impl Writer {
    pub(crate) fn new(connection: Connection, clock: Clock) -> Writer {
        Writer { connection, clock }
    }

    /// One submission in a transaction of its own.
    pub(crate) fn one(&mut self, submission: &Submission) -> Answer {
        let open = Open::begin(&self.connection)?;
        let outcome =
            carry_out(&self.connection, &self.clock, submission).map_err(Failure::error)?;
        open.commit()?;
        Ok(outcome)
    }

    /// A group in one commit, each all-or-nothing; the answers are in the same order. If the
    /// commit fails, or a statement in a way that concerns all, the group is replayed one by one
    ///
    pub(crate) fn group(&mut self, submissions: &[&Submission]) -> Vec<Answer> {
        match self.together(submissions) {
            Ok(answers) => answers,
            Err(Broken::Replay) => submissions.iter().map(|s| self.one(s)).collect(),
            Err(Broken::ForAll(error)) => submissions.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    fn together(&mut self, submissions: &[&Submission]) -> Result<Vec<Answer>, Broken> {
        // Nobody waits for the lock twice: if it cannot be had, nobody gets it.
        let open = Open::begin(&self.connection).map_err(Broken::ForAll)?;
        let mut answers = Vec::with_capacity(submissions.len());
        for submission in submissions {
            answers.push(match carry_out(&self.connection, &self.clock, submission) {
                Ok(outcome) => Ok(outcome),
                Err(Failure::Own(error)) => Err(error),
                Err(Failure::Shared(_)) => return Err(Broken::Replay),
            });
        }
        match open.commit() {
            Ok(()) => Ok(answers),
            // Each was decided on what those before it wrote, so none is known; a replay could
            // do it twice.
            Err(error @ StoreError::Unknown { .. }) => Err(Broken::ForAll(error)),
            Err(_nothing_happened) => Err(Broken::Replay),
        }
    }

    #[cfg(test)]
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }
}

/// Why a group's transaction gave no answers.
enum Broken {
    Replay,
    ForAll(StoreError),
}

/// A transaction that is open, and rolled back unless it is committed: on a failure, and if a
/// panic unwinds (F57).
struct Open<'c> {
    connection: &'c Connection,
}

impl Open<'_> {
    /// Takes the write lock at BEGIN, so that the busy wait applies (F55).
    fn begin(connection: &Connection) -> Result<Open<'_>, StoreError> {
        // A transaction that a failed ROLLBACK left open is nobody's: never run inside it.
        drop(Open { connection });
        execute(connection, "BEGIN IMMEDIATE").map_err(|error| fault::of(connection, &error))?;
        Ok(Open { connection })
    }

    fn commit(self) -> Result<(), StoreError> {
        // If it fails, dropping rolls back what is still open.
        execute(self.connection, "COMMIT")
            .map_err(|error| fault::of_commit(self.connection, &error))
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.connection.is_autocommit() {
            let _rolled_back = execute(self.connection, "ROLLBACK");
        }
    }
}
