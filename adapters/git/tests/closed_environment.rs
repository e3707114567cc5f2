//! F25: git variables in the host's own environment (a hook, an alias) reach no child process.
//!
//! The variables are set on a second run of this test program, so that it is a real environment
//! of a real process and no other test sees it.

#![allow(clippy::disallowed_methods, reason = "a test sets its scene")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use freehold_git::GitWorkspaces;
use freehold_kernel::{Found, RootId, Unsaved};
use freehold_store::workspaces::{Place, RootPlace, Workspaces};

fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@a", "-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn place(base: &Path, name: &str, branch: &str) -> Place {
    Place {
        root: RootPlace {
            id: RootId(1),
            name: "r".to_owned(),
            path: base.join("root"),
            marker: "m".to_owned(),
            store: "s".to_owned(),
        },
        path: base.join("root").join(name),
        repository: base.join("main"),
        branch: branch.to_owned(),
        branch_created: true,
        start_commit: String::new(),
        stamp: format!("freehold s r {name}"),
    }
}

fn make(spaces: &GitWorkspaces, place: &Place) {
    let plan = spaces.plan(place, None).unwrap();
    let lock = spaces.lock(place).unwrap();
    spaces.make(&lock, place, &plan, &mut || true).unwrap();
}

/// Run by the test below, in a process of its own.
#[test]
fn look_and_make() {
    // In the run that starts that process there is nothing to look at.
    let Some(base) = std::env::var_os("FREEHOLD_BASE").map(PathBuf::from) else { return };
    let spaces = GitWorkspaces::new();
    let found = spaces.inspect(&place(&base, "p", "work/p"), &mut || true);
    assert_eq!(found.evidence.found, Found::Here, "{:?}", found.details);
    assert_eq!(found.evidence.unsaved, Unsaved::UNTRACKED, "{:?}", found.details);
    assert!(found.details.contains(&"untracked: \"n\"".to_owned()), "{:?}", found.details);
    let name = std::env::var("FREEHOLD_CASE").unwrap();
    let made = place(&base, &name, &format!("work/{name}"));
    make(&spaces, &made);
    spaces.verify(&made).unwrap();
    assert!(!made.path.join("n").exists());
}

#[test]
fn variables_that_point_git_elsewhere_reach_no_child() {
    let dir = tempfile::tempdir().unwrap();
    let base = fs::canonicalize(dir.path()).unwrap();
    let main = base.join("main");
    fs::create_dir(&main).unwrap();
    git(&main, &["init", "--quiet"]);
    git(&main, &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    let spaces = GitWorkspaces::new();
    let (a, p) = (place(&base, "a", "work/a"), place(&base, "p", "work/p"));
    spaces.make_root(&a.root).unwrap();
    make(&spaces, &a);
    make(&spaces, &p);
    // The other worktree has committed what is untracked in this one.
    fs::write(a.path.join("n"), "same").unwrap();
    git(&a.path, &["add", "n"]);
    git(&a.path, &["commit", "--quiet", "-m", "n"]);
    fs::write(p.path.join("n"), "same").unwrap();
    let git_dir = git(&a.path, &["rev-parse", "--absolute-git-dir"]);

    // The trap is real: an open environment calls the dirty tree clean.
    let naive = Command::new("git")
        .args(["status", "--porcelain"])
        .current_dir(&p.path)
        .env("GIT_DIR", &git_dir)
        .output()
        .unwrap();
    assert!(naive.status.success() && naive.stdout.is_empty());

    let tree = a.path.to_str().unwrap();
    let index = format!("{git_dir}/index");
    let common = main.join(".git");
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("git-dir", &[("GIT_DIR", &git_dir)]),
        ("work-tree", &[("GIT_DIR", &git_dir), ("GIT_WORK_TREE", tree)]),
        ("index", &[("GIT_INDEX_FILE", &index)]),
        ("common", &[("GIT_COMMON_DIR", common.to_str().unwrap()), ("GIT_DIR", &git_dir)]),
        ("objects", &[("GIT_OBJECT_DIRECTORY", "/nowhere"), ("GIT_NAMESPACE", "x")]),
        (
            "config",
            &[
                ("GIT_CONFIG_COUNT", "1"),
                ("GIT_CONFIG_KEY_0", "core.worktree"),
                ("GIT_CONFIG_VALUE_0", tree),
            ],
        ),
    ];
    for (name, variables) in cases {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "look_and_make", "--nocapture"])
            .env("FREEHOLD_BASE", &base)
            .env("FREEHOLD_CASE", name)
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
        // It was this one test that ran, and not none.
        assert!(said.contains("1 passed"), "{name}: {said}");
    }
}
