//! What the driver drives: a real store, or the kernel with guards taken out.

use freehold_kernel::properties::Granted;
use freehold_kernel::{
    AllBut, Envelope, Event, Guard, Output, Refusal, Reply, SessionEffect, TableId, View, Warrant,
    decide_with,
};
use freehold_store::{Clock, Names, Outcome, Read, Store, Submission};

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// The reply, or the kernel's no.
    pub verdict: Result<Reply, Refusal>,
    /// Whether it is an earlier answer.
    pub replayed: bool,
    /// The permission, if one came with it.
    pub warrant: Option<Warrant>,
    /// What became true.
    pub events: Vec<Event>,
    /// What to do.
    pub effects: Vec<SessionEffect>,
}

impl Answer {
    /// The permission as data.
    pub fn granted(&self) -> Option<Granted> {
        self.warrant.as_ref().map(Granted::from)
    }
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Answer {
        match outcome {
            Outcome::Accepted(accepted) => Answer {
                verdict: Ok(accepted.reply),
                replayed: accepted.replayed,
                warrant: accepted.warrant,
                events: accepted.events,
                effects: accepted.effects,
            },
            Outcome::Refused(refused) => Answer {
                verdict: Err(refused.refusal),
                replayed: refused.replayed,
                warrant: None,
                events: Vec::new(),
                effects: Vec::new(),
            },
        }
    }
}

/// Something that takes commands.
pub trait Backend {
    /// Decides and stores.
    fn submit(&mut self, envelope: &Envelope) -> Answer;
    /// Every row.
    fn world(&mut self) -> View;
    /// The clock that it reads.
    fn clock(&self) -> Clock;
    /// Called between commands now and then: a store may be closed and opened here.
    fn reopen(&mut self) {}
    /// The guards that are taken out.
    fn without(&self) -> &[Guard] {
        &[]
    }
    /// Called after every command, to compare with a twin.
    fn compare(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// A store behind the port.
pub struct OnStore<S> {
    /// The store.
    pub store: S,
    /// Its clock.
    pub clock: Clock,
}

impl<S: Store> Backend for OnStore<S> {
    fn submit(&mut self, envelope: &Envelope) -> Answer {
        let submission = Submission {
            envelope: *envelope,
            names: Names::new(),
            contents: freehold_store::submission::Contents::new(),
        };
        pollster::block_on(self.store.submit(&submission)).expect("the store works").into()
    }

    fn world(&mut self) -> View {
        let reads: Vec<Read> = TableId::ALL.iter().map(|t| Read::all(*t)).collect();
        let rows = pollster::block_on(self.store.read(&reads)).expect("the store can be read");
        assert!(rows.unreadable.is_empty(), "unreadable rows: {:?}", rows.unreadable);
        rows.view
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }
}

/// The kernel alone, with guards taken out, on a world in memory.
pub struct Mutant {
    world: View,
    clock: Clock,
    without: Vec<Guard>,
}

impl Mutant {
    /// An empty world.
    pub fn new(clock: Clock, without: &[Guard]) -> Mutant {
        Mutant { world: View::default(), clock, without: without.to_vec() }
    }
}

impl Backend for Mutant {
    fn submit(&mut self, envelope: &Envelope) -> Answer {
        self.world.now = self.clock.now();
        let mut out = Output::default();
        let verdict = decide_with(&mut self.world, envelope, &mut out, &AllBut(&self.without));
        self.world.commit();
        match verdict {
            Ok(decision) => Answer {
                verdict: Ok(decision.reply),
                replayed: decision.reply == Reply::Replayed,
                warrant: decision.warrant,
                events: out.events,
                effects: out.effects,
            },
            Err(refusal) => Answer {
                verdict: Err(refusal),
                replayed: false,
                warrant: None,
                events: Vec::new(),
                effects: Vec::new(),
            },
        }
    }

    fn world(&mut self) -> View {
        let mut world = self.world.clone();
        world.now = self.clock.now();
        world
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    fn without(&self) -> &[Guard] {
        &self.without
    }
}
