//! The store that the tour is told on: a file in its folder, or a schema of its own on a server.

use std::path::Path;

use freehold_postgres::tokio_postgres::NoTls;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::failure::Failure;
use crate::place::{StorePlace, runtime};

/// The tour's own store, where nobody else has one. Nothing is asked of a server yet.
///
/// # Errors
/// As [`StorePlace::read`]; and for a file: the tour never happens in a store that is there, since
/// it settles, archives and deletes as it likes.
pub(crate) fn own(address: Option<&str>, folder: &Path) -> Result<StorePlace, Failure> {
    let Some(address) = address else { return Ok(StorePlace::File(folder.join("freehold.db"))) };
    let schema = format!("freehold_tour_{}", uuid::Uuid::now_v7().simple());
    // What is no address is a file, whatever its name.
    let place = StorePlace::read(address.as_ref(), None)?;
    let StorePlace::Server { config, address, tls, note, .. } = place else {
        return Err(Failure::Unknown(
            "the tour makes a file of its own; give --store the address of a PostgreSQL \
             database, like postgres://user@host:5432/database, to have it told there"
                .to_owned(),
        ));
    };
    Ok(StorePlace::Server { config, address, tls, note, schema })
}

/// Takes the tour's own schema away again.
///
/// # Errors
/// [`Failure::Surroundings`], with the statement that does it by hand.
pub(crate) fn clear(place: &StorePlace) -> Result<(), Failure> {
    let StorePlace::Server { config, tls, schema, .. } = place else { return Ok(()) };
    let drop = format!("DROP SCHEMA IF EXISTS \"{schema}\" CASCADE");
    let done = runtime()?.block_on(async {
        let (client, driven) = match tls {
            None => {
                let (client, connection) = config.connect(NoTls).await?;
                (client, tokio::spawn(connection))
            }
            Some(tls) => {
                let tls = MakeRustlsConnect::new((**tls).clone());
                let (client, connection) = config.connect(tls).await?;
                (client, tokio::spawn(connection))
            }
        };
        let done = client.batch_execute(&drop).await;
        driven.abort();
        done
    });
    done.map_err(|e| {
        Failure::Surroundings(format!("the tour's schema is left over ({e}); to do: {drop}"))
    })
}
