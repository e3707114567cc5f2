//! Beginning a program: its process is made, recorded, and only then let go (S-14).
//!
//! The process first is a shell that waits for one word on its standard input. Its number, its
//! start and its token go into the handle's row while it waits, and the word is said once that is
//! durable. If this process dies before, the input ends and the shell with it: there is no moment
//! at which the program runs and no row knows its process.
//!
//! The shell stands in a session of its own (`setsid` becomes it without another process), so the
//! number of the process is that of its session and first group too.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use freehold_store::runtimes::{Held, StartFailed};

use crate::birth::{Birth, VARIABLE, fresh_token, own_variables};
use crate::error::StartError;
use crate::place::Place;
use crate::table::Table;

/// Where `setsid` is looked for.
const SETSID: &[&str] = &["/usr/bin/setsid", "/bin/setsid"];

const SHELL: &str = "/bin/sh";

/// The word that lets go.
const WORD: &[u8] = b"begin\n";

/// Waits for the word, goes to the folder and becomes the program. It stands nowhere in the
/// meantime, so that it is in nobody's way.
const GATE: &str = "IFS= read -r word && [ \"$word\" = begin ] || exit 125
cd -- \"$1\" || exit 125
unset OLDPWD word
shift
exec \"$@\"";

/// Where an output of the program goes. Never where this process's own goes.
#[derive(Debug, Default)]
pub enum Sink {
    /// Nowhere.
    #[default]
    Nowhere,
    /// To [`Running`], to be read there. A pipe that nobody reads stops its writer.
    Pipe,
    /// To this file.
    File(File),
}

impl Sink {
    fn stdio(self) -> Stdio {
        match self {
            Sink::Nowhere => Stdio::null(),
            Sink::Pipe => Stdio::piped(),
            Sink::File(file) => Stdio::from(file),
        }
    }
}

/// A program to be run as a runtime.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    args: Vec<OsString>,
    folder: PathBuf,
    environment: BTreeMap<OsString, OsString>,
    speaks: bool,
    stdout: Sink,
    stderr: Sink,
}

impl Program {
    /// A program by its absolute path, to stand in this folder: the worktree. Its environment is
    /// empty, its input at its end, its outputs go nowhere.
    pub fn new(path: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Program {
        Program {
            path: path.into(),
            args: Vec::new(),
            folder: folder.into(),
            environment: BTreeMap::new(),
            speaks: false,
            stdout: Sink::Nowhere,
            stderr: Sink::Nowhere,
        }
    }

    /// With a further argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Program {
        self.args.push(arg.into());
        self
    }

    /// With an entry in its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Program {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// With what this process has in its own environment; but for names that a shell does not
    /// hand on, such as functions exported by another shell.
    #[must_use]
    pub fn own_env(mut self) -> Program {
        for (name, value) in std::env::vars_os().filter(|(name, _)| is_name(name)) {
            self.environment.entry(name).or_insert(value);
        }
        self
    }

    /// With an input that [`Running::stdin`] writes.
    #[must_use]
    pub fn spoken_to(mut self) -> Program {
        self.speaks = true;
        self
    }

    /// With these outputs.
    #[must_use]
    pub fn outputs(mut self, stdout: Sink, stderr: Sink) -> Program {
        (self.stdout, self.stderr) = (stdout, stderr);
        self
    }

    fn fit(&self) -> Result<(), StartError> {
        let unfit =
            |what, path: &Path, help| Err(StartError::Unfit { what, path: path.to_owned(), help });
        let help = "name an absolute path of a file that this user may run";
        if !self.path.is_absolute() {
            return unfit("the program's path is not absolute", &self.path, help);
        }
        match fs::metadata(&self.path) {
            Ok(meta) if meta.is_file() && meta.permissions().mode() & 0o111 != 0 => {}
            Ok(_) => return unfit("this is no program", &self.path, help),
            Err(_) => return unfit("there is no such program", &self.path, help),
        }
        if !self.folder.is_absolute() || !self.folder.is_dir() {
            let help = "name the absolute path of a folder, such as a worktree";
            return unfit("there is no such folder to stand in", &self.folder, help);
        }
        match self.environment.keys().find(|name| !is_name(name)) {
            Some(name) => Err(StartError::Name { name: name.to_string_lossy().into_owned() }),
            None => Ok(()),
        }
    }
}

fn is_name(name: &OsStr) -> bool {
    let ok = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.to_str()
        .is_some_and(|n| n.chars().all(ok) && n.chars().next().is_some_and(|c| !c.is_ascii_digit()))
}

/// A child of this process that was not asked yet how it ended.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) pid: u32,
    pub(crate) child: Mutex<Child>,
}

impl Kept {
    /// How it ended; none while it has not, or while a stop still holds it.
    pub(crate) fn ended(&self) -> Option<ExitStatus> {
        match self.child.try_lock() {
            Ok(mut child) => child.try_wait().ok().flatten(),
            Err(TryLockError::Poisoned(child)) => child.into_inner().try_wait().ok().flatten(),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A process that waits for the word to begin. Dropped, it ends and nothing has run.
#[derive(Debug)]
pub struct Waiting {
    birth: Birth,
    speaks: bool,
    kept: Arc<Kept>,
    stdin: Option<ChildStdin>,
    begun: bool,
}

/// A program that runs. Dropping this lets it run on.
#[derive(Debug)]
pub struct Running {
    /// Its process, which is its session's and first group's number too.
    pub pid: u32,
    /// Its input, if it is spoken to.
    pub stdin: Option<ChildStdin>,
    /// Its output, if it is a pipe.
    pub stdout: Option<ChildStdout>,
    /// Its error output, if it is a pipe.
    pub stderr: Option<ChildStderr>,
    kept: Arc<Kept>,
}

impl Running {
    /// How its first process ended; none if it has not, or is being stopped at this moment.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.kept.ended()
    }
}

/// Makes the process. It waits.
pub(crate) fn prepare(
    program: Program,
    place: &Place,
    table: &Table,
) -> Result<Waiting, StartError> {
    program.fit()?;
    let setsid = SETSID.iter().map(Path::new).find(|p| p.is_file());
    let setsid = setsid.ok_or_else(|| StartError::Unfit {
        what: "the program setsid is not there",
        path: PathBuf::from("/usr/bin/setsid"),
        help: "install util-linux or busybox",
    })?;
    let token = fresh_token();
    let system = |what| move |error| StartError::System { what, error };
    // What is never spoken to reads the end of its input at once, not the rest of the gate's.
    let gate = if program.speaks { GATE.to_owned() } else { format!("{GATE} </dev/null") };
    let mut child = Command::new(setsid)
        .args([SHELL, "-c", &gate, "freehold-runtime"])
        .arg(&program.folder)
        .arg(&program.path)
        .args(&program.args)
        .env_clear()
        .envs(&program.environment)
        .envs(own_variables().into_iter().map(|name| (name, "1")))
        .env(format!("{VARIABLE}{token}"), "1")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(program.stdout.stdio())
        .stderr(program.stderr.stdio())
        .spawn()
        .map_err(system("a process cannot be made"))?;
    let (pid, stdin) = (child.id(), child.stdin.take());
    let kept = Arc::new(Kept { pid, child: Mutex::new(child) });
    let birth = Birth { pid, ticks: 0, place: place.clone(), token };
    // From here on it ends with this value, whatever fails.
    let mut waiting = Waiting { birth, speaks: program.speaks, kept, stdin, begun: false };
    let stat = table.stat(pid).map_err(system("the new process cannot be looked at"))?;
    let Some(stat) = stat else {
        return Err(StartError::NoPlace("a new process is not shown in /proc".to_owned()));
    };
    waiting.birth.ticks = stat.id.ticks;
    Ok(waiting)
}

impl Waiting {
    /// The number of the process that waits.
    pub fn pid(&self) -> u32 {
        self.kept.pid
    }

    pub(crate) fn kept(&self) -> &Arc<Kept> {
        &self.kept
    }
}

impl Held for Waiting {
    type Running = Running;

    fn texts(&self) -> Vec<(&'static str, String)> {
        self.birth.texts()
    }

    fn begin(mut self) -> Result<Running, StartFailed> {
        let failed = |detail: String| StartFailed { detail };
        let Some(mut stdin) = self.stdin.take() else {
            return Err(failed("the process has no input".to_owned()));
        };
        stdin
            .write_all(WORD)
            .map_err(|e| failed(format!("process {} ended before it began: {e}", self.pid())))?;
        self.begun = true;
        let (stdout, stderr) = {
            let mut child = self.kept.child.lock().unwrap_or_else(PoisonError::into_inner);
            (child.stdout.take(), child.stderr.take())
        };
        Ok(Running {
            pid: self.kept.pid,
            stdin: self.speaks.then_some(stdin),
            stdout,
            stderr,
            kept: Arc::clone(&self.kept),
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.begun {
            // Its input ends now; it is a child that nobody has asked for, so its number is its own.
            drop(self.stdin.take());
            let mut child = self.kept.child.lock().unwrap_or_else(PoisonError::into_inner);
            let _already = child.kill();
            let _status = child.wait();
        }
    }
}
