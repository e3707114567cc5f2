//! Behind a pooler that hands out connections by transaction.

use std::sync::Barrier;

use freehold_pg_server::Pooler;
use freehold_postgres::{Options, PostgresStore};
use freehold_store::Clock;
use freehold_store::store::dump;

use crate::driver::Driver;
use crate::driver::backend::OnStore;
use crate::driver::random::{runner, sequence};
use crate::host::{
    DATABASE, Place, ask, connect, create_session, create_task, create_workspace, done, journal,
    server, submit, task,
};

/// A pooler with fewer connections to the server than it has clients.
fn pooler() -> Pooler {
    Pooler::start(server(), 3).unwrap_or_else(|why| panic!("{why}"))
}

fn through(pooler: &Pooler, place: &Place) -> PostgresStore {
    let options = Options { pooler: true, ..place.options() };
    connect(pooler.url(DATABASE).parse().unwrap(), options).unwrap()
}

#[test]
fn a_store_is_made_used_and_opened_again_through_it() {
    let (place, pooler) = (Place::new(), pooler());
    let store = through(&pooler, &place);
    done(&store, &create_workspace("w"));
    assert!(submit(&store, &ask("q", |c| task(c, "t"))).unwrap().accepted().is_ok());
    let store = through(&pooler, &place);
    assert!(submit(&store, &ask("q", |c| task(c, "t"))).unwrap().accepted().unwrap().replayed);
    // What it wrote is what others read without it.
    assert_eq!(pollster::block_on(dump(&store)), pollster::block_on(dump(&place.open())));
    assert_eq!(journal(&store, 0, 2).len(), 2);
}

#[test]
fn many_clients_on_few_connections_all_end() {
    let (place, pooler) = (Place::new(), pooler());
    let stores: Vec<PostgresStore> = (0..4)
        .map(|_| {
            let options = Options { misses: 1, ..place.options() };
            let options = Options { pooler: true, ..options };
            connect(pooler.url(DATABASE).parse().unwrap(), options).unwrap()
        })
        .collect();
    done(&stores[0], &create_workspace("w"));
    done(&stores[0], &create_task("t"));
    let start = Barrier::new(12);
    std::thread::scope(|scope| {
        for client in 0..12 {
            let (store, start) = (&stores[client % 4], &start);
            scope.spawn(move || {
                start.wait();
                for n in 0..8 {
                    done(store, &create_session(&format!("s-{client}-{n}"), "t"));
                }
            });
        }
    });
    assert_eq!(place.ids("task_sessions").len(), 96);
    assert!(stores.iter().any(|s| s.metrics().locked_first > 0));
}

#[test]
fn random_sequences_hold_every_property_through_it() {
    use proptest::strategy::{Strategy, ValueTree};
    let (pooler, mut runner) = (pooler(), runner(1));
    for _ in 0..2 {
        let ops = sequence().new_tree(&mut runner).unwrap().current();
        let place = Place::new();
        let clock: Clock = place.clock.clone();
        let backend = OnStore { store: through(&pooler, &place), clock };
        let mut driver = Driver::new(backend).unwrap_or_else(|failure| panic!("{failure}"));
        for op in ops {
            driver.run(op).unwrap_or_else(|failure| panic!("{failure}"));
        }
    }
}
