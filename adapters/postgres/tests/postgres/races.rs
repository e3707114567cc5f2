//! Several instances on one schema: whoever was slower decides again, and every command ends.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use freehold_kernel::{Command, Guard, OperatorCommand, SystemCommand, TableId};
use freehold_postgres::{Options, PostgresStore};
use freehold_store::{Composer, Outcome, Read, Store};

use crate::host::{
    Place, connect, create_session, create_task, create_workspace, done, journal, say, submit,
};
use crate::proxy::Proxy;

/// How many clients, and how many commands each.
const CLIENTS: usize = 32;
const EACH: usize = 8;

#[test]
fn under_contention_on_one_task_every_command_ends() {
    let place = Place::new();
    let stores: Vec<PostgresStore> = (0..4).map(|_| place.open()).collect();
    done(&stores[0], &create_workspace("w"));
    done(&stores[0], &create_task("t"));
    let start = Barrier::new(CLIENTS);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (store, start) = (&stores[client % stores.len()], &start);
            scope.spawn(move || {
                start.wait();
                for n in 0..EACH {
                    done(store, &create_session(&format!("s-{client}-{n}"), "t"));
                }
            });
        }
    });
    assert_eq!(place.ids("task_sessions").len(), CLIENTS * EACH);
    // Every one of them grew the version of the anchor (D-23).
    let version = place.sql("SELECT version FROM tasks");
    assert_eq!(version.parse::<usize>().unwrap(), 1 + CLIENTS * EACH);
    let sum = |of: fn(&PostgresStore) -> u64| stores.iter().map(of).sum::<u64>();
    println!(
        "{} commands of {CLIENTS} clients on one task: {} decided again, {} locked first, {} undone by the server",
        CLIENTS * EACH,
        sum(|s| s.metrics().decided_again),
        sum(|s| s.metrics().locked_first),
        sum(|s| s.metrics().undone_by_server),
    );
    // The journal tells it in the order in which it happened.
    let journal = journal(&stores[0], 0, 3 + CLIENTS * EACH);
    let created = journal.iter().filter(|l| l.columns["event"] == "session_created").count();
    assert_eq!(created, CLIENTS * EACH);
}

fn instance(store: &impl Store) {
    done(
        store,
        &say(|c| {
            let (instance, host) = (c.id("process 1").unwrap(), c.id("laptop").unwrap());
            Command::System(SystemCommand::RegisterInstance { instance, host })
        }),
    );
}

fn register_root(c: &mut Composer, root: &str, path: &str) -> Command {
    Command::Operator(OperatorCommand::RegisterRoot {
        root: c.id(root).unwrap(),
        host: c.id("laptop").unwrap(),
        path: c.text(path).unwrap(),
    })
}

/// No row is the anchor of "the roots at this path": its value is guarded.
#[test]
fn what_is_absent_for_all_is_added_by_one() {
    let place = Place::new();
    let stores: Vec<PostgresStore> = (0..4).map(|_| place.open()).collect();
    instance(&stores[0]);
    for round in 0..25 {
        let path = format!("/trees/{round}");
        let (start, accepted) = (Barrier::new(stores.len()), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for (n, store) in stores.iter().enumerate() {
                let (start, accepted, path) = (&start, &accepted, &path);
                scope.spawn(move || {
                    let submission = say(|c| register_root(c, &format!("root {round} {n}"), path));
                    start.wait();
                    if let Outcome::Accepted(_) = submit(store, &submission).unwrap() {
                        accepted.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(accepted.into_inner(), 1, "{path}");
    }
    assert_eq!(place.ids("managed_roots").len(), 25);
}

/// The same, each step in its place: the second decided before the first committed.
#[test]
fn a_decision_on_an_absence_that_ended_meanwhile_is_made_again() {
    let place = Place::new();
    let proxy = Proxy::start();
    let options = Options { pooler: true, notify: false, ..place.options() };
    let slow = connect(proxy.config(), options).unwrap();
    let fast = place.open();
    instance(&fast);
    let held = proxy.hold(1);
    std::thread::scope(|scope| {
        // If anything here fails, the request goes on.
        let mut held = held;
        let late = scope.spawn(|| submit(&slow, &say(|c| register_root(c, "late", "/trees"))));
        held.wait();
        done(&fast, &say(|c| register_root(c, "early", "/trees")));
        held.go();
        let refused = late.join().unwrap().unwrap().accepted().unwrap_err();
        assert!(!refused.rows().is_empty() || refused.refusal.guard != Guard::Permission);
    });
    assert_eq!(slow.metrics().decided_again, 1);
    assert_eq!(place.ids("managed_roots"), ["early"]);
}

#[test]
fn one_id_is_given_once_however_many_ask() {
    let place = Place::new();
    let stores: Vec<PostgresStore> = (0..4).map(|_| place.open()).collect();
    done(&stores[0], &create_workspace("w"));
    for round in 0..25 {
        let accepted = AtomicU64::new(0);
        let start = Barrier::new(8);
        std::thread::scope(|scope| {
            for n in 0..8 {
                let (store, start, accepted) = (&stores[n % 4], &start, &accepted);
                scope.spawn(move || {
                    start.wait();
                    match submit(store, &create_task(&format!("t{round}"))).unwrap() {
                        Outcome::Accepted(_) => _ = accepted.fetch_add(1, Ordering::SeqCst),
                        Outcome::Refused(refused) => {
                            assert_eq!(refused.refusal.guard, Guard::IdNeverUsed);
                        }
                    }
                });
            }
        });
        assert_eq!(accepted.into_inner(), 1);
    }
}

/// The server's clock rules, whatever an instance's own clock says (B-3).
#[test]
fn the_time_is_the_servers() {
    let place = Place::new();
    let options = Options { clock: freehold_store::Clock::System, ..place.options() };
    let store = place.try_open(options).unwrap();
    let beside = place.beside();
    let server =
        || beside.number("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
    let before = server();
    done(&store, &create_workspace("w"));
    let rows = pollster::block_on(store.read(&[Read::all(TableId::Workspaces)])).unwrap();
    let created = rows.view.workspaces.iter().next().unwrap().created_at;
    let after = server();
    assert!(before <= created.0 && created.0 <= rows.view.now.0 && rows.view.now.0 <= after);
}
