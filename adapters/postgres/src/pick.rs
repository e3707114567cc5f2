//! Which part of a job an instance should try to claim, so that several do not try the same one.
//!
//! A pick is a row in a table of its own, which nothing is decided on: rows that somebody is just
//! changing or picking are passed over instead of waited for (`SKIP LOCKED`), and what others
//! picked is left to them for as long as they said.

use freehold_kernel::{JobRoot, TableId, View};
use freehold_store::run::load_row;
use freehold_store::{Clock, Names, Pick, StoreError};
use tokio_postgres::types::Type;

use crate::footprint::CLOCK;
use crate::pool::{Connections, Parameter};
use crate::sql;

/// How often a look is taken that found parts which another picked at the same moment.
const LOOKS_MAX: u32 = 8;

/// Picks. Nobody waits for anybody.
pub(crate) async fn pick(
    connections: &Connections,
    pick: &Pick,
) -> Result<Vec<JobRoot>, StoreError> {
    let options = connections.options();
    let text = statement(&options.schema, &options.clock);
    let until = connections.deadline();
    // What is given back and passed over: what was tried, and what this build cannot read.
    let mut passed = pick.tried_texts();
    let limit = i64::try_from(pick.limit).unwrap_or(i64::MAX);
    let hold = pick.hold.0;
    let mut looks = 0;
    loop {
        let parameters: [Parameter<'_>; 5] = [
            (&pick.instance, Type::TEXT),
            (&pick.machine, Type::TEXT),
            (&limit, Type::INT8),
            (&hold, Type::INT8),
            (&passed, Type::TEXT_ARRAY),
        ];
        let answer = connections.read(until, &text, &parameters).await?;
        let unfit = |e: tokio_postgres::Error| StoreError::Defect { detail: e.to_string() };
        let (mut picked, mut unreadable) = (Vec::new(), Vec::new());
        for row in &answer {
            let Some(texts) = row.try_get::<_, Option<Vec<Option<String>>>>(0).map_err(unfit)?
            else {
                continue;
            };
            let id = texts.first().cloned().flatten();
            match part(texts) {
                Ok(Some(part)) => picked.push(part),
                Ok(None) | Err(_) => unreadable.extend(id),
            }
        }
        // What this build cannot read is no work of its (C-10): it is left to those that can, and
        // stands before nobody else. Each such look passes over more of them.
        if !unreadable.is_empty() {
            passed.append(&mut unreadable);
            continue;
        }
        looks += 1;
        if !picked.is_empty() || answer.is_empty() || looks >= LOOKS_MAX {
            picked.sort_by_key(|p| (p.created_at, p.root_id.is_some(), p.id));
            return Ok(picked);
        }
    }
}

fn part(texts: Vec<Option<String>>) -> Result<Option<JobRoot>, StoreError> {
    let (mut view, mut names) = (View::default(), Names::new());
    load_row(&mut view, &mut names, TableId::JobRoots, &sql::row(TableId::JobRoots, texts)?)?;
    Ok(view.job_roots.iter().next().copied())
}

/// One row for each part that was found; it holds the part if it was picked. `$1` instance, `$2`
/// machine, `$3` limit, `$4` for how long, `$5` what is passed over.
fn statement(schema: &str, clock: &Clock) -> String {
    let roots = sql::table(schema, TableId::JobRoots);
    let managed = sql::table(schema, TableId::ManagedRoots);
    let picks = format!("{}.picks", sql::quoted(schema));
    let part = sql::as_texts("r.", &sql::facts(TableId::JobRoots));
    let now = match clock {
        Clock::System => CLOCK.trim_end_matches("::text").to_owned(),
        manual @ Clock::Manual(_) => manual.now().0.to_string(),
    };
    format!(
        "WITH now AS MATERIALIZED (SELECT {now} AS at), \
         due AS MATERIALIZED ( \
             SELECT r.id FROM {roots} r, now \
             WHERE r.state IN ('pending', 'retry_wait') \
             AND (r.next_attempt_at IS NULL OR r.next_attempt_at <= now.at) \
             AND (r.root_id IS NULL OR EXISTS \
                 (SELECT FROM {managed} m WHERE m.id = r.root_id AND m.host = $2)) \
             AND NOT r.id = ANY ($5) \
             AND NOT EXISTS (SELECT FROM {picks} p WHERE p.job_root_id = r.id \
                 AND p.until > now.at AND p.instance <> $1) \
             ORDER BY r.created_at, r.root_id IS NOT NULL, r.id LIMIT $3 \
             FOR UPDATE OF r SKIP LOCKED), \
         given_back AS ( \
             DELETE FROM {picks} p USING now WHERE p.job_root_id IN ( \
                 SELECT o.job_root_id FROM {picks} o, now \
                 WHERE (o.instance = $1 AND o.job_root_id = ANY ($5) OR o.until <= now.at) \
                 AND NOT EXISTS (SELECT FROM due WHERE due.id = o.job_root_id) \
                 FOR UPDATE OF o SKIP LOCKED)), \
         picked AS ( \
             INSERT INTO {picks} AS p (job_root_id, instance, until) \
             SELECT due.id, $1, now.at + $4 FROM due, now \
             ON CONFLICT (job_root_id) DO UPDATE \
             SET instance = excluded.instance, until = excluded.until \
             WHERE p.until <= excluded.until - $4 OR p.instance = excluded.instance \
             RETURNING p.job_root_id) \
         SELECT CASE WHEN k.job_root_id IS NOT NULL THEN {part} END \
         FROM due JOIN {roots} r ON r.id = due.id \
         LEFT JOIN picked k ON k.job_root_id = due.id"
    )
}
