//! The disk and git's lists against the rows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use freehold_git::{GitWorkspaces, Registration, aside, holdings, leftovers, list_registrations};
use freehold_kernel::{
    AttemptState, Found, Kind, Materialised, Reason, RepoStatus, ResourceResult, RootId, TrashState,
};
use freehold_store::Rows;
use freehold_store::names::uuid_text;
use freehold_store::workspaces::{Place, RootPlace, Workspaces};

use super::Report;
use crate::failure::Failure;
use crate::ground::{next, quoted};
use crate::place::StorePlace;

/// How deep below a root folders are looked for that nobody knows.
const DEPTH: usize = 3;

/// Crosses rows, git's lists and the disk for these roots.
pub(super) fn cross(
    rows: &Rows,
    roots: &[RootPlace],
    place: &StorePlace,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut there = Vec::new();
    for root in roots {
        match GitWorkspaces::new().check_root(root) {
            Ok(()) => there.push(root),
            Err(error) => {
                let look = ls(&root.path);
                report.find("root_unavailable", shown(&root.path), error.to_string(), look);
            }
        }
    }
    let find = |id: Option<RootId>| there.iter().find(|r| Some(r.id) == id).copied();
    worktrees(rows, &find, report)?;
    let known = known_paths(rows)?;
    let listed = registrations(rows, &there, &known, report)?;
    // The folders above what is kept in trash stay until it is purged (W-42).
    let mut inside = trashed_paths(rows)?;
    inside.extend(known.iter().chain(&listed).cloned());
    let known = &known | &listed;
    for root in there {
        for path in leftovers(root) {
            folder(&path, 1, &known, &inside, report);
        }
        trash(rows, root, place, report)?;
        for path in aside(root) {
            let says = "it was in the way of a removal and is nobody's to delete";
            report.find("set_aside", shown(&path), says, ls(&path));
        }
    }
    Ok(())
}

/// Every row that says that its worktree is on the disk.
fn worktrees<'r>(
    rows: &Rows,
    find: &dyn Fn(Option<RootId>) -> Option<&'r RootPlace>,
    report: &mut Report,
) -> Result<(), Failure> {
    let text = |kind, id: Option<u128>| -> Result<String, Failure> {
        Ok(id.map(|id| rows.names.text(kind, id)).transpose()?.unwrap_or_default())
    };
    for repo in rows.view.repos.iter() {
        let expected = repo.managed
            && repo.materialised == Materialised::Yes
            && repo.status != RepoStatus::Deleted;
        let Some(root) = find(repo.root_id).filter(|_| expected) else { continue };
        let place = Place {
            root: root.clone(),
            path: text(Kind::PathId, repo.worktree_path.map(|p| p.0))?.into(),
            repository: text(Kind::RepositoryId, Some(repo.repository_id.0))?.into(),
            branch: text(Kind::BranchId, repo.worktree_branch.map(|b| b.0))?,
            branch_created: repo.branch_created,
            start_commit: text(Kind::CommitId, repo.start_commit.map(|c| c.0))?,
            stamp: text(Kind::WorktreeId, repo.worktree_id.map(|w| w.0))?,
        };
        report.worktrees += 1;
        let seen = GitWorkspaces::new().inspect(&place, &mut || true);
        let (kind, says) = match (seen.evidence.found, seen.evidence.obstacle) {
            (Found::Missing, Reason::LockedByPerson) => {
                ("worktree_missing_locked", "its directory is gone, and a person locked it")
            }
            (Found::Missing, _) => ("worktree_missing", "its row says that it is there"),
            (Found::Mismatch, _) => ("worktree_mismatch", "something else is there"),
            (Found::InTrash, _) => ("worktree_in_trash", "its row says that it is in its place"),
            (Found::Unknown, _) => ("worktree_unknown", "it could not be looked at"),
            // In use or locked is no defect of a worktree that is in its place.
            (Found::Here, _) => continue,
        };
        let list = git(&place.repository, &["worktree", "list", "--porcelain"]);
        report.find(kind, shown(&place.path), says, list).holds = seen.details;
    }
    Ok(())
}

/// Paths that some row speaks for.
fn known_paths(rows: &Rows) -> Result<BTreeSet<PathBuf>, Failure> {
    let mut ids = BTreeSet::new();
    for repo in rows.view.repos.iter() {
        if repo.status != RepoStatus::Deleted && repo.materialised != Materialised::No {
            ids.extend(repo.worktree_path);
        }
    }
    for attempt in rows.view.attempts.iter() {
        match attempt.state {
            AttemptState::Intended | AttemptState::Materialised | AttemptState::Compensating => {
                ids.insert(attempt.path);
            }
            AttemptState::Owned | AttemptState::Compensated => {}
        }
    }
    ids.extend(rows.view.removals.iter().filter(|r| r.is_unsettled()).map(|r| r.path));
    for resource in rows.view.resources.iter() {
        match resource.result {
            ResourceResult::Waiting
            | ResourceResult::Removing
            | ResourceResult::Preserved
            | ResourceResult::Kept
            | ResourceResult::Failed => ids.extend(resource.path),
            ResourceResult::Removed
            | ResourceResult::Absent
            | ResourceResult::Transferred
            | ResourceResult::Forgotten => {}
        }
    }
    let text = |id: freehold_kernel::PathId| rows.names.text(Kind::PathId, id.0);
    Ok(ids.into_iter().map(|id| text(id).map(PathBuf::from)).collect::<Result<_, _>>()?)
}

/// What git lists under a root and no row speaks for.
fn registrations(
    rows: &Rows,
    roots: &[&RootPlace],
    known: &BTreeSet<PathBuf>,
    report: &mut Report,
) -> Result<BTreeSet<PathBuf>, Failure> {
    let mut repositories = BTreeSet::new();
    repositories.extend(rows.view.repos.iter().map(|r| r.repository_id));
    repositories.extend(rows.view.attempts.iter().map(|a| a.repository_id));
    repositories.extend(rows.view.resources.iter().filter_map(|r| r.repository_id));
    let mut found: BTreeMap<PathBuf, (PathBuf, Registration)> = BTreeMap::new();
    for id in repositories {
        let repository = PathBuf::from(rows.names.text(Kind::RepositoryId, id.0)?);
        match list_registrations(&repository) {
            Ok(list) => found.extend(
                // The first one is the main checkout.
                list.into_iter().skip(1).map(|r| (r.path.clone(), (repository.clone(), r))),
            ),
            Err(error) => {
                let look = ls(&repository);
                report.find("repository_unreadable", shown(&repository), error.to_string(), look);
            }
        }
    }
    report.registrations = found.len();
    for (path, (repository, registration)) in &found {
        let managed = roots.iter().any(|r| path.starts_with(&r.path));
        if !managed || known.contains(path) {
            continue;
        }
        let mut holds = Vec::new();
        if let Some(branch) = &registration.branch {
            holds.push(format!("on {branch}"));
        }
        if let Some(reason) = &registration.locked_reason {
            holds.push(format!("locked: {}", reason.escape_debug()));
        }
        if path.exists() {
            holds.extend(what_it_holds(path));
            let look = git(path, &["status", "--ignored"]);
            let says = "git lists a worktree here that no row knows; it is left as it is";
            report.find("worktree_unowned", shown(path), says, look).holds = holds;
        } else {
            let look = git(repository, &["worktree", "list", "--porcelain"]);
            let says = "git lists a worktree here that no row knows, and its directory is gone";
            report.find("registration_unowned", shown(path), says, look).holds = holds;
        }
    }
    Ok(found.into_keys().collect())
}

fn what_it_holds(path: &Path) -> Vec<String> {
    let held = holdings(path);
    let clean = held.details.is_empty() && held.users.is_empty() && held.unsaved.is_none();
    if clean {
        return vec!["nothing unsaved".to_owned()];
    }
    held.details.into_iter().chain(held.users).collect()
}

fn trashed_paths(rows: &Rows) -> Result<BTreeSet<PathBuf>, Failure> {
    let kept = rows.view.trash.iter().filter(|t| t.state != TrashState::Gone);
    let text = |id: freehold_kernel::PathId| rows.names.text(Kind::PathId, id.0);
    Ok(kept.map(|t| text(t.path).map(PathBuf::from)).collect::<Result<_, _>>()?)
}

/// A folder under a root; its contents, if something that is expected lies in it.
fn folder(
    path: &Path,
    depth: usize,
    known: &BTreeSet<PathBuf>,
    expected: &BTreeSet<PathBuf>,
    report: &mut Report,
) {
    report.folders += 1;
    if known.contains(path) {
        return;
    }
    let above = |p: &PathBuf| p != path && p.starts_with(path);
    if depth < DEPTH && expected.iter().any(above) {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let mut inside: Vec<PathBuf> = entries.map(|e| e.path()).collect();
        inside.sort();
        for path in inside {
            folder(&path, depth + 1, known, expected, report);
        }
        return;
    }
    let holds = if path.join(".git").exists() { what_it_holds(path) } else { Vec::new() };
    let says = "neither a row nor git knows it; it is left as it is";
    report.find("folder_unowned", shown(path), says, ls(path)).holds = holds;
}

/// Trash rows against trash folders.
fn trash(
    rows: &Rows,
    root: &RootPlace,
    place: &StorePlace,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut folders: BTreeMap<String, PathBuf> = freehold_git::trashes(root).into_iter().collect();
    for row in rows.view.trash.iter().filter(|t| t.root_id == root.id) {
        let folder = folders.remove(&uuid_text(row.removal_id.0));
        let removal = rows.view.removals.id(row.removal_id.0);
        // The row comes before the rename; its removal is under way.
        let settled = removal.is_none_or(|r| !r.is_unsettled());
        let path = rows.names.text(Kind::PathId, row.path.0)?;
        match (row.state, folder) {
            (TrashState::Kept, None) if settled => {
                let says = "its trash is gone from the disk";
                report.find("trash_missing", path, says, next(&["gc"], place));
            }
            (TrashState::Gone, Some(folder)) => {
                let says = "its trash is said to be gone, and is there";
                report.find("trash_left", shown(&folder), says, ls(&folder));
            }
            (TrashState::Kept | TrashState::Restoring | TrashState::Purging, _)
            | (TrashState::Gone, None) => {}
        }
    }
    for folder in folders.into_values() {
        let says = "no row knows this trash; it is left as it is";
        report.find("trash_unowned", shown(&folder), says, ls(&folder));
    }
    Ok(())
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn ls(path: &Path) -> String {
    format!("ls -la {}", quoted(&shown(path)))
}

fn git(dir: &Path, words: &[&str]) -> String {
    format!("git -C {} {}", quoted(&shown(dir)), words.join(" "))
}
