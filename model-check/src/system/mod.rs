//! A system: a world, those who act in it, and how much may go wrong.
//!
//! ```text
//!   state  = the world's number + what each actor remembers + how many faults are left
//!   edge   = one step of one actor
//! ```
//!
//! An actor's steps depend on the world and on what it remembers, so they are worked out once for
//! each such pair, by the kernel, and looked up after that. The product with the other actors'
//! memories, which makes the many states, costs no decision.

mod actor;
mod renaming;
mod worlds;

use std::any::Any;
use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use freehold_kernel::Guard;
use hashbrown::HashMap;

use actor::Terms;
pub use actor::{Actor, Fault, Steps};
pub use renaming::Renaming;
use worlds::{Known, Worlds};

use crate::explore::{Broken, Model, To};
use crate::trace::{Line, On, Verdict};
use crate::world::World;

/// How many may act in one system.
pub const ACTORS: usize = 12;
const FAULTS: usize = Fault::ALL.len();

/// One state of a system.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    world: u32,
    locals: [u16; ACTORS],
    left: [u8; FAULTS],
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "world {} {:?} {:?}", self.world, self.locals, self.left)
    }
}

/// A property of the host's own, on every world.
pub type Property = fn(&World) -> Result<(), String>;

/// A circumstance of the model.
pub type Circumstance = fn(&World) -> bool;

/// A system to explore.
pub struct System {
    name: String,
    begin: World,
    seats: Vec<Box<dyn Seat>>,
    left: [u8; FAULTS],
    without: Vec<Guard>,
    properties: Vec<(String, Property)>,
    circumstances: Vec<(String, Circumstance)>,
    symmetries: Vec<Symmetry>,
    memo: Mutex<Memo>,
}

impl fmt::Debug for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("System")
            .field("name", &self.name)
            .field("actors", &self.seats.iter().map(|s| s.name()).collect::<Vec<_>>())
            .field("left", &self.left)
            .field("without", &self.without)
            .finish_non_exhaustive()
    }
}

/// Names that change places, and with them actors.
struct Symmetry {
    renaming: Renaming,
    /// Which seat's memory comes to seat n.
    from: [u8; ACTORS],
}

#[derive(Default)]
struct Memo {
    worlds: Worlds,
    /// Seat, memory, world to the first edge and how many.
    steps: HashMap<u64, (u32, u32)>,
    edges: Vec<Edge>,
    /// Symmetry and world to world.
    renamed: HashMap<u64, u32>,
    /// Symmetry, seat and memory to memory.
    remembered: HashMap<u64, u16>,
}

#[derive(Clone, Copy)]
struct Edge {
    world: u32,
    local: u16,
    fault: u8,
    broken: bool,
}

const NO_FAULT: u8 = u8::MAX;

/// What is said of a step that has no words.
fn untold() -> Line {
    Line {
        who: "somebody".to_owned(),
        says: "does something".to_owned(),
        command: "",
        verdict: Verdict::Outside,
        on: On::Itself,
        fault: None,
    }
}

impl System {
    /// A system that begins so.
    pub fn new(name: impl Into<String>, begin: World) -> System {
        System {
            name: name.into(),
            begin,
            seats: Vec::new(),
            left: [0; FAULTS],
            without: Vec::new(),
            properties: Vec::new(),
            circumstances: Vec::new(),
            symmetries: Vec::new(),
            memo: Mutex::default(),
        }
    }

    /// What was worked out so far was so under other terms.
    fn forget(&mut self) {
        self.memo = Mutex::default();
    }

    /// One more who acts.
    ///
    /// # Panics
    /// If there are more than [`ACTORS`].
    #[must_use]
    pub fn with(mut self, actor: impl Actor) -> System {
        self.forget();
        assert!(self.seats.len() < ACTORS, "a system has at most {ACTORS} actors");
        self.seats.push(Box::new(Seated { actor, locals: Mutex::default() }));
        self
    }

    /// How many act so far: the number of the one who is seated next.
    pub fn seated(&self) -> usize {
        self.seats.len()
    }

    /// So many faults of this kind may happen.
    #[must_use]
    pub fn allowing(mut self, n: u8, fault: Fault) -> System {
        self.forget();
        self.left[fault as usize] = n;
        self
    }

    /// With a kernel that lacks these guards.
    #[must_use]
    pub fn without(mut self, guards: &[Guard]) -> System {
        self.forget();
        self.without.extend_from_slice(guards);
        self
    }

    /// With a property of the host's own, beside those of the rules.
    #[must_use]
    pub fn holding(mut self, name: impl Into<String>, property: Property) -> System {
        self.forget();
        self.properties.push((name.into(), property));
        self
    }

    /// With a circumstance that must be met somewhere.
    ///
    /// # Panics
    /// If there are more than 58: each kind of fault that the system allows is one by itself.
    #[must_use]
    pub fn sometimes(mut self, name: impl Into<String>, holds: Circumstance) -> System {
        self.forget();
        let most = 64 - FAULTS;
        assert!(self.circumstances.len() < most, "a system has at most {most} circumstances");
        self.circumstances.push((name.into(), holds));
        self
    }

    /// These ids are interchangeable, together with these actors (by their order of seating).
    /// `also` are ids that stay and that the kernel may derive others from.
    #[must_use]
    pub fn symmetric(
        mut self,
        swaps: &[(u128, u128)],
        actors: &[(usize, usize)],
        also: &[u128],
    ) -> System {
        self.forget();
        let mut from: [u8; ACTORS] = std::array::from_fn(|n| n as u8);
        for (a, b) in actors {
            from.swap(*a, *b);
        }
        self.symmetries.push(Symmetry { renaming: Renaming::new(swaps, also), from });
        self.close_symmetries(also);
        self
    }

    /// Without its symmetries.
    #[must_use]
    pub fn in_full(mut self) -> System {
        self.forget();
        self.symmetries.clear();
        self
    }

    /// All that comes of doing one symmetry after another.
    fn close_symmetries(&mut self, also: &[u128]) {
        let mut at = 0;
        while at < self.symmetries.len() {
            for other in 0..self.symmetries.len() {
                let (a, b) = (&self.symmetries[at], &self.symmetries[other]);
                let renaming = a.renaming.then(&b.renaming, also);
                let from = std::array::from_fn(|n| a.from[b.from[n] as usize]);
                let nothing = Renaming::new(&[], &[]);
                let known = renaming.same(&nothing)
                    || self.symmetries.iter().any(|s| s.renaming.same(&renaming));
                if !known {
                    self.symmetries.push(Symmetry { renaming, from });
                }
            }
            at += 1;
        }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many different worlds were met so far.
    pub fn worlds(&self) -> usize {
        self.memo().worlds.len()
    }

    /// The world of a state.
    pub fn world(&self, state: State) -> World {
        self.memo().worlds.load(state.world)
    }

    fn memo(&self) -> MutexGuard<'_, Memo> {
        self.memo.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, world: &World) -> (Result<(), Broken>, u64) {
        let of_the_host = self.properties.iter().filter_map(|(name, property)| {
            property(world).err().map(|says| Broken::new(name.clone(), says))
        });
        let broken = Broken::first_of(world.broken().chain(of_the_host));
        let mut seen = 0;
        for (bit, (_, circumstance)) in self.circumstances.iter().enumerate() {
            seen |= u64::from(circumstance(world)) << bit;
        }
        (broken.map_or(Ok(()), Err), seen)
    }

    /// The kinds of faults that may happen at all.
    fn allowed(&self) -> impl Iterator<Item = Fault> + '_ {
        Fault::ALL.into_iter().filter(|fault| self.left[*fault as usize] > 0)
    }

    fn terms(&self) -> Terms<'_> {
        Terms { without: &self.without, faults: &self.left }
    }

    /// The edges of one seat, worked out or looked up: where they are in the memo.
    fn steps(
        &self,
        memo: &mut Memo,
        loaded: &mut Option<(World, World)>,
        state: State,
        seat: usize,
    ) -> (u32, u32) {
        let local = state.locals[seat];
        let key = (seat as u64) << 48 | u64::from(local) << 32 | u64::from(state.world);
        if let Some(known) = memo.steps.get(&key) {
            return *known;
        }
        let (world, scratch) = loaded.get_or_insert_with(|| {
            let world = memo.worlds.load(state.world);
            (world.clone(), world)
        });
        let first = memo.edges.len() as u32;
        self.seats[seat].act(local, world, scratch, self.terms(), false, &mut |step| {
            let fault = step.fault.map_or(NO_FAULT, |f| f as u8);
            let edge = match step.to {
                Ok((next, local)) => {
                    let world = memo.worlds.keep(next, &|w| self.look(w));
                    match memo.worlds.known(world).broken {
                        None => Edge { world, local, fault, broken: false },
                        Some(n) => Edge { world: n, local: 0, fault, broken: true },
                    }
                }
                Err(broken) => {
                    let world = memo.worlds.number_of(broken);
                    Edge { world, local: 0, fault, broken: true }
                }
            };
            memo.edges.push(edge);
        });
        let steps = (first, memo.edges.len() as u32 - first);
        memo.steps.insert(key, steps);
        steps
    }

    /// Every edge with its seat and its number among the seat's steps.
    fn each_edge(&self, state: State, mut f: impl FnMut(usize, usize, To<State>)) {
        let mut memo = self.memo();
        let mut loaded = None;
        for seat in 0..self.seats.len() {
            let (first, n) = self.steps(&mut memo, &mut loaded, state, seat);
            for (number, at) in (first as usize..(first + n) as usize).enumerate() {
                let edge = memo.edges[at];
                let mut next = state;
                if edge.fault != NO_FAULT {
                    let left = &mut next.left[edge.fault as usize];
                    if *left == 0 {
                        continue;
                    }
                    *left -= 1;
                }
                if edge.broken {
                    f(seat, number, To::Broken(edge.world));
                    continue;
                }
                if edge.world == state.world && edge.local == state.locals[seat] {
                    continue;
                }
                next.world = edge.world;
                next.locals[seat] = edge.local;
                f(seat, number, To::State(next));
            }
        }
    }

    /// What its symmetries make of a state, one image for each.
    pub fn images(&self, state: State) -> Vec<State> {
        let mut memo = self.memo();
        (0..self.symmetries.len()).map(|n| self.image(&mut memo, n, state)).collect()
    }

    fn image(&self, memo: &mut Memo, number: usize, state: State) -> State {
        let symmetry = &self.symmetries[number];
        let key = (number as u64) << 32 | u64::from(state.world);
        let world = match memo.renamed.get(&key) {
            Some(world) => *world,
            None => {
                let world = memo.worlds.renamed(state.world, number, &symmetry.renaming);
                memo.renamed.insert(key, world);
                world
            }
        };
        let mut locals = state.locals;
        for (seat, local) in locals.iter_mut().enumerate().take(self.seats.len()) {
            let from = symmetry.from[seat] as usize;
            let old = state.locals[from];
            let key = (number as u64) << 32 | (seat as u64) << 16 | u64::from(old);
            *local = match memo.remembered.get(&key) {
                Some(known) => *known,
                None => {
                    let other = self.seats[from].renamed(old, &symmetry.renaming);
                    let number = self.seats[seat].number(&*other);
                    memo.remembered.insert(key, number);
                    number
                }
            };
        }
        State { world, locals, left: state.left }
    }
}

impl Model for System {
    type State = State;

    fn initial(&self) -> State {
        let mut memo = self.memo();
        let world = memo.worlds.keep(&self.begin, &|w| self.look(w));
        let mut locals = [0; ACTORS];
        for (local, seat) in locals.iter_mut().zip(&self.seats) {
            *local = seat.begin();
        }
        State { world, locals, left: self.left }
    }

    fn edges(&self, state: State, out: &mut Vec<To<State>>) {
        self.each_edge(state, |_, _, to| out.push(to));
    }

    fn canonical(&self, state: State) -> State {
        if self.symmetries.is_empty() {
            return state;
        }
        let mut memo = self.memo();
        (0..self.symmetries.len())
            .map(|n| self.image(&mut memo, n, state))
            .chain([state])
            .min_by_key(|s| (s.world, s.locals))
            .unwrap_or(state)
    }

    fn is_settled(&self, state: State) -> bool {
        let Known { rests, .. } = self.memo().worlds.known(state.world);
        rests && self.seats.iter().zip(state.locals).all(|(seat, local)| seat.at_rest(local))
    }

    fn circumstances(&self) -> Vec<String> {
        let named = self.circumstances.iter().map(|(name, _)| name.clone());
        named.chain(self.allowed().map(|fault| fault.happens().to_owned())).collect()
    }

    fn seen(&self, state: State) -> u64 {
        let mut seen = self.memo().worlds.known(state.world).seen;
        for (n, fault) in self.allowed().enumerate() {
            let spent = state.left[fault as usize] < self.left[fault as usize];
            seen |= u64::from(spent) << (self.circumstances.len() + n);
        }
        seen
    }

    fn tell(&self, state: State, edge: usize) -> Line {
        self.tell_all(state).into_iter().nth(edge).unwrap_or_else(untold)
    }

    fn tell_all(&self, state: State) -> Vec<Line> {
        let mut which = Vec::new();
        self.each_edge(state, |seat, number, _| which.push((seat, number)));
        let world = self.world(state);
        let mut scratch = world.clone();
        // Each seat that has an edge acts once.
        let mut lines: Vec<Vec<Option<Line>>> = Vec::new();
        for seat in 0..self.seats.len() {
            let mut of_seat = Vec::new();
            if which.iter().any(|(s, _)| *s == seat) {
                let local = state.locals[seat];
                let keep = &mut |step: Step<'_>| of_seat.push(step.line);
                self.seats[seat].act(local, &world, &mut scratch, self.terms(), true, keep);
            }
            lines.push(of_seat);
        }
        let line = |(seat, number): (usize, usize)| {
            lines.get_mut(seat).and_then(|of_seat| of_seat.get_mut(number)?.take())
        };
        which.into_iter().map(line).map(|line| line.unwrap_or_else(untold)).collect()
    }

    fn broken(&self, number: u32) -> Broken {
        let unknown = || Broken::new("unknown", "");
        self.memo().worlds.broken(number).cloned().unwrap_or_else(unknown)
    }

    fn breaks(&self, state: State) -> Option<u32> {
        self.memo().worlds.known(state.world).broken
    }

    fn outgrown(&self) -> Option<&'static str> {
        let full = self.seats.iter().any(|seat| seat.is_full());
        full.then_some("an actor that remembers more than 65,536 different things")
    }

    fn bytes(&self) -> usize {
        let memo = self.memo();
        memo.worlds.bytes()
            + memo.steps.capacity() * 8 / 7 * 17
            + memo.edges.capacity() * size_of::<Edge>()
            + memo.renamed.capacity() * 8 / 7 * 17
    }
}

/// A step with its actor's memory as a number.
struct Step<'s> {
    to: Result<(&'s World, u16), Broken>,
    fault: Option<Fault>,
    line: Option<Line>,
}

/// An actor whose memory is kept as numbers.
trait Seat: Send + Sync {
    fn name(&self) -> String;
    fn begin(&self) -> u16;
    /// Every step, in a fixed order. `scratch` is a copy of the world, and is one again after it.
    fn act(
        &self,
        local: u16,
        world: &World,
        scratch: &mut World,
        terms: Terms<'_>,
        telling: bool,
        take: &mut dyn FnMut(Step<'_>),
    );
    fn at_rest(&self, local: u16) -> bool;
    /// Whether there were more memories than numbers for them.
    fn is_full(&self) -> bool;
    fn renamed(&self, local: u16, renaming: &Renaming) -> Box<dyn Any>;
    fn number(&self, local: &dyn Any) -> u16;
}

struct Seated<A: Actor> {
    actor: A,
    locals: Mutex<Locals<A::Local>>,
}

struct Locals<L> {
    values: Vec<L>,
    numbers: HashMap<L, u16>,
    /// There were more than numbers.
    full: bool,
}

impl<L> Default for Locals<L> {
    fn default() -> Self {
        Locals { values: Vec::new(), numbers: HashMap::default(), full: false }
    }
}

impl<A: Actor> Seated<A> {
    fn locals(&self) -> MutexGuard<'_, Locals<A::Local>> {
        self.locals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, local: A::Local) -> u16 {
        let mut locals = self.locals();
        if let Some(known) = locals.numbers.get(&local) {
            return *known;
        }
        let Ok(number) = u16::try_from(locals.values.len()) else {
            // The search is cut before it believes this (`Model::outgrown`).
            locals.full = true;
            return 0;
        };
        locals.values.push(local);
        locals.numbers.insert(local, number);
        number
    }

    fn local(&self, number: u16) -> A::Local {
        self.locals().values[number as usize]
    }
}

impl<A: Actor> Seat for Seated<A> {
    fn name(&self) -> String {
        self.actor.name()
    }

    fn begin(&self) -> u16 {
        self.keep(self.actor.begin())
    }

    fn act(
        &self,
        local: u16,
        world: &World,
        scratch: &mut World,
        terms: Terms<'_>,
        telling: bool,
        take: &mut dyn FnMut(Step<'_>),
    ) {
        let mut steps = Steps {
            world,
            scratch,
            terms,
            who: telling.then(|| self.actor.name()),
            fault: None,
            take: &mut |taken: actor::Taken<'_, A::Local>| {
                take(Step {
                    to: taken.to.map(|(world, local)| (world, self.keep(local))),
                    fault: taken.fault,
                    line: taken.line,
                });
            },
        };
        self.actor.act(self.local(local), world, &mut steps);
    }

    fn at_rest(&self, local: u16) -> bool {
        self.actor.at_rest(self.local(local))
    }

    fn is_full(&self) -> bool {
        self.locals().full
    }

    fn renamed(&self, local: u16, renaming: &Renaming) -> Box<dyn Any> {
        Box::new(self.actor.rename(self.local(local), renaming))
    }

    fn number(&self, local: &dyn Any) -> u16 {
        let local = local.downcast_ref::<A::Local>();
        self.keep(*local.expect("actors that change places are of one type"))
    }
}
