//! What is on disk is what the kernel declares (D-17).

use std::collections::BTreeMap;

use freehold_kernel::{Shape, TableId};
use rusqlite::Connection;

use crate::host::Place;

#[derive(Debug, PartialEq, Eq)]
struct OnDisk {
    kind: String,
    nullable: bool,
}

fn columns(connection: &Connection, table: &str) -> BTreeMap<String, OnDisk> {
    let mut statement =
        connection.prepare("SELECT name, type, \"notnull\" FROM pragma_table_info(?)").unwrap();
    statement
        .query_map([table], |row| {
            let kind = row.get(1)?;
            Ok((row.get(0)?, OnDisk { kind, nullable: !row.get::<_, bool>(2)? }))
        })
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

#[test]
fn tables_on_disk_are_the_declared_ones() {
    let place = Place::new();
    let _store = place.open();
    let connection = place.beside();
    for table in TableId::ALL {
        let mut declared = BTreeMap::new();
        for column in table.columns() {
            let kind = match column.shape {
                Shape::Int => "INTEGER",
                Shape::Id(_) | Shape::Code(_) => "TEXT",
            };
            let on_disk = OnDisk { kind: kind.to_owned(), nullable: column.nullable };
            declared.insert(column.name.to_owned(), on_disk);
        }
        for name in table.content() {
            declared.insert((*name).to_owned(), OnDisk { kind: "TEXT".to_owned(), nullable: true });
        }
        declared
            .insert("version".to_owned(), OnDisk { kind: "INTEGER".to_owned(), nullable: false });
        assert_eq!(columns(&connection, table.name()), declared, "{}", table.name());
    }
    let mut tables: Vec<String> = connection
        .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let mut expected: Vec<String> = TableId::ALL.iter().map(|t| t.name().to_owned()).collect();
    expected.extend(["freehold_schema", "journal", "store"].map(str::to_owned));
    tables.sort();
    expected.sort();
    assert_eq!(tables, expected);
}

#[test]
fn codes_are_checked_but_for_triggers() {
    let text = include_str!("../../src/schema/0001.sql");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(text).replace("( ", "(").replace(" )", ")");
    for table in TableId::ALL {
        let start = text.find(&format!("CREATE TABLE {} (", table.name())).unwrap();
        let body = &text[start..];
        let body = &body[..body.find(") STRICT").unwrap()];
        for column in table.columns() {
            let Shape::Code(codes) = column.shape else { continue };
            let list: Vec<String> = codes.iter().map(|code| format!("'{code}'")).collect();
            let check = format!("CHECK ({} IN ({}))", column.name, list.join(", "));
            // C-10: a trigger that this build does not know must be storable.
            let free = (*table, column.name) == (TableId::Jobs, "trigger");
            assert_eq!(body.contains(&check), !free, "{}.{}", table.name(), column.name);
        }
    }
}

#[test]
fn checks_hold_on_disk() {
    let place = Place::new();
    let _store = place.open();
    let connection = place.beside();
    let insert = |state: &str| {
        connection.execute(
            "INSERT INTO workspaces (id, state, created_at, updated_at, version) \
             VALUES ('w', ?, 0, 0, 1)",
            [state],
        )
    };
    assert!(insert("nonsense").is_err());
    assert!(insert("active").is_ok());
    // Strict: a number is no text, a text no number.
    assert!(connection.execute("UPDATE workspaces SET created_at = 'noon'", []).is_err());
    assert!(connection.execute("UPDATE workspaces SET version = NULL", []).is_err());
}

/// Table, column, and the column with the codes that are left out.
type LookUp = (TableId, String, Option<(String, String)>);

/// The look-ups in the kernel's source. Its enum cannot be listed.
fn lookups() -> Vec<LookUp> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel/src/footprint.rs");
    let source = std::fs::read_to_string(source).unwrap();
    let body = &source[source.find("\n    many {\n").unwrap()..];
    let code: String = body.lines().filter(|l| !l.trim_start().starts_with("///")).collect();
    let mut found = Vec::new();
    for entry in code.split(';') {
        let Some((_, plan)) = entry.split_once(" = ") else { continue };
        let Some((target, rest)) = plan.split_once(" from ") else { continue };
        let (table, column) = target.trim().split_once('.').unwrap();
        let table = *TableId::ALL.iter().find(|t| format!("{t:?}") == table).unwrap();
        let except = rest.split_once("except ").map(|(_, rest)| {
            let (column, codes) = rest.split_once(' ').unwrap();
            let codes = &codes[codes.find('[').unwrap() + 1..codes.find(']').unwrap()];
            (column.to_owned(), codes.replace('"', "'"))
        });
        found.push((table, column.to_owned(), except));
    }
    let more = [
        (TableId::Jobs, "operation_id", None),
        (TableId::Tasks, "archived_by", None),
        (TableId::Tasks, "parent_id", None),
        (TableId::Attempts, "path", None),
        (TableId::ManagedRoots, "path", None),
        (TableId::Repos, "worktree_path", Some(("status", "'deleted'"))),
    ];
    found.extend(more.map(|(table, column, except)| {
        (table, column.to_owned(), except.map(|(c, l): (&str, &str)| (c.to_owned(), l.to_owned())))
    }));
    found
}

#[test]
fn every_look_up_uses_an_index() {
    let place = Place::new();
    let _store = place.open();
    let connection = place.beside();
    let lookups = lookups();
    assert!(lookups.len() > 60, "only {} look-ups were found", lookups.len());
    for (table, by, except) in lookups {
        for condition in [format!("\"{by}\" = ?"), format!("\"{by}\" IN (?, ?, ?, ?)")] {
            let except = except.as_ref().map_or(String::new(), |(column, codes)| {
                let nullable = table.columns().iter().any(|c| c.name == column && c.nullable);
                match nullable {
                    false => format!(" AND \"{column}\" NOT IN ({codes})"),
                    true => format!(" AND (\"{column}\" IS NULL OR \"{column}\" NOT IN ({codes}))"),
                }
            });
            let sql = format!(
                "EXPLAIN QUERY PLAN SELECT * FROM \"{}\" WHERE {condition}{except}",
                table.name()
            );
            let plan: Vec<String> = connection
                .prepare(&sql)
                .unwrap()
                .query_map(rusqlite::params_from_iter(vec!["x"; sql.matches('?').count()]), |r| {
                    r.get(3)
                })
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
            assert!(plan.iter().all(|step| step.starts_with("SEARCH")), "{sql}: {plan:?}");
        }
    }
}

#[test]
fn what_may_be_only_once_is_only_once() {
    let place = Place::new();
    let _store = place.open();
    let connection = place.beside();
    let repo = |id: &str, slug: &str, worktree: &str, path: &str, state: (&str, &str)| {
        connection.execute(
            "INSERT INTO task_environment_repos (id, task_environment_id, repository_id, \
             branch_slug, worktree_id, worktree_path, status, materialised, managed, root_id, \
             branch_created, position, created_at, updated_at, version) \
             VALUES (?, 'e', 'r', ?, ?, ?, ?, ?, 1, 'root', 0, 0, 0, 0, 1)",
            [id, slug, worktree, path, state.0, state.1],
        )
    };
    connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    let here = ("active", "yes");
    assert!(repo("1", "a", "i1", "p1", here).is_ok());
    assert!(repo("2", "a", "i2", "p2", here).is_err(), "slot");
    assert!(repo("2", "b", "i1", "p2", here).is_err(), "identity");
    assert!(repo("2", "b", "i2", "p1", here).is_err(), "path");
    assert!(repo("2", "b", "i2", "p1", ("active", "no")).is_ok(), "not on disk");
    assert!(repo("3", "a", "i1", "p1", ("deleted", "no")).is_ok(), "history");

    let attempt = |id: &str, state: &str| {
        connection.execute(
            "INSERT INTO worktree_attempts (id, token, task_id, task_environment_id, repo_id, \
             kind, repository_id, branch_slug, root_id, path, branch, worktree_id, \
             branch_existed, start_commit, state, instance_id, lease_until, created_at, \
             updated_at, version) VALUES (?, 't', 't', 'e', 'x', 'create', 'r', 'a', 'root', \
             'p', 'b', 'i', 0, 'c', ?, 'i', 0, 0, 0, 1)",
            [id, state],
        )
    };
    assert!(attempt("1", "owned").is_ok());
    assert!(attempt("2", "compensating").is_ok());
    assert!(attempt("3", "intended").is_err(), "one unresolved attempt per slot");

    let job = |id: &str, operation: &str, state: &str, mutated: Option<i64>| {
        connection.execute(
            "INSERT INTO task_resource_cleanup_jobs (id, operation_id, task_id, content_hash, \
             \"trigger\", authority, policy, branch_policy, consent, state, snapshot_version, \
             mutated_at, created_at, updated_at, version) VALUES (?, ?, 't', 'h', \
             'a trigger of tomorrow', 'a', 'salvage', 'keep', 0, ?, 0, ?, 0, 0, 1)",
            rusqlite::params![id, operation, state, mutated],
        )
    };
    assert!(job("1", "o1", "cancelled", None).is_ok());
    assert!(job("2", "o1", "cancelled", Some(1)).is_ok(), "cancelled before does not count");
    assert!(job("3", "o1", "prepared", None).is_err(), "cancelled after does");
    assert!(job("4", "o2", "prepared", None).is_ok());
    assert!(job("5", "o3", "prepared", None).is_err(), "one barrier per task");
}
