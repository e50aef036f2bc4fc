//! Queue pairs and posts: who may send to whom, and what is sent when.

use std::collections::BTreeMap;
use std::ops::Range;

use super::diagnostics::{Diagnostic, Report};
use super::document::{Entry, Table, nearest, shortened, tables};
use super::fan;
use super::network::{Network, node_id};
use super::plan::{PostPlan, QueuePairEnd, QueuePairPlan};
use super::values;
use super::wqe::Handover;
use crate::base::{Instant, Octets, Psn, Qpn, Span};
use crate::wire::Verb;

/// Pairs of sender and receiver of posts without a queue pair.
const CONNECTIONS_MAX: usize = 100_000;
/// Work requests of all posts together: each has its message number, memory region and line of output.
const MESSAGES_MAX: u64 = 4_000_000;
/// The DMA length of a RETH has 32 bits; the transport's limit is half of that (model.md W10).
const MESSAGE_MAX: Octets = Octets::new(1 << 31);
const NAME_MAX: usize = 64;
/// 0 and 1 belong to management queue pairs.
const FIRST_QPN: Qpn = match Qpn::new(2) {
    Some(qpn) => qpn,
    None => unreachable!(),
};

pub(super) struct Traffic {
    pub queue_pairs: Vec<QueuePair>,
    pub posts: Vec<PostPlan>,
    /// No queue pair and no post was refused.
    pub is_sound: bool,
    /// By name; `None` stands for one that was refused.
    by_name: BTreeMap<String, Option<usize>>,
    /// By the nodes from and to.
    implicit: BTreeMap<(usize, usize), usize>,
}

pub(super) struct QueuePair {
    pub plan: QueuePairPlan,
    /// Where it is described, or used first if it is implicit.
    pub span: Range<usize>,
    /// Where the file gives the classes of its ends.
    pub data_class_spans: [Option<Range<usize>>; 2],
    pub control_class_spans: [Option<Range<usize>>; 2],
    given_qpns: [Option<Range<usize>>; 2],
}

impl Traffic {
    pub(super) fn read(root: &mut Table<'_>, network: &Network, until: Instant, report: &mut Report) -> Self {
        let mut traffic = Self {
            queue_pairs: Vec::new(),
            posts: Vec::new(),
            is_sound: true,
            by_name: BTreeMap::new(),
            implicit: BTreeMap::new(),
        };
        let queue_pairs = root.take("queue_pairs").map(|entry| tables(&entry, report)).unwrap_or_default();
        for table in queue_pairs {
            traffic.read_queue_pair(table, network, report);
        }
        traffic.number(report);
        let posts = root.take("posts").map(|entry| tables(&entry, report)).unwrap_or_default();
        let mut messages = 0;
        for table in posts {
            let span = table.span.clone();
            let Some(several) = traffic.read_post(table, network, until, report) else {
                traffic.is_sound = false;
                continue;
            };
            for post in several {
                let before = messages;
                messages += u64::from(post.count);
                if before > MESSAGES_MAX {
                    break;
                }
                if messages > MESSAGES_MAX {
                    report.push(
                        Diagnostic::error(span.clone(), format!("the posts make more than {MESSAGES_MAX} messages"))
                            .label("passes the limit")
                            .help("lower `count`, or send fewer and larger messages"),
                    );
                }
                traffic.posts.push(post);
            }
        }
        traffic.is_sound &= traffic.by_name.values().all(Option::is_some);
        traffic
    }

    /// The queue pair that `entry` names; an implicit one is called `from->to`.
    pub(super) fn named(&self, entry: &Entry<'_>, network: &Network, report: &mut Report) -> Option<usize> {
        let name = values::string(entry, report)?;
        if let Some(found) = self.by_name.get(name) {
            return *found;
        }
        let nodes = name.split_once("->").and_then(|(from, to)| Some((network.index(from)?, network.index(to)?)));
        let implicit = nodes.and_then(|nodes| self.implicit.get(&nodes).copied());
        if implicit.is_none() {
            self.refuse_unknown(name, entry.value.span(), report);
        }
        implicit
    }

    fn read_queue_pair(&mut self, mut table: Table<'_>, network: &Network, report: &mut Report) {
        let span = table.span.clone();
        let name = table.require("name", "give it a name for posts to refer to: name = \"q1\"", report);
        let name = name.and_then(|entry| Some((values::string(&entry, report)?, entry.value.span())));
        if let Some((name, span)) = &name {
            values::identifier("a queue pair", name, span.clone(), NAME_MAX, true, report);
        }
        let ends = network.nic_ends(&mut table, report);
        let given = ["qpn", "initial_psn", "data_class", "control_class"].map(|key| table.take(key));
        table.finish(|_| None, report);
        let read = ends.map(|ends| {
            if !network.can_reach(ends.nodes) {
                refuse_unjoined(ends.nodes, ends.span, network, report);
            }
            let name = name.as_ref().map_or("", |(name, _)| name);
            Self::queue_pair(name, span, ends.nodes, &given, network, report)
        });
        let index = read.is_some().then_some(self.queue_pairs.len());
        self.queue_pairs.extend(read);
        if let Some((name, span)) = name
            && let Some(first) = self.by_name.insert(name.to_owned(), index)
        {
            let message = format!("there are two queue pairs named `{}`", shortened(name));
            let mut twin = Diagnostic::error(span, message).label("the second one").help("give each a name of its own");
            if let Some(first) = first {
                twin = twin.related(self.queue_pairs[first].span.clone(), "the first one");
            }
            report.push(twin);
        }
    }

    fn queue_pair(
        name: &str,
        span: Range<usize>,
        nodes: [usize; 2],
        [qpn, initial_psn, data_class, control_class]: &[Option<Entry<'_>>; 4],
        network: &Network,
        report: &mut Report,
    ) -> QueuePair {
        let qpns = read_per_end(qpn, nodes, network, explicit_qpn, report);
        let psns = read_per_end(initial_psn, nodes, network, psn, report);
        let data = read_per_end(data_class, nodes, network, values::class, report);
        let control = read_per_end(control_class, nodes, network, values::class, report);
        let end = |end: usize| {
            let settings = &network.nodes[nodes[end]].settings;
            QueuePairEnd {
                node: node_id(nodes[end]),
                // Those that are not given are chosen when all that are given are known.
                qpn: qpns[end].as_ref().map_or(FIRST_QPN, |(qpn, _)| *qpn),
                initial_psn: psns[end].as_ref().map_or(Psn::default(), |(psn, _)| *psn),
                data_class: data[end].as_ref().map_or(settings.data_class, |(class, _)| *class),
                control_class: control[end].as_ref().map_or(settings.nic.control_class, |(class, _)| *class),
            }
        };
        QueuePair {
            plan: QueuePairPlan { name: name.to_owned(), ends: [end(0), end(1)], implicit: false },
            span,
            data_class_spans: data.map(|given| given.map(|(_, span)| span)),
            control_class_spans: control.map(|given| given.map(|(_, span)| span)),
            given_qpns: qpns.map(|given| given.map(|(_, span)| span)),
        }
    }

    /// Gives numbers to the ends without one: per node from 2 upward in file order, around those that are given.
    fn number(&mut self, report: &mut Report) {
        let mut taken: BTreeMap<(usize, Qpn), Range<usize>> = BTreeMap::new();
        for queue_pair in &self.queue_pairs {
            for (end, span) in queue_pair.plan.ends.iter().zip(&queue_pair.given_qpns) {
                let Some(span) = span else { continue };
                let Some(first) = taken.insert((end.node.index(), end.qpn), span.clone()) else { continue };
                report.push(
                    Diagnostic::error(
                        span.clone(),
                        format!("queue pair number {} is taken at this node", end.qpn.get()),
                    )
                    .label("used a second time")
                    .help("the numbers of one node differ; leave `qpn` out to have a free one chosen")
                    .related(first, "used here first"),
                );
            }
        }
        let mut next: BTreeMap<usize, u32> = BTreeMap::new();
        for queue_pair in &mut self.queue_pairs {
            for (end, given) in queue_pair.plan.ends.iter_mut().zip(&queue_pair.given_qpns) {
                if given.is_some() {
                    continue;
                }
                let node = end.node.index();
                let next = next.entry(node).or_insert(FIRST_QPN.get());
                // A file of the largest size describes too few queue pairs to reach the implicit numbers.
                let free =
                    (*next..Qpn::IMPLICIT_BASE).filter_map(Qpn::new).find(|qpn| !taken.contains_key(&(node, *qpn)));
                end.qpn = free.expect("a scenario file cannot describe eight million queue pairs");
                *next = end.qpn.get() + 1;
            }
        }
    }

    fn read_post(
        &mut self,
        mut table: Table<'_>,
        network: &Network,
        until: Instant,
        report: &mut Report,
    ) -> Option<Vec<PostPlan>> {
        let at = table.take("at");
        let connections = self.connections(&mut table, network, report);
        let verb = table.take("verb").map_or(Some(Verb::Write), |entry| verb(&entry, report));
        let size = table
            .require("size", "say how many octets to send: size = \"1MiB\"", report)
            .and_then(|entry| message_size(&entry, report));
        let count = table.take("count").map_or(Some(1), |entry| values::whole(&entry, 1, MESSAGES_MAX, report));
        let every = table.take("every");
        let handover = Handover::read(&mut table, size, report);
        let starts = at.as_ref().map_or(Some(Span::ZERO), |entry| values::span(entry, report));
        let interval = every.as_ref().map_or(Some(Span::ZERO), |entry| values::span(entry, report));
        let span = table.span.clone();
        table.finish(|_| None, report);
        let (starts, interval, count) = (starts?, interval?, u32::try_from(count?).ok()?);
        let last = u128::from(starts.ps()) + u128::from(interval.ps()) * u128::from(count - 1);
        if last >= u128::from(until.ps()) {
            let place = every.as_ref().filter(|_| starts.ps() < until.ps()).or(at.as_ref());
            report.push(
                Diagnostic::error(
                    place.map_or(span, |entry| entry.value.span()),
                    format!("the run ends at {until}, before the last of these is posted"),
                )
                .label("too late")
                .help("post earlier, or give `until` in [run] a later time"),
            );
            return None;
        }
        let (connections, verb, size, handover) = (connections?, verb?, size?, handover?);
        let post = |(queue_pair, from_end)| PostPlan {
            at: Instant::ZERO + starts,
            queue_pair,
            from_end,
            verb,
            size,
            inline: handover.inline,
            blue_flame: handover.blue_flame,
            count,
            every: interval,
        };
        Some(connections.into_iter().map(post).collect())
    }

    /// The queue pairs of a post, and which of their ends posts.
    fn connections(
        &mut self,
        table: &mut Table<'_>,
        network: &Network,
        report: &mut Report,
    ) -> Option<Vec<(usize, usize)>> {
        let by_name = table.take("queue_pair");
        match by_name {
            Some(entry) => {
                let (from, to) = fan::one_sender(table, network, report);
                self.explicit(&entry, from?, to?, network, report).map(|connection| vec![connection])
            }
            None => {
                let pairs = fan::pairs(table, network, report)?;
                let connections = pairs.into_iter().map(|[from, to]| self.implicit(from, to, network, report));
                // All of them are tried, so that all that is wrong is said.
                connections.collect::<Vec<_>>().into_iter().collect()
            }
        }
    }

    fn explicit(
        &self,
        entry: &Entry<'_>,
        (from, from_span): (usize, Range<usize>),
        to: Option<(usize, Range<usize>)>,
        network: &Network,
        report: &mut Report,
    ) -> Option<(usize, usize)> {
        let name = values::string(entry, report)?;
        let Some(found) = self.by_name.get(name) else {
            self.refuse_unknown(name, entry.value.span(), report);
            return None;
        };
        let index = (*found)?;
        let plan = &self.queue_pairs[index].plan;
        let nodes = plan.ends.map(|end| end.node.index());
        let names = nodes.map(|node| network.nodes[node].name.as_str());
        let mut refuse = |node: usize, span: Range<usize>| {
            let node = &network.nodes[node].name;
            report.push(
                Diagnostic::error(span, format!("`{node}` is at neither end of queue pair `{}`", plan.name))
                    .label("not an end of it")
                    .help(format!("its ends are `{}` and `{}`", names[0], names[1])),
            );
        };
        let from_end = nodes.iter().position(|node| *node == from);
        if from_end.is_none() {
            refuse(from, from_span);
        }
        if let Some((to, span)) = to {
            if !nodes.contains(&to) {
                refuse(to, span);
                return None;
            }
            if to == from {
                fan::refuse_same(&network.nodes[to].name, span, report);
                return None;
            }
        }
        Some((index, from_end?))
    }

    /// The connection that a post between two nodes makes: one per sender and receiver, in the order of the posts.
    ///
    /// One per direction, because its data class is then the sender's at both ends, as the receiver reads it off the
    /// first packet (model.md T3).
    fn implicit(
        &mut self,
        (from, from_span): (usize, Range<usize>),
        (to, to_span): (usize, Range<usize>),
        network: &Network,
        report: &mut Report,
    ) -> Option<(usize, usize)> {
        if from == to {
            fan::refuse_same(&network.nodes[to].name, to_span, report);
            return None;
        }
        if !network.can_reach([from, to]) {
            refuse_unjoined([from, to], to_span, network, report);
            return None;
        }
        if let Some(index) = self.implicit.get(&(from, to)) {
            return Some((*index, 0));
        }
        if self.implicit.len() == CONNECTIONS_MAX {
            report.push(
                Diagnostic::error(to_span, format!("the posts need more than {CONNECTIONS_MAX} connections"))
                    .label("passes the limit")
                    .help("let fewer nodes post to fewer others"),
            );
            return None;
        }
        let serial = u32::try_from(self.implicit.len()).ok()?;
        let qpn = Qpn::new(Qpn::IMPLICIT_BASE + serial)?;
        let data_class = network.nodes[from].settings.data_class;
        let end = |node: usize| QueuePairEnd {
            node: node_id(node),
            qpn,
            initial_psn: Psn::default(),
            data_class,
            control_class: network.nodes[node].settings.nic.control_class,
        };
        let name = format!("{}->{}", network.nodes[from].name, network.nodes[to].name);
        let index = self.queue_pairs.len();
        self.queue_pairs.push(QueuePair {
            plan: QueuePairPlan { name, ends: [end(from), end(to)], implicit: true },
            span: from_span,
            data_class_spans: [None, None],
            control_class_spans: [None, None],
            given_qpns: [None, None],
        });
        self.implicit.insert((from, to), index);
        Some((index, 0))
    }

    fn refuse_unknown(&self, name: &str, span: Range<usize>, report: &mut Report) {
        if report.is_full() {
            return;
        }
        const LISTED: usize = 20;
        let names = || self.by_name.keys().map(String::as_str);
        let label = nearest(name, names()).map_or("unknown".to_owned(), |near| format!("did you mean `{near}`?"));
        let mut known: Vec<_> = names().take(LISTED).collect();
        known.extend((self.by_name.len() > LISTED).then_some("\u{2026}"));
        let help = match known.is_empty() {
            true => "describe it under [[queue_pairs]], or leave `queue_pair` out and say `to`".to_owned(),
            false => format!("known queue pairs: {}", known.join(", ")),
        };
        report.push(
            Diagnostic::error(span, format!("there is no queue pair `{}`", shortened(name))).label(label).help(help),
        );
    }
}

fn read_per_end<T: Clone>(
    entry: &Option<Entry<'_>>,
    nodes: [usize; 2],
    network: &Network,
    read: impl Fn(&Entry<'_>, &mut Report) -> Option<T>,
    report: &mut Report,
) -> [Option<(T, Range<usize>)>; 2] {
    entry.as_ref().map_or([None, None], |entry| network.per_end(entry, nodes, read, report))
}

/// A number that a queue pair may be given: neither reserved nor among those of implicit connections.
fn explicit_qpn(entry: &Entry<'_>, report: &mut Report) -> Option<Qpn> {
    let most = u64::from(Qpn::IMPLICIT_BASE - 1);
    let qpn = values::whole(entry, 0, 0xff_ffff, report)?;
    let found = u32::try_from(qpn).ok().and_then(Qpn::new).filter(|qpn| qpn.is_usable() && !qpn.is_implicit());
    if found.is_none() {
        let why = match qpn {
            0 | 1 => "belongs to a management queue pair",
            0xff_ffff => "stands for multicast",
            _ => "is kept for implicit connections",
        };
        report.push(
            Diagnostic::error(entry.value.span(), format!("queue pair number {qpn} {why}"))
                .label("reserved")
                .help(format!("write a number from {} to {most}, or leave `qpn` out", FIRST_QPN.get())),
        );
    }
    found
}

fn psn(entry: &Entry<'_>, report: &mut Report) -> Option<Psn> {
    let psn = values::whole(entry, 0, 0xff_ffff, report)?;
    u32::try_from(psn).ok().map(Psn::new)
}

fn verb(entry: &Entry<'_>, report: &mut Report) -> Option<Verb> {
    let text = values::string(entry, report)?;
    match text {
        "write" => Some(Verb::Write),
        "send" => Some(Verb::Send),
        _ => {
            report.push(
                Diagnostic::error(entry.value.span(), format!("`{}` is not a verb", shortened(text)))
                    .label("unknown")
                    .help("write \"write\" or \"send\""),
            );
            None
        }
    }
}

fn message_size(entry: &Entry<'_>, report: &mut Report) -> Option<Octets> {
    let size = values::size(entry, report)?;
    if size > MESSAGE_MAX {
        report.push(
            Diagnostic::error(entry.value.span(), format!("a message cannot have {size}"))
                .label("too large")
                .help("a message has at most \"2GiB\"; send more of them with `count`"),
        );
        return None;
    }
    Some(size)
}

fn refuse_unjoined(nodes: [usize; 2], span: Range<usize>, network: &Network, report: &mut Report) {
    let [a, b] = nodes.map(|node| &network.nodes[node].name);
    report.push(
        Diagnostic::error(span, format!("there is no way between `{a}` and `{b}`"))
            .label("not joined")
            .help(format!("add a link, [[links]] with ends = [\"{a}\", \"{b}\"], or link both to switches")),
    );
}
