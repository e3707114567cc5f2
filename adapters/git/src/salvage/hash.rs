//! Object names, computed here: a file on disk is compared with what was kept of it by a hash
//! that no filter has touched (W-34).

use std::io::{self, Read};

use sha2::Digest;

/// How a repository names its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// 20 bytes.
    Sha1,
    /// 32 bytes.
    Sha256,
}

impl Format {
    /// The format with git's own name for it.
    pub(crate) fn from_name(name: &str) -> Option<Format> {
        match name {
            "sha1" => Some(Format::Sha1),
            "sha256" => Some(Format::Sha256),
            _unknown => None,
        }
    }

    /// Git's own name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::Sha1 => "sha1",
            Format::Sha256 => "sha256",
        }
    }

    /// Bytes of an object name.
    pub(crate) fn raw_len(self) -> usize {
        match self {
            Format::Sha1 => 20,
            Format::Sha256 => 32,
        }
    }

    /// Hexadecimal digits of an object name.
    pub(crate) fn hex_len(self) -> usize {
        self.raw_len() * 2
    }

    /// The name that stands for no object.
    pub(crate) fn null(self) -> String {
        "0".repeat(self.hex_len())
    }

    /// The name of the tree with nothing in it.
    pub(crate) fn empty_tree(self) -> String {
        let mut hash = Hash::new(self);
        hash.update(b"tree 0\0");
        hash.hex()
    }

    /// The checksum that ends an index file.
    pub(crate) fn checksum(self, bytes: &[u8]) -> Vec<u8> {
        let mut hash = Hash::new(self);
        hash.update(bytes);
        hash.raw()
    }

    /// The name of a blob that is in memory.
    pub(crate) fn blob(self, bytes: &[u8]) -> String {
        let mut hash = Hash::blob(self, bytes.len() as u64);
        hash.update(bytes);
        hash.hex()
    }

    /// The name of a blob of `size` bytes that is read to its end; none if it is not as long.
    pub(crate) fn blob_of(self, mut from: impl Read, size: u64) -> io::Result<Option<String>> {
        let mut hash = Hash::blob(self, size);
        let mut buffer = [0u8; 65536];
        let mut seen = 0u64;
        loop {
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => {
                    seen += n as u64;
                    hash.update(&buffer[..n]);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok((seen == size).then(|| hash.hex()))
    }
}

/// A hash under way.
pub(crate) enum Hash {
    /// SHA-1.
    Sha1(sha1::Sha1),
    /// SHA-256.
    Sha256(sha2::Sha256),
}

impl Hash {
    /// Of nothing yet.
    pub(crate) fn new(format: Format) -> Hash {
        match format {
            Format::Sha1 => Hash::Sha1(sha1::Sha1::new()),
            Format::Sha256 => Hash::Sha256(sha2::Sha256::new()),
        }
    }

    /// Of a blob's header; its content comes next.
    pub(crate) fn blob(format: Format, size: u64) -> Hash {
        let mut hash = Hash::new(format);
        hash.update(format!("blob {size}\0").as_bytes());
        hash
    }

    /// Takes more bytes in.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Hash::Sha1(h) => h.update(bytes),
            Hash::Sha256(h) => h.update(bytes),
        }
    }

    /// The digest.
    pub(crate) fn raw(self) -> Vec<u8> {
        match self {
            Hash::Sha1(h) => h.finalize().to_vec(),
            Hash::Sha256(h) => h.finalize().to_vec(),
        }
    }

    /// The digest in hexadecimal digits.
    pub(crate) fn hex(self) -> String {
        hex(&self.raw())
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing to a string does not fail.
        let _written = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_ones_that_git_gives() {
        assert_eq!(Format::Sha1.empty_tree(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
        assert_eq!(Format::Sha1.blob(b""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(
            Format::Sha256.blob(b""),
            "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"
        );
        assert_eq!(Format::Sha1.blob_of(&b"abc"[..], 4).unwrap(), None, "shorter than said");
    }
}
