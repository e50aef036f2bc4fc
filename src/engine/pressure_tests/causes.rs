//! Where the time of a queue pair goes.

use super::*;

#[test]
fn a_line_that_never_waits_is_the_cause_of_nearly_everything() {
    let plan = Plan { posts: vec![write(0, 1 << 20)], ..pair(1) };
    let explained = explain(&plan);
    // 80 ns to start, 1,555 + 69,289 ps for the first payload, 256 frames back to back, and the last ACK: 100 ns there,
    // 2,520 ps on the line, 100 ns back.
    assert_eq!(
        explained.causes(0),
        [(Cause::Sending, 256 * 83_080), (Cause::PcieRead, 150_844), (Cause::Acknowledgement, 202_520)]
    );
    assert_eq!(explained.times[0].times.per_mille().iter().sum::<u64>(), 1_000);
    assert_eq!(explained.outcome.counters.node(A).pcie_to_host_octets, 256 * 98);
    assert_eq!(explained.outcome.counters.node(A).pcie_from_host_octets, 256 * 4_368);
    assert_eq!(explained.outcome.counters.node(B).pcie_to_host_octets, 256 * 4_368);
}

#[test]
fn an_egress_pool_of_one_packet_costs_the_start_of_generation() {
    let mut plan = Plan { posts: vec![write(0, 10 * 4_096)], ..pair(1) };
    plan.nics[0].config.egress.total = Octets::new(5_000);
    let explained = explain(&plan);
    // Every packet but the first waits 80 ns for the pool that its predecessor filled, then for its payload.
    assert_eq!(explained.time(0, Cause::Sending), 10 * 83_080);
    assert_eq!(explained.time(0, Cause::EgressPool), 9 * 80_000);
    assert_eq!(explained.time(0, Cause::PcieRead), 80_000 + 10 * 70_844);
    assert_eq!(explained.time(0, Cause::Acknowledgement), 202_520);
}

#[test]
fn two_queue_pairs_share_a_line() {
    let plan = Plan { posts: vec![write(0, 1 << 20), write(1, 1 << 20)], ..pair(2) };
    let explained = explain(&plan);
    for queue_pair in 0..2 {
        assert_eq!(explained.time(queue_pair, Cause::Sending), 256 * 83_080);
        // Its share of the line is a half.
        let behind = explained.time(queue_pair, Cause::LineBusy);
        assert!((253 * 83_080..=256 * 83_080).contains(&behind), "{:?}", explained.causes(queue_pair));
    }
}

#[test]
fn a_lost_packet_costs_the_timer_what_is_left_of_it() {
    let mut plan = Plan { posts: vec![write(0, 4_096)], ..pair(1) };
    let matcher = Matcher { nth: vec![1], ..Matcher::default() };
    plan.faults = vec![rule(0, matcher, Action::Drop)];
    let explained = explain(&plan);
    // The timer starts with the PSN, at 150,844 ps, and the packet leaves 83,080 ps later.
    assert_eq!(
        explained.causes(0),
        [
            (Cause::Sending, 2 * 83_080),
            (Cause::Timeout, 64_000_000_000 - 83_080),
            (Cause::PcieRead, 2 * 150_844),
            (Cause::Acknowledgement, 202_520)
        ]
    );
}

/// One CE mark makes the queue pair congested: for a while it goes on below DataRate.
fn slowed(application: RateApplication) -> Explained {
    let mut plan = Plan { posts: vec![write(0, 1 << 20)], ..pair(1) };
    plan.nics[0].config.congestion.rate_application = application;
    plan.faults = vec![rule(0, Matcher { nth: vec![10], ..Matcher::default() }, Action::SetCe)];
    explain(&plan)
}

#[test]
fn a_lower_rate_is_a_cause_of_its_own_however_it_is_applied() {
    for application in [RateApplication::Serialize, RateApplication::Pace] {
        let explained = slowed(application);
        assert_eq!(explained.time(0, Cause::Sending), 256 * 83_080, "{application:?}");
        assert_eq!(explained.time(0, Cause::LineBusy), 0, "{application:?}");
        assert!(explained.time(0, Cause::AllowedRate) > 400_000, "{application:?}: {:?}", explained.causes(0));
    }
}

#[test]
fn an_unfinished_run_is_attributed_to_where_it_was_cut_off() {
    let plan = Plan { posts: vec![write(0, 1 << 20)], until: Instant::from_ps(1_000_000), ..pair(1) };
    let explained = explain(&plan);
    // The last event before the end: 10 frames and a part.
    assert_eq!(explained.outcome.unfinished.len(), 1);
    assert_eq!(explained.time(0, Cause::PcieRead), 150_844);
    assert_eq!(explained.time(0, Cause::Sending), explained.outcome.end.ps() - 150_844);
}
