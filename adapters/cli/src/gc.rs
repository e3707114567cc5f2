//! `freehold gc`: lets go of what is kept no longer. The dry run and the real run take the same
//! decision from the same function.

use std::collections::BTreeMap;
use std::path::PathBuf;

use freehold_git::salvage;
use freehold_kernel::{Kind, Row, SalvageState, TableId, TrashState};
use freehold_store::names::uuid_text;
use freehold_store::sweep::lapsed_salvage;
use freehold_store::workspaces::{RootPlace, WorkspaceError};
use freehold_store::{Read, Rows, Store};
use serde_json::json;

use crate::failure::Failure;
use crate::ground::{content, host, next, roots, wait};
use crate::machine::machine_name;
use crate::place::StorePlace;
use crate::show::Show;

/// What a run would let go of.
struct Plan {
    /// Trash whose time is over: its id, and the path that it was moved from.
    trash: Vec<(String, PathBuf)>,
    /// Salvage whose retention, to which a person consented, has lapsed (W-34).
    lapsed: Vec<String>,
    /// Salvage that has expired and is still there: its root and ref.
    salvage: Vec<(RootPlace, String)>,
    /// The roots beside which salvage has expired, by name: an earlier run may have died before it
    /// freed what it held.
    stores: BTreeMap<String, RootPlace>,
    /// What could not be looked at: nothing of it goes, and the run says so in the end.
    troubles: Vec<WorkspaceError>,
    /// Trash that is still kept.
    kept: usize,
    /// What other machines serve.
    elsewhere: usize,
}

fn read(store: &impl Store) -> Result<Rows, Failure> {
    Ok(wait(store.read(&[
        Read::all(TableId::Trash),
        Read::all(TableId::Salvage),
        Read::all(TableId::ManagedRoots),
    ]))?)
}

fn plan(store: &impl Store, machine: &str) -> Result<Plan, Failure> {
    let rows = read(store)?;
    let roots = roots(store, &rows)?;
    let served = |id| roots.iter().find(|(r, host)| r.id == id && host == machine).map(|(r, _)| r);
    let mut plan = Plan {
        trash: Vec::new(),
        lapsed: Vec::new(),
        salvage: Vec::new(),
        stores: BTreeMap::new(),
        troubles: Vec::new(),
        kept: 0,
        elsewhere: 0,
    };
    for row in rows.view.trash.iter() {
        let lapsed = row.restorable_until.is_some_and(|until| until <= rows.view.now);
        match row.state {
            TrashState::Gone => {}
            TrashState::Kept | TrashState::Purging if lapsed => {
                if served(row.root_id).is_none() {
                    plan.elsewhere += 1;
                    continue;
                }
                let id = rows.names.text(Kind::TrashId, row.id.0)?;
                plan.trash.push((id, rows.names.text(Kind::PathId, row.path.0)?.into()));
            }
            TrashState::Kept | TrashState::Restoring | TrashState::Purging => plan.kept += 1,
        }
    }
    for id in wait(lapsed_salvage(store))? {
        let row = rows.view.salvage.iter().find(|s| uuid_text(s.id.0) == id);
        match row.and_then(|row| served(row.root_id)) {
            Some(root) => {
                plan.stores.insert(root.name.clone(), root.clone());
                plan.lapsed.push(id);
            }
            None => plan.elsewhere += 1,
        }
    }
    let mut expired: BTreeMap<String, (RootPlace, Vec<String>)> = BTreeMap::new();
    for row in rows.view.salvage.iter().filter(|s| s.state == SalvageState::Expired) {
        let Some(root) = served(row.root_id) else {
            plan.elsewhere += 1;
            continue;
        };
        let of_root =
            expired.entry(root.name.clone()).or_insert_with(|| (root.clone(), Vec::new()));
        of_root.1.push(content(&rows, &row.row_key(), "ref_name"));
    }
    // Each root is listed once, however much of it has expired.
    for (name, (root, refs)) in expired {
        match salvage::list(&root) {
            Ok(there) => {
                let left = refs.into_iter().filter(|r| there.iter().any(|e| e.ref_name == *r));
                plan.salvage.extend(left.map(|r| (root.clone(), r)));
                plan.stores.insert(name, root);
            }
            Err(error) => {
                // Nor is it collected: what cannot be listed would be freed.
                plan.stores.remove(&name);
                plan.troubles.push(error);
            }
        }
    }
    Ok(plan)
}

pub(crate) fn run(place: &StorePlace, yes: bool, out: &mut Show) -> Result<(), Failure> {
    let planned = plan(&place.open()?, &machine_name())?;
    for (id, path) in &planned.trash {
        out.say(&format!("trash {id}, from {}", path.display()));
    }
    for id in &planned.lapsed {
        out.say(&format!("salvage {id}, whose retention has lapsed"));
    }
    for (root, ref_name) in &planned.salvage {
        out.say(&format!("expired salvage {ref_name} beside {}", root.path.display()));
    }
    for error in &planned.troubles {
        out.aside(&format!("not now: {error}"));
    }
    let trash: Vec<&str> = planned.trash.iter().map(|(id, _)| id.as_str()).collect();
    let salvage: Vec<&str> = planned.salvage.iter().map(|(_, name)| name.as_str()).collect();
    let due: Vec<&str> = planned.lapsed.iter().map(String::as_str).collect();
    if !yes {
        let goes_on = next(&["gc", "--yes"], place);
        let some = !trash.is_empty() || !salvage.is_empty() || !planned.lapsed.is_empty();
        let words = format!(
            "{} trash and {} salvage would go, {} still kept, {} on other machines{}",
            trash.len(),
            salvage.len() + planned.lapsed.len(),
            planned.kept,
            planned.elsewhere,
            if some { format!("; next: {goes_on}") } else { String::new() }
        );
        out.result(
            &json!({
                "ok": true, "dry_run": true, "trash": trash, "salvage": salvage,
                "lapsed": due, "kept": planned.kept, "elsewhere": planned.elsewhere,
                "next": some.then_some(goes_on),
            }),
            &words,
        );
        return Ok(());
    }
    let host = host(place)?;
    // Counted is what was done, not what was planned.
    let (mut purged, mut expired, mut failed) = (Vec::new(), Vec::new(), None);
    for error in planned.troubles {
        failed = failed.or(Some(Failure::Host(error.into())));
    }
    for (id, _) in &planned.trash {
        match host.purge_trash(id) {
            Ok(()) => purged.push(id.as_str()),
            Err(error) => {
                out.aside(&format!("not now: trash {id}: {error}"));
                failed = failed.or(Some(Failure::Host(error)));
            }
        }
    }
    let mut lapsed = Vec::new();
    for id in due {
        match host.expire_salvage(id) {
            Ok(()) => lapsed.push(id),
            Err(error) => {
                out.aside(&format!("not now: salvage {id}: {error}"));
                failed = failed.or(Some(Failure::Host(error)));
            }
        }
    }
    for (root, ref_name) in &planned.salvage {
        match salvage::expire(root, ref_name) {
            Ok(true) => expired.push(ref_name.as_str()),
            Ok(false) => {}
            Err(error) => {
                out.aside(&format!("not now: salvage {ref_name}: {error}"));
                failed = failed.or(Some(Failure::Host(error.into())));
            }
        }
    }
    // Only now that their refs are gone are their objects nobody's.
    for root in planned.stores.values() {
        if let Err(error) = salvage::reclaim(root) {
            out.aside(&format!("not now: {error}"));
            failed = failed.or(Some(Failure::Host(error.into())));
        }
    }
    let gone = lapsed.len() + expired.len();
    let words = format!("{} trash purged, {gone} salvage expired", purged.len());
    match failed {
        None => {
            out.result(
                &json!({"ok": true, "dry_run": false, "trash": purged, "salvage": expired, "lapsed": lapsed}),
                &words,
            );
            Ok(())
        }
        Some(failure) => {
            out.say(&words);
            Err(failure.then(next(&["gc"], place)))
        }
    }
}
