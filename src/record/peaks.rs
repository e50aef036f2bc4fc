//! How full the buffers became: what there is to say where no pause fired.

use std::io;

use crate::base::{Class, NodeId, Octets, PortId};
use crate::trace::{Event, EventKind, Names, Sink};

/// The highest occupancy of every pool, as events reported it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peaks {
    nodes: Vec<NodePeaks>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct NodePeaks {
    egress: [Octets; Class::COUNT],
    /// Per port: switches keep one account for each.
    ingress: Vec<[Octets; Class::COUNT]>,
}

impl Peaks {
    pub fn new(names: &Names) -> Self {
        let ingress = |ports| vec![[Octets::ZERO; Class::COUNT]; ports];
        let node = |ports| NodePeaks { ingress: ingress(ports), ..NodePeaks::default() };
        Self { nodes: names.nodes.iter().map(|names| node(names.ports.len())).collect() }
    }

    /// The peak of an egress pool, segments being fetched included.
    pub fn egress(&self, node: NodeId, class: Class) -> Octets {
        self.nodes[node.index()].egress[class.index()]
    }

    /// The peak of an ingress pool, as far as frames that arrived at `port` saw it.
    pub fn ingress(&self, node: NodeId, port: PortId, class: Class) -> Octets {
        self.nodes[node.index()].ingress[port.index()][class.index()]
    }
}

impl Sink for Peaks {
    fn record(&mut self, event: &Event) -> io::Result<()> {
        let node = &mut self.nodes[event.node.index()];
        let (peak, occupancy) = match event.kind {
            EventKind::SegmentReserved { class, occupancy, .. } => (&mut node.egress[class.index()], occupancy),
            // PFC frames name a class but are not charged to it.
            EventKind::FrameReceived { port, packet, occupancy, .. } if !packet.kind.is_pfc() => {
                (&mut node.ingress[port.index()][packet.class.index()], occupancy)
            }
            _ => return Ok(()),
        };
        *peak = occupancy.max(*peak);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::story::{self, A, B, PORT, at, qpn};
    use super::*;
    use crate::base::Psn;

    #[test]
    fn the_highest_occupancy_stays() {
        let mut peaks = Peaks::new(&story::names());
        let class = Class::default();
        let reserved = |occupancy| {
            let (payload, occupancy) = (Octets::new(1), Octets::new(occupancy));
            at(0, A, EventKind::SegmentReserved { qpn: qpn(2), psn: Psn::new(0), payload, class, occupancy })
        };
        story::play(&[reserved(10), reserved(30), reserved(20)], &mut peaks).unwrap();
        story::play(&story::clean(), &mut peaks).unwrap();
        assert_eq!(peaks.egress(A, class).get(), 30);
        assert_eq!(peaks.ingress(B, PORT, class).get(), 4_136);
        assert_eq!(peaks.ingress(A, PORT, class).get(), 0);
    }
}
