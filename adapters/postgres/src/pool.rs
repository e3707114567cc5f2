//! Connections: bounded waits, and none goes back to the pool unless it is known to be clean.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use deadpool_postgres::{
    Client, Manager, ManagerConfig, Object, PoolError, RecyclingMethod, Runtime, TimeoutType,
    Timeouts,
};
use freehold_store::StoreError;
use tokio::runtime::Handle;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Config, NoTls, Row};

use crate::deadline::Deadline;
use crate::fault::{self, Fault};
use crate::options::{Options, milliseconds};

/// The longest name of a schema.
const NAME_BYTES_MAX: usize = 63;

/// A parameter with its type, so that no statement has to be described first.
pub(crate) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// How often something is sent again that the server undid, or whose connection was lost.
pub(crate) const REPEATS_MAX: u32 = 8;

/// The connections of one store.
#[derive(Debug)]
pub(crate) struct Connections {
    pool: deadpool_postgres::Pool,
    config: Config,
    place: String,
    options: Options,
    runtime: Handle,
}

impl Connections {
    /// Nothing is connected yet.
    ///
    /// # Errors
    /// If there is no runtime to drive connections on, or the schema's name cannot be one.
    pub(crate) fn new(config: Config, options: &Options) -> Result<Connections, StoreError> {
        let runtime = match options.runtime.clone().map_or_else(Handle::try_current, Ok) {
            Ok(runtime) => runtime,
            Err(_) => {
                let detail = "there is no tokio runtime: call connect inside the host's, or hand \
                              its handle over in Options::runtime";
                return Err(StoreError::Unavailable { detail: detail.to_owned() });
            }
        };
        let place = place(&config, &options.schema);
        // The server would cut a longer name off without an error.
        let length = options.schema.len();
        if !(1..=NAME_BYTES_MAX).contains(&length) || options.schema.contains('\0') {
            let detail = format!(
                "a schema's name has 1 to {NAME_BYTES_MAX} bytes and no NUL, this one has {length}"
            );
            return Err(StoreError::NotAStore { path: place, detail });
        }
        let config = with_settings(config, options);
        let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = match &options.tls {
            None => Manager::from_config(config.clone(), NoTls, manager),
            Some(tls) => {
                let tls = tokio_postgres_rustls::MakeRustlsConnect::new((**tls).clone());
                Manager::from_config(config.clone(), tls, manager)
            }
        };
        let timeouts = Timeouts {
            wait: Some(options.pool_wait),
            create: Some(options.connect_wait),
            recycle: Some(options.connect_wait),
        };
        let pool = deadpool_postgres::Pool::builder(manager)
            .max_size(options.connections.max(1))
            .timeouts(timeouts)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|e| StoreError::Defect { detail: e.to_string() })?;
        Ok(Connections { pool, config, place, options: options.clone(), runtime })
    }

    /// Where the store is, for people; without secrets.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// How it was opened.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// What a connection of one's own is made from.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Polls a future inside the host's runtime, whoever polls it.
    pub(crate) fn on_runtime<F: Future>(&self, future: F) -> OnRuntime<F> {
        OnRuntime { runtime: self.runtime.clone(), future: Box::pin(future) }
    }

    /// The host's runtime.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// When a call that begins now ends.
    pub(crate) fn deadline(&self) -> Deadline {
        Deadline::after(self.options.call_wait)
    }

    /// A connection that nobody else uses, for a call that ends then.
    pub(crate) async fn lease(&self, until: Deadline) -> Result<Lease<'_>, StoreError> {
        let object = until.bound(self.pool.get()).await?.map_err(|error| self.refused(&error))?;
        Ok(Lease { object: Some(object), under_way: false, until, connections: self })
    }

    /// The rows of a statement that only reads: where its connection is lost, it is sent again.
    pub(crate) async fn read(
        &self,
        until: Deadline,
        text: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let mut repeats = 0;
        loop {
            match self.lease(until).await?.rows(text, parameters).await {
                Err(Fault::Lost(_) | Fault::Again(_)) if repeats < REPEATS_MAX => repeats += 1,
                answer => return answer.map_err(Fault::error),
            }
        }
    }

    fn refused(&self, error: &PoolError) -> StoreError {
        match error {
            PoolError::Timeout(TimeoutType::Wait) => StoreError::Busy {
                detail: format!(
                    "all {} connections were in use for {:?}; give Options::connections or \
                     Options::pool_wait more",
                    self.options.connections, self.options.pool_wait
                ),
            },
            PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => {
                StoreError::Unavailable {
                    detail: format!(
                        "{}: no connection within {:?}",
                        self.place, self.options.connect_wait
                    ),
                }
            }
            PoolError::Backend(error) => fault::of_connect(&self.place, error),
            PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
                StoreError::Unavailable { detail: error.to_string() }
            }
        }
    }
}

/// A connection in use. Dropped while a statement or a transaction is under way, it is closed, and
/// the server undoes what is open; else it goes back to the pool (A-6, F57).
#[derive(Debug)]
pub(crate) struct Lease<'c> {
    object: Option<Client>,
    under_way: bool,
    until: Deadline,
    connections: &'c Connections,
}

impl Lease<'_> {
    /// One statement, whole: its rows, once the server has said that it is ready again. Not only
    /// the last row: a commit counts no sooner.
    pub(crate) async fn rows(
        &mut self,
        text: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Fault> {
        let wait = self.wait()?;
        let pooler = self.connections.options.pooler;
        let was = std::mem::replace(&mut self.under_way, true);
        let Some(client) = &self.object else { return Err(Fault::Lost("closed".to_owned())) };
        let answer = wait.bound(async {
            if pooler {
                return client.query_typed(text, parameters).await;
            }
            let types: Vec<Type> = parameters.iter().map(|(_, t)| t.clone()).collect();
            let statement = client.prepare_typed_cached(text, &types).await?;
            let values: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|(v, _)| *v).collect();
            client.query(&statement, &values).await
        });
        self.settle(answer.await, was)
    }

    /// Statements without values or rows.
    pub(crate) async fn batch(&mut self, text: &str) -> Result<(), Fault> {
        let wait = self.wait()?;
        let was = std::mem::replace(&mut self.under_way, true);
        let Some(client) = &self.object else { return Err(Fault::Lost("closed".to_owned())) };
        let answer = wait.bound(client.batch_execute(text)).await;
        self.settle(answer, was)
    }

    /// How long the next answer is waited for. Once the call is over nothing is sent any more: what
    /// was sent last might count, what was not does not.
    fn wait(&mut self) -> Result<Wait, Fault> {
        let left = self.until.left();
        if left.is_zero() {
            // Whatever its owner makes of this failure, an open transaction is no one's later.
            if self.under_way {
                self.close();
            }
            return Err(Fault::Failed(self.until.error()));
        }
        let options = &self.connections.options;
        let whole = options.statement_wait.saturating_add(options.answer_wait);
        Ok(Wait { limit: whole.min(left), cut: left < whole })
    }

    /// From here on a transaction is open, until [`Lease::ended`].
    pub(crate) fn began(&mut self) {
        self.under_way = true;
    }

    /// The transaction has ended, and the server said so.
    pub(crate) fn ended(&mut self) {
        self.under_way = false;
    }

    /// Whether the connection can go on being used.
    fn settle<T>(
        &mut self,
        answer: Result<Result<T, tokio_postgres::Error>, Silent>,
        was: bool,
    ) -> Result<T, Fault> {
        let fault = match answer {
            Ok(Ok(value)) => {
                self.under_way = was;
                return Ok(value);
            }
            Ok(Err(error)) => fault::of(&self.connections.place, &error),
            Err(silent) => {
                // Whoever does not answer for the whole wait is gone, and those that idle lead to
                // the same server: the next try connects afresh, in place of waiting as long for
                // each of them. The end of one call says nothing of them.
                if !silent.cut {
                    let _closed = self.connections.pool.retain(|_, _| false);
                }
                Fault::Lost(silent.detail)
            }
        };
        if matches!(fault, Fault::Lost(_)) {
            self.close();
        } else {
            self.under_way = was;
        }
        Err(fault)
    }

    fn close(&mut self) {
        if let Some(object) = self.object.take() {
            drop(Object::take(object));
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if self.under_way {
            self.close();
        }
    }
}

/// How long one answer is waited for.
#[derive(Clone, Copy, Debug)]
struct Wait {
    limit: Duration,
    /// Whether the end of the call comes before that of the wait.
    cut: bool,
}

/// No answer came.
struct Silent {
    detail: String,
    /// As [`Wait::cut`].
    cut: bool,
}

impl Wait {
    async fn bound<T>(self, future: impl Future<Output = T>) -> Result<T, Silent> {
        let Wait { limit, cut } = self;
        tokio::time::timeout(limit, future).await.map_err(|_| Silent {
            detail: format!("no answer of the server within {limit:?}"),
            cut,
        })
    }
}

/// A future that is polled inside a runtime's context.
pub(crate) struct OnRuntime<F> {
    runtime: Handle,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for OnRuntime<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let runtime = self.runtime.clone();
        let _entered = runtime.enter();
        self.future.as_mut().poll(context)
    }
}

/// The settings of every session. A pooler that hands out connections by transaction keeps none.
fn with_settings(mut config: Config, options: &Options) -> Config {
    if config.get_application_name().is_none() {
        config.application_name("freehold");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(options.connect_wait);
    }
    if options.pooler {
        return config;
    }
    let statement = milliseconds(options.statement_wait);
    let lock = milliseconds(options.lock_wait);
    let mut settings = config.get_options().unwrap_or_default().to_owned();
    for setting in [
        format!("statement_timeout={statement}"),
        format!("lock_timeout={lock}"),
        // Only reached if this process is stopped in the middle of a transaction.
        format!("idle_in_transaction_session_timeout={}", statement.saturating_add(lock)),
        // A client that went away is noticed while its statement still waits for a lock.
        "client_connection_check_interval=1000".to_owned(),
        // Our statements find their rows by index whatever the values are; planning them anew
        // each time costs more than running them.
        "plan_cache_mode=force_generic_plan".to_owned(),
        "jit=off".to_owned(),
        "default_transaction_isolation=read\\ committed".to_owned(),
    ] {
        settings.push_str(" -c ");
        settings.push_str(&setting);
    }
    config.options(settings.trim_start().to_owned());
    config
}

fn place(config: &Config, schema: &str) -> String {
    use tokio_postgres::config::Host;
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        #[cfg(unix)]
        Some(Host::Unix(folder)) => folder.display().to_string(),
        None => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = config.get_dbname().or(config.get_user()).unwrap_or("postgres");
    format!("postgres://{host}:{port}/{database} (schema {schema})")
}
