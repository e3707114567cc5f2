//! The machines: one row each, one pure total `step` each. A `step` knows one row; what holds
//! between rows is decided in [`crate::decide`]. An illegal step inside an accepted decision is
//! a defect of the kernel, not a refusal.

pub mod activity;
pub mod attempt;
pub mod input;
pub mod job;
pub mod removal;
pub mod runtime;
pub mod session;
pub mod task;
pub mod trash;
pub mod turn;
pub mod workspace;
pub mod worktree;

use alloc::string::String;

/// A machine as data, for tables and diagrams: made by enumerating its `step`.
pub struct Machine {
    /// Its name.
    pub name: &'static str,
    /// The rules that it keeps.
    pub rules: &'static str,
    /// The codes of its states.
    pub states: &'static [&'static str],
    /// The codes of its inputs.
    pub inputs: &'static [&'static str],
    /// The state after `inputs[i]` in `states[s]`, by index; none where it is illegal.
    pub step: fn(s: usize, i: usize) -> Option<usize>,
}

/// Every machine.
pub const MACHINES: &[Machine] = &[
    workspace::MACHINE,
    task::MACHINE,
    session::MACHINE,
    activity::MACHINE,
    turn::MACHINE,
    input::MACHINE,
    runtime::MACHINE,
    attempt::MACHINE,
    worktree::MACHINE,
    job::MACHINE,
    removal::MACHINE,
    trash::MACHINE,
];

/// Makes a machine's data from its `step`: both enums are enumerated, nothing is written twice.
macro_rules! machine {
    ($name:literal, $rules:literal, $state:ty, $input:ty) => {
        /// This machine as data.
        pub const MACHINE: $crate::machine::Machine = $crate::machine::Machine {
            name: $name,
            rules: $rules,
            states: <$state>::CODES,
            inputs: <$input>::CODES,
            step: |s, i| {
                let (state, input) = (<$state>::ALL.get(s)?, <$input>::ALL.get(i)?);
                let next = step(*state, *input)?;
                <$state>::ALL.iter().position(|x| *x == next)
            },
        };

        #[cfg(test)]
        mod reachability {
            use super::*;

            #[test]
            fn every_input_is_legal_somewhere_and_every_state_but_the_first_is_reached() {
                let legal = |s: &$state, i: &$input| step(*s, *i);
                for input in <$input>::ALL {
                    assert!(<$state>::ALL.iter().any(|s| legal(s, input).is_some()), "{input:?}");
                }
                for state in &<$state>::ALL[1..] {
                    let reached = <$state>::ALL.iter().any(|s| {
                        s != state && <$input>::ALL.iter().any(|i| legal(s, i) == Some(*state))
                    });
                    assert!(reached, "{state:?} is never reached");
                }
            }
        }
    };
}
pub(crate) use machine;

impl Machine {
    /// The table state × input as Markdown: what `docs/tables/` holds.
    pub fn table(&self) -> String {
        let mut out = String::new();
        let mut put = |parts: &[&str]| parts.iter().for_each(|p| out.push_str(p));
        put(&["# Machine: ", self.name, "\n\nRules: ", self.rules]);
        put(&[". Made from `step`; a dot is an illegal step.\n\n| state |"]);
        self.inputs.iter().for_each(|i| put(&[" ", i, " |"]));
        put(&["\n| --- |"]);
        self.inputs.iter().for_each(|_| put(&[" --- |"]));
        for (s, state) in self.states.iter().enumerate() {
            put(&["\n| **", state, "** |"]);
            for i in 0..self.inputs.len() {
                let next = (self.step)(s, i).and_then(|n| self.states.get(n)).unwrap_or(&".");
                put(&[" ", next, " |"]);
            }
        }
        put(&["\n"]);
        out
    }
}
