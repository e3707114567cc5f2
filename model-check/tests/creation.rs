//! Model 1 at CI's size: exhaustive, with every circumstance seen.

use freehold_kernel::Trigger;
use freehold_model_check::creation::Creation;
use freehold_model_check::{Limits, explore};

fn run(model: &Creation) -> freehold_model_check::Explored {
    let explored = explore(model, Limits::default());
    println!(
        "{:?}: {} states, {} edges, depth {}, {:.1} s, {} key bytes a state, exhaustive: {}",
        model.trigger,
        explored.states,
        explored.edges,
        explored.depth,
        explored.took.as_secs_f64(),
        explored.key_bytes / explored.states.max(1),
        explored.exhaustive
    );
    println!("  seen: {:?}", explored.seen);
    if let Some((says, trace)) = &explored.broken {
        println!("  broken: {says}\n    {}", trace.join("\n    "));
    }
    if let Some(trace) = &explored.stuck {
        println!("  stuck:\n    {}", trace.join("\n    "));
    }
    explored
}

/// The size of CI, or with `FREEHOLD_LONG=1` the long one.
fn sized(ci: Creation, long: Creation) -> Creation {
    if std::env::var_os("FREEHOLD_LONG").is_some() { long } else { ci }
}

#[test]
fn archive_against_creation() {
    let long = Creation { borrower: false, ..Creation::new(Trigger::Archive) };
    assert!(run(&sized(Creation { writer: false, ..long.clone() }, long)).passed());
}

#[test]
fn archive_against_creation_and_a_borrower() {
    let long = Creation { writer: false, slow: 0, ..Creation::new(Trigger::Archive) };
    assert!(run(&sized(Creation { crashes: 0, ..long.clone() }, long)).passed());
}

#[test]
fn delete_against_creation_and_a_borrower() {
    let long = Creation { writer: false, slow: 0, ..Creation::new(Trigger::Delete) };
    assert!(run(&sized(Creation { crashes: 0, ..long.clone() }, long)).passed());
}

#[test]
fn reset_against_creation() {
    let long = Creation { borrower: false, ..Creation::new(Trigger::EnvironmentReset) };
    assert!(run(&sized(Creation { slow: 0, ..long.clone() }, long)).passed());
}
