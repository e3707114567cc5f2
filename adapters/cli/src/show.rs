//! Output: plain words for people, or one JSON object per line. Both come from one value (A-35).

use std::io::{IsTerminal, Write};

use serde_json::{Value, json};

use crate::failure::Failure;

/// Where a command writes.
#[derive(Debug)]
pub(crate) struct Show {
    json: bool,
    colour: bool,
}

impl Show {
    pub(crate) fn new(json: bool) -> Show {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Show { json, colour: colour && !json }
    }

    /// A step: its name, whether it is as promised, and what was seen.
    pub(crate) fn step(&mut self, number: usize, name: &str, ok: bool, evidence: &Value) {
        if self.json {
            self.line(&json!({"step": number, "name": name, "ok": ok, "evidence": evidence}));
            return;
        }
        let mark = match (ok, self.colour) {
            (true, true) => "\u{1b}[32mok\u{1b}[0m  ",
            (false, true) => "\u{1b}[31mFAIL\u{1b}[0m",
            (true, false) => "ok  ",
            (false, false) => "FAIL",
        };
        self.text(&format!("{mark} {number:>2}. {name}"));
        if let Value::Object(seen) = evidence {
            for (key, value) in seen {
                let value = match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                self.text(&format!("        {}: {value}", key.replace('_', " ")));
            }
        }
    }

    /// Words for people; nothing in JSON.
    pub(crate) fn say(&mut self, text: &str) {
        if !self.json {
            self.text(text);
        }
    }

    /// Whether the output is JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// How far a command is: on standard error, so that it is never taken for a result.
    pub(crate) fn aside(&self, text: &str) {
        let _ = writeln!(std::io::stderr(), "{text}");
    }

    /// The result: the last line in JSON, words for people.
    pub(crate) fn result(&mut self, value: &Value, words: &str) {
        if self.json {
            self.line(value);
        } else {
            self.text(words);
        }
    }

    pub(crate) fn failure(&mut self, failure: &Failure) {
        if self.json && !failure.is_told() {
            self.line(&json!({
                "ok": false,
                "error": failure.code(),
                "says": failure.to_string(),
                "next": failure.next(),
                "exit_code": failure.exit_code(),
            }));
        }
        // People read it on standard error, also beside JSON.
        let _ = writeln!(std::io::stderr(), "freehold: {failure}");
    }

    fn line(&mut self, value: &Value) {
        self.text(&value.to_string());
    }

    fn text(&mut self, text: &str) {
        // A reader that closed the pipe wants no more of it.
        let _ = writeln!(std::io::stdout(), "{text}");
    }
}
