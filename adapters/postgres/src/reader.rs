//! Reading rows: all reads of one call in one statement, so as of one moment, without locks.

use std::fmt::Write as _;

use freehold_kernel::{Key, RowKey, Shape, TableId};
use freehold_store::names::Names;
use freehold_store::run::{LoadedRow, Stored, load_row};
use freehold_store::{Clock, Read, Rows, StoreError};
use tokio_postgres::types::Type;

use crate::footprint::{CLOCK, time};
use crate::pool::{Connections, Parameter};
use crate::sql;

/// Reads as of one moment.
pub(crate) async fn read(connections: &Connections, reads: &[Read]) -> Result<Rows, StoreError> {
    let options = connections.options();
    let mut text = format!("SELECT -1, ARRAY[{CLOCK}]");
    let mut values: Vec<Vec<String>> = Vec::new();
    for read in reads {
        let columns = sql::as_texts("t.", &sql::all(read.table));
        let table = sql::table(&options.schema, read.table);
        let number = read.table as usize;
        let _ = write!(text, " UNION ALL SELECT {number}, {columns} FROM {table} t");
        let Some((by, wanted)) = &read.by else { continue };
        let cast = if sql::is_number(read.table, by)? { "::bigint[]" } else { "" };
        let by = sql::quoted(by);
        let null = if wanted.contains(&Stored::Null) {
            format!(" OR t.{by} IS NULL")
        } else {
            String::new()
        };
        values.push(
            wanted
                .iter()
                .filter_map(|value| match value {
                    Stored::Null => None,
                    Stored::Int(number) => Some(number.to_string()),
                    Stored::Text(text) => Some(text.clone()),
                })
                .collect(),
        );
        let _ = write!(text, " WHERE t.{by} = ANY (${}::text[]{cast}){null}", values.len());
    }
    let parameters: Vec<Parameter<'_>> =
        values.iter().map(|values| (values as _, Type::TEXT_ARRAY)).collect();
    let answer = connections.read(connections.deadline(), &text, &parameters).await?;
    let mut rows = Rows::default();
    for row in &answer {
        let unfit = |e: tokio_postgres::Error| StoreError::Defect { detail: e.to_string() };
        let number: i32 = row.try_get(0).map_err(unfit)?;
        let texts: Vec<Option<String>> = row.try_get(1).map_err(unfit)?;
        match usize::try_from(number).ok().and_then(|n| TableId::ALL.get(n)) {
            None => rows.view.now = time(texts.into_iter().next().flatten())?,
            Some(table) => put(*table, texts, &mut rows),
        }
    }
    if let Clock::Manual(_) = &options.clock {
        rows.view.now = options.clock.now();
    }
    Ok(rows)
}

/// Puts a row among the others. One that cannot be read is named; the others are still there.
fn put(table: TableId, texts: Vec<Option<String>>, rows: &mut Rows) {
    let shown = texts.first().cloned().flatten().unwrap_or_default();
    let row = match sql::row(table, texts) {
        Ok(row) => row,
        Err(error) => return rows.unreadable.push((table, shown, error.to_string())),
    };
    match load_row(&mut rows.view, &mut rows.names, table, &row) {
        Ok(()) => contents(table, &row, rows),
        Err(error) => rows.unreadable.push((table, shown, error.to_string())),
    }
}

/// Puts the texts of a row beside its facts.
fn contents(table: TableId, row: &LoadedRow, rows: &mut Rows) {
    if row.content.iter().all(|text| *text == Stored::Null) {
        return;
    }
    // No table has both texts and a key of two parts.
    let Some(id) = key(table, row, &mut rows.names) else { return };
    let texts = rows.contents.entry(RowKey { table, key: Key::of(id) }).or_default();
    for (name, text) in table.content().iter().zip(&row.content) {
        if let Stored::Text(text) = text {
            texts.insert(name, Some(text.clone()));
        }
    }
}

fn key(table: TableId, row: &LoadedRow, names: &mut Names) -> Option<u128> {
    match (table.columns().first()?.shape, row.facts.first()?) {
        (Shape::Id(kind), Stored::Text(text)) => names.learn(kind, text).ok(),
        (_, Stored::Int(n)) => u128::try_from(*n).ok(),
        (_, Stored::Text(_) | Stored::Null) => None,
    }
}
