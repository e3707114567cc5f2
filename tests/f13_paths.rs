//! Wrong path (F13, F14, F16, F18): what Freehold did not make is never touched.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::os::unix::fs::symlink;

use freehold_git::GitWorkspaces;
use freehold_kernel::*;
use freehold_store::{NoRuntimes, Operation};
use support::Hooked;
use support::steps::*;
use support::*;

#[test]
fn f13_a_task_without_a_worktree_costs_its_main_checkout_nothing() {
    let ground = Ground::new();
    let calls = std::cell::RefCell::new(Vec::new());
    let host = ground.host_on(
        Hooked::new(GitWorkspaces::new(), |_, call| {
            calls.borrow_mut().push(call);
            Act::Go
        }),
        Box::new(NoRuntimes),
    );
    let plain = ground.host();
    workspace(&plain, "w");
    task(&plain, "t").unwrap();
    // Direct mode: an environment with no repository row, a session that works in the checkout.
    environment(&plain, "e", "t").unwrap();
    session(&plain, "s", "t", None).unwrap();
    mark(&ground.repository);
    let before = contents(&ground.repository);
    host.reset_environment(&ann(), "t", "e", &Operation::new("reset")).unwrap();
    work(&host);
    host.archive_task(&ann(), "t", &Operation::new("archive")).unwrap();
    work(&host);
    host.delete_task(&ann(), "t", &Operation::new("delete")).unwrap();
    work(&host);
    assert_eq!(contents(&ground.repository), before);
    assert_eq!(*calls.borrow(), Vec::<&str>::new(), "a call to git or the file system");
    // The counter counts.
    host.register_root(&ann(), &ground.root_path).unwrap();
    assert!(!calls.borrow().is_empty());
}

/// The row is tampered with; git even lists some of the paths as worktrees.
#[test]
fn f14_a_path_that_is_not_the_recorded_worktree_ends_the_job_and_nothing_goes() {
    let ground = Ground::new();
    let host = ground.host();
    let (root, made) = settled(&ground, &host);
    let top = ground.root_path.display().to_string();
    let beside = format!("{top}-x");
    std::fs::create_dir(&beside).unwrap();
    std::fs::write(format!("{beside}/file"), "beside\n").unwrap();
    let listed = ground.root_path.join("listed");
    ground.git(&["worktree", "add", "--quiet", "-b", "listed", listed.to_str().unwrap()]);
    let outside = ground.folder.path().canonicalize().unwrap().join("outside");
    ground.git(&["worktree", "add", "--quiet", "-b", "outside", outside.to_str().unwrap()]);
    mark(&ground.repository);
    mark(&made.place.path);
    let paths = [
        ground.repository.display().to_string(),
        top.clone(),
        ground.folder.path().canonicalize().unwrap().display().to_string(),
        "/".to_owned(),
        String::new(),
        "worktrees/w".to_owned(),
        beside.clone(),
        listed.display().to_string(),
        outside.display().to_string(),
        format!("{top}/.freehold"),
    ];
    let mut said = std::collections::BTreeSet::new();
    for (n, path) in paths.iter().enumerate() {
        let (task_id, e, b) = (format!("t{n}"), format!("e{n}"), format!("b{n}"));
        task(&host, &task_id).unwrap();
        environment(&host, &e, &task_id).unwrap();
        let own = host.make_worktree(&ann(), &wanted(&ground, &root, &e, &b)).unwrap();
        mark(&own.place.path);
        host.delete_task(&ann(), &task_id, &Operation::new(&format!("o{n}"))).unwrap();
        set_resource_path(&ground, own.place.path.to_str().unwrap(), path);
        let everything = |but: &str| -> std::collections::BTreeMap<_, _> {
            contents(ground.folder.path())
                .into_iter()
                .filter(|(p, _)| !p.to_string_lossy().contains(but))
                .filter(|(p, _)| !p.to_string_lossy().contains("/locks/"))
                .collect()
        };
        let before = everything("freehold.db");
        host.tick().unwrap();
        assert_eq!(everything("freehold.db"), before, "{path:?}: something was touched");
        let operation = format!("o{n}");
        assert_eq!(tries_of(&host, &operation), vec![1], "{path:?}");
        let (result, reason) = results_of(&host, &operation)[0];
        assert_eq!(result, ResourceResult::Failed, "{path:?}: {reason:?}");
        assert_eq!(job_states(&host, &operation)[0].1, JobState::Failed, "{path:?}");
        let detail = details_of(&host, &operation).concat();
        assert!(!detail.is_empty(), "{path:?}: nobody is told why");
        said.insert(detail.replace(path.as_str(), ""));
    }
    assert!(said.len() >= 7, "the reasons are not told apart: {said:#?}");
}

#[test]
fn f16_links_in_the_worktree_go_and_what_they_lead_to_stays() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    let base = ground.folder.path().canonicalize().unwrap();
    let outside = base.join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("precious"), "precious\n").unwrap();
    let modules = ground.repository.join("node_modules");
    std::fs::create_dir(&modules).unwrap();
    std::fs::write(modules.join("package"), "package\n").unwrap();
    let tree = &made.place.path;
    symlink(&outside, tree.join("outside")).unwrap();
    symlink(&modules, tree.join("node_modules")).unwrap();
    symlink(tree.parent().unwrap(), tree.join("parent")).unwrap();
    symlink("nowhere", tree.join("dangling")).unwrap();
    std::fs::create_dir(tree.join("deep")).unwrap();
    symlink("..", tree.join("deep/up")).unwrap();
    let before = (contents(&outside), contents(&modules));
    let all = Unsaved(u32::MAX);
    let discard = Operation::new("o").with_policy(UnsavedPolicy::Discard, all);
    host.delete_task(&ann(), "t", &discard).unwrap();
    work(&host);
    assert_eq!(results_of(&host, "o"), vec![(ResourceResult::Removed, Reason::None)]);
    assert!(!tree.exists());
    assert_eq!((contents(&outside), contents(&modules)), before);
    assert_eq!(git_in(&ground.repository, &["status", "--porcelain"]), "?? node_modules/");
}

/// A root inside the main repository; the folder is emptied, and git answers from the parent.
#[test]
fn f18_an_emptied_folder_inside_the_main_checkout_is_an_identity_mismatch() {
    let mut ground = Ground::new();
    ground.root_path = ground.repository.join(".wt");
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    for entry in std::fs::read_dir(&made.place.path).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let top = git_in(&made.place.path, &["rev-parse", "--show-toplevel"]);
    assert_eq!(top, ground.repository.display().to_string(), "git answers from elsewhere");
    std::fs::write(ground.repository.join("story.txt"), "the person's\n").unwrap();
    let head = std::fs::read(ground.repository.join(".git/HEAD")).unwrap();
    let tip = ground.git(&["rev-parse", "main"]);
    let refuse = Operation::new("no").with_policy(UnsavedPolicy::Refuse, Unsaved::NONE);
    let refused = host.archive_task(&ann(), "t", &refuse).unwrap_err().to_string();
    assert!(refused.contains("is no worktree"), "{refused}");
    host.reset_environment(&ann(), "t", "e", &Operation::new("reset")).unwrap();
    host.tick().unwrap();
    assert_eq!(results_of(&host, "reset")[0], (ResourceResult::Failed, Reason::IdentityMismatch));
    host.delete_task(&ann(), "t", &Operation::new("delete")).unwrap();
    quiet_of(&ground, &host);
    assert!(made.place.path.is_dir());
    assert_eq!(std::fs::read(ground.repository.join(".git/HEAD")).unwrap(), head);
    assert_eq!(ground.git(&["rev-parse", "main"]), tip);
    assert_eq!(std::fs::read(ground.repository.join("story.txt")).unwrap(), b"the person's\n");
}

fn quiet_of(ground: &Ground, host: &TestHost) {
    for minutes in [0, 2, 6, 16] {
        ground.lapse(Span::minutes(minutes));
        host.tick().unwrap();
    }
}
