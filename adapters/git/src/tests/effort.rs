//! What a removal asks of git and of the disk: no more than it must, and never more for each file
//! because there are many. And what it may leave unasked (W-33, W-35).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use freehold_kernel::{RemovalStep, Unsaved};
use freehold_store::workspaces::{Place, SalvageMade};

use super::dirty::with_submodule;
use super::fixture::{Fixture, STEPS, git};
use crate::faults::{Call, CallKind, Faults, Under};

/// Counts calls, and does something once, right after a git command.
#[derive(Default)]
struct Watched {
    commands: Mutex<Vec<String>>,
    others: Mutex<usize>,
    after: Mutex<Option<After>>,
    /// A git command that cannot be started.
    fails: Option<&'static str>,
}

type After = (&'static str, Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}

impl Faults for Watched {
    fn before(&self, call: &Call<'_>) -> Option<i32> {
        match call.kind {
            CallKind::Command => self.commands.lock().unwrap().push(call.name.to_owned()),
            CallKind::Look | CallKind::Change => *self.others.lock().unwrap() += 1,
        }
        let fails = call.kind == CallKind::Command && self.fails == Some(call.name);
        fails.then_some(rustix::io::Errno::NOMEM.raw_os_error())
    }

    fn after(&self, call: &Call<'_>) -> Option<i32> {
        let due = self.after.lock().unwrap().take_if(|(name, _)| *name == call.name);
        if let Some((_, work)) = due {
            work();
        }
        None
    }
}

/// Does the work and tells what it asked.
fn watched<T>(watched: &Arc<Watched>, work: impl FnOnce() -> T) -> T {
    let faults: Arc<dyn Faults> = Arc::<Watched>::clone(watched);
    let _here = Under::new(Some(faults));
    work()
}

/// Commands and other calls of a whole removal of a worktree with so many files.
fn effort(files: usize, is_dirty: bool) -> (Vec<String>, usize) {
    let f = Fixture::new();
    for n in 0..files {
        fs::write(f.main.join(format!("file-{n}")), format!("{n}\n")).unwrap();
    }
    git(&f.main, &["add", "--all"]);
    git(&f.main, &["commit", "--quiet", "-m", "many"]);
    let place = f.made("w");
    if is_dirty {
        for n in 0..files {
            fs::write(place.path.join(format!("file-{n}")), format!("{n}, changed\n")).unwrap();
            fs::write(place.path.join(format!("new-{n}")), format!("{n}, new\n")).unwrap();
        }
    }
    let seen = Arc::new(Watched::default());
    watched(&seen, || f.remove(&place, "r1"));
    f.assert_gone(&place);
    let (commands, others) = (seen.commands.lock().unwrap(), seen.others.lock().unwrap());
    (commands.clone(), *others)
}

#[test]
fn a_removal_of_many_files_asks_git_no_more_often() {
    for is_dirty in [false, true] {
        let ((few, small), (many, large)) = (effort(40, is_dirty), effort(240, is_dirty));
        assert_eq!(few, many, "dirty: {is_dirty}");
        // Each file is looked at by a few walks, and read and written by a salvage.
        let most = if is_dirty { 60 } else { 12 };
        let each = (large - small).div_ceil(200);
        assert!(each <= most, "{each} calls for each file, dirty: {is_dirty}");
    }
}

/// A step of a removal, and whether a salvage looked at the worktree.
fn step(f: &Fixture, place: &Place, step: RemovalStep) -> (Option<SalvageMade>, bool) {
    let seen = Arc::new(Watched::default());
    let done = watched(&seen, || f.step(place, "r1", step)).unwrap();
    let looked = seen.commands.lock().unwrap().iter().any(|name| name == "ls-tree");
    (done.salvage, looked)
}

#[test]
fn where_nothing_but_the_commit_is_there_nothing_is_salvaged() {
    let f = Fixture::new();
    let place = f.made("w");
    assert_eq!(step(&f, &place, RemovalStep::Salvaged), (None, false));
    for next in &STEPS[1..] {
        f.step(&place, "r1", *next).unwrap();
    }
    f.assert_gone(&place);
}

/// Git has nothing to say of any of these, and that is not all there is.
#[test]
fn what_git_calls_clean_is_looked_at_unless_it_is_plainly_so() {
    type Case = (&'static str, fn(&Fixture, &Place), Option<Unsaved>);
    let cases: [Case; 8] = [
        ("an empty folder", |_, p| fs::create_dir(p.path.join("a")).unwrap(), {
            Some(Unsaved::UNTRACKED)
        }),
        // In the order of bytes it does not stand right before what is in `src`.
        (
            "an empty folder whose name is followed by that of a file",
            |_, p| {
                fs::create_dir(p.path.join("a")).unwrap();
                fs::create_dir(p.path.join("src/a")).unwrap();
            },
            Some(Unsaved::UNTRACKED),
        ),
        (
            "a pipe",
            |_, p| {
                let made = Command::new("mkfifo").arg(p.path.join("pipe")).status().unwrap();
                assert!(made.success());
            },
            Some(Unsaved::IGNORED),
        ),
        (
            "a detached head",
            |_, p| {
                git(&p.path, &["checkout", "--quiet", "--detach"]);
            },
            Some(Unsaved::NONE),
        ),
        (
            "another file, if case did not count",
            |f, p| {
                git(&f.main, &["config", "core.ignoreCase", "true"]);
                fs::write(p.path.join("A.TXT"), "mine").unwrap();
            },
            Some(Unsaved::IGNORED),
        ),
        ("a submodule", with_submodule, Some(Unsaved::SUBMODULE)),
        (
            "the repository of a submodule that the index has no more",
            |f, p| {
                with_submodule(f, p);
                git(&p.path, &["rm", "--quiet", "-r", "sub"]);
                git(&p.path, &["commit", "--quiet", "-m", "without"]);
            },
            Some(Unsaved::SUBMODULE),
        ),
        ("refs in tables", |f, p| fs::create_dir(f.admin(p).join("reftable")).unwrap(), None),
    ];
    for (what, change, kept) in cases {
        let f = Fixture::new();
        let place = f.made("w");
        change(&f, &place);
        assert_eq!(f.inspect(&place).evidence.unsaved, Unsaved::NONE, "{what}: another test's");
        let (made, looked) = step(&f, &place, RemovalStep::Salvaged);
        assert!(looked, "{what}");
        assert_eq!(made.map(|m| m.contents), kept, "{what}");
    }
}

/// With the user's filters on, git could call anything clean (W-32).
#[test]
fn a_look_that_could_not_read_the_settings_is_unknown() {
    let f = Fixture::new();
    let place = f.made("w");
    let seen = Arc::new(Watched { fails: Some("config"), ..Watched::default() });
    let found = watched(&seen, || crate::inspect::inspect(&crate::process::Git::new(), &place));
    assert_eq!(found.evidence.unsaved, Unsaved::UNKNOWN, "{:?}", found.details);
}

/// What the manifest says is read before git is asked: it is the only look at what a worktree
/// holds that git calls clean (W-35).
#[test]
fn what_changes_after_git_looked_is_found_after_the_rename() {
    let write: fn(&Path, &Path) = |tree, _| fs::write(tree.join("a.txt"), "b\n").unwrap();
    let new: fn(&Path, &Path) = |tree, _| fs::write(tree.join("late"), "late\n").unwrap();
    let own: fn(&Path, &Path) = |tree, _| {
        git(tree, &["update-ref", "refs/worktree/mine", "HEAD"]);
    };
    let cases = [
        ("status", write, Unsaved::TRACKED),
        ("status", new, Unsaved::UNTRACKED),
        ("rev-list", own, Unsaved::PRIVATE),
    ];
    for (after, change, kind) in cases {
        let f = Fixture::new();
        let place = f.made("w");
        let seen = Arc::new(Watched::default());
        let (tree, admin): (PathBuf, PathBuf) = (place.path.clone(), f.admin(&place));
        let work: Box<dyn FnOnce() + Send> = Box::new(move || change(&tree, &admin));
        *seen.after.lock().unwrap() = Some((after, work));
        let done = watched(&seen, || f.step(&place, "r1", RemovalStep::Salvaged)).unwrap();
        assert!(seen.after.lock().unwrap().is_none(), "it was never asked: {after}");
        let early = done.salvage.map(|s| s.contents);
        // A file that no memory of the index proves is read after git has looked.
        assert!(early.is_none() || kind == Unsaved::TRACKED, "it was changed too early: {after}");
        f.step(&place, "r1", RemovalStep::Renamed).unwrap();
        let compared = f.step(&place, "r1", RemovalStep::Compared).unwrap();
        assert_eq!(compared.salvage.map(|s| s.contents).or(early), Some(kind), "after {after}");
    }
}
