//! What a fresh pair of eyes broke in the embedding path, each as it was found, each now held.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::cell::Cell;
use std::path::Path;
use std::sync::Mutex;

use freehold_kernel::*;
use freehold_store::{HostError, Operation, Stands};
use support::steps::{details_of, outcomes, resources_of, results_of, salvaged_markers, work};
use support::*;

/// Archived, cleaned up and unarchived again: the salvage entry and the row.
fn archived_and_back(host: &TestHost, made: &freehold_store::Made) -> (String, String) {
    mark(&made.place.path);
    host.archive_task(&ann(), "t", &Operation::new("there")).unwrap();
    work(host);
    let report = host.unarchive_task(&ann(), "t", false).unwrap().remove(0);
    let Stands::FromBranchAndSalvage(salvage) = report.stands else { panic!("{report:?}") };
    (salvage, report.repo)
}

#[test]
fn a_root_that_is_away_is_not_made_again() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    let away = ground.root_path.with_extension("away");
    std::fs::rename(&ground.root_path, &away).unwrap();
    // What every host does at its start.
    let host = ground.host();
    let registered = host.register_root(&ann(), &ground.root_path);
    let Err(HostError::Workspace(error)) = registered else { panic!("{registered:?}") };
    assert_eq!(error.reason, Reason::RootUnavailable);
    host.tick().unwrap();
    assert!(!ground.root_path.exists(), "an empty root was made in its place");
    std::fs::rename(&away, &ground.root_path).unwrap();
    assert!(is_marked(&made.place.path));
    assert_eq!(ground.registered(), vec![made.place.path.clone()]);
    assert_eq!(jobs(&host)[0].1, JobState::RetryWait);
}

#[test]
fn a_persons_branch_of_the_same_name_survives_the_compensation() {
    let ground = Ground::new();
    let host = ground.host();
    workspace(&host, "w");
    task(&host, "t").unwrap();
    environment(&host, "e", "t").unwrap();
    let root = host.register_root(&ann(), &ground.root_path).unwrap();
    let wanted = wanted(&ground, &root, "e", "feature");
    let made = host.make_worktree_between(&ann(), &wanted, &mut |at| {
        if at == "intended" {
            ground.git(&["branch", "feature"]);
        }
    });
    assert!(made.is_err());
    assert_eq!(ground.branches(), vec!["feature".to_owned()]);
    assert!(host.unresolved_attempts().unwrap().is_empty());
}

#[test]
fn a_restore_is_decided_before_anything_is_written() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    let (salvage, repo) = archived_and_back(&host, &made);
    let again = host.recreate(&ann(), &repo).unwrap();
    let bob = freehold_store::Who::new("bob", Permissions::SESSION);
    assert_eq!(refused(host.restore(&bob, &salvage)), Guard::Permission);
    assert!(!is_marked(&again.place.path), "refused, and done all the same");
    host.archive_task(&ann(), "t", &Operation::new("again")).unwrap();
    assert_eq!(refused(host.restore(&ann(), &salvage)), Guard::TaskActive);
    assert!(!is_marked(&again.place.path), "refused, and done all the same");
}

#[test]
fn salvage_that_was_never_put_back_is_offered_again() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    let (salvage, repo) = archived_and_back(&host, &made);
    host.recreate(&ann(), &repo).unwrap();
    host.archive_task(&ann(), "t", &Operation::new("again")).unwrap();
    work(&host);
    let report = host.unarchive_task(&ann(), "t", false).unwrap().remove(0);
    assert_eq!(report.stands, Stands::FromBranchAndSalvage(salvage));
}

#[test]
fn what_a_reset_salvaged_is_restored_into_the_new_worktree() {
    let ground = Ground::new();
    let host = ground.host();
    let (root, made) = settled(&ground, &host);
    mark(&made.place.path);
    host.reset_environment(&ann(), "t", "e", &Operation::new("o")).unwrap();
    work(&host);
    let salvage = rows(&host, &[TableId::Salvage]);
    let salvage = salvage.view.salvage.iter().next().unwrap().id;
    let salvage = freehold_store::names::uuid_text(salvage.0);
    let new = host.make_worktree(&ann(), &wanted(&ground, &root, "e", "b2")).unwrap();
    host.restore_into(&ann(), &salvage, Some(&new.repo)).unwrap();
    assert!(is_marked(&new.place.path));
}

#[test]
fn with_consent_what_is_too_large_to_salvage_goes() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    std::fs::write(made.place.path.join("big"), vec![7u8; 100_000]).unwrap();
    let settings = Settings { salvage_limit: 1_000, ..Settings::DEFAULT };
    host.ask(&ann(), None, |_| Ok(Command::Operator(OperatorCommand::ChangeSettings { settings })))
        .unwrap();
    let all = Unsaved(u32::MAX);
    let discard = Operation::new("o").with_policy(UnsavedPolicy::Discard, all);
    host.archive_task(&ann(), "t", &discard).unwrap();
    work(&host);
    assert!(!made.place.path.exists());
    assert_eq!(jobs(&host)[0].1, JobState::Succeeded);
}

#[test]
fn consent_reaches_no_further_than_its_words() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    std::fs::write(made.place.path.join("story.txt"), "changed\n").unwrap();
    let discard = Operation::new("o").with_policy(UnsavedPolicy::Discard, Unsaved::TRACKED);
    host.archive_task(&ann(), "t", &discard).unwrap();
    // An untracked file comes after the permission: nobody consented to lose it.
    let done = Cell::new(false);
    let hooked = ground.hooked(|_, call| {
        if call == "renamed" && !done.replace(true) {
            std::fs::write(made.place.path.join("MARKER"), "marker\n").unwrap();
        }
        Act::Go
    });
    hooked.tick().unwrap();
    drop(hooked);
    assert!(!made.place.path.exists());
    let report = host.unarchive_task(&ann(), "t", false).unwrap().remove(0);
    assert!(matches!(report.stands, Stands::FromBranchAndSalvage(_)), "{report:?}");
}

#[test]
fn a_refusal_for_unsaved_work_names_it() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    let refuse = Operation::new("o").with_policy(UnsavedPolicy::Refuse, Unsaved::NONE);
    let error = host.archive_task(&ann(), "t", &refuse).unwrap_err();
    let says = error.to_string();
    assert_eq!(error.guard(), Some(Guard::NothingUnsaved));
    assert!(says.contains("MARKER") && says.contains("story.txt"), "{says}");
    assert!(says.contains(&made.place.path.display().to_string()), "{says}");
}

#[test]
fn a_host_that_was_away_for_eight_days_goes_on() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    ground.clock.advance(Span::hours(8 * 24));
    // The same process: its lease has lapsed long ago.
    work(&host);
    assert_eq!(jobs(&host)[0].1, JobState::Succeeded);
    assert!(!made.place.path.exists());
}

/// Something that lives only in the administration directory changes after salvage: it is found
/// again, even after the repository was tidied.
fn survives(change: impl Fn(&Path) -> String) {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    git_in(&made.place.path, &["checkout", "-q", "--detach"]);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    let (id, done) = (Mutex::new(String::new()), Cell::new(false));
    let hooked = ground.hooked(|_, call| {
        if call == "renamed" && !done.replace(true) {
            *id.lock().unwrap() = change(&made.place.path);
        }
        Act::Go
    });
    for _ in 0..3 {
        hooked.tick().unwrap();
    }
    drop(hooked);
    let id = id.into_inner().unwrap();
    let report = host.unarchive_task(&ann(), "t", false).unwrap().remove(0);
    if report.stands == Stands::Kept {
        git_in(&made.place.path, &["cat-file", "-e", &id]);
        return;
    }
    ground.git(&["reflog", "expire", "--all", "--expire=now"]);
    ground.git(&["gc", "-q", "--prune=now"]);
    let Stands::FromBranchAndSalvage(salvage) = report.stands else { panic!("{report:?}") };
    let made = host.recreate(&ann(), &report.repo).unwrap();
    host.restore(&ann(), &salvage).unwrap();
    git_in(&made.place.path, &["cat-file", "-e", &id]);
}

#[test]
fn a_commit_between_salvage_and_rename_is_kept() {
    survives(|tree| {
        git_in(tree, &["commit", "-qam", "precious"]);
        git_in(tree, &["rev-parse", "HEAD"])
    });
}

#[test]
fn what_is_staged_between_salvage_and_rename_is_kept() {
    survives(|tree| {
        std::fs::write(tree.join("staged"), "staged only\n").unwrap();
        let blob = git_in(tree, &["hash-object", "-w", "staged"]);
        std::fs::remove_file(tree.join("staged")).unwrap();
        git_in(
            tree,
            &["update-index", "--add", "--cacheinfo", &format!("100644,{blob},story.txt")],
        );
        blob
    });
}

#[test]
fn an_own_ref_between_salvage_and_rename_is_kept() {
    survives(|tree| {
        let commit = git_in(tree, &["commit-tree", "-m", "only here", "HEAD^{tree}"]);
        git_in(tree, &["update-ref", "refs/worktree/keep", &commit]);
        commit
    });
}

#[test]
fn a_worktree_that_a_person_moved_is_not_taken_for_gone() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    let away = ground.folder.path().canonicalize().unwrap().join("moved");
    let (from, to) = (made.place.path.to_str().unwrap(), away.to_str().unwrap());
    ground.git(&["worktree", "move", "--force", "--force", from, to]);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    host.tick().unwrap();
    let failed = vec![(ResourceResult::Failed, Reason::IdentityMismatch)];
    assert_eq!(results_of(&host, "o"), failed);
    let says = details_of(&host, "o").concat();
    assert!(says.contains(to), "where it went is not said: {says}");
    assert!(is_marked(&away));
    assert_eq!(ground.registered(), vec![away.clone()]);
    // Moved back, a retry finishes.
    std::fs::create_dir_all(made.place.path.parent().unwrap()).unwrap();
    ground.git(&["worktree", "move", "--force", "--force", to, from]);
    host.archive_task(&ann(), "t", &Operation::new("again")).unwrap();
    work(&host);
    assert!(!made.place.path.exists());
    assert_eq!(salvaged_markers(&host), vec!["marker".to_owned()]);
}

#[test]
fn what_was_made_from_a_linked_worktree_outlives_it() {
    let ground = Ground::new();
    let host = ground.host();
    workspace(&host, "w");
    task(&host, "t").unwrap();
    environment(&host, "e", "t").unwrap();
    let root = host.register_root(&ann(), &ground.root_path).unwrap();
    let linked = ground.folder.path().canonicalize().unwrap().join("linked");
    ground.git(&["worktree", "add", "--quiet", "--detach", linked.to_str().unwrap()]);
    std::fs::write(linked.join("story.txt"), "on the linked one\n").unwrap();
    git_in(&linked, &["commit", "--quiet", "--all", "--message", "linked"]);
    let head = git_in(&linked, &["rev-parse", "HEAD"]);
    let repository = linked.display().to_string();
    let wanted = freehold_store::Wanted { repository, ..wanted(&ground, &root, "e", "b") };
    let made = host.make_worktree(&ann(), &wanted).unwrap();
    // It begins at the head of the work tree that was named.
    assert_eq!(git_in(&made.place.path, &["rev-parse", "HEAD"]), head);
    mark(&made.place.path);
    ground.git(&["worktree", "remove", "--force", linked.to_str().unwrap()]);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    work(&host);
    assert_eq!(results_of(&host, "o"), vec![(ResourceResult::Removed, Reason::None)]);
    host.unarchive_task(&ann(), "t", false).unwrap();
    assert_restorable(&host, "t");
}

#[test]
fn a_repository_that_is_gone_is_named_with_what_would_help() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    let away = ground.repository.with_extension("away");
    std::fs::rename(&ground.repository, &away).unwrap();
    host.tick().unwrap();
    let says = details_of(&host, "o").concat();
    for word in [ground.repository.to_str().unwrap(), "put it back"] {
        assert!(says.contains(word), "{word} is not said: {says}");
    }
    assert!(made.place.path.exists());
    std::fs::rename(&away, &ground.repository).unwrap();
    quiet(&ground, &host);
    assert_eq!(jobs(&host)[0].1, JobState::Succeeded);
}

#[test]
fn a_recorded_branch_that_was_deleted_begins_where_it_was_last_seen() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    std::fs::write(made.place.path.join("story.txt"), "committed\n").unwrap();
    git_in(&made.place.path, &["commit", "--quiet", "--all", "--message", "later"]);
    let later = ground.git(&["rev-parse", "b"]);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    work(&host);
    ground.git(&["branch", "--quiet", "--delete", "--force", "b"]);
    let report = host.unarchive_task(&ann(), "t", false).unwrap().remove(0);
    let again = host.recreate(&ann(), &report.repo).unwrap();
    assert_eq!(git_in(&again.place.path, &["rev-parse", "HEAD"]), later);
    // A head that is gone for good is said, and nothing begins at an older one.
    host.archive_task(&ann(), "t", &Operation::new("o2")).unwrap();
    work(&host);
    ground.git(&["branch", "--quiet", "--delete", "--force", "b"]);
    ground.git(&["reflog", "expire", "--all", "--expire=now"]);
    ground.git(&["gc", "--quiet", "--prune=now"]);
    host.unarchive_task(&ann(), "t", false).unwrap();
    let refused = host.recreate(&ann(), &report.repo).unwrap_err().to_string();
    assert!(refused.contains(&later), "{refused}");
    assert_eq!(ground.branches(), Vec::<String>::new());
}

/// The removal stops after the rename, and a person forgets the resource.
fn forgotten_after_the_rename(ground: &Ground, host: &TestHost) -> freehold_store::Made {
    let (_, made) = settled(ground, host);
    mark(&made.place.path);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    let stuck = ground.hooked(|_, call| match call {
        "compared" => Act::Fail(Reason::Io),
        _other => Act::Go,
    });
    stuck.tick().unwrap();
    drop(stuck);
    assert!(!made.place.path.exists());
    ground.lapse(Span::minutes(2));
    let resource = resources_of(host, "o").iter().find(|r| r.path.is_some()).unwrap().id;
    host.ask(&ann(), None, |_| Ok(Command::Operator(OperatorCommand::ForgetResource { resource })))
        .unwrap();
    made
}

#[test]
fn a_trash_that_was_forgotten_is_purged_and_its_slot_is_free_again() {
    let ground = Ground::new();
    let host = ground.host();
    let made = forgotten_after_the_rename(&ground, &host);
    assert_eq!(outcomes(&host), vec![Some(RemovalOutcome::Forgotten)]);
    let trash = rows(&host, &[TableId::Trash]).view.trash.iter().next().copied().unwrap();
    assert_eq!(trash.state, TrashState::Kept);
    host.purge_trash(&freehold_store::names::uuid_text(trash.id.0)).unwrap();
    assert_eq!(ground.registered(), Vec::<std::path::PathBuf>::new());
    assert!(!made.place.path.exists());
    let report = host.unarchive_task(&ann(), "t", false).unwrap().remove(0);
    let Stands::FromBranchAndSalvage(salvage) = report.stands else { panic!("{report:?}") };
    let again = host.recreate(&ann(), &report.repo).unwrap();
    host.restore(&ann(), &salvage).unwrap();
    assert!(is_marked(&again.place.path));
    // The next archive of the slot meets nothing of the old one.
    host.archive_task(&ann(), "t", &Operation::new("next")).unwrap();
    quiet(&ground, &host);
    assert_eq!(results_of(&host, "next"), vec![(ResourceResult::Removed, Reason::None)]);
    host.unarchive_task(&ann(), "t", false).unwrap();
    assert_restorable(&host, "t");
}

#[test]
fn a_trash_is_purged_from_where_it_was_cut_off() {
    let ground = Ground::new();
    let host = ground.host();
    forgotten_after_the_rename(&ground, &host);
    let trash = rows(&host, &[TableId::Trash]).view.trash.iter().next().copied().unwrap();
    let id = freehold_store::names::uuid_text(trash.id.0);
    for when in [0, 1] {
        let dying = ground.hooked(|point, call| match call {
            "purged" if point % 2 == when => Act::Die,
            _other => Act::Go,
        });
        assert!(support::survives(|| dying.purge_trash(&id).unwrap()).is_none(), "{when}");
        drop(dying);
        ground.lapse(Span::minutes(2));
    }
    host.purge_trash(&id).unwrap();
    let trash = rows(&host, &[TableId::Trash]).view.trash.iter().next().copied().unwrap();
    assert_eq!(trash.state, TrashState::Gone);
    assert_eq!(ground.registered(), Vec::<std::path::PathBuf>::new());
}

/// Runtimes that let something happen while one is stopped.
struct While<F>(F);

impl<F: Fn() + Send + Sync> freehold_store::Runtimes for While<F> {
    fn stop(
        &self,
        _: &freehold_store::RuntimeHandle,
        _: std::time::Duration,
        _: &mut dyn FnMut(),
    ) -> Liveness {
        (self.0)();
        Liveness::Dead
    }

    fn liveness(&self, _: &freehold_store::RuntimeHandle) -> Liveness {
        Liveness::Dead
    }
}

#[test]
fn a_second_call_of_the_same_operation_does_not_lift_the_first_ones_barrier() {
    use std::sync::{Arc, OnceLock};
    type Shared = Arc<OnceLock<AnyHost<freehold_git::GitWorkspaces>>>;
    let ground = Ground::new();
    settled(&ground, &ground.host());
    let shared: Shared = Arc::default();
    let inner = Arc::clone(&shared);
    let met = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&met);
    let second = move || {
        // The same instance, the same operation id, another content: refused, and no more.
        let host = inner.get().unwrap();
        let other = Operation::new("o").with_policy(UnsavedPolicy::Discard, Unsaved::TRACKED);
        let refused = host.archive_task(&ann(), "t", &other).unwrap_err();
        *seen.lock().unwrap() = refused.guard();
    };
    let host = ground.host_on(freehold_git::GitWorkspaces::new(), Box::new(While(second)));
    assert!(shared.set(host).is_ok());
    let host = shared.get().unwrap();
    submit(host, "s", "1").unwrap();
    run(host, "1");
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    assert_eq!(*met.lock().unwrap(), Some(Guard::OperationContent));
    assert!(support::steps::is_archived(&ground.host(), "t"));
    // A call that is refused on its own still lifts what it barred itself.
    let plain = ground.host();
    task(&plain, "u").unwrap();
    let steps = support::steps::Steps::new(&plain, "p", Trigger::Archive, None);
    steps.reserve("u").unwrap();
    assert_eq!(refused(plain.archive_task(&ann(), "u", &Operation::new("q"))), Guard::TaskUnbarred);
    steps.snapshot().unwrap();
    steps.mutate().unwrap();
}
