//! `freehold tour`: the true story on real git and the embedded store, or on a PostgreSQL server
//! . Every step looks at the disk and at git itself, and says what it saw.

mod ground;
mod store;
mod story;

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::place::StorePlace;
use crate::show::Show;

/// What the tour has shown so far.
pub(crate) struct Shown<'a> {
    out: &'a mut Show,
    steps: Vec<Value>,
    ok: bool,
}

impl Shown<'_> {
    /// One step with its evidence.
    pub(crate) fn step(&mut self, name: &str, ok: bool, evidence: Value) {
        self.ok &= ok;
        self.out.step(self.steps.len() + 1, name, ok, &evidence);
        self.steps.push(json!({"name": name, "ok": ok, "evidence": evidence}));
    }
}

pub(crate) fn run(keep: bool, address: Option<&str>, out: &mut Show) -> Result<(), Failure> {
    let folder = tempfile::Builder::new()
        .prefix("freehold-tour-")
        .tempdir()
        .map_err(|e| Failure::Surroundings(format!("no temporary folder can be made: {e}")))?;
    // Git prints real paths; a temporary folder may be reached through a link.
    let base = folder.path().canonicalize().map_err(|e| ground::surroundings("the folder", &e))?;
    let place = store::own(address, &base)?;
    let schema = match &place {
        StorePlace::File(_) => None,
        StorePlace::Server { schema, .. } => Some(schema.clone()),
    };
    let on = schema.as_ref().map_or(String::new(), |s| format!(", store in schema {s}"));
    out.say(&format!("A tour of Freehold, on real git, in {}{on}", folder.path().display()));
    let mut shown = Shown { out, steps: Vec::new(), ok: true };
    let ground = ground::Ground::lay(&base, place);
    let told = ground.as_ref().map_err(|e| Failure::Surroundings(e.to_string()));
    let told = told.and_then(|ground| story::tell(ground, &mut shown));
    let cleared = match &ground {
        Ok(ground) if !keep => store::clear(&ground.store),
        Ok(_) | Err(_) => Ok(()),
    };
    let (ok, steps) = (shown.ok, shown.steps);
    let path = folder.path().to_owned();
    if keep {
        // The folder is the person's from here on.
        let _ = folder.keep();
        out.say(&format!("Left for looking: {}", path.display()));
    }
    let facts = told?;
    cleared?;
    let ok = ok && facts.all_true();
    let result = json!({
        "ok": ok,
        "steps": steps,
        "marker_intact_after_session_deletes": facts.marker_intact_after_session_deletes,
        "race_refused_and_compensated": facts.race_refused_and_compensated,
        "salvage_id": facts.salvage_id,
        "marker_restored": facts.marker_restored,
        "leftovers": facts.leftovers,
        "folder": keep.then(|| path.display().to_string()),
        "schema": schema.filter(|_| keep),
    });
    let words = if ok {
        "All of it is so: nothing was lost, nothing is left over."
    } else {
        "Something is not as promised; see the steps marked FAIL."
    };
    out.result(&result, words);
    if ok { Ok(()) } else { Err(Failure::Untrue("a step of the tour failed".to_owned())) }
}
