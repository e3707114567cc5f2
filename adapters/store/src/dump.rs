//! Rows as comparable text.

use std::collections::BTreeMap;

use freehold_kernel::{Row, Table, Visit};

use crate::error::StoreError;
use crate::run::{Stored, identity_id_kind, stored};
use crate::store::{Dump, DumpRow, Rows};

/// The dump of rows that were read.
///
/// # Errors
/// If the text of an id is not known.
pub fn of(rows: &Rows) -> Result<Dump, StoreError> {
    let mut dumper = Dumper { rows, out: Dump::new(), failed: None };
    rows.view.each(&mut dumper);
    match dumper.failed {
        Some(error) => Err(error),
        None => Ok(dumper.out),
    }
}

struct Dumper<'a> {
    rows: &'a Rows,
    out: Dump,
    failed: Option<StoreError>,
}

impl Dumper<'_> {
    fn columns<R: Row>(&self, row: &R) -> Result<Vec<Stored>, StoreError> {
        let mut columns = Vec::new();
        for index in 0..R::COLUMNS.len() {
            let value = row.value(index);
            let value = match value {
                freehold_kernel::Value::Id(freehold_kernel::Kind::AnyId, id)
                    if R::TABLE == freehold_kernel::TableId::Identities =>
                {
                    let kind = freehold_kernel::IdentityKind::ALL
                        .iter()
                        .find(|k| **k as u8 + 1 == row.key().part)
                        .map_or(freehold_kernel::Kind::AnyId, |k| identity_id_kind(*k));
                    freehold_kernel::Value::Id(kind, id)
                }
                other => other,
            };
            columns.push(stored(&self.rows.names, value)?);
        }
        let content = self.rows.contents.get(&row.row_key());
        for name in R::CONTENT {
            let text = content.and_then(|c| c.get(name)).cloned().flatten();
            columns.push(text.map_or(Stored::Null, Stored::Text));
        }
        Ok(columns)
    }
}

impl Visit for Dumper<'_> {
    fn table<R: Row>(&mut self, table: &Table<R>) {
        let mut rows = BTreeMap::new();
        for slot in table.slots() {
            match self.columns(slot.row()) {
                Ok(columns) => {
                    let keys = if R::TABLE == freehold_kernel::TableId::Identities { 2 } else { 1 };
                    let key = columns.iter().take(keys).cloned().collect();
                    rows.insert(key, DumpRow { version: slot.version(), columns });
                }
                Err(error) => self.failed = Some(error),
            }
        }
        self.out.insert(R::NAME, rows);
    }
}
