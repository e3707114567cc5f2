//! One instance: a process that does random lifecycle work until it is killed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use freehold_git::GitWorkspaces;
use freehold_kernel::*;
use freehold_store::{
    Clock, Host, HostError, NoRuntimes, OnThisThread, Operation, Read, Stands, StoreError, Wanted,
    Workspaces,
};

use crate::draw::Draw;
use crate::support::*;

/// What a process is told by its environment.
pub(crate) const STORE: &str = "FREEHOLD_KILLS_STORE";
pub(crate) const FOLDER: &str = "FREEHOLD_KILLS_FOLDER";
pub(crate) const ROOT: &str = "FREEHOLD_KILLS_ROOT";
pub(crate) const SEED: &str = "FREEHOLD_KILLS_SEED";

/// How long the store may be away before an instance gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Not a test of its own: what the tests start in processes that they kill.
#[test]
fn kills_the_instance() {
    let Ok(store) = std::env::var(STORE) else { return };
    let seeds: Vec<u64> =
        std::env::var(SEED).unwrap().split(' ').map(|n| n.parse().unwrap()).collect();
    let place = StorePlace::told(&store);
    let folder = PathBuf::from(std::env::var(FOLDER).unwrap());
    let root = std::env::var(ROOT).unwrap();
    let mut draw = Draw::new(&seeds);
    let mut number = 0;
    loop {
        // Every call to the disk is said before and after it, so that a fault comes at each.
        let host = start(&place, || {
            Hooked::new(patient_git(), |_, call| {
                say(&format!("at: {call}"));
                Act::Go
            })
        });
        let mut instance = Instance {
            host,
            folder: &folder,
            root: &root,
            draw: &mut draw,
            round: seeds[1],
            number,
        };
        // Until the store is away for longer than a call waits; then with fresh connections.
        while instance.go_on() {}
        number = instance.number;
    }
}

/// A path that another holds is tried again by a later tick.
pub(crate) fn patient_git() -> GitWorkspaces {
    GitWorkspaces::new().with_lock_wait(Duration::from_millis(200))
}

/// An instance on the store, once that can be reached.
pub(crate) fn start<W: Workspaces>(place: &StorePlace, workspaces: impl Fn() -> W) -> AnyHost<W> {
    let began = Instant::now();
    loop {
        let started = place.try_open(&Clock::System).map_err(HostError::from).and_then(|store| {
            Host::start(store, workspaces(), OnThisThread, Box::new(NoRuntimes), "test-machine")
        });
        match started {
            Ok(host) => return host,
            Err(HostError::Store(error))
                if error.may_pass_later() && began.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => panic!("no instance can be started: {error}"),
        }
    }
}

struct Instance<'a> {
    host: AnyHost<Hooked<'static>>,
    folder: &'a Path,
    root: &'a str,
    draw: &'a mut Draw,
    round: u64,
    number: u32,
}

/// What came of one thing that was asked.
type Came = Result<(), HostError>;

impl Instance<'_> {
    /// Does one thing and says what came of it. False if the store was not there.
    fn go_on(&mut self) -> bool {
        self.number += 1;
        let (what, came) = self.one_thing();
        let (word, there) = match &came {
            Ok(()) => ("done".to_owned(), true),
            Err(
                HostError::Refused(_) | HostError::UnsavedWork { .. } | HostError::Undone { .. },
            ) => ("refused".to_owned(), true),
            Err(HostError::NotThere { .. }) => ("not there".to_owned(), true),
            Err(HostError::Workspace(_)) => ("failed on the disk".to_owned(), true),
            Err(HostError::Store(StoreError::Unknown { .. })) => ("lost reply".to_owned(), false),
            Err(HostError::Store(error)) if error.may_pass_later() => {
                ("no store".to_owned(), false)
            }
            // A defect, damage, a store that is none: never, whatever is killed.
            Err(error) => (format!("broken: {error}"), true),
        };
        say(&format!("{word}: {what}"));
        there
    }

    fn one_thing(&mut self) -> (&'static str, Came) {
        match self.draw.below(20) {
            0..=3 => ("create", self.create()),
            4..=6 => ("write", self.write()),
            7..=8 => ("archive", self.close(true)),
            9 => ("delete", self.close(false)),
            10..=11 => ("unarchive", self.unarchive()),
            12 => ("reset", self.reset()),
            13 => ("session", self.session()),
            14 => ("make", self.make_another()),
            _ => ("tick", self.host.tick().map(|_| ())),
        }
    }

    /// The names of the tasks there are, or of those that stand so.
    fn tasks(&self, lifecycle: Option<TaskLifecycle>) -> Result<Vec<String>, HostError> {
        let rows = self.host.read(&[Read::all(TableId::Tasks)])?;
        rows.view
            .tasks
            .iter()
            .filter(|t| lifecycle.is_none_or(|l| t.lifecycle == l))
            .map(|t| Ok(rows.names.text(Kind::TaskId, t.id.0).map_err(StoreError::from)?))
            .collect()
    }

    fn any(&mut self, lifecycle: Option<TaskLifecycle>) -> Result<Option<String>, HostError> {
        let tasks = self.tasks(lifecycle)?;
        // Half of what is done is done to the same one, so that instances meet.
        let one = if self.draw.once_in(2) { tasks.last() } else { self.draw.one(&tasks) };
        Ok(one.cloned())
    }

    /// A task that another instance may be about to create too, with everything in it.
    fn create(&mut self) -> Came {
        let t = format!("t{}-{}", self.round, self.draw.below(8));
        let parent = if self.draw.once_in(3) { self.any(None)? } else { None };
        go_on_if_refused(child_task(&self.host, &t, parent.as_deref()))?;
        go_on_if_refused(environment(&self.host, &format!("e-{t}"), &t))?;
        go_on_if_refused(session(&self.host, &format!("s-{t}"), &t, None))?;
        self.make(&t)?;
        self.write_into(&t)
    }

    fn make_another(&mut self) -> Came {
        match self.any(Some(TaskLifecycle::Active))? {
            Some(t) => self.make(&t),
            None => Ok(()),
        }
    }

    fn make(&mut self, task: &str) -> Came {
        let branch = format!("b{}-{}", std::process::id(), self.number);
        let wanted = Wanted {
            environment: format!("e-{task}"),
            repository: self.folder.join("repository").display().to_string(),
            slug: branch.clone(),
            branch: branch.clone(),
            start: None,
            root: self.root.to_owned(),
        };
        let folder = self.folder;
        let made = self.host.make_worktree_between(&ann(), &wanted, &mut |at| {
            say(&format!("at: {at}"));
            if at == "materialised" {
                // From here on the branch may stay whatever becomes of its row.
                note(folder, &["branch", &branch]);
            }
        })?;
        note(folder, &["made", &made.place.stamp, made.place.path.to_str().unwrap()]);
        Ok(())
    }

    fn write(&mut self) -> Came {
        match self.any(None)? {
            Some(t) => self.write_into(&t),
            None => Ok(()),
        }
    }

    /// Puts a marker into one of the task's worktrees, all at once, and writes it down after that.
    fn write_into(&mut self, task: &str) -> Came {
        let places = self.host.places_of(task)?;
        let Some(place) = self.draw.one(&places) else { return Ok(()) };
        let name = format!("MARKER-{}-{}", std::process::id(), self.number);
        let kept = self.folder.join("markers").join(&name);
        std::fs::write(&kept, format!("{name} of {task}\n")).unwrap();
        let coming = self.folder.join(format!("coming-{name}"));
        std::fs::copy(&kept, &coming).unwrap();
        // The worktree may be gone by now: then nobody was told that the marker is safe.
        match std::fs::rename(&coming, place.path.join(&name)) {
            Ok(()) => note(self.folder, &["marker", &place.stamp, &name]),
            Err(_) => std::fs::remove_file(&coming).unwrap(),
        }
        Ok(())
    }

    /// Archives or deletes a task, with what is under it or alone; now and then under an id that
    /// was asked for before.
    fn close(&mut self, archive: bool) -> Came {
        let Some(t) = self.any(None)? else { return Ok(()) };
        let again = self.draw.once_in(4);
        let n = if again { 0 } else { self.number };
        let id = format!("{} {t} {} {n}", archive, if again { 0 } else { std::process::id() });
        let mut operation = Operation::new(&id);
        operation.cascade = self.draw.once_in(3);
        let reply = match archive {
            true => self.host.archive_task(&ann(), &t, &operation),
            false => self.host.delete_task(&ann(), &t, &operation),
        };
        reply.map(|_| ())
    }

    /// Unarchives, and makes one of its worktrees whole again.
    fn unarchive(&mut self) -> Came {
        let Some(t) = self.any(Some(TaskLifecycle::Archived))? else { return Ok(()) };
        let cascade = self.draw.once_in(2);
        let reports = self.host.unarchive_task(&ann(), &t, cascade)?;
        let Some(report) = self.draw.one(&reports) else { return Ok(()) };
        match &report.stands {
            Stands::Kept | Stands::InRemoval => {}
            Stands::FromBranch => self.recreate(&report.repo)?,
            Stands::FromBranchAndSalvage(salvage) => {
                self.recreate(&report.repo)?;
                self.host.restore(&ann(), salvage)?;
            }
            Stands::FromTrash(trash) => {
                self.host.put_back(&ann(), trash, &freehold_store::Target::default())?;
            }
        }
        Ok(())
    }

    fn recreate(&self, repo: &str) -> Came {
        let made = self.host.recreate(&ann(), repo)?;
        note(self.folder, &["made", &made.place.stamp, made.place.path.to_str().unwrap()]);
        Ok(())
    }

    fn reset(&mut self) -> Came {
        let Some(t) = self.any(Some(TaskLifecycle::Active))? else { return Ok(()) };
        let id = format!("reset {} {}", std::process::id(), self.number);
        let reset = Operation::new(&id);
        self.host.reset_environment(&ann(), &t, &format!("e-{t}"), &reset).map(|_| ())
    }

    fn session(&mut self) -> Came {
        let rows = self.host.read(&[Read::all(TableId::Sessions)])?;
        let all: Vec<u128> = rows.view.sessions.iter().map(|s| s.id.0).collect();
        let chosen = self.draw.one(&all).copied();
        match (self.draw.below(3), chosen) {
            (0, Some(s)) => {
                let s = rows.names.text(Kind::SessionId, s).map_err(StoreError::from)?;
                self.host.archive_session(&ann(), &s)
            }
            (1, Some(s)) => {
                let s = rows.names.text(Kind::SessionId, s).map_err(StoreError::from)?;
                self.host.delete_session(&ann(), &s)
            }
            _another => {
                let Some(t) = self.any(None)? else { return Ok(()) };
                let s = format!("s{}-{}", std::process::id(), self.number);
                session(&self.host, &s, &t, None)
            }
        }
    }
}

/// Another instance may have made it, or the task is barred: the next call says more.
fn go_on_if_refused(came: Came) -> Came {
    match came {
        Err(HostError::Refused(_)) => Ok(()),
        other => other,
    }
}

/// Tells the test.
fn say(word: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "\nKILLS {}", word.replace('\n', " ")).unwrap();
    out.flush().unwrap();
}

/// Adds a line to the ledger of what is on the disk now, in one write.
fn note(folder: &Path, words: &[&str]) {
    let ledger = folder.join("ledger");
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(ledger).unwrap();
    file.write_all(format!("{}\n", words.join("\t")).as_bytes()).unwrap();
}
