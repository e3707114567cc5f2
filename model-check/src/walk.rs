//! Random walks (model 6 of 09): to great depth, where a system is too large to be exhausted.
//!
//! A walk looks at every edge of every state that it comes through, so it sees what is broken one
//! step beside its way too. It prefers states that no walk has seen. When nothing can move, or the
//! walk is long enough, the next one begins anew. The same seed gives the same walks.
//!
//! A broken property is told by a short trace: circles and detours are taken out of the walk, then
//! whole stretches and single steps, as long as what is left leads to the same broken property.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use hashbrown::{HashMap, HashSet};

use crate::explore::{Cut, Found, Model, To};
use crate::trace::{Line, Trace};

/// How far and how long.
#[derive(Clone, Copy, Debug)]
pub struct Walks {
    /// Where chance begins.
    pub seed: u64,
    /// How many walks.
    pub walks: usize,
    /// Steps of a walk at most.
    pub length: usize,
    /// Time for all of them.
    pub time: Duration,
    /// Bytes of what was seen and of the model's own memory.
    pub bytes: usize,
    /// Time for making a trace shorter.
    pub shrink: Duration,
    /// Takes a state for found in which nothing can move although something is left to converge.
    pub rest: bool,
}

impl Default for Walks {
    fn default() -> Walks {
        Walks {
            seed: 1,
            walks: 1_000,
            length: 1_000,
            time: Duration::from_secs(60),
            bytes: 2 << 30,
            shrink: Duration::from_secs(20),
            rest: true,
        }
    }
}

/// What the walks came to.
#[derive(Clone, Debug)]
pub struct Walked<S> {
    /// Where chance began: the same seed walks the same ways.
    pub seed: u64,
    /// Walks that were begun.
    pub walks: usize,
    /// Steps taken, all walks together.
    pub steps: usize,
    /// Edges looked at.
    pub edges: usize,
    /// Different states visited.
    pub states: usize,
    /// The longest walk.
    pub depth: usize,
    /// Walks that ended at rest, because nothing could move any more.
    pub ends: usize,
    /// How long it took.
    pub took: Duration,
    /// What ended the walks early. Walks prove nothing even if nothing did.
    pub cut: Option<Cut>,
    /// Which circumstances were seen, and in how many states.
    pub seen: Vec<(String, usize)>,
    /// The first broken property, with a shortened trace.
    pub found: Option<Found>,
    /// A state in which nothing can move although something is left to converge, with a shortened
    /// trace.
    pub stuck: Option<Trace>,
    /// The last state of the walk that found either.
    pub last: Option<S>,
    /// Steps of the walk that found either, before it was shortened.
    pub found_after: usize,
}

impl<S> Walked<S> {
    /// Circumstances that no state showed.
    pub fn unseen(&self) -> Vec<&str> {
        self.seen.iter().filter(|(_, n)| *n == 0).map(|(name, _)| name.as_str()).collect()
    }
}

/// Chance: SplitMix64, so that a seed means the same everywhere.
#[derive(Clone, Copy, Debug)]
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below this; 0 of nothing.
    fn below(&mut self, n: usize) -> usize {
        (self.next() % (n as u64).max(1)) as usize
    }
}

/// Walks, until something is broken or a limit is reached.
pub fn walk<M: Model>(model: &M, limits: Walks) -> Walked<M::State> {
    let mut walker = Walker {
        model,
        limits,
        began: Instant::now(),
        chance: Chance(limits.seed),
        visited: HashSet::new(),
        way: Vec::new(),
        out: Vec::new(),
        walked: Walked {
            seed: limits.seed,
            walks: 0,
            steps: 0,
            edges: 0,
            states: 0,
            depth: 0,
            ends: 0,
            took: Duration::ZERO,
            cut: None,
            seen: model.circumstances().into_iter().map(|name| (name, 0)).collect(),
            found: None,
            stuck: None,
            last: None,
            found_after: 0,
        },
    };
    walker.run();
    let mut walked = walker.walked;
    walked.states = walker.visited.len();
    walked.took = walker.began.elapsed();
    walked
}

/// How a walk ended badly.
enum End {
    /// With a broken property of this number.
    Broken(u32),
    /// Where nothing can move, and not at rest.
    Stuck,
}

struct Walker<'m, M: Model> {
    model: &'m M,
    limits: Walks,
    began: Instant,
    chance: Chance,
    visited: HashSet<M::State>,
    /// The states of this walk, in order.
    way: Vec<M::State>,
    out: Vec<To<M::State>>,
    walked: Walked<M::State>,
}

impl<M: Model> Walker<'_, M> {
    fn run(&mut self) {
        while self.walked.walks < self.limits.walks && self.walked.cut.is_none() {
            self.walked.walks += 1;
            let Some(end) = self.one() else { continue };
            self.walked.found_after = self.way.len();
            self.walked.last = self.way.last().copied();
            let until = Instant::now() + self.limits.shrink;
            match end {
                End::Broken(number) => {
                    let property = self.model.broken(number).property;
                    let mut shorten = Shorten::new(self.model, Some(property), until);
                    let way = shorten.shorten(&self.way);
                    self.walked.found = Some(shorten.found(&way));
                }
                End::Stuck => {
                    // Where nothing can move everything was used up: little can be left out.
                    let mut shorten = Shorten::new(self.model, None, until);
                    let way = shorten.shortcuts(&self.way);
                    self.walked.stuck = Some(Trace { lines: shorten.steps(&way) });
                }
            }
            return;
        }
    }

    /// One walk, and how it ended if it ended badly.
    fn one(&mut self) -> Option<End> {
        self.way.clear();
        let mut state = self.model.initial();
        loop {
            self.way.push(state);
            self.visit(state);
            self.out.clear();
            self.model.edges(state, &mut self.out);
            self.walked.edges += self.out.len();
            let broken = self.out.iter().find_map(|to| match to {
                To::Broken(number) => Some(*number),
                To::State(_) => None,
            });
            if let Some(number) = broken {
                return Some(End::Broken(number));
            }
            self.walked.depth = self.walked.depth.max(self.way.len() - 1);
            if self.out.is_empty() {
                let settled = self.model.is_settled(state);
                self.walked.ends += usize::from(settled);
                return (!settled && self.limits.rest).then_some(End::Stuck);
            }
            if self.way.len() > self.limits.length {
                return None;
            }
            self.walked.cut = self.cut();
            if self.walked.cut.is_some() {
                return None;
            }
            state = self.choose()?;
            self.walked.steps += 1;
        }
    }

    /// Mostly somewhere new, where there is such a thing.
    fn choose(&mut self) -> Option<M::State> {
        let all: Vec<M::State> = self.out.iter().filter_map(next).collect();
        let is_new = |s: &&M::State| !self.visited.contains(*s);
        let new: Vec<M::State> = all.iter().filter(is_new).copied().collect();
        let curious = self.chance.below(4) != 0;
        let from = if curious && !new.is_empty() { &new } else { &all };
        from.get(self.chance.below(from.len())).copied()
    }

    fn visit(&mut self, state: M::State) {
        if !self.visited.insert(state) {
            return;
        }
        let mut seen = self.model.seen(state);
        while seen != 0 {
            if let Some((_, n)) = self.walked.seen.get_mut(seen.trailing_zeros() as usize) {
                *n += 1;
            }
            seen &= seen - 1;
        }
    }

    fn cut(&self) -> Option<Cut> {
        if !self.walked.steps.is_multiple_of(64) {
            return None;
        }
        if let Some(why) = self.model.outgrown() {
            return Some(Cut::Model(why));
        }
        let own = self.visited.capacity() * (size_of::<M::State>() + 1);
        if own + self.model.bytes() > self.limits.bytes {
            return Some(Cut::Bytes);
        }
        (self.began.elapsed() > self.limits.time).then_some(Cut::Time)
    }
}

fn next<S: Copy>(to: &To<S>) -> Option<S> {
    match to {
        To::State(next) => Some(*next),
        To::Broken(_) => None,
    }
}

/// Makes a way shorter that ends badly.
struct Shorten<'m, M: Model> {
    model: &'m M,
    /// What is broken at its end; nothing if it ends where nothing can move.
    property: Option<String>,
    until: Instant,
    edges: HashMap<M::State, Vec<To<M::State>>>,
    lines: HashMap<M::State, Vec<Line>>,
}

impl<'m, M: Model> Shorten<'m, M> {
    fn new(model: &'m M, property: Option<String>, until: Instant) -> Self {
        Shorten { model, property, until, edges: HashMap::new(), lines: HashMap::new() }
    }

    fn edges(&mut self, state: M::State) -> Vec<To<M::State>> {
        let model = self.model;
        let edges = self.edges.entry(state).or_insert_with(|| {
            let mut out = Vec::new();
            model.edges(state, &mut out);
            out
        });
        edges.clone()
    }

    /// The edges of a state in words.
    fn lines(&mut self, state: M::State) -> &[Line] {
        let model = self.model;
        self.lines.entry(state).or_insert_with(|| model.tell_all(state))
    }

    /// The edge of the state that breaks the property.
    fn breaks(&mut self, state: M::State) -> Option<(usize, u32)> {
        let edges = self.edges(state);
        let same = |n: u32| Some(self.model.broken(n).property) == self.property;
        edges.iter().enumerate().find_map(|(edge, to)| match to {
            To::Broken(n) if same(*n) => Some((edge, *n)),
            To::Broken(_) | To::State(_) => None,
        })
    }

    /// Whether a way that comes here ends as badly.
    fn is_end(&mut self, state: M::State) -> bool {
        match self.property {
            Some(_) => self.breaks(state).is_some(),
            None => self.edges(state).is_empty() && !self.model.is_settled(state),
        }
    }

    fn shorten(&mut self, way: &[M::State]) -> Vec<M::State> {
        let mut way = self.shortcuts(way);
        let mut steps = self.steps(&way);
        // Whole actors first: most have nothing to do with it.
        let who: BTreeSet<String> = steps.iter().map(|line| line.who.clone()).collect();
        for one in who {
            let fewer: Vec<Line> = steps.iter().filter(|l| l.who != one).cloned().collect();
            if let Some(replayed) = self.replay(&fewer) {
                way = self.shortcuts(&replayed);
                steps = self.steps(&way);
            }
        }
        // Then stretches, ever shorter ones, until nothing can be left out any more.
        let mut stretch = steps.len().div_ceil(2).max(1);
        loop {
            let mut at = 0;
            let mut shorter = false;
            while at < steps.len() && Instant::now() < self.until {
                let mut fewer = steps.clone();
                fewer.drain(at..(at + stretch).min(steps.len()));
                match self.replay(&fewer) {
                    Some(replayed) if replayed.len() < way.len() => {
                        way = self.shortcuts(&replayed);
                        steps = self.steps(&way);
                        shorter = true;
                    }
                    Some(_) | None => at += stretch,
                }
            }
            if Instant::now() >= self.until || (stretch == 1 && !shorter) {
                break;
            }
            stretch = if shorter { stretch } else { stretch.div_ceil(2) }.min(steps.len()).max(1);
        }
        way
    }

    /// Without circles and detours: from each state straight to the last one of the way that one
    /// step reaches.
    fn shortcuts(&mut self, way: &[M::State]) -> Vec<M::State> {
        let at: HashMap<M::State, usize> = way.iter().enumerate().map(|(n, s)| (*s, n)).collect();
        let mut out = Vec::new();
        let mut n = 0;
        while let Some(state) = way.get(n).copied() {
            out.push(state);
            if self.is_end(state) {
                break;
            }
            n = at.get(&state).copied().unwrap_or(n).max(n);
            let edges = self.edges(state);
            let reached = edges.iter().filter_map(next).filter_map(|s| at.get(&s).copied());
            match reached.max().filter(|m| *m > n) {
                Some(m) => n = m,
                None => n += 1,
            }
        }
        out
    }

    /// The steps of a way, in words.
    fn steps(&mut self, way: &[M::State]) -> Vec<Line> {
        let mut out = Vec::new();
        for pair in way.windows(2) {
            let [from, to] = pair else { continue };
            let edge = self.edges(*from).iter().position(|e| *e == To::State(*to));
            if let Some(line) = edge.and_then(|e| self.lines(*from).get(e).cloned()) {
                out.push(line);
            }
        }
        out
    }

    /// Takes these steps, leaving out those that cannot be taken; the way, if it ends the same.
    fn replay(&mut self, steps: &[Line]) -> Option<Vec<M::State>> {
        let mut state = self.model.initial();
        let mut way = vec![state];
        let mut steps = steps.iter();
        loop {
            if self.is_end(state) {
                return Some(way);
            }
            let wanted = steps.next()?;
            let same = |l: &Line| l.who == wanted.who && l.says == wanted.says;
            let edge = self.lines(state).iter().position(same);
            let to = edge.and_then(|e| self.edges(state).get(e).copied());
            if let Some(To::State(to)) = to {
                state = to;
                way.push(state);
            }
        }
    }

    /// The trace of a way that ends where the property can be broken.
    fn found(&mut self, way: &[M::State]) -> Found {
        let mut lines = self.steps(way);
        let last = way.last().copied().unwrap_or_else(|| self.model.initial());
        let (edge, number) = self.breaks(last).unwrap_or((0, 0));
        lines.push(self.model.tell(last, edge));
        Found { broken: self.model.broken(number), trace: Trace { lines } }
    }
}
