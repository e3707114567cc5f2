//! `freehold work`: the worker on a store, in a process of its own.

use freehold_git::GitWorkspaces;
use freehold_postgres::PostgresStore;
use freehold_runtime::LocalRuntimes;
use freehold_store::{Drive, Host, OnThisThread, Store};
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
    let git = GitWorkspaces::new().with_rebuildable(&patterns);
    match place {
        StorePlace::File(file) => work(crate::ground::open(file)?, git, OnThisThread, ticks, out),
        StorePlace::Server { config, schema } => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            let runtime = builder.worker_threads(1).enable_all().build().map_err(|e| {
                Failure::Surroundings(format!("the connections' thread cannot be started: {e}"))
            })?;
            let options = freehold_postgres::Options {
                schema: schema.clone(),
                create: false,
                connections: 2,
                // Nobody waits for the news of a worker that is about to end.
                notify: false,
                runtime: Some(runtime.handle().clone()),
                ..freehold_postgres::Options::default()
            };
            let store = OnThisThread.wait(PostgresStore::connect((**config).clone(), options))?;
            work(store, git, OnThisThread, ticks, out)
        }
    }
}

fn work<S: Store, D: Drive>(
    store: S,
    git: GitWorkspaces,
    drive: D,
    ticks: Option<u32>,
    out: &mut Show,
) -> Result<(), Failure> {
    // Processes of this machine are stopped; containers and the like are left to the host that
    // can (C-17).
    let host = Host::start(store, git, drive, Box::new(LocalRuntimes::new()), &machine_name())?;
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
