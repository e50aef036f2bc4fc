//! What holds of any posts, prefetch depths and losses.

use proptest::prelude::*;

use super::*;
use crate::base::{Rate, Span};
use crate::scenario::FaultPlan;
use crate::wire::Verb;

prop_compose! {
    fn post()(
        queue_pair in 0..2_usize,
        from_end in 0..2_usize,
        verb in prop::sample::select(vec![Verb::Write, Verb::Send]),
        size in prop_oneof![0..481_u64, 0..40_000_u64],
        at_ns in 0..3_000_u64,
        count in 1..6_u32,
        every_ps in prop_oneof![Just(0_u64), 1..400_000_u64],
        blue_flame: bool,
        inline: bool,
    ) -> PostPlan {
        let inline = inline && size <= 480;
        let (at, every) = (Instant::from_ps(at_ns * 1_000), Span::from_ps(every_ps));
        PostPlan { at, every, from_end, verb, count, blue_flame, inline, ..write(queue_pair, size) }
    }
}

prop_compose! {
    /// Any posts on two queue pairs, a link to the host of any width, and losses of packets by their number.
    fn plan()(
        posts in prop::collection::vec(post(), 1..5),
        wqe_prefetch in 0..6_u32,
        wqe_size in prop::sample::select(vec![64_u64, 128, 256, 512]),
        blue_flame_max in 0..513_u64,
        lane_mbps in 400..32_000_u64,
        header_buffer in prop::sample::select(vec![300_u64, 16_000]),
        mss in prop::sample::select(vec![100_u64, 1_024, 4_096]),
        lost in prop::collection::vec((0..2_usize, 0..30_u32), 0..4),
    ) -> Plan {
        let mut plan = modelled(posts, wqe_prefetch);
        for nic in &mut plan.nics {
            let config = &mut nic.config;
            (config.send_queue.wqe_size, config.send_queue.blue_flame_max) = (Octets::new(wqe_size), Octets::new(blue_flame_max));
            (config.mss, config.retransmit_timeout) = (Octets::new(mss), Span::from_us(300));
            config.pcie.nic_side.tx_header_buffer = Octets::new(header_buffer);
            config.pcie.nic_side.lane_bps = Rate::from_bps(lane_mbps * 1_000_000).unwrap();
            config.pcie.host_side.lane_bps = Rate::from_bps(lane_mbps * 1_000_000).unwrap();
        }
        for (end, psn) in lost {
            plan.faults.push(FaultPlan { optional: true, ..fault(end, data(psn, &[1]), Action::Drop) });
        }
        plan
    }
}

fn free(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    plan.nics.iter_mut().for_each(|nic| nic.config.send_queue.doorbell = DoorbellCost::Free);
    plan
}

proptest! {
    /// Books balance and all completes, or the run itself fails; octets and times add up.
    #[test]
    fn all_completes_and_every_wqe_is_accounted_for(plan in plan()) {
        let explained = explain(&plan);
        let messages: u64 = plan.posts.iter().map(|post| u64::from(post.count)).sum();
        let (mut ended, mut hits, mut brought, mut fetched) = (0, 0, 0, 0);
        for node in [A, B] {
            let c = explained.outcome.counters.node(node);
            ended += c.num_wqe_completed;
            hits += c.num_wqe_prefetch_hits;
            brought += c.num_blue_flame_posts;
            fetched += c.num_wqe_fetches;
            let arrived = explained.log.0.iter().filter(|event| event.node == node);
            let arrived = arrived.filter(|event| matches!(event.kind, EventKind::WqeFetched { .. })).count() as u64;
            prop_assert_eq!(c.num_wqe_fetches, arrived + c.num_wqe_discards);
            prop_assert!(c.num_doorbells <= c.num_wqe_created);
            prop_assert!(c.pcie_from_host_octets >= c.pcie_doorbell_octets + c.pcie_wqe_octets);
        }
        prop_assert_eq!(ended, messages);
        // Every entry was brought or fetched; more than once only after a rewind.
        prop_assert!(brought + fetched >= messages);
        prop_assert!(hits <= fetched);
        let rewinds: u64 = [A, B].iter().map(|node| explained.outcome.counters.node(*node).num_rtx).sum();
        prop_assert!(rewinds > 0 || brought + fetched == messages);
        for time in &explained.times {
            prop_assert_eq!(time.times.total().ps(), explained.outcome.end.ps());
        }
    }
}

proptest! {
    /// Of one queue pair that sends alone and loses nothing: where several share a line, one that comes later can let the
    /// others end earlier, and a message that comes later can spare a timeout to the one before it.
    /// Inline data save a fetch that they are charged for where doorbells are free: they are left out as well.
    #[test]
    fn costs_never_make_a_run_end_earlier(mut plan in plan()) {
        plan.posts.iter_mut().for_each(|post| (post.queue_pair, post.from_end, post.inline) = (0, 0, false));
        plan.faults.clear();
        let (with, without) = (run(&plan).0.end, run(&free(&plan)).0.end);
        prop_assert!(with >= without, "{} with costs, {} without", with, without);
    }
}
