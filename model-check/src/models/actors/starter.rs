//! An instance that looks at no lease: at its start it takes over whatever is under way, as if
//! everybody else had died. The kernel has to refuse it (B-7, C-11, W-5).

use freehold_kernel::{AttemptCommand, Command, JobState, SystemCommand, Token, derive};

use super::executor::Hands;
use crate::models::names::*;
use crate::system::{Actor, Steps};
use crate::world::{Sender, World};

/// An instance at its start.
#[derive(Clone, Copy, Debug)]
pub struct Starter {
    /// Whose process.
    pub instance: u8,
}

impl Actor for Starter {
    type Local = ();

    fn name(&self) -> String {
        format!("instance {} (starting)", letter(self.instance))
    }

    fn begin(&self) {}

    fn act(&self, (): (), world: &World, steps: &mut Steps<'_, ()>) {
        for job in world.view.jobs.iter().filter(|j| j.state == JobState::Prepared) {
            let command = Command::System(SystemCommand::RecoverBarrier { job: job.id });
            let says = format_args!("asks to lift the barrier of {}", said(job.operation_id.0));
            steps.ask(says, Sender::ALL, command, |_, _| Some(()));
        }
        for row in world.view.attempts.iter() {
            let looked =
                Hands::evidence(world, Some(row.root_id), Some(row.path), Some(row.worktree_id));
            let command = Command::Attempt(AttemptCommand::Recover {
                attempt: row.id,
                token: Token(derive(row.token.0, 1 + u128::from(self.instance))),
                instance: instance(self.instance),
                evidence: looked,
            });
            let says = format_args!("asks to take over {}", said(row.id.0));
            steps.ask(says, Sender::ALL, command, |_, _| Some(()));
        }
    }
}
