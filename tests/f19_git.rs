//! Git's own behaviour (F19, F20, F22, F23, F25).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::cell::Cell;
use std::path::{Path, PathBuf};

use freehold_kernel::*;
use freehold_store::{Made, Operation};
use support::steps::*;
use support::*;

fn refuse(id: &str) -> Operation {
    Operation::new(id).with_policy(UnsavedPolicy::Refuse, Unsaved::NONE)
}

/// A second task with a worktree of its own in the same repository.
fn neighbour(ground: &Ground, host: &TestHost, root: &str) -> Made {
    task(host, "u").unwrap();
    environment(host, "f", "u").unwrap();
    host.make_worktree(&ann(), &wanted(ground, root, "f", "c")).unwrap()
}

fn admin(ground: &Ground, made: &Made) -> PathBuf {
    let named = git_in(&made.place.path, &["rev-parse", "--absolute-git-dir"]);
    assert!(Path::new(&named).starts_with(ground.repository.join(".git/worktrees")), "{named}");
    PathBuf::from(named)
}

#[test]
fn f19_a_neighbour_on_an_unmounted_disk_keeps_its_index() {
    for itself_missing in [false, true] {
        let ground = Ground::new();
        let host = ground.host();
        let (root, made) = settled(&ground, &host);
        let neighbour = neighbour(&ground, &host, &root);
        // A person's unlock must not be what keeps it.
        ground.git(&["worktree", "unlock", neighbour.place.path.to_str().unwrap()]);
        std::fs::write(neighbour.place.path.join("staged"), "staged\n").unwrap();
        git_in(&neighbour.place.path, &["add", "staged"]);
        let offline = ground.folder.path().join("offline");
        std::fs::rename(&neighbour.place.path, &offline).unwrap();
        if itself_missing {
            std::fs::remove_dir_all(&made.place.path).unwrap();
        }
        host.delete_task(&ann(), "t", &Operation::new("o")).unwrap();
        quiet(&ground, &host);
        assert_eq!(job_states(&host, "o")[0].1, JobState::Succeeded);
        std::fs::create_dir_all(neighbour.place.path.parent().unwrap()).unwrap();
        std::fs::rename(&offline, &neighbour.place.path).unwrap();
        let status = git_in(&neighbour.place.path, &["status", "--porcelain"]);
        assert_eq!(status, "A  staged", "{itself_missing}");
        assert_eq!(ground.registered(), vec![neighbour.place.path]);
    }
}

fn with_submodule(ground: &Ground, tree: &Path) -> PathBuf {
    let source = ground.folder.path().join("sub-source");
    std::fs::create_dir(&source).unwrap();
    git_in(&source, &["init", "--quiet", "--initial-branch=main"]);
    std::fs::write(source.join("inner"), "inner\n").unwrap();
    git_in(&source, &["add", "--all"]);
    git_in(&source, &["commit", "--quiet", "--message", "inner"]);
    let allow = ["-c", "protocol.file.allow=always"];
    let add = ["submodule", "--quiet", "add", source.to_str().unwrap(), "sub"];
    git_in(tree, &[&allow[..], &add[..]].concat());
    git_in(tree, &["commit", "--quiet", "--message", "submodule"]);
    tree.join("sub")
}

#[test]
fn f20_a_clean_submodule_does_not_stop_a_removal() {
    for initialised in [true, false] {
        let ground = Ground::new();
        let host = ground.host();
        let (_, made) = settled(&ground, &host);
        with_submodule(&ground, &made.place.path);
        if !initialised {
            git_in(&made.place.path, &["submodule", "--quiet", "deinit", "--force", "sub"]);
        }
        host.delete_task(&ann(), "t", &refuse("o")).unwrap();
        work(&host);
        assert_eq!(tries_of(&host, "o"), vec![1]);
        assert_eq!(results_of(&host, "o"), vec![(ResourceResult::Removed, Reason::None)]);
        assert!(!made.place.path.exists());
        assert_eq!(ground.registered(), Vec::<PathBuf>::new());
    }
}

type Spoil = fn(&Path);

#[test]
fn f20_unsaved_work_inside_a_submodule_is_refused_and_named() {
    let spoils: [(&str, Spoil); 3] = [
        ("untracked", |sub| std::fs::write(sub.join("new"), "x").unwrap()),
        ("commit", |sub| {
            std::fs::write(sub.join("inner"), "changed\n").unwrap();
            git_in(sub, &["commit", "--quiet", "--all", "--message", "only here"]);
        }),
        // Its repository lies in the tree and would go with it.
        ("sub", |sub| {
            let real = git_in(sub, &["rev-parse", "--absolute-git-dir"]);
            git_in(sub, &["config", "--unset", "core.worktree"]);
            std::fs::remove_file(sub.join(".git")).unwrap();
            std::fs::rename(real, sub.join(".git")).unwrap();
            assert!(sub.join(".git").is_dir());
        }),
    ];
    for (word, spoil) in spoils {
        let ground = Ground::new();
        let host = ground.host();
        let (_, made) = settled(&ground, &host);
        let sub = with_submodule(&ground, &made.place.path);
        spoil(&sub);
        let before = contents(&made.place.path);
        let error = host.delete_task(&ann(), "t", &refuse("o")).unwrap_err();
        assert_eq!(error.guard(), Some(Guard::NothingUnsaved), "{word}");
        let says = error.to_string();
        assert!(says.contains("sub") && says.contains(word), "{word}: {says}");
        assert_eq!(contents(&made.place.path), before, "{word}");
    }
}

#[test]
fn f22_missing_and_locked_by_an_interrupted_git_of_our_own_is_cleared() {
    let ground = Ground::new();
    let host = ground.host();
    let (root, made) = settled(&ground, &host);
    let admin = admin(&ground, &made);
    std::fs::remove_dir_all(&made.place.path).unwrap();
    std::fs::write(admin.join("locked"), "initializing\n").unwrap();
    host.delete_task(&ann(), "t", &Operation::new("o")).unwrap();
    quiet(&ground, &host);
    assert_eq!(job_states(&host, "o")[0].1, JobState::Succeeded);
    assert_eq!(ground.registered(), Vec::<PathBuf>::new());
    // The branch can be deleted, and the name used again.
    ground.git(&["branch", "--quiet", "--delete", "--force", "b"]);
    task(&host, "t2").unwrap();
    environment(&host, "e2", "t2").unwrap();
    host.make_worktree(&ann(), &wanted(&ground, &root, "e2", "b")).unwrap();
}

#[test]
fn f22_missing_and_locked_by_a_person_is_left_and_said_in_their_words() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    let admin = admin(&ground, &made);
    std::fs::remove_dir_all(&made.place.path).unwrap();
    std::fs::write(admin.join("locked"), "on the blue disk\n").unwrap();
    let before = contents(&admin);
    host.delete_task(&ann(), "t", &Operation::new("o")).unwrap();
    host.tick().unwrap();
    assert_eq!(results_of(&host, "o"), vec![(ResourceResult::Failed, Reason::LockedByPerson)]);
    assert_eq!(tries_of(&host, "o"), vec![1]);
    assert!(details_of(&host, "o").concat().contains("on the blue disk"));
    assert_eq!(contents(&admin), before);
    // The person unlocks and says so: the same job finishes.
    ground.git(&["worktree", "unlock", made.place.path.to_str().unwrap()]);
    let rows = rows(&host, &[TableId::Jobs]);
    let job = rows.view.jobs.iter().next().unwrap().id;
    host.ask(&ann(), None, |c| {
        c.know(&rows.names);
        Ok(Command::Operator(OperatorCommand::Retry { job }))
    })
    .unwrap();
    quiet(&ground, &host);
    assert_eq!(ground.registered(), Vec::<PathBuf>::new());
}

/// A process goes on writing at the path while it is removed, at every step after the rename.
#[test]
fn f23_what_a_writer_makes_again_is_kept_and_the_retry_finishes() {
    for at in ["compared", "unregistered", "branch_settled", "purged"] {
        let ground = Ground::new();
        let host = ground.host();
        let (_, made) = settled(&ground, &host);
        mark(&made.place.path);
        host.delete_task(&ann(), "t", &Operation::new("o")).unwrap();
        let wrote = Cell::new(false);
        let worker = ground.hooked(|point, call| {
            if call == at && point % 2 == 0 && !wrote.replace(true) {
                std::fs::create_dir_all(made.place.path.join("cache")).unwrap();
                std::fs::write(made.place.path.join("cache/daemon"), "daemon\n").unwrap();
                return Act::Fail(Reason::Changing);
            }
            Act::Go
        });
        worker.tick().unwrap();
        assert!(wrote.get(), "{at} was not reached");
        assert_ne!(job_states(&host, "o")[0].1, JobState::Succeeded, "{at}: false success");
        drop(worker);
        drop(host);
        // A restart in between.
        let host = ground.host();
        quiet(&ground, &host);
        assert_eq!(job_states(&host, "o")[0].1, JobState::Succeeded, "{at}");
        assert_eq!(ground.registered(), Vec::<PathBuf>::new(), "{at}");
        // The worktree is gone; what the daemon wrote is nobody's to delete and still there.
        assert!(!made.place.path.join("story.txt").exists(), "{at}");
        assert!(found_below(&ground.root_path, "daemon"), "{at}: the writer's file went");
        assert!(salvage_holds(&ground, "marker\n"), "{at}");
    }
}

fn found_below(folder: &Path, name: &str) -> bool {
    contents(folder).keys().any(|p| p.file_name().is_some_and(|n| n == name))
}

#[test]
fn f23_a_new_worktree_at_the_path_is_not_taken_for_what_is_left() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    host.delete_task(&ann(), "t", &Operation::new("o")).unwrap();
    let done = Cell::new(false);
    let worker = ground.hooked(|point, call| {
        if call == "renamed" && point % 2 == 1 && !done.replace(true) {
            // Another program makes a worktree at the path that has just become free.
            let path = made.place.path.to_str().unwrap();
            ground.git(&["worktree", "add", "--quiet", "--force", "-f", "-b", "new", path]);
            mark(&made.place.path);
            return Act::Fail(Reason::Contested);
        }
        Act::Go
    });
    worker.tick().unwrap();
    assert!(done.get());
    drop(worker);
    for minutes in [2, 6, 16] {
        ground.lapse(Span::minutes(minutes));
        host.tick().unwrap();
    }
    assert!(is_marked(&made.place.path), "the new worktree was removed");
    assert!(ground.registered().contains(&made.place.path));
    assert_ne!(job_states(&host, "o")[0].1, JobState::Succeeded);
    let says = removal_details(&host).concat();
    assert!(says.contains("is not the recorded worktree"), "{says}");
    assert!(salvage_holds(&ground, "marker\n"));
}

/// The real program, in an environment as a hook or an alias leaves it.
#[test]
fn f25_variables_that_point_git_elsewhere_do_not_make_a_dirty_worktree_clean() {
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"] {
        let ground = Ground::new();
        let host = ground.host_here();
        let (root, made) = settled(&ground, &host);
        let other = neighbour(&ground, &host, &root);
        // What it leads to would look clean: another's head and index that have the file, or
        // another's files, which are those of the same commit.
        if variable != "GIT_WORK_TREE" {
            std::fs::write(other.place.path.join("n"), "n\n").unwrap();
            git_in(&other.place.path, &["add", "n"]);
            git_in(&other.place.path, &["commit", "--quiet", "--message", "n"]);
        }
        host.delete_task(&ann(), "t", &refuse("o")).unwrap();
        std::fs::write(made.place.path.join("n"), "n\n").unwrap();
        let elsewhere = match variable {
            "GIT_DIR" => admin(&ground, &other),
            "GIT_WORK_TREE" => other.place.path.clone(),
            "GIT_INDEX_FILE" => admin(&ground, &other).join("index"),
            _common => ground.repository.join(".git"),
        };
        let output =
            ground.program(&["work", "--json"]).env(variable, &elsewhere).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{variable}: {said}");
        let failed = vec![(ResourceResult::Failed, Reason::Unsaved)];
        assert_eq!(results_of(&host, "o"), failed, "{variable}");
        assert_eq!(std::fs::read(made.place.path.join("n")).unwrap(), b"n\n");
    }
}
