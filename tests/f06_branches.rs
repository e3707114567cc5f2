//! Branches and commits (F06, F08): a tip that nothing else reaches is kept, and said.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;

use freehold_kernel::*;
use freehold_store::{Operation, Stands};
use support::steps::*;
use support::*;

fn commit(tree: &Path, text: &str) -> String {
    std::fs::write(tree.join("story.txt"), text).unwrap();
    git_in(tree, &["commit", "--quiet", "--all", "--message", text.trim()]);
    git_in(tree, &["rev-parse", "HEAD"])
}

fn delete_branch_when_reached(id: &str) -> Operation {
    let mut operation = Operation::new(id);
    operation.branches = BranchPolicy::DeleteWhenReached;
    operation
}

#[test]
fn f06_a_branch_with_commits_found_nowhere_else_stays_and_the_result_says_so() {
    let ground = Ground::new();
    assert_eq!(ground.git(&["remote"]), "");
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    let tip = commit(&made.place.path, "two\n");
    host.delete_task(&ann(), "t", &delete_branch_when_reached("o")).unwrap();
    work(&host);
    assert_eq!(results_of(&host, "o"), vec![(ResourceResult::Removed, Reason::None)]);
    assert!(!made.place.path.exists());
    assert_eq!(ground.git(&["rev-parse", "refs/heads/b"]), tip);
    let says = removal_details(&host).concat();
    assert!(says.contains("unmerged: 1 commit"), "{says}");
}

#[test]
fn f06_a_branch_that_is_reached_goes_and_its_old_tip_is_told() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    let tip = commit(&made.place.path, "two\n");
    ground.git(&["merge", "--quiet", "--ff-only", "b"]);
    host.delete_task(&ann(), "t", &delete_branch_when_reached("o")).unwrap();
    work(&host);
    assert_eq!(ground.branches(), Vec::<String>::new());
    let says = removal_details(&host).concat();
    assert!(says.contains(&tip), "{says}");
}

/// W-33: a branch that was rebased or cherry-picked onto another one has nothing of its own.
#[test]
fn f06_a_branch_whose_very_patches_are_elsewhere_is_reached() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    let tip = commit(&made.place.path, "two\n");
    std::fs::write(ground.repository.join("between"), "between\n").unwrap();
    ground.git(&["add", "--all"]);
    ground.git(&["commit", "--quiet", "--message", "between"]);
    ground.git(&["cherry-pick", "b"]);
    host.delete_task(&ann(), "t", &delete_branch_when_reached("o")).unwrap();
    work(&host);
    assert_eq!(ground.branches(), Vec::<String>::new());
    let says = removal_details(&host).concat();
    assert!(says.contains(&tip), "{says}");
}

#[test]
fn f06_by_default_every_branch_stays() {
    let ground = Ground::new();
    let host = ground.host();
    settled(&ground, &host);
    host.delete_task(&ann(), "t", &Operation::new("o")).unwrap();
    work(&host);
    assert_eq!(ground.branches(), vec!["b".to_owned()]);
    assert!(removal_details(&host).concat().contains("the policy keeps branches"));
}

#[test]
fn f08_a_clean_detached_head_with_a_commit_of_its_own_is_salvaged_and_comes_back() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    git_in(&made.place.path, &["checkout", "--quiet", "--detach"]);
    let commit = commit(&made.place.path, "only here\n");
    assert_eq!(git_in(&made.place.path, &["status", "--porcelain"]), "");
    let refuse = Operation::new("no").with_policy(UnsavedPolicy::Refuse, Unsaved::NONE);
    let refused = host.archive_task(&ann(), "t", &refuse).unwrap_err();
    assert!(refused.to_string().contains("commit"), "{refused}");
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    work(&host);
    assert!(!made.place.path.exists());
    ground.git(&["reflog", "expire", "--all", "--expire=now"]);
    ground.git(&["gc", "--quiet", "--prune=now"]);
    let report = host.unarchive_task(&ann(), "t", false).unwrap().remove(0);
    let Stands::FromBranchAndSalvage(salvage) = report.stands else { panic!("{report:?}") };
    let again = host.recreate(&ann(), &report.repo).unwrap();
    host.restore(&ann(), &salvage).unwrap();
    assert_eq!(git_in(&again.place.path, &["rev-parse", "HEAD"]), commit);
    assert_eq!(std::fs::read(again.place.path.join("story.txt")).unwrap(), b"only here\n");
}
