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
        Broken { property: "none".to_owned(), says: String::new() }
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
