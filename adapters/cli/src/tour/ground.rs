//! The tour's ground: a repository with real history, git asked as a person would, and the
//! second process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::place::StorePlace;

/// The folders and files of one tour.
pub(crate) struct Ground {
    pub(crate) repository: PathBuf,
    pub(crate) root: PathBuf,
    pub(crate) store: StorePlace,
    /// A git program that fails while a flag file is there.
    pub(crate) moody_git: PathBuf,
    pub(crate) flag: PathBuf,
}

impl Ground {
    /// Makes a repository with three commits on `main`.
    pub(crate) fn lay(folder: &Path, store: StorePlace) -> Result<Ground, Failure> {
        let ground = Ground {
            repository: folder.join("repository"),
            root: folder.join("worktrees"),
            store,
            moody_git: folder.join("moody-git"),
            flag: folder.join("git-is-down"),
        };
        std::fs::create_dir(&ground.repository).map_err(|e| surroundings("the repository", &e))?;
        ground.git(&["init", "--quiet", "--initial-branch=main"])?;
        for (n, text) in ["first", "second", "third"].iter().enumerate() {
            write(&ground.repository.join("story.txt"), &format!("{text} line\n").repeat(n + 1))?;
            write(&ground.repository.join(format!("{text}.txt")), text)?;
            ground.git(&["add", "--all"])?;
            ground.git(&["commit", "--quiet", "--message", text])?;
        }
        write(
            &ground.moody_git,
            &format!(
                "#!/bin/sh\nif [ -e '{}' ]; then echo 'fatal: the disk does not answer' >&2; exit 128; fi\nexec git \"$@\"\n",
                ground.flag.display()
            ),
        )?;
        executable(&ground.moody_git)?;
        Ok(ground)
    }

    /// Runs git in the repository, as a person would.
    pub(crate) fn git(&self, args: &[&str]) -> Result<String, Failure> {
        let output = Command::new("git")
            .current_dir(&self.repository)
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_INDEX_FILE")
            .env("GIT_AUTHOR_NAME", "Tour")
            .env("GIT_AUTHOR_EMAIL", "tour@example.invalid")
            .env("GIT_COMMITTER_NAME", "Tour")
            .env("GIT_COMMITTER_EMAIL", "tour@example.invalid")
            .args(args)
            .output()
            .map_err(|e| {
                Failure::Surroundings(format!("the git program cannot be run ({e}); install git"))
            })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Failure::Surroundings(format!("git {args:?} failed: {}", said.trim())));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The paths that `git worktree list` names, the main checkout first.
    pub(crate) fn worktrees(&self) -> Result<Vec<String>, Failure> {
        Ok(self
            .git(&["worktree", "list", "--porcelain"])?
            .lines()
            .filter_map(|l| l.strip_prefix("worktree "))
            .map(str::to_owned)
            .collect())
    }

    /// The local branches.
    pub(crate) fn branches(&self) -> Result<Vec<String>, Failure> {
        let list = self.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"])?;
        Ok(list.lines().map(str::to_owned).collect())
    }

    /// Starts this program again as a worker on the same store: a restart, with nothing kept in
    /// memory.
    pub(crate) fn second_process(&self) -> Result<String, Failure> {
        let me = std::env::current_exe().map_err(|e| surroundings("this program", &e))?;
        let mut worker = Command::new(me);
        worker.args(["--json", "work"]).args(self.store.words());
        // Not as a word of its command line, which everybody sees.
        if let Some(password) = self.store.password() {
            worker.env("PGPASSWORD", password);
        }
        let output = worker.output().map_err(|e| surroundings("the second process", &e))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let last = said.lines().last().unwrap_or_default().to_owned();
        if output.status.success() {
            Ok(last)
        } else {
            let err = String::from_utf8_lossy(&output.stderr);
            Err(Failure::Surroundings(format!("the second process failed: {last} {err}")))
        }
    }
}

/// Every file below a folder with its content, links as their targets: to compare before and
/// after.
pub(crate) fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(dir) = todo.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => todo.push(path),
                Ok(kind) if kind.is_symlink() => {
                    let target = std::fs::read_link(&path).unwrap_or_default();
                    found.insert(path, target.into_os_string().into_encoded_bytes());
                }
                Ok(_) => {
                    let content = std::fs::read(&path).unwrap_or_default();
                    found.insert(path, content);
                }
                Err(_) => {
                    found.insert(path, Vec::new());
                }
            }
        }
    }
    found
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|e| surroundings(&path.display().to_string(), &e))
}

fn executable(path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
        .map_err(|e| surroundings(&path.display().to_string(), &e))
}

pub(crate) fn surroundings(what: &str, error: &std::io::Error) -> Failure {
    Failure::Surroundings(format!("{what}: {error}"))
}
