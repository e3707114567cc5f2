//! The systems of model 1, with their counts.

use freehold_kernel::Trigger;

use super::{Borrower, Size, system};
use crate::models::catalogue::{Entry, Scope};

const fn ci(
    name: &'static str,
    says: &'static str,
    build: fn() -> crate::System,
    states: usize,
) -> Entry {
    Entry { name, model: 1, says, scope: Scope::Ci, build, states }
}

const fn long(
    name: &'static str,
    says: &'static str,
    build: fn() -> crate::System,
    states: usize,
) -> Entry {
    Entry { name, model: 1, says, scope: Scope::Long, build, states }
}

/// Systems of this model.
pub const SYSTEMS: &[Entry] = &[
    ci(
        "creation-archive",
        "a worktree is made while its task is archived, and unarchived",
        || system(Trigger::Archive, Size { sessions: 1, unarchive: true, ..Size::SMALL }),
        240_473,
    ),
    ci(
        "creation-archive-slow",
        "the same, and a lease lapses although its holder lives",
        || system(Trigger::Archive, Size { slow: 1, crashes: 0, ..Size::SMALL }),
        31_410,
    ),
    ci(
        "creation-archive-lost",
        "the same, and a reply is lost with its permission",
        || system(Trigger::Archive, Size { lost: 1, ..Size::SMALL }),
        86_025,
    ),
    ci(
        "creation-archive-two",
        "two worktrees are made while their task is archived",
        || system(Trigger::Archive, Size { makers: 2, crashes: 0, ..Size::SMALL }),
        58_107,
    ),
    ci(
        "creation-archive-borrower",
        "a worktree is made for its owner, which is archived while another task borrows",
        || system(Trigger::Archive, Size { borrower: Borrower::Passes, crashes: 0, ..Size::SMALL }),
        9_787,
    ),
    ci(
        "creation-archive-writer",
        "somebody works in the worktree while its task is archived",
        || system(Trigger::Archive, Size { writer: true, unarchive: true, ..Size::SMALL }),
        73_653,
    ),
    ci(
        "creation-archive-archived-borrower",
        "a borrower's archived session is deleted while the owner is archived",
        || system(Trigger::Archive, Size { borrower: Borrower::Archived, ..Size::SMALL }),
        237_048,
    ),
    ci(
        "creation-delete",
        "a worktree is made while its task is deleted",
        || system(Trigger::Delete, Size { sessions: 1, ..Size::SMALL }),
        101_297,
    ),
    ci(
        "creation-delete-two",
        "two worktrees are made while their task is deleted",
        || system(Trigger::Delete, Size { makers: 2, crashes: 0, ..Size::SMALL }),
        58_107,
    ),
    ci(
        "creation-delete-borrower",
        "a worktree is made for its owner, which is deleted while another task borrows",
        || system(Trigger::Delete, Size { borrower: Borrower::Passes, ..Size::SMALL }),
        338_383,
    ),
    ci(
        "creation-delete-writer",
        "somebody works in the worktree while its task is deleted",
        || system(Trigger::Delete, Size { writer: true, ..Size::SMALL }),
        34_853,
    ),
    ci(
        "creation-reset",
        "a worktree is made in an environment that is reset",
        || system(Trigger::EnvironmentReset, Size { sessions: 1, ..Size::SMALL }),
        104_564,
    ),
    ci(
        "creation-reset-two",
        "two worktrees are made in an environment that is reset",
        || system(Trigger::EnvironmentReset, Size { makers: 2, crashes: 0, ..Size::SMALL }),
        83_585,
    ),
    ci(
        "creation-reset-borrower",
        "a worktree is made in an environment that is reset and borrowed",
        || system(Trigger::EnvironmentReset, Size { borrower: Borrower::Passes, ..Size::SMALL }),
        310_455,
    ),
    ci(
        "creation-reset-writer",
        "somebody works in a worktree whose environment is reset",
        || system(Trigger::EnvironmentReset, Size { writer: true, ..Size::SMALL }),
        37_241,
    ),
    ci(
        "creation-transfer-archive",
        "an environment is given away while a worktree is made in it and the giver is archived",
        || system(Trigger::Archive, Size { transfer: true, ..Size::SMALL }),
        73_430,
    ),
    ci(
        "creation-transfer-delete",
        "an environment is given away while a worktree is made in it and the giver is deleted",
        || system(Trigger::Delete, Size { transfer: true, sessions: 1, ..Size::SMALL }),
        219_124,
    ),
    ci(
        "creation-foreign",
        "something else comes to the path of a worktree that is being made",
        || system(Trigger::Archive, Size { foreign: true, ..Size::SMALL }),
        69_035,
    ),
    ci(
        "creation-again",
        "a worktree is removed, its task unarchived, and the worktree made again",
        || {
            let size = Size { makers: 0, made: true, unarchive: true, again: true, ..Size::SMALL };
            system(Trigger::Archive, size)
        },
        10_402,
    ),
    long(
        "creation-minimum-archive",
        "09's size: two worktrees, two own sessions and a borrower's, and the archive",
        || system(Trigger::Archive, MINIMUM),
        1_744_092,
    ),
    long(
        "creation-minimum-delete",
        "09's size: two worktrees, two own sessions and a borrower's, and the deletion",
        || system(Trigger::Delete, MINIMUM),
        2_502_066,
    ),
    long(
        "creation-minimum-reset",
        "09's size: two worktrees, two own sessions and a borrower's, and the reset",
        || system(Trigger::EnvironmentReset, MINIMUM),
        2_496_054,
    ),
    long(
        "creation-minimum-transfer",
        "09's size: two worktrees, two own sessions and a borrower's, a transfer and the archive",
        || system(Trigger::Archive, Size { transfer: true, ..MINIMUM }),
        3_627_144,
    ),
    long(
        "creation-crash-two",
        "two worktrees are made while their task is archived, and somebody dies",
        || system(Trigger::Archive, Size { crashes: 1, ..TWO }),
        0,
    ),
];

const TWO: Size = Size { makers: 2, crashes: 0, ..Size::SMALL };
const MINIMUM: Size = Size { sessions: 2, borrower: Borrower::Passes, ..TWO };
