//! The `freehold` program: commands, exit codes, output.
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | done |
//! | 1 | refused by the kernel, or what was to be shown is not so |
//! | 2 | the command line is wrong |
//! | 3 | the store, the disk or git cannot be used now; trying again may help |
//! | 4 | closed on purpose: a person has to look |
//! | 5 | a check was cut by a limit: nothing is broken so far, and it is no pass |
//! | 6 | the doctor found something |

mod check;
mod doctor;
mod failure;
mod gc;
mod ground;
mod jobs;
mod machine;
mod place;
mod restore;
mod settings;
mod show;
mod tour;
mod work;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use failure::Failure;
pub use machine::machine_name;

/// Lifecycle kernel for AI-agent backends: no session removal ever deletes a worktree, nothing
/// becomes untracked, closed stays closed.
#[derive(Parser, Debug)]
#[command(name = "freehold", version, about, arg_required_else_help = true)]
struct Cli {
    /// Print JSON: one object per line, the last one is the result.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Tell the true story on real git and the embedded store, in a temporary folder.
    Tour {
        /// The address of a PostgreSQL database (postgres://user@host:5432/database) to have it
        /// told there, in a schema of the tour's own; the password, if there is one, in PGPASSWORD
        /// or ~/.pgpass.
        #[arg(long, value_name = "ADDRESS")]
        store: Option<String>,
        /// Leave the folder for looking, and the schema.
        #[arg(long)]
        keep: bool,
    },
    /// Run the worker on a store: recover what lapsed, clean up what is due, and end.
    #[command(after_long_help = place::HELP)]
    Work {
        #[command(flatten)]
        store: place::StoreArgs,
        /// At most so many ticks; without it, until nothing is due.
        #[arg(long, value_name = "N")]
        ticks: Option<u32>,
        /// Ignored files that match this pattern, as in a .gitignore, are rebuilt and not kept;
        /// may be given again. A repository adds its own: git config --add freehold.rebuildable
        /// PATTERN.
        #[arg(long, value_name = "PATTERN")]
        rebuildable: Vec<String>,
    },
    /// Cross the rows, git's lists and the disk, and report what does not fit. Changes nothing.
    #[command(after_long_help = place::HELP)]
    Doctor {
        #[command(flatten)]
        store: place::StoreArgs,
    },
    /// List, explain, retry, cancel and forget cleanup jobs.
    #[command(after_long_help = place::HELP)]
    Jobs(jobs::Args),
    /// List, show and put back what is kept: salvage and trash.
    #[command(after_long_help = place::HELP)]
    Restore(restore::Args),
    /// Show and change the settings of a store: retention of trash and salvage, and limits.
    #[command(after_long_help = place::HELP)]
    Settings(settings::Args),
    /// Let go of trash whose time is over and of salvage that has expired. Says what it would do,
    /// and does it with --yes.
    #[command(after_long_help = place::HELP)]
    Gc {
        #[command(flatten)]
        store: place::StoreArgs,
        /// Do it.
        #[arg(long)]
        yes: bool,
    },
    /// Check the rules: every interleaving and crash of small systems, decided by the kernel
    /// itself; every guard taken out in turn; designs that look right and are wrong.
    #[command(after_long_help = check::HELP)]
    Check(check::Args),
}

/// Runs the program with the process's arguments.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let mut out = show::Show::new(cli.json);
    let done = match &cli.command {
        What::Tour { keep, store } => tour::run(*keep, store.as_deref(), &mut out),
        What::Work { store, ticks, rebuildable } => {
            let place = store.place("work");
            place.and_then(|place| work::run(&place, *ticks, rebuildable, &mut out))
        }
        What::Doctor { store } => {
            store.place("doctor").and_then(|place| doctor::run(&place, &mut out))
        }
        What::Jobs(args) => jobs::run(args, &mut out),
        What::Restore(args) => restore::run(args, &mut out),
        What::Settings(args) => settings::run(args, &mut out),
        What::Gc { store, yes } => {
            store.place("gc").and_then(|place| gc::run(&place, *yes, &mut out))
        }
        What::Check(args) => check::run(args, &mut out),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            out.failure(&failure);
            // What could not be written to a closed pipe cannot be reported there either.
            let _ = std::io::stdout().flush();
            ExitCode::from(failure.exit_code())
        }
    }
}
