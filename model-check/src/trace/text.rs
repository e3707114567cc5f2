//! A story as text.

use super::Story;

pub(super) fn text(story: &Story<'_>) -> String {
    let mut out = format!("{}\n{}", story.title(), story.trace);
    if story.trace.lines.is_empty() {
        out.push_str("  0. nothing has happened yet\n");
    }
    if let Some(end) = story.end_words() {
        out.push_str(&format!("{}\n", end.head));
        if !end.rule.is_empty() {
            out.push_str(&format!("  the rule:  {}\n", end.rule));
        }
        if !end.witness.is_empty() {
            out.push_str(&format!("  broken by: {}\n", end.witness));
        }
    }
    out
}
