//! What commands on a store share: an instance on it, its roots, and command lines for a shell
//!

use freehold_git::GitWorkspaces;
use freehold_kernel::{Kind, Row, RowKey};
use freehold_store::names::uuid_text;
use freehold_store::workspaces::RootPlace;
use freehold_store::{Drive, Host, NoRuntimes, OnThisThread, Rows, Store};

use crate::failure::Failure;
use crate::machine::machine_name;
use crate::place::{OpenStore, StorePlace};

/// An instance of this machine on a store that is there.
pub(crate) fn host(place: &StorePlace) -> Result<Host<OpenStore, GitWorkspaces>, Failure> {
    let (store, git) = (place.open()?, GitWorkspaces::new());
    Ok(Host::start(store, git, OnThisThread, Box::new(NoRuntimes), &machine_name())?)
}

/// Waits for a store that is only read.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    OnThisThread.wait(future)
}

/// Every managed root that the rows name, with the machine that serves it.
pub(crate) fn roots(store: &impl Store, rows: &Rows) -> Result<Vec<(RootPlace, String)>, Failure> {
    let store = wait(store.id())?;
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

/// The next command of this program on the same store. It holds no password.
pub(crate) fn next(words: &[&str], place: &StorePlace) -> String {
    let store = place.words();
    let store = store.iter().map(|word| quoted(&word.to_string_lossy()));
    let words: Vec<String> = words.iter().map(|word| quoted(word)).chain(store).collect();
    format!("freehold {}", words.join(" "))
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
