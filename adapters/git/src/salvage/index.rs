//! Reading an index file (W-33): every entry with its mode, object, stage, bits and the stat data
//! that git remembered. Read here and not asked of git, because git drops what it takes for
//! outdated, touches shared index files, and has no form of output that shows every bit.

use super::hash::{Format, hex};

/// What the index says about one path at one stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The path, as bytes.
    pub(crate) path: Vec<u8>,
    /// The mode, as in a tree.
    pub(crate) mode: u32,
    /// The object, in hex.
    pub(crate) oid: String,
    /// 0, or 1 to 3 in a conflict.
    pub(crate) stage: u8,
    /// Assume-unchanged.
    pub(crate) assume_unchanged: bool,
    /// Skip-worktree.
    pub(crate) skip_worktree: bool,
    /// Intent-to-add.
    pub(crate) intent_to_add: bool,
    /// What git remembered of the file.
    pub(crate) stat: IndexStat,
    /// Where it begins in the file.
    start: usize,
}

impl Entry {
    /// Whether it is another repository's commit.
    pub(crate) fn is_gitlink(&self) -> bool {
        self.mode == 0o160_000
    }
}

/// What git remembered of a file when it last knew it to be unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexStat {
    /// Seconds and nanoseconds.
    pub(crate) ctime: (u32, u32),
    /// Seconds and nanoseconds.
    pub(crate) mtime: (u32, u32),
    /// Its low 32 bits.
    pub(crate) ino: u32,
    /// Its low 32 bits; 0 where git was not sure.
    pub(crate) size: u32,
}

/// An index file, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    /// Its entries in its own order.
    pub(crate) entries: Vec<Entry>,
    /// Whether part of it lies in a shared index file.
    pub(crate) is_split: bool,
    /// Whether whole folders stand as one entry.
    pub(crate) is_sparse: bool,
    /// Where its entries end.
    end: usize,
}

impl Index {
    /// Takes the bytes of an index file apart.
    ///
    /// # Errors
    /// Says what is wrong with them.
    pub(crate) fn parse(bytes: &[u8], format: Format) -> Result<Index, String> {
        let raw = format.raw_len();
        let body = bytes.len().checked_sub(raw).ok_or("it is shorter than its checksum")?;
        let checksum = &bytes[body..];
        // All zeros: written with index.skipHash.
        if checksum.iter().any(|b| *b != 0) && checksum != format.checksum(&bytes[..body]) {
            return Err("its checksum does not match".into());
        }
        let mut at = Reader { bytes: &bytes[..body], at: 0 };
        if at.take(4)? != b"DIRC" {
            return Err("it does not begin like an index".into());
        }
        let version = at.u32()?;
        if !(2..=4).contains(&version) {
            return Err(format!("it has version {version}, which is not known"));
        }
        let count = at.u32()?;
        let mut entries: Vec<Entry> = Vec::new();
        for _n in 0..count {
            let previous = entries.last().map_or(&[][..], |e| &e.path);
            let entry = entry(&mut at, version, format, previous)?;
            entries.push(entry);
        }
        let end = at.at;
        let mut index = Index { entries, is_split: false, is_sparse: false, end };
        while at.at < body {
            let name: [u8; 4] = at.take(4)?.try_into().map_err(|_| "an extension is cut off")?;
            let size = at.u32()? as usize;
            at.take(size)?;
            match &name {
                b"link" => index.is_split = true,
                b"sdir" => index.is_sparse = true,
                _optional => {}
            }
        }
        Ok(index)
    }

    /// The same index with its entries only: caches refer to objects and folders that need not
    /// be there after a restore.
    pub(crate) fn plain(&self, bytes: &[u8], format: Format) -> Vec<u8> {
        let mut out = bytes[..self.end].to_vec();
        let checksum = format.checksum(&out);
        out.extend_from_slice(&checksum);
        out
    }

    /// These plain bytes with git's memory of every file taken from another index where `same`
    /// finds an entry of it for the same, untouched file, and forgotten elsewhere: a memory of
    /// a file that lay somewhere else must never prove anything.
    pub(crate) fn remembering<'a>(
        &self,
        plain: &[u8],
        format: Format,
        same: impl Fn(&Entry) -> Option<(&'a Entry, &'a [u8])>,
    ) -> Vec<u8> {
        let mut out = plain[..self.end].to_vec();
        for entry in &self.entries {
            let found = same(entry);
            for (from, to) in STAT {
                let memory = match found {
                    Some((other, bytes)) => bytes[other.start + from..other.start + to].to_vec(),
                    None => vec![0; to - from],
                };
                out[entry.start + from..entry.start + to].copy_from_slice(&memory);
            }
        }
        let checksum = format.checksum(&out);
        out.extend_from_slice(&checksum);
        out
    }

    /// The bytes of an index with nothing in it.
    pub(crate) fn empty_bytes(format: Format) -> Vec<u8> {
        let mut out = b"DIRC\0\0\0\x02\0\0\0\0".to_vec();
        let checksum = format.checksum(&out);
        out.extend_from_slice(&checksum);
        out
    }
}

/// Where an entry has its stat data: all of its first 40 bytes but the mode.
const STAT: [(usize, usize); 2] = [(0, 24), (28, 40)];

fn entry(
    at: &mut Reader<'_>,
    version: u32,
    format: Format,
    previous: &[u8],
) -> Result<Entry, String> {
    let start = at.at;
    let ctime = (at.u32()?, at.u32()?);
    let mtime = (at.u32()?, at.u32()?);
    let _dev = at.u32()?;
    let ino = at.u32()?;
    let mode = at.u32()?;
    let _uid = at.u32()?;
    let _gid = at.u32()?;
    let size = at.u32()?;
    let oid = hex(at.take(format.raw_len())?);
    let flags = at.u16()?;
    let extended = if flags & 0x4000 == 0 { 0 } else { at.u16()? };
    let path = if version == 4 {
        let strip = at.varint()?;
        let keep = previous.len().checked_sub(strip).ok_or("a name is cut off too far")?;
        let mut path = previous[..keep].to_vec();
        path.extend_from_slice(at.until_nul()?);
        path
    } else {
        let path = at.until_nul()?.to_vec();
        // The entry is padded to a multiple of eight; one NUL is always there.
        let long = at.at - start;
        at.take(long.next_multiple_of(8) - long)?;
        path
    };
    Ok(Entry {
        path,
        mode,
        oid,
        stage: ((flags >> 12) & 3) as u8,
        assume_unchanged: flags & 0x8000 != 0,
        skip_worktree: extended & 0x4000 != 0,
        intent_to_add: extended & 0x2000 != 0,
        stat: IndexStat { ctime, mtime, ino, size },
        start,
    })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], String> {
        let end = self.at.checked_add(n).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or("it is cut off")?;
        let out = &self.bytes[self.at..end];
        self.at = end;
        Ok(out)
    }

    fn u32(&mut self) -> Result<u32, String> {
        let bytes: [u8; 4] = self.take(4)?.try_into().map_err(|_| "it is cut off")?;
        Ok(u32::from_be_bytes(bytes))
    }

    fn u16(&mut self) -> Result<u16, String> {
        let bytes: [u8; 2] = self.take(2)?.try_into().map_err(|_| "it is cut off")?;
        Ok(u16::from_be_bytes(bytes))
    }

    fn until_nul(&mut self) -> Result<&'a [u8], String> {
        let rest = &self.bytes[self.at..];
        let n = rest.iter().position(|b| *b == 0).ok_or("a name does not end")?;
        self.at += n + 1;
        Ok(&rest[..n])
    }

    /// Git's own variable-length number, as in its packs.
    fn varint(&mut self) -> Result<usize, String> {
        let mut byte = self.take(1)?[0];
        let mut value = usize::from(byte & 127);
        while byte & 128 != 0 {
            byte = self.take(1)?[0];
            value = value
                .checked_add(1)
                .and_then(|v| v.checked_mul(128))
                .ok_or("a length is too large")?
                + usize::from(byte & 127);
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_said_and_never_a_panic() {
        let good = Index::empty_bytes(Format::Sha1);
        assert_eq!(Index::parse(&good, Format::Sha1).unwrap().entries, vec![]);
        for n in 0..good.len() {
            assert!(Index::parse(&good[..n], Format::Sha1).is_err(), "cut off at {n}");
            let mut bent = good.clone();
            bent[n] ^= 1;
            assert!(Index::parse(&bent, Format::Sha1).is_err(), "bent at {n}");
        }
    }
}
