//! Running the git program with a closed environment (W-32).
//!
//! Nothing of the caller's environment reaches git but `PATH` and `TMPDIR`; no hook, prompt,
//! pager, editor or background maintenance runs; configuration that could hide a change is
//! overridden on the command line, which wins over every file. A repository is only ever looked
//! for in the very directory that was named, never above it (F18).
//!
//! A step's path lock (W-13) is passed to git and to everything that git starts, and to nothing
//! else that the host may start meanwhile: it is closed on exec in this process and handed over
//! on purpose. That takes a shell, because the standard library can only hand over descriptors 0
//! to 2: the lock goes as 0, the shell moves it to 9, puts the input in its place and becomes git.

#![allow(clippy::disallowed_methods, reason = "this is the port to git")]

mod environment;
mod watch;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use freehold_kernel::Reason;
use freehold_store::workspaces::{Pulse, WorkspaceError};

use crate::disk::at;
use crate::error::{fail, io_fail, os_fail};
use crate::faults::{self, Call, CallKind};
use environment::{OVERRIDES, close_environment, search_path};
use watch::watch;

/// How long a git command may take unless it says otherwise.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// The git program, its time limit, and the locks that its children inherit.
#[derive(Clone, Debug)]
pub(crate) struct Git {
    program: PathBuf,
    limit: Duration,
    held: Option<Arc<OwnedFd>>,
    registry: Option<Arc<OwnedFd>>,
    rebuildable: Arc<[String]>,
}

/// What a command reads as its standard input.
#[derive(Debug, Default)]
pub(crate) enum Input<'a> {
    /// Nothing: end of file at once.
    #[default]
    Closed,
    /// These bytes.
    Bytes(&'a [u8]),
    /// This file from its beginning.
    File(&'a File),
}

/// What differs from one command to the next.
#[derive(Default)]
pub(crate) struct Run<'a> {
    /// The standard input.
    pub(crate) stdin: Input<'a>,
    /// Where the standard output goes; none collects it in memory.
    pub(crate) stdout: Option<&'a File>,
    /// The repository, named outright: nothing is searched for.
    pub(crate) git_dir: Option<&'a Path>,
    /// The work tree that belongs to it; overrides whatever its configuration says.
    pub(crate) work_tree: Option<&'a Path>,
    /// Further environment, set last.
    pub(crate) env: &'a [(&'a str, &'a OsStr)],
    /// Further `-c name=value` pairs, after the fixed ones.
    pub(crate) config: &'a [&'a str],
    /// Another limit than the program's own.
    pub(crate) limit: Option<Duration>,
    /// Called about every 250 ms; a false answer ends the command.
    pub(crate) pulse: Option<Pulse<'a>>,
}

/// How a command ended: by itself, never by a signal.
#[derive(Debug)]
pub(crate) struct Output {
    /// Its exit status.
    pub(crate) status: ExitStatus,
    /// Its standard output; empty if it went to a file.
    pub(crate) stdout: Vec<u8>,
    /// Its standard error.
    pub(crate) stderr: Vec<u8>,
}

impl Output {
    /// What git said, as one line.
    pub(crate) fn words(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        if lines.is_empty() { format!("git ended with {}", self.status) } else { lines.join("; ") }
    }

    /// The standard output without its last line break, as text.
    pub(crate) fn line(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end_matches('\n').to_owned()
    }
}

impl Git {
    /// The git program that stands in `PATH`.
    pub(crate) fn new() -> Git {
        Git::with(PathBuf::from("git"), LIMIT)
    }

    /// This program, with this limit for each command.
    pub(crate) fn with(program: PathBuf, limit: Duration) -> Git {
        Git { program, limit, held: None, registry: None, rebuildable: Arc::new([]) }
    }

    /// The same program for a host that declared these patterns (W-33).
    pub(crate) fn declaring(&self, patterns: &[&str]) -> Git {
        Git { rebuildable: patterns.iter().map(|p| (*p).to_owned()).collect(), ..self.clone() }
    }

    /// What the host declared rebuildable.
    pub(crate) fn rebuildable(&self) -> &[String] {
        &self.rebuildable
    }

    /// The same program; every child inherits this lock (W-13).
    pub(crate) fn holding(&self, lock: Arc<OwnedFd>) -> Git {
        Git { held: Some(lock), ..self.clone() }
    }

    /// The same program for a change of the registry (W-12): its children keep the registry lock
    /// even if this process dies. What they print goes to the standard error.
    pub(crate) fn changing(&self, registry: Arc<OwnedFd>) -> Git {
        Git { registry: Some(registry), ..self.clone() }
    }

    /// Runs git in a directory and returns how it ended, whatever that is.
    ///
    /// # Errors
    /// If git cannot be started, takes too long, or the pulse says stop.
    pub(crate) fn run<A: AsRef<OsStr>>(
        &self,
        dir: &Path,
        args: &[A],
        mut run: Run<'_>,
    ) -> Result<Output, WorkspaceError> {
        let program = self.find(dir)?;
        let mut argv: Vec<OsString> = vec!["--no-pager".into()];
        for pair in OVERRIDES.iter().chain(run.config) {
            argv.push("-c".into());
            argv.push((*pair).into());
        }
        argv.extend(args.iter().map(|a| a.as_ref().to_os_string()));

        let input = self.input(dir, &run.stdin)?;
        let command = match &self.held {
            None => {
                let mut command = Command::new(&program);
                command.stdin(match input {
                    Some(file) => Stdio::from(file),
                    None => Stdio::null(),
                });
                command
            }
            Some(held) => {
                let lock =
                    held.try_clone().map_err(|e| io_fail(dir, "cannot hand over the lock", &e))?;
                let source = match &input {
                    Some(file) => {
                        format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
                    }
                    None => "/dev/null".to_owned(),
                };
                let mut command = Command::new("/bin/sh");
                let script = match self.registry {
                    None => "exec 9<&0 <\"$0\"; exec \"$@\"",
                    Some(_) => "exec 9<&0 8>&1 <\"$0\" 1>&2; exec \"$@\"",
                };
                command.args(["-c", script, &source]).arg(&program);
                command.stdin(Stdio::from(lock));
                // The file must stay open until the shell has opened it by its name.
                return self.finish(dir, command, &argv, &mut run, input);
            }
        };
        self.finish(dir, command, &argv, &mut run, None)
    }

    /// Runs git and refuses if it did not end well; git's own text is the sentence.
    ///
    /// # Errors
    /// As [`Git::run`], and if git says no.
    pub(crate) fn ok<A: AsRef<OsStr>>(
        &self,
        dir: &Path,
        args: &[A],
        run: Run<'_>,
    ) -> Result<Output, WorkspaceError> {
        let output = self.run(dir, args, run)?;
        if output.status.success() { Ok(output) } else { Err(said_no(dir, args, &output)) }
    }

    fn finish(
        &self,
        dir: &Path,
        mut command: Command,
        argv: &[OsString],
        run: &mut Run<'_>,
        _input: Option<File>,
    ) -> Result<Output, WorkspaceError> {
        close_environment(&mut command, dir, run);
        command.args(argv).current_dir(dir).process_group(0).stderr(Stdio::piped());
        let registry = self.held.as_ref().and(self.registry.as_ref());
        command.stdout(match (registry, run.stdout) {
            (Some(lock), _) => Stdio::from(
                lock.try_clone().map_err(|e| io_fail(dir, "cannot hand over the lock", &e))?,
            ),
            (None, None) => Stdio::piped(),
            (None, Some(file)) => Stdio::from(
                file.try_clone().map_err(|e| io_fail(dir, "cannot write to a file", &e))?,
            ),
        });
        let limit = run.limit.unwrap_or(self.limit);
        let name = watch::last(argv);
        let faults = faults::here();
        let call = Call { kind: CallKind::Command, name: &name, path: dir };
        if let Some(errno) = faults.as_ref().and_then(|f| f.before(&call)) {
            return Err(not_started(dir, &self.program, &io::Error::from_raw_os_error(errno)));
        }
        let child = command.spawn().map_err(|e| not_started(dir, &self.program, &e))?;
        if let Some(faults) = &faults {
            faults.started(&call, child.id());
        }
        let done = watch(dir, argv, child, limit, run.pulse.as_mut());
        if let Some(errno) = faults.and_then(|f| f.after(&call)) {
            let error = io::Error::from_raw_os_error(errno);
            return Err(io_fail(dir, &format!("cannot read what git {name} said"), &error));
        }
        let output = done?;
        match output.status.signal() {
            None => Ok(output),
            // It gave no answer; a question that it was asked stays open.
            Some(signal) => Err(fail(
                Reason::Io,
                dir,
                format!("git {name} was ended by signal {signal}"),
                "the step is tried again; look what ends processes on this machine",
            )),
        }
    }

    /// The program as an absolute path: the closed environment and the shell must not decide.
    fn find(&self, dir: &Path) -> Result<PathBuf, WorkspaceError> {
        if self.program.as_os_str().as_bytes().contains(&b'/') {
            return Ok(self.program.clone());
        }
        let path = search_path();
        std::env::split_paths(&path)
            .filter(|p| p.is_absolute())
            .map(|p| p.join(&self.program))
            .find(|p| p.is_file())
            .ok_or_else(|| {
                not_started(dir, &self.program, &io::Error::from(io::ErrorKind::NotFound))
            })
    }

    /// Input as a file that a child can open: bytes go into memory that has a descriptor.
    fn input(&self, dir: &Path, input: &Input<'_>) -> Result<Option<File>, WorkspaceError> {
        let with = |e: io::Error| io_fail(dir, "cannot hand git its input", &e);
        let mut file = match input {
            Input::Closed => return Ok(None),
            Input::Bytes(bytes) => {
                let fd = rustix::fs::memfd_create("freehold-in", rustix::fs::MemfdFlags::CLOEXEC)
                    .map_err(|e| os_fail(dir, "cannot hand git its input", e))?;
                let mut file = File::from(fd);
                file.write_all(bytes).map_err(with)?;
                file
            }
            Input::File(file) => file.try_clone().map_err(with)?,
        };
        file.rewind().map_err(with)?;
        Ok(Some(file))
    }
}

/// A command that git refused, in git's words.
pub(crate) fn said_no<A: AsRef<OsStr>>(dir: &Path, args: &[A], output: &Output) -> WorkspaceError {
    let words = output.words();
    let reason = if ["No space left", "Out of diskspace", "quota exceeded"]
        .iter()
        .any(|w| words.contains(w))
    {
        Reason::DiskFull
    } else if words.contains("write") && is_full(dir) {
        // Git often names the file that it could not write and not why.
        Reason::DiskFull
    } else if words.contains("Permission denied") || words.contains("Read-only file system") {
        Reason::Permission
    } else {
        Reason::Io
    };
    let name = args
        .iter()
        .map(AsRef::as_ref)
        .find(|a| !a.as_bytes().starts_with(b"-"))
        .map(|a| a.to_string_lossy().into_owned())
        .unwrap_or_default();
    fail(
        reason,
        dir,
        format!("git {name} said no: {words}"),
        match reason {
            Reason::DiskFull => "free some space on this disk; the step is tried again",
            _other => "read git's text above; run the same command by hand to see more",
        },
    )
}

/// Space below which a write that git could not do is taken for a full disk, in bytes.
const SCARCE: u64 = 1 << 20;

fn is_full(dir: &Path) -> bool {
    at::statvfs(dir).is_ok_and(|left| {
        left.f_bavail.saturating_mul(left.f_frsize) < SCARCE
            || (left.f_files > 0 && left.f_favail == 0)
    })
}

fn not_started(dir: &Path, program: &Path, error: &io::Error) -> WorkspaceError {
    if error.kind() == io::ErrorKind::NotFound && dir.is_dir() {
        return fail(
            Reason::Io,
            dir,
            format!("the program {} is not there, so nothing can be inspected", program.display()),
            "install git 2.36 or newer, or put it into PATH",
        );
    }
    io_fail(dir, "cannot start git here", error)
}
