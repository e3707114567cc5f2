//! The simulated disk: what makers, executors and users do to it.

use freehold_kernel::properties::{Physical, Place};
use freehold_kernel::*;

use super::backend::Backend;
use super::op::Draw;
use super::{Driver, Ran};

impl<B: Backend> Driver<B> {
    /// What an adapter sees at a path.
    pub(super) fn look(&self, path: PathId, identity: Option<WorktreeId>) -> Evidence {
        let own = identity.and_then(|i| self.disk.find(i));
        let (found, unsaved) = match (self.disk.at(path), own) {
            (Some(there), _) if Some(there.identity) == identity => (Found::Here, there.unsaved),
            (Some(_), _) => (Found::Mismatch, Unsaved::NONE),
            (None, Some(own)) if own.place == Place::InTrash => (Found::InTrash, own.unsaved),
            (None, _) => (Found::Missing, Unsaved::NONE),
        };
        Evidence { found, unsaved, obstacle: Reason::None, head: None }
    }

    /// The same, sometimes clouded.
    pub(super) fn look_badly(
        &self,
        draw: &mut Draw,
        path: PathId,
        identity: Option<WorktreeId>,
    ) -> Evidence {
        let mut evidence = self.look(path, identity);
        match draw.below(16) {
            13 => evidence.obstacle = Reason::InUse,
            14 => evidence.obstacle = Reason::LockedByPerson,
            15 => evidence.found = Found::Unknown,
            _ => {}
        }
        evidence
    }

    /// Makes an attempt's worktree, or brings it back out of trash, if nothing is there.
    pub(super) fn make_on_disk(&mut self, attempt: &Attempt) -> bool {
        if self.disk.at(attempt.path).is_some() {
            return false;
        }
        let restores = self.world.trash.iter().any(|t| {
            t.state == TrashState::Restoring && t.worktree_id == Some(attempt.worktree_id)
        });
        if let Some(known) = self.disk.find_mut(attempt.worktree_id) {
            let there = restores && known.place == Place::InTrash;
            if there {
                (known.place, known.made_by) = (Place::AtHome, Some(attempt.id));
                known.moved_by = None;
                self.log.push(format!("disk: {:?} back out of trash", attempt.worktree_id));
            }
            return there;
        }
        self.disk.worktrees.push(Physical {
            identity: attempt.worktree_id,
            root: attempt.root_id,
            path: attempt.path,
            made_by: Some(attempt.id),
            place: Place::AtHome,
            unsaved: Unsaved::NONE,
            salvaged: Unsaved::NONE,
            moved_by: None,
        });
        self.log.push(format!("disk: made {:?} at {:?}", attempt.worktree_id, attempt.path));
        true
    }

    /// A user, an agent or a stranger changes something.
    pub(super) fn dirty(&mut self, mut draw: Draw) -> Ran {
        let kinds = [Unsaved::TRACKED, Unsaved::UNTRACKED, Unsaved::COMMITS];
        let at_home: Vec<WorktreeId> = self
            .disk
            .worktrees
            .iter()
            .filter(|w| w.place == Place::AtHome)
            .map(|w| w.identity)
            .collect();
        match draw.below(8) {
            6 => {
                // A person saves everything.
                if let Some(identity) = draw.one(&at_home)
                    && let Some(worktree) = self.disk.find_mut(identity)
                {
                    worktree.unsaved = Unsaved::NONE;
                }
            }
            7 => {
                // A stranger's worktree at a path that an attempt has recorded.
                let paths: Vec<(RootId, PathId)> = self
                    .world
                    .attempts
                    .iter()
                    .filter(|a| a.state == AttemptState::Intended)
                    .map(|a| (a.root_id, a.path))
                    .collect();
                if let Some((root, path)) = draw.one(&paths)
                    && self.disk.at(path).is_none()
                {
                    let identity = WorktreeId(self.fresh());
                    self.disk.worktrees.push(Physical {
                        identity,
                        root,
                        path,
                        made_by: None,
                        place: Place::AtHome,
                        unsaved: Unsaved::TRACKED,
                        salvaged: Unsaved::NONE,
                        moved_by: None,
                    });
                    self.log.push(format!("disk: a stranger's {identity:?} at {path:?}"));
                }
            }
            _ => {
                let kind = draw.one(&kinds).unwrap_or(Unsaved::TRACKED);
                if let Some(identity) = draw.one(&at_home)
                    && let Some(worktree) = self.disk.find_mut(identity)
                {
                    worktree.unsaved = worktree.unsaved.with(kind);
                    self.log.push(format!("disk: {kind:?} unsaved in {identity:?}"));
                }
            }
        }
        self.check()
    }

    /// Renames a worktree into the trash. True if there was something.
    pub(super) fn move_to_trash(&mut self, removal: &Removal) -> bool {
        let Some(worktree) = removal.identity.and_then(|i| self.disk.find_mut(i)) else {
            return false;
        };
        match worktree.place {
            Place::AtHome if worktree.path == removal.path => {
                worktree.place = Place::InTrash;
                worktree.moved_by = Some(removal.id);
                true
            }
            Place::InTrash => true,
            Place::AtHome | Place::Gone => false,
        }
    }

    /// Renames it back. True if there was something.
    pub(super) fn back_home(&mut self, removal: &Removal) -> bool {
        let free = self.disk.at(removal.path).is_none();
        let Some(worktree) = removal.identity.and_then(|i| self.disk.find_mut(i)) else {
            return false;
        };
        if worktree.place == Place::InTrash && free {
            worktree.place = Place::AtHome;
            return true;
        }
        false
    }

    /// Unlinks what lies in the trash. True if there was something.
    pub(super) fn unlink(&mut self, removal: &Removal) -> bool {
        let Some(worktree) = removal.identity.and_then(|i| self.disk.find_mut(i)) else {
            return false;
        };
        if worktree.place == Place::InTrash {
            worktree.place = Place::Gone;
            worktree.moved_by = Some(removal.id);
            return true;
        }
        false
    }
}
