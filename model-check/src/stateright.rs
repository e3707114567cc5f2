//! The same systems on another engine: [stateright](https://www.stateright.rs), which explores
//! them anew with a table, an order and bugs of its own. Both engines must find as many states.
//!
//! What stateright does that one would not expect, and what is done about it here:
//!
//! - `symmetry()` is ignored by its breadth-first search. States are made canonical inside
//!   [`stateright::Model::next_state`], so that both engines see one graph.
//! - `eventually` is unsound on graphs with circles or joins. It is not used: [`crate::explore()`]
//!   looks whether from every state a settled one can be reached.
//! - A trace of its breadth-first search need not be the shortest: what breaks later in one block of
//!   states overwrites what broke first. Traces are told by [`crate::explore()`].
//! - A property's condition is a plain function: what holds of a state is asked of the model.
//! - A search that a time, a depth or a count has cut ends as quietly as one that is through.
//!   [`count`] says which it was.
//! - Its explorer reads files below `./ui`, if there are any, and ends with a panic if its port is
//!   taken or a browser goes away in the middle of an answer. [`serve`] sees to all three.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ::stateright::{Checker as _, HasDiscoveries, Model as _, Path, Property};

use crate::explore::{Model, To};
use crate::trace::{Ending, Story, Trace};

/// A system as stateright takes it.
#[derive(Debug)]
pub struct Bridge<M> {
    /// The system.
    pub system: M,
    /// What it is called.
    pub name: String,
}

/// A state, or the mark that a property is broken.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum At<S> {
    /// A state.
    State(S),
    /// A broken property, by its number; nothing follows.
    Broken(u32),
}

impl<S: fmt::Debug> fmt::Debug for At<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::State(state) => write!(f, "{state:?}"),
            At::Broken(number) => write!(f, "broken property {number}"),
        }
    }
}

/// An edge. It carries where it comes from and leads to, since stateright asks for its words and
/// for its end without a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Act<S> {
    from: S,
    edge: usize,
    to: At<S>,
}

/// What is to hold always.
const AS_PROMISED: &str = "as promised";
/// What is to be reached.
const AT_REST: &str = "at rest";

impl<M: Model> Bridge<M> {
    /// This system, called so.
    pub fn new(system: M, name: impl Into<String>) -> Bridge<M> {
        Bridge { system, name: name.into() }
    }

    fn line(&self, act: &Act<M::State>) -> String {
        let line = self.system.tell(act.from, act.edge).to_string();
        match act.to {
            At::State(_) => line,
            At::Broken(number) => {
                let broken = self.system.broken(number);
                format!("{line}: {} is broken: {}", broken.property, broken.says)
            }
        }
    }
}

/// Whether the circumstance with this number holds: stateright wants a plain function for each.
fn seen<M: Model, const BIT: usize>(bridge: &Bridge<M>, at: &At<M::State>) -> bool {
    match at {
        At::State(state) => bridge.system.seen(*state) & (1 << BIT) != 0,
        At::Broken(_) => false,
    }
}

type Condition<M> = fn(&Bridge<M>, &At<<M as Model>::State>) -> bool;

macro_rules! conditions {
    ($($bit:literal)*) => {
        fn conditions<M: Model>() -> Vec<Condition<M>> {
            vec![$(seen::<M, $bit>),*]
        }
    };
}

conditions! {
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
}

/// The name, for as long as the program runs: stateright wants names that live so long. Each is
/// kept once, so asking often costs nothing.
fn forever(name: String) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name.as_str()) {
        return known;
    }
    let name: &'static str = name.leak();
    names.insert(name);
    name
}

impl<M: Model> ::stateright::Model for Bridge<M> {
    type State = At<M::State>;
    type Action = Act<M::State>;

    fn init_states(&self) -> Vec<Self::State> {
        vec![At::State(self.system.canonical(self.system.initial()))]
    }

    fn actions(&self, at: &Self::State, actions: &mut Vec<Self::Action>) {
        let At::State(from) = *at else { return };
        let mut edges = Vec::new();
        self.system.edges(from, &mut edges);
        actions.extend(edges.into_iter().enumerate().map(|(edge, to)| {
            let to = match to {
                To::State(next) => At::State(next),
                To::Broken(number) => At::Broken(number),
            };
            Act { from, edge, to }
        }));
    }

    fn next_state(&self, _at: &Self::State, act: Self::Action) -> Option<Self::State> {
        Some(match act.to {
            At::State(next) => At::State(self.system.canonical(next)),
            At::Broken(number) => At::Broken(number),
        })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always: Condition<M> = |_, at| matches!(at, At::State(_));
        let rest: Condition<M> = |bridge, at| match at {
            At::State(state) => bridge.system.is_settled(*state),
            At::Broken(_) => false,
        };
        let mut properties = vec![
            Property::<Self>::always(AS_PROMISED, always),
            Property::<Self>::sometimes(AT_REST, rest),
        ];
        let named = self.system.circumstances().into_iter().zip(conditions::<M>());
        properties
            .extend(named.map(|(name, holds)| Property::<Self>::sometimes(forever(name), holds)));
        properties
    }

    fn format_action(&self, act: &Self::Action) -> String {
        self.line(act)
    }

    fn as_svg(&self, path: Path<Self::State, Self::Action>) -> Option<String> {
        let mut trace = Trace::default();
        let mut broken = None;
        for act in path.into_actions() {
            trace.lines.push(self.system.tell(act.from, act.edge));
            if let At::Broken(number) = act.to {
                broken = Some(self.system.broken(number));
            }
        }
        let end = broken.as_ref().map_or(Ending::Open, Ending::Broken);
        Some(Story { system: &self.name, without: &[], trace: &trace, end }.svg())
    }
}

/// In which order stateright goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Breadth-first, on one thread: shortest traces.
    Breadth,
    /// Depth-first.
    Depth,
}

/// Where a count of stateright's stops at the latest.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Time.
    pub time: Duration,
    /// States, those that were met before included; it may stop somewhat later.
    pub states: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { time: Duration::from_secs(600), states: 1 << 40 }
    }
}

/// What stateright found.
#[derive(Clone, Debug)]
pub struct Counted {
    /// Unique states; where a property is broken, its mark is one too.
    pub states: usize,
    /// How long it took.
    pub took: Duration,
    /// Whether it went through to the end, and not only up to a bound or a broken property.
    pub through: bool,
    /// The trace to a broken property.
    pub broken: Option<Trace>,
    /// Circumstances that were never met.
    pub unseen: Vec<String>,
}

/// Explores the system with stateright.
pub fn count<M: Model + Send + Sync + 'static>(system: M, order: Order, bounds: Bounds) -> Counted {
    let began = Instant::now();
    let checker = Bridge::new(system, "")
        .checker()
        // Otherwise it would also end once every property has its example.
        .finish_when(HasDiscoveries::AnyFailures)
        .timeout(bounds.time)
        .target_state_count(bounds.states);
    match order {
        Order::Breadth => found(&checker.spawn_bfs().join(), began, bounds),
        Order::Depth => found(&checker.spawn_dfs().join(), began, bounds),
    }
}

fn found<M: Model + Send + Sync + 'static>(
    checker: &impl ::stateright::Checker<Bridge<M>>,
    began: Instant,
    bounds: Bounds,
) -> Counted {
    let took = began.elapsed();
    let bridge = checker.model();
    let found = checker.discoveries();
    let broken = found.get(AS_PROMISED).map(|path| Trace {
        lines: path
            .clone()
            .into_actions()
            .into_iter()
            .map(|act| bridge.system.tell(act.from, act.edge))
            .collect(),
    });
    Counted {
        states: checker.unique_state_count(),
        took,
        through: broken.is_none() && took < bounds.time && checker.state_count() < bounds.states,
        broken,
        unseen: bridge
            .system
            .circumstances()
            .into_iter()
            .filter(|name| !found.contains_key(name.as_str()))
            .collect(),
    }
}

/// Serves stateright's explorer on this machine alone, until the process is ended: the states one
/// by one, their edges in words, the way as a sequence diagram. Port 0 is any that is free.
/// `ready` is told the address. Whoever asks it to run to completion gets at most so many states.
///
/// The process moves to the root folder: the explorer would serve files of its own names below
/// the folder that it runs in.
///
/// # Errors
/// If the port cannot be had.
pub fn serve<M: Model + Send + Sync + 'static>(
    build: impl Fn() -> Bridge<M>,
    port: u16,
    states: NonZeroUsize,
    ready: impl FnOnce(SocketAddr),
) -> io::Result<()> {
    // Taken and let go again, since the explorer says with a panic that it cannot have it.
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?.local_addr()?;
    std::env::set_current_dir("/")?;
    ready(address);
    loop {
        let checker = build().checker().target_state_count(states.get());
        let serving = thread::spawn(move || {
            checker.serve(address);
        });
        // A browser that went away in the middle of an answer ends the explorer with a panic.
        if serving.join().is_ok() {
            return Ok(());
        }
        // Unless it is the port that is gone, it begins again.
        TcpListener::bind(address)?;
    }
}
