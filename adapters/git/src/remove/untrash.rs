//! Out of kept trash, in place (W-35): the registration first, then what garbage collection may
//! have taken out of the repository, then the directory. Each move is one rename that replaces
//! nothing, so a stopped restore is recognised: directory in trash, or in its place.
//!
//! ```text
//! both in trash -> registered (gc keeps its objects from here on) -> objects, branch -> in place
//! ```

use std::ffi::OsStr;
use std::path::Path;

use freehold_kernel::{Reason, Unsaved};
use freehold_store::workspaces::{InTrash, Pulse, Restored, StepDone, WorkspaceError};

use super::{Removal, done, is_there, rename};
use crate::error::{fail, io_fail, show};
use crate::identity::{Proof, common_dir, prove, prove_at, read_link_file, refuse_foreign_lock};
use crate::list::list;
use crate::lock::lock_registry;
use crate::make::tip;
use crate::manifest;
use crate::process::{Run, said_no};
use crate::refs::{self, Change};
use crate::root::{check_root, make_folders};
use crate::tree;
use crate::users::standing_in;

impl Removal<'_> {
    /// Moves directory and registration back.
    pub(crate) fn untrash(
        &self,
        kept: &InTrash,
        pulse: Pulse<'_>,
    ) -> Result<Restored, WorkspaceError> {
        let place = self.place;
        check_root(&place.root)?;
        let trash = self.trash()?;
        if !is_there(&trash)? {
            // A try before this one may have moved it.
            prove(place)?;
            return Ok(back(0, Unsaved::NONE, Vec::new()));
        }
        self.refuse_in_the_way(&trash)?;
        let entries = tree::read(&trash);
        let mut notes = Vec::new();
        if let Some(was) = manifest::read(&place.root, self.id)? {
            let changed = was.differences(&trash, &entries);
            notes.extend(changed.into_iter().map(|line| format!("in the trash since: {line}")));
        }
        let proof = self.register_again(&trash)?;
        let mut contents = Unsaved::NONE;
        // What was committed after the permit is in the entry, and not in the permit's head.
        let mut head = kept.head.clone();
        if let Some(entry) = &kept.salvage {
            let given = crate::salvage::give(self.git, place, &trash, &proof, entry, pulse)?;
            contents = given.contents;
            if !given.base.is_empty() {
                head = given.base;
            }
            if !given.whole {
                notes.push(
                    "the repository has lost files of the commit that was checked out, and they \
                     were too large for salvage; fetch them before you commit"
                        .to_owned(),
                );
            }
        }
        notes.extend(self.branch_again(&proof, &head)?);
        make_folders(&place.root.path, place.path.parent().unwrap_or(&place.root.path))?;
        rename(&trash, &place.path, "cannot put the worktree back")?;
        prove(place)?;
        manifest::forget(&place.root, self.id)?;
        Ok(back(entries.entries.len() as u64, contents, notes))
    }

    fn refuse_in_the_way(&self, trash: &Path) -> Result<(), WorkspaceError> {
        let place = self.place;
        if manifest::is_purging(&place.root, self.id)? {
            return Err(fail(
                Reason::IdentityMismatch,
                trash,
                "the trash is not whole any more: unlinking has begun",
                "restore its salvage into a new worktree",
            ));
        }
        if is_there(&place.path)? {
            return Err(fail(
                Reason::OwnedElsewhere,
                &place.path,
                "something stands where the worktree was; nothing is put over it",
                "move it away, or restore the salvage into a new worktree",
            ));
        }
        Ok(())
    }

    /// The registration out of Freehold's folder, back where git looks for it; still locked.
    fn register_again(&self, trash: &Path) -> Result<Proof, WorkspaceError> {
        let place = self.place;
        let common = common_dir(&place.repository)?;
        let moved = self.admin_trash(&common);
        let _registry = lock_registry(&common, self.wait)?;
        if is_there(&moved)? {
            self.refuse_taken_branch(&moved, &common)?;
            let link = read_link_file(&trash.join(".git"))
                .map_err(|e| io_fail(trash, "cannot read the worktree's link", &e))?
                .unwrap_or_default();
            let name = link.file_name().unwrap_or_default();
            make_folders(&common, &common.join("worktrees"))?;
            let to = common.join("worktrees").join(name);
            rename(&moved, &to, "cannot put the registration back")?;
        }
        let proof = prove_at(place, trash)?;
        refuse_foreign_lock(place, &proof.admin)?;
        Ok(proof)
    }

    /// Two worktrees on one branch would each undo what the other commits.
    fn refuse_taken_branch(&self, admin: &Path, common: &Path) -> Result<(), WorkspaceError> {
        let Some(branch) = self.branch_in(admin, common)? else { return Ok(()) };
        let taken = list(self.git, common)?
            .into_iter()
            .find(|r| r.branch.as_ref() == Some(&branch) && r.path != self.place.path);
        match taken {
            None => Ok(()),
            Some(other) => Err(fail(
                Reason::OwnedElsewhere,
                &self.place.path,
                format!("its branch {branch} is checked out in {}", show(&other.path)),
                "end the work there, or restore the salvage into a new worktree on another branch",
            )),
        }
    }

    /// The branch that an administration directory has checked out, wherever it lies; none for a
    /// detached head. Git is asked, since a head is no file where there are reftables.
    fn branch_in(&self, admin: &Path, common: &Path) -> Result<Option<String>, WorkspaceError> {
        let env: [(&str, &OsStr); 1] = [("GIT_COMMON_DIR", common.as_os_str())];
        let run = Run { git_dir: Some(admin), env: &env, ..Run::default() };
        let asked = self.git.run(admin, &["symbolic-ref", "--quiet", "HEAD"], run)?;
        // It ends with 1 for a detached head; anything else could not be told.
        match asked.status.code() {
            Some(0) => Ok(Some(asked.line())),
            Some(1) => Ok(None),
            Some(_) | None => Err(said_no(admin, &["symbolic-ref"], &asked)),
        }
    }

    /// A branch that went meanwhile is made again where the removal left it, from nothing by
    /// compare-and-swap; one that moved is left where it is, and said.
    fn branch_again(&self, proof: &Proof, head: &str) -> Result<Option<String>, WorkspaceError> {
        let Some(name) = self.branch_in(&proof.admin, &proof.common)? else { return Ok(None) };
        let branch = name.strip_prefix("refs/heads/").unwrap_or(&name);
        if head.is_empty() {
            return Ok(None);
        }
        match tip(self.git, &proof.common, branch)? {
            Some(at) if at == head => Ok(None),
            Some(at) => Ok(Some(format!(
                "its branch {branch} was at {head} and is at {at} now; its files are as they were"
            ))),
            None => {
                let nothing = "0".repeat(head.len());
                let message = format!("freehold restore {}", self.place.stamp);
                let args = ["update-ref", "--create-reflog", "-m", &message, &name, head, &nothing];
                let run = Run { git_dir: Some(&proof.common), ..Run::default() };
                let at = &proof.common;
                let output =
                    refs::change(self.git, at, Change::Set, &name, |git| git.run(at, &args, run))?;
                if !output.status.success() {
                    return Err(said_no(at, &args, &output));
                }
                Ok(Some(format!("its branch {branch} was gone and is at {head} again")))
            }
        }
    }

    /// A restore that is given up before the directory was moved: the registration goes back to
    /// its trash (W-4).
    pub(crate) fn trash_again(&self) -> Result<StepDone, WorkspaceError> {
        check_root(&self.place.root)?;
        if is_there(&self.trash()?)? { self.unregister() } else { Ok(done(false)) }
    }

    /// W-35: a process that holds a file of the trash open may still want it.
    pub(crate) fn refuse_in_use(&self) -> Result<(), WorkspaceError> {
        let trash = self.trash()?;
        if !is_there(&trash)? {
            return Ok(());
        }
        match standing_in(&trash, &tree::read(&trash).inodes())?.inside.into_iter().next() {
            None => Ok(()),
            Some((_, who)) => Err(fail(
                Reason::InUse,
                &trash,
                who,
                "end that process, or wait until it closes its files",
            )),
        }
    }
}

fn back(entries: u64, contents: Unsaved, notes: Vec<String>) -> Restored {
    Restored { entries, contents, notes }
}
