//! Two round trips per command, counted on the wire.

use freehold_kernel::{Command, Envelope, View};
use freehold_postgres::{Options, PostgresStore};
use freehold_store::{Clock, Submission};

use crate::driver::Driver;
use crate::driver::backend::{Answer, Backend, OnStore};
use crate::driver::random::{number, runner, sequence};
use crate::host::{
    Place, ask, connect, create_session, create_task, create_workspace, say, session, submit, task,
};
use crate::proxy::Proxy;

fn counted(proxy: &Proxy, store: &PostgresStore, submission: &Submission) -> u64 {
    let before = proxy.requests();
    submit(store, submission).unwrap();
    proxy.requests() - before
}

#[test]
fn common_commands_take_two_round_trips_and_refusals_one() {
    let place = Place::new();
    let proxy = Proxy::start();
    let options = Options { notify: false, ..place.options() };
    let store = connect(proxy.config(), options).unwrap();
    // Each statement is prepared once per connection, which is a trip of its own.
    submit(&store, &create_workspace("w")).unwrap();
    submit(&store, &create_task("warm")).unwrap();
    submit(&store, &create_session("warm", "warm")).unwrap();
    submit(&store, &ask("warm", |c| task(c, "warm too"))).unwrap();

    assert_eq!(counted(&proxy, &store, &create_workspace("w2")), 2);
    assert_eq!(counted(&proxy, &store, &create_task("t")), 2);
    assert_eq!(counted(&proxy, &store, &create_session("s", "t")), 2);
    let asked = ask("q", |c| task(c, "t2"));
    assert_eq!(counted(&proxy, &store, &asked), 2);
    // The same again, and what is refused, write nothing.
    assert_eq!(counted(&proxy, &store, &asked), 1);
    assert_eq!(counted(&proxy, &store, &create_session("s", "t")), 1);
    assert_eq!(counted(&proxy, &store, &say(|c| session(c, "s2", "nowhere"))), 1);
}

/// A store whose requests are counted by command.
struct Counting {
    inner: OnStore<PostgresStore>,
    proxy: Proxy,
    most: std::collections::BTreeMap<&'static str, u64>,
}

impl Backend for Counting {
    fn submit(&mut self, envelope: &Envelope) -> Answer {
        let before = self.proxy.requests();
        let answer = self.inner.submit(envelope);
        let most = self.most.entry(envelope.command.code()).or_default();
        *most = (*most).max(self.proxy.requests() - before);
        answer
    }

    fn world(&mut self) -> View {
        self.inner.world()
    }

    fn clock(&self) -> Clock {
        self.inner.clock()
    }
}

#[test]
fn no_command_of_random_sequences_takes_more_than_two_round_trips() {
    let mut most = std::collections::BTreeMap::new();
    let mut runner = runner(1);
    for _ in 0..number("FREEHOLD_CASES", 6) {
        use proptest::strategy::{Strategy, ValueTree};
        let ops = sequence().new_tree(&mut runner).unwrap().current();
        let (place, proxy) = (Place::new(), Proxy::start());
        // Without prepared statements, so that nothing is hidden in a warm-up.
        let options = Options { pooler: true, notify: false, ..place.options() };
        let store = connect(proxy.config(), options).unwrap();
        let inner = OnStore { store, clock: place.clock.clone() };
        let backend = Counting { inner, proxy, most: std::mem::take(&mut most) };
        let mut driver = Driver::new(backend).unwrap_or_else(|failure| panic!("{failure}"));
        for op in ops {
            driver.run(op).unwrap_or_else(|failure| panic!("{failure}"));
        }
        most = driver.backend.most;
        // Nobody changed a row behind its back, so nothing was decided twice.
        let metrics = driver.backend.inner.store.metrics();
        assert_eq!((metrics.decided_again, metrics.undone_by_server), (0, 0), "{metrics:?}");
    }
    for (command, trips) in &most {
        println!("{trips} {command}");
    }
    assert!(most.len() > 12, "few commands were sent: {most:?}");
    assert!(most.values().all(|trips| (1..=2).contains(trips)), "{most:?}");
    assert!(Command::TABLE.len() >= most.len());
}
