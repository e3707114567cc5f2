//! `docs/cases.md` is true: each case names tests that exist, and each case test is named there.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The scenarios and field cases that are built by now. A later issue adds its own.
const SCENARIOS: &[&str] = &[
    "X01", "X02", "X03", "X04", "X05", "X06", "X07", "X08", "X09", "X10", "X11", "X12", "X13",
    "X14", "X17", "X18", "X19", "X50", "X52", "X54", "X55", "F01", "F02", "F04", "F06", "F08",
    "F09", "F11", "F12", "F13", "F14", "F16", "F18", "F19", "F20", "F22", "F23", "F25", "F26",
    "F27", "F29", "F30", "F32", "F34", "F48", "F60", "F61",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every test function in the sources, by name, with its file.
fn tests() -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut todo = vec![root().join("kernel"), root().join("adapters"), root().join("tests")];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path.file_name().is_some_and(|n| n != "target") {
                    todo.push(path);
                }
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let mut marked = false;
                for line in text.lines().map(str::trim) {
                    marked |= line == "#[test]";
                    if let Some(rest) = line.strip_prefix("fn ")
                        && marked
                    {
                        let name = rest.split(['(', '<']).next().unwrap();
                        found.insert(name.to_owned(), path.clone());
                        marked = false;
                    }
                }
            }
        }
    }
    found
}

/// The rows of `docs/cases.md`: case, rules, tests, what makes them fail.
fn rows() -> Vec<[String; 4]> {
    let text = std::fs::read_to_string(root().join("docs/cases.md")).unwrap();
    text.lines()
        .filter(|l| ["| X", "| F", "| K", "| T"].iter().any(|case| l.starts_with(case)))
        .map(|l| {
            let cells: Vec<String> =
                l.trim_matches('|').split(" | ").map(|c| c.trim().to_owned()).collect();
            assert_eq!(cells.len(), 4, "not four cells: {l}");
            [cells[0].clone(), cells[1].clone(), cells[2].clone(), cells[3].clone()]
        })
        .collect()
}

fn named(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_row_names_tests_that_exist_rules_and_a_way_to_fail() {
    let tests = tests();
    let rows = rows();
    assert!(rows.len() >= SCENARIOS.len(), "the table was not found");
    for [case, rules, names, fails] in &rows {
        let names = named(names);
        assert!(!names.is_empty(), "{case} names no test");
        for name in names {
            assert!(tests.contains_key(&name), "{case}: there is no test {name}");
        }
        let rule = |r: &str| {
            r.split_once('-').is_some_and(|(letter, number)| {
                letter.len() == 1 && number.chars().next().is_some_and(|c| c.is_ascii_digit())
            })
        };
        assert!(rules.split(", ").all(rule), "{case}: {rules:?} are not rules");
        assert!(fails.len() > 10, "{case} does not say what makes it fail");
    }
}

#[test]
fn every_scenario_and_every_case_test_is_in_the_table() {
    let rows = rows();
    let cases: BTreeSet<&str> = rows.iter().map(|r| r[0].as_str()).collect();
    for scenario in SCENARIOS {
        assert!(cases.contains(scenario), "{scenario} is not in docs/cases.md");
    }
    let listed: BTreeSet<String> = rows.iter().flat_map(|r| named(&r[2])).collect();
    for (name, path) in tests() {
        let mut chars = name.chars();
        let letter = chars.next().unwrap();
        let case = matches!(letter, 'x' | 'f' | 'k')
            && chars.next().is_some_and(|c| c.is_ascii_digit())
            && chars.next().is_some_and(|c| c.is_ascii_digit());
        assert!(!case || listed.contains(&name), "{name} ({}) is not listed", path.display());
    }
}

/// `docs/engines.md`: each assumption names what shows it.
#[test]
fn every_assumption_of_an_engine_names_tests_that_exist() {
    let text = std::fs::read_to_string(root().join("docs/engines.md")).unwrap();
    let tests = tests();
    let rows: Vec<&str> = text
        .lines()
        .filter(|l| l.starts_with("| ") && !l.starts_with("| ---") && !l.starts_with("| we assume"))
        .collect();
    assert!(rows.len() > 30, "the tables were not found: {} rows", rows.len());
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        assert_eq!(cells.len(), 3, "not three cells: {row}");
        let shown = named(cells[2]);
        assert!(!shown.is_empty(), "nothing shows it: {row}");
        for name in shown {
            assert!(tests.contains_key(&name), "there is no test {name}: {row}");
        }
    }
}
