//! Restores out of trash (W-35, W-4) and the end of salvage by consent (W-34).

use freehold_kernel::*;

use super::cleanup::{claim, permit};
use super::*;

const REMOVAL: RemovalId = RemovalId(30);

fn with_settings(change: impl FnOnce(&mut Settings)) -> Command {
    let mut settings = Settings::DEFAULT;
    change(&mut settings);
    Command::Operator(OperatorCommand::ChangeSettings { settings })
}

/// One command, and what the kernel says.
fn say(v: &mut View, command: Command) -> Result<Reply, Guard> {
    let actor = Actor { id: ActorId(7), may: Permissions::ALL };
    let envelope = Envelope { request: None, content: ContentHash(0), actor, command };
    let said = decide(v, &envelope, &mut Output::default());
    v.commit();
    said.map(|d| d.reply).map_err(|r| r.guard)
}

fn step(removal: RemovalId, token: u128, step: RemovalStep) -> Command {
    let facts = SalvageFacts { id: SalvageId(40), contents: Unsaved::NONE, size: 1 };
    Command::Cleanup(CleanupCommand::RecordStep {
        removal,
        token: Token(token),
        step,
        found_something: true,
        salvage: (step == RemovalStep::Salvaged && removal == REMOVAL).then_some(facts),
    })
}

const STEPS: [RemovalStep; 5] = [
    RemovalStep::Salvaged,
    RemovalStep::Renamed,
    RemovalStep::Compared,
    RemovalStep::Unregistered,
    RemovalStep::BranchSettled,
];

/// Task 3 was archived, its worktree 3 lies in trash for an hour, and it is active again.
fn trashed() -> View {
    let hour = with_settings(|s| s.trash_retention = Span::hours(1));
    let mut v = after(&[hour, claim(), permit()]);
    for taken in STEPS {
        say(&mut v, step(REMOVAL, 31, taken)).unwrap();
    }
    let task = TaskId(3);
    say(&mut v, Command::Operation(OperationCommand::Unarchive { task, cascade: false })).unwrap();
    assert_eq!(trash(&v).state, TrashState::Kept);
    v
}

fn trash(v: &View) -> Trash {
    *v.trash.iter().min_by_key(|t| (t.created_at, t.removal_id != REMOVAL)).unwrap()
}

fn restore() -> Command {
    Command::Attempt(AttemptCommand::BeginRestore {
        attempt: AttemptId(50),
        token: Token(50),
        trash: trash(&trashed()).id,
        environment: EnvironmentId(3),
        repo: RepoId(3),
        path: PathId(3),
        instance: InstanceId(1),
    })
}

fn of_attempt(make: impl FnOnce(AttemptId, Token) -> AttemptCommand) -> Command {
    Command::Attempt(make(AttemptId(50), Token(50)))
}

fn compensate(found: Found) -> Command {
    compensate_by(60, found)
}

fn compensate_by(removal: u128, found: Found) -> Command {
    of_attempt(|attempt, token| AttemptCommand::Compensate {
        attempt,
        token,
        removal: RemovalId(removal),
        removal_token: Token(removal),
        instance: InstanceId(1),
        evidence: Evidence { found, unsaved: Unsaved::NONE, obstacle: Reason::None, head: None },
    })
}

#[test]
fn trash_restore() {
    table(
        "trash.restore",
        &trashed(),
        restore(),
        &[
            ("permission", permission),
            ("request_content", request_content),
            ("environment_known", |v, _| v.environments.remove(3)),
            ("repo_known", |v, _| v.repos.remove(3)),
            ("trash_known", |v, _| {
                v.trash.remove_where(|_| true);
            }),
            ("instance_known", no_instance),
            ("instance_alive", dead_instance),
            ("root_served", other_host),
            ("attempt_new", |v, _| {
                let row = *world().attempts.id(3).unwrap();
                v.attempts.insert(Attempt { id: AttemptId(50), path: PathId(70), ..row });
            }),
            ("trash_kept", |v, _| v.trash.iter_mut().for_each(|t| t.state = TrashState::Purging)),
            ("restore_fits", |v, _| v.trash.iter_mut().for_each(|t| t.path = PathId(71))),
            ("task_active", |v, _| archive(v, 3)),
            ("task_unbarred", |v, _| bar(v, 3)),
            ("slot_unattempted", |v, _| {
                let row = *world().attempts.id(3).unwrap();
                let (id, state) = (AttemptId(72), AttemptState::Intended);
                v.attempts.insert(Attempt { id, state, path: PathId(72), ..row });
            }),
            ("slot_free", |v, _| {
                if let Some(r) = v.repos.edit(3) {
                    r.materialised = Materialised::Yes;
                }
            }),
            ("no_unsettled_removal", |v, _| {
                if let Some(r) = v.removals.edit(30) {
                    r.outcome = None;
                }
            }),
            ("path_free", |v, _| {
                let row = *world().repos.id(3).unwrap();
                let environment = EnvironmentId(2);
                let id = RepoId(73);
                v.repos.insert(Repo { id, task_environment_id: environment, ..row });
            }),
        ],
    );
}

#[test]
fn what_is_restored_is_the_rows_again_and_its_trash_is_gone() {
    let mut v = trashed();
    say(&mut v, restore()).unwrap();
    assert_eq!(trash(&v).state, TrashState::Restoring);
    say(&mut v, of_attempt(|attempt, token| AttemptCommand::Materialised { attempt, token }))
        .unwrap();
    say(&mut v, of_attempt(|attempt, token| AttemptCommand::Persist { attempt, token })).unwrap();
    assert_eq!(trash(&v).state, TrashState::Gone);
    let row = v.repos.id(3).unwrap();
    assert_eq!(
        (row.materialised, row.worktree_id, row.worktree_path),
        (Materialised::Yes, Some(WorktreeId(3)), Some(PathId(3)))
    );
    // Once, and no more.
    assert_eq!(say(&mut v, restore()), Err(Guard::AttemptNew));
}

#[test]
fn a_restore_that_moved_nothing_leaves_its_trash_as_it_was() {
    let mut v = trashed();
    let before = trash(&v);
    say(&mut v, restore()).unwrap();
    // While it is under way nobody purges it.
    v.now = before.restorable_until.unwrap();
    let (removal, token, instance) = (RemovalId(61), Token(61), InstanceId(1));
    v.instances.edit(1).unwrap().lease_until = Time(i64::MAX);
    v.commit();
    let purge = CleanupCommand::Purge { trash: before.id, removal, token, instance };
    assert_eq!(say(&mut v, Command::Cleanup(purge)), Err(Guard::TrashKept));
    say(&mut v, of_attempt(|attempt, token| AttemptCommand::GiveUp { attempt, token })).unwrap();
    assert_eq!(say(&mut v, compensate(Found::InTrash)), Ok(Reply::Compensated));
    assert_eq!(v.attempts.id(50).unwrap().state, AttemptState::Compensated);
    assert_eq!(Trash { updated_at: before.updated_at, ..trash(&v) }, before);
    assert!(v.removals.id(60).is_none(), "a removal was permitted");
    assert_eq!(v.repos.id(3).unwrap().materialised, Materialised::No);
}

#[test]
fn a_restore_that_is_undone_puts_the_directory_back_into_trash() {
    let mut v = trashed();
    say(&mut v, restore()).unwrap();
    say(&mut v, of_attempt(|attempt, token| AttemptCommand::GiveUp { attempt, token })).unwrap();
    assert!(matches!(say(&mut v, compensate(Found::Here)), Ok(Reply::Permitted { .. })));
    assert_eq!(trash(&v).state, TrashState::Gone, "it is not there any more");
    for taken in STEPS {
        say(&mut v, step(RemovalId(60), 60, taken)).unwrap();
    }
    assert_eq!(v.removals.id(60).unwrap().outcome, Some(RemovalOutcome::Trashed));
    let again = v.trash.iter().find(|t| t.removal_id == RemovalId(60)).copied().unwrap();
    assert_eq!((again.state, again.repo_id), (TrashState::Kept, Some(RepoId(3))));
    assert_eq!(again.restorable_until, Some(v.now + Span::hours(1)));
    assert_eq!(v.attempts.id(50).unwrap().state, AttemptState::Compensated);
}

/// W-4: its first removal came to nothing, and what it was is not forgotten with it.
#[test]
fn the_second_try_to_undo_a_restore_puts_the_directory_back_into_trash_too() {
    let mut v = trashed();
    say(&mut v, restore()).unwrap();
    say(&mut v, of_attempt(|attempt, token| AttemptCommand::GiveUp { attempt, token })).unwrap();
    say(&mut v, compensate_by(60, Found::Here)).unwrap();
    let failed = CleanupCommand::RecordFailure {
        removal: RemovalId(60),
        token: Token(60),
        reason: Reason::DiskFull,
        in_place: true,
    };
    let outcome = RemovalOutcome::Returned;
    assert_eq!(say(&mut v, Command::Cleanup(failed)), Ok(Reply::RemovalSettled { outcome }));
    assert_eq!(v.attempts.id(50).unwrap().state, AttemptState::Compensating);
    assert!(matches!(say(&mut v, compensate_by(61, Found::Here)), Ok(Reply::Permitted { .. })));
    for taken in STEPS {
        say(&mut v, step(RemovalId(61), 61, taken)).unwrap();
    }
    assert_eq!(v.removals.id(61).unwrap().outcome, Some(RemovalOutcome::Trashed));
    let again = v.trash.iter().find(|t| t.removal_id == RemovalId(61)).copied().unwrap();
    assert_eq!((again.state, again.repo_id), (TrashState::Kept, Some(RepoId(3))));
}

/// P-29, W-34: one removal has one ref in the private store, so it has one row: an older one would
/// expire, and take the younger's content along.
#[test]
fn what_a_removal_keeps_twice_has_one_row() {
    let mut v = after(&[claim(), permit()]);
    let record = |at, id, contents, size| {
        Command::Cleanup(CleanupCommand::RecordStep {
            removal: REMOVAL,
            token: Token(31),
            step: at,
            found_something: true,
            salvage: Some(SalvageFacts { id: SalvageId(id), contents, size }),
        })
    };
    say(&mut v, record(RemovalStep::Salvaged, 40, Unsaved::TRACKED, 1)).unwrap();
    let first = *v.salvage.id(40).unwrap();
    say(&mut v, step(REMOVAL, 31, RemovalStep::Renamed)).unwrap();
    v.now = v.now + Span::seconds(1);
    say(&mut v, record(RemovalStep::Compared, 41, Unsaved::UNTRACKED, 7)).unwrap();
    let rows: Vec<Salvage> = v.salvage.iter().copied().collect();
    let contents = Unsaved::TRACKED.with(Unsaved::UNTRACKED);
    assert_eq!(rows, [Salvage { contents, size: 7, made_at: v.now, ..first }]);
    let named = v.removals.id(30).and_then(|r| r.resource).and_then(|r| v.resources.id(r.0));
    assert_eq!(named.unwrap().salvage_id, Some(SalvageId(40)));
}

fn expire() -> Command {
    Command::Cleanup(CleanupCommand::ExpireSalvage { salvage: SalvageId(40) })
}

#[test]
fn salvage_expires_by_consent_and_by_nothing_else() {
    let mut v = trashed();
    let made = v.salvage.id(40).unwrap().made_at;
    v.now = made + Span::hours(24 * 365);
    assert_eq!(say(&mut v, expire()), Err(Guard::SalvageLapsed), "nobody consented");
    let silent = with_settings(|s| s.salvage_retention = Span::hours(1));
    assert_eq!(say(&mut v, silent), Err(Guard::SettingsSane), "a retention without words");
    let words = |hours: i64, words: u128| {
        with_settings(move |s| {
            s.salvage_retention = Span::hours(hours);
            s.salvage_consent = Some(ContentHash(words));
            // What a sender says of itself counts for nothing.
            s.salvage_consent_by = Some(ActorId(99));
            s.salvage_consent_at = Some(Time(0));
        })
    };
    let consented = v.now;
    say(&mut v, words(1, 5)).unwrap();
    let by = |v: &View| {
        let s = v.settings.id(1).unwrap();
        (s.salvage_consent_by, s.salvage_consent_at)
    };
    assert_eq!(by(&v), (Some(ActorId(7)), Some(consented)));
    // It counts from the consent, not from a making a year ago.
    assert_eq!(say(&mut v, expire()), Err(Guard::SalvageLapsed));
    v.now = consented + Span::hours(1);
    assert_eq!(say(&mut v, words(1, 5)), Ok(Reply::Unchanged), "the same words again");
    assert_eq!(by(&v).1, Some(consented));
    // Kept trash needs it (W-35).
    assert_eq!(say(&mut v, expire()), Err(Guard::TrashLapsed));
    v.trash.iter_mut().for_each(|t| t.state = TrashState::Gone);
    assert_eq!(say(&mut v, expire()), Ok(Reply::Done));
    assert_eq!(v.salvage.id(40).unwrap().state, SalvageState::Expired);
    assert_eq!(say(&mut v, expire()), Ok(Reply::Unchanged));
    // Other words are another consent.
    say(&mut v, words(1, 6)).unwrap();
    assert_eq!(by(&v).1, Some(v.now));
    // And no retention is none.
    say(&mut v, with_settings(|_| {})).unwrap();
    assert_eq!(by(&v), (None, None));
}
