//! Runs through a switch on memory wires.

use std::collections::BTreeMap;

use super::tests::{Log, nic_plan, pair, run, write};
use crate::base::{NodeId, PortId, Qpn, Span};
use crate::link::{Action, Matcher, Rule};
use crate::scenario::{FaultKind, FaultPlan, LinkEnd, LinkPlan, Plan, QueuePairPlan, SwitchPlan};
use crate::switch::{Config, PortConfig};
use crate::trace::{EventKind, PacketKind};

/// `senders` NICs and one receiver, the last NIC, around one switch with every attribute at its default; a queue pair
/// from each sender to the receiver.
pub fn star(senders: u8) -> Plan {
    let count = u16::from(senders) + 1;
    let switch = NodeId(count);
    let template = pair(1);
    let delay = Span::from_ns(100);
    let nics: Vec<_> = (1..=senders + 1).map(nic_plan).collect();
    let ports = (0..count).map(|port| PortConfig {
        data_rate: nics[0].config.data_rate,
        delay,
        mac: PortConfig::mac_of(switch, PortId(port)),
    });
    let routes: BTreeMap<_, _> =
        (0..count).map(|port| (nics[usize::from(port)].address.ip, vec![PortId(port)])).collect();
    let links = (0..count).map(|nic| LinkPlan {
        ends: [
            LinkEnd { node: NodeId(nic), port: PortId(0), delay },
            LinkEnd { node: switch, port: PortId(nic), delay },
        ],
    });
    let queue_pairs = (0..u16::from(senders)).map(|sender| {
        let [mut from, mut to] = template.queue_pairs[0].ends;
        (from.node, to.node) = (NodeId(sender), NodeId(count - 1));
        (from.qpn, to.qpn) = (Qpn::new(2).unwrap(), Qpn::new(2 + u32::from(sender)).unwrap());
        QueuePairPlan { name: format!("q{sender}"), ends: [from, to], implicit: false }
    });
    Plan {
        switches: vec![SwitchPlan {
            name: "s1".into(),
            config: Config { ports: ports.collect(), ..Config::default() },
            routes,
            has_own_seed: true,
            has_own_salt: true,
        }],
        links: links.collect(),
        queue_pairs: queue_pairs.collect(),
        nics,
        ..template
    }
}

fn pauses(log: &Log) -> usize {
    log.times(|kind| matches!(kind, EventKind::PauseRequested { .. })).len()
}

#[test]
fn one_packet_through_a_switch_is_stored_and_forwarded() {
    let plan = Plan { posts: vec![write(0, 4_096)], ..star(1) };
    let (_, log) = run(&plan);
    // A pair takes 436,444 ps; the switch adds a serialization and a delay each way: 83,080 + 100,000 + 2,520 + 100,000.
    assert_eq!(log.completed(0), 436_444 + 285_600);
}

#[test]
fn an_incast_of_three_at_defaults_loses_nothing() {
    let plan = Plan { posts: (0..3).map(|queue_pair| write(queue_pair, 16 << 20)).collect(), ..star(3) };
    let (outcome, log) = run(&plan);
    for node in outcome.counters.iter() {
        assert_eq!((node.rx_drops, node.num_retransmitted_pkts, node.num_nacks_sent), (0, 0, 0));
    }
    let switch = outcome.counters.node(NodeId(4));
    let receiver = outcome.counters.node(NodeId(3));
    assert!(switch.pkts_ecn_marked > 0);
    assert_eq!(switch.pkts_ecn_marked, receiver.num_ce_recvd);
    assert_eq!(receiver.num_ce_recvd, receiver.num_cnp_sent);
    assert!(log.times(|kind| matches!(kind, EventKind::RateChanged { .. })).len() > 10);
}

#[test]
fn without_pfc_and_ecn_an_incast_drops_in_the_switch_and_recovers() {
    let mut plan = Plan { posts: (0..3).map(|queue_pair| write(queue_pair, 4 << 20)).collect(), ..star(3) };
    plan.switches[0].config.pfc.enabled = [false; 8];
    for nic in &mut plan.nics {
        nic.config.enable_ecn = false;
    }
    let (outcome, log) = run(&plan);
    assert_eq!(pauses(&log), 0);
    assert!(outcome.counters.node(NodeId(4)).rx_drops > 0);
    assert_eq!(outcome.compared.get(), 12 << 20);
}

#[test]
fn without_a_reaction_pfc_is_the_backstop() {
    let mut plan = Plan { posts: (0..3).map(|queue_pair| write(queue_pair, 4 << 20)).collect(), ..star(3) };
    for nic in &mut plan.nics {
        nic.config.congestion.reaction = false;
    }
    let (outcome, log) = run(&plan);
    assert!(pauses(&log) > 0);
    assert_eq!(outcome.counters.node(NodeId(4)).rx_drops, 0);
}

#[test]
fn a_link_behind_a_switch_can_lose_frames_too() {
    let faults = vec![FaultPlan {
        name: "lost behind the switch".into(),
        link: 1,
        from_end: 1,
        optional: false,
        kind: FaultKind::Rule(Rule {
            matcher: Matcher { kinds: vec![PacketKind::Write], nth: vec![5], ..Matcher::default() },
            action: Action::Drop,
        }),
    }];
    let plan = Plan { posts: vec![write(0, 1 << 20)], faults, ..star(1) };
    let (outcome, _) = run(&plan);
    assert_eq!(outcome.counters.node(NodeId(1)).num_nacks_sent, 1);
}
