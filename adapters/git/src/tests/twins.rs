//! The same patch elsewhere (W-33), with every way in which two patches are not the same.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use freehold_kernel::{RemovalStep, Unsaved};
use freehold_store::workspaces::{BranchVerdict, Place};

use super::fixture::{Fixture, STEPS, git};

fn commit(dir: &Path, message: &str) -> String {
    git(dir, &["add", "--all"]);
    git(dir, &["commit", "--quiet", "--allow-empty", "-m", message]);
    git(dir, &["rev-parse", "HEAD"])
}

/// A worktree on a detached head, whose own commit `own` makes, beside a branch `main` that has
/// gone on by one commit and then by what `other` makes.
fn two(own: impl Fn(&Path), other: impl Fn(&Path)) -> (Fixture, Place) {
    let f = Fixture::new();
    let place = f.made("w");
    git(&place.path, &["checkout", "--quiet", "--detach"]);
    own(&place.path);
    commit(&place.path, "own");
    fs::write(f.main.join("unrelated"), "unrelated\n").unwrap();
    commit(&f.main, "between");
    other(&f.main);
    commit(&f.main, "other");
    (f, place)
}

fn is_unsaved(f: &Fixture, place: &Place) -> bool {
    let found = f.inspect(place);
    assert!(!found.evidence.unsaved.covers(Unsaved::UNKNOWN), "{:?}", found.details);
    found.evidence.unsaved.covers(Unsaved::COMMITS)
}

fn writes(name: &'static str, content: &'static [u8]) -> impl Fn(&Path) {
    move |dir| fs::write(dir.join(name), content).unwrap()
}

#[test]
fn a_commit_whose_patch_is_on_a_branch_is_saved() {
    let same = || writes("a.txt", b"one\nmore\n");
    let (f, place) = two(same(), same());
    assert!(!is_unsaved(&f, &place));
    // On a remote-tracking branch alone, too; on a tag alone it is not.
    let (f, place) = two(same(), same());
    let tip = git(&f.main, &["rev-parse", "main"]);
    git(&f.main, &["reset", "--quiet", "--hard", "HEAD~1"]);
    assert!(is_unsaved(&f, &place));
    git(&f.main, &["tag", "there", &tip]);
    assert!(is_unsaved(&f, &place), "a tag is no branch");
    git(&f.main, &["update-ref", "refs/remotes/origin/x", &tip]);
    assert!(!is_unsaved(&f, &place));
}

#[test]
fn binary_content_modes_and_links_have_patches_too() {
    let mode = |dir: &Path| {
        let file = dir.join("a.txt");
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let link = |to: &'static str| {
        move |dir: &Path| std::os::unix::fs::symlink(to, dir.join("link")).unwrap()
    };
    let (f, place) = two(writes("bin", b"\0one"), writes("bin", b"\0one"));
    assert!(!is_unsaved(&f, &place));
    let (f, place) = two(mode, mode);
    assert!(!is_unsaved(&f, &place));
    let (f, place) = two(link("x"), link("x"));
    assert!(!is_unsaved(&f, &place));
    let (f, place) = two(link("x"), link("y"));
    assert!(is_unsaved(&f, &place));
    // A file that a name can break a line with.
    let odd = || writes("a\nb", b"odd\n");
    let (f, place) = two(odd(), odd());
    assert!(!is_unsaved(&f, &place));
}

#[test]
fn what_is_nearly_the_same_is_not_the_same() {
    let own = || writes("a.txt", b"one\nmore\n");
    let twice = |dir: &Path| {
        fs::write(dir.join("a.txt"), "one\nmore\n").unwrap();
        fs::write(dir.join("b.txt"), "and this\n").unwrap();
    };
    let mode = |dir: &Path| {
        fs::write(dir.join("a.txt"), "one\nmore\n").unwrap();
        let file = dir.join("a.txt");
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    };
    // White space is content: an indented line is another program.
    let (f, place) = two(own(), writes("a.txt", b"one\n    more\n"));
    assert!(is_unsaved(&f, &place), "white space");
    let (f, place) = two(own(), twice);
    assert!(is_unsaved(&f, &place), "more in the other");
    let (f, place) = two(twice, own());
    assert!(is_unsaved(&f, &place), "more in its own");
    let (f, place) = two(own(), mode);
    assert!(is_unsaved(&f, &place), "a mode");
    let (f, place) = two(own(), writes("c.txt", b"one\nmore\n"));
    assert!(is_unsaved(&f, &place), "another path");
    let (f, place) = two(writes("bin", b"\0one"), writes("bin", b"\0two"));
    assert!(is_unsaved(&f, &place), "binary content");
    // No change at all is no patch: its message may be what matters.
    let (f, place) = two(|_| {}, |_| {});
    assert!(is_unsaved(&f, &place), "an empty commit");
}

#[test]
fn of_several_commits_each_needs_its_own() {
    let (f, place) = two(writes("a.txt", b"one\nmore\n"), writes("a.txt", b"one\nmore\n"));
    fs::write(place.path.join("late"), "late\n").unwrap();
    commit(&place.path, "late");
    let found = f.inspect(&place);
    assert!(found.evidence.unsaved.covers(Unsaved::COMMITS));
    let says = found.details.concat();
    assert!(says.contains("1 commit(s) that nothing else reaches"), "{says}");
    // Both as one, as a squash makes them, is another patch.
    fs::write(f.main.join("late"), "late\n").unwrap();
    commit(&f.main, "late");
    assert!(!is_unsaved(&f, &place));
    // A merge has no patch of its own.
    git(&place.path, &["merge", "--quiet", "--no-ff", "-m", "merge", "main~2"]);
    assert!(is_unsaved(&f, &place));
}

#[test]
fn more_than_the_bound_is_not_told() {
    let f = Fixture::new();
    let place = f.made("w");
    git(&place.path, &["checkout", "--quiet", "--detach"]);
    for n in 0..=crate::twins::OWN_MAX {
        fs::write(place.path.join("a.txt"), format!("{n}\n")).unwrap();
        commit(&place.path, "own");
    }
    fs::write(f.main.join("unrelated"), "unrelated\n").unwrap();
    commit(&f.main, "between");
    let range = format!("{}..{}", place.start_commit, git(&place.path, &["rev-parse", "HEAD"]));
    git(&f.main, &["cherry-pick", &range]);
    assert!(is_unsaved(&f, &place));
    git(&place.path, &["reset", "--quiet", "--hard", "HEAD~1"]);
    assert!(!is_unsaved(&f, &place), "at the bound it is told");
}

/// W-39: a branch that was rebased onto another one may go.
#[test]
fn a_branch_whose_patches_are_elsewhere_is_reached() {
    for same in [true, false] {
        let f = Fixture::new();
        let place = f.made("w");
        fs::write(place.path.join("a.txt"), "one\nmore\n").unwrap();
        let tip = commit(&place.path, "own");
        fs::write(f.main.join("unrelated"), "unrelated\n").unwrap();
        commit(&f.main, "between");
        if same {
            git(&f.main, &["cherry-pick", &tip]);
        }
        for step in &STEPS[..4] {
            f.step(&place, "r", *step).unwrap();
        }
        let settled = f.step_with(&place, "r", RemovalStep::BranchSettled, true).unwrap();
        match settled.branch.unwrap() {
            BranchVerdict::Removed(gone) => assert!(same && gone == tip, "{gone}"),
            BranchVerdict::Kept(why) => assert!(!same && why.contains("unmerged: 1"), "{why}"),
            BranchVerdict::Absent => panic!("absent"),
        }
    }
}

/// A diff that ends early is no patch: what is left of it may be another commit's whole patch.
#[test]
fn a_patch_that_cannot_be_read_whole_is_not_told() {
    let own = |dir: &Path| {
        writes("a.txt", b"one\nmore\n")(dir);
        writes("b.bin", b"lost\n")(dir);
    };
    let (f, place) = two(own, writes("a.txt", b"one\nmore\n"));
    let blob = git(&place.path, &["rev-parse", "HEAD:b.bin"]);
    let (folder, name) = blob.split_at(2);
    fs::remove_file(f.main.join(".git/objects").join(folder).join(name)).unwrap();
    assert!(is_unsaved(&f, &place));
}
