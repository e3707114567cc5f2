//! The sweep of trash that was kept (D-20): asks for its purge and does it. Salvage whose retention
//! is over expires with it (W-34).

use freehold_kernel::{CleanupCommand, Command, SalvageState, TrashState};

use super::executor::{Executor, Hands};
use super::worker::execute;
use crate::models::names::*;
use crate::system::{Actor, Fault, Renaming, Steps};
use crate::world::{Sender, World};

/// Sweeps trash, by an instance. What it began and left is taken over by whoever cleans.
#[derive(Clone, Copy, Debug)]
pub struct Sweeper {
    /// Whose process.
    pub instance: u8,
}

impl Actor for Sweeper {
    type Local = Option<Executor>;

    fn name(&self) -> String {
        format!("instance {} (sweeping)", letter(self.instance))
    }

    fn begin(&self) -> Option<Executor> {
        None
    }

    fn at_rest(&self, local: Option<Executor>) -> bool {
        local.is_none()
    }

    fn rename(&self, local: Option<Executor>, renaming: &Renaming) -> Option<Executor> {
        local.map(|e| Hands::rename(e, renaming))
    }

    fn act(&self, local: Option<Executor>, world: &World, steps: &mut Steps<'_, Option<Executor>>) {
        if let Some(executor) = local {
            execute(world, executor, steps, |executor| executor);
            steps.costing(Fault::Crash).outside(format_args!("dies, and starts again"), |w| {
                Hands::let_go(w, executor.token);
                Some(None)
            });
            return;
        }
        for entry in world.view.salvage.iter().filter(|s| s.state != SalvageState::Expired) {
            let command = CleanupCommand::ExpireSalvage { salvage: entry.id };
            let says = format_args!("asks to let the salvage of {} expire", said(entry.id.0));
            steps.ask(says, Sender::ALL, Command::Cleanup(command), |answer, _| {
                answer.ok().map(|_| None)
            });
        }
        for trash in world.view.trash.iter().filter(|t| t.state != TrashState::Gone) {
            let (removal, token) = Hands::next_removal(world);
            let command = CleanupCommand::Purge {
                trash: trash.id,
                removal,
                token,
                instance: instance(self.instance),
            };
            let says = format_args!("asks to purge the trash of {}", said(trash.path.0));
            steps.ask(says, Sender::ALL, Command::Cleanup(command), |answer, w| {
                Some(Hands::hold(w, Some(answer.ok()?)))
            });
        }
    }
}
