//! Acknowledgement coalescing: count, last packet, timer.

use super::AckConfig;
use crate::base::{Instant, Span, Ticket};

/// Holds acknowledgements of one queue pair back.
///
/// * Source: seeds/000 "Acknowledgements"; model.md T6, T7; timing rule 21.
#[derive(Clone, Debug)]
pub struct AckCoalescer {
    config: AckConfig,
    held: u32,
    pub timer: Option<Ticket>,
}

/// What an in-order or duplicate data packet draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckDecision {
    /// An ACK at once.
    Send,
    /// Nothing yet: so many are held now.
    Hold(u32),
}

impl AckCoalescer {
    pub fn new(config: AckConfig) -> Self {
        Self { config, held: 0, timer: None }
    }

    /// * `asks`: the packet carries the solicited-event or the AckReq flag.
    pub fn on_packet(&mut self, asks: bool) -> AckDecision {
        if !self.config.coalescing || asks || self.held >= self.config.threshold {
            self.held = 0;
            return AckDecision::Send;
        }
        self.held += 1;
        AckDecision::Hold(self.held)
    }

    /// When the timer, started now, expires; `None` if this queue pair coalesces nothing and needs no timer.
    pub fn expiry(&self, now: Instant) -> Option<Instant> {
        self.config.coalescing.then(|| now + self.config.delay)
    }

    /// The timer expired. `true`: packets were held, acknowledge them.
    pub fn on_timer(&mut self) -> bool {
        self.timer = None;
        std::mem::take(&mut self.held) > 0
    }

    /// A NAK speaks for everything that was held.
    pub fn on_nak(&mut self) {
        self.held = 0;
    }

    pub fn delay(&self) -> Span {
        self.config.delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coalescer() -> AckCoalescer {
        AckCoalescer::new(AckConfig::default())
    }

    #[test]
    fn the_packet_after_sixteen_held_ones_is_acknowledged() {
        let mut acks = coalescer();
        let sent: Vec<_> = (1..=256).filter(|&n| acks.on_packet(n == 256) == AckDecision::Send).collect();
        let expected: Vec<_> = (1..=15).map(|k| 17 * k).chain([256]).collect();
        assert_eq!(sent, expected);
    }

    #[test]
    fn without_coalescing_every_packet_is_acknowledged() {
        let mut acks = AckCoalescer::new(AckConfig { coalescing: false, ..AckConfig::default() });
        assert!((0..3).all(|_| acks.on_packet(false) == AckDecision::Send));
        assert_eq!(acks.expiry(Instant::ZERO), None);
    }

    #[test]
    fn the_timer_speaks_only_for_held_packets() {
        let mut acks = coalescer();
        assert_eq!(acks.on_packet(false), AckDecision::Hold(1));
        assert!(acks.on_timer());
        assert!(!acks.on_timer());
        assert_eq!(acks.on_packet(false), AckDecision::Hold(1));
        acks.on_nak();
        assert!(!acks.on_timer());
    }
}
