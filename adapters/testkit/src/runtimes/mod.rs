//! The contract of runtimes (C-7, C-17, T-5, W-31): one call tests a [`Runtimes`] of your own.
//!
//! Write a [`RuntimesRig`]: how one is begun, ended behind everybody's back, and looked at without
//! asking the runtimes. Then one call, `freehold_testkit::runtimes_contract!(MyRig);` in a test
//! file, makes a test of every case. Freehold's own rig is `tests/contract.rs` of
//! `freehold-runtime`, and one in memory is in this crate's `tests/runtimes`.
//!
//! | case | what holds |
//! |---|---|
//! | [`there_are_three_answers_and_looking_touches_nobody`] | alive, dead, unknown; what nobody recorded is not dead |
//! | [`one_that_listens_ends_in_its_own_way`] | it is asked before it is killed |
//! | [`one_that_does_not_listen_is_killed_within_the_bound`] | and that is the end of the call, too |
//! | [`one_is_not_said_to_be_dead_while_it_lives`] | a bound in which nothing ends |
//! | [`the_pulse_is_called_while_it_is_waited_for`] | the caller's lease is kept |
//! | [`another_machines_is_unknown_and_not_served`], [`another_kind_is_unknown_and_not_served`] | and nobody is touched on its behalf |
//! | [`a_stop_is_idempotent`] | by whoever repeats it |
//! | [`two_that_stop_one_at_once_both_prove_it`] | in one process, and in two |
//! | [`several_are_answered_for_in_their_order`] | one answer for each |
//! | [`a_dead_one_stays_dead`] | also when others are begun after it, and they are not touched |
//!
//! Each case is known to be able to fail: `tests/runtimes` has a sample with a switchable defect
//! for each. `freehold-runtime` is tested by exactly this.

mod cases;

use std::time::Duration;

use freehold_kernel::RuntimeKind;
use freehold_store::{RuntimeHandle, Runtimes};

pub use cases::*;

/// How one takes a request to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manners {
    /// It ends in its own way.
    Listens,
    /// It does not hear it.
    Deaf,
}

/// What the contract of runtimes needs beside the runtimes themselves. Each case makes its own, and
/// leaves nothing running unless it fails.
///
/// What goes wrong in a rig panics, with a sentence.
pub trait RuntimesRig: Sized + Sync {
    /// The runtimes that are tested.
    type Runtimes: Runtimes + Send + Sync + 'static;

    /// A place where nothing runs.
    fn fresh() -> Self;

    /// The runtimes as an instance of this machine has them; another call gives another instance's.
    fn open(&self) -> Self::Runtimes;

    /// The same, which wait for more than a second before they kill a deaf one.
    fn open_patient(&self) -> Self::Runtimes {
        self.open()
    }

    /// Begins one, and gives its handle as it is recorded: running. It has begun when this returns.
    fn begin(&self, by: &Self::Runtimes, manners: Manners) -> RuntimeHandle;

    /// Ends it behind everybody's back. It is gone when this returns.
    fn kill(&self, handle: &RuntimeHandle);

    /// Whether it runs, by another way than the runtimes' own.
    fn runs(&self, handle: &RuntimeHandle) -> bool;

    /// Whether one that listens ended in its own way.
    fn ended_in_its_own_way(&self, handle: &RuntimeHandle) -> bool;

    /// The same handle as a host of another machine would have recorded it.
    fn of_another_machine(&self, handle: &RuntimeHandle) -> RuntimeHandle;

    /// The same handle without what its process, or the like, is found by.
    fn of_nobody(&self, handle: &RuntimeHandle) -> RuntimeHandle {
        RuntimeHandle { texts: Default::default(), ..handle.clone() }
    }

    /// The kinds that these runtimes serve; the others are somebody else's.
    fn kinds() -> &'static [RuntimeKind];

    /// A bound that is enough to stop a deaf one, on a machine that is held up, too.
    fn bound() -> Duration {
        Duration::from_secs(30)
    }

    /// Much longer than [`RuntimesRig::bound`]; only a failure waits for it.
    fn patience() -> Duration {
        Duration::from_secs(180)
    }
}

/// Makes a test of each case of the contract for a [`crate::RuntimesRig`].
#[macro_export]
macro_rules! runtimes_contract {
    ($rig:ty) => {
        #[test]
        fn there_are_three_answers_and_looking_touches_nobody() {
            $crate::runtimes::there_are_three_answers_and_looking_touches_nobody::<$rig>();
        }
        #[test]
        fn one_that_listens_ends_in_its_own_way() {
            $crate::runtimes::one_that_listens_ends_in_its_own_way::<$rig>();
        }
        #[test]
        fn one_that_does_not_listen_is_killed_within_the_bound() {
            $crate::runtimes::one_that_does_not_listen_is_killed_within_the_bound::<$rig>();
        }
        #[test]
        fn one_is_not_said_to_be_dead_while_it_lives() {
            $crate::runtimes::one_is_not_said_to_be_dead_while_it_lives::<$rig>();
        }
        #[test]
        fn the_pulse_is_called_while_it_is_waited_for() {
            $crate::runtimes::the_pulse_is_called_while_it_is_waited_for::<$rig>();
        }
        #[test]
        fn another_machines_is_unknown_and_not_served() {
            $crate::runtimes::another_machines_is_unknown_and_not_served::<$rig>();
        }
        #[test]
        fn another_kind_is_unknown_and_not_served() {
            $crate::runtimes::another_kind_is_unknown_and_not_served::<$rig>();
        }
        #[test]
        fn a_stop_is_idempotent() {
            $crate::runtimes::a_stop_is_idempotent::<$rig>();
        }
        #[test]
        fn two_that_stop_one_at_once_both_prove_it() {
            $crate::runtimes::two_that_stop_one_at_once_both_prove_it::<$rig>();
        }
        #[test]
        fn several_are_answered_for_in_their_order() {
            $crate::runtimes::several_are_answered_for_in_their_order::<$rig>();
        }
        #[test]
        fn a_dead_one_stays_dead() {
            $crate::runtimes::a_dead_one_stays_dead::<$rig>();
        }
    };
}
