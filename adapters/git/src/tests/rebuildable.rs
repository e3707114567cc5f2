//! Ignored files that are declared rebuildable (W-33): by the host, by the repository, and by
//! nobody else.

use std::fs;
use std::path::Path;

use freehold_kernel::Unsaved;
use freehold_store::workspaces::Place;

use super::fixture::{Fixture, git};
use crate::GitWorkspaces;

fn write(place: &Place, name: &str) {
    let path = place.path.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{name}\n")).unwrap();
}

fn ignored(f: &Fixture, place: &Place) -> Option<Vec<String>> {
    let found = f.inspect(place);
    let unsaved = found.evidence.unsaved;
    assert!(!unsaved.covers(Unsaved::UNKNOWN), "{:?}", found.details);
    unsaved.covers(Unsaved::IGNORED).then_some(found.details)
}

#[test]
fn nothing_is_rebuildable_unless_it_is_declared() {
    let mut f = Fixture::new();
    let place = f.made("w");
    write(&place, "target/debug/a");
    assert!(ignored(&f, &place).is_some());
    git(&f.main, &["config", "--add", "freehold.rebuildable", "target/"]);
    assert_eq!(ignored(&f, &place), None);
    git(&f.main, &["config", "--unset-all", "freehold.rebuildable"]);
    assert!(ignored(&f, &place).is_some());
    f.spaces = GitWorkspaces::new().with_rebuildable(&["target/"]);
    assert_eq!(ignored(&f, &place), None);
    // Both add up, and what only one of them names is not lost by the other.
    write(&place, ".env");
    let says = ignored(&f, &place).unwrap().concat();
    assert!(says.contains(".env") && !says.contains("target"), "{says}");
    git(&f.main, &["config", "--add", "freehold.rebuildable", ".env"]);
    assert_eq!(ignored(&f, &place), None);
}

#[test]
fn whoever_works_in_the_worktree_declares_nothing() {
    let f = Fixture::new();
    let place = f.made("w");
    write(&place, ".env");
    git(&f.main, &["config", "extensions.worktreeConfig", "true"]);
    git(&place.path, &["config", "--worktree", "freehold.rebuildable", "*"]);
    assert!(ignored(&f, &place).is_some(), "its own configuration was believed");
}

#[test]
fn a_pattern_reaches_ignored_files_only_and_no_more_than_it_says() {
    let f = Fixture::new();
    let place = f.made("w");
    git(&f.main, &["config", "--add", "freehold.rebuildable", "*.o"]);
    git(&f.main, &["config", "--add", "freehold.rebuildable", "!precious.o"]);
    write(&place, "target/a.o");
    assert_eq!(ignored(&f, &place), None);
    // One file in the folder that is not: the folder is told.
    write(&place, "target/notes");
    assert!(ignored(&f, &place).is_some());
    fs::remove_file(place.path.join("target/notes")).unwrap();
    write(&place, "target/precious.o");
    assert!(ignored(&f, &place).is_some(), "an exception is an exception");
    fs::remove_file(place.path.join("target/precious.o")).unwrap();
    // Untracked and not ignored, and tracked: work, whatever its name.
    write(&place, "loose.o");
    let found = f.inspect(&place).evidence.unsaved;
    assert!(found.covers(Unsaved::UNTRACKED));
    git(&place.path, &["add", "loose.o"]);
    assert!(f.inspect(&place).evidence.unsaved.covers(Unsaved::TRACKED));
}

/// Git lists an ignored folder even if nothing is in it.
#[test]
fn an_empty_ignored_folder_is_no_work() {
    let f = Fixture::new();
    let place = f.made("w");
    fs::create_dir_all(place.path.join("target/deep")).unwrap();
    assert_eq!(ignored(&f, &place), None);
    f.remove(&place, "r");
    f.assert_gone(&place);
}

/// What is declared is not kept, what is not is, and a restore is exact but for the first.
#[test]
fn salvage_leaves_out_what_is_declared_and_nothing_else() {
    let mut f = Fixture::new();
    f.spaces = GitWorkspaces::new().with_rebuildable(&["target/*", "!target/keep"]);
    let place = f.made("w");
    write(&place, "target/big");
    write(&place, "target/deep/er");
    write(&place, "target/keep");
    write(&place, ".env");
    f.remove(&place, "r");
    f.assert_gone(&place);
    let entry = &crate::salvage::list(&f.root).unwrap()[0];
    let lines = crate::salvage::show(&f.root, &entry.ref_name).unwrap().concat();
    for (name, there) in [("target/big", false), ("target/deep", false), ("target/keep", true)] {
        assert_eq!(lines.contains(&format!("\"{name}")), there, "{name}: {lines}");
    }
    let again = Place { branch_created: false, ..f.place("again") };
    let again = Place { branch: place.branch, ..again };
    f.try_make(&again, &f.plan(&again)).unwrap();
    let lock = freehold_store::Workspaces::lock(&f.spaces, &again).unwrap();
    let name = entry.ref_name.as_str();
    let back = freehold_store::Workspaces::restore(&f.spaces, &lock, &again, name).unwrap();
    assert_eq!(back.notes, Vec::<String>::new());
    let there = |name: &str| Path::exists(&again.path.join(name));
    assert!(there(".env") && there("target/keep"));
    assert!(!there("target/big") && !there("target/deep"));
}
