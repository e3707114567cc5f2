//! Failures in words: which reason a failed call has, and what would help (C-9).

use std::io;
use std::path::Path;

use freehold_kernel::Reason;
use freehold_store::workspaces::WorkspaceError;

/// A failure with everything spelled out.
pub(crate) fn fail(
    reason: Reason,
    path: &Path,
    detail: impl Into<String>,
    help: impl Into<String>,
) -> WorkspaceError {
    WorkspaceError { reason, path: path.to_path_buf(), detail: detail.into(), help: help.into() }
}

/// A failed system call; `what` says what was being done, as "cannot open the folder".
pub(crate) fn io_fail(path: &Path, what: &str, error: &io::Error) -> WorkspaceError {
    let reason = reason_of(error);
    let help = match reason {
        Reason::DiskFull => "free some space on this disk; the step is tried again",
        Reason::Permission => "give this user access to the path, then retry",
        _other => "the step is tried again; look at the path if it keeps failing",
    };
    fail(reason, path, format!("{what}: {error}"), help)
}

/// The same for calls made through rustix.
pub(crate) fn os_fail(path: &Path, what: &str, error: rustix::io::Errno) -> WorkspaceError {
    io_fail(path, what, &io::Error::from(error))
}

/// Which reason an operating-system error is.
pub(crate) fn reason_of(error: &io::Error) -> Reason {
    use rustix::io::Errno;
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSPC | Errno::DQUOT) => Reason::DiskFull,
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Reason::Permission,
        Some(Errno::XDEV) => Reason::MountPoint,
        Some(Errno::BUSY | Errno::TXTBSY) => Reason::InUse,
        _other => Reason::Io,
    }
}

/// A path as one printable line: control characters, quotes and bytes that are no text escaped,
/// so that a file's name can never forge a second line.
pub(crate) fn show(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    show_bytes(path.as_os_str().as_bytes())
}

/// The same for a path as git prints it.
pub(crate) fn show_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => {
                    out.push('\\');
                    out.push(c);
                }
                c if c.is_control() => out.extend(c.escape_default()),
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_line() {
        assert_eq!(show_bytes(b"a\nb\"\xff"), "\"a\\nb\\\"\\xff\"");
        assert_eq!(show_bytes("gr\u{fc}n".as_bytes()), "\"gr\u{fc}n\"");
    }
}
