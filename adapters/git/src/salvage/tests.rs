//! Salvage and restore with real git. A round trip compares everything: index entries with mode,
//! object, stage and bits; the tree with modes, contents and links; head, refs, and operations in
//! progress.

mod disk;
mod refusals;
mod round_trips;
mod store;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use freehold_kernel::{Reason, RootId, Unsaved};
use freehold_store::workspaces::{Place, Restored, RootPlace, SalvageMade, WorkspaceError};

use crate::identity::STAMP;
use crate::process::Git;

const GIB2: u64 = 2 << 30;

/// As a removal keeps it that purges at once.
const KEEP: super::Keep = up_to(GIB2);

const fn up_to(limit: u64) -> super::Keep {
    super::Keep { limit, head: false }
}

/// Everything that a round trip must give back.
#[derive(Debug, PartialEq, Eq)]
struct Snapshot {
    index: String,
    bits: Vec<String>,
    head: String,
    refs: String,
    status: String,
    tree: BTreeMap<String, String>,
    admin: BTreeMap<String, String>,
}

/// A repository with one commit, a root, and a worktree in it.
struct Rig {
    dir: tempfile::TempDir,
    place: Place,
}

impl Rig {
    fn new() -> Rig {
        Rig::with("sha1", |_| {})
    }

    /// `first` may add to what is committed.
    fn with(format: &str, first: impl FnOnce(&Path)) -> Rig {
        Rig::made(&[&format!("--object-format={format}")], first)
    }

    /// One whose repository is made with these options.
    fn made(options: &[&str], first: impl FnOnce(&Path)) -> Rig {
        let dir = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(dir.path()).unwrap();
        let repo = top.join("repo");
        fs::create_dir(&repo).unwrap();
        let init = ["init", "-q", "-b", "main"];
        git(&repo, &[&init, options].concat());
        git(&repo, &["config", "user.name", "u"]);
        git(&repo, &["config", "user.email", "u@example.invalid"]);
        write(&repo.join("a.txt"), "one\ntwo\nthree\n");
        write(&repo.join("b.txt"), "b\n");
        write(&repo.join("sub/c.txt"), "c\n");
        write(&repo.join("gone/only.txt"), "o\n");
        write(&repo.join(".gitignore"), ".env\n*.log\nbuild/\nlinked\n");
        write(&repo.join("run.sh"), "#!/bin/sh\n");
        first(&repo);
        git(&repo, &["add", "-A"]);
        git(&repo, &["commit", "-qm", "base"]);
        let root = crate::root::make_root(&RootPlace {
            id: RootId(1),
            name: "root".into(),
            path: top.join("root"),
            marker: "marker".into(),
            store: "store".into(),
        })
        .unwrap();
        let place = Place {
            path: root.path.join("ws/w1"),
            root,
            repository: repo,
            branch: "work".into(),
            branch_created: true,
            start_commit: String::new(),
            stamp: "freehold store root token".into(),
        };
        let rig = Rig { dir, place };
        rig.add(&["-b", "work"], &["main"]);
        rig
    }

    fn repo(&self) -> &Path {
        &self.place.repository
    }

    fn work(&self) -> &Path {
        &self.place.path
    }

    fn top(&self) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }

    /// Makes the worktree and stamps it.
    fn add(&self, options: &[&str], rest: &[&str]) {
        let path = self.work().to_str().unwrap().to_owned();
        let mut args = vec!["worktree", "add", "-q"];
        args.extend(options);
        args.push(&path);
        args.extend(rest);
        git(self.repo(), &args);
        fs::write(self.admin().join(STAMP), &self.place.stamp).unwrap();
    }

    /// Removes the worktree without asking and makes it anew on its branch.
    fn recreate(&self) {
        self.remove();
        self.add(&[], &["work"]);
    }

    fn remove(&self) {
        fs::remove_dir_all(self.work()).unwrap();
        git(self.repo(), &["worktree", "prune"]);
    }

    fn admin(&self) -> PathBuf {
        let link = fs::read_to_string(self.work().join(".git")).unwrap();
        PathBuf::from(link.trim().strip_prefix("gitdir: ").unwrap())
    }

    fn git(&self, args: &[&str]) -> String {
        git(self.work(), args)
    }

    fn save(&self) -> Result<Option<SalvageMade>, WorkspaceError> {
        super::save(&Git::new(), &self.place, "entry-1", KEEP, &mut || true)
    }

    fn saved(&self) -> SalvageMade {
        self.save().unwrap().expect("something was unsaved")
    }

    fn restore(&self, made: &SalvageMade) -> Result<Restored, WorkspaceError> {
        super::restore(&Git::new(), &self.place, &made.ref_name)
    }

    fn store(&self) -> PathBuf {
        let book = crate::root::book(&self.place.root);
        let plain = book.join("salvage.git");
        if plain.exists() { plain } else { book.join("salvage-sha256.git") }
    }

    /// A question to the private store, with git alone.
    fn ask_store(&self, args: &[&str]) -> String {
        git(&self.store(), args)
    }

    fn snapshot(&self) -> Snapshot {
        let bits = self
            .git(&["ls-files", "--debug"])
            .lines()
            .filter(|l| !l.starts_with(' ') || l.contains("flags:"))
            // Only the bits that an index file has; the others are git's own while it runs.
            .map(|l| match l.rsplit_once("flags: ") {
                Some((_, bits)) => {
                    format!("{:x}", u32::from_str_radix(bits, 16).unwrap() & 0x6000_f000)
                }
                None => l.to_owned(),
            })
            .collect();
        let admin = bytes_of(&self.admin())
            .into_iter()
            .filter(|(name, _)| {
                !["index", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG"].contains(&name.as_str())
                    && !name.starts_with("logs")
                    && !name.starts_with("sharedindex")
                    && !name.starts_with("modules")
                    // Its refs are compared one by one; how the tables are cut is git's.
                    && !name.starts_with("reftable")
            })
            .filter(|(name, kind)| !(name == "refs" || name == "info" || kind.starts_with("dir")))
            .collect();
        Snapshot {
            index: self.git(&["ls-files", "-z", "--stage", "-v", "-f"]),
            bits,
            head: fs::read_to_string(self.admin().join("HEAD")).unwrap(),
            refs: self.git(&["for-each-ref"]),
            status: self.git(&["status", "--porcelain=v2", "-z", "--ignored"]),
            tree: bytes_of(self.work()),
            admin,
        }
    }

    /// What is unsaved goes away with the worktree and comes back as it was; and keeping it
    /// changed nothing.
    fn round_trip(&self, contents: Unsaved) -> SalvageMade {
        let before = self.snapshot();
        let untouched = (bytes_of(self.repo()), bytes_of(self.work()), times_of(self.work()));
        let made = self.saved();
        assert_eq!(
            (bytes_of(self.repo()), bytes_of(self.work()), times_of(self.work())),
            untouched,
            "keeping changes nothing"
        );
        assert_eq!(names(made.contents), names(contents));
        self.recreate();
        assert_ne!(self.snapshot(), before, "there was something to put back");
        let restored = self.restore(&made).unwrap();
        assert_eq!(restored.notes, Vec::<String>::new());
        assert_eq!(names(restored.contents), names(contents));
        same(&self.snapshot(), &before);
        git(self.repo(), &["fsck", "--strict"]);
        assert!(!crate::root::book(&self.place.root).join("salvage-scratch").exists());
        made
    }
}

/// Compares part by part, so that a failure says which.
fn same(now: &Snapshot, before: &Snapshot) {
    assert_eq!(now.tree, before.tree);
    assert_eq!(now.index, before.index);
    assert_eq!(now.bits, before.bits);
    assert_eq!(now.admin, before.admin);
    assert_eq!(now.refs, before.refs);
    assert_eq!(now.head, before.head);
    assert_eq!(now.status, before.status);
}

fn names(set: Unsaved) -> Vec<&'static str> {
    Unsaved::WORDS.iter().filter(|(k, _)| set.covers(*k)).map(|(_, w)| *w).collect()
}

/// A user's own git, with an environment of its own.
fn run(dir: &Path, args: &[&str]) -> std::process::Output {
    Command::new("git")
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", "/dev/null")
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_EDITOR", "true")
        .env("GIT_ALLOW_PROTOCOL", "file")
        .output()
        .unwrap()
}

fn git(dir: &Path, args: &[&str]) -> String {
    let out = run(dir, args);
    assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    text(&out.stdout)
}

/// Bytes as text that shows each of them.
fn text(bytes: &[u8]) -> String {
    bytes.utf8_chunks().fold(String::new(), |mut out, chunk| {
        out.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|b| out.push_str(&format!("\\x{b:02x}")));
        out
    })
}

fn write(path: &Path, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn symlink(target: &str, path: &Path) {
    std::os::unix::fs::symlink(target, path).unwrap();
}

/// Every path below a folder with what it is, its mode, and its content or target.
fn bytes_of(top: &Path) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    each(top, top, &mut |name, path, found| {
        let mode = found.permissions().mode() & 0o7777;
        let what = if found.is_symlink() {
            format!("link {}", text(fs::read_link(path).unwrap().as_os_str().as_bytes()))
        } else if found.is_dir() {
            format!("dir {mode:o}")
        } else if found.is_file() {
            format!("file {mode:o} {}", text(&fs::read(path).unwrap()))
        } else {
            "special".into()
        };
        out.insert(name, what);
    });
    out
}

/// Every path below a folder with its times, to nanoseconds.
fn times_of(top: &Path) -> BTreeMap<String, (i64, i64, i64, i64)> {
    use std::os::unix::fs::MetadataExt;
    let mut out = BTreeMap::new();
    each(top, top, &mut |name, _path, found| {
        out.insert(name, (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()));
    });
    out
}

fn each(top: &Path, at: &Path, f: &mut dyn FnMut(String, &Path, &fs::Metadata)) {
    for entry in fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        let found = fs::symlink_metadata(&path).unwrap();
        f(text(path.strip_prefix(top).unwrap().as_os_str().as_bytes()), &path, &found);
        if found.is_dir() {
            each(top, &path, f);
        }
    }
}

fn reason<T: std::fmt::Debug>(result: Result<T, WorkspaceError>) -> Reason {
    let error = result.unwrap_err();
    assert!(!error.help.is_empty(), "{error}");
    error.reason
}
