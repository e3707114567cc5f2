//! Refusals: the kernel said no. A failure of a store or an adapter is never one.

use crate::guard::Guard;
use crate::rows::RowKey;

/// How many rows in the way a refusal names at most; `count` says how many there are.
pub const NAMED_ROWS_MAX: usize = 4;

/// The rows in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct InTheWay {
    named: [Option<RowKey>; NAMED_ROWS_MAX],
    count: u32,
}

impl InTheWay {
    /// No row: the command itself is what is wrong.
    pub const NONE: InTheWay = InTheWay { named: [None; NAMED_ROWS_MAX], count: 0 };

    /// These rows; the first few are named.
    pub fn of(rows: impl Iterator<Item = RowKey>) -> InTheWay {
        let mut way = InTheWay::NONE;
        for row in rows {
            if let Some(free) = way.named.iter_mut().find(|n| n.is_none()) {
                *free = Some(row);
            }
            way.count += 1;
        }
        way
    }

    /// One row.
    pub fn one(row: RowKey) -> InTheWay {
        InTheWay::of(core::iter::once(row))
    }

    /// The named rows.
    pub fn rows(&self) -> impl Iterator<Item = RowKey> + '_ {
        self.named.iter().filter_map(|r| *r)
    }

    /// How many rows are in the way, named or not.
    pub fn count(&self) -> u32 {
        self.count
    }
}

/// A refused command: which guard, and the rows in the way. Rule, sentence and help are the
/// guard's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The first guard, in the promised precedence, that does not hold.
    pub guard: Guard,
    /// What is in the way.
    pub rows: InTheWay,
}
