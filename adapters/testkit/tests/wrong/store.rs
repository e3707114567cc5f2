//! A sample store: optimistic, in memory, with a disk that survives it, two awaits per command and
//! a fault before and after each step. Without a defect it keeps the contract.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use freehold_kernel::{JobRoot, RequestId, TableId, Time};
use freehold_store::memory::{Memory, World};
use freehold_store::names::uuid_text;
use freehold_store::pick::by_reading;
use freehold_store::run::Stored;
use freehold_store::store::JournalRow;
use freehold_store::{Clock, Outcome, Pick, Read, Refused, Rows, Store, StoreError, Submission};
use freehold_testkit::{Can, Fault, Held, Rig};

use crate::defects::Defect;

thread_local! {
    /// What is wrong with the stores of this test's thread.
    pub(crate) static DEFECT: Cell<Option<Defect>> = const { Cell::new(None) };
}

/// What survives the stores.
struct Disk {
    state: Mutex<State>,
    clock: Clock,
    defect: Option<Defect>,
}

#[derive(Default)]
struct State {
    world: World,
    /// One commit before that, for a store that loses the last.
    before: World,
    commits: u64,
    fault: Option<(u64, Fault)>,
    fired: bool,
    /// A transaction that somebody has open; only defects have one across an await.
    open: bool,
    refused: BTreeMap<RequestId, Refused>,
    shown: bool,
    /// Behind how many lines a commit is held open that has its numbers.
    held: Option<usize>,
    /// Which connection has the locks; only a defect takes them.
    locked_by: Option<u64>,
    connections: u64,
    /// Parts of jobs that cannot be read.
    spoiled: Vec<String>,
}

/// A connection to it.
pub(crate) struct Sample {
    disk: Arc<Disk>,
    /// What it remembers; only a defect looks at it.
    memory: Mutex<Option<World>>,
    opened_at: Time,
    number: u64,
    /// By its own clock, in a zone.
    zone: Option<String>,
}

/// A commit that has its numbers: its lines go where they belong when it ends.
pub(crate) struct HeldCommit {
    disk: Arc<Disk>,
    submission: Submission,
    at: usize,
}

impl Held for HeldCommit {
    fn commit(self) {
        let mut state = self.disk.lock();
        let memory = Memory::resume("sample", self.disk.clock.clone(), state.world.clone());
        memory.submit_now(&self.submission).unwrap();
        let mut world = memory.world();
        let lines = world.journal.len() - state.world.journal.len();
        world.journal[self.at..].rotate_right(lines);
        state.world = world;
        state.commits += 1;
        state.held = None;
    }

    fn roll_back(self) {
        self.disk.lock().held = None;
    }
}

/// What came of asking for a step.
enum Stepped {
    Well,
    Failed,
    AnswerLost,
}

async fn an_await() {
    struct Once(bool);
    impl Future for Once {
        type Output = ();
        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
            if std::mem::replace(&mut self.0, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }
    }
    Once(false).await;
}

impl Disk {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    fn step(&self, commit: bool) -> Stepped {
        let mut state = self.lock();
        match state.fault {
            Some((_, Fault::AtCommit)) if commit => {}
            Some((0, Fault::Before | Fault::After)) => {}
            Some((n, fault)) if fault != Fault::AtCommit => {
                state.fault = Some((n - 1, fault));
                return Stepped::Well;
            }
            Some(_) | None => return Stepped::Well,
        }
        state.fired = true;
        match state.fault.take() {
            Some((_, Fault::After)) => Stepped::AnswerLost,
            _before => Stepped::Failed,
        }
    }
}

fn failed() -> StoreError {
    StoreError::Unavailable { detail: "a planned fault".to_owned() }
}

impl Sample {
    fn clock(&self) -> Clock {
        let now = self.disk.clock.now();
        if let Some(zone) = &self.zone {
            let ahead =
                if self.disk.has(Defect::SpeaksLocalTime) && zone != "UTC" { 3600 } else { 0 };
            return Clock::manual(Time(Clock::System.now().0 + ahead * 1_000_000));
        }
        if self.disk.has(Defect::ReadsTheClockWhenOpened) {
            return Clock::manual(self.opened_at);
        }
        if self.disk.has(Defect::HasNoTimeBefore1970) {
            return Clock::manual(Time(now.0.max(0)));
        }
        self.disk.clock.clone()
    }

    /// The submission as a wrong store takes it.
    fn taken(&self, submission: &Submission) -> Submission {
        let mut taken = submission.clone();
        if self.disk.has(Defect::IgnoresRequests) {
            taken.envelope.request = None;
        }
        for text in taken.contents.values_mut().flat_map(|c| c.values_mut()).flatten() {
            if self.disk.has(Defect::TakesNul) {
                *text = text.replace('\0', "\u{fffd}");
            }
            if self.disk.has(Defect::CutsContents) {
                *text = text.chars().take(1000).collect();
            }
        }
        taken
    }

    /// Writes; what a wrong store leaves out of it.
    fn write(&self, state: &mut State, mut world: World, refused: bool) {
        let disk = &self.disk;
        if disk.has(Defect::ForgetsARow) {
            let ids: Vec<u128> = world.view.turns.iter().map(|t| t.id.0).collect();
            ids.into_iter().for_each(|id| world.view.turns.remove(id));
            world.view.commit();
        }
        if disk.has(Defect::LosesALine) && world.journal.len() > state.world.journal.len() {
            let at = world.journal.len();
            if at.is_multiple_of(3) {
                world.journal.pop();
            }
        }
        if disk.has(Defect::WritesOfRefusals)
            && refused
            && let Some(last) = world.journal.last().cloned()
        {
            world.journal.push(last);
        }
        state.before = std::mem::replace(&mut state.world, world);
        state.commits += 1;
    }

    async fn carry_out(&self, submission: &Submission) -> Result<Outcome, StoreError> {
        let disk = &self.disk;
        loop {
            match disk.step(false) {
                Stepped::Well => {}
                Stepped::Failed | Stepped::AnswerLost => return Err(failed()),
            }
            let (mut world, at) = {
                let state = disk.lock();
                (state.world.clone(), state.commits)
            };
            if disk.has(Defect::DecidesOnWhatItRemembers)
                && let Some(remembered) = self.memory.lock().unwrap().clone()
            {
                world = remembered;
            }
            an_await().await;
            let memory = Memory::resume("sample", self.clock(), world);
            let outcome = memory.submit_now(submission)?;
            let after = memory.world();
            let refused = matches!(outcome, Outcome::Refused(_));
            let stepped = disk.step(true);
            if disk.has(Defect::WritesInTwoSteps) || disk.has(Defect::LeavesHalfOnAFault) {
                let mut half = after.clone();
                half.view.identities = disk.lock().world.view.identities.clone();
                if disk.has(Defect::WritesInTwoSteps) {
                    self.write(&mut disk.lock(), half, refused);
                    an_await().await;
                    self.write(&mut disk.lock(), after, refused);
                    return Ok(outcome);
                }
                if matches!(stepped, Stepped::Failed) {
                    self.write(&mut disk.lock(), half, refused);
                }
            }
            if matches!(stepped, Stepped::Failed) {
                return Err(failed());
            }
            {
                let mut state = disk.lock();
                if state.commits != at
                    && !disk.has(Defect::ChecksNoVersions)
                    && !disk.has(Defect::DecidesOnWhatItRemembers)
                {
                    continue;
                }
                *self.memory.lock().unwrap() = Some(after.clone());
                self.write(&mut state, after, refused);
            }
            an_await().await;
            return match stepped {
                Stepped::AnswerLost if disk.has(Defect::SaysThatNothingWasDone) => Err(failed()),
                Stepped::AnswerLost if disk.has(Defect::DoesItAgain) => {
                    let mut again = submission.clone();
                    again.envelope.request = None;
                    Box::pin(self.carry_out(&again)).await
                }
                Stepped::AnswerLost => {
                    Err(StoreError::Unknown { detail: "a planned fault".to_owned() })
                }
                Stepped::Well | Stepped::Failed => Ok(outcome),
            };
        }
    }

    /// As a store that opens a transaction and lets nobody else in, until it comes to its end.
    fn open(&self) -> Result<(), StoreError> {
        if std::mem::replace(&mut self.disk.lock().open, true) {
            return Err(StoreError::Busy { detail: "a transaction is open".to_owned() });
        }
        Ok(())
    }

    fn close(&self) {
        self.disk.lock().open = false;
    }
}

impl Store for Sample {
    async fn submit(&self, submission: &Submission) -> Result<Outcome, StoreError> {
        let disk = &self.disk;
        if disk.has(Defect::KeepsATransaction) || disk.has(Defect::KeepsARead) {
            self.open()?;
            if disk.has(Defect::KeepsARead) {
                self.close();
            }
        }
        if disk.has(Defect::RemembersEveryRefusal)
            && let Some(id) = submission.envelope.request
            && let Some(refused) = disk.lock().refused.get(&id)
        {
            return Ok(Outcome::Refused(refused.clone()));
        }
        if disk.has(Defect::KeepsItsLocks) {
            let mut state = disk.lock();
            if state.locked_by.is_some_and(|by| by != self.number) {
                return Err(StoreError::Busy { detail: "a row is locked".to_owned() });
            }
            state.locked_by = Some(self.number);
        }
        let outcome = self.carry_out(&self.taken(submission)).await;
        if disk.has(Defect::KeepsItsLocks) {
            disk.lock().locked_by = None;
        }
        if disk.has(Defect::KeepsATransaction) {
            self.close();
        }
        if let (Some(id), Ok(Outcome::Refused(refused))) = (submission.envelope.request, &outcome) {
            disk.lock().refused.insert(id, refused.clone());
        }
        outcome
    }

    async fn read(&self, reads: &[Read]) -> Result<Rows, StoreError> {
        let disk = &self.disk;
        if disk.has(Defect::KeepsARead) {
            self.open()?;
        }
        an_await().await;
        if disk.has(Defect::KeepsARead) {
            self.close();
        }
        let mut reads = reads.to_vec();
        if disk.has(Defect::IgnoresCase) {
            for (_, values) in reads.iter_mut().filter_map(|r| r.by.as_mut()) {
                let upper: Vec<Stored> = values
                    .iter()
                    .filter_map(|v| match v {
                        Stored::Text(text) => Some(Stored::Text(text.to_uppercase())),
                        Stored::Null | Stored::Int(_) => None,
                    })
                    .collect();
                values.extend(upper);
            }
        }
        if disk.has(Defect::ReadsInManyMoments) {
            let mut rows = Rows::default();
            for read in &reads {
                let world = disk.lock().world.clone();
                rows.absorb(
                    Memory::resume("sample", self.clock(), world)
                        .read_now(std::slice::from_ref(read))?,
                );
                an_await().await;
            }
            return Ok(rows);
        }
        let world = disk.lock().world.clone();
        let mut rows = Memory::resume("sample", self.clock(), world).read_now(&reads)?;
        if disk.has(Defect::ReadsAHundredRows) && reads.iter().any(|r| r.table == TableId::Sessions)
        {
            let beyond: Vec<u128> = rows.view.sessions.iter().skip(100).map(|s| s.id.0).collect();
            beyond.into_iter().for_each(|id| rows.view.sessions.remove(id));
            rows.view.commit();
        }
        Ok(rows)
    }

    async fn journal(&self, after: i64, limit: usize) -> Result<Vec<JournalRow>, StoreError> {
        an_await().await;
        let disk = &self.disk;
        let world = disk.lock().world.clone();
        let memory = Memory::resume("sample", self.clock(), world);
        if disk.has(Defect::RepeatsTheLastLine) {
            return memory.journal((after - 1).max(0), limit).await;
        }
        let mut lines = memory.journal(after, limit).await?;
        if let Some(held) = disk.lock().held
            && !disk.has(Defect::PassesOpenCommits)
        {
            lines.retain(|line| line.seq <= i64::try_from(held).unwrap());
        }
        if disk.has(Defect::ShowsALineLate)
            && lines.len() > 1
            && !std::mem::replace(&mut disk.lock().shown, true)
        {
            // Its number was given first, and it commits last.
            lines.remove(0);
        }
        Ok(lines)
    }

    async fn pick(&self, pick: &Pick) -> Result<Vec<JobRoot>, StoreError> {
        let disk = &self.disk;
        let limit = if disk.has(Defect::LooksAtNoMoreThanAsked) { pick.limit } else { usize::MAX };
        let mut parts = by_reading(self, &Pick { limit, ..pick.clone() }).await?;
        let spoiled = disk.lock().spoiled.clone();
        parts.retain(|part| !spoiled.contains(&uuid_text(part.id.0)));
        parts.truncate(pick.limit);
        Ok(parts)
    }

    async fn id(&self) -> Result<String, StoreError> {
        Ok("sample".to_owned())
    }
}

/// The rig, with everything that there is to offer.
pub(crate) struct SampleRig {
    disk: Arc<Disk>,
    opened: Cell<bool>,
}

impl SampleRig {
    fn connect(&self, zone: Option<&str>) -> Sample {
        let number = {
            let mut state = self.disk.lock();
            state.connections += 1;
            state.connections
        };
        Sample {
            disk: Arc::clone(&self.disk),
            memory: Mutex::default(),
            opened_at: self.disk.clock.now(),
            number,
            zone: zone.map(str::to_owned),
        }
    }
}

impl Rig for SampleRig {
    type Store = Sample;
    type Held = HeldCommit;

    fn fresh() -> Self {
        let defect = DEFECT.get();
        let clock = Clock::manual(Time(1_000_000_000_000));
        let disk = Disk { state: Mutex::default(), clock, defect };
        SampleRig { disk: Arc::new(disk), opened: Cell::new(false) }
    }

    fn clock(&self) -> Clock {
        self.disk.clock.clone()
    }

    fn open(&self) -> Sample {
        if self.opened.replace(true) && Arc::strong_count(&self.disk) == 1 {
            let mut state = self.disk.lock();
            if self.disk.has(Defect::LosesTheLastCommitWhenClosed) {
                state.world = state.before.clone();
            }
            if self.disk.has(Defect::ForgetsRequestsWhenClosed) {
                let ids: Vec<u128> = state.world.view.requests.iter().map(|r| r.id.0).collect();
                ids.into_iter().for_each(|id| state.world.view.requests.remove(id));
                state.world.view.commit();
            }
        }
        self.connect(None)
    }

    fn can_spoil() -> Can {
        Can::Yes
    }

    fn spoil(&self, part: &str) {
        self.disk.lock().spoiled.push(part.to_owned());
    }

    fn can_zone() -> Can {
        Can::Yes
    }

    fn open_in_zone(&self, zone: &str) -> Sample {
        self.connect(Some(zone))
    }

    fn hold(&self, _store: &Sample, submission: &Submission) -> Option<HeldCommit> {
        let mut state = self.disk.lock();
        let at = state.world.journal.len();
        state.held = Some(at);
        let (disk, submission) = (Arc::clone(&self.disk), submission.clone());
        Some(HeldCommit { disk, submission, at })
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

    fn crash(&mut self, stores: Vec<Sample>) {
        drop(stores);
        let mut state = self.disk.lock();
        if self.disk.has(Defect::LosesTheLastCommitInACrash) {
            state.world = state.before.clone();
        }
    }

    fn fail_at(&self, n: u64, fault: Fault) -> bool {
        let mut state = self.disk.lock();
        (state.fault, state.fired) = (Some((n, fault)), false);
        true
    }

    fn disarm(&self) -> bool {
        let mut state = self.disk.lock();
        state.fault = None;
        state.fired
    }

    fn patience() -> Duration {
        match DEFECT.get() {
            None => Duration::from_secs(60),
            Some(_) => Duration::from_millis(200),
        }
    }

    fn sequences() -> u64 {
        24
    }

    fn rows() -> usize {
        150
    }
}
