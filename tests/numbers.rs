//! The published numbers of the loss-free case, each derived by hand, on real veth pairs and from the files of a run.
//!
//! What recurs, at the defaults: a port of 400 Gb/s sends an octet in 20 ps; a PCIe side sends at 16 × 31.52 =
//! 504.32 Gb/s.
//!
//! ```text
//! generation starts            80,000   after the doorbell, an idle NIC
//! read request, 64 + 34 B       1,555   98 × 8 / 504.32 Gb/s = 1,554.57
//! completion of 4,096 B        69,289   8 transfers of 512 + 34 B: 4,368 × 8 / 504.32 Gb/s = 69,289.3
//! data frame, 4,096 + 58 B     83,080   4,154 × 20
//! link                        100,000
//! ACK, 126 B                    2,520   126 × 20
//! ```

mod common;

use common::{Event, Ran, one_write, pair, post, queue_pair, run_well};

const DOORBELL: u64 = 80_000;
const READ_REQUEST: u64 = 1_555;
const PCIE_4096: u64 = 69_289;
const FRAME_4096: u64 = 83_080;
const LINK: u64 = 100_000;
const ACK: u64 = 2_520;

/// The first payload has arrived from the host.
const FIRST_PAYLOAD: u64 = DOORBELL + READ_REQUEST + PCIE_4096;

fn one_mib() -> Ran {
    run_well(&one_write("1MiB"), &["--events"])
}

fn times(events: &[Event], node: &str, event: &str) -> Vec<u64> {
    events.iter().filter(|one| one.is(node, event)).map(Event::t_ps).collect()
}

fn completed(ran: &Ran) -> Vec<u64> {
    ran.messages().iter().map(|message| message.completed_ps.expect("completed")).collect()
}

#[test]
fn the_first_payload_and_the_first_frame_take_their_published_times() {
    let events = one_mib().events();
    assert_eq!(times(&events, "a", "payload_fetched")[0], 150_844);
    assert_eq!(150_844, 80_000 + 1_555 + 69_289);
    // The port is idle, so the frame starts at once; its last bit leaves 83.08 ns later.
    assert_eq!(times(&events, "a", "frame_sent")[0], 150_844 + 83_080);
}

#[test]
fn data_frames_leave_83_080_ps_apart_without_a_gap() {
    let events = one_mib().events();
    let sent = times(&events, "a", "frame_sent");
    // The PCIe link brings 4,096 B every 69,289 ps, faster than the port takes them; the pool of 230,400 B holds 55
    // frames and restarts at half of it, so the port never waits.
    assert_eq!(sent.len(), 256);
    assert!(sent.windows(2).all(|pair| pair[1] - pair[0] == FRAME_4096), "{sent:?}");
    assert_eq!(sent[255], FIRST_PAYLOAD + 256 * FRAME_4096);
}

#[test]
fn one_mib_is_delivered_and_completed_at_its_published_times() {
    let message = one_mib().message();
    // The last of 256 frames arrives …
    let last = FIRST_PAYLOAD + 256 * FRAME_4096 + LINK;
    assert_eq!(last, 21_519_324);
    // … is written to host memory, nothing being before it on the PCIe link …
    assert_eq!(message.delivered_ps, Some(last + PCIE_4096));
    assert_eq!(message.delivered_ps, Some(21_588_613));
    // … and acknowledged in the instant of its arrival. The ACK of packet 255 left the port long before.
    assert_eq!(message.completed_ps, Some(last + ACK + LINK));
    assert_eq!(message.completed_ps, Some(21_621_844));
    assert_eq!((message.packets, message.retransmissions, message.status.as_str()), (Some(256), 0, "completed"));
}

#[test]
fn one_packet_alone_completes_after_a_round_trip() {
    let message = run_well(&one_write("4096B"), &[]).message();
    assert_eq!(message.completed_ps, Some(FIRST_PAYLOAD + FRAME_4096 + LINK + ACK + LINK));
    assert_eq!(message.completed_ps, Some(436_444));
    assert_eq!(message.delivered_ps, Some(FIRST_PAYLOAD + FRAME_4096 + LINK + PCIE_4096));
}

#[test]
fn a_message_of_0_octets_needs_no_pcie() {
    let message = run_well(&one_write("0B"), &[]).message();
    // 58 B on the line: 1,160 ps.
    assert_eq!(message.completed_ps, Some(DOORBELL + 58 * 20 + LINK + ACK + LINK));
    assert_eq!(message.completed_ps, Some(283_680));
    assert_eq!(message.delivered_ps, Some(DOORBELL + 1_160 + LINK));
}

#[test]
fn sixteen_acks_leave_after_packets_17_34_to_255_and_256() {
    let ran = one_mib();
    let events = ran.events();
    let acked: Vec<u64> = events.iter().filter(|one| one.is("b", "ack_made")).map(|ack| ack.number("psn")).collect();
    // 16 packets are held, the 17th draws the ACK: PSNs 16, 33, … 254. Packet 256 is the last one.
    let expected: Vec<u64> = (1..=15).map(|n| 17 * n - 1).chain([255]).collect();
    assert_eq!(acked, expected);
    assert_eq!((ran.counter("b", "num_acks_sent"), ran.counter("a", "num_acks_recvd")), (16, 16));
    assert_eq!((ran.counter("a", "num_pkts_sent"), ran.counter("b", "num_writes_recvd")), (256, 256));
}

#[test]
fn the_1_ms_timer_for_held_acks_never_fires() {
    let ran = one_mib();
    // Every ACK is made in the instant in which a packet arrives, and the whole run takes 22 µs of the 1 ms.
    let events = ran.events();
    let arrivals = times(&events, "b", "frame_received");
    let acks = times(&events, "b", "ack_made");
    assert!(acks.iter().all(|ack| arrivals.contains(ack)), "{acks:?}");
    assert_eq!(ran.summary()["end_ps"], 21_621_844);
    assert_eq!((ran.counter("a", "num_rto"), ran.counter("a", "num_rtx")), (0, 0));
    assert!(!events.iter().any(|one| one.0["event"] == "transport_timer_expired"));
}

#[test]
fn the_payload_rate_on_the_wire_is_394_4_gb_s() {
    let events = one_mib().events();
    let sent = times(&events, "a", "frame_sent");
    // 255 frames between the first and the last, 4,096 B each: 32,768 bits in 83.08 ns are 394.415 Gb/s.
    let mbps = 255 * 4_096 * 8 * 1_000_000 / (sent[255] - sent[0]);
    assert_eq!(mbps, 394_415);
}

#[test]
fn a_pcie_3_sender_is_limited_to_118_2_gb_s() {
    let text = one_write("1MiB").replace("[nodes.a]", "[nodes.a]\nnic.pcie.lane_bps = \"7.88Gbps\"");
    let events = run_well(&text, &["--events"]).events();
    // 16 × 7.88 = 126.08 Gb/s: a read request takes 784 / 126.08 = 6,218.27 ps, a completion 34,944 / 126.08 =
    // 277,157.4 ps. Requests wait at the host well before their turn, so completions follow each other without a gap.
    let fetched = times(&events, "a", "payload_fetched");
    let expected: Vec<u64> = (1..=256).map(|n| DOORBELL + 6_218 + n * 277_157).collect();
    assert_eq!(fetched, expected);
    // Frames follow the payloads: each is on the line before the next payload is there.
    let sent = times(&events, "a", "frame_sent");
    assert_eq!(sent, expected.iter().map(|at| at + FRAME_4096).collect::<Vec<_>>());
    // 32,768 bits in 277.157 ns.
    assert_eq!(255 * 4_096 * 8 * 1_000_000 / (sent[255] - sent[0]), 118_229);
}

#[test]
fn messages_are_cut_at_4096_octets() {
    let sizes = [0_u64, 1, 4_095, 4_096, 4_097];
    let posts: String = sizes.iter().map(|size| post("q1", "a", "write", &format!("{size}B"), 1)).collect();
    let ran = run_well(&pair(&format!("{}{posts}", queue_pair("q1"))), &[]);
    let rows: Vec<_> = ran.messages().iter().map(|row| (row.bytes, row.packets)).collect();
    let expected = [(0, Some(1)), (1, Some(1)), (4_095, Some(1)), (4_096, Some(1)), (4_097, Some(2))];
    assert_eq!(rows, expected);
}

#[test]
fn messages_of_one_queue_pair_never_overlap() {
    let ran = run_well(&pair(&format!("{}{}", queue_pair("q1"), post("q1", "a", "write", "4096B", 3))), &["--events"]);
    // The next one starts when the one before has completed, and pays the 80 ns again, because generation is idle.
    assert_eq!(completed(&ran), [436_444, 2 * 436_444, 3 * 436_444]);
    assert_eq!(times(&ran.events(), "a", "message_started"), [0, 436_444, 2 * 436_444]);
    assert!(ran.messages().iter().all(|message| message.posted_ps == 0));
}

#[test]
fn messages_of_two_queue_pairs_overlap_and_take_turns() {
    let both = ["q1", "q2"].map(|name| queue_pair(name) + &post(name, "a", "write", "1MiB", 1)).concat();
    let ran = run_well(&pair(&both), &["--events"]);
    let events = ran.events();
    assert_eq!(times(&events, "a", "message_started"), [0, 0]);
    // One segment each, in turn.
    let qpns: Vec<u64> =
        events.iter().filter(|one| one.is("a", "frame_sent")).map(|sent| sent.number("dest_qpn")).collect();
    assert_eq!(qpns, [2, 3].repeat(256));
    // 512 frames without a gap; each message's last frame is one of the last two.
    let last = FIRST_PAYLOAD + 512 * FRAME_4096 + LINK + ACK + LINK;
    assert_eq!(completed(&ran), [last - FRAME_4096, last]);
}

#[test]
fn both_directions_share_nothing_but_the_pcie_links() {
    // Payload alone at both ends: what b fetches for its own message goes host to NIC, what it receives NIC to host.
    let text = pair(&format!(
        "{}{}{}",
        queue_pair("q1"),
        post("q1", "a", "write", "4096B", 1),
        post("q1", "b", "write", "4096B", 1)
    ));
    assert_eq!(completed(&run_well(&text, &[])), [436_444, 436_444]);
}

#[test]
fn a_send_takes_the_time_of_a_write() {
    let text = pair(&format!("{}{}", queue_pair("q1"), post("q1", "a", "send", "1MiB", 1)));
    let message = run_well(&text, &[]).message();
    assert_eq!((message.delivered_ps, message.completed_ps), (Some(21_588_613), Some(21_621_844)));
}
