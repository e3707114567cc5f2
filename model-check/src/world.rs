//! The world of a model: rows, disk and what was once true; and a command on it, decided by the
//! kernel and looked at by every property.

use freehold_kernel::properties::{self, Disk, Granted, History, Step};
use freehold_kernel::{
    Actor, ActorId, AllBut, Command, ContentHash, Envelope, Guard, Output, Permissions, Refusal,
    Reply, RequestId, SessionEffect, Time, View, Warrant, decide_with,
};

use crate::explore::Broken;

/// The time in every model. Time does not run in a model: leases and terms lapse as steps.
pub const NOW: Time = Time(1_000_000_000);
/// A moment before now.
pub const LAPSED: Time = Time(1_000_000_000 - 1);

/// Rows, disk, history.
#[derive(Clone, Debug)]
pub struct World {
    /// Every row.
    pub view: View,
    /// Every worktree, and who is at work.
    pub disk: Disk,
    /// What was once true.
    pub history: History,
    /// Proofs of leases (tokens, ids of operations or turns) whose holders live: time may pass
    /// them by only if somebody is slow. Sorted.
    pub held: Vec<u128>,
    /// Facts of a model's own outside world: a root that is not mounted, a folder that somebody
    /// changed, a switch. Each is a name and a number; sorted, and a number of 0 is left out.
    pub facts: Vec<(&'static str, u32)>,
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

/// Who sends a command, and how.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    /// What the sender may do.
    pub may: Permissions,
    /// The request id, if the sender wants to be able to ask again (D-19).
    pub request: Option<RequestId>,
    /// The digest of the content that goes with the request id.
    pub content: ContentHash,
}

impl Sender {
    /// Somebody who may do this.
    pub const fn who_may(may: Permissions) -> Sender {
        Sender { may, request: None, content: ContentHash(0) }
    }

    /// Somebody who may do everything.
    pub const ALL: Sender = Sender::who_may(Permissions::ALL);
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}

impl World {
    /// Nothing in it.
    pub fn new() -> World {
        World {
            view: View { now: NOW, ..View::default() },
            disk: Disk::default(),
            history: History::default(),
            held: Vec::new(),
            facts: Vec::new(),
        }
    }

    /// A command of the beginning, which must be accepted.
    ///
    /// # Panics
    /// If it is refused or breaks a property: a beginning is legal.
    pub fn prepare(&mut self, command: Command) -> Done {
        match self.submit(Sender::ALL, command, &[]) {
            Ok(Ok(done)) => done,
            other => panic!("the beginning is legal: {command:?} {other:?}"),
        }
    }

    /// Submits a command, without these guards. Looks at the step, not at the world after it: see
    /// [`World::look`].
    ///
    /// # Errors
    /// The broken property. A refusal is inside.
    pub fn submit(
        &mut self,
        sender: Sender,
        command: Command,
        without: &[Guard],
    ) -> Result<Result<Done, Refusal>, Broken> {
        let before = self.view.clone();
        let answer = self.decide(&before, sender, command, without)?;
        self.view.commit();
        Ok(answer)
    }

    /// The same, leaving the changes in the view as changes, so that they can be rolled back.
    /// `before` are the rows as they are.
    pub(crate) fn decide(
        &mut self,
        before: &View,
        sender: Sender,
        command: Command,
        without: &[Guard],
    ) -> Result<Result<Done, Refusal>, Broken> {
        let actor = Actor { id: ActorId(0xac), may: sender.may };
        let envelope =
            Envelope { request: sender.request, content: sender.content, actor, command };
        let mut out = Output::default();
        let verdict = decide_with(&mut self.view, &envelope, &mut out, &AllBut(without));
        let (accepted, granted) = match &verdict {
            Ok(decision) => (true, decision.warrant.as_ref().map(Granted::from)),
            Err(_) => (false, None),
        };
        // A refusal leaves everything as it was; looking at that as a whole is quicker.
        let same = !accepted && self.view == *before;
        let changes = if same { Vec::new() } else { properties::changes(before, &self.view) };
        let step = Step {
            before,
            after: &self.view,
            command: &envelope,
            events: &out.events,
            accepted,
            granted,
            changes: &changes,
        };
        let by_step = properties::broken_by(&step, &self.history).map(Broken::from);
        if let Some(mut broken) = Broken::first_of(by_step) {
            // What the world after it breaks besides.
            self.broken().for_each(|other| broken.add(other));
            return Err(broken);
        }
        self.history.learn(&step);
        Ok(verdict.map(|decision| Done {
            reply: decision.reply,
            warrant: decision.warrant,
            granted,
            effects: out.effects,
        }))
    }

    /// Becomes equal to another world again, of which it was a copy before a command or two.
    pub(crate) fn restore(&mut self, as_it_was: &World) {
        self.view.rollback();
        // Whoever committed the changes took the way back away.
        if self.view != as_it_was.view {
            self.view = as_it_was.view.clone();
        }
        copy_disk(&mut self.disk, &as_it_was.disk);
        copy_history(&mut self.history, &as_it_was.history);
        self.held.clone_from(&as_it_was.held);
        self.facts.clone_from(&as_it_was.facts);
    }

    /// Whether the world is as promised.
    ///
    /// # Errors
    /// The broken property.
    pub fn look(&self) -> Result<(), Broken> {
        Broken::first_of(self.broken()).map_or(Ok(()), Err)
    }

    /// Every property that the world breaks; each is looked at when it is asked for.
    pub(crate) fn broken(&self) -> impl Iterator<Item = Broken> {
        properties::broken_in(&self.view, &self.disk).map(Broken::from)
    }

    /// Somebody holds a lease that this proves, and lives.
    pub fn hold(&mut self, proof: u128) {
        if let Err(at) = self.held.binary_search(&proof) {
            self.held.insert(at, proof);
        }
    }

    /// Whoever held the lease that this proves died, or has given it back.
    pub fn let_go(&mut self, proof: u128) {
        if let Ok(at) = self.held.binary_search(&proof) {
            self.held.remove(at);
        }
    }

    /// Whether somebody who lives holds the lease that this proves.
    pub fn holds(&self, proof: u128) -> bool {
        self.held.binary_search(&proof).is_ok()
    }

    /// A fact of the model's own outside world; 0 unless it was set.
    pub fn fact(&self, name: &'static str) -> u32 {
        self.facts.iter().find(|(n, _)| *n == name).map_or(0, |(_, is)| *is)
    }

    /// Sets a fact of the model's own outside world.
    pub fn set_fact(&mut self, name: &'static str, is: u32) {
        self.facts.retain(|(n, _)| *n != name);
        if is != 0 {
            self.facts.push((name, is));
            self.facts.sort_unstable();
        }
    }
}

/// Becomes equal to another, in the memory that it has.
pub(crate) fn copy_disk(to: &mut Disk, from: &Disk) {
    let Disk { worktrees, hands } = from;
    to.worktrees.clone_from(worktrees);
    to.hands.clone_from(hands);
}

/// The same for what was once true.
pub(crate) fn copy_history(to: &mut History, from: &History) {
    let History { deleted, stopped, ended, settled } = from;
    to.deleted.clone_from(deleted);
    to.stopped.clone_from(stopped);
    to.ended.clone_from(ended);
    to.settled.clone_from(settled);
}
