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

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use freehold_kernel::Reason;
use freehold_store::workspaces::{Pulse, WorkspaceError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::error::{fail, io_fail, os_fail};

/// How long a git command may take unless it says otherwise.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// How often a running command looks at its limit and calls its pulse.
const TICK: Duration = Duration::from_millis(250);

/// Configuration that could hide a change, start a program or wait for a person, overridden.
const OVERRIDES: &[&str] = &[
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

/// The git program, its time limit, and the locks that its children inherit.
#[derive(Clone, Debug)]
pub(crate) struct Git {
    program: PathBuf,
    limit: Duration,
    held: Option<Arc<OwnedFd>>,
    registry: Option<Arc<OwnedFd>>,
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

/// How a command ended.
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
        Git { program, limit, held: None, registry: None }
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
        let child = command.spawn().map_err(|e| not_started(dir, &self.program, &e))?;
        let limit = run.limit.unwrap_or(self.limit);
        watch(dir, argv, child, limit, run.pulse.as_mut())
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
    let reason = if words.contains("No space left") || words.contains("quota exceeded") {
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
        "read git's text above; run the same command by hand to see more",
    )
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

fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}

fn close_environment(command: &mut Command, dir: &Path, run: &Run<'_>) {
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

/// Collects both outputs until the child ends, its time is up, or the pulse says stop. Whatever
/// is left of its process group then is ended too.
fn watch(
    dir: &Path,
    argv: &[OsString],
    mut child: Child,
    limit: Duration,
    mut pulse: Option<&mut Pulse<'_>>,
) -> Result<Output, WorkspaceError> {
    let mut out = child.stdout.take().map(|s| Stream::new(OwnedFd::from(s)));
    let mut err = child.stderr.take().map(|s| Stream::new(OwnedFd::from(s)));
    let started = Instant::now();
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let ended = pid.and_then(|p| pidfd_open(p, PidfdFlags::empty()).ok());
    let stopped = loop {
        if has_ended(ended.as_ref(), [out.as_ref(), err.as_ref()]) {
            break None;
        }
        for stream in [&mut out, &mut err].into_iter().flatten() {
            stream.drain();
        }
        if started.elapsed() >= limit {
            break Some(fail(
                Reason::TimedOut,
                dir,
                format!("git {} took longer than {} s", last(argv), limit.as_secs()),
                "the step is tried again; look for a slow disk or a waiting program",
            ));
        }
        if let Some(pulse) = pulse.as_mut()
            && !pulse()
        {
            break Some(fail(
                Reason::Contested,
                dir,
                "the right to this step was lost while git ran",
                "whoever holds it now goes on from what is there",
            ));
        }
    };
    // The child is not reaped yet, so the group's number cannot have been given to another.
    if let Some(pid) = pid {
        // Nobody left in the group is no error.
        let _nobody = kill_process_group(pid, Signal::KILL);
    }
    let status = child.wait().map_err(|e| io_fail(dir, "cannot wait for git", &e))?;
    if let Some(error) = stopped {
        return Err(error);
    }
    let collect = |stream: Option<Stream>| {
        stream.map_or_else(Vec::new, |mut s| {
            s.drain();
            s.bytes
        })
    };
    Ok(Output { status, stdout: collect(out), stderr: collect(err) })
}

/// Waits for output or for the end, at most one tick; true if the child has ended.
fn has_ended(ended: Option<&OwnedFd>, streams: [Option<&Stream>; 2]) -> bool {
    let mut fds: Vec<PollFd<'_>> = streams
        .into_iter()
        .flatten()
        .filter(|s| !s.at_end)
        .map(|s| PollFd::new(&s.fd, PollFlags::IN))
        .collect();
    if let Some(ended) = ended {
        fds.push(PollFd::new(ended, PollFlags::IN));
    }
    let tick = Timespec::try_from(TICK).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 250_000_000 });
    // An interrupted wait is a short tick.
    let _ready = poll(&mut fds, Some(&tick));
    match ended {
        Some(_) => fds.last().is_some_and(|p| !p.revents().is_empty()),
        // Without a descriptor for the process, its outputs tell; it must not be reaped here.
        None => streams.into_iter().flatten().all(|s| s.at_end),
    }
}

fn last(argv: &[OsString]) -> String {
    let mut skip = false;
    for arg in argv {
        if skip {
            skip = false;
        } else if arg == "-c" {
            skip = true;
        } else if !arg.as_bytes().starts_with(b"-") {
            return arg.to_string_lossy().into_owned();
        }
    }
    String::new()
}

/// One output pipe, read without blocking.
struct Stream {
    fd: File,
    bytes: Vec<u8>,
    at_end: bool,
}

impl Stream {
    fn new(fd: OwnedFd) -> Stream {
        // If this fails the reads block until the pipe closes, which the child's end brings.
        let _blocking = rustix::fs::fcntl_setfl(fd.as_fd(), rustix::fs::OFlags::NONBLOCK);
        Stream { fd: File::from(fd), bytes: Vec::new(), at_end: false }
    }

    /// Takes what is there now.
    fn drain(&mut self) {
        let mut buffer = [0u8; 65536];
        while !self.at_end {
            match self.fd.read(&mut buffer) {
                Ok(0) => self.at_end = true,
                Ok(n) => self.bytes.extend_from_slice(&buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_nothing_now) => return,
            }
        }
    }
}
