//! `freehold doctor`: rows, git's lists and the disk, crossed (W-41). A report: nothing is written,
//! not even a row; what nobody knows is shown with what it holds, and left alone.

mod disk;
mod rows;
mod runtimes;

use freehold_kernel::TableId;
use freehold_store::{Read, Store};
use serde_json::json;

use crate::failure::Failure;
use crate::ground::{roots, wait};
use crate::machine::machine_name;
use crate::place::StorePlace;
use crate::show::Show;

/// Something that does not fit.
#[derive(Debug)]
struct Finding {
    /// A stable word for its kind.
    kind: &'static str,
    /// The path or id that is meant.
    about: String,
    /// What was seen.
    says: String,
    /// One line for each thing that it holds.
    holds: Vec<String>,
    /// The exact next command.
    next: String,
}

/// What a look found, and how much was looked at.
#[derive(Debug, Default)]
struct Report {
    findings: Vec<Finding>,
    worktrees: usize,
    registrations: usize,
    folders: usize,
    runtimes: usize,
}

impl Report {
    fn find(
        &mut self,
        kind: &'static str,
        about: impl Into<String>,
        says: impl Into<String>,
        next: String,
    ) -> &mut Finding {
        let (about, says) = (about.into(), says.into());
        self.findings.push(Finding { kind, about, says, holds: Vec::new(), next });
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }
}

/// Every table that the report crosses.
const TABLES: &[TableId] = &[
    TableId::Environments,
    TableId::Repos,
    TableId::Attempts,
    TableId::Removals,
    TableId::Trash,
    TableId::Jobs,
    TableId::JobRoots,
    TableId::Resources,
    TableId::ManagedRoots,
    TableId::Runtimes,
    TableId::Instances,
];

pub(crate) fn run(place: &StorePlace, out: &mut Show) -> Result<(), Failure> {
    let store = place.open()?;
    let reads: Vec<Read> = TABLES.iter().map(|t| Read::all(*t)).collect();
    let rows = wait(store.read(&reads))?;
    let all = roots(&store, &rows)?;
    let machine = machine_name();
    // Another machine's roots are not this one's to judge (D-18).
    let elsewhere = all.iter().filter(|(_, host)| *host != machine).count();
    let roots: Vec<_> =
        all.into_iter().filter(|(_, host)| *host == machine).map(|(root, _)| root).collect();
    let mut report = Report::default();
    rows::unreadable(&rows, place, &mut report);
    rows::unfinished(&rows, place, &mut report)?;
    let runtimes_elsewhere = runtimes::judge(&rows, place, &mut report)?;
    disk::cross(&rows, &roots, place, &mut report)?;
    tell(&report, elsewhere, runtimes_elsewhere, out)
}

fn tell(
    report: &Report,
    elsewhere: usize,
    runtimes_elsewhere: usize,
    out: &mut Show,
) -> Result<(), Failure> {
    for f in &report.findings {
        out.say(&format!("{}: {}: {}", f.kind, f.about, f.says));
        for line in &f.holds {
            out.say(&format!("    {line}"));
        }
        out.say(&format!("    next: {}", f.next));
    }
    let words = format!(
        "{} findings; looked at {} worktrees, {} registrations, {} folders, {} runtimes; \
         {} roots and {} runtimes of others",
        report.findings.len(),
        report.worktrees,
        report.registrations,
        report.folders,
        report.runtimes,
        elsewhere,
        runtimes_elsewhere
    );
    let findings: Vec<_> = report
        .findings
        .iter()
        .map(|f| {
            json!({
                "kind": f.kind, "about": f.about, "says": f.says, "holds": f.holds, "next": f.next,
            })
        })
        .collect();
    out.result(
        &json!({
            "ok": findings.is_empty(),
            "findings": findings,
            "worktrees": report.worktrees,
            "registrations": report.registrations,
            "folders": report.folders,
            "runtimes": report.runtimes,
            "roots_elsewhere": elsewhere,
            "runtimes_elsewhere": runtimes_elsewhere,
        }),
        &words,
    );
    if report.findings.is_empty() { Ok(()) } else { Err(Failure::Found(words)) }
}
