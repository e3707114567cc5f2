//! A server that does not let us in, or cannot do it now: typed, retryable or not, with what to
//! do, and nothing half-applied.

use std::time::Duration;

use freehold_pg_server::Server;
use freehold_postgres::Options;
use freehold_store::store::dump;
use freehold_store::{Outcome, StoreError};
use tokio_postgres::Config;

use crate::host::{
    DATABASE, Place, connect, create_session, create_task, create_workspace, done, server, submit,
};

/// As somebody whose password is looked at.
fn guarded(place: &Place, password: Option<&str>) -> Config {
    static MADE: std::sync::Once = std::sync::Once::new();
    MADE.call_once(|| {
        server().sql("postgres", "CREATE ROLE guarded LOGIN PASSWORD 'right'");
    });
    let mut config = place.config();
    config.user("guarded");
    if let Some(password) = password {
        config.password(password);
    }
    config
}

#[test]
fn a_server_that_cannot_be_reached() {
    let place = Place::new();
    let mut config = Config::new();
    // Nobody listens on the port of a server that is gone.
    let gone = Server::start(&[]).unwrap();
    config.host("127.0.0.1").port(gone.port()).user("postgres").dbname("postgres");
    drop(gone);
    let error = connect(config, place.options()).unwrap_err();
    assert!(matches!(&error, StoreError::Unavailable { detail } if detail.contains("127.0.0.1")));
    assert!(error.may_pass_later());
}

#[test]
fn a_wrong_password_and_none() {
    let place = Place::new();
    for password in [Some("wrong"), None] {
        let error = connect(guarded(&place, password), place.options()).unwrap_err();
        assert!(matches!(error, StoreError::Denied { .. }), "{error}");
        assert!(!error.may_pass_later() && !error.to_string().contains("wrong\""), "{error}");
    }
    let mut config = guarded(&place, Some("right"));
    config.user("nobody_knows");
    let error = connect(config, place.options()).unwrap_err();
    assert!(matches!(error, StoreError::Denied { .. }), "{error}");
}

#[test]
fn a_database_that_is_not_there() {
    let place = Place::new();
    let mut config = place.config();
    config.dbname("nowhere");
    let error = connect(config, place.options()).unwrap_err();
    assert!(matches!(&error, StoreError::NotAStore { detail, .. } if detail.contains("nowhere")));
}

#[test]
fn rights_that_are_missing() {
    let place = Place::new();
    let config = guarded(&place, Some("right"));
    // To make the schema.
    let error = connect(config.clone(), place.options()).unwrap_err();
    assert!(matches!(error, StoreError::Denied { .. }), "{error}");
    // To read what another made.
    let store = place.open();
    done(&store, &create_workspace("w"));
    let error = connect(config.clone(), place.options()).unwrap_err();
    assert!(matches!(error, StoreError::Denied { .. }), "{error}");
    // To write it.
    place.sql(&format!(
        "GRANT USAGE ON SCHEMA \"{0}\" TO guarded; \
         GRANT SELECT ON ALL TABLES IN SCHEMA \"{0}\" TO guarded",
        place.schema
    ));
    let reader = connect(config, place.options()).unwrap();
    assert_eq!(pollster::block_on(dump(&reader)), pollster::block_on(dump(&store)));
    let before = pollster::block_on(dump(&store)).unwrap();
    let error = submit(&reader, &create_task("t")).unwrap_err();
    assert!(matches!(error, StoreError::Denied { .. }), "{error}");
    assert!(!error.may_pass_later());
    assert_eq!(pollster::block_on(dump(&store)).unwrap(), before);
}

#[test]
fn a_replica_that_may_only_be_read_and_a_primary_that_became_one() {
    let server = Server::start(&[]).unwrap();
    server.create_database("d");
    let place = Place::new();
    let config: Config = server.url("d").parse().unwrap();
    let store = connect(config.clone(), place.options()).unwrap();
    done(&store, &create_workspace("w"));
    server.become_standby();
    let error = submit(&store, &create_task("t")).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    assert!(!error.may_pass_later());
    let error = connect(config, place.options()).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    // Reading goes on.
    assert_eq!(pollster::block_on(dump(&store)).unwrap()["workspaces"].len(), 1);
}

#[test]
fn an_encoding_that_cannot_hold_every_text() {
    server().sql(
        "postgres",
        "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
    );
    let place = Place::new();
    let mut config = place.config();
    config.dbname("latin");
    let error = connect(config, place.options()).unwrap_err();
    assert!(matches!(&error, StoreError::NotAStore { detail, .. } if detail.contains("UTF8")));
    let schemas =
        server().sql("latin", "SELECT count(*) FROM pg_namespace WHERE nspname ~ '^Store'");
    assert_eq!(schemas, "0");
}

#[test]
fn a_pool_that_is_exhausted() {
    let place = Place::new();
    let options = Options {
        connections: 1,
        notify: false,
        pool_wait: Duration::from_millis(50),
        ..place.options()
    };
    let store = place.try_open(options).unwrap();
    done(&store, &create_workspace("w"));
    done(&store, &create_task("t"));
    // Its one connection waits for a lock that somebody else has.
    let beside = place.beside();
    beside.run("BEGIN; SELECT 1 FROM tasks FOR UPDATE");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| submit(&store, &create_session("s1", "t")));
        beside.until(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
             AND query LIKE '%' || current_schema() || '%'",
            1,
        );
        let error = submit(&store, &create_session("s2", "t")).unwrap_err();
        assert!(matches!(&error, StoreError::Busy { detail } if detail.contains("connections")));
        assert!(error.may_pass_later());
        beside.run("COMMIT");
        assert!(matches!(waits.join().unwrap(), Ok(Outcome::Accepted(_))));
    });
    done(&store, &create_session("s2", "t"));
}

#[test]
fn a_lock_and_a_statement_that_take_too_long() {
    let short = Duration::from_millis(100);
    for (lock_wait, statement_wait) in
        [(short, Duration::from_secs(60)), (Duration::from_secs(60), short)]
    {
        let place = Place::new();
        let options = Options { lock_wait, statement_wait, ..place.options() };
        place.open();
        let store = place.try_open(options).unwrap();
        done(&store, &create_workspace("w"));
        done(&store, &create_task("t"));
        let before = pollster::block_on(dump(&store)).unwrap();
        let beside = place.beside();
        beside.run("BEGIN; SELECT 1 FROM tasks FOR UPDATE");
        let error = submit(&store, &create_session("s", "t")).unwrap_err();
        assert!(matches!(error, StoreError::Busy { .. }), "{error}");
        assert!(error.may_pass_later());
        // Readers do not wait.
        assert_eq!(pollster::block_on(dump(&store)).unwrap(), before);
        beside.run("COMMIT");
        done(&store, &create_session("s", "t"));
    }
}

#[test]
fn a_disk_that_is_full() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    let before = pollster::block_on(dump(&store)).unwrap();
    place.sql(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS \
         $$BEGIN RAISE 'could not extend file: No space left on device' \
         USING ERRCODE = 'disk_full'; END$$; \
         CREATE TRIGGER full_disk AFTER INSERT ON journal FOR EACH ROW \
         EXECUTE FUNCTION full_disk()",
    );
    let error = submit(&store, &create_task("t")).unwrap_err();
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error}");
    assert!(error.may_pass_later());
    assert_eq!(pollster::block_on(dump(&store)).unwrap(), before);
    place.sql("DROP TRIGGER full_disk ON journal");
    done(&store, &create_task("t"));
}

#[test]
fn too_many_connections_for_the_server() {
    let server =
        Server::start(&[("max_connections", "5"), ("superuser_reserved_connections", "0")])
            .unwrap();
    let config: Config = server.url("postgres").parse().unwrap();
    let place = Place::new();
    let store = connect(config.clone(), Options { connections: 1, ..place.options() }).unwrap();
    let held: Vec<_> = (0..4).map(|_| crate::host::Beside::connect(&config)).collect();
    let error = connect(config, place.options()).unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    drop(held);
    done(&store, &create_workspace("w"));
}

#[test]
fn a_text_that_the_server_cannot_hold() {
    let place = Place::new();
    let store = place.open();
    let mut composer =
        freehold_store::Composer::new("ann", freehold_kernel::Permissions::ALL).unwrap();
    let workspace = composer.id::<freehold_kernel::WorkspaceId>("w").unwrap();
    composer.content(freehold_kernel::TableId::Workspaces, workspace.0, "name", "a\0b");
    let command = freehold_kernel::TaskCommand::CreateWorkspace { workspace };
    let submission = composer.submit(freehold_kernel::Command::Task(command));
    let error = submit(&store, &submission).unwrap_err();
    assert!(
        matches!(error, StoreError::Name(freehold_store::NameError::Nul { .. }))
            && !error.may_pass_later(),
        "{error}"
    );
    assert!(place.ids("workspaces").is_empty());
    assert_eq!(server().sql(DATABASE, "SELECT 1"), "1");
}

/// The look at what a schema has become needs a connection, and the pool's only one was in use by
/// the command that found it out.
#[test]
fn a_newer_schema_is_said_with_one_connection_too() {
    let place = Place::new();
    let store = place
        .try_open(Options { connections: 1, pool_wait: Duration::from_secs(3), ..place.options() })
        .unwrap();
    place.sql("INSERT INTO freehold_schema VALUES (99, 'x', 0); DROP FUNCTION commit_1");
    let error = submit(&store, &create_workspace("w")).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 99, known: 1, .. }), "{error}");
}

/// What is beyond a limit of the server stays beyond it: nobody is told to try again.
#[test]
fn a_limit_of_the_server_does_not_pass() {
    let place = Place::new();
    let store = place.open();
    place.sql(
        "CREATE FUNCTION limited() RETURNS trigger LANGUAGE plpgsql AS \
         $$BEGIN RAISE EXCEPTION 'too long' USING ERRCODE = 'program_limit_exceeded'; END$$; \
         CREATE TRIGGER limited AFTER INSERT ON journal FOR EACH ROW EXECUTE FUNCTION limited()",
    );
    let error = submit(&store, &create_workspace("w")).unwrap_err();
    assert!(matches!(&error, StoreError::Defect { detail } if detail.contains("54000")), "{error}");
    assert!(!error.may_pass_later());
    assert!(place.ids("workspaces").is_empty());
}

/// A server that says that it does not know says as much as one that says nothing (D-19): 40003,
/// as a relay before a server that was lost while it committed.
#[test]
fn a_commit_whose_end_the_server_does_not_know_is_unknown() {
    let place = Place::new();
    let store = place.open();
    place.sql(
        "CREATE FUNCTION open() RETURNS trigger LANGUAGE plpgsql AS \
         $$BEGIN RAISE EXCEPTION 'lost it' USING ERRCODE = 'statement_completion_unknown'; END$$; \
         CREATE CONSTRAINT TRIGGER open AFTER INSERT ON journal DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION open()",
    );
    let error = submit(&store, &create_workspace("w")).unwrap_err();
    assert!(
        matches!(&error, StoreError::Unknown { detail } if detail.contains("40003")),
        "{error}"
    );
}
