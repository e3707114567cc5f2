//! W-31, W-33: what an inspection sees, and that it changes nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use freehold_kernel::{Found, Reason, Unsaved};
use freehold_store::workspaces::Place;

use super::fixture::{Fixture, git, git_fails, repository};

/// One way to have unsaved work, and what it is.
struct Case {
    name: &'static str,
    dirty: fn(&Fixture, &Place),
    kinds: Unsaved,
    /// A word that the details must have.
    says: &'static str,
}

fn write(place: &Place, name: &str, text: &str) {
    let path = place.path.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn commit(dir: &Path, message: &str) {
    git(dir, &["commit", "--allow-empty", "--quiet", "-m", message]);
}

/// Two commits that change the same line, the second on the branch `other`.
fn diverge(f: &Fixture, place: &Place) {
    git(&f.main, &["branch", "other"]);
    write(place, "a.txt", "ours\n");
    git(&place.path, &["commit", "--quiet", "-am", "ours"]);
    let scratch = f.dir.path().join("scratch");
    git(&f.main, &["worktree", "add", "--quiet", scratch.to_str().unwrap(), "other"]);
    fs::write(scratch.join("a.txt"), "theirs\n").unwrap();
    git(&scratch, &["commit", "--quiet", "-am", "theirs"]);
}

fn with_submodule(f: &Fixture, place: &Place) {
    let source = f.dir.path().join("sub-source");
    repository(&source);
    git(&place.path, &["submodule", "--quiet", "add", source.to_str().unwrap(), "sub"]);
    git(&place.path, &["commit", "--quiet", "-m", "submodule"]);
}

const CASES: &[Case] = &[
    Case { name: "clean", dirty: |_, _| {}, kinds: Unsaved::NONE, says: "" },
    Case {
        name: "modified",
        dirty: |_, p| write(p, "a.txt", "changed"),
        kinds: Unsaved::TRACKED,
        says: "changed (.M): \"a.txt\"",
    },
    Case {
        name: "staged",
        dirty: |_, p| {
            write(p, "a.txt", "changed");
            git(&p.path, &["add", "a.txt"]);
        },
        kinds: Unsaved::TRACKED,
        says: "changed (M.)",
    },
    Case {
        name: "deleted",
        dirty: |_, p| fs::remove_file(p.path.join("src/b.txt")).unwrap(),
        kinds: Unsaved::TRACKED,
        says: "src/b.txt",
    },
    Case {
        name: "renamed",
        dirty: |_, p| {
            git(&p.path, &["mv", "a.txt", "z z.txt"]);
        },
        kinds: Unsaved::TRACKED,
        says: "z z.txt",
    },
    Case {
        name: "mode only, with core.fileMode off",
        dirty: |_, p| {
            git(&p.path, &["config", "core.fileMode", "false"]);
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(p.path.join("a.txt"), mode).unwrap();
        },
        kinds: Unsaved::TRACKED,
        says: "a.txt",
    },
    Case {
        name: "untracked",
        dirty: |_, p| write(p, "TESTE.md", "x"),
        kinds: Unsaved::UNTRACKED,
        says: "untracked: \"TESTE.md\"",
    },
    Case {
        name: "untracked, with showUntrackedFiles off",
        dirty: |_, p| {
            git(&p.path, &["config", "status.showUntrackedFiles", "no"]);
            write(p, "new/deep", "x");
        },
        kinds: Unsaved::UNTRACKED,
        says: "new/deep",
    },
    Case {
        name: "a name with a line break",
        dirty: |_, p| write(p, "x\nuntracked: y", "x"),
        kinds: Unsaved::UNTRACKED,
        says: "\"x\\nuntracked: y\"",
    },
    Case {
        name: "ignored file (F02)",
        dirty: |_, p| write(p, ".env", "secret"),
        kinds: Unsaved::IGNORED,
        says: "ignored: \".env\"",
    },
    Case {
        name: "ignored folder",
        dirty: |_, p| write(p, "target/out", "x"),
        kinds: Unsaved::IGNORED,
        says: "target/",
    },
    Case {
        name: "ignored by the repository's own exclude file",
        dirty: |f, p| {
            fs::create_dir_all(f.main.join(".git/info")).unwrap();
            fs::write(f.main.join(".git/info/exclude"), "*.log\n").unwrap();
            write(p, "x.log", "x");
        },
        kinds: Unsaved::IGNORED,
        says: "x.log",
    },
    Case {
        name: "merge",
        dirty: |f, p| {
            diverge(f, p);
            git_fails(&p.path, &["merge", "other"]);
        },
        kinds: Unsaved::TRACKED.with(Unsaved::OPERATION),
        says: "a merge is in progress",
    },
    Case {
        name: "merge without conflict, not committed",
        dirty: |f, p| {
            git(&f.main, &["branch", "other"]);
            commit(&p.path, "ours");
            let tree = git(&p.path, &["rev-parse", "HEAD^{tree}"]);
            let theirs = git(&p.path, &["commit-tree", "-p", "other", "-m", "t", &tree]);
            git(&p.path, &["merge", "--quiet", "--no-commit", "--no-ff", &theirs]);
        },
        kinds: Unsaved::OPERATION,
        says: "MERGE_HEAD",
    },
    Case {
        name: "cherry-pick",
        dirty: |f, p| {
            diverge(f, p);
            git_fails(&p.path, &["cherry-pick", "other"]);
        },
        kinds: Unsaved::TRACKED.with(Unsaved::OPERATION),
        says: "a cherry-pick",
    },
    Case {
        name: "revert",
        dirty: |_, p| {
            write(p, "a.txt", "2");
            git(&p.path, &["commit", "--quiet", "-am", "2"]);
            write(p, "a.txt", "3");
            git(&p.path, &["commit", "--quiet", "-am", "3"]);
            git_fails(&p.path, &["revert", "HEAD~1"]);
        },
        kinds: Unsaved::TRACKED.with(Unsaved::OPERATION),
        says: "a revert",
    },
    Case {
        name: "rebase",
        dirty: |f, p| {
            diverge(f, p);
            git_fails(&p.path, &["rebase", "other"]);
        },
        kinds: Unsaved::TRACKED.with(Unsaved::OPERATION),
        says: "a rebase",
    },
    Case {
        name: "bisect",
        dirty: |_, p| {
            for n in 0..3 {
                commit(&p.path, &n.to_string());
            }
            git(&p.path, &["bisect", "start", "HEAD", "HEAD~3"]);
        },
        kinds: Unsaved::OPERATION.with(Unsaved::PRIVATE),
        says: "a bisect",
    },
    Case {
        name: "detached with a commit (F08)",
        dirty: |_, p| {
            git(&p.path, &["checkout", "--quiet", "--detach"]);
            commit(&p.path, "only here");
        },
        kinds: Unsaved::COMMITS,
        says: "1 commit(s) that nothing else reaches",
    },
    Case {
        name: "detached on a commit of a branch",
        dirty: |_, p| {
            git(&p.path, &["checkout", "--quiet", "--detach"]);
        },
        kinds: Unsaved::NONE,
        says: "",
    },
    Case {
        name: "commits on the branch, which stays",
        dirty: |_, p| commit(&p.path, "on the branch"),
        kinds: Unsaved::NONE,
        says: "",
    },
    Case {
        name: "assume-unchanged",
        dirty: |_, p| {
            git(&p.path, &["update-index", "--assume-unchanged", "a.txt"]);
            write(p, "a.txt", "hidden");
        },
        kinds: Unsaved::HIDDEN,
        says: "hidden from status: \"a.txt\"",
    },
    Case {
        name: "skip-worktree",
        dirty: |_, p| {
            git(&p.path, &["update-index", "--skip-worktree", "a.txt"]);
            write(p, "a.txt", "hidden");
        },
        kinds: Unsaved::HIDDEN,
        says: "hidden from status",
    },
    Case {
        name: "sparse checkout: its own files, nothing hidden",
        dirty: |_, p| {
            git(&p.path, &["sparse-checkout", "set", "--no-cone", "/a.txt"]);
        },
        kinds: Unsaved::PRIVATE,
        says: "its sparse file",
    },
    Case {
        name: "a ref of its own",
        dirty: |_, p| {
            git(&p.path, &["update-ref", "refs/worktree/mine", "HEAD"]);
        },
        kinds: Unsaved::PRIVATE,
        says: "refs/worktree/mine",
    },
    Case {
        name: "configuration of its own",
        dirty: |_, p| {
            git(&p.path, &["config", "extensions.worktreeConfig", "true"]);
            git(&p.path, &["config", "--worktree", "a.b", "c"]);
        },
        kinds: Unsaved::PRIVATE,
        says: "its own configuration",
    },
    Case {
        name: "a filter that makes every content look the same",
        dirty: |_, p| {
            fs::create_dir_all(p.repository.join(".git/info")).unwrap();
            fs::write(p.repository.join(".git/info/attributes"), "a.txt filter=same\n").unwrap();
            git(&p.path, &["config", "filter.same.clean", "echo one"]);
            write(p, "a.txt", "work that the filter hides");
        },
        kinds: Unsaved::TRACKED,
        says: "a.txt",
    },
    Case { name: "submodule, clean (F20)", dirty: with_submodule, kinds: Unsaved::NONE, says: "" },
    Case {
        name: "submodule, never initialised",
        dirty: |f, p| {
            with_submodule(f, p);
            git(&p.path, &["submodule", "--quiet", "deinit", "-f", "sub"]);
        },
        kinds: Unsaved::NONE,
        says: "",
    },
    Case {
        name: "submodule, never initialised, with a file",
        dirty: |f, p| {
            with_submodule(f, p);
            git(&p.path, &["submodule", "--quiet", "deinit", "-f", "sub"]);
            write(p, "sub/lost", "x");
        },
        kinds: Unsaved::SUBMODULE,
        says: "never initialised",
    },
    Case {
        name: "submodule with an untracked file",
        dirty: |f, p| {
            with_submodule(f, p);
            write(p, "sub/new", "x");
        },
        kinds: Unsaved::SUBMODULE,
        says: "submodule \"sub\": untracked: \"new\"",
    },
    Case {
        name: "submodule with an ignored file",
        dirty: |f, p| {
            with_submodule(f, p);
            write(p, "sub/.env", "x");
        },
        kinds: Unsaved::SUBMODULE,
        says: "submodule \"sub\": ignored",
    },
    Case {
        name: "submodule with a change, ignored by configuration",
        dirty: |f, p| {
            with_submodule(f, p);
            git(&p.path, &["config", "submodule.sub.ignore", "all"]);
            write(p, "sub/a.txt", "x");
        },
        kinds: Unsaved::SUBMODULE,
        says: "submodule \"sub\": changed",
    },
    Case {
        name: "submodule with a commit of its own",
        dirty: |f, p| {
            with_submodule(f, p);
            commit(&p.path.join("sub"), "only here");
        },
        kinds: Unsaved::SUBMODULE.with(Unsaved::TRACKED),
        says: "submodule \"sub\": 1 commit(s)",
    },
    Case {
        name: "submodule with a stash",
        dirty: |f, p| {
            with_submodule(f, p);
            write(p, "sub/a.txt", "x");
            git(&p.path.join("sub"), &["stash", "--quiet"]);
        },
        kinds: Unsaved::SUBMODULE,
        says: "commit(s) that nothing else reaches",
    },
    Case {
        name: "submodule whose repository is in the tree",
        dirty: |f, p| {
            with_submodule(f, p);
            let link = fs::read_to_string(p.path.join("sub/.git")).unwrap();
            let real = p.path.join("sub").join(link.trim().strip_prefix("gitdir: ").unwrap());
            let real = fs::canonicalize(real).unwrap();
            fs::remove_file(p.path.join("sub/.git")).unwrap();
            fs::rename(real, p.path.join("sub/.git")).unwrap();
            git(&p.path.join("sub"), &["config", "--unset", "core.worktree"]);
        },
        kinds: Unsaved::SUBMODULE,
        says: "its repository lies in the worktree itself",
    },
];

#[test]
fn every_kind_of_unsaved_work_is_seen_as_what_it_is() {
    for case in CASES {
        let f = Fixture::new();
        let place = f.made("w");
        (case.dirty)(&f, &place);
        let found = f.inspect(&place);
        let (name, details) = (case.name, &found.details);
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
