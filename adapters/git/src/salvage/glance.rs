//! The state of a worktree, byte for byte where it is small and by its signs where it is not:
//! enough to tell whether anything changed, and nothing of what it means (W-34).

use freehold_kernel::Reason;
use freehold_store::workspaces::WorkspaceError;

use super::admin::{self, AdminFile};
use super::save::path_of;
use super::scan::{Seen, Walk, changing};
use super::seat::{Beat, Seat};
use crate::error::fail;

/// What was seen.
pub(crate) struct Glance {
    /// The index file as it is; none if there is none.
    pub(crate) index_raw: Option<Vec<u8>>,
    /// Paths at which the index has another repository's commit.
    pub(super) gitlinks: Vec<Vec<u8>>,
    /// The branch that is checked out; empty for a detached head.
    pub(super) head: String,
    /// The commit that is checked out, in hex; empty for an unborn branch.
    pub(super) base: String,
    /// Refs that only this worktree has: name and object.
    pub(super) refs: Vec<(String, String)>,
    /// The walk.
    pub(crate) seen: Vec<Seen>,
    /// The administration directory.
    pub(crate) admin: Vec<AdminFile>,
}

impl Glance {
    /// Looks, with an index that was read just now.
    ///
    /// # Errors
    /// For whatever cannot be looked at.
    pub(super) fn take(
        seat: &Seat<'_>,
        index_raw: Option<Vec<u8>>,
        gitlinks: Vec<Vec<u8>>,
        beat: &mut Beat<'_>,
    ) -> Result<Glance, WorkspaceError> {
        let (head, base) = head_and_base(seat, beat)?;
        let walk = Walk { top: &seat.top, at: &seat.work, gitlinks: &gitlinks, is_work_tree: true };
        let seen = walk.run(beat)?;
        let admin = admin::scan(seat, beat)?;
        let refs = admin::private_refs(seat, beat)?;
        Ok(Glance { index_raw, gitlinks, head, base, refs, seen, admin })
    }

    /// Looks again and refuses unless everything is as it was.
    ///
    /// # Errors
    /// [`Reason::Changing`] if anything differs; otherwise as [`Glance::take`].
    pub(super) fn compare(
        &self,
        seat: &Seat<'_>,
        beat: &mut Beat<'_>,
    ) -> Result<(), WorkspaceError> {
        let changed =
            |path: &[u8]| Err(changing(&path_of(seat, path), "it changed while it was kept"));
        let index_raw = seat.admin_file("index")?;
        // Another index may have other submodules, and the walk would mean something else.
        if index_raw != self.index_raw {
            return changed(b"");
        }
        let now = Glance::take(seat, index_raw, self.gitlinks.clone(), beat)?;
        if let Some((a, _b)) = now.seen.iter().zip(&self.seen).find(|(a, b)| a != b) {
            return changed(&a.path);
        }
        let admin = |files: &[AdminFile]| -> Vec<(Seen, String)> {
            files.iter().map(|f| (f.seen.clone(), f.oid.clone())).collect()
        };
        let same = now.seen.len() == self.seen.len()
            && admin(&now.admin) == admin(&self.admin)
            && now.refs == self.refs
            && now.head == self.head
            && now.base == self.base;
        if same { Ok(()) } else { changed(b"") }
    }

    /// What the walk saw at a path.
    pub(crate) fn at(&self, path: &[u8]) -> Option<&Seen> {
        let found = self.seen.binary_search_by(|s| s.path.as_slice().cmp(path));
        found.ok().map(|n| &self.seen[n])
    }
}

/// The branch that is checked out and the commit; either may be empty, not both.
fn head_and_base(seat: &Seat<'_>, beat: &mut Beat<'_>) -> Result<(String, String), WorkspaceError> {
    // One git answers both where there is a commit.
    let args = ["rev-parse", "HEAD^{commit}", "--symbolic-full-name", "HEAD"];
    if let Some(both) = seat.ask_if(&args, beat)?
        && let Some((base, head)) = both.split_once('\n')
        && base.len() == seat.format.hex_len()
    {
        let head = if head == "HEAD" { "" } else { head };
        return Ok((head.to_owned(), base.to_owned()));
    }
    // It fails for a branch without commits, and for a head that is broken.
    let head = seat.ask_if(&["symbolic-ref", "--quiet", "HEAD"], beat)?.unwrap_or_default();
    let base = seat.ask_if(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"], beat)?;
    if head.is_empty() && base.is_none() {
        return Err(fail(
            Reason::Io,
            &seat.work,
            "the worktree's head names no commit and no branch",
            "run `git fsck` in the repository",
        ));
    }
    Ok((head, base.unwrap_or_default()))
}
