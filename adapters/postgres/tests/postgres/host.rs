//! A host that speaks to a store in the tests.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use freehold_kernel::{
    Command, Permissions, SessionCommand, SessionId, SessionSource, TaskCommand, TaskId, TaskKind,
    Time, WorkspaceId,
};
use freehold_pg_server::Server;
use freehold_postgres::{Options, PostgresStore};
use freehold_store::store::JournalRow;
use freehold_store::{Clock, Composer, Outcome, Store, StoreError, Submission};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, Config, NoTls};

/// The database that the tests of this binary share; each has a schema of its own in it.
pub(crate) const DATABASE: &str = "freehold_tests";

/// The server of this binary.
pub(crate) fn server() -> &'static Server {
    static READY: OnceLock<()> = OnceLock::new();
    let server = Server::shared();
    READY.get_or_init(|| server.create_database(DATABASE));
    server
}

/// The host's runtime.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2).enable_all().build().unwrap()
    })
}

/// A schema for a store.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) schema: String,
    pub(crate) clock: Clock,
}

impl Place {
    pub(crate) fn new() -> Place {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        Place {
            // A name that has to be quoted.
            schema: format!("Store {}", NUMBER.fetch_add(1, Ordering::SeqCst)),
            clock: Clock::manual(Time(1_000_000_000_000)),
        }
    }

    pub(crate) fn config(&self) -> Config {
        let mut config: Config = server().url(DATABASE).parse().unwrap();
        config.application_name(&self.schema);
        config
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            schema: self.schema.clone(),
            clock: self.clock.clone(),
            connections: 8,
            runtime: Some(runtime().handle().clone()),
            ..Options::default()
        }
    }

    pub(crate) fn open(&self) -> PostgresStore {
        self.try_open(self.options()).unwrap()
    }

    pub(crate) fn try_open(&self, options: Options) -> Result<PostgresStore, StoreError> {
        connect(self.config(), options)
    }

    /// Statements of another user of the database, with the schema as their only one.
    pub(crate) fn sql(&self, text: &str) -> String {
        server().sql(DATABASE, &format!("SET search_path TO \"{}\"; {text}", self.schema))
    }

    /// A connection of another user of the database, with the schema as its only one.
    pub(crate) fn beside(&self) -> Beside {
        let beside = Beside::connect(&self.config());
        beside.run(&format!("SET search_path TO \"{}\"", self.schema));
        beside
    }

    /// The ids in a table.
    pub(crate) fn ids(&self, table: &str) -> Vec<String> {
        let text = self.sql(&format!("SELECT id FROM {table} ORDER BY id"));
        text.lines().map(str::to_owned).collect()
    }
}

/// Opens a store as somebody without a runtime does.
pub(crate) fn connect(config: Config, options: Options) -> Result<PostgresStore, StoreError> {
    pollster::block_on(PostgresStore::connect(config, options))
}

/// A connection without Freehold.
pub(crate) struct Beside {
    pub(crate) client: Client,
}

impl Beside {
    pub(crate) fn connect(config: &Config) -> Beside {
        let client = runtime().block_on(async {
            let (client, connection) = config.connect(NoTls).await.unwrap();
            tokio::spawn(connection);
            client
        });
        Beside { client }
    }

    pub(crate) fn run(&self, text: &str) {
        self.try_run(text).unwrap();
    }

    pub(crate) fn try_run(&self, text: &str) -> Result<(), tokio_postgres::Error> {
        runtime().block_on(self.client.batch_execute(text))
    }

    /// The first column of every row, as text.
    pub(crate) fn texts(&self, text: &str) -> Vec<String> {
        let rows = runtime().block_on(self.client.query(text, &[])).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    pub(crate) fn number(&self, text: &str) -> i64 {
        runtime().block_on(self.client.query_one(text, &[])).unwrap().get(0)
    }

    /// Looks until it is so: for what the server does in its own time.
    pub(crate) fn until(&self, text: &str, wanted: i64) {
        let began = std::time::Instant::now();
        loop {
            let found = self.number(text);
            if found == wanted {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{text}: {found}, not {wanted}");
            std::thread::sleep(Duration::from_millis(5));
        }
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
    Command::Task(TaskCommand::Create {
        task: c.id::<TaskId>(task).unwrap(),
        workspace: c.id::<WorkspaceId>("w").unwrap(),
        parent: None,
        kind: TaskKind::Standard,
        expires_at: None,
    })
}

pub(crate) fn create_task(name: &str) -> Submission {
    say(|c| task(c, name))
}

pub(crate) fn session(c: &mut Composer, session: &str, task: &str) -> Command {
    Command::Session(SessionCommand::Create {
        session: c.id::<SessionId>(session).unwrap(),
        task: c.id::<TaskId>(task).unwrap(),
        environment: None,
        source: SessionSource::Person,
        parent: None,
    })
}

pub(crate) fn create_session(name: &str, task: &str) -> Submission {
    say(|c| session(c, name, task))
}

pub(crate) fn submit(store: &impl Store, submission: &Submission) -> Result<Outcome, StoreError> {
    pollster::block_on(store.submit(submission))
}

/// The journal after a position, once it has this many lines: behind numbers that will never come
/// a reader waits for transactions of whomever, other tests among them.
pub(crate) fn journal(store: &impl Store, after: i64, wanted: usize) -> Vec<JournalRow> {
    let began = std::time::Instant::now();
    loop {
        let lines = pollster::block_on(store.journal(after, 10_000)).unwrap();
        if lines.len() >= wanted {
            return lines;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{wanted} lines wanted: {lines:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Submits what must be accepted.
pub(crate) fn done(store: &impl Store, submission: &Submission) {
    match submit(store, submission) {
        Ok(Outcome::Accepted(_)) => {}
        Ok(Outcome::Refused(refused)) => panic!("{refused}"),
        Err(error) => panic!("{error}"),
    }
}
