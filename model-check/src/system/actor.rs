//! Who acts in a system, and what their steps come to.

use std::fmt::{self, Arguments, Debug};
use std::hash::Hash;

use freehold_kernel::{Command, Guard, Refusal};

use super::renaming::Renaming;
use crate::explore::Broken;
use crate::trace::{Line, On, Verdict};
use crate::world::{Done, Sender, World};

/// What goes wrong only so often in a system: each step may cost one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Somebody dies between two steps.
    Crash,
    /// A lease lapses although its holder lives.
    Slow,
    /// A command is committed and its reply lost, together with the permission that it brought.
    LostReply,
    /// Something on disk happens twice. For actors of a host's own: in the catalogue a step is done
    /// again where somebody died after it was done and before it was recorded.
    Doubled,
    /// The disk, the file system or git says no.
    Disk,
    /// Somebody from outside interferes: works in a worktree, moves a folder, unmounts a root.
    Outsider,
}

impl Fault {
    /// Every kind.
    pub const ALL: [Fault; 6] =
        [Fault::Crash, Fault::Slow, Fault::LostReply, Fault::Doubled, Fault::Disk, Fault::Outsider];

    /// The circumstance that one of this kind has happened, by its name.
    pub const fn happens(self) -> &'static str {
        match self {
            Fault::Crash => "somebody dies",
            Fault::Slow => "a lease lapses under its holder",
            Fault::LostReply => "a reply is lost",
            Fault::Doubled => "something on disk happens twice",
            Fault::Disk => "the disk says no",
            Fault::Outsider => "somebody interferes",
        }
    }
}

/// One who acts: an instance's maker or worker, a person, time.
///
/// An actor sees the world and what it itself remembers, nothing else; what it does depends on
/// these two alone. So its steps need to be worked out once for each pair, however often the
/// others move in between.
pub trait Actor: Send + Sync + 'static {
    /// What it remembers, its place in its program included: lost when it dies.
    type Local: Copy + Eq + Hash + Debug + Send + Sync + 'static;

    /// The beginning of every sentence about it: `instance B`.
    fn name(&self) -> String;
    /// What it knows at the beginning.
    fn begin(&self) -> Self::Local;
    /// Everything that it can do now.
    fn act(&self, local: Self::Local, world: &World, steps: &mut Steps<'_, Self::Local>);
    /// Whether it has nothing under way.
    fn at_rest(&self, _local: Self::Local) -> bool {
        true
    }
    /// What it remembers, under other names. Needed where it takes part in a symmetry.
    fn rename(&self, local: Self::Local, _renaming: &Renaming) -> Self::Local {
        local
    }
}

/// One step that an actor can take.
pub(super) struct Taken<'t, L> {
    pub(super) to: Result<(&'t World, L), Broken>,
    pub(super) fault: Option<Fault>,
    pub(super) line: Option<Line>,
}

/// What holds for every step of a system.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    /// Guards that are taken out.
    pub(super) without: &'a [Guard],
    /// How many faults of each kind there are in all.
    pub(super) faults: &'a [u8; Fault::ALL.len()],
}

/// Collects the steps that an actor can take.
pub struct Steps<'a, L> {
    /// As it is.
    pub(super) world: &'a World,
    /// The same; commands are tried on it.
    pub(super) scratch: &'a mut World,
    pub(super) terms: Terms<'a>,
    /// The actor's name, if words are wanted.
    pub(super) who: Option<String>,
    pub(super) fault: Option<Fault>,
    pub(super) take: &'a mut dyn FnMut(Taken<'_, L>),
}

impl<L> fmt::Debug for Steps<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steps").field("who", &self.who).finish_non_exhaustive()
    }
}

impl<L: Copy> Steps<'_, L> {
    /// The next step costs one of these.
    pub fn costing(&mut self, fault: Fault) -> &mut Self {
        self.fault = Some(fault);
        self
    }

    /// The next step costs one of these, if so.
    pub fn costing_if(&mut self, costs: bool, fault: Fault) -> &mut Self {
        self.fault = costs.then_some(fault);
        self
    }

    /// What the step costs; nothing if the system has no fault of that kind, so that the step
    /// need not be worked out.
    fn allowed_fault(&mut self) -> Option<Option<Fault>> {
        let fault = self.fault.take();
        fault.is_none_or(|f| self.terms.faults[f as usize] > 0).then_some(fault)
    }

    /// Asks the kernel, in one step of the store. `then` says what the actor remembers
    /// afterwards, and may take note in the world of what it now holds (not change rows); with
    /// `None` nothing happens at all.
    pub fn ask(
        &mut self,
        says: Arguments<'_>,
        sender: Sender,
        command: Command,
        then: impl FnOnce(Result<&Done, &Refusal>, &mut World) -> Option<L>,
    ) {
        let Some(fault) = self.allowed_fault() else { return };
        let who = self.who.clone();
        let line = |verdict| {
            who.map(|who| Line {
                who,
                says: says.to_string(),
                command: command.code(),
                verdict,
                on: On::Store,
                fault,
            })
        };
        match self.scratch.decide(&self.world.view, sender, command, self.terms.without) {
            Ok(answer) => {
                let verdict = match &answer {
                    Ok(_) => Verdict::Accepted,
                    Err(refusal) => Verdict::Refused(refusal.guard.code()),
                };
                if let Some(local) = then(answer.as_ref(), self.scratch) {
                    let to = Ok((&*self.scratch, local));
                    (self.take)(Taken { to, fault, line: line(verdict) });
                }
            }
            Err(broken) => {
                (self.take)(Taken { to: Err(broken), fault, line: line(Verdict::Accepted) });
            }
        }
        self.scratch.restore(self.world);
    }

    /// Something that is no command: on disk, or in an actor's memory.
    pub fn outside(&mut self, says: Arguments<'_>, change: impl FnOnce(&mut World) -> Option<L>) {
        self.act(says, None, |world, _| Ok(change(world)));
    }

    /// Several commands and acts as one step, for a planted design that does at once what the
    /// rules keep apart, or for a host whose steps are one transaction.
    pub fn at_once(
        &mut self,
        says: Arguments<'_>,
        change: impl FnOnce(&mut World, &[Guard]) -> Result<Option<L>, Broken>,
    ) {
        self.act(says, Some(On::Store), change);
    }

    /// On the store, or on whatever it changes.
    fn act(
        &mut self,
        says: Arguments<'_>,
        on: Option<On>,
        change: impl FnOnce(&mut World, &[Guard]) -> Result<Option<L>, Broken>,
    ) {
        let Some(fault) = self.allowed_fault() else { return };
        let to = match change(self.scratch, self.terms.without) {
            Ok(Some(local)) => Ok((&*self.scratch, local)),
            Ok(None) => return self.scratch.restore(self.world),
            Err(broken) => Err(broken),
        };
        let line = self.who.as_ref().map(|who| Line {
            who: who.clone(),
            says: says.to_string(),
            command: "",
            verdict: Verdict::Outside,
            on: on.unwrap_or_else(|| On::what_changes(self.world, to.as_ref().ok().map(|t| t.0))),
            fault,
        });
        (self.take)(Taken { to, fault, line });
        self.scratch.restore(self.world);
    }
}
