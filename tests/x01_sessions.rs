//! X01 to X03: sessions come and go, the task's workspace stays.

mod support;

use freehold_kernel::TableId;
use support::*;

#[test]
fn x01_deleting_the_last_session_touches_nothing_physical() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    let before = (contents(&made.place.path), ground.registered(), ground.branches());
    host.delete_session(&ann(), "s").unwrap();
    assert_eq!((contents(&made.place.path), ground.registered(), ground.branches()), before);
    let rows = rows(&host, &[TableId::Jobs, TableId::Sessions, TableId::Removals]);
    assert_eq!(
        (rows.view.sessions.len(), rows.view.jobs.len(), rows.view.removals.len()),
        (0, 0, 0)
    );
}

#[test]
fn x02_a_new_session_uses_the_same_workspace() {
    let ground = Ground::new();
    let host = ground.host();
    let (_, made) = settled(&ground, &host);
    mark(&made.place.path);
    host.delete_session(&ann(), "s").unwrap();
    session(&host, "s2", "t", None).unwrap();
    let rows = rows(&host, &[TableId::Sessions, TableId::Environments]);
    let environment = rows.view.environments.iter().next().unwrap().id;
    assert_eq!(rows.view.sessions.iter().next().unwrap().task_environment_id, Some(environment));
    assert!(is_marked(&host.places_of("t").unwrap()[0].path));
}
