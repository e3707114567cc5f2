//! Waiting for commits of other instances: woken by the server, and by time in any case.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use freehold_store::StoreError;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};

use crate::commit::channel;
use crate::fault;
use crate::pool::Connections;
use crate::store::PostgresStore;

/// Waits for commits. Has a connection of its own; behind a pooler it has none, and then waits are
/// by time alone.
///
/// A notification is a hint: one may come for nothing, and one may be lost with its connection.
/// So every wait has an end, after which the caller looks anyway.
#[derive(Debug)]
pub struct Listener {
    store: PostgresStore,
    woken: Arc<Notify>,
    connected: Option<Connected>,
}

/// A connection that listens; closed when dropped.
#[derive(Debug)]
struct Connected {
    client: Client,
    driver: AbortHandle,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl PostgresStore {
    /// Starts to listen. What is committed from here on wakes; read the journal or the rows once
    /// after this, then wait.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub async fn listen(&self) -> Result<Listener, StoreError> {
        let mut listener =
            Listener { store: self.clone(), woken: Arc::new(Notify::new()), connected: None };
        let connections = &self.shared.connections;
        connections.on_runtime(listener.connect()).await?;
        Ok(listener)
    }
}

impl Listener {
    /// Waits until something was committed, but no longer than this, also where the server does not
    /// answer. Says whether it was woken.
    pub async fn wait(&mut self, at_most: Duration) -> bool {
        let store = self.store.clone();
        let work = async {
            let began = Instant::now();
            let lost = self.connected.as_ref().is_none_or(|c| c.client.is_closed());
            if lost
                && tokio::time::timeout(at_most, self.connect()).await.is_ok_and(|c| c.is_ok())
                && self.connected.is_some()
            {
                // What was committed while nobody listened is looked for at once.
                return true;
            }
            let left = at_most.saturating_sub(began.elapsed());
            tokio::time::timeout(left, self.woken.notified()).await.is_ok()
        };
        store.shared.connections.on_runtime(work).await
    }

    async fn connect(&mut self) -> Result<(), StoreError> {
        let connections = &self.store.shared.connections;
        if connections.options().pooler {
            return Ok(());
        }
        self.connected = None;
        let limit = connections.options().connect_wait;
        let connected = tokio::time::timeout(limit, open(connections, &self.woken)).await;
        self.connected = Some(connected.map_err(|_| StoreError::Unavailable {
            detail: format!("{}: no connection within {limit:?}", connections.place()),
        })??);
        Ok(())
    }
}

async fn open(connections: &Connections, woken: &Arc<Notify>) -> Result<Connected, StoreError> {
    let config: &Config = connections.config();
    let refused = |e: &tokio_postgres::Error| fault::of_connect(connections.place(), e);
    let connected = match &connections.options().tls {
        None => {
            let (client, connection) = config.connect(NoTls).await.map_err(|e| refused(&e))?;
            Connected { client, driver: drive(connections, connection, woken) }
        }
        Some(tls) => {
            let tls = tokio_postgres_rustls::MakeRustlsConnect::new((**tls).clone());
            let (client, connection) = config.connect(tls).await.map_err(|e| refused(&e))?;
            Connected { client, driver: drive(connections, connection, woken) }
        }
    };
    let listen = format!("LISTEN \"{}\"", channel(connections.options()));
    connected.client.batch_execute(&listen).await.map_err(|e| refused(&e))?;
    Ok(connected)
}

/// Drives a connection on the host's runtime.
fn drive<S, T>(
    connections: &Connections,
    mut connection: tokio_postgres::Connection<S, T>,
    woken: &Arc<Notify>,
) -> AbortHandle
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let woken = Arc::clone(woken);
    let driven = connections.runtime().spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if matches!(message, AsyncMessage::Notification(_)) {
                woken.notify_one();
            }
        }
        // Lost: who waits looks, and connects again.
        woken.notify_one();
    });
    driven.abort_handle()
}
