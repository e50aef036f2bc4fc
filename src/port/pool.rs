//! Buffer pools: who holds how many octets.

use super::PerClass;
use crate::base::{Class, Octets, Share};

/// The pool of one class in one buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    size: Octets,
    occupancy: Octets,
    peak: Octets,
}

/// The pools of a buffer: one for every class up to the last non-zero share, none after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pools(Vec<Pool>);

impl Pool {
    pub const fn new(size: Octets) -> Self {
        Self { size, occupancy: Octets::ZERO, peak: Octets::ZERO }
    }

    pub const fn size(&self) -> Octets {
        self.size
    }

    pub const fn occupancy(&self) -> Octets {
        self.occupancy
    }

    /// The highest occupancy so far.
    pub const fn peak(&self) -> Octets {
        self.peak
    }

    pub fn fits(&self, octets: Octets) -> bool {
        self.occupancy + octets <= self.size
    }

    /// Charges without asking: control packets may pass the pool's size (model.md T12). Others ask [`Pool::fits`] first.
    pub fn charge(&mut self, octets: Octets) {
        self.occupancy += octets;
        self.peak = self.peak.max(self.occupancy);
    }

    /// * Panics: if more is released than was charged; the books would not balance.
    pub fn release(&mut self, octets: Octets) {
        self.occupancy -= octets;
    }

    /// Half of it or less is taken: a stopped generation restarts (timing rule 7).
    pub fn is_half_empty(&self) -> bool {
        self.occupancy + self.occupancy <= self.size
    }
}

impl Pools {
    /// Divides `total` by `shares`.
    ///
    /// * Source: seeds/001 "Buffer pools"; timing rule 30.
    pub fn new(total: Octets, shares: &PerClass<Share>) -> Self {
        let count = shares.iter().rposition(|share| !share.is_zero()).map_or(0, |last| last + 1);
        Self(shares[..count].iter().map(|share| Pool::new(share.floor_of(total))).collect())
    }

    pub fn get(&self, class: Class) -> Option<&Pool> {
        self.0.get(class.index())
    }

    pub fn get_mut(&mut self, class: Class) -> Option<&mut Pool> {
        self.0.get_mut(class.index())
    }

    /// How many classes have a pool: classes 0 to `count` − 1.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Lowest class first.
    pub fn iter(&self) -> impl Iterator<Item = (Class, &Pool)> {
        Class::all().zip(&self.0)
    }

    /// What all pools hold together.
    pub fn occupancy(&self) -> Octets {
        self.0.iter().map(Pool::occupancy).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::{EgressConfig, IngressConfig};

    #[test]
    fn default_pools_have_the_sizes_of_the_specification() {
        let egress = EgressConfig::default();
        let sizes = |pools: Pools| pools.iter().map(|(_, pool)| pool.size().get()).collect::<Vec<_>>();
        assert_eq!(sizes(Pools::new(egress.total, &egress.shares)), [230_400, 25_600]);
        let ingress = IngressConfig::default();
        assert_eq!(sizes(Pools::new(ingress.total, &ingress.shares)), [3_600_000, 400_000]);
    }

    #[test]
    fn a_class_pool_holds_55_full_packets_and_is_half_empty_after_28_have_left() {
        let mut pool = Pool::new(Octets::new(230_400));
        let frame = Octets::new(4_154);
        let mut held = 0;
        while pool.fits(frame) {
            pool.charge(frame);
            held += 1;
        }
        assert_eq!(held, 55);
        let mut released = 0;
        while !pool.is_half_empty() {
            pool.release(frame);
            released += 1;
        }
        assert_eq!((released, pool.occupancy().get()), (28, 112_158));
        assert_eq!(pool.peak().get(), 228_470);
    }
}
