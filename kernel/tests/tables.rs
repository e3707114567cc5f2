//! `docs/tables/` is what the code says. `FREEHOLD_WRITE_TABLES=1 cargo test -p freehold-kernel
//! --test tables` writes it anew.

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn generated_tables_are_fresh() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tables");
    let write = std::env::var_os("FREEHOLD_WRITE_TABLES").is_some();
    for (name, text) in freehold_kernel::tables::all() {
        let path = folder.join(&name);
        if write {
            std::fs::write(&path, &text).unwrap();
        }
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(stored == text, "docs/tables/{name} is stale; write it anew and look at the diff");
    }
}

#[test]
fn no_machine_table_is_left_over() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tables");
    let known: BTreeSet<String> =
        freehold_kernel::tables::all().into_iter().map(|(name, _)| name).collect();
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.starts_with("machine-") {
            assert!(known.contains(&name), "{name} belongs to no machine");
        }
    }
}
