//! What a removal that was stopped within a step had kept (W-37, P-29).

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use freehold_kernel::{Reason, RemovalStep, Unsaved};
use freehold_store::workspaces::{InTrash, Workspaces};

use super::fixture::{Fixture, STEPS, git};
use crate::remove::Removal;
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

/// W-35: what was committed between the permit and the rename is in the entry. A branch that went
/// meanwhile comes back with it, not where the permit saw it.
#[test]
fn a_branch_comes_back_from_trash_with_what_was_committed_after_the_permit() {
    let f = Fixture::new();
    let place = f.made("w");
    let permitted = git(&place.path, &["rev-parse", "HEAD"]);
    fs::write(place.path.join("late"), "late").unwrap();
    git(&place.path, &["add", "late"]);
    git(&place.path, &["commit", "--quiet", "-m", "late"]);
    let late = git(&place.path, &["rev-parse", "HEAD"]);
    let lock = f.spaces.lock(&place).unwrap();
    let removal = Removal {
        git: &f.spaces.holding(&lock, &place).unwrap(),
        lock: &lock,
        place: &place,
        id: "r1",
        limit: 1 << 30,
        may_delete_branch: false,
        undoes: false,
        may_discard: Unsaved::NONE,
        keep_trash: true,
        wait: Duration::from_secs(60),
    };
    let mut salvage = None;
    for step in &STEPS[..5] {
        let done = removal.take(*step, &mut || true).unwrap();
        salvage = done.salvage.map(|made| made.ref_name).or(salvage);
    }
    git(&f.main, &["branch", "--delete", "--force", &place.branch]);
    git(&f.main, &["reflog", "expire", "--expire=now", "--all"]);
    git(&f.main, &["gc", "--quiet", "--prune=now"]);
    let kept = InTrash { removal: "r1".to_owned(), salvage, head: permitted };
    f.spaces.restore_trash(&lock, &place, &kept, &mut || true).unwrap();
    assert_eq!(git(&f.main, &["rev-parse", &place.branch]), late);
    assert_eq!(git(&place.path, &["status", "--porcelain"]), "");
}
