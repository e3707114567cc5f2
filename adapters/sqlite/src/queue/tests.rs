//! Groups, made to measure: the test itself holds the right to write while others join.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use freehold_kernel::{Command, Guard, Permissions, TaskCommand, TaskId, TaskKind, WorkspaceId};
use freehold_store::{Clock, Composer, Outcome, StoreError, Submission};
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::open::{Options, open};

struct Fixture {
    folder: TempDir,
    queue: Queue,
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let opened = open(&folder.path().join("store.db"), &Options::default()).unwrap();
    let queue = Queue::new(Writer::new(opened.connection, Clock::System));
    let fixture = Fixture { folder, queue };
    assert!(matches!(fixture.now(&create_workspace()), Ok(Outcome::Accepted(_))));
    fixture
}

impl Fixture {
    fn now(&self, submission: &Submission) -> Answer {
        pollster::block_on(self.queue.submit(submission))
    }

    fn beside(&self) -> Connection {
        Connection::open(Path::new(self.folder.path()).join("store.db")).unwrap()
    }

    fn tasks(&self) -> Vec<String> {
        let connection = self.beside();
        let mut statement = connection.prepare("SELECT id FROM tasks ORDER BY id").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }

    /// How many pages the log holds.
    fn frames(&self) -> i64 {
        self.beside().query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1)).unwrap()
    }

    /// Has all of them wait, then lets the first lead, and returns the answers.
    fn grouped(&self, submissions: &[Submission]) -> Vec<Answer> {
        let lead = self.queue.lead().unwrap();
        let mut waiting: Vec<Submit<'_>> =
            submissions.iter().map(|s| self.queue.submit(s)).collect();
        for future in &mut waiting {
            assert!(poll(future).is_none());
        }
        drop(lead);
        waiting.into_iter().map(|mut future| poll(&mut future).unwrap()).collect()
    }
}

fn poll(future: &mut Submit<'_>) -> Option<Answer> {
    match Pin::new(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

fn create_workspace() -> Submission {
    let mut ann = Composer::new("ann", Permissions::ALL).unwrap();
    let workspace = ann.id::<WorkspaceId>("w").unwrap();
    ann.submit(Command::Task(TaskCommand::CreateWorkspace { workspace }))
}

fn create(task: &str) -> Submission {
    create_in("w", task)
}

fn create_in(workspace: &str, task: &str) -> Submission {
    let mut ann = Composer::new("ann", Permissions::ALL).unwrap();
    let task = ann.id::<TaskId>(task).unwrap();
    let workspace = ann.id::<WorkspaceId>(workspace).unwrap();
    ann.submit(Command::Task(TaskCommand::Create {
        task,
        workspace,
        parent: None,
        kind: TaskKind::Standard,
        expires_at: None,
    }))
}

fn numbered(count: usize) -> Vec<Submission> {
    (10..10 + count).map(|n| create(&format!("t{n}"))).collect()
}

fn accepted(answers: &[Answer]) -> usize {
    answers.iter().filter(|a| matches!(a, Ok(Outcome::Accepted(_)))).count()
}

#[test]
fn a_group_shares_one_commit() {
    let alone = fixture();
    let before = alone.frames();
    for submission in numbered(30) {
        assert!(alone.now(&submission).is_ok());
    }
    let by_one = alone.frames() - before;

    let together = fixture();
    let before = together.frames();
    assert_eq!(accepted(&together.grouped(&numbered(30))), 30);
    let grouped = together.frames() - before;

    assert_eq!(together.tasks(), alone.tasks());
    assert!(grouped * 5 < by_one, "{grouped} pages for a group, {by_one} one by one");
}

#[test]
fn a_group_is_bounded_and_in_order() {
    let fixture = fixture();
    let mut submissions = numbered(GROUP_MAX + 5);
    // The same id again, behind the first: refused, since it comes later.
    submissions.push(create("t10"));
    let lead = fixture.queue.lead().unwrap();
    let mut waiting: Vec<Submit<'_>> =
        submissions.iter().map(|s| fixture.queue.submit(s)).collect();
    assert!(waiting.iter_mut().all(|future| poll(future).is_none()));
    let mut lead = lead;
    assert!(lead.group());
    assert_eq!(fixture.tasks().len(), GROUP_MAX);
    assert!(lead.group());
    assert_eq!(fixture.tasks().len(), GROUP_MAX + 5);
    assert!(!lead.group());
    drop(lead);
    let answers: Vec<Answer> = waiting.iter_mut().map(|f| poll(f).unwrap()).collect();
    assert_eq!(accepted(&answers), GROUP_MAX + 5);
    let Some(Ok(Outcome::Refused(refused))) = answers.last() else { panic!("{answers:?}") };
    assert_eq!(refused.refusal.guard, Guard::IdNeverUsed);
    let order: Vec<String> = {
        let connection = fixture.beside();
        let mut statement = connection
            .prepare("SELECT subject FROM journal WHERE event = 'task_created' ORDER BY seq")
            .unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    let expected: Vec<String> = (10..10 + GROUP_MAX + 5).map(|n| format!("t{n}")).collect();
    assert_eq!(order, expected);
}

#[test]
fn one_refused_member_does_not_concern_the_others() {
    let fixture = fixture();
    let mut submissions = numbered(5);
    submissions.insert(2, create_in("nowhere", "bad"));
    let answers = fixture.grouped(&submissions);
    assert_eq!(accepted(&answers), 5);
    assert!(
        matches!(&answers[2], Ok(Outcome::Refused(r)) if r.refusal.guard == Guard::WorkspaceKnown)
    );
    assert_eq!(fixture.tasks(), ["t10", "t11", "t12", "t13", "t14"]);
}

#[test]
fn a_broken_constraint_undoes_its_member_only() {
    let fixture = fixture();
    fixture
        .beside()
        .execute_batch(
            "CREATE TRIGGER bad AFTER INSERT ON tasks WHEN NEW.id = 't12' \
             BEGIN SELECT RAISE(ABORT, 'planted'); END",
        )
        .unwrap();
    let answers = fixture.grouped(&numbered(5));
    assert_eq!(accepted(&answers), 4);
    assert!(matches!(&answers[2], Err(StoreError::Defect { .. })), "{:?}", answers[2]);
    assert_eq!(fixture.tasks(), ["t10", "t11", "t13", "t14"]);
    // Nothing of it is left: no identity, no journal line.
    let left: i64 = fixture
        .beside()
        .query_row(
            "SELECT (SELECT count(*) FROM identities WHERE id = 't12') \
             + (SELECT count(*) FROM journal WHERE subject = 't12')",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(left, 0);
}

#[test]
fn a_group_whose_transaction_breaks_is_replayed_one_by_one() {
    // SQLite itself rolls back everything, the members before the bad one too.
    let fixture = fixture();
    fixture
        .beside()
        .execute_batch(
            "CREATE TRIGGER bad AFTER INSERT ON tasks WHEN NEW.id = 't12' \
             BEGIN SELECT RAISE(ROLLBACK, 'planted'); END",
        )
        .unwrap();
    let answers = fixture.grouped(&numbered(5));
    assert_eq!(accepted(&answers), 4);
    assert!(answers[2].is_err());
    assert_eq!(fixture.tasks(), ["t10", "t11", "t13", "t14"]);
}

#[test]
fn a_group_whose_commit_fails_is_replayed_one_by_one() {
    // A deferred foreign key is looked at by COMMIT, and keeps the whole group from it.
    let fixture = fixture();
    fixture
        .beside()
        .execute_batch(
            "CREATE TRIGGER bad AFTER INSERT ON tasks WHEN NEW.id = 't12' BEGIN \
             UPDATE tasks SET workspace_id = 'nowhere' WHERE id = 't12'; END",
        )
        .unwrap();
    let answers = fixture.grouped(&numbered(5));
    assert_eq!(accepted(&answers), 4);
    assert!(matches!(&answers[2], Err(StoreError::Defect { .. })), "{:?}", answers[2]);
    assert_eq!(fixture.tasks(), ["t10", "t11", "t13", "t14"]);
}

#[test]
fn a_full_disk_undoes_what_does_not_fit_and_passes() {
    let fixture = fixture();
    {
        let lead = fixture.queue.lead().unwrap();
        let connection = lead.writer.as_ref().unwrap().connection();
        let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        let limit = format!("PRAGMA max_page_count = {pages}");
        let _: i64 = connection.query_row(&limit, [], |row| row.get(0)).unwrap();
    }
    let answers = fixture.grouped(&numbered(400));
    let full = answers.iter().filter(|a| matches!(a, Err(StoreError::DiskFull { .. }))).count();
    assert!(full > 0 && accepted(&answers) > 0, "{full} found the disk full");
    assert_eq!(accepted(&answers) + full, 400);
    assert_eq!(fixture.tasks().len(), accepted(&answers));
    {
        let lead = fixture.queue.lead().unwrap();
        let connection = lead.writer.as_ref().unwrap().connection();
        assert!(connection.is_autocommit());
        let _: i64 = connection
            .query_row("PRAGMA max_page_count = 1073741823", [], |row| row.get(0))
            .unwrap();
    }
    assert!(matches!(fixture.now(&create("later")), Ok(Outcome::Accepted(_))));
}

#[test]
fn a_waiter_that_is_dropped_leaves_the_queue() {
    let fixture = fixture();
    let submissions = numbered(3);
    let lead = fixture.queue.lead().unwrap();
    let mut waiting: Vec<Submit<'_>> =
        submissions.iter().map(|s| fixture.queue.submit(s)).collect();
    assert!(waiting.iter_mut().all(|future| poll(future).is_none()));
    drop(waiting.remove(1));
    drop(lead);
    let answers: Vec<Answer> = waiting.iter_mut().map(|f| poll(f).unwrap()).collect();
    assert_eq!(accepted(&answers), 2);
    assert_eq!(fixture.tasks(), ["t10", "t12"]);
}

#[test]
fn a_waiter_that_is_never_polled_again_holds_up_nobody() {
    let fixture = fixture();
    let (first, second) = (create("t1"), create("t2"));
    let lead = fixture.queue.lead().unwrap();
    let mut asleep = fixture.queue.submit(&first);
    assert!(poll(&mut asleep).is_none());
    std::thread::scope(|scope| {
        let other = scope.spawn(|| pollster::block_on(fixture.queue.submit(&second)));
        // It has joined, or will find the connection free; either way it gets its answer.
        drop(lead);
        assert!(matches!(other.join().unwrap(), Ok(Outcome::Accepted(_))));
    });
    assert!(fixture.tasks().contains(&"t2".to_owned()));
    drop(asleep);
}

#[test]
fn members_of_a_group_that_panics_are_told_that_nobody_knows() {
    let fixture = fixture();
    let submission = create("t1");
    let ticket =
        Arc::new(Ticket { submission, state: Mutex::new(State::Waiting(Waker::noop().clone())) });
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _group = Group(vec![Arc::clone(&ticket)]);
        panic!("planted");
    }));
    assert!(result.is_err());
    assert!(matches!(ticket.take(Waker::noop()), Some(Err(StoreError::Unknown { .. }))));
    drop(fixture);
}

#[test]
fn f57_a_transaction_that_was_left_open_is_rolled_back_before_the_next() {
    let fixture = fixture();
    {
        let lead = fixture.queue.lead().unwrap();
        let connection = lead.writer.as_ref().unwrap().connection();
        connection.execute_batch("BEGIN IMMEDIATE; UPDATE workspaces SET name = 'leaked'").unwrap();
    }
    assert!(matches!(fixture.now(&create("t1")), Ok(Outcome::Accepted(_))));
    let name: Option<String> =
        fixture.beside().query_row("SELECT name FROM workspaces", [], |row| row.get(0)).unwrap();
    assert_eq!(name, None);
}
