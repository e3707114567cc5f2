//! The maker of a worktree (W-1..W-4): records its attempt, takes the path lock, checks that the
//! attempt is still its own, makes the worktree, and asks for the canonical row. One who makes a
//! recorded worktree again (W-7) does the same for a row that is there.

use freehold_kernel::properties::{Hand, Place};
use freehold_kernel::{AttemptCommand, Command, Materialised, TrashState};

use crate::models::begin::put_worktree;
use crate::models::names::*;
use crate::system::{Actor, Fault, Renaming, Steps};
use crate::world::{Sender, World};

/// Makes worktree `n` in an environment, as an instance.
#[derive(Clone, Copy, Debug)]
pub struct Maker {
    /// The number of the attempt, and of the worktree's row, stamp, path and slot.
    pub n: u8,
    /// Where.
    pub environment: u8,
    /// Whose process.
    pub instance: u8,
}

/// Where a maker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Making {
    /// Not begun.
    Idle,
    /// The attempt is recorded.
    Begun,
    /// Under the path lock, the attempt was its own.
    Locked,
    /// The worktree is there.
    Made,
    /// The checkout was verified, and that is recorded.
    Said,
    /// Done, refused or given up: recovery does the rest.
    Ended,
    /// Dead.
    Dead,
    /// Dead, but its git still runs and holds the lock.
    Orphaned,
}

/// What a making is about, once it is begun.
#[derive(Clone, Copy, Debug)]
struct Site {
    /// The number of the attempt.
    n: u8,
    /// The number of the worktree's stamp and path.
    of: u8,
    /// It is brought back out of trash instead of made (W-35).
    out_of_trash: bool,
}

/// The command that begins attempt `n`.
pub fn begin(n: u8, in_environment: u8, by: u8) -> AttemptCommand {
    AttemptCommand::Begin {
        attempt: attempt(n),
        token: maker_token(n),
        environment: environment(in_environment),
        repo: repo(n),
        repository: repository(0),
        slug: slug(n),
        root: root(0),
        path: path(n),
        branch: branch(n),
        worktree: stamp(n),
        branch_existed: false,
        start_commit: commit(0),
        instance: instance(by),
    }
}

/// The command that begins attempt `n` for the row and slot of worktree `of`, on its branch.
pub fn begin_again(n: u8, of: u8, in_environment: u8, by: u8) -> AttemptCommand {
    match begin(n, in_environment, by) {
        AttemptCommand::Begin {
            attempt,
            token,
            environment,
            repository,
            root,
            path,
            worktree,
            start_commit,
            instance,
            ..
        } => AttemptCommand::Begin {
            attempt,
            token,
            environment,
            repo: repo(of),
            repository,
            slug: slug(of),
            root,
            path,
            branch: branch(of),
            worktree,
            branch_existed: true,
            start_commit,
            instance,
        },
        other => other,
    }
}

/// Makes the recorded worktree of row `of` again, as attempt `n` (W-7): once the row says that it
/// is not on the disk.
#[derive(Clone, Copy, Debug)]
pub struct Recreator {
    /// The number of the attempt, and of the new worktree's stamp and path.
    pub n: u8,
    /// The number of the row, its slot and its branch.
    pub of: u8,
    /// Where.
    pub environment: u8,
    /// Whose process.
    pub instance: u8,
}

/// Brings the worktree of row `of` back out of trash, as attempt `n` (W-35), where it is offered.
#[derive(Clone, Copy, Debug)]
pub struct Returner {
    /// The number of the attempt.
    pub n: u8,
    /// The number of the row, and of the worktree's stamp and path.
    pub of: u8,
    /// Where.
    pub environment: u8,
    /// Whose process.
    pub instance: u8,
}

impl Actor for Returner {
    type Local = Making;

    fn name(&self) -> String {
        format!("instance {} (restoring)", letter(self.instance))
    }

    fn begin(&self) -> Making {
        Making::Idle
    }

    fn at_rest(&self, local: Making) -> bool {
        matches!(local, Making::Idle | Making::Ended | Making::Dead)
    }

    fn act(&self, at: Making, world: &World, steps: &mut Steps<'_, Making>) {
        let site = Site { n: self.n, of: self.of, out_of_trash: true };
        if at != Making::Idle {
            return site.go_on(at, (self.environment, self.instance), world, steps);
        }
        let offered = |t: &&freehold_kernel::Trash| {
            t.state == TrashState::Kept && t.worktree_id == Some(stamp(self.of))
        };
        let Some(trash) = world.view.trash.iter().find(offered) else { return };
        let command = AttemptCommand::BeginRestore {
            attempt: attempt(self.n),
            token: maker_token(self.n),
            trash: trash.id,
            environment: environment(self.environment),
            repo: repo(self.of),
            path: path(self.of),
            instance: instance(self.instance),
        };
        site.record(
            format_args!("asks to restore worktree {} out of trash", self.of),
            command,
            steps,
        );
    }
}

impl Recreator {
    fn maker(self) -> Maker {
        Maker { n: self.n, environment: self.environment, instance: self.instance }
    }
}

impl Actor for Recreator {
    type Local = Making;

    fn name(&self) -> String {
        format!("instance {} (making again)", letter(self.instance))
    }

    fn begin(&self) -> Making {
        Making::Idle
    }

    fn at_rest(&self, local: Making) -> bool {
        self.maker().at_rest(local)
    }

    fn act(&self, at: Making, world: &World, steps: &mut Steps<'_, Making>) {
        if at != Making::Idle {
            let by = (self.environment, self.instance);
            return self.maker().site().go_on(at, by, world, steps);
        }
        let absent = world
            .view
            .repos
            .id(repo(self.of).0)
            .is_some_and(|r| r.worktree_id.is_some() && r.materialised == Materialised::No);
        if absent {
            let command = begin_again(self.n, self.of, self.environment, self.instance);
            let says = format_args!("records that it will make worktree {} again", self.of);
            self.maker().site().record(says, command, steps);
        }
    }
}

impl Site {
    fn record(
        self,
        says: std::fmt::Arguments<'_>,
        command: AttemptCommand,
        steps: &mut Steps<'_, Making>,
    ) {
        steps.ask(says, Sender::ALL, Command::Attempt(command), |answer, w| match answer {
            Ok(_) => {
                w.hold(maker_token(self.n).0);
                Some(Making::Begun)
            }
            Err(_) => Some(Making::Ended),
        });
    }

    fn leave(self, world: &mut World, to: Making) -> Option<Making> {
        let token = maker_token(self.n);
        world.disk.let_go(token);
        world.let_go(token.0);
        Some(to)
    }

    fn make(self, world: &mut World) {
        if !self.out_of_trash {
            return put_worktree(world, self.of);
        }
        let free = world.disk.at(path(self.of)).is_none();
        if let Some(tree) = world.disk.find_mut(stamp(self.of))
            && tree.place == Place::InTrash
            && free
        {
            (tree.place, tree.made_by) = (Place::AtHome, Some(attempt(self.n)));
            tree.moved_by = None;
        }
    }
}

impl Actor for Maker {
    type Local = Making;

    fn name(&self) -> String {
        format!("instance {} (making)", letter(self.instance))
    }

    fn begin(&self) -> Making {
        Making::Idle
    }

    fn at_rest(&self, local: Making) -> bool {
        matches!(local, Making::Idle | Making::Ended | Making::Dead)
    }

    fn rename(&self, local: Making, _renaming: &Renaming) -> Making {
        local
    }

    fn act(&self, at: Making, world: &World, steps: &mut Steps<'_, Making>) {
        self.site().go_on(at, (self.environment, self.instance), world, steps);
    }
}

impl Maker {
    fn site(self) -> Site {
        Site { n: self.n, of: self.n, out_of_trash: false }
    }
}

impl Site {
    fn go_on(
        self,
        at: Making,
        (environment, instance): (u8, u8),
        world: &World,
        steps: &mut Steps<'_, Making>,
    ) {
        let (attempt, token) = (attempt(self.n), maker_token(self.n));
        let n = self.of;
        let makes = if self.out_of_trash { "brings back" } else { "makes" };
        let give_up = |steps: &mut Steps<'_, Making>| {
            let command = Command::Attempt(AttemptCommand::GiveUp { attempt, token });
            steps.ask(format_args!("gives up worktree {n}"), Sender::ALL, command, |_, w| {
                self.leave(w, Making::Ended)
            });
        };
        match at {
            Making::Idle => {
                let command = begin(self.n, environment, instance);
                let says = format_args!("records that it will make worktree {n}");
                self.record(says, command, steps);
            }
            Making::Begun => {
                if world.disk.hands.iter().all(|h| h.path != path(n)) {
                    // W-5: the token is checked under the path lock, before anything is made.
                    let command = Command::Attempt(AttemptCommand::Renew { attempt, token });
                    let says =
                        format_args!("locks path {n} and checks that the attempt is its own");
                    steps.ask(says, Sender::ALL, command, |answer, w| match answer {
                        Ok(_) => {
                            w.disk.take(Hand { root: root(0), path: path(n), token });
                            Some(Making::Locked)
                        }
                        Err(_) => self.leave(w, Making::Ended),
                    });
                }
                give_up(steps);
            }
            Making::Locked => {
                steps.outside(format_args!("{makes} worktree {n} on disk"), |w| {
                    self.make(w);
                    Some(Making::Made)
                });
                let says = format_args!("dies; its git goes on and keeps the lock of path {n}");
                steps.costing(Fault::Crash).outside(says, |w| {
                    w.let_go(token.0);
                    Some(Making::Orphaned)
                });
            }
            Making::Orphaned => {
                steps.outside(format_args!("is dead, and its git {makes} worktree {n}"), |w| {
                    self.make(w);
                    self.leave(w, Making::Dead)
                });
            }
            Making::Made => {
                let command = Command::Attempt(AttemptCommand::Materialised { attempt, token });
                let says = format_args!("records that worktree {n} is verified");
                steps.ask(says, Sender::ALL, command, |answer, w| match answer {
                    Ok(_) => Some(Making::Said),
                    Err(_) => self.leave(w, Making::Ended),
                });
                give_up(steps);
            }
            Making::Said => {
                let command = Command::Attempt(AttemptCommand::Persist { attempt, token });
                let says = format_args!("asks for the row of worktree {n}");
                // Owned, or told to undo it, or taken over: recovery does the rest.
                steps.ask(says, Sender::ALL, command, |_, w| self.leave(w, Making::Ended));
            }
            Making::Ended | Making::Dead => {}
        }
        if matches!(at, Making::Begun | Making::Locked | Making::Made | Making::Said) {
            steps
                .costing(Fault::Crash)
                .outside(format_args!("dies"), |w| self.leave(w, Making::Dead));
        }
    }
}
