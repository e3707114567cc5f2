//! The story itself.

use std::path::Path;
use std::time::Duration;

use freehold_git::{GitWorkspaces, leftovers};
use freehold_kernel::{
    Command, JobState, OperatorCommand, Permissions, Reply, SessionCommand, SessionSource,
    Settings, Span, TableId, TaskCommand, TaskKind,
};
use freehold_store::{Host, NoRuntimes, OnThisThread, Operation, Place, Read, Stands, Wanted, Who};
use serde_json::json;

use super::Shown;
use super::ground::{Ground, contents, write};
use crate::failure::Failure;
use crate::machine::machine_name;
use crate::place::OpenStore;

type TourHost = Host<OpenStore, GitWorkspaces, OnThisThread>;

const MARKER: &str = "work that was never committed\n";

/// What the last line says.
pub(crate) struct Facts {
    pub(crate) marker_intact_after_session_deletes: bool,
    pub(crate) race_refused_and_compensated: bool,
    pub(crate) salvage_id: String,
    pub(crate) marker_restored: bool,
    pub(crate) leftovers: Vec<String>,
}

impl Facts {
    pub(crate) fn all_true(&self) -> bool {
        self.marker_intact_after_session_deletes
            && self.race_refused_and_compensated
            && !self.salvage_id.is_empty()
            && self.marker_restored
            && self.leftovers.is_empty()
    }
}

pub(crate) fn tell(ground: &Ground, shown: &mut Shown<'_>) -> Result<Facts, Failure> {
    let host = open(ground, GitWorkspaces::new())?;
    let ann = Who::new("ann", Permissions::ALL);
    // Retries at once instead of after a minute: the tour would rather not wait.
    set_retries(&host, &ann)?;
    let (place, root) = begin(ground, &host, &ann, shown)?;
    let marker_intact_after_session_deletes = delete_sessions(ground, &host, &ann, &place, shown)?;
    new_session(&host, &ann, &place, shown)?;
    let race_refused_and_compensated = race(ground, &host, &ann, &root, shown)?;
    archive(ground, &host, &ann, &place, shown)?;
    let salvage_id = second_process(ground, &host, &place, shown)?;
    let (marker_restored, repo) = unarchive(ground, &host, &ann, shown)?;
    delete_with_trouble(ground, &host, &ann, &repo, shown)?;
    let leftovers = look_for_leftovers(ground, &host, shown)?;
    Ok(Facts {
        marker_intact_after_session_deletes,
        race_refused_and_compensated,
        salvage_id,
        marker_restored,
        leftovers,
    })
}

fn open(ground: &Ground, git: GitWorkspaces) -> Result<TourHost, Failure> {
    let store = ground.store.make()?;
    Ok(Host::start(store, git, OnThisThread, Box::new(NoRuntimes), &machine_name())?)
}

fn set_retries(host: &TourHost, who: &Who) -> Result<(), Failure> {
    let settings =
        Settings { retry_1: Span(0), retry_2: Span(0), retry_3: Span(0), ..Settings::DEFAULT };
    host.ask(who, None, |_| Ok(Command::Operator(OperatorCommand::ChangeSettings { settings })))?;
    Ok(())
}

fn make_task(host: &TourHost, who: &Who, task: &str, environment: &str) -> Result<(), Failure> {
    host.ask(who, None, |c| {
        let id = c.id::<freehold_kernel::TaskId>(task)?;
        c.content(TableId::Tasks, id.0, "title", task);
        Ok(Command::Task(TaskCommand::Create {
            task: id,
            workspace: c.id("board")?,
            parent: None,
            kind: TaskKind::Standard,
            expires_at: None,
        }))
    })?;
    host.ask(who, None, |c| {
        Ok(Command::Task(TaskCommand::CreateEnvironment {
            environment: c.id(environment)?,
            task: c.id(task)?,
            container: None,
            sandbox: None,
        }))
    })?;
    Ok(())
}

fn make_session(host: &TourHost, who: &Who, session: &str, task: &str) -> Result<(), Failure> {
    host.ask(who, None, |c| {
        Ok(Command::Session(SessionCommand::Create {
            session: c.id(session)?,
            task: c.id(task)?,
            environment: None,
            source: SessionSource::Person,
            parent: None,
        }))
    })?;
    Ok(())
}

fn wanted(ground: &Ground, root: &str, environment: &str, branch: &str) -> Wanted {
    Wanted {
        environment: environment.to_owned(),
        repository: ground.repository.display().to_string(),
        slug: branch.to_owned(),
        branch: branch.to_owned(),
        start: None,
        root: root.to_owned(),
    }
}

fn begin(
    ground: &Ground,
    host: &TourHost,
    ann: &Who,
    shown: &mut Shown<'_>,
) -> Result<(Place, String), Failure> {
    host.ask(ann, None, |c| {
        let workspace = c.id::<freehold_kernel::WorkspaceId>("board")?;
        c.content(TableId::Workspaces, workspace.0, "name", "The board");
        Ok(Command::Task(TaskCommand::CreateWorkspace { workspace }))
    })?;
    let root = host.register_root(ann, &ground.root)?;
    make_task(host, ann, "build-the-thing", "env-1")?;
    let made = host.make_worktree(ann, &wanted(ground, &root, "env-1", "agent/thing"))?;
    make_session(host, ann, "chat-1", "build-the-thing")?;
    make_session(host, ann, "chat-2", "build-the-thing")?;
    let place = made.place;
    let listed = ground.worktrees()?.contains(&place.path.display().to_string());
    shown.step(
        "a task, its environment, a real worktree, two sessions",
        place.path.join("story.txt").is_file() && listed,
        json!({"worktree": place.path.display().to_string(), "branch": place.branch}),
    );
    write(&place.path.join("story.txt"), "a tracked file, changed\n")?;
    write(&place.path.join("MARKER"), MARKER)?;
    shown.step(
        "somebody works in it: a changed file and an untracked one, nothing committed",
        place.path.join("MARKER").is_file(),
        json!({"marker": MARKER.trim()}),
    );
    Ok((place, root))
}

/// Promise 1, as it can be seen from outside.
fn delete_sessions(
    ground: &Ground,
    host: &TourHost,
    ann: &Who,
    place: &Place,
    shown: &mut Shown<'_>,
) -> Result<bool, Failure> {
    let mut intact = true;
    for (session, name) in [("chat-1", "delete one session"), ("chat-2", "delete the last session")]
    {
        let before = (contents(&place.path), ground.worktrees()?, ground.branches()?);
        // This actor may do nothing else: deleting a session needs the session permission only.
        host.delete_session(&Who::new(&ann.actor, Permissions::SESSION), session)?;
        let after = (contents(&place.path), ground.worktrees()?, ground.branches()?);
        let jobs = host.read(&[Read::all(TableId::Jobs)])?.view.jobs.len();
        let same = before == after && jobs == 0;
        intact &= same;
        shown.step(
            name,
            same,
            json!({
                "directory_and_marker": if before.0 == after.0 { "unchanged" } else { "CHANGED" },
                "registration": if before.1 == after.1 { "unchanged" } else { "CHANGED" },
                "branches": if before.2 == after.2 { "unchanged" } else { "CHANGED" },
                "cleanup_jobs": jobs,
            }),
        );
    }
    Ok(intact)
}

fn new_session(
    host: &TourHost,
    ann: &Who,
    place: &Place,
    shown: &mut Shown<'_>,
) -> Result<(), Failure> {
    make_session(host, ann, "chat-3", "build-the-thing")?;
    let rows = host.read(&[Read::by(TableId::Sessions, "id", &["chat-3"])])?;
    let linked = rows.view.sessions.iter().any(|s| s.task_environment_id.is_some());
    let found = std::fs::read_to_string(place.path.join("MARKER")).unwrap_or_default();
    shown.step(
        "a new session finds the same workspace, and the marker",
        linked && found == MARKER,
        json!({"marker": found.trim()}),
    );
    Ok(())
}

/// Promise 2: a worktree that is made while its task is archived.
fn race(
    ground: &Ground,
    host: &TourHost,
    ann: &Who,
    root: &str,
    shown: &mut Shown<'_>,
) -> Result<bool, Failure> {
    make_task(host, ann, "race", "env-race")?;
    let before = (ground.worktrees()?, ground.branches()?);
    let mut archived = None;
    let made = host.make_worktree_between(
        ann,
        &wanted(ground, root, "env-race", "agent/race"),
        &mut |at| {
            if at == "made" {
                archived = Some(host.archive_task(ann, "race", &Operation::new("archive-race")));
            }
        },
    );
    if let Some(archived) = archived {
        archived?;
    }
    let refused = match &made {
        Err(error) => error.to_string(),
        Ok(made) => format!("NOT refused: {}", made.place.path.display()),
    };
    host.tick()?;
    let after = (ground.worktrees()?, ground.branches()?);
    let open = host.unresolved_attempts()?;
    let ok = made.is_err() && before == after && open.is_empty();
    shown.step(
        "a worktree that is made while its task is archived is refused and undone",
        ok,
        json!({
            "answer": refused,
            "registrations_and_branches": if before == after { "as before" } else { "CHANGED" },
            "unresolved_attempts": open.len(),
        }),
    );
    Ok(ok)
}

fn archive(
    ground: &Ground,
    host: &TourHost,
    ann: &Who,
    place: &Place,
    shown: &mut Shown<'_>,
) -> Result<(), Failure> {
    let reply = host.archive_task(ann, "build-the-thing", &Operation::new("archive-1"))?;
    let pending = matches!(reply, Reply::Job { state: JobState::Pending, .. });
    let still = place.path.join("MARKER").is_file()
        && ground.worktrees()?.contains(&place.path.display().to_string());
    shown.step(
        "archive the task: it is archived at once, its worktree is scheduled",
        pending && still,
        json!({"job": if pending { "pending" } else { "NOT pending" }, "worktree": "still there"}),
    );
    Ok(())
}

fn second_process(
    ground: &Ground,
    host: &TourHost,
    place: &Place,
    shown: &mut Shown<'_>,
) -> Result<String, Failure> {
    let said = ground.second_process()?;
    let rows = host.read(&[Read::all(TableId::Salvage)])?;
    let salvage = rows.view.salvage.iter().next();
    let id = salvage.map(|s| freehold_store::names::uuid_text(s.id.0)).unwrap_or_default();
    let gone =
        !place.path.exists() && !ground.worktrees()?.contains(&place.path.display().to_string());
    let branch = ground.branches()?.contains(&place.branch);
    shown.step(
        "restart: a second process on the same store salvages the work and removes the worktree",
        gone && branch && !id.is_empty(),
        json!({
            "second_process": said,
            "salvage_id": id,
            "directory_and_registration": if gone { "gone" } else { "STILL THERE" },
            "branch": if branch { "kept" } else { "GONE" },
        }),
    );
    Ok(id)
}

fn unarchive(
    ground: &Ground,
    host: &TourHost,
    ann: &Who,
    shown: &mut Shown<'_>,
) -> Result<(bool, String), Failure> {
    let reports = host.unarchive_task(ann, "build-the-thing", false)?;
    let Some(report) = reports.first() else {
        return Err(Failure::Untrue("the unarchived task has no repository".to_owned()));
    };
    let Stands::FromBranchAndSalvage(salvage) = &report.stands else {
        return Err(Failure::Untrue(format!("nothing to restore: {:?}", report.stands)));
    };
    let made = host.recreate(ann, &report.repo)?;
    let restored = host.restore(ann, salvage)?;
    let marker = std::fs::read_to_string(made.place.path.join("MARKER")).unwrap_or_default();
    let tracked = std::fs::read_to_string(made.place.path.join("story.txt")).unwrap_or_default();
    let ok = marker == MARKER && tracked == "a tracked file, changed\n";
    shown.step(
        "unarchive: the worktree is made again on its branch, and the work is put back",
        ok && ground.worktrees()?.contains(&made.place.path.display().to_string()),
        json!({
            "marker": marker.trim(),
            "changed_file": tracked.trim(),
            "entries_restored": restored.entries,
        }),
    );
    Ok((ok, report.repo.clone()))
}

/// A transient failure of git is retried, and converges.
fn delete_with_trouble(
    ground: &Ground,
    host: &TourHost,
    ann: &Who,
    repo: &str,
    shown: &mut Shown<'_>,
) -> Result<(), Failure> {
    let rows = host.read(&[Read::by(TableId::Repos, "id", &[repo])])?;
    let path = rows.view.repos.iter().next().and_then(|r| r.worktree_path);
    let path = match path {
        Some(path) => rows.names.show(freehold_kernel::Kind::PathId, path.0),
        None => String::new(),
    };
    host.delete_task(ann, "build-the-thing", &Operation::new("delete-1"))?;
    write(&ground.flag, "")?;
    let moody =
        GitWorkspaces::new().with_program(ground.moody_git.clone(), Duration::from_secs(30));
    let worker = open(ground, moody)?;
    worker.tick()?;
    let waiting = job_states(&worker)?;
    let kept = Path::new(&path).join("MARKER").is_file();
    std::fs::remove_file(&ground.flag)
        .map_err(|e| super::ground::surroundings("the flag file", &e))?;
    for _ in 0..4 {
        worker.tick()?;
    }
    let ended = job_states(&worker)?;
    let ok = kept
        && waiting.contains(&JobState::RetryWait)
        && ended.iter().all(|s| *s == JobState::Succeeded || *s == JobState::Cancelled)
        && !Path::new(&path).exists();
    let codes = |states: &[JobState]| -> Vec<&str> { states.iter().map(|s| s.code()).collect() };
    shown.step(
        "delete: git fails for a while, nothing is lost, the retry converges",
        ok,
        json!({
            "while_git_was_down": codes(&waiting),
            "afterwards": codes(&ended),
        }),
    );
    Ok(())
}

fn job_states(host: &TourHost) -> Result<Vec<JobState>, Failure> {
    let rows = host.read(&[Read::all(TableId::Jobs)])?;
    Ok(rows.view.jobs.iter().map(|j| j.state).collect())
}

fn look_for_leftovers(
    ground: &Ground,
    host: &TourHost,
    shown: &mut Shown<'_>,
) -> Result<Vec<String>, Failure> {
    let rows = host.read(&[
        Read::all(TableId::ManagedRoots),
        Read::all(TableId::Repos),
        Read::all(TableId::Removals),
        Read::all(TableId::Jobs),
    ])?;
    let mut left = Vec::new();
    for place in host.roots()? {
        left.extend(leftovers(&place).into_iter().map(|p| format!("on disk: {}", p.display())));
    }
    let registered = ground.worktrees()?;
    left.extend(registered.iter().skip(1).map(|w| format!("registered: {w}")));
    left.extend(rows.view.repos.iter().map(|r| format!("row: {:?}", r.id)));
    left.extend(
        rows.view
            .removals
            .iter()
            .filter(|r| r.is_unsettled())
            .map(|r| format!("removal: {:?}", r.id)),
    );
    left.extend(host.unresolved_attempts()?.into_iter().map(|a| format!("attempt: {a}")));
    let branch = ground.branches()?.contains(&"agent/thing".to_owned());
    shown.step(
        "nothing is left over: disk, git's list and rows agree",
        left.is_empty() && branch,
        json!({
            "git_worktree_list": registered,
            "branch_with_the_work": if branch { "kept" } else { "GONE" },
            "leftovers": left,
        }),
    );
    Ok(left)
}
