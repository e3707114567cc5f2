//! Who holds a barrier or an attempt (P-34, P-35), whose what is being made is (P-5, P-9), and what
//! a reset, a recreation and a policy may not do (P-2, P-10, P-38).

use super::*;

fn on_barrier(make: impl Fn(OperationId, InstanceId) -> OperationCommand) -> [Command; 3] {
    [(5, 1), (6, 1), (5, 2)].map(|(operation, instance)| {
        Command::Operation(make(OperationId(operation), InstanceId(instance)))
    })
}

fn snapshots() -> [Command; 3] {
    let scope = crate::command::Scope::Task;
    on_barrier(|operation, instance| OperationCommand::Snapshot { operation, scope, instance })
}

/// Task 1 is barred by job 5 of instance 1, until this time.
fn barred_until(lease: i64) -> Scene {
    good().given(move |v| {
        let row = job(5, 1, Trigger::Archive, JobState::Prepared);
        v.jobs.insert(Job { lease_until: Some(Time(lease)), ..row });
    })
}

fn snapshot_taken(v: &mut View) {
    v.jobs.edit(5).unwrap().snapshot_version = 2;
}

#[test]
fn p_34_a_living_owner_loses_its_barrier() {
    let [own, other_operation, other_instance] = snapshots();
    let acted = barred_until(500).then(snapshot_taken);
    acted.clone().by(own).holds("P-34");
    acted.clone().by(other_operation).breaks("P-34", "under a living owner's barrier");
    acted.clone().by(other_instance).breaks("P-34", "under a living owner's barrier");
    let recover = Command::System(SystemCommand::RecoverBarrier { job: JobId(5) });
    acted.by(recover).breaks("P-34", "under a living owner's barrier");
    barred_until(1).then(snapshot_taken).by(recover).holds("P-34");
    let abort = on_barrier(|operation, instance| OperationCommand::Abort { operation, instance });
    let lifted = barred_until(500).then(|v| v.jobs.edit(5).unwrap().state = JobState::Cancelled);
    lifted.clone().by(abort[0]).holds("P-34");
    lifted.by(abort[2]).breaks("P-34", "under a living owner's barrier");
}

fn recover(attempt: u128) -> Command {
    Command::Attempt(AttemptCommand::Recover {
        attempt: AttemptId(attempt),
        token: Token(77),
        instance: InstanceId(1),
        evidence: nothing_there(Found::Missing),
    })
}

fn nothing_there(found: Found) -> Evidence {
    Evidence { found, unsaved: Unsaved::NONE, obstacle: Reason::None, head: None }
}

/// Attempt 5 in environment 1, held until this time.
fn made_until(lease: i64) -> Scene {
    good().given(move |v| {
        let row = attempt(5, 1, AttemptState::Intended);
        v.attempts.insert(Attempt { lease_until: Time(lease), ..row });
    })
}

#[test]
fn p_34_a_living_maker_is_robbed() {
    let taken = |v: &mut View| v.attempts.edit(5).unwrap().token = Token(77);
    made_until(500).then(taken).by(recover(5)).breaks("P-34", "a living maker was robbed");
    made_until(1).then(taken).by(recover(5)).holds("P-34");
}

#[test]
fn p_35_a_lapsed_owner_acts() {
    let [own, ..] = snapshots();
    barred_until(500).then(snapshot_taken).by(own).holds("P-35");
    barred_until(1).then(snapshot_taken).by(own).breaks("P-35", "a lapsed owner acted");
    barred_until(1).by(own).holds("P-35");
}

#[test]
fn p_35_a_replaced_token_moves_its_attempt() {
    let give_up = |token| {
        let (attempt, token) = (AttemptId(5), Token(token));
        Command::Attempt(AttemptCommand::GiveUp { attempt, token })
    };
    let undone = |v: &mut View| v.attempts.edit(5).unwrap().state = AttemptState::Compensating;
    made_until(500).then(undone).by(give_up(5)).holds("P-35");
    made_until(500).then(undone).by(give_up(6)).breaks("P-35", "a replaced token moved");
    made_until(500).by(give_up(6)).holds("P-35");
}

#[test]
fn p_5_an_attempt_of_somebody_else() {
    good().given(|v| v.attempts.insert(attempt(5, 1, AttemptState::Intended))).holds("P-5");
    let strange = |state| {
        good().given(move |v| {
            v.attempts.insert(Attempt { task_id: TaskId(2), ..attempt(5, 1, state) });
        })
    };
    strange(AttemptState::Materialised).breaks("P-5", "another task than its owner");
    strange(AttemptState::Compensating).holds("P-5");
}

#[test]
fn p_9_a_permission_for_what_is_foreign() {
    let undo = |found| {
        Command::Attempt(AttemptCommand::Compensate {
            attempt: AttemptId(5),
            token: Token(5),
            removal: RemovalId(1),
            removal_token: Token(51),
            instance: InstanceId(1),
            evidence: nothing_there(found),
        })
    };
    let right = |found| {
        let given = good().given(|v| {
            v.attempts.insert(attempt(5, 1, AttemptState::Compensating));
            let own = Removal { authority: AuthorityKind::Attempt, ..removal(1, 5, 5) };
            v.removals.insert(own);
        });
        given.by(undo(found)).grants(RemovalStep::Salvaged)
    };
    right(Found::Here).holds("P-9");
    right(Found::Mismatch).breaks("P-9", "what the attempt did not make");
}

#[test]
fn p_10_a_borrowed_environment_is_reset() {
    let reset = |v: &mut View| {
        let row = v.repos.edit(1).unwrap();
        (row.status, row.deleted_at) = (RepoStatus::Deleted, Some(NOW));
    };
    good().then(reset).holds("P-10");
    let lent = good().given(|v| {
        v.tasks.insert(task(3));
        v.sessions.insert(session(5, 3, 1));
    });
    lent.then(reset).breaks("P-10", "a borrowed environment was reset");
}

#[test]
fn p_2_a_recorded_branch_changes() {
    let moved = |v: &mut View| v.repos.edit(2).unwrap().worktree_branch = Some(BranchId(9));
    good().then(moved).breaks("P-2", "changed its recorded branch");
    let prepared = |v: &mut View| {
        let row = v.repos.edit(2).unwrap();
        (row.worktree_id, row.worktree_path, row.root_id) = (None, None, None);
        row.materialised = Materialised::No;
    };
    good().given(prepared).then(moved).holds("P-2");
}

#[test]
fn p_38_an_operation_begins_against_its_policy() {
    let reserve = |policy, unsaved, consent| {
        let command = Command::Operation(OperationCommand::Reserve {
            operation: OperationId(5),
            job: JobId(5),
            task: TaskId(1),
            trigger: Trigger::Archive,
            environment: None,
            cascade_root: None,
            policy,
            branch_policy: BranchPolicy::Keep,
            consent,
            unsaved,
            refuse_busy: false,
            instance: InstanceId(1),
            content: ContentHash(5),
        });
        let began = good().by(command);
        began.then(move |v| {
            let row = job(5, 1, Trigger::Archive, JobState::Prepared);
            v.jobs.insert(Job { policy, consent, ..row });
        })
    };
    let (none, some) = (Unsaved::NONE, Unsaved::TRACKED);
    reserve(UnsavedPolicy::Refuse, none, none).holds("P-38");
    reserve(UnsavedPolicy::Refuse, some, none).breaks("P-38", "over unsaved work");
    reserve(UnsavedPolicy::Salvage, some, none).holds("P-38");
    reserve(UnsavedPolicy::Discard, some, some).holds("P-38");
    reserve(UnsavedPolicy::Discard, some, none).breaks("P-38", "nobody consented");
}
