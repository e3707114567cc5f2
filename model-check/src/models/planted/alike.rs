//! The wrong designs of making with two makers, or two persons, who change places: a symmetry must
//! not hide them.

use freehold_kernel::Trigger;

use super::making::{Borrows, Cascade, Joins, Planner, Reader, Request, two_tasks};
use crate::models::actors::{Clock, Maker, Operator, Recovery, Worker};
use crate::models::creation::{creating_sessions, interchangeable};
use crate::models::names::session;
use crate::system::System;

/// Two makers of task 0 who change places.
fn two_makers(name: &str) -> System {
    let system = System::new(name, two_tasks())
        .with(Maker { n: 0, environment: 0, instance: 0 })
        .with(Maker { n: 1, environment: 0, instance: 0 });
    interchangeable(system, 0)
}

/// Two actors that were seated last change places with their sessions.
fn last_two(system: System, (a, b): (u8, u8)) -> System {
    let first = system.seated() - 2;
    let swap = [(session(a).0, session(b).0)];
    system.symmetric(&swap, &[(first, first + 1)], &[])
}

/// Each design of [`super::making`], by its name, under symmetry.
pub fn designs() -> Vec<(&'static str, System)> {
    let deletes = || Operator::new(0, Trigger::Delete, 0);
    let archives = || Operator::new(0, Trigger::Archive, 0);
    let inventory = two_makers("inventory-before-barrier").with(Planner);
    let read =
        two_makers("barrier-read-without-lock").with(archives()).with(Reader(0)).with(Reader(1));
    let borrowed =
        two_makers("borrower-checks-own-task").with(archives()).with(Borrows(1)).with(Borrows(2));
    let requests = System::new("compensation-tied-to-request", two_tasks())
        .with(Request(0))
        .with(Request(1))
        .with(archives());
    let dropped = two_makers("attempts-dropped-with-task")
        .with(Cascade)
        .with(Worker { instance: 1 })
        .with(Clock);
    let swept = two_makers("recovery-needs-a-swept-row")
        .with(deletes())
        .with(Joins(Recovery { instance: 1 }))
        .with(Clock);
    vec![
        ("inventory-before-barrier", creating_sessions(inventory, 2, true)),
        ("barrier-read-without-lock", last_two(read, (0, 1))),
        ("borrower-checks-own-task", last_two(borrowed, (1, 2))),
        ("compensation-tied-to-request", creating_sessions(interchangeable(requests, 0), 2, true)),
        ("attempts-dropped-with-task", creating_sessions(dropped, 2, true)),
        ("recovery-needs-a-swept-row", swept),
    ]
}
