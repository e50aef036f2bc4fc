//! Frames across real veth pairs, one at a time.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fmt, io, mem, thread};

use bytes::Bytes;

use super::packet_socket::{PacketSocket, Received};
use crate::engine::{ForeignFrame, ForeignFrames, Hop, Wires, WiresError};
use crate::netns::{self, End, NamedRun, Options, Topology};
use crate::scenario::{LinkEnd, Plan};

/// How long a frame may take to come out. It is there at once unless the machine is set up otherwise, see
/// [`VethWires::late_count`].
const DEADLINE: Duration = Duration::from_secs(2);
/// How long, once a frame has arrived that is perhaps the sent one, altered.
const SUSPECT_DEADLINE: Duration = Duration::from_millis(100);
/// Foreign frames that are kept; the others are only counted.
const FOREIGN_KEPT: usize = 8;
/// Octets of a foreign frame that are kept.
const HEAD_OCTETS: usize = 64;
/// Hops between two looks at a port's drop counter (0.2 µs each).
const HOPS_PER_LOOK: u32 = 4_096;
/// Threads that close sockets.
const CLOSERS_MAX: usize = 32;
/// Destination, source, ethertype.
const ETHERNET_OCTETS: usize = 14;

/// [`Wires`] over veth pairs: each frame is sent at one port's AF_PACKET socket and read from its peer's.
///
/// A frame that was read and is not the one sent is *foreign*, and the wait goes on, unless it has the sent frame's
/// length and Ethernet header. Then it is a suspect: should the sent frame itself still arrive, the suspect was foreign;
/// should it not, the suspect is that frame, *altered*. (Only a frame altered in length or Ethernet header is reported as
/// lost, with the altered one among the foreign frames. Either ends the run.)
///
/// * Shape: frames of 14..=9,314 octets, destination MAC first, no FCS, no 802.1Q tag (the kernel takes it off).
/// * Order: any hop at any time; one frame in flight at a time, as `carry` returns it.
/// * Cost: per hop 1.0 µs for 60 octets, 1.3 for 4,154, 1.7 for 9,290, up to 4 µs with noisy neighbours: two system
///   calls, one allocation, one comparison (measured: tests/wires.rs::a_hop_costs_microseconds, 2 virtual CPUs,
///   Linux 6.18). Dropping the wires takes 15 ms for one link, 110 ms for 69.
/// * Source: measured: tests/beliefs.rs; sockets.md.
pub struct VethWires {
    cables: Vec<[Port; 2]>,
    foreign: ForeignFrames,
    late_count: u64,
    named: Option<NamedRun>,
}

struct Port {
    socket: PacketSocket,
    /// `<node>:<peer>`
    name: String,
    hops_until_look: u32,
}

impl VethWires {
    /// Builds the topology: cable `n` carries hops 2n (from its first end) and 2n + 1.
    ///
    /// * Errors: as [`netns::build`]; nothing is left behind.
    pub fn create(topology: &Topology, options: &Options) -> Result<Self, netns::Error> {
        let built = netns::build(topology, options)?;
        let port = |cable, from_end, socket| Port {
            socket: PacketSocket::new(socket),
            name: topology.port_name(cable, from_end),
            hops_until_look: HOPS_PER_LOOK,
        };
        let cables = built
            .sockets
            .into_iter()
            .enumerate()
            .map(|(cable, [first, second])| [port(cable, 0, first), port(cable, 1, second)])
            .collect();
        Ok(Self { cables, foreign: ForeignFrames::default(), late_count: 0, named: built.named })
    }

    /// Builds what a plan needs: a namespace per node, a veth pair per link.
    ///
    /// * Errors: as [`VethWires::create`].
    pub fn for_plan(plan: &Plan, options: &Options) -> Result<Self, netns::Error> {
        let end = |end: LinkEnd| End { node: end.node.index(), port: end.port.index() };
        let topology = Topology {
            nodes: plan.names().nodes.into_iter().map(|node| node.name).collect(),
            cables: plan.links.iter().map(|link| link.ends.map(end)).collect(),
        };
        Self::create(&topology, options)
    }

    /// Frames that could not be read at once after they had been sent.
    ///
    /// Zero on an ordinary machine. Receive packet steering to another CPU or threaded NAPI make nearly all frames late
    /// and the run slow, but not wrong.
    pub fn late_count(&self) -> u64 {
        self.late_count
    }

    /// Where the named namespaces are, in the order of the nodes; empty if they have no names.
    pub fn names(&self) -> &[PathBuf] {
        self.named.as_ref().map_or(&[], NamedRun::paths)
    }

    /// The socket from which frames of `hop` are sent.
    ///
    /// What is sent on it other than by [`Wires::carry`] is foreign at the far end.
    pub fn sender(&self, hop: Hop) -> BorrowedFd<'_> {
        self.cables[hop.link_index()][hop.from_end()].socket.as_fd()
    }
}

impl Wires for VethWires {
    fn carry(&mut self, hop: Hop, frame: &Bytes) -> Result<Bytes, WiresError> {
        let [first, second] = &mut self.cables[hop.link_index()];
        let (from, to) = if hop.from_end() == 0 { (first, second) } else { (second, first) };
        from.socket.send(frame).map_err(|error| from.error("sending a frame", error))?;
        to.hops_until_look -= 1;
        if to.hops_until_look == 0 {
            to.hops_until_look = HOPS_PER_LOOK;
            to.check_drops()?;
        }
        match to.receive(frame.len())? {
            Some(received) if received.is(frame) => Ok(received.frame),
            other => {
                self.late_count += u64::from(other.is_none());
                to.search(frame, other, &mut self.foreign)
            }
        }
    }

    fn finish(&mut self) -> Result<(), WiresError> {
        for port in self.cables.iter().flatten() {
            while let Some(received) = port.receive(HEAD_OCTETS)? {
                port.note(received, &mut self.foreign);
            }
        }
        self.cables.iter().flatten().try_for_each(Port::check_drops)
    }

    fn foreign(&self) -> &ForeignFrames {
        &self.foreign
    }
}

/// Closing a packet socket waits for an RCU grace period, about 14 ms where measured, and those of one thread follow each
/// other: 70 links would take two seconds. Waits in several threads are served by the same periods.
impl Drop for VethWires {
    fn drop(&mut self) {
        let mut ports: Vec<Port> = mem::take(&mut self.cables).into_iter().flatten().collect();
        let share = ports.len().div_ceil(CLOSERS_MAX).max(1);
        thread::scope(|scope| {
            while ports.len() > share {
                let part = ports.split_off(ports.len() - share);
                // Where no thread is to be had the closure is dropped here, and its sockets with it.
                drop(thread::Builder::new().spawn_scoped(scope, move || drop(part)));
            }
        });
    }
}

impl Port {
    /// Goes on reading until `sent` arrives.
    fn search(
        &self,
        sent: &Bytes,
        mut next: Option<Received>,
        foreign: &mut ForeignFrames,
    ) -> Result<Bytes, WiresError> {
        #[expect(clippy::disallowed_methods, reason = "this is `io`: how long the kernel may take is real time")]
        let start = Instant::now();
        let mut deadline = DEADLINE;
        let mut suspect: Option<Received> = None;
        loop {
            match next {
                Some(received) if received.is(sent) => {
                    if let Some(innocent) = suspect {
                        self.note(innocent, foreign);
                    }
                    return Ok(received.frame);
                }
                Some(received) if suspect.is_none() && received.resembles(sent) => {
                    deadline = deadline.min(start.elapsed() + SUSPECT_DEADLINE);
                    suspect = Some(received);
                }
                Some(received) => self.note(received, foreign),
                None => {
                    // Everything that had arrived has been read. If anything was dropped, waiting is in vain.
                    self.check_drops()?;
                    let left = deadline.saturating_sub(start.elapsed());
                    if left.is_zero() {
                        return Err(self.verdict(sent, suspect, start.elapsed()));
                    }
                    self.socket.wait(left).map_err(|error| self.error("waiting for a frame", error))?;
                }
            }
            next = self.receive(sent.len())?;
        }
    }

    fn verdict(&self, sent: &Bytes, suspect: Option<Received>, waited: Duration) -> WiresError {
        let (port, octets) = (self.name.clone(), sent.len());
        match suspect {
            Some(altered) => {
                let same = altered.frame.iter().zip(sent).take_while(|(a, b)| a == b);
                WiresError::Altered { port, octets, offset: same.count() }
            }
            None => WiresError::Lost { port, octets, waited_ms: waited.as_millis() as u64 },
        }
    }

    fn receive(&self, octets_max: usize) -> Result<Option<Received>, WiresError> {
        self.socket.receive(octets_max).map_err(|error| self.error("receiving a frame", error))
    }

    fn check_drops(&self) -> Result<(), WiresError> {
        match self.socket.take_drops().map_err(|error| self.error("reading the drop counter", error))? {
            0 => Ok(()),
            frames => Err(WiresError::KernelDrops { port: self.name.clone(), frames }),
        }
    }

    fn note(&self, received: Received, foreign: &mut ForeignFrames) {
        foreign.count += 1;
        if foreign.first.len() < FOREIGN_KEPT {
            // A copy, so that 64 octets do not hold on to 9,000.
            let head = Bytes::copy_from_slice(&received.frame[..received.frame.len().min(HEAD_OCTETS)]);
            foreign.first.push(ForeignFrame { port: self.name.clone(), head, octets: received.octets });
        }
    }

    fn error(&self, action: &'static str, source: io::Error) -> WiresError {
        WiresError::Socket { port: self.name.clone(), action, source }
    }
}

impl Received {
    fn is(&self, sent: &Bytes) -> bool {
        self.octets == sent.len() && self.frame == sent
    }

    /// Nobody but the engine uses the model's MACs, so a frame with the same ones, the same ethertype and the same length
    /// is likely what the engine sent.
    fn resembles(&self, sent: &Bytes) -> bool {
        self.octets == sent.len() && self.frame.get(..ETHERNET_OCTETS) == sent.get(..ETHERNET_OCTETS)
    }
}

impl fmt::Debug for VethWires {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VethWires").field("cables", &self.cables.len()).field("foreign", &self.foreign.count).finish()
    }
}
