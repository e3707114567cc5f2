//! Each defect, and the case that it makes fail, with what the case says then.

use std::panic::{AssertUnwindSafe, catch_unwind};

use freehold_testkit::runtimes;

use crate::sample::{DEFECT, SampleRig};

/// What can be wrong with runtimes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// What leads to nobody is said to be dead.
    TakesAbsentForDead,
    /// A look ends it.
    EndsWhatItLooksAt,
    /// One that would end when asked is killed.
    KillsWithoutAsking,
    /// One that does not end when asked is left alone.
    NeverKills,
    /// There is no bound.
    WaitsForEver,
    /// A stop that ran out of time is said to have succeeded.
    SaysThatItIsDead,
    /// The pulse is not called.
    NeverPulses,
    /// Everybody is served.
    ServesEverybody,
    /// A number of another machine is taken for one of this.
    JudgesOtherMachines,
    /// So is one of another kind.
    TakesEveryKindForItsOwn,
    /// Once it is stopped, nobody knows it any more.
    ForgetsWhatItStopped,
    /// Only the first of two stops proves anything.
    LeavesItToTheFirst,
    /// The answers are not those of the handles at their place.
    AnswersInDisorder,
    /// Whoever has its number is it.
    KnowsNumbersOnly,
}

/// Runs a case on runtimes with this defect; it must fail, and say so.
fn fails(defect: Defect, case: fn(), says: &str) {
    DEFECT.set(Some(defect));
    let failed = catch_unwind(AssertUnwindSafe(case));
    DEFECT.set(None);
    let Err(why) = failed else { panic!("the case does not see {defect:?}") };
    let why = match why.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => (*other.downcast::<&str>().expect("a text")).to_owned(),
    };
    assert!(why.contains(says), "{defect:?} was expected to be told with {says:?}: {why}");
}

macro_rules! seen {
    ($($test:ident: $defect:ident => $case:ident, $says:literal;)*) => {
        $(
            #[test]
            fn $test() {
                fails(Defect::$defect, runtimes::$case::<SampleRig>, $says);
            }
        )*

        /// The cases that were seen to fail.
        const SEEN: &[&str] = &[$(stringify!($case)),*];
    };
}

seen! {
    takes_absent_for_dead: TakesAbsentForDead
        => there_are_three_answers_and_looking_touches_nobody, "proves nothing";
    ends_what_it_looks_at: EndsWhatItLooksAt
        => there_are_three_answers_and_looking_touches_nobody, "it runs, look 1";
    kills_without_asking: KillsWithoutAsking
        => one_that_listens_ends_in_its_own_way, "killed without being asked";
    never_kills: NeverKills
        => one_that_does_not_listen_is_killed_within_the_bound, "not killed within the bound";
    waits_for_ever: WaitsForEver
        => one_that_does_not_listen_is_killed_within_the_bound, "has not ended";
    says_that_it_is_dead: SaysThatItIsDead
        => one_is_not_said_to_be_dead_while_it_lives, "said to be dead, and runs";
    never_pulses: NeverPulses
        => the_pulse_is_called_while_it_is_waited_for, "no pulse";
    serves_everybody: ServesEverybody
        => another_machines_is_unknown_and_not_served, "is served";
    judges_other_machines: JudgesOtherMachines
        => another_machines_is_unknown_and_not_served, "is served";
    takes_absent_for_dead_of_another_machine: TakesAbsentForDead
        => another_machines_is_unknown_and_not_served, "judged from here";
    serves_everybody_of_every_kind: ServesEverybody
        => another_kind_is_unknown_and_not_served, "is served";
    takes_every_kind_for_its_own: TakesEveryKindForItsOwn
        => another_kind_is_unknown_and_not_served, "is served";
    forgets_what_it_stopped: ForgetsWhatItStopped
        => a_stop_is_idempotent, "stopped again";
    leaves_it_to_the_first: LeavesItToTheFirst
        => two_that_stop_one_at_once_both_prove_it, "has to prove it";
    answers_in_disorder: AnswersInDisorder
        => several_are_answered_for_in_their_order, "not in their order";
    knows_numbers_only: KnowsNumbersOnly
        => a_dead_one_stays_dead, "came to life again";
}

#[test]
fn every_case_of_runtimes_was_seen_to_fail() {
    let cases = include_str!("../../src/runtimes/cases.rs");
    let contract = include_str!("../../src/runtimes/mod.rs");
    let cases: Vec<&str> =
        cases.lines().filter_map(|line| line.strip_prefix("pub fn ")?.split('<').next()).collect();
    assert!(cases.len() > 8, "the cases were not found");
    for case in &cases {
        assert!(contract.contains(&format!("fn {case}() {{")), "the one call leaves {case} out");
        assert!(SEEN.contains(case), "no defect makes {case} fail");
    }
}
