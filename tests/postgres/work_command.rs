//! `freehold work` on a store in PostgreSQL: what it does, and how it refuses.

use std::path::PathBuf;
use std::process::Command as Program;

use freehold_kernel::TableId;
use freehold_store::{Clock, Operation};
use serde_json::Value;

#[path = "../support/mod.rs"]
mod support;

use support::*;

/// `freehold --json work …`: exit code, last line, standard error.
fn works(words: &[&str]) -> (i32, Value, String) {
    says(&["work"], words)
}

/// `freehold --json …`: exit code, last line, standard error.
fn says(command: &[&str], words: &[&str]) -> (i32, Value, String) {
    let mut program = Program::new(env!("CARGO_BIN_EXE_freehold"));
    // Nothing of the caller's surroundings says how a server is reached.
    for name in ["PGPASSWORD", "PGHOST", "PGUSER", "PGDATABASE"] {
        program.env_remove(name);
    }
    let output = program.arg("--json").args(command).args(words).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    let last = said.lines().last().unwrap_or_else(|| panic!("{error}"));
    let line = serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {last}"));
    (output.status.code().unwrap(), line, error)
}

fn refuses(words: &[&str], exit: i32, word: &str, says: &[&str]) {
    let (code, line, error) = works(words);
    assert_eq!((code, &line["ok"], &line["error"]), (exit, &false.into(), &word.into()), "{line}");
    let sentence = line["says"].as_str().unwrap();
    for part in says {
        assert!(sentence.contains(part), "{part:?} is not in {sentence:?}");
    }
    assert!(!format!("{line}{error}").contains("geheim"), "the password is in {line} {error}");
}

#[test]
fn the_worker_works_on_a_store_in_postgresql() {
    let ground = Ground::on(StorePlace::fresh, Clock::System);
    let StorePlace::Postgres { url, schema } = &ground.store else { panic!("not PostgreSQL") };
    {
        // On the server's clock and under the machine's name, as the program runs.
        let host = freehold_store::Host::start(
            ground.store.open(&ground.clock),
            freehold_git::GitWorkspaces::new(),
            freehold_store::OnThisThread,
            Box::new(freehold_store::NoRuntimes),
            &freehold_cli::machine_name(),
        )
        .unwrap();
        let (_, made) = settled(&ground, &host);
        mark(&made.place.path);
        host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    }
    let words = ["--store", url.as_str(), "--schema", schema];
    let (code, line, error) = works(&words);
    assert_eq!((code, error.as_str()), (0, ""), "{line}");
    assert_eq!((&line["ok"], &line["removals"]), (&true.into(), &1.into()), "{line}");
    assert_eq!(ground.registered(), Vec::<PathBuf>::new());
    assert!(salvage_holds(&ground, "marker\n"));
    let (code, line, _) = works(&words);
    assert_eq!((code, &line["claimed"], &line["removals"]), (0, &0.into(), &0.into()));
    assert_eq!(rows(&ground.host(), &[TableId::Jobs]).view.jobs.len(), 1);
}

#[test]
fn the_worker_makes_no_store_where_none_is() {
    let server = freehold_pg_server::Server::shared();
    let url = server.url("postgres");
    let words = ["--store", url.as_str(), "--schema", "a slip in its name"];
    refuses(&words, 4, "store", &["a slip in its name", "is not a Freehold store"]);
    let made = "SELECT count(*) FROM pg_namespace WHERE nspname = 'a slip in its name'";
    assert_eq!(server.sql("postgres", made), "0");
}

/// Makes the one role that needs a password.
pub(super) fn guard(server: &freehold_pg_server::Server) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        server.sql("postgres", "CREATE ROLE guarded LOGIN PASSWORD 'geheim!right'");
    });
}

#[test]
fn the_worker_says_why_a_server_cannot_be_used() {
    let server = freehold_pg_server::Server::shared();
    let port = server.port();
    // Nobody listens there: the port was free a moment ago.
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let nobody = free.local_addr().unwrap().port();
    drop(free);
    let away = format!("postgres://ann:geheim@127.0.0.1:{nobody}/postgres");
    refuses(&["--store", &away], 3, "store", &["cannot be used", "127.0.0.1"]);
    let other = format!("postgres://postgres:geheim@127.0.0.1:{port}/no_such_database");
    refuses(&["--store", &other], 4, "store", &["no_such_database"]);
    guard(server);
    let wrong = format!("postgres://guarded:geheim@127.0.0.1:{port}/postgres");
    refuses(&["--store", &wrong], 4, "store", &["refuses this user"]);
    let tls = format!("postgres://postgres:geheim@127.0.0.1:{port}/postgres?sslmode=require");
    refuses(&["--store", &tls], 4, "store", &["TLS"]);
}

#[test]
fn an_address_that_cannot_be_read_and_a_schema_beside_a_file_are_told_apart() {
    let bad = "postgres://ann:geheim@host:port/database";
    refuses(&["--store", bad], 2, "unknown_name", &["--store", "postgres://user@host"]);
    refuses(&["--store", "a.db", "--schema", "s"], 2, "unknown_name", &["--schema"]);
}

/// The tour's schemas on the server.
fn tours() -> Vec<String> {
    let text = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'freehold\\_tour\\_%'";
    let found = freehold_pg_server::Server::shared().sql("postgres", text);
    found.lines().map(str::to_owned).collect()
}

#[test]
fn the_tour_is_true_on_postgresql_too_and_leaves_nothing_there() {
    let server = freehold_pg_server::Server::shared();
    let url = server.url("postgres");
    let (code, line, error) = says(&["tour"], &["--store", &url]);
    assert_eq!((code, error.as_str()), (0, ""), "{line}");
    for truth in ["ok", "marker_intact_after_session_deletes", "race_refused_and_compensated"] {
        assert_eq!(line[truth], true, "{truth}: {line}");
    }
    assert_eq!(line["leftovers"], serde_json::json!([]));
    let told = line["steps"].as_array().unwrap().len();
    assert!(told >= 8, "{line}");
    // Kept, there is a whole store in it, and the folder holds none.
    let (code, line, _) = says(&["tour"], &["--store", &url, "--keep"]);
    let folder = PathBuf::from(line["folder"].as_str().unwrap());
    let file = folder.join("freehold.db").exists();
    std::fs::remove_dir_all(&folder).unwrap();
    let schema = line["schema"].as_str().unwrap().to_owned();
    let jobs = format!("SELECT count(*) > 0 FROM \"{schema}\".task_resource_cleanup_jobs");
    let kept = (code, file, tours(), server.sql("postgres", &jobs));
    server.sql("postgres", &format!("DROP SCHEMA \"{schema}\" CASCADE"));
    assert_eq!(kept, (0, false, vec![schema], "t".to_owned()), "{line}");
    // Where nobody answers, the story does not begin.
    let (code, line, error) = says(&["tour"], &["--store", "postgres://ann:geheim@127.0.0.1:1/x"]);
    assert_eq!((code, &line["error"]), (3, &"store".into()), "{line}");
    assert!(!format!("{line}{error}").contains("geheim"), "the password is in {line} {error}");
    // It is told in no store that is there.
    let (code, line, _) = says(&["tour"], &["--store", "some.db"]);
    assert_eq!((code, &line["error"]), (2, &"unknown_name".into()), "{line}");
    assert!(!std::path::Path::new("some.db").exists());
}
