//! Which rows each command is decided on. Each list loads everything that its decision looks
//! at; a test decides every command on the footprint and on the whole world and compares.

use alloc::vec;
use alloc::vec::Vec;

use crate::command::*;
use crate::footprint::Lookup as L;
use crate::id::*;
use crate::rows::*;

/// The footprint of a command.
pub fn footprint(envelope: &Envelope) -> Vec<L> {
    let mut lookups = vec![L::Settings];
    if let Some(request) = envelope.request {
        lookups.push(L::Request(request));
    }
    match envelope.command {
        Command::Session(c) => session(&c, &mut lookups),
        Command::Turn(c) => turn(&c, &mut lookups),
        Command::Task(c) => task(&c, &mut lookups),
        Command::Operation(c) => operation(&c, &mut lookups),
        Command::Attempt(c) => attempt(&c, &mut lookups),
        Command::Cleanup(c) => cleanup(&c, &mut lookups),
        Command::Operator(c) => operator(&c, &mut lookups),
        Command::System(c) => system(&c, &mut lookups),
    }
    lookups
}

/// A task with what says whether something may come under it.
fn named_task(id: TaskId, to: &mut Vec<L>) {
    to.extend([L::Task(id), L::Identity(IdentityKind::Task, id.0), L::JobsOfTasks]);
}

fn named_session(id: SessionId, to: &mut Vec<L>) {
    to.extend([
        L::Session(id),
        L::Identity(IdentityKind::Session, id.0),
        L::TasksOfSessions,
        L::JobsOfTasks,
    ]);
}

fn environment_with_owner(id: EnvironmentId, to: &mut Vec<L>) {
    to.extend([
        L::Environment(id),
        L::TasksOfEnvironments,
        L::JobsOfTasks,
        L::ReposOfEnvironments,
        L::AttemptsOfEnvironments,
    ]);
}

fn session(command: &SessionCommand, to: &mut Vec<L>) {
    match *command {
        SessionCommand::Create { session, task, environment, .. } => {
            named_task(task, to);
            to.push(L::Identity(IdentityKind::Session, session.0));
            if let Some(id) = environment {
                environment_with_owner(id, to);
            }
        }
        SessionCommand::Link { session, environment } => {
            named_session(session, to);
            to.extend([L::TurnsOfSessions, L::RuntimesOfSessions]);
            environment_with_owner(environment, to);
        }
        SessionCommand::RecordActivity { session, .. } => {
            to.extend([
                L::Session(session),
                L::Identity(IdentityKind::Session, session.0),
                L::TurnsOfSessions,
            ]);
        }
        SessionCommand::Star { session, .. } => {
            to.extend([L::Session(session), L::Identity(IdentityKind::Session, session.0)]);
        }
        SessionCommand::BeginClose { session, .. } => {
            to.extend([
                L::Session(session),
                L::Identity(IdentityKind::Session, session.0),
                L::TurnsOfSessions,
                L::RuntimesOfSessions,
            ]);
        }
        // No look-up here names an environment, a row of one, or anything physical (S-24).
        SessionCommand::CommitClose { session, .. } => {
            to.extend([
                L::Session(session),
                L::Identity(IdentityKind::Session, session.0),
                L::AllTurnsOfSessions,
                L::InputsOfSessions,
                L::RuntimesOfSessions,
                L::TasksOfSessions,
                L::SessionsOfTasks,
            ]);
        }
        SessionCommand::AbortClose { session, .. } => {
            to.extend([L::Session(session), L::Identity(IdentityKind::Session, session.0)]);
        }
        SessionCommand::Unarchive { session } => {
            named_session(session, to);
            to.extend([
                L::EnvironmentsOfSessions,
                L::TasksOfEnvironments,
                L::JobsOfTasks,
                L::ReposOfEnvironments,
            ]);
        }
    }
}

fn turn(command: &TurnCommand, to: &mut Vec<L>) {
    match *command {
        TurnCommand::Submit { session, input, turn, runtime, instance, .. } => {
            named_session(session, to);
            to.extend([
                L::TurnsOfSessions,
                L::InputsOfSessions,
                L::RuntimesOfSessions,
                L::EnvironmentsOfSessions,
                L::ReposOfEnvironments,
                L::Instance(instance),
                L::Input(input),
                L::Turn(turn),
                L::Runtime(runtime),
            ]);
        }
        TurnCommand::End { turn, next_turn, next_runtime, .. } => {
            to.extend([
                L::Turn(turn),
                L::SessionsOfTurns,
                L::TasksOfSessions,
                L::JobsOfTasks,
                L::TurnsOfSessions,
                L::InputsOfSessions,
                L::RuntimesOfSessions,
                L::RuntimesOfTurns,
                L::InstancesOfTurns,
                L::EnvironmentsOfSessions,
                L::ReposOfEnvironments,
                L::Turn(next_turn),
                L::Runtime(next_runtime),
            ]);
        }
        TurnCommand::TakeUp { session, turn, runtime, instance, .. } => {
            named_session(session, to);
            to.extend([
                L::TurnsOfSessions,
                L::InputsOfSessions,
                L::RuntimesOfSessions,
                L::EnvironmentsOfSessions,
                L::ReposOfEnvironments,
                L::Instance(instance),
                L::Turn(turn),
                L::Runtime(runtime),
            ]);
        }
        TurnCommand::Advance { turn, .. } => to.extend([L::Turn(turn), L::SessionsOfTurns]),
        TurnCommand::Renew { turn, .. } => to.push(L::Turn(turn)),
        TurnCommand::CancelInput { input } => to.extend([L::Input(input), L::SessionsOfInputs]),
        TurnCommand::ReportRuntime { runtime, .. } => to.push(L::Runtime(runtime)),
    }
}

fn task(command: &TaskCommand, to: &mut Vec<L>) {
    match *command {
        TaskCommand::CreateWorkspace { workspace } => {
            to.push(L::Identity(IdentityKind::Workspace, workspace.0));
        }
        TaskCommand::Create { task, workspace, parent, .. } => {
            to.extend([
                L::Workspace(workspace),
                L::Identity(IdentityKind::Workspace, workspace.0),
                L::Identity(IdentityKind::Task, task.0),
            ]);
            if let Some(parent) = parent {
                named_task(parent, to);
            }
        }
        TaskCommand::Move { task, parent } => {
            named_task(task, to);
            if let Some(parent) = parent {
                named_task(parent, to);
            }
            to.extend([L::WorkspacesOfTasks, L::AncestorsOfTasks]);
        }
        TaskCommand::CreateEnvironment { environment, task, .. } => {
            named_task(task, to);
            to.push(L::Environment(environment));
        }
        TaskCommand::MarkMerged { repo } => to.push(L::Repo(repo)),
        TaskCommand::RecordUnmanaged { repo, environment, .. } => {
            environment_with_owner(environment, to);
            to.push(L::Repo(repo));
        }
        TaskCommand::Transfer { environment, to: receiver } => {
            to.push(L::Environment(environment));
            to.extend([L::TasksOfEnvironments, L::EnvironmentsOfTasks]);
            named_task(receiver, to);
            to.extend([L::ReposOfEnvironments, L::AttemptsOfEnvironments]);
        }
    }
}

/// The tasks that an operation is about: its own, and what it must not miss (B-9).
fn tasks_of_operation(operation: OperationId, scope: Scope, to: &mut Vec<L>) {
    to.extend([L::JobsOfOperation(operation), L::TasksOfJobs]);
    match scope {
        Scope::Task => {}
        // B-9: all of the tree is looked at, even if nobody holds its root.
        Scope::Cascade => to.extend([L::CascadeRootsOfJobs, L::DescendantsOfTasks]),
        Scope::Workspace => to.extend([L::WorkspacesOfDeletions, L::TasksOfWorkspaces]),
    }
}

/// Everything that a lifecycle operation on the loaded tasks looks at.
fn whole_tasks(to: &mut Vec<L>) {
    to.extend([
        L::EnvironmentsOfTasks,
        L::SessionsOfTasks,
        L::SessionsOfEnvironments,
        L::TasksOfSessions,
        L::ReposOfEnvironments,
        L::AttemptsOfEnvironments,
        L::RuntimesOfTasks,
        L::JobsOfTasks,
    ]);
}

fn operation(command: &OperationCommand, to: &mut Vec<L>) {
    match *command {
        OperationCommand::Reserve {
            operation,
            job,
            task,
            trigger,
            instance,
            environment,
            cascade_root,
            ..
        } => {
            to.push(L::JobsOfOperation(operation));
            to.push(L::Job(job));
            named_task(task, to);
            to.extend([L::RootsOfJobs, L::ResourcesOfJobs, L::Instance(instance)]);
            to.extend([L::SessionsOfTasks, L::TurnsOfSessions, L::RuntimesOfTasks]);
            if trigger == Trigger::WorkspaceDelete {
                to.push(L::WorkspacesOfTasks);
            }
            if let Some(environment) = environment {
                to.extend([
                    L::Environment(environment),
                    L::SessionsOfEnvironments,
                    L::TasksOfSessions,
                    L::ReposOfEnvironments,
                    L::RuntimesOfEnvironments,
                ]);
            }
            if cascade_root.is_some() {
                to.push(L::AncestorsOfTasks);
            }
        }
        OperationCommand::RenewBarrier { operation, .. } => {
            to.extend([L::JobsOfOperation(operation), L::TasksOfJobs, L::WorkspacesOfDeletions]);
        }
        OperationCommand::Abort { operation, .. } => {
            to.extend([L::JobsOfOperation(operation), L::RootsOfJobs, L::TasksOfJobs]);
        }
        OperationCommand::Snapshot { operation, scope, .. } => {
            tasks_of_operation(operation, scope, to);
            whole_tasks(to);
            to.extend([L::RuntimesOfEnvironments, L::RootsOfJobs, L::ResourcesOfJobs]);
        }
        OperationCommand::Mutate { operation, scope, .. } => {
            tasks_of_operation(operation, scope, to);
            whole_tasks(to);
            to.extend([
                L::RootsOfJobs,
                L::ResourcesOfJobs,
                L::AllReposOfEnvironments,
                L::AttemptsOfResources,
                L::AllTurnsOfSessions,
                L::InputsOfSessions,
                // Tombstones (D-16).
                L::IdentitiesOfTasks,
                L::IdentitiesOfSessions,
                L::IdentitiesOfWorkspaces,
                // Children move up, and the parent must be able to take them (T-7).
                L::ChildrenOfTasks,
                L::ParentsOfTasks,
                L::JobsOfTasks,
            ]);
        }
        OperationCommand::Unarchive { task, cascade } => {
            named_task(task, to);
            if cascade {
                to.push(L::TasksArchivedWithTasks);
            }
            to.extend([
                L::ParentsOfTasks,
                L::SessionsOfTasks,
                L::EnvironmentsOfSessions,
                L::TasksOfEnvironments,
                L::JobsOfTasks,
                L::RootsOfJobs,
                L::ReposOfEnvironments,
            ]);
        }
        OperationCommand::BeginWorkspaceDelete { workspace, instance, .. } => {
            to.extend([
                L::Workspace(workspace),
                L::Identity(IdentityKind::Workspace, workspace.0),
                L::Instance(instance),
            ]);
        }
        OperationCommand::AbortWorkspaceDelete { workspace, operation } => {
            to.extend([
                L::Workspace(workspace),
                L::Identity(IdentityKind::Workspace, workspace.0),
                L::JobsOfOperation(operation),
                L::RootsOfJobs,
                L::TasksOfJobs,
            ]);
        }
        OperationCommand::FinishWorkspaceDelete { workspace, .. } => {
            to.extend([
                L::Workspace(workspace),
                L::Identity(IdentityKind::Workspace, workspace.0),
                L::TasksOfWorkspaces,
            ]);
        }
    }
}

fn attempt(command: &AttemptCommand, to: &mut Vec<L>) {
    match *command {
        AttemptCommand::Begin { attempt, environment, repo, root, path, instance, .. } => {
            environment_with_owner(environment, to);
            to.extend([
                L::Repo(repo),
                L::Attempt(attempt),
                L::Root(root),
                L::Instance(instance),
                L::ReposOnPath(path),
                L::AttemptsOnPath(path),
                L::RemovalsOnPath(path),
            ]);
        }
        AttemptCommand::BeginRestore {
            attempt, trash, environment, repo, path, instance, ..
        } => {
            environment_with_owner(environment, to);
            to.extend([
                L::Repo(repo),
                L::Attempt(attempt),
                L::Trash(trash),
                L::RootsOfTrash,
                L::Instance(instance),
                L::ReposOnPath(path),
                L::AttemptsOnPath(path),
                L::RemovalsOnPath(path),
            ]);
        }
        AttemptCommand::Materialised { attempt, .. } | AttemptCommand::Renew { attempt, .. } => {
            to.push(L::Attempt(attempt));
        }
        AttemptCommand::Persist { attempt, .. }
        | AttemptCommand::GiveUp { attempt, .. }
        | AttemptCommand::Recover { attempt, .. } => {
            to.extend([
                L::Attempt(attempt),
                L::EnvironmentsOfAttempts,
                L::TasksOfEnvironments,
                L::JobsOfTasks,
                L::ReposOfEnvironments,
                L::ReposOfAttempts,
                L::AttemptsOfEnvironments,
                L::RootsOfAttempts,
                L::TrashOfAttempts,
            ]);
            if let AttemptCommand::Recover { instance, .. } = *command {
                to.push(L::Instance(instance));
            }
        }
        AttemptCommand::Compensate { attempt, removal, instance, .. } => {
            to.extend([
                L::Attempt(attempt),
                L::RemovalsOfAttempts,
                L::RootsOfAttempts,
                L::TrashOfAttempts,
                L::Removal(removal),
                L::Instance(instance),
            ]);
        }
    }
}

/// A resource with its job and claim.
fn named_resource(id: ResourceId, to: &mut Vec<L>) {
    to.extend([L::Resource(id), L::RootsOfResources, L::JobsOfResources]);
}

fn cleanup(command: &CleanupCommand, to: &mut Vec<L>) {
    match *command {
        CleanupCommand::Claim { job_root, instance, .. } => {
            to.extend([
                L::JobRoot(job_root),
                L::JobsOfRoots,
                L::RootsOfJobs,
                L::TasksOfJobs,
                L::JobsOfTheTasksOfJobs,
                L::ManagedRootsOfJobRoots,
                L::Instance(instance),
            ]);
        }
        CleanupCommand::Renew { job_root, .. } => to.push(L::JobRoot(job_root)),
        CleanupCommand::Park { job_root, .. } => {
            to.extend([L::JobRoot(job_root), L::JobsOfRoots, L::RootsOfJobs]);
        }
        CleanupCommand::SettleResource { resource, .. } => {
            named_resource(resource, to);
            to.extend([L::AttemptsOfResources, L::RuntimesOfResources]);
        }
        CleanupCommand::Permit { resource, removal, .. } => {
            to.extend([
                L::Resource(resource),
                L::EnvironmentsOfResources,
                L::ReposOfResources,
                L::ReposOnResourcePaths,
                L::ReposOnResourceIdentities,
                L::AttemptsOnResourcePaths,
                L::RemovalsOnResourcePaths,
                L::TasksOfEnvironments,
                L::SessionsOfEnvironments,
                L::TasksOfSessions,
                L::RuntimesOnResourceEnvironments,
                L::Removal(removal),
                L::JobsOfResources,
                L::TasksOfJobs,
                L::JobsOfTheTasksOfJobs,
                L::RootsOfJobs,
                L::ResourcesOfJobs,
                L::RuntimesOfResources,
            ]);
        }
        CleanupCommand::RecordStep { removal, .. }
        | CleanupCommand::RecordFailure { removal, .. } => removal_rows(removal, to),
        CleanupCommand::RenewRemoval { removal, .. } => to.push(L::Removal(removal)),
        CleanupCommand::TakeOverRemoval { removal, instance, .. } => {
            removal_rows(removal, to);
            to.extend([L::ManagedRootsOfRemovals, L::Instance(instance)]);
        }
        CleanupCommand::Finish { job_root, .. }
        | CleanupCommand::PutBack { job_root, .. }
        | CleanupCommand::Rescue { job_root, .. }
        | CleanupCommand::GiveUpRoot { job_root } => {
            to.extend([L::JobRoot(job_root), L::JobsOfRoots, L::RootsOfJobs, L::ResourcesOfJobs]);
        }
        CleanupCommand::ExpireSalvage { salvage } => {
            to.extend([L::Salvage(salvage), L::RemovalsOfSalvage, L::TrashOfRemovals]);
        }
        CleanupCommand::Purge { trash, removal, instance, .. } => {
            to.extend([
                L::Trash(trash),
                L::RootsOfTrash,
                L::Instance(instance),
                L::Removal(removal),
            ]);
        }
    }
}

fn removal_rows(id: RemovalId, to: &mut Vec<L>) {
    to.extend([
        L::Removal(id),
        L::AttemptsOfRemovals,
        L::PurgedTrashOfRemovals,
        L::TrashOfRemovals,
        L::SalvageOfRemovals,
        L::ReposOfRemovals,
        L::ResourcesOfRemovals,
        L::ResourcesOnRemovalPaths,
        L::JobsOfResources,
        L::TasksOfJobs,
    ]);
}

fn operator(command: &OperatorCommand, to: &mut Vec<L>) {
    match *command {
        OperatorCommand::Retry { job } | OperatorCommand::Cancel { job } => {
            to.extend([
                L::Job(job),
                L::TasksOfJobs,
                L::AllJobsOfTheTasksOfJobs,
                L::RootsOfJobs,
                L::ResourcesOfJobs,
            ]);
        }
        OperatorCommand::ForgetResource { resource } => {
            named_resource(resource, to);
            to.extend([
                L::RuntimesOfResources,
                L::RootsOfJobs,
                L::ResourcesOfJobs,
                L::RemovalsOfResources,
                L::TrashOfRemovals,
                L::ReposOfRemovals,
            ]);
        }
        // S-10: whoever admits a turn versions its session (D-23).
        OperatorCommand::DeclareStopped { runtime } => {
            to.extend([
                L::Runtime(runtime),
                L::SessionsOfRuntimes,
                L::TurnsOfSessions,
                L::InstancesOfRuntimes,
            ]);
        }
        OperatorCommand::AdmitRestore { salvage, repo } => {
            to.extend([
                L::Salvage(salvage),
                L::Repo(repo),
                L::EnvironmentsOfRepos,
                L::TasksOfEnvironments,
                L::JobsOfTasks,
                L::ReposOfEnvironments,
            ]);
        }
        OperatorCommand::MarkRestored { salvage } => to.push(L::Salvage(salvage)),
        OperatorCommand::ChangeSettings { .. } => {}
        OperatorCommand::RegisterRoot { root, path, .. } => {
            to.extend([L::Root(root), L::RootsOnPath(path)]);
        }
    }
}

fn system(command: &SystemCommand, to: &mut Vec<L>) {
    match *command {
        SystemCommand::RegisterInstance { instance, .. }
        | SystemCommand::RenewInstance { instance }
        | SystemCommand::Drain { instance, .. } => to.push(L::Instance(instance)),
        SystemCommand::RecoverBarrier { job } => {
            to.extend([L::Job(job), L::RootsOfJobs, L::TasksOfJobs]);
        }
        SystemCommand::RecoverWorkspaceDelete { workspace } => {
            to.extend([
                L::Workspace(workspace),
                L::Identity(IdentityKind::Workspace, workspace.0),
                L::JobsOfWorkspaceDeletions,
                L::RootsOfJobs,
                L::TasksOfJobs,
            ]);
        }
        SystemCommand::RecoverClosing { session } => {
            to.extend([L::Session(session), L::Identity(IdentityKind::Session, session.0)]);
        }
        SystemCommand::RecoverTurn { turn, .. } => to.extend([L::Turn(turn), L::SessionsOfTurns]),
        SystemCommand::Reconcile { task, environment, job, operation } => {
            to.extend([L::JobsOfOperation(operation), L::Job(job)]);
            named_task(task, to);
            to.push(L::AllJobsOfTasks);
            to.extend([
                L::Environment(environment),
                L::EnvironmentsOfTasks,
                L::SessionsOfEnvironments,
                L::TasksOfSessions,
                L::ReposOfEnvironments,
                L::AttemptsOfEnvironments,
                L::RuntimesOfEnvironments,
                L::RootsOfJobs,
                L::ResourcesOfJobs,
            ]);
        }
    }
}
