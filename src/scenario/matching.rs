//! `match` of a fault: which frames it happens to.
//!
//! Every condition is one value or an array of them, any of which will do; all conditions have to hold. Counts follow at
//! the end: of the frames that everything else allows, `probability` draws some, `nth` picks by number, and `times`
//! bounds how many are hit.
//!
//! Messages, packets, transmissions and passes are those of the NIC that sends, and queue pairs those of their nodes, on
//! whichever link a fault stands: also behind switches, where many flows share a link. What names a message or a queue
//! pair that cannot pass there is refused; of ways that are equally short, each is possible.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use super::diagnostics::{Diagnostic, Report};
use super::document::{Entry, Table, listing, nearest, shortened};
use super::network::{Network, address};
use super::passage::Side;
use super::traffic::Traffic;
use super::values;
use crate::base::{Instant, MessageId, Octets, Psn, Qpn};
use crate::link::{Matcher, PsnMatch};
use crate::trace::PacketKind;
use crate::wire::Opcode;

/// The direction of a link that a fault stands on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub link: usize,
    pub from_end: usize,
    /// Nodes.
    pub from: usize,
    pub to: usize,
}

impl Way {
    pub(super) const fn side(&self) -> Side {
        (self.link, self.from_end)
    }

    const fn back(&self) -> Side {
        (self.link, 1 - self.from_end)
    }
}

/// What faults refer to.
pub(super) struct Scene<'s> {
    pub network: &'s Network,
    pub traffic: &'s Traffic,
    pub until: Instant,
    /// They post messages too, with the numbers that follow: how many, nobody knows.
    pub has_applications: bool,
    /// Number of the first message of each post, and behind the last the number of all.
    firsts: Vec<u64>,
    /// Packets of the longest message between two NICs, by the one that sends and the one that receives.
    longest: BTreeMap<(usize, usize), u64>,
}

type Kinds = &'static [PacketKind];

const KINDS: [(&str, Kinds); 10] = [
    ("data", &[PacketKind::Send, PacketKind::Write]),
    ("send", &[PacketKind::Send]),
    ("write", &[PacketKind::Write]),
    ("ack", &[PacketKind::Ack]),
    ("nak", &[PacketKind::Nak]),
    ("rnr_nak", &[PacketKind::RnrNak]),
    ("cnp", &[PacketKind::Cnp]),
    ("pfc", &[PacketKind::Xoff, PacketKind::Xon]),
    ("xoff", &[PacketKind::Xoff]),
    ("xon", &[PacketKind::Xon]),
];

/// Numbers that a list of them may name; PSNs and packets come as ranges, which cost nothing.
const LISTED_MAX: u64 = 10_000;

impl<'s> Scene<'s> {
    pub(super) fn new(network: &'s Network, traffic: &'s Traffic, until: Instant, has_applications: bool) -> Self {
        let mut next = 0;
        let mut firsts = vec![0];
        firsts.extend(traffic.posts.iter().map(|post| {
            next += u64::from(post.count);
            next
        }));
        let mut scene = Self { network, traffic, until, has_applications, firsts, longest: BTreeMap::new() };
        for post in 0..traffic.posts.len() {
            let packets = scene.packets(post);
            let longest = scene.longest.entry(scene.ends(post)).or_default();
            *longest = packets.max(*longest);
        }
        scene
    }

    pub(super) fn message_count(&self) -> u64 {
        self.firsts.last().copied().unwrap_or(0)
    }

    /// Index of the post that makes a message.
    fn post_of(&self, message: u64) -> Option<usize> {
        let behind = self.firsts.partition_point(|first| *first <= message);
        behind.checked_sub(1).filter(|post| *post < self.traffic.posts.len())
    }

    /// The NICs that send and receive what a post posts.
    fn ends(&self, post: usize) -> (usize, usize) {
        let post = &self.traffic.posts[post];
        let ends = &self.traffic.queue_pairs[post.queue_pair].plan.ends;
        (ends[post.from_end].node.index(), ends[1 - post.from_end].node.index())
    }

    fn mss(&self, nic: usize) -> Octets {
        self.network.nodes[nic].settings.nic.mss
    }

    /// Packets of each message that a post makes.
    fn packets(&self, post: usize) -> u64 {
        self.traffic.posts[post].size.get().div_ceil(self.mss(self.ends(post).0).get()).max(1)
    }

    /// Senders and receivers whose messages can go this way, with the packets of their longest.
    fn messages_on(&self, way: Way) -> impl Iterator<Item = ((usize, usize), u64)> {
        let longest = self.longest.iter().map(|(ends, packets)| (*ends, *packets));
        longest.filter(move |((from, to), _)| self.network.can_pass(way.side(), *from, *to))
    }

    /// The largest payload of a packet that can go this way, of these messages or of any.
    pub(super) fn largest_payload(&self, way: Way, messages: &[MessageId]) -> Octets {
        let of_messages = messages.iter().filter_map(|message| self.post_of(u64::from(message.0)));
        let named = of_messages.map(|post| self.mss(self.ends(post).0)).max();
        let passing = || self.messages_on(way).map(|((from, _), _)| self.mss(from)).max();
        // Where nobody posts anything, as far as is known, whoever could would have to.
        let is_switch = self.network.is_switch(way.from);
        let nics = if is_switch { 0..self.network.nic_count } else { way.from..way.from + 1 };
        named.or_else(passing).or_else(|| nics.map(|nic| self.mss(nic)).max()).unwrap_or_default()
    }
}

/// The conditions that `table` states, on frames that go `way`.
///
/// What refers to the way is not looked at if it is not known.
pub(super) fn read(mut table: Table<'_>, way: Option<Way>, scene: &Scene<'_>, report: &mut Report) -> Option<Matcher> {
    let keys = ["kind", "opcode", "message", "queue_pair", "psn", "packet", "transmission", "iteration"];
    let [kind, opcode, message, queue_pair, psn, packet, transmission, iteration] = keys.map(|key| table.take(key));
    let [since, until, probability, nth, times] =
        ["since", "until", "probability", "nth", "times"].map(|key| table.take(key));
    table.finish(|_| None, report);

    let few = |entry: &Option<Entry<'_>>, least, most, report: &mut Report| match entry {
        Some(entry) => listed(entry, least, most, report),
        None => Some(Vec::new()),
    };
    let u32_max = u64::from(u32::MAX);
    let kinds = kind.as_ref().map_or(Some(Vec::new()), |entry| kinds(entry, report));
    let opcodes = opcode.as_ref().map_or(Some(Vec::new()), |entry| opcodes(entry, report));
    let messages = few(&message, 0, u32_max, report);
    let destinations = queue_pair.as_ref().map_or(Some(Vec::new()), |entry| destinations(entry, way, scene, report));
    let psns = psns(&psn, &packet, report);
    let transmissions = few(&transmission, 1, u32_max, report);
    let iterations = few(&iteration, 1, u32_max, report);
    let window = window([since.as_ref(), until.as_ref()], scene.until, report);
    let share = probability.as_ref().map_or(Some(None), |entry| values::probability(entry, report).map(Some));
    let nth_values = few(&nth, 1, u64::MAX, report);
    let times = times.as_ref().map_or(Some(None), |entry| values::whole(entry, 1, u64::MAX, report).map(Some));

    let kinds = kinds?;
    const DATA: &str = "data packets";
    let of_data = [&message, &packet, &transmission, &iteration].map(|entry| (entry, DATA));
    let of_queue_pairs = [&psn, &queue_pair, &opcode].map(|entry| (entry, "packets of queue pairs"));
    let mut sound = true;
    for (entry, who) in of_data.into_iter().chain(of_queue_pairs) {
        let Some(entry) = entry else { continue };
        let allows = |kind: &PacketKind| if who == DATA { kind.is_data() } else { !kind.is_pfc() };
        if !kinds.is_empty() && !kinds.iter().any(allows) {
            sound = false;
            let message = format!("only {who} have what `{}` asks for, and `kind` allows none", entry.name);
            report.push(
                Diagnostic::error(entry.key.clone(), message)
                    .label("nothing matches this")
                    .help("leave one of the two out"),
            );
        }
    }
    let (opcodes, messages) = (opcodes?, narrow(messages?));
    if let Some(entry) = &opcode {
        let fits = |opcode: &Opcode| kinds.is_empty() || kinds.iter().any(|kind| is_of(*opcode, *kind));
        if sound && !opcodes.iter().all(fits) {
            sound = false;
            report.push(
                Diagnostic::error(entry.value.span(), "`kind` allows no packet with this `opcode`")
                    .label("nothing matches this")
                    .help("leave one of the two out"),
            );
        }
    }
    let psns = psns?;
    if let Some(way) = way {
        sound &= are_sent(&message, &messages, way, scene, report)?;
        sound &= are_long_enough(&packet, &messages, &psns, way, scene, report);
    }
    let (from, until) = window?;
    let matcher = Matcher {
        kinds,
        opcodes,
        messages: messages.into_iter().map(MessageId).collect(),
        destinations: destinations?,
        psns,
        transmissions: narrow(transmissions?),
        iterations: narrow(iterations?),
        from,
        until,
        probability: share?,
        nth: nth_values?,
        times: times?,
    };
    sound.then_some(matcher)
}

pub(super) fn kinds_known() -> impl Iterator<Item = &'static str> {
    KINDS.into_iter().map(|(name, _)| name)
}

fn kinds(entry: &Entry<'_>, report: &mut Report) -> Option<Vec<PacketKind>> {
    let items = values::each(entry, report);
    let read: Vec<_> =
        items.iter().filter_map(|item| values::choice(item, "a kind of frame", &KINDS, report)).collect();
    (read.len() == items.len()).then(|| read.concat())
}

fn is_of(opcode: Opcode, kind: PacketKind) -> bool {
    match kind {
        PacketKind::Send => opcode.is_send(),
        PacketKind::Write => opcode.is_write(),
        PacketKind::Ack | PacketKind::Nak | PacketKind::RnrNak => opcode == Opcode::ACKNOWLEDGE,
        PacketKind::Cnp => opcode == Opcode::CNP,
        PacketKind::Xoff | PacketKind::Xon | PacketKind::Other => false,
    }
}

fn opcodes(entry: &Entry<'_>, report: &mut Report) -> Option<Vec<Opcode>> {
    let items = values::each(entry, report);
    let read: Vec<_> = items.iter().filter_map(|item| opcode(item, report)).collect();
    (read.len() == items.len()).then_some(read)
}

/// The words of an opcode's name, joined by `_`.
fn opcode_words(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("_")
}

pub(super) fn opcodes_known() -> impl Iterator<Item = (String, Opcode)> {
    let all = (0..=u8::MAX).map(Opcode::from_u8);
    all.filter_map(|opcode| opcode.name().map(|name| (opcode_words(name), opcode)))
}

/// By its name, in any spelling that keeps the words: `"WRITE First"`, `"write_first"`.
pub(super) fn opcode(entry: &Entry<'_>, report: &mut Report) -> Option<Opcode> {
    let text = values::string(entry, report)?;
    let known: Vec<_> = opcodes_known().collect();
    let wanted = opcode_words(&shortened(text));
    let found = known.iter().find(|(name, _)| *name == wanted);
    if found.is_none() && !report.is_full() {
        let near = nearest(&wanted, known.iter().map(|(name, _)| name.as_str()));
        let names = listing(known.iter().map(|(name, _)| name), "opcodes");
        report.push(
            Diagnostic::error(entry.value.span(), format!("`{}` is not an opcode", shortened(text)))
                .label(near.map_or("unknown".to_owned(), |near| format!("did you mean `{near}`?")))
                .help(format!("known opcodes: {names}")),
        );
    }
    found.map(|(_, opcode)| *opcode)
}

/// Numbers and ranges of them, one by one.
fn listed(entry: &Entry<'_>, least: u64, most: u64, report: &mut Report) -> Option<Vec<u64>> {
    let ranges = values::numbers(entry, least, most, false, report)?;
    let count = ranges.iter().map(|(first, last)| (last - first).saturating_add(1)).fold(0, u64::saturating_add);
    if count > LISTED_MAX {
        report.push(
            Diagnostic::error(
                entry.value.span(),
                format!("`{}` names {count} numbers, more than {LISTED_MAX}", entry.name),
            )
            .label("too many")
            .help("use fewer; to bound how often a fault happens there is `times`"),
        );
        return None;
    }
    Some(ranges.into_iter().flat_map(|(first, last)| first..=last).collect())
}

/// Numbers that were read with a limit of 32 bits.
fn narrow(numbers: Vec<u64>) -> Vec<u32> {
    numbers.into_iter().filter_map(|number| u32::try_from(number).ok()).collect()
}

/// Both ends of queue pairs, of which the packets that go this way go to one, and those on the way back to the other.
fn destinations(
    entry: &Entry<'_>,
    way: Option<Way>,
    scene: &Scene<'_>,
    report: &mut Report,
) -> Option<Vec<(Ipv4Addr, Qpn)>> {
    let items = values::each(entry, report);
    let read: Vec<_> = items.iter().filter_map(|item| queue_pair_on(item, way?, scene, report)).collect();
    (read.len() == items.len()).then(|| {
        let ends = |(queue_pair, _): (usize, usize)| scene.traffic.queue_pairs[queue_pair].plan.ends;
        read.into_iter().flat_map(ends).map(|end| (address(end.node.index()).ip, end.qpn)).collect()
    })
}

/// The queue pair that `entry` names, and which of its ends the packets that go this way go to. Shortest ways to both
/// never pass one link in the same direction.
pub(super) fn queue_pair_on(
    entry: &Entry<'_>,
    way: Way,
    scene: &Scene<'_>,
    report: &mut Report,
) -> Option<(usize, usize)> {
    let network = scene.network;
    let queue_pair = scene.traffic.named(entry, network, report)?;
    let plan = &scene.traffic.queue_pairs[queue_pair].plan;
    let nodes = plan.ends.map(|end| end.node.index());
    let end = [0, 1].into_iter().find(|end| network.can_pass(way.side(), nodes[1 - end], nodes[*end]));
    if end.is_none() {
        let name = |node: usize| &network.nodes[node].name;
        let message =
            format!("queue pair `{}` has no packets from `{}` to `{}`", plan.name, name(way.from), name(way.to));
        let passage = network.passage_text(nodes[0], nodes[1]);
        report.push(Diagnostic::error(entry.value.span(), message).label("its packets do not pass here").help(
            format!(
                "its ends are `{}` and `{}`; its packets can pass {passage}, and the same back",
                name(nodes[0]),
                name(nodes[1])
            ),
        ));
    }
    Some((queue_pair, end?))
}

/// PSNs in the BTH, and packets by their index; either will do.
fn psns(psn: &Option<Entry<'_>>, packet: &Option<Entry<'_>>, report: &mut Report) -> Option<Vec<PsnMatch>> {
    if let (Some(psn), Some(packet)) = (psn, packet) {
        report.push(
            Diagnostic::error(packet.key.clone(), "`psn` and `packet` are two ways to name a packet")
                .label("the second one")
                .help("keep one: `psn` is the number on the wire, `packet` the index in the message, from 0")
                .related(psn.key.clone(), "the first one"),
        );
        return None;
    }
    let mut all = Vec::new();
    if let Some(entry) = psn {
        for (first, last) in values::numbers(entry, 0, 0xff_ffff, true, report)? {
            let [first, last] = [first, last].map(|psn| Psn::new(psn as u32));
            all.push(if first == last { PsnMatch::Absolute(first) } else { PsnMatch::AbsoluteRange(first, last) });
        }
    }
    if let Some(entry) = packet {
        for (first, last) in values::numbers(entry, 0, u64::from(u32::MAX), false, report)? {
            let [first, last] = [first, last].map(|index| index as u32);
            all.push(if first == last { PsnMatch::Relative(first) } else { PsnMatch::RelativeRange(first, last) });
        }
    }
    Some(all)
}

/// A time from which and a time until which something holds; refused if nothing of it lies inside the run.
pub(super) fn window(
    entries: [Option<&Entry<'_>>; 2],
    run_ends: Instant,
    report: &mut Report,
) -> Option<(Option<Instant>, Option<Instant>)> {
    let [since, until] = entries.map(|entry| {
        entry.map_or(Some(None), |entry| values::span(entry, report).map(|span| Some(Instant::ZERO + span)))
    });
    let (since, until) = (since?, until?);
    let starts = since.unwrap_or(Instant::ZERO);
    if let (Some(until), Some(entry)) = (until, entries[1])
        && until <= starts
    {
        report.push(
            Diagnostic::error(entry.value.span(), format!("it ends at {until} and begins at {starts}"))
                .label("no time is left")
                .help("give `until` a later time"),
        );
        return None;
    }
    if let Some(entry) = entries[0].filter(|_| starts >= run_ends) {
        report.push(
            Diagnostic::error(entry.value.span(), format!("the run ends at {run_ends}, before this begins"))
                .label("too late")
                .help("let it begin earlier, or give `until` in [run] a later time"),
        );
        return None;
    }
    Some((since, until))
}

/// Whether the messages exist and go this way. `None` if that cannot be said.
fn are_sent(
    entry: &Option<Entry<'_>>,
    messages: &[u32],
    way: Way,
    scene: &Scene<'_>,
    report: &mut Report,
) -> Option<bool> {
    let Some(entry) = entry else { return Some(true) };
    if !scene.traffic.is_sound {
        return Some(true);
    }
    let network = scene.network;
    let [from, to] = [way.from, way.to].map(|node| &network.nodes[node].name);
    let mut known: BTreeMap<(usize, usize), bool> = BTreeMap::new();
    for &message in messages {
        let last = scene.message_count().saturating_sub(1);
        let numbers = format!("messages have the numbers 0 to {last} in the order of [[posts]]");
        let (message, label, help) = match scene.post_of(u64::from(message)).map(|post| scene.ends(post)) {
            None if scene.has_applications => continue,
            None => (format!("there is no message {message}"), "nobody posts it", numbers),
            Some(ends) => {
                if *known.entry(ends).or_insert_with(|| network.can_pass(way.side(), ends.0, ends.1)) {
                    continue;
                }
                let goes_back = network.can_pass(way.back(), ends.0, ends.1);
                let passage = network.passage_text(ends.0, ends.1);
                (
                    format!("message {message} does not go from `{from}` to `{to}`"),
                    if goes_back { "it goes the other way" } else { "it does not pass here" },
                    format!("its packets can pass {passage}; {numbers}"),
                )
            }
        };
        report.push(Diagnostic::error(entry.value.span(), message).label(label).help(help));
        return None;
    }
    Some(true)
}

/// Whether some message has the packets that are named by their index.
fn are_long_enough(
    entry: &Option<Entry<'_>>,
    messages: &[u32],
    psns: &[PsnMatch],
    way: Way,
    scene: &Scene<'_>,
    report: &mut Report,
) -> bool {
    let Some(entry) = entry.as_ref().filter(|_| scene.traffic.is_sound) else { return true };
    let longest = match messages {
        [] => scene.messages_on(way).map(|(_, packets)| packets).max(),
        some => some.iter().filter_map(|m| scene.post_of(u64::from(*m))).map(|post| scene.packets(post)).max(),
    };
    let beyond = psns.iter().find_map(|psn| match psn {
        PsnMatch::Relative(index) | PsnMatch::RelativeRange(_, index) => {
            (u64::from(*index) >= longest.unwrap_or(0)).then_some(*index)
        }
        _ => None,
    });
    let Some(index) = beyond else { return true };
    let (message, help) = match longest {
        Some(longest) => (
            format!("no message here has a packet {index}"),
            format!("packets count from 0; the longest message has {longest}, so the last one is {}", longest - 1),
        ),
        None => ("no message goes this way".to_owned(), "post one, or turn `from` and `to` around".to_owned()),
    };
    report.push(Diagnostic::error(entry.value.span(), message).label("beyond the end").help(help));
    false
}
