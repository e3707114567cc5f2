//! When one call ends, whatever it waits for: one deadline for all that it repeats.

use std::future::Future;
use std::time::Duration;

use freehold_store::StoreError;
use tokio::time::Instant;

/// The end of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    /// None where it is too far away to be a moment.
    at: Option<Instant>,
    wait: Duration,
}

impl Deadline {
    /// So long from now.
    pub(crate) fn after(wait: Duration) -> Deadline {
        Deadline { at: Instant::now().checked_add(wait), wait }
    }

    /// So much later, for an answer that is waited for past the end.
    pub(crate) fn later(self, by: Duration) -> Deadline {
        Deadline { at: self.at.and_then(|at| at.checked_add(by)), wait: self.wait }
    }

    /// How long it is until then.
    pub(crate) fn left(self) -> Duration {
        self.at.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()))
    }

    /// Carries out what ends by itself, or by this.
    ///
    /// # Errors
    /// It did not end before.
    pub(crate) async fn bound<T>(self, work: impl Future<Output = T>) -> Result<T, StoreError> {
        match self.at {
            None => Ok(work.await),
            Some(at) => tokio::time::timeout_at(at, work).await.map_err(|_| self.error()),
        }
    }

    /// What a call that ran into it fails with, where nothing was committed.
    pub(crate) fn error(self) -> StoreError {
        StoreError::Unavailable {
            detail: format!(
                "the call was not done within {:?}, all its tries together (Options::call_wait)",
                self.wait
            ),
        }
    }
}
