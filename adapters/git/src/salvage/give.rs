//! Objects on their way back into the user's repository.

use std::collections::BTreeSet;

use freehold_kernel::Reason;
use freehold_store::workspaces::WorkspaceError;

use super::manifest::Manifest;
use super::reach::as_lines;
use super::seat::{Beat, Pipe, Seat, lines};
use super::store::{DURABLE, Scratch, Store};
use crate::error::fail;
use crate::process::Input;

/// Gives the user's repository the objects that the index and head will name. No ref is made;
/// what the worktree's own index and head name, no collection takes.
pub(super) fn give_objects(
    seat: &Seat<'_>,
    store: &Store<'_>,
    scratch: &Scratch<'_>,
    manifest: &Manifest,
    ref_name: &str,
    beat: &mut Beat<'_>,
) -> Result<(), WorkspaceError> {
    let mut oids: BTreeSet<String> = manifest
        .index
        .iter()
        .filter(|e| e.base.is_some() && e.mode != 0o160_000)
        .map(|e| e.oid.clone())
        .collect();
    let mut tops: BTreeSet<String> = manifest.objects.iter().cloned().collect();
    let mut raw = Vec::new();
    let kept = |kind: &str, path: String| {
        let revision = format!("{ref_name}:{path}");
        (kind.to_owned(), revision)
    };
    for oid in &manifest.commits {
        raw.push((oid, kept("commit", format!("commits/{oid}/commit"))));
    }
    for oid in &manifest.tags {
        raw.push((oid, kept("tag", format!("tags/{oid}"))));
    }
    let mut bodies = Vec::new();
    for (oid, (kind, revision)) in raw {
        let body = store.repo.ask(&["cat-file", "blob", &revision], Pipe::default(), beat)?;
        if kind == "commit" {
            tops.extend(super::reach::header(&body, "tree"));
        }
        bodies.push((oid, kind, body));
    }
    // The empty tree is in no entry; every repository knows it.
    let empty = seat.format.empty_tree();
    let makes_empty = tops.remove(&empty);
    if !tops.is_empty() {
        let input = as_lines(&tops);
        let pipe = Pipe { stdin: Input::Bytes(&input), ..Pipe::default() };
        let args = ["rev-list", "--objects", "--no-object-names", "--stdin"];
        oids.extend(lines(&store.repo.ask(&args, pipe, beat)?));
    }
    if !oids.is_empty() {
        let pack = scratch.create("give.pack")?;
        let input = as_lines(&oids);
        let pipe = Pipe { stdin: Input::Bytes(&input), stdout: Some(&pack), ..Pipe::default() };
        let args = ["pack-objects", "--quiet", "--stdout", "--window=0", "--delta-base-offset"];
        store.repo.ask(&args, pipe, beat)?;
        let args: &[&str] =
            if oids.len() > 100 { &["index-pack", "--stdin"] } else { &["unpack-objects", "-q"] };
        let pipe = Pipe { stdin: Input::File(pack.inner()), config: DURABLE, ..Pipe::default() };
        seat.pipe(args, pipe, beat)?;
    }
    if makes_empty {
        bodies.push((&empty, "tree".into(), Vec::new()));
    }
    for (oid, kind, body) in bodies {
        let args = ["hash-object", "-t", &kind, "-w", "--literally", "--stdin"];
        let pipe = Pipe { stdin: Input::Bytes(&body), config: DURABLE, ..Pipe::default() };
        let made = seat.pipe(&args, pipe, beat)?;
        if made.trim_ascii_end() != oid.as_bytes() {
            return Err(fail(
                Reason::Io,
                &store.repo.dir,
                format!("{kind} {oid} cannot be put back under its own name"),
                "read it with git from the salvage store",
            ));
        }
    }
    Ok(())
}

/// Gives back the commit that was checked out, with all its files, if garbage collection took
/// them. False if the entry does not have them either: they were too large.
pub(super) fn give_base(
    seat: &Seat<'_>,
    store: &Store<'_>,
    scratch: &Scratch<'_>,
    manifest: &Manifest,
    ref_name: &str,
    beat: &mut Beat<'_>,
) -> Result<bool, WorkspaceError> {
    let base = manifest.base.as_str();
    if base.is_empty() || is_whole(seat, base, beat)? {
        return Ok(true);
    }
    if !manifest.base_kept {
        return Ok(false);
    }
    let args = ["rev-parse", "--quiet", "--verify", &format!("{ref_name}:base/tree")];
    if let Some(tree) = store.repo.ask_if(&args, beat)? {
        let args = ["rev-list", "--objects", "--no-object-names", tree.as_str()];
        let oids: BTreeSet<String> =
            lines(&store.repo.ask(&args, Pipe::default(), beat)?).collect();
        let pack = scratch.create("base.pack")?;
        let input = as_lines(&oids);
        let pipe = Pipe { stdin: Input::Bytes(&input), stdout: Some(&pack), ..Pipe::default() };
        let args = ["pack-objects", "--quiet", "--stdout", "--window=0", "--delta-base-offset"];
        store.repo.ask(&args, pipe, beat)?;
        let pipe = Pipe { stdin: Input::File(pack.inner()), config: DURABLE, ..Pipe::default() };
        seat.pipe(&["index-pack", "--stdin"], pipe, beat)?;
    }
    let revision = format!("{ref_name}:base/commit");
    let body = store.repo.ask(&["cat-file", "blob", &revision], Pipe::default(), beat)?;
    let pipe = Pipe { stdin: Input::Bytes(&body), config: DURABLE, ..Pipe::default() };
    let args = ["hash-object", "-t", "commit", "-w", "--literally", "--stdin"];
    seat.pipe(&args, pipe, beat)?;
    is_whole(seat, base, beat)
}

/// Whether the repository has a commit with all its files.
fn is_whole(seat: &Seat<'_>, base: &str, beat: &mut Beat<'_>) -> Result<bool, WorkspaceError> {
    let args = ["rev-list", "--objects", "--no-walk", "--quiet", base, "--"];
    Ok(seat.ask_if(&args, beat)?.is_some())
}
