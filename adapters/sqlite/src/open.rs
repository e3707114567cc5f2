//! Opening: telling what a file is before anything in it is changed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use freehold_store::{Clock, StoreError};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::migrate::{self, Found, KNOWN};
use crate::{fault, transact};

/// When a commit counts as durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// It survives the loss of power.
    #[default]
    Full,
    /// It survives the end of the process; the last ones may be lost, whole, with the power.
    Normal,
}

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the store reads the time.
    pub clock: Clock,
    /// How long a call waits while another process or connection holds the file; past it, it
    /// fails as [`StoreError::Busy`].
    pub busy_wait: Duration,
    /// When a commit counts as durable.
    pub synchronous: Synchronous,
}

impl Default for Options {
    /// The machine's clock, five seconds, full durability.
    fn default() -> Self {
        Options {
            clock: Clock::System,
            busy_wait: Duration::from_secs(5),
            synchronous: Synchronous::Full,
        }
    }
}

/// A store's file, opened for writing.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    /// Where it is, whatever becomes of the working directory.
    pub(crate) path: PathBuf,
    pub(crate) id: String,
}

/// Opens the file or makes a fresh one. A refused file is left as it was.
///
/// # Errors
/// As [`crate::Sqlite::open`].
pub(crate) fn open(path: &Path, options: &Options) -> Result<Opened, StoreError> {
    let shown = path.display().to_string();
    let not_a_store =
        |detail: &str| StoreError::NotAStore { path: shown.clone(), detail: detail.to_owned() };
    let fresh = match std::fs::metadata(path) {
        Ok(there) if there.is_dir() => return Err(not_a_store("it is a folder")),
        Ok(there) if !there.is_file() => return Err(not_a_store("it is no file")),
        Ok(there) => there.len() == 0,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
        Err(error) => {
            return Err(StoreError::Unavailable { detail: format!("{shown}: {error}") });
        }
    };
    may_write(path, &shown)?;
    let connection =
        if fresh { create(path, &shown, options)? } else { existing(path, &shown, options)? };
    for pragma in ["wal_autocheckpoint = 1000", "journal_size_limit = 67108864"] {
        let _set = connection.execute_batch(&format!("PRAGMA {pragma}"));
    }
    let id = migrate::store_id(&connection)?;
    let path = std::fs::canonicalize(path)
        .map_err(|error| StoreError::Unavailable { detail: format!("{shown}: {error}") })?;
    Ok(Opened { connection, path, id })
}

/// Refuses a file that this user may not write, or that lies where this user may make no file,
/// before SQLite looks at it: SQLite would open it for reading, and leave files beside it that
/// nobody may write.
fn may_write(path: &Path, shown: &str) -> Result<(), StoreError> {
    let refused = StoreError::ReadOnly { path: shown.to_owned() };
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for needed in [path, folder] {
        if needed.exists() && !allowed(needed) {
            return Err(refused);
        }
    }
    Ok(())
}

#[cfg(unix)]
fn allowed(path: &Path) -> bool {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    use rustix::io::Errno;
    // Any other answer is left to SQLite.
    !matches!(
        accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS),
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS)
    )
}

#[cfg(not(unix))]
fn allowed(path: &Path) -> bool {
    path.is_dir() || !path.metadata().is_ok_and(|there| there.permissions().readonly())
}

/// Makes a store in a file that is absent or empty. The tables come in one transaction and
/// before the file turns to WAL, so that a crash leaves an empty file or a whole store.
fn create(path: &Path, shown: &str, options: &Options) -> Result<Connection, StoreError> {
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty())
        && !folder.is_dir()
    {
        return Err(StoreError::Unavailable {
            detail: format!("there is no folder {}; make it first", folder.display()),
        });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = connect(path, shown, flags, options)?;
    upgrade(&connection, shown, &options.clock)?;
    to_wal(&connection, shown)?;
    Ok(connection)
}

/// Opens a file that has something in it.
fn existing(path: &Path, shown: &str, options: &Options) -> Result<Connection, StoreError> {
    let wal = sibling(path, "-wal");
    let had_wal = wal.metadata().is_ok_and(|there| there.len() > 0);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = connect(path, shown, flags, options)?;
    let found = match look(&connection, shown) {
        Ok(Found::Nothing) => Err(StoreError::NotAStore {
            path: shown.to_owned(),
            detail: "a database without tables that Freehold did not make".into(),
        }),
        Ok(found) => writable(&connection, shown, options).map(|()| found),
        Err(error) => Err(error),
    };
    match found {
        Ok(Found::Version(KNOWN)) => {}
        Ok(_older) => upgrade(&connection, shown, &options.clock)?,
        Err(error) => {
            if had_wal {
                // What others left in the log is theirs to move into the file.
                let _kept =
                    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
            }
            return Err(error);
        }
    }
    to_wal(&connection, shown)?;
    Ok(connection)
}

fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A connection with the settings that every use of a store needs.
///
/// # Errors
/// If SQLite cannot open the file.
pub(crate) fn connect(
    path: &Path,
    shown: &str,
    flags: OpenFlags,
    options: &Options,
) -> Result<Connection, StoreError> {
    let failed = |error| fault::at(shown, &error);
    let connection = Connection::open_with_flags(path, flags).map_err(|error| {
        // The file is there, or may be made there, but not by this user.
        match fault::at(shown, &error) {
            StoreError::Unavailable { detail } => {
                StoreError::Unavailable { detail: format!("{shown}: {detail}") }
            }
            other => other,
        }
    })?;
    connection.busy_timeout(options.busy_wait).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(512);
    // None of these reads the file.
    let synchronous = match options.synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
    };
    let settings = format!(
        "PRAGMA foreign_keys = ON; PRAGMA synchronous = {synchronous}; PRAGMA trusted_schema = OFF;"
    );
    connection.execute_batch(&settings).map_err(failed)?;
    Ok(connection)
}

/// Reads what stands in the file, as of one moment.
fn look(connection: &Connection, shown: &str) -> Result<Found, StoreError> {
    let result = transact::execute(connection, "BEGIN DEFERRED")
        .map_err(|error| fault::at(shown, &error))
        .and_then(|()| migrate::inspect(connection));
    end_read(connection);
    result.map_err(|error| match error {
        // SQLite could open the file, but not the files beside it that reading it takes.
        StoreError::Unavailable { detail } if detail.contains("unable to open") => {
            StoreError::ReadOnly { path: shown.to_owned() }
        }
        other => other,
    })
}

/// Ends a transaction that only read.
pub(crate) fn end_read(connection: &Connection) {
    if !connection.is_autocommit() {
        let _ended = transact::execute(connection, "ROLLBACK");
    }
}

/// Whether this user may write the file. SQLite opens a file for reading where writing is not
/// allowed, and says so at the first statement that could write (not at BEGIN IMMEDIATE); a lock
/// that another holds says that writing is allowed.
fn writable(connection: &Connection, shown: &str, options: &Options) -> Result<(), StoreError> {
    let failed = |error| fault::at(shown, &error);
    connection.busy_timeout(Duration::ZERO).map_err(failed)?;
    let wrote = transact::execute(connection, "UPDATE store SET id = id WHERE one = 0");
    connection.busy_timeout(options.busy_wait).map_err(failed)?;
    match wrote.map_err(failed) {
        Ok(()) | Err(StoreError::Busy { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Brings the schema up to date, under the lock; another process may have done it meanwhile.
fn upgrade(connection: &Connection, shown: &str, clock: &Clock) -> Result<(), StoreError> {
    let failed = |error| fault::at(shown, &error);
    connection.execute_batch("BEGIN EXCLUSIVE").map_err(failed)?;
    let done = migrate::inspect(connection).and_then(|found| match found {
        Found::Version(KNOWN) => Ok(()),
        Found::Nothing | Found::Version(_) => migrate::apply(connection, found, clock),
    });
    let done = done.and_then(|()| {
        connection.execute_batch("COMMIT").map_err(|error| fault::of_commit(connection, &error))
    });
    end_read(connection);
    done
}

/// Turns the file to WAL, if it is not (a crash may have come before).
fn to_wal(connection: &Connection, shown: &str) -> Result<(), StoreError> {
    let failed = |error| fault::at(shown, &error);
    let mode: String =
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(failed)?;
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    Err(StoreError::Unavailable {
        detail: format!("{shown}: SQLite keeps the journal mode {mode} where WAL is needed"),
    })
}
