//! `frame` of a fault that injects: a frame that nobody sent, in hex or by its fields.
//!
//! ```toml
//! frame = "0180c2000001 02000000000b 8808 0101 0001 ffff …"     # from destination MAC to ICRC, without FCS
//! frame = { kind = "xoff", class = 0, quanta = 65535 }          # or "xon"
//! frame = { kind = "ack", queue_pair = "q1", psn = 9000 }       # msn = 0
//! frame = { kind = "nak", queue_pair = "q1", psn = 3, code = "psn_sequence_error" }
//! frame = { kind = "cnp", queue_pair = "q1" }
//! frame = { kind = "data", queue_pair = "q1", opcode = "write_first", psn = 0, payload = "64B",
//!           address = 0x100000000, rkey = 1, length = "128B" }
//! ```
//!
//! Addresses are those of the queue pair's two ends, also on a link between switches, and the class is the queue pair's,
//! unless `class` says otherwise. `qpn` takes the place of `queue_pair` where a queue pair that does not exist is to be
//! named; the addresses are then those of the link's ends. `ce = true` sets the congestion mark.
//! `at` is the instant of arrival; `every` repeats it, `count` times or until the run ends.

use std::ops::Range;

use bytes::Bytes;
use toml::de::DeValue;

use super::diagnostics::{Diagnostic, Report};
use super::document::{Entry, Table};
use super::matching::{self, Scene, Way};
use super::plan::FaultKind;
use super::values;
use crate::base::{Class, Instant, Octets, Psn, Qpn, Span};
use crate::nic::Address;
use crate::wire::{self, Ecn, Endpoints, NakCode, Opcode, PfcFrame, Reth, RocePacket, Segment, udp_source_port};

/// The largest frame that a NIC could send: MSS 9,216 with every header.
const FRAME_MAX: usize = 9_400;
/// An Ethernet header.
const FRAME_MIN: usize = 14;
const PAYLOAD_MAX: u64 = 9_216;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Xoff,
    Xon,
    Ack,
    Nak,
    Cnp,
    Data,
}

const WORDS: [(&str, Word); 6] = [
    ("xoff", Word::Xoff),
    ("xon", Word::Xon),
    ("ack", Word::Ack),
    ("nak", Word::Nak),
    ("cnp", Word::Cnp),
    ("data", Word::Data),
];

const CODES: [(&str, NakCode); 5] = [
    ("psn_sequence_error", NakCode::PsnSequenceError),
    ("invalid_request", NakCode::InvalidRequest),
    ("remote_access_error", NakCode::RemoteAccessError),
    ("remote_operational_error", NakCode::RemoteOperationalError),
    ("invalid_rd_request", NakCode::InvalidRdRequest),
];

pub(super) fn kinds_known() -> impl Iterator<Item = &'static str> {
    WORDS.into_iter().map(|(name, _)| name)
}

pub(super) fn codes_known() -> impl Iterator<Item = &'static str> {
    CODES.into_iter().map(|(name, _)| name)
}

pub(super) fn read(
    parameters: &std::collections::BTreeMap<&'static str, Entry<'_>>,
    span: &Range<usize>,
    way: Option<Way>,
    scene: &Scene<'_>,
    report: &mut Report,
) -> Option<FaultKind> {
    let frame = match parameters.get("frame") {
        Some(entry) => frame(entry, way, scene, report),
        None => {
            report.push(
                Diagnostic::error(span.clone(), "this action needs `frame`")
                    .label("`frame` is missing")
                    .help("write it in hex, or by its fields: frame = { kind = \"xoff\", class = 0 }"),
            );
            None
        }
    };
    let at = matching::window([parameters.get("at"), None], scene.until, report);
    let every = parameters.get("every").map_or(Some(None), |entry| values::span(entry, report).map(Some));
    let most = u64::from(u32::MAX);
    let count = parameters.get("count").map_or(Some(None), |entry| values::whole(entry, 1, most, report).map(Some));
    let (every, count) = (every?, count?);
    // Nothing would ever follow an endless number of frames in one instant.
    if let (Some(Span::ZERO), None, Some(entry)) = (every, count, parameters.get("every")) {
        report.push(
            Diagnostic::error(entry.value.span(), "this many frames never end")
                .label("zero")
                .help("say how many: count = 2; or how far apart: every = \"10us\""),
        );
        return None;
    }
    let count = match (count, every) {
        (Some(count), _) => u32::try_from(count).ok()?,
        (None, Some(_)) => u32::MAX,
        (None, None) => 1,
    };
    let first_at = at?.0.unwrap_or(Instant::ZERO);
    Some(FaultKind::Inject { first_at, every: every.unwrap_or(Span::ZERO), count, frame: frame? })
}

fn frame(entry: &Entry<'_>, way: Option<Way>, scene: &Scene<'_>, report: &mut Report) -> Option<Bytes> {
    match entry.value.get_ref() {
        DeValue::Table(_) => by_fields(Table::read(entry, "`frame`", report)?, way, scene, report),
        _ => hex(entry, report),
    }
}

/// Octets in hex; spaces, colons and underscores between them say nothing.
fn hex(entry: &Entry<'_>, report: &mut Report) -> Option<Bytes> {
    const HELP: &str =
        "write the octets from the destination MAC to the ICRC in hex, without FCS, or a table of fields";
    let text = values::string(entry, report)?;
    let digits: Vec<_> = text.chars().filter(|c| !c.is_whitespace() && !matches!(c, ':' | '_')).collect();
    let nibbles: Vec<_> = digits.iter().filter_map(|c| c.to_digit(16)).collect();
    let count = nibbles.len().div_ceil(2);
    let why = if nibbles.len() != digits.len() {
        "`frame` has characters that are no hexadecimal digits".to_owned()
    } else if nibbles.len() % 2 != 0 {
        "`frame` ends in the middle of an octet".to_owned()
    } else if !(FRAME_MIN..=FRAME_MAX).contains(&count) {
        format!("`frame` has {count} octets; frames have {FRAME_MIN} to {FRAME_MAX}")
    } else {
        return Some(nibbles.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect());
    };
    report.push(Diagnostic::error(entry.value.span(), why).label("not a frame").help(HELP));
    None
}

/// Who a packet of a queue pair comes from and goes to.
struct Flow {
    endpoints: Endpoints,
    dest_qpn: Qpn,
    data_class: Class,
    control_class: Class,
}

fn by_fields(mut table: Table<'_>, way: Option<Way>, scene: &Scene<'_>, report: &mut Report) -> Option<Bytes> {
    let help = "say what it is: kind = \"ack\"";
    let kind = table.require("kind", help, report)?;
    let word = values::choice(&kind, "a kind of frame", &WORDS, report);
    let class = table.take("class").map_or(Some(None), |entry| values::class(&entry, report).map(Some));
    let Some(word) = word else {
        // Which keys there may be is not known.
        return None;
    };
    if matches!(word, Word::Xoff | Word::Xon) {
        let most = u64::from(u16::MAX);
        let least = u64::from(word == Word::Xoff);
        let quanta = match word {
            Word::Xoff => table.take("quanta").map_or(Some(most), |entry| values::whole(&entry, least, most, report)),
            _ => Some(0),
        };
        table.finish(|_| None, report);
        let src = scene.network.address(way?.from).mac;
        return Some(PfcFrame::pause(src, class?.unwrap_or_default(), u16::try_from(quanta?).ok()?).emit());
    }
    let flow = flow(&mut table, way, scene, report);
    let psn = match word {
        Word::Cnp => Some(0),
        _ => table
            .require("psn", "write the PSN of its BTH: psn = 0", report)
            .and_then(|entry| values::whole(&entry, 0, 0xff_ffff, report)),
    };
    let ce = table.take("ce").map_or(Some(false), |entry| values::boolean(&entry, report));
    let most = 0xff_ffff;
    let msn = |table: &mut Table<'_>, report: &mut Report| {
        table.take("msn").map_or(Some(0), |entry| values::whole(&entry, 0, most, report)).map(|msn| msn as u32)
    };
    let psn = psn.map(|psn| Psn::new(psn as u32));
    let packet = match word {
        Word::Ack => {
            let msn = msn(&mut table, report);
            table.finish(|_| None, report);
            let (flow, class) = (flow?, class?);
            RocePacket::ack(&flow.endpoints, class.unwrap_or(flow.control_class), flow.dest_qpn, psn?, msn?)
        }
        Word::Nak => {
            let msn = msn(&mut table, report);
            let code = table
                .take("code")
                .map_or(Some(NakCode::PsnSequenceError), |entry| values::choice(&entry, "a NAK code", &CODES, report));
            table.finish(|_| None, report);
            let (flow, class) = (flow?, class?);
            RocePacket::nak(&flow.endpoints, class.unwrap_or(flow.control_class), flow.dest_qpn, psn?, code?, msn?)
        }
        Word::Cnp => {
            table.finish(|_| None, report);
            let (flow, class) = (flow?, class?);
            RocePacket::cnp(&flow.endpoints, class.unwrap_or(flow.control_class), flow.dest_qpn)
        }
        _ => data(table, flow, class?, psn, report)?,
    };
    let frame = packet.emit();
    Some(if ce? { wire::set_ce(&frame) } else { frame })
}

fn data(
    mut table: Table<'_>,
    flow: Option<Flow>,
    class: Option<Class>,
    psn: Option<Psn>,
    report: &mut Report,
) -> Option<RocePacket> {
    let opcode = table.require("opcode", "say which packet of a message it is: opcode = \"write_middle\"", report);
    let opcode_span = opcode.as_ref().map(|entry| entry.value.span());
    let opcode = opcode.and_then(|entry| matching::opcode(&entry, report));
    let payload = table.take("payload").map_or(Some(Octets::ZERO), |entry| {
        let size = values::size(&entry, report)?;
        if size.get() > PAYLOAD_MAX {
            report.push(
                Diagnostic::error(entry.value.span(), format!("a packet cannot carry {size}"))
                    .label("too large")
                    .help(format!("a packet carries at most \"{PAYLOAD_MAX}B\"")),
            );
            return None;
        }
        Some(size)
    });
    let va = table.take("address").map_or(Some(0), |entry| values::whole(&entry, 0, u64::MAX, report));
    let most = u64::from(u32::MAX);
    let rkey = table.take("rkey").map_or(Some(0), |entry| values::whole(&entry, 0, most, report));
    let length = table.take("length").map_or(Some(None), |entry| values::size(&entry, report).map(Some));
    table.finish(|_| None, report);
    let (opcode, payload, flow) = (opcode?, payload?, flow?);
    let immediate = opcode.has_immediate().then_some(0);
    let Some(verb) = opcode.verb() else {
        report.push(
            Diagnostic::error(opcode_span?, format!("{opcode} carries no data"))
                .label("not a data packet")
                .help("write the opcode of a WRITE or a SEND, or another `kind`"),
        );
        return None;
    };
    let length = u32::try_from(length?.unwrap_or(payload).get()).unwrap_or(u32::MAX);
    let segment = Segment {
        verb,
        first: opcode.starts_message(),
        last: opcode.ends_message(),
        dest_qpn: flow.dest_qpn,
        psn: psn?,
        reth: Reth { va: va?, rkey: u32::try_from(rkey?).ok()?, length },
        immediate,
        payload: Bytes::from(vec![0; usize::try_from(payload.get()).ok()?]),
    };
    debug_assert!(Opcode::for_segment(verb, segment.first, segment.last) == opcode || immediate.is_some());
    Some(RocePacket::data(&flow.endpoints, class.unwrap_or(flow.data_class), Ecn::Ect0, segment))
}

/// The connection that `queue_pair` names, or one of the number `qpn` that may not exist.
fn flow(table: &mut Table<'_>, way: Option<Way>, scene: &Scene<'_>, report: &mut Report) -> Option<Flow> {
    let by_name = table.take("queue_pair");
    let by_number = table.take("qpn");
    let number = by_number.as_ref().map_or(Some(None), |entry| {
        values::whole(entry, 0, 0xff_ffff, report).map(|qpn| u32::try_from(qpn).ok().and_then(Qpn::new))
    });
    let way = way?;
    let flow = |nodes: [usize; 2], own: Qpn, dest_qpn: Qpn, data_class, control_class| {
        let udp_src = udp_source_port(own, dest_qpn);
        let [from, to] = nodes.map(|node| scene.network.address(node));
        let endpoints = endpoints(from, to, udp_src);
        Flow { endpoints, dest_qpn, data_class, control_class }
    };
    match (by_name, number?) {
        (Some(entry), number) => {
            let (queue_pair, end) = matching::queue_pair_on(&entry, way, scene, report)?;
            let ends = scene.traffic.queue_pairs[queue_pair].plan.ends;
            let (own, dest) = (ends[1 - end], ends[end]);
            let nodes = [own, dest].map(|end| end.node.index());
            Some(flow(nodes, own.qpn, number.unwrap_or(dest.qpn), own.data_class, own.control_class))
        }
        (None, Some(number)) => {
            let settings = &scene.network.nodes[way.from].settings;
            Some(flow([way.from, way.to], number, number, settings.data_class, settings.nic.control_class))
        }
        (None, None) => {
            report.push(
                Diagnostic::error(table.span.clone(), format!("{} names no queue pair", table.name))
                    .label("for whom?")
                    .help("name one: queue_pair = \"q1\"; or the number of one that need not exist: qpn = 77"),
            );
            None
        }
    }
}

fn endpoints(from: Address, to: Address, udp_src: u16) -> Endpoints {
    Endpoints { eth_dst: to.mac, eth_src: from.mac, ip_src: from.ip, ip_dst: to.ip, udp_src }
}
