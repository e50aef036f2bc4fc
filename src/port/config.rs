//! Attributes of the two buffers of a port, with the specification's defaults.

use crate::base::{Class, Octets, Share};

/// A value per class.
pub type PerClass<T> = [T; Class::COUNT];

/// How the classes of a buffer take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// The highest class with a packet.
    StrictPriority,
    /// One packet per class in turn.
    RoundRobin,
    /// Up to its weight in packets per class in turn.
    WeightedRoundRobin,
}

/// The seeds' EgressBufferManager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressConfig {
    /// TotalBufferSize.
    pub total: Octets,
    /// PoolAllocationVector. The non-zero entries come first.
    pub shares: PerClass<Share>,
    /// QueueSchedulingType.
    pub scheduling: Scheduling,
    /// WRRQueueWeights, in packets.
    pub weights: PerClass<u32>,
}

/// The seeds' IngressBufferManager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressConfig {
    /// TotalBufferSize.
    pub total: Octets,
    /// PoolAllocationVector. The non-zero entries come first.
    pub shares: PerClass<Share>,
    /// QueueSchedulingType: read and checked; received data is written in arrival order whatever it says.
    pub scheduling: Scheduling,
    /// WRRQueueWeights: read and checked, like `scheduling`.
    pub weights: PerClass<u32>,
    /// PFCEnableVector: for which classes this port sends pauses.
    pub pfc_enabled: PerClass<bool>,
    /// PfcStaticXoffThreshold, a share of the class's pool.
    pub xoff: PerClass<Share>,
    /// PfcXonResumeThreshold, a share of the class's pool.
    pub xon: PerClass<Share>,
    /// QuantaValue: how long a pause asks for, in units of 512 bit times.
    pub quanta: PerClass<u16>,
}

impl IngressConfig {
    /// Xoff and Xon of a class whose pool has this size; `None` if PFC is not enabled for it.
    ///
    /// * Source: timing rule 30.
    pub fn thresholds(&self, class_index: usize, pool: Octets) -> Option<(Octets, Octets)> {
        let is_enabled = self.pfc_enabled[class_index];
        is_enabled.then(|| (self.xoff[class_index].ceil_of(pool), self.xon[class_index].floor_of(pool)))
    }
}

/// The first two classes' values; all others zero.
fn first_two<T: Copy + Default>(class_0: T, class_1: T) -> PerClass<T> {
    let mut all = [T::default(); Class::COUNT];
    all[0] = class_0;
    all[1] = class_1;
    all
}

impl Default for EgressConfig {
    fn default() -> Self {
        Self {
            total: Octets::new(256_000),
            shares: first_two(Share::from_percent(90), Share::from_percent(10)),
            scheduling: Scheduling::StrictPriority,
            weights: first_two(1, 3),
        }
    }
}

impl Default for IngressConfig {
    fn default() -> Self {
        Self {
            total: Octets::new(4_000_000),
            shares: first_two(Share::from_percent(90), Share::from_percent(10)),
            scheduling: Scheduling::StrictPriority,
            weights: first_two(1, 3),
            pfc_enabled: first_two(true, true),
            xoff: first_two(Share::from_percent(80), Share::from_percent(80)),
            xon: first_two(Share::from_percent(40), Share::from_percent(40)),
            quanta: first_two(65_535, 65_535),
        }
    }
}
