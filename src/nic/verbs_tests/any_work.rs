//! Whatever is posted, and whatever the wire loses: nothing panics, the books balance, and all work ends once.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::base::Rng;

/// A line of a plan: when, at which end, what.
type Step = (u64, usize, u16, u64, bool);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![0..3_u64, 200..1_200_u64, 0..20_000_u64];
    prop::collection::vec((0..30_000_000_u64, 0..2_usize, 0..1_000_u16, size, any::<bool>()), 1..60)
}

/// An application posts and rings, at times with BlueFlame. Where doorbells are free, ringing changes nothing.
fn post_and_ring(pair: &mut Pair, ps: u64, end: usize, work: WorkRequest) {
    let blue_flame = if work.message.0.is_multiple_of(3) { work.wqe_octets() } else { Octets::ZERO };
    pair.post(ps, end, work);
    pair.act(ps, end, Act::Input(Input::Ring { qpn: qpn(), entries: 1, blue_flame }));
}

/// Posts more receives and sound messages than anything else.
fn enter(pair: &mut Pair, steps: &[Step]) {
    let steps = (0_u32..).zip(steps);
    for (message, &(ps, end, what, size, flag)) in steps {
        let immediate = flag.then_some(message);
        match what {
            0..430 => pair.receive(ps, end, u64::from(message), if flag { 20_000 } else { size }),
            430..700 => post_and_ring(pair, ps, end, WorkRequest { immediate, ..send(message, size) }),
            700..970 => post_and_ring(pair, ps, end, WorkRequest { immediate, ..write(message, size) }),
            970..975 => {
                let remote = MemoryKey { address: 0x1000 + 65_000, rkey: 1 };
                post_and_ring(pair, ps, end, WorkRequest { remote, ..write(message, size) });
            }
            975..980 => post_and_ring(pair, ps, end, send(message, 65_537)),
            980..983 => pair.act(ps, end, Act::Deregister(1)),
            983..995 => pair.inject(ps, end, &answer(message, Syndrome::RnrNak { timer: 1 })),
            _ => pair.fail(ps, end, FailureCause::Closed),
        }
    }
}

/// What ended, by number; fails if anything ended twice.
fn ended(pair: &Pair, pick: impl Fn(&EventKind) -> Option<u64>) -> Result<BTreeSet<(usize, u64)>, TestCaseError> {
    let mut ended = BTreeSet::new();
    for event in &pair.log {
        if let Some(number) = pick(&event.kind) {
            prop_assert!(ended.insert((event.node.index(), number)), "{} twice: {:?}", number, event);
        }
    }
    Ok(ended)
}

fn check(pair: &Pair) -> Result<(), TestCaseError> {
    use EventKind::*;
    let message = |message: &MessageId| Some(u64::from(message.0));
    let posted = ended(pair, |kind| if let MessagePosted { message: m, .. } = kind { message(m) } else { None })?;
    let done = ended(pair, |kind| match kind {
        MessageCompleted { message: m, .. } | MessageFailed { message: m, .. } => message(m),
        _ => None,
    })?;
    prop_assert_eq!(posted, done, "every message posted ends once");
    let completed = ended(pair, |kind| if let MessageCompleted { message: m, .. } = kind { message(m) } else { None })?;
    let arrived = ended(pair, |kind| match kind {
        MessageDelivered { message: m, .. } | DeliveryFailed { message: m, .. } => message(m),
        _ => None,
    })?;
    for (end, message) in completed {
        prop_assert!(arrived.contains(&(1 - end, message)), "message {} completed without arriving", message);
    }
    let posted = ended(pair, |kind| if let ReceivePosted { receive, .. } = kind { Some(*receive) } else { None })?;
    let done = ended(pair, |kind| match kind {
        ReceiveCompleted { receive, .. } | ReceiveFailed { receive, .. } => Some(*receive),
        _ => None,
    })?;
    prop_assert!(done.is_subset(&posted));
    let failed = ended(pair, |kind| if let QueuePairFailed { .. } = kind { Some(0) } else { None })?;
    for (end, _) in failed {
        let of_end = |set: &BTreeSet<(usize, u64)>| set.iter().filter(|(of, _)| *of == end).count();
        prop_assert_eq!(of_end(&posted), of_end(&done), "a queue pair in error has no receives");
        prop_assert!(pair.nics[end].memory.next_receive(qpn()).is_none());
    }
    // Work of one end ends in the order in which it was posted.
    for end in [A, B] {
        let of_end = || pair.log.iter().filter(|event| event.node.index() == end);
        let numbers = |pick: fn(&EventKind) -> Option<u64>| of_end().filter_map(|event| pick(&event.kind)).collect();
        let posted: Vec<u64> =
            numbers(|kind| if let ReceivePosted { receive, .. } = kind { Some(*receive) } else { None });
        let done: Vec<u64> = numbers(|kind| match kind {
            ReceiveCompleted { receive, .. } | ReceiveFailed { receive, .. } => Some(*receive),
            _ => None,
        });
        prop_assert!(posted.starts_with(&done), "{:?} of {:?}", done, posted);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn all_work_ends_once(
        steps in steps(),
        seed: u64,
        loss in 0..30_u64,
        rnr_retry in 0..7_u8,
        retry in 0..=7_u8,
        is_modelled: bool,
        wqe_prefetch in 0..5_u32,
    ) {
        let doorbell = if is_modelled { DoorbellCost::Modelled } else { DoorbellCost::Free };
        let config = Config {
            send_queue: SendQueueConfig { doorbell, wqe_prefetch, ..SendQueueConfig::default() },
            mss: Octets::new(512),
            retransmit_timeout: Span::from_us(20),
            ack: AckConfig { delay: Span::from_us(5), ..AckConfig::default() },
            ..Config::default()
        };
        let service = Service::Verbs { domain: OWN, min_rnr_timer: 1, rnr_retry, retry };
        let mut pair = Pair::with(config, service);
        pair.tells_peer = true;
        let mut rng = Rng::named(seed, "losses");
        pair.loses = Box::new(move |_, _| rng.next_u64() % 100 < loss);
        enter(&mut pair, &steps);
        pair.run();
        check(&pair)?;
    }
}
