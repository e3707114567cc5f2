//! Statements out of the kernel's declaration of its tables, and rows on their way. Nothing here
//! names a table or a column.

use std::fmt::Write as _;

use freehold_kernel::{IdentityKind, Shape, TableId};
use freehold_store::StoreError;
use freehold_store::run::{LoadedRow, Stored};

/// A name in quotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A table with its schema.
pub(crate) fn table(schema: &str, table: TableId) -> String {
    format!("{}.{}", quoted(schema), quoted(table.name()))
}

/// The key columns of a table: one, for the identities two.
pub(crate) fn keys(table: TableId) -> &'static [&'static str] {
    match table {
        TableId::Identities => &["id", "kind"],
        _other => &["id"],
    }
}

/// What a decision needs of a row: facts and version, and of a request its outcome, which is part
/// of its replay (D-19).
pub(crate) fn facts(table: TableId) -> Vec<&'static str> {
    let mut columns: Vec<&str> = table.columns().iter().map(|c| c.name).collect();
    columns.push("version");
    if table == TableId::Requests {
        columns.extend(table.content());
    }
    columns
}

/// Everything in a row: facts, version, texts.
pub(crate) fn all(table: TableId) -> Vec<&'static str> {
    let mut columns: Vec<&str> = table.columns().iter().map(|c| c.name).collect();
    columns.push("version");
    columns.extend(table.content());
    columns
}

/// Columns with an alias before each, with commas between.
pub(crate) fn listed(alias: &str, columns: &[&str]) -> String {
    let columns: Vec<String> =
        columns.iter().map(|name| format!("{alias}{}", quoted(name))).collect();
    columns.join(", ")
}

/// A row as an array of texts, so that rows of all tables come in one answer.
pub(crate) fn as_texts(alias: &str, columns: &[&str]) -> String {
    let columns: Vec<String> =
        columns.iter().map(|name| format!("{alias}{}::text", quoted(name))).collect();
    format!("ARRAY[{}]", columns.join(", "))
}

/// Whether a column is a number; else it is a text.
pub(crate) fn is_number(table: TableId, name: &str) -> Result<bool, StoreError> {
    if name == "version" {
        return Ok(true);
    }
    match table.columns().iter().find(|c| c.name == name).map(|c| c.shape) {
        Some(Shape::Int) => Ok(true),
        Some(Shape::Id(_) | Shape::Code(_)) => Ok(false),
        None => Err(StoreError::Defect {
            detail: format!("table {} has no column {name}", table.name()),
        }),
    }
}

/// The rest of a condition, each part after an AND, in the words of the partial indexes.
pub(crate) fn and(
    table: TableId,
    alias: &str,
    identity: Option<IdentityKind>,
    except: Option<(&'static str, &'static [&'static str])>,
) -> Result<String, StoreError> {
    let mut sql = String::new();
    if let Some(kind) = identity {
        let _ = write!(sql, " AND {alias}kind = '{}'", kind.code());
    }
    if let Some((name, codes)) = except {
        let column = table.columns().iter().find(|c| c.name == name);
        let nullable = column.is_some_and(|c| c.nullable);
        is_number(table, name)?;
        let name = format!("{alias}{}", quoted(name));
        let codes: Vec<String> = codes.iter().map(|code| format!("'{code}'")).collect();
        let codes = codes.join(", ");
        // NULL is not one of the codes.
        let _ = match nullable {
            false => write!(sql, " AND {name} NOT IN ({codes})"),
            true => write!(sql, " AND ({name} IS NULL OR {name} NOT IN ({codes}))"),
        };
    }
    Ok(sql)
}

/// A row that came as [`as_texts`] of [`facts`] or [`all`].
///
/// # Errors
/// If a number is none: the table is not the one of this build.
pub(crate) fn row(table: TableId, texts: Vec<Option<String>>) -> Result<LoadedRow, StoreError> {
    let columns = table.columns();
    let unfit = |name: &'static str, text: &str| StoreError::Unreadable {
        table: table.name(),
        column: name,
        value: text.to_owned(),
    };
    let mut texts = texts.into_iter();
    let mut facts = Vec::with_capacity(columns.len());
    for column in columns {
        facts.push(match (texts.next().flatten(), column.shape) {
            (None, _) => Stored::Null,
            (Some(text), Shape::Int) => match text.parse() {
                Ok(number) => Stored::Int(number),
                Err(_) => return Err(unfit(column.name, &text)),
            },
            (Some(text), Shape::Id(_) | Shape::Code(_)) => Stored::Text(text),
        });
    }
    let version = texts.next().flatten().unwrap_or_default();
    let version = version.parse().map_err(|_| unfit("version", &version))?;
    let content = texts.map(|text| text.map_or(Stored::Null, Stored::Text)).collect();
    Ok(LoadedRow { facts, content, version })
}
