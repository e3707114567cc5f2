//! Who stands in a directory (W-31): processes whose working directory, program or open files are
//! inside. Nobody is ever ended because of it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use freehold_store::workspaces::WorkspaceError;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::disk::{self, at};
use crate::error::io_fail;

/// What the process table shows about a directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Users {
    /// Processes inside: number, and what they have there.
    pub(crate) inside: Vec<(u32, String)>,
    /// Processes of other users that could not be looked into; they do not block.
    pub(crate) unseen: Vec<u32>,
}

/// How often somebody who was seen is looked for again, and the pause before it. A process that
/// any thread of this host is just starting holds a copy of every open file until it becomes its
/// own program; that is over within this time, and who stays inside is a user.
const LOOKS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(20);

/// Looks for processes in a directory. Compared by path and by inode, so that one which sees the
/// directory under another name (a container) is found too. `inodes` are those of the tree.
///
/// # Errors
/// If the process table cannot be read: nobody was seen then, which is not nobody.
pub(crate) fn standing_in(
    path: &Path,
    inodes: &HashSet<(u64, u64)>,
) -> Result<Users, WorkspaceError> {
    let mut users = look_once(path, inodes)?;
    for _ in 1..LOOKS {
        if users.inside.is_empty() {
            break;
        }
        std::thread::sleep(PAUSE);
        users = look_once(path, inodes)?;
    }
    Ok(users)
}

/// Processes called git that stand in one of these folders or name one, by whatever path it has
/// in their container, or that cannot be looked into.
///
/// # Errors
/// If the process table cannot be read.
pub(crate) fn gits(places: &[PathBuf]) -> Result<Vec<u32>, WorkspaceError> {
    let mut found = Vec::new();
    let at = places.first().map_or(Path::new("/proc"), PathBuf::as_path);
    let entries =
        disk::processes().map_err(|e| io_fail(at, "cannot tell which gits run in it", &e))?;
    let mut inodes = HashSet::new();
    for place in places {
        match inode(place) {
            Ok(inode) => drop(inodes.insert(inode)),
            // A worktree that is not there: nobody stands in it.
            Err(e) if disk::is_absence(&e) => {}
            Err(e) => return Err(io_fail(place, "cannot tell which gits run in it", &e)),
        }
    }
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
        let comm = fs::read(entry.path().join("comm")).unwrap_or_default();
        if comm.trim_ascii() != b"git" && !comm.starts_with(b"git-") {
            continue;
        }
        match is_at(&entry.path(), places, &inodes) {
            Ok(false) => {}
            // Gone meanwhile, or ended and not yet reaped.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Ok(true) | Err(_) => found.push(pid),
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Whether a process stands in one of these folders or was told one, in its words or in its
/// environment; by path, and by inode, since it may see other mounts, as one in a container does.
fn is_at(proc: &Path, places: &[PathBuf], inodes: &HashSet<(u64, u64)>) -> io::Result<bool> {
    let cwd = fs::read_link(proc.join("cwd"))?;
    let mut words = fs::read(proc.join("cmdline"))?;
    words.push(0);
    words.extend(fs::read(proc.join("environ"))?);
    let told = |place: &PathBuf| {
        let place = place.as_os_str().as_bytes();
        !place.is_empty() && words.windows(place.len()).any(|w| w == place)
    };
    if places.iter().any(|place| cwd.starts_with(place) || told(place)) {
        return Ok(true);
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let here = fd(at::open(&proc.join("cwd"), flags, Mode::empty()))?;
    if is_below(here.try_clone()?, inodes)? {
        return Ok(true);
    }
    let root = fd(at::open(&proc.join("root"), flags, Mode::empty()))?;
    for word in words.split(|b| *b == 0).filter(|w| !w.is_empty()) {
        let value = word.iter().position(|b| *b == b'=').map(|n| &word[n + 1..]);
        for path in [Some(word), value].into_iter().flatten() {
            let path = Path::new(OsStr::from_bytes(path));
            // A relative one from where it stands; and by text, since a link on the way that is
            // absolute begins at its root and not at ours.
            let by_text = told_path(&root, &cwd.join(path), ResolveFlags::IN_ROOT)?;
            let by_place = match path.is_absolute() {
                true => None,
                false => told_path(&here, path, ResolveFlags::empty())?,
            };
            for found in [by_text, by_place].into_iter().flatten() {
                match is_below(found, inodes) {
                    Ok(false) => {}
                    // It was removed meanwhile, or long ago.
                    Err(e) if disk::is_absence(&e) => {}
                    told => return told,
                }
            }
        }
    }
    Ok(false)
}

/// The folder that a word names, or the one in which the file lies that it names.
fn told_path(from: &OwnedFd, path: &Path, how: ResolveFlags) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    for path in [Some(path), path.parent()].into_iter().flatten() {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match at::openat2(from, path, flags | OFlags::DIRECTORY, how) {
            Ok(found) => return Ok(Some(found)),
            // A word that is no path, or names a file, or leads where we may not look: what we
            // work in is none of it.
            Err(
                Errno::NOENT
                | Errno::NOTDIR
                | Errno::NAMETOOLONG
                | Errno::LOOP
                | Errno::INVAL
                | Errno::ACCESS
                | Errno::PERM,
            ) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(None)
}

/// Whether a folder is one of these or lies in one.
fn is_below(folder: OwnedFd, inodes: &HashSet<(u64, u64)>) -> io::Result<bool> {
    let mut here = folder;
    let mut last = None;
    loop {
        let stat = at::fstat(&here)?;
        let now = (stat.st_dev, stat.st_ino);
        if inodes.contains(&now) {
            return Ok(true);
        }
        // The root is above itself.
        if last == Some(now) {
            return Ok(false);
        }
        last = Some(now);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        here = fd(at::openat(&here, "..", flags, Mode::empty()))?;
    }
}

fn fd(opened: Result<OwnedFd, Errno>) -> io::Result<OwnedFd> {
    opened.map_err(io::Error::from)
}

fn inode(path: &Path) -> io::Result<(u64, u64)> {
    fs::metadata(path).map(|m| (m.dev(), m.ino()))
}

fn look_once(path: &Path, inodes: &HashSet<(u64, u64)>) -> Result<Users, WorkspaceError> {
    let mut users = Users::default();
    let entries = disk::processes()
        .map_err(|e| io_fail(path, "cannot tell which processes stand in it", &e))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
        look(&entry.path(), pid, path, inodes, &mut users);
    }
    users.inside.sort();
    users.unseen.sort_unstable();
    Ok(users)
}

fn look(proc: &Path, pid: u32, path: &Path, inodes: &HashSet<(u64, u64)>, users: &mut Users) {
    let own = pid == std::process::id();
    let mut denied = false;
    let mut links: Vec<(PathBuf, &str)> = vec![
        (proc.join("cwd"), "its working directory"),
        (proc.join("root"), "its root directory"),
        (proc.join("exe"), "its program"),
    ];
    match fs::read_dir(proc.join("fd")) {
        Ok(fds) => links.extend(fds.flatten().map(|fd| (fd.path(), "an open file"))),
        Err(e) => denied |= e.kind() == io::ErrorKind::PermissionDenied,
    }
    for (link, what) in links {
        let target = match fs::read_link(&link) {
            Ok(target) => target,
            Err(e) => {
                denied |= e.kind() == io::ErrorKind::PermissionDenied;
                continue;
            }
        };
        // Sockets, pipes and the like are no paths.
        if !target.is_absolute() {
            continue;
        }
        let meta = fs::metadata(&link).ok();
        // Folders that this process holds open are its own looks at trees, which end by
        // themselves; its working directory and its files count like anybody's.
        if own && what == "an open file" && meta.as_ref().is_none_or(fs::Metadata::is_dir) {
            continue;
        }
        let by_inode = meta.is_some_and(|m| inodes.contains(&(m.dev(), m.ino())));
        if by_inode || without_mark(&target).starts_with(path) {
            let name = fs::read(proc.join("comm")).unwrap_or_default();
            let name = String::from_utf8_lossy(name.trim_ascii()).escape_debug().to_string();
            users.inside.push((pid, format!("process {pid} ({name}) has {what} in it")));
            return;
        }
    }
    // What is written through a mapping changes a file although no descriptor of it is open.
    match fs::read(proc.join("maps")) {
        Ok(maps) if mapped(&maps, path, inodes) => {
            let name = fs::read(proc.join("comm")).unwrap_or_default();
            let name = String::from_utf8_lossy(name.trim_ascii()).escape_debug().to_string();
            users.inside.push((pid, format!("process {pid} ({name}) has a file mapped in it")));
            return;
        }
        Ok(_) => {}
        Err(e) => denied |= e.kind() == io::ErrorKind::PermissionDenied,
    }
    if denied {
        users.unseen.push(pid);
    }
}

/// Whether a process writes to a file of the tree through a shared mapping, by the lines of its
/// `/proc/PID/maps`: `address permissions offset major:minor inode path`.
fn mapped(maps: &[u8], path: &Path, inodes: &HashSet<(u64, u64)>) -> bool {
    maps.split(|b| *b == b'\n').any(|line| {
        let mut fields = line.split(|b| *b == b' ').filter(|f| !f.is_empty());
        let (Some(_), Some(how), Some(_), Some(device), Some(inode)) =
            (fields.next(), fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return false;
        };
        if how.get(1) != Some(&b'w') || how.get(3) != Some(&b's') {
            return false;
        }
        let text = |field| std::str::from_utf8(field).ok();
        let number = || {
            let (major, minor) = text(device)?.split_once(':')?;
            let hex = |n| u32::from_str_radix(n, 16).ok();
            let device = rustix::fs::makedev(hex(major)?, hex(minor)?);
            Some((device, text(inode)?.parse::<u64>().ok()?))
        };
        let start = path.as_os_str().as_bytes();
        number().is_some_and(|n| inodes.contains(&n))
            || line.windows(start.len()).any(|w| !start.is_empty() && w == start)
    })
}

/// The kernel marks the path of a removed file.
fn without_mark(target: &Path) -> PathBuf {
    let bytes = target.as_os_str().as_bytes();
    let plain = bytes.strip_suffix(b" (deleted)").unwrap_or(bytes);
    PathBuf::from(std::ffi::OsStr::from_bytes(plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_found_by_where_it_stands_and_by_what_it_holds() {
        let dir = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(dir.path()).unwrap();
        assert!(standing_in(&path, &HashSet::new()).unwrap().inside.is_empty());
        let mut child =
            Command::new("cat").current_dir(&path).stdin(Stdio::piped()).spawn().unwrap();
        let seen = standing_in(&path, &HashSet::new()).unwrap();
        assert_eq!(seen.inside.iter().map(|u| u.0).collect::<Vec<_>>(), [child.id()]);
        drop(child.stdin.take());
        child.wait().unwrap();
        let file = fs::File::create(path.join("held")).unwrap();
        let seen = standing_in(&path, &HashSet::new()).unwrap();
        assert_eq!(seen.inside.iter().map(|u| u.0).collect::<Vec<_>>(), [std::process::id()]);
        drop(file);
        assert!(standing_in(&path, &HashSet::new()).unwrap().inside.is_empty());
    }

    #[test]
    fn a_shared_mapping_that_is_written_counts() {
        let inodes = HashSet::from([(rustix::fs::makedev(8, 0x11), 42)]);
        let seen = |line: &str| mapped(line.as_bytes(), Path::new("/w/t"), &inodes);
        assert!(seen("00-01 rw-s 00000000 08:11 42                 /elsewhere/f\n"));
        assert!(seen("00-01 rw-s 00000000 00:05 7                  /w/t/a b\n"));
        for other in [
            "00-01 rw-p 00000000 08:11 42 /w/t/f\n",
            "00-01 r--s 00000000 08:11 42 /w/t/f\n",
            "00-01 rw-s 00000000 08:11 43 /w/other\n",
            "00-01 rw-p 00000000 00:00 0\n",
            "",
        ] {
            assert!(!seen(other), "{other}");
        }
    }

    #[test]
    fn another_name_of_the_same_folder_is_seen_through() {
        let dir = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(dir.path()).unwrap();
        let meta = fs::metadata(&path).unwrap();
        let inodes = HashSet::from([(meta.dev(), meta.ino())]);
        let mut child =
            Command::new("cat").current_dir(&path).stdin(Stdio::piped()).spawn().unwrap();
        // As if the folder were mounted elsewhere: the path does not match, the inode does.
        let seen = standing_in(Path::new("/nowhere"), &inodes).unwrap();
        assert_eq!(seen.inside.len(), 1);
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
