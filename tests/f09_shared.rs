//! Shared workspaces and live users (F09, F11, F12).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::cell::Cell;
use std::os::unix::fs::symlink;
use std::process::{Command as Program, Stdio};

use freehold_kernel::*;
use freehold_store::{HostError, NoRuntimes, Operation};
use support::Hooked;
use support::steps::*;
use support::*;

#[test]
fn f09_deleting_the_borrower_touches_nothing_of_its_parent() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    child_task(&host, "t2", Some("t")).unwrap();
    session(&host, "s2", "t2", Some("e")).unwrap();
    mark(&made.place.path);
    let admin = ground.repository.join(".git/worktrees");
    let before = (contents(&made.place.path), contents(&admin), ground.branches());
    host.delete_task(&ann(), "t2", &Operation::new("o")).unwrap();
    work(&host);
    drop(host);
    // Restart, and again.
    let host = ground.host();
    quiet(&ground, &host);
    assert_eq!((contents(&made.place.path), contents(&admin), ground.branches()), before);
    assert_eq!(results_of(&host, "o"), Vec::new(), "the job holds a worktree");
    assert_eq!(outcomes(&host), Vec::new());
    // The parent's session keeps working there.
    submit(&host, "s", "1").unwrap();
    run(&host, "1");
    end(&host, "1", "2");
    assert_eq!(environment_of(&session_row(&host, "s").unwrap()), environment_of_slot(&host));
}

fn environment_of_slot(host: &TestHost) -> Option<u128> {
    environment_row(host, "e").map(|e| e.id.0)
}

#[test]
fn f09_an_archived_owner_is_preserved_and_a_new_child_is_refused_by_its_name() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    child_task(&host, "t2", Some("t")).unwrap();
    session(&host, "s2", "t2", Some("e")).unwrap();
    mark(&made.place.path);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    work(&host);
    assert!(is_marked(&made.place.path));
    assert_eq!(results_of(&host, "o"), vec![(ResourceResult::Preserved, Reason::Borrowed)]);
    let refused = child_task(&host, "t3", Some("t")).unwrap_err();
    assert!(matches!(refused, HostError::Refused(_)), "{refused}");
    assert!(in_the_way(&Err::<(), _>(refused)).iter().any(|(_, id)| id == "t"));
}

#[test]
fn f11_a_root_under_two_spellings_is_one_root() {
    let ground = Ground::new();
    let host = ground.host();
    let (root, _) = settled(&ground, &host);
    let base = ground.folder.path().canonicalize().unwrap();
    let link = base.join("link");
    symlink(&ground.root_path, &link).unwrap();
    let dotted = base.join("repository/../worktrees");
    let slash = format!("{}/", ground.root_path.display());
    for spelling in [link.as_path(), dotted.as_path(), slash.as_ref()] {
        assert_eq!(host.register_root(&ann(), spelling).unwrap(), root, "{}", spelling.display());
    }
    // Names that differ only in letter case are two.
    let upper = base.join("WORKTREES");
    assert_ne!(host.register_root(&ann(), &upper).unwrap(), root);
    assert_eq!(host.roots().unwrap().len(), 2);
}

#[test]
fn f11_a_row_that_spells_anothers_worktree_differently_removes_nothing() {
    let ground = Ground::new();
    let host = ground.host();
    let (root, kept) = settled(&ground, &host);
    mark(&kept.place.path);
    let base = ground.folder.path().canonicalize().unwrap();
    symlink(&ground.root_path, base.join("link")).unwrap();
    let tail = kept.place.path.strip_prefix(&ground.root_path).unwrap().display().to_string();
    let spellings = [
        format!("{}/{tail}", base.join("link").display()),
        format!("{}/", kept.place.path.display()),
        format!("{}/x/../{tail}", ground.root_path.display()),
        format!("{}/{}", ground.root_path.display(), tail.to_uppercase()),
    ];
    for (n, spelling) in spellings.iter().enumerate() {
        let (task_id, e, b) = (format!("t{n}"), format!("e{n}"), format!("b{n}"));
        task(&host, &task_id).unwrap();
        environment(&host, &e, &task_id).unwrap();
        let made = host.make_worktree(&ann(), &wanted(&ground, &root, &e, &b)).unwrap();
        mark(&made.place.path);
        let operation = format!("o{n}");
        host.delete_task(&ann(), &task_id, &Operation::new(&operation)).unwrap();
        set_resource_path(&ground, made.place.path.to_str().unwrap(), spelling);
        host.tick().unwrap();
        assert!(is_marked(&kept.place.path), "{spelling}: the other's worktree went");
        assert!(is_marked(&made.place.path), "{spelling}: what the row does not name went");
        let (result, _) = results_of(&host, &operation)[0];
        assert_ne!(result, ResourceResult::Removed, "{spelling}");
    }
    assert!(ground.registered().contains(&kept.place.path));
    kept_verifies(&host, &kept);
}

fn kept_verifies(host: &TestHost, made: &freehold_store::Made) {
    use freehold_store::Workspaces;
    host.workspaces().verify(&made.place).unwrap();
}

#[test]
fn f12_who_comes_between_the_check_and_the_removal_keeps_the_worktree() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    // Archived and preserved for a borrower, who leaves: the pass reserves the removal.
    task(&host, "u").unwrap();
    session(&host, "guest", "u", Some("e")).unwrap();
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    work(&host);
    host.delete_session(&ann(), "guest").unwrap();
    // Between the inspection and the permission the owner comes back and works again.
    let done = Cell::new(false);
    let worker = ground.hooked(|point, call| {
        if call == "inspect" && point % 2 == 1 && !done.replace(true) {
            let person = ground.host();
            person.unarchive_task(&ann(), "t", false).unwrap();
            submit(&person, "s", "1").unwrap();
            run(&person, "1");
        }
        Act::Go
    });
    worker.tick().unwrap();
    assert!(done.get(), "the check was never reached");
    assert!(is_marked(&made.place.path));
    assert_eq!(outcomes(&host), Vec::new());
}

#[test]
fn f12_a_process_that_stands_in_the_worktree_is_waited_for_and_never_killed() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    // It enters after the inspection that found nobody, just before the rename.
    let user = Cell::new(None);
    let worker = ground.host_on(
        Hooked::new(freehold_git::GitWorkspaces::new(), |point, call| {
            if call == "renamed" && point % 2 == 0 && user.take().is_none() {
                let child = Program::new("cat")
                    .current_dir(&made.place.path)
                    .stdin(Stdio::piped())
                    .stdout(Stdio::null())
                    .spawn()
                    .unwrap();
                user.set(Some(child));
            }
            Act::Go
        }),
        Box::new(NoRuntimes),
    );
    worker.tick().unwrap();
    let mut child = user.take().expect("the rename was never tried");
    assert!(is_marked(&made.place.path), "removed under a process");
    assert!(removal_details(&host).concat().contains(&child.id().to_string()));
    assert!(child.try_wait().unwrap().is_none(), "the process was killed");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    drop(worker);
    quiet(&ground, &host);
    assert!(!made.place.path.exists());
}
