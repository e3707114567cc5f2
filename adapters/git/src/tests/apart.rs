//! Running a test of this binary again, as another user or with mounts of its own.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Set in the second run.
const APART: &str = "FREEHOLD_GIT_TEST_APART";

/// The user that CI's root becomes: nobody.
const NOBODY: u32 = 65534;

fn is_apart() -> bool {
    std::env::var_os(APART).is_some()
}

/// Runs it to its end; it must have run one test, and well.
fn run(mut command: Command, test: &str, cannot: &str) {
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(APART, "1");
    let output = command.output().unwrap_or_else(|e| panic!("{cannot}: {e}"));
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{test} apart from here: {cannot}:\n{said}");
    assert!(said.contains("test result: ok. 1 passed"), "{test} did not run:\n{said}");
}

/// Whether the test goes on here: as a user to whom permissions deny something. Root runs it
/// again as nobody, with a folder of nobody's for its files.
pub(super) fn as_a_person(test: &str) -> bool {
    if is_apart() || !rustix::process::geteuid().is_root() {
        return true;
    }
    let folder = tempfile::tempdir().unwrap();
    chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    // The binary may lie where nobody may not look.
    let binary = folder.path().join("tests");
    // Copied by another process: a file that any thread's fork still has open for writing cannot
    // be run.
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&binary).status();
    assert!(copied.unwrap().success());
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(&binary);
    command.uid(NOBODY).gid(NOBODY).current_dir("/").env("TMPDIR", folder.path());
    run(command, test, "dropping privileges failed");
    false
}

/// Whether the test goes on here: in a mount namespace of its own. The first run starts the
/// second one in it, and fails where that is forbidden.
pub(super) fn with_own_mounts(test: &str) -> bool {
    if is_apart() {
        return true;
    }
    let mut command = Command::new("unshare");
    if rustix::process::geteuid().is_root() {
        command.args(["--mount", "--propagation", "private", "--"]);
    } else {
        command.args(["--map-root-user", "--mount", "--propagation", "private", "--"]);
    }
    command.arg(std::env::current_exe().unwrap());
    run(command, test, "a mount namespace of its own is needed here, and may be forbidden");
    false
}

/// Mounts a memory file system of so many KiB.
pub(super) fn mount_memory(at: &std::path::Path, kib: u64) {
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", &format!("size={kib}k,mode=755"), "tmpfs"]).arg(at);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "a small memory file system cannot be mounted here: {said}");
}

/// Takes a mount away.
pub(super) fn unmount(at: &std::path::Path) {
    assert!(Command::new("umount").arg(at).status().unwrap().success());
}
