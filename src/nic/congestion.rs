//! Congestion notification at both of its ends.
//!
//! The notification point sees a marked packet and makes a CNP; the reaction point is told by it, and moves the rate of
//! the queue pair. What the rate does is in [`rate`](super::rate); here it meets calendar, frames and events.

use super::rate::{CongestionConfig, Controller, RateApplication};
use super::transmit::Outgoing;
use super::{Alarm, Config, Nic};
use crate::base::{Instant, Octets, Psn, Qpn, Rate, Ticket};
use crate::trace::{EventKind, Queue, RateCause};
use crate::wire::RocePacket;

/// What a queue pair knows of congestion.
#[derive(Clone, Debug)]
pub struct Congestion {
    /// As a sender.
    controller: Controller,
    /// The controller's timer on the calendar.
    timer: Option<(Instant, Ticket)>,
    /// When the episode in progress began.
    since: Instant,
    /// When the next data frame may start, where rates are applied by pacing.
    may_start: Instant,
    /// As a receiver: when a marked packet last drew a CNP.
    last_cnp: Option<Instant>,
}

impl Congestion {
    /// * Source: congestion.md §4.1 "EnableECN".
    pub fn new(config: &Config) -> Self {
        let controller = if config.enable_ecn {
            Controller::new(&config.congestion, config.data_rate)
        } else {
            Controller::off(config.data_rate)
        };
        Self { controller, timer: None, since: Instant::ZERO, may_start: Instant::ZERO, last_cnp: None }
    }

    /// When the next data frame of this queue pair may start.
    pub fn may_start(&self) -> Instant {
        self.may_start
    }

    /// A data frame starts: the rate at which it is serialized, fixed from here to its last bit.
    ///
    /// Under pacing that is the line rate, and the frame's time at the allowed rate, fixed as well, is what the next
    /// one has to keep away from its start.
    ///
    /// * Source: timing rule 4; congestion.md C8.
    pub fn start_frame(&mut self, now: Instant, octets: Octets, config: &Config) -> Rate {
        let allowed = self.controller.allowed_rate();
        match config.congestion.rate_application {
            RateApplication::Serialize => allowed,
            RateApplication::Pace => {
                self.may_start = now + allowed.time_for(octets);
                config.data_rate
            }
        }
    }
}

impl Nic {
    /// A CE-marked data packet draws a CNP to its sender, at once or after the time the NIC takes to see to it.
    ///
    /// The least time between two CNPs of a queue pair is counted between the packets that draw them.
    ///
    /// * Source: congestion.md §4.2; timing rules 5 and 22.
    pub(super) fn congestion_seen(&mut self, qpn: Qpn, psn: Psn) {
        self.emit(EventKind::CongestionSeen { qpn, psn });
        let CongestionConfig { cnp_generation, cnp_interval, np_delay, .. } = self.config.congestion;
        if !cnp_generation {
            return;
        }
        let now = self.now;
        let last = &mut self.queue_pair(qpn).congestion.last_cnp;
        if last.is_some_and(|last| now < last + cnp_interval) {
            return self.emit(EventKind::CnpSuppressed { qpn });
        }
        *last = Some(now);
        if np_delay.ps() == 0 {
            self.send_cnp(qpn);
        } else {
            self.delayed_cnps += 1;
            self.schedule(now + np_delay, Alarm::DelayedCnp(qpn));
        }
    }

    pub(super) fn delayed_cnp_is_due(&mut self, qpn: Qpn) {
        self.delayed_cnps -= 1;
        if self.queue_pairs[&qpn].failed.is_none() {
            self.send_cnp(qpn);
        }
    }

    fn send_cnp(&mut self, qpn: Qpn) {
        let queue_pair = &self.queue_pairs[&qpn];
        let connection = &queue_pair.connection;
        let packet = RocePacket::cnp(&queue_pair.endpoints, connection.control_class, connection.peer_qpn);
        self.emit(EventKind::CnpMade { qpn });
        self.queue_frame(Queue::Express, Outgoing::control(packet.into()));
    }

    pub(super) fn cnp_arrived(&mut self, qpn: Qpn) {
        if self.queue_pairs[&qpn].congestion.controller.reacts() {
            self.move_rate(qpn, Controller::on_cnp);
        } else {
            self.emit(EventKind::CnpIgnored { qpn });
        }
    }

    /// The last bit of a data frame has left.
    pub(super) fn data_sent(&mut self, qpn: Qpn, octets: Octets) {
        self.move_rate(qpn, |controller, now| controller.on_data_sent(now, octets));
    }

    pub(super) fn rate_timer_expired(&mut self, qpn: Qpn) {
        self.queue_pair(qpn).congestion.timer = None;
        self.move_rate(qpn, Controller::on_timer);
    }

    /// Lets the controller do something, keeps its timer, and says what has changed.
    fn move_rate(&mut self, qpn: Qpn, act: impl FnOnce(&mut Controller, Instant) -> Option<RateCause>) {
        let now = self.now;
        let controller = &mut self.queue_pair(qpn).congestion.controller;
        let before = (controller.is_congested(), controller.current_rate(), controller.target_rate());
        let cause = act(controller, now);
        let after = (controller.is_congested(), controller.current_rate(), controller.target_rate());
        self.keep_rate_timer(qpn);
        if after.0 && !before.0 {
            self.queue_pair(qpn).congestion.since = now;
            self.emit(EventKind::EpisodeStarted { qpn });
        }
        if let Some(cause) = cause
            && (after.1, after.2) != (before.1, before.2)
        {
            self.emit(EventKind::RateChanged { qpn, current: after.1, target: after.2, cause });
        }
        if before.0 && !after.0 {
            let lasted = now.since(self.queue_pairs[&qpn].congestion.since);
            self.emit(EventKind::EpisodeEnded { qpn, lasted });
        }
    }

    /// A queue pair in error needs no timer: nothing of it will be sent at another rate.
    pub(super) fn keep_rate_timer(&mut self, qpn: Qpn) {
        let queue_pair = &self.queue_pairs[&qpn];
        let congestion = &queue_pair.congestion;
        let wanted = congestion.controller.next_timer().filter(|_| queue_pair.failed.is_none());
        let running = congestion.timer;
        if running.map(|(at, _)| at) == wanted {
            return;
        }
        self.cancel(running.map(|(_, ticket)| ticket));
        let timer = wanted.map(|at| (at, self.schedule(at, Alarm::RateTimer(qpn))));
        self.queue_pair(qpn).congestion.timer = timer;
    }
}
