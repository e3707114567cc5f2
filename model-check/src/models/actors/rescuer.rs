//! Recovery of claims in two steps, as the host does it: first it reads the rows, then it asks.
//! What it has read may be old when it asks (C-4).

use freehold_kernel::{CleanupCommand, Command, JobRootId, JobState, Token};

use crate::models::names::*;
use crate::system::{Actor, Fault, Renaming, Steps};
use crate::world::{NOW, Sender, World};

/// Rescues lapsed claims, by an instance.
#[derive(Clone, Copy, Debug)]
pub struct Rescuer {
    /// Whose process.
    pub instance: u8,
}

/// A claim that was seen to have lapsed.
type Seen = Option<(JobRootId, Token)>;

impl Actor for Rescuer {
    type Local = Seen;

    fn name(&self) -> String {
        format!("instance {} (rescuing)", letter(self.instance))
    }

    fn begin(&self) -> Seen {
        None
    }

    fn at_rest(&self, local: Seen) -> bool {
        local.is_none()
    }

    fn rename(&self, local: Seen, renaming: &Renaming) -> Seen {
        local.map(|(part, token)| (JobRootId(renaming.id(part.0)), Token(renaming.id(token.0))))
    }

    fn act(&self, local: Seen, world: &World, steps: &mut Steps<'_, Seen>) {
        if let Some((job_root, token)) = local {
            let command = Command::Cleanup(CleanupCommand::Rescue { job_root, token });
            let says = format_args!("rescues the claim that it saw");
            steps.ask(says, Sender::ALL, command, |answer, w| {
                if answer.is_ok() {
                    w.let_go(token.0);
                }
                Some(None)
            });
            steps
                .costing(Fault::Crash)
                .outside(format_args!("dies, and starts again"), |_| Some(None));
            return;
        }
        for part in world.view.job_roots.iter().filter(|p| p.state == JobState::Running) {
            let lapsed = part.lease_until.is_none_or(|lease| lease <= NOW);
            if let (Some(token), true) = (part.token, lapsed) {
                let says = format_args!("sees that the claim of {} lapsed", said(part.job_id.0));
                steps.outside(says, |_| Some(Some((part.id, token))));
            }
        }
    }
}
