//! Doorbells: the order in which an application rang, across all of its queue pairs.
//!
//! A doorbell page is a ring like the others, whose slots are the 64-octet lines that an MMIO write has. A plain doorbell
//! is one line; a BlueFlame post is that line and, behind it, the WQE itself (specification R3, R4):
//!
//! ```text
//!  octet 0        1      2             4                   8                12
//!       | version | kind | WQE octets |        QPN        | producer index | reserved .. 64 |    a doorbell, always
//!       | WQE ............................................................................ 64 |  \ BlueFlame only:
//!       | ....................... its last line, unused octets as they were             .. 64 |  / ceil(octets / 64) lines
//! ```
//!
//! Little-endian; version 1; kind 1 is plain with WQE octets 0, kind 2 BlueFlame with 1..=512. Reserved octets are neither
//! written nor read. The lines of one doorbell appear at once, so a BlueFlame post without its end is an error and
//! nothing to wait for.

use arrayvec::ArrayVec;

use super::geometry::{LINE, MAX_SLOT};
use super::octets::{get, put};
use super::primitive::AtomicU64;
use super::{Consumer, Geometry, Producer, RingError};

const VERSION: u8 = 1;
const PLAIN: u8 = 1;
const BLUE_FLAME: u8 = 2;
const DOORBELL_OCTETS: usize = 12;

/// A doorbell as the device hears it. Nothing in it is checked against the queue pair yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doorbell {
    /// Which queue pair: its QPN. A doorbell for one that is not there is heard by nobody, as from hardware; the trace of the run says so.
    pub queue_pair: u32,
    /// For [`Consumer::announce`].
    pub producer_index: u32,
    /// The octets of the newest WQE, the one just before `producer_index`; empty in a plain doorbell.
    pub blue_flame: ArrayVec<u8, MAX_SLOT>,
}

/// The application's end of a doorbell page.
#[derive(Debug)]
pub struct DoorbellWriter<M>(Producer<M>);

/// The device's end of a doorbell page.
#[derive(Debug)]
pub struct Doorbells<M>(Consumer<M>);

/// The shape of a doorbell page of so many lines.
///
/// * Errors: `Slots` if `lines` is no power of two in 2..=65,536.
pub const fn doorbell_page(lines: u32) -> Result<Geometry, RingError> {
    Geometry::new(lines, LINE as u32)
}

const fn lines(octets: usize) -> u32 {
    octets.div_ceil(LINE) as u32
}

impl<M: AsRef<[AtomicU64]>> DoorbellWriter<M> {
    /// * Errors: `Memory` if it is too small, `SlotOctets` if `page` is no [`doorbell_page`].
    pub fn new(memory: M, page: Geometry) -> Result<Self, RingError> {
        require_lines(page)?;
        Ok(Self(Producer::new(memory, page)?))
    }

    /// Says that entries up to `producer_index` are there.
    ///
    /// * Errors: `Full` while the device has not heard enough of the earlier ones; `OutOfRange`, `Impossible` if its
    ///   index cannot be.
    pub fn ring(&mut self, queue_pair: u32, producer_index: u32) -> Result<(), RingError> {
        self.write(PLAIN, queue_pair, producer_index, &[])
    }

    /// Says the same and brings along the octets of the newest WQE, which is in its slot as well.
    ///
    /// * Errors: as of [`DoorbellWriter::ring`]; `EntryLength` if `wqe` has no octet, more than 512, or more lines than
    ///   the page.
    pub fn blue_flame(&mut self, queue_pair: u32, producer_index: u32, wqe: &[u8]) -> Result<(), RingError> {
        let page = (self.0.geometry().capacity() as usize - 1) * LINE;
        self.0.check_length(wqe.len(), page.min(MAX_SLOT))?;
        self.write(BLUE_FLAME, queue_pair, producer_index, wqe)
    }

    fn write(&mut self, kind: u8, queue_pair: u32, producer_index: u32, wqe: &[u8]) -> Result<(), RingError> {
        let count = 1 + lines(wqe.len());
        self.0.require(count)?;
        let mut doorbell = [0; DOORBELL_OCTETS];
        put(&mut doorbell, 0, [VERSION, kind]);
        put(&mut doorbell, 2, (wqe.len() as u16).to_le_bytes());
        put(&mut doorbell, 4, queue_pair.to_le_bytes());
        put(&mut doorbell, 8, producer_index.to_le_bytes());
        self.0.write(0, &doorbell);
        for (ahead, line) in (1..).zip(wqe.chunks(LINE)) {
            self.0.write(ahead, line);
        }
        // One release for all lines, and for the WQEs in slots of other rings that were written before.
        self.0.publish(count);
        Ok(())
    }
}

impl<M: AsRef<[AtomicU64]>> Doorbells<M> {
    /// * Errors: `Memory` if it is too small, `SlotOctets` if `page` is no [`doorbell_page`].
    pub fn new(memory: M, page: Geometry) -> Result<Self, RingError> {
        require_lines(page)?;
        Ok(Self(Consumer::new(memory, page)?))
    }

    /// The next doorbell in the order in which they were rung; `None` if all were heard.
    ///
    /// * Errors: `DoorbellVersion`, `DoorbellKind`, `DoorbellLength`, `BlueFlameCutShort` if the lines are no doorbell,
    ///   `OutOfRange`, `Impossible` if the producer index of the page cannot be. It stays where it is: the page has
    ///   nothing to say any more.
    pub fn poll(&mut self) -> Result<Option<Doorbell>, RingError> {
        if self.0.waiting() == 0 {
            self.0.refresh()?;
        }
        let doorbell = self.read();
        if doorbell.is_err() {
            self.0.rewind();
        }
        while self.0.held() > 0 {
            self.0.complete()?;
        }
        doorbell
    }

    fn read(&mut self) -> Result<Option<Doorbell>, RingError> {
        let mut line = [0; MAX_SLOT];
        let Some(_) = self.0.fetch(&mut line) else { return Ok(None) };
        let [version, kind, ..] = line;
        let octets = u16::from_le_bytes(get(&line, 2));
        let queue_pair = u32::from_le_bytes(get(&line, 4));
        let producer_index = u32::from_le_bytes(get(&line, 8));
        match (version, kind, octets) {
            (VERSION, PLAIN, 0) => {}
            (VERSION, BLUE_FLAME, 1..) if usize::from(octets) <= MAX_SLOT => {}
            (VERSION, PLAIN | BLUE_FLAME, _) => return Err(RingError::DoorbellLength(octets)),
            (VERSION, kind, _) => return Err(RingError::DoorbellKind(kind)),
            (version, ..) => return Err(RingError::DoorbellVersion(version)),
        }
        let (need, have) = (lines(octets.into()), self.0.waiting());
        if have < need {
            return Err(RingError::BlueFlameCutShort { need, have });
        }
        let mut blue_flame = ArrayVec::new();
        for _ in 0..need {
            self.0.fetch(&mut line);
            let left = usize::from(octets) - blue_flame.len();
            blue_flame.extend(line[..left.min(LINE)].iter().copied());
        }
        Ok(Some(Doorbell { queue_pair, producer_index, blue_flame }))
    }
}

fn require_lines(page: Geometry) -> Result<(), RingError> {
    if page.slot_octets() == LINE { Ok(()) } else { Err(RingError::SlotOctets(page.slot_octets() as u32)) }
}
