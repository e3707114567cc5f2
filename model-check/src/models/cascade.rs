//! Model 5 of 09: cascades and deletions of workspaces: parent, child and grandchild, somebody who
//! creates or moves a task meanwhile, a crash between two barriers, the way back; and quick chats.

use freehold_kernel::properties::Place;
use freehold_kernel::{
    Command, Guard, InputId, JobState, OperationCommand, Origin, RuntimeKind, SessionCommand,
    SessionSource, TaskCommand, TaskKind, TaskLifecycle, Trigger, TurnCommand, TurnOutcome,
    WorkspaceState,
};

use super::actors::person::Act;
use super::actors::{Cascader, Clock, Operator, Person, Recovery, Worker};
use super::begin;
use super::catalogue::{Entry, Kill, Scope};
use super::names::*;
use crate::system::{Fault, System};
use crate::world::{NOW, World};

/// Systems of this model.
pub const SYSTEMS: &[Entry] = &[
    Entry {
        name: "cascade-archive",
        model: 5,
        says: "a tree of three is archived while a child is created and moved, and comes back",
        scope: Scope::Ci,
        build: || tree(Trigger::CascadeArchive, Size::SMALL),
        states: 115_390,
    },
    Entry {
        name: "cascade-delete",
        model: 5,
        says: "a tree of three is deleted while a child is created and moved",
        scope: Scope::Ci,
        build: || tree(Trigger::CascadeDelete, Size::SMALL),
        states: 59_928,
    },
    Entry {
        name: "cascade-against-delete",
        model: 5,
        says: "a tree is archived while the task in its middle is deleted alone",
        scope: Scope::Ci,
        build: two_operations,
        states: 16_209,
    },
    Entry {
        name: "cascade-workspace",
        model: 5,
        says: "a workspace is deleted while a task is created in it, and deleted once more",
        scope: Scope::Ci,
        build: || workspace_deletion(Size::SMALL),
        states: 85_541,
    },
    Entry {
        name: "cascade-empty-workspace",
        model: 5,
        says: "an empty workspace is deleted while a task is created in it",
        scope: Scope::Ci,
        build: empty_workspace,
        states: 2_894,
    },
    Entry {
        name: "cascade-chat",
        model: 5,
        says: "a quick chat expires while somebody talks in it, and archives or deletes it",
        scope: Scope::Ci,
        build: quick_chat,
        states: 56_270,
    },
    Entry {
        name: "cascade-archive-long",
        model: 5,
        says: "the same with a worktree in the child, and its removal",
        scope: Scope::Long,
        build: || tree(Trigger::CascadeArchive, Size::TREE),
        states: 581_111,
    },
    Entry {
        name: "cascade-delete-long",
        model: 5,
        says: "the same with a worktree in the child, and its removal",
        scope: Scope::Long,
        build: || tree(Trigger::CascadeDelete, Size::TREE),
        states: 187_178,
    },
    Entry {
        name: "cascade-workspace-long",
        model: 5,
        says: "the same with a worktree, and its removal",
        scope: Scope::Long,
        build: || workspace_deletion(Size::FULL),
        states: 928_990,
    },
];

/// Guards that this model kills.
pub const KILLS: &[Kill] = &[
    Kill {
        guards: &[Guard::WorkspaceDeletion],
        build: slow_workspace_deletion,
        property: "P-36",
        steps: 7,
        why: "",
    },
    Kill {
        guards: &[Guard::ParentActive],
        build: || beside(Trigger::Archive, create(1, Some(0))),
        property: "P-30",
        steps: 4,
        why: "",
    },
    Kill {
        guards: &[Guard::ParentUnbarred],
        build: || beside(Trigger::Archive, create(1, Some(0))),
        property: "P-6",
        steps: 2,
        why: "",
    },
    Kill { guards: &[Guard::NoCircle], build: circle, property: "P-36", steps: 2, why: "" },
    Kill { guards: &[Guard::Expired], build: quick_chat, property: "P-38", steps: 1, why: "" },
    Kill { guards: &[Guard::TaskNotBusy], build: quick_chat, property: "P-38", steps: 3, why: "" },
    Kill {
        guards: &[Guard::CascadeComplete],
        build: growing_tree,
        property: "P-36",
        steps: 6,
        why: "",
    },
    Kill {
        guards: &[Guard::WorkspaceComplete],
        build: || workspace_deletion(Size::SMALL),
        property: "P-36",
        steps: 8,
        why: "",
    },
    Kill {
        guards: &[Guard::WorkspaceActive],
        build: empty_workspace,
        property: "P-6",
        steps: 2,
        why: "",
    },
];

/// How large a system is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Whether the child has a worktree, which a worker removes.
    pub worktree: bool,
    /// Crashes.
    pub crashes: u8,
    /// Leases that lapse although their holder lives.
    pub slow: u8,
    /// Replies that are lost.
    pub lost: u8,
    /// Failures between barriers.
    pub failures: u8,
}

impl Size {
    /// Every fault once, and nothing on disk.
    pub const SMALL: Size = Size { worktree: false, crashes: 1, slow: 1, lost: 1, failures: 1 };
    /// With the job behind it: a worktree that is removed.
    pub const FULL: Size = Size { worktree: true, crashes: 1, slow: 1, lost: 0, failures: 1 };
    /// The same for a tree, in which nobody is slow.
    pub const TREE: Size = Size { slow: 0, ..Size::FULL };
}

fn create(n: u8, parent: Option<u8>) -> Command {
    Command::Task(TaskCommand::Create {
        task: task(n),
        workspace: workspace(0),
        parent: parent.map(task),
        kind: TaskKind::Standard,
        expires_at: None,
    })
}

fn moves(n: u8, parent: Option<u8>) -> Command {
    Command::Task(TaskCommand::Move { task: task(n), parent: parent.map(task) })
}

/// Task 0 with child 1 and grandchild 2.
fn family() -> World {
    let mut world = begin::world(2);
    begin::add_task(&mut world, 0, None);
    begin::add_task(&mut world, 1, Some(0));
    begin::add_task(&mut world, 2, Some(1));
    world
}

fn faults(system: System, size: Size) -> System {
    let system = if size.worktree {
        system.sometimes("worktree removed", |w| {
            w.disk.worktrees.iter().any(|t| t.place == Place::Gone)
        })
    } else {
        system
    };
    system
        .allowing(size.crashes, Fault::Crash)
        .allowing(size.slow, Fault::Slow)
        .allowing(size.lost, Fault::LostReply)
        .allowing(size.failures, Fault::Disk)
}

fn archived(w: &World, n: u8) -> bool {
    w.view.tasks.id(task(n).0).is_some_and(|t| t.lifecycle == TaskLifecycle::Archived)
}

fn there(w: &World, n: u8) -> bool {
    w.view.tasks.id(task(n).0).is_some()
}

/// Whether an operation took the task on to its mutation.
fn went(w: &World, n: u8) -> bool {
    w.view.jobs.iter().any(|j| j.task_id == task(n) && j.mutated_at.is_some())
}

/// A cascade over a tree in which somebody creates a task under the grandchild, and somebody moves
/// one into it and out of it.
pub fn tree(trigger: Trigger, size: Size) -> System {
    let mut world = family();
    begin::add_task(&mut world, 4, None);
    if size.worktree {
        begin::add_environment(&mut world, 1, 1);
        begin::add_worktree(&mut world, 1, 1, 1);
    }
    let creator = vec![("creates task 3 under task 2", create(3, Some(2)))];
    let mover = vec![
        ("moves task 4 under task 1", moves(4, Some(1))),
        ("moves task 2 up, under none", moves(2, None)),
    ];
    let mut system = System::new(format!("cascade-{}", trigger.code()), world)
        .with(Cascader::new(0, trigger, 0, 0))
        .with(Person::asks("a person", creator))
        .with(Person::asks("another person", mover))
        .with(Recovery { instance: 1 })
        .with(Worker { instance: 1 })
        .with(Clock)
        .sometimes("a created child goes too", |w| went(w, 3))
        .sometimes("a created child is refused", |w| {
            !there(w, 3) && (archived(w, 2) || !there(w, 2))
        })
        .sometimes("what was moved in goes too", |w| went(w, 4))
        .sometimes("what was moved out stays", |w| {
            let stays = there(w, 2) && !archived(w, 2);
            stays && (archived(w, 0) || !there(w, 0))
        })
        .sometimes("barriers are lifted", |w| {
            w.view.jobs.iter().any(|j| j.state == JobState::Cancelled && j.mutated_at.is_none())
        })
        .sometimes("every job succeeded", |w| {
            w.view.jobs.iter().filter(|j| j.state == JobState::Succeeded).count() >= 3
        });
    if trigger == Trigger::CascadeArchive {
        let unarchive = OperationCommand::Unarchive { task: task(0), cascade: true };
        let acts = vec![Act::Ask {
            says: "unarchives task 0 with all that was archived with it",
            command: Command::Operation(unarchive),
            may: freehold_kernel::Permissions::ALL,
            insists: true,
        }];
        system = system
            .with(Person { who: "a third person", acts, open: false })
            .sometimes("the tree is back", |w| {
                !archived(w, 0) && w.view.jobs.iter().any(|j| j.mutated_at.is_some())
            });
    }
    faults(system, size)
}

/// A cascade of archives, and the deletion of the task in the middle.
pub fn two_operations() -> System {
    let mut middle = Operator::new(1, Trigger::Delete, 1);
    middle.task = 1;
    System::new("cascade-against-delete", family())
        .with(Cascader::new(0, Trigger::CascadeArchive, 0, 0))
        .with(middle)
        .with(Recovery { instance: 1 })
        .with(Worker { instance: 1 })
        .with(Clock)
        .allowing(1, Fault::Crash)
        .allowing(1, Fault::Slow)
        .allowing(1, Fault::LostReply)
        .sometimes("the grandchild moved up", |w| {
            w.view.tasks.id(task(2).0).is_some_and(|t| t.parent_id == Some(task(0)))
        })
        .sometimes("the grandchild stands alone", |w| {
            w.view.tasks.id(task(2).0).is_some_and(|t| t.parent_id.is_none())
        })
        .sometimes("archived, then deleted", |w| archived(w, 0) && archived(w, 2) && !there(w, 1))
}

/// A workspace of two tasks is deleted; somebody creates a task in it; another instance wants to
/// delete it too.
pub fn workspace_deletion(size: Size) -> System {
    let mut world = begin::world(2);
    begin::add_task(&mut world, 0, None);
    begin::add_task(&mut world, 1, Some(0));
    if size.worktree {
        begin::add_environment(&mut world, 1, 1);
        begin::add_worktree(&mut world, 1, 1, 1);
    }
    let creator = vec![("creates task 2", create(2, None))];
    let system = System::new("cascade-workspace", world)
        .with(Cascader::new(0, Trigger::WorkspaceDelete, 0, 0))
        .with(Cascader::new(1, Trigger::WorkspaceDelete, 0, 1))
        .with(Person::asks("a person", creator))
        .with(Recovery { instance: 1 })
        .with(Worker { instance: 1 })
        .with(Clock);
    faults(of_workspaces(system), size)
        .sometimes("a created task goes too", |w| {
            w.view.workspaces.is_empty() && w.view.jobs.iter().any(|j| j.task_id == task(2))
        })
        .sometimes("the second deletion did it", |w| {
            w.view.jobs.iter().any(|j| j.operation_id == operation(1) && j.mutated_at.is_some())
        })
}

fn of_workspaces(system: System) -> System {
    system
        .sometimes("in deletion", |w| {
            w.view.workspaces.iter().any(|x| x.state == WorkspaceState::Deleting)
        })
        .sometimes("gone", |w| w.view.workspaces.is_empty())
        .sometimes("a created task is refused", |w| {
            w.view.workspaces.is_empty() && w.view.jobs.iter().all(|j| j.task_id != task(2))
        })
}

/// A workspace without a task is deleted; somebody creates a task in it.
pub fn empty_workspace() -> System {
    let creator = vec![("creates task 2", create(2, None))];
    let system = System::new("cascade-empty-workspace", begin::world(2))
        .with(Cascader::new(0, Trigger::WorkspaceDelete, 0, 0))
        .with(Cascader::new(1, Trigger::WorkspaceDelete, 0, 1))
        .with(Person::asks("a person", creator))
        .with(Recovery { instance: 1 })
        .with(Worker { instance: 1 })
        .with(Clock);
    of_workspaces(system)
        .allowing(1, Fault::Crash)
        .allowing(1, Fault::Slow)
        .allowing(1, Fault::LostReply)
}

/// A slow instance deletes a workspace of one task, and another one gives that up.
pub fn slow_workspace_deletion() -> System {
    let mut world = begin::world(2);
    begin::add_task(&mut world, 0, None);
    System::new("cascade-slow-workspace", world)
        .with(Cascader::new(0, Trigger::WorkspaceDelete, 0, 0))
        .with(Recovery { instance: 1 })
        .with(Clock)
        .allowing(1, Fault::Slow)
}

/// A task is archived or deleted, and a person asks for something beside it.
pub fn beside(trigger: Trigger, command: Command) -> System {
    let mut world = begin::world(1);
    begin::add_task(&mut world, 0, None);
    System::new("cascade-beside", world)
        .with(Operator::new(0, trigger, 0))
        .with(Person::asks("a person", vec![("creates task 1 under task 0", command)]))
}

/// A tree of two is archived while somebody creates a task under the child.
pub fn growing_tree() -> System {
    let mut world = begin::world(1);
    begin::add_task(&mut world, 0, None);
    begin::add_task(&mut world, 1, Some(0));
    let creator = vec![("creates task 2 under task 1", create(2, Some(1)))];
    System::new("cascade-growing", world)
        .with(Cascader::new(0, Trigger::CascadeArchive, 0, 0))
        .with(Person::asks("a person", creator))
}

/// Two people move two tasks, each under the other.
pub fn circle() -> System {
    let mut world = begin::world(1);
    begin::add_task(&mut world, 0, None);
    begin::add_task(&mut world, 1, None);
    let one = vec![("moves task 0 under task 1", moves(0, Some(1)))];
    let other = vec![("moves task 1 under task 0", moves(1, Some(0)))];
    System::new("cascade-circle", world)
        .with(Person::asks("a person", one))
        .with(Person::asks("another person", other))
}

/// A quick chat in which somebody talks, whose time comes, and which somebody deletes.
pub fn quick_chat() -> System {
    let mut world = begin::world(2);
    world.prepare(Command::Task(TaskCommand::Create {
        task: task(0),
        workspace: workspace(0),
        parent: None,
        kind: TaskKind::QuickChat,
        expires_at: Some(NOW + freehold_kernel::Span(1_000)),
    }));
    world.prepare(Command::Session(SessionCommand::Create {
        session: session(0),
        task: task(0),
        environment: None,
        source: SessionSource::Person,
        parent: None,
    }));
    let submit = |n: u8| {
        Command::Turn(TurnCommand::Submit {
            session: session(0),
            input: InputId(input(n).0),
            origin: Origin::Person,
            turn: turn(n),
            runtime: runtime(n),
            runtime_kind: RuntimeKind::Local,
            instance: instance(0),
        })
    };
    let end = Command::Turn(TurnCommand::End {
        turn: turn(0),
        outcome: TurnOutcome::Completed,
        next_turn: turn(2),
        next_runtime: runtime(2),
    });
    let talk = vec![
        ("says something in the chat", submit(0)),
        ("has got the answer", end),
        ("says something else", submit(1)),
    ];
    System::new("cascade-chat", world)
        .with(Operator::new(0, Trigger::QuickChatExpire, 0))
        .with(Operator::new(2, Trigger::QuickChatExpire, 1))
        .with(Operator::new(1, Trigger::Delete, 1))
        .with(Person::asks("a person", talk))
        .with(Recovery { instance: 1 })
        .with(Worker { instance: 1 })
        .with(Clock)
        .allowing(1, Fault::Crash)
        .allowing(1, Fault::Slow)
        .sometimes("expired", |w| {
            !there(w, 0) && w.view.jobs.iter().any(|j| j.operation_id == operation(0))
        })
        .sometimes("closed by hand", |w| {
            w.view.jobs.iter().any(|j| j.operation_id == operation(1) && j.mutated_at.is_some())
        })
        .sometimes("the talk goes on after the term", |w| {
            w.view.turns.len() > 1
                && w.view.tasks.iter().all(|t| t.expires_at.is_some_and(|at| at <= NOW))
        })
}
