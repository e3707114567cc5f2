//! Which system contains which circumstance that 09 names, exhaustively; and what is only walked.

use std::fmt::Write;

use super::catalogue::{Entry, Scope, systems};

/// A circumstance of 09 and where it is met.
#[derive(Clone, Copy, Debug)]
pub struct Met {
    /// Where 09 names it: `all` for the introduction, else the number of the model.
    pub of: &'static str,
    /// In its words.
    pub says: &'static str,
    /// The systems that contain it, by their names.
    pub systems: &'static [&'static str],
    /// Why no system has it; empty if one does.
    pub missing: &'static str,
}

const fn met(of: &'static str, says: &'static str, systems: &'static [&'static str]) -> Met {
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
        &["creation-archive", "job-workers", "turns-close", "cascade-archive"],
    ),
    met(
        "all",
        "lost commit replies",
        &["creation-archive-lost", "job-workers-faults", "turns-reopen", "cascade-archive"],
    ),
    met(
        "all",
        "a second instance",
        &["creation-archive", "job-workers", "turns-drain", "cascade-workspace"],
    ),
    met("all", "a tampered path", &["job-outsiders", "job-tamperer"]),
    met("all", "a foreign worktree at our path", &["creation-foreign", "job-outsiders"]),
    met("all", "an unmounted root", &["job-outsiders", "job-hosts-crash"]),
    met("all", "an unreadable row", &["job-unreadable", "job-damaged"]),
    met(
        "all",
        "a writer that makes a tree dirty",
        &["creation-archive-writer", "creation-delete-writer", "job-writer"],
    ),
    met("all", "a removal that stops half-way", &["job-failing", "job-rearchive"]),
    met(
        "all",
        "a child process that outlives its maker",
        &["creation-archive", "creation-delete", "creation-reset"],
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
    met("1", "a borrower's task", &["creation-archive-borrower", "creation-delete-borrower"]),
    met(
        "1",
        "two worktrees, two attempts",
        &["creation-archive-two", "creation-archive-four", "creation-delete-two"],
    ),
    met("1", "archive", &["creation-archive"]),
    met("1", "delete", &["creation-delete"]),
    met("1", "reset", &["creation-reset"]),
    met(
        "1",
        "transfer with an open attempt",
        &["creation-transfer-archive", "creation-transfer-delete"],
    ),
    met("1", "deletion of an archived borrower's session", &["creation-archive-archived-borrower"]),
    met("1", "recovery", &["creation-archive", "creation-delete", "creation-reset"]),
    met("2", "two tasks", &["job-tasks-crash"]),
    met("2", "two workers on two instances", &["job-workers"]),
    met("2", "lease expiry", &["job-workers-faults", "creation-archive-slow"]),
    met("2", "rescue", &["job-workers"]),
    met("2", "unarchive", &["job-workers", "creation-archive"]),
    met("2", "second archive", &["job-rearchive"]),
    met("2", "delete while archiving", &["job-delete"]),
    met("2", "retry by hand", &["job-failing"]),
    met("2", "borrower arriving", &["job-borrower"]),
    met(
        "2",
        "unarchive or takeover during a half step and death of its executor",
        &["job-rearchive", "job-workers"],
    ),
    met("2", "restore against a second archive", &["job-restore"]),
    met("2", "a job over two hosts", &["job-hosts", "job-hosts-crash"]),
    met("2", "salvage against a writer", &["job-writer"]),
    met("3", "two sessions", &["turns-large"]),
    met("3", "three inputs of different origins", &["turns-large"]),
    missing("3", "wakeup", "there is no row of wakeups yet (D-10)"),
    missing("3", "question", "there is no row of questions yet (D-10)"),
    missing("3", "channel redirect", "there is no row of channel bindings yet (D-10)"),
    met("3", "two closers", &["turns-close"]),
    met("3", "forced close", &["turns-force"]),
    met("3", "crash in closing", &["turns-close"]),
    met("3", "task archive on top", &["turns-archive"]),
    missing("4", "all of it", "there are no rows of errors and summaries yet (D-12, E)"),
    met("5", "parent, child, grandchild", &["cascade-archive", "cascade-delete"]),
    met("5", "creator of a child", &["cascade-archive", "cascade-delete", "cascade-workspace"]),
    met("5", "mover of a task", &["cascade-archive", "cascade-delete"]),
    met(
        "5",
        "failure between barriers",
        &["cascade-archive", "cascade-delete", "cascade-workspace"],
    ),
    met("5", "unarchive of the cascade", &["cascade-archive"]),
    met("5", "a deletion of the task in the middle", &["cascade-against-delete"]),
    met("5", "workspace delete", &["cascade-workspace", "cascade-empty-workspace"]),
    met("5", "quick chat expiry", &["cascade-chat"]),
    met(
        "5",
        "the jobs behind it, with a worktree",
        &["cascade-archive-long", "cascade-delete-long", "cascade-workspace-long"],
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
         run.\n\n| model | circumstance | systems |\n| --- | --- | --- |\n",
    );
    for met in CIRCUMSTANCES {
        let systems: Vec<String> = met.systems.iter().map(|name| told(name, &known)).collect();
        let systems =
            if systems.is_empty() { format!("none: {}", met.missing) } else { systems.join(", ") };
        let _ = writeln!(out, "| {} | {} | {systems} |", met.of, met.says);
    }
    out.push_str("\n## Further systems\n\n| system | says |\n| --- | --- |\n");
    let named = |e: &&&Entry| CIRCUMSTANCES.iter().any(|met| met.systems.contains(&e.name));
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
