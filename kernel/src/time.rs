//! Time as a number. The kernel has no clock: `now` comes in with the view.

use core::ops::{Add, Sub};

/// UTC microseconds since 1970 (D).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(pub i64);

/// A length of time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span(pub i64);

impl Span {
    /// A span of whole seconds.
    pub const fn seconds(n: i64) -> Span {
        Span(n * 1_000_000)
    }

    /// A span of whole minutes.
    pub const fn minutes(n: i64) -> Span {
        Span::seconds(n * 60)
    }

    /// A span of whole hours.
    pub const fn hours(n: i64) -> Span {
        Span::minutes(n * 60)
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub<Time> for Time {
    type Output = Span;
    fn sub(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}
