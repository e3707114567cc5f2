//! Orphans and false success (F60): success is said only of what was looked at.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::cell::{Cell, RefCell};
use std::path::Path;

use freehold_git::{GitWorkspaces, PathLock};
use freehold_kernel::*;
use freehold_store::workspaces::{
    Inspection, Plan, Pulse, Restored, RootPlace, StepDone, WorkspaceError, Workspaces,
};
use freehold_store::{NoRuntimes, Operation, Place};
use support::steps::*;
use support::*;

/// An adapter that says of one step that it was done, and does nothing, while `lies` is set.
struct Liar<'a> {
    git: GitWorkspaces,
    about: &'a [RemovalStep],
    lies: &'a Cell<bool>,
    told: RefCell<Vec<RemovalStep>>,
}

impl Workspaces for Liar<'_> {
    type Lock = PathLock;

    fn make_root(&self, root: &RootPlace) -> Result<RootPlace, WorkspaceError> {
        self.git.make_root(root)
    }

    fn check_root(&self, root: &RootPlace) -> Result<(), WorkspaceError> {
        self.git.check_root(root)
    }

    fn plan(&self, place: &Place, start: Option<&str>) -> Result<Plan, WorkspaceError> {
        self.git.plan(place, start)
    }

    fn lock(&self, place: &Place) -> Result<PathLock, WorkspaceError> {
        self.git.lock(place)
    }

    fn make(
        &self,
        lock: &PathLock,
        place: &Place,
        plan: &Plan,
        pulse: Pulse<'_>,
    ) -> Result<(), WorkspaceError> {
        self.git.make(lock, place, plan, pulse)
    }

    fn verify(&self, place: &Place) -> Result<(), WorkspaceError> {
        self.git.verify(place)
    }

    fn inspect(&self, place: &Place, pulse: Pulse<'_>) -> Inspection {
        self.git.inspect(place, pulse)
    }

    fn step(
        &self,
        lock: &PathLock,
        place: &Place,
        warrant: Warrant,
        limit: u64,
        pulse: Pulse<'_>,
    ) -> Result<StepDone, WorkspaceError> {
        let step = warrant.step();
        if self.lies.get() && self.about.contains(&step) {
            self.told.borrow_mut().push(step);
            return Ok(StepDone {
                found_something: true,
                salvage: None,
                trash_path: None,
                admin_path: None,
                branch: None,
            });
        }
        self.git.step(lock, place, warrant, limit, pulse)
    }

    fn restore(
        &self,
        lock: &PathLock,
        place: &Place,
        salvage_ref: &str,
    ) -> Result<Restored, WorkspaceError> {
        self.git.restore(lock, place, salvage_ref)
    }
}

#[test]
fn f60_an_adapter_that_lies_about_a_part_is_not_believed_and_the_record_stays() {
    use RemovalStep as S;
    let lies: [&[RemovalStep]; 5] = [
        &[S::Renamed],
        &[S::Unregistered],
        &[S::Purged],
        &[S::Unregistered, S::Purged],
        &[S::Renamed, S::Compared, S::Unregistered, S::BranchSettled, S::Purged],
    ];
    for about in lies {
        let ground = Ground::new();
        let host = ground.host();
        let (_, made) = settled(&ground, &host);
        std::fs::write(made.place.path.join("story.txt"), "changed\n").unwrap();
        host.delete_task(&ann(), "t", &Operation::new("o")).unwrap();
        let lying = Cell::new(true);
        let liar = ground.host_on(
            Liar { git: GitWorkspaces::new(), about, lies: &lying, told: RefCell::default() },
            Box::new(NoRuntimes),
        );
        liar.tick().unwrap();
        assert!(!liar.workspaces().told.borrow().is_empty(), "{about:?} was not reached");
        let left = left_of(&ground, &made.place.path);
        // A later step may have noticed and made up for it; success is said of the truth only.
        let succeeded = job_states(&host, "o")[0].1 == JobState::Succeeded;
        assert_eq!(succeeded, left.is_empty(), "{about:?}: {left:?}");
        // The record is there to retry from; with the truth it comes to its end. Where every step
        // was a lie, a person has to look, and nothing is lost.
        lying.set(false);
        drop(liar);
        for minutes in [0, 2, 6, 16] {
            ground.lapse(Span::minutes(minutes));
            host.tick().unwrap();
        }
        let succeeded = job_states(&host, "o")[0].1 == JobState::Succeeded;
        let left = left_of(&ground, &made.place.path);
        assert_eq!(succeeded, left.is_empty(), "{about:?}: {left:?}");
        assert_eq!(succeeded, about.len() < 5, "{about:?}");
        assert!(salvage_holds(&ground, "changed\n"), "{about:?}");
    }
}

/// The parts that are still there.
fn left_of(ground: &Ground, path: &Path) -> Vec<String> {
    let mut left = Vec::new();
    if path.exists() {
        left.push("directory".to_owned());
    }
    if ground.registered().iter().any(|p| p == path) {
        left.push("registration".to_owned());
    }
    let trash = |p: &std::path::PathBuf| p.to_string_lossy().contains("trash");
    if contents(&ground.root_path).keys().any(trash) {
        left.push("trash".to_owned());
    }
    left
}
