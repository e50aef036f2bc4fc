//! The queues of switches: how long they became, and how many packets they marked.

use std::io;

use super::super::words;
use crate::base::{Class, NodeId, Octets, PortId};
use crate::trace::{Event, EventKind, Names, Sink};

/// Peaks and marks by node, port and class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueUse {
    nodes: Vec<Vec<[OneQueue; Class::COUNT]>>,
}

/// What became of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OneQueue {
    /// The most that waited, as it is charged to the switch's buffer.
    pub peak: Octets,
    /// The highest that the average rose to by which packets are marked, rounded half up.
    pub average_peak: Octets,
    /// Packets on which CE was set.
    pub marks: u64,
}

impl QueueUse {
    pub fn new(names: &Names) -> Self {
        let node = |ports| vec![[OneQueue::default(); Class::COUNT]; ports];
        Self { nodes: names.nodes.iter().map(|names| node(names.ports.len())).collect() }
    }

    pub fn of(&self, node: NodeId, port: PortId, class: Class) -> OneQueue {
        self.nodes[node.index()][port.index()][class.index()]
    }

    /// Every queue of every port, in the order of nodes, ports and classes.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, PortId, Class, OneQueue)> {
        (0..).map(NodeId).zip(&self.nodes).flat_map(|(node, ports)| {
            (0..).map(PortId).zip(ports).flat_map(move |(port, classes)| {
                Class::all().zip(classes).map(move |(class, queue)| (node, port, class, *queue))
            })
        })
    }
}

impl Sink for QueueUse {
    fn record(&mut self, event: &Event) -> io::Result<()> {
        let node = &mut self.nodes[event.node.index()];
        match event.kind {
            EventKind::QueueDepthChanged { port, class, depth, average } => {
                let queue = &mut node[port.index()][class.index()];
                queue.peak = depth.max(queue.peak);
                queue.average_peak = words::whole(average).max(queue.average_peak);
            }
            EventKind::CeMarked { port, packet, .. } => node[port.index()][packet.class.index()].marks += 1,
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::story::{self, A, B, PORT, at, depth, marked};
    use super::*;

    #[test]
    fn peaks_stay_and_marks_add_up() {
        let mut queues = QueueUse::new(&story::names());
        let events = [depth(1, B, 4_136, 413.6), depth(2, B, 8_272, 1_199.5), depth(3, B, 0, 1_199.4), marked(3, B)];
        story::play(&events, &mut queues).unwrap();
        story::play(&[marked(4, B), at(5, A, EventKind::GenerationIdle)], &mut queues).unwrap();
        let (peak, average_peak) = (Octets::new(8_272), Octets::new(1_200));
        assert_eq!(queues.of(B, PORT, Class::DATA), OneQueue { peak, average_peak, marks: 2 });
        assert_eq!(queues.of(A, PORT, Class::DATA), OneQueue::default());
        let used =
            queues.iter().filter(|(.., queue)| queue.marks > 0).map(|(node, port, class, _)| (node, port, class));
        assert_eq!(used.collect::<Vec<_>>(), [(B, PORT, Class::DATA)]);
    }
}
