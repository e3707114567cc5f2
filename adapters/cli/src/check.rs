//! `freehold check`: the model checker on the catalogue of systems, guards and planted designs.

mod names;
mod report;
mod work;

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use freehold_model_check::Limits;
use freehold_model_check::explore::{Explored, Progress, explore_watched};
use freehold_model_check::models::catalogue;
use freehold_model_check::stateright::{Bridge, serve};
use serde_json::json;

use crate::failure::Failure;
use crate::show::Show;
use report::{Ran, grouped, mebibytes};
use work::Work;

/// What `--help` says besides.
pub(crate) const HELP: &str = "\
Without --model, --without or --planted everything of CI's scope is checked: first the systems, \
each exhaustively; then the kernel without each guard, which must break the property that is \
pinned for it; then the planted designs, each of which must be caught.

  freehold check                                    everything, in minutes
  freehold check --model creation                   the systems whose names begin so
  freehold check --without task_unbarred            what breaks without this guard, and how
  freehold check --planted NAME --trace svg > a.svg why a rule is there, as a picture
  freehold check --model NAME --explore             walk through a system in a browser

Progress goes to standard error. With --trace json, mermaid or svg standard output has the traces \
alone; with --json it has one object.

The limit of memory counts states, tables and what the model keeps; it is looked at every 1,024 \
states, and a table that doubles may pass it once. The peak is said at the end.

Exit codes: 0 all is as promised (with --without: nothing broke); 1 something broke, never comes to \
rest, was not caught, or a circumstance was never met; 2 the command line is wrong; 3 the port \
cannot be had; 5 a limit cut the search: nothing is broken so far, and it is no pass.";

/// Bounds of what a limit may be: below, nothing would be looked at; above, the numbers of states
/// would not fit, or nobody has so much.
const DEPTHS: std::ops::RangeInclusive<i64> = 1..=1_000_000;
const STATES: std::ops::RangeInclusive<u64> = 1..=300_000_000;
const MEMORY: std::ops::RangeInclusive<u64> = 16..=1_048_576;
const MINUTES: std::ops::RangeInclusive<f64> = 0.001..=10_080.0;

/// Bytes that a state costs stateright at most, by our measure of it, for the explorer's bound.
const EXPLORER_STATE: u64 = 512;

/// How a trace is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Numbered lines.
    Text,
    /// One JSON object a line.
    Json,
    /// A sequence diagram in Mermaid's words.
    Mermaid,
    /// A sequence diagram as a picture.
    Svg,
}

/// The arguments.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Check the systems whose names begin so.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Go at most so many steps from the beginning.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(DEPTHS))]
    depth: Option<u32>,
    /// Keep at most so many states of a system.
    #[arg(long, value_name = "N", default_value_t = *STATES.end(),
          value_parser = clap::value_parser!(u64).range(STATES))]
    states: u64,
    /// Take at most so many minutes for all of it.
    #[arg(long, value_name = "N", default_value_t = 60.0, value_parser = minutes)]
    minutes: f64,
    /// Hold at most so much memory, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 4_096,
          value_parser = clap::value_parser!(u64).range(MEMORY))]
    memory: u64,
    /// Take this guard out of the kernel, and tell what breaks. May be given several times.
    /// Without --model it is tried where it is known to matter.
    #[arg(long, value_name = "GUARD")]
    without: Vec<String>,
    /// Check this planted design: a plausible one that is wrong, and must be caught.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["model", "without"])]
    planted: Option<String>,
    /// Check the systems of the long run too.
    #[arg(long)]
    long: bool,
    /// Go on after the first broken property, to find the others too.
    #[arg(long)]
    all: bool,
    /// Tell traces in this form; also of what was caught as expected.
    #[arg(long, value_name = "FORM", value_enum)]
    trace: Option<Form>,
    /// Serve stateright's explorer of one system on 127.0.0.1, on this port or on any, until the
    /// process is ended.
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true,
          default_missing_value = "0", conflicts_with_all = ["all", "trace"])]
    explore: Option<u16>,
    /// List systems, guards and planted designs.
    #[arg(long, conflicts_with = "explore")]
    list: bool,
}

fn minutes(text: &str) -> Result<f64, String> {
    let given: f64 = text.parse().map_err(|_| "no number of minutes".to_owned())?;
    if MINUTES.contains(&given) {
        return Ok(given);
    }
    Err(format!("{text} is not in {}..={}", MINUTES.start(), MINUTES.end()))
}

pub(crate) fn run(args: &Args, out: &mut Show) -> Result<(), Failure> {
    if args.list {
        report::list(out);
        return Ok(());
    }
    let chosen = work::chosen(args)?;
    match args.explore {
        Some(port) => explorer(args, &chosen, port, out),
        None => check(args, &chosen, out),
    }
}

fn check(args: &Args, chosen: &[Work], out: &mut Show) -> Result<(), Failure> {
    let began = Instant::now();
    let time = Duration::from_secs_f64(args.minutes * 60.0);
    // One design by name is asked for to see how it fails.
    let asked = args.trace.is_some() || args.planted.is_some();
    let mut all = Vec::new();
    for work in chosen {
        let Some(left) = time.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) else {
            all.push(Ran::not_run(work));
            continue;
        };
        let system = work.build();
        let limits = Limits {
            states: usize::try_from(args.states).unwrap_or(usize::MAX),
            depth: args.depth.unwrap_or(u32::MAX),
            time: left,
            bytes: usize::try_from(args.memory << 20).unwrap_or(usize::MAX),
            all: args.all,
            rest: work.looks_for_rest(),
        };
        let name = work.name();
        let mut last = Instant::now();
        let explored = explore_watched(&system, limits, &mut |at| {
            if last.elapsed() >= Duration::from_secs(1) {
                last = Instant::now();
                out.aside(&progress(&name, &at));
            }
        });
        out.aside(&progress(&name, &ended(&explored)));
        let ran = Ran::judged(work, system.name(), explored, asked);
        ran.tell(args.trace, out);
        all.push(ran);
    }
    report::sum(&all, began.elapsed(), args.trace, out)
}

fn ended(explored: &Explored) -> Progress {
    Progress {
        states: explored.states,
        waiting: 0,
        edges: explored.edges,
        depth: explored.depth,
        bytes: explored.bytes,
        took: explored.took,
    }
}

fn progress(name: &str, at: &Progress) -> String {
    let rate = at.states as f64 / at.took.as_secs_f64().max(1e-6);
    let waiting =
        if at.waiting == 0 { String::new() } else { format!(", {} wait", grouped(at.waiting)) };
    format!(
        "{name}: {} states, {} states/s, depth {}, {} MiB{waiting}",
        grouped(at.states),
        grouped(rate as usize),
        at.depth,
        mebibytes(at.bytes)
    )
}

fn explorer(args: &Args, chosen: &[Work], port: u16, out: &mut Show) -> Result<(), Failure> {
    let [work] = chosen else {
        let known: Vec<&str> = catalogue::systems().iter().map(|s| s.name).collect();
        return Err(Failure::Unknown(format!(
            "--explore shows one system, and this names {}; choose one with --model: {}",
            chosen.len(),
            known.join(", ")
        )));
    };
    // Every state under its own names: a way is then one story.
    let build = || Bridge::new(work.build().in_full(), work.name());
    let states = args.states.min((args.memory << 20) / EXPLORER_STATE).max(1);
    let states = usize::try_from(states).ok().and_then(NonZeroUsize::new);
    serve(build, port, states.unwrap_or(NonZeroUsize::MIN), |address| {
        let value = json!({"address": format!("http://{address}/"), "system": work.name()});
        out.result(&value, &format!("http://{address}/ shows {}; Ctrl-C ends it", work.name()));
    })
    .map_err(|e| Failure::Surroundings(format!("port {port} of 127.0.0.1 cannot be had: {e}")))
}
