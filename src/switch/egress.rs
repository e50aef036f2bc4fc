//! The sending side of a port: queues, marking, the line, and the pauses that the peer asks for.

use bytes::Bytes;

use super::{Alarm, Config, Output, Switch, Transmission};
use crate::base::{Class, Instant, Octets, Origin, PortId, Ticket};
use crate::port::{Egress, Marker, PerClass, pause_time};
use crate::trace::{EventKind, Headline, Queue};
use crate::wire::{self, Ecn, PfcFrame};

/// A frame in an egress queue.
#[derive(Debug)]
pub struct Queued {
    pub packet: Headline,
    pub wire_len: Octets,
    pub origin: Option<Origin>,
    pub frame: Bytes,
    /// `None`: the switch's own PFC frame.
    pub forwarded: Option<Forwarded>,
}

/// What a switch keeps about a frame that passes.
#[derive(Clone, Copy, Debug)]
pub struct Forwarded {
    /// The port by which it came, which is charged for it.
    pub from: PortId,
    pub class: Class,
    pub charge: Octets,
    pub ecn: Ecn,
}

/// A pause that the peer asked for.
#[derive(Clone, Copy, Debug)]
struct ReceivedPause {
    since: Instant,
    end: Ticket,
}

/// The sending side of one port.
#[derive(Debug)]
pub struct Sender {
    egress: Egress<Queued>,
    markers: PerClass<Marker>,
    choice_scheduled: bool,
    received_pauses: PerClass<Option<ReceivedPause>>,
}

impl Sender {
    pub fn new(config: &Config) -> Self {
        Self {
            egress: Egress::new(&config.egress()),
            markers: std::array::from_fn(|_| Marker::new(config.marking)),
            choice_scheduled: false,
            received_pauses: Default::default(),
        }
    }

    /// Frames that wait or are on the line.
    pub fn frame_count(&self) -> usize {
        self.egress.frame_count()
    }

    /// Port, class and charge of every forwarded frame that waits or is on the line.
    pub fn charges(&self) -> impl Iterator<Item = (PortId, Class, Octets)> {
        self.egress.frames().filter_map(|queued| queued.forwarded).map(|f| (f.from, f.class, f.charge))
    }
}

impl Switch {
    fn sender(&mut self, port: PortId) -> &mut Sender {
        &mut self.ports[port.index()].sender
    }

    /// A frame of the switch's own: ahead of all classes, never paused, charged to nobody.
    pub(super) fn queue_own(&mut self, port: PortId, queued: Queued) {
        self.queue(port, Queue::Express, queued);
    }

    /// A frame that passes joins the queue of its class, and the queue's average with it.
    pub(super) fn queue_forwarded(&mut self, port: PortId, queued: Queued) {
        let Forwarded { class, charge, .. } = queued.forwarded.expect("the frame came by a port");
        self.sender(port).markers[class.index()].join(charge);
        self.queue(port, Queue::Class(class), queued);
        self.tell_depth(port, class);
    }

    fn queue(&mut self, port: PortId, queue: Queue, queued: Queued) {
        let packet = queued.packet;
        let waiting = self.sender(port).egress.push(queue, queued) as u32;
        self.emit(EventKind::FrameQueued { port, queue, packet, qpn: None, waiting });
        self.ask_for_choice(port);
    }

    fn tell_depth(&mut self, port: PortId, class: Class) {
        let marker = &self.sender(port).markers[class.index()];
        let (depth, average) = (marker.length(), marker.average());
        self.emit(EventKind::QueueDepthChanged { port, class, depth, average });
    }

    /// An idle port chooses at the end of the instant, when everything of it is known (timing rule 4).
    fn ask_for_choice(&mut self, port: PortId) {
        let sender = self.sender(port);
        if !sender.choice_scheduled && sender.egress.is_line_idle() && sender.egress.frame_count() > 0 {
            sender.choice_scheduled = true;
            self.schedule(self.now, Alarm::PortChoice(port));
        }
    }

    /// The next frame goes on the line. If it may be marked, this is when it is decided.
    pub(super) fn choose_frame(&mut self, port: PortId) {
        let Self { ports, marks, config, .. } = self;
        let rate = ports[port.index()].config.data_rate;
        let Sender { egress, markers, choice_scheduled, .. } = &mut ports[port.index()].sender;
        *choice_scheduled = false;
        let Some((queue, queued)) = egress.choose() else { return };
        let (packet, wire_len) = (queued.packet, queued.wire_len);
        let mut mark = None;
        if let Some(Forwarded { class, charge, ecn, .. }) = queued.forwarded {
            let marker = &mut markers[class.index()];
            marker.leave(charge);
            // A frame that carries CE already needs no decision.
            let may_mark = config.marking_enabled[class.index()] && matches!(ecn, Ecn::Ect0 | Ecn::Ect1);
            if may_mark && marker.decide(marks) {
                queued.frame = wire::set_ce(&queued.frame);
                let (average, probability) = (marker.average(), marker.probability());
                mark = Some(EventKind::CeMarked { port, packet, average, probability });
            }
        }
        self.schedule(self.now + rate.time_for(wire_len), Alarm::TransmitEnd(port));
        self.emit(EventKind::TransmitStarted { port, queue, packet, qpn: None, wire_len, rate });
        if let Queue::Class(class) = queue {
            self.tell_depth(port, class);
        }
        if let Some(mark) = mark {
            self.emit(mark);
        }
    }

    /// The last bit has left: the frame is the link's, and the port by which it came is charged no longer.
    pub(super) fn transmit_ended(&mut self, port: PortId) {
        let (_, sent) = self.sender(port).egress.finish().expect("a transmission ends on a line that carries one");
        let Queued { packet, wire_len, origin, frame, forwarded } = sent;
        self.outputs.push_back(Output::Transmit(Transmission { port, packet, wire_len, origin, frame }));
        if let Some(Forwarded { from, class, charge, .. }) = forwarded {
            self.release(from, class, charge);
        }
        self.ask_for_choice(port);
    }

    /// A PFC frame from the peer: for every class it names, a pause that starts anew, or the end of one.
    ///
    /// * Source: timing rule 19.
    pub(super) fn obey(&mut self, port: PortId, pfc: &PfcFrame) {
        let config = self.ports[port.index()].config;
        for (class, quanta) in pfc.classes() {
            if quanta == 0 {
                self.emit(EventKind::ResumeReceived { port, class });
                self.resume(port, class, true);
                continue;
            }
            let duration = pause_time(quanta, config.data_rate, config.delay);
            let end = self.schedule(self.now + duration, Alarm::PauseEnd(port, class));
            let now = self.now;
            let sender = self.sender(port);
            let running = sender.received_pauses[class.index()].take();
            let since = running.map_or(now, |pause| pause.since);
            sender.received_pauses[class.index()] = Some(ReceivedPause { since, end });
            sender.egress.set_paused(class, true);
            self.cancel(running.map(|pause| pause.end));
            self.emit(EventKind::Paused { port, class, quanta, duration });
        }
    }

    /// The class may send again: its pause has run out, or the peer said so.
    pub(super) fn resume(&mut self, port: PortId, class: Class, by_xon: bool) {
        let sender = self.sender(port);
        let Some(pause) = sender.received_pauses[class.index()].take() else { return };
        sender.egress.set_paused(class, false);
        self.calendar.cancel(pause.end);
        let paused = self.now.since(pause.since);
        self.emit(EventKind::Resumed { port, class, paused, by_xon });
        self.ask_for_choice(port);
    }
    /// The run is over: pauses that last on count as far as they came.
    pub(super) fn cut_pauses_off(&mut self) {
        for port in (0..self.ports.len()).map(|index| PortId(index as u16)) {
            for class in Class::all() {
                if let Some(pause) = self.sender(port).received_pauses[class.index()] {
                    let paused = self.now.since(pause.since);
                    self.emit(EventKind::PauseCutOff { port, class, paused });
                }
            }
        }
    }
}
