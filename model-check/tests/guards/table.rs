//! `docs/tables/guards.md` and `docs/tables/guards-by-property.md`: what every guard is there for.
//! `FREEHOLD_WRITE_TABLES=1 cargo test -p freehold-model-check --test guards` writes them anew.

use std::collections::BTreeSet;
use std::path::PathBuf;

use freehold_kernel::properties::PROPERTIES;
use freehold_kernel::{Guard, GuardKind};
use freehold_model_check::models::catalogue::{Kill, kills};
use freehold_model_check::{Limits, explore};

use super::{Ran, runs, validation, wanted};

fn is_fresh(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/tables").join(name);
    if std::env::var_os("FREEHOLD_WRITE_TABLES").is_some() {
        std::fs::write(&path, text).expect("the tables can be written");
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == text, "docs/tables/{name} is stale; write it anew and look at the diff");
}

fn codes(guards: &[Guard]) -> String {
    guards.iter().map(|g| format!("`{}`", g.code())).collect::<Vec<_>>().join(", ")
}

fn rules(guards: &[Guard]) -> String {
    let rules: BTreeSet<&str> = guards.iter().flat_map(|g| g.rule().split(", ")).collect();
    rules.into_iter().collect::<Vec<_>>().join(", ")
}

/// What a cell of a table cannot hold.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn row(ran: &Ran) -> String {
    let Ran { kill, system, explored } = ran;
    let found = explored.broken.first();
    let (property, steps, last) = found.map_or(("nothing".to_owned(), 0, String::new()), |f| {
        let last = f.trace.lines.last().map(ToString::to_string).unwrap_or_default();
        (f.broken.property.clone(), f.trace.lines.len(), last)
    });
    format!(
        "| {} | {} | {} | {property} | {steps} | {} |",
        codes(kill.guards),
        rules(kill.guards),
        cell(system),
        cell(&last)
    )
}

const HEAD: &str = "rules | system | breaks first | steps | in the last step |\n";

fn guards() -> String {
    let mut out = String::from(
        "# Guards\n\nEvery condition that a decision tests (docs/rules/09-properties.md, Guards and \
         mutants), and what happens without it: a kernel that lacks the guard, in the system that is \
         named, breaks this property first; the last step of the shortest trace is told. \
         `freehold check --without GUARD` tells the whole of it.\n\n## Rule guards\n\nTaken out one \
         by one.\n\n| guard | ",
    );
    out.push_str(HEAD);
    out.push_str("| --- | --- | --- | --- | --- | --- |\n");
    // In the order in which guards are tested, not in that of the models.
    let place = |ran: &&Ran| {
        let first = ran.kill.guards.first();
        Guard::ALL.iter().position(|g| Some(g) == first)
    };
    let is_rule = |kill: &Kill| match kill.guards {
        [guard] => guard.kind() == GuardKind::Rule,
        _ => false,
    };
    let mut rows: Vec<&Ran> = runs().iter().filter(|r| is_rule(r.kill)).collect();
    rows.sort_by_key(place);
    for ran in rows {
        out.push_str(&row(ran));
        out.push('\n');
    }
    out.push_str(
        "\n## Redundant guards\n\nDefence in depth: one of a group would do. The whole group is taken \
         out.\n\n| group | ",
    );
    out.push_str(HEAD);
    out.push_str("| --- | --- | --- | --- | --- | --- |\n");
    let groups: Vec<&Ran> = runs().iter().filter(|r| !is_rule(r.kill)).collect();
    for ran in &groups {
        out.push_str(&row(ran));
        out.push('\n');
    }
    out.push_str("\nWhy each of them is there although one would do:\n\n");
    for ran in &groups {
        out.push_str(&format!(
            "- {}: {}.\n",
            codes(ran.kill.guards),
            ran.kill.why.trim_end_matches('.')
        ));
    }
    out.push_str(
        "\n## Validation guards\n\nThe shape of an input: nothing is unsafe without them that another \
         guard or the shape of the rows would not stop, but a refusal says what is wrong. Each is \
         seen to refuse in the test that is named.\n\n| guard | rules | says | test |\n\
         | --- | --- | --- | --- |\n",
    );
    for (guard, path, function) in validation::covered() {
        let (code, rule) = (guard.code(), guard.rule());
        let says = cell(guard.says());
        out.push_str(&format!("| `{code}` | {rule} | {says} | `{path}`: `{function}` |\n"));
    }
    out
}

#[test]
fn the_table_of_guards_is_fresh() {
    if wanted().is_none() {
        is_fresh("guards.md", &guards());
    }
}

/// The whole matrix: every property that a missing guard breaks, in its own system.
#[test]
fn the_matrix_of_guards_and_properties_is_fresh() {
    if wanted().is_some() {
        return;
    }
    let limits = Limits { rest: false, all: true, states: 3_000_000, ..Limits::default() };
    let mut out = String::from(
        "# Guards by property\n\nEvery property that breaks somewhere in the system of a guard that \
         is taken out (`freehold check --all`); `1` is the one that breaks first, by a shortest \
         trace. A step that breaks several counts for each of them; what lies behind a broken step \
         is not looked at. The systems are the smallest that show what a guard is there for: an \
         empty cell says that nothing breaks in that system, not that nothing could.\n\n| guard |",
    );
    let broken: Vec<(&Kill, Vec<String>)> = kills()
        .into_iter()
        .map(|kill| {
            let explored = explore(&(kill.build)().without(kill.guards), limits);
            let id = |p: &str| p.split(' ').next().unwrap_or(p).to_owned();
            let mut ids: Vec<String> =
                explored.broken.iter().map(|f| id(&f.broken.property)).collect();
            if explored.cut.is_some() {
                ids.push("cut".to_owned());
            }
            (kill, ids)
        })
        .collect();
    let used = |id: &str| broken.iter().any(|(_, ids)| ids.iter().any(|i| i == id));
    let mut columns: Vec<&str> = PROPERTIES.iter().map(|p| p.id).filter(|id| used(id)).collect();
    if used("cut") {
        columns.push("cut");
    }
    for column in &columns {
        out.push_str(&format!(" {column} |"));
    }
    out.push_str("\n| --- |");
    out.push_str(&" --- |".repeat(columns.len()));
    out.push('\n');
    for (kill, ids) in &broken {
        out.push_str(&format!("| {} |", codes(kill.guards)));
        for column in &columns {
            let mark = match ids.iter().position(|id| id == column) {
                Some(0) => "1",
                Some(_) => "x",
                None => "",
            };
            out.push_str(&format!(" {mark} |"));
        }
        out.push('\n');
    }
    is_fresh("guards-by-property.md", &out);
}
