//! Statements out of the kernel's declaration of its tables, and values on their way. Nothing
//! here names a table or a column.

use std::fmt::Write as _;
use std::sync::OnceLock;

use freehold_kernel::{IdentityKind, TableId};
use freehold_store::StoreError;
use freehold_store::run::{LoadedRow, Query, RowChange, Stored};
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};

/// The most values that one statement compares with; more are asked for in several statements.
pub(crate) const VALUES_MAX: usize = 64;

/// A value as SQLite takes it.
pub(crate) struct Bound<'a>(pub(crate) &'a Stored);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Stored::Null => ValueRef::Null,
            Stored::Int(n) => ValueRef::Integer(*n),
            Stored::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

/// The statements of one table, up to their conditions.
struct Texts {
    /// Facts and version, with the texts of the requests: what a decision needs.
    facts: String,
    /// Facts, version and texts: what a reader gets.
    all: String,
}

/// The statements of all tables, in the order of their declaration.
fn texts(table: TableId) -> Option<&'static Texts> {
    static TEXTS: OnceLock<Vec<Texts>> = OnceLock::new();
    let all = TEXTS.get_or_init(|| {
        TableId::ALL
            .iter()
            .map(|table| {
                let facts = table.columns().iter().map(|c| c.name).chain(["version"]);
                let content = table.content().iter().copied();
                let from = |columns: Vec<&str>| {
                    let columns: Vec<String> =
                        columns.iter().map(|name| format!("\"{name}\"")).collect();
                    format!("SELECT {} FROM \"{}\"", columns.join(", "), table.name())
                };
                let all = from(facts.clone().chain(content).collect());
                // The outcome of a request is part of its replay (D-19).
                let facts = match table {
                    TableId::Requests => all.clone(),
                    _other => from(facts.collect()),
                };
                Texts { facts, all }
            })
            .collect()
    });
    all.get(table as usize)
}

/// Which rows a statement selects.
pub(crate) struct Where<'a> {
    /// Where this column has one of `count` values.
    pub(crate) by: &'static str,
    /// How many values; a power of two.
    pub(crate) count: usize,
    /// And this is their kind.
    pub(crate) identity: Option<IdentityKind>,
    /// And this column has none of these codes.
    pub(crate) except: Option<(&'static str, &'a [&'static str])>,
}

/// Selects what a decision needs.
pub(crate) fn load(query: &Query, count: usize) -> Result<String, StoreError> {
    let mut sql = texts(query.table).map(|t| t.facts.clone()).unwrap_or_default();
    let wanted = Where { by: query.by, count, identity: query.identity, except: query.except };
    condition(query.table, &wanted, &mut sql)?;
    Ok(sql)
}

/// Selects what a reader gets.
pub(crate) fn read(
    table: TableId,
    by: Option<(&'static str, usize)>,
) -> Result<String, StoreError> {
    let mut sql = texts(table).map(|t| t.all.clone()).unwrap_or_default();
    if let Some((by, count)) = by {
        let wanted = Where { by, count, identity: None, except: None };
        condition(table, &wanted, &mut sql)?;
    }
    Ok(sql)
}

/// Selects the rows of a table whose column is NULL, as a reader gets them.
pub(crate) fn read_null(table: TableId, by: &'static str) -> Result<String, StoreError> {
    let mut sql = texts(table).map(|t| t.all.clone()).unwrap_or_default();
    known(table, by)?;
    let _ = write!(sql, " WHERE \"{by}\" IS NULL");
    Ok(sql)
}

/// Whether a column may be NULL. SQLite takes an unknown name in quotes for a text, so names
/// are looked at here.
fn known(table: TableId, name: &str) -> Result<bool, StoreError> {
    let column = table.columns().iter().find(|c| c.name == name);
    column.map(|c| c.nullable).ok_or_else(|| StoreError::Defect {
        detail: format!("table {} has no column {name}", table.name()),
    })
}

/// The condition, in the words of the partial indexes.
fn condition(table: TableId, wanted: &Where<'_>, sql: &mut String) -> Result<(), StoreError> {
    known(table, wanted.by)?;
    let _ = match wanted.count {
        1 => write!(sql, " WHERE \"{}\" = ?", wanted.by),
        n => write!(sql, " WHERE \"{}\" IN ({})", wanted.by, marks(n)),
    };
    if let Some(kind) = wanted.identity {
        let _ = write!(sql, " AND kind = '{}'", kind.code());
    }
    if let Some((name, codes)) = wanted.except {
        let codes: Vec<String> = codes.iter().map(|code| format!("'{code}'")).collect();
        let codes = codes.join(", ");
        // NULL is not one of the codes.
        let _ = match known(table, name)? {
            false => write!(sql, " AND \"{name}\" NOT IN ({codes})"),
            true => write!(sql, " AND (\"{name}\" IS NULL OR \"{name}\" NOT IN ({codes}))"),
        };
    }
    Ok(())
}

fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

/// How many values a statement takes that compares with these: the next power of two, so that
/// few statements are prepared; the last value is repeated.
pub(crate) fn padded(values: &[Stored]) -> impl Iterator<Item = Bound<'_>> + Clone {
    let missing = values.len().next_power_of_two() - values.len();
    let last = values.last().into_iter();
    values.iter().chain(last.cycle().take(missing)).map(Bound)
}

/// Writes one row. The condition holds its version; the values are bound in the order of
/// [`write_values`].
pub(crate) fn write(change: &RowChange) -> String {
    use freehold_kernel::Change;
    let name = change.table.name();
    let mut sql = String::with_capacity(128);
    let _ = match change.change {
        Change::Inserted => {
            let columns: String =
                change.columns.iter().map(|(column, _)| format!("\"{column}\", ")).collect();
            let marks = marks(change.columns.len() + 1);
            write!(sql, "INSERT INTO \"{name}\" ({columns}version) VALUES ({marks})")
        }
        Change::Updated | Change::Touched => {
            let columns: String =
                change.columns.iter().map(|(column, _)| format!("\"{column}\" = ?, ")).collect();
            write!(sql, "UPDATE \"{name}\" SET {columns}version = ?")
        }
        Change::Deleted => write!(sql, "DELETE FROM \"{name}\""),
    };
    if change.change != Change::Inserted {
        let mut word = " WHERE ";
        for (column, _) in &change.key {
            let _ = write!(sql, "{word}\"{column}\" = ?");
            word = " AND ";
        }
        let _ = write!(sql, " AND version = ?");
    }
    sql
}

/// The values of [`write`], in order; versions are those of SQLite's integers.
pub(crate) fn write_values(change: &RowChange) -> Vec<Stored> {
    use freehold_kernel::Change;
    let version = i64::try_from(change.version).unwrap_or(i64::MAX);
    let columns = change.columns.iter().map(|(_, value)| value.clone());
    let key = change.key.iter().map(|(_, value)| value.clone());
    match change.change {
        Change::Inserted => columns.chain([Stored::Int(version + 1)]).collect(),
        Change::Updated | Change::Touched => columns
            .chain([Stored::Int(version.saturating_add(1))])
            .chain(key)
            .chain([Stored::Int(version)])
            .collect(),
        Change::Deleted => key.chain([Stored::Int(version)]).collect(),
    }
}

/// One row of a statement that was made by [`load`] or [`read`].
pub(crate) fn row(
    table: TableId,
    row: &rusqlite::Row<'_>,
    with_content: bool,
) -> rusqlite::Result<LoadedRow> {
    let facts = table.columns().len();
    let content = if with_content { table.content().len() } else { 0 };
    let value = |index: usize| -> rusqlite::Result<Stored> {
        Ok(match row.get_ref(index)? {
            ValueRef::Null => Stored::Null,
            ValueRef::Integer(n) => Stored::Int(n),
            ValueRef::Text(text) => Stored::Text(String::from_utf8_lossy(text).into_owned()),
            // Tables are strict, so these never stand in one; a text that no code has.
            ValueRef::Real(_) | ValueRef::Blob(_) => Stored::Text("\u{fffd}".to_owned()),
        })
    };
    Ok(LoadedRow {
        facts: (0..facts).map(value).collect::<Result<_, _>>()?,
        content: (facts + 1..facts + 1 + content).map(value).collect::<Result<_, _>>()?,
        version: u64::try_from(row.get::<_, i64>(facts)?).unwrap_or_default(),
    })
}
