//! Which part of a job an instance should try to claim, so that several do not try the same one.

use std::time::Duration;

use freehold_store::{Clock, StoreError};
use tokio_postgres::types::Type;

use crate::footprint::CLOCK;
use crate::pool::Parameter;
use crate::sql::{quoted, table};
use crate::store::PostgresStore;

impl PostgresStore {
    /// Picks parts of jobs that are due for this instance, the longest due first, at most `limit`:
    /// ids for `cleanup.claim`. Other instances pick others for as long as `hold` says; after that,
    /// or in a crash of the server, the pick is void. Rows that somebody is just changing are
    /// passed over instead of waited for.
    ///
    /// A pick is no claim (C-3): it changes no row that is decided on, and a part that was picked
    /// by nobody may be claimed as well. `host` leaves out what lies in roots of other hosts.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn pick(
        &self,
        instance: &str,
        host: &str,
        limit: usize,
        hold: Duration,
    ) -> Result<Vec<String>, StoreError> {
        let connections = &self.shared.connections;
        let options = connections.options();
        let roots = table(&options.schema, freehold_kernel::TableId::JobRoots);
        let managed = table(&options.schema, freehold_kernel::TableId::ManagedRoots);
        let picks = format!("{}.picks", quoted(&options.schema));
        let now = match &options.clock {
            Clock::System => CLOCK.trim_end_matches("::text").to_owned(),
            manual @ Clock::Manual(_) => manual.now().0.to_string(),
        };
        let text = format!(
            "WITH now AS MATERIALIZED (SELECT {now} AS at), \
             due AS MATERIALIZED ( \
                 SELECT r.id FROM {roots} r, now \
                 WHERE r.state IN ('pending', 'retry_wait') \
                 AND (r.next_attempt_at IS NULL OR r.next_attempt_at <= now.at) \
                 AND (r.root_id IS NULL OR EXISTS \
                     (SELECT FROM {managed} m WHERE m.id = r.root_id AND m.host = $2)) \
                 AND NOT EXISTS (SELECT FROM {picks} p WHERE p.job_root_id = r.id \
                     AND p.until > now.at AND p.instance <> $1) \
                 ORDER BY r.next_attempt_at NULLS FIRST, r.id LIMIT $3 \
                 FOR UPDATE OF r SKIP LOCKED) \
             INSERT INTO {picks} AS p (job_root_id, instance, until) \
             SELECT due.id, $1, now.at + $4 FROM due, now \
             ON CONFLICT (job_root_id) DO UPDATE \
             SET instance = excluded.instance, until = excluded.until \
             WHERE p.until <= excluded.until - $4 OR p.instance = excluded.instance \
             RETURNING p.job_root_id"
        );
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let hold = i64::try_from(hold.as_micros()).unwrap_or(i64::MAX / 2);
        let work = async {
            let parameters: [Parameter<'_>; 4] = [
                (&instance, Type::TEXT),
                (&host, Type::TEXT),
                (&limit, Type::INT8),
                (&hold, Type::INT8),
            ];
            let rows = connections.read(&text, &parameters).await?;
            Ok(rows.iter().filter_map(|row| row.try_get(0).ok()).collect())
        };
        connections.on_runtime(work).await
    }
}
