//! Commits that nothing else reaches (W-33), and how large objects are.
//!
//! Such a commit is kept as its own bytes beside its whole tree, not as a parent of the entry:
//! so an entry never drags a repository's history along, needs no grafts, and gives every commit
//! back under its own name (`git hash-object -t commit`).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;

use freehold_kernel::Reason;
use freehold_store::workspaces::WorkspaceError;

use super::seat::{Beat, Seat, lines};
use crate::error::fail;

/// An object as git hands it out.
pub(crate) struct Object {
    /// Its name in hex.
    pub(crate) oid: String,
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
}

/// Files of a commit: mode and object by path.
pub(crate) type Files = BTreeMap<Vec<u8>, (u32, String)>;

/// The commit that is checked out; all of it empty for an unborn branch.
#[derive(Default)]
pub(crate) struct Base {
    /// Its tree, in hex.
    pub(crate) tree: String,
    /// Its own bytes.
    pub(crate) commit: Vec<u8>,
    /// Its files.
    pub(crate) files: Files,
    /// The size of each of their objects that is there.
    pub(crate) sizes: BTreeMap<String, u64>,
}

/// What the roots reach and nothing else does.
#[derive(Default)]
pub(crate) struct Reach {
    /// Commits with their bytes.
    pub(crate) commits: Vec<Object>,
    /// Annotated tags with their bytes.
    pub(crate) tags: Vec<Object>,
    /// Trees and blobs that are roots themselves: name and kind.
    pub(crate) objects: Vec<(String, String)>,
    /// Every object that the trees of these commits and these objects are made of.
    pub(crate) parts: BTreeSet<String>,
}

/// Follows the roots. Names that are no objects are passed over: they come from texts.
pub(crate) fn reach(
    seat: &Seat<'_>,
    roots: &BTreeSet<String>,
    beat: &mut Beat<'_>,
) -> Result<Reach, WorkspaceError> {
    let mut out = Reach::default();
    let mut starts = BTreeSet::new();
    let mut queue: BTreeSet<String> = roots.clone();
    let mut known = BTreeSet::new();
    while !queue.is_empty() {
        let mut tags = BTreeSet::new();
        for (oid, (kind, _size)) in sizes(seat, &queue, beat)? {
            match kind.as_str() {
                "commit" => {
                    starts.insert(oid);
                }
                "tag" => {
                    tags.insert(oid);
                }
                _tree_or_blob => out.objects.push((oid, kind)),
            }
        }
        known.append(&mut queue);
        let tags = read(seat, &tags, beat)?;
        queue = tags
            .iter()
            .filter_map(|tag| header(&tag.bytes, "object"))
            .filter(|oid| !known.contains(oid))
            .collect();
        out.tags.extend(tags);
    }
    if !starts.is_empty() {
        let args = ["rev-list", "--stdin", "--not", "--branches", "--remotes", "--tags"];
        let found: BTreeSet<String> =
            lines(&seat.ask(&args, &as_lines(&starts), &[], beat)?).collect();
        out.commits = read(seat, &found, beat)?;
    }
    let mut tops: BTreeSet<String> = out.objects.iter().map(|(oid, _kind)| oid.clone()).collect();
    tops.extend(out.commits.iter().filter_map(|c| header(&c.bytes, "tree")));
    out.parts = parts(seat, &tops, beat)?;
    Ok(out)
}

/// How many commits of one branch an entry takes along for trash that is kept.
const BRANCH_COMMITS_MAX: usize = 1000;

/// The commits up to a tip that nothing but this branch reaches; none if they are too many.
pub(super) fn only_on(
    seat: &Seat<'_>,
    branch: &str,
    tip: &str,
    beat: &mut Beat<'_>,
) -> Result<Option<Vec<Object>>, WorkspaceError> {
    // Patterns for branches are without their folder; a branch's name has no character of globs.
    let exclude = format!("--exclude={}", branch.strip_prefix("refs/heads/").unwrap_or(branch));
    let most = format!("--max-count={}", BRANCH_COMMITS_MAX + 1);
    let args =
        ["rev-list", &most, tip, "--not", &exclude, "--branches", "--remotes", "--tags", "--"];
    let found: BTreeSet<String> = lines(&seat.ask(&args, b"", &[], beat)?).collect();
    if found.len() > BRANCH_COMMITS_MAX {
        return Ok(None);
    }
    read(seat, &found, beat).map(Some)
}

/// Every object that these trees and blobs are made of, themselves included.
fn parts(
    seat: &Seat<'_>,
    tops: &BTreeSet<String>,
    beat: &mut Beat<'_>,
) -> Result<BTreeSet<String>, WorkspaceError> {
    if tops.is_empty() {
        return Ok(BTreeSet::new());
    }
    let args = ["rev-list", "--objects", "--no-object-names", "--stdin"];
    Ok(lines(&seat.ask(&args, &as_lines(tops), &[], beat)?).collect())
}

/// Kind and size of every object that is there.
pub(crate) fn sizes(
    seat: &Seat<'_>,
    oids: &BTreeSet<String>,
    beat: &mut Beat<'_>,
) -> Result<BTreeMap<String, (String, u64)>, WorkspaceError> {
    if oids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let args = ["cat-file", "--buffer", "--batch-check"];
    let asked = seat.ask(&args, &as_lines(oids), &[], beat)?;
    Ok(lines(&asked)
        .filter_map(|line| {
            let mut words = line.split(' ');
            let (oid, kind, size) = (words.next()?, words.next()?, words.next()?);
            Some((oid.to_owned(), (kind.to_owned(), size.parse().ok()?)))
        })
        .collect())
}

/// Reads objects whole; for small ones.
fn read(
    seat: &Seat<'_>,
    oids: &BTreeSet<String>,
    beat: &mut Beat<'_>,
) -> Result<Vec<Object>, WorkspaceError> {
    if oids.is_empty() {
        return Ok(Vec::new());
    }
    let env: &[(&str, &OsStr)] = &[];
    let bytes = seat.ask(&["cat-file", "--buffer", "--batch"], &as_lines(oids), env, beat)?;
    batch(&bytes).ok_or_else(|| {
        fail(
            Reason::Io,
            &seat.admin,
            "an object that the worktree needs is missing in its repository",
            "run `git fsck` in the repository; in a partial clone, fetch the missing objects",
        )
    })
}

/// Takes the output of `cat-file --batch` apart; none if an object was missing.
pub(crate) fn batch(bytes: &[u8]) -> Option<Vec<Object>> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let end = rest.iter().position(|b| *b == b'\n')?;
        let head = std::str::from_utf8(&rest[..end]).ok()?;
        let mut words = head.split(' ');
        let (oid, _kind, size) = (words.next()?, words.next()?, words.next()?);
        let size: usize = size.parse().ok()?;
        let body = rest.get(end + 1..end + 1 + size)?.to_vec();
        rest = rest.get(end + 2 + size..)?;
        out.push(Object { oid: oid.to_owned(), bytes: body });
    }
    Some(out)
}

/// The first header of this name in a commit or tag.
pub(crate) fn header(bytes: &[u8], name: &str) -> Option<String> {
    bytes.split(|b| *b == b'\n').take_while(|line| !line.is_empty()).find_map(|line| {
        let rest = line.strip_prefix(name.as_bytes())?.strip_prefix(b" ")?;
        String::from_utf8(rest.to_vec()).ok()
    })
}

/// Object names as git reads them.
pub(crate) fn as_lines<'a>(oids: impl IntoIterator<Item = &'a String>) -> Vec<u8> {
    oids.into_iter().flat_map(|oid| oid.bytes().chain([b'\n'])).collect()
}

/// Every whole object name in a text (W-33: what an operation in progress refers to; an autostash
/// is nowhere else).
pub(crate) fn names_in(text: &[u8], hex_len: usize) -> impl Iterator<Item = String> + '_ {
    text.split(|b| !matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        .filter(move |word| word.len() == hex_len && word.iter().any(|b| *b != b'0'))
        .map(|word| String::from_utf8_lossy(word).into_owned())
}

/// Looks up the base.
pub(super) fn base_of(
    seat: &Seat<'_>,
    base: &str,
    beat: &mut Beat<'_>,
) -> Result<Base, WorkspaceError> {
    if base.is_empty() {
        return Ok(Base::default());
    }
    let commit = seat.ask(&["cat-file", "commit", base], b"", &[], beat)?;
    let tree = header(&commit, "tree").unwrap_or_default();
    // With the sizes: each object is looked up once, by the git that lists it.
    let listed = seat.ask(&["ls-tree", "-r", "-l", "-z", "--full-tree", base], b"", &[], beat)?;
    let (mut files, mut sizes) = (Files::new(), BTreeMap::new());
    let lines = listed.split(|b| *b == 0).filter_map(|line| {
        let tab = line.iter().position(|b| *b == b'\t')?;
        let mut words = std::str::from_utf8(&line[..tab]).ok()?.split_ascii_whitespace();
        let mode = u32::from_str_radix(words.next()?, 8).ok()?;
        let oid = words.nth(1)?.to_owned();
        // A word stands for the size of a submodule's commit and of an object that is not there.
        Some((line[tab + 1..].to_vec(), mode, oid, words.next()?.parse().ok()))
    });
    for (path, mode, oid, size) in lines {
        if let Some(size) = size {
            sizes.insert(oid.clone(), size);
        }
        files.insert(path, (mode, oid));
    }
    Ok(Base { tree, commit, files, sizes })
}

/// Bytes of the base's files; none if one of them is not there.
pub(super) fn base_size(files: &Files, sizes: &BTreeMap<String, u64>) -> Option<u64> {
    let blobs: BTreeSet<&String> =
        files.values().filter(|(mode, _oid)| *mode != 0o160_000).map(|(_mode, oid)| oid).collect();
    blobs.into_iter().map(|oid| sizes.get(oid).copied()).sum()
}
