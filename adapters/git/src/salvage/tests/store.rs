//! The private store (W-34): self-contained, private, readable with git alone, and replaced
//! rather than added to.

use std::process::Stdio;
use std::time::Duration;

use super::*;

fn dirty(rig: &Rig) {
    write(&rig.file("a.txt"), "staged in salvage\n");
    rig.git(&["add", "a.txt"]);
    write(&rig.file("a.txt"), "changed in salvage\n");
    write(&rig.file("fresh.txt"), "untracked in salvage\n");
    write(&rig.file(".env"), "ignored in salvage\n");
}

#[test]
fn it_outlives_the_users_repository() {
    let rig = Rig::new();
    dirty(&rig);
    let before = rig.snapshot();
    let made = rig.saved();
    // All that is left elsewhere is what was pushed.
    let copy = rig.top().join("copy.git");
    git(&rig.top(), &["clone", "-q", "--bare", "repo", "copy.git"]);
    rig.remove();
    fs::remove_dir_all(rig.repo()).unwrap();

    assert!(!rig.store().join("objects/info/alternates").exists());
    rig.ask_store(&["fsck", "--full", "--strict"]);
    rig.ask_store(&["gc", "-q", "--prune=now"]);
    rig.ask_store(&["fsck", "--full", "--strict"]);
    let show = |path: &str| rig.ask_store(&["show", &format!("{}:{path}", made.ref_name)]);
    assert_eq!(show("staged/0/a.txt"), "staged in salvage\n");
    assert_eq!(show("worktree/a.txt"), "changed in salvage\n");
    assert_eq!(show("worktree/fresh.txt"), "untracked in salvage\n");
    assert_eq!(show("ignored/.env"), "ignored in salvage\n");
    assert_eq!(show("base/tree/b.txt"), "b\n", "the unchanged files too");

    git(&rig.top(), &["clone", "-q", copy.to_str().unwrap(), "repo"]);
    git(rig.repo(), &["branch", "-q", "work", "origin/work"]);
    rig.add(&[], &["work"]);
    assert_eq!(rig.restore(&made).unwrap().notes, Vec::<String>::new());
    let after = rig.snapshot();
    assert_eq!((after.tree, after.index), (before.tree, before.index));
}

#[test]
fn it_outlives_a_collection_in_both_repositories() {
    let rig = Rig::new();
    dirty(&rig);
    let before = rig.snapshot();
    let made = rig.saved();
    rig.recreate();
    git(rig.repo(), &["reflog", "expire", "--expire=now", "--all"]);
    git(rig.repo(), &["gc", "-q", "--prune=now"]);
    rig.ask_store(&["reflog", "expire", "--expire=now", "--all"]);
    rig.ask_store(&["gc", "-q", "--prune=now"]);
    let staged = rig.ask_store(&["rev-parse", &format!("{}:staged/0/a.txt", made.ref_name)]);
    assert!(!run(rig.repo(), &["cat-file", "-e", staged.trim()]).status.success(), "it is gone");
    rig.restore(&made).unwrap();
    same(&rig.snapshot(), &before);
    // What was put back stays through a collection: the index names it.
    git(rig.repo(), &["gc", "-q", "--prune=now"]);
    same(&rig.snapshot(), &before);
}

#[test]
fn no_push_and_no_clone_carries_it() {
    let rig = Rig::new();
    dirty(&rig);
    let made = rig.saved();
    let blob = rig.ask_store(&["rev-parse", &format!("{}:worktree/fresh.txt", made.ref_name)]);
    git(&rig.top(), &["init", "-q", "--bare", "pushed.git"]);
    git(rig.repo(), &["push", "-q", "--mirror", "../pushed.git"]);
    git(&rig.top(), &["clone", "-q", "--mirror", "repo", "cloned.git"]);
    for repo in
        [rig.repo().to_path_buf(), rig.top().join("pushed.git"), rig.top().join("cloned.git")]
    {
        assert!(!git(&repo, &["for-each-ref"]).contains("salvage"));
        for oid in [blob.trim(), rig.ask_store(&["rev-parse", &made.ref_name]).trim()] {
            assert!(!run(&repo, &["cat-file", "-e", oid]).status.success(), "{}", repo.display());
        }
    }
    assert!(rig.ask_store(&["cat-file", "-e", blob.trim()]).is_empty());
    assert!(git(&rig.top().join("pushed.git"), &["for-each-ref"]).contains("refs/heads/work"));
}

#[test]
fn a_second_save_replaces_the_entry() {
    let rig = Rig::new();
    dirty(&rig);
    let first = rig.saved();
    let tip = || rig.ask_store(&["rev-parse", &first.ref_name]);
    let before = tip();
    write(&rig.file("fresh.txt"), "newer\n");
    let second = rig.saved();
    assert_eq!(second.ref_name, first.ref_name);
    assert_ne!(tip(), before);
    assert_eq!(rig.ask_store(&["for-each-ref"]).lines().count(), 1);
    let now = rig.ask_store(&["show", &format!("{}:worktree/fresh.txt", second.ref_name)]);
    assert_eq!(now, "newer\n");
    rig.ask_store(&["fsck", "--strict"]);
}

#[test]
fn entries_are_listed_and_shown() {
    let rig = Rig::new();
    assert_eq!(crate::salvage::list(&rig.place.root).unwrap(), vec![]);
    dirty(&rig);
    let made = rig.saved();
    let listed = crate::salvage::list(&rig.place.root).unwrap();
    assert_eq!(listed.len(), 1);
    let entry = &listed[0];
    assert_eq!(
        (&entry.ref_name, &entry.base, entry.size, entry.contents),
        (&made.ref_name, &made.base, made.size, made.contents)
    );
    assert_eq!((entry.head.as_str(), entry.worktree.as_path()), ("refs/heads/work", rig.work()));
    let shown = crate::salvage::show(&rig.place.root, &made.ref_name).unwrap();
    let by_git = rig.ask_store(&["show", &format!("{}:manifest", made.ref_name)]);
    assert_eq!(shown.join("\n") + "\n", by_git);
    assert!(shown.iter().any(|l| l.contains("\"file\":\"fresh.txt\"")));
    for wrong in ["refs/salvage/none", "refs/heads/main", "--help", "refs/salvage/../x"] {
        assert_eq!(reason(crate::salvage::show(&rig.place.root, wrong)), Reason::Io);
    }
}

#[test]
fn two_worktrees_have_two_entries_in_one_store() {
    let rig = Rig::new();
    dirty(&rig);
    let save = |name: &str| {
        super::super::save(&Git::new(), &rig.place, name, KEEP, &mut || true).unwrap().unwrap()
    };
    let (one, two, odd) = (save("one"), save("two"), save("odd..name/../x"));
    assert_eq!(one.ref_name, "refs/salvage/one");
    assert_eq!(two.ref_name, "refs/salvage/two");
    assert!(odd.ref_name.starts_with("refs/salvage/") && !odd.ref_name.contains(".."));
    assert_eq!(crate::salvage::list(&rig.place.root).unwrap().len(), 3);
}

#[test]
fn damage_in_the_store_is_noticed_when_it_is_read_back() {
    use crate::salvage::hash::Format;
    use crate::salvage::seat::Beat;
    use crate::salvage::store::Store;
    let rig = Rig::new();
    dirty(&rig);
    let made = rig.saved();
    let tip = rig.ask_store(&["rev-parse", &made.ref_name]).trim().to_owned();
    let packs = rig.store().join("objects/pack");
    let find = |end: &str| {
        let mut names = fs::read_dir(&packs).unwrap().map(|e| e.unwrap().path());
        names.find(|p| p.extension().is_some_and(|e| e == end)).unwrap()
    };
    let (pack, index) = (find("pack"), find("idx"));
    let git = Git::new();
    let store = Store::new(&git, &rig.place.root, Format::Sha1);
    let verify = || {
        let mut on = || true;
        let mut beat = Beat::new(&mut on, rig.work());
        store.verify(&made.ref_name, &tip, Some(&index), &mut beat)
    };
    verify().unwrap();
    let good = fs::read(&pack).unwrap();
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 1;
    chmod(&pack, 0o644);
    fs::write(&pack, &bad).unwrap();
    assert_eq!(reason(verify()), Reason::Io);
    fs::write(&pack, &good).unwrap();
    verify().unwrap();
    fs::remove_file(&index).unwrap();
    assert_eq!(reason(verify()), Reason::Io);
}

#[test]
fn a_repository_whose_path_git_could_take_for_a_list() {
    let mut rig = Rig::new();
    let moved = rig.top().join("re:po \"q\" \\ \u{fc}");
    fs::rename(rig.repo(), &moved).unwrap();
    git(&moved, &["worktree", "repair", rig.work().to_str().unwrap()]);
    rig.place.repository = moved;
    rig.git(&["checkout", "-q", "--detach"]);
    dirty(&rig);
    rig.git(&["commit", "-qm", "own"]);
    rig.round_trip(
        Unsaved::TRACKED.with(Unsaved::UNTRACKED).with(Unsaved::IGNORED).with(Unsaved::COMMITS),
    );
}

/// Another test's fork may hold a copy of a lock's file for a moment.
const PATIENT: Duration = Duration::from_secs(60);

/// What is written before its ref stands is garbage to a collector (W-34).
#[test]
fn a_collection_and_a_salvage_keep_each_other_out() {
    let rig = Rig::new();
    write(&rig.file("a.txt"), "changed");
    let collecting = crate::lock::lock_collect(&rig.place.root, PATIENT).unwrap();
    assert_eq!(reason(rig.save()), Reason::Contested);
    drop(collecting);
    let kept = rig.saved();

    write(&rig.top().join("orphan"), "of nobody");
    let orphan = rig.ask_store(&["hash-object", "-w", rig.top().join("orphan").to_str().unwrap()]);
    let there = |rig: &Rig| run(&rig.store(), &["cat-file", "-e", orphan.trim()]).status.success();
    let saving = crate::lock::lock_salvage(&rig.place.root, PATIENT).unwrap();
    // Another salvage is no collector.
    crate::lock::lock_salvage(&rig.place.root, PATIENT).unwrap();
    assert_eq!(reason(super::super::reclaim(&rig.place.root)), Reason::Contested);
    assert!(there(&rig), "collected while something was being written");
    drop(saving);
    super::super::reclaim(&rig.place.root).unwrap();
    assert!(!there(&rig), "what nobody refers to was not collected");
    rig.ask_store(&["rev-parse", "--verify", &kept.ref_name]);
}

/// A collector that was killed leaves no lock that would stop every later one (W-12).
#[test]
fn a_collection_needs_no_lock_that_a_killed_one_could_leave() {
    let rig = Rig::new();
    write(&rig.file("a.txt"), "changed");
    let kept = rig.saved();
    for lock in ["packed-refs.lock", "objects/info/commit-graph.lock"] {
        fs::create_dir_all(rig.store().join(lock).parent().unwrap()).unwrap();
        write(&rig.store().join(lock), "");
    }
    super::super::reclaim(&rig.place.root).unwrap();
    rig.ask_store(&["rev-parse", "--verify", &kept.ref_name]);
}

/// The list of an entry's objects is whole and one of them is nowhere.
#[test]
fn a_file_that_is_missing_in_the_store_is_noticed_when_it_is_read_back() {
    use crate::salvage::hash::Format;
    use crate::salvage::seat::Beat;
    use crate::salvage::store::Store;
    let rig = Rig::new();
    dirty(&rig);
    rig.saved();
    let nowhere = "1234567890123456789012345678901234567890";
    let file = rig.top().join("tree");
    write(&file, format!("100644 blob {nowhere}\tfile\n"));
    let input = Stdio::from(fs::File::open(&file).unwrap());
    let mut mktree = Command::new("git");
    mktree.args(["mktree", "--missing"]).current_dir(rig.store()).stdin(input);
    let tree = String::from_utf8(mktree.output().unwrap().stdout).unwrap();
    let commit = rig.ask_store(&[
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@a",
        "commit-tree",
        "-m",
        "half",
        tree.trim(),
    ]);
    rig.ask_store(&["update-ref", "refs/salvage/half", commit.trim()]);
    let git = Git::new();
    let store = Store::new(&git, &rig.place.root, Format::Sha1);
    let mut on = || true;
    let mut beat = Beat::new(&mut on, rig.work());
    let found = store.verify("refs/salvage/half", commit.trim(), None, &mut beat).unwrap_err();
    assert!(found.detail.contains(nowhere), "{found}");
}

#[test]
fn what_the_store_has_is_not_packed_once_more() {
    let rig = Rig::new();
    dirty(&rig);
    let save = |name: &str| {
        super::super::save(&Git::new(), &rig.place, name, KEEP, &mut || true).unwrap().unwrap()
    };
    let packs = || {
        let names = fs::read_dir(rig.store().join("objects/pack")).unwrap();
        let packs = names.map(|e| e.unwrap().path());
        packs.filter(|p| p.extension().is_some_and(|e| e == "idx")).collect::<Vec<_>>()
    };
    save("one");
    write(&rig.file("fresh.txt"), "newer\n");
    let two = save("two");
    let lists = |path: &str| {
        let oid = rig.ask_store(&["rev-parse", &format!("{}:{path}", two.ref_name)]);
        let has = |pack: &&PathBuf| {
            rig.ask_store(&["verify-pack", "-v", pack.to_str().unwrap()]).contains(oid.trim())
        };
        packs().iter().filter(has).count()
    };
    assert_eq!(packs().len(), 2);
    for path in ["worktree/fresh.txt", "worktree/a.txt", "base/tree/b.txt", "staged/0/a.txt"] {
        assert_eq!(lists(path), 1, "{path}");
    }
}
