//! Random command sequences on the in-memory store: every property after every command, the naive
//! oracle, refusals that change nothing, footprints that are complete, and goals that are reached.

#![allow(clippy::unwrap_used)]

mod driver;

use driver::backend::{Backend, OnStore};
use driver::op::{Kind, Op, WEIGHTS};
use driver::{Driver, Ran};
use freehold_kernel::Time;
use freehold_store::Clock;
use freehold_store::memory::Memory;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn kind() -> impl Strategy<Value = Kind> {
    let total: u32 = WEIGHTS.iter().map(|(w, _)| w).sum();
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

fn sequence() -> impl Strategy<Value = Vec<Op>> {
    let op = (kind(), any::<u64>()).prop_map(|(kind, bits)| Op { kind, bits });
    proptest::collection::vec(op, 1..=number("FREEHOLD_OPS", 60) as usize)
}

fn runner(cases: u64) -> TestRunner {
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

fn memory() -> OnStore<Memory> {
    let clock = Clock::manual(Time(1_000_000));
    OnStore { store: Memory::new("m", clock.clone()), clock }
}

fn run<B: Backend>(driver: &mut Driver<B>, ops: &[Op]) -> Ran {
    for op in ops {
        driver.run(*op)?;
    }
    Ok(())
}

#[test]
fn every_property_holds_after_every_command() {
    let cases = number("FREEHOLD_CASES", 256);
    let seen = std::cell::RefCell::new(std::collections::BTreeMap::new());
    let result = runner(cases).run(&sequence(), |ops| {
        let failed = |f: driver::Failure| TestCaseError::fail(f.to_string());
        let mut driver = Driver::new(memory()).map_err(failed)?;
        run(&mut driver, &ops).map_err(failed)?;
        for (key, n) in &driver.seen {
            *seen.borrow_mut().entry(*key).or_insert(0u32) += n;
        }
        Ok(())
    });
    if std::env::var("FREEHOLD_SEEN").is_ok() {
        for ((command, answer), n) in seen.borrow().iter() {
            println!("{n:8} {command} {answer}");
        }
    }
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// A hunt: every distinct failure of many sequences, each with its shortest way. Run by hand:
/// `FREEHOLD_CASES=20000 cargo test --release -p freehold-store --test sequences hunt -- --ignored`.
#[test]
#[ignore = "a hunt runs long and is started by hand"]
fn hunt() {
    let mut found = std::collections::BTreeMap::<String, (usize, String, u32)>::new();
    let mut runner = runner(1);
    let strategy = sequence();
    for _ in 0..number("FREEHOLD_CASES", 2000) {
        let ops = strategy.new_tree(&mut runner).unwrap().current();
        let fails = |ops: &[Op]| {
            let tried = std::panic::catch_unwind(|| {
                let mut driver = Driver::new(memory())?;
                run(&mut driver, ops)
            });
            match tried {
                Ok(Ok(())) => None,
                Ok(Err(failure)) => Some((key(&failure.what), failure.to_string())),
                Err(_) => Some(("a panic".to_owned(), "a panic".to_owned())),
            }
        };
        let Some((name, _)) = fails(&ops) else { continue };
        let known = found.get(&name).map(|(n, _, times)| (*n, *times));
        if let Some((length, times)) = known
            && (times > 8 || length < 4)
        {
            found.get_mut(&name).unwrap().2 += 1;
            continue;
        }
        // Shrinks by leaving operations out and drawing smaller numbers.
        let mut best = ops.clone();
        let same = |ops: &[Op]| fails(ops).is_some_and(|(n, _)| n == name);
        let mut at = best.len();
        while at > 0 {
            at -= 1;
            let mut shorter = best.clone();
            shorter.remove(at);
            if same(&shorter) {
                best = shorter;
                at = at.min(best.len());
            }
        }
        for at in 0..best.len() {
            for bits in [0, best[at].bits % 64, best[at].bits % 4096, best[at].bits % (1 << 20)] {
                let mut smaller = best.clone();
                smaller[at].bits = bits;
                if bits < best[at].bits && same(&smaller) {
                    best = smaller;
                    break;
                }
            }
        }
        let text = fails(&best).map(|(_, text)| text).unwrap_or_default();
        let entry = found.entry(name).or_insert((usize::MAX, String::new(), 0));
        entry.2 += 1;
        if best.len() < entry.0 {
            (entry.0, entry.1) = (best.len(), text);
        }
    }
    for (name, (_, text, times)) in &found {
        println!("##### {times} x {name}\n{text}\n");
    }
    assert!(found.is_empty(), "{} distinct failures", found.len());
}

/// The failure without its ids.
fn key(what: &str) -> String {
    what.split(['[', '{']).next().unwrap_or_default().chars().take(90).collect()
}
