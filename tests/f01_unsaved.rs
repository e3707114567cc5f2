//! Unsaved work (F01, F02, F04, F61): it is found, named, kept or consented to; never lost.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;

use freehold_git::GitWorkspaces;
use freehold_kernel::*;
use freehold_store::{HostError, NoRuntimes, Operation, Stands};
use support::steps::*;
use support::*;

fn refuse(id: &str) -> Operation {
    Operation::new(id).with_policy(UnsavedPolicy::Refuse, Unsaved::NONE)
}

fn discard(id: &str, consent: Unsaved) -> Operation {
    Operation::new(id).with_policy(UnsavedPolicy::Discard, consent)
}

#[test]
fn f01_an_untracked_file_refuses_the_delete_and_is_named() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    std::fs::write(made.place.path.join("TESTE.md"), "mine\n").unwrap();
    let before = (contents(&made.place.path), ground.branches());
    let error = host.delete_task(&ann(), "t", &refuse("o")).unwrap_err();
    assert!(matches!(error, HostError::UnsavedWork { .. }), "{error}");
    assert_eq!(error.guard(), Some(Guard::NothingUnsaved));
    let says = error.to_string();
    assert!(says.contains(&made.place.path.display().to_string()), "{says}");
    assert_eq!(says.matches("TESTE.md").count(), 1, "{says}");
    assert!(!says.contains("story.txt"), "{says}");
    assert_eq!((contents(&made.place.path), ground.branches()), before);
    assert!(is_active(&host, "t"));
    assert_eq!(jobs(&host), Vec::new());
    assert_eq!(ground.registered(), vec![made.place.path]);
}

#[test]
fn f01_dirt_that_came_after_the_delete_ends_the_job_on_its_first_try() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    host.delete_task(&ann(), "t", &refuse("o")).unwrap();
    std::fs::write(made.place.path.join("TESTE.md"), "mine\n").unwrap();
    host.tick().unwrap();
    assert_eq!(jobs(&host), vec![(Trigger::Delete, JobState::Failed)]);
    assert_eq!(results_of(&host, "o"), vec![(ResourceResult::Failed, Reason::Unsaved)]);
    assert_eq!(tries_of(&host, "o"), vec![1]);
    assert!(details_of(&host, "o").concat().contains("TESTE.md"), "{:?}", details_of(&host, "o"));
    // Not by the clock either.
    ground.pass(Span::minutes(10), &[&host]);
    host.tick().unwrap();
    assert_eq!(tries_of(&host, "o"), vec![1]);
    assert_eq!(std::fs::read(made.place.path.join("TESTE.md")).unwrap(), b"mine\n");
}

#[test]
fn f01_with_consent_the_same_dirt_goes() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    std::fs::write(made.place.path.join("TESTE.md"), "mine\n").unwrap();
    // Another kind's consent is not this one's.
    host.archive_task(&ann(), "t", &discard("other", Unsaved::TRACKED)).unwrap();
    work(&host);
    assert_eq!(results_of(&host, "other"), vec![(ResourceResult::Failed, Reason::ConsentMissing)]);
    assert!(made.place.path.join("TESTE.md").exists());
    host.delete_task(&ann(), "t", &discard("o", Unsaved::UNTRACKED)).unwrap();
    work(&host);
    assert_eq!(results_of(&host, "o"), vec![(ResourceResult::Removed, Reason::None)]);
    assert!(!made.place.path.exists());
}

#[test]
fn f02_what_git_ignores_is_named_and_never_lost_in_silence() {
    let ground = Ground::new();
    std::fs::write(ground.repository.join(".gitignore"), ".env\n").unwrap();
    ground.git(&["add", "--all"]);
    ground.git(&["commit", "--quiet", "--message", "ignore"]);
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    std::fs::write(made.place.path.join(".env"), "KEY=1\n").unwrap();
    assert_eq!(git_in(&made.place.path, &["status", "--porcelain"]), "");
    let error = host.delete_task(&ann(), "t", &refuse("refused")).unwrap_err();
    assert!(error.to_string().contains(".env"), "{error}");
    // Consent to lose untracked files is no consent to lose ignored ones.
    host.archive_task(&ann(), "t", &discard("untracked", Unsaved::UNTRACKED)).unwrap();
    work(&host);
    assert_eq!(results_of(&host, "untracked")[0].1, Reason::ConsentMissing);
    assert!(made.place.path.join(".env").exists());
    // The default keeps it in salvage.
    host.delete_task(&ann(), "t", &Operation::new("kept")).unwrap();
    work(&host);
    assert!(!made.place.path.exists());
    assert!(salvage_holds(&ground, "KEY=1\n"));
}

/// F02's control: with `target/` declared rebuildable, only that content passes.
#[test]
fn f02_only_what_is_declared_rebuildable_passes() {
    let ground = Ground::new();
    std::fs::write(ground.repository.join(".gitignore"), ".env\ntarget/\n").unwrap();
    ground.git(&["add", "--all"]);
    ground.git(&["commit", "--quiet", "--message", "ignore"]);
    let host = ground.host_with(GitWorkspaces::new().with_rebuildable(&["target/"]));
    let (_, made) = settled(&ground, &host);
    let path = &made.place.path;
    std::fs::create_dir_all(path.join("target/debug")).unwrap();
    std::fs::write(path.join("target/debug/built"), "built again by a build\n").unwrap();
    std::fs::write(path.join(".env"), "KEY=1\n").unwrap();
    let error = host.delete_task(&ann(), "t", &refuse("refused")).unwrap_err();
    assert_eq!(error.guard(), Some(Guard::NothingUnsaved));
    let says = error.to_string();
    assert!(says.contains(".env") && !says.contains("target"), "{says}");
    // Without the declaration the same content is in the way.
    let strict = ground.host();
    let error = strict.delete_task(&ann(), "t", &refuse("strict")).unwrap_err();
    assert!(error.to_string().contains("target"), "{error}");
    std::fs::remove_file(path.join(".env")).unwrap();
    host.delete_task(&ann(), "t", &refuse("passes")).unwrap();
    work(&host);
    assert_eq!(results_of(&host, "passes"), vec![(ResourceResult::Removed, Reason::None)]);
    assert!(!path.exists());
    assert!(!salvage_holds(&ground, "built again by a build\n"), "it was kept all the same");
}

/// A worktree that a person made with plain git under the managed root, with a commit of its own.
fn by_hand(ground: &Ground) -> std::path::PathBuf {
    let path = ground.root_path.join("by-hand");
    ground.git(&["worktree", "add", "--quiet", "--detach", path.to_str().unwrap()]);
    std::fs::write(path.join("story.txt"), "precious\n").unwrap();
    git_in(&path, &["commit", "--quiet", "--all", "--message", "only here"]);
    std::fs::write(path.join("loose"), "loose\n").unwrap();
    path
}

#[test]
fn f04_a_worktree_that_no_row_names_is_left_alone() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    let path = by_hand(&ground);
    let before = contents(&path);
    host.delete_task(&ann(), "t", &Operation::new("o")).unwrap();
    quiet(&ground, &host);
    assert!(!made.place.path.exists(), "its neighbour was to go");
    assert_eq!(contents(&path), before);
    assert_eq!(ground.registered(), vec![path]);
}

/// (a) of F61: the registration is gone and the folder is full.
#[test]
fn f61_a_full_folder_without_a_registration_is_neither_rebuilt_nor_removed() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    std::fs::remove_file(made.place.path.join(".git")).unwrap();
    ground.git(&["worktree", "unlock", made.place.path.to_str().unwrap()]);
    ground.git(&["worktree", "prune", "--expire=now"]);
    assert_eq!(ground.registered(), Vec::<std::path::PathBuf>::new());
    assert!(host.recreate(&ann(), &made.repo).is_err(), "it was made again over a full folder");
    assert!(is_marked(&made.place.path));
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    quiet_but(&ground, &host);
    assert!(is_marked(&made.place.path));
    assert_eq!(results_of(&host, "o"), vec![(ResourceResult::Failed, Reason::IdentityMismatch)]);
    assert!(!details_of(&host, "o").concat().is_empty(), "nobody is told why");
}

/// Lets every wait lapse; what is final may stay.
fn quiet_but(ground: &Ground, host: &TestHost) {
    for minutes in [0, 2, 6, 16, 61, 181] {
        ground.lapse(Span::minutes(minutes));
        host.tick().unwrap();
    }
}

/// (b): the folder is on another branch than the recorded one.
#[test]
fn f61_a_worktree_on_another_branch_keeps_its_work_and_its_branch() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    git_in(&made.place.path, &["checkout", "--quiet", "-b", "other"]);
    mark(&made.place.path);
    std::fs::write(made.place.path.join("committed"), "committed\n").unwrap();
    git_in(&made.place.path, &["add", "committed"]);
    git_in(&made.place.path, &["commit", "--quiet", "--message", "on other"]);
    let tip = ground.git(&["rev-parse", "other"]);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    quiet(&ground, &host);
    assert_eq!(ground.git(&["rev-parse", "other"]), tip);
    assert_eq!(salvaged_markers(&host), vec!["marker".to_owned()]);
}

/// (c): a restart with the row still in preparation; somebody has worked there already.
#[test]
fn f61_an_attempt_that_was_never_owned_gives_back_what_was_written_in_it() {
    for at in ["made", "materialised"] {
        let ground = Ground::new();
        let host = ground.host();
        workspace(&host, "w");
        task(&host, "t").unwrap();
        environment(&host, "e", "t").unwrap();
        let root = host.register_root(&ann(), &ground.root_path).unwrap();
        let wanted = wanted(&ground, &root, "e", "b");
        let mut path = None;
        let died = survives(|| {
            host.make_worktree_between(&ann(), &wanted, &mut |now| {
                if now == at {
                    let made = ground.registered().remove(0);
                    mark(&made);
                    path = Some(made);
                    die();
                }
            })
        });
        assert!(died.is_none());
        drop(host);
        let host = ground.host();
        quiet(&ground, &host);
        let path = path.unwrap();
        if path.exists() {
            assert!(is_marked(&path), "{at}: adopted and reset");
        } else {
            assert_eq!(salvaged_markers(&host), vec!["marker".to_owned()], "{at}");
        }
        assert!(host.unresolved_attempts().unwrap().is_empty());
    }
}

/// (d): a reset without consent.
#[test]
fn f61_a_reset_obeys_the_same_rule_as_a_delete() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    let refused = host.reset_environment(&ann(), "t", "e", &refuse("no")).unwrap_err();
    assert_eq!(refused.guard(), Some(Guard::NothingUnsaved));
    assert!(is_marked(&made.place.path));
    host.reset_environment(&ann(), "t", "e", &Operation::new("yes")).unwrap();
    work(&host);
    assert_eq!(salvaged_markers(&host), vec!["marker".to_owned()]);
}

/// (e): something sits at the path when the task comes back.
#[test]
fn f61_an_unarchive_writes_nothing_over_what_sits_at_the_old_path() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    work(&host);
    let sits = |path: &Path| std::fs::write(path.join("somebody"), "else\n").unwrap();
    std::fs::create_dir_all(&made.place.path).unwrap();
    sits(&made.place.path);
    let before = contents(&made.place.path);
    let report = host.unarchive_task(&ann(), "t", false).unwrap().remove(0);
    let Stands::FromBranchAndSalvage(salvage) = report.stands else { panic!("{report:?}") };
    let again = host.recreate(&ann(), &report.repo).unwrap();
    host.restore(&ann(), &salvage).unwrap();
    assert!(is_marked(&again.place.path));
    assert_ne!(again.place.path, made.place.path);
    assert_eq!(contents(&made.place.path), before);
    // Over a live worktree with work of its own nothing is restored either.
    std::fs::write(again.place.path.join("story.txt"), "newer\n").unwrap();
    host.restore(&ann(), &salvage).unwrap_err();
    assert_eq!(std::fs::read(again.place.path.join("story.txt")).unwrap(), b"newer\n");
}

/// F27's last sentence stands with the others: what cannot be looked at is not called dirty.
#[test]
fn f27_without_git_the_answer_is_cannot_inspect_and_nothing_is_half_applied() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    let none = ground.folder.path().join("no-such-git");
    let git = GitWorkspaces::new().with_program(none.clone(), std::time::Duration::from_secs(60));
    let blind = ground.host_on(git, Box::new(NoRuntimes));
    let error = blind.archive_task(&ann(), "t", &refuse("o")).unwrap_err();
    let says = error.to_string();
    assert!(says.contains(&none.display().to_string()), "the missing program is not named: {says}");
    assert!(!says.contains("MARKER"), "{says}");
    assert!(is_active(&host, "t"));
    assert_eq!(jobs(&host), Vec::new());
    assert!(is_marked(&made.place.path));
    // With the default the operation is accepted; its job waits for git and spends its tries.
    blind.archive_task(&ann(), "t", &Operation::new("o2")).unwrap();
    blind.tick().unwrap();
    assert_eq!(jobs(&host), vec![(Trigger::Archive, JobState::RetryWait)]);
    assert!(is_marked(&made.place.path));
    drop(blind);
    quiet(&ground, &host);
    assert_eq!(salvaged_markers(&host), vec!["marker".to_owned()]);
}
