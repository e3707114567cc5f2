//! Breadth-first, exact, with parents: shortest traces, and from every state a way to rest.
//!
//! A state is a small `Copy` value, kept whole (nothing is hashed away) in the order in which it
//! was met; beside it stands the number of the state that it was first reached from. A trace is
//! found again by asking the model for the edges along the way.

use std::fmt::Debug;
use std::hash::{BuildHasher, Hash};
use std::time::{Duration, Instant};

use freehold_kernel::properties::{Property, Witness};
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::trace::{Line, Trace};

/// A system to explore.
pub trait Model: Sync {
    /// One state of it: small, and compared exactly.
    type State: Copy + Eq + Hash + Debug + Send + Sync + 'static;

    /// Where it begins.
    fn initial(&self) -> Self::State;
    /// Every edge of this state, in a fixed order; those that lead back to it may be left out.
    fn edges(&self, state: Self::State, out: &mut Vec<To<Self::State>>);
    /// The one state that stands for all that differ from this one by the names of
    /// interchangeable parts only.
    fn canonical(&self, state: Self::State) -> Self::State {
        state
    }
    /// Whether everything has come to rest: nothing is left to converge.
    fn is_settled(&self, state: Self::State) -> bool;
    /// Names of the bits of [`Model::seen`]: circumstances that must be met somewhere, or the
    /// exploration proves less than it seems to. At most 64.
    fn circumstances(&self) -> Vec<String> {
        Vec::new()
    }
    /// The circumstances that hold here.
    fn seen(&self, _state: Self::State) -> u64 {
        0
    }
    /// The edge with this number, as [`Model::edges`] gives them, in the words of the domain.
    fn tell(&self, state: Self::State, edge: usize) -> Line;
    /// Every edge of this state in words, in their order; cheaper than one by one.
    fn tell_all(&self, state: Self::State) -> Vec<Line> {
        let mut out = Vec::new();
        self.edges(state, &mut out);
        (0..out.len()).map(|edge| self.tell(state, edge)).collect()
    }
    /// What [`To::Broken`] with this number means.
    fn broken(&self, number: u32) -> Broken;
    /// What a state itself breaks. Edges lead to no broken state; only the first can be one.
    fn breaks(&self, _state: Self::State) -> Option<u32> {
        None
    }
    /// Bytes that the model itself holds.
    fn bytes(&self) -> usize {
        0
    }
    /// Why the model can go no further, if it has outgrown a limit of its own.
    fn outgrown(&self) -> Option<&'static str> {
        None
    }
}

/// Where an edge leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To<S> {
    /// To this state.
    State(S),
    /// To a broken property; not followed.
    Broken(u32),
}

/// A broken property.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Broken {
    /// Its number and name, like `P-3 NoUntrackedWorktree`.
    pub property: String,
    /// The witness, in words.
    pub says: String,
    /// What the same step breaks besides, in the order of the properties; empty in these.
    pub also: Vec<Broken>,
}

impl Broken {
    /// One property alone.
    pub fn new(property: impl Into<String>, says: impl Into<String>) -> Broken {
        Broken { property: property.into(), says: says.into(), also: Vec::new() }
    }

    /// The first of these, with the others beside it; each property once. Nothing is taken from
    /// the others before there is a first.
    pub fn first_of(all: impl Iterator<Item = Broken>) -> Option<Broken> {
        let mut all = all;
        let mut first = all.next()?;
        for other in all {
            first.add(other);
        }
        Some(first)
    }

    /// One more that the same step breaks, unless it is among them.
    pub fn add(&mut self, other: Broken) {
        if self.each().all(|known| known.property != other.property) {
            self.also.push(other);
        }
    }

    /// It and what is broken besides.
    pub fn each(&self) -> impl Iterator<Item = &Broken> {
        std::iter::once(self).chain(&self.also)
    }
}

impl From<(&'static Property, Witness)> for Broken {
    fn from((property, witness): (&'static Property, Witness)) -> Broken {
        Broken::new(format!("{} {}", property.id, property.name), witness.to_string())
    }
}

/// Where a search stops at the latest, and what it looks for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Unique states.
    pub states: usize,
    /// Steps from the beginning.
    pub depth: u32,
    /// Time.
    pub time: Duration,
    /// Bytes of states, tables and the model's own memory.
    pub bytes: usize,
    /// Goes on after a broken property, to find the others too: every property that some step
    /// breaks, each with its shortest trace. What lies behind a broken step is not looked at.
    pub all: bool,
    /// Looks whether from every state a settled one can be reached; costs 4 bytes an edge.
    pub rest: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            states: 300_000_000,
            depth: u32::MAX,
            time: Duration::from_secs(3_600),
            bytes: 8 << 30,
            all: false,
            rest: true,
        }
    }
}

/// Which limit cut a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// [`Limits::states`].
    States,
    /// [`Limits::depth`].
    Depth,
    /// [`Limits::time`].
    Time,
    /// [`Limits::bytes`].
    Bytes,
    /// A limit of the model's own.
    Model(&'static str),
}

impl Cut {
    /// In words.
    pub fn says(self) -> &'static str {
        match self {
            Cut::States => "the limit of states",
            Cut::Depth => "the limit of depth",
            Cut::Time => "the limit of time",
            Cut::Bytes => "the limit of memory",
            Cut::Model(why) => why,
        }
    }
}

/// A broken property with its shortest trace.
#[derive(Clone, Debug)]
pub struct Found {
    /// What broke.
    pub broken: Broken,
    /// How, as short as can be.
    pub trace: Trace,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Explored {
    /// Unique states.
    pub states: usize,
    /// Edges, those to known states included.
    pub edges: usize,
    /// The greatest number of steps from the beginning.
    pub depth: u32,
    /// How long it took.
    pub took: Duration,
    /// Bytes of states, tables and the model's own memory at the end.
    pub bytes: usize,
    /// The limit that cut the search. A search that was cut is no pass.
    pub cut: Option<Cut>,
    /// Broken properties, in the order in which they were met: shortest traces first.
    pub broken: Vec<Found>,
    /// A state from which no settled one can be reached, by its shortest trace.
    pub stuck: Option<Trace>,
    /// Whether the way to rest was looked for ([`Limits::rest`]).
    pub looked_for_rest: bool,
    /// Which circumstances were seen, and in how many states.
    pub seen: Vec<(String, usize)>,
}

impl Explored {
    /// Whether every reachable state was visited.
    pub fn exhaustive(&self) -> bool {
        self.cut.is_none() && self.broken.is_empty()
    }

    /// Circumstances that no state showed.
    pub fn unseen(&self) -> Vec<&str> {
        self.seen.iter().filter(|(_, n)| *n == 0).map(|(name, _)| name.as_str()).collect()
    }

    /// Whether everything that was to be shown is shown: exhaustive, nothing broken, nothing
    /// stuck (which must have been looked for), every circumstance met.
    pub fn passed(&self) -> bool {
        self.exhaustive()
            && self.looked_for_rest
            && self.stuck.is_none()
            && self.unseen().is_empty()
    }
}

/// How far a search is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Unique states.
    pub states: usize,
    /// States that are still to be expanded.
    pub waiting: usize,
    /// Edges.
    pub edges: usize,
    /// Steps from the beginning.
    pub depth: u32,
    /// Bytes.
    pub bytes: usize,
    /// How long it took so far.
    pub took: Duration,
}

/// Visits every state, within the limits.
pub fn explore<M: Model>(model: &M, limits: Limits) -> Explored {
    explore_watched(model, limits, &mut |_| {})
}

/// The same, saying now and then how far it is.
pub fn explore_watched<M: Model>(
    model: &M,
    limits: Limits,
    watch: &mut dyn FnMut(Progress),
) -> Explored {
    let mut search = Search {
        model,
        limits,
        began: Instant::now(),
        hasher: DefaultHashBuilder::default(),
        known: HashTable::new(),
        states: Vec::new(),
        parents: Vec::new(),
        ways: Ways::default(),
        settled: Bits::default(),
        broken: Vec::new(),
        looked_at: Bits::default(),
        seen: [0; 64],
        edges: 0,
        depth: 0,
    };
    let cut = search.run(watch);
    let looked_for_rest = limits.rest && cut.is_none() && search.broken.is_empty();
    let stuck = if looked_for_rest { search.stuck() } else { None };
    let names = model.circumstances();
    Explored {
        states: search.states.len(),
        edges: search.edges,
        depth: search.depth,
        took: search.began.elapsed(),
        bytes: search.bytes(),
        cut,
        broken: search.broken,
        stuck,
        looked_for_rest,
        seen: names.into_iter().zip(search.seen).collect(),
    }
}

/// Where edges lead, state after state in the order of the states.
#[derive(Default)]
struct Ways {
    to: Vec<u32>,
    /// Where the edges of a state end in `to`.
    ends: Vec<u32>,
}

/// A bit for each state.
#[derive(Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn set(&mut self, at: usize) {
        let word = at / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        if let Some(w) = self.0.get_mut(word) {
            *w |= 1 << (at % 64);
        }
    }

    fn has(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|w| w & (1 << (at % 64)) != 0)
    }
}

struct Search<'m, M: Model> {
    model: &'m M,
    limits: Limits,
    began: Instant,
    hasher: DefaultHashBuilder,
    /// Numbers of states, found by the state's hash.
    known: HashTable<u32>,
    states: Vec<M::State>,
    parents: Vec<u32>,
    ways: Ways,
    settled: Bits,
    broken: Vec<Found>,
    /// Numbers of [`To::Broken`] that were met already.
    looked_at: Bits,
    seen: [usize; 64],
    edges: usize,
    depth: u32,
}

impl<M: Model> Search<'_, M> {
    fn run(&mut self, watch: &mut dyn FnMut(Progress)) -> Option<Cut> {
        let first = self.model.canonical(self.model.initial());
        self.visit(first, 0);
        if let Some(number) = self.model.breaks(first) {
            let (broken, trace) = (self.model.broken(number), Trace { lines: Vec::new() });
            self.broken.push(Found { broken, trace });
            return None;
        }
        let (mut out, mut at, mut level_ends) = (Vec::new(), 0, 1);
        while let Some(state) = self.states.get(at).copied() {
            if at == level_ends {
                level_ends = self.states.len();
                self.depth += 1;
                if self.depth > self.limits.depth {
                    return Some(Cut::Depth);
                }
            }
            out.clear();
            self.model.edges(state, &mut out);
            for (edge, to) in out.iter().enumerate() {
                self.edges += 1;
                match *to {
                    To::Broken(number) => {
                        self.found(at, edge, number);
                        if !self.limits.all {
                            return None;
                        }
                    }
                    To::State(next) => {
                        let next = self.model.canonical(next);
                        let number = self.visit(next, at as u32);
                        if self.limits.rest {
                            self.ways.to.push(number);
                        }
                    }
                }
            }
            if self.limits.rest {
                self.ways.ends.push(self.ways.to.len() as u32);
            }
            at += 1;
            if self.states.len() > self.limits.states {
                return Some(Cut::States);
            }
            if at.is_multiple_of(1_024)
                && let Some(cut) = self.look_up_from_work(at, watch)
            {
                return Some(cut);
            }
        }
        self.model.outgrown().map(Cut::Model)
    }

    fn look_up_from_work(&self, at: usize, watch: &mut dyn FnMut(Progress)) -> Option<Cut> {
        let took = self.began.elapsed();
        let bytes = self.bytes();
        if at.is_multiple_of(65_536) {
            watch(Progress {
                states: self.states.len(),
                waiting: self.states.len() - at,
                edges: self.edges,
                depth: self.depth,
                bytes,
                took,
            });
        }
        if let Some(why) = self.model.outgrown() {
            return Some(Cut::Model(why));
        }
        // Numbers of states and of edges have 32 bits.
        let room = u32::MAX as usize - (1 << 24);
        if bytes > self.limits.bytes || self.states.len() > room || self.ways.to.len() > room {
            return Some(Cut::Bytes);
        }
        (took > self.limits.time).then_some(Cut::Time)
    }

    /// The number of the state, which is kept if it is new.
    fn visit(&mut self, state: M::State, parent: u32) -> u32 {
        let hash = self.hasher.hash_one(state);
        let states = &self.states;
        if let Some(known) = self.known.find(hash, |n| states.get(*n as usize) == Some(&state)) {
            return *known;
        }
        let number = self.states.len() as u32;
        let hasher = &self.hasher;
        self.known.insert_unique(hash, number, |n| {
            states.get(*n as usize).map_or(0, |s| hasher.hash_one(s))
        });
        self.states.push(state);
        self.parents.push(parent);
        if self.limits.rest && self.model.is_settled(state) {
            self.settled.set(number as usize);
        }
        let mut seen = self.model.seen(state);
        while seen != 0 {
            self.seen[seen.trailing_zeros() as usize] += 1;
            seen &= seen - 1;
        }
        number
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<M::State>()
            + self.parents.capacity() * 4
            // One byte of control for each slot of the table, besides the number.
            + self.known.capacity() * 8 / 7 * 5
            + (self.ways.to.capacity() + self.ways.ends.capacity()) * 4
            + self.settled.0.capacity() * 8
            + self.model.bytes()
    }

    /// An edge to something broken: with every property that nothing broke before.
    fn found(&mut self, at: usize, edge: usize, number: u32) {
        if self.looked_at.has(number as usize) {
            return;
        }
        self.looked_at.set(number as usize);
        let broken = self.model.broken(number);
        let is_new = |b: &&Broken| self.broken.iter().all(|f| f.broken.property != b.property);
        let wanted = if self.limits.all { usize::MAX } else { 1 };
        let new: Vec<Broken> = broken.each().filter(is_new).take(wanted).cloned().collect();
        let Some(first) = new.first() else { return };
        let (mut trace, last) = self.trace(at);
        // The same edge of the state as it really is, which may bear other names.
        let mut out = Vec::new();
        self.model.edges(last, &mut out);
        let breaks_it = |to: &To<M::State>| match to {
            To::Broken(n) => self.model.broken(*n).each().any(|b| b.property == first.property),
            To::State(_) => false,
        };
        let edge = match out.get(edge) {
            Some(to) if breaks_it(to) => edge,
            Some(_) | None => out.iter().position(breaks_it).unwrap_or(edge),
        };
        trace.lines.push(self.model.tell(last, edge));
        self.broken.extend(new.into_iter().map(|broken| Found { broken, trace: trace.clone() }));
    }

    /// How the state was first reached, and the state under the names that it has on this way.
    fn trace(&self, at: usize) -> (Trace, M::State) {
        let mut way = Vec::new();
        let mut number = at;
        while number != 0 {
            way.push(number);
            number = self.parents.get(number).map_or(0, |p| *p as usize);
        }
        let mut state = self.model.initial();
        let mut lines = Vec::new();
        let mut out = Vec::new();
        for number in way.into_iter().rev() {
            out.clear();
            self.model.edges(state, &mut out);
            let wanted = self.states.get(number).copied();
            let step = out.iter().enumerate().find_map(|(edge, to)| match to {
                To::State(next) if Some(self.model.canonical(*next)) == wanted => {
                    Some((edge, *next))
                }
                To::State(_) | To::Broken(_) => None,
            });
            let Some((edge, next)) = step else { break };
            lines.push(self.model.tell(state, edge));
            state = next;
        }
        (Trace { lines }, state)
    }

    /// The first state from which no settled one is reachable: the check that replaces
    /// "eventually", which is wrong on graphs with circles.
    fn stuck(&self) -> Option<Trace> {
        let n = self.states.len();
        let mut rests = Bits(self.settled.0.clone());
        loop {
            let mut changed = false;
            // Edges mostly lead to later states, so one pass from the end does most of it.
            for at in (0..n).rev().filter(|at| !self.settled.has(*at)) {
                if rests.has(at) {
                    continue;
                }
                let from = if at == 0 { 0 } else { self.ways.ends[at - 1] as usize };
                let to = self.ways.ends[at] as usize;
                if self.ways.to[from..to].iter().any(|t| rests.has(*t as usize)) {
                    rests.set(at);
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        (0..n).find(|at| !rests.has(*at)).map(|at| self.trace(at).0)
    }
}

#[cfg(test)]
mod tests;
