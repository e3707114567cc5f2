//! A story as a sequence diagram in Mermaid's words.

use super::Story;
use super::chart::{Kind, Row, chart};

pub(super) fn mermaid(story: &Story<'_>) -> String {
    let chart = chart(story);
    let mut out = String::from("sequenceDiagram\n");
    for (n, part) in chart.parts.iter().enumerate() {
        out.push_str(&format!("    participant p{n} as {}\n", escaped(part)));
    }
    let last = chart.parts.len().saturating_sub(1);
    let all = if last == 0 { "p0".to_owned() } else { format!("p0,p{last}") };
    for row in &chart.rows {
        out.push_str(&match row {
            Row::Arrow { number, from, to, says } => {
                format!("    p{from}->>p{to}: {number}. {}\n", escaped(says))
            }
            Row::Reply { from, to, says, kind } => {
                let arrow = if *kind == Kind::Lost { "--x" } else { "-->>" };
                format!("    p{from}{arrow}p{to}: {}\n", escaped(says))
            }
            Row::Note { number, over, says } => {
                let over = over.map_or_else(|| all.clone(), |n| format!("p{n}"));
                format!("    Note over {over}: {number}. {}\n", escaped(says))
            }
        });
    }
    if let Some(end) = story.end_words() {
        let words = format!("{}: {}", end.head, end.witness);
        out.push_str(&format!("    Note over {all}: {}\n", escaped(words.trim_end_matches(": "))));
    }
    out
}

/// Mermaid ends a statement at `;` and at the end of a line, begins an entity with `#`, reads tags
/// and directives, and takes the word `end` for the end of a block.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    for c in text.chars() {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        push_word(&mut out, &mut word);
        match c {
            ';' | '#' | '<' | '>' | '&' | '"' | '`' | '%' | '{' | '}' => {
                out.push_str(&format!("#{};", u32::from(c)));
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    push_word(&mut out, &mut word);
    out
}

fn push_word(out: &mut String, word: &mut String) {
    if word.eq_ignore_ascii_case("end") {
        for c in word.chars() {
            out.push_str(&format!("#{};", u32::from(c)));
        }
    } else {
        out.push_str(word);
    }
    word.clear();
}
