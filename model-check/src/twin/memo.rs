//! Decisions that were taken before, by the variables that they can depend on.
//!
//! The actions are in groups. A group has a mask: the variables that its actions read and write.
//! A group's entry is computed on a state *of which only the masked bits are left*, so that it is
//! a function of these bits by construction; that nothing else would have changed the kernel's
//! word is looked at by [`super::Twin::verify`], which decides every action of every reachable
//! state afresh on all rows.

use super::act::Action;
use super::act::Action as A;
use super::bits::{Var, mask};

/// Actions that are decided together.
pub(super) struct Group {
    /// What they read and write.
    pub(super) mask: u64,
    /// They, in order.
    pub(super) actions: &'static [Action],
}

const SESSIONS: u64 = mask(&[Var::Session0, Var::Session1, Var::Session2, Var::Primary]);

/// Every group, in the order of a state's edges.
pub(super) const GROUPS: [Group; 10] = [
    // The operation, short of its mutation.
    Group {
        mask: mask(&[
            Var::Operator,
            Var::Job,
            Var::BarrierLapsed,
            Var::Archived,
            Var::Attempt,
            Var::Repo,
            Var::Resource,
            Var::Crashes,
            Var::Slow,
        ]),
        actions: &[
            A::Reserve,
            A::Snapshot,
            A::Abort,
            A::OperatorDies,
            A::RecoverBarrier,
            A::BarrierLapses,
            A::BarrierSlow,
        ],
    },
    // The mutation.
    Group {
        mask: SESSIONS
            | mask(&[
                Var::Operator,
                Var::Job,
                Var::BarrierLapsed,
                Var::Archived,
                Var::Attempt,
                Var::Holder,
                Var::Repo,
                Var::Resource,
            ]),
        actions: &[A::Mutate],
    },
    // The maker.
    Group {
        mask: mask(&[
            Var::Maker,
            Var::Attempt,
            Var::Holder,
            Var::AttemptLapsed,
            Var::Repo,
            Var::Disk,
            Var::Job,
            Var::Archived,
            Var::Executor,
            Var::Crashes,
            Var::Slow,
        ]),
        actions: &[
            A::Begin,
            A::Lock,
            A::Make,
            A::SayMade,
            A::Persist,
            A::GiveUp,
            A::MakerDies,
            A::AttemptLapses,
            A::AttemptSlow,
        ],
    },
    // The owner's sessions.
    Group {
        mask: SESSIONS | mask(&[Var::Archived, Var::Job]),
        actions: &[
            A::Create(0),
            A::BeginClose(0),
            A::AbortClose(0),
            A::CommitClose(0),
            A::Create(1),
            A::BeginClose(1),
            A::AbortClose(1),
            A::CommitClose(1),
            A::Create(2),
            A::BeginClose(2),
            A::AbortClose(2),
            A::CommitClose(2),
        ],
    },
    // The borrower.
    Group {
        mask: mask(&[Var::Borrower, Var::Archived, Var::Job, Var::Repo]),
        actions: &[A::Borrow, A::BeginReturn, A::AbortReturn, A::CommitReturn],
    },
    // The unarchive.
    Group {
        mask: SESSIONS
            | mask(&[
                Var::Archived,
                Var::Unarchived,
                Var::Job,
                Var::Part0,
                Var::Part1,
                Var::Resource,
            ]),
        actions: &[A::Unarchive],
    },
    // The claims.
    Group {
        mask: mask(&[
            Var::Worker,
            Var::Executor,
            Var::Remover,
            Var::Job,
            Var::Part0,
            Var::Part1,
            Var::Resource,
            Var::Archived,
            Var::Attempt,
            Var::Slow,
            Var::Retried,
        ]),
        actions: &[
            A::Retry,
            A::Claim0,
            A::Claim1,
            A::Finish0,
            A::Finish1,
            A::PutBack,
            A::Settle,
            A::Rescue0,
            A::Rescue1,
            A::Claim0Lapses,
            A::Claim0Slow,
            A::Claim1Lapses,
            A::Claim1Slow,
        ],
    },
    // The permission.
    Group {
        mask: mask(&[
            Var::Worker,
            Var::Executor,
            Var::Maker,
            Var::Remover,
            Var::Removal,
            Var::Job,
            Var::Part1,
            Var::Resource,
            Var::Archived,
            Var::Unarchived,
            Var::Attempt,
            Var::Repo,
            Var::Disk,
            Var::Borrower,
            Var::Back,
        ]),
        actions: &[A::Permit, A::PermitInUse],
    },
    // The removal, and the death of who executes it.
    Group {
        mask: mask(&[
            Var::Worker,
            Var::Executor,
            Var::Back,
            Var::Removal,
            Var::Remover,
            Var::Disk,
            Var::Repo,
            Var::Resource,
            Var::Job,
            Var::Archived,
            Var::Unarchived,
            Var::Attempt,
            Var::Maker,
            Var::Borrower,
            Var::Crashes,
        ]),
        actions: &[
            A::Act,
            A::Record,
            A::TakeOver,
            A::RemovalLapses,
            A::RecoveryDies,
            A::WorkerDies,
        ],
    },
    // The attempt's recovery.
    Group {
        mask: mask(&[
            Var::Executor,
            Var::Back,
            Var::Maker,
            Var::Removal,
            Var::Remover,
            Var::Disk,
            Var::Repo,
            Var::Job,
            Var::Archived,
            Var::Attempt,
            Var::Holder,
            Var::AttemptLapsed,
        ]),
        actions: &[A::RecoverAttempt, A::Compensate],
    },
];

/// The groups that can have an edge here, as bits. It only saves look-ups: a group that is left
/// out here though it had an edge would be a difference between model and `verify`.
#[inline]
pub(super) fn awake(word: u64) -> u32 {
    let var = |v: Var| v.get(word);
    let attempt = var(Var::Attempt);
    let unresolved = attempt == 1 || attempt == 2 || attempt == 4;
    let job = var(Var::Job);
    let worker = var(Var::Worker);
    let waits = var(Var::Resource) == 6 || var(Var::Resource) == 7;
    let under_way = super::bits::unsettled(var(Var::Removal));
    let quiet = var(Var::Executor) == 0;
    u32::from(var(Var::Operator) < 4 || job == 1 || job == 2)
        | u32::from(var(Var::Operator) == 2) << 1
        | u32::from(var(Var::Maker) < 5 || (unresolved && var(Var::AttemptLapsed) == 0)) << 2
        | 1 << 3
        | u32::from(var(Var::Borrower) != 3) << 4
        | u32::from(var(Var::Archived) == 1 && var(Var::Unarchived) == 0) << 5
        | u32::from(job == 5 || worker != 0) << 6
        | u32::from(worker == 2 && waits && quiet) << 7
        | u32::from(under_way || (worker != 0 && var(Var::Crashes) > 0)) << 8
        | u32::from(unresolved && quiet) << 9
}

/// What the properties of states look at, in two halves that none of them crosses.
pub(super) const LOOKS: [u64; 2] = [
    SESSIONS | mask(&[Var::Borrower, Var::Archived]),
    mask(&[
        Var::Borrower,
        Var::Archived,
        Var::Attempt,
        Var::Holder,
        Var::Repo,
        Var::Disk,
        Var::Job,
        Var::Part0,
        Var::Part1,
        Var::Resource,
        Var::Removal,
        Var::Remover,
        Var::Executor,
        Var::Maker,
    ]),
];

/// A table from masked words to small numbers, with open addressing.
#[derive(Debug)]
pub(super) struct Table {
    slots: Vec<(u64, u64)>,
    used: usize,
}

/// No masked word: the highest bits are nobody's.
const NOBODY: u64 = u64::MAX;

impl Table {
    pub(super) fn new() -> Table {
        Table { slots: vec![(NOBODY, 0); 64], used: 0 }
    }

    #[inline]
    fn place(&self, key: u64) -> usize {
        let spread = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (spread >> (64 - self.slots.len().trailing_zeros())) as usize
    }

    #[inline]
    pub(super) fn get(&self, key: u64) -> Option<u64> {
        let last = self.slots.len() - 1;
        let mut at = self.place(key);
        loop {
            let (known, value) = self.slots[at & last];
            if known == key {
                return Some(value);
            }
            if known == NOBODY {
                return None;
            }
            at += 1;
        }
    }

    pub(super) fn put(&mut self, key: u64, value: u64) {
        if self.used * 2 >= self.slots.len() {
            let doubled = vec![(NOBODY, 0); self.slots.len() * 2];
            let old = std::mem::replace(&mut self.slots, doubled);
            for (key, value) in old.into_iter().filter(|(key, _)| *key != NOBODY) {
                self.place_new(key, value);
            }
        }
        if self.get(key).is_none() {
            self.used += 1;
            self.place_new(key, value);
        }
    }

    fn place_new(&mut self, key: u64, value: u64) {
        let last = self.slots.len() - 1;
        let mut at = self.place(key);
        while self.slots[at & last].0 != NOBODY {
            at += 1;
        }
        self.slots[at & last] = (key, value);
    }

    pub(super) fn len(&self) -> usize {
        self.used
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<(u64, u64)>()
    }
}
