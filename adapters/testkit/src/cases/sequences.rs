//! Random command sequences with a simulated disk: all properties of the kernel, the naive oracle,
//! and after every command the answers, rows and journal of the reference. `FREEHOLD_CASES`,
//! `FREEHOLD_OPS` and `FREEHOLD_SEED` give another number, length and seed.

use std::cell::RefCell;
use std::collections::BTreeSet;

use freehold_kernel::{Envelope, View};
use freehold_store::submission::Contents;
use freehold_store::{Clock, Names, Submission};
use proptest::test_runner::TestCaseError;

use crate::driver::backend::{Answer, Backend};
use crate::driver::random::{number, run, runner, sequence};
use crate::driver::{Driver, Failure};
use crate::rig::{Can, Rig};
use crate::twin::{Disturbed, Twin};

impl<R: Rig> Backend for Twin<R> {
    fn submit(&mut self, envelope: &Envelope) -> Answer {
        let submission =
            Submission { envelope: *envelope, names: Names::new(), contents: Contents::new() };
        Twin::submit(self, &submission).into()
    }

    fn world(&mut self) -> View {
        self.everything().view
    }

    fn clock(&self) -> Clock {
        self.rig.clock()
    }

    fn reopen(&mut self) {
        if R::can_crash() == Can::Yes {
            self.crash();
        }
        if R::can_reopen() == Can::Yes {
            Twin::reopen(self);
        }
    }

    fn compare(&mut self) -> Result<(), String> {
        Twin::compare(self)
    }
}

/// The sequences; a failure is shrunk to a short one.
pub fn random_sequences_keep_every_property<R: Rig>() {
    let cases = number("FREEHOLD_CASES", R::sequences());
    let seen = RefCell::new(BTreeSet::new());
    let result = runner(cases).run(&sequence(), |ops| {
        let failed = |failure: Failure| TestCaseError::fail(failure.to_string());
        let mut driver = Driver::new(Twin::<R>::new(Disturbed::InTurns)).map_err(failed)?;
        run(&mut driver, &ops).map_err(failed)?;
        let accepted = driver.seen.keys().filter(|(_, answer)| *answer == "accepted");
        seen.borrow_mut().extend(accepted.map(|(command, _)| *command));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let seen = seen.into_inner();
    println!("{cases} sequences, {} commands accepted", seen.len());
    // The sequences reach far, else they say little.
    for command in ["operation.mutate", "cleanup.claim", "attempt.begin", "turn.submit"] {
        assert!(cases < 24 || seen.contains(command), "none got to {command}: {seen:?}");
    }
}
