//! Exact, short keys of states: every fact of every row, ids by the order in which the model met
//! them, times by their difference to now.

use std::collections::HashMap;

use freehold_kernel::properties::{Disk, History, Place};
use freehold_kernel::{Row, Table, Value, View, Visit};

/// Gives small numbers to ids. One for a whole exploration, so that equal states have equal keys.
#[derive(Debug, Default)]
pub struct Numbers {
    known: HashMap<u128, u16>,
}

impl Numbers {
    fn of(&mut self, id: u128) -> u16 {
        let next = self.known.len();
        let next = u16::try_from(next).expect("a small model has few ids");
        *self.known.entry(id).or_insert(next)
    }
}

/// Writes a state's key.
#[derive(Debug)]
pub struct Encoder<'a> {
    numbers: &'a mut Numbers,
    out: &'a mut Vec<u8>,
    now: i64,
}

impl<'a> Encoder<'a> {
    /// Into this buffer.
    pub fn new(numbers: &'a mut Numbers, out: &'a mut Vec<u8>) -> Encoder<'a> {
        Encoder { numbers, out, now: 0 }
    }

    /// A small number.
    pub fn byte(&mut self, n: u8) {
        self.out.push(n);
    }

    /// An id.
    pub fn id(&mut self, id: u128) {
        let n = self.numbers.of(id);
        self.out.extend_from_slice(&n.to_le_bytes());
    }

    /// All rows.
    pub fn view(&mut self, view: &View) {
        self.now = view.now.0;
        view.each(self);
    }

    /// The physical world.
    pub fn disk(&mut self, disk: &Disk) {
        self.byte(u8::try_from(disk.worktrees.len()).expect("few worktrees"));
        for worktree in &disk.worktrees {
            self.id(worktree.identity.0);
            self.byte(match worktree.place {
                Place::AtHome => 0,
                Place::InTrash => 1,
                Place::Gone => 2,
            });
            self.out.extend_from_slice(&worktree.unsaved.0.to_le_bytes()[..2]);
            self.out.extend_from_slice(&worktree.salvaged.0.to_le_bytes()[..2]);
            self.id(worktree.moved_by.map_or(0, |r| r.0));
        }
        let mut hands = disk.hands.clone();
        hands.sort_unstable();
        self.byte(u8::try_from(hands.len()).expect("few hands"));
        for hand in hands {
            self.id(hand.token.0);
        }
    }

    /// What was once true.
    pub fn history(&mut self, history: &History) {
        let mut once: Vec<u128> = history.deleted.iter().map(|(_, id)| *id).collect();
        once.extend(history.stopped.iter().map(|j| j.0));
        once.extend(history.ended.iter().map(|t| t.0));
        once.extend(history.settled.iter().map(|(i, _)| i.0));
        once.sort_unstable();
        once.dedup();
        self.byte(u8::try_from(once.len()).expect("a short history"));
        for id in once {
            self.id(id);
        }
    }

    fn value(&mut self, value: Value) {
        match value {
            Value::Null => self.byte(0xff),
            Value::Id(_, id) => self.id(id),
            // A code's first bytes and length tell the codes of one column apart.
            Value::Code(code) => {
                let bytes = code.as_bytes();
                let sum = bytes.iter().fold(0u8, |s, b| s.wrapping_mul(31).wrapping_add(*b));
                self.byte(sum & 0x7f);
                self.byte(u8::try_from(bytes.len()).unwrap_or(u8::MAX));
            }
            Value::Int(n) => {
                let n = if n.abs() > 1_000 { n - self.now } else { n };
                self.out.extend_from_slice(&(n as i32).to_le_bytes());
            }
        }
    }
}

impl Visit for Encoder<'_> {
    fn table<R: Row>(&mut self, table: &Table<R>) {
        self.byte(u8::try_from(table.len()).expect("few rows"));
        for row in table.iter() {
            for index in 0..R::COLUMNS.len() {
                self.value(row.value(index));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freehold_kernel::{Shape, TableId};

    #[test]
    fn codes_of_one_column_have_different_keys() {
        for table in TableId::ALL {
            for column in table.columns() {
                let Shape::Code(codes) = column.shape else { continue };
                let mut keys: Vec<Vec<u8>> = Vec::new();
                for code in codes {
                    let (mut numbers, mut out) = (Numbers::default(), Vec::new());
                    Encoder::new(&mut numbers, &mut out).value(Value::Code(code));
                    assert!(
                        !keys.contains(&out),
                        "{} of {} is taken for another",
                        code,
                        column.name
                    );
                    keys.push(out);
                }
            }
        }
    }
}
