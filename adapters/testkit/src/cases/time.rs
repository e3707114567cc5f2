//! The clock is the rig's, read at each command; it jumps forward and back, and leases follow it
//! (A-1, B-7, C-4).

use freehold_kernel::{
    Command, Guard, JobId, Kind, OperationCommand, Settings, Span, SystemCommand, TableId, Trigger,
};
use freehold_store::names::id_of;
use freehold_store::store::dump;
use freehold_store::{Read, Store};

use crate::rig::Rig;
use crate::speech::{LAPSED, id, instance, own, reserve, say, session, submit, task, workspace};
use crate::twin::{Disturbed, Twin, journal_of, same};

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

/// Sessions in other zones, far ahead and far behind and by odd minutes, have the same
/// microseconds: what one reads, and what it writes, lies between what the others read.
pub fn every_zone_has_the_same_time<R: Rig>() {
    let zones = ["Pacific/Kiritimati", "America/St_Johns", "Asia/Kathmandu", "Pacific/Pago_Pago"];
    let rig = R::fresh();
    let utc = rig.open_in_zone("UTC");
    let done = |store: &R::Store, submission| {
        let outcome = submit(store, &submission).unwrap_or_else(|e| panic!("{e}"));
        outcome.accepted().unwrap_or_else(|refused| panic!("{refused}"));
    };
    let read = |store: &R::Store| {
        let reads: Vec<Read> = TableId::ALL.iter().map(|t| Read::all(*t)).collect();
        pollster::block_on(store.read(&reads)).unwrap_or_else(|e| panic!("{e}"))
    };
    done(&utc, say(|c| workspace(c, "w")));
    for zone in zones {
        let there = rig.open_in_zone(zone);
        let before = read(&utc).view.now;
        let now = read(&there).view.now;
        done(&there, say(|c| task(c, "w", zone)));
        let rows = read(&utc);
        let after = rows.view.now;
        assert!(before <= now && now <= after, "{zone}: {now:?} between {before:?} and {after:?}");
        let task = rows.view.tasks.id(id_of(Kind::TaskId, zone));
        let made = task.unwrap_or_else(|| panic!("no task of {zone}")).created_at;
        assert!(now <= made && made <= after, "{zone}: made at {made:?}, after {now:?}");
        let all =
            |store: &R::Store| pollster::block_on(dump(store)).unwrap_or_else(|e| panic!("{e}"));
        same(&all(&utc), &all(&there)).unwrap_or_else(|what| panic!("{zone}: {what}"));
        let wanted = rows.view.tasks.len() + 1;
        let lines =
            |store| journal_of::<R>(store, 0, wanted).unwrap_or_else(|what| panic!("{what}"));
        assert_eq!(lines(&utc), lines(&there), "{zone}");
        let last = lines(&utc).pop().unwrap_or_else(|| panic!("no line"));
        assert_eq!(last.columns["at"], made.0.to_string(), "{zone}");
    }
}
