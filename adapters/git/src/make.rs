//! Making a worktree (W-1..W-3, W-10..W-12), in stages that a second call recognises.
//!
//! ```text
//! branch by compare-and-swap -> registration, locked with the stamp -> stamp file
//!    -> checkout outside the registry lock -> its second line -> verified
//! ```

mod half_made;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use freehold_kernel::Reason;
use freehold_store::workspaces::{Place, Plan, Pulse, WorkspaceError};

use crate::disk as fs;
use crate::error::{fail, io_fail, show};
use crate::identity::{
    Proof, READY, STAMP, common_dir, is_half_made, is_ready, is_stamped, lasting, prove, registered,
};
use crate::lock::lock_registry;
use crate::process::{Git, Run, said_no};
use crate::refs::{self, Change};
use crate::root::{At, aside_path, check_root, is_there, make_folders, open_place, write_whole};
use half_made::clear_half_made;
pub(crate) use half_made::put_aside_half_made;

/// How long a checkout may take.
const CHECKOUT_LIMIT: Duration = Duration::from_secs(1800);

/// Tries of `worktree add` on the known races, and the first pause between them.
const ADD_TRIES: u32 = 6;
const ADD_PAUSE: Duration = Duration::from_millis(40);

/// A half-made registration of somebody else is put aside only when no living git can still be
/// writing it.
const HALF_MADE_AGE: Duration = Duration::from_secs(60);

/// Texts of git that mean that another git was in the middle of something.
const RACES: &[&str] = &[
    "could not lock config file",
    "commondir: Success",
    "commondir': Success",
    "failed to read",
    "Invalid path",
    "Unable to create",
    "cannot lock ref",
];

/// What [`crate::GitWorkspaces`] plans a making on (W-1).
pub(crate) fn plan(git: &Git, place: &Place, start: Option<&str>) -> Result<Plan, WorkspaceError> {
    let common = common_dir(&place.repository)?;
    let lasting = lasting(&place.repository)?;
    check_branch_name(git, place, &common)?;
    if let Some(tip) = tip(git, &common, &place.branch)? {
        return Ok(Plan { branch_existed: true, start_commit: tip, lasting });
    }
    let start = start.unwrap_or("HEAD");
    let revision = format!("{start}^{{commit}}");
    // The head of the work tree that was named, which may itself be a linked worktree.
    let dir = &place.repository;
    let output = git.run(
        dir,
        &["rev-parse", "--verify", "--quiet", "--end-of-options", &revision],
        Run::default(),
    )?;
    if !output.status.success() {
        return Err(fail(
            Reason::Io,
            dir,
            format!("there is no commit called {}", start.escape_debug()),
            "name a commit, a branch or a tag that exists; an empty repository needs one commit",
        ));
    }
    Ok(Plan { branch_existed: false, start_commit: output.line(), lasting })
}

/// Only a name that git takes for a branch as it stands: `@` or `-` would be read as another.
fn check_branch_name(git: &Git, place: &Place, common: &Path) -> Result<(), WorkspaceError> {
    let args = ["check-ref-format", "--branch", &place.branch];
    let output = git.run(common, &args, Run { git_dir: Some(common), ..Run::default() })?;
    let other = matches!(place.branch.as_str(), "HEAD" | "@");
    if output.status.success() && output.line() == place.branch && !other {
        return Ok(());
    }
    Err(fail(
        Reason::Io,
        &place.repository,
        format!("{} is no name for a branch", place.branch.escape_debug()),
        "choose a name that `git check-ref-format --branch` accepts",
    ))
}

/// The tip of a branch, if it is there.
pub(crate) fn tip(
    git: &Git,
    common: &Path,
    branch: &str,
) -> Result<Option<String>, WorkspaceError> {
    let name = format!("refs/heads/{branch}");
    let args = ["for-each-ref", "--format=%(objectname) %(refname)", &name];
    let output = git.ok(common, &args, Run { git_dir: Some(common), ..Run::default() })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // The pattern also matches everything below a name.
    Ok(text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(_, found)| *found == name)
        .map(|(tip, _)| tip.to_owned()))
}

/// Makes, or finishes, the worktree of a place.
pub(crate) fn make(
    git: &Git,
    place: &Place,
    plan: &Plan,
    wait: Duration,
    pulse: Pulse<'_>,
) -> Result<(), WorkspaceError> {
    check_root(&place.root)?;
    let common = common_dir(&place.repository)?;
    make_branch(git, place, plan, &common)?;
    let admin = make_registration(git, place, &common, wait)?;
    write_stamp(place, &admin)?;
    check_out(git, place, &admin, pulse)?;
    prove(place)?;
    Ok(())
}

/// Stage 1: the branch, from nothing, with the stamp in its reflog (W-2).
pub(crate) fn make_branch(
    git: &Git,
    place: &Place,
    plan: &Plan,
    common: &Path,
) -> Result<(), WorkspaceError> {
    let there = tip(git, common, &place.branch)?;
    if plan.branch_existed {
        return match there {
            Some(_) => Ok(()),
            None => Err(fail(
                Reason::Contested,
                &place.repository,
                format!("the branch {} was there when this was planned and is gone", place.branch),
                "plan the worktree again",
            )),
        };
    }
    if registered(place, common)?.ours.is_some() || is_ours(git, place, plan, common)? {
        return Ok(());
    }
    if there.is_some() {
        return Err(taken(place));
    }
    let name = format!("refs/heads/{}", place.branch);
    let nothing = "0".repeat(plan.start_commit.len());
    let message = reflog_message(place);
    let args =
        ["update-ref", "--create-reflog", "-m", &message, &name, &plan.start_commit, &nothing];
    let output = refs::change(git, common, Change::Set, &name, |git| {
        git.run(common, &args, Run { git_dir: Some(common), ..Run::default() })
    })?;
    if output.status.success() {
        return Ok(());
    }
    // Somebody else may have been first; their branch is not touched (W-11).
    if tip(git, common, &place.branch)?.is_some() {
        Err(taken(place))
    } else {
        Err(said_no(common, &args, &output))
    }
}

fn taken(place: &Place) -> WorkspaceError {
    fail(
        Reason::Contested,
        &place.repository,
        format!("somebody else made the branch {} first", place.branch),
        "plan the worktree again: it then starts from that branch, or choose another name",
    )
}

fn reflog_message(place: &Place) -> String {
    format!("freehold {}", place.stamp)
}

/// Whether the branch is this attempt's own: one reflog entry, ours, still at the start commit.
pub(crate) fn is_ours(
    git: &Git,
    place: &Place,
    plan: &Plan,
    common: &Path,
) -> Result<bool, WorkspaceError> {
    if tip(git, common, &place.branch)?.as_deref() != Some(plan.start_commit.as_str()) {
        return Ok(false);
    }
    let name = format!("refs/heads/{}", place.branch);
    let args = ["log", "-g", "--format=%gs", "--max-count=2", "--end-of-options", &name, "--"];
    let output = git.run(common, &args, Run { git_dir: Some(common), ..Run::default() })?;
    // A branch without a reflog is not one that we made.
    Ok(output.status.success() && output.line() == reflog_message(place))
}

/// Stage 2: the registration, locked with the stamp at birth (W-2, W-10), under the registry lock.
pub(crate) fn make_registration(
    git: &Git,
    place: &Place,
    common: &Path,
    wait: Duration,
) -> Result<PathBuf, WorkspaceError> {
    if let At::Folder(_) = open_place(place)?
        && let Ok(proof) = prove(place)
        && !is_half_made(&proof.admin)?
    {
        return Ok(proof.admin);
    }
    let registry = lock_registry(common, wait)?;
    let git = git.changing(registry);
    clear_half_made(place, common)?;
    if let At::Folder(_) = open_place(place)? {
        return Err(fail(
            Reason::OwnedElsewhere,
            &place.path,
            "something is there already that this attempt did not make",
            "it is left as it is; make the worktree at another path",
        ));
    }
    let parent = place.path.parent().unwrap_or(&place.root.path);
    make_folders(&place.root.path, parent)?;
    let args: Vec<OsString> = vec![
        "worktree".into(),
        "add".into(),
        "--no-checkout".into(),
        "--lock".into(),
        "--reason".into(),
        place.stamp.clone().into(),
        place.path.clone().into(),
        place.branch.clone().into(),
    ];
    let mut pause = ADD_PAUSE;
    for left in (0..ADD_TRIES).rev() {
        let config = ["worktree.useRelativePaths=false"];
        let run = Run { git_dir: Some(common), config: &config, ..Run::default() };
        let output = git.run(common, &args, run)?;
        if output.status.success() {
            break;
        }
        let words = output.words();
        // The folder above may have gone with the last worktree of another removal (W-42).
        let race =
            !fs::is_dir(parent).unwrap_or(true) || RACES.iter().any(|race| words.contains(race));
        if left == 0 || !race {
            return Err(add_refused(place, common, &args, &output));
        }
        if left == 1 {
            put_aside_half_made(common, HALF_MADE_AGE)?;
        }
        clear_half_made(place, common)?;
        make_folders(&place.root.path, parent)?;
        std::thread::sleep(pause);
        pause *= 2;
    }
    Ok(prove(place)?.admin)
}

fn add_refused(
    place: &Place,
    common: &Path,
    args: &[OsString],
    output: &crate::process::Output,
) -> WorkspaceError {
    let words = output.words();
    if words.contains("already used by worktree") || words.contains("already checked out") {
        return fail(
            Reason::OwnedElsewhere,
            &place.path,
            format!("git said no: {words}"),
            "use another branch, or end the work in the other worktree first",
        );
    }
    said_no(common, args, output)
}

/// Stage 3: the stamp as a file, which survives a person's unlock (W-2).
pub(crate) fn write_stamp(place: &Place, admin: &Path) -> Result<(), WorkspaceError> {
    let file = admin.join(STAMP);
    if is_stamped(admin, &place.stamp)? && is_there(&file)? {
        return Ok(());
    }
    write_whole(&file, format!("{}\n", place.stamp).as_bytes())
}

/// Stage 4: the checkout. One that was interrupted is begun again; a file in it that is neither
/// missing nor as recorded is moved aside first, never overwritten (F61).
pub(crate) fn check_out(
    git: &Git,
    place: &Place,
    admin: &Path,
    mut pulse: Pulse<'_>,
) -> Result<(), WorkspaceError> {
    if is_ready(admin)? {
        return Ok(());
    }
    let proof = Proof { admin: admin.to_path_buf(), common: common_dir(&place.repository)? };
    let lazy: [(&str, &OsStr); 1] = [("GIT_NO_LAZY_FETCH", OsStr::new("0"))];
    let lock = admin.join("index.lock");
    if is_there(&admin.join("index"))? || is_there(&lock)? || has_content(place)? {
        // The path lock says that no git of ours writes here any more.
        match fs::remove_file(&lock) {
            Ok(()) => {}
            Err(e) if fs::is_absence(&e) => {}
            Err(e) => return Err(io_fail(&lock, "cannot clear a dead lock", &e)),
        }
        git.ok(&proof.common, &["read-tree", "HEAD"], in_tree(place, &proof))?;
        move_differing_aside(git, place, &proof)?;
    }
    let run = Run {
        env: &lazy,
        limit: Some(CHECKOUT_LIMIT),
        pulse: Some(&mut pulse),
        ..in_tree(place, &proof)
    };
    // Not a reset: that locks the branch although it leaves it where it is, and killed it would
    // leave a lock in the user's repository that nothing takes away (W-12).
    git.ok(&proof.common, &["read-tree", "--reset", "-u", "HEAD"], run)?;
    let head = git.ok(&proof.common, &["symbolic-ref", "HEAD"], in_tree(place, &proof))?.line();
    if head != format!("refs/heads/{}", place.branch) {
        return Err(fail(
            Reason::IdentityMismatch,
            &place.path,
            format!("the new worktree is on {}, not on the branch {}", head, place.branch),
            "look at the worktree; it is left as it is",
        ));
    }
    write_whole(&admin.join(STAMP), format!("{}\n{READY}\n", place.stamp).as_bytes())
}

fn in_tree<'a>(place: &'a Place, proof: &'a Proof) -> Run<'a> {
    Run { git_dir: Some(&proof.admin), work_tree: Some(&place.path), ..Run::default() }
}

fn has_content(place: &Place) -> Result<bool, WorkspaceError> {
    let entries = fs::read_dir(&place.path)
        .map_err(|e| io_fail(&place.path, "cannot look into the worktree", &e))?;
    Ok(entries.iter().any(|e| e.file_name() != ".git"))
}

fn move_differing_aside(git: &Git, place: &Place, proof: &Proof) -> Result<(), WorkspaceError> {
    let args = ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignored=traditional"];
    let output = git.ok(&proof.common, &args, in_tree(place, proof))?;
    let mut aside: Option<PathBuf> = None;
    for entry in output.stdout.split(|b| *b == 0).filter(|e| e.len() > 3) {
        let (state, name) = (&entry[..2], &entry[3..]);
        if state == b" D" || state == b"D " {
            continue;
        }
        let name = Path::new(OsStr::from_bytes(name));
        let folder = match &aside {
            Some(folder) => folder,
            None => {
                aside.insert(aside_path(&place.root, &crate::root::digest(place.stamp.as_bytes()))?)
            }
        };
        let to = folder.join(name);
        make_folders(&place.root.path, to.parent().unwrap_or(folder))?;
        let from = place.path.join(name);
        fs::rename(&from, &to)
            .map_err(|e| io_fail(&from, &format!("cannot move it aside to {}", show(&to)), &e))?;
    }
    Ok(())
}
