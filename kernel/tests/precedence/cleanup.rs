//! The tables of cleanup: claims, permissions, steps.

use std::sync::OnceLock;

use freehold_kernel::*;

use super::*;

/// The part of job 3 that claims worktree 3.
fn part() -> JobRootId {
    world().resources.iter().find(|r| r.kind == ResourceKind::Worktree).unwrap().job_root_id
}

fn edit_part(v: &mut View, change: fn(&mut JobRoot)) {
    if let Some(p) = v.job_roots.edit(part().0) {
        change(p);
    }
}

pub(super) fn claim() -> Command {
    let (token, instance) = (Token(30), InstanceId(1));
    Command::Cleanup(CleanupCommand::Claim { job_root: part(), token, instance })
}

#[test]
fn cleanup_claim() {
    table(
        "cleanup.claim",
        world(),
        claim(),
        &[
            ("permission", permission),
            ("request_content", request_content),
            ("job_root_known", |v, _| v.job_roots.remove(part().0)),
            ("job_known", |v, _| v.jobs.remove(3)),
            ("instance_known", no_instance),
            ("instance_alive", dead_instance),
            ("not_draining", draining),
            ("claimable", |v, _| edit_part(v, |p| p.state = JobState::Running)),
            ("SnapshotUnreadable", |v, _| v.jobs.edit(3).unwrap().snapshot_version = 99),
            ("due", |v, _| edit_part(v, |p| p.next_attempt_at = Some(Time(i64::MAX)))),
            ("root_served", other_host),
            ("one_job_of_task", |v, _| {
                let template = *world().jobs.id(3).unwrap();
                v.jobs.insert(Job { id: JobId(70), state: JobState::Running, ..template });
            }),
        ],
    );
}

pub(super) fn permit() -> Command {
    let resource = world().resources.iter().find(|r| r.kind == ResourceKind::Worktree).unwrap();
    Command::Cleanup(CleanupCommand::Permit {
        resource: resource.id,
        token: Token(30),
        removal: RemovalId(30),
        removal_token: Token(31),
        evidence: Evidence {
            found: Found::Here,
            unsaved: Unsaved::NONE,
            obstacle: Reason::None,
            head: None,
        },
    })
}

fn edit_resource(v: &mut View, change: fn(&mut Resource)) {
    let kind = ResourceKind::Worktree;
    if let Some(r) = v.resources.iter_mut().find(|r| r.kind == kind && r.job_id == JobId(3)) {
        change(r);
    }
}

/// A sandbox of job 3.
fn handle(v: &mut View, result: ResourceResult) {
    let row = *v.resources.iter().find(|r| r.job_id == JobId(3)).unwrap();
    let (id, kind, path) = (ResourceId(71), ResourceKind::Sandbox, None);
    v.resources.insert(Resource { id, kind, path, result, ..row });
}

/// C-6, C-7, W-20: who holds a worktree up. What was given up may live; a person's word ends what
/// has no row; a borrower's runtime is the borrower's.
#[test]
fn what_may_run_holds_worktrees_up() {
    let reply = |change: &dyn Fn(&mut View)| {
        let mut view = after(&[claim()]);
        change(&mut view);
        view.commit();
        let actor = Actor { id: ActorId(1), may: Permissions::ALL };
        let (request, content) = (None, ContentHash(0));
        let envelope = Envelope { request, content, actor, command: permit() };
        decide(&mut view, &envelope, &mut Output::default()).unwrap().reply
    };
    let waits = Reply::NotNow { reason: Reason::RuntimeAlive };
    let goes = Reply::Permitted { removal: RemovalId(30) };
    assert_eq!(reply(&|_| ()), goes);
    assert_eq!(reply(&|v| handle(v, ResourceResult::Waiting)), waits);
    assert_eq!(reply(&|v| handle(v, ResourceResult::Failed)), waits);
    assert_eq!(reply(&|v| handle(v, ResourceResult::Removed)), goes);
    assert_eq!(reply(&|v| handle(v, ResourceResult::Forgotten)), goes);
    assert_eq!(reply(&|v| runtime(v, 900, 3)), waits);
    let named = |status: RuntimeStatus| {
        move |v: &mut View| {
            // Of another environment: what a reset left there, say.
            runtime(v, 900, 99);
            v.runtimes.edit(900).unwrap().status = status;
            handle(v, ResourceResult::Failed);
            let row = v.resources.edit(71).unwrap();
            (row.kind, row.runtime_id) = (ResourceKind::Runtime, Some(RuntimeId(900)));
        }
    };
    assert_eq!(reply(&named(RuntimeStatus::Stopping)), waits);
    assert_eq!(reply(&named(RuntimeStatus::Stopped)), goes);
    let lent = |v: &mut View| {
        runtime(v, 900, 3);
        let task_environment_id = Some(EnvironmentId(3));
        let row = *world().sessions.id(1).unwrap();
        v.sessions.insert(Session { id: SessionId(70), task_environment_id, ..row });
    };
    let (result, reason) = (ResourceResult::Preserved, Reason::Borrowed);
    assert_eq!(reply(&lent), Reply::Settled { result, reason });
}

fn see(e: &mut Envelope, change: fn(&mut Evidence)) {
    if let Command::Cleanup(CleanupCommand::Permit { evidence, .. }) = &mut e.command {
        change(evidence);
    }
}

#[test]
fn cleanup_permit() {
    table(
        "cleanup.permit",
        &after(&[claim()]),
        permit(),
        &[
            ("permission", permission),
            ("request_content", request_content),
            ("resource_known", |v, _| {
                v.resources.remove_where(|r| r.kind == ResourceKind::Worktree);
            }),
            ("claim_running", |v, _| edit_part(v, |p| p.state = JobState::Pending)),
            ("claim_token", |v, _| edit_part(v, |p| p.token = Some(Token(99)))),
            ("claim_lease", |v, _| edit_part(v, |p| p.lease_until = Some(Time(0)))),
            ("resource_waiting", |v, _| edit_resource(v, |r| r.result = ResourceResult::Kept)),
            ("NotNow { reason: RuntimeAlive }", |v, _| handle(v, ResourceResult::Failed)),
            ("NotNow { reason: MakerAlive }", |v, _| {
                let row = *v.resources.iter().find(|r| r.job_id == JobId(3)).unwrap();
                let (id, kind) = (ResourceId(70), ResourceKind::Attempt);
                v.resources.insert(Resource { id, kind, result: ResourceResult::Waiting, ..row });
            }),
            ("NotNow { reason: Contested }", |v, _| bar(v, 3)),
            ("AuthorityGone", |v, _| v.tasks.edit(3).unwrap().archived_by = Some(OperationId(99))),
            ("Borrowed", |v, _| {
                let template = *world().sessions.id(1).unwrap();
                let task_environment_id = Some(EnvironmentId(3));
                v.sessions.insert(Session { id: SessionId(70), task_environment_id, ..template });
            }),
            ("OwnedElsewhere", |v, _| v.repos.edit(3).unwrap().worktree_id = Some(WorktreeId(99))),
            ("NotManaged", |v, _| edit_resource(v, |r| r.managed = false)),
            ("NotNow { reason: RootUnavailable }", |_, e| {
                see(e, |x| (x.found, x.obstacle) = (Found::Unknown, Reason::RootUnavailable));
            }),
            ("IdentityMismatch", |_, e| {
                see(e, |x| {
                    if x.found == Found::Here {
                        x.found = Found::Mismatch;
                    }
                });
            }),
            ("InUse", |_, e| see(e, |x| x.obstacle = Reason::InUse)),
            ("reason: Unsaved", |_, e| see(e, |x| x.unsaved = Unsaved::TRACKED)),
            ("removal_new", |v, _| {
                let row = removal_row();
                v.removals.insert(Removal { id: RemovalId(30), path: PathId(70), ..row });
            }),
        ],
    );
}

/// The removal that the permission makes.
fn removal_row() -> Removal {
    static ROW: OnceLock<Removal> = OnceLock::new();
    *ROW.get_or_init(|| *after(&[claim(), permit()]).removals.id(30).unwrap())
}

#[test]
fn removal_record_step() {
    let record = CleanupCommand::RecordStep {
        removal: RemovalId(30),
        token: Token(31),
        step: RemovalStep::Salvaged,
        found_something: false,
        salvage: None,
    };
    let base = after(&[claim(), permit()]);
    table(
        "removal.record_step",
        &base,
        Command::Cleanup(record),
        &[
            ("permission", permission),
            ("request_content", request_content),
            ("removal_known", |v, _| v.removals.remove(30)),
            ("removal_unsettled", |v, _| {
                v.removals.edit(30).unwrap().outcome = Some(RemovalOutcome::Returned);
            }),
            ("removal_token", |v, _| v.removals.edit(30).unwrap().token = Token(99)),
            ("step_in_order", |v, _| v.removals.edit(30).unwrap().last_step = RemovalStep::Renamed),
            ("salvaged_first", |v, _| v.removals.edit(30).unwrap().unsaved = Unsaved::TRACKED),
        ],
    );
}

/// C-18, W-5: a takeover under the old token would leave whoever had it at work beside the new one.
#[test]
fn a_takeover_brings_a_token_of_its_own() {
    let take = |token| {
        let (removal, old_token, instance) = (RemovalId(30), Token(31), InstanceId(1));
        Command::Cleanup(CleanupCommand::TakeOverRemoval { removal, old_token, token, instance })
    };
    let mut base = after(&[claim(), permit()]);
    base.removals.edit(30).unwrap().lease_until = Time(0);
    base.commit();
    let rows: &[(&str, Break)] = &[
        ("removal_unsettled", |v, _| {
            v.removals.edit(30).unwrap().outcome = Some(RemovalOutcome::Returned);
        }),
        ("removal_token", |v, _| v.removals.edit(30).unwrap().token = Token(99)),
        ("instance_known", no_instance),
        ("instance_alive", dead_instance),
        ("root_served", other_host),
        ("removal_lapsed", |v, _| {
            let row = v.removals.edit(30).unwrap();
            (row.instance_id, row.lease_until) = (InstanceId(99), Time(i64::MAX));
        }),
        ("token_fresh", |_, e| {
            if let Command::Cleanup(CleanupCommand::TakeOverRemoval { token, old_token, .. }) =
                &mut e.command
            {
                *token = *old_token;
            }
        }),
    ];
    table("removal.take_over", &base, take(Token(32)), rows);
}

#[test]
fn attempt_recover() {
    let recover = |token| {
        Command::Attempt(AttemptCommand::Recover {
            attempt: AttemptId(8),
            token,
            instance: InstanceId(1),
            evidence: Evidence {
                found: Found::Missing,
                unsaved: Unsaved::NONE,
                obstacle: Reason::None,
                head: None,
            },
        })
    };
    let mut base = world().clone();
    let row = *base.attempts.id(1).unwrap();
    let (id, token, state) = (AttemptId(8), Token(8), AttemptState::Intended);
    base.attempts.insert(Attempt { id, token, state, lease_until: Time(0), ..row });
    base.commit();
    let rows: &[(&str, Break)] = &[
        ("permission", permission),
        ("request_content", request_content),
        ("attempt_known", |v, _| v.attempts.remove(8)),
        ("instance_known", no_instance),
        ("instance_alive", dead_instance),
        ("root_served", other_host),
        ("attempt_lapsed", |v, _| {
            if let Some(row) = v.attempts.edit(8) {
                row.lease_until = Time(i64::MAX);
            }
        }),
        ("token_fresh", |_, e| {
            if let Command::Attempt(AttemptCommand::Recover { token, .. }) = &mut e.command {
                *token = Token(8);
            }
        }),
    ];
    table("attempt.recover", &base, recover(Token(9)), rows);
}
