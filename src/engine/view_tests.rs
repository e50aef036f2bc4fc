//! What people see of congestion, from the events of whole runs on memory wires.
//!
//! Two packets at once through a switch, every attribute at its default: both arrive there at 150,844 + 83,080 + 100,000
//! = 333,924 ps and are charged 4,136 B each. The second waits until the first has left, at 417,004 ps. Their ACKs of
//! 126 B arrive at the switch at 619,524 and 702,604 ps, and where they go to at 722,044 and 805,124 ps.

use std::io;
use std::ops::ControlFlow;

use super::switch_tests::star;
use super::tests::write;
use super::{Engine, MemoryWires, Outcome};
use crate::base::{Class, NodeId, PortId, Span};
use crate::record::{
    self, Attribution, Congestion, MessageTable, Peaks, Pressure, QueueTable, RateTable, SummaryInput, digest,
    write_summary,
};
use crate::scenario::Plan;
use crate::trace::{Event, EventKind, Names, Sink};

/// What `rocemu run` has for people to look at.
struct Views {
    names: Names,
    messages: MessageTable<Vec<u8>>,
    rates: RateTable<Vec<u8>>,
    queues: QueueTable<Vec<u8>>,
    peaks: Peaks,
    pressure: Pressure,
    attribution: Attribution,
    congestion: Congestion,
    rate_events: usize,
}

impl Views {
    fn of(plan: &Plan, queue_interval: Span) -> (Outcome, Self) {
        let names = plan.names();
        let mut views = Self {
            messages: MessageTable::new(Vec::new(), &names).unwrap(),
            rates: RateTable::new(Vec::new(), &names).unwrap(),
            queues: QueueTable::new(Vec::new(), &names, queue_interval).unwrap(),
            peaks: Peaks::new(&names),
            pressure: Pressure::new(&names),
            attribution: Attribution::new(&names),
            congestion: Congestion::new(&names),
            rate_events: 0,
            names,
        };
        let mut wires = MemoryWires::default();
        let outcome = Engine::new(plan, &mut wires).run(&mut views, &mut |_| ControlFlow::Continue(())).unwrap();
        (outcome, views)
    }

    /// The digest and the summary.
    fn shown(&self, plan: &Plan, outcome: &Outcome) -> (String, serde_json::Value) {
        let queue_pairs = self.attribution.at_end(outcome.end);
        let input = SummaryInput {
            scenario: "star",
            seed: 1,
            version: "0",
            outcome: &record::Outcome::AllWell,
            end: outcome.end,
            names: &self.names,
            messages: self.messages.stats(),
            counters: &outcome.counters,
            ledger: &outcome.ledger,
            peaks: &self.peaks,
            limits: &plan.limits(),
            pressure: &self.pressure,
            congestion: &self.congestion,
            queue_pairs: &queue_pairs,
            compared: outcome.compared,
            has_capture: true,
        };
        let summary = write_summary(Vec::new(), &input).unwrap();
        (digest(&input, None), serde_json::from_slice(&summary).unwrap())
    }

    fn rate_rows(self) -> Vec<String> {
        let text = String::from_utf8(self.rates.finish().unwrap()).unwrap();
        text.lines().skip(1).map(str::to_owned).collect()
    }
}

impl Sink for Views {
    fn record(&mut self, event: &Event) -> io::Result<()> {
        use EventKind::{EpisodeEnded, EpisodeStarted, RateChanged};
        if matches!(event.kind, EpisodeStarted { .. } | RateChanged { .. } | EpisodeEnded { .. }) {
            self.rate_events += 1;
        }
        let sinks: [&mut dyn Sink; 7] = [
            &mut self.messages,
            &mut self.rates,
            &mut self.queues,
            &mut self.peaks,
            &mut self.pressure,
            &mut self.attribution,
            &mut self.congestion,
        ];
        sinks.into_iter().try_for_each(|sink| sink.record(event))
    }
}

/// One write of so many octets from every sender.
fn incast(senders: u8, size: u64) -> Plan {
    Plan { posts: (0..usize::from(senders)).map(|queue_pair| write(queue_pair, size)).collect(), ..star(senders) }
}

#[test]
fn two_packets_that_meet_in_a_switch() {
    let plan = incast(2, 4_096);
    let (outcome, views) = Views::of(&plan, Span::from_ns(100));
    let (digest, summary) = views.shown(&plan, &outcome);
    // 0.1 x 4,136 = 413.6, then 0.9 x 413.6 + 0.1 x 8,272 = 1,199.44; of an ACK 0.1 x 108.
    let expected = "t_ps,node,port,class,depth_octets,average_octets,peak_octets\n\
                    400000,s1,s1:c,0,4136,1199,8272\n\
                    500000,s1,s1:c,0,0,1199,0\n\
                    700000,s1,s1:a,1,0,11,108\n\
                    800000,s1,s1:b,1,0,11,108\n";
    assert_eq!(String::from_utf8(views.queues.finish().unwrap()).unwrap(), expected);
    // 4,096 B in 722,044 and 805,124 ps.
    let fairness = &summary["fairness"][0];
    let expected = serde_json::json!({
        "queue_pairs": 2,
        "from_ps": 0,
        "to_ps": 805_124,
        "jain_per_million": 997_049,
        "min_bps": 40_699_320_850_u64,
        "max_bps": 45_382_275_872_u64,
        "min_per_mille_of_max": 897,
    });
    assert_eq!(*fairness, expected);
    let no_mark = "no CE mark: the average of class 0 of s1:c peaked at 1,199 B of 300,000 B Kmin";
    assert!(digest.contains(no_mark), "{digest}");
    assert!(digest.contains("fairness of 2 queue pairs active together: Jain's index 0.997"), "{digest}");
}

#[test]
fn an_incast_of_three_in_figures() {
    let plan = incast(3, 4 << 20);
    let (outcome, views) = Views::of(&plan, Span::from_us(1));
    let (digest, summary) = views.shown(&plan, &outcome);
    let port = &summary["nodes"][4]["ports"][3];
    assert_eq!(port["port"], "s1:d");
    let marks = port["ce_marks"]["0"].as_u64().unwrap();
    assert!(marks > 0);
    assert_eq!(marks, summary["nodes"][3]["counters"]["num_ce_recvd"]);
    assert_eq!(marks, summary["nodes"][3]["hw_counters"]["np_ecn_marked_roce_packets"]);
    let handled = |node: usize| summary["nodes"][node]["hw_counters"]["rp_cnp_handled"].as_u64().unwrap();
    assert_eq!(marks, (0..3).map(handled).sum::<u64>());
    let of_queue_pairs = summary["queue_pairs"].as_array().unwrap().iter();
    assert_eq!(marks, of_queue_pairs.map(|one| one["cnps_received"].as_u64().unwrap()).sum::<u64>());
    for queue_pair in summary["queue_pairs"].as_array().unwrap() {
        assert_eq!(queue_pair["delivered_octets"], 4 << 20);
        let lowest = queue_pair["lowest_rate_bps"].as_u64().unwrap();
        assert!((40_000_000_000..400_000_000_000).contains(&lowest), "{lowest}");
        assert!(queue_pair["in_episodes_ps"].as_u64() <= queue_pair["active_ps"].as_u64());
    }
    let fairness = summary["fairness"].as_array().unwrap();
    assert_eq!((fairness.len(), &fairness[0]["queue_pairs"]), (1, &3.into()));
    assert!(fairness[0]["jain_per_million"].as_u64().is_some_and(|index| (333_333..=1_000_000).contains(&index)));
    // Every pause is seen at both ends of its link.
    let switch = NodeId(4);
    for (port, nic) in (0..4).map(|n| (PortId(n), NodeId(n))) {
        let asked = views.pressure.sent(switch, port, Class::DATA);
        let heard = views.pressure.received(nic, PortId(0), Class::DATA);
        assert_eq!(asked, heard, "{nic:?}");
    }
    let words = ["CE marks: ", "CNPs: ", "slowed down: 3 queue pairs, down to ", "fairness of 3 queue pairs"];
    assert!(words.iter().all(|words| digest.contains(words)), "{digest}");

    let rate_events = views.rate_events;
    let rows = views.rate_rows();
    assert_eq!(rows.len(), rate_events);
    let starts = rows.iter().filter(|row| row.ends_with(",400000000000,400000000000,episode_started")).count();
    assert!(starts >= 3, "{rows:?}");
}

#[test]
fn the_digest_of_64_nics_fits_a_screen() {
    let plan = incast(63, 65_536);
    let (outcome, views) = Views::of(&plan, Span::from_us(1));
    let (digest, summary) = views.shown(&plan, &outcome);
    assert!(digest.lines().count() <= 50, "{digest}");
    assert_eq!(summary["queue_pairs"].as_array().unwrap().len(), 63);
}
