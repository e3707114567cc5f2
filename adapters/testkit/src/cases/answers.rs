//! Answers, refusals and rows are those of the reference, undisturbed, after each reopening, after
//! each crash, and by two connections in turn.

use freehold_kernel::{Guard, TableId};
use freehold_store::{Read, Store};

use crate::life::a_tasks_life;
use crate::rig::Rig;
use crate::speech::{say, session, star, submit, task, workspace};
use crate::twin::{Disturbed, Twin, same};

/// A task's life: every answer, row and line of the journal.
pub fn commands_answer_as_the_reference<R: Rig>() {
    a_tasks_life(&mut Twin::<R>::new(Disturbed::No));
}

/// The same, the store closed and opened after every command.
pub fn reopening_after_every_command_changes_nothing<R: Rig>() {
    a_tasks_life(&mut Twin::<R>::new(Disturbed::Reopened));
}

/// The same, with a crash after every command: what was answered is durable.
pub fn a_crash_after_every_command_loses_nothing<R: Rig>() {
    a_tasks_life(&mut Twin::<R>::new(Disturbed::Crashed));
}

/// The same, by two connections in turn: none answers out of what it remembers.
pub fn two_connections_in_turn_answer_as_one<R: Rig>() {
    a_tasks_life(&mut Twin::<R>::new(Disturbed::InTurns));
}

/// A refusal writes no row and no line, and names its guard and the rows in the way.
pub fn refusals_change_nothing<R: Rig>() {
    let mut twin = Twin::<R>::new(Disturbed::No);
    twin.says(|c, _| workspace(c, "w"));
    twin.says(|c, _| task(c, "w", "t"));
    twin.refuses(Guard::IdNeverUsed, |c| task(c, "w", "t"));
    for refused in [
        say(|c| task(c, "nowhere", "t2")),
        say(|c| session(c, "nothing", "s", None)),
        say(|c| star(c, "nobody", true)),
        say(|c| workspace(c, "w")),
    ] {
        let before = pollster::block_on(freehold_store::store::dump(twin.store()));
        let outcome = twin.submit(&refused);
        assert!(outcome.accepted().is_err());
        let after = pollster::block_on(freehold_store::store::dump(twin.store()));
        same(&before.expect("rows"), &after.expect("rows")).unwrap_or_else(|e| panic!("{e}"));
        twin.compare().unwrap_or_else(|what| panic!("{what}"));
    }
}

/// Reads by value find what has the value and nothing else; nothing found is no error.
pub fn reads_find_what_they_name<R: Rig>() {
    let rig = R::fresh();
    let store = rig.open();
    let said = |command| {
        let outcome = submit(&store, &command).unwrap_or_else(|e| panic!("{e}"));
        outcome.accepted().unwrap_or_else(|refused| panic!("{refused}"));
    };
    said(say(|c| workspace(c, "w")));
    for name in ["t", "T", "t ", "t%", "t_"] {
        said(say(|c| task(c, "w", name)));
    }
    let ids = |texts: &[&str]| -> Vec<String> {
        let read = Read::by(TableId::Tasks, "id", texts);
        let rows = pollster::block_on(store.read(&[read])).unwrap_or_else(|e| panic!("{e}"));
        let mut found: Vec<String> = rows
            .view
            .tasks
            .iter()
            .map(|t| rows.names.text(freehold_kernel::Kind::TaskId, t.id.0).expect("its name"))
            .collect();
        found.sort();
        found
    };
    assert_eq!(ids(&["t"]), ["t"]);
    assert_eq!(ids(&["t%"]), ["t%"]);
    assert_eq!(ids(&["T", "t "]), ["T", "t "]);
    assert_eq!(ids(&["nothing"]), [""; 0]);
    let all = pollster::block_on(store.read(&[Read::all(TableId::Tasks)]));
    assert_eq!(all.unwrap_or_else(|e| panic!("{e}")).view.tasks.len(), 5);
}
