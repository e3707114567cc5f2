//! `freehold work`: the worker on a store, in a process of its own.

use freehold_git::GitWorkspaces;
use freehold_runtime::LocalRuntimes;
use freehold_store::{Host, OnThisThread};
use serde_json::json;

use crate::failure::Failure;
use crate::machine::machine_name;
use crate::place::StorePlace;
use crate::show::Show;

/// The most ticks of one run: a job that can make no progress waits for its next time anyway.
const TICKS_MAX: u32 = 10_000;

pub(crate) fn run(
    place: &StorePlace,
    ticks: Option<u32>,
    rebuildable: &[String],
    out: &mut Show,
) -> Result<(), Failure> {
    let patterns: Vec<&str> = rebuildable.iter().map(String::as_str).collect();
    let (store, git) = (place.open()?, GitWorkspaces::new().with_rebuildable(&patterns));
    // Processes of this machine are stopped; containers and the like are left to the host that
    // can (C-17).
    let host =
        Host::start(store, git, OnThisThread, Box::new(LocalRuntimes::new()), &machine_name())?;
    let mut total = freehold_store::Ticked::default();
    let mut done = 0;
    for _ in 0..ticks.unwrap_or(TICKS_MAX) {
        let ticked = host.tick()?;
        done += 1;
        let did = ticked.claimed + ticked.recovered + ticked.reconciled + ticked.purged;
        total.claimed += ticked.claimed;
        total.settled += ticked.settled;
        total.removals += ticked.removals;
        total.recovered += ticked.recovered;
        total.reconciled += ticked.reconciled;
        total.purged += ticked.purged;
        // The same parts are found by every tick.
        total.left = ticked.left;
        for trouble in ticked.troubles {
            out.say(&format!("not now: {trouble}"));
            total.troubles.push(trouble);
        }
        if did == 0 {
            break;
        }
    }
    let words = format!(
        "{} claimed, {} resources settled, {} removals, {} recovered, {} left to other machines, \
         {} troubles",
        total.claimed,
        total.settled,
        total.removals,
        total.recovered,
        total.left,
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
            "purged": total.purged,
            "left_to_others": total.left,
            "troubles": total.troubles,
        }),
        &words,
    );
    Ok(())
}
