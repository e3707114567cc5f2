//! Requests: one id, one outcome, whoever asks again and whenever (D-19).

use freehold_kernel::{Guard, Reply};
use freehold_store::{Outcome, Submission};

use crate::rig::Rig;
use crate::speech::{ask, say, session, star, submit, task, workspace};
use crate::twin::{Disturbed, Twin};

fn replayed(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Accepted(accepted) => accepted.replayed,
        Outcome::Refused(refused) => refused.replayed,
    }
}

/// A request is answered with its first outcome, and carried out once.
pub fn a_request_is_answered_with_its_first_outcome<R: Rig>() {
    requests::<R>(|_| {});
}

/// The same after closing and opening.
pub fn a_request_is_remembered_when_reopened<R: Rig>() {
    requests::<R>(Twin::reopen);
}

/// The same after a crash.
pub fn a_request_is_remembered_after_a_crash<R: Rig>() {
    requests::<R>(Twin::crash);
}

fn requests<R: Rig>(between: impl Fn(&mut Twin<R>)) {
    let mut twin = Twin::<R>::new(Disturbed::No);
    twin.says(|c, _| workspace(c, "w"));
    let first = twin.submit(&ask("q1", |c| task(c, "w", "t1")));
    assert!(!replayed(&first));
    between(&mut twin);
    let again = twin.submit(&ask("q1", |c| task(c, "w", "t1")));
    assert!(replayed(&again), "{again:?}");
    let again = again.accepted().unwrap_or_else(|refused| panic!("{refused}"));
    assert_eq!(again.reply, Reply::Done);
    assert!(again.events.is_empty() && again.effects.is_empty() && again.warrant.is_none());

    // Another content under this id.
    let other = twin.submit(&ask("q1", |c| task(c, "w", "t2")));
    assert_eq!(other.accepted().expect_err("refused").refusal.guard, Guard::RequestContent);
    // A refusal that will not pass by itself is remembered.
    for (turn, wanted) in [false, true].into_iter().enumerate() {
        let refused = twin.submit(&ask("q2", |c| task(c, "w", "t1")));
        assert_eq!(replayed(&refused), wanted, "time {turn}: {refused:?}");
        assert_eq!(refused.accepted().expect_err("refused").refusal.guard, Guard::IdNeverUsed);
        between(&mut twin);
    }
    twin.compare().unwrap_or_else(|what| panic!("{what}"));
}

/// A refusal that may pass later is decided anew.
pub fn a_refusal_that_may_pass_is_not_remembered<R: Rig>() {
    let mut twin = Twin::<R>::new(Disturbed::No);
    twin.says(|c, _| workspace(c, "w"));
    twin.says(|c, _| crate::speech::instance(c, "process"));
    twin.says(|c, _| task(c, "w", "t"));
    twin.says(|c, _| {
        crate::speech::reserve(c, "o", "t", 1, freehold_kernel::Trigger::Archive, "process")
    });
    let wanted = ask("q", |c| session(c, "t", "s", None));
    let refused = twin.submit(&wanted).accepted().expect_err("a barrier is in the way").refusal;
    assert!(refused.guard.may_pass_later());
    twin.says(|c, _| {
        let (operation, instance) = (crate::speech::id(c, "o"), crate::speech::id(c, "process"));
        let abort = freehold_kernel::OperationCommand::Abort { operation, instance };
        freehold_kernel::Command::Operation(abort)
    });
    let outcome = twin.submit(&wanted);
    assert!(!replayed(&outcome));
    outcome.accepted().unwrap_or_else(|refused| panic!("{refused}"));
    twin.compare().unwrap_or_else(|what| panic!("{what}"));
}

/// Another connection answers a request with the outcome that the first one gave.
pub fn another_connection_knows_the_outcome<R: Rig>() {
    let rig = R::fresh();
    let (one, other) = (rig.open(), rig.open());
    let said = |store: &R::Store, submission: &Submission| {
        let outcome = submit(store, submission).unwrap_or_else(|e| panic!("{e}"));
        outcome.accepted().unwrap_or_else(|refused| panic!("{refused}"))
    };
    said(&one, &say(|c| workspace(c, "w")));
    said(&other, &say(|c| task(c, "w", "t")));
    said(&one, &say(|c| session(c, "t", "s", None)));
    let star = ask("q", |c| star(c, "s", true));
    assert!(!said(&one, &star).replayed);
    assert!(said(&other, &star).replayed);
    assert!(said(&one, &star).replayed);
}
