//! What holds of any plan: pools, headroom, and causes that add up.

use proptest::prelude::*;

use super::*;

fn posts(ends: usize, from_size: u64) -> impl Strategy<Value = Vec<PostPlan>> {
    let post = (0..2_usize, 0..ends, from_size..from_size + 120_000, 0..20_u64).prop_map(
        |(queue_pair, from_end, size, at_us)| PostPlan {
            from_end,
            at: Instant::from_ps(at_us * 1_000_000),
            ..write(queue_pair, size)
        },
    );
    prop::collection::vec(post, 1..5)
}

prop_compose! {
    /// Any rates, delays and packet sizes; a slow receiver with small pools; random losses.
    fn plan()(
        gbps in prop::sample::select(vec![10_u64, 25, 40, 100, 400]),
        delay_ns in 0..2_000_u64,
        mss in 300..4_097_u64,
        lane_mbps in 200..32_000_u64,
        egress in 10_000..300_000_u64,
        ingress in 20_000..300_000_u64,
        xoff in 20..101_u64,
        pfc: bool,
        loss in 0..20_u64,
        posts in posts(2, 0),
    ) -> Plan {
        let mut plan = Plan { posts, ..pair(2) };
        plan.queue_pairs[1].ends.iter_mut().for_each(|end| end.initial_psn = Psn::new(0xff_fffe));
        let delay = Span::from_ns(delay_ns);
        for nic in &mut plan.nics {
            let config = &mut nic.config;
            (config.data_rate, config.delay, config.mss) = (Rate::from_gbps(gbps), delay, Octets::new(mss));
            config.retransmit_timeout = Span::from_us(300);
            config.egress.total = Octets::new(egress);
            config.ingress.total = Octets::new(ingress);
            config.ingress.xoff[0] = Share::from_percent(xoff);
            config.ingress.pfc_enabled[0] = pfc;
            config.ingress.quanta[0] = 2_000;
            config.pcie.nic_side.lane_bps = Rate::from_bps(lane_mbps * 1_000_000).unwrap();
        }
        plan.links[0].ends.iter_mut().for_each(|end| end.delay = delay);
        for end in 0..2 {
            let probability = Some(Share::from_percent(loss));
            plan.faults.push(rule(end, Matcher { probability, ..Matcher::default() }, Action::Drop));
        }
        plan
    }
}

prop_compose! {
    /// A receiver with as much headroom as theory asks for, slower than its line.
    fn plan_with_headroom()(
        gbps in prop::sample::select(vec![10_u64, 25, 40, 50, 100, 200, 400]),
        delay_ns in 0..3_000_u64,
        mss in 200..4_097_u64,
        slowness in 2..40_u64,
        above in 0..50_000_u64,
        posts in posts(1, 150_000),
    ) -> Plan {
        let mut plan = Plan { posts, ..pair(2) };
        let (delay, rate, mtu) = (Span::from_ns(delay_ns), Rate::from_gbps(gbps), mss + 58);
        let headroom = (2 * gbps * delay_ns).div_ceil(8) + 3 * mtu + 84;
        let pool = headroom + 2 * mtu + above;
        for nic in &mut plan.nics {
            let config = &mut nic.config;
            (config.data_rate, config.delay, config.mss) = (rate, delay, Octets::new(mss));
            let ingress = &mut config.ingress;
            ingress.shares[..2].copy_from_slice(&[Share::from_percent(50), Share::from_percent(50)]);
            ingress.total = Octets::new(2 * pool);
            let parts = u128::from(pool - headroom) * u128::from(Share::UNIT) / u128::from(pool);
            ingress.xoff[0] = Share::from_parts(parts as u64);
            // At or above Xoff, it would resume the sender while the headroom is in use.
            ingress.xon[0] = Share::from_parts(parts as u64 / 2);
        }
        let pcie = &mut plan.nics[1].config.pcie.nic_side;
        (pcie.lane_bps, pcie.lane_count) = (Rate::from_bps(gbps * 1_000_000_000 / slowness).unwrap(), 1);
        (pcie.tx_header_buffer, pcie.tx_data_buffer) = (Octets::new(400), Octets::new(5_000));
        plan.links[0].ends.iter_mut().for_each(|end| end.delay = delay);
        plan
    }
}

/// No pool ever holds more than it can; the egress pool of the control class aside (model.md T12).
fn check_pools(plan: &Plan, log: &Log) -> Result<(), TestCaseError> {
    let limits = plan.limits();
    for Event { at, node, kind } in &log.0 {
        let (class, occupancy, size) = match kind {
            EventKind::SegmentReserved { class, occupancy, .. } => {
                (*class, *occupancy, limits.nodes[node.index()].egress[class.index()])
            }
            EventKind::FrameReceived { packet, occupancy, .. } if !packet.kind.is_pfc() => {
                let limit = limits.nodes[node.index()].ports[0][packet.class.index()];
                (packet.class, *occupancy, limit.map(|limit| limit.pool))
            }
            _ => continue,
        };
        prop_assert!(
            size.is_some_and(|size| occupancy <= size),
            "{at} {node:?} class {class}: {occupancy} of {size:?}"
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn holds_no_more_than_its_pools_and_accounts_for_every_picosecond(plan in plan()) {
        // `explain` checks that every queue pair's causes add up to the run's time; an account that would go
        // negative panics.
        let explained = explain(&plan);
        prop_assert_eq!(&explained.outcome.unfinished, &[]);
        check_pools(&plan, &explained.log)?;
        let paused = explained.outcome.counters.node(A).pfc_time_paused_ps;
        prop_assert_eq!(paused, (0..8).map(|class| explained.paused(class)).sum::<u64>());
    }

    #[test]
    fn loses_nothing_with_enough_headroom(plan in plan_with_headroom()) {
        let explained = explain(&plan);
        let b = explained.outcome.counters.node(B);
        prop_assume!(b.pfcxoff_tx > 0);
        prop_assert_eq!((b.rx_drops, explained.outcome.counters.node(A).num_rtx), (0, 0));
        check_pools(&plan, &explained.log)?;
    }
}
