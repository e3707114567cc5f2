//! What both kinds of sequence diagram show: who takes part, and what goes between whom.

use super::{Line, On, Story, Verdict};
use crate::system::Fault;

/// A sequence diagram, before it is drawn.
pub(super) struct Chart {
    /// Names of those who take part, from left to right: those who act, the store, the disk.
    pub(super) parts: Vec<String>,
    pub(super) rows: Vec<Row>,
}

/// One row of it.
pub(super) enum Row {
    /// A step, with an arrow.
    Arrow { number: usize, from: usize, to: usize, says: String },
    /// An answer, with a dotted arrow back.
    Reply { from: usize, to: usize, says: String, kind: Kind },
    /// A note: over one, or over all.
    Note { number: usize, over: Option<usize>, says: String },
}

/// What an answer is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Accepted,
    Refused,
    Lost,
}

pub(super) fn chart(story: &Story<'_>) -> Chart {
    let mut parts: Vec<String> = Vec::new();
    let drawn = |line: &Line| is_note(line).is_none();
    for line in &story.trace.lines {
        if line.who != TIME && !parts.contains(&line.who) {
            parts.push(line.who.clone());
        }
    }
    let uses = |on: On| story.trace.lines.iter().any(|l| l.on == on && drawn(l));
    let (with_store, with_disk) = (uses(On::Store), uses(On::Disk));
    let acting = parts.len();
    let store = acting;
    let disk = acting + usize::from(with_store);
    if with_store {
        parts.push("the store".to_owned());
    }
    if with_disk {
        parts.push("the disk".to_owned());
    }
    let mut rows = Vec::new();
    for (n, line) in story.trace.lines.iter().enumerate() {
        let number = n + 1;
        let at = parts.iter().position(|p| *p == line.who);
        if let Some(says) = is_note(line) {
            rows.push(Row::Note { number, over: at, says });
            continue;
        }
        let from = at.unwrap_or(0);
        let to = if line.on == On::Disk { disk } else { store };
        rows.push(Row::Arrow { number, from, to, says: line.says.clone() });
        let lost = line.fault == Some(Fault::LostReply);
        let reply = match line.verdict {
            Verdict::Outside => continue,
            Verdict::Accepted if lost => ("the reply is lost".to_owned(), Kind::Lost),
            Verdict::Accepted => ("accepted".to_owned(), Kind::Accepted),
            Verdict::Refused(code) => (format!("refused: {code}"), Kind::Refused),
        };
        rows.push(Row::Reply { from: to, to: from, says: reply.0, kind: reply.1 });
    }
    Chart { parts, rows }
}

/// Time is nobody: what it does is a note over all.
const TIME: &str = "time";

/// What a note says, if the step is no arrow: time, crashes, thoughts.
fn is_note(line: &Line) -> Option<String> {
    if line.who == TIME {
        return Some(line.to_note());
    }
    let dies = line.fault == Some(Fault::Crash) && line.command.is_empty();
    (dies || line.on == On::Itself).then(|| line.says.clone())
}

impl Line {
    fn to_note(&self) -> String {
        let slow = if self.fault == Some(Fault::Slow) { " although its holder lives" } else { "" };
        format!("{}{slow}", self.sentence())
    }
}
