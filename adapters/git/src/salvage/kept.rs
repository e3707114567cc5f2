//! What a removal has in the private store, whether or not a row says so (P-29).

use freehold_kernel::Reason;
use freehold_store::workspaces::{Pulse, RootPlace, SalvageMade, WorkspaceError};

use super::hash::Format;
use super::manifest::Manifest;
use super::seat::{Beat, Pipe, lines};
use super::store::{Store, ref_of};
use crate::error::fail;
use crate::process::Git;

/// The entry of this name; none if nothing was kept under it.
///
/// # Errors
/// If a private store is there and cannot be read, or the entry's list cannot: unknown is not
/// absent.
pub(crate) fn kept(
    git: &Git,
    root: &RootPlace,
    entry: &str,
    pulse: Pulse<'_>,
) -> Result<Option<SalvageMade>, WorkspaceError> {
    let mut beat = Beat::new(pulse, &root.path);
    let ref_name = ref_of(entry);
    for format in [Format::Sha1, Format::Sha256] {
        let store = Store::new(git, root, format);
        if store.tip(&ref_name, &mut beat)?.is_none() {
            continue;
        }
        // The list's first line is in the commit's message, so nothing large is read here.
        let args = ["for-each-ref", "--format=%(contents:body)", &ref_name];
        let answer = store.repo.ask(&args, Pipe::default(), &mut beat)?;
        let header = lines(&answer).next().unwrap_or_default();
        let manifest = Manifest::parse(&header).map_err(|e| {
            fail(
                Reason::Io,
                &store.repo.dir,
                format!("{ref_name} was kept and cannot be read: {e}"),
                "nothing was unlinked; look at it with git",
            )
        })?;
        return Ok(Some(SalvageMade {
            ref_name,
            base: manifest.base,
            contents: manifest.contents,
            size: manifest.size,
        }));
    }
    Ok(None)
}
