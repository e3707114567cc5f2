//! W-31, W-33: what an inspection sees, and that it changes nothing.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use freehold_kernel::{Found, Reason, Unsaved};

use super::dirty::{CASES, with_submodule};
use super::fixture::{Fixture, git, repository};

#[test]
fn every_kind_of_unsaved_work_is_seen_as_what_it_is() {
    for case in CASES {
        let f = Fixture::new();
        let place = f.made("w");
        (case.dirty)(&f, &place);
        let found = f.inspect(&place);
        let mut details = found.details;
        // What this machine does not let be seen is told in every answer.
        details.retain(|line| !line.contains("could not be looked into"));
        let name = case.name;
        assert_eq!(found.evidence.found, Found::Here, "{name}: {details:?}");
        assert_eq!(found.evidence.unsaved, case.kinds, "{name}: {details:?}");
        assert_eq!(found.evidence.obstacle, Reason::None, "{name}: {details:?}");
        let said = case.says.is_empty() || details.iter().any(|line| line.contains(case.says));
        assert!(said, "{name}: {details:?}");
        if case.kinds == Unsaved::NONE {
            assert!(details.is_empty(), "{name}: {details:?}");
        }
    }
}

#[test]
fn an_inspection_changes_nothing() {
    let f = Fixture::new();
    let place = f.made("w");
    // A file whose times differ from the index: a plain status would write the index anew.
    let text = fs::read(place.path.join("a.txt")).unwrap();
    fs::write(place.path.join("a.txt"), text).unwrap();
    let admin = f.admin(&place);
    let before = (listing(&place.path), listing(&admin));
    assert_eq!(f.inspect(&place).evidence.unsaved, Unsaved::NONE);
    assert_eq!((listing(&place.path), listing(&admin)), before);
}

fn listing(dir: &Path) -> Vec<String> {
    let tree = crate::tree::read(dir);
    tree.entries
        .iter()
        .map(|e| format!("{:?} {} {} {}", e.path, e.size, e.mtime, e.ctime))
        .collect()
}

#[test]
fn a_broken_index_is_unknown_and_not_clean() {
    let f = Fixture::new();
    let place = f.made("w");
    fs::write(f.admin(&place).join("index"), "no index").unwrap();
    let found = f.inspect(&place);
    assert!(found.evidence.unsaved.covers(Unsaved::UNKNOWN), "{:?}", found.details);
}

#[test]
fn a_persons_lock_is_told_in_their_words() {
    let f = Fixture::new();
    let place = f.made("w");
    git(&f.main, &["worktree", "unlock", place.path.to_str().unwrap()]);
    let found = f.inspect(&place);
    assert_eq!(found.evidence.obstacle, Reason::None);
    let args = ["worktree", "lock", "--reason", "on my stick", place.path.to_str().unwrap()];
    git(&f.main, &args);
    let found = f.inspect(&place);
    assert_eq!(found.evidence.obstacle, Reason::LockedByPerson);
    assert!(found.details.iter().any(|l| l.contains("on my stick")), "{:?}", found.details);
    // The stamp's file says that it is still ours.
    assert_eq!(found.evidence.found, Found::Here);
}

#[test]
fn a_process_inside_is_listed_and_lives_on() {
    let f = Fixture::new();
    let place = f.made("w");
    let mut agent = Command::new("cat")
        .current_dir(place.path.join("src"))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let found = f.inspect(&place);
    assert_eq!(found.evidence.obstacle, Reason::InUse);
    let pid = format!("process {}", agent.id());
    assert!(found.details.iter().any(|l| l.contains(&pid)), "{:?}", found.details);
    drop(agent.stdin.take());
    assert!(agent.wait().unwrap().success());
    assert_eq!(f.inspect(&place).evidence.obstacle, Reason::None);
}

#[test]
fn another_repository_inside_is_an_obstacle() {
    for inside in ["tool", "target/dependency"] {
        let f = Fixture::new();
        let place = f.made("w");
        repository(&place.path.join(inside));
        let found = f.inspect(&place);
        assert_eq!(found.evidence.obstacle, Reason::Nested, "{:?}", found.details);
    }
    // A worktree of the same repository, too, and one inside a submodule.
    let f = Fixture::new();
    let place = f.made("w");
    git(&place.path, &["worktree", "add", "--quiet", "--detach", "inner"]);
    assert_eq!(f.inspect(&place).evidence.obstacle, Reason::Nested);
    let other = f.made("other");
    with_submodule(&f, &other);
    assert_eq!(f.inspect(&other).evidence.obstacle, Reason::None);
    repository(&other.path.join("sub/target/x"));
    assert_eq!(f.inspect(&other).evidence.obstacle, Reason::Nested);
}

/// F22, F27: a directory that is gone under a root that is there.
#[test]
fn a_missing_directory_is_missing_unless_a_person_locked_it() {
    let f = Fixture::new();
    let place = f.made("w");
    let admin = f.admin(&place);
    fs::remove_dir_all(&place.path).unwrap();
    let found = f.inspect(&place);
    assert_eq!((found.evidence.found, found.evidence.obstacle), (Found::Missing, Reason::None));
    assert_eq!(found.evidence.unsaved, Unsaved::NONE, "{:?}", found.details);
    fs::write(admin.join("locked"), "initializing").unwrap();
    assert_eq!(f.inspect(&place).evidence.obstacle, Reason::None);
    fs::write(admin.join("locked"), "on my stick").unwrap();
    let found = f.inspect(&place);
    assert_eq!(found.evidence.obstacle, Reason::LockedByPerson);
    // The same word on a registration that is not ours is somebody's.
    fs::write(admin.join("locked"), "initializing").unwrap();
    fs::remove_file(admin.join(crate::identity::STAMP)).unwrap();
    assert_eq!(f.inspect(&place).evidence.obstacle, Reason::LockedByPerson);
}

#[test]
fn what_was_staged_in_a_missing_directory_is_still_told() {
    let f = Fixture::new();
    let place = f.made("w");
    fs::write(place.path.join("new"), "x").unwrap();
    git(&place.path, &["add", "new"]);
    fs::remove_dir_all(&place.path).unwrap();
    let found = f.inspect(&place);
    assert_eq!(found.evidence.found, Found::Missing);
    assert_eq!(found.evidence.unsaved, Unsaved::TRACKED, "{:?}", found.details);
}
