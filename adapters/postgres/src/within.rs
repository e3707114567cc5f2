//! A command inside the host's own open transaction.

use std::future::Future;

use freehold_store::{Outcome, StoreError, Submission};
use tokio_postgres::{Row, Transaction};

use crate::deadline::Deadline;
use crate::fault::{self, Fault};
use crate::pool::Parameter;
use crate::store::PostgresStore;
use crate::submit::{Channel, MISSES_MAX, Missed, attempt};

/// The host's transaction, one savepoint deep.
struct Within<'t> {
    savepoint: Transaction<'t>,
    place: &'t str,
}

impl Channel for Within<'_> {
    const OWN: bool = false;

    fn rows(
        &mut self,
        text: &str,
        parameters: &[Parameter<'_>],
    ) -> impl Future<Output = Result<Vec<Row>, Fault>> + Send {
        let place = self.place;
        let answer = self.savepoint.query_typed(text, parameters);
        async move { answer.await.map_err(|error| fault::of(place, &error)) }
    }
}

impl PostgresStore {
    /// Carries out a submission inside the host's own transaction, so that the host's rows and
    /// Freehold's commit together. The connection is any one to the store's database; its role
    /// needs the rights on the store's schema.
    ///
    /// The transaction must be `READ COMMITTED`, PostgreSQL's default: what others commit while
    /// this waits for their locks has to be seen. The locks on Freehold's rows are held until the
    /// host's transaction ends, so end it soon. How long locks are waited for is the host's
    /// `lock_timeout`.
    ///
    /// The outcome counts once the host has committed. So it carries no effects (C-19) and no
    /// warrant: nothing physical may happen on the word of a transaction that may still be undone.
    /// What was recorded is picked up after the commit. If this fails, other than as unknown, what
    /// it wrote is undone; the host's own statements are not, unless the server ended the whole
    /// transaction, and the host decides whether to commit. If the future is dropped, roll the
    /// transaction back, as after every statement of one that was dropped.
    ///
    /// # Errors
    /// As [`freehold_store::Store::submit`]. After [`StoreError::Busy`] the transaction may have
    /// been chosen to end a deadlock: roll it back and repeat it whole; so after
    /// [`StoreError::Unavailable`], which it is once it took longer than
    /// [`crate::Options::call_wait`]. [`StoreError::Unknown`] only if the server was told that the
    /// command is whole, and did not answer within [`crate::Options::answer_wait`] after that:
    /// what it wrote may be a part of the transaction. Roll it back, or it may count although it
    /// is repeated. [`StoreError::NotAStore`] and [`StoreError::Newer`] if the schema is not a
    /// current store.
    pub async fn submit_in(
        &self,
        transaction: &mut Transaction<'_>,
        submission: &Submission,
    ) -> Result<Outcome, StoreError> {
        let connections = &self.shared.connections;
        let until = connections.deadline();
        connections.on_runtime(self.submit_until(transaction, submission, until)).await
    }

    async fn submit_until(
        &self,
        transaction: &mut Transaction<'_>,
        submission: &Submission,
        until: Deadline,
    ) -> Result<Outcome, StoreError> {
        let connections = &self.shared.connections;
        let failed = |error: &tokio_postgres::Error| fault::of(connections.place(), error).error();
        for _ in 0..MISSES_MAX {
            // May end at any await: a savepoint that is dropped is undone.
            let tried = until.bound(self.attempt_in(transaction, submission)).await??;
            let (savepoint, missed) = match tried {
                (savepoint, Ok(outcome)) => {
                    self.release(savepoint, until).await?;
                    return Ok(without_effects(outcome));
                }
                (savepoint, Err(missed)) => (savepoint, missed),
            };
            let undone = until.bound(savepoint.rollback()).await;
            match missed {
                Missed::Changed(..) => undone?.map_err(|e| failed(&e))?,
                Missed::Before(Fault::OtherSchema(error))
                | Missed::AtCommit(Fault::OtherSchema(error)) => {
                    let current = crate::open::require_current(connections, until).await;
                    return Err(current.err().unwrap_or(error));
                }
                Missed::Before(fault) | Missed::AtCommit(fault) => return Err(fault.error()),
            }
        }
        Err(StoreError::Busy {
            detail: format!("its rows changed {MISSES_MAX} times while it was decided"),
        })
    }

    /// One try, in a savepoint that is still open.
    async fn attempt_in<'t>(
        &'t self,
        transaction: &'t mut Transaction<'_>,
        submission: &Submission,
    ) -> Result<(Transaction<'t>, Result<Outcome, Missed>), StoreError> {
        let connections = &self.shared.connections;
        let place = connections.place();
        let failed = |error: &tokio_postgres::Error| fault::of(place, error).error();
        let text = "SELECT current_setting('transaction_isolation')";
        let isolation = transaction.query_typed(text, &[]).await.map_err(|e| failed(&e))?;
        let isolation: Option<String> = isolation.first().and_then(|row| row.try_get(0).ok());
        if isolation.as_deref() != Some("read committed") {
            return Err(StoreError::Defect {
                detail: format!(
                    "the host's transaction is {}; Freehold's commands need READ COMMITTED",
                    isolation.unwrap_or_default()
                ),
            });
        }
        let savepoint = transaction.savepoint("freehold_within").await.map_err(|e| failed(&e))?;
        let mut within = Within { savepoint, place };
        let tried = attempt(&mut within, connections.options(), submission).await;
        Ok((within.savepoint, tried))
    }

    /// Makes the command a part of the host's transaction. Once this was sent nothing undoes it but
    /// the transaction's own end: its answer is waited for past the end of the call, and without
    /// one nobody may believe that the command left nothing.
    async fn release(&self, savepoint: Transaction<'_>, until: Deadline) -> Result<(), StoreError> {
        let connections = &self.shared.connections;
        let until = until.later(connections.options().answer_wait);
        match until.bound(savepoint.commit()).await {
            Ok(released) => released.map_err(|e| fault::of(connections.place(), &e).error()),
            Err(_late) => Err(StoreError::Unknown {
                detail: "the server did not answer whether the command is a part of the host's \
                         transaction; roll that back"
                    .to_owned(),
            }),
        }
    }
}

fn without_effects(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Accepted(mut accepted) => {
            accepted.effects.clear();
            accepted.warrant = None;
            Outcome::Accepted(accepted)
        }
        Outcome::Refused(refused) => Outcome::Refused(refused),
    }
}
