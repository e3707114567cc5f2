//! Takes each rule guard out of the kernel and looks for a broken property in the models that
//! exist: `cargo run --release -p freehold-model-check --example guards [STATES] [GUARD…]`.
//! Prints, per guard, the first broken property with the length of its shortest trace. A guard that
//! is not caught within the limit is named as such: its world is not modelled yet, or larger.

use std::time::Duration;

use freehold_kernel::{Guard, GuardKind, Trigger};
use freehold_model_check::creation::Creation;
use freehold_model_check::{Limits, explore};

fn main() {
    let mut words = std::env::args().skip(1);
    let states = words.next().and_then(|w| w.parse().ok()).unwrap_or(60_000);
    let named: Vec<String> = words.collect();
    let limits = Limits { states, depth: u32::MAX, time: Duration::from_secs(60) };
    let base = |trigger| Creation { slow: 0, ..Creation::new(trigger) };
    let models = [
        Creation { borrower: false, writer: false, slow: 1, ..base(Trigger::Archive) },
        Creation { writer: false, crashes: 0, ..base(Trigger::Delete) },
        Creation { writer: false, crashes: 0, ..base(Trigger::Archive) },
        Creation { borrower: false, ..base(Trigger::EnvironmentReset) },
    ];
    let (mut killed, mut alive) = (0, 0);
    for guard in Guard::ALL {
        let wanted = if named.is_empty() {
            guard.kind() == GuardKind::Rule
        } else {
            named.iter().any(|n| n == guard.code())
        };
        if !wanted {
            continue;
        }
        let found = models.iter().find_map(|model| {
            let mutant = Creation { without: vec![*guard], ..model.clone() };
            explore(&mutant, limits).broken.map(|(says, trace)| (model.trigger, says, trace))
        });
        match found {
            Some((trigger, says, trace)) => {
                killed += 1;
                println!("{}: {says} ({} steps, {})", guard.code(), trace.len(), trigger.code());
                if !named.is_empty() {
                    println!("  {}", trace.join("\n  "));
                }
            }
            None => {
                alive += 1;
                println!("{}: not caught", guard.code());
            }
        }
    }
    println!("{killed} caught, {alive} not caught within {states} states a model");
}
