//! An executor: has a warrant in hand, does its one step on disk under the path lock, and records
//! it; the record brings the next warrant.

use freehold_kernel::properties::{Granted, Hand, Physical, Place};
use freehold_kernel::{
    CleanupCommand, CommitId, Evidence, Found, PathId, Reason, Removal, RemovalId, RemovalStep,
    RootId, SalvageFacts, SalvageId, Token, Unsaved, WorktreeId, machine,
};

use super::cleaner::bit;
use crate::system::Renaming;
use crate::world::{Done, World};

/// A warrant in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Executor {
    /// The removal.
    pub removal: RemovalId,
    /// Its token.
    pub token: Token,
    /// The step that it permits.
    pub step: RemovalStep,
    /// The step is done on disk, its record is not.
    pub done: bool,
}

/// What executors do.
#[derive(Clone, Copy, Debug)]
pub struct Hands;

impl Hands {
    /// Whoever got a warrant holds the path (W-13: the lock was taken before the question), and
    /// the lease of the removal.
    pub fn hold(world: &mut World, done: Option<&Done>) -> Option<Executor> {
        let granted: Granted = done?.granted?;
        world.disk.take(Hand { root: granted.root, path: granted.path, token: granted.token });
        world.hold(granted.token.0);
        Some(Executor {
            removal: granted.removal,
            token: granted.token,
            step: granted.step,
            done: false,
        })
    }

    /// Lets go of path and lease.
    pub fn let_go(world: &mut World, token: Token) {
        world.disk.let_go(token);
        world.let_go(token.0);
    }

    /// A new removal's id and token, drawn from what the rows say, not from a counter: equal
    /// worlds then have equal names for what comes next.
    pub fn next_removal(world: &World) -> (RemovalId, Token) {
        let n = world.view.removals.len() as u128;
        (RemovalId(0x2_0000 + n), Token(0x3_0000 + 16 * n))
    }

    /// What an inspection of this path finds, for somebody who looks for this worktree.
    pub fn evidence(
        world: &World,
        root: Option<RootId>,
        path: Option<PathId>,
        identity: Option<WorktreeId>,
    ) -> Evidence {
        let own = identity.and_then(|i| world.disk.find(i));
        let there = path.and_then(|p| world.disk.at(p));
        let away = root.is_some_and(|r| world.fact("unmounted") & bit(r) != 0);
        let found = match (there, own) {
            _ if away => Found::Unknown,
            (Some(tree), Some(own)) if tree.identity == own.identity => Found::Here,
            (Some(_), _) => Found::Mismatch,
            (None, Some(own)) if own.place == Place::InTrash => Found::InTrash,
            (None, _) => Found::Missing,
        };
        let looked = if found == Found::Mismatch { there } else { own };
        let unsaved = match found {
            Found::Unknown | Found::Missing => Unsaved::NONE,
            Found::Here | Found::InTrash | Found::Mismatch => {
                looked.map_or(Unsaved::NONE, |t| t.unsaved)
            }
        };
        // What could not be looked at, and what is something else, need no further reason.
        let used = found == Found::Here && world.fact("in use") != 0;
        let obstacle = if used { Reason::InUse } else { Reason::None };
        Evidence { found, unsaved, obstacle, head: None::<CommitId> }
    }

    /// Why a step of this removal cannot be done now: the executor proves for itself what it needs
    /// before the first change (W-31).
    pub fn hindrance(world: &World, row: &Removal) -> Option<Reason> {
        let seen = Hands::evidence(world, Some(row.root_id), Some(row.path), row.identity);
        // Once the registration is cleared, nothing is looked for at the path any more.
        let at_path = machine::removal::can_return(row.last_step);
        match seen.found {
            Found::Unknown => Some(Reason::RootUnavailable),
            Found::Mismatch if at_path => Some(Reason::IdentityMismatch),
            Found::Here if seen.obstacle != Reason::None => Some(seen.obstacle),
            Found::Here | Found::Missing | Found::InTrash | Found::Mismatch => None,
        }
    }

    /// Does the step on disk.
    pub fn act(world: &mut World, executor: Executor) {
        let Some(row) = world.view.removals.id(executor.removal.0).copied() else { return };
        let Some(identity) = row.identity else { return };
        let removal = executor.removal;
        let Some(tree) = world.disk.find_mut(identity) else { return };
        let moved = |tree: &mut Physical, place| {
            tree.place = place;
            tree.moved_by = Some(removal);
        };
        match executor.step {
            RemovalStep::Salvaged => tree.salvaged = tree.unsaved,
            RemovalStep::Renamed if tree.place == Place::AtHome => moved(tree, Place::InTrash),
            RemovalStep::Compared if tree.salvaged != tree.unsaved => tree.salvaged = tree.unsaved,
            RemovalStep::Purged => moved(tree, Place::Gone),
            RemovalStep::Returned if tree.place == Place::InTrash => moved(tree, Place::AtHome),
            RemovalStep::Permitted
            | RemovalStep::Renamed
            | RemovalStep::Compared
            | RemovalStep::Unregistered
            | RemovalStep::BranchSettled
            | RemovalStep::Returned => {}
        }
    }

    /// The record of the step.
    pub fn record(world: &World, executor: Executor) -> CleanupCommand {
        let identity = world.view.removals.id(executor.removal.0).and_then(|r| r.identity);
        let tree = identity.and_then(|i| world.disk.find(i));
        let kept = tree.map_or(Unsaved::NONE, |t| t.salvaged);
        let has_row = world
            .view
            .salvage
            .iter()
            .any(|x| x.removal_id == executor.removal && x.contents == kept);
        let keeps =
            executor.step == RemovalStep::Salvaged || executor.step == RemovalStep::Compared;
        let salvage = (keeps && !kept.is_none() && !has_row).then(|| SalvageFacts {
            id: SalvageId(0x4_0000 + world.view.salvage.len() as u128),
            contents: kept,
            size: 1,
        });
        CleanupCommand::RecordStep {
            removal: executor.removal,
            token: executor.token,
            step: executor.step,
            found_something: tree.is_some(),
            salvage,
        }
    }

    /// Under other names.
    pub fn rename(executor: Executor, renaming: &Renaming) -> Executor {
        Executor {
            removal: RemovalId(renaming.id(executor.removal.0)),
            token: Token(renaming.id(executor.token.0)),
            ..executor
        }
    }
}

/// A step on disk, in words.
pub fn in_words(step: RemovalStep) -> &'static str {
    match step {
        RemovalStep::Permitted => "begins the removal",
        RemovalStep::Salvaged => "salvages what is unsaved",
        RemovalStep::Renamed => "renames the worktree into the trash",
        RemovalStep::Compared => "compares the trash with the salvage, and salvages the rest",
        RemovalStep::Unregistered => "takes the worktree out of git's list",
        RemovalStep::BranchSettled => "leaves or deletes the branch",
        RemovalStep::Purged => "deletes the trash",
        RemovalStep::Returned => "puts the worktree back",
    }
}
