//! A repository, a managed root and worktrees in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use freehold_kernel::{RemovalStep, RootId};
use freehold_store::workspaces::{
    Inspection, Place, Plan, RootPlace, StepDone, WorkspaceError, Workspaces,
};
use tempfile::TempDir;

use crate::GitWorkspaces;
use crate::identity::{common_dir, registered};
use crate::remove::Removal;

/// The steps of a whole removal, in their order.
pub(super) const STEPS: [RemovalStep; 6] = [
    RemovalStep::Salvaged,
    RemovalStep::Renamed,
    RemovalStep::Compared,
    RemovalStep::Unregistered,
    RemovalStep::BranchSettled,
    RemovalStep::Purged,
];

pub(super) struct Fixture {
    pub(super) dir: TempDir,
    pub(super) main: PathBuf,
    pub(super) root: RootPlace,
    pub(super) spaces: GitWorkspaces,
}

/// Runs git as a person would, and must succeed.
pub(super) fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@a")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@a")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {args:?} in {}: {}",
        dir.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

pub(super) fn git_fails(dir: &Path, args: &[&str]) {
    let status = Command::new("git").args(args).current_dir(dir).output().unwrap().status;
    assert!(!status.success(), "git {args:?} was to fail");
}

/// A repository with one commit of a few files.
pub(super) fn repository(at: &Path) {
    fs::create_dir_all(at.join("src")).unwrap();
    git(at, &["init", "--quiet"]);
    fs::write(at.join("a.txt"), "one\n").unwrap();
    fs::write(at.join("src/b.txt"), "two\n").unwrap();
    fs::write(at.join(".gitignore"), ".env\ntarget/\n").unwrap();
    git(at, &["add", "."]);
    git(at, &["commit", "--quiet", "-m", "first"]);
}

impl Fixture {
    pub(super) fn new() -> Fixture {
        Fixture::within(&std::env::temp_dir())
    }

    /// In a fresh folder of this one.
    pub(super) fn within(folder: &Path) -> Fixture {
        let dir = tempfile::tempdir_in(folder).unwrap();
        let base = fs::canonicalize(dir.path()).unwrap();
        let main = base.join("main");
        repository(&main);
        let spaces = GitWorkspaces::new().with_lock_wait(Duration::from_secs(60));
        let root = RootPlace {
            id: RootId(7),
            name: "root".to_owned(),
            path: base.join("root"),
            marker: "marker-1".to_owned(),
            store: "store-1".to_owned(),
        };
        let root = spaces.make_root(&root).unwrap();
        Fixture { dir, main, root, spaces }
    }

    pub(super) fn place(&self, name: &str) -> Place {
        Place {
            root: self.root.clone(),
            path: self.root.path.join(name),
            repository: self.main.clone(),
            branch: format!("work/{}", name.replace('/', "-")),
            branch_created: true,
            start_commit: git(&self.main, &["rev-parse", "HEAD"]),
            stamp: format!("freehold store-1 root token-{name}"),
        }
    }

    pub(super) fn plan(&self, place: &Place) -> Plan {
        self.spaces.plan(place, None).unwrap()
    }

    pub(super) fn try_make(&self, place: &Place, plan: &Plan) -> Result<(), WorkspaceError> {
        let lock = self.spaces.lock(place)?;
        self.spaces.make(&lock, place, plan, &mut || true)
    }

    pub(super) fn made(&self, name: &str) -> Place {
        let place = self.place(name);
        self.try_make(&place, &self.plan(&place)).unwrap();
        place
    }

    pub(super) fn common(&self) -> PathBuf {
        common_dir(&self.main).unwrap()
    }

    pub(super) fn admin(&self, place: &Place) -> PathBuf {
        registered(place, &self.common()).unwrap().ours.unwrap()
    }

    pub(super) fn inspect(&self, place: &Place) -> Inspection {
        self.spaces.inspect(place, &mut || true)
    }

    pub(super) fn step(
        &self,
        place: &Place,
        id: &str,
        step: RemovalStep,
    ) -> Result<StepDone, WorkspaceError> {
        self.step_with(place, id, step, false)
    }

    pub(super) fn step_with(
        &self,
        place: &Place,
        id: &str,
        step: RemovalStep,
        may_delete_branch: bool,
    ) -> Result<StepDone, WorkspaceError> {
        self.step_up_to(place, id, step, may_delete_branch, 1 << 30)
    }

    /// The same with another limit of salvage.
    pub(super) fn step_up_to(
        &self,
        place: &Place,
        id: &str,
        step: RemovalStep,
        may_delete_branch: bool,
        limit: u64,
    ) -> Result<StepDone, WorkspaceError> {
        let lock = self.spaces.lock(place)?;
        let git = self.spaces.holding(&lock, place)?;
        let removal = Removal {
            undoes: false,
            keep_trash: false,
            may_discard: freehold_kernel::Unsaved::NONE,
            git: &git,
            lock: &lock,
            place,
            id,
            limit,
            may_delete_branch,
            wait: self.spaces.lock_wait,
        };
        removal.take(step, &mut || true)
    }

    /// Every step of a removal.
    pub(super) fn remove(&self, place: &Place, id: &str) {
        for step in STEPS {
            if let Err(e) = self.step(place, id, step) {
                panic!("{}: {e}", step.code());
            }
        }
    }

    /// Nothing of the place is left: directory, registration, trash, manifest.
    pub(super) fn assert_gone(&self, place: &Place) {
        assert!(fs::symlink_metadata(&place.path).is_err(), "the directory is left");
        let found = registered(place, &self.common()).unwrap();
        assert_eq!(found.ours, None);
        let book = crate::root::book(&self.root);
        let entries = |folder: PathBuf| {
            let found = fs::read_dir(folder).into_iter().flatten().flatten();
            // Folders that only give the trash its depth stay.
            found.filter(|e| e.file_name() != "deep" || !is_only_depth(&e.path())).count()
        };
        assert_eq!(entries(book.join("manifests")), 0, "a manifest is left");
        assert_eq!(entries(book.join("trash")), 0, "the trash is left");
        let shallow = |folder: &Path| {
            let names = fs::read_dir(folder).unwrap().flatten().map(|e| e.file_name());
            names.filter(|n| n.to_string_lossy().contains("trash-")).count()
        };
        for folder in [&self.root.path, &self.root.path.join(".freehold"), &book] {
            assert_eq!(shallow(folder), 0, "the trash is left");
        }
        let moved = self.common().join("freehold/store-1/admin");
        assert_eq!(entries(moved), 0, "the moved registration is left");
    }
}

/// A folder named `deep` with nothing in it but more of them.
fn is_only_depth(folder: &Path) -> bool {
    let mut entries = fs::read_dir(folder).unwrap().flatten();
    entries.all(|e| e.file_name() == "deep" && is_only_depth(&e.path()))
}

/// Everything below a folder: kind, mode, size, modification time and content of each entry. Locks
/// of Freehold's own are no state (W-12, W-13).
pub(super) fn whole(top: &Path) -> Vec<String> {
    crate::tree::read(top)
        .entries
        .iter()
        .filter(|e| !e.path.ends_with("registry.lock") && !e.path.ends_with("freehold"))
        .map(|e| {
            let path = top.join(&e.path);
            let content = match e.what {
                crate::tree::What::File => fs::read(&path).map(|b| crate::root::digest(&b)).ok(),
                crate::tree::What::Link => {
                    Some(fs::read_link(&path).unwrap().display().to_string())
                }
                crate::tree::What::Folder | crate::tree::What::Other => None,
            };
            // A folder's own times say that something in it came or went.
            format!("{:?} {:?} {:o} {} {} {content:?}", e.path, e.what, e.mode, e.size, e.mtime)
        })
        .collect()
}
