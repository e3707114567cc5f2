//! The worktree that is read or written: where its parts are, proven both ways before anything
//! is asked of it (W-31), and git commands that name it outright (W-32).

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use freehold_kernel::Reason;
use freehold_store::workspaces::{Place, Pulse, WorkspaceError};

use super::hash::Format;
use super::scan::open_top;
use crate::disk::{self as fs, File};
use crate::error::{fail, io_fail};
use crate::identity::{Proof, prove};
use crate::process::{Git, Input, Run, said_no};
use crate::rebuildable::Rebuildable;
use crate::refs::{self, Change};
use crate::settings::Settings;

/// How long one git command of a salvage may take: packing gigabytes is slow on a slow disk. The
/// pulse ends it earlier if the right is lost.
const LONG: Duration = Duration::from_secs(3600);

/// The caller's pulse (W-13), counted.
pub(crate) struct Beat<'p> {
    pulse: Pulse<'p>,
    path: PathBuf,
    count: u32,
}

impl<'p> Beat<'p> {
    /// For a step at this path.
    pub(crate) fn new(pulse: Pulse<'p>, path: &Path) -> Beat<'p> {
        Beat { pulse, path: path.to_path_buf(), count: 0 }
    }

    /// After every entry; the caller is asked every hundredth time.
    pub(crate) fn tick(&mut self) -> Result<(), WorkspaceError> {
        self.count = self.count.wrapping_add(1);
        if self.count.is_multiple_of(100) { self.now() } else { Ok(()) }
    }

    /// Asks the caller now.
    pub(crate) fn now(&mut self) -> Result<(), WorkspaceError> {
        if (self.pulse)() {
            return Ok(());
        }
        Err(fail(
            Reason::Contested,
            &self.path,
            "the right to this step was lost during the salvage",
            "whoever holds it now goes on from what is there",
        ))
    }
}

/// A worktree, proven, and how to ask git about it.
pub(crate) struct Seat<'a> {
    git: &'a Git,
    /// Its work tree.
    pub(crate) work: PathBuf,
    /// The same, opened.
    pub(crate) top: OwnedFd,
    /// Its administration directory.
    pub(crate) admin: PathBuf,
    /// Where its repository keeps its objects.
    pub(crate) objects: PathBuf,
    /// How its repository names objects.
    pub(crate) format: Format,
}

impl<'a> Seat<'a> {
    /// The worktree at its place.
    pub(crate) fn of(git: &'a Git, place: &Place) -> Result<Seat<'a>, WorkspaceError> {
        Seat::with(git, &place.path, prove(place)?)
    }

    /// The worktree that is proven, wherever its directory lies now.
    pub(crate) fn with(
        git: &'a Git,
        work: &Path,
        proof: Proof,
    ) -> Result<Seat<'a>, WorkspaceError> {
        let run = Run { git_dir: Some(&proof.admin), ..Run::default() };
        let asked = git.ok(&proof.admin, &["rev-parse", "--show-object-format"], run)?;
        let format = Format::from_name(&asked.line()).ok_or_else(|| {
            fail(
                Reason::Io,
                work,
                format!("the repository has the unknown object format {:?}", asked.line()),
                "this version salvages sha1 and sha256 repositories",
            )
        })?;
        Ok(Seat {
            git,
            work: work.to_path_buf(),
            top: open_top(work)?,
            admin: proof.admin,
            objects: proof.common.join("objects"),
            format,
        })
    }

    /// Runs git on this worktree and returns its output; git must end well.
    pub(crate) fn ask(
        &self,
        args: &[&str],
        stdin: &[u8],
        env: &[(&str, &OsStr)],
        beat: &mut Beat<'_>,
    ) -> Result<Vec<u8>, WorkspaceError> {
        self.pipe(args, Pipe { stdin: Input::Bytes(stdin), env, ..Pipe::default() }, beat)
    }

    /// The same with its inputs and outputs spelled out.
    pub(crate) fn pipe(
        &self,
        args: &[&str],
        pipe: Pipe<'_>,
        beat: &mut Beat<'_>,
    ) -> Result<Vec<u8>, WorkspaceError> {
        let run = Run {
            stdin: pipe.stdin,
            stdout: pipe.stdout.map(File::inner),
            git_dir: Some(&self.admin),
            work_tree: Some(&self.work),
            env: pipe.env,
            config: pipe.config,
            limit: Some(LONG),
            pulse: Some(&mut *beat.pulse),
        };
        Ok(self.git.ok(&self.work, args, run)?.stdout)
    }

    /// The same for a question whose answer may be no.
    pub(crate) fn ask_if(
        &self,
        args: &[&str],
        beat: &mut Beat<'_>,
    ) -> Result<Option<String>, WorkspaceError> {
        let run = Run {
            git_dir: Some(&self.admin),
            work_tree: Some(&self.work),
            limit: Some(LONG),
            pulse: Some(&mut *beat.pulse),
            ..Run::default()
        };
        let output = self.git.run(&self.work, args, run)?;
        Ok(output.status.success().then(|| output.line()))
    }

    /// What its configuration says of how its files are looked at.
    pub(crate) fn settings(&self) -> Result<Settings, WorkspaceError> {
        Settings::of(self.git, &self.admin)
    }

    /// What is declared rebuildable in it (W-33).
    pub(crate) fn rebuildable(&self) -> Result<Rebuildable, WorkspaceError> {
        Rebuildable::of(self.git, &self.admin, &self.work)
    }

    /// A file of the administration directory; none if it is not there.
    pub(crate) fn admin_file(&self, name: &str) -> Result<Option<Vec<u8>>, WorkspaceError> {
        let path = self.admin.join(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(io_fail(&path, "cannot read the worktree's state", &e)),
        }
    }
}

/// A bare repository of ours: the private store or a scratch beside it. Its commands never see
/// the user's repository but through what `env` says.
pub(crate) struct Bare<'a> {
    git: &'a Git,
    /// Where it lies.
    pub(crate) dir: PathBuf,
}

/// What a command on a bare repository reads and writes besides its arguments.
#[derive(Default)]
pub(crate) struct Pipe<'a> {
    /// The standard input.
    pub(crate) stdin: Input<'a>,
    /// Where the output goes; none collects it.
    pub(crate) stdout: Option<&'a File>,
    /// Further environment.
    pub(crate) env: &'a [(&'a str, &'a OsStr)],
    /// Further configuration.
    pub(crate) config: &'a [&'a str],
}

impl<'a> Bare<'a> {
    /// The repository in this folder, which need not be there yet.
    pub(crate) fn new(git: &'a Git, dir: PathBuf) -> Bare<'a> {
        Bare { git, dir }
    }

    /// The git program that it is asked with.
    pub(crate) fn git(&self) -> &'a Git {
        self.git
    }

    /// Runs git on it and returns its output; git must end well.
    pub(crate) fn ask(
        &self,
        args: &[&str],
        pipe: Pipe<'_>,
        beat: &mut Beat<'_>,
    ) -> Result<Vec<u8>, WorkspaceError> {
        let run = Run {
            stdin: pipe.stdin,
            stdout: pipe.stdout.map(File::inner),
            git_dir: Some(&self.dir),
            env: pipe.env,
            config: pipe.config,
            limit: Some(LONG),
            pulse: Some(&mut *beat.pulse),
            ..Run::default()
        };
        Ok(self.git.ok(&self.dir, args, run)?.stdout)
    }

    /// The same for a question whose answer may be no.
    pub(crate) fn ask_if(
        &self,
        args: &[&str],
        beat: &mut Beat<'_>,
    ) -> Result<Option<String>, WorkspaceError> {
        let run = Run {
            git_dir: Some(&self.dir),
            limit: Some(LONG),
            pulse: Some(&mut *beat.pulse),
            ..Run::default()
        };
        let output = self.git.run(&self.dir, args, run)?;
        Ok(output.status.success().then(|| output.line()))
    }

    /// Changes a ref of it.
    pub(crate) fn change(
        &self,
        what: Change,
        name: &str,
        args: &[&str],
        config: &[&str],
        beat: &mut Beat<'_>,
    ) -> Result<(), WorkspaceError> {
        let run = Run {
            git_dir: Some(&self.dir),
            config,
            limit: Some(LONG),
            pulse: Some(&mut *beat.pulse),
            ..Run::default()
        };
        let output =
            refs::change(self.git, &self.dir, what, name, |git| git.run(&self.dir, args, run))?;
        if output.status.success() { Ok(()) } else { Err(said_no(&self.dir, args, &output)) }
    }

    /// Makes it, bare and with nothing of a template in it.
    pub(crate) fn init(&self, format: Format) -> Result<(), WorkspaceError> {
        let parent = self.dir.parent().unwrap_or(&self.dir);
        let format = format!("--object-format={}", format.name());
        let args: [&OsStr; 6] = [
            "init".as_ref(),
            "--quiet".as_ref(),
            "--bare".as_ref(),
            "--template=".as_ref(),
            format.as_ref(),
            self.dir.as_os_str(),
        ];
        self.git.ok(parent, &args, Run::default()).map(drop)
    }
}

/// Object names, one per line.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = String> + '_ {
    bytes
        .split(|b| *b == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| String::from_utf8_lossy(line).into_owned())
}
