//! A pooler in front of a throw-away server.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Server, free_port};

/// What to do where no pooler is installed.
pub const INSTALL_POOLER: &str = "pgbouncer is not installed: install the package pgbouncer \
     (Debian, Ubuntu: apt-get install pgbouncer), or put the program into PATH";

/// How long a pooler may take to start.
const START_MAX: Duration = Duration::from_secs(20);

/// A running pgbouncer with `pool_mode = transaction`: a client has a connection of the server for
/// the time of a transaction only. Ended when dropped, and when this process ends.
#[derive(Debug)]
pub struct Pooler {
    supervisor: Child,
    port: u16,
}

impl Pooler {
    /// Starts one with this many connections to the server for each database.
    ///
    /// # Errors
    /// What is missing, or that it did not start.
    pub fn start(server: &Server, connections: u32) -> Result<Pooler, String> {
        let program = program().ok_or_else(|| INSTALL_POOLER.to_owned())?;
        let port = free_port()?;
        let mut command = Command::new("sh");
        command
            .args(["-c", include_str!("pooler.sh"), "freehold-pg-pooler"])
            .arg(program)
            .arg(port.to_string())
            .arg(server.folder())
            .arg(server.port().to_string())
            .arg(connections.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            command.process_group(0);
        }
        let supervisor = command.spawn().map_err(|e| format!("sh cannot be run: {e}"))?;
        let mut pooler = Pooler { supervisor, port };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if began.elapsed() > START_MAX
                || pooler.supervisor.try_wait().is_ok_and(|e| e.is_some())
            {
                return Err("pgbouncer did not start".to_owned());
            }
            // It says nowhere that it is ready.
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(pooler)
    }

    /// How to reach a database through it.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.supervisor.stdin.take());
        let _ended = self.supervisor.wait();
    }
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH");
    let mut folders: Vec<PathBuf> = path.iter().flat_map(std::env::split_paths).collect();
    folders.extend(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    folders.into_iter().map(|folder| folder.join("pgbouncer")).find(|program| program.is_file())
}
