//! Names for things that are numbers.

use std::fmt;

use serde::Serialize;

/// A node of the scenario: NICs first, then switches, each in file order (timing rule 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct NodeId(pub u16);

/// A port of a node, 0-based, in the order of the scenario's links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct PortId(pub u16);

/// A message of the scenario, 0-based, in file order of the posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct MessageId(pub u32);

/// A fault of the scenario, 0-based, in file order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct RuleId(pub u16);

/// A traffic class: PFC priority, pool index and DSCP ÷ 8 in one.
///
/// * Range: 0..8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Class(u8);

/// A queue pair number.
///
/// * Range: 24 bits. 0 and 1 are reserved, 0xFFFFFF is multicast; see [`Qpn::is_usable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Qpn(u32);

impl NodeId {
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl PortId {
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl RuleId {
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl MessageId {
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Class {
    pub const COUNT: usize = 8;
    /// RdmaDataPacketTC's default.
    pub const DATA: Self = Self(0);
    /// RdmaControlPacketTC's default.
    pub const CONTROL: Self = Self(1);

    /// `None` unless `class` is in 0..8.
    pub const fn new(class: u8) -> Option<Self> {
        if (class as usize) < Self::COUNT { Some(Self(class)) } else { None }
    }

    /// The class a DSCP stands for: its three class-selector bits.
    ///
    /// * Range: the low six bits of `dscp` count.
    pub const fn from_dscp(dscp: u8) -> Self {
        Self((dscp & 0x3f) >> 3)
    }

    /// CS0..CS7: the class times 8.
    pub const fn dscp(self) -> u8 {
        self.0 << 3
    }

    pub const fn get(self) -> u8 {
        self.0
    }

    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// All classes, lowest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator {
        (0..Self::COUNT as u8).map(Self)
    }
}

impl Qpn {
    /// Queue pairs that exist without a connection take their numbers from here up (model.md T3).
    pub const IMPLICIT_BASE: u32 = 0x80_0000;
    const MAX: u32 = 0xff_ffff;
    /// Where a packet names no queue pair.
    pub const NONE: Self = Self(0);

    /// `None` if `qpn` has more than 24 bits.
    pub const fn new(qpn: u32) -> Option<Self> {
        if qpn <= Self::MAX { Some(Self(qpn)) } else { None }
    }

    pub const fn get(self) -> u32 {
        self.0
    }

    /// 2..=0xFFFFFE: neither a management queue pair nor multicast.
    pub const fn is_usable(self) -> bool {
        self.0 >= 2 && self.0 < Self::MAX
    }

    pub const fn is_implicit(self) -> bool {
        self.0 >= Self::IMPLICIT_BASE && self.0 < Self::MAX
    }
}

impl fmt::Display for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("0x{:06x}", self.0))
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_travels_as_its_class_selector_codepoint() {
        for class in Class::all() {
            assert_eq!(Class::from_dscp(class.dscp()), class);
        }
        assert_eq!(Class::from_dscp(46).get(), 5, "EF maps to class 5");
        assert_eq!(Class::new(8), None);
    }

    #[test]
    fn reserved_queue_pair_numbers_are_known() {
        let usable = |n| Qpn::new(n).is_some_and(Qpn::is_usable);
        assert!(!usable(0) && !usable(1) && usable(2) && usable(0xff_fffe) && !usable(0xff_ffff));
        assert_eq!(Qpn::new(0x100_0000), None);
    }
}
