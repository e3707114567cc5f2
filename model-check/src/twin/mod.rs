//! The kernel's side of the Promela twin (`promela/twin.pml`): the same system, with exactly the
//! twin's variables, decided by the kernel.
//!
//! One owner's task with an environment of one slot and up to three sessions, another task whose
//! session borrows it; a maker, an archive with its job, a worker, recovery, a person who
//! unarchives and one who retries; crashes, and leases that lapse over a dead or a slow owner. A
//! state is one word of 62 bits. No rule is here: what is accepted and what it changes is decided
//! by [`freehold_kernel::decide_with`] on rows that the variables stand for, and remembered by the
//! bits that it can depend on.
//!
//! ```text
//!   word --mask--> key --table--> patches --xor--> next words
//!                   \--not there--> rows --kernel, properties--> rows --> variables --> patches
//! ```
//!
//! Not in the twin: delete, reset, reconcile, transfer, turns and runtimes, unsaved work, a second
//! attempt, operation or worker. The models beside it have them.

mod act;
mod bits;
mod cleanup;
mod codes;
mod encode;
mod faults;
mod memo;
mod names;
mod rows;
pub mod spin;
mod tell;

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use freehold_kernel::{Guard, View, properties};

use self::act::Action;
use self::bits::Vars;
use self::memo::{GROUPS, LOOKS, Table, awake};
use crate::explore::{Broken, Model, To};
use crate::trace::Line;

/// The system, with its memory of decisions.
#[derive(Debug)]
pub struct Twin {
    own: u8,
    crashes: u8,
    slow: u8,
    without: Vec<Guard>,
    beginning: View,
    memory: RwLock<Memory>,
}

/// Where the patches of a group's entry are, or what a look found.
#[derive(Debug)]
struct Memory {
    groups: [Table; GROUPS.len()],
    looks: [Table; 2],
    patches: Vec<u64>,
    actions: Vec<Action>,
    broken: Vec<Broken>,
}

/// A patch that is no patch: the number of a broken property.
const BROKEN: u64 = 1 << 63;
/// In what a look found: there is nothing left to converge.
const RESTS: u64 = 1;

/// The largest counts of crashes and of slow owners that a state can hold.
pub const FAULTS_MAX: u8 = 3;
/// The smallest and the largest number of sessions, the borrower's included.
pub const SESSIONS: std::ops::RangeInclusive<u8> = 2..=4;

impl Twin {
    /// A system of this size.
    ///
    /// # Errors
    /// The range, if the size is out of it.
    pub fn new(sessions: u8, crashes: u8, slow: u8) -> Result<Twin, String> {
        if !SESSIONS.contains(&sessions) || crashes > FAULTS_MAX || slow > FAULTS_MAX {
            let (least, most) = (SESSIONS.start(), SESSIONS.end());
            return Err(format!(
                "the twin has {least} to {most} sessions, at most {FAULTS_MAX} crashes and \
                 {FAULTS_MAX} lapses that hit a living owner"
            ));
        }
        let memory = Memory {
            groups: std::array::from_fn(|_| Table::new()),
            looks: [Table::new(), Table::new()],
            patches: Vec::new(),
            actions: Vec::new(),
            broken: Vec::new(),
        };
        Ok(Twin {
            own: sessions - 1,
            crashes,
            slow,
            without: Vec::new(),
            beginning: names::beginning(),
            memory: RwLock::new(memory),
        })
    }

    /// The same without these guards.
    #[must_use]
    pub fn without(mut self, guards: &[Guard]) -> Twin {
        self.without = guards.to_vec();
        self
    }

    /// The line that the Promela twin prints for this state.
    pub fn line(&self, state: u64) -> String {
        Vars::of(state).to_string()
    }

    /// Whether this system has the action's actor.
    fn has(&self, action: Action) -> bool {
        match action {
            Action::Create(i)
            | Action::BeginClose(i)
            | Action::AbortClose(i)
            | Action::CommitClose(i) => i < self.own,
            _everybodys => true,
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Memory> {
        self.memory.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The patches of a group on a word, with their actions, decided now; self-loops left out.
    fn decide(&self, group: usize, word: u64) -> Vec<(Action, Result<u64, Broken>)> {
        let vars = Vars::of(word);
        let Some(group) = GROUPS.get(group) else { return Vec::new() };
        let mut out = Vec::new();
        for action in group.actions.iter().copied().filter(|a| self.has(*a)) {
            let patch = self.happen(&vars, action).map(|h| h.map_or(0, |h| h.to.word() ^ word));
            match patch {
                Ok(0) => {}
                Ok(patch) if patch & !group.mask != 0 => {
                    let says = format!("{action:?} changes more than its mask says: {vars}");
                    out.push((action, Err(Broken::new("the mask", says))));
                }
                Ok(_) | Err(_) => out.push((action, patch)),
            }
        }
        out
    }

    /// The properties of states on a word; whether there is nothing left to converge.
    fn look(&self, word: u64) -> Result<bool, Broken> {
        let world = rows::decode(&self.beginning, &Vars::of(word));
        properties::check_state(&world.view, &world.disk).map_err(Broken::from)?;
        Ok(properties::check_goals(&world.view).is_ok())
    }

    /// Decides on the masked word and remembers.
    fn learn(&self, group: usize, key: u64) {
        let decided = self.decide(group, key);
        let mut memory = self.memory.write().unwrap_or_else(PoisonError::into_inner);
        let memory = &mut *memory;
        let start = memory.patches.len() as u64;
        for (action, patch) in decided {
            let patch = patch.unwrap_or_else(|broken| BROKEN | memory.number(broken));
            memory.patches.push(patch);
            memory.actions.push(action);
        }
        let entry = start << 32 | memory.patches.len() as u64;
        if let Some(table) = memory.groups.get_mut(group) {
            table.put(key, entry);
        }
    }

    fn learn_look(&self, half: usize, key: u64) {
        let found = self.look(key);
        let mut memory = self.memory.write().unwrap_or_else(PoisonError::into_inner);
        let entry = match found {
            Ok(rests) => u64::from(rests),
            Err(broken) => BROKEN | memory.number(broken),
        };
        if let Some(table) = memory.looks.get_mut(half) {
            table.put(key, entry);
        }
    }

    /// What the halves of the properties of states say.
    fn looks(&self, word: u64) -> [u64; 2] {
        std::array::from_fn(|half| {
            let key = word & LOOKS[half];
            loop {
                if let Some(entry) = self.read().looks[half].get(key) {
                    return entry;
                }
                self.learn_look(half, key);
            }
        })
    }

    /// Whether everything that is remembered about this state is what the kernel and the
    /// properties say of all its rows, and whether its variables stand for just these rows.
    ///
    /// # Errors
    /// The difference.
    pub fn verify(&self, word: u64) -> Result<(), String> {
        let vars = Vars::of(word);
        let rows = rows::decode(&self.beginning, &vars);
        let again = encode::encode(&self.beginning, &rows.view, &vars)?;
        if again != vars || vars.word() != word {
            return Err(format!("{vars} becomes {again}"));
        }
        let [people, things] = self.looks(word);
        let halves = (people | things) & BROKEN == 0;
        let rests = people & things & RESTS == RESTS;
        match self.look(word) {
            Ok(whole) if halves && whole == rests => {}
            Err(_) if !halves => {}
            whole => {
                return Err(format!("{vars} as a whole {whole:?}, in halves {halves} {rests}"));
            }
        }
        for (number, group) in GROUPS.iter().enumerate() {
            let fresh = self.decide(number, word);
            let known = if awake(word) >> number & 1 == 1 {
                self.known(number, word & group.mask)
            } else {
                Vec::new()
            };
            let same = fresh.len() == known.len()
                && fresh.iter().zip(&known).all(|((a, fresh), (b, known))| {
                    a == b && fresh.as_ref().map_or(known & BROKEN != 0, |p| p == known)
                });
            if !same {
                return Err(format!("{vars} afresh {fresh:?}, remembered {known:?}"));
            }
        }
        Ok(())
    }

    fn known(&self, group: usize, key: u64) -> Vec<(Action, u64)> {
        loop {
            let memory = self.read();
            if let Some(entry) = memory.groups.get(group).and_then(|t| t.get(key)) {
                let (start, end) = range(entry);
                let patches = memory.patches[start..end].iter().copied();
                return memory.actions[start..end].iter().copied().zip(patches).collect();
            }
            drop(memory);
            self.learn(group, key);
        }
    }

    /// How many decisions are remembered.
    pub fn decisions(&self) -> usize {
        let memory = self.read();
        memory.groups.iter().chain(&memory.looks).map(Table::len).sum()
    }
}

impl Memory {
    fn number(&mut self, broken: Broken) -> u64 {
        let known = self.broken.iter().position(|b| *b == broken);
        known.unwrap_or_else(|| {
            self.broken.push(broken);
            self.broken.len() - 1
        }) as u64
    }
}

#[inline]
fn range(entry: u64) -> (usize, usize) {
    ((entry >> 32) as usize, (entry & 0xffff_ffff) as usize)
}

impl Model for Twin {
    type State = u64;

    fn initial(&self) -> u64 {
        Vars { crashes: self.crashes, slow: self.slow, ..Vars::default() }.word()
    }

    fn edges(&self, word: u64, out: &mut Vec<To<u64>>) {
        let begun = out.len();
        let mut memory = self.read();
        for (half, mask) in LOOKS.iter().enumerate() {
            let key = word & mask;
            let entry = loop {
                if let Some(entry) = memory.looks[half].get(key) {
                    break entry;
                }
                drop(memory);
                self.learn_look(half, key);
                memory = self.read();
            };
            if entry & BROKEN != 0 {
                out.truncate(begun);
                out.push(To::Broken((entry & !BROKEN) as u32));
                return;
            }
        }
        let mut groups = awake(word);
        while groups != 0 {
            let group = groups.trailing_zeros() as usize;
            groups &= groups - 1;
            let key = word & GROUPS[group].mask;
            let entry = loop {
                if let Some(entry) = memory.groups[group].get(key) {
                    break entry;
                }
                drop(memory);
                self.learn(group, key);
                memory = self.read();
            };
            let (start, end) = range(entry);
            out.extend(memory.patches[start..end].iter().map(|patch| {
                if patch & BROKEN == 0 {
                    To::State(word ^ patch)
                } else {
                    To::Broken((patch & !BROKEN) as u32)
                }
            }));
        }
    }

    fn is_settled(&self, word: u64) -> bool {
        let [people, things] = self.looks(word);
        people & things & RESTS == RESTS && bits::Var::Executor.get(word) == 0
    }

    fn circumstances(&self) -> Vec<String> {
        tell::CIRCUMSTANCES.iter().map(|name| (*name).to_owned()).collect()
    }

    fn seen(&self, word: u64) -> u64 {
        tell::seen(word)
    }

    fn tell(&self, word: u64, edge: usize) -> Line {
        let [people, things] = self.looks(word);
        let mut left = edge;
        if (people | things) & BROKEN == 0 {
            let groups = awake(word);
            for group in (0..GROUPS.len()).filter(|g| groups >> g & 1 == 1) {
                let known = self.known(group, word & GROUPS[group].mask);
                match known.get(left) {
                    Some((action, _)) => return self.line_of(word, *action),
                    None => left -= known.len(),
                }
            }
        }
        tell::nobody()
    }

    fn broken(&self, number: u32) -> Broken {
        let unknown = || Broken::new("", "");
        self.read().broken.get(number as usize).cloned().unwrap_or_else(unknown)
    }

    fn bytes(&self) -> usize {
        let memory = self.read();
        let tables: usize = memory.groups.iter().chain(&memory.looks).map(Table::bytes).sum();
        tables
            + memory.patches.capacity() * size_of::<u64>()
            + memory.actions.capacity() * size_of::<Action>()
    }
}
