//! The properties of worlds.

use super::*;

fn close(v: &mut View, id: u128) {
    let s = v.sessions.edit(id).unwrap();
    s.lifecycle = SessionLifecycle::Archived;
    s.archived_at = Some(NOW);
}

fn mark(v: &mut View, id: u128) {
    let s = v.sessions.edit(id).unwrap();
    s.lifecycle = SessionLifecycle::Closing;
    s.closing_kind = Some(ClosingKind::Archive);
    s.closing_token = Some(Token(1));
    s.closing_by = Some(ActorId(7));
    s.closing_lease = Some(NOW);
}

#[test]
fn p_3_a_worktree_that_nothing_names() {
    // The row goes; a waiting resource, an attempt or a trash row still name it, nothing does not.
    let lost = good().then(|v| {
        v.repos.remove(1);
    });
    lost.breaks("P-3", "nothing names");
    let named = |change: fn(&mut View)| lost.clone().then(change);
    named(|v| v.attempts.edit(1).unwrap().state = AttemptState::Compensating).holds("P-3");
    let waiting = named(|v| v.resources.insert(resource(5, 1, 1, ResourceResult::Waiting)));
    waiting.holds("P-3");
    waiting.then(|v| v.jobs.edit(1).unwrap().state = JobState::Cancelled).breaks("P-3", "nothing");
    named(|v| v.resources.insert(resource(5, 1, 1, ResourceResult::Kept))).holds("P-3");
    named(|v| v.resources.insert(resource(5, 1, 1, ResourceResult::Removed))).breaks("P-3", "");
    let trashed = named(|v| v.trash.insert(trash(1, 1, TrashState::Kept)));
    trashed.breaks("P-3", "nothing names");
    let in_trash = |s: &mut Scene| s.disk.worktrees[0].place = Place::InTrash;
    trashed.with(in_trash).holds("P-3");
    lost.clone().with(|s| s.disk.worktrees[0].place = Place::Gone).holds("P-3");
    lost.with(|s| s.disk.worktrees[0].made_by = None).holds("P-3");
}

#[test]
fn p_5_two_owners() {
    let second = |change: fn(&mut Repo)| {
        let mut row = repo(3, 1);
        change(&mut row);
        good().then(|v| v.repos.insert(row))
    };
    second(|_| {}).holds("P-5");
    second(|r| r.worktree_id = Some(WorktreeId(1))).breaks("P-5", "one worktree");
    second(|r| r.worktree_path = Some(PathId(1))).breaks("P-5", "one path");
    second(|r| r.branch_slug = Slug(1)).breaks("P-5", "one slot");
    second(|r| {
        (r.status, r.deleted_at) = (RepoStatus::Deleted, Some(NOW));
        r.worktree_id = Some(WorktreeId(1));
    })
    .holds("P-5");
    second(|r| r.worktree_path = None).breaks("P-5", "without its path");
    second(|r| r.root_id = None).breaks("P-5", "lies in a root");
    second(|r| r.task_environment_id = EnvironmentId(9)).breaks("P-5", "without its environment");
    good()
        .then(|v| {
            v.attempts.insert(attempt(5, 1, AttemptState::Intended));
            v.attempts.insert(Attempt {
                branch_slug: Slug(5),
                ..attempt(6, 1, AttemptState::Compensating)
            });
        })
        .breaks("P-5", "two attempts");
    good().then(|v| v.tasks.remove(2)).breaks("P-5", "without its owner");
    good()
        .then(|v| v.tasks.edit(1).unwrap().current_environment_id = Some(EnvironmentId(2)))
        .breaks("P-5", "not its own");
}

#[test]
fn p_9_a_compensation_takes_what_it_did_not_make() {
    let compensated = |made_by: u128| {
        good()
            .then(|v| {
                v.attempts.insert(attempt(5, 1, AttemptState::Compensating));
                let row = removal(5, 5, 1);
                v.removals.insert(Removal { authority: AuthorityKind::Attempt, ..row });
            })
            .with(|s| {
                s.disk.worktrees[0].moved_by = Some(RemovalId(5));
                s.disk.worktrees[0].made_by = Some(AttemptId(made_by));
            })
    };
    compensated(5).holds("P-9");
    compensated(1).breaks("P-9", "did not make");
}

#[test]
fn p_11_something_left_its_place_without_its_removal() {
    let moved = |by: Option<u128>| {
        good().with(|s| {
            s.disk.worktrees[1].place = Place::InTrash;
            s.disk.worktrees[1].moved_by = by.map(RemovalId);
        })
    };
    moved(Some(1)).holds("P-11");
    moved(None).breaks("P-11", "without a removal row");
    moved(Some(9)).breaks("P-11", "without a removal row");
    let other = good().with(|s| {
        s.disk.worktrees[0].place = Place::InTrash;
        s.disk.worktrees[0].moved_by = Some(RemovalId(1));
    });
    other.breaks("P-11", "something else");
    let says = |outcome: RemovalOutcome| {
        move |v: &mut View| v.removals.edit(1).unwrap().outcome = Some(outcome)
    };
    let state = |scene: Scene| {
        let property = PROPERTIES.iter().find(|p| p.id == "P-11").unwrap();
        property.state(&scene.after, &scene.disk).map_err(|w| w.says)
    };
    let returned = state(moved(Some(1)).then(says(RemovalOutcome::Returned)));
    assert!(returned.is_err_and(|says| says.contains("not there")));
    let removed = state(moved(Some(1)).then(says(RemovalOutcome::Removed)));
    assert!(removed.is_err_and(|says| says.contains("says gone")));
    let untouched = state(good().then(says(RemovalOutcome::Removed)));
    assert!(untouched.is_err_and(|says| says.contains("never moved")));
}

#[test]
fn p_12_two_executors_on_one_path() {
    good().given(|v| v.removals.insert(removal(2, 1, 2))).breaks("P-12", "two removals");
    let settled = Removal { outcome: Some(RemovalOutcome::Removed), ..removal(2, 1, 2) };
    good().given(|v| v.removals.insert(settled)).holds("P-12");
    let maker = Attempt { path: PathId(2), ..attempt(5, 1, AttemptState::Intended) };
    good().given(|v| v.attempts.insert(maker)).breaks("P-12", "a maker and a removal");
    let twin = Attempt { path: PathId(5), ..attempt(6, 1, AttemptState::Intended) };
    good()
        .given(|v| {
            v.attempts.insert(attempt(5, 1, AttemptState::Intended));
            v.attempts.insert(twin);
        })
        .breaks("P-12", "two makers");
    let purge = Removal { authority: AuthorityKind::Trash, ..removal(7, 1, 4) };
    let again = Removal { id: RemovalId(8), ..purge };
    good()
        .given(|v| {
            v.removals.insert(purge);
            v.removals.insert(again);
        })
        .breaks("P-12", "two purges");
    let hand = |token| Hand { root: RootId(1), path: PathId(2), token: Token(token) };
    good().with(|s| s.disk.take(hand(1))).holds("P-12");
    good()
        .with(|s| {
            s.disk.take(hand(1));
            s.disk.take(hand(2));
        })
        .breaks("P-12", "two executors");
}

#[test]
fn p_16_a_tombstone_that_lives() {
    good()
        .then(|v| v.identities.insert(identity(IdentityKind::Session, 1, IdentityState::Gone)))
        .breaks("P-16", "without a living identity");
    good().then(|v| v.sessions.insert(session(5, 1, 1))).breaks("P-16", "living identity");
    good().given(|v| v.sessions.remove(2)).breaks("P-16", "says otherwise");
}

#[test]
fn p_18_activity_on_the_closed() {
    good().given(|v| close(v, 1)).breaks("P-18", "a turn on a closed session");
    let quiet = |v: &mut View| {
        v.turns.remove(1);
        v.inputs.remove(2);
        v.tasks.edit(1).unwrap().primary_session_id = None;
        close(v, 1);
    };
    good().given(quiet).holds("P-18");
    good()
        .given(|v| {
            quiet(v);
            v.inputs.insert(input(2, InputState::Queued));
        })
        .breaks("P-18", "an input waits");
    good()
        .given(|v| {
            quiet(v);
            v.tasks.edit(1).unwrap().primary_session_id = Some(SessionId(1));
        })
        .breaks("P-18", "points at a closed");
    good()
        .given(|v| v.tasks.edit(1).unwrap().primary_session_id = None)
        .breaks("P-18", "has no primary");
    good()
        .given(|v| v.sessions.edit(1).unwrap().archived_at = Some(NOW))
        .breaks("P-18", "archived_at");
    good()
        .given(|v| v.sessions.edit(1).unwrap().closing_token = Some(Token(1)))
        .breaks("P-18", "closing mark");
    good()
        .given(|v| {
            let s = v.sessions.edit(2).unwrap();
            (s.lifecycle, s.archived_at) = (SessionLifecycle::Open, None);
        })
        .breaks("P-18", "under an archived task");
}

#[test]
fn p_19_closing_with_a_turn() {
    good().given(|v| mark(v, 1)).breaks("P-19", "turn work");
    good()
        .given(|v| {
            v.turns.remove(1);
            mark(v, 1);
        })
        .holds("P-19");
}

#[test]
fn p_21_an_input_with_half_an_outcome() {
    let with = |change: fn(&mut Input)| {
        let mut row = input(3, InputState::Cancelled);
        change(&mut row);
        good().given(|v| v.inputs.insert(row))
    };
    with(|_| {}).holds("P-21");
    with(|i| i.settled_at = None).breaks("P-21", "without its time");
    with(|i| i.turn_id = Some(TurnId(1))).breaks("P-21", "names its turn");
    with(|i| i.redirected_to = Some(SessionId(1))).breaks("P-21", "says where");
    with(|i| i.reason = InputReason::None).breaks("P-21", "says why");
    good()
        .given(|v| v.inputs.edit(1).unwrap().session_id = Some(SessionId(2)))
        .breaks("P-21", "carried elsewhere");
}

#[test]
fn p_23_two_turns() {
    good().given(|v| v.turns.insert(turn(2, 1))).breaks("P-23", "two turns");
    let over = Turn {
        phase: TurnPhase::Ended,
        ended_at: Some(NOW),
        outcome: Some(TurnOutcome::Completed),
        ..turn(2, 1)
    };
    good().given(|v| v.turns.insert(over)).holds("P-23");
    good().given(|v| v.turns.insert(Turn { outcome: None, ..over })).breaks("P-23", "outcome");
}

#[test]
fn p_29_unsaved_work_that_went() {
    let gone = good().with(|s| {
        let worktree = &mut s.disk.worktrees[1];
        worktree.place = Place::Gone;
        worktree.moved_by = Some(RemovalId(1));
        worktree.unsaved = Unsaved::TRACKED.with(Unsaved::UNTRACKED);
    });
    gone.breaks("P-29", "tracked");
    let kept = |contents: Unsaved| Salvage {
        id: SalvageId(1),
        task_id: None,
        repository_id: RepositoryId(1),
        repo_id: None,
        worktree_id: WorktreeId(2),
        removal_id: RemovalId(1),
        root_id: RootId(1),
        base: None,
        contents,
        size: 1,
        state: SalvageState::Verified,
        made_at: NOW,
    };
    let all = Unsaved::TRACKED.with(Unsaved::UNTRACKED);
    let salvaged = gone.clone().with(|s| s.disk.worktrees[1].salvaged = all);
    salvaged.breaks("P-29", "lost");
    salvaged.clone().given(|v| v.salvage.insert(kept(Unsaved::TRACKED))).breaks("P-29", "lost");
    salvaged.given(|v| v.salvage.insert(kept(all))).holds("P-29");
    let consent = |words: Unsaved| {
        gone.clone().given(|v| {
            let j = v.jobs.edit(1).unwrap();
            (j.policy, j.consent) = (UnsavedPolicy::Discard, words);
        })
    };
    consent(all).holds("P-29");
    consent(Unsaved::TRACKED).breaks("P-29", "untracked");
}

#[test]
fn p_32_two_jobs_of_one_operation() {
    let twin = |state, mutated_at| {
        let row = job(9, 2, Trigger::Archive, state);
        good().given(|v| v.jobs.insert(Job { operation_id: OperationId(1), mutated_at, ..row }))
    };
    twin(JobState::Failed, Some(NOW)).breaks("P-32", "two jobs");
    twin(JobState::Cancelled, None).holds("P-32");
    twin(JobState::Cancelled, Some(NOW)).breaks("P-32", "two jobs");
}

#[test]
fn p_33_removing_without_its_removal() {
    good()
        .given(|v| v.removals.edit(1).unwrap().outcome = Some(RemovalOutcome::Returned))
        .breaks("P-33", "without an unsettled removal");
    good()
        .given(|v| v.repos.edit(2).unwrap().materialised = Materialised::Yes)
        .breaks("P-33", "the reverse");
}

#[test]
fn p_6_and_p_7_barriers_and_snapshots() {
    let two = |v: &mut View| {
        v.jobs.insert(job(5, 1, Trigger::Archive, JobState::Prepared));
        v.jobs.insert(job(6, 1, Trigger::Delete, JobState::Prepared));
    };
    good().given(two).breaks("P-6", "two barriers");
    good()
        .given(|v| v.jobs.insert(job(5, 9, Trigger::Archive, JobState::Prepared)))
        .breaks("P-6", "not there");
    good()
        .given(|v| v.jobs.edit(1).unwrap().snapshot_version = 0)
        .breaks("P-7", "without a snapshot");
    good().given(|v| v.jobs.edit(1).unwrap().completed_at = Some(NOW)).breaks("P-7", "its time");
    good()
        .given(|v| {
            let j = v.jobs.edit(1).unwrap();
            (j.instance_id, j.lease_until) = (Some(InstanceId(1)), Some(NOW));
        })
        .breaks("P-7", "a barrier has an owner");
}

#[test]
fn goals_are_reached_when_nothing_is_left() {
    let goal = |id: &str, change: fn(&mut View)| {
        let property = PROPERTIES.iter().find(|p| p.id == id).unwrap();
        let mut v = View::default();
        assert_eq!(property.goal(&v), Ok(()), "{id}");
        change(&mut v);
        assert!(property.goal(&v).is_err(), "{id}");
    };
    goal("P-40", |v| v.jobs.insert(job(1, 1, Trigger::Archive, JobState::RetryWait)));
    goal("P-41", |v| v.jobs.insert(job(1, 1, Trigger::Archive, JobState::Prepared)));
    goal("P-42", |v| v.attempts.insert(attempt(1, 1, AttemptState::Compensating)));
    goal("P-43", |v| {
        v.sessions.insert(session(1, 1, 1));
        mark(v, 1);
    });
    goal("P-44", |v| v.inputs.insert(input(1, InputState::Queued)));
    goal("P-46", |v| v.removals.insert(removal(1, 1, 1)));
}
