//! The list in a salvage entry: one JSON object per line, so that it can be read with git and
//! eyes alone, and by the restore. Paths and names are percent-encoded: every byte that is not
//! plain ASCII text, and `%` and `"` and `\`, as `%` and two digits.

use freehold_kernel::Unsaved;
use serde_json::{Map, Value, json};

use super::hash::hex;

/// The version of the form.
const VERSION: u64 = 1;

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

impl Manifest {
    /// The first line alone; it is in the commit's message too.
    pub(crate) fn header(&self) -> String {
        json!({
            "freehold-salvage": VERSION,
            "entry": self.entry,
            "object_format": self.object_format,
            "base": self.base,
            "head": self.head,
            "base_kept": self.base_kept,
            "contents": words(self.contents),
            "size": self.size,
            "worktree": encode(&self.worktree),
        })
        .to_string()
    }

    /// The whole text.
    pub(crate) fn to_text(&self) -> String {
        let mut out = self.header();
        let mut line = |value: Value| {
            out.push('\n');
            out.push_str(&value.to_string());
        };
        for e in &self.index {
            let mut value = json!({
                "index": encode(&e.path), "mode": octal(e.mode), "oid": e.oid, "stage": e.stage,
            });
            if let Some(map) = value.as_object_mut() {
                flag(map, "assume_unchanged", e.assume_unchanged);
                flag(map, "skip_worktree", e.skip_worktree);
                flag(map, "intent_to_add", e.intent_to_add);
                if let Some((mode, oid)) = &e.base {
                    map.insert("base_mode".into(), octal(*mode).into());
                    map.insert("base_oid".into(), oid.as_str().into());
                }
            }
            line(value);
        }
        for r in &self.removed {
            line(json!({
                "removed": encode(&r.path), "base_mode": octal(r.mode), "base_oid": r.oid,
            }));
        }
        for f in &self.files {
            let mut value = json!({
                "file": encode(&f.path), "kind": kind_word(f.kind), "class": class_word(f.class),
                "perm": octal(f.perm), "size": f.size, "mtime": f.mtime, "oid": f.oid,
                "at": at_word(f.at),
            });
            if let Some(map) = value.as_object_mut() {
                flag(map, "unsaved", f.unsaved);
            }
            line(value);
        }
        for a in &self.admin {
            line(json!({
                "admin": encode(&a.path), "kind": kind_word(a.kind), "perm": octal(a.perm),
                "oid": a.oid,
            }));
        }
        for (name, oid) in &self.refs {
            line(json!({ "ref": encode(name.as_bytes()), "oid": oid }));
        }
        for (word, list) in
            [("commit", &self.commits), ("tag", &self.tags), ("object", &self.objects)]
        {
            for oid in list {
                line(json!({ word: oid }));
            }
        }
        for note in &self.notes {
            line(json!({ "note": note }));
        }
        out.push('\n');
        out
    }

    /// Reads the text back.
    ///
    /// # Errors
    /// Says which line is wrong.
    pub(crate) fn parse(text: &str) -> Result<Manifest, String> {
        let mut out = Manifest::default();
        for (n, text) in text.lines().enumerate() {
            let value: Value =
                serde_json::from_str(text).map_err(|e| format!("line {}: {e}", n + 1))?;
            let read = if n == 0 { out.read_header(&value) } else { out.read_line(&value) };
            read.ok_or_else(|| format!("line {} is not one that this version knows", n + 1))?;
        }
        if out.object_format.is_empty() { Err("it is empty".into()) } else { Ok(out) }
    }

    fn read_header(&mut self, v: &Value) -> Option<()> {
        if v.get("freehold-salvage")?.as_u64()? != VERSION {
            return None;
        }
        self.entry = text(v, "entry")?;
        self.object_format = text(v, "object_format")?;
        self.base = text(v, "base")?;
        self.head = text(v, "head")?;
        self.base_kept = v.get("base_kept")?.as_bool()?;
        self.size = v.get("size")?.as_u64()?;
        self.worktree = path(v, "worktree")?;
        for word in v.get("contents")?.as_array()? {
            let word = word.as_str()?;
            let (kind, _word) = Unsaved::WORDS.iter().find(|(_kind, w)| *w == word)?;
            self.contents = self.contents.with(*kind);
        }
        Some(())
    }

    fn read_line(&mut self, v: &Value) -> Option<()> {
        if v.get("index").is_some() {
            let base = match v.get("base_mode") {
                None => None,
                Some(_mode) => Some((mode(v, "base_mode")?, text(v, "base_oid")?)),
            };
            self.index.push(IndexLine {
                path: path(v, "index")?,
                mode: mode(v, "mode")?,
                oid: text(v, "oid")?,
                stage: u8::try_from(v.get("stage")?.as_u64()?).ok()?,
                assume_unchanged: is_set(v, "assume_unchanged"),
                skip_worktree: is_set(v, "skip_worktree"),
                intent_to_add: is_set(v, "intent_to_add"),
                base,
            });
        } else if v.get("removed").is_some() {
            self.removed.push(RemovedLine {
                path: path(v, "removed")?,
                mode: mode(v, "base_mode")?,
                oid: text(v, "base_oid")?,
            });
        } else if v.get("file").is_some() {
            self.files.push(FileLine {
                path: path(v, "file")?,
                kind: kind_of(&text(v, "kind")?)?,
                class: class_of(&text(v, "class")?)?,
                perm: mode(v, "perm")?,
                size: v.get("size")?.as_u64()?,
                mtime: v.get("mtime")?.as_i64()?,
                oid: text(v, "oid")?,
                at: at_of(&text(v, "at")?)?,
                unsaved: is_set(v, "unsaved"),
            });
        } else if v.get("admin").is_some() {
            self.admin.push(AdminLine {
                path: path(v, "admin")?,
                kind: kind_of(&text(v, "kind")?)?,
                perm: mode(v, "perm")?,
                oid: text(v, "oid")?,
            });
        } else if v.get("ref").is_some() {
            let name = String::from_utf8(path(v, "ref")?).ok()?;
            self.refs.push((name, text(v, "oid")?));
        } else if let Some(oid) = text(v, "commit") {
            self.commits.push(oid);
        } else if let Some(oid) = text(v, "tag") {
            self.tags.push(oid);
        } else if let Some(oid) = text(v, "object") {
            self.objects.push(oid);
        } else {
            self.notes.push(text(v, "note")?);
        }
        Some(())
    }
}

/// Bytes as plain text, every other byte as `%` and two digits.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'%' | b'"' | b'\\' | 0..=0x1f | 0x7f.. => {
                out.push('%');
                out.push_str(&hex(&[*byte]));
            }
            plain => out.push(char::from(*plain)),
        }
    }
    out
}

/// The bytes of such a text.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(more.get(..2)?).ok()?;
            out.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &more[2..];
        } else {
            out.push(*first);
            rest = more;
        }
    }
    Some(out)
}

/// The words of a set.
fn words(set: Unsaved) -> Vec<&'static str> {
    Unsaved::WORDS.iter().filter(|(kind, _w)| set.covers(*kind)).map(|(_k, word)| *word).collect()
}

fn flag(map: &mut Map<String, Value>, name: &str, set: bool) {
    if set {
        map.insert(name.into(), true.into());
    }
}

fn is_set(v: &Value, name: &str) -> bool {
    v.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn octal(mode: u32) -> String {
    format!("{mode:o}")
}

fn mode(v: &Value, name: &str) -> Option<u32> {
    u32::from_str_radix(v.get(name)?.as_str()?, 8).ok()
}

fn text(v: &Value, name: &str) -> Option<String> {
    Some(v.get(name)?.as_str()?.to_owned())
}

fn path(v: &Value, name: &str) -> Option<Vec<u8>> {
    decode(v.get(name)?.as_str()?)
}

const KINDS: &[(Kind, &str)] = &[
    (Kind::File, "file"),
    (Kind::Link, "link"),
    (Kind::Dir, "dir"),
    (Kind::Special, "special"),
    (Kind::Absent, "absent"),
];

const CLASSES: &[(Class, &str)] = &[
    (Class::Tracked, "tracked"),
    (Class::Untracked, "untracked"),
    (Class::Ignored, "ignored"),
    (Class::Submodule, "submodule"),
];

const PLACES: &[(At, &str)] = &[
    (At::Nowhere, ""),
    (At::Index, "index"),
    (At::Tree("worktree"), "worktree"),
    (At::Tree("ignored"), "ignored"),
    (At::Tree("submodule"), "submodule"),
];

fn word_of<T: PartialEq>(table: &'static [(T, &'static str)], value: T) -> &'static str {
    table.iter().find(|(v, _w)| *v == value).map_or("", |(_v, word)| *word)
}

fn value_of<T: Copy>(table: &'static [(T, &'static str)], word: &str) -> Option<T> {
    table.iter().find(|(_v, w)| *w == word).map(|(value, _w)| *value)
}

fn kind_word(kind: Kind) -> &'static str {
    word_of(KINDS, kind)
}

fn kind_of(word: &str) -> Option<Kind> {
    value_of(KINDS, word)
}

fn class_word(class: Class) -> &'static str {
    word_of(CLASSES, class)
}

fn class_of(word: &str) -> Option<Class> {
    value_of(CLASSES, word)
}

fn at_word(at: At) -> &'static str {
    word_of(PLACES, at)
}

fn at_of(word: &str) -> Option<At> {
    value_of(PLACES, word)
}

#[cfg(test)]
mod tests {
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
