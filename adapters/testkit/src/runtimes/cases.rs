//! The cases, each a function over a rig that panics with what went wrong.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use freehold_kernel::{Liveness, RuntimeKind};
use freehold_store::{RuntimeHandle, Runtimes};

use super::{Manners, RuntimesRig};

/// Stops these on a thread of its own, since one that never ends must fail and not hang: the
/// answers, and how often the pulse was called.
fn stop_all<R: RuntimesRig>(
    by: &Arc<R::Runtimes>,
    handles: &[RuntimeHandle],
    bound: Duration,
) -> (Vec<Liveness>, u32) {
    let (done, ends) = mpsc::channel();
    let (by, handles) = (Arc::clone(by), handles.to_vec());
    std::thread::spawn(move || {
        let pulses = AtomicU32::new(0);
        let mut pulse = || {
            pulses.fetch_add(1, Ordering::SeqCst);
        };
        let answers = match handles.as_slice() {
            [one] => vec![by.stop(one, bound, &mut pulse)],
            several => by.stop_all(several, bound, &mut pulse),
        };
        // Nobody waits any more if it took too long.
        let _ = done.send((answers, pulses.load(Ordering::SeqCst)));
    });
    match ends.recv_timeout(R::patience()) {
        Ok(done) => done,
        Err(RecvTimeoutError::Timeout) => {
            panic!("a stop within {bound:?} has not ended after {:?}", R::patience())
        }
        Err(RecvTimeoutError::Disconnected) => panic!("a stop panicked"),
    }
}

/// Stops one; enough time for a deaf one.
fn stop<R: RuntimesRig>(by: &Arc<R::Runtimes>, handle: &RuntimeHandle) -> Liveness {
    let (answers, _) = stop_all::<R>(by, std::slice::from_ref(handle), R::bound());
    answers[0]
}

/// A place, an instance's runtimes, and one of them that runs.
fn begun<R: RuntimesRig>(manners: Manners) -> (R, Arc<R::Runtimes>, RuntimeHandle) {
    let rig = R::fresh();
    let by = Arc::new(rig.open());
    let handle = rig.begin(&by, manners);
    assert!(rig.runs(&handle), "the rig began nothing");
    (rig, by, handle)
}

/// C-7: alive while it runs, dead once it is gone, and unknown for a handle that leads to nobody:
/// "not found" is no proof. A look changes nothing.
pub fn there_are_three_answers_and_looking_touches_nobody<R: RuntimesRig>() {
    let (rig, by, handle) = begun::<R>(Manners::Listens);
    let nobody = rig.of_nobody(&handle);
    for look in 0..3 {
        assert_eq!(by.liveness(&handle), Liveness::Alive, "it runs, look {look}");
        assert_eq!(by.liveness(&nobody), Liveness::Unknown, "what leads to nobody proves nothing");
        assert!(by.serves(&handle), "its own machine's is served");
        by.tend();
    }
    let (answers, _) = stop_all::<R>(&by, std::slice::from_ref(&nobody), R::bound());
    assert_eq!(answers, [Liveness::Unknown], "a stop that found nobody proves nothing");
    assert!(rig.runs(&handle), "a look ended it");
    rig.kill(&handle);
    assert_eq!(by.liveness(&handle), Liveness::Dead, "it is gone");
}

/// T-5: whoever ends when he is asked is not killed.
pub fn one_that_listens_ends_in_its_own_way<R: RuntimesRig>() {
    let (rig, by, handle) = begun::<R>(Manners::Listens);
    assert_eq!(stop::<R>(&by, &handle), Liveness::Dead, "it was asked, and ends");
    assert!(!rig.runs(&handle), "it is said to be dead, and runs");
    assert!(rig.ended_in_its_own_way(&handle), "it was killed without being asked");
}

/// T-5: who does not hear it is ended all the same, and the call ends with it.
pub fn one_that_does_not_listen_is_killed_within_the_bound<R: RuntimesRig>() {
    let (rig, by, handle) = begun::<R>(Manners::Deaf);
    assert_eq!(stop::<R>(&by, &handle), Liveness::Dead, "it was not killed within the bound");
    assert!(!rig.runs(&handle), "it is said to be dead, and runs");
}

/// C-6, C-7: where the bound is too short for anything to end, the answer is still true.
pub fn one_is_not_said_to_be_dead_while_it_lives<R: RuntimesRig>() {
    let (rig, by, handle) = begun::<R>(Manners::Deaf);
    let short = Duration::from_micros(1);
    let (answers, _) = stop_all::<R>(&by, std::slice::from_ref(&handle), short);
    match answers[0] {
        Liveness::Dead => assert!(!rig.runs(&handle), "it is said to be dead, and runs"),
        Liveness::Alive | Liveness::Unknown => {
            assert_eq!(stop::<R>(&by, &handle), Liveness::Dead, "a second stop is not carried out");
        }
    }
    assert!(!rig.runs(&handle), "it is said to be dead, and runs");
}

/// The port's promise: at least once a second, so that the caller's lease is kept. How often
/// exactly depends on the machine; never is too rarely for a stop that takes its time.
pub fn the_pulse_is_called_while_it_is_waited_for<R: RuntimesRig>() {
    let rig = R::fresh();
    let by = Arc::new(rig.open_patient());
    let handle = rig.begin(&by, Manners::Deaf);
    let (answers, pulses) = stop_all::<R>(&by, std::slice::from_ref(&handle), R::bound());
    assert_eq!(answers, [Liveness::Dead]);
    assert!(!rig.runs(&handle), "it is said to be dead, and runs");
    assert!(pulses > 0, "no pulse during a whole stop");
}

/// C-7, C-17, W-31: what cannot be judged from here.
fn is_strange<R: RuntimesRig>(
    rig: &R,
    by: &Arc<R::Runtimes>,
    own: &RuntimeHandle,
    strange: &RuntimeHandle,
    what: &str,
) {
    assert!(!by.serves(strange), "{what} is served");
    assert_eq!(by.liveness(strange), Liveness::Unknown, "{what} is judged from here");
    assert_eq!(stop::<R>(by, strange), Liveness::Unknown, "{what} is said to be stopped from here");
    assert!(rig.runs(own), "{what} is stopped, and somebody here was hit");
}

/// C-7, C-17: a handle of another machine says nothing about anybody here, whatever numbers are in
/// it.
pub fn another_machines_is_unknown_and_not_served<R: RuntimesRig>() {
    let (rig, by, handle) = begun::<R>(Manners::Listens);
    let strange = rig.of_another_machine(&handle);
    is_strange(&rig, &by, &handle, &strange, "another machine's");
    assert_eq!(stop::<R>(&by, &handle), Liveness::Dead);
}

/// C-7, C-17: neither does one of another kind, nor a container's or sandbox's, which has no row.
pub fn another_kind_is_unknown_and_not_served<R: RuntimesRig>() {
    let (rig, by, handle) = begun::<R>(Manners::Listens);
    for kind in RuntimeKind::ALL.iter().filter(|kind| !R::kinds().contains(kind)) {
        let mut strange = handle.clone();
        let row = strange.row.as_mut().unwrap_or_else(|| panic!("the rig's handle has no row"));
        row.kind = *kind;
        is_strange(&rig, &by, &handle, &strange, &format!("one of the kind {}", kind.code()));
    }
    assert_eq!(stop::<R>(&by, &handle), Liveness::Dead);
}

/// C-6: a stop is repeated whenever its answer was lost.
pub fn a_stop_is_idempotent<R: RuntimesRig>() {
    let (rig, by, handle) = begun::<R>(Manners::Listens);
    let other = Arc::new(rig.open());
    for by in [&by, &by, &other] {
        assert_eq!(stop::<R>(by, &handle), Liveness::Dead, "stopped again, it is as dead");
        by.tend();
    }
    assert!(!rig.runs(&handle), "it is said to be dead, and runs");
}

/// S-14: two instances, or two threads of one, may come to the same stop.
pub fn two_that_stop_one_at_once_both_prove_it<R: RuntimesRig>() {
    let (rig, by, handle) = begun::<R>(Manners::Deaf);
    let other = Arc::new(rig.open());
    let all = Barrier::new(3);
    let answers: Vec<Liveness> = std::thread::scope(|scope| {
        let stops = [&by, &by, &other].map(|by| {
            scope.spawn(|| {
                all.wait();
                stop::<R>(by, &handle)
            })
        });
        stops.map(|s| s.join().unwrap_or_else(|why| std::panic::resume_unwind(why))).to_vec()
    });
    assert_eq!(answers, [Liveness::Dead; 3], "each of those who stop it has to prove it");
    assert!(!rig.runs(&handle), "it is said to be dead, and runs");
}

/// One answer for each, in their order, whatever the others' are.
pub fn several_are_answered_for_in_their_order<R: RuntimesRig>() {
    let (rig, by, deaf) = begun::<R>(Manners::Deaf);
    let (spared, listens) = (rig.begin(&by, Manners::Deaf), rig.begin(&by, Manners::Listens));
    let handles = [deaf, rig.of_another_machine(&spared), listens];
    let (answers, _) = stop_all::<R>(&by, &handles, R::bound());
    assert_eq!(answers, [Liveness::Dead, Liveness::Unknown, Liveness::Dead], "not in their order");
    assert!(!rig.runs(&handles[0]) && !rig.runs(&handles[2]), "said to be dead, and runs");
    assert!(rig.runs(&spared), "one that was not named was stopped");
    assert_eq!(by.stop_all(&[], R::bound(), &mut || {}), [], "nobody was asked about");
    assert_eq!(stop::<R>(&by, &spared), Liveness::Dead);
}

/// C-7: what is dead is dead for every instance and for ever, also when its number, or what else it
/// is found by, is given to others; and they are not touched by another stop of it (W-31).
pub fn a_dead_one_stays_dead<R: RuntimesRig>() {
    let (rig, by, handle) = begun::<R>(Manners::Listens);
    rig.kill(&handle);
    let later: Vec<RuntimeHandle> = (0..4).map(|_| rig.begin(&by, Manners::Listens)).collect();
    for by in [by.clone(), Arc::new(rig.open())] {
        by.tend();
        assert_eq!(by.liveness(&handle), Liveness::Dead, "it came to life again");
        assert_eq!(stop::<R>(&by, &handle), Liveness::Dead, "it came to life again");
    }
    for other in &later {
        assert!(rig.runs(other), "another was stopped in its place");
        assert_eq!(by.liveness(other), Liveness::Alive);
        assert_eq!(stop::<R>(&by, other), Liveness::Dead);
    }
}
