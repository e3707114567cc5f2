//! A host that speaks to a store in the tests.

use std::path::{Path, PathBuf};

use freehold_kernel::{
    Command, Permissions, SessionCommand, SessionId, SessionSource, TaskCommand, TaskId, TaskKind,
    Time, WorkspaceId,
};
use freehold_sqlite::{Options, Sqlite, Synchronous};
use freehold_store::{Clock, Composer, Outcome, Store, StoreError, Submission};
use rusqlite::Connection;
use tempfile::TempDir;

/// A folder with a store's file in it.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) clock: Clock,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place {
            folder: tempfile::tempdir().unwrap(),
            clock: Clock::manual(Time(1_000_000_000_000)),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    pub(crate) fn options(&self) -> Options {
        Options { clock: self.clock.clone(), ..Options::default() }
    }

    pub(crate) fn open(&self) -> Sqlite {
        Sqlite::open(&self.path(), self.options()).unwrap()
    }

    /// The same without waiting for the disk: for what does not end in a loss of power.
    pub(crate) fn open_fast(&self) -> Sqlite {
        let options = Options { synchronous: Synchronous::Normal, ..self.options() };
        Sqlite::open(&self.path(), options).unwrap()
    }

    /// What a crash now would leave: a copy of the files as they are on disk, log included.
    pub(crate) fn as_a_crash_leaves_it(&self) -> Place {
        let place = Place { clock: self.clock.clone(), ..Place::new() };
        for suffix in ["", "-wal"] {
            let name = format!("store.db{suffix}");
            let from = self.folder.path().join(&name);
            if from.exists() {
                std::fs::copy(from, place.folder.path().join(&name)).unwrap();
            }
        }
        place
    }

    /// Another user of the file, without Freehold.
    pub(crate) fn beside(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }
}

/// A submission of somebody who may do everything.
pub(crate) fn say(command: impl FnOnce(&mut Composer) -> Command) -> Submission {
    compose(Composer::new("ann", Permissions::ALL).unwrap(), command)
}

/// The same with a request id.
pub(crate) fn ask(request: &str, command: impl FnOnce(&mut Composer) -> Command) -> Submission {
    let composer = Composer::new("ann", Permissions::ALL).unwrap().request(request).unwrap();
    compose(composer, command)
}

pub(crate) fn compose(
    mut composer: Composer,
    command: impl FnOnce(&mut Composer) -> Command,
) -> Submission {
    let command = command(&mut composer);
    composer.submit(command)
}

pub(crate) fn create_workspace(workspace: &str) -> Submission {
    say(|c| {
        let workspace = c.id::<WorkspaceId>(workspace).unwrap();
        Command::Task(TaskCommand::CreateWorkspace { workspace })
    })
}

pub(crate) fn task(c: &mut Composer, task: &str) -> Command {
    task_in(c, "w", task)
}

pub(crate) fn task_in(c: &mut Composer, workspace: &str, task: &str) -> Command {
    Command::Task(TaskCommand::Create {
        task: c.id::<TaskId>(task).unwrap(),
        workspace: c.id::<WorkspaceId>(workspace).unwrap(),
        parent: None,
        kind: TaskKind::Standard,
        expires_at: None,
    })
}

pub(crate) fn create_task(name: &str) -> Submission {
    say(|c| task(c, name))
}

pub(crate) fn create_session(session: &str, task: &str) -> Submission {
    say(|c| {
        Command::Session(SessionCommand::Create {
            session: c.id::<SessionId>(session).unwrap(),
            task: c.id::<TaskId>(task).unwrap(),
            environment: None,
            source: SessionSource::Person,
            parent: None,
        })
    })
}

pub(crate) fn submit(store: &impl Store, submission: &Submission) -> Result<Outcome, StoreError> {
    pollster::block_on(store.submit(submission))
}

/// Submits what must be accepted.
pub(crate) fn done(store: &impl Store, submission: &Submission) {
    match submit(store, submission) {
        Ok(Outcome::Accepted(_)) => {}
        Ok(Outcome::Refused(refused)) => panic!("{refused}"),
        Err(error) => panic!("{error}"),
    }
}

/// The ids in a table, as another user of the file sees them.
pub(crate) fn ids(connection: &Connection, table: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("SELECT id FROM {table} ORDER BY id")).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

/// A command that runs one test of this binary again, in a process of its own, told by a variable
/// that it is the child.
pub(crate) fn child(
    binary: &Path,
    test: &str,
    variable: &str,
    value: &Path,
) -> std::process::Command {
    let mut command = std::process::Command::new(binary);
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(variable, value);
    command
}
