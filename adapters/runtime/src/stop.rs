//! Stopping: asked, waited for within a bound, killed, and proven (C-6, C-7, T-5, W-31).

use std::collections::BTreeSet;
use std::io;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use freehold_kernel::Liveness;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use crate::birth::Birth;
use crate::signal::{exists, hold, kill_group, send};
use crate::table::{Id, Members, Table};

/// How long a wait between two looks is at most.
const PAUSE: Duration = Duration::from_millis(50);
/// How often the caller's pulse is called; the port promises every second.
const PULSE: Duration = Duration::from_millis(400);
/// The most processes whose ends are waited for at once.
const WATCHED: usize = 64;

/// One runtime that is being stopped.
pub(crate) struct Target<'a> {
    pub(crate) birth: Birth,
    /// Its first process, if it is this process's child: while this is held nobody asks how it
    /// ended, so that its number stays its own.
    pub(crate) child: Option<MutexGuard<'a, std::process::Child>>,
    known: BTreeSet<Id>,
    living: Vec<Id>,
    /// It was asked to end.
    asked: bool,
    /// The last look did not see everybody.
    blind: bool,
    answer: Option<Liveness>,
}

impl<'a> Target<'a> {
    pub(crate) fn new(birth: Birth, child: Option<MutexGuard<'a, std::process::Child>>) -> Self {
        let (known, living) = (BTreeSet::new(), Vec::new());
        Target { birth, child, known, living, asked: false, blind: false, answer: None }
    }

    /// Looks at who is left; none if nobody is, or nobody can be told.
    fn look(&mut self, table: &Table) -> Option<Members> {
        let seen = look(table, &self.birth, &mut self.known);
        self.blind = seen.is_err();
        match seen {
            Ok((Liveness::Alive, members)) => {
                self.living = members.living.iter().map(|m| m.id).collect();
                Some(members)
            }
            Ok((answer @ (Liveness::Dead | Liveness::Unknown), _)) => {
                self.living.clear();
                self.answer = Some(answer);
                None
            }
            // It is looked again until the bound is over.
            Err(_unreadable) => None,
        }
    }
}

/// Who lives of a runtime of this place. That nobody does is only said after two looks: one who
/// was started behind the first look's back is seen by the second.
///
/// # Errors
/// If the table cannot be read, or does not show everybody.
pub(crate) fn look(
    table: &Table,
    birth: &Birth,
    known: &mut BTreeSet<Id>,
) -> io::Result<(Liveness, Members)> {
    table.whole()?;
    for _ in 0..2 {
        let members = table.members(birth, known)?;
        if !members.living.is_empty() {
            return Ok((Liveness::Alive, members));
        }
        if members.doubt {
            return Ok((Liveness::Unknown, members));
        }
    }
    // The kernel's own word: a number that the table does not show must not exist.
    if exists(birth.pid) && table.stat(birth.pid)?.is_none() && exists(birth.pid) {
        return Ok((Liveness::Unknown, Members::default()));
    }
    Ok((Liveness::Dead, Members::default()))
}

/// Stops them all within one bound. One answer for each, in their order.
pub(crate) fn stop(
    table: &Table,
    mut targets: Vec<Target<'_>>,
    grace: Duration,
    bound: Duration,
    pulse: &mut dyn FnMut(),
) -> Vec<Liveness> {
    let began = Instant::now();
    let mut pulsed = began;
    let mut kills: u32 = 0;
    loop {
        if pulsed.elapsed() >= PULSE {
            pulsed = Instant::now();
            pulse();
        }
        let patient = began.elapsed() < grace;
        for target in targets.iter_mut().filter(|t| t.answer.is_none()) {
            let Some(members) = target.look(table) else { continue };
            if !target.asked {
                target.asked = true;
                for member in &members.living {
                    // Who is halted by a signal could not hear the request.
                    send(table, member.id, &[Signal::TERM, Signal::CONT]);
                }
            } else if !patient {
                kill(table, &target.birth, &members);
            }
        }
        if targets.iter().all(|t| t.answer.is_some()) || began.elapsed() >= bound {
            break;
        }
        // After a kill there may be more of them: the first rounds follow each other at once.
        kills = if patient { 0 } else { kills.saturating_add(1) };
        let left = if patient { grace } else { bound }.saturating_sub(began.elapsed());
        let pause = if (1..20).contains(&kills) { PAUSE / 10 } else { PAUSE };
        wait(table, &targets, pause.min(left));
    }
    targets
        .into_iter()
        .map(|mut target| {
            let open = if target.blind { Liveness::Unknown } else { Liveness::Alive };
            let answer = target.answer.unwrap_or(open);
            if let Some(child) = target.child.as_mut() {
                // Asked for how it ended, so that nothing is left of it in the table.
                let _running = child.try_wait();
            }
            answer
        })
        .collect()
}

fn kill(table: &Table, birth: &Birth, members: &Members) {
    let mut groups = BTreeSet::new();
    for member in &members.living {
        let own = members.session && member.session == birth.pid;
        if own && groups.insert(member.group) {
            kill_group(table, member);
        }
    }
    // Those who left the session, and those whose group was not to be had.
    for member in &members.living {
        send(table, member.id, &[Signal::KILL]);
    }
}

/// Waits until one of them ends, or for the pause.
fn wait(table: &Table, targets: &[Target<'_>], pause: Duration) {
    let open = targets.iter().filter(|t| t.answer.is_none());
    let fds: Vec<_> =
        open.flat_map(|t| &t.living).take(WATCHED).filter_map(|id| hold(table, *id)).collect();
    let mut polls: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let tick = Timespec::try_from(pause).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 50_000_000 });
    // An interrupted wait is a short one.
    let _ready = poll(&mut polls, Some(&tick));
}
