//! The crate reaches the disk and git through its port alone (docs/decisions/0015): a call beside
//! it would meet no fault of the sweep.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "it reads the sources")]

use std::path::{Path, PathBuf};

/// The port itself, and what only looks at the process table.
const PORT: &[&str] = &["disk.rs", "disk/at.rs", "disk/file.rs", "process.rs", "users.rs"];

/// Only tests.
const TESTS: &[&str] = &["tests/", "salvage/tests/", "salvage/tests.rs"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// What a line calls that only the port may call.
fn beside_the_port(line: &str) -> Option<&'static str> {
    let code = line.split("//").next().unwrap_or_default();
    for word in ["std::fs", "Command::new(", "File::options"] {
        if code.contains(word) {
            return Some(word);
        }
    }
    // Types and flags of rustix are free, its functions are not.
    for (at, found) in code.match_indices("rustix::fs::") {
        let rest = &code[at + found.len()..];
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if rest[name.len()..].starts_with('(') && name.starts_with(char::is_lowercase) {
            return Some("a function of rustix::fs");
        }
    }
    None
}

#[test]
fn no_file_outside_the_port_reaches_the_disk_or_starts_a_program() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&top, &mut files);
    let mut wrong = Vec::new();
    let mut looked = 0;
    for file in files {
        let name = file.strip_prefix(&top).unwrap().to_str().unwrap().to_owned();
        if PORT.contains(&name.as_str()) || TESTS.iter().any(|t| name.starts_with(t)) {
            continue;
        }
        // Of two kinds of fcntl and one anonymous file nothing depends.
        if name.starts_with("process/") {
            continue;
        }
        looked += 1;
        let text = std::fs::read_to_string(&file).unwrap();
        // A file's own tests stand at its end.
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for (n, line) in code.lines().enumerate() {
            if let Some(word) = beside_the_port(line) {
                wrong.push(format!("{name}:{}: {word}", n + 1));
            }
        }
    }
    assert!(looked > 30, "only {looked} files");
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn what_is_looked_for_is_found() {
    assert_eq!(beside_the_port("use std::fs;"), Some("std::fs"));
    assert!(beside_the_port("rustix::fs::unlinkat(a, b, c)").is_some());
    assert!(beside_the_port("let c = Command::new(\"git\");").is_some());
    assert_eq!(beside_the_port("use rustix::fs::{Mode, OFlags};"), None);
    assert_eq!(beside_the_port("at::unlinkat(a, b) // std::fs"), None);
}
