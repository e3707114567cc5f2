//! The list as text, and back.

use freehold_kernel::Unsaved;
use serde_json::{Map, Value, json};

use super::super::hash::hex;
use super::{AdminLine, At, Class, FileLine, IndexLine, Kind, Manifest, RemovedLine};

/// The version of the form.
const VERSION: u64 = 1;

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
