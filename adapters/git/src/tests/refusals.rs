//! W-31, W-33, W-34, W-38: a refused removal names its reason, the path and a way out, and leaves
//! the tree, the index and the whole git directory as they were, byte for byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use freehold_kernel::{Reason, RemovalStep};
use freehold_store::workspaces::{Place, WorkspaceError, Workspaces};

use super::fixture::{Fixture, git, repository, whole};
use crate::GitWorkspaces;

/// What keeps standing in the way while the step is tried.
enum Stays {
    Nothing,
    Process(Child),
    Lock(#[allow(dead_code, reason = "it is held, not read")] crate::PathLock),
}

/// One way to be refused.
struct Case {
    what: &'static str,
    reason: Reason,
    /// Words that the way out has.
    help: &'static str,
    /// Puts the obstacle there; returns what is to be removed, and which path must be named.
    set: fn(&mut Fixture, &Place) -> (Place, PathBuf, Stays),
    step: RemovalStep,
}

fn at(place: &Place) -> (Place, PathBuf, Stays) {
    (place.clone(), place.path.clone(), Stays::Nothing)
}

const CASES: &[Case] = &[
    Case {
        what: "above its root",
        reason: Reason::OutsideRoot,
        help: "correct the row",
        set: |f, p| {
            let path = f.root.path.join("../main");
            (Place { path: path.clone(), ..p.clone() }, path, Stays::Nothing)
        },
        step: RemovalStep::Salvaged,
    },
    Case {
        what: "through a link",
        reason: Reason::OutsideRoot,
        help: "put the folder back",
        set: |f, p| {
            fs::rename(&p.path, f.root.path.join("real")).unwrap();
            std::os::unix::fs::symlink(f.root.path.join("real"), &p.path).unwrap();
            at(p)
        },
        step: RemovalStep::Salvaged,
    },
    Case {
        what: "the root is another's",
        reason: Reason::RootUnavailable,
        help: "register the root again",
        set: |f, p| {
            fs::write(crate::root::book(&f.root).join("root"), "of another").unwrap();
            (p.clone(), f.root.path.clone(), Stays::Nothing)
        },
        step: RemovalStep::Salvaged,
    },
    Case {
        what: "the main checkout",
        reason: Reason::NotManaged,
        help: "correct the row",
        set: |f, p| {
            let main = f.root.path.join("main");
            repository(&main);
            let place = Place { path: main.clone(), repository: main.clone(), ..p.clone() };
            (place, main, Stays::Nothing)
        },
        step: RemovalStep::Salvaged,
    },
    Case {
        what: "an empty folder in its place",
        reason: Reason::IdentityMismatch,
        help: "forget the resource",
        set: |_, p| {
            fs::remove_dir_all(&p.path).unwrap();
            fs::create_dir(&p.path).unwrap();
            at(p)
        },
        step: RemovalStep::Salvaged,
    },
    Case {
        what: "moved by a person",
        reason: Reason::IdentityMismatch,
        help: "git worktree move",
        set: |f, p| {
            let to = f.root.path.join("elsewhere");
            git(
                &f.main,
                &["worktree", "move", "-f", "-f", p.path.to_str().unwrap(), to.to_str().unwrap()],
            );
            at(p)
        },
        step: RemovalStep::Salvaged,
    },
    Case {
        what: "locked by a person",
        reason: Reason::LockedByPerson,
        help: "git worktree unlock",
        set: |f, p| {
            let path = p.path.to_str().unwrap();
            git(&f.main, &["worktree", "unlock", path]);
            git(&f.main, &["worktree", "lock", "--reason", "mine", path]);
            at(p)
        },
        step: RemovalStep::Salvaged,
    },
    Case {
        what: "a process stands in it",
        reason: Reason::InUse,
        help: "end those processes",
        set: |_, p| {
            let mut cat = Command::new("cat");
            let cat = cat.current_dir(p.path.join("src")).stdin(Stdio::piped()).spawn().unwrap();
            (p.clone(), p.path.clone(), Stays::Process(cat))
        },
        step: RemovalStep::Salvaged,
    },
    Case {
        what: "another repository in it",
        reason: Reason::Nested,
        help: "move the other repository out",
        set: |_, p| {
            repository(&p.path.join("inner"));
            at(p)
        },
        step: RemovalStep::Salvaged,
    },
    Case {
        what: "too large",
        reason: Reason::TooLarge,
        help: "raise the limit",
        set: |_, p| {
            fs::write(p.path.join("large"), vec![7; LIMIT + 1]).unwrap();
            at(p)
        },
        step: RemovalStep::Salvaged,
    },
    Case {
        what: "its repository is gone",
        reason: Reason::Io,
        help: "put it back",
        set: |f, p| {
            fs::rename(f.main.join(".git"), f.dir.path().join("away")).unwrap();
            (p.clone(), f.main.clone(), Stays::Nothing)
        },
        step: RemovalStep::Salvaged,
    },
    Case {
        what: "a file that is no index",
        reason: Reason::Io,
        help: "",
        set: |f, p| {
            let index = f.admin(p).join("index");
            fs::write(&index, "no index").unwrap();
            (p.clone(), index, Stays::Nothing)
        },
        step: RemovalStep::Salvaged,
    },
    Case {
        what: "git takes too long",
        reason: Reason::TimedOut,
        help: "tried again",
        set: |f, p| {
            use std::os::unix::fs::PermissionsExt;
            let slow = f.dir.path().join("slow-git");
            fs::write(&slow, "#!/bin/sh\nexec tail -f /dev/null\n").unwrap();
            fs::set_permissions(&slow, fs::Permissions::from_mode(0o755)).unwrap();
            f.spaces = GitWorkspaces::new().with_program(slow, Duration::from_millis(50));
            (p.clone(), f.admin(p), Stays::Nothing)
        },
        step: RemovalStep::Salvaged,
    },
    Case {
        what: "another holds the path",
        reason: Reason::Contested,
        help: "wait for it to end",
        set: |f, p| {
            let lock = f.spaces.lock(p).unwrap();
            f.spaces = GitWorkspaces::new().with_lock_wait(Duration::ZERO);
            (p.clone(), p.path.clone(), Stays::Lock(lock))
        },
        step: RemovalStep::Salvaged,
    },
    Case {
        what: "in another removal's trash",
        reason: Reason::OwnedElsewhere,
        help: "that removal settles it",
        set: |f, p| {
            f.step(p, "another", RemovalStep::Renamed).unwrap();
            at(p)
        },
        step: RemovalStep::Renamed,
    },
    Case {
        what: "still in its place when it is unregistered",
        reason: Reason::Contested,
        help: "in their order",
        set: |_, p| at(p),
        step: RemovalStep::Unregistered,
    },
    Case {
        what: "still in its place when the trash goes",
        reason: Reason::Contested,
        help: "in their order",
        set: |_, p| at(p),
        step: RemovalStep::Purged,
    },
];

/// The most that salvage may take here.
const LIMIT: usize = 4096;

fn state(f: &Fixture) -> [Vec<String>; 3] {
    let git_dir = f.main.join(".git");
    let git_dir = if git_dir.exists() { git_dir } else { f.dir.path().join("away") };
    let trees = crate::root::leftovers(&f.root);
    let trees = trees.iter().flat_map(|t| whole(t)).collect();
    let trash = crate::root::trashes(&f.root);
    let trash = trash.iter().flat_map(|(_, t)| whole(t)).collect();
    [trees, whole(&git_dir), trash]
}

fn refusal(f: &Fixture, place: &Place, step: RemovalStep) -> WorkspaceError {
    f.step_up_to(place, "removal", step, true, LIMIT as u64).unwrap_err()
}

#[test]
fn a_refused_removal_names_reason_path_and_a_way_out_and_leaves_every_byte() {
    for case in CASES {
        let what = case.what;
        let mut f = Fixture::new();
        let place = f.made("w");
        fs::write(place.path.join("a.txt"), "changed\n").unwrap();
        fs::write(place.path.join("new"), "untracked\n").unwrap();
        let (place, path, mut stays) = (case.set)(&mut f, &place);
        let before = state(&f);
        assert!(before[1].len() > 10, "{what}: nothing to compare");
        // Twice: a second try finds the same.
        for _ in 0..2 {
            let refused = refusal(&f, &place, case.step);
            assert_eq!(refused.reason, case.reason, "{what}: {refused}");
            let inside = refused.path.starts_with(&place.path);
            assert!(refused.path == path || inside, "{what}: not {}: {refused}", path.display());
            assert!(!refused.detail.is_empty(), "{what}");
            assert!(refused.help.len() > 10, "{what}: {:?}", refused.help);
            assert!(refused.help.contains(case.help), "{what}: {:?}", refused.help);
            assert_ne!(refused.help, refused.detail, "{what}");
        }
        for (now, before) in state(&f).iter().zip(&before) {
            assert_eq!(now, before, "{what}");
        }
        if let Stays::Process(child) = &mut stays {
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    }
}

/// The comparison itself sees a byte, a time and a mode.
#[test]
fn the_comparison_sees_a_byte_a_time_and_a_mode() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let changes: [fn(&Path); 3] = [
        |file| {
            let time = fs::metadata(file).unwrap().modified().unwrap();
            fs::write(file, "2").unwrap();
            fs::File::open(file).unwrap().set_modified(time).unwrap();
        },
        |file| fs::File::open(file).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap(),
        |file| fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap(),
    ];
    fs::write(&file, "1").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    for change in changes {
        let before = whole(folder.path());
        assert_eq!(whole(folder.path()), before);
        change(&file);
        assert_ne!(whole(folder.path()), before);
    }
}
