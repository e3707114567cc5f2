//! Every system of CI's scope: exhaustive, nothing broken, nothing stuck, every circumstance met,
//! and as many states as last time.

use freehold_model_check::models::catalogue::{Scope, systems};
use freehold_model_check::{Limits, explore};

/// Explores one; says what is wrong with it.
fn wrong_with(entry: &freehold_model_check::models::catalogue::Entry) -> Option<String> {
    let system = (entry.build)();
    let explored = explore(&system, Limits::default());
    println!(
        "{}: {} states, {} edges, depth {}, {:.1} s, {} worlds, {} bytes a state",
        entry.name,
        explored.states,
        explored.edges,
        explored.depth,
        explored.took.as_secs_f64(),
        system.worlds(),
        explored.bytes / explored.states.max(1),
    );
    if let Some(found) = explored.broken.first() {
        return Some(format!("{}: {} {}", entry.name, found.broken.property, found.trace));
    }
    if let Some(trace) = &explored.stuck {
        return Some(format!("{}: stuck {trace}", entry.name));
    }
    if let Some(cut) = explored.cut {
        return Some(format!("{}: cut by {}", entry.name, cut.says()));
    }
    if !explored.unseen().is_empty() {
        return Some(format!("{}: never seen {:?}", entry.name, explored.unseen()));
    }
    (explored.states != entry.states)
        .then(|| format!("{}: {} states, not {}", entry.name, explored.states, entry.states))
}

fn run(scope: Scope, named: Option<&str>) {
    let wrong: Vec<String> = systems()
        .into_iter()
        .filter(|e| e.scope == scope && named.is_none_or(|n| e.name.starts_with(n)))
        .filter_map(wrong_with)
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `FREEHOLD_MODEL=creation` explores only those whose names begin so; `FREEHOLD_LONG=1` the long
/// ones.
#[test]
fn every_system_is_as_promised() {
    let long = std::env::var_os("FREEHOLD_LONG").is_some();
    let named = std::env::var("FREEHOLD_MODEL").ok();
    run(if long { Scope::Long } else { Scope::Ci }, named.as_deref());
}
