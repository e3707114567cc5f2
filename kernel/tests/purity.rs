//! The kernel is pure: shown over its sources, beside the build without `std`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut todo = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(found.len() > 20, "the sources were not found");
    found
}

/// The code of a line, without comments and without what stands in quotes.
fn code(line: &str) -> String {
    let mut out = String::new();
    let mut quoted = false;
    let mut before = ' ';
    for c in line.chars() {
        if c == '"' && before != '\\' {
            quoted = !quoted;
        }
        if !quoted && c == '/' && before == '/' {
            out.pop();
            break;
        }
        if !quoted {
            out.push(c);
        }
        before = c;
    }
    out
}

/// The places in the kernel's sources where `bad` says so, tests inside the sources apart.
fn places(bad: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in sources() {
        for (n, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("#[cfg(test)]") && !text.contains("machine!(") {
                break;
            }
            let line = code(line);
            if bad(&line) {
                found.push(format!("{}:{}: {}", path.display(), n + 1, line.trim()));
            }
        }
    }
    found
}

#[test]
fn nothing_but_core_and_alloc() {
    let std = places(|line| line.contains("std::") || line.contains("extern crate std"));
    assert!(std.is_empty(), "std in the kernel:\n{}", std.join("\n"));
    let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    assert!(std::fs::read_to_string(lib).unwrap().contains("#![no_std]"));
}

#[test]
fn no_clock_randomness_threads_or_input() {
    let words =
        ["Instant", "SystemTime", "thread", "rand", "getrandom", "println", "async fn", "unsafe"];
    let found = places(|line| {
        words.iter().any(|word| {
            line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|token| token == *word)
                || (word.contains(' ') && line.contains(word))
        })
    });
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn no_wildcard_arm() {
    let found = places(|line| {
        let line = line.trim_start();
        line.starts_with("_ =>") || line.contains("| _ =>") || line.contains(", _ =>")
    });
    assert!(found.is_empty(), "a new variant would be swallowed here:\n{}", found.join("\n"));
}

#[test]
fn no_dependencies() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let text = std::fs::read_to_string(manifest).unwrap();
    assert!(!text.lines().any(|l| l.trim() == "[dependencies]"), "the kernel has a dependency");
}

#[test]
fn only_the_checker_and_tests_take_guards_out() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut todo = vec![root.join("adapters"), root.join("tests")];
    let mut seen = 0;
    while let Some(dir) = todo.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                // Test code may, the testkit is nothing else; what a host ships may not.
                let test_code = ["tests", "testkit", "target"];
                if path.file_name().is_some_and(|n| !test_code.iter().any(|t| n == *t)) {
                    todo.push(path);
                }
            } else if path.extension().is_some_and(|e| e == "rs") {
                seen += 1;
                let text = std::fs::read_to_string(&path).unwrap();
                for name in ["decide_with", "AllBut"] {
                    assert!(!text.contains(name), "{} names {name}", path.display());
                }
            }
        }
    }
    assert!(seen > 10, "the adapters' sources were not found");
}

#[test]
fn the_checks_themselves_can_fail() {
    assert_eq!(code("let x = 1; // std::time"), "let x = 1; ");
    assert_eq!(code("let x = \"std::time\";"), "let x = \";");
    assert!(code("std::time::Instant::now()").contains("std::"));
}
