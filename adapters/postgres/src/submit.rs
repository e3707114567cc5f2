//! One command on its way: read, decide, commit, and again where others were faster.

use std::future::Future;

use freehold_store::run::{Run, may_pass};
use freehold_store::{Outcome, StoreError, Submission};
use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::commit::{self, Locks};
use crate::fault::Fault;
use crate::footprint::{self, Loaded};
use crate::metrics::{Counters, count};
use crate::options::Options;
use crate::pool::{Connections, Lease, Parameter, REPEATS_MAX};
use crate::routine;

/// How often a command is decided again before the store gives up. Behind the locks there is
/// nobody to be slower than, unless its footprint grows each time.
pub(crate) const MISSES_MAX: u32 = 64;

/// How often a constraint may say that somebody was faster although the locks were taken.
const TAKEN_MAX: u32 = 4;

/// Something that runs statements: a connection of the pool, or the host's transaction.
pub(crate) trait Channel: Send {
    /// Whether the transaction is ours, or the host's.
    const OWN: bool;

    fn rows(
        &mut self,
        text: &str,
        parameters: &[Parameter<'_>],
    ) -> impl Future<Output = Result<Vec<Row>, Fault>> + Send;
}

impl Channel for Lease<'_> {
    const OWN: bool = true;

    fn rows(
        &mut self,
        text: &str,
        parameters: &[Parameter<'_>],
    ) -> impl Future<Output = Result<Vec<Row>, Fault>> + Send {
        Lease::rows(self, text, parameters)
    }
}

/// Why a try came to nothing.
#[derive(Debug)]
pub(crate) enum Missed {
    /// Rows had changed; these are the locks to take first. With the constraint that said so, if
    /// it was one.
    Changed(Locks, Option<StoreError>),
    /// Nothing was committed.
    Before(Fault),
    /// It may have been committed, unless the server said no.
    AtCommit(Fault),
}

/// A decision, before it is committed.
struct Pending {
    outcome: Outcome,
    /// None if there is nothing to write.
    commit: Option<(Value, Locks)>,
}

/// Reads and decides.
async fn decide<C: Channel>(
    channel: &mut C,
    options: &Options,
    submission: &Submission,
) -> Result<Pending, Missed> {
    let failed = |error: StoreError| Missed::Before(Fault::Failed(error));
    submission.storable().map_err(|error| failed(error.into()))?;
    let statement = footprint::statement(&options.schema, submission).map_err(failed)?;
    let parameters: Vec<Parameter<'_>> =
        statement.parameters.iter().map(|text| (text as _, Type::TEXT)).collect();
    let answer = channel.rows(&statement.text, &parameters).await.map_err(Missed::Before)?;
    let mut loaded = Loaded::new(&answer, &options.clock).map_err(failed)?;
    let mut run = Run::new(submission);
    while let Some(query) = run.query().map_err(failed)? {
        let table = query.table;
        let rows = loaded.answer(query).map_err(failed)?;
        run.supply(table, &rows).map_err(failed)?;
    }
    let decided = run.decide(loaded.now).map_err(failed)?;
    let changes = decided.changes().map_err(failed)?;
    let commit = if changes.rows.is_empty() && changes.journal.is_empty() {
        None
    } else {
        Some(commit::argument(options, &loaded, &changes, C::OWN).map_err(failed)?)
    };
    Ok(Pending { outcome: decided.outcome, commit })
}

/// Calls the commit function.
async fn call(
    channel: &mut impl Channel,
    options: &Options,
    argument: &Value,
) -> Result<bool, Fault> {
    let argument = argument.to_string();
    let parameters: [Parameter<'_>; 1] = [(&argument, Type::TEXT)];
    let rows = channel.rows(&routine::call(&options.schema), &parameters).await?;
    let answer = rows.first().map(|row| row.try_get::<_, bool>(0));
    answer.and_then(Result::ok).ok_or_else(|| {
        Fault::Failed(StoreError::Defect { detail: "the commit function has no answer".to_owned() })
    })
}

/// One try inside a transaction that is open, or in a statement of its own.
pub(crate) async fn attempt(
    channel: &mut impl Channel,
    options: &Options,
    submission: &Submission,
) -> Result<Outcome, Missed> {
    let pending = decide(channel, options, submission).await?;
    let Some((argument, locks)) = pending.commit else { return Ok(pending.outcome) };
    match call(channel, options, &argument).await {
        Ok(true) => Ok(pending.outcome),
        Ok(false) => Err(Missed::Changed(locks, None)),
        // Somebody made the row that was absent between our look and our write.
        Err(Fault::Taken(error)) => Err(Missed::Changed(locks, Some(error))),
        Err(fault) => Err(Missed::AtCommit(fault)),
    }
}

/// One try with the locks taken first, in a transaction of its own.
async fn attempt_locked(
    lease: &mut Lease<'_>,
    options: &Options,
    submission: &Submission,
    locks: &Locks,
) -> Result<Outcome, Missed> {
    lease.batch("BEGIN ISOLATION LEVEL READ COMMITTED").await.map_err(Missed::Before)?;
    lease.began();
    let only = commit::only_locks(options, locks);
    let tried = match call(lease, options, &only).await {
        Ok(_) => attempt(lease, options, submission).await,
        Err(fault) => Err(Missed::Before(fault)),
    };
    if tried.is_ok() {
        let ended = lease.batch("COMMIT").await;
        lease.ended();
        ended.map_err(Missed::AtCommit)?;
        return tried;
    }
    // Before COMMIT nothing counts, whatever the failure was.
    let tried = match tried {
        Err(Missed::AtCommit(fault)) => Err(Missed::Before(fault)),
        other => other,
    };
    if lease.batch("ROLLBACK").await.is_ok() {
        lease.ended();
    }
    tried
}

/// Carries out a submission.
pub(crate) async fn submit(
    connections: &Connections,
    counters: &Counters,
    submission: &Submission,
) -> Result<Outcome, StoreError> {
    let options = connections.options();
    count(&counters.submitted);
    let until = connections.deadline();
    let mut lease = connections.lease(until).await?;
    let (mut misses, mut repeats) = (0, 0);
    let mut locks: Option<Locks> = None;
    // Whether a commit of this command may have counted although nobody said so.
    let mut unknown: Option<String> = None;
    loop {
        let tried = match locks.as_ref().filter(|_| misses >= options.misses.max(1)) {
            Some(locks) => {
                count(&counters.locked_first);
                attempt_locked(&mut lease, options, submission, locks).await
            }
            None => attempt(&mut lease, options, submission).await,
        };
        let fault = match tried {
            Ok(outcome) => return stands(unknown, outcome),
            Err(Missed::Changed(missed, constraint)) => {
                misses += 1;
                count(&counters.decided_again);
                // Behind the locks nobody is faster: the rows themselves break a constraint.
                if let Some(error) = constraint
                    && misses > options.misses.saturating_add(TAKEN_MAX)
                {
                    return Err(told(unknown, error));
                }
                if misses > MISSES_MAX {
                    let detail = format!("its rows changed {misses} times while it was decided");
                    return Err(told(unknown, StoreError::Busy { detail }));
                }
                locks = Some(missed);
                continue;
            }
            Err(Missed::Before(fault)) => fault,
            Err(Missed::AtCommit(Fault::Lost(detail))) => {
                count(&counters.unknown);
                unknown = Some(detail.clone());
                // Its request id tells whether it was done: without one, nobody knows, and
                // doing it again could do it twice (D-19).
                if submission.envelope.request.is_none() {
                    return Err(StoreError::Unknown { detail });
                }
                Fault::Lost(detail)
            }
            Err(Missed::AtCommit(fault)) => fault,
        };
        repeats += 1;
        let again = repeats <= REPEATS_MAX;
        match fault {
            Fault::Again(_) if again => count(&counters.undone_by_server),
            Fault::Lost(_) if again => {
                count(&counters.connections_lost);
                lease = match connections.lease(until).await {
                    Ok(lease) => lease,
                    Err(error) => return Err(told(unknown, error)),
                };
            }
            Fault::OtherSchema(error) => {
                // The look needs a connection, and this may be the only one.
                drop(lease);
                let found = crate::open::require_current(connections, until).await.err();
                return Err(told(unknown, found.unwrap_or(error)));
            }
            fault => return Err(told(unknown, fault.error())),
        }
    }
}

/// An answer after a commit whose own answer was lost. One that is in the rows stands: the lost one
/// was this, or will never be. But a refusal that leaves no row says nothing about a commit that
/// may still be waiting at the server, decided when it was not refused yet.
fn stands(unknown: Option<String>, outcome: Outcome) -> Result<Outcome, StoreError> {
    match (unknown, outcome) {
        (Some(detail), Outcome::Refused(refused)) if may_pass(refused.refusal.guard) => {
            let refused = refused.refusal.guard.code();
            Err(StoreError::Unknown { detail: format!("{detail}; then it was refused: {refused}") })
        }
        (_, outcome) => Ok(outcome),
    }
}

/// A failure after a commit whose answer was lost says that nobody knows.
fn told(unknown: Option<String>, error: StoreError) -> StoreError {
    match unknown {
        Some(detail) => StoreError::Unknown { detail: format!("{detail}; then {error}") },
        None => error,
    }
}
