//! Random command sequences by two instances in turn, reopening included: after every command the
//! answers, rows and journal are those of the in-memory reference, and every property holds.

use freehold_kernel::{Envelope, View};
use freehold_store::submission::Contents;
use freehold_store::{Clock, Names, Outcome, Submission};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use crate::driver::backend::{Answer, Backend};
use crate::driver::op::{Kind, Op, WEIGHTS};
use crate::driver::{Driver, Failure};
use crate::twin::Twin;

impl Backend for Twin {
    fn submit(&mut self, envelope: &Envelope) -> Answer {
        let submission =
            Submission { envelope: *envelope, names: Names::new(), contents: Contents::new() };
        match Twin::submit(self, &submission) {
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

    fn world(&mut self) -> View {
        self.everything().view
    }

    fn clock(&self) -> Clock {
        self.place.clock.clone()
    }

    fn reopen(&mut self) {
        Twin::reopen(self);
    }

    fn compare(&mut self) -> Result<(), String> {
        Twin::compare(self)
    }
}

/// How many sequences are run, unless `FREEHOLD_CASES` says another number.
const CASES: u64 = 24;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn kind() -> impl Strategy<Value = Kind> {
    let total: u32 = WEIGHTS.iter().map(|(weight, _)| weight).sum();
    (0..total).prop_map(|at| {
        let mut left = at;
        for (weight, kind) in WEIGHTS {
            if left < *weight {
                return *kind;
            }
            left -= weight;
        }
        Kind::Time
    })
}

#[test]
fn random_sequences_give_the_rows_of_the_reference() {
    let op = (kind(), any::<u64>()).prop_map(|(kind, bits)| Op { kind, bits });
    let ops = usize::try_from(number("FREEHOLD_OPS", 60)).unwrap();
    let sequence = proptest::collection::vec(op, 1..=ops);
    let config = Config {
        cases: u32::try_from(number("FREEHOLD_CASES", CASES)).unwrap(),
        failure_persistence: None,
        max_shrink_iters: 512,
        ..Config::default()
    };
    let mut seed = [9u8; 32];
    seed[..8].copy_from_slice(&number("FREEHOLD_SEED", 1).to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let seen = std::cell::RefCell::new(std::collections::BTreeSet::new());
    let result = TestRunner::new_with_rng(config, rng).run(&sequence, |ops| {
        let failed = |failure: Failure| TestCaseError::fail(failure.to_string());
        let mut driver = Driver::new(Twin::new()).map_err(failed)?;
        for op in &ops {
            driver.run(*op).map_err(failed)?;
        }
        driver.backend.undisturbed();
        let accepted = driver.seen.keys().filter(|(_, answer)| *answer == "accepted");
        seen.borrow_mut().extend(accepted.map(|(command, _)| *command));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    if number("FREEHOLD_CASES", CASES) < CASES {
        return;
    }
    // The sequences reach far, else they say little.
    let seen = seen.into_inner();
    for command in
        ["operation.mutate", "cleanup.permit", "removal.record_step", "session.unarchive"]
    {
        assert!(seen.contains(command), "no sequence got to {command}: {seen:?}");
    }
}
