//! Every planted design is caught, and `docs/planted/` tells how. One run serves both.

#[path = "planted/pages.rs"]
mod pages;

use std::sync::OnceLock;

use freehold_model_check::models::catalogue::{Design, designs};
use freehold_model_check::{Explored, Limits, Story, explore};

/// `FREEHOLD_PLANTED=name` looks at one.
fn wanted() -> Option<String> {
    std::env::var("FREEHOLD_PLANTED").ok()
}

struct Ran {
    design: &'static Design,
    system: String,
    explored: Explored,
}

impl Ran {
    fn story(&self) -> Option<Story<'_>> {
        Story::of(&self.system, &[], &self.explored)
    }
}

/// Every design, once for all tests.
fn runs() -> &'static [Ran] {
    static RUNS: OnceLock<Vec<Ran>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let run = |design: &'static Design| {
            let system = (design.build)();
            let explored = explore(&system, Limits::default());
            let ran = Ran { design, system: system.name().to_owned(), explored };
            println!("{}: {} states, {:?}", design.name, ran.explored.states, ran.explored.took);
            if wanted().is_some()
                && let Some(story) = ran.story()
            {
                println!("{}", story.text());
            }
            ran
        };
        let named = |d: &&Design| wanted().is_none_or(|w| w == d.name);
        designs().into_iter().filter(named).map(run).collect()
    })
}

#[test]
fn each_planted_design_is_caught() {
    let mut wrong = Vec::new();
    for Ran { design, explored, .. } in runs() {
        let caught = match (explored.broken.first(), &explored.stuck) {
            (Some(found), _) => Some((found.broken.property.as_str(), &found.trace)),
            (None, Some(trace)) => Some(("stuck", trace)),
            (None, None) => None,
        };
        let Some((property, trace)) = caught else {
            wrong.push(format!("{}: not caught in {} states", design.name, explored.states));
            continue;
        };
        let steps = trace.lines.len();
        if property.split(' ').next() != Some(design.property) || steps != design.steps {
            wrong.push(format!("{}: {property} in {steps} steps", design.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
