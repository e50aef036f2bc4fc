//! Time that counts up to the end of a run and no further.

use crate::base::{Instant, Span};

/// A sum of spans, of which what lies behind the end of the run can be left out.
///
/// A run that finishes ends with its last completion or delivery (timing rule 34), and goes on until the last frame has
/// arrived: which finish was the last is known only then. A span may lie across any number of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UntilEnd {
    total: Span,
    /// What of it lies behind `finish`.
    behind: Span,
    /// The last completion or delivery when a span was added.
    finish: Instant,
}

impl UntilEnd {
    /// * `finish`: the last completion or delivery so far; it never goes back.
    /// * Shape: the span ends `now`.
    pub fn add(&mut self, span: Span, now: Instant, finish: Instant) {
        if finish > self.finish {
            *self = Self { finish, behind: Span::ZERO, ..*self };
        }
        self.total += span;
        self.behind += span.min(now.since(finish));
    }

    /// * `end`: the last completion or delivery, or the instant at which an unfinished run was cut off.
    pub fn until(&self, end: Instant) -> Span {
        if end > self.finish { self.total } else { Span::from_ps(self.total.ps() - self.behind.ps()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_behind_the_last_finish_counts_once_another_follows_or_the_run_does_not_finish() {
        let at = Instant::from_ps;
        let mut sum = UntilEnd::default();
        // From 10 to 30, with a finish at 12 and at 25.
        sum.add(Span::from_ps(20), at(30), at(25));
        assert_eq!(sum.until(at(25)).ps(), 15);
        assert_eq!((sum.until(at(30)).ps(), sum.until(at(80)).ps()), (20, 20), "cut off, or finished later");
        // From 40 to 45: behind the finish as a whole. Then from 50 to 60, with another finish at 48.
        sum.add(Span::from_ps(5), at(45), at(25));
        assert_eq!(sum.until(at(25)).ps(), 15);
        sum.add(Span::from_ps(10), at(60), at(48));
        assert_eq!((sum.until(at(48)).ps(), sum.until(at(60)).ps()), (25, 35));
    }
}
