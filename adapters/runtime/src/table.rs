//! The table of processes, as `/proc` shows it: who is there, since when, in which session, and
//! who carries a token.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::birth::Birth;

/// A kernel thread, which has no environment.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A process that is just becoming another program shows no environment for a moment. Who shows
/// none is looked at again this often, with this pause; who never shows one has none.
const LOOKS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(5);

/// One process for good: its number and its start. A number that was given anew has another
/// start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) pid: u32,
    /// Clock ticks since the boot.
    pub(crate) ticks: u64,
}

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) id: Id,
    pub(crate) group: u32,
    pub(crate) session: u32,
    /// Nothing of it runs any more; at most its parent has not asked how it ended.
    pub(crate) over: bool,
    pub(crate) of_kernel: bool,
}

/// What a runtime consists of now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Members {
    /// The living ones that are proven to be its own.
    pub(crate) living: Vec<Stat>,
    /// Whether the recorded session is proven to be its own still.
    pub(crate) session: bool,
    /// Somebody lives in a session of that number, and nothing says whose it is.
    pub(crate) doubt: bool,
}

/// The table.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    proc: PathBuf,
}

impl Table {
    pub(crate) fn new() -> Table {
        Table::at(Path::new("/proc"))
    }

    pub(crate) fn at(proc: &Path) -> Table {
        Table { proc: proc.to_owned() }
    }

    /// Whether this process is shown everybody: who is not shown is not therefore gone.
    ///
    /// # Errors
    /// If the table cannot be read, is another namespace's, or hides other users' processes.
    pub(crate) fn whole(&self) -> io::Result<()> {
        let own = fs::read_link(self.proc.join("self"))?;
        if own.to_str() != Some(&std::process::id().to_string()) {
            return Err(io::Error::other("the process table is that of another namespace"));
        }
        match self.stat(1)? {
            Some(_) => Ok(()),
            None => Err(io::Error::other("the process table hides other users' processes")),
        }
    }

    /// A process of this number; none if there is none.
    ///
    /// # Errors
    /// If it is there and cannot be read.
    pub(crate) fn stat(&self, pid: u32) -> io::Result<Option<Stat>> {
        match fs::read(self.proc.join(pid.to_string()).join("stat")) {
            Ok(text) => match Stat::parse(pid, &text) {
                Some(stat) => Ok(Some(stat)),
                None => Err(io::Error::other(format!("the line of process {pid} is not known"))),
            },
            Err(e) if is_gone(&e) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The line of this very process. A group or a session of 0 is one whose first process stands
    /// in an outer namespace, as in a container that was entered from outside. It is read here and
    /// not asked of the kernel: the wrappers of that question hold 0 to be impossible.
    ///
    /// # Errors
    /// If it is not shown or cannot be read.
    pub(crate) fn own(&self) -> io::Result<Stat> {
        let own = self.stat(std::process::id())?;
        own.ok_or_else(|| io::Error::other("the process table does not show this process"))
    }

    /// Whether a process carries the token in the environment that it was started with. One that
    /// may not be looked into, or that has none, carries nothing that could be proven.
    fn environment(&self, pid: u32, variable: &[u8]) -> Environment {
        match fs::read(self.proc.join(pid.to_string()).join("environ")) {
            Ok(bytes) if bytes.is_empty() => Environment::Empty,
            Ok(bytes) if bytes.split(|b| *b == 0).any(|entry| entry == variable) => {
                Environment::Carries
            }
            Ok(_) | Err(_) => Environment::Other,
        }
    }

    /// Who belongs to the runtime: the recorded process; its session, as long as that is proven
    /// to be its own; and whoever carries its token, wherever he went. `known` are those who were
    /// proven before; who is found is added.
    ///
    /// # Errors
    /// If the table cannot be read: then nothing is known.
    pub(crate) fn members(&self, birth: &Birth, known: &mut BTreeSet<Id>) -> io::Result<Members> {
        let first = Id { pid: birth.pid, ticks: birth.ticks };
        let mut all = Vec::new();
        let mut given_anew = false;
        for entry in fs::read_dir(&self.proc)? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
            let Some(stat) = self.stat(pid)? else { continue };
            given_anew |= pid == birth.pid && stat.id != first;
            // Nobody is older than the one who started him.
            if !stat.of_kernel && stat.id.ticks >= birth.ticks {
                all.push(stat);
            }
        }
        let carriers = self.carriers(&all, &birth.variable());
        // A number is not given anew while a session has it. So the recorded process proves the
        // session, even dead and not yet asked for; another process of that number disproves it;
        // and without either, one who is known or carries the token proves it.
        let session = !given_anew
            && all.iter().any(|s| {
                s.session == birth.pid
                    && (s.id == first || carriers.contains(&s.id) || known.contains(&s.id))
            });
        let mut members = Members { session, ..Members::default() };
        for stat in all.iter().filter(|s| !s.over) {
            let inside = stat.session == birth.pid;
            let own = stat.id == first
                || carriers.contains(&stat.id)
                || known.contains(&stat.id)
                || (inside && session);
            if own {
                known.insert(stat.id);
                members.living.push(*stat);
            } else if inside && !given_anew {
                members.doubt = true;
            }
        }
        Ok(members)
    }

    fn carriers(&self, all: &[Stat], variable: &[u8]) -> BTreeSet<Id> {
        let mut carriers = BTreeSet::new();
        let mut open: Vec<Id> = all.iter().filter(|s| !s.over).map(|s| s.id).collect();
        for look in 0..LOOKS {
            if look > 0 && !open.is_empty() {
                std::thread::sleep(PAUSE);
            }
            open.retain(|id| match self.environment(id.pid, variable) {
                Environment::Carries => !carriers.insert(*id),
                Environment::Other => false,
                Environment::Empty => true,
            });
        }
        carriers
    }
}

enum Environment {
    Carries,
    Other,
    Empty,
}

impl Stat {
    /// The fields of `/proc/PID/stat` that count. The name stands in parentheses and may hold any
    /// character, so everything is counted from its last one.
    fn parse(pid: u32, text: &[u8]) -> Option<Stat> {
        let end = text.iter().rposition(|b| *b == b')')?;
        let rest = std::str::from_utf8(text.get(end + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        // One that is leaving the table at this moment has no group and no session any more.
        let leaving = fields.get(2).is_some_and(|group| *group == "-1");
        let small = |at: usize| if leaving { Some(0) } else { u32::try_from(number(at)?).ok() };
        // A process whose first thread has ended looks like a dead one, and lives as long as it
        // has another thread.
        let ended = matches!(*fields.first()?, "Z" | "X" | "x");
        Some(Stat {
            id: Id { pid, ticks: number(19)? },
            group: small(2)?,
            session: small(3)?,
            over: leaving || (ended && number(17)? <= 1),
            of_kernel: number(6)? & KERNEL_THREAD != 0,
        })
    }
}

/// The process ended before or while it was looked at.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::birth::fresh_token;
    use crate::place::Place;

    fn line(name: &str, state: char, threads: u32) -> Vec<u8> {
        // pid (name) state ppid group session tty tpgid flags, 10 counters, threads, timer, start
        format!("7 ({name}) {state} 1 5 4 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 99 1 2 3\n")
            .into_bytes()
    }

    #[test]
    fn a_line_is_read_whatever_the_name_in_it() {
        for name in ["cat", "a) Z 1 1 1", ") (", "x\ny", ""] {
            let stat = Stat::parse(7, &line(name, 'S', 1)).unwrap();
            let id = Id { pid: 7, ticks: 99 };
            assert_eq!(stat, Stat { id, group: 5, session: 4, over: false, of_kernel: false });
        }
        for broken in [&b"7 (cat) S 1"[..], b"", b"7 (cat"] {
            assert_eq!(Stat::parse(7, broken), None);
        }
    }

    #[test]
    fn a_process_is_over_when_its_last_thread_is() {
        for (state, threads, over) in
            [('Z', 1, true), ('X', 1, true), ('Z', 2, false), ('D', 1, false), ('T', 1, false)]
        {
            let stat = Stat::parse(7, &line("x", state, threads)).unwrap();
            assert_eq!(stat.over, over, "{state} {threads}");
        }
    }

    #[test]
    fn a_process_that_is_leaving_the_table_is_over() {
        let line = b"7 (x) X 0 -1 -1 0 -1 4228356 0 0 0 0 0 0 0 0 20 0 0 0 99 0 0";
        assert!(Stat::parse(7, line).unwrap().over);
    }

    /// A table by hand: number, session, start, environment.
    fn table(processes: &[(u32, u32, u64, &str)]) -> (tempfile::TempDir, Table) {
        let folder = tempfile::tempdir().unwrap();
        for (pid, session, start, environment) in processes {
            let own = folder.path().join(pid.to_string());
            fs::create_dir(&own).unwrap();
            let stat = format!(
                "{pid} (x) S 1 {session} {session} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {start} 1 2"
            );
            fs::write(own.join("stat"), stat).unwrap();
            fs::write(own.join("environ"), environment).unwrap();
        }
        let table = Table::at(folder.path());
        (folder, table)
    }

    #[test]
    fn who_belongs_to_it_is_proven_by_start_session_and_token() {
        let place = Place { host: String::new(), boot: "b".into(), pids: 1, times: 1 };
        let birth = Birth { pid: 50, ticks: 100, place, token: fresh_token() };
        let token = String::from_utf8(birth.variable()).unwrap();
        let mine = format!("A=1\0{token}\0");
        let longer = format!("A={token}\0{token}1\0");
        let look = |processes: &[(u32, u32, u64, &str)]| {
            let (_folder, table) = table(processes);
            let members = table.members(&birth, &mut BTreeSet::new()).unwrap();
            (members.living.iter().map(|m| m.id.pid).collect::<BTreeSet<_>>(), members.doubt)
        };
        let set = |pids: &[u32]| pids.iter().copied().collect::<BTreeSet<u32>>();
        // The first process proves its session; others carry the token; the rest are strangers.
        let whole = [
            (50, 50, 100, "A=1\0"),
            (51, 50, 100, "A=1\0"),
            (52, 52, 101, &mine),
            (53, 53, 101, &longer),
            (54, 54, 101, "A=1\0"),
        ];
        assert_eq!(look(&whole), (set(&[50, 51, 52]), false));
        // Without it, one who carries the token in the session proves it.
        assert_eq!(look(&[(51, 50, 100, &mine), (52, 50, 101, "A=1\0")]), (set(&[51, 52]), false));
        // Nobody proves it: nobody can say, and nobody is its own.
        assert_eq!(look(&[(51, 50, 100, "A=1\0")]), (set(&[]), true));
        // The number was given anew, later or by a clock that the record was not taken from.
        for start in [101, 99] {
            let reused = [(50, 50, start, "A=1\0"), (51, 50, 102, "A=1\0")];
            assert_eq!(look(&reused), (set(&[]), false), "{start}");
        }
        // Nobody is older than his starter, whatever he carries.
        assert_eq!(look(&[(52, 52, 99, &mine)]), (set(&[]), false));
        // What was known stays known, and goes on proving the session.
        let (_folder, table) = table(&[(51, 50, 100, "A=1\0"), (52, 50, 101, "A=1\0")]);
        let mut known = BTreeSet::from([Id { pid: 51, ticks: 100 }]);
        assert_eq!(table.members(&birth, &mut known).unwrap().living.len(), 2);
        assert_eq!(known.len(), 2);
    }

    #[test]
    fn a_table_that_does_not_show_everybody_proves_nothing() {
        Table::new().whole().unwrap();
        assert!(Table::at(Path::new("/nowhere")).whole().is_err());
        // Another namespace's, and one that hides other users' processes.
        let (folder, table) = table(&[]);
        let own = folder.path().join("self");
        std::os::unix::fs::symlink("1", &own).unwrap();
        assert!(table.whole().is_err());
        fs::remove_file(&own).unwrap();
        std::os::unix::fs::symlink(std::process::id().to_string(), &own).unwrap();
        assert!(table.whole().unwrap_err().to_string().contains("hides"));
    }
}
