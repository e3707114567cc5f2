//! How many commands a second the store takes on a throw-away server, by the number of clients, with
//! and without notifications. Quote ratios, never the numbers.
//!
//! ```text
//! cargo run --release -p freehold-postgres --example measure
//! ```

use std::time::{Duration, Instant};

use freehold_kernel::{Command, Permissions, SessionCommand, SessionSource, TaskCommand, TaskKind};
use freehold_pg_server::Server;
use freehold_postgres::{Options, PostgresStore};
use freehold_store::{Clock, Composer, Store, Submission};

type Failed = Box<dyn std::error::Error + Send + Sync>;

fn say(
    command: impl FnOnce(&mut Composer) -> Result<Command, Failed>,
) -> Result<Submission, Failed> {
    let mut ann = Composer::new("ann", Permissions::ALL)?;
    let command = command(&mut ann)?;
    Ok(ann.submit(command))
}

async fn client(store: PostgresStore, n: usize, for_: Duration) -> Result<u64, Failed> {
    let task = format!("task {n}");
    let (began, mut sent) = (Instant::now(), 0);
    while began.elapsed() < for_ {
        let create = say(|c| {
            Ok(Command::Session(SessionCommand::Create {
                session: c.id(&format!("s {n} {sent}"))?,
                task: c.id(&task)?,
                environment: None,
                source: SessionSource::Person,
                parent: None,
            }))
        })?;
        store.submit(&create).await?;
        sent += 1;
    }
    Ok(sent)
}

fn main() -> Result<(), Failed> {
    let server = Server::start(&[("fsync", "on"), ("full_page_writes", "on")])?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        for (notify, clients) in
            [(true, 1), (false, 1), (true, 8), (false, 8), (true, 32), (false, 32)]
        {
            let schema = format!("m_{clients}_{notify}");
            let options = Options {
                schema,
                clock: Clock::System,
                connections: clients,
                notify,
                ..Options::default()
            };
            let store = PostgresStore::connect(server.url("postgres").parse()?, options).await?;
            store
                .submit(&say(|c| {
                    let workspace = c.id("w")?;
                    Ok(Command::Task(TaskCommand::CreateWorkspace { workspace }))
                })?)
                .await?;
            for n in 0..clients {
                let create = say(|c| {
                    Ok(Command::Task(TaskCommand::Create {
                        task: c.id(&format!("task {n}"))?,
                        workspace: c.id("w")?,
                        parent: None,
                        kind: TaskKind::Standard,
                        expires_at: None,
                    }))
                })?;
                store.submit(&create).await?;
            }
            let for_ = Duration::from_secs(3);
            let all: Vec<_> =
                (0..clients).map(|n| tokio::spawn(client(store.clone(), n, for_))).collect();
            let mut sent = 0;
            for one in all {
                sent += one.await??;
            }
            println!("{clients} clients, notify {notify}: {} commands/s", sent / 3);
        }
        Ok(())
    })
}
