//! What a removal that was stopped within a step had kept (W-37, P-29).

use std::fs;
use std::process::{Command, Stdio};

use freehold_kernel::{Reason, RemovalStep, Unsaved};

use super::fixture::{Fixture, STEPS};
use crate::root::trash_path;

/// P-29: a comparison that was killed, or stopped by a process, after it salvaged. The next try
/// finds the trash as it was salvaged, and yet reports what only its ref names.
#[test]
fn what_a_comparison_salvaged_before_it_was_stopped_is_reported_by_the_next() {
    let f = Fixture::new();
    let place = f.made("w");
    assert_eq!(f.step(&place, "r1", RemovalStep::Salvaged).unwrap().salvage, None);
    fs::write(place.path.join("late"), "late").unwrap();
    f.step(&place, "r1", RemovalStep::Renamed).unwrap();
    let made = f.step(&place, "r1", RemovalStep::Compared).unwrap().salvage.unwrap();
    assert!(made.contents.covers(Unsaved::UNTRACKED), "{made:?}");
    // The answer was lost with its executor; then a process keeps the next one waiting.
    let trash = trash_path(&place, "r1").unwrap();
    let held = Command::new("cat").current_dir(&trash).stdin(Stdio::piped()).spawn().unwrap();
    assert_eq!(f.step(&place, "r1", RemovalStep::Compared).unwrap_err().reason, Reason::InUse);
    assert!(held.wait_with_output().unwrap().status.success());
    assert_eq!(f.step(&place, "r1", RemovalStep::Compared).unwrap().salvage, Some(made));
    // Of a removal that kept nothing, nothing is said.
    let other = f.made("v");
    for step in &STEPS[..2] {
        f.step(&other, "r2", *step).unwrap();
    }
    assert_eq!(f.step(&other, "r2", RemovalStep::Compared).unwrap().salvage, None);
}

/// The same for a salvage whose record was lost, and whose work a person has taken away since: its
/// ref is not left without a row.
#[test]
fn a_salvage_that_was_not_recorded_is_reported_by_the_comparison() {
    let f = Fixture::new();
    let place = f.made("w");
    fs::write(place.path.join("new"), "new").unwrap();
    let made = f.step(&place, "r1", RemovalStep::Salvaged).unwrap().salvage.unwrap();
    fs::remove_file(place.path.join("new")).unwrap();
    assert_eq!(f.step(&place, "r1", RemovalStep::Salvaged).unwrap().salvage, None);
    f.step(&place, "r1", RemovalStep::Renamed).unwrap();
    assert_eq!(f.step(&place, "r1", RemovalStep::Compared).unwrap().salvage, Some(made));
}
