//! One test per kind of unsaved work (W-33).

use super::*;

#[test]
fn staged_only() {
    let rig = Rig::new();
    write(&rig.file("a.txt"), "staged\n");
    write(&rig.file("new.txt"), "new\n");
    rig.git(&["rm", "-q", "gone/only.txt"]);
    rig.git(&["add", "-A"]);
    rig.round_trip(Unsaved::TRACKED);
}

#[test]
fn unstaged_only() {
    let rig = Rig::new();
    write(&rig.file("a.txt"), "changed\n");
    fs::remove_file(rig.file("gone/only.txt")).unwrap();
    fs::remove_dir(rig.file("gone")).unwrap();
    rig.round_trip(Unsaved::TRACKED);
}

#[test]
fn staged_and_changed_again_are_both_back() {
    let rig = Rig::new();
    write(&rig.file("a.txt"), "staged\n");
    rig.git(&["add", "a.txt"]);
    write(&rig.file("a.txt"), "changed again\n");
    let made = rig.round_trip(Unsaved::TRACKED);
    let show = |path: &str| rig.ask_store(&["show", &format!("{}:{path}", made.ref_name)]);
    assert_eq!(show("staged/0/a.txt"), "staged\n");
    assert_eq!(show("worktree/a.txt"), "changed again\n");
    // Git's memory of a file that lay elsewhere must not prove anything about this one.
    use crate::salvage::{hash::Format, index::Index};
    let bytes = fs::read(rig.admin().join("index")).unwrap();
    let index = Index::parse(&bytes, Format::Sha1).unwrap();
    let memory = |name: &[u8]| index.entries.iter().find(|e| e.path == name).unwrap().stat;
    assert_eq!(memory(b"a.txt"), Default::default());
    assert_ne!(memory(b"b.txt"), Default::default());
}

#[test]
fn a_change_that_keeps_size_and_time_is_seen() {
    let rig = Rig::new();
    let time = fs::metadata(rig.file("a.txt")).unwrap().modified().unwrap();
    write(&rig.file("a.txt"), "one\ntwo\nTHREE\n");
    fs::File::options().write(true).open(rig.file("a.txt")).unwrap().set_modified(time).unwrap();
    rig.round_trip(Unsaved::TRACKED);
}

#[test]
fn staged_and_deleted_in_the_work_tree() {
    let rig = Rig::new();
    write(&rig.file("new.txt"), "only in the index\n");
    rig.git(&["add", "new.txt"]);
    fs::remove_file(rig.file("new.txt")).unwrap();
    let made = rig.round_trip(Unsaved::TRACKED);
    let blob = rig.ask_store(&["show", &format!("{}:staged/0/new.txt", made.ref_name)]);
    assert_eq!(blob, "only in the index\n");
}

#[test]
fn removed_from_the_index_and_kept_on_disk() {
    let rig = Rig::new();
    rig.git(&["rm", "-q", "--cached", "b.txt"]);
    rig.round_trip(Unsaved::TRACKED.with(Unsaved::UNTRACKED));
}

#[test]
fn untracked_nested_empty_and_odd_names() {
    use std::ffi::OsStr;
    let rig = Rig::new();
    write(&rig.file("deep/er/x.txt"), "x\n");
    fs::create_dir_all(rig.file("empty/inner")).unwrap();
    chmod(&rig.file("empty/inner"), 0o700);
    for name in
        [&b"new\nline"[..], b"quote\"back\\slash", b"\xff\xfe", b"-dash", b"%25x", b"tab\t", b" "]
    {
        write(&rig.work().join(OsStr::from_bytes(name)), name);
        write(&rig.work().join("odd").join(OsStr::from_bytes(name)), b"");
    }
    write(&rig.file("nul"), b"\0\r\n\0");
    chmod(&rig.file("nul"), 0o600);
    // Past what is fetched together with others.
    write(&rig.file("large.bin"), (0..200_000u32).map(|n| (n % 251) as u8).collect::<Vec<u8>>());
    rig.round_trip(Unsaved::UNTRACKED);
}

#[test]
fn ignored_files_lie_apart() {
    let rig = Rig::new();
    write(&rig.file(".env"), "SECRET=1\n");
    chmod(&rig.file(".env"), 0o600);
    write(&rig.file("build/out/x.bin"), b"\x00\x01");
    write(&rig.file("sub/x.log"), "log\n");
    let made = rig.round_trip(Unsaved::IGNORED);
    let listed = rig.ask_store(&["ls-tree", "-r", "--name-only", &made.ref_name, "ignored/"]);
    assert_eq!(listed, "ignored/.env\nignored/build/out/x.bin\nignored/sub/x.log\n");
    assert_eq!(rig.ask_store(&["ls-tree", "-r", &made.ref_name, "worktree/"]), "");
}

#[test]
fn links_stay_links() {
    let rig = Rig::new();
    let outside = rig.top().join("outside");
    write(&outside.join("x"), "not ours\n");
    symlink(outside.to_str().unwrap(), &rig.file("to-outside"));
    symlink("nowhere/at all", &rig.file("dangling"));
    symlink("a.txt", &rig.file("sub/to-a"));
    fs::remove_file(rig.file("b.txt")).unwrap();
    symlink("a.txt", &rig.file("b.txt"));
    rig.round_trip(Unsaved::TRACKED.with(Unsaved::UNTRACKED));
    assert_eq!(bytes_of(&outside).len(), 1);
}

#[test]
fn executable_bits() {
    let rig = Rig::new();
    chmod(&rig.file("run.sh"), 0o755);
    write(&rig.file("new.sh"), "#!/bin/sh\n");
    chmod(&rig.file("new.sh"), 0o755);
    rig.git(&["add", "new.sh"]);
    rig.round_trip(Unsaved::TRACKED);
}

#[test]
fn intent_to_add() {
    let rig = Rig::new();
    write(&rig.file("planned.txt"), "planned\n");
    rig.git(&["add", "-N", "planned.txt"]);
    rig.round_trip(Unsaved::TRACKED);
}

#[test]
fn files_that_index_bits_hide() {
    let rig = Rig::new();
    rig.git(&["update-index", "--assume-unchanged", "a.txt"]);
    rig.git(&["update-index", "--skip-worktree", "b.txt", "sub/c.txt"]);
    write(&rig.file("a.txt"), "hidden\n");
    write(&rig.file("b.txt"), "hidden too\n");
    assert_eq!(rig.git(&["status", "--porcelain"]), "");
    rig.round_trip(Unsaved::HIDDEN);
}

#[test]
fn a_file_where_a_folder_was_and_the_other_way_round() {
    let rig = Rig::new();
    fs::remove_dir_all(rig.file("sub")).unwrap();
    write(&rig.file("sub"), "a file now\n");
    fs::remove_file(rig.file("b.txt")).unwrap();
    write(&rig.file("b.txt/inner"), "a folder now\n");
    rig.round_trip(Unsaved::TRACKED.with(Unsaved::UNTRACKED));
}

#[test]
fn a_merge_conflict() {
    let rig = Rig::new();
    rig.git(&["checkout", "-q", "-b", "other"]);
    write(&rig.file("a.txt"), "theirs\n");
    rig.git(&["rm", "-q", "b.txt"]);
    rig.git(&["commit", "-qam", "theirs"]);
    rig.git(&["checkout", "-q", "work"]);
    write(&rig.file("a.txt"), "ours\n");
    write(&rig.file("b.txt"), "ours too\n");
    rig.git(&["commit", "-qam", "ours"]);
    assert!(!run(rig.work(), &["merge", "other"]).status.success());
    write(&rig.file("a.txt"), "half resolved\n");
    rig.round_trip(Unsaved::TRACKED.with(Unsaved::OPERATION));
    assert!(rig.admin().join("MERGE_HEAD").exists());
    // It can be finished as if nothing had been.
    rig.git(&["add", "-A"]);
    rig.git(&["commit", "-qm", "merged"]);
    assert_eq!(rig.git(&["rev-list", "--parents", "-1", "HEAD"]).split_whitespace().count(), 3);
}

#[test]
fn a_rebase_that_stopped_with_stashed_changes() {
    let rig = Rig::new();
    write(&rig.file("a.txt"), "mine\n");
    rig.git(&["commit", "-qam", "mine"]);
    git(rig.repo(), &["checkout", "-q", "main"]);
    write(&rig.repo().join("a.txt"), "upstream\n");
    git(rig.repo(), &["commit", "-qam", "upstream"]);
    write(&rig.file("b.txt"), "in no commit but the stash\n");
    assert!(!run(rig.work(), &["rebase", "--autostash", "main"]).status.success());
    let made = rig.round_trip(Unsaved::TRACKED.with(Unsaved::OPERATION).with(Unsaved::COMMITS));
    // The stash's commit is kept, and back under its name even after a collection.
    git(rig.repo(), &["gc", "-q", "--prune=now"]);
    rig.recreate();
    rig.restore(&made).unwrap();
    write(&rig.file("a.txt"), "resolved\n");
    rig.git(&["add", "a.txt"]);
    rig.git(&["rebase", "--continue"]);
    assert_eq!(fs::read_to_string(rig.file("b.txt")).unwrap(), "in no commit but the stash\n");
}

#[test]
fn a_bisect_and_refs_of_the_worktree_alone() {
    let rig = Rig::new();
    for n in 0..4 {
        write(&rig.file("b.txt"), format!("{n}\n"));
        rig.git(&["commit", "-qam", &format!("n{n}")]);
    }
    rig.git(&["bisect", "start", "HEAD", "HEAD~4"]);
    rig.git(&["update-ref", "refs/worktree/mine", "HEAD~1"]);
    rig.round_trip(Unsaved::OPERATION.with(Unsaved::PRIVATE));
    rig.git(&["bisect", "good"]);
}

#[test]
fn a_detached_head_with_commits_of_its_own() {
    let rig = Rig::new();
    rig.git(&["checkout", "-q", "--detach"]);
    write(&rig.file("a.txt"), "committed nowhere else\n");
    rig.git(&["commit", "-qam", "lost one"]);
    write(&rig.file("deep/new.txt"), "second\n");
    rig.git(&["add", "-A"]);
    rig.git(&["commit", "-qm", "lost two"]);
    write(&rig.file("a.txt"), "and dirty\n");
    let tip = rig.git(&["rev-parse", "HEAD"]);
    let made = rig.saved();
    assert_eq!(names(made.contents), ["tracked", "commits"]);
    let before = rig.snapshot();
    rig.recreate();
    git(rig.repo(), &["reflog", "expire", "--expire=now", "--all"]);
    git(rig.repo(), &["gc", "-q", "--prune=now"]);
    assert!(!run(rig.repo(), &["cat-file", "-e", tip.trim()]).status.success(), "it is gone");
    let restored = rig.restore(&made).unwrap();
    assert_eq!(restored.notes, Vec::<String>::new());
    same(&rig.snapshot(), &before);
    assert_eq!(rig.git(&["log", "--format=%s"]), "lost two\nlost one\nbase\n");
    git(rig.repo(), &["fsck", "--strict"]);
}

#[test]
fn a_clean_detached_head_is_kept_and_a_clean_branch_is_not() {
    let rig = Rig::new();
    assert_eq!(rig.save().unwrap(), None);
    assert!(!rig.store().exists(), "nothing is made for nothing");
    rig.git(&["checkout", "-q", "--detach"]);
    let made = rig.saved();
    assert_eq!((names(made.contents), made.size > 0), (vec![], true), "its HEAD and its log");
    let before = rig.snapshot();
    rig.recreate();
    rig.restore(&made).unwrap();
    same(&rig.snapshot(), &before);
}

#[test]
fn an_unborn_branch() {
    let rig = Rig::new();
    // Without `--orphan`, which git has since 2.42.
    let unborn = || {
        rig.remove();
        rig.add(&["--detach"], &[]);
        rig.git(&["symbolic-ref", "HEAD", "refs/heads/fresh"]);
        rig.git(&["rm", "-rfq", "."]);
    };
    unborn();
    write(&rig.file("first.txt"), "first\n");
    rig.git(&["add", "first.txt"]);
    write(&rig.file("first.txt"), "second\n");
    write(&rig.file("second.txt"), "second\n");
    let before = rig.snapshot();
    let made = rig.saved();
    assert_eq!(made.base, "");
    unborn();
    assert_eq!(rig.restore(&made).unwrap().notes, Vec::<String>::new());
    same(&rig.snapshot(), &before);
}

#[test]
fn a_sha256_repository() {
    let rig = Rig::with("sha256", |_| {});
    rig.git(&["checkout", "-q", "--detach"]);
    write(&rig.file("b.txt"), "own commit\n");
    rig.git(&["commit", "-qam", "own"]);
    write(&rig.file("a.txt"), "staged\n");
    rig.git(&["add", "a.txt"]);
    write(&rig.file("a.txt"), "changed\n");
    write(&rig.file("u\nv"), "untracked\n");
    write(&rig.file(".env"), "ignored\n");
    let made = rig.round_trip(
        Unsaved::TRACKED.with(Unsaved::UNTRACKED).with(Unsaved::IGNORED).with(Unsaved::COMMITS),
    );
    assert_eq!(made.base.len(), 64);
    assert!(rig.store().ends_with("salvage-sha256.git"));
    assert_eq!(rig.ask_store(&["rev-parse", "--show-object-format"]), "sha256\n");
}

/// A large file is a pointer in the repository and its content in the work tree; both are kept as
/// they are, and what would fetch or store it is not run.
#[test]
fn lfs_pointers_stay_pointers() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:\
                   4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";
    let rig = Rig::with("sha1", |repo| {
        write(&repo.join(".gitattributes"), "*.bin filter=lfs diff=lfs merge=lfs -text\n");
        write(&repo.join("kept.bin"), pointer);
        write(&repo.join("swapped.bin"), pointer);
    });
    let trap = rig.top().join("trap");
    for side in ["clean", "smudge", "process"] {
        let command = format!("touch {}; false", trap.display());
        git(rig.repo(), &["config", &format!("filter.lfs.{side}"), &command]);
    }
    // The content of one was fetched, another pointer was staged, a third is new.
    write(&rig.file("swapped.bin"), vec![3u8; 12_345]);
    write(&rig.file("new.bin"), pointer.replace("12345", "99"));
    let made = rig.saved();
    assert_eq!(names(made.contents), ["tracked", "untracked"]);
    let shown = |path: &str| rig.ask_store(&["show", &format!("{}:{path}", made.ref_name)]);
    assert_eq!(shown("worktree/swapped.bin").len(), 12_345);
    assert!(shown("worktree/new.bin").ends_with("size 99\n"));
    let before = bytes_of(rig.work());
    for side in ["clean", "smudge", "process"] {
        git(rig.repo(), &["config", "--unset", &format!("filter.lfs.{side}")]);
    }
    rig.recreate();
    for side in ["clean", "smudge"] {
        let command = format!("touch {}; false", trap.display());
        git(rig.repo(), &["config", &format!("filter.lfs.{side}"), &command]);
    }
    assert_eq!(rig.restore(&made).unwrap().notes, Vec::<String>::new());
    assert_eq!(bytes_of(rig.work()), before);
    assert!(!trap.exists(), "the filter was run");
}

/// Where git knows reftables they are salvaged like any others; where it does not, the refusal is
/// git's own, typed, and nothing is written.
#[test]
fn a_repository_with_reftables() {
    let probe = tempfile::tempdir().unwrap();
    let knows = run(probe.path(), &["init", "-q", "--ref-format=reftable"]).status.success();
    let rig = if knows {
        Rig::made(&["--ref-format=reftable"], |_| {})
    } else {
        let rig = Rig::new();
        git(rig.repo(), &["config", "core.repositoryFormatVersion", "1"]);
        git(rig.repo(), &["config", "extensions.refStorage", "reftable"]);
        write(&rig.file("a.txt"), "changed\n");
        let before = bytes_of(&rig.top());
        assert_eq!(reason(rig.save()), Reason::Io);
        let error = rig.save().unwrap_err();
        assert!(error.detail.contains("refstorage"), "{error}");
        assert_eq!(bytes_of(&rig.top()), before);
        return;
    };
    rig.git(&["update-ref", "refs/worktree/mine", "HEAD"]);
    // A cherry-pick that stops leaves refs where it leaves files otherwise.
    rig.git(&["checkout", "-q", "-b", "side"]);
    write(&rig.file("a.txt"), "side\n");
    rig.git(&["commit", "-qam", "side"]);
    rig.git(&["checkout", "-q", "work"]);
    write(&rig.file("a.txt"), "work\n");
    rig.git(&["commit", "-qam", "work"]);
    assert!(!run(rig.work(), &["cherry-pick", "side"]).status.success());
    let pick = rig.git(&["rev-parse", "CHERRY_PICK_HEAD"]);
    write(&rig.file("u"), "untracked\n");
    let contents =
        Unsaved::TRACKED.with(Unsaved::UNTRACKED).with(Unsaved::OPERATION).with(Unsaved::PRIVATE);
    rig.round_trip(contents);
    assert_eq!(rig.git(&["rev-parse", "CHERRY_PICK_HEAD"]), pick);
    rig.git(&["cherry-pick", "--abort"]);
}

#[test]
fn line_ends_and_filters_never_touch_a_byte() {
    let rig = Rig::with("sha1", |repo| {
        git(repo, &["config", "core.autocrlf", "true"]);
        write(
            &repo.join(".gitattributes"),
            "*.up filter=up\n*.id ident\n*.u16 working-tree-encoding=UTF-16\n",
        );
        write(&repo.join("mixed.txt"), "x\r\ny\r\n");
        write(&repo.join("clean.txt"), "k\r\nl\r\n");
        write(&repo.join("n.id"), "$Id$\r\n");
    });
    git(rig.repo(), &["config", "filter.up.clean", "tr a-z A-Z"]);
    git(rig.repo(), &["config", "filter.up.smudge", "tr A-Z a-z"]);
    rig.recreate();
    assert_eq!(fs::read(rig.file("clean.txt")).unwrap(), b"k\r\nl\r\n");
    assert_eq!(rig.save().unwrap(), None, "converted is not changed");
    write(&rig.file("mixed.txt"), "crlf\r\nlf\nboth\r\n");
    write(&rig.file("w.up"), "lower CASE\n");
    write(&rig.file("n.id"), "$Id: forged $\n");
    write(&rig.file("x.u16"), "not utf-16\n");
    // Git takes this one for unchanged; its bytes are not what a checkout gives.
    write(&rig.file("clean.txt"), "k\nl\r\n");
    let before = rig.snapshot();
    let made = rig.saved();
    assert_eq!(names(made.contents), ["tracked", "untracked"]);
    rig.recreate();
    assert_eq!(rig.restore(&made).unwrap().notes, Vec::<String>::new());
    // Not the status: of a converted file whose size differs from its memory of it, git says
    // "modified" without a look; without a memory it looks, and says the opposite.
    let after = rig.snapshot();
    assert_eq!((after.tree, after.index, after.bits), (before.tree, before.index, before.bits));
    assert_eq!(fs::read(rig.file("w.up")).unwrap(), b"lower CASE\n");
    assert_eq!(fs::read(rig.file("clean.txt")).unwrap(), b"k\nl\r\n");
}

#[test]
fn no_filter_of_the_user_is_run() {
    let rig = Rig::with("sha1", |repo| {
        write(&repo.join(".gitattributes"), "*.up filter=up\n");
        write(&repo.join("t.up"), "abc\n");
    });
    let trap = rig.top().join("trap");
    let command = format!("touch {} && cat", trap.display());
    git(rig.repo(), &["config", "filter.up.clean", &command]);
    git(rig.repo(), &["config", "filter.up.required", "true"]);
    // Of the same size, so that git has to look at the content.
    write(&rig.file("t.up"), "xyz\n");
    write(&rig.file("a.up"), "x\n");
    let made = rig.saved();
    assert_eq!(names(made.contents), ["tracked", "untracked"]);
    assert!(!trap.exists(), "keeping ran the user's filter");
    rig.git(&["status"]);
    assert!(trap.exists(), "git's own look runs it");
}

#[test]
fn split_and_version_four_indexes() {
    for setup in [["update-index", "--split-index"], ["update-index", "--index-version=4"]] {
        let rig = Rig::new();
        rig.git(&setup);
        write(&rig.file("a.txt"), "staged\n");
        write(&rig.file("sub/d.txt"), "staged\n");
        rig.git(&["add", "-A"]);
        rig.git(&["update-index", "--assume-unchanged", "b.txt"]);
        rig.round_trip(Unsaved::TRACKED);
    }
}

#[test]
fn sparse_checkouts() {
    for sparse in ["--no-sparse-index", "--sparse-index"] {
        let rig = Rig::new();
        rig.git(&["sparse-checkout", "set", "--cone", sparse, "sub"]);
        assert!(!rig.file("gone").exists());
        write(&rig.file("sub/c.txt"), "changed\n");
        let before = rig.snapshot();
        let made = rig.saved();
        assert_eq!(names(made.contents), ["tracked", "private"]);
        rig.recreate();
        let restored = rig.restore(&made).unwrap();
        assert_eq!(restored.notes, Vec::<String>::new());
        let after = rig.snapshot();
        assert_eq!(after.tree, before.tree);
        assert_eq!(after.status, before.status);
        assert_eq!(rig.git(&["sparse-checkout", "list"]), "sub\n");
    }
}

#[test]
fn a_submodule_is_kept_whole_and_said_to_be() {
    let rig = Rig::new();
    let inner = rig.top().join("inner");
    fs::create_dir(&inner).unwrap();
    git(&inner, &["init", "-q", "-b", "main"]);
    write(&inner.join("i.txt"), "i\n");
    git(&inner, &["add", "-A"]);
    git(&inner, &["-c", "user.name=u", "-c", "user.email=u@v", "commit", "-qm", "i"]);
    rig.git(&["submodule", "--quiet", "add", inner.to_str().unwrap(), "module"]);
    rig.git(&["commit", "-qm", "module"]);
    write(&rig.file("module/i.txt"), "changed inside\n");
    let made = rig.saved();
    assert_eq!(names(made.contents), ["submodule"]);
    let show = |path: &str| rig.ask_store(&["show", &format!("{}:{path}", made.ref_name)]);
    assert_eq!(show("submodule/module/i.txt"), "changed inside\n");
    assert!(show("submodule/module/%2egit").starts_with("gitdir: "));
    assert!(show("admin/modules/module/HEAD").starts_with("ref: "));
    rig.recreate();
    let restored = rig.restore(&made).unwrap();
    assert!(restored.notes.iter().any(|n| n.contains("submodule")), "{:?}", restored.notes);
    assert!(!restored.contents.covers(Unsaved::SUBMODULE));
}

#[test]
fn everything_at_once() {
    let rig = Rig::new();
    write(&rig.file("a.txt"), "staged\n");
    rig.git(&["add", "a.txt"]);
    write(&rig.file("a.txt"), "changed\n");
    fs::remove_file(rig.file("sub/c.txt")).unwrap();
    rig.git(&["mv", "b.txt", "moved.txt"]);
    write(&rig.file("fresh"), "untracked\n");
    write(&rig.file("x.log"), "ignored\n");
    symlink("../..", &rig.file("up"));
    chmod(&rig.file("run.sh"), 0o755);
    rig.round_trip(Unsaved::TRACKED.with(Unsaved::UNTRACKED).with(Unsaved::IGNORED));
}
