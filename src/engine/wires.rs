//! What a frame crosses between two ports: the seam between the model and the world.

use bytes::Bytes;

use crate::record::counted;

/// One direction of a link: link number × 2, plus 1 from the second end to the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop(u32);

impl Hop {
    pub const fn new(link_index: u32, from_end: u32) -> Self {
        Self(link_index * 2 + from_end)
    }

    pub const fn link_index(self) -> usize {
        self.0 as usize / 2
    }

    /// 0 if the frame goes from the link's first end to its second, 1 the other way.
    pub const fn from_end(self) -> usize {
        self.0 as usize % 2
    }

    /// A dense number, to index tables by.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Why a frame did not come out of a wire as it went in. Each of these ends the run: the books would not balance.
#[derive(Debug, thiserror::Error)]
pub enum WiresError {
    #[error("{port}: the kernel delivered nothing within {waited_ms} ms after a frame of {octets} B was sent")]
    Lost { port: String, octets: usize, waited_ms: u64 },
    #[error("{port}: the kernel dropped {} because the socket's receive buffer was full", counted(*frames, "frame"))]
    KernelDrops { port: String, frames: u64 },
    #[error("{port}: a frame of {octets} B came back different, first at octet {offset}")]
    Altered { port: String, octets: usize, offset: usize },
    #[error("{port}: {action} failed: {source}")]
    Socket { port: String, action: &'static str, source: std::io::Error },
}

/// A frame that the engine did not send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignFrame {
    /// `<node>:<peer>` of the port at which it arrived.
    pub port: String,
    /// Ethernet header and what follows, cut to 64 octets.
    pub head: Bytes,
    pub octets: usize,
}

/// Foreign frames seen so far: all counted, the first few kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignFrames {
    pub count: u64,
    pub first: Vec<ForeignFrame>,
}

/// Frames cross a hop one at a time, in lockstep: what is returned is what the far end's socket read.
pub trait Wires: std::fmt::Debug {
    /// Carries `frame` (destination MAC to ICRC, no FCS) over `hop` and returns it as it arrived.
    ///
    /// * Errors: the frame was lost, altered, or the socket failed; the run cannot go on.
    fn carry(&mut self, hop: Hop, frame: &Bytes) -> Result<Bytes, WiresError>;

    /// Last look at every port when the run is over: late foreign frames, frames that the kernel lost.
    fn finish(&mut self) -> Result<(), WiresError>;

    /// Frames that arrived without having been sent by [`Wires::carry`].
    fn foreign(&self) -> &ForeignFrames;
}

/// Wires without a kernel: the same model, the same results, no sockets.
#[derive(Debug, Default)]
pub struct MemoryWires {
    foreign: ForeignFrames,
}

impl Wires for MemoryWires {
    fn carry(&mut self, _: Hop, frame: &Bytes) -> Result<Bytes, WiresError> {
        Ok(frame.clone())
    }

    fn finish(&mut self) -> Result<(), WiresError> {
        Ok(())
    }

    fn foreign(&self) -> &ForeignFrames {
        &self.foreign
    }
}
