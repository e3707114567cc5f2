//! The table of 09: every property, by number and name, with its rule and its checks.

use super::{Check, Property, PropertyScope};
use super::{
    claims, cleanup, creation, goals, inputs, ledger, ownership, removal, sessions, tree, turns,
};

macro_rules! properties {
    ($($id:literal $name:ident $scope:ident $says:literal [$($kind:ident($check:expr)),* $(,)?];)*) => {
        /// Every property of 09, in its order.
        pub const PROPERTIES: &[Property] = &[$(Property {
            id: $id,
            name: stringify!($name),
            says: $says,
            scope: PropertyScope::$scope,
            checks: &[$(Check::$kind($check)),*],
        },)*];
    };
}

properties! {
    "P-1" SessionRemovalTouchesNoWorkspace Step
        "no removal, compensation of a foreign attempt, or job has a session archive or delete in its cause chain"
        [Step(ownership::session_removal_touches_no_workspace)];
    "P-2" OwnerSurvivesSessions Step
        "what an active task owns physically changes only by an attempt, a restore, a transfer, or a removal with a T-1 trigger's authority, never by the number of its sessions"
        [Step(ownership::owner_survives_sessions), Step(ownership::recorded_branch_stays)];
    "P-3" NoUntrackedWorktree State
        "every worktree that Freehold made or took over is named by a row not deleted, an unresolved attempt, an unfinished or failed job, a trash row, or a recorded entry"
        [Disk(ownership::no_untracked_worktree)];
    "P-4" NoLiveWorkspaceRemoved Step
        "no permission to remove is given for what an active task owns or a session protects (a reset's old worktrees and lapsed trash apart), nor for what something may still run in"
        [Step(ownership::no_live_workspace_removed), Step(claims::nobody_stands_in_it)];
    "P-5" OneOwner State
        "one identity, one owner; one slot, one row not deleted"
        [
            State(ownership::one_owner),
            State(ownership::rows_are_whole),
            State(ownership::attempts_are_their_owners),
        ];
    "P-6" BarrierOrdersCreation Step
        "between a barrier's commit and its lifting nothing comes under the task but what the operation itself does; what came before is in the snapshot"
        [
            State(creation::one_barrier_per_task),
            Step(creation::barrier_orders_creation),
            Step(tree::nothing_new_in_a_workspace_in_deletion),Step(claims::no_permission_under_anothers_barrier)];
    "P-7" SnapshotBeforeMutation Step
        "a job past `prepared` has a complete snapshot, or was cancelled"
        [State(cleanup::past_prepared_has_a_snapshot), Step(cleanup::snapshot_is_complete)];
    "P-8" MutationIsActivation Step
        "the step that archives, deletes or resets is the step that takes that operation's job from prepared to pending, and the reverse"
        [Step(cleanup::mutation_is_activation)];
    "P-9" CompensateOnlyOwn Step
        "compensation removes only what its attempt made"
        [
            Step(removal::compensation_names_its_own),
            Step(ownership::compensation_leaves_the_foreign),
            Disk(removal::compensate_only_own),
        ];
    "P-10" BorrowedIsKept Step
        "no warrant is issued for a resource with a borrower"
        [
            Step(ownership::borrowed_is_kept),
            Step(ownership::borrowed_outlives_its_owner),
            Step(ownership::reset_spares_borrowers),
        ];
    "P-11" PermittedRemoval Step
        "every physical removal has a removal row settled by its current token, a compensation right or a purging trash row"
        [Step(removal::settled_by_its_token), Disk(removal::permitted_removal), Step(claims::permitted_by_what_was_seen)];
    "P-12" OneExecutor State
        "no two executors act on one path, or write one repository's registry, at one time"
        [
            State(removal::one_executor),
            Step(removal::takeover_after_the_lease),
            Disk(removal::one_hand),State(claims::one_job_of_a_task_runs)];
    "P-13" FinishedIsFinal Step
        "the state of a succeeded, failed or cancelled job changes only by a person"
        [Step(cleanup::finished_is_final), Step(claims::settled_stays_settled), Step(claims::no_retry_after_a_takeover)];
    "P-14" UnarchiveStopsCleanup Step
        "after an unarchive commits no older job gets a warrant; one issued before is settled before its path is used"
        [History(cleanup::unarchive_stops_cleanup)];
    "P-15" ArchivedLeavesOnlyByUnarchive Step
        "or by delete; and the unarchive names a person"
        [Step(sessions::archived_leaves_only_by_unarchive)];
    "P-16" DeletedIsAbsorbing Step
        "a tombstoned id is never live again"
        [State(sessions::the_living_have_no_tombstone), History(sessions::deleted_is_absorbing)];
    "P-17" OnlyCreateCreates Step
        "rows of sessions and tasks appear only by create commands"
        [Step(sessions::only_create_creates)];
    "P-18" ClosedHasNoActivity State
        "no turn, lock, slot, pending or claimed wakeup, pending question, waiting input or pointer on an archived or deleted session"
        [State(sessions::closed_has_no_activity), Step(turns::a_close_leaves_no_runtime)];
    "P-19" CloseXorTurn State
        "never closing together with turn work"
        [State(sessions::close_xor_turn)];
    "P-20" RefusedStoresNothing Step
        "a refused input left no row but its own outcome"
        [Step(inputs::refused_stores_nothing)];
    "P-21" OneOutcomePerInput Step
        "a settled input has exactly one outcome and keeps it; redirected at most once"
        [
            State(inputs::one_outcome_per_input),
            State(inputs::delivered_where_it_was_sent),
            History(inputs::an_outcome_is_kept),
        ];
    "P-22" NoAnswerWithoutReader State
        "an answered question names the turn that carried it"
        [NotYet("there is no row of questions yet (D-10)")];
    "P-23" OneTurnPerSession State
        "and one terminal event per turn"
        [State(sessions::one_turn_per_session), History(sessions::one_terminal_event), State(turns::runs_only_with_a_turn), Step(turns::begins_on_a_living_runtime)];
    "P-24" StaleEpochIgnored Step
        "results of an older epoch change nothing"
        [Step(sessions::stale_epoch_ignored)];
    "P-25" EventIffChange Step
        "an event exists exactly when a row changed (leases, instances and request records apart)"
        [Step(ledger::event_iff_change)];
    "P-26" SummaryIsDerived State
        "the stored summary equals the one rebuilt from the rows"
        [NotYet("there are no rows of errors and summaries yet (D-12, E)")];
    "P-27" AuthorityBoundary Step
        "an actor without the task permission causes no archive, delete, reset or removal, however the cause chain runs"
        [Step(cleanup::authority_boundary)];
    "P-28" UnknownIsNotAbsent Step
        "no tombstone, `deleted` refusal, `absent` result or removal follows from what could not be read"
        [Step(cleanup::unknown_is_not_absent), Step(claims::unreadable_is_left_alone)];
    "P-29" UnsavedIsKept State
        "unsaved work is in the worktree, in trash, salvaged, or discarded with recorded consent"
        [Disk(ownership::unsaved_is_kept), State(claims::salvaged_before_it_goes_on), Step(claims::restored_where_it_belongs)];
    "P-30" NothingNewUnderClosedTask Step
        "nothing is created, moved or reopened under a task that is archived or barred"
        [Step(creation::nothing_new_under_closed_task), Step(creation::barrier_orders_creation)];
    "P-31" DryRunIsRealRun Step
        "the planned verdict equals the real one on the same rows and disk"
        [NotYet("there is no dry run yet (A-34)")];
    "P-32" RequestIsItsContent Step
        "one request or operation id, one content, one outcome (B-1's freed ids apart)"
        [State(ledger::one_job_per_operation), Step(ledger::request_is_its_content)];
    "P-33" RemovalIsSettled Step
        "while a resource is `removing`, nobody uses, borrows, transfers or recreates it"
        [State(creation::removing_is_an_unsettled_removal), Step(creation::removal_is_settled), Step(turns::nothing_begins_in_the_unfinished)];
    "P-34" LeaseIsRespected Step
        "what somebody holds by a lease that has not lapsed is changed, ended or taken over by nobody without his token"
        [Step(turns::a_close_is_its_closers), Step(turns::a_turn_is_its_instances), Step(turns::a_runtime_is_its_instances), Step(creation::barrier_is_its_owners), Step(creation::attempt_is_its_makers), Step(claims::a_claim_is_its_claimers), Step(claims::a_removal_is_its_executors)];
    "P-35" LapsedDoesNothing Step
        "whoever's lease has lapsed, or whose token was replaced, changes nothing under it"
        [Step(creation::lapsed_owner_does_nothing), Step(creation::replaced_token_does_nothing), Step(turns::a_lapsed_closer_does_nothing), Step(claims::a_stale_claim_changes_nothing)];
    "P-36" TreeIsWhole State
        "the task tree has no circle, parent and child are in one workspace, and no active task hangs under one that is gone"
        [
            State(tree::no_circle),
            State(tree::nothing_hangs_under_what_is_gone),
            Step(tree::the_whole_tree_goes),
            Step(tree::children_move_up),
            Step(tree::unarchive_restores_its_operation),
        ];
    "P-37" DrainingBeginsNothing Step
        "an instance that drains, or whose own lease has lapsed, begins and claims nothing"
        [Step(turns::draining_begins_nothing)];
    "P-38" PolicyIsKept Step
        "what a policy excludes does not happen: starred sessions and busy tasks are spared, unsaved work goes only with consent, quick chats only when expired, tries only when due"
        [Step(creation::reserved_within_its_policy), Step(turns::automatic_closers_keep_to_their_policy), Step(tree::the_busy_and_the_young_are_spared), Step(claims::tries_are_due), Step(claims::permitted_within_the_policy), Step(claims::trash_is_kept_its_time), State(claims::unmanaged_is_kept)];
    "P-39" OwnHostOnly Step
        "a root is worked on by the host that serves it"
        [Step(claims::own_host_only)];
    "P-40" CleanupConverges Liveness
        "every activated job ends succeeded, failed or cancelled"
        [Goal(goals::cleanup_converges)];
    "P-41" BarrierLifts Liveness
        "every prepared job is mutated or cancelled, every workspace in deletion deleted or active again"
        [Goal(goals::barrier_lifts)];
    "P-42" AttemptsResolve Liveness
        "every attempt ends owned or compensated"
        [Goal(goals::attempts_resolve)];
    "P-43" ClosingResolves Liveness
        "every closing mark is committed or lifted"
        [Goal(goals::closing_resolves)];
    "P-44" QueueDrains Liveness
        "while the host runs turns, every waiting input reaches its outcome; at a close, at once"
        [Goal(goals::queue_drains)];
    "P-45" SummaryConverges Liveness
        "after failed publications, the next event or rebuild repairs every projector"
        [NotYet("there are no summaries and no projectors yet (E)")];
    "P-46" RemovalsSettle Liveness
        "every removal row gets its outcome, every trash row ends kept by choice, gone or forgotten"
        [Goal(goals::removals_settle)];
}
