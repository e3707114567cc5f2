//! Whether files are as the index has them, more exactly than git itself tells (W-33). Git compares
//! whole seconds: what is written twice in one second, the second time after it was staged, looks
//! unchanged to it if the size is the same.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use freehold_store::workspaces::WorkspaceError;

use super::hash::Format;
use super::index::{Entry, Index};
use super::manifest::Kind;
use super::scan::{Seen, Sign, look, open_top};
use super::tracked::{hash_at, is_unchanged};
use crate::disk as fs;
use crate::error::{io_fail, os_fail};
use crate::tree::{self, What};

/// What an index remembers of the files of a worktree.
pub(crate) struct Memory {
    top: OwnedFd,
    format: Format,
    entries: HashMap<Vec<u8>, Entry>,
    time: (i64, i64),
}

impl Memory {
    /// That of the worktree at `work`; none if there is no index, or none that is plain.
    ///
    /// # Errors
    /// If it is there and cannot be read.
    pub(crate) fn of(
        admin: &Path,
        work: &Path,
        format: Format,
    ) -> Result<Option<Memory>, WorkspaceError> {
        // Its time first: a later one would trust too much.
        let seen = look(&open_top(admin)?, b"index")
            .map_err(|e| os_fail(admin, "cannot look at the index", e))?;
        let Some(seen) = seen else { return Ok(None) };
        let file = admin.join("index");
        let raw = fs::read(&file).map_err(|e| io_fail(&file, "cannot read the index", &e))?;
        let Ok(index) = Index::parse(&raw, format) else { return Ok(None) };
        if index.is_split || index.is_sparse {
            return Ok(None);
        }
        let entries = index.entries.into_iter().map(|e| (e.path.clone(), e)).collect();
        Ok(Some(Memory { top: open_top(work)?, format, entries, time: seen.sign.mtime }))
    }

    /// Whether a file or link is what the index has: by its signs to the nanosecond, or, where they
    /// prove nothing, by its bytes.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn has(&self, entry: &tree::Entry) -> Result<bool, WorkspaceError> {
        let Some(known) = self.entries.get(entry.bytes()) else { return Ok(false) };
        let kind = match (entry.what, known.mode) {
            (What::File, 0o100_644 | 0o100_755) => Kind::File,
            (What::Link, 0o120_000) => Kind::Link,
            _other => return Ok(false),
        };
        if kind == Kind::File && (entry.mode & 0o100 != 0) != (known.mode & 0o100 != 0) {
            return Ok(false);
        }
        let sign = Sign {
            mode: entry.mode,
            ino: entry.inode.1,
            size: entry.size,
            mtime: parts(entry.mtime),
            ctime: parts(entry.ctime),
        };
        if is_unchanged(&known.stat, &sign, self.time) {
            return Ok(true);
        }
        let seen = Seen { path: entry.bytes().to_vec(), kind, sign };
        match hash_at(&self.top, self.format, &seen) {
            Ok(found) => Ok(found.as_ref() == Some(&known.oid)),
            Err(e) => {
                Err(os_fail(Path::new(OsStr::from_bytes(entry.bytes())), "cannot read the file", e))
            }
        }
    }
}

/// Nanoseconds as seconds and the rest.
fn parts(time: i128) -> (i64, i64) {
    const SECOND: i128 = 1_000_000_000;
    let whole = |n: i128| i64::try_from(n).unwrap_or(i64::MAX);
    (whole(time.div_euclid(SECOND)), whole(time.rem_euclid(SECOND)))
}
