//! Whole-system faults: real instance processes on one store and real git, killed, stopped and cut
//! off at random, round after round. After each round everything is brought to rest by recovery,
//! and then every property holds over rows and disk, and every unsaved marker is still there.
//!
//! The seed is printed. `FREEHOLD_ROUNDS` says how many rounds each store gets, `FREEHOLD_SEED`
//! and `FREEHOLD_ROUND` with which seed and round to begin: what the instances do and which faults
//! come is drawn from those two; when they meet is up to the machine.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod draw;
mod instance;
mod judge;
mod storm;

use std::time::Instant;

use freehold_pg_server::Server;

/// Rounds of a store where nobody asks for more.
const ROUNDS: u64 = 4;

/// Rounds on one ground, before a fresh one is made.
const STAGE: u64 = 5;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text:?}")))
}

fn rounds(name: &str, server: Option<&Server>) {
    let drawn = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = number("FREEHOLD_SEED").unwrap_or(u64::from(drawn.subsec_nanos()));
    let first = number("FREEHOLD_ROUND").unwrap_or(0);
    let end = first + number("FREEHOLD_ROUNDS").unwrap_or(ROUNDS);
    println!("{name}: seed {seed}, rounds {first} to {end}");
    let began = Instant::now();
    let mut arena = storm::Arena::new(server);
    let mut total = storm::Seen::default();
    for round in first..end {
        if round != first && round % STAGE == 0 {
            arena = storm::Arena::new(server);
        }
        let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let seen = storm::round(&arena, server, seed, round);
            let rest = judge::come_to_rest(&arena);
            let over = storm::written_over(&arena, server);
            assert_eq!(over, "", "rows that changed between a decision and its commit (A-12)");
            (seen, rest, judge::judge(&arena))
        }));
        match tried {
            Ok((seen, rest, found)) => {
                println!("{name}: round {round}: {}; at rest after {rest:.1?}", seen.short());
                total.add(&seen);
                // The rows and the disk of a stage are looked at again after each of its rounds:
                // what its last round found counts.
                if (round + 1) % STAGE == 0 || round + 1 == end {
                    println!("{name}: judged: {found}");
                    total.add(&found);
                }
            }
            Err(why) => {
                let kept = arena.keep();
                eprintln!(
                    "{name}: round {round} of seed {seed} failed; again with FREEHOLD_SEED={seed} \
                     FREEHOLD_ROUND={round}; what it left is in {}",
                    kept.display()
                );
                std::panic::resume_unwind(why);
            }
        }
    }
    println!("{name}: {} rounds in {:.0?}: {total}", end - first, began.elapsed());
    // Rounds in which nothing was done, killed or removed would show nothing.
    for what in ["kill -9", "markers", "worktrees there", "worktrees removed"] {
        assert!(total.of(what) > 0, "no {what}: {total}");
    }
}

#[test]
fn k01_three_instances_on_postgresql_are_killed_and_cut_off_at_random() {
    let server = Server::start(&[]).unwrap_or_else(|why| panic!("{why}"));
    rounds("PostgreSQL", Some(&server));
}

#[test]
fn k02_one_instance_on_sqlite_is_killed_at_random() {
    rounds("SQLite", None);
}
