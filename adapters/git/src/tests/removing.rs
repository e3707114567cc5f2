//! W-35..W-39, W-42: the steps of a removal, each found done, half done or in the way.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use freehold_kernel::{Found, Reason, RemovalStep};
use freehold_store::workspaces::{BranchVerdict, Place, Workspaces};

use super::fixture::{Fixture, STEPS, git, repository};

fn trash(f: &Fixture, place: &Place, id: &str) -> PathBuf {
    f.step(place, id, RemovalStep::Salvaged).unwrap();
    f.step(place, id, RemovalStep::Renamed).unwrap().trash_path.unwrap()
}

#[test]
fn a_worktree_goes_and_nothing_else() {
    let f = Fixture::new();
    let (place, other) = (f.made("group/w"), f.made("group/other"));
    // Nothing is unsaved, so nothing is kept.
    assert_eq!(f.step(&place, "r1", RemovalStep::Salvaged).unwrap().salvage, None);
    f.remove(&place, "r1");
    f.assert_gone(&place);
    // The branch stays by default, and its name is free again.
    assert_eq!(git(&f.main, &["rev-parse", &place.branch]), place.start_commit);
    git(&f.main, &["branch", "-D", &place.branch]);
    assert_eq!(f.inspect(&other).evidence.found, Found::Here);
    assert_eq!(crate::leftovers(&f.root), [f.root.path.join("group")]);
    f.remove(&other, "r2");
    // W-42: the folder above goes after its last worktree.
    assert_eq!(crate::leftovers(&f.root), Vec::<PathBuf>::new());
    assert!(f.root.path.exists());
}

#[test]
fn every_step_can_be_repeated_and_taken_up_after_a_crash() {
    for twice in 0..STEPS.len() {
        let f = Fixture::new();
        let place = f.made("w");
        for (n, step) in STEPS.into_iter().enumerate() {
            let first = f.step(&place, "r1", step).unwrap();
            assert!(first.found_something, "{}", step.code());
            if n == twice {
                // Done and not recorded: the same step again.
                let again = f.step(&place, "r1", step);
                let again = again.unwrap_or_else(|e| panic!("{} again: {e}", step.code()));
                assert_eq!(again.trash_path, first.trash_path, "{}", step.code());
                assert_eq!(again.admin_path, first.admin_path, "{}", step.code());
            }
        }
        f.assert_gone(&place);
    }
}

#[test]
fn an_inspection_finds_what_was_renamed_and_not_recorded() {
    for name in ["w", "a/w", "a/b/w", "a/b/c/w", "a/b/c/d/e/w"] {
        let f = Fixture::new();
        let place = f.made(name);
        let trash = trash(&f, &place, "r1");
        let depth = |path: &Path| path.strip_prefix(&f.root.path).unwrap().components().count();
        assert_eq!(depth(&trash), depth(&place.path));
        assert_eq!(f.inspect(&place).evidence.found, Found::InTrash, "{name}");
        let done = f.step(&place, "r1", RemovalStep::Returned).unwrap();
        assert!(done.found_something);
        assert_eq!(f.inspect(&place).evidence.found, Found::Here, "{name}");
        assert_eq!(crate::leftovers(&f.root).len(), 1);
        f.remove(&place, "r2");
        f.assert_gone(&place);
        assert_eq!(crate::leftovers(&f.root).len(), 0, "{name}");
    }
}

#[test]
fn relative_links_keep_their_meaning_in_the_trash() {
    let f = Fixture::new();
    let place = f.made("a/b/c/d/w");
    symlink("../../../../../../main/a.txt", place.path.join("up")).unwrap();
    let trash = trash(&f, &place, "r1");
    assert_eq!(fs::read(trash.join("up")).unwrap(), b"one\n");
    for step in &STEPS[2..] {
        f.step(&place, "r1", *step).unwrap();
    }
    f.assert_gone(&place);
}

#[test]
fn a_removal_can_be_taken_back_until_its_trash_is_opened() {
    let f = Fixture::new();
    let place = f.made("w");
    fs::write(place.path.join("new"), "x").unwrap();
    for step in &STEPS[..5] {
        f.step(&place, "r1", *step).unwrap();
    }
    assert!(crate::list_registrations(&f.main).unwrap().len() == 1);
    f.step(&place, "r1", RemovalStep::Returned).unwrap();
    assert_eq!(f.inspect(&place).evidence.found, Found::Here);
    assert_eq!(git(&place.path, &["status", "--porcelain"]), "?? new");
    // Put back already: the same answer again.
    assert!(f.step(&place, "r1", RemovalStep::Returned).unwrap().found_something);
    // Once the purge has begun there is no way back.
    let trash = trash(&f, &place, "r2");
    crate::manifest::begin_purge(&f.root, "r2").unwrap();
    assert_eq!(f.inspect(&place).evidence.found, Found::Missing);
    let refused = f.step(&place, "r2", RemovalStep::Returned).unwrap_err();
    assert_eq!(refused.reason, Reason::IdentityMismatch);
    assert!(trash.exists());
    for step in &STEPS[2..] {
        f.step(&place, "r2", *step).unwrap();
    }
    f.assert_gone(&place);
}

#[test]
fn nothing_is_put_back_over_something_new() {
    let f = Fixture::new();
    let place = f.made("w");
    trash(&f, &place, "r1");
    fs::create_dir(&place.path).unwrap();
    let refused = f.step(&place, "r1", RemovalStep::Returned).unwrap_err();
    assert_eq!(refused.reason, Reason::IdentityMismatch);
    assert!(fs::read_dir(&place.path).unwrap().next().is_none());
}

/// F16: links inside the tree are unlinked, never entered.
#[test]
fn links_inside_the_worktree_go_and_their_targets_stay() {
    let f = Fixture::new();
    let place = f.made("w");
    let outside = f.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "1").unwrap();
    fs::create_dir(f.main.join("node_modules")).unwrap();
    fs::write(f.main.join("node_modules/kept"), "1").unwrap();
    symlink(&outside, place.path.join("out")).unwrap();
    symlink(f.main.join("node_modules"), place.path.join("node_modules")).unwrap();
    symlink("..", place.path.join("src/up")).unwrap();
    symlink("nowhere", place.path.join("dangling")).unwrap();
    f.remove(&place, "r1");
    f.assert_gone(&place);
    assert!(outside.join("kept").exists() && f.main.join("node_modules/kept").exists());
}

/// F19: removing one worktree leaves a neighbour alone whose disk is not mounted.
#[test]
fn an_offline_neighbour_survives() {
    for missing in [false, true] {
        let f = Fixture::new();
        let a = f.made("a");
        let b = f.dir.path().join("b");
        git(&f.main, &["worktree", "add", "--quiet", "-b", "b", b.to_str().unwrap()]);
        fs::write(b.join("staged"), "x").unwrap();
        git(&b, &["add", "staged"]);
        fs::rename(&b, f.dir.path().join("offline")).unwrap();
        if missing {
            fs::remove_dir_all(&a.path).unwrap();
        }
        f.remove(&a, "r1");
        f.assert_gone(&a);
        fs::rename(f.dir.path().join("offline"), &b).unwrap();
        assert_eq!(git(&b, &["status", "--porcelain"]), "A  staged");
    }
}

/// F22: missing and locked with git's own word, in a registration that is ours.
#[test]
fn an_interrupted_making_of_our_own_is_cleared() {
    let f = Fixture::new();
    let place = f.made("w");
    let admin = f.admin(&place);
    fs::remove_dir_all(&place.path).unwrap();
    fs::write(admin.join("locked"), "initializing").unwrap();
    f.remove(&place, "r1");
    f.assert_gone(&place);
    git(&f.main, &["branch", "-D", &place.branch]);
}

#[test]
fn a_persons_lock_stops_every_step() {
    for missing in [false, true] {
        let f = Fixture::new();
        let place = f.made("w");
        let admin = f.admin(&place);
        fs::write(admin.join("locked"), "on my stick").unwrap();
        if missing {
            fs::remove_dir_all(&place.path).unwrap();
        }
        for step in &STEPS[..2] {
            let refused = f.step(&place, "r1", *step).unwrap_err();
            assert_eq!(refused.reason, Reason::LockedByPerson);
            assert!(refused.detail.contains("on my stick"), "{refused}");
        }
        assert!(f.step(&place, "r1", RemovalStep::Unregistered).is_err());
        assert!(admin.exists());
        assert_eq!(place.path.exists(), !missing);
    }
    // Locked after the rename: the registration stays.
    let f = Fixture::new();
    let place = f.made("w");
    let admin = f.admin(&place);
    trash(&f, &place, "r1");
    fs::write(admin.join("locked"), "wait").unwrap();
    let refused = f.step(&place, "r1", RemovalStep::Unregistered).unwrap_err();
    assert_eq!(refused.reason, Reason::LockedByPerson);
    assert!(admin.exists());
}

/// F23: a process goes on writing at the path after the directory was moved.
#[test]
fn what_appears_at_the_path_is_kept_aside_and_the_removal_goes_on() {
    let f = Fixture::new();
    let place = f.made("w");
    trash(&f, &place, "r1");
    fs::create_dir_all(place.path.join("log")).unwrap();
    fs::write(place.path.join("log/daemon"), "late").unwrap();
    assert_eq!(f.inspect(&place).evidence.found, Found::InTrash);
    for step in &STEPS[1..] {
        f.step(&place, "r1", *step).unwrap();
    }
    f.assert_gone(&place);
    let aside = crate::root::book(&f.root).join("aside/r1/log/daemon");
    assert_eq!(fs::read(aside).unwrap(), b"late");
}

#[test]
fn a_new_worktree_at_the_path_is_refused_and_the_trash_stays() {
    let f = Fixture::new();
    let place = f.made("w");
    let trash = trash(&f, &place, "r1");
    repository(&place.path);
    assert_eq!(f.inspect(&place).evidence.found, Found::Mismatch);
    for step in [RemovalStep::Renamed, RemovalStep::Compared] {
        let refused = f.step(&place, "r1", step).unwrap_err();
        assert_eq!(refused.reason, Reason::IdentityMismatch);
    }
    assert!(trash.join("a.txt").exists() && place.path.join("a.txt").exists());
}

#[test]
fn a_process_inside_stops_salvage_rename_and_purge() {
    let f = Fixture::new();
    let place = f.made("w");
    let stand =
        |at: &Path| Command::new("cat").current_dir(at).stdin(Stdio::piped()).spawn().unwrap();
    let leave = |mut child: std::process::Child| {
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success(), "nobody else's process is ended");
    };
    let child = stand(&place.path);
    for step in &STEPS[..2] {
        assert_eq!(f.step(&place, "r1", *step).unwrap_err().reason, Reason::InUse);
    }
    assert!(place.path.join("a.txt").exists());
    leave(child);
    let trash = trash(&f, &place, "r1");
    for step in &STEPS[2..5] {
        f.step(&place, "r1", *step).unwrap();
    }
    let child = stand(&trash.join("src"));
    assert_eq!(f.step(&place, "r1", RemovalStep::Purged).unwrap_err().reason, Reason::InUse);
    assert!(trash.join("a.txt").exists());
    leave(child);
    f.step(&place, "r1", RemovalStep::Purged).unwrap();
    f.assert_gone(&place);
}

/// W-35: a change between salvage and rename is noticed, put back and taken in.
#[test]
fn a_change_after_salvage_is_noticed() {
    type Change = fn(&Path);
    let changes: &[(&str, Change)] = &[
        ("a new file", |p| fs::write(p.join("late"), "x").unwrap()),
        ("a changed file", |p| fs::write(p.join("a.txt"), "late").unwrap()),
        ("a file that went", |p| fs::remove_file(p.join("a.txt")).unwrap()),
        ("the same size and another content", |p| fs::write(p.join("new"), "2").unwrap()),
        ("the mode of a file that was salvaged", |p| {
            fs::set_permissions(p.join("new"), fs::Permissions::from_mode(0o755)).unwrap();
        }),
        ("a link that leads elsewhere", |p| {
            fs::remove_file(p.join("link")).unwrap();
            symlink("b", p.join("link")).unwrap();
        }),
    ];
    for (what, change) in changes {
        let f = Fixture::new();
        let place = f.made("w");
        fs::write(place.path.join("new"), "1").unwrap();
        symlink("a", place.path.join("link")).unwrap();
        let trash = trash(&f, &place, "r1");
        change(&trash);
        let manifest = crate::manifest::read(&f.root, "r1").unwrap().unwrap();
        let found = manifest.differences(&trash, &crate::tree::read(&trash));
        assert_eq!(found.len(), 1, "{what}: {found:?}");
        // It is salvaged again and then is what was salvaged.
        f.step(&place, "r1", RemovalStep::Compared).unwrap();
        assert!(trash.exists() && !place.path.exists(), "{what}");
        let manifest = crate::manifest::read(&f.root, "r1").unwrap().unwrap();
        let found = manifest.differences(&trash, &crate::tree::read(&trash));
        assert_eq!(found, Vec::<String>::new(), "{what}");
    }
}

#[test]
fn times_alone_are_no_change_of_what_was_salvaged() {
    let f = Fixture::new();
    let place = f.made("w");
    fs::write(place.path.join("new"), "1").unwrap();
    let trash = trash(&f, &place, "r1");
    fs::write(trash.join("new"), "1").unwrap();
    let manifest = crate::manifest::read(&f.root, "r1").unwrap().unwrap();
    assert!(manifest.differences(&trash, &crate::tree::read(&trash)).is_empty());
}

#[test]
fn the_branch_goes_only_when_it_is_ours_and_reached() {
    let settle = |f: &Fixture, place: &Place, may: bool| {
        f.step_with(place, "r1", RemovalStep::BranchSettled, may).unwrap().branch.unwrap()
    };
    let kept = |verdict: BranchVerdict, why: &str| match verdict {
        BranchVerdict::Kept(text) => assert!(text.contains(why), "{text}"),
        other => panic!("{other:?}, expected kept: {why}"),
    };
    let moved = |f: &Fixture, place: &Place| {
        for step in &STEPS[..4] {
            f.step(place, "r1", *step).unwrap();
        }
    };
    // Still the start commit.
    let f = Fixture::new();
    let place = f.made("w");
    kept(settle(&f, &place, true), "checked out in");
    moved(&f, &place);
    kept(settle(&f, &place, false), "policy");
    kept(settle(&f, &Place { branch_created: false, ..place.clone() }, true), "did not make it");
    let tip = place.start_commit.clone();
    assert_eq!(settle(&f, &place, true), BranchVerdict::Removed(tip));
    assert_eq!(settle(&f, &place, true), BranchVerdict::Absent);
    // Commits that nothing else reaches (F06), then reached by another branch.
    let f = Fixture::new();
    let place = f.made("w");
    git(&place.path, &["commit", "--allow-empty", "--quiet", "-m", "work"]);
    moved(&f, &place);
    kept(settle(&f, &place, true), "unmerged: 1 commit(s)");
    git(&f.main, &["symbolic-ref", "refs/heads/alias", &format!("refs/heads/{}", place.branch)]);
    kept(settle(&f, &place, true), "unmerged");
    let tip = git(&f.main, &["rev-parse", &place.branch]);
    git(&f.main, &["update-ref", "refs/remotes/origin/x", &tip]);
    assert_eq!(settle(&f, &place, true), BranchVerdict::Removed(tip));
    // In the middle of a rebase elsewhere.
    let f = Fixture::new();
    let place = f.made("w");
    moved(&f, &place);
    fs::create_dir(f.main.join(".git/rebase-merge")).unwrap();
    let name = format!("refs/heads/{}\n", place.branch);
    fs::write(f.main.join(".git/rebase-merge/head-name"), name).unwrap();
    kept(settle(&f, &place, true), "a rebase");
    // A symbolic ref in its place.
    let f = Fixture::new();
    let place = f.made("w");
    moved(&f, &place);
    git(&f.main, &["symbolic-ref", &format!("refs/heads/{}", place.branch), "refs/heads/main"]);
    kept(settle(&f, &place, true), "another name");
    git(&f.main, &["rev-parse", "main"]);
}

/// F26: everything was removed by hand; each step says that there was nothing.
#[test]
fn what_is_gone_already_is_success() {
    let f = Fixture::new();
    let place = f.made("w");
    let path = place.path.to_str().unwrap();
    git(&f.main, &["worktree", "remove", "--force", "--force", path]);
    git(&f.main, &["branch", "-D", &place.branch]);
    assert_eq!(f.inspect(&place).evidence.found, Found::Missing);
    for step in STEPS {
        let done = f.step(&place, "r1", step).unwrap();
        assert!(!done.found_something, "{}", step.code());
    }
    f.assert_gone(&place);
}

#[test]
fn steps_out_of_order_are_refused() {
    let f = Fixture::new();
    let place = f.made("w");
    for step in [RemovalStep::Unregistered, RemovalStep::Purged] {
        let refused = f.step(&place, "r1", step).unwrap_err();
        assert_eq!(refused.reason, Reason::Contested, "{}", step.code());
    }
    assert_eq!(f.inspect(&place).evidence.found, Found::Here);
}

/// A compensation of what git left half made (W-4, W-12).
#[test]
fn a_half_made_worktree_is_removed() {
    let f = Fixture::new();
    let place = f.place("w");
    let admin = f.common().join("worktrees/w");
    fs::create_dir_all(&admin).unwrap();
    fs::write(admin.join("locked"), &place.stamp).unwrap();
    fs::create_dir(&place.path).unwrap();
    f.remove(&place, "r1");
    f.assert_gone(&place);
}

/// F27: the directory went by hand; what its registration still has is salvaged, then it goes.
#[test]
fn work_in_the_registration_of_a_missing_directory_is_salvaged() {
    let f = Fixture::new();
    let place = f.made("w");
    fs::write(place.path.join("new"), "staged").unwrap();
    git(&place.path, &["add", "new"]);
    git(&place.path, &["checkout", "--quiet", "--detach"]);
    git(&place.path, &["commit", "--allow-empty", "--quiet", "-m", "only here"]);
    let head = git(&place.path, &["rev-parse", "HEAD"]);
    fs::remove_dir_all(&place.path).unwrap();
    let seen = f.inspect(&place);
    assert_eq!(seen.evidence.found, Found::Missing);
    assert_eq!(seen.head, head);
    let made = f.step(&place, "r1", RemovalStep::Salvaged).unwrap().salvage.unwrap();
    assert_eq!(made.base, head);
    assert!(made.contents.covers(seen.evidence.unsaved), "{made:?} {seen:?}");
    for step in &STEPS[1..] {
        f.step(&place, "r1", *step).unwrap();
    }
    f.assert_gone(&place);
    assert_eq!(crate::leftovers(&f.root), Vec::<PathBuf>::new());
    // A worktree on the same branch takes it back.
    let again = Place { stamp: "freehold store-1 root token-2".to_owned(), ..place.clone() };
    f.try_make(&again, &f.plan(&again)).unwrap();
    let lock = f.spaces.lock(&again).unwrap();
    f.spaces.restore(&lock, &again, &made.ref_name).unwrap();
    assert_eq!(git(&again.path, &["show", ":new"]), "staged");
}

/// A whole life with real salvage: every kind that a person would miss comes back.
#[test]
fn what_a_removal_salvaged_is_restored_into_a_new_worktree() {
    let f = Fixture::new();
    let place = f.made("w");
    fs::write(place.path.join("a.txt"), "edited").unwrap();
    fs::write(place.path.join("new"), "untracked").unwrap();
    fs::write(place.path.join(".env"), "ignored").unwrap();
    let seen = f.inspect(&place).evidence.unsaved;
    let made = f.step(&place, "r1", RemovalStep::Salvaged).unwrap().salvage.unwrap();
    assert_eq!(made.contents, seen);
    for step in &STEPS[1..] {
        f.step(&place, "r1", *step).unwrap();
    }
    f.assert_gone(&place);
    let again = Place { stamp: "freehold store-1 root token-2".to_owned(), ..place.clone() };
    f.try_make(&again, &f.plan(&again)).unwrap();
    let lock = f.spaces.lock(&again).unwrap();
    let back = f.spaces.restore(&lock, &again, &made.ref_name).unwrap();
    assert_eq!(back.contents, seen);
    for (name, text) in [("a.txt", "edited"), ("new", "untracked"), (".env", "ignored")] {
        assert_eq!(fs::read_to_string(again.path.join(name)).unwrap(), text);
    }
}
