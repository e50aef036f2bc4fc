//! What an application makes on a device: completion queues, memory regions, queue pairs.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use super::session::{Memory, Session, unexpected};
use super::{Error, WorkRequest};
use crate::ring::control::{Event, QueuePairRequest, Reply, Request};
use crate::ring::{self, Consumer, Cqe, Geometry, MAX_SLOT, Producer, ReceiveEntry, ScatterList, Sge};

/// How much emulated time passes in a poll that finds nothing, at most: until then, or until a completion comes.
const POLL_PS: u64 = 1_000_000;
/// Longer WQEs are rung for like any other instead of travelling with the doorbell.
///
/// * Source: specification R4; our choice, no source gives the ceiling of real hardware.
pub const BLUE_FLAME_MAX: usize = 256;

pub(super) type Shared = Rc<RefCell<Session>>;

/// A completion queue.
#[derive(Clone)]
pub struct CompletionQueue(Rc<CompletionQueueInner>);

struct CompletionQueueInner {
    session: Shared,
    number: u32,
    ring: RefCell<Consumer<Memory>>,
}

impl CompletionQueue {
    pub(super) fn create(session: &Shared, entries: u32) -> Result<Self, Error> {
        let (number, memory) = match session.borrow_mut().call(&Request::CreateCq { entries })? {
            (Reply::CqCreated { cq }, Some(memory)) => (cq, memory),
            (reply, _) => return Err(unexpected(&reply)),
        };
        let shape = Geometry::read(memory.as_ref())?;
        let ring = RefCell::new(Consumer::new(memory, shape)?);
        Ok(Self(Rc::new(CompletionQueueInner { session: Rc::clone(session), number, ring })))
    }

    /// The next completion. `None` if there is none: then up to 1 us of emulated time has passed, so that a loop of polls
    /// comes to an end.
    ///
    /// * Errors: the device is gone; nothing is under way that could bring a completion; the ring holds nonsense.
    /// * Cost: two loads and the copy of a slot if there is one, a turn of the emulation if there is none.
    pub fn poll_cq(&self) -> Result<Option<Cqe>, Error> {
        if let Some(cqe) = self.peek()? {
            return Ok(Some(cqe));
        }
        let mut session = self.0.session.borrow_mut();
        let until = session.now_ps.saturating_add(POLL_PS);
        session.wait(vec![self.0.number], Some(until))?;
        drop(session);
        self.peek()
    }

    /// The next completion, waiting for it as long as it takes. Nothing is polled in between: the process sleeps.
    ///
    /// * Errors: as of [`CompletionQueue::poll_cq`].
    pub fn wait(&self) -> Result<Cqe, Error> {
        loop {
            if let Some(cqe) = self.peek()? {
                return Ok(cqe);
            }
            self.0.session.borrow_mut().wait(vec![self.0.number], None)?;
        }
    }

    /// The next completion if there is one; no time passes.
    pub fn peek(&self) -> Result<Option<Cqe>, Error> {
        let mut buffer = [0; MAX_SLOT];
        let mut ring = self.0.ring.borrow_mut();
        let entry = ring.poll(&mut buffer)?;
        Ok(entry.map(Cqe::decode).transpose()?)
    }

    pub(super) fn number(&self) -> u32 {
        self.0.number
    }
}

impl Drop for CompletionQueueInner {
    fn drop(&mut self) {
        // If the device is gone, so is the queue.
        let _ = self.session.borrow_mut().call(&Request::DestroyCq { cq: self.number });
    }
}

/// Memory that the NIC may read and write, and the peers of this application too if it lets them.
///
/// The NIC knows it by addresses of its own, the same on every run: [`MemoryRegion::address`].
pub struct MemoryRegion {
    session: Shared,
    memory: Memory,
    octets: u64,
    address: u64,
    lkey: u32,
    rkey: u32,
}

impl MemoryRegion {
    pub(super) fn register(session: &Shared, octets: u64, remote_write: bool) -> Result<Self, Error> {
        let (reply, memory) = session.borrow_mut().call(&Request::RegMr { octets, remote_write })?;
        match (reply, memory) {
            (Reply::MrRegistered { lkey, rkey, address }, Some(memory)) if memory.octets() as u64 >= octets => {
                Ok(Self { session: Rc::clone(session), memory, octets, address, lkey, rkey })
            }
            (reply, _) => Err(unexpected(&reply)),
        }
    }

    pub fn octets(&self) -> u64 {
        self.octets
    }

    /// Where it begins, as the NIC and peers see it.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// For scatter lists of this application.
    pub fn lkey(&self) -> u32 {
        self.lkey
    }

    /// For WRITEs of peers.
    pub fn rkey(&self) -> u32 {
        self.rkey
    }

    /// Copies octets into the region.
    ///
    /// * Panics: if they leave it, like a slice.
    pub fn write(&self, offset: u64, octets: &[u8]) {
        ring::copy_in(self.memory.as_ref(), self.within(offset, octets.len()), octets);
    }

    /// Copies octets out of the region.
    ///
    /// * Panics: if they leave it, like a slice.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        ring::copy_out(self.memory.as_ref(), self.within(offset, into.len()), into);
    }

    /// An element of a scatter list: these octets of the region.
    pub fn sge(&self, range: Range<u64>) -> Sge {
        let length = range.end.saturating_sub(range.start);
        Sge { address: self.address + range.start, lkey: self.lkey, length: u32::try_from(length).unwrap_or(u32::MAX) }
    }

    fn within(&self, offset: u64, octets: usize) -> usize {
        let end = offset.checked_add(octets as u64);
        assert!(end.is_some_and(|end| end <= self.octets), "{octets} octets at {offset} of {}", self.octets);
        offset as usize
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        // If the device is gone, so is the region.
        let _ = self.session.borrow_mut().call(&Request::DeregMr { lkey: self.lkey });
    }
}

/// The shape of a queue pair. Starts as 64 entries of 64 octets each way, RNR timer 12 (0.64 ms), retries without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePairConfig {
    /// A power of two; one less can be posted at once.
    pub send_slots: u32,
    /// A power of two, 64..=512: room for more scatter elements or inline octets.
    pub send_slot_octets: u32,
    pub receive_slots: u32,
    pub receive_slot_octets: u32,
    /// The 5-bit code of the AETH: how long a sender waits that finds no receive.
    pub min_rnr_timer: u8,
    /// 0..=6, or 7 for ever.
    pub rnr_retry: u8,
    /// How often the transport timer (64 ms) may expire with no acknowledgement in between, 0..=7. An RNR NAK is none.
    pub retry: u8,
}

impl Default for QueuePairConfig {
    fn default() -> Self {
        Self {
            send_slots: 64,
            send_slot_octets: 64,
            receive_slots: 64,
            receive_slot_octets: 64,
            min_rnr_timer: 12,
            rnr_retry: 7,
            retry: 7,
        }
    }
}

/// Who is at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The name of its node in the scenario.
    pub node: String,
    pub qpn: u32,
    /// What it had to say when it connected: an address and a key, often.
    pub private_data: Vec<u8>,
}

/// A reliable connected queue pair.
pub struct QueuePair {
    session: Shared,
    qpn: u32,
    send: Producer<Memory>,
    receive: Producer<Memory>,
    /// They outlive the queue pair.
    _cqs: [CompletionQueue; 2],
}

impl QueuePair {
    pub(super) fn create(
        session: &Shared,
        send_cq: &CompletionQueue,
        receive_cq: &CompletionQueue,
        config: &QueuePairConfig,
    ) -> Result<Self, Error> {
        let asked = QueuePairRequest {
            send_cq: send_cq.number(),
            receive_cq: receive_cq.number(),
            send_slots: config.send_slots,
            send_slot_octets: config.send_slot_octets,
            receive_slots: config.receive_slots,
            receive_slot_octets: config.receive_slot_octets,
            min_rnr_timer: config.min_rnr_timer,
            rnr_retry: config.rnr_retry,
            retry: config.retry,
        };
        let (reply, memory) = session.borrow_mut().call(&Request::CreateQp(asked))?;
        match (reply, memory) {
            (Reply::QpCreated { qpn, receive_offset }, Some(memory)) => {
                let receive = memory.from(receive_offset)?;
                let (send_shape, receive_shape) = (Geometry::read(memory.as_ref())?, Geometry::read(receive.as_ref())?);
                Ok(Self {
                    session: Rc::clone(session),
                    qpn,
                    send: Producer::new(memory, send_shape)?,
                    receive: Producer::new(receive, receive_shape)?,
                    _cqs: [send_cq.clone(), receive_cq.clone()],
                })
            }
            (reply, _) => Err(unexpected(&reply)),
        }
    }

    pub fn qpn(&self) -> u32 {
        self.qpn
    }

    /// Connects to the queue pair that asks for the same service, on another node, and waits for it.
    ///
    /// * Shape: `service` up to 64 octets, `private_data` up to 92.
    /// * Errors: refused, if there is no way between the two nodes; stalled, if nobody will ever ask.
    pub fn connect(&mut self, service: &str, private_data: &[u8]) -> Result<Peer, Error> {
        let mut session = self.session.borrow_mut();
        let (qpn, service, private_data) = (self.qpn, service.to_owned(), private_data.to_owned());
        session.call(&Request::Connect { qpn, service, private_data })?;
        loop {
            let is_ours = |event: &Event| matches!(event, Event::Connected { qpn, .. } if *qpn == self.qpn);
            if let Some(at) = session.events.iter().position(is_ours)
                && let Some(Event::Connected { peer: node, peer_qpn: qpn, private_data, .. }) =
                    session.events.remove(at)
            {
                return Ok(Peer { node, qpn, private_data });
            }
            session.wait(Vec::new(), None)?;
        }
    }

    /// Writes a work request into the send queue. The NIC learns of it from the doorbell.
    ///
    /// * Errors: `Ring(Full)` at one less than `send_slots`, until completions free a slot; `Entry` if it does not fit.
    /// * Cost: a few stores; no call of the kernel.
    pub fn post_send(&mut self, work: &WorkRequest) -> Result<(), Error> {
        let mut slot = [0; MAX_SLOT];
        let slot = &mut slot[..self.send.geometry().slot_octets()];
        self.send.post(work.wqe().encode(slot)?)?;
        Ok(())
    }

    /// Posts a place for a message to be received into, these octets one after the other. It needs no doorbell.
    ///
    /// * Errors: as of [`QueuePair::post_send`].
    pub fn post_recv(&mut self, wr_id: u64, scatter: &[Sge]) -> Result<(), Error> {
        let scatter = ScatterList::try_from(scatter).map_err(|_| Error::Refused("a scatter list that long".into()))?;
        let mut slot = [0; MAX_SLOT];
        let slot = &mut slot[..self.receive.geometry().slot_octets()];
        self.receive.post(ReceiveEntry { wr_id, scatter }.encode(slot)?)?;
        Ok(())
    }

    /// Tells the NIC of everything posted so far. It begins when this application waits or polls: until then, no time passes.
    ///
    /// * Errors: the device is gone.
    /// * Cost: a few stores; a call to the NIC once in about a thousand.
    pub fn ring_doorbell(&mut self) -> Result<(), Error> {
        self.session.borrow_mut().ring(self.qpn, self.send.producer_index(), &[])
    }

    /// Posts a work request and rings for it, and the entry's octets travel with the doorbell (BlueFlame): the NIC need not
    /// fetch it. An entry above [`BLUE_FLAME_MAX`] octets is rung for like any other.
    ///
    /// * Errors: as of [`QueuePair::post_send`] and [`QueuePair::ring_doorbell`].
    pub fn post_blue_flame(&mut self, work: &WorkRequest) -> Result<(), Error> {
        let mut slot = [0; MAX_SLOT];
        let slot = &mut slot[..self.send.geometry().slot_octets()];
        let wqe = work.wqe().encode(slot)?;
        let producer_index = self.send.post(wqe)?;
        let wqe = if wqe.len() <= BLUE_FLAME_MAX { wqe } else { &[] };
        self.session.borrow_mut().ring(self.qpn, producer_index, wqe)
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        // If the device is gone, so is the queue pair.
        let _ = self.session.borrow_mut().call(&Request::DestroyQp { qpn: self.qpn });
    }
}

impl fmt::Debug for CompletionQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionQueue").field("number", &self.0.number).finish_non_exhaustive()
    }
}

impl fmt::Debug for MemoryRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { octets, address, lkey, rkey, .. } = self;
        let mut debug = f.debug_struct("MemoryRegion");
        debug.field("octets", octets).field("address", address).field("lkey", lkey).field("rkey", rkey);
        debug.finish_non_exhaustive()
    }
}

impl fmt::Debug for QueuePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueuePair").field("qpn", &self.qpn).finish_non_exhaustive()
    }
}
