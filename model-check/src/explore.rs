//! Breadth-first, exact, with parents: shortest traces, and from every state a way to rest.

use std::collections::HashMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use crate::encode::{Encoder, Numbers};

/// A system to explore.
pub trait Model {
    /// One state of it.
    type State: Clone;
    /// One thing that can happen.
    type Action: Copy + Debug;

    /// Where it begins.
    fn initial(&self) -> Self::State;
    /// What can happen here.
    fn actions(&self, state: &Self::State, out: &mut Vec<Self::Action>);
    /// What comes of it: another state, the same (none), or a broken property.
    ///
    /// # Errors
    /// The broken property with its witness, in words.
    fn next(
        &self,
        state: &Self::State,
        action: Self::Action,
    ) -> Result<Option<Self::State>, String>;
    /// The state's exact key.
    fn encode(&self, state: &Self::State, encoder: &mut Encoder<'_>);
    /// Whether everything has come to rest: nothing is left to converge.
    fn is_settled(&self, state: &Self::State) -> bool;
    /// The action in the words of the domain.
    fn tell(&self, action: Self::Action) -> String;
    /// Names of interesting circumstances that hold here; each must be seen somewhere, or the
    /// exploration proves less than it seems to.
    fn sometimes(&self, state: &Self::State, out: &mut Vec<&'static str>);
}

/// Where a search stops at the latest.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Unique states.
    pub states: usize,
    /// Steps from the beginning.
    pub depth: u32,
    /// Time.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { states: 20_000_000, depth: u32::MAX, time: Duration::from_secs(3_600) }
    }
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
    /// Bytes of all keys.
    pub key_bytes: usize,
    /// Whether every reachable state was visited. A search that was cut is no pass.
    pub exhaustive: bool,
    /// The first broken property with its shortest trace.
    pub broken: Option<(String, Vec<String>)>,
    /// A state from which no settled one can be reached, by its shortest trace.
    pub stuck: Option<Vec<String>>,
    /// Which circumstances were seen, and how often.
    pub seen: Vec<(&'static str, usize)>,
}

impl Explored {
    /// Whether everything that was to be shown is shown.
    pub fn passed(&self) -> bool {
        self.exhaustive && self.broken.is_none() && self.stuck.is_none()
    }
}

/// A visited state: how it was first reached.
struct Visited<A> {
    parent: u32,
    by: Option<A>,
    depth: u32,
}

/// Visits every state, within the limits.
pub fn explore<M: Model>(model: &M, limits: Limits) -> Explored {
    let began = Instant::now();
    let mut search = Search {
        model,
        numbers: Numbers::default(),
        keys: HashMap::new(),
        visited: Vec::new(),
        back: Vec::new(),
        settled: Vec::new(),
        seen: Vec::new(),
        key_bytes: 0,
        edges: 0,
    };
    let broken = search.run(limits, began);
    let exhaustive = matches!(broken, Ended::Exhausted);
    let depth = search.visited.last().map_or(0, |v| v.depth);
    let stuck = exhaustive.then(|| search.stuck()).flatten();
    Explored {
        states: search.visited.len(),
        edges: search.edges,
        depth,
        took: began.elapsed(),
        key_bytes: search.key_bytes,
        exhaustive,
        broken: match broken {
            Ended::Broken(says, trace) => Some((says, trace)),
            Ended::Exhausted | Ended::Cut => None,
        },
        stuck,
        seen: search.seen,
    }
}

enum Ended {
    Exhausted,
    Cut,
    Broken(String, Vec<String>),
}

struct Search<'m, M: Model> {
    model: &'m M,
    numbers: Numbers,
    keys: HashMap<Box<[u8]>, u32>,
    visited: Vec<Visited<M::Action>>,
    /// Edges backwards, for the way to rest.
    back: Vec<(u32, u32)>,
    settled: Vec<u32>,
    seen: Vec<(&'static str, usize)>,
    key_bytes: usize,
    edges: usize,
}

impl<M: Model> Search<'_, M> {
    fn run(&mut self, limits: Limits, began: Instant) -> Ended {
        let mut frontier = vec![(0u32, self.model.initial())];
        self.visit(&frontier[0].1, 0, None, 0);
        let mut actions = Vec::new();
        while !frontier.is_empty() {
            let mut next_frontier = Vec::new();
            for (index, state) in frontier {
                actions.clear();
                self.model.actions(&state, &mut actions);
                for action in actions.iter().copied() {
                    let next = match self.model.next(&state, action) {
                        Ok(next) => next,
                        Err(says) => {
                            let mut trace = self.trace(index);
                            trace.push(self.model.tell(action));
                            return Ended::Broken(says, trace);
                        }
                    };
                    let Some(next) = next else { continue };
                    self.edges += 1;
                    let depth = self.visited[index as usize].depth + 1;
                    let (to, fresh) = self.visit(&next, index, Some(action), depth);
                    self.back.push((to, index));
                    if fresh {
                        if depth > limits.depth || self.visited.len() > limits.states {
                            return Ended::Cut;
                        }
                        next_frontier.push((to, next));
                    }
                }
                if began.elapsed() > limits.time {
                    return Ended::Cut;
                }
            }
            frontier = next_frontier;
        }
        Ended::Exhausted
    }

    /// The state's index, and whether it is new.
    fn visit(
        &mut self,
        state: &M::State,
        parent: u32,
        by: Option<M::Action>,
        depth: u32,
    ) -> (u32, bool) {
        let mut key = Vec::with_capacity(256);
        self.model.encode(state, &mut Encoder::new(&mut self.numbers, &mut key));
        let index = u32::try_from(self.visited.len()).unwrap_or(u32::MAX);
        let key: Box<[u8]> = key.into_boxed_slice();
        if let Some(known) = self.keys.get(&key) {
            return (*known, false);
        }
        self.key_bytes += key.len();
        self.keys.insert(key, index);
        self.visited.push(Visited { parent, by, depth });
        if self.model.is_settled(state) {
            self.settled.push(index);
        }
        let mut names = Vec::new();
        self.model.sometimes(state, &mut names);
        for name in names {
            match self.seen.iter_mut().find(|(n, _)| *n == name) {
                Some((_, count)) => *count += 1,
                None => self.seen.push((name, 1)),
            }
        }
        (index, true)
    }

    fn trace(&self, index: u32) -> Vec<String> {
        let mut told = Vec::new();
        let mut at = index;
        while let Some(action) = self.visited[at as usize].by {
            told.push(self.model.tell(action));
            at = self.visited[at as usize].parent;
        }
        told.reverse();
        told
    }

    /// The first state from which no settled one is reachable: the check that replaces
    /// "eventually", which is wrong on graphs with circles.
    fn stuck(&mut self) -> Option<Vec<String>> {
        let n = self.visited.len();
        // Backward edges, grouped by where they lead from.
        self.back.sort_unstable();
        let mut reaches = vec![false; n];
        let mut todo = self.settled.clone();
        for index in &todo {
            reaches[*index as usize] = true;
        }
        while let Some(index) = todo.pop() {
            let begin = self.back.partition_point(|(to, _)| *to < index);
            for (to, from) in &self.back[begin..] {
                if *to != index {
                    break;
                }
                if !reaches[*from as usize] {
                    reaches[*from as usize] = true;
                    todo.push(*from);
                }
            }
        }
        let stuck = reaches.iter().position(|r| !r)?;
        Some(self.trace(u32::try_from(stuck).unwrap_or(u32::MAX)))
    }
}
