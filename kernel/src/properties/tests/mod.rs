//! Every property on a good world and on one that breaks it: none is vacuous.

mod claims;
mod holders;
mod more_steps;
mod rows;
mod states;
mod steps;
mod tree;
mod turns;

use alloc::string::ToString;
use alloc::vec::Vec;

use super::*;
use crate::command::*;
use crate::decision::{Event, EventKind};
use crate::evidence::{Evidence, Found, Liveness};
use crate::id::*;
use crate::rows::*;
use crate::time::Time;
use crate::view::Change;
use rows::*;

/// A step with everything beside it.
#[derive(Clone)]
pub(super) struct Scene {
    before: View,
    after: View,
    command: Envelope,
    events: Vec<Event>,
    accepted: bool,
    granted: Option<Granted>,
    history: History,
    disk: Disk,
}

pub(super) fn envelope(command: Command, may: Permissions) -> Envelope {
    let actor = Actor { id: ActorId(7), may };
    Envelope { request: None, content: ContentHash(1), actor, command }
}

/// Nothing happens in a good world: task 1 is active with an owned worktree and a running turn,
/// task 2 is archived and its worktree is in removal.
pub(super) fn good() -> Scene {
    let world = world();
    let renew = Command::System(SystemCommand::RenewInstance { instance: InstanceId(1) });
    Scene {
        before: world.clone(),
        after: world,
        command: envelope(renew, Permissions::ALL),
        events: Vec::new(),
        accepted: true,
        granted: None,
        history: History::default(),
        disk: disk(),
    }
}

impl Scene {
    /// With another world after it.
    fn then(mut self, change: impl FnOnce(&mut View)) -> Scene {
        change(&mut self.after);
        self.after.commit();
        self
    }

    /// With another world before and after it.
    fn given(mut self, change: impl Fn(&mut View)) -> Scene {
        for view in [&mut self.before, &mut self.after] {
            change(view);
            view.commit();
        }
        self
    }

    fn by(mut self, command: Command) -> Scene {
        self.command.command = command;
        self
    }

    fn who_may(mut self, may: Permissions) -> Scene {
        self.command.actor.may = may;
        self
    }

    fn says(mut self, kind: EventKind, subject: RowKey) -> Scene {
        self.events.push(Event { kind, subject, detail: "" });
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Scene)) -> Scene {
        change(&mut self);
        self
    }

    fn grants(mut self, step: RemovalStep) -> Scene {
        let removal = *self.after.removals.id(1).unwrap();
        self.granted = Some(Granted {
            removal: removal.id,
            token: removal.token,
            authority: removal.authority(),
            root: removal.root_id,
            path: removal.path,
            identity: removal.identity,
            step,
            delete_branch: false,
        });
        self
    }

    fn check(&self, id: &str) -> Holds {
        let property = PROPERTIES.iter().find(|p| p.id == id).unwrap();
        property.state(&self.after, &self.disk)?;
        let changed = changes(&self.before, &self.after);
        let step = Step {
            before: &self.before,
            after: &self.after,
            command: &self.command,
            events: &self.events,
            accepted: self.accepted,
            granted: self.granted,
            changes: &changed,
        };
        property.step(&step, &self.history)
    }

    #[track_caller]
    fn holds(&self, id: &str) {
        assert_eq!(self.check(id), Ok(()));
    }

    #[track_caller]
    fn breaks(&self, id: &str, says: &str) {
        let witness = self.check(id).expect_err("the property should break");
        let text = witness.to_string();
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn everything_holds_in_a_good_world() {
    for property in PROPERTIES {
        good().holds(property.id);
    }
}

#[test]
fn the_table_has_every_number_once_and_in_order() {
    let ids: Vec<&str> = PROPERTIES.iter().map(|p| p.id).collect();
    let wanted: Vec<alloc::string::String> = (1..=46).map(|n| alloc::format!("P-{n}")).collect();
    assert_eq!(ids, wanted);
    for property in PROPERTIES {
        assert!(!property.checks.is_empty() && !property.says.is_empty(), "{}", property.id);
        let live = property.checks.iter().any(|c| matches!(c, Check::Goal(_)));
        assert_eq!(
            live,
            property.scope == PropertyScope::Liveness && property.not_yet().is_none(),
            "{}",
            property.id
        );
    }
}

#[test]
fn what_is_not_checked_yet_says_why() {
    let not_yet: Vec<(&str, &str)> =
        PROPERTIES.iter().filter_map(|p| Some((p.id, p.not_yet()?))).collect();
    assert_eq!(
        not_yet,
        [
            ("P-22", "there is no row of questions yet (D-10)"),
            ("P-26", "there are no rows of errors and summaries yet (D-12, E)"),
            ("P-31", "there is no dry run yet (A-34)"),
            ("P-45", "there are no summaries and no projectors yet (E)"),
        ]
    );
}

#[test]
fn differences_of_two_worlds_are_found() {
    let before = world();
    let mut after = before.clone();
    after.sessions.edit(1).unwrap().starred = true;
    after.tasks.touch(1);
    after.turns.remove(1);
    after.instances.edit(1).unwrap().lease_until = Time(999);
    after.workspaces.insert(workspace(9));
    let pending = changes(&before, &after);
    after.commit();
    let committed = changes(&before, &after);
    assert_eq!(pending, committed, "tracked and committed differences are the same");
    let of = |table: TableId| committed.iter().find(|c| c.row.table == table).copied().unwrap();
    assert_eq!(of(TableId::Sessions).how, Change::Updated);
    assert_eq!(of(TableId::Tasks).how, Change::Touched);
    assert_eq!(of(TableId::Turns).how, Change::Deleted);
    assert_eq!(of(TableId::Workspaces).how, Change::Inserted);
    assert!(of(TableId::Instances).lease_only && !of(TableId::Sessions).lease_only);
    assert_eq!(committed.len(), 5);
}

#[test]
fn history_learns_what_went_and_what_was_stopped() {
    let unarchive = OperationCommand::Unarchive { task: TaskId(2), cascade: false };
    let scene = good().by(Command::Operation(unarchive)).then(|v| {
        let task = v.tasks.edit(2).unwrap();
        (task.lifecycle, task.archived_at, task.archived_by) = (TaskLifecycle::Active, None, None);
        v.sessions.remove(1);
        v.inputs.insert(input(3, InputState::Cancelled));
    });
    let scene = scene.says(EventKind::TurnEnded, RowKey::turn(TurnId(1)));
    let changed = changes(&scene.before, &scene.after);
    let mut history = History::default();
    history.learn(&Step {
        before: &scene.before,
        after: &scene.after,
        command: &scene.command,
        events: &scene.events,
        accepted: true,
        granted: None,
        changes: &changed,
    });
    assert_eq!(history.deleted, [(IdentityKind::Session, 1)]);
    assert_eq!(history.stopped, [JobId(1)]);
    assert_eq!(history.ended, [TurnId(1)]);
    assert_eq!(history.settled, [(InputId(3), InputState::Cancelled)]);
}
