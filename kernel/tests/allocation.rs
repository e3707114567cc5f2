//! Deciding on a view without content allocates nothing, and is quick. The checker decides
//! hundreds of millions of times.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Instant;

use freehold_kernel::*;

const T: TaskId = TaskId(1);
const S: SessionId = SessionId(2);

fn envelope(command: Command) -> Envelope {
    let actor = Actor { id: ActorId(9), may: Permissions::ALL };
    Envelope { request: None, content: ContentHash(0), actor, command }
}

fn must(view: &mut View, command: Command) {
    let mut out = Output::default();
    decide(view, &envelope(command), &mut out).unwrap();
    view.commit();
}

/// A world with a workspace, a task, an environment, a session and an instance.
fn world() -> View {
    let mut view = View { now: Time(1_000), ..View::default() };
    view.reserve(16);
    let i = InstanceId(5);
    must(
        &mut view,
        Command::System(SystemCommand::RegisterInstance { instance: i, host: HostId(6) }),
    );
    must(&mut view, Command::Task(TaskCommand::CreateWorkspace { workspace: WorkspaceId(3) }));
    must(
        &mut view,
        Command::Task(TaskCommand::Create {
            task: T,
            workspace: WorkspaceId(3),
            parent: None,
            kind: TaskKind::Standard,
            expires_at: None,
        }),
    );
    must(
        &mut view,
        Command::Task(TaskCommand::CreateEnvironment {
            environment: EnvironmentId(4),
            task: T,
            container: None,
            sandbox: None,
        }),
    );
    must(
        &mut view,
        Command::Session(SessionCommand::Create {
            session: S,
            task: T,
            environment: None,
            source: SessionSource::Person,
            parent: None,
        }),
    );
    view
}

fn decisions() -> Vec<(&'static str, Command)> {
    let reserve = OperationCommand::Reserve {
        operation: OperationId(10),
        job: JobId(11),
        task: T,
        trigger: Trigger::Archive,
        environment: None,
        cascade_root: None,
        policy: UnsavedPolicy::Salvage,
        branch_policy: BranchPolicy::Keep,
        consent: Unsaved::NONE,
        unsaved: Unsaved::NONE,
        refuse_busy: false,
        instance: InstanceId(5),
        content: ContentHash(1),
    };
    vec![
        (
            "session.create",
            Command::Session(SessionCommand::Create {
                session: SessionId(20),
                task: T,
                environment: None,
                source: SessionSource::Person,
                parent: None,
            }),
        ),
        (
            "turn.submit",
            Command::Turn(TurnCommand::Submit {
                session: S,
                input: InputId(21),
                origin: Origin::Person,
                turn: TurnId(22),
                runtime: RuntimeId(23),
                runtime_kind: RuntimeKind::Local,
                instance: InstanceId(5),
            }),
        ),
        (
            "session.begin_close",
            Command::Session(SessionCommand::BeginClose {
                session: S,
                kind: ClosingKind::Delete,
                token: Token(24),
                automatic: false,
                force: false,
            }),
        ),
        ("operation.reserve", Command::Operation(reserve)),
        (
            "refused: session.create of a known id",
            Command::Session(SessionCommand::Create {
                session: S,
                task: T,
                environment: None,
                source: SessionSource::Person,
                parent: None,
            }),
        ),
    ]
}

#[test]
fn a_decision_allocates_nothing() {
    for (name, command) in decisions() {
        let mut view = world();
        let mut out = Output::default();
        out.events.reserve(32);
        out.effects.reserve(32);
        view.reserve(16);
        let envelope = envelope(command);
        let counted = allocation_counter::measure(|| {
            let _ = black_box(decide(black_box(&mut view), &envelope, &mut out));
        });
        assert_eq!(counted.count_total, 0, "{name} allocates {} times", counted.count_total);
    }
}

#[test]
fn the_counter_counts() {
    let counted = allocation_counter::measure(|| {
        black_box(vec![1u8; 100]);
    });
    assert!(counted.count_total > 0);
}

/// Prints; asserts no time. `cargo test -p freehold-kernel --test allocation -- --nocapture`.
#[test]
fn figures_of_a_decision() {
    println!(
        "bytes: session {}, task {}, job {}, removal {}",
        size_of::<Session>(),
        size_of::<Task>(),
        size_of::<Job>(),
        size_of::<Removal>()
    );
    for (name, command) in decisions() {
        let mut view = world();
        let mut out = Output::default();
        let envelope = envelope(command);
        let mut samples = Vec::new();
        for _ in 0..21 {
            let began = Instant::now();
            for _ in 0..1_000 {
                let _ = black_box(decide(black_box(&mut view), &envelope, &mut out));
                view.rollback();
            }
            samples.push(began.elapsed().as_nanos() / 1_000);
        }
        samples.sort_unstable();
        println!(
            "{name}: median {} ns a decision with its rollback (minimum {})",
            samples[10], samples[0]
        );
    }
}
