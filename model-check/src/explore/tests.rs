use super::*;
use crate::trace::{On, Verdict};

/// A counter that may be raised, lowered, and get stuck.
struct Counter {
    trap: bool,
}

impl Model for Counter {
    type State = u8;

    fn initial(&self) -> u8 {
        0
    }

    fn edges(&self, state: u8, out: &mut Vec<To<u8>>) {
        if state < 5 {
            out.push(To::State(state + 1));
        } else if state == 5 {
            out.push(To::State(0));
            if self.trap {
                out.push(To::State(100));
            }
        }
    }

    fn is_settled(&self, state: u8) -> bool {
        state == 3
    }

    fn circumstances(&self) -> Vec<String> {
        vec!["five".to_owned(), "nine".to_owned()]
    }

    fn seen(&self, state: u8) -> u64 {
        u64::from(state == 5)
    }

    fn tell(&self, state: u8, edge: usize) -> Line {
        Line {
            who: "it".to_owned(),
            says: format!("goes from {state} by {edge}"),
            command: "",
            verdict: Verdict::Outside,
            on: On::Itself,
            fault: None,
        }
    }

    fn broken(&self, _number: u32) -> Broken {
        Broken::new("none", "")
    }
}

#[test]
fn a_circle_is_explored_once_and_rests() {
    let explored = explore(&Counter { trap: false }, Limits::default());
    assert_eq!((explored.states, explored.edges, explored.depth), (6, 6, 5));
    assert!(explored.stuck.is_none() && explored.exhaustive());
    assert_eq!(explored.unseen(), ["nine"]);
    assert!(!explored.passed(), "a circumstance was not met");
}

#[test]
fn a_trap_is_stuck_with_its_shortest_trace() {
    let explored = explore(&Counter { trap: true }, Limits::default());
    let stuck = explored.stuck.expect("the trap never rests");
    assert_eq!(stuck.lines.len(), 6);
    assert_eq!(stuck.lines[5].says, "goes from 5 by 1");
}

#[test]
fn a_cut_search_is_no_pass() {
    let limits = Limits { states: 3, ..Limits::default() };
    let explored = explore(&Counter { trap: false }, limits);
    assert_eq!(explored.cut, Some(Cut::States));
    assert!(!explored.exhaustive());
    let limits = Limits { depth: 2, ..Limits::default() };
    assert_eq!(explore(&Counter { trap: false }, limits).cut, Some(Cut::Depth));
}

/// Its first edge breaks one thing, a later one two, of which one is known by then.
struct Breaking;

impl Model for Breaking {
    type State = u8;

    fn initial(&self) -> u8 {
        0
    }

    fn edges(&self, state: u8, out: &mut Vec<To<u8>>) {
        match state {
            0 => out.extend([To::State(1), To::Broken(0)]),
            1 => out.push(To::Broken(1)),
            _other => {}
        }
    }

    fn is_settled(&self, _state: u8) -> bool {
        true
    }

    fn tell(&self, state: u8, edge: usize) -> Line {
        Counter { trap: false }.tell(state, edge)
    }

    fn broken(&self, number: u32) -> Broken {
        let one = |property| Broken::new(property, "");
        if number == 0 {
            return one("P-2");
        }
        let all = ["P-1", "P-2", "P-3", "P-1"].map(one);
        Broken::first_of(all.into_iter()).expect("there are some")
    }
}

#[test]
fn a_step_that_breaks_several_counts_for_each_that_is_new() {
    let found = |all| {
        let explored = explore(&Breaking, Limits { all, ..Limits::default() });
        let short = |f: &Found| (f.broken.property.clone(), f.trace.lines.len());
        explored.broken.iter().map(short).collect::<Vec<_>>()
    };
    assert_eq!(found(false), [("P-2".to_owned(), 1)]);
    let each = [("P-2", 1), ("P-1", 2), ("P-3", 2)];
    assert_eq!(found(true), each.map(|(property, steps)| (property.to_owned(), steps)));
}
