//! Where a store is, as the command line says it; and the one place where one is opened.

mod address;
mod password;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use freehold_postgres::PostgresStore;
use freehold_postgres::rustls::ClientConfig;
use freehold_postgres::tokio_postgres::Config;
use freehold_postgres::tokio_postgres::config::Host;
use freehold_sqlite::Sqlite;
use freehold_store::{Drive as _, Either, HostError, OnThisThread, StoreError};
use tokio::runtime::Runtime;

use crate::failure::Failure;
use crate::ground::quoted;

/// A store that is open, of whichever kind.
pub(crate) type OpenStore = Either<Arc<Sqlite>, PostgresStore>;

/// The schema where none is named.
const SCHEMA: &str = "freehold";

/// How a server and its password are told, for the end of the long help.
pub(crate) const HELP: &str = "\
Where the store is:
  --store FILE                                      SQLite
  --store postgres://user@host:5432/database        PostgreSQL, with --schema NAME

What an address leaves out comes from PGHOST with PGPORT, PGUSER, PGDATABASE and PGSSLMODE, so that
--store postgres:// may be enough. Leave the password out of it: a command line is seen by
everybody who lists the processes. It is read from PGPASSWORD, or from the password file, which is
~/.pgpass or what PGPASSFILE names (lines host:port:database:user:password, mode 600). No password
is ever printed, not even as a part of the next command. An entry of the file is used only if it is
the same for all servers that the address names.

Where PGSSLROOTCERT names a file of the authorities to trust, TLS is demanded over the network, and
the server's name is looked at. Only with a mode of prefer or allow that is said (sslmode of the
address, or PGSSLMODE) a server may say that it has no TLS, and so may whoever stands between: then
all is sent in the clear, and a password too, if it asks for one. Without such a file no TLS is
spoken, and a mode of require is refused.";

/// The words that say which store is meant, the same for every command.
#[derive(clap::Args, Debug)]
pub(crate) struct StoreArgs {
    /// The store's file, or the address of a PostgreSQL database
    /// (postgres://user@host:5432/database); the password, if there is one, in PGPASSWORD or
    /// ~/.pgpass.
    #[arg(long, value_name = "FILE|ADDRESS", global = true)]
    store: Option<OsString>,
    /// The schema of the store in that database; `freehold` if none is given.
    #[arg(long, value_name = "NAME", global = true)]
    schema: Option<String>,
}

impl StoreArgs {
    /// The place that is meant.
    ///
    /// # Errors
    /// If none is given, and as [`StorePlace::read`].
    pub(crate) fn place(&self, command: &str) -> Result<StorePlace, Failure> {
        let help = || format!("freehold {command} --help");
        let Some(store) = &self.store else {
            let says = "which store? give --store FILE or --store ADDRESS";
            return Err(Failure::Unknown(says.to_owned()).then(help()));
        };
        StorePlace::read(store, self.schema.as_deref()).map_err(|failure| match failure {
            Failure::Unknown(_) => failure.then(help()),
            other => other,
        })
    }
}

/// A store's file, or a schema on a server.
#[derive(Clone, Debug)]
pub(crate) enum StorePlace {
    /// SQLite.
    File(PathBuf),
    /// PostgreSQL.
    Server {
        /// How it is reached, with the password.
        config: Box<Config>,
        /// Its address without the password.
        address: String,
        /// TLS, if somebody said whom to trust.
        tls: Option<Arc<ClientConfig>>,
        /// Why the password file has no password, for who is refused without one.
        note: Option<String>,
        /// The schema.
        schema: String,
    },
}

impl StorePlace {
    /// Reads what follows `--store`: an address that begins with `postgres://` or
    /// `postgresql://`, or a path.
    ///
    /// # Errors
    /// [`Failure::Unknown`]: an address that cannot be read, or `--schema` beside a file;
    /// [`Failure::Surroundings`]: a password file that cannot be used. The address is not repeated
    /// in the words: a password may stand in it.
    pub(crate) fn read(store: &OsStr, schema: Option<&str>) -> Result<StorePlace, Failure> {
        let text = store.to_string_lossy();
        if address::is_meant(&text) && !Path::new(store).exists() {
            let address = address::read(&text, &|name| std::env::var_os(name))?;
            return Ok(StorePlace::Server {
                config: Box::new(address.config),
                address: address.shown,
                tls: address.tls,
                note: address.note,
                schema: schema.unwrap_or(SCHEMA).to_owned(),
            });
        }
        if schema.is_some() {
            let says = "--schema is for an address; a store's file has none";
            return Err(Failure::Unknown(says.to_owned()));
        }
        Ok(StorePlace::File(PathBuf::from(store)))
    }

    /// The words by which another process reads the same place, but for the password.
    pub(crate) fn words(&self) -> Vec<OsString> {
        match self {
            StorePlace::File(file) => vec!["--store".into(), file.into()],
            StorePlace::Server { address, schema, .. } => {
                let mut words: Vec<OsString> = vec!["--store".into(), address.into()];
                if schema != SCHEMA {
                    words.extend(["--schema".into(), schema.into()]);
                }
                words
            }
        }
    }

    /// The password, for another process's environment.
    pub(crate) fn password(&self) -> Option<&OsStr> {
        use std::os::unix::ffi::OsStrExt as _;
        match self {
            StorePlace::File(_) => None,
            StorePlace::Server { config, .. } => config.get_password().map(OsStr::from_bytes),
        }
    }

    /// Opens a store that is there.
    ///
    /// # Errors
    /// If none is there, and failures of the store; with the command that looks into it.
    pub(crate) fn open(&self) -> Result<OpenStore, Failure> {
        self.opened(false)
    }

    /// Opens a store, and makes it where none is.
    ///
    /// # Errors
    /// As [`StorePlace::open`].
    pub(crate) fn make(&self) -> Result<OpenStore, Failure> {
        self.opened(true)
    }

    fn opened(&self, create: bool) -> Result<OpenStore, Failure> {
        match self {
            StorePlace::File(file) if create || file.exists() => {
                let store = Sqlite::open(file, freehold_sqlite::Options::default())?;
                Ok(Either::First(Arc::new(store)))
            }
            StorePlace::File(file) => Err(no_file(file)),
            StorePlace::Server { config, address, tls, note, schema } => {
                let options = freehold_postgres::Options {
                    schema: schema.clone(),
                    create,
                    connections: 4,
                    // Nobody waits for the news of a process that is about to end.
                    notify: false,
                    tls: tls.clone(),
                    runtime: Some(runtime()?.handle().clone()),
                    ..freehold_postgres::Options::default()
                };
                let opening = PostgresStore::connect((**config).clone(), options);
                match OnThisThread.wait(opening) {
                    Ok(store) => Ok(Either::Second(store)),
                    Err(error) => Err(not_opened(error, config, address, note.as_deref())),
                }
            }
        }
    }
}

fn no_file(file: &Path) -> Failure {
    let folder = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Failure::Host(HostError::NotThere {
        what: "store",
        id: file.display().to_string(),
        help: "give the path of a store's file",
    })
    .then(format!("ls -l {}", quoted(&folder.display().to_string())))
}

/// What can be done about a server that does not open: the same place, asked by its own programs.
fn not_opened(error: StoreError, config: &Config, address: &str, note: Option<&str>) -> Failure {
    let (quoted_address, psql) = (quoted(address), format!("psql {}", quoted(address)));
    match error {
        StoreError::Unavailable { .. } => {
            Failure::from(error).then(format!("pg_isready -d {quoted_address}"))
        }
        StoreError::Denied { detail } if detail.contains("TLS") => {
            Failure::from(StoreError::Denied {
                detail: format!(
                    "{detail}; the authorities to trust are read from the file that PGSSLROOTCERT \
                     names, which demands TLS unless sslmode=prefer is said"
                ),
            })
            .then(format!("{psql} -c 'SELECT current_user'"))
        }
        StoreError::Denied { detail } => Failure::from(StoreError::Denied {
            detail: format!(
                "{detail}; a password is read from PGPASSWORD, or from ~/.pgpass or the file that \
                 PGPASSFILE names{}",
                note.map(|note| format!("; {note}")).unwrap_or_default()
            ),
        })
        .then(format!("{psql} -c 'SELECT current_user'")),
        // No such database: the others are listed from another one.
        StoreError::NotAStore { ref detail, .. } if detail.contains("[3D000]") => {
            Failure::from(error.clone()).then(listing(config))
        }
        StoreError::NotAStore { .. } => Failure::from(error).then(format!("{psql} -c '\\dn'")),
        other => Failure::from(other),
    }
}

/// The command that lists the databases.
fn listing(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        #[cfg(unix)]
        Some(Host::Unix(folder)) => folder.display().to_string(),
        None => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let user = config.get_user().map(|user| format!(" -U {}", quoted(user))).unwrap_or_default();
    format!("psql -h {} -p {port}{user} -d postgres -l", quoted(&host))
}

/// The runtime on whose thread the connections are driven; it ends with the process.
pub(crate) fn runtime() -> Result<&'static Runtime, Failure> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let made = builder.worker_threads(1).enable_all().build().map_err(|e| {
        Failure::Surroundings(format!("the connections' thread cannot be started: {e}"))
    })?;
    Ok(RUNTIME.get_or_init(|| made))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_place_hold_no_password_and_lead_to_it_again() {
        let read = |store: &str, schema| StorePlace::read(store.as_ref(), schema).unwrap();
        let words = |place: &StorePlace| {
            let words = place.words();
            words.iter().map(|w| w.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let place = read("postgres://ann:geheim@h:1/d", Some("my own"));
        assert_eq!(words(&place), ["--store", "postgres://ann@h:1/d", "--schema", "my own"]);
        assert_eq!(place.password().unwrap(), "geheim");
        assert!(!format!("{place:?}").contains("geheim"), "{place:?}");
        let line = crate::ground::next(&["work"], &place);
        assert_eq!(line, "freehold work --store postgres://ann@h:1/d --schema 'my own'");
        assert_eq!(words(&read("postgres://h", None)), ["--store", "postgres://h"]);
        assert_eq!(words(&read("a file.db", None)), ["--store", "a file.db"]);
    }
}
