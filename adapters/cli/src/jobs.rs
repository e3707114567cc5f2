//! `freehold jobs`: what operators do with cleanup jobs (C-15).

mod in_the_way;

use clap::Subcommand;
use freehold_kernel::{
    Command, Guard, Id, JobState, OperatorCommand, Permissions, Reason, Reply, Row, TableId,
};
use freehold_store::{HostError, Read, Rows, Store, Who};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::ground::{content, host, next, wait};
use crate::place::{StoreArgs, StorePlace};
use crate::show::Show;

/// The arguments of `freehold jobs`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    store: StoreArgs,
    /// Who asks; it stands in the journal.
    #[arg(long, value_name = "NAME", global = true, default_value = "operator")]
    actor: String,
}

#[derive(Subcommand, Debug)]
enum What {
    /// The jobs that are not at their end, and those that failed.
    List {
        /// Those that succeeded or were cancelled too.
        #[arg(long)]
        all: bool,
    },
    /// One job: its parts, and what became of each resource and why.
    Show {
        /// The job's id.
        job: String,
    },
    /// Try a failed or waiting job again now; its count of tries starts anew.
    Retry {
        /// The job's id.
        job: String,
    },
    /// Cancel the cleanup of an archive.
    Cancel {
        /// The job's id.
        job: String,
    },
    /// Drop a resource from its job without touching the disk: for what can no longer be reached.
    Forget {
        /// The resource's id, as `freehold jobs show` names it.
        resource: String,
    },
    /// Say of a runtime that nobody can reach any more that it is stopped: its machine is gone.
    /// What it worked in may be removed then.
    DeclareStopped {
        /// The runtime's id, as `freehold jobs show` and `freehold doctor` name it.
        runtime: String,
    },
}

pub(crate) fn run(args: &Args, out: &mut Show) -> Result<(), Failure> {
    let place = &args.store.place("jobs")?;
    match &args.what {
        What::List { all } => list(place, *all, out),
        What::Show { job } => show(place, job, out),
        What::Retry { job } => act(place, &args.actor, "retried", job, out, |c| {
            Ok(Command::Operator(OperatorCommand::Retry { job: c.id(job)? }))
        }),
        What::Cancel { job } => act(place, &args.actor, "cancelled", job, out, |c| {
            Ok(Command::Operator(OperatorCommand::Cancel { job: c.id(job)? }))
        }),
        What::Forget { resource } => act(place, &args.actor, "forgotten", resource, out, |c| {
            let resource = c.id(resource)?;
            Ok(Command::Operator(OperatorCommand::ForgetResource { resource }))
        }),
        What::DeclareStopped { runtime } => {
            act(place, &args.actor, "said to be stopped", runtime, out, |c| {
                let runtime = c.id(runtime)?;
                Ok(Command::Operator(OperatorCommand::DeclareStopped { runtime }))
            })
        }
    }
}

/// Whether a job is not over: it goes on by itself, or a person may have it tried again.
fn is_open(state: JobState) -> bool {
    match state {
        JobState::Prepared
        | JobState::Pending
        | JobState::Running
        | JobState::RetryWait
        | JobState::Failed => true,
        JobState::Succeeded | JobState::Cancelled => false,
    }
}

fn list(place: &StorePlace, all: bool, out: &mut Show) -> Result<(), Failure> {
    let store = place.open()?;
    let rows = wait(store.read(&[Read::all(TableId::Jobs), Read::all(TableId::JobRoots)]))?;
    let mut jobs: Vec<_> = rows.view.jobs.iter().copied().collect();
    jobs.sort_by_key(|j| (j.created_at, j.id));
    let mut shown = Vec::new();
    for job in jobs {
        if !is_open(job.state) && !all {
            continue;
        }
        let parts = rows.view.job_roots.iter().filter(|p| p.job_id == job.id);
        let next_at = parts.clone().filter_map(|p| p.next_attempt_at).min();
        let value = json!({
            "job": text(&rows, job.id)?,
            "task": text(&rows, job.task_id)?,
            "trigger": job.trigger.code(),
            "state": job.state.code(),
            "tries": parts.map(|p| p.tries).max(),
            "next_attempt_at": next_at.map(|t| t.0),
        });
        out.say(&format!(
            "{}  {:<10} {:<14} task {}, {} tries",
            plain(&value["job"]),
            plain(&value["state"]),
            plain(&value["trigger"]),
            plain(&value["task"]),
            value["tries"]
        ));
        shown.push(value);
    }
    let words = format!("{} jobs", shown.len());
    out.result(&json!({"ok": true, "jobs": shown}), &words);
    Ok(())
}

fn show(place: &StorePlace, job: &str, out: &mut Show) -> Result<(), Failure> {
    let store = place.open()?;
    let mut rows = wait(store.read(&[
        Read::by(TableId::Jobs, "id", &[job]),
        Read::by(TableId::JobRoots, "job_id", &[job]),
        Read::by(TableId::Resources, "job_id", &[job]),
    ]))?;
    let Some(row) = rows.view.jobs.iter().next().copied() else {
        return Err(Failure::Host(HostError::NotThere {
            what: "job",
            id: job.to_owned(),
            help: "list the jobs",
        })
        .then(next(&["jobs", "list", "--all"], place)));
    };
    let in_the_way = in_the_way::judge(&store, &mut rows, &row)?;
    let mut resources = Vec::new();
    for r in rows.view.resources.iter() {
        let path = r.path.map(|p| text(&rows, p)).transpose()?;
        resources.push(json!({
            "resource": text(&rows, r.id)?,
            "kind": r.kind.code(),
            "path": path,
            "runtime": r.runtime_id.map(|id| text(&rows, id)).transpose()?,
            "result": r.result.code(),
            "reason": (r.reason != Reason::None).then(|| r.reason.code()),
            "detail": content(&rows, &r.row_key(), "detail"),
        }));
    }
    // In the order in which they are tried (C-6).
    let mut in_order: Vec<_> = rows.view.job_roots.iter().copied().collect();
    in_order.sort_by_key(|p| (p.created_at, p.root_id.is_some(), p.id));
    let mut parts = Vec::new();
    for p in in_order {
        parts.push(json!({
            "part": text(&rows, p.id)?,
            "root": p.root_id.map(|r| text(&rows, r)).transpose()?,
            "state": p.state.code(),
            "tries": p.tries,
            "next_attempt_at": p.next_attempt_at.map(|t| t.0),
            "errors": content(&rows, &p.row_key(), "errors"),
        }));
    }
    let (words, next) = match (&in_the_way.way_out, row.state) {
        (Some(way_out), _) => way_out.words(job, place),
        (None, JobState::Failed) => ("try again".to_owned(), next(&["jobs", "retry", job], place)),
        (None, JobState::Pending | JobState::RetryWait) => {
            ("carry out what is due".to_owned(), next(&["work"], place))
        }
        (
            None,
            JobState::Prepared | JobState::Running | JobState::Succeeded | JobState::Cancelled,
        ) => (format!("{} resources", resources.len()), String::new()),
    };
    let value = json!({
        "ok": true,
        "job": job,
        "operation": text(&rows, row.operation_id)?,
        "task": text(&rows, row.task_id)?,
        "trigger": row.trigger.code(),
        "state": row.state.code(),
        "policy": row.policy.code(),
        "branch_policy": row.branch_policy.code(),
        "parts": parts,
        "resources": resources,
        "may_run": in_the_way.runtimes,
        "next": (!next.is_empty()).then_some(&next),
    });
    out.say(&format!(
        "job {job}: {} of task {}, {}",
        row.trigger.code(),
        plain(&value["task"]),
        row.state.code()
    ));
    for r in value["resources"].as_array().into_iter().flatten() {
        out.say(&format!(
            "  {} {} {}: {} {}",
            plain(&r["kind"]),
            plain(&r["resource"]),
            plain(&r["path"]),
            plain(&r["result"]),
            plain(&r["reason"])
        ));
        for line in plain(&r["detail"]).lines() {
            out.say(&format!("      {line}"));
        }
    }
    for runtime in &in_the_way.runtimes {
        out.say(&format!("  runtime {runtime} is not known to be stopped, and holds worktrees up"));
    }
    let words = if next.is_empty() { words } else { format!("{words}: {next}") };
    out.result(&value, &words);
    Ok(())
}

fn act(
    place: &StorePlace,
    actor: &str,
    done: &str,
    named: &str,
    out: &mut Show,
    compose: impl FnOnce(&mut freehold_store::Composer) -> Result<Command, freehold_store::NameError>,
) -> Result<(), Failure> {
    let host = host(place)?;
    let who = Who::new(actor, Permissions::ALL);
    let mut command = None;
    let compose = |c: &mut freehold_store::Composer| {
        let composed = compose(c)?;
        command = Some(composed);
        Ok(composed)
    };
    match host.ask(&who, None, compose) {
        Ok(accepted) => {
            let state = match accepted.reply {
                Reply::Job { state, .. } => Some(state.code()),
                _other => None,
            };
            let goes_on = goes_on(command.as_ref(), named, place);
            out.result(
                &json!({"ok": true, "done": done, "named": named, "state": state, "next": goes_on}),
                &format!("{named} {done}; next: {goes_on}"),
            );
            Ok(())
        }
        Err(error) => {
            let next = after(&error, named, place);
            Err(Failure::Host(error).then(next))
        }
    }
}

/// The command that goes on from what was done. A failed job is not tried again by itself (C-2),
/// so that a worker alone would find nothing to do.
fn goes_on(command: Option<&Command>, named: &str, place: &StorePlace) -> String {
    let job = match command {
        Some(Command::Operator(OperatorCommand::DeclareStopped { .. })) => {
            in_the_way::job_waiting_for(named, place)
        }
        Some(Command::Operator(OperatorCommand::ForgetResource { .. })) => job_of(named, place),
        Some(_) | None => None,
    };
    match (command, job) {
        (
            Some(Command::Operator(OperatorCommand::DeclareStopped { .. })),
            Some((job, JobState::Failed | JobState::RetryWait)),
        ) => next(&["jobs", "retry", &job], place),
        (_, Some((job, JobState::Failed | JobState::RetryWait))) => {
            next(&["jobs", "show", &job], place)
        }
        (_, _) => next(&["work"], place),
    }
}

/// The command that goes on from a refusal, naming the real object.
fn after(error: &HostError, named: &str, place: &StorePlace) -> String {
    match error.guard() {
        Some(Guard::JobKnown | Guard::ResourceKnown) => next(&["jobs", "list", "--all"], place),
        // What is under way ends by itself, or is taken over by the worker once its lease lapsed.
        Some(Guard::ForgetLapsed) => next(&["work"], place),
        // A turn that is under way is ended by its host, or by recovery.
        Some(Guard::RuntimeIdle) => next(&["work"], place),
        Some(Guard::RuntimeKnown) => next(&["doctor"], place),
        // It tells which instance has to end before a person's word counts.
        Some(Guard::RuntimeUnreached) => match in_the_way::job_waiting_for(named, place) {
            Some((job, _)) => next(&["jobs", "show", &job], place),
            None => next(&["jobs", "list"], place),
        },
        Some(Guard::ForgetLeft | Guard::ForgetStopped) => match job_of(named, place) {
            Some((job, _)) => next(&["jobs", "show", &job], place),
            None => next(&["jobs", "list", "--all"], place),
        },
        Some(_) => next(&["jobs", "show", named], place),
        None => next(&["jobs", "list"], place),
    }
}

fn job_of(resource: &str, place: &StorePlace) -> Option<(String, JobState)> {
    let store = place.open().ok()?;
    let mut rows = wait(store.read(&[Read::by(TableId::Resources, "id", &[resource])])).ok()?;
    let job = rows.texts([rows.view.resources.iter().next()?.job_id]).ok()?;
    rows.absorb(wait(store.read(&[Read::among(TableId::Jobs, "id", job)])).ok()?);
    let job = rows.view.jobs.iter().next()?;
    Some((text(&rows, job.id).ok()?, job.state))
}

fn text<I: Id>(rows: &Rows, id: I) -> Result<String, Failure> {
    Ok(rows.names.text(I::KIND, id.bits())?)
}

/// A value as people read it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
