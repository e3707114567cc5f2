//! What the checker must never call a pass: a beginning that is broken, a memo from before a change,
//! an actor that remembers more than there are numbers, a way to rest that nobody looked for.

use std::fmt;

use freehold_model_check::explore::Model;
use freehold_model_check::{Actor, Limits, Steps, System, World, explore};

/// Sets a fact, once, and back, over and over.
#[derive(Debug)]
struct Flip;
impl Actor for Flip {
    type Local = ();
    fn name(&self) -> String {
        "flip".to_owned()
    }
    fn begin(&self) {}
    fn act(&self, (): (), world: &World, steps: &mut Steps<'_, ()>) {
        let is = world.fact("x");
        steps.outside(format_args!("flips"), |w| {
            w.set_fact("x", 1 - is);
            Some(())
        });
    }
}

#[test]
fn a_beginning_that_is_broken_is_reported() {
    let system = System::new("broken at the beginning", World::new())
        .holding("never", |_| Err("it is broken from the first".to_owned()));
    let explored = explore(&system, Limits::default());
    assert!(!explored.passed(), "a broken beginning passes: {explored:?}");
}

#[test]
fn a_property_that_comes_late_is_looked_at() {
    let system = System::new("late", World::new()).with(Flip);
    assert!(explore(&system, Limits::default()).passed());
    let system = system
        .holding("x is 0", |w| if w.fact("x") == 0 { Ok(()) } else { Err("it is 1".to_owned()) });
    let explored = explore(&system, Limits::default());
    assert!(!explored.passed(), "what was looked up is old: {explored:?}");
}

/// Counts to 70,000 (65,536 memories are too many); on the way it leaves some worlds.
struct Counter;
impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("counter")
    }
}
impl Actor for Counter {
    type Local = u32;
    fn name(&self) -> String {
        "counter".to_owned()
    }
    fn begin(&self) -> u32 {
        0
    }
    fn act(&self, at: u32, world: &World, steps: &mut Steps<'_, u32>) {
        let x = world.fact("x");
        if at == 0 && x < 500 {
            steps.outside(format_args!("adds"), |w| {
                w.set_fact("x", x + 1);
                Some(0)
            });
        }
        if x == 0 && at < 70_000 {
            steps.outside(format_args!("counts"), |_| Some(at + 1));
        }
    }
}

#[test]
fn an_actor_that_remembers_too_much_is_no_pass() {
    let system = System::new("counter", World::new()).with(Counter);
    let explored = explore(&system, Limits::default());
    println!("{} states, {:?}", explored.states, explored.cut);
    assert!(system.outgrown().is_some());
    assert!(!explored.passed(), "70,501 states, and it passes with {}", explored.states);
}

#[test]
fn what_was_not_looked_for_is_no_pass() {
    let system = System::new("flip", World::new()).with(Flip);
    let explored = explore(&system, Limits { rest: false, ..Limits::default() });
    assert!(!explored.passed(), "rest was never looked for, and it passes");
}
