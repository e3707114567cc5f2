//! Task lifecycle operations as a host calls them: reserve, stop, snapshot, mutate, and abort
//! when anything refuses (03, B-9, T-5).

use std::cell::RefCell;
use std::collections::BTreeSet;

use freehold_kernel::{
    BranchPolicy, ClosingKind, Command, ContentHash, EnvironmentId, Guard, Id as _, JobId, Kind,
    Materialised, OperationCommand, OperationId, Reply, SalvageState, Scope, SessionCommand,
    SessionId, Span, SystemCommand, TableId, TaskId, Token, TrashState, Trigger, Unsaved,
    UnsavedPolicy,
};

use crate::host::{Drive, Host, HostError, Who, fresh};
use crate::names::{id_of, uuid_text};
use crate::store::{Read, Store};
use crate::submission::Accepted;
use crate::workspaces::Workspaces;

/// What a lifecycle operation is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The host's id of it: repeating the operation with this id converges (T-11).
    pub id: String,
    /// Unsaved work.
    pub policy: UnsavedPolicy,
    /// Branches.
    pub branches: BranchPolicy,
    /// What a person consents to lose (W-34).
    pub consent: Unsaved,
    /// With everything under the task.
    pub cascade: bool,
    /// Refuse as busy instead of stopping turns (T-5).
    pub refuse_busy: bool,
}

impl Operation {
    /// With the defaults: salvage what is unsaved, keep branches, the one task, stop turns.
    pub fn new(id: &str) -> Operation {
        Operation {
            id: id.to_owned(),
            policy: UnsavedPolicy::Salvage,
            branches: BranchPolicy::Keep,
            consent: Unsaved::NONE,
            cascade: false,
            refuse_busy: false,
        }
    }

    /// The same for the task and everything under it.
    #[must_use]
    pub fn with_cascade(mut self) -> Operation {
        self.cascade = true;
        self
    }

    /// The same with another policy for unsaved work.
    #[must_use]
    pub fn with_policy(mut self, policy: UnsavedPolicy, consent: Unsaved) -> Operation {
        self.policy = policy;
        self.consent = consent;
        self
    }
}

/// What stands where a task was unarchived (B-8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryReport {
    /// The repository row.
    pub repo: String,
    /// The repository.
    pub repository: String,
    /// Its branch.
    pub branch: String,
    /// How it stands.
    pub stands: Stands,
}

/// How a repository stands after an unarchive (B-8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stands {
    /// Its worktree was never removed.
    Kept,
    /// A removal is under way and will be settled before the path is used.
    InRemoval,
    /// Its worktree lies in trash, and comes back from there as it was.
    FromTrash(String),
    /// Its worktree can be made again on its branch, and this salvage put back.
    FromBranchAndSalvage(String),
    /// Its worktree can be made again on its branch; nothing was unsaved.
    FromBranch,
}

/// The state of one operation while it is driven.
struct Driving<'a> {
    who: &'a Who,
    operation: &'a Operation,
    trigger: Trigger,
    root: &'a str,
    environment: Option<&'a str>,
    /// The barriers that this call asked for. Another call of the same instance may drive the
    /// same operation; its barriers are not this one's to lift.
    own: RefCell<BTreeSet<JobId>>,
}

impl<'a> Driving<'a> {
    fn of(
        who: &'a Who,
        operation: &'a Operation,
        trigger: Trigger,
        root: &'a str,
        environment: Option<&'a str>,
    ) -> Driving<'a> {
        Driving { who, operation, trigger, root, environment, own: RefCell::default() }
    }
}

impl<S: Store, W: Workspaces, D: Drive> Host<S, W, D> {
    /// Archives a task. Returns when the mutation is durable; the job does the rest (C-14).
    ///
    /// # Errors
    /// The refusal, after which nothing is barred any more, or the store's failure.
    pub fn archive_task(
        &self,
        who: &Who,
        task: &str,
        operation: &Operation,
    ) -> Result<Reply, HostError> {
        let trigger = if operation.cascade { Trigger::CascadeArchive } else { Trigger::Archive };
        self.drive_operation(&Driving::of(who, operation, trigger, task, None))
    }

    /// Deletes a task.
    ///
    /// # Errors
    /// As [`Host::archive_task`].
    pub fn delete_task(
        &self,
        who: &Who,
        task: &str,
        operation: &Operation,
    ) -> Result<Reply, HostError> {
        let trigger = if operation.cascade { Trigger::CascadeDelete } else { Trigger::Delete };
        self.drive_operation(&Driving::of(who, operation, trigger, task, None))
    }

    /// Deletes a quick chat whose time has come (T-8). A system authority's act.
    ///
    /// # Errors
    /// As [`Host::archive_task`]; `expired` if it is not yet time, `task_not_busy` if it works.
    pub fn expire_quick_chat(&self, task: &str, operation: &Operation) -> Result<Reply, HostError> {
        let who = Who::system();
        let trigger = Trigger::QuickChatExpire;
        self.drive_operation(&Driving::of(&who, operation, trigger, task, None))
    }

    /// Resets an environment: its worktrees go, the task stays active (T-10).
    ///
    /// # Errors
    /// As [`Host::archive_task`].
    pub fn reset_environment(
        &self,
        who: &Who,
        task: &str,
        environment: &str,
        operation: &Operation,
    ) -> Result<Reply, HostError> {
        let trigger = Trigger::EnvironmentReset;
        self.drive_operation(&Driving::of(who, operation, trigger, task, Some(environment)))
    }

    /// Deletes a workspace with all its tasks (T-9).
    ///
    /// # Errors
    /// As [`Host::archive_task`]; the workspace is active again after a refusal.
    pub fn delete_workspace(
        &self,
        who: &Who,
        workspace: &str,
        operation: &Operation,
    ) -> Result<Reply, HostError> {
        let instance = self.instance;
        let begun = self.ask(who, None, |c| {
            Ok(Command::Operation(OperationCommand::BeginWorkspaceDelete {
                workspace: c.id(workspace)?,
                operation: c.id(&operation.id)?,
                instance,
            }))
        });
        if let Err(error) = &begun {
            let error = error.clone();
            // The same operation again, after its end: the answer is its job (T-11).
            let jobs = self.read(&[Read::by(TableId::Jobs, "operation_id", &[&operation.id])])?;
            return match jobs.view.jobs.iter().find(|j| j.mutated_at.is_some()) {
                Some(job) if error.guard() == Some(Guard::WorkspaceNotDeleted) => {
                    Ok(Reply::Job { job: job.id, state: job.state })
                }
                Some(_) | None => Err(error),
            };
        }
        // `Unchanged`: another call of this instance began it and drives it.
        let began = begun.is_ok_and(|accepted| accepted.reply == Reply::Done);
        let done = self.delete_tasks_of(who, workspace, operation);
        if done.is_err() && began {
            // What cannot be aborted now is aborted by recovery once the lease has lapsed.
            let _ = self.ask(who, None, |c| {
                Ok(Command::Operation(OperationCommand::AbortWorkspaceDelete {
                    workspace: c.id(workspace)?,
                    operation: c.id(&operation.id)?,
                }))
            });
        }
        done
    }

    fn delete_tasks_of(
        &self,
        who: &Who,
        workspace: &str,
        operation: &Operation,
    ) -> Result<Reply, HostError> {
        let rows = self.read(&[Read::by(TableId::Tasks, "workspace_id", &[workspace])])?;
        let tasks: Vec<String> = rows
            .view
            .tasks
            .iter()
            .map(|t| rows.names.text(Kind::TaskId, t.id.0))
            .collect::<Result<_, _>>()?;
        let instance = self.instance;
        if tasks.is_empty() {
            let done = self.ask(who, None, |c| {
                Ok(Command::Operation(OperationCommand::FinishWorkspaceDelete {
                    workspace: c.id(workspace)?,
                    operation: c.id(&operation.id)?,
                    instance,
                }))
            })?;
            return Ok(done.reply);
        }
        let driving = Driving::of(who, operation, Trigger::WorkspaceDelete, "", None);
        self.carry_out(&driving, tasks)
    }

    /// Makes a task active again (B-8), with `cascade` everything that its archive archived.
    ///
    /// # Errors
    /// The refusal, or the store's failure.
    pub fn unarchive_task(
        &self,
        who: &Who,
        task: &str,
        cascade: bool,
    ) -> Result<Vec<RepositoryReport>, HostError> {
        self.ask(who, None, |c| {
            let task = c.id(task)?;
            Ok(Command::Operation(OperationCommand::Unarchive { task, cascade }))
        })?;
        self.repositories_of(task)
    }

    /// How the repositories of a task stand (B-8).
    ///
    /// # Errors
    /// The store's failure.
    pub fn repositories_of(&self, task: &str) -> Result<Vec<RepositoryReport>, HostError> {
        let mut rows = self.read(&[Read::by(TableId::Environments, "task_id", &[task])])?;
        let environments = rows.texts(rows.view.environments.iter().map(|e| e.id))?;
        self.read_on(
            &mut rows,
            vec![Read::among(TableId::Repos, "task_environment_id", environments)],
        )?;
        let repos = rows.texts(rows.view.repos.iter().map(|r| r.id))?;
        self.read_on(
            &mut rows,
            vec![
                Read::among(TableId::Salvage, "repo_id", repos.clone()),
                Read::among(TableId::Trash, "repo_id", repos),
            ],
        )?;
        let mut reports = Vec::new();
        for repo in rows.view.repos.iter() {
            let here = rows.view.environments.id(repo.task_environment_id.0).is_some();
            if !here || repo.status == freehold_kernel::RepoStatus::Deleted {
                continue;
            }
            let salvage = rows
                .view
                .salvage
                .iter()
                .filter(|s| {
                    // Of whichever worktree the row has had: what was never put back is offered.
                    s.repo_id == Some(repo.id) && s.state == SalvageState::Verified
                })
                .max_by_key(|s| s.made_at);
            let trash = rows
                .view
                .trash
                .iter()
                .filter(|t| t.repo_id == Some(repo.id) && t.state == TrashState::Kept)
                .filter(|t| t.restorable_until.is_some())
                .max_by_key(|t| (t.created_at, t.id));
            let stands = match (repo.materialised, trash, salvage) {
                (Materialised::Yes, _, _) => Stands::Kept,
                (Materialised::Removing, _, _) => Stands::InRemoval,
                (Materialised::No, Some(t), _) => Stands::FromTrash(uuid_text(t.id.0)),
                (Materialised::No, None, Some(s)) => {
                    Stands::FromBranchAndSalvage(uuid_text(s.id.0))
                }
                (Materialised::No, None, None) => Stands::FromBranch,
            };
            let branch = repo.worktree_branch.map(|b| rows.names.text(Kind::BranchId, b.0));
            reports.push(RepositoryReport {
                repo: rows.names.text(Kind::RepoId, repo.id.0)?,
                repository: rows.names.text(Kind::RepositoryId, repo.repository_id.0)?,
                branch: branch.transpose()?.unwrap_or_default(),
                stands,
            });
        }
        Ok(reports)
    }

    /// Deletes a session: begin, quiesce, commit. Touches nothing physical (S-25).
    ///
    /// # Errors
    /// The refusal; if the runtime could not be quiesced, the session is as before (S-22).
    pub fn delete_session(&self, who: &Who, session: &str) -> Result<(), HostError> {
        self.close_session(who, session, ClosingKind::Delete)
    }

    /// Archives a session.
    ///
    /// # Errors
    /// As [`Host::delete_session`].
    pub fn archive_session(&self, who: &Who, session: &str) -> Result<(), HostError> {
        self.close_session(who, session, ClosingKind::Archive)
    }

    fn close_session(&self, who: &Who, session: &str, kind: ClosingKind) -> Result<(), HostError> {
        let token = Token(fresh());
        let begun = self.ask(who, None, |c| {
            Ok(Command::Session(SessionCommand::BeginClose {
                session: c.id(session)?,
                kind,
                token,
                automatic: false,
                force: false,
            }))
        })?;
        if begun.reply == Reply::Unchanged {
            return Ok(());
        }
        let closed = self.quiesce(&begun).and_then(|()| {
            self.ask(who, None, |c| {
                let session: SessionId = c.id(session)?;
                Ok(Command::Session(SessionCommand::CommitClose { session, token }))
            })
        });
        match closed {
            Ok(_) => Ok(()),
            Err(error) => {
                // S-22: aborted; the session is as before. If even that fails, recovery lifts
                // the mark once its lease has lapsed.
                let _ = self.ask(who, None, |c| {
                    let session: SessionId = c.id(session)?;
                    Ok(Command::Session(SessionCommand::AbortClose { session, token }))
                });
                Err(error)
            }
        }
    }

    /// S-22: within the closing mark's lease, which nobody renews.
    fn quiesce(&self, begun: &Accepted) -> Result<(), HostError> {
        let settings = self.settings()?;
        let lease = Span(settings.lease.0 / 3 * 2);
        self.stop_runtimes(begun, settings.stop_bound.min(lease), &mut || {})
    }

    fn drive_operation(&self, driving: &Driving<'_>) -> Result<Reply, HostError> {
        let tasks = if driving.operation.cascade {
            self.subtree(driving.root, driving.trigger)?
        } else {
            vec![driving.root.to_owned()]
        };
        self.carry_out(driving, tasks)
    }

    /// Barriers in id order, then again what has appeared meanwhile, then stops, snapshots and
    /// the one mutation (B-9). A failure before the mutation releases all barriers.
    fn carry_out(&self, driving: &Driving<'_>, tasks: Vec<String>) -> Result<Reply, HostError> {
        match self.up_to_mutation(driving, tasks) {
            Ok(reply) => Ok(reply),
            Err(error) => {
                // The same operation was driven by another call at the same time, and is done:
                // the answer is its job (T-11).
                if error.guard() == Some(Guard::BarrierHeld) {
                    let id = &driving.operation.id;
                    let jobs = self.read(&[Read::by(TableId::Jobs, "operation_id", &[id])])?;
                    if let Some(job) = jobs.view.jobs.iter().find(|j| j.mutated_at.is_some()) {
                        return Ok(Reply::Job { job: job.id, state: job.state });
                    }
                }
                self.lift_barriers(driving);
                Err(error)
            }
        }
    }

    /// Aborts what this call reserved. What cannot be aborted now is cancelled by recovery (B-7);
    /// so is what two calls reserved together.
    fn lift_barriers(&self, driving: &Driving<'_>) {
        let id = &driving.operation.id;
        let Ok(jobs) = self.read(&[Read::by(TableId::Jobs, "operation_id", &[id])]) else { return };
        let own = driving.own.borrow();
        let prepared = |j: &&freehold_kernel::Job| j.state == freehold_kernel::JobState::Prepared;
        if jobs.view.jobs.iter().filter(prepared).any(|j| !own.contains(&j.id)) {
            return;
        }
        let instance = self.instance;
        let _ = self.ask(driving.who, None, |c| {
            let operation = c.id(id)?;
            Ok(Command::Operation(OperationCommand::Abort { operation, instance }))
        });
    }

    fn up_to_mutation(
        &self,
        driving: &Driving<'_>,
        mut tasks: Vec<String>,
    ) -> Result<Reply, HostError> {
        let scope = driving.trigger.scope();
        let mut reserved = BTreeSet::new();
        let mut standing = None;
        let mut prepared = false;
        // New tasks may appear until all barriers are held; each round only adds.
        loop {
            tasks.sort_by_key(|t| id_of(Kind::TaskId, t));
            for task in &tasks {
                if !reserved.insert(task.clone()) {
                    continue;
                }
                match self.reserve_one(driving, task)? {
                    Some(reply) => standing = standing.or(Some(reply)),
                    None => prepared = true,
                }
            }
            // An operation that was carried out before: the answer is what stands (T-11).
            if let (false, Some(reply)) = (prepared, standing) {
                return Ok(reply);
            }
            match self.snapshot(driving, scope) {
                Ok(()) => break,
                Err(error) => match error.guard() {
                    Some(Guard::CascadeComplete | Guard::WorkspaceComplete) => {
                        let before = reserved.len();
                        tasks = match scope {
                            Scope::Cascade => self.subtree(driving.root, driving.trigger)?,
                            Scope::Workspace => self.missing(&error),
                            Scope::Task => return Err(error),
                        };
                        if tasks.iter().all(|t| reserved.contains(t)) || before > 100_000 {
                            return Err(error);
                        }
                    }
                    _other => return Err(error),
                },
            }
        }
        let instance = self.instance;
        let mutated = self.ask(driving.who, None, |c| {
            let operation = c.id(&driving.operation.id)?;
            Ok(Command::Operation(OperationCommand::Mutate { operation, scope, instance }))
        })?;
        Ok(mutated.reply)
    }

    /// Reserves one task and stops its runtimes; some if there is nothing more to do.
    fn reserve_one(&self, driving: &Driving<'_>, task: &str) -> Result<Option<Reply>, HostError> {
        let (unsaved, details) = match driving.operation.policy {
            UnsavedPolicy::Refuse => {
                // An inspection takes its time; the barriers that are held already are kept.
                self.renew_barrier(driving.who, &driving.operation.id);
                self.unsaved_of(task, &mut || {
                    self.renew_barrier(driving.who, &driving.operation.id);
                })?
            }
            UnsavedPolicy::Salvage | UnsavedPolicy::Discard => (Unsaved::NONE, Vec::new()),
        };
        let instance = self.instance;
        let o = driving.operation;
        let job = JobId(fresh());
        driving.own.borrow_mut().insert(job);
        let asked = self.ask(driving.who, None, |c| {
            let task: TaskId = c.id(task)?;
            let operation: OperationId = c.id(&o.id)?;
            let root = o.cascade.then(|| c.id::<TaskId>(driving.root)).transpose()?;
            let environment = driving.environment.map(|e| c.id::<EnvironmentId>(e)).transpose()?;
            // What makes two calls with one operation id the same one (C-12).
            let content = format!(
                "{} {:?} {:?} {} {:?} {:?} {:?}",
                driving.trigger.code(),
                root,
                environment,
                o.refuse_busy,
                o.policy,
                o.branches,
                o.consent
            );
            let content = id_of(Kind::ContentHash, &content);
            Ok(Command::Operation(OperationCommand::Reserve {
                operation,
                job,
                task,
                trigger: driving.trigger,
                environment,
                cascade_root: root,
                policy: o.policy,
                branch_policy: o.branches,
                consent: o.consent,
                unsaved,
                refuse_busy: o.refuse_busy,
                instance,
                content: ContentHash(freehold_kernel::derive(content, 0)),
            }))
        });
        let accepted = match asked {
            // A refusal for unsaved work names what is unsaved and where (T-4, W-33).
            Err(HostError::Refused(refused)) if refused.refusal.guard == Guard::NothingUnsaved => {
                return Err(HostError::UnsavedWork { refused, details });
            }
            other => other?,
        };
        match accepted.reply {
            Reply::Job { state: freehold_kernel::JobState::Prepared, .. } => {
                let mut pulse = || self.renew_barrier(driving.who, &driving.operation.id);
                self.stop_runtimes(&accepted, self.settings()?.stop_bound, &mut pulse)?;
                Ok(None)
            }
            // Carried out before, or archived already; in a cascade the other tasks still count.
            reply => Ok(Some(reply)),
        }
    }

    /// Keeps the barrier while stops take their time. A lease that is lost anyway is noticed by
    /// the mutation's own guard (B-7).
    fn renew_barrier(&self, who: &Who, operation: &str) {
        let instance = self.instance;
        let _ = self.ask(who, None, |c| {
            let operation = c.id(operation)?;
            Ok(Command::Operation(OperationCommand::RenewBarrier { operation, instance }))
        });
    }

    fn snapshot(&self, driving: &Driving<'_>, scope: Scope) -> Result<(), HostError> {
        let instance = self.instance;
        self.ask(driving.who, None, |c| {
            let operation = c.id(&driving.operation.id)?;
            Ok(Command::Operation(OperationCommand::Snapshot { operation, scope, instance }))
        })?;
        Ok(())
    }

    fn missing(&self, error: &HostError) -> Vec<String> {
        match error {
            HostError::Refused(refused) => refused.rows().into_iter().map(|(_, id)| id).collect(),
            HostError::Store(_)
            | HostError::Workspace(_)
            | HostError::Start(_)
            | HostError::Name(_)
            | HostError::NotThere { .. }
            | HostError::UnsavedWork { .. }
            | HostError::Live { .. }
            | HostError::Undone { .. } => Vec::new(),
        }
    }

    /// The task and everything under it; for an archive, without what is archived already.
    fn subtree(&self, root_text: &str, trigger: Trigger) -> Result<Vec<String>, HostError> {
        let mut rows = self.read(&[Read::by(TableId::Tasks, "id", &[root_text])])?;
        let root = id_of(Kind::TaskId, root_text);
        let mut known = 0;
        // Level by level, until a level brings nothing new.
        while rows.view.tasks.len() > known {
            known = rows.view.tasks.len();
            let parents = rows.texts(rows.view.tasks.iter().map(|t| t.id))?;
            self.read_on(&mut rows, vec![Read::among(TableId::Tasks, "parent_id", parents)])?;
        }
        let mut found: Vec<TaskId> = rows.view.tasks.iter().map(|t| t.id).collect();
        if found.is_empty() {
            // Let the kernel say that it is not there.
            return Ok(vec![root_text.to_owned()]);
        }
        let archives = trigger == Trigger::CascadeArchive;
        found.retain(|id| {
            id.bits() == root
                || !archives
                || rows
                    .view
                    .tasks
                    .id(id.0)
                    .is_none_or(|t| t.lifecycle == freehold_kernel::TaskLifecycle::Active)
        });
        found.into_iter().map(|id| Ok(rows.names.text(Kind::TaskId, id.0)?)).collect()
    }

    /// What the inspection finds over all worktrees of the task (B-1).
    fn unsaved_of(
        &self,
        task: &str,
        renew: &mut dyn FnMut(),
    ) -> Result<(Unsaved, Vec<String>), HostError> {
        let mut pulse = self.paced(|| {
            renew();
            true
        });
        let mut all = Unsaved::NONE;
        let mut details = Vec::new();
        for place in self.places_of(task)? {
            let inspection = self.workspaces.inspect(&place, &mut pulse);
            all = all.with(inspection.evidence.unsaved);
            details.extend(
                inspection.details.iter().map(|d| format!("{}: {d}", place.path.display())),
            );
            match inspection.evidence.found {
                freehold_kernel::Found::Here | freehold_kernel::Found::Missing => {}
                freehold_kernel::Found::InTrash
                | freehold_kernel::Found::Mismatch
                | freehold_kernel::Found::Unknown => all = all.with(Unsaved::UNKNOWN),
            }
        }
        Ok((all, details))
    }

    /// W-21: reserves reconcile jobs for what archives preserved and nobody borrows any more.
    pub(crate) fn reconcile(&self) -> Result<u32, HostError> {
        let mut rows = self.read(&[Read::by(TableId::Resources, "result", &["preserved"])])?;
        let jobs = rows.texts(rows.view.resources.iter().map(|r| r.job_id))?;
        let environments =
            rows.texts(rows.view.resources.iter().filter_map(|r| r.environment_id))?;
        self.read_on(
            &mut rows,
            vec![
                Read::among(TableId::Jobs, "id", jobs),
                Read::among(TableId::Environments, "id", environments),
            ],
        )?;
        let tasks = rows.texts(rows.view.jobs.iter().map(|j| j.task_id))?;
        self.read_on(&mut rows, vec![Read::among(TableId::Tasks, "id", tasks)])?;
        let mut candidates = BTreeSet::new();
        for resource in rows.view.resources.iter() {
            if resource.result != freehold_kernel::ResourceResult::Preserved {
                continue;
            }
            let Some(job) = rows.view.jobs.id(resource.job_id.0) else { continue };
            let Some(environment) = resource.environment_id else { continue };
            let archived = rows.view.tasks.id(job.task_id.0).is_some_and(|t| {
                t.lifecycle == freehold_kernel::TaskLifecycle::Archived
                    && t.archived_by == Some(job.authority)
            });
            let still = rows.view.environments.id(environment.0).is_some();
            if archived && still {
                candidates.insert((job.task_id, environment, job.authority));
            }
        }
        let mut reserved = 0;
        for (task, environment, authority) in candidates {
            let operation = OperationId(freehold_kernel::derive(authority.0, environment.0));
            let text = uuid_text(operation.0);
            let done = self.read(&[Read::by(TableId::Jobs, "operation_id", &[&text])])?;
            if !done.view.jobs.is_empty() {
                continue;
            }
            let asked = self.ask(&Who::system(), None, |c| {
                c.know(&rows.names);
                Ok(Command::System(SystemCommand::Reconcile {
                    task,
                    environment,
                    job: JobId(fresh()),
                    operation,
                }))
            });
            match asked {
                Ok(_) => reserved += 1,
                // Borrowers are still there, or another job runs: later.
                Err(HostError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(reserved)
    }
}
