//! How a store is reached.

use std::sync::Arc;
use std::time::Duration;

use freehold_store::Clock;
use tokio::runtime::Handle;

/// How a store is opened. [`Options::default`] suits a host with its own server and no pooler.
#[derive(Clone, Debug)]
pub struct Options {
    /// The schema that holds the store's tables and functions, and nothing else; made when the
    /// store is fresh.
    pub schema: String,
    /// Whether a fresh store is made where the schema is not there or empty. Set to false by who
    /// means a store that is there: a name with a slip in it is then refused as no store.
    pub create: bool,
    /// Where the store reads the time. [`Clock::System`] means the database server's clock:
    /// it rules for all instances, whatever their own clocks say. Tests give another.
    pub clock: Clock,
    /// The most connections that are open at once, but for one that listens.
    pub connections: usize,
    /// How long a call waits for a free connection; past it, it fails as busy.
    pub pool_wait: Duration,
    /// How long connecting may take.
    pub connect_wait: Duration,
    /// How long a statement waits for a lock; past it, the command fails as busy, undone.
    pub lock_wait: Duration,
    /// How long a statement may run; past it, the server ends it and the command fails as busy.
    pub statement_wait: Duration,
    /// How long beyond [`Options::statement_wait`] an answer is waited for, before the connection
    /// counts as lost, and with it those of the pool that nobody uses at that moment. Where
    /// [`Options::call_wait`] ends the wait sooner, only the one that was silent is lost.
    pub answer_wait: Duration,
    /// How long one call takes at most, whatever it waits for: connections, statements and all
    /// repeats of them together. Past it, it fails as unavailable, or as unknown where a commit was
    /// sent and nobody answered. This bounds every call even where the network swallows what is
    /// sent. Give it room for a statement that takes its longest, and one more try. Only a command
    /// in the host's own transaction may take [`Options::answer_wait`] more, once it is whole.
    pub call_wait: Duration,
    /// How often a command is decided again after its rows were changed by others, before it
    /// takes the locks first.
    pub misses: u32,
    /// Set where a pooler that hands out connections by transaction stands between (pgbouncer
    /// with `pool_mode = transaction`): no statement is kept prepared and no setting is made for
    /// a session. Then [`Options::statement_wait`] is the server's own setting.
    pub pooler: bool,
    /// Whether commits wake those who [`crate::PostgresStore::listen`]: after them, by a statement
    /// of its own on a connection of the pool, one for all commits that come meanwhile. The server
    /// lets transactions that notify commit one after the other, so commands do not do it
    /// themselves; only in a host's own transaction they do.
    pub notify: bool,
    /// TLS, with the roots and the client's certificate that the host trusts and has; whether it
    /// is required says `sslmode` of the address.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// The host's runtime, on which the connections are driven and waits are timed; none for the
    /// one that [`crate::PostgresStore::connect`] is called in. Somebody must drive it: its own
    /// threads, or a `block_on` that lasts.
    pub runtime: Option<Handle>,
}

impl Default for Options {
    /// Schema `freehold`, made if it is not there, the server's clock, 16 connections, waits of 5 s
    /// (lock), 10 s (pool and connecting), 30 s (statement) and 5 s beyond it, 60 s for one call, 3
    /// misses, notifications on, no TLS.
    fn default() -> Self {
        Options {
            schema: "freehold".to_owned(),
            create: true,
            clock: Clock::System,
            connections: 16,
            pool_wait: Duration::from_secs(10),
            connect_wait: Duration::from_secs(10),
            lock_wait: Duration::from_secs(5),
            statement_wait: Duration::from_secs(30),
            answer_wait: Duration::from_secs(5),
            call_wait: Duration::from_secs(60),
            misses: 3,
            pooler: false,
            notify: true,
            tls: None,
            runtime: None,
        }
    }
}

/// Whole milliseconds, at least one: PostgreSQL takes 0 for "for ever".
pub(crate) fn milliseconds(wait: Duration) -> i64 {
    i64::try_from(wait.as_millis()).unwrap_or(i64::MAX).clamp(1, i64::from(i32::MAX))
}
