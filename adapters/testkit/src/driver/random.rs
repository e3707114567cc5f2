//! Random sequences: their strategy, their seeds, and how one is run.

use freehold_kernel::Time;
use freehold_store::Clock;
use freehold_store::memory::Memory;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::backend::{Backend, OnStore};
use super::op::{Kind, Op, WEIGHTS};
use super::{Driver, Ran};

/// A number from the environment.
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn kind(weights: &'static [(u32, Kind)]) -> impl Strategy<Value = Kind> {
    let total: u32 = weights.iter().map(|(w, _)| w).sum();
    (0..total).prop_map(move |at| {
        let mut left = at;
        for (weight, kind) in weights {
            if left < *weight {
                return *kind;
            }
            left -= weight;
        }
        Kind::Time
    })
}

/// Sequences of operations.
pub fn sequence() -> impl Strategy<Value = Vec<Op>> {
    sequence_of(WEIGHTS)
}

/// Sequences with these weights.
pub fn sequence_of(weights: &'static [(u32, Kind)]) -> impl Strategy<Value = Vec<Op>> {
    let op = (kind(weights), any::<u64>()).prop_map(|(kind, bits)| Op { kind, bits });
    proptest::collection::vec(op, 1..=number("FREEHOLD_OPS", 60) as usize)
}

/// A runner with a fixed seed; `FREEHOLD_SEED` gives another one.
pub fn runner(cases: u64) -> TestRunner {
    let mut seed = [7u8; 32];
    seed[..8].copy_from_slice(&number("FREEHOLD_SEED", 1).to_le_bytes());
    let config = Config {
        cases: cases as u32,
        failure_persistence: None,
        max_shrink_iters: 4096,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed))
}

/// A fresh store in memory.
pub fn memory() -> OnStore<Memory> {
    let clock = Clock::manual(Time(1_000_000));
    OnStore { store: Memory::new("m", clock.clone()), clock }
}

/// Runs a sequence, then lets everything come to rest.
pub fn run<B: Backend>(driver: &mut Driver<B>, ops: &[Op]) -> Ran {
    for op in ops {
        driver.run(*op)?;
    }
    driver.drain()
}
