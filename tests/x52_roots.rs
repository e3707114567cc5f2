//! X52: a managed root that is not mounted, a job on a host that does not serve it, two stores
//! beside one root. Nothing is taken for absent, nothing of the other store is touched, and the
//! jobs wait and converge once the root is back.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use freehold_git::GitWorkspaces;
use freehold_kernel::*;
use freehold_store::{Host, NoRuntimes, OnThisThread, Operation, Wanted};
use support::steps::*;
use support::*;

/// A worktree with a marker whose task is deleted, its job not yet begun.
fn deleted(ground: &Ground, host: &TestHost) -> std::path::PathBuf {
    let (_, made) = settled(ground, host);
    mark(&made.place.path);
    host.delete_task(&ann(), "t", &Operation::new("delete")).unwrap();
    made.place.path
}

fn assert_waits(host: &TestHost) {
    assert_eq!(jobs(host), [(Trigger::Delete, JobState::RetryWait)]);
    for resource in resources_of(host, "delete") {
        let gone = matches!(resource.result, ResourceResult::Removed | ResourceResult::Absent);
        assert!(!gone, "{resource:?}");
    }
    assert_eq!(outcomes(host), [], "a removal was permitted");
}

#[test]
fn x52_a_root_that_is_not_mounted_is_waited_for() {
    // The disk is gone with everything on it, or an empty mount point stands in its place.
    for mount_point in [false, true] {
        let ground = Ground::new();
        let host = ground.host();
        let path = deleted(&ground, &host);
        let away = ground.folder.path().join("away");
        std::fs::rename(&ground.root_path, &away).unwrap();
        if mount_point {
            std::fs::create_dir(&ground.root_path).unwrap();
        }
        let git_dir = contents(&ground.repository.join(".git"));
        for minutes in [0, 2, 6] {
            ground.pass(Span::minutes(minutes), &[&host]);
            host.tick().unwrap();
            assert_waits(&host);
        }
        assert_eq!(contents(&ground.repository.join(".git")), git_dir, "a registration went");
        // Nothing is made in it either, and nothing is left of the try.
        task(&host, "u").unwrap();
        environment(&host, "f", "u").unwrap();
        let root = host.roots().unwrap()[0].name.clone();
        host.make_worktree(&ann(), &wanted(&ground, &root, "f", "c")).unwrap_err();
        assert!(entries(&ground.root_path).is_empty(), "something was made at the mount point");
        assert!(contents(&away).values().any(|c| c == b"marker\n"));

        if mount_point {
            std::fs::remove_dir(&ground.root_path).unwrap();
        }
        std::fs::rename(&away, &ground.root_path).unwrap();
        quiet(&ground, &host);
        assert!(!path.exists());
        assert_eq!(jobs(&host), [(Trigger::Delete, JobState::Succeeded)]);
        assert!(salvage_holds(&ground, "marker\n"));
        assert_tracked(&ground, &host, &["b"]);
    }
}

#[test]
fn x52_a_host_that_does_not_serve_the_root_leaves_its_jobs_alone() {
    let ground = Ground::new();
    let host = ground.host();
    let path = deleted(&ground, &host);
    let elsewhere = || {
        let store = ground.store.open(&ground.clock);
        let runtimes = Box::new(NoRuntimes);
        Host::start(store, GitWorkspaces::new(), OnThisThread, runtimes, "another-machine").unwrap()
    };
    let other = elsewhere();
    let before = contents(ground.folder.path().join("worktrees").as_path());
    for _ in 0..3 {
        ground.pass(Span::minutes(20), &[&other]);
        other.tick().unwrap();
    }
    assert_eq!(contents(&ground.root_path), before);
    assert_eq!(jobs(&other), [(Trigger::Delete, JobState::Pending)]);
    assert_eq!(tries_of(&other, "delete"), [0], "a try was spent");
    // Nobody serves it for more than a week: it is given up in words, and nothing is touched.
    ground.lapse(Span::minutes(8 * 24 * 60));
    let other = elsewhere();
    for _ in 0..3 {
        other.tick().unwrap();
    }
    assert_eq!(jobs(&other), [(Trigger::Delete, JobState::Failed)]);
    assert!(
        results_of(&other, "delete").iter().all(|(_, why)| *why == Reason::RootUnavailable),
        "{:?}",
        results_of(&other, "delete")
    );
    assert_eq!(contents(&ground.root_path), before);
    // Its host is back, and a person asks for another try.
    let host = ground.host();
    assert!(path.exists());
    let job = rows(&host, &[TableId::Jobs]).view.jobs.iter().next().unwrap().id;
    host.ask(&ann(), None, |_| Ok(Command::Operator(OperatorCommand::Retry { job }))).unwrap();
    quiet(&ground, &host);
    assert_eq!(jobs(&host), [(Trigger::Delete, JobState::Succeeded)]);
    assert!(salvage_holds(&ground, "marker\n"));
    assert_tracked(&ground, &host, &["b"]);
}

#[test]
fn x52_two_stores_beside_one_root_never_touch_each_others() {
    let ground = Ground::new();
    let first = ground.host();
    let path = deleted(&ground, &first);
    let store = StorePlace::fresh(ground.folder.path().join("second.db"));
    let second = Host::start(
        store.open(&ground.clock),
        GitWorkspaces::new(),
        OnThisThread,
        Box::new(NoRuntimes),
        "test-machine",
    )
    .unwrap();
    workspace(&second, "w");
    for (t, e, b) in [("t", "e", "theirs"), ("gone", "g", "gone")] {
        task(&second, t).unwrap();
        environment(&second, e, t).unwrap();
        let root = second.register_root(&ann(), &ground.root_path).unwrap();
        let wanted = Wanted {
            environment: e.to_owned(),
            repository: ground.repository.display().to_string(),
            slug: b.to_owned(),
            branch: b.to_owned(),
            start: None,
            root,
        };
        let made = second.make_worktree(&ann(), &wanted).unwrap();
        std::fs::write(made.place.path.join("MARKER"), format!("of {t}\n")).unwrap();
    }
    second.delete_task(&ann(), "gone", &Operation::new("delete")).unwrap();
    let kept = second.places_of("t").unwrap()[0].path.clone();
    let going = second
        .roots()
        .unwrap()
        .iter()
        .flat_map(freehold_git::leftovers)
        .find(|p| *p != path && *p != kept && !kept.starts_with(p))
        .unwrap();
    let theirs = |at: &std::path::Path| contents(at);
    let (kept_before, going_before) = (theirs(&kept), theirs(&going));
    // The first store works until nothing is left to do: its own.
    quiet(&ground, &first);
    assert!(!path.exists());
    assert_eq!((theirs(&kept), theirs(&going)), (kept_before.clone(), going_before));
    let book = ground.root_path.join(".freehold");
    let stores: Vec<_> = entries(&book).into_iter().filter(|p| p.join("root").exists()).collect();
    assert_eq!(stores.len(), 2, "each has its own marker");
    // Then the second.
    work(&second);
    assert_eq!(jobs(&second), [(Trigger::Delete, JobState::Succeeded)]);
    assert_eq!(theirs(&kept), kept_before);
    assert_eq!(ground.registered(), [kept]);
    for (host, text) in [(&first, "marker\n"), (&second, "of gone\n")] {
        assert!(salvage_holds(&ground, text));
        assert_eq!(freehold_git::trashes(&host.roots().unwrap()[0]), []);
        assert_eq!(freehold_git::salvage::list(&host.roots().unwrap()[0]).unwrap().len(), 1);
    }
}
