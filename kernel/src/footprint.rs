//! Footprints: which rows a command is decided on. A footprint is a list from a closed enum of
//! named look-ups, executed in order; the same list for every store (design, D-26).

use crate::id::*;
use crate::rows::*;

/// How the rows of a look-up are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The table.
    pub table: TableId,
    /// The column that must match. For the identities table, `id` together with `kind`.
    pub by: &'static str,
    /// What it must match.
    pub from: From,
    /// Rows whose column has one of these codes are history, and left out.
    pub except: Option<(&'static str, &'static [&'static str])>,
    /// Whether it is repeated until nothing new appears: a walk along the task tree (B-9, T-7).
    pub repeat: bool,
    /// The row that everyone locks who adds to the set that is found (D-23); none for a row
    /// that is its own anchor.
    pub anchor: Option<TableId>,
}

/// What a look-up's column must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// One id.
    Id(Kind, u128),
    /// One identity.
    Identity(IdentityKind, u128),
    /// One number.
    Int(i64),
    /// Any value that this column has in the rows loaded so far.
    Column(TableId, &'static str),
    /// Any identity of this kind that this column names in the rows loaded so far.
    Identities(IdentityKind, TableId, &'static str),
}

macro_rules! lookups {
    (
        one { $($(#[$odoc:meta])* $one:ident($id:ident) = $otable:ident;)* }
        many { $($(#[$mdoc:meta])* $many:ident = $mtable:ident . $by:ident
                 from $ftable:ident . $fcol:ident $(except $xcol:ident $codes:expr)? ,
                 $anchor:expr;)* }
    ) => {
        /// The named look-ups.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Lookup {
            $($(#[$odoc])* $one($id),)*
            $($(#[$mdoc])* $many,)*
            /// A live or gone identity (D-14).
            Identity(IdentityKind, u128),
            /// Every job of an operation.
            JobsOfOperation(OperationId),
            /// Every task that an operation archived.
            TasksArchivedBy(OperationId),
            /// Attempts on a path.
            AttemptsOnPath(PathId),
            /// Rows that name a path.
            ReposOnPath(PathId),
            /// Removals on a path that are not settled.
            RemovalsOnPath(PathId),
            /// Roots at a path.
            RootsOnPath(PathId),
            /// The identities of the tasks (D-14).
            IdentitiesOfTasks,
            /// The identities of the sessions.
            IdentitiesOfSessions,
            /// The identities of the workspaces.
            IdentitiesOfWorkspaces,
            /// The tasks' parents, and theirs, up to the roots.
            AncestorsOfTasks,
            /// The tasks' children, and theirs.
            DescendantsOfTasks,
            /// The settings.
            Settings,
        }

        impl Lookup {
            /// How its rows are found.
            pub const fn plan(self) -> Plan {
                match self {
                    $(Lookup::$one(id) => Plan {
                        table: TableId::$otable, by: "id",
                        from: From::Id(Kind::$id, id.0), except: None, repeat: false, anchor: None,
                    },)*
                    $(Lookup::$many => Plan {
                        table: TableId::$mtable, by: stringify!($by),
                        from: From::Column(TableId::$ftable, stringify!($fcol)),
                        except: lookups!(@except $($xcol $codes)?),
                        repeat: false,
                        anchor: $anchor,
                    },)*
                    Lookup::Identity(kind, id) => Plan {
                        table: TableId::Identities, by: "id",
                        from: From::Identity(kind, id), except: None, repeat: false, anchor: None,
                    },
                    Lookup::JobsOfOperation(id) => Plan {
                        table: TableId::Jobs, by: "operation_id",
                        from: From::Id(Kind::OperationId, id.0), except: None,
                        repeat: false, anchor: Some(TableId::Tasks),
                    },
                    Lookup::TasksArchivedBy(id) => Plan {
                        table: TableId::Tasks, by: "archived_by",
                        from: From::Id(Kind::OperationId, id.0), except: None, repeat: false, anchor: None,
                    },
                    Lookup::AttemptsOnPath(id) => Plan {
                        table: TableId::Attempts, by: "path",
                        from: From::Id(Kind::PathId, id.0), except: None, repeat: false, anchor: None,
                    },
                    Lookup::ReposOnPath(id) => Plan {
                        table: TableId::Repos, by: "worktree_path",
                        from: From::Id(Kind::PathId, id.0), except: Some(("status", &["deleted"])),
                        repeat: false, anchor: None,
                    },
                    Lookup::RemovalsOnPath(id) => Plan {
                        table: TableId::Removals, by: "path",
                        from: From::Id(Kind::PathId, id.0),
                        except: Some((
                            "outcome",
                            &["removed", "trashed", "absent", "returned", "forgotten"],
                        )),
                        repeat: false, anchor: None,
                    },
                    Lookup::RootsOnPath(id) => Plan {
                        table: TableId::ManagedRoots, by: "path",
                        from: From::Id(Kind::PathId, id.0), except: None, repeat: false, anchor: None,
                    },
                    Lookup::IdentitiesOfTasks => Plan {
                        table: TableId::Identities, by: "id",
                        from: From::Identities(IdentityKind::Task, TableId::Tasks, "id"),
                        except: None, repeat: false, anchor: None,
                    },
                    Lookup::IdentitiesOfSessions => Plan {
                        table: TableId::Identities, by: "id",
                        from: From::Identities(IdentityKind::Session, TableId::Sessions, "id"),
                        except: None, repeat: false, anchor: None,
                    },
                    Lookup::IdentitiesOfWorkspaces => Plan {
                        table: TableId::Identities, by: "id",
                        from: From::Identities(IdentityKind::Workspace, TableId::Workspaces, "id"),
                        except: None, repeat: false, anchor: None,
                    },
                    Lookup::AncestorsOfTasks => Plan {
                        table: TableId::Tasks, by: "id",
                        from: From::Column(TableId::Tasks, "parent_id"), except: None,
                        repeat: true, anchor: None,
                    },
                    Lookup::DescendantsOfTasks => Plan {
                        table: TableId::Tasks, by: "parent_id",
                        from: From::Column(TableId::Tasks, "id"), except: None,
                        repeat: true, anchor: Some(TableId::Tasks),
                    },
                    Lookup::Settings => Plan {
                        table: TableId::Settings, by: "id",
                        from: From::Int(1), except: None, repeat: false, anchor: None,
                    },
                }
            }
        }
    };
    (@except) => { None };
    (@except $col:ident $codes:expr) => { Some((stringify!($col), $codes)) };
}

lookups! {
    one {
        /// A workspace.
        Workspace(WorkspaceId) = Workspaces;
        /// A task.
        Task(TaskId) = Tasks;
        /// A session.
        Session(SessionId) = Sessions;
        /// An environment.
        Environment(EnvironmentId) = Environments;
        /// A repository row.
        Repo(RepoId) = Repos;
        /// An attempt.
        Attempt(AttemptId) = Attempts;
        /// A removal.
        Removal(RemovalId) = Removals;
        /// A trash row.
        Trash(TrashId) = Trash;
        /// A salvage entry.
        Salvage(SalvageId) = Salvage;
        /// A job.
        Job(JobId) = Jobs;
        /// A part of a job.
        JobRoot(JobRootId) = JobRoots;
        /// A resource.
        Resource(ResourceId) = Resources;
        /// A request.
        Request(RequestId) = Requests;
        /// A turn.
        Turn(TurnId) = Turns;
        /// An input.
        Input(InputId) = Inputs;
        /// A runtime's handle.
        Runtime(RuntimeId) = Runtimes;
        /// An instance.
        Instance(InstanceId) = Instances;
        /// A managed root.
        Root(RootId) = ManagedRoots;
    }
    many {
        /// The tasks of the sessions.
        TasksOfSessions = Tasks.id from Sessions.task_id, None;
        /// The owners of the environments.
        TasksOfEnvironments = Tasks.id from Environments.task_id, None;
        /// The tasks of the jobs.
        TasksOfJobs = Tasks.id from Jobs.task_id, None;
        /// The tasks of the workspaces.
        TasksOfWorkspaces = Tasks.workspace_id from Workspaces.id, Some(TableId::Workspaces);
        /// The tasks that were archived by the operations that archived the loaded ones.
        TasksArchivedWithTasks = Tasks.archived_by from Tasks.archived_by, None;
        /// The tasks of the attempts.
        TasksOfAttempts = Tasks.id from Attempts.task_id, None;
        /// The children of the tasks.
        ChildrenOfTasks = Tasks.parent_id from Tasks.id, Some(TableId::Tasks);
        /// The parents of the tasks.
        ParentsOfTasks = Tasks.id from Tasks.parent_id, None;
        /// The roots of the cascades that the jobs serve, whether or not they are held.
        CascadeRootsOfJobs = Tasks.id from Jobs.cascade_root, None;
        /// The workspaces that the operations of the jobs delete.
        WorkspacesOfDeletions = Workspaces.deleting_operation from Jobs.operation_id, None;
        /// The workspaces of the tasks.
        WorkspacesOfTasks = Workspaces.id from Tasks.workspace_id, None;
        /// The sessions of the tasks.
        SessionsOfTasks = Sessions.task_id from Tasks.id, Some(TableId::Tasks);
        /// The sessions of the turns.
        SessionsOfTurns = Sessions.id from Turns.session_id, None;
        /// The sessions of the runtimes.
        SessionsOfRuntimes = Sessions.id from Runtimes.session_id, None;
        /// The sessions of the inputs.
        SessionsOfInputs = Sessions.id from Inputs.session_id, None;
        /// The sessions that refer to the environments: borrowers among them.
        SessionsOfEnvironments = Sessions.task_environment_id from Environments.id, Some(TableId::Tasks);
        /// The environments of the tasks.
        EnvironmentsOfTasks = Environments.task_id from Tasks.id, Some(TableId::Tasks);
        /// The environments that the sessions refer to.
        EnvironmentsOfSessions = Environments.id from Sessions.task_environment_id, None;
        /// The environments of the attempts.
        EnvironmentsOfAttempts = Environments.id from Attempts.task_environment_id, None;
        /// The environments of the repository rows.
        EnvironmentsOfRepos = Environments.id from Repos.task_environment_id, None;
        /// The environments of the snapshot's resources.
        EnvironmentsOfResources = Environments.id from Resources.environment_id, None;
        /// The environments of jobs that are about one.
        EnvironmentsOfJobs = Environments.id from Jobs.environment_id, None;
        /// The repository rows of the environments.
        ReposOfEnvironments = Repos.task_environment_id from Environments.id
            except status &["deleted"], Some(TableId::Tasks);
        /// The repository rows of the environments, deleted ones too.
        AllReposOfEnvironments = Repos.task_environment_id from Environments.id,
            Some(TableId::Tasks);
        /// The repository rows of the resources, deleted ones too.
        ReposOfResources = Repos.id from Resources.repo_id, None;
        /// The repository rows of the removals, deleted ones too.
        ReposOfRemovals = Repos.id from Removals.repo_id, None;
        /// Rows that name a resource's path.
        ReposOnResourcePaths = Repos.worktree_path from Resources.path
            except status &["deleted"], None;
        /// Rows that name a resource's identity.
        ReposOnResourceIdentities = Repos.worktree_id from Resources.worktree_id
            except status &["deleted"], None;
        /// Attempts on a resource's path.
        AttemptsOnResourcePaths = Attempts.path from Resources.path
            except state &["owned", "compensated"], None;
        /// Unresolved attempts of the environments.
        AttemptsOfEnvironments = Attempts.task_environment_id from Environments.id
            except state &["owned", "compensated"], Some(TableId::Tasks);
        /// The attempts of the resources.
        AttemptsOfResources = Attempts.id from Resources.attempt_id, None;
        /// The jobs of the tasks that may still do something.
        JobsOfTasks = Jobs.task_id from Tasks.id
            except state &["succeeded", "cancelled"], Some(TableId::Tasks);
        /// Every job of the tasks.
        AllJobsOfTasks = Jobs.task_id from Tasks.id, Some(TableId::Tasks);
        /// The jobs that may still do something, of the tasks of the jobs, which may be gone.
        JobsOfTheTasksOfJobs = Jobs.task_id from Jobs.task_id
            except state &["succeeded", "cancelled"], Some(TableId::Tasks);
        /// Every job of the tasks of the jobs, which may be gone.
        AllJobsOfTheTasksOfJobs = Jobs.task_id from Jobs.task_id, Some(TableId::Tasks);
        /// The jobs of the operations that delete the loaded workspaces.
        JobsOfWorkspaceDeletions = Jobs.operation_id from Workspaces.deleting_operation, None;
        /// The jobs of the parts of jobs.
        JobsOfRoots = Jobs.id from JobRoots.job_id, None;
        /// The jobs of the resources.
        JobsOfResources = Jobs.id from Resources.job_id, None;
        /// The parts of the jobs.
        RootsOfJobs = JobRoots.job_id from Jobs.id, Some(TableId::Jobs);
        /// The part of a job that claims a resource.
        RootsOfResources = JobRoots.id from Resources.job_root_id, None;
        /// The resources of the jobs.
        ResourcesOfJobs = Resources.job_id from Jobs.id, Some(TableId::Jobs);
        /// The resources, of whatever job, on the paths of the removals.
        ResourcesOnRemovalPaths = Resources.path from Removals.path, None;
        /// The salvage that the removals made.
        SalvageOfRemovals = Salvage.removal_id from Removals.id, Some(TableId::Removals);
        /// The resources of the removals.
        ResourcesOfRemovals = Resources.id from Removals.resource, None;
        /// The removals of the resources.
        RemovalsOfResources = Removals.resource from Resources.id, Some(TableId::Jobs);
        /// The removals of the repository rows.
        RemovalsOfRepos = Removals.repo_id from Repos.id
            except outcome &["removed", "trashed", "absent", "returned", "forgotten"],
            Some(TableId::Tasks);
        /// The removals on the paths of the resources that are not settled, whoever permitted
        /// them.
        RemovalsOnResourcePaths = Removals.path from Resources.path
            except outcome &["removed", "trashed", "absent", "returned", "forgotten"], None;
        /// The removals of the attempts.
        RemovalsOfAttempts = Removals.authority_id from Attempts.id, Some(TableId::Attempts);
        /// The removals of the trash rows.
        RemovalsOfTrash = Removals.authority_id from Trash.id, Some(TableId::Trash);
        /// The attempts that removals undo.
        AttemptsOfRemovals = Attempts.id from Removals.authority_id, None;
        /// The trash rows that removals purge.
        PurgedTrashOfRemovals = Trash.id from Removals.authority_id, None;
        /// The trash rows that removals filled.
        TrashOfRemovals = Trash.removal_id from Removals.id, Some(TableId::Removals);
        /// The trash rows that attempts restore. Only the command that begins such an attempt adds
        /// to them.
        TrashOfAttempts = Trash.worktree_id from Attempts.worktree_id
            except state &["kept", "purging", "gone"], Some(TableId::Attempts);
        /// The removals that made the salvage.
        RemovalsOfSalvage = Removals.id from Salvage.removal_id, None;
        /// Turns that have not ended.
        TurnsOfSessions = Turns.session_id from Sessions.id
            except phase &["ended"], Some(TableId::Sessions);
        /// Turns, ended ones too: what goes with a session that is removed.
        AllTurnsOfSessions = Turns.session_id from Sessions.id, Some(TableId::Sessions);
        /// Inputs that wait.
        InputsOfSessions = Inputs.session_id from Sessions.id
            except state &["delivered", "redirected", "refused", "cancelled", "expired"],
            Some(TableId::Sessions);
        /// Runtimes that are not known to have stopped.
        RuntimesOfTasks = Runtimes.task_id from Tasks.id
            except status &["stopped"], Some(TableId::Tasks);
        /// Runtimes that stand in the environments of the resources, which may be gone.
        RuntimesOnResourceEnvironments = Runtimes.task_environment_id
            from Resources.environment_id except status &["stopped"], Some(TableId::Tasks);
        /// Runtimes that stand in the environments.
        RuntimesOfEnvironments = Runtimes.task_environment_id from Environments.id
            except status &["stopped"], Some(TableId::Tasks);
        /// The runtimes of the sessions.
        RuntimesOfSessions = Runtimes.session_id from Sessions.id
            except status &["stopped"], Some(TableId::Sessions);
        /// The runtimes of the turns.
        RuntimesOfTurns = Runtimes.id from Turns.runtime_id, None;
        /// The runtimes of the resources.
        RuntimesOfResources = Runtimes.id from Resources.runtime_id, None;
        /// The instances of the turns.
        InstancesOfTurns = Instances.id from Turns.instance_id, None;
        /// The instances of the runtimes.
        InstancesOfRuntimes = Instances.id from Runtimes.instance_id, None;
        /// The repository rows of the attempts, deleted ones too.
        ReposOfAttempts = Repos.id from Attempts.repo_id, None;
        /// The roots of the trash rows.
        RootsOfTrash = ManagedRoots.id from Trash.root_id, None;
        /// The roots of the attempts.
        RootsOfAttempts = ManagedRoots.id from Attempts.root_id, None;
        /// The managed roots of the parts of jobs.
        ManagedRootsOfJobRoots = ManagedRoots.id from JobRoots.root_id, None;
        /// The managed roots of removals.
        ManagedRootsOfRemovals = ManagedRoots.id from Removals.root_id, None;
    }
}

/// The deepest task tree that a walk follows; deeper ones are refused (`tree_not_too_deep`).
pub const TREE_DEPTH_MAX: u32 = 64;
