//! A store beside the in-memory reference: one clock, the same commands, equal answers, rows and
//! journal.

use std::time::Instant;

use freehold_kernel::{Command, Guard, Reply, TableId, View};
use freehold_store::memory::Memory;
use freehold_store::store::{Dump, DumpRow, JournalRow, dump};
use freehold_store::{Composer, Outcome, Read, Rows, Store, StoreError, Submission};

use crate::polling::poll_up_to;
use crate::rig::{Can, Fault, Rig};
use crate::speech::{ann, submit};

/// The most steps that a command may have.
const STEPS_MAX: u64 = 500;

/// What is done to the store at each command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disturbed {
    /// Nothing.
    No,
    /// It is closed and opened after it.
    Reopened,
    /// It crashes after it.
    Crashed,
    /// Two connections take turns.
    InTurns,
    /// The future is dropped after so many polls; then the request is sent again.
    Dropped(usize),
    /// A step fails, then the next one, and so on, and the request is sent again each time.
    Failing(u64, Fault),
}

/// The two.
pub(crate) struct Twin<R: Rig> {
    /// The place.
    pub(crate) rig: R,
    /// The reference.
    pub(crate) memory: Memory,
    /// How often a future was dropped before its end, or a fault came to pass.
    pub(crate) disturbances: u32,
    /// The first step whose failure was not tried for every command.
    pub(crate) next_step: Option<u64>,
    stores: Vec<R::Store>,
    disturbed: Disturbed,
    commands: u64,
    follows: (i64, i64),
}

impl<R: Rig> Twin<R> {
    /// Two empty stores.
    pub(crate) fn new(disturbed: Disturbed) -> Twin<R> {
        let rig = R::fresh();
        let memory = Memory::new("reference", rig.clock());
        let connections = match (disturbed, R::can_share()) {
            (Disturbed::InTurns | Disturbed::Dropped(_) | Disturbed::Failing(..), Can::Yes) => 2,
            _one => 1,
        };
        let stores = (0..connections).map(|_| rig.open()).collect();
        Twin {
            rig,
            memory,
            disturbances: 0,
            next_step: None,
            stores,
            disturbed,
            commands: 0,
            follows: (0, 0),
        }
    }

    /// The connection whose turn it is.
    pub(crate) fn store(&self) -> &R::Store {
        &self.stores[self.commands as usize % self.stores.len()]
    }

    /// Closes and opens.
    pub(crate) fn reopen(&mut self) {
        let connections = self.stores.len();
        self.stores.clear();
        self.stores = (0..connections).map(|_| self.rig.open()).collect();
    }

    /// Crashes and opens.
    pub(crate) fn crash(&mut self) {
        let connections = self.stores.len();
        self.rig.crash(std::mem::take(&mut self.stores));
        self.stores = (0..connections).map(|_| self.rig.open()).collect();
    }

    /// What must be accepted, with equal rows afterwards.
    pub(crate) fn says(&mut self, command: impl FnOnce(&mut Composer, &View) -> Command) -> Reply {
        match self.judged(command).accepted() {
            Ok(accepted) => accepted.reply,
            Err(refused) => panic!("{refused}"),
        }
    }

    /// What must be refused.
    pub(crate) fn refuses(&mut self, guard: Guard, command: impl FnOnce(&mut Composer) -> Command) {
        match self.judged(|c, _| command(c)).accepted() {
            Ok(accepted) => panic!("{guard:?} was expected: {accepted:?}"),
            Err(refused) => assert_eq!(refused.refusal.guard, guard),
        }
    }

    fn judged(&mut self, command: impl FnOnce(&mut Composer, &View) -> Command) -> Outcome {
        let rows = self.everything();
        let mut composer = ann();
        if matches!(self.disturbed, Disturbed::Dropped(_) | Disturbed::Failing(..)) {
            composer =
                composer.request(&format!("request {}", self.commands)).expect("a usable id");
        }
        composer.know(&rows.names);
        let command = command(&mut composer, &rows.view);
        let outcome = self.submit(&composer.submit(command));
        self.compare().unwrap_or_else(|what| panic!("{what}"));
        outcome
    }

    /// Submits to both, as disturbed; the answers must be equal.
    pub(crate) fn submit(&mut self, submission: &Submission) -> Outcome {
        self.commands += 1;
        let outcome = match self.disturbed {
            Disturbed::Dropped(polls) => match poll_up_to(polls, self.store().submit(submission)) {
                Some(answer) => {
                    let expected = submit(&self.memory, submission).expect("a reference");
                    let outcome = answer.unwrap_or_else(|e| panic!("{e}"));
                    alike(&expected, &outcome, false);
                    outcome
                }
                None => {
                    self.disturbances += 1;
                    self.rig.at_rest();
                    self.after_all(submission, true)
                }
            },
            Disturbed::Failing(n, fault) => self.through_faults(submission, n, fault),
            Disturbed::No | Disturbed::Reopened | Disturbed::Crashed | Disturbed::InTurns => {
                self.after_all(submission, false)
            }
        };
        match self.disturbed {
            Disturbed::Reopened => self.reopen(),
            Disturbed::Crashed => self.crash(),
            Disturbed::No | Disturbed::InTurns | Disturbed::Dropped(_) | Disturbed::Failing(..) => {
            }
        }
        outcome
    }

    /// Sends a request again and again, and lets the `n`-th step fail, then the next one, until it
    /// is done.
    fn through_faults(&mut self, submission: &Submission, mut n: u64, fault: Fault) -> Outcome {
        loop {
            if n >= STEPS_MAX || !self.rig.fail_at(n, fault) {
                assert!(n < STEPS_MAX, "a command had {STEPS_MAX} steps");
                return self.after_all(submission, false);
            }
            let answer = submit(self.store(), submission);
            let fired = self.rig.disarm() || answer.is_err();
            self.disturbances += u32::from(fired);
            let error = match answer {
                Ok(outcome) => {
                    // The store went on by itself; steps behind this one fail another time.
                    if fired {
                        self.next_step = Some(self.next_step.map_or(n + 1, |m| m.min(n + 1)));
                    }
                    let expected = submit(&self.memory, submission).expect("a reference");
                    alike(&expected, &outcome, fired);
                    return outcome;
                }
                Err(error) => error,
            };
            let found = self.rows().unwrap_or_else(|e| panic!("{e}"));
            if let Err(what) = same(&self.reference(), &found) {
                let unknown = matches!(error, StoreError::Unknown { .. });
                assert!(unknown, "after {error}, which says that nothing was done: {what}");
                self.next_step = Some(self.next_step.map_or(n + 1, |m| m.min(n + 1)));
                return self.after_all(submission, true);
            }
            if fault == Fault::AtCommit {
                return self.after_all(submission, false);
            }
            n += 1;
        }
    }

    /// Submits after whatever came before: the rows are those from before or, if it may have been
    /// done, from after; then the answer is the reference's.
    fn after_all(&mut self, submission: &Submission, may_be_done: bool) -> Outcome {
        let before = may_be_done.then(|| self.reference());
        let expected = submit(&self.memory, submission).expect("a reference");
        if let Some(before) = before {
            let found = self.rows().unwrap_or_else(|e| panic!("{e}"));
            if let Err(not_before) = same(&before, &found)
                && let Err(not_after) = same(&self.reference(), &found)
            {
                panic!("half of a command: {not_before}; and {not_after}");
            }
        }
        // By the other connection, if there is one: anybody may ask what came of a request.
        self.commands += u64::from(may_be_done);
        let outcome = submit(self.store(), submission);
        self.commands -= u64::from(may_be_done);
        let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
        alike(&expected, &outcome, may_be_done);
        outcome
    }

    fn reference(&self) -> Dump {
        pollster::block_on(dump(&self.memory)).expect("a reference")
    }

    fn rows(&self) -> Result<Dump, String> {
        pollster::block_on(dump(self.store())).map_err(|e| e.to_string())
    }

    /// Every row of both, and the journal since the last time.
    ///
    /// # Errors
    /// What differs.
    pub(crate) fn compare(&mut self) -> Result<(), String> {
        same(&self.reference(), &self.rows()?)?;
        let expected = journal(&self.memory, self.follows.0, usize::MAX);
        let found = journal_of::<R>(self.store(), self.follows.1, expected.len())?;
        let lines = |rows: &[JournalRow]| -> Vec<_> {
            rows.iter().map(|row| row.columns.clone()).collect()
        };
        if lines(&expected) != lines(&found) {
            return Err(format!("the journal: {found:?}, not {expected:?}"));
        }
        let mut at = self.follows.1;
        for line in &found {
            if line.seq <= at {
                return Err(format!("the journal's numbers do not grow: {found:?}"));
            }
            at = line.seq;
        }
        self.follows = (expected.last().map_or(self.follows.0, |line| line.seq), at);
        Ok(())
    }

    /// Every row of the store.
    pub(crate) fn everything(&self) -> Rows {
        let reads: Vec<Read> = TableId::ALL.iter().map(|t| Read::all(*t)).collect();
        let rows = pollster::block_on(self.store().read(&reads)).unwrap_or_else(|e| panic!("{e}"));
        assert!(rows.unreadable.is_empty(), "{:?}", rows.unreadable);
        rows
    }
}

/// Two answers to one command. Names for people are left out: the reference has those of rows
/// that were never read, too. `repeated`: the store may have been asked before, and an earlier answer
/// has lost what came with it the first time.
///
/// # Errors
/// What differs.
pub(crate) fn agree(expected: &Outcome, found: &Outcome, repeated: bool) -> Result<(), String> {
    let same = match (expected, found) {
        (Outcome::Refused(a), Outcome::Refused(b)) if repeated && b.replayed => {
            a.refusal.guard == b.refusal.guard
        }
        (Outcome::Refused(a), Outcome::Refused(b)) => {
            a.refusal == b.refusal && a.replayed == b.replayed && a.rows() == b.rows()
        }
        (Outcome::Accepted(a), Outcome::Accepted(b)) if repeated && b.replayed => {
            a.reply == b.reply
        }
        (Outcome::Accepted(a), Outcome::Accepted(b)) => {
            (&a.reply, a.replayed, &a.warrant, &a.events, &a.effects)
                == (&b.reply, b.replayed, &b.warrant, &b.events, &b.effects)
        }
        (Outcome::Refused(_), Outcome::Accepted(_))
        | (Outcome::Accepted(_), Outcome::Refused(_)) => false,
    };
    if same {
        Ok(())
    } else {
        Err(format!("the answer is {}, not {}", short(found), short(expected)))
    }
}

/// An outcome without the names that came with it.
pub(crate) fn short(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Accepted(a) => format!(
            "accepted {:?} (replayed: {}) {:?} {:?} {:?}",
            a.reply, a.replayed, a.warrant, a.events, a.effects
        ),
        Outcome::Refused(r) => format!("{r} (replayed: {})", r.replayed),
    }
}

fn alike(expected: &Outcome, found: &Outcome, repeated: bool) {
    agree(expected, found, repeated).unwrap_or_else(|what| panic!("{what}"));
}

/// Compares all rows, versions included.
///
/// # Errors
/// The first row that differs.
pub(crate) fn same(expected: &Dump, found: &Dump) -> Result<(), String> {
    // A row may hold a megabyte.
    let cut = |row: Option<&DumpRow>| match row {
        Some(row) => format!("{:.600}", format!("{row:?}")),
        None => "nothing".to_owned(),
    };
    for (table, rows) in expected {
        let Some(there) = found.get(table) else { return Err(format!("no table {table}")) };
        for key in rows.keys().chain(there.keys()) {
            let (wanted, found) = (rows.get(key), there.get(key));
            if wanted != found {
                return Err(format!("{table} {key:?}: {}, not {}", cut(found), cut(wanted)));
            }
        }
    }
    if expected.len() != found.len() {
        return Err("there are other tables".to_owned());
    }
    Ok(())
}

/// The journal after a position.
pub(crate) fn journal(store: &impl Store, after: i64, limit: usize) -> Vec<JournalRow> {
    pollster::block_on(store.journal(after, limit)).unwrap_or_else(|error| panic!("{error}"))
}

/// The journal after a position, once it has this many lines: behind numbers that will never come
/// a reader may wait for a while.
///
/// # Errors
/// The lines that came, if they stay too few.
pub(crate) fn journal_of<R: Rig>(
    store: &R::Store,
    after: i64,
    wanted: usize,
) -> Result<Vec<JournalRow>, String> {
    let began = Instant::now();
    loop {
        let lines = journal(store, after, wanted.saturating_add(100));
        if lines.len() >= wanted {
            return Ok(lines);
        }
        if began.elapsed() > R::patience() {
            return Err(format!("the journal lost lines: {wanted} were expected: {lines:?}"));
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}
