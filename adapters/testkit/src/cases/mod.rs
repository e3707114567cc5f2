//! The cases, each a function over a rig that panics with what went wrong.
//! [`crate::store_contract`] makes a test of each.

pub mod answers;
pub mod dropping;
pub mod faults;
pub mod journal;
pub mod moments;
pub mod overtaking;
pub mod picking;
pub mod requests;
pub mod sequences;
pub mod sizes;
pub mod texts;
pub mod threads;
pub mod time;

use crate::rig::Can;

/// What a store does not offer is said twice: by its rig, and in the call of the contract.
///
/// # Panics
/// If the rig says otherwise than the call.
pub fn lacks(what: &str, can: Can) {
    match can {
        Can::No(why) => println!("not offered: {what}, since {why}"),
        Can::Yes => panic!("the rig offers {what}: take `without {what}` out of the call"),
    }
}

/// The other way round.
///
/// # Panics
/// If the rig does not offer it.
pub fn has(what: &str, can: Can) {
    if let Can::No(why) = can {
        panic!("the rig does not offer {what} ({why}): say `without {what}` in the call");
    }
}
