//! What a command serves, for the journal's cause chain (D-21): every effect has a chain back to
//! its origin.

use freehold_kernel::{
    AttemptCommand as A, CleanupCommand as C, Command, Kind, OperationCommand as O,
    OperatorCommand as P, SystemCommand as Y,
};

/// The operation, job, attempt or removal that the command serves; none for one of its own.
pub(crate) fn of(command: &Command) -> Option<(Kind, u128)> {
    match *command {
        Command::Session(_) | Command::Turn(_) | Command::Task(_) => None,
        Command::Operation(c) => match c {
            O::Reserve { operation, .. }
            | O::RenewBarrier { operation, .. }
            | O::Snapshot { operation, .. }
            | O::Mutate { operation, .. }
            | O::Abort { operation, .. }
            | O::BeginWorkspaceDelete { operation, .. }
            | O::AbortWorkspaceDelete { operation, .. }
            | O::FinishWorkspaceDelete { operation, .. } => Some((Kind::OperationId, operation.0)),
            O::Unarchive { .. } => None,
        },
        Command::Attempt(c) => match c {
            A::Begin { attempt, .. }
            | A::BeginRestore { attempt, .. }
            | A::Materialised { attempt, .. }
            | A::Persist { attempt, .. }
            | A::GiveUp { attempt, .. }
            | A::Renew { attempt, .. }
            | A::Recover { attempt, .. }
            | A::Compensate { attempt, .. } => Some((Kind::AttemptId, attempt.0)),
        },
        Command::Cleanup(c) => match c {
            C::Claim { job_root, .. }
            | C::Renew { job_root, .. }
            | C::Finish { job_root, .. }
            | C::PutBack { job_root, .. }
            | C::Park { job_root, .. }
            | C::Rescue { job_root, .. }
            | C::GiveUpRoot { job_root } => Some((Kind::JobRootId, job_root.0)),
            C::SettleResource { resource, .. } | C::Permit { resource, .. } => {
                Some((Kind::ResourceId, resource.0))
            }
            C::RecordStep { removal, .. }
            | C::RecordFailure { removal, .. }
            | C::RenewRemoval { removal, .. }
            | C::TakeOverRemoval { removal, .. } => Some((Kind::RemovalId, removal.0)),
            C::ExpireSalvage { salvage } => Some((Kind::SalvageId, salvage.0)),
            C::Purge { trash, .. } => Some((Kind::TrashId, trash.0)),
        },
        Command::Operator(c) => match c {
            P::Retry { job } | P::Cancel { job } => Some((Kind::JobId, job.0)),
            P::DeclareStopped { runtime } => Some((Kind::RuntimeId, runtime.0)),
            P::ForgetResource { resource } => Some((Kind::ResourceId, resource.0)),
            P::AdmitRestore { salvage, .. } | P::MarkRestored { salvage } => {
                Some((Kind::SalvageId, salvage.0))
            }
            P::ChangeSettings { .. } | P::RegisterRoot { .. } => None,
        },
        Command::System(c) => match c {
            Y::RegisterInstance { .. } | Y::RenewInstance { .. } | Y::Drain { .. } => None,
            Y::RecoverBarrier { job } => Some((Kind::JobId, job.0)),
            Y::RecoverWorkspaceDelete { workspace } => Some((Kind::WorkspaceId, workspace.0)),
            Y::RecoverClosing { session } => Some((Kind::SessionId, session.0)),
            Y::RecoverTurn { turn, .. } => Some((Kind::TurnId, turn.0)),
            Y::Reconcile { operation, .. } => Some((Kind::OperationId, operation.0)),
        },
    }
}
