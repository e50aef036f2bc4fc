//! Which frame a switch has marked: it is decided when a frame's transmission starts, and told when that has ended.

use std::collections::BTreeSet;

use crate::base::{NodeId, PortId};
use crate::trace::{Event, EventKind};

/// Ports whose frame on the line has been marked. A port has one frame on the line at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Marked(BTreeSet<(NodeId, PortId)>);

impl Marked {
    pub fn hear(&mut self, event: &Event) {
        if let EventKind::CeMarked { port, .. } = event.kind {
            self.0.insert((event.node, port));
        }
    }

    /// Whether the frame that has just left `port` was marked there.
    pub fn take(&mut self, node: NodeId, port: PortId) -> bool {
        self.0.remove(&(node, port))
    }
}
