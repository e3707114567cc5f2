//! What is unsaved in a worktree (W-33): every kind by its own look, nothing inferred from
//! another. A look that fails is `unknown`, which counts as unsaved.

mod state;

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use freehold_kernel::Unsaved;
use freehold_store::workspaces::WorkspaceError;

use crate::disk as fs;
use crate::error::{io_fail, show, show_bytes};
use crate::process::{Git, Output, Run};
use crate::rebuildable::Rebuildable;
use crate::root::is_there;
use crate::salvage::is_part;
use crate::settings::Settings;
use crate::twins::{OWN_MAX, without_twin};

/// How many paths of one kind are listed; the rest is a number.
const LISTED: usize = 100;

/// What a look at a worktree found.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The kinds of unsaved work.
    pub(crate) unsaved: Unsaved,
    /// One line per thing.
    pub(crate) details: Vec<String>,
    /// Paths with content that is in no commit, below the top; folders of ignored files as one.
    pub(crate) paths: Vec<PathBuf>,
    /// Submodules recorded in an index, below the top: their `.git` is expected.
    pub(crate) submodules: HashSet<PathBuf>,
    /// The head in hex; empty if there is none.
    pub(crate) head: String,
    /// The index of the top, as git lists it.
    listed: Vec<u8>,
}

impl Seen {
    fn add(&mut self, kind: Unsaved, line: String) {
        self.unsaved = self.unsaved.with(kind);
        self.details.push(line);
    }

    /// Paths of files that the index of the top has, with no bit that hides them and in no
    /// conflict.
    pub(crate) fn tracked(&self) -> impl Iterator<Item = &[u8]> {
        index_lines(&self.listed)
            .filter(|(head, _path)| head.starts_with(b"H ") && !is_gitlink(head))
            .map(|(_head, path)| path)
    }

    fn unknown(&mut self, what: &str, error: &WorkspaceError) {
        self.add(Unsaved::UNKNOWN, format!("could not tell {what}: {}", error.detail));
    }
}

/// One worktree, or one submodule in it.
#[derive(Clone, Debug)]
pub(crate) struct Target<'a> {
    /// Its git directory.
    pub(crate) git_dir: &'a Path,
    /// Its work tree; none if the directory is missing and only the registration is looked at.
    pub(crate) tree: Option<&'a Path>,
    /// Where it lies below the top that is looked at; empty for the top itself.
    pub(crate) inside: &'a Path,
}

/// Looks for every kind of unsaved work; changes nothing.
pub(crate) fn look(git: &Git, target: &Target<'_>) -> Seen {
    let mut seen = Seen::default();
    let settings = Settings::of(git, target.git_dir).unwrap_or_else(|e| {
        seen.unknown("what its configuration hides", &e);
        Settings::default()
    });
    let filters_off = settings.filters_off();
    let ask = Ask { git, target, env: &filters_off };
    ask.status(&mut seen);
    ask.index(&mut seen, settings.is_sparse);
    ask.operations(&mut seen);
    ask.private(&mut seen);
    if target.inside.as_os_str().is_empty() {
        ask.commits(&mut seen, &["HEAD", "--not", "--branches", "--remotes", "--tags"]);
    } else {
        // A submodule's whole repository goes with the worktree, its own branches included.
        ask.commits(&mut seen, &["--all", "HEAD", "--not", "--remotes"]);
    }
    seen
}

struct Ask<'a> {
    git: &'a Git,
    target: &'a Target<'a>,
    env: &'a [(&'a str, &'a OsStr)],
}

impl Ask<'_> {
    fn run(&self, args: &[&str]) -> Result<Output, WorkspaceError> {
        self.git.run(self.target.git_dir, args, self.options())
    }

    fn ok(&self, args: &[&str]) -> Result<Output, WorkspaceError> {
        self.git.ok(self.target.git_dir, args, self.options())
    }

    fn options(&self) -> Run<'_> {
        Run {
            git_dir: Some(self.target.git_dir),
            work_tree: self.target.tree,
            env: self.env,
            ..Run::default()
        }
    }

    /// The head, where `status` cannot say it.
    fn head(&self, seen: &mut Seen) {
        match self.run(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]) {
            Ok(output) if output.status.success() => seen.head = output.line(),
            // No commit yet is a head of its own kind; a broken head shows in the next looks.
            Ok(_) => {}
            Err(e) => seen.unknown("what its head is", &e),
        }
    }

    /// Tracked, untracked and ignored files (W-33).
    fn status(&self, seen: &mut Seen) {
        if self.target.tree.is_none() {
            self.head(seen);
            return self.staged(seen);
        }
        let args = [
            "status",
            "--porcelain=v2",
            "--branch",
            "-z",
            "--untracked-files=all",
            "--ignored=matching",
            // Only their commits here: what is inside them is looked at on its own.
            "--ignore-submodules=dirty",
            "--no-renames",
            "--no-ahead-behind",
        ];
        let output = match self.ok(&args) {
            Ok(output) => output,
            Err(e) => {
                self.head(seen);
                return seen.unknown("what changed", &e);
            }
        };
        // What git could not read it only mentions, and leaves out of the list.
        if !output.stderr.trim_ascii().is_empty() {
            seen.add(Unsaved::UNKNOWN, format!("could not tell everything: {}", output.words()));
        }
        let rebuildable = match (ignores(&output.stdout), self.target.tree) {
            (true, Some(tree)) => Rebuildable::of(self.git, self.target.git_dir, tree),
            (_, _) => Ok(Rebuildable::default()),
        };
        let rebuildable = rebuildable.unwrap_or_else(|e| {
            seen.unknown("what is declared rebuildable", &e);
            Rebuildable::default()
        });
        let mut listed = [0usize; 3];
        for entry in output.stdout.split(|b| *b == 0).filter(|e| !e.is_empty()) {
            if let Some(header) = entry.strip_prefix(b"# ") {
                let head = header.strip_prefix(b"branch.oid ").filter(|oid| *oid != b"(initial)");
                seen.head.extend(head.map(String::from_utf8_lossy));
                continue;
            }
            let Some((kind, path)) = parse_status(entry) else {
                seen.add(Unsaved::UNKNOWN, format!("an unknown answer: {}", show_bytes(entry)));
                continue;
            };
            // As salvage sees it: two that do not agree on what is unsaved would never come to an
            // end.
            if !matches!(kind, Line::Changed(_)) && is_part(path) {
                continue;
            }
            if let (Line::Ignored, Some(tree)) = (&kind, self.target.tree)
                && !holds_more(tree, path, &rebuildable)
            {
                continue;
            }
            let (bit, word, slot) = match kind {
                Line::Changed(state) => (Unsaved::TRACKED, format!("changed ({state})"), 0),
                Line::Untracked => (Unsaved::UNTRACKED, "untracked".to_owned(), 1),
                Line::Ignored => (Unsaved::IGNORED, "ignored".to_owned(), 2),
            };
            seen.unsaved = seen.unsaved.with(bit);
            seen.paths.push(self.target.inside.join(OsStr::from_bytes(path)));
            listed[slot] += 1;
            if listed[slot] <= LISTED {
                seen.details.push(format!("{word}: {}", show_bytes(path)));
            }
        }
        for (count, word) in listed.into_iter().zip(["changed", "untracked", "ignored"]) {
            if count > LISTED {
                seen.details.push(format!("and {} more {word}", count - LISTED));
            }
        }
    }

    /// Without a directory, only what was staged can still be told.
    fn staged(&self, seen: &mut Seen) {
        match is_there(&self.target.git_dir.join("index")) {
            Ok(true) => {}
            Ok(false) => return,
            Err(e) => return seen.unknown("what was staged", &e),
        }
        let args = ["diff-index", "--cached", "--no-ext-diff", "--name-only", "-z", "HEAD", "--"];
        match self.ok(&args) {
            Ok(output) => {
                for path in output.stdout.split(|b| *b == 0).filter(|p| !p.is_empty()) {
                    seen.add(Unsaved::TRACKED, format!("staged: {}", show_bytes(path)));
                }
            }
            Err(e) => seen.unknown("what was staged", &e),
        }
    }

    /// Files that index bits hide, and submodules.
    fn index(&self, seen: &mut Seen, sparse: bool) {
        if self.target.tree.is_none() {
            return;
        }
        let output = match self.ok(&["ls-files", "-v", "--stage", "-z"]) {
            Ok(output) => output,
            Err(e) => return seen.unknown("what its index hides", &e),
        };
        for (head, path) in index_lines(&output.stdout) {
            let tag = head.first().copied().unwrap_or(b'?');
            if tag.is_ascii_lowercase() || (tag == b'S' && (!sparse || self.may_be_there(path))) {
                seen.add(Unsaved::HIDDEN, format!("hidden from status: {}", show_bytes(path)));
                seen.paths.push(self.target.inside.join(OsStr::from_bytes(path)));
            }
            if is_gitlink(head) {
                self.submodule(seen, Path::new(OsStr::from_bytes(path)));
            }
        }
        seen.listed = output.stdout;
    }

    /// Whether a path may hold something; what cannot be looked at may.
    fn may_be_there(&self, path: &[u8]) -> bool {
        let tree = self.target.tree.unwrap_or(self.target.git_dir);
        is_there(&tree.join(OsStr::from_bytes(path))).unwrap_or(true)
    }

    /// The same looks inside a submodule (W-33, F20).
    fn submodule(&self, seen: &mut Seen, path: &Path) {
        let Some(tree) = self.target.tree.map(|tree| tree.join(path)) else { return };
        let inside = self.target.inside.join(path);
        let name = show(&inside);
        let link = tree.join(".git");
        let found = fs::symlink_metadata(&link);
        seen.submodules.insert(inside.clone());
        match found {
            Err(e) if !fs::is_absence(&e) => {
                seen.unknown(
                    &format!("submodule {name}"),
                    &io_fail(&link, "cannot look at it", &e),
                );
            }
            Err(_) => match fs::read_dir(&tree) {
                // Never initialised: git keeps an empty folder. Git does not look into it.
                Ok(entries) if entries.is_empty() => {}
                Ok(_) => {
                    seen.add(
                        Unsaved::SUBMODULE,
                        format!("submodule {name}: files in a folder that was never initialised"),
                    );
                    seen.paths.push(inside);
                }
                Err(e) if fs::is_absence(&e) => {}
                Err(e) => {
                    let e = io_fail(&tree, "cannot look into it", &e);
                    seen.unknown(&format!("submodule {name}"), &e);
                }
            },
            Ok(meta) if meta.is_file() => {
                let git_dir = crate::identity::read_link_file(&link)
                    .ok()
                    .flatten()
                    .and_then(|target| fs::canonicalize(tree.join(target)).ok());
                let Some(git_dir) = git_dir else {
                    seen.add(
                        Unsaved::UNKNOWN,
                        format!("submodule {name}: its git directory cannot be read"),
                    );
                    return;
                };
                let target = Target { git_dir: &git_dir, tree: Some(&tree), inside: &inside };
                let below = look(self.git, &target);
                if !below.unsaved.is_none() {
                    seen.unsaved = seen.unsaved.with(Unsaved::SUBMODULE);
                }
                if below.unsaved.covers(Unsaved::UNKNOWN) {
                    seen.unsaved = seen.unsaved.with(Unsaved::UNKNOWN);
                }
                seen.details
                    .extend(below.details.iter().map(|line| format!("submodule {name}: {line}")));
                seen.paths.extend(below.paths);
                seen.submodules.extend(below.submodules);
            }
            Ok(_) => {
                seen.add(
                    Unsaved::SUBMODULE,
                    format!("submodule {name}: its repository lies in the worktree itself"),
                );
                seen.paths.push(inside);
            }
        }
    }

    /// Commits that nothing else reaches. A head that is on a branch is reached by that branch,
    /// which stays unless its own step decides otherwise (W-39).
    fn commits(&self, seen: &mut Seen, revisions: &[&str]) {
        if seen.head.is_empty() && self.target.inside.as_os_str().is_empty() {
            // No commit yet, or a head that names none: the second is not ours to call empty.
            match self.run(&["symbolic-ref", "--quiet", "HEAD"]) {
                Ok(output) if output.status.success() => {}
                Ok(_) => {
                    let line = "could not tell which commits it has: its head names none";
                    seen.add(Unsaved::UNKNOWN, line.to_owned());
                }
                Err(e) => seen.unknown("which commits it has", &e),
            }
            return;
        }
        let most = format!("--max-count={}", OWN_MAX + 1);
        let mut args = vec!["rev-list", &most];
        args.extend(revisions);
        args.push("--");
        let own = match self.ok(&args) {
            Ok(output) => lines(&output),
            Err(e) => return seen.unknown("which commits only it has", &e),
        };
        if own.is_empty() {
            return;
        }
        let left = match self.tips() {
            Ok(tips) => without_twin(self.git, self.target.git_dir, own, &tips),
            Err(e) => {
                seen.unknown("which commits others have", &e);
                own
            }
        };
        match left.len() {
            // Each is somewhere else as the same patch.
            0 => {}
            n if n > OWN_MAX => seen.add(
                Unsaved::COMMITS,
                format!("more than {OWN_MAX} commit(s) that nothing else reaches"),
            ),
            n => {
                seen.add(Unsaved::COMMITS, format!("{n} commit(s) that nothing else reaches"));
            }
        }
    }

    /// The tips of branches that stay: remote-tracking ones, and of a worktree's repository all
    /// branches. A submodule's own go with it.
    fn tips(&self) -> Result<BTreeSet<String>, WorkspaceError> {
        let mut args = vec!["for-each-ref", "--format=%(objectname)", "refs/remotes"];
        if self.target.inside.as_os_str().is_empty() {
            args.push("refs/heads");
        }
        Ok(lines(&self.ok(&args)?).into_iter().collect())
    }
}

fn lines(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// The entries of `ls-files -v --stage -z`: tag, mode, object and stage; and the path.
fn index_lines(listed: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    listed.split(|b| *b == 0).filter_map(|entry| {
        let tab = entry.iter().position(|b| *b == b'\t')?;
        Some((&entry[..tab], &entry[tab + 1..]))
    })
}

/// Whether such an entry is a submodule.
fn is_gitlink(head: &[u8]) -> bool {
    head.get(2..9) == Some(b"160000 ")
}

enum Line<'a> {
    Changed(&'a str),
    Untracked,
    Ignored,
}

/// Whether a list of `status` has ignored paths.
fn ignores(listed: &[u8]) -> bool {
    listed.split(|b| *b == 0).any(|entry| entry.first() == Some(&b'!'))
}

/// Whether an ignored path holds a file that is not declared rebuildable (W-33). Git lists a
/// folder that a pattern names even if nothing is in it, and an empty one is no work.
fn holds_more(tree: &Path, path: &[u8], rebuildable: &Rebuildable) -> bool {
    !rebuildable.covers(tree, path)
}

/// One entry of `status --porcelain=v2 -z` without renames.
fn parse_status(entry: &[u8]) -> Option<(Line<'_>, &[u8])> {
    let after =
        |fields: usize| -> Option<&[u8]> { entry.splitn(fields + 1, |b| *b == b' ').nth(fields) };
    match entry.first()? {
        b'1' => Some((Line::Changed(state(entry)), after(8)?)),
        b'u' => Some((Line::Changed(state(entry)), after(10)?)),
        b'?' => Some((Line::Untracked, entry.get(2..)?)),
        b'!' => Some((Line::Ignored, entry.get(2..)?)),
        _unknown => None,
    }
}

fn state(entry: &[u8]) -> &str {
    entry.get(2..4).and_then(|s| std::str::from_utf8(s).ok()).unwrap_or("??")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_lines_keep_spaces_and_line_breaks() {
        let line = b"1 .M N... 100644 100644 100644 aa bb a b\nc";
        assert!(matches!(parse_status(line), Some((Line::Changed(".M"), b"a b\nc"))));
        let line = b"u UU N... 100644 100644 100644 100644 aa bb cc x y";
        assert!(matches!(parse_status(line), Some((Line::Changed("UU"), b"x y"))));
        assert!(matches!(parse_status(b"? a b"), Some((Line::Untracked, b"a b"))));
        assert!(parse_status(b"2 R. nonsense").is_none());
    }
}
