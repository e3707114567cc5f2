//! One read is of one moment: whatever a writer moves meanwhile, no row is missing, and none
//! is seen as it was before another that is seen as it is after.

use freehold_kernel::{Command, Kind, TableId, TaskCommand};
use freehold_store::names::id_of;
use freehold_store::{Composer, Read, Rows, Store, StoreError};

use crate::polling::Polled;
use crate::rig::Rig;
use crate::speech::{environment, id, say, submit, task, workspace};

/// The most polls that a read may need.
const POLLS_MAX: usize = 500;

/// How often the rows go from one task to the other and back while a reader looks.
const TIMES: usize = 12;

const MOVED: [&str; 4] = ["e0", "e1", "e2", "e3"];

fn transfer(c: &mut Composer, environment: &str, to: &str) -> Command {
    Command::Task(TaskCommand::Transfer { environment: id(c, environment), to: id(c, to) })
}

/// Hands the environments over to this task, the first one first.
fn hand_over(store: &impl Store, to: &str) {
    for name in MOVED {
        let outcome = submit(store, &say(|c| transfer(c, name, to)));
        let outcome = outcome.unwrap_or_else(|e| panic!("{e}"));
        outcome.accepted().unwrap_or_else(|refused| panic!("{refused}"));
    }
}

/// By their owners, as a list in two queries, or one by one.
fn ways() -> [Vec<Read>; 3] {
    let by_owner = |owner| Read::by(TableId::Environments, "task_id", &[owner]);
    let one = |name| Read::by(TableId::Environments, "id", &[name]);
    [
        vec![by_owner("a"), by_owner("b")],
        MOVED.into_iter().map(one).collect(),
        MOVED.into_iter().rev().map(one).collect(),
    ]
}

/// What was read is what stood there at one moment: all of them, the first ones handed over.
fn one_moment(read: Result<Rows, StoreError>, to: &str, what: &str) {
    let rows = read.unwrap_or_else(|e| panic!("{e}"));
    let owner = id_of(Kind::TaskId, to);
    let arrived: Vec<bool> = MOVED
        .into_iter()
        .map(|name| {
            let row = rows.view.environments.id(id_of(Kind::EnvironmentId, name));
            row.unwrap_or_else(|| panic!("{name} is missing: {what}")).task_id.0 == owner
        })
        .collect();
    assert_eq!(rows.view.environments.len(), MOVED.len(), "{what}");
    let first = arrived.iter().take_while(|there| **there).count();
    let after = arrived[first..].iter().any(|there| *there);
    assert!(!after, "of more than one moment: {what}: {arrived:?} at {to}");
}

/// A writer hands rows over at each await of a reader, and then while one looks again and again.
pub fn one_read_shows_one_moment<R: Rig>() {
    let rig = R::fresh();
    let stores = [rig.open(), rig.open()];
    for submission in [
        say(|c| workspace(c, "w")),
        say(|c| task(c, "w", "a")),
        say(|c| task(c, "w", "b")),
        say(|c| environment(c, "a", "e0")),
        say(|c| environment(c, "a", "e1")),
        say(|c| environment(c, "a", "e2")),
        say(|c| environment(c, "a", "e3")),
    ] {
        let outcome = submit(&stores[0], &submission).unwrap_or_else(|e| panic!("{e}"));
        outcome.accepted().unwrap_or_else(|refused| panic!("{refused}"));
    }
    let mut to = ["b", "a"].into_iter().cycle();
    for reads in ways() {
        for polls in 0..POLLS_MAX {
            let to = to.next().unwrap_or("a");
            let mut read = Polled::new(stores[0].read(&reads));
            let was_done = read.poll(polls);
            hand_over(&stores[1], to);
            read.poll(POLLS_MAX);
            let what = format!("overtaken after {polls} polls");
            one_moment(read.output().unwrap_or_else(|| panic!("{what}: no end")), to, &what);
            if was_done {
                break;
            }
        }
    }
    for to in to.take(TIMES) {
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| hand_over(&stores[1], to));
            while !writer.is_finished() {
                for reads in ways() {
                    one_moment(pollster::block_on(stores[0].read(&reads)), to, "while one writes");
                }
            }
        });
    }
}
