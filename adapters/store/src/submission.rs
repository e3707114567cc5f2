//! What a host submits, and what it gets back.

use std::collections::BTreeMap;
use std::fmt;

use freehold_kernel::{
    Actor, ActorId, Command, ContentHash, Envelope, Event, Id, Kind, Permissions, Refusal, Reply,
    RequestId, RowKey, SessionEffect, TableId, Warrant,
};
use sha2::{Digest, Sha256};

use crate::names::{NameError, Names, refuse_nul};

/// Texts of a row that the kernel never reads, by column.
pub type RowContent = BTreeMap<&'static str, Option<String>>;

/// Texts of rows, beside their facts.
pub type Contents = BTreeMap<RowKey, RowContent>;

/// A command with its sender, its names and its texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    /// The command, with its sender.
    pub envelope: Envelope,
    /// The texts behind its ids.
    pub names: Names,
    /// Texts for rows that the command makes or changes; those of other rows are ignored.
    pub contents: Contents,
}

impl Submission {
    /// Refuses texts that not every store can hold. [`crate::run::Run`] asks first, so no
    /// store is given one.
    ///
    /// # Errors
    /// [`NameError::Nul`] names the kind of id or the column.
    pub fn storable(&self) -> Result<(), NameError> {
        self.names.without_nul()?;
        for (row, columns) in &self.contents {
            for (column, text) in columns {
                let what = || format!("{} of {}", column, row.table.name());
                refuse_nul(what, text.as_deref().unwrap_or_default())?;
            }
        }
        Ok(())
    }
}

/// Makes submissions out of a host's strings.
#[derive(Clone, Debug)]
pub struct Composer {
    names: Names,
    contents: Contents,
    actor: Actor,
    request: Option<RequestId>,
}

impl Composer {
    /// For this actor.
    ///
    /// # Errors
    /// If the actor's id cannot be used.
    pub fn new(actor: &str, may: Permissions) -> Result<Composer, NameError> {
        let mut names = Names::new();
        let id = ActorId(names.host_id(Kind::ActorId, actor)?);
        Ok(Composer { names, contents: Contents::new(), actor: Actor { id, may }, request: None })
    }

    /// Gives the submission the host's request id (D-19).
    ///
    /// # Errors
    /// If the id cannot be used.
    pub fn request(mut self, id: &str) -> Result<Composer, NameError> {
        self.request = Some(RequestId(self.names.host_id(Kind::RequestId, id)?));
        Ok(self)
    }

    /// The id of a host's string.
    ///
    /// # Errors
    /// If the string cannot be used.
    pub fn id<I: Id>(&mut self, text: &str) -> Result<I, NameError> {
        Ok(I::from_bits(self.names.host_id(I::KIND, text)?))
    }

    /// The id of a text that is not a host's id: a path, a branch, a stamp. Of any length.
    ///
    /// # Errors
    /// If another text has its digest, or it has the character NUL.
    pub fn text<I: Id>(&mut self, text: &str) -> Result<I, NameError> {
        refuse_nul(|| format!("a {}", I::KIND.code()), text)?;
        Ok(I::from_bits(self.names.learn(I::KIND, text)?))
    }

    /// Takes over names that came with rows.
    pub fn know(&mut self, names: &Names) {
        self.names.merge(names);
    }

    /// Sets a text of a row that the command makes or changes. A text with the character NUL is
    /// refused when it is submitted, by every store alike.
    pub fn content(&mut self, table: TableId, id: u128, column: &'static str, text: &str) {
        let row = RowKey { table, key: freehold_kernel::Key::of(id) };
        self.contents.entry(row).or_default().insert(column, Some(text.to_owned()));
    }

    /// The submission.
    pub fn submit(self, command: Command) -> Submission {
        let content = digest(&command, &self.contents);
        Submission {
            envelope: Envelope { request: self.request, content, actor: self.actor, command },
            names: self.names,
            contents: self.contents,
        }
    }
}

/// The digest of a command with its content: one request id, one digest (D-19, P-32). Debug text
/// names every field, so two different commands never have one text.
fn digest(command: &Command, contents: &Contents) -> ContentHash {
    let mut hash = Sha256::new();
    hash.update(format!("{command:?}").as_bytes());
    for (row, columns) in contents {
        hash.update(format!("{row:?}{columns:?}").as_bytes());
    }
    let bytes: [u8; 32] = hash.finalize().into();
    let mut first = [0u8; 16];
    first.copy_from_slice(&bytes[..16]);
    // The hash is written as a UUID, so it must not look like a digest that needs a name.
    let raw = u128::from_be_bytes(first);
    ContentHash((raw & !(0xf << 76)) | (0x8 << 76))
}

/// Accepted or refused: the kernel's word, apart from failures of the store.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done, and durable.
    Accepted(Accepted),
    /// Refused; nothing changed but the record of the request.
    Refused(Refused),
}

/// An accepted command.
#[derive(Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The answer. A request that was answered before gets its first answer again.
    pub reply: Reply,
    /// Whether this is such an earlier answer (D-19).
    pub replayed: bool,
    /// The permission for one physical step.
    pub warrant: Option<Warrant>,
    /// What became true.
    pub events: Vec<Event>,
    /// What to do now, after the commit.
    pub effects: Vec<SessionEffect>,
    /// The texts behind the ids.
    pub names: Names,
}

/// A refused command, with names for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which guard, and the rows in the way.
    pub refusal: Refusal,
    /// The names of those rows.
    pub names: Names,
    /// Whether this is an earlier answer (D-19).
    pub replayed: bool,
}

impl Refused {
    /// The rows in the way, each as table and id text.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        self.refusal.rows.rows().map(|row| (row.table.name(), row_text(&self.names, row))).collect()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guard = self.refusal.guard;
        write!(f, "refused ({}; {}): {}", guard.code(), guard.rule(), guard.says())?;
        let rows = self.rows();
        if !rows.is_empty() {
            let shown: Vec<String> = rows.iter().map(|(t, id)| format!("{t} {id:?}")).collect();
            write!(f, " [{}", shown.join(", "))?;
            let more = self.refusal.rows.count() as usize - rows.len();
            if more > 0 {
                write!(f, " and {more} more")?;
            }
            write!(f, "]")?;
        }
        write!(f, "; {}", guard.help())
    }
}

/// The text of a row's key.
pub fn row_text(names: &Names, row: RowKey) -> String {
    let kind = match row.table.columns().first().map(|c| c.shape) {
        Some(freehold_kernel::Shape::Id(kind)) => kind,
        Some(freehold_kernel::Shape::Int | freehold_kernel::Shape::Code(_)) | None => {
            return row.key.id.to_string();
        }
    };
    let kind = match (kind, row.key.part) {
        (Kind::AnyId, 1) => Kind::TaskId,
        (Kind::AnyId, 2) => Kind::SessionId,
        (Kind::AnyId, 3) => Kind::WorkspaceId,
        (kind, _) => kind,
    };
    names.show(kind, row.key.id)
}

impl Outcome {
    /// The accepted command, or the refusal as an error.
    ///
    /// # Errors
    /// The refusal.
    pub fn accepted(self) -> Result<Accepted, Box<Refused>> {
        match self {
            Outcome::Accepted(accepted) => Ok(accepted),
            Outcome::Refused(refused) => Err(Box::new(refused)),
        }
    }
}
