//! Whether a tracked file is changed (W-33), without running any program of the user's.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use freehold_store::workspaces::WorkspaceError;
use rustix::io::Errno;

use super::hash::Format;
use super::index::{Entry, IndexStat};
use super::manifest::Kind;
use super::scan::{Seen, Sign, changing, open_file, read_link};
use super::seat::{Beat, Seat};
use super::store::Scratch;
use crate::error::os_fail;

/// What deciding about a tracked file needs.
pub(super) struct Look<'a> {
    pub(super) seat: &'a Seat<'a>,
    pub(super) scratch: &'a Scratch<'a>,
    pub(super) index_plain: &'a [u8],
    pub(super) index_time: (i64, i64),
    pub(super) sizes: &'a BTreeMap<String, u64>,
    /// What git takes for changed, asked once if it matters.
    pub(super) modified: OnceCell<BTreeSet<Vec<u8>>>,
}

/// How a tracked file stands to its object.
pub(super) enum State {
    /// Its bytes are the object's.
    Same,
    /// Git takes it for unchanged, but its bytes are not the object's.
    Converted,
    /// It is changed.
    Changed,
}

impl Look<'_> {
    pub(super) fn state(
        &self,
        entry: &Entry,
        s: &Seen,
        beat: &mut Beat<'_>,
    ) -> Result<(String, State), WorkspaceError> {
        let mode_same =
            s.kind != Kind::File || (s.sign.mode & 0o100 != 0) == (entry.mode & 0o100 != 0);
        let known = entry.stage == 0 && !entry.intent_to_add && mode_same;
        let Some(size) = self.sizes.get(&entry.oid) else {
            // The repository has lost it, so that these may be the only bytes of it.
            return Ok((hash_of(self.seat, s)?, State::Changed));
        };
        if known && is_unchanged(&entry.stat, &s.sign, self.index_time) {
            return Ok(if s.kind == Kind::Link || *size == s.sign.size {
                (entry.oid.clone(), State::Same)
            } else {
                (hash_of(self.seat, s)?, State::Converted)
            });
        }
        let oid = hash_of(self.seat, s)?;
        if known && oid == entry.oid {
            return Ok((oid, State::Same));
        }
        // Other bytes, but git may call them unchanged: line ends, for one. Where bits hide the
        // file git would say so of anything, so there it is not asked.
        let hidden = entry.assume_unchanged || entry.skip_worktree;
        let converted = known
            && !hidden
            && s.kind == Kind::File
            && entry.mode & 0o170_000 == 0o100_000
            && !self.modified(beat)?.contains(&s.path);
        Ok((oid, if converted { State::Converted } else { State::Changed }))
    }

    /// Tracked files that git takes for changed, without the user's filter programs (W-32): what
    /// only such a program could call unchanged counts as changed.
    fn modified(&self, beat: &mut Beat<'_>) -> Result<&BTreeSet<Vec<u8>>, WorkspaceError> {
        if let Some(known) = self.modified.get() {
            return Ok(known);
        }
        let settings = self.seat.settings()?;
        let env = settings.filters_off();
        // A copy of the index that is older than everything: then git trusts no memory of a file,
        // which it would compare by whole seconds, but reads it.
        let copy = self.scratch.old_index(self.index_plain)?;
        let mut env = env;
        env.push(("GIT_INDEX_FILE", copy.as_os_str()));
        let args = ["diff-files", "-z", "--name-only", "--ignore-submodules=all"];
        let listed = self.seat.ask(&args, b"", &env, beat)?;
        let found =
            listed.split(|b| *b == 0).filter(|p| !p.is_empty()).map(<[u8]>::to_vec).collect();
        Ok(self.modified.get_or_init(|| found))
    }
}

/// Whether git's memory of a file proves it unchanged: nothing differs, and the file is older
/// than the index, so that a change in the same instant cannot hide.
pub(crate) fn is_unchanged(known: &IndexStat, sign: &Sign, index_time: (i64, i64)) -> bool {
    let same = |known: (u32, u32), now: (i64, i64)| {
        i64::from(known.0) == now.0 && i64::from(known.1) == now.1
    };
    let low = |n: u64| u32::try_from(n & 0xffff_ffff).unwrap_or(0);
    same(known.mtime, sign.mtime)
        && same(known.ctime, sign.ctime)
        && known.ino == low(sign.ino)
        && known.size == low(sign.size)
        && sign.mtime < index_time
}

/// The name of a file's or link's bytes as they are now.
pub(crate) fn hash_of(seat: &Seat<'_>, s: &Seen) -> Result<String, WorkspaceError> {
    let at = || seat.work.join(OsStr::from_bytes(&s.path));
    hash_at(&seat.top, seat.format, s)
        .map_err(|e| match e {
            Errno::NOENT | Errno::LOOP | Errno::NOTDIR => {
                changing(&at(), "it was replaced while it was read")
            }
            e => os_fail(&at(), "cannot read the file", e),
        })?
        .ok_or_else(|| changing(&at(), "its size changed while it was read"))
}

/// The same below any opened folder; none if its size is not what was seen.
pub(crate) fn hash_at(top: &OwnedFd, format: Format, s: &Seen) -> Result<Option<String>, Errno> {
    if s.kind == Kind::Link {
        return Ok(Some(format.blob(&read_link(top, &s.path)?)));
    }
    let file = open_file(top, &s.path)?;
    format.blob_of(file, s.sign.size).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_proves_only_what_is_older_than_the_index() {
        let known = IndexStat { ctime: (7, 1), mtime: (5, 3), ino: 9, size: 4 };
        let sign = Sign { mode: 0o100_644, ino: 9, size: 4, mtime: (5, 3), ctime: (7, 1) };
        assert!(is_unchanged(&known, &sign, (5, 4)));
        assert!(!is_unchanged(&known, &sign, (5, 3)), "written in the same instant");
        assert!(!is_unchanged(&known, &sign, (0, 0)), "there is no index");
        let others = [
            Sign { ino: 8, ..sign },
            Sign { size: 5, ..sign },
            Sign { mtime: (5, 2), ..sign },
            Sign { mtime: (4, 3), ..sign },
            Sign { ctime: (7, 2), ..sign },
            Sign { ctime: (6, 1), ..sign },
        ];
        for other in others {
            assert!(!is_unchanged(&known, &other, (9, 0)), "{other:?}");
        }
        let forgotten = IndexStat::default();
        assert!(!is_unchanged(&forgotten, &sign, (9, 0)));
    }
}
