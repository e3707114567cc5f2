//! W-1..W-3, W-10..W-12: making, and finishing what was half made.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use freehold_kernel::{Found, Reason, RemovalStep, Unsaved};
use freehold_store::workspaces::{Plan, WorkspaceError, Workspaces};

use super::fixture::{Fixture, STEPS, git, whole};
use crate::GitWorkspaces;
use crate::identity::{STAMP, is_half_made};
use crate::lock::lock_registry;
use crate::make::{make_branch, make_registration, put_aside_half_made, write_stamp};
use crate::process::Git;

const WAIT: Duration = Duration::from_secs(60);

fn assert_made(f: &Fixture, place: &freehold_store::workspaces::Place) {
    f.spaces.verify(place).unwrap();
    assert_eq!(fs::read(place.path.join("a.txt")).unwrap(), b"one\n");
    assert_eq!(git(&place.path, &["branch", "--show-current"]), place.branch);
    assert_eq!(git(&place.path, &["status", "--porcelain", "--ignored"]), "");
    let found = f.inspect(place);
    assert_eq!(found.evidence.found, Found::Here, "{:?}", found.details);
    assert_eq!(found.evidence.unsaved, Unsaved::NONE, "{:?}", found.details);
    assert_eq!(found.evidence.obstacle, Reason::None, "{:?}", found.details);
    assert_eq!(found.head, place.start_commit);
}

#[test]
fn a_new_branch_is_made_locked_and_stamped() {
    let f = Fixture::new();
    let config = fs::read(f.main.join(".git/config")).unwrap();
    let place = f.place("group/w");
    let plan = f.plan(&place);
    let start_commit = place.start_commit.clone();
    assert_eq!(plan, Plan { branch_existed: false, start_commit, lasting: None });
    f.try_make(&place, &plan).unwrap();
    assert_made(&f, &place);
    let listed = crate::list_registrations(&f.main).unwrap();
    let ours = listed.iter().find(|r| r.path == place.path).unwrap();
    assert_eq!(ours.locked_reason.as_deref(), Some(place.stamp.as_str()));
    assert_eq!(ours.branch.as_deref(), Some("refs/heads/work/group-w"));
    assert_eq!(ours.admin_dir.as_deref(), Some(f.admin(&place).as_path()));
    // W-11: nothing is written to the repository's configuration.
    assert_eq!(fs::read(f.main.join(".git/config")).unwrap(), config);
    let log = git(&f.main, &["log", "-g", "--format=%gs", &place.branch]);
    assert_eq!(log, format!("freehold {}", place.stamp));
}

#[test]
fn an_existing_branch_is_used_where_it_stands() {
    let f = Fixture::new();
    let place = f.place("w");
    git(&f.main, &["commit", "--allow-empty", "--quiet", "-m", "second"]);
    git(&f.main, &["branch", &place.branch, "HEAD~1"]);
    let plan = f.plan(&place);
    let start_commit = place.start_commit.clone();
    assert_eq!(plan, Plan { branch_existed: true, start_commit, lasting: None });
    f.try_make(&place, &plan).unwrap();
    assert_made(&f, &place);
}

#[test]
fn a_branch_with_the_name_of_a_tag_is_still_the_branch() {
    let f = Fixture::new();
    let place = f.place("w");
    git(&f.main, &["commit", "--allow-empty", "--quiet", "-m", "second"]);
    git(&f.main, &["tag", &place.branch, "HEAD"]);
    git(&f.main, &["branch", &place.branch, "HEAD~1"]);
    f.try_make(&place, &f.plan(&place)).unwrap();
    assert_eq!(git(&place.path, &["rev-parse", "HEAD"]), place.start_commit);
}

#[test]
fn names_that_git_reads_as_something_else_are_refused() {
    let f = Fixture::new();
    for name in ["@", "-", "@{-1}", "HEAD", "a..b", "", "-b"] {
        let mut place = f.place("w");
        place.branch = name.to_owned();
        f.spaces.plan(&place, None).expect_err(name);
    }
    let place = f.place("w");
    f.spaces.plan(&place, Some("no-such")).unwrap_err();
    f.spaces.plan(&place, Some("--all")).unwrap_err();
}

#[test]
fn a_branch_that_is_checked_out_elsewhere_is_refused_in_gits_words() {
    let f = Fixture::new();
    let first = f.made("first");
    let mut second = f.place("second");
    second.branch = first.branch.clone();
    let refused = f.try_make(&second, &f.plan(&second)).unwrap_err();
    assert_eq!(refused.reason, Reason::OwnedElsewhere);
    // The first is git's wording since 2.42, the second that of older ones.
    let words = ["already used by worktree", "already checked out at"];
    assert!(words.iter().any(|w| refused.detail.contains(w)), "{refused}");
    assert!(!second.path.exists());
    assert_made(&f, &first);
}

#[test]
fn somebody_elses_branch_is_not_taken() {
    let f = Fixture::new();
    let place = f.place("w");
    let plan = f.plan(&place);
    git(&f.main, &["branch", &place.branch]);
    let refused = f.try_make(&place, &plan).unwrap_err();
    assert_eq!(refused.reason, Reason::Contested);
    assert!(!place.path.exists());
    // Ours with a second entry is not ours any more either.
    let other = f.place("x");
    let plan = f.plan(&other);
    make_branch(&Git::new(), &other, &plan, &f.common()).unwrap();
    git(&f.main, &["commit", "--allow-empty", "--quiet", "-m", "second"]);
    git(&f.main, &["branch", "-f", &other.branch, "main"]);
    git(&f.main, &["branch", "-f", &other.branch, &plan.start_commit]);
    assert_eq!(f.try_make(&other, &plan).unwrap_err().reason, Reason::Contested);
}

/// F30: killed between any two stages; the next call finishes.
#[test]
fn a_making_killed_after_any_stage_is_finished() {
    for stage in 0..=5 {
        let f = Fixture::new();
        let place = f.place("w");
        let plan = f.plan(&place);
        let (git_program, common) = (Git::new(), f.common());
        make_branch(&git_program, &place, &plan, &common).unwrap();
        if stage >= 1 {
            let admin = make_registration(&git_program, &place, &common, WAIT).unwrap();
            assert!(!admin.join(STAMP).exists());
            if stage >= 2 {
                write_stamp(&place, &admin).unwrap();
            }
            if stage >= 3 {
                // Killed in the middle of the checkout: a lock, a file that is half written.
                fs::write(admin.join("index.lock"), "").unwrap();
                fs::write(place.path.join("a.txt"), "on").unwrap();
            }
            if stage >= 4 {
                fs::remove_file(admin.join("index.lock")).unwrap();
                git(&place.path, &["read-tree", "HEAD"]);
            }
            if stage >= 5 {
                git(&place.path, &["reset", "--hard", "--quiet"]);
            }
        }
        f.try_make(&place, &plan).unwrap_or_else(|e| panic!("stage {stage}: {e}"));
        assert_made(&f, &place);
        f.try_make(&place, &plan).unwrap();
        assert_made(&f, &place);
    }
}

/// W-2, W-12: what git leaves when it is killed inside `worktree add`.
#[test]
fn a_half_made_registration_of_our_own_is_cleared_and_made_again() {
    type Leave = fn(admin: &Path, path: &Path, stamp: &str);
    let leaves: &[(&str, Leave)] = &[
        ("an empty registration", |admin, _, _| fs::create_dir_all(admin).unwrap()),
        ("only the lock", |admin, _, stamp| {
            fs::create_dir_all(admin).unwrap();
            fs::write(admin.join("locked"), stamp).unwrap();
        }),
        ("the lock and an empty folder", |admin, path, stamp| {
            fs::create_dir_all(admin).unwrap();
            fs::write(admin.join("locked"), stamp).unwrap();
            fs::create_dir_all(path).unwrap();
        }),
        ("both links and nothing else", |admin, path, stamp| {
            fs::create_dir_all(admin).unwrap();
            fs::write(admin.join("locked"), stamp).unwrap();
            fs::create_dir_all(path).unwrap();
            fs::write(admin.join("gitdir"), format!("{}/.git\n", path.display())).unwrap();
            fs::write(path.join(".git"), format!("gitdir: {}\n", admin.display())).unwrap();
        }),
        ("everything but a head", |admin, path, stamp| {
            fs::create_dir_all(admin).unwrap();
            fs::write(admin.join("locked"), stamp).unwrap();
            fs::create_dir_all(path).unwrap();
            fs::write(admin.join("gitdir"), format!("{}/.git\n", path.display())).unwrap();
            fs::write(path.join(".git"), format!("gitdir: {}\n", admin.display())).unwrap();
            fs::write(admin.join("commondir"), "../..\n").unwrap();
            fs::write(admin.join("HEAD"), format!("{}\n", "0".repeat(40))).unwrap();
        }),
    ];
    for (what, leave) in leaves {
        let f = Fixture::new();
        let place = f.place("w");
        let plan = f.plan(&place);
        make_branch(&Git::new(), &place, &plan, &f.common()).unwrap();
        let admin = f.common().join("worktrees/w");
        leave(&admin, &place.path, &place.stamp);
        assert!(is_half_made(&admin).unwrap(), "{what}");
        // It can be compensated as it stands (W-4) ...
        let seen = f.inspect(&place);
        assert!(matches!(seen.evidence.found, Found::Here | Found::Missing), "{what}: {seen:?}");
        assert_eq!(seen.evidence.unsaved, Unsaved::NONE, "{what}");
        // ... or finished.
        f.try_make(&place, &plan).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_made(&f, &place);
    }
}

#[test]
fn a_half_made_registration_of_another_is_put_aside_only_when_it_is_old() {
    let f = Fixture::new();
    let other = f.common().join("worktrees/other");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("locked"), "initializing").unwrap();
    assert_eq!(put_aside_half_made(&f.common(), Duration::from_secs(3600)).unwrap(), 0);
    assert!(other.exists());
    assert_eq!(put_aside_half_made(&f.common(), Duration::ZERO).unwrap(), 1);
    assert!(!other.exists());
    assert!(f.common().join("freehold/half-made/other/locked").exists());
    // A whole one is never half made.
    let place = f.made("w");
    assert_eq!(put_aside_half_made(&f.common(), Duration::ZERO).unwrap(), 0);
    assert_made(&f, &place);
}

/// F61 (c): a making that is repeated never resets what somebody edited meanwhile.
#[test]
fn a_finished_checkout_is_not_checked_out_again() {
    let f = Fixture::new();
    let place = f.made("w");
    fs::write(place.path.join("a.txt"), "edited").unwrap();
    fs::write(place.path.join("new"), "new").unwrap();
    f.try_make(&place, &f.plan(&place)).unwrap();
    assert_eq!(fs::read(place.path.join("a.txt")).unwrap(), b"edited");
    assert!(place.path.join("new").exists());
    // Even where the mark of a finished checkout was lost, nothing is overwritten.
    fs::write(f.admin(&place).join(STAMP), &place.stamp).unwrap();
    f.try_make(&place, &f.plan(&place)).unwrap();
    assert_eq!(fs::read(place.path.join("a.txt")).unwrap(), b"one\n");
    let aside = crate::root::book(&f.root).join("aside");
    let aside = fs::read_dir(aside).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read(aside.join("a.txt")).unwrap(), b"edited");
    assert_eq!(fs::read(aside.join("new")).unwrap(), b"new");
}

#[test]
fn what_stands_at_the_path_already_is_left_alone() {
    let f = Fixture::new();
    let place = f.place("w");
    fs::create_dir_all(&place.path).unwrap();
    fs::write(place.path.join("mine"), "1").unwrap();
    let refused = f.try_make(&place, &f.plan(&place)).unwrap_err();
    assert_eq!(refused.reason, Reason::OwnedElsewhere);
    assert_eq!(fs::read(place.path.join("mine")).unwrap(), b"1");
    assert_eq!(crate::list_registrations(&f.main).unwrap().len(), 1);
}

/// W-32: hooks of the user do not run, so none can fail a making (F30 d).
#[test]
fn hooks_do_not_run() {
    let f = Fixture::new();
    for hook in ["post-checkout", "reference-transaction", "post-index-change"] {
        let path = f.main.join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mark = f.dir.path().join("ran");
        fs::write(&path, format!("#!/bin/sh\ntouch {}\nexit 1\n", mark.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let place = f.made("w");
    f.remove(&place, "r1");
    assert!(!f.dir.path().join("ran").exists());
}

#[test]
fn eight_worktrees_of_one_repository_are_made_at_once() {
    let f = Fixture::new();
    for round in 0..2 {
        std::thread::scope(|scope| {
            let makers: Vec<_> = (0..8)
                .map(|n| {
                    let f = &f;
                    scope.spawn(move || f.made(&format!("r{round}-w{n}")))
                })
                .collect();
            for maker in makers {
                assert_made(&f, &maker.join().unwrap());
            }
        });
    }
    assert_eq!(crate::list_registrations(&f.main).unwrap().len(), 17);
    std::thread::scope(|scope| {
        for n in 0..8 {
            let f = &f;
            scope.spawn(move || f.remove(&f.place(&format!("r0-w{n}")), &format!("id{n}")));
        }
    });
    // The folder of the last one goes while the next is made in it (W-42).
    std::thread::scope(|scope| {
        for n in 0..4 {
            let f = &f;
            scope.spawn(move || {
                for round in 0..6 {
                    let place = f.made(&format!("shared/folder/t{n}-{round}"));
                    f.remove(&place, &format!("shared{n}-{round}"));
                }
            });
        }
    });
    assert_eq!(crate::list_registrations(&f.main).unwrap().len(), 9);
    assert_eq!(crate::leftovers(&f.root).len(), 8);
}

/// W-12: git's own locks keep no two changes of the registry apart as a whole; this one does.
#[test]
fn w12_who_changes_the_registry_waits_for_its_lock() {
    let mut f = Fixture::new();
    let going = f.made("going");
    for step in &STEPS[..3] {
        f.step(&going, "r", *step).unwrap();
    }
    let coming = f.place("coming");
    let plan = f.plan(&coming);
    // Not at once: a program that another test is just starting has copies of the path's lock.
    let patient = std::mem::replace(
        &mut f.spaces,
        GitWorkspaces::new().with_lock_wait(Duration::from_millis(500)),
    );
    let held = lock_registry(&f.common(), WAIT).unwrap();
    let before = whole(&f.common().join("worktrees"));
    let contested = |what: &str, refused: Option<WorkspaceError>| {
        let refused = refused.map(|e| (e.reason, e.path));
        assert_eq!(refused, Some((Reason::Contested, f.common())), "{what}");
        assert_eq!(whole(&f.common().join("worktrees")), before, "{what}");
    };
    contested("a making", f.try_make(&coming, &plan).err());
    for step in [RemovalStep::Unregistered, RemovalStep::BranchSettled] {
        contested(step.code(), f.step(&going, "r", step).err());
    }
    drop(held);
    f.spaces = patient;
    f.try_make(&coming, &plan).unwrap();
    assert_made(&f, &coming);
    for step in &STEPS[3..] {
        f.step(&going, "r", *step).unwrap();
    }
    f.assert_gone(&going);
}
