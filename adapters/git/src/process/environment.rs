//! What git is told and not told about the world around it (W-32).

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use super::Run;

/// Configuration that could hide a change, start a program or wait for a person, overridden.
pub(super) const OVERRIDES: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.ignoreStat=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.fileMode=true",
    "core.pager=cat",
    "core.editor=true",
    "core.askPass=true",
    "core.quotePath=true",
    "core.sshCommand=ssh -oBatchMode=yes",
    "status.showUntrackedFiles=all",
    "status.relativePaths=false",
    "status.renames=false",
    "status.branch=false",
    "status.showStash=false",
    "status.submoduleSummary=false",
    "diff.ignoreSubmodules=none",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no",
    "branch.autoSetupMerge=false",
    "worktree.guessRemote=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "log.showSignature=false",
    "gc.auto=0",
    "gc.autoDetach=false",
    "maintenance.auto=false",
    "color.ui=false",
    "column.ui=never",
    "advice.detachedHead=false",
    // The repository may belong to another user; what may be done in it is decided by the
    // kernel and by the permissions of the file system.
    "safe.directory=*",
    "safe.bareRepository=all",
];

/// Where programs are looked for.
pub(super) fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}

/// Takes everything away and gives what is needed; the command's own additions come last.
pub(super) fn close_environment(command: &mut Command, dir: &Path, run: &Run<'_>) {
    command.env_clear().env("PATH", search_path());
    if let Some(tmp) = std::env::var_os("TMPDIR") {
        command.env("TMPDIR", tmp);
    }
    // What is not named is not looked for: discovery stops at the named directory (F18).
    if let Some(above) = dir.parent() {
        command.env("GIT_CEILING_DIRECTORIES", above);
    }
    command
        .env("HOME", "/dev/null")
        .env("LC_ALL", "C")
        // For every object that it packs git takes and gives back some 256 KiB; the C library
        // would hand them to the system and fetch them again each time.
        .env("MALLOC_TRIM_THRESHOLD_", "67108864")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_PAGER", "cat")
        .env("GIT_EDITOR", "true")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        // An inspection never waits for a network; a checkout that must fetch says so itself.
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_AUTHOR_NAME", "freehold")
        .env("GIT_AUTHOR_EMAIL", "freehold@localhost")
        .env("GIT_COMMITTER_NAME", "freehold")
        .env("GIT_COMMITTER_EMAIL", "freehold@localhost");
    if let Some(git_dir) = run.git_dir {
        command.env("GIT_DIR", git_dir);
    }
    if let Some(work_tree) = run.work_tree {
        command.env("GIT_WORK_TREE", work_tree);
    }
    for (name, value) in run.env {
        command.env(name, value);
    }
}
