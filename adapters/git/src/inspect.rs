//! Looking at a place without changing anything (W-31, W-33).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use freehold_kernel::{CommitId, Evidence, Found, Kind, Reason, Unsaved};
use freehold_store::names::id_of;
use freehold_store::workspaces::{Inspection, Place, WorkspaceError};

use crate::disk as fs;
use crate::error::{fail, io_fail, show};
use crate::identity::{
    Held, Proof, Registered, common_dir, find_common_dir, held, is_half_made, locked_text,
    moved_away, prove, registered,
};
use crate::manifest::find_in_trash;
use crate::process::{Git, Run};
use crate::root::{At, check_root, is_there, open_place};
use crate::salvage::{Format, Memory};
use crate::tree::{self, Entry, Tree, What};
use crate::unsaved::{self, Seen, Target};
use crate::users::{Users, standing_in};

/// How many processes are named.
const NAMED: usize = 20;

/// How a place stands.
#[derive(Debug)]
pub(crate) enum Standing {
    /// The recorded worktree, proven.
    Here(Proof),
    /// Git was killed while it made it: no content, and a registration that is ours.
    HalfMade(PathBuf),
    /// No directory; the registration that is ours, if there is one.
    Missing(Option<PathBuf>),
    /// Whole in a removal's trash, and nothing that counts at its own path.
    InTrash(PathBuf),
}

/// Finds out how a place stands.
///
/// # Errors
/// [`Reason::IdentityMismatch`] and its like if something else is there; any other reason if it
/// could not be looked at.
pub(crate) fn standing(place: &Place) -> Result<Standing, WorkspaceError> {
    check_root(&place.root)?;
    let empty_or_missing = match open_place(place)? {
        At::Folder(_) => match prove(place) {
            Ok(proof) if is_half_made(&proof.admin)? && is_empty(&place.path)? => {
                return Ok(Standing::HalfMade(proof.admin));
            }
            Ok(proof) => return Ok(Standing::Here(proof)),
            // What could not be looked at is no mismatch, and nothing may be concluded from it.
            Err(e) if e.reason != Reason::IdentityMismatch => return Err(e),
            Err(e) if is_there(&place.path.join(".git"))? => return Err(e),
            Err(e) => Some(e),
        },
        At::Missing | At::Other(_) => None,
    };
    // Something without a `.git` that appeared after the worktree was moved does not hide that
    // it was moved (F23).
    if let Some(trash) = find_in_trash(place)? {
        return Ok(Standing::InTrash(trash));
    }
    match empty_or_missing {
        None => match registered(place, &common_dir(&place.repository)?)? {
            Registered { ours: None, moved: Some(to), .. } => Err(moved_away(place, &to)),
            found => Ok(Standing::Missing(found.ours)),
        },
        Some(mismatch) => {
            let ours = match find_common_dir(&place.repository)? {
                Some(common) => registered(place, &common)?.ours,
                None => None,
            };
            match ours {
                Some(admin) if is_half_made(&admin)? && is_empty(&place.path)? => {
                    Ok(Standing::HalfMade(admin))
                }
                Some(_) | None => Err(mismatch),
            }
        }
    }
}

/// Whether a folder holds nothing but, perhaps, its link.
fn is_empty(path: &Path) -> Result<bool, WorkspaceError> {
    let entries = fs::read_dir(path).map_err(|e| io_fail(path, "cannot look into it", &e))?;
    Ok(entries.iter().all(|e| e.file_name() == ".git"))
}

/// Everything about a worktree that is there.
#[derive(Debug)]
pub(crate) struct Survey {
    /// What is unsaved.
    pub(crate) seen: Seen,
    /// Where it lies.
    at: PathBuf,
    /// What is in it.
    pub(crate) tree: Tree,
    /// What stands in the way, gravest first.
    pub(crate) obstacles: Vec<(Reason, String)>,
    /// What does not block and should be known.
    pub(crate) notes: Vec<String>,
}

/// Looks at a worktree whose identity is proven. The tree comes first: whatever changes after it
/// was read differs from it later, and whatever changed before is in what git says (W-35).
pub(crate) fn survey(git: &Git, place: &Place, proof: &Proof) -> Survey {
    let tree = tree::read(&place.path);
    let target = Target { git_dir: &proof.admin, tree: Some(&place.path), inside: Path::new("") };
    let mut seen = unsaved::look(git, &target);
    for (path, why) in &tree.unseen {
        seen.unsaved = seen.unsaved.with(Unsaved::UNKNOWN);
        seen.details.push(format!("could not look into {}: {why}", show(path)));
    }
    let at = place.path.clone();
    let mut survey = Survey { seen, at, tree, obstacles: Vec::new(), notes: Vec::new() };
    survey.lock(place, &proof.admin);
    survey.nested();
    survey.mounts(place);
    // Last, because people come and go.
    survey.users(place);
    survey
}

impl Survey {
    fn lock(&mut self, place: &Place, admin: &Path) {
        match held(admin, &place.stamp) {
            Ok(Held::Ours) => {}
            Ok(Held::Person(reason)) => {
                self.obstacles.push((Reason::LockedByPerson, locked_text(&reason)));
            }
            Err(e) => self.obstacles.push((e.reason, e.detail)),
        }
    }

    fn nested(&mut self) {
        for folder in self.tree.repositories() {
            if !self.seen.submodules.contains(folder) {
                let line = format!("another repository or worktree is in it: {}", show(folder));
                self.obstacles.push((Reason::Nested, line));
            }
        }
    }

    fn mounts(&mut self, place: &Place) {
        let here = match tree::mounts_below(&place.path) {
            Ok(mounts) => mounts,
            Err(e) => return self.obstacles.push((e.reason, e.detail)),
        };
        let mounts = self.tree.mounts.iter().map(|m| place.path.join(m)).chain(here);
        let mut mounts: Vec<PathBuf> = mounts.collect();
        mounts.sort();
        mounts.dedup();
        for mount in mounts {
            let line = format!("something is mounted in it: {}", show(&mount));
            self.obstacles.push((Reason::MountPoint, line));
        }
    }

    fn users(&mut self, place: &Place) {
        let users = match standing_in(&place.path, &self.tree.inodes()) {
            Ok(users) => users,
            Err(e) => return self.obstacles.push((e.reason, e.detail)),
        };
        for (_, line) in users.inside.iter().take(NAMED) {
            self.obstacles.push((Reason::InUse, line.clone()));
        }
        self.notes.extend(unseen_note(&users));
    }

    /// Whether the worktree holds nothing at all but what its commit has, on a branch: then there
    /// is nothing to salvage, however closely it is looked at. What is not plainly so is not so,
    /// whatever git says of it: files that git does not call unsaved but the index does not have,
    /// folders without files, pipes and sockets, whatever is in submodules (W-33).
    pub(crate) fn is_as_committed(&self, git: &Git, proof: &Proof) -> Result<bool, WorkspaceError> {
        let admin = &proof.admin;
        if !self.seen.unsaved.is_none() {
            return Ok(false);
        }
        for state in ["modules", "reftable"] {
            if is_there(&admin.join(state))? {
                return Ok(false);
            }
        }
        let head = admin.join("HEAD");
        let head = fs::read(&head).map_err(|e| io_fail(&head, "cannot read the head", &e))?;
        let format = if self.seen.head.len() == 64 { Format::Sha256 } else { Format::Sha1 };
        let Some(memory) = Memory::of(admin, &self.at, format)? else { return Ok(false) };
        let tracked: HashSet<&[u8]> = self.seen.tracked().collect();
        // Folders that have a file somewhere below.
        let mut filled: HashSet<&[u8]> = HashSet::new();
        for entry in &self.tree.entries {
            let path = entry.bytes();
            match entry.what {
                What::Folder => {}
                What::File if path == b".git" => {}
                What::File | What::Link if tracked.contains(path) && memory.has(entry)? => {
                    // Whatever is above a folder that is known is known too.
                    let _known = above(path).find(|folder| !filled.insert(folder));
                }
                What::File | What::Link | What::Other => return Ok(false),
            }
        }
        let is_empty = |e: &Entry| e.what == What::Folder && !filled.contains(e.bytes());
        if !head.starts_with(b"ref: refs/heads/") || self.tree.entries.iter().any(is_empty) {
            return Ok(false);
        }
        // A repository that has lost a part of it has it from here at best: the index lets git
        // answer everything above without it.
        let args = ["rev-list", "--objects", "--no-walk", "--quiet", "HEAD"];
        let run = Run { git_dir: Some(admin), ..Run::default() };
        Ok(git.run(admin, &args, run)?.status.success())
    }

    /// Refuses if anything stands in the way.
    pub(crate) fn refuse(&self, place: &Place) -> Result<(), WorkspaceError> {
        let Some((reason, _)) = self.obstacles.first() else { return Ok(()) };
        let lines: Vec<&str> =
            self.obstacles.iter().filter(|o| o.0 == *reason).map(|o| o.1.as_str()).collect();
        Err(fail(*reason, &place.path, lines.join("; "), help(*reason)))
    }
}

fn help(reason: Reason) -> &'static str {
    match reason {
        Reason::LockedByPerson => "whoever locked it runs `git worktree unlock` when it may go",
        Reason::Nested => "move the other repository out of the worktree",
        Reason::MountPoint => "unmount it first",
        Reason::InUse => "end those processes, or wait until they leave",
        _other => "look at the path; the step is tried again",
    }
}

/// Every folder above a path, the nearest first.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = path.iter().enumerate().rev().filter(|(_n, byte)| **byte == b'/');
    ends.map(|(n, _byte)| &path[..n])
}

/// Processes that nobody may look into, as one line.
fn unseen_note(users: &Users) -> Option<String> {
    if users.unseen.is_empty() {
        return None;
    }
    let named: Vec<String> = users.unseen.iter().take(NAMED).map(u32::to_string).collect();
    Some(format!(
        "{} processes of other users could not be looked into: {}",
        users.unseen.len(),
        named.join(", ")
    ))
}

/// Looks at a place; what could not be seen is in the answer.
pub(crate) fn inspect(git: &Git, place: &Place) -> Inspection {
    match standing(place) {
        Ok(Standing::Here(proof)) => here(survey(git, place, &proof)),
        Ok(Standing::HalfMade(admin)) => {
            let mut found = answer(Found::Here, Reason::None);
            if matches!(is_there(&place.path.join(".git")), Ok(false)) {
                found.evidence.found = Found::Missing;
            }
            found.details.push("git was interrupted while it made this worktree".to_owned());
            with_lock(found, place, Some(&admin))
        }
        Ok(Standing::Missing(ours)) => missing(git, place, ours.as_deref()),
        Ok(Standing::InTrash(trash)) => {
            let mut found = answer(Found::InTrash, Reason::None);
            found.details.push(format!("it lies in the trash: {}", show(&trash)));
            if matches!(is_there(&place.path), Ok(true)) {
                found.details.push("something was put at its path after it was moved".to_owned());
            }
            found
        }
        Err(e) => refused(e),
    }
}

fn answer(found: Found, obstacle: Reason) -> Inspection {
    Inspection {
        evidence: Evidence { found, unsaved: Unsaved::NONE, obstacle, head: None },
        head: String::new(),
        details: Vec::new(),
    }
}

fn commit(head: &str) -> Option<CommitId> {
    (!head.is_empty()).then(|| CommitId(id_of(Kind::CommitId, head)))
}

fn here(survey: Survey) -> Inspection {
    let mut found = answer(Found::Here, Reason::None);
    found.evidence.unsaved = survey.seen.unsaved;
    found.evidence.head = commit(&survey.seen.head);
    found.evidence.obstacle = survey.obstacles.first().map_or(Reason::None, |o| o.0);
    found.head = survey.seen.head;
    found.details = survey.obstacles.into_iter().map(|o| o.1).collect();
    found.details.extend(survey.seen.details);
    found.details.extend(survey.notes);
    found
}

/// No directory, under a root that is there. A lock that somebody set is looked for before
/// anything concludes that it is gone: its disk may be elsewhere (W-31, F22).
fn missing(git: &Git, place: &Place, ours: Option<&Path>) -> Inspection {
    let mut found = with_lock(Inspection::missing(), place, ours);
    if let Some(admin) = ours {
        found.details.push(format!("its registration is still there: {}", show(admin)));
        if matches!(is_half_made(admin), Ok(true)) {
            // Git was killed while it made it; there is nothing to look at.
        } else {
            let target = Target { git_dir: admin, tree: None, inside: Path::new("") };
            let seen = unsaved::look(git, &target);
            found.evidence.unsaved = seen.unsaved;
            found.evidence.head = commit(&seen.head);
            found.head = seen.head;
            found.details.extend(seen.details);
        }
    }
    found
}

fn with_lock(mut found: Inspection, place: &Place, ours: Option<&Path>) -> Inspection {
    let others = common_dir(&place.repository).and_then(|common| registered(place, &common));
    let others = match others {
        Ok(found) => found.others,
        Err(e) => {
            found.evidence.obstacle = e.reason;
            found.details.push(e.detail);
            Vec::new()
        }
    };
    for admin in ours.into_iter().chain(others.iter().map(PathBuf::as_path)) {
        match held(admin, &place.stamp) {
            Ok(Held::Ours) => {}
            Ok(Held::Person(reason)) => {
                found.evidence.obstacle = Reason::LockedByPerson;
                found.details.push(locked_text(&reason));
            }
            Err(e) => {
                found.evidence.obstacle = e.reason;
                found.details.push(e.detail);
            }
        }
    }
    for admin in others {
        found.details.push(format!("another registration names this path: {}", show(&admin)));
    }
    found
}

pub(crate) fn refused(e: WorkspaceError) -> Inspection {
    let found = match e.reason {
        Reason::IdentityMismatch | Reason::OutsideRoot | Reason::NotManaged => Found::Mismatch,
        _other => Found::Unknown,
    };
    let mut answer = answer(found, e.reason);
    // What could not be looked at may hold anything.
    answer.evidence.unsaved = Unsaved::UNKNOWN;
    answer.details.push(format!("{}; {}", e.detail, e.help));
    answer
}

/// What a worktree holds that nobody of Freehold's knows (W-41): no row is no proof of no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holdings {
    /// What is unsaved in it.
    pub unsaved: Unsaved,
    /// One line for each unsaved thing.
    pub details: Vec<String>,
    /// One line for each process that stands in it.
    pub users: Vec<String>,
}

/// Looks at a linked worktree that no row names, and changes nothing. A folder without a readable
/// `.git` file is unknown, never clean.
pub fn holdings(path: &Path) -> Holdings {
    let tree = tree::read(path);
    let users = match standing_in(path, &tree.inodes()) {
        Ok(users) => users.inside.into_iter().take(NAMED).map(|(_, line)| line).collect(),
        Err(e) => vec![e.detail],
    };
    let admin = crate::identity::read_link_file(&path.join(".git"))
        .ok()
        .flatten()
        .and_then(|target| fs::canonicalize(path.join(target)).ok());
    let Some(admin) = admin else {
        let details = vec!["it has no .git file that could be read".to_owned()];
        return Holdings { unsaved: Unsaved::UNKNOWN, details, users };
    };
    let target = Target { git_dir: &admin, tree: Some(path), inside: Path::new("") };
    let seen = unsaved::look(&Git::new(), &target);
    Holdings { unsaved: seen.unsaved, details: seen.details, users }
}
