//! A way through a system, in the words of the domain, and how it is told: as text, as JSON, as a
//! sequence diagram in Mermaid or SVG.

mod chart;
mod json;
mod mermaid;
mod svg;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;

use freehold_kernel::Guard;
use freehold_kernel::properties::PROPERTIES;

use crate::explore::{Broken, Explored};
use crate::models::names::said;
use crate::system::Fault;
use crate::world::World;

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A command that was accepted.
    Accepted,
    /// A command that was refused, by this guard.
    Refused(&'static str),
    /// Something on disk, or something that somebody learns or forgets: no command.
    Outside,
}

/// What a step acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// The store: one transaction.
    Store,
    /// The disk, with its worktrees and locks, and whatever else is outside the store.
    Disk,
    /// Nothing but the one who acts, or what time does to leases.
    Itself,
}

impl On {
    /// What a step that is no command acts on, by what it changes.
    pub(crate) fn what_changes(before: &World, after: Option<&World>) -> On {
        let same = |after: &World| before.disk == after.disk && before.facts == after.facts;
        if after.is_some_and(same) { On::Itself } else { On::Disk }
    }
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Who: `instance A`, `a person`, `time`.
    pub who: String,
    /// What that one does, as the rest of a sentence that begins with `who`.
    pub says: String,
    /// The command's code; empty without a command.
    pub command: &'static str,
    /// What became of it.
    pub verdict: Verdict,
    /// What it acts on.
    pub on: On,
    /// What went wrong in it.
    pub fault: Option<Fault>,
}

/// Steps from the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// In order.
    pub lines: Vec<Line>,
}

/// What a trace comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending<'a> {
    /// The last step breaks a property.
    Broken(&'a Broken),
    /// From here on nothing ever comes to rest.
    Stuck,
    /// Nothing: it is only a way.
    Open,
}

/// A trace with its system and its end, to be told.
///
/// ```
/// use freehold_model_check::{Ending, Line, On, Story, Trace, Verdict};
///
/// let trace = Trace {
///     lines: vec![Line {
///         who: "instance A".to_owned(),
///         says: "bars task 0 to archive it".to_owned(),
///         command: "operation.reserve",
///         verdict: Verdict::Refused("task_unbarred"),
///         on: On::Store,
///         fault: None,
///     }],
/// };
/// let story = Story { system: "creation-archive", without: &[], trace: &trace, end: Ending::Open };
/// assert!(story.text().contains("refused by task_unbarred"));
/// assert!(story.mermaid().starts_with("sequenceDiagram"));
/// assert!(story.svg().starts_with("<svg"));
/// assert_eq!(story.json()["steps"][0]["guard"], "task_unbarred");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Story<'a> {
    /// The system's name.
    pub system: &'a str,
    /// The guards that were taken out of it.
    pub without: &'a [Guard],
    /// What happens.
    pub trace: &'a Trace,
    /// What it comes to.
    pub end: Ending<'a>,
}

impl<'a> Story<'a> {
    /// What a search found first: the broken property, or the state from which nothing rests.
    pub fn of(system: &'a str, without: &'a [Guard], found: &'a Explored) -> Option<Story<'a>> {
        let broken = found.broken.first().map(|f| (&f.trace, Ending::Broken(&f.broken)));
        let stuck = found.stuck.as_ref().map(|trace| (trace, Ending::Stuck));
        broken.or(stuck).map(|(trace, end)| Story { system, without, trace, end })
    }

    /// Numbered lines: who, what, and the verdict; then what is broken.
    pub fn text(&self) -> String {
        text::text(self)
    }

    /// One object of a stable shape; `docs/model-checking.md` has it.
    pub fn json(&self) -> serde_json::Value {
        json::json(self)
    }

    /// A sequence diagram in Mermaid's words.
    pub fn mermaid(&self) -> String {
        mermaid::mermaid(self)
    }

    /// A sequence diagram as an SVG picture.
    pub fn svg(&self) -> String {
        svg::svg(self)
    }

    /// What it is about, in a line.
    fn title(&self) -> String {
        let codes: Vec<&str> = self.without.iter().map(|g| g.code()).collect();
        match codes.as_slice() {
            [] => self.system.to_owned(),
            codes => format!("{} without {}", self.system, codes.join(", ")),
        }
    }

    /// What it comes to: the head, the sentence of the rule, the witness. None for an open end.
    fn end_words(&self) -> Option<EndWords> {
        match self.end {
            Ending::Open => None,
            Ending::Stuck => Some(EndWords {
                head: "stuck".to_owned(),
                rule: "from every state a state is reachable in which everything has come to rest"
                    .to_owned(),
                witness: "from here on none is".to_owned(),
            }),
            Ending::Broken(broken) => Some(EndWords {
                head: format!("{} is broken", broken.property),
                rule: sentence(&broken.property).unwrap_or_default().to_owned(),
                witness: in_words(&broken.says),
            }),
        }
    }
}

struct EndWords {
    head: String,
    rule: String,
    witness: String,
}

/// What the rule behind a property says; nothing for a host's own property.
pub fn sentence(property: &str) -> Option<&'static str> {
    let id = property.split(' ').next()?;
    PROPERTIES.iter().find(|p| p.id == id).map(|p| p.says)
}

/// What a guard's refusal says.
fn guard_says(code: &str) -> Option<&'static str> {
    Guard::ALL.iter().find(|g| g.code() == code).map(|g| g.says())
}

/// A witness with its rows called as the steps call them: `[sessions 601]` becomes
/// `[sessions: session 1]`.
fn in_words(witness: &str) -> String {
    let mut out = String::with_capacity(witness.len());
    let mut rest = witness;
    while let Some(at) = rest.find('[') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let end = from.find(']').map_or(from.len(), |end| end + 1);
        let (row, after) = from.split_at(end);
        let named = row.strip_prefix('[').and_then(|r| r.strip_suffix(']')).and_then(|row| {
            let (table, id) = row.rsplit_once(' ')?;
            let id = u128::from_str_radix(id, 16).ok()?;
            let name = said(id);
            (!name.starts_with(&format!("{id:x}"))).then(|| format!("[{table}: {name}]"))
        });
        out.push_str(named.as_deref().unwrap_or(row));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A fault in one word.
const fn fault_code(fault: Fault) -> &'static str {
    match fault {
        Fault::Crash => "crash",
        Fault::Slow => "slow",
        Fault::LostReply => "lost_reply",
        Fault::Doubled => "doubled",
        Fault::Disk => "disk",
        Fault::Outsider => "outsider",
    }
}

impl Line {
    /// What became of it, where that is worth saying.
    fn verdict_words(&self) -> Option<String> {
        let lost = self.fault == Some(Fault::LostReply);
        match self.verdict {
            Verdict::Accepted if lost => Some("accepted, but the reply is lost".to_owned()),
            Verdict::Accepted => Some("accepted".to_owned()),
            Verdict::Refused(code) => Some(match guard_says(code) {
                Some(why) => format!("refused by {code}: {why}"),
                None => format!("refused by {code}"),
            }),
            Verdict::Outside => None,
        }
    }

    /// The sentence.
    fn sentence(&self) -> String {
        // A name that was left out leaves two spaces.
        format!("{} {}", self.who, self.says.replace("  ", " "))
    }
}

impl fmt::Display for Trace {
    /// One numbered line for each step.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, line) in self.lines.iter().enumerate() {
            writeln!(f, "{:3}. {line}", n + 1)?;
        }
        Ok(())
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.sentence())?;
        if self.fault == Some(Fault::Slow) {
            write!(f, " although its holder lives")?;
        }
        match self.verdict_words() {
            Some(words) => write!(f, " ({words})"),
            None => Ok(()),
        }
    }
}
