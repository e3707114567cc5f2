//! Planted faults: the kernel with a guard taken out, under the same sequences. Each is found by a
//! property and shrunk to a sequence that a person can read.

#![allow(clippy::unwrap_used)]

use freehold_kernel::{Guard, Time};
use freehold_store::Clock;
use freehold_testkit::driver::Driver;
use freehold_testkit::driver::backend::Mutant;
use freehold_testkit::driver::random::{number, run, runner, sequence};
use proptest::test_runner::{TestCaseError, TestError};

/// Runs sequences until a check fails; the shrunk failure and how many operations it has left.
fn find(without: &[Guard], only: &'static str) -> Option<(String, usize)> {
    let clean = |ops: &[freehold_testkit::driver::op::Op]| {
        let mutant = Mutant::new(Clock::manual(Time(1_000_000)), without);
        let mut driver = Driver::new(mutant)?;
        driver.only = Some(only);
        run(&mut driver, ops)
    };
    let result = runner(number("FREEHOLD_CASES", 6000)).run(&sequence(), |ops| {
        clean(&ops).map_err(|failure| TestCaseError::fail(failure.to_string()))
    });
    match result {
        Ok(()) => None,
        Err(TestError::Fail(why, ops)) => Some((why.to_string(), ops.len())),
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
}

#[track_caller]
fn breaks(without: &[Guard], only: &'static str) {
    let Some((report, length)) = find(without, only) else {
        panic!("without {without:?} {only} held");
    };
    let (way, what) = report.rsplit_once("=> ").unwrap_or(("", report.as_str()));
    println!("without {without:?}: {what}\nafter {length} operations:\n{way}");
    assert!(what.contains(only), "without {without:?} {only} was expected: {what}");
    assert!(length <= 12, "shrunk to {length} operations");
}

macro_rules! planted {
    ($($name:ident: [$($guard:ident),*] breaks $property:literal;)*) => {$(
        #[test]
        fn $name() {
            breaks(&[$(Guard::$guard),*], $property);
        }
    )*};
}

planted! {
    without_the_barrier: [TaskUnbarred] breaks "P-6";
    without_the_barrier_at_persist: [PersistUnbarred] breaks "P-6";
    without_the_parents_barrier: [ParentUnbarred] breaks "P-30";
    without_fresh_ids: [IdNeverUsed] breaks "P-16";
    without_the_closing_token: [ClosingToken] breaks "oracle";
    without_turn_work: [NoTurnWork] breaks "P-19";
    without_one_turn: [OneTurn] breaks "P-23";
    without_the_epoch: [EpochCurrent] breaks "P-24";
    without_the_removal_token: [RemovalToken] breaks "P-11";
    without_salvage: [SalvagedFirst] breaks "P-29";
    without_the_snapshot: [SnapshotTaken] breaks "P-7";
    without_the_borrower: [BorrowerKeeps] breaks "P-10";
    without_the_borrower_at_the_permission: [PermitNoBorrower] breaks "P-10";
    without_the_lease_of_a_removal: [RemovalLapsed] breaks "P-12";
    without_the_mark: [MarkRemoving] breaks "P-33";
    without_stopping_cleanup: [UnarchiveCancels, AuthorityStands, RemovalStands] breaks "P-14";
    without_the_owner: [OwnedAsSnapshot, AuthorityStands, UnarchiveCancels, RemovalStands] breaks "P-4";
    without_evidence: [EvidenceKnown] breaks "P-28";
    without_permissions: [Permission] breaks "P-27";
    without_request_contents: [RequestContent] breaks "P-32";
}
