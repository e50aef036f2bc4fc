//! One direction of a link: the rules on it, and the frames that wait for others to pass.

use bytes::Bytes;

use super::{Action, Passing, Rule};
use crate::base::{Instant, Octets, Origin, Rng, RuleId, Span};
use crate::trace::{LinkFate, RuleEffect};

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Direction {
    delay: Span,
    rules: Vec<Armed>,
    held: Vec<Held>,
}

/// A rule with its memory.
#[derive(Clone, Debug)]
struct Armed {
    id: RuleId,
    rule: Rule,
    rng: Rng,
    matched: u64,
    fired: u64,
}

/// A frame that waits until others have passed it.
#[derive(Clone, Debug)]
struct Held {
    rule: RuleId,
    /// Frames that still have to pass; never 0.
    passes: u32,
    frame: Bytes,
    wire_len: Octets,
    origin: Option<Origin>,
}

/// A frame on its way to the far end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leg {
    pub arrives_at: Instant,
    pub frame: Bytes,
    pub wire_len: Octets,
    pub origin: Option<Origin>,
}

/// What the link does with one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journey {
    pub fate: LinkFate,
    /// What rules did to it, in their order.
    pub effects: Vec<RuleEffect>,
    /// The frame, its copies, and frames that waited for it: in the order in which they arrive if their instants are
    /// the same.
    pub legs: Vec<Leg>,
}

/// How often a rule acted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleReport {
    /// Frames for which everything but probability and count held.
    pub matched: u64,
    pub fired: u64,
    /// Frames held back that nobody passed before the run ended.
    pub stuck: u64,
}

impl Direction {
    pub const fn new(delay: Span) -> Self {
        Self { delay, rules: Vec::new(), held: Vec::new() }
    }

    /// Adds a rule behind those that are there. `rng` is its own stream.
    pub fn arm(&mut self, id: RuleId, rule: Rule, rng: Rng) {
        self.rules.push(Armed { id, rule, rng, matched: 0, fired: 0 });
    }

    /// The last bit of a frame has left the port.
    pub fn pass(&mut self, now: Instant, passing: Passing) -> Journey {
        let mut effects = Vec::new();
        let mut arrives_at = now + self.delay;
        let mut copies = 0;
        let mut hold = None;
        let mut frame = passing.frame.clone();
        for armed in &mut self.rules {
            if !armed.fires(now, &passing) {
                continue;
            }
            let (rule, action) = (armed.id, armed.rule.action);
            effects.push(RuleEffect { rule, effect: action.effect() });
            match action {
                Action::Drop => return Journey { fate: LinkFate::Dropped { rule }, effects, legs: Vec::new() },
                Action::Down => return Journey { fate: LinkFate::LinkDown { rule }, effects, legs: Vec::new() },
                Action::Duplicate => copies += 1,
                Action::Delay(by) => arrives_at = arrives_at + by,
                Action::Reorder { after } => hold = Some((rule, after)),
                Action::Corrupt(_) | Action::SetCe | Action::SetDscp(_) => frame = action.change(frame),
            }
        }
        let Passing { wire_len, origin, .. } = passing;
        if let Some((rule, passes)) = hold {
            self.held.extend((0..=copies).map(|_| Held { rule, passes, frame: frame.clone(), wire_len, origin }));
            return Journey { fate: LinkFate::Held { rule }, effects, legs: Vec::new() };
        }
        let leg = Leg { arrives_at, frame, wire_len, origin };
        let mut legs = vec![leg; 1 + copies];
        legs.extend(self.release_passed(arrives_at));
        Journey { fate: LinkFate::Carried, effects, legs }
    }

    /// Frames that have waited for this many others: they arrive right behind the one that has just passed.
    fn release_passed(&mut self, arrives_at: Instant) -> Vec<Leg> {
        for held in &mut self.held {
            held.passes -= 1;
        }
        self.held
            .extract_if(.., |held| held.passes == 0)
            .map(|Held { frame, wire_len, origin, .. }| Leg { arrives_at, frame, wire_len, origin })
            .collect()
    }

    /// Frames that wait for others to pass them.
    pub fn held_count(&self) -> usize {
        self.held.len()
    }

    /// Every rule of this direction with what it did.
    pub fn reports(&self) -> impl Iterator<Item = (RuleId, RuleReport)> {
        self.rules.iter().map(|armed| {
            let stuck = self.held.iter().filter(|held| held.rule == armed.id).count() as u64;
            (armed.id, RuleReport { matched: armed.matched, fired: armed.fired, stuck })
        })
    }
}

impl Armed {
    fn fires(&mut self, now: Instant, passing: &Passing) -> bool {
        let Rule { matcher, action } = &self.rule;
        if !matcher.holds(now, passing) || !action.applies_to(&passing.frame) {
            return false;
        }
        self.matched += 1;
        let drawn = matcher.probability.is_none_or(|share| self.rng.chance(share));
        let counted = matcher.nth.is_empty() || matcher.nth.contains(&self.matched);
        let fires = drawn && counted && matcher.times.is_none_or(|times| self.fired < times);
        self.fired += u64::from(fires);
        fires
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Class, MessageId, Psn, Qpn, Share};
    use crate::link::{Corruption, Field, Matcher, PsnMatch};
    use crate::trace::{Effect, Headline, PacketKind};
    use crate::wire::{Ecn, Endpoints, MacAddr, Packet, Peek, Reth, RocePacket, Segment, Verb, WireError};

    const DELAY: Span = Span::from_ns(100);

    fn packet(psn: u32) -> Passing {
        let qpn = Qpn::new(0x11).unwrap();
        let mac = |last| MacAddr([2, 0, 0, 0, 0, last]);
        let ip = |last| core::net::Ipv4Addr::new(10, 0, 0, last);
        let endpoints = Endpoints { eth_dst: mac(2), eth_src: mac(1), ip_src: ip(1), ip_dst: ip(2), udp_src: 0xc000 };
        let roce = RocePacket::data(
            &endpoints,
            Class::DATA,
            Ecn::Ect0,
            Segment {
                verb: Verb::Write,
                first: false,
                last: false,
                dest_qpn: qpn,
                psn: Psn::new(psn),
                reth: Reth { va: 0, rkey: 0, length: 0 },
                immediate: None,
                payload: Bytes::from_static(b"0123456789abcdef"),
            },
        );
        Passing {
            packet: Headline {
                kind: PacketKind::Write,
                class: Class::DATA,
                dest_qpn: qpn,
                psn: Psn::new(psn),
                payload: Octets::new(16),
            },
            origin: Some(Origin { message: MessageId(0), index: psn, transmission: 1, iteration: 1 }),
            wire_len: roce.wire_len(),
            frame: roce.emit(),
        }
    }

    fn direction(rules: impl IntoIterator<Item = (Matcher, Action)>) -> Direction {
        let mut direction = Direction::new(DELAY);
        for (n, (matcher, action)) in (0..).zip(rules) {
            direction.arm(RuleId(n), Rule { matcher, action }, Rng::named(1, "test"));
        }
        direction
    }

    fn psn(psn: u32) -> Matcher {
        Matcher { psns: vec![PsnMatch::Absolute(Psn::new(psn))], ..Matcher::default() }
    }

    /// PSNs and arrival times of what arrives when packets 0, 1, 2 … pass, one nanosecond apart.
    fn arrivals(direction: &mut Direction, count: u32) -> Vec<(u32, u64)> {
        let mut legs: Vec<_> =
            (0..count).flat_map(|n| direction.pass(Instant::from_ps(u64::from(n) * 1_000), packet(n)).legs).collect();
        legs.sort_by_key(|leg| leg.arrives_at);
        legs.iter().map(|leg| (Peek::of(&leg.frame).unwrap().psn.get(), leg.arrives_at.ps() / 1_000)).collect()
    }

    #[test]
    fn a_frame_without_a_rule_arrives_after_the_delay() {
        assert_eq!(arrivals(&mut direction([]), 2), [(0, 100), (1, 101)]);
    }

    #[test]
    fn the_named_frame_is_dropped_and_the_rule_says_so() {
        let mut link = direction([(psn(1), Action::Drop)]);
        assert_eq!(arrivals(&mut link, 3), [(0, 100), (2, 102)]);
        let reports: Vec<_> = link.reports().collect();
        assert_eq!(reports, [(RuleId(0), RuleReport { matched: 1, fired: 1, stuck: 0 })]);
    }

    #[test]
    fn a_copy_arrives_right_behind_its_original() {
        let mut link = direction([(psn(0), Action::Duplicate)]);
        assert_eq!(arrivals(&mut link, 2), [(0, 100), (0, 100), (1, 101)]);
    }

    #[test]
    fn a_delayed_frame_holds_nobody_up() {
        let mut link = direction([(psn(0), Action::Delay(Span::from_ns(5)))]);
        assert_eq!(arrivals(&mut link, 3), [(1, 101), (2, 102), (0, 105)]);
    }

    #[test]
    fn a_reordered_frame_arrives_behind_the_kth_that_follows() {
        let mut link = direction([(psn(0), Action::Reorder { after: 2 })]);
        assert_eq!(arrivals(&mut link, 4), [(1, 101), (2, 102), (0, 102), (3, 103)]);
        let mut alone = direction([(psn(0), Action::Reorder { after: 2 })]);
        assert_eq!(arrivals(&mut alone, 2), [(1, 101)]);
        assert_eq!(alone.reports().next().unwrap().1.stuck, 1);
    }

    #[test]
    fn the_nth_match_alone_is_hit() {
        let mut link = direction([(Matcher { nth: vec![2], ..Matcher::default() }, Action::Drop)]);
        assert_eq!(arrivals(&mut link, 4), [(0, 100), (2, 102), (3, 103)]);
    }

    #[test]
    fn a_rule_acts_so_often_and_no_more() {
        let mut link = direction([(Matcher { times: Some(2), ..Matcher::default() }, Action::Drop)]);
        assert_eq!(arrivals(&mut link, 4), [(2, 102), (3, 103)]);
        assert_eq!(link.reports().next().unwrap().1, RuleReport { matched: 4, fired: 2, stuck: 0 });
    }

    #[test]
    fn ranges_hold_both_their_ends_and_cross_the_wrap() {
        let hits = |range: PsnMatch| {
            let matcher = Matcher { psns: vec![range], ..Matcher::default() };
            let mut link = direction([(matcher, Action::Drop)]);
            let passes = |psn: &u32| link.pass(Instant::ZERO, packet(*psn)).legs.is_empty();
            [0xff_fffd, 0xff_fffe, 0xff_ffff, 0, 1, 2, 0x80_0000].into_iter().filter(passes).collect::<Vec<_>>()
        };
        let wrapping = PsnMatch::AbsoluteRange(Psn::new(0xff_fffe), Psn::new(1));
        assert_eq!(hits(wrapping), [0xff_fffe, 0xff_ffff, 0, 1]);
        assert_eq!(hits(PsnMatch::AbsoluteRange(Psn::new(1), Psn::new(1))), [1]);
        assert_eq!(hits(PsnMatch::RelativeRange(1, 2)), [1, 2]);
    }

    #[test]
    fn the_origin_of_a_frame_is_asked_and_goes_on_with_it() {
        let origin = Origin { message: MessageId(7), index: 3, transmission: 2, iteration: 5 };
        let conditions = |message, transmission, iteration| Matcher {
            messages: vec![MessageId(message)],
            psns: vec![PsnMatch::Relative(3)],
            transmissions: vec![transmission],
            iterations: vec![iteration],
            ..Matcher::default()
        };
        let pass = |matcher, action, origin| {
            direction([(matcher, action)]).pass(Instant::ZERO, Passing { origin, ..packet(0) }).legs
        };
        for (matcher, copies) in
            [(conditions(7, 2, 5), 2), (conditions(6, 2, 5), 1), (conditions(7, 1, 5), 1), (conditions(7, 2, 4), 1)]
        {
            let legs = pass(matcher, Action::Duplicate, Some(origin));
            assert_eq!(legs.iter().map(|leg| leg.origin).collect::<Vec<_>>(), vec![Some(origin); copies]);
        }
        // A frame of nobody's: no condition on its origin holds.
        assert_eq!(pass(conditions(7, 2, 5), Action::Duplicate, None).len(), 1);
        let mut held = direction([(psn(0), Action::Reorder { after: 1 })]);
        held.pass(Instant::ZERO, Passing { origin: Some(origin), ..packet(0) });
        assert_eq!(held.pass(Instant::ZERO, packet(1)).legs[1].origin, Some(origin));
    }

    /// Numbers of queue pairs are those of their node: two nodes behind one switch have the same ones.
    #[test]
    fn a_queue_pair_is_told_by_its_node_and_its_number() {
        let dropped = |last: u8, qpn: u32| {
            let destinations = vec![(core::net::Ipv4Addr::new(10, 0, 0, last), Qpn::new(qpn).unwrap())];
            let mut link = direction([(Matcher { destinations, ..Matcher::default() }, Action::Drop)]);
            link.pass(Instant::ZERO, packet(0)).legs.is_empty()
        };
        assert_eq!([dropped(2, 0x11), dropped(2, 0x12), dropped(3, 0x11)], [true, false, false]);
    }

    #[test]
    fn a_link_is_down_between_its_times() {
        let window =
            Matcher { from: Some(Instant::from_ps(1_000)), until: Some(Instant::from_ps(3_000)), ..Matcher::default() };
        assert_eq!(arrivals(&mut direction([(window, Action::Down)]), 4), [(0, 100), (3, 103)]);
    }

    #[test]
    fn a_probability_is_the_share_of_frames_it_says() {
        let matcher = Matcher { probability: Some(Share::from_percent(10)), ..Matcher::default() };
        let mut link = direction([(matcher, Action::Drop)]);
        let passing = packet(0);
        for n in 0..10_000 {
            link.pass(Instant::from_ps(n), passing.clone());
        }
        let fired = link.reports().next().unwrap().1.fired;
        assert!((900..1_100).contains(&fired), "{fired} of 10,000");
    }

    #[test]
    fn a_flipped_bit_spoils_the_icrc_and_a_mark_does_not() {
        for field in [Field::Payload, Field::Icrc] {
            let mut link = direction([(psn(0), Action::Corrupt(Corruption { field, bit: 9 }))]);
            let journey = link.pass(Instant::ZERO, packet(0));
            let parsed = Packet::parse(&journey.legs[0].frame);
            assert!(matches!(parsed, Err(WireError::BadIcrc { .. })), "{field:?}: {parsed:?}");
        }
        let mut link = direction([(psn(0), Action::SetCe), (psn(0), Action::SetDscp(24))]);
        let journey = link.pass(Instant::ZERO, packet(0));
        let Ok(Packet::Roce(roce)) = Packet::parse(&journey.legs[0].frame) else { panic!("it parses") };
        assert_eq!((roce.ecn, roce.dscp), (Ecn::Ce, 24));
        assert_eq!(
            journey.effects.iter().map(|e| e.effect).collect::<Vec<_>>(),
            [Effect::CeSet, Effect::DscpSet { dscp: 24 }]
        );
    }

    #[test]
    fn a_bit_that_a_frame_does_not_have_is_not_flipped() {
        let mut link = direction([(psn(0), Action::Corrupt(Corruption { field: Field::Payload, bit: 16 * 8 }))]);
        assert_eq!(link.pass(Instant::ZERO, packet(0)).effects, []);
        assert_eq!(link.reports().next().unwrap().1, RuleReport::default());
    }
}
