//! The clock is the rig's, read at each command; it jumps forward and back, and leases follow it
//! (A-1, B-7, C-4).

use freehold_kernel::{
    Command, Guard, JobId, OperationCommand, Settings, Span, SystemCommand, Trigger,
};

use crate::rig::Rig;
use crate::speech::{LAPSED, id, instance, own, reserve, session, task, workspace};
use crate::twin::{Disturbed, Twin};

fn recover(n: u128) -> Command {
    Command::System(SystemCommand::RecoverBarrier { job: JobId(own(n)) })
}

fn renew(c: &mut freehold_store::Composer) -> Command {
    let (operation, instance) = (id(c, "o"), id(c, "one"));
    Command::Operation(OperationCommand::RenewBarrier { operation, instance })
}

/// A lease lapses when the clock says so and not before, is renewed from now, and survives a
/// clock that jumps back.
pub fn leases_follow_the_clock_forward_and_back<R: Rig>() {
    let mut twin = Twin::<R>::new(Disturbed::No);
    let clock = twin.rig.clock();
    let lease = Settings::DEFAULT.lease;
    twin.says(|c, _| instance(c, "one"));
    twin.says(|c, _| instance(c, "two"));
    twin.says(|c, _| workspace(c, "w"));
    twin.says(|c, _| task(c, "w", "t"));
    twin.says(|c, _| reserve(c, "o", "t", 1, Trigger::Archive, "one"));
    twin.refuses(Guard::BarrierLapsed, |_| recover(1));
    clock.advance(Span(lease.0 - 1));
    twin.refuses(Guard::BarrierLapsed, |_| recover(1));
    twin.says(|c, _| renew(c));
    clock.advance(Span(lease.0 - 1));
    twin.refuses(Guard::BarrierLapsed, |_| recover(1));
    // An hour back: what was leased stays leased, and what happens now has the earlier time.
    clock.advance(Span(-Span::hours(1).0));
    twin.refuses(Guard::BarrierLapsed, |_| recover(1));
    twin.refuses(Guard::TaskUnbarred, |c| session(c, "t", "s", None));
    twin.says(|c, _| task(c, "w", "earlier"));
    // Forward beyond everything.
    clock.advance(Span::hours(1));
    clock.advance(LAPSED);
    let now = clock.now();
    twin.says(|c, _| instance(c, "three"));
    twin.says(|_, _| recover(1));
    twin.says(|c, _| session(c, "t", "s", None));
    assert_eq!(twin.everything().view.now, now, "reads are as of the store's clock");
    let lines = crate::twin::journal(&twin.memory, 0, usize::MAX);
    let at = |n: usize| lines[n].columns["at"].parse::<i64>().expect("a time");
    assert!((1..lines.len()).any(|n| at(n) < at(n - 1)), "the clock went back: {lines:?}");
}

/// Nothing overflows at the far ends of the clock.
pub fn far_times_are_kept_as_they_are<R: Rig>() {
    let mut twin = Twin::<R>::new(Disturbed::No);
    let clock = twin.rig.clock();
    twin.says(|c, _| workspace(c, "w"));
    let began = clock.now().0;
    // 1601, 1970, the end of 32 bits, and the year 9999, in microseconds.
    let times = [-11_644_473_600_000_000, -1, 0, 1, (1 << 31) * 1_000_000, 253_402_300_799_999_999];
    let mut at = began;
    for (n, time) in times.into_iter().enumerate() {
        clock.advance(Span(time - at));
        at = time;
        twin.says(|c, _| task(c, "w", &format!("t{n}")));
        let made = twin.everything().view.tasks.iter().any(|t| t.created_at.0 == time);
        assert!(made, "no task was made at {time}");
    }
}
