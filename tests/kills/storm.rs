//! One round: instances at work, and faults that come between what they do.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command as Program, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use freehold_kernel::*;
use freehold_pg_server::Server;
use freehold_store::Clock;

use crate::draw::Draw;
use crate::instance;
use crate::support::*;

/// How long the instances may be silent together: they wait for locks, leases and the store, none
/// of which takes that long.
const SILENCE: Duration = Duration::from_secs(90);

/// One ground with its store and its root, for several rounds.
pub(crate) struct Arena {
    pub(crate) ground: Ground,
    root: String,
}

impl Arena {
    pub(crate) fn new(server: Option<&Server>) -> Arena {
        let ground = Ground::on(
            |file| match server {
                Some(server) => StorePlace::Postgres {
                    url: server.url("postgres"),
                    schema: format!("kills {}", uuid::Uuid::now_v7().simple()),
                },
                None => StorePlace::Sqlite(file),
            },
            Clock::System,
        );
        std::fs::create_dir(ground.folder.path().join("markers")).unwrap();
        let host = ground.host();
        if let Some(server) = server {
            server.sql("postgres", &watched(&ground));
        }
        let settings = Settings {
            lease: Span(1_000_000),
            renew: Span(300_000),
            removal_lease: Span(2_000_000),
            max_tries: 1_000,
            retry_1: Span(200_000),
            retry_2: Span(200_000),
            retry_3: Span(200_000),
            retry_4: Span(200_000),
            retry_5: Span(200_000),
            retry_6: Span(200_000),
            retry_7: Span(200_000),
            ..Settings::DEFAULT
        };
        let change = OperatorCommand::ChangeSettings { settings };
        host.ask(&ann(), None, |_| Ok(Command::Operator(change))).unwrap();
        workspace(&host, "w");
        let root = host.register_root(&ann(), &ground.root_path).unwrap();
        Arena { ground, root }
    }

    /// Leaves the folder for looking.
    pub(crate) fn keep(self) -> PathBuf {
        self.ground.folder.keep()
    }
}

/// Makes commits late, so that instances meet between a read and its commit; and writes down every
/// row that is written over although it changed since it was read. The version that a decision was
/// made on is one less than the one that it writes: this is looked at apart from the store's own
/// look (A-12).
fn watched(ground: &Ground) -> String {
    let StorePlace::Postgres { schema, .. } = &ground.store else { return String::new() };
    format!(
        r#"SET search_path TO "{schema}";
        CREATE TABLE written_over (of text, id text, was bigint, became bigint);
        CREATE FUNCTION write_down() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO "{schema}".written_over
            VALUES (TG_TABLE_NAME, OLD.id::text, OLD.version, NEW.version);
            RETURN NULL;
        END $$;
        CREATE FUNCTION come_late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF random() < 0.25 THEN PERFORM pg_sleep(random() * 0.02); END IF;
            RETURN NULL;
        END $$;
        CREATE TRIGGER come_late AFTER INSERT ON journal
            FOR EACH STATEMENT EXECUTE FUNCTION come_late();
        DO $$ DECLARE t text; BEGIN
            FOR t IN SELECT table_name FROM information_schema.columns
                WHERE table_schema = '{schema}' AND column_name = 'version' LOOP
                EXECUTE format('CREATE TRIGGER write_down AFTER UPDATE ON %I FOR EACH ROW
                    WHEN (NEW.version <> OLD.version + 1) EXECUTE FUNCTION write_down()', t);
            END LOOP;
        END $$;"#
    )
}

/// Rows that were written over although they had changed since they were read.
pub(crate) fn written_over(arena: &Arena, server: Option<&Server>) -> String {
    match (server, &arena.ground.store) {
        (Some(server), StorePlace::Postgres { schema, .. }) => server.sql(
            "postgres",
            &format!(r#"SELECT DISTINCT of, id, was, became FROM "{schema}".written_over"#),
        ),
        _none => String::new(),
    }
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(BTreeMap<String, usize>);

impl Seen {
    fn count(&mut self, what: &str) {
        self.put(what, 1);
    }

    pub(crate) fn put(&mut self, what: &str, n: usize) {
        *self.0.entry(what.to_owned()).or_default() += n;
    }

    pub(crate) fn of(&self, what: &str) -> usize {
        self.0.get(what).copied().unwrap_or(0)
    }

    /// What was said of each kind of request: "done: archive" and the others count as "done".
    pub(crate) fn short(&self) -> Seen {
        let mut short = Seen::default();
        for (what, n) in &self.0 {
            short.put(what.split(": ").next().unwrap(), *n);
        }
        short
    }

    pub(crate) fn add(&mut self, other: &Seen) {
        for (what, n) in &other.0 {
            self.put(what, *n);
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(|(what, n)| format!("{n} {what}")).collect();
        write!(f, "{}", words.join(", "))
    }
}

/// A process; killed when dropped, whatever becomes of the test.
struct Process(Child);

impl Process {
    fn start(arena: &Arena, seeds: [u64; 3], words: Sender<String>) -> Process {
        let seeds = seeds.map(|s| s.to_string()).join(" ");
        let mut child = Program::new(std::env::current_exe().unwrap())
            .args(["instance::kills_the_instance", "--exact", "--nocapture", "--test-threads=1"])
            .env(instance::STORE, arena.ground.store.text())
            .env(instance::FOLDER, arena.ground.folder.path().canonicalize().unwrap())
            .env(instance::ROOT, &arena.root)
            .env(instance::SEED, seeds)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if let Some(word) = line.strip_prefix("KILLS ")
                    && words.send(word.to_owned()).is_err()
                {
                    return;
                }
            }
        });
        Process(child)
    }

    /// Stops it or lets it go on.
    fn signal(&self, signal: &str) {
        let id = self.0.id().to_string();
        assert!(Program::new("kill").args([signal, &id]).status().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGKILL, also of one that is stopped.
        self.0.kill().unwrap();
        let ended = self.0.wait().unwrap();
        let killed = std::os::unix::process::ExitStatusExt::signal(&ended) == Some(9);
        if !killed && !std::thread::panicking() {
            panic!("an instance ended by itself: {ended}");
        }
    }
}

/// Waits until the instances have done so much more.
fn wait_for(words: &Receiver<String>, how_many: usize, seen: &mut Seen) {
    for _ in 0..how_many {
        let word = words.recv_timeout(SILENCE).expect("the instances stand still");
        assert!(!word.starts_with("broken"), "{word}");
        seen.count(&word);
    }
}

/// Lets instances work, and faults happen, as drawn.
pub(crate) fn round(arena: &Arena, server: Option<&Server>, seed: u64, round: u64) -> Seen {
    let mut draw = Draw::new(&[seed, round]);
    let mut seen = Seen::default();
    let (sender, words) = channel();
    let mut number = 0;
    let mut fresh = || {
        number += 1;
        Process::start(arena, [seed, round, number], sender.clone())
    };
    let mut at_work: Vec<Process> = Vec::new();
    at_work.resize_with(if server.is_some() { 3 } else { 1 }, &mut fresh);
    let faults = 3 + draw.below(4);
    for _ in 0..faults {
        wait_for(&words, 1 + draw.below(40 * at_work.len()), &mut seen);
        // A drawn moment of what is being done now; nothing is waited for.
        std::thread::sleep(Duration::from_millis(draw.below(40).try_into().unwrap()));
        let victim = draw.below(at_work.len());
        let kind = draw.below(if server.is_some() { 12 } else { 1 });
        match (kind, server) {
            (8..=9, Some(server)) => {
                cut_off(server, arena);
                seen.count("connections cut");
            }
            (10, Some(server)) => {
                server.kill();
                server.start_again();
                seen.count("server crashes");
            }
            (11, Some(_)) => {
                // The others go on past its leases, and it goes on past them.
                at_work[victim].signal("-STOP");
                wait_for(&words, 2 + draw.below(60), &mut seen);
                at_work[victim].signal("-CONT");
                seen.count("stopped and gone on");
            }
            _kill => {
                drop(at_work.swap_remove(victim));
                seen.count("kill -9");
                at_work.push(fresh());
            }
        }
    }
    wait_for(&words, 1 + draw.below(20), &mut seen);
    std::thread::sleep(Duration::from_millis(draw.below(40).try_into().unwrap()));
    for process in at_work {
        drop(process);
        seen.count("kill -9");
    }
    // What they said before they died counts too.
    drop(sender);
    while let Ok(word) = words.recv_timeout(SILENCE) {
        assert!(!word.starts_with("broken"), "{word}");
        seen.count(&word);
    }
    seen
}

/// `pg_terminate_backend` for every connection to the store.
fn cut_off(server: &Server, arena: &Arena) {
    let StorePlace::Postgres { schema, .. } = &arena.ground.store else { return };
    server.sql(
        "postgres",
        &format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE application_name = '{schema}'"
        ),
    );
}
