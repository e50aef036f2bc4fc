//! The port's sending side: queues, the line, and the pauses that the peer asks for.

use super::{Alarm, Nic, Output, PORT, Transmission};
use crate::base::{Class, Instant, MessageId, Octets, Psn, Qpn, Rate, Ticket};
use crate::port::pause_time;
use crate::trace::{EventKind, Headline, PacketKind, Queue};
use crate::wire::{self, Packet, PfcFrame, RocePacket};

/// A frame in an egress queue. It becomes octets when its last bit leaves.
#[derive(Clone, Debug)]
pub struct Outgoing {
    pub packet: Packet,
    pub headline: Headline,
    pub wire_len: Octets,
    pub transmission: u32,
    /// The queue pair that sends it.
    pub qpn: Option<Qpn>,
    /// The message of a data packet, and its index in it.
    pub message: Option<(MessageId, u32)>,
}

/// A pause that the peer asked for.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedPause {
    since: Instant,
    end: Ticket,
}

impl Outgoing {
    /// A PFC frame.
    pub fn pfc(frame: PfcFrame) -> Self {
        Self::new(frame.into(), None)
    }

    /// An ACK, NAK or CNP of a queue pair.
    pub fn control(packet: RocePacket, qpn: Qpn) -> Self {
        Self::new(packet.into(), Some(qpn))
    }

    pub fn data(packet: RocePacket, qpn: Qpn, transmission: u32, message: (MessageId, u32)) -> Self {
        Self { transmission, message: Some(message), ..Self::new(packet.into(), Some(qpn)) }
    }

    fn new(packet: Packet, qpn: Option<Qpn>) -> Self {
        Self { headline: headline(&packet), wire_len: packet.wire_len(), packet, transmission: 0, qpn, message: None }
    }
}

/// The facts by which people recognise a packet.
pub fn headline(packet: &Packet) -> Headline {
    match packet {
        Packet::Roce(roce) => Headline {
            kind: match roce.kind() {
                wire::PacketKind::Data(wire::Verb::Send) => PacketKind::Send,
                wire::PacketKind::Data(wire::Verb::Write) => PacketKind::Write,
                wire::PacketKind::Ack => PacketKind::Ack,
                wire::PacketKind::Nak(_) => PacketKind::Nak,
                wire::PacketKind::Cnp => PacketKind::Cnp,
                wire::PacketKind::RnrNak | wire::PacketKind::Reserved => PacketKind::Other,
            },
            class: roce.class(),
            dest_qpn: roce.bth.dest_qpn,
            psn: roce.bth.psn,
            payload: Octets::new(roce.payload.len() as u64),
        },
        // A frame may name several classes: it is shown as what it says of the lowest, and events tell of each.
        Packet::Pfc(pfc) => {
            let first = pfc.classes().next();
            Headline {
                kind: match first {
                    Some((_, 0)) => PacketKind::Xon,
                    Some(_) => PacketKind::Xoff,
                    None => PacketKind::Other,
                },
                class: first.map_or(Class::DATA, |(class, _)| class),
                dest_qpn: Qpn::NONE,
                psn: Psn::default(),
                payload: Octets::ZERO,
            }
        }
    }
}

impl Nic {
    /// Queues a frame. Data has reserved its egress space before; ACKs and NAKs are charged here, without a check
    /// (model.md T12); PFC and CNP are not charged.
    pub(super) fn queue_frame(&mut self, queue: Queue, frame: Outgoing) {
        let (packet, qpn) = (frame.headline, frame.qpn);
        if let Queue::Class(class) = queue
            && !packet.kind.is_data()
        {
            let pool = self.egress_pools.get_mut(class).expect("a scenario gives the control class an egress pool");
            pool.charge(frame.wire_len);
        }
        let waiting = self.egress.push(queue, frame) as u32;
        self.emit(EventKind::FrameQueued { port: PORT, queue, packet, qpn, waiting });
        self.ask_for_choice();
    }

    /// An idle port chooses at the end of the instant, when everything of it is known (timing rule 4).
    fn ask_for_choice(&mut self) {
        if !self.choice_scheduled && self.egress.is_line_idle() && self.egress.frame_count() > 0 {
            self.choice_scheduled = true;
            self.schedule(self.now, Alarm::PortChoice);
        }
    }

    pub(super) fn choose_frame(&mut self) {
        self.choice_scheduled = false;
        let rate: Rate = self.config.data_rate;
        let Some((queue, frame)) = self.egress.choose() else { return };
        let (packet, qpn, wire_len) = (frame.headline, frame.qpn, frame.wire_len);
        self.schedule(self.now + rate.time_for(wire_len), Alarm::TransmitEnd);
        self.emit(EventKind::TransmitStarted { port: PORT, queue, packet, qpn, wire_len, rate });
    }

    /// The last bit has left: the frame is the link's, its reservation is released.
    pub(super) fn transmit_ended(&mut self) {
        let (queue, sent) = self.egress.finish().expect("a transmission ends on a line that carries one");
        let Outgoing { packet, headline, wire_len, transmission, message, .. } = sent;
        let packet = match packet {
            Packet::Roce(roce) if self.config.pad_to_model => Packet::Roce(roce.padded_to_model()),
            packet => packet,
        };
        let frame = packet.emit();
        self.outputs.push_back(Output::Transmit(Transmission {
            port: PORT,
            packet: headline,
            wire_len,
            transmission,
            message,
            frame,
        }));
        if let Queue::Class(class) = queue {
            let pool = self.egress_pools.get_mut(class).expect("the frame was charged there");
            pool.release(wire_len);
            let occupancy = pool.occupancy();
            self.emit(EventKind::EgressReleased { class, octets: wire_len, occupancy });
            self.restart_after_release(class);
        }
        self.ask_for_choice();
    }

    /// A PFC frame from the peer: for every class it names, a pause that starts anew, or the end of one.
    ///
    /// * Source: seeds/001 "Receiving a pause"; timing rule 19.
    pub(super) fn obey(&mut self, pfc: &PfcFrame) {
        for (class, quanta) in pfc.classes() {
            if quanta == 0 {
                self.emit(EventKind::ResumeReceived { port: PORT, class });
                self.resume(class, true);
                continue;
            }
            let duration = pause_time(quanta, self.config.data_rate, self.config.delay);
            let end = self.schedule(self.now + duration, Alarm::PauseEnd(class));
            let running = self.received_pauses[class.index()].take();
            self.cancel(running.map(|pause| pause.end));
            let since = running.map_or(self.now, |pause| pause.since);
            self.received_pauses[class.index()] = Some(ReceivedPause { since, end });
            self.egress.set_paused(class, true);
            self.emit(EventKind::Paused { port: PORT, class, quanta, duration });
        }
    }

    /// The class may send again: its pause has run out, or the peer said so.
    pub(super) fn resume(&mut self, class: Class, by_xon: bool) {
        let Some(pause) = self.received_pauses[class.index()].take() else { return };
        self.calendar.cancel(pause.end);
        self.egress.set_paused(class, false);
        let paused = self.now.since(pause.since);
        self.emit(EventKind::Resumed { port: PORT, class, paused, by_xon });
        self.ask_for_choice();
    }
    /// The run is over: pauses that last on count as far as they came.
    pub(super) fn cut_pauses_off(&mut self) {
        for class in Class::all() {
            if let Some(pause) = self.received_pauses[class.index()] {
                let paused = self.now.since(pause.since);
                self.emit(EventKind::PauseCutOff { port: PORT, class, paused });
            }
        }
    }
}
