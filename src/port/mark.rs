//! ECN marking: how long a queue is on average, and whether a packet learns of it.

use crate::base::{Octets, Rng, Share};

/// When a queue marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkConfig {
    /// MinThreshold: no packet is marked while the average is below it.
    pub kmin: Octets,
    /// MaxThreshold: every packet is marked while the average is here or above.
    pub kmax: Octets,
    /// MaxMarkProbability: what the chance of a mark rises to just below `kmax`. Range: 0 to 1.
    pub pmax: Share,
    /// EwmaWeight: what a new length weighs against the average. Range: above 0, up to 1.
    pub weight: Share,
}

/// The length of one queue, its average, and the marking decision.
///
/// The average moves only when a packet joins: a queue that drains keeps the average it had, and decides by it.
///
/// * Units: octets as charged to the switch's buffer. Averages and chances are binary64, and no operation is fused:
///   the same numbers on every machine.
/// * Order: [`Marker::join`] when a packet arrives; when its transmission starts [`Marker::leave`], then
///   [`Marker::decide`] if it may be marked.
/// * Source: congestion.md §4.3; timing rule 12.
#[derive(Clone, Debug, PartialEq)]
pub struct Marker {
    config: MarkConfig,
    length: Octets,
    average: f64,
}

impl Default for MarkConfig {
    /// For a small laboratory: the thresholds of the model's large switch would never be reached there.
    fn default() -> Self {
        Self {
            kmin: Octets::new(300_000),
            kmax: Octets::new(1_200_000),
            pmax: Share::from_percent(100),
            weight: Share::from_percent(10),
        }
    }
}

/// Exact decimals become the nearest binary64: both operands of the division are whole and small enough.
fn binary(share: Share) -> f64 {
    share.parts() as f64 / Share::UNIT as f64
}

fn count(octets: Octets) -> f64 {
    octets.get() as f64
}

impl Marker {
    pub const fn new(config: MarkConfig) -> Self {
        Self { config, length: Octets::ZERO, average: 0.0 }
    }

    /// A packet joins the queue.
    pub fn join(&mut self, charge: Octets) {
        self.length += charge;
        let weight = binary(self.config.weight);
        self.average = (1.0 - weight) * self.average + weight * count(self.length);
    }

    /// A packet's transmission starts.
    ///
    /// * Panics: if more leaves than has joined (caller's bug).
    pub fn leave(&mut self, charge: Octets) {
        self.length -= charge;
    }

    /// What waits, without the packet on the line.
    pub const fn length(&self) -> Octets {
        self.length
    }

    pub const fn average(&self) -> f64 {
        self.average
    }

    /// The chance of a mark at the present average.
    pub fn probability(&self) -> f64 {
        let (kmin, kmax) = (count(self.config.kmin), count(self.config.kmax));
        if self.average < kmin {
            0.0
        } else if self.average >= kmax {
            1.0
        } else {
            binary(self.config.pmax) * (self.average - kmin) / (kmax - kmin)
        }
    }

    /// Whether the packet whose transmission starts is marked. Takes a number from `rng` only between the thresholds:
    /// a decision without doubt leaves the stream as it was.
    pub fn decide(&self, rng: &mut Rng) -> bool {
        if self.average < count(self.config.kmin) {
            false
        } else if self.average >= count(self.config.kmax) {
            true
        } else {
            rng.unit() < self.probability()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue whose average is `average`: with weight 1 it is the length.
    fn queue(average: u64, config: MarkConfig) -> Marker {
        let mut marker = Marker::new(MarkConfig { weight: Share::from_percent(100), ..config });
        marker.join(Octets::new(average));
        marker
    }

    fn datacenter() -> MarkConfig {
        let (kmin, kmax) = (Octets::new(400_000), Octets::new(1_600_000));
        MarkConfig { kmin, kmax, pmax: Share::from_percent(20), ..MarkConfig::default() }
    }

    /// Pmax 0.2, 400/1600 KB: the vectors of congestion.md §4.3.
    #[test]
    fn the_chance_of_a_mark_rises_to_pmax_and_jumps_to_one() {
        for (average, chance) in [
            (0, 0.0),
            (399_999, 0.0),
            (400_000, 0.0),
            (700_000, 0.05),
            (1_000_000, 0.1),
            (1_599_999, 0.199_999_83),
            (1_600_000, 1.0),
            (9_000_000, 1.0),
        ] {
            let found = queue(average, datacenter()).probability();
            assert!((found - chance).abs() < 5e-9, "{average}: {found}");
        }
    }

    #[test]
    fn only_a_decision_in_doubt_takes_a_random_number() {
        let fresh = Rng::new(1).next_u64();
        for (average, certain) in [(399_999, Some(false)), (400_000, None), (1_599_999, None), (1_600_000, Some(true))]
        {
            let mut rng = Rng::new(1);
            let marked = queue(average, datacenter()).decide(&mut rng);
            match certain {
                Some(expected) => assert_eq!((marked, rng.next_u64()), (expected, fresh), "{average}"),
                None => assert_ne!(rng.next_u64(), fresh, "{average}"),
            }
        }
    }

    #[test]
    fn marks_come_as_often_as_their_chance_says() {
        let queue = queue(700_000, datacenter());
        let mut rng = Rng::new(1);
        let marks = (0..100_000).filter(|_| queue.decide(&mut rng)).count();
        // 5,000 expected, standard deviation 69.
        assert!((4_700..5_300).contains(&marks), "{marks}");
    }

    #[test]
    fn the_average_moves_at_admission_only() {
        let mut marker = Marker::new(MarkConfig::default());
        marker.join(Octets::new(25_000));
        marker.join(Octets::new(25_000));
        // 0.9 x 2,500 + 0.1 x 50,000.
        assert_eq!((marker.length().get(), marker.average()), (50_000, 7_250.0));
        marker.leave(Octets::new(25_000));
        assert_eq!((marker.length().get(), marker.average()), (25_000, 7_250.0));
    }

    #[test]
    fn equal_thresholds_are_a_step() {
        let config = MarkConfig { kmin: Octets::new(500), kmax: Octets::new(500), ..MarkConfig::default() };
        assert_eq!([499, 500, 501].map(|average| queue(average, config).probability()), [0.0, 1.0, 1.0]);
    }
}
