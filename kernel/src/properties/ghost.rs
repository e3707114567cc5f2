//! What the rules speak of and no row holds: the physical world, and what was once true. A driver
//! (suite, model, fuzz target) keeps both beside the rows.

use alloc::vec::Vec;

use super::{Changed, Step};
use crate::command::{Command, OperationCommand};
use crate::decision::EventKind;
use crate::id::*;
use crate::rows::*;
use crate::view::Change;

/// Where a physical worktree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// At its path.
    AtHome,
    /// In the store's trash.
    InTrash,
    /// Nowhere.
    Gone,
}

/// One physical worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Physical {
    /// Its lasting identity, the stamp.
    pub identity: WorktreeId,
    /// The root that it lies in.
    pub root: RootId,
    /// Its path.
    pub path: PathId,
    /// The attempt that made it; none for what Freehold did not make.
    pub made_by: Option<AttemptId>,
    /// Where it is now.
    pub place: Place,
    /// What unsaved work was put into it and never saved by its user.
    pub unsaved: Unsaved,
    /// What of it is in the private salvage store.
    pub salvaged: Unsaved,
    /// The removal that moved it last.
    pub moved_by: Option<RemovalId>,
}

/// An executor at work on a path: it holds a warrant, or is a maker with its attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hand {
    /// In this root.
    pub root: RootId,
    /// On this path.
    pub path: PathId,
    /// What proves it: the token of its removal or attempt.
    pub token: Token,
}

/// The physical world, as small as the rules need it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Disk {
    /// Every worktree that there ever was.
    pub worktrees: Vec<Physical>,
    /// Who is at work.
    pub hands: Vec<Hand>,
}

impl Disk {
    /// The worktree with this identity.
    pub fn find(&self, identity: WorktreeId) -> Option<&Physical> {
        self.worktrees.iter().find(|w| w.identity == identity)
    }

    /// The same, to be changed.
    pub fn find_mut(&mut self, identity: WorktreeId) -> Option<&mut Physical> {
        self.worktrees.iter_mut().find(|w| w.identity == identity)
    }

    /// What stands at a path now.
    pub fn at(&self, path: PathId) -> Option<&Physical> {
        self.worktrees.iter().find(|w| w.path == path && w.place == Place::AtHome)
    }

    /// Somebody begins to work on a path.
    pub fn take(&mut self, hand: Hand) {
        if !self.hands.contains(&hand) {
            self.hands.push(hand);
        }
    }

    /// Whoever has this token lets go.
    pub fn let_go(&mut self, token: Token) {
        self.hands.retain(|h| h.token != token);
    }
}

/// What was once true, for the rules that speak of the past.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct History {
    /// Ids of sessions, tasks and workspaces whose rows went (P-16).
    pub deleted: Vec<(IdentityKind, u128)>,
    /// Archive and reconcile jobs that there were when their task was unarchived (P-14).
    pub stopped: Vec<JobId>,
    /// Turns that had their terminal event (P-23).
    pub ended: Vec<TurnId>,
    /// Inputs that were settled, with their outcome (P-21).
    pub settled: Vec<(InputId, InputState)>,
}

impl History {
    /// Learns from a step, after the step was checked.
    pub fn learn(&mut self, step: &Step<'_>) {
        for Changed { row, how, .. } in step.changes {
            let id = row.key.id;
            if *how == Change::Deleted
                && let Some(kind) = identity_kind(row.table)
            {
                self.deleted.push((kind, id));
            }
            if row.table == TableId::Tasks {
                self.stop_jobs(step, TaskId(id));
            }
            if row.table == TableId::Inputs {
                self.settle(step, id);
            }
        }
        for event in step.events {
            if event.kind == EventKind::TurnEnded {
                self.ended.push(TurnId(event.subject.key.id));
            }
        }
    }

    fn settle(&mut self, step: &Step<'_>, input: u128) {
        let settled = step.after.inputs.id(input).filter(|i| i.state != InputState::Queued);
        if let Some(i) = settled
            && !self.settled.iter().any(|(known, _)| *known == i.id)
        {
            self.settled.push((i.id, i.state));
        }
    }

    fn stop_jobs(&mut self, step: &Step<'_>, task: TaskId) {
        let unarchive =
            matches!(step.command.command, Command::Operation(OperationCommand::Unarchive { .. }));
        let back = step.before.tasks.id(task.0).is_some_and(|t| {
            t.lifecycle == TaskLifecycle::Archived && super::words::active(step.after, task)
        });
        if unarchive && back {
            let jobs = step.before.jobs.iter().filter(|j| j.task_id == task);
            for job in jobs.filter(|j| super::words::archive_like(j.trigger)) {
                if !self.stopped.contains(&job.id) {
                    self.stopped.push(job.id);
                }
            }
        }
    }
}

/// The kind of identity that a table's rows have, if they have one (D-14).
pub(super) fn identity_kind(table: TableId) -> Option<IdentityKind> {
    [
        (TableId::Tasks, IdentityKind::Task),
        (TableId::Sessions, IdentityKind::Session),
        (TableId::Workspaces, IdentityKind::Workspace),
    ]
    .into_iter()
    .find(|(t, _)| *t == table)
    .map(|(_, kind)| kind)
}
