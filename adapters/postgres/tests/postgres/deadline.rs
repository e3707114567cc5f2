//! Packets that vanish: one call has one deadline over everything that it waits for and repeats, and
//! says what is known then (A-6, A-11). No time is asserted: a call must end before one statement's
//! own wait would, of which it may send many.

use std::future::Future;
use std::time::Duration;

use freehold_kernel::{Span, TableId};
use freehold_postgres::{Options, PostgresStore};
use freehold_store::{Outcome, Pick, Read, Store, StoreError};

use tokio::sync::oneshot;

use crate::host::{
    Beside, Place, ask, connect, create_session, create_task, create_workspace, done, runtime,
    session, submit,
};
use crate::proxy::{Fate, Proxy};

/// The deadline of a call. A statement is waited for six times as long and more.
const CALL: Duration = Duration::from_secs(5);

fn options(place: &Place) -> Options {
    // As behind a pooler a statement is one request, also the first time.
    Options { call_wait: CALL, connections: 4, pooler: true, notify: false, ..place.options() }
}

/// Through the proxy, with the deadline.
fn open(place: &Place, proxy: &Proxy) -> PostgresStore {
    let mut config = proxy.config();
    config.application_name(&place.schema);
    connect(config, options(place)).unwrap()
}

/// Carries out a call, which must end before one statement's own wait does.
async fn in_time<T>(call: impl Future<Output = T>) -> T {
    let one = Options::default().statement_wait;
    tokio::select! {
        biased;
        done = call => done,
        () = tokio::time::sleep(one) => panic!("the call outlasts its deadline"),
    }
}

/// It may be tried again, and says where the deadline is set.
fn is_late<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    let error = answer.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    assert!(error.may_pass_later() && error.to_string().contains("call_wait"), "{error}");
}

#[test]
fn a06_no_call_outlasts_its_deadline_when_packets_vanish() {
    let (place, proxy) = (Place::new(), Proxy::start());
    let store = open(&place, &proxy);
    done(&store, &create_workspace("w"));
    let mut host = Beside::connect(&proxy.config());
    let pick = Pick {
        instance: "i".to_owned(),
        machine: "m".to_owned(),
        limit: 4,
        hold: Span::seconds(1),
        tried: Vec::new(),
    };
    let fresh = PostgresStore::connect(proxy.config(), options(&place));
    let (task, asked) = (create_task("t"), ask("r", |c| crate::host::task(c, "t")));
    let reads = [Read::all(TableId::Tasks)];
    runtime().block_on(async {
        let mut transaction = host.client.transaction().await.unwrap();
        proxy.vanish();
        // All at once: each ends by its own deadline.
        let (read, journal, picked, submitted, again, within, opened) = tokio::join!(
            in_time(store.read(&reads)),
            in_time(store.journal(0, 10)),
            in_time(store.pick(&pick)),
            in_time(store.submit(&task)),
            in_time(store.submit(&asked)),
            in_time(store.submit_in(&mut transaction, &task)),
            in_time(fresh),
        );
        is_late(read);
        is_late(journal);
        is_late(picked);
        // No commit was sent: what nobody answered was a question.
        is_late(submitted);
        is_late(again);
        is_late(within);
        is_late(opened);
    });
    // Nothing was done, and the store is as good as before once somebody answers.
    proxy.heal();
    assert_eq!(place.ids("tasks"), [""; 0]);
    done(&store, &create_task("t"));
    assert_eq!(place.ids("tasks"), ["t"]);
}

#[test]
fn a06_a_commit_that_nobody_answered_before_the_deadline_is_unknown_and_found_by_its_request() {
    for carried in [true, false] {
        let (place, proxy) = (Place::new(), Proxy::start());
        let store = open(&place, &proxy);
        done(&store, &create_workspace("w"));
        done(&store, &create_task("t"));
        let ask = ask("r", |c| session(c, "asked", "t"));
        for submission in [&create_session("said", "t"), &ask] {
            // One request reads, the next commits.
            proxy.plan(1, Fate::Vanish { carried });
            let answer = runtime().block_on(in_time(store.submit(submission)));
            let error = answer.unwrap_err();
            assert!(matches!(error, StoreError::Unknown { .. }), "{carried}: {error}");
            proxy.heal();
        }
        // The server goes on with what reached it, whoever went away.
        let beside = place.beside();
        let count = "SELECT count(*) FROM task_sessions";
        beside.until(count, if carried { 2 } else { 0 });
        // The same request tells, and it is done once.
        match submit(&store, &ask).unwrap() {
            Outcome::Accepted(accepted) => assert_eq!(accepted.replayed, carried),
            Outcome::Refused(refused) => panic!("{refused}"),
        }
        let sessions = if carried { vec!["asked", "said"] } else { vec!["asked"] };
        assert_eq!(place.ids("task_sessions"), sessions);
    }
}

/// One answer that stays out says it of those that idle, too: a call does not wait for each.
#[test]
fn a06_a_call_does_not_try_every_dead_connection_of_the_pool() {
    let (place, proxy) = (Place::new(), Proxy::start());
    let options = Options {
        statement_wait: Duration::from_secs(3),
        answer_wait: Duration::from_secs(1),
        call_wait: Duration::from_secs(300),
        ..options(&place)
    };
    let mut config = proxy.config();
    config.application_name(&place.schema);
    let store = connect(config, options).unwrap();
    done(&store, &create_workspace("w"));
    let beside = place.beside();
    let open = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}' \
         AND pid <> pg_backend_pid()",
        place.schema
    );
    let reads = [Read::all(TableId::Tasks)];
    while beside.number(&open) < 3 {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| pollster::block_on(store.read(&reads)).unwrap());
            }
        });
    }
    proxy.forsake();
    done(&store, &create_task("t"));
    assert_eq!(store.metrics().connections_lost, 1);
    assert_eq!(place.ids("tasks"), ["t"]);
}

/// What the end of one call says of its own connection, it does not say of those that idle.
#[test]
fn a06_a_call_at_its_end_leaves_the_others_in_the_pool() {
    let (place, proxy) = (Place::new(), Proxy::start());
    let store = open(&place, &proxy);
    done(&store, &create_workspace("w"));
    let reads = [Read::all(TableId::Tasks)];
    let read = || pollster::block_on(store.read(&reads));
    // One is held, the other opens a second connection and goes back to the pool.
    let mut held = proxy.hold(0);
    std::thread::scope(|scope| {
        scope.spawn(|| is_late(runtime().block_on(in_time(store.read(&reads)))));
        held.wait();
        read().unwrap();
    });
    let before = proxy.connections();
    read().unwrap();
    assert_eq!(proxy.connections(), before);
    held.go();
}

/// Once the server was told that a command is a part of the host's transaction, nothing undoes it:
/// an answer that comes after the end of the call is an answer, and none is unknown, never a failure
/// after which the host could commit its own rows.
#[test]
fn a07_a_command_that_the_host_may_commit_is_not_said_to_be_undone() {
    let (place, vanished, theirs) = (Place::new(), Proxy::start(), Proxy::start());
    let mut options = options(&place);
    let mut config = vanished.config();
    config.application_name(&place.schema);
    // It reads the isolation, makes a savepoint, reads, writes, and releases.
    let release = 4;

    options.answer_wait = Duration::from_secs(300);
    let store = connect(config.clone(), options.clone()).unwrap();
    done(&store, &create_workspace("w"));
    let mut host = Beside::connect(&theirs.config());
    place.beside().run("CREATE TABLE host (id text)");
    let insert = format!("INSERT INTO \"{}\".host VALUES ('h')", place.schema);
    let (late, soon) = (create_task("late"), create_task("soon"));
    let reads = [Read::all(TableId::Tasks)];
    let (arrived, arrives) = oneshot::channel();
    let (go, goes) = oneshot::channel();
    runtime().block_on(async {
        let mut transaction = host.client.transaction().await.unwrap();
        transaction.batch_execute(&insert).await.unwrap();
        theirs.plan(release, Fate::Hold(arrived, goes));
        let (done, ()) = tokio::join!(store.submit_in(&mut transaction, &late), async {
            arrives.await.unwrap();
            // A call that begins now is over: so is the time of the one that began before.
            vanished.vanish();
            is_late(in_time(store.read(&reads)).await);
            go.send(()).unwrap();
        });
        done.unwrap().accepted().unwrap();
        transaction.commit().await.unwrap();
    });
    assert_eq!((place.ids("host"), place.ids("tasks")), (vec!["h".into()], vec!["late".into()]));

    options.answer_wait = Duration::from_secs(1);
    vanished.heal();
    let store = connect(config, options).unwrap();
    let pid: i32 = runtime().block_on(async {
        let mut transaction = host.client.transaction().await.unwrap();
        let row = transaction.query_one("SELECT pg_backend_pid()", &[]).await.unwrap();
        theirs.plan(release, Fate::Vanish { carried: true });
        let error = in_time(store.submit_in(&mut transaction, &soon)).await.unwrap_err();
        let told = matches!(&error, StoreError::Unknown { detail } if detail.contains("roll"));
        assert!(told, "{error}");
        row.get(0)
    });
    drop(host);
    // Its driver waits for the answer for ever, and the other tests' readers would wait for its
    // transaction.
    place.sql(&format!("SELECT pg_terminate_backend({pid})"));
    assert_eq!(place.ids("tasks"), ["late"]);
}
