//! Every circumstance of 09 has its system, and `docs/tables/circumstances.md` says so.
//! `FREEHOLD_WRITE_TABLES=1` writes it anew.

use std::path::Path;

use freehold_model_check::Model;
use freehold_model_check::models::catalogue::systems;
use freehold_model_check::models::circumstances::{CIRCUMSTANCES, table};

/// And each says by which circumstance of its own it is met: the exploration of the system
/// (`models`) fails where one is never seen.
#[test]
fn every_named_system_shows_what_it_is_named_for() {
    let known = systems();
    let mut wrong = Vec::new();
    for met in CIRCUMSTANCES {
        assert_eq!(met.systems.is_empty(), !met.missing.is_empty(), "{}", met.says);
        for (name, shown) in met.systems {
            let Some(entry) = known.iter().find(|e| e.name == *name) else {
                wrong.push(format!("{}: there is no system {name}", met.says));
                continue;
            };
            if !(entry.build)().circumstances().iter().any(|own| own == shown) {
                wrong.push(format!("{}: {name} does not look for \"{shown}\"", met.says));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What nobody has counted is no promise.
#[test]
fn every_system_has_been_counted() {
    let open: Vec<&str> = systems().iter().filter(|e| e.states == 0).map(|e| e.name).collect();
    assert!(open.is_empty(), "not counted: {open:?}");
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
