//! What an application asks a queue pair to do.

use crate::ring::{EntryError, Operation, Payload, ScatterList, Sge, Wqe};

/// A message to be sent. Signaled unless told otherwise: a completion tells of its end.
#[derive(Clone, Debug)]
pub struct WorkRequest(Wqe);

impl WorkRequest {
    /// A SEND of no octets: it goes where the peer has posted a receive.
    pub fn send(wr_id: u64) -> Self {
        Self::new(wr_id, Operation::Send { immediate: None })
    }

    /// A WRITE of no octets to the peer's memory.
    pub fn write(wr_id: u64, remote_address: u64, rkey: u32) -> Self {
        Self::new(wr_id, Operation::Write { remote_address, rkey, immediate: None })
    }

    fn new(wr_id: u64, operation: Operation) -> Self {
        let payload = Payload::Scatter(ScatterList::new());
        Self(Wqe { wr_id, operation, signaled: true, solicited: false, payload })
    }

    /// The message's octets: these, one after the other. Read when the NIC sends them, not now.
    ///
    /// * Errors: more elements than any slot holds.
    pub fn gather(mut self, elements: &[Sge]) -> Result<Self, EntryError> {
        let have = elements.len();
        let list = ScatterList::try_from(elements);
        self.0.payload =
            Payload::Scatter(list.map_err(|_| EntryError::ScatterCount { have, max: ScatterList::new().capacity() })?);
        Ok(self)
    }

    /// The message's octets, in the entry itself.
    ///
    /// * Errors: more than any slot holds.
    pub fn inline(mut self, octets: &[u8]) -> Result<Self, EntryError> {
        let (have, max) = (octets.len(), crate::ring::max_inline(crate::ring::MAX_SLOT));
        let octets = octets.try_into().map_err(|_| EntryError::InlineLength { have, max })?;
        self.0.payload = Payload::Inline(octets);
        Ok(self)
    }

    /// A number that goes along. A WRITE with one takes a receive at the peer, and so tells it of its end.
    pub fn immediate(mut self, number: u32) -> Self {
        let (Operation::Send { immediate } | Operation::Write { immediate, .. }) = &mut self.0.operation;
        *immediate = Some(number);
        self
    }

    /// No completion if all goes well. Its slot is free once a later one completes.
    pub fn unsignaled(mut self) -> Self {
        self.0.signaled = false;
        self
    }

    /// The peer is to be woken, even if it waits for [`Notify::Solicited`](super::Notify::Solicited) only.
    pub fn solicited(mut self) -> Self {
        self.0.solicited = true;
        self
    }

    pub(super) fn wqe(&self) -> &Wqe {
        &self.0
    }
}
