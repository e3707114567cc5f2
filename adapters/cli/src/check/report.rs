//! What was found, for people and for programs.

use std::time::Duration;

use freehold_kernel::{Guard, GuardKind};
use freehold_model_check::models::catalogue::{self, Scope};
use freehold_model_check::{Explored, Story};
use serde_json::{Value, json};

use super::Form;
use super::work::Work;
use crate::failure::Failure;
use crate::show::Show;

/// What a finding comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// As it should be.
    Right,
    /// Not as it should be.
    Wrong,
    /// A limit cut it.
    Cut,
}

/// One exploration and what it comes to.
#[derive(Debug)]
pub(super) struct Ran {
    verdict: Verdict,
    /// In words, after the name.
    says: String,
    name: String,
    kind: &'static str,
    system: String,
    guards: Vec<Guard>,
    explored: Option<Explored>,
    /// Whether the trace is what somebody wants to see.
    shows: bool,
}

impl Ran {
    /// Time was over before it.
    pub(super) fn not_run(work: &Work) -> Ran {
        Ran {
            verdict: Verdict::Cut,
            says: "not begun: the limit of time".to_owned(),
            name: work.name(),
            kind: work.kind(),
            system: String::new(),
            guards: work.guards(),
            explored: None,
            shows: false,
        }
    }

    pub(super) fn judged(work: &Work, system: &str, explored: Explored, asked: bool) -> Ran {
        let (verdict, says) = match work {
            Work::System(entry) => as_promised(&explored, entry.states),
            Work::Kill(kill) => caught(&explored, kill.property, kill.steps),
            Work::Planted(design) => caught(&explored, design.property, design.steps),
            Work::Without { .. } => what_breaks(&explored),
        };
        Ran {
            shows: asked || verdict == Verdict::Wrong,
            verdict,
            says,
            name: work.name(),
            kind: work.kind(),
            system: system.to_owned(),
            guards: work.guards(),
            explored: Some(explored),
        }
    }

    fn story(&self) -> Option<Story<'_>> {
        let explored = self.explored.as_ref()?;
        Story::of(&self.system, &self.guards, explored)
    }

    fn drawn(&self, form: Form) -> Option<String> {
        let story = self.story()?;
        Some(match form {
            Form::Text => story.text(),
            Form::Json => format!("{}\n", story.json()),
            Form::Mermaid => story.mermaid(),
            Form::Svg => story.svg(),
        })
    }

    /// Says it to people.
    pub(super) fn tell(&self, form: Option<Form>, out: &mut Show) {
        if out.is_json() {
            return;
        }
        let mark = match self.verdict {
            Verdict::Right => "ok  ",
            Verdict::Wrong => "FAIL",
            Verdict::Cut => "cut ",
        };
        say(form, out, &format!("{mark} {}: {}", self.name, self.says));
        if self.shows
            && let Some(drawn) = self.drawn(form.unwrap_or(Form::Text))
        {
            out.say(drawn.trim_end());
        }
    }

    fn value(&self, form: Option<Form>) -> Value {
        let explored = self.explored.as_ref();
        let properties = explored.map(|e| {
            let all = e.broken.iter();
            all.map(|f| json!({"property": f.broken.property, "steps": f.trace.lines.len()}))
                .collect::<Vec<Value>>()
        });
        json!({
            "kind": self.kind,
            "name": self.name,
            "system": self.system,
            "without": self.guards.iter().map(|g| g.code()).collect::<Vec<_>>(),
            "ok": self.verdict == Verdict::Right,
            "cut": explored.map_or(Some("the limit of time"), |e| e.cut.map(|c| c.says())),
            "says": self.says,
            "states": explored.map(|e| e.states),
            "edges": explored.map(|e| e.edges),
            "depth": explored.map(|e| e.depth),
            "seconds": explored.map(|e| e.took.as_secs_f64()),
            "bytes": explored.map(|e| e.bytes),
            "exhaustive": explored.is_some_and(Explored::exhaustive),
            "unseen": explored.map(Explored::unseen),
            "broken": properties,
            "trace": self.story().map(|s| s.json()),
            "drawn": form.filter(|f| *f != Form::Json).and_then(|f| self.drawn(f)),
        })
    }
}

/// Words beside traces that a program reads go to standard error.
fn say(form: Option<Form>, out: &mut Show, words: &str) {
    match form {
        Some(Form::Json | Form::Mermaid | Form::Svg) => out.aside(words),
        Some(Form::Text) | None => out.say(words),
    }
}

fn size(explored: &Explored) -> String {
    format!(
        "{} states, depth {}, {:.1} s",
        grouped(explored.states),
        explored.depth,
        explored.took.as_secs_f64()
    )
}

/// How far a search came that a limit cut.
fn cut(explored: &Explored) -> Option<(Verdict, String)> {
    let cut = explored.cut?;
    let says = format!("cut by {}; looked at {}, and nothing broke", cut.says(), size(explored));
    Some((Verdict::Cut, says))
}

fn as_promised(explored: &Explored, pinned: usize) -> (Verdict, String) {
    if let Some(says) = findings(explored) {
        return (Verdict::Wrong, says);
    }
    if let Some(cut) = cut(explored) {
        return cut;
    }
    let unseen = explored.unseen();
    if !unseen.is_empty() {
        return (Verdict::Wrong, format!("never met: {}; {}", unseen.join(", "), size(explored)));
    }
    if pinned != 0 && explored.states != pinned {
        let says = format!("{}, but {} are pinned", size(explored), grouped(pinned));
        return (Verdict::Wrong, says);
    }
    (Verdict::Right, format!("{}, exhaustive", size(explored)))
}

fn what_breaks(explored: &Explored) -> (Verdict, String) {
    if let Some(says) = findings(explored) {
        return (Verdict::Wrong, says);
    }
    let nothing = || (Verdict::Right, format!("nothing breaks; {}, exhaustive", size(explored)));
    cut(explored).unwrap_or_else(nothing)
}

fn caught(explored: &Explored, property: &str, steps: usize) -> (Verdict, String) {
    let Some(says) = findings(explored) else {
        let nothing = || (Verdict::Wrong, format!("is not caught; {}", size(explored)));
        return cut(explored).unwrap_or_else(nothing);
    };
    let found = match (explored.broken.first(), &explored.stuck) {
        (Some(found), _) => (found.broken.property.as_str(), found.trace.lines.len()),
        (None, Some(trace)) => ("stuck", trace.lines.len()),
        (None, None) => ("", 0),
    };
    if found.0.split(' ').next() == Some(property) && found.1 == steps {
        return (Verdict::Right, says);
    }
    (Verdict::Wrong, format!("{says}; pinned is {property} in {steps} steps"))
}

/// What broke, or that something never rests.
fn findings(explored: &Explored) -> Option<String> {
    if explored.broken.is_empty() {
        let trace = explored.stuck.as_ref()?;
        return Some(format!("never comes to rest after {} steps", trace.lines.len()));
    }
    let each = explored
        .broken
        .iter()
        .map(|f| format!("{} in {} steps", f.broken.property, f.trace.lines.len()))
        .collect::<Vec<_>>();
    Some(format!("breaks {}; {}", each.join(", "), size(explored)))
}

/// The end of the run.
pub(super) fn sum(
    all: &[Ran],
    took: Duration,
    form: Option<Form>,
    out: &mut Show,
) -> Result<(), Failure> {
    let count = |verdict| all.iter().filter(|r| r.verdict == verdict).count();
    let (wrong, cut) = (count(Verdict::Wrong), count(Verdict::Cut));
    let explored = || all.iter().filter_map(|r| r.explored.as_ref());
    let states: usize = explored().map(|e| e.states).sum();
    let peak = explored().map(|e| e.bytes).max().unwrap_or(0);
    let resident = peak_resident();
    let of_process = resident
        .map_or(String::new(), |bytes| format!(" ({} MiB of the process)", mebibytes(bytes)));
    let words = format!(
        "{} checked, {wrong} not as promised, {cut} cut: {} states in {:.1} s, at most {} MiB \
         held{of_process}",
        all.len(),
        grouped(states),
        took.as_secs_f64(),
        mebibytes(peak)
    );
    let first = |verdict| all.iter().find(|r| r.verdict == verdict);
    let failure = match (first(Verdict::Wrong), first(Verdict::Cut)) {
        (Some(ran), _) => Some(Failure::Broken(format!("{}: {}", ran.name, ran.says))),
        (None, Some(ran)) => Some(Failure::Cut(format!("{}: {}", ran.name, ran.says))),
        (None, None) => None,
    };
    if out.is_json() {
        let value = json!({
            "ok": failure.is_none(),
            "exit_code": failure.as_ref().map_or(0, Failure::exit_code),
            "checked": all.iter().map(|r| r.value(form)).collect::<Vec<_>>(),
            "not_as_promised": wrong,
            "cut": cut,
            "states": states,
            "seconds": took.as_secs_f64(),
            "peak_bytes": peak,
            "peak_resident_bytes": resident,
        });
        out.result(&value, "");
    } else {
        say(form, out, &words);
    }
    failure.map_or(Ok(()), Err)
}

/// Bytes that the process held at most, where the system says so.
fn peak_resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kib: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

/// What there is to check.
pub(super) fn list(out: &mut Show) {
    let (systems, kills, designs) =
        (catalogue::systems(), catalogue::kills(), catalogue::designs());
    let scope = |scope| match scope {
        Scope::Ci => "ci",
        Scope::Long => "long",
    };
    let kind = |guard: &Guard| match guard.kind() {
        GuardKind::Rule => "rule",
        GuardKind::Redundant => "redundant",
        GuardKind::Validation => "validation",
    };
    let value = json!({
        "systems": systems.iter().map(|e| json!({
            "name": e.name, "model": e.model, "says": e.says, "scope": scope(e.scope),
            "states": e.states,
        })).collect::<Vec<_>>(),
        "guards": Guard::ALL.iter().map(|g| json!({
            "name": g.code(), "kind": kind(g), "rule": g.rule(), "says": g.says(),
            "checked": kills.iter().any(|k| k.guards.contains(g)),
        })).collect::<Vec<_>>(),
        "planted": designs.iter().map(|d| json!({
            "name": d.name, "says": d.says, "rule": d.rule, "property": d.property,
        })).collect::<Vec<_>>(),
    });
    let mut words = String::from("systems (--model)\n");
    for entry in &systems {
        let states = grouped(entry.states);
        let scope = scope(entry.scope);
        words.push_str(&format!("  {}: {} ({scope}, {states} states)\n", entry.name, entry.says));
    }
    words.push_str("guards (--without)\n");
    for guard in Guard::ALL {
        let code = guard.code();
        words.push_str(&format!(
            "  {code}: {} ({}, {})\n",
            guard.says(),
            kind(guard),
            guard.rule()
        ));
    }
    words.push_str("planted designs (--planted)\n");
    for design in &designs {
        words.push_str(&format!("  {}: {} ({})\n", design.name, design.says, design.rule));
    }
    out.result(&value, words.trim_end());
}

/// A number that can be read: `1,234,567`.
pub(super) fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub(super) fn mebibytes(bytes: usize) -> String {
    grouped(bytes.div_ceil(1 << 20))
}
