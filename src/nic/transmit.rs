//! The port's sending side: queues, the line, and the pauses that the peer asks for.

use std::collections::BTreeMap;

use super::queue_pair::QueuePair;
use super::{Alarm, Nic, Output, PORT, Transmission};
use crate::base::{Class, Instant, MessageId, Octets, Origin, Qpn, Ticket};
use crate::port::pause_time;
use crate::trace::{EventKind, Headline, Queue};
use crate::wire::{Packet, PfcFrame};

/// A frame in an egress queue. It becomes octets when its last bit leaves.
#[derive(Clone, Debug)]
pub struct Outgoing {
    pub packet: Packet,
    pub headline: Headline,
    pub wire_len: Octets,
    pub transmission: u32,
    /// The queue pair that sends a data packet.
    pub sender: Option<Qpn>,
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
    /// A packet of the NIC's own: ACK, NAK, CNP or PFC.
    pub fn control(packet: Packet) -> Self {
        let (headline, wire_len) = (headline(&packet), packet.wire_len());
        Self { headline, wire_len, packet, transmission: 0, sender: None, message: None }
    }

    pub fn data(packet: Packet, sender: Qpn, transmission: u32, message: (MessageId, u32)) -> Self {
        Self { transmission, sender: Some(sender), message: Some(message), ..Self::control(packet) }
    }
}

/// The facts by which people recognise a packet.
pub fn headline(packet: &Packet) -> Headline {
    Headline::of(packet)
}

/// When a frame may start: what is not data is never held back.
fn may_start(queue_pairs: &BTreeMap<Qpn, QueuePair>, frame: &Outgoing) -> Instant {
    frame.sender.and_then(|qpn| queue_pairs.get(&qpn)).map_or(Instant::ZERO, |qp| qp.congestion.may_start())
}

impl Nic {
    /// Queues a frame. Data has reserved its egress space before; ACKs and NAKs are charged here, without a check
    /// (model.md T12); PFC and CNP are not charged.
    pub(super) fn queue_frame(&mut self, queue: Queue, frame: Outgoing) {
        let (packet, qpn) = (frame.headline, frame.sender);
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
        let pace_wake = self.pace_wake.take();
        self.cancel(pace_wake);
        let (now, queue_pairs) = (self.now, &self.queue_pairs);
        let Some((queue, frame)) = self.egress.choose_if(|frame| may_start(queue_pairs, frame) <= now) else {
            return self.wait_for_pace();
        };
        let (packet, wire_len, sender) = (frame.headline, frame.wire_len, frame.sender);
        let rate = match sender.and_then(|qpn| self.queue_pairs.get_mut(&qpn)) {
            Some(queue_pair) => queue_pair.congestion.start_frame(now, wire_len, &self.config),
            None => self.config.data_rate,
        };
        self.schedule(self.now + rate.time_for(wire_len), Alarm::TransmitEnd);
        self.emit(EventKind::TransmitStarted { port: PORT, queue, packet, qpn: sender, wire_len, rate });
    }

    /// Pacing holds back the first frame of every class that may send: the port chooses again when the first of them is
    /// due. What joins a queue before that, or the end of a pause, makes it choose earlier.
    fn wait_for_pace(&mut self) {
        if !self.egress.is_line_idle() {
            return;
        }
        let due = self.egress.heads().map(|frame| may_start(&self.queue_pairs, frame)).min();
        self.pace_wake = due.map(|at| self.schedule(at, Alarm::PortChoice));
    }

    /// The last bit has left: the frame is the link's, its reservation is released.
    pub(super) fn transmit_ended(&mut self) {
        let (queue, sent) = self.egress.finish().expect("a transmission ends on a line that carries one");
        let Outgoing { packet, headline, wire_len, transmission, sender, message } = sent;
        let origin = message.zip(sender).map(|((message, index), qpn)| {
            let iteration = self.queue_pair(qpn).passes.leave(headline.psn, index);
            Origin { message, index, transmission, iteration }
        });
        let packet = match packet {
            Packet::Roce(roce) if self.config.pad_to_model => Packet::Roce(roce.padded_to_model()),
            packet => packet,
        };
        let frame = packet.emit();
        self.outputs.push_back(Output::Transmit(Transmission {
            port: PORT,
            packet: headline,
            wire_len,
            origin,
            frame,
        }));
        if let Queue::Class(class) = queue {
            let pool = self.egress_pools.get_mut(class).expect("the frame was charged there");
            pool.release(wire_len);
            let occupancy = pool.occupancy();
            self.emit(EventKind::EgressReleased { class, octets: wire_len, occupancy });
            self.restart_after_release(class);
        }
        if let Some(qpn) = sender {
            self.data_sent(qpn, wire_len);
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
