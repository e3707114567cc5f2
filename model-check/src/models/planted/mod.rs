//! Plausible designs that are wrong, each caught by the checker. `docs/planted/` tells how.

pub mod alike;
pub mod jobs;
pub mod making;
pub mod operations;
pub mod sessions;

use super::catalogue::Design;

const TABLES: [&[Design]; 4] =
    [making::DESIGNS, operations::DESIGNS, jobs::DESIGNS, sessions::DESIGNS];

const N: usize = {
    let (mut n, mut at) = (0, 0);
    while at < TABLES.len() {
        n += TABLES[at].len();
        at += 1;
    }
    n
};

const ALL: [Design; N] = {
    let mut all = [jobs::DESIGNS[0]; N];
    let (mut n, mut table) = (0, 0);
    while table < TABLES.len() {
        let mut at = 0;
        while at < TABLES[table].len() {
            all[n] = TABLES[table][at];
            n += 1;
            at += 1;
        }
        table += 1;
    }
    all
};

/// The designs.
pub const DESIGNS: &[Design] = &ALL;
