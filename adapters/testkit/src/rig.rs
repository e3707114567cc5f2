//! What the contract needs of a store beside the store itself.

use std::time::Duration;

use freehold_store::{Clock, Store, Submission};

/// Whether a rig offers something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Can {
    /// It does; the cases that need it run.
    Yes,
    /// It does not, and why. The call of [`crate::store_contract`] must say so too.
    No(&'static str),
}

/// How a step of a store is made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The step is not carried out, and fails.
    Before,
    /// The step is carried out, and its answer is lost.
    After,
    /// The commit itself fails, whichever step it is.
    AtCommit,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 3] = [Fault::Before, Fault::After, Fault::AtCommit];
}

/// A command that was carried out but for its commit: its lines in the journal have their numbers,
/// and nobody else sees them.
pub trait Held {
    /// Whether there can be one. Where commands commit one after the other, the type is
    /// [`OneWriter`].
    const POSSIBLE: bool = true;

    /// Lets it commit.
    fn commit(self);

    /// Takes it back.
    fn roll_back(self);
}

/// What a store has in place of a commit that is held, if whoever writes is alone until his commit
/// is done: nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneWriter {}

impl Held for OneWriter {
    const POSSIBLE: bool = false;

    fn commit(self) {
        match self {}
    }

    fn roll_back(self) {
        match self {}
    }
}

/// A place for one store: a folder, a schema, a piece of memory. Each case makes its own, on the
/// thread that the test runs on.
///
/// What goes wrong in a rig panics, with a sentence: a program that is missing fails the test.
pub trait Rig: Sized {
    /// The store that is tested.
    type Store: Store;

    /// What [`Rig::hold`] gives.
    type Held: Held;

    /// A place where no store has been yet.
    fn fresh() -> Self;

    /// The clock that every store of this place reads: one that stands until it is moved.
    fn clock(&self) -> Clock;

    /// Opens the store, and makes it the first time. While one is open, another call opens
    /// another connection to the same rows, as another process or instance would: a store object
    /// of its own, with connections of its own. The cases give each its own instance.
    fn open(&self) -> Self::Store;

    /// Whether a connection can live in a time zone.
    fn can_zone() -> Can;

    /// Opens the store for a session in this time zone (a name of the time zone database, as
    /// `Asia/Kathmandu`), by the store's own clock in place of the rig's.
    fn open_in_zone(&self, zone: &str) -> Self::Store {
        panic!("the rig says that there are zones, and opens none in {zone}")
    }

    /// Carries out a submission of this store up to its commit. None where the type says that
    /// there is none.
    fn hold(&self, store: &Self::Store, submission: &Submission) -> Option<Self::Held> {
        let _ = (store, submission);
        None
    }

    /// Whether a store that was dropped can be opened again with what it held.
    fn can_reopen() -> Can;

    /// Whether [`Rig::crash`] does something else than dropping the stores.
    fn can_crash() -> Can;

    /// Whether several connections can be open at once.
    fn can_share() -> Can;

    /// Whether [`Rig::fail_at`] is there.
    fn can_fail() -> Can;

    /// Whether [`Rig::spoil`] is there.
    fn can_spoil() -> Can;

    /// Makes the row of a part of a job (`task_resource_cleanup_roots`) with this id one that this
    /// build cannot read, as a newer one may leave it: a `tries` that is no count (C-10).
    fn spoil(&self, part: &str) {
        panic!("the rig says that rows can be spoiled, and does not spoil {part}")
    }

    /// Ends these connections as a crash would, without closing them. What is opened next sees
    /// what the crash left.
    fn crash(&mut self, stores: Vec<Self::Store>) {
        drop(stores);
    }

    /// From now on, the step after `n` others (a statement, a request: what the engine is asked)
    /// fails in this way, once. False if there is no such fault here.
    fn fail_at(&self, n: u64, fault: Fault) -> bool {
        let _ = (n, fault);
        false
    }

    /// Takes a planned fault back. True if it came to pass, as far as the rig can tell; a call
    /// that failed says so by itself.
    fn disarm(&self) -> bool {
        false
    }

    /// Waits until the engine carries nothing out for this place any more, after futures were
    /// dropped. Panics if something stays open: a transaction, a lock.
    fn at_rest(&self) {}

    /// How long lines of the journal may stay out, behind gaps, before they count as lost.
    fn patience() -> Duration {
        Duration::from_secs(60)
    }

    /// How many random sequences are run, unless `FREEHOLD_CASES` says another number.
    fn sequences() -> u64 {
        24
    }

    /// The most sessions of one task in the case about sizes, unless `FREEHOLD_ROWS` says another
    /// number.
    fn rows() -> usize {
        1200
    }
}
