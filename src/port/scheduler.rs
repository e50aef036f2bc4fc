//! Which class sends next.

use super::{PerClass, Scheduling};
use crate::base::Class;

/// The turn-taking among the classes that have an egress pool.
///
/// State changes only when a frame is served (timing rule 24).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduler {
    kind: Scheduling,
    weights: PerClass<u32>,
    class_count: usize,
    /// Whose turn it is (weighted round robin), or who was served last (round robin).
    current: usize,
    /// Packets left in the turn of `current`.
    left: u32,
}

impl Scheduler {
    /// * `class_count`: classes 0 to `class_count` − 1 take part.
    pub fn new(kind: Scheduling, weights: PerClass<u32>, class_count: usize) -> Self {
        assert!(class_count <= Class::COUNT, "there are eight classes");
        let highest = class_count.saturating_sub(1);
        // Round robin starts with class 0, the one after the highest; weighted round robin with the highest itself.
        Self { kind, weights, class_count, current: highest, left: weights.get(highest).copied().unwrap_or(0) }
    }

    /// The class to serve among those that `can_send`; it is then taken as served.
    pub fn serve(&mut self, can_send: impl Fn(Class) -> bool) -> Option<Class> {
        let n = self.class_count;
        let class_at = |index: usize| Class::all().nth(index % n).filter(|&class| can_send(class));
        match self.kind {
            Scheduling::StrictPriority => (0..n).rev().find_map(class_at),
            Scheduling::RoundRobin => {
                let class = (1..=n).find_map(|step| class_at(self.current + step))?;
                self.current = class.index();
                Some(class)
            }
            Scheduling::WeightedRoundRobin => {
                if self.left > 0 && class_at(self.current).is_some() {
                    self.left -= 1;
                    return class_at(self.current);
                }
                // The turn is over, or lost because the class is empty or paused when asked.
                let weighted = |step: &usize| self.weights[(self.current + step) % n] > 0;
                let class = (1..=n).filter(weighted).find_map(|step| class_at(self.current + step))?;
                self.current = class.index();
                self.left = self.weights[self.current] - 1;
                Some(class)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(kind: Scheduling, rounds: usize, can_send: impl Fn(usize, u8) -> bool) -> Vec<u8> {
        let mut scheduler = Scheduler::new(kind, [1, 3, 2, 0, 0, 0, 0, 0], 3);
        (0..rounds).filter_map(|round| scheduler.serve(|class| can_send(round, class.get()))).map(Class::get).collect()
    }

    #[test]
    fn strict_priority_serves_the_highest_class() {
        let order = served(Scheduling::StrictPriority, 4, |round, class| class <= 1 || round < 2);
        assert_eq!(order, [2, 2, 1, 1]);
    }

    #[test]
    fn round_robin_starts_with_class_0_and_skips_who_cannot_send() {
        assert_eq!(served(Scheduling::RoundRobin, 4, |_, _| true), [0, 1, 2, 0]);
        assert_eq!(served(Scheduling::RoundRobin, 4, |_, class| class != 1), [0, 2, 0, 2]);
    }

    #[test]
    fn weighted_round_robin_starts_with_the_highest_class_then_wraps_and_goes_upward() {
        assert_eq!(served(Scheduling::WeightedRoundRobin, 8, |_, _| true), [2, 2, 0, 1, 1, 1, 2, 2]);
    }

    #[test]
    fn a_class_that_is_empty_when_asked_loses_the_rest_of_its_turn() {
        // Class 2 cannot send in the second round: class 0 is next, and class 2 waits for its next turn.
        let order = served(Scheduling::WeightedRoundRobin, 6, |round, class| class != 2 || round != 1);
        assert_eq!(order, [2, 0, 1, 1, 1, 2]);
    }

    #[test]
    fn the_rest_of_a_turn_is_kept_while_nobody_can_send() {
        let order = served(Scheduling::WeightedRoundRobin, 4, |round, _| round != 1);
        assert_eq!(order, [2, 2, 0], "the idle round changed nothing");
    }

    #[test]
    fn a_class_alone_gets_turn_after_turn() {
        assert_eq!(served(Scheduling::WeightedRoundRobin, 3, |_, class| class == 0), [0, 0, 0]);
    }
}
