//! A kill proves something about its guard only if the very same system, with the guard in, does
//! not break.

use std::time::Duration;

use freehold_model_check::models::catalogue::kills;
use freehold_model_check::{Limits, explore};

#[test]
fn with_its_guards_the_system_of_a_kill_is_sound() {
    let mut wrong = Vec::new();
    let mut deep = 0;
    for kill in kills() {
        let codes: Vec<_> = kill.guards.iter().map(|g| g.code()).collect();
        let codes = codes.join("+");
        let system = (kill.build)();
        let limits = Limits {
            depth: kill.steps as u32 + 3,
            states: 400_000,
            time: Duration::from_secs(20),
            rest: false,
            ..Limits::default()
        };
        let e = explore(&system, limits);
        deep += usize::from(e.cut.is_none());
        if let Some(f) = e.broken.first() {
            wrong.push(format!(
                "{codes}: {} in {} steps with the guard in (kill: {} in {})\n{}",
                f.broken.property,
                f.trace.lines.len(),
                kill.property,
                kill.steps,
                f.trace
            ));
        }
    }
    println!("{} kills, {deep} exhausted", kills().len());
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}
