//! The speed of the kernel's model of the twin beside SPIN's, in one run.
//!
//! ```text
//! cargo run --release -p freehold-model-check --example twin -- [SESSIONS [CRASHES [SLOW]]] [--runs N]
//! cargo run --release -p freehold-model-check --example twin -- --verify [SESSIONS [CRASHES [SLOW]]]
//! ```
//!
//! Both sides run in processes of their own, one core each, one after the other and in turns; the
//! medians of cpu seconds are compared. `--verify` decides every action of every reachable state
//! afresh instead. It reads the cpu time of its children where Linux shows it.

use std::process::{Command, ExitCode};

use freehold_model_check::twin::Twin;
use freehold_model_check::twin::spin::Pan;
use freehold_model_check::{Limits, Model, To, explore};

/// One run of one side.
#[derive(Clone, Debug)]
struct Run {
    states: u64,
    edges: u64,
    wall: f64,
    cpu: f64,
    /// What the side itself counts: states, parents, table, memo; or states without the table.
    own_bytes: f64,
    /// All of the memory that its process had at most.
    peak_bytes: f64,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let (mut size, mut runs, mut mode) = (Vec::new(), 3, "");
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--runs" => {
                let n =
                    arguments.next().and_then(|n| n.parse().ok()).filter(|n| (1..=99).contains(n));
                runs = n.ok_or("--runs takes a number from 1 to 99")?;
            }
            "--verify" => mode = "verify",
            "--ours" => mode = "ours",
            number => size.push(number.parse::<u8>().map_err(|e| format!("{number}: {e}"))?),
        }
    }
    let at = |i: usize, otherwise| size.get(i).copied().unwrap_or(otherwise);
    let (sessions, crashes, slow) = (at(0, 3), at(1, 1), at(2, 1));
    let twin = Twin::new(sessions, crashes, slow)?;
    match mode {
        "verify" => verify(&twin),
        "ours" => ours(&twin),
        _compare => compare([sessions, crashes, slow], runs),
    }
}

/// One exploration, as numbers for the parent.
fn ours(twin: &Twin) -> Result<(), String> {
    let explored = explore(twin, Limits { rest: false, ..Limits::default() });
    if !explored.exhaustive() {
        return Err(format!("not exhaustive: {:?} {:?}", explored.cut, explored.broken));
    }
    println!("{} {} {}", explored.states, explored.edges, explored.bytes);
    println!("{} {}", twin.decisions(), twin.bytes());
    println!("{}", peak()?);
    Ok(())
}

fn verify(twin: &Twin) -> Result<(), String> {
    let (mut known, mut out) = (std::collections::HashSet::from([twin.initial()]), Vec::new());
    let mut waiting = vec![twin.initial()];
    while let Some(state) = waiting.pop() {
        twin.verify(state)?;
        out.clear();
        twin.edges(state, &mut out);
        for to in &out {
            match to {
                To::State(next) => {
                    if known.insert(*next) {
                        waiting.push(*next);
                    }
                }
                To::Broken(number) => return Err(format!("{:?}", twin.broken(*number))),
            }
        }
    }
    println!("{} states: everything remembered is the kernel's word on all rows", known.len());
    Ok(())
}

fn compare(size: [u8; 3], runs: usize) -> Result<(), String> {
    let [sessions, crashes, slow] = size;
    let names = [format!("NS={sessions}"), format!("CRASHES={crashes}"), format!("SLOW={slow}")];
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let pan = Pan::make(&names, &["-O2", "-DSAFETY", "-DNOREDUCE"])?;
    let (mut we, mut they, mut table) = (Vec::new(), Vec::new(), 0);
    for _ in 0..runs {
        let (run, memo) = our_run(size)?;
        if we.is_empty() {
            // SPIN's table: a slot for each state, rounded up to a power of two.
            table = 64 - (run.states - 1).leading_zeros();
            println!("{memo}");
        }
        we.push(run);
        they.push(their_run(&pan, table)?);
    }
    let (we, they) = (median(we)?, median(they)?);
    println!(
        "sessions {sessions}, crashes {crashes}, slow owners {slow}; medians of {runs} runs in turns"
    );
    println!(
        "      unique states       edges   wall s    cpu s  states/cpu s  bytes/state  of the process"
    );
    for (name, run) in [("ours", &we), ("SPIN", &they)] {
        let n = run.states as f64;
        println!(
            "{name}  {:>13} {:>11} {:>8.2} {:>8.2} {:>13.0} {:>12.1} {:>15.1}",
            run.states,
            run.edges,
            run.wall,
            run.cpu,
            n / run.cpu,
            run.own_bytes / n,
            run.peak_bytes / n,
        );
    }
    println!(
        "SPIN: -O2 -DSAFETY -DNOREDUCE, depth first, -w{table}; its bytes without and with its table"
    );
    println!("ratio of unique states per cpu second, ours to SPIN's: {:.2}", they.cpu / we.cpu);
    if (we.states, we.edges) == (they.states, they.edges) {
        Ok(())
    } else {
        Err("the two sides count differently".to_owned())
    }
}

fn our_run(size: [u8; 3]) -> Result<(Run, String), String> {
    let me = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = Command::new(me);
    command.arg("--ours").args(size.map(|n| n.to_string()));
    let (text, wall, cpu) = timed(&mut command)?;
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let [states, edges, bytes, decisions, memo, peak] = numbers[..] else {
        return Err(format!("our run said {text}"));
    };
    let memo = format!(
        "ours: {decisions} decisions of the kernel and looks at its rows remembered, {memo} bytes \
         (in the bytes per state)"
    );
    let run = Run { states, edges, wall, cpu, own_bytes: bytes as f64, peak_bytes: peak as f64 };
    Ok((run, memo))
}

fn their_run(pan: &Pan, table: u32) -> Result<Run, String> {
    let mut command = Command::new(pan.program());
    command.args(["-E", "-m1000000", &format!("-w{table}")]);
    let (text, wall, cpu) = timed(&mut command)?;
    let number = |what: &str| -> Option<f64> {
        let line = text.lines().find(|l| l.contains(what))?;
        line.split_whitespace().next().and_then(|n| n.parse().ok())
    };
    if !text.contains("errors: 0") || text.contains("too small") || text.contains("not completed") {
        return Err(format!("SPIN's search: {text}"));
    }
    let read = || -> Option<Run> {
        let states = number("states, stored")? as u64;
        // The step to the initial state is no edge.
        let edges = number("transitions (=")? as u64 - 1;
        let megabytes = 1024.0 * 1024.0;
        let net = number("actual memory usage for states")
            .or_else(|| number("equivalent memory usage"))?
            * megabytes;
        let all = net + 8.0 * f64::from(1u32 << table);
        Some(Run { states, edges, wall, cpu, own_bytes: net, peak_bytes: all })
    };
    read().ok_or_else(|| format!("no figures in: {text}"))
}

/// Output, wall seconds and cpu seconds of a child.
fn timed(command: &mut Command) -> Result<(String, f64, f64), String> {
    let (before, began) = (children()?, std::time::Instant::now());
    let output = command.output().map_err(|e| e.to_string())?;
    let wall = began.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(format!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok((text, wall, children()? - before))
}

/// The cpu seconds of the children that have ended: user and system, in hundredths.
fn children() -> Result<f64, String> {
    let stat = std::fs::read_to_string("/proc/self/stat").map_err(|e| e.to_string())?;
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks: Vec<f64> =
        after.split_whitespace().skip(13).take(2).filter_map(|n| n.parse().ok()).collect();
    Ok(ticks.iter().sum::<f64>() / 100.0)
}

/// The most memory that this process had.
fn peak() -> Result<u64, String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"));
    let kilobytes =
        line.and_then(|l| l.split_whitespace().nth(1)).and_then(|n| n.parse::<u64>().ok());
    kilobytes.map(|k| k * 1024).ok_or_else(|| "no VmHWM".to_owned())
}

fn median(mut runs: Vec<Run>) -> Result<Run, String> {
    runs.sort_by(|a, b| a.cpu.total_cmp(&b.cpu));
    runs.get(runs.len() / 2).cloned().ok_or_else(|| "no runs".to_owned())
}
