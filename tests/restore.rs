//! What is kept comes back: salvage into a worktree that is made for it, trash in place; trash
//! whose time is over goes, salvage only by consent (W-34, W-35, D-20).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command as Program, Output, Stdio};

use freehold_git::GitWorkspaces;
use freehold_kernel::*;
use freehold_store::names::uuid_text;
use freehold_store::{Clock, Host, HostError, KeptAs, NoRuntimes, OnThisThread, Operation, Target};
use serde_json::Value;
use support::steps::*;
use support::*;

fn run(ground: &Ground, words: &[&str]) -> (i32, Value) {
    let output = ground.program(words).arg("--json").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(text.trim_end().lines().count(), 1, "one object: {text}{said}");
    (output.status.code().unwrap(), serde_json::from_str(&text).unwrap())
}

/// Runs a command line as a person would paste it.
fn paste(line: &str) -> Output {
    let folder = Path::new(env!("CARGO_BIN_EXE_freehold")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let output = Program::new("sh").args(["-c", line]).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn keep_trash(host: &TestHost, span: Span) {
    host.change_settings(&ann(), |old| Settings { trash_retention: span, ..old }, None).unwrap();
}

/// Work of every common kind: staged, changed again, untracked, ignored, a link, a mode.
fn busy(worktree: &Path) {
    mark(worktree);
    std::fs::write(worktree.join("staged"), "staged\n").unwrap();
    git_in(worktree, &["add", "staged"]);
    std::fs::write(worktree.join("staged"), "staged, and changed\n").unwrap();
    std::fs::write(worktree.join(".gitignore"), "*.log\n").unwrap();
    std::fs::write(worktree.join("a.log"), "log\n").unwrap();
    std::os::unix::fs::symlink("nowhere", worktree.join("link")).unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(worktree.join("MARKER"), mode).unwrap();
}

fn the_one(host: &TestHost, what: KeptAs) -> freehold_store::Kept {
    let mut all: Vec<_> = host.kept().unwrap().into_iter().filter(|k| k.what == what).collect();
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

fn back_to_life(host: &TestHost) {
    work(host);
    host.unarchive_task(&ann(), "t", false).unwrap();
}

#[test]
fn salvage_is_listed_shown_with_git_alone_and_put_back_by_the_program() {
    let ground = Ground::new();
    let host = ground.host_here();
    let (_, made) = settled(&ground, &host);
    busy(&made.place.path);
    let before = state(&made.place.path);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    work(&host);
    let (code, list) = run(&ground, &["restore", "list"]);
    assert_eq!(code, 0);
    let kept = &list["kept"][0];
    let id = kept["id"].as_str().unwrap();
    assert_eq!((&kept["kind"], &kept["task"]), (&"salvage".into(), &"t".into()));
    assert_eq!((&kept["state"], &kept["branch"]), (&"verified".into(), &"b".into()));
    assert_eq!(kept["base"], ground.git(&["rev-parse", "main"]));
    assert_eq!(kept["path"], made.place.path.display().to_string());
    assert!(kept["until"].is_null(), "salvage does not expire by itself");
    // The list's own next command shows it, file by file.
    paste(list["next"].as_str().unwrap());
    let (_, shown) = run(&ground, &["restore", "show", id]);
    let files: Vec<&str> =
        shown["entries"].as_array().unwrap().iter().filter_map(|e| e["file"].as_str()).collect();
    for file in ["story.txt", "MARKER", "staged", ".gitignore", "a.log", "link"] {
        assert!(files.contains(&file), "{file} is not shown: {files:?}");
    }
    let folder = ground.folder.path().join("by hand");
    std::fs::create_dir(&folder).unwrap();
    for command in shown["commands"].as_array().unwrap() {
        let quoted = format!("'{}'", folder.display());
        paste(&command.as_str().unwrap().replace("FOLDER", &quoted));
    }
    assert_eq!(std::fs::read(folder.join("worktree/MARKER")).unwrap(), b"marker\n");
    assert_eq!(std::fs::read(folder.join("ignored/a.log")).unwrap(), b"log\n");
    // Its task is archived: nothing new comes under it, and nothing was made.
    let (code, refusal) = run(&ground, &["restore", id]);
    assert_eq!((code, &refusal["error"]), (1, &"task_active".into()), "{refusal}");
    paste(refusal["next"].as_str().unwrap());
    assert_eq!(ground.registered(), Vec::<std::path::PathBuf>::new());
    back_to_life(&host);
    let (code, done) = run(&ground, &["restore", id]);
    assert_eq!((code, &done["notes"]), (0, &serde_json::json!([])), "{done}");
    let path = Path::new(done["path"].as_str().unwrap());
    assert_eq!(state(path), before);
    paste(done["next"].as_str().unwrap());
    // Never over a live worktree, not even over what it has put there itself.
    std::fs::write(path.join("story.txt"), "newer\n").unwrap();
    let (code, refusal) = run(&ground, &["restore", id]);
    assert_eq!((code, &refusal["error"]), (1, &"live".into()), "{refusal}");
    paste(refusal["next"].as_str().unwrap());
    assert_eq!(std::fs::read(path.join("story.txt")).unwrap(), b"newer\n");
    let (code, refusal) = run(&ground, &["restore", &uuid_text(fresh())]);
    assert_eq!((code, &refusal["error"]), (2, &"not_there".into()));
    paste(refusal["next"].as_str().unwrap());
    assert_eq!(run(&ground, &["doctor"]).0, 0);
}

#[test]
fn what_a_deleted_task_left_goes_into_a_new_worktree_of_another() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    busy(&made.place.path);
    let before = state(&made.place.path);
    host.delete_task(&ann(), "t", &Operation::new("o")).unwrap();
    work(&host);
    let id = the_one(&host, KeptAs::Salvage).id;
    let error = host.put_back(&ann(), &id, &Target::default()).unwrap_err();
    assert!(matches!(error, HostError::NotThere { .. }), "{error}");
    task(&host, "t2").unwrap();
    environment(&host, "e2", "t2").unwrap();
    // Its branch is checked out elsewhere: git's own word, and the way on.
    let taken = ground.folder.path().join("taken");
    ground.git(&["worktree", "add", "--quiet", taken.to_str().unwrap(), "b"]);
    let into = Target { task: Some("t2".to_owned()), ..Target::default() };
    let error = host.put_back(&ann(), &id, &into).unwrap_err();
    let HostError::Workspace(error) = error else { panic!("{error}") };
    assert_eq!(error.reason, Reason::OwnedElsewhere);
    ground.git(&["worktree", "remove", taken.to_str().unwrap()]);
    let done = host.put_back(&ann(), &id, &into).unwrap();
    assert_eq!(done.restored.notes, Vec::<String>::new());
    assert_eq!(state(&done.made.place.path), before);
    // The same once more, beside it: a new worktree on a branch of its own.
    let into = Target { branch: Some("again".to_owned()), ..into };
    let again = host.put_back(&ann(), &id, &into).unwrap();
    assert_eq!(state(&again.made.place.path).1, before.1);
    assert_eq!(state(&done.made.place.path), before);
    quiet(&ground, &host);
    assert_eq!(host.unresolved_attempts().unwrap(), Vec::<String>::new());
}

/// W-35: kept trash survives the branch and a collection, and comes back exactly.
#[test]
fn trash_comes_back_in_place_and_no_collection_hollows_it_out() {
    for dirty in [true, false] {
        let ground = Ground::new();
        let host = ground.host();
        keep_trash(&host, Span::hours(1));
        let (_, made) = settled(&ground, &host);
        let path = &made.place.path;
        std::fs::write(path.join("only here"), "only here\n").unwrap();
        git_in(path, &["add", "--all"]);
        git_in(path, &["commit", "--quiet", "--message", "on no other branch"]);
        if dirty {
            busy(path);
        }
        let before = state(path);
        host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
        work(&host);
        assert!(!path.exists());
        let trash = the_one(&host, KeptAs::Trash);
        // Even if nothing was unsaved its head and index are in salvage.
        the_one(&host, KeptAs::Salvage);
        ground.git(&["branch", "--delete", "--force", "b"]);
        ground.git(&["reflog", "expire", "--expire=now", "--all"]);
        ground.git(&["gc", "--quiet", "--prune=now"]);
        let head = trash.base.clone();
        let gone = Program::new("git")
            .current_dir(&ground.repository)
            .args(["cat-file", "-e", &head])
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(!gone.success(), "the collection took nothing: the test shows nothing");
        host.unarchive_task(&ann(), "t", false).unwrap();
        let done = host.put_back(&ann(), &trash.id, &Target::default()).unwrap();
        assert_eq!(&done.made.place.path, path);
        assert_eq!(state(path), before);
        ground.git(&["fsck", "--strict"]);
        assert_tracked(&ground, &host, &[]);
        // It is a worktree like any other: it can be archived, and come back, again.
        host.archive_task(&ann(), "t", &Operation::new("o2")).unwrap();
        work(&host);
        assert!(!path.exists());
        let again = the_one(&host, KeptAs::Trash);
        host.unarchive_task(&ann(), "t", false).unwrap();
        host.put_back(&ann(), &again.id, &Target::default()).unwrap();
        assert_eq!(state(path), before);
    }
}

#[test]
fn trash_is_not_put_over_what_stands_there_or_beside_its_own_branch() {
    let ground = Ground::new();
    let host = ground.host();
    keep_trash(&host, Span::hours(1));
    let (_, made) = settled(&ground, &host);
    let path = &made.place.path;
    busy(path);
    let before = state(path);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    back_to_life(&host);
    let trash = the_one(&host, KeptAs::Trash);
    let restore = || host.put_back(&ann(), &trash.id, &Target::default());
    let refused_with = |reason| {
        let error = restore().unwrap_err();
        let HostError::Workspace(error) = error else { panic!("{error}") };
        assert_eq!(error.reason, reason, "{error}");
        assert_eq!(the_one(&host, KeptAs::Trash), trash, "a refused restore leaves it as it was");
        assert_eq!(host.unresolved_attempts().unwrap(), Vec::<String>::new());
    };
    std::fs::create_dir_all(path).unwrap();
    std::fs::write(path.join("somebody"), "else\n").unwrap();
    refused_with(Reason::OwnedElsewhere);
    assert_eq!(std::fs::read(path.join("somebody")).unwrap(), b"else\n");
    std::fs::remove_dir_all(path).unwrap();
    let taken = ground.folder.path().join("taken");
    ground.git(&["worktree", "add", "--quiet", taken.to_str().unwrap(), "b"]);
    refused_with(Reason::OwnedElsewhere);
    ground.git(&["worktree", "remove", taken.to_str().unwrap()]);
    // Made again meanwhile, its row has a worktree that is in use.
    let other = host.recreate(&ann(), &made.repo).unwrap();
    let error = restore().unwrap_err();
    assert!(matches!(error, HostError::Live { .. }), "{error}");
    host.archive_task(&ann(), "t", &Operation::new("o2")).unwrap();
    back_to_life(&host);
    assert!(!other.place.path.exists());
    restore().unwrap();
    assert_eq!(state(path), before);
}

/// The barrier wins while the directory is back and not yet owned: it goes into trash again, with
/// what somebody wrote into it in between (W-4).
#[test]
fn a_restore_that_a_delete_overtakes_goes_back_into_trash() {
    for at in ["intended", "restored", "materialised"] {
        let ground = Ground::new();
        let host = ground.host();
        keep_trash(&host, Span::hours(1));
        let (_, made) = settled(&ground, &host);
        busy(&made.place.path);
        host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
        back_to_life(&host);
        let trash = the_one(&host, KeptAs::Trash);
        let closer = ground.host();
        let error = host
            .put_back_between(&ann(), &trash.id, &Target::default(), &mut |now| {
                if now == at {
                    if at != "intended" {
                        std::fs::write(made.place.path.join("later"), "later\n").unwrap();
                    }
                    closer.archive_task(&ann(), "t", &Operation::new("o2")).unwrap();
                }
            })
            .unwrap_err();
        assert!(matches!(error, HostError::Undone { .. }), "{at}: {error}");
        work(&closer);
        assert!(!made.place.path.exists(), "{at}");
        assert_eq!(host.unresolved_attempts().unwrap(), Vec::<String>::new(), "{at}");
        assert_eq!(ground.registered(), Vec::<std::path::PathBuf>::new(), "{at}");
        host.unarchive_task(&ann(), "t", false).unwrap();
        let again = the_one(&host, KeptAs::Trash);
        host.put_back(&ann(), &again.id, &Target::default()).unwrap();
        assert!(is_marked(&made.place.path), "{at}");
        assert_eq!(made.place.path.join("later").exists(), at != "intended", "{at}");
    }
}

#[test]
fn a_tick_purges_trash_whose_time_is_over_and_no_other() {
    let ground = Ground::new();
    let host = ground.host();
    keep_trash(&host, Span::hours(1));
    let (root, made) = settled(&ground, &host);
    mark(&made.place.path);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    work(&host);
    let folder = freehold_git::trashed(
        &host.roots().unwrap()[0],
        &the_one(&host, KeptAs::Trash).name,
        &ground.repository,
    )
    .unwrap()
    .folder;
    let mut user = Program::new("cat")
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    ground.lapse(Span::minutes(59));
    assert_eq!(host.tick().unwrap().purged, 0, "it is still kept");
    ground.lapse(Span::minutes(2));
    // Another machine's worker has no say, nor has one whose store is another.
    let store = ground.store.open(&ground.clock);
    let git = GitWorkspaces::new();
    let stranger =
        Host::start(store, git, OnThisThread, Box::new(NoRuntimes), "elsewhere").unwrap();
    assert_eq!(stranger.tick().unwrap().purged, 0);
    let other = Ground::new();
    let neighbour = other.host();
    neighbour.register_root(&ann(), &ground.root_path).unwrap();
    other.lapse(Span::hours(1000));
    assert_eq!(neighbour.tick().unwrap().purged, 0);
    // Somebody stands in it: it is kept, not half-purged, and can still come back.
    let ticked = host.tick().unwrap();
    // Told once: one tick sweeps once.
    assert_eq!((ticked.purged, ticked.troubles.len()), (0, 1), "{:?}", ticked.troubles);
    assert!(ticked.troubles.concat().contains(&user.id().to_string()), "{:?}", ticked.troubles);
    assert_eq!(the_one(&host, KeptAs::Trash).state, "kept");
    assert!(folder.join("MARKER").exists());
    drop(user.stdin.take());
    user.wait().unwrap();
    let ticked = host.tick().unwrap();
    assert_eq!((ticked.purged, ticked.troubles.len()), (1, 0), "{:?}", ticked.troubles);
    assert!(!folder.exists());
    assert_eq!(host.kept().unwrap().len(), 1, "its salvage stays");
    assert_eq!(entries(&ground.repository.join(".git/worktrees")).len(), 0);
    assert_eq!(host.tick().unwrap().purged, 0);
    let _ = root;
}

#[test]
fn salvage_expires_by_recorded_consent_and_its_bytes_go_only_then() {
    let ground = Ground::new();
    let host = ground.host_here();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    let secret = "nowhere else but here\n";
    std::fs::write(made.place.path.join("secret"), secret).unwrap();
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    work(&host);
    let sql = |text: &str| ground.store.sql(text);
    // Years pass.
    sql("UPDATE salvage SET made_at = 1");
    let (_, done) = run(&ground, &["gc", "--yes"]);
    assert_eq!(done["lapsed"], serde_json::json!([]));
    let (code, refusal) = run(&ground, &["settings", "set", "--salvage-retention", "1d"]);
    assert_eq!((code, &refusal["error"]), (1, &"settings_sane".into()), "without words");
    paste(refusal["next"].as_str().unwrap());
    assert!(salvage_holds(&ground, secret));
    let words = "we keep nothing longer than a day";
    let set = ["settings", "set", "--salvage-retention", "1d", "--consent", words];
    let (code, set) = run(&ground, &[&set[..], &["--actor", "carol"]].concat());
    assert_eq!(code, 0, "{set}");
    assert_eq!(set["salvage_consent"]["by"], "carol");
    assert_eq!(set["salvage_consent"]["words"], words);
    assert!(set["salvage_consent"]["at"].as_i64().unwrap() > 0);
    // A day from the consent, not from a making years ago.
    assert_eq!(run(&ground, &["gc", "--yes"]).1["lapsed"], serde_json::json!([]));
    sql("UPDATE settings SET salvage_consent_at = 1");
    let id = the_one(&host, KeptAs::Salvage).id;
    let (_, plan) = run(&ground, &["gc"]);
    assert_eq!(plan["lapsed"], serde_json::json!([id]));
    assert!(salvage_holds(&ground, secret), "a dry run took it");
    assert_eq!(the_one(&host, KeptAs::Salvage).state, "verified");
    let (code, done) = run(&ground, &["gc", "--yes"]);
    assert_eq!((code, &done["lapsed"]), (0, &serde_json::json!([id])));
    assert!(!salvage_holds(&ground, secret), "its bytes are still there");
    assert_eq!(host.kept().unwrap(), Vec::new());
    let error = host.put_back(&ann(), &id, &Target::default()).unwrap_err();
    assert!(error.to_string().contains("expired"), "{error}");
    assert_eq!(run(&ground, &["gc"]).1["lapsed"], serde_json::json!([]));
}

/// The points at which a putting back is killed.
const SALVAGE: &[&str] = &["intended", "made", "filled", "materialised", "owned", "marked"];
const TRASH: &[&str] = &["intended", "restored", "materialised", "owned", "marked"];
const ROLE: &str = "FREEHOLD_RESTORE_ROLE";

/// Not a test of its own: what the test below starts, and kills.
#[test]
fn the_process_that_restores() {
    let Ok(id) = std::env::var(ROLE) else { return };
    let told = |name: &str| std::env::var(format!("FREEHOLD_RESTORE_{name}")).unwrap();
    let clock = Clock::manual(Time(told("NOW").parse().unwrap()));
    let store = StorePlace::told(&told("STORE")).open(&clock);
    let stop = told("STOP");
    let stand_still = |at: &str| {
        let mut out = std::io::stdout();
        writeln!(out, "\nRESTORE at {at}").unwrap();
        out.flush().unwrap();
        std::io::stdin().read_line(&mut String::new()).unwrap();
    };
    let git =
        GitWorkspaces::new().with_program(told("GIT").into(), std::time::Duration::from_secs(120));
    let host = Host::start(store, git, OnThisThread, Box::new(NoRuntimes), "test-machine").unwrap();
    let done = host.put_back_between(&ann(), &id, &Target::default(), &mut |at| {
        if at == stop {
            stand_still(at);
        }
    });
    stand_still(&format!("the end {}", done.is_ok()));
}

fn start(ground: &Ground, id: &str, stop: &str, git: &Path) -> Child {
    Program::new(std::env::current_exe().unwrap())
        .args([
            test_name(concat!(module_path!(), "::the_process_that_restores")),
            "--exact",
            "--nocapture",
        ])
        .arg("--test-threads=1")
        .env(ROLE, id)
        .env("FREEHOLD_RESTORE_NOW", ground.clock.now().0.to_string())
        .env("FREEHOLD_RESTORE_STORE", ground.store.text())
        .env("FREEHOLD_RESTORE_STOP", stop)
        .env("FREEHOLD_RESTORE_GIT", git)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Its next word.
fn listen(child: &mut Child) -> String {
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    loop {
        line.clear();
        if said.read_line(&mut line).unwrap() == 0 {
            return "killed inside git".to_owned();
        }
        if let Some(word) = line.trim().strip_prefix("RESTORE at ") {
            return word.to_owned();
        }
    }
}

/// After a kill: recovery ends it, nothing is lost, and a second try, if one is needed, is exact.
fn judge(
    ground: &Ground,
    host: &TestHost,
    id: &str,
    before: &(Vec<String>, BTreeMap<String, String>),
    at: &str,
) {
    ground.lapse(Span::minutes(2));
    host.renew().unwrap();
    for _ in 0..3 {
        host.tick().unwrap();
    }
    assert_eq!(host.unresolved_attempts().unwrap(), Vec::<String>::new(), "{at}");
    if ground.registered().is_empty() {
        // What a compensation put away is kept under another name; the same work is in both.
        let kept = host.kept().unwrap();
        let id = kept.iter().find(|k| k.id == id).or(kept.last()).map(|k| k.id.clone()).unwrap();
        host.put_back(&ann(), &id, &Target::default()).unwrap_or_else(|e| panic!("{at}: {e}"));
    }
    let places = host.places_of("t").unwrap();
    assert_eq!(places.len(), 1, "{at}");
    assert_eq!(&state(&places[0].path), before, "{at}");
    assert_eq!(ground.registered(), vec![places[0].path.clone()], "{at}");
    ground.git(&["fsck", "--strict"]);
}

fn kept_work(retention: Span) -> (Ground, TestHost, (Vec<String>, BTreeMap<String, String>)) {
    let ground = Ground::new();
    let host = ground.host();
    keep_trash(&host, retention);
    let (_, made) = settled(&ground, &host);
    busy(&made.place.path);
    let before = state(&made.place.path);
    host.archive_task(&ann(), "t", &Operation::new("o")).unwrap();
    back_to_life(&host);
    (ground, host, before)
}

#[test]
fn a_putting_back_is_killed_at_each_of_its_steps() {
    for (what, retention, steps) in
        [(KeptAs::Salvage, Span(0), SALVAGE), (KeptAs::Trash, Span::hours(1), TRASH)]
    {
        for at in steps {
            let (ground, host, before) = kept_work(retention);
            let id = the_one(&host, what).id;
            let mut child = start(&ground, &id, at, Path::new("git"));
            assert_eq!(listen(&mut child), *at);
            child.kill().unwrap();
            child.wait().unwrap();
            judge(&ground, &host, &id, &before, &format!("{what:?} at {at}"));
        }
    }
}

/// The same inside git: the nth command that it starts kills the process that started it.
#[test]
fn a_putting_back_is_killed_inside_its_calls_of_git() {
    for (what, retention, every) in
        [(KeptAs::Salvage, Span(0), 5), (KeptAs::Trash, Span::hours(1), 2)]
    {
        let mut n = 1;
        loop {
            let (ground, host, before) = kept_work(retention);
            let id = the_one(&host, what).id;
            let count = ground.folder.path().join("count");
            let lines = format!(
                "echo x >> '{0}'\nif [ $(wc -l < '{0}') -eq {n} ]; then kill -9 $PPID; exit 1; fi",
                count.display()
            );
            let git = wrapped_git(&ground, "git-that-kills", &lines);
            let mut child = start(&ground, &id, "nowhere", &git);
            let said = listen(&mut child);
            let over = said.starts_with("the end");
            if over {
                assert_eq!(said, "the end true");
            }
            let _ = child.kill();
            child.wait().unwrap();
            judge(&ground, &host, &id, &before, &format!("{what:?} inside call {n}"));
            if over {
                assert!(n > every, "git was never killed");
                break;
            }
            n += every;
        }
    }
}
