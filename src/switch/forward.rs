//! From the last bit of a frame to the queue of the port that leads on.

use bytes::Bytes;

use super::egress::{Forwarded, Queued};
use super::{Flow, Switch};
use crate::base::{Octets, Origin, PortId};
use crate::trace::{DropReason, EventKind, Headline, PacketKind, Verdict};
use crate::wire::{self, IcrcCheck, MacAddr, Packet, Peek, PfcFrame, WireError};

/// What arrived, as far as every step needs it.
struct Arrived {
    port: PortId,
    packet: Headline,
    wire_len: Octets,
    origin: Option<Origin>,
    frame: Bytes,
}

/// What a frame is to a switch.
enum Look {
    /// For the switch itself.
    Pfc(PfcFrame),
    /// For somebody else.
    Roce(Peek),
}

fn look(frame: &Bytes) -> Result<Look, WireError> {
    if frame.starts_with(&MacAddr::MAC_CONTROL.0) {
        return PfcFrame::parse(frame).map(Look::Pfc);
    }
    Peek::of(frame).map(Look::Roce)
}

/// For the record: the whole packet if it is one, else what little was seen of it. Neither checksum nor ICRC are a
/// switch's to judge.
fn headline(frame: &Bytes, look: &Result<Look, WireError>) -> Headline {
    match (Packet::parse_with(frame, IcrcCheck::Ignore), look) {
        (Ok(packet), _) => Headline::of(&packet),
        (Err(_), Ok(Look::Roce(peek))) => Headline {
            kind: PacketKind::Other,
            class: peek.class,
            dest_qpn: peek.dest_qpn,
            psn: peek.psn,
            payload: Octets::ZERO,
        },
        (Err(_), _) => Headline::UNREADABLE,
    }
}

impl Switch {
    pub(super) fn receive(&mut self, port: PortId, frame: Bytes, wire_len: Octets, origin: Option<Origin>) {
        let look = look(&frame);
        let arrived = Arrived { port, packet: headline(&frame, &look), wire_len, origin, frame };
        match look {
            Ok(Look::Roce(peek)) => self.forward(arrived, &peek),
            Ok(Look::Pfc(pfc)) if pfc.enabled == 0 => {
                self.judge(&arrived, Verdict::Dropped(DropReason::PauseOfNoClass));
            }
            Ok(Look::Pfc(pfc)) => {
                self.judge(&arrived, Verdict::Processed);
                self.obey(port, &pfc);
            }
            Err(error) => self.judge(&arrived, Verdict::Dropped(DropReason::Malformed(error))),
        }
    }

    fn judge(&mut self, arrived: &Arrived, verdict: Verdict) {
        let Arrived { port, packet, wire_len, ref frame, .. } = *arrived;
        let occupancy = self.ingress_occupancy(port, packet.class);
        let frame = frame.clone();
        self.emit(EventKind::FrameReceived { port, packet, wire_len, occupancy, verdict, frame });
    }

    /// Route, pause check, admission: in this order. A frame without a way asks for no room.
    ///
    /// * Source: timing rules 11 to 13.
    fn forward(&mut self, arrived: Arrived, peek: &Peek) {
        let Some(out) = self.route(peek) else {
            return self.judge(&arrived, Verdict::Dropped(DropReason::NoRoute));
        };
        let (port, class) = (arrived.port, peek.class);
        let charge = wire::buffer_charge(arrived.wire_len);
        self.check_pause(port, class, charge);
        if let Err(reason) = self.admit(port, class, charge) {
            self.judge(&arrived, Verdict::Dropped(reason));
            return self.report_violation(port, arrived.packet, charge, reason);
        }
        self.judge(&arrived, Verdict::Forwarded);
        let Arrived { packet, wire_len, origin, frame, .. } = arrived;
        let forwarded = Forwarded { from: port, class, charge, ecn: peek.ecn };
        self.queue_forwarded(out, Queued { packet, wire_len, origin, frame, forwarded: Some(forwarded) });
    }

    /// The port that leads to the frame's destination; the flow chooses among several.
    fn route(&self, peek: &Peek) -> Option<PortId> {
        match self.routes.get(&peek.ip_dst)?.as_slice() {
            [] => None,
            [only] => Some(*only),
            ways => Some(ways[Flow::of(peek).choose(self.config.ecmp_salt, ways.len())]),
        }
    }
}
