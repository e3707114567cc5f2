//! What the codes of the parts, the resource and the removal stand for.

use freehold_kernel::*;

use super::bits::Vars;

/// State, tries and whether the lease has lapsed, of a part with this code after activation.
pub(super) fn part(index: u8, v: &Vars) -> (JobState, u32, bool) {
    let before = match v.job {
        0..=2 => Some(JobState::Prepared),
        3 | 4 => Some(JobState::Cancelled),
        _activated => None,
    };
    if let Some(state) = before {
        return (state, 0, false);
    }
    match (index, if index == 0 { v.part0 } else { v.part1 }) {
        (_, 0) => (JobState::Pending, 0, false),
        (0, 1) | (1, 2) => (JobState::Running, 1, false),
        (0, 2) | (1, 4) => (JobState::Running, 1, true),
        (0, 3) | (1, 7) => (JobState::Succeeded, 1, false),
        (0, 4) | (1, 10) => (JobState::Cancelled, 0, false),
        (0, _) | (1, 11) => (JobState::Cancelled, 1, false),
        (_, 1) => (JobState::Pending, 1, false),
        (_, 3) => (JobState::Running, 2, false),
        (_, 5) => (JobState::Running, 2, true),
        (_, 6) => (JobState::RetryWait, 1, false),
        (_, 8) => (JobState::Succeeded, 2, false),
        (_, 9) => (JobState::Failed, 2, false),
        (_, _) => (JobState::Cancelled, 2, false),
    }
}

/// Kind, result and reason by the resource's code.
pub(super) const RESOURCES: [(bool, ResourceResult, Reason); 14] = [
    (true, ResourceResult::Waiting, Reason::None),
    (true, ResourceResult::Waiting, Reason::MakerAlive),
    (true, ResourceResult::Removed, Reason::None),
    (true, ResourceResult::Failed, Reason::TriesSpent),
    (true, ResourceResult::Failed, Reason::MakerAlive),
    (false, ResourceResult::Waiting, Reason::None),
    (false, ResourceResult::Waiting, Reason::InUse),
    (false, ResourceResult::Removing, Reason::None),
    (false, ResourceResult::Removed, Reason::None),
    (false, ResourceResult::Preserved, Reason::Borrowed),
    (false, ResourceResult::Kept, Reason::AuthorityGone),
    (false, ResourceResult::Failed, Reason::TriesSpent),
    (false, ResourceResult::Failed, Reason::InUse),
    (false, ResourceResult::Absent, Reason::None),
];

/// What a code of the resource stands for; none for 0.
pub(super) fn resource_kind(code: u8) -> Option<(bool, ResourceResult, Reason)> {
    usize::from(code).checked_sub(1).and_then(|i| RESOURCES.get(i)).copied()
}

pub(super) const STEPS: [RemovalStep; 9] = [
    RemovalStep::Permitted,
    RemovalStep::Salvaged,
    RemovalStep::Renamed,
    RemovalStep::Compared,
    RemovalStep::Unregistered,
    RemovalStep::BranchSettled,
    RemovalStep::Purged,
    RemovalStep::Returned,
    RemovalStep::Returned,
];

/// The last step that a code of the removal stands for; none for 0.
pub(super) fn last_step(code: u8) -> Option<RemovalStep> {
    usize::from(code).checked_sub(1).and_then(|i| STEPS.get(i)).copied()
}
