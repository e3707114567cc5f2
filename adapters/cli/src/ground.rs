//! What commands on a store share: opening it, its roots, and command lines for a shell.

use std::path::Path;

use freehold_git::GitWorkspaces;
use freehold_kernel::{Kind, Row, RowKey};
use freehold_sqlite::{Options, Sqlite};
use freehold_store::names::uuid_text;
use freehold_store::workspaces::RootPlace;
use freehold_store::{Drive, Host, HostError, NoRuntimes, OnThisThread, Rows, Store};

use crate::failure::Failure;
use crate::machine::machine_name;

/// Opens a store that is there.
pub(crate) fn open(store: &Path) -> Result<Sqlite, Failure> {
    if !store.exists() {
        let folder = store.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        return Err(Failure::Host(HostError::NotThere {
            what: "store",
            id: store.display().to_string(),
            help: "give the path of a store's file",
        })
        .then(format!("ls -l {}", quoted(&folder.display().to_string()))));
    }
    Ok(Sqlite::open(store, Options::default())?)
}

/// An instance of this machine on a store that is there.
pub(crate) fn host(store: &Path) -> Result<Host<Sqlite, GitWorkspaces>, Failure> {
    let (sqlite, git) = (open(store)?, GitWorkspaces::new());
    Ok(Host::start(sqlite, git, OnThisThread, Box::new(NoRuntimes), &machine_name())?)
}

/// Waits for a store that is only read.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    OnThisThread.wait(future)
}

/// Every managed root that the rows name, with the machine that serves it.
pub(crate) fn roots(sqlite: &Sqlite, rows: &Rows) -> Result<Vec<(RootPlace, String)>, Failure> {
    let store = wait(sqlite.id())?;
    let mut found = Vec::new();
    for row in rows.view.managed_roots.iter() {
        let place = RootPlace {
            id: row.id,
            name: uuid_text(row.id.0),
            path: rows.names.text(Kind::PathId, row.path.0)?.into(),
            marker: content(rows, &row.row_key(), "marker"),
            store: store.clone(),
        };
        found.push((place, rows.names.text(Kind::HostId, row.host.0)?));
    }
    Ok(found)
}

/// A text beside a row's facts; empty if there is none.
pub(crate) fn content(rows: &Rows, key: &RowKey, column: &str) -> String {
    rows.contents.get(key).and_then(|c| c.get(column)).cloned().flatten().unwrap_or_default()
}

/// A word as a shell reads it back.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The next command of this program on the same store.
pub(crate) fn next(words: &[&str], store: &Path) -> String {
    let words: Vec<String> = words.iter().map(|w| quoted(w)).collect();
    format!("freehold {} --store {}", words.join(" "), quoted(&store.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_a_quoted_word_back() {
        for word in ["plain", "", "two words", "it's", "$HOME;`x`", "a\nb", "\\", "*"] {
            let line = format!("printf %s {}", quoted(word));
            let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word, "{line}");
        }
    }
}
