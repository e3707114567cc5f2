//! Which system contains which circumstance that 09 names, exhaustively; and what is only walked.

use std::fmt::Write;

use super::catalogue::{Entry, Scope, systems};
use crate::system::Fault;

/// A circumstance of 09 and where it is met.
#[derive(Clone, Copy, Debug)]
pub struct Met {
    /// Where 09 names it: `all` for the introduction, else the number of the model.
    pub of: &'static str,
    /// In its words.
    pub says: &'static str,
    /// The systems that contain it, by their names, each with the circumstance of its own (a
    /// `sometimes`, or a fault that happens) by which the exploration shows that it was met. A fault
    /// shows less: it is seen once it was chosen anywhere, whatever came of it.
    pub systems: &'static [(&'static str, &'static str)],
    /// Why no system has it; empty if one does.
    pub missing: &'static str,
}

const fn met(
    of: &'static str,
    says: &'static str,
    systems: &'static [(&'static str, &'static str)],
) -> Met {
    Met { of, says, systems, missing: "" }
}

const fn missing(of: &'static str, says: &'static str, why: &'static str) -> Met {
    Met { of, says, systems: &[], missing: why }
}

/// Every circumstance, in the order of 09.
pub const CIRCUMSTANCES: &[Met] = &[
    met(
        "all",
        "every crash point, and restart",
        &[
            ("creation-archive", "somebody dies"),
            ("job-workers", "somebody dies"),
            ("turns-close", "somebody dies"),
            ("cascade-archive", "somebody dies"),
        ],
    ),
    met(
        "all",
        "lost commit replies",
        &[
            ("creation-archive-lost", "a reply is lost"),
            ("job-workers-faults", "a reply is lost"),
            ("turns-reopen", "a reply is lost"),
            ("cascade-archive", "a reply is lost"),
        ],
    ),
    met(
        "all",
        "a second instance",
        &[
            ("creation-archive", "attempt or barrier taken from the dead"),
            ("job-workers", "claimed by the second instance"),
            ("turns-drain", "a turn of each instance"),
            ("cascade-workspace", "the second deletion did it"),
        ],
    ),
    met(
        "all",
        "a tampered path",
        &[("job-outsiders", "exchanged half-way"), ("job-tamperer", "exchanged after the look")],
    ),
    met(
        "all",
        "a foreign worktree at our path",
        &[
            ("creation-foreign", "something else at the path of an attempt that was undone"),
            ("job-outsiders", "something else at the path"),
        ],
    ),
    met(
        "all",
        "an unmounted root",
        &[("job-outsiders", "unmounted"), ("job-hosts-crash", "could not be looked at")],
    ),
    met("all", "an unreadable row", &[("job-unreadable", "parked"), ("job-damaged", "parked")]),
    met(
        "all",
        "a writer that makes a tree dirty",
        &[
            ("creation-archive-writer", "work salvaged"),
            ("creation-delete-writer", "work salvaged"),
            ("job-writer", "salvaged after the look"),
        ],
    ),
    met(
        "all",
        "a removal that stops half-way",
        &[("job-failing", "stopped half-way"), ("job-rearchive", "stopped half-way")],
    ),
    met(
        "all",
        "a child process that outlives its maker",
        &[
            ("creation-archive", "git goes on after its maker's death"),
            ("creation-delete", "git goes on after its maker's death"),
            ("creation-reset", "git goes on after its maker's death"),
        ],
    ),
    missing(
        "all",
        "actors with and without permission",
        "one step, whatever meets it: in the mutant of the guard `permission`, and P-27 is looked \
         at in every step of every system",
    ),
    missing(
        "all",
        "planner and executor with evidence of their own",
        "there is no planner yet (A-34); two looks at one disk, the one of the permission and the \
         one of the step, are in every system with a worker",
    ),
    met(
        "1",
        "a borrower's task",
        &[
            ("creation-archive-borrower", "borrower kept"),
            ("creation-delete-borrower", "borrower kept"),
        ],
    ),
    met(
        "1",
        "two worktrees, two attempts",
        &[
            ("creation-archive-two", "two removals"),
            ("creation-archive-four", "two removals"),
            ("creation-delete-two", "two removals"),
        ],
    ),
    met("1", "archive", &[("creation-archive", "job succeeded")]),
    met("1", "delete", &[("creation-delete", "job succeeded")]),
    met("1", "reset", &[("creation-reset", "job succeeded")]),
    met(
        "1",
        "transfer with an open attempt",
        &[
            ("creation-transfer-archive", "environment given away"),
            ("creation-transfer-delete", "environment given away"),
        ],
    ),
    met(
        "1",
        "deletion of an archived borrower's session",
        &[("creation-archive-archived-borrower", "archived borrower's session deleted")],
    ),
    met(
        "1",
        "recovery",
        &[
            ("creation-archive", "attempt or barrier taken from the dead"),
            ("creation-delete", "attempt or barrier taken from the dead"),
            ("creation-reset", "attempt or barrier taken from the dead"),
        ],
    ),
    met("2", "two tasks", &[("job-tasks-crash", "both removed")]),
    met("2", "two workers on two instances", &[("job-workers", "claimed by the second instance")]),
    met(
        "2",
        "lease expiry",
        &[
            ("job-workers-faults", "a lease lapses under its holder"),
            ("creation-archive-slow", "a lease lapses under its holder"),
        ],
    ),
    met("2", "rescue", &[("job-workers", "claim rescued")]),
    met(
        "2",
        "unarchive",
        &[("job-workers", "job cancelled"), ("creation-archive", "job cancelled by the unarchive")],
    ),
    met("2", "second archive", &[("job-rearchive", "archived again")]),
    met("2", "delete while archiving", &[("job-delete", "job taken over")]),
    met("2", "retry by hand", &[("job-failing", "retried by hand")]),
    met("2", "borrower arriving", &[("job-borrower", "preserved")]),
    met(
        "2",
        "unarchive or takeover during a half step and death of its executor",
        &[
            ("job-rearchive", "removed for the second archive"),
            ("job-workers", "worktree put back"),
        ],
    ),
    met(
        "2",
        "restore against a second archive",
        &[
            ("job-restore", "restored and salvaged again"),
            ("job-trash-restore", "restored, and removed again"),
        ],
    ),
    met(
        "2",
        "a job over two hosts",
        &[("job-hosts", "both removed"), ("job-hosts-crash", "both removed")],
    ),
    met("2", "salvage against a writer", &[("job-writer", "salvaged after the look")]),
    met(
        "2",
        "a runtime that nobody can stop",
        &[
            ("job-runtimes", "runtime never stopped"),
            ("job-reset-runtimes", "its worktree kept for it"),
        ],
    ),
    met("3", "two sessions", &[("turns-large", "two sessions at work")]),
    met(
        "3",
        "three inputs of different origins",
        &[("turns-large", "three inputs reached their outcome")],
    ),
    missing("3", "wakeup", "there is no row of wakeups yet (D-10)"),
    missing("3", "question", "there is no row of questions yet (D-10)"),
    missing("3", "channel redirect", "there is no row of channel bindings yet (D-10)"),
    met("3", "two closers", &[("turns-close", "deleted out of the archive")]),
    met("3", "forced close", &[("turns-force", "parked work dropped")]),
    met("3", "crash in closing", &[("turns-close", "a close whose closer is gone")]),
    met("3", "task archive on top", &[("turns-archive", "cancelled with its task")]),
    missing("4", "all of it", "there are no rows of errors and summaries yet (D-12, E)"),
    met(
        "5",
        "parent, child, grandchild",
        &[("cascade-archive", "every job succeeded"), ("cascade-delete", "every job succeeded")],
    ),
    met(
        "5",
        "creator of a child",
        &[
            ("cascade-archive", "a created child goes too"),
            ("cascade-delete", "a created child goes too"),
            ("cascade-workspace", "a created task goes too"),
        ],
    ),
    met(
        "5",
        "mover of a task",
        &[
            ("cascade-archive", "what was moved in goes too"),
            ("cascade-delete", "what was moved in goes too"),
        ],
    ),
    met(
        "5",
        "failure between barriers",
        &[
            ("cascade-archive", "the disk says no"),
            ("cascade-delete", "the disk says no"),
            ("cascade-workspace", "the disk says no"),
        ],
    ),
    met("5", "unarchive of the cascade", &[("cascade-archive", "the tree is back")]),
    met(
        "5",
        "a deletion of the task in the middle",
        &[("cascade-against-delete", "archived, then deleted")],
    ),
    met(
        "5",
        "workspace delete",
        &[("cascade-workspace", "gone"), ("cascade-empty-workspace", "gone")],
    ),
    met("5", "quick chat expiry", &[("cascade-chat", "expired")]),
    met(
        "5",
        "the jobs behind it, with a worktree",
        &[
            ("cascade-archive-long", "worktree removed"),
            ("cascade-delete-long", "worktree removed"),
            ("cascade-workspace-long", "worktree removed"),
        ],
    ),
];

/// Combinations that no exhausted system has: they are walked, in `everything`.
pub const WALKED: &[&str] = &[
    "turns, closes and inputs while worktrees are made, salvaged and removed",
    "two lifecycle operations at a time, of any kinds, on overlapping trees, one after another",
    "cascades over environments with borrowers inside and outside the tree",
    "transfers and moves of tasks between operations",
    "a reset, then an archive, an unarchive and a deletion of the same task",
    "workspace deletion while workers, executors and recovery have work under way",
    "drains in between, with claims and turns under way",
    "more than two crashes, slow holders and lost replies in one history",
];

fn told(name: &str, known: &[&Entry]) -> String {
    let entry = known.iter().find(|e| e.name == name);
    match entry.map(|e| e.scope) {
        Some(Scope::Ci) => format!("`{name}`"),
        Some(Scope::Long) => format!("`{name}` (long)"),
        None => format!("`{name}` (unknown)"),
    }
}

/// The table, in Markdown.
pub fn table() -> String {
    let known = systems();
    let mut out = String::from(
        "# Circumstances\n\nGenerated; see CONTRIBUTING.md. Each circumstance that \
         `docs/rules/09-properties.md` names, and the systems that contain it in every order and \
         with every fault they allow: exhausted in CI, or, where it says `long`, in the long \
         run. An exploration fails where it never meets what it is there to meet. Where it says \
         `the fault alone`, that is only that a fault of this kind was chosen in some order: that \
         it may be chosen at every step is in the actors, and what becomes of it the properties \
         hold; no state is looked for that only the fault leads to.\n\n| model | circumstance \
         | systems |\n| --- | --- | --- |\n",
    );
    for met in CIRCUMSTANCES {
        let only = |shown: &str| Fault::ALL.iter().any(|fault| fault.happens() == shown);
        let systems = met.systems.iter().map(|(name, shown)| {
            let mark = if only(shown) { " (the fault alone)" } else { "" };
            format!("{}{mark}", told(name, &known))
        });
        let systems: Vec<String> = systems.collect();
        let systems =
            if systems.is_empty() { format!("none: {}", met.missing) } else { systems.join(", ") };
        let _ = writeln!(out, "| {} | {} | {systems} |", met.of, met.says);
    }
    out.push_str("\n## Further systems\n\n| system | says |\n| --- | --- |\n");
    let named = |e: &&&Entry| {
        CIRCUMSTANCES.iter().any(|met| met.systems.iter().any(|(name, _)| *name == e.name))
    };
    for entry in known.iter().filter(|e| !named(e)) {
        let _ = writeln!(out, "| {} | {} |", told(entry.name, &known), entry.says);
    }
    out.push_str(
        "\n## Only walked\n\nCombinations that no exhausted system has; random walks through \
         `everything` (model 6) come through them.\n\n",
    );
    for combination in WALKED {
        let _ = writeln!(out, "- {combination}");
    }
    out
}
