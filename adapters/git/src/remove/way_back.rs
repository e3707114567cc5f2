//! Putting things back where they were: a whole removal, or the folder of a worktree whose
//! registration still has work.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use freehold_kernel::Reason;
use freehold_store::workspaces::{StepDone, WorkspaceError};

use super::{Removal, done, rename};
use crate::error::{fail, io_fail};
use crate::identity::{Proof, common_dir, prove, prove_at, read_link_file};
use crate::inspect::{Standing, standing};
use crate::lock::lock_registry;
use crate::manifest;
use crate::root::{aside_path, is_there, make_folders, write_whole};

impl Removal<'_> {
    /// The directory is gone and its registration still has work: staged files, commits, refs.
    /// With a folder that has nothing but the link, the worktree is one in which every file was
    /// deleted, and everything that is left of it can be salvaged and removed like any other.
    pub(super) fn put_folder_back(&self, admin: &Path) -> Result<Proof, WorkspaceError> {
        let place = self.place;
        let folder = aside_path(&place.root, &format!("link-{}", self.id))?;
        make_folders(&place.root.path, &folder)?;
        let mut link = b"gitdir: ".to_vec();
        link.extend_from_slice(admin.as_os_str().as_bytes());
        link.push(b'\n');
        write_whole(&folder.join(".git"), &link)?;
        make_folders(&place.root.path, place.path.parent().unwrap_or(&place.root.path))?;
        // One rename, so that no crash leaves an empty folder that would be taken for another.
        rename(&folder, &place.path, "cannot put the worktree's folder back")?;
        prove(place)
    }

    /// The way back, while the trash is whole (C-18).
    pub(crate) fn put_back(&self) -> Result<StepDone, WorkspaceError> {
        let place = self.place;
        let trash = self.trash()?;
        if !is_there(&trash)? {
            manifest::forget(&place.root, self.id)?;
            return Ok(done(matches!(standing(place)?, Standing::Here(_))));
        }
        if manifest::is_purging(&place.root, self.id)? {
            return Err(fail(
                Reason::IdentityMismatch,
                &place.path,
                "its trash is not whole any more: unlinking has begun",
                "what was unsaved is in salvage; make the worktree again and restore it",
            ));
        }
        let common = common_dir(&place.repository)?;
        let moved = self.admin_trash(&common);
        if is_there(&moved)? {
            let link = read_link_file(&trash.join(".git"))
                .map_err(|e| io_fail(&trash, "cannot read the worktree's link", &e))?
                .unwrap_or_default();
            let name = link.file_name().unwrap_or_default();
            let _registry = lock_registry(&common, self.wait)?;
            make_folders(&common, &common.join("worktrees"))?;
            rename(
                &moved,
                &common.join("worktrees").join(name),
                "cannot put the registration back",
            )?;
        }
        prove_at(place, &trash)?;
        make_folders(&place.root.path, place.path.parent().unwrap_or(&place.root.path))?;
        rename(&trash, &place.path, "cannot put the worktree back")?;
        manifest::forget(&place.root, self.id)?;
        Ok(done(true))
    }
}
