//! Between the host's strings and the kernel's 16 bytes (D-24).
//!
//! A canonical UUID is itself; any other string is a digest of its kind and its text. The string
//! is kept in the row and compared on every load, so two strings with one digest are noticed and
//! refused instead of being taken for one thing.

use std::collections::BTreeMap;

use freehold_kernel::Kind;
use sha2::{Digest, Sha256};

/// The longest id that a host may give, in bytes (D).
pub const ID_BYTES_MAX: usize = 255;

/// Why a string cannot be used as an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is empty.
    #[error("a {kind} id is empty; give it at least one character")]
    Empty {
        /// Of what kind it was to be.
        kind: &'static str,
    },
    /// It is longer than [`ID_BYTES_MAX`].
    #[error("a {kind} id has {bytes} bytes; at most {ID_BYTES_MAX} are allowed")]
    TooLong {
        /// Of what kind it was to be.
        kind: &'static str,
        /// How long it is.
        bytes: usize,
    },
    /// It has a control character.
    #[error("the {kind} id {id:?} has a control character; remove it")]
    Control {
        /// Of what kind it was to be.
        kind: &'static str,
        /// The id, escaped when shown.
        id: String,
    },
    /// A text with the character NUL, which not every store can hold: refused by all alike
    ///
    #[error("{what} has the character NUL (in {text:?}); remove it")]
    Nul {
        /// What kind of id or which column it was to be.
        what: String,
        /// What stands before it, escaped when shown.
        text: String,
    },
    /// It is of a kind that Freehold makes itself, and no UUID.
    #[error("the {kind} id {id:?} is no UUID; ids of this kind are made by Freehold: list them")]
    NotUuid {
        /// Of what kind it was to be.
        kind: &'static str,
        /// The id, escaped when shown.
        id: String,
    },
    /// Another string has the same digest.
    #[error(
        "id collision: {kind} ids {first:?} and {second:?} have one digest; rename one of them"
    )]
    Collision {
        /// Of what kind they are.
        kind: &'static str,
        /// The one that was known.
        first: String,
        /// The one that came.
        second: String,
    },
    /// A stored row refers to an id whose text is nowhere.
    #[error("the text of {kind} id {id:032x} is not known")]
    Missing {
        /// Of what kind it is.
        kind: &'static str,
        /// The digest.
        id: u128,
    },
}

/// The texts behind ids that are no UUIDs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    texts: BTreeMap<(Kind, u128), String>,
}

impl Names {
    /// No names yet.
    pub fn new() -> Names {
        Names::default()
    }

    /// The id of a string that a host gave, remembered.
    ///
    /// # Errors
    /// [`NameError`] if the string is empty, too long or has control characters, or if another
    /// string has its digest.
    pub fn host_id(&mut self, kind: Kind, text: &str) -> Result<u128, NameError> {
        let code = kind.code();
        if text.is_empty() {
            return Err(NameError::Empty { kind: code });
        }
        if made_by_freehold(kind) && is_digest(id_of(kind, text)) {
            return Err(NameError::NotUuid { kind: code, id: text.to_owned() });
        }
        if text.len() > ID_BYTES_MAX {
            return Err(NameError::TooLong { kind: code, bytes: text.len() });
        }
        if text.chars().any(char::is_control) {
            return Err(NameError::Control { kind: code, id: text.to_owned() });
        }
        self.learn(kind, text)
    }

    /// Refuses texts that not every store can hold.
    ///
    /// # Errors
    /// [`NameError::Nul`].
    pub fn without_nul(&self) -> Result<(), NameError> {
        self.texts
            .iter()
            .try_for_each(|((kind, _), text)| refuse_nul(|| format!("a {}", kind.code()), text))
    }

    /// The id of a text that is not a host's id (a path, a branch), or that comes from a stored
    /// row; remembered, and compared with what is known.
    ///
    /// # Errors
    /// [`NameError::Collision`].
    pub fn learn(&mut self, kind: Kind, text: &str) -> Result<u128, NameError> {
        let id = id_of(kind, text);
        if is_digest(id) {
            match self.texts.get(&(kind, id)) {
                Some(known) if known != text => {
                    return Err(NameError::Collision {
                        kind: kind.code(),
                        first: known.clone(),
                        second: text.to_owned(),
                    });
                }
                Some(_) => {}
                None => {
                    self.texts.insert((kind, id), text.to_owned());
                }
            }
        }
        Ok(id)
    }

    /// The text of an id.
    ///
    /// # Errors
    /// [`NameError::Missing`] if the id is a digest whose text was never learned.
    pub fn text(&self, kind: Kind, id: u128) -> Result<String, NameError> {
        if !is_digest(id) {
            return Ok(uuid_text(id));
        }
        self.texts
            .get(&(kind, id))
            // An identity row names ids of several kinds; their texts were learned as those.
            .or_else(|| {
                (kind == Kind::AnyId)
                    .then(|| self.texts.iter().find(|((_, i), _)| *i == id).map(|(_, t)| t))
                    .flatten()
            })
            .cloned()
            .ok_or(NameError::Missing { kind: kind.code(), id })
    }

    /// The text of an id for people: its name where it is known, else its digits.
    pub fn show(&self, kind: Kind, id: u128) -> String {
        self.text(kind, id).unwrap_or_else(|_| format!("{id:032x}"))
    }

    /// Takes over everything that `other` knows.
    ///
    /// # Errors
    /// [`NameError::Collision`] if the two know one digest by different texts.
    pub fn merge_checked(&mut self, other: &Names) -> Result<(), NameError> {
        for ((kind, id), text) in &other.texts {
            match self.texts.get(&(*kind, *id)) {
                Some(known) if known != text => {
                    return Err(NameError::Collision {
                        kind: kind.code(),
                        first: known.clone(),
                        second: text.clone(),
                    });
                }
                Some(_) => {}
                None => {
                    self.texts.insert((*kind, *id), text.clone());
                }
            }
        }
        Ok(())
    }

    /// Takes over everything that `other` knows; where both know a text, the own one stays.
    pub fn merge(&mut self, other: &Names) {
        for (key, text) in &other.texts {
            self.texts.entry(*key).or_insert_with(|| text.clone());
        }
    }
}

/// Refuses a text with the character NUL: PostgreSQL cannot hold it, and all stores take the same
/// texts.
///
/// # Errors
/// [`NameError::Nul`], with what it was to be.
pub(crate) fn refuse_nul(what: impl Fn() -> String, text: &str) -> Result<(), NameError> {
    match text.split_once('\0') {
        None => Ok(()),
        Some((before, _)) => Err(NameError::Nul {
            what: what(),
            text: before.chars().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect(),
        }),
    }
}

/// The kinds of id that Freehold makes itself (D): always UUIDs, in rows that refer to several
/// kinds (an authority) as in all others.
fn made_by_freehold(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::AttemptId
            | Kind::JobId
            | Kind::JobRootId
            | Kind::ResourceId
            | Kind::RemovalId
            | Kind::TrashId
            | Kind::SalvageId
    )
}

/// The 16 bytes of a text (D-24).
pub fn id_of(kind: Kind, text: &str) -> u128 {
    if let Some(id) = parse_uuid(text)
        && !is_digest(id)
    {
        return id;
    }
    let mut hash = Sha256::new();
    // An identity row names ids of several kinds: `AnyId` digests are those of the kind itself,
    // so the caller passes that kind.
    hash.update(kind.code().as_bytes());
    hash.update([0]);
    hash.update(text.as_bytes());
    let bytes: [u8; 32] = hash.finalize().into();
    let mut first = [0u8; 16];
    first.copy_from_slice(&bytes[..16]);
    u128::from_be_bytes(first) | DIGEST_MARK
}

/// Version nibble and variant all ones: no canonical UUID that is in use has them, so a digest
/// can be told from a UUID by its bits.
const DIGEST_MARK: u128 = (0xf << 76) | (0x7 << 61);

/// Whether these bytes are a digest, and so need a name.
pub fn is_digest(id: u128) -> bool {
    id & DIGEST_MARK == DIGEST_MARK
}

/// The canonical text of a UUID.
pub fn uuid_text(id: u128) -> String {
    let h = format!("{id:032x}");
    format!("{}-{}-{}-{}-{}", &h[..8], &h[8..12], &h[12..16], &h[16..20], &h[20..])
}

fn parse_uuid(text: &str) -> Option<u128> {
    let b = text.as_bytes();
    if b.len() != 36 {
        return None;
    }
    let mut id: u128 = 0;
    for (i, c) in b.iter().enumerate() {
        if matches!(i, 8 | 13 | 18 | 23) {
            if *c != b'-' {
                return None;
            }
            continue;
        }
        let digit = match c {
            b'0'..=b'9' => c - b'0',
            b'a'..=b'f' => c - b'a' + 10,
            _other => return None,
        };
        id = (id << 4) | u128::from(digit);
    }
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canonical_uuid_is_itself_and_needs_no_name() {
        let text = "018f3b2a-7c11-7d2e-9f00-0123456789ab";
        let id = id_of(Kind::TaskId, text);
        assert_eq!(id, 0x018f_3b2a_7c11_7d2e_9f00_0123_4567_89ab);
        assert_eq!(Names::new().text(Kind::TaskId, id), Ok(text.to_owned()));
    }

    #[test]
    fn other_strings_are_digests_of_kind_and_text() {
        let task = id_of(Kind::TaskId, "a");
        assert!(is_digest(task));
        assert_ne!(task, id_of(Kind::SessionId, "a"));
        assert_ne!(task, id_of(Kind::TaskId, "A"));
        // Upper case is not canonical, and a UUID that looks like a digest is digested.
        assert!(is_digest(id_of(Kind::TaskId, "018F3B2A-7C11-7D2E-9F00-0123456789AB")));
        assert!(is_digest(id_of(Kind::TaskId, "ffffffff-ffff-ffff-ffff-ffffffffffff")));
    }

    #[test]
    fn texts_come_back_and_collisions_are_refused() {
        let mut names = Names::new();
        let id = names.host_id(Kind::TaskId, "board/7").unwrap();
        assert_eq!(names.text(Kind::TaskId, id).unwrap(), "board/7");
        names.texts.insert((Kind::TaskId, id), "something else".into());
        assert!(matches!(names.learn(Kind::TaskId, "board/7"), Err(NameError::Collision { .. })));
        assert!(matches!(
            Names::new().text(Kind::TaskId, id),
            Err(NameError::Missing { kind: "task", .. })
        ));
    }

    #[test]
    fn bad_host_ids_are_refused_with_a_reason() {
        let mut names = Names::new();
        assert!(matches!(names.host_id(Kind::TaskId, ""), Err(NameError::Empty { .. })));
        let long = "x".repeat(256);
        assert!(matches!(
            names.host_id(Kind::TaskId, &long),
            Err(NameError::TooLong { bytes: 256, .. })
        ));
        assert!(names.host_id(Kind::TaskId, &"x".repeat(255)).is_ok());
        assert!(matches!(names.host_id(Kind::TaskId, "a\nb"), Err(NameError::Control { .. })));
        assert!(matches!(names.host_id(Kind::JobId, "job 7"), Err(NameError::NotUuid { .. })));
    }
}
