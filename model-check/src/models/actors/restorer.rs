//! Puts salvaged work back (W-34): asks under the path lock, writes, says so.

use freehold_kernel::properties::Hand;
use freehold_kernel::{Command, OperatorCommand, SalvageId, SalvageState, Token};

use crate::models::names::*;
use crate::system::{Actor, Fault, Steps};
use crate::world::{Sender, World};

/// Restores an entry into worktree row `into`.
#[derive(Clone, Copy, Debug)]
pub struct Restorer {
    /// The number of the row.
    pub into: u8,
    /// Whose process.
    pub instance: u8,
}

/// Where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Restoring {
    /// Not begun.
    Idle,
    /// Admitted, with the path in its hand.
    Admitted(SalvageId),
    /// Written into the worktree.
    Written(SalvageId),
    /// Done, or refused.
    Ended,
}

const TOKEN: Token = Token(0x1_7000);

impl Actor for Restorer {
    type Local = Restoring;

    fn name(&self) -> String {
        format!("instance {} (restoring)", letter(self.instance))
    }

    fn begin(&self) -> Restoring {
        Restoring::Idle
    }

    fn at_rest(&self, at: Restoring) -> bool {
        matches!(at, Restoring::Idle | Restoring::Ended)
    }

    fn act(&self, at: Restoring, world: &World, steps: &mut Steps<'_, Restoring>) {
        match at {
            Restoring::Idle => {
                let Some(row) = world.view.repos.id(repo(self.into).0).copied() else { return };
                let (Some(root), Some(path)) = (row.root_id, row.worktree_path) else { return };
                if world.disk.hands.iter().any(|h| h.path == path) {
                    return;
                }
                for entry in world.view.salvage.iter() {
                    if entry.state == SalvageState::Restored {
                        continue;
                    }
                    let command = OperatorCommand::AdmitRestore { salvage: entry.id, repo: row.id };
                    let says = format_args!("locks {} and asks to restore into it", said(path.0));
                    let id = entry.id;
                    steps.ask(says, Sender::ALL, Command::Operator(command), |answer, w| {
                        answer.ok()?;
                        w.disk.take(Hand { root, path, token: TOKEN });
                        Some(Restoring::Admitted(id))
                    });
                }
            }
            Restoring::Admitted(entry) => {
                let kept = world.view.salvage.id(entry.0).map(|s| s.contents);
                let path = world.view.repos.id(repo(self.into).0).and_then(|r| r.worktree_path);
                let there = path.and_then(|p| world.disk.at(p)).map(|t| t.identity);
                steps.outside(format_args!("writes what was salvaged into the worktree"), |w| {
                    let tree = there.and_then(|identity| w.disk.find_mut(identity))?;
                    tree.unsaved = tree.unsaved.with(kept?);
                    Some(Restoring::Written(entry))
                });
            }
            Restoring::Written(salvage) => {
                let command = Command::Operator(OperatorCommand::MarkRestored { salvage });
                steps.ask(
                    format_args!("says that it is restored"),
                    Sender::ALL,
                    command,
                    |_, w| {
                        w.disk.let_go(TOKEN);
                        Some(Restoring::Ended)
                    },
                );
            }
            Restoring::Ended => {}
        }
        if matches!(at, Restoring::Admitted(_) | Restoring::Written(_)) {
            steps.costing(Fault::Crash).outside(format_args!("dies, and starts again"), |w| {
                w.disk.let_go(TOKEN);
                Some(Restoring::Idle)
            });
        }
    }
}
