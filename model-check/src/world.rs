//! The world of a model: rows, disk and what was once true; and a command on it, decided by the
//! kernel and looked at by every property.

use freehold_kernel::properties::{self, Disk, Granted, History, Step};
use freehold_kernel::{
    Actor, ActorId, AllBut, Command, ContentHash, Envelope, Guard, Output, Permissions, Refusal,
    Reply, SessionEffect, View, Warrant, decide_with,
};

/// Rows, disk, history.
#[derive(Clone, Debug)]
pub struct World {
    /// Every row.
    pub view: View,
    /// Every worktree, and who is at work.
    pub disk: Disk,
    /// What was once true.
    pub history: History,
}

/// An accepted command.
#[derive(Debug)]
pub struct Done {
    /// The answer.
    pub reply: Reply,
    /// The permission that came with it, and that is handed on by value.
    pub warrant: Option<Warrant>,
    /// What it permits, as data.
    pub granted: Option<Granted>,
    /// What the host must do.
    pub effects: Vec<SessionEffect>,
}

impl World {
    /// Submits a command as this actor, without these guards.
    ///
    /// # Errors
    /// The broken property, in words. A refusal is inside.
    pub fn submit(
        &mut self,
        may: Permissions,
        command: Command,
        without: &[Guard],
    ) -> Result<Result<Done, Refusal>, String> {
        let actor = Actor { id: ActorId(0xac), may };
        let envelope = Envelope { request: None, content: ContentHash(0), actor, command };
        let before = self.view.clone();
        let mut out = Output::default();
        let verdict = decide_with(&mut self.view, &envelope, &mut out, &AllBut(without));
        let (accepted, granted) = match &verdict {
            Ok(decision) => (true, decision.warrant.as_ref().map(Granted::from)),
            Err(_) => (false, None),
        };
        let changes = properties::changes(&before, &self.view);
        let step = Step {
            before: &before,
            after: &self.view,
            command: &envelope,
            events: &out.events,
            accepted,
            granted,
            changes: &changes,
        };
        properties::check_step(&step, &self.history)
            .map_err(|(p, w)| format!("{} {}: {w}", p.id, p.name))?;
        self.history.learn(&step);
        self.view.commit();
        self.look()?;
        Ok(verdict.map(|decision| Done {
            reply: decision.reply,
            warrant: decision.warrant,
            granted,
            effects: out.effects,
        }))
    }

    /// Whether the world is as promised.
    ///
    /// # Errors
    /// The broken property, in words.
    pub fn look(&self) -> Result<(), String> {
        properties::check_state(&self.view, &self.disk)
            .map_err(|(p, w)| format!("{} {}: {w}", p.id, p.name))
    }
}
