//! Task lifecycle operations, recovery, time and crashes.

use freehold_kernel::*;

use super::backend::Backend;
use super::op::Draw;
use super::{Driver, Ran, Worker};

/// What a reserve needs beside its task.
#[derive(Clone, Copy)]
struct Plan {
    operation: OperationId,
    trigger: Trigger,
    environment: Option<EnvironmentId>,
    cascade_root: Option<TaskId>,
    policy: UnsavedPolicy,
    consent: Unsaved,
    instance: InstanceId,
}

impl<B: Backend> Driver<B> {
    fn reserve_one(&mut self, draw: &mut Draw, task: TaskId, plan: Plan) -> Ran<super::Answer> {
        let mut reserve = OperationCommand::Reserve {
            operation: plan.operation,
            job: JobId(self.fresh()),
            task,
            trigger: plan.trigger,
            environment: plan.environment,
            cascade_root: plan.cascade_root,
            policy: plan.policy,
            branch_policy: if draw.once_in(2) {
                BranchPolicy::DeleteWhenReached
            } else {
                BranchPolicy::Keep
            },
            consent: plan.consent,
            unsaved: Unsaved::NONE,
            refuse_busy: draw.once_in(6),
            instance: plan.instance,
            content: ContentHash(0),
        };
        // What is asked, without the ids that a caller makes fresh.
        let asked = ContentHash(u128::from(plan.trigger as u8) + 1);
        if let OperationCommand::Reserve { content, .. } = &mut reserve {
            *content = if draw.once_in(24) { ContentHash(99) } else { asked };
        }
        self.ask(draw, Command::Operation(reserve))
    }

    fn plan(&mut self, draw: &mut Draw, task: TaskId, trigger: Trigger) -> Plan {
        let own: Vec<EnvironmentId> =
            self.world.environments.iter().filter(|e| e.task_id == task).map(|e| e.id).collect();
        let reset = trigger == Trigger::EnvironmentReset;
        let cascade = matches!(trigger, Trigger::CascadeArchive | Trigger::CascadeDelete);
        let policy = match draw.below(8) {
            6 => UnsavedPolicy::Refuse,
            7 => UnsavedPolicy::Discard,
            _ => UnsavedPolicy::Salvage,
        };
        let kinds =
            [Unsaved::TRACKED, Unsaved::UNTRACKED, Unsaved::TRACKED.with(Unsaved::UNTRACKED)];
        let consent = match policy {
            UnsavedPolicy::Discard => draw.one(&kinds).unwrap_or(Unsaved::TRACKED),
            UnsavedPolicy::Salvage | UnsavedPolicy::Refuse => Unsaved::NONE,
        };
        let instance = self.any_instance(draw);
        Plan {
            operation: OperationId(self.fresh()),
            trigger,
            environment: if reset { draw.one(&own) } else { None },
            cascade_root: cascade.then_some(task),
            policy,
            consent,
            instance,
        }
    }

    /// A lone reserve, often not what fits.
    pub(super) fn reserve(&mut self, mut draw: Draw) -> Ran {
        let task = self.any_task(&mut draw);
        let trigger = draw.one(Trigger::ALL).unwrap_or(Trigger::Archive);
        let mut plan = self.plan(&mut draw, task, trigger);
        let earlier: Vec<OperationId> = self.world.jobs.iter().map(|j| j.operation_id).collect();
        if draw.once_in(6) {
            plan.operation = draw.one(&earlier).unwrap_or(plan.operation);
        }
        let answer = self.reserve_one(&mut draw, task, plan)?;
        if answer.verdict.is_ok() {
            let owner = Worker::Owner(plan.operation, trigger.scope());
            self.workers.push((plan.instance, owner));
        }
        Ok(())
    }

    /// A whole operation: barriers in id order, snapshots, mutation; often stopped in the middle.
    pub(super) fn operate(&mut self, mut draw: Draw) -> Ran {
        let active: Vec<TaskId> = self.world.tasks.iter().map(|t| t.id).collect();
        let Some(task) = draw.one(&active) else { return Ok(()) };
        let archived =
            self.world.tasks.id(task.0).is_some_and(|t| t.lifecycle == TaskLifecycle::Archived);
        let triggers = if archived {
            [Trigger::Delete, Trigger::CascadeDelete, Trigger::Delete, Trigger::Delete]
        } else {
            [Trigger::Archive, Trigger::Delete, Trigger::CascadeArchive, Trigger::EnvironmentReset]
        };
        let chat = self.world.tasks.id(task.0).is_some_and(|t| t.kind == TaskKind::QuickChat);
        let trigger = if chat && draw.once_in(2) {
            Trigger::QuickChatExpire
        } else if draw.once_in(10) {
            Trigger::CascadeDelete
        } else {
            draw.one(&triggers).unwrap_or(Trigger::Archive)
        };
        let plan = self.plan(&mut draw, task, trigger);
        let tasks = if plan.cascade_root.is_some() { self.subtree(task) } else { vec![task] };
        self.carry_out(&mut draw, plan, &tasks)
    }

    /// An archive from its barrier to its mutation, with nothing in between.
    pub(super) fn archive_whole(&mut self, draw: &mut Draw, task: TaskId) -> Ran {
        let operation = OperationId(self.fresh());
        let (instance, scope) = (self.any_instance(draw), Scope::Task);
        let plan = Plan {
            operation,
            trigger: Trigger::Archive,
            environment: None,
            cascade_root: None,
            policy: UnsavedPolicy::Salvage,
            consent: Unsaved::NONE,
            instance,
        };
        if self.reserve_one(&mut Draw(0), task, plan)?.verdict.is_err() {
            return Ok(());
        }
        self.stop_runtimes(|r| r.task_id == task)?;
        for step in [
            OperationCommand::Snapshot { operation, scope, instance },
            OperationCommand::Mutate { operation, scope, instance },
        ] {
            self.send(Command::Operation(step))?;
        }
        Ok(())
    }

    fn carry_out(&mut self, draw: &mut Draw, plan: Plan, tasks: &[TaskId]) -> Ran {
        let scope = plan.trigger.scope();
        let Plan { operation, instance, .. } = plan;
        self.workers.push((instance, Worker::Owner(operation, scope)));
        for task in tasks {
            let answer = self.reserve_one(draw, *task, plan)?;
            if answer.verdict.is_err() {
                if !draw.once_in(3) {
                    let abort = OperationCommand::Abort { operation, instance };
                    self.ask(draw, Command::Operation(abort))?;
                }
                return Ok(());
            }
        }
        if draw.once_in(5) {
            return Ok(());
        }
        if !draw.once_in(3) {
            let tasks = tasks.to_vec();
            self.stop_runtimes(|r| tasks.contains(&r.task_id))?;
        }
        if !draw.once_in(12) {
            let snapshot = OperationCommand::Snapshot { operation, scope, instance };
            self.ask(draw, Command::Operation(snapshot))?;
        }
        if draw.once_in(5) {
            return Ok(());
        }
        let mutate = OperationCommand::Mutate { operation, scope, instance };
        self.ask(draw, Command::Operation(mutate)).map(|_| ())
    }

    pub(super) fn subtree(&self, root: TaskId) -> Vec<TaskId> {
        let mut all = vec![root];
        let mut at = 0;
        while at < all.len() {
            let parent = all[at];
            let children = self.world.tasks.iter().filter(|t| t.parent_id == Some(parent));
            all.extend(children.map(|t| t.id));
            at += 1;
        }
        all.sort_unstable();
        all
    }

    /// Goes on with an operation that was begun.
    pub(super) fn go_on(&mut self, mut draw: Draw) -> Ran {
        let mut owners: Vec<(InstanceId, OperationId, Scope)> = self
            .workers
            .iter()
            .filter_map(|(i, w)| match w {
                Worker::Owner(operation, scope) => Some((*i, *operation, *scope)),
                _ => None,
            })
            .collect();
        owners.reverse();
        let Some((instance, operation, scope)) = draw.one(&owners) else { return Ok(()) };
        let instance = if draw.once_in(12) { self.any_instance(&mut draw) } else { instance };
        let scope = if draw.once_in(24) { Scope::Cascade } else { scope };
        let commands = match draw.below(5) {
            0 | 1 => vec![
                OperationCommand::Snapshot { operation, scope, instance },
                OperationCommand::Mutate { operation, scope, instance },
            ],
            2 => vec![OperationCommand::Mutate { operation, scope, instance }],
            3 => vec![OperationCommand::RenewBarrier { operation, instance }],
            _ => vec![OperationCommand::Abort { operation, instance }],
        };
        for command in commands {
            self.ask(&mut draw, Command::Operation(command))?;
        }
        Ok(())
    }

    pub(super) fn unarchive(&mut self, mut draw: Draw) -> Ran {
        let archived: Vec<TaskId> = self
            .world
            .tasks
            .iter()
            .filter(|t| t.lifecycle == TaskLifecycle::Archived)
            .map(|t| t.id)
            .collect();
        let task = match draw.one(&archived) {
            Some(task) => task,
            None if draw.once_in(8) => self.any_task(&mut draw),
            None => return Ok(()),
        };
        let cascade = draw.once_in(3);
        let unarchive = OperationCommand::Unarchive { task, cascade };
        self.ask(&mut draw, Command::Operation(unarchive)).map(|_| ())
    }

    /// Deletes a workspace, or tries to.
    pub(super) fn workspace(&mut self, mut draw: Draw) -> Ran {
        let all: Vec<WorkspaceId> = self.world.workspaces.iter().map(|w| w.id).collect();
        let Some(workspace) = draw.one(&all) else { return Ok(()) };
        let instance = self.any_instance(&mut draw);
        let operation = OperationId(self.fresh());
        let begin = OperationCommand::BeginWorkspaceDelete { workspace, operation, instance };
        let begun = self.ask(&mut draw, Command::Operation(begin))?;
        if begun.verdict.is_err() || draw.once_in(4) {
            let abort = OperationCommand::AbortWorkspaceDelete { workspace, operation };
            return self.ask(&mut draw, Command::Operation(abort)).map(|_| ());
        }
        let tasks: Vec<TaskId> =
            self.world.tasks.iter().filter(|t| t.workspace_id == workspace).map(|t| t.id).collect();
        if tasks.is_empty() || draw.once_in(8) {
            let finish = OperationCommand::FinishWorkspaceDelete { workspace, operation, instance };
            return self.ask(&mut draw, Command::Operation(finish)).map(|_| ());
        }
        let plan = Plan {
            operation,
            trigger: Trigger::WorkspaceDelete,
            environment: None,
            cascade_root: None,
            policy: UnsavedPolicy::Salvage,
            consent: Unsaved::NONE,
            instance,
        };
        self.carry_out(&mut draw, plan, &tasks)
    }

    pub(super) fn recover(&mut self, mut draw: Draw) -> Ran {
        let now = self.world.now;
        let lapsed: Vec<JobId> = self
            .world
            .jobs
            .iter()
            .filter(|j| j.state == JobState::Prepared)
            .map(|j| j.id)
            .collect();
        let closing: Vec<SessionId> = self
            .world
            .sessions
            .iter()
            .filter(|s| s.lifecycle == SessionLifecycle::Closing)
            .map(|s| s.id)
            .collect();
        let turns: Vec<TurnId> = self
            .world
            .turns
            .iter()
            .filter(|t| t.phase != TurnPhase::Ended && t.lease_until <= now)
            .map(|t| t.id)
            .collect();
        let workspaces: Vec<WorkspaceId> = self.world.workspaces.iter().map(|w| w.id).collect();
        let command = match draw.below(5) {
            0 => draw.one(&lapsed).map(|job| SystemCommand::RecoverBarrier { job }),
            1 => draw.one(&closing).map(|session| SystemCommand::RecoverClosing { session }),
            2 => {
                let liveness = [
                    freehold_kernel::Liveness::Dead,
                    freehold_kernel::Liveness::Unknown,
                    freehold_kernel::Liveness::Alive,
                ];
                let liveness = draw.one(&liveness).unwrap_or(freehold_kernel::Liveness::Unknown);
                draw.one(&turns).map(|turn| SystemCommand::RecoverTurn { turn, liveness })
            }
            3 => draw
                .one(&workspaces)
                .map(|workspace| SystemCommand::RecoverWorkspaceDelete { workspace }),
            _ => return self.reconcile(draw),
        };
        match command {
            Some(command) => self.ask(&mut draw, Command::System(command)).map(|_| ()),
            None => Ok(()),
        }
    }

    /// W-21: the recovery pass over archived tasks.
    pub(super) fn reconcile(&mut self, mut draw: Draw) -> Ran {
        let kept: Vec<(TaskId, EnvironmentId, OperationId)> = self
            .world
            .environments
            .iter()
            .filter_map(|e| {
                let task = self.world.tasks.id(e.task_id.0)?;
                Some((task.id, e.id, task.archived_by?))
            })
            .collect();
        let Some((task, environment, archive)) = draw.one(&kept) else { return Ok(()) };
        let operation = if draw.once_in(12) {
            OperationId(self.fresh())
        } else {
            OperationId(freehold_kernel::derive(archive.0, environment.0))
        };
        let job = JobId(self.fresh());
        let reconcile = SystemCommand::Reconcile { task, environment, job, operation };
        self.ask(&mut draw, Command::System(reconcile)).map(|_| ())
    }

    /// Time passes; whoever lives renews its lease in time, mostly.
    pub(super) fn time(&mut self, mut draw: Draw) -> Ran {
        let span = match draw.below(4) {
            0 => Span::seconds(5),
            1 => Span::seconds(31),
            2 => Span::seconds(61),
            _ => Span::hours(12),
        };
        self.pass(span)?;
        if draw.once_in(8) {
            // A process that slept: its lease is gone, and it comes back under a fresh id.
            return self.crash(draw);
        }
        Ok(())
    }

    /// Moves the clock; living instances renew.
    pub(super) fn pass(&mut self, span: Span) -> Ran {
        self.clock().advance(span);
        for (instance, _) in self.instances.clone() {
            self.send(Command::System(SystemCommand::RenewInstance { instance }))?;
        }
        Ok(())
    }

    /// A process dies with all that it had in memory, and another one starts on its host.
    pub(super) fn crash(&mut self, mut draw: Draw) -> Ran {
        if draw.once_in(6) {
            let instance = self.any_instance(&mut draw);
            let draining = !draw.once_in(2);
            let drain = SystemCommand::Drain { instance, draining };
            return self.ask(&mut draw, Command::System(drain)).map(|_| ());
        }
        if self.instances.is_empty() {
            return Ok(());
        }
        let at = draw.below(self.instances.len());
        let (dead, host) = self.instances.remove(at);
        let mut kept = Vec::new();
        for (instance, worker) in std::mem::take(&mut self.workers) {
            if instance == dead {
                if let Worker::Executor(_, token, _) = worker {
                    self.disk.let_go(token);
                }
            } else {
                kept.push((instance, worker));
            }
        }
        self.workers = kept;
        self.log.push(format!("crash of {dead:?}"));
        self.new_instance(host).map(|_| ())
    }

    pub(super) fn operator(&mut self, mut draw: Draw) -> Ran {
        let jobs: Vec<JobId> = self.world.jobs.iter().map(|j| j.id).collect();
        let left = |r: &&Resource| {
            matches!(
                r.result,
                ResourceResult::Waiting | ResourceResult::Removing | ResourceResult::Failed
            )
        };
        let resources: Vec<ResourceId> =
            self.world.resources.iter().filter(left).map(|r| r.id).collect();
        let salvage: Vec<SalvageId> = self.world.salvage.iter().map(|s| s.id).collect();
        let runtimes: Vec<RuntimeId> = self.world.runtimes.iter().map(|r| r.id).collect();
        let command = match draw.below(7) {
            0 => draw.one(&jobs).map(|job| OperatorCommand::Retry { job }),
            1 => draw.one(&jobs).map(|job| OperatorCommand::Cancel { job }),
            2 => draw.one(&resources).map(|resource| OperatorCommand::ForgetResource { resource }),
            3 => draw.one(&salvage).map(|salvage| OperatorCommand::MarkRestored { salvage }),
            4 => {
                let mut settings = Settings::DEFAULT;
                settings.trash_retention = Span::hours(draw.below(3) as i64);
                settings.max_tries = 1 + draw.below(3) as u32;
                settings.salvage_retention = Span::hours(draw.below(3) as i64);
                settings.salvage_consent =
                    (settings.salvage_retention.0 > 0).then_some(ContentHash(0x5a));
                Some(OperatorCommand::ChangeSettings { settings })
            }
            5 => draw.one(&runtimes).map(|runtime| OperatorCommand::DeclareStopped { runtime }),
            _ => Some(OperatorCommand::RegisterRoot {
                root: RootId(0x61 + draw.below(4) as u128),
                host: super::HOSTS[0],
                path: PathId(0x161 + draw.below(3) as u128),
            }),
        };
        match command {
            Some(command) => self.ask(&mut draw, Command::Operator(command)).map(|_| ()),
            None => Ok(()),
        }
    }
}
