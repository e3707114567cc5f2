//! F11, F13, F14, F18, F29: paths and identities that are not what the row says.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use freehold_kernel::{Found, Kind, PathId, Reason, RemovalStep, RootId, WorktreeId};
use freehold_store::names::id_of;
use freehold_store::workspaces::{Place, RootPlace, Workspaces};

use super::fixture::{Fixture, STEPS, git, repository};

/// Every step and every look refuses, and nothing below the base changes.
fn assert_refused(f: &Fixture, place: &Place, reason: Reason, what: &str) {
    let before = snapshot(f);
    let found = f.inspect(place);
    assert_eq!(found.evidence.obstacle, reason, "{what}: {:?}", found.details);
    assert_ne!(found.evidence.found, Found::Here, "{what}");
    assert_ne!(found.evidence.found, Found::Missing, "{what}");
    assert_eq!(f.spaces.verify(place).unwrap_err().reason, reason, "{what}");
    for step in STEPS {
        if step == RemovalStep::BranchSettled {
            continue;
        }
        if step == RemovalStep::Purged {
            // It reaches the trash alone, whatever stands at the path; there is none.
            assert!(f.step(place, "r", step).map_or(true, |done| !done.found_something));
            continue;
        }
        let refused = f.step(place, "r", step).expect_err(what);
        assert_eq!(refused.reason, reason, "{what}: {refused}");
    }
    assert_eq!(snapshot(f), before, "{what}");
}

fn snapshot(f: &Fixture) -> Vec<String> {
    crate::tree::read(f.dir.path())
        .entries
        .iter()
        .filter(|e| !e.path.to_string_lossy().contains(".freehold/"))
        .filter(|e| !e.path.to_string_lossy().contains("/freehold"))
        .map(|e| format!("{:?} {} {}", e.path, e.size, e.mode))
        .collect()
}

#[test]
fn tampered_paths_are_refused_before_anything_is_touched() {
    let f = Fixture::new();
    let place = f.made("w");
    let root = f.root.path.clone();
    let sibling = root.parent().unwrap().join("root-x/w");
    fs::create_dir_all(&sibling).unwrap();
    let paths = [
        f.main.clone(),
        root.clone(),
        root.parent().unwrap().to_path_buf(),
        "/".into(),
        "".into(),
        "w".into(),
        "./root/w".into(),
        root.join("../main"),
        root.join("w/../../main"),
        sibling,
        root.join(".freehold/store-1"),
        root.join(".freehold"),
    ];
    let mut said = Vec::new();
    for path in paths {
        let tampered = Place { path: path.clone(), ..place.clone() };
        let what = path.display().to_string();
        let found = f.inspect(&tampered);
        assert_eq!(found.evidence.found, Found::Mismatch, "{what}");
        said.push(found.details[0].clone());
        let refused = f.spaces.lock(&tampered).expect_err(&what);
        assert_eq!(refused.reason, Reason::OutsideRoot, "{what}");
        assert_refused_without_lock(&f, &tampered, &what);
    }
    for sentence in [
        "is empty",
        "is relative",
        "is the root itself",
        "lies above its root",
        "is not in its root",
        "contains ..",
        "inside Freehold's own folder",
    ] {
        assert!(said.iter().any(|s| s.contains(sentence)), "{sentence}: {said:?}");
    }
    f.spaces.verify(&place).unwrap();
}

fn assert_refused_without_lock(f: &Fixture, place: &Place, what: &str) {
    assert_eq!(f.spaces.verify(place).unwrap_err().reason, Reason::OutsideRoot, "{what}");
    f.step(place, "r", RemovalStep::Renamed).expect_err(what);
}

/// F14: even where git itself lists the path as a worktree.
#[test]
fn a_worktree_that_is_not_ours_is_refused() {
    let f = Fixture::new();
    let place = f.place("w");
    git(
        &f.main,
        &["worktree", "add", "--quiet", "-b", &place.branch, place.path.to_str().unwrap()],
    );
    assert_refused(&f, &place, Reason::IdentityMismatch, "a person's worktree");
    assert!(place.path.join("a.txt").exists());
}

/// F13: the main checkout, wherever it lies.
#[test]
fn the_main_checkout_is_refused() {
    let f = Fixture::new();
    let main = f.root.path.join("main");
    repository(&main);
    let place = Place { path: main.clone(), repository: main.clone(), ..f.place("w") };
    assert_refused(&f, &place, Reason::NotManaged, "the main checkout");
    let other = Place { path: main, ..f.place("w") };
    assert_refused(&f, &other, Reason::IdentityMismatch, "another main checkout");
}

/// F11: one directory under two spellings is one; a link on the way is refused.
#[test]
fn spellings_are_one_path_and_links_are_none() {
    let f = Fixture::new();
    let place = f.made("group/w");
    for spelling in ["group/w/", "group//w", "group/./w", "./group/w/."] {
        let path = Path::new(&format!("{}/{spelling}", f.root.path.display())).to_path_buf();
        f.spaces.verify(&Place { path, ..place.clone() }).expect(spelling);
    }
    symlink(f.root.path.join("group"), f.root.path.join("link")).unwrap();
    let by_link = Place { path: f.root.path.join("link/w"), ..place.clone() };
    assert_refused(&f, &by_link, Reason::OutsideRoot, "a link on the way");
    symlink(&place.path, f.root.path.join("end")).unwrap();
    let at_link = Place { path: f.root.path.join("end"), ..place.clone() };
    assert_refused(&f, &at_link, Reason::OutsideRoot, "a link at the end");
    // Names that differ only in letter case are two places.
    let upper = Place { path: f.root.path.join("group/W"), ..place.clone() };
    assert_eq!(f.spaces.verify(&upper).unwrap_err().reason, Reason::IdentityMismatch);
    // A root that is reached through a link is resolved when it is made.
    let alias = f.dir.path().join("alias");
    symlink(&f.root.path, &alias).unwrap();
    let aliased = RootPlace { path: alias, ..f.root.clone() };
    assert_eq!(f.spaces.make_root(&aliased).unwrap().path, f.root.path);
    assert_eq!(f.spaces.check_root(&aliased).unwrap_err().reason, Reason::RootUnavailable);
}

/// F18: git would answer from the parent checkout.
#[test]
fn an_emptied_folder_inside_the_main_repository_is_a_mismatch() {
    let f = Fixture::new();
    let root = RootPlace { path: f.main.join(".wt"), ..f.root.clone() };
    let root = f.spaces.make_root(&root).unwrap();
    let place = Place { path: root.path.join("x"), root, ..f.place("x") };
    f.try_make(&place, &f.plan(&place)).unwrap();
    for entry in fs::read_dir(&place.path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap()
        } else {
            fs::remove_file(path).unwrap()
        }
    }
    assert_eq!(git(&place.path, &["rev-parse", "--show-toplevel"]), f.main.to_str().unwrap());
    let head = fs::read(f.main.join(".git/HEAD")).unwrap();
    assert_refused(&f, &place, Reason::IdentityMismatch, "an emptied folder");
    let refused = f.try_make(&place, &f.plan(&place)).unwrap_err();
    assert_eq!(refused.reason, Reason::Io, "{refused}");
    assert_eq!(fs::read(f.main.join(".git/HEAD")).unwrap(), head);
    assert_eq!(git(&f.main, &["status", "--porcelain", "--untracked-files=no"]), "");
}

/// F29: the same path, the same branch, made again by somebody else.
#[test]
fn another_generation_at_the_same_path_is_refused() {
    let f = Fixture::new();
    let place = f.made("w");
    let path = place.path.to_str().unwrap();
    git(&f.main, &["worktree", "remove", "--force", "--force", path]);
    git(&f.main, &["worktree", "add", "--quiet", path, &place.branch]);
    assert_refused(&f, &place, Reason::IdentityMismatch, "made again by hand");
    let second = Place { stamp: "freehold store-1 root token-2".to_owned(), ..place.clone() };
    git(&f.main, &["worktree", "lock", "--reason", &second.stamp, path]);
    f.spaces.verify(&second).unwrap();
    assert_refused(&f, &place, Reason::IdentityMismatch, "made again by Freehold");
}

#[test]
fn links_that_do_not_name_each_other_are_refused() {
    let f = Fixture::new();
    let (a, b) = (f.made("a"), f.made("b"));
    // A copy of a worktree: its link names the registration, which names the original.
    let copy = f.root.path.join("copy");
    fs::create_dir(&copy).unwrap();
    fs::copy(a.path.join(".git"), copy.join(".git")).unwrap();
    let copied = Place { path: copy, ..a.clone() };
    assert_refused(&f, &copied, Reason::IdentityMismatch, "a copy");
    fs::copy(b.path.join(".git"), a.path.join(".git")).unwrap();
    assert_refused(&f, &a, Reason::IdentityMismatch, "another's link");
    // Another repository's worktree.
    let other = f.dir.path().join("other");
    repository(&other);
    let foreign = Place { repository: fs::canonicalize(other).unwrap(), ..b.clone() };
    assert_refused(&f, &foreign, Reason::IdentityMismatch, "another repository");
}

#[test]
fn a_root_that_is_not_the_recorded_one_allows_no_conclusion() {
    let f = Fixture::new();
    let place = f.made("w");
    let away = f.dir.path().join("away");
    fs::rename(&f.root.path, &away).unwrap();
    assert_eq!(f.inspect(&place).evidence.obstacle, Reason::RootUnavailable);
    assert_eq!(f.inspect(&place).evidence.found, Found::Unknown);
    // An empty folder in its place: the disk is not mounted.
    fs::create_dir(&f.root.path).unwrap();
    assert_eq!(f.inspect(&place).evidence.found, Found::Unknown);
    for step in STEPS {
        let refused = f.step(&place, "r", step).unwrap_err();
        assert_eq!(refused.reason, Reason::RootUnavailable);
    }
    fs::remove_dir(&f.root.path).unwrap();
    fs::rename(&away, &f.root.path).unwrap();
    assert_eq!(f.inspect(&place).evidence.found, Found::Here);
    // Another store's root.
    let other = RootPlace { marker: "marker-2".to_owned(), ..f.root.clone() };
    assert_eq!(f.spaces.make_root(&other).unwrap_err().reason, Reason::RootUnavailable);
    // Two stores beside one root have a marker each.
    let second = RootPlace { store: "store/2".to_owned(), ..other };
    f.spaces.make_root(&second).unwrap();
    f.spaces.check_root(&f.root).unwrap();
}

/// W-30: a permission reaches its own root, path and identity.
#[test]
fn a_permission_for_another_worktree_is_refused() {
    let f = Fixture::new();
    let place = f.made("w");
    let path = PathId(id_of(Kind::PathId, place.path.to_str().unwrap()));
    let identity = place.worktree_id();
    let check = |root, path, identity| crate::check_permission(&place, root, path, identity);
    check(place.root.id, path, Some(identity)).unwrap();
    for refused in [
        check(RootId(8), path, Some(identity)),
        check(place.root.id, PathId(path.0 ^ 1), Some(identity)),
        check(place.root.id, path, Some(WorktreeId(identity.0 ^ 1))),
        // Without an identity it reaches no directory.
        check(place.root.id, path, None),
    ] {
        assert_eq!(refused.unwrap_err().reason, Reason::IdentityMismatch);
    }
    fs::remove_dir_all(&place.path).unwrap();
    check(place.root.id, path, None).unwrap();
}
