//! `docs/planted/`: a page for each design, with the trace that catches it.
//! `FREEHOLD_WRITE_TABLES=1 cargo test -p freehold-model-check --test planted` writes them anew.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Ran, runs, wanted};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/planted")
}

fn page(ran: &Ran) -> String {
    let design = ran.design;
    let mut out = format!(
        "# {}\n\n**The design.** {}.\n\n**The rule that forbids it.** {} (see [the rules]\
         (../rules/README.md)).\n\n",
        design.name.replace('-', " "),
        capital(design.says.trim_end_matches('.')),
        design.rule
    );
    let Some(story) = ran.story() else {
        out.push_str("It is not caught.\n");
        return out;
    };
    out.push_str(&format!(
        "**How it fails**, by the shortest way. `freehold check --planted {}` tells it anew.\n\n\
         ```text\n{}```\n\n```mermaid\n{}```\n",
        design.name,
        story.text(),
        story.mermaid()
    ));
    out
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

fn pages() -> BTreeMap<String, String> {
    let mut pages: BTreeMap<String, String> =
        runs().iter().map(|ran| (format!("{}.md", ran.design.name), page(ran))).collect();
    let mut index = String::from(
        "# Planted designs\n\nDesigns that look right and are wrong. Each was built into a model, and \
         the checker found how it fails: this is why the rule is there.\n\n| design | rule | breaks | \
         steps |\n| --- | --- | --- | --- |\n",
    );
    for ran in runs() {
        let design = ran.design;
        index.push_str(&format!(
            "| [{}]({}.md) | {} | {} | {} |\n",
            design.says.replace('|', "\\|"),
            design.name,
            design.rule,
            design.property,
            design.steps
        ));
    }
    pages.insert("README.md".to_owned(), index);
    pages
}

#[test]
fn the_pages_are_fresh() {
    if wanted().is_some() {
        return;
    }
    let pages = pages();
    if std::env::var_os("FREEHOLD_WRITE_TABLES").is_some() {
        std::fs::create_dir_all(folder()).unwrap();
        for (name, text) in &pages {
            std::fs::write(folder().join(name), text).unwrap();
        }
    }
    let stale: Vec<&String> = pages
        .iter()
        .filter(|(name, text)| {
            std::fs::read_to_string(folder().join(name)).unwrap_or_default() != **text
        })
        .map(|(name, _)| name)
        .collect();
    assert!(
        stale.is_empty(),
        "stale in docs/planted: {stale:?}; write them anew, look at the diff"
    );
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(pages.contains_key(&name), "docs/planted/{name} is of no design");
    }
}
