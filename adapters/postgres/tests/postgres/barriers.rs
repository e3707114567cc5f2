//! A barrier against what is added at the same time, with two instances.

use freehold_kernel::{Command, Guard, OperationCommand, Scope, Trigger};

use crate::host::{Place, create_session, create_task, create_workspace, done, say, submit};
use crate::proxy::Proxy;

use crate::work::*;

/// A turn reads its task and does not change it. A barrier that is just committing keeps it
/// waiting, or both would go on: the turn under the barrier, the barrier over the turn.
#[test]
fn f34_what_only_reads_the_task_waits_for_a_barrier_that_is_committing() {
    let place = Place::new();
    let stores = [place.open(), place.open()];
    instance(&stores[0], "process 1");
    done(&stores[0], &create_workspace("w"));
    done(&stores[0], &create_task("t"));
    done(&stores[0], &create_session("s", "t"));
    // The barrier's transaction stops before its end, with its rows written.
    place.sql(
        "CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS \
         $$BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NULL; END$$; \
         CREATE TRIGGER waits AFTER INSERT ON journal FOR EACH ROW \
         WHEN (NEW.command = 'operation.reserve') EXECUTE FUNCTION waits()",
    );
    let beside = place.beside();
    beside.run("SELECT pg_advisory_lock(4711)");
    let waiting = "SELECT count(*) FROM pg_stat_activity \
                   WHERE application_name = current_schema() AND wait_event_type = 'Lock'";
    let (reserved, turn) = std::thread::scope(|scope| {
        // If anything here fails, the lock ends with its connection.
        let beside = beside;
        let reserves = scope.spawn(|| {
            submit(
                &stores[0],
                &say(|c| reserve(c, "archive", "t", 1, "process 1", Trigger::Archive)),
            )
        });
        beside.until(waiting, 1);
        let turns = scope.spawn(|| submit(&stores[1], &say(|c| turn(c, "s", 1, "process 1"))));
        beside.until(waiting, 2);
        drop(beside);
        (reserves.join().unwrap(), turns.join().unwrap())
    });
    assert!(reserved.unwrap().accepted().is_ok());
    assert_eq!(turn.unwrap().accepted().unwrap_err().refusal.guard, Guard::TaskUnbarred);
    assert_eq!(stores[1].metrics().decided_again, 1);
}

#[test]
fn f34_an_addition_that_was_decided_before_the_barrier_is_decided_again() {
    let place = Place::new();
    let proxy = Proxy::start();
    let (store, adder) = (place.open(), slow(&place, &proxy));
    instance(&store, "process 1");
    done(&store, &create_workspace("w"));
    done(&store, &create_task("t"));
    let held = proxy.hold(1);
    std::thread::scope(|scope| {
        let mut held = held;
        let late = scope.spawn(|| submit(&adder, &create_session("s", "t")));
        held.wait();
        let barrier = say(|c| reserve(c, "archive", "t", 1, "process 1", Trigger::Archive));
        done(&store, &barrier);
        held.go();
        let refused = late.join().unwrap().unwrap().accepted().unwrap_err();
        assert_eq!(refused.refusal.guard, Guard::TaskUnbarred);
    });
    assert_eq!(adder.metrics().decided_again, 1);
    assert!(place.ids("task_sessions").is_empty());
}

#[test]
fn f34_a_barrier_and_an_addition_at_once_end_one_after_the_other() {
    let place = Place::new();
    let stores = [place.open(), place.open()];
    instance(&stores[0], "process 1");
    done(&stores[0], &create_workspace("w"));
    let mut refused = 0;
    for n in 0..60u128 {
        let task = format!("t{n}");
        done(&stores[0], &create_task(&task));
        let start = std::sync::Barrier::new(2);
        let created = std::thread::scope(|scope| {
            let adds = scope.spawn(|| {
                start.wait();
                let outcome = submit(&stores[1], &create_session(&format!("s{n}"), &task));
                outcome.unwrap().accepted().is_ok()
            });
            start.wait();
            let operation = format!("delete {task}");
            for step in 0..3 {
                done(
                    &stores[0],
                    &say(|c| {
                        let operation = c.id(&operation).unwrap();
                        let (scope, instance) = (Scope::Task, c.id("process 1").unwrap());
                        Command::Operation(match step {
                            0 => {
                                return reserve(
                                    c,
                                    &format!("delete {task}"),
                                    &task,
                                    n,
                                    "process 1",
                                    Trigger::Delete,
                                );
                            }
                            1 => OperationCommand::Snapshot { operation, scope, instance },
                            _ => OperationCommand::Mutate { operation, scope, instance },
                        })
                    }),
                );
            }
            adds.join().unwrap()
        });
        refused += u32::from(!created);
        // Added before the barrier, it went with its task; after it, it never was.
        let state = place
            .sql(&format!("SELECT state FROM identities WHERE kind = 'session' AND id = 's{n}'"));
        assert_eq!(state, if created { "gone" } else { "" });
    }
    assert!(place.ids("task_sessions").is_empty() && place.ids("tasks").is_empty());
    println!("{refused} of 60 additions came after the barrier");
}
