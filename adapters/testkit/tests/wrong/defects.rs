//! Each defect, and the case that it makes fail, with what the case says then.

use std::panic::{AssertUnwindSafe, catch_unwind};

use freehold_testkit::cases;

use crate::store::{DEFECT, SampleRig};

/// What can be wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// Turns are not written.
    ForgetsARow,
    /// A refused command repeats a line of the journal.
    WritesOfRefusals,
    /// Reads take upper case for the same text.
    IgnoresCase,
    /// The request id is dropped.
    IgnoresRequests,
    /// Requests end with the store.
    ForgetsRequestsWhenClosed,
    /// Refusals that may pass are remembered, too.
    RemembersEveryRefusal,
    /// A line of the journal is lost now and then.
    LosesALine,
    /// The journal after a position begins with it.
    RepeatsTheLastLine,
    /// A line comes into sight after one with a greater number.
    ShowsALineLate,
    /// The journal is read past a commit that is open.
    PassesOpenCommits,
    /// Locks outlive the future that took them; who took them does not notice.
    KeepsItsLocks,
    /// Each list of a read is of a moment of its own.
    ReadsInManyMoments,
    /// The clock of a session is its zone's.
    SpeaksLocalTime,
    /// The identities are written after an await.
    WritesInTwoSteps,
    /// A transaction stays open when its future is dropped.
    KeepsATransaction,
    /// A reading transaction stays open when its future is dropped.
    KeepsARead,
    /// The time is that of the opening.
    ReadsTheClockWhenOpened,
    /// Times are not negative.
    HasNoTimeBefore1970,
    /// Texts are cut off.
    CutsContents,
    /// NUL is replaced in silence.
    TakesNul,
    /// A read ends after a hundred sessions.
    ReadsAHundredRows,
    /// The last commit is lost when the store is closed.
    LosesTheLastCommitWhenClosed,
    /// The last commit is lost in a crash.
    LosesTheLastCommitInACrash,
    /// A connection decides on the rows that it wrote itself.
    DecidesOnWhatItRemembers,
    /// What changed since the rows were loaded is not looked at.
    ChecksNoVersions,
    /// A commit that fails leaves half of its rows.
    LeavesHalfOnAFault,
    /// A commit whose answer was lost is told as not done.
    SaysThatNothingWasDone,
    /// A commit whose answer was lost is carried out again without a look.
    DoesItAgain,
    /// As many parts are looked at as are asked for, whether they can be read or not.
    LooksAtNoMoreThanAsked,
}

/// Runs a case on a store with this defect; it must fail, and say so.
fn fails(defect: Defect, case: fn(), says: &str) {
    DEFECT.set(Some(defect));
    let failed = catch_unwind(AssertUnwindSafe(case));
    DEFECT.set(None);
    let Err(why) = failed else { panic!("the case does not see that the store {defect:?}") };
    let why = match why.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => (*other.downcast::<&str>().expect("a text")).to_owned(),
    };
    assert!(why.contains(says), "{defect:?} was expected to be told with {says:?}: {why:.2000}");
}

macro_rules! seen {
    ($($test:ident: $defect:ident => $module:ident::$case:ident, $says:literal;)*) => {
        $(
            #[test]
            fn $test() {
                fails(Defect::$defect, cases::$module::$case::<SampleRig>, $says);
            }
        )*

        /// The cases that were seen to fail.
        const SEEN: &[&str] = &[$(stringify!($case)),*];
    };
}

seen! {
    forgets_a_row: ForgetsARow => answers::commands_answer_as_the_reference, "turns [";
    writes_of_refusals: WritesOfRefusals => answers::refusals_change_nothing, "the journal";
    ignores_case: IgnoresCase => answers::reads_find_what_they_name, "left";
    loses_the_last_commit_when_closed: LosesTheLastCommitWhenClosed => answers::reopening_after_every_command_changes_nothing, "not";
    loses_the_last_commit_ina_crash: LosesTheLastCommitInACrash => answers::a_crash_after_every_command_loses_nothing, "not";
    decides_on_what_it_remembers: DecidesOnWhatItRemembers => answers::two_connections_in_turn_answer_as_one, "not";
    ignores_requests: IgnoresRequests => requests::a_request_is_answered_with_its_first_outcome, "the answer is";
    remembers_every_refusal: RemembersEveryRefusal => requests::a_refusal_that_may_pass_is_not_remembered, "the answer is";
    forgets_requests_when_closed: ForgetsRequestsWhenClosed => requests::a_request_is_remembered_when_reopened, "the answer is";
    loses_the_last_commit_ina_crash_in_requests: LosesTheLastCommitInACrash => requests::a_request_is_remembered_after_a_crash, "the answer is";
    decides_on_what_it_remembers_in_requests: DecidesOnWhatItRemembers => requests::another_connection_knows_the_outcome, "no such task";
    loses_a_line: LosesALine => journal::the_journal_tells_what_happened, "the journal lost lines";
    repeats_the_last_line: RepeatsTheLastLine => journal::the_journal_is_resumed_from_any_position, "left";
    shows_a_line_late: ShowsALineLate => journal::a_follower_misses_nothing_while_others_write, "followed";
    writes_in_two_steps: WritesInTwoSteps => dropping::a_submission_dropped_at_any_await_is_whole_or_nothing, "half of a command";
    keeps_a_transaction: KeepsATransaction => dropping::a_submission_dropped_at_any_await_is_whole_or_nothing, "a transaction is open";
    keeps_a_read: KeepsARead => dropping::a_read_dropped_at_any_await_leaves_nothing, "a transaction is open";
    reads_the_clock_when_opened: ReadsTheClockWhenOpened => time::leases_follow_the_clock_forward_and_back, "not";
    has_no_time_before_1_9_70: HasNoTimeBefore1970 => time::far_times_are_kept_as_they_are, "not";
    ignores_case_in_texts: IgnoresCase => texts::every_text_is_an_id_of_its_own, "was looked for";
    cuts_contents: CutsContents => texts::every_text_is_kept_as_it_is, "tasks [";
    takes_nul: TakesNul => texts::nul_is_refused_by_all_alike, "with NUL";
    reads_a_hundred_rows: ReadsAHundredRows => sizes::one_command_over_no_row_and_over_many, "100 sessions: ";
    forgets_a_row_in_sequences: ForgetsARow => sequences::random_sequences_keep_every_property, "table: Turns";
    checks_no_versions: ChecksNoVersions => overtaking::a_command_overtaken_at_any_await_is_decided_again, "no order explains";
    checks_no_versions_in_overtaking_2: ChecksNoVersions => overtaking::an_absence_that_ends_before_the_commit_is_noticed, "left: 2";
    decides_on_what_it_remembers_in_overtaking: DecidesOnWhatItRemembers => overtaking::two_scripts_answer_in_all_interleavings, "no order explains";
    checks_no_versions_in_overtaking_3: ChecksNoVersions => overtaking::three_commands_under_way_answer_as_in_some_order, "no order explains";
    decides_on_what_it_remembers_in_threads: DecidesOnWhatItRemembers => threads::threads_on_two_connections_lose_and_double_nothing, "a scoped thread panicked";
    leaves_half_ona_fault: LeavesHalfOnAFault => faults::a_fault_at_any_step_leaves_all_or_nothing, "nothing was done";
    says_that_nothing_was_done: SaysThatNothingWasDone => faults::a_failure_without_a_request_is_truly_told, "and yet";
    does_it_again: DoesItAgain => faults::a_lost_reply_is_resolved_by_its_request, "refused by what it did itself";
    looks_at_no_more_than_asked: LooksAtNoMoreThanAsked
        => picking::parts_that_cannot_be_read_starve_nobody, "not the others";
    passes_open_commits: PassesOpenCommits
        => journal::a_reader_goes_as_far_as_the_oldest_commit_that_is_open, "went past a commit";
    keeps_its_locks: KeepsItsLocks
        => dropping::a_writer_dropped_with_its_locks_is_in_nobodys_way, "that was dropped is in the way";
    reads_in_many_moments: ReadsInManyMoments => moments::one_read_shows_one_moment, "of more than one moment";
    speaks_local_time: SpeaksLocalTime => time::every_zone_has_the_same_time, "Pacific/Kiritimati: Time";
    keeps_a_transaction_in_overtaking: KeepsATransaction
        => overtaking::a_command_overtaken_and_dropped_leaves_nothing, "a transaction is open";
}

#[test]
fn every_case_was_seen_to_fail() {
    let contract = include_str!("../../src/contract.rs");
    let cases: Vec<&str> = contract
        .lines()
        .filter_map(|line| line.trim().strip_prefix("fn ")?.strip_suffix("() {"))
        .filter(|name| !name.starts_with("without_"))
        .collect();
    assert!(cases.len() > 20, "the contract was not found");
    for case in &cases {
        assert!(SEEN.contains(case), "no defect makes {case} fail");
    }
    assert!(SEEN.iter().all(|case| cases.contains(case)));
}

#[test]
fn a_lack_is_said_by_the_rig_and_by_the_call() {
    use freehold_testkit::{Can, MemoryRig, Rig};
    let says = |case: fn()| catch_unwind(case).is_err();
    assert!(says(|| cases::lacks("share", MemoryRig::can_share())));
    assert!(says(|| cases::has("crash", MemoryRig::can_crash())));
    cases::lacks("crash", MemoryRig::can_crash());
    cases::has("share", Can::Yes);
}
