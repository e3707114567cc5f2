//! Connections that are lost and futures that are dropped: nothing half-done, nothing done twice,
//! no transaction left open, and what nobody can know is said.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use freehold_kernel::{Guard, Trigger};
use freehold_postgres::{Options, PostgresStore};
use freehold_store::store::dump;
use freehold_store::{Outcome, Store, StoreError};

use crate::host::{
    Beside, Place, ask, connect, create_session, create_task, create_workspace, done, journal,
    runtime, session, submit, task,
};
use crate::proxy::{Fate, Proxy};
use crate::work::{LAPSED, instance, reserve};

/// Polls a future, and drops it when it waits for the `waits`-th time. What came of it, if it
/// ended before.
fn poll_up_to<F: Future>(waits: usize, future: F) -> Option<F::Output> {
    struct Woken(std::thread::Thread, AtomicBool);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.1.store(true, Ordering::SeqCst);
            self.0.unpark();
        }
    }
    let woken = Arc::new(Woken(std::thread::current(), AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    for _ in 0..waits {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        while !woken.1.swap(false, Ordering::SeqCst) {
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
    None
}

/// No session of this place is in a transaction, and none holds a lock on a table of it.
fn is_at_rest(place: &Place, beside: &Beside) {
    beside.until(
        &format!(
            "SELECT count(*) FROM pg_stat_activity a WHERE a.application_name = '{0}' \
             AND a.pid <> pg_backend_pid() AND (a.state <> 'idle' OR EXISTS \
             (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.locktype <> 'virtualxid'))",
            place.schema
        ),
        0,
    );
}

fn is_whole(place: &Place) {
    let torn = place.sql(
        "SELECT (SELECT count(*) FROM identities i WHERE kind = 'task' \
         AND NOT EXISTS (SELECT FROM tasks t WHERE t.id = i.id)) \
         + (SELECT count(*) FROM identities i WHERE kind = 'session' \
         AND NOT EXISTS (SELECT FROM task_sessions s WHERE s.id = i.id))",
    );
    assert_eq!(torn, "0");
}

/// One connection, and a server that does not end by itself, within the test's own wait, what was
/// left open: that would hide it.
fn alone(place: &Place) -> PostgresStore {
    let statement_wait = Duration::from_secs(600);
    let options = Options { connections: 1, notify: false, statement_wait, ..place.options() };
    place.try_open(options).unwrap()
}

#[test]
fn f57_a_future_dropped_at_any_await_leaves_no_transaction_and_no_lock() {
    let place = Place::new();
    let store = alone(&place);
    let beside = place.beside();
    done(&store, &create_workspace("w"));
    let mut ended = 0;
    for waits in 0..200 {
        let name = format!("t{waits}");
        let outcome = poll_up_to(waits, store.submit(&create_task(&name)));
        is_at_rest(&place, &beside);
        is_whole(&place);
        // The one connection of the pool, or its successor, serves the next at once.
        done(
            &store,
            &create_session(&format!("s{waits}"), &{
                done(&store, &create_task(&format!("next {waits}")));
                format!("next {waits}")
            }),
        );
        if let Some(outcome) = outcome {
            assert!(matches!(outcome, Ok(Outcome::Accepted(_))), "{outcome:?}");
            assert!(place.ids("tasks").contains(&name));
            ended += 1;
            if ended == 3 {
                assert!(waits > 3, "there were no awaits to drop it at");
                return;
            }
        }
    }
    panic!("a submission waited two hundred times");
}

#[test]
fn f57_reads_dropped_at_any_await_leave_nothing() {
    let place = Place::new();
    let store = alone(&place);
    let beside = place.beside();
    done(&store, &create_workspace("w"));
    for waits in 0..6 {
        let reads = [freehold_store::Read::all(freehold_kernel::TableId::Tasks)];
        let _ = poll_up_to(waits, store.read(&reads));
        let _ = poll_up_to(waits, store.journal(0, 10));
        is_at_rest(&place, &beside);
        done(&store, &create_task(&format!("t{waits}")));
    }
}

#[test]
fn f57_futures_dropped_while_many_write_do_no_harm() {
    let place = Place::new();
    // Behind the first miss locks are taken first, in a transaction that stays open for a while.
    let store = place.try_open(Options { misses: 1, ..place.options() }).unwrap();
    done(&store, &create_workspace("w"));
    done(&store, &create_task("t"));
    let dropped = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (store, dropped) = (&store, &dropped);
            scope.spawn(move || {
                for n in 0..20 {
                    let given_up = create_session(&format!("x-{thread}-{n}"), "t");
                    if poll_up_to(1 + (n + thread) % 9, store.submit(&given_up)).is_none() {
                        dropped.fetch_add(1, Ordering::SeqCst);
                    }
                    done(store, &create_session(&format!("k-{thread}-{n}"), "t"));
                }
            });
        }
    });
    is_at_rest(&place, &place.beside());
    is_whole(&place);
    assert!(dropped.into_inner() > 20);
    assert!(store.metrics().locked_first > 0, "{:?}", store.metrics());
    let kept = place.ids("task_sessions").iter().filter(|s| s.starts_with('k')).count();
    assert_eq!(kept, 120);
}

/// The pool's one connection is inside a transaction, with the locks of the task, when its caller
/// goes away: at each statement of that transaction.
#[test]
fn f57_a_transaction_that_was_left_open_is_no_ones_later() {
    let place = Place::new();
    let proxy = Proxy::start();
    let mut config = proxy.config();
    config.application_name(&place.schema);
    let options =
        Options { connections: 1, misses: 1, pooler: true, notify: false, ..place.options() };
    let store = connect(config, options).unwrap();
    let other = place.open();
    done(&other, &create_workspace("w"));
    done(&other, &create_task("t"));
    let beside = place.beside();
    // Read, commit, and after the miss: BEGIN, locks, read, commit, COMMIT.
    for at in 3..=6 {
        let mut commit = proxy.hold(1);
        let (inside, given_up) = (store.clone(), create_session(&format!("x{at}"), "t"));
        let task = runtime().spawn(async move { inside.submit(&given_up).await });
        commit.wait();
        done(&other, &create_session(&format!("o{at}"), "t"));
        let mut within = proxy.hold(at - 2);
        commit.go();
        within.wait();
        task.abort();
        assert!(runtime().block_on(task).unwrap_err().is_cancelled());
        within.go();
        is_at_rest(&place, &beside);
        is_whole(&place);
        // Others are not kept waiting, and the next one's transaction is its own.
        done(&other, &create_session(&format!("k{at}"), "t"));
        done(&store, &create_session(&format!("n{at}"), "t"));
        assert!(place.ids("task_sessions").contains(&format!("n{at}")));
    }
    assert_eq!(store.metrics().locked_first, 4);
}

fn through(proxy: &Proxy, place: &Place) -> PostgresStore {
    // No statement is prepared, so a command is two requests: its read and its commit.
    let options = Options { pooler: true, notify: false, connections: 2, ..place.options() };
    connect(proxy.config(), options).unwrap()
}

#[test]
fn f57_a_commit_whose_reply_was_lost_is_looked_up_by_its_request() {
    let place = Place::new();
    let proxy = Proxy::start();
    let store = through(&proxy, &place);
    done(&store, &create_workspace("w"));
    proxy.plan(1, Fate::CutAfter);
    let accepted = submit(&store, &ask("q", |c| task(c, "t"))).unwrap().accepted().unwrap();
    // It was done by the first try, and is not done twice.
    assert!(accepted.replayed);
    assert_eq!(store.metrics().unknown, 1);
    assert_eq!(place.ids("tasks"), ["t"]);
    let journal = journal(&store, 0, 2);
    assert_eq!(journal.iter().filter(|l| l.columns["event"] == "task_created").count(), 1);
    // A refusal that is remembered, too.
    proxy.plan(1, Fate::CutAfter);
    let refused = submit(&store, &ask("q2", |c| task(c, "t"))).unwrap().accepted().unwrap_err();
    assert_eq!((refused.refusal.guard, refused.replayed), (Guard::IdNeverUsed, true));
}

#[test]
fn a_commit_whose_reply_was_lost_is_unknown_without_a_request() {
    let place = Place::new();
    let proxy = Proxy::start();
    let store = through(&proxy, &place);
    done(&store, &create_workspace("w"));
    for (fate, there) in [(Fate::CutAfter, true), (Fate::CutBefore, false)] {
        let name = if there { "done" } else { "not done" };
        proxy.plan(1, fate);
        let error = submit(&store, &create_task(name)).unwrap_err();
        assert!(matches!(error, StoreError::Unknown { .. }), "{error}");
        assert!(error.may_pass_later());
        assert_eq!(place.ids("tasks").contains(&name.to_owned()), there);
    }
}

/// The network swallows a request: the call ends all the same, and its connection is nobody's.
#[test]
fn an_answer_that_does_not_come_is_not_waited_for_for_ever() {
    let place = Place::new();
    let proxy = Proxy::start();
    let wait = Duration::from_millis(150);
    let options =
        Options { connections: 1, statement_wait: wait, answer_wait: wait, ..place.options() };
    place.open();
    let store =
        connect(proxy.config(), Options { pooler: true, notify: false, ..options }).unwrap();
    done(&store, &create_workspace("w"));
    let mut swallowed = proxy.hold(1);
    let error = submit(&store, &create_task("t")).unwrap_err();
    assert!(matches!(error, StoreError::Unknown { .. }), "{error}");
    swallowed.wait();
    done(&store, &create_task("t2"));
    drop(swallowed);
}

#[test]
fn a_commit_that_never_arrived_is_sent_again_with_its_request() {
    let place = Place::new();
    let proxy = Proxy::start();
    let store = through(&proxy, &place);
    done(&store, &create_workspace("w"));
    proxy.plan(1, Fate::CutBefore);
    let accepted = submit(&store, &ask("q", |c| task(c, "t"))).unwrap().accepted().unwrap();
    assert!(!accepted.replayed && !accepted.events.is_empty());
    assert_eq!(place.ids("tasks"), ["t"]);
}

/// A commit waits at the server when its connection is lost. The command is decided again, and is
/// refused by then, by time alone; and then the first commit gets its lock after all. Nobody may
/// have been told that nothing was done (D-19).
#[test]
fn a_refusal_after_a_commit_that_still_waits_is_not_believed() {
    let place = Place::new();
    let proxy = Proxy::start();
    let store = through(&proxy, &place);
    instance(&store, "one");
    done(&store, &create_workspace("w"));
    done(&store, &create_task("t"));
    let wanted = || ask("q", |c| reserve(c, "o", "t", 1, "one", Trigger::Archive));
    let beside = place.beside();
    beside.run("BEGIN; SELECT 1 FROM tasks WHERE id = 't' FOR UPDATE");
    let mut commit = proxy.hang_up(1);
    std::thread::scope(|scope| {
        let late = scope.spawn(|| submit(&store, &wanted()));
        commit.wait();
        place.clock.advance(LAPSED);
        commit.go();
        let error = late.join().unwrap().unwrap_err();
        assert!(matches!(error, StoreError::Unknown { .. }), "{error}");
        assert!(error.to_string().contains("instance_alive"), "{error}");
    });
    assert_eq!(place.ids("task_resource_cleanup_jobs"), Vec::<String>::new());
    beside.run("COMMIT");
    place.beside().until("SELECT count(*) FROM task_resource_cleanup_jobs", 1);
    // And so the request tells.
    assert!(submit(&store, &wanted()).unwrap().accepted().unwrap().replayed);
}

#[test]
fn a_connection_lost_while_reading_costs_nothing() {
    let place = Place::new();
    let proxy = Proxy::start();
    let store = through(&proxy, &place);
    done(&store, &create_workspace("w"));
    for (n, fate) in [Fate::CutBefore, Fate::CutAfter].into_iter().enumerate() {
        proxy.plan(0, fate);
        done(&store, &create_task(&format!("t{n}")));
        let fate = if n == 0 { Fate::CutBefore } else { Fate::CutAfter };
        proxy.plan(0, fate);
        assert_eq!(pollster::block_on(dump(&store)).unwrap()["tasks"].len(), n + 1);
    }
    assert_eq!(store.metrics().connections_lost, 2);
}

/// The server ends connections at any moment: commands without a request end as done or unknown,
/// those with one as done, and all are done once.
#[test]
fn connections_that_the_server_ends_lose_and_double_nothing() {
    let place = Place::new();
    let store = place.open();
    done(&store, &create_workspace("w"));
    done(&store, &create_task("t"));
    let unknown = AtomicU64::new(0);
    // One connection is ended for every few commands, so that work goes on in between.
    let (ended, ends) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let place = &place;
        scope.spawn(move || {
            let mut config = place.config();
            config.application_name("the killer");
            let beside = Beside::connect(&config);
            let kill = format!(
                "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity \
                 WHERE application_name = '{}' ORDER BY random() LIMIT 2) two",
                place.schema
            );
            while ends.recv().is_ok() {
                ends.try_iter().take(2).count();
                beside.number(&kill);
            }
        });
        let workers: Vec<_> = (0..4)
            .map(|client| {
                let (store, unknown, ended) = (&store, &unknown, ended.clone());
                scope.spawn(move || {
                    let mut certain = Vec::new();
                    for n in 0..30 {
                        let name = format!("s-{client}-{n}");
                        let asked = ask(&format!("q-{client}-{n}"), |c| session(c, &name, "t"));
                        loop {
                            match submit(store, &asked) {
                                Ok(outcome) => break assert!(outcome.accepted().is_ok()),
                                Err(error) => assert!(error.may_pass_later(), "{error}"),
                            }
                        }
                        certain.push(name);
                        let _ = ended.send(());
                        let name = format!("x-{client}-{n}");
                        match submit(store, &create_session(&name, "t")) {
                            Ok(outcome) => {
                                assert!(outcome.accepted().is_ok());
                                certain.push(name);
                            }
                            Err(error) => {
                                assert!(error.may_pass_later(), "{error}");
                                unknown.fetch_add(1, Ordering::SeqCst);
                            }
                        }
                    }
                    certain
                })
            })
            .collect();
        let certain: Vec<String> = workers.into_iter().flat_map(|w| w.join().unwrap()).collect();
        drop(ended);
        let there = place.ids("task_sessions");
        assert!(certain.iter().all(|name| there.contains(name)));
        is_whole(place);
        // A line for each session, one for the task's first, and two at the start.
        let journal = journal(&store, 0, there.len() + 3);
        let created = journal.iter().filter(|l| l.columns["event"] == "session_created").count();
        assert_eq!(created, there.len());
    });
    println!("{} of 240 ended without an outcome; {:?}", unknown.into_inner(), store.metrics());
}
