//! The promised precedence: within every command, guards are tested in the order of the `Guard`
//! enum, in many random worlds, with every guard failing and going on.

#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use freehold_kernel::{Guard, GuardSet, Output, decide_with};
use freehold_testkit::driver::Driver;
use freehold_testkit::driver::random::{memory, number, run, runner, sequence};
use proptest::test_runner::TestCaseError;

/// No guard is in the set; each that is asked for is written down.
struct Recorder(RefCell<Vec<Guard>>);

impl GuardSet for Recorder {
    const PARTIAL: bool = true;
    fn has(&self, _: Guard) -> bool {
        false
    }
    fn seen(&self, guard: Guard) {
        self.0.borrow_mut().push(guard);
    }
}

/// Which guards were tested before which, by command.
type Orders = BTreeMap<&'static str, BTreeSet<(Guard, Guard)>>;

fn observed() -> Orders {
    let orders: Rc<RefCell<Orders>> = Rc::default();
    let result = runner(number("FREEHOLD_CASES", 128)).run(&sequence(), |ops| {
        let failed = |f: freehold_testkit::driver::Failure| TestCaseError::fail(f.to_string());
        let mut driver = Driver::new(memory()).map_err(failed)?;
        let orders = orders.clone();
        driver.watch = Some(Box::new(move |world, envelope| {
            let seen = Recorder(RefCell::default());
            let mut view = world.clone();
            let mut with_none = *envelope;
            with_none.request = None;
            let _ = decide_with(&mut view, &with_none, &mut Output::default(), &seen);
            // Only first tests count: what is asked again for the next row is a repetition.
            let mut first = Vec::new();
            for guard in seen.0.into_inner() {
                if !first.contains(&guard) {
                    first.push(guard);
                }
            }
            let mut orders = orders.borrow_mut();
            let known = orders.entry(envelope.command.code()).or_default();
            for (i, earlier) in first.iter().enumerate() {
                known.extend(first[i + 1..].iter().map(|later| (*earlier, *later)));
            }
        }));
        run(&mut driver, &ops).map_err(failed)
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    orders.take()
}

#[test]
fn guards_are_tested_in_the_order_of_their_list() {
    let orders = observed();
    let mut report = String::new();
    for (command, pairs) in &orders {
        for (earlier, later) in pairs.iter().filter(|(a, b)| a > b) {
            let against = orders.iter().find(|(_, p)| p.contains(&(*later, *earlier)));
            let conflict = against.map_or(String::new(), |(c, _)| format!(" (but not in {c})"));
            let (earlier, later) = (earlier.code(), later.code());
            report.push_str(&format!("{command}: {earlier} before {later}{conflict}\n"));
        }
    }
    println!("{} commands seen", orders.len());
    assert!(report.is_empty(), "tested against the order of the list:\n{report}");
}

/// Guards × commands, as the random worlds show them: `docs/tables/guards-by-command.md`.
/// `FREEHOLD_WRITE_TABLES=1` writes it anew. A guard that these worlds never ask for in a command
/// is not in its row; the table of all guards is `refusals.md`.
#[test]
fn the_table_of_guards_by_command_is_fresh() {
    let mut text = String::from(
        "# Guards by command\n\nWhich guards each command tests, in their order, beside \
         `permission` and `request_content`, which come first everywhere. Observed with every \
         guard taken out, in the random worlds of the test suite.\n\n\
         | command | guards |\n| --- | --- |\n",
    );
    for (command, pairs) in observed() {
        let guards: BTreeSet<Guard> = pairs
            .into_iter()
            .flat_map(|(a, b)| [a, b])
            .filter(|g| !matches!(g, Guard::Permission | Guard::RequestContent))
            .collect();
        let codes: Vec<String> = guards.iter().map(|g| format!("`{}`", g.code())).collect();
        text.push_str(&format!("| `{command}` | {} |\n", codes.join(", ")));
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/tables/guards-by-command.md");
    if std::env::var_os("FREEHOLD_WRITE_TABLES").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let usual = std::env::var_os("FREEHOLD_CASES").is_none();
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(!usual || stored == text, "guards-by-command.md is stale; write it anew and look");
}
