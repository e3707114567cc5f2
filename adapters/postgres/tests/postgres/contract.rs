//! The PostgreSQL store keeps the contract of stores, on a real server.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use freehold_postgres::{Options, PostgresStore};
use freehold_store::{Clock, Submission};
use freehold_testkit::{Can, Fault, Held, Rig, store_contract};

use crate::host::{Beside, Place, connect, runtime};
use crate::proxy::{Fate, Proxy};

/// A schema, reached through a proxy that can cut one request.
struct PostgresRig {
    place: Place,
    proxy: Proxy,
    beside: Beside,
}

/// A command in a transaction of the host's, which ends when it is told to.
struct HeldCommit {
    ends: Sender<bool>,
    at_work: JoinHandle<()>,
}

impl HeldCommit {
    fn end(self, commit: bool) {
        self.ends.send(commit).unwrap();
        self.at_work.join().unwrap();
    }
}

impl Held for HeldCommit {
    fn commit(self) {
        self.end(true);
    }

    fn roll_back(self) {
        self.end(false);
    }
}

impl Rig for PostgresRig {
    type Store = PostgresStore;
    type Held = HeldCommit;

    fn fresh() -> Self {
        let (place, proxy) = (Place::new(), Proxy::start());
        let beside = place.beside();
        PostgresRig { place, proxy, beside }
    }

    fn clock(&self) -> Clock {
        self.place.clock.clone()
    }

    /// Without notifications, so that the requests of a command are its own. After the first miss
    /// locks are taken first, in a transaction: the cases get there, too.
    fn open(&self) -> PostgresStore {
        let mut config = self.proxy.config();
        config.application_name(&self.place.schema);
        let options = Options { connections: 2, misses: 1, notify: false, ..self.place.options() };
        connect(config, options).unwrap()
    }

    fn can_reopen() -> Can {
        Can::Yes
    }

    fn can_crash() -> Can {
        Can::Yes
    }

    fn can_share() -> Can {
        Can::Yes
    }

    fn can_fail() -> Can {
        Can::Yes
    }

    fn can_spoil() -> Can {
        Can::Yes
    }

    fn spoil(&self, part: &str) {
        let sql = "UPDATE task_resource_cleanup_roots SET tries = -1 WHERE id";
        assert_eq!(self.place.sql(&format!("{sql} = '{part}' RETURNING 1")), "1");
    }

    fn can_zone() -> Can {
        Can::Yes
    }

    /// By the server's clock, in a session that writes times and dates in another way, too.
    fn open_in_zone(&self, zone: &str) -> PostgresStore {
        let mut config = self.place.config();
        config.options(format!("-c TimeZone={zone} -c DateStyle=German -c IntervalStyle=iso_8601"));
        let options = Options { clock: Clock::System, connections: 2, ..self.place.options() };
        connect(config, options).unwrap()
    }

    fn hold(&self, store: &PostgresStore, submission: &Submission) -> Option<HeldCommit> {
        let (ends, end) = channel();
        let (begins, begun) = channel();
        let (store, submission, mut beside) =
            (store.clone(), submission.clone(), self.place.beside());
        let at_work = std::thread::spawn(move || {
            let mut transaction = runtime().block_on(beside.client.transaction()).unwrap();
            let done = runtime().block_on(store.submit_in(&mut transaction, &submission));
            assert!(done.unwrap().accepted().is_ok());
            begins.send(()).unwrap();
            let ended = match end.recv() {
                Ok(true) => runtime().block_on(transaction.commit()),
                Ok(false) | Err(_) => runtime().block_on(transaction.rollback()),
            };
            ended.unwrap();
        });
        begun.recv().unwrap();
        Some(HeldCommit { ends, at_work })
    }

    /// The server ends every connection in the middle of whatever it does.
    fn crash(&mut self, stores: Vec<PostgresStore>) {
        let kill = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE application_name = '{}' AND pid <> pg_backend_pid()",
            self.place.schema
        );
        // Our own look at the place has its name, too.
        crate::host::server().sql(crate::host::DATABASE, &kill);
        self.beside = self.place.beside();
        drop(stores);
    }

    fn fail_at(&self, n: u64, fault: Fault) -> bool {
        let fate = match fault {
            Fault::Before => Fate::CutBefore,
            Fault::After => Fate::CutAfter,
            // A commit is a request like the others.
            Fault::AtCommit => return false,
        };
        self.proxy.plan(n, fate);
        true
    }

    fn disarm(&self) -> bool {
        self.proxy.forget()
    }

    /// No session of this place is in a transaction, and none holds a lock.
    fn at_rest(&self) {
        self.beside.until(
            &format!(
                "SELECT count(*) FROM pg_stat_activity a WHERE a.application_name = '{0}' \
                 AND a.pid <> pg_backend_pid() AND (a.state <> 'idle' OR EXISTS \
                 (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.locktype <> 'virtualxid'))",
                self.place.schema
            ),
            0,
        );
    }
}

impl Drop for PostgresRig {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.beside.run(&format!("DROP SCHEMA IF EXISTS \"{}\" CASCADE", self.place.schema));
        }
    }
}

store_contract!(PostgresRig);
