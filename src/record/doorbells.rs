//! What doorbells and work queue elements cost, for the digest.

use super::digest::{counted, grouped};
use super::summary::SummaryInput;
use crate::trace::NodeCounters;

/// A line, where doorbells are modelled and one was rung.
pub(super) fn doorbells(input: &SummaryInput<'_>) -> Option<String> {
    let mut all = NodeCounters::default();
    input.counters.iter().for_each(|counters| all.add(counters));
    if all.num_doorbells == 0 {
        return None;
    }
    let mut line = format!("  {}", counted(all.num_doorbells, "doorbell"));
    if all.num_blue_flame_posts > 0 {
        line += &format!(", {} with their WQE (BlueFlame)", grouped(all.num_blue_flame_posts));
    }
    if all.num_blue_flame_fallbacks > 0 {
        line += &format!(", {} too long for BlueFlame", counted(all.num_blue_flame_fallbacks, "WQE"));
    }
    line += &format!("; {} fetched", counted(all.num_wqe_fetches, "WQE"));
    line += &format!(", {} of them before their turn", grouped(all.num_wqe_prefetch_hits));
    let (to_host, from_host) = (all.pcie_wqe_request_octets, all.pcie_doorbell_octets + all.pcie_wqe_octets);
    Some(line + &format!("; {} B on PCIe to the hosts, {} B from them", grouped(to_host), grouped(from_host)))
}

#[cfg(test)]
mod tests {
    use super::super::story::{A, Run, at, qpn};
    use super::super::summary::Outcome;
    use super::*;
    use crate::base::{MessageId, Octets};
    use crate::trace::{Event, EventKind};

    fn line(kinds: Vec<EventKind>) -> Option<String> {
        let events: Vec<Event> = kinds.into_iter().map(|kind| at(1, A, kind)).collect();
        doorbells(&Run::of(&events).input(&Outcome::AllWell))
    }

    #[test]
    fn costs_are_one_line_and_none_where_there_are_none() {
        let (qpn, message) = (qpn(2), MessageId(0));
        let posted = |octets| EventKind::DoorbellPosted { qpn, entries: 1, carried: Octets::new(octets) };
        let wqe = Octets::new(300);
        let carried = Octets::new(98);
        assert_eq!(line(Vec::new()), None);
        let plain = vec![
            posted(98),
            EventKind::WqeFetchRequested { qpn, message, carried },
            EventKind::WqeFetched { qpn, message, carried },
        ];
        let expected =
            "  1 doorbell; 1 WQE fetched, 0 of them before their turn; 98 B on PCIe to the hosts, 196 B from them";
        assert_eq!(line(plain.clone()).as_deref(), Some(expected));
        let more = [
            posted(1_000),
            EventKind::BlueFlamePosted { qpn, wqe },
            EventKind::BlueFlameFellBack { qpn, wqe },
            EventKind::WqeFetchRequested { qpn, message, carried },
            EventKind::WqeDiscarded { qpn, carried },
            EventKind::WqePrefetchHit { qpn, message },
        ];
        let expected = "  2 doorbells, 1 with their WQE (BlueFlame), 1 WQE too long for BlueFlame; 2 WQEs fetched, \
                        1 of them before their turn; 196 B on PCIe to the hosts, 1,294 B from them";
        assert_eq!(line(plain.into_iter().chain(more).collect()).as_deref(), Some(expected));
    }
}
