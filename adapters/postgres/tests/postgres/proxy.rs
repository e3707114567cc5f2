//! A proxy between a store and its server: counts round trips, and cuts or holds one of them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio_postgres::Config;

use crate::host::{DATABASE, runtime, server};

/// What happens to one request.
#[derive(Debug)]
pub(crate) enum Fate {
    /// It never reaches the server, and the connection ends.
    CutBefore,
    /// The server carries it out; the answer never comes, and the connection ends.
    CutAfter,
    /// It reaches the server once it is let go; then its arrival here was told.
    Hold(oneshot::Sender<()>, oneshot::Receiver<()>),
    /// It reaches the server, and its arrival here is told; once it is let go, the client's
    /// connection ends while the server may still be busy with it.
    HangUp(oneshot::Sender<()>, oneshot::Receiver<()>),
    /// It reaches the server or it does not; and from then on nothing comes through, on this
    /// connection and on every other, and nobody is told ([`Proxy::vanish`]).
    Vanish {
        /// Whether it reaches the server.
        carried: bool,
    },
}

/// One that is running. Ends with the test's process.
pub(crate) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    requests: AtomicU64,
    /// How many requests come before the one that has this fate.
    fate: Mutex<Option<(u64, Fate)>>,
    /// Whether packets vanish.
    vanishing: AtomicBool,
    /// How many connections there were so far.
    accepted: AtomicU64,
    /// Connections with a smaller number are forsaken.
    forsaken: AtomicU64,
}

impl Proxy {
    pub(crate) fn start() -> Proxy {
        let shared = Arc::new(Shared::default());
        let listener = runtime().block_on(TcpListener::bind(("127.0.0.1", 0))).unwrap();
        let port = listener.local_addr().unwrap().port();
        let to = server().port();
        let inside = Arc::clone(&shared);
        runtime().spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                tokio::spawn(serve(client, server, Arc::clone(&inside)));
            }
        });
        Proxy { port, shared }
    }

    /// The way to the tests' database through it.
    pub(crate) fn config(&self) -> Config {
        format!("postgres://postgres@127.0.0.1:{}/{DATABASE}", self.port).parse().unwrap()
    }

    /// How often the client waited for the server so far.
    pub(crate) fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// How many connections there were so far.
    pub(crate) fn connections(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// The request that comes after `before` others has this fate.
    pub(crate) fn plan(&self, before: u64, fate: Fate) {
        *self.shared.fate.lock().unwrap() = Some((before, fate));
    }

    /// From now on nothing comes through in either direction, and no connection ends for it. A
    /// connection on which something vanished stays as it is, also when others come through again.
    pub(crate) fn vanish(&self) {
        self.shared.vanishing.store(true, Ordering::SeqCst);
    }

    /// Nothing comes through any more on the connections that there are; fresh ones do.
    pub(crate) fn forsake(&self) {
        let so_far = self.shared.accepted.load(Ordering::SeqCst);
        self.shared.forsaken.store(so_far, Ordering::SeqCst);
    }

    /// Connections that are fresh from now on come through.
    pub(crate) fn heal(&self) {
        self.shared.vanishing.store(false, Ordering::SeqCst);
    }

    /// Takes a planned fate back. True if it came to pass.
    pub(crate) fn forget(&self) -> bool {
        self.shared.fate.lock().unwrap().take().is_none()
    }

    /// Lets the server have the request that comes after `before` others, and ends the client's
    /// connection when it is let go, whether there is an answer or not.
    pub(crate) fn hang_up(&self, before: u64) -> Held {
        let (arrived, arrives) = oneshot::channel();
        let (go, goes) = oneshot::channel();
        self.plan(before, Fate::HangUp(arrived, goes));
        Held { arrives: Some(arrives), go: Some(go) }
    }

    /// Holds the request that comes after `before` others.
    pub(crate) fn hold(&self, before: u64) -> Held {
        let (arrived, arrives) = oneshot::channel();
        let (go, goes) = oneshot::channel();
        self.plan(before, Fate::Hold(arrived, goes));
        Held { arrives: Some(arrives), go: Some(go) }
    }
}

/// A request that is held; it goes on when this is dropped.
pub(crate) struct Held {
    arrives: Option<oneshot::Receiver<()>>,
    go: Option<oneshot::Sender<()>>,
}

impl Held {
    /// Waits until it is there.
    pub(crate) fn wait(&mut self) {
        let arrives = self.arrives.take().unwrap();
        let limit = std::time::Duration::from_secs(60);
        let arrived = runtime().block_on(async { tokio::time::timeout(limit, arrives).await });
        arrived.expect("the request never came").unwrap();
    }

    /// Lets it go on.
    pub(crate) fn go(&mut self) {
        self.go.take().unwrap().send(()).unwrap();
    }
}

/// One connection.
struct On {
    number: u64,
    /// Whether something vanished on it.
    dead: AtomicBool,
}

impl Shared {
    /// Whether what is to come through on this connection vanishes.
    fn vanishes(&self, on: &On) -> bool {
        let vanishes = self.vanishing.load(Ordering::SeqCst)
            || on.number < self.forsaken.load(Ordering::SeqCst);
        if vanishes {
            on.dead.store(true, Ordering::SeqCst);
        }
        on.dead.load(Ordering::SeqCst)
    }

    fn fate_of_next(&self) -> Option<Fate> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let mut fate = self.fate.lock().unwrap();
        match fate.as_mut() {
            Some((0, _)) => fate.take().map(|(_, fate)| fate),
            Some((before, _)) => {
                *before -= 1;
                None
            }
            None => None,
        }
    }
}

/// Reads what comes, until its sender ends the connection.
async fn swallow(mut from: OwnedReadHalf) -> std::io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    while from.read(&mut buffer).await? > 0 {}
    Ok(())
}

async fn serve(client: TcpStream, server: TcpStream, shared: Arc<Shared>) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mute = Arc::new(Notify::new());
    let hang_up = Arc::new(AtomicBool::new(false));
    let number = shared.accepted.fetch_add(1, Ordering::SeqCst);
    let on = Arc::new(On { number, dead: AtomicBool::new(false) });
    let (inside, own) = (Arc::clone(&shared), Arc::clone(&on));
    let vanishes = move || inside.vanishes(&own);
    let (muted, hung) = (Arc::clone(&mute), Arc::clone(&hang_up));
    let answers = tokio::spawn(answers(from_server, to_client, muted, hung, vanishes));
    let _ = requests(from_client, to_server, &shared, &mute, &hang_up, &on).await;
    // Either side's end is the other's, once what was asked is answered.
    let _ = answers.await;
}

/// Passes answers on, until it is told to keep them; then reads one whole answer and ends.
async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mute: Arc<Notify>,
    hang_up: Arc<AtomicBool>,
    vanishes: impl Fn() -> bool,
) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        tokio::select! {
            biased;
            () = mute.notified() => {
                if hang_up.load(Ordering::SeqCst) {
                    let _ = to.shutdown().await;
                }
                let mut seen: Vec<u8> = Vec::new();
                while let Ok(n @ 1..) = from.read(&mut buffer).await {
                    seen.extend(&buffer[..n]);
                    // ReadyForQuery: `Z`, its length, and that no transaction is open.
                    if seen.ends_with(b"Z\0\0\0\x05I") {
                        break;
                    }
                }
                return;
            }
            read = from.read(&mut buffer) => match read {
                Ok(1..) if vanishes() => {}
                Ok(n @ 1..) if to.write_all(&buffer[..n]).await.is_ok() => {}
                _ => return,
            },
        }
    }
}

/// Passes requests on whole: everything up to the message that asks for an answer.
async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Shared,
    mute: &Notify,
    hang_up: &AtomicBool,
    on: &On,
) -> std::io::Result<()> {
    // The first message has no type.
    let length = from.read_u32().await?;
    let mut pending = length.to_be_bytes().to_vec();
    let mut rest = vec![0; length as usize - 4];
    from.read_exact(&mut rest).await?;
    pending.extend(rest);
    if shared.vanishes(on) {
        return swallow(from).await;
    }
    to.write_all(&pending).await?;
    pending.clear();
    loop {
        let kind = from.read_u8().await?;
        let length = from.read_u32().await?;
        let mut rest = vec![0; length as usize - 4];
        from.read_exact(&mut rest).await?;
        pending.push(kind);
        pending.extend(length.to_be_bytes());
        pending.extend(rest);
        if !matches!(kind, b'S' | b'Q') {
            if kind == b'X' || kind == b'p' {
                to.write_all(&pending).await?;
                pending.clear();
            }
            continue;
        }
        let fate = shared.fate_of_next();
        if shared.vanishes(on) {
            return swallow(from).await;
        }
        match fate {
            None => {}
            Some(Fate::Vanish { carried }) => {
                shared.vanishing.store(true, Ordering::SeqCst);
                on.dead.store(true, Ordering::SeqCst);
                if carried {
                    to.write_all(&pending).await?;
                }
                return swallow(from).await;
            }
            Some(Fate::CutBefore) => return Ok(()),
            Some(Fate::CutAfter) => {
                mute.notify_one();
                tokio::task::yield_now().await;
            }
            Some(Fate::Hold(arrived, goes)) => {
                let _ = arrived.send(());
                let _ = goes.await;
            }
            Some(Fate::HangUp(arrived, goes)) => {
                to.write_all(&pending).await?;
                pending.clear();
                let _ = arrived.send(());
                let _ = goes.await;
                hang_up.store(true, Ordering::SeqCst);
                mute.notify_one();
                continue;
            }
        }
        to.write_all(&pending).await?;
        pending.clear();
    }
}
