//! The systems of model 1, with their counts.

use freehold_kernel::Trigger;

use super::{Borrower, Size, hosts, system};
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
        || system(Trigger::Archive, Size { sessions: 1, unarchive: true, ..LOST }),
        595_034,
    ),
    ci(
        "creation-archive-slow",
        "the same, and a lease lapses although its holder lives",
        || system(Trigger::Archive, Size { slow: 1, ..CALM }),
        31_410,
    ),
    ci(
        "creation-archive-lost",
        "the same, and a reply is lost with its permission",
        || system(Trigger::Archive, LOST),
        91_915,
    ),
    ci(
        "creation-archive-two",
        "two worktrees are made while their task is archived",
        || system(Trigger::Archive, TWO),
        58_107,
    ),
    ci(
        "creation-archive-four",
        "two worktrees and two sessions are made while their task is archived",
        || system(Trigger::Archive, Size { sessions: 2, ..TWO }),
        347_754,
    ),
    ci(
        "creation-archive-borrower",
        "a worktree is made for its owner, which is archived while another task borrows",
        || system(Trigger::Archive, Size { borrower: Borrower::Passes, ..CALM }),
        9_787,
    ),
    ci(
        "creation-archive-writer",
        "somebody works in the worktree while its task is archived",
        || system(Trigger::Archive, Size { writer: true, unarchive: true, ..LOST }),
        185_991,
    ),
    ci(
        "creation-archive-archived-borrower",
        "a borrower's archived session is deleted while the owner is archived",
        || system(Trigger::Archive, Size { borrower: Borrower::Archived, ..LOST }),
        643_405,
    ),
    ci(
        "creation-delete",
        "a worktree is made while its task is deleted",
        || system(Trigger::Delete, Size { sessions: 1, ..LOST }),
        275_138,
    ),
    ci(
        "creation-delete-two",
        "two worktrees are made while their task is deleted",
        || system(Trigger::Delete, TWO),
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
        || system(Trigger::Delete, Size { writer: true, ..LOST }),
        94_665,
    ),
    ci(
        "creation-reset",
        "a worktree is made in an environment that is reset",
        || system(Trigger::EnvironmentReset, Size { sessions: 1, ..LOST }),
        283_031,
    ),
    ci(
        "creation-reset-two",
        "two worktrees are made in an environment that is reset",
        || system(Trigger::EnvironmentReset, TWO),
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
        || system(Trigger::EnvironmentReset, Size { writer: true, ..LOST }),
        101_112,
    ),
    ci(
        "creation-transfer-archive",
        "an environment is given away while a worktree is made in it and the giver is archived",
        || system(Trigger::Archive, Size { transfer: true, ..LOST }),
        196_870,
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
        || system(Trigger::Archive, Size { foreign: true, ..LOST }),
        185_137,
    ),
    ci(
        "creation-again",
        "a worktree is removed, its task unarchived, and the worktree made again",
        || {
            let size = Size { makers: 0, made: true, unarchive: true, again: true, ..LOST };
            system(Trigger::Archive, size)
        },
        32_117,
    ),
    ci(
        "creation-hosts",
        "a worktree is made while its task is archived, and two machines want to undo it",
        hosts,
        91_915,
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
        6_755_879,
    ),
    long(
        "creation-crash-two-delete",
        "two worktrees are made while their task is deleted, and somebody dies",
        || system(Trigger::Delete, Size { crashes: 1, ..TWO }),
        6_755_879,
    ),
];

/// The same with a reply that is lost.
const LOST: Size = Size { lost: 1, ..Size::SMALL };
const CALM: Size = Size { crashes: 0, ..Size::SMALL };
const TWO: Size = Size { makers: 2, ..CALM };
const MINIMUM: Size = Size { sessions: 2, borrower: Borrower::Passes, ..TWO };
