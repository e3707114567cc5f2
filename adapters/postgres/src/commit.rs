//! The second statement of a command: what it locks, what it looks at, what it writes.

use std::collections::BTreeMap;

use freehold_kernel::{Change, TableId};
use freehold_store::StoreError;
use freehold_store::run::{Changes, JournalLine, RowChange, Stored};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::footprint::{Loaded, UNANCHORED};
use crate::options::{Options, milliseconds};
use crate::sql;

/// Values of columns without an anchor share this many locks, so that a command about thousands
/// of paths does not fill the server's lock table. Two values on one lock wait for each other for
/// no need, and that is all.
const VALUE_LOCKS: u64 = 512;

/// The locks of a decision, to be taken first when it came too late.
#[derive(Clone, Debug)]
pub(crate) struct Locks {
    guards: Value,
    rows: Map<String, Value>,
}

/// The argument of the commit function for a decision, and its locks alone. In the host's own
/// transaction the host says how long locks are waited for.
///
/// # Errors
/// If a set names a column that is not there: a defect.
pub(crate) fn argument(
    options: &Options,
    loaded: &Loaded,
    changes: &Changes,
    own: bool,
) -> Result<(Value, Locks), StoreError> {
    let locks = Locks { guards: guards(options, loaded, changes), rows: rows(loaded, changes) };
    let mut argument = lock_argument(options, &locks);
    if !own {
        argument.remove("wait");
    }
    let mut with_absent = locks.rows.clone();
    add_absent(&mut with_absent, loaded);
    argument.insert("rows".to_owned(), Value::Object(with_absent));
    argument.insert("sets".to_owned(), sets(options, loaded)?);
    write(&mut argument, changes);
    if !changes.journal.is_empty() {
        argument.insert("journal".to_owned(), changes.journal.iter().map(line).collect());
        // The host's commit wakes by itself; after our own somebody is told who waits for nobody.
        if options.notify && !own {
            argument.insert("notify".to_owned(), json!(channel(options)));
        }
    }
    Ok((Value::Object(argument), locks))
}

/// The argument that takes locks and does nothing else.
pub(crate) fn only_locks(options: &Options, locks: &Locks) -> Value {
    let mut argument = lock_argument(options, locks);
    argument.insert("only".to_owned(), json!(true));
    Value::Object(argument)
}

fn lock_argument(options: &Options, locks: &Locks) -> Map<String, Value> {
    let mut argument = Map::new();
    argument.insert("wait".to_owned(), json!(milliseconds(options.lock_wait).to_string()));
    argument.insert("guards".to_owned(), locks.guards.clone());
    argument.insert("rows".to_owned(), Value::Object(locks.rows.clone()));
    argument
}

/// The channel that commits notify: one per schema, of a length that a channel may have.
pub(crate) fn channel(options: &Options) -> String {
    let hash = Sha256::digest(options.schema.as_bytes());
    let mut name = String::from("freehold_");
    for byte in hash.iter().take(8) {
        name.push_str(&format!("{byte:02x}"));
    }
    name
}

fn value(stored: &Stored) -> Value {
    match stored {
        Stored::Null => Value::Null,
        Stored::Int(number) => json!(number),
        Stored::Text(text) => json!(text),
    }
}

/// A value as the text that the function compares with.
fn text(stored: &Stored) -> Value {
    match stored {
        Stored::Null => Value::Null,
        Stored::Int(number) => json!(number.to_string()),
        Stored::Text(text) => json!(text),
    }
}

/// Every loaded row by key and version, each table with the strength that its strongest change
/// needs: locks are never taken twice, so they never grow out of order.
fn rows(loaded: &Loaded, changes: &Changes) -> Map<String, Value> {
    let mut strengths: BTreeMap<TableId, &str> = BTreeMap::new();
    for row in &changes.rows {
        let strength = match row.change {
            Change::Deleted => "update",
            Change::Updated | Change::Touched => "change",
            Change::Inserted => continue,
        };
        let there = strengths.entry(row.table).or_insert(strength);
        if strength == "update" {
            *there = strength;
        }
    }
    let mut rows = Map::new();
    for (table, of) in loaded.rows() {
        // Everybody reads the settings and nobody decides to change them on what else a command
        // writes: a change of them may as well come after. Their version is compared, but a lock
        // on the one row would have all commands of all instances write to it.
        let unlocked = *table == TableId::Settings && !strengths.contains_key(table);
        let strength =
            if unlocked { "none" } else { strengths.get(table).copied().unwrap_or("read") };
        let mut entry = Map::new();
        entry.insert("x".to_owned(), json!(strength));
        let column = |at: usize| of.keys().map(move |key| key.get(at).map_or(Value::Null, text));
        entry.insert("k".to_owned(), column(0).collect());
        if sql::keys(*table).len() == 2 {
            entry.insert("p".to_owned(), column(1).collect());
        }
        entry.insert("v".to_owned(), of.values().map(|row| json!(row.version)).collect());
        rows.insert(table.name().to_owned(), Value::Object(entry));
    }
    rows
}

/// Keys that were looked up and not found.
fn add_absent(rows: &mut Map<String, Value>, loaded: &Loaded) {
    for asked in &loaded.asked {
        if asked.absent.is_empty() {
            continue;
        }
        let table = asked.query.table;
        let entry = rows
            .entry(table.name().to_owned())
            .or_insert_with(|| json!({"x": "none", "k": [], "v": [], "p": []}));
        let absent = asked.absent.iter().map(|id| match asked.query.identity {
            Some(kind) => json!([text(id), kind.code()]),
            None => text(id),
        });
        if let Some(list) = entry
            .as_object_mut()
            .map(|entry| entry.entry("a".to_owned()).or_insert_with(|| json!([])))
            .and_then(Value::as_array_mut)
        {
            list.extend(absent);
        }
    }
}

/// Locks on values: of keys that are absent and of columns without an anchor. Shared for those
/// who looked, exclusive for those who write such a value.
fn guards(options: &Options, loaded: &Loaded, changes: &Changes) -> Value {
    let mut guards: BTreeMap<i64, bool> = BTreeMap::new();
    let mut add = |number: i64, exclusive: bool| *guards.entry(number).or_default() |= exclusive;
    for asked in &loaded.asked {
        let (table, by) = (asked.query.table, asked.query.by);
        if by == "id" {
            for id in &asked.absent {
                add(guard(options, table, by, id, u64::MAX), false);
            }
        } else {
            for value in &asked.query.values {
                add(guard(options, table, by, value, VALUE_LOCKS), false);
            }
        }
    }
    for change in &changes.rows {
        let table = change.table;
        if change.change == Change::Inserted
            && host_named(table)
            && let Some((_, id)) = change.key.first()
        {
            add(guard(options, table, "id", id, u64::MAX), true);
        }
        if matches!(change.change, Change::Inserted | Change::Updated) {
            for (_, column) in UNANCHORED.iter().filter(|(of, _)| *of == table) {
                let value = now_in(loaded, change, column);
                if let Some(value) = value.filter(|v| *v != Stored::Null) {
                    add(guard(options, table, column, &value, VALUE_LOCKS), true);
                }
            }
        }
    }
    guards.into_iter().map(|(number, exclusive)| json!([number, exclusive])).collect()
}

/// Whether the ids of a table are the host's. Nobody looks for the absence of an id that Freehold
/// makes fresh, or derives under the lock of the row that it hangs on.
fn host_named(table: TableId) -> bool {
    match table {
        TableId::Attempts
        | TableId::Removals
        | TableId::Trash
        | TableId::Salvage
        | TableId::Jobs
        | TableId::JobRoots
        | TableId::Resources => false,
        TableId::Workspaces
        | TableId::Tasks
        | TableId::Sessions
        | TableId::Environments
        | TableId::Repos
        | TableId::Identities
        | TableId::Requests
        | TableId::Turns
        | TableId::Inputs
        | TableId::Runtimes
        | TableId::Instances
        | TableId::ManagedRoots
        | TableId::Settings => true,
    }
}

/// What a column of a changed row holds after the change.
fn now_in(loaded: &Loaded, change: &RowChange, column: &str) -> Option<Stored> {
    if let Some((_, value)) = change.columns.iter().find(|(name, _)| *name == column) {
        return Some(value.clone());
    }
    let key: Vec<Stored> = change.key.iter().map(|(_, value)| value.clone()).collect();
    let at = change.table.columns().iter().position(|c| c.name == column)?;
    loaded.row(change.table, &key)?.facts.get(at).cloned()
}

/// The number of an advisory lock. Two things with one number wait for each other for no need.
fn guard(options: &Options, table: TableId, column: &str, value: &Stored, among: u64) -> i64 {
    let mut hash = Sha256::new();
    hash.update(options.schema.as_bytes());
    for part in [table.name(), column] {
        hash.update([0]);
        hash.update(part.as_bytes());
    }
    let number = |hash: &Sha256| {
        let bytes = hash.clone().finalize();
        bytes.iter().take(8).fold(0u64, |number, byte| (number << 8) | u64::from(*byte))
    };
    let column = number(&hash);
    hash.update([0]);
    match value {
        Stored::Null => {}
        Stored::Int(number) => hash.update(number.to_string().as_bytes()),
        Stored::Text(text) => hash.update(text.as_bytes()),
    }
    let number = match among {
        u64::MAX => number(&hash),
        among => column.wrapping_add(number(&hash) % among),
    };
    number.cast_signed()
}

fn sets(options: &Options, loaded: &Loaded) -> Result<Value, StoreError> {
    let of = loaded.asked.iter().filter(|asked| asked.query.by != "id");
    of.map(|asked| {
        let query = &asked.query;
        let table = sql::table(&options.schema, query.table);
        let by = sql::quoted(query.by);
        let rest = sql::and(query.table, "t.", query.identity, query.except)?;
        let values: Value = query.values.iter().map(text).collect();
        Ok(json!({
            "q": format!("SELECT count(*) FROM {table} t WHERE t.{by} = ANY ($1){rest}"),
            "v": values,
            "n": asked.found,
        }))
    })
    .collect()
}

fn write(argument: &mut Map<String, Value>, changes: &Changes) {
    let mut by_kind: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for change in &changes.rows {
        let (kind, columns): (_, &[_]) = match change.change {
            Change::Deleted => ("delete", &[]),
            Change::Updated | Change::Touched => ("update", &change.columns),
            Change::Inserted => ("insert", &change.columns),
        };
        let mut row = Map::new();
        for (name, stored) in change.key.iter().chain(columns) {
            row.insert((*name).to_owned(), value(stored));
        }
        if kind != "delete" {
            row.insert("version".to_owned(), json!(change.version.saturating_add(1)));
        }
        let table = by_kind.entry(kind).or_default();
        let rows = table.entry(change.table.name().to_owned()).or_insert_with(|| json!([]));
        if let Some(rows) = rows.as_array_mut() {
            rows.push(Value::Object(row));
        }
    }
    for (kind, tables) in by_kind {
        argument.insert(kind.to_owned(), Value::Object(tables));
    }
}

fn line(line: &JournalLine) -> Value {
    json!({
        "at": line.at.0,
        "actor": line.actor,
        "command": line.command,
        "cause": line.cause,
        "subject_table": line.table,
        "subject": line.subject,
        "event": line.event,
        "detail": line.detail,
    })
}
