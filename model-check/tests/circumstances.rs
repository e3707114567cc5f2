//! Every circumstance of 09 has its system, and `docs/tables/circumstances.md` says so.
//! `FREEHOLD_WRITE_TABLES=1` writes it anew.

use std::path::Path;

use freehold_model_check::models::catalogue::systems;
use freehold_model_check::models::circumstances::{CIRCUMSTANCES, table};

#[test]
fn every_named_system_is_there() {
    let known: Vec<&str> = systems().iter().map(|e| e.name).collect();
    for met in CIRCUMSTANCES {
        for name in met.systems {
            assert!(known.contains(name), "{}: there is no system {name}", met.says);
        }
        assert_eq!(met.systems.is_empty(), !met.missing.is_empty(), "{}", met.says);
    }
}

#[test]
fn the_table_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tables/circumstances.md");
    if std::env::var_os("FREEHOLD_WRITE_TABLES").is_some() {
        std::fs::write(&path, table()).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == table(), "docs/tables/circumstances.md is stale; write it anew");
}
