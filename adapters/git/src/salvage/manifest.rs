//! The list in a salvage entry: one JSON object per line, so that it can be read with git and
//! eyes alone, and by the restore. Paths and names are percent-encoded: every byte that is not
//! plain ASCII text, and `%` and `"` and `\`, as `%` and two digits.

mod form;

use freehold_kernel::Unsaved;

/// The list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The entry's name.
    pub(crate) entry: String,
    /// `sha1` or `sha256`.
    pub(crate) object_format: String,
    /// The commit that was checked out, in hex; empty for an unborn branch.
    pub(crate) base: String,
    /// The branch that was checked out; empty for a detached head.
    pub(crate) head: String,
    /// Whether all files of the base are in the entry too.
    pub(crate) base_kept: bool,
    /// What kinds of unsaved work are in it.
    pub(crate) contents: Unsaved,
    /// Bytes of unsaved content.
    pub(crate) size: u64,
    /// Where the worktree was.
    pub(crate) worktree: Vec<u8>,
    /// Every entry of the index, in its order.
    pub(crate) index: Vec<IndexLine>,
    /// Paths of the base that the index no longer has.
    pub(crate) removed: Vec<RemovedLine>,
    /// Every path of the work tree, and the tracked ones that are not there.
    pub(crate) files: Vec<FileLine>,
    /// Files of the administration directory.
    pub(crate) admin: Vec<AdminLine>,
    /// Refs that only this worktree has: name and object.
    pub(crate) refs: Vec<(String, String)>,
    /// Commits that nothing else reached.
    pub(crate) commits: Vec<String>,
    /// Annotated tags that nothing else reached.
    pub(crate) tags: Vec<String>,
    /// Other objects that the worktree's state names.
    pub(crate) objects: Vec<String>,
    /// What could not be kept as it was.
    pub(crate) notes: Vec<String>,
}

/// One entry of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexLine {
    /// Path.
    pub(crate) path: Vec<u8>,
    /// Mode.
    pub(crate) mode: u32,
    /// Object.
    pub(crate) oid: String,
    /// Stage.
    pub(crate) stage: u8,
    /// Assume-unchanged.
    pub(crate) assume_unchanged: bool,
    /// Skip-worktree.
    pub(crate) skip_worktree: bool,
    /// Intent-to-add.
    pub(crate) intent_to_add: bool,
    /// What the base had at this path if it is not this: mode and object; `(0, "")` for nothing.
    pub(crate) base: Option<(u32, String)>,
}

/// A path that was taken out of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemovedLine {
    /// Path.
    pub(crate) path: Vec<u8>,
    /// Mode in the base.
    pub(crate) mode: u32,
    /// Object in the base.
    pub(crate) oid: String,
}

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A file.
    File,
    /// A symbolic link; its content is its target.
    Link,
    /// A folder.
    Dir,
    /// A socket, pipe or device: it has no content that can be kept.
    Special,
    /// A tracked path that is not there.
    Absent,
}

/// Whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// In the index.
    Tracked,
    /// Not in the index, not ignored.
    Untracked,
    /// Not in the index, ignored.
    Ignored,
    /// Inside a submodule.
    Submodule,
}

/// Where its content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// It has none.
    Nowhere,
    /// It is the object that the index names.
    Index,
    /// In the entry, in the tree of this name.
    Tree(&'static str),
}

/// One path of the work tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileLine {
    /// Path.
    pub(crate) path: Vec<u8>,
    /// What it is.
    pub(crate) kind: Kind,
    /// Whose it is.
    pub(crate) class: Class,
    /// Permission bits.
    pub(crate) perm: u32,
    /// Bytes.
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) mtime: i64,
    /// The object name of its bytes as they lie on disk, no filter applied; empty if none.
    pub(crate) oid: String,
    /// Where they are.
    pub(crate) at: At,
    /// Whether this is unsaved work; the others are listed so that a restore is exact.
    pub(crate) unsaved: bool,
}

/// One file of the administration directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdminLine {
    /// Path in it.
    pub(crate) path: Vec<u8>,
    /// A file or a link.
    pub(crate) kind: Kind,
    /// Permission bits.
    pub(crate) perm: u32,
    /// Object.
    pub(crate) oid: String,
}

#[cfg(test)]
mod tests {
    use super::form::{decode, encode};
    use super::*;

    #[test]
    fn every_byte_survives_and_none_breaks_a_line() {
        let all: Vec<u8> = (0..=255).collect();
        let text = encode(&all);
        assert!(text.bytes().all(|b| (0x20..0x7f).contains(&b) && b != b'"'), "{text}");
        assert_eq!(decode(&text), Some(all));
        assert_eq!(decode("%4"), None);
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let manifest = Manifest {
            entry: "e".into(),
            object_format: "sha1".into(),
            base: "ab".into(),
            contents: Unsaved::TRACKED.with(Unsaved::COMMITS),
            size: 7,
            worktree: b"/a\nb".to_vec(),
            index: vec![IndexLine {
                path: b"\xff".to_vec(),
                mode: 0o100_644,
                oid: "cd".into(),
                stage: 2,
                assume_unchanged: true,
                skip_worktree: false,
                intent_to_add: true,
                base: Some((0, String::new())),
            }],
            removed: vec![RemovedLine { path: b"r".to_vec(), mode: 0o120_000, oid: "ef".into() }],
            files: vec![FileLine {
                path: b"-f \"".to_vec(),
                kind: Kind::Link,
                class: Class::Ignored,
                perm: 0o777,
                size: 3,
                mtime: -1,
                oid: "01".into(),
                at: At::Tree("ignored"),
                unsaved: true,
            }],
            admin: vec![AdminLine {
                path: b"MERGE_HEAD".to_vec(),
                kind: Kind::File,
                perm: 0o644,
                oid: "02".into(),
            }],
            refs: vec![("refs/bisect/bad".into(), "03".into())],
            commits: vec!["04".into()],
            tags: vec!["05".into()],
            objects: vec!["06".into()],
            notes: vec!["a note\nof two lines".into()],
            ..Manifest::default()
        };
        let text = manifest.to_text();
        assert_eq!(text.lines().count(), 10);
        assert_eq!(Manifest::parse(&text), Ok(manifest));
        assert!(Manifest::parse("").is_err());
        assert!(
            Manifest::parse(&text.replace("\"freehold-salvage\":1", "\"freehold-salvage\":2"))
                .is_err()
        );
    }
}
