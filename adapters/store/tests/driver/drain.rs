//! Fairness: after a sequence everybody does what is due, nothing fails any more, and the liveness
//! goals are reached in bounded time.

use super::Driver;
use super::backend::Backend;

impl<B: Backend> Driver<B> {}
