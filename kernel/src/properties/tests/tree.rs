//! The tree of tasks: each sentence of its properties is seen to fail.

use super::*;

fn mutate(operation: u128, scope: crate::command::Scope) -> Command {
    Command::Operation(OperationCommand::Mutate {
        operation: OperationId(operation),
        scope,
        instance: InstanceId(1),
    })
}

fn hang(v: &mut View, id: u128, under: Option<u128>) {
    v.tasks.edit(id).unwrap().parent_id = under.map(TaskId);
}

fn archive(v: &mut View, id: u128, by: u128) {
    let task = v.tasks.edit(id).unwrap();
    task.lifecycle = TaskLifecycle::Archived;
    (task.archived_at, task.archived_by) = (Some(NOW), Some(OperationId(by)));
}

fn open(v: &mut View, id: u128) {
    let task = v.tasks.edit(id).unwrap();
    (task.lifecycle, task.archived_at, task.archived_by) = (TaskLifecycle::Active, None, None);
}

fn activate(v: &mut View, job: u128) {
    let job = v.jobs.edit(job).unwrap();
    (job.state, job.mutated_at) = (JobState::Pending, Some(NOW));
    (job.instance_id, job.lease_until) = (None, None);
}

/// Tasks 3, 4 and 5, each under the one before, with prepared jobs 53, 54 and 55 of operation 5.
fn tree(trigger: Trigger) -> Scene {
    good().given(|v| {
        for id in [3, 4, 5] {
            v.tasks.insert(task(id));
            let cascade = trigger != Trigger::WorkspaceDelete;
            v.jobs.insert(Job {
                operation_id: OperationId(5),
                authority: OperationId(5),
                cascade_root: cascade.then_some(TaskId(3)),
                ..job(50 + id, id, trigger, JobState::Prepared)
            });
        }
        hang(v, 4, Some(3));
        hang(v, 5, Some(4));
    })
}

#[test]
fn p_36_a_circle() {
    let hung = |ways: &'static [(u128, u128)]| {
        good().then(|v| {
            v.tasks.insert(task(3));
            for (id, under) in ways {
                hang(v, *id, Some(*under));
            }
        })
    };
    hung(&[(2, 1), (3, 2)]).holds("P-36");
    hung(&[(3, 3)]).breaks("P-36", "under itself");
    hung(&[(1, 2), (2, 3), (3, 1)]).breaks("P-36", "under itself");
}

#[test]
fn p_36_under_what_is_gone() {
    good().then(|v| hang(v, 1, Some(9))).breaks("P-36", "under one that is gone");
    let moved = |v: &mut View| {
        v.workspaces.insert(workspace(2));
        v.tasks.insert(Task { workspace_id: WorkspaceId(2), ..task(3) });
    };
    good().then(moved).holds("P-36");
    good().then(moved).then(|v| hang(v, 3, Some(1))).breaks("P-36", "two workspaces");
    let lost = good().then(|v| {
        v.workspaces.remove(1);
    });
    lost.breaks("P-36", "a workspace that is gone");
}

#[test]
fn p_36_a_cascade_leaves_somebody_behind() {
    use crate::command::Scope::Cascade;
    let archived = |ids: &'static [u128]| {
        tree(Trigger::CascadeArchive).by(mutate(5, Cascade)).then(|v| {
            for id in ids {
                activate(v, 50 + id);
                archive(v, *id, 5);
            }
        })
    };
    archived(&[3, 4, 5]).holds("P-36");
    archived(&[3, 4]).breaks("P-36", "left a task behind");
    // What was archived before stays so.
    archived(&[3, 4]).given(|v| archive(v, 5, 7)).holds("P-36");
    let deleted = tree(Trigger::CascadeDelete).by(mutate(5, Cascade)).then(|v| {
        for id in [3, 4] {
            activate(v, 50 + id);
            v.tasks.remove(id);
        }
        hang(v, 5, None);
    });
    deleted.breaks("P-36", "left a task behind");
    deleted
        .then(|v| {
            v.tasks.remove(5);
        })
        .holds("P-36");
}

#[test]
fn p_36_the_workspace_stays() {
    use crate::command::Scope::Workspace;
    let other = |v: &mut View| {
        v.workspaces.insert(workspace(2));
        for id in [3, 4, 5] {
            v.tasks.edit(id).unwrap().workspace_id = WorkspaceId(2);
        }
    };
    let scene = tree(Trigger::WorkspaceDelete).given(other).by(mutate(5, Workspace)).then(|v| {
        for id in [3, 4, 5] {
            activate(v, 50 + id);
            v.tasks.remove(id);
        }
    });
    scene.breaks("P-36", "the workspace stays");
    scene
        .then(|v| {
            v.workspaces.remove(2);
        })
        .holds("P-36");
}

#[test]
fn p_36_children_move_up() {
    let deleted = |parent: Option<u128>| {
        tree(Trigger::CascadeDelete)
            .given(|v| {
                for id in [53, 54, 55] {
                    v.jobs.remove(id);
                }
                v.jobs.insert(job(54, 4, Trigger::Delete, JobState::Prepared));
            })
            .by(mutate(54, crate::command::Scope::Task))
            .then(move |v| {
                activate(v, 54);
                v.tasks.remove(4);
                hang(v, 5, parent);
            })
    };
    deleted(Some(3)).holds("P-36");
    deleted(None).breaks("P-36", "did not move up");
    deleted(Some(1)).breaks("P-36", "did not move up");
    let closed = |v: &mut View| archive(v, 3, 9);
    deleted(None).given(closed).holds("P-36");
    deleted(Some(3)).given(closed).breaks("P-36", "did not move up");
    let barred = |v: &mut View| v.jobs.insert(job(53, 3, Trigger::Archive, JobState::Prepared));
    deleted(None).given(barred).holds("P-36");
    deleted(Some(3)).given(barred).breaks("P-36", "did not move up");
}

#[test]
fn p_36_an_unarchive_brings_back_something_else() {
    let back = |cascade: bool, ids: &'static [u128]| {
        let asked = OperationCommand::Unarchive { task: TaskId(3), cascade };
        tree(Trigger::CascadeArchive)
            .given(|v| {
                for id in [53, 54, 55] {
                    activate(v, id);
                }
                archive(v, 3, 5);
                archive(v, 4, 5);
                archive(v, 5, 7);
            })
            .by(Command::Operation(asked))
            .then(|v| {
                for id in ids {
                    open(v, *id);
                }
            })
    };
    back(true, &[3, 4]).holds("P-36");
    back(false, &[3]).holds("P-36");
    back(true, &[]).with(|s| s.accepted = false).holds("P-36");
    back(true, &[3]).breaks("P-36", "something else");
    back(false, &[3, 4]).breaks("P-36", "something else");
    back(true, &[3, 4, 5]).breaks("P-36", "something else");
    back(true, &[3, 4]).with(|s| s.accepted = false).breaks("P-36", "something else");
    back(false, &[3]).given(|v| hang(v, 3, Some(2))).breaks("P-36", "under an archived one");
}

#[test]
fn p_6_a_task_comes_into_a_workspace_in_deletion() {
    let create = Command::Task(TaskCommand::Create {
        task: TaskId(3),
        workspace: WorkspaceId(1),
        parent: None,
        kind: TaskKind::Standard,
        expires_at: None,
    });
    let created = good().by(create).then(|v| v.tasks.insert(task(3)));
    created.holds("P-6");
    let closing = |v: &mut View| v.workspaces.edit(1).unwrap().state = WorkspaceState::Deleting;
    created.given(closing).breaks("P-6", "being deleted");
}

#[test]
fn p_38_the_busy_and_the_young() {
    let reserve = |trigger: Trigger, refuse_busy: bool| {
        let asked = Command::Operation(OperationCommand::Reserve {
            operation: OperationId(5),
            job: JobId(5),
            task: TaskId(1),
            trigger,
            environment: None,
            cascade_root: None,
            policy: UnsavedPolicy::Salvage,
            branch_policy: BranchPolicy::Keep,
            consent: Unsaved::NONE,
            unsaved: Unsaved::NONE,
            refuse_busy,
            instance: InstanceId(1),
            content: ContentHash(1),
        });
        good().by(asked).then(move |v| v.jobs.insert(job(5, 1, trigger, JobState::Prepared)))
    };
    let end = |v: &mut View| {
        let turn = v.turns.edit(1).unwrap();
        turn.phase = TurnPhase::Ended;
        (turn.ended_at, turn.outcome) = (Some(NOW), Some(TurnOutcome::Completed));
    };
    let due = |at: i64| move |v: &mut View| v.tasks.edit(1).unwrap().expires_at = Some(Time(at));
    reserve(Trigger::Archive, false).holds("P-38");
    reserve(Trigger::Archive, true).breaks("P-38", "busy");
    reserve(Trigger::Archive, true).given(end).holds("P-38");
    let expire = reserve(Trigger::QuickChatExpire, false);
    expire.clone().given(end).breaks("P-38", "before its time");
    expire.clone().given(end).given(due(101)).breaks("P-38", "before its time");
    expire.clone().given(end).given(due(100)).holds("P-38");
    expire.given(due(100)).breaks("P-38", "busy");
}
