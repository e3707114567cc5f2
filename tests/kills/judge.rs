//! What is true once every instance is gone and recovery has done its work.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use freehold_kernel::properties::{Disk, Physical, Place, check_goals, check_state};
use freehold_kernel::*;
use freehold_store::names::id_of;
use freehold_store::{HostError, Read, Rows};

use crate::instance::{patient_git, start};
use crate::storm::{Arena, Seen};
use crate::support::*;

/// How long recovery may take before it is said to hang. Leases are of two seconds, but how long a
/// look at a worktree takes is up to the machine.
const PATIENCE: Duration = Duration::from_secs(900);

fn everything(host: &TestHost) -> Rows {
    let reads: Vec<Read> = TableId::ALL.iter().map(|t| Read::all(*t)).collect();
    host.read(&reads).unwrap()
}

/// Looks at what the killed ones left, and ticks until nothing is left to do. How long that took.
pub(crate) fn come_to_rest(arena: &Arena) -> Duration {
    let began = Instant::now();
    let mut host = start(&arena.ground.store, patient_git);
    // What was cut off in the middle is a reachable world: its rows keep what they promise.
    holds(check_state(&everything(&host).view, &Disk::default()));
    let mut troubles = Vec::new();
    loop {
        match host.tick() {
            Ok(ticked) => troubles = ticked.troubles,
            // Connections of the pool may still be those to a server that was killed.
            Err(HostError::Store(error)) if error.may_pass_later() => {
                host = start(&arena.ground.store, patient_git);
            }
            Err(error) => panic!("recovery fails: {error}"),
        }
        if open_work(&host).is_empty() && check_goals(&everything(&host).view).is_ok() {
            return began.elapsed();
        }
        assert!(
            began.elapsed() < PATIENCE,
            "not at rest: {:?}, {:?}; troubles: {troubles:#?}",
            open_work(&host),
            check_goals(&everything(&host).view)
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn holds(checked: Result<(), (&'static properties::Property, properties::Witness)>) {
    if let Err((property, witness)) = checked {
        panic!("{} {} is broken: {witness}", property.id, property.name);
    }
}

/// Rows, disk, git and markers. Returns how much of each was looked at.
pub(crate) fn judge(arena: &Arena) -> Seen {
    let ground = &arena.ground;
    let host = start(&ground.store, patient_git);
    let rows = everything(&host);
    let failed: Vec<_> =
        rows.view.jobs.iter().filter(|j| j.state == JobState::Failed).map(|j| j.id).collect();
    assert_eq!(failed, [], "jobs that failed for good");
    let ledger = Ledger::read(ground.folder.path());
    let there: BTreeSet<String> = ground.branches().into_iter().collect();
    let earlier: Vec<&str> = ledger.branches.intersection(&there).map(String::as_str).collect();
    assert_tracked(ground, &host, &earlier);
    let kept = salvaged(ground);
    let homes = homes(ground);
    let lost: Vec<&str> = ledger
        .markers
        .iter()
        .filter(|(_, name)| !kept.contains(name) && !is_at_home(ground, &homes, name))
        .map(|(_, name)| name.as_str())
        .collect();
    assert_eq!(lost, Vec::<&str>::new(), "markers that are neither at home nor in salvage");
    let disk = disk(&rows, &ledger, &homes, &kept);
    holds(check_state(&rows.view, &disk));
    holds(check_goals(&rows.view));
    let mut found = Seen::default();
    let view = &rows.view;
    let adopted = |state| view.attempts.iter().filter(|a| a.state == state).count();
    let cancelled = view.jobs.iter().filter(|j| j.state == JobState::Cancelled).count();
    let gone = disk.worktrees.iter().filter(|w| w.place == Place::Gone).count();
    found.put("markers", ledger.markers.len());
    found.put("markers in salvage", ledger.markers.iter().filter(|m| kept.contains(&m.1)).count());
    found.put("worktrees there", homes.len());
    found.put("worktrees removed", gone);
    found.put("attempts undone", adopted(AttemptState::Compensated));
    found.put("jobs", view.jobs.len());
    found.put("jobs cancelled", cancelled);
    found
}

/// What the instances wrote down of what they had put on the disk.
#[derive(Default)]
struct Ledger {
    branches: BTreeSet<String>,
    /// Stamp and path.
    made: BTreeMap<String, PathBuf>,
    /// Stamp of the worktree and the marker's name.
    markers: Vec<(String, String)>,
}

impl Ledger {
    fn read(folder: &Path) -> Ledger {
        let mut ledger = Ledger::default();
        let text = std::fs::read_to_string(folder.join("ledger")).unwrap_or_default();
        for line in text.lines() {
            match *line.split('\t').collect::<Vec<_>>() {
                ["branch", name] => drop(ledger.branches.insert(name.to_owned())),
                ["made", stamp, path] => {
                    ledger.made.insert(stamp.to_owned(), PathBuf::from(path));
                }
                ["marker", stamp, name] => {
                    ledger.markers.push((stamp.to_owned(), name.to_owned()));
                }
                _ => panic!("a line of the ledger cannot be read: {line:?}"),
            }
        }
        ledger
    }
}

/// Every worktree under the root, by the stamp that its registration carries.
fn homes(ground: &Ground) -> BTreeMap<String, PathBuf> {
    let mut homes = BTreeMap::new();
    for folder in entries(&ground.root_path) {
        if folder.file_name().is_some_and(|n| n.to_string_lossy().starts_with(".freehold")) {
            continue;
        }
        for path in entries(&folder) {
            let link = std::fs::read_to_string(path.join(".git")).unwrap();
            let admin = PathBuf::from(link.trim().strip_prefix("gitdir: ").unwrap());
            let stamp = std::fs::read_to_string(admin.join("freehold")).unwrap();
            homes.insert(stamp.lines().next().unwrap().to_owned(), path);
        }
    }
    homes
}

fn is_at_home(ground: &Ground, homes: &BTreeMap<String, PathBuf>, name: &str) -> bool {
    let original = std::fs::read(ground.folder.path().join("markers").join(name)).unwrap();
    homes.values().any(|home| std::fs::read(home.join(name)).is_ok_and(|there| there == original))
}

/// The markers whose content, byte for byte, can be reached from a ref of the salvage store.
fn salvaged(ground: &Ground) -> BTreeSet<String> {
    let markers = entries(&ground.folder.path().join("markers"));
    let stores = entries(&ground.root_path.join(".freehold"));
    let stores = stores.iter().map(|store| store.join("salvage.git")).filter(|s| s.is_dir());
    let mut objects = BTreeSet::new();
    for store in stores {
        let dir = format!("--git-dir={}", store.display());
        let listed = git_in(&ground.repository, &[&dir, "rev-list", "--objects", "--all"]);
        objects.extend(listed.lines().filter_map(|l| l.split(' ').next()).map(str::to_owned));
    }
    let mut kept = BTreeSet::new();
    for some in markers.chunks(500) {
        let paths: Vec<&str> = some.iter().map(|p| p.to_str().unwrap()).collect();
        let hashes = git_in(&ground.repository, &[&["hash-object"], paths.as_slice()].concat());
        for (path, hash) in some.iter().zip(hashes.lines()) {
            if objects.contains(hash) {
                kept.insert(path.file_name().unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    kept
}

/// The physical world as the properties see it: what stands under the root, and what was made and
/// is gone.
fn disk(
    rows: &Rows,
    ledger: &Ledger,
    homes: &BTreeMap<String, PathBuf>,
    kept: &BTreeSet<String>,
) -> Disk {
    let root = rows.view.managed_roots.iter().next().unwrap().id;
    let mut worktrees = Vec::new();
    let all: BTreeMap<&String, &PathBuf> = ledger.made.iter().chain(homes).collect();
    for (stamp, path) in all {
        let identity = WorktreeId(id_of(Kind::WorktreeId, stamp));
        let maker = rows.view.attempts.iter().find(|a| a.worktree_id == identity).map(|a| a.id);
        let of_it = || ledger.markers.iter().filter(|(s, _)| s == stamp);
        let gone = !homes.contains_key(stamp);
        let last = rows
            .view
            .removals
            .iter()
            .filter(|r| r.identity == Some(identity))
            .max_by_key(|r| (r.created_at, r.id));
        let bits = |there: bool| if there { Unsaved::UNTRACKED } else { Unsaved::NONE };
        worktrees.push(Physical {
            identity,
            root,
            path: PathId(id_of(Kind::PathId, path.to_str().unwrap())),
            // All of these were made by Freehold; the attempt's row may have gone with its task.
            made_by: Some(maker.unwrap_or(AttemptId(0))),
            place: if gone { Place::Gone } else { Place::AtHome },
            unsaved: bits(of_it().next().is_some()),
            salvaged: bits(of_it().all(|(_, name)| kept.contains(name))),
            moved_by: last.filter(|_| gone).map(|r| r.id),
        });
    }
    Disk { worktrees, hands: Vec::new() }
}
