//! `freehold restore`: what is kept, what is in it, and back with it (W-34, W-35).

use std::path::Path;

use clap::Subcommand;
use freehold_git::salvage;
use freehold_kernel::{Guard, Permissions, Unsaved};
use freehold_store::restore::kept;
use freehold_store::{HostError, Kept, KeptAs, Store, Target, Who};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::ground::{host, next, quoted, wait};
use crate::machine::machine_name;
use crate::place::{StoreArgs, StorePlace};
use crate::show::Show;

/// The arguments of `freehold restore`.
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// What to put back, as `freehold restore list` names it: salvage into its own worktree, made
    /// again, or into a new one; trash in place. Never over a worktree that is there.
    id: Option<String>,
    /// For salvage: a new worktree of this environment instead of its own one.
    #[arg(long, value_name = "ENVIRONMENT", conflicts_with = "task")]
    into: Option<String>,
    /// The same for the current environment of this task.
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// The new worktree's branch; without it, the branch that the salvage was taken on.
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Where a new branch starts; without it, where the salvage was taken.
    #[arg(long, value_name = "COMMIT")]
    start: Option<String>,
    #[command(flatten)]
    store: StoreArgs,
    /// Who asks; it stands in the journal.
    #[arg(long, value_name = "NAME", global = true, default_value = "operator")]
    actor: String,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Everything that is kept: salvage and trash.
    List,
    /// What is in one of them, file by file, and the git commands that read it without Freehold.
    Show {
        /// Its id.
        id: String,
    },
}

pub(crate) fn run(args: &Args, out: &mut Show) -> Result<(), Failure> {
    let place = &args.store.place("restore")?;
    match (&args.what, &args.id) {
        (Some(What::List), _) => list(place, out),
        (Some(What::Show { id }), _) => show(place, id, out),
        (None, Some(id)) => back(place, args, id, out),
        (None, None) => Err(Failure::Unknown("what? give an id from the list".to_owned())
            .then(next(&["restore", "list"], place))),
    }
}

fn all(place: &StorePlace) -> Result<Vec<Kept>, Failure> {
    let store = place.open()?;
    let id = wait(store.id())?;
    Ok(wait(kept(&store, &id))?)
}

fn list(place: &StorePlace, out: &mut Show) -> Result<(), Failure> {
    let all = all(place)?;
    let mut shown = Vec::new();
    for one in &all {
        let value = facts(one);
        out.say(&format!(
            "{}  {:<7} {:<9} {} of {} on {}{}",
            one.id,
            word(one.what),
            one.state,
            one.task.as_deref().unwrap_or("no task"),
            one.repository,
            if one.branch.is_empty() { "a detached head" } else { &one.branch },
            words(one.contents).map_or(String::new(), |w| format!(": {}", w.join(", "))),
        ));
        shown.push(value);
    }
    let goes_on = all.first().map(|one| next(&["restore", "show", &one.id], place));
    let words = match &goes_on {
        Some(goes_on) => format!("{} kept; look into one: {goes_on}", all.len()),
        None => "nothing is kept".to_owned(),
    };
    out.result(&json!({"ok": true, "kept": shown, "next": goes_on}), &words);
    Ok(())
}

fn facts(one: &Kept) -> Value {
    json!({
        "id": one.id,
        "kind": word(one.what),
        "state": one.state,
        "task": one.task,
        "repo": one.repo,
        "repository": one.repository,
        "branch": (!one.branch.is_empty()).then_some(&one.branch),
        "base": (!one.base.is_empty()).then_some(&one.base),
        "contents": words(one.contents).unwrap_or_default(),
        "size": one.size,
        "since": one.since.0,
        "until": one.until.map(|t| t.0),
        "root": one.root.path.display().to_string(),
        "machine": one.machine,
        "path": one.path.display().to_string(),
    })
}

fn word(what: KeptAs) -> &'static str {
    match what {
        KeptAs::Salvage => "salvage",
        KeptAs::Trash => "trash",
    }
}

fn words(contents: Unsaved) -> Option<Vec<&'static str>> {
    let words: Vec<&str> =
        Unsaved::WORDS.iter().filter(|(k, _)| contents.covers(*k)).map(|(_, w)| *w).collect();
    (!words.is_empty()).then_some(words)
}

/// The one with this id, which this machine serves.
fn find(place: &StorePlace, id: &str) -> Result<Kept, Failure> {
    let list = || next(&["restore", "list"], place);
    let Some(one) = all(place)?.into_iter().find(|k| k.id == id) else {
        return Err(Failure::Host(HostError::NotThere {
            what: "salvage entry or trash",
            id: id.to_owned(),
            help: "list what is kept",
        })
        .then(list()));
    };
    if one.machine != machine_name() {
        let says = format!("{id} lies on {}; only that machine can look into it", one.machine);
        return Err(Failure::Surroundings(says).then(list()));
    }
    Ok(one)
}

fn show(place: &StorePlace, id: &str, out: &mut Show) -> Result<(), Failure> {
    let one = find(place, id)?;
    let (entries, commands) = match one.what {
        KeptAs::Salvage => salvaged(&one)?,
        KeptAs::Trash => trashed(&one)?,
    };
    out.say(&format!("{} {id}, {}, from {}", word(one.what), one.state, one.path.display()));
    for entry in &entries {
        out.say(&format!("  {}", entry["says"].as_str().unwrap_or_default()));
    }
    out.say("read it with git alone:");
    for command in &commands {
        out.say(&format!("  {command}"));
    }
    let goes_on = next(&["restore", id], place);
    let mut value = facts(&one);
    if let Some(map) = value.as_object_mut() {
        map.insert("ok".into(), true.into());
        map.insert("entries".into(), entries.clone().into());
        map.insert("commands".into(), commands.into());
        map.insert("next".into(), goes_on.clone().into());
    }
    out.result(&value, &format!("{} entries; put it back: {goes_on}", entries.len()));
    Ok(())
}

/// The unsaved things in an entry's list, and how to read them.
fn salvaged(one: &Kept) -> Result<(Vec<Value>, Vec<String>), Failure> {
    let lines = salvage::show(&one.root, &one.name).map_err(HostError::from)?;
    let mut entries = Vec::new();
    for line in lines.iter().skip(1) {
        let Ok(mut line) = serde_json::from_str::<Value>(line) else { continue };
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let says = if line["file"].is_string() && line["unsaved"] == true {
            format!("{} {} {} ({} bytes)", text("class"), text("kind"), text("file"), line["size"])
        } else if line["index"].is_string() && line["base_mode"].is_string() {
            format!("staged {} {}", text("mode"), text("index"))
        } else if line["removed"].is_string() {
            format!("staged as removed {}", text("removed"))
        } else if line["admin"].is_string() {
            format!("state of its own {}", text("admin"))
        } else if line["ref"].is_string() {
            format!("ref of its own {} at {}", text("ref"), text("oid"))
        } else if line["commit"].is_string() {
            format!("commit {}", text("commit"))
        } else if line["note"].is_string() {
            text("note")
        } else {
            continue;
        };
        if let Some(map) = line.as_object_mut() {
            map.insert("says".into(), says.into());
        }
        entries.push(line);
    }
    let list = salvage::list(&one.root).map_err(HostError::from)?;
    let store = list.iter().find(|e| e.ref_name == one.name).map(|e| e.store.clone());
    let dir = quoted(&format!("--git-dir={}", store.unwrap_or_default().display()));
    let entry = quoted(&one.name);
    Ok((
        entries,
        vec![
            format!("git {dir} show {entry}:manifest"),
            format!("git {dir} ls-tree -r {entry}"),
            format!("git {dir} archive {entry} | tar -x -C FOLDER"),
        ],
    ))
}

/// What lies in the trash, one line for each file, and how to look at it.
fn trashed(one: &Kept) -> Result<(Vec<Value>, Vec<String>), Failure> {
    let found = freehold_git::trashed(&one.root, &one.name, Path::new(&one.repository));
    let Some(found) = found else {
        return Err(Failure::Surroundings(format!(
            "the trash {} is not on the disk beside {}",
            one.id,
            one.root.path.display()
        )));
    };
    let entries = found
        .entries
        .iter()
        .map(|path| json!({"says": path.display().to_string(), "file": path.display().to_string()}))
        .collect();
    let folder = quoted(&found.folder.display().to_string());
    let mut commands = vec![format!("ls -la {folder}")];
    if let Some((admin, common)) = &found.admin {
        let (admin, common) = (admin.display().to_string(), common.display().to_string());
        for words in ["status", "diff HEAD"] {
            commands.push(format!(
                "GIT_COMMON_DIR={} GIT_OPTIONAL_LOCKS=0 git --git-dir={} --work-tree={folder} {words}",
                quoted(&common),
                quoted(&admin),
            ));
        }
    }
    Ok((entries, commands))
}

fn back(place: &StorePlace, args: &Args, id: &str, out: &mut Show) -> Result<(), Failure> {
    let one = find(place, id)?;
    let target = Target {
        environment: args.into.clone(),
        task: args.task.clone(),
        branch: args.branch.clone(),
        start: args.start.clone(),
    };
    let host = host(place)?;
    let who = Who::new(&args.actor, Permissions::ALL);
    match host.put_back(&who, id, &target) {
        Ok(done) => {
            for note in &done.restored.notes {
                out.say(&format!("note: {note}"));
            }
            let path = done.made.place.path.display().to_string();
            let look = format!("git -C {} status", quoted(&path));
            let value = json!({
                "ok": true, "restored": id, "kind": word(one.what), "path": path,
                "repo": done.made.repo, "entries": done.restored.entries,
                "contents": words(done.restored.contents).unwrap_or_default(),
                "notes": done.restored.notes, "next": look,
            });
            let words =
                format!("{} entries are back in {path}; look: {look}", done.restored.entries);
            out.result(&value, &words);
            Ok(())
        }
        Err(error) => {
            let next = after(&error, &one, place);
            Err(Failure::Host(error).then(next))
        }
    }
}

/// The command that goes on from a refusal, naming the real object.
fn after(error: &HostError, one: &Kept, place: &StorePlace) -> String {
    let list = || next(&["restore", "list"], place);
    let show = || next(&["restore", "show", &one.id], place);
    match error {
        HostError::Live { path, .. } => {
            format!("git -C {} status", quoted(&path.display().to_string()))
        }
        HostError::Workspace(_) | HostError::NotThere { .. } => show(),
        HostError::Refused(_) | HostError::UnsavedWork { .. } | HostError::Undone { .. } => {
            match error.guard() {
                // A making or a removal is under way, or its instance is gone: the worker ends it.
                Some(
                    Guard::SlotUnattempted
                    | Guard::NoUnsettledRemoval
                    | Guard::NotInRemoval
                    | Guard::TaskUnbarred
                    | Guard::TrashKept,
                ) => next(&["work"], place),
                Some(_) | None => show(),
            }
        }
        HostError::Store(_) | HostError::Name(_) | HostError::Start(_) => list(),
    }
}
