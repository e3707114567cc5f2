//! X55: a writer goes on writing into a worktree during its removal, by an open file and by path.
//! Every byte is found again, in trash, salvage or aside, or the removal waits.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command as Program, Stdio};
use std::sync::{Arc, Mutex};

use freehold_git::GitWorkspaces;
use freehold_git::faults::{Call, Faults};
use freehold_kernel::*;
use freehold_store::Operation;
use support::steps::*;
use support::*;

/// Another process: it opens a file when it is told to, writes lines, and says when they are
/// written.
#[derive(Debug)]
struct Writer {
    child: Child,
    tell: ChildStdin,
    said: BufReader<ChildStdout>,
    /// Every line that it said was written.
    lines: Vec<String>,
}

impl Writer {
    fn new() -> Writer {
        let script = "while read -r word rest; do case $word in
            open) exec 3>>\"$rest\";;
            line) echo \"$rest\" >&3;;
            close) exec 3>&-;;
            esac; echo $?; done";
        let mut child = Program::new("sh")
            .args(["-c", script])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Writer { tell: child.stdin.take().unwrap(), child, said, lines: Vec::new() }
    }

    fn tell(&mut self, word: &str) {
        writeln!(self.tell, "{word}").unwrap();
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        assert_eq!(line, "0\n", "{word}");
    }

    fn write(&mut self, line: &str) {
        self.tell(&format!("line {line}"));
        self.lines.push(line.to_owned());
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// Which of these lines are nowhere: not under the root, not in any salvage.
fn missing(ground: &Ground, lines: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    let mut todo = vec![ground.root_path.clone()];
    while let Some(folder) = todo.pop() {
        if folder.join("HEAD").is_file() && folder.join("objects").is_dir() {
            // What an entry reaches, and nothing that a collection would take.
            let dir = format!("--git-dir={}", folder.display());
            let objects = git_in(
                &ground.repository,
                &[&dir, "rev-list", "--objects", "--no-object-names", "--all"],
            );
            for object in objects.lines() {
                if git_in(&ground.repository, &[&dir, "cat-file", "-t", object]) == "blob" {
                    all.push(git_in(&ground.repository, &[&dir, "cat-file", "blob", object]));
                }
            }
            continue;
        }
        for path in entries(&folder) {
            let meta = std::fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                todo.push(path);
            } else if meta.is_file() {
                all.push(String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned());
            }
        }
    }
    lines.iter().filter(|l| !all.iter().any(|text| text.contains(*l))).cloned().collect()
}

const AT: [RemovalStep; 6] = [
    RemovalStep::Salvaged,
    RemovalStep::Renamed,
    RemovalStep::Compared,
    RemovalStep::Unregistered,
    RemovalStep::BranchSettled,
    RemovalStep::Purged,
];

#[test]
fn x55_a_file_that_is_held_open_from_before_stops_the_removal_until_it_is_closed() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    let path = made.place.path;
    let mut writer = Writer::new();
    writer.tell(&format!("open {}", path.join("MARKER").display()));
    writer.write("line before the delete");
    host.delete_task(&ann(), "t", &Operation::new("delete")).unwrap();
    for n in 0..3 {
        host.tick().unwrap();
        assert!(path.join("MARKER").exists(), "it was taken away");
        writer.write(&format!("line while it waits {n}"));
        ground.pass(Span::minutes(16), &[&host]);
    }
    assert_eq!(results_of(&host, "delete")[0].1, Reason::InUse);
    writer.tell("close");
    quiet(&ground, &host);
    assert!(!path.exists());
    assert_eq!(missing(&ground, &writer.lines), Vec::<String>::new());
    assert_tracked(&ground, &host, &["b"]);
}

/// The file is opened at one point of the removal, and written to through it from then on.
#[test]
fn x55_a_file_that_is_opened_at_any_step_loses_no_line() {
    for step in AT {
        for when in [When::Before, When::After] {
            let ground = Ground::new();
            let home = ground.host();
            let (_, made) = settled(&ground, &home);
            let file = made.place.path.join("MARKER");
            std::fs::write(&file, "first\n").unwrap();
            home.delete_task(&ann(), "t", &Operation::new("delete")).unwrap();
            let mut writer = Writer::new();
            let opened = std::cell::Cell::new(false);
            {
                let host = host_with_hook(&ground, step, when, || {
                    // By the path that it knows; once that is gone there is nothing to open.
                    if file.exists() {
                        writer.tell(&format!("open {}", file.display()));
                        writer.write("line at once");
                        opened.set(true);
                    }
                    Then::GoOn
                });
                host.tick().unwrap();
                assert!(hook_was_met(&host), "{step:?} {when:?}");
            }
            if opened.get() {
                writer.write("line after the tick");
                // A second try, the file still open.
                ground.pass(Span::minutes(2), &[&home]);
                home.tick().unwrap();
                writer.write("line after another try");
                assert_eq!(
                    missing(&ground, &writer.lines),
                    Vec::<String>::new(),
                    "{step:?} {when:?}"
                );
                writer.tell("close");
            }
            quiet(&ground, &home);
            writer.lines.push("first".to_owned());
            assert_eq!(missing(&ground, &writer.lines), Vec::<String>::new(), "{step:?} {when:?}");
            assert_eq!(jobs(&home), [(Trigger::Delete, JobState::Succeeded)], "{step:?} {when:?}");
            assert_tracked(&ground, &home, &["b"]);
            let before = matches!(
                (step, when),
                (RemovalStep::Salvaged, _) | (RemovalStep::Renamed, When::Before)
            );
            assert_eq!(opened.get(), before, "{step:?} {when:?}");
        }
    }
}

/// Opens the file right before the rename, where nobody looks for it any more.
#[derive(Debug)]
struct AtTheRename {
    worktree: PathBuf,
    writer: Mutex<Option<Writer>>,
}

impl Faults for AtTheRename {
    fn before(&self, call: &Call<'_>) -> Option<i32> {
        if call.name == "renameat2" && call.path == self.worktree {
            let mut writer = self.writer.lock().unwrap();
            if writer.is_none() {
                let mut made = Writer::new();
                made.tell(&format!("open {}", self.worktree.join("MARKER").display()));
                *writer = Some(made);
            }
        }
        None
    }

    fn after(&self, _call: &Call<'_>) -> Option<i32> {
        None
    }
}

#[test]
fn x55_a_file_that_is_opened_right_before_the_rename_loses_no_line() {
    let ground = Ground::new();
    let home = ground.host();
    let (_, made) = settled(&ground, &home);
    std::fs::write(made.place.path.join("MARKER"), "first\n").unwrap();
    home.delete_task(&ann(), "t", &Operation::new("delete")).unwrap();
    let worktree = made.place.path;
    let faults = Arc::new(AtTheRename { worktree: worktree.clone(), writer: Mutex::default() });
    let host = ground.host_with(GitWorkspaces::new().with_faults(faults.clone()));
    host.tick().unwrap();
    let mut writer = faults.writer.lock().unwrap().take().unwrap();
    // Where it lies now only the open file knows.
    writer.write("line after the rename");
    for n in 0..2 {
        ground.pass(Span::minutes(6), &[&home, &host]);
        home.tick().unwrap();
        writer.write(&format!("line while it waits {n}"));
        assert_eq!(missing(&ground, &writer.lines), Vec::<String>::new());
    }
    assert_ne!(open_work(&home), Vec::<String>::new(), "it did not wait");
    writer.tell("close");
    quiet(&ground, &home);
    writer.lines.push("first".to_owned());
    assert_eq!(missing(&ground, &writer.lines), Vec::<String>::new());
    assert_eq!(jobs(&home), [(Trigger::Delete, JobState::Succeeded)]);
    assert_tracked(&ground, &home, &["b"]);
}

/// A writer that opens, appends and closes, and makes the folder again if it is not there.
#[test]
fn x55_a_writer_by_path_at_any_step_loses_no_line() {
    for step in AT {
        for when in [When::Before, When::After] {
            let ground = Ground::new();
            let home = ground.host();
            let (_, made) = settled(&ground, &home);
            let file = made.place.path.join("deep/MARKER");
            append(&file, "first");
            home.delete_task(&ann(), "t", &Operation::new("delete")).unwrap();
            {
                let host = host_with_hook(&ground, step, when, || {
                    append(&file, "second");
                    Then::GoOn
                });
                host.tick().unwrap();
                assert!(hook_was_met(&host), "{step:?} {when:?}");
            }
            let lines = ["first", "second"].map(str::to_owned);
            assert_eq!(missing(&ground, &lines), Vec::<String>::new(), "{step:?} {when:?}");
            quiet(&ground, &home);
            assert_eq!(missing(&ground, &lines), Vec::<String>::new(), "{step:?} {when:?}");
            assert_eq!(jobs(&home), [(Trigger::Delete, JobState::Succeeded)], "{step:?} {when:?}");
            assert_eq!(ground.registered(), Vec::<std::path::PathBuf>::new());
        }
    }
}

fn append(file: &Path, line: &str) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(file).unwrap();
    writeln!(file, "{line}").unwrap();
}
