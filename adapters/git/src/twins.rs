//! The same patch elsewhere (W-33): a commit that nothing reaches is saved all the same if a
//! commit of another branch makes the very same change, as after a rebase or a cherry-pick.
//!
//! Git tells what a patch is (`patch-id --verbatim`): paths, modes, every added, removed and
//! surrounding line with its white space, and for binary content the objects. A merge and a commit
//! without a change have no patch, and so no twin. What cannot be told within the bounds, or at
//! all, is not saved.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use freehold_store::workspaces::WorkspaceError;

use crate::process::{Git, Input, Output, Run, said_no};

/// More commits than these are not looked at.
pub(crate) const OWN_MAX: usize = 100;

/// More commits of others that touch the same paths are not looked at.
const OTHERS_MAX: usize = 2000;

/// More paths than these are not named to git; then all commits of others count.
const PATHS_MAX: usize = 500;

/// How long one of the questions may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Diff and digest in one command, so that nothing large passes through memory. Everything that
/// configuration could change about a diff is said outright. A diff that ended early would be
/// taken for the whole patch, and the pipe's own status is that of its last command: it is said
/// on the standard error, which must stay empty.
const PATCH_IDS: &str = "alias.freehold-patch-ids=!{ git diff-tree --stdin --root -r -p -U3 \
                         --full-index --no-renames --no-ext-diff --no-textconv \
                         --diff-algorithm=myers --src-prefix=a/ --dst-prefix=b/ \
                         || echo the diff was cut short >&2; } \
                         | git patch-id --verbatim";

/// Those of these commits that have no twin among the commits that the tips reach. All in hex.
pub(crate) fn without_twin(
    git: &Git,
    git_dir: &Path,
    own: Vec<String>,
    tips: &BTreeSet<String>,
) -> Vec<String> {
    if own.is_empty() || own.len() > OWN_MAX || tips.is_empty() {
        return own;
    }
    let ask = Ask { git, git_dir };
    // "Could not tell" is not saved.
    let Ok(twins) = ask.twins(&own, tips) else { return own };
    own.into_iter().filter(|commit| !twins.contains(commit)).collect()
}

struct Ask<'a> {
    git: &'a Git,
    git_dir: &'a Path,
}

impl Ask<'_> {
    fn ok(&self, args: &[&str], config: &[&str], stdin: &[u8]) -> Result<Output, WorkspaceError> {
        let literal: [(&str, &OsStr); 1] = [("GIT_LITERAL_PATHSPECS", OsStr::new("1"))];
        let run = Run {
            git_dir: Some(self.git_dir),
            stdin: Input::Bytes(stdin),
            env: &literal,
            config,
            limit: Some(LIMIT),
            ..Run::default()
        };
        self.git.ok(self.git_dir, args, run)
    }

    /// The commits of `own` that a commit under the tips repeats.
    fn twins(
        &self,
        own: &[String],
        tips: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>, WorkspaceError> {
        let mut twins = BTreeSet::new();
        let ids = self.patch_ids(own)?;
        if ids.is_empty() {
            return Ok(twins);
        }
        let mut asked = String::new();
        for tip in tips {
            asked.push_str(&format!("{tip}\n"));
        }
        for commit in own {
            asked.push_str(&format!("^{commit}\n"));
        }
        let mut asked = asked.into_bytes();
        asked.extend(self.paths(own)?);
        let most = format!("--max-count={}", OTHERS_MAX + 1);
        let args = ["rev-list", "--no-merges", "--full-history", &most, "--stdin"];
        let others = self.ok(&args, &[], &asked)?;
        let others: Vec<String> =
            String::from_utf8_lossy(&others.stdout).lines().map(str::to_owned).collect();
        if others.len() > OTHERS_MAX {
            return Ok(twins);
        }
        let there: BTreeSet<String> = self.patch_ids(&others)?.into_values().collect();
        for (commit, id) in ids {
            if there.contains(&id) {
                twins.insert(commit);
            }
        }
        Ok(twins)
    }

    /// The paths that these commits touch, as an end of revisions on a standard input; nothing if
    /// they cannot be given that way.
    fn paths(&self, commits: &[String]) -> Result<Vec<u8>, WorkspaceError> {
        let args = [
            "diff-tree",
            "--stdin",
            "--root",
            "-r",
            "--name-only",
            "--no-renames",
            "--no-commit-id",
            "-z",
        ];
        let listed = self.ok(&args, &[], &lines(commits))?;
        let paths: BTreeSet<&[u8]> =
            listed.stdout.split(|b| *b == 0).filter(|p| !p.is_empty()).collect();
        if paths.len() > PATHS_MAX || paths.iter().any(|p| p.contains(&b'\n')) {
            return Ok(Vec::new());
        }
        let mut out = b"--\n".to_vec();
        for path in paths {
            out.extend_from_slice(path);
            out.push(b'\n');
        }
        Ok(out)
    }

    /// The patch of each commit that has one.
    fn patch_ids(&self, commits: &[String]) -> Result<BTreeMap<String, String>, WorkspaceError> {
        if commits.is_empty() {
            return Ok(BTreeMap::new());
        }
        let args = ["freehold-patch-ids"];
        let found = self.ok(&args, &[PATCH_IDS], &lines(commits))?;
        if !found.stderr.trim_ascii().is_empty() {
            return Err(said_no(self.git_dir, &args, &found));
        }
        Ok(String::from_utf8_lossy(&found.stdout)
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(id, commit)| (commit.to_owned(), id.to_owned()))
            .collect())
    }
}

fn lines(commits: &[String]) -> Vec<u8> {
    commits.iter().flat_map(|commit| commit.bytes().chain([b'\n'])).collect()
}
