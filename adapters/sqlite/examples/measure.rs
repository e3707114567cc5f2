//! How many commands a second the store takes: `session.create` on a thousand tasks, by one
//! caller and by 32 threads, with full and normal durability.
//!
//! `cargo run --release -p freehold-sqlite --example measure [FOLDER]`

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use freehold_kernel::{
    Command, Permissions, SessionCommand, SessionId, SessionSource, TaskCommand, TaskId, TaskKind,
    WorkspaceId,
};
use freehold_sqlite::{Options, Sqlite, Synchronous};
use freehold_store::{Composer, NameError, Outcome, Store, Submission};

const TASKS: usize = 1000;
const RUN: Duration = Duration::from_secs(3);

fn composer() -> Result<Composer, NameError> {
    Composer::new("ann", Permissions::ALL)
}

fn session(n: usize) -> Result<Submission, NameError> {
    let mut c = composer()?;
    let create = SessionCommand::Create {
        session: c.id::<SessionId>(&format!("s{n}"))?,
        task: c.id::<TaskId>(&format!("t{}", n % TASKS))?,
        environment: None,
        source: SessionSource::Person,
        parent: None,
    };
    Ok(c.submit(Command::Session(create)))
}

fn prepare(store: &Sqlite) -> Result<(), Box<dyn Error>> {
    let mut c = composer()?;
    let workspace = c.id::<WorkspaceId>("w")?;
    pollster::block_on(
        store.submit(&c.submit(Command::Task(TaskCommand::CreateWorkspace { workspace }))),
    )?;
    for n in 0..TASKS {
        let mut c = composer()?;
        let create = TaskCommand::Create {
            task: c.id::<TaskId>(&format!("t{n}"))?,
            workspace: c.id::<WorkspaceId>("w")?,
            parent: None,
            kind: TaskKind::Standard,
            expires_at: None,
        };
        pollster::block_on(store.submit(&c.submit(Command::Task(create))))?;
    }
    Ok(())
}

/// Runs for a while; every latency in microseconds, sorted.
fn run(store: &Sqlite, threads: usize) -> Vec<u128> {
    let next = AtomicUsize::new(0);
    let end = Instant::now() + RUN;
    let mut all: Vec<u128> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut latencies = Vec::new();
                    while Instant::now() < end {
                        let Ok(submission) = session(next.fetch_add(1, Ordering::Relaxed)) else {
                            break;
                        };
                        let began = Instant::now();
                        match pollster::block_on(store.submit(&submission)) {
                            Ok(Outcome::Accepted(_)) => {}
                            other => {
                                eprintln!("{other:?}");
                                break;
                            }
                        }
                        latencies.push(began.elapsed().as_micros());
                    }
                    latencies
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    all.sort_unstable();
    all
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = match std::env::args().nth(1) {
        Some(folder) => tempfile::tempdir_in(Path::new(&folder))?,
        None => tempfile::tempdir()?,
    };
    println!("synchronous  threads  commands/s  p50 us  p99 us  worst us");
    for synchronous in [Synchronous::Full, Synchronous::Normal] {
        for threads in [1, 8, 32] {
            let path = folder.path().join(format!("{synchronous:?}-{threads}.db"));
            let store = Sqlite::open(&path, Options { synchronous, ..Options::default() })?;
            prepare(&store)?;
            let all = run(&store, threads);
            let at = |per_mille: usize| all.get(all.len() * per_mille / 1000).copied();
            println!(
                "{:<11}  {threads:>7}  {:>10}  {:>6}  {:>6}  {:>8}",
                format!("{synchronous:?}"),
                all.len() / usize::try_from(RUN.as_secs())?,
                at(500).unwrap_or_default(),
                at(990).unwrap_or_default(),
                all.last().copied().unwrap_or_default(),
            );
        }
    }
    Ok(())
}
