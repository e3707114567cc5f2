//! Every command of the program on a store in PostgreSQL: it says what it says of the same story on
//! SQLite, takes addresses and passwords as PostgreSQL's own programs do, and says what
//! to do where a server or a store is not as it should be.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command as Program;
use std::sync::OnceLock;

use freehold_kernel::{Span, TableId};
use freehold_pg_server::Server;
use freehold_store::names::uuid_text;
use freehold_store::{Clock, Operation};
use serde_json::Value;

#[path = "../support/mod.rs"]
mod support;

use support::*;

/// One command of each kind, as it only looks.
const LOOKS: [&[&str]; 6] = [
    &["work"],
    &["doctor"],
    &["jobs", "list"],
    &["restore", "list"],
    &["settings", "show"],
    &["gc"],
];

/// What says how a server is reached, besides the command line.
const VARIABLES: [&str; 8] = [
    "PGSSLROOTCERT",
    "PGHOST",
    "PGPORT",
    "PGUSER",
    "PGDATABASE",
    "PGPASSWORD",
    "PGPASSFILE",
    "PGSSLMODE",
];

/// The program with these words and nothing but these variables: exit code and last line. No
/// password is in anything that it says.
fn says(words: &[&str], variables: &[(&str, &str)]) -> (i32, Value) {
    says_in(Path::new("."), words, variables)
}

/// The same, in this folder.
fn says_in(folder: &Path, words: &[&str], variables: &[(&str, &str)]) -> (i32, Value) {
    let mut program = Program::new(env!("CARGO_BIN_EXE_freehold"));
    for name in VARIABLES {
        program.env_remove(name);
    }
    program.current_dir(folder).arg("--json").args(words).envs(variables.iter().copied());
    let output = program.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!format!("{said}{error}").contains("geheim"), "{words:?}: {said} {error}");
    let last = said.lines().last().unwrap_or_else(|| panic!("{words:?}: {error}"));
    let line = serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {last}"));
    (output.status.code().unwrap(), line)
}

/// Runs a command line as a person would paste it.
fn paste(line: &str) -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_freehold")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let output = Program::new("sh").args(["-c", line]).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What a ground's program says, with everything replaced that is another's on another ground.
struct Teller<'g> {
    ground: &'g Ground,
    /// Ids by their first appearance.
    ids: Vec<String>,
    told: Vec<(String, i32, Value)>,
}

impl<'g> Teller<'g> {
    fn new(ground: &'g Ground) -> Teller<'g> {
        Teller { ground, ids: Vec::new(), told: Vec::new() }
    }

    fn tell(&mut self, words: &[&str]) -> Value {
        let output = self.ground.program(words).arg("--json").output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        let last = said.lines().last().unwrap_or_else(|| panic!("{words:?}: {error}"));
        let alike = serde_json::from_str(&self.alike(last)).unwrap();
        let words = self.alike(&words.join(" "));
        self.told.push((words, output.status.code().unwrap(), alike));
        serde_json::from_str(last).unwrap()
    }

    fn alike(&mut self, text: &str) -> String {
        let words = self.ground.store.words();
        let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
        // As a shell reads them back.
        let quoted =
            words.iter().map(|w| if w.contains(' ') { format!("'{w}'") } else { (*w).into() });
        let text = text.replace(&quoted.collect::<Vec<_>>().join(" "), "STORE");
        let folder = self.ground.folder.path().canonicalize().unwrap();
        let text = text.replace(folder.to_str().unwrap(), "GROUND");
        let mut alike = String::new();
        let mut token = String::new();
        for c in text.chars().chain(['\n']) {
            if c.is_ascii_alphanumeric() || c == '-' {
                token.push(c);
                continue;
            }
            alike.push_str(&self.word(&token));
            token.clear();
            alike.push(c);
        }
        alike.truncate(alike.len() - 1);
        alike
    }

    fn word(&mut self, token: &str) -> String {
        let hex = token.chars().all(|c| c.is_ascii_hexdigit());
        let id = token.len() == 36 && token.chars().filter(|c| *c == '-').count() == 4;
        // Microseconds or nanoseconds since 1970.
        if token.len() >= 16 && token.chars().all(|c| c.is_ascii_digit()) {
            return "0".to_owned();
        }
        if id || (hex && token.len() >= 32) {
            let known = self.ids.iter().position(|known| known == token);
            let number = known.unwrap_or_else(|| {
                self.ids.push(token.to_owned());
                self.ids.len() - 1
            });
            return format!("ID{number}");
        }
        // The end of a worktree's folder keeps those of one branch apart.
        match token.rsplit_once('-') {
            Some((name, end)) if end.len() == 12 && end.chars().all(|c| c.is_ascii_hexdigit()) => {
                format!("{name}-END")
            }
            Some(_) | None => token.to_owned(),
        }
    }
}

/// A task's life, seen by every command.
fn story(ground: &Ground) -> Vec<(String, i32, Value)> {
    let host = ground.host_here();
    let (_, made) = settled(ground, &host);
    mark(&made.place.path);
    let mut teller = Teller::new(ground);
    teller.tell(&["settings", "show"]);
    teller.tell(&["settings", "set", "--salvage-limit", "1000000", "--actor", "carol"]);
    teller.tell(&["settings", "set", "--salvage-retention", "1d"]);
    teller.tell(&["doctor"]);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    let listed = teller.tell(&["jobs", "list"]);
    let job = listed["jobs"][0]["job"].as_str().unwrap().to_owned();
    teller.tell(&["jobs", "show", &job]);
    teller.tell(&["jobs", "retry", &job]);
    teller.tell(&["work", "--ticks", "1"]);
    teller.tell(&["work"]);
    teller.tell(&["jobs", "list", "--all"]);
    teller.tell(&["jobs", "cancel", &job]);
    teller.tell(&["jobs", "forget", &uuid_text(1)]);
    teller.tell(&["doctor"]);
    let kept = teller.tell(&["restore", "list"]);
    let salvage = kept["kept"][0]["id"].as_str().unwrap().to_owned();
    teller.tell(&["restore", "show", &salvage]);
    teller.tell(&["restore", &salvage]);
    host.unarchive_task(&ann(), "t", false).unwrap();
    teller.tell(&["restore", &salvage]);
    teller.tell(&["restore", &salvage]);
    teller.tell(&["gc"]);
    std::fs::create_dir(ground.root_path.join("stray")).unwrap();
    teller.tell(&["doctor"]);
    // Trash that is kept, and then is not.
    host.change_settings(
        &ann(),
        |old| freehold_kernel::Settings { trash_retention: Span::hours(1), ..old },
        None,
    )
    .unwrap();
    host.archive_task(&ann(), "t", &Operation::new("p")).unwrap();
    teller.tell(&["work"]);
    teller.tell(&["gc"]);
    ground.store.sql("UPDATE trash SET restorable_until = 1 WHERE state = 'kept' RETURNING 1");
    teller.tell(&["gc"]);
    teller.tell(&["gc", "--yes"]);
    teller.tell(&["restore", "list"]);
    teller.told
}

#[test]
fn a12_every_command_says_of_postgresql_what_it_says_of_sqlite() {
    let file = Ground::on(StorePlace::Sqlite, Clock::System);
    let server = Ground::on(StorePlace::fresh, Clock::System);
    let (on_file, on_server) = (story(&file), story(&server));
    assert_eq!(on_file.len(), on_server.len());
    for (on_file, on_server) in on_file.iter().zip(&on_server) {
        assert_eq!(on_file, on_server);
    }
    // It is a story: things are done, and things are refused.
    let codes: std::collections::BTreeSet<i32> = on_file.iter().map(|(_, code, _)| *code).collect();
    assert!([0, 1, 6].iter().all(|code| codes.contains(code)), "{codes:?}");
    let told = |words: &str| on_server.iter().filter(|(w, ..)| w.starts_with(words)).count();
    for words in ["work", "doctor", "jobs list", "jobs show", "jobs retry", "jobs cancel"] {
        assert!(told(words) > 0, "{words}");
    }
    let yes = on_server.iter().find(|(words, ..)| words == "gc --yes").unwrap();
    assert_eq!(yes.2["trash"].as_array().unwrap().len(), 1, "{yes:?}");
    let rows = rows(&server.host(), &[TableId::Trash, TableId::Salvage]);
    assert!(!rows.view.trash.is_empty() && !rows.view.salvage.is_empty());
}

/// A store on the server, and a role that needs a password to use it.
fn guarded() -> &'static (String, String) {
    static GUARDED: OnceLock<(String, String)> = OnceLock::new();
    GUARDED.get_or_init(|| {
        let ground = Ground::on(StorePlace::fresh, Clock::System);
        let StorePlace::Postgres { schema, .. } = &ground.store else { panic!("not PostgreSQL") };
        drop(ground.host());
        let server = Server::shared();
        super::work_command::guard(server);
        server.sql("postgres", "ALTER ROLE guarded SUPERUSER");
        (format!("postgres://guarded@127.0.0.1:{}/postgres", server.port()), schema.clone())
    })
}

#[test]
fn a_password_comes_from_the_environment_or_the_password_file_and_is_never_said() {
    let (url, schema) = guarded();
    let with = url.replace("guarded@", "guarded:geheim%21right@");
    let port = Server::shared().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("it's mine");
    std::fs::write(&file, format!("*:{port}:postgres:guarded:geheim!right\n")).unwrap();
    let name = file.to_str().unwrap();
    let mode = |mode| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o600);
    let parts = [
        ("PGHOST", "127.0.0.1"),
        ("PGPORT", port.as_str()),
        ("PGUSER", "guarded"),
        ("PGDATABASE", "postgres"),
        ("PGPASSWORD", "geheim!right"),
    ];
    for look in LOOKS {
        let words = |url: &'static str| [look, &["--store", url, "--schema", schema]].concat();
        let url: &'static str = url;
        for (words, variables) in [
            (words(url), &[("PGPASSWORD", "geheim!right")][..]),
            (words(url), &[("PGPASSFILE", name)]),
            (words("postgres://"), &parts),
            ([look, &["--store", &with, "--schema", schema]].concat(), &[]),
        ] {
            let (code, line) = says(&words, variables);
            assert_eq!(code, 0, "{words:?}: {line}");
        }
        // The address wins over the variable, and a wrong one is told as such, with what to do.
        let wrong = url.replace("guarded@", "guarded:geheim@").leak();
        for (words, variables) in
            [(words(wrong), &[("PGPASSWORD", "geheim!right")][..]), (words(url), &[])]
        {
            let (code, line) = says(&words, variables);
            assert_eq!((code, &line["error"]), (4, &"store".into()), "{words:?}: {line}");
            let sentence = line["says"].as_str().unwrap();
            for part in ["refuses this user", "PGPASSWORD", ".pgpass"] {
                assert!(sentence.contains(part), "{part}: {sentence}");
            }
            // The next command is the same login by the server's own program.
            let next = line["next"].as_str().unwrap();
            assert!(next.contains("guarded@"), "{next}");
            assert!(paste(&format!("PGPASSWORD='geheim!right' {next}")).contains("guarded"));
        }
    }
    // One that others can read is not used, until it is theirs no longer.
    mode(0o644);
    let words = ["doctor", "--store", url, "--schema", schema];
    let (code, line) = says(&words, &[("PGPASSFILE", name)]);
    assert_eq!((code, &line["error"]), (3, &"surroundings".into()), "{line}");
    paste(line["next"].as_str().unwrap());
    assert_eq!(says(&words, &[("PGPASSFILE", name)]).0, 0);
    // Who has a home that is none needs no password for that; who is refused is told why the file
    // was not read.
    let open = Server::shared().url("postgres");
    let at = ["tour", "--store", open.as_str()];
    assert_eq!(says(&at, &[("HOME", "/dev/null")]).0, 0);
    std::fs::create_dir(folder.path().join(".pgpass")).unwrap();
    let home = folder.path().to_str().unwrap();
    let (code, line) = says(&words, &[("HOME", home)]);
    assert_eq!((code, &line["error"]), (4, &"store".into()), "{line}");
    assert!(line["says"].as_str().unwrap().contains("cannot be read"), "{line}");
    // Nor is that of the folder one happens to be in.
    let here = folder.path().join("here");
    std::fs::create_dir(&here).unwrap();
    std::fs::rename(&file, here.join(".pgpass")).unwrap();
    let (home, none) = (here.to_str().unwrap(), "");
    for (home, exit) in [(home, 0), (none, 4)] {
        let (code, line) = says_in(&here, &words, &[("HOME", home)]);
        assert_eq!(code, exit, "{home}: {line}");
    }
    // The tour's second process gets it too.
    let (code, line) = says(&["tour", "--store", &with], &[]);
    assert_eq!((code, &line["ok"]), (0, &true.into()), "{line}");
}

#[test]
fn every_command_says_why_a_server_or_a_store_cannot_be_used_and_what_to_do() {
    let server = Server::shared();
    let port = server.port();
    // Nobody listens there: the port was free a moment ago.
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let nobody = free.local_addr().unwrap().port();
    drop(free);
    let schemas =
        || server.sql("postgres", "SELECT count(*) FROM pg_namespace WHERE nspname = 'slip'");
    for look in LOOKS {
        let name = look[0];
        for (address, extra, exit, error, next) in [
            ("postgres://a:geheim@h:port/d", &[][..], 2, "unknown_name", "--help"),
            ("postgres://a:ge@geheim@h/d", &[], 2, "unknown_name", "--help"),
            ("postgresq://a:geheim@h/d", &[], 2, "unknown_name", "--help"),
            ("host=h password=geheim", &[], 2, "unknown_name", "--help"),
            ("postgres:/a:geheim@h/d", &[], 2, "unknown_name", "--help"),
            ("a:geheim@h/d", &[], 2, "unknown_name", "--help"),
            ("some.db", &["--schema", "s"], 2, "unknown_name", "--help"),
            (&format!("postgres://a:geheim@127.0.0.1:{nobody}/d"), &[], 3, "store", "pg_isready"),
            (
                &format!("postgres://postgres:geheim@127.0.0.1:{port}/no_such"),
                &[],
                4,
                "store",
                "psql -h 127.0.0.1",
            ),
            (
                &format!("postgres://postgres:geheim@127.0.0.1:{port}/postgres"),
                &["--schema", "slip"],
                4,
                "store",
                "psql postgres://postgres@127.0.0.1",
            ),
        ] {
            let words = [look, &["--store", address], extra].concat();
            let (code, line) = says(&words, &[]);
            assert_eq!((code, &line["error"]), (exit, &error.into()), "{words:?}: {line}");
            let command = line["next"].as_str().unwrap_or_else(|| panic!("{words:?}: {line}"));
            assert!(command.contains(next), "{words:?}: {command}");
            assert!(line["says"].as_str().unwrap().ends_with(command), "{line}");
            // What asks a server that is there works.
            if !next.starts_with("pg_isready") {
                paste(command);
            }
        }
        let (code, line) = says(look, &[]);
        assert_eq!((code, &line["next"]), (2, &format!("freehold {name} --help").into()), "{line}");
    }
    // None of them made what it did not find.
    assert_eq!((schemas().as_str(), Path::new("some.db").exists()), ("0", false));
}

/// A server with a certificate, of the authority beside it.
fn with_tls() -> Server {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let server = Server::start(&[]).unwrap();
    let folder = server.folder().join("data");
    let owner = std::fs::metadata(&folder).unwrap();
    let tls = Path::new(env!("CARGO_MANIFEST_DIR")).join("../postgres/tests/postgres/tls");
    for name in ["server.pem", "server.key"] {
        let path = folder.join(name);
        std::fs::copy(tls.join(name), &path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    for setting in ["ssl_cert_file = 'server.pem'", "ssl_key_file = 'server.key'", "ssl = on"] {
        server.sql("postgres", &format!("ALTER SYSTEM SET {setting}"));
    }
    server.stop();
    server.start_again();
    server
}

#[test]
fn a_server_that_demands_tls_is_reached_with_the_authorities_that_are_named() {
    let server = with_tls();
    let url = server.url("postgres");
    let tls = Path::new(env!("CARGO_MANIFEST_DIR")).join("../postgres/tests/postgres/tls");
    let file = |name: &str| tls.join(name).to_str().unwrap().to_owned();
    let (ours, others, none) = (file("ca.pem"), file("other.pem"), file("README.md"));
    let must = ("PGSSLMODE", "require");
    let words = ["tour", "--store", url.as_str()];
    // The tour makes, opens in two processes, and clears.
    let (code, line) = says(&words, &[must, ("PGSSLROOTCERT", &ours)]);
    assert_eq!((code, &line["ok"]), (0, &true.into()), "{line}");
    let left = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'freehold%'";
    assert_eq!(server.sql("postgres", left), "0");
    // Who names authorities need not say the mode: a server that has no TLS is not spoken to, unless
    // the mode says that it may be.
    let trust = ("PGSSLROOTCERT", ours.as_str());
    assert_eq!(says(&words, &[trust]).0, 0);
    let plain = Server::shared().url("postgres");
    for look in LOOKS {
        let (code, line) = says(&[look, &["--store", &plain]].concat(), &[trust]);
        assert_eq!((code, &line["error"]), (4, &"store".into()), "{line}");
        let sentence = line["says"].as_str().unwrap();
        assert!(sentence.contains("TLS") && sentence.contains("sslmode=prefer"), "{sentence}");
    }
    let words = ["tour", "--store", plain.as_str()];
    let (code, line) = says(&words, &[trust, ("PGSSLMODE", "prefer")]);
    assert_eq!((code, &line["ok"]), (0, &true.into()), "{line}");
    // Nobody else is trusted, and without TLS nothing is said.
    for variables in [&[must][..], &[must, ("PGSSLROOTCERT", &others)]] {
        let (code, line) = says(&["doctor", "--store", &url], variables);
        assert_eq!((code, &line["error"]), (4, &"store".into()), "{line}");
        assert!(line["says"].as_str().unwrap().contains("PGSSLROOTCERT"), "{line}");
    }
    let (code, line) = says(&["doctor", "--store", &url], &[must, ("PGSSLROOTCERT", &none)]);
    assert_eq!((code, &line["error"]), (3, &"surroundings".into()), "{line}");
}
