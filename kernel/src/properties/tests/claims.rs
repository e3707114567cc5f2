//! P-34, P-35, P-38, P-39 of cleanup, and what else claims and permissions break.

use super::*;

fn cleanup(command: CleanupCommand) -> Command {
    Command::Cleanup(command)
}

fn finish(token: u128) -> Command {
    cleanup(CleanupCommand::Finish { job_root: JobRootId(1), token: Token(token) })
}

fn rescue(token: u128) -> Command {
    cleanup(CleanupCommand::Rescue { job_root: JobRootId(1), token: Token(token) })
}

fn forget() -> Command {
    Command::Operator(OperatorCommand::ForgetResource { resource: ResourceId(1) })
}

fn unarchive() -> Command {
    Command::Operation(OperationCommand::Unarchive { task: TaskId(2), cascade: false })
}

fn permit(found: Found, obstacle: Reason) -> Command {
    cleanup(CleanupCommand::Permit {
        resource: ResourceId(1),
        token: Token(90),
        removal: RemovalId(5),
        removal_token: Token(55),
        evidence: Evidence { found, unsaved: Unsaved::NONE, obstacle, head: None },
    })
}

fn end(state: JobState) -> impl Fn(&mut View) {
    move |v| {
        let part = v.job_roots.edit(1).unwrap();
        (part.state, part.token, part.claimed_by, part.lease_until) = (state, None, None, None);
    }
}

fn lapse(v: &mut View) {
    v.job_roots.edit(1).unwrap().lease_until = Some(Time(50));
}

/// Removal 5 of job 1 begins in the step.
fn permitted(v: &mut View) {
    v.removals.insert(removal(5, 1, 2));
}

#[test]
fn p_34_a_claim_is_ended_without_its_token() {
    let ended = || good().then(end(JobState::RetryWait));
    ended().by(finish(90)).holds("P-34");
    ended().by(finish(91)).breaks("P-34", "a claim was ended without its token");
    ended().by(rescue(90)).breaks("P-34", "a claim was ended without its token");
    good().given(lapse).then(end(JobState::RetryWait)).by(rescue(90)).holds("P-34");
    let cancelled = || good().then(end(JobState::Cancelled));
    cancelled().by(unarchive()).holds("P-34");
    cancelled().breaks("P-34", "a claim was ended without its token");
    let taken = good().then(|v| v.job_roots.edit(1).unwrap().token = Some(Token(91)));
    taken.breaks("P-34", "a claim was ended without its token");
}

#[test]
fn p_34_a_removal_is_taken_from_its_executor() {
    let forgotten =
        |v: &mut View| v.removals.edit(1).unwrap().outcome = Some(RemovalOutcome::Forgotten);
    good().then(forgotten).by(forget()).breaks("P-34", "taken from its executor");
    let lapsed = good().given(|v| v.removals.edit(1).unwrap().lease_until = Time(50));
    lapsed.then(forgotten).by(forget()).holds("P-34");
}

#[test]
fn p_35_a_stale_token_changes_something() {
    let touched = |v: &mut View| v.tasks.edit(2).unwrap().updated_at = Time(101);
    good().then(touched).by(finish(90)).holds("P-35");
    good().then(touched).by(finish(91)).breaks("P-35", "proves nothing any more");
    good().given(lapse).then(touched).by(finish(90)).breaks("P-35", "proves nothing any more");
    good().given(lapse).then(touched).by(rescue(90)).holds("P-35");
    good().given(lapse).then(touched).by(rescue(91)).breaks("P-35", "proves nothing any more");
    good().by(finish(91)).holds("P-35");
    let record = |token| {
        cleanup(CleanupCommand::RenewRemoval { removal: RemovalId(1), token: Token(token) })
    };
    good().then(touched).by(record(51)).holds("P-35");
    good().then(touched).by(record(52)).breaks("P-35", "proves nothing any more");
}

#[test]
fn p_38_a_try_before_it_is_due() {
    let waiting = |next: i64| {
        good()
            .given(end(JobState::RetryWait))
            .given(move |v| v.job_roots.edit(1).unwrap().next_attempt_at = Some(Time(next)))
            .then(|v| {
                let part = v.job_roots.edit(1).unwrap();
                (part.state, part.token) = (JobState::Running, Some(Token(91)));
                (part.claimed_by, part.lease_until) = (Some(InstanceId(1)), Some(Time(500)));
            })
    };
    waiting(100).holds("P-38");
    waiting(101).breaks("P-38", "before it was due");
    let given_up = |since: i64| {
        good()
            .given(end(JobState::Pending))
            .given(move |v| v.job_roots.edit(1).unwrap().updated_at = Time(since))
            .then(end(JobState::Failed))
            .by(cleanup(CleanupCommand::GiveUpRoot { job_root: JobRootId(1) }))
    };
    given_up(100).breaks("P-38", "given up before its time");
    given_up(100 - Settings::DEFAULT.root_patience.0).holds("P-38");
}

#[test]
fn p_38_a_permission_that_the_policy_excludes() {
    let under = |policy, consent| {
        good()
            .given(move |v| {
                let job = v.jobs.edit(1).unwrap();
                (job.policy, job.consent) = (policy, consent);
            })
            .then(|v| v.removals.insert(Removal { unsaved: Unsaved::TRACKED, ..removal(5, 1, 2) }))
    };
    under(UnsavedPolicy::Salvage, Unsaved::NONE).holds("P-38");
    under(UnsavedPolicy::Refuse, Unsaved::NONE).breaks("P-38", "that the policy keeps");
    under(UnsavedPolicy::Discard, Unsaved::TRACKED).holds("P-38");
    under(UnsavedPolicy::Discard, Unsaved::UNTRACKED).breaks("P-38", "that the policy keeps");
}

#[test]
fn p_38_trash_and_what_is_not_managed() {
    let purged = |until| {
        good()
            .given(move |v| {
                let kept = trash(1, 2, TrashState::Kept);
                v.trash.insert(Trash { restorable_until: until, ..kept });
            })
            .then(|v| {
                let authority = AuthorityKind::Trash;
                v.removals.insert(Removal { authority, resource: None, ..removal(5, 1, 2) });
            })
    };
    purged(Some(Time(100))).holds("P-38");
    purged(Some(Time(101))).breaks("P-38", "within its retention");
    purged(None).breaks("P-38", "within its retention");
    let folder = |result| {
        good().given(move |v| {
            v.resources.insert(Resource { managed: false, ..resource(5, 1, 2, result) });
        })
    };
    folder(ResourceResult::Kept).holds("P-38");
    folder(ResourceResult::Waiting).breaks("P-38", "did not make");
}

#[test]
fn p_39_another_host_works_on_a_root() {
    let root = |host| {
        move |v: &mut View| {
            v.managed_roots.insert(ManagedRoot {
                id: RootId(1),
                host: HostId(host),
                path: PathId(9),
                created_at: NOW,
            });
        }
    };
    let waiting = |host| good().given(end(JobState::Pending)).given(root(host));
    let claim = |v: &mut View| v.job_roots.edit(1).unwrap().claimed_by = Some(InstanceId(1));
    waiting(1).then(claim).holds("P-39");
    waiting(2).then(claim).breaks("P-39", "claimed by another host");
    good().given(root(1)).then(permitted).holds("P-39");
    good().given(root(2)).then(permitted).breaks("P-39", "another host removes");
}

#[test]
fn p_4_and_p_6_what_comes_first() {
    good().then(permitted).holds("P-4");
    let first = |kind| {
        good().given(move |v| {
            let path = None;
            let row = resource(6, 1, 2, ResourceResult::Waiting);
            v.resources.insert(Resource { kind, path, ..row });
        })
    };
    first(ResourceKind::Runtime).then(permitted).breaks("P-4", "before what comes first");
    first(ResourceKind::Attempt).then(permitted).breaks("P-4", "before what comes first");
    first(ResourceKind::Container).then(permitted).breaks("P-4", "before what comes first");
    first(ResourceKind::Worktree).then(permitted).holds("P-4");
    // C-7: what was given up may live; a row says it better, and a person's word says enough.
    let ended = |kind, result, status: Option<RuntimeStatus>| {
        let runtime_id = status.map(|_| RuntimeId(5));
        good()
            .given(move |v| v.repos.edit(2).unwrap().status = RepoStatus::Deleted)
            .given(move |v| {
                let (path, row) = (None, resource(6, 1, 2, result));
                v.resources.insert(Resource { kind, path, runtime_id, ..row });
                if let Some(status) = status {
                    v.runtimes.insert(Runtime { status, ..runtime(5, 2, 2) });
                }
            })
            .then(permitted)
    };
    let (failed, running) = (ResourceResult::Failed, Some(RuntimeStatus::Stopping));
    ended(ResourceKind::Runtime, failed, running).breaks("P-4", "before what comes first");
    ended(ResourceKind::Runtime, failed, None).breaks("P-4", "before what comes first");
    ended(ResourceKind::Sandbox, failed, None).breaks("P-4", "before what comes first");
    ended(ResourceKind::Runtime, failed, Some(RuntimeStatus::Stopped)).holds("P-4");
    ended(ResourceKind::Sandbox, ResourceResult::Forgotten, None).holds("P-4");
    let runs = good().given(|v| v.runtimes.insert(runtime(5, 2, 2)));
    runs.clone().then(permitted).breaks("P-4", "a runtime may stand in");
    let old = runs.given(|v| v.repos.edit(2).unwrap().status = RepoStatus::Deleted);
    old.then(permitted).holds("P-4");
    let barred = good().given(|v| v.jobs.insert(job(5, 2, Trigger::Delete, JobState::Prepared)));
    barred.then(permitted).breaks("P-6", "under another operation's barrier");
}

#[test]
fn p_11_a_permission_against_what_was_seen() {
    let seen = |found, obstacle| good().then(permitted).by(permit(found, obstacle));
    seen(Found::Here, Reason::None).holds("P-11");
    seen(Found::Mismatch, Reason::None).breaks("P-11", "something else");
    seen(Found::Here, Reason::InUse).breaks("P-11", "in_use");
}

#[test]
fn p_12_two_jobs_of_one_task_run() {
    let second = |task| {
        good().given(move |v| {
            v.jobs.insert(job(5, task, Trigger::EnvironmentReset, JobState::Running));
        })
    };
    second(1).holds("P-12");
    second(2).breaks("P-12", "two jobs of one task");
}

#[test]
fn p_13_what_is_settled_changes() {
    let settled = |was, is| {
        good()
            .given(move |v| v.resources.edit(1).unwrap().result = was)
            .then(move |v| v.resources.edit(1).unwrap().result = is)
    };
    let failed = || settled(ResourceResult::Failed, ResourceResult::Waiting);
    failed().breaks("P-13", "a settled resource changed");
    let retry = Command::Operator(OperatorCommand::Retry { job: JobId(1) });
    failed().by(retry).holds("P-13");
    settled(ResourceResult::Removed, ResourceResult::Waiting)
        .by(retry)
        .breaks("P-13", "a settled resource changed");
    let again = |trigger| {
        good()
            .given(move |v| {
                let j = v.jobs.edit(1).unwrap();
                (j.state, j.completed_at) = (JobState::Failed, Some(NOW));
                v.jobs.insert(job(5, 2, trigger, JobState::Succeeded));
            })
            .then(|v| {
                let j = v.jobs.edit(1).unwrap();
                (j.state, j.completed_at) = (JobState::Pending, None);
            })
            .by(retry)
    };
    again(Trigger::EnvironmentReset).holds("P-13");
    again(Trigger::Delete).breaks("P-13", "after a deletion took over");
}

#[test]
fn p_28_what_cannot_be_read_is_worked_on() {
    let newer = || good().given(|v| v.jobs.edit(1).unwrap().snapshot_version = 2);
    newer().then(end(JobState::Failed)).holds("P-28");
    newer().then(end(JobState::Pending)).breaks("P-28", "was worked on");
    let settled = |v: &mut View| v.resources.edit(1).unwrap().result = ResourceResult::Kept;
    newer().then(settled).breaks("P-28", "was changed");
    newer().then(settled).by(forget()).holds("P-28");
    good()
        .given(|v| v.jobs.edit(1).unwrap().trigger = Trigger::Unreadable)
        .then(end(JobState::Succeeded))
        .breaks("P-28", "was worked on");
}

#[test]
fn p_29_salvage_comes_first_and_goes_back_where_it_belongs() {
    let entry = |v: &mut View| {
        v.salvage.insert(Salvage {
            id: SalvageId(1),
            task_id: Some(TaskId(2)),
            repository_id: RepositoryId(1),
            repo_id: Some(RepoId(2)),
            worktree_id: WorktreeId(2),
            removal_id: RemovalId(1),
            root_id: RootId(1),
            base: None,
            contents: Unsaved::TRACKED,
            size: 1,
            state: SalvageState::Verified,
            made_at: NOW,
        });
    };
    let went_on = || {
        good().given(|v| {
            let removal = v.removals.edit(1).unwrap();
            (removal.unsaved, removal.last_step) = (Unsaved::TRACKED, RemovalStep::Salvaged);
        })
    };
    went_on().breaks("P-29", "before its salvage");
    went_on().given(entry).holds("P-29");
    let restore = |repo| {
        let (salvage, repo) = (SalvageId(1), RepoId(repo));
        Command::Operator(OperatorCommand::AdmitRestore { salvage, repo })
    };
    good().by(restore(1)).breaks("P-29", "a restore of nothing");
    good().given(entry).by(restore(1)).holds("P-29");
    good().given(entry).by(restore(2)).breaks("P-29", "into what is not there");
    let other = good().given(entry).given(|v| {
        v.repos.edit(1).unwrap().repository_id = RepositoryId(7);
    });
    other.by(restore(1)).breaks("P-29", "not of its repository");
}
