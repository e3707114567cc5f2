//! What is on disk is what the kernel declares (D-17).

use std::collections::BTreeMap;

use freehold_kernel::{Shape, TableId};

use crate::host::Place;

#[test]
fn tables_on_disk_are_the_declared_ones() {
    let place = Place::new();
    let _store = place.open();
    let beside = place.beside();
    for table in TableId::ALL {
        let mut declared: BTreeMap<String, String> = BTreeMap::new();
        for column in table.columns() {
            let kind = match column.shape {
                Shape::Int => "bigint",
                Shape::Id(_) | Shape::Code(_) => "text C",
            };
            let null = if column.nullable { "NULL" } else { "NOT NULL" };
            declared.insert(column.name.to_owned(), format!("{kind} {null}"));
        }
        for name in table.content() {
            declared.insert((*name).to_owned(), "text C NULL".to_owned());
        }
        declared.insert("version".to_owned(), "bigint NOT NULL".to_owned());
        let found = beside.texts(&format!(
            "SELECT a.attname || ':' || format_type(a.atttypid, NULL) \
             || coalesce(' ' || c.collname, '') \
             || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE ' NULL' END \
             FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation \
             WHERE a.attrelid = '{}'::regclass AND a.attnum > 0",
            table.name()
        ));
        let found: BTreeMap<String, String> = found
            .iter()
            .map(|line| line.split_once(':').unwrap())
            .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
            .collect();
        assert_eq!(found, declared, "{}", table.name());
    }
    let tables = beside.texts(&format!(
        "SELECT table_name::text FROM information_schema.tables WHERE table_schema = '{}' \
         ORDER BY table_name::text COLLATE \"C\"",
        place.schema
    ));
    let mut expected: Vec<String> = TableId::ALL.iter().map(|t| t.name().to_owned()).collect();
    expected.extend(["freehold_schema", "journal", "picks", "store"].map(str::to_owned));
    expected.sort();
    assert_eq!(tables, expected);
}

#[test]
fn codes_are_checked_but_for_triggers() {
    let text = include_str!("../../src/schema/0001.sql");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.replace("( ", "(").replace(" )", ")");
    for table in TableId::ALL {
        let start = text.find(&format!("CREATE TABLE {} (", table.name())).unwrap();
        let body = &text[start..];
        let body = &body[..body.find(");").unwrap()];
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

/// The rules on rows are those of the other store: the same text but for its dialect.
#[test]
fn constraints_and_indexes_are_those_of_the_sqlite_store() {
    let words = |text: &str| {
        let text: String =
            text.lines().map(|l| l.split("--").next().unwrap()).collect::<Vec<_>>().join(" ");
        let text = text.replace("text COLLATE \"C\"", "TEXT").replace("bigint", "INTEGER");
        text.replace("STRICT, WITHOUT ROWID", "")
            .replace("STRICT", "")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .replace(") ;", ");")
    };
    let ours = words(include_str!("../../src/schema/0001.sql"));
    let sqlite = concat!(env!("CARGO_MANIFEST_DIR"), "/../sqlite/src/schema/0001.sql");
    let theirs = words(&std::fs::read_to_string(sqlite).unwrap());
    for statement in theirs.split(';').map(str::trim).filter(|s| !s.is_empty()) {
        if statement.starts_with("CREATE TABLE journal") {
            continue;
        }
        assert!(ours.contains(statement), "{statement}");
    }
}

#[test]
fn checks_hold_on_disk() {
    let place = Place::new();
    let _store = place.open();
    let beside = place.beside();
    let insert = |state: &str| {
        beside.try_run(&format!(
            "INSERT INTO workspaces (id, state, created_at, updated_at, version) \
             VALUES ('w', '{state}', 0, 0, 1)"
        ))
    };
    assert!(insert("nonsense").is_err());
    assert!(insert("active").is_ok());
    assert!(beside.try_run("UPDATE workspaces SET created_at = 'noon'").is_err());
    assert!(beside.try_run("UPDATE workspaces SET version = NULL").is_err());
}

/// Table, column, and the column with the codes that are left out.
struct LookUp {
    table: TableId,
    by: String,
    except: Option<(String, String)>,
    /// None if no row is the anchor of what is found.
    anchor: Option<String>,
}

fn table(name: &str) -> TableId {
    *TableId::ALL.iter().find(|t| format!("{t:?}") == name).unwrap()
}

/// The look-ups in the kernel's source. Its enum cannot be listed.
fn lookups() -> Vec<LookUp> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel/src/footprint.rs");
    let source = std::fs::read_to_string(source).unwrap();
    let mut found = Vec::new();
    // Those of the macro's table.
    let body = &source[source.find("\n    many {\n").unwrap()..];
    let code: String = body.lines().filter(|l| !l.trim_start().starts_with("///")).collect();
    for entry in code.split(';') {
        let Some((_, plan)) = entry.split_once(" = ") else { continue };
        let Some((target, rest)) = plan.split_once(" from ") else { continue };
        let (name, column) = target.trim().split_once('.').unwrap();
        let except = rest.split_once("except ").map(|(_, rest)| {
            let (column, codes) = rest.split_once(' ').unwrap();
            let codes = &codes[codes.find('[').unwrap() + 1..codes.find(']').unwrap()];
            (column.to_owned(), codes.replace('"', "'"))
        });
        let anchor =
            rest.rsplit_once("TableId::").map(|(_, a)| a.trim_end_matches([')', ' ']).into());
        found.push(LookUp { table: table(name), by: column.to_owned(), except, anchor });
    }
    // Those that are written out. One that starts from a given value has no anchor among the
    // loaded rows, whatever it says.
    for plan in source.split("=> Plan {").skip(1).map(|p| &p[..p.find('}').unwrap()]) {
        let word = |key: &str| {
            let rest = &plan[plan.find(key)? + key.len()..];
            Some(rest.trim_start_matches(['"']).split([',', '"', ' ']).next().unwrap().to_owned())
        };
        let (Some(name), Some(by)) = (word("table: TableId::"), word("by: \"")) else { continue };
        if name.starts_with('$') || plan.contains("From::Identit") {
            continue;
        }
        let given = plan.contains("From::Id(") || plan.contains("From::Int(");
        let anchor = if given { None } else { word("anchor: Some(TableId::") };
        let except = plan.split_once("except: Some((").or(plan.split_once("except: Some((\n")).map(
            |(_, rest)| {
                let rest = rest.trim_start();
                let column = rest.split('"').nth(1).unwrap().to_owned();
                let codes = &rest[rest.find("&[").unwrap() + 2..rest.find(']').unwrap()];
                (column, codes.replace('"', "'"))
            },
        );
        found.push(LookUp { table: table(&name), by, except, anchor });
    }
    found
}

#[test]
fn every_look_up_without_an_anchor_is_guarded() {
    let declared: Vec<String> = {
        let source = include_str!("../../src/footprint.rs");
        let from = source.find("const UNANCHORED").unwrap();
        let body = &source[from..from + source[from..].find("];").unwrap()];
        let lines = body.lines().filter_map(|l| l.trim().strip_prefix("(TableId::"));
        lines.map(|l| l.replace(['"', ')'], "").trim_end_matches(',').to_owned()).collect()
    };
    let lookups = lookups();
    assert!(lookups.len() > 60, "only {} look-ups were found", lookups.len());
    let mut wanted: Vec<String> = lookups
        .iter()
        .filter(|l| l.by != "id" && l.anchor.is_none())
        .map(|l| format!("{:?}, {}", l.table, l.by))
        .collect();
    wanted.sort();
    wanted.dedup();
    let mut declared = declared;
    declared.sort();
    assert_eq!(declared, wanted);
}

#[test]
fn every_look_up_uses_an_index() {
    let place = Place::new();
    let _store = place.open();
    let beside = place.beside();
    // Few rows are read faster without; what counts is that there is an index that fits.
    beside.run("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan");
    for LookUp { table, by, except, .. } in lookups() {
        let except = except.map_or(String::new(), |(column, codes)| {
            match table.columns().iter().any(|c| c.name == column && c.nullable) {
                false => format!(" AND \"{column}\" NOT IN ({codes})"),
                true => format!(" AND (\"{column}\" IS NULL OR \"{column}\" NOT IN ({codes}))"),
            }
        });
        let sql = format!(
            "EXPLAIN SELECT * FROM \"{}\" WHERE \"{by}\" = ANY (ARRAY(SELECT id FROM store)){except}",
            table.name()
        );
        let sql = match table == TableId::Settings {
            true => sql.replace("SELECT id FROM store", "SELECT one FROM store"),
            false => sql,
        };
        let plan = beside.texts(&sql).join("\n");
        let scans = format!("Seq Scan on {}", table.name());
        assert!(!plan.contains(&scans), "{sql}: {plan}");
    }
}
