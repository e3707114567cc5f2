//! How models begin: the rows that are there before anything happens.

use freehold_kernel::{
    Command, OperatorCommand, PathId, SessionCommand, SessionSource, Settings, Span, SystemCommand,
    TaskCommand, TaskKind,
};

use super::names::*;
use crate::world::World;

/// The settings of every model: two tries, due at once, no retention of trash. What takes time
/// takes steps instead.
pub fn settings() -> Settings {
    let zero = Span(0);
    Settings {
        max_tries: 2,
        retry_1: zero,
        retry_2: zero,
        retry_3: zero,
        retry_4: zero,
        retry_5: zero,
        retry_6: zero,
        retry_7: zero,
        ..Settings::DEFAULT
    }
}

/// A world with these instances (all on host 0), root 0 and workspace 0.
pub fn world(instances: u8) -> World {
    let mut world = World::new();
    for n in 0..instances {
        world.prepare(Command::System(SystemCommand::RegisterInstance {
            instance: instance(n),
            host: host(0),
        }));
    }
    world.prepare(Command::Operator(OperatorCommand::ChangeSettings { settings: settings() }));
    world.prepare(Command::Operator(OperatorCommand::RegisterRoot {
        root: root(0),
        host: host(0),
        path: PathId(0x99),
    }));
    world.prepare(Command::Task(TaskCommand::CreateWorkspace { workspace: workspace(0) }));
    world
}

/// A standard task of workspace 0.
pub fn add_task(world: &mut World, n: u8, parent: Option<u8>) {
    world.prepare(Command::Task(TaskCommand::Create {
        task: task(n),
        workspace: workspace(0),
        parent: parent.map(task),
        kind: TaskKind::Standard,
        expires_at: None,
    }));
}

/// An environment of a task, without a container.
pub fn add_environment(world: &mut World, n: u8, of: u8) {
    world.prepare(Command::Task(TaskCommand::CreateEnvironment {
        environment: environment(n),
        task: task(of),
        container: None,
        sandbox: None,
    }));
}

/// An open session of a task, linked to an environment.
pub fn add_session(world: &mut World, n: u8, of: u8, linked: Option<u8>) {
    world.prepare(Command::Session(SessionCommand::Create {
        session: session(n),
        task: task(of),
        environment: linked.map(environment),
        source: SessionSource::Person,
        parent: None,
    }));
}

/// A worktree that was made and is owned: row, stamp, path and slot have the number `n`.
pub fn add_worktree(world: &mut World, n: u8, in_environment: u8, by: u8) {
    use freehold_kernel::AttemptCommand;
    let (made, token) = (attempt(n), maker_token(n));
    world.prepare(Command::Attempt(super::actors::maker::begin(n, in_environment, by)));
    world.prepare(Command::Attempt(AttemptCommand::Materialised { attempt: made, token }));
    put_worktree(world, n);
    world.prepare(Command::Attempt(AttemptCommand::Persist { attempt: made, token }));
}

/// Worktree `n` comes to its path on the disk, made by attempt `n`.
pub fn put_worktree(world: &mut World, n: u8) {
    use freehold_kernel::Unsaved;
    use freehold_kernel::properties::{Physical, Place};
    world.disk.worktrees.push(Physical {
        identity: stamp(n),
        root: root(0),
        path: path(n),
        made_by: Some(attempt(n)),
        place: Place::AtHome,
        unsaved: Unsaved::NONE,
        salvaged: Unsaved::NONE,
        moved_by: None,
    });
}
