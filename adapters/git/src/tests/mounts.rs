//! W-35: file systems that end inside a root, and disks that are full. In mount namespaces of
//! their own, with small memory file systems.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use freehold_kernel::{Reason, RemovalStep};
use freehold_store::workspaces::{Place, Workspaces};

use super::apart::{mount_memory, unmount, with_own_mounts};
use super::fixture::{Fixture, STEPS, git, whole};

#[test]
fn a_trash_on_another_file_system_is_refused_at_the_start() {
    if !with_own_mounts("tests::mounts::a_trash_on_another_file_system_is_refused_at_the_start") {
        return;
    }
    let f = Fixture::new();
    let place = f.made("w");
    let deep = f.made("a/b/c/d");
    for place in [&place, &deep] {
        fs::write(place.path.join("new"), "untracked\n").unwrap();
    }
    let trash = crate::root::book(&f.root).join("trash");
    fs::create_dir_all(&trash).unwrap();
    mount_memory(&trash, 1024);
    let before = (whole(&place.path), whole(&deep.path), whole(&f.main));
    let refused = f.spaces.make_root(&f.root).unwrap_err();
    assert_eq!((refused.reason, &refused.path), (Reason::MountPoint, &trash), "{refused}");
    for place in [&place, &deep] {
        let refused = f.step(place, "removal", RemovalStep::Salvaged).unwrap_err();
        assert_eq!(refused.reason, Reason::MountPoint, "{refused}");
        assert!(refused.help.contains("unmount"), "{refused}");
    }
    assert_eq!((whole(&place.path), whole(&deep.path), whole(&f.main)), before);
    assert_eq!(crate::salvage::list(&f.root).unwrap(), []);
    unmount(&trash);
    for (place, id) in [(&place, "one"), (&deep, "two")] {
        f.remove(place, id);
        f.assert_gone(place);
    }
}

#[test]
fn a_mount_point_inside_is_refused_before_the_first_step() {
    if !with_own_mounts("tests::mounts::a_mount_point_inside_is_refused_before_the_first_step") {
        return;
    }
    let f = Fixture::new();
    let place = f.made("w");
    let inside = place.path.join("src/mounted");
    fs::create_dir(&inside).unwrap();
    let bound = f.dir.path().join("bound");
    fs::create_dir(&bound).unwrap();
    fs::write(bound.join("kept"), "kept\n").unwrap();
    for bind in [false, true] {
        if bind {
            let mut mount = std::process::Command::new("mount");
            assert!(mount.arg("--bind").arg(&bound).arg(&inside).status().unwrap().success());
        } else {
            mount_memory(&inside, 64);
            fs::write(inside.join("kept"), "kept\n").unwrap();
        }
        let before = (whole(&place.path), whole(&f.main));
        for step in [RemovalStep::Salvaged, RemovalStep::Renamed] {
            let refused = f.step(&place, "removal", step).unwrap_err();
            assert_eq!((refused.reason, &refused.path), (Reason::MountPoint, &place.path));
            assert!(refused.detail.contains("src/mounted"), "{refused}");
            assert!(refused.help.contains("unmount"), "{refused}");
        }
        assert_eq!(f.inspect(&place).evidence.obstacle, Reason::MountPoint);
        assert_eq!((whole(&place.path), whole(&f.main)), before);
        assert_eq!(fs::read_to_string(inside.join("kept")).unwrap(), "kept\n");
        unmount(&inside);
    }
    f.remove(&place, "removal");
    f.assert_gone(&place);
    assert_eq!(fs::read_to_string(bound.join("kept")).unwrap(), "kept\n");
}

/// Fills a disk to its last block; what to remove to have room again.
fn fill(folder: &Path, room: usize) -> PathBuf {
    let path = folder.join("filler");
    let mut file = fs::File::create(&path).unwrap();
    for size in [65536, 4096, 1] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
    let size = file.metadata().unwrap().len();
    file.set_len(size - room as u64).unwrap();
    path
}

/// Everything that stands between nothing and enough.
const ROOMS: [usize; 8] = [0, 4, 8, 16, 32, 64, 128, 256];

#[test]
fn a_disk_that_is_full_at_any_step_of_a_removal_loses_nothing() {
    if !with_own_mounts("tests::mounts::a_disk_that_is_full_at_any_step_of_a_removal_loses_nothing")
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut full = 0;
    for step in STEPS {
        // Only salvage needs room in earnest; what comes after it renames and unlinks.
        let rooms = if step == RemovalStep::Salvaged { &ROOMS[..] } else { &ROOMS[..2] };
        for room in rooms {
            let disk = folder.path().join(format!("{}-{room}", step.code()));
            fs::create_dir(&disk).unwrap();
            mount_memory(&disk, 4096);
            let f = Fixture::within(&disk);
            let place = f.made("w");
            fs::write(place.path.join("a.txt"), "changed\n").unwrap();
            fs::write(place.path.join("new"), vec![b'x'; 50_000]).unwrap();
            let before = whole(&place.path);
            for earlier in STEPS.into_iter().take_while(|s| *s != step) {
                f.step(&place, "removal", earlier).unwrap();
            }
            let filler = fill(&disk, room * 1024);
            let what = format!("{} with {room} KiB", step.code());
            match f.step(&place, "removal", step) {
                Ok(_) => {}
                Err(e) => {
                    full += 1;
                    assert_eq!(e.reason, Reason::DiskFull, "{what}: {e}");
                    assert!(e.help.contains("space") || e.help.contains("git's text"), "{e}");
                    if step == RemovalStep::Salvaged {
                        assert_eq!(whole(&place.path), before, "{what}");
                        let found = fs::read(place.path.join("new")).unwrap();
                        assert_eq!(found.len(), 50_000, "{what}");
                    }
                }
            }
            fs::remove_file(filler).unwrap();
            for later in STEPS.into_iter().skip_while(|s| *s != step) {
                f.step(&place, "removal", later).unwrap_or_else(|e| panic!("{what}: {e}"));
            }
            f.assert_gone(&place);
            let entries = crate::salvage::list(&f.root).unwrap();
            assert_eq!(entries.len(), 1, "{what}");
            let again = f.made("again");
            let lock = f.spaces.lock(&again).unwrap();
            f.spaces.restore(&lock, &again, &entries[0].ref_name).unwrap();
            assert_eq!(fs::read_to_string(again.path.join("a.txt")).unwrap(), "changed\n");
            assert_eq!(fs::read(again.path.join("new")).unwrap().len(), 50_000, "{what}");
            drop(lock);
            drop(f);
            unmount(&disk);
        }
    }
    assert!(full >= 4, "the disk was full {full} times");
}

#[test]
fn a_disk_that_is_full_while_a_worktree_is_made_leaves_what_the_next_try_finishes() {
    if !with_own_mounts(
        "tests::mounts::a_disk_that_is_full_while_a_worktree_is_made_leaves_what_the_next_try_finishes",
    ) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut full = 0;
    for room in ROOMS {
        let disk = folder.path().join(room.to_string());
        fs::create_dir(&disk).unwrap();
        mount_memory(&disk, 4096);
        let f = Fixture::within(&disk);
        fs::write(f.main.join("large"), vec![b'y'; 100_000]).unwrap();
        git(&f.main, &["add", "large"]);
        git(&f.main, &["commit", "--quiet", "-m", "large"]);
        let place: Place = f.place("w");
        let plan = f.plan(&place);
        let filler = fill(&disk, room * 1024);
        if let Err(e) = f.try_make(&place, &plan) {
            full += 1;
            assert_eq!(e.reason, Reason::DiskFull, "{room} KiB: {e}");
        }
        fs::remove_file(filler).unwrap();
        f.try_make(&place, &plan).unwrap_or_else(|e| panic!("{room} KiB: {e}"));
        f.spaces.verify(&place).unwrap();
        assert_eq!(git(&place.path, &["status", "--porcelain"]), "", "{room} KiB");
        assert_eq!(fs::read(place.path.join("large")).unwrap().len(), 100_000);
        f.remove(&place, "removal");
        f.assert_gone(&place);
        drop(f);
        unmount(&disk);
    }
    assert!(full >= 3, "the disk was full {full} times");
}

/// F30: a container's git counts if it is at the repository, under whatever path, and no other.
#[test]
fn f30_a_git_that_sees_other_mounts_is_known_by_the_folder_and_not_by_its_path() {
    if !with_own_mounts(
        "tests::mounts::f30_a_git_that_sees_other_mounts_is_known_by_the_folder_and_not_by_its_path",
    ) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let (repository, inside, neighbour) =
        (base.join("repository"), base.join("inside"), base.join("neighbour"));
    for folder in [&repository.join("sub"), &inside, &neighbour] {
        std::fs::create_dir_all(folder).unwrap();
    }
    git(&repository, &["init", "--quiet"]);
    git(&neighbour, &["init", "--quiet"]);
    let bind = format!("mount --bind '{}' '{}'", repository.display(), inside.display());
    let run = |words: &str| {
        let mut child = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c"])
            .arg(format!("{bind} && {words}"))
            .current_dir(&base)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let comm = format!("/proc/{}/comm", child.id());
        while std::fs::read_to_string(&comm).unwrap().trim() != "git" {
            assert_eq!(child.try_wait().unwrap(), None, "{words}");
            std::thread::yield_now();
        }
        let found = crate::users::gits(std::slice::from_ref(&repository)).unwrap();
        let found = found.contains(&child.id());
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success(), "{words}");
        found
    };
    assert!(run("cd inside/sub && exec git hash-object --stdin"));
    assert!(run("exec git --git-dir=inside/.git hash-object --stdin"));
    assert!(run(&format!("exec git -C '{}' hash-object --stdin", inside.display())));
    assert!(run("cd neighbour && GIT_DIR=../inside/.git exec git hash-object --stdin"));
    // A path with an equals sign, and a link that is absolute in there.
    let odd = "mkdir -p odd=one && ln -sfn \"$PWD/inside\" odd=one/x=y";
    assert!(run(&format!("{odd} && exec git --git-dir=odd=one/x=y/.git hash-object --stdin")));
    assert!(!run("cd neighbour && exec git hash-object --stdin"));
    assert!(!run("exec git hash-object --stdin"));
}
