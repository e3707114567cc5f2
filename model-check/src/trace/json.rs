//! A story as JSON.

use serde_json::{Value, json};

use super::{Ending, On, Story, Verdict, fault_code, in_words, sentence};

pub(super) fn json(story: &Story<'_>) -> Value {
    let steps: Vec<Value> = story
        .trace
        .lines
        .iter()
        .enumerate()
        .map(|(n, line)| {
            let (verdict, guard) = match line.verdict {
                Verdict::Accepted => ("accepted", None),
                Verdict::Refused(code) => ("refused", Some(code)),
                Verdict::Outside => ("outside", None),
            };
            let on = match line.on {
                On::Store => "store",
                On::Disk => "disk",
                On::Itself => "itself",
            };
            json!({
                "number": n + 1,
                "who": line.who,
                "does": line.says.replace("  ", " "),
                "command": (!line.command.is_empty()).then_some(line.command),
                "on": on,
                "verdict": verdict,
                "guard": guard,
                "fault": line.fault.map(fault_code),
            })
        })
        .collect();
    let end = match story.end {
        Ending::Open => json!({"kind": "open"}),
        Ending::Stuck => json!({"kind": "stuck"}),
        Ending::Broken(broken) => {
            let (id, name) = broken.property.split_once(' ').unwrap_or(("", &broken.property));
            json!({
                "kind": "broken",
                "property": id,
                "name": name,
                "rule": sentence(&broken.property),
                "witness": in_words(&broken.says),
            })
        }
    };
    let without: Vec<&str> = story.without.iter().map(|g| g.code()).collect();
    json!({"system": story.system, "without": without, "steps": steps, "end": end})
}
