//! Killed in the middle: what was acknowledged is there, what was not is there whole or not at
//! all, and the file is sound.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use freehold_sqlite::{Options, Sqlite};
use freehold_store::StoreError;

use crate::host::{
    Place, ask, child, create_session, create_task, create_workspace, done, ids, submit, task,
};

const VARIABLE: &str = "FREEHOLD_TEST_CRASH";
const LIMITED: &str = "FREEHOLD_TEST_LIMITED";
const THREADS: usize = 4;

/// Submits without end and says what was acknowledged, until it is killed.
#[test]
fn child_submits() {
    let Some(path) = std::env::var_os(VARIABLE) else { return };
    let store = Sqlite::open(Path::new(&path), Options::default()).unwrap();
    let process = std::process::id();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                for n in 0.. {
                    let task = format!("t-{process}-{thread}-{n}");
                    done(store, &create_task(&task));
                    done(store, &create_session(&format!("s-{task}"), &task));
                    let mut out = std::io::stdout().lock();
                    // A line is one write, so that it comes whole or not at all.
                    out.write_all(format!("\nACK {task}\n").as_bytes()).unwrap();
                    out.flush().unwrap();
                }
            });
        }
    });
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let place = Place::new();
    done(&place.open(), &create_workspace("w"));
    let binary = std::env::current_exe().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..8 {
        let mut process = child(&binary, "crash::child_submits", VARIABLE, &place.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut here = 0;
        for line in lines.map_while(Result::ok) {
            if let Some(task) = line.strip_prefix("ACK ") {
                acknowledged.push(task.to_owned());
                here += 1;
                // Another moment each time; what is in the pipe by then counts too.
                if here == 1 + round * 7 {
                    process.kill().unwrap();
                }
            }
        }
        process.wait().unwrap();
        assert!(here > round * 7, "the child ended by itself");

        let connection = place.beside();
        let check: String =
            connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
        let broken: i64 = connection
            .query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(broken, 0);
        let tasks = ids(&connection, "tasks");
        let sessions = ids(&connection, "task_sessions");
        for task in &acknowledged {
            assert!(tasks.contains(task), "{task} was acknowledged");
            assert!(sessions.contains(&format!("s-{task}")), "s-{task} was acknowledged");
        }
        // Each is whole: a row, its identity and its journal line, or none of them.
        let torn: i64 = connection
            .query_row(
                "SELECT (SELECT count(*) FROM tasks WHERE id NOT IN \
                   (SELECT id FROM identities WHERE kind = 'task')) \
                 + (SELECT count(*) FROM identities WHERE kind = 'task' AND id NOT IN \
                   (SELECT id FROM tasks)) \
                 + (SELECT count(*) FROM tasks WHERE id NOT IN \
                   (SELECT subject FROM journal WHERE event = 'task_created'))",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(torn, 0);
    }
    drop(place.open());
}

/// Submits numbered requests until one fails, and says which and how.
#[test]
fn child_runs_into_a_limit() {
    let Some(path) = std::env::var_os(LIMITED) else { return };
    let store = Sqlite::open(Path::new(&path), Options::default()).unwrap();
    for n in 0.. {
        match submit(&store, &ask(&format!("q{n}"), |c| task(c, &format!("t{n}")))) {
            Ok(_) => {}
            Err(StoreError::Unknown { .. }) => return println!("\nUNKNOWN {n}"),
            Err(error) => return println!("\nOTHER {n} {error:?}"),
        }
    }
}

#[test]
fn a_commit_that_fails_on_the_disk_is_unknown_and_its_request_tells() {
    let place = Place::new();
    done(&place.open(), &create_workspace("w"));
    // A limit on file sizes makes a write fail in the middle of a commit; ignored signals and
    // limits pass on to the child.
    let binary = std::env::current_exe().unwrap();
    let inner = child(&binary, "crash::child_runs_into_a_limit", LIMITED, &place.path());
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", "trap '' XFSZ; ulimit -f 2000; exec \"$0\" \"$@\""])
        .arg(inner.get_program())
        .args(inner.get_args())
        .env(LIMITED, place.path());
    let output = shell.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = text.lines().find_map(|line| line.strip_prefix("UNKNOWN "));
    let failed: usize = said.unwrap_or_else(|| panic!("{text}")).parse().unwrap();
    assert!(failed > 10);

    let store = place.open();
    let tasks = ids(&place.beside(), "tasks").len();
    assert!(tasks == failed || tasks == failed + 1, "{tasks} tasks, the failed one is {failed}");
    let again = submit(&store, &ask(&format!("q{failed}"), |c| task(c, &format!("t{failed}"))));
    let again = again.unwrap().accepted().unwrap();
    assert_eq!(again.replayed, tasks == failed + 1);
    assert_eq!(ids(&place.beside(), "tasks").len(), failed + 1);
    let check: String =
        place.beside().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}
