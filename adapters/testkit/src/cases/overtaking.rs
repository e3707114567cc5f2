//! Several connections, in every order: a command that is overtaken at any of its awaits answers
//! as if they had come one after the other, rows and journal included. The pairs are those whose
//! footprints touch, by a row or by the absence of one (D-23).

use freehold_kernel::{ClosingKind, Command, Trigger};
use freehold_store::memory::{Memory, World};
use freehold_store::store::{Dump, JournalRow, dump};
use freehold_store::{Composer, Outcome, Store, Submission};

use crate::polling::{Polled, finish_in_order};
use crate::rig::Rig;
use crate::speech::{
    attempt, close, environment, instance, reserve, root, say, session, star, submit, task, turn,
    workspace,
};
use crate::twin::{agree, journal, journal_of, same, short};

/// The most polls that a submission may need.
const POLLS_MAX: usize = 500;

/// Where one round happens: names of its own in a store that many rounds share.
struct Ground {
    name: String,
    n: u128,
}

impl Ground {
    fn named(&self, what: &str) -> String {
        format!("{}-{what}", self.name)
    }
}

/// What one of several does; who it is tells ids apart that must not be the same.
#[derive(Clone, Copy)]
struct Act {
    name: &'static str,
    command: fn(&mut Composer, &Ground, u128) -> Command,
}

/// Each connection is another instance's.
const INSTANCES: [&str; 3] = ["one", "two", "three"];

fn instance_of(who: u128) -> &'static str {
    usize::try_from(who).ok().and_then(|who| INSTANCES.get(who)).copied().unwrap_or("one")
}

/// A task with the same id, whoever makes it.
const TASK: Act = Act { name: "task", command: |c, g, _| task(c, &g.named("w"), &g.named("new")) };
const SESSION: Act = Act {
    name: "session",
    command: |c, g, who| session(c, &g.named("t"), &g.named(&format!("s{who}")), None),
};
const STAR: Act =
    Act { name: "star", command: |c, g, who| star(c, &g.named("s"), who.is_multiple_of(2)) };
const CLOSE: Act = Act {
    name: "close",
    command: |c, g, who| close(c, &g.named("s"), ClosingKind::Archive, g.n + 10 + who),
};
const TURN: Act = Act {
    name: "turn",
    command: |c, g, who| {
        let input = g.named(&format!("i{who}"));
        turn(c, &g.named("s"), &input, g.n + 100 + 10 * who, instance_of(who))
    },
};
const ARCHIVE: Act = Act {
    name: "archive",
    command: |c, g, who| {
        let operation = g.named(&format!("archive{who}"));
        reserve(c, &operation, &g.named("t"), g.n + 200 + who, Trigger::Archive, instance_of(who))
    },
};
const DELETE: Act = Act {
    name: "delete",
    command: |c, g, who| {
        let operation = g.named(&format!("delete{who}"));
        reserve(c, &operation, &g.named("t"), g.n + 250 + who, Trigger::Delete, instance_of(who))
    },
};
const BORROW: Act = Act {
    name: "borrow",
    command: |c, g, who| {
        session(c, &g.named("u"), &g.named(&format!("b{who}")), Some(&g.named("e")))
    },
};
const ATTEMPT: Act = Act {
    name: "attempt",
    command: |c, g, who| {
        attempt(
            c,
            &g.named("e"),
            &g.named(&format!("a{who}")),
            g.n + 300 + 10 * who,
            instance_of(who),
        )
    },
};
const ENVIRONMENT: Act = Act {
    name: "environment",
    command: |c, g, who| environment(c, &g.named("t"), &g.named(&format!("e{who}"))),
};

/// The same path, whoever makes a worktree there: a set that no row owns (D-23).
const PATH: Act = Act {
    name: "path",
    command: |c, g, who| {
        let place = if who == 0 { g.named("e") } else { g.named("f") };
        attempt(c, &place, &g.named("path"), g.n + 400 + 10 * who, instance_of(who))
    },
};

const ACTS: [Act; 11] =
    [TASK, SESSION, STAR, CLOSE, TURN, ARCHIVE, DELETE, BORROW, ATTEMPT, ENVIRONMENT, PATH];

/// Several connections to one store, and the reference.
struct Race<R: Rig> {
    rig: R,
    stores: Vec<R::Store>,
    world: World,
    /// How far the journal was compared: lines of the reference, and the store's number.
    follows: (i64, i64),
    rounds: u128,
}

impl<R: Rig> Race<R> {
    fn new(connections: usize) -> Race<R> {
        let rig = R::fresh();
        let stores = (0..connections).map(|_| rig.open()).collect();
        let mut race = Race { rig, stores, world: World::default(), follows: (0, 0), rounds: 0 };
        for name in INSTANCES {
            race.settled(&say(|c| instance(c, name)));
        }
        race.settled(&say(root));
        race
    }

    fn reference(&self) -> Memory {
        Memory::resume("reference", self.rig.clock(), self.world.clone())
    }

    /// A task with an environment and a session, and another with an environment.
    fn ground(&mut self) -> Ground {
        self.rounds += 1;
        let g = Ground { name: format!("r{}", self.rounds), n: self.rounds * 1000 };
        self.settled(&say(|c| workspace(c, &g.named("w"))));
        self.settled(&say(|c| task(c, &g.named("w"), &g.named("t"))));
        self.settled(&say(|c| task(c, &g.named("w"), &g.named("u"))));
        self.settled(&say(|c| environment(c, &g.named("t"), &g.named("e"))));
        self.settled(&say(|c| environment(c, &g.named("u"), &g.named("f"))));
        self.settled(&say(|c| session(c, &g.named("t"), &g.named("s"), None)));
        g
    }

    /// What both do, undisturbed.
    fn settled(&mut self, submission: &Submission) {
        let memory = self.reference();
        let expected = submit(&memory, submission).expect("a reference");
        let found = submit(&self.stores[0], submission).unwrap_or_else(|e| panic!("{e}"));
        agree(&expected, &found, false).unwrap_or_else(|what| panic!("{what}"));
        assert!(found.accepted().is_ok());
        self.world = memory.world();
    }

    /// What came of these must be what would have come of them one after the other, in one of
    /// these orders; the reference goes on from there.
    fn judge(
        &mut self,
        tried: &[Submission],
        found: &[Option<Outcome>],
        orders: &[Vec<usize>],
        what: &str,
    ) {
        let rows = pollster::block_on(dump(&self.stores[0])).unwrap_or_else(|e| panic!("{e}"));
        let mut against = String::new();
        for order in orders {
            let memory = self.reference();
            let mut answers: Vec<Option<Outcome>> = tried.iter().map(|_| None).collect();
            for at in order {
                answers[*at] = Some(submit(&memory, &tried[*at]).expect("a reference"));
            }
            match self.fits(&memory, &rows, &answers, found) {
                Ok(follows) => {
                    (self.world, self.follows) = (memory.world(), follows);
                    return;
                }
                Err(why) => against.push_str(&format!("\n  in the order {order:?}: {why}")),
            }
        }
        let found: Vec<String> =
            found.iter().map(|o| o.as_ref().map_or("dropped".to_owned(), short)).collect();
        panic!("{what}: no order explains {found:?}:{against}");
    }

    /// Compares answers, rows and the journal; how far it was compared.
    fn fits(
        &self,
        memory: &Memory,
        rows: &Dump,
        answers: &[Option<Outcome>],
        found: &[Option<Outcome>],
    ) -> Result<(i64, i64), String> {
        for (expected, found) in answers.iter().zip(found) {
            if let (Some(expected), Some(found)) = (expected, found) {
                agree(expected, found, false)?;
            }
        }
        let expected = pollster::block_on(dump(memory)).expect("a reference");
        same(&expected, rows)?;
        let wanted = journal(memory, self.follows.0, usize::MAX);
        let found = journal_of::<R>(&self.stores[0], self.follows.1, wanted.len())?;
        if !found.iter().map(|l| &l.columns).eq(wanted.iter().map(|l| &l.columns)) {
            return Err(format!("the journal: {found:?}, not {wanted:?}"));
        }
        let last = |lines: &[JournalRow], else_: i64| lines.last().map_or(else_, |l| l.seq);
        Ok((last(&wanted, self.follows.0), last(&found, self.follows.1)))
    }

    /// The whole journal, at the end.
    fn end(self) {
        let memory = self.reference();
        let expected = journal(&memory, 0, usize::MAX);
        let found = journal_of::<R>(&self.stores[0], 0, expected.len());
        let found = found.unwrap_or_else(|what| panic!("{what}"));
        let lines =
            |rows: Vec<JournalRow>| -> Vec<_> { rows.into_iter().map(|row| row.columns).collect() };
        assert_eq!(lines(found), lines(expected));
    }
}

fn both_orders() -> Vec<Vec<usize>> {
    vec![vec![0, 1], vec![1, 0]]
}

/// Overtakes the first by the second after each of its polls. How many polls it needed.
fn overtake<R: Rig>(race: &mut Race<R>, first: Act, second: Act) -> usize {
    for polls in 0..POLLS_MAX {
        let g = race.ground();
        let tried = [say(|c| (first.command)(c, &g, 0)), say(|c| (second.command)(c, &g, 1))];
        let mut one = Polled::new(race.stores[0].submit(&tried[0]));
        let was_done = one.poll(polls);
        let other = Polled::new(race.stores[1].submit(&tried[1]));
        let mut found = finish_in_order(vec![other, one]);
        found.reverse();
        let what = format!("{} overtaken by {} after {polls} polls", first.name, second.name);
        let found: Vec<Outcome> =
            found.into_iter().map(|o| o.unwrap_or_else(|e| panic!("{what}: {e}"))).collect();
        race.judge(&tried, &found.into_iter().map(Some).collect::<Vec<_>>(), &both_orders(), &what);
        if was_done {
            return polls;
        }
    }
    panic!("a submission was polled {POLLS_MAX} times");
}

/// Every act overtaken by every act, at each of its awaits.
pub fn a_command_overtaken_at_any_await_is_decided_again<R: Rig>() {
    let mut polls = 0;
    for first in ACTS {
        let mut race = Race::<R>::new(2);
        for second in ACTS {
            polls = polls.max(overtake(&mut race, first, second));
        }
        race.end();
    }
    println!("{} pairs; at most {polls} polls", ACTS.len() * ACTS.len());
}

/// A command that was overtaken goes on by another way than one that was not (it takes locks
/// first, perhaps in a transaction that stays open): dropped at each of its awaits there, it is
/// whole or nothing, too, and in nobody's way.
pub fn a_command_overtaken_and_dropped_leaves_nothing<R: Rig>() {
    let mut race = Race::<R>::new(2);
    let mut runs = 0;
    for before in 1..POLLS_MAX {
        for after in 0..POLLS_MAX {
            runs += 1;
            let g = race.ground();
            let tried = [
                say(|c| (SESSION.command)(c, &g, 0)),
                say(|c| (SESSION.command)(c, &g, 1)),
                say(|c| (ARCHIVE.command)(c, &g, 2)),
            ];
            let mut one = Polled::new(race.stores[0].submit(&tried[0]));
            let was_done = one.poll(before);
            let other = submit(&race.stores[1], &tried[1]).unwrap_or_else(|e| panic!("{e}"));
            let is_done = one.poll(after);
            let one = one.output().map(|o| o.unwrap_or_else(|e| panic!("{e}")));
            race.rig.at_rest();
            let next = submit(&race.stores[0], &tried[2]).unwrap_or_else(|e| panic!("{e}"));
            let what = format!("dropped {after} polls after it was overtaken after {before}");
            let orders = [vec![0, 1, 2], vec![1, 0, 2], vec![1, 2]];
            let orders = if one.is_some() { &orders[..2] } else { &orders[..] };
            race.judge(&tried, &[one, Some(other), Some(next)], orders, &what);
            if was_done {
                println!("{runs} runs");
                return race.end();
            }
            if is_done {
                break;
            }
        }
    }
    panic!("a submission was polled {POLLS_MAX} times");
}

/// Rows that were absent when they were looked for, and are there at the commit: of two that
/// exclude each other, one is accepted.
pub fn an_absence_that_ends_before_the_commit_is_noticed<R: Rig>() {
    let mut race = Race::<R>::new(2);
    for (first, second) in [
        (TASK, TASK),
        (ARCHIVE, ARCHIVE),
        (ARCHIVE, DELETE),
        (DELETE, ARCHIVE),
        (CLOSE, CLOSE),
        (PATH, PATH),
    ] {
        for polls in 0..POLLS_MAX {
            let g = race.ground();
            let tried = [say(|c| (first.command)(c, &g, 0)), say(|c| (second.command)(c, &g, 1))];
            let mut one = Polled::new(race.stores[0].submit(&tried[0]));
            let was_done = one.poll(polls);
            let other = Polled::new(race.stores[1].submit(&tried[1]));
            let found: Vec<Outcome> = finish_in_order(vec![other, one])
                .into_iter()
                .map(|o| o.unwrap_or_else(|e| panic!("{e}")))
                .collect();
            let accepted = found.iter().filter(|o| matches!(o, Outcome::Accepted(_))).count();
            let pair = (first.name, second.name);
            assert_eq!(accepted, 1, "{pair:?} after {polls} polls: {found:?}");
            let found: Vec<Outcome> = found.into_iter().rev().collect();
            race.judge(
                &tried,
                &found.into_iter().map(Some).collect::<Vec<_>>(),
                &both_orders(),
                &format!("{pair:?}"),
            );
            if was_done {
                break;
            }
        }
    }
    race.end();
}

/// Scripts of two commands on a connection each, in all their interleavings: each command answers
/// out of what the others wrote.
pub fn two_scripts_answer_in_all_interleavings<R: Rig>() {
    let scripts = [
        [SESSION, STAR],
        [CLOSE, SESSION],
        [ARCHIVE, TURN],
        [BORROW, DELETE],
        [ATTEMPT, ENVIRONMENT],
    ];
    let mut runs = 0;
    for (at, first) in scripts.iter().enumerate() {
        let mut race = Race::<R>::new(2);
        for second in &scripts[at..] {
            for merge in merges() {
                runs += 1;
                let g = race.ground();
                let mut next = [0, 0];
                for who in merge {
                    let act = [first, second][who][next[who]];
                    next[who] += 1;
                    let tried = [say(|c| (act.command)(c, &g, who as u128))];
                    let found = submit(&race.stores[who], &tried[0]);
                    let found = [found.unwrap_or_else(|e| panic!("{}: {e}", act.name))];
                    let what = format!("{} of {who} in {merge:?}", act.name);
                    race.judge(
                        &tried,
                        &found.into_iter().map(Some).collect::<Vec<_>>(),
                        &[vec![0]],
                        &what,
                    );
                }
            }
        }
        race.end();
    }
    println!("{runs} interleavings");
}

/// The ways to merge two scripts of two commands.
fn merges() -> [[usize; 4]; 6] {
    [[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 1, 0], [1, 1, 0, 0]]
}

/// Three connections: the third overtakes two that were begun.
pub fn three_commands_under_way_answer_as_in_some_order<R: Rig>() {
    let acts = [SESSION, CLOSE, TURN, ARCHIVE, BORROW, ATTEMPT];
    let orders: Vec<Vec<usize>> =
        [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
            .map(|o| o.to_vec())
            .to_vec();
    let mut runs = 0;
    for a in 0..acts.len() {
        let mut race = Race::<R>::new(3);
        for b in a + 1..acts.len() {
            for c in b + 1..acts.len() {
                for polls in [[1, 1], [1, 2], [2, 2], [3, 2]] {
                    runs += 1;
                    let g = race.ground();
                    let three = [acts[a], acts[b], acts[c]];
                    let tried: Vec<Submission> = three
                        .iter()
                        .zip(0..)
                        .map(|(act, who)| say(|c| (act.command)(c, &g, who)))
                        .collect();
                    let mut futures: Vec<_> = race
                        .stores
                        .iter()
                        .zip(&tried)
                        .map(|(store, submission)| Polled::new(store.submit(submission)))
                        .collect();
                    futures[0].poll(polls[0]);
                    futures[1].poll(polls[1]);
                    futures.reverse();
                    let found: Vec<Outcome> = finish_in_order(futures)
                        .into_iter()
                        .rev()
                        .map(|o| o.unwrap_or_else(|e| panic!("{e}")))
                        .collect();
                    let names = three.map(|act| act.name);
                    race.judge(
                        &tried,
                        &found.into_iter().map(Some).collect::<Vec<_>>(),
                        &orders,
                        &format!("{names:?} {polls:?}"),
                    );
                }
            }
        }
        race.end();
    }
    println!("{runs} runs of three");
}
