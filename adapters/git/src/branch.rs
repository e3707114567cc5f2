//! What becomes of the branch (W-39).

use std::collections::BTreeSet;
use std::path::Path;

use freehold_store::workspaces::{BranchVerdict, Place, Plan, WorkspaceError};

use crate::disk as fs;
use crate::error::io_fail;
use crate::identity::admin_dirs;
use crate::list::list;
use crate::make::{is_ours, tip};
use crate::process::{Git, Input, Run, said_no};
use crate::refs::{self, Change};
use crate::twins::{OWN_MAX, without_twin};

/// Decides on the branch, and deletes it by compare-and-swap if it may go. Called under the
/// registry lock, so that no worktree of ours can be made on it meanwhile.
pub(crate) fn settle(
    git: &Git,
    place: &Place,
    common: &Path,
    may_delete: bool,
    undoes: bool,
) -> Result<BranchVerdict, WorkspaceError> {
    let kept = |why: String| Ok(BranchVerdict::Kept(why));
    let Some(tip) = tip(git, common, &place.branch)? else { return Ok(BranchVerdict::Absent) };
    if !may_delete {
        return kept("the policy keeps branches".to_owned());
    }
    if !place.branch_created {
        return kept("Freehold did not make it".to_owned());
    }
    if undoes {
        // W-4: an attempt takes back only the branch that it made itself; a person may have made
        // one of this name after the attempt was planned.
        let start_commit = place.start_commit.clone();
        let plan = Plan { branch_existed: false, start_commit, lasting: None };
        if !is_ours(git, place, &plan, common)? {
            return kept("it is not the one that this attempt made".to_owned());
        }
    }
    let name = format!("refs/heads/{}", place.branch);
    let run = || Run { git_dir: Some(common), ..Run::default() };
    if git.run(common, &["symbolic-ref", "--quiet", &name], run())?.status.success() {
        return kept("it is another name of a branch now".to_owned());
    }
    if let Some(found) = list(git, common)?.into_iter().find(|r| r.branch.as_ref() == Some(&name)) {
        return kept(format!("it is checked out in {}", found.path.display()));
    }
    if let Some(what) = in_operation(common, &name)? {
        return kept(format!("it is in use by {what}"));
    }
    if tip != place.start_commit
        && let Some(count) = only_there(git, common, &name, &tip)?
    {
        return kept(format!("unmerged: {count} commit(s) are on no other branch"));
    }
    // A fresh look was just had; the old tip makes the deletion fail if it moved since.
    let args = ["update-ref", "--no-deref", "-d", &name, &tip];
    let output =
        refs::change(git, common, Change::Delete, &name, |git| git.run(common, &args, run()))?;
    if !output.status.success() {
        return Err(said_no(common, &args, &output));
    }
    Ok(BranchVerdict::Removed(tip))
}

/// How many commits of the tip no other branch and no remote-tracking branch has, as they are or
/// as the same patch; none if the tip is reached (W-33). Other names of the branch itself (symbolic refs) would go with it.
fn only_there(
    git: &Git,
    common: &Path,
    name: &str,
    tip: &str,
) -> Result<Option<String>, WorkspaceError> {
    let run = || Run { git_dir: Some(common), ..Run::default() };
    let args = [
        "for-each-ref",
        "--format=%(objectname) %(refname) %(symref)",
        "refs/heads",
        "refs/remotes",
    ];
    let output = git.ok(common, &args, run())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut revisions = format!("{tip}\n");
    let mut tips = BTreeSet::new();
    for line in text.lines() {
        let mut fields = line.split(' ');
        let (Some(id), found, target) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        if found != Some(name) && target != Some(name) {
            revisions.push_str(&format!("^{id}\n"));
            tips.insert(id.to_owned());
        }
    }
    let input = Input::Bytes(revisions.as_bytes());
    let most = format!("--max-count={}", OWN_MAX + 1);
    let args = ["rev-list", &most, "--stdin"];
    let output = git.ok(common, &args, Run { stdin: input, ..run() })?;
    let own = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    match without_twin(git, common, own, &tips).len() {
        0 => Ok(None),
        n if n > OWN_MAX => Ok(Some(format!("more than {OWN_MAX}"))),
        n => Ok(Some(n.to_string())),
    }
}

/// A rebase or bisect somewhere has left the branch for a while and will come back to it; git
/// lists such a worktree as detached.
fn in_operation(common: &Path, name: &str) -> Result<Option<String>, WorkspaceError> {
    let short = name.strip_prefix("refs/heads/").unwrap_or(name);
    let mut dirs = admin_dirs(common)?;
    dirs.push(common.to_path_buf());
    for admin in dirs {
        for (file, what) in [
            ("rebase-merge/head-name", "a rebase"),
            ("rebase-apply/head-name", "a rebase"),
            ("BISECT_START", "a bisect"),
        ] {
            let text = state_file(&admin, file)?;
            let text = text.trim_ascii();
            if text == name.as_bytes() || text == short.as_bytes() {
                return Ok(Some(what.to_owned()));
            }
        }
        let updates = state_file(&admin, "rebase-merge/update-refs")?;
        if updates.split(|b| *b == b'\n').any(|line| line == name.as_bytes()) {
            return Ok(Some("a rebase that updates refs".to_owned()));
        }
    }
    Ok(None)
}

/// A file of an operation in progress; empty if there is none.
fn state_file(admin: &Path, name: &str) -> Result<Vec<u8>, WorkspaceError> {
    let file = admin.join(name);
    match fs::read(&file) {
        Ok(text) => Ok(text),
        Err(e) if fs::is_absence(&e) => Ok(Vec::new()),
        Err(e) => Err(io_fail(&file, "cannot look for an operation in progress", &e)),
    }
}
