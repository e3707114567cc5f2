//! Keeping what is unsaved (W-34).
//!
//! ```text
//! look -> limit -> write and pack in the scratch -> look again, same? -> move the pack in
//!   ^------------- changed, a few times ------------------'              -> ref -> read back
//! ```

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use freehold_kernel::Reason;
use freehold_store::workspaces::{Place, Pulse, SalvageMade, WorkspaceError};

use super::Keep;
use super::manifest::{At, Class};
use super::scan::changing;
use super::seat::{Beat, Seat};
use super::store::{Scratch, Store, ref_of};
use super::survey::Survey;
use super::tracked::hash_of;
use super::writer::Writer;
use crate::error::fail;
use crate::process::Git;

/// How often a worktree that changes while it is kept is begun again.
const TRIES: u32 = 4;

/// The same as [`super::save`], for a worktree that may have been moved.
pub(super) fn save(
    git: &Git,
    seat: &Seat<'_>,
    place: &Place,
    entry: &str,
    keep: Keep,
    pulse: Pulse<'_>,
) -> Result<Option<SalvageMade>, WorkspaceError> {
    let mut beat = Beat::new(pulse, &place.path);
    let scratch = Scratch::new(git, &place.root, &format!("save-{entry}"), seat.format)?;
    let store = Store::new(git, &place.root, seat.format);
    let mut tries = 0;
    loop {
        tries += 1;
        let made = attempt(seat, &store, &scratch, entry, keep, &mut beat);
        match made {
            Err(e) if e.reason == Reason::Changing && tries < TRIES => {
                beat.now()?;
                scratch.clear()?;
            }
            other => return other,
        }
    }
}

fn attempt(
    seat: &Seat<'_>,
    store: &Store<'_>,
    scratch: &Scratch<'_>,
    entry: &str,
    keep: Keep,
    beat: &mut Beat<'_>,
) -> Result<Option<SalvageMade>, WorkspaceError> {
    let mut survey = Survey::take(seat, scratch, beat)?;
    if keep.head {
        survey.keep_head(seat, beat)?;
    } else if survey.manifest.contents.is_none() && !survey.manifest.head.is_empty() {
        return Ok(None);
    }
    beat.now()?;
    let ref_name = ref_of(entry);
    survey.manifest.entry = entry.to_owned();
    fit(&mut survey, seat, keep.limit)?;

    let commit = Writer::write(seat, scratch, &mut survey, &ref_name, beat)?;
    let before = store.tip(&ref_name, beat)?;
    store.open(scratch)?;
    let pack = store.pack(scratch, seat, &commit, beat)?;
    beat.now()?;
    // As late as possible, but while nothing in the store has changed yet.
    compare(seat, &survey, beat)?;
    let pack = store.adopt(&pack)?;
    beat.now()?;
    store.point(&ref_name, &commit, before.as_deref(), beat)?;
    // Read back with the ref in place: from here on no collection can take anything away, and
    // whatever one took before is noticed.
    if let Err(e) = store.verify(&ref_name, &commit, pack.as_deref(), beat) {
        store.unpoint(&ref_name, &commit, before.as_deref(), beat)?;
        return Err(e);
    }
    let manifest = &survey.manifest;
    Ok(Some(SalvageMade {
        ref_name,
        base: manifest.base.clone(),
        contents: manifest.contents,
        size: manifest.size,
    }))
}

/// Holds the entry against the limit before anything is written. What is unsaved must fit; the
/// files of the base and files that git merely converted are reached elsewhere, and are added as
/// far as there is room, so that an entry is whole by itself.
fn fit(survey: &mut Survey, seat: &Seat<'_>, limit: u64) -> Result<(), WorkspaceError> {
    let size = survey.manifest.size;
    if size > limit {
        return Err(fail(
            Reason::TooLarge,
            &seat.work,
            format!("what is unsaved has {size} bytes; salvage may take {limit}"),
            "raise the limit (freehold settings set --salvage-limit BYTES), move the large files away, \
             declare them rebuildable, or discard them with consent",
        ));
    }
    let mut room = limit - size;
    let own = survey.manifest.commits.contains(&survey.manifest.base);
    match survey.base_size {
        _any if own => survey.manifest.base_kept = true,
        Some(bytes) if bytes <= room && !survey.manifest.base.is_empty() => {
            room -= bytes;
            survey.manifest.base_kept = true;
        }
        Some(_) | None if survey.manifest.base.is_empty() => {}
        Some(_) | None => survey.manifest.notes.push(format!(
            "the unchanged files of {} are not in this entry: they are too large, or not all there",
            survey.manifest.base
        )),
    }
    if survey.converted > room {
        survey.manifest.notes.push(format!(
            "{} bytes of files that git converts (line ends, LFS) and takes for unchanged are not \
             in this entry",
            survey.converted
        ));
        for file in &mut survey.manifest.files {
            if matches!(file.at, At::Tree(_)) && !file.unsaved && file.class == Class::Tracked {
                file.at = At::Nowhere;
                file.oid = String::new();
            }
        }
    }
    Ok(())
}

/// Looks at the worktree again: everything is as it was, and every file that was kept has the
/// bytes that were kept (W-34).
fn compare(seat: &Seat<'_>, kept: &Survey, beat: &mut Beat<'_>) -> Result<(), WorkspaceError> {
    kept.glance.compare(seat, beat)?;
    for file in kept.manifest.files.iter().filter(|f| matches!(f.at, At::Tree(_))) {
        beat.tick()?;
        if let Some(seen) = kept.glance.at(&file.path)
            && hash_of(seat, seen)? != file.oid
        {
            return Err(changing(&path_of(seat, &file.path), "it changed while it was kept"));
        }
    }
    Ok(())
}

/// A path of the worktree, whole, for sentences.
pub(super) fn path_of(seat: &Seat<'_>, path: &[u8]) -> PathBuf {
    seat.work.join(OsStr::from_bytes(path))
}
