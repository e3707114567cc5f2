//! Where a process number means something: one boot of one machine, in one pid namespace (D-11).

use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

/// The inode of the first pid namespace of a machine, the one that is no container's. It is fixed
/// by Linux.
const FIRST_PIDS: u64 = 0xEFFF_FFFC;

/// One place where processes are numbered and their starts are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// A digest of the machine's id and name; empty where the machine has no id.
    pub(crate) host: String,
    /// The kernel's id of this boot.
    pub(crate) boot: String,
    /// The pid namespace's inode.
    pub(crate) pids: u64,
    /// The time namespace's inode, since start times are shown with its offset; 0 where the
    /// kernel has none.
    pub(crate) times: u64,
}

/// What a recorded place is to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nearness {
    /// The same: its numbers mean here what they meant when they were recorded.
    Here,
    /// An earlier boot of this machine: nothing of it lives.
    EarlierBoot,
    /// Another machine, another container, or nobody can say which.
    Elsewhere,
}

impl Place {
    /// This process's own.
    ///
    /// # Errors
    /// If the kernel does not say which boot or which namespace this is.
    pub(crate) fn own() -> io::Result<Place> {
        Place::read(Path::new("/proc"), Path::new("/etc/machine-id"))
    }

    fn read(proc: &Path, machine_id: &Path) -> io::Result<Place> {
        let boot = std::fs::read_to_string(proc.join("sys/kernel/random/boot_id"))?;
        let boot = boot.trim().to_owned();
        if boot.is_empty() {
            return Err(io::Error::other("the kernel's boot id is empty"));
        }
        let pids = namespace(&proc.join("self/ns/pid"))?;
        let times = match namespace(&proc.join("self/ns/time")) {
            Ok(inode) => inode,
            Err(e) if e.kind() == io::ErrorKind::NotFound => 0,
            Err(e) => return Err(e),
        };
        // The id is confidential, so only a digest of it leaves the machine; and cloned machines
        // share it, so that the name counts too.
        let id = std::fs::read_to_string(machine_id).unwrap_or_default();
        let name = rustix::system::uname();
        let host = match id.trim() {
            "" | "uninitialized" => String::new(),
            id => {
                let mut hash = Sha256::new();
                hash.update(b"freehold runtime host\0");
                hash.update(id.as_bytes());
                hash.update(b"\0");
                hash.update(name.nodename().to_bytes());
                hash.finalize().iter().take(16).map(|b| format!("{b:02x}")).collect()
            }
        };
        Ok(Place { host, boot, pids, times })
    }

    /// What `self`, which was recorded, is to the place `own`.
    pub(crate) fn seen_from(&self, own: &Place) -> Nearness {
        if self.boot == own.boot {
            let same = self.pids == own.pids && self.times == own.times;
            return if same { Nearness::Here } else { Nearness::Elsewhere };
        }
        // An image of a container may carry a machine id of its own, which then stands for as
        // many machines as run it; only outside of containers does the id name one machine.
        let plain = self.pids == FIRST_PIDS && own.pids == FIRST_PIDS;
        if plain && !own.host.is_empty() && self.host == own.host {
            Nearness::EarlierBoot
        } else {
            Nearness::Elsewhere
        }
    }
}

/// The number in a namespace's link, as in `pid:[4026531836]`.
fn namespace(link: &Path) -> io::Result<u64> {
    let target = std::fs::read_link(link)?;
    target
        .to_str()
        .and_then(|t| t.split_once('[')?.1.strip_suffix(']')?.parse().ok())
        .ok_or_else(|| io::Error::other(format!("{} is no namespace", target.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place { host: "h".into(), boot: "b".into(), pids: FIRST_PIDS, times: 7 }
    }

    #[test]
    fn only_one_boot_in_one_namespace_is_here() {
        let own = place();
        assert_eq!(own.seen_from(&own), Nearness::Here);
        // One kernel is one machine, whatever it calls itself in between.
        assert_eq!(Place { host: "renamed".into(), ..place() }.seen_from(&own), Nearness::Here);
        for elsewhere in [Place { pids: 1, ..place() }, Place { times: 8, ..place() }] {
            assert_eq!(elsewhere.seen_from(&own), Nearness::Elsewhere, "{elsewhere:?}");
        }
    }

    #[test]
    fn another_boot_is_over_only_if_the_machine_is_certainly_this_one() {
        let earlier = || Place { boot: "earlier".into(), ..place() };
        assert_eq!(earlier().seen_from(&place()), Nearness::EarlierBoot);
        let containers = [
            (Place { pids: 1, ..earlier() }, place()),
            (earlier(), Place { pids: 1, ..place() }),
            (Place { pids: 1, ..earlier() }, Place { pids: 1, ..place() }),
        ];
        let machines = [
            (Place { host: "other".into(), ..earlier() }, place()),
            (Place { host: String::new(), ..earlier() }, Place { host: String::new(), ..place() }),
        ];
        for (recorded, own) in containers.into_iter().chain(machines) {
            assert_eq!(recorded.seen_from(&own), Nearness::Elsewhere, "{recorded:?} {own:?}");
        }
    }

    #[test]
    fn this_process_has_a_place_and_a_machine_without_an_id_has_no_name_for_it() {
        let own = Place::own().unwrap();
        assert_eq!(own, Place::own().unwrap());
        assert!(!own.boot.is_empty() && own.pids != 0);
        let nameless = Place::read(Path::new("/proc"), Path::new("/nowhere")).unwrap();
        assert_eq!(nameless, Place { host: String::new(), ..own });
        assert!(Place::read(Path::new("/nowhere"), Path::new("/nowhere")).is_err());
    }
}
