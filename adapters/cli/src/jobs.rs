//! `freehold jobs`: what operators do with cleanup jobs (C-15).

use std::path::{Path, PathBuf};

use clap::Subcommand;
use freehold_kernel::{
    Command, Guard, Id, JobState, Kind, OperatorCommand, Permissions, Reason, Reply, Row,
    RuntimeStatus, TableId,
};
use freehold_store::{HostError, Read, Rows, Store, Who};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::ground::{content, host, next, open, wait};
use crate::show::Show;

/// The arguments of `freehold jobs`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
    /// The store's file.
    #[arg(long, value_name = "FILE", global = true)]
    store: Option<PathBuf>,
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
    let Some(store) = args.store.as_deref() else {
        return Err(Failure::Unknown("which store? give --store FILE".to_owned())
            .then("freehold jobs --help".to_owned()));
    };
    match &args.what {
        What::List { all } => list(store, *all, out),
        What::Show { job } => show(store, job, out),
        What::Retry { job } => act(store, &args.actor, "retried", job, out, |c| {
            Ok(Command::Operator(OperatorCommand::Retry { job: c.id(job)? }))
        }),
        What::Cancel { job } => act(store, &args.actor, "cancelled", job, out, |c| {
            Ok(Command::Operator(OperatorCommand::Cancel { job: c.id(job)? }))
        }),
        What::Forget { resource } => act(store, &args.actor, "forgotten", resource, out, |c| {
            let resource = c.id(resource)?;
            Ok(Command::Operator(OperatorCommand::ForgetResource { resource }))
        }),
        What::DeclareStopped { runtime } => {
            act(store, &args.actor, "said to be stopped", runtime, out, |c| {
                let runtime = c.id(runtime)?;
                Ok(Command::Operator(OperatorCommand::DeclareStopped { runtime }))
            })
        }
    }
}

fn list(store: &Path, all: bool, out: &mut Show) -> Result<(), Failure> {
    let sqlite = open(store)?;
    let rows = wait(sqlite.read(&[Read::all(TableId::Jobs), Read::all(TableId::JobRoots)]))?;
    let mut jobs: Vec<_> = rows.view.jobs.iter().copied().collect();
    jobs.sort_by_key(|j| (j.created_at, j.id));
    let mut shown = Vec::new();
    for job in jobs {
        let open = match job.state {
            JobState::Prepared
            | JobState::Pending
            | JobState::Running
            | JobState::RetryWait
            | JobState::Failed => true,
            JobState::Succeeded | JobState::Cancelled => false,
        };
        if !open && !all {
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

fn show(store: &Path, job: &str, out: &mut Show) -> Result<(), Failure> {
    let sqlite = open(store)?;
    let rows = wait(sqlite.read(&[
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
        .then(next(&["jobs", "list", "--all"], store)));
    };
    let living = living_runtimes(&sqlite, &rows)?;
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
    let mut parts = Vec::new();
    for p in rows.view.job_roots.iter() {
        parts.push(json!({
            "part": text(&rows, p.id)?,
            "root": p.root_id.map(|r| text(&rows, r)).transpose()?,
            "state": p.state.code(),
            "tries": p.tries,
            "next_attempt_at": p.next_attempt_at.map(|t| t.0),
            "errors": content(&rows, &p.row_key(), "errors"),
        }));
    }
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
        "may_run": living,
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
    for runtime in &living {
        out.say(&format!("  runtime {runtime} is not known to be stopped, and holds worktrees up"));
    }
    let words = match row.state {
        JobState::Failed | JobState::RetryWait if !living.is_empty() => format!(
            "stop what may run, or, if nobody can reach it any more, say that it is stopped: {}",
            next(&["jobs", "declare-stopped", living.first().map_or("", String::as_str)], store)
        ),
        JobState::Failed => format!("try again: {}", next(&["jobs", "retry", job], store)),
        JobState::Pending | JobState::RetryWait => {
            format!("carry out what is due: {}", next(&["work"], store))
        }
        JobState::Prepared | JobState::Running | JobState::Succeeded | JobState::Cancelled => {
            format!("{} resources", resources.len())
        }
    };
    out.result(&value, &words);
    Ok(())
}

/// The runtimes that the job names, or that stand in its environments, and that are not known to be
/// stopped (C-6).
fn living_runtimes(store: &impl Store, rows: &Rows) -> Result<Vec<String>, Failure> {
    let resources = || rows.view.resources.iter();
    let named = rows.texts(resources().filter_map(|r| r.runtime_id))?;
    let environments = rows.texts(resources().filter_map(|r| r.environment_id))?;
    let found = wait(store.read(&[
        Read::among(TableId::Runtimes, "id", named),
        Read::among(TableId::Runtimes, "task_environment_id", environments),
    ]))?;
    let living = found.view.runtimes.iter().filter(|r| r.status != RuntimeStatus::Stopped);
    living.map(|r| text(&found, r.id)).collect()
}

fn act(
    store: &Path,
    actor: &str,
    done: &str,
    named: &str,
    out: &mut Show,
    compose: impl FnOnce(&mut freehold_store::Composer) -> Result<Command, freehold_store::NameError>,
) -> Result<(), Failure> {
    let host = host(store)?;
    let who = Who::new(actor, Permissions::ALL);
    match host.ask(&who, None, compose) {
        Ok(accepted) => {
            let state = match accepted.reply {
                Reply::Job { state, .. } => Some(state.code()),
                _other => None,
            };
            let goes_on = next(&["work"], store);
            out.result(
                &json!({"ok": true, "done": done, "named": named, "state": state, "next": goes_on}),
                &format!("{named} {done}; next: {goes_on}"),
            );
            Ok(())
        }
        Err(error) => {
            let next = after(&error, named, store);
            Err(Failure::Host(error).then(next))
        }
    }
}

/// The command that goes on from a refusal, naming the real object.
fn after(error: &HostError, named: &str, store: &Path) -> String {
    match error.guard() {
        Some(Guard::JobKnown | Guard::ResourceKnown) => next(&["jobs", "list", "--all"], store),
        // What is under way ends by itself, or is taken over by the worker once its lease lapsed.
        Some(Guard::ForgetLapsed) => next(&["work"], store),
        // A turn that is under way is ended by its host, or by recovery.
        Some(Guard::RuntimeIdle) => next(&["work"], store),
        Some(Guard::RuntimeKnown) => next(&["doctor"], store),
        Some(Guard::ForgetLeft | Guard::ForgetStopped) => match job_of(named, store) {
            Some(job) => next(&["jobs", "show", &job], store),
            None => next(&["jobs", "list", "--all"], store),
        },
        Some(_) => next(&["jobs", "show", named], store),
        None => next(&["jobs", "list"], store),
    }
}

fn job_of(resource: &str, store: &Path) -> Option<String> {
    let sqlite = open(store).ok()?;
    let rows = wait(sqlite.read(&[Read::by(TableId::Resources, "id", &[resource])])).ok()?;
    let job = rows.view.resources.iter().next()?.job_id;
    rows.names.text(Kind::JobId, job.0).ok()
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
