//! Files that this user may not write. The suite may run as root, whom nothing is denied: each
//! check runs in a child process that is nobody.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use freehold_sqlite::{Options, Sqlite};
use freehold_store::StoreError;
use tempfile::TempDir;

use crate::host::child;

const VARIABLE: &str = "FREEHOLD_TEST_RIGHTS";
const NOBODY: u32 = 65534;

/// Opens the store and prints what came of it.
#[test]
fn child_opens() {
    let Some(path) = std::env::var_os(VARIABLE) else { return };
    let said = match Sqlite::open(Path::new(&path), Options::default()) {
        Ok(_) => "opened".to_owned(),
        Err(StoreError::ReadOnly { path }) => format!("read-only {path}"),
        Err(error) => format!("other {error:?}"),
    };
    println!("\nSAID {said}");
}

fn nobody_opens(path: &Path) -> String {
    // The test binary may lie where nobody may look.
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
    let binary = place.path().join("tests");
    // Copied by another process: a file that this one has open for writing is inherited by
    // whatever another test starts at this moment, and then cannot be executed.
    let mut copy = std::process::Command::new("cp");
    let copied = copy.arg(std::env::current_exe().unwrap()).arg(&binary).status().unwrap();
    assert!(copied.success());
    std::fs::set_permissions(&binary, Permissions::from_mode(0o755)).unwrap();
    let mut command = child(&binary, "rights::child_opens", VARIABLE, path);
    command.current_dir("/");
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let said = text.lines().find_map(|line| line.strip_prefix("SAID "));
    said.unwrap_or_else(|| panic!("{text}\n{}", String::from_utf8_lossy(&output.stderr))).to_owned()
}

fn store() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    drop(Sqlite::open(&folder.path().join("store.db"), Options::default()).unwrap());
    folder
}

fn allow(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_read_only_file_is_refused() {
    let folder = store();
    let path = folder.path().join("store.db");
    allow(folder.path(), 0o777);
    allow(&path, 0o444);
    assert_eq!(nobody_opens(&path), format!("read-only {}", path.display()));
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "the refusal left files behind");
    // The check can fail: with the right to write it is opened.
    allow(&path, 0o666);
    assert_eq!(nobody_opens(&path), "opened");
}

#[test]
fn a_read_only_file_in_a_read_only_folder_is_refused() {
    let folder = store();
    let path = folder.path().join("store.db");
    allow(&path, 0o444);
    allow(folder.path(), 0o555);
    assert_eq!(nobody_opens(&path), format!("read-only {}", path.display()));
    allow(folder.path(), 0o755);
}

#[test]
fn a_writable_file_in_a_read_only_folder_is_refused() {
    // SQLite needs to make files beside it.
    let folder = store();
    let path = folder.path().join("store.db");
    allow(&path, 0o666);
    allow(folder.path(), 0o555);
    assert_eq!(nobody_opens(&path), format!("read-only {}", path.display()));
    allow(folder.path(), 0o755);
}

#[test]
fn a_file_that_may_not_even_be_read_is_refused_too() {
    let folder = store();
    let path = folder.path().join("store.db");
    allow(folder.path(), 0o777);
    allow(&path, 0o000);
    assert_eq!(nobody_opens(&path), format!("read-only {}", path.display()));
    // Written, but not read.
    allow(&path, 0o222);
    let said = nobody_opens(&path);
    assert!(said.starts_with("other Unavailable"), "{said}");
    allow(&path, 0o600);
}

#[test]
fn a_fresh_store_cannot_be_made_in_a_read_only_folder() {
    let folder = tempfile::tempdir().unwrap();
    allow(folder.path(), 0o555);
    let path = folder.path().join("store.db");
    assert_eq!(nobody_opens(&path), format!("read-only {}", path.display()));
    assert!(!path.exists());
    allow(folder.path(), 0o755);
}
