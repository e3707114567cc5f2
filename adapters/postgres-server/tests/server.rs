//! A server lives as long as the test that started it, and no longer.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use freehold_pg_server::{Server, installed};

const CHILD: &str = "FREEHOLD_TEST_PG_CHILD";

/// Starts a server, says where it is, and then ends as it is told to.
#[test]
fn child_holds_a_server() {
    let Ok(end) = std::env::var(CHILD) else { return };
    let server = Server::start(&[]).unwrap();
    println!("\nHOLDS {} {}", server.port(), server.folder().display());
    std::io::stdout().flush().unwrap();
    match end.as_str() {
        "panics" => panic!("planted"),
        "exits" => std::process::exit(0),
        _ => {
            std::io::stdin().read_line(&mut String::new()).unwrap();
        }
    }
}

fn child(end: &str) -> (Child, u16, PathBuf) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_holds_a_server", "--nocapture"])
        .env(CHILD, end)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.find_map(|l| l.unwrap().strip_prefix("HOLDS ").map(str::to_owned)).unwrap();
    let (port, folder) = line.split_once(' ').unwrap();
    // The rest of its output is read, so that it never waits for us.
    std::thread::spawn(move || lines.count());
    (child, port.parse().unwrap(), PathBuf::from(folder))
}

/// Waits for the supervisor to have done its work: it is no child of ours.
fn gone(port: u16, folder: &Path) {
    let began = Instant::now();
    while folder.exists() || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
        assert!(began.elapsed() < Duration::from_secs(60), "{} is still there", folder.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_server_that_is_dropped_is_gone() {
    let server = Server::start(&[("work_mem", "5MB")]).unwrap();
    assert_eq!(server.sql("postgres", "SHOW work_mem"), "5MB");
    let (port, folder) = (server.port(), server.folder().to_owned());
    assert!(folder.join("data").is_dir());
    drop(server);
    assert!(!folder.exists());
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn a_test_that_panics_exits_or_is_killed_leaves_nothing() {
    for end in ["panics", "exits", "is killed"] {
        let (mut child, port, folder) = child(end);
        if end == "is killed" {
            child.kill().unwrap();
        }
        child.wait().unwrap();
        gone(port, &folder);
    }
}

#[test]
fn a_server_is_stopped_crashed_and_started_again() {
    let server = Server::start(&[]).unwrap();
    server.create_database("d");
    server.sql("d", "CREATE TABLE t (a int); INSERT INTO t VALUES (7)");
    for end in [Server::stop, Server::kill] {
        end(&server);
        assert!(server.try_sql("d", "SELECT 1").is_err());
        server.start_again();
        assert_eq!(server.sql("d", "SELECT a FROM t"), "7");
    }
    server.become_standby();
    assert_eq!(server.sql("d", "SELECT pg_is_in_recovery()"), "t");
    assert!(server.try_sql("d", "INSERT INTO t VALUES (8)").unwrap_err().contains("read-only"));
}

#[test]
fn a_setting_that_is_wrong_is_said() {
    let error = Server::start(&[("no_such_setting", "1")]).unwrap_err();
    assert!(error.contains("no_such_setting"), "{error}");
}

#[test]
fn every_installed_version_is_found_newest_first() {
    let all = installed();
    assert!(!all.is_empty(), "{}", freehold_pg_server::INSTALL);
    assert!(all.windows(2).all(|two| two[0].major >= two[1].major));
}
