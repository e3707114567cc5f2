//! What is refused, and that a refusal leaves everything as it was (W-31, W-34).

use super::*;
use crate::salvage::{restore, save};

#[test]
fn past_the_limit_nothing_is_written() {
    let rig = Rig::new();
    write(&rig.file("large.bin"), vec![7u8; 100_000]);
    // The lock's file is made by the first salvage and stays, empty.
    crate::lock::lock_salvage(&rig.place.root, std::time::Duration::ZERO).unwrap();
    let before = bytes_of(&rig.top());
    let error = save(&Git::new(), &rig.place, "e", up_to(99_999), &mut || true).unwrap_err();
    assert_eq!(error.reason, Reason::TooLarge);
    assert!(error.detail.contains("99999") && error.detail.contains("100"), "{error}");
    assert_eq!(bytes_of(&rig.top()), before, "nothing is left behind");
    assert!(save(&Git::new(), &rig.place, "e", up_to(200_000), &mut || true).unwrap().is_some());
}

#[test]
fn a_staged_or_committed_file_counts_too() {
    let rig = Rig::new();
    write(&rig.file("large.bin"), vec![7u8; 100_000]);
    rig.git(&["add", "-A"]);
    fs::remove_file(rig.file("large.bin")).unwrap();
    assert_eq!(
        reason(save(&Git::new(), &rig.place, "e", up_to(99_999), &mut || true)),
        Reason::TooLarge
    );
    rig.git(&["checkout", "-q", "--detach"]);
    rig.git(&["commit", "-qm", "large"]);
    rig.git(&["reset", "-q", "--hard"]);
    assert_eq!(
        reason(save(&Git::new(), &rig.place, "e", up_to(99_999), &mut || true)),
        Reason::TooLarge
    );
}

#[test]
fn a_base_that_is_too_large_is_left_out_and_said_to_be() {
    let rig = Rig::with("sha1", |repo| write(&repo.join("big"), vec![7u8; 50_000]));
    write(&rig.file("a.txt"), "changed\n");
    let made = save(&Git::new(), &rig.place, "e", up_to(20_000), &mut || true).unwrap().unwrap();
    let listed = rig.ask_store(&["ls-tree", "--name-only", &made.ref_name, "base/"]);
    assert_eq!(listed, "base/commit\n");
    let before = rig.snapshot();
    rig.recreate();
    let restored = rig.restore(&made).unwrap();
    assert_eq!(restored.notes.len(), 1, "{:?}", restored.notes);
    same(&rig.snapshot(), &before);
}

#[test]
fn another_repository_inside_is_refused() {
    let rig = Rig::new();
    git(rig.work(), &["init", "-q", "inner"]);
    assert_eq!(reason(rig.save()), Reason::Nested);
    fs::remove_dir_all(rig.file("inner")).unwrap();
    write(&rig.file("folder/.git"), "gitdir: /nowhere\n");
    assert_eq!(reason(rig.save()), Reason::Nested);
}

#[test]
fn what_is_not_the_recorded_worktree_is_refused() {
    let rig = Rig::new();
    write(&rig.file("a.txt"), "changed\n");
    let place = Place { stamp: "another".into(), ..rig.place.clone() };
    let saved = save(&Git::new(), &place, "e", up_to(GIB2), &mut || true);
    assert_eq!(reason(saved), Reason::IdentityMismatch);
    let made = rig.saved();
    let restored = restore(&Git::new(), &place, &made.ref_name);
    assert_eq!(reason(restored), Reason::IdentityMismatch);
}

#[test]
fn a_file_that_never_rests_is_changing() {
    let rig = Rig::new();
    write(&rig.file("a.txt"), "changed\n");
    let path = rig.file("busy");
    let mut n = 0;
    let mut writer = || {
        n += 1;
        fs::write(&path, format!("{n}")).unwrap();
        true
    };
    let error = save(&Git::new(), &rig.place, "e", up_to(GIB2), &mut writer).unwrap_err();
    assert_eq!(error.reason, Reason::Changing);
    assert!(crate::salvage::list(&rig.place.root).unwrap().is_empty());
}

/// Saves while one change falls in as soon as the scratch has the first file and not the second.
fn save_with_change(rig: &Rig, has: &str, has_not: &str, change: &dyn Fn()) -> SalvageMade {
    let scratch = crate::root::book(&rig.place.root).join("salvage-scratch/save-e");
    let mut changed = false;
    let mut pulse = || {
        if !changed && scratch.join(has).exists() && !scratch.join(has_not).exists() {
            changed = true;
            change();
        }
        true
    };
    let made = save(&Git::new(), &rig.place, "e", up_to(GIB2), &mut pulse).unwrap().unwrap();
    assert!(changed, "the change fell between {has} and {has_not}");
    made
}

#[test]
fn a_change_while_it_is_kept_is_kept_too() {
    // While the files are read, and after all of them were read and handed to git.
    for (has, has_not) in [("index", "stream"), ("stream", "marks"), ("marks", "nothing")] {
        for name in ["a.txt", "fresh", "b.txt", ".env"] {
            let rig = Rig::new();
            write(&rig.file("a.txt"), "changed\n");
            write(&rig.file("fresh"), "changed\n");
            write(&rig.file(".env"), "changed\n");
            // Long enough that the caller is asked while it is read.
            write(&rig.file("zz.bin"), vec![0u8; 8 << 20]);
            let made =
                save_with_change(&rig, has, has_not, &|| write(&rig.file(name), "CHANGED\n"));
            let tree = if name == ".env" { "ignored" } else { "worktree" };
            let kept = rig.ask_store(&["show", &format!("{}:{tree}/{name}", made.ref_name)]);
            assert_eq!(kept, "CHANGED\n", "{name} between {has} and {has_not}");
        }
    }
}

#[test]
fn staging_while_it_is_kept_is_kept_too() {
    let rig = Rig::new();
    write(&rig.file("a.txt"), "changed\n");
    let made = save_with_change(&rig, "marks", "nothing", &|| drop(rig.git(&["add", "a.txt"])));
    let kept = rig.ask_store(&["show", &format!("{}:staged/0/a.txt", made.ref_name)]);
    assert_eq!(kept, "changed\n");
}

#[test]
fn a_lost_right_stops_it() {
    let rig = Rig::new();
    write(&rig.file("a.txt"), "changed\n");
    let saved = save(&Git::new(), &rig.place, "e", up_to(GIB2), &mut || false);
    assert_eq!(reason(saved), Reason::Contested);
    assert!(!crate::root::book(&rig.place.root).join("salvage-scratch").exists());
}

#[test]
fn a_worktree_with_work_of_its_own_is_not_restored_into() {
    let rig = Rig::new();
    write(&rig.file("a.txt"), "changed\n");
    write(&rig.file("fresh"), "untracked\n");
    let made = rig.saved();
    type Spoil = fn(&Rig);
    let spoils: [Spoil; 5] = [
        |rig| write(&rig.file("b.txt"), "own\n"),
        |rig| write(&rig.file("fresh"), "another\n"),
        |rig| write(&rig.file("own"), "own\n"),
        |rig| drop(rig.git(&["rm", "-q", "b.txt"])),
        |rig| write(&rig.admin().join("MERGE_HEAD"), rig.git(&["rev-parse", "HEAD"])),
    ];
    for spoil in spoils {
        rig.recreate();
        spoil(&rig);
        let before = (bytes_of(rig.work()), bytes_of(rig.repo()));
        assert_eq!(reason(rig.restore(&made)), Reason::Unsaved);
        assert_eq!((bytes_of(rig.work()), bytes_of(rig.repo())), before);
    }
}

#[test]
fn ignored_files_in_the_way_are_not_overwritten() {
    let rig = Rig::new();
    write(&rig.file(".env"), "old\n");
    write(&rig.file("x.log"), "same\n");
    write(&rig.file("linked/inner"), "inner\n");
    let made = rig.saved();
    rig.recreate();
    write(&rig.file(".env"), "new\n");
    write(&rig.file("x.log"), "same\n");
    let outside = rig.top().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(outside.to_str().unwrap(), &rig.file("linked"));
    let restored = rig.restore(&made).unwrap();
    assert_eq!(fs::read_to_string(rig.file(".env")).unwrap(), "new\n");
    assert!(bytes_of(&outside).is_empty(), "no link was followed out");
    let notes = restored.notes.join("\n");
    assert!(notes.contains(".env") && notes.contains("linked/inner"), "{notes}");
    assert!(!notes.contains("x.log"), "{notes}");
}

#[test]
fn a_restore_that_was_stopped_is_finished_by_the_next() {
    let rig = Rig::new();
    write(&rig.file("a.txt"), "staged\n");
    rig.git(&["add", "a.txt"]);
    write(&rig.file("a.txt"), "changed\n");
    write(&rig.file("one"), "1\n");
    write(&rig.file("two"), "2\n");
    let before = rig.snapshot();
    let made = rig.saved();
    rig.recreate();
    write(&rig.file("one"), "1\n");
    write(&rig.file("a.txt"), "changed\n");
    write(&rig.file(".freehold-restoring-3"), "half of tw");
    assert_eq!(rig.restore(&made).unwrap().notes, Vec::<String>::new());
    same(&rig.snapshot(), &before);
    // And once more changes nothing.
    assert_eq!(rig.restore(&made).unwrap().entries, 0);
    same(&rig.snapshot(), &before);
}

#[test]
fn on_another_commit_only_what_meets_no_change_is_put_back() {
    let rig = Rig::new();
    write(&rig.file("a.txt"), "mine\n");
    write(&rig.file("b.txt"), "mine\n");
    rig.git(&["add", "b.txt"]);
    fs::remove_file(rig.file("sub/c.txt")).unwrap();
    write(&rig.file("fresh"), "untracked\n");
    write(&rig.file("taken"), "untracked\n");
    let made = rig.saved();
    rig.recreate();
    write(&rig.file("a.txt"), "theirs\n");
    write(&rig.file("taken"), "theirs\n");
    rig.git(&["add", "-A"]);
    rig.git(&["commit", "-qm", "theirs"]);
    let restored = rig.restore(&made).unwrap();
    let read = |name: &str| fs::read_to_string(rig.file(name)).unwrap();
    assert_eq!(read("a.txt"), "theirs\n");
    assert_eq!(read("taken"), "theirs\n");
    assert_eq!(read("b.txt"), "mine\n");
    assert_eq!(read("fresh"), "untracked\n");
    assert_eq!(rig.git(&["status", "--porcelain"]), "M  b.txt\n D sub/c.txt\n?? fresh\n");
    let notes = restored.notes.join("\n");
    assert!(notes.contains("a.txt") && notes.contains("taken"), "{notes}");
    assert!(!notes.contains("b.txt") && !notes.contains("fresh"), "{notes}");
}
