use super::*;

fn line(who: &str, says: &str, command: &'static str, verdict: Verdict, on: On) -> Line {
    Line { who: who.to_owned(), says: says.to_owned(), command, verdict, on, fault: None }
}

/// A small trace with everything in it.
fn trace() -> Trace {
    let asks = |who, says, verdict| line(who, says, "operation.reserve", verdict, On::Store);
    let outside = |who, says, on| line(who, says, "", Verdict::Outside, on);
    let mut lines = vec![
        asks(
            "instance A",
            "bars task 0; to <archive> it, and puts an end to it",
            Verdict::Accepted,
        ),
        asks("a person", "creates session 1", Verdict::Refused("task_unbarred")),
        outside("instance A", "makes worktree 0 on disk", On::Disk),
        asks("instance A", "asks for its row", Verdict::Accepted),
        outside("instance A", "dies", On::Disk),
        outside("time", "passes: the lease of  attempt 0 lapses", On::Itself),
    ];
    lines[3].fault = Some(Fault::LostReply);
    lines[4].fault = Some(Fault::Crash);
    lines[5].fault = Some(Fault::Slow);
    Trace { lines }
}

fn broken() -> Broken {
    let says = "a worktree is named by nothing [repos a00] [paths ffffff]";
    Broken::new("P-3 NoUntrackedWorktree", says)
}

fn told(tell: impl Fn(&Story<'_>) -> String) -> String {
    let (trace, broken) = (trace(), broken());
    let without = [Guard::TaskUnbarred];
    let end = Ending::Broken(&broken);
    tell(&Story { system: "small", without: &without, trace: &trace, end })
}

/// `FREEHOLD_WRITE_TABLES=1` writes the snapshot anew.
fn is_as_stored(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/trace/snapshots");
    let path = path.join(name);
    if std::env::var_os("FREEHOLD_WRITE_TABLES").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == text, "{name} is told otherwise:\n{text}");
}

#[test]
fn text_is_as_stored() {
    is_as_stored("small.txt", &told(|s| s.text()));
}

#[test]
fn json_is_as_stored() {
    is_as_stored("small.json", &told(|s| format!("{:#}\n", s.json())));
}

#[test]
fn mermaid_is_as_stored() {
    is_as_stored("small.mmd", &told(|s| s.mermaid()));
}

#[test]
fn svg_is_as_stored() {
    is_as_stored("small.svg", &told(|s| s.svg()));
}

#[test]
fn mermaid_has_a_statement_a_line_and_nothing_that_it_reads_otherwise() {
    let text = told(|s| s.mermaid());
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("sequenceDiagram"));
    for line in lines {
        let line = line.trim();
        let statement = line.strip_prefix("participant ").or(line.strip_prefix("Note over "));
        let arrow = ["->>", "-->>", "--x"].iter().any(|a| line.contains(a));
        assert!(statement.is_some() || arrow, "{line}");
        // Whatever is escaped is an entity: `#59;`.
        let mut rest = line;
        while let Some(at) = rest.find(['#', ';']) {
            let from = &rest[at..];
            let end = from.find(';').expect("an entity ends");
            assert!(from.starts_with('#') && from[1..end].chars().all(|c| c.is_ascii_digit()));
            rest = &from[end + 1..];
        }
        assert!(!line.contains('<') && !line.split_whitespace().any(|w| w == "end"), "{line}");
    }
}

/// A check of well-formedness, as far as these pictures go: tags nest, attributes are quoted,
/// text holds no markup.
fn is_well_formed(xml: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = xml;
    let mut roots = 0;
    while let Some(at) = rest.find('<') {
        let text = &rest[..at];
        assert!(!text.contains('>'), "markup in text: {text}");
        assert!(!open.is_empty() || text.trim().is_empty(), "text outside: {text}");
        for (at, _) in text.match_indices('&') {
            let entity = &text[at..text[at..].find(';').expect("an entity ends") + at + 1];
            assert!(["&amp;", "&lt;", "&gt;", "&quot;"].contains(&entity), "{entity}");
        }
        let end = rest[at..].find('>').expect("a tag ends") + at;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
            continue;
        }
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |t| (t, true));
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.split_whitespace().next().expect("a tag has a name");
        let attributes = &tag[name.len()..];
        for attribute in attributes.split('"').step_by(2).map(str::trim).filter(|a| !a.is_empty()) {
            assert!(attribute.ends_with('='), "{attribute} in {tag}");
        }
        roots += usize::from(open.is_empty());
        if !closed {
            open.push(name);
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty() && roots == 1, "{open:?}");
}

#[test]
fn svg_is_well_formed_and_says_everything() {
    let svg = told(|s| s.svg());
    is_well_formed(&svg);
    for words in ["instance A", "a person", "the store", "the disk", "small without", "P-3"] {
        assert!(svg.contains(words), "{words}");
    }
}

#[test]
fn svg_survives_bad_names_and_an_empty_trace() {
    let broken = Broken::new("<&\">\u{7}", "x".repeat(900));
    let trace = Trace::default();
    let end = Ending::Broken(&broken);
    let story = Story { system: "a & <b>", without: &[], trace: &trace, end };
    is_well_formed(&story.svg());
    assert!(story.text().contains("nothing has happened"));
    let story = Story { end: Ending::Stuck, ..story };
    is_well_formed(&story.svg());
    assert_eq!(story.json()["end"]["kind"], "stuck");
    let story = Story { end: Ending::Open, ..story };
    assert!(!story.text().contains("broken"));
}

#[test]
#[should_panic(expected = "left")]
fn the_check_of_form_sees_tags_that_cross() {
    is_well_formed("<a><b></a></b>");
}

#[test]
fn rows_of_a_witness_are_called_as_the_steps_call_them() {
    assert_eq!(in_words("two [sessions 601] and [x"), "two [sessions: session 1] and [x");
    assert_eq!(in_words("[tasks 12345678]"), "[tasks 12345678]");
}
