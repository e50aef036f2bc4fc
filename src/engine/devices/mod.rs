//! The devices as applications see them: what they asked for, and what became of it.
//!
//! ```text
//!  application ─ request ─► answer ─┐                        ┌─► NIC: connect, register, post, fail
//!              ─ doorbell ─► hear ──┴─► rings read, checked ─┤
//!              ─ receive entries ───┘                        └─► events: doorbells, comings and goings
//!
//!  application ◄─ CQE, news ◄─ note ◄─ events of the NIC: completed, failed, received, rewound
//! ```
//!
//! Emulated time stands still while an application has its turn; all that it says happens in that instant. What is to
//! happen in the NICs is an [`Action`], carried out by the run in the order in which it was decided.
//!
//! Nothing of what an application writes is believed: not an index, a length, a key, an address or an order of requests.
//! Invariants: an entry of a send or receive queue ends exactly once, in order; a slot is free when its entry has ended.

mod completion_queue;
mod memory;
mod queue_pair;
mod requests;
mod rings;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use completion_queue::CompletionQueue;
use memory::Memory;
use queue_pair::QueuePair;

use super::applications::MemoryTicket;
use crate::base::{Instant, NodeId, Octets, Qpn, Span};
use crate::nic::{self, Connection, WorkRequest};
use crate::ring::control::{Event, QueuePairRequest as Asked, Reply};
use crate::ring::{Cqe, Doorbells};
use crate::scenario::{ApplicationPlan, Plan};
use crate::trace::{EventKind, FailureCause};

/// Lines of a doorbell page.
const DOORBELL_LINES: u32 = 1_024;
/// How long it takes until the peer of a queue pair that has gone is told, at least: news of this kind travels out of band.
const GOODBYE: Span = Span::from_ms(1);

/// Events in one reply: with the longest names and private data, they stay below the size that a reply may have.
const NEWS_MAX: usize = 12;

/// What an application's turn, or an event, makes happen. Carried out in order.
#[derive(Debug)]
pub(super) enum Action {
    Connect { node: NodeId, connection: Connection },
    Register { node: NodeId, region: nic::SharedRegion },
    Deregister { node: NodeId, rkey: u32 },
    Post { node: NodeId, qpn: Qpn, peer_qpn: Qpn, work: WorkRequest },
    Ring { node: NodeId, qpn: Qpn, entries: u32, blue_flame: Octets },
    PostReceive { node: NodeId, qpn: Qpn, receive: nic::Receive },
    Fail { node: NodeId, qpn: Qpn, cause: FailureCause },
    Tell { node: NodeId, event: EventKind },
}

/// What an application is answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub reply: Reply,
    pub memory: Option<MemoryTicket>,
}

/// All applications of a run, and what they have.
#[derive(Debug)]
pub(super) struct Devices<'a> {
    plan: &'a Plan,
    applications: Vec<Application>,
    /// Whose queue pair it is.
    owners: BTreeMap<(NodeId, Qpn), usize>,
    /// Queue pairs that wait for a peer, by the name of the service.
    callers: BTreeMap<String, Caller>,
    /// When which application has its turn next.
    due: BTreeSet<(Instant, NodeId, usize)>,
    /// Queue pairs whose peers have gone, and when they are told.
    endings: BTreeSet<(Instant, NodeId, Qpn)>,
    actions: VecDeque<Action>,
    /// How long it takes until the peer of a queue pair that has gone is told: longer than what is on its way between the
    /// two, such as a last acknowledgement.
    goodbye: Span,
    next_message: u32,
    next_receive: u64,
    next_qpn: BTreeMap<NodeId, u32>,
    next_key: BTreeMap<NodeId, u32>,
    next_address: BTreeMap<NodeId, u64>,
}

#[derive(Debug)]
struct Application {
    plan: ApplicationPlan,
    stage: Stage,
    /// When it is due, as `Devices::due` has it.
    due: Option<Instant>,
    doorbells: Option<Doorbells<Memory>>,
    completion_queues: BTreeMap<u32, CompletionQueue>,
    queue_pairs: BTreeMap<Qpn, QueuePair>,
    /// Octets of its regions, by key.
    regions: BTreeMap<u32, usize>,
    /// What it has not been told yet.
    news: Vec<Event>,
    next_cq: u32,
    /// Queue pairs that it has made, those that are gone included.
    queue_pairs_made: u32,
    /// Of all shared memory that it got.
    octets: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// It has not opened its device.
    Expected,
    /// It has its turn.
    Turn,
    /// It waits for one of these completion queues.
    Waiting {
        cqs: Vec<u32>,
        solicited_only: bool,
    },
    Gone,
}

#[derive(Debug)]
struct Caller {
    application: usize,
    qpn: Qpn,
    private_data: Vec<u8>,
}

impl<'a> Devices<'a> {
    /// Messages of applications are numbered from `next_message` on; no frame takes longer than `longest_way`, but for queues.
    pub(super) fn new(plan: &'a Plan, next_message: u32, longest_way: Span) -> Self {
        let applications: Vec<_> = plan
            .applications
            .iter()
            .map(|plan| Application {
                plan: plan.clone(),
                stage: Stage::Expected,
                due: Some(plan.at),
                doorbells: None,
                completion_queues: BTreeMap::new(),
                queue_pairs: BTreeMap::new(),
                regions: BTreeMap::new(),
                news: Vec::new(),
                next_cq: 0,
                queue_pairs_made: 0,
                octets: 0,
            })
            .collect();
        let due = plan.applications.iter().enumerate().map(|(index, plan)| (plan.at, plan.node, index)).collect();
        Self {
            plan,
            applications,
            owners: BTreeMap::new(),
            callers: BTreeMap::new(),
            due,
            endings: BTreeSet::new(),
            actions: VecDeque::new(),
            goodbye: GOODBYE.max(longest_way + longest_way),
            next_message,
            next_receive: 0,
            next_qpn: BTreeMap::new(),
            next_key: BTreeMap::new(),
            next_address: BTreeMap::new(),
        }
    }

    /// The next turn: when, at which node, whose.
    pub(super) fn next_turn(&self) -> Option<(Instant, NodeId, usize)> {
        self.due.first().copied()
    }

    /// When a queue pair next is told that its peer has gone, and at which node.
    pub(super) fn next_ending(&self) -> Option<(Instant, NodeId)> {
        self.endings.first().map(|&(at, node, _)| (at, node))
    }

    /// That time has come.
    pub(super) fn end_next(&mut self) {
        if let Some((_, node, qpn)) = self.endings.pop_first()
            && self.owners.contains_key(&(node, qpn))
        {
            self.actions.push_back(Action::Fail { node, qpn, cause: FailureCause::PeerGone });
        }
    }

    /// What is to happen next.
    pub(super) fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Applications that have not gone yet, in the order of the plan.
    pub(super) fn attached(&self) -> impl Iterator<Item = &str> {
        let is_here = |application: &&Application| application.stage != Stage::Gone;
        self.applications.iter().filter(is_here).map(|application| application.plan.name.as_str())
    }

    /// The turn of an application begins. Returns what it is told, unless it has yet to open its device.
    pub(super) fn begin_turn(&mut self, index: usize, now: Instant) -> Option<Reply> {
        self.set_due(index, None);
        let application = &mut self.applications[index];
        if application.stage == Stage::Expected {
            return None;
        }
        application.stage = Stage::Turn;
        Some(application.wake(now))
    }

    /// Nothing is under way that could end any wait: those who wait are told. `false` if nobody waits.
    pub(super) fn stall(&mut self, now: Instant) -> bool {
        let mut is_any = false;
        for index in 0..self.applications.len() {
            if self.applications[index].is_waiting() {
                self.bring(index, Event::Stalled, now);
                is_any = true;
            }
        }
        is_any
    }

    fn queue_pair(&mut self, index: usize, qpn: Qpn) -> Option<&mut QueuePair> {
        self.applications[index].queue_pairs.get_mut(&qpn)
    }

    fn set_due(&mut self, index: usize, at: Option<Instant>) {
        let application = &mut self.applications[index];
        let node = application.plan.node;
        let known = std::mem::replace(&mut application.due, at);
        if let Some(known) = known {
            self.due.remove(&(known, node, index));
        }
        self.due.extend(at.map(|at| (at, node, index)));
    }

    /// Tells an application something when it wakes, and wakes it.
    fn bring(&mut self, index: usize, event: Event, now: Instant) {
        self.applications[index].news.push(event);
        if self.applications[index].is_waiting() {
            self.set_due(index, Some(now));
        }
    }
}

impl Application {
    /// Pieces of shared memory that it has.
    fn memories(&self) -> usize {
        usize::from(self.doorbells.is_some())
            + self.completion_queues.len()
            + self.queue_pairs.len()
            + self.regions.len()
    }

    fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting { .. })
    }

    /// Whether it waits for this completion.
    fn awaits(&self, cq: u32, cqe: &Cqe) -> bool {
        match &self.stage {
            Stage::Waiting { cqs, solicited_only } => {
                cqs.contains(&cq) && (!solicited_only || completion_queue::wakes(cqe))
            }
            _ => false,
        }
    }

    fn wake(&mut self, now: Instant) -> Reply {
        // What is left over ends the next wait at once.
        let told = self.news.len().min(NEWS_MAX);
        Reply::Woken { now_ps: now.ps(), events: self.news.drain(..told).collect() }
    }
}

/// Each application is a protection domain of its own.
fn domain(index: usize) -> nic::Domain {
    nic::Domain(index as u32 + 1)
}
