//! Texts come back byte by byte, as ids, as names and as contents; a text with NUL is refused by
//! all stores alike (A-12, D-24).

use freehold_kernel::{Command, HandleId, Id, Kind, TableId, TaskCommand, TaskId, WorkspaceId};
use freehold_store::names::ID_BYTES_MAX;
use freehold_store::store::dump;
use freehold_store::{NameError, Read, Store, StoreError};

use crate::rig::Rig;
use crate::speech::{ann, id, say, submit, task, text, workspace};
use crate::twin::{Disturbed, Twin, same};

/// Texts that a careless store changes, cuts off, mixes up or takes for something else.
fn awkward() -> Vec<String> {
    let mut texts: Vec<String> = [
        "a",
        "A",
        " a",
        "a ",
        "'",
        "''",
        "\"",
        "\\",
        "\\'",
        "\\x41",
        "$1",
        "?",
        ":a",
        "%",
        "_",
        "--",
        "; DROP TABLE tasks",
        "{a,b}",
        "{}",
        "[]",
        "null",
        "NULL",
        "0",
        "00",
        "1e3",
        "true",
        "ä",
        "a\u{308}",
        "ß",
        "SS",
        "İ",
        "i",
        "ı",
        "🦀",
        "👩‍👩‍👧",
        "\u{202e}abc",
        "\u{feff}a",
        "\u{fffd}",
        "\u{ffff}",
        "\u{10ffff}",
        "日本語",
        "עברית",
        "e\u{301}\u{323}",
        "e\u{323}\u{301}",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.push("x".repeat(ID_BYTES_MAX));
    texts.push("é".repeat(ID_BYTES_MAX / 2));
    texts
}

/// As a host's ids, and as texts of other things: found again by themselves and nothing else.
pub fn every_text_is_an_id_of_its_own<R: Rig>() {
    let mut twin = Twin::<R>::new(Disturbed::No);
    twin.says(|c, _| workspace(c, "w"));
    let texts = awkward();
    for name in &texts {
        twin.submit(&say(|c| task(c, "w", name)))
            .accepted()
            .unwrap_or_else(|refused| panic!("{name:?}: {refused}"));
        twin.submit(&say(|c| {
            Command::Task(TaskCommand::CreateEnvironment {
                environment: id(c, name),
                task: id(c, name),
                container: Some(text::<HandleId>(c, &format!("{name}\n\t{name}"))),
                sandbox: Some(text::<HandleId>(c, &name.repeat(40))),
            })
        }))
        .accepted()
        .unwrap_or_else(|refused| panic!("{name:?}: {refused}"));
    }
    twin.compare().unwrap_or_else(|what| panic!("{what}"));
    for name in &texts {
        let read = Read::by(TableId::Tasks, "id", &[name]);
        let rows = pollster::block_on(twin.store().read(&[read])).unwrap_or_else(|e| panic!("{e}"));
        let found: Vec<String> = rows
            .view
            .tasks
            .iter()
            .map(|task| rows.names.text(Kind::TaskId, task.id.0).expect("its name"))
            .collect();
        assert_eq!(found, std::slice::from_ref(name), "{name:?} was looked for");
    }
}

/// As contents: empty, awkward, of many lines, and a megabyte.
pub fn every_text_is_kept_as_it_is<R: Rig>() {
    let mut twin = Twin::<R>::new(Disturbed::No);
    let mut contents = awkward();
    contents.extend(["".to_owned(), "\r\n\n\t\u{1}\u{7f}\u{85}".to_owned(), " \n ".to_owned()]);
    contents.push("a line with 'quotes', \\, 🦀\n".repeat(1 << 15));
    twin.says(|c, _| workspace(c, "w"));
    for (n, content) in contents.iter().enumerate() {
        twin.says(|c, _| {
            let name = format!("t{n}");
            let task: TaskId = id(c, &name);
            c.content(TableId::Tasks, task.0, "title", content);
            crate::speech::task(c, "w", &name)
        });
    }
    let rows = twin.everything();
    for (n, content) in contents.iter().enumerate() {
        let task: TaskId = id(&mut ann(), &format!("t{n}"));
        let key = freehold_kernel::RowKey {
            table: TableId::Tasks,
            key: freehold_kernel::Key::of(task.bits()),
        };
        let kept = rows.contents.get(&key).and_then(|c| c.get("title")).cloned().flatten();
        assert!(kept.as_ref() == Some(content), "{content:.40?} came back as {kept:.40?}");
    }
}

/// NUL is refused with its place, before anything is done.
pub fn nul_is_refused_by_all_alike<R: Rig>() {
    let rig = R::fresh();
    let store = rig.open();
    let begun = submit(&store, &say(|c| workspace(c, "w")));
    assert!(begun.unwrap_or_else(|e| panic!("{e}")).accepted().is_ok());
    let before = pollster::block_on(dump(&store)).unwrap_or_else(|e| panic!("{e}"));
    let with_nul = say(|c| {
        let task: TaskId = id(c, "t");
        c.content(TableId::Tasks, task.0, "title", "before\0after");
        crate::speech::task(c, "w", "t")
    });
    let mut in_a_name = say(|c| task(c, "w", "t"));
    let hidden = in_a_name.names.learn(WorkspaceId::KIND, "w\0");
    let hidden = WorkspaceId(hidden.expect("the text of a stored row is taken as it is"));
    in_a_name.envelope.command = Command::Task(TaskCommand::CreateWorkspace { workspace: hidden });
    for (submission, place) in [(with_nul, "title of tasks"), (in_a_name, "a workspace")] {
        match submit(&store, &submission) {
            Err(StoreError::Name(NameError::Nul { what, .. })) => assert_eq!(what, place),
            other => panic!("{place} with NUL: {other:?}"),
        }
        let after = pollster::block_on(dump(&store)).unwrap_or_else(|e| panic!("{e}"));
        same(&before, &after).unwrap_or_else(|what| panic!("{what}"));
    }
    let mut composer = ann();
    assert!(matches!(composer.text::<HandleId>("a\0b"), Err(NameError::Nul { .. })));
    let after = submit(&store, &say(|c| task(c, "w", "t")));
    assert!(after.unwrap_or_else(|e| panic!("{e}")).accepted().is_ok(), "and it goes on");
}
