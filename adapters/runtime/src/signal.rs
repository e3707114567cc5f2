//! Signals that reach nobody else (W-31).
//!
//! A process is signalled through a descriptor of it: once that is open and the process still has
//! the recorded start, no other process can be meant, whatever becomes of its number.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use crate::table::{Id, Stat, Table};

/// A descriptor of exactly this process; none if it is gone, or cannot be had.
pub(crate) fn hold(table: &Table, id: Id) -> Option<OwnedFd> {
    let fd = pidfd_open(number(id.pid)?, PidfdFlags::empty()).ok()?;
    // The number may have been given anew before it was opened, and not after.
    let same = table.stat(id.pid).is_ok_and(|s| s.is_some_and(|s| s.id == id));
    same.then_some(fd)
}

/// Signals one process. Whether it helped is for the next look.
pub(crate) fn send(table: &Table, id: Id, signals: &[Signal]) {
    if id.pid == std::process::id() {
        return;
    }
    if let Some(fd) = hold(table, id) {
        for signal in signals {
            let _gone_or_forbidden = pidfd_send_signal(&fd, *signal);
        }
    }
}

/// Kills the group of a member of a session that is proven to be the runtime's. This reaches who
/// is being forked at this moment, which nobody could by looking.
///
/// The member is looked at once more right before. A group keeps its number as long as anybody is
/// in it, so a stranger could only be meant if in between all of it ended and the system went
/// through all its numbers.
pub(crate) fn kill_group(table: &Table, member: &Stat) {
    let still = table.stat(member.id.pid).is_ok_and(|s| s.as_ref() == Some(member));
    // Who cannot say which group is his own kills none.
    let foreign = table.own().is_ok_and(|own| ![own.group, own.session].contains(&member.group));
    match number(member.group) {
        Some(group) if still && member.group > 1 && foreign => {
            let _gone_or_forbidden = kill_process_group(group, Signal::KILL);
        }
        Some(_) | None => {}
    }
}

/// Whether the kernel knows a process of this number, shown in the table or not.
pub(crate) fn exists(pid: u32) -> bool {
    match number(pid) {
        Some(pid) => {
            !matches!(pidfd_open(pid, PidfdFlags::empty()), Err(Errno::SRCH | Errno::INVAL))
        }
        None => false,
    }
}

fn number(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}
