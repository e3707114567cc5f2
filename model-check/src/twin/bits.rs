//! The twin's variables, in the order of `promela/twin.pml`, and their places in one word.

use std::fmt;

macro_rules! variables {
    ($($(#[$doc:meta])* $name:ident $upper:ident $width:literal;)*) => {
        /// Every variable of a state.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(super) struct Vars { $($(#[$doc])* pub(super) $name: u8,)* }

        /// A variable's name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Var { $($(#[$doc])* $upper,)* }

        const WIDTHS: &[u32] = &[$($width,)*];

        impl Vars {
            /// The variables in a word.
            pub(super) fn of(word: u64) -> Vars {
                Vars { $($name: Var::$upper.get(word),)* }
            }

            /// The word of these variables.
            pub(super) fn word(&self) -> u64 {
                0 $(| Var::$upper.put(self.$name))*
            }
        }

        impl fmt::Display for Vars {
            /// The line that the Promela twin prints under `PRINT`.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "=")?;
                $(write!(f, " {}", self.$name)?;)*
                Ok(())
            }
        }
    };
}

variables! {
    /// A session of the owner's task.
    session0 Session0 3;
    /// Another.
    session1 Session1 3;
    /// A third.
    session2 Session2 3;
    /// The session of the other task, which borrows.
    borrower Borrower 2;
    /// S-6: 0 none, else the session's number + 1.
    primary Primary 2;
    /// The owner's task is archived.
    archived Archived 1;
    /// A person unarchived it.
    unarchived Unarchived 1;
    /// The attempt's state.
    attempt Attempt 3;
    /// Who has its token.
    holder Holder 2;
    /// Its lease has lapsed.
    attempt_lapsed AttemptLapsed 1;
    /// The repository row.
    repo Repo 2;
    /// The worktree on disk.
    disk Disk 2;
    /// The job up to its activation, and whether it was cancelled.
    job Job 3;
    /// The barrier's lease has lapsed.
    barrier_lapsed BarrierLapsed 1;
    /// The part of the job that lies in no root.
    part0 Part0 3;
    /// The part in the root: state and tries.
    part1 Part1 4;
    /// The snapshot's one resource.
    resource Resource 4;
    /// The removal row's last step.
    removal Removal 4;
    /// Who has its token.
    remover Remover 2;
    /// 0 none, 1 has a warrant, 2 did the step.
    executor Executor 2;
    /// The warrant is one to put back.
    back Back 1;
    /// The operation's owner: where it is.
    operator Operator 3;
    /// The maker: where it is.
    maker Maker 3;
    /// The worker: 0 idle, 1 and 2 with a claim on a part.
    worker Worker 2;
    /// Crashes left.
    crashes Crashes 2;
    /// Lapses left that hit a living owner.
    slow Slow 2;
    /// A person retried the job.
    retried Retried 1;
}

impl Var {
    const fn at(self) -> u32 {
        let (mut at, mut i) = (0, 0);
        while i < self as usize {
            at += WIDTHS[i];
            i += 1;
        }
        at
    }

    /// The bits of this variable.
    pub(super) const fn mask(self) -> u64 {
        ((1 << WIDTHS[self as usize]) - 1) << self.at()
    }

    /// Its value in a word.
    #[inline]
    pub(super) const fn get(self, word: u64) -> u8 {
        ((word & self.mask()) >> self.at()) as u8
    }

    /// A word with this value only. What does not fit would change its neighbour: a defect.
    pub(super) fn put(self, value: u8) -> u64 {
        let word = u64::from(value) << self.at();
        assert!(word & !self.mask() == 0, "{self:?} cannot hold {value}");
        word
    }
}

/// The bits of several variables.
pub(super) const fn mask(vars: &[Var]) -> u64 {
    let (mut bits, mut i) = (0, 0);
    while i < vars.len() {
        bits |= vars[i].mask();
        i += 1;
    }
    bits
}

impl Vars {
    /// The owner's sessions.
    pub(super) fn sessions(&self) -> [u8; 3] {
        [self.session0, self.session1, self.session2]
    }

    /// Sets one of them.
    pub(super) fn set_session(&mut self, index: usize, value: u8) {
        match index {
            0 => self.session0 = value,
            1 => self.session1 = value,
            _third => self.session2 = value,
        }
    }

    /// Whether nobody is at work on the path (W-13).
    pub(super) fn path_free(&self) -> bool {
        self.executor == 0 && !matches!(self.maker, 2..=4)
    }
}

/// Whether a removal with this last step awaits its outcome.
pub(super) const fn unsettled(removal: u8) -> bool {
    removal >= 1 && removal <= 6
}
