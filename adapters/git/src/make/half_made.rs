//! What a git that was killed inside `worktree add` leaves behind (W-2, W-12).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use freehold_store::workspaces::{Place, WorkspaceError};

use crate::disk as fs;
use crate::error::io_fail;
use crate::identity::{
    admin_dirs, is_half_made, is_ready, is_stamped, read_link_file, registered_path,
};
use crate::root::{At, component, is_there, make_folders, open_place};

/// Takes away what a killed git left at the attempt's own path: a registration with our stamp
/// that was not finished, or an empty one of our own unique name, and a folder without content
/// (W-2). Nothing here can hold anybody's work.
pub(crate) fn clear_half_made(place: &Place, common: &Path) -> Result<(), WorkspaceError> {
    let name = place.path.file_name().unwrap_or_default();
    for admin in admin_dirs(common)? {
        let ours = is_stamped(&admin, &place.stamp)?
            && registered_path(&admin)?.is_none_or(|named| named == place.path);
        let numbered = admin.file_name().is_some_and(|found| {
            let rest = found.as_bytes().strip_prefix(name.as_bytes());
            rest.is_some_and(|rest| rest.iter().all(u8::is_ascii_digit))
        });
        // A registration whose folder is gone is no checkout that can be finished.
        let unfinished = ours && (is_half_made(&admin)? || !is_there(&place.path.join(".git"))?);
        if unfinished && !is_ready(&admin)? {
            fs::remove_dir_all(&admin)
                .map_err(|e| io_fail(&admin, "cannot clear a half-made registration", &e))?;
        } else if numbered {
            // Only an empty folder goes this way: git was killed before its first file.
            let _kept = fs::remove_dir(&admin);
        }
    }
    clear_empty_folder(place)
}

/// Removes the folder of the attempt's own path if it holds nothing but a link that leads nowhere.
fn clear_empty_folder(place: &Place) -> Result<(), WorkspaceError> {
    let At::Folder(_) = open_place(place)? else { return Ok(()) };
    let entries = fs::read_dir(&place.path)
        .map_err(|e| io_fail(&place.path, "cannot look into the folder", &e))?;
    let names: Vec<OsString> = entries.iter().map(|e| e.file_name()).collect();
    let link = place.path.join(".git");
    let dangling = names.as_slice() == [OsStr::new(".git")]
        && match read_link_file(&link)
            .map_err(|e| io_fail(&link, "cannot read the link of the folder", &e))?
        {
            Some(target) => !is_there(&place.path.join(target))?,
            None => true,
        };
    if dangling {
        fs::remove_file(&link).map_err(|e| io_fail(&link, "cannot clear a dead link", &e))?;
    }
    if dangling || names.is_empty() {
        fs::remove_dir(&place.path)
            .map_err(|e| io_fail(&place.path, "cannot clear an empty folder", &e))?;
    }
    Ok(())
}

/// Puts registrations aside that a killed git left unfinished, whoever's they were, since they
/// can break every later git command (W-12). They are renamed, not deleted; what has a directory
/// with content is not touched.
pub(crate) fn put_aside_half_made(common: &Path, age: Duration) -> Result<usize, WorkspaceError> {
    let mut count = 0;
    for admin in admin_dirs(common)? {
        let old = fs::metadata(&admin)
            .and_then(|m| m.modified())
            .ok()
            .and_then(|t| SystemTime::now().duration_since(t).ok())
            .is_some_and(|a| a >= age);
        // A folder that cannot be looked into may hold anything.
        let content = registered_path(&admin)?.is_some_and(|path| match fs::read_dir(path) {
            Ok(entries) => entries.iter().any(|e| e.file_name() != ".git"),
            Err(e) => !fs::is_absence(&e),
        });
        if !old || content || !is_half_made(&admin)? {
            continue;
        }
        let folder = common.join("freehold").join("half-made");
        make_folders(common, &folder)?;
        let name = admin.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut to = folder.join(component(&name));
        let mut number = 1u32;
        while is_there(&to)? {
            to = folder.join(format!("{}-{number}", component(&name)));
            number += 1;
        }
        fs::rename(&admin, &to)
            .map_err(|e| io_fail(&admin, "cannot put a half-made registration aside", &e))?;
        count += 1;
    }
    Ok(count)
}
