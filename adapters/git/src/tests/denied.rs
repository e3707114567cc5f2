//! W-33, W-38: what permissions deny. Root, whom they deny nothing, runs these as nobody.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use freehold_kernel::{Reason, RemovalStep, Unsaved};
use freehold_store::workspaces::{Place, Workspaces};

use super::apart::as_a_person;
use super::fixture::{Fixture, STEPS, whole};

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Takes the steps until one is refused for want of permission; which, and what it named.
fn denied(f: &Fixture, place: &Place) -> (RemovalStep, std::path::PathBuf, String) {
    for step in STEPS {
        if let Err(e) = f.step(place, "removal", step) {
            assert_eq!(e.reason, Reason::Permission, "{}: {e}", step.code());
            assert!(e.help.contains("access") || e.help.contains("disk"), "{e}");
            return (step, e.path, e.detail);
        }
    }
    panic!("nothing was refused");
}

#[test]
fn a_parent_that_is_read_only_is_named_and_nothing_is_half_done() {
    if !as_a_person("tests::denied::a_parent_that_is_read_only_is_named_and_nothing_is_half_done") {
        return;
    }
    let f = Fixture::new();
    let place = f.made("parent/w");
    fs::write(place.path.join("new"), "untracked\n").unwrap();
    let parent = place.path.parent().unwrap().to_path_buf();
    chmod(&parent, 0o555);
    let before = (whole(&place.path), whole(&f.main));
    let (step, path, _) = denied(&f, &place);
    assert_eq!(step, RemovalStep::Renamed);
    assert_eq!(path, place.path);
    assert_eq!((whole(&place.path), whole(&f.main)), before);
    assert_eq!(fs::metadata(&parent).unwrap().permissions().mode() & 0o777, 0o555, "widened");
    chmod(&parent, 0o755);
    f.remove(&place, "removal");
    f.assert_gone(&place);
    assert_eq!(crate::salvage::list(&f.root).unwrap().len(), 1);
}

#[test]
fn a_read_only_file_in_a_read_only_folder_goes_after_one_repair() {
    if !as_a_person("tests::denied::a_read_only_file_in_a_read_only_folder_goes_after_one_repair") {
        return;
    }
    let f = Fixture::new();
    let place = f.made("w");
    let outside = f.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let folder = place.path.join("src/closed");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("file"), "read only\n").unwrap();
    std::os::unix::fs::symlink(&outside, folder.join("link")).unwrap();
    chmod(&folder.join("file"), 0o444);
    chmod(&folder, 0o555);
    chmod(&outside, 0o555);
    f.remove(&place, "removal");
    f.assert_gone(&place);
    let mode = fs::metadata(&outside).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o555, "what a link names was repaired");
}

#[test]
fn a_file_or_folder_that_cannot_be_read_is_refused_before_anything_goes() {
    if !as_a_person(
        "tests::denied::a_file_or_folder_that_cannot_be_read_is_refused_before_anything_goes",
    ) {
        return;
    }
    for folder in [false, true] {
        let f = Fixture::new();
        let place = f.made("w");
        let closed = place.path.join("closed");
        if folder {
            fs::create_dir(&closed).unwrap();
            fs::write(closed.join("in"), "nobody can tell\n").unwrap();
        } else {
            fs::write(&closed, "nobody can tell\n").unwrap();
        }
        let mode = fs::metadata(&closed).unwrap().permissions().mode();
        let before = (whole(&place.path), whole(&f.main));
        chmod(&closed, 0o000);
        let seen = f.inspect(&place).evidence.unsaved;
        assert!(!seen.is_none(), "taken for clean");
        assert!(!folder || seen.covers(Unsaved::UNKNOWN), "{seen:?}");
        let (step, path, detail) = denied(&f, &place);
        assert_eq!(step, RemovalStep::Salvaged);
        assert!(path == closed || detail.contains("closed"), "{} {detail}", path.display());
        assert_eq!(fs::metadata(&closed).unwrap().permissions().mode() & 0o777, 0, "widened");
        assert_eq!(crate::salvage::list(&f.root).unwrap(), []);
        chmod(&closed, mode);
        assert_eq!((whole(&place.path), whole(&f.main)), before);
        f.remove(&place, "removal");
        f.assert_gone(&place);
        assert_eq!(crate::salvage::list(&f.root).unwrap().len(), 1);
    }
}

#[test]
fn a_git_directory_that_is_read_only_stops_and_goes_on_later() {
    if !as_a_person("tests::denied::a_git_directory_that_is_read_only_stops_and_goes_on_later") {
        return;
    }
    let f = Fixture::new();
    let place = f.made("w");
    fs::write(place.path.join("new"), "untracked\n").unwrap();
    let git_dir = f.common();
    let worktrees = git_dir.join("worktrees");
    let freehold = git_dir.join("freehold");
    for folder in [&git_dir, &worktrees, &freehold] {
        chmod(folder, 0o555);
    }
    let before = whole(&git_dir);
    let (step, path, _) = denied(&f, &place);
    assert_eq!(step, RemovalStep::Unregistered);
    assert!(path.starts_with(&git_dir), "{}", path.display());
    assert_eq!(whole(&git_dir), before);
    for folder in [&git_dir, &worktrees, &freehold] {
        chmod(folder, 0o755);
    }
    // Taken up where it stopped, or taken back.
    f.step(&place, "removal", RemovalStep::Returned).unwrap();
    assert_eq!(fs::read_to_string(place.path.join("new")).unwrap(), "untracked\n");
    f.spaces.verify(&place).unwrap();
    f.remove(&place, "removal");
    f.assert_gone(&place);
}

#[test]
fn a_making_in_a_read_only_root_or_repository_leaves_nothing() {
    if !as_a_person("tests::denied::a_making_in_a_read_only_root_or_repository_leaves_nothing") {
        return;
    }
    let f = Fixture::new();
    let place = f.place("parent/w");
    let plan = f.plan(&place);
    chmod(&f.root.path, 0o555);
    let refused = f.try_make(&place, &plan).unwrap_err();
    assert_eq!(refused.reason, Reason::Permission, "{refused}");
    assert!(refused.path.starts_with(&f.root.path), "{refused}");
    assert!(!place.path.exists());
    chmod(&f.root.path, 0o755);
    let git_dir = f.common();
    let worktrees = git_dir.join("worktrees");
    fs::create_dir_all(&worktrees).unwrap();
    chmod(&worktrees, 0o555);
    let refused = f.try_make(&place, &plan).unwrap_err();
    assert_eq!(refused.reason, Reason::Permission, "{refused}");
    assert!(!place.path.exists());
    assert_eq!(whole(&worktrees), Vec::<String>::new());
    chmod(&worktrees, 0o755);
    f.try_make(&place, &plan).unwrap();
    f.spaces.verify(&place).unwrap();
}
