//! What every input port is charged for, and the pauses that follow from it.

use super::Switch;
use super::egress::Queued;
use super::{Alarm, Port};
use crate::base::{Class, Octets, PortId, Ticket};
use crate::port::{Pool, pause_time};
use crate::trace::{DropReason, EventKind, Headline};
use crate::wire::{PFC_WIRE_LEN, Packet, PfcFrame};

/// What one class of one input port has in the buffer.
#[derive(Debug)]
pub struct Account {
    held: Pool,
    /// Runs while a pause is outstanding.
    refresh: Option<Ticket>,
}

impl Account {
    pub const fn new(limit: Octets) -> Self {
        Self { held: Pool::new(limit), refresh: None }
    }

    /// A pause is outstanding.
    pub const fn is_paused(&self) -> bool {
        self.refresh.is_some()
    }

    pub const fn occupancy(&self) -> Octets {
        self.held.occupancy()
    }
}

impl Switch {
    fn port(&mut self, port: PortId) -> &mut Port {
        &mut self.ports[port.index()]
    }

    fn account(&mut self, port: PortId, class: Class) -> &mut Account {
        &mut self.port(port).accounts[class.index()]
    }

    /// Before a frame is admitted or dropped: does it take its port past Xoff?
    ///
    /// * Source: timing rule 13; model.md P1.
    pub(super) fn check_pause(&mut self, port: PortId, class: Class, charge: Octets) {
        let (is_enabled, xoff) = (self.config.pfc.enabled[class.index()], self.config.pfc.xoff[class.index()]);
        let account = self.account(port, class);
        let occupancy = account.occupancy() + charge;
        if is_enabled && !account.is_paused() && occupancy > xoff {
            self.send_pause(port, class, occupancy, false);
        }
    }

    /// Charges a frame to the port by which it came, if there is room for it there and in the whole switch.
    pub(super) fn admit(&mut self, port: PortId, class: Class, charge: Octets) -> Result<(), DropReason> {
        if !self.account(port, class).held.fits(charge) {
            return Err(DropReason::PoolFull);
        }
        if !self.buffer.fits(charge) {
            return Err(DropReason::SwitchBufferFull);
        }
        self.account(port, class).held.charge(charge);
        self.buffer.charge(charge);
        Ok(())
    }

    /// A frame was dropped for want of room: if its class has PFC, that should never have happened.
    pub(super) fn report_violation(&mut self, port: PortId, packet: Headline, charge: Octets, reason: DropReason) {
        let class = packet.class;
        if !self.config.pfc.enabled[class.index()] {
            return;
        }
        let full = match reason {
            DropReason::SwitchBufferFull => &self.buffer,
            _ => &self.port(port).accounts[class.index()].held,
        };
        let (occupancy, missing) = (full.occupancy(), (full.occupancy() + charge).saturating_sub(full.size()));
        self.emit(EventKind::LosslessViolated { port, packet, reason, occupancy, missing });
    }

    /// A frame has left the switch. At Xon or below, those who sent it may go on.
    pub(super) fn release(&mut self, port: PortId, class: Class, octets: Octets) {
        let xon = self.config.pfc.xon[class.index()];
        self.buffer.release(octets);
        let account = self.account(port, class);
        account.held.release(octets);
        let occupancy = account.occupancy();
        let resumes = account.is_paused() && occupancy <= xon;
        self.emit(EventKind::IngressReleased { port, class, octets, occupancy });
        if resumes {
            self.send_resume(port, class, occupancy);
        }
    }

    fn send_pause(&mut self, port: PortId, class: Class, occupancy: Octets, refresh: bool) {
        let quanta = self.config.pfc.quanta[class.index()];
        self.emit(EventKind::PauseRequested { port, class, quanta, occupancy, refresh });
        self.send_pfc(port, class, quanta);
        // The refresh counts from the instant the XOFF is queued (timing rule 8).
        let config = self.port(port).config;
        let half = pause_time(quanta, config.data_rate, config.delay).half();
        let ticket = self.schedule(self.now + half, Alarm::PauseRefresh(port, class));
        self.account(port, class).refresh = Some(ticket);
    }

    fn send_resume(&mut self, port: PortId, class: Class, occupancy: Octets) {
        self.emit(EventKind::ResumeRequested { port, class, occupancy });
        self.send_pfc(port, class, 0);
        let refresh = self.account(port, class).refresh.take();
        self.cancel(refresh);
    }

    /// Half a pause time has passed and the pause is outstanding: again, however little is left above Xon. A switch
    /// never resumes at a refresh.
    pub(super) fn refresh_pause(&mut self, port: PortId, class: Class) {
        let occupancy = self.ingress_occupancy(port, class);
        self.send_pause(port, class, occupancy, true);
    }

    fn send_pfc(&mut self, port: PortId, class: Class, quanta: u16) {
        let pfc = PfcFrame::pause(self.port(port).config.mac, class, quanta);
        let pfc = Packet::Pfc(if self.config.pad_to_model { pfc.padded_to_model() } else { pfc });
        let (packet, frame) = (Headline::of(&pfc), pfc.emit());
        self.queue_own(port, Queued { packet, wire_len: PFC_WIRE_LEN, origin: None, frame, forwarded: None });
    }
}
