//! Waiting for a program that writes two outputs, may take too long, and may lose its right.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use freehold_kernel::Reason;
use freehold_store::workspaces::{Pulse, WorkspaceError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::Output;
use crate::error::{fail, io_fail};

/// How often a running command looks at its limit and calls its pulse.
const TICK: Duration = Duration::from_millis(250);

/// Collects both outputs until the child ends, its time is up, or the pulse says stop. Whatever
/// is left of its process group then is ended too.
pub(super) fn watch(
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

pub(super) fn last(argv: &[OsString]) -> String {
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
