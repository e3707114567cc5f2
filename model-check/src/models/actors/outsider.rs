//! The world outside: disks come and go, folders are exchanged, people stand in worktrees, and
//! terms other than leases run out.

use freehold_kernel::properties::{Physical, Place};
use freehold_kernel::{JobState, SalvageState, TrashState, Unsaved};

use super::cleaner::bit;
use crate::models::names::*;
use crate::system::{Actor, Fault, Steps};
use crate::world::{LAPSED, NOW, World};

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
pub enum Deed {
    /// A root's disk is gone.
    Unmount(u8),
    /// It is back.
    Mount(u8),
    /// The worktree at this path is moved elsewhere, and a foreign one stands there.
    Exchange(u8),
    /// The foreign one is taken away, and ours is put back.
    PutBack(u8),
    /// The folder at this path is deleted by hand.
    Delete(u8),
    /// Somebody opens a shell in a worktree.
    Enter,
    /// They leave.
    Leave,
    /// Nobody can say any more whether the runtimes live.
    LoseRuntimes,
    /// They can be looked at again.
    FindRuntimes,
    /// A row of the job can no longer be read.
    Damage,
    /// It can be read again.
    Mend,
}

/// Does these, in this order, whenever.
#[derive(Clone, Debug)]
pub struct Outsider {
    /// What happens.
    pub deeds: Vec<Deed>,
}

impl Outsider {
    fn harms(deed: Deed) -> bool {
        match deed {
            Deed::Unmount(_)
            | Deed::Exchange(_)
            | Deed::Delete(_)
            | Deed::Enter
            | Deed::LoseRuntimes
            | Deed::Damage => true,
            Deed::Mount(_) | Deed::PutBack(_) | Deed::Leave | Deed::FindRuntimes | Deed::Mend => {
                false
            }
        }
    }

    fn says(deed: Deed) -> String {
        match deed {
            Deed::Unmount(n) => format!("unmounts root {n}"),
            Deed::Mount(n) => format!("mounts root {n} again"),
            Deed::Exchange(n) => format!("moves worktree {n} away and puts a foreign one there"),
            Deed::PutBack(n) => format!("puts worktree {n} back where it was"),
            Deed::Delete(n) => format!("deletes worktree {n} by hand"),
            Deed::Enter => "opens a shell in the worktree".to_owned(),
            Deed::Leave => "closes the shell".to_owned(),
            Deed::LoseRuntimes => "cuts the line to the runtimes' machine".to_owned(),
            Deed::FindRuntimes => "mends the line to the runtimes' machine".to_owned(),
            Deed::Damage => "damages a row of the job".to_owned(),
            Deed::Mend => "mends the row".to_owned(),
        }
    }

    fn change(deed: Deed, world: &mut World) -> Option<()> {
        let mounted = world.fact("unmounted");
        match deed {
            Deed::Unmount(n) => world.set_fact("unmounted", mounted | bit(root(n))),
            Deed::Mount(n) => world.set_fact("unmounted", mounted & !bit(root(n))),
            Deed::Exchange(n) => {
                let ours = world.disk.at(path(n))?.identity;
                world.disk.find_mut(ours)?.path = path(n + 8);
                world.disk.worktrees.push(Physical {
                    identity: stamp(n + 8),
                    root: root(0),
                    path: path(n),
                    made_by: None,
                    place: Place::AtHome,
                    unsaved: Unsaved::TRACKED,
                    salvaged: Unsaved::NONE,
                    moved_by: None,
                });
            }
            Deed::PutBack(n) => {
                world.disk.worktrees.retain(|t| t.identity != stamp(n + 8));
                let ours = world.disk.at(path(n + 8))?.identity;
                world.disk.find_mut(ours)?.path = path(n);
            }
            Deed::Delete(n) => {
                let ours = world.disk.at(path(n))?.identity;
                world.disk.worktrees.retain(|t| t.identity != ours);
            }
            Deed::Enter => world.set_fact("in use", 1),
            Deed::Leave => world.set_fact("in use", 0),
            Deed::LoseRuntimes => world.set_fact("runtime out of reach", 1),
            Deed::FindRuntimes => world.set_fact("runtime out of reach", 0),
            Deed::Damage => world.set_fact("damaged", 1),
            Deed::Mend => world.set_fact("damaged", 0),
        }
        Some(())
    }
}

impl Actor for Outsider {
    type Local = u8;

    fn name(&self) -> String {
        "somebody".to_owned()
    }

    fn begin(&self) -> u8 {
        0
    }

    fn act(&self, at: u8, _world: &World, steps: &mut Steps<'_, u8>) {
        let Some(deed) = self.deeds.get(at as usize).copied() else { return };
        let says = Outsider::says(deed);
        steps.costing_if(Outsider::harms(deed), Fault::Outsider).outside(
            format_args!("{says}"),
            |w| {
                Outsider::change(deed, w)?;
                Some(at + 1)
            },
        );
    }
}

/// Lets terms run out that are no leases: the wait for the next try, the retention of trash, the
/// patience with a root that nobody serves.
#[derive(Clone, Copy, Debug)]
pub struct Calendar;

impl Actor for Calendar {
    type Local = ();

    fn name(&self) -> String {
        "time".to_owned()
    }

    fn begin(&self) {}

    fn act(&self, (): (), world: &World, steps: &mut Steps<'_, ()>) {
        for part in world.view.job_roots.iter() {
            let id = part.id.0;
            if part.next_attempt_at.is_some_and(|at| at > NOW) {
                let says = format_args!("passes: the next try of {} is due", said(part.job_id.0));
                steps.outside(says, |w| {
                    w.view.job_roots.edit(id)?.next_attempt_at = Some(LAPSED);
                    w.view.commit();
                    Some(())
                });
            }
            let patience = world.view.settings.id(1).map(|s| s.root_patience);
            let Some((root, patience)) = part.root_id.zip(patience) else { continue };
            let long_ago = freehold_kernel::Time(NOW.0 - patience.0);
            let since = part.next_attempt_at.unwrap_or(part.updated_at);
            let open = match part.state {
                JobState::Pending | JobState::Running | JobState::RetryWait => true,
                JobState::Prepared
                | JobState::Succeeded
                | JobState::Failed
                | JobState::Cancelled => false,
            };
            if open && world.fact("a week") & bit(root) != 0 && since > long_ago {
                let says = format_args!("passes: a week, for {}", said(root.0));
                steps.outside(says, |w| {
                    let part = w.view.job_roots.edit(id)?;
                    part.updated_at = long_ago;
                    part.next_attempt_at = part.next_attempt_at.map(|_| long_ago);
                    w.view.commit();
                    Some(())
                });
            }
        }
        Calendar::salvage(world, steps);
        for trash in world.view.trash.iter() {
            let (id, kept) = (trash.id.0, trash.state == TrashState::Kept);
            if kept && trash.restorable_until.is_some_and(|until| until > NOW) {
                let says = format_args!("passes: the retention of {} ends", said(trash.path.0));
                steps.outside(says, |w| {
                    w.view.trash.edit(id)?.restorable_until = Some(LAPSED);
                    w.view.commit();
                    Some(())
                });
            }
        }
    }
}

impl Calendar {
    /// W-34: the retention that a person consented to ends, for one entry.
    fn salvage(world: &World, steps: &mut Steps<'_, ()>) {
        let Some(settings) = world.view.settings.id(1) else { return };
        let long_ago = freehold_kernel::Time(NOW.0 - settings.salvage_retention.0);
        for entry in world.view.salvage.iter() {
            let ends = settings.salvage_expires(entry.made_at);
            if ends.is_none_or(|ends| ends <= NOW) || entry.state == SalvageState::Expired {
                continue;
            }
            let id = entry.id.0;
            let says = format_args!("passes: the retention of what {} salvaged ends", said(id));
            steps.outside(says, |w| {
                w.view.salvage.edit(id)?.made_at = long_ago;
                w.view.settings.edit(1)?.salvage_consent_at = Some(long_ago);
                w.view.commit();
                Some(())
            });
        }
    }
}
