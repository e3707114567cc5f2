//! Writing an entry's content into the scratch (W-34), byte for byte.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{BufWriter, Read, Write};
use std::os::fd::OwnedFd;

use freehold_kernel::Reason;
use freehold_store::workspaces::WorkspaceError;

use super::hash::{Hash, hex};
use super::manifest::{AdminLine, At, Kind, Manifest};
use super::save::path_of;
use super::scan::{Seen, changing, look, open_file, open_top, read_link};
use super::seat::{Beat, Pipe, Seat};
use super::store::{FLEETING, Scratch, borrow, shared_indexes};
use super::survey::Survey;
use crate::disk::{self as fs, File};
use crate::error::{fail, io_fail, os_fail};
use crate::process::Input;

/// Writes an entry as one stream for `git fast-import`: it takes bytes as they are, streams files
/// of any size, and needs no process per file.
pub(super) struct Writer<'w, 'p> {
    out: BufWriter<File>,
    seat: &'w Seat<'w>,
    scratch: &'w Scratch<'w>,
    beat: &'w mut Beat<'p>,
    /// What every mark must turn out to be.
    expected: Vec<String>,
    /// The files of the commit, in fast-import's words.
    tree: Vec<u8>,
}

impl<'w, 'p> Writer<'w, 'p> {
    /// Writes everything and returns the entry's commit in the scratch.
    pub(super) fn write(
        seat: &'w Seat<'w>,
        scratch: &'w Scratch<'w>,
        survey: &mut Survey,
        ref_name: &str,
        beat: &'w mut Beat<'p>,
    ) -> Result<String, WorkspaceError> {
        let out = BufWriter::new(scratch.create("stream")?);
        let mut writer =
            Writer { out, seat, scratch, beat, expected: Vec::new(), tree: Vec::new() };
        writer.content(survey)?;
        let text = survey.manifest.to_text();
        writer.bytes(text.as_bytes(), b"manifest")?;
        writer.commit(&survey.manifest, ref_name)
    }

    fn content(&mut self, survey: &mut Survey) -> Result<(), WorkspaceError> {
        let (seat, format) = (self.seat, self.seat.format);
        if let Some(raw) = &survey.glance.index_raw {
            self.bytes(raw, b"index/raw")?;
            for (name, bytes) in shared_indexes(seat)? {
                self.bytes(&bytes, format!("index/{name}").as_bytes())?;
            }
        }
        self.bytes(&survey.index_plain, b"index/plain")?;
        for e in survey.manifest.index.iter().filter(|e| e.base.is_some()) {
            let mut path = format!("staged/{}/", e.stage).into_bytes();
            path.extend_from_slice(&safe(&e.path));
            self.graft(e.mode, &e.oid, &path);
        }
        let files = survey.manifest.files.iter_mut();
        for file in files {
            if let At::Tree(tree) = file.at {
                let Some(seen) = survey.glance.at(&file.path) else { continue };
                let mut path = format!("{tree}/").into_bytes();
                path.extend_from_slice(&safe(&file.path));
                let oid = self.file(&seat.top, seen, &path)?;
                if !file.oid.is_empty() && file.oid != oid {
                    return Err(changing(
                        &path_of(seat, &file.path),
                        "it changed while it was read",
                    ));
                }
                file.oid = oid;
            }
        }
        let top = open_top(&seat.admin)?;
        for file in &survey.glance.admin {
            let mut path = b"admin/".to_vec();
            path.extend_from_slice(&safe(&file.seen.path));
            let oid = self.file(&top, &file.seen, &path)?;
            if oid != file.oid {
                return Err(changing(&seat.admin, "its state changed while it was read"));
            }
            survey.manifest.admin.push(AdminLine {
                path: file.seen.path.clone(),
                kind: file.seen.kind,
                perm: file.seen.sign.perm(),
                oid,
            });
        }
        let empty = format.empty_tree();
        for commit in &survey.reach.commits {
            let folder = format!("commits/{}", commit.oid);
            self.bytes(&commit.bytes, format!("{folder}/commit").as_bytes())?;
            let tree = super::reach::header(&commit.bytes, "tree").unwrap_or_default();
            if tree != empty {
                self.graft(0o040_000, &tree, format!("{folder}/tree").as_bytes());
            }
        }
        for tag in &survey.reach.tags {
            self.bytes(&tag.bytes, format!("tags/{}", tag.oid).as_bytes())?;
        }
        for (oid, kind) in &survey.reach.objects {
            let mode = if kind == "tree" { 0o040_000 } else { 0o100_644 };
            if *oid != empty {
                self.graft(mode, oid, format!("objects/{oid}").as_bytes());
            }
        }
        if !survey.manifest.base.is_empty() {
            self.bytes(&survey.base_commit, b"base/commit")?;
            if survey.manifest.base_kept && survey.base_tree != empty {
                self.graft(0o040_000, &survey.base_tree, b"base/tree");
            }
        }
        Ok(())
    }

    /// An object that is there already, at a path of the entry.
    fn graft(&mut self, mode: u32, oid: &str, path: &[u8]) {
        self.tree.extend_from_slice(format!("M {mode:06o} {oid} ").as_bytes());
        quote(&mut self.tree, path);
    }

    /// Bytes from memory, at a path of the entry.
    fn bytes(&mut self, bytes: &[u8], path: &[u8]) -> Result<(), WorkspaceError> {
        self.begin(bytes.len() as u64, 0o100_644, path)?;
        self.put(bytes)?;
        self.put(b"\n")?;
        self.expected.push(self.seat.format.blob(bytes));
        Ok(())
    }

    /// A file or link from the disk, at a path of the entry. Its name is made of the very bytes
    /// that go into the stream.
    fn file(&mut self, top: &OwnedFd, seen: &Seen, path: &[u8]) -> Result<String, WorkspaceError> {
        self.beat.tick()?;
        let at = || path_of(self.seat, &seen.path);
        let gone = |e| match e {
            rustix::io::Errno::NOENT | rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR => {
                changing(&at(), "it was replaced while it was read")
            }
            e => os_fail(&at(), "cannot read the file", e),
        };
        if seen.kind == Kind::Link {
            let target = read_link(top, &seen.path).map_err(gone)?;
            self.begin(target.len() as u64, 0o120_000, path)?;
            self.put(&target)?;
            self.put(b"\n")?;
            let oid = self.seat.format.blob(&target);
            self.expected.push(oid.clone());
            return Ok(oid);
        }
        let size = seen.sign.size;
        let mut file = open_file(top, &seen.path).map_err(gone)?;
        let mode = if seen.sign.mode & 0o100 == 0 { 0o100_644 } else { 0o100_755 };
        self.begin(size, mode, path)?;
        let mut hash = Hash::blob(self.seat.format, size);
        let mut buffer = vec![0u8; 1 << 16];
        let mut left = size;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let n = match file.read(&mut buffer[..most]) {
                Ok(0) => return Err(changing(&at(), "it became shorter while it was read")),
                Ok(n) => n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(io_fail(&at(), "cannot read the file", &e)),
            };
            hash.update(&buffer[..n]);
            self.put(&buffer[..n])?;
            left -= n as u64;
            self.beat.tick()?;
        }
        self.put(b"\n")?;
        let oid = hash.hex();
        self.expected.push(oid.clone());
        // Nothing was written into it between the walk and now, or the entry is begun again.
        let now = look(top, &seen.path).map_err(gone)?;
        if now.as_ref().map(|s| s.sign) != Some(seen.sign) {
            return Err(changing(&at(), "it changed while it was read"));
        }
        Ok(oid)
    }

    fn begin(&mut self, size: u64, mode: u32, path: &[u8]) -> Result<(), WorkspaceError> {
        let mark = self.expected.len() + 1;
        self.put(format!("blob\nmark :{mark}\ndata {size}\n").as_bytes())?;
        self.tree.extend_from_slice(format!("M {mode:06o} :{mark} ").as_bytes());
        quote(&mut self.tree, path);
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), WorkspaceError> {
        self.out
            .write_all(bytes)
            .map_err(|e| io_fail(&self.scratch.dir, "cannot write the salvage", &e))
    }

    /// Ends the stream, hands it to git, and checks that git gave every blob the name that was
    /// computed here.
    fn commit(mut self, manifest: &Manifest, ref_name: &str) -> Result<String, WorkspaceError> {
        let mark = self.expected.len() + 1;
        let message = format!("freehold salvage {}\n\n{}\n", manifest.entry, manifest.header());
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |d| d.as_secs());
        let head = format!(
            "commit {ref_name}\nmark :{mark}\ncommitter freehold <freehold@localhost> {now} +0000\n\
             data {}\n{message}",
            message.len()
        );
        self.put(head.as_bytes())?;
        let tree = std::mem::take(&mut self.tree);
        self.put(&tree)?;
        self.put(b"done\n")?;
        let scratch = self.scratch;
        let stream = self
            .out
            .into_inner()
            .map_err(|e| io_fail(&scratch.dir, "cannot write the salvage", e.error()))?;
        let marks = scratch.dir.join("marks");
        let export = format!("--export-marks={}", marks.to_string_lossy());
        let borrowed = borrow(self.seat);
        let env: &[(&str, &OsStr)] = &[("GIT_ALTERNATE_OBJECT_DIRECTORIES", &borrowed)];
        let pipe = Pipe {
            stdin: Input::File(stream.inner()),
            env,
            config: &[&["fastimport.unpackLimit=0"], FLEETING].concat(),
            ..Pipe::default()
        };
        let args = ["fast-import", "--quiet", "--done", "--date-format=raw", &export];
        scratch.repo.ask(&args, pipe, self.beat)?;
        let text = fs::read_to_string(&marks)
            .map_err(|e| io_fail(&marks, "cannot read what git made", &e))?;
        let mut commit = None;
        let mut right = BTreeSet::new();
        for line in text.lines() {
            let Some((n, oid)) = line.strip_prefix(':').and_then(|l| l.split_once(' ')) else {
                continue;
            };
            match n.parse::<usize>() {
                Ok(n) if n == mark => commit = Some(oid.to_owned()),
                Ok(n) if n > 0 && self.expected.get(n - 1).is_some_and(|e| e == oid) => {
                    right.insert(n);
                }
                _wrong => {}
            }
        }
        match commit {
            Some(commit) if right.len() == self.expected.len() => Ok(commit),
            _other => Err(fail(
                Reason::Io,
                &scratch.dir,
                "git did not keep the bytes that it was given",
                "look at the disk, then retry",
            )),
        }
    }
}

/// A path for git's tree: a component that git would refuse is written with a `%`, and so is a
/// `%` at a component's beginning.
fn safe(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    for (n, name) in path.split(|b| *b == b'/').enumerate() {
        if n > 0 {
            out.push(b'/');
        }
        if name.eq_ignore_ascii_case(b".git") || name.first() == Some(&b'%') {
            out.push(b'%');
            out.extend_from_slice(hex(&name[..1]).as_bytes());
            out.extend_from_slice(&name[1..]);
        } else {
            out.extend_from_slice(name);
        }
    }
    out
}

/// A path as fast-import reads it, and the end of its line.
fn quote(out: &mut Vec<u8>, path: &[u8]) {
    out.push(b'"');
    for byte in path {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => {
                out.extend_from_slice(format!("\\{byte:03o}").as_bytes());
            }
            plain => out.push(*plain),
        }
    }
    out.extend_from_slice(b"\"\n");
}
