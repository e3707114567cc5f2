//! Where a store is, as the command line says it.

use std::ffi::OsStr;
use std::path::PathBuf;

use freehold_postgres::tokio_postgres::Config;

use crate::failure::Failure;

/// The schema where none is named.
pub(crate) const SCHEMA: &str = "freehold";

/// A store's file, or a schema on a server.
#[derive(Clone, Debug)]
pub(crate) enum StorePlace {
    /// SQLite.
    File(PathBuf),
    /// PostgreSQL.
    Server {
        /// How it is reached.
        config: Box<Config>,
        /// The schema.
        schema: String,
    },
}

impl StorePlace {
    /// Reads what follows `--store`: an address that begins with `postgres://` or
    /// `postgresql://`, or a path.
    ///
    /// # Errors
    /// - [`Failure::Unknown`]: an address that cannot be read, or `--schema` beside a file. The
    ///   address is not repeated in the words: a password may stand in it.
    pub(crate) fn read(store: &OsStr, schema: Option<&str>) -> Result<StorePlace, Failure> {
        let address = store.to_str().filter(|text| {
            ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme))
        });
        match address {
            Some(address) => {
                let config: Config = address.parse().map_err(|e| {
                    Failure::Unknown(format!(
                        "the address after --store cannot be read ({e}); give one like \
                         postgres://user@host:5432/database"
                    ))
                })?;
                let schema = schema.unwrap_or(SCHEMA).to_owned();
                Ok(StorePlace::Server { config: Box::new(config), schema })
            }
            None if schema.is_some() => Err(Failure::Unknown(
                "--schema is for an address; a store's file has none".to_owned(),
            )),
            None => Ok(StorePlace::File(PathBuf::from(store))),
        }
    }
}
