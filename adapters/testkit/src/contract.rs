//! The one call.

/// Makes a test of each case of the contract for a [`crate::Rig`].
///
/// ```
/// use freehold_testkit::{MemoryRig, store_contract};
///
/// store_contract!(MemoryRig, without reopen, crash, fail, spoil, zone);
/// # fn main() {}
/// ```
///
/// What a rig does not offer is named in the call, with one or more of `reopen`, `crash`, `share`,
/// `fail`, `spoil` and `zone`. Then one test stands for the cases that need it, `without_...`, which says why and
/// fails if the rig offers it after all. A lack that is not named fails the cases that need it.
#[macro_export]
macro_rules! store_contract {
    ($rig:ty) => { $crate::store_contract!($rig, without); };
    ($rig:ty, without $($lack:ident),*) => {
        $crate::store_contract_always!($rig);
        $crate::store_contract_reopen!($rig; $($lack)*);
        $crate::store_contract_crash!($rig; $($lack)*);
        $crate::store_contract_share!($rig; $($lack)*);
        $crate::store_contract_fail!($rig; $($lack)*);
        $crate::store_contract_spoil!($rig; $($lack)*);
        $crate::store_contract_zone!($rig; $($lack)*);
    };
}

/// The cases that need nothing but a store.
#[doc(hidden)]
#[macro_export]
macro_rules! store_contract_always {
    ($rig:ty) => {
        #[test]
        fn commands_answer_as_the_reference() {
            $crate::cases::answers::commands_answer_as_the_reference::<$rig>();
        }
        #[test]
        fn refusals_change_nothing() {
            $crate::cases::answers::refusals_change_nothing::<$rig>();
        }
        #[test]
        fn reads_find_what_they_name() {
            $crate::cases::answers::reads_find_what_they_name::<$rig>();
        }
        #[test]
        fn a_request_is_answered_with_its_first_outcome() {
            $crate::cases::requests::a_request_is_answered_with_its_first_outcome::<$rig>();
        }
        #[test]
        fn a_refusal_that_may_pass_is_not_remembered() {
            $crate::cases::requests::a_refusal_that_may_pass_is_not_remembered::<$rig>();
        }
        #[test]
        fn the_journal_tells_what_happened() {
            $crate::cases::journal::the_journal_tells_what_happened::<$rig>();
        }
        #[test]
        fn the_journal_is_resumed_from_any_position() {
            $crate::cases::journal::the_journal_is_resumed_from_any_position::<$rig>();
        }
        #[test]
        fn a_submission_dropped_at_any_await_is_whole_or_nothing() {
            $crate::cases::dropping::a_submission_dropped_at_any_await_is_whole_or_nothing::<$rig>(
            );
        }
        #[test]
        fn a_read_dropped_at_any_await_leaves_nothing() {
            $crate::cases::dropping::a_read_dropped_at_any_await_leaves_nothing::<$rig>();
        }
        #[test]
        fn leases_follow_the_clock_forward_and_back() {
            $crate::cases::time::leases_follow_the_clock_forward_and_back::<$rig>();
        }
        #[test]
        fn far_times_are_kept_as_they_are() {
            $crate::cases::time::far_times_are_kept_as_they_are::<$rig>();
        }
        #[test]
        fn every_text_is_an_id_of_its_own() {
            $crate::cases::texts::every_text_is_an_id_of_its_own::<$rig>();
        }
        #[test]
        fn every_text_is_kept_as_it_is() {
            $crate::cases::texts::every_text_is_kept_as_it_is::<$rig>();
        }
        #[test]
        fn nul_is_refused_by_all_alike() {
            $crate::cases::texts::nul_is_refused_by_all_alike::<$rig>();
        }
        #[test]
        fn one_command_over_no_row_and_over_many() {
            $crate::cases::sizes::one_command_over_no_row_and_over_many::<$rig>();
        }
        #[test]
        fn random_sequences_keep_every_property() {
            $crate::cases::sequences::random_sequences_keep_every_property::<$rig>();
        }
    };
}

/// The cases that need closed stores that are opened again.
#[doc(hidden)]
#[macro_export]
macro_rules! store_contract_reopen {
    ($rig:ty; reopen $($rest:ident)*) => {
        #[test]
        fn without_reopen() {
            $crate::cases::lacks("reopen", <$rig as $crate::Rig>::can_reopen());
        }
    };
    ($rig:ty; $other:ident $($rest:ident)*) => {
        $crate::store_contract_reopen!($rig; $($rest)*);
    };
    ($rig:ty;) => {
        #[test]
        fn reopening_after_every_command_changes_nothing() {
            $crate::cases::has("reopen", <$rig as $crate::Rig>::can_reopen());
            $crate::cases::answers::reopening_after_every_command_changes_nothing::<$rig>();
        }
        #[test]
        fn a_request_is_remembered_when_reopened() {
            $crate::cases::has("reopen", <$rig as $crate::Rig>::can_reopen());
            $crate::cases::requests::a_request_is_remembered_when_reopened::<$rig>();
        }
    };
}

/// The cases that need crashes.
#[doc(hidden)]
#[macro_export]
macro_rules! store_contract_crash {
    ($rig:ty; crash $($rest:ident)*) => {
        #[test]
        fn without_crash() {
            $crate::cases::lacks("crash", <$rig as $crate::Rig>::can_crash());
        }
    };
    ($rig:ty; $other:ident $($rest:ident)*) => {
        $crate::store_contract_crash!($rig; $($rest)*);
    };
    ($rig:ty;) => {
        #[test]
        fn a_crash_after_every_command_loses_nothing() {
            $crate::cases::has("crash", <$rig as $crate::Rig>::can_crash());
            $crate::cases::answers::a_crash_after_every_command_loses_nothing::<$rig>();
        }
        #[test]
        fn a_request_is_remembered_after_a_crash() {
            $crate::cases::has("crash", <$rig as $crate::Rig>::can_crash());
            $crate::cases::requests::a_request_is_remembered_after_a_crash::<$rig>();
        }
    };
}

/// The cases that need several connections.
#[doc(hidden)]
#[macro_export]
macro_rules! store_contract_share {
    ($rig:ty; share $($rest:ident)*) => {
        #[test]
        fn without_share() {
            $crate::cases::lacks("share", <$rig as $crate::Rig>::can_share());
        }
    };
    ($rig:ty; $other:ident $($rest:ident)*) => {
        $crate::store_contract_share!($rig; $($rest)*);
    };
    ($rig:ty;) => {
        #[test]
        fn two_connections_in_turn_answer_as_one() {
            $crate::cases::has("share", <$rig as $crate::Rig>::can_share());
            $crate::cases::answers::two_connections_in_turn_answer_as_one::<$rig>();
        }
        #[test]
        fn another_connection_knows_the_outcome() {
            $crate::cases::has("share", <$rig as $crate::Rig>::can_share());
            $crate::cases::requests::another_connection_knows_the_outcome::<$rig>();
        }
        #[test]
        fn a_follower_misses_nothing_while_others_write() {
            $crate::cases::has("share", <$rig as $crate::Rig>::can_share());
            $crate::cases::journal::a_follower_misses_nothing_while_others_write::<$rig>();
        }
        #[test]
        fn a_reader_goes_as_far_as_the_oldest_commit_that_is_open() {
            $crate::cases::has("share", <$rig as $crate::Rig>::can_share());
            $crate::cases::journal::a_reader_goes_as_far_as_the_oldest_commit_that_is_open::<$rig>(
            );
        }
        #[test]
        fn a_writer_dropped_with_its_locks_is_in_nobodys_way() {
            $crate::cases::has("share", <$rig as $crate::Rig>::can_share());
            $crate::cases::dropping::a_writer_dropped_with_its_locks_is_in_nobodys_way::<$rig>();
        }
        #[test]
        fn one_read_shows_one_moment() {
            $crate::cases::has("share", <$rig as $crate::Rig>::can_share());
            $crate::cases::moments::one_read_shows_one_moment::<$rig>();
        }
        #[test]
        fn a_command_overtaken_at_any_await_is_decided_again() {
            $crate::cases::has("share", <$rig as $crate::Rig>::can_share());
            $crate::cases::overtaking::a_command_overtaken_at_any_await_is_decided_again::<$rig>();
        }
        #[test]
        fn a_command_overtaken_and_dropped_leaves_nothing() {
            $crate::cases::has("share", <$rig as $crate::Rig>::can_share());
            $crate::cases::overtaking::a_command_overtaken_and_dropped_leaves_nothing::<$rig>();
        }

        #[test]
        fn an_absence_that_ends_before_the_commit_is_noticed() {
            $crate::cases::has("share", <$rig as $crate::Rig>::can_share());
            $crate::cases::overtaking::an_absence_that_ends_before_the_commit_is_noticed::<$rig>();
        }
        #[test]
        fn two_scripts_answer_in_all_interleavings() {
            $crate::cases::has("share", <$rig as $crate::Rig>::can_share());
            $crate::cases::overtaking::two_scripts_answer_in_all_interleavings::<$rig>();
        }
        #[test]
        fn three_commands_under_way_answer_as_in_some_order() {
            $crate::cases::has("share", <$rig as $crate::Rig>::can_share());
            $crate::cases::overtaking::three_commands_under_way_answer_as_in_some_order::<$rig>();
        }
        #[test]
        fn threads_on_two_connections_lose_and_double_nothing() {
            $crate::cases::has("share", <$rig as $crate::Rig>::can_share());
            $crate::cases::threads::threads_on_two_connections_lose_and_double_nothing::<$rig>();
        }
    };
}

/// The cases that need faults.
#[doc(hidden)]
#[macro_export]
macro_rules! store_contract_fail {
    ($rig:ty; fail $($rest:ident)*) => {
        #[test]
        fn without_fail() {
            $crate::cases::lacks("fail", <$rig as $crate::Rig>::can_fail());
        }
    };
    ($rig:ty; $other:ident $($rest:ident)*) => {
        $crate::store_contract_fail!($rig; $($rest)*);
    };
    ($rig:ty;) => {
        #[test]
        fn a_fault_at_any_step_leaves_all_or_nothing() {
            $crate::cases::has("fail", <$rig as $crate::Rig>::can_fail());
            $crate::cases::faults::a_fault_at_any_step_leaves_all_or_nothing::<$rig>();
        }
        #[test]
        fn a_failure_without_a_request_is_truly_told() {
            $crate::cases::has("fail", <$rig as $crate::Rig>::can_fail());
            $crate::cases::faults::a_failure_without_a_request_is_truly_told::<$rig>();
        }
        #[test]
        fn a_lost_reply_is_resolved_by_its_request() {
            $crate::cases::has("fail", <$rig as $crate::Rig>::can_fail());
            $crate::cases::faults::a_lost_reply_is_resolved_by_its_request::<$rig>();
        }
    };
}

/// The cases that need rows that cannot be read.
#[doc(hidden)]
#[macro_export]
macro_rules! store_contract_spoil {
    ($rig:ty; spoil $($rest:ident)*) => {
        #[test]
        fn without_spoil() {
            $crate::cases::lacks("spoil", <$rig as $crate::Rig>::can_spoil());
        }
    };
    ($rig:ty; $other:ident $($rest:ident)*) => {
        $crate::store_contract_spoil!($rig; $($rest)*);
    };
    ($rig:ty;) => {
        #[test]
        fn parts_that_cannot_be_read_starve_nobody() {
            $crate::cases::has("spoil", <$rig as $crate::Rig>::can_spoil());
            $crate::cases::picking::parts_that_cannot_be_read_starve_nobody::<$rig>();
        }
    };
}

/// The cases that need sessions in time zones.
#[doc(hidden)]
#[macro_export]
macro_rules! store_contract_zone {
    ($rig:ty; zone $($rest:ident)*) => {
        #[test]
        fn without_zone() {
            $crate::cases::lacks("zone", <$rig as $crate::Rig>::can_zone());
        }
    };
    ($rig:ty; $other:ident $($rest:ident)*) => {
        $crate::store_contract_zone!($rig; $($rest)*);
    };
    ($rig:ty;) => {
        #[test]
        fn every_zone_has_the_same_time() {
            $crate::cases::has("zone", <$rig as $crate::Rig>::can_zone());
            $crate::cases::time::every_zone_has_the_same_time::<$rig>();
        }
    };
}
