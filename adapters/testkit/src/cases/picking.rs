//! Which parts of jobs an instance is told to try.

use freehold_kernel::{JobRoot, Span, TableId, Trigger};
use freehold_store::names::uuid_text;
use freehold_store::{Pick, Read, Store};

use crate::rig::Rig;
use crate::speech::{boxed, instance, mutate, reserve, say, snapshot, submit, task, workspace};

/// How many parts are asked for at once.
const LIMIT: usize = 4;

/// The parts that have been due longest cannot be read, more of them than are asked for at once.
/// The others are told all the same, longest due first, until each was tried (C-10).
pub fn parts_that_cannot_be_read_starve_nobody<R: Rig>() {
    let rig = R::fresh();
    let store = rig.open();
    let said = |submission| {
        let outcome = submit(&store, &submission).unwrap_or_else(|e| panic!("{e}"));
        outcome.accepted().unwrap_or_else(|refused| panic!("{refused}"));
    };
    said(say(|c| instance(c, "i")));
    said(say(|c| workspace(c, "w")));
    let spoiled = LIMIT + 1;
    for n in 0..2 * spoiled {
        let (t, o) = (format!("t{n}"), format!("o{n}"));
        rig.clock().advance(Span::seconds(1));
        said(say(|c| task(c, "w", &t)));
        said(say(|c| boxed(c, &t, &format!("e{n}"), &format!("box {n}"))));
        let number = u128::try_from(n).expect("a small number");
        said(say(|c| reserve(c, &o, &t, 100 + number, Trigger::Archive, "i")));
        said(say(|c| snapshot(c, &o, "i")));
        said(say(|c| mutate(c, &o, "i")));
    }
    let rows = pollster::block_on(store.read(&[Read::all(TableId::JobRoots)]));
    let mut due: Vec<JobRoot> =
        rows.unwrap_or_else(|e| panic!("{e}")).view.job_roots.iter().copied().collect();
    due.sort_by_key(|part| (part.created_at, part.root_id.is_some(), part.id));
    assert_eq!(due.len(), 2 * spoiled, "a part for each job");
    for part in &due[..spoiled] {
        rig.spoil(&uuid_text(part.id.0));
    }
    let mut pick = Pick {
        instance: "i".to_owned(),
        machine: "laptop".to_owned(),
        limit: LIMIT,
        hold: Span::seconds(30),
        tried: Vec::new(),
    };
    let mut left = &due[spoiled..];
    while !left.is_empty() {
        let picked =
            pollster::block_on(store.pick(&pick)).unwrap_or_else(|e| panic!("picking: {e}"));
        let (told, later) = left.split_at(LIMIT.min(left.len()));
        let ids = |parts: &[JobRoot]| parts.iter().map(|part| part.id).collect::<Vec<_>>();
        assert_eq!(
            ids(&picked),
            ids(told),
            "behind parts that cannot be read, not the others, longest due first"
        );
        pick.tried.extend(ids(told));
        left = later;
    }
    let picked = pollster::block_on(store.pick(&pick)).unwrap_or_else(|e| panic!("picking: {e}"));
    assert_eq!(picked, [], "what was tried, or cannot be read, is told again");
}
