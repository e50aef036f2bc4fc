//! What an application asks for, and is given or refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::applications::{Applications, MemoryTicket};
use super::completion_queue::CompletionQueue;
use super::queue_pair::{Link, QueuePair};
use super::{Action, Answer, Asked, Caller, DOORBELL_LINES, Devices, Memory, Stage, domain};
use crate::base::{Instant, NodeId, Octets, Psn, Qpn};
use crate::nic::{Connection, MemoryKey, Service, SharedRegion};
use crate::ring::control::{self, Event, Reply, Request};
use crate::ring::{Consumer, Cqe, Doorbells, Geometry, Producer, doorbell_page};
use crate::scenario::Plan;
use crate::trace::{EventKind, FailureCause};

/// What one application can have at most. It shares a machine with others.
const QUEUE_PAIRS_MAX: usize = 4_096;
const COMPLETION_QUEUES_MAX: usize = 4_096;
/// Also counting those that are gone: a NIC knows them for as long as it runs.
const QUEUE_PAIRS_EVER_MAX: usize = 65_536;
const MEMORY_MAX: usize = 4 << 30;
/// Of a completion queue: the largest ring's capacity.
const ENTRIES_MAX: u32 = Geometry::MAX_SLOTS - 1;
/// Pieces of shared memory of all applications together, in equal shares. Each is a mapping of this process, of which a
/// kernel allows 65,530 by default: half of them are for others, and for those that the NICs are still busy with.
const MEMORIES_MAX: usize = 32_768;
/// Numbers of queue pairs of applications begin here, above those that a scenario counts up from 2.
const FIRST_QPN: u32 = 0x1_0000;
/// Keys of applications' regions begin here, above the message numbers that serve as keys otherwise.
const FIRST_KEY: u32 = 0x8000_0000;
/// Regions of applications lie here, far from those of messages, each at a page of its own.
const FIRST_ADDRESS: u64 = 0x7f00_0000_0000_0000;
const PAGE: u64 = 4_096;

/// What was asked is refused, for this reason.
type Refusal = String;

impl Devices<'_> {
    /// An application has said something in its turn. `None`: its turn is over, and it will be woken.
    pub(in crate::engine) fn answer(
        &mut self,
        index: usize,
        request: Request,
        now: Instant,
        outside: &mut dyn Applications,
    ) -> Option<Answer> {
        let is_open = self.applications[index].doorbells.is_some();
        match (&request, is_open) {
            (Request::Open { .. }, false) | (_, true) => {}
            (_, false) => return Some(refused("the device is not open".into())),
        }
        self.hear(index, now);
        // Only then, as many queue pairs would make every request long.
        if matches!(request, Request::Hear {} | Request::Wait { .. }) {
            self.hear_all_receives(index, now);
        }
        if let Request::Wait { cqs, solicited_only, until_ps } = request {
            return self.wait(index, cqs, solicited_only, until_ps, now);
        }
        let answer = match request {
            Request::Open { version, .. } => self.open(index, version, now, outside),
            Request::CreateCq { entries } => self.create_cq(index, entries, outside),
            Request::CreateQp(asked) => self.create_qp(index, &asked, outside),
            Request::RegMr { octets, remote_write } => self.reg_mr(index, octets, remote_write, outside),
            Request::Connect { qpn, service, private_data } => {
                self.connect(index, qpn, service, private_data, now).map(|()| done())
            }
            Request::DestroyQp { qpn } => self.destroy_qp(index, qpn, now).map(|()| done()),
            Request::DeregMr { lkey } => self.dereg_mr(index, lkey).map(|()| done()),
            Request::DestroyCq { cq } => self.destroy_cq(index, cq).map(|()| done()),
            Request::Hear {} | Request::Wait { .. } => Ok(done()),
        };
        Some(answer.unwrap_or_else(refused))
    }

    /// An application has gone, or was given up: what it had goes too, and the peers of its queue pairs see their end.
    pub(in crate::engine) fn leave(&mut self, index: usize, now: Instant) {
        self.set_due(index, None);
        let application = &mut self.applications[index];
        application.stage = Stage::Gone;
        let node = application.plan.node;
        if application.doorbells.take().is_some() {
            let event = EventKind::ApplicationLeft { application: index as u16 };
            self.actions.push_back(Action::Tell { node, event });
        }
        let qpns: Vec<_> = application.queue_pairs.keys().copied().collect();
        for qpn in qpns {
            self.end_queue_pair(index, qpn, now);
        }
        let application = &mut self.applications[index];
        application.completion_queues.clear();
        let regions = std::mem::take(&mut application.regions).into_keys();
        self.actions.extend(regions.map(|rkey| Action::Deregister { node, rkey }));
    }

    fn open(
        &mut self,
        index: usize,
        version: u32,
        now: Instant,
        outside: &mut dyn Applications,
    ) -> Result<Answer, Refusal> {
        if self.applications[index].doorbells.is_some() {
            return Err("the device is open already".into());
        }
        if version != control::VERSION {
            return Err(format!("version {version}: this device speaks version {}", control::VERSION));
        }
        let page = doorbell_page(DOORBELL_LINES).expect("the number of lines is a power of two");
        let (memory, ticket) = self.make_memory(index, page.memory_octets(), outside)?;
        page.format(memory.as_ref()).expect("the memory was made for it");
        let application = &mut self.applications[index];
        application.doorbells = Some(Doorbells::new(memory, page).expect("the memory was made for it"));
        application.stage = Stage::Turn;
        let node = application.plan.node;
        let event = EventKind::ApplicationOpened { application: index as u16 };
        self.actions.push_back(Action::Tell { node, event });
        let nic = &self.plan.nics[node.index()];
        let mss_octets = nic.config.mss.get() as u32;
        Ok(Answer {
            reply: Reply::Opened { node: nic.name.clone(), now_ps: now.ps(), mss_octets },
            memory: Some(ticket),
        })
    }

    fn create_cq(&mut self, index: usize, entries: u32, outside: &mut dyn Applications) -> Result<Answer, Refusal> {
        limit(self.applications[index].completion_queues.len(), COMPLETION_QUEUES_MAX, "completion queues")?;
        if entries > ENTRIES_MAX {
            return Err(format!("a completion queue has at most {ENTRIES_MAX} entries"));
        }
        let slots = (entries + 1).next_power_of_two().max(2);
        let shape = Geometry::new(slots, Cqe::SLOT as u32).map_err(said)?;
        let (memory, ticket) = self.make_memory(index, shape.memory_octets(), outside)?;
        shape.format(memory.as_ref()).map_err(said)?;
        let ring = Producer::new(memory, shape).map_err(said)?;
        let application = &mut self.applications[index];
        let cq = application.next_cq;
        application.next_cq += 1;
        let queue = CompletionQueue::new(ring, shape.memory_octets());
        application.completion_queues.insert(cq, queue);
        Ok(Answer { reply: Reply::CqCreated { cq }, memory: Some(ticket) })
    }

    fn create_qp(&mut self, index: usize, asked: &Asked, outside: &mut dyn Applications) -> Result<Answer, Refusal> {
        let application = &self.applications[index];
        limit(application.queue_pairs.len(), QUEUE_PAIRS_MAX, "queue pairs")?;
        limit(application.queue_pairs_made as usize, QUEUE_PAIRS_EVER_MAX, "queue pairs in its life")?;
        for cq in [asked.send_cq, asked.receive_cq] {
            application.completion_queues.get(&cq).ok_or_else(|| format!("there is no completion queue {cq}"))?;
        }
        if asked.min_rnr_timer > 31 || asked.rnr_retry > 7 || asked.retry > 7 {
            return Err("min_rnr_timer has 5 bits, rnr_retry and retry have 3".into());
        }
        let send = Geometry::new(asked.send_slots, asked.send_slot_octets).map_err(said)?;
        let receive = Geometry::new(asked.receive_slots, asked.receive_slot_octets).map_err(said)?;
        let (send_octets, receive_octets) = (send.memory_octets(), receive.memory_octets());
        let node = self.applications[index].plan.node;
        let qpn = self.free_qpn(node)?;
        let (memory, ticket) = self.make_memory(index, send_octets + receive_octets, outside)?;
        let (send_part, receive_part) = (memory.part(0, send_octets), memory.part(send_octets, receive_octets));
        send.format(send_part.as_ref()).map_err(said)?;
        receive.format(receive_part.as_ref()).map_err(said)?;
        let send = Consumer::new(send_part, send).map_err(said)?;
        let receive = Consumer::new(receive_part, receive).map_err(said)?;
        let application = &mut self.applications[index];
        application.queue_pairs_made += 1;
        for cq in [asked.send_cq, asked.receive_cq] {
            application.completion_queues.get_mut(&cq).expect("it was looked up before").users += 1;
        }
        let prefetch = self.plan.nics[node.index()].config.send_queue.wqe_prefetch;
        application
            .queue_pairs
            .insert(qpn, QueuePair::new(qpn, send, receive, asked, prefetch, send_octets + receive_octets));
        self.owners.insert((node, qpn), index);
        let reply = Reply::QpCreated { qpn: qpn.get(), receive_offset: send_octets as u64 };
        Ok(Answer { reply, memory: Some(ticket) })
    }

    /// Numbers are never used again, so that a late packet cannot meet a new queue pair.
    fn free_qpn(&mut self, node: NodeId) -> Result<Qpn, Refusal> {
        let next = self.next_qpn.entry(node).or_insert(FIRST_QPN);
        let is_taken = |qpn: Qpn| {
            let ends = self.plan.queue_pairs.iter().flat_map(|queue_pair| queue_pair.ends);
            ends.into_iter().any(|end| end.node == node && end.qpn == qpn)
        };
        let free = (*next..Qpn::IMPLICIT_BASE).filter_map(Qpn::new).find(|qpn| !is_taken(*qpn));
        let qpn = free.ok_or("all numbers of queue pairs are used up")?;
        *next = qpn.get() + 1;
        Ok(qpn)
    }

    fn reg_mr(
        &mut self,
        index: usize,
        octets: u64,
        remote_write: bool,
        outside: &mut dyn Applications,
    ) -> Result<Answer, Refusal> {
        let node = self.applications[index].plan.node;
        let length = usize::try_from(octets).ok().filter(|octets| (1..=MEMORY_MAX).contains(octets));
        let length = length.ok_or_else(|| format!("a region has 1 to {MEMORY_MAX} octets"))?;
        let key = self.next_key.entry(node).or_insert(FIRST_KEY);
        let rkey = *key;
        *key = key.checked_add(1).ok_or("all keys are used up")?;
        let (memory, ticket) = self.make_memory(index, length, outside)?;
        let next = self.next_address.entry(node).or_insert(FIRST_ADDRESS);
        let address = *next;
        // A page stays free between two regions, so that an overrun of one never ends in another.
        *next = address + octets.next_multiple_of(PAGE) + PAGE;
        self.applications[index].regions.insert(rkey, length);
        let region = SharedRegion {
            domain: domain(index),
            key: MemoryKey { address, rkey },
            size: Octets::new(octets),
            memory: Arc::new(memory),
            offset: 0,
            local_write: true,
            remote_write,
        };
        self.actions.push_back(Action::Register { node, region });
        Ok(Answer { reply: Reply::MrRegistered { lkey: rkey, rkey, address }, memory: Some(ticket) })
    }

    fn dereg_mr(&mut self, index: usize, lkey: u32) -> Result<(), Refusal> {
        let application = &mut self.applications[index];
        let octets = application.regions.remove(&lkey).ok_or_else(|| format!("there is no region {lkey:#x}"))?;
        application.octets -= octets;
        let node = application.plan.node;
        self.actions.push_back(Action::Deregister { node, rkey: lkey });
        Ok(())
    }

    fn destroy_cq(&mut self, index: usize, cq: u32) -> Result<(), Refusal> {
        let application = &mut self.applications[index];
        match application.completion_queues.get(&cq) {
            None => Err(format!("there is no completion queue {cq}")),
            Some(queue) if queue.users > 0 => Err(format!("completion queue {cq} is in use")),
            Some(queue) => {
                application.octets -= queue.octets;
                application.completion_queues.remove(&cq);
                Ok(())
            }
        }
    }

    fn destroy_qp(&mut self, index: usize, qpn: u32, now: Instant) -> Result<(), Refusal> {
        let qpn = self.own_qpn(index, qpn)?;
        self.end_queue_pair(index, qpn, now);
        Ok(())
    }

    fn own_qpn(&self, index: usize, number: u32) -> Result<Qpn, Refusal> {
        let qpn = Qpn::new(number).filter(|qpn| self.applications[index].queue_pairs.contains_key(qpn));
        qpn.ok_or_else(|| format!("there is no queue pair {number}"))
    }

    /// A queue pair goes; its NIC flushes what is under way, and its peer is told out of band.
    fn end_queue_pair(&mut self, index: usize, qpn: Qpn, now: Instant) {
        let application = &mut self.applications[index];
        let node = application.plan.node;
        let Some(queue_pair) = application.queue_pairs.remove(&qpn) else { return };
        application.octets -= queue_pair.octets;
        application.news.retain(|event| match event {
            Event::QpFailed { qpn: of, .. } | Event::EntryRefused { qpn: of, .. } => *of != qpn.get(),
            _ => true,
        });
        for cq in [queue_pair.send_cq, queue_pair.receive_cq] {
            if let Some(queue) = application.completion_queues.get_mut(&cq) {
                queue.users -= 1;
            }
        }
        self.owners.remove(&(node, qpn));
        match queue_pair.link {
            Link::None => {}
            Link::Calling(service) => drop(self.callers.remove(&service)),
            Link::Up { node: peer, qpn: peer_qpn } => {
                self.actions.push_back(Action::Fail { node, qpn, cause: FailureCause::Closed });
                self.endings.insert((now + self.goodbye, peer, peer_qpn));
            }
        }
    }

    fn connect(
        &mut self,
        index: usize,
        qpn: u32,
        service: String,
        private_data: Vec<u8>,
        now: Instant,
    ) -> Result<(), Refusal> {
        let qpn = self.own_qpn(index, qpn)?;
        if service.is_empty() || service.len() > control::SERVICE_MAX {
            return Err(format!("the name of a service has 1 to {} octets", control::SERVICE_MAX));
        }
        if private_data.len() > control::PRIVATE_DATA_MAX {
            return Err(format!("private data has at most {} octets", control::PRIVATE_DATA_MAX));
        }
        let node = self.applications[index].plan.node;
        let queue_pair = &self.applications[index].queue_pairs[&qpn];
        if queue_pair.link != Link::None {
            return Err(format!("queue pair {} is connected, or about to be", qpn.get()));
        }
        if queue_pair.has_failed {
            return Err(format!("queue pair {} is in error", qpn.get()));
        }
        let caller = Caller { application: index, qpn, private_data };
        let Some(peer) = self.callers.get(&service) else {
            self.set_link(index, qpn, Link::Calling(service.clone()));
            self.callers.insert(service, caller);
            return Ok(());
        };
        let peer_node = self.applications[peer.application].plan.node;
        if !reaches(self.plan, node, peer_node) {
            let [from, to] = [node, peer_node].map(|node| &self.plan.nics[node.index()].name);
            return Err(format!("`{service}` is waited for at `{to}`, and there is no way from `{from}` to it"));
        }
        let peer = self.callers.remove(&service).expect("it was looked up before");
        self.join(&caller, &peer, now);
        self.join(&peer, &caller, now);
        for caller in [&peer, &caller] {
            self.hear_receives(caller.application, caller.qpn, now);
            self.fill(caller.application, caller.qpn, now);
            let early =
                self.queue_pair(caller.application, caller.qpn).map_or(0, |qp| std::mem::take(&mut qp.rung_early));
            if early > 0 {
                self.ring_at_nic(caller.application, caller.qpn, early, Octets::ZERO);
            }
        }
        Ok(())
    }

    /// One end of a new connection.
    fn join(&mut self, own: &Caller, peer: &Caller, now: Instant) {
        let plan = &self.applications[own.application].plan;
        let peer_plan = &self.applications[peer.application].plan;
        let (node, data_class, control_class) = (plan.node, plan.data_class, plan.control_class);
        let peer_nic = &self.plan.nics[peer_plan.node.index()];
        let link = Link::Up { node: peer_plan.node, qpn: peer.qpn };
        let event = Event::Connected {
            qpn: own.qpn.get(),
            peer: peer_nic.name.clone(),
            peer_qpn: peer.qpn.get(),
            private_data: peer.private_data.clone(),
        };
        let queue_pair = self.queue_pair(own.application, own.qpn).expect("a caller's queue pair is there");
        let service = Service::Verbs {
            domain: domain(own.application),
            min_rnr_timer: queue_pair.min_rnr_timer,
            rnr_retry: queue_pair.rnr_retry,
            retry: queue_pair.retry,
        };
        let connection = Connection {
            qpn: own.qpn,
            peer_qpn: peer.qpn,
            peer_address: peer_nic.address,
            initial_psn: Psn::default(),
            peer_initial_psn: Psn::default(),
            data_class,
            control_class,
            service,
        };
        self.set_link(own.application, own.qpn, link);
        self.actions.push_back(Action::Connect { node, connection });
        self.bring(own.application, event, now);
    }

    fn wait(
        &mut self,
        index: usize,
        cqs: Vec<u32>,
        solicited_only: bool,
        until_ps: Option<u64>,
        now: Instant,
    ) -> Option<Answer> {
        let application = &mut self.applications[index];
        let mut is_served = false;
        for cq in &cqs {
            match application.completion_queues.get_mut(cq) {
                Some(queue) => is_served |= queue.holds(solicited_only),
                None => return Some(refused(format!("there is no completion queue {cq}"))),
            }
        }
        let until = until_ps.map(Instant::from_ps);
        if is_served || !application.news.is_empty() || until.is_some_and(|until| until <= now) {
            return Some(Answer { reply: application.wake(now), memory: None });
        }
        application.stage = Stage::Waiting { cqs, solicited_only };
        self.set_due(index, until);
        None
    }

    fn make_memory(
        &mut self,
        index: usize,
        octets: usize,
        outside: &mut dyn Applications,
    ) -> Result<(Memory, MemoryTicket), Refusal> {
        let share = MEMORIES_MAX / self.applications.len();
        let application = &mut self.applications[index];
        limit(application.memories(), share, "pieces of shared memory")?;
        if octets > MEMORY_MAX - application.octets {
            return Err(format!("an application has at most {MEMORY_MAX} octets of shared memory"));
        }
        let (words, ticket) = outside.make_memory(octets).map_err(|error| format!("no memory: {error}"))?;
        application.octets += octets;
        Ok((Memory::new(words), ticket))
    }

    fn set_link(&mut self, index: usize, qpn: Qpn, link: Link) {
        self.queue_pair(index, qpn).expect("it was looked up before").link = link;
    }
}

/// Whether frames find a way between two NICs: through switches, and through no other NIC.
fn reaches(plan: &Plan, from: NodeId, to: NodeId) -> bool {
    let is_nic = |node: NodeId| node.index() < plan.nics.len();
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        for link in &plan.links {
            for end in 0..2 {
                let (here, there) = (link.ends[end].node, link.ends[1 - end].node);
                if here == node && there == to && to != from {
                    return true;
                }
                if here == node && !is_nic(there) && seen.insert(there) {
                    open.push(there);
                }
            }
        }
    }
    false
}

fn limit(have: usize, most: usize, what: &str) -> Result<(), Refusal> {
    if have < most { Ok(()) } else { Err(format!("an application has at most {most} {what}")) }
}

fn done() -> Answer {
    Answer { reply: Reply::Done, memory: None }
}

fn refused(reason: Refusal) -> Answer {
    Answer { reply: Reply::Refused { reason }, memory: None }
}

fn said(error: impl std::fmt::Display) -> Refusal {
    error.to_string()
}
