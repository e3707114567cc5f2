//! What git's own looks do not tell, and a removal must not take for saved (W-33..W-35).

use std::fs::{self, FileTimes};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use freehold_kernel::{RemovalStep, Unsaved};

use super::fixture::{Fixture, STEPS, git};
use crate::manifest;
use crate::tree;

fn salvaged(f: &Fixture, place: &freehold_store::workspaces::Place) -> Option<Unsaved> {
    f.step(place, "r1", RemovalStep::Salvaged).unwrap().salvage.map(|made| made.contents)
}

/// Git compares whole seconds. What was written again in the second in which it was staged, at the
/// same size, is clean to it as soon as the index is younger than that second.
#[test]
fn what_git_calls_clean_by_the_second_is_salvaged() {
    let f = Fixture::new();
    let place = f.made("w");
    let file = place.path.join("a.txt");
    let second = |path: &Path| fs::metadata(path).map(|m| (m.mtime(), m.ctime())).unwrap();
    for round in 0u32.. {
        assert!(round < 50, "two writes are never in one second");
        fs::write(&file, format!("{round:08} was committed")).unwrap();
        let before = second(&file);
        git(&place.path, &["add", "--all"]);
        git(&place.path, &["commit", "--quiet", "-m", "first"]);
        fs::write(&file, format!("{round:08} was not kept!")).unwrap();
        if second(&file) == before {
            break;
        }
    }
    // As if staging all of a large tree had taken longer than this second.
    let index = fs::File::open(f.admin(&place).join("index")).unwrap();
    let later = SystemTime::now() + Duration::from_secs(2);
    index.set_times(FileTimes::new().set_modified(later)).unwrap();
    assert_eq!(f.inspect(&place).evidence.unsaved, Unsaved::NONE, "git sees it: shows nothing");
    assert_eq!(salvaged(&f, &place), Some(Unsaved::TRACKED));
}

/// A repository can lose objects, and git tells nothing of it as long as the index has what it
/// asks for. Then the worktree is the last that has them.
#[test]
fn what_the_repository_has_lost_does_not_go_with_the_worktree() {
    for (lost, kept) in [("HEAD:src", None), ("HEAD:a.txt", Some(Unsaved::TRACKED))] {
        let f = Fixture::new();
        let place = f.made("w");
        let object = git(&f.main, &["rev-parse", lost]);
        let file = f.common().join("objects").join(&object[..2]).join(&object[2..]);
        fs::remove_file(file).unwrap();
        assert_eq!(f.inspect(&place).evidence.unsaved, Unsaved::NONE, "{lost}: shows nothing");
        match kept {
            // Nothing can be kept that could be told whole.
            None => {
                f.step(&place, "r1", RemovalStep::Salvaged).unwrap_err();
            }
            Some(kind) => assert_eq!(salvaged(&f, &place), Some(kind), "{lost}"),
        }
    }
}

#[test]
fn a_link_that_leads_to_a_dash_is_no_change() {
    let f = Fixture::new();
    let place = f.made("w");
    std::os::unix::fs::symlink("-", place.path.join("link")).unwrap();
    for step in STEPS {
        f.step(&place, "r1", step).unwrap();
    }
    f.assert_gone(&place);
}

/// What changed a moment before the manifest was written is compared by its content: times may be
/// as coarse as two seconds, and the same after the next change.
#[test]
fn what_was_just_written_is_compared_by_its_bytes() {
    let f = Fixture::new();
    let place = f.made("w");
    let file = place.path.join("a.txt");
    fs::write(&file, "one").unwrap();
    let seen = tree::read(&place.path);
    manifest::write(&place, "r1", &seen, &[], "").unwrap();
    // The times that were seen, and other bytes: as on a file system without fractions.
    fs::write(&file, "two").unwrap();
    let manifest = manifest::read(&place.root, "r1").unwrap().unwrap();
    let differences = manifest.differences(&place.path, &seen);
    assert_eq!(differences.len(), 1, "{differences:?}");
}

#[test]
fn scratches_are_not_cleared_through_a_link() {
    let f = Fixture::new();
    let elsewhere = f.dir.path().join("elsewhere");
    fs::create_dir_all(elsewhere.join("folder")).unwrap();
    fs::write(elsewhere.join("folder/file"), "somebody's").unwrap();
    let scratches = crate::root::book(&f.root).join("salvage-scratch");
    fs::create_dir_all(scratches.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &scratches).unwrap();
    crate::salvage::reclaim(&f.root).unwrap();
    assert!(elsewhere.join("folder/file").exists());
    // Their own links are unlinked, and not followed either.
    fs::remove_file(&scratches).unwrap();
    fs::create_dir_all(scratches.join("of-a-dead-one")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, scratches.join("of-a-dead-one/link")).unwrap();
    crate::salvage::reclaim(&f.root).unwrap();
    assert!(elsewhere.join("folder/file").exists());
    assert_eq!(fs::read_dir(&scratches).unwrap().count(), 0);
}

/// Git takes a folder of refs that it cannot read for an empty one, and collects all that they
/// hold.
#[test]
fn what_git_does_not_list_is_not_collected() {
    let f = Fixture::new();
    let place = f.made("w");
    fs::write(place.path.join("new"), "untracked\n").unwrap();
    assert_eq!(salvaged(&f, &place), Some(Unsaved::UNTRACKED));
    let store = crate::salvage::list(&f.root).unwrap()[0].store.clone();
    fs::write(store.join("refs/salvage/strange"), "not a ref\n").unwrap();
    let refused = crate::salvage::reclaim(&f.root).unwrap_err();
    assert!(refused.detail.contains("does not list"), "{refused}");
    fs::remove_file(store.join("refs/salvage/strange")).unwrap();
    crate::salvage::reclaim(&f.root).unwrap();
}

/// What a killed restore had half written is nobody's work to the look and to the salvage alike;
/// a file that is merely called like it is somebody's.
#[test]
fn the_look_and_the_salvage_agree_on_half_of_a_restore() {
    let f = Fixture::new();
    let place = f.made("w");
    fs::write(place.path.join(".freehold-restoring-12"), "half").unwrap();
    assert_eq!(f.inspect(&place).evidence.unsaved, Unsaved::NONE);
    assert_eq!(salvaged(&f, &place), None);
    fs::write(place.path.join(".freehold-restoring-notes"), "somebody's").unwrap();
    assert_eq!(f.inspect(&place).evidence.unsaved, Unsaved::UNTRACKED);
    assert_eq!(salvaged(&f, &place), Some(Unsaved::UNTRACKED));
}
