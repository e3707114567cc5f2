//! What a git that was killed while it changed a ref leaves, and who may take it away (W-12).

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use freehold_kernel::Reason;

use super::fixture::*;
use crate::process::{Git, Run};
use crate::refs::{self, Change};

/// A git that holds the locks of a branch's deletion, as `update-ref -d` does in its middle.
fn in_the_middle(f: &Fixture, branch: &str) -> Child {
    let mut child = Command::new("git")
        .args(["update-ref", "--stdin"])
        .current_dir(&f.main)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.as_mut().unwrap();
    write!(stdin, "start\ndelete refs/heads/{branch}\nprepare\n").unwrap();
    stdin.flush().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(said.next().unwrap().unwrap(), "start: ok");
    assert_eq!(said.next().unwrap().unwrap(), "prepare: ok");
    assert!(f.main.join(".git/packed-refs.lock").exists());
    child
}

fn killed(f: &Fixture, branch: &str) {
    let mut child = in_the_middle(f, branch);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// As we delete one.
fn delete(f: &Fixture, branch: &str) -> Result<bool, Reason> {
    let common = f.main.join(".git");
    let name = format!("refs/heads/{branch}");
    let args = ["update-ref", "-d", &name];
    let run = || Run { git_dir: Some(&common), ..Run::default() };
    refs::change(&Git::new(), &common, Change::Delete, &name, |git| git.run(&common, &args, run()))
        .map(|output| output.status.success())
        .map_err(|e| e.reason)
}

fn announced(f: &Fixture, branch: &str) {
    let folder = f.main.join(".git/freehold");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("changing-ref"), format!("delete refs/heads/{branch}")).unwrap();
}

#[test]
fn f30_locks_of_a_killed_git_of_ours_are_put_aside() {
    let f = Fixture::new();
    git(&f.main, &["branch", "one"]);
    git(&f.main, &["branch", "two"]);
    // Packed, and killed while the new list was written.
    git(&f.main, &["pack-refs", "--all"]);
    announced(&f, "one");
    killed(&f, "one");
    std::fs::write(f.main.join(".git/packed-refs.new"), "# half").unwrap();
    git_fails(&f.main, &["branch", "-D", "two"]);
    // Another branch's change notices too, since the whole repository's deletions fail.
    assert_eq!(delete(&f, "two"), Ok(true));
    assert_eq!(delete(&f, "one"), Ok(true));
    let aside = f.main.join(".git/freehold/half-made");
    let mut kept: Vec<_> =
        std::fs::read_dir(aside).unwrap().map(|e| e.unwrap().file_name()).collect();
    kept.sort();
    assert_eq!(kept, ["one.lock", "packed-refs.lock", "packed-refs.new"]);
    assert!(!f.main.join(".git/freehold/changing-ref").exists());
}

#[test]
fn locks_of_a_persons_git_stay() {
    let f = Fixture::new();
    git(&f.main, &["branch", "one"]);
    // Killed, but nothing of ours was under way.
    killed(&f, "one");
    assert_eq!(delete(&f, "one"), Ok(false));
    let lock = f.main.join(".git/packed-refs.lock");
    assert!(lock.exists());

    // Older than what we began.
    announced(&f, "one");
    let file = std::fs::File::open(&lock).unwrap();
    let older = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    file.set_times(std::fs::FileTimes::new().set_modified(older)).unwrap();
    std::fs::remove_file(f.main.join(".git/refs/heads/one.lock")).unwrap();
    assert_eq!(delete(&f, "one"), Ok(false));
    assert!(lock.exists());
    std::fs::remove_file(&lock).unwrap();

    // Alive: only git itself says whether the lock is in the way. A making needs no list.
    announced(&f, "one");
    let mut person = in_the_middle(&f, "one");
    assert_eq!(delete(&f, "one"), Ok(false));
    assert!(lock.exists());
    let place = f.made("w");
    assert!(place.path.join(".git").exists());
    // It ends by itself and takes its locks away.
    drop(person.stdin.take());
    person.wait().unwrap();
    assert_eq!(delete(&f, "one"), Ok(true));
}

/// A checkout moves no ref, and locks none: what it never took no killed one can leave behind.
#[test]
fn a_checkout_takes_no_lock_of_its_branch() {
    let f = Fixture::new();
    let place = f.place("w");
    git(&f.main, &["branch", &place.branch]);
    let plan = f.plan(&place);
    let lock = f.main.join(format!(".git/refs/heads/{}.lock", place.branch));
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    std::fs::write(&lock, "").unwrap();
    f.try_make(&place, &plan).unwrap();
    assert_eq!(git(&place.path, &["status", "--porcelain"]), "");
    assert!(lock.exists());
}
