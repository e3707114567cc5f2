//! `freehold work`: the worker on a store, in a process of its own.

use std::path::Path;

use serde_json::json;

use crate::failure::Failure;
use crate::ground::host;
use crate::show::Show;

/// The most ticks of one run: a job that can make no progress waits for its next time anyway.
const TICKS_MAX: u32 = 10_000;

pub(crate) fn run(store: &Path, ticks: Option<u32>, out: &mut Show) -> Result<(), Failure> {
    let host = host(store)?;
    let mut total = freehold_store::Ticked::default();
    let mut done = 0;
    for _ in 0..ticks.unwrap_or(TICKS_MAX) {
        let ticked = host.tick()?;
        done += 1;
        let idle = ticked.claimed == 0 && ticked.recovered == 0 && ticked.reconciled == 0;
        total.claimed += ticked.claimed;
        total.settled += ticked.settled;
        total.removals += ticked.removals;
        total.recovered += ticked.recovered;
        total.reconciled += ticked.reconciled;
        for trouble in ticked.troubles {
            out.say(&format!("not now: {trouble}"));
            total.troubles.push(trouble);
        }
        if idle {
            break;
        }
    }
    let words = format!(
        "{} claimed, {} resources settled, {} removals, {} recovered, {} troubles",
        total.claimed,
        total.settled,
        total.removals,
        total.recovered,
        total.troubles.len()
    );
    out.result(
        &json!({
            "ok": true,
            "ticks": done,
            "claimed": total.claimed,
            "settled": total.settled,
            "removals": total.removals,
            "recovered": total.recovered,
            "reconciled": total.reconciled,
            "troubles": total.troubles,
        }),
        &words,
    );
    Ok(())
}
