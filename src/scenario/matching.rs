//! `match` of a fault: which frames it happens to.
//!
//! Every condition is one value or an array of them, any of which will do; all conditions have to hold. Counts follow at
//! the end: of the frames that everything else allows, `probability` draws some, `nth` picks by number, and `times`
//! bounds how many are hit.

use std::collections::BTreeMap;

use super::diagnostics::{Diagnostic, Report};
use super::document::{Entry, Table, nearest, shortened};
use super::network::Network;
use super::traffic::Traffic;
use super::values;
use crate::base::{Instant, MessageId, Psn, Qpn};
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

/// What faults refer to.
pub(super) struct Scene<'s> {
    pub network: &'s Network,
    pub traffic: &'s Traffic,
    pub until: Instant,
    /// Number of the first message of each post, and behind the last the number of all.
    firsts: Vec<u64>,
    /// Packets of the longest message that each node sends.
    longest: BTreeMap<usize, u64>,
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
    pub(super) fn new(network: &'s Network, traffic: &'s Traffic, until: Instant) -> Self {
        let mut next = 0;
        let mut firsts = vec![0];
        firsts.extend(traffic.posts.iter().map(|post| {
            next += u64::from(post.count);
            next
        }));
        let mut scene = Self { network, traffic, until, firsts, longest: BTreeMap::new() };
        for post in 0..traffic.posts.len() {
            let packets = scene.packets(post);
            let longest = scene.longest.entry(scene.sender(post)).or_default();
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

    /// The node that sends what a post posts.
    fn sender(&self, post: usize) -> usize {
        let post = &self.traffic.posts[post];
        self.traffic.queue_pairs[post.queue_pair].plan.ends[post.from_end].node.index()
    }

    /// Packets of each message that a post makes.
    fn packets(&self, post: usize) -> u64 {
        let mss = self.network.nodes[self.sender(post)].settings.nic.mss;
        self.traffic.posts[post].size.get().div_ceil(mss.get()).max(1)
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
    let dest_qpns = queue_pair.as_ref().map_or(Some(Vec::new()), |entry| dest_qpns(entry, way, scene, report));
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
        dest_qpns: dest_qpns?,
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

/// By its name, in any spelling that keeps the words: `"WRITE First"`, `"write_first"`.
pub(super) fn opcode(entry: &Entry<'_>, report: &mut Report) -> Option<Opcode> {
    let text = values::string(entry, report)?;
    let words = |text: &str| {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("_")
    };
    let known: Vec<_> = (0..=u8::MAX)
        .map(Opcode::from_u8)
        .filter_map(|opcode| opcode.name().map(|name| (words(name), opcode)))
        .collect();
    let wanted = words(&shortened(text));
    let found = known.iter().find(|(name, _)| *name == wanted);
    if found.is_none() && !report.is_full() {
        let near = nearest(&wanted, known.iter().map(|(name, _)| name.as_str()));
        let names: Vec<_> = known.iter().map(|(name, _)| name.as_str()).collect();
        report.push(
            Diagnostic::error(entry.value.span(), format!("`{}` is not an opcode", shortened(text)))
                .label(near.map_or("unknown".to_owned(), |near| format!("did you mean `{near}`?")))
                .help(format!("known opcodes: {}", names.join(", "))),
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

/// Numbers of queue pairs at the end that receives.
fn dest_qpns(entry: &Entry<'_>, way: Option<Way>, scene: &Scene<'_>, report: &mut Report) -> Option<Vec<Qpn>> {
    let items = values::each(entry, report);
    let read: Vec<_> = items.iter().filter_map(|item| queue_pair_at(item, way?.to, scene, report)).collect();
    (read.len() == items.len()).then(|| {
        read.into_iter().map(|(queue_pair, end)| scene.traffic.queue_pairs[queue_pair].plan.ends[end].qpn).collect()
    })
}

/// The queue pair that `entry` names, and which of its ends is at `node`.
pub(super) fn queue_pair_at(
    entry: &Entry<'_>,
    node: usize,
    scene: &Scene<'_>,
    report: &mut Report,
) -> Option<(usize, usize)> {
    let queue_pair = scene.traffic.named(entry, scene.network, report)?;
    let plan = &scene.traffic.queue_pairs[queue_pair].plan;
    let end = plan.ends.iter().position(|end| end.node.index() == node);
    if end.is_none() {
        let names = plan.ends.map(|end| scene.network.nodes[end.node.index()].name.as_str());
        report.push(
            Diagnostic::error(
                entry.value.span(),
                format!("queue pair `{}` has no end at `{}`", plan.name, scene.network.nodes[node].name),
            )
            .label("its packets do not pass here")
            .help(format!("its ends are `{}` and `{}`", names[0], names[1])),
        );
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
    let [from, to] = [way.from, way.to].map(|node| &scene.network.nodes[node].name);
    for &message in messages {
        let why = match scene.post_of(u64::from(message)) {
            Some(post) if scene.sender(post) == way.from => continue,
            Some(_) => (format!("message {message} does not go from `{from}` to `{to}`"), "it goes the other way"),
            None => (format!("there is no message {message}"), "nobody posts it"),
        };
        let count = scene.message_count();
        report.push(
            Diagnostic::error(entry.value.span(), why.0)
                .label(why.1)
                .help(format!("messages have the numbers 0 to {} in the order of [[posts]]", count.saturating_sub(1))),
        );
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
        [] => scene.longest.get(&way.from).copied(),
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
