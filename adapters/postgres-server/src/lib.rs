//! Throw-away PostgreSQL servers for tests.
//!
//! A [`Server`] is started from the programs that are installed (in `PATH`, or where Debian and
//! the makers' packages put them), on a free port and a socket in a temporary folder, as an
//! unprivileged user. A supervisor process holds it and ends it when its standard input ends: a
//! test that panics or is killed leaves no server and no folder behind.
//!
//! Where no server is installed, a test fails and says what to install; it is never skipped.

mod pooler;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

pub use pooler::{INSTALL_POOLER, Pooler};

/// What to do where no server is installed.
pub const INSTALL: &str = "no PostgreSQL server is installed: install the package postgresql \
     (Debian, Ubuntu: apt-get install postgresql), or put the folder of initdb, pg_ctl and \
     postgres into PATH";

/// An installed version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Installed {
    /// Its major version.
    pub major: u32,
    /// The folder of its programs.
    pub programs: PathBuf,
}

/// Every installed version, the newest first.
pub fn installed() -> Vec<Installed> {
    let mut folders: Vec<PathBuf> =
        std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect();
    for base in ["/usr/lib/postgresql", "/usr/local/lib/postgresql", "/opt/homebrew/opt"] {
        let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
        folders.extend(entries.map(|entry| entry.path().join("bin")));
    }
    folders.extend(["/usr/local/pgsql/bin"].map(PathBuf::from));
    let mut found: Vec<Installed> = folders
        .into_iter()
        .filter(|folder| ["initdb", "pg_ctl", "postgres"].iter().all(|p| folder.join(p).is_file()))
        .filter_map(|programs| Some(Installed { major: major(&programs)?, programs }))
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.dedup_by_key(|i| std::fs::canonicalize(&i.programs).ok());
    found
}

/// The version that the program says of itself: `postgres (PostgreSQL) 15.13 (Debian …)`.
fn major(programs: &Path) -> Option<u32> {
    let output = Command::new(programs.join("postgres")).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = text.split_whitespace().find(|w| w.starts_with(|c: char| c.is_ascii_digit()))?;
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// A running server. Ended and removed when dropped, and when this process ends.
#[derive(Debug)]
pub struct Server {
    supervisor: Child,
    /// None once it was told to end.
    line: Mutex<Option<(ChildStdin, BufReader<ChildStdout>)>>,
    installed: Installed,
    folder: PathBuf,
    port: u16,
}

impl Server {
    /// The one server that all tests of a test binary share, started by the first that asks. Give
    /// each test a database or a schema of its own.
    ///
    /// # Panics
    /// If it cannot be started: the test fails and says what to install.
    pub fn shared() -> &'static Server {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(|| Server::start(&[]).unwrap_or_else(|why| panic!("{why}")))
    }

    /// Starts the newest installed version with further settings, as name and value.
    ///
    /// # Errors
    /// What is missing, or why it did not start.
    pub fn start(settings: &[(&str, &str)]) -> Result<Server, String> {
        let newest = installed().into_iter().next().ok_or_else(|| INSTALL.to_owned())?;
        Server::start_version(&newest, settings)
    }

    /// Starts this version.
    ///
    /// # Errors
    /// Why it did not start.
    pub fn start_version(
        installed: &Installed,
        settings: &[(&str, &str)],
    ) -> Result<Server, String> {
        let mut tried = String::new();
        // Somebody else may take the port between our look and the server's.
        for _ in 0..5 {
            match Server::try_start(installed, free_port()?, settings) {
                Err(why) if why.contains("Address already in use") => tried = why,
                other => return other,
            }
        }
        Err(tried)
    }

    fn try_start(
        installed: &Installed,
        port: u16,
        settings: &[(&str, &str)],
    ) -> Result<Server, String> {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(include_str!("supervisor.sh"))
            .arg("freehold-pg-server")
            .arg(&installed.programs)
            .arg(port.to_string())
            .args(settings.iter().map(|(name, value)| format!("{name}={value}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        #[cfg(unix)]
        {
            // A signal to the terminal's group ends the test, and only thereby the server.
            use std::os::unix::process::CommandExt;
            command.process_group(0);
        }
        let mut supervisor = command.spawn().map_err(|e| format!("sh cannot be run: {e}"))?;
        let (Some(input), Some(output)) = (supervisor.stdin.take(), supervisor.stdout.take())
        else {
            return Err("the supervisor has no pipes".to_owned());
        };
        let mut output = BufReader::new(output);
        let mut answer = String::new();
        let read = output.read_line(&mut answer);
        match (read, answer.trim_end().split_once(' ')) {
            (Ok(_), Some(("READY", folder))) => Ok(Server {
                folder: PathBuf::from(folder),
                supervisor,
                line: Mutex::new(Some((input, output))),
                installed: installed.clone(),
                port,
            }),
            _other => {
                drop(input);
                let _ended = supervisor.wait();
                Err(format!("PostgreSQL {} {}", installed.major, answer.trim_end()))
            }
        }
    }

    /// Which version it is.
    pub fn installed(&self) -> &Installed {
        &self.installed
    }

    /// Its port on 127.0.0.1, and in the name of its socket.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of its socket; the data lie in `data` there.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How to reach a database over TCP as the superuser `postgres`, without a password. A role
    /// named `guarded`, should a test make one, needs its password.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Makes an empty database.
    ///
    /// # Panics
    /// If that fails.
    pub fn create_database(&self, name: &str) {
        self.sql("postgres", &format!("CREATE DATABASE \"{name}\""));
    }

    /// Runs statements as the superuser, and returns what they print, a row a line with `|`
    /// between columns.
    ///
    /// # Panics
    /// If one fails.
    pub fn sql(&self, database: &str, text: &str) -> String {
        self.try_sql(database, text).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    /// The same, for what may fail.
    ///
    /// # Errors
    /// What the server said.
    pub fn try_sql(&self, database: &str, text: &str) -> Result<String, String> {
        let words: [&OsStr; 12] = [
            "-X".as_ref(),
            "-qAt".as_ref(),
            "-v".as_ref(),
            "ON_ERROR_STOP=1".as_ref(),
            "-U".as_ref(),
            "postgres".as_ref(),
            "-h".as_ref(),
            self.folder.as_os_str(),
            "-d".as_ref(),
            database.as_ref(),
            "-c".as_ref(),
            text.as_ref(),
        ];
        let beside = self.installed.programs.join("psql");
        let psql = if beside.is_file() { beside } else { PathBuf::from("psql") };
        let output = Command::new(psql)
            .args(words)
            .env("PGPORT", self.port.to_string())
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("psql cannot be run: {e}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// Stops it; connections are closed, transactions that are open are rolled back.
    ///
    /// # Panics
    /// If it does not stop.
    pub fn stop(&self) {
        self.tell("stop");
    }

    /// Ends it as a crash does.
    ///
    /// # Panics
    /// If it does not end.
    pub fn kill(&self) {
        self.tell("kill");
    }

    /// Starts it again.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_again(&self) {
        self.tell("start");
    }

    /// Turns it into a standby without a primary: a server that may only be read.
    ///
    /// # Panics
    /// If that fails.
    pub fn become_standby(&self) {
        self.tell("standby");
    }

    fn tell(&self, word: &str) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answer = String::new();
        let Some((input, output)) = line.as_mut() else { return };
        let told = writeln!(input, "{word}").and_then(|()| output.read_line(&mut answer));
        assert!(told.is_ok() && answer.trim_end() == "DONE", "{word}: {told:?} {answer}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The end of its input is what ends the supervisor.
        *self.line.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        let _ended = self.supervisor.wait();
    }
}

/// A port that nobody listens on at this moment.
fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0));
    let address = listener.and_then(|l| l.local_addr());
    address.map(|a| a.port()).map_err(|e| format!("there is no free port: {e}"))
}
