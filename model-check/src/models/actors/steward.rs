//! An instance that is asked for one lifecycle operation after another, any on any task. For random
//! walks.

use freehold_kernel::Trigger;

use super::cascader::{Driven, Driving};
use crate::models::names::*;
use crate::system::{Actor, Fault, Steps};
use crate::world::World;

/// Drives operations, one at a time.
#[derive(Clone, Copy, Debug)]
pub struct Steward {
    /// Whose process.
    pub instance: u8,
    /// The number of its first operation.
    pub first: u8,
    /// How many operations.
    pub times: u8,
    /// On tasks below this number.
    pub tasks: u8,
}

/// What a steward remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stewarding {
    /// Operations that were begun.
    begun: u8,
    /// The one that is under way.
    driven: Option<(Driven, Driving)>,
}

/// What ends tasks comes last, or there would soon be nothing to walk in.
const GENTLE: [Trigger; 3] = [Trigger::Archive, Trigger::CascadeArchive, Trigger::EnvironmentReset];
const ALL: [Trigger; 5] = [
    Trigger::Archive,
    Trigger::CascadeArchive,
    Trigger::EnvironmentReset,
    Trigger::Delete,
    Trigger::CascadeDelete,
];

impl Steward {
    fn choose(self, begun: u8, world: &World, steps: &mut Steps<'_, Stewarding>) {
        let left = self.times - begun;
        let triggers = if left > 2 { &GENTLE[..] } else { &ALL[..] };
        let any = (0..self.tasks).filter(|n| world.view.tasks.id(task(*n).0).is_some());
        let mut chosen: Vec<Driven> = Vec::new();
        for n in any {
            chosen.extend(
                triggers.iter().map(|t| Driven::new(self.first + begun, *t, n, self.instance)),
            );
        }
        // An environment has its owner's number, unless it was transferred.
        for driven in &mut chosen {
            let owned = |e: &&freehold_kernel::Environment| e.task_id == task(driven.root);
            let of = world.view.environments.iter().find(owned);
            driven.environment = of.map_or(driven.root, |e| (e.id.0 & 0xff) as u8);
        }
        if left <= 2 && world.view.workspaces.id(workspace(0).0).is_some() {
            let n = self.first + begun;
            chosen.push(Driven::new(n, Trigger::WorkspaceDelete, 0, self.instance));
        }
        for driven in chosen {
            let says = format_args!("is asked to {}", driven.says());
            let driven = Some((driven, driven.first()));
            steps.outside(says, |_| Some(Stewarding { begun: begun + 1, driven }));
        }
    }
}

impl Actor for Steward {
    type Local = Stewarding;

    fn name(&self) -> String {
        format!("instance {} (operating)", letter(self.instance))
    }

    fn begin(&self) -> Stewarding {
        Stewarding::default()
    }

    fn at_rest(&self, local: Stewarding) -> bool {
        local.driven.is_none()
    }

    fn act(&self, local: Stewarding, world: &World, steps: &mut Steps<'_, Stewarding>) {
        let Some((driven, at)) = local.driven else {
            if local.begun < self.times {
                self.choose(local.begun, world, steps);
            }
            return;
        };
        driven.drive(at, world, steps, |at| {
            let driven = (at != Driving::Ended).then_some((driven, at));
            Stewarding { driven, ..local }
        });
        steps.costing(Fault::Crash).outside(format_args!("dies, and starts again"), |w| {
            w.let_go(driven.operation().0);
            Some(Stewarding { driven: None, ..local })
        });
    }
}
