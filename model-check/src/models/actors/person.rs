//! A person, or anybody whose program is a list: each thing once, in order, accepted or not.

use freehold_kernel::properties::{Physical, Place};
use freehold_kernel::{AttemptCommand, Command, Evidence, Permissions, Reason, Unsaved};

use super::executor::Hands;
use crate::models::names::*;
use crate::system::{Actor, Fault, Steps};
use crate::world::{Sender, World};

/// One thing that a person does.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a model has a handful of them")]
pub enum Act {
    /// Asks for this.
    Ask {
        /// As the rest of a sentence.
        says: &'static str,
        /// What is asked.
        command: Command,
        /// What the person may do.
        may: Permissions,
        /// Waits until it is accepted, instead of giving up at a refusal.
        insists: bool,
    },
    /// Works in this worktree and commits nothing; needs one that is there and owned.
    Write(u8),
    /// Puts a folder of its own at this path, if nothing is there.
    Put(u8),
    /// Looks at the path of this attempt and asks to undo it, with the maker's token that it was
    /// begun with, whatever became of it meanwhile.
    Undo(u8),
}

/// Somebody with a list of things to do.
#[derive(Clone, Debug)]
pub struct Person {
    /// The beginning of the sentences.
    pub who: &'static str,
    /// What to do, in order. After a refusal the rest is left out.
    pub acts: Vec<Act>,
    /// An open end: the person may stop at any time, so that the rest need not happen. Rest is
    /// possible anyway; this is for goals that wait for a person.
    pub open: bool,
}

impl Person {
    /// Asks for these, one after the other, giving up at a refusal.
    pub fn asks(who: &'static str, commands: Vec<(&'static str, Command)>) -> Person {
        let acts = commands
            .into_iter()
            .map(|(says, command)| Act::Ask {
                says,
                command,
                may: Permissions::ALL,
                insists: false,
            })
            .collect();
        Person { who, acts, open: false }
    }
}

/// The stamp of what somebody else puts at path `n`.
fn foreign(n: u8) -> u8 {
    0x80 + n
}

fn put(n: u8, world: &World, steps: &mut Steps<'_, u8>, next: u8) {
    if world.disk.at(path(n)).is_some() {
        return;
    }
    let says = format_args!("puts a folder of its own at {}", said(path(n).0));
    steps.outside(says, |w| {
        w.disk.worktrees.push(Physical {
            identity: stamp(foreign(n)),
            root: root(0),
            path: path(n),
            made_by: None,
            place: Place::AtHome,
            unsaved: Unsaved::TRACKED,
            salvaged: Unsaved::NONE,
            moved_by: None,
        });
        Some(next)
    });
}

fn undo(n: u8, world: &World, steps: &mut Steps<'_, u8>, next: u8) {
    let (removal, removal_token) = Hands::next_removal(world);
    let looked = Hands::evidence(world, Some(root(0)), Some(path(n)), Some(stamp(n)));
    // What it found, without a judgement of its own: that is the kernel's.
    let evidence = Evidence { obstacle: Reason::None, ..looked };
    let command = Command::Attempt(AttemptCommand::Compensate {
        attempt: attempt(n),
        token: maker_token(n),
        removal,
        removal_token,
        instance: instance(0),
        evidence,
    });
    let says = format_args!("looks at {} and asks to undo its attempt", said(path(n).0));
    steps.ask(says, Sender::ALL, command, |_, _| Some(next));
}

impl Actor for Person {
    type Local = u8;

    fn name(&self) -> String {
        self.who.to_owned()
    }

    fn begin(&self) -> u8 {
        0
    }

    fn act(&self, at: u8, world: &World, steps: &mut Steps<'_, u8>) {
        let Some(act) = self.acts.get(at as usize) else { return };
        let end = self.acts.len() as u8;
        match act {
            Act::Ask { says, command, may, insists } => {
                let sender = Sender::who_may(*may);
                steps.ask(format_args!("{says}"), sender, *command, |answer, _| match answer {
                    Ok(_) => Some(at + 1),
                    Err(_) => (!*insists).then_some(end),
                });
            }
            Act::Write(n) => {
                let owned = world.view.repos.iter().any(|r| r.worktree_path == Some(path(*n)));
                let Some(tree) = world.disk.at(path(*n)).filter(|_| owned) else { return };
                let identity = tree.identity;
                let says = format_args!("works in {} and commits nothing", said(identity.0));
                steps.outside(says, |w| {
                    if let Some(tree) = w.disk.find_mut(identity) {
                        tree.unsaved = tree.unsaved.with(Unsaved::TRACKED);
                    }
                    Some(at + 1)
                });
            }
            Act::Put(n) => put(*n, world, steps, at + 1),
            Act::Undo(n) => undo(*n, world, steps, at + 1),
        }
        if self.open {
            steps.costing(Fault::Outsider).outside(format_args!("leaves"), |_| Some(end));
        }
    }
}
